"""What a user hands over, checked at the door: feature tables, labels, weights.

A table has columns of numbers (NaN where a cell is missing) and columns of labels (text, categories). It
is read in row blocks and never copied whole. Errors name the column and the row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d

from likely.errors import InputError, InputTypeError, listed
from likely.numerics import AnyArray, Array, scratch
from likely.statistics import Vocabulary, label_order
from likely.threads import run

LABEL_CHUNK = 1 << 18
DENSE_COLUMNS = 100_000  # wider sparse rows are not written out
NARROW = 1024  # whole numbers within such a range are their own codes

Reader = Callable[[int, int], Any]


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
        self._array, self._columns, self._sparse = array, columns, sparse
        self.rows = len(array) if array is not None else sparse.shape[0] if sparse is not None else len(columns or [[]])
        if columns is not None:
            self.rows = len(columns[0]) if columns else 0
        if not self.rows:
            raise InputError("X has no rows: Found array with 0 sample(s) while a minimum of 1 is required.")
        self.width = len(names)
        self.kinds = kinds or [_kind(array)] * self.width
        self._labels: dict[int, Labels] = {}
        self._common: dict[bytes, Any] = {}
        # A block of whole float64 rows is a view; any other is put together, turned or widened, and must stay small.
        self._rowwise = array is not None and abs(array.strides[1]) <= abs(array.strides[0])
        whole = self._rowwise and array is not None and array.dtype == np.float64
        small = max(1_500_000 // self.width, 1024)
        self.most_rows = self.rows if whole else small
        self.most_together = self.rows if self._rowwise else small

    @property
    def is_sparse(self) -> bool:
        return self._sparse is not None

    # -- numbers

    def block(self, start: int, stop: int, columns: AnyArray | None = None) -> Any:
        """Rows start to stop, (n, d), of all or some columns, in the types they came in; gone with the next block.

        Sparse rows come as such.
        """
        if self._sparse is not None:
            part = self._sparse[start:stop]
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
                where, what = self._columns[j].first()
                raise InputError(
                    f"Column {self.names[j]!r}, row {where}: {what!r} is not a number. Hint: "
                    f"families={{{self.names[j]!r}: Categorical()}} of GenerativeClassifier or NaiveBayes, or leave "
                    "the column out, or encode it as numbers first."
                )
        if self._sparse is not None and not sparse and self.width > DENSE_COLUMNS:
            raise InputError(
                f"X is sparse with {self.width:,} columns, and this family needs dense rows, which are made for at "
                f"most {DENSE_COLUMNS:,}. Hint: Bernoulli(), Poisson() or Multinomial(), or fewer columns."
            )
        if self._sparse is None or sparse:
            return lambda start, stop: self.block(start, stop, columns)
        return lambda start, stop: self.block(start, stop, columns).toarray()

    @property
    def stored_per_row(self) -> int:
        """Stored cells of a sparse row, on average; 0 where rows are dense."""
        return 0 if self._sparse is None else int(self._sparse.nnz // self.rows) + 1

    @property
    def sparse_rows(self) -> int:
        """How many sparse rows to look at together."""
        return 0 if self._sparse is None else max(2**21 // self.stored_per_row, 256)

    def pieces(self, index: Sequence[AnyArray], columns: AnyArray | None = None, sparse: bool = False) -> Iterator[Any]:
        """The rows of one index after another, like `block`.

        Rows are copied one piece at a time. Columns are copied for all pieces at once, because every piece
        reads nearly every line of memory; `most_together` bounds them.
        """
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
        chosen = self._columns if self._array is None else list(self._array.T)
        assert chosen is not None
        if columns is not None:
            chosen = [chosen[j] for j in columns]
        size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        key = b"" if columns is None else np.asarray(columns).tobytes()
        kind = self._common.get(key)
        if kind is None:
            kind = self._common[key] = _common_kind(chosen)
        shape = len(chosen), size
        block = scratch.array("block", *shape) if kind == np.float64 else np.empty(shape, dtype=kind)
        for place, column in zip(block, chosen, strict=True):
            if isinstance(rows, slice) or column.dtype != block.dtype:
                place[...] = column[rows]
            else:
                np.take(column, rows, out=place, mode="clip")
        return block.T

    # -- labels

    def labels(self, columns: Sequence[int]) -> list[Labels]:
        """Columns as labels, numbers too: found once, and kept."""
        wanted = [j for j in columns if j not in self._labels]
        if wanted and self._array is not None and self._array.dtype.kind in "iu":
            self._labels |= _whole_labels(self._array, wanted)
            wanted = [j for j in wanted if j not in self._labels]
        for j, found in zip(wanted, run(wanted, self._find_labels), strict=True):
            self._labels[j] = found
        return [self._labels[j] for j in columns]

    def _find_labels(self, j: int) -> Labels:
        if self._sparse is not None:
            return _number_labels(self._sparse[:, [j]].toarray()[:, 0])
        column = self._array[:, j] if self._array is not None else self._columns[j]  # type: ignore[index]
        return _number_labels(column) if isinstance(column, np.ndarray) else column.labels(self.names[j])

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
        strange = (mine.translated(vocabulary) < 0)[:-1]
        if not strange.any():
            return None
        codes = mine.part(0, self.rows)
        row = int(np.argmax(np.append(strange, False)[codes]))
        return row, mine.vocabulary[codes[row]]

    # -- looks

    def column(self, j: int) -> AnyArray:
        """A column of numbers, whole; of sparse rows the stored cells."""
        if self._sparse is not None:
            return self._sparse[:, [j]].data
        return self._array[:, j] if self._array is not None else self._columns[j]  # type: ignore[index]

    @property
    def stored(self) -> AnyArray:
        """All stored cells of sparse rows."""
        return self._sparse.data

    def reordered(self, names: Sequence[str]) -> Table:
        """The same rows with the columns in this order."""
        if list(names) == self.names or self._columns is None:
            return self
        order = [self.names.index(name) for name in names]
        return Table(list(names), columns=[self._columns[j] for j in order], kinds=[self.kinds[j] for j in order])


def _slice_of(columns: AnyArray) -> Any:
    """An index of neighbours as a slice, which needs no copy."""
    first, last = int(columns[0]), int(columns[-1])
    together = last - first + 1 == len(columns) and np.array_equal(columns, np.arange(first, last + 1))
    return slice(first, last + 1) if together else columns


def _kind(column: AnyArray | None) -> str:
    return "boolean" if column is not None and column.dtype.kind == "b" else "number"


def _common_kind(columns: list[AnyArray]) -> Any:
    """One type for all columns; an extended one where integers beyond 2^53 stand beside floats."""
    kind = np.result_type(*{column.dtype for column in columns})
    if kind.kind != "f":
        return kind
    wide = (c for c in columns if c.dtype.kind in "iu" and c.dtype.itemsize == 8 and len(c))
    if any(max(abs(int(c.max())), abs(int(c.min()))) > 2**53 for c in wide):
        return np.longdouble
    return kind


# -- labels of columns


@dataclass(frozen=True, slots=True, eq=False)
class LabelSeries:
    """A column of text or categories as its library holds it."""

    series: nw.Series[Any]

    def __len__(self) -> int:
        return len(self.series)

    def first(self) -> tuple[int, Any]:
        """The first label, and its row."""
        row = int(np.argmin(self.series.is_null().to_numpy()))
        return row, self.series[row]

    def labels(self, name: str) -> Labels:
        return _arrow_labels(self.series.to_arrow())


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

    def labels(self, name: str) -> Labels:
        import pyarrow as pa

        try:
            text = pa.array(self.values, type=pa.large_string(), from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return _object_labels(self.values, name)
        return _arrow_labels(text)


def _arrow_labels(column: Any) -> Labels:
    """Labels of an Arrow column of text or of a dictionary; categories without rows are left out."""
    import pyarrow as pa

    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    codes = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return _sorted_labels(codes, column.dictionary.to_pylist())


def _sorted_labels(codes: AnyArray, found: Sequence[Any]) -> Labels:
    """Labels in an order of their own, whatever codes they came with; what has no rows is left out."""
    used = np.zeros(len(found) + 1, dtype=bool)
    used[codes] = True
    merged: dict[Any, list[int]] = {}
    for code, label in enumerate(found):
        if used[code] and not _is_missing(label):
            merged.setdefault(label, []).append(code)
    vocabulary = tuple(sorted(merged, key=label_order))
    place = np.full(len(found) + 1, -1, dtype=np.int32)
    for new, label in enumerate(vocabulary):
        place[merged[label]] = new
    return Labels(_narrow(np.take(place, codes, mode="wrap"), len(vocabulary)), vocabulary)


def _narrow(codes: AnyArray, size: int) -> AnyArray:
    return codes.astype(np.int8 if size < 2**7 else np.int16 if size < 2**15 else np.int32, copy=False)


def _whole_labels(array: AnyArray, columns: Sequence[int]) -> dict[int, Labels]:
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


def _number_labels(values: AnyArray) -> Labels:
    """Labels of a column of numbers."""
    missing = np.isnan(values) if values.dtype.kind == "f" else None
    if missing is not None and missing.any():
        kept = np.flatnonzero(~missing)
        everywhere = np.full(len(values), -1, dtype=np.int32)
        if not len(kept):
            return Labels(_narrow(everywhere, 0), ())
        part = _number_labels(values[kept])
        everywhere[kept] = part.codes
        return Labels(_narrow(everywhere, len(part.vocabulary)), part.vocabulary)
    whole = values.dtype.kind in "biu" or bool(np.all(np.isfinite(values)) and np.all(values == np.floor(values)))
    distinct, codes = _encode_integers(values) if whole else np.unique(values, return_inverse=True)
    return Labels(_narrow(codes, len(distinct)), tuple(distinct.tolist()))


def _object_labels(values: AnyArray, name: str) -> Labels:
    """Labels of Python objects, compared as what they are: 1 and "1" differ."""
    place: dict[Any, int] = {}
    codes = np.empty(len(values), dtype=np.int32)
    for row, value in enumerate(values.tolist()):
        try:
            codes[row] = -1 if _is_missing(value) else place.setdefault(value, len(place))
        except TypeError:
            raise InputTypeError(
                f"Column {name!r}, row {row}: {value!r} is no label: "
                "argument must be a string or a number. Hint: use text or numbers."
            ) from None
    return _sorted_labels(codes, list(place))


# -- reading


def is_frame(X: Any) -> bool:
    """Whether this is a data frame that narwhals reads eagerly."""
    if isinstance(X, np.ndarray | list | tuple) or scipy.sparse.issparse(X):
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


def to_frame(columns: Sequence[AnyArray], names: Sequence[str], backend: Any) -> Any:
    """Columns as a frame of the given library."""
    data = {
        name: column.tolist() if column.dtype.kind == "O" else np.ascontiguousarray(column)
        for name, column in zip(names, columns, strict=True)
    }
    return nw.from_dict(data, backend=backend).to_native()


def read_table(X: Any) -> Table:
    """A table from an array, a list of rows, sparse rows, or a frame."""
    if is_frame(X):
        return _read_frame(X)
    if scipy.sparse.issparse(X):
        return _read_sparse(X)
    X = _unmasked(X)
    array = check_array(X, dtype=None, ensure_all_finite=False, accept_sparse=False, ensure_min_samples=1)
    names = [f"x{j}" for j in range(array.shape[1])]
    if array.dtype.kind in "OUST":
        columns, kinds = map(list, zip(*(_read_objects(array[:, j], names[j]) for j in range(len(names))), strict=True))
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
        rows = rows.copy() if rows is X else rows
        rows.sum_duplicates()
    return Table([f"x{j}" for j in range(rows.shape[1])], sparse=rows)


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
        return not isinstance(value, np.ndarray | list | tuple | dict)  # NA has no truth value


def _read_objects(column: AnyArray, name: str) -> tuple[Any, str]:
    """A column of Python objects, and its kind: numbers where all are, else labels."""
    if column.dtype.kind != "O":
        return LabelObjects(column.astype(object)), "label"
    numbers, yes_or_no = np.empty(len(column)), True
    for row, cell in enumerate(column.tolist()):
        if isinstance(cell, str | bytes):
            return LabelObjects(column), "label"
        try:
            numbers[row] = np.nan if cell is None or (not isinstance(cell, float) and _is_missing(cell)) else cell
        except (TypeError, ValueError) as error:
            text = f"Column {name!r}, row {row}: {cell!r} is not a number, nor text ({error})."
            kind = InputError if isinstance(cell, complex) else InputTypeError
            raise kind(f"{text} Hint: encode such values as numbers first.") from None
        yes_or_no = yes_or_no and (isinstance(cell, bool | np.bool_) or bool(np.isnan(numbers[row])))
    return numbers, "boolean" if yes_or_no and not np.isnan(numbers).all() else "number"


def _read_frame(X: Any) -> Table:
    frame = nw.from_native(X, eager_only=True)
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Column {listed(twice)} stands more than once in the table.")
    if not names:
        raise InputError("X has no columns: Found array with 0 feature(s) while a minimum of 1 is required.")
    columns, kinds = map(list, zip(*(_read_column(column) for column in frame.iter_columns()), strict=True))
    return Table(names, columns=columns, kinds=kinds)


def _read_column(column: Any) -> tuple[Any, str]:
    """A column of a frame, and its kind."""
    kind, name = column.dtype, str(column.name)
    if kind in (nw.String, nw.Categorical) or isinstance(kind, nw.Enum):
        return LabelSeries(column), "label"
    if kind == nw.Object:
        values = np.asarray(column.to_numpy(), dtype=object)
        return _read_objects(values, name)
    if not (kind.is_numeric() or kind == nw.Boolean):
        what = (
            "turn it into numbers (days since a date, the month) or text first"
            if kind.is_temporal()
            else "leave it out, or turn it into numbers or text"
        )
        raise InputError(f"Column {name!r} is of type {kind}, not of numbers or labels. Hint: {what}.")
    # Polars's own calls take a tenth of the time, which counts where there are hundreds of columns.
    quick = column.to_native() if column.implementation.is_polars() else column
    if isinstance(kind, nw.Decimal) or quick.null_count() > 0:
        quick = column.cast(nw.Float64)
    values = np.asarray(quick.to_numpy())
    values = values.astype(np.float64) if values.dtype.kind not in "biuf" else values
    return values, "boolean" if kind == nw.Boolean else "number"


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
