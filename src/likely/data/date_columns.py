"""Columns of dates and times of any library as instants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import Any

import narwhals as nw
import numpy as np

from likely.data.categories import Categories, number_categories
from likely.data.date_text import DateForm
from likely.numerics.arrays import is_missing
from likely.typing import AnyArray


@dataclass(frozen=True, slots=True, eq=False)
class DateColumn:
    """A column of dates, times or both: instants, NaT where they are missing. Those with a time zone are in UTC."""

    instants: AnyArray  # datetime64[us]
    kind: str  # "date", "datetime" or "time"

    @property
    def dtype(self) -> Any:
        return self.instants.dtype

    def __len__(self) -> int:
        return len(self.instants)

    def first(self) -> tuple[int, str] | None:
        """The row of the first value that is not missing, and the value as text; None if all are missing."""
        present = np.flatnonzero(~np.isnat(self.instants))
        return (int(present[0]), self._texts(self.instants[present[:1]])[0]) if len(present) else None

    def categories(self, name: str, start: int) -> Categories:
        """The instants as text in ISO 8601, as categories."""
        found = number_categories(np.where(np.isnat(self.instants), np.nan, self.instants.astype(np.int64)))
        instants = np.array(found.vocabulary, dtype=np.int64).astype("datetime64[us]")
        return replace(found, vocabulary=tuple(self._texts(instants)))

    def _texts(self, instants: AnyArray) -> list[str]:
        if self.kind == "date":
            return np.datetime_as_string(instants, unit="D").tolist()
        texts: list[str] = np.datetime_as_string(instants, unit="us").tolist()
        short = [text.removesuffix(".000000") for text in texts]
        return [text.partition("T")[2] for text in short] if self.kind == "time" else short


def has_dates(kind: Any) -> bool:
    """Whether a type of narwhals is that of dates, times or both."""
    return bool(kind == nw.Date or kind == nw.Time or kind == nw.Datetime)


def series_dates(series: nw.Series[Any]) -> DateColumn:
    """A series of dates, times or both."""
    import pyarrow as pa

    column, kind = series.to_arrow(), series.dtype
    if kind == nw.Time:
        column = column.cast(pa.time64("us"), safe=False)
    else:
        zone = getattr(column.type, "tz", None)
        column = column.cast(pa.timestamp("us", zone), safe=False)
    instants = column.cast(pa.int64()).fill_null(np.iinfo(np.int64).min).to_numpy(zero_copy_only=False)
    name = "time" if kind == nw.Time else "date" if kind == nw.Date else "datetime"
    return DateColumn(instants.astype("datetime64[us]"), name)


def object_dates(cells: list[Any]) -> DateColumn | None:
    """A column of Python's dates, times, or both; None if there are other objects, or no dates."""
    known = [cell for cell in cells if not is_missing(cell)]
    if not known or not all(isinstance(cell, date | time) for cell in known):
        return None
    times = [isinstance(cell, time) for cell in known]
    if any(times):
        if not all(times):
            return None
        kind = "time"
    else:
        kind = "datetime" if any(isinstance(cell, datetime) for cell in known) else "date"
    return DateColumn(DateForm("Y-m-d", kind).read(cells), kind)
