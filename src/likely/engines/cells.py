"""Cells of text files, CSV and JSON lines: the types that they fit, and how they are converted by DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from likely.data.names import double_quoted
from likely.errors import InputError, SourceError, check_choice, listed, nearest

FIRST_ROWS = 20_480  # which are examined before all are
TOO_LARGE = 2**53  # doubles do not tell this whole number from the next
KINDS = {"number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "timestamp": "TIMESTAMP"}
MARKED = "regexp_full_match(trim({0}), 'NA|N/A|NaN|null|None|[?.-]')"  # missing values in columns of numbers
TIME = r"\d\d\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d\d?\d?\d?\d?\d?)?)?)?"
OFFSET = r" ?(Z|[+-]\d\d(:?\d\d)?)"
WHOLE = "coalesce(number = floor(number) AND regexp_full_match(cell, '[+-]?(0|[1-9][0-9]*)'), false)"
TESTS = {  # of a cell without spaces, which is a number or not; regular expressions only for cells that need them
    "whole": f"marked OR ({WHOLE} AND abs(number) < {TOO_LARGE})",
    "digits": f"marked OR {WHOLE}",
    "plain": "marked OR (number IS NOT NULL AND NOT regexp_matches(cell, '^[+-]?0[0-9]') AND NOT contains(cell, '_'))",
    "number": "marked OR number IS NOT NULL",
    "boolean": "number IS NULL AND lower(cell) IN ('true', 'false')",
    "timestamp": f"CASE WHEN number IS NULL THEN regexp_full_match(cell, '{TIME}') "
    "AND try_cast(cell AS TIMESTAMP) IS NOT NULL ELSE false END",
    "zoned": f"CASE WHEN number IS NULL THEN regexp_full_match(cell, '{TIME}{OFFSET}') "
    "AND try_cast(cell AS TIMESTAMPTZ) IS NOT NULL ELSE false END",
    "text": "true",
}
CELLS = f"""FROM (SELECT *,
CASE WHEN number IS NULL OR isnan(number) THEN {MARKED.format("raw")} ELSE false END AS marked
FROM (SELECT *, trim(coalesce(plain, raw)) AS cell, try_cast(plain AS DOUBLE) AS number
FROM (SELECT *, {{1}} AS plain FROM {{0}} WHERE raw IS NOT NULL)))"""
EXAMINE = f"""SELECT name, {", ".join(f"bool_and({test})" for test in TESTS.values())}, histogram(cell) FILTER (marked)
{CELLS.format("(FROM ({0}) UNPIVOT (raw FOR name IN (COLUMNS(*))))", "{1}")} GROUP BY name"""
FIRST = f"""SELECT row, raw {CELLS.format("(SELECT row_number() OVER () AS row, {0} AS raw {1})", "{3}")}
WHERE NOT ({{2}}) LIMIT 1"""


@dataclass(frozen=True, slots=True)
class Notation:
    """How numbers are written: the decimal separator, and the separator of thousands if there is one."""

    decimal: str = "."
    thousands: str | None = None

    def plain(self, column: str) -> str:
        """The cells of a column as DuckDB reads numbers; NULL where a cell is not written in this notation."""
        if self == Notation():
            return column
        point, group = _pattern(self.decimal), "" if self.thousands is None else _pattern(self.thousands)
        whole = rf"(\d+|\d{{1,3}}({group}\d\d\d)+)" if group else r"\d+"
        pattern = rf"[+-]?({whole}({point}\d*)?|{point}\d+)([eE][+-]?\d+)?"
        digits = f"trim({column})"
        if self.thousands is not None:
            digits = f"replace({digits}, {_quoted(self.thousands)}, '')"
        return (
            f"CASE WHEN regexp_full_match(trim({column}), '{pattern}') "
            f"THEN replace({digits}, {_quoted(self.decimal)}, '.') END"
        )


def _pattern(character: str) -> str:
    return rf"\x{{{ord(character):x}}}"


def _quoted(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """What the cells of a column are."""

    name: str  # "number", "text", "boolean" or "timestamp"
    whole: bool = False  # whole numbers, below 2^53 if they are not text
    markers: bool = False  # cells such as NA are missing values; read as text first
    declared: bool = False  # by the user, in types=
    zoned: bool = False  # times have an offset from UTC, such as +02:00 or Z
    notation: Notation = Notation()  # of numbers with `markers`

    @property
    def stored(self) -> str:
        """The type that DuckDB reads from the file."""
        return self._kind if self.name == "number" and not self.markers else "VARCHAR"

    @property
    def _kind(self) -> str:
        """The type of the values in DuckDB."""
        return "BIGINT" if self.whole else "TIMESTAMPTZ" if self.zoned else KINDS[self.name]

    @property
    def shown(self) -> str:
        """The type in messages."""
        example = "2026-01-31 10:00:00" + "+02:00" * self.zoned
        return self.name if self.name != "timestamp" else f"timestamp such as {example}"

    def expression(self, column: str) -> str:
        """The cells of a column of DuckDB, all of which fit, as values."""
        if self.stored != "VARCHAR" or self.name == "text":
            return column
        value = f"trim({self.notation.plain(column) if self.name == 'number' else column})::{self._kind}"
        return f"CASE WHEN NOT {MARKED.format(column)} THEN {value} END" if self.markers else value

    @property
    def test(self) -> str:
        """The name of the test that all cells pass."""
        if self.whole:
            return "whole" if self.name == "number" else "digits"
        if self.zoned:
            return "zoned"
        return "plain" if self.name == "number" and not self.declared else self.name


TEXT = ColumnType("text")
CANDIDATES = (  # the first that all cells of a column fit is its type; whole numbers beyond 2^53 are text
    ColumnType("number", whole=True),
    ColumnType("text", whole=True),
    ColumnType("number"),
    ColumnType("boolean"),
    ColumnType("timestamp"),
    ColumnType("timestamp", zoned=True),
)
LARGE = CANDIDATES[1:3]  # of numbers, some of which are beyond 2^53
TIMES = CANDIDATES[4:]
Candidates: TypeAlias = Mapping[str, tuple[ColumnType, ...]]


def declared_types(types: Mapping[str, str] | None, columns: Sequence[str]) -> dict[str, tuple[ColumnType, ...]]:
    """The types that cells may have by the option `types`, whose columns and words must be known."""
    if types is None:
        return {}
    if not isinstance(types, Mapping):
        raise InputError(f"types={types!r} must be a dictionary such as {{'age': 'number', 'code': 'text'}}.")
    for name, kind in types.items():
        if name not in columns:
            raise SourceError(f"types={dict(types)!r}: there is no column {name!r}. {nearest(str(name), columns)}")
        check_choice(f"types[{name!r}]", kind, KINDS)
    times = (ColumnType("timestamp", declared=True), ColumnType("timestamp", declared=True, zoned=True))
    others = {"text": (TEXT,), "timestamp": times}
    return {name: others.get(kind, (ColumnType(kind, declared=True),)) for name, kind in types.items()}


def examined(
    candidates: Candidates, cells: Mapping[str, str], reader: str, connection: Any, notation: Notation = Notation()
) -> tuple[dict[str, tuple[ColumnType, ...]], dict[str, Counter[str]]]:
    """The candidates that all cells of a column fit, and how often each text such as NA is a cell of it.

    `cells` are the names of the columns in DuckDB, where `reader` reads them as text.
    """
    if not candidates:
        return {}, {}
    rows = f"SELECT {', '.join(double_quoted(cells[name]) for name in candidates)} {reader}"
    found = {row[0]: row[1:] for row in connection.execute(EXAMINE.format(rows, notation.plain("raw"))).fetchall()}
    fitting, markers = {}, {}
    for name, kinds in candidates.items():
        *passed, marked = found.get(cells[name], (*(True for _ in TESTS), None))  # a column without cells fits all
        tests = dict(zip(TESTS, passed, strict=True))
        fitting[name] = tuple(kind for kind in kinds if tests[kind.test])
        markers[name] = Counter[str](marked or {})
    return fitting, markers


def first_other(
    kind: ColumnType, cell: str, reader: str, connection: Any, notation: Notation = Notation()
) -> tuple[int, str]:
    """The number of the first row whose cell does not fit a type, and the cell."""
    query = FIRST.format(double_quoted(cell), reader, TESTS[kind.test], notation.plain("raw"))
    row, text = connection.execute(query).fetchone()
    return int(row), str(text)


def marker_notes(markers: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    """A note on each column of numbers that has cells such as NA: how often each of these occurs."""
    notes = []
    for name, found in markers.items():
        if not found:
            continue
        count = sum(found.values())
        cells = f"{count:,} {'cell' if count == 1 else 'cells'} ({listed(sorted(found))})"
        notes.append(f"Column {name!r}: {cells} read as missing.")
    return tuple(notes)


def unexpected(where: str, name: str, cell: str, kind: ColumnType, remedy: str) -> SourceError:
    """An error on a cell that is not of the declared type of its column."""
    return SourceError(
        f"{where}, column {name!r}: {cell!r} is not a {kind.shown} (declared in types=). Pass "
        f"types={{{name!r}: 'text'}}, or {remedy}."
    )
