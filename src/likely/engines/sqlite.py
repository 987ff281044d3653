"""Tables and queries of SQLite through the standard library, with one type for each column."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, time
from pathlib import Path
from typing import Any

from likely.data.names import double_quoted
from likely.engines.base import CONNECTED, Stream
from likely.engines.files import DataFile, library_errors, unchanged
from likely.errors import SourceError, nearest

STORAGE_CLASSES = ("integer", "real", "text", "blob")  # types of cells
RENAMED = re.compile(r".*:\d+", re.DOTALL)  # columns of subqueries whose names differ only by case, or not at all
PROFILED = 200  # columns whose types one query counts: SQLite allows 2,000 results


class SqliteRows(Stream):
    """The rows of a table or query of SQLite.

    SQLite has types of cells, not of columns: one pass finds them before the first row is read. Columns of numbers and
    text are text.
    """

    def __init__(
        self, description: str, file: DataFile | None, connection: Any, sql: str | None, table: str | None
    ) -> None:
        self.description, self._file, self._connection = description, file, connection
        self._bound = "" if connection is None else CONNECTED
        self._sql = f"SELECT * FROM {double_quoted(table)}" if table is not None else str(sql).strip().rstrip(";")
        with self._opened() as opened:
            if table is not None:
                _check_table(opened, table)
            columns = _names(opened, f"SELECT * FROM ({self._sql}\n) LIMIT 0")
            if any(RENAMED.fullmatch(name) for name in columns):
                columns = _names(opened, self._sql)
            super().__init__(description, columns)
            self._rows, self._types = self._profile(opened)

    def _profile(self, connection: sqlite3.Connection) -> tuple[int, tuple[str, ...]]:
        """The number of rows, and the type of each column: that of all its cells."""
        names = [f"c{i}" for i in range(len(self.columns))]
        table = f"WITH cells({', '.join(names)}) AS ({self._sql}\n)"
        found: list[int | None] = []
        for first in range(0, len(names), PROFILED):
            counts = []
            for name in names[first : first + PROFILED]:
                counts += [f"count({name})", *(f"sum(typeof({name}) = '{kind}')" for kind in STORAGE_CLASSES)]
            ((rows, *some),) = _rows(connection, f"{table} SELECT count(*), {', '.join(counts)} FROM cells")
            found += some
        types = []
        for j, column in enumerate(self.columns):
            cells, whole, real, text, blob = (count or 0 for count in found[j * 5 : j * 5 + 5])
            if blob:
                kinds = [word for word, n in (("numbers", whole + real), ("text", text), ("blobs", blob)) if n]
                raise SourceError(
                    f"{self.description}: column {column!r} has {' and '.join(kinds)}. Leave it out, or convert it in "
                    f'a query, for example scan(path, sql="select hex({double_quoted(column)}), ... from ...").'
                )
            types.append("string" if text else "float64" if real or not cells else "int64")
        return int(rows), tuple(types)

    def _read(self, rows: int) -> Iterator[Any]:
        import pyarrow as pa

        problem = f"{self.description} has other types of cells than before"
        schema = pa.schema(list(zip(self.columns, map(pa.type_for_alias, self._types), strict=True)))
        with self._opened() as connection, closing(connection.cursor()) as cursor:
            cursor.row_factory = None  # the connection of the user may have another one
            cursor.execute(self._sql)
            while found := cursor.fetchmany(rows):
                with library_errors(problem, kinds=(TypeError, OverflowError)):
                    columns = zip(zip(*found, strict=True), schema.types, strict=True)
                    cells = [
                        pa.array(map(_text, column) if kind == pa.string() else column, kind)
                        for column, kind in columns
                    ]
                yield pa.Table.from_arrays(cells, schema=schema)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """The connection that was handed in, or one that only reads; errors name the query."""
        problem = f"SQLite could not run {self._sql!r} for {self.description}"
        with unchanged(self._file), library_errors(problem, kinds=(sqlite3.Error, sqlite3.Warning)):
            if self._connection is not None:
                yield self._connection
                return
            assert self._file is not None
            address = f"{Path(self._file.path).resolve().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True)) as connection:
                yield connection


def _text(cell: Any) -> Any:
    """A cell of a column of text: numbers among text are written as text, and dates that the connection has made."""
    if isinstance(cell, int | float):
        return repr(cell)
    return str(cell) if isinstance(cell, date | time) else cell


def _names(connection: sqlite3.Connection, query: str) -> list[str]:
    """The names of the columns of a query."""
    with closing(connection.execute(query)) as cursor:
        return [column[0] for column in cursor.description]


def _check_table(connection: sqlite3.Connection, table: str) -> None:
    """Raise where there is no such table or view."""
    every = "SELECT name, type FROM sqlite_master UNION ALL SELECT name, type FROM sqlite_temp_master"
    found = _rows(connection, f"SELECT DISTINCT name FROM ({every}) WHERE type IN ('table', 'view')")
    names = sorted(name for (name,) in found)
    if table not in names:
        raise SourceError(f"There is no table {table!r}. {nearest(table, names)}")


def _rows(connection: sqlite3.Connection, query: str) -> list[Any]:
    """All rows of a query as tuples, whatever the connection of the user makes of them."""
    with closing(connection.cursor()) as cursor:
        cursor.row_factory = None
        return cursor.execute(query).fetchall()
