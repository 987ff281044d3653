"""Additive statistics: frozen values with ``+``, ``-`` and an empty identity.

Second moments are kept about the class means and combined by the parallel formula of Chan, Golub and
LeVeque (1983), never as raw sums of squares. Classes are part of each value: adding two values that
know different classes gives the statistics of their union. Priors, smoothing and shrinkage are not in
here: they belong to the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse

from likely.errors import InputError, listed
from likely.numerics import EPS, AnyArray, Array, check_finite, power_of_two

Codes = npt.NDArray[np.integer[Any]]

# Spreads whose fourth powers, summed, are far from overflow and underflow, and the range of their squares.
SAFE_LOW, SAFE_HIGH = 2.0**-200, 2.0**200
LEAST_SQUARE, LARGEST_SQUARE = 2.0**-440, 2.0**440
EXACT_INTEGER = 2**53
CHUNK = 2**18


def unite_classes(left: AnyArray, right: AnyArray) -> AnyArray:
    """The sorted union of two sets of class labels."""
    if left is right or (left.dtype == right.dtype and np.array_equal(left, right)):
        return left
    if len(left) and len(right) and (left.dtype.kind in "iufb") != (right.dtype.kind in "iufb"):
        raise InputError(
            f"Classes {listed(left.tolist())} and {listed(right.tolist())} are of different types and cannot be "
            "sorted together."
        )
    return np.union1d(left, right)


def positions(classes: AnyArray, wanted: AnyArray) -> npt.NDArray[np.intp]:
    """Where each of the `wanted` labels stands among the sorted `classes`."""
    return np.searchsorted(classes, wanted)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which classes have one scatter in common: all of them, named groups, or none."""

    everyone: bool = False
    groups: tuple[tuple[Any, ...], ...] = ()

    def assign(self, classes: AnyArray) -> npt.NDArray[np.intp]:
        """The scatter's index for each class: declared groups first, then the classes on their own."""
        if self.everyone:
            return np.zeros(len(classes), dtype=np.intp)
        if not self.groups:
            return np.arange(len(classes), dtype=np.intp)
        index = np.full(len(classes), -1, dtype=np.intp)
        used = 0
        for group in self.groups:
            members = np.array([label in group for label in classes.tolist()], dtype=bool)
            if members.any():
                index[members] = used
                used += 1
        alone = index < 0
        index[alone] = used + np.arange(int(alone.sum()))
        return index


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """An exact change of origin and unit per column: local = (value - origin) / unit.

    It is trivial (origin 0, unit 1) except where squares would overflow or underflow (the unit is then a
    power of two) and for integers beyond 2^53 (the origin is then subtracted in integer arithmetic).
    """

    origin: Array
    unit: Array
    trivial: bool = False

    @classmethod
    def plain(cls, dimension: int) -> Self:
        return cls(np.zeros(dimension), np.ones(dimension), trivial=True)

    @classmethod
    def make(cls, origin: Array, unit: Array) -> Self:
        return cls(origin, unit, trivial=bool(np.all(origin == 0.0) and np.all(unit == 1.0)))

    def same(self, other: Coordinates) -> bool:
        return (
            self is other
            or (self.trivial and other.trivial)
            or (np.array_equal(self.origin, other.origin) and np.array_equal(self.unit, other.unit))
        )

    def to_local(self, block: AnyArray) -> AnyArray:
        """Rows in local coordinates; as they are where the coordinates are trivial."""
        if self.trivial:
            return block.astype(np.float64) if block.dtype == np.longdouble else block
        if block.dtype.kind in "iu" and np.any(self.origin != 0.0):
            return self._minus_origin(block) / self.unit
        # Dividing first keeps a difference of two huge values finite; rows far outside may still overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            return (block / self.unit - self.origin / self.unit).astype(np.float64)

    def to_scaled(self, block: AnyArray) -> tuple[Array, npt.NDArray[np.int64]]:
        """Rows in local coordinates as mantissas with one exponent of two for each row: nothing overflows."""
        mantissa, exponent = np.frexp(np.asarray(block, dtype=np.float64))
        exponent = exponent - (np.frexp(self.unit)[1] - 1)
        top = np.where(mantissa != 0.0, exponent, 0).max(axis=1, initial=0)
        with np.errstate(invalid="ignore"):
            scaled = np.ldexp(mantissa, np.clip(exponent - top[:, None], -2000, 0))
            scaled -= np.ldexp(self.origin / self.unit, -np.minimum(top, 2000)[:, None])
        return scaled, top.astype(np.int64)

    def _minus_origin(self, block: AnyArray) -> Array:
        """Integers minus the origin, exactly where the difference fits 63 bits (modulo 2^64 it always does)."""
        origin = np.array([int(value) % 2**64 for value in self.origin], dtype=np.uint64)
        exact = (block.astype(np.uint64) - origin).view(np.int64)
        rounded = block.astype(np.float64) - self.origin
        return np.where(np.abs(rounded) < 2.0**62, exact, rounded)

    def to_user(self, local: Array) -> Array:
        """Values in the user's own coordinates."""
        return local if self.trivial else local * self.unit + self.origin

    def take(self, columns: AnyArray) -> Self:
        return self.make(self.origin[columns], self.unit[columns])


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Rows and weight of each class."""

    classes: AnyArray
    rows: npt.NDArray[np.int64]
    weight: Array

    @classmethod
    def empty(cls, classes: AnyArray) -> Self:
        return cls(classes, np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes)))

    @classmethod
    def of(cls, classes: AnyArray, codes: Codes, weights: Array | None = None) -> Self:
        """Counts of the labels with these codes; rows of weight 0 are absent."""
        size = len(classes)
        rows, weight = np.zeros(size, dtype=np.int64), np.zeros(size)
        for start in range(0, len(codes), CHUNK):  # bincount makes a wide copy of what it counts
            part = codes[start : start + CHUNK]
            if weights is None:
                rows += np.bincount(part, minlength=size)
            else:
                share = weights[start : start + CHUNK]
                rows += np.bincount(part[share > 0.0], minlength=size)
                weight += np.bincount(part, weights=share, minlength=size)
        return cls(classes, rows, rows.astype(np.float64) if weights is None else weight)

    def align(self, classes: AnyArray) -> Self:
        """The same counts among more classes."""
        if classes is self.classes:
            return self
        at = positions(classes, self.classes)
        rows, weight = np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes))
        rows[at], weight[at] = self.rows, self.weight
        return replace(self, classes=classes, rows=rows, weight=weight)

    def __add__(self, other: Counts) -> Self:
        classes = unite_classes(self.classes, other.classes)
        left, right = self.align(classes), other.align(classes)
        return replace(left, rows=left.rows + right.rows, weight=left.weight + right.weight)

    def __sub__(self, other: Counts) -> Self:
        classes = unite_classes(self.classes, other.classes)
        left, right = self.align(classes), other.align(classes)
        rows, weight = _remaining(classes, left.rows, right.rows, left.weight, right.weight)
        gone = rows == 0
        kept = replace(left, rows=rows, weight=np.where(gone, 0.0, weight))
        return kept.select(~gone)

    def select(self, which: AnyArray) -> Self:
        """The same counts of some classes only."""
        return replace(self, classes=self.classes[which], rows=self.rows[which], weight=self.weight[which])


def _remaining(
    classes: AnyArray, rows: Any, fewer: Any, weight: Array, lighter: Array
) -> tuple[npt.NDArray[np.int64], Array]:
    """Rows and weight after a removal, or an error that names the classes with too few."""
    left, kept = rows - fewer, weight - lighter
    short = (left < 0) | (kept < -1e-9 * np.maximum(weight, lighter)) | ((left > 0) & (kept <= 0.0))
    if np.any(short):
        raise InputError(
            f"More was removed than had been added, in class {listed(classes[short])}. "
            "Only rows that were learnt, with the weight they had, can be removed."
        )
    return left, kept


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """Moments of the distances from the class means, for Ledoit and Wolf's intensity.

    With r a row minus its class mean: cubic = Σ ‖r‖²·r and quartic = Σ ‖r‖⁴.
    """

    cubic: Array
    quartic: Array

    def shifted(self, weight: Array, scatter: Array, shift: Array) -> Tails:
        """The same sums about means moved by -shift, so that every r becomes r + shift."""
        square = np.einsum("kd,kd->k", shift, shift)
        trace = np.einsum("kdd->k", scatter)
        turned = np.einsum("kde,ke->kd", scatter, shift)
        cubic = self.cubic + 2.0 * turned + (trace + weight * square)[:, None] * shift
        quartic = (
            self.quartic
            + 4.0 * np.einsum("kd,kd->k", shift, self.cubic + turned)
            + (2.0 * trace + weight * square) * square
        )
        return Tails(cubic, quartic)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Weights, means and scatters about the class means.

    `scatter` is (scatters, d, d), or (scatters, d) where only its diagonal is kept; `sharing` says which
    classes are summed into which. Everything is in local `coordinates`.
    """

    classes: AnyArray
    rows: npt.NDArray[np.int64]
    weight: Array
    mean: Array
    scatter: Array
    sharing: Sharing
    coordinates: Coordinates
    tails: Tails | None = None

    @classmethod
    def empty(cls, classes: AnyArray, dimension: int, sharing: Sharing, *, full: bool, tails: bool = False) -> Self:
        size = len(classes)
        scatters = int(sharing.assign(classes).max(initial=-1)) + 1
        shape = (scatters, dimension, dimension) if full else (scatters, dimension)
        return cls(
            classes,
            np.zeros(size, dtype=np.int64),
            np.zeros(size),
            np.zeros((size, dimension)),
            np.zeros(shape),
            sharing,
            Coordinates.plain(dimension),
            Tails(np.zeros((size, dimension)), np.zeros(size)) if tails else None,
        )

    @property
    def dimension(self) -> int:
        return int(self.mean.shape[1])

    @property
    def full(self) -> bool:
        return self.scatter.ndim == 3

    @property
    def group(self) -> npt.NDArray[np.intp]:
        """The index of each class's scatter."""
        return self.sharing.assign(self.classes)

    @property
    def squares(self) -> Array:
        """Diagonals of the scatters: (scatters, d)."""
        return np.einsum("gdd->gd", self.scatter) if self.full else self.scatter

    def group_weight(self) -> Array:
        """Weight of all classes of each scatter."""
        return np.bincount(self.group, weights=self.weight, minlength=len(self.scatter)).astype(np.float64)

    def group_classes(self) -> npt.NDArray[np.intp]:
        """Number of classes with rows in each scatter."""
        return np.bincount(self.group, weights=self.rows > 0, minlength=len(self.scatter)).astype(np.intp)

    def overall_mean(self) -> Array:
        base = self.mean[np.argmax(self.rows > 0)]  # exact where all means agree
        away = np.where((self.rows > 0)[:, None], self.mean - base, 0.0)
        return np.asarray(base + (self.weight / self.weight.sum()) @ away)

    def total_squares(self) -> Array:
        """Squares about the overall mean: within and between the classes."""
        away = self.mean - self.overall_mean()
        return np.asarray(self.squares.sum(axis=0) + self.weight @ (away * away))

    def has_spread(self) -> npt.NDArray[np.bool_]:
        """Whether a column takes more than one value."""
        seen = self.mean[self.rows > 0]
        differ = np.abs(seen - seen[:1]) > 8.0 * EPS * np.abs(seen)
        return (self.squares.sum(axis=0) > 0.0) | np.any(differ, axis=0)

    def align(self, classes: AnyArray) -> Self:
        """The same moments among more classes."""
        if classes is self.classes:
            return self
        at = positions(classes, self.classes)
        wide = Moments.empty(classes, self.dimension, self.sharing, full=self.full, tails=self.tails is not None)
        wide.rows[at], wide.weight[at], wide.mean[at] = self.rows, self.weight, self.mean
        wide.scatter[self.sharing.assign(classes)[at]] = self.scatter[self.group]
        if self.tails is not None and wide.tails is not None:
            wide.tails.cubic[at], wide.tails.quartic[at] = self.tails.cubic, self.tails.quartic
        return replace(wide, coordinates=self.coordinates)  # type: ignore[return-value]

    def rebase(self, coordinates: Coordinates) -> Self:
        """The same moments in other coordinates."""
        if self.coordinates.same(coordinates):
            return self
        ratio = self.coordinates.unit / coordinates.unit
        mean = self.mean * ratio + (self.coordinates.origin - coordinates.origin) / coordinates.unit
        square = ratio[:, None] * ratio if self.full else ratio * ratio
        tails = self.tails
        if tails is not None:  # one unit for all columns: see MomentsBuilder
            tails = Tails(tails.cubic * ratio**3, tails.quartic * ratio[0] ** 4)
        return replace(self, mean=mean, scatter=self.scatter * square, coordinates=coordinates, tails=tails)

    def take(self, columns: AnyArray) -> Self:
        """The moments of some columns only. (Tails are kept: they belong to all columns with spread.)"""
        scatter = self.scatter[:, columns[:, None], columns] if self.full else self.scatter[:, columns]
        tails = self.tails and Tails(self.tails.cubic[:, columns], self.tails.quartic)
        return replace(
            self,
            mean=self.mean[:, columns],
            scatter=scatter,
            coordinates=self.coordinates.take(columns),
            tails=tails,
        )

    def pool(self, sharing: Sharing) -> Self:
        """The same moments with scatters summed over the classes that `sharing` puts together."""
        if sharing == self.sharing:
            return self
        new = sharing.assign(self.classes)
        scatter = np.zeros((int(new.max(initial=-1)) + 1, *self.scatter.shape[1:]))
        for old in np.unique(self.group):
            scatter[new[self.group == old][0]] += self.scatter[old]
        return replace(self, scatter=scatter, sharing=sharing)

    def one_unit(self) -> Self:
        """The same moments with one unit for all columns, so that their variances can be compared."""
        spread = self.has_spread()
        if not spread.any() or self.coordinates.trivial:
            return self
        unit = np.full_like(self.coordinates.unit, self.coordinates.unit[spread].max())
        return self.rebase(Coordinates.make(self.coordinates.origin, unit))

    def _pair(self, other: Moments) -> tuple[Self, Moments]:
        """Both in common classes and coordinates."""
        if (self.dimension, self.full, self.sharing) != (other.dimension, other.full, other.sharing):
            raise InputError("Moments of different columns or covariance structures cannot be combined.")
        classes = unite_classes(self.classes, other.classes)
        left, right = self.align(classes), other.align(classes)
        common = _common_coordinates(left, right)
        return left.rebase(common), right.rebase(common)

    def __add__(self, other: Moments) -> Self:
        left, right = self._pair(other)
        weight = left.weight + right.weight
        safe = np.where(weight > 0.0, weight, 1.0)
        step = right.mean - left.mean
        step[(left.rows == 0) | (right.rows == 0)] = 0.0
        mean = left.mean + (right.weight / safe)[:, None] * step
        mean[left.rows == 0] = right.mean[left.rows == 0]
        scatter = left.scatter + right.scatter
        _add_outer(scatter, left.group, left.weight * (right.weight / safe), step)
        tails = None
        if left.tails is not None and right.tails is not None:
            a = left.tails.shifted(left.weight, left.scatter, left.mean - mean)
            b = right.tails.shifted(right.weight, right.scatter, right.mean - mean)
            tails = Tails(a.cubic + b.cubic, a.quartic + b.quartic)
        return replace(left, rows=left.rows + right.rows, weight=weight, mean=mean, scatter=scatter, tails=tails)

    def __sub__(self, other: Moments) -> Self:
        left, right = self._pair(other)
        rows, weight = _remaining(left.classes, left.rows, right.rows, left.weight, right.weight)
        gone = rows == 0
        weight = np.where(gone, 0.0, weight)
        safe = np.where(gone, 1.0, weight)
        step = right.mean - left.mean
        step[right.rows == 0] = 0.0
        mean = np.where(gone[:, None], 0.0, left.mean - (right.weight / safe)[:, None] * step)
        scatter = left.scatter - right.scatter
        factor = np.where(gone, 0.0, left.weight * (right.weight / safe))
        _add_outer(scatter, left.group, -factor, step)
        before = np.maximum(left.squares, 0.0)
        result = replace(left, rows=rows, weight=weight, mean=mean, scatter=scatter, tails=None)
        lost = result.squares < -1e-8 * before - 64 * EPS * before
        if np.any(lost):
            raise InputError(
                "The rows to remove are not among those that were learnt: a variance would become negative."
            )
        rounding = result.squares <= 64 * EPS * before  # what is left is rounding: no spread
        scatter[rounding] = 0.0
        if result.full:
            scatter.transpose(0, 2, 1)[rounding] = 0.0
        _level(result, rounding, np.abs(left.mean) + np.abs(right.mean))
        tails = None
        if left.tails is not None and right.tails is not None:
            tails = _remove_tails(left, right, result)
        return replace(result, tails=tails).select(~gone)

    def select(self, which: AnyArray) -> Self:
        """The same moments of some classes only; the scatters left without a class are dropped."""
        classes = self.classes[which]
        new, old = self.sharing.assign(classes), self.group[which]
        scatter = np.zeros((int(new.max(initial=-1)) + 1, *self.scatter.shape[1:]))
        scatter[new] = self.scatter[old]
        tails = self.tails and Tails(self.tails.cubic[which], self.tails.quartic[which])
        return replace(
            self,
            classes=classes,
            rows=self.rows[which],
            weight=self.weight[which],
            mean=self.mean[which],
            scatter=scatter,
            tails=tails,
        )


