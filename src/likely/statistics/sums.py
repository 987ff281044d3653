"""Sums of functions of single values, per class and column: the additive value and its accumulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse

from likely.errors import CellError, InputError
from likely.numerics.arrays import has_missing
from likely.numerics.shapes import Shape
from likely.statistics.accumulator import RowAccumulator
from likely.statistics.counts import across, are_weighed, of_columns, positions, repeated, spread, unite_classes
from likely.statistics.rounding import combined_noise, different_values_error, remaining_counts, removal_noise
from likely.typing import AnyArray, Array, Codes, Index


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of functions of single values, for each class and column.

    `totals` is (functions, classes, d). `rows` and `weight` are (classes,), or (classes, d) where values are missing:
    then each column counts the rows in which it was observed. `reference` are the sums of all training rows, where
    these sums are of a part of them (leave-one-out): default priors, and which columns vary, are derived from them.
    `noise` bounds the rounding errors that removals have made in the totals: see `likely.statistics.rounding`.
    """

    classes: Annotated[AnyArray, Shape("=classes")]
    rows: Annotated[npt.NDArray[np.int64], Shape("classes", "classes d", ">=0")]
    weight: Annotated[Array, Shape("classes", "classes d", ">=0")]
    totals: Annotated[Array, Shape("functions classes d")]
    reference: Sums | None = None
    noise: Annotated[Array | None, Shape("functions classes d", ">=0")] = None

    @classmethod
    def empty(cls, classes: AnyArray, dimension: int, functions: int) -> Self:
        size = len(classes)
        return cls(classes, np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros((functions, size, dimension)))

    def _valid(self) -> bool:
        return self.reference is None and are_weighed(self.rows, self.weight)

    @property
    def dimension(self) -> int:
        return int(self.totals.shape[2])

    @property
    def whole(self) -> Sums:
        """The sums of all training rows."""
        return self if self.reference is None else self.reference

    @property
    def column_weight(self) -> Array:
        """Weight of the rows in which each column was observed, (classes, d)."""
        return np.broadcast_to(across(self.weight), self.totals.shape[1:])

    def unobserved(self) -> npt.NDArray[np.bool_]:
        """Whether a class has no observed value in a column, (classes, d)."""
        return np.broadcast_to(across(self.rows == 0), self.totals.shape[1:])

    def leave_one_out(
        self, rows: Any, codes: Codes, weights: Array, functions: Callable[[Array], tuple[Array, ...]], filler: float
    ) -> Self:
        """The sums of the class of each row without that row, as one class per row; these sums are their reference."""
        x = np.asarray(rows, dtype=np.float64)
        missing = np.isnan(x) if has_missing(x) else None
        parts = functions(x if missing is None else np.where(missing, filler, x))
        complete = missing is None and self.rows.ndim == 1
        removed: Array = weights if complete else weights[:, None] * (np.ones_like(x) if missing is None else ~missing)
        before, weight = (self.rows, self.weight) if complete else (across(self.rows), across(self.weight))
        remaining = weight[codes] - removed
        left = before[codes] - (removed > 0.0)
        left = np.where((left <= 0) & (remaining > 1e-9 * weight[codes]), 1, left)  # other copies of a weighted row
        totals, gone, taken = np.empty((len(parts), *x.shape)), across(left <= 0), across(removed)
        for total, sums, part, noise in zip(totals, self.totals, parts, removal_noise(self.totals), strict=True):
            np.take(sums, codes, axis=0, out=total, mode="clip")
            with np.errstate(invalid="ignore"):
                np.subtract(total, taken * part, out=total)
            np.copyto(total, 0.0, where=(np.abs(total) <= np.take(noise, codes, axis=0)) | gone)
        return replace(
            self,
            classes=np.arange(len(x)),
            rows=left,
            weight=np.where(left > 0, remaining, 0.0),
            totals=totals,
            reference=self,
            noise=None,
        )

    def filled(self) -> Self:
        """The same sums, with those of all training rows where a class has no observed value in a column."""
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
        """The same sums with further classes, which have no rows."""
        if classes is self.classes:
            return self
        at, size = positions(classes, self.classes), len(classes)
        return replace(
            self,
            classes=classes,
            rows=spread(self.rows, at, size),
            weight=spread(self.weight, at, size),
            totals=spread(self.totals, at, size, axes=(1,)),
            noise=None if self.noise is None else spread(self.noise, at, size, axes=(1,)),
        )

    def take(self, columns: AnyArray) -> Self:
        """The sums of some of the columns."""
        return replace(
            self,
            rows=of_columns(self.rows, columns),
            weight=of_columns(self.weight, columns),
            totals=self.totals[:, :, columns],
            noise=None if self.noise is None else self.noise[:, :, columns],
        )

    def select(self, which: AnyArray) -> Self:
        """The sums of some of the classes."""
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
            noise=combined_noise(left.noise, right.noise),
        )

    def __sub__(self, other: Sums) -> Self:
        left, right = self._pair(other)
        rows, weight = remaining_counts(left.classes, left.rows, right.rows, left.weight, right.weight)
        empty = rows == 0
        totals = left.totals - right.totals
        new_noise = np.where(across(right.rows > 0), removal_noise(left.totals), 0.0)
        noise = combined_noise(left.noise, right.noise, new_noise)
        assert noise is not None
        slack = 1e-6 * (np.abs(left.totals) + np.abs(right.totals) + left.column_weight) + noise
        wrong = across(empty & (left.rows > 0)) & np.any(np.abs(totals) > slack, axis=0)
        if wrong.any():
            raise different_values_error(left.classes[wrong.any(axis=1)])
        totals[np.abs(totals) <= noise] = 0.0
        totals = np.where(across(empty), 0.0, totals)
        result = replace(left, rows=rows, weight=np.where(empty, 0.0, weight), totals=totals, noise=noise)
        return result.select(np.any(across(~empty), axis=1))


