"""Class labels in y as integer codes, in the sorted order of the classes; and which rows are unlabeled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import column_or_1d

from likely.data.dictionaries import Dictionary, is_text, series_dictionary, text_dictionary
from likely.errors import InputError, InputTypeError, listed
from likely.numerics.arrays import is_missing
from likely.numerics.block_sizes import COPIED
from likely.statistics.counts import label_array, sorted_labels
from likely.typing import AnyArray

WIDE = (nw.Int128, nw.UInt128)  # NumPy has no such integers
NO_LABELS = "Unknown label type: labels in y must be text or numbers."


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

    Missing labels are None, NaN, null and the value `unlabeled`; they are an error unless allowed.
    """
    if y is None:
        raise InputError(f"This {estimator} estimator requires y to be passed, but the target y is None.")
    series = as_series(y)
    if series is not None and _has_codes(series.dtype):
        return _encode_text(_text_codes(series), rows, start, allow_missing, unlabeled)
    values, missing = present_labels(y, unlabeled, start) if allow_missing else (label_values(y, start), None)
    if not allow_missing and unlabeled is not None:
        _refuse_marker(values, unlabeled, start)
    _check_length(rows, len(values) if missing is None else len(missing))
    if not len(values):
        return EncodedLabels(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), missing)
    return EncodedLabels(*_encode(values, start), missing)


def _check_length(rows: int, labels: int) -> None:
    if labels != rows:
        raise InputError(
            f"X has {rows} rows and y has {labels} labels: Found input variables with inconsistent numbers of samples."
        )


def as_series(y: Any) -> nw.Series[Any] | None:
    """A series of any library as narwhals reads it; None for anything else."""
    if isinstance(y, np.ndarray | list | tuple):
        return None
    series = nw.from_native(y, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else None


def _has_codes(kind: Any) -> bool:
    """Whether labels of a type of narwhals are read as codes: text, categories and dates."""
    return is_text(kind) or kind == nw.Date


def _text_codes(series: nw.Series[Any]) -> Dictionary:
    """The labels of a series of text, categories or dates as codes."""
    try:
        return series_dictionary(series)
    except TypeError:  # objects of pandas: text in its first rows, and others that cannot be hashed
        raise InputError(NO_LABELS) from None


def _encode_text(found: Dictionary, rows: int, start: int, allow_missing: bool, unlabeled: Any) -> EncodedLabels:
    """The labels of a series of text or categories; the distinct labels are compared with missing ones."""
    null = np.array([*map(is_missing, found.values), True])  # the last is that of code -1
    marked = np.array([*(unlabeled is not None and _equal(label, unlabeled) for label in found.values), False])
    codes, missing = found.codes, (null | marked)[found.codes]
    if missing.any() and not allow_missing:
        row = int(np.argmax(missing))
        raise (
            _missing_labels(start + row)
            if null[codes[row]]
            else _marked(found.values[codes[row]], unlabeled, start + row)
        )
    _check_length(rows, len(codes))
    if not missing.any():
        missing = None
    else:
        codes = codes[~missing]
    if not len(codes):
        return EncodedLabels(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), missing)
    return EncodedLabels(*_encode_dictionary(Dictionary(codes, found.values), start, objects=True), missing)


def _encode(values: AnyArray, start: int) -> tuple[AnyArray, AnyArray]:
    """Sorted classes, and the code of every label."""
    if values.dtype.kind in "biu":
        return encode_integers(values)
    if values.dtype.kind == "f":
        return encode_integers(_whole_numbers(values, start))
    if values.dtype.kind not in "OUST":
        raise InputTypeError(
            f"Unknown label type: y has values of type {values.dtype}, which cannot be class labels. Convert them to "
            "text; of a CSV file, scan(..., types={...: 'text'}) reads a column as text."
        )
    if values.dtype.kind in "US":
        return _encode_dictionary(text_dictionary(values), start)
    return _encode_objects(values, start)


