"""Linear and quadratic forms, log-odds and explanations say what the densities say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import logm, sqrtm
from scipy.special import expit, gammaln, logit, softmax
from scipy.stats import norm, t
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from likely import Gaussian, GenerativeClassifier, LinearDiscriminant, NearestPrototype, QuadraticDiscriminant
from likely.families.gaussian.student import Students
from likely.model.boundary import LinearBoundary, QuadraticBoundary
from tests.laws import oracle
from tests.laws.registry import (
    COVARIANCES,
    SHARINGS,
    Case,
    Floats,
    Rows,
    assert_log_equal,
    every_case,
    every_plugged_in_case,
    iris,
    parts,
    penguins,
    random_rows,
)

LINEAR_MODELS = [
    *(LinearDiscriminant(covariance, estimation=how) for covariance in COVARIANCES for how in ("mle", "map")),
    LinearDiscriminant(shrinkage="ledoit-wolf"),
    LinearDiscriminant(unbiased=True, class_prior="uniform"),
    NearestPrototype(),
    NearestPrototype("full"),
]
every_linear_model = pytest.mark.parametrize("model", LINEAR_MODELS, ids=repr)


def scipy_log_joint(model: Any, X: Floats) -> Floats:
    """log p(x, class) of plugged-in parameters, by SciPy."""
    fitted = parts(model)
    columns = [
        oracle.normal_log_density(X, fitted.class_means()[k], fitted.class_covariance(k))
        for k in range(fitted.n_classes)
    ]
    return np.array(columns).T + np.log(model.class_prior_)


# Linear forms.


@every_linear_model
def test_the_linear_form_equals_the_density_form_for_many_classes(model: Any) -> None:
    rows = iris()
    model.fit(*rows)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    scores = rows.X @ model.coef_.T + model.intercept_
    assert_allclose(model.decision_function(rows.X), scores, rtol=1e-9, atol=1e-9)
    expected = scipy_log_joint(model, rows.X)
    assert_allclose(scores - scores[:, :1], expected - expected[:, :1], rtol=1e-9, atol=1e-9)
    assert_allclose(softmax(scores, axis=1), model.predict_proba(rows.X), rtol=0, atol=1e-9)


@every_linear_model
def test_the_linear_form_of_two_classes_is_the_log_odds_of_the_second(model: Any) -> None:
    X, y = random_rows(1, sizes=(15, 10))
    model.fit(X, y)
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    expected = scipy_log_joint(model, X)
    log_odds = (X @ model.coef_.T + model.intercept_)[:, 0]
    assert_allclose(log_odds, expected[:, 1] - expected[:, 0], rtol=1e-9, atol=1e-9)
    assert_allclose(model.decision_function(X), log_odds, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
@pytest.mark.parametrize("sizes", [(15, 10), (15, 10, 12)], ids=["two classes", "three classes"])
def test_differences_of_coefficients_are_those_of_scikit_learn(sizes: tuple[int, ...], solver: str) -> None:
    """Of coefficients alone they are not: a term that all classes share says nothing."""
    X, y = random_rows(2, sizes=sizes)
    ours = LinearDiscriminant().fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    last = len(sizes) > 2  # two classes have one row, the difference itself
    for name in ("coef_", "intercept_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert_allclose(mine - last * mine[-1], other - last * other[-1], rtol=1e-9, atol=1e-9)


def test_the_scores_of_a_linear_model_are_its_linear_form_even_where_classes_lie_far_apart() -> None:
    X, y = random_rows(3)
    far = X + 1e6 * np.searchsorted(np.unique(y), y)[:, None]
    model = LinearDiscriminant("diagonal").fit(far, y)
    scores = far @ model.coef_.T + model.intercept_
    assert_allclose(model.decision_function(far), scores, rtol=1e-9, atol=1e-9 * np.abs(scores).max())


def test_a_predictive_has_no_linear_form() -> None:
    model = LinearDiscriminant(estimation="bayes").fit(*iris())
    for name in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match="Student t"):
            getattr(model, name)
    with pytest.raises(AttributeError, match="Student t"):
        model.boundary("setosa", "virginica")


# Boundaries.


@every_plugged_in_case
def test_the_boundary_of_two_classes_is_their_log_odds(case: Case) -> None:
    rows = penguins()
    model = case.fit(rows)
    joint = model.log_joint(rows.X)
    size = np.abs(joint).max()
    for i, first in enumerate(rows.classes):
        for j, second in enumerate(rows.classes):
            if i != j:
                form = model.boundary(first, second)
                assert (form.first, form.second) == (first, second)
                assert_allclose(form(rows.X), joint[:, i] - joint[:, j], rtol=1e-9, atol=1e-10 * size)


@pytest.mark.parametrize("estimation", ["mle", "map"])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
def test_boundaries_are_linear_inside_a_group_and_quadratic_to_other_classes(covariance: str, estimation: str) -> None:
    rows = iris()
    groups = [["setosa", "virginica"]]
    model = QuadraticDiscriminant(covariance, groups=groups, estimation=estimation).fit(*rows)
    inside = model.boundary("setosa", "virginica")
    assert isinstance(inside, LinearBoundary)
    expected = scipy_log_joint(model, rows.X)
    assert_allclose(rows.X @ inside.w + inside.w0, expected[:, 0] - expected[:, 2], rtol=1e-9, atol=1e-8)
    for k, label in ((0, "setosa"), (2, "virginica")):
        outside = model.boundary(label, "versicolor")
        assert isinstance(outside, QuadraticBoundary)
        assert_allclose(outside.A, outside.A.T)
        log_odds = [x @ outside.A @ x + outside.b @ x + outside.c for x in rows.X]
        assert_allclose(log_odds, expected[:, k] - expected[:, 1], rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("estimation", ["mle", "map"])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_boundaries_between_classes_of_one_covariance_are_linear(covariance: str, estimation: str) -> None:
    model = Case(covariance, "shared", estimation).fit(iris())
    assert isinstance(model.boundary("setosa", "versicolor"), LinearBoundary)


@pytest.mark.parametrize("groups", [None, [["setosa", "virginica"]]], ids=["own", "grouped"])
@pytest.mark.parametrize("away", [0.0, 2.0**20, 2.0**27])
def test_boundaries_lose_nothing_far_from_the_origin(groups: Any, away: float) -> None:
    rows = iris()
    X = np.round(rows.X * 1024) / 1024  # so that moving the rows rounds nothing
    near, far = (QuadraticDiscriminant(groups=groups).fit(Z, rows.y) for Z in (X, X + away))
    for first, second in (("setosa", "virginica"), ("setosa", "versicolor")):
        expected = near.boundary(first, second)(X)
        assert_allclose(far.boundary(first, second)(X + away), expected, rtol=1e-7, atol=1e-5)


def test_a_row_on_the_boundary_has_equal_posteriors() -> None:
    model = LinearDiscriminant().fit(*iris())
    form = model.boundary("versicolor", "virginica")
    assert isinstance(form, LinearBoundary)
    foot = -form.w0 * form.w / (form.w @ form.w)
    _, versicolor, virginica = model.predict_proba(foot[None])[0]
    assert versicolor == pytest.approx(virginica, rel=1e-9)


def test_columns_without_variance_have_no_weight_in_a_form() -> None:
    rows = iris()
    X = np.insert(rows.X, 2, 5.0, axis=1)
    assert not LinearDiscriminant().fit(X, rows.y).coef_[:, 2].any()
    form = QuadraticDiscriminant().fit(X, rows.y).boundary("setosa", "virginica")
    assert isinstance(form, QuadraticBoundary)
    assert not form.A[2].any()
    assert form.b[2] == 0.0


# Two classes.


@every_case
def test_the_sigmoid_of_the_log_odds_is_the_softmax_for_two_classes(case: Case) -> None:
    rows = random_rows(4, sizes=(15, 12))
    model = case.fit(rows)
    log_odds = model.decision_function(rows.X)
    assert log_odds.shape == (len(rows.y),)
    joint = model.log_joint(rows.X)
    assert_allclose(log_odds, joint[:, 1] - joint[:, 0], rtol=1e-9, atol=1e-9)
    posteriors = model.predict_proba(rows.X)
    assert_allclose(posteriors[:, 1], expit(log_odds), rtol=1e-9, atol=1e-12)
    assert_allclose(posteriors, softmax(joint, axis=1), rtol=1e-9, atol=1e-12)
    inner = np.abs(log_odds) < 5
    assert_allclose(logit(posteriors[inner, 1]), log_odds[inner], rtol=1e-9, atol=1e-9)


@every_case
def test_the_scores_of_many_classes_have_the_posteriors_as_their_softmax(case: Case) -> None:
    rows = iris()
    model = case.fit(rows)
    scores = model.decision_function(rows.X)
    assert scores.shape == (len(rows.y), 3)
    assert_allclose(softmax(scores, axis=1), model.predict_proba(rows.X), rtol=1e-9, atol=1e-12)


# Explanations.


@every_case
def test_explanations_add_up_to_the_joint(case: Case) -> None:
    for rows in (iris(), penguins()):
        model = case.fit(rows)
        X = np.vstack([rows.X, 10.0 * rows.X, np.zeros((1, 4))])
        for method in ("symmetric", "sequential"):
            explained = model.explain(X, method=method)
            assert explained.evidence.shape == (len(X), 3, 4)
            assert explained.columns == ("x0", "x1", "x2", "x3")
            assert_allclose(explained.offset, np.tile(np.log(model.class_prior_), (len(X), 1)), rtol=1e-14)
            assert_log_equal(explained.offset + explained.evidence.sum(axis=2), model.log_joint(X))


@every_case
@pytest.mark.parametrize("missing", [False, True])
def test_explanations_do_not_depend_on_the_order_of_columns(case: Case, missing: bool) -> None:
    rows, order = iris(), np.array([2, 0, 3, 1])
    X = rows.X.copy()
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    evidence = case.fit(rows).explain(X).evidence
    turned = case.fit(Rows(rows.X[:, order], rows.y)).explain(X[:, order]).evidence
    assert_log_equal(turned, evidence[:, :, order], 1e-9)
    assert not evidence.transpose(0, 2, 1)[np.isnan(X)].any()


@every_case
def test_explanations_are_the_partition_of_garthwaite_and_koch(case: Case) -> None:
    """By SciPy's square root and logarithm of the correlation matrix."""
    rows = iris()
    model = case.fit(rows)
    fitted, evidence = parts(model), model.explain(rows.X).evidence
    for k in range(3):
        mean, matrix = fitted.class_means()[k], fitted.class_covariance(k)
        scale = np.sqrt(np.diag(matrix))
        correlation = matrix / np.outer(scale, scale)
        if isinstance(fitted, Students) and case.covariance == "diagonal":
            assert_log_equal(evidence[:, k], t.logpdf(rows.X, fitted.degrees[k], mean, scale))
            continue
        w = np.linalg.solve(sqrtm(correlation), ((rows.X - mean) / scale).T).T
        expected = -np.log(scale) - 0.5 * np.diag(logm(correlation))
        if isinstance(fitted, Students):
            nu, q = fitted.degrees[k], (w**2).sum(axis=1)
            peak = gammaln((nu + 4.0) / 2.0) - gammaln(nu / 2.0) - 2.0 * np.log(nu * np.pi)
            expected = expected + peak / 4.0 - (nu + 4.0) / 2.0 * (np.log1p(q / nu) / q)[:, None] * w**2
        else:
            expected = expected - 0.5 * np.log(2.0 * np.pi) - 0.5 * w**2
        assert_log_equal(evidence[:, k], expected, 1e-9)


