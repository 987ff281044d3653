"""CSV files through DuckDB: their headers, and their rows with the types of a `CsvPlan`.

DuckDB sees the columns as c0, c1, ...: names of columns are no part of a query.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from likely.data.frames import WHOLE_FIELD
from likely.data.parts import Part
from likely.engines.base import Stream, distinct
from likely.engines.csv_types import (
    RECORD,
    SAMPLE_ROWS,
    TOO_LARGE,
    ColumnType,
    CsvFile,
    MarkerCounts,
    column_types,
    layout_error,
    unexpected,
)
from likely.engines.duck import batches, connect
from likely.engines.files import DataFile, FileSet, check_complete, decompressed, is_unicode, readable
from likely.engines.parquet import same_columns
from likely.errors import SourceError, listed

DELIMITERS = ",;\t|"
HEAD = 2**20  # characters that the first line may have
QUOTED = re.compile(r'"(?:[^"]|"")*"')
LINE_BREAK = re.compile(rf"{QUOTED.pattern}|[\r\n]")  # or a quoted text, whose line breaks do not count
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
        kinds, self._sample = column_types(files, types)
        self._parts = tuple(CsvRows(file, self.columns, kinds) for file in files)

    @property
    def rows(self) -> int | None:
        """The number of rows, once every file has been read."""
        counts = [part.rows for part in self._parts]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Columns of numbers with cells such as NA: counts of the sample, and of all rows once these have been read."""
        found = [part.markers for part in self._parts]
        if None in found:
            return (*self._sample.notes(), *(note for part in self._parts for note in part.notes))
        sums = {name: sum((Counter(each[name]) for each in found if each), Counter[str]()) for name in self.columns}
        return MarkerCounts(sums).notes()

    def parts(self) -> Sequence[Part]:
        """The files."""
        return self._parts


