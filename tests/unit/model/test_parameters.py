"""Parameters with standard errors: against numerical Hessians, posteriors of SciPy, and least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import likely
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
    GenerativeRegressor,
    Geometric,
    HybridClassifier,
    LinearDiscriminant,
    LogNormal,
    MixtureModel,
    Multinomial,
    NaiveBayes,
    NearestPrototype,
    NegativeBinomial,
    NormalInverseWishart,
    Poisson,
    QuadraticDiscriminant,
    SoftmaxRegression,
    VonMises,
)

RNG = np.random.default_rng(0)
Y = np.arange(120) % 2
X = RNG.gamma(3.0 + Y[:, None], size=(120, 2))
WEIGHTS = RNG.integers(1, 4, 120)


def entry(frame: Any, label: Any, column: str, parameter: str) -> tuple[float, float]:
    """Value and standard error."""
    found = frame[(frame["class"] == label) & (frame["column"] == column) & (frame["parameter"] == parameter)]
    assert len(found) == 1
    return float(found["value"].iloc[0]), float(found["standard_error"].iloc[0])


def hessian_errors(log_likelihood: Callable[[Any], float], at: Any) -> Any:
    """Square roots of the diagonal of the inverse negative Hessian, by differences."""
    at = np.asarray(at, dtype=float)
    size, steps = len(at), 1e-4 * np.maximum(np.abs(at), 1e-2)
    hessian = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            a, b = np.eye(size)[i] * steps[i], np.eye(size)[j] * steps[j]
            corners = log_likelihood(at + a + b) - log_likelihood(at + a - b)
            corners -= log_likelihood(at - a + b) - log_likelihood(at - a - b)
            hessian[i, j] = corners / (4.0 * steps[i] * steps[j])
    return np.sqrt(np.diag(np.linalg.inv(-hessian)))


# Maximum likelihood.

COUNTS, FRACTIONS, TURNS = np.round(X), X / (1.0 + X), np.mod(RNG.vonmises(1.0, 2.0, (120, 2)), 2 * np.pi)
LIKELIHOODS: dict[str, tuple[Any, Any, list[str], Callable[..., Any]]] = {
    "Bernoulli": (Bernoulli(), (X > 3.0).astype(int), ["probability"], scipy.stats.bernoulli.logpmf),
    "Poisson": (Poisson(), COUNTS, ["rate"], scipy.stats.poisson.logpmf),
    "Geometric": (Geometric(), COUNTS, ["probability"], lambda x, p: scipy.stats.geom.logpmf(x + 1, p)),
    "NegativeBinomial": (
        NegativeBinomial(2.5),
        COUNTS,
        ["probability"],
        lambda x, p: scipy.stats.nbinom.logpmf(x, 2.5, p),
    ),
    "Exponential": (Exponential(), X, ["rate"], lambda x, r: scipy.stats.expon.logpdf(x, scale=1.0 / r)),
    "Gamma": (Gamma(), X, ["shape", "rate"], lambda x, a, r: scipy.stats.gamma.logpdf(x, a, scale=1.0 / r)),
    "Gamma, shape given": (Gamma(2.0), X, ["rate"], lambda x, r: scipy.stats.gamma.logpdf(x, 2.0, scale=1.0 / r)),
    "Beta": (Beta(), FRACTIONS, ["alpha", "beta"], scipy.stats.beta.logpdf),
    "VonMises": (
        VonMises(),
        TURNS,
        ["direction", "concentration"],
        lambda x, m, k: scipy.stats.vonmises.logpdf(x, k, loc=m),
    ),
    "Gaussian": (
        Gaussian("diagonal"),
        X,
        ["mean", "variance"],
        lambda x, m, v: scipy.stats.norm.logpdf(x, m, np.sqrt(v)),
    ),
    "LogNormal": (
        LogNormal(),
        X,
        ["mean of the logarithm", "variance of the logarithm"],
        lambda x, m, v: scipy.stats.norm.logpdf(np.log(x), m, np.sqrt(v)),
    ),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_errors_of_maximum_likelihood_are_those_of_the_hessian(name: str) -> None:
    family, rows, parameters, log_density = LIKELIHOODS[name]
    frame = NaiveBayes(family, estimation="mle").fit(rows, Y, sample_weight=WEIGHTS).parameters()
    for label in (0, 1):
        mine, weights = rows[label == Y], WEIGHTS[label == Y]
        for j, column in enumerate(("x0", "x1")):
            values, errors = np.transpose([entry(frame, label, column, parameter) for parameter in parameters])

            def log_likelihood(at: Any, x: Any = mine[:, j], w: Any = weights) -> float:
                return float(w @ log_density(x, *at))

            expected = hessian_errors(log_likelihood, values)
            assert_allclose(errors, expected, rtol=1e-4)


def test_errors_of_a_shared_shape_are_those_of_the_hessian_of_all_classes() -> None:
    frame = NaiveBayes(Gamma("shared"), estimation="mle").fit(X, Y).parameters()
    shape, shape_error = entry(frame, 0, "x0", "shape")
    rates, rate_errors = np.transpose([entry(frame, label, "x0", "rate") for label in (0, 1)])

    def log_likelihood(at: Any) -> float:
        parts = (scipy.stats.gamma.logpdf(X[k == Y, 0], at[0], scale=1.0 / at[1 + k]).sum() for k in (0, 1))
        return float(sum(parts))

    assert_allclose([shape_error, *rate_errors], hessian_errors(log_likelihood, [shape, *rates]), rtol=1e-4)


@pytest.mark.parametrize("shared", [False, True])
def test_errors_of_a_full_covariance_are_those_of_the_hessian(shared: bool) -> None:
    rows = X @ np.array([[1.0, 0.4], [0.2, 1.0]])
    model = GenerativeClassifier(Gaussian(shared=shared), estimation="mle").fit(rows, Y)
    frame = model.parameters()
    names = [("x0", "mean"), ("x1", "mean"), ("x0", "variance"), ("x0", "covariance with x1"), ("x1", "variance")]
    first, second = (np.transpose([entry(frame, k, *name) for name in names]) for k in (0, 1))

    def log_likelihood(at: Any) -> float:
        total = 0.0
        for k in (0, 1) if shared else (0,):
            mean, (a, b, c) = at[:2] if k == 0 else at[5:7], at[2:5]
            total += scipy.stats.multivariate_normal.logpdf(rows[k == Y], mean, [[a, b], [b, c]]).sum()
        return total

    at = np.concatenate([first[0], second[0][:2]]) if shared else first[0]
    errors = hessian_errors(log_likelihood, at)
    assert_allclose(first[1], errors[:5], rtol=1e-3)
    if shared:
        assert_allclose(second[1][:2], errors[5:], rtol=1e-3)
        assert_allclose(second[:, 2:], first[:, 2:], rtol=1e-12)


def test_proportions_have_binomial_errors() -> None:
    words = pd.DataFrame({"a": np.random.default_rng(1).choice(["u", "v", "w"], 120), "b": RNG.choice(["u", "v"], 120)})
    frame = NaiveBayes(Categorical(), estimation="mle").fit(words, Y).parameters()
    value, error = entry(frame, 1, "a", "probability of 'v'")
    assert_allclose([value, error], [(words.a[Y == 1] == "v").mean(), np.sqrt(value * (1 - value) / 60)])
    table = GenerativeClassifier({("a", "b"): Categorical()}, estimation="mle").fit(words, Y).parameters()
    value, error = entry(table, 1, "a, b", "probability of ('v', 'u')")
    expected = ((words.a == "v") & (words.b == "u"))[Y == 1].mean()
    assert_allclose([value, error], [expected, np.sqrt(value * (1 - value) / 60)])
    counts = NaiveBayes(Multinomial(), estimation="mle").fit(COUNTS, Y).parameters()
    value, error = entry(counts, 0, "x1", "probability")
    total = COUNTS[Y == 0].sum()
    assert_allclose([value, error], [COUNTS[Y == 0, 1].sum() / total, np.sqrt(value * (1 - value) / total)])
    prior = frame[frame["block"] == "class prior"]
    assert_allclose(prior["standard_error"], np.sqrt(0.25 / 120))


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
def test_errors_agree_with_simulations(covariance: str) -> None:
    """Estimates of 400 tables have the standard deviations that one table reports."""
    rng = np.random.default_rng(1)
    found, errors = [], []
    for _ in range(400):
        rows = rng.normal(size=(200, 2)) @ (1.3 * np.eye(2) if covariance == "spherical" else [[1.0, 0.5], [0.0, 0.8]])
        frame = GenerativeClassifier(Gaussian(covariance), estimation="mle").fit(rows, np.zeros(200)).parameters()
        frame = frame[frame["block"] != "class prior"]
        found.append(frame["value"].to_numpy())
        errors.append(frame["standard_error"].to_numpy())
    assert_allclose(np.std(found, axis=0), np.mean(errors, axis=0), rtol=0.15)


def test_shrunken_covariances_and_known_variances_have_no_errors() -> None:
    for model in (LinearDiscriminant(shrinkage=0.2), NearestPrototype()):
        frame = model.fit(X, Y).parameters()
        assert frame[frame["parameter"] == "variance"]["standard_error"].isna().all()
        assert frame[frame["parameter"] == "mean"]["standard_error"].notna().all()
    value, error = entry(NearestPrototype().fit(X, Y).parameters(), 0, "x0", "mean")
    assert_allclose([value, error], [X[Y == 0, 0].mean(), 1.0 / np.sqrt(60)])


# Posteriors.


@pytest.mark.parametrize("estimation", ["map", "bayes"])
def test_errors_are_posterior_standard_deviations(estimation: str) -> None:
    more = 1.0 if estimation == "map" else 0.0  # the prior of a mode has one more pseudo-count
    n, ones, total = 60, (X[Y == 0, 0] > 3.0).sum(), X[Y == 0, 0].sum()
    beta, gamma = BetaPrior(2.0, 3.0), GammaPrior(2.0, 1.5)

    def check(family: Any, rows: Any, parameter: str, posterior: Any) -> None:
        frame = NaiveBayes(family, estimation=estimation).fit(rows, Y).parameters()
        value, error = entry(frame, 0, "x0", parameter)
        assert_allclose(error, posterior.std(), rtol=1e-9)
        if estimation == "bayes":
            assert_allclose(value, posterior.mean(), rtol=1e-9)
        else:
            grid = np.linspace(max(value - 6 * error, 1e-9), value + 6 * error, 200_001)
            assert_allclose(value, grid[posterior.logpdf(grid).argmax()], atol=1e-3 * error)

    check(
        Bernoulli(prior=beta),
        (X > 3.0).astype(int),
        "probability",
        scipy.stats.beta(ones + 2.0 + more, n - ones + 3.0 + more),
    )
    counted = COUNTS[Y == 0, 0].sum()
    check(Geometric(beta), COUNTS, "probability", scipy.stats.beta(n + 2.0 + more, counted + 3.0 + more))
    check(
        NegativeBinomial(2.5, beta),
        COUNTS,
        "probability",
        scipy.stats.beta(2.5 * n + 2.0 + more, counted + 3.0 + more),
    )
    check(Poisson(prior=gamma), COUNTS, "rate", scipy.stats.gamma(counted + 2.0 + more, scale=1.0 / (n + 1.5)))
    check(Exponential(gamma), X, "rate", scipy.stats.gamma(n + 2.0 + more, scale=1.0 / (total + 1.5)))
    check(Gamma(2.0, gamma), X, "rate", scipy.stats.gamma(2.0 * n + 2.0 + more, scale=1.0 / (total + 1.5)))


def test_errors_of_proportions_are_those_of_a_dirichlet() -> None:
    words = pd.DataFrame({"a": np.random.default_rng(1).choice(["u", "v", "w"], 120)})
    counts = words.a[Y == 0].value_counts().reindex(["u", "v", "w"]).to_numpy()
    for estimation, alpha in (("bayes", counts + 0.7), ("map", counts + 1.7)):
        model = NaiveBayes(Categorical(smoothing=0.7), estimation=estimation, class_prior=Dirichlet(1.5))
        frame = model.fit(words, Y).parameters()
        posterior = scipy.stats.dirichlet(alpha)
        errors = [entry(frame, 0, "a", f"probability of {word!r}")[1] for word in "uvw"]
        assert_allclose(errors, np.sqrt(posterior.var()), rtol=1e-9)
        prior = frame[frame["block"] == "class prior"]["standard_error"]
        assert_allclose(prior, np.sqrt(scipy.stats.dirichlet([61.5, 61.5]).var()), rtol=1e-9)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("estimation", ["map", "bayes"])
def test_errors_of_gaussians_are_those_of_draws_from_the_posterior(shared: bool, estimation: str) -> None:
    prior = NormalInverseWishart(mean=1.0, mean_rows=2.0, degrees=6.0, scale=1.5)
    frame = GenerativeClassifier(Gaussian(shared=shared, prior=prior), estimation=estimation).fit(X, Y).parameters()
    degrees, scale, means, rows = 6.0, 1.5 * np.eye(2), [], []
    for k in (0, 1) if shared else (0,):
        mine = X[k == Y]
        centre, n = mine.mean(axis=0), len(mine)
        scale = scale + (mine - centre).T @ (mine - centre) + 2.0 * n / (2.0 + n) * np.outer(centre - 1.0, centre - 1.0)
        degrees += n
        means.append((2.0 + n * centre) / (2.0 + n))
        rows.append(2.0 + n)
    rng = np.random.default_rng(0)
    covariances = scipy.stats.invwishart(degrees, scale).rvs(100_000, random_state=rng)
    noise = np.einsum("nij,nj->ni", np.linalg.cholesky(covariances), rng.normal(size=(100_000, 2)))
    drawn = means[0] + noise / np.sqrt(rows[0])
    names = [("x0", "mean"), ("x1", "mean"), ("x0", "variance"), ("x0", "covariance with x1"), ("x1", "variance")]
    values, errors = np.transpose([entry(frame, 0, *name) for name in names])
    draws = np.column_stack([drawn, covariances[:, 0, 0], covariances[:, 0, 1], covariances[:, 1, 1]])
    assert_allclose(errors, draws.std(axis=0), rtol=0.02)
    if estimation == "bayes":
        assert_allclose(values, draws.mean(axis=0), atol=5.0 * errors.max() / np.sqrt(100_000))


@pytest.mark.parametrize("covariance", ["diagonal", "spherical"])
def test_errors_of_independent_columns_are_those_of_an_inverse_gamma(covariance: str) -> None:
    prior = NormalInverseWishart(mean=1.0, mean_rows=2.0, degrees=6.0, scale=1.5)
    frame = GenerativeClassifier(Gaussian(covariance, prior=prior)).fit(X, Y).parameters()
    mine = X[Y == 0]
    centre, n = mine.mean(axis=0), len(mine)
    squares = ((mine - centre) ** 2).sum(axis=0) + 2.0 * n / (2.0 + n) * (centre - 1.0) ** 2
    scale, degrees = (1.5 + squares, 6.0 + n) if covariance == "diagonal" else (1.5 + squares.sum(), 6.0 + 2 * n)
    posterior = scipy.stats.invgamma(degrees / 2.0, scale=np.broadcast_to(scale, (2,)) / 2.0)
    for j, column in enumerate(("x0", "x1")):
        assert_allclose(entry(frame, 0, column, "variance"), (posterior.mean()[j], posterior.std()[j]), rtol=1e-9)
        mean = (2.0 + n * centre[j]) / (2.0 + n)
        error = np.sqrt(posterior.mean()[j] / (2.0 + n))
        assert_allclose(entry(frame, 0, column, "mean"), (mean, error), rtol=1e-9)


# Estimators.


def test_every_estimator_has_a_tidy_frame() -> None:
    expected = ["class", "block", "column", "parameter", "value", "standard_error"]
    for estimator in (
        GenerativeClassifier(),
        NaiveBayes(),
        LinearDiscriminant(),
        QuadraticDiscriminant(),
        NearestPrototype(),
        MixtureModel(2, random_state=0),
        SoftmaxRegression(penalty=1.0),
        HybridClassifier(blend=0.5),
        GenerativeRegressor(),
        GenerativeRegressor(components=2, random_state=0),
    ):
        model = estimator.fit(X, Y) if not isinstance(estimator, GenerativeRegressor) else estimator.fit(X, X[:, 0] + Y)
        frame = model.parameters()
        assert list(frame.columns) == expected
        assert len(frame) > 2
        assert frame["value"].notna().all()


def test_models_fitted_by_em_have_values_without_errors() -> None:
    y = [None if i % 3 == 0 else label for i, label in enumerate(Y.tolist())]
    frame = GenerativeClassifier(Gaussian(), unlabeled_weight=1.0).fit(X, y).parameters()
    assert frame["standard_error"].isna().all()
    mixture = GenerativeClassifier(Gaussian(components=2)).fit(X, Y).parameters()
    weights = mixture[mixture["parameter"].str.startswith("weight")]
    assert_allclose(weights.groupby("class")["value"].sum(), 1.0)
    assert mixture["standard_error"].isna().all()


def test_weights_are_repeats() -> None:
    weighted = QuadraticDiscriminant().fit(X, Y, sample_weight=WEIGHTS).parameters()
    repeated = QuadraticDiscriminant().fit(np.repeat(X, WEIGHTS, axis=0), np.repeat(Y, WEIGHTS)).parameters()
    assert_allclose(weighted["standard_error"], repeated["standard_error"], rtol=1e-9)


def test_errors_follow_the_units_of_columns() -> None:
    plain = QuadraticDiscriminant().fit(X, Y).parameters()
    scaled = QuadraticDiscriminant().fit(X * [2.0**450, 1.0], Y).parameters()
    value, error = entry(plain, 0, "x0", "covariance with x1")
    assert_allclose(entry(scaled, 0, "x0", "covariance with x1"), (value * 2.0**450, error * 2.0**450), rtol=1e-9)


def test_constant_columns_have_no_parameters() -> None:
    rows = np.column_stack([X, np.ones(120)])
    for model in (QuadraticDiscriminant(), NaiveBayes(Gaussian())):
        frame = model.fit(rows, Y).parameters()
        assert "x2" not in set(frame["column"])


def test_frames_are_of_the_library_of_the_training_rows() -> None:
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    found = NaiveBayes().fit(frame, Y).parameters()
    assert isinstance(found, pl.DataFrame)
    assert found["column"].to_list()[-1] == "b"


def test_blocks_of_one_family_are_numbered() -> None:
    families = {"x0": Gaussian(), "x1": Gaussian()}
    frame = GenerativeClassifier(families).fit(X, Y).parameters()
    assert set(frame["block"]) == {"class prior", "Gaussian 1", "Gaussian 2"}


def test_errors_of_regressions_are_those_of_least_squares() -> None:
    y = X @ [1.0, -2.0] + np.random.default_rng(1).normal(size=120)
    frame = GenerativeRegressor(estimation="mle").fit(X, y).parameters()
    design = np.column_stack([np.ones(120), X])
    coefficients, rest, *_ = np.linalg.lstsq(design, y, rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * rest[0] / 120)
    found = frame[frame["parameter"] == "coefficient"]
    assert found["column"].tolist() == ["(intercept)", "x0", "x1"]
    assert_allclose(found["value"], coefficients, rtol=1e-8)
    assert_allclose(found["standard_error"], errors, rtol=1e-8)
    deviation = frame[frame["parameter"] == "standard deviation"].iloc[0]
    assert_allclose(
        [deviation["value"], deviation["standard_error"]], np.sqrt(rest[0] / 120) * np.array([1, 240**-0.5])
    )
    assert GenerativeRegressor().fit(X, y).parameters()["standard_error"].iloc[1:].isna().all()


def test_errors_of_softmax_regression_are_those_of_its_summary() -> None:
    model = SoftmaxRegression(penalty=0.5, reference=1).fit(X, Y)
    frame = model.parameters()
    assert set(frame["class"]) == {0}
    for each in model.summary().coefficients:
        value, error = entry(frame, each.label, each.column, "coefficient")
        assert each.error is not None
        assert_allclose(value, each.estimate, rtol=1e-10)
        assert_allclose(error, each.error, rtol=1e-10)


def test_loaded_models_have_the_same_parameters(tmp_path: Any) -> None:
    model = GenerativeClassifier().fit(X, Y)
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(likely.load(tmp_path / "model").parameters(), model.parameters())
