"""Dates and times as people write them in text, and their parts: elapsed days, year, month, weekday, hour.

A column has one form. Whether the day or the month is first is decided by the column: a number above 12 is a day.
Between full stops the day is first. Years of two digits are read only between full stops, slashes, or next to the name
of a month, and only where no year of the column is between 30 and 68: 00 to 29 are 2000 to 2029, 69 to 99 are 1969 to
1999. Names of months and weekdays are English. Years alone, numbers of eight digits and other numbers are not dates.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likely.data.text_cells import filled, sequence, text_cells, text_weights
from likely.typing import AnyArray, Array

PERIODS = {"month": 12.0, "weekday": 7.0, "day_of_year": 365.25, "hour": 24.0}

_FULL_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_MONTHS = [name[:3].lower() for name in _FULL_MONTHS]
_NAME = (
    "(?i:(?P<name>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|t|tember|ober|ember)?)"
)
_WEEKDAY = "(?i:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}[.]?,? +)?"
_TIME = (
    "(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,12}))?)?"
    "(?: ?(?P<half>[AaPp])[.]?[Mm][.]?)?"
)
_ZONE = "(?: ?(?P<zone>Z|UTC|GMT|[-+][0-9]{2}(?::?[0-9]{2})?))?"
_CLOCK = f"(?:(?:[Tt:]| +|, *){_TIME}{_ZONE})?"
_ORDINAL = "(?i:st|nd|rd|th)?"
_DAY, _MONTH, _YEAR = "(?P<day>[0-9]{1,2})", "(?P<month>[0-9]{1,2})", "(?P<year>[0-9]{4})"
_SHORT = "(?P<year>[0-9]{4}|[0-9]{2})"

# The letters are those of strftime; b is the name of a month.
_PATTERNS = {
    "Y-m-d": f"{_YEAR}-{_MONTH}-{_DAY}{_CLOCK}",
    "Y/m/d": f"{_YEAR}/{_MONTH}/{_DAY}{_CLOCK}",
    "Y.m.d": f"{_YEAR}[.]{_MONTH}[.]{_DAY}{_CLOCK}",
    "d.m.Y": f"{_DAY}[.] ?{_MONTH}[.] ?{_SHORT}{_CLOCK}",
    "d/m/Y": f"{_DAY}/{_MONTH}/{_SHORT}{_CLOCK}",
    "m/d/Y": f"{_MONTH}/{_DAY}/{_SHORT}{_CLOCK}",
    "d-m-Y": f"{_DAY}-{_MONTH}-{_YEAR}{_CLOCK}",
    "m-d-Y": f"{_MONTH}-{_DAY}-{_YEAR}{_CLOCK}",
    "d b Y": f"{_WEEKDAY}{_DAY}{_ORDINAL}[ ./-]*(?:of )?{_NAME}[ .,/-]*{_SHORT}{_CLOCK}",
    "b d Y": f"{_WEEKDAY}{_NAME}[ .-]*{_DAY}{_ORDINAL}(?:,|[ -]) *{_YEAR}{_CLOCK}",
    "Y b d": f"{_YEAR}[ .,/-]*{_NAME}[ ./-]*{_DAY}{_CLOCK}",
    "b d time Y": f"{_WEEKDAY}{_NAME} +{_DAY} +{_TIME}{_ZONE} +{_YEAR}",
    "b Y": f"{_NAME}[ .,/-]*{_YEAR}",
    "Y b": f"{_YEAR}[ .,/-]*{_NAME}[.]?",
    "b y": f"{_NAME}[ '-]+(?P<year>[0-9]{{2}})",
    "Y-m": f"{_YEAR}-(?P<month>[0-9]{{2}})",
    "Y/m": f"{_YEAR}/(?P<month>[0-9]{{2}})",
    "time": _TIME,
}
_RIVALS = {"d/m/Y": "m/d/Y", "d-m-Y": "m-d-Y"}
_MONTHS_ALONE = ("b Y", "Y b", "b y", "Y-m", "Y/m")
_DAY_MICROSECONDS = 86_400_000_000
_LARGEST_OFFSET = 16 * 3600  # seconds; Manila was 15:56 behind UTC until 1844
_NOT_A_TIME = np.datetime64("NaT", "us")


@dataclass(frozen=True, slots=True)
class DateForm:
    """How the dates of a text column are written: the order of their parts, and "date", "datetime" or "time"."""

    pattern: str
    kind: str
    example: str = field(default="", compare=False)

    def read(self, values: Sequence[Any]) -> AnyArray:
        """Microseconds since 1970-01-01, NaT for what is not a date in this form.

        Instants with an offset are in UTC, others as they are written. Times of day are on 1970-01-01. Dates, datetimes
        and times of Python are themselves.
        """
        cells = sequence(values)
        if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
            return cells.astype("datetime64[us]")
        cells, others = text_cells(cells)
        instants = _read(cells, self.pattern)[0]
        for row, value in others.items():
            instants[row] = _instant(value)
        return instants

    def describe(self) -> str:
        """The form as text, by an example from the column."""
        name = {"date": "dates", "datetime": "dates with times", "time": "times of day"}[self.kind]
        return f"{name} such as {self.example!r}" if self.example else name


def date_form(values: Sequence[str], counts: AnyArray, least: float = 0.95) -> tuple[DateForm | None, str]:
    """The form in which at least a proportion `least` of the rows are dates or times, or None with a note.

    `values` are the distinct texts of a column, `counts` the rows that have each; blank texts count as missing. The
    note says why a column of apparent dates has no form: two forms read as many rows and differ in the dates.
    """
    import pyarrow.compute as pc

    cells, _ = text_cells(values)
    weights = text_weights(cells, counts)
    needed = least * weights.sum()
    if not weights.sum():
        return None, ""
    matched = {
        pattern: weights[filled(pc.match_substring_regex(cells, f"^{expression}$"))].sum()
        for pattern, expression in _PATTERNS.items()
        if pattern not in _RIVALS.values()
    }
    pattern = max(matched, key=lambda name: matched[name])
    if not matched[pattern] or matched[pattern] < needed:
        return None, ""
    pattern, (instants, clock), note = _ordered(cells, weights, pattern)
    read = ~np.isnat(instants) & (weights > 0)
    note = note or _doubt(cells, weights, pattern)
    if note or not read.any() or weights[read].sum() < needed:
        return None, note
    kind = "time" if pattern == "time" else "datetime" if clock[read].any() else "date"
    row = np.flatnonzero(read)[np.argmax(weights[read])]
    return DateForm(pattern, kind, cells[int(row)].as_py()), ""


def date_parts(instants: AnyArray, kind: str) -> dict[str, Array]:
    """What varies of instants of the kind "date", "datetime" or "time"; NaN for NaT.

    "days" are those since 1970-01-01, with the fraction of the day for datetimes; "weekday" is 0 on Mondays; "hour" has
    the minutes as its fraction.
    """
    instants = np.asarray(instants).astype("datetime64[us]")
    missing = np.isnat(instants)
    days = np.where(missing, np.datetime64(0, "D"), instants.astype("datetime64[D]"))
    elapsed = np.where(missing, 0, (instants - days).astype(np.int64))
    parts: dict[str, AnyArray] = {}
    if kind != "time":
        months, years = days.astype("datetime64[M]"), days.astype("datetime64[Y]")
        number = days.astype(np.int64)
        parts["days"] = number + (elapsed / _DAY_MICROSECONDS if kind == "datetime" else 0.0)
        parts["year"] = years.astype(np.int64) + 1970
        parts["month"] = (months - years.astype("datetime64[M]")).astype(np.int64) + 1
        parts["weekday"] = (number + 3) % 7
        parts["day_of_year"] = (days - years.astype("datetime64[D]")).astype(np.int64) + 1
    if kind != "date":
        parts["hour"] = elapsed / (_DAY_MICROSECONDS / 24)
    return {name: np.where(missing, np.nan, part.astype(np.float64)) for name, part in parts.items()}


def _ordered(cells: Any, weights: Array, pattern: str) -> tuple[str, tuple[AnyArray, AnyArray], str]:
    """The pattern with day and month in the order that reads more rows, its instants, and a note in doubt."""
    reading = _read(cells, pattern)
    if pattern not in _RIVALS:
        return pattern, reading, ""
    other = _read(cells, _RIVALS[pattern])
    given = weights > 0
    first, second = ~np.isnat(reading[0]) & given, ~np.isnat(other[0]) & given
    day_first, month_first = np.where(first & ~second, weights, 0.0), np.where(second & ~first, weights, 0.0)
    if min(day_first.sum(), month_first.sum()) * 20 > max(day_first.sum(), month_first.sum()):
        one, two = (cells[int(np.argmax(rows))].as_py() for rows in (day_first, month_first))
        return pattern, reading, f"{one!r} has the day first, {two!r} the month"
    differing = np.where(first & second & (reading[0] != other[0]), weights, 0.0)
    if differing.any() and not day_first.any() and not month_first.any():
        row = int(np.argmax(differing))
        one, two = (instants[row].astype(dt.datetime) for instants in (reading[0], other[0]))
        text = f"{one.day} {_FULL_MONTHS[one.month - 1]} or {_FULL_MONTHS[two.month - 1]} {two.day}"
        return pattern, reading, f"{cells[row].as_py()!r} may be {text}"
    return (pattern, reading, "") if day_first.sum() >= month_first.sum() else (_RIVALS[pattern], other, "")


def _doubt(cells: Any, weights: Array, pattern: str) -> str:
    """Why apparent dates are in doubt: the century of years of two digits, 'Jan-11', or seasons such as 2010-11."""
    import pyarrow as pa
    import pyarrow.compute as pc

    seasons = pattern in ("Y-m", "Y/m")
    if not seasons and pattern != "b y" and _SHORT not in _PATTERNS[pattern]:
        return ""
    cells = cells.filter(pa.array(weights > 0))
    parts = pc.extract_regex(cells, f"^{_PATTERNS[pattern]}$")
    matched, years = np.asarray(parts.is_valid()), pc.struct_field(parts, "year")
    if seasons:
        following = _integers(pc.utf8_slice_codeunits(years, 2), 0) + 1 == _integers(pc.struct_field(parts, "month"), 0)
        return f"{_first(cells, matched)!r} may be a month or a season of two years" if following[matched].all() else ""
    unclear = filled(pc.match_substring_regex(years, "^(?:[345][0-9]|6[0-8])$"))
    if unclear.any():
        year = _first(years, unclear)
        return f"{_first(cells, unclear)!r} may be in 19{year} or 20{year}"
    if pattern == "b y" and not pc.any(pc.match_substring_regex(years, "^(?:00|3[2-9]|[4-9][0-9])$")).as_py():
        return f"{_first(cells, matched)!r} may have a day or a year"
    return ""


def _first(cells: Any, rows: AnyArray) -> str:
    text: str = cells[int(np.argmax(rows))].as_py()
    return text


def _read(cells: Any, pattern: str) -> tuple[AnyArray, AnyArray]:
    """The instant of each text, and whether it has a time other than midnight."""
    import pyarrow.compute as pc

    parts = pc.extract_regex(cells, f"^{_PATTERNS[pattern]}$")
    columns = {part.name: pc.struct_field(parts, part.name) for part in parts.type}
    valid = np.asarray(parts.is_valid())
    microseconds, right = _clock(columns, len(cells))
    valid &= right
    days = np.zeros(len(cells), dtype=np.int64)
    if pattern != "time":
        days, right = _days(columns, pattern)
        valid &= right
    instants = (days * _DAY_MICROSECONDS + microseconds).astype("datetime64[us]")
    instants[~valid] = _NOT_A_TIME
    return instants, valid & (microseconds % _DAY_MICROSECONDS != 0)


def _days(columns: dict[str, Any], pattern: str) -> tuple[AnyArray, AnyArray]:
    """Days since 1970-01-01, and which of them are days of the calendar."""
    import pyarrow as pa
    import pyarrow.compute as pc

    year = _integers(columns["year"], 0)
    if "name" in columns:
        names = pc.fill_null(pc.ascii_lower(columns["name"]), "")
        month = np.asarray(pc.index_in(names, pa.array(_MONTHS, pa.large_string())).fill_null(-1)).astype(np.int64) + 1
    else:
        month = _integers(columns["month"], 0)
    day = _integers(columns["day"], 0) if "day" in columns else np.ones(len(year), dtype=np.int64)
    short = np.asarray(pc.fill_null(pc.utf8_length(columns["year"]), 4)) == 2
    valid = (month >= 1) & (month <= 12) & (day >= 1) & np.where(short, (year < 30) | (year > 68), year >= 1)
    year = year + np.where(short, np.where(year < 69, 2000, 1900), 0)
    if pattern in _MONTHS_ALONE:
        valid &= (year >= 1000) & (year < 3000)
    months = np.where(valid, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + np.where(valid, day - 1, 0)
    return days.astype(np.int64), valid & (days.astype("datetime64[M]") == months)


def _clock(columns: dict[str, Any], rows: int) -> tuple[AnyArray, AnyArray]:
    """Microseconds since midnight in UTC, 0 without a time, and which of them are times of day."""
    import pyarrow.compute as pc

    if "hour" not in columns:
        return np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=bool)
    hour, minute, second = (_integers(columns[name], 0) for name in ("hour", "minute", "second"))
    valid = (hour < 24) & (minute < 60) & (second < 60)
    half = pc.fill_null(pc.ascii_lower(columns["half"]), "")
    halved = np.asarray(pc.not_equal(half, ""))
    valid &= ~halved | ((hour >= 1) & (hour <= 12))
    hour = np.where(halved, hour % 12 + 12 * np.asarray(pc.equal(half, "p")), hour)
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(columns["fraction"], ""), 6, "0"), 0, 6)
    seconds = (hour * 60 + minute) * 60 + second
    if "zone" in columns:
        zones = pc.fill_null(columns["zone"], "").dictionary_encode()
        offsets = np.array([_offset(zone) for zone in zones.dictionary.to_pylist()], dtype=np.int64)
        offset = offsets[np.asarray(zones.indices)]
        seconds, valid = seconds - offset, valid & (np.abs(offset) <= _LARGEST_OFFSET)
    return seconds * 1_000_000 + _integers(fraction, 0), valid


def _offset(zone: str) -> int:
    """The seconds by which a zone such as +02:00, -0530 or Z is ahead of UTC."""
    if zone in ("", "Z", "UTC", "GMT"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    seconds = (int(digits[:2]) * 60 + int(digits[2:])) * 60
    return -seconds if zone[0] == "-" else seconds


def _integers(texts: Any, missing: int) -> AnyArray:
    """Texts of digits as integers; `missing` where a text is missing or empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pc.cast(pc.if_else(pc.equal(texts, ""), None, texts), pa.int64())
    return np.asarray(numbers.fill_null(missing))


def _instant(value: Any) -> np.datetime64:
    """A date, datetime or time of Python, or an instant of NumPy, in UTC where it has an offset; else NaT."""
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]")
    if isinstance(value, dt.time):
        return np.datetime64(dt.datetime.combine(dt.date(1970, 1, 1), value.replace(tzinfo=None)), "us")
    if not isinstance(value, dt.date) or value != value:  # NaT of pandas is a datetime
        return _NOT_A_TIME
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(value, dt.datetime):
        value = dt.datetime.combine(value.date(), value.time())
    return np.datetime64(value, "us")