QUICK_CLASSES = 32  # with more classes, one dense product for all classes takes longer than a sparse one
FEW_ROWS = 64  # that are added one by one


def class_adder(codes: Codes, weights: Array | None, size: int, rowwise: bool) -> Callable[[Array], Array]:
    """A function from rows (n, d) to their weighted sums by class, (size, d): a product with the class indicators.

    The indicator matrix is sparse, one number per row. A sparse product would copy column-major rows, so with few
    classes those are multiplied by the dense matrix. Few rows are added one by one, which takes less time than making a
    sparse matrix.
    """
    n = len(codes)
    if n <= FEW_ROWS:
        return lambda rows: _added_one_by_one(rows if weights is None else rows * weights[:, None], codes, size)
    if rowwise or size > QUICK_CLASSES:
        data = np.ones(n) if weights is None else weights
        chosen = scipy.sparse.csc_array((data, codes.astype(np.int32), np.arange(n + 1, dtype=np.int32)), (size, n))
        return lambda rows: np.asarray(chosen @ rows)
    chosen = (codes == np.arange(size, dtype=codes.dtype)[:, None]).astype(np.float64)
    if weights is not None:
        chosen *= weights
    return lambda rows: np.dot(chosen, rows)  # unlike @, np.dot releases the GIL here


