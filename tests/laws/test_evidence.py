"""The marginal likelihood: numerical integrals in one dimension, and the product of one-step-ahead predictives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad, trapezoid
from sklearn.base import clone

from likely import (
    Bernoulli,
    Beta,
    BetaPrior,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    GammaPrior,
    Gaussian,
    GenerativeClassifier,
    Geometric,
    LinearDiscriminant,
    LogNormal,
    Multinomial,
    NaiveBayes,
    NegativeBinomial,
    NormalInverseWishart,
    Poisson,
    VonMises,
)

N, START = 60, 20
Y = np.arange(N) % 3
RNG = np.random.default_rng(0)
REALS = RNG.normal(size=(N, 2)) + Y[:, None]
COUNTS = RNG.poisson(2.0 + Y[:, None], (N, 2)).astype(np.float64)
NIW = NormalInverseWishart(mean=[0.0, 1.0], mean_rows=0.7, degrees=5.0, scale=[1.0, 2.0])

CASES: list[tuple[Any, Any]] = [
    *(
        (Gaussian(covariance, shared, prior=NIW), REALS)
        for covariance in ("full", "diagonal", "spherical", "identity")
        for shared in (True, False, [[0, 1]])
    ),
    (LogNormal(prior=NIW), np.exp(REALS)),
    (Bernoulli(), (REALS > 0.5).astype(np.float64)),
    (Bernoulli(prior=BetaPrior(2.0, 0.3)), (REALS > 0.5).astype(np.float64)),
    (Poisson(prior=GammaPrior(1.5, 0.5)), COUNTS),
    (Poisson(prior=GammaPrior(1.5, 0.5)), 1e6 * COUNTS),
    (Geometric(BetaPrior(1.5, 2.0)), COUNTS),
    (NegativeBinomial(2.5, BetaPrior(1.5, 2.0)), COUNTS),
    (Exponential(GammaPrior(1.5, 0.5)), np.exp(REALS)),
    (Gamma(2.5, GammaPrior(1.5, 0.5)), np.exp(REALS)),
    (Categorical(categories=[0, 1, 2, 3]), np.minimum(COUNTS, 3.0)),
    (Multinomial(0.7), COUNTS),
]


def chain(model: Any, X: Any) -> float:
    """Σ log p(x_i, y_i | the rows before), from the row START on."""
    so_far, total = clone(model).fit(X[:START], Y[:START]), 0.0
    for i in range(START, N):
        row = X[i : i + 1]
        total += so_far.log_joint(row)[0, Y[i]]
        so_far.partial_fit(row, Y[i : i + 1])
    return total


def with_missing_values(X: Any) -> Any:
    return np.where(np.random.default_rng(1).random(X.shape) < 0.15, np.nan, X)


INCOMPLETE = [(family, with_missing_values(X)) for family, X in CASES if not family._needs_complete_rows]


@pytest.mark.parametrize("prior", [None, Dirichlet(1.3), "uniform"], ids=str)
@pytest.mark.parametrize(("family", "X"), [*CASES, *INCOMPLETE], ids=lambda value: str(value)[:60].replace("\n", ""))
def test_the_evidence_is_the_product_of_one_step_ahead_predictives(family: Any, X: Any, prior: Any) -> None:
    model = GenerativeClassifier(family, class_prior=prior)
    gained = clone(model).fit(X, Y).log_evidence_ - clone(model).fit(X[:START], Y[:START]).log_evidence_
    assert_allclose(gained, chain(model, X), rtol=1e-10)


def test_evidence_of_blocks_adds_up() -> None:
    X = np.column_stack([REALS, COUNTS])
    one = GenerativeClassifier({(0, 1): Gaussian(prior=NIW), 2: Poisson(), 3: Poisson()}).fit(X, Y).log_evidence_
    left = GenerativeClassifier(Gaussian(prior=NIW)).fit(REALS, Y).log_evidence_
    right = NaiveBayes(Poisson()).fit(COUNTS, Y).log_evidence_
    labels = NaiveBayes(Bernoulli()).fit(np.ones((N, 1)), Y).log_evidence_  # a column that says nothing
    assert_allclose(one, left + right - labels, rtol=1e-12)


def test_sparse_rows_have_the_evidence_of_dense_ones() -> None:
    for family in (Multinomial(), Poisson(), Bernoulli()):
        X = COUNTS if not isinstance(family, Bernoulli) else (COUNTS > 2).astype(np.float64)
        dense, thin = (NaiveBayes(family).fit(rows, Y).log_evidence_ for rows in (X, scipy.sparse.csr_array(X)))
        assert_allclose(thin, dense, rtol=1e-12)


def test_a_joint_table_has_evidence_too() -> None:
    X = np.minimum(COUNTS, 3.0).astype(int)
    every = {"x0": [0, 1, 2, 3], "x1": [0, 1, 2, 3]}
    model = GenerativeClassifier({(0, 1): Categorical(categories=every)})
    gained = clone(model).fit(X, Y).log_evidence_ - clone(model).fit(X[:START], Y[:START]).log_evidence_
    assert_allclose(gained, chain(model, X), rtol=1e-10)


# ------------------------------------------------------------------------------------------------------- integrals


def evidence_of(family: Any, x: Any) -> float:
    """Of one column in one class, given the labels."""
    X, y = np.asarray(x, dtype=np.float64)[:, None], np.zeros(len(x), dtype=int)
    return float(NaiveBayes(family, class_prior=[1.0]).fit(X, y).log_evidence_)


def test_integrals_over_one_parameter() -> None:
    counts, ones, waits = [0.0, 2.0, 3.0, 1.0], [0.0, 1.0, 1.0], [0.3, 1.2, 0.1]
    rate = stats.gamma(1.5, scale=1 / 0.5)
    cases: list[tuple[Any, list[float], Any, Any, float]] = [
        (Poisson(prior=GammaPrior(1.5, 0.5)), counts, stats.poisson.pmf, rate, np.inf),
        (Bernoulli(prior=BetaPrior(2.0, 0.7)), ones, stats.bernoulli.pmf, stats.beta(2.0, 0.7), 1.0),
        (
            Geometric(BetaPrior(2.0, 1.5)),
            counts,
            lambda x, p: stats.geom.pmf(np.add(x, 1.0), p),
            stats.beta(2.0, 1.5),
            1.0,
        ),
        (
            NegativeBinomial(2.5, BetaPrior(2.0, 1.5)),
            counts,
            lambda x, p: stats.nbinom.pmf(x, 2.5, p),
            stats.beta(2.0, 1.5),
            1.0,
        ),
        (
            Exponential(GammaPrior(1.5, 0.5)),
            waits,
            lambda x, r: stats.expon.pdf(x, scale=1.0 / r),
            rate,
            np.inf,
        ),
        (
            Gamma(2.5, GammaPrior(1.5, 0.5)),
            waits,
            lambda x, r: stats.gamma.pdf(x, 2.5, scale=1.0 / r),
            rate,
            np.inf,
        ),
    ]
    for family, x, density, prior, top in cases:
        integral = quad(lambda p, f=density, q=prior, v=x: np.prod(f(v, p)) * q.pdf(p), 0.0, top, epsabs=1e-14)[0]
        assert_allclose(evidence_of(family, x), np.log(integral), rtol=1e-6)


def test_the_integral_over_mean_and_variance() -> None:
    """Trapezoids over the mean and the log of the variance: smooth and vanishing at the ends, so that they converge."""
    x = np.array([0.3, -0.5, 1.1])
    prior = NormalInverseWishart(mean=0.2, mean_rows=0.5, degrees=4.0, scale=1.5)
    means, logs = np.linspace(-12.0, 12.0, 1201)[:, None], np.linspace(-5.0, 5.0, 501)
    variance = np.exp(logs)
    density = np.prod([stats.norm.pdf(value, means, np.sqrt(variance)) for value in x], axis=0)
    before = stats.norm.pdf(means, 0.2, np.sqrt(variance / 0.5)) * stats.invgamma.pdf(variance, 2.0, scale=0.75)
    integral = trapezoid(trapezoid(density * before * variance, logs), means[:, 0])
    for covariance in ("full", "diagonal", "spherical"):
        model = GenerativeClassifier(Gaussian(covariance, prior=prior), class_prior=[1.0])
        assert_allclose(model.fit(x[:, None], [0, 0, 0]).log_evidence_, np.log(integral), rtol=1e-5)


@pytest.mark.parametrize("unit", [1.0, 2.0**-600])
def test_the_integral_over_means_with_unit_variances(unit: float) -> None:
    """The values of a class and column are jointly Gaussian with the covariance 1 + 1/κ; one class has no rows."""
    X, y = unit * np.array([[0.3, -1.0], [1.2, 2.0], [-0.7, 0.5], [0.1, 0.4]]), np.array(["a", "a", "b", "a"])
    prior = NormalInverseWishart(mean=[0.25 * unit, -unit], mean_rows=0.5)
    model = GenerativeClassifier(
        Gaussian("identity", prior=prior), {"a": 0.5, "b": 0.25, "c": 0.25}, estimation="bayes"
    ).fit(X, y)
    expected = 3.0 * np.log(0.5) + np.log(0.25)
    for rows in (X[y == "a"], X[y == "b"]):
        n = len(rows)
        for j, mean in enumerate((0.25 * unit, -unit)):
            expected += stats.multivariate_normal(np.full(n, mean), np.eye(n) + 2.0).logpdf(rows[:, j])
    assert_allclose(model.log_evidence_, expected, rtol=1e-12)


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
def test_the_evidence_of_one_row_per_class_is_the_prior_predictive(covariance: str) -> None:
    """A Student t with ν0 − d + 1 degrees for full covariances, and with ν0 for others."""
    X, nu, kappa, mean, scale = np.array([[0.3, -1.0], [2.0, 1.5]]), 2.0, 0.7, np.array([0.5, -0.5]), 1.7
    prior = NormalInverseWishart(mean=mean, mean_rows=kappa, degrees=nu, scale=scale)
    model = GenerativeClassifier(Gaussian(covariance, shared=False, prior=prior), {0: 0.25, 1: 0.75}, "bayes")
    degrees = nu - 1.0 if covariance == "full" else nu
    shape = scale * (1.0 + 1.0 / kappa) / degrees
    if covariance == "diagonal":
        expected = stats.t(nu, mean, np.sqrt(shape)).logpdf(X).sum()
    else:
        expected = stats.multivariate_t(mean, shape * np.eye(2), df=degrees).logpdf(X).sum()
    assert_allclose(model.fit(X, [0, 1]).log_evidence_, expected + np.log(0.25 * 0.75), rtol=1e-12)


NONE: list[tuple[Any, str]] = [
    (LinearDiscriminant(), "estimation='mle'"),
    (LinearDiscriminant(estimation="map"), "estimation='map'"),
    (LinearDiscriminant(estimation="bayes", prior=NormalInverseWishart.reference()), "improper"),
    (LinearDiscriminant(estimation="bayes", prior=NormalInverseWishart(degrees=0.5)), "improper"),
    (LinearDiscriminant(estimation="bayes", prior=NormalInverseWishart(scale=0.0)), "improper"),
    (NaiveBayes(Gaussian(prior=NormalInverseWishart(scale=0.0))), "its scale is 0"),
    (NaiveBayes(Gaussian("spherical", prior=NormalInverseWishart(scale=0.0))), "its scale is 0"),
    (NaiveBayes(VonMises()), "VonMises does not implement _log_evidence"),
    (NaiveBayes(Gamma()), "Gamma"),
    (NaiveBayes(Beta()), "Beta"),
    (NaiveBayes(Poisson("row totals")), "exposure"),
    (NaiveBayes(Multinomial(complement=True)), "complement"),
]


def test_there_is_no_evidence_without_a_proper_conjugate_prior() -> None:
    for model, why in NONE:
        X = COUNTS + 1.0 if not isinstance(getattr(model, "families", None), Beta) else (COUNTS + 1.0) / 50.0
        fitted = model.fit(X, Y)
        assert not hasattr(fitted, "log_evidence_")
        with pytest.raises(AttributeError, match=why):
            fitted.log_evidence_  # noqa: B018


def test_weights_count_rows() -> None:
    weights = np.random.default_rng(0).integers(0, 3, N)
    rows = np.repeat(np.arange(N), weights)
    for family, X in CASES:
        ours = GenerativeClassifier(family).fit(X, Y, weights).log_evidence_
        assert_allclose(ours, GenerativeClassifier(family).fit(X[rows], Y[rows]).log_evidence_, rtol=1e-10)