class CsvRows(Stream):
    """The rows of a CSV file."""

    def __init__(self, file: CsvFile, columns: Sequence[str], types: Mapping[str, ColumnType]) -> None:
        super().__init__(repr(file.file.path), columns)
        self._csv, self._types = file, types
        self._late = False  # whether a cell such as NA lies beyond the sample, in a column of numbers
        self.markers: dict[str, Counter[str]] | None = None  # how often they occur, once all rows have been read

    def _read(self, rows: int) -> Iterator[Any]:
        """Tables in the order of the columns of the source.

        The first cell such as NA beyond the sample begins a new query, which allows for them in all columns of numbers
        and skips the rows that have been read.
        """
        done = 0
        try:
            for table in self._query(rows, 0):
                done += len(table)
                yield table
        except _LateMarkerError as late:
            self._late, self.notes = True, (late.note,)
            for table in self._query(rows, done):
                done += len(table)
                yield table
        if not done and self._csv.has_rows:
            raise SourceError(
                f"{self.description}: no row was found after the names of the columns, although text follows. Check "
                "the line breaks and quotes of the first lines."
            )
        if self.rows is None:
            check_complete(self._csv.file)

    def _query(self, rows: int, skip: int) -> Iterator[Any]:
        """The rows after the first ones, checked."""
        import duckdb
        import pyarrow as pa

        late = {name for name in self.columns if self._late and (self.markers is None or self.markers[name])}
        types = {name: kind.marked() if name in late else kind for name, kind in self._types.items()}
        self._csv.file.check()
        first = 0
        markers = {name: Counter[str]() for name in self.columns}
        stored = {name: f"c{self._csv.names.index(name)}" for name in self.columns}
        marked = [name for name in self.columns if types[name].markers]
        cells = [types[name].expression(stored[name]) for name in self.columns]
        texts = [types[name].marker(stored[name]) for name in marked]
        with connect() as connection:
            self._csv.declare(connection, [types[name].stored for name in self._csv.names])
            try:
                for table in batches(connection.sql(f"SELECT {', '.join(cells + texts)} {self._csv.reader}"), rows):
                    for name, column in zip(marked, table.columns[len(cells) :], strict=True):
                        markers[name] += _counts(column)
                    values = table.select(range(len(cells))).rename_columns(list(self.columns))
                    named = self._with_marks(values, types, first)
                    if first + len(named) > skip:
                        yield named.slice(max(skip - first, 0))
                    first += len(named)
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                raise self._translated(str(error), types) from error
        self._csv.file.check()
        self.markers = markers

    def _with_marks(self, table: Any, types: Mapping[str, ColumnType], first: int) -> Any:
        """A table whose fields say which columns have whole numbers, as labels do.

        A number beyond 2^53 in such a column is an error: a double does not hold its last digits.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        for name in self.columns:
            if not types[name].whole:
                continue
            column = table[name]
            large = pc.greater_equal(pc.abs(column), float(TOO_LARGE))
            if pc.any(large).as_py():
                row = pc.index(large, True).as_py()
                where = self._place(name, _is_large, first + row + 1)
                raise SourceError(
                    f"{where}, column {name!r}: {column[row].as_py():.17g} is not below 2^53, and the first rows have "
                    "smaller whole numbers. Pass "
                    f"types={{{name!r}: 'text'}} for identifiers, or 'number' for approximate values."
                )
        fields = [field.with_metadata(WHOLE_FIELD) if types[field.name].whole else field for field in table.schema]
        return table.cast(pa.schema(fields))

    def _translated(self, text: str, types: Mapping[str, ColumnType]) -> Exception:
        """An error of DuckDB as an error with file, line and column, or as a `_LateMarkerError`."""
        if found := CONVERSION.search(text):
            name, cell = self._csv.names[int(found[1])], found[2]
            if types[name].becomes_missing(cell):
                return _LateMarkerError(
                    f"Column {name!r}, {self.description}: cells such as {cell.strip()!r} beyond the first "
                    f"{SAMPLE_ROWS:,} rows read as missing."
                )
            return unexpected(self._csv.place_of(text), name, cell, types[name])
        if RECORD.search(text) is None and (bad := self._first_bad_cell(types)) is not None:
            row, name, cell = bad
            return unexpected(self._place(name, lambda text: text == cell, row), name, cell, types[name])
        return layout_error(text, self._csv)

    def _place(self, name: str, test: Callable[[str], bool], row: int) -> str:
        """The file, and the line of the first cell of a column that passes a test: it is in the given data row."""
        j = self._csv.names.index(name)
        return self._csv.place(
            lambda number, cells: number > 1 and len(cells) > j and test(cells[j]), f", data row {row}"
        )

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

    def __init__(self, note: str) -> None:
        super().__init__(note)
        self.note = note


def _is_large(cell: str) -> bool:
    """Whether a cell is a number that is not below 2^53."""
    try:
        return abs(float(cell)) >= TOO_LARGE
    except ValueError:  # a missing value
        return False


def _counts(cells: Any) -> Counter[str]:
    """How often each text is a cell of a column."""
    found = cells.drop_null().value_counts().to_pylist()
    return Counter({pair["values"]: pair["counts"] for pair in found})


def _with_header(file: DataFile, missing: tuple[str, ...]) -> CsvFile:
    """A file with its delimiter and the names in its first line, which may have line breaks in quotes."""
    head = _head(file)
    end = next((found.start() for found in LINE_BREAK.finditer(head) if found[0][0] != '"'), len(head))
    first = head[:end]
    if not is_unicode(first):
        raise SourceError(f"{file.path!r}, line 1 is not encoded in UTF-8. Convert the file first.")
    if (end == len(head) and len(head) == HEAD) or QUOTED.sub("", first).count('"'):
        raise SourceError(f"{file.path!r}: a quote in the first line is not closed. Correct the names of the columns.")
    delimiter = max(DELIMITERS, key=QUOTED.sub("", first).count)
    try:
        names = next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise SourceError(f"{file.path!r}: the first line is malformed: {error}. Correct its quotes.") from None
    if not any(names):
        raise SourceError(f"{file.path!r}: the first line has no names of columns.")
    numbers = [name for name in names if re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", name)]
    if len(numbers) == len(names) or any("." in name for name in numbers):
        raise SourceError(
            f"{file.path!r} has no header: its first line has numbers ({listed(numbers, 3)}) where the names of the "
            "columns belong. Write the names in the first line."
        )
    named = tuple(name or f"column{i}" for i, name in enumerate(names))
    return CsvFile(file, named, delimiter, missing, has_rows=bool(head[end:].strip()))


def _head(file: DataFile) -> str:
    """The first characters of a file; bytes that are not UTF-8 become surrogates."""
    import pyarrow as pa

    try:
        with readable(file.path), decompressed(file) as raw:
            return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape", newline="").read(HEAD)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{file.path!r} cannot be read: {error}.") from error
