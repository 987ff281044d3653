"""Queries, tables and relations: DuckDB, SQLite, JSON lines."""

from __future__ import annotations

import gc
import json
import pickle
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likely import Gaussian, MixtureModel, NaiveBayes, SoftmaxRegression, cross_validate, scan
from likely.data import row_draw
from likely.data.names import double_quoted
from likely.data.parts import source_of
from likely.engines import base
from likely.engines.duck import connect
from likely.errors import InputError, SourceError
from tests.unit.engines.tables import read


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute('CREATE TABLE "the \'rows\'; ""x""" AS SELECT range::DOUBLE AS x, \'a\' AS k FROM range(10)')
    connection.execute("CREATE VIEW customers AS SELECT 1.5 AS amount, 2::HUGEINT AS n")
    return connection


def settings(connection: duckdb.DuckDBPyConnection) -> list[Any]:
    return connection.execute("SELECT name, value FROM duckdb_settings() ORDER BY name").fetchall()


def test_a_connection_that_is_handed_in_is_left_as_it_is(connection: duckdb.DuckDBPyConnection) -> None:
    before = settings(connection)
    rows = scan(table="the 'rows'; \"x\"", connection=connection)
    chunks: Any = rows.chunks()
    next(chunks)
    chunks.close()  # the connection is free again after a pass that ends early
    assert read(rows)["x"].tolist() == list(range(10))
    assert settings(connection) == before
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def _model() -> NaiveBayes:
    return NaiveBayes({"x": Gaussian()}, calibration=None)


@pytest.mark.parametrize(
    "call",
    [
        lambda model, rows, path: model.fit(rows, "k"),
        lambda model, rows, path: NaiveBayes().fit(rows, "k"),
        lambda model, rows, path: model.partial_fit(rows, "k"),
        lambda model, rows, path: model.predict_proba(rows),
        lambda model, rows, path: model.explain(rows),
        lambda model, rows, path: model.score(rows, "k"),
        lambda model, rows, path: model.predict_to(rows, path / "predicted.csv"),
        lambda model, rows, path: cross_validate(model, rows, "k"),
        lambda model, rows, path: MixtureModel(2).fit(rows),
        lambda model, rows, path: SoftmaxRegression().fit(pl.DataFrame({"x": [1.0, 2.0]}), [0, 1]).predict(rows),
    ],
)
def test_a_connection_is_free_after_an_error(call: Callable[[NaiveBayes, Any, Path], Any], tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT if(range < 5000, range, 'inf'::DOUBLE) AS x, range % 2 AS k FROM range(200000)"
    )
    model = _model().fit(scan(sql="SELECT * FROM t LIMIT 9", connection=connection), "k")
    with pytest.raises(InputError) as error:  # its traceback keeps the frames of all functions
        call(model, scan(sql="SELECT x, k FROM t", connection=connection), tmp_path)
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
    assert error.traceback


def test_errors_in_em_name_the_column_and_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_draw, "MOST_DRAWN", 50)
    monkeypatch.setattr(base, "CHUNK_ROWS", 1000)
    rows = scan(sql="SELECT if(range = 2500, 'inf'::DOUBLE, range % 7) AS x FROM range(3000) ORDER BY range")
    with pytest.raises(InputError, match="Column 'x', row 2500: inf"):
        MixtureModel(2).fit(rows)


