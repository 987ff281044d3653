"""Sums of functions of single values, per class and column: the additive value and its accumulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse

from likely.errors import CellError, InputError
from likely.numerics.arrays import count_codes, has_missing, scratch
from likely.numerics.special import EPS
from likely.statistics.counts import (
    across,
    are_counts,
    are_numbers,
    joint_noise,
    other_values,
    positions,
    remaining,
    repeated,
    unite_classes,
)
from likely.typing import AnyArray, Array, Codes, Index


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of functions of single cells, for each class and column.

    `totals` is (functions, classes, d). `rows` and `weight` are (classes,), or (classes, d) where cells are
    missing: then each column counts the rows in which it was observed. Where these are not all rows, `reference` are
    the sums of all: what an estimate derives from the whole table, it derives from those. `noise` is how far removals
    may have moved the totals by rounding: what is less is nothing.
    """

    classes: AnyArray
    rows: npt.NDArray[np.int64]
    weight: Array
    totals: Array
    reference: Sums | None = None
    noise: Array | None = None

    @classmethod
    def empty(cls, classes: AnyArray, dimension: int, functions: int) -> Self:
        size = len(classes)
        return cls(classes, np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros((functions, size, dimension)))

    def sound(self) -> bool:
        """Whether these can be the sums of any rows."""
        functions, size, d = self.totals.shape
        return (
            len(self.classes) == size
            and are_counts(self.rows, self.weight, (size,), (size, d))
            and are_numbers(self.totals, (functions, size, d))
            and self.reference is None
            and (self.noise is None or are_numbers(self.noise, self.totals.shape))
        )

    @property
    def dimension(self) -> int:
        return int(self.totals.shape[2])

    @property
    def whole(self) -> Sums:
        """The sums of all rows."""
        return self if self.reference is None else self.reference

    @property
    def column_weight(self) -> Array:
        """Weight of the rows in which each column was observed, (classes, d)."""
        return np.broadcast_to(across(self.weight), self.totals.shape[1:])

    def unobserved(self) -> npt.NDArray[np.bool_]:
        """Whether a class has no value in a column, (classes, d)."""
        return np.broadcast_to(across(self.rows == 0), self.totals.shape[1:])

    def leave_one_out(
        self, rows: Any, codes: Codes, weights: Array, functions: Callable[[Array], tuple[Array, ...]], filler: float
    ) -> Self:
        """For each row the sums of its class without it, as a class of its own; all rows are the reference."""
        x = np.asarray(rows, dtype=np.float64)
        missing = np.isnan(x) if has_missing(x) else None
        parts = functions(x if missing is None else np.where(missing, filler, x))
        whole = missing is None and self.rows.ndim == 1
        fewer: Array = weights if whole else weights[:, None] * (np.ones_like(x) if missing is None else ~missing)
        before, mass = (self.rows, self.weight) if whole else (across(self.rows), across(self.weight))
        mine = before[codes] - (fewer > 0.0)
        totals = np.empty((len(parts), *x.shape))
        for total, sums, part in zip(totals, self.totals, parts, strict=True):
            np.take(sums, codes, axis=0, out=total, mode="clip")
            np.subtract(total, across(fewer) * part, out=total)
            rounding = np.take(8.0 * EPS * np.abs(sums), codes, axis=0)
            np.copyto(total, 0.0, where=(np.abs(total) <= rounding) | across(mine <= 0))
        return replace(
            self,
            classes=np.arange(len(x)),
            rows=mine,
            weight=np.where(mine > 0, mass[codes] - fewer, 0.0),
            totals=totals,
            reference=self,
            noise=None,
        )

    def filled(self) -> Self:
        """The same sums with those of all rows where a class has none."""
        empty = self.unobserved()
        if not empty.any():
            return self
        whole = self.whole
        weight, totals = whole.column_weight.sum(axis=0), whole.totals.sum(axis=1)
        return replace(
            self.by_column(),
            rows=np.where(empty, 1, self.by_column().rows),
            weight=np.where(empty, weight, self.column_weight),
            totals=np.where(empty, totals[:, None], self.totals),
        )

    def by_column(self) -> Self:
        """The same sums with rows and weights for each column."""
        if self.rows.ndim == 2:
            return self
        return replace(self, rows=repeated(self.rows, self.dimension), weight=repeated(self.weight, self.dimension))

    def align(self, classes: AnyArray) -> Self:
        """The same sums among more classes."""
        if classes is self.classes:
            return self
        at = positions(classes, self.classes)
        rows, weight = (
            np.zeros((len(classes), *values.shape[1:]), values.dtype) for values in (self.rows, self.weight)
        )
        totals = np.zeros((len(self.totals), len(classes), self.dimension))
        rows[at], weight[at], totals[:, at] = self.rows, self.weight, self.totals
        noise = None
        if self.noise is not None:
            noise = np.zeros_like(totals)
            noise[:, at] = self.noise
        return replace(self, classes=classes, rows=rows, weight=weight, totals=totals, noise=noise)

    def take(self, columns: AnyArray) -> Self:
        """The sums of some columns only."""
        apart = self.rows.ndim == 2
        return replace(
            self,
            rows=self.rows[:, columns] if apart else self.rows,
            weight=self.weight[:, columns] if apart else self.weight,
            totals=self.totals[:, :, columns],
            noise=None if self.noise is None else self.noise[:, :, columns],
        )

    def select(self, which: AnyArray) -> Self:
        """The same sums of some classes only."""
        return replace(
            self,
            classes=self.classes[which],
            rows=self.rows[which],
            weight=self.weight[which],
            totals=self.totals[:, which],
            noise=None if self.noise is None else self.noise[:, which],
        )

    def _pair(self, other: Sums) -> tuple[Self, Sums]:
        if self.totals[:, 0:0].shape != other.totals[:, 0:0].shape:
            raise InputError("Sums of different columns or functions cannot be combined.")
        classes = unite_classes(self.classes, other.classes)
        left, right = self.align(classes), other.align(classes)
        if left.rows.ndim != right.rows.ndim:
            return left.by_column(), right.by_column()
        return left, right

    def __add__(self, other: Sums) -> Self:
        left, right = self._pair(other)
        return replace(
            left,
            rows=left.rows + right.rows,
            weight=left.weight + right.weight,
            totals=left.totals + right.totals,
            noise=joint_noise(left.noise, right.noise),
        )

    def __sub__(self, other: Sums) -> Self:
        left, right = self._pair(other)
        rows, weight = remaining(left.classes, left.rows, right.rows, left.weight, right.weight)
        gone = rows == 0
        totals = left.totals - right.totals
        fresh = np.where(across(right.rows > 0), 8.0 * EPS * np.abs(left.totals), 0.0)
        noise = joint_noise(left.noise, right.noise, fresh)
        assert noise is not None
        slack = 1e-6 * (np.abs(left.totals) + np.abs(right.totals) + left.column_weight) + noise
        wrong = across(gone & (left.rows > 0)) & np.any(np.abs(totals) > slack, axis=0)
        if wrong.any():
            raise other_values(left.classes[wrong.any(axis=1)])
        totals[np.abs(totals) <= noise] = 0.0
        totals = np.where(across(gone), 0.0, totals)
        result = replace(left, rows=rows, weight=np.where(gone, 0.0, weight), totals=totals, noise=noise)
        return result.select(np.any(across(~gone), axis=1))


