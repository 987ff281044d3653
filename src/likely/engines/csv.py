"""CSV files through DuckDB: their headers, the types of their columns, which all rows determine, and their rows.

DuckDB sees the columns as c0, c1, ...: names of columns are not part of a query. Its sniffer guesses the types from all
rows. Numbers are final; other columns are examined for spaces, texts such as NA, times and codes (`engines/cells.py`).
"""

from __future__ import annotations

import csv
import glob
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from likely.data.names import is_unicode
from likely.engines.base import Scan, Stream, distinct
from likely.engines.cells import (
    CANDIDATES,
    FIRST_ROWS,
    TEXT,
    Candidates,
    ColumnType,
    Notation,
    declared_types,
    examined,
    first_other,
    marker_notes,
    unexpected,
)
from likely.engines.duck import batches, connect, set_variables
from likely.engines.encodings import Utf8Copy, other_encoding
from likely.engines.files import (
    DataFile,
    FileSet,
    check_complete,
    decompressed,
    library_errors,
    readable,
    unchanged,
)
from likely.engines.parquet import same_columns
from likely.errors import SourceError, amount, listed
from likely.numerics.threads import in_order

DELIMITERS = ",;\t|"
HEAD = 2**20  # characters that the first line may have
FIRST_FILES = 8  # whose first rows are examined before all are
SNIFFED, WIDE = 512, 0.5  # MB of a file that the sniffer holds in memory, otherwise all; at least for each column
NOTHING = "\x1f"  # no cell has it: DuckDB wants at least one text that stands for a missing value
QUOTED = re.compile(r'"(?:[^"]|"")*"')
LINE_BREAK = re.compile(rf"{QUOTED.pattern}|[\r\n]")  # or a quoted text, whose line breaks do not count
END = re.compile(r"[\r\n]*\Z")
RAGGED = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
RECORD = re.compile(r"CSV Error on Line: (\d+)")  # a record with line breaks in quotes counts as one line
OPTIONS = """delim=getvariable('delimiter'), quote='"', escape='"', nullstr=getvariable('missing'),
compression=getvariable('compression'), header=true, skip=0, comment='', strict_mode=true"""
READER = f"""FROM read_csv(getvariable('files'), columns=getvariable('columns'), auto_detect=false,
hive_partitioning=false, {OPTIONS})"""
SNIFFED_TYPES = "['BOOLEAN', 'INTEGER', 'BIGINT', 'HUGEINT', 'DOUBLE', 'TIMESTAMP', 'TIMESTAMPTZ', 'VARCHAR']"
SNIFFER = f"""SELECT unnest(Columns).type FROM sniff_csv(getvariable('path'), sample_size=-1,
auto_type_candidates={SNIFFED_TYPES}, {OPTIONS})"""


class CsvFiles(Scan):
    """The rows of CSV files with the same columns, one part for each file."""

    def __init__(
        self,
        found: FileSet,
        types: Mapping[str, str] | None,
        missing: Sequence[str],
        encoding: str = "utf-8",
        notation: Notation = Notation(),  # noqa: B008 -- immutable
    ) -> None:
        files = [_with_header(file, tuple(missing), encoding, notation) for file in found.files]
        columns = files[0].names
        for file in files:
            distinct(file.names, repr(file.file.path))
            same_columns(files[0].file.path, columns, file.file.path, file.names)
        kinds, markers = _column_types(files, declared_types(types, columns))
        self.notes = marker_notes(markers)
        super().__init__(found.description, columns, [CsvRows(file, columns, kinds) for file in files])


