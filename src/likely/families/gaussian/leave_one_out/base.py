"""Gaussian densities of rows that were learnt, each with itself left out: rank-one downdates, for all classes at once.

With κ the weight behind a class mean m (rows, and those that a prior counts for), r = x − m, and a row of weight w:

    κ′ = κ − w,   x − m′ = κ/κ′ · r,   Ψ′ = Ψ − f·r rᵀ,   f = w·κ/κ′,

so that with h = rᵀΨ⁻¹r, |Ψ′| = |Ψ|·(1 − f·h) and δᵀΨ′⁻¹δ = δᵀΨ⁻¹δ + f·(δᵀΨ⁻¹r)²/(1 − f·h). All classes that share
Ψ see it change; the mean of the row's own class moves too.

What Ψ is decides how: here is what all ways have in common, and each has a module of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from likely.errors import CellError, MissingCellError
from likely.families.base import LeaveOneOutDensity
from likely.families.estimation import Estimation
from likely.families.gaussian.covariance import Structure
from likely.families.gaussian.densities import Elliptical
from likely.numerics.arrays import MISSING, MISSING_HINT, all_same, has_missing
from likely.statistics.moments import Moments
from likely.typing import AnyArray, Array, Codes, Index

NEAR = 100.0  # class means within so many deviations of their centre lose no digits that count in products
SURE = 0.99  # a share of a scatter that may go before its digits must be counted anew
NOTHING = 1e-13  # a share of what was there, below which nothing is left
LITTLE = 1e-6  # the same where so few rows are left that there must be nothing


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """Rows taken out of their classes: what is left behind the mean, and by how much the rest moves."""

    left: Array  # κ′
    gone: AnyArray  # whether nothing is left
    moved: Array  # κ/κ′
    factor: Array  # w·κ/κ′

    @classmethod
    def of(cls, kappa: Array, w: Array) -> Removal:
        """Rows of weight w out of classes with the weight κ behind their means."""
        left = np.asarray(kappa - w)
        gone = left <= NOTHING * kappa
        moved = np.where(gone, 1.0, kappa / np.where(gone, 1.0, left))
        return cls(left, gone, moved, np.where(gone, 0.0, w * moved))

    def part(self, index: AnyArray) -> Removal:
        """Some of the rows."""
        return Removal(self.left[index], self.gone[index], self.moved[index], self.factor[index])


@dataclass(frozen=True, eq=False)
class LeaveOneOut(ABC):
    """What a Gaussian estimate is made of, before scatters are divided; `varying` are the columns with spread."""

    varying: Moments
    active: Index
    structure: Structure
    estimation: Estimation
    mean: Array  # (K, d)
    rows: Array  # κ, (K,) or (K, d)
    scale: Array  # Ψ, (groups, d, d) or (groups, d)
    degrees: Array  # what the divisor is derived from, (groups,) or (groups, d)
    unbiased: bool
    intensity: Array | None  # of a shrinkage toward a scaled identity, (groups,)
    pooling: float  # how much of the pooled covariance is mixed in
    fitted: Elliptical
    known: dict[Any, Any] = field(default_factory=dict)  # axes and bases, found once

    def ready(self) -> LeaveOneOutDensity:
        """Densities of rows left out; what they have in common is found now, once for all threads."""
        way, few = self._way(), self.too_few
        if not few.any() or not np.array_equal(self.varying.rows, self.varying.weight):
            return way

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            found, lost = way(rows, codes, weights), np.flatnonzero(few[codes])
            found[codes[lost], lost] = -np.inf
            return found

        return density

    def _way(self) -> LeaveOneOutDensity:
        return self.log_density

    @cached_property
    def too_few(self) -> AnyArray:
        """Whether a class is impossible without any of its rows: too few are left to determine a covariance, (K,).

        That is so whatever rounding says, but where a weight stands for several rows it is not gone with one of them.
        """
        moments = self.varying
        mixed = self.intensity is not None or bool(self.pooling)
        if self.estimation != Estimation.MLE or mixed or not self.structure.estimated or moments.rows.ndim == 2:
            return np.zeros(len(self.mean), dtype=bool)
        size = np.bincount(moments.group, moments.rows)[moments.group]
        classes = np.bincount(moments.group, moments.rows > 0)[moments.group] - (moments.rows == 1)
        rank = self.fitted.covariance.rank
        return np.asarray(size - 1 - classes < (rank if self.structure.full else min(rank, 1)))

    def quick(self, rows: AnyArray, codes: Codes, w: Array) -> tuple[Array, AnyArray]:
        """log p(x | class), (K, n), of rows left out, and for which rows that is right."""
        return self.start(rows), np.zeros(len(codes), dtype=bool)

    @abstractmethod
    def slow(self, x: Array, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        """The same of rows of class c for certain, under the classes whose covariance they change.

        `x` are the columns with spread, and `r` is what they are away from the mean of c, 0 where cells are missing.
        """

    def log_density(self, rows: AnyArray, codes: Codes, weights: Array) -> Array:
        """log p(x | class), (K, n), of rows left out of what was learnt; not finite where a cell is not."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._log_density(rows, codes, weights)

    @property
    def _few(self) -> int:
        """Rows that are looked at together, so that what needs many arrays of their size has them near."""
        return max(2**16 // max(self.fitted.dimension, 1), 256)

    def _log_density(self, rows: AnyArray, codes: Codes, weights: Array) -> Array:
        if self.structure.full and has_missing(rows):
            row, column = np.argwhere(np.isnan(rows))[0]
            raise MissingCellError(int(row), int(column), np.nan, MISSING, MISSING_HINT)
        density, done = self.quick(rows, codes, weights)
        if done.all():
            return density
        local = self.local(rows)
        for c in np.flatnonzero(np.bincount(codes[~done])).tolist():
            mine = np.flatnonzero((codes == c) & ~done)
            members = np.flatnonzero(self.varying.group == self.varying.group[c])
            if self.pooling:
                members = np.arange(len(density))
            for start in range(0, len(mine), self._few):
                index = mine[start : start + self._few]
                try:
                    density[np.ix_(members, index)] = self._of_class(local[index], c, weights[index], members)
                except CellError as error:
                    raise error.at(int(index[error.row]), error.column) from None
        return density

    def _of_class(self, x: Array, c: int, w: Array, members: Index) -> Array:
        """Densities of rows of class c under the classes whose covariance they change."""
        missing = np.isnan(x)
        kappa = np.broadcast_to(self.rows[c], x.shape[1:] if self.rows.ndim == 2 else ())
        removal = Removal.of(kappa, self.mass(missing, w))
        gone = removal.gone
        lost = np.asarray(gone if gone.ndim == 1 else (gone & ~missing).any(axis=1))
        r = x - self.mean[c]
        r[missing] = 0.0
        out = self.slow(x, r, c, w, members, removal)
        out[members == c, lost] = -np.inf
        return out

    # -- what all ways need

    def local(self, rows: AnyArray) -> Array:
        """The columns with spread, in the model's own units."""
        local = np.asarray(self.fitted.coordinates.to_local(rows), dtype=np.float64)
        return local if len(self.active) == local.shape[1] else local[:, self.active]

    def start(self, rows: AnyArray) -> Array:
        """Densities of all rows, (K, n), or room for them where every row changes those of every class."""
        everyone = bool(self.pooling) or self.one_group
        return np.empty((len(self.mean), len(rows))) if everyone else self.fitted.log_density(rows)

    def mass(self, missing: AnyArray, w: Array) -> Array:
        """What rows weigh, (n,), or (n, d) where cells are missing."""
        return w[:, None] * ~missing if self.rows.ndim == 2 or missing.any() else w

    @property
    def log_unit(self) -> Array:
        return np.log(self.fitted.coordinates.unit[self.active])

    def divisor(self, degrees: Array, emptied: AnyArray, g: int) -> Array:
        """What Ψ is divided by, given degrees (n,) or (n, d), and whether a class has lost its last row."""
        members = np.full(len(degrees), float(np.sum(self.varying.group == g)))
        size = len(self.active)
        if self.estimation == Estimation.MAP:
            return self.structure.mode_divisor(degrees, size, members)
        if self.estimation == Estimation.BAYES:
            return self.structure.predictive_degrees(degrees, size)
        divisor = self.structure.divisor(degrees)
        if self.unbiased:
            classes = np.broadcast_to(self.varying.group_classes()[g], degrees.shape[1:]) - emptied
            divisor = divisor - self.structure.divisor(classes.astype(np.float64))
        return np.asarray(divisor)

    @cached_property
    def one_group(self) -> bool:
        """Whether all classes share what they have of a covariance."""
        return bool(np.all(self.varying.group == self.varying.group[0]))

    @cached_property
    def alone(self) -> AnyArray:
        """Whether a class shares its covariance with no other, (K,)."""
        return np.asarray(np.bincount(self.varying.group)[self.varying.group] == 1)

    def removal(self, codes: Codes, w: Array) -> Removal:
        """Rows of weight w out of their classes; found once for each class where all weigh the same."""
        if len(w) > len(self.rows) and all_same(w):
            return Removal.of(self.rows, w[: len(self.rows)]).part(codes)
        return Removal.of(self.rows[codes], w)

    def before(self, g: int) -> float:
        """What the scale of a group was divided by, with all rows."""
        return float(self.divisor(self.degrees[g : g + 1], np.zeros(1), g)[0])

    def fewer(self, g: int, w: Array) -> Array:
        """Degrees of a group without rows of weight w."""
        if self.estimation == Estimation.MLE:
            return np.asarray(self.degrees[g] - w)
        spent = self.structure.degrees_of(w, len(self.active))
        return np.asarray(self.degrees[g] - spent)

    def stretch(self, k: int, c: int, left: Array) -> Array:
        """How much wider a predictive is than the covariance: its mean is not known."""
        if self.estimation != Estimation.BAYES:
            return np.ones(1)
        rows = left if k == c else self.rows[k]
        return np.asarray(1.0 + 1.0 / np.where(rows > 0.0, rows, 1.0))
