"""Posteriors are numbers for very distant rows with missing values, and for classes without any counts."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from likely import (
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    LogNormal,
    NaiveBayes,
    NearestPrototype,
    Poisson,
    QuadraticDiscriminant,
)
from likely.errors import CellError, NotEstimableError

A = np.random.default_rng(0).normal(size=(40, 3))
Y = np.arange(40) % 2
DISTANT = [
    [np.nan, 1e140, 0.0],
    [1e130, np.nan, 0.0],
    [np.nan, -1e120, 1e120],
    [np.nan, np.nan, 1e139],
    [1e100, np.nan, np.nan],
]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
@pytest.mark.parametrize(
    "make",
    [
        *(lambda e, c=c: NearestPrototype(c, estimation=e) for c in ("spherical", "full")),
        *(
            lambda e, c=c, s=s: GenerativeClassifier(Gaussian(c, shared=s), estimation=e)
            for c in ("full", "diagonal", "spherical")
            for s in (True, False)
        ),
        lambda e: LinearDiscriminant(estimation=e),
        lambda e: QuadraticDiscriminant(estimation=e),
        lambda e: NaiveBayes(Gaussian(), estimation=e),
        lambda e: NaiveBayes(LogNormal(), estimation=e),
        lambda e: GenerativeClassifier({(0, 1): Gaussian(), 2: Gaussian()}, estimation=e),
    ],
)
def test_a_distant_row_with_missing_values_has_the_posterior_of_its_observed_columns(
    make: Any, estimation: str
) -> None:
    model = make(estimation)
    positive = isinstance(getattr(model, "families", None), LogNormal)
    rows = np.abs(DISTANT) + 1e-3 if positive else np.array(DISTANT)
    model.fit(np.exp(A) if positive else A, Y)
    for method in ("predict_proba", "predict_log_proba", "log_joint", "log_density", "decision_function"):
        assert not np.isnan(getattr(model, method)(rows)).any(), method
    for row in rows:
        observed = np.flatnonzero(~np.isnan(row))
        joint = sum(
            block.conditionals.marginal(np.flatnonzero(np.isin(block.index, observed))).scores(
                row[None, block.index[np.isin(block.index, observed)]]
            )
            for block in model.model_.blocks
            if np.isin(block.index, observed).any()
        )
        learnt = getattr(model, "calibration_", None)  # exponent and intercepts of the default under "bayes"
        exponent, intercepts = (1.0, 0.0) if learnt is None else (learnt.exponent, learnt.intercepts)
        assert learnt is None or estimation == "bayes"
        joint = exponent * joint[:, 0] + model.model_.log_prior + intercepts
        expected = np.exp(joint - joint.max())
        assert_allclose(model.predict_proba([row])[0], expected / expected.sum(), atol=1e-6)


def test_a_class_without_any_counts_determines_no_rates_relative_to_row_totals() -> None:
    X, y = [[1, 1], [0, 0]], [0, 1]
    with pytest.raises(NotEstimableError, match=r"'x0' has no exposure in class 1, .*'bayes' or 'map'"):
        NaiveBayes(Poisson("row totals"), estimation="mle").fit(X, y)
    for estimation in ("map", "bayes"):
        posterior = NaiveBayes(Poisson("row totals"), estimation=estimation).fit(X, y).predict_proba(X)
        assert_allclose(posterior.sum(axis=1), 1.0)
    model = NaiveBayes(Poisson("row totals"), estimation="mle").fit([[1, 1], [2, 0], [3, 1]], [0, 1, 1])
    assert_allclose(model.predict_proba([[0, 0]]), model.class_prior_[None])
    assert not np.isnan(model.left_out_proba([[1, 1], [2, 0], [3, 1]], [0, 1, 1])).any()


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
def test_rows_with_several_infinite_values_are_errors(covariance: Any, shared: bool, estimation: Any) -> None:
    model = GenerativeClassifier(Gaussian(covariance, shared=shared), estimation=estimation).fit(A, Y)
    for row in ([np.inf, np.inf, 0.0], [np.inf, -np.inf, 0.0], [-np.inf, -np.inf, np.nan], [np.inf, np.inf, np.inf]):
        with pytest.raises(CellError, match="is not a finite number"):
            model.predict_proba([A[0], row])


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("size", [-1025, -1030, -1074])
@pytest.mark.parametrize("make", [LinearDiscriminant, QuadraticDiscriminant, lambda: GenerativeClassifier(Gaussian())])
def test_subnormal_numbers_with_missing_values_have_the_predictions_of_larger_numbers(make: Any, size: int) -> None:
    rng = np.random.default_rng(0)
    X = np.ldexp(np.where(rng.random(A.shape) < 0.3, 0.0, np.rint(2.0 * A)), size)
    X[rng.random(A.shape) < 0.1] = np.nan
    found = make().fit(X, Y).predict_proba(X)
    larger = np.ldexp(X, -size)
    assert_allclose(found, make().fit(larger, Y).predict_proba(larger), atol=1e-6)
