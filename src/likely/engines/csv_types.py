"""Types of the columns of CSV files, from a sample of their cells.

Numbers are read as doubles, never as integers, because DuckDB rounds decimals that come later in a column of integers.
"""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from likely.engines.csv_lines import Test, line_of, other_line_end
from likely.engines.duck import connect
from likely.engines.files import DataFile
from likely.errors import InputError, SourceError, amount, check_choice, listed, nearest

MARKERS = ("NA", "N/A", "NaN", "null", "None", "?", "-", ".")  # missing values in columns of numbers
SAMPLE_ROWS, SAMPLE_FILES = 20_480, 8
TOO_LARGE = 2**53  # doubles do not tell this whole number from the next
KINDS = {"number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "timestamp": "TIMESTAMP"}
NOTHING = "\x1f"  # no cell has it: DuckDB wants at least one text that stands for a missing value
MARKED = f"trim({{0}}) IN ({', '.join(map(repr, MARKERS))})"
BOOLEAN = "lower(trim({0})) IN ('true', 'false')"
TIME = r"\d\d\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d\d?\d?\d?\d?\d?)?)?)?"
OFFSET = r" ?(Z|[+-]\d\d(:?\d\d)?)"
LOCAL = f"regexp_full_match(trim({{0}}), '{TIME}') AND try_cast(trim({{0}}) AS TIMESTAMP) IS NOT NULL"
ZONED = f"regexp_full_match(trim({{0}}), '{TIME}{OFFSET}') AND try_cast(trim({{0}}) AS TIMESTAMPTZ) IS NOT NULL"
RAGGED = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
RECORD = re.compile(r"CSV Error on Line: (\d+)")  # a record with line breaks in quotes counts as one line
READER = """FROM read_csv(getvariable('files'), columns=getvariable('columns'), delim=getvariable('delimiter'),
quote='"', escape='"', nullstr=getvariable('missing'), compression=getvariable('compression'), header=true,
skip=0, comment='', auto_detect=false, hive_partitioning=false, strict_mode=true)"""
PROFILE = f"""WITH sample AS MATERIALIZED (SELECT * {READER} LIMIT {SAMPLE_ROWS + 1}),
cells AS (FROM (SELECT * FROM sample LIMIT {SAMPLE_ROWS}) UNPIVOT INCLUDE NULLS (cell FOR name IN (COLUMNS(*)))),
marked AS (SELECT name, trim(cell) AS cell, {MARKED.format("cell")} AS marker, try_cast(cell AS DOUBLE) AS number
    FROM cells)
SELECT name,
    (SELECT count(*) FROM sample) > {SAMPLE_ROWS} AS longer,
    count(*) FILTER (NOT marker) AS cells,
    count(*) FILTER (CASE WHEN NOT marker THEN number IS NOT NULL AND NOT contains(cell, '_') END) AS numbers,
    count(*) FILTER (CASE WHEN number = floor(number) THEN regexp_full_match(cell, '[+-]?[0-9]+') END) AS whole,
    count(*) FILTER (NOT marker AND abs(number) >= {TOO_LARGE}) AS large,
    count(*) FILTER (CASE WHEN number IS NULL THEN {BOOLEAN.format("cell")} END) AS booleans,
    count(*) FILTER (CASE WHEN number IS NULL THEN {LOCAL.format("cell")} END) AS times,
    count(*) FILTER (CASE WHEN number IS NULL THEN {ZONED.format("cell")} END) AS zoned,
    histogram(cell) FILTER (marker) AS markers
FROM marked GROUP BY name"""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How the cells of a column are read."""

    name: str  # "number", "text", "boolean" or "timestamp"
    whole: bool = False  # the sample has whole numbers only
    markers: bool = False  # cells such as NA are missing values; read as text first
    declared: bool = False  # by the user, in types=
    zoned: bool = False  # times have an offset from UTC, such as +02:00 or Z

    @property
    def stored(self) -> str:
        """The type that DuckDB reads from the file."""
        return "DOUBLE" if self.name == "number" and not self.markers else "VARCHAR"

    @property
    def shown(self) -> str:
        """The type in messages."""
        example = "2026-01-31 10:00:00" + "+02:00" * self.zoned
        return self.name if self.name != "timestamp" else f"timestamp such as {example}"

    def marked(self) -> ColumnType:
        """The same type for a column with cells such as NA, which are missing values where it has numbers."""
        return replace(self, markers=True) if self.name == "number" else self

    def becomes_missing(self, cell: str) -> bool:
        """Whether a cell is a missing value that the type does not allow for yet."""
        return self.name == "number" and not self.markers and cell.strip() in MARKERS

    def expression(self, column: str) -> str:
        """The cells of a column of DuckDB as values."""
        problem = self.problem(column)
        if problem is None:
            return column
        if self.name == "number":
            return f"CASE WHEN {MARKED.format(column)} THEN NULL ELSE {column}::DOUBLE END"
        kind = "TIMESTAMPTZ" if self.zoned else KINDS[self.name]
        return f"CASE WHEN {problem} THEN error('not a {self.name}') ELSE trim({column})::{kind} END"

    def marker(self, column: str) -> str:
        """The text of cells such as NA, and NULL for all others."""
        return f"CASE WHEN {MARKED.format(column)} THEN trim({column}) END"

    def problem(self, column: str) -> str | None:
        """A condition for cells that `expression` cannot convert; None where it converts all."""
        if self.name in ("boolean", "timestamp"):
            test = BOOLEAN if self.name == "boolean" else ZONED if self.zoned else LOCAL
            return f"{column} IS NOT NULL AND NOT ({test.format(column)})"
        return f"NOT {MARKED.format(column)} AND try_cast({column} AS DOUBLE) IS NULL" if self.markers else None


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file, the names of its columns, its delimiter, and the texts that are missing values in every column."""

    file: DataFile
    names: tuple[str, ...]
    delimiter: str
    missing: tuple[str, ...]
    has_rows: bool  # whether there is text after the header
    reader = READER

    def place(self, test: Test, otherwise: str = "") -> str:
        """The file, and the line of the first record that passes a test; `otherwise` where none does."""
        line = line_of(self.file, self.delimiter, test)
        return f"{self.file.path!r}{otherwise if line is None else f', line {line}'}"

    def place_of(self, text: str) -> str:
        """The file, and the line that an error of DuckDB is about: DuckDB counts records, the header among them."""
        found = RECORD.search(text)
        if found is None:
            return repr(self.file.path)
        return self.place(lambda number, _: number == int(found[1]), f", record {found[1]}")

    def declare(self, connection: Any, types: Sequence[str]) -> None:
        """Set the variables of `reader`: file names and texts are values, never a part of a query."""
        values = {
            "files": [glob.escape(self.file.path)],
            "columns": {f"c{i}": kind for i, kind in enumerate(types)},
            "delimiter": self.delimiter,
            "missing": list(self.missing) or [NOTHING],
            "compression": self.file.compression,
        }
        for name, value in values.items():
            connection.execute(f"SET VARIABLE {name} = ?", [value])


@dataclass(frozen=True, slots=True)
class MarkerCounts:
    """How often each text such as NA is a cell of a column of numbers: counts[column][text]."""

    counts: Mapping[str, Mapping[str, int]]
    where: str = ""  # the rows that were counted; empty for all rows

    def notes(self) -> tuple[str, ...]:
        """A note on each column that has such cells."""
        notes = []
        for name, found in self.counts.items():
            if not found:
                continue
            count = sum(found.values())
            cells = f"{count:,} {'cell' if count == 1 else 'cells'} ({listed(sorted(found))})"
            notes.append(f"Column {name!r}: {cells}{self.where} read as missing.")
        return tuple(notes)


def column_types(
    files: Sequence[CsvFile], types: Mapping[str, str] | None
) -> tuple[dict[str, ColumnType], MarkerCounts]:
    """The type of every column: the declared one, or that of all cells of a sample; and the cells such as NA in it."""
    declared = check_types(types, files[0].names)
    step = max(1, -(-len(files) // SAMPLE_FILES))
    samples = [_profile(file) for file in files[::step]]
    found: dict[str, ColumnType] = {}
    counts: dict[str, Counter[str]] = {}
    for name in files[0].names:
        profiles = [sample[name] for sample in samples if name in sample]
        found[name] = _type(profiles)
        if name in declared:
            found[name] = ColumnType(declared[name], declared=True, zoned=found[name].zoned)
        markers = sum((Counter(profile["markers"] or {}) for profile in profiles), Counter[str]())
        if found[name].name == "number" and markers:
            found[name] = found[name].marked()
            counts[name] = markers
    complete = step == 1 and not any(profile["longer"] for sample in samples for profile in sample.values())
    return found, MarkerCounts(counts, "" if complete else _sample_rows(len(samples), len(files)))


def _sample_rows(samples: int, files: int) -> str:
    """The rows that a sample consists of."""
    many = "" if files == 1 else " of each file" if samples == files else f" of {samples} of the {files} files"
    return f" in the first {SAMPLE_ROWS:,} rows{many}"


def check_types(types: Mapping[str, str] | None, columns: Sequence[str]) -> Mapping[str, str]:
    """The option `types`, whose columns and words must be known."""
    if types is None:
        return {}
    if not isinstance(types, Mapping):
        raise InputError(f"types={types!r} must be a dictionary such as {{'age': 'number', 'code': 'text'}}.")
    for name, kind in types.items():
        if name not in columns:
            raise SourceError(f"types={dict(types)!r}: there is no column {name!r}. {nearest(str(name), columns)}")
        check_choice(f"types[{name!r}]", kind, KINDS)
    return types


def _profile(file: CsvFile) -> dict[str, dict[str, Any]]:
    """What the first cells of every column look like; columns without any cell are left out."""
    import duckdb

    with connect() as connection:
        file.declare(connection, ["VARCHAR"] * len(file.names))
        try:
            result = connection.execute(PROFILE)
            words = [column[0] for column in result.description]
            rows = result.fetchall()
        except duckdb.Error as error:
            raise layout_error(str(error), file) from error
    return {file.names[int(row[0][1:])]: dict(zip(words, row, strict=True)) for row in rows}


def layout_error(text: str, file: CsvFile) -> SourceError:
    """An error of DuckDB on the lines of a file, such as a ragged one, with file and line."""
    where = file.place_of(text)
    if found := RAGGED.search(text):
        return SourceError(
            f"{where} has {amount(int(found[2]), 'cell', 'cells')}, and the header has {found[1]}. Correct the line: a "
            "cell with a delimiter or a line break must be quoted."
        )
    if "unterminated quote" in text:
        return SourceError(
            f"{where}: a quote is not closed, or text follows it. Correct the line: double the quotes in quoted cells."
        )
    if "state machine" in text and (end := other_line_end(file.file)) is not None:
        line, first, other = end
        return SourceError(
            f"{file.file.path!r}, line {line} ends with {other!r}, and line 1 with {first!r}. Write all lines with one "
            "line break; a cell with a line break must be quoted."
        )
    if "unicode" in text.lower():
        return SourceError(f"{where} is not encoded in UTF-8. Convert the file first.")
    return SourceError(f"{where}: {text.split('Possible')[0].strip()}")


def unexpected(where: str, name: str, cell: str, kind: ColumnType, otherwise: str | None = None) -> SourceError:
    """An error on a cell that is not of the type of its column."""
    reason = "declared in types=" if kind.declared else "unlike the first rows"
    otherwise = otherwise or f"missing=('', {cell!r}) where it stands for a missing value"
    return SourceError(
        f"{where}, column {name!r}: {cell!r} is not a {kind.shown} ({reason}). Pass types={{{name!r}: 'text'}}, or "
        f"{otherwise}."
    )


def _type(profiles: Sequence[Mapping[str, Any]]) -> ColumnType:
    """The type that all cells of a sample have; a column without cells has numbers, all of them missing."""
    cells, numbers, whole, large, booleans, times, zoned = (
        sum(profile[word] for profile in profiles)
        for word in ("cells", "numbers", "whole", "large", "booleans", "times", "zoned")
    )
    if numbers == cells:
        return ColumnType("text") if large and whole == cells else ColumnType("number", whole=whole == cells)
    if any(profile["markers"] for profile in profiles):
        return ColumnType("text")
    if cells in (times, zoned):
        return ColumnType("timestamp", zoned=zoned == cells)
    return ColumnType("boolean" if booleans == cells else "text")
