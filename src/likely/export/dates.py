"""Parts of dates as SQL expressions, equal to those of `data/date_text.py`; other text than ISO dates is infinite."""

from __future__ import annotations

INFINITE = {"duckdb": "CAST('Infinity' AS DOUBLE)", "postgres": "CAST('Infinity' AS float8)", "sqlite": "9e999"}
SQLITE = {  # strftime reads time zones, and has milliseconds
    "year": "CAST(strftime('%Y', {0}) AS REAL)",
    "month": "CAST(strftime('%m', {0}) AS REAL)",
    "weekday": "CAST((CAST(strftime('%w', {0}) AS INTEGER) + 6) % 7 AS REAL)",
    "day_of_year": "CAST(strftime('%j', {0}) AS REAL)",
    "hour": "(strftime('%H', {0}) * 3600 + strftime('%M', {0}) * 60 + CAST(strftime('%f', {0}) AS REAL)) / 3600.0",
}
EXTRACTED = {"year": "YEAR", "month": "MONTH", "weekday": "ISODOW", "day_of_year": "DOY"}


def date_part(dialect: str, column: str, part: str, kind: str) -> str:
    """A part of a column of dates as a number, NULL where it is missing; `kind` is "date", "datetime" or "time"."""
    if dialect == "sqlite":
        return _of_sqlite(column, part, kind)
    double = "DOUBLE" if dialect == "duckdb" else "float8"
    text = f"CAST({column} AS {'VARCHAR' if dialect == 'duckdb' else 'text'})"
    if kind == "time":
        value, iso = f"EXTRACT(EPOCH FROM CAST({text} AS TIME)) / 3600.0", "^[0-9]{1,2}:"
    else:
        value, iso = _of_timestamp(_timestamp(dialect, column, text), part, kind), "^[0-9]{4,}-"
    matches = f"regexp_matches({text}, '{iso}')" if dialect == "duckdb" else f"{text} ~ '{iso}'"
    cases = f"WHEN {column} IS NULL THEN NULL WHEN {matches} THEN CAST({value} AS {double})"
    return f"CASE {cases} ELSE {INFINITE[dialect]} END"


def _timestamp(dialect: str, column: str, text: str) -> str:
    """The instant of a text in ISO 8601: one with an offset is in UTC."""
    pattern = "':[0-9.:]+ ?([+-][0-9:]+|Z)$'"
    if dialect == "duckdb":
        zoned, utc = f"regexp_matches({text}, {pattern})", f"make_timestamp(epoch_us(CAST({column} AS TIMESTAMPTZ)))"
    else:
        zoned, utc = f"{text} ~ {pattern}", f"CAST({column} AS timestamptz) AT TIME ZONE 'UTC'"
    return f"(CASE WHEN {zoned} THEN {utc} ELSE CAST({text} AS TIMESTAMP) END)"


def _of_timestamp(instant: str, part: str, kind: str) -> str:
    if part == "days":
        days = f"EXTRACT(EPOCH FROM {instant}) / 86400.0"
        return f"floor({days})" if kind == "date" else days
    if part == "hour":
        return f"EXTRACT(EPOCH FROM CAST({instant} AS TIME)) / 3600.0"
    return f"EXTRACT({EXTRACTED[part]} FROM {instant})" + (" - 1" if part == "weekday" else "")


def _of_sqlite(column: str, part: str, kind: str) -> str:
    """SQLite has dates as text."""
    if part == "days":
        seconds = f"CAST(strftime('%s', {column}) AS REAL)"
        fraction = f"CAST(strftime('%f', {column}) AS REAL) - strftime('%S', {column})"
        value = f"floor({seconds} / 86400.0)" if kind == "date" else f"({seconds} + {fraction}) / 86400.0"
    else:
        value = SQLITE[part].format(column)
    readable = f"typeof({column}) = 'text' AND julianday({column}) IS NOT NULL"
    return f"CASE WHEN {column} IS NULL THEN NULL WHEN {readable} THEN {value} ELSE {INFINITE['sqlite']} END"
