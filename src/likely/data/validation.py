"""Validation of X, targets and weights, and their conversion to tables. Errors name the column and the row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date, time
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse

from likely.data.categories import CategoryObjects, CategorySeries
from likely.data.date_columns import has_dates, object_dates, series_dates
from likely.data.dictionaries import is_text
from likely.data.frames import as_narwhals, is_frame, not_rows, whole_frame
from likely.data.labels import WIDE, as_series, encode_labels
from likely.data.table import Table, beyond_floats, kind_of, stored_as_text
from likely.errors import CellError, InputError, InputTypeError, listed
from likely.numerics.arrays import check_limits, is_missing
from likely.numerics.threads import single_threaded_blas
from likely.statistics.counts import sorted_labels
from likely.typing import AnyArray, Array

Ignored = Callable[[Sequence[str]], Collection[int]]  # the columns that are not used, by the names of all


def read_table(X: Any, start: int = 0, ignored: Ignored | None = None) -> Table:
    """An array, a list of rows, sparse rows or a frame as a table whose first row has the number `start`.

    `ignored` finds the columns of a frame that are not used, by the names of all. They may have any type, and their
    values are missing in the table.
    """
    table = _read_any(whole_frame(X), start, ignored)
    table.start = start
    return table


def _read_any(X: Any, start: int, ignored: Ignored | None) -> Table:
    if is_frame(X):
        return _read_frame(X, start, ignored)
    if scipy.sparse.issparse(X):
        return _read_sparse(X)
    problem = None if type(X) is np.ndarray else not_rows(X)
    if problem is not None:
        raise InputTypeError(f"{problem}.")
    array = _two_dimensional(X, start)
    names = [f"x{j}" for j in range(array.shape[1])]
    if array.dtype.kind in "OUST":
        read = (_read_objects(array[:, j], names[j], start) for j in range(len(names)))
        columns, kinds = map(list, zip(*read, strict=True))
        if "category" not in kinds:
            return Table(names, array=np.column_stack(columns), kinds=kinds)
        return Table(names, columns=columns, kinds=kinds)
    if array.dtype.kind == "f" and array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise InputTypeError(f"X has values of type {array.dtype}, which are not numbers.")
    return Table(names, array=array)


def _two_dimensional(X: Any, start: int) -> AnyArray:
    """X as an array of two dimensions."""
    try:
        array = np.asarray(_objects(_unmasked(X), "X", start))
    except (ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"X cannot be read as a table: {error}. Pass a 2D array or a data frame.") from None
    if array.dtype.kind == "c":
        raise InputError("X has complex numbers: Complex data not supported. Use their real and imaginary parts.")
    if array.ndim != 2:
        raise InputError(_wrong_shape(X, array))
    rows, columns = array.shape
    if not columns or not rows:
        what = "rows: Found array with 0 sample(s)"
        if rows:
            what = f"columns: Found array with 0 feature(s) (shape={array.shape})"
        raise InputError(f"X has no {what} while a minimum of 1 is required.")
    return array


def _wrong_shape(X: Any, array: AnyArray) -> str:
    """The message about rows that are not two-dimensional."""
    if array.ndim == 1:
        series = isinstance(nw.from_native(X, series_only=True, pass_through=True), nw.Series)
        kind = "a series, and must be 2-dimensional" if series else "one-dimensional"
        one = "X.to_frame().T, or frame.loc[[label]]," if series and hasattr(X, "to_frame") else "X.reshape(1, -1)"
        column = "X.to_frame()" if series else "X.reshape(-1, 1)"
        return (
            f"X is {kind}: Expected 2D array, got 1D array instead, of shape {array.shape}. Reshape your data: {one} "
            f"is a single row, {column} a single column."
        )
    if array.ndim == 0:
        return f"X={X!r} is a single value: Expected 2D array, got scalar array instead. Pass rows, [[...]]."
    return (
        f"X has shape {array.shape}: Found array with dim {array.ndim}, while dim 2 is required. Use "
        "X.reshape(len(X), -1) for one column per entry."
    )


def _read_sparse(X: Any) -> Table:
    rows = scipy.sparse.csr_array(X)
    if rows.ndim != 2:
        raise InputError("X is a sparse array of one dimension. Expected 2D array.")
    if not rows.shape[1]:
        raise InputError("X has no columns: Found array with 0 feature(s) while a minimum of 1 is required.")
    if rows.dtype.kind not in "biuf":
        raise InputTypeError(f"X has values of type {rows.dtype}, which are not numbers: Complex data not supported.")
    if not rows.has_canonical_format:
        rows = rows.copy()  # it may share its arrays with X
        rows.sum_duplicates()
    return Table([f"x{j}" for j in range(rows.shape[1])], sparse=rows)


def _objects(X: Any, name: str, start: int) -> Any:
    """A list of rows with text as an array of objects, so that numbers stay numbers."""
    if isinstance(X, list | tuple) and len(X):
        try:
            if np.asarray(X).dtype.kind in "USO":
                return np.array(X, dtype=object)
        except ValueError as error:
            raise InputError(_ragged(X, name, start) or f"{name} cannot be read as a table: {error}.") from None
    return X


def _ragged(rows: Sequence[Any], name: str, start: int) -> str | None:
    """A message about the first row of another length than the others, or the first cell with several entries."""

    def described(size: int | None) -> str:
        return "is a single value" if size is None else f"has {size} {'entry' if size == 1 else 'entries'}"

    first = _entries(rows[0])
    for i, row in enumerate(rows):
        if (size := _entries(row)) != first:
            return (
                f"{name}, row {start + i} {described(size)}, and row {start} {described(first)}: all rows must have "
                "the same length. Use None or NaN for missing values."
            )
    for i, row in enumerate(rows):
        for j, cell in enumerate([] if first is None else row):
            if (size := _entries(cell)) is not None:
                return (
                    f"{name}, row {start + i}, column {j}: the cell {described(size)}, and must be a single number or "
                    "category. Use one column for each entry."
                )
    return None


def _entries(values: Any) -> int | None:
    """The number of entries; None for a single value."""
    return len(values) if hasattr(values, "__len__") and not isinstance(values, str | bytes) else None


def _unmasked(values: Any) -> Any:
    """A masked array as a plain one, with NaN where values are masked."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return values.data
    if beyond_floats(values.data):
        cells = values.data.astype(object)
        cells[np.ma.getmaskarray(values)] = None
        return cells
    return np.ma.filled(values.astype(np.float64), np.nan)


