"""How the columns of training rows are read: which text is numbers or dates, and which parts of dates vary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Number
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np

from likely.data.batches import Batches
from likely.data.categories import CategorySeries
from likely.data.date_columns import DateColumn
from likely.data.date_text import date_form, date_parts
from likely.data.number_text import CODES, PLAIN, NumberForm, number_form
from likely.data.reading import CLOCK, DAY, ISO, KINDS, SHOWN, ColumnReading, Reading, TrainingReader, booleans, marked
from likely.data.table import Table, features_of
from likely.errors import ColumnWarning, InputError, amount, check_choice, listed, nearest, warn
from likely.families.base import Family
from likely.model.plans import column_index

Reader: TypeAlias = Callable[[Any, int], Table]
YEAR = 366.0  # days, up to which the day of the year is the number of days
HALF = 0.5  # proportion of the first rows of a source, from which a sample decides
PARTS = ("days", "year", "month", "weekday", "day_of_year", "hour")  # of dates and times
LEAST = 0.95  # proportion of the rows with a value that are numbers, or dates, in a column of text


def choose_reading(
    table: Table, types: Any = None, families: Any = None, normalize: bool = False, periodic: bool = True
) -> Reading:
    """How the columns of training rows are read; `types` and `families` are the options of the estimator.

    `periodic` is whether the model has a family for the periodic parts of dates.
    """
    declared = declared_types(types, table.names)
    modelled = _declared_families(families, table.names)
    parts = _declared_parts(families, table.names)
    reading = Reading(
        tuple(
            _Column(table, j, declared.get(j), modelled.get(j), normalize, periodic, parts.get(name)).reading()
            for j, name in enumerate(table.names)
        )
    )
    _check_names(reading, families)
    return reading


def _check_names(reading: Reading, families: Any) -> None:
    """Raise where a part of a date has the name of a column, or the number of a column is that of another one."""
    for column in reading.columns:
        clash = next((part for part in column.parts if f"{column.name}.{part}" in reading.names), None)
        if clash is not None:
            raise InputError(
                f"Column {column.name!r} has dates, which become columns such as '{column.name}.{clash}', and X has a "
                "column of this name already. Rename one of the two columns."
            )
    shifted = [j for j, input_ in enumerate(reading.inputs) if j != input_]
    for name in _flat_names(families):
        if shifted and isinstance(name, Integral) and str(name) not in reading.names and int(name) >= shifted[0]:
            expanded = next(column.name for column in reading.columns if len(column.parts) > 1)
            named = reading.names[min(int(name), len(reading.names) - 1)]
            raise InputError(
                f"families names a column by its number, {name}, and the dates in column {expanded!r} become several "
                f"columns. Name the column: families={{{named!r}: ...}}."
            )


def read_alike(
    batches: Callable[[Reader], Batches],
    read: Reader,
    choose: Callable[[Table], Reading],
    check: Callable[[Table], Table],
) -> Batches:
    """Training rows, of which one table, or a sample of the rows of a source, determines how columns are read.

    `batches` makes them with a reader, `read` reads tables of the input, and `check` checks those that are read.
    """
    found = batches(TrainingReader(read, choose, check))
    if not found.in_chunks:
        return found
    raw = found.read_by(read)
    table = raw.first.table.whole
    if _needs_sample(table):
        table = raw.in_memory.first.table.whole
    reading = None if table.is_sparse else Reading(choose(table).columns[: features_of(table)])
    return raw.read_by(TrainingReader(read, choose, check, reading))


def _needs_sample(table: Table) -> bool:
    """Whether the first rows of a source do not tell how it is read: dates, text that may be numbers, or no values."""
    for j in (j for j, kind in enumerate(table.kinds) if kind == "category"):
        column = _Column(table, j)
        if isinstance(table.column(j), DateColumn) or table.column(j).first() is None:
            return True
        texts, counts = column.texts()
        if number_form(texts, counts, HALF)[0] is not None or date_form(texts, counts, HALF)[0] is not None:
            return True
    return False


def declared_types(types: Any, names: Sequence[str]) -> dict[int, str]:
    """The types of the columns that the option `types` names, by their places."""
    if types is None:
        return {}
    if not isinstance(types, Mapping):
        raise InputError(f"types={types!r} must be a dictionary such as {{'zip': 'text', 'price': 'number'}}.")
    found = {}
    for name, kind in types.items():
        if str(name) not in names:
            raise InputError(f"types names column {name!r}, which is not in X. {nearest(str(name), names)}")
        check_choice(f"types[{name!r}]", kind, KINDS)
        found[names.index(str(name))] = kind
    return found


def _declared_families(families: Any, names: Sequence[str]) -> dict[int, Family]:
    """The families of the columns that are declared; a family of all columns is that of each."""
    if isinstance(families, Family):
        return dict.fromkeys(range(len(names)), families)
    pairs = families.items() if isinstance(families, Mapping) else ()
    return {
        column_index(name, names): family
        for key, family in pairs
        if isinstance(family, Family)
        for name in (key if isinstance(key, tuple) else (key,))
        if str(name) in names or not isinstance(name, str)  # others are parts of dates
    }


def _flat_names(families: Any) -> list[Any]:
    """The names of columns in the keys of the option `families`."""
    keys = families if isinstance(families, Mapping) else ()
    return [name for key in keys for name in (key if isinstance(key, tuple) else (key,))]


def _declared_parts(families: Any, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The parts of each date where `families` names all columns, as `families_` of a fitted model does."""
    given = {name for name in _flat_names(families) if isinstance(name, str)}
    found = {}
    for name in names:
        parts = tuple(part for part in PARTS if f"{name}.{part}" in given)
        if not parts and name not in given:
            return {}
        found[name] = parts
    return found


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of training rows, with what is declared of it."""

    table: Table
    place: int
    declared: str | None = None  # in `types`
    family: Family | None = None
    normalize: bool = False
    periodic: bool = True
    declared_parts: tuple[str, ...] | None = None  # of a date, where `families` names all columns

    @property
    def name(self) -> str:
        return self.table.names[self.place]

    @property
    def wanted(self) -> str | None:
        """The type that is declared, or that the declared family needs; None if the values decide."""
        if self.declared is not None or self.family is None:
            return self.declared
        return "text" if self.family._reads_categories or self.family._reads_text else "number"

    def reading(self) -> ColumnReading:
        column, wanted = self.table.column(self.place), self.wanted
        if isinstance(column, DateColumn):
            return self._text() if wanted in ("text", "category") else self._dates(column.instants, column.kind)
        if self.table.kinds[self.place] != "category":
            return self._numbers()
        if column.first() is None:
            return self._text() if wanted in ("text", "category") else ColumnReading(self.name, "category")
        if wanted in ("text", "category") or (wanted is None and self._has_declared_categories(column)):
            return self._text()
        return self._of_text()

    def _numbers(self) -> ColumnReading:
        """A column of numbers, which may be declared to be categories."""
        if self.declared in ("text", "category"):
            return ColumnReading(self.name, "category", declared=self.declared == "category")
        if self.declared == "date":
            raise InputError(
                f"types[{self.name!r}]='date': the column has numbers. Convert it to dates, such as by "
                f"pandas.to_datetime(X[{self.name!r}], unit='s'), or to text such as '2026-01-31'."
            )
        values, boolean = self.table.column(self.place), self.table.kinds[self.place] == "boolean"
        empty = values.dtype.kind == "f" and bool(np.isnan(values).all())
        return ColumnReading(self.name, "number", empty=empty, boolean=boolean)

    def _text(self) -> ColumnReading:
        """Text as categories or documents."""
        declared = self.declared == "category"
        dates = isinstance(self.table.column(self.place), DateColumn)
        categories = self.table.categories([self.place])[0]
        words = (categories.normalized() if self.normalize else categories).vocabulary
        width, mixed = 0 if dates else _width(words), not all(isinstance(word, str) for word in words)
        normalized = self.normalize
        return ColumnReading(self.name, "category", width=width, normalized=normalized, declared=declared, mixed=mixed)

    def _has_declared_categories(self, column: Any) -> bool:
        """Whether the user gave the column a categorical type: dictionaries of Arrow are also a way to store text."""
        if not isinstance(column, CategorySeries):
            return False
        if column.series.implementation.is_pyarrow():
            return not any(isinstance(word, str) for word in self.table.categories([self.place])[0].vocabulary)
        return column.series.dtype == nw.Categorical or isinstance(column.series.dtype, nw.Enum)

    def texts(self) -> tuple[list[str], Any]:
        """The distinct values as text, and the number of rows of each."""
        (labels,) = self.table.categories([self.place])
        counts = np.bincount(labels.part(0, self.table.rows) + 1, minlength=len(labels.vocabulary) + 1)[1:]
        return [str(value) if isinstance(value, str | Number) else repr(value) for value in labels.vocabulary], counts

    def _of_text(self) -> ColumnReading:
        """Text as numbers or dates where nearly all values are, else as it is."""
        texts, counts = self.texts()
        counts = np.where(marked(texts), 0, counts)
        form, doubt = None, ""
        if self.wanted is None and not np.isnan(booleans(texts)[counts > 0]).any():
            return ColumnReading(self.name, "number", boolean=True)
        if self.declared != "date":
            form, doubt = number_form(texts, counts, LEAST if self.declared is None else 0.0)
            if form is None and self.declared == "number":
                form = self._plain(texts, doubt)
        if form is None:
            return self._of_text_dates(texts, counts, doubt)
        strays = self._strays(texts, counts, np.isnan(form.read(texts)), "number")
        form, declared = replace(form, example=""), self.declared is not None
        return ColumnReading(self.name, "number", numbers=form, strays=strays, declared=declared)

    def _plain(self, texts: Sequence[str], doubt: str) -> NumberForm | None:
        """The plain form of a column that is declared to have numbers; None if no text is a number in it."""
        if doubt:
            raise InputError(f"types[{self.name!r}]='number': {doubt}. Convert the column to numbers.")
        return None if np.isnan(PLAIN.read(texts)).all() else PLAIN

    def _of_text_dates(self, texts: Sequence[str], counts: Any, doubt: str) -> ColumnReading:
        """Text as dates where nearly all values are, else as it is; `doubt` is why it has no numbers."""
        dates, unclear = date_form(texts, counts, 0.0 if self.declared == "date" else LEAST)
        if dates is not None:
            instants = dates.read(texts)
            strays = self._strays(texts, counts, np.isnat(instants), "date")
            return replace(self._dates(instants, dates.kind, dates), strays=strays)
        if self.declared == "date":
            problem = unclear or f"{texts[0]!r} is not a date in a known form"
            raise InputError(
                f"types[{self.name!r}]='date': {problem}. Write dates as 2026-01-31 or 2026-01-31T10:00:00."
            )
        if self.declared == "number":
            text = min(texts)
            raise InputError(f"types[{self.name!r}]='number': no value is a number, such as {text!r}. Drop the entry.")
        doubt = doubt or unclear
        codes = doubt.endswith(CODES)
        return replace(self._text(), doubtful=bool(doubt) and not codes, codes=codes)

    def _strays(self, texts: Sequence[str], counts: Any, lost: Any, what: str) -> float:
        """The proportion of rows with text that is missing among numbers or dates, which is reported."""
        lost = lost & (counts > 0)
        strays = [text for text, each in zip(texts, lost.tolist(), strict=True) if each]
        if strays:
            rows = amount(int(counts[lost].sum()), "value", "values")
            warn(
                f"Column {self.name!r} has {what}s, and {rows} that {'is' if rows[:2] == '1 ' else 'are'} not: "
                f"{listed(strays, SHOWN)}, read as missing. types={{{self.name!r}: 'text'}} keeps the text.",
                ColumnWarning,
            )
        return float(counts[lost].sum() / max(counts.sum(), 1))

    def _dates(self, instants: Any, kind: str, form: Any = None) -> ColumnReading:
        """Dates by those of their parts that vary, or one number if a family is declared."""
        if kind == "datetime" and not np.any(instants[~np.isnat(instants)].astype(np.int64) % DAY):
            kind = "date"
        parts = {} if self.family is not None or self.declared == "number" else date_parts(instants, kind)
        varying = [name for name, values in parts.items() if _varies(values)]
        if "day_of_year" in varying and "days" in varying:
            spans_years = np.nanmax(parts["days"]) - np.nanmin(parts["days"]) >= YEAR
            if not (spans_years and self.periodic):  # else it is a linear function of the days and the year
                varying.remove("day_of_year")
        if parts and not varying:
            varying = list(parts)[:1]
        if parts and self.declared_parts:
            varying = [name for name in parts if name in self.declared_parts]
        declared = self.declared is not None
        form = replace(form or (CLOCK if kind == "time" else ISO), example="")
        return ColumnReading(
            self.name,
            "date",
            dates=form,
            parts=tuple(varying),
            date_kind=kind,
            declared=declared,
            periodic=self.periodic,
        )


def _varies(values: Any) -> bool:
    known = values[~np.isnan(values)]
    return len(known) > 0 and bool(known.min() < known.max())


def _width(values: Sequence[Any]) -> int:
    """The width of categories that are all digits of one width; 0 for others."""
    texts = [value for value in values if isinstance(value, str)]
    widths = {len(text) for text in texts if text.isascii() and text.isdigit()}
    return widths.pop() if len(texts) == len(values) and len(widths) == 1 and all(map(str.isdigit, texts)) else 0
