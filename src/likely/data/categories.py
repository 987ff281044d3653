"""Categorical columns of X as integer codes: text, categories, or numbers that stand for categories.

Codes count from 0 in the sorted order of the categories; -1 is a missing value.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from likely.data.dictionaries import arrow_dictionary, utf8_errors
from likely.data.labels import encode_integers
from likely.errors import InputTypeError, listed
from likely.numerics.arrays import is_missing
from likely.numerics.block_sizes import COPIED
from likely.numerics.threads import run
from likely.statistics.counts import label_order
from likely.typing import AnyArray, Vocabulary

NARROW = 1024  # a range of integers within which they are used as codes


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """A categorical column: a code for each row, -1 where the value is missing, and the categories."""

    codes: AnyArray
    vocabulary: Vocabulary
    low: int | None = None  # where not None, `codes` are the integers themselves, and this is the least of them

    def part(self, start: int, stop: int) -> AnyArray:
        """Codes of some rows."""
        codes = self.codes[start:stop]
        return codes if self.low is None else np.subtract(codes, self.low, dtype=np.intp, casting="unsafe")

    def translated(self, vocabulary: Vocabulary) -> AnyArray:
        """For every code of this column its code in another vocabulary, -1 where it is not there; -1 stays -1."""
        place = dict(zip(vocabulary, range(len(vocabulary)), strict=True))
        return np.array([place.get(label, -1) for label in self.vocabulary] + [-1], dtype=np.intp)

    def normalized(self) -> Categories:
        """The same column, in which categories that differ by case or by blanks at the ends are one.

        Its name depends on the text alone, so that it is the same in all rows.
        """
        names = [normalized_label(label) for label in self.vocabulary]
        if all(name is label for name, label in zip(names, self.vocabulary, strict=True)):
            return self
        vocabulary = tuple(sorted(dict.fromkeys(names), key=label_order))
        place = {name: code for code, name in enumerate(vocabulary)}
        codes = np.array([*(place[name] for name in names), -1], dtype=np.int32)
        return Categories(
            _narrow(np.take(codes, self.part(0, len(self.codes)), mode="wrap"), len(vocabulary)), vocabulary
        )


def normalized_label(label: Any) -> Any:
    """Text without blanks at its ends and in lower case, as `str.casefold` defines it; anything else as it is."""
    if not isinstance(label, str):
        return label
    text = label.strip().casefold()
    return label if text == label else text


def spelling_difference(one: str, other: str) -> str:
    """How two texts with the same normalized label differ."""
    parts = []
    if _ends(one) != _ends(other):
        parts.append("a blank" if abs(len(one) - len(other)) == 1 else "blanks")
    if one.strip() != other.strip():
        parts.append("case")
    return " and ".join(parts)


def _ends(text: str) -> tuple[str, str]:
    """The blanks before and after a text."""
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]


@dataclass(frozen=True, slots=True, eq=False)
class CategorySeries:
    """A categorical column as a series of its library."""

    series: nw.Series[Any]

    def __len__(self) -> int:
        return len(self.series)

    def first(self) -> tuple[int, Any] | None:
        """The row of the first value that is not missing, and the value; None if all are missing."""
        if self.series.null_count() == len(self.series):
            return None
        row = int(np.argmin(self.series.is_null().to_numpy()))
        with utf8_errors(f"Column {self.series.name!r}"):
            return row, self.series[row]

    def categories(self, name: str, start: int) -> Categories:
        if self.series.implementation.is_pandas() and hasattr(self.series.to_native().dtype, "categories"):
            native = self.series.to_native().cat  # categories may be anything: intervals, tuples, numbers
            return _sorted_categories(native.codes.to_numpy().astype(np.int64), native.categories.tolist(), name)
        if self.series.implementation.is_pyarrow():
            return _arrow_categories(self.series.to_native(), name)
        import pyarrow as pa

        try:
            return _arrow_categories(self.series.to_arrow(), name)
        except (UnicodeError, pa.ArrowInvalid, pa.ArrowTypeError):
            # objects of pandas: text that UTF-8 cannot hold, or text in the first rows and other objects later
            return _object_categories(np.array(self.series.to_list(), dtype=object), name, start)


@dataclass(frozen=True, slots=True, eq=False)
class CategoryObjects:
    """A categorical column of Python objects: text, or numbers and text."""

    values: AnyArray

    def __len__(self) -> int:
        return len(self.values)

    def first(self) -> tuple[int, Any]:
        """The row of the first value that is text, and the value."""
        row = next(i for i, value in enumerate(self.values.tolist()) if isinstance(value, str | bytes))
        return row, self.values[row]

    def categories(self, name: str, start: int) -> Categories:
        import pyarrow as pa

        try:
            text = pa.array(self.values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeError):
            return _object_categories(self.values, name, start)
        if not (pa.types.is_string(text.type) or pa.types.is_large_string(text.type)):
            return _object_categories(self.values, name, start)
        return _arrow_categories(text, name)


def _arrow_categories(column: Any, name: str) -> Categories:
    """Codes of an Arrow column of text or of a dictionary; categories without rows are dropped."""
    found = arrow_dictionary(column, f"Column {name!r}")
    return _sorted_categories(found.codes, found.values, name)


def _sorted_categories(codes: AnyArray, found: Sequence[Any], name: str) -> Categories:
    """Codes in the sorted order of the categories; categories without rows are dropped."""
    used = np.zeros(len(found) + 1, dtype=bool)
    used[codes] = True
    if used[:-1].all() and set(map(type, found)) == {str} and len(set(found)) == len(found):
        order = sorted(range(len(found)), key=found.__getitem__)
        place = np.full(len(found) + 1, -1, dtype=np.int32)
        place[order] = np.arange(len(found), dtype=np.int32)
        vocabulary = tuple(map(found.__getitem__, order))
        return Categories(_narrow(np.take(place, codes, mode="wrap"), len(vocabulary)), vocabulary)
    merged: dict[Any, list[int]] = {}
    try:
        for code, label in enumerate(found):
            if used[code] and not is_missing(label):
                merged.setdefault(label, []).append(code)
        vocabulary = tuple(sorted(merged, key=label_order))
    except TypeError as error:
        raise InputTypeError(
            f"Column {name!r}: {listed(found, limit=3)} are categories that cannot be hashed and sorted ({error}). "
            "Convert them to text or numbers."
        ) from None
    place = np.full(len(found) + 1, -1, dtype=np.int32)
    for new, label in enumerate(vocabulary):
        place[merged[label]] = new
    return Categories(_narrow(np.take(place, codes, mode="wrap"), len(vocabulary)), vocabulary)


def _narrow(codes: AnyArray, size: int) -> AnyArray:
    return codes.astype(np.int8 if size < 2**7 else np.int16 if size < 2**15 else np.int32, copy=False)


def column_ranges(array: AnyArray) -> tuple[list[int], list[int]]:
    """The least and the largest integer of each column, in one pass."""
    bounds = np.linspace(0, len(array), max(len(array) // COPIED, 1) + 1).astype(int)
    parts = [array[start:stop] for start, stop in itertools.pairwise(bounds.tolist())]
    ends = run(parts, lambda part: (part.min(axis=0), part.max(axis=0)))
    return np.min([low for low, _ in ends], axis=0).tolist(), np.max([high for _, high in ends], axis=0).tolist()


def integer_categories(column: AnyArray, low: int, high: int) -> Categories:
    """Codes of integers from `low` to `high`: the integers themselves, minus the least."""
    return Categories(column, tuple(range(low, high + 1)), low)


def number_categories(values: AnyArray) -> Categories:
    """Codes of a column of numbers."""
    missing = np.isnan(values) if values.dtype.kind == "f" else None
    if missing is not None and missing.any():
        kept = np.flatnonzero(~missing)
        everywhere = np.full(len(values), -1, dtype=np.int32)
        if not len(kept):
            return Categories(_narrow(everywhere, 0), ())
        part = number_categories(values[kept])
        everywhere[kept] = part.codes
        return Categories(_narrow(everywhere, len(part.vocabulary)), part.vocabulary)
    whole = values.dtype.kind in "biu" or bool(np.all(np.isfinite(values)) and np.all(values == np.floor(values)))
    distinct, codes = encode_integers(values) if whole else np.unique(values, return_inverse=True)
    exact = map(int, distinct) if whole and values.dtype == np.longdouble else distinct.tolist()
    return Categories(_narrow(codes, len(distinct)), tuple(exact))


def _object_categories(values: AnyArray, name: str, start: int) -> Categories:
    """Codes of Python objects; 1 and "1" differ."""
    place: dict[Any, int] = {}
    codes = np.empty(len(values), dtype=np.int32)
    for row, value in enumerate(values.tolist()):
        try:
            codes[row] = -1 if is_missing(value) else place.setdefault(value, len(place))
        except TypeError:
            raise InputTypeError(
                f"Column {name!r}, row {start + row}: {value!r} is not a category: "
                "argument must be a string or a number. Convert the column to text or numbers."
            ) from None
    return _sorted_categories(codes, list(place), name)
