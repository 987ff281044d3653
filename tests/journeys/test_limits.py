"""Numbers beyond 1e140 are refused where they are read; jobs that write files go on without the rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from likely import (
    Categorical,
    EvidenceClassifier,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    Imputer,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    NearestPrototype,
    QuadraticDiscriminant,
    SoftmaxRegression,
)
from likely.errors import CellError, InputError, LikelyWarning

RNG = np.random.default_rng(0)
CODES = np.repeat([0, 1, 2], 40)
Y = np.array(["a", "b", "c"])[CODES]
X = np.column_stack([RNG.normal(size=120) + CODES, RNG.exponential(size=120) * (1.0 + CODES), RNG.poisson(3.0 + CODES)])
FRAME = pd.DataFrame(X, columns=["u", "v", "count"])
LARGEST = np.finfo(np.float64).max
MAKERS: dict[str, Callable[[], Any]] = {
    "GenerativeClassifier": GenerativeClassifier,
    "NaiveBayes": NaiveBayes,
    "LinearDiscriminant": LinearDiscriminant,
    "QuadraticDiscriminant": QuadraticDiscriminant,
    "NearestPrototype": NearestPrototype,
    "SoftmaxRegression": SoftmaxRegression,
    "HybridClassifier": HybridClassifier,
    "EvidenceClassifier": EvidenceClassifier,
    "MixtureModel": lambda: MixtureModel(2, families=Gaussian()),
    "GenerativeRegressor": GenerativeRegressor,
    "Imputer": Imputer,
}
every_estimator = pytest.mark.parametrize("name", MAKERS)


class InChunks:
    """A source of frames."""

    def __init__(self, frames: list[Any]) -> None:
        self.frames = frames

    def chunks(self) -> Any:
        return iter(self.frames)


def targets(name: str) -> list[Any]:
    """What follows X in `fit`."""
    return [] if name in ("MixtureModel", "Imputer") else [X[:, 0] + 1.0 if name == "GenerativeRegressor" else Y]


def with_value(value: float, row: int = 7, column: int = 0) -> Any:
    rows = X.copy()
    rows[row, column] = value
    return rows


@pytest.mark.filterwarnings("error")
@every_estimator
@pytest.mark.parametrize("value", [1.01e140, -1e200, LARGEST])
def test_numbers_beyond_the_limit_are_refused_in_fits(name: str, value: float) -> None:
    for column in range(3):
        rows = with_value(value, column=column)
        with pytest.raises(CellError, match=rf"Column 'x{column}', row 7: .* is beyond 1e140.*Replace a code for"):
            MAKERS[name]().fit(rows, *targets(name))
        frame = pd.DataFrame(rows, columns=FRAME.columns)
        with pytest.raises(CellError, match=f"Column '{FRAME.columns[column]}', row 7: "):
            MAKERS[name]().fit(frame, *targets(name))


@pytest.mark.filterwarnings("ignore::likely.errors.NotConvergedWarning")
@every_estimator
def test_numbers_beyond_the_limit_are_refused_by_every_method(name: str) -> None:
    model, rows = MAKERS[name]().fit(X, *targets(name)), with_value(-1e200, row=11)
    methods = (
        "predict predict_proba predict_log_proba decision_function log_density log_joint explain impute typicality"
    )
    methods += " novelty transform decide adapt_prior score_samples"
    labeled = "score reliability partial_fit forget left_out_proba"
    found = [each for each in methods.split() if hasattr(model, each)]
    if name not in ("MixtureModel", "Imputer"):
        found += [each for each in labeled.split() if hasattr(model, each)]
    assert found
    for method in found:
        few = slice(10, 30) if method in labeled else slice(None)
        given = [each[few] for each in targets(name)] if method in labeled else []
        with pytest.raises(CellError, match=r"Column 'x0', row 11?: -1e\+200 is beyond 1e140"):
            getattr(model, method)(rows[few], *given)


def test_numbers_at_the_limit_have_answers() -> None:
    rows = with_value(1e140)
    for name in ("GenerativeClassifier", "NaiveBayes", "LinearDiscriminant", "SoftmaxRegression", "EvidenceClassifier"):
        found = MAKERS[name]().fit(X, Y).predict_proba(rows)
        assert np.isfinite(found).all()


def test_sparse_rows_chunks_and_targets_are_refused_too() -> None:
    rows = scipy.sparse.csr_array(np.abs(with_value(1e141)))
    for model in (NaiveBayes(Gaussian("diagonal")), SoftmaxRegression()):
        with pytest.raises(CellError, match="Column 'x0', row 7: 1e\\+141 is beyond 1e140"):
            model.fit(rows, Y)
    frame = pd.DataFrame(with_value(1e141, row=70), columns=FRAME.columns).assign(y=Y)
    with pytest.raises(CellError, match="Column 'u', row 70: "):
        LinearDiscriminant().fit(InChunks([frame[:50], frame[50:]]), "y")
    with pytest.raises(InputError, match="of y, row 5: 1e\\+200 is beyond 1e140"):
        GenerativeRegressor().fit(X, np.where(np.arange(120) == 5, 1e200, X[:, 0]))


def test_rows_of_weight_zero_and_columns_that_are_not_numbers_may_have_any_value() -> None:
    weights = np.where(np.arange(120) == 7, 0.0, 1.0)
    model = LinearDiscriminant().fit(with_value(LARGEST), Y, weights)
    kept = weights > 0.0
    assert_allclose(model.predict_proba(X), LinearDiscriminant().fit(X[kept], Y[kept]).predict_proba(X), rtol=1e-9)
    frame = FRAME.assign(code=np.array([-1e300, 0.0, 1e300])[CODES], unused=LARGEST)
    families = {"code": Categorical(), "unused": None}
    assert_array_equal(NaiveBayes(families).fit(frame, Y).predict(frame), Y)


@pytest.mark.parametrize("name", ["GenerativeClassifier", "NaiveBayes", "LinearDiscriminant", "EvidenceClassifier"])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_files_have_no_prediction_for_such_rows(name: str, library: Any, tmp_path: Path) -> None:
    model, rows = MAKERS[name]().fit(FRAME, Y), FRAME.copy()
    rows.loc[3, "u"], rows.loc[10, ["u", "v"]], rows.loc[11, "v"] = LARGEST, -1e150, 1.01e140
    options = {"log_density": True} if hasattr(model, "log_density") else {}
    with pytest.warns(LikelyWarning, match="3 rows have no prediction: a number is beyond 1e140"):
        assert model.predict_to(library(rows), tmp_path / "found.parquet", keep=["count"], **options) == 120
    found = pd.read_parquet(tmp_path / "found.parquet")
    bad, numbers = np.isin(np.arange(120), [3, 10, 11]), found.filter(like="probability_")
    assert_array_equal(
        found.drop(columns="count").isna().to_numpy(), np.repeat(bad[:, None], len(found.columns) - 1, 1)
    )
    assert_array_equal(found["count"], rows["count"])
    assert_allclose(numbers[~bad], model.predict_proba(FRAME)[~bad], rtol=1e-12)
    assert_array_equal(found["predicted"][~bad], model.predict(FRAME)[~bad])


def test_chunks_and_rows_that_are_all_beyond_the_limit(tmp_path: Path) -> None:
    model = LinearDiscriminant().fit(FRAME, Y)
    chunks = [FRAME[:50], FRAME[50:60] * 1e150, FRAME[60:]]
    with pytest.warns(LikelyWarning, match="10 rows have no prediction"):
        assert model.predict_to(InChunks(chunks), tmp_path / "found.csv", keep=[]) == 120
    found = pd.read_csv(tmp_path / "found.csv")
    assert_array_equal(np.flatnonzero(found["predicted"].isna()), np.arange(50, 60))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_to(FRAME, tmp_path / "found.csv")
    text = FRAME.astype(object)
    text.loc[9, "u"] = "oops"
    with pytest.raises(InputError, match="row 9: 'oops'"):
        model.predict_to(text, tmp_path / "found.csv")


@pytest.mark.parametrize("name", ["GenerativeClassifier", "NaiveBayes", "LinearDiscriminant"])
def test_sql_has_no_answer_for_such_rows(name: str) -> None:
    model, rows = MAKERS[name]().fit(FRAME, Y), FRAME.copy()
    rows.loc[3, "u"], rows.loc[10, "v"] = LARGEST, 1.01e140
    with duckdb.connect() as connection:
        connection.register("t", rows)
        found = connection.sql(model.to_sql("t")).df()
    bad = np.isin(np.arange(120), [3, 10])
    assert_array_equal(found.isna().to_numpy(), np.repeat(bad[:, None], found.shape[1], 1))
    assert_array_equal(found["predicted"][~bad], model.predict(FRAME)[~bad])
