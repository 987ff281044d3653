"""What a user hands over, checked at the door: feature tables and weights.

A table has columns of numbers (NaN where a cell is missing) and columns of labels (text, categories). It
is read in row blocks and never copied whole. Errors name the column and the row.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from likely.errors import InputError, InputTypeError, listed
from likely.labels import LabelObjects, Labels, LabelSeries, number_labels, whole_labels
from likely.numerics import AnyArray, Array, all_finite, is_missing, scratch
from likely.statistics import Vocabulary
from likely.threads import run

LONG = 1024  # rows of columns that are copied together
GAP = 4096  # bytes between them at most
TOGETHER = 2**22  # cells that are put together or written out at a time, of wide rows

Reader = Callable[[int, int], Any]


class Table:
    """Rows of typed columns: one array, sparse rows, or one array or series for each column.

    `kinds` says of each column whether it holds numbers ("number", "boolean") or labels ("label").
    """

    def __init__(
        self,
        names: list[str],
        array: AnyArray | None = None,
        columns: list[Any] | None = None,
        sparse: Any = None,
        kinds: list[str] | None = None,
    ) -> None:
        self.names = names
        self.start = 0  # the number of the first row, where the table is a part of a larger one
        self.target_shape: tuple[int, ...] = (0,)  # where the last columns are targets: of those of a row, () for one
        self._array, self._columns, self._sparse = array, columns, sparse
        self._base: Table | None
        self._index: Any
        self.rows = len(array) if array is not None else sparse.shape[0] if sparse is not None else len(columns or [[]])
        if columns is not None:
            self.rows = len(columns[0]) if columns else 0
        if not self.rows:
            raise InputError("X has no rows: Found array with 0 sample(s) while a minimum of 1 is required.")
        self.width = len(names)
        self.kinds = kinds or [_kind(array)] * self.width
        self._base, self._index = None, None  # where the table is some rows of another: which
        self._labels: dict[int, Labels] = {}
        self.notes: dict[Any, Any] = {}  # what others found out about the columns, once
        self._common: dict[bytes, Any] = {}
        # A block of whole float64 rows is a view; any other is put together, turned or widened, and must stay small.
        self._rowwise = array is not None and abs(array.strides[1]) <= abs(array.strides[0])
        whole = self._rowwise and array is not None and array.dtype == np.float64
        self._small = min(max(1_500_000 // self.width, 1024), max(TOGETHER // self.width, 1))
        self.most_rows = self.rows if whole else self._small
        self.most_together = self.rows if self._rowwise else self._small

    @property
    def is_sparse(self) -> bool:
        return self._sparse is not None

    # -- numbers

    def block(self, start: int, stop: int, columns: AnyArray | None = None) -> Any:
        """Rows start to stop, (n, d), of all or some columns, in the types they came in; gone with the next block.

        Sparse rows come as such.
        """
        if self._base is not None:
            return next(self.pieces([np.arange(start, stop)], columns, sparse=True))
        if self._sparse is not None:
            part = self._sparse_rows(start, stop)
            return part if columns is None else part[:, columns]
        if self._array is not None:
            return self._array[start:stop] if columns is None else self._array[start:stop, _slice_of(columns)]
        return self._gather(slice(start, stop), columns)

    def numbers(self, columns: AnyArray | None, sparse: bool) -> Reader:
        """Row blocks of columns of numbers; sparse rows are written out unless they are wanted as they are."""
        if columns is not None and len(columns) == self.width and np.array_equal(columns, np.arange(self.width)):
            columns = None
        for j in range(self.width) if columns is None else columns.tolist():
            if self._columns is None:
                break  # one array has no labels
            if self.kinds[j] == "label":
                first = self._columns[j].first()
                if first is None:  # no label at all: no number either
                    self._columns[j], self.kinds[j] = np.full(self.rows, np.nan), "number"
                    continue
                where, what = first
                raise InputError(
                    f"Column {self.names[j]!r}, row {self.start + where}: {what!r} is not a number. Hint: "
                    f"families={{{self.names[j]!r}: Categorical()}} of GenerativeClassifier or NaiveBayes, or leave "
                    "the column out, or encode it as numbers first."
                )
        if self._sparse is None or sparse:
            return lambda start, stop: self.block(start, stop, columns)
        return lambda start, stop: self.block(start, stop, columns).toarray()

    def _sparse_rows(self, start: int, stop: int) -> Any:
        """Sparse rows that share their cells with the table: a slice would copy them."""
        bounds = self._sparse.indptr[start : stop + 1]
        cells = slice(int(bounds[0]), int(bounds[-1]))
        part = scipy.sparse.csr_array((stop - start, self.width), dtype=self._sparse.dtype)
        part.data, part.indices, part.indptr = self._sparse.data[cells], self._sparse.indices[cells], bounds - bounds[0]
        return part

    @property
    def stored_per_row(self) -> int:
        """Stored cells of a sparse row, on average; 0 where rows are dense."""
        return 0 if self._sparse is None else int(self._sparse.nnz // self.rows) + 1

    @property
    def sparse_rows(self) -> int:
        """How many sparse rows to look at together."""
        return 0 if self._sparse is None else max(2**21 // self.stored_per_row, 256)

    def cells(self, columns: int, sparse: bool) -> int:
        """About how many numbers a row of so many columns has; where sparse rows come as such, those it stores."""
        return 4 * self.stored_per_row if sparse and self._sparse is not None else columns

    def fewest_rows(self, width: int) -> int:
        """How many rows to look at together, at least, where each needs so many numbers."""
        return 256 if self._sparse is None else min(256, max(TOGETHER // max(width, 1), 1))

    def pieces(self, index: Sequence[AnyArray], columns: AnyArray | None = None, sparse: bool = False) -> Iterator[Any]:
        """The rows of one index after another, like `block`.

        Rows are copied one piece at a time. Columns are copied for all pieces at once, because every piece
        reads nearly every line of memory; `most_together` bounds them.
        """
        if self._base is not None:
            yield from self._base.pieces([self._index[rows] for rows in index], columns, sparse)
            return
        if self._rowwise:
            yield from (self._take(rows, columns) for rows in index)
            return
        if self._sparse is not None:
            for rows in index:
                part = self._sparse[rows] if columns is None else self._sparse[rows][:, columns]
                yield part if sparse else part.toarray()
            return
        together = self._gather(np.concatenate(index), columns)
        cuts = np.cumsum([0, *map(len, index)]).tolist()
        yield from (together[start:stop] for start, stop in itertools.pairwise(cuts))

    def _take(self, rows: AnyArray, columns: AnyArray | None) -> AnyArray:
        """Rows of an array that lies in rows."""
        assert self._array is not None
        if columns is not None:
            return self._array[rows[:, None], columns]
        out = scratch.array("block", len(rows), self.width) if self._array.dtype == np.float64 else None
        return np.take(self._array, rows, axis=0, out=out, mode="clip")

    def _gather(self, rows: AnyArray | slice, columns: AnyArray | None) -> AnyArray:
        """Rows of a table that lies in columns."""
        if self._array is not None and columns is None and not isinstance(rows, slice):
            turned = self._array.T
            if turned.flags.c_contiguous and turned.dtype == np.float64:
                return np.take(turned, rows, axis=1, out=scratch.array("block", self.width, len(rows)), mode="clip").T
        chosen = self._columns if self._array is None else list(self._array.T)
        assert chosen is not None
        if columns is not None:
            chosen = [chosen[j] for j in columns]
        size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        key = b"" if columns is None else np.asarray(columns).tobytes()
        if key not in self._common:
            self._common[key] = _common_kind(chosen), _runs(chosen)
        kind, runs = self._common[key]
        shape = len(chosen), size
        block = scratch.array("block", *shape) if kind == np.float64 else np.empty(shape, dtype=kind)
        if isinstance(rows, slice) and size >= LONG:
            for begin, end, together in runs:  # few and long copies: threads wait for one another between short ones
                block[begin:end] = together[:, rows]
            return block.T
        for place, column in zip(block, chosen, strict=True):
            if isinstance(rows, slice) or column.dtype != block.dtype:
                place[...] = column[rows]
            else:
                np.take(column, rows, out=place, mode="clip")
        return block.T

    # -- labels

    def labels(self, columns: Sequence[int]) -> list[Labels]:
        """Columns as labels, numbers too: found once, and kept."""
        if self._base is not None:
            for j, whole in zip(columns, self._base.labels(columns), strict=True):
                if j not in self._labels:
                    self._labels[j] = replace(whole, codes=whole.codes[self._index])
            return [self._labels[j] for j in columns]
        wanted = [j for j in columns if j not in self._labels]
        if wanted and self._array is not None and self._array.dtype.kind in "iu":
            self._labels |= whole_labels(self._array, wanted)
            wanted = [j for j in wanted if j not in self._labels]
        for j, found in zip(wanted, run(wanted, self._find_labels), strict=True):
            self._labels[j] = found
        return [self._labels[j] for j in columns]

    def _find_labels(self, j: int) -> Labels:
        if self._sparse is not None:
            return number_labels(self._sparse[:, [j]].toarray()[:, 0])
        column = self._array[:, j] if self._array is not None else self._columns[j]  # type: ignore[index]
        return number_labels(column) if isinstance(column, np.ndarray) else column.labels(self.names[j], self.start)

    def codes(self, columns: Sequence[int], vocabularies: Sequence[Vocabulary] | None = None) -> Reader:
        """Row blocks (n, d) of codes of labels, by the vocabularies given or the table's own; -1: missing, unknown."""
        labels = self.labels(columns)
        if vocabularies is not None:
            maps = [mine.translated(other) for mine, other in zip(labels, vocabularies, strict=True)]

        def read(start: int, stop: int) -> AnyArray:
            block = np.empty((len(columns), stop - start), dtype=np.intp)
            for i, (place, mine) in enumerate(zip(block, labels, strict=True)):
                if vocabularies is None:
                    place[...] = mine.part(start, stop)
                else:
                    np.take(maps[i], mine.part(start, stop), mode="wrap", out=place)
            return block.T

        return read

    def unseen(self, column: int, vocabulary: Vocabulary) -> tuple[int, Any] | None:
        """The first row whose label is not in a vocabulary, and the label; None where there is none."""
        (mine,) = self.labels([column])
        strange = mine.translated(vocabulary) < 0
        strange[-1] = False  # a missing cell
        if not strange.any():
            return None
        codes = mine.part(0, self.rows)
        found = strange[codes]
        row = int(np.argmax(found))
        return (self.number(row), mine.vocabulary[codes[row]]) if found[row] else None

    def observed(self, column: int) -> Vocabulary:
        """The labels that occur in a column."""
        (mine,) = self.labels([column])
        if mine.low is None:
            return mine.vocabulary
        used = np.bincount(mine.part(0, self.rows), minlength=len(mine.vocabulary))
        return tuple(word for word, count in zip(mine.vocabulary, used, strict=True) if count)

    # -- looks

    def number(self, row: int) -> int:
        """The number of a row in what the user handed over."""
        return self.start + row if self._base is None else self._base.number(int(self._index[row]))

    def take(self, rows: AnyArray) -> Table:
        """Some rows of the table, read from it when they are needed."""
        part = copy.copy(self)
        part._base, part._index = self._base or self, rows if self._base is None else self._index[rows]
        part.rows, part._labels, part.notes = len(rows), {}, {}
        part.most_rows = min(part.most_rows, self._small)
        return part

    def has_labels(self, j: int) -> bool:
        """Whether a column of labels has any."""
        if self._base is None:
            return self._columns is not None and self._columns[j].first() is not None
        return bool(np.any(self.labels([j])[0].codes >= 0))

    def column(self, j: int) -> Any:
        """A column, whole; of sparse rows the stored cells."""
        if self._base is not None and self._sparse is None:
            return self._base.column(j)[self._index]
        if self._base is not None:
            return self._base._sparse[self._index][:, [j]].data
        if self._sparse is not None:
            return self._sparse[:, [j]].data
        return self._array[:, j] if self._array is not None else self._columns[j]  # type: ignore[index]

    @property
    def stored(self) -> AnyArray:
        """All stored cells of sparse rows."""
        return self._sparse.data if self._base is None else self._base._sparse[self._index].data

    def reordered(self, names: Sequence[str]) -> Table:
        """The same rows with the columns in this order."""
        if list(names) == self.names or self._columns is None:
            return self
        order = [self.names.index(name) for name in names]
        turned = Table(list(names), columns=[self._columns[j] for j in order], kinds=[self.kinds[j] for j in order])
        turned.start = self.start
        return turned