PIECE = 2**17  # numbers that stay in a core's cache beside their squares
LARGEST_SUM = 1e300  # of a column in one class
LARGE_CELL = 1e280  # no number of smaller ones adds up to that
QUICK_CLASSES = 32  # beyond so many, one product for all classes takes longer than rows class by class


def class_adder(codes: Codes, weights: Array | None, size: int, rowwise: bool) -> Callable[[Array], Array]:
    """From rows (n, d) to their sums by class, (size, d), weighted; gone with the next.

    It is a product with a matrix that has one number for each row. Rows that lie in columns would be copied for that,
    so they are multiplied by all of it, zeros too, while there are few classes.
    """
    n = len(codes)
    if rowwise or size > QUICK_CLASSES:
        sparse = scratch.kept.get((size, n))
        if sparse is None:  # to make one takes as long as to add up a thousand rows
            if len(scratch.kept) > 3:
                scratch.kept.clear()
            place = np.zeros(n, dtype=np.int32), np.arange(n + 1, dtype=np.int32)
            sparse = scratch.kept[size, n] = scipy.sparse.csc_array((np.ones(n), *place), shape=(size, n))
        sparse.indices[:] = codes
        sparse.data[:] = 1.0 if weights is None else weights
        return lambda rows: np.asarray(sparse @ rows)
    chosen = scratch.array("chosen", size, n)
    np.copyto(chosen, codes == np.arange(size, dtype=codes.dtype)[:, None])
    if weights is not None:
        chosen *= weights
    return lambda rows: np.dot(chosen, rows)  # unlike @, it lets other threads run


