"""Regression as a conditioned joint Gaussian, against least squares, SciPy's densities, and integrals."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.integrate
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, multivariate_t, norm, t
from scipy.stats import t as student
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import likely
from likely import Dirichlet, GenerativeRegressor, NormalInverseWishart, scan
from likely.errors import (
    InputError,
    LikelyError,
    MissingCellError,
    NoDensityError,
    NotConvergedWarning,
    NotEstimableError,
)
from tests.helpers import load_table
from tests.laws.test_em import observed_likelihood, parameters

ESTIMATIONS = ("mle", "map", "bayes")
PRIOR = NormalInverseWishart(mean=[0.5, -0.5, 0.0, 1.0], mean_rows=0.3, degrees=7.0, scale=[1.0, 2.0, 0.5, 3.0])


def drawn(rows: int = 60, columns: int = 3, outputs: int = 0, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns)) + rng.normal(size=columns)
    W = rng.normal(size=(columns, max(outputs, 1)))
    Y = X @ W + rng.normal(size=(rows, max(outputs, 1))) @ rng.normal(size=(max(outputs, 1),) * 2)
    return X, Y if outputs else Y[:, 0]


def incomplete(X: Any, share: float = 0.3, seed: int = 0) -> Any:
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def alike(left: Any, right: Any, X: Any, rtol: float = 1e-9) -> None:
    """Two models answer the same."""
    for one, other in zip(left.predict(X, return_std=True), right.predict(X, return_std=True), strict=True):
        assert_allclose(one, other, rtol=rtol, atol=rtol * np.abs(other).max())


# ------------------------------------------------------------------------------------------------------ least squares


@pytest.mark.parametrize("outputs", [0, 1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_maximum_likelihood_is_least_squares(outputs: int, weighted: bool) -> None:
    X, y = drawn(80, 6, outputs)
    left, _, right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    X = left * np.geomspace(1.0, 1e3, 6) @ right + [5.0, -3.0, 0.0, 1.0, 2.0, 1e3]
    weights = np.random.default_rng(1).uniform(0.1, 3.0, size=80) if weighted else None
    model, oracle = GenerativeRegressor("mle").fit(X, y, weights), LinearRegression().fit(X, y, weights)
    assert_allclose(model.coef_, oracle.coef_, rtol=1e-9, atol=1e-9 * np.abs(oracle.coef_).max())
    assert_allclose(model.intercept_, oracle.intercept_, rtol=1e-9, atol=1e-9 * np.abs(y).max())
    assert_allclose(model.predict(X), oracle.predict(X), rtol=1e-9, atol=1e-9 * np.abs(y).max())
    assert np.shape(model.coef_) == np.shape(oracle.coef_)
    assert np.shape(model.intercept_) == np.shape(oracle.intercept_)
    assert model.predict(X).shape == y.shape
    mean, deviation = model.predict(X, return_std=True)
    expected = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=weights))
    assert_allclose(deviation, np.broadcast_to(expected, y.shape), rtol=1e-9)


@pytest.mark.parametrize("case", ["counterparts", "few rows", "two rows", "units", "one row"])
def test_dependent_columns_have_the_shortest_slopes(case: str) -> None:
    rng = np.random.default_rng(2)
    X, y = drawn({"few rows": 7, "two rows": 2, "one row": 1}.get(case, 40), 12)
    if case == "counterparts":
        X[:, 4], X[:, 7] = X[:, 1] - 2.0 * X[:, 2], 3.0
    if case == "units":
        X = np.column_stack([X, X[:, :3] @ [1.0, 1.0, -1.0]]) * 10.0 ** rng.integers(-4, 4, size=13)
    new = rng.normal(size=(20, X.shape[1])) * np.abs(X).max(axis=0)
    model = GenerativeRegressor("mle").fit(X, y)
    slopes = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=1e-12)[0]
    expected = y.mean() + (new - X.mean(axis=0)) @ slopes
    assert_allclose(model.predict(new), expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())
    assert_allclose(model.coef_, slopes, rtol=1e-6, atol=1e-7 * np.abs(slopes).max())
    if case != "units":  # scikit-learn takes columns in small units for none
        assert_allclose(LinearRegression().fit(X, y).predict(new), expected, rtol=1e-7, atol=1e-7)
    if len(X) <= 12:
        assert_allclose(model.predict(X), y, atol=1e-9)
        assert not model.predict(new, return_std=True)[1].any()


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_a_flat_prior_is_least_squares_too_and_columns_without_variance_have_no_influence(estimation: str) -> None:
    X, y = drawn()
    prior = None if estimation == "mle" else NormalInverseWishart.reference()
    assert_allclose(GenerativeRegressor(estimation, prior=prior).fit(X, y).coef_, LinearRegression().fit(X, y).coef_)
    model = GenerativeRegressor(estimation).fit(X, y)
    flat = GenerativeRegressor(estimation).fit(np.insert(X, 1, 7.0, axis=1), y)
    for value in (7.0, 9.0, np.nan):
        for one, other in zip(
            flat.predict(np.insert(X, 1, value, axis=1), return_std=True),
            model.predict(X, return_std=True),
            strict=True,
        ):
            assert_allclose(one, other, rtol=1e-12)
    assert "constant columns, ignored: 'x1'" in str(flat.summary())


def test_shrinkage_is_ridge_regression_of_the_joint_covariance() -> None:
    X, y = drawn()
    joint = np.cov(np.column_stack([X, y]).T, bias=True)
    mixed = 0.8 * joint + 0.2 * np.trace(joint) / 4.0 * np.eye(4)
    model = GenerativeRegressor("mle", shrinkage=0.2).fit(X, y)
    assert_allclose(model.coef_, np.linalg.solve(mixed[:3, :3], mixed[:3, 3]))


# --------------------------------------------------------------------------------------------------------- the algebra


@pytest.mark.filterwarnings("ignore::likely.errors.UnseenCategoriesWarning")
@pytest.mark.parametrize("estimation", ESTIMATIONS)
@pytest.mark.parametrize("options", [{}, {"classes": 1}, {"classes": 1, "shared": True}], ids=str)
def test_learning_is_a_sum(estimation: str, options: Any) -> None:
    X, y = drawn(80, 4, 2)
    X[:, 1] = np.arange(80) % 3
    model = GenerativeRegressor(estimation, **options)
    whole = clone(model).fit(X, y)
    some = np.arange(80) < 50
    parts = clone(model).partial_fit(X[some], y[some]).partial_fit(X[~some], y[~some])
    alike(parts, whole, X)
    back = np.random.default_rng(0).permutation(80)
    alike(clone(model).fit(X[back], y[back]), whole, X)
    alike(sum(clone(model).fit(X[i::4], y[i::4]) for i in range(4)), whole, X)
    alike(clone(model).fit(X, y).forget(X[some], y[some]), clone(model).fit(X[~some], y[~some]), X)
    weights = np.arange(80) % 3
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights, axis=0))
    alike(clone(model).fit(X, y, sample_weight=weights), repeated, X)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_the_order_of_columns_and_their_units_change_nothing(estimation: str) -> None:
    X, y = drawn(40, 4)
    model = GenerativeRegressor(estimation).fit(X, y)
    turned = GenerativeRegressor(estimation).fit(X[:, ::-1], y)
    assert_allclose(turned.predict(X[:, ::-1]), model.predict(X), rtol=1e-10)
    assert_allclose(turned.coef_[::-1], model.coef_, rtol=1e-9)
    units = np.array([1e-150, 1e138, 3.0, 1e-5])
    for scale in (1e138, 1e-190):
        far = GenerativeRegressor(estimation).fit(X * units, y * scale)
        for one, other in zip(far.predict(X * units, return_std=True), model.predict(X, return_std=True), strict=True):
            assert_allclose(one / scale, other, rtol=1e-9)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_far_from_zero_the_deviation_stays(estimation: str) -> None:
    X, y = drawn(200, 3)
    near, far = (GenerativeRegressor(estimation).fit(X + shift, y + shift) for shift in (0.0, 1e8))
    X = (X + 1e8) - 1e8  # as rounded
    (mean, deviation), (moved, same) = near.predict(X, return_std=True), far.predict(X + 1e8, return_std=True)
    assert_allclose(moved - 1e8, mean, atol=1e-6)
    assert_allclose(same, deviation, rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.int64, bool])
def test_types_of_numbers_do_not_matter(kind: Any) -> None:
    X, y = drawn()
    X, y = (10.0 * X).round().astype(kind), (10.0 * y).round().astype(np.int64)
    model, same = GenerativeRegressor().fit(X, y), GenerativeRegressor().fit(X.astype(float), y.astype(float))
    alike(model, same, X)
    alike(model, GenerativeRegressor().fit(np.asfortranarray(X), y), X)


# ------------------------------------------------------------------------------------------------------ distributions


def predictive(X: Any, y: Any) -> tuple[Any, Any, float]:
    """Location, scale and degrees of freedom of a new (x, y) under `PRIOR`: the textbook's formulas."""
    Z = np.column_stack([X, y])
    n, d = Z.shape
    mean, rows, degrees, scale = np.array(PRIOR.mean), PRIOR.mean_rows, PRIOR.degrees, np.diag(PRIOR.scale)
    away, shift = Z - Z.mean(axis=0), Z.mean(axis=0) - mean
    after = scale + away.T @ away + n * rows / (n + rows) * np.outer(shift, shift)
    nu = degrees + n - d + 1.0
    location = (rows * mean + Z.sum(axis=0)) / (rows + n)
    return location, after * (rows + n + 1.0) / ((rows + n) * nu), nu