class Beside(Table):
    """Rows of an array of floats, and columns of targets on their right, which are put together block by block."""

    def __init__(self, names: list[str], array: AnyArray, targets: Array) -> None:
        super().__init__(names, array=array)
        self._targets = targets

    def block(self, start: int, stop: int, columns: AnyArray | None = None) -> Any:
        return (
            super().block(start, stop, columns) if self._base is not None else self._join(slice(start, stop), columns)
        )

    def _take(self, rows: AnyArray, columns: AnyArray | None) -> AnyArray:
        return self._join(rows, columns)

    def _join(self, rows: Any, columns: AnyArray | None) -> AnyArray:
        assert self._array is not None
        targets = self._targets[rows]
        block = scratch.array("block", len(targets), self.width)
        block[:, : self._array.shape[1]] = self._array[rows]
        block[:, self._array.shape[1] :] = targets
        return block if columns is None else block[:, columns]

    def column(self, j: int) -> Any:
        if self._base is not None or self._array is None or j < self._array.shape[1]:
            return super().column(j)
        return self._targets[:, j - self._array.shape[1]]


def beside(table: Table, targets: Table) -> Table:
    """A table with the columns of another on its right: targets, whose shape is kept."""
    names = [*table.names, *_new_names(targets.names, table.names)]
    values = [targets.column(j) for j in range(targets.width)]
    array = table._array
    if array is not None and table._rowwise and array.dtype.kind == "f":
        together = values[0][:, None] if len(values) == 1 else np.column_stack(values)
        both: Table = Beside(names, array, together.astype(np.float64, copy=False))
    else:
        columns = [*((table._columns or []) if array is None else array.T), *values]
        both = Table(names, columns=columns, kinds=[*table.kinds, *targets.kinds])
    both.start, both.target_shape = table.start, targets.target_shape
    return both


