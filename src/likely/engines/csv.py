"""CSV files through DuckDB: their headers, and their rows with the types of a `CsvPlan`.

DuckDB sees the columns as c0, c1, ...: names of columns are no part of a query.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from likely.data.parts import Part
from likely.engines.base import Stream, distinct
from likely.engines.csv_types import LINE, TOO_LARGE, ColumnType, CsvFile, column_types, layout_error
from likely.engines.duck import batches, connect
from likely.engines.files import FileSet, readable
from likely.engines.parquet import same_columns
from likely.errors import SourceError, listed

DELIMITERS = ",;\t|"
CONVERSION = re.compile(r'converting column "c(\d+)"\. Could not convert string "(.*)" to \'', re.DOTALL)


class CsvFiles:
    """The rows of CSV files with the same columns, one part for each file."""

    has_fixed_order = True

    def __init__(self, found: FileSet, types: Mapping[str, str] | None, missing: Sequence[str]) -> None:
        self.description = found.description
        files = [_with_header(file, tuple(missing)) for file in found.files]
        self.columns = distinct(files[0].names, repr(files[0].file.path))
        for file in files[1:]:
            distinct(file.names, repr(file.file.path))
            same_columns(files[0].file.path, self.columns, file.file.path, file.names)
        self._types, self._notes = column_types(files, types)
        self._parts = tuple(CsvRows(file, self.columns, self._types) for file in files)

    @property
    def rows(self) -> int | None:
        """The number of rows, once every file has been read."""
        counts = [part.rows for part in self._parts]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Columns of numbers with cells such as NA."""
        return (*self._notes, *dict.fromkeys(note for part in self._parts for note in part.notes))

    def parts(self) -> Sequence[Part]:
        """The files."""
        return self._parts


class CsvRows(Stream):
    """The rows of a CSV file."""

    def __init__(self, file: CsvFile, columns: Sequence[str], types: Mapping[str, ColumnType]) -> None:
        super().__init__(repr(file.file.path), columns)
        self._csv, self._types = file, types
        self._late: tuple[str, ...] = ()  # columns of numbers whose first cell such as NA lies beyond the sample

    def _read(self, rows: int) -> Iterator[Any]:
        """Tables in the order of the columns of the source.

        A cell such as NA beyond the sample begins a new query, which skips the rows that have been read.
        """
        done = 0
        while True:
            try:
                for table in self._query(rows, done):
                    done += len(table)
                    yield table
            except _LateMarkerError as late:
                self._late = (*self._late, late.column)
                self.notes = (*self.notes, late.note)
                continue
            return

    def _query(self, rows: int, skip: int) -> Iterator[Any]:
        """The rows after the first ones, checked."""
        import duckdb
        import pyarrow as pa

        types = {name: kind.marked() if name in self._late else kind for name, kind in self._types.items()}
        self._csv.file.check()
        first = 0
        with connect() as connection:
            self._csv.declare(connection, [types[name].stored for name in self._csv.names])
            cells = ", ".join(types[name].expression(f"c{self._csv.names.index(name)}") for name in self.columns)
            try:
                for table in batches(connection.sql(f"SELECT {cells} {self._csv.reader}"), rows):
                    named = table.rename_columns(list(self.columns))
                    self._check_whole(named, types, first)
                    if first + len(named) > skip:
                        yield named.slice(max(skip - first, 0))
                    first += len(named)
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                raise self._translated(str(error), types) from error
        self._csv.file.check()

    def _check_whole(self, table: Any, types: Mapping[str, ColumnType], first: int) -> None:
        """Raise at a number beyond 2^53 in a column of whole numbers, whose last digits a double does not hold."""
        import pyarrow.compute as pc

        for name in self.columns:
            if types[name].whole:
                ends = pc.min_max(table[name])
                if ends["min"].is_valid and max(-ends["min"].as_py(), ends["max"].as_py()) >= TOO_LARGE:
                    large = pc.greater_equal(pc.abs(table[name]), float(TOO_LARGE))
                    row = pc.index(large, True).as_py()
                    raise SourceError(
                        f"{self.description}, data row {first + row + 1}, column {name!r}: "
                        f"{table[name][row].as_py():.17g} is not below 2^53, and the first rows have smaller numbers. "
                        f"Pass types={{{name!r}: 'text'}} for identifiers, or 'number' for approximate values."
                    )

    def _translated(self, text: str, types: Mapping[str, ColumnType]) -> Exception:
        """An error of DuckDB as an error with file, line and column."""
        line = LINE.search(text)
        where = f"{self.description}{f', line {line[1]}' if line else ''}"
        if found := CONVERSION.search(text):
            name, cell = self._csv.names[int(found[1])], found[2]
            if types[name].becomes_missing(cell):
                return _LateMarkerError(name, f"Column {name!r}, from {where} on: {cell.strip()!r} is a missing value.")
            return _unexpected(where, name, cell, types[name])
        if line is None and (bad := self._first_bad_cell(types)) is not None:
            row, name, cell = bad
            return _unexpected(f"{where}, data row {row}", name, cell, types[name])
        return layout_error(text, self._csv)

    def _first_bad_cell(self, types: Mapping[str, ColumnType]) -> tuple[int, str, str] | None:
        """The number of the first row with a cell that an expression cannot convert, its column and the cell."""
        found = []
        with connect() as connection:
            self._csv.declare(connection, ["VARCHAR"] * len(self._csv.names))
            for i, name in enumerate(self._csv.names):
                problem = types[name].problem(f"c{i}")
                if problem is not None:
                    numbered = f"SELECT row_number() OVER () AS row, c{i} AS cell, {problem} AS bad {self._csv.reader}"
                    bad = connection.execute(f"SELECT row, cell FROM ({numbered}) WHERE bad LIMIT 1").fetchall()
                    found += [(int(row), name, str(cell)) for row, cell in bad]
        return min(found, default=None)


