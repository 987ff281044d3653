"""DuckDB: connections, results in batches, queries, relations and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from likely.data.names import double_quoted
from likely.engines.base import Stream
from likely.engines.files import DataFile
from likely.errors import InputTypeError, SourceError, nearest

OURS: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a table name never stands for a Python variable of this library
}
REMOTE_PROBLEM = re.compile(r"https?://|s3://|gcs://|gs://|r2://|hf://|az://|azure://|httpfs|extension", re.IGNORECASE)


class Query(Stream):
    """The rows of a query: on a connection of ours, to files or a database file, or on one that was handed in."""

    has_fixed_order = False

    def __init__(
        self, sql: str, connection: Any = None, file: DataFile | None = None, shown: str | None = None
    ) -> None:
        self.sql, self._connection, self._file = sql, connection, file
        where = "" if file is None else f" of {file.path!r}"
        shown = f"the query {sql!r}{where}" if shown is None else shown
        with self._relation() as relation:
            super().__init__(shown, relation.columns)

    def __getstate__(self) -> dict[str, Any]:
        if self._connection is not None:
            raise SourceError(
                f"{self.description} is read through a connection, which cannot be pickled. Use a scan of files."
            )
        return self.__dict__

    def _read(self, rows: int) -> Iterator[Any]:
        with self._relation() as relation:
            yield from batches(relation, rows)

    @contextmanager
    def _relation(self) -> Iterator[Any]:
        """The query as a relation; nothing is computed before its rows are read."""
        if self._file is not None:
            self._file.check()
        with query_errors(self.sql, own=self._connection is None):
            connection = self._connection or connect(None if self._file is None else self._file.path)
            try:
                _check_select(connection, self.sql)
                yield connection.sql(self.sql)
            finally:
                if self._connection is None:
                    connection.close()


class Relation(Stream):
    """The rows of a relation of DuckDB, on the connection it was made with."""

    has_fixed_order = False

    def __init__(self, relation: Any) -> None:
        super().__init__("a relation of DuckDB", relation.columns)
        self._relation = relation

    def __getstate__(self) -> dict[str, Any]:
        raise SourceError("A relation of DuckDB cannot be pickled. Use a scan of files.")

    def _read(self, rows: int) -> Iterator[Any]:
        with query_errors(self.description):  # a copy: the relation has one result, which the user may read
            for table in batches(self._relation.project("*"), rows):
                yield table.rename_columns(list(self.columns))  # a projection renames A next to a


def connect(database: str | None = None) -> Any:
    """A connection of ours: in memory, or to a database file, which is only read."""
    import duckdb

    connection = duckdb.connect(database or ":memory:", read_only=database is not None, config=OURS)
    connection.execute("SET enable_progress_bar = false")
    return connection


def batches(relation: Any, rows: int) -> Iterator[Any]:
    """The rows of a relation as Arrow tables, while they are computed."""
    import pyarrow as pa

    method = "to_arrow_reader" if hasattr(relation, "to_arrow_reader") else "fetch_arrow_reader"  # before version 1.5
    with getattr(relation, method)(rows) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


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


def table_query(table: str, connection: Any = None, file: DataFile | None = None) -> Query:
    """All rows of a table or view."""
    where = "" if file is None else f" of {file.path!r}"
    shown = f"the table {table!r}{where}"
    with query_errors(shown, own=connection is None):
        own = connect(None if file is None else file.path) if connection is None else connection
        try:
            tables = {name for (name,) in own.sql("SELECT table_name FROM information_schema.tables").fetchall()}
        finally:
            if connection is None:
                own.close()
    if table not in tables and "." not in table:
        raise SourceError(f"There is no table {table!r}. {nearest(table, sorted(tables))}")
    return Query(f"SELECT * FROM {quoted(table, tables)}", connection, file, shown)


def quoted(name: str, known: set[str] | None = None) -> str:
    """A name as SQL reads it; a name with dots that is not a table itself has a catalog or schema in front."""
    words = [name] if known is None or name in known else name.split(".")
    return ".".join(map(double_quoted, words))


def check_connection(connection: Any) -> str:
    """The library of a connection: "duckdb" or "sqlite3"."""
    module = type(connection).__module__.split(".")[0].lstrip("_")
    if module not in ("duckdb", "sqlite3"):
        raise InputTypeError(
            f"connection={connection!r} is not a connection of DuckDB or sqlite3. Attach the database in DuckDB, or "
            "pass an object with a method chunks()."
        )
    return module