def _level(moments: Moments, flat: AnyArray, size: Array) -> None:
    """Make the class means of columns without spread equal where they differ by rounding only."""
    seen = np.flatnonzero(moments.rows > 0)
    if len(seen):
        away = np.abs(moments.mean[seen] - moments.mean[seen[0]]).max(axis=0)
        same = flat.all(axis=0) & (away <= 256 * EPS * size.max(axis=0))
        moments.mean[:, same] = moments.mean[seen[0], same]


def _remove_tails(left: Moments, right: Moments, result: Moments) -> Tails:
    """Tails of what is left: both sides moved to the remaining means, and subtracted."""
    assert left.tails is not None
    assert right.tails is not None
    a = left.tails.shifted(left.weight, left.scatter, left.mean - result.mean)
    b = right.tails.shifted(right.weight, right.scatter, right.mean - result.mean)
    return Tails(a.cubic - b.cubic, a.quartic - b.quartic)


def _add_outer(scatter: Array, group: npt.NDArray[np.intp], factor: Array, vectors: Array) -> None:
    """scatter[group_k] += factor_k · v_k v_kᵀ (or its diagonal) for every class."""
    for g in range(len(scatter)):
        members = group == g
        v = vectors[members]
        scaled = factor[members][:, None] * v
        scatter[g] += v.T @ scaled if scatter.ndim == 3 else (v * scaled).sum(axis=0)


