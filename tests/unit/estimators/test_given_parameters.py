"""Models from given parameters have the densities of the textbook, Bayes' rule, and no training rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import likely
from likely import (
    Bernoulli,
    Beta,
    Categorical,
    Exponential,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    Geometric,
    Histogram,
    LinearDiscriminant,
    LogNormal,
    Multinomial,
    NaiveBayes,
    NearestPrototype,
    NegativeBinomial,
    PointMass,
    Poisson,
    QuadraticDiscriminant,
    VonMises,
)
from likely.errors import InputError

PRIOR = [0.3, 0.7]
X = np.random.default_rng(0).normal(size=(7, 2))
MEANS = np.array([[0.0, 0.0], [2.0, 1.0]])
SHARED = np.array([[1.0, 0.5], [0.5, 2.0]])
OWN = np.array([SHARED, [[2.0, -0.3], [-0.3, 0.5]]])
COUNTS = np.array([0.0, 1.0, 2.0, 5.0, 17.0])
POSITIVE = np.array([0.01, 0.4, 1.0, 2.7, 30.0])

FAMILIES: dict[str, tuple[Any, dict[str, Any], Any, Callable[[int], Any]]] = {
    "poisson": (Poisson(), {"rate": [2.0, 5.0]}, COUNTS, lambda k: stats.poisson([2.0, 5.0][k]).logpmf),
    "geometric": (
        Geometric(),
        {"probability": [0.2, 0.6]},
        COUNTS,
        lambda k: stats.geom([0.2, 0.6][k], loc=-1).logpmf,
    ),
    "negative binomial": (
        NegativeBinomial(2.5),
        {"probability": [0.2, 0.6]},
        COUNTS,
        lambda k: stats.nbinom(2.5, [0.2, 0.6][k]).logpmf,
    ),
    "exponential": (
        Exponential(),
        {"rate": [0.5, 3.0]},
        POSITIVE,
        lambda k: stats.expon(scale=1 / [0.5, 3.0][k]).logpdf,
    ),
    "gamma": (
        Gamma(),
        {"shape": [2.0, 0.7], "rate": [1.5, 4.0]},
        POSITIVE,
        lambda k: stats.gamma([2.0, 0.7][k], scale=1 / [1.5, 4.0][k]).logpdf,
    ),
    "beta": (
        Beta(),
        {"alpha": [2.0, 0.7], "beta": [1.5, 4.0]},
        np.array([0.01, 0.3, 0.9]),
        lambda k: stats.beta([2.0, 0.7][k], [1.5, 4.0][k]).logpdf,
    ),
    "von Mises": (
        VonMises(period=2 * np.pi),
        {"direction": [1.0, 4.0], "concentration": [0.0, 2.5]},
        np.array([0.0, 1.0, 3.0, 6.0]),
        lambda k: stats.vonmises([1e-9, 2.5][k], loc=[1.0, 4.0][k]).logpdf,
    ),
    "bernoulli": (
        Bernoulli(),
        {"probability": [0.2, 1.0]},
        np.array([0.0, 1.0]),
        lambda k: stats.bernoulli([0.2, 1.0][k]).logpmf,
    ),
    "log-normal": (
        LogNormal(),
        {"mean": [0.3, -1.0], "variance": [1.0, 0.25]},
        POSITIVE,
        lambda k: stats.lognorm([1.0, 0.5][k], scale=np.exp([0.3, -1.0][k])).logpdf,
    ),
    "gaussian": (
        Gaussian(),
        {"mean": [0.3, -1.0], "variance": 0.25},
        X[:, 0],
        lambda k: stats.norm([0.3, -1.0][k], 0.5).logpdf,
    ),
    "point mass": (
        PointMass(0.0, Exponential()),
        {"probability": [0.4, 0.1], "rate": [0.5, 3.0]},
        np.array([0.0, 0.5, 2.0]),
        lambda k: (
            lambda x: np.where(
                x == 0.0,
                np.log([0.4, 0.1][k]),
                np.log([0.6, 0.9][k]) + stats.expon(scale=1 / [0.5, 3.0][k]).logpdf(x),
            )
        ),
    ),
}


def posterior(log_p: Any) -> Any:
    """Bayes' rule."""
    joint = np.log(PRIOR) + log_p
    return np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])