def _read_objects(column: AnyArray, name: str, start: int) -> tuple[Any, str]:
    """A column of Python objects, and its kind: numbers where all values are, else categorical."""
    if column.dtype.kind != "O":
        return CategoryObjects(column.astype(object)), "category"
    cells = column.tolist()
    kinds = set(map(type, cells))
    if any(issubclass(kind, str | bytes) for kind in kinds):
        _check_categories(cells, kinds, name, start)
        return CategoryObjects(column), "category"
    dates = object_dates(cells) if any(issubclass(kind, date | time) for kind in kinds) else None
    if dates is not None:
        return dates, "category"
    numbers, yes_or_no = np.empty(len(column)), True
    for row, cell in enumerate(cells):
        try:
            numbers[row] = np.nan if cell is None or (not isinstance(cell, float) and is_missing(cell)) else cell
        except (TypeError, ValueError, ArithmeticError) as error:
            shown = repr(cell) if len(repr(cell)) < 100 else f"{repr(cell)[:100]}..."
            text = f"Column {name!r}, row {start + row}: {shown} is not a number or text ({error})."
            kind = InputError if isinstance(cell, complex) else InputTypeError
            raise kind(f"{text} Encode such values as numbers first.") from None
        yes_or_no = yes_or_no and (isinstance(cell, bool | np.bool_) or bool(np.isnan(numbers[row])))
    for row in np.flatnonzero(np.abs(numbers) > 2.0**53).tolist():
        if isinstance(column[row], int | np.integer):
            numbers = numbers.astype(np.longdouble, copy=False)  # holds any integer of 64 bits
            numbers[row] = column[row]
    return numbers, "boolean" if yes_or_no and not np.isnan(numbers).all() else "number"


def _check_categories(cells: list[Any], kinds: set[type], name: str, start: int) -> None:
    """Raise for the first of several categories that is neither text nor a number, wherever it stands."""
    strange = tuple(kind for kind in kinds if not issubclass(kind, str | bytes | Number | np.generic))
    if not strange:
        return
    for row, cell in enumerate(cells):
        if isinstance(cell, strange) and not is_missing(cell):
            raise InputTypeError(
                f"Column {name!r}, row {start + row}: {repr(cell)[:100]} is a {type(cell).__name__}, and neither text "
                "nor a number. Convert the column to text, or encode such values as numbers."
            )


def _read_frame(X: Any, start: int, ignored: Ignored | None) -> Table:
    frame = as_narwhals(X)
    labels = frame.columns
    names = list(map(str, labels))
    if len(set(names)) < len(names):  # 1 and "1" are two names with the same text
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Duplicate column names: {listed(twice)}. Rename the columns of X.")
    if not names:
        raise InputError("X has no columns: Found array with 0 feature(s) while a minimum of 1 is required.")
    unused = set() if ignored is None else ignored(names)
    columns: list[Any] = []
    kinds: list[str] = []
    for j, plain in enumerate(_plain_numbers(frame)):
        values = np.full(len(frame), np.nan) if j in unused else plain
        if values is None:
            values, kind = _read_column(frame.get_column(labels[j]), names[j], start)
        else:
            kind = "boolean" if values.dtype.kind == "b" else "number"
        columns.append(values)
        kinds.append(kind)
    table = Table(names, columns=columns, kinds=kinds)
    table.is_frame = True
    return table


