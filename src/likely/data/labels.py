"""Labels as codes: of the classes in y, and of columns of text, categories, or numbers that stand for something.

A code counts from 0 in the order of the labels, whatever order they came in; -1 is a missing cell.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import column_or_1d

from likely.errors import InputError, InputTypeError, listed
from likely.numerics.arrays import is_missing
from likely.numerics.threads import run
from likely.statistics.category_counts import label_order
from likely.typing import AnyArray, Vocabulary

LABEL_CHUNK = 1 << 18
NARROW = 1024  # whole numbers within such a range are their own codes


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A column of labels: a code for each row, -1 where the cell is missing, and what the codes stand for."""

    codes: AnyArray
    vocabulary: Vocabulary
    low: int | None = None  # where not None, `codes` are the whole numbers themselves, and this is the first label

    def part(self, start: int, stop: int) -> AnyArray:
        """Codes of some rows."""
        codes = self.codes[start:stop]
        return codes if self.low is None else np.subtract(codes, self.low, dtype=np.intp, casting="unsafe")

    def translated(self, vocabulary: Vocabulary) -> AnyArray:
        """For every code of this column its code in another vocabulary, -1 where it has none; -1 stays -1."""
        place = {label: code for code, label in enumerate(vocabulary)}
        return np.array([*(place.get(label, -1) for label in self.vocabulary), -1], dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class LabelSeries:
    """A column of text or categories as its library holds it."""

    series: nw.Series[Any]

    def __len__(self) -> int:
        return len(self.series)

    def first(self) -> tuple[int, Any] | None:
        """The first label, and its row; None where all are missing."""
        if self.series.null_count() == len(self.series):
            return None
        row = int(np.argmin(self.series.is_null().to_numpy()))
        return row, self.series[row]

    def labels(self, name: str, start: int) -> Labels:
        if self.series.implementation.is_pandas() and hasattr(self.series.to_native().dtype, "categories"):
            native = self.series.to_native().cat  # categories may be anything: intervals, tuples, numbers
            return _sorted_labels(native.codes.to_numpy().astype(np.int64), native.categories.tolist(), name)
        try:
            return _arrow_labels(self.series.to_arrow(), name)
        except UnicodeError:  # text that UTF-8 cannot hold
            return _object_labels(np.array(self.series.to_list(), dtype=object), name, start)


@dataclass(frozen=True, slots=True, eq=False)
class LabelObjects:
    """A column of Python objects: text, or numbers and text side by side."""

    values: AnyArray

    def __len__(self) -> int:
        return len(self.values)

    def first(self) -> tuple[int, Any]:
        """The first label that is no number, and its row."""
        row = next(i for i, value in enumerate(self.values.tolist()) if isinstance(value, str | bytes))
        return row, self.values[row]

    def labels(self, name: str, start: int) -> Labels:
        import pyarrow as pa

        try:
            text = pa.array(self.values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeError):
            return _object_labels(self.values, name, start)
        if not (pa.types.is_string(text.type) or pa.types.is_large_string(text.type)):
            return _object_labels(self.values, name, start)
        return _arrow_labels(text, name)


def _arrow_labels(column: Any, name: str) -> Labels:
    """Labels of an Arrow column of text or of a dictionary; categories without rows are left out."""
    import pyarrow as pa

    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    codes = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return _sorted_labels(codes, column.dictionary.to_pylist(), name)


def _sorted_labels(codes: AnyArray, found: Sequence[Any], name: str) -> Labels:
    """Labels in an order of their own, whatever codes they came with; what has no rows is left out."""
    used = np.zeros(len(found) + 1, dtype=bool)
    used[codes] = True
    merged: dict[Any, list[int]] = {}
    try:
        for code, label in enumerate(found):
            if used[code] and not is_missing(label):
                merged.setdefault(label, []).append(code)
        vocabulary = tuple(sorted(merged, key=label_order))
    except TypeError as error:
        raise InputTypeError(
            f"Column {name!r}: {listed(found, limit=3)} are categories that cannot be told apart and sorted ({error}). "
            "Hint: turn them into text or numbers."
        ) from None
    place = np.full(len(found) + 1, -1, dtype=np.int32)
    for new, label in enumerate(vocabulary):
        place[merged[label]] = new
    return Labels(_narrow(np.take(place, codes, mode="wrap"), len(vocabulary)), vocabulary)


def _narrow(codes: AnyArray, size: int) -> AnyArray:
    return codes.astype(np.int8 if size < 2**7 else np.int16 if size < 2**15 else np.int32, copy=False)


def whole_labels(array: AnyArray, columns: Sequence[int]) -> dict[int, Labels]:
    """Labels of those columns of integers whose range is narrow: the numbers are their own codes."""
    bounds = np.linspace(0, len(array), max(len(array) // LABEL_CHUNK, 1) + 1).astype(int)
    parts = [array[start:stop] for start, stop in itertools.pairwise(bounds.tolist())]
    ends = run(parts, lambda part: (part.min(axis=0), part.max(axis=0)))
    lows, highs = np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
    found = {}
    for j in columns:
        low, high = int(lows[j]), int(highs[j])
        if high - low < NARROW:
            found[j] = Labels(array[:, j], tuple(range(low, high + 1)), low)
    return found


def number_labels(values: AnyArray) -> Labels:
    """Labels of a column of numbers."""
    missing = np.isnan(values) if values.dtype.kind == "f" else None
    if missing is not None and missing.any():
        kept = np.flatnonzero(~missing)
        everywhere = np.full(len(values), -1, dtype=np.int32)
        if not len(kept):
            return Labels(_narrow(everywhere, 0), ())
        part = number_labels(values[kept])
        everywhere[kept] = part.codes
        return Labels(_narrow(everywhere, len(part.vocabulary)), part.vocabulary)
    whole = values.dtype.kind in "biu" or bool(np.all(np.isfinite(values)) and np.all(values == np.floor(values)))
    distinct, codes = _encode_integers(values) if whole else np.unique(values, return_inverse=True)
    exact = map(int, distinct) if whole and values.dtype == np.longdouble else distinct.tolist()
    return Labels(_narrow(codes, len(distinct)), tuple(exact))


def _object_labels(values: AnyArray, name: str, start: int) -> Labels:
    """Labels of Python objects, compared as what they are: 1 and "1" differ."""
    place: dict[Any, int] = {}
    codes = np.empty(len(values), dtype=np.int32)
    for row, value in enumerate(values.tolist()):
        try:
            codes[row] = -1 if is_missing(value) else place.setdefault(value, len(place))
        except TypeError:
            raise InputTypeError(
                f"Column {name!r}, row {start + row}: {value!r} is no label: "
                "argument must be a string or a number. Hint: use text or numbers."
            ) from None
    return _sorted_labels(codes, list(place), name)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedLabels:
    """The classes in y, sorted; the code of each labeled row; and which rows are unlabeled (None: no row is)."""

    classes: AnyArray
    codes: AnyArray
    missing: AnyArray | None = None


def encode_labels(
    y: Any, rows: int, estimator: str, start: int = 0, allow_missing: bool = False, unlabeled: Any = None
) -> EncodedLabels:
    """The labels of rows as codes of sorted classes. Errors count rows from `start`.

    Where missing labels are allowed, these are None, NaN, null and the value `unlabeled`; elsewhere they are an error.
    """
    if y is None:
        raise InputError(f"This {estimator} estimator requires y to be passed, but the target y is None.")
    values, missing = present_labels(y, unlabeled, start) if allow_missing else (label_values(y, start), None)
    given = len(values) if missing is None else len(missing)
    if given != rows:
        raise InputError(
            f"X has {rows} rows and y has {given} labels: Found input variables with inconsistent numbers of samples."
        )
    if not len(values):
        return EncodedLabels(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), missing)
    return EncodedLabels(*_encode(values, start), missing)


def _encode(values: AnyArray, start: int) -> tuple[AnyArray, AnyArray]:
    """Sorted classes, and the code of every label."""
    if values.dtype.kind in "biu":
        return _encode_integers(values)
    if values.dtype.kind == "f":
        return _encode_integers(_whole_numbers(values, start))
    if values.dtype.kind not in "OUST":
        raise InputTypeError(f"Unknown label type: y has values of type {values.dtype}, which cannot be class labels.")
    return _encode_objects(values, start)


def present_labels(y: Any, unlabeled: Any, start: int = 0) -> tuple[AnyArray, AnyArray | None]:
    """The labels that are not missing, and whether each is (None: no label is missing).

    Missing are None, NaN, null, and the value `unlabeled`.
    """
    series = y if isinstance(y, np.ndarray | list | tuple) else nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
        if series.dtype.is_float() or unlabeled is not None:
            missing = missing | _are_missing(np.array(series.to_list(), dtype=object), unlabeled)
        if not missing.any():
            return _flat(_series_labels(series)), None
        kept = nw.new_series("kept", ~missing, nw.Boolean, backend=series.implementation)
        return _flat(_series_labels(series.filter(kept))), missing
    masked = isinstance(y, np.ma.MaskedArray)
    values = np.ravel(y.data) if masked else _flat(y if isinstance(y, np.ndarray) else _array_of_labels(y))
    missing = _are_missing(values, unlabeled)
    if masked:
        missing |= np.ravel(np.ma.getmaskarray(y))
    if not missing.any():
        return values, None
    present = values[~missing]
    if present.dtype.kind == "O" and len(present) and all(isinstance(v, int | float) for v in present.tolist()):
        present = np.array(present.tolist())  # None has made objects of numbers
    return present, missing


def _are_missing(values: AnyArray, unlabeled: Any) -> AnyArray:
    """Whether labels are missing, or the value that stands for that; each different one is looked at once."""
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    if values.dtype.kind != "O" and unlabeled is None:
        return missing
    labels = values.tolist()
    try:
        absent = {
            value: is_missing(value) or (unlabeled is not None and _equal(value, unlabeled)) for value in set(labels)
        }
    except TypeError:  # who reads the labels says what is wrong with them
        return missing
    if not any(absent.values()):
        return missing
    return missing | np.fromiter(
        (is_missing(label) or absent.get(label, False) for label in labels), dtype=bool, count=len(labels)
    )


def _equal(value: Any, other: Any) -> bool:
    same = value == other
    return isinstance(same, bool | np.bool_) and bool(same)


def label_values(y: Any, start: int = 0) -> AnyArray:
    """Labels as an array of one dimension, from frames' own series too."""
    return _flat(_plain_labels(y, start))


def _flat(values: Any) -> AnyArray:
    """One label for each row; a column of them, with scikit-learn's warning, is turned into that."""
    plain = type(values) is np.ndarray and values.ndim == 1
    return values if plain else np.asarray(column_or_1d(values, warn=True))


def _plain_labels(y: Any, start: int) -> Any:
    plain = isinstance(y, np.ndarray | list | tuple)
    series = y if plain else nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        if series.null_count() > 0:
            raise _missing_labels(start + int(np.argmax(series.is_null().to_numpy())))
        return _series_labels(series)
    if isinstance(y, np.ma.MaskedArray):
        if np.ma.is_masked(y):
            raise _missing_labels(start + int(np.argmax(np.ravel(np.ma.getmaskarray(y)))))
        return y.data
    return y if isinstance(y, np.ndarray) else _array_of_labels(y)


def _series_labels(series: nw.Series[Any]) -> Any:
    """The labels of a series without nulls; text as objects."""
    if series.dtype in (nw.Categorical, nw.String) or isinstance(series.dtype, nw.Enum):
        return np.array(series.to_list(), dtype=object)
    return series.to_numpy()


def _array_of_labels(y: Any) -> AnyArray:
    """A list of labels as an array that does not turn numbers into text."""
    try:
        array = np.asarray(y)
    except ValueError as error:
        raise InputError(f"Unknown label type: y is ragged ({error}).") from None
    if array.dtype.kind in "US" and not all(
        isinstance(label, str | bytes) for label in np.ravel(np.array(y, dtype=object))
    ):
        return np.array(y, dtype=object)
    return array


def _missing_labels(row: int) -> InputError:
    return InputError(
        f"y, row {row}: the label is missing (NaN or None). Input y contains NaN. Hint: leave out rows without a label."
    )


def _whole_numbers(values: AnyArray, start: int) -> AnyArray:
    """Labels that are floats, as the same floats, after checking that they are classes."""
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        if np.isnan(values[row]):
            raise _missing_labels(start + row)
        raise InputError(f"y, row {start + row}: {values[row]} is not a class label. Input y contains infinity.")
    fraction = values != np.floor(values)
    if fraction.any():
        row = int(np.argmax(fraction))
        raise InputError(
            f"Unknown label type: continuous. y, row {start + row}: {values[row]} is not a whole number. Maybe you are "
            "trying to fit a classifier, which expects discrete classes, on a regression target with continuous values."
        )
    return values


def _code_type(classes: int) -> type[np.int16] | type[np.int32]:
    return np.int16 if classes < 2**15 else np.int32


def _encode_integers(values: AnyArray) -> tuple[AnyArray, Any]:
    """Codes of whole numbers: by a table where their range is narrow, else by sorting."""
    low, high = values.min(), values.max()
    beyond = values.dtype.kind == "f" and max(abs(low), abs(high)) >= 2.0**53
    if beyond or int(high) - int(low) > 1 << 20:
        classes, inverse = np.unique(values, return_inverse=True)
        return classes, inverse.astype(_code_type(len(classes)))
    span = int(high) - int(low) + 1
    seen = np.zeros(span, dtype=np.int64)
    wide = np.int64 if values.dtype != np.uint64 else np.uint64
    codes: AnyArray = np.empty(len(values), dtype=_code_type(span))
    for start in range(0, len(values), LABEL_CHUNK):
        place = codes[start : start + LABEL_CHUNK]
        place[:] = values[start : start + LABEL_CHUNK].astype(wide, copy=False) - wide(low)
        seen += np.bincount(place, minlength=span)
    present = np.flatnonzero(seen)
    if len(present) < span:
        table = np.zeros(span, dtype=_code_type(len(present)))
        table[present] = np.arange(len(present))
        places, codes = codes, np.empty(len(values), dtype=table.dtype)
        for start in range(0, len(values), LABEL_CHUNK):
            codes[start : start + LABEL_CHUNK] = table[places[start : start + LABEL_CHUNK]]
    if values.dtype.kind == "b":
        return present.astype(bool), codes
    return np.array([int(low) + int(p) for p in present], dtype=values.dtype), codes


def _encode_objects(values: AnyArray, start: int) -> tuple[AnyArray, Any]:
    """Codes of text or of any labels that can be hashed and sorted."""
    listed_values = values.tolist()
    try:
        found = dict.fromkeys(listed_values)
    except TypeError:
        raise InputError("Unknown label type: labels in y must be text or numbers.") from None
    if any(is_missing(label) for label in found):
        raise _missing_labels(next(i for i, label in enumerate(listed_values, start) if is_missing(label)))
    try:
        ordered = sorted(found)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in found})
        raise InputError(
            f"Unknown label type: labels in y are of mixed types that cannot be sorted together: {listed(kinds)}. "
            "Hint: make all labels text, or all numbers."
        ) from None
    position = {label: code for code, label in enumerate(ordered)}
    codes = np.fromiter(map(position.__getitem__, listed_values), dtype=_code_type(len(ordered)), count=len(values))
    if all(isinstance(label, float | int) for label in ordered) and any(isinstance(label, float) for label in ordered):
        _whole_numbers(np.array([float(label) for label in listed_values]), start)
    classes = np.array(ordered) if values.dtype.kind != "O" else _object_classes(ordered)
    return classes, codes


def _object_classes(ordered: list[Any]) -> AnyArray:
    """Labels from an array of objects: kept as objects, as scikit-learn does."""
    classes = np.empty(len(ordered), dtype=object)
    classes[:] = ordered
    return classes
