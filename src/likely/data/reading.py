"""How each column of the input is read: as numbers, categories, the parts of a date, or numbers and dates in text.

A reading is decided once, from the training rows (`choice/column_reading.py`). Every later table is read by it, so that
rows of another library, or with numbers where the training rows had text, have the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likely.data.categories import Categories, CategoryObjects
from likely.data.date_columns import DateColumn
from likely.data.date_text import PERIODS, DateForm, date_parts
from likely.data.number_text import PLAIN, NumberForm
from likely.data.sources import alike
from likely.data.table import Table
from likely.errors import ColumnWarning, InputError, amount, listed, warn
from likely.typing import AnyArray, Array

KINDS = ("number", "text", "category", "date")  # that `types` may declare
DAY = 86_400_000_000  # microseconds
SHOWN = 3  # texts in a message
MARKS = frozenset({"na", "n/a", "#n/a", "nan", "nat", "null", "none", "?", ".", "-", ""})  # missing among numbers
MANY = 20  # rows from which a proportion is compared with that of the training rows
BOOLEANS = {"true": 1.0, "false": 0.0}
MORE = 10.0  # times the proportion of the training rows, above which text among numbers is reported again


@dataclass(frozen=True, slots=True, eq=False)
class ConvertedColumn:
    """A categorical column whose categories are changed when they are read."""

    column: Any
    convert: Callable[[Categories], Categories]

    def __len__(self) -> int:
        return len(self.column)

    def first(self) -> tuple[int, Any] | None:
        found: tuple[int, Any] | None = self.column.first()
        return found

    def categories(self, name: str, start: int) -> Categories:
        return self.convert(self.column.categories(name, start))


@dataclass(frozen=True, slots=True, eq=False)
class NumbersAndText:
    """A column of text, most of it numbers, where the training rows had numbers alone."""

    column: Any
    numbers: Array  # of its categories, NaN for text

    def __len__(self) -> int:
        return len(self.column)

    def first(self) -> tuple[int, Any]:
        """The row of the first value that is not a number, and the value."""
        labels = self.column.categories("", 0)
        row = int(np.argmax(np.append(np.isnan(self.numbers), False)[labels.part(0, len(self))]))
        return row, labels.vocabulary[labels.part(row, row + 1)[0]]

    def categories(self, name: str, start: int) -> Categories:
        labels = self.column.categories(name, start)
        words = [word if np.isnan(x) else x for word, x in zip(labels.vocabulary, self.numbers.tolist(), strict=True)]
        cells = np.array([*words, None], dtype=object)[labels.part(0, len(self))]
        return CategoryObjects(cells).categories(name, start)


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """How one column of the input is read."""

    name: str
    kind: str  # "number", "category" or "date"
    numbers: NumberForm | None = None  # of text that is read as numbers
    dates: DateForm | None = None  # of text that is read as dates, also where the training rows had dates
    parts: tuple[str, ...] = ()  # of dates, each of which is a column; none if the column has one number for each
    date_kind: str = ""  # "date", "datetime" or "time"
    width: int = 0  # of categories that are codes of digits, all of one width: 2139 is read as 02139
    strays: float = 0.0  # the proportion of the training rows with text that is not a number or a date
    doubtful: bool = False  # text of numbers or dates that can be read in two ways, and is used as it is
    codes: bool = False  # text of digits that are codes, such as those with a leading zero
    normalized: bool = False  # blanks and case of categories are ignored
    declared: bool = False  # by the user, in `types`
    periodic: bool = True  # whether the model has a family for the periodic parts of dates
    empty: bool = False  # whether no training row has a value
    boolean: bool = False  # whether True and False, in any case, are 1 and 0
    mixed: bool = False  # whether some categories are numbers, which are not the text of their digits

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that it becomes."""
        return tuple(f"{self.name}.{part}" for part in self.parts) or (self.name,)

    @property
    def periods(self) -> tuple[float | None, ...]:
        """The period of each of these columns; None for those without."""
        return tuple(PERIODS.get(part) if self.periodic else None for part in self.parts) or (None,)

    @property
    def turns_values(self) -> bool:
        """Whether numbers of the model are not values of the input: it had text or dates."""
        return self.kind == "date" or self.numbers is not None

    def restored(self, numbers: Array) -> AnyArray:
        """Numbers of the model as values for the input: dates that are modelled by their days as instants."""
        if self.kind != "date" or self.parts or self.date_kind == "time":
            return numbers
        days = np.rint(numbers) if self.date_kind == "date" else numbers
        instants = np.full(len(days), np.datetime64("NaT", "us"))
        known = ~np.isnan(days)
        instants[known] = np.rint(days[known] * DAY).astype(np.int64).astype("datetime64[us]")
        return instants

    def is_plain(self, column: Any, kind: str) -> bool:
        """Whether a column of a table, of this kind, is used as it is."""
        if self.kind == "date" or isinstance(column, DateColumn):
            return False
        if self.kind == "category":
            return kind == "category" and not self.normalized
        return kind != "category"

    def columns(self, table: Table, j: int, quiet: bool) -> list[tuple[Any, str]]:
        """The columns that column j of a table becomes, and their kinds."""
        column, kind = table.column(j), table.kinds[j]
        if self.is_plain(column, kind):
            return [(column, kind)]
        if self._is_empty(column, kind):
            return [(np.full(table.rows, np.nan), "number")] * len(self.names)
        if self.kind == "date":
            return [(values, "number") for values in self._dates(table, j, quiet)]
        if self.kind == "number":
            return [self._numbers(table, j, quiet)]
        if kind != "category" and self.mixed:
            return [(column, kind)]
        if kind != "category":
            column = _digits(table.categories([j])[0], table.rows, self.width)
        if self.normalized:
            column = ConvertedColumn(column, Categories.normalized)
        return [(column, "category")]

    def _is_empty(self, column: Any, kind: str) -> bool:
        """Whether all values of a column, which has another kind than in training, are missing."""
        if kind == "category":
            return column.first() is None
        return column.dtype.kind == "f" and bool(np.isnan(column).all())

    def _numbers(self, table: Table, j: int, quiet: bool) -> tuple[Any, str]:
        """Text as numbers.

        Text that is not a number is missing if the training rows had text, or no value at all, and else an error.
        """
        unread = self.empty and not quiet
        if isinstance(table.column(j), DateColumn) and not unread:
            return table.column(j), "category"  # raises where numbers are needed
        (labels,) = table.categories([j])
        numbers = (self.numbers or PLAIN).read(labels.vocabulary)
        if self.boolean:
            numbers = np.where(np.isnan(numbers), booleans(labels.vocabulary), numbers)
        stray = np.isnan(numbers) & ~marked(labels.vocabulary)
        if self.numbers is None and stray.any() and not unread:
            return NumbersAndText(table.column(j), numbers), "category"
        if not quiet:
            self._warn_of_strays(labels, stray, table.rows, "numbers")
        kind = "boolean" if self.boolean and not np.isnan(numbers).all() else "number"
        return np.append(numbers, np.nan)[labels.part(0, table.rows)], kind

    def _dates(self, table: Table, j: int, quiet: bool) -> list[Array]:
        """The parts of dates, which may be text."""
        column = table.column(j)
        if table.kinds[j] != "category":
            present = np.flatnonzero(~np.isnan(column))
            if len(present):
                raise InputError(
                    f"Column {self.name!r}, row {table.number(int(present[0]))}: {column[present[0]].item()!r} is a "
                    "number, and the training rows had dates. Convert the column to dates, or to text such as "
                    "'2026-01-31'."
                )
            return [np.full(table.rows, np.nan)] * len(self.names)
        instants = column.instants if isinstance(column, DateColumn) else self._instants(table, j, quiet)
        found = date_parts(instants, self.date_kind)
        missing = np.full(table.rows, np.nan)
        return [found.get(part, missing) for part in self.parts or ("days" if "days" in found else "hour",)]

    def _instants(self, table: Table, j: int, quiet: bool) -> AnyArray:
        (labels,) = table.categories([j])
        instants = (self.dates or ISO).read(labels.vocabulary)
        if np.isnat(instants).any() and self.date_kind != "time":
            instants = np.where(np.isnat(instants), ISO.read(labels.vocabulary), instants)  # never ambiguous
        if not quiet:
            self._warn_of_strays(labels, np.isnat(instants) & ~marked(labels.vocabulary), table.rows, "dates")
        return np.append(instants, np.datetime64("NaT", "us"))[labels.part(0, table.rows)]

    def _warn_of_strays(self, labels: Categories, lost: AnyArray, rows: int, what: str) -> None:
        """Warn of text that is not a number or a date, unless training rows had some, and these are not many more."""
        if not lost.any():
            return
        lost = lost & ~marked(labels.vocabulary)
        if not lost.any():
            return
        count = int(np.count_nonzero(np.append(lost, False)[labels.part(0, rows)]))
        if self.strays and (rows < MANY or count <= MORE * self.strays * rows):
            return
        words = [word for word, each in zip(labels.vocabulary, lost.tolist(), strict=True) if each]
        warn(
            f"Column {self.name!r}: {listed(words, SHOWN)} in {amount(count, 'row', 'rows')} are not {what} in the "
            "form of the training rows, and are read as missing. Correct the values, or replace them by missing ones.",
            ColumnWarning,
        )