def test_under_bayes_y_given_x_is_the_joint_student_t_divided_by_that_of_x() -> None:
    X, y = drawn(12)
    model = GenerativeRegressor(prior=PRIOR).fit(X, y)
    location, scale, nu = predictive(X, y)
    new = incomplete(X, 0.4, seed=1)
    new[0] = np.nan
    given = model.log_predictive(new, y)
    mean, deviation = model.predict(new, return_std=True)
    interval = model.predict_interval(new, level=0.8)
    for i, row in enumerate(new):
        there = np.flatnonzero(~np.isnan(row))
        both = [*there, 3]
        joint = multivariate_t(location[both], scale[np.ix_(both, both)], df=nu)
        below = (
            multivariate_t(location[there], scale[np.ix_(there, there)], df=nu).logpdf(row[there])
            if len(there)
            else 0.0
        )

        def density(value: float, row: Any = row, there: Any = there, joint: Any = joint, below: Any = below) -> float:
            return float(np.exp(joint.logpdf([*row[there], value]) - below))

        assert_allclose(given[i], np.log(density(y[i])), rtol=1e-9)
        centre, reach = location[3], 400.0
        moments = [
            scipy.integrate.quad(lambda v, p=p: v**p * density(v), -reach, reach, points=[centre, mean[i]], limit=400)[
                0
            ]
            for p in range(3)
        ]
        assert_allclose(moments[0], 1.0, atol=1e-6)
        assert_allclose(mean[i], moments[1], rtol=1e-5, atol=1e-5)
        assert_allclose(deviation[i] ** 2, moments[2] - moments[1] ** 2, rtol=1e-4)
        inside = scipy.integrate.quad(density, *interval[i], limit=200)[0]
        assert_allclose(inside, 0.8, atol=1e-7)
        left = scipy.integrate.quad(density, -reach, interval[i, 0], points=[interval[i, 0] - 3.0], limit=200)[0]
        assert_allclose(left, 0.1, atol=1e-5)