def _new_names(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Names that nobody has, as near as possible to those wanted."""
    found: list[str] = []
    for wanted in names:
        name = wanted
        while name in taken or name in found:
            name += "'"
        found.append(name)
    return found


def _slice_of(columns: AnyArray) -> Any:
    """An index of neighbours as a slice, which needs no copy."""
    first, last = int(columns[0]), int(columns[-1])
    together = last - first + 1 == len(columns) and np.array_equal(columns, np.arange(first, last + 1))
    return slice(first, last + 1) if together else columns


def _kind(column: AnyArray | None) -> str:
    return "boolean" if column is not None and column.dtype.kind == "b" else "number"


def _runs(columns: Sequence[AnyArray]) -> list[tuple[int, int, AnyArray]]:
    """Neighbouring columns that lie close together, at equal distances, as one array (columns, rows); their places.

    Columns that were made one after another, or cut from one array, lie so. Gaps between them are too small for what is
    copied from them to lie there: NumPy would take both for overlapping.
    """
    places = [column.__array_interface__["data"][0] for column in columns]
    alike = [(column.dtype, column.strides) for column in columns]
    runs: list[tuple[int, int, AnyArray]] = []
    begin = 0
    for end in range(1, len(columns) + 1):
        step = places[begin + 1] - places[begin] if end > begin and begin + 1 < len(columns) else 0
        close = 0 <= abs(step) - columns[begin].nbytes <= GAP
        if close and end < len(columns) and alike[end] == alike[begin] and places[end] - places[end - 1] == step:
            continue
        first = columns[begin]
        shape, strides = (end - begin, len(first)), (step if end - begin > 1 else 0, *first.strides)
        runs.append((begin, end, np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)))
        begin = end
    return runs


def _common_kind(columns: list[AnyArray]) -> Any:
    """One type for all columns; an extended one where integers beyond 2^53 stand beside floats."""
    kind = np.result_type(*{column.dtype for column in columns})
    if kind.kind != "f":
        return kind
    return np.longdouble if any(_beyond_floats(column) for column in columns) else kind


def _beyond_floats(values: AnyArray) -> bool:
    """Whether there are integers that float64 may round."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return False
    return max(abs(int(values.max())), abs(int(values.min()))) > 2**53


def _with_holes(values: AnyArray, missing: AnyArray) -> AnyArray:
    """Whole numbers as floats, NaN where they are missing; as extended ones where float64 may round them."""
    holed = values.astype(np.longdouble if _beyond_floats(values) else np.float64)
    holed[missing] = np.nan
    return holed


def is_frame(X: Any) -> bool:
    """Whether this is a data frame that narwhals reads eagerly."""
    if isinstance(X, np.ndarray | list | tuple) or scipy.sparse.issparse(X):
        return False
    return isinstance(_narwhals(X), nw.DataFrame)


def _narwhals(X: Any) -> Any:
    """A frame as narwhals reads it, anything else as it is."""
    try:
        return nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in getattr(X, "column_names", X.columns)]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Column {listed(twice)} stands more than once in the table.") from None


