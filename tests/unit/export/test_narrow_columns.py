"""Columns whose means are many standard deviations from 0: parameters are large, and terms of scores cancel."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from likely import (
    Beta,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    Geometric,
    LinearDiscriminant,
    LogNormal,
    NearestPrototype,
    NegativeBinomial,
    Poisson,
    SoftmaxRegression,
)
from tests.unit.export.databases import IDENTIFIER, TABLE, in_duckdb, in_sqlite, probabilities_of

RNG = np.random.default_rng(0)
Y = np.arange(150) % 3
Z = RNG.normal(size=150) + Y
DAYS = RNG.uniform(1.0, 3.0, 150)
COLUMNS = {
    "times": 1.7e9 * (1.0 + Z / 1e4),
    "parts": 0.5 + 0.1 * Z / 1e5,
    "counts": np.round(1e6 + 1e3 * Z),
    "millions": np.round(1e8 + 1e4 * Z),
    "rates": np.round(DAYS * (1e6 + 1e3 * Z)),
}
CASES: dict[str, tuple[Any, str]] = {
    "gamma": (Gamma(), "times"),
    "shared-gamma": (Gamma("shared"), "times"),
    "log-normal": (LogNormal(), "times"),
    "beta": (Beta(), "parts"),
    "poisson": (Poisson(), "counts"),
    "exposed": (Poisson("days"), "rates"),
    "negative-binomial": (NegativeBinomial(2.0), "counts"),
    "dispersed": (NegativeBinomial(1e9), "counts"),
    "geometric": (Geometric(), "counts"),
}


def assert_statements_agree(model: Any, rows: pd.DataFrame, atol: float) -> None:
    expected = model.predict_proba(rows)
    for dialect, engine in (("duckdb", in_duckdb), ("sqlite", in_sqlite)):
        found = probabilities_of(engine(model.to_sql(TABLE, dialect=dialect, keep=[IDENTIFIER]), rows))
        assert_allclose(found, expected, rtol=0.0, atol=atol)


@pytest.mark.parametrize("estimation", ["map", "bayes"])
@pytest.mark.parametrize("name", list(CASES))
def test_large_parameters_do_not_cost_digits(name: str, estimation: str) -> None:
    family, column = CASES[name]
    rows = pd.DataFrame({column: COLUMNS[column], **({"days": DAYS} if name == "exposed" else {})})
    model = GenerativeClassifier({column: family}, estimation=estimation, calibration=None).fit(rows, Y)
    assert 0.1 < model.predict_proba(rows).max(axis=1).min() < 0.9
    assert_statements_agree(model, rows, atol=1e-9)


@pytest.mark.parametrize("family", [Poisson(), NegativeBinomial(1e9)])
def test_plug_in_densities_of_larger_counts_keep_their_digits(family: Any) -> None:
    rows = pd.DataFrame({"n": COLUMNS["millions"]})
    assert_statements_agree(GenerativeClassifier({"n": family}, estimation="map").fit(rows, Y), rows, atol=1e-10)


def test_classes_of_small_counts_keep_their_digits_beside_one_of_large_counts() -> None:
    counts = np.where(Y == 2, 1e6 + 1e3 * np.round(Z), RNG.poisson(0.1 + 0.1 * Y)).astype(float)
    rows = pd.DataFrame({"n": counts})
    assert_statements_agree(GenerativeClassifier({"n": Poisson()}, estimation="map").fit(rows, Y), rows, atol=1e-12)


@pytest.mark.parametrize("distant", [0, 2])
@pytest.mark.parametrize("name", ["gamma", "beta"])
def test_narrow_classes_keep_their_digits_beside_a_distant_one(name: str, distant: int) -> None:
    """No value is near the means of all classes, so that each class has a centre of its own."""
    family, top = (Gamma(), 1e3) if name == "gamma" else (Beta(), 0.5)
    rows = pd.DataFrame({"x": np.where(distant == Y, 1e-3 * top * np.exp(0.3 * Z), top * (1.0 + Z / 1e4))})
    model = GenerativeClassifier({"x": family}, estimation="mle", calibration=None).fit(rows, Y)
    assert model.predict_proba(rows).max(axis=1).min() < 0.9
    assert_statements_agree(model, rows, atol=1e-11)


POOLED = {
    "lda": LinearDiscriminant(),
    "prototype": NearestPrototype(),
    "diagonal": GenerativeClassifier(Gaussian("diagonal", shared=True), estimation="mle", calibration=None),
}
every_pooled = pytest.mark.parametrize("name", list(POOLED))


def assert_targets_agree(model: Any, rows: pd.DataFrame) -> None:
    """In SQL and in ONNX."""
    assert_statements_agree(model, rows, atol=1e-12)
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    (found,) = session.run(["probabilities"], {"X": rows.to_numpy()})
    assert_allclose(found, model.predict_proba(rows), rtol=0.0, atol=1e-12)


@every_pooled
def test_pooled_covariances_keep_their_digits_where_means_are_far_from_0(name: str) -> None:
    """The middle between two means is no number of the same precision as the rows."""
    rows = pd.DataFrame({"u": 1e9 + Z, "v": 1e9 - 2.0 * Z + RNG.normal(size=150)})
    assert_targets_agree(clone(POOLED[name]).fit(rows, Y), rows)


@every_pooled
def test_pooled_covariances_keep_their_digits_beside_a_distant_class(name: str) -> None:
    """Scores relative to a class that is 1e6 standard deviations away are as large as 1e12."""
    away = np.where(Y == 0, 0.0, 1e6)
    rows = pd.DataFrame({"u": away + Z, "v": away - 2.0 * Z + RNG.normal(size=150)})
    assert_targets_agree(clone(POOLED[name]).fit(rows, Y), rows)


@pytest.mark.parametrize("unit", [1e6, 1e12])
def test_predictive_regressions_keep_their_digits_in_columns_of_very_different_units(unit: float) -> None:
    """The covariance matrix of the coefficients has entries that differ by the square of the units."""
    rows = pd.DataFrame({"u": Z + RNG.normal(size=150), "v": unit * (Z + RNG.normal(size=150))})
    model = SoftmaxRegression(estimation="bayes").fit(rows, Y)
    assert_targets_agree(model, rows)