def _plain_numbers(frame: nw.DataFrame[Any]) -> list[AnyArray | None]:
    """The columns of a frame that are numbers of NumPy or floats without nulls; None for any other.

    They are read from the frame's library: a series of narwhals for each takes longer than the prediction of a row.
    """
    native, library = frame.to_native(), frame.implementation
    if library.is_pandas():
        return _pandas_numbers(native)
    if library.is_polars():
        return [
            column.to_numpy() if column.dtype.is_float() and not column.null_count() else None
            for column in native.get_columns()
        ]
    return list(map(_arrow_numbers, native.columns)) if library.is_pyarrow() else [None] * frame.shape[1]


def _pandas_numbers(native: Any) -> list[AnyArray | None]:
    """Columns of NumPy's numbers, NaN where they are missing, or of Arrow's floats; None for any other."""
    found: list[AnyArray | None] = []
    for _, column in native.items():  # noqa: PERF102 -- `values` of a frame is an array
        kind = column.dtype
        if hasattr(kind, "pyarrow_dtype"):
            found.append(_arrow_numbers(column.array.__arrow_array__()))
        else:
            plain = isinstance(kind, np.dtype) and kind.kind in "biuf" and kind.itemsize <= 8
            found.append(column.to_numpy() if plain else None)
    return found


def _arrow_numbers(column: Any) -> AnyArray | None:
    """A column of floats without nulls; None for any other."""
    return column.to_numpy() if str(column.type) in ("double", "float") and not column.null_count else None


def _read_column(column: Any, name: str, start: int) -> tuple[Any, str]:
    """A series of a frame as numbers or categories, and its kind."""
    kind = column.dtype
    if kind == nw.Unknown:
        values = _unknown_values(column)
        if values is not None:
            return values, kind_of(values)
    if is_text(kind):
        return CategorySeries(column), "category"
    if has_dates(kind):
        return series_dates(column), "category"
    if kind == nw.Object:
        values = np.asarray(column.to_numpy(), dtype=object)
        return _read_objects(values, name, start)
    if kind in WIDE:
        cells = np.array(column.to_list(), dtype=object)
        if any(cell is not None and not -(2**63) <= cell < 2**63 for cell in cells):
            return _read_objects(cells, name, start)
        column, kind = column.cast(nw.Int64), nw.Int64()
    if not (kind.is_numeric() or kind == nw.Boolean):
        raise InputError(_no_column(column, name))
    has_null = column.null_count() > 0
    if isinstance(kind, nw.Decimal):  # Arrow multiplies by 1e-2, where 4.60 becomes 4.6000000000000005: text is exact
        column = column.cast(nw.String).cast(nw.Float64)
    elif has_null and not kind.is_integer():
        column = column.cast(nw.Float64)
    elif has_null:  # a cast refuses integers that float64 would round
        return _with_missing(np.asarray(column.fill_null(0).to_numpy()), column.is_null().to_numpy()), "number"
    values = np.asarray(column.to_numpy())
    values = values.astype(np.float64) if values.dtype.kind not in "biuf" else values
    return values, "boolean" if kind == nw.Boolean else "number"


def _no_column(column: Any, name: str) -> str:
    """The message about a column that is neither numeric nor categorical, with the type of its library."""
    kind, native = column.dtype, column.to_native()
    shown = getattr(native, "dtype", getattr(native, "type", kind))
    if kind == nw.Duration:
        return (
            f"Column {name!r} has durations (type {shown}). Convert it to numbers, such as seconds: in pandas "
            f"X[{name!r}].dt.total_seconds(), in Polars pl.col({name!r}).dt.total_seconds()."
        )
    return (
        f"Column {name!r} has the type {shown}, which is neither numeric nor categorical. Drop it, or convert it to "
        "numbers or text."
    )


def _unknown_values(column: Any) -> AnyArray | None:
    """Numbers of a column whose type narwhals does not know: all values missing, or numbers of pandas' own types."""
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    if not column.implementation.is_pandas():
        return None
    values = np.asarray(column.to_native())
    if values.dtype.kind not in "biuf":
        return None
    return values.astype(np.float64) if values.dtype.itemsize > 8 else values


def _with_missing(values: AnyArray, missing: AnyArray) -> AnyArray:
    """Integers as floats, NaN where they are missing; in extended precision where float64 would round them."""
    floats = values.astype(np.longdouble if beyond_floats(values) else np.float64)
    floats[missing] = np.nan
    return floats


