"""Categories of numbers, booleans and text in exported models."""

from __future__ import annotations

import sqlite3
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from likely import Categorical, NaiveBayes
from likely.errors import ExportError
from tests.unit.export.databases import IDENTIFIER, TABLE, in_sqlite, probabilities_of
from tests.unit.export.node import run_module
from tests.unit.export.test_onnx import run

Y = np.array(["p", "q", "p", "q", "q", "q"] * 10)


def fitted(values: list[Any]) -> Any:
    """A model of one column, whose values are categories."""
    X = pd.DataFrame({"c": pd.Series((values * 60)[:60])})
    return NaiveBayes(Categorical(), calibration=None).fit(X, Y)


def writers(model: Any) -> list[Any]:
    dialects = ("duckdb", "sqlite", "postgres")
    return [*(lambda d=d: model.to_sql("rows", dialect=d) for d in dialects), model.to_onnx, model.to_javascript]


@pytest.mark.parametrize("large", [2**53, 2**53 + 1, -(2**53) - 1])
def test_whole_numbers_that_doubles_do_not_distinguish_are_refused(large: int) -> None:
    for write in writers(fitted([large, 1, 2, 3])):
        with pytest.raises(ExportError, match=f"Column 'c' has the category {large}.*text before the fit"):
            write()


def test_the_largest_whole_number_that_doubles_distinguish_is_exported() -> None:
    model = fitted([2**53 - 1, 2**53 - 2, 5])
    rows = pd.DataFrame({"c": [2**53 - 1, 2**53 - 2, 5]})
    result = in_sqlite(model.to_sql(TABLE, dialect="sqlite", keep=[IDENTIFIER]), rows)
    assert_allclose(probabilities_of(result), model.predict_proba(rows), rtol=0.0, atol=1e-12)


def test_categories_of_float32_inputs_are_compared_in_float32() -> None:
    model = fitted([0.1, 0.2, 0.3, 0.1])
    rows = pd.DataFrame({"c": [0.1, 0.2, 0.3]})
    _, probabilities, _ = run(model, rows, dtype="float32")
    assert_allclose(probabilities, model.predict_proba(rows), rtol=0.0, atol=1e-7)


def test_categories_that_are_equal_in_float32_are_refused_there() -> None:
    model = fitted([0.1, 0.1 + 1e-12, 0.3, 0.1])
    with pytest.raises(ExportError, match=r"Column 'c' .* float32. Set dtype='float64'"):
        model.to_onnx(dtype="float32")
    assert len(model.to_onnx().graph.output) == 3


@pytest.mark.parametrize("labels", [[2**63, 2**63 + 1], [2**63, 1]])
def test_labels_that_no_integer_type_holds_are_refused(labels: list[int]) -> None:
    model = NaiveBayes().fit(pd.DataFrame({"x": np.arange(60.0) ** 2}), np.array(labels * 30, dtype=object))
    for write in writers(model):
        with pytest.raises(ExportError, match="whole numbers beyond"):
            write()


STORED: dict[str, tuple[str, list[Any]]] = {
    "integers": ("INTEGER", [1, 0]),
    "doubles": ("DOUBLE", [1.0, 0.0]),
    "words": ("VARCHAR", ["True", "False"]),
    "letters": ("VARCHAR", ["T", "f"]),
}


@pytest.mark.parametrize("storage", list(STORED))
def test_boolean_categories_may_be_stored_as_numbers_and_text(storage: str) -> None:
    type_, values = STORED[storage]
    model = fitted([True, False, True])
    expected = model.predict_proba(pd.DataFrame({"c": [True, False]}))
    assert abs(expected[0] - expected[1]).max() > 0.01
    with duckdb.connect() as database, sqlite3.connect(":memory:") as lite:
        for connection, dialect in ((database, "duckdb"), (lite, "sqlite")):
            connection.execute(f"CREATE TABLE rows (c {type_})")
            connection.executemany("INSERT INTO rows VALUES (?)", [(value,) for value in values])
            result = connection.execute(model.to_sql("rows", dialect=dialect)).fetchall()
            assert_allclose([row[1:] for row in result], expected, rtol=0.0, atol=1e-12)
    lite.close()


def test_categories_0_and_1_may_be_booleans() -> None:
    model = fitted([0, 1, 2, 0])
    expected = model.predict_proba(pd.DataFrame({"c": [1, 0]}))
    assert abs(expected[0] - expected[1]).max() > 0.01
    flags = pd.DataFrame({"c": [True, False]})
    assert_allclose(model.predict_proba(flags), expected, rtol=0.0, atol=1e-15)
    found = run_module(model.to_javascript(), [{"c": True}, {"c": False}])["results"]
    assert_allclose([each["probabilities"] for each in found], expected, rtol=0.0, atol=1e-12)
    with duckdb.connect() as connection:
        connection.register("rows", flags)
        result = connection.execute(model.to_sql("rows")).fetchall()
    assert_allclose([row[1:] for row in result], expected, rtol=0.0, atol=1e-12)


def test_text_in_a_column_of_numbers_in_sqlite_is_no_category() -> None:
    model = fitted([0.0, 1.0, 2.0, 0.0])
    rows = pd.DataFrame({"c": pd.Series(["many", "0", 7.0], dtype=object)})
    result = probabilities_of(in_sqlite(model.to_sql(TABLE, dialect="sqlite", keep=[IDENTIFIER]), rows))
    assert_allclose(result, np.tile(model.class_prior_, (3, 1)), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_categories_that_differ_by_case_are_distinguished_in_columns_that_ignore_case(dialect: str) -> None:
    model = fitted(["u", "U", "v", "u"])
    expected = model.predict_proba(pd.DataFrame({"c": ["u", "U"]}))
    assert abs(expected[0] - expected[1]).max() > 0.01
    connection: Any = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE rows (c VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO rows VALUES ('u'), ('U')")
    result = connection.execute(model.to_sql("rows", dialect=dialect)).fetchall()
    connection.close()
    assert_allclose([row[1:] for row in result], expected, rtol=0.0, atol=1e-12)


def test_labels_do_not_end_a_script_element() -> None:
    labels = ["</script><b>", "<!--"]
    model = NaiveBayes().fit(pd.DataFrame({"x": np.arange(60.0) ** 2}), labels * 30)
    module = model.to_javascript()
    assert "</script" not in module
    assert "<!--" not in module
    assert run_module(module, [])["classes"] == sorted(labels)