@dataclass(slots=True, eq=False)
class SumsAccumulator:
    """Sums functions of single cells over one row block after another.

    `functions` takes numbers of any shape and gives `count` arrays of that shape. `check` raises for cells that
    cannot be used; NaN is a missing cell, for which `filler` stands in while it is masked. Blocks are
    arrays, or sparse rows, whose unstored cells are 0.
    """

    classes: AnyArray
    dimension: int
    functions: Callable[[Array], tuple[Array, ...]]
    count: int
    check: Callable[[AnyArray], None]
    filler: float
    _sum: Sums = field(init=False)

    def __post_init__(self) -> None:
        self._sum = Sums.empty(self.classes, self.dimension, self.count)

    @property
    def groups(self) -> Index:
        """Rows of one class at a time are added fastest."""
        return np.arange(len(self.classes))

    @property
    def block_rows(self) -> int:
        return max(2**16 // max(self.dimension, 1), 256)

    def finish(self) -> Sums:
        """The sums of all blocks so far."""
        return self._sum

    def add(self, block: Any, codes: Codes, weights: Array | None = None) -> None:
        """Add rows (n, d) with their class codes and weights (0: absent)."""
        sparse = scipy.sparse.issparse(block)
        if weights is not None and not np.all(weights > 0.0):
            used = np.flatnonzero(weights)
            try:
                self.add(block[used], codes[used], weights[used])
            except CellError as error:
                raise error.at(int(used[error.row]), error.column) from None
            return
        if not len(codes):
            return
        if sparse:
            block = scipy.sparse.csr_array(block)
            check_stored(block, self.check)
        else:
            self.check(block)
        size = len(self.classes)
        rows: AnyArray = count_codes(codes, size)
        weight = rows.astype(np.float64) if weights is None else np.bincount(codes, weights, minlength=size)
        with np.errstate(over="ignore", invalid="ignore"):
            there = self._add_sparse(block, codes, weights) if sparse else self._add_dense(block, codes, weights)
        if _largest(block.data if sparse else block) > LARGE_CELL and not np.all(
            np.abs(self._sum.totals[0]) < LARGEST_SUM
        ):
            self._too_large(block)
        if there is not None:
            rows, weight = there
        if there is not None or self._sum.rows.ndim == 2:
            self._sum = self._sum.by_column()
            rows, weight = across(rows), across(weight)
        np.add(self._sum.rows, rows, out=self._sum.rows)
        np.add(self._sum.weight, weight, out=self._sum.weight)

    @staticmethod
    def _too_large(block: Any) -> None:
        """Raise for the largest cell: the sum of its column has overflowed."""
        cells = np.abs(np.nan_to_num(block.toarray() if scipy.sparse.issparse(block) else block, nan=0.0))
        row, column = np.unravel_index(int(np.argmax(cells)), cells.shape)
        hint = "divide the column by a power of ten"
        raise CellError(int(row), int(column), cells[row, column], "is too large for its column to be added up", hint)

    def _add_dense(self, block: AnyArray, codes: Codes, weights: Array | None) -> tuple[Any, Array] | None:
        """Add the functions of an array's cells; returns rows and weights of each column where cells are missing."""
        size = len(self.classes)
        missing = np.isnan(block) if has_missing(block) else None
        values = np.asarray(block, dtype=np.float64)
        values = values if missing is None else np.where(missing, self.filler, values)
        for j, part in enumerate(self.functions(values)):
            seen = part if missing is None else np.where(missing, 0.0, part)
            self._sum.totals[j] += class_sums(codes, weights, size, seen)
        if missing is None:
            return None
        there = (~missing).astype(np.float64)
        return class_sums(codes, None, size, there).astype(np.int64), class_sums(codes, weights, size, there)

    def _add_sparse(self, block: Any, codes: Codes, weights: Array | None) -> tuple[Any, Array] | None:
        """Add the functions of stored cells, less those of 0, and those of 0 for every row; returns as `_add_dense`."""
        alone = bool(codes.min() == codes.max())
        stored = np.diff(block.indptr)
        if alone:
            place, first, size = block.indices, int(codes[0]), 1
        else:
            owner = np.repeat(codes.astype(np.intp), stored)
            place, first, size = owner * self.dimension + block.indices, 0, len(self.classes)
        d, mine = self.dimension, slice(first, first + size)
        values = np.asarray(block.data, dtype=np.float64)
        missing = np.isnan(values) if has_missing(values) else None
        values = values if missing is None else np.where(missing, self.filler, values)
        share = None if weights is None or (alone and missing is None) else np.repeat(weights, stored)
        weight = np.bincount(codes, weights, minlength=len(self.classes))[mine]
        zeros = self.functions(np.zeros(1))
        for j, part in enumerate(self.functions(values)):
            zero = zeros[j][0]
            more = part - zero if missing is None else np.where(missing, -zero, part - zero)
            if alone:  # as a product, which lets other threads run
                turned = scipy.sparse.csc_array((more, block.indices, block.indptr), shape=block.shape[::-1])
                self._sum.totals[j, first] += turned @ (np.ones(len(codes)) if weights is None else weights)
            else:
                more = more if share is None else more * share
                self._sum.totals[j, mine] += np.bincount(place, more, minlength=size * d).reshape(size, d)
            if zero != 0.0:
                self._sum.totals[j, mine] += weight[:, None] * zero
        if missing is None:
            return None
        there, kept = np.zeros((len(self.classes), d), dtype=np.int64), np.zeros((len(self.classes), d))
        lost = np.bincount(place[missing], minlength=size * d).reshape(size, d)
        missed = lost if share is None else np.bincount(place[missing], share[missing], size * d).reshape(size, d)
        there[mine] = np.bincount(codes, minlength=len(self.classes))[mine, None] - lost
        kept[mine] = np.where(there[mine] > 0, weight[:, None] - missed, 0.0)
        return there, kept


def _largest(cells: AnyArray) -> float:
    """The largest absolute value; integers are never too large."""
    if cells.dtype.kind != "f":
        return 0.0
    return float(max(-np.fmin.reduce(cells, axis=None, initial=0.0), np.fmax.reduce(cells, axis=None, initial=0.0)))


def check_stored(block: Any, check: Callable[[AnyArray], None]) -> None:
    """Check the stored cells of sparse rows."""
    try:
        check(block.data[None])
    except CellError as error:
        row = int(np.searchsorted(block.indptr, error.column, side="right")) - 1
        raise error.at(row, int(block.indices[error.column])) from None


def class_sums(codes: Codes, weights: Array | None, size: int, rows: Array) -> Array:
    """Sums of rows (n, d) by class, (size, d), weighted."""
    if size == 1 or codes.min() == codes.max():
        sums = np.zeros((size, rows.shape[1]))
        values = np.ones(len(codes)) if weights is None else weights
        with np.errstate(over="ignore", invalid="ignore"):
            sums[codes[0] if size > 1 else 0] = np.dot(values, rows)
        return sums
    return class_adder(codes, weights, size, rows.flags.c_contiguous)(rows)