@every_case
def test_sequential_explanations_are_the_chain_of_conditionals(case: Case) -> None:
    """Term i is log p(x_1..x_i) − log p(x_1..x_(i−1)), by SciPy's marginals; with independent columns, log p(x_i)."""
    rows = iris()
    model = case.fit(rows)
    fitted, evidence = parts(model), model.explain(rows.X, method="sequential").evidence
    for k in range(3):
        mean, matrix = fitted.class_means()[k], fitted.class_covariance(k)
        deviation = np.sqrt(np.diag(matrix))
        if isinstance(fitted, Students) and case.covariance == "diagonal":
            expected = t.logpdf(rows.X, fitted.degrees[k], mean, deviation)
        elif isinstance(fitted, Students):
            expected = chain(
                [
                    oracle.student_log_density(rows.X[:, :i], mean[:i], matrix[:i, :i], fitted.degrees[k])
                    for i in range(1, 5)
                ]
            )
        elif case.covariance == "full":
            expected = chain([oracle.normal_log_density(rows.X[:, :i], mean[:i], matrix[:i, :i]) for i in range(1, 5)])
        else:
            expected = norm.logpdf(rows.X, mean, deviation)
        assert_log_equal(evidence[:, k], expected)


@every_linear_model
@pytest.mark.parametrize("missing", [False, True])
def test_contrasts_of_a_pooled_covariance_are_coefficients_times_distances_from_the_midpoint(
    model: Any, missing: bool
) -> None:
    rows = iris()
    model = clone(model).fit(*rows)
    fitted, X = parts(model), rows.X.copy()
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    explained = model.explain(X)
    for a, b in ((0, 1), (2, 0)):
        terms = explained.contrast(rows.classes[a], rows.classes[b])
        first, second = fitted.class_means()[[a, b]]
        for x, term in zip(X, terms, strict=True):
            seen = ~np.isnan(x)
            w = np.linalg.solve(fitted.class_covariance(0)[np.ix_(seen, seen)], (first - second)[seen])
            assert_allclose(term[seen], w * (x - (first + second) / 2.0)[seen], rtol=1e-8, atol=1e-8)
            assert not term[~seen].any()
        joint = model.log_joint(X)
        total = terms.sum(axis=1) + explained.offset[:, a] - explained.offset[:, b]
        assert_allclose(total, joint[:, a] - joint[:, b], rtol=1e-9, atol=1e-9)
    if not missing:
        slopes = model.coef_[2] - model.coef_[0]
        terms = explained.contrast(rows.classes[2], rows.classes[0])
        assert_allclose(terms[1:] - terms[:-1], slopes * np.diff(X, axis=0), rtol=1e-8, atol=1e-8)