def test_the_results_of_a_connection_are_not_discarded(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SELECT * FROM range(300000)")
    assert connection.fetchone() == (0,)
    with suppress(SourceError):  # DuckDB 2.0 refuses a query before all rows of the last one have been read
        scan(table="customers", connection=connection)
    assert connection.fetchone() == (1,)


def test_own_connections_neither_install_nor_load_extensions() -> None:
    with connect() as own:
        found = dict(settings(own))
    assert found["autoinstall_known_extensions"] == "false"
    assert found["autoload_known_extensions"] == "false"


def test_a_table_name_is_no_variable_of_python() -> None:
    rows = pl.DataFrame({"a": [1]})
    assert len(rows) == 1
    with pytest.raises(SourceError, match="rows"):
        scan(sql="select * from rows")


def test_views_and_tables_of_schemas_are_tables(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE SCHEMA s")
    connection.execute("CREATE TABLE s.t AS SELECT 3 AS x")
    assert read(scan(table="s.t", connection=connection))["x"].tolist() == [3.0]
    assert scan(table="customers", connection=connection).columns == ("amount", "n")


def test_tables_and_queries_of_a_database_file(tmp_path: Path) -> None:
    path = tmp_path / "it's.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE t AS SELECT range AS x FROM range(5)")
    rows = scan(path, table="t")
    assert read(rows)["x"].tolist() == list(range(5))
    assert read(pickle.loads(pickle.dumps(rows)))["x"].tolist() == list(range(5))
    assert read(scan(path, sql="select x from t where x > 3"))["x"].tolist() == [4]
    with pytest.raises(SourceError, match=r"no table 'T2'. Did you mean 't'\?"):
        scan(path, table="T2")
    with pytest.raises(InputError, match=r"is a database\. Pass table= or sql="):
        scan(path)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("select * from nowhere", "(?s)could not run 'select .*nowhere.*connection="),
        ("select missing from range(3)", "(?s)missing.*range"),
        ("selec 1", "(?s)could not run 'selec 1'.*syntax error"),
        ("create table t as select 1", "is CREATE, not a single SELECT"),
        ("select 1; select 2", "is 2 statements, not a single SELECT"),
        ("select * from 's3://bucket/rows.parquet'", "(?s)s3://.*Pass connection="),
        ("select * from read_csv('https://example.org/rows.csv')", "(?s)https://.*Pass connection="),
    ],
)
def test_a_failing_query_is_an_error_with_the_message_and_the_query(sql: str, problem: str) -> None:
    with pytest.raises(SourceError, match=problem):
        scan(sql=sql)


def test_a_query_that_fails_on_a_late_row_is_an_error_with_the_query() -> None:
    rows = scan(sql="select case when range < 400000 then '1' else 'x' end::double as x from range(400001)")
    with pytest.raises(SourceError, match=r"(?s)could not run .*range < 400000.*Could not convert string 'x'"):
        read(rows)


