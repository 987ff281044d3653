"""What a user hands over, checked at the door: feature tables, labels, weights.

A table is read in row blocks and never copied whole. Errors name the column and the row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d

from likely.errors import CellError, InputError, InputTypeError, listed
from likely.numerics import AnyArray, Array, scratch

LABEL_CHUNK = 1 << 18


class Table:
    """Rows of numbers: one array, or one array for each column."""

    def __init__(self, names: list[str], array: AnyArray | None = None, columns: list[AnyArray] | None = None) -> None:
        self.names = names
        self._array, self._columns = array, columns
        self.rows = len(array) if array is not None else len(columns[0]) if columns else 0
        if not self.rows:
            raise InputError("X has no rows: Found array with 0 sample(s) while a minimum of 1 is required.")
        self.width = len(names)
        self._kind = array.dtype if array is not None else _common_kind(columns or [])
        # A block of whole float64 rows is a view; any other is put together, turned or widened, and must stay small.
        self._rowwise = array is not None and abs(array.strides[1]) <= abs(array.strides[0])
        whole = self._rowwise and self._kind == np.float64
        small = max(1_500_000 // self.width, 1024)
        self.most_rows = self.rows if whole else small
        self.most_together = self.rows if self._rowwise else small

    def block(self, start: int, stop: int, columns: AnyArray | None = None) -> AnyArray:
        """Rows start to stop, (n, d), of all or some columns, in the types they came in; gone with the next block."""
        if self._array is not None:
            return self._array[start:stop] if columns is None else self._array[start:stop, columns]
        return self._gather(slice(start, stop), columns)

    def pieces(self, index: Sequence[AnyArray], columns: AnyArray | None = None) -> Iterator[AnyArray]:
        """The rows of one index after another, like `block`.

        Rows are copied one piece at a time. Columns are copied for all pieces at once, because every piece
        reads nearly every line of memory; `most_together` bounds them.
        """
        if self._rowwise:
            yield from (self._take(rows, columns) for rows in index)
            return
        together = self._gather(np.concatenate(index), columns)
        cuts = np.cumsum([0, *map(len, index)]).tolist()
        yield from (together[start:stop] for start, stop in itertools.pairwise(cuts))

    def _take(self, rows: AnyArray, columns: AnyArray | None) -> AnyArray:
        """Rows of an array that lies in rows."""
        assert self._array is not None
        if columns is not None:
            return self._array[rows[:, None], columns]
        out = scratch.array("block", len(rows), self.width) if self._kind == np.float64 else None
        return np.take(self._array, rows, axis=0, out=out, mode="clip")

    def _gather(self, rows: AnyArray | slice, columns: AnyArray | None) -> AnyArray:
        """Rows of a table that lies in columns."""
        chosen = self._columns if self._array is None else list(self._array.T)
        assert chosen is not None
        if columns is not None:
            chosen = [chosen[j] for j in columns]
        size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        shape = len(chosen), size
        block = scratch.array("block", *shape) if self._kind == np.float64 else np.empty(shape, dtype=self._kind)
        for place, column in zip(block, chosen, strict=True):
            if isinstance(rows, slice) or column.dtype != block.dtype:
                place[...] = column[rows]
            else:
                np.take(column, rows, out=place, mode="clip")
        return block.T

    def explain_cell(self, row: int, column: int, value: object) -> CellError:
        """The error about a cell that is not a finite number."""
        name, number = self.names[column], float(value)  # type: ignore[arg-type]
        if np.isnan(number):
            text = (
                f"Column {name!r}, row {row}: NaN. Missing values are not supported here yet. "
                "Hint: leave out rows with missing cells, or fill them in."
            )
        else:
            text = (
                f"Column {name!r}, row {row}: {number} is not a finite number (inf). "
                "Hint: leave out or cap such values."
            )
        return CellError(row, column, value, text)


def _common_kind(columns: list[AnyArray]) -> Any:
    """One type for all columns; an extended one where integers beyond 2^53 stand beside floats."""
    kind = np.result_type(*(column.dtype for column in columns))
    wide = (c for c in columns if c.dtype.kind in "iu" and c.dtype.itemsize == 8 and len(c))
    if kind.kind == "f" and any(max(abs(int(c.max())), abs(int(c.min()))) > 2**53 for c in wide):
        return np.longdouble
    return kind


def is_frame(X: Any) -> bool:
    """Whether this is a data frame that narwhals reads eagerly."""
    if isinstance(X, np.ndarray | list | tuple):
        return False
    return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)


def frame_backend(X: Any) -> Any:
    """The library that a frame comes from, or None for anything else."""
    return nw.from_native(X, eager_only=True).implementation if is_frame(X) else None


def split_target(X: Any, y: Any) -> tuple[Any, Any]:
    """Where X is a frame and y the name of one of its columns: the other columns, and that one."""
    if not (isinstance(y, str) and is_frame(X)):
        return X, y
    frame = nw.from_native(X, eager_only=True)
    if y not in frame.columns:
        raise InputError(f"y={y!r} is not a column of X: {listed(frame.columns)}.")
    return frame.drop(y).to_native(), frame[y].to_native()


def to_frame(rows: Array, names: Sequence[str], backend: Any) -> Any:
    """Rows as a frame of the given library."""
    data = {name: np.ascontiguousarray(rows[:, j]) for j, name in enumerate(names)}
    return nw.from_dict(data, backend=backend).to_native()


def read_table(X: Any) -> Table:
    """A table of numbers from an array, a list of rows, or a frame."""
    if is_frame(X):
        return _read_frame(X)
    X = _unmasked(X)
    array = check_array(X, dtype=None, ensure_all_finite=False, accept_sparse=False, ensure_min_samples=1)
    if array.dtype.kind in "OUST":
        array = _numbers(array)
    if array.dtype.kind == "f" and array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise InputTypeError(f"X has values of type {array.dtype}, which are not numbers.")
    return Table([f"x{j}" for j in range(array.shape[1])], array=array)


def _unmasked(values: Any) -> Any:
    """A masked array as a plain one, with NaN where cells are masked."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    return np.ma.filled(values.astype(np.float64), np.nan) if np.ma.is_masked(values) else values.data