@pytest.mark.parametrize("estimation", ["mle", "map"])
@pytest.mark.parametrize("outputs", [0, 2])
def test_missing_cells_are_integrated_out(estimation: str, outputs: int) -> None:
    """By the sub-matrices of the joint covariance of the cells that are there."""
    X, y = drawn(30, 4, outputs)
    model: Any = GenerativeRegressor(estimation).fit(X, y)
    joint = model.model_.blocks[0].conditionals
    mu, sigma = joint.class_means()[0], joint.class_covariance(0)
    if estimation == "mle":
        assert_allclose(sigma, np.cov(np.column_stack([X, y]).T, bias=True))
    new = incomplete(X)
    mean, deviation = model.predict(new, return_std=True)
    interval, density = model.predict_interval(new, 0.9), model.log_predictive(new, y)
    targets = np.arange(4, len(mu))
    for i, row in enumerate(new):
        o = np.flatnonzero(~np.isnan(row))
        pull = sigma[np.ix_(targets, o)] @ np.linalg.inv(sigma[np.ix_(o, o)])
        centre = mu[targets] + pull @ (row[o] - mu[o])
        rest = sigma[np.ix_(targets, targets)] - pull @ sigma[np.ix_(o, targets)]
        assert_allclose(np.atleast_1d(mean[i]), centre, rtol=1e-9)
        assert_allclose(np.atleast_1d(deviation[i]), np.sqrt(np.diag(rest)), rtol=1e-9)
        ends = norm.interval(0.9, centre, np.sqrt(np.diag(rest)))
        assert_allclose(interval[i].reshape(-1, 2).T, ends, rtol=1e-9)
        assert_allclose(density[i], multivariate_normal(centre, rest).logpdf(y[i]), rtol=1e-9)


def test_missing_cells_of_dependent_columns_are_integrated_out_too() -> None:
    X, y = drawn(30, 3)
    model, counterparts = GenerativeRegressor("mle").fit(X, y), GenerativeRegressor("mle").fit(np.hstack([X, X]), y)
    new = incomplete(np.hstack([X, X]), 0.5)
    new[0] = np.nan
    both = np.where(np.isnan(new[:, :3]), new[:, 3:], new[:, :3])
    for one, other in zip(
        counterparts.predict(new, return_std=True), model.predict(both, return_std=True), strict=True
    ):
        assert_allclose(one, other, rtol=1e-9)


def test_missing_outputs_are_ignored_in_the_density() -> None:
    X, Y = drawn(30, 3, 2)
    model, alone = GenerativeRegressor("mle").fit(X, Y), GenerativeRegressor("mle").fit(X, Y[:, :1])
    Y[:, 1] = np.nan
    assert_allclose(model.log_predictive(X, Y), alone.log_predictive(X, Y[:, :1]), rtol=1e-10)


@pytest.mark.parametrize(("rows", "columns", "noise"), [(9, 3, 1.0), (30, 10, 1.0), (40, 3, 0.1), (100, 20, 0.1)])
def test_intervals_cover_new_rows_as_often_as_they_say(rows: int, columns: int, noise: float) -> None:
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(150):
        X = rng.normal(size=(rows + 20, columns))
        y = X @ rng.normal(size=columns) + noise * rng.normal(size=rows + 20)
        low, high = GenerativeRegressor().fit(X[:rows], y[:rows]).predict_interval(X[rows:], level=0.9).T
        inside.append(np.mean((low <= y[rows:]) & (y[rows:] <= high)))
    assert_allclose(np.mean(inside), 0.9, atol=0.03)


def test_with_rows_enough_the_interval_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = X @ [1.0, 2.0] + 3.0 + rng.normal(size=2000)
    design = np.column_stack([np.ones(2000), X])
    _, left, *_ = np.linalg.lstsq(design, y)
    new = rng.normal(size=(5, 2))
    rows = np.column_stack([np.ones(5), new])
    reach = np.sqrt(left[0] / 1997 * (1.0 + np.einsum("nd,de,ne->n", rows, np.linalg.inv(design.T @ design), rows)))
    low, high = GenerativeRegressor().fit(X, y).predict_interval(new, level=0.95).T
    assert_allclose(high - low, 2.0 * student.ppf(0.975, 1997) * reach, rtol=2e-3)