def test_a_query_whose_rows_change_between_passes_is_an_error(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t AS SELECT range AS x FROM range(5)")
    rows = scan(sql="select * from t", connection=connection)
    read(rows)
    connection.execute("INSERT INTO t VALUES (6)")
    with pytest.raises(SourceError, match="had 5 rows in one pass and 6 in the next"):
        read(rows)


@pytest.mark.parametrize("make", ["table", "relation", "reader"])
def test_what_lives_in_this_process_cannot_be_pickled(connection: duckdb.DuckDBPyConnection, make: str) -> None:
    makers: dict[str, Callable[[], Any]] = {
        "table": lambda: scan(table="customers", connection=connection),
        "relation": lambda: source_of(connection.table("customers")),
        "reader": lambda: source_of(pa.table({"a": [1]}).to_reader()),
    }
    with pytest.raises(SourceError, match="cannot be pickled"):
        pickle.dumps(makers[make]())


def test_a_connection_is_used_on_the_calling_thread(connection: duckdb.DuckDBPyConnection) -> None:
    rows = scan(table="customers", connection=connection)
    assert list(rows.compute(lambda i, part: threading.get_ident())) == [threading.get_ident()]


@pytest.mark.parametrize(
    ("arguments", "options", "problem"),
    [
        ((), {}, "Nothing to read: pass a path, sql= or table="),
        ((), {"sql": "select 1", "table": "t"}, "Both sql= and table="),
        ((), {"table": "t"}, "table='t' needs connection="),
        (("x.csv",), {"connection": 1}, "Both path and connection="),
        ((), {"sql": 1}, "sql=1 must be text"),
        ((), {"table": 1, "connection": 1}, "table=1 must be text"),
        ((), {"sql": "select 1", "connection": object()}, "is not a connection of DuckDB or sqlite3"),
        ((), {"sql": "select 1", "types": {"a": "text"}}, "types= is for CSV files"),
        ((), {"sql": "select 1", "missing": ("NA",)}, "missing= is for CSV files"),
        ((3,), {}, "which scan does not read"),
        ((iter([1]),), {}, "yields a int, not record batches"),
    ],
)
def test_contradictory_arguments_are_errors(arguments: tuple[Any, ...], options: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        scan(*arguments, **options)


def test_a_query_beside_a_path_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match=r"is no database file\. Name the file in sql="):
        scan(tmp_path / "rows.csv", sql="select * from rows")


def test_missing_columns_are_errors_with_the_nearest_names() -> None:
    rows = scan(sql="select 1 as height, 'a' as species")
    with pytest.raises(InputError, match=r"y='spcies' is not a column of X.*Did you mean 'species'"):
        NaiveBayes().fit(rows, "spcies")


@pytest.mark.parametrize("name", ["a", 'a"b', "a; drop table t --", "a'b", "", "SELECT"])
def test_quoted_names_are_names(name: str) -> None:
    with connect() as own:
        assert own.sql(f"SELECT {double_quoted('x')} AS {double_quoted(name or 'y')} FROM (SELECT 1 AS x)").columns == [
            name or "y"
        ]


class TestSqlite:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "it's #1?.db"
        made = sqlite3.connect(path)
        made.execute('CREATE TABLE "the ""rows""" (n INTEGER, x REAL, k TEXT, empty TEXT)')
        cells = [(i, None if i % 3 else i / 2, "é" if i % 2 else None, None) for i in range(1000)]
        made.executemany('INSERT INTO "the ""rows""" VALUES (?, ?, ?, ?)', [*cells, (2**60, 1, "x", None)])
        made.execute("CREATE TABLE mixed AS SELECT 1 AS a UNION ALL SELECT 'NA'")
        made.execute("CREATE TABLE blobs AS SELECT x'00' AS b")
        made.commit()
        made.close()
        return path

    def test_types_are_those_of_all_cells(self, path: Path) -> None:
        rows = scan(path, table='the "rows"')
        table = next(rows.chunks())
        assert [str(kind) for kind in table.schema.types] == ["int64", "double", "string", "double"]
        assert rows.rows == 1001
        assert table["n"].to_pylist() == [*range(1000), 2**60]
        assert table["x"].to_pylist()[:4] == [0.0, None, None, 1.5]
        assert table["k"].to_pylist()[:3] == [None, "é", None]
        again = pickle.loads(pickle.dumps(rows))
        assert next(again.chunks()).equals(table)

    def test_a_connection_is_used_and_left_open(self, path: Path) -> None:
        connection = sqlite3.connect(path)
        rows = scan(sql='select n from [the "rows"] where n < 3 -- a comment', connection=connection)
        assert read(rows)["n"].tolist() == [0, 1, 2]
        assert list(rows.compute(lambda i, part: sum(len(chunk) for chunk in part.chunks()))) == [3]
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(SourceError, match="cannot be pickled"):
            pickle.dumps(rows)
        connection.execute("CREATE TEMP TABLE some AS SELECT 7 AS n")
        assert read(scan(table="some", connection=connection))["n"].tolist() == [7]
        connection.close()

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"table": "mixd"}, "no table 'mixd'. Did you mean 'mixed'"),
            ({"table": "blobs"}, "column 'b' has blobs. Leave it out, or convert it in a query"),
            ({"sql": "select other from mixed"}, "could not run 'select other from mixed'.*no such column"),
            ({"sql": "drop table mixed"}, "could not run 'drop table mixed'"),
            ({"sql": "select 1; select 2"}, "could not run"),
        ],
    )
    def test_problems_are_errors_with_the_query(self, path: Path, options: Any, problem: str) -> None:
        with pytest.raises(SourceError, match=problem):
            scan(path, **options)
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT count(*) FROM mixed").fetchone() == (2,)
        connection.close()

    def test_rows_that_change_between_passes_are_an_error(self) -> None:
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
        rows = scan(table="t", connection=connection)
        connection.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(SourceError, match="had 1 rows in one pass and 2 in the next"):
            read(rows)
        connection.execute("DELETE FROM t WHERE x = 1")
        connection.execute("UPDATE t SET x = 'text'")
        with pytest.raises(SourceError, match="other types of cells than before"):
            read(rows)
        connection.close()