def _is_missing(value: Any) -> bool:
    """Whether this object stands for a missing value: None, NaN, or a library's NA."""
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN differs from itself
    except (TypeError, ValueError):
        return not isinstance(value, np.ndarray | list | tuple)  # NA has no truth value


def _numbers(array: AnyArray) -> Array:
    """An array of objects as numbers, or an error that names the first that is none."""
    if array.dtype.kind == "O":
        array = array.copy()
        for place, cell in np.ndenumerate(array):
            if cell is not None and not isinstance(cell, str | float | int) and _is_missing(cell):
                array[place] = np.nan
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        for row, cells in enumerate(array):
            for column, cell in enumerate(cells):
                try:
                    float(cell)
                except (TypeError, ValueError) as error:
                    text = f"Column {column}, row {row}: {cell!r} is not a number ({error})."
                    kind = InputError if isinstance(cell, str) else InputTypeError
                    raise kind(f"{text} Hint: encode text as numbers first.") from None
        raise


def _read_frame(X: Any) -> Table:
    frame = nw.from_native(X, eager_only=True)
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Column {listed(twice)} stands more than once in the table.")
    if not names:
        raise InputError("X has no columns: Found array with 0 feature(s) while a minimum of 1 is required.")
    return Table(names, columns=[_read_column(column) for column in frame.iter_columns()])


def _read_column(column: Any) -> AnyArray:
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        raise InputError(
            f"Column {str(column.name)!r} is of type {column.dtype}, not of numbers. "
            "Hint: leave it out, or encode it as numbers."
        )
    # Polars's own calls take a tenth of the time, which counts where there are hundreds of columns.
    quick = column.to_native() if column.implementation.is_polars() else column
    if isinstance(column.dtype, nw.Decimal) or quick.null_count() > 0:
        quick = column.cast(nw.Float64)
    values = np.asarray(quick.to_numpy())
    return values.astype(np.float64) if values.dtype.kind not in "biuf" else values


def read_labels(y: Any, rows: int, estimator: str) -> tuple[AnyArray, AnyArray]:
    """Sorted class labels, and the code of every row's label."""
    if y is None:
        raise InputError(f"This {estimator} estimator requires y to be passed, but the target y is None.")
    values = np.asarray(column_or_1d(_plain_labels(y), warn=True))
    if len(values) != rows:
        raise InputError(
            f"X has {rows} rows and y has {len(values)} labels: "
            "Found input variables with inconsistent numbers of samples."
        )
    if values.dtype.kind in "biu":
        return _encode_integers(values)
    if values.dtype.kind == "f":
        return _encode_integers(_whole_numbers(values))
    if values.dtype.kind not in "OUST":
        raise InputTypeError(f"Unknown label type: y has values of type {values.dtype}, which cannot be class labels.")
    return _encode_objects(values)


