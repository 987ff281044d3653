"""Copies of rows: which rows of a table are equal, and whether equal rows are copies or separate observations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from likely.data.frames import as_narwhals, is_frame
from likely.data.row_hash import scrambled, value_bits
from likely.typing import AnyArray

ROWS_PER_CELL = 5.0  # rows per distinct row, from which on equal rows may be those of a cell
DIFFERING = 0.1  # labels of equal rows differ at least this often, compared with those of any two rows
COLUMNS_AT_A_TIME = 4  # after which rows that are equal to no other one are left out
MULTIPLIERS = scrambled(np.arange(1, COLUMNS_AT_A_TIME + 1, dtype=np.uint64)) | np.uint64(1)  # of columns, odd
MOST_KEPT = 2**16  # distinct rows that are counted exactly


@dataclass(frozen=True, slots=True, eq=False)
class EqualRows:
    """Rows with their labels, of which those with equal features are in one group.

    The labels of equal rows are equal where the rows are copies. Where the columns have few values, rows are equal by
    chance: each combination of values is a cell of many rows, whose labels differ nearly as often as those of any rows.
    """

    groups: AnyArray  # number of the first row that is equal in all features
    distinct: int  # number of groups
    copies: int  # rows that are equal to an earlier one in all features and in the label
    cells: bool  # whether equal rows are taken for separate observations
    same: AnyArray  # number of each row: the same for rows that are equal in features and label

    @classmethod
    def of(cls, groups: AnyArray, codes: AnyArray) -> EqualRows:
        """Rows in these groups with the codes of their classes."""
        sizes = np.bincount(groups)
        sizes = sizes[sizes > 0]
        if len(sizes) == len(codes):
            return cls(groups, len(sizes), 0, False, np.arange(len(codes)))
        pairs = groups.astype(np.int64) * (int(codes.max(initial=0)) + 1) + codes
        _, same, alike = np.unique(pairs, return_inverse=True, return_counts=True)
        return cls(groups, len(sizes), len(codes) - len(alike), are_cells(sizes, alike, codes), same)


def are_cells(by_features: AnyArray, by_label: AnyArray, codes: AnyArray) -> bool:
    """Whether equal rows are separate observations of columns with few values.

    They are if a distinct row occurs five times in the mean, and the labels of two rows with equal features differ at
    least a tenth as often as those of any two rows. `by_features` and `by_label` are the sizes of the groups of rows
    with equal features, and with equal features and label.
    """
    if len(codes) < ROWS_PER_CELL * len(by_features):
        return False
    equal, alike, (every, any_alike) = _pairs(by_features), _pairs(by_label), _all_pairs(codes)
    return (equal - alike) * every > DIFFERING * (every - any_alike) * equal


def _pairs(sizes: AnyArray) -> float:
    sizes = sizes.astype(np.float64)
    return float((sizes * (sizes - 1.0)).sum())


def _all_pairs(codes: AnyArray) -> tuple[float, float]:
    """Pairs of rows, and those of the same class."""
    return float(len(codes)) * (len(codes) - 1.0), _pairs(np.bincount(codes))


def equal_rows(X: Any) -> AnyArray:
    """For each row the number of the first row that is equal to it in all columns. Missing values are equal.

    Columns are read a few at a time, and rows that are equal to no other one in these are not read again.
    """
    if scipy.sparse.issparse(X):
        return _first_equal(_sparse_hashes(scipy.sparse.csr_array(X)))
    count, columns = _columns(X)
    number, left = np.arange(count), np.arange(count)
    hashes = np.zeros(count, dtype=np.uint64)
    for start in range(0, len(columns), COLUMNS_AT_A_TIME):
        for place, marks in enumerate(columns[start : start + COLUMNS_AT_A_TIME]):
            hashes += (marks() if len(left) == count else marks()[left]) * MULTIPLIERS[place]
        hashes = scrambled(hashes)
        order = np.argsort(hashes)
        equal = np.flatnonzero(np.diff(hashes[order]) == 0)
        if not len(equal):
            return number
        repeated = np.zeros(len(left), dtype=bool)
        repeated[order[equal]] = repeated[order[equal + 1]] = True
        left, hashes = left[repeated], hashes[repeated]
    number[left] = left[_first_equal(hashes)]
    return number


def _first_equal(hashes: AnyArray) -> AnyArray:
    """The place of the first equal number."""
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    return np.asarray(first[place])


def _columns(X: Any) -> tuple[int, list[Callable[[], AnyArray]]]:
    """The number of rows, and for each column a function that returns a pseudo-random number for each value."""
    if is_frame(X):
        frame = as_narwhals(X)
        return len(frame), [partial(_marks_of, frame, j) for j in range(frame.shape[1])]
    array = _array(X)
    array = array.reshape(len(array), -1)
    return len(array), [partial(_marks_of, array, j) for j in range(array.shape[1])]


def _marks_of(rows: Any, j: int) -> AnyArray:
    return _marks(rows[:, j])


def _array(X: Any) -> AnyArray:
    """Rows as an array, of objects where they are not numbers alone."""
    found = np.asarray(X)
    return found if found.dtype.kind in "biuf" else np.array(X, dtype=object)


def _marks(values: Any) -> AnyArray:
    """A pseudo-random number for each value of a column: the same for equal values."""
    array = values if isinstance(values, np.ndarray) else values.to_numpy()
    if array.dtype.kind in "mM":
        return scrambled(array.astype(np.int64).view(np.uint64))
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:  # beyond 2^53 as well
        return scrambled(array.astype(np.uint64, copy=False))
    if array.dtype.kind in "biuf":
        return value_bits(array)
    codes: dict[str, int] = {}
    found = (codes.setdefault(_word(cell), len(codes)) for cell in array.tolist())
    return scrambled(np.fromiter(found, np.uint64, len(array)))


def _word(cell: Any) -> str:
    """A value as text that differs for different values."""
    return cell if type(cell) is str else f"\0{cell!r}"


def _sparse_hashes(rows: Any) -> AnyArray:
    """A pseudo-random number for each sparse row, which depends on the stored values that are not 0."""
    marks = scrambled(np.arange(rows.shape[1], dtype=np.uint64)) | np.uint64(1)
    mixed = scrambled(value_bits(rows.data)) * marks[rows.indices]
    mixed[rows.data == 0] = 0
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])[rows.indptr]
    return scrambled(np.diff(ends))


@dataclass(frozen=True, slots=True, eq=False)
class DistinctRows:
    """The number of distinct rows of a source, from the hashes of its rows. Those of different batches add up.

    Up to 65,536 distinct hashes are kept, so that the number is exact. Beyond, only those that are multiples of a power
    of 2 are kept, and their number is multiplied by it (adaptive sampling: standard error 0.5%).

    P. Flajolet (1990), On adaptive sampling, Computing 43.
    """

    hashes: AnyArray  # sorted, each once
    level: int = 0  # hashes are multiples of 2^level
    rows: int = 0

    @classmethod
    def of(cls, hashes: AnyArray) -> DistinctRows:
        """Those of some rows."""
        return cls(np.unique(hashes), 0, len(hashes))._reduced()

    def __add__(self, other: DistinctRows) -> DistinctRows:
        level = max(self.level, other.level)
        hashes = np.concatenate([each._at(level) for each in (self, other)])
        return DistinctRows(np.unique(hashes), level, self.rows + other.rows)._reduced()

    @property
    def copies(self) -> int:
        """The number of rows that are equal to an earlier one; an estimate beyond 65,536 distinct rows."""
        return max(self.rows - (len(self.hashes) << self.level), 0)

    @property
    def exact(self) -> bool:
        """Whether the number is not an estimate."""
        return self.level == 0

    def _at(self, level: int) -> AnyArray:
        return self.hashes[self.hashes & np.uint64((1 << level) - 1) == 0]

    def _reduced(self) -> DistinctRows:
        found = self
        while len(found.hashes) > MOST_KEPT:
            found = DistinctRows(found._at(found.level + 1), found.level + 1, found.rows)
        return found