@pytest.mark.parametrize("make", [GenerativeClassifier, NaiveBayes])
@pytest.mark.parametrize("name", FAMILIES)
def test_densities_are_those_of_scipy_and_probabilities_follow_bayes_rule(name: str, make: Any) -> None:
    family, parameters, x, density = FAMILIES[name]
    model = make.from_parameters(PRIOR, families={"x": family}, parameters={"x": parameters})
    rows = pd.DataFrame({"x": x})
    log_p = np.column_stack([density(k)(x) for k in (0, 1)])
    assert_allclose(model.predict_proba(rows), posterior(log_p), atol=1e-8)
    for k in (0, 1):
        assert_allclose(model.log_density(rows, k), log_p[:, k], atol=1e-8)
    drawn, y = model.sample(5, random_state=0)
    assert drawn.shape == (5, 1)
    assert set(y) <= {0, 1}
    assert str(model.summary())
    assert_allclose(likely.load(saved(model)).predict_proba(rows), model.predict_proba(rows), rtol=0)


def saved(model: Any) -> Path:
    import tempfile

    path = Path(tempfile.mkdtemp()) / "model.likely"
    model.save(path)
    return path


@pytest.mark.parametrize(
    ("covariances", "matrices"),
    [
        (SHARED, [SHARED, SHARED]),
        (OWN, OWN),
        ([0.5, 2.0], [0.5 * np.eye(2), 2.0 * np.eye(2)]),
    ],
)
def test_gaussians_have_the_given_covariances(covariances: Any, matrices: Any) -> None:
    model = GenerativeClassifier.from_parameters(PRIOR, MEANS, covariances)
    log_p = np.column_stack([stats.multivariate_normal(m, S).logpdf(X) for m, S in zip(MEANS, matrices, strict=True)])
    assert_allclose(model.predict_proba(X), posterior(log_p), atol=1e-12)
    assert_allclose(model.log_density(X), np.logaddexp.reduce(np.log(PRIOR) + log_p, axis=1), atol=1e-12)
    incomplete = np.array([[np.nan, 0.3]])
    alone = [[stats.norm(m[1], np.sqrt(S[1][1])).logpdf(0.3) for m, S in zip(MEANS, matrices, strict=True)]]
    assert_allclose(model.predict_proba(incomplete), posterior(np.array(alone)), atol=1e-12)


def test_variances_of_independent_columns_are_given_for_each_class() -> None:
    means, variances = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0]]), np.array([[1.0, 2.0, 3.0], [0.5, 2.0, 1.0]])
    rows = np.random.default_rng(1).normal(size=(6, 3))
    model = NaiveBayes.from_parameters(PRIOR, means, variances)
    log_p = stats.norm(means[:, None], np.sqrt(variances)[:, None]).logpdf(rows).sum(axis=2).T
    assert_allclose(model.predict_proba(rows), posterior(log_p), atol=1e-12)


def test_the_coefficients_of_a_shared_covariance_are_those_of_the_textbook() -> None:
    model = LinearDiscriminant.from_parameters(PRIOR, MEANS, SHARED, classes=["a", "b"], columns=["u", "v"])
    w = np.linalg.solve(SHARED, MEANS[1] - MEANS[0])
    assert_allclose(model.coef_, [w], atol=1e-12)
    w0 = -0.5 * (MEANS[0] + MEANS[1]) @ w + np.log(PRIOR[1] / PRIOR[0])
    assert_allclose(model.intercept_, [w0], atol=1e-12)
    assert_allclose(model.means_, MEANS)
    assert_allclose(model.covariance_, SHARED)
    assert_allclose(model.boundary("b", "a").w, w, atol=1e-12)
    frame = pd.DataFrame(X, columns=["u", "v"])
    assert_allclose(model.predict_proba(frame[["v", "u"]]), model.predict_proba(frame))
    assert_allclose(model.with_prior([0.5, 0.5]).intercept_, [-0.5 * (MEANS[0] + MEANS[1]) @ w], atol=1e-12)
    assert_allclose(QuadraticDiscriminant.from_parameters(PRIOR, MEANS, OWN).covariance_, OWN)
    nearest = NearestPrototype.from_parameters("uniform", MEANS, np.eye(2))
    assert nearest.predict(X).tolist() == np.linalg.norm(X[:, None] - MEANS, axis=2).argmin(axis=1).tolist()