def marked(texts: Sequence[Any]) -> AnyArray:
    """Whether each text stands for a missing value among numbers and dates."""
    return np.array([isinstance(text, str) and text.strip().casefold() in MARKS for text in texts], dtype=bool)


ISO = DateForm("Y-m-d", "datetime")
CLOCK = DateForm("time", "time")


def booleans(values: Sequence[Any]) -> Array:
    """1 for True and 0 for False, also as text in any case; NaN for all else."""
    return np.array([BOOLEANS.get(str(value).strip().casefold(), np.nan) for value in values], dtype=np.float64)


def _digits(labels: Categories, rows: int, width: int) -> CategoryObjects:
    """Numbers as the text of their digits, with zeros in front up to a width."""
    words = np.array([*(_text(value).zfill(width) for value in labels.vocabulary), None], dtype=object)
    return CategoryObjects(words[labels.part(0, rows)])


def _text(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)


@dataclass(frozen=True)
class Reading:
    """How all columns of the input are read."""

    columns: tuple[ColumnReading, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the input."""
        return tuple(column.name for column in self.columns)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The column of the input that each column of the table comes from."""
        return tuple(j for j, column in enumerate(self.columns) for _ in column.names)

    @cached_property
    def _has_numbers_alone(self) -> bool:
        return all(column.kind == "number" for column in self.columns)

    def of_input(self, name: str) -> tuple[str, ...]:
        """The columns of the table that come from a column of the input."""
        return next((column.names for column in self.columns if column.name == name), (name,))

    @cached_property
    def no_identifiers(self) -> frozenset[int]:
        """Columns of the table that are parts of dates, or categories that the user declared."""
        each = (column for column in self.columns for _ in column.names)
        return frozenset(
            j for j, column in enumerate(each) if column.parts or (column.declared and column.kind == "category")
        )

    @property
    def input_names(self) -> dict[str, str]:
        """The column of the input that each column of the table comes from, by name."""
        return {name: column.name for column in self.columns for name in column.names}

    def unused(self, names: Collection[str]) -> set[str]:
        """The columns of the input from which none of these columns of the table comes."""
        return {column.name for column in self.columns if not set(names).intersection(column.names)}

    def apply(self, table: Table, quiet: bool = False) -> Table:
        """A table of the input, as it is modelled; `quiet` where the training rows were read, which reported strays."""
        if table.is_sparse or table.reading is not None:
            return table
        if self._is_plain(table):
            table.reading = self
            return table
        parts = [part for j, each in enumerate(self.columns) for part in each.columns(table, j, quiet)]
        values, kinds = map(list, zip(*parts, strict=True))
        names = [name for each in self.columns for name in each.names]
        return table.like(names, values, kinds, self)

    def _is_plain(self, table: Table) -> bool:
        """Whether all columns of a table are used as they are."""
        if "category" not in table.kinds:
            return self._has_numbers_alone
        return all(each.is_plain(table.column(j), table.kinds[j]) for j, each in enumerate(self.columns))


@dataclass(slots=True)
class TrainingReader:
    """Reads training rows: the first table determines how all of them are read, unless this is known."""

    read: Callable[[Any, int], Table]  # a table of the input
    choose: Callable[[Table], Reading]
    check: Callable[[Table], Table]  # of a table that is read
    reading: Reading | None = None

    def __call__(self, X: Any, start: int = 0) -> Table:
        table = self.read(X, start)
        if table.is_sparse:
            return self.check(table)
        if self.reading is None:
            self.reading = self.choose(table)
        return self.check(self.reading.apply(alike(table, list(self.reading.names), sparse=False), quiet=True))
