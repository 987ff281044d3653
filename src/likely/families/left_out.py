"""Gaussian densities of rows that were learnt, each with itself left out: rank-one downdates, for all classes at once.

With κ the weight behind a class mean m (rows, and those that a prior counts for), r = x − m, and a row of weight w:

    κ′ = κ − w,   x − m′ = κ/κ′ · r,   Ψ′ = Ψ − f·r rᵀ,   f = w·κ/κ′,

so that with h = rᵀΨ⁻¹r, |Ψ′| = |Ψ|·(1 − f·h) and δᵀΨ′⁻¹δ = δᵀΨ⁻¹δ + f·(δᵀΨ⁻¹r)²/(1 − f·h). All classes that share
Ψ see it change; the mean of the row's own class moves too.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from likely.covariance import DenseCovariance, Identity, Spherical, Structure
from likely.distances import Crossed, Distances
from likely.errors import CellError, MissingCellError
from likely.families.base import LeftOut
from likely.families.elliptical import Elliptical, GaussianConditionals, StudentConditionals
from likely.numerics import (
    LOG_2PI,
    MISSING,
    MISSING_HINT,
    AnyArray,
    Array,
    Index,
    all_finite,
    all_same,
    by_row,
    has_holes,
    log_gamma_ratio,
    scratch,
    sum_log,
    sum_log1p,
    whitener,
)
from likely.shrinkage import Regularized
from likely.statistics import Codes, Moments, across

NEAR = 100.0  # class means within so many deviations of their centre lose no digits that count in products
SURE = 0.99  # a share of a scatter that may go before its digits must be counted anew
FEW_KINDS = 16  # weights of rows, up to which bases of their own are kept
SMALL = 0.02  # a row's part in the spread that shrinkage adds, up to which a power series is short
SERIES = 3e-5  # sums of squares up to which a series of three terms is right to 1e-10
NOTHING = 1e-13  # a share of what was there, below which nothing is left


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """Rows taken out of their classes: what is left behind the mean, and by how much the rest moves."""

    left: Array  # κ′
    gone: AnyArray  # whether nothing is left
    moved: Array  # κ/κ′
    factor: Array  # w·κ/κ′


def _removal(kappa: Array, w: Array) -> Removal:
    """Rows of weight w out of classes with the weight κ behind their means."""
    left = np.asarray(kappa - w)
    gone = left <= NOTHING * kappa
    moved = np.where(gone, 1.0, kappa / np.where(gone, 1.0, left))
    return Removal(left, gone, moved, np.where(gone, 0.0, w * moved))


def _weights(w: Array) -> list[float]:
    """The different weights of rows."""
    return [float(w[0])] if all_same(w) else np.unique(w).tolist()


def _part(removal: Removal, index: AnyArray) -> Removal:
    return Removal(removal.left[index], removal.gone[index], removal.moved[index], removal.factor[index])


@dataclass(frozen=True, eq=False)
class GaussianParts:
    """What a Gaussian estimate is made of, before scatters are divided; `varying` are the columns with spread."""

    varying: Moments
    active: Index
    structure: Structure
    estimation: str
    mean: Array  # (K, d)
    rows: Array  # κ, (K,) or (K, d)
    scale: Array  # Ψ, (groups, d, d) or (groups, d)
    degrees: Array  # what the divisor is derived from, (groups,) or (groups, d)
    unbiased: bool
    intensity: Array | None  # of a shrinkage toward a scaled identity, (groups,)
    pooling: float
    fitted: Elliptical
    known: dict[Any, Any] = field(default_factory=dict)  # axes and bases, found once

    @property
    def _log_unit(self) -> Array:
        return np.log(self.fitted.coordinates.unit[self.active])

    def _divisor(self, degrees: Array, emptied: AnyArray, g: int) -> Array:
        """What Ψ is divided by, given degrees (n,) or (n, d), and whether a class has lost its last row."""
        members = np.full(len(degrees), float(np.sum(self.varying.group == g)))
        size = len(self.active)
        if self.estimation == "map":
            return self.structure.mode_divisor(degrees, size, members)
        if self.estimation == "bayes":
            return self.structure.predictive_degrees(degrees, size)
        divisor = self.structure.divisor(degrees)
        if self.unbiased:
            classes = np.broadcast_to(self.varying.group_classes()[g], degrees.shape[1:]) - emptied
            divisor = divisor - self.structure.divisor(classes.astype(np.float64))
        return np.asarray(divisor)

    # -- densities

    def ready(self) -> LeftOut:
        """Densities of rows left out; what they have in common is found now, once for all threads."""
        return partial(self._log_density, self._squares())

    def _log_density(self, squares: Distances | None, rows: AnyArray, codes: Codes, weights: Array) -> Array:
        """log p(x | class), (K, n), of rows left out of what was learnt."""
        if squares is not None:
            quick = self._together(squares, rows, codes, weights)
            if quick is not None:
                return quick
        few = max(2**18 // max(rows.shape[1], 1), 256)
        if self._light or len(rows) <= few:
            return self._some(rows, codes, weights)
        density = np.empty((len(self.mean), len(rows)))
        for start in range(0, len(rows), few):  # what needs many arrays of the rows' size has them near
            part = slice(start, start + few)
            try:
                density[:, part] = self._some(rows[part], codes[part], weights[part])
            except CellError as error:
                raise error.at(start + error.row, error.column) from None
        return density

    @property
    def _light(self) -> bool:
        """Whether little more is needed than the densities of all rows."""
        quick = bool(self._alone.all()) and (self._plain or self._columns_apart)
        return quick or self._one_length or (self.structure.full and not self._plain)

    @cached_property
    def _one_group(self) -> bool:
        """Whether all classes share what they have of a covariance."""
        return bool(np.all(self.varying.group == self.varying.group[0]))

    @cached_property
    def _alone(self) -> AnyArray:
        """Whether a class shares its covariance with no other, (K,)."""
        return np.asarray(np.bincount(self.varying.group)[self.varying.group] == 1)

    @property
    def _sphered(self) -> bool:
        """Whether a scaled identity is mixed into covariances."""
        return self.intensity is not None

    def _some(self, rows: AnyArray, codes: Codes, weights: Array) -> Array:
        if self.structure.full and has_holes(rows):
            row, column = np.argwhere(np.isnan(rows))[0]
            raise MissingCellError(int(row), int(column), np.nan, MISSING, MISSING_HINT)
        everyone = bool(self.pooling) or self._one_group
        if self._one_length and not has_holes(rows):
            quick = self._by_lengths(rows, codes, weights)
            if quick is not None:
                return quick
        density = np.empty((len(self.mean), len(rows))) if everyone else self.fitted.log_density(rows)
        if self._plain and not everyone:
            done = self._from_densities(density, codes, weights)
            if done.all():
                return density
        local = np.asarray(self.fitted.coordinates.to_local(rows), dtype=np.float64)
        local = local if len(self.active) == local.shape[1] else local[:, self.active]
        if not self._plain or everyone:
            done = np.zeros(len(codes), dtype=bool)
            if len(self.active) and (self.structure.full or not has_holes(local)):
                if self.structure.full and self.pooling and not self._sphered and self._few_kinds(weights):
                    done = self._by_bases(density, local, codes, weights)
                elif self.structure.full and not self._plain and self._few_kinds(weights):
                    done = self._by_axes(density, local, codes, weights)
                elif self._columns_apart:
                    if not everyone:
                        done = self._by_class(density, local, codes, weights)
                    rest = np.flatnonzero(~done)
                    if len(rest):
                        part = density[:, rest]
                        done[rest] = self._by_columns(part, local[rest], codes[rest], weights[rest])
                        density[:, rest] = part
        for c in np.flatnonzero(np.bincount(codes[~done], minlength=1)).tolist():
            index = np.flatnonzero((codes == c) & ~done)
            members = np.flatnonzero(self.varying.group == self.varying.group[c])
            if self.pooling:
                members = np.arange(len(density))
            try:
                density[np.ix_(members, index)] = self._of_class(local[index], c, weights[index], members)
            except CellError as error:
                raise error.at(int(index[error.row]), error.column) from None
        return density

    @property
    def _plain(self) -> bool:
        """Whether full covariances are as the scatters give them, without any shrinkage."""
        return self.structure.full and self.intensity is None and not self.pooling and bool(len(self.active))

    def _from_densities(self, density: Array, codes: Codes, w: Array) -> AnyArray:
        """Put right the densities of rows under classes with full covariances of their own; return where that was done.

        What a row's own class makes of it tells its distance, and the other classes do not change. Where hardly
        anything is left without the row, too few digits are.
        """
        done = np.zeros(len(codes), dtype=bool)
        assert isinstance(self.fitted, GaussianConditionals | StudentConditionals)
        group, rows = self.varying.group, np.arange(len(codes))
        h = self.fitted.squared(density[codes, rows], codes)
        for c in np.flatnonzero(np.bincount(codes, minlength=1)).tolist():
            if not self._alone[c]:
                continue
            index = np.flatnonzero(codes == c)
            removal, distance = _removal(self.rows[c], w[index]), h[index] / self._before(int(group[c]))
            sure = removal.factor * distance < SURE
            if not sure.all():
                index, distance = index[sure], distance[sure]
                removal = _removal(self.rows[c], w[index])
            own, blank = np.zeros(len(index), dtype=np.intp), np.zeros((2, 1, len(index)))
            members = np.array([c])
            density[c, index] = self._downdated(
                int(group[c]), members, own, w[index], removal, distance, blank[0], blank[1]
            )[0]
            density[c, index[removal.gone]] = -np.inf
            done[index] = True
        return done

    def _squares(self) -> Distances | None:
        """Squared distances under Ψ, where all classes share one that no shrinkage has touched, and their means are
        near one another in its deviations: then they tell all that a row takes with it.
        """
        if not (self._plain and self._one_group):
            return None
        share = np.full(len(self.mean), 1.0 / self._before(0))
        found = Distances(self.fitted.covariance, self.fitted.mean, self.fitted.group, share)
        return found if found.form == "common" else None

    def _together(self, squares: Distances, rows: AnyArray, codes: Codes, w: Array) -> Array | None:
        """The same for all classes at once, where they share one covariance; None where cells are missing.

        δᵀΨ⁻¹r is half of what δᵀΨ⁻¹δ and rᵀΨ⁻¹r are more than the square of the step between the means.
        """
        distance = squares.scaled(self.fitted.coordinates.to_local(rows))
        if not all_finite(distance):
            return None
        h = np.maximum(distance[codes, np.arange(len(codes))], 0.0)
        twice = np.take(squares.apart, codes, axis=1)
        np.subtract(distance, twice, out=twice)
        twice += h
        return self._downdated(0, np.arange(len(self.mean)), codes, w, self._removal(codes, w), h, distance, twice)

    def _removal(self, codes: Codes, w: Array) -> Removal:
        """Rows of weight w out of their classes; found once for each class where all weigh the same."""
        if len(w) > len(self.rows) and all_same(w):
            return _part(_removal(self.rows, w[: len(self.rows)]), codes)
        return _removal(self.rows[codes], w)

    def _of_class(self, x: Array, c: int, w: Array, members: Index) -> Array:
        """Densities of rows of class c under the classes whose covariance they change."""
        missing = np.isnan(x)
        holes = bool(missing.any())
        kappa = np.broadcast_to(self.rows[c], x.shape[1:] if self.rows.ndim == 2 else ())
        mass = w[:, None] * ~missing if self.rows.ndim == 2 or holes else w
        removal = _removal(kappa, mass)
        gone = removal.gone
        r = np.where(missing, 0.0, x - self.mean[c])
        lost = np.asarray(gone if gone.ndim == 1 else (gone & ~missing).any(axis=1))
        out = (
            self._full(r, c, w, members, removal)
            if self.structure.full
            else self._diagonal(x, r, c, mass, members, removal)
        )
        out[members == c, lost] = -np.inf
        return out

    def _full(self, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        if self.intensity is None and not self.pooling:
            return self._one_class(r, c, w, members, removal)
        out = np.empty((len(members), len(r)))
        for i, k in enumerate(members.tolist()):
            delta = removal.moved[:, None] * r if k == c else r + (self.mean[c] - self.mean[k])
            out[i] = self._shrunk(r, delta, c, k, w, removal.factor, removal.gone)
        return out

    def _one_class(self, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        """By the factor of the covariance that all rows gave, for rows about the mean of their class."""
        g, width = int(self.varying.group[c]), self.fitted.dimension
        covariance, before = self.fitted.covariance, self._before(g)
        z = covariance.whiten(_spread(r, self.active, width), g)
        h = np.einsum("nd,nd->n", z, z) / before
        steps = covariance.whiten(_spread(self.mean[c] - self.mean[members], self.active, width), g)
        along = np.dot(steps / before, z.T)
        distance = 2.0 * along + (np.einsum("kd,kd->k", steps, steps) / before)[:, None] + h
        place = np.full(len(r), int(np.flatnonzero(members == c)[0]))
        return self._downdated(g, members, place, w, removal, h, distance, 2.0 * (along + h))

    def _before(self, g: int) -> float:
        """What the scale of a group was divided by, with all rows."""
        return float(self._divisor(self.degrees[g : g + 1], np.zeros(1), g)[0])

    def _downdated(
        self,
        g: int,
        members: Index,
        own: AnyArray,
        w: Array,
        removal: Removal,
        h: Array,
        distance: Array,
        twice: Array,
    ) -> Array:
        """Densities under the members of a group, (members, n), without each row; `own` is the place of its class.

        `distance` holds δᵀΨ⁻¹δ (overwritten), `twice` 2·δᵀΨ⁻¹r (overwritten), and `h` is rᵀΨ⁻¹r, with Ψ that of all
        rows.
        """
        covariance, mine = self.fitted.covariance, (own, np.arange(len(w)))
        rest = 1.0 - removal.factor * h
        singular: AnyArray = np.zeros(1, dtype=bool)
        if rest.min(initial=1.0) <= NOTHING:
            singular = (rest <= NOTHING) & (self.estimation == "mle")
            rest = np.where(singular, 1.0, np.maximum(rest, NOTHING))  # with a proper prior something is always left
        twice *= twice
        twice *= removal.factor / (4.0 * rest)
        distance += twice
        distance[mine] = removal.moved**2 * h / rest
        log_det = covariance.log_det[g] + covariance.rank * np.log(self._before(g)) + np.log(rest)
        alike = all_same(w) and not (self.unbiased and removal.gone.any())
        kinds = slice(0, 1) if alike else slice(None)  # of rows, as far as what is left to divide by goes
        divisor = self._divisor(self._fewer(g, w[kinds]), removal.gone[kinds], g)
        stretch: Array | None = None
        if self.estimation == "bayes":
            stretch = 1.0 + 1.0 / np.maximum(self.rows[members], NOTHING)
            distance[mine] *= stretch[own] / (1.0 + 1.0 / np.where(removal.left > 0.0, removal.left, 1.0))
        out = self._peak(distance, log_det, divisor, stretch, covariance.rank)
        if stretch is not None:
            alone = np.log1p(1.0 / np.where(removal.left > 0.0, removal.left, 1.0))
            out[mine] += 0.5 * covariance.rank * (np.log(stretch)[own] - alone)
        lost = singular | removal.gone
        if lost.any():
            out[mine] = np.where(lost, -np.inf, out[mine])
        return out

    def _fewer(self, g: int, w: Array) -> Array:
        """Degrees of a group without rows of weight w."""
        if self.estimation == "mle":
            return np.asarray(self.degrees[g] - w)
        spent = self.structure.degrees_of(w, len(self.active))
        return np.asarray(self.degrees[g] - spent)

    def _stretch(self, k: int, c: int, left: Array) -> Array:
        """How much wider a predictive is than the covariance: its mean is not known."""
        if self.estimation != "bayes":
            return np.ones(1)
        rows = left if k == c else self.rows[k]
        return np.asarray(1.0 + 1.0 / np.where(rows > 0.0, rows, 1.0))

    def _peak(self, distance: Array, log_det: Array, divisor: Array, stretch: Array | None, rank: int) -> Array:
        """Log-densities for squared distances under Ψ (overwritten), its log-determinant, and what it is divided by.

        Ψ of a class is stretched, where it is.
        """
        unit = np.log(self.fitted.coordinates.unit[self.fitted.covariance.owner]).sum()
        improper = divisor <= 0.0
        divisor = np.where(improper, 1.0, divisor)
        spread = 0.5 * (log_det - rank * np.log(divisor)) + unit
        density = distance
        if stretch is not None:
            spread = spread - log_gamma_ratio(divisor / 2.0, rank / 2.0) + 0.5 * rank * np.log(divisor * np.pi)
            density *= (1.0 / stretch)[:, None]
            np.log1p(density, out=density)
            density *= -0.5 * (divisor + rank)
            density -= 0.5 * rank * np.log(stretch)[:, None]
        else:
            density *= -0.5 * divisor
            spread = spread + 0.5 * rank * LOG_2PI
        density -= spread
        if improper.any():
            density[:, np.broadcast_to(improper, density.shape[1:])] = -np.inf
        return density

    # -- shrinkage

    def _by_bases(self, density: Array, x: Array, codes: Codes, w: Array) -> AnyArray:
        """Densities under covariances mixed with the pooled one, by squared distances; return where that was done.

        Under a class, rows of its own group and others leave two different bases behind, but for what a row itself has
        in them. In either the distances of a row from its own mean and from that of the class tell the rest.
        """
        done, group, removal = np.ones(len(codes), dtype=bool), self.varying.group, self._removal(codes, w)
        kinds, everyone = _weights(w), np.arange(len(self.mean))
        for weight in kinds:
            heavy = np.arange(len(codes)) if len(kinds) == 1 else np.flatnonzero(w == weight)
            self._in_bases(density, x, codes, removal, heavy, everyone, False, weight, done)
            for g in range(len(self.scale)):
                alike = heavy[group[codes[heavy]] == g]
                self._in_bases(density, x, codes, removal, alike, np.flatnonzero(group == g), True, weight, done)
        return done

    def _in_bases(
        self,
        density: Array,
        x: Array,
        codes: Codes,
        removal: Removal,
        index: Index,
        members: Index,
        same: bool,
        weight: float,
        done: AnyArray,
    ) -> None:
        """The same of some rows, all of one weight, under classes whose group is that of the rows, or is not."""
        every = len(index) == len(codes)
        found = self._bases(members, same, weight) if len(index) else None
        if found is None:
            done[index] = False
            return
        crossed, log_det, share = found
        mine, some = codes if every else codes[index], removal if every else _part(removal, index)
        to, h = crossed(x if every else x[index], mine)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            part = share[:, None] * some.factor
            twice = np.take(crossed.apart, mine, axis=1)
            np.subtract(h, twice, out=twice)
            twice += to
            twice *= twice
            rest = 1.0 - part * h
            part /= rest
            part *= 0.25
            twice *= part
            to += twice
            if same:
                place = np.searchsorted(members, mine), np.arange(len(mine))
                to[place] = some.moved**2 * h[place] / rest[place]
            fine = np.all(rest > 1.0 - SURE, axis=0) & ~some.gone
            to += np.log(rest, out=rest)
            to += log_det[:, None]
        to *= -0.5
        to -= self._log_unit.sum()
        fine &= np.all(np.isfinite(to), axis=0)
        if every:
            density[members] = to
        else:
            density[members[:, None], index] = to
        done[index[~fine]] = False

    def _bases(self, members: Index, same: bool, weight: float) -> tuple[Crossed, Array, Array] | None:
        """Squared distances under what rows of a weight leave of the covariances of some classes, log-determinants,
        and the shares of a row in them; None where one has not full rank, or lies too far from a mean.
        """
        key = ("bases", members.tobytes(), same, weight)
        if key not in self.known:
            found = [self._base(k, same, weight) for k in members.tolist()]
            known = [base for base in found if base is not None]
            factors, log_det, share = (np.array([base[i] for base in known]) for i in range(3))
            self.known[key] = (
                (Crossed(factors, self.mean, members), log_det, share) if len(known) == len(found) else None
            )
        return self.known[key]

    def _base(self, k: int, same: bool, weight: float) -> tuple[Array, float, float] | None:
        """A factor, the log-determinant, and the share of a row, of one of them."""
        base, share = self._mixture(same, k, weight, lost=False)
        turn = whitener(base) if np.isfinite(share) and np.isfinite(base).all() else None
        if turn is None:
            return None
        log_det = -2.0 * float(np.log(np.abs(np.diagonal(turn))).sum()) + len(base) * LOG_2PI
        covariance = DenseCovariance(turn[None], np.array([log_det]), np.arange(len(base)))
        squares = Distances(covariance, self.mean, np.zeros(len(self.mean), dtype=np.intp))
        return (turn, log_det, share) if squares.form == "common" else None

    def _by_axes(self, density: Array, x: Array, codes: Codes, w: Array) -> AnyArray:
        """Densities under shrunken covariances, by their axes; return where that was done.

        A row of class c leaves behind (1 − s)·a·(Λ + τ − e) − b·r rᵀ along the axes of a base Λ, with τ the spread that
        shrinkage adds and e the row's small part in that, so that 1/(Λ + τ − e) is a short power series in e with
        coefficients that all rows share. Where e is not small, or hardly anything is left, rows are counted one by one.
        """
        done = np.ones(len(codes), dtype=bool)
        removal, group = _removal(self.rows[codes], w), self.varying.group
        members = [np.array([k]) for k in range(len(self.mean))]
        if not self.pooling:
            members = [np.flatnonzero(group == g) for g in range(len(self.scale))]
        for some in members:
            alike = group[codes] == group[some[0]]
            for same in (True, False) if self.pooling else (True,):
                which = alike == same
                for weight, lost in self._kinds(w[which], removal.gone[which]):
                    index = np.flatnonzero(which & (w == weight) & (removal.gone == lost) if self.pooling else which)
                    every = len(index) == len(x)
                    fine = self._along(
                        density,
                        x if every else x[index],
                        codes[index],
                        w[index],
                        removal if every else _part(removal, index),
                        some,
                        index,
                        self._axes(int(some[0]), same, weight, lost),
                    )
                    done[index[~fine]] = False
        return done

    def _kinds(self, w: Array, lost: AnyArray) -> list[tuple[float, bool]]:
        """Weights of rows, and whether their classes are empty without them, where each has a base of its own."""
        if not len(w):
            return []
        if not self.pooling:
            return [(0.0, False)]
        return [(weight, bool(some)) for weight in _weights(w) for some in np.unique(lost[w == weight])]

    def _few_kinds(self, w: Array) -> bool:
        return not self.pooling or len(_weights(w)) <= FEW_KINDS

    def _axes(self, k: int, alike: bool, weight: float, lost: bool) -> tuple[Array, Array, float]:
        """Values and axes of the base of class k, for rows of its own group or not, and the share of a row in it."""
        key = (k if self.pooling else -1 - int(self.varying.group[k]), alike, weight, lost)
        if key not in self.known:
            base, share = (
                self._mixture(alike, k, weight, lost) if self.pooling else (self.scale[self.varying.group[k]], 1.0)
            )
            good = bool(np.isfinite(share) and np.isfinite(base).all())
            axes = np.linalg.eigh(base) if good else (np.zeros(len(base)), np.eye(len(base)))
            self.known[key] = (*axes, share)
        return self.known[key]

    def _along(
        self,
        density: Array,
        x: Array,
        codes: Codes,
        w: Array,
        removal: Removal,
        members: Index,
        index: Index,
        base: tuple[Array, Array, float],
    ) -> AnyArray:
        """Densities of some rows under classes that have a base in common; return where e is small.

        Under every power of the base the distances of a row from two means follow from products with the means:
        nothing is done for each pair of classes.
        """
        g, d, rows = int(self.varying.group[members[0]]), len(self.active), np.arange(len(codes))
        s = 0.0 if self.intensity is None else float(self.intensity[g])
        values, axes, share = base
        spread = values + (s * values.sum() / (d * (1.0 - s)) if s < 1.0 else np.inf)
        means = (self.mean - self.mean.mean(axis=0)) @ axes
        usable = s < 1.0 and spread[0] > 1e-9 * spread[-1]
        if not (usable and bool(np.all(np.abs(means) < NEAR * np.sqrt(np.maximum(spread, 0.0))))):
            return np.zeros(len(index), dtype=bool)
        part = removal.factor * share
        e, square, along = self._turned(x, axes, means, spread, part * (s / (d * (1.0 - s))), codes)
        fine = e < SMALL * spread[0]
        own, logs = along[codes, rows], np.zeros(len(codes))
        h = square - 2.0 * own
        distance = along[members] if len(members) < len(means) else along
        cross = (square - own) - distance
        distance *= -2.0
        distance += square
        largest = float(e.max(initial=0.0, where=fine)) / spread[0]
        order = max(int(np.ceil(np.log(1e-13) / np.log(max(largest, 1e-13)))), 1)
        grow = np.ones(len(codes))
        for p in range(1, order + 1):  # of 1/(spread − e), between the means
            power = spread**-p
            gram = (means * power) @ means.T
            lengths = np.diagonal(gram)
            more = np.take(gram[members], codes, axis=1)
            if p > 1:
                more *= grow
            cross += more
            distance += np.multiply.outer(lengths[members], grow) if p > 1 else lengths[members, None]
            h += grow * lengths[codes]
            grow = grow * e
            logs -= grow * (power.sum() / p)
        rest = 1.0 - part * h
        fine &= rest > 1.0 - SURE
        rest = np.where(fine, rest, 1.0)
        cross *= cross
        cross *= part / rest
        distance += cross
        place = np.full(len(self.mean), -1)
        place[members] = np.arange(len(members))
        mine = place[codes]
        within = np.flatnonzero(mine >= 0)
        distance[mine[within], within] = (removal.moved**2 * h / rest)[within]
        scale = np.full(len(codes), 1.0 - s)  # over what the base is divided by
        if not self.pooling:
            divisor = self._divisor(self.varying.group_weight()[g] - w, removal.gone, g)
            fine &= divisor > 0.0
            scale /= np.where(divisor > 0.0, divisor, 1.0)
        distance *= -0.5 / scale
        distance -= 0.5 * (logs + np.log(rest) + d * (np.log(scale) + LOG_2PI) + np.log(spread).sum())
        distance -= self._log_unit.sum()
        gone = within[removal.gone[within]]
        distance[mine[gone], gone] = -np.inf
        if len(index) == density.shape[1]:
            density[members] = distance
        else:
            density[members[:, None], index] = distance
        return np.asarray(fine)

    def _turned(
        self, x: Array, axes: Array, means: Array, spread: Array, part: Array, codes: Codes
    ) -> tuple[Array, Array, Array]:
        """For rows z about the centre of the means, along axes: e, zᵀ(spread − e)⁻¹z, and (classes, n) the same of z
        and the means. e is `part` of a row's squared distance from the mean of its class.

        What is as wide as the rows is cut to the cache.
        """
        centre, lengths = self.mean.mean(axis=0), np.einsum("kd,kd->k", means, means)
        (n, d), turn = x.shape, np.vstack([axes.T, means @ axes.T])  # rows along the axes, and along the means
        e, square, along = np.zeros(n), np.empty(n), np.empty((len(means), n))
        few = max(2**18 // d, 256)
        for start in range(0, n, few):
            some = slice(start, start + few)
            about = by_row(np.subtract, x[some], centre, scratch.array("about", len(x[some]), d))
            both = np.dot(turn, about.T, out=scratch.array("along", len(turn), len(about)))
            z, less, mine = both[:d], about.reshape(d, -1), codes[some]
            np.subtract(lengths[mine], 2.0 * both[d + mine, np.arange(len(mine))], out=e[some])
            e[some] += np.einsum("dn,dn->n", z, z)
            e[some] *= part[some]
            np.subtract(spread[:, None], np.minimum(e[some], SMALL * spread[0]), out=less)
            weighted = np.divide(z, less, out=less)
            np.einsum("dn,dn->n", z, weighted, out=square[some])
            np.matmul(means, weighted, out=along[:, some])
        return e, square, along

    def _mixture(self, same: bool, k: int, w: float, lost: bool) -> tuple[Array, float]:
        """The covariance of class k without a row of its group, or of another one, but for what the row has in it;
        and that one's share.
        """
        weight = self.varying.group_weight()
        g = int(self.varying.group[k])
        own = float(self._divisor(np.array([weight[g] - w * same]), np.array([lost and same]), g)[0])
        total = float(self.varying.total_weight) - w
        if self.unbiased:
            total -= len(self.varying.classes) - lost
        with np.errstate(divide="ignore", invalid="ignore"):
            mine, pooled = np.divide(1.0 - self.pooling, own), np.divide(self.pooling, total)
            base = np.nan_to_num(mine * self.scale[g], nan=0.0) + np.nan_to_num(
                pooled * self.scale.sum(axis=0), nan=0.0
            )
        return base, float(mine * same + pooled)

    def _shrunk(self, r: Array, delta: Array, c: int, k: int, w: Array, f: Array, lost: AnyArray) -> Array:
        """By the axes of the covariance, along which shrinkage adds the same to every variance."""
        out, d = np.zeros(len(r)), len(self.active)
        s = 0.0 if self.intensity is None else float(self.intensity[self.varying.group[k]])
        if not d:
            return out
        for weight, empty in {(float(a), bool(b)) for a, b in zip(w, lost, strict=True)}:
            index = np.flatnonzero((w == weight) & (lost == empty))
            same = bool(self.varying.group[k] == self.varying.group[c])
            base, share = self._mixture(same, k, weight, empty)
            if not (np.isfinite(share) and np.isfinite(base).all()):  # nobody is left to learn from
                out[index] = -np.inf
                continue
            unit = np.ones(d)
            if s == 0.0:  # no sphere is added, so that every column may have a unit of its own
                unit = np.sqrt(np.where(np.diagonal(base) > 0.0, np.diagonal(base), 1.0))
            values, axes = np.linalg.eigh(base / unit / unit[:, None])
            u, v = (r[index] / unit) @ axes, (delta[index] / unit) @ axes
            part = f[index] * share
            trace = values.sum() - part * np.einsum("nd,nd->n", u, u)
            variance = (1.0 - s) * values + (s * trace / d)[:, None]
            part = (1.0 - s) * part
            flat = (variance <= NOTHING * np.abs(values).max(initial=0.0)).any(axis=1)
            safe = np.where(flat[:, None], 1.0, variance)
            rest = 1.0 - part * (u * u / safe).sum(axis=1)
            singular = flat | (rest <= NOTHING)
            rest = np.where(singular, 1.0, rest)
            distance = (v * v / safe).sum(axis=1) + part * (u * v / safe).sum(axis=1) ** 2 / rest
            log_det = np.log(safe).sum(axis=1) + np.log(rest) + 2.0 * np.log(unit).sum()
            density = -0.5 * (d * LOG_2PI + log_det + distance) - self._log_unit.sum()
            out[index] = np.where(singular, -np.inf, density)
        return out

    # -- one variance for all columns

    @property
    def _one_length(self) -> bool:
        """Whether a row's distance from a mean is all that counts, and no column has missing cells."""
        usual = isinstance(self.structure, Spherical | Identity) and not self.pooling and bool(len(self.active))
        return usual and self.rows.ndim == 1 and self.degrees.ndim == 1

    @cached_property
    def _lengths(self) -> Distances:
        """Squared distances under the variance that all columns have."""
        return Distances(self.fitted.covariance, self.fitted.mean, self.fitted.group)

    def _by_lengths(self, rows: AnyArray, codes: Codes, w: Array) -> Array | None:
        """Densities of rows under one variance for all columns: distances are stretched; None where digits are lost."""
        fitted, group, d = self.fitted, self.varying.group, len(self.active)
        assert isinstance(fitted, GaussianConditionals | StudentConditionals)
        place, own = group[codes], (codes, np.arange(len(codes)))
        shared = self._one_group  # every row then changes every class, and else maybe its own alone
        square = self._lengths.scaled(fitted.coordinates.to_local(rows)) if shared else np.zeros((0, 0))
        density = square if shared else fitted.log_density(rows)
        mine = square[own] if shared else fitted.squared(density[own], codes)
        if not (all_finite(density) and fitted.distances.reach < NEAR and (shared or self._alone.all())):
            return None
        removal = self._removal(codes, w)
        rest, divisor, wider = np.ones((3, len(codes)))
        if self.structure.estimated:
            together = 1 if self.estimation == "mle" else d
            divisor = self._divisors(codes, w, removal)
            before = np.array([self._before(g) for g in range(len(self.scale))])
            rest -= removal.factor * mine * (together / (d * before[place]))
            if not (np.all(rest > 1.0 - SURE) and np.all(divisor > 0.0)):
                return None
            wider = rest * before[place] / divisor  # what is left of the variance
        bayes = self.estimation == "bayes"
        peak = fitted.covariance.log_det[place] + d * np.log(wider) + 2.0 * self._log_unit.sum()
        student = bayes and self.structure.estimated
        if student:
            peak = 0.5 * peak + 0.5 * d * np.log(divisor * np.pi) - log_gamma_ratio(divisor / 2.0, d / 2.0)
        else:
            peak = 0.5 * (peak + d * LOG_2PI)

        def told(square: Array, stretch: Array | float) -> Array:
            """From squared distances (overwritten) to log-densities."""
            square /= stretch
            if student:
                square /= wider * divisor
                np.log1p(square, out=square)
                square *= -0.5 * (divisor + d)
            else:
                square *= -0.5 / wider
            square -= peak
            square -= 0.5 * d * np.log(stretch)
            return square

        mine *= removal.moved**2
        left = 1.0 + 1.0 / np.where(removal.left > 0.0, removal.left, 1.0) if bayes else 1.0
        found = np.where(removal.gone, -np.inf, told(mine, left))
        if shared:
            told(square, (1.0 + 1.0 / np.maximum(self.rows, NOTHING))[:, None] if bayes else 1.0)
        density[own] = found
        return density

    # -- independent columns

    @property
    def _columns_apart(self) -> bool:
        """Whether every column has a variance of its own, and none has missing cells."""
        usual = not isinstance(self.structure, Spherical | Identity) and self.intensity is None and not self.pooling
        return usual and not self.structure.full and self.rows.ndim == 1 and self.degrees.ndim == 1

    def _by_class(self, density: Array, x: Array, codes: Codes, w: Array) -> AnyArray:
        """Densities of rows under their own classes, where each has variances of its own; return where that was done.

        Cells are gone through class by class. With q = f·r²/Ψ and t = q/(1 − q), −Σ log(1 − q) = Σ log(1 + t) is
        (Σq + 2·Σt)/3 − Σt²/6 but for Σt⁴/12: it is done where that is nothing.
        """
        group, d, bayes = self.varying.group, len(self.active), self.estimation == "bayes"
        removal = self._removal(codes, w)
        f, one = removal.factor, np.ones(d)
        stretch = 1.0 + 1.0 / np.where(removal.left > 0.0, removal.left, 1.0) if bayes else np.ones(1)
        share, sums, squares, tails = np.empty((4, len(codes)))
        order = np.argsort(codes.astype(np.min_scalar_type(len(self.mean))), kind="stable")  # short ones sort fastest
        ends = np.cumsum(np.bincount(codes)).tolist()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            wide = removal.moved**2 / f  # times t is the square of what is left of a distance, in units of Ψ′
            for c, (begin, end) in enumerate(itertools.pairwise([0, *ends])):
                if begin == end:
                    continue
                index = order[begin:end]
                part = f[index]
                t = np.take(x, index, axis=0, out=scratch.array("own", len(index), d), mode="clip")
                by_row(np.subtract, t, self.mean[c], t)
                t *= t
                if not all_same(part):
                    t *= (part / part[0])[:, None]
                scale = self.scale[group[c]] / part[0]
                if bayes:
                    share[index] = np.dot(t, 1.0 / scale)
                less = by_row(np.subtract, t, scale, scratch.array("less", len(index), d))
                t /= less  # −t: less is q − 1, times the scale
                sums[index], squares[index] = np.dot(t, -one), np.einsum("nd,nd->n", t, t)
                if bayes:
                    turned = scratch.array("turned", d, len(index))
                    tails[index] = sum_log1p(np.multiply(t.T, -wide[index] / stretch[index], out=turned))
            if isinstance(self.fitted, GaussianConditionals):  # densities tell
                before = np.array([self._before(g) for g in range(len(self.scale))])[group]
                share = f * self.fitted.squared(density[codes, np.arange(len(codes))], codes) / before[codes]
            divisor = self._divisors(codes, w, removal)
            logs = (share + 2.0 * sums) / 3.0 - squares / 6.0
            logs -= np.log(self.scale).sum(axis=1)[group[codes]] - d * np.log(divisor)
            found = 0.5 * logs - self._log_unit.sum()
            if bayes:
                found += d * (log_gamma_ratio(divisor / 2.0, 0.5) - 0.5 * np.log(divisor * np.pi * stretch))
                found -= 0.5 * (divisor + 1.0) * tails
            else:
                found -= 0.5 * (d * LOG_2PI + divisor * sums * wide)
        done = (share < SURE) & (squares < SERIES) & (divisor > 0.0) & np.isfinite(found) & self._alone[codes]
        mine = slice(None) if done.all() else np.flatnonzero(done)
        density[codes[mine], np.arange(len(codes))[mine]] = found[mine]
        return np.asarray(done)

    def _divisors(self, codes: Codes, w: Array, removal: Removal) -> Array:
        """What the scale of each row's group is divided by without it, (n,), where no cell is missing."""
        place = self.varying.group[codes]
        if all_same(w) and not self.unbiased:
            left = [self._divisor(self._fewer(g, w[:1]), np.zeros(1, dtype=bool), g) for g in range(len(self.scale))]
            return np.concatenate(left)[place]
        found = np.empty(len(codes))
        for g in np.flatnonzero(np.bincount(place)).tolist():
            here = np.flatnonzero(place == g)
            found[here] = self._divisor(self._fewer(g, w[here]), removal.gone[here], g)
        return found

    def _by_columns(self, density: Array, x: Array, codes: Codes, w: Array) -> AnyArray:
        """Densities of rows under the classes whose variances they change, all columns at once; return where done.

        Σ log(1 − f·r²/Ψ) and Σ log(1 + t²/ν) are logarithms of products.
        """
        group = self.varying.group
        place = group[codes]
        removal = self._removal(codes, w)
        divisor = self._divisors(codes, w, removal)
        turned = np.ascontiguousarray(x.T)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            r = turned - np.take(self.mean.T, codes, axis=1)
            r *= np.take(1.0 / np.sqrt(self.scale.T), place, axis=1)
            r *= r
            lost = r * -removal.factor
            share = lost.min(axis=0)
            rest = lost + 1.0
            logs = sum_log(rest) + np.log(self.scale).sum(axis=1)[place]
            logs -= len(turned) * np.log(divisor)
            r /= rest
        done = np.asarray((share > -SURE) & (divisor > 0.0) & np.isfinite(logs))
        peak = -0.5 * logs - self._log_unit.sum()
        bayes = self.estimation == "bayes"
        if bayes:
            peak += len(turned) * (log_gamma_ratio(divisor / 2.0, 0.5) - 0.5 * np.log(divisor * np.pi))
        else:
            peak -= 0.5 * len(turned) * LOG_2PI

        def told(square: Array, stretch: Array | float, some: Index | slice) -> Array:
            """From δ²/Ψ′ of some rows, (d, n), to their log-densities."""
            if not bayes:
                return np.asarray(peak[some] - 0.5 * divisor[some] * square.sum(axis=0))
            square /= stretch
            with np.errstate(over="ignore", invalid="ignore"):
                tail = sum_log1p(square)
            return np.asarray(peak[some] - 0.5 * (divisor[some] + 1.0) * tail - 0.5 * len(square) * np.log(stretch))

        if np.bincount(group).max() > 1:
            inverse = np.sqrt(1.0 / (rest * np.take(self.scale.T, place, axis=1)))
            for k in range(len(self.mean)):
                others: Any = slice(None) if self._one_group else np.flatnonzero(place == group[k])
                with np.errstate(over="ignore", invalid="ignore"):
                    square = turned[:, others] - self.mean[k][:, None]
                    square *= inverse[:, others]
                    square *= square
                density[k, others] = told(square, 1.0 + 1.0 / max(self.rows[k], NOTHING), others)
            done &= np.all(np.isfinite(density) | (place != group[:, None]), axis=0)
        stretch = 1.0 + 1.0 / np.where(removal.left > 0.0, removal.left, 1.0)
        own = told(r * removal.moved**2, stretch, slice(None))
        done &= np.isfinite(own)
        mine = np.flatnonzero(done)
        density[codes[mine], mine] = np.where(removal.gone, -np.inf, own)[mine]
        return done

    def _diagonal(self, x: Array, r: Array, c: int, mass: Array, members: Index, removal: Removal) -> Array:
        f, moved, left, gone = across(removal.factor), across(removal.moved), removal.left, removal.gone
        missing = np.isnan(x)
        holes = bool(missing.any())
        variance, degrees = self._variances(r, c, mass, f, gone)
        out = np.empty((len(members), len(x)))
        for i, k in enumerate(members.tolist()):
            if self.pooling:
                variance, degrees = self._pooled(r, c, k, mass, f, gone)
            delta = moved * r if k == c else x - self.mean[k]
            wide = variance * self._column_stretch(k, c, left) if self.estimation == "bayes" else variance
            good = bool(np.all(wide > 0.0))
            bad = np.zeros(wide.shape, dtype=bool) if good else ~(wide > 0.0)
            wide = wide if good else np.where(bad, 1.0, wide)
            squares = delta * delta / wide
            if not holes and (self.estimation != "bayes" or isinstance(self.structure, Identity)):
                peak = 0.5 * LOG_2PI * x.shape[1] + self._log_unit.sum()
                out[i] = -0.5 * (squares.sum(axis=1) + np.log(wide).sum(axis=1)) - peak
                if not good:
                    out[i][bad.any(axis=1)] = -np.inf
                continue
            squares = np.where(missing, 0.0, squares) if holes else squares
            logs = np.where(missing, 0.0, 0.5 * np.log(wide) + self._log_unit)
            if self.estimation != "bayes" or isinstance(self.structure, Identity):
                terms = np.where(missing, 0.0, -0.5 * (LOG_2PI + squares)) - logs
                out[i] = terms.sum(axis=1)
            elif isinstance(self.structure, Spherical):
                count = (~missing).sum(axis=1)
                nu = degrees[:, 0]
                peak = log_gamma_ratio(nu / 2.0, count / 2.0) - 0.5 * count * np.log(nu * np.pi)
                out[i] = peak - logs.sum(axis=1) - 0.5 * (nu + count) * np.log1p(squares.sum(axis=1) / nu)
            else:
                peak = log_gamma_ratio(degrees / 2.0, 0.5) - 0.5 * np.log(degrees * np.pi)
                terms = peak - 0.5 * (degrees + 1.0) * np.log1p(squares / degrees)
                out[i] = (np.where(missing, 0.0, terms) - logs).sum(axis=1)
            out[i][(bad & ~missing).any(axis=1)] = -np.inf
        return out

    def _column_stretch(self, k: int, c: int, left: Array) -> Array:
        stretch = self._stretch(k, c, left)
        if k == c:
            return across(stretch)
        return stretch if stretch.ndim else stretch[None]

    def _variances(self, r: Array, c: int, mass: Array, f: Array, gone: AnyArray) -> tuple[Array, Array]:
        """Variances (n, d) of the group of class c, and what its scale is divided by, (n, 1) or (n, d)."""
        g = int(self.varying.group[c])
        if isinstance(self.structure, Identity):
            unit = self.fitted.coordinates.unit[self.active]
            return np.broadcast_to(1.0 / unit**2, r.shape), np.ones((len(r), 1))
        together = 1 if self.estimation == "mle" else self.structure.columns_together(len(self.active))
        scale = self.scale[g] - together * self.structure.shape(f * r * r)
        before = self.scale[g]
        least = np.zeros(()) if self.estimation == "mle" else NOTHING * before
        scale = np.where(scale <= NOTHING * before, least, scale)
        spent = mass if self.estimation == "mle" else self.structure.degrees_of(mass, len(self.active))
        degrees = self.degrees[g] - spent
        divisor = across(self._divisor(degrees, gone, g))
        variance = scale / np.where(divisor > 0.0, divisor, np.nan)
        if self.intensity is not None:
            s = self.intensity[g]
            variance = (1.0 - s) * variance + s * variance.mean(axis=1, keepdims=True)
        return variance, divisor

    def _pooled(self, r: Array, c: int, k: int, mass: Array, f: Array, gone: AnyArray) -> tuple[Array, Array]:
        """The same of class k, where covariances are mixed with the pooled one."""
        group = self.varying.group
        g, same = int(group[k]), bool(group[k] == group[c])
        change = self.structure.shape(f * r * r)
        own = across(self._divisor(self.degrees[g] - mass * same, gone & same, g))
        total = self.varying.total_weight - mass
        if self.unbiased:
            total = total - (len(self.varying.classes) - gone)
        total = across(self.structure.divisor(total) if total.ndim == 2 else total)
        mixed = (1.0 - self.pooling) * (self.scale[g] - change * same) / own
        mixed = mixed + self.pooling * (self.structure.shape(self.scale.sum(axis=0)[None])[0] - change) / total
        s = 0.0 if self.intensity is None else float(self.intensity[g])
        return (1.0 - s) * mixed + s * mixed.mean(axis=1, keepdims=True), own


def pooling_of(shrinkage: object) -> float:
    """How much of the pooled covariance is mixed in."""
    return float(shrinkage.pooling) if isinstance(shrinkage, Regularized) else 0.0


def _spread(rows: Array, columns: Index, dimension: int) -> Array:
    """Rows of some columns among all of them."""
    if len(columns) == dimension:
        return rows
    wide = np.zeros((len(rows), dimension))
    wide[:, columns] = rows
    return wide