def present_labels(y: Any, unlabeled: Any, start: int = 0) -> tuple[AnyArray, AnyArray | None]:
    """The labels that are not missing, and whether each is (None: no label is missing).

    Missing are None, NaN, null, and the value `unlabeled`.
    """
    series = as_series(y)
    if series is not None:
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
        present = np.array(present.tolist())  # numbers, which were objects because of None
    return present, missing


def _refuse_marker(values: AnyArray, unlabeled: Any, start: int) -> None:
    """Raise for the label that marks unlabeled rows."""
    marked = _are_missing(values, unlabeled)
    if marked.any():
        row = int(np.argmax(marked))
        raise _marked(values[row], unlabeled, start + row)


def _marked(label: Any, unlabeled: Any, row: int) -> InputError:
    return InputError(
        f"y, row {row}: the label {listed([label])} marks an unlabeled row (unlabeled={unlabeled!r}), and only fit "
        "uses unlabeled rows. Drop such rows, or call fit with all rows."
    )


def _are_missing(values: AnyArray, unlabeled: Any) -> AnyArray:
    """Whether labels are missing, or equal the marker of unlabeled rows; each distinct label is compared once."""
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    if values.dtype.kind != "O" and unlabeled is None:
        return missing
    labels = values.tolist()
    try:
        absent = {
            value: is_missing(value) or (unlabeled is not None and _equal(value, unlabeled)) for value in set(labels)
        }
    except TypeError:  # labels that cannot be hashed: encoding them raises
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
    """Labels from an array, a list or a series as an array of one dimension."""
    return _flat(_plain_labels(y, start))


def _flat(values: Any) -> AnyArray:
    """Labels as one dimension; a single column is flattened, with scikit-learn's warning."""
    if type(values) is np.ndarray and values.ndim == 1:
        return values
    shape = np.shape(values)
    if len(shape) != 1 and (len(shape) != 2 or shape[1] != 1):
        raise InputError(
            f"y has shape {shape}: y should be a 1d array, one label for each row. Choose one of its columns, turn "
            "one-hot columns into labels with argmax(axis=1), or exchange X and y if they were swapped."
        )
    return np.asarray(column_or_1d(values, warn=True))


def _plain_labels(y: Any, start: int) -> Any:
    series = as_series(y)
    if series is not None:
        if series.null_count() > 0:
            raise _missing_labels(start + int(np.argmax(series.is_null().to_numpy())))
        return _series_labels(series)
    if isinstance(y, np.ma.MaskedArray):
        if np.ma.is_masked(y):
            raise _missing_labels(start + int(np.argmax(np.ravel(np.ma.getmaskarray(y)))))
        return y.data
    return y if isinstance(y, np.ndarray) else _array_of_labels(y)


def _series_labels(series: nw.Series[Any]) -> Any:
    """The labels of a series without nulls; text and dates as objects."""
    kind = series.dtype
    if _has_codes(kind):
        return _text_codes(series).objects()
    if kind.is_nested():
        raise InputError(NO_LABELS)
    if kind in WIDE:
        labels = np.array(series.to_list(), dtype=object)
        return labels if any(abs(label) >= 2**63 for label in labels) else labels.astype(np.int64)
    try:
        return series.to_numpy()
    except NotImplementedError:  # Arrow, for types without Python objects
        raise InputError(NO_LABELS) from None


def _array_of_labels(y: Any) -> AnyArray:
    """A list of labels as an array; numbers among text stay numbers."""
    try:
        array = np.asarray(y)
    except ValueError as error:
        raise InputError(f"Unknown label type: y is ragged ({error}).") from None
    if array.dtype.kind not in "US":
        return array
    labels = np.array(y, dtype=object)
    text = all(isinstance(label, str | bytes) for label in labels.ravel().tolist())
    return label_array(labels.tolist()) if text and labels.ndim == 1 else array if text else labels


def _missing_labels(row: int) -> InputError:
    return InputError(
        f"y, row {row}: the label is missing (NaN or None). Input y contains NaN. "
        "Drop the rows without labels, or use GenerativeClassifier or NaiveBayes: their `fit` uses such rows, and "
        "updates and `score` do not."
    )


