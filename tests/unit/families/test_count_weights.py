"""Multinomial distributions of weights: real numbers instead of counts."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.naive_bayes import ComplementNB, MultinomialNB

from likely import GenerativeClassifier, Multinomial, NaiveBayes
from likely.errors import InputError
from likely.numerics.count_densities import negative_binomial_log_density, poisson_log_density

Floats = NDArray[np.float64]
ESTIMATIONS = ("mle", "map", "bayes")


def weights(rows: int = 60, scale: float = 1.0) -> tuple[Floats, NDArray[np.intp]]:
    """Fractions, many of them 0, and one empty row."""
    rng = np.random.default_rng(4)
    X = scale * rng.gamma(0.4, 2.0, (rows, 6)) * (rng.random((rows, 6)) < 0.6)
    X[0] = 0.0
    return X, np.arange(rows) % 3


def model(estimation: str) -> NaiveBayes:
    return NaiveBayes(Multinomial(0.5), estimation=estimation, class_prior="uniform", calibration=None)


def log_likelihood(estimation: str, X: Floats, y: NDArray[np.intp], rows: Floats) -> Floats:
    """From the formulas, (rows, classes): ∏ p_j^x_j, or its mean under the Dirichlet posterior of p."""
    s = 0.0 if estimation == "mle" else 0.5
    alpha = np.array([X[y == k].sum(axis=0) for k in range(3)]) + (0.5 if estimation == "mle" else s)
    total = rows.sum(axis=1)[:, None]
    if estimation != "bayes":
        return np.asarray(rows @ np.log(alpha / alpha.sum(axis=1, keepdims=True)).T)
    parts = gammaln(alpha + rows[:, None]) - gammaln(alpha)
    mass = alpha.sum(axis=1)
    return np.asarray(parts.sum(axis=2) - gammaln(mass + total) + gammaln(mass))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_probabilities_of_weights_follow_bayes_rule(estimation: str, scale: float) -> None:
    X, y = weights(scale=scale)
    log_p = log_likelihood(estimation, X, y, X)
    fitted = model(estimation).fit(X, y)
    assert_allclose(fitted.predict_proba(X), softmax(log_p, axis=1), rtol=1e-9, atol=1e-12)
    assert_allclose(fitted.predict_proba(csr_array(X)), softmax(log_p, axis=1), rtol=1e-9, atol=1e-12)
    coefficient = gammaln(X.sum(axis=1) + 1.0) - gammaln(X + 1.0).sum(axis=1)
    density = np.logaddexp.reduce(log_p, axis=1) - np.log(3.0) + coefficient
    assert_allclose(fitted.log_density(X), density, rtol=1e-9, atol=1e-9)
    explanation = fitted.explain(X[:5])
    assert_allclose(explanation.evidence.sum(axis=2) + explanation.offset, fitted.log_joint(X[:5]))


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_leave_one_out_of_weights_equals_refitting(estimation: str) -> None:
    X, y = weights()
    held_out = model(estimation).fit(X, y).left_out_proba(X, y)
    for i in (0, 1, 7):
        rest = np.arange(len(X)) != i
        again = model(estimation).fit(X[rest], y[rest]).predict_proba(X[i : i + 1])[0]
        assert_allclose(held_out[i], again, atol=1e-12)


def test_weights_can_be_forgotten() -> None:
    X, y = weights()
    kept = model("map").fit(X, y).forget(X[40:], y[40:])
    assert_allclose(kept.predict_proba(X), model("map").fit(X[:40], y[:40]).predict_proba(X), atol=1e-12)


@pytest.mark.parametrize(("complement", "peer"), [(False, MultinomialNB(alpha=0.3)), (True, ComplementNB(alpha=0.3))])
def test_tf_idf_has_the_probabilities_of_scikit_learn(complement: bool, peer: MultinomialNB) -> None:
    texts = ["free prize call now", "call me at home", "prize draw now now", "home tonight then", "win a prize"]
    y = np.array([1, 0, 1, 0, 1])
    X = TfidfVectorizer().fit_transform(texts)
    prior = "uniform" if complement else [0.4, 0.6]
    option = Multinomial(0.3, complement=complement)
    fitted = GenerativeClassifier(option, estimation="map", class_prior=prior, calibration=None).fit(X, y)
    assert_allclose(fitted.predict_proba(X), peer.fit(X, y).predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_models_of_weights_can_be_calibrated_by_scikit_learn(method: str) -> None:
    X, y = weights(120)
    calibrated = CalibratedClassifierCV(NaiveBayes(Multinomial()), method=method, cv=3).fit(X, y, np.ones(len(y)))
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)


def test_weights_are_neither_negative_nor_missing() -> None:
    X, y = weights()
    for value, words in (
        (-0.5, r"row 3: -0\.5 is not a count or a weight \(a finite number >= 0\) \(Multinomial\)"),
        (np.nan, "row 3.*missing"),
    ):
        wrong = X.copy()
        wrong[3, 1] = value
        with pytest.raises(InputError, match=words):
            NaiveBayes(Multinomial()).fit(wrong, y)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_statements_of_databases_score_weights(estimation: str) -> None:
    X, y = weights()
    fitted = model(estimation).fit(X, y)
    names = [f"x{j}" for j in range(6)]
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE words ({', '.join(f'{name} REAL' for name in names)})")
        connection.executemany(f"INSERT INTO words VALUES ({', '.join('?' * 6)})", X[1:9].tolist())
        found = connection.execute(fitted.to_sql("words", dialect="sqlite")).fetchall()
    assert_allclose([row[1:4] for row in found], fitted.predict_proba(X[1:9]), atol=1e-9)


def test_count_densities_extend_to_fractions_by_gamma_functions() -> None:
    x = np.array([0.0, 1e-300, 1e-8, 0.3, 0.999, 1.0, 1.5, 40.2])
    expected = x * np.log(2.5) - 2.5 - gammaln(x + 1.0)
    assert_allclose(poisson_log_density(x, np.full(len(x), 2.5)), expected, rtol=1e-12, atol=1e-12)
    r, odds = 1.7, 0.4
    expected = gammaln(x + r) - gammaln(r) - gammaln(x + 1.0) + r * np.log(odds / (1 + odds)) - x * np.log1p(odds)
    found = negative_binomial_log_density(x, np.full(len(x), r), np.full(len(x), odds))
    assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
