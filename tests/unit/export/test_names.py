"""Names of columns in SQL statements."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np
import pandas as pd
import pytest

from likely import GenerativeClassifier, LinearDiscriminant, NaiveBayes
from likely.errors import ExportError, InputError
from tests.unit.export.databases import select

RNG = np.random.default_rng(0)
Y = np.repeat(["low", "high"], 15)


def columns(*names: str) -> pd.DataFrame:
    return pd.DataFrame(RNG.normal(size=(30, len(names))) + (Y == "low")[:, None], columns=list(names))


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_columns_that_differ_by_case_only_are_refused_where_databases_ignore_it(dialect: str) -> None:
    model = LinearDiscriminant().fit(columns("Age", "age", "x"), Y)
    with pytest.raises(ExportError, match=f"The model reads the columns 'Age', 'age'.*{dialect}"):
        model.to_sql("rows", dialect=dialect)
    assert '"age"' in model.to_sql("rows", dialect="postgres")


def test_columns_that_are_not_read_may_differ_by_case_only() -> None:
    frame = columns("Age", "x").assign(age="constant")
    model = GenerativeClassifier({"age": None}).fit(frame, Y)
    assert '"Age"' in model.to_sql("rows")


def test_databases_distinguish_other_letters_by_case() -> None:
    frame = columns("é", "É")
    query = NaiveBayes().fit(frame, Y).to_sql("rows")
    assert len(select(query, rows=frame).fetchall()) == 30


def test_columns_that_postgres_cuts_off_to_the_same_name_are_refused() -> None:
    long = "ä" * 31 + "a"
    model = LinearDiscriminant().fit(columns(long + "b", long + "c"), Y)
    assert len(model.to_sql("rows")) > 100
    with pytest.raises(ExportError, match=r"cuts names off\. Rename"):
        model.to_sql("rows", dialect="postgres")
    with pytest.raises(ExportError, match="keep= has the columns"):
        LinearDiscriminant().fit(columns("a", "b"), Y).to_sql("rows", dialect="postgres", keep=[long + "b", long + "c"])


@pytest.mark.parametrize("keep", [["x", "x"], ["x", "y", "X"]])
def test_a_column_is_kept_once(keep: list[str]) -> None:
    model = LinearDiscriminant().fit(columns("a", "b"), Y)
    with pytest.raises(ExportError, match=r"keep= has the columns 'x', '[xX]'"):
        model.to_sql("rows", keep=keep)


@pytest.mark.parametrize("keep", [pd.Index(["id"]), np.array(["id"]), {"id": 1}, iter(["id"]), pd.Series(["id"])])
def test_the_names_of_kept_columns_may_be_any_iterable_of_text(keep: Any) -> None:
    frame = columns("a", "b")
    query = LinearDiscriminant().fit(frame, Y).to_sql("rows", keep=keep)
    assert select(query, rows=frame.assign(id=1)).columns[0] == "id"


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
def test_classes_that_differ_by_case_only_are_exported() -> None:
    frame = columns("a", "b")
    y = np.repeat(["yes", "Yes"], 15)
    model = LinearDiscriminant().fit(frame, y)
    result = select(model.to_sql("rows"), rows=frame)
    assert result.columns == ["predicted", "probability_Yes", "probability_yes"]
    np.testing.assert_allclose([row[1:] for row in result.fetchall()], model.predict_proba(frame), atol=1e-9)


def test_a_column_that_sqlite_does_not_have_is_an_error() -> None:
    model = NaiveBayes().fit(columns("a", "b"), Y)
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE rows (a REAL, other REAL)")
        for query in (model.to_sql("rows", dialect="sqlite"), model.to_sql("rows", dialect="sqlite", keep=["c"])):
            with pytest.raises(sqlite3.OperationalError, match="no such column"):
                connection.execute(query)
    connection.close()


@pytest.mark.parametrize("table", ["", ("schema", "")])
def test_an_empty_name_of_a_table_is_an_error_about_the_table(table: Any) -> None:
    with pytest.raises(InputError, match=r"has an empty name\. Pass the name of a table"):
        NaiveBayes().fit(columns("a", "b"), Y).to_sql(table)
