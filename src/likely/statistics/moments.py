"""First and second moments per class: frozen values with ``+``, ``-`` and an empty identity.

The scatters are about the class means and are combined by the parallel formula of Chan, Golub and LeVeque (1983); raw
sums of squares, which lose digits, are never formed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError
from likely.numerics.arrays import LARGEST_NUMBER, power_of_two
from likely.numerics.caches import cached_property
from likely.numerics.coordinates import SAFE_HIGH, SAFE_LOW, Coordinates, safe_unit
from likely.numerics.shapes import Shape
from likely.numerics.special import EPS, TINY
from likely.statistics.counts import across, are_weighed, of_columns, positions, repeated, spread, unite_classes
from likely.statistics.rounding import combined_noise, different_values_error, remaining_counts
from likely.typing import AnyArray, Array, Index


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which classes have a pooled scatter: all classes, named groups of classes, or none."""

    everyone: bool = False
    groups: tuple[tuple[Any, ...], ...] = ()

    def assign(self, classes: AnyArray) -> Index:
        """The index of the scatter of each class: declared groups first, then the other classes one by one."""
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
class Tails:
    """Third and fourth moments about the class means, for the shrinkage intensity of Ledoit and Wolf.

    With r a row minus its class mean: cubic = Σ ‖r‖²·r and quartic = Σ ‖r‖⁴.
    """

    cubic: Annotated[Array, Shape("classes d")]
    quartic: Annotated[Array, Shape("classes")]

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