class CsvRows(Stream):
    """The rows of a CSV file."""

    def __init__(self, file: CsvFile, columns: Sequence[str], types: Mapping[str, ColumnType]) -> None:
        super().__init__(repr(file.file.path), columns)
        self._csv, self._types = file, types

    def _read(self, rows: int) -> Iterator[Any]:
        """Tables in the order of the columns of the source."""
        cells = self._csv.cells
        query = f"SELECT {', '.join(self._types[name].expression(cells[name]) for name in self.columns)} {READER}"
        with self._csv.connection([self._types[name].stored for name in self._csv.names]) as connection:
            for table in batches(connection.sql(query), rows):
                yield table.rename_columns(list(self.columns))
        if self._rows is None:
            check_complete(self._csv.file)


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file, the names of its columns, its delimiter, and the texts that are missing values in every column."""

    file: DataFile
    names: tuple[str, ...]
    delimiter: str
    missing: tuple[str, ...]
    has_rows: bool  # whether there is text after the header
    notation: Notation
    copy: Utf8Copy | None  # of a file that is not UTF-8

    @property
    def content(self) -> DataFile:
        """What is read: the file, or its copy in UTF-8."""
        return self.file if self.copy is None else self.copy.content()

    @property
    def cells(self) -> dict[str, str]:
        """What DuckDB sees the columns as."""
        return {name: f"c{i}" for i, name in enumerate(self.names)}

    @contextmanager
    def connection(self, types: Sequence[str] = ()) -> Iterator[Any]:
        """A connection with the variables of the reader, and errors that name file and line."""
        import duckdb
        import pyarrow as pa

        with unchanged(self.file), connect() as connection:
            content = self.content
            set_variables(
                connection,
                path=content.path,
                files=[glob.escape(content.path)],
                columns=dict(zip(self.cells.values(), types or ["VARCHAR"] * len(self.names), strict=True)),
                delimiter=self.delimiter,
                missing=list(self.missing) or [NOTHING],
                compression=content.compression,
            )
            try:
                yield connection
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                raise self.layout_error(str(error)) from error

    def sniffed(self) -> dict[str, str]:
        """The types of DuckDB that all cells of each column have."""
        import duckdb

        with self.connection() as connection:
            connection.execute(f"SET memory_limit = '{max(SNIFFED, WIDE * len(self.names)):.0f}MB'")
            problem: Exception | None = None
            try:
                kinds = [kind for (kind,) in connection.execute(SNIFFER).fetchall()]
            except duckdb.Error as error:
                kinds, problem = [], error
            if len(kinds) == len(self.names):
                return dict(zip(self.names, kinds, strict=True))
            # The reader says which line is wrong.
            rows = sum(len(table) for table in batches(connection.sql(f"SELECT * {READER}"), 2048))
        if not rows and self.has_rows:
            raise SourceError(
                f"{self.file.path!r}: no row was found after the names of the columns, although text follows. Check "
                "the line breaks and quotes of the first lines."
            )
        raise self.layout_error(str(problem)) from problem

    def examined(
        self, candidates: Candidates, rows: int | None
    ) -> tuple[dict[str, tuple[ColumnType, ...]], dict[str, Counter[str]]]:
        """The candidates that all cells of the first rows fit, and the cells such as NA; None is all rows."""
        known = {name: kinds for name, kinds in candidates.items() if kinds and kinds[0] != TEXT}
        with self.connection() as connection:
            reader = READER if rows is None else f"{READER} LIMIT {rows}"
            return examined(known, self.cells, reader, connection, self.notation)

    def unexpected(self, name: str, kind: ColumnType) -> SourceError:
        """An error on the first cell that does not fit the type of a column."""
        with self.connection() as connection:
            row, text = first_other(kind, self.cells[name], READER, connection, self.notation)
        j = self.names.index(name)
        where = self._place(
            lambda number, cells: number > 1 and len(cells) > j and cells[j] == text, f", data row {row}"
        )
        return unexpected(where, name, text, kind, f"missing=('', {text!r}) where it stands for a missing value")

    def layout_error(self, text: str) -> SourceError:
        """An error of DuckDB on the lines of the file, such as a ragged one, with file and line."""
        where = repr(self.file.path)
        if record := RECORD.search(text):  # DuckDB counts records, the header among them
            where = self._place(lambda number, _: number == int(record[1]), f", record {record[1]}")
        if found := RAGGED.search(text):
            return SourceError(
                f"{where} has {amount(int(found[2]), 'cell', 'cells')}, and the header has {found[1]}. Correct the "
                "line: a cell with a delimiter or a line break must be quoted."
            )
        if "unterminated quote" in text:
            return SourceError(
                f"{where}: a quote is not closed, or text follows it. Correct the line: double the quotes in quoted "
                "cells."
            )
        if "state machine" in text and (end := self._other_line_end()) is not None:
            line, first, other = end
            return SourceError(
                f"{self.file.path!r}, line {line} ends with {other!r}, and line 1 with {first!r}. Write all lines with "
                "one line break; a cell with a line break must be quoted."
            )
        if "unicode" in text.lower():
            return SourceError(f"{where} is not encoded in UTF-8. {other_encoding(b'')}")
        return SourceError(f"{where}: {text.split('Possible')[0].strip()}")

    def _place(self, test: Callable[[int, Sequence[str]], bool], otherwise: str) -> str:
        """The file, and the line where the first record begins that passes test(number, cells); the header is record 1.

        `otherwise` stands for the line where no record passes, or a cell is too long for the standard library. Blank
        lines are records without cells.
        """
        with _text(self.content) as text:
            reader = csv.reader(text, delimiter=self.delimiter)
            number, line = 1, 1
            try:
                for cells in reader:
                    if test(number, cells):
                        return f"{self.file.path!r}, line {line}"
                    number, line = number + 1, reader.line_num + 1
            except csv.Error:
                pass
        return f"{self.file.path!r}{otherwise}"

    def _other_line_end(self) -> tuple[int, str, str] | None:
        """The first line whose line break, outside of quotes, is not that of line 1; both, that of line 1 first."""
        first, quotes = "", 0
        with _text(self.content) as text:
            for number, line in enumerate(text, 1):
                end = END.search(line)[0]  # type: ignore[index]  # it matches any text
                quotes += line.count('"')
                if quotes % 2 or not end:
                    continue
                first = first or end
                if end != first:
                    return number, first, end
        return None


def _text(file: DataFile) -> io.TextIOWrapper:
    """The text of a file with its line breaks; bytes that are not UTF-8 become surrogates."""
    return io.TextIOWrapper(decompressed(file), encoding="utf-8-sig", errors="surrogateescape", newline="")


def _column_types(
    files: Sequence[CsvFile], declared: Candidates
) -> tuple[dict[str, ColumnType], dict[str, Counter[str]]]:
    """The types that all cells of the columns have, and the cells such as NA of those with numbers.

    A column is text unless all its cells fit another type; cells that do not fit a declared type are an error.
    """
    sniffed = list(in_order(files, CsvFile.sniffed))
    types: dict[str, ColumnType] = {}
    left: dict[str, tuple[ColumnType, ...]] = {}
    notation = files[0].notation
    final = {"INTEGER", "DOUBLE"} if notation == Notation() else {"INTEGER"}
    for name in files[0].names:
        found = {each[name] for each in sniffed}
        if name not in declared and found <= final:
            types[name] = ColumnType("number", whole=found == {"INTEGER"})
        else:
            left[name] = declared.get(name, CANDIDATES)
    markers = {name: Counter[str]() for name in left}
    step = -(-len(files) // FIRST_FILES)
    for file, rows in [*((file, FIRST_ROWS) for file in files[::step]), *((file, None) for file in files)]:
        fitting, marked = file.examined(left, rows)
        for name, kinds in fitting.items():
            if not kinds and name in declared:
                raise file.unexpected(name, left[name][0])
            markers[name] += marked[name] if rows is None else Counter()
        left |= fitting
    for name, kinds in left.items():
        kind = kinds[0] if kinds else TEXT
        types[name] = replace(kind, markers=kind.name == "number", notation=notation)
    return types, {name: marked for name, marked in markers.items() if types[name].markers}


def _with_header(file: DataFile, missing: tuple[str, ...], encoding: str, notation: Notation) -> CsvFile:
    """A file with its delimiter and the names in its first line, which may have line breaks in quotes."""
    copy = None if encoding == "utf-8" else Utf8Copy(file, encoding)
    content = file if copy is None else copy.content()
    with library_errors(f"{file.path!r} cannot be read"), readable(file.path), _text(content) as text:
        head = text.read(HEAD)
    end = next((found.start() for found in LINE_BREAK.finditer(head) if found[0][0] != '"'), len(head))
    first = head[:end]
    if not is_unicode(first):
        remedy = other_encoding(head[:2].encode("utf-8", "surrogateescape"))
        raise SourceError(f"{file.path!r}, line 1 is not encoded in UTF-8. {remedy}")
    if (end == len(head) and len(head) == HEAD) or QUOTED.sub("", first).count('"'):
        raise SourceError(f"{file.path!r}: a quote in the first line is not closed. Correct the names of the columns.")
    counts = {mark: QUOTED.sub("", first).count(mark) for mark in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda mark: (counts[mark], mark not in (notation.decimal, notation.thousands)))
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
    return CsvFile(file, named, delimiter, missing, bool(head[end:].strip()), notation, copy)