def read_targets(y: Any, estimator: str, start: int = 0, name: str | None = None) -> Table:
    """Targets as a table of numbers, NaN where they are missing; y is an array, a series or a frame.

    `name` is that of the column that y was given by.
    """
    if y is None:
        raise InputError(f"This {estimator} estimator requires y to be passed, but the target y is None.")
    table, shape = _target_table(y, start, name)
    values = "y" if name is None else f"X[{name!r}]"
    columns = [_target_column(table, j, estimator, values) for j in range(table.width)]
    table = Table(table.names, columns=columns)
    table.start, table.target_shape = start, shape
    return table


def _target_table(y: Any, start: int, name: str | None) -> tuple[Table, tuple[int, ...]]:
    """y as a table, and the shape of a row of y."""
    series = y if isinstance(y, np.ndarray | list | tuple) else nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        named = series.alias(name or ("y" if series.name is None or not str(series.name) else str(series.name)))
        return read_table(named.to_frame().to_native(), start), ()
    if is_frame(y):
        table = read_table(y, start)
        return table, (table.width,)
    if scipy.sparse.issparse(y):
        raise InputTypeError("y is sparse. Use y.toarray().")
    values = np.asarray(_objects(_unmasked(y), "y", start))
    if values.ndim not in (1, 2) or not values.size:
        raise InputError(
            f"y has shape {values.shape}: y should be a 1d array, one number for each row, or have a column for each "
            "output."
        )
    if values.dtype.kind not in "biufOUS":
        raise InputTypeError(f"y has values of type {values.dtype}, which are not numbers.")
    table = read_table(values if values.ndim == 2 else values[:, None], start)
    table.names = ["y"] if table.width == 1 else [f"y{j}" for j in range(table.width)]
    return table, values.shape[1:]


def _target_column(table: Table, j: int, estimator: str, values: str) -> AnyArray:
    """A column of targets, checked; `values` are the targets as the user has them."""
    start = table.start
    column = table.column(j)
    if table.kinds[j] == "category":
        first = column.first()
        if first is None:
            return np.full(table.rows, np.nan)
        cell = f"Column {table.names[j]!r} of y, row {start + first[0]}: {first[1]!r}"
        other = f"{cell} is not a number. {estimator} predicts numbers; use GenerativeClassifier to predict classes."
        raise InputError(stored_as_text(cell, table.names[j], first[1], values) or other)
    try:
        with single_threaded_blas():  # its idle threads would slow down the pass that follows
            check_limits(column[:, None])
    except CellError as error:
        raise InputError(
            f"Column {table.names[j]!r} of y, row {start + error.row}: {error.value!r} {error.problem}. "
            f"{error.hint[:1].upper()}{error.hint[1:]}."
        ) from None
    return column


def weight_values(sample_weight: Any) -> Array:
    """Weights as floats."""
    series = as_series(sample_weight)
    if series is not None and series.dtype in WIDE:
        sample_weight = series.cast(nw.Float64)
    try:
        weights = np.asarray(_unmasked(sample_weight))
        return weights.astype(np.float64, casting="unsafe" if weights.dtype.kind == "O" else "same_kind")
    except (TypeError, ValueError, NotImplementedError):
        raise InputError("sample_weight must be numbers, one for each row.") from None


def read_weights(sample_weight: Any, rows: int, start: int = 0) -> Array | None:
    """Weights of the rows, or None for ones. Errors count rows from `start`."""
    if sample_weight is None:
        return None
    weights = weight_values(sample_weight)
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
            f"sample_weight, row {start + row}: {weights[row]} is not a valid weight. Weights must be finite "
            "and not negative."
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not total < 1e300:  # sums of weighted values would overflow
        raise InputError("The sum of sample_weight overflows. Divide the weights by their largest.")
    return weights


def accuracy(predicted: AnyArray, classes: AnyArray, y: Any, sample_weight: Any, model: Any) -> float:
    """The weighted proportion of rows whose label in y is predicted; `classes` are those of the model."""
    name = type(model).__name__
    truth = encode_labels(y, len(predicted), name, unlabeled=getattr(model, "unlabeled", None))
    weights = read_weights(sample_weight, len(predicted))
    if weights is not None and not weights.any():
        raise InputError("All weights in sample_weight are zero: no row counts in the score.")
    known = classes.tolist()
    place = {label: code for code, label in enumerate(truth.classes.tolist())}
    if not any(label in place for label in known) and sorted_labels({*known, *place}) is None:
        raise InputError(
            f"y has the labels {listed(place)}, and the classes of the model are {listed(known)}, which are of another "
            "type. Pass labels as they were in the fit."
        )
    found = encode_labels(predicted, len(predicted), name)
    codes = np.array([place.get(label, -1) for label in found.classes.tolist()])[found.codes]
    return float(np.average(codes == truth.codes, weights=weights))
