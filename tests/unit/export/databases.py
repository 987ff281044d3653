"""Tables in databases, and the results of statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from likely.export.quoting import quoted_name

Rows = Sequence[Sequence[Any]]
TABLE = 'ro"ws; DROP TABLE x --'
IDENTIFIER = "row; 'id'"
MEMORY = duckdb.connect()  # its cursors have temporary tables of their own


def select(query: str, **tables: pd.DataFrame) -> duckdb.DuckDBPyRelation:
    """The result of a query in DuckDB, on tables by name."""
    connection = MEMORY.cursor()
    for name, frame in tables.items():
        connection.register(name, frame)
    found = connection.sql(query)
    assert found is not None
    return found


def with_identifier(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([pd.DataFrame({IDENTIFIER: range(len(rows))}), rows], axis=1)


def in_duckdb(query: str, rows: pd.DataFrame) -> Rows:
    """The result of a query on a table of rows; NaN stays NaN there."""
    with MEMORY.cursor() as connection:
        connection.register("frame", with_identifier(rows))
        connection.execute(f"CREATE TEMP TABLE {quoted_name(TABLE)} AS SELECT * FROM frame")
        return connection.execute(query + " ORDER BY 1").fetchall()


def in_sqlite(query: str, rows: pd.DataFrame) -> Rows:
    connection = sqlite3.connect(":memory:")
    try:
        frame = with_identifier(rows)
        columns = ", ".join(quoted_name(name) for name in frame.columns)
        connection.execute(f"CREATE TABLE {quoted_name(TABLE)} ({columns})")
        marks = ", ".join("?" * frame.shape[1])
        connection.executemany(f"INSERT INTO {quoted_name(TABLE)} VALUES ({marks})", values_of(frame))
        return connection.execute(query + " ORDER BY 1").fetchall()
    finally:
        connection.close()


def values_of(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Rows of plain Python values, None where they are missing."""
    columns = [[None if pd.isna(value) else value for value in frame[name].tolist()] for name in frame.columns]
    return list(zip(*columns, strict=True))


def probabilities_of(result: Rows) -> np.ndarray[Any, Any]:
    """The probabilities of a result with an identifier, the predicted class and the probabilities."""
    return np.array([row[2:] for row in result], dtype=np.float64)


def predicted_of(result: Rows) -> list[Any]:
    return [row[1] for row in result]