def _plain_labels(y: Any) -> Any:
    """Labels as an array, from frames' own series too."""
    series = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        if series.null_count() > 0:
            raise _missing_labels(int(np.argmax(series.is_null().to_numpy())))
        if series.dtype in (nw.Categorical, nw.String) or isinstance(series.dtype, nw.Enum):
            return np.array(series.to_list(), dtype=object)
        return series.to_numpy()
    if isinstance(y, np.ma.MaskedArray):
        if np.ma.is_masked(y):
            raise _missing_labels(int(np.argmax(np.ravel(np.ma.getmaskarray(y)))))
        return y.data
    return y if isinstance(y, np.ndarray) else _array_of_labels(y)


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


def _whole_numbers(values: AnyArray) -> AnyArray:
    """Labels that are floats, as the same floats, after checking that they are classes."""
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        if np.isnan(values[row]):
            raise _missing_labels(row)
        raise InputError(f"y, row {row}: {values[row]} is not a class label. Input y contains infinity.")
    fraction = values != np.floor(values)
    if fraction.any():
        row = int(np.argmax(fraction))
        raise InputError(
            f"Unknown label type: continuous. y, row {row}: {values[row]} is not a whole number. Maybe you are trying "
            "to fit a classifier, which expects discrete classes, on a regression target with continuous values."
        )
    return values


def _code_type(classes: int) -> type[np.int16] | type[np.int32]:
    return np.int16 if classes < 2**15 else np.int32


def _encode_integers(values: AnyArray) -> tuple[AnyArray, Any]:
    """Codes of whole numbers: by a table where their range is narrow, else by sorting."""
    low, high = values.min(), values.max()
    beyond = values.dtype.kind == "f" and max(abs(low), abs(high)) >= 2.0**53
    if beyond or int(high) - int(low) > 1 << 20:
        classes, codes = np.unique(values, return_inverse=True)
        return classes, codes.astype(_code_type(len(classes)))
    span = int(high) - int(low) + 1
    seen = np.zeros(span, dtype=bool)
    wide = np.int64 if values.dtype != np.uint64 else np.uint64
    for start in range(0, len(values), LABEL_CHUNK):
        part = values[start : start + LABEL_CHUNK].astype(wide, copy=False)
        seen[(part - wide(low)).astype(np.intp, copy=False)] = True
    present = np.flatnonzero(seen)
    kind = _code_type(len(present))
    table = np.zeros(span, dtype=kind)
    table[present] = np.arange(len(present))
    codes = np.empty(len(values), dtype=kind)
    for start in range(0, len(values), LABEL_CHUNK):
        part = values[start : start + LABEL_CHUNK].astype(wide, copy=False)
        codes[start : start + LABEL_CHUNK] = table[(part - wide(low)).astype(np.intp, copy=False)]
    if values.dtype.kind == "b":
        return present.astype(bool), codes
    return np.array([int(low) + int(p) for p in present], dtype=values.dtype), codes


def _encode_objects(values: AnyArray) -> tuple[AnyArray, Any]:
    """Codes of text or of any labels that can be hashed and sorted."""
    listed_values = values.tolist()
    try:
        found = dict.fromkeys(listed_values)
    except TypeError:
        raise InputError("Unknown label type: labels in y must be text or numbers.") from None
    if any(_is_missing(label) for label in found):
        raise _missing_labels(next(i for i, label in enumerate(listed_values) if _is_missing(label)))
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
        _whole_numbers(np.array([float(label) for label in listed_values]))
    classes = np.array(ordered) if values.dtype.kind != "O" else _object_classes(ordered)
    return classes, codes


def _object_classes(ordered: list[Any]) -> AnyArray:
    """Labels from an array of objects: kept as objects, as scikit-learn does."""
    classes = np.empty(len(ordered), dtype=object)
    classes[:] = ordered
    return classes


def read_weights(sample_weight: Any, rows: int) -> Array | None:
    """Weights of the rows, or None for ones."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(_unmasked(sample_weight))
        weights = weights.astype(np.float64, casting="unsafe" if weights.dtype.kind == "O" else "same_kind")
    except (TypeError, ValueError):
        raise InputError("sample_weight must be numbers, one for each row.") from None
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    if weights.shape != (rows,):
        raise InputError(
            f"sample_weight has shape {weights.shape}, but X has {rows} rows: "
            "Sample weights must be 1D array or scalar."
        )
    bad = ~(np.isfinite(weights) & (weights >= 0.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"sample_weight, row {row}: {weights[row]} is not a weight. Weights must be finite and not negative."
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not total < 1e300:
        raise InputError("The weights in sample_weight are too large to add up. Divide them by their largest.")
    if not weights.any():
        raise InputError("All weights in sample_weight are zero: there is nothing to learn from.")
    return weights
