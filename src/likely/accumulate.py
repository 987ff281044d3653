"""The sums behind `Moments`, one row block after another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from likely.coordinates import SAFE_HIGH, Coordinates, safe_unit
from likely.numerics import AnyArray, Array, check_finite, power_of_two
from likely.statistics import Codes, Moments, Sharing, Tails, add_outer

EXACT_INTEGER = 2**53
# Sums of squares within these bounds have neither overflowed nor underflowed, and their squares would not.
LEAST_SQUARE, LARGEST_SQUARE = 2.0**-440, 2.0**440


@dataclass(slots=True, eq=False)
class MomentsBuilder:
    """Sums the moments of one row block after another, in place.

    Rows are centred on a reference of their class, fixed at the class's first block: first a row of
    it, so that a constant column stays exactly constant, then the mean of that block. About the
    reference plain sums lose next to nothing, and `finish` moves them to the means.
    """

    classes: AnyArray
    dimension: int
    sharing: Sharing
    full: bool
    tails: bool = False
    _sum: Moments = field(init=False)
    _sums: Array = field(init=False)
    _done: Moments | None = field(init=False, default=None)
    _buffers: dict[str, Array] = field(init=False, default_factory=dict)
    _group: npt.NDArray[np.intp] = field(init=False)
    _order: npt.NDArray[np.intp] = field(init=False)
    _rank: npt.NDArray[np.int32] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._start(None)
        self._group = self._sum.group
        self._order = np.argsort(self._group, kind="stable")
        if self.sharing.groups:
            self._rank = np.argsort(self._order).astype(np.int32)

    def _buffer(self, name: str, rows: int) -> Array:
        """Room for rows of this dimension that is used again: fresh memory costs more than the arithmetic."""
        have = self._buffers.get(name)
        if have is None or len(have) < rows:
            have = self._buffers[name] = np.empty((rows, self.dimension))
        return have[:rows]

    def _start(self, coordinates: Coordinates | None) -> None:
        """An empty running sum; `mean` holds the references and `_sums` the sums about them."""
        fresh = Moments.empty(self.classes, self.dimension, self.sharing, full=self.full, tails=self.tails)
        self._sum = fresh if coordinates is None else replace(fresh, coordinates=coordinates)
        self._sums = np.zeros((len(self.classes), self.dimension))

    def _flush(self, coordinates: Coordinates | None) -> None:
        """Close the running sum, and start a new one in these coordinates."""
        running = self._sum
        if running.rows.any():
            step = self._sums / np.where(running.rows > 0, running.weight, 1.0)[:, None]
            add_outer(running.scatter, self._group, -running.weight, step)
            closed = replace(running, mean=running.mean + step)
            self._done = closed if self._done is None else self._done + closed
        self._start(coordinates)

    def finish(self) -> Moments:
        """The moments of all blocks so far, about their means."""
        self._flush(None)
        return self._sum if self._done is None else self._done

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        """Add rows (n, d) of any numeric type with their class codes and weights (0: absent)."""
        whole = block
        if weights is not None and not np.all(weights > 0.0):
            used = np.flatnonzero(weights)
            block, codes, weights = block[used], codes[used], weights[used]
        if not len(codes):
            return
        coordinates = self._integer_coordinates(block)
        if coordinates is not None or self.tails:
            self._flush(coordinates)
        left = self._add(block, codes, weights)
        if not left.any():
            return
        # Squares overflowed or underflowed: those classes again, in units that fit them.
        check_finite(whole)
        for g in np.unique(self._group[left]):
            mine = np.flatnonzero(left[codes] & (self._group[codes] == g))
            self._flush(self._fitting_coordinates(block[mine], codes[mine]))
            self._add(block[mine], codes[mine], None if weights is None else weights[mine], fitted=True)

    def _integer_coordinates(self, block: AnyArray) -> Coordinates | None:
        """Coordinates for integers that float64 cannot hold, or None."""
        wide = block.dtype == np.longdouble or (block.dtype.kind in "iu" and block.dtype.itemsize == 8)
        if not wide:
            return None
        if block.max() <= EXACT_INTEGER and (block.dtype.kind == "u" or block.min() >= -EXACT_INTEGER):
            return None
        low, high = block.min(axis=0).astype(np.float64), block.max(axis=0).astype(np.float64)
        # The difference must fit 63 bits; where it does not, rounding is far below the spread.
        large = (np.maximum(np.abs(low), np.abs(high)) > EXACT_INTEGER) & (high - low < 2.0**61)
        known = self._sum.coordinates.origin
        if not np.any(large & (np.maximum(np.abs(low - known), np.abs(high - known)) > EXACT_INTEGER)):
            return None
        return Coordinates.make(np.where(large, low, 0.0), np.ones(self.dimension))

    def _fitting_coordinates(self, block: AnyArray, codes: Codes) -> Coordinates:
        """Units of the size of each column's spread within the classes."""
        values = np.asarray(block, dtype=np.float64)
        size = np.abs(values).max(axis=0)
        unit = np.where(size > SAFE_HIGH, power_of_two(size), 1.0)
        spread = np.zeros(self.dimension)
        for k in np.unique(codes):
            mine = values[codes == k] / unit
            np.maximum(spread, np.abs(mine - mine[0]).max(axis=0), out=spread)
        unit = unit * np.where(spread > 0.0, safe_unit(spread), 1.0)
        if self.tails:
            unit = np.full_like(unit, unit.max())
        return Coordinates.make(self._sum.coordinates.origin, unit)

    def _add(self, block: AnyArray, codes: Codes, weights: Array | None, fitted: bool = False) -> npt.NDArray[np.bool_]:
        """Add the block in the current coordinates; returns which classes were left out: they misfit.

        In fitted coordinates all classes are added: what is too small there is too small to count.
        """
        total, size = self._sum, len(self.classes)
        local = total.coordinates.to_local(block)
        rows = np.bincount(codes, minlength=size)
        weight = rows.astype(np.float64) if weights is None else np.bincount(codes, weights, minlength=size)
        present = rows > 0
        young = present & (total.weight < weight / 4.0)
        self._refer(local, codes, weights, young)
        if self.full and len(total.scatter) > 1:
            order = np.argsort(codes if self._rank is None else self._rank[codes], kind="stable")
            codes, weights = codes[order], None if weights is None else weights[order]
            centred = self._centre_sorted(local, order, rows)
        else:
            centred = self._centre(local, codes)
        by_class = _class_sums(codes, weights, size)
        sums = by_class @ centred
        if not np.all(np.isfinite(sums)):
            return present
        if young.any():
            step = np.where(young[:, None], sums / np.where(present, weight, 1.0)[:, None], 0.0)
            self._move_reference(step)
            centred -= step[codes]
            sums[young] = 0.0
        tails = self._block_tails(centred, codes, weights) if self.tails else None
        scale = 1.0
        if weights is not None:
            scale = float(power_of_two(weights.max(keepdims=True))[0])
            centred *= np.sqrt(weights / scale)[:, None]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            left = (
                self._multiply(centred, rows, scale, fitted)
                if self.full
                else self._square(centred, codes, scale, fitted)
            )
        kept = present & ~left
        total.rows[kept] += rows[kept]
        total.weight[kept] += weight[kept]
        self._sums[kept] += sums[kept]
        if tails is not None and total.tails is not None:
            total.tails.cubic[kept], total.tails.quartic[kept] = tails.cubic[kept], tails.quartic[kept]
        return left & present

    def _block_tails(self, centred: Array, codes: Codes, weights: Array | None) -> Tails:
        """Tails of rows that are centred on the block's own class means."""
        size = len(self.classes)
        square = np.einsum("nd,nd->n", centred, centred)
        mass = square if weights is None else square * weights
        cubic = _class_sums(codes, mass, size) @ centred
        return Tails(cubic, np.bincount(codes, mass * square, minlength=size).astype(np.float64))

    def _refer(self, local: AnyArray, codes: Codes, weights: Array | None, young: npt.NDArray[np.bool_]) -> None:
        """Refer classes that are new, or were of little weight, to the heaviest of their rows."""
        if not young.any():
            return
        heaviest = np.zeros(len(young), dtype=np.intp)
        order = np.arange(len(codes))[::-1] if weights is None else np.argsort(weights, kind="stable")
        heaviest[codes[order]] = order
        target = np.where(young[:, None], local[heaviest], self._sum.mean)
        with np.errstate(over="ignore", invalid="ignore"):
            step = target - self._sum.mean
        step[self._sum.rows == 0] = 0.0
        if np.all(np.isfinite(step)):
            self._move_reference(step)
            self._sum.mean[young] = target[young]

    def _move_reference(self, step: Array) -> None:
        """Move the references by `step`, and with them the sums so far."""
        total = self._sum
        total.mean[...] += step
        moved = np.flatnonzero((total.rows > 0) & np.any(step != 0.0, axis=1))
        for k in moved:
            scatter, e, s, w = total.scatter[self._group[k]], step[k], self._sums[k], total.weight[k]
            cross = np.outer(s, e) if self.full else s * e
            scatter += w * (np.outer(e, e) if self.full else e * e) - cross - cross.T
            s -= w * e

    def _centre(self, local: AnyArray, codes: Codes) -> Array:
        """Rows minus their class's reference."""
        centred = self._buffer("centred", len(codes))
        np.take(self._sum.mean, codes, axis=0, out=centred, mode="clip")
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract(local, centred, out=centred, casting="same_kind")
        return centred

    def _centre_sorted(self, local: AnyArray, order: npt.NDArray[np.intp], rows: AnyArray) -> Array:
        """Rows minus their class's reference, gathered by class."""
        centred = self._buffer("centred", len(order))
        if local.dtype == np.float64:
            np.take(local, order, axis=0, out=centred, mode="clip")
        else:
            centred[...] = local[order]
        begin = 0
        with np.errstate(over="ignore", invalid="ignore"):
            for k in self._order:
                if rows[k]:
                    centred[begin : begin + rows[k]] -= self._sum.mean[k]
                    begin += rows[k]
        return centred

    def _multiply(self, centred: Array, rows: AnyArray, scale: float, fitted: bool) -> npt.NDArray[np.bool_]:
        """Add scale times the products of the rows to each scatter; returns the classes that misfit."""
        scatter, left = self._sum.scatter, np.zeros(len(rows), dtype=bool)
        counts = np.bincount(self._group, weights=rows, minlength=len(scatter)).astype(np.intp)
        begin = 0
        for g, count in enumerate(counts):
            if not count:
                continue
            part = centred[begin : begin + count]
            begin += count
            product = np.dot(part.T, part, out=self._buffer("product", self.dimension))
            if fitted or self._fits(np.diagonal(product), part):
                if scale != 1.0:
                    product *= scale
                scatter[g] += product
            else:
                left |= self._group == g
        return left

    def _square(self, centred: Array, codes: Codes, scale: float, fitted: bool) -> npt.NDArray[np.bool_]:
        """Add scale times the squares of the rows to each diagonal; returns the classes that misfit."""
        scatter, left = self._sum.scatter, np.zeros(len(self.classes), dtype=bool)
        squares = np.multiply(centred, centred, out=self._buffer("squares", len(centred)))
        sums = _class_sums(codes, None, len(self.classes)) @ squares
        for g in range(len(scatter)):
            product = sums[self._group == g].sum(axis=0)
            if fitted or self._fits(product, centred, self._group[codes] == g):
                scatter[g] += scale * product
            else:
                left |= self._group == g
        return left

    @staticmethod
    def _fits(squares: Array, rows: Array, mine: AnyArray | None = None) -> bool:
        """Whether sums of squares, of my rows, neither overflowed nor underflowed."""
        if not squares.max(initial=0.0) <= LARGEST_SQUARE:
            return False
        small = squares < LEAST_SQUARE
        if not small.any():
            return True
        doubtful = rows[:, small]
        return not np.any(doubtful if mine is None else doubtful[mine])


def _class_sums(codes: Codes, weights: Array | None, size: int) -> Any:
    """The (classes, rows) indicator matrix, weighted: its product with rows sums them by class."""
    n = len(codes)
    values = np.ones(n) if weights is None else weights
    return scipy.sparse.csc_array((values, codes.astype(np.int32), np.arange(n + 1, dtype=np.int32)), shape=(size, n))