def test_tables_and_vectors_of_counts_have_the_given_probabilities() -> None:
    table = [[0.5, 0.3, 0.2], [0.1, 0.0, 0.9]]
    model = GenerativeClassifier.from_parameters(
        dict(zip("ab", PRIOR, strict=True)),
        families={"colour": Categorical(), ("p", "q", "r"): Multinomial()},
        parameters={
            "colour": {"categories": ["red", "green", "blue"], "probability": table},
            ("p", "q", "r"): {"probability": [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]},
        },
    )
    rows = pd.DataFrame({"colour": ["red", "green", "blue"], "p": [1, 0, 2], "q": [0, 0, 1], "r": [3, 0, 0]})
    with np.errstate(divide="ignore"):
        log_p = np.log(table).T + rows[["p", "q", "r"]].to_numpy() @ np.log([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]).T
    assert_allclose(model.predict_proba(rows), posterior(log_p), atol=1e-12)
    assert model.parameters().query("parameter == \"probability of 'blue'\"")["value"].tolist() == [0.2, 0.9]


def test_rates_are_multiplied_by_the_exposure() -> None:
    model = GenerativeClassifier.from_parameters(
        PRIOR, families={"visits": Poisson(exposure="days")}, parameters={"visits": {"rate": [2.0, 5.0]}}
    )
    rows = pd.DataFrame({"visits": [3, 0, 9], "days": [1.0, 2.0, 4.0]})
    log_p = stats.poisson(np.outer(rows["days"], [2.0, 5.0])).logpmf(rows["visits"].to_numpy()[:, None])
    assert_allclose(model.predict_proba(rows), posterior(log_p), atol=1e-12)


