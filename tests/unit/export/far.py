"""Models of all families, and rows with values near the limits of floating-point numbers."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from likely import (
    Bernoulli,
    Beta,
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
    SoftmaxRegression,
    VonMises,
)
from likely.errors import LikelyError, LikelyWarning
from tests.unit.export.cases import Case

VALUES = (5e-324, 1e-320, 1e-170, 1e12, 1e16, 1e100, 1e140, 1e155, 1e300)
ESTIMATIONS = ("mle", "map", "bayes")
RNG = np.random.default_rng(0)
K = np.arange(90) % 3
Y = np.array(["a", "b", "c"])[K]
NUMBERS = RNG.normal(size=(90, 2)) * (1.0 + K[:, None]) + K[:, None]
TABLES = {
    "numbers": NUMBERS,
    "centred": np.r_[NUMBERS[:45], -NUMBERS[:45]],  # means near 0: tiny values have tiny squares
    "positive": np.exp(0.4 * NUMBERS),
    "parts": 1.0 / (1.0 + np.exp(-NUMBERS)),
    "counts": RNG.poisson(1.0 + 2.0 * K[:, None], (90, 2)).astype(float),
    "flags": (NUMBERS > 1.0).astype(float),
    "zeros": np.where(RNG.random((90, 2)) < 0.3, 0.0, np.exp(0.4 * NUMBERS)),
}


class Name(NamedTuple):
    """The name of a model, in the factors of which the default tests cover all pairs."""

    family: str
    estimation: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, self))


def each(family: Any, table: str, name: str) -> dict[Name, tuple[Any, str]]:
    return {Name(name, e): (GenerativeClassifier(family, estimation=e, calibration=None), table) for e in ESTIMATIONS}


OTHERS: dict[str, tuple[Any, str]] = {
    "naive-bayes": (NaiveBayes(), "numbers"),
    "automatic": (GenerativeClassifier(), "numbers"),
    "automatic-counts": (GenerativeClassifier(), "counts"),
    "automatic-positive": (GenerativeClassifier(), "positive"),
    "lda": (LinearDiscriminant(), "numbers"),
    "lda-bayes": (LinearDiscriminant(estimation="bayes"), "numbers"),
    "prototype": (NearestPrototype(covariance="full"), "numbers"),
    "softmax": (SoftmaxRegression(), "numbers"),
    "softmax-bayes": (SoftmaxRegression(estimation="bayes"), "numbers"),
    "complement": (GenerativeClassifier(Multinomial(complement=True, smoothing=1.0)), "counts"),
}
MODELS: dict[Name, tuple[Any, str]] = {
    **{Name(name): each for name, each in OTHERS.items()},
    **each(Gaussian("diagonal"), "numbers", "diagonal"),
    **each(Gaussian("diagonal"), "centred", "diagonal-centred"),
    **each(Gaussian("spherical"), "centred", "spherical"),
    **each(Gaussian(), "numbers", "full"),
    **each(Gaussian(), "centred", "full-centred"),
    **each(Gaussian(shared=True), "centred", "shared"),
    **each(LogNormal(), "positive", "log-normal"),
    **each(Gamma(), "positive", "gamma"),
    **each(Exponential(), "positive", "exponential"),
    **each(Beta(), "parts", "beta"),
    **each(VonMises(24), "numbers", "von-mises"),
    **each(Histogram(), "numbers", "histogram"),
    **each(Poisson(), "counts", "poisson"),
    **each({"u": Poisson("v")}, "positive-counts", "rates"),
    **each(Poisson("row totals"), "counts", "totals"),
    **each(NegativeBinomial(2.0), "counts", "negative-binomial"),
    **each(Geometric(), "counts", "geometric"),
    **each(Multinomial(), "counts", "multinomial"),
    **each(Bernoulli(), "flags", "bernoulli"),
    **each(PointMass(0.0, Exponential()), "zeros", "point-mass"),
}
TABLES["positive-counts"] = np.column_stack([TABLES["counts"][:, 0], TABLES["positive"][:, 0]])


@cache
def far_case(name: Name) -> Case:
    """A fitted model, and rows with a value in one column or in both, with either sign, also beside missing values."""
    model, table = MODELS[name]
    X = pd.DataFrame(TABLES[table], columns=["u", "v"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
    u, v = X.iloc[4]
    rows = [[u, v]]
    for value in VALUES:
        for x in (value, -value):
            rows += [[x, v], [u, x], [x, x], [x, -x], [x, np.nan], [np.nan, x]]
    return Case(model, pd.DataFrame(rows, columns=["u", "v"]))


@cache
def expected_of(name: Name) -> np.ndarray[Any, Any]:
    """The probabilities of `predict_proba`, NaN for rows that it rejects."""
    case = far_case(name)

    def probabilities(rows: pd.DataFrame) -> np.ndarray[Any, Any]:
        try:
            return np.asarray(case.model.predict_proba(rows))
        except LikelyError:
            if len(rows) == 1:
                return np.full((1, 3), np.nan)
        half = len(rows) // 2
        return np.vstack([probabilities(rows[:half]), probabilities(rows[half:])])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)  # of impossible rows, and of numbers that are unseen categories
        warnings.simplefilter("ignore", RuntimeWarning)  # of NumPy, where 1 / exposure overflows
        return probabilities(case.rows)


def assert_agree(name: Name, probabilities: np.ndarray[Any, Any], labels: list[Any] | None) -> None:
    """Rows have the probabilities of the model, or none at all, and then no label either."""
    expected, absent = expected_of(name), np.isnan(probabilities)
    assert (absent.any(axis=1) == absent.all(axis=1)).all()
    empty = absent.all(axis=1)
    rejected = np.isnan(expected).all(axis=1)
    compared = ~empty & ~rejected
    wrong = np.flatnonzero(compared & (np.abs(probabilities - expected).max(axis=1) > 1e-6))
    shown = [(far_case(name).rows.iloc[i].tolist(), probabilities[i], expected[i]) for i in wrong[:3]]
    assert not len(wrong), shown
    assert not empty[0]
    if labels is not None:
        assert [label is None for label in labels] == empty.tolist()


every_far_case = pytest.mark.parametrize("name", list(MODELS), ids=str)
