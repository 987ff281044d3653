"""The view of pairs, against a literal implementation of the formulas."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from likely.data.validation import read_table
from likely.evidence.encoding import Encoding
from likely.evidence.pairs import BINS, COLUMNS, FittedPairs, PairsView, informative_columns, merged_cells
from likely.evidence.rows import TrainingRows

Floats = NDArray[np.float64]
S = 2.0


def training(frame: pd.DataFrame, labels: Any, weights: Any = None) -> tuple[TrainingRows, Encoding]:
    """Training rows in the order of the frame, and their encoding."""
    table = read_table(frame)
    weight = np.ones(len(frame)) if weights is None else np.asarray(weights, dtype=np.float64)
    encoding = Encoding.of(table, weight, range(table.width))
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    order = np.arange(len(frame))
    return TrainingRows(
        encoding.encode(table), classes, codes, weight, order.astype(np.uint64), order, np.ones_like(order)
    ), encoding


def mixed_frame(n: int = 70, seed: int = 0, missing: float = 0.1) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Numbers, categories and a column with few values; columns go together differently in each class."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    first = rng.normal(size=n)
    second = np.where(labels == "a", first, -first) + 0.3 * rng.normal(size=n)
    word = np.where(rng.random(n) < 0.7, np.where(first > 0.0, "up", "down"), "level")
    frame = pd.DataFrame({"first": first, "second": second, "word": word, "few": rng.integers(0, 4, n).astype(float)})
    frame = frame.mask(rng.random(frame.shape) < missing)
    frame.iloc[5] = None
    return frame, labels


def bins_of(fitted: FittedPairs, rows: TrainingRows) -> NDArray[np.intp]:
    """The bins of the columns of a view, −1 where a value is missing."""
    return fitted.bins[fitted.columns, rows.rows.cells[:, fitted.columns]].astype(np.intp)


def literal(x: Any, X: Any, codes: Any, weights: Any, others: Any, k: int, sizes: Any) -> float:
    """log p(x | k), value by value; `others` are the weights that the class-free proportions come from."""

    def proportion(j: int) -> float:
        here = float(others[X[:, j] == x[j]].sum())
        return (here + S / sizes[j]) / (float(others[X[:, j] >= 0].sum()) + S)

    mine = np.where(codes == k, weights, 0.0)

    def single(j: int) -> float:
        return (mine[X[:, j] == x[j]].sum() + S * proportion(j)) / (mine[X[:, j] >= 0].sum() + S)

    def pair(j: int, i: int) -> float:
        both = mine[(X[:, i] == x[i]) & (X[:, j] == x[j])].sum()
        return (both + S * single(j)) / (mine[(X[:, i] == x[i]) & (X[:, j] >= 0)].sum() + S)

    observed = [j for j in range(len(x)) if x[j] >= 0]
    terms = [single(i) * np.prod([pair(j, i) for j in observed if j != i]) for i in observed]
    return float(np.log(np.mean(terms))) if terms else 0.0


def literal_terms(fitted: FittedPairs, rows: TrainingRows, left_out: bool) -> Floats:
    """Terms (classes, n) of training rows; each without itself in the counts of its class if `left_out` is set."""
    X, sizes = bins_of(fitted, rows), fitted.bins[fitted.columns].max(axis=1) + 1
    found = np.zeros((len(rows.classes), len(rows)))
    for r in range(len(rows)):
        weights = rows.weights.copy()
        if left_out:
            weights[r] -= min(1.0, weights[r])
        for k in range(len(rows.classes)):
            found[k, r] = literal(X[r], X, rows.codes, weights, rows.weights, k, sizes)
    return found


def fit(rows: TrainingRows, encoding: Encoding) -> FittedPairs:
    fitted = PairsView().fit(rows, encoding, 0)
    assert fitted is not None
    return fitted


@pytest.mark.parametrize("weighted", [False, True])
def test_terms_follow_the_formulas(weighted: bool) -> None:
    frame, labels = mixed_frame()
    weights = np.random.default_rng(1).choice([0.3, 1.0, 2.0, 3.5], len(frame)) if weighted else None
    rows, encoding = training(frame, labels, weights)
    fitted = fit(rows, encoding)
    np.testing.assert_allclose(fitted.terms(rows.rows)[0], literal_terms(fitted, rows, False), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fitted.left_out(rows)[0], literal_terms(fitted, rows, True), rtol=1e-12, atol=1e-12)
    assert np.array_equal(fitted.terms(rows.rows)[0, :, 5], np.zeros(3))  # a row without any values


def test_contributions_sum_to_the_term() -> None:
    frame, labels = mixed_frame()
    frame.insert(1, "constant", 1.0)
    rows, encoding = training(frame, labels)
    fitted = fit(rows, encoding)
    terms, found = fitted.terms(rows.rows)[0], fitted.contributions(rows.rows, np.array([0.7]))
    assert found.shape == (len(frame), 3, 5)
    np.testing.assert_allclose(found.sum(axis=2).T, 0.7 * terms, rtol=1e-10, atol=1e-10)
    assert not found[:, :, 1].any()
    assert not found.transpose(0, 2, 1)[frame.isna().to_numpy()].any()


def test_contributions_of_two_columns_by_hand() -> None:
    frame, labels = mixed_frame(missing=0.0)
    rows, encoding = training(frame[["word", "few"]].drop(5), np.delete(labels, 5))
    fitted = fit(rows, encoding)
    X, sizes = bins_of(fitted, rows), fitted.bins[fitted.columns].max(axis=1) + 1
    ones = np.ones(len(rows))
    found = fitted.contributions(rows.rows, np.ones(1))
    for r, k in ((0, 0), (7, 1), (11, 2)):
        x = X[r]
        alone = [literal(np.where(np.arange(2) == j, x, -1), X, rows.codes, ones, ones, k, sizes) for j in (0, 1)]
        both = np.array([_parent_term(x, X, rows.codes, k, i, alone) for i in (0, 1)])
        rho = np.exp(both) / np.exp(both).sum()
        pair = both - alone
        expected = rho * (alone - np.log(rho)) + 0.5 * (rho @ pair) - 0.5 * np.log(2.0)
        np.testing.assert_allclose(found[r, k], expected, rtol=1e-12)


def _parent_term(x: Any, X: Any, codes: Any, k: int, i: int, alone: Any) -> float:
    """log p(x_i | k) p(x_j | x_i, k) of two columns."""
    mine, j = X[codes == k], 1 - i
    same = mine[:, i] == x[i]
    pair = (np.sum(same & (mine[:, j] == x[j])) + S * np.exp(alone[j])) / (np.sum(same) + S)
    return float(alone[i] + np.log(pair))


def test_folds_and_updates_equal_refits() -> None:
    frame, labels = mixed_frame(missing=0.05)
    rows, encoding = training(frame, labels)
    fitted = fit(rows, encoding)
    held_out = np.arange(0, len(rows), 3)
    remaining = np.setdiff1d(np.arange(len(rows)), held_out)
    part = rows.take(remaining)
    refit = FittedPairs.of(part, encoding.names, fitted.bins, fitted.columns)
    without = fitted.without(rows.take(held_out), part)
    np.testing.assert_allclose(without.terms(rows.rows), refit.terms(rows.rows), rtol=1e-13)
    np.testing.assert_allclose(without.left_out(part), refit.left_out(part), rtol=1e-13)
    again = without + without.counted(rows.take(held_out))
    np.testing.assert_allclose(again.terms(rows.rows), fitted.terms(rows.rows), rtol=1e-13)
    both = fitted.counted(part) + fitted.counted(rows.take(held_out))
    np.testing.assert_array_equal(both.counts, fitted.counts)
    none = fitted.removed(rows)
    assert not none.counts.any()
    assert np.ptp(none.terms(rows.rows), axis=1).max() == 0.0


def test_weights_are_repeats() -> None:
    frame, labels = mixed_frame(40)
    weights = np.random.default_rng(2).integers(1, 4, 40)
    rows, encoding = training(frame, labels, weights)
    index = np.repeat(np.arange(40), weights)
    repeated, _ = training(frame.iloc[index], labels[index])
    fitted, other = fit(rows, encoding), fit(repeated, encoding)
    assert np.array_equal(fitted.bins, other.bins)
    np.testing.assert_allclose(fitted.left_out(rows)[0][:, index], other.left_out(repeated)[0])


def test_bins_have_about_equal_weight_and_rare_categories_are_merged() -> None:
    rng = np.random.default_rng(0)
    letters = rng.choice(list("abcdefghijkl"), 900, p=np.arange(12, 0, -1) / 78.0)
    numbers = rng.normal(size=900)
    frame = pd.DataFrame({"x": numbers, "lumps": np.where(numbers > 0.2, numbers, 0.0), "letter": letters})
    rows, encoding = training(frame, rng.integers(0, 2, 900))
    bins = merged_cells(rows, encoding)
    weights = [np.bincount(bins[j, rows.rows.cells[:, j]]) for j in range(3)]
    assert len(weights[0]) == BINS
    assert np.ptp(weights[0]) < 30
    assert len(weights[1]) == BINS  # the others share the rest, although one bin has more than half of the rows
    assert np.ptp(weights[1][1:]) < 30
    frequency = pd.Series(letters).value_counts()
    assert weights[2].tolist() == [*frequency[:7], frequency[7:].sum()]
    assert bins[2, encoding.n_cells[2]] == -1


def test_the_most_informative_columns_are_selected() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300)
    noise = pd.DataFrame(rng.integers(0, 2, (300, 90)), columns=[f"noise{j}" for j in range(90)]).astype(float)
    frame = noise.assign(signal=(labels ^ (rng.random(300) < 0.2)).astype(float), twice=noise["noise3"])
    rows, encoding = training(frame, labels)
    fitted = fit(rows, encoding)
    assert len(fitted.columns) == COLUMNS
    assert frame.columns.get_loc("signal") in fitted.columns
    only = informative_columns(rows, fitted.bins, encoding.names, 1)
    assert only.tolist() == [frame.columns.get_loc("signal")]
    shuffled = rng.permutation(frame.columns)
    other_rows, other_encoding = training(frame[shuffled], labels)
    other = fit(other_rows, other_encoding)
    assert set(shuffled[other.columns]) == set(frame.columns[fitted.columns])
    np.testing.assert_allclose(other.left_out(other_rows), fitted.left_out(rows), rtol=1e-12)


def test_columns_are_selected_again_without_held_out_rows() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60)
    rows, encoding = training(pd.DataFrame(rng.integers(0, 3, (60, 150))).astype(float), labels)
    fitted = fit(rows, encoding)
    remaining = rows.take(np.arange(40))
    without = fitted.without(rows.take(np.arange(40, 60)), remaining)
    assert np.array_equal(without.columns, informative_columns(remaining, fitted.bins, encoding.names, COLUMNS))
    assert not np.array_equal(without.columns, fitted.columns)
    refit = FittedPairs.of(remaining, encoding.names, fitted.bins, without.columns)
    np.testing.assert_allclose(without.terms(rows.rows), refit.terms(rows.rows), rtol=1e-13)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": np.arange(20.0)}),
        pd.DataFrame({"x": np.ones(20), "y": ["a"] * 20, "z": [None] * 20}),
        pd.DataFrame({"x": np.arange(20.0), "y": np.ones(20)}),
    ],
)
def test_no_view_of_fewer_than_two_columns_that_vary(frame: pd.DataFrame) -> None:
    rows, encoding = training(frame, np.arange(20) % 2)
    assert PairsView().fit(rows, encoding, 0) is None


def test_one_class_one_row_and_columns_that_become_constant() -> None:
    frame, labels = mixed_frame(12)
    rows, encoding = training(frame, ["a"] * 12)
    assert np.isfinite(fit(rows, encoding).left_out(rows)).all()
    rows, encoding = training(frame, labels)
    fitted = fit(rows, encoding)
    one = fitted.without(rows.take(np.arange(1, 12)), rows.take(np.arange(1)))
    assert np.array_equal(one.terms(rows.rows), np.zeros((1, len(rows.classes), 12)))  # no column varies
    assert not one.contributions(rows.rows, np.ones(1)).any()


def test_many_classes_use_fewer_columns() -> None:
    rng = np.random.default_rng(0)
    rows, encoding = training(pd.DataFrame(rng.normal(size=(1000, 20))), np.arange(1000) % 500)
    fitted = fit(rows, encoding)
    assert 2 <= len(fitted.columns) <= 14
    assert fitted.counts.size <= 2**23
    assert np.isfinite(fitted.left_out(rows)).all()


def test_time_of_a_medium_table() -> None:
    rng = np.random.default_rng(0)
    rows, encoding = training(pd.DataFrame(rng.normal(size=(5000, 50))), np.arange(5000) % 5)
    start = time.process_time()
    fitted = fit(rows, encoding)
    fitted.left_out(rows)
    assert time.process_time() - start < 1.5
    start = time.process_time()
    fitted.terms(rows.rows)
    assert time.process_time() - start < 0.5