def safe_unit(magnitude: Array) -> Array:
    """1 where fourth powers of the magnitude neither overflow nor underflow, else a power of two."""
    fine = (magnitude == 0.0) | ((magnitude >= SAFE_LOW) & (magnitude <= SAFE_HIGH))
    return np.where(fine, 1.0, power_of_two(magnitude))


def _common_coordinates(left: Moments, right: Moments) -> Coordinates:
    """Coordinates in which both moments, and the squares of their difference, are representable."""
    a, b = left.coordinates, right.coordinates
    both = (left.rows > 0) & (right.rows > 0)
    if a.same(b):
        step = np.abs(left.mean[both] - right.mean[both])
        if not step.size or step.max() == 0.0 or (step.max() <= SAFE_HIGH and step[step > 0.0].min() >= SAFE_LOW):
            return a
    origin = np.where(a.origin != 0.0, a.origin, b.origin)
    step = np.abs(left.mean[both] * a.unit - right.mean[both] * b.unit + (a.origin - b.origin)).max(axis=0, initial=0.0)
    moved = safe_unit(step)
    unit = np.maximum(
        np.where(left.squares.max(axis=0, initial=0.0) > 0.0, a.unit, 0.0),
        np.where(right.squares.max(axis=0, initial=0.0) > 0.0, b.unit, 0.0),
    )
    unit = np.maximum(unit, np.where(step > 0.0, moved, 0.0))
    unit = np.where(unit == 0.0, np.maximum(a.unit, b.unit), unit)
    if left.tails is not None:
        unit = np.full_like(unit, unit.max())
    return Coordinates.make(origin, unit)


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
            _add_outer(running.scatter, self._group, -running.weight, step)
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


@dataclass(frozen=True, slots=True, eq=False)
class JointStatistics:
    """Everything a fit keeps of its rows: class counts, and one statistics value for each block."""

    counts: Counts
    blocks: tuple[Any, ...]

    def __add__(self, other: JointStatistics) -> JointStatistics:
        pairs = zip(self.blocks, other.blocks, strict=True)
        return JointStatistics(self.counts + other.counts, tuple(a + b for a, b in pairs))

    def __sub__(self, other: JointStatistics) -> JointStatistics:
        pairs = zip(self.blocks, other.blocks, strict=True)
        return JointStatistics(self.counts - other.counts, tuple(a - b for a, b in pairs))
