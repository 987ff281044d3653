"""Models as SQL statements, in DuckDB and SQLite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from likely import Gaussian, GenerativeClassifier, LinearDiscriminant, NaiveBayes, Poisson, QuadraticDiscriminant
from likely.errors import ExportError, InputError
from likely.export import sql
from tests.unit.export.cases import case_of, every_case
from tests.unit.export.databases import IDENTIFIER, TABLE, in_duckdb, in_sqlite, predicted_of, probabilities_of, select

ENGINES: dict[str, Callable[[str, pd.DataFrame], Any]] = {"duckdb": in_duckdb, "sqlite": in_sqlite}
every_engine = pytest.mark.parametrize("dialect", list(ENGINES))
X = pd.DataFrame({"a": np.r_[0.0:1.0:10j, 2.0:3.0:10j], "b": np.arange(20.0) % 7})
Y = np.repeat(["low", "high"], 10)


@every_engine
@every_case
def test_statements_predict_what_the_model_predicts(name: str, dialect: str) -> None:
    case = case_of(name)
    query = case.model.to_sql(TABLE, dialect=dialect, keep=[IDENTIFIER])
    result = ENGINES[dialect](query, case.rows)
    expected = case.probabilities
    assert_allclose(probabilities_of(result), expected, rtol=0.0, atol=1e-9)
    top = np.sort(expected, axis=1)
    clear = np.flatnonzero(top[:, -1] - top[:, -2] > 1e-9).tolist()
    predicted = predicted_of(result)
    assert [predicted[i] for i in clear] == [case.predicted[i] for i in clear]


@pytest.mark.parametrize("name", ["declared-bayes", "joint-bayes", "qda-bayes", "impossible", "tiny"])
def test_probabilities_agree_to_much_less_than_a_billionth(name: str) -> None:
    case = case_of(name)
    result = in_duckdb(case.model.to_sql(TABLE, keep=[IDENTIFIER]), case.rows)
    assert_allclose(probabilities_of(result), case.probabilities, rtol=0.0, atol=1e-12)


@every_engine
def test_values_outside_a_declared_support_give_null(dialect: str) -> None:
    model = GenerativeClassifier({"b": Poisson(), "a": Gaussian("diagonal")}).fit(X, Y)
    rows = pd.DataFrame({"a": [0.5, 0.5, 0.5, np.inf], "b": [1.0, -1.0, 1.5, 2.0]})
    result = ENGINES[dialect](model.to_sql(TABLE, dialect=dialect, keep=[IDENTIFIER]), rows)
    assert [row[1] is None for row in result] == [False, True, True, True]
    assert [row[2] is None and row[3] is None for row in result] == [False, True, True, True]


@every_engine
def test_values_outside_the_support_of_a_chosen_family_are_missing(dialect: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.poisson(np.repeat([2.0, 9.0], 60)).astype(float), "z": rng.normal(size=120)})
    model = NaiveBayes().fit(frame, np.repeat(["a", "b"], 60))
    rows = pd.DataFrame({"n": [3.0, -1.0, 2.5], "z": [0.0, 0.5, 0.1]})
    result = ENGINES[dialect](model.to_sql(TABLE, dialect=dialect, keep=[IDENTIFIER]), rows)
    assert_allclose(probabilities_of(result), model.predict_proba(rows), rtol=0.0, atol=1e-9)


def test_a_comment_says_that_unseen_categories_are_missing_and_how_many_are_known() -> None:
    model = case_of("declared-bayes").model
    for dialect in ("duckdb", "sqlite", "postgres"):
        comment = model.to_sql(TABLE, dialect=dialect).split("WITH\n")[0]
        assert comment == (
            "/* Categories that did not occur in training count as missing values. Number of known categories:\n"
            '   "Ünïcode -- comment": 5 */\n'
        )
    assert case_of("lda").model.to_sql(TABLE).startswith("WITH\n")


def test_a_comment_says_that_unseen_categories_give_null_where_they_are_errors() -> None:
    model = NaiveBayes(unseen="error").fit(pd.DataFrame({"c": ["u", "v"] * 20}), ["p", "q", "q", "q"] * 10)
    assert "training give NULL in all results" in model.to_sql(TABLE)


@every_engine
@pytest.mark.parametrize("name", ["a */ SELECT 1; --", "/* a", "/*/", "**//", "a\nb\r\u2028", "-- a", "'a;", '"a*/'])
def test_names_of_columns_do_not_end_the_comment(name: str, dialect: str) -> None:
    rows = pd.DataFrame({name: ["u", "v", "w", "u"] * 10})
    model = NaiveBayes().fit(rows, ["p", "q", "q", "q"] * 10)
    query = model.to_sql(TABLE, dialect=dialect, keep=[IDENTIFIER])
    comment, _ = query.split(" */\nWITH\n")
    assert comment.count("*/") == 0
    assert comment.count("/*") == 1
    assert len(comment.splitlines()) == 2
    assert_allclose(probabilities_of(ENGINES[dialect](query, rows)), model.predict_proba(rows), rtol=0.0, atol=1e-12)


def test_unseen_categories_give_null_where_they_are_errors() -> None:
    frame = pd.DataFrame({"c": ["u", "v"] * 20})
    model = NaiveBayes(unseen="error").fit(frame, ["p", "q", "q", "q"] * 10)
    result = in_duckdb(model.to_sql(TABLE, keep=[IDENTIFIER]), pd.DataFrame({"c": ["u", None, "w"]}))
    assert [row[1] is None for row in result] == [False, False, True]


def test_text_where_sqlite_should_have_a_number_gives_null() -> None:
    model = NaiveBayes(Gaussian("diagonal")).fit(X, Y)
    rows = pd.DataFrame({"a": pd.Series([0.5, "many"], dtype=object), "b": [1.0, 1.0]})
    result = in_sqlite(model.to_sql(TABLE, dialect="sqlite", keep=[IDENTIFIER]), rows)
    assert [row[1] is None for row in result] == [False, True]


def test_booleans_are_read_as_numbers() -> None:
    flags = pd.DataFrame({"flag": [True, False, True, True] * 10})
    model = NaiveBayes().fit(flags, ["p", "q", "p", "q"] * 10)
    assert_allclose(
        probabilities_of(in_duckdb(model.to_sql(TABLE, keep=[IDENTIFIER]), flags)),
        model.predict_proba(flags),
        atol=1e-12,
    )


@pytest.mark.parametrize("dtype", ["bool", "boolean", "bool[pyarrow]"])
def test_statements_for_postgres_convert_columns_that_were_boolean(dtype: str) -> None:
    """PostgreSQL does not cast booleans to double precision."""
    rows = X.assign(flag=pd.Series(X["b"] > 2.0, dtype=dtype))
    query = LinearDiscriminant().fit(rows, Y).to_sql("rows", dialect="postgres")
    assert "CASE CAST(r.\"flag\" AS text) WHEN 'true' THEN '1'" in query
    assert 'CAST(r."a" AS double precision)' in query


def test_columns_that_are_set_aside_are_not_read() -> None:
    frame = X.assign(note=[f"text number {i} with many words" for i in range(20)])
    model = GenerativeClassifier({"note": None}).fit(frame, Y)
    assert "note" not in model.to_sql("rows")


def test_every_common_table_expression_is_materialized() -> None:
    query = case_of("joint-bayes").model.to_sql("rows")
    assert query.count(" AS MATERIALIZED (") == query.count("\nstep") > 5


def test_a_schema_and_a_table_are_quoted_separately() -> None:
    query = NaiveBayes().fit(X, Y).to_sql(("my schema", "rows"))
    assert 'FROM "my schema"."rows" AS r)' in query


def test_a_table_with_the_name_of_a_step_is_read() -> None:
    query = NaiveBayes().fit(X, Y).to_sql("step0", keep=["id"])
    assert len(select(query, step0=X.assign(id=range(20))).fetchall()) == 20


def test_a_kept_column_with_the_name_of_a_result_is_an_error_that_names_prefix() -> None:
    model = NaiveBayes().fit(X, Y)
    with pytest.raises(InputError, match="prefix="):
        model.to_sql("rows", keep=["Predicted"])
    query = model.to_sql("rows", keep=["predicted"], prefix="model_")
    names = select(query, rows=X.assign(predicted=1)).columns
    assert names == ["predicted", "model_predicted", "model_probability_high", "model_probability_low"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"dialect": "oracle"}, "dialect='oracle' is not known"),
        ({"keep": "id"}, "keep='id' must be a sequence"),
        ({"keep": [1]}, "must be a sequence of names"),
        ({"prefix": 1}, "prefix=1 must be text"),
        ({"table": 3}, "table=3 must be the name of a table"),
        ({"table": ""}, "table='' has an empty name"),
        ({"table": "a\0b"}, "NUL character"),
    ],
)
def test_wrong_options_are_errors(options: dict[str, Any], problem: str) -> None:
    model = NaiveBayes().fit(X, Y)
    with pytest.raises(InputError, match=problem):
        model.to_sql(**{"table": "rows", **options})


def test_names_of_results_that_postgres_would_cut_off_are_an_error() -> None:
    model = NaiveBayes().fit(X, np.repeat(["a" * 70, "b"], 10))
    assert "a" * 70 in model.to_sql("rows")
    with pytest.raises(ExportError, match="63 bytes"):
        model.to_sql("rows", dialect="postgres")


def widest(query: str) -> int:
    """The largest number of columns of a common table expression; expressions of numbers have no commas."""
    return max(part.count(" AS v") + part.split(" AS v")[0].count(",") for part in query.split("\n")[2:-2])


def test_classes_follow_one_another_where_results_would_be_too_wide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(240) % 6
    wide = pd.DataFrame(rng.normal(size=(240, 6)) + y[:, None]).rename(columns="x{}".format)
    model = QuadraticDiscriminant().fit(wide, y)
    limit = widest(model.to_sql(TABLE)) - 1
    monkeypatch.setattr(sql, "WIDEST", limit)
    query = model.to_sql(TABLE, keep=[IDENTIFIER])
    assert widest(query) <= limit
    rows = wide[:20].mask(rng.random((20, 6)) < 0.3)
    assert_allclose(probabilities_of(in_duckdb(query, rows)), model.predict_proba(rows), rtol=0.0, atol=1e-9)


def wide_table(d: int, n_classes: int, n: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    mixed = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    return pd.DataFrame(mixed + y[:, None]).rename(columns="x{}".format), y


def test_classes_do_not_share_intermediate_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """A factorisation of d columns has about d²/4 values at a time, for any number of classes."""
    monkeypatch.setattr(sql, "WIDEST", 200)
    frame, y = wide_table(16, 3, 120)
    model = QuadraticDiscriminant().fit(frame, y)
    query = model.to_sql(TABLE, keep=[IDENTIFIER])
    assert widest(query) < 16**2 / 4 + 7 * 16
    rows = frame[:10].mask(np.random.default_rng(1).random((10, 16)) < 0.3)
    assert_allclose(probabilities_of(in_duckdb(query, rows)), model.predict_proba(rows), rtol=0.0, atol=1e-9)


@every_engine
def test_many_independent_columns_are_summed_in_rounds(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The intermediate results of a column are not needed after its round, so that inputs are the limit."""
    monkeypatch.setattr(sql, "ROUND", 20)
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    frame = pd.DataFrame(rng.normal(size=(60, 30)) + 0.2 * y[:, None]).rename(columns="x{}".format)
    model = NaiveBayes(Gaussian("diagonal")).fit(frame, y)
    limit = 90
    assert widest(model.to_sql(TABLE)) > limit
    monkeypatch.setattr(sql, "WIDEST", limit)
    query = model.to_sql(TABLE, dialect=dialect, keep=[IDENTIFIER])
    assert widest(query) <= limit
    rows = frame[:20].mask(rng.random((20, 30)) < 0.3)
    assert_allclose(probabilities_of(ENGINES[dialect](query, rows)), model.predict_proba(rows), rtol=0.0, atol=1e-9)


def test_wide_joint_blocks_are_refused_before_they_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LinearDiscriminant().fit(*wide_table(80, 2, 200))
    monkeypatch.setattr(type(model.model_.blocks[0].conditionals), "expressions", None)  # it is not called
    with pytest.raises(ExportError, match="at least 1600 columns, and databases allow about 1500"):
        model.to_sql("rows")


def test_too_wide_intermediate_results_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sql.WIDEST == 1500
    monkeypatch.setattr(sql, "WIDEST", 10)
    with pytest.raises(ExportError, match="columns, and databases allow about 10"):
        LinearDiscriminant().fit(X.assign(c=X["b"] ** 2, d=np.sin(X["b"])), Y).to_sql("rows")
