"""Accumulator of `Moments`: sums of rows and of their squares, per class, block by block."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from likely.errors import CellError
from likely.families.gaussian.one_pass import LARGEST_SQUARE, LEAST_SQUARE, OnePassMoments, Rows
from likely.numerics.arrays import check_finite, power_of_two
from likely.numerics.block_sizes import CACHED
from likely.numerics.coordinates import Coordinates, safe_unit
from likely.statistics.counts import across
from likely.statistics.moments import Moments, Sharing, Tails, add_outer
from likely.statistics.sums import QUICK_CLASSES, class_sums
from likely.typing import AnyArray, Array, Codes, Index

EXACT_INTEGER = 2**53
MAX_ZERO_REFERENCE_RATIO = 3.0  # squares of means relative to squares about them: costs two bits at most
FIRST_ROWS = 2048  # with more rows, a part of them is enough to find references


@dataclass(slots=True, eq=False)
class MomentsAccumulator:
    """Sums the moments of one row block after another, in place.

    Rows are centred on a reference of their class, fixed at the first block of the class: first a row, so that a
    constant column stays exactly constant, then the mean of that block. Plain sums about the reference lose next to no
    digits, and `finish` moves them to the means.

    Where columns are independent (`full` is False) values may be missing (NaN): each column then has its own
    references and weights.
    """

    classes: AnyArray
    dimension: int
    sharing: Sharing
    full: bool
    tails: bool = False
    _sum: Moments = field(init=False)
    _sums: Array = field(init=False)
    _done: Moments | None = field(init=False, default=None)
    _group: Index = field(init=False)
    _members: list[Index] = field(init=False)
    _part: Index = field(init=False)
    _place: Index = field(init=False)
    _with_missing: bool = field(init=False, default=False)
    _one_pass: OnePassMoments | None = field(init=False, default=None)
    _new: npt.NDArray[np.bool_] = field(init=False)  # classes that were new in their last block

    def __post_init__(self) -> None:
        self._start(None)
        self._group = self._sum.group
        self._part = self._group if self.full else np.arange(len(self.classes))
        self._members = [np.flatnonzero(self._part == part) for part in range(int(self._part.max(initial=-1)) + 1)]
        if not self.full and len(self.classes) <= QUICK_CLASSES:
            self._one_pass = OnePassMoments(len(self.classes), self.dimension)
        self._place = np.zeros(len(self.classes), dtype=np.intp)
        self._new = np.zeros(len(self.classes), dtype=bool)
        for members in self._members:
            self._place[members] = np.arange(len(members))

    @property
    def groups(self) -> Index | None:
        """The part that each class is added with: rows come part by part, except for one-pass sums."""
        return self._part if len(self._members) > 1 and not self.tails and self._one_pass is None else None

    @property
    def block_rows(self) -> int:
        """Rows per block: enough for efficient products, few enough for the cache."""
        several = len(self._members) > 1
        if self._one_pass is not None:
            return max(2**21 // max(self.dimension, 1), 512)
        if not self.full:
            return max(CACHED // max(self.dimension, 1), 512)
        d = max(self.dimension, 1)
        # A product is as large as d rows: a block has several times as many, while they fit.
        rows = max((2**18 if several else 2**19) // d, min(4 * d, 2**20 // d), 1024)
        # Tails are closed block by block, for all classes at once: rows come as they are, enough of every class.
        return min(rows * len(self._members) if several and self.tails else rows, 2**18)

    def _start(self, coordinates: Coordinates | None) -> None:
        """An empty running sum; `mean` holds the references and `_sums` the sums about them."""
        fresh = Moments.empty(self.classes, self.dimension, self.sharing, full=self.full, tails=self.tails)
        fresh = fresh.by_column() if self._with_missing else fresh
        self._sum = fresh if coordinates is None else replace(fresh, coordinates=coordinates)
        self._sums = np.zeros((len(self.classes), self.dimension))

    def _flush(self, coordinates: Coordinates | None) -> None:
        """Close the running sum, and start a new one in these coordinates."""
        running = self._sum
        if coordinates is None and running.coordinates.trivial and not running.rows.any():
            return
        if running.rows.any():
            step = self._sums / across(np.where(running.rows > 0, running.weight, 1.0))
            add_outer(running.scatter, self._group, -running.weight, step)
            closed = replace(running, mean=np.where(across(running.rows > 0), running.mean + step, 0.0))
            self._done = closed if self._done is None else self._done + closed
        self._start(coordinates)

    def finish(self) -> Moments:
        """The moments of all blocks so far, about their means."""
        self._flush(None)
        done = self._sum if self._done is None else self._done
        if self._one_pass is None or not self._one_pass.rows.any():
            return done
        one_pass = self._one_pass.moments(self._sum)
        return one_pass if self._done is None else done + one_pass

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        """Add rows (n, d) of any numeric type with their class codes and weights (0: absent)."""
        few = len(codes) // 4  # more than a quarter of the rest of every class, so that references are not set again
        if few >= FIRST_ROWS and self._begins(codes):
            for begin, end in ((0, few), (few, len(codes))):
                try:
                    self.add(block[begin:end], codes[begin:end], None if weights is None else weights[begin:end])
                except CellError as error:
                    raise error.at(begin + error.row, error.column) from None
            return
        rows, used = Rows(block, codes, weights), None
        if weights is not None and not np.all(weights > 0.0):
            used = np.flatnonzero(weights)
            rows = rows.take(used)
        if not len(rows.codes):
            return
        coordinates = self._integer_coordinates(rows.values)
        if self._one_pass is not None and coordinates is None and self._one_pass.add(rows):
            return
        if coordinates is not None or self.tails:
            self._flush(coordinates)
        left = self._add(rows)
        if left.any() and not self.full and not self._with_missing and np.isnan(rows.values).any():
            self._with_missing, self._sum = True, self._sum.by_column()
            again = np.flatnonzero(left[rows.codes])  # the other classes are added already
            rows, used = rows.take(again), again if used is None else used[again]
            left = self._add(rows)
        if not left.any():
            return
        # Squares overflowed or underflowed: those classes again, in units that fit them.
        try:
            check_finite(rows.values, allow_missing=not self.full)
        except CellError as error:
            raise error if used is None else error.at(int(used[error.row]), error.column) from None
        for g in np.unique(self._group[left]):
            mine = rows.take(np.flatnonzero(left[rows.codes] & (self._group[rows.codes] == g)))
            self._flush(self._fitting_coordinates(mine))
            self._add(mine, fitted=True)

    def _begins(self, codes: Codes) -> bool:
        """Whether these are the first rows of their classes."""
        return self.full and not self.tails and not self._sum.rows[self._members[self._part[codes[0]]]].any()

    def _integer_coordinates(self, block: AnyArray) -> Coordinates | None:
        """Coordinates for integers that float64 cannot hold, or None."""
        wide = block.dtype == np.longdouble or (block.dtype.kind in "iu" and block.dtype.itemsize == 8)
        if not wide:
            return None
        least, most = (np.fmin, np.fmax) if block.dtype.kind == "f" else (np.minimum, np.maximum)
        if most.reduce(block, axis=None) <= EXACT_INTEGER and (
            block.dtype.kind == "u" or least.reduce(block, axis=None) >= -EXACT_INTEGER
        ):
            return None
        low, high = least.reduce(block, axis=0).astype(np.float64), most.reduce(block, axis=0).astype(np.float64)
        # The difference must fit 63 bits; where it does not, rounding is far below the variation.
        large = (np.maximum(np.abs(low), np.abs(high)) > EXACT_INTEGER) & (high - low < 2.0**61)
        known = self._sum.coordinates.origin
        if not np.any(large & (np.maximum(np.abs(low - known), np.abs(high - known)) > EXACT_INTEGER)):
            return None
        return Coordinates.make(np.where(large, low, 0.0), np.ones(self.dimension))

    def _fitting_coordinates(self, rows: Rows) -> Coordinates:
        """Units of the size of the variation of each column within the classes."""
        values, reach = np.asarray(rows.values, dtype=np.float64), np.zeros(self.dimension)
        for k in np.unique(rows.codes):
            mine = values[rows.codes == k]
            reach = np.fmax(reach, np.fmax.reduce(np.abs(mine - _first_observed(mine)), axis=0))
        unit = safe_unit(reach)
        if self.tails:
            unit = np.full_like(unit, unit.max())
        return Coordinates.make(self._sum.coordinates.origin, unit)

    def _add(self, rows: Rows, fitted: bool = False) -> npt.NDArray[np.bool_]:
        """Add rows in the current coordinates; return the classes that were not added because squares overflow or
        underflow.

        In fitted coordinates all classes are added: squares that underflow there are negligible.
        """
        values = self._sum.coordinates.to_local(rows.values)
        local = rows._replace(values=values, missing=np.isnan(values) if self._with_missing else None)
        left = np.zeros(len(self.classes), dtype=bool)
        if len(self._members) == 1:
            left[self._add_rows(local, self._members[0], fitted)] = True
            return left
        parts = self._part[rows.codes]
        present = np.flatnonzero(np.bincount(parts))
        for part in present:
            mine = local if len(present) == 1 else local.take(np.flatnonzero(parts == part))
            mine = mine._replace(codes=self._place[mine.codes])
            left[self._add_rows(mine, self._members[part], fitted)] = True
        return left

    def _add_rows(self, local: Rows, members: Index, fitted: bool) -> Index:
        """Add rows of the member classes, by codes among them; return classes whose squares overflow or underflow."""
        values, codes, weights, missing = local
        total, size = self._sum, len(members)
        rows, weight, present = local.counts(size)
        # Squares are summed about a reference row of each class: about a distant point, their digits would cancel. A
        # class whose first rows weigh little gets a new reference, which costs one correction of its sums.
        new = (rows > 0) & (total.weight[members] < weight / 4.0)
        if new.any():
            self._set_reference(local, members, new)
        elif self.full and not self.tails and self._new[members].any():
            self._set_reference_to_zero(members)
        untouched = missing is None and weights is None and not new.any()
        centred = self._centre(values, codes, members, untouched)
        if missing is not None:
            np.copyto(centred, 0.0, where=missing)  # adds nothing to the sums and squares
        sums = class_sums(codes, weights, size, centred)
        if not np.all(np.isfinite(sums)):
            return members[present]
        if new.any():  # the mean of the first rows is a better reference than one row: then their sums are 0
            step = np.where(across(new), sums / across(np.where(rows > 0, weight, 1.0)), 0.0)
            self._move_reference(members, step)
            centred -= step[codes] if size > 1 else step
            if missing is not None:
                np.copyto(centred, 0.0, where=missing)
            sums[new] = 0.0
        tails = self._block_tails(centred, codes, weights, size) if self.tails else None
        scale = 1.0
        if weights is not None:  # a power of 2 prevents underflow and overflow without rounding
            scale = float(power_of_two(weights.max(keepdims=True))[0])
            centred *= np.sqrt(weights / scale)[:, None]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            add = self._multiply if self.full else self._square
            fits = np.full(size, add(centred, int(self._group[members[0]]), scale, fitted))
        here = present & fits  # other classes are added again by `add`, in units in which their squares fit
        kept = members[here]
        total.rows[kept] += rows[here]
        total.weight[kept] += weight[here]
        self._sums[kept] += sums[here]
        if tails is not None and total.tails is not None:
            total.tails.cubic[kept], total.tails.quartic[kept] = tails.cubic[here], tails.quartic[here]
        if self.full:
            self._new[members] = new
        return members[present & ~fits]

    @staticmethod
    def _block_tails(centred: Array, codes: Codes, weights: Array | None, size: int) -> Tails:
        """Tails of rows that are centred on the class means of the block."""
        with np.errstate(over="ignore", invalid="ignore"):
            square = np.einsum("nd,nd->n", centred, centred)
            mass = square if weights is None else square * weights
            cubic = class_sums(codes, mass, size, centred)
            return Tails(cubic, np.bincount(codes, mass * square, minlength=size).astype(np.float64))

    def _set_reference(self, rows: Rows, members: Index, new: npt.NDArray[np.bool_]) -> None:
        """Set the reference of classes that are new, or had little weight, to the heaviest of their rows."""
        codes, weights = rows.codes, rows.weights
        order = np.arange(len(codes))[::-1] if weights is None else np.argsort(weights, kind="stable")
        before = self._sum.mean[members]
        if self._with_missing:
            heaviest_rows = np.full((len(members), self.dimension), np.nan)
            for k in np.flatnonzero(np.bincount(codes, minlength=len(members))):
                mine = order[codes[order] == k]
                heaviest_rows[k] = _first_observed(rows.values[mine[::-1]])
        else:
            heaviest = np.zeros(len(new), dtype=np.intp)
            heaviest[codes[order]] = order
            heaviest_rows = rows.values[heaviest]
        target = np.where(across(new), heaviest_rows, before)
        known = self._sum.rows[members] > 0
        if not known.any():
            self._sum.mean[members] = target
            return
        with np.errstate(over="ignore", invalid="ignore"):
            step = target - before
        step[~known] = 0.0
        if np.all(np.isfinite(step)):
            self._move_reference(members, step)
            self._sum.mean[members] = np.where(across(new), target, self._sum.mean[members])

    def _move_reference(self, members: Index, step: Array) -> None:
        """Move the references of the members by `step`, and with them the sums so far."""
        total = self._sum
        total.mean[members] += step
        if not total.rows[members].any():
            return
        moved = np.flatnonzero(across(total.rows[members] > 0).any(axis=1) & np.any(step != 0.0, axis=1))
        which, e = members[moved], step[moved]
        away, sums = across(total.weight[which]) * e, self._sums[which]
        if self.full:  # members share one scatter
            cross = sums.T @ e
            total.scatter[self._group[members[0]]] += e.T @ away - cross - cross.T
        else:
            np.add.at(total.scatter, self._group[which], e * (away - 2.0 * sums))
        self._sums[which] -= away

    def _set_reference_to_zero(self, members: Index) -> None:
        """Set the reference of these classes to 0 where squares about 0 lose next to no digits."""
        total = self._sum
        self._new[members] = False
        with np.errstate(over="ignore"):
            away = total.weight[members] @ total.mean[members] ** 2
        if np.all(away <= MAX_ZERO_REFERENCE_RATIO * np.diagonal(total.scatter[self._group[members[0]]])):
            self._move_reference(members, -total.mean[members])

    def _centre(self, local: AnyArray, codes: Codes, members: Index, untouched: bool = False) -> Array:
        """Rows minus the reference of their class; the rows themselves where all references are 0 (`untouched`)."""
        reference = self._sum.mean[members]
        if untouched and not reference.any():
            if local.dtype == np.float64 and (local.flags.c_contiguous or local.flags.f_contiguous):
                return local
            return np.array(local, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            if len(members) == 1:
                return np.asarray(np.subtract(local, reference[0]), dtype=np.float64)
            centred = reference[codes]
            return np.subtract(local, centred, out=centred, casting="same_kind")

    def _multiply(self, centred: Array, g: int, scale: float, fitted: bool) -> bool:
        """Add scale times the product of the rows to scatter g; False, with nothing added, on overflow or underflow."""
        product = np.dot(centred.T, centred)
        if not fitted and not self._fits(np.diagonal(product), centred):
            return False
        if scale != 1.0:
            product *= scale
        self._sum.scatter[g] += product
        return True

    def _square(self, centred: Array, g: int, scale: float, fitted: bool) -> bool:
        """Add scale times the squares of rows to diagonal g; False, with nothing added, on overflow or underflow."""
        sums = np.dot(np.ones(len(centred)), np.multiply(centred, centred))
        if not fitted and not self._fits(sums, centred):
            return False
        self._sum.scatter[g] += scale * sums
        return True

    @staticmethod
    def _fits(squares: Array, rows: Array) -> bool:
        """Whether sums of squares neither overflowed nor underflowed."""
        if not squares.max(initial=0.0) <= LARGEST_SQUARE:
            return False
        small = squares < LEAST_SQUARE
        if not small.any():
            return True
        return not np.any(rows[:, small])


def _first_observed(rows: AnyArray) -> Array:
    """The first value of each column that is not missing; NaN where all are."""
    return np.asarray(rows[np.argmax(~np.isnan(rows), axis=0), np.arange(rows.shape[1])])
