"""Dates in exported models: databases compute their parts, ONNX graphs read them, and JavaScript refuses them."""

from __future__ import annotations

import sqlite3
from typing import Any

import duckdb
import numpy as np
import onnxruntime
import pandas as pd
import pytest

from likely import Gaussian, GenerativeClassifier, LinearDiscriminant, NaiveBayes
from likely.data.date_text import date_parts
from likely.errors import ExportError

ROWS = 300


def rows(kind: str) -> pd.DataFrame:
    """Dates before and after 1970, some of them missing, in text, with a label."""
    rng = np.random.default_rng(3)
    seconds = rng.integers(-3_000_000_000, 1_900_000_000, ROWS)
    when = np.datetime64("1970-01-01", "ms") + (1000 * seconds + 250).astype("timedelta64[ms]")
    text = {
        "date": np.datetime_as_string(when, unit="D"),
        "datetime": np.datetime_as_string(when, unit="ms"),
        "zoned": np.char.add(np.datetime_as_string(when, unit="ms"), "+02:00"),
        "time": np.array([each.partition("T")[2] for each in np.datetime_as_string(when, unit="ms")]),
    }[kind].astype(object)
    text[::17] = None
    hours = (seconds // 3600) % 24
    y = np.where(rng.random(ROWS) < 0.2 + 0.6 * ((seconds > 0) | (hours > 15)), "a", "b")
    return pd.DataFrame({"when": text, "x": rng.normal(size=ROWS) + (y == "a"), "y": y, "id": np.arange(ROWS)})


def by_duckdb(query: str, frame: pd.DataFrame, types: str) -> list[Any]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        connection.execute(f'CREATE TABLE "rows" AS SELECT * REPLACE (CAST("when" AS {types}) AS "when") FROM frame')
        return connection.execute(query).fetchall()


def by_sqlite(query: str, frame: pd.DataFrame) -> list[Any]:
    with sqlite3.connect(":memory:") as connection:
        frame.to_sql("rows", connection, index=False)
        return connection.execute(query).fetchall()


def probabilities(found: list[Any]) -> Any:
    return np.array([row[2:] for row in sorted(found)], dtype=float)


@pytest.mark.parametrize("kind", ["date", "datetime", "zoned", "time"])
@pytest.mark.parametrize("model", [NaiveBayes(), GenerativeClassifier(), LinearDiscriminant()], ids=str)
def test_databases_compute_the_parts_of_dates(kind: str, model: Any) -> None:
    frame = rows(kind)
    frame = frame if not isinstance(model, LinearDiscriminant) else frame.dropna(ignore_index=True)
    model.fit(frame[["when", "x"]], frame["y"])
    expected = model.predict_proba(frame[["when", "x"]])
    query = model.to_sql("rows", keep=["id"])
    tolerance = (
        1e-6 if isinstance(model, LinearDiscriminant) else 1e-9
    )  # days, years and days of the year are collinear
    types = {"date": "DATE", "datetime": "TIMESTAMP", "zoned": "TIMESTAMPTZ", "time": "TIME"}[kind]
    for each in (types, "VARCHAR"):
        np.testing.assert_allclose(probabilities(by_duckdb(query, frame, each)), expected, rtol=0, atol=tolerance)
    query = model.to_sql("rows", keep=["id"], dialect="sqlite")
    np.testing.assert_allclose(probabilities(by_sqlite(query, frame)), expected, rtol=0, atol=tolerance)


def test_text_that_is_no_iso_date_has_no_result_in_databases() -> None:
    frame = rows("date").dropna(ignore_index=True)
    local = frame.assign(when=pd.to_datetime(frame["when"]).dt.strftime("%d.%m.%Y"))
    model = NaiveBayes().fit(local[["when", "x"]], frame["y"])
    for found in (
        by_duckdb(model.to_sql("rows", keep=["id"]), local, "VARCHAR"),
        by_sqlite(model.to_sql("rows", keep=["id"], dialect="sqlite"), local),
    ):
        assert {row[1] for row in found} == {None}
    found = by_duckdb(model.to_sql("rows", keep=["id"]), frame, "DATE")
    np.testing.assert_allclose(probabilities(found), model.predict_proba(frame), rtol=1e-9, atol=1e-9)


def test_onnx_graphs_read_the_parts_of_dates() -> None:
    frame = rows("datetime")
    model = NaiveBayes().fit(frame[["when", "x"]], frame["y"])
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    instants = pd.to_datetime(frame["when"]).to_numpy().astype("datetime64[us]")
    parts = {f"when.{name}": values for name, values in date_parts(instants, "datetime").items()}
    values = {"x": frame["x"].to_numpy(), **parts}
    names = model.specification_.names
    inputs = [each.name for each in session.get_inputs()]
    given = {"X": np.column_stack([values[name] for name in names])} if inputs == ["X"] else {
        name: values[name].reshape(-1, 1) for name in inputs
    }  # fmt: skip
    found = session.run(["probabilities"], given)[0]
    np.testing.assert_allclose(found, model.predict_proba(frame), atol=1e-9)


def test_javascript_refuses_dates_with_the_reason() -> None:
    frame = rows("date")
    model = NaiveBayes().fit(frame[["when", "x"]], frame["y"])
    with pytest.raises(ExportError, match="Column 'when' has dates, and JavaScript modules do not compute their parts"):
        model.to_javascript()


def test_dates_as_one_number_and_normalized_categories_are_refused() -> None:
    frame = rows("date")
    model = NaiveBayes({"when": Gaussian("diagonal")}).fit(frame[["when", "x"]], frame["y"])
    words = frame.assign(c=np.where(frame["x"] > 0, "Red ", "red"), d=np.where(frame["x"] > 1, "u", "v"))
    other = NaiveBayes(normalize=True).fit(words[["c", "d", "x"]], frame["y"])
    for export in ("to_javascript", "to_onnx"):
        with pytest.raises(ExportError, match="'when' has dates that are modelled as one number"):
            getattr(model, export)()
        with pytest.raises(ExportError, match=r"'d' has categories .* \(normalize=True\)"):
            getattr(other, export)()


def test_sql_states_the_columns_that_were_text_in_training() -> None:
    frame = rows("date").assign(price=[f"${1000 + 7 * i:,}" for i in range(ROWS)])
    model = NaiveBayes({"price": Gaussian("diagonal")}).fit(frame[["price", "x"]], frame["y"])
    query = model.to_sql("rows")
    assert query.startswith('/* Columns of numbers, which were text in training: "price" */')
    frame["price"] = [1000.0 + 7 * i for i in range(ROWS)]
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE "rows" AS SELECT * FROM frame')
        found = connection.execute(model.to_sql("rows", keep=["id"])).fetchall()
    np.testing.assert_allclose(probabilities(found), model.predict_proba(frame), rtol=1e-9, atol=1e-9)
