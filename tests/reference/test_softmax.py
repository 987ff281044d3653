"""Softmax regression beside R's glm, multinom and vglm, and beside scikit-learn's LogisticRegression."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from likely import SoftmaxRegression
from likely.typing import AnyArray, Array
from tests.helpers import load_reference, load_table

MEASURES = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


def rows_of(name: str) -> tuple[pd.DataFrame, AnyArray]:
    """The rows and labels that a file was made from."""
    if name.startswith("iris"):
        table = load_table("iris")
        if "versicolor" in name:
            table = table.iloc[50:]
        X = table[["Sepal.Length"]] if "sepal" in name else table.drop(columns="Species")
        return X, table["Species"].to_numpy()
    if name.startswith("pima"):
        table = load_table("pima_missing").dropna()
        return table.drop(columns="diabetes"), table["diabetes"].to_numpy()
    if name.startswith("vowel"):
        table = load_table("vowel-train")
        return table[[f"x.{i}" for i in range(1, 11)]], table["y"].to_numpy()
    table = load_table("penguins")
    if "sex" in name:
        table = table.dropna(subset=[*MEASURES, "sex"])
        X = table[MEASURES].assign(
            **{f"species{s}": (table["species"] == s).astype(float) for s in ("Chinstrap", "Gentoo")}
        )
        return X, table["sex"].to_numpy()
    table = table.dropna(subset=MEASURES)
    return table[["flipper_length_mm", "body_mass_g"]], table["species"].to_numpy()


def told(model: SoftmaxRegression) -> tuple[Array, Array]:
    """Coefficients and errors of a summary, (classes − 1, intercept and columns)."""
    table = model.summary().coefficients
    few = len(model.classes_) - 1
    errors: Any = [c.error for c in table]
    return np.reshape([c.estimate for c in table], (few, -1)), np.reshape(errors, (few, -1))


@pytest.mark.parametrize(
    "name", ["iris-logistic-glm-versicolor-virginica", "penguins-logistic-glm-sex", "pima-logistic-glm"]
)
def test_logistic_regression_is_that_of_glm(name: str) -> None:
    expected = load_reference(name)
    X, y = rows_of(name)
    model = SoftmaxRegression(penalty=0).fit(X, y)
    assert model.classes_.tolist() == expected["levels"]
    estimates, errors = told(model)
    np.testing.assert_allclose(estimates[0], expected["coef"]["values"], rtol=1e-6)
    np.testing.assert_allclose(errors[0], expected["se"]["values"], rtol=1e-6)
    summary = model.summary()
    np.testing.assert_allclose(summary.deviance, expected["deviance"], rtol=1e-10)
    np.testing.assert_allclose(summary.null_deviance, expected["null_deviance"], rtol=1e-10)
    assert summary.aic is not None
    np.testing.assert_allclose(summary.aic, expected["aic"], rtol=1e-10)
    posterior = model.predict_proba(X)[np.array(expected["rows"]) - 1, 1]
    np.testing.assert_allclose(posterior, expected["prob_second_level"], rtol=1e-7, atol=1e-12)


SOFTMAX = ["iris-softmax-multinom-sepal-length", "penguins-softmax-multinom-mass-flipper", "pima-softmax-multinom"]


def errors_at(B: Array, X: Array) -> Array:
    """Standard errors at these coefficients, from the Fisher information, row by row."""
    rows = np.column_stack([np.ones(len(X)), X])
    scores = np.column_stack([np.zeros(len(X)), rows @ B.T])
    posterior = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))[:, 1:]
    information = np.zeros((B.size, B.size))
    for row, p in zip(rows, posterior, strict=True):
        information += np.kron(np.diag(p) - np.outer(p, p), np.outer(row, row))
    return np.asarray(np.sqrt(np.diag(np.linalg.inv(information)))).reshape(B.shape)


@pytest.mark.parametrize("name", [*SOFTMAX, "vowel-softmax-multinom"])
def test_softmax_regression_is_that_of_vglm(name: str) -> None:
    expected = load_reference(name)
    X, y = rows_of(name)
    model = SoftmaxRegression(penalty=0).fit(X, y)
    assert [str(label) for label in model.classes_] == expected["classes"]
    estimates, errors = told(model)
    few = len(expected["classes"]) - 1
    np.testing.assert_allclose(estimates, expected["vglm"]["coef"]["values"], rtol=1e-6)
    theirs = np.reshape(expected["vglm"]["se"]["values"], (-1, few)).T
    # The errors of the vowels are not those at vglm's own coefficients, but of an earlier step.
    np.testing.assert_allclose(errors, theirs, rtol=2e-5 if "vowel" in name else 1e-6)
    np.testing.assert_allclose(errors, errors_at(np.array(expected["vglm"]["coef"]["values"]), X.to_numpy()), rtol=1e-6)
    np.testing.assert_allclose(model.summary().deviance, expected["vglm"]["deviance"], rtol=1e-10)
    posterior = model.predict_proba(X)[np.array(expected["rows"]) - 1]
    np.testing.assert_allclose(posterior, expected["vglm"]["posterior"]["values"], atol=1e-7)


def test_weight_decay_of_multinom_is_a_penalty_against_the_reference_class_intercept_included() -> None:
    expected = load_reference("iris-softmax-multinom-decay0.1")
    X, y = rows_of("iris")
    ones = X.assign(one=1.0)[["one", *X.columns]]
    model = SoftmaxRegression(penalty=2.0 * expected["decay"], fit_intercept=False, reference="setosa").fit(ones, y)
    np.testing.assert_allclose(told(model)[0], expected["coef"]["values"], rtol=2e-6)
    np.testing.assert_allclose(model.coef_[1:], expected["coef"]["values"], rtol=2e-6)
    assert not model.coef_[0].any()
    posterior = model.predict_proba(ones)[np.array(expected["rows"]) - 1]
    np.testing.assert_allclose(posterior, expected["posterior"]["values"], atol=1e-7)
    likelihood = expected["train"]["sum_log_posterior_of_true_class"]
    np.testing.assert_allclose(model.summary().log_likelihood, likelihood, rtol=1e-7)


def test_the_vowels_have_the_errors_of_the_textbook() -> None:
    X, y = rows_of("vowel")
    model = SoftmaxRegression(penalty=0).fit(X, y)
    test = load_table("vowel-test")
    assert round(1.0 - model.score(X, y), 2) == 0.22
    assert round(1.0 - model.score(test[X.columns], test["y"]), 2) == 0.51


def objective(coef: Array, intercept: Array, X: Array, codes: AnyArray, penalty: float, weights: Any = 1.0) -> float:
    """Σ w·(log Σ exp a − a of the class) + penalty/2·‖w‖², written out."""
    scores = X @ coef.T + intercept
    if len(coef) == 1:
        scores = np.column_stack([np.zeros(len(X)), scores])
    loss = logsumexp(scores, axis=1) - scores[np.arange(len(X)), codes]
    return float(np.sum(weights * loss) + 0.5 * penalty * (coef**2).sum())


@pytest.mark.parametrize("name", ["iris", "wine", "vowel-train", "pima_missing"])
@pytest.mark.parametrize("penalty", [0.1, 1.0, 30.0])
def test_the_optimum_is_that_of_scikit_learn(name: str, penalty: float) -> None:
    table = load_table(name).dropna()
    target = {"iris": "Species", "wine": "class", "vowel-train": "y", "pima_missing": "diabetes"}[name]
    X = table.drop(columns=target).to_numpy(dtype=float)
    X = X / X.std(axis=0)
    y = table[target].to_numpy()
    codes = np.unique(y, return_inverse=True)[1]
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    ours = SoftmaxRegression(penalty=penalty).fit(X, y, sample_weight=weights)
    theirs = LogisticRegression(C=1.0 / penalty, solver="newton-cholesky", tol=1e-9, max_iter=1000)
    theirs.fit(X, y, sample_weight=weights)
    mine = objective(ours.coef_, ours.intercept_, X, codes, penalty, weights)
    best = objective(theirs.coef_, theirs.intercept_, X, codes, penalty, weights)
    assert mine <= best * (1.0 + 1e-12)
    np.testing.assert_allclose(mine, best, rtol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