@dataclass(frozen=True, eq=False)
class Moments:
    """Weights, means and scatters about the class means.

    `scatter` is (scatters, d, d), or (scatters, d) where only its diagonal is kept; `sharing` determines which classes
    are pooled in which scatter. Everything is in local `coordinates`. `rows` and `weight` are (classes,), or
    (classes, d) where values are missing: then each column counts the rows in which it was observed. `noise` bounds the
    rounding errors that removals have made in the diagonals, (scatters, d): see `likely.statistics.rounding`.
    """

    classes: Annotated[AnyArray, Shape("=classes")]
    rows: Annotated[npt.NDArray[np.int64], Shape("classes", "classes d", ">=0")]
    weight: Annotated[Array, Shape("classes", "classes d", ">=0")]
    mean: Annotated[Array, Shape("classes d")]
    scatter: Annotated[Array, Shape("groups d d", "groups d")]
    sharing: Sharing
    coordinates: Annotated[Coordinates, Shape("d")]
    tails: Annotated[Tails | None, Shape("classes d")] = None
    observed: Annotated[float, Shape(">=0", "<=1")] = (
        1.0  # the proportion of observed values; the others are expectations
    )
    noise: Annotated[Array | None, Shape("groups d", ">=0")] = None

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

    def _sizes(self) -> dict[str, Any]:
        return {"groups": int(self.group.max(initial=-1)) + 1}

    def _valid(self) -> bool:
        weight = self.group_weight()
        with np.errstate(over="ignore"):
            variance = self.squares / across(np.where(weight > 0.0, weight, 1.0))
            mean, unit = np.abs(self.coordinates.to_user(self.mean)), self.coordinates.unit
            possible = (variance >= 0.0) & (variance * unit * unit <= LARGEST_NUMBER**2)
        within = bool(np.all(mean <= LARGEST_NUMBER) and np.all(np.abs(self.mean) <= LARGEST_NUMBER))
        return are_weighed(self.rows, self.weight) and within and bool(np.all(possible & np.isfinite(variance)))

    @property
    def dimension(self) -> int:
        return int(self.mean.shape[1])

    @cached_property
    def full(self) -> bool:
        return self.scatter.ndim == 3

    @cached_property
    def group(self) -> Index:
        """The index of each class's scatter."""
        return self.sharing.assign(self.classes)

    @cached_property
    def squares(self) -> Array:
        """Diagonals of the scatters: (scatters, d)."""
        return np.einsum("gdd->gd", self.scatter) if self.full else self.scatter

    def group_weight(self) -> Array:
        """Weight of all classes of each scatter."""
        return self._over_groups(self.weight)

    def group_classes(self) -> Index:
        """Number of classes with rows in each scatter."""
        return self._over_groups(self.rows > 0).astype(np.intp)

    def _over_groups(self, values: AnyArray) -> Array:
        """Sums over the classes of each scatter."""
        total = np.zeros((len(self.scatter), *values.shape[1:]))
        np.add.at(total, self.group, values)
        return total

    @cached_property
    def total_weight(self) -> Array:
        """Weight of all classes, () or (d,)."""
        return np.asarray(self.weight.sum(axis=0))

    @cached_property
    def _base(self) -> Array:
        """The mean of the first class that has any, in each column."""
        first = np.argmax(self.rows > 0, axis=0)
        return np.asarray(self.mean[first, np.arange(self.dimension)] if self.rows.ndim == 2 else self.mean[first])

    @cached_property
    def overall_mean(self) -> Array:
        """Mean of the rows of all classes."""
        base = self._base  # exact where all means agree
        away = np.where(across(self.rows > 0), self.mean - base, 0.0)
        total = self.total_weight
        proportion = self.weight / np.where(total > 0.0, total, 1.0)
        return np.asarray(base + (across(proportion) * away).sum(axis=0))

    @cached_property
    def total_squares(self) -> Array:
        """Squares about the overall mean: within and between the classes."""
        away = self.mean - self.overall_mean
        return np.asarray(self.squares.sum(axis=0) + (across(self.weight) * away * away).sum(axis=0))

    @cached_property
    def within_variance(self) -> Array:
        """Variance of each column within the classes; total variance / K² where it is constant within all K classes."""
        weight, seen = np.maximum(self.total_weight, TINY), np.maximum(np.sum(self.rows > 0, axis=0), 1)
        within = self.squares.sum(axis=0) / weight
        return np.where(within > 0.0, within, self.total_squares / weight / seen**2)

    def has_variance(self) -> npt.NDArray[np.bool_]:
        """Whether a column takes more than one value."""
        differ = across(self.rows > 0) & (np.abs(self.mean - self._base) > 8.0 * EPS * np.abs(self.mean))
        return (self.squares.sum(axis=0) > 0.0) | np.any(differ, axis=0)

    def by_column(self) -> Self:
        """The same moments with rows and weights for each column."""
        if self.rows.ndim == 2:
            return self
        return replace(self, rows=repeated(self.rows, self.dimension), weight=repeated(self.weight, self.dimension))

    def align(self, classes: AnyArray) -> Self:
        """The same moments with further classes, which have no rows."""
        if classes is self.classes:
            return self
        at, size, tails = positions(classes, self.classes), len(classes), self.tails
        group = self.sharing.assign(classes)
        scatters = int(group.max(initial=-1)) + 1
        return replace(
            self,
            classes=classes,
            rows=spread(self.rows, at, size),
            weight=spread(self.weight, at, size),
            mean=spread(self.mean, at, size),
            scatter=spread(self.scatter[self.group], group[at], scatters),
            tails=tails and Tails(spread(tails.cubic, at, size), spread(tails.quartic, at, size)),
            noise=None if self.noise is None else spread(self.noise[self.group], group[at], scatters),
        )

    def rebase(self, coordinates: Coordinates) -> Self:
        """The same moments in other coordinates."""
        if self.coordinates.same(coordinates):
            return self
        with np.errstate(over="ignore", invalid="ignore"):  # a mean or a scatter of 0 is 0 in any unit
            ratio = self.coordinates.unit / coordinates.unit
            mean = np.where(self.mean == 0.0, 0.0, self.mean * ratio)
            mean += (self.coordinates.origin - coordinates.origin) / coordinates.unit
            scatter = self.scatter * (ratio[:, None] * ratio if self.full else ratio * ratio)
            noise = None if self.noise is None else np.where(self.noise > 0.0, self.noise * ratio * ratio, 0.0)
            tails = self.tails
            if tails is not None:  # one unit for all columns: see MomentsAccumulator
                tails = Tails(tails.cubic * ratio**3, tails.quartic * ratio[0] ** 4)
                tails.cubic[self.tails.cubic == 0.0] = 0.0  # type: ignore[union-attr]
                tails.quartic[self.tails.quartic == 0.0] = 0.0  # type: ignore[union-attr]
        scatter[self.scatter == 0.0] = 0.0
        return replace(self, mean=mean, scatter=scatter, coordinates=coordinates, tails=tails, noise=noise)

    def take(self, columns: AnyArray) -> Self:
        """The moments of some of the columns. (Tails are kept: they belong to all columns that vary.)"""
        return replace(
            self,
            rows=of_columns(self.rows, columns),
            weight=of_columns(self.weight, columns),
            mean=self.mean[:, columns],
            scatter=self.scatter[:, columns[:, None], columns] if self.full else self.scatter[:, columns],
            coordinates=self.coordinates.take(columns),
            tails=self.tails and Tails(self.tails.cubic[:, columns], self.tails.quartic),
            noise=None if self.noise is None else self.noise[:, columns],
        )

    def diagonal(self) -> Self:
        """The same moments with the diagonals of the scatters only."""
        return replace(self, scatter=self.squares.copy(), tails=None) if self.full else self

    def pool(self, sharing: Sharing) -> Self:
        """The same moments with the scatters pooled as in `sharing`."""
        if sharing == self.sharing:
            return self
        new = sharing.assign(self.classes)
        scatter = np.zeros((int(new.max(initial=-1)) + 1, *self.scatter.shape[1:]))
        noise = None if self.noise is None else np.zeros((len(scatter), self.dimension))
        for old in np.unique(self.group):
            place = new[self.group == old][0]
            scatter[place] += self.scatter[old]
            if noise is not None and self.noise is not None:
                noise[place] = np.hypot(noise[place], self.noise[old])
        return replace(self, scatter=scatter, sharing=sharing, noise=noise)

    def settled(self) -> Self:
        """The same moments in units in which squared distances between class means neither overflow nor underflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.where(across(self.rows > 0), np.abs(self.mean - self._base), 0.0).max(axis=0, initial=0.0)
        close = (apart > 0.0) & (apart < SAFE_LOW) & (self.squares.sum(axis=0) == 0.0)
        misfit = close | (apart > SAFE_HIGH)
        if not misfit.any():
            return self
        unit = self.coordinates.unit * np.where(misfit, safe_unit(np.minimum(apart, 2.0**1000)), 1.0)
        return self.rebase(Coordinates.make(self.coordinates.origin, unit))

    def one_unit(self) -> Self:
        """The same moments with one unit for all columns, so that their variances can be compared."""
        varying = self.has_variance()
        if not varying.any() or self.coordinates.trivial:
            return self
        unit = np.full_like(self.coordinates.unit, self.coordinates.unit[varying].max())
        return self.rebase(Coordinates.make(self.coordinates.origin, unit))

    def _pair(self, other: Moments) -> tuple[Self, Moments]:
        """Both in common classes and coordinates."""
        if (self.dimension, self.full, self.sharing) != (other.dimension, other.full, other.sharing):
            raise InputError("Moments of different columns or covariance structures cannot be combined.")
        left: Self = self
        right = other
        if self.classes is not other.classes:
            classes = unite_classes(self.classes, other.classes)
            left, right = self.align(classes), other.align(classes)
        if left.rows.ndim != right.rows.ndim:
            left, right = left.by_column(), right.by_column()
        common = _common_coordinates(left, right)
        return left.rebase(common), right.rebase(common)

    def _tails_about(self, mean: Array) -> Tails:
        """The tails about other means; those of classes without rows are 0 about any."""
        assert self.tails is not None
        shift = np.where(self.rows[:, None] > 0, self.mean - mean, 0.0)
        return self.tails.shifted(self.weight, self.scatter, shift)

    def __add__(self, other: Moments) -> Self:
        if not isinstance(other, Moments):
            return NotImplemented
        left, right = self._pair(other)
        weight = left.weight + right.weight
        safe = np.where(weight > 0.0, weight, 1.0)
        step = right.mean - left.mean
        step[(left.rows == 0) | (right.rows == 0)] = 0.0
        mean = left.mean + across(right.weight / safe) * step
        mean[left.rows == 0] = right.mean[left.rows == 0]
        scatter = left.scatter + right.scatter
        add_outer(scatter, left.group, left.weight * (right.weight / safe), step)
        tails = None
        if left.tails is not None and right.tails is not None:
            a, b = left._tails_about(mean), right._tails_about(mean)
            tails = Tails(a.cubic + b.cubic, a.quartic + b.quartic)
        rows, noise = left.rows + right.rows, combined_noise(left.noise, right.noise)
        total = type(self)(
            left.classes, rows, weight, mean, scatter, left.sharing, left.coordinates, tails, noise=noise
        )
        if left.observed == right.observed:
            return replace(total, observed=left.observed) if left.observed < 1.0 else total
        proportion = float(left.weight.sum() / safe.sum())
        return replace(total, observed=proportion * left.observed + (1.0 - proportion) * right.observed)

    def __sub__(self, other: Moments) -> Self:
        if not isinstance(other, Moments):
            return NotImplemented
        left, right = self._pair(other)
        rows, weight = remaining_counts(left.classes, left.rows, right.rows, left.weight, right.weight)
        gone = rows == 0
        weight = np.where(gone, 0.0, weight)
        safe = np.where(gone, 1.0, weight)
        step = right.mean - left.mean
        step[right.rows == 0] = 0.0
        mean = np.where(across(gone), 0.0, left.mean - across(right.weight / safe) * step)
        scatter = left.scatter - right.scatter
        factor = np.where(gone, 0.0, left.weight * (right.weight / safe))
        add_outer(scatter, left.group, -factor, step)
        before = np.maximum(left.squares, 0.0)
        fewer = left._over_groups(across(right.rows)) > 0.0
        between = 2.0 * EPS * (np.abs(left.mean) + np.abs(right.mean))  # rounding error of the step between the means
        moved = left._over_groups(across(factor) * (2.0 * np.abs(step) + between) * between)
        noise = combined_noise(left.noise, right.noise, np.where(fewer, 64 * EPS * before + moved, 0.0))
        assert noise is not None
        _check_last(left, right, gone, noise)
        result = type(self)(left.classes, rows, weight, mean, scatter, left.sharing, left.coordinates, noise=noise)
        lost = result.squares < -1e-8 * before - noise
        if np.any(lost) or (result.full and not _is_positive(scatter, before, noise)):
            raise InputError(
                "The rows to remove are not among the training rows: a variance would become negative. Pass rows as "
                "they were in the fit."
            )
        most = np.zeros((len(scatter), left.dimension), dtype=np.int64)
        np.maximum.at(most, left.group, across(rows))
        flat = (result.squares <= noise) | (most <= 1)  # rounding errors, or one row of each class: constant
        if np.any((result.squares <= noise) & (most > 1) & (left.coordinates.unit > 1.0)):
            raise InputError(
                "The rows to remove have values so large that rounding has erased the variance of the other rows. Fit "
                "again without them."
            )
        if flat.any():
            scatter[flat] = 0.0
            if result.full:
                scatter.transpose(0, 2, 1)[flat] = 0.0
            _level(result, flat, np.abs(left.mean) + np.abs(right.mean))
        if left.tails is not None and right.tails is not None:
            a, b = left._tails_about(result.mean), right._tails_about(result.mean)
            result = replace(result, tails=Tails(a.cubic - b.cubic, a.quartic - b.quartic))
        return result.select(np.any(across(~gone), axis=1)) if gone.any() else result

    def select(self, which: AnyArray) -> Self:
        """The moments of some of the classes; scatters without a class are dropped."""
        classes = self.classes[which]
        new, old = self.sharing.assign(classes), self.group[which]
        scatters = int(new.max(initial=-1)) + 1
        return replace(
            self,
            classes=classes,
            rows=self.rows[which],
            weight=self.weight[which],
            mean=self.mean[which],
            scatter=spread(self.scatter[old], new, scatters),
            tails=self.tails and Tails(self.tails.cubic[which], self.tails.quartic[which]),
            noise=None if self.noise is None else spread(self.noise[old], new, scatters),
        )


def _check_last(left: Moments, right: Moments, gone: AnyArray, noise: Array) -> None:
    """Raise where a removal takes the last rows of a class, but with another mean."""
    last = across(gone & (left.rows > 0))
    if not last.any():
        return
    local, group = left.coordinates, left.group
    weight = across(np.where(left.weight > 0.0, left.weight, 1.0))
    size = np.abs(left.mean) + np.abs(right.mean) + np.sqrt(np.maximum(left.squares, 0.0)[group] / weight)
    slack = 1e-6 * size + 1e-9 * np.abs(local.origin) / local.unit + 32.0 * np.sqrt(EPS * noise[group])
    other = np.any(last & (np.abs(left.mean - right.mean) > slack), axis=1)
    if other.any():
        raise different_values_error(left.classes[other])


def _is_positive(scatter: Array, before: Array, noise: Array) -> bool:
    """Whether scatters are positive semidefinite, within the rounding error of a removal."""
    size = np.sqrt(np.where(before > noise, before, np.where(noise > 0.0, noise, 1.0)))
    lowest = np.linalg.eigvalsh(scatter / size[:, :, None] / size[:, None, :])[:, :1]
    return bool(np.all(lowest >= -1e-8 - (noise / size**2).sum(axis=1, keepdims=True)))


def _level(moments: Moments, flat: AnyArray, size: Array) -> None:
    """Make the class means of constant columns equal where they differ by rounding errors only."""
    seen = np.broadcast_to(across(moments.rows > 0), moments.mean.shape)
    base = moments._base
    away = np.where(seen, np.abs(moments.mean - base), 0.0).max(axis=0, initial=0.0)
    noise = np.zeros(moments.dimension) if moments.noise is None else moments.noise.max(axis=0, initial=0.0)
    slack = 256 * EPS * size.max(axis=0, initial=0.0) + 32.0 * np.sqrt(EPS * noise)
    same = flat.all(axis=0) & (away <= slack)
    np.copyto(moments.mean, base, where=seen & same)


def add_outer(scatter: Array, group: Index, factor: Array, vectors: Array) -> None:
    """scatter[group_k] += factor_k · v_k v_kᵀ (or its diagonal) for every class."""
    if len(scatter) == len(group) and scatter.ndim == 2:  # each class has its own
        scatter[group] += across(factor) * vectors * vectors
        return
    if len(scatter) == 1 and scatter.ndim == 3:
        scatter[0] += vectors.T @ (across(factor) * vectors)
        return
    scaled, moved = across(factor) * vectors, vectors.any(axis=1)
    for g in np.unique(group[moved]):
        members = moved & (group == g)
        v = vectors[members]
        scatter[g] += v.T @ scaled[members] if scatter.ndim == 3 else (v * scaled[members]).sum(axis=0)


def _largest(moments: Moments, origin: Array) -> Array:
    """The largest distance of a class mean from an origin, for each column, in the units of X."""
    seen = np.broadcast_to(across(moments.rows > 0), moments.mean.shape)
    local = moments.coordinates
    away = np.where(seen, np.abs(moments.mean * local.unit + (local.origin - origin)), 0.0)
    return np.asarray(away.max(axis=0, initial=0.0))


def _common_coordinates(left: Moments, right: Moments) -> Coordinates:
    """Coordinates in which both moments, and the squares of their difference, are representable."""
    a, b = left.coordinates, right.coordinates
    both = across((left.rows > 0) & (right.rows > 0))
    if a.same(b):
        step = np.abs(left.mean - right.mean)
        if (step.min(initial=1.0) >= SAFE_LOW and step.max(initial=1.0) <= SAFE_HIGH) or (
            (step >= SAFE_LOW) & (step <= SAFE_HIGH) | ~both | (step == 0.0)
        ).all():
            return a
    origin = np.where(a.origin != 0.0, a.origin, b.origin)
    apart = np.abs(left.mean * a.unit - right.mean * b.unit + (a.origin - b.origin))
    step = np.where(both, apart, 0.0).max(axis=0, initial=0.0)
    moved = safe_unit(step)
    unit = np.maximum(
        np.where(left.squares.max(axis=0, initial=0.0) > 0.0, a.unit, 0.0),
        np.where(right.squares.max(axis=0, initial=0.0) > 0.0, b.unit, 0.0),
    )
    unit = np.maximum(unit, np.where(step > 0.0, moved, 0.0))
    unit = np.where(unit == 0.0, np.maximum(a.unit, b.unit), unit)
    # The mean of a constant column may overflow in the unit of another scatter.
    largest = np.maximum(_largest(left, origin), _largest(right, origin))
    unit = np.maximum(unit, np.where(largest > 0.0, power_of_two(largest) * 2.0**-900, 0.0))
    if left.tails is not None:
        unit = np.full_like(unit, unit.max())
    return Coordinates.make(origin, unit)
