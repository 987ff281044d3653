"""Models as SQL statements in PostgreSQL; `make test-sql` starts the server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from likely import (
    Categorical,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    NaiveBayes,
    Poisson,
    QuadraticDiscriminant,
    SoftmaxRegression,
)
from likely.export.quoting import quoted_name
from tests.postgres import SOCKET
from tests.unit.export.cases import case_of, every_case
from tests.unit.export.databases import (
    IDENTIFIER,
    TABLE,
    predicted_of,
    probabilities_of,
    values_of,
    with_identifier,
)
from tests.unit.export.far import Name, assert_agree, every_far_case, far_case

pytestmark = pytest.mark.sql
TYPES = {"f": "double precision", "i": "bigint", "b": "boolean", "O": "text"}


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    import psycopg

    assert SOCKET in os.environ, "No PostgreSQL is running for the tests: use make test-sql."
    with psycopg.connect(host=os.environ[SOCKET], user="postgres", dbname="postgres") as found:
        yield found


def result_of(connection: Any, query: str, rows: pd.DataFrame) -> Any:
    """The result of a query on a temporary table of rows."""
    frame = with_identifier(rows)
    with connection.cursor() as cursor:
        columns = ", ".join(f"{quoted_name(name)} {TYPES.get(frame[name].dtype.kind, 'text')}" for name in frame)
        cursor.execute(f"CREATE TEMPORARY TABLE {quoted_name(TABLE)} ({columns})")
        marks = ", ".join(["%s"] * frame.shape[1])
        cursor.executemany(f"INSERT INTO {quoted_name(TABLE)} VALUES ({marks})", values_of(frame))
        try:
            return cursor.execute(query + " ORDER BY 1").fetchall()
        finally:
            connection.rollback()


@every_case
def test_statements_predict_what_the_model_predicts(name: str, connection: Any) -> None:
    case = case_of(name)
    result = result_of(connection, case.model.to_sql(TABLE, dialect="postgres", keep=[IDENTIFIER]), case.rows)
    expected = case.probabilities
    assert_allclose(probabilities_of(result), expected, rtol=0.0, atol=1e-9)
    top = np.sort(expected, axis=1)
    clear = np.flatnonzero(top[:, -1] - top[:, -2] > 1e-9).tolist()
    predicted = predicted_of(result)
    assert [predicted[i] for i in clear] == [case.predicted[i] for i in clear]


@every_far_case
def test_far_and_tiny_values_raise_no_error(name: Name, connection: Any) -> None:
    case = far_case(name)
    result = result_of(connection, case.model.to_sql(TABLE, dialect="postgres", keep=[IDENTIFIER]), case.rows)
    assert_agree(name, probabilities_of(result), predicted_of(result))


def test_tiny_posteriors_do_not_raise(connection: Any) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": np.r_[rng.normal(0, 1, 50), rng.normal(30, 1, 50)], "b": rng.normal(size=100)})
    model = QuadraticDiscriminant().fit(X, np.repeat(["near", "far"], 50))
    rows = pd.DataFrame({"a": np.linspace(-30.0, 60.0, 4001), "b": 0.0})
    expected = model.predict_proba(rows)
    smallest = expected.min(axis=1)
    assert np.any((smallest > 0.0) & (smallest < 1e-310))  # posteriors near 1e-320 are among them
    result = result_of(connection, model.to_sql(TABLE, dialect="postgres", keep=[IDENTIFIER]), rows)
    assert_allclose(probabilities_of(result), expected, rtol=0.0, atol=1e-9)


def test_nan_and_null_are_both_missing(connection: Any) -> None:
    X = pd.DataFrame({"a": np.r_[0.0:1.0:10j, 2.0:3.0:10j], "b": np.arange(20.0) % 7})
    model = NaiveBayes(Gaussian("diagonal")).fit(X, np.repeat([1, 2], 10))
    query = model.to_sql(("pg_temp", "rows"), dialect="postgres")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE rows (a double precision, b integer)")
        cursor.execute("INSERT INTO rows VALUES ('NaN', 3), (NULL, 3)")
        first, second = cursor.execute(query).fetchall()
    connection.rollback()
    assert first == second
    assert_allclose(first[1:], model.predict_proba(pd.DataFrame({"a": [np.nan], "b": [3.0]}))[0], atol=1e-12)


@pytest.mark.parametrize("kind", ["char(5)", "text"])
def test_blanks_at_the_end_of_categories_are_kept(kind: str, connection: Any) -> None:
    """PostgreSQL returns the values of CHAR(n) with blanks, which a cast to text removes."""
    rows = pd.DataFrame({"c": ["u    ", "v    ", "w    ", "u    "] * 10})
    model = NaiveBayes(Categorical(), calibration=None).fit(rows, ["p", "q", "q", "q"] * 10)
    expected = model.predict_proba(rows[:3])
    assert np.ptp(expected[:, 0]) > 0.1
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE rows (n integer, c {kind})")
        cursor.execute("INSERT INTO rows VALUES (0, 'u    '), (1, 'v    '), (2, 'w    ')")
        found = cursor.execute(model.to_sql(("pg_temp", "rows"), dialect="postgres", keep=["n"]) + " ORDER BY 1")
        result = found.fetchall()
    connection.rollback()
    assert_allclose(probabilities_of(result), expected, rtol=0.0, atol=1e-12)


def test_booleans_are_read_as_numbers_and_categories(connection: Any) -> None:
    flags = pd.DataFrame({"flag": [True, False, True, True] * 10})
    model = NaiveBayes().fit(flags, ["p", "q", "p", "q"] * 10)
    query = model.to_sql(TABLE, dialect="postgres", keep=[IDENTIFIER])
    expected = model.predict_proba(flags)
    assert_allclose(probabilities_of(result_of(connection, query, flags)), expected, rtol=0.0, atol=1e-12)
    numbers = flags.astype(float)
    assert_allclose(probabilities_of(result_of(connection, query, numbers)), expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    "model",
    [LinearDiscriminant(), SoftmaxRegression(), NaiveBayes(Poisson(), calibration=None)],
    ids=lambda m: type(m).__name__,
)
def test_boolean_columns_of_a_fit_may_be_stored_as_booleans(model: Any, library: Any, connection: Any) -> None:
    flags = pd.DataFrame({"f": [True, False, True, True] * 10, "g": [True, True, False, False, False] * 8})
    rows = nw.from_dict(flags.to_dict("list"), backend=library).to_native()
    fitted = clone(model).fit(rows, ["p", "q", "p", "q", "q"] * 8)
    query = fitted.to_sql(TABLE, dialect="postgres", keep=[IDENTIFIER])
    expected = fitted.predict_proba(rows)
    for stored in (flags, flags.astype(float)):
        assert_allclose(probabilities_of(result_of(connection, query, stored)), expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("type_", ["boolean", "integer", "double precision", "numeric(3, 1)", "text"])
def test_boolean_categories_may_be_stored_as_numbers_and_text(type_: str, connection: Any) -> None:
    X = pd.DataFrame({"c": [True, False, True] * 20})
    model = NaiveBayes(Categorical(), calibration=None).fit(X, ["p", "q", "p", "q", "q", "q"] * 10)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE rows (c {type_})")
        cursor.execute("INSERT INTO rows VALUES (%s), (%s)", ["t", "f"] if type_ in ("boolean", "text") else [1, 0])
        result = cursor.execute(model.to_sql(("pg_temp", "rows"), dialect="postgres")).fetchall()
    connection.rollback()
    expected = model.predict_proba(pd.DataFrame({"c": [True, False]}))
    assert_allclose([row[1:] for row in result], expected, rtol=0.0, atol=1e-12)


def test_categories_0_and_1_may_be_booleans(connection: Any) -> None:
    X = pd.DataFrame({"c": [0, 1, 2, 0] * 15})
    model = NaiveBayes(Categorical(), calibration=None).fit(X, ["p", "q", "p", "q", "q", "q"] * 10)
    query = model.to_sql(TABLE, dialect="postgres", keep=[IDENTIFIER])
    expected = model.predict_proba(pd.DataFrame({"c": [1, 0]}))
    found = probabilities_of(result_of(connection, query, pd.DataFrame({"c": [True, False]})))
    assert_allclose(found, expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("labels", [[-1.0, 2.0], [1, 2], [True, False], ["a", "b"]])
def test_labels_keep_their_type(labels: list[Any], connection: Any) -> None:
    rows = pd.DataFrame({"a": np.arange(20.0)})
    model = NaiveBayes(Gaussian("diagonal")).fit(rows, np.repeat(labels, 10))
    result = result_of(connection, model.to_sql(TABLE, dialect="postgres", keep=[IDENTIFIER]), rows)
    found = predicted_of(result)[0]
    assert (found, type(found)) == (labels[0], type(labels[0]))


def test_values_outside_a_declared_support_give_null(connection: Any) -> None:
    X = pd.DataFrame({"a": np.r_[0.0:1.0:10j, 2.0:3.0:10j], "b": np.arange(20.0) % 7})
    model = GenerativeClassifier({"b": Poisson(), "a": Gaussian("diagonal")}).fit(X, np.repeat([1, 2], 10))
    rows = pd.DataFrame({"a": [0.5, 0.5, 0.5, np.inf], "b": [1.0, -1.0, 1.5, 2.0]})
    result = result_of(connection, model.to_sql(TABLE, dialect="postgres", keep=[IDENTIFIER]), rows)
    assert [row[1] is None and row[2] is None for row in result] == [False, True, True, True]