class TestJsonLines:
    def written(self, folder: Path, text: str, name: str = "rows.jsonl") -> Path:
        (folder / name).write_text(text, encoding="utf-8")
        return folder / name

    def test_types_are_those_of_all_lines(self, tmp_path: Path) -> None:
        late = '{"n": 1.5, "id": 9007199254740993, "z": "NA", "new": true, "k": 3}\n'
        path = self.written(tmp_path, '{"n": 1, "id": 2, "z": 4, "k": "a"}\n' * 30_000 + late)
        rows = scan(path)
        table = pa.concat_tables(rows.chunks())
        assert {field.name: str(field.type) for field in table.schema} == {
            "n": "double",
            "id": "string",
            "z": "double",
            "k": "string",
            "new": "bool",
        }
        assert table.slice(len(table) - 1).to_pylist() == [
            {"n": 1.5, "id": "9007199254740993", "z": None, "k": "3", "new": True}
        ]
        assert table["z"][0].as_py() == 4.0
        assert rows.notes == ("Column 'z': 1 cell ('NA') read as missing.",)
        assert str(next(scan(path, types={"n": "text"}).chunks())["n"].type) == "string"

    def test_declared_types_are_those_of_csv_files(self, tmp_path: Path) -> None:
        text = '{"n": "NA", "flag": "True", "t": "2020-01-01"}\n{"n": "2", "flag": false, "t": "2020-01-02 10:00"}\n'
        types = {"n": "number", "flag": "boolean", "t": "timestamp"}
        rows = scan(self.written(tmp_path, text), types=types)
        (table,) = rows.chunks()
        assert [str(kind) for kind in table.schema.types] == ["double", "bool", "timestamp[us]"]
        assert table.select(["n", "flag"]).to_pydict() == {"n": [None, 2.0], "flag": [True, False]}
        assert rows.notes == ("Column 'n': 1 cell ('NA') read as missing.",)

    @pytest.mark.parametrize(("kind", "cell"), [("number", '"x"'), ("boolean", "1"), ("timestamp", "true")])
    def test_cells_that_are_not_of_the_declared_type_are_an_error_with_line_and_column(
        self, tmp_path: Path, kind: str, cell: str
    ) -> None:
        text = '{"a": null, "b": 1}\n\n{"b": 1}\n' + f'{{"a": {cell}}}\n'
        problem = rf"rows.jsonl', line 4, column 'a': '{cell.strip(chr(34))}' is not a {kind}.*types=\{{'a': 'text'\}}"
        with pytest.raises(SourceError, match=problem):
            scan(self.written(tmp_path, text), types={"a": kind})

    def test_whole_numbers_beyond_64_bits_stay_text(self, tmp_path: Path) -> None:
        path = self.written(tmp_path, '{"id": 123456789012345678901, "x": 1e30}\n{"id": 7, "x": 2}\n')
        assert next(scan(path).chunks()).to_pydict() == {"id": ["123456789012345678901", "7"], "x": [1e30, 2.0]}

    def test_several_files_have_all_their_keys_as_columns(self, tmp_path: Path) -> None:
        self.written(tmp_path, '{"a": 1}\n', "1.jsonl")
        self.written(tmp_path, '{"b": "x", "a": 2}\n', "2.jsonl")
        assert read(scan(tmp_path)).to_dict("list") == {"a": [1.0, 2.0], "b": [None, "x"]}

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ('{"a": 1}\n{"a": \n', r"rows.jsonl', line 2: malformed JSON\. Correct the line\.$"),
            ('{"a": [1, 2]}\n', "column 'a' has lists or objects"),
            ('{"a": {"b": 1}}\n', "column 'a' has lists or objects"),
            ('[{"a": 1}]', "starts with a JSON array"),
            ("a,b\n1,2\n", "not with a JSON object"),
            ('{"a": 1, "A": 2}\n', "has the keys 'A' and 'a', which .* differ only by case. Rename one of them"),
            ('{"b": 1, "a_1": 2, "a": 5}\n{"b": 3}\n{"B": 4}\n', "has the keys 'B' and 'b'"),
            ('{"a": 1}\n{"b": 3, "b": 4}\n', 'line 2: .*duplicate key "b". Correct the line'),
            ('{"": 1, "a": 2}\n', "has an empty key. Rename it"),
            ('{"a\\u0000b": 1}\n', r"has the key 'a\\x00b', which has a NUL character"),
            ("{}\n{}\n", "has no keys"),
            ('{"a": 1}\n\n[1, 2]\n', r"rows.jsonl', line 3 is not JSON object"),
        ],
    )
    def test_problems_are_errors(self, tmp_path: Path, text: str, problem: str) -> None:
        with pytest.raises(SourceError, match=problem):
            scan(self.written(tmp_path, text))

    def test_keys_in_two_files_that_differ_by_case_are_an_error(self, tmp_path: Path) -> None:
        self.written(tmp_path, '{"a": 1}\n', "1.jsonl")
        self.written(tmp_path, '{"A": 2}\n', "2.jsonl")
        with pytest.raises(SourceError, match="the keys 'A' and 'a'"):
            scan(tmp_path)

    def test_keys_may_have_any_characters(self, tmp_path: Path) -> None:
        keys = ['say "a"', "it's", "a.b", "c; d", "n\nl", "é", "É", "json", "a", "a_1", "$", "\\", "😀"]
        row = {key: float(i) for i, key in enumerate(keys)}
        (table,) = scan(self.written(tmp_path, json.dumps(row) + "\n")).chunks()
        assert table.to_pylist() == [row]

    @pytest.mark.parametrize("sparse", [False, True])
    def test_many_columns_of_one_type_are_no_mapping(self, tmp_path: Path, sparse: bool) -> None:
        row = {f"x{i}": i for i in range(300)}
        lines = [{key: i} for key, i in row.items()] if sparse else [row]
        (table,) = scan(self.written(tmp_path, "".join(json.dumps(line) + "\n" for line in lines))).chunks()
        assert table.column_names == list(row)
        assert len(table) == len(lines)