def _whole_numbers(values: AnyArray, start: int) -> AnyArray:
    """Float labels, checked to be finite whole numbers."""
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
            "trying to fit a classifier, which expects discrete classes, on a regression target with continuous "
            "values: use GenerativeRegressor."
        )
    return values


def _code_type(classes: int) -> type[np.int16] | type[np.int32]:
    return np.int16 if classes < 2**15 else np.int32


def encode_integers(values: AnyArray) -> tuple[AnyArray, Any]:
    """Classes and codes of whole numbers: by counting where their range is narrow, else by sorting."""
    low, high = values.min(), values.max()
    beyond = values.dtype.kind == "f" and float(max(abs(low), abs(high))) >= 2.0**53
    if beyond or int(high) - int(low) > 1 << 20:
        classes, inverse = np.unique(values, return_inverse=True)
        return classes, inverse.astype(_code_type(len(classes)))
    span = int(high) - int(low) + 1
    seen = np.zeros(span, dtype=np.int64)
    wide = np.int64 if values.dtype != np.uint64 else np.uint64
    codes: AnyArray = np.empty(len(values), dtype=_code_type(span))
    for start in range(0, len(values), COPIED):
        place = codes[start : start + COPIED]
        place[:] = values[start : start + COPIED].astype(wide, copy=False) - wide(low)
        seen += np.bincount(place, minlength=span)
    present = np.flatnonzero(seen)
    if len(present) < span:
        table = np.zeros(span, dtype=_code_type(len(present)))
        table[present] = np.arange(len(present))
        places, codes = codes, np.empty(len(values), dtype=table.dtype)
        for start in range(0, len(values), COPIED):
            codes[start : start + COPIED] = table[places[start : start + COPIED]]
    if values.dtype.kind == "b":
        return (present + int(low)).astype(bool), codes
    return np.array([int(low) + int(p) for p in present], dtype=values.dtype), codes


def _encode_objects(values: AnyArray, start: int) -> tuple[AnyArray, Any]:
    """Classes and codes of any labels that can be hashed and sorted."""
    labels = values.tolist()
    found = _distinct(labels)
    if any(is_missing(label) for label in found):
        raise _missing_labels(next(i for i, label in enumerate(labels, start) if is_missing(label)))
    ordered = _ordered(found)
    position = {label: code for code, label in enumerate(ordered)}
    codes = np.fromiter(map(position.__getitem__, labels), dtype=_code_type(len(ordered)), count=len(values))
    _check_numbers(ordered, codes, start)
    return label_array(ordered, objects=values.dtype.kind == "O"), codes


def _encode_dictionary(found: Dictionary, start: int, objects: bool = False) -> tuple[AnyArray, Any]:
    """Classes and codes of labels that have codes, none of them missing."""
    found = found.used()
    ordered = _ordered(_distinct(found.values))
    position = {label: code for code, label in enumerate(ordered)}
    codes = np.array([position[label] for label in found.values], dtype=_code_type(len(ordered)))[found.codes]
    _check_numbers(ordered, codes, start)
    return label_array(ordered, objects), codes


def _distinct(labels: list[Any]) -> dict[Any, None]:
    try:
        return dict.fromkeys(labels)
    except TypeError:
        raise InputError(NO_LABELS) from None


def _ordered(found: dict[Any, None]) -> list[Any]:
    """Distinct labels, sorted."""
    ordered = sorted_labels(found)
    if ordered is None:
        kinds = sorted({type(label).__name__ for label in found})
        problem = "are of mixed types that cannot be sorted together" if len(kinds) > 1 else "cannot be sorted"
        raise InputError(
            f"Unknown label type: labels in y {problem}: {listed(kinds)}. Convert all labels to text, or all to "
            "numbers."
        )
    return ordered


def _check_numbers(classes: list[Any], codes: AnyArray, start: int) -> None:
    """Raise if labels are numbers, some of them floats, and one is not a whole number."""
    if all(isinstance(label, float | int) for label in classes) and any(isinstance(label, float) for label in classes):
        _whole_numbers(np.array([float(label) for label in classes])[codes], start)