def test_classes_are_sorted_with_their_parameters() -> None:
    one = GenerativeClassifier.from_parameters([0.3, 0.7], MEANS, OWN, classes=["b", "a"])
    other = GenerativeClassifier.from_parameters([0.7, 0.3], MEANS[::-1], OWN[::-1], classes=["a", "b"])
    assert one.classes_.tolist() == ["a", "b"]
    assert_allclose(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize(
    "name", ["poisson", "geometric", "negative binomial", "exponential", "gamma", "beta", "log-normal"]
)
def test_parameters_of_a_fitted_model_give_its_probabilities(name: str) -> None:
    family, given, _, _ = FAMILIES[name]
    drawn, y = GenerativeClassifier.from_parameters(PRIOR, families={"x": family}, parameters={"x": given}).sample(
        300, random_state=1
    )
    frame = pd.DataFrame({"x": np.asarray(drawn)[:, 0]})
    fitted = GenerativeClassifier({"x": family}, estimation="mle").fit(frame, y)
    table = fitted.parameters().query("column == 'x'")
    found = {each: table.query("parameter.str.startswith(@each)")["value"].to_numpy() for each in given}
    again = GenerativeClassifier.from_parameters(fitted.class_prior_, families={"x": family}, parameters={"x": found})
    assert_allclose(again.predict_proba(frame), fitted.predict_proba(frame), atol=1e-12)


def test_means_and_covariances_of_a_fitted_discriminant_give_its_probabilities() -> None:
    rng = np.random.default_rng(2)
    y = np.arange(90) % 3
    rows = rng.normal(size=(90, 4)) @ rng.normal(size=(4, 4)) + y[:, None]
    for make in (LinearDiscriminant, QuadraticDiscriminant):
        fitted = make().fit(rows, y)
        again = make.from_parameters(fitted.class_prior_, fitted.means_, fitted.covariance_)
        assert_allclose(again.predict_proba(rows), fitted.predict_proba(rows), atol=1e-12)


def test_whatever_needs_training_rows_raises_an_error() -> None:
    model = GenerativeClassifier.from_parameters(PRIOR, MEANS, SHARED)
    y = [0, 1, 0, 1, 0, 1, 0]
    before = model.predict_proba(X)
    calls: list[Callable[[], Any]] = [
        lambda: model.partial_fit(X, y),
        lambda: model.forget(X, y),
        lambda: model.drop_class(0),
        lambda: model + model,
        lambda: model.left_out_proba(X, y),
        lambda: model.with_prior(None),
        lambda: model.calibrate(X, y),
    ]
    for call in calls:
        with pytest.raises(InputError, match="given parameters and has no training rows"):
            call()
    assert_allclose(model.predict_proba(X), before)
    assert_allclose(pickle.loads(pickle.dumps(model)).predict_proba(X), before)
    assert model.fit(X, y).statistics_.counts.rows.sum() == 7


POISSON: dict[str, Any] = {"families": {"x": Poisson()}}
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "not symmetric": (
        lambda: GenerativeClassifier.from_parameters(PRIOR, MEANS, [[1.0, 0.5], [0.4, 1.0]]),
        "covariance of 'x0' with 'x1' is 0.5, and that of 'x1' with 'x0' is 0.4",
    ),
    "not definite": (
        lambda: GenerativeClassifier.from_parameters(PRIOR, MEANS, [[1.0, 2.0], [2.0, 1.0]]),
        "not positive definite",
    ),
    "variance": (lambda: GenerativeClassifier.from_parameters(PRIOR, MEANS, [1.0, 0.0]), "variance is not positive"),
    "shape": (lambda: GenerativeClassifier.from_parameters(PRIOR, MEANS, np.eye(3)), r"shape \(3, 3\)"),
    "means": (
        lambda: GenerativeClassifier.from_parameters(PRIOR, [0.0, 1.0], np.eye(2)),
        r"means has the shape \(2,\)",
    ),
    "no covariances": (lambda: GenerativeClassifier.from_parameters(PRIOR, MEANS), "both means and covariances"),
    "prior": (lambda: GenerativeClassifier.from_parameters([0.5, 0.6], MEANS, SHARED), "class_prior"),
    "classes": (lambda: GenerativeClassifier.from_parameters(PRIOR, MEANS, SHARED, classes=["a", "a"]), "twice"),
    "columns": (lambda: GenerativeClassifier.from_parameters(PRIOR, MEANS, SHARED, columns=["u"]), "2 distinct names"),
    "discriminant": (lambda: LinearDiscriminant.from_parameters(PRIOR, MEANS, OWN), "LinearDiscriminant needs"),
    "name": (
        lambda: NaiveBayes.from_parameters(PRIOR, **POISSON, parameters={"x": {"mean": [1.0, 2.0]}}),
        "Poisson has the parameters 'rate', and not 'mean'",
    ),
    "range": (
        lambda: NaiveBayes.from_parameters(PRIOR, **POISSON, parameters={"x": {"rate": [1.0, -2.0]}}),
        "rate=-2.0 is not a finite number >= 0",
    ),
    "size": (
        lambda: NaiveBayes.from_parameters(
            PRIOR, **POISSON, parameters={"x": {"rate": [1.0, 2.0, 3.0]}}, classes=[0, 1]
        ),
        r"rate has the shape \(3,\), and there are 2 classes",
    ),
    "keys": (lambda: NaiveBayes.from_parameters(PRIOR, **POISSON, parameters={"y": {}}), "same keys"),
    "sum": (
        lambda: NaiveBayes.from_parameters(
            PRIOR,
            families={"x": Categorical()},
            parameters={"x": {"categories": ["a", "b"], "probability": [[0.5, 0.5], [0.5, 0.6]]}},
        ),
        r"class number 1, \[0.5, 0.6\], must be probabilities that sum to one; their sum is 1.1",
    ),
    "family": (
        lambda: NaiveBayes.from_parameters(PRIOR, families={"x": Histogram()}, parameters={"x": {"p": [0.1, 0.2]}}),
        "Histogram cannot be described by given parameters",
    ),
    "text": (
        lambda: NaiveBayes.from_parameters(PRIOR, **POISSON, parameters={"x": {"rate": ["a", "b"]}}),
        "not an array of numbers",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_parameters_are_named(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(InputError, match=words):
        call()
