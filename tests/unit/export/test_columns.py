"""Columns that an export cannot read as the model does are refused, and the error names the remedy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from likely import (
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    LogNormal,
    NaiveBayes,
    NearestPrototype,
    PointMass,
    QuadraticDiscriminant,
    SoftmaxRegression,
)
from likely.errors import ExportError
from tests.unit.export.databases import IDENTIFIER, TABLE, in_duckdb, in_sqlite, probabilities_of
from tests.unit.export.node import run_module
from tests.unit.export.test_categories import writers
from tests.unit.export.test_javascript import objects
from tests.unit.export.test_onnx import run

RNG = np.random.default_rng(0)
Y = np.arange(60) % 2
SMALL = RNG.integers(0, 50, 60) + 20 * Y
Z = RNG.normal(size=60)
MODELS: dict[str, Any] = {
    "naive-bayes": NaiveBayes(Gaussian("diagonal"), calibration=None),
    "shared": GenerativeClassifier(Gaussian("diagonal", shared=True)),
    "lda": LinearDiscriminant(),
    "qda": QuadraticDiscriminant(estimation="bayes"),
    "prototype": NearestPrototype(),
    "softmax": SoftmaxRegression(),
}
TYPES = ["int64", "uint64", "Int64"]


def fitted(name: str, rows: pd.DataFrame) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name].fit(rows, Y)


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("dtype", TYPES)
def test_whole_numbers_that_doubles_do_not_distinguish_are_refused(name: str, dtype: str) -> None:
    rows = pd.DataFrame({"z": Z, "id": pd.Series(2**60 + SMALL, dtype=dtype)})
    for write in writers(fitted(name, rows)):
        with pytest.raises(ExportError, match=r"Column 'id' has whole numbers beyond 2\*\*53.* Subtract a constant"):
            write()


@pytest.mark.parametrize("family", [LogNormal(), PointMass(0.0, LogNormal())])
@pytest.mark.parametrize("base", [1e15, 2.0**60])
def test_logarithms_that_vary_by_few_digits_are_refused(family: Any, base: float) -> None:
    """The logarithm of ONNX Runtime is not that of NumPy in the last digit."""
    rows = pd.DataFrame({"v": base * (1.0 + 1e-9 * SMALL)})
    model = GenerativeClassifier({"v": family}, calibration=None).fit(rows, Y)
    for write in writers(model):
        with pytest.raises(ExportError, match="column 'v': the standard deviation of the logarithms"):
            write()


def test_constant_columns_that_change_predictive_probabilities_must_have_values() -> None:
    """DuckDB and PostgreSQL leave NULL out of the largest of some numbers."""
    model = SoftmaxRegression(estimation="bayes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(pd.DataFrame({"x": np.round(Z, 1), "c": 3.0}), Y)
    rows = pd.DataFrame({"x": [0.5, 0.5, 0.5], "c": [3.0, np.nan, np.inf]})
    for dialect, engine in (("duckdb", in_duckdb), ("sqlite", in_sqlite)):
        result = engine(model.to_sql(TABLE, dialect=dialect, keep=[IDENTIFIER]), rows)
        assert [row[1] is None for row in result] == [False, True, True]
    assert run(model, rows)[2].tolist() == [True, False, False]


@pytest.mark.parametrize("large", [0, 2**60])
def test_differences_from_an_origin_are_exported(large: int) -> None:
    """As the error suggests."""
    ids = large + SMALL
    rows = pd.DataFrame({"z": Z, "id": ids - ids.min()})
    model = fitted("naive-bayes", rows)
    expected = model.predict_proba(rows)
    for dialect, engine in (("duckdb", in_duckdb), ("sqlite", in_sqlite)):
        found = probabilities_of(engine(model.to_sql(TABLE, dialect=dialect, keep=[IDENTIFIER]), rows))
        assert_allclose(found, expected, rtol=0.0, atol=1e-12)
    assert_allclose(run(model, rows)[1], expected, rtol=0.0, atol=1e-12)
    results = run_module(model.to_javascript(), objects(rows))["results"]
    assert_allclose([each["probabilities"] for each in results], expected, rtol=0.0, atol=1e-12)