class _LateMarkerError(SourceError):
    """A cell such as NA in a column of numbers, beyond the sample that gave its type."""

    def __init__(self, column: str, note: str) -> None:
        super().__init__(note)
        self.column, self.note = column, note


def _unexpected(where: str, name: str, cell: str, kind: ColumnType) -> SourceError:
    return SourceError(
        f"{where}, column {name!r}: {cell!r} is no {kind.name}, as the first rows have. Pass "
        f"types={{{name!r}: 'text'}}, or missing=('', {cell!r}) where it stands for a missing value."
    )


def _with_header(file: Any, missing: tuple[str, ...]) -> CsvFile:
    """A file with its delimiter and the names in its first line."""
    import pyarrow as pa

    compression = None if file.compression == "none" else file.compression
    try:
        with readable(file.path), pa.input_stream(file.path, compression=compression) as raw:
            text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
            first = text.readline(2**20)
            delimiter = max(DELIMITERS, key=first.count)
            if first.count('"') % 2:
                first += text.read(2**16)  # a name with a line break
    except UnicodeDecodeError as error:
        raise SourceError(f"{file.path!r} is not encoded in UTF-8: {error}. Convert it first.") from None
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{file.path!r} cannot be read: {error}.") from error
    names = next(csv.reader(io.StringIO(first), delimiter=delimiter), [])
    if not any(names):
        raise SourceError(f"{file.path!r}: the first line has no names of columns.")
    numbers = [name for name in names if re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", name)]
    if len(numbers) == len(names) or any("." in name for name in numbers):
        raise SourceError(
            f"{file.path!r} has no header: its first line has numbers ({listed(numbers, 3)}) where the names of the "
            "columns belong. Write the names in the first line."
        )
    return CsvFile(file, tuple(name or f"column{i}" for i, name in enumerate(names)), delimiter, missing)