# ------------------------------------------------------------------------------------------------ several regressions


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_classes_have_regressions_of_their_own(estimation: str) -> None:
    X, y = drawn(90, 3)
    k = np.array(["a", "b", "c"], dtype=object)[np.arange(90) % 3]
    y = np.where(k == "a", -y, np.where(k == "b", y + 10.0, 3.0 * y))
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(kind=k)
    prior = None if estimation == "mle" else PRIOR
    model = GenerativeRegressor(estimation, classes="kind", prior=prior).fit(frame, y)
    numbered = GenerativeRegressor(estimation, classes=3, prior=prior).fit(frame, y)
    for label in "abc":
        mine = k == label
        alone = GenerativeRegressor(estimation, prior=prior).fit(X[mine], y[mine])
        for one, other in zip(
            model.predict(frame[mine], return_std=True), alone.predict(X[mine], return_std=True), strict=True
        ):
            assert_allclose(one, other, rtol=1e-9)
        assert_allclose(model.predict_interval(frame[mine]), alone.predict_interval(X[mine]), rtol=1e-9)
        assert_allclose(model.log_predictive(frame[mine], y[mine]), alone.log_predictive(X[mine], y[mine]), rtol=1e-9)
    alike(numbered, model, frame)
    assert_array_equal(model.classes_, ["a", "b", "c"])
    assert not hasattr(model, "coef_")
    assert str(model.summary()).count("intercept") == 3
    alike(
        model.drop_class("b"),
        GenerativeRegressor(estimation, classes="kind", prior=prior).fit(frame[k != "b"], y[k != "b"]),
        frame[k != "b"],
    )


@pytest.mark.filterwarnings("ignore::likely.errors.UnseenCategoriesWarning")
@pytest.mark.parametrize("estimation", ["mle", "bayes"])
def test_rows_of_unknown_class_are_answered_by_all(estimation: str) -> None:
    """Shares by Bayes' rule on what is there of x, the law of total variance, and roots of the mixed distribution."""
    X, y = drawn(60, 3)
    k = np.arange(60) % 2
    X[k == 1] += [1.0, 0.0, -1.0]
    y = np.where(k == 1, 5.0 - y, y)
    prior = None if estimation == "mle" else PRIOR
    Z = np.column_stack([X, k])
    model: Any = GenerativeRegressor(estimation, classes=3, prior=prior, class_prior=[0.3, 0.7]).fit(Z, y)
    alone = [GenerativeRegressor(estimation, prior=prior).fit(X[k == label], y[k == label]) for label in (0, 1)]
    new = incomplete(X, 0.3)
    new[0] = np.nan
    asked = np.column_stack([new, np.where(np.arange(60) % 2, np.nan, 9.0)])
    share = np.empty((2, 60))
    for label in (0, 1):
        joint = model.model_.blocks[0].conditionals
        mu, sigma = joint.class_means()[label], joint.class_covariance(label)
        for i, row in enumerate(new):
            o = np.flatnonzero(~np.isnan(row))
            kind: Any = multivariate_normal if estimation == "mle" else multivariate_t
            more = {} if estimation == "mle" else {"df": joint.degrees[label]}
            share[label, i] = kind(mu[o], sigma[np.ix_(o, o)], **more).pdf(row[o]) if len(o) else 1.0
    share *= np.array([[0.3], [0.7]])
    share /= share.sum(axis=0)
    means, standard_deviations = np.array([part.predict(new, return_std=True) for part in alone]).transpose(1, 0, 2)
    mean, deviation = model.predict(asked, return_std=True)
    expected = (share * means).sum(axis=0)
    assert_allclose(mean, expected, rtol=1e-9)
    assert_allclose(model.predict(asked), expected, rtol=1e-9)
    assert_allclose(deviation**2, (share * (standard_deviations**2 + means**2)).sum(axis=0) - expected**2, rtol=1e-8)
    densities = np.array([part.log_predictive(new, y) for part in alone])
    assert_allclose(model.log_predictive(asked, y), np.log((share * np.exp(densities)).sum(axis=0)), rtol=1e-9)
    ends = model.predict_interval(asked, level=0.7)
    degrees = model.model_.blocks[0].conditionals.degrees if estimation == "bayes" else np.full(2, np.inf)
    nu = degrees[:, None] + (~np.isnan(new)).sum(axis=1)
    scales = standard_deviations if estimation == "mle" else standard_deviations * np.sqrt((nu - 2.0) / nu)
    for j, chance in enumerate((0.15, 0.85)):
        assert_allclose((share * t(nu, means, scales).cdf(ends[:, j])).sum(axis=0), chance, rtol=1e-8)


