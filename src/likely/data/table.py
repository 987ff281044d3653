"""Tables read in row blocks: columns of numbers (NaN where a value is missing) and categorical columns.

A table is never copied whole.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
import scipy.sparse

from likely.data.categories import NARROW, Categories, column_ranges, integer_categories, number_categories
from likely.errors import CellError, InputError, InputTypeError
from likely.numerics.arrays import check_limits, has_missing, within_limits
from likely.numerics.threads import run
from likely.statistics.documents import Documents
from likely.typing import AnyArray, Array, Vocabulary

Reader = Callable[[int, int], Any]
# What to do with a column of text where numbers are needed; {column} is its name.
ENCODE = (
    "Encode the column as numbers (OneHotEncoder), drop it, or use GenerativeClassifier or NaiveBayes, which model it "
    "by families={{column}: Categorical()}, or Text() if it has documents."
)
DECLARE = "Pass families={{column}: Categorical()}, or Text() if it has documents; None ignores the column."
FITTED = "The model was fitted to numbers in this column: correct the value, or replace it by a missing one (None)."
FITTED_COMPLETE = "The model was fitted to numbers in this column: correct the value, or drop the row."


@dataclass(frozen=True, slots=True)
class UnseenValues:
    """Values of a column that are not in a vocabulary, and the most frequent of them."""

    values: int  # of the column that are not missing
    unseen: int
    value: Any = None
    row: int = 0  # the first row with it
    count: int = 0


class Table:
    """Rows of typed columns: one array, sparse rows, or one array or series for each column.

    `kinds` has for each column "number", "boolean" or, where it is categorical, "category".
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
        self.is_frame = False  # whether the rows came as a data frame, whose columns have names
        self.start = 0  # the number of the first row, where the table is a chunk of a source
        self.remedy = ENCODE  # for columns of text where numbers are needed
        self.target_shape: tuple[int, ...] = (0,)  # of the targets of a row, which are the last columns; () for one
        self.reading: Any = None  # by which the columns were read from those of the input: see `data/reading.py`
        self._array, self._columns, self._sparse = array, columns, sparse
        self._base: Table | None
        self._index: Any
        self.rows = len(array) if array is not None else sparse.shape[0] if sparse is not None else len(columns or [[]])
        if columns is not None:
            self.rows = len(columns[0]) if columns else 0
        if not self.rows:
            raise InputError("X has no rows: Found array with 0 sample(s) while a minimum of 1 is required.")
        self.width, self.is_sparse = len(names), sparse is not None
        self.kinds = kinds or [kind_of(array)] * self.width
        self._base, self._index = None, None  # the table that this one has some rows of, and their numbers
        self._categories: dict[int, Categories] = {}
        self._maps: dict[tuple[int, int], tuple[Vocabulary, AnyArray]] = {}
        self.cache: dict[Any, Any] = {}  # column profiles and the like, found once
        self._common: dict[bytes, Any] = {}
        self.is_rowwise = array is not None and abs(array.strides[1]) <= abs(array.strides[0])
        # A block of float64 rows is a view; any other is put together, turned or widened.
        self.has_views = self.is_rowwise and array is not None and array.dtype == np.float64

    # -- numbers

    def block(self, start: int, stop: int, columns: AnyArray | None = None) -> Any:
        """Rows start to stop, (n, d), of all or some columns, in their types; sparse rows stay sparse."""
        if self._base is not None:
            return next(self.pieces([np.arange(start, stop)], columns, sparse=True))
        if self._sparse is not None:
            part = self._sparse_rows(start, stop)
            return part if columns is None else part[:, columns]
        if self._array is not None:
            return self._array[start:stop] if columns is None else self._array[start:stop, _slice_of(columns)]
        return self._gather(slice(start, stop), columns)

    def numbers(self, columns: AnyArray | None, sparse: bool, checked: bool = True) -> Reader:
        """A reader of row blocks of columns of numbers; sparse rows become dense unless `sparse` is true.

        It raises for numbers that are infinite or beyond 1e140, unless the caller checks those of rows that count.
        """
        if columns is not None and len(columns) == self.width and np.array_equal(columns, np.arange(self.width)):
            columns = None
        empty: list[int] = []
        for j in (range(self.width) if columns is None else columns.tolist()) if "category" in self.kinds else ():
            if self.kinds[j] == "category":
                first = self._columns[j].first()  # type: ignore[index]
                if first is not None:
                    raise self.not_numbers(j, first)
                empty.append(j)
        table = self._as_missing(empty) if empty else self

        def read(start: int, stop: int) -> Any:
            block = table.block(start, stop, columns)
            if checked:
                self.check_limits(block, columns, range(start, stop))
            return block if self._sparse is None or sparse else block.toarray()

        return read

    def _as_missing(self, empty: Sequence[int]) -> Table:
        """The same rows, in which these columns of text, whose values are all missing, are columns of numbers."""
        same = copy.copy(self)
        if self._base is not None:
            same._base = self._base._as_missing(empty)
        elif self._columns is not None:
            same._columns = list(self._columns)
            for j in empty:
                same._columns[j] = np.full(self.rows, np.nan)
        return same

    def check_limits(
        self, block: Any, columns: AnyArray | None, rows: Sequence[int] | AnyArray, weights: Array | None = None
    ) -> None:
        """Raise for the first number of a block of these rows that is infinite or beyond 1e140, if its row counts."""
        values = block.data if scipy.sparse.issparse(block) else block
        if not isinstance(values, np.ndarray) or within_limits(values):
            return
        with self.named_cells(columns, rows):
            check_limits(block.toarray() if scipy.sparse.issparse(block) else block, weights)

    @contextmanager
    def named_cells(self, columns: AnyArray | None, rows: Sequence[int] | AnyArray) -> Iterator[None]:
        """Errors about a cell of these columns and rows, with the column's name and the row's number."""
        try:
            yield
        except CellError as error:
            if error.name is not None:  # it is complete
                raise
            column = error.column if columns is None else int(columns[error.column])
            raise error.at(self.number(int(rows[error.row])), column, self.names[column]) from None

    def not_numbers(self, j: int, first: tuple[int, Any], remedy: str | None = None) -> InputError:
        """The error about a column of text where numbers are needed, by its first value."""
        values = f"X[{self.names[j]!r}]" if self.is_frame else f"X[:, {j}]"
        value = first[1].item() if isinstance(first[1], np.generic) else first[1]
        cell = f"Column {self.names[j]!r}, row {self.start + first[0]}: {value!r}"
        if isinstance(value, int | float):
            return InputError(f"{cell} is a category, by the type of the column. Convert it: {values}.astype(float).")
        fix = (self.remedy if remedy is None else remedy).replace("{column}", repr(self.names[j]))
        return InputError(stored_as_text(cell, self.names[j], value, values) or f"{cell} is not a number. {fix}")

    def _sparse_rows(self, start: int, stop: int) -> Any:
        """Sparse rows that share their values with the table: a slice would copy them."""
        bounds = self._sparse.indptr[start : stop + 1]
        cells = slice(int(bounds[0]), int(bounds[-1]))
        part = scipy.sparse.csr_array((stop - start, self.width), dtype=self._sparse.dtype)
        part.data, part.indices, part.indptr = self._sparse.data[cells], self._sparse.indices[cells], bounds - bounds[0]
        return part

    @property
    def stored_per_row(self) -> int:
        """The mean number of stored values of a sparse row; 0 where rows are dense."""
        return 0 if self._sparse is None else int(self._sparse.nnz // self.rows) + 1

    def cells(self, columns: int, sparse: bool) -> int:
        """About how many numbers a row of some columns takes; four for each stored value where rows stay sparse."""
        return 4 * self.stored_per_row if sparse and self._sparse is not None else columns

    def pieces(self, index: Sequence[AnyArray], columns: AnyArray | None = None, sparse: bool = False) -> Iterator[Any]:
        """Blocks of rows with given numbers, one after another, like `block`.

        Row-wise arrays are copied one piece at a time. Columns are copied for all pieces at once, because every piece
        reads nearly every cache line; `row_blocks` bounds how many rows these have.
        """
        if self._base is not None:
            yield from self._base.pieces([self._index[rows] for rows in index], columns, sparse)
            return
        if self.is_rowwise:
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
        """Rows of a row-wise array."""
        assert self._array is not None
        if columns is not None:
            return self._array[rows[:, None], columns]
        return np.take(self._array, rows, axis=0, mode="clip")

    def _gather(self, rows: AnyArray | slice, columns: AnyArray | None) -> AnyArray:
        """Rows of a table that is stored by columns."""
        if self._array is not None and columns is None and not isinstance(rows, slice):
            turned = self._array.T
            if turned.flags.c_contiguous and turned.dtype == np.float64:
                return np.take(turned, rows, axis=1, mode="clip").T
        chosen = self._columns if self._array is None else list(self._array.T)
        assert chosen is not None
        if columns is not None:
            chosen = list(map(chosen.__getitem__, columns))
        size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        key = b"" if columns is None else np.asarray(columns).tobytes()
        if key not in self._common:
            self._common[key] = _common_kind(chosen)
        kind = self._common[key]
        block = np.empty((len(chosen), size), dtype=kind)
        for place, column in zip(block, chosen, strict=True):
            if isinstance(rows, slice) or column.dtype != block.dtype:
                place[...] = column[rows]
            else:
                np.take(column, rows, out=place, mode="clip")
        return block.T

    # -- labels

    def categories(self, columns: Sequence[int]) -> list[Categories]:
        """Columns as categories with codes, numbers too; found once."""
        if self._base is not None:
            for j, whole in zip(columns, self._base.categories(columns), strict=True):
                if j not in self._categories:
                    self._categories[j] = replace(whole, codes=whole.codes[self._index])
            return [self._categories[j] for j in columns]
        wanted = sorted({*columns} - self._categories.keys())
        if wanted and self._array is not None and self._array.dtype.kind in "iu":
            lows, highs = self._ranges
            for j in wanted:
                if highs[j] - lows[j] < NARROW:
                    self._categories[j] = integer_categories(self._array[:, j], lows[j], highs[j])
            wanted = sorted({*columns} - self._categories.keys())
        if wanted:
            self._categories |= zip(wanted, run(wanted, self._find_categories), strict=True)
        return list(map(self._categories.__getitem__, columns))

    @cached_property
    def _ranges(self) -> tuple[list[int], list[int]]:
        """The least and the largest number of each column of an array of integers."""
        assert self._array is not None
        return column_ranges(self._array)

    def _find_categories(self, j: int) -> Categories:
        if self._sparse is not None:
            return number_categories(self._sparse[:, [j]].toarray()[:, 0])
        column = self._array[:, j] if self._array is not None else self._columns[j]  # type: ignore[index]
        return (
            number_categories(column)
            if isinstance(column, np.ndarray)
            else column.categories(self.names[j], self.start)
        )

    def codes(self, columns: Sequence[int], vocabularies: Sequence[Vocabulary] | None = None) -> Reader:
        """A reader of row blocks (n, d) of category codes, in the vocabularies given; -1: missing or unseen."""
        labels = self.categories(columns)
        if vocabularies is not None:
            maps = [self._codes_in(j, words) for j, words in zip(columns, vocabularies, strict=True)]

        def read(start: int, stop: int) -> AnyArray:
            block = np.empty((len(columns), stop - start), dtype=np.intp)
            for i, (place, mine) in enumerate(zip(block, labels, strict=True)):
                if vocabularies is None:
                    place[...] = mine.part(start, stop)
                else:
                    np.take(maps[i], mine.part(start, stop), mode="wrap", out=place)
            return block.T

        return read

    def documents(self, column: int) -> Reader:
        """A reader of row blocks of the documents of a column; missing ones are empty."""
        if self.kinds[column] != "category":
            numbers = self.numbers(np.array([column]), sparse=False)(0, self.rows)[:, 0]
            present = np.flatnonzero(~np.isnan(numbers))
            if len(present):
                raise self._not_text(int(present[0]), column, numbers[present[0]])
            nothing = np.array([""], dtype=object)
            return lambda start, stop: Documents(nothing, np.zeros(stop - start, dtype=np.intp), {})
        (mine,) = self.categories([column])
        words = np.empty(len(mine.vocabulary) + 1, dtype=object)  # the last one is that of missing values
        words[:-1], words[-1] = mine.vocabulary, ""
        other = np.array([not isinstance(word, str) for word in words])
        if other.any():
            codes = mine.part(0, self.rows)
            wrong = np.flatnonzero(other[codes])
            if len(wrong):
                raise self._not_text(int(wrong[0]), column, words[codes[wrong[0]]])
        cache = (self._base or self).cache.setdefault(("documents", column), {})
        return lambda start, stop: Documents(words, mine.part(start, stop).astype(np.intp), cache)

    def _not_text(self, row: int, column: int, value: Any) -> InputTypeError:
        shown = repr(value)
        return InputTypeError(
            f"Column {self.names[column]!r}, row {self.number(row)}: "
            f"{shown if len(shown) <= 40 else f'{shown[:37]}...'} is of type {type(value).__name__}, and not text. "
            f"{'Decode bytes' if isinstance(value, bytes | bytearray) else 'Pass strings'}, for example "
            f"{'value.decode()' if isinstance(value, bytes | bytearray) else 'str(value)'}."
        )

    def _codes_in(self, column: int, vocabulary: Vocabulary) -> AnyArray:
        """For every code of a column its code in a vocabulary, -1 where it is not there; found once."""
        maps, key = self.whole._maps, (column, id(vocabulary))
        if key not in maps:  # the vocabulary is kept, so that no other one can have its id
            maps[key] = vocabulary, self.categories([column])[0].translated(vocabulary)
        return maps[key][1]

    def has_unseen(self, column: int, vocabulary: Vocabulary) -> bool:
        """Whether a column may have categories that are not in a vocabulary: `unseen_values` counts them."""
        return bool((self._codes_in(column, vocabulary)[:-1] < 0).any())

    def unseen(self, column: int, vocabulary: Vocabulary) -> tuple[int, Any] | None:
        """The first row with a category that is not in a vocabulary, and the category; None if there is none."""
        if not self.has_unseen(column, vocabulary):
            return None
        (mine,) = self.categories([column])
        unseen = self._codes_in(column, vocabulary) < 0
        unseen[-1] = False  # a missing value
        codes = mine.part(0, self.rows)
        found = unseen[codes]
        row = int(np.argmax(found))
        return (self.number(row), mine.vocabulary[codes[row]]) if found[row] else None

    def present_values(self, column: int) -> int:
        """The number of values of a categorical column that are not missing."""
        (mine,) = self.categories([column])
        return self.rows if mine.low is not None else int(np.count_nonzero(mine.codes >= 0))

    def unseen_values(self, column: int, vocabulary: Vocabulary) -> UnseenValues:
        """How many values of a column are not in a vocabulary, and the most frequent of them."""
        (mine,) = self.categories([column])
        codes = mine.part(0, self.rows)
        counts = np.bincount(codes[codes >= 0], minlength=len(mine.vocabulary))
        unseen = np.where(self._codes_in(column, vocabulary)[:-1] < 0, counts, 0)
        if not unseen.any():
            return UnseenValues(int(counts.sum()), 0)
        most = int(np.argmax(unseen))
        row = self.number(int(np.argmax(codes == most)))
        return UnseenValues(int(counts.sum()), int(unseen.sum()), mine.vocabulary[most], row, int(unseen[most]))

    def observed(self, column: int) -> Vocabulary:
        """The categories that occur in a column."""
        (mine,) = self.categories([column])
        if mine.low is None:
            return mine.vocabulary
        used = np.bincount(mine.part(0, self.rows), minlength=len(mine.vocabulary))
        return tuple(word for word, count in zip(mine.vocabulary, used, strict=True) if count)

    # -- rows and columns

    def number(self, row: int) -> int:
        """The number of a row in the X of the user."""
        return self.start + row if self._base is None else self._base.number(int(self._index[row]))

    @property
    def numbers_of_rows(self) -> AnyArray:
        """The number of each row in the X of the user."""
        places = np.arange(self.rows) if self._base is None else np.asarray(self._index)
        return (self if self._base is None else self._base).start + places

    def take(self, rows: AnyArray) -> Table:
        """Some rows of the table, which are read from it when needed."""
        part = copy.copy(self)
        part._base, part._index = self._base or self, rows if self._base is None else self._index[rows]
        part.rows, part._categories, part.cache = len(rows), {}, {}
        part.has_views = False
        return part

    @property
    def whole(self) -> Table:
        """The table that this one has some rows of."""
        return self._base or self

    @staticmethod
    def joined(parts: Sequence[Table]) -> Table:
        """Rows of several parts of one table."""
        return parts[0].whole.take(np.concatenate([part._index for part in parts]))

    def has_categories(self, j: int) -> bool:
        """Whether a categorical column has any value that is not missing."""
        if self._base is None:
            return self._columns is not None and self._columns[j].first() is not None
        return bool(np.any(self.categories([j])[0].codes >= 0))

    def column(self, j: int) -> Any:
        """A whole column; of sparse rows the stored values."""
        if self._base is not None and self._sparse is None:
            return self._base.column(j)[self._index]
        if self._base is not None:
            return self._base._sparse[self._index][:, [j]].data
        if self._sparse is not None:
            return self._sparse[:, [j]].data
        return self._array[:, j] if self._array is not None else self._columns[j]  # type: ignore[index]

    def may_have_missing(self) -> bool:
        """Whether a column may have missing values: False where an array of all columns is known to have none."""
        if self._array is None or self._base is not None or self._array.shape[1] != self.width:
            return True
        if "missing cells" not in self.cache:
            self.cache["missing cells"] = has_missing(self._array)
        return bool(self.cache["missing cells"])

    def columns_with_missing(self) -> set[int]:
        """Columns of numbers with missing values; sparse rows have none."""
        array = self._array
        if self.is_sparse or (array is not None and array.shape[1] == self.width and not has_missing(array)):
            return set()
        return {j for j in range(self.width) if self.kinds[j] != "category" and has_missing(self.column(j))}

    def rows_with_missing(self, columns: Sequence[int]) -> AnyArray:
        """Whether each row has a missing value in one of these columns; sparse rows have none."""
        found = np.zeros(self.rows, dtype=bool)
        if self.is_sparse:
            return found
        in_array = 0 if self._array is None else self._array.shape[1]
        array_complete = self._array is not None and not has_missing(self._array)
        for j in columns:
            if self.kinds[j] == "category":
                found |= not self.has_categories(j)  # a column of text without any value is read as missing numbers
            elif not (array_complete and j < in_array):
                column = self.column(j)
                if has_missing(column):
                    found |= np.isnan(column)
        return found

    @property
    def stored(self) -> AnyArray:
        """All stored values of sparse rows."""
        return self._sparse.data if self._base is None else self._base._sparse[self._index].data

    def reordered(self, names: Sequence[str]) -> Table:
        """The same rows of a frame with these columns; all values of columns that it does not have are missing."""
        if list(names) == self.names or self._columns is None:
            return self
        found = {name: (column, kind) for name, column, kind in zip(self.names, self._columns, self.kinds, strict=True)}
        columns, kinds = zip(*(found.get(name, (np.full(self.rows, np.nan), "number")) for name in names), strict=True)
        return self.like(names, list(columns), list(kinds))

    def like(self, names: Sequence[str], columns: list[Any], kinds: list[str], reading: Any = None) -> Table:
        """The same rows with other columns."""
        other = Table(list(names), columns=columns, kinds=kinds)
        other.start, other.is_frame, other.remedy, other.reading = self.start, self.is_frame, self.remedy, reading
        return other


class TableWithTargets(Table):
    """Rows of an array of floats with target columns appended, which are joined block by block."""

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
        block = np.empty((len(targets), self.width))
        block[:, : self._array.shape[1]] = self._array[rows]
        block[:, self._array.shape[1] :] = targets
        return block if columns is None else block[:, columns]

    def column(self, j: int) -> Any:
        if self._base is not None or self._array is None or j < self._array.shape[1]:
            return super().column(j)
        return self._targets[:, j - self._array.shape[1]]


def features_of(table: Table) -> int:
    """The number of columns of a table without the targets, which are the last ones."""
    return table.width - int(np.prod(table.target_shape))


def join_targets(table: Table, targets: Table) -> Table:
    """A table with the columns of targets appended; their shape is kept."""
    names = [*table.names, *_new_names(targets.names, table.names)]
    values = [targets.column(j) for j in range(targets.width)]
    array = table._array
    if array is not None and table.is_rowwise and array.dtype.kind == "f":
        together = values[0][:, None] if len(values) == 1 else np.column_stack(values)
        both: Table = TableWithTargets(names, array, together.astype(np.float64, copy=False))
    else:
        columns = [*((table._columns or []) if array is None else array.T), *values]
        both = Table(names, columns=columns, kinds=[*table.kinds, *targets.kinds])
    both.start, both.target_shape, both.reading = table.start, targets.target_shape, table.reading
    return both


def stored_as_text(cell: str, name: str, value: Any, values: str) -> str | None:
    """The message about a number that is stored as text; None for other values. `cell` says where it is."""
    try:
        float(value if isinstance(value, str) else "")
    except ValueError:
        return None
    return (
        f"{cell} is a number stored as text: the whole column is text, perhaps because some values are not numbers. "
        f"Convert it with {values}.astype(float), or in a scan of CSV files with types={{{name!r}: 'number'}}; both "
        "report values that are not numbers."
    )


def _new_names(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Names that differ from those taken, with primes appended where needed."""
    found: list[str] = []
    for given in names:
        name = given
        while name in taken or name in found:
            name += "'"
        found.append(name)
    return found


def _slice_of(columns: AnyArray) -> Any:
    """An index of adjacent columns as a slice, which needs no copy."""
    first, last = int(columns[0]), int(columns[-1])
    together = last - first + 1 == len(columns) and np.array_equal(columns, np.arange(first, last + 1))
    return slice(first, last + 1) if together else columns


def kind_of(column: AnyArray | None) -> str:
    return "boolean" if column is not None and column.dtype.kind == "b" else "number"


def _common_kind(columns: list[AnyArray]) -> Any:
    """One type for all columns; extended precision where integers beyond 2^53 and floats are mixed."""
    kinds = set(map(attrgetter("dtype"), columns))
    kind = np.result_type(*kinds)
    if kind.kind != "f" or len(kinds) == 1:
        return kind
    return np.longdouble if any(beyond_floats(column) for column in columns) else kind


def beyond_floats(values: AnyArray) -> bool:
    """Whether there are integers that float64 would round."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return False
    return max(abs(int(values.max())), abs(int(values.min()))) > 2**53