def whole_frame(X: Any) -> Any:
    """Record batches of Arrow as tables, which narwhals reads; anything else as it is."""
    if type(X).__name__ == "RecordBatch" and type(X).__module__.startswith("pyarrow"):
        import pyarrow as pa

        return pa.Table.from_batches([X])
    return X


def frame_backend(X: Any) -> Any:
    """The library that a frame comes from, or None for anything else."""
    return nw.from_native(X, eager_only=True).implementation if is_frame(X) else None


def column_labels(X: Any) -> list[Any] | None:
    """The names of a frame's columns as they are, where they are no text; else None."""
    if not is_frame(X):
        return None
    names = list(nw.from_native(X, eager_only=True).columns)
    text = [isinstance(name, str) for name in names]
    if any(text) and not all(text):
        raise InputTypeError(
            f"X has columns named {listed(names)}: some names are text and some are not. Feature names are only "
            "supported if all input features have string names. Hint: X.columns = X.columns.astype(str)."
        )
    return None if all(text) else names


def remember_columns(estimator: Any, X: Any) -> list[Any] | None:
    """Let an estimator know how many columns there are, and their names; those that are no text are returned."""
    labels = column_labels(X)
    # scikit-learn knows names of text only
    validate_data(estimator, X if labels is None else np.zeros((1, len(labels))), skip_check_array=True)
    return labels