def crossing(rows: int = 600, seed: int = 0) -> tuple[Any, Any]:
    """Two lines that cross, and nobody says which is which."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3.0, 3.0, rows)
    y = np.where(rng.random(rows) < 0.6, 1.0 + 2.0 * x, 1.0 - 2.0 * x) + 0.4 * rng.normal(size=rows)
    return x[:, None], y


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_components_are_found_where_no_column_tells_them(estimation: str) -> None:
    X, y = crossing()
    model: Any = GenerativeRegressor(estimation, components=2, random_state=0).fit(X, y)
    slopes = sorted(line.slopes[0][1] for line in model.summary().lines)
    assert_allclose(slopes, [-2.0, 2.0], atol=0.1)
    assert_allclose(sorted(model.class_prior_), [0.4, 0.6], atol=0.06)
    assert np.diff(model._history.objective).min() > -1e-9 * abs(model._history.objective[-1])
    one = GenerativeRegressor(estimation).fit(X, y)
    new, answers = crossing(seed=1)
    assert model.log_predictive(new, answers).mean() > one.log_predictive(new, answers).mean() + 0.5
    low, high = model.predict_interval(new, level=0.9).T
    assert_allclose(np.mean((low <= answers) & (answers <= high)), 0.9, atol=0.04)
    assert not hasattr(model, "partial_fit")
    assert not hasattr(model, "intercept_")
    with pytest.raises(InputError, match="expectations"):
        model.forget(X, y)


def test_components_are_those_of_a_gaussian_mixture_of_x_and_y() -> None:
    X, y = crossing(300)
    model: Any = GenerativeRegressor("mle", components=2, random_state=0, tol=1e-12, max_iter=2000).fit(X, y)
    means, covariances = parameters(model)
    Z = np.column_stack([X, y])
    parts = [
        s * multivariate_normal(m, c).pdf(Z) for s, m, c in zip(model.class_prior_, means, covariances, strict=True)
    ]
    assert_allclose(model._history.log_likelihood, np.log(np.sum(parts, axis=0)).sum(), rtol=1e-9)
    share = np.array(parts) / np.sum(parts, axis=0)
    for s, m, c in zip(share, means, covariances, strict=True):  # a fixed point of both steps
        assert_allclose(np.average(Z, axis=0, weights=s), m, atol=1e-5)
        assert_allclose(np.cov(Z.T, aweights=s, bias=True), c, atol=1e-4)


# ------------------------------------------------------------------------------------------------------ missing cells


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_missing_cells_are_completed_in_training(estimation: str) -> None:
    X, Y = drawn(150, 3, 2)
    Z = incomplete(np.column_stack([X, Y]), 0.2)
    model: Any = GenerativeRegressor(estimation, tol=1e-12, max_iter=5000).fit(Z[:, :3], Z[:, 3:])
    assert model.converged_
    assert model.n_iter_ > 1
    halves = [GenerativeRegressor(estimation).fit(Z[some, :3], Z[some, 3:]) for some in (slice(60), slice(60, None))]
    assert_allclose((halves[0] + halves[1]).predict(X), model.predict(X), atol=1e-7)
    assert_allclose(halves[0].partial_fit(Z[60:, :3], Z[60:, 3:]).predict(X), model.predict(X), atol=1e-7)
    if estimation != "mle":
        return
    means, covariances = parameters(model)
    nobody = np.zeros(len(Z), dtype=int)
    best = observed_likelihood(Z, nobody, means, covariances, [1.0])
    assert_allclose(model.specification_.log_likelihood(model.model_, model.statistics_), best, rtol=1e-10)
    rng = np.random.default_rng(1)
    for _ in range(10):
        change = 1e-3 * rng.normal(size=(5, 5))
        assert observed_likelihood(Z, nobody, means + change[:1], covariances, [1.0]) < best + 1e-9
        assert observed_likelihood(Z, nobody, means, covariances + change + change.T, [1.0]) < best + 1e-9


def test_rows_without_a_target_do_not_change_the_slopes_of_maximum_likelihood() -> None:
    X, y = drawn(80)
    some = np.where(np.arange(80) % 3 == 0, np.nan, y)
    model = GenerativeRegressor("mle", tol=1e-14, max_iter=5000).fit(X, some)
    seen = ~np.isnan(some)
    assert_allclose(model.coef_, LinearRegression().fit(X[seen], y[seen]).coef_, rtol=1e-5)
    nothing = model.predict([[np.nan] * 3])  # but they tell more about x, and so about y alone
    assert_allclose(nothing, model.coef_ @ X.mean(axis=0) + model.intercept_, rtol=1e-9)


def test_rows_without_a_class_take_part() -> None:
    X, y = crossing(300)
    kind = (y > 1.0 + 0.0 * X[:, 0]) == (X[:, 0] > 0.0)
    labels = np.where(np.arange(300) % 10 == 0, kind.astype(float), np.nan)
    model: Any = GenerativeRegressor(classes=1).fit(np.column_stack([X, labels]), y)
    slopes = [line.slopes[0][1] for line in model.summary().lines]
    assert_allclose(slopes, [-2.0, 2.0], atol=0.25)
    assert model.n_iter_ > 1


# ------------------------------------------------------------------------------------------------------------ the door


class Chunks:
    def __init__(self, X: Any) -> None:
        self.X = X

    def chunks(self) -> Iterator[Any]:
        for start in range(0, len(self.X), 17):
            yield self.X[start : start + 17]


def test_tables_of_every_kind_give_the_same() -> None:
    X, y = drawn(60)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        kind=np.array(["u", "v"])[np.arange(60) % 2], y=y, z=-(y**2)
    )
    features = frame[["a", "b", "c", "kind"]]
    model = GenerativeRegressor(classes="kind").fit(features, frame[["y", "z"]])
    mean = model.predict(features)
    assert_array_equal(model.feature_names_in_, features.columns)
    assert model.n_features_in_ == 4
    others: list[tuple[Any, Any, Any]] = [
        (frame, ["y", "z"], features),
        (features, np.column_stack([y, -(y**2)]), features),
        (pl.from_pandas(frame), ["y", "z"], pl.from_pandas(features)),
        (pa.Table.from_pandas(frame), ("y", "z"), pa.Table.from_pandas(features)),
        (Chunks(frame), ["y", "z"], Chunks(features)),
        (Chunks(features), frame[["y", "z"]], features),
        (features.to_numpy(dtype=object), np.column_stack([y, -(y**2)]).tolist(), features.to_numpy(dtype=object)),
    ]
    for rows, targets, asked in others:
        kind = 3 if isinstance(rows, np.ndarray) else "kind"
        assert_allclose(GenerativeRegressor(classes=kind).fit(rows, targets).predict(asked), mean, rtol=1e-9)
    single = GenerativeRegressor(classes="kind").fit(frame.drop(columns="z"), "y")
    assert single.predict(features).shape == (60,)
    assert GenerativeRegressor().fit(frame[["a", "y"]], "y").coef_.shape == (1,)
    assert GenerativeRegressor().fit(frame[["a"]], frame["y"]).summary().lines[0].target == "y"
    assert GenerativeRegressor().fit(frame[["a", "y"]], y).summary().lines[0].target == "y'"
    assert_allclose(model.log_predictive(Chunks(frame), ["y", "z"]), model.log_predictive(features, frame[["y", "z"]]))


def test_classes_may_be_of_any_type_and_missing_in_whole_chunks() -> None:
    X, y = drawn(60)
    which = np.arange(60) % 2
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.array(["u", "v"])[which], y=y)
    model = GenerativeRegressor(classes="kind").fit(frame, "y")
    mean = model.predict(frame.drop(columns="y"))
    for kind in (frame["kind"].astype("category"), which == 1, which.astype(float), 3 * which):
        other = frame.assign(kind=kind)
        assert_allclose(GenerativeRegressor(classes="kind").fit(other, "y").predict(other.drop(columns="y")), mean)
    gone = frame.assign(kind=frame["kind"].where(np.arange(60) // 17 != 1, None))
    whole, parts = (GenerativeRegressor(classes="kind").fit(rows, "y") for rows in (gone, Chunks(gone)))
    alike(parts, whole, frame.drop(columns="y"))
    late = GenerativeRegressor(classes="kind").partial_fit(frame[which == 1], "y").partial_fit(frame[which == 0], "y")
    alike(late, model, frame.drop(columns="y"))


X0, Y0 = drawn(20)
TEXT = pd.DataFrame(X0, columns=["a", "b", "c"]).assign(kind="u", other="v")


@pytest.mark.parametrize(
    ("options", "X", "y", "told"),
    [
        ({}, TEXT, Y0, r"Column 'kind', row 0: 'u' is not a number.*classes='kind'.*encode"),
        ({"classes": "kind"}, TEXT, Y0, r"Column 'other', row 0: 'v' is not a number\. Encode"),
        ({"classes": "nobody"}, X0, Y0, r"classes='nobody' is not a column of X: 'x0', 'x1', 'x2'"),
        ({"classes": 0}, X0, Y0, r"classes='x0': the column holds fractions"),
        ({"classes": 3}, np.insert(X0, 3, np.nan, axis=1), Y0, r"No row has a class"),
        ({"classes": 0, "components": 2}, X0, Y0, r"Set one of them"),
        ({"components": 0}, X0, Y0, r"components=0 is not a positive whole number"),
        ({"components": 21}, X0, Y0, r"21 components are more than X has rows: 20"),
        ({"estimation": "ml"}, X0, Y0, r"estimation='ml' is not known"),
        ({"estimation": "mle", "prior": PRIOR}, X0, Y0, r"prior belongs to"),
        ({"shrinkage": 0.1}, X0, Y0, r"shrinkage belongs to"),
        ({}, scipy.sparse.csr_array(X0), Y0, r"sparse.*X\.toarray"),
        ({}, X0, None, r"requires y to be passed"),
        ({}, X0, Y0[:5], r"X has 20 rows and y has 5"),
        ({}, X0, np.full(20, "a"), r"Column 'y' of y, row 0: 'a' is not a number.*GenerativeClassifier"),
        ({}, X0, ["a"] * 20, r"not a data frame"),
        ({}, TEXT, ["a", "d"], r"a data frame with columns 'a', 'b'"),
        ({}, X0, np.where(np.arange(20) == 3, np.inf, Y0), r"Column 'y' of y, row 3: inf is not a finite number"),
        ({}, np.where(X0[4, 1] == X0, np.inf, X0), Y0, r"Column 'x1', row 4: inf is not a finite number"),
        ({}, X0, np.full(20, np.nan), r"Column 'y' of y: all values are missing"),
        ({}, Chunks(X0), np.full(20, np.nan), r"Column 'y' of y: all values are missing"),
        ({}, X0, Y0 * 1j, r"complex128"),
        ({}, X0, np.zeros((20, 2, 2)), r"shape \(20, 2, 2\)"),
        ({}, X0[:0], [], r"0 sample"),
    ],
)
def test_errors_name_the_problem_and_the_remedy(options: Any, X: Any, y: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        GenerativeRegressor(**options).fit(X, y)


def test_errors_after_the_fit_leave_the_model_as_it_was() -> None:
    X, y = drawn()
    model = GenerativeRegressor().fit(X, y)
    before = model.predict(X)
    shrunken = GenerativeRegressor("mle", shrinkage="ledoit-wolf").fit(X, y)
    with pytest.raises(MissingCellError, match=r"Column 'x0', row 2.*use fit"):
        shrunken.partial_fit(np.where(np.arange(60)[:, None] == 2, np.nan, X), y)
    with pytest.raises(MissingCellError, match=r"Column 'y', row 5"):
        shrunken.partial_fit(X, np.where(np.arange(60) == 5, np.nan, y))
    with pytest.raises(InputError, match="y has 2 columns, but the model was fitted with 1"):
        model.partial_fit(X, np.column_stack([y, y]))
    with pytest.raises(LikelyError, match="not among the training rows"):
        model.forget(100.0 * X[:5], y[:5])
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.predict(X[:, :2])
    with pytest.raises(InputError, match="Column 'x2', row 1: inf"):
        model.predict(np.where(np.arange(6).reshape(2, 3) == 5, np.inf, X[:2]))
    split = GenerativeRegressor(classes=3).fit(np.column_stack([X, np.arange(60) % 2]), y)
    with pytest.raises(InputError, match="Column 'x1', row 3: -inf"):
        split.predict([[0.0, 0.0, 0.0, k] for k in (0, 1, np.nan)] + [[0.0, -np.inf, 0.0, np.nan]])
    with pytest.raises(InputError, match="level=95"):
        model.predict_interval(X, level=95)
    with pytest.raises(InputError, match="class is missing"):
        GenerativeRegressor(classes=0).partial_fit([[0.0, 1.0], [np.nan, 2.0]], [1.0, 2.0])
    with pytest.raises(InputError, match="different specification"):
        model + GenerativeRegressor("mle").fit(X, y)
    assert_array_equal(model.predict(X), before)
    with pytest.raises(NotEstimableError, match="has no rows"):
        model.forget(X, y).predict(X)


@pytest.mark.filterwarnings("ignore::likely.errors.UnseenCategoriesWarning")
@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_little_data_gives_answers(estimation: str) -> None:
    model = GenerativeRegressor(estimation)
    mean, deviation = model.fit([[1.0, 2.0]], [3.0]).predict([[1.0, 2.0], [5.0, np.nan]], return_std=True)
    assert_array_equal([mean, deviation], [[3.0, 3.0], [0.0, 0.0]])
    assert_array_equal(model.predict_interval([[0.0, 0.0]]), [[3.0, 3.0]])
    mean, deviation = model.fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 6.0]).predict([[1.0, 9.0]], return_std=True)
    assert_allclose(mean, 3.0)
    assert deviation > 1.2
    X, y = drawn()
    mean, deviation = model.fit(X, np.full(60, 7.0)).predict(X, return_std=True)
    assert_array_equal([mean, deviation], [np.full(60, 7.0), np.zeros(60)])
    assert_array_equal(model.log_predictive(X, np.full(60, 7.0)), np.zeros(60))
    mean = model.fit(X, y).predict([[np.nan] * 3])
    assert_allclose(mean, y.mean(), rtol=1e-12)
    far, wide = model.predict([[1e140, -1e140, 1e140]], return_std=True)
    assert np.isfinite([far, wide]).all()
    lost = incomplete(X)
    lost[:, 1] = np.nan
    assert_allclose(model.fit(lost, y).coef_[1], 0.0)
    only = GenerativeRegressor(estimation, classes=0).fit(np.array([[0], [0], [1], [1]]), [1.0, 3.0, 5.0, 9.0])
    assert_allclose(only.predict([[0], [1], [7]]), [2.0, 7.0, 4.5], atol=0.05)


def test_an_exact_target_has_no_density_and_no_deviation_under_maximum_likelihood() -> None:
    X, _ = drawn()
    model = GenerativeRegressor("mle").fit(X, X @ [1.0, 2.0, 3.0])
    assert not model.predict(X, return_std=True)[1].any()
    with pytest.raises(NoDensityError, match=r"linear combination of x.*estimation='bayes'"):
        model.log_predictive(X, X[:, 0])


def test_a_likelihood_without_a_maximum_is_an_error() -> None:
    X, y = drawn(4, 6)
    with pytest.raises(NotEstimableError, match=r"no maximum.*estimation='bayes'"):
        GenerativeRegressor("mle").fit(incomplete(X), y)
    with pytest.warns(NotConvergedWarning):
        GenerativeRegressor(max_iter=2).fit(incomplete(drawn()[0]), drawn()[1])


# --------------------------------------------------------------------------------------------------------- scikit-learn


def test_scikit_learns_tools_work() -> None:
    X, y = drawn(90)
    search = GridSearchCV(
        GenerativeRegressor(random_state=0, n_init=1, tol=1e-4),
        {"estimation": ["mle", "bayes"], "components": [1, 2]},
        cv=3,
    )
    assert search.fit(X, y).best_score_ > 0.5
    piped = make_pipeline(StandardScaler(), GenerativeRegressor("mle")).fit(X, y)
    assert_allclose(piped.predict(X), LinearRegression().fit(X, y).predict(X), rtol=1e-9)
    assert cross_val_score(GenerativeRegressor("mle"), X, y).mean() > 0.5
    with config_context(enable_metadata_routing=True):
        routed = GenerativeRegressor("mle").set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        weights = np.arange(90) % 2 + 0.5
        found = GridSearchCV(routed, {"shrinkage": [None, 0.5]}, cv=3).fit(X, y, sample_weight=weights)
    assert_allclose(found.predict(X), LinearRegression().fit(X, y, weights).predict(X), rtol=1e-9)


MODELS = [
    GenerativeRegressor("mle"),
    GenerativeRegressor(prior=NormalInverseWishart(mean_rows=0.1)),
    GenerativeRegressor("map", classes="sex", shared=True, class_prior=Dirichlet(2.0)),
    GenerativeRegressor(components=2, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("targets", ["body_mass_g", ["body_mass_g", "bill_depth_mm"]], ids=str)
def test_models_come_back_from_files_bit_for_bit(model: Any, targets: Any, tmp_path: Path) -> None:
    frame = load_table("penguins")
    wanted = ["bill_length_mm", "flipper_length_mm", "body_mass_g", "bill_depth_mm", "year"]
    frame = frame[[*wanted, "sex"] if model.classes else wanted].dropna()
    model = clone(model).fit(frame, targets)
    X = frame.drop(columns=targets)
    model.save(tmp_path / "model")
    for other in (likely.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert repr(other) == repr(model)
        assert str(other.summary()) == str(model.summary())
        assert_array_equal(other.predict(X, return_std=True), model.predict(X, return_std=True))
        assert_array_equal(other.predict_interval(X), model.predict_interval(X))
        assert_array_equal(other.feature_names_in_, model.feature_names_in_)
        assert other.n_features_in_ == model.n_features_in_ == X.shape[1]
    if model.components == 1:
        loaded = likely.load(tmp_path / "model").partial_fit(frame[:50], targets)
        alike(loaded, model.partial_fit(frame[:50], targets), X, 1e-12)


def test_the_mass_of_a_penguin() -> None:
    """Rows with missing cells help, a regression for each sex and species helps more, and deviations are honest."""
    frame = load_table("penguins")
    frame = frame[frame["body_mass_g"].notna()].reset_index(drop=True)
    frame["kind"] = (frame["species"] + " " + frame["sex"]).where(frame["sex"].notna(), None)
    test = np.random.default_rng(0).random(len(frame)) < 0.3
    numbers = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]
    mass = frame["body_mass_g"].to_numpy(dtype=float)
    plain = GenerativeRegressor().fit(frame[~test][numbers], mass[~test])
    apart = GenerativeRegressor(classes="kind", shared=True).fit(frame[~test][[*numbers, "kind"]], mass[~test])
    asked = frame[test][[*numbers, "kind"]]
    assert plain.score(asked[numbers], mass[test]) > 0.7
    assert apart.score(asked, mass[test]) > plain.score(asked[numbers], mass[test]) + 0.05
    for model, rows in ((plain, asked[numbers]), (apart, asked)):
        low, high = model.predict_interval(rows, level=0.9).T
        assert 0.83 < np.mean((low <= mass[test]) & (mass[test] <= high)) < 0.97
    blind = asked.assign(bill_length_mm=np.nan, kind=None)
    mean, deviation = apart.predict(blind, return_std=True)
    sure = apart.predict(asked, return_std=True)[1]
    assert np.median(deviation) > 1.1 * np.median(sure)
    assert np.mean(np.abs(mean - mass[test]) < 2.0 * deviation) > 0.9


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_the_default_prior_does_not_draw_slopes_that_the_rows_tell(noise: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, 2.0, 3.0] + noise * rng.normal(size=30)
    slopes, left, *_ = np.linalg.lstsq(np.column_stack([X, np.ones(30)]), y)
    model = GenerativeRegressor().fit(X, y)
    assert_allclose(model.coef_, slopes[:3], atol=0.3 * noise)
    deviation = model.predict(X[:1], return_std=True)[1]
    assert_allclose(deviation, np.sqrt(left / 26), rtol=0.2)


def test_the_summary_has_the_name_of_the_target_of_a_scan(tmp_path: Path) -> None:
    frame = pd.DataFrame(X0, columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    text = str(GenerativeRegressor().fit(scan(tmp_path / "rows.csv"), "c").summary())
    assert "'a', 'b', 'c'" in text
    assert "c: standard deviation" in text
    assert "per class" not in text  # there is one
    kinds = frame.assign(kind=["u", "v"] * (len(frame) // 2) + ["u"] * (len(frame) % 2))
    assert "per class" in str(GenerativeRegressor(classes="kind").fit(kinds, "c").summary())
