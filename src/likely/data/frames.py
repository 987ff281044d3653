"""Data frames of any library through narwhals: their schema, target columns, and new frames with the same types."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse

from likely.data.column_kinds import ColumnKind, kinds_of, kinds_of_file
from likely.errors import InputError, InputTypeError, listed, nearest
from likely.numerics.shapes import check
from likely.typing import AnyArray


def is_frame(X: Any) -> bool:
    """Whether X is an eager data frame that narwhals supports."""
    if isinstance(X, np.ndarray | list | tuple) or scipy.sparse.issparse(X):
        return False
    return bool(nw.dependencies.is_into_dataframe(X))


def as_narwhals(X: Any) -> Any:
    """A frame as narwhals reads it, anything else as it is."""
    try:
        return nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in column_names(X)]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Duplicate column names: {listed(twice)}. Rename the columns of X.") from None


def column_names(X: Any) -> list[Any]:
    """The names of the columns of a frame, as they are."""
    return list(X.column_names if hasattr(X, "column_names") else X.columns)  # the first is Arrow's


def input_names(X: Any) -> tuple[str, ...] | None:
    """The names of the columns of a frame or a scan; None for arrays and other sources."""
    if is_frame(X):
        return tuple(map(str, column_names(X)))
    scanned = type(X).__module__.startswith("likely.")
    return tuple(X.columns) if scanned and hasattr(X, "columns") else None


def whole_frame(X: Any) -> Any:
    """Record batches of Arrow, and rows as dictionaries, as tables of Arrow; anything else as it is."""
    if isinstance(X, np.ndarray) or scipy.sparse.issparse(X):
        return X
    if isinstance(X, Mapping) or (isinstance(X, list | tuple) and X and isinstance(X[0], Mapping)):
        return _from_dictionaries([X] if isinstance(X, Mapping) else X)
    if type(X).__name__ == "RecordBatch" and type(X).__module__.startswith("pyarrow"):
        import pyarrow as pa

        return pa.Table.from_batches([X])
    return X


def _from_dictionaries(rows: Sequence[Any]) -> Any:
    """Rows {column: value} as a table; a row without a column has a missing value there."""
    import pyarrow as pa

    names: dict[Any, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputTypeError(f"X, row {i}: {row!r} is not a dictionary as row 0 is. Pass rows of one kind.")
        names.update(dict.fromkeys(row))
    columns = {}
    for name in names:
        if not isinstance(name, str):
            raise InputTypeError(f"X has the column {name!r}. Use text for the names of columns.")
        cells = [row.get(name) for row in rows]
        several = next((cell for cell in cells if isinstance(cell, list | tuple | set | Mapping | np.ndarray)), None)
        if several is not None or any(hasattr(cell, "__array__") and np.ndim(cell) for cell in cells):
            raise InputTypeError(
                f"X is a dictionary of columns: {name!r} has several values. Expected 2D array. Use "
                "pandas.DataFrame(X) for columns; dictionaries are rows {column: value}."
            )
        try:
            columns[name] = pa.array(cells, from_pandas=True)
        except (pa.ArrowException, OverflowError, UnicodeError) as error:
            kinds = sorted({type(cell).__name__ for cell in cells if cell is not None})
            raise InputTypeError(
                f"Column {name!r}: values of the types {listed(kinds)} are not a column ({error}). Convert them to one "
                "type."
            ) from None
    if not columns:
        raise InputError("X has no columns: Found array with 0 feature(s) while a minimum of 1 is required.")
    return pa.table(columns)


def rows_and_target(X: Any, y: Any) -> tuple[Any, Any]:
    """X as a frame or array, and y; the label of a single row may be given as it is, with a dictionary."""
    if isinstance(X, Mapping) and not scipy.sparse.issparse(X) and names_column(y) and y not in X:
        y = [y]
    return whole_frame(X), y


def not_rows(X: Any) -> str | None:
    """What to do with an object that stands for rows which are not in memory; None for any other object."""
    name, module = type(X).__name__, type(X).__module__
    if isinstance(X, str | bytes | os.PathLike):
        return f"X={X!r} is text or a path, not rows. Pass likely.scan({X!r}), or read the file into a frame"
    if isinstance(X, io.IOBase):
        return "X is an open file, not rows. Pass likely.scan(path), or read the file into a frame"
    if module.startswith("pyarrow") and name == "RecordBatchReader":
        return "X is a reader of record batches, not rows in memory. Use X.read_all()"
    if module.startswith("pyarrow") and (name.endswith(("Dataset", "Scanner")) or name == "ParquetFile"):
        method = "read" if name == "ParquetFile" else "to_table"
        return f"X is a {name} of Arrow, not rows in memory. Use X.{method}()"
    if isinstance(X, Iterator):
        return f"X is a {name}, not rows in memory. Use list(X), or pass an object with a method chunks()"
    if not isinstance(X, np.ndarray | list | tuple) and isinstance(as_narwhals(X), nw.LazyFrame):
        method = "X.collect()" if module.startswith("polars") else "X.df() or X.to_pandas()"
        method += ", or pass an object with a method chunks()"
        return f"X is a {name}, a query whose rows are not in memory. Use {method}"
    return None


def library_of(X: Any) -> str | None:
    """The name of the library of a frame; None for anything else."""
    array = isinstance(X, np.ndarray | list | tuple) or scipy.sparse.issparse(X)
    frame = None if array else as_narwhals(X)
    return str(frame.implementation.value) if isinstance(frame, nw.DataFrame) else None


@dataclass(frozen=True, slots=True)
class FrameSchema:
    """What a model remembers of the frame that it was fitted on; all None if it was fitted on an array."""

    names: tuple[str, ...] | None = None  # of the columns, as text
    labels: tuple[Hashable, ...] | None = None  # names of columns as they are, where these are not text
    backend: str | None = None  # the library of the frame: "pandas", "polars", "pyarrow", ...
    kinds: tuple[ColumnKind | None, ...] | None = None  # types of the columns; None if they are not known
    reading: Any = None  # how the columns are read: see `data/reading.py`; None if all are used as they are

    @classmethod
    def of(cls, X: Any) -> FrameSchema:
        frame = X if isinstance(X, np.ndarray | list | tuple) or scipy.sparse.issparse(X) else as_narwhals(X)
        if not isinstance(frame, nw.DataFrame):
            return cls()
        return cls(
            tuple(map(str, frame.columns)), _column_labels(frame), str(frame.implementation.value), kinds_of(frame)
        )

    @property
    def booleans(self) -> frozenset[str]:
        """The names of columns whose type is boolean, in any library."""
        pairs = zip(self.names or (), self.kinds or (), strict=False)
        return frozenset(name for name, kind in pairs if kind is not None and kind.name.lower().startswith("bool"))

    def without_categories(self, gone: Mapping[str, Collection[Any] | None]) -> FrameSchema:
        """The schema without some categories of columns, or without all of them where they are None."""
        if self.kinds is None or not gone:
            return self
        pairs = zip(self.names or (), self.kinds, strict=True)
        kinds = (kind.without(gone[name]) if kind is not None and name in gone else kind for name, kind in pairs)
        return replace(self, kinds=tuple(kinds))

    def to_file(self) -> dict[str, Any]:
        """The fields for a model file, without the names."""
        return {
            "labels": None if self.labels is None else list(self.labels),
            "frame": None if self.backend is None else nw.Implementation.from_string(self.backend).name,
            "kinds": None if self.kinds is None else tuple(kind and kind.to_file() for kind in self.kinds),
            "reading": self.reading,
        }

    @classmethod
    def from_file(cls, columns: Mapping[str, Any], names: tuple[str, ...] | None) -> FrameSchema:
        """The schema of a model file."""
        labels = None if columns["labels"] is None else tuple(columns["labels"])
        backend = None if columns["frame"] is None else str(nw.Implementation[columns["frame"]].value)
        kinds, reading = kinds_of_file(columns["kinds"], len(names or ())), columns["reading"]
        schema = cls(names, labels, backend, kinds, reading)
        check(schema)
        return schema


def typed(frame: Any, schema: FrameSchema) -> Any:
    """A frame with the column types of a schema, where these are known and the values fit them."""
    if schema.kinds is None or schema.backend is None:
        return frame
    found, changed = nw.from_native(frame, eager_only=True), []
    turned = [False] * len(schema.kinds) if schema.reading is None else [c.turns_values for c in schema.reading.columns]
    for name, kind, other in zip(found.columns, schema.kinds, turned, strict=True):
        like = None if kind is None or other else kind.empty(schema.backend)
        series = None if like is None else _typed(found.get_column(name), like)
        changed += [] if series is None else [series]
    return found.with_columns(*changed).to_native() if changed else frame


def _typed(series: Any, like: Any) -> Any:
    """A column cast to the type of another; None if it has that type, or the values do not fit."""
    kind = like.dtype
    pandas, arrow = hasattr(like.to_native(), "iloc"), like.implementation.is_pyarrow()
    if series.dtype == kind and not pandas and not (arrow and series.to_native().type != like.to_native().type):
        return None
    if kind.is_integer() or kind == nw.Boolean:
        if not series.dtype.is_numeric():
            return None
        cells = series.to_numpy()
        low, high = (0, 1) if kind == nw.Boolean else _integer_range(kind)
        if not np.all((cells == np.rint(cells)) & (cells >= low) & (cells <= high)):
            return None
    elif (kind.is_numeric() and kind != nw.Float64) or kind == nw.Object:  # others would round
        return None
    native = series.to_native()
    if pandas:  # it has types that narwhals does not know
        dtype = like.to_native().dtype
        values = hasattr(dtype, "pyarrow_dtype")  # converts Python values only, where it is a dictionary
        native = type(native)(native.tolist(), native.index, dtype) if values else native.astype(dtype)
        turned = nw.from_native(native, series_only=True)
    elif kind == nw.Categorical and arrow:
        turned = series_like(series.to_list(), like)
    elif kind == nw.String and arrow:  # which has several
        turned = nw.from_native(native.cast(like.to_native().type), series_only=True)
    else:
        turned = series.cast(kind)
    return turned.alias(series.name) if turned.null_count() == series.null_count() else None


def series_like(cells: list[Any], like: Any) -> Any:
    """A series of values with the name, type and library of another, which is not of pandas."""
    if like.implementation.is_pyarrow() and like.dtype == nw.Categorical:  # a dictionary, maybe of numbers
        import pyarrow as pa

        kind = like.to_native().type
        found = pa.array(cells, type=kind.value_type).dictionary_encode()
        indices = found.indices.cast(kind.index_type)
        both = pa.DictionaryArray.from_arrays(indices, found.dictionary, ordered=kind.ordered)
        return nw.from_native(pa.chunked_array([both]), series_only=True).alias(like.name)
    return nw.new_series(like.name, cells, like.dtype, backend=like.implementation)


def _integer_range(kind: Any) -> tuple[int, int]:
    bits = int(str(kind).removeprefix("U").removeprefix("Int"))
    return (0, 2**bits - 1) if str(kind).startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def to_frame(columns: Sequence[AnyArray], names: Sequence[Any], library: str) -> Any:
    """Columns as a frame of a library."""
    backend: Any = nw.Implementation.from_string(library)
    data = {str(name): _cells(column, backend) for name, column in zip(names, columns, strict=True)}
    try:
        frame = nw.from_dict(data, backend=backend).to_native()
    except UnicodeEncodeError:  # text with lone surrogates, which only columns of objects hold
        namespace: Any = backend.to_native_namespace()
        frame = namespace.DataFrame(
            {
                name: namespace.Series(column, dtype=object if isinstance(column, list) else None)
                for name, column in data.items()
            }
        )
    if not all(isinstance(name, str) for name in names):
        frame.columns = list(names)
    return frame


def _cells(column: AnyArray, backend: Any) -> Any:
    """A column as a library reads it: integers beyond 64 bits need their own type in Polars."""
    if column.dtype.kind != "O":
        return np.ascontiguousarray(column)
    cells = column.tolist()
    if backend.is_polars() and any(isinstance(cell, int) and abs(cell) >= 2**63 for cell in cells):
        return nw.new_series("", cells, nw.Int128, backend=backend)
    return cells


def _column_labels(frame: Any) -> tuple[Any, ...] | None:
    """The column names of a frame if they are not text; else None."""
    names = list(frame.columns)
    text = [isinstance(name, str) for name in names]
    if any(text) and not all(text):
        raise InputTypeError(
            f"X has columns named {listed(names)}: some names are text and some are not. Feature names are only "
            "supported if all input features have string names. Use X.columns = X.columns.astype(str)."
        )
    return None if all(text) else tuple(names)


def names_column(y: Any) -> bool:
    """Whether y is a scalar, text or a number, and so the name of a column."""
    return bool(np.isscalar(y))


def names_columns(y: Any) -> bool:
    """Whether y is the name of a column, or a list of names."""
    return names_column(y) or (isinstance(y, list | tuple) and bool(y) and all(isinstance(name, str) for name in y))


def target_names(y: Any, sample_weight: Any, named: Callable[[Any], bool] = names_column) -> tuple[Any, ...]:
    """The names of the columns that y and the weights are given by; none for values: a list of text has labels of rows.

    `named` decides which of both y is.
    """
    weights = (sample_weight,) if isinstance(sample_weight, str) else ()
    if not named(y):
        return weights
    return (*y, *weights) if isinstance(y, list | tuple) else (y, *weights)


def _meant(name: Any, columns: Sequence[Any]) -> str:
    """A question about the names of columns that resemble one that is not there."""
    found = nearest(str(name), [str(column) for column in columns])
    return f" {found}" if found.startswith("Did") else ""


def check_targets_differ(y: Any, sample_weight: Any, named: Callable[[Any], bool] = names_column) -> None:
    """Raise where y and the weights are names of one column; `named` decides whether y is a name or has labels."""
    targets = y if isinstance(y, list | tuple) else [y]
    if isinstance(sample_weight, str) and named(y) and sample_weight in targets:
        raise InputError(f"y and sample_weight both name the column {sample_weight!r}. Labels and weights differ.")


def split_target(X: Any, y: Any) -> tuple[Any, Any]:
    """The other columns of a frame and the target, where y is the name of a column; else X and y."""
    if not names_column(y):
        return X, y
    if not is_frame(X):
        problem = not_rows(X)
        if problem is not None:
            raise InputTypeError(f"{problem}.")
        raise InputError(
            f"y={y!r} is the name of a column, but X is not a data frame. Pass a data frame, or labels: y should be "
            "a 1d array, one label for each row."
        )
    frame = as_narwhals(X)
    if y not in frame.columns:
        raise InputError(f"y={y!r} is not a column of X: {listed(frame.columns)}.{_meant(y, frame.columns)}")
    return frame.drop(y).to_native(), frame.get_column(y).to_native()


def split_weights(X: Any, sample_weight: Any) -> tuple[Any, Any]:
    """The other columns of a frame and the weights, where `sample_weight` is the name of a column; else both."""
    if not isinstance(sample_weight, str):
        return X, sample_weight
    frame = nw.from_native(X, eager_only=True) if is_frame(X) else None
    if frame is None or sample_weight not in frame.columns:
        known = "X is not a data frame" if frame is None else f"X has the columns {listed(frame.columns)}"
        meant = "" if frame is None else _meant(sample_weight, frame.columns)
        raise InputError(
            f"sample_weight={sample_weight!r} is neither numbers nor the name of a column: {known}.{meant} Pass one "
            "weight for each row, or the name of a column of X."
        )
    return frame.drop(sample_weight).to_native(), frame.get_column(sample_weight).to_native()


def split_targets(X: Any, y: Any) -> tuple[Any, Any]:
    """The other columns of a frame and the targets, where y is the name of a column or a list of names."""
    if not names_columns(y) or names_column(y):
        return split_target(X, y)
    frame = as_narwhals(X) if is_frame(X) else None
    if frame is None and (problem := not_rows(X)) is not None:
        raise InputTypeError(f"{problem}.")
    if frame is None or not set(y) <= set(frame.columns) or len(set(y)) < len(y):
        known = "not a data frame" if frame is None else f"a data frame with columns {listed(frame.columns)}"
        raise InputError(f"y={listed(y)} must be names of columns, each of them once, but X is {known}.")
    return frame.drop(list(y)).to_native(), frame.select(list(y)).to_native()
