"""Every way to evaluate a density gives the same number: SciPy's, natural, whitened, by products."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import t

from likely import Dirichlet, Gaussian, GenerativeClassifier, NormalInverseWishart
from likely.families.base import ExponentialConditionals
from likely.families.gaussian.covariance import DenseCovariance, Diagonal, DiagonalCovariance, Full
from likely.families.gaussian.mahalanobis import Distances
from likely.families.gaussian.student import Students
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

both_tables = pytest.mark.parametrize("table", [iris, penguins], ids=["iris", "penguins"])
every_sharing = pytest.mark.parametrize("sharing", SHARINGS)


def log_class_densities(model: GenerativeClassifier, X: Floats) -> Floats:
    """log p(x | class), from the joint and the class prior."""
    densities: Floats = model.log_joint(X) - np.log(model.class_prior_)
    return densities


# SciPy's densities of textbook estimates.


@both_tables
@every_sharing
@pytest.mark.parametrize(
    ("covariance", "unbiased"),
    [*product(COVARIANCES, [False]), *product(("full", "diagonal", "spherical"), [True])],
)
def test_maximum_likelihood_densities_are_those_of_scipy(
    covariance: str, unbiased: bool, sharing: str, table: Callable[[], Rows]
) -> None:
    rows = table()
    case = Case(covariance, sharing, "mle", options=(("unbiased", unbiased),))
    actual = log_class_densities(case.fit(rows), rows.X)
    for k, label in enumerate(rows.classes):
        mean, matrix = oracle.maximum_likelihood(case, rows, label, unbiased)
        assert_log_equal(actual[:, k], oracle.normal_log_density(rows.X, mean, matrix))


def reference_predictive(case: Case, rows: Rows, label: Any, X: Floats) -> Floats:
    """Student t of the improper prior |Σ|^(−(D+1)/2), from the scatters, as the design gives it."""
    labels = case.partners(rows.classes, label)
    n, D = len(rows.of(label)), rows.X.shape[1]
    N, K = sum(len(rows.of(partner)) for partner in labels), len(labels)
    mean, W = rows.of(label).mean(axis=0), oracle.scatter(rows, labels)
    if case.covariance == "full":
        degrees = N - K - D + 1
        return oracle.student_log_density(X, mean, W * (1 + 1 / n) / degrees, degrees)
    if case.covariance == "diagonal":
        scale = np.sqrt(np.diag(W) * (1 + 1 / n) / (N - K))
        return np.asarray(t.logpdf(X, N - K, mean, scale).sum(axis=1))
    degrees = D * (N - K)
    return oracle.student_log_density(X, mean, np.eye(D) * np.trace(W) * (1 + 1 / n) / degrees, degrees)


@both_tables
@pytest.mark.parametrize(("covariance", "sharing"), list(product(("full", "diagonal", "spherical"), SHARINGS)))
def test_reference_predictives_are_the_student_densities_of_scipy(
    covariance: str, sharing: str, table: Callable[[], Rows]
) -> None:
    rows = table()
    case = Case(covariance, sharing, "bayes", options=(("prior", NormalInverseWishart.reference()),))
    actual = log_class_densities(case.fit(rows), rows.X)
    for k, label in enumerate(rows.classes):
        assert_log_equal(actual[:, k], reference_predictive(case, rows, label, rows.X))


def test_the_degrees_of_the_reference_predictive_are_those_left_by_means_and_columns() -> None:
    rows = random_rows(1, sizes=(14, 11, 9), d=3)
    expected = {"shared": [29, 29, 29], "grouped": [21, 21, 6], "own": [11, 8, 6]}
    for sharing, degrees in expected.items():
        case = Case("full", sharing, "bayes", options=(("prior", NormalInverseWishart.reference()),))
        conditionals = parts(case.fit(rows))
        assert isinstance(conditionals, Students)
        assert conditionals.degrees.tolist() == degrees


PRIOR = oracle.Prior(
    mean=np.array([0.5, -1.0, 0.2]),
    mean_rows=0.7,
    degrees=5.5,
    scale=np.array([[2.0, 0.3, -0.1], [0.3, 1.0, 0.2], [-0.1, 0.2, 0.5]]),
)


@pytest.mark.parametrize(("covariance", "sharing"), list(product(COVARIANCES, SHARINGS)))
def test_the_predictive_is_the_ratio_of_the_evidences_with_and_without_the_row(covariance: str, sharing: str) -> None:
    rows = random_rows(2)
    case = Case(covariance, sharing, "bayes", options=(("prior", NormalInverseWishart(*PRIOR)),))
    X = np.vstack([rows.X[:4], 3.0 * rows.X[4:7], [[0.0, 0.0, 0.0]]])
    actual = log_class_densities(case.fit(rows), X)
    for k, label in enumerate(rows.classes):
        expected = [oracle.log_predictive(case, PRIOR, rows, row, label) for row in X]
        assert_log_equal(actual[:, k], np.array(expected))


@every_case
def test_densities_are_those_of_scipy_at_the_models_own_parameters(case: Case) -> None:
    rows = penguins()
    model = case.fit(rows)
    fitted, X = parts(model), np.vstack([rows.X, 5.0 * rows.X, np.zeros((1, 4))])
    actual = log_class_densities(model, X)
    for k in range(3):
        mean, matrix = fitted.class_means()[k], fitted.class_covariance(k)
        if not isinstance(fitted, Students):
            expected = oracle.normal_log_density(X, mean, matrix)
        elif case.covariance == "diagonal":
            expected = t.logpdf(X, fitted.degrees[k], mean, np.sqrt(np.diag(matrix))).sum(axis=1)
        else:
            expected = oracle.student_log_density(X, mean, matrix, fitted.degrees[k])
        assert_log_equal(actual[:, k], expected)


@every_case
def test_all_answers_follow_from_the_joint(case: Case) -> None:
    rows = iris()
    model = case.fit(rows)
    joint = model.log_joint(rows.X)
    evidence = logsumexp(joint, axis=1)
    assert_log_equal(model.log_density(rows.X), evidence, 1e-12)
    assert_log_equal(model.score_samples(rows.X), evidence, 1e-12)
    assert_allclose(model.predict_proba(rows.X), np.exp(joint - evidence[:, None]), rtol=1e-9, atol=1e-12)
    assert_allclose(model.predict_log_proba(rows.X), joint - evidence[:, None], rtol=1e-9, atol=1e-10)
    assert model.predict(rows.X).tolist() == model.classes_[joint.argmax(axis=1)].tolist()
    assert_allclose(model.predict_proba(rows.X).sum(axis=1), 1.0, rtol=1e-14)


def test_the_class_prior_belongs_to_the_joint() -> None:
    rows = iris()
    model = GenerativeClassifier(class_prior=Dirichlet(3.0)).fit(*rows)
    other = GenerativeClassifier(class_prior=[0.2, 0.5, 0.3]).fit(*rows)
    step = np.log([0.2, 0.5, 0.3]) - np.log(model.class_prior_)
    assert_log_equal(other.log_joint(rows.X), model.log_joint(rows.X) + step, 1e-13)


def test_blocks_of_columns_multiply() -> None:
    rows = iris()
    families: dict[Any, Gaussian] = {
        (0, 2): Gaussian(shared=True),
        3: Gaussian("diagonal"),
        (1,): Gaussian("spherical", shared=True),
    }
    model = GenerativeClassifier(families, class_prior="uniform").fit(*rows)
    expected = np.log(1 / 3) * np.ones((len(rows.X), 3))
    for columns, family in families.items():
        part = rows.X[:, list(columns) if isinstance(columns, tuple) else [columns]]
        alone = GenerativeClassifier(family, class_prior="uniform").fit(part, rows.y)
        expected += log_class_densities(alone, part)
    assert_log_equal(model.log_joint(rows.X), expected, 1e-12)


# The natural form.


@both_tables
@every_plugged_in_case
def test_the_natural_form_equals_the_density(case: Case, table: Callable[[], Rows]) -> None:
    rows = table()
    conditionals = parts(case.fit(rows))
    assert isinstance(conditionals, ExponentialConditionals)
    assert_log_equal(conditionals.natural_log_density(rows.X), conditionals.log_density(rows.X))


@every_plugged_in_case
def test_the_gradient_of_the_log_partition_is_the_mean_of_the_sufficient_statistics(case: Case) -> None:
    """∇A(θ) = E[u(x)], the identity that makes A what it is; for the linear statistics, E[x] is the mean."""
    rows = random_rows(3)
    conditionals = parts(case.fit(rows))
    assert isinstance(conditionals, ExponentialConditionals)
    d = rows.X.shape[1]
    for k, theta in enumerate(conditionals.natural_parameters()):
        linear, square = theta[:d], theta[d:]
        precision = -np.diag(square) if len(square) == d else -square.reshape(d, d)

        def log_partition(linear: Floats, precision: Floats = precision) -> float:
            """log ∫ exp(θ·u(x)) h(x) dx, completing the square."""
            bent = linear @ np.linalg.solve(precision, linear)
            return float(0.5 * bent - 0.5 * np.linalg.slogdet(precision)[1])

        assert conditionals.log_partition()[k] == pytest.approx(log_partition(linear), rel=1e-10, abs=1e-10)
        step = 1e-4 * np.eye(d) * np.abs(linear).max()
        gradient = [
            (log_partition(linear + e) - log_partition(linear - e)) / (2 * e.sum()) for e in step
        ]  # a quadratic: central differences are exact but for rounding
        assert_allclose(gradient, conditionals.class_means()[k], rtol=1e-6, atol=1e-6)


# The whitened form and the forms by products.


def random_distances(kind: str, shared: bool, reach: float, seed: int) -> tuple[Distances, Floats]:
    """Distances of four classes whose means lie so many deviations apart, and rows near every mean."""
    rng, d, classes = np.random.default_rng(seed), 6, 4
    groups = 1 if shared else classes
    group = np.zeros(classes, dtype=np.intp) if shared else np.arange(classes)
    covariance: DenseCovariance | DiagonalCovariance
    if kind == "full":
        roots = rng.standard_normal((groups, d, 2 * d))
        built = Full().factor(roots @ roots.transpose(0, 2, 1), np.arange(d), d)
        assert isinstance(built, DenseCovariance)
        covariance = built
    else:
        flat = Diagonal().factor(rng.uniform(0.2, 5.0, (groups, d)), np.arange(d), d)
        assert isinstance(flat, DiagonalCovariance)
        covariance = flat
    mean = reach * rng.uniform(0.3, 1.0) * rng.standard_normal((classes, d))
    away = np.tile([0.0, 1.0, 3.0, 10.0, 1e3], classes)[:, None] * rng.standard_normal((5 * classes, d))
    rows = np.repeat(mean, 5, axis=0) + away
    return Distances(covariance, mean, group), rows


def brute_force(distances: Distances, rows: Floats) -> Floats:
    """(x − μ)ᵀΣ⁻¹(x − μ) by a Cholesky solve for each class."""
    squared = np.empty((len(distances.mean), len(rows)))
    for k, (mean, g) in enumerate(zip(distances.mean, distances.group, strict=True)):
        factor = np.linalg.cholesky(distances.covariance.matrix(int(g)))
        white = scipy.linalg.solve_triangular(factor, (rows - mean).T, lower=True)
        squared[k] = (white**2).sum(axis=0)
    return squared


@pytest.mark.parametrize("reach", [0.0, 1.0, 20.0, 1e3, 1e5, 1e8])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_products_over_all_classes_equal_whitening_one_class_after_the_other(
    kind: str, shared: bool, reach: float
) -> None:
    for seed in range(3):
        distances, rows = random_distances(kind, shared, reach, seed)
        expected = brute_force(distances, rows)
        assert_log_equal(distances.scaled(rows), expected)
        assert_log_equal(distances._one_by_one(rows), expected)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_products_are_used_where_the_classes_are_near_and_not_where_they_are_far(kind: str, shared: bool) -> None:
    assert random_distances(kind, shared, 5.0, 0)[0].form != "one by one"
    assert random_distances(kind, shared, 1e6, 0)[0].form == "one by one"


@pytest.mark.parametrize(
    ("columns", "spread", "form"),
    [(6, 1.0, "expanded"), (6, 2.0, "expanded"), (6, 300.0, "panels"), (1, 1.0, "expanded"), (150, 1.0, "panels")],
)
@pytest.mark.parametrize("group", [[0, 1, 2, 3, 4], [0, 1, 0, 2, 1], [1, 0, 0, 0, 0], [3, 1, 0, 2, 3], [0, 0, 0, 0, 0]])
@pytest.mark.parametrize("centre", [0.0, 1e3])
def test_covariances_share_a_basis_where_they_are_alike(
    columns: int, spread: float, form: str, group: list[int], centre: float
) -> None:
    rng = np.random.default_rng(columns)
    roots = rng.standard_normal((max(group) + 1, columns, 3 * columns)) / np.sqrt(3 * columns)
    roots *= np.exp(rng.uniform(-np.log(spread), np.log(spread), (max(group) + 1, columns, 1)))
    covariance = Full().factor(roots @ roots.transpose(0, 2, 1), np.arange(columns), columns)
    mean = centre + 2.0 * rng.standard_normal((5, columns)) / spread
    distances = Distances(covariance, mean, np.array(group))
    one = len(set(group)) == 1
    assert distances.form == ("pooled" if one and distances.length < 100.0 else "one by one" if one else form)
    rows = np.vstack(
        [mean, mean + rng.standard_normal((5, columns)), centre + 100.0 * rng.standard_normal((5, columns))]
    )
    expected = brute_force(distances, rows)
    assert_allclose(distances.scaled(rows), expected, rtol=1e-10, atol=1e-10 * columns)
    assert_allclose(distances.scaled(np.asfortranarray(rows)), expected, rtol=1e-10, atol=1e-10 * columns)


@pytest.mark.parametrize("classes", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("grouped", [False, True])
def test_covariances_share_bases_in_pairs(classes: int, grouped: bool) -> None:
    rng = np.random.default_rng(classes)
    noise = rng.standard_normal((classes, 6, 18))
    covariance = Full().factor(np.eye(6) + noise @ noise.transpose(0, 2, 1) / 18.0, np.arange(6), 6)
    group = np.concatenate([np.arange(classes), np.arange(classes)[::-1]]) if grouped else np.arange(classes)
    mean = rng.standard_normal((len(group), 6))
    distances = Distances(covariance, mean, group)
    assert distances.form == "expanded"
    rows = mean[0] + 10.0 * rng.standard_normal((20, 6))
    assert_allclose(distances.scaled(rows), brute_force(distances, rows), rtol=1e-10)


@every_sharing
@pytest.mark.parametrize("kind", ["full", "diagonal"])
@pytest.mark.parametrize("distance", [30.0, 3e3, 1e6, 1e8])
def test_densities_are_those_of_scipy_however_far_the_classes_lie_apart(
    kind: str, sharing: str, distance: float
) -> None:
    rows = random_rows(5, d=2)
    cells = np.round(rows.X * 1024) / 1024
    far = Rows(cells + np.round(distance) * rows.codes[:, None], rows.y)
    near, case = Rows(cells, rows.y), Case(kind, sharing, "mle")
    actual = log_class_densities(case.fit(far), far.X)
    for k, label in enumerate(far.classes):
        mean, matrix = oracle.maximum_likelihood(case, near, label)
        mine = far.X - np.round(distance) * k
        expected = oracle.normal_log_density(mine, mean, matrix)
        # Moving the rows costs digits of their means, not of the formula.
        assert_log_equal(actual[:, k], expected, 1e-10 if distance < 1e6 else 1e-6)
