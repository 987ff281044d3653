"""The formulas of docs/theory.md in plain NumPy equal what the library computes.

Inverses and raw sums of squares are written as on the page; the tables are small enough for that.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logit, multigammaln, softmax
from scipy.stats import multivariate_normal, multivariate_t, norm, t
from sklearn.covariance import ledoit_wolf, oas

from likely import (
    Dirichlet,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    NearestPrototype,
    NormalInverseWishart,
    QuadraticDiscriminant,
    Regularized,
)
from likely.families.base import ExponentialConditionals
from likely.families.gaussian.accumulator import MomentsAccumulator
from likely.model.boundary import LinearBoundary, QuadraticBoundary
from likely.statistics.moments import Moments, Sharing

pytestmark = pytest.mark.usefixtures("pure_models")

Floats = NDArray[np.float64]

GROUPS: dict[str, Any] = {"shared": True, "grouped": [["a", "b"]], "per class": False}
STRUCTURES = ("full", "diagonal", "spherical", "identity")


class Class(NamedTuple):
    """The sums of one class: rows, mean, scatter about the mean."""

    n: int
    mean: Floats
    scatter: Floats


class Data(NamedTuple):
    X: Floats
    y: NDArray[np.str_]

    def of(self, *labels: str) -> Floats:
        return self.X[np.isin(self.y, labels)]

    def summary(self, label: str) -> Class:
        rows = self.of(label)
        away = rows - rows.mean(axis=0)
        return Class(len(rows), rows.mean(axis=0), away.T @ away)

    @property
    def centred(self) -> Floats:
        """Every row minus the mean of its class."""
        return self.X - np.array([self.of(label).mean(axis=0) for label in self.y])


@cache
def data(labels: str = "abc", seed: int = 3) -> Data:
    rng = np.random.default_rng(seed)
    sizes = [14, 11, 9][: len(labels)]
    mixing = np.eye(3) + 0.4 * rng.standard_normal((len(labels), 3, 3))
    means = 1.5 * rng.standard_normal((len(labels), 3))
    X = np.vstack([m + rng.standard_normal((n, 3)) @ A for n, m, A in zip(sizes, means, mixing, strict=True)])
    return Data(X, np.repeat(list(labels), sizes))


def assert_equal(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def partners(sharing: str, label: str, classes: str = "abc") -> str:
    """The classes that share a covariance with this one."""
    return {"shared": classes, "grouped": "ab" if label in "ab" else label, "per class": label}[sharing]


def pooled(rows: Data, labels: str) -> Floats:
    return np.sum([rows.summary(label).scatter for label in labels], axis=0)


def exponential(model: Any) -> ExponentialConditionals:
    conditionals = model.model_.blocks[0].conditionals
    assert isinstance(conditionals, ExponentialConditionals)
    return conditionals


def test_the_posterior_is_the_softmax_of_the_joint() -> None:
    rows = data()
    model = QuadraticDiscriminant().fit(*rows)
    a = model.log_joint(rows.X)
    assert_equal(model.predict_proba(rows.X), softmax(a, axis=1))
    assert_equal(model.log_density(rows.X), np.log(np.exp(a).sum(axis=1)))


def test_with_two_classes_the_softmax_is_the_sigmoid_of_the_log_odds() -> None:
    rows = data("ab")
    model = QuadraticDiscriminant().fit(*rows)
    a = model.decision_function(rows.X)
    joint = model.log_joint(rows.X)
    posterior = model.predict_proba(rows.X)
    assert_equal(a, joint[:, 1] - joint[:, 0])
    assert_equal(posterior[:, 1], expit(a))
    assert_equal(posterior[:, 0], expit(-a))
    near = a[np.abs(a) < 10.0]
    assert_equal(logit(expit(near)), near)
    step = 1e-6
    slope = (expit(a + step) - expit(a - step)) / (2 * step)
    assert_equal(slope, expit(a) * (1 - expit(a)), 1e-8)


def test_another_prior_shifts_the_joint_by_the_ratio_of_the_priors() -> None:
    rows = data()
    model = GenerativeClassifier().fit(*rows)
    prior = np.array([0.7, 0.2, 0.1])
    shifted = model.log_joint(rows.X) + np.log(prior / model.class_prior_)
    assert_equal(model.with_prior(prior).log_joint(rows.X), shifted)


def test_a_pooled_covariance_makes_linear_scores() -> None:
    rows = data()
    model = LinearDiscriminant().fit(*rows)
    precision = np.linalg.inv(model.covariance_)
    centre = model.means_.mean(axis=0)
    for k in range(3):
        mean = model.means_[k]
        assert_equal(model.coef_[k], precision @ (mean - centre))
        intercept = 0.5 * centre @ precision @ centre - 0.5 * mean @ precision @ mean + np.log(model.class_prior_[k])
        assert_equal(model.intercept_[k], intercept)
    assert_equal(model.decision_function(rows.X), rows.X @ model.coef_.T + model.intercept_)


def test_two_classes_with_a_pooled_covariance_have_w_and_w0() -> None:
    rows = data("ab")
    model = LinearDiscriminant().fit(*rows)
    precision, (first, second) = np.linalg.inv(model.covariance_), model.means_
    w = precision @ (first - second)
    w0 = -0.5 * first @ precision @ first + 0.5 * second @ precision @ second
    w0 += np.log(model.class_prior_[0] / model.class_prior_[1])
    line = model.boundary("a", "b")
    assert isinstance(line, LinearBoundary)
    assert_equal(line.w, w)
    assert_equal(line.w0, w0)
    assert_equal(model.coef_, [-w])
    assert_equal(model.predict_proba(rows.X)[:, 0], expit(rows.X @ w + w0))


def test_per_class_covariances_make_quadratic_boundaries() -> None:
    rows = data()
    model = QuadraticDiscriminant().fit(*rows)
    S, T = np.linalg.inv(model.covariance_[0]), np.linalg.inv(model.covariance_[1])
    m, n = model.means_[0], model.means_[1]
    curve = model.boundary("a", "b")
    assert isinstance(curve, QuadraticBoundary)
    assert_equal(curve.A, (T - S) / 2)
    assert_equal(curve.b, S @ m - T @ n)
    sizes = np.linalg.slogdet(model.covariance_)[1]
    constant = 0.5 * (n @ T @ n - m @ S @ m) + 0.5 * (sizes[1] - sizes[0])
    constant += np.log(model.class_prior_[0] / model.class_prior_[1])
    assert_equal(curve.c, constant)
    log_posterior = model.predict_log_proba(rows.X)
    assert_equal(curve(rows.X), log_posterior[:, 0] - log_posterior[:, 1], 1e-9)


def test_boundaries_are_linear_inside_a_group_and_quadratic_to_the_others() -> None:
    model = QuadraticDiscriminant(groups=[["a", "b"]]).fit(*data())
    assert isinstance(model.boundary("a", "b"), LinearBoundary)
    assert isinstance(model.boundary("a", "c"), QuadraticBoundary)
    assert isinstance(model.boundary("c", "b"), QuadraticBoundary)


def test_a_spherical_covariance_leaves_the_difference_of_the_means() -> None:
    rows = data("ab")
    model = LinearDiscriminant("spherical").fit(*rows)
    variance, (first, second) = model.covariance_[0, 0], model.means_
    odds = np.log(model.class_prior_[1] / model.class_prior_[0])
    form = 2 * rows.X @ (second - first) + first @ first - second @ second + 2 * variance * odds
    assert_equal(model.boundary("a", "b")(rows.X), -form / (2 * variance))


@pytest.mark.parametrize("covariance", STRUCTURES)
def test_a_prototype_wins_by_its_distance(covariance: str) -> None:
    rows = data()
    model = NearestPrototype(covariance).fit(*rows)
    precision = np.linalg.inv(model.covariance_)
    away = rows.X[:, None] - model.means_
    distance = np.einsum("nkd,de,nke->nk", away, precision, away)
    assert model.predict(rows.X).tolist() == model.classes_[distance.argmin(axis=1)].tolist()
    assert_equal(model.predict_proba(rows.X), softmax(-distance / 2, axis=1))


def test_maximum_likelihood_is_class_proportions_means_and_the_average_of_the_class_covariances() -> None:
    rows = data()
    model, classes = LinearDiscriminant().fit(*rows), [rows.summary(label) for label in "abc"]
    n = len(rows.y)
    assert_equal(model.class_prior_, [c.n / n for c in classes])
    assert_equal(model.means_, [c.mean for c in classes])
    average = np.sum([c.n / n * (c.scatter / c.n) for c in classes], axis=0)
    assert_equal(model.covariance_, average)
    unbiased = LinearDiscriminant(unbiased=True).fit(*rows)
    assert_equal(unbiased.covariance_, average * n / (n - 3))
    per_class = QuadraticDiscriminant(unbiased=True).fit(*rows)
    assert_equal(per_class.covariance_, [c.scatter / (c.n - 1) for c in classes])
    diagonal = LinearDiscriminant("diagonal").fit(*rows)
    assert_equal(diagonal.covariance_, np.diag(np.diag(average)))
    spherical = LinearDiscriminant("spherical").fit(*rows)
    assert_equal(spherical.covariance_, np.trace(average) / 3 * np.eye(3))


def test_shrinkage_moves_toward_a_scaled_identity() -> None:
    rows = data()
    plain = LinearDiscriminant().fit(*rows).covariance_
    sphere = np.trace(plain) / 3 * np.eye(3)
    for intensity in (0.0, 0.3, 1.0):
        shrunk = LinearDiscriminant(shrinkage=intensity).fit(*rows).covariance_
        assert_equal(shrunk, (1 - intensity) * plain + intensity * sphere)


@pytest.mark.parametrize(("word", "function"), [("ledoit-wolf", ledoit_wolf), ("oas", oas)])
def test_intensities_are_those_of_the_papers_on_centred_rows(word: str, function: Any) -> None:
    rows = data()
    r, n, d = rows.centred, len(rows.y), 3
    S = r.T @ r / n
    m, size = np.trace(S) / d, np.sum(S * S)
    if word == "ledoit-wolf":
        noise = (np.sum(np.sum(r * r, axis=1) ** 2) / n - size) / n
        intensity = min(noise / (size - d * m**2), 1.0)
    else:
        intensity = min((size / d**2 + m**2) / ((n + 1) * (size / d**2 - m**2 / d)), 1.0)
    shrunk = LinearDiscriminant(shrinkage=word).fit(*rows).covariance_
    assert_equal(shrunk, (1 - intensity) * S + intensity * m * np.eye(d))
    assert_equal(shrunk, function(r, assume_centered=True)[0])


def test_regularized_pools_first_and_then_spheres() -> None:
    rows = data()
    per_class = QuadraticDiscriminant().fit(*rows).covariance_
    together = LinearDiscriminant().fit(*rows).covariance_
    mixed = 0.6 * per_class + 0.4 * together
    expected = [0.8 * S + 0.2 * np.trace(S) / 3 * np.eye(3) for S in mixed]
    model = QuadraticDiscriminant(shrinkage=Regularized(pooling=0.4, sphering=0.2)).fit(*rows)
    assert_equal(model.covariance_, expected)


MEAN, MEAN_ROWS, DEGREES = np.array([0.3, -0.2, 0.1]), 0.7, 5.5
SCALE = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 1.5]])
PRIOR = NormalInverseWishart(MEAN, MEAN_ROWS, DEGREES, SCALE)


class Posterior(NamedTuple):
    """Parameters of the normal-inverse-Wishart posterior of a class."""

    mean: Floats
    mean_rows: float
    degrees: float
    scale: Floats
    members: int


def posterior(rows: Data, sharing: str, covariance: str, label: str) -> Posterior:
    """The updates of the page, under PRIOR."""
    m0, k0 = MEAN, MEAN_ROWS
    group = partners(sharing, label)
    sums = np.zeros((3, 3))
    for other in group:
        c = rows.summary(other)
        sums += c.scatter + k0 * c.n / (k0 + c.n) * np.outer(c.mean - m0, c.mean - m0)
    n = sum(rows.summary(other).n for other in group)
    mine = rows.summary(label)
    mean = (k0 * m0 + mine.n * mine.mean) / (k0 + mine.n)
    if covariance == "full":
        degrees, total = DEGREES + n, SCALE + sums
    elif covariance == "diagonal":
        degrees, total = DEGREES + n, np.diag(np.diag(SCALE + sums))
    else:
        degrees, total = DEGREES + 3 * n, (np.trace(SCALE) / 3 + np.trace(sums)) * np.eye(3)
    return Posterior(mean, k0 + mine.n, degrees, total, len(group))


@pytest.mark.parametrize(("covariance", "sharing"), [*product(STRUCTURES, GROUPS)])
def test_map_is_the_joint_mode_of_mean_and_covariance(covariance: str, sharing: str) -> None:
    rows = data()
    family = Gaussian(covariance, GROUPS[sharing], prior=PRIOR)
    model = GenerativeClassifier(family, estimation="map").fit(*rows)
    joint = model.log_joint(rows.X)
    proportions = [(rows.summary(label).n + 1) / (len(rows.y) + 3) for label in "abc"]
    for k, label in enumerate("abc"):
        p = posterior(rows, sharing, covariance, label)
        divisor = {"full": 3 + 1 + p.members, "diagonal": 2 + p.members, "spherical": 2 + 3 * p.members}
        mode = np.eye(3) if covariance == "identity" else p.scale / (p.degrees + divisor[covariance])
        expected = multivariate_normal.logpdf(rows.X, p.mean, mode) + np.log(proportions[k])
        assert_equal(joint[:, k], expected)


@pytest.mark.parametrize(("covariance", "sharing"), [*product(STRUCTURES, GROUPS)])
def test_the_posterior_predictive_is_a_student_t(covariance: str, sharing: str) -> None:
    rows = data()
    family = Gaussian(covariance, GROUPS[sharing], prior=PRIOR)
    joint = GenerativeClassifier(family).fit(*rows).log_joint(rows.X)
    proportions = [(rows.summary(label).n + 0.5) / (len(rows.y) + 1.5) for label in "abc"]
    for k, label in enumerate("abc"):
        p = posterior(rows, sharing, covariance, label)
        stretch = 1 + 1 / p.mean_rows
        if covariance == "full":
            degrees = p.degrees - 3 + 1
            density = multivariate_t.logpdf(rows.X, p.mean, stretch * p.scale / degrees, degrees)
        elif covariance == "diagonal":
            deviation = np.sqrt(stretch * np.diag(p.scale) / p.degrees)
            density = t.logpdf(rows.X, p.degrees, p.mean, deviation).sum(axis=1)
        elif covariance == "spherical":
            density = multivariate_t.logpdf(rows.X, p.mean, stretch * p.scale / p.degrees, p.degrees)
        else:
            density = multivariate_normal.logpdf(rows.X, p.mean, stretch * np.eye(3))
        assert_equal(joint[:, k], density + np.log(proportions[k]))


def test_the_predictive_is_a_ratio_of_normalisers() -> None:
    """log Z(η + (u(x), 1)) − log Z(η) + log h(x), with Z of the normal-inverse-Wishart."""
    rows = data()
    family = Gaussian(prior=PRIOR)
    density = GenerativeClassifier(family, class_prior="uniform").fit(*rows).log_joint(rows.X) + np.log(3)

    def log_normaliser(k: float, nu: float, scale: Floats) -> float:
        size = np.linalg.slogdet(scale)[1]
        return float(multigammaln(nu / 2, 3) + nu * 3 / 2 * np.log(2) - nu / 2 * size + 1.5 * np.log(2 * np.pi / k))

    for j, label in enumerate("abc"):
        p = posterior(rows, "per class", "full", label)
        for x, expected in zip(rows.X[:5], density[:5, j], strict=True):
            step = p.mean_rows / (p.mean_rows + 1) * np.outer(x - p.mean, x - p.mean)
            ratio = log_normaliser(p.mean_rows + 1, p.degrees + 1, p.scale + step)
            ratio -= log_normaliser(p.mean_rows, p.degrees, p.scale)
            assert_equal(ratio - 1.5 * np.log(2 * np.pi), expected)


@pytest.mark.parametrize(("covariance", "sharing"), [*product(STRUCTURES[:3], GROUPS)])
def test_the_reference_prior_leaves_the_scatter_alone(covariance: str, sharing: str) -> None:
    rows = data()
    family = Gaussian(covariance, GROUPS[sharing], prior=NormalInverseWishart.reference())
    density = GenerativeClassifier(family, class_prior="uniform").fit(*rows).log_joint(rows.X) + np.log(3)
    for k, label in enumerate("abc"):
        c, group = rows.summary(label), partners(sharing, label)
        free = sum(rows.summary(other).n for other in group) - len(group)
        W = pooled(rows, group) * (1 + 1 / c.n)
        if covariance == "full":
            expected = multivariate_t.logpdf(rows.X, c.mean, W / (free - 3 + 1), free - 3 + 1)
        elif covariance == "diagonal":
            expected = t.logpdf(rows.X, free, c.mean, np.sqrt(np.diag(W) / free)).sum(axis=1)
        else:
            variance = np.trace(W) / (3 * free)
            expected = multivariate_t.logpdf(rows.X, c.mean, variance * np.eye(3), 3 * free)
        assert_equal(density[:, k], expected)


@pytest.mark.parametrize(("covariance", "degrees"), [("full", 5.0), ("diagonal", 3.0), ("spherical", 3.0)])
def test_the_default_prior_is_that_of_the_page(covariance: str, degrees: float) -> None:
    rows = data()
    variance = np.diag(pooled(rows, "abc")) / len(rows.y)
    mean = rows.X.mean(axis=0)
    between = np.mean((rows.X - mean) ** 2, axis=0) - variance
    mean_rows = min(0.01, float(np.min(variance / between)))
    stated = NormalInverseWishart(mean=mean, mean_rows=mean_rows, degrees=degrees, scale=np.diag(variance))
    for estimation in ("map", "bayes"):
        default = GenerativeClassifier(Gaussian(covariance), estimation=estimation).fit(*rows)
        spelled = GenerativeClassifier(
            Gaussian(covariance, prior=stated), Dirichlet(2.0 if estimation == "map" else 0.5), estimation
        ).fit(*rows)
        assert_equal(default.log_joint(rows.X), spelled.log_joint(rows.X))


def test_the_class_prior_is_the_mode_or_the_mean_of_a_dirichlet() -> None:
    rows = data()
    counts = np.array([14.0, 11.0, 9.0])
    mode = GenerativeClassifier(class_prior=Dirichlet(3.0), estimation="map").fit(*rows).class_prior_
    mean = GenerativeClassifier(class_prior=Dirichlet(3.0)).fit(*rows).class_prior_
    assert_equal(mode, (counts + 3 - 1) / (34 + 9 - 3))
    assert_equal(mean, (counts + 3) / (34 + 9))


@pytest.mark.parametrize("covariance", STRUCTURES)
def test_the_natural_form_is_the_density(covariance: str) -> None:
    rows = data()
    model = QuadraticDiscriminant(covariance).fit(*rows)
    conditionals = exponential(model)
    for k, (mean, S) in enumerate(zip(model.means_, np.broadcast_to(model.covariance_, (3, 3, 3)), strict=True)):
        P = np.linalg.inv(S)
        square = np.diag(P) if covariance != "full" else P.ravel()
        assert_equal(conditionals.natural_parameters()[k], np.append(P @ mean, -square))
        partition = 0.5 * mean @ P @ mean + 0.5 * np.linalg.slogdet(S)[1]
        assert_equal(conditionals.log_partition()[k], partition)
    assert_equal(conditionals.log_carrier(rows.X), -1.5 * np.log(2 * np.pi))
    density = model.log_joint(rows.X) - np.log(model.class_prior_)
    assert_equal(conditionals.natural_log_density(rows.X).T, density)


def test_in_one_column_the_natural_parameters_are_mean_over_variance_and_minus_one_over_variance() -> None:
    x, y = data().X[:, :1], data().y
    conditionals = exponential(QuadraticDiscriminant().fit(x, y))
    values = data().of("a")[:, 0]
    mean, variance = values.mean(), values.var()
    assert_equal(conditionals.natural_parameters()[0], [mean / variance, -1 / variance])
    assert_equal(conditionals.sufficient_statistics(x), np.hstack([x, x**2 / 2]))
    first, second = conditionals.natural_parameters()[0]
    assert_equal(conditionals.log_partition()[0], -(first**2) / (2 * second) + np.log(variance) / 2)


def test_a_dispersion_divides_the_natural_parameters() -> None:
    """N(μ, s²) = h(x/s)·g(λ)·exp(λx/s)/s with λ = μ/s, g = exp(−λ²/2): the log-odds keep their 1/s."""
    x, s = np.linspace(-3, 3, 7), 1.7
    first, second = 0.4 / s, -1.1 / s
    odds = norm.logpdf(x, 0.4, s) - norm.logpdf(x, -1.1, s)
    assert_equal(odds, (first - second) * x / s - first**2 / 2 + second**2 / 2)
    log_g = -(first**2) / 2
    spelled = (first * x + s * (log_g - np.log(s))) / s + norm.logpdf(x / s)
    assert_equal(norm.logpdf(x, 0.4, s), spelled)


def test_pairwise_independence_is_not_enough_for_a_product() -> None:
    """Two fair coins and whether they differ: every pair is independent, the three together are not."""
    table = np.zeros((2, 2, 2))
    for i, j in product(range(2), repeat=2):
        table[i, j, i ^ j] = 0.25
    for left_out in range(3):
        assert np.all(table.sum(axis=left_out) == 0.25)
    assert table[0, 0, 0] == 0.25 != 0.5**3


def test_canonical_discriminants_solve_the_generalised_eigenproblem() -> None:
    rows = data()
    model = LinearDiscriminant().fit(*rows)
    centre = model.class_prior_ @ model.means_
    away = model.means_ - centre
    between, within = (away.T * model.class_prior_) @ away, model.covariance_
    a = model.scalings_
    eigenvalues = np.diag(a.T @ between @ a)
    assert_equal(a.T @ within @ a, np.eye(2))
    assert_equal(between @ a, within @ a * eigenvalues)
    assert_equal(model.explained_variance_ratio_, eigenvalues / eigenvalues.sum())
    assert_equal(model.transform(rows.X), (rows.X - centre) @ a)


def test_decisions_have_the_least_expected_loss() -> None:
    rows = data()
    model = GenerativeClassifier().fit(*rows)
    loss = np.array([[0.0, 3.0], [5.0, 0.0], [1.0, 1.0]])
    decided = model.decide(rows.X, loss=loss, reject=0.9)
    expected = model.predict_proba(rows.X) @ loss
    assert decided.best_action.tolist() == expected.argmin(axis=1).tolist()
    assert decided.rejected.tolist() == (expected.min(axis=1) > 0.9).tolist()
    assert_equal(decided.expected_loss, np.minimum(expected.min(axis=1), 0.9))
    plain = model.decide(rows.X, reject=0.2)
    assert plain.best_action.tolist() == model.predict(rows.X).tolist()
    assert plain.rejected.tolist() == (model.predict_proba(rows.X).max(axis=1) < 0.8).tolist()


def test_sequential_explanations_are_the_chain_of_conditionals() -> None:
    rows = data()
    model = QuadraticDiscriminant().fit(*rows)
    explained = model.explain(rows.X, method="sequential")
    for k, (mean, S) in enumerate(zip(model.means_, model.covariance_, strict=True)):
        before = np.zeros(len(rows.X))
        for j in range(3):
            part = slice(0, j + 1)
            now = multivariate_normal.logpdf(rows.X[:, part], mean[part], S[part, part])
            assert_equal(explained.evidence[:, k, j], now - before)
            before = now
    assert_equal(explained.offset, np.broadcast_to(np.log(model.class_prior_), (34, 3)))
    assert_equal(explained.evidence.sum(axis=2) + explained.offset, model.log_joint(rows.X))


@pytest.mark.parametrize("covariance", ["full", "spherical"])
def test_sequential_explanations_of_a_predictive_are_a_chain_of_student_ts(covariance: str) -> None:
    rows = data()
    model = GenerativeClassifier(Gaussian(covariance, prior=PRIOR)).fit(*rows)
    explained = model.explain(rows.X, method="sequential")
    for k, label in enumerate("abc"):
        p = posterior(rows, "per class", covariance, label)
        degrees = p.degrees - 3 + 1 if covariance == "full" else p.degrees
        S = p.scale * (1 + 1 / p.mean_rows) / degrees
        before = np.zeros(len(rows.X))
        for j in range(3):
            part = slice(0, j + 1)
            now = multivariate_t.logpdf(rows.X[:, part], p.mean[part], S[part, part], degrees)
            assert_equal(explained.evidence[:, k, j], now - before)
            before = now


def moments(X: Floats) -> Moments:
    builder = MomentsAccumulator(np.array(["a"]), X.shape[1], Sharing(), full=True, tails=True)
    builder.add(X, np.zeros(len(X), dtype=np.intp))
    return builder.finish()


def test_statistics_add_and_subtract_by_the_parallel_formula() -> None:
    X = data().of("a")
    left, right, total = moments(X[:9]), moments(X[9:]), moments(X)
    step = right.mean[0] - left.mean[0]
    scatter = left.scatter[0] + right.scatter[0] + 9 * 5 / 14 * np.outer(step, step)
    assert_equal((left + right).mean[0], left.mean[0] + 5 / 14 * step)
    assert_equal((left + right).scatter[0], scatter)
    assert_equal(scatter, total.scatter[0])
    away = right.mean[0] - total.mean[0]
    fewer = total.scatter[0] - right.scatter[0] - 14 * 5 / 9 * np.outer(away, away)
    assert_equal((total - right).scatter[0], fewer)
    assert_equal(fewer, left.scatter[0])


def test_tails_are_sums_of_cubes_and_fourth_powers_about_the_class_mean() -> None:
    X = data().of("a")
    r = X - X.mean(axis=0)
    square = np.sum(r * r, axis=1)
    tails = (moments(X[:9]) + moments(X[9:])).tails
    assert tails is not None
    assert_equal(tails.cubic[0], square @ r)
    assert_equal(tails.quartic[0], np.sum(square**2))


def log_gaussian(x: Floats, mean: Floats, S: Floats, half: float = 0.5, power: float = 0.5) -> Floats:
    """log of |S|^(−power)·(2π)^(−d/2)·exp(−half·(x−m)ᵀS⁻¹(x−m))."""
    away = x - mean
    squares = np.einsum("nd,de,ne->n", away, np.linalg.inv(S), away)
    size = np.linalg.slogdet(S)[1]
    return np.asarray(-half * squares - power * size - len(mean) / 2 * np.log(2 * np.pi))


def test_a_density_needs_the_half_in_its_exponent_and_the_square_root_of_the_determinant() -> None:
    rows = data()
    model = QuadraticDiscriminant(class_prior="uniform").fit(*rows)
    density = model.log_joint(rows.X)[:, 0] + np.log(3)
    mean, S = model.means_[0], model.covariance_[0]
    assert_equal(log_gaussian(rows.X, mean, S), density)
    assert np.abs(log_gaussian(rows.X, mean, S, half=1.0) - density).max() > 0.1
    assert np.abs(log_gaussian(rows.X, mean, S, power=1.5) - density).max() > 0.1


def test_boundaries_need_their_determinants_and_priors() -> None:
    rows = data("ab")
    model = QuadraticDiscriminant().fit(*rows)
    away = rows.X[:, None] - model.means_
    squares = np.einsum("nkd,kde,nke->nk", away, np.linalg.inv(model.covariance_), away)
    sizes = np.linalg.slogdet(model.covariance_)[1]
    bare = (squares[:, 1] - squares[:, 0]) / 2
    whole = bare + (sizes[1] - sizes[0]) / 2 + np.log(model.class_prior_[0] / model.class_prior_[1])
    assert_equal(model.boundary("a", "b")(rows.X), whole, 1e-9)
    assert np.abs(bare - whole).max() > 0.1


def test_the_half_belongs_to_the_quadratic_term_alone() -> None:
    rows = data()
    model = LinearDiscriminant().fit(*rows)
    P = np.linalg.inv(model.covariance_)
    bend = np.einsum("kd,de,ke->k", model.means_, P, model.means_)
    right = rows.X @ P @ model.means_.T - bend / 2 + np.log(model.class_prior_)
    wrong = (rows.X @ P @ model.means_.T - bend) / 2 + np.log(model.class_prior_)
    assert_equal(model.predict_proba(rows.X), softmax(right, axis=1))
    assert np.abs(model.predict_proba(rows.X) - softmax(wrong, axis=1)).max() > 0.01