@pytest.mark.parametrize("names", [("a", "A"), ("a", "A:1", "A"), ("x", "X", "x_1")])
def test_names_that_differ_only_by_case_are_columns_of_their_own(tmp_path: Path, names: tuple[str, ...]) -> None:
    query = "select " + ", ".join(f'{i} as "{name}"' for i, name in enumerate(names))
    row = {name: i for i, name in enumerate(names)}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "rows.parquet")
    with closing(sqlite3.connect(":memory:")) as connection:
        sources = [scan(sql=query, connection=connection), scan(sql=query), scan(duckdb.sql(query))]
        for rows in [*sources, scan(tmp_path / "rows.parquet"), scan(pl.LazyFrame([row]))]:
            assert rows.columns == names
            (chunk,) = rows.chunks()
            found = chunk.to_pylist() if isinstance(chunk, pa.Table) else chunk.to_dicts()
            assert found == [row]
        with pytest.raises(SourceError, match="duplicate column names: 'a'"):
            scan(sql="select 1 as a, 2 as a", connection=connection)


def test_a_lazy_frame_that_fails_is_an_error() -> None:
    with pytest.raises(SourceError, match="Polars could not compute the LazyFrame"):
        source_of(pl.LazyFrame({"a": [1]}).select("b"))
    rows = source_of(pl.LazyFrame({"a": ["1", "x"]}).select(pl.col("a").cast(pl.Float64)))
    with pytest.raises(SourceError, match="Polars could not compute the LazyFrame"):
        read(rows)
    gc.collect()


def test_sqlite_tables_may_have_many_columns_and_connections_a_row_factory(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "wide.db")) as connection:
        names = [f"x{i}" for i in range(450)]
        connection.execute(f"create table t ({', '.join(names)})")
        connection.execute(f"insert into t values ({', '.join('?' * 450)})", range(450))
        connection.commit()
        assert scan(tmp_path / "wide.db", table="t").columns == tuple(names)
        connection.row_factory = lambda cursor, row: {"all": row}
        for rows in (scan(table="t", connection=connection), scan(sql="select x7 from t", connection=connection)):
            (chunk,) = rows.chunks()
            assert chunk["x7"].to_pylist() == [7]


def test_a_truncated_file_of_json_lines_is_an_error(tmp_path: Path) -> None:
    with pa.CompressedOutputStream(pa.OSFile(str(tmp_path / "whole"), "wb"), "zstd") as file:
        file.write(b"".join(b'{"a": %d}\n' % i for i in range(100_000)))
    packed = (tmp_path / "whole").read_bytes()
    (tmp_path / "rows.jsonl.zst").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(SourceError, match=r"rows\.jsonl\.zst' is damaged or truncated"):
        scan(tmp_path / "rows.jsonl.zst")
