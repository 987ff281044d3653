"""Estimates are what they claim: a maximum of the likelihood, a mode of the posterior, an integral over it."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import dblquad, quad
from scipy.optimize import minimize
from scipy.stats import beta, dirichlet, invgamma, invwishart, multivariate_normal

from likely import Dirichlet, Gaussian, GenerativeClassifier, NormalInverseWishart
from tests.laws import oracle
from tests.laws.registry import COVARIANCES, SHARINGS, Case, Floats, Rows, assert_log_equal, iris, parts, random_rows

STRUCTURES = ("full", "diagonal", "spherical")


class Parameters(NamedTuple):
    """Class means (K, d), and one covariance matrix for each class."""

    means: Floats
    matrices: Floats


def fitted_parameters(model: GenerativeClassifier) -> Parameters:
    fitted = parts(model)
    matrices = np.array([fitted.class_covariance(k) for k in range(fitted.n_classes)])
    return Parameters(fitted.class_means(), matrices)


def log_likelihood(rows: Rows, parameters: Parameters) -> float:
    return float(
        sum(
            multivariate_normal.logpdf(rows.of(label), mean, matrix).sum()
            for label, mean, matrix in zip(rows.classes, *parameters, strict=True)
        )
    )


def groups_of(case: Case, rows: Rows) -> list[list[int]]:
    """Classes, by their codes, that share a covariance."""
    labels = rows.classes.tolist()
    found = [[labels.index(partner) for partner in case.partners(rows.classes, label)] for label in labels]
    return [group for k, group in enumerate(found) if group[0] == k]


# Maximum likelihood.


@pytest.mark.parametrize(("covariance", "sharing"), list(product(COVARIANCES, SHARINGS)))
def test_maximum_likelihood_beats_every_perturbation(covariance: str, sharing: str) -> None:
    rows, rng = random_rows(1), np.random.default_rng(1)
    case = Case(covariance, sharing, "mle")
    best = fitted_parameters(case.fit(rows))
    highest = log_likelihood(rows, best)
    for _ in range(8):
        step = 0.01 * rng.standard_normal(best.means.shape)
        for sign in (-1.0, 1.0):
            assert log_likelihood(rows, best._replace(means=best.means + sign * step)) < highest
        if covariance != "identity":
            bends = np.empty_like(best.matrices)
            for group in groups_of(case, rows):
                noise = 0.01 * rng.standard_normal((3, 3))
                root = np.linalg.cholesky(best.matrices[group[0]])
                bends[group] = root @ oracle.shaped(noise + noise.T, covariance) @ root.T
            for sign in (-1.0, 1.0):
                bent = best._replace(matrices=best.matrices + sign * bends)
                assert log_likelihood(rows, bent) < highest


# The posterior mode.


def log_prior(case: Case, prior: oracle.Prior, rows: Rows, parameters: Parameters) -> float:
    """Density of the means and of each covariance that the classes share, by SciPy; no mean_rows: flat means."""
    total, d = 0.0, rows.X.shape[1]
    for group in groups_of(case, rows):
        matrix = parameters.matrices[group[0]]
        if case.covariance == "full":
            total += invwishart.logpdf(matrix, prior.degrees, prior.scale)
        elif case.covariance == "diagonal":
            total += invgamma.logpdf(np.diag(matrix), prior.degrees / 2, scale=np.diag(prior.scale) / 2).sum()
        else:
            total += invgamma.logpdf(matrix[0, 0], prior.degrees / 2, scale=np.trace(prior.scale) / d / 2)
        if prior.mean_rows > 0.0:
            for k in group:
                total += multivariate_normal.logpdf(parameters.means[k], prior.mean, matrix / prior.mean_rows)
    return float(total)


def unpacked(numbers: Floats, case: Case, rows: Rows) -> Parameters:
    """Means and covariances from unconstrained numbers; full covariances through their Cholesky factors."""
    K, d = len(rows.classes), rows.X.shape[1]
    means, rest = numbers[: K * d].reshape(K, d), numbers[K * d :]
    matrices = np.empty((K, d, d))
    for group in groups_of(case, rows):
        if case.covariance == "full":
            size = d * (d + 1) // 2
            factor = np.zeros((d, d))
            factor[np.tril_indices(d)] = rest[:size]
            factor[np.diag_indices(d)] = np.exp(np.diag(factor))
            matrices[group] = factor @ factor.T
        else:
            size = d if case.covariance == "diagonal" else 1
            matrices[group] = np.diag(np.broadcast_to(np.exp(rest[:size]), (d,)))
        rest = rest[size:]
    assert not len(rest)
    return Parameters(means, matrices)


def numbers_needed(case: Case, rows: Rows) -> int:
    K, d = len(rows.classes), rows.X.shape[1]
    each = {"full": d * (d + 1) // 2, "diagonal": d, "spherical": 1}[case.covariance]
    return K * d + each * len(groups_of(case, rows))


MODE_PRIORS = {
    "proper": oracle.Prior(np.array([0.5, -1.0]), 0.8, 4.5, np.array([[1.5, 0.4], [0.4, 0.7]])),
    "flat means": oracle.Prior(np.array([0.5, -1.0]), 0.0, 4.5, np.array([[1.5, 0.4], [0.4, 0.7]])),
}


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("word", MODE_PRIORS)
@pytest.mark.parametrize(("covariance", "sharing"), list(product(STRUCTURES, ("shared", "own"))))
def test_map_is_the_numerical_optimum_of_the_joint_posterior(covariance: str, sharing: str, word: str, d: int) -> None:
    rows = random_rows(2, sizes=(6, 4), d=d)
    whole = MODE_PRIORS[word]
    prior = whole._replace(mean=whole.mean[:d], scale=whole.scale[:d, :d])
    case = Case(covariance, sharing, "map", options=(("prior", NormalInverseWishart(*prior)),))

    def loss(numbers: Floats) -> float:
        parameters = unpacked(numbers, case, rows)
        return -log_likelihood(rows, parameters) - log_prior(case, prior, rows, parameters)

    found = minimize(loss, np.zeros(numbers_needed(case, rows)), method="BFGS", options={"gtol": 1e-4})
    optimum, mode = unpacked(found.x, case, rows), fitted_parameters(case.fit(rows))
    ours = -log_likelihood(rows, mode) - log_prior(case, prior, rows, mode)
    assert ours <= found.fun + 1e-7
    assert_allclose(mode.means, optimum.means, atol=2e-4)
    assert_allclose(mode.matrices, optimum.matrices, rtol=2e-3, atol=2e-4)


def test_the_mode_of_a_mean_with_known_variances_lies_between_prior_and_data() -> None:
    rows = random_rows(3, sizes=(6, 4), d=1)
    prior = NormalInverseWishart(mean=2.0, mean_rows=3.0)
    model = Case("identity", "shared", "map", options=(("prior", prior),)).fit(rows)
    for k, label in enumerate(rows.classes):
        X = rows.of(label)[:, 0]
        found = minimize(lambda m, X=X: 0.5 * ((X - m) ** 2).sum() + 1.5 * ((m - 2.0) ** 2).sum(), [0.0])
        assert_allclose(parts(model).class_means()[k], found.x, atol=1e-5)
        assert_allclose(parts(model).class_covariance(k), [[1.0]], rtol=1e-14)


# The posterior predictive in one dimension, by numerical integration.

TWO_CLASSES = Rows(
    np.array([[0.3], [1.1], [-0.4], [0.9], [2.0], [3.1], [2.2], [4.0], [1.7]]),
    np.array(["a"] * 5 + ["b"] * 4),
)
POINTS = np.array([-2.0, 0.5, 5.0, 1.6])


def log_prior_density(prior: Any, mean: Any, variance: Any) -> Any:
    """Normal-inverse-gamma in one dimension, up to a constant; the reference prior is 1/variance, |Σ|^(−(1+1)/2)."""
    log = -0.5 * (prior.degrees + 2.0) * np.log(variance) - 0.5 * prior.scale / variance
    if prior.mean_rows:
        log += -0.5 * np.log(variance) - 0.5 * prior.mean_rows * (mean - prior.mean) ** 2 / variance
    return log


ONE_DIMENSION: dict[str, Any] = {
    "proper": NormalInverseWishart(mean=1.0, mean_rows=0.6, degrees=2.5, scale=0.8),
    "flat mean": NormalInverseWishart(mean_rows=0.0, degrees=2.5, scale=0.8),
    "reference": NormalInverseWishart.reference(),
}
every_prior = pytest.mark.parametrize("word", ONE_DIMENSION)


def fit_one_dimension(covariance: str, shared: bool, word: str) -> GenerativeClassifier:
    family = Gaussian(covariance, shared, prior=ONE_DIMENSION[word])
    return GenerativeClassifier(family, class_prior="uniform").fit(*TWO_CLASSES)


def integral_over_mean_and_variance(function: Callable[[float, float], float], centre: float) -> float:
    """∫∫ function(mean, variance), over the log of the variance and the mean in deviations from a centre."""

    def transformed(steps: float, log_variance: float) -> float:
        variance = math.exp(log_variance)
        return function(centre + steps * math.sqrt(variance), variance) * variance**1.5

    value, _ = dblquad(transformed, -8.0, 20.0, -12.0, 12.0, epsabs=0.0, epsrel=1e-9)
    return float(value)


@every_prior
def test_the_predictive_of_an_own_variance_is_the_integral_over_the_posterior(word: str) -> None:
    prior = ONE_DIMENSION[word]
    models = [fit_one_dimension(covariance, False, word) for covariance in STRUCTURES]
    for k, label in enumerate("ab"):
        data = TWO_CLASSES.of(label)[:, 0].tolist()

        def posterior(mean: float, variance: float, data: list[float] = data) -> float:
            squares = sum((x - mean) ** 2 for x in data)
            log = -0.5 * len(data) * math.log(variance) - 0.5 * squares / variance
            return math.exp(log + log_prior_density(prior, mean, variance))

        whole = integral_over_mean_and_variance(posterior, float(np.mean(data)))
        for x in POINTS[1:3].tolist():

            def density(mean: float, variance: float, x: float = x, posterior: Any = posterior) -> float:
                peak = math.exp(-0.5 * (x - mean) ** 2 / variance) / math.sqrt(2.0 * math.pi * variance)
                return peak * posterior(mean, variance)

            expected = math.log(integral_over_mean_and_variance(density, float(np.mean(data))) / whole)
            for model in models:
                assert_log_equal(model.log_joint([[x]])[0, k] - math.log(0.5), expected, 1e-8)


@every_prior
def test_the_predictive_of_a_shared_variance_is_the_integral_over_the_posterior(word: str) -> None:
    """Trapezoids over the log of the variance and both means: smooth and vanishing at the ends, so exact to 1e-9."""
    prior = ONE_DIMENSION[word]
    logs, steps = np.linspace(-8.0, 20.0, 400), np.linspace(-11.0, 11.0, 120)
    variance = np.exp(logs)[:, None, None]
    means, log = [], 0.0
    for label, shape in (("a", (1, -1, 1)), ("b", (1, 1, -1))):
        data = TWO_CLASSES.of(label)[:, 0]
        mean = data.mean() + steps.reshape(shape) * np.sqrt(variance / len(data))
        squares = ((data - data.mean()) ** 2).sum() + len(data) * (data.mean() - mean) ** 2
        log = log - 0.5 * len(data) * np.log(variance) - 0.5 * squares / variance
        if prior.mean_rows:
            log = log - 0.5 * np.log(variance) - 0.5 * prior.mean_rows * (mean - prior.mean) ** 2 / variance
        means.append(mean)
    log = log - 0.5 * (prior.degrees + 2.0) * np.log(variance) - 0.5 * prior.scale / variance
    log = log + 2.0 * np.log(variance)  # two means in deviations, and the log of the variance
    weights = np.exp(log - log.max())
    models = [fit_one_dimension(covariance, True, word) for covariance in STRUCTURES]
    for k, mean in enumerate(means):
        for x in POINTS:
            peak = np.exp(-0.5 * (x - mean) ** 2 / variance) / np.sqrt(2.0 * np.pi * variance)
            expected = np.log((peak * weights).sum() / weights.sum())
            for model in models:
                assert_log_equal(model.log_joint([[x]])[0, k] - np.log(0.5), expected, 1e-8)


@pytest.mark.parametrize(("covariance", "sharing"), list(product(COVARIANCES, SHARINGS)))
def test_predictive_densities_integrate_to_one(covariance: str, sharing: str) -> None:
    rows = random_rows(4, d=1)
    model = Case(covariance, sharing, "bayes").fit(rows)

    u = np.linspace(-30.0, 30.0, 20_001)  # x = median + sinh(u): trapezoids that reach far into the tails
    x = np.median(rows.X) + np.sinh(u)
    density = np.exp(model.log_density(x[:, None]))
    assert np.trapezoid(density * np.cosh(u), u) == pytest.approx(1.0, rel=1e-6)


def test_the_predictive_tends_to_the_density_of_maximum_likelihood_as_rows_grow() -> None:
    rng = np.random.default_rng(5)
    y = rng.permutation(np.repeat([0, 1], 20_000))
    X = y[:, None] + rng.standard_normal((40_000, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    plugged, integrated = (Case("full", "own", how).fit(Rows(X, y)) for how in ("mle", "bayes"))
    assert_allclose(integrated.log_joint(X[:50]), plugged.log_joint(X[:50]), rtol=0, atol=5e-3)


# The class prior.


def counted_rows(sizes: tuple[int, ...]) -> Rows:
    return random_rows(6, sizes=sizes, d=1)


@pytest.mark.parametrize("alpha", [None, 0.5, 1.0, 3.0])
def test_the_integrated_class_prior_is_the_posterior_mean_of_the_dirichlet(alpha: float | None) -> None:
    rows = counted_rows((7, 4))
    model = GenerativeClassifier(class_prior=None if alpha is None else Dirichlet(alpha)).fit(*rows)
    prior = beta(alpha or 0.5, alpha or 0.5)

    def moment(power: int) -> float:
        value, _ = quad(lambda p: p**power * p**7 * (1 - p) ** 4 * prior.pdf(p), 0.0, 1.0, epsabs=1e-14)
        return float(value)

    assert model.class_prior_[0] == pytest.approx(moment(1) / moment(0), rel=1e-7)
    assert model.class_prior_.sum() == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("alpha", [None, 1.5, 4.0])
def test_the_class_prior_of_map_is_the_mode_of_the_dirichlet_posterior(alpha: float | None) -> None:
    rows = counted_rows((7, 4, 2))
    prior = None if alpha is None else Dirichlet(alpha)
    model = GenerativeClassifier(class_prior=prior, estimation="map").fit(*rows)
    posterior = dirichlet(np.array([7, 4, 2]) + (alpha or 2.0))
    highest = posterior.logpdf(model.class_prior_)
    rng = np.random.default_rng(7)
    for _ in range(50):
        step = rng.standard_normal(3) * 0.01
        for sign in (-1.0, 1.0):
            moved = model.class_prior_ + sign * (step - step.mean())
            assert posterior.logpdf(moved / moved.sum()) < highest


def test_the_class_prior_of_maximum_likelihood_is_the_proportion_of_the_weight() -> None:
    rows = iris()
    weights = np.where(rows.y == "setosa", 2.0, 0.5)
    model = GenerativeClassifier(estimation="mle").fit(rows.X, rows.y, weights)
    totals = np.array([weights[rows.y == label].sum() for label in rows.classes])
    assert_allclose(model.class_prior_, totals / totals.sum(), rtol=1e-14)


def test_every_class_may_have_its_own_pseudo_rows() -> None:
    rows = counted_rows((7, 4, 2))
    alpha = {"a": 1.0, "b": 2.0, "c": 10.0}
    bayes = GenerativeClassifier(class_prior=Dirichlet(alpha)).fit(*rows)
    assert_allclose(bayes.class_prior_, dirichlet([8, 6, 12]).mean(), rtol=1e-14)