@every_case
def test_contrasts_of_any_model_add_up_to_the_log_odds(case: Case) -> None:
    rows = iris()
    model = case.fit(rows)
    joint = model.log_joint(rows.X)
    for method in ("symmetric", "sequential"):
        explained = model.explain(rows.X, method=method)
        terms = explained.contrast(rows.classes[1], rows.classes[2])
        total = terms.sum(axis=1) + explained.offset[:, 1] - explained.offset[:, 2]
        assert_allclose(total, joint[:, 1] - joint[:, 2], rtol=1e-9, atol=1e-9)


def chain(logs: list[Floats]) -> Floats:
    """Log-densities of the first 1, 2, ... columns to those of each column given the earlier ones."""
    return np.diff(np.array([np.zeros_like(logs[0]), *logs]), axis=0).T


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("estimation", ["mle", "bayes"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_the_unit_of_one_column_moves_only_its_own_evidence(covariance: str, estimation: str, sharing: str) -> None:
    rows, case = random_rows(5), Case(covariance, sharing, estimation)
    plain = case.fit(rows).explain(rows.X).evidence
    for power in (10, -700, 440):
        X = rows.X * np.array([1.0, 2.0**power, 1.0])
        evidence = case.fit(Rows(X, rows.y)).explain(X).evidence
        assert_log_equal(evidence + np.array([0.0, power * np.log(2.0), 0.0]), plain, 1e-9)


@pytest.mark.parametrize("distance", [1e6, 1e100, 1e139])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
def test_explanations_of_predictives_add_up_however_far_a_row_is(covariance: str, distance: float) -> None:
    rows = iris()
    model = Case(covariance, "own", "bayes").fit(rows)
    far = rows.X[:3] * distance
    explained = model.explain(far)
    assert_log_equal(explained.offset + explained.evidence.sum(axis=2), model.log_joint(far))


def test_explanations_of_several_blocks_stand_at_their_columns() -> None:
    rows = iris()
    families = {(3, 0): Gaussian(), (1, 2): Gaussian("diagonal", shared=True)}
    model = GenerativeClassifier(families, class_prior="uniform").fit(*rows)
    evidence = model.explain(rows.X).evidence
    for columns, family in families.items():
        part = rows.X[:, list(columns)]
        alone = GenerativeClassifier(family, class_prior="uniform").fit(part, rows.y)
        assert_log_equal(evidence[:, :, list(columns)], alone.explain(part).evidence, 1e-12)