def check_columns(estimator: Any, X: Any) -> None:
    """Raise for rows with other columns than those that an estimator knows."""
    labels = column_labels(X)
    given = X if labels is None else np.zeros((1, len(labels)))
    validate_data(estimator, given, reset=False, skip_check_array=True)


def names_column(y: Any) -> bool:
    """Whether y is the name of a column: text, or a single number, which cannot be the labels of rows."""
    return bool(np.isscalar(y))


def split_target(X: Any, y: Any) -> tuple[Any, Any]:
    """Where X is a frame and y the name of one of its columns: the other columns, and that one."""
    if not names_column(y):
        return X, y
    if not is_frame(X):
        raise InputError(
            f"y={y!r} names a column, but X is no frame with columns of that kind: give the labels. y should be a 1d "
            "array, one label for each row."
        )
    frame = nw.from_native(X, eager_only=True)
    if y not in frame.columns:
        raise InputError(f"y={y!r} is not a column of X: {listed(frame.columns)}.")
    others = [name for name in frame.columns if name != y]
    return frame.select(nw.col(*others)).to_native(), frame.get_column(y).to_native()


def names_columns(y: Any) -> bool:
    """Whether y is the name of a column, or a list of names, which are text."""
    return names_column(y) or (isinstance(y, list | tuple) and bool(y) and all(isinstance(name, str) for name in y))


def split_targets(X: Any, y: Any) -> tuple[Any, Any]:
    """Where X is a frame and y names one of its columns, or several: the other columns, and those."""
    if not names_columns(y) or names_column(y):
        return split_target(X, y)
    frame = nw.from_native(X, eager_only=True) if is_frame(X) else None
    if frame is None or not set(y) <= set(frame.columns) or len(set(y)) < len(y):
        known = "no frame with columns of such names" if frame is None else f"a frame of {listed(frame.columns)}"
        raise InputError(f"y is text, {listed(y)}, which may name columns, each of them once, but X is {known}.")
    return frame.drop(list(y)).to_native(), frame.select(list(y)).to_native()