def _added_one_by_one(rows: Array, codes: Codes, size: int) -> Array:
    sums = np.zeros((size, rows.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):  # callers see sums that are not finite
        np.add.at(sums, codes, rows)
    return sums


@dataclass(slots=True, eq=False)
class SumsAccumulator(RowAccumulator):
    """Sums functions of single values over row blocks.

    `functions` takes numbers of any shape and returns arrays of that shape. `check` raises for values outside
    the support. NaN is a missing value: `filler` replaces it in the arguments of `functions` and the result is masked.
    Blocks are arrays, or sparse rows, whose unstored values are 0.
    """

    classes: AnyArray
    dimension: int
    functions: Callable[[Array], tuple[Array, ...]]
    check: Callable[[AnyArray], None]
    filler: float
    _sum: Sums = field(init=False)

    def __post_init__(self) -> None:
        self._sum = Sums.empty(self.classes, self.dimension, len(self.functions(np.full(1, self.filler))))

    @property
    def groups(self) -> Index:
        """Every class by itself: rows of one class are summed fastest."""
        return np.arange(len(self.classes))

    @property
    def block_rows(self) -> int:
        return max(2**16 // max(self.dimension, 1), 256)

    def finish(self) -> Sums:
        """The sums of all blocks so far."""
        return self._sum

    def _add(self, block: Any, codes: Codes, weights: Array | None) -> None:
        sparse = scipy.sparse.issparse(block)
        if sparse:
            block = scipy.sparse.csr_array(block)
            check_stored(block, self.check)
        else:
            self.check(block)
        size = len(self.classes)
        rows: AnyArray = np.bincount(codes, minlength=size)
        weight = rows.astype(np.float64) if weights is None else np.bincount(codes, weights, minlength=size)
        with np.errstate(over="ignore", invalid="ignore"):
            observed = self._add_sparse(block, codes, weights) if sparse else self._add_dense(block, codes, weights)
        if observed is not None:
            rows, weight = observed
        if observed is not None or self._sum.rows.ndim == 2:
            self._sum = self._sum.by_column()
            rows, weight = across(rows), across(weight)
        np.add(self._sum.rows, rows, out=self._sum.rows)
        np.add(self._sum.weight, weight, out=self._sum.weight)

    def _add_dense(self, block: AnyArray, codes: Codes, weights: Array | None) -> tuple[Any, Array] | None:
        """Add the functions of an array; returns rows and weights of each column where values are missing."""
        size = len(self.classes)
        missing = np.isnan(block) if has_missing(block) else None
        values = np.asarray(block, dtype=np.float64)
        values = values if missing is None else np.where(missing, self.filler, values)
        for j, part in enumerate(self.functions(values)):
            seen = part if missing is None else np.where(missing, 0.0, part)
            self._sum.totals[j] += class_sums(codes, weights, size, seen)
        if missing is None:
            return None
        observed = (~missing).astype(np.float64)
        return class_sums(codes, None, size, observed).astype(np.int64), class_sums(codes, weights, size, observed)

    def _add_sparse(self, block: Any, codes: Codes, weights: Array | None) -> tuple[Any, Array] | None:
        """Add f(0) for every row and f(x) − f(0) for every stored value x; returns the same as `_add_dense`."""
        incomplete, shape = has_missing(block.data), (len(self.classes), self.dimension)
        observed_rows, observed_weight = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        zeros = [float(part[0]) for part in self.functions(np.zeros(1))]
        for k in np.flatnonzero(np.bincount(codes)).tolist():  # blocks have the rows of one class, if labels are known
            members = codes == k
            rows = block if members.all() else block[members]
            mass = np.ones(rows.shape[0]) if weights is None else weights[members]
            values, total = np.asarray(rows.data, dtype=np.float64), float(mass.sum())
            missing = np.isnan(values) if incomplete else None
            if missing is not None:
                values = np.where(missing, self.filler, values)
            for sums, part, zero in zip(self._sum.totals, self.functions(values), zeros, strict=True):
                difference = part - zero if missing is None else np.where(missing, -zero, part - zero)
                sums[k] += _column_sums(rows, difference, mass) + total * zero
            if missing is not None:
                observed_rows[k] = len(mass) - np.bincount(rows.indices[missing], minlength=self.dimension)
                left = total - _column_sums(rows, missing.astype(np.float64), mass)
                observed_weight[k] = np.where(observed_rows[k] > 0, left, 0.0)
        return (observed_rows, observed_weight) if incomplete else None


def _column_sums(rows: Any, data: Array, weights: Array) -> Array:
    """Weighted sums of the columns of sparse rows with other stored values: a product, which releases the GIL."""
    transposed = scipy.sparse.csc_array((data, rows.indices, rows.indptr), shape=rows.shape[::-1])
    return np.asarray(transposed @ weights)


def check_stored(block: Any, check: Callable[[AnyArray], None]) -> None:
    """Check the stored values of sparse rows."""
    try:
        check(block.data[None])
    except CellError as error:
        row = int(np.searchsorted(block.indptr, error.column, side="right")) - 1
        raise error.at(row, int(block.indices[error.column])) from None


def class_sums(codes: Codes, weights: Array | None, size: int, rows: Array) -> Array:
    """Weighted sums of rows (n, d) by class, (size, d)."""
    if size == 1 or codes.min() == codes.max():
        sums = np.zeros((size, rows.shape[1]))
        values = np.ones(len(codes)) if weights is None else weights
        with np.errstate(over="ignore", invalid="ignore"):
            sums[codes[0] if size > 1 else 0] = np.dot(values, rows)
        return sums
    return class_adder(codes, weights, size, rows.flags.c_contiguous)(rows)
