"""DuckDB: connections, results in batches, queries, relations and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from likely.data.names import double_quoted
from likely.engines.base import CONNECTED, Stream
from likely.engines.files import DataFile, unchanged
from likely.errors import InputTypeError, SourceError, nearest

OURS: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a table name never stands for a Python variable of this library
}
REMOTE_PROBLEM = re.compile(r"https?://|s3://|gcs://|gs://|r2://|hf://|az://|azure://|httpfs|extension", re.IGNORECASE)


class Query(Stream):
    """The rows of a query, or of a table: on a connection of ours, to files or a database file, or on a given one."""

    has_fixed_order = False

    def __init__(
        self, description: str, file: DataFile | None, connection: Any, sql: str | None, table: str | None
    ) -> None:
        self._file, self._connection = file, connection
        self._bound = "" if connection is None else CONNECTED
        if table is not None:
            with self._opened(description) as opened:
                sql = f"SELECT * FROM {_known_table(opened, table)}"
        self.sql = str(sql)
        with self._opened(self.sql) as opened:
            _check_select(opened, self.sql)
            super().__init__(description, opened.sql(self.sql).columns)

    def _read(self, rows: int) -> Iterator[Any]:
        with self._opened(self.sql) as connection:
            yield from batches(connection.sql(self.sql), rows)

    @contextmanager
    def _opened(self, shown: str) -> Iterator[Any]:
        """The connection that was handed in, or one of ours, which is closed; errors name the query."""
        with unchanged(self._file), query_errors(shown, own=self._connection is None):
            if self._connection is not None:
                yield self._connection
                return
            with connect(None if self._file is None else self._file.path) as connection:
                yield connection


class Relation(Stream):
    """The rows of a relation of DuckDB, on the connection it was made with."""

    has_fixed_order = False
    _bound = CONNECTED

    def __init__(self, relation: Any) -> None:
        super().__init__("a relation of DuckDB", relation.columns)
        self._relation = relation

    def _read(self, rows: int) -> Iterator[Any]:
        with query_errors(self.description):  # a copy: the relation has one result, which the user may read
            for table in batches(self._relation.project("*"), rows):
                yield table.rename_columns(list(self.columns))  # a projection renames A next to a


def connect(database: str | None = None) -> Any:
    """A connection of ours: in memory, or to a database file, which is only read."""
    import duckdb

    connection = duckdb.connect(database or ":memory:", read_only=database is not None, config=OURS)
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")  # otherwise that of the computer, which casts of times depend on
    return connection


def set_variables(connection: Any, **values: Any) -> None:
    """Set variables of queries: names of files and texts are values, never a part of a query."""
    for name, value in values.items():
        connection.execute(f"SET VARIABLE {name} = ?", [value])


def batches(relation: Any, rows: int) -> Iterator[Any]:
    """The rows of a relation as Arrow tables, while they are computed; times with a time zone are in UTC."""
    import pyarrow as pa

    method = "to_arrow_reader" if hasattr(relation, "to_arrow_reader") else "fetch_arrow_reader"  # before version 1.5
    with getattr(relation, method)(rows) as reader:
        kinds = [pa.timestamp(kind.unit, "UTC") if getattr(kind, "tz", None) else kind for kind in reader.schema.types]
        utc = pa.schema([field.with_type(kind) for field, kind in zip(reader.schema, kinds, strict=True)])
        for batch in reader:
            table = pa.Table.from_batches([batch])
            yield table if table.schema.types == kinds else table.cast(utc)


@contextmanager
def query_errors(sql: str, own: bool = False) -> Iterator[None]:
    """Errors of DuckDB as errors with the query; `own`: the connection is ours, and so has no tables."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        hint = ""
        if own and REMOTE_PROBLEM.search(str(error)):
            hint = " Pass connection=, a DuckDB connection whose extensions can read it."
        elif own and isinstance(error, duckdb.CatalogException | duckdb.ConnectionException):
            hint = " Pass connection=, the DuckDB connection that has the table or has opened the file."
        text = str(error).strip()
        raise SourceError(f"DuckDB could not run {sql!r}: {text}{'' if text.endswith('.') else '.'}{hint}") from error


def _check_select(connection: Any, sql: str) -> None:
    """Raise unless a text is one query: a scan runs it once in every pass."""
    found = [statement.type.name for statement in connection.extract_statements(sql)]
    if found != ["SELECT"]:
        what = found[0] if len(found) == 1 else f"{len(found)} statements"
        raise SourceError(f"sql={sql!r} is {what}, not a single SELECT. Run other statements before scan.")


def _known_table(connection: Any, table: str) -> str:
    """A table or view as SQL reads it; a name with dots that is not a table itself has a catalog or schema in front."""
    known = {name for (name,) in connection.sql("SELECT table_name FROM information_schema.tables").fetchall()}
    if table not in known and "." not in table:
        raise SourceError(f"There is no table {table!r}. {nearest(table, sorted(known))}")
    return ".".join(map(double_quoted, [table] if table in known else table.split(".")))


def check_connection(connection: Any) -> str:
    """The library of a connection: "duckdb" or "sqlite3"."""
    module = type(connection).__module__.split(".")[0].lstrip("_")
    if module not in ("duckdb", "sqlite3"):
        raise InputTypeError(
            f"connection={connection!r} is not a connection of DuckDB or sqlite3. Attach the database in DuckDB, or "
            "pass an object with a method chunks()."
        )
    return module