def read_targets(y: Any, estimator: str, start: int = 0) -> Table:
    """Targets as a table of numbers, NaN where they are missing: y is an array, a series, or has several columns."""
    if y is None:
        raise InputError(f"This {estimator} estimator requires y to be passed, but the target y is None.")
    table, shape = _target_table(y, start)
    columns = [_target_column(table, j, estimator, start) for j in range(table.width)]
    table = Table(table.names, columns=columns)
    table.start, table.target_shape = start, shape
    return table


def _target_table(y: Any, start: int) -> tuple[Table, tuple[int, ...]]:
    """What y holds, and the shape of a row of it."""
    series = y if isinstance(y, np.ndarray | list | tuple) else nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        named = series.alias("y" if series.name is None or not str(series.name) else str(series.name))
        return read_table(named.to_frame().to_native(), start), ()
    if is_frame(y):
        table = read_table(y, start)
        return table, (table.width,)
    if scipy.sparse.issparse(y):
        raise InputTypeError("y is sparse. Hint: y.toarray().")
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


def _target_column(table: Table, j: int, estimator: str, start: int) -> AnyArray:
    """A column of targets, checked."""
    column = table.column(j)
    if table.kinds[j] == "label":
        first = column.first()
        if first is None:
            return np.full(table.rows, np.nan)
        raise InputError(
            f"Column {table.names[j]!r} of y, row {start + first[0]}: {first[1]!r} is not a number. Hint: {estimator} "
            "predicts numbers; GenerativeClassifier predicts labels."
        )
    if column.dtype.kind == "f" and not all_finite(column) and np.isinf(column).any():
        row = int(np.argmax(np.isinf(column)))
        raise InputError(
            f"Column {table.names[j]!r} of y, row {start + row}: {column[row].item()!r} is not a finite number. "
            "Hint: leave out or cap such values."
        )
    return column


def frame_types(X: Any) -> Any:
    """A frame without rows that has the types of another one's columns; None for anything else."""
    if not is_frame(X):
        return None
    none = nw.from_native(X, eager_only=True).head(0).to_native()
    return none.copy() if hasattr(none, "iloc") else none  # of pandas it would keep the rows


def typed(frame: Any, like: Any) -> Any:
    """A frame with the types of another one's columns, where the values fit them."""
    found, kinds = nw.from_native(frame, eager_only=True), nw.from_native(like, eager_only=True)
    changed = [
        series
        for j, name in enumerate(found.columns)
        if (series := _typed(found.get_column(name), kinds.get_column(kinds.columns[j]))) is not None
    ]
    return found.with_columns(*changed).to_native() if changed else frame


def _typed(series: Any, like: Any) -> Any:
    """A column in the type of another; None where its values do not fit it, or have it."""
    kind = like.dtype
    if series.dtype == kind and not hasattr(like.to_native(), "iloc"):
        return None
    if kind.is_integer() or kind == nw.Boolean:
        if not series.dtype.is_numeric():
            return None
        values = series.to_numpy()
        low, high = (0, 1) if kind == nw.Boolean else _integer_range(kind)
        if not np.all((values == np.rint(values)) & (values >= low) & (values <= high)):
            return None
    elif kind.is_numeric() or kind == nw.Object:
        return None
    native = series.to_native()
    if hasattr(native, "iloc"):  # pandas has types of its own
        turned = nw.from_native(native.astype(like.to_native().dtype), series_only=True)
    else:
        turned = series.cast(kind)
    return turned.alias(series.name) if turned.null_count() == series.null_count() else None


def _integer_range(kind: Any) -> tuple[int, int]:
    bounds = np.iinfo(str(kind).lower())
    return int(bounds.min), int(bounds.max)


