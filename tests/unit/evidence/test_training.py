"""Training rows: equal rows merged in the order of their content, samples and folds that follow it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likely.errors import InputError
from likely.evidence.training import LEAST_OF_CLASS, encoded_parts, nested_folds, proportional_sample
from tests.unit.evidence.tables import distinct, mixed, numbers, training


def test_equal_rows_of_a_class_are_merged_and_rows_without_weight_dropped() -> None:
    X = pd.DataFrame({"x": [1.0, 1.0, 1.0, 2.0, np.nan, np.nan], "u": ["a", "a", "a", "a", None, None]})
    rows = distinct(X, ["p", "p", "q", "q", "p", "p"], [1.0, 2.5, 1.0, 0.0, 0.25, 0.25])
    order = np.argsort(rows.positions)
    assert_array_equal(rows.positions[order], [0, 2, 4])
    assert_allclose(rows.weights[order], [3.5, 1.0, 0.5])
    assert_array_equal(rows.copies[order], [2, 1, 2])
    assert_array_equal(rows.codes[order], [0, 1, 0])
    assert np.all(np.diff(rows.keys.astype(float)) > 0.0)


def test_the_order_of_rows_and_columns_does_not_matter() -> None:
    X, y = mixed()
    order = np.random.default_rng(0).permutation(len(X))
    plain, permuted = distinct(X, y), distinct(X.iloc[order][X.columns[::-1]], y[order])
    assert_array_equal(plain.keys, permuted.keys)
    assert_array_equal(plain.positions, order[permuted.positions])


def test_keys_depend_on_the_label_and_not_on_its_code() -> None:
    X, y = numbers()
    keys = distinct(X, y).keys
    assert np.isin(distinct(X[y != "a"], y[y != "a"]).keys, keys).all()
    assert not np.isin(distinct(X, np.roll(y, 1)).keys, keys).any()


def test_other_labels_than_those_of_the_fit_are_named() -> None:
    X, y = numbers()
    with pytest.raises(InputError, match=r"'c', which is not among the classes of the fit: 'a', 'b'"):
        distinct(X, y, classes=np.array(["a", "b"]))


def test_a_sample_has_the_proportions_of_the_classes_and_some_rows_of_rare_ones() -> None:
    codes = np.repeat([0, 1, 2, 3], [20_000, 5000, 150, 20])
    sample = np.bincount(codes[proportional_sample(codes, 4, 2500)])
    assert_allclose(sample[:2], [20_000 / 25_170 * 2500, 5000 / 25_170 * 2500], atol=1.0)
    assert_array_equal(sample[2:], [LEAST_OF_CLASS, 20])
    assert_array_equal(proportional_sample(codes, 4, 10**6), np.arange(len(codes)))


@pytest.mark.parametrize(("n", "folds"), [(2, 2), (30, 10), (149, 10), (150, 5), (600, 3), (1500, 1)])
def test_folds_are_disjoint_and_have_the_proportions_of_the_classes(n: int, folds: int) -> None:
    rows, _ = training(*numbers(n))
    found = nested_folds(rows)
    assert len(found) == folds
    together = np.concatenate(found)
    assert len(np.unique(together)) == len(together)
    assert len(together) == n if folds > 1 else abs(len(together) - n / 5) < 1
    for k in range(len(rows.classes)):
        sizes = [np.count_nonzero(rows.codes[fold] == k) for fold in found]
        assert max(sizes) - min(sizes) <= 1


def test_a_rare_class_does_not_determine_the_number_of_folds() -> None:
    X, y = numbers(200)
    y = np.where(np.arange(200) == 7, "rare", "common")
    assert len(nested_folds(training(X, y)[0])) == 5
    assert nested_folds(training(X[:1], y[:1])[0]) == []


def test_weights_are_repeats_for_folds_and_parts_add_up() -> None:
    X, y = numbers(90)
    weights = np.random.default_rng(0).integers(1, 4, 90)
    index = np.repeat(np.arange(90), weights)
    (weighted, encoding), (repeated, _) = training(X, y, weights), training(X.iloc[index], y[index])
    for one, two in zip(nested_folds(weighted), nested_folds(repeated), strict=True):
        assert_array_equal(one, two)
    assert_array_equal(weighted.weights, repeated.weights)
    rows = distinct(X, y, weights)
    assert sum(len(part) for part in encoded_parts(rows, encoding)) == len(rows) == 90
    assert rows.take(np.arange(5)).copies.tolist() == [1] * 5
