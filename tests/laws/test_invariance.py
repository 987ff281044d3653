"""What must not change an answer: constant columns, weights for repeats, order of rows, columns and labels, units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likely import Gaussian, GenerativeClassifier, LinearDiscriminant, NormalInverseWishart, QuadraticDiscriminant
from tests.laws.registry import (
    CASES,
    COVARIANCES,
    ESTIMATIONS,
    SHARINGS,
    Case,
    Floats,
    Rows,
    assert_log_equal,
    assert_same_answers,
    every_case,
    iris,
    penguins,
    random_rows,
)

CONSTANTS = [0.0, 0.1, 1e8, -3e130]


def with_constant(X: Floats, place: int, value: float) -> Floats:
    return np.insert(X, place, value, axis=1)


# A constant column.


@pytest.mark.parametrize("value", CONSTANTS)
@every_case
def test_a_constant_column_changes_no_posterior_wherever_it_stands(case: Case, value: float) -> None:
    rows = iris()
    without = case.fit(rows)
    for place in (0, 2, 4):
        X = with_constant(rows.X, place, value)
        model = case.fit(Rows(X, rows.y))
        assert_same_answers(without, model, rows.X, X, atol=1e-12)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_a_constant_column_near_the_limit_changes_no_posterior(covariance: str, estimation: str) -> None:
    rows = iris()
    X = with_constant(rows.X, 1, 1e140)
    case = Case(covariance, "own", estimation)
    assert_same_answers(case.fit(rows), case.fit(Rows(X, rows.y)), rows.X, X, atol=1e-12)


@every_case
def test_several_constant_columns_change_no_posterior(case: Case) -> None:
    rows = penguins()
    X = with_constant(with_constant(with_constant(rows.X, 0, 1e8), 3, 0.1), 6, -3e130)
    assert_same_answers(case.fit(rows), case.fit(Rows(X, rows.y)), rows.X, X, atol=1e-12)


@every_case
def test_a_constant_training_column_contributes_nothing_to_other_rows(case: Case) -> None:
    rows = iris()
    without, model = case.fit(rows), case.fit(Rows(with_constant(rows.X, 1, 7.5), rows.y))
    for value in (7.6, -1e6, 1e140):
        assert_same_answers(without, model, rows.X, with_constant(rows.X, 1, value), atol=1e-12)


@every_case
def test_a_constant_column_has_no_evidence_and_is_sampled_as_the_constant(case: Case) -> None:
    rows = iris()
    X = with_constant(rows.X, 1, 0.1)
    model = case.fit(Rows(X, rows.y))
    assert not model.explain(X).evidence[:, :, 1].any()
    drawn, _ = model.sample(20, random_state=0)
    assert_array_equal(drawn[:, 1], 0.1)


@pytest.mark.parametrize(
    "prior",
    [
        NormalInverseWishart(degrees=7.0, scale=0.3, mean_rows=0.5),
        NormalInverseWishart(mean=[5.0, 3.0, 1e3, 4.0, 1.0], scale=[0.3, 0.2, 50.0, 0.4, 0.1]),
    ],
    ids=["one scale for all", "one scale a column"],
)
@pytest.mark.parametrize("estimation", ["map", "bayes"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_constant_column_changes_no_posterior_under_a_given_prior(
    covariance: str, estimation: str, prior: NormalInverseWishart
) -> None:
    rows = iris()
    fewer = NormalInverseWishart(
        mean=None if prior.mean is None else np.delete(prior.mean, 2),
        mean_rows=prior.mean_rows,
        degrees=prior.degrees,
        scale=np.delete(prior.scale, 2) if np.ndim(prior.scale) else prior.scale,
    )
    X = with_constant(rows.X, 2, 12.0)
    without = GenerativeClassifier(Gaussian(covariance, prior=fewer), estimation=estimation).fit(rows.X, rows.y)
    model = GenerativeClassifier(Gaussian(covariance, prior=prior), estimation=estimation).fit(X, rows.y)
    assert_same_answers(without, model, rows.X, X, atol=1e-12)


# Weights.


@pytest.mark.parametrize("table", [iris, penguins], ids=["iris", "penguins"])
@every_case
def test_an_integer_weight_equals_repeating_the_row(case: Case, table: Callable[[], Rows]) -> None:
    rows = table()
    weights = np.random.default_rng(1).choice([1.0, 2.0, 3.0, 7.0], size=len(rows.y))
    times = weights.astype(int)
    repeated = Rows(np.repeat(rows.X, times, axis=0), np.repeat(rows.y, times))
    assert_same_answers(case.fit(repeated), case.fit(rows, weights), rows.X)


@every_case
def test_a_weight_of_zero_equals_leaving_the_row_out(case: Case) -> None:
    rows = iris()
    weights = np.random.default_rng(2).choice([0.0, 1.0, 2.5], size=len(rows.y))
    some = weights > 0.0
    smaller = Rows(rows.X[some], rows.y[some])
    # Nothing of an absent row may leak in, not even its size.
    spoiled = Rows(np.where(some[:, None], rows.X, 1e300), rows.y)
    assert_same_answers(case.fit(smaller, weights[some]), case.fit(spoiled, weights), rows.X, atol=1e-12)


def test_a_class_whose_weights_are_all_zero_is_absent() -> None:
    rows = iris()
    weights = np.where(rows.y == "setosa", 0.0, 1.0)
    model = LinearDiscriminant().fit(rows.X, rows.y, weights)
    kept = rows.y != "setosa"
    assert model.classes_.tolist() == ["versicolor", "virginica"]
    assert_same_answers(LinearDiscriminant().fit(rows.X[kept], rows.y[kept]), model, rows.X, atol=1e-12)


@pytest.mark.parametrize("share", [1e-12, 1e12])
def test_the_unit_of_the_weights_does_not_matter_to_maximum_likelihood(share: float) -> None:
    rows = iris()
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=len(rows.y))
    for model in (LinearDiscriminant(), QuadraticDiscriminant()):
        plain = type(model)().fit(rows.X, rows.y, weights)
        assert_same_answers(plain, model.fit(rows.X, rows.y, share * weights), rows.X)


# Order and names.


@every_case
def test_the_order_of_the_rows_changes_nothing(case: Case) -> None:
    rows, rng = penguins(), np.random.default_rng(4)
    plain = case.fit(rows)
    for _ in range(2):
        order = rng.permutation(len(rows.y))
        shuffled = case.fit(Rows(rows.X[order], rows.y[order]))
        assert_same_answers(plain, shuffled, rows.X)


@every_case
def test_the_order_of_the_columns_changes_nothing(case: Case) -> None:
    rows, rng = penguins(), np.random.default_rng(5)
    plain = case.fit(rows)
    for _ in range(2):
        order = rng.permutation(rows.X.shape[1])
        X = rows.X[:, order]
        assert_same_answers(plain, case.fit(Rows(X, rows.y)), rows.X, X)


def assert_labels_do_not_matter(case: Case, names: Mapping[str, Any]) -> None:
    rows = iris()
    plain = case.fit(rows)
    y = np.array([names[label] for label in rows.y.tolist()])
    renamed = case.classifier([names[label] for label in rows.classes.tolist()]).fit(rows.X, y)
    assert renamed.classes_.tolist() == sorted(names.values())
    place = [renamed.classes_.tolist().index(names[label]) for label in plain.classes_.tolist()]
    assert_allclose(renamed.predict_proba(rows.X)[:, place], plain.predict_proba(rows.X), rtol=0, atol=1e-9)
    assert_log_equal(renamed.log_joint(rows.X)[:, place], plain.log_joint(rows.X), 1e-9)
    assert renamed.predict(rows.X).tolist() == [names[label] for label in plain.predict(rows.X).tolist()]


@every_case
def test_other_labels_in_another_order_change_nothing(case: Case) -> None:
    assert_labels_do_not_matter(case, {"setosa": 20, "versicolor": -3, "virginica": 2**40})


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize(
    "names",
    [
        {"setosa": "z", "versicolor": "y", "virginica": "x"},
        {"setosa": 1.0, "versicolor": 0.0, "virginica": 2.0},
        {"setosa": "a rather long name", "versicolor": "", "virginica": "B"},
    ],
    ids=["reversed", "whole floats", "odd strings"],
)
def test_the_type_of_the_labels_changes_nothing(names: Mapping[str, Any], sharing: str) -> None:
    assert_labels_do_not_matter(Case("full", sharing, "bayes"), names)


def test_boolean_and_object_labels_are_kept_as_they_are() -> None:
    X, y = random_rows(6, sizes=(9, 8))
    plain = LinearDiscriminant().fit(X, y)
    for labels in (y == "b", y.astype(object)):
        model = LinearDiscriminant().fit(X, labels)
        assert model.classes_.dtype == labels.dtype
        assert model.predict(X).dtype == labels.dtype
        assert_same_answers(plain, model, X, atol=1e-15)


# Units and origin.


@pytest.mark.parametrize("estimation", ESTIMATIONS)
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_the_unit_and_the_origin_of_a_column_change_no_posterior(
    covariance: str, sharing: str, estimation: str
) -> None:
    rows, case = iris(), Case(covariance, sharing, estimation)
    X = rows.X * np.array([1e-12, 1e12, -3.0, 1e-3]) + np.array([1e-10, 0.0, 100.0, -5.0])
    plain, moved = case.fit(rows), case.fit(Rows(X, rows.y))
    assert_allclose(moved.predict_proba(X), plain.predict_proba(rows.X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("power", [-600, 440])
@pytest.mark.parametrize("case", [case for case in CASES if case.covariance != "identity"], ids=str)
def test_one_unit_for_all_columns_moves_only_the_density_even_near_the_limit(case: Case, power: int) -> None:
    rows = random_rows(7)
    X = np.ldexp(rows.X, power)
    plain, scaled = case.fit(rows), case.fit(Rows(X, rows.y))
    assert_allclose(scaled.predict_proba(X), plain.predict_proba(rows.X), rtol=0, atol=1e-9)
    assert_log_equal(scaled.log_joint(X) + 3 * power * np.log(2.0), plain.log_joint(rows.X), 1e-9)