def to_frame(columns: Sequence[AnyArray], names: Sequence[Any], backend: Any) -> Any:
    """Columns as a frame of the given library."""
    data = {
        str(name): column.tolist() if column.dtype.kind == "O" else np.ascontiguousarray(column)
        for name, column in zip(names, columns, strict=True)
    }
    frame = nw.from_dict(data, backend=backend).to_native()
    if not all(isinstance(name, str) for name in names):
        frame.columns = list(names)
    return frame


def read_table(X: Any, start: int = 0) -> Table:
    """A table from an array, a list of rows, sparse rows, or a frame, whose first row has the number `start`."""
    table = _read_any(X, start)
    table.start = start
    return table


def _read_any(X: Any, start: int) -> Table:
    if is_frame(X):
        return _read_frame(X, start)
    if scipy.sparse.issparse(X):
        return _read_sparse(X)
    if isinstance(X, Iterator | Mapping) or (
        not isinstance(X, np.ndarray | list | tuple) and isinstance(_narwhals(X), nw.LazyFrame)
    ):
        raise InputTypeError(
            f"X is a {type(X).__name__}, not rows in memory: Expected 2D array. Hint: collect a lazy frame first, or "
            "hand over an object with a method chunks()."
        )
    X = _objects(_unmasked(X), "X", start)
    array = check_array(X, dtype=None, ensure_all_finite=False, accept_sparse=False, ensure_min_samples=1)
    names = [f"x{j}" for j in range(array.shape[1])]
    if array.dtype.kind in "OUST":
        read = (_read_objects(array[:, j], names[j], start) for j in range(len(names)))
        columns, kinds = map(list, zip(*read, strict=True))
        if "label" not in kinds:
            return Table(names, array=np.column_stack(columns), kinds=kinds)
        return Table(names, columns=columns, kinds=kinds)
    if array.dtype.kind == "f" and array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise InputTypeError(f"X has values of type {array.dtype}, which are not numbers.")
    return Table(names, array=array)


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
    """A list of rows that has text in it as an array of objects: numbers beside text stay numbers."""
    if isinstance(X, list | tuple) and len(X):
        try:
            if np.asarray(X).dtype.kind in "USO":
                return np.array(X, dtype=object)
        except ValueError as error:
            raise InputError(_ragged(X, name, start) or f"{name} is no table of cells: {error}.") from None
    return X


def _ragged(rows: Sequence[Any], name: str, start: int) -> str | None:
    """Which row has another number of entries than the first, or a cell with several entries, in words."""

    def told(size: int | None) -> str:
        return "is a single value" if size is None else f"has {size} {'entry' if size == 1 else 'entries'}"

    first = _entries(rows[0])
    for i, row in enumerate(rows):
        if (size := _entries(row)) != first:
            return (
                f"{name}, row {start + i} {told(size)}, and row {start} {told(first)}: every row needs one for each "
                "column. Hint: None or NaN for a cell that is missing."
            )
    for i, row in enumerate(rows):
        for j, cell in enumerate([] if first is None else row):
            if (size := _entries(cell)) is not None:
                return (
                    f"{name}, row {start + i}, column {j}: the cell {told(size)}, and needs to be one number or label. "
                    "Hint: a column for each entry."
                )
    return None


def _entries(values: Any) -> int | None:
    """How many entries there are; None for a single value."""
    return len(values) if hasattr(values, "__len__") and not isinstance(values, str | bytes) else None


