"""Views of densities (single columns, joint Gaussians, models of the library) against SciPy and refits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from likely import Gaussian, GenerativeClassifier, LinearDiscriminant, NaiveBayes, QuadraticDiscriminant
from likely.errors import InputError
from likely.evidence.columns import ColumnsView
from likely.evidence.densities import LEAST
from likely.evidence.encoding import Encoding
from likely.evidence.joint_gaussian import MOST_PATTERNS, JointGaussianView
from likely.evidence.model_view import ModelView
from likely.evidence.rows import TrainingRows
from likely.evidence.training import encoded
from likely.evidence.view import FittedView, View
from likely.numerics.shapes import check
from tests.unit.evidence.tables import distinct, mixed, numbers, training

VIEWS: dict[str, Any] = {
    "columns": ColumnsView(),
    "joint": JointGaussianView(),
    "scores": JointGaussianView(normal_scores=True),
    "NaiveBayes": ModelView(NaiveBayes()),
    "GenerativeClassifier": ModelView(GenerativeClassifier()),
}
every_view = pytest.mark.parametrize("name", VIEWS)


def fitted(view: View, rows: TrainingRows, encoding: Encoding) -> FittedView:
    found = view.fit(rows, encoding, 0)
    assert found is not None
    return found


def weighted() -> tuple[TrainingRows, Encoding]:
    X, y = mixed(80)
    return training(X, y, np.random.default_rng(5).integers(1, 4, 80))


def student(z: Any, values: Any, scale: float) -> Any:
    """The posterior predictive of a normal column: prior mean 0 with 0.01 rows, 3 degrees of freedom."""
    n, mean = len(values), values.mean()
    rows, degrees = n + 0.01, n + 3.0
    total = scale + ((values - mean) ** 2).sum() + 0.01 * n / rows * mean**2
    return scipy.stats.t.logpdf(z, degrees, n * mean / rows, np.sqrt(total * (rows + 1.0) / (rows * degrees)))


def test_numeric_columns_have_student_t_densities() -> None:
    X, y = numbers()
    rows, encoding = training(X, y)
    terms = fitted(ColumnsView(), rows, encoding).terms(rows.rows)
    z = rows.rows.numbers
    for j in range(3):
        for k in range(3):
            assert_allclose(terms[j, k], student(z[:, j], z[rows.codes == k, j], 3.0 / 9.0), rtol=1e-9)


def test_categories_have_one_pseudo_observation_in_all() -> None:
    X, y = mixed()
    rows, encoding = training(X[["colour", "flag"]], y)
    view = fitted(ColumnsView(), rows, encoding)
    terms = view.terms(rows.rows)
    for term, j in zip(terms, view.term_columns, strict=True):
        assert j is not None
        cells, size = rows.rows.cells[:, j], int(encoding.n_cells[j])
        for k in range(3):
            mine = rows.codes == k
            counts = np.bincount(cells[mine], rows.weights[mine], minlength=size + 1)[:size]
            expected = np.log((counts + 1.0 / size) / (counts.sum() + 1.0))
            assert_allclose(term[k], np.where(cells < size, expected[np.minimum(cells, size - 1)], 0.0), rtol=1e-9)


def test_joint_gaussians_have_multivariate_t_densities() -> None:
    X, y = numbers()
    rows, encoding = training(X, y)
    terms, z, d = fitted(JointGaussianView(), rows, encoding).terms(rows.rows), rows.rows.numbers, 3
    scatters = []
    for k in range(3):
        part = z[rows.codes == k]
        centred, n = part - part.mean(axis=0), len(part)
        scatters.append(centred.T @ centred)
    pooled = sum(scatters) / len(z)
    for k in range(3):
        part = z[rows.codes == k]
        n, mean = len(part), part.mean(axis=0)
        degrees = 2 * d + 2 + n
        scale = (pooled + 0.001 * np.eye(d)) * (d + 1) + scatters[k] + 0.01 * n / (n + 0.01) * np.outer(mean, mean)
        df = degrees - d + 1
        shape = scale * (n + 1.01) / ((n + 0.01) * df)
        expected = scipy.stats.multivariate_t.logpdf(z, n * mean / (n + 0.01), shape, df)
        assert_allclose(terms[1, k], expected, rtol=1e-6)


def test_leave_one_out_of_columns_is_a_refit_without_a_copy_of_the_row() -> None:
    X, y = mixed(80)
    weights = np.random.default_rng(5).integers(1, 4, 80)
    rows, encoding = training(X, y, weights)
    view = fitted(ColumnsView(), rows, encoding)
    left_out = view.left_out(rows)
    for i in (0, 11, 40, 63):
        row, k = rows.positions[i], rows.codes[i]
        fewer = weights - (np.arange(80) == row)
        others = encoded(distinct(X, y, fewer), encoding)
        assert_allclose(left_out[:, k, i], view.counted(others).terms(rows.rows)[:, k, i], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", [LinearDiscriminant(), QuadraticDiscriminant(), NaiveBayes(estimation="mle")])
def test_leave_one_out_of_a_model_is_a_refit(model: Any) -> None:
    X, y = numbers()
    rows, encoding = training(X, y)
    left_out = fitted(ModelView(model), rows, encoding).left_out(rows)
    for i in (0, 17, 59):
        others = np.arange(60) != rows.positions[i]
        expected = clone(model).fit(X[others], y[others]).with_prior("uniform").log_joint(X[~others])[0]
        assert_allclose(left_out[0, :, i], expected - expected.max(), rtol=1e-7, atol=1e-9)


def test_leave_one_out_of_a_pooled_covariance_is_a_refit() -> None:
    rows, encoding = training(*numbers())
    view = fitted(JointGaussianView(), rows, encoding)
    left_out = view.left_out(rows)
    for i in (0, 17, 59):
        one = rows.take(np.array([i]))
        again = view.removed(one).terms(one.rows)
        assert_allclose(left_out[0, :, i], again[0, :, 0], rtol=1e-8)


@every_view
def test_statistics_add_up_and_rows_can_be_removed(name: str) -> None:
    X, y = mixed(80)
    rows, encoding = training(X, y)
    view = fitted(VIEWS[name], rows, encoding)
    parts = rows.take(np.arange(30)), rows.take(np.arange(30, len(rows)))
    expected = view.terms(rows.rows)
    for other in (
        view.counted(parts[0]) + view.counted(parts[1]),
        view.removed(parts[0]) + view.counted(parts[0]),
    ):
        assert_allclose(other.terms(rows.rows), expected, rtol=1e-8, atol=1e-8)
    assert_allclose(
        view.without(parts[0], parts[1]).terms(rows.rows), view.counted(parts[1]).terms(rows.rows), rtol=1e-7, atol=1e-7
    )


@every_view
def test_contributions_add_up_to_the_weighted_terms(name: str) -> None:
    rows, encoding = weighted()
    view = fitted(VIEWS[name], rows, encoding)
    weights = np.random.default_rng(0).uniform(size=len(view.term_columns))
    found = view.contributions(rows.rows, weights).sum(axis=2)
    expected = np.tensordot(weights, view.terms(rows.rows), axes=1).T
    assert_allclose(
        found - found.mean(axis=1, keepdims=True), expected - expected.mean(axis=1, keepdims=True), atol=1e-10
    )
    sizes = check(view)
    assert len(sizes["classes"]) == 3
    assert sizes.get("names", encoding.names) == encoding.names


@every_view
def test_a_row_without_values_has_no_evidence(name: str) -> None:
    X, y = mixed(80)
    rows, encoding = training(X, y)
    empty = X[:1].astype(object)
    empty[:] = None
    terms = fitted(VIEWS[name], rows, encoding).terms(encoding.encode(distinct(empty, ["a"]).rows))
    assert_allclose(terms - terms.mean(axis=1, keepdims=True), 0.0, atol=1e-12)


def test_views_without_columns_to_look_at_do_not_exist() -> None:
    X, y = mixed()
    assert JointGaussianView().fit(*training(X[["x", "colour"]], y), 0) is None
    assert ColumnsView().fit(*training(X[["x"]] * 0.0, y), 0) is not None  # a missing value is variation
    assert ColumnsView().fit(*training(np.ones((60, 2)), y), 0) is None


def test_many_patterns_of_missing_values_are_replaced_by_the_mean() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 12)) < 0.3, np.nan, rng.normal(size=(400, 12)))
    rows, encoding = training(X, np.arange(400) % 2)
    view: Any = fitted(JointGaussianView(), rows, encoding)
    assert len(np.unique(np.isnan(X), axis=0)) > MOST_PATTERNS
    assert view.fills
    assert np.isfinite(view.terms(rows.rows)).all()


def test_impossible_classes_count_as_very_improbable() -> None:
    X, y = numbers()
    X["flag"] = np.where(y == "a", 1, 0)
    rows, encoding = training(X, y)
    view = fitted(ModelView(NaiveBayes(estimation="mle")), rows, encoding)
    terms = view.terms(rows.rows)
    assert terms.min() == LEAST
    contributions = view.contributions(rows.rows, np.ones(1)).sum(axis=2)
    assert_allclose(
        contributions - contributions.mean(axis=1, keepdims=True), (terms[0] - terms[0].mean(axis=0)).T, atol=1e-8
    )


def test_models_fitted_by_em_are_no_views() -> None:
    rows, encoding = training(*numbers())
    with pytest.raises(InputError, match="EM over the rows"):
        fitted(ModelView(GenerativeClassifier(Gaussian(components=2))), rows, encoding)


def test_the_model_of_a_view_is_that_of_the_estimator() -> None:
    X, y = numbers()
    rows, encoding = training(X, y)
    terms = fitted(ModelView(LinearDiscriminant()), rows, encoding).terms(rows.rows)[0]
    expected = LinearDiscriminant().fit(X, y).with_prior("uniform").log_joint(X)[rows.positions].T
    assert_allclose(terms, expected - expected.max(axis=0), rtol=1e-9, atol=1e-9)
    assert_array_equal(terms.max(axis=0), 0.0)