def _unmasked(values: Any) -> Any:
    """A masked array as a plain one, with NaN where cells are masked."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return values.data
    if _beyond_floats(values.data):
        cells = values.data.astype(object)
        cells[np.ma.getmaskarray(values)] = None
        return cells
    return np.ma.filled(values.astype(np.float64), np.nan)


def _read_objects(column: AnyArray, name: str, start: int) -> tuple[Any, str]:
    """A column of Python objects, and its kind: numbers where all are, else labels."""
    if column.dtype.kind != "O":
        return LabelObjects(column.astype(object)), "label"
    numbers, yes_or_no = np.empty(len(column)), True
    for row, cell in enumerate(column.tolist()):
        if isinstance(cell, str | bytes):
            return LabelObjects(column), "label"
        try:
            numbers[row] = np.nan if cell is None or (not isinstance(cell, float) and is_missing(cell)) else cell
        except (TypeError, ValueError, ArithmeticError) as error:
            shown = repr(cell) if len(repr(cell)) < 100 else f"{repr(cell)[:100]}..."
            text = f"Column {name!r}, row {start + row}: {shown} is not a number, nor text ({error})."
            kind = InputError if isinstance(cell, complex) else InputTypeError
            raise kind(f"{text} Hint: encode such values as numbers first.") from None
        yes_or_no = yes_or_no and (isinstance(cell, bool | np.bool_) or bool(np.isnan(numbers[row])))
    for row in np.flatnonzero(np.abs(numbers) > 2.0**53).tolist():
        if isinstance(column[row], int | np.integer):
            numbers = numbers.astype(np.longdouble, copy=False)  # holds any integer of 64 bits
            numbers[row] = column[row]
    return numbers, "boolean" if yes_or_no and not np.isnan(numbers).all() else "number"


def _read_frame(X: Any, start: int) -> Table:
    frame = nw.from_native(X, eager_only=True)
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):  # 1 and "1" are two names, but one text
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Column {listed(twice)} stands more than once in the table.")
    if not names:
        raise InputError("X has no columns: Found array with 0 feature(s) while a minimum of 1 is required.")
    polars = frame.implementation.is_polars()
    found = frame.to_native().get_columns() if polars else frame.iter_columns()
    columns, kinds = map(list, zip(*((_read_polars if polars else _read_column)(c, start) for c in found), strict=True))
    return Table(names, columns=columns, kinds=kinds)


def _read_polars(column: Any, start: int) -> tuple[Any, str]:
    """A column of Polars: floats without nulls by its own calls, which hundreds of columns would otherwise wait for."""
    if column.dtype.is_float() and not column.null_count():
        return column.to_numpy(), "number"
    return _read_column(nw.from_native(column, series_only=True), start)


def _read_column(column: Any, start: int) -> tuple[Any, str]:
    """A column of a frame, and its kind."""
    kind, name = column.dtype, str(column.name)
    if kind == nw.Unknown:
        values = _unknown_values(column)
        if values is not None:
            return values, _kind(values)
    if kind in (nw.String, nw.Categorical) or isinstance(kind, nw.Enum):
        return LabelSeries(column), "label"
    if kind == nw.Object:
        values = np.asarray(column.to_numpy(), dtype=object)
        return _read_objects(values, name, start)
    if not (kind.is_numeric() or kind == nw.Boolean):
        what = (
            "turn it into numbers (days since a date, the month) or text first"
            if kind.is_temporal()
            else "leave it out, or turn it into numbers or text"
        )
        raise InputError(f"Column {name!r} is of type {kind}, not of numbers or labels. Hint: {what}.")
    holes = column.null_count() > 0
    if isinstance(kind, nw.Decimal) or (holes and not kind.is_integer()):
        column = column.cast(nw.Float64)
    elif holes:  # a cast refuses integers that float64 rounds
        return _with_holes(np.asarray(column.fill_null(0).to_numpy()), column.is_null().to_numpy()), "number"
    values = np.asarray(column.to_numpy())
    values = values.astype(np.float64) if values.dtype.kind not in "biuf" else values
    return values, "boolean" if kind == nw.Boolean else "number"


def _unknown_values(column: Any) -> AnyArray | None:
    """Numbers of a column whose type narwhals has no word for: one without any value, or a library's own numbers."""
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    if not column.implementation.is_pandas():
        return None
    values = np.asarray(column.to_native())
    if values.dtype.kind not in "biuf":
        return None
    return values.astype(np.float64) if values.dtype.itemsize > 8 else values


def weight_values(sample_weight: Any) -> Array:
    """Weights as numbers."""
    try:
        weights = np.asarray(_unmasked(sample_weight))
        return weights.astype(np.float64, casting="unsafe" if weights.dtype.kind == "O" else "same_kind")
    except (TypeError, ValueError):
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
            f"sample_weight, row {start + row}: {weights[row]} is not a weight. Weights must be finite and not "
            "negative."
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not total < 1e300:
        raise InputError("The weights in sample_weight are too large to add up. Divide them by their largest.")
    return weights
