"""Leave-one-out densities of Gaussians: rank-one downdates, for all classes at once.

With κ the weight of a class mean m (rows and the pseudo-rows of a prior), r = x − m, and a held-out row of weight w:

    κ′ = κ − w,   x − m′ = κ/κ′ · r,   Ψ′ = Ψ − f·r rᵀ,   f = w·κ/κ′,

so that with h = rᵀΨ⁻¹r, |Ψ′| = |Ψ|·(1 − f·h) and δᵀΨ′⁻¹δ = δᵀΨ⁻¹δ + f·(δᵀΨ⁻¹r)²/(1 − f·h). Ψ changes for
all classes that share it; the mean changes for the class of the row.

Each covariance structure has its own module; this one holds what they have in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likely.errors import CellError
from likely.families.base import LeaveOneOutDensity
from likely.families.estimation import Estimation
from likely.families.gaussian.covariance import Structure
from likely.families.gaussian.elliptical import Elliptical
from likely.numerics.arrays import all_same
from likely.numerics.caches import cached_property
from likely.statistics.moments import Moments
from likely.typing import AnyArray, Array, Codes, Index

ROUNDING = 1e-13  # a smaller fraction of the original value is rounding
SINGULAR_ROUNDING = 1e-6  # the same where too few rows remain for full rank


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """Rows held out of their classes: the remaining weight of the mean, and the factors of the downdate."""

    left: Array  # κ′
    emptied: AnyArray  # whether no weight remains
    inflation: Array  # κ/κ′
    factor: Array  # w·κ/κ′

    @classmethod
    def of(cls, kappa: Array, w: Array) -> Removal:
        """Rows of weight w held out of classes whose means have weight κ."""
        left = np.asarray(kappa - w)
        emptied = left <= ROUNDING * kappa
        inflation = np.where(emptied, 1.0, kappa / np.where(emptied, 1.0, left))
        return cls(left, emptied, inflation, np.where(emptied, 0.0, w * inflation))

    def part(self, index: AnyArray) -> Removal:
        """Some of the rows."""
        return Removal(self.left[index], self.emptied[index], self.inflation[index], self.factor[index])


@dataclass(frozen=True, eq=False)
class LeaveOneOut(ABC):
    """The sums behind a Gaussian estimate, before scatters are divided; `varying` are those of non-constant columns."""

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
    pooling: float  # weight of the pooled covariance
    fitted: Elliptical
    cache: dict[Any, Any] = field(default_factory=dict)  # eigenvectors that are computed once

    def evaluator(self) -> LeaveOneOutDensity:
        """The function that evaluates leave-one-out densities; what rows share is computed before threads start."""
        if not len(self.active):  # no column varies, so that no row has information on its class
            return lambda rows, codes, weights: np.zeros((len(self.mean), len(rows)))
        way, few = self._evaluator(), self.too_few
        if not few.any() or not np.array_equal(self.varying.rows, self.varying.weight):
            return way

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            found, lost = way(rows, codes, weights), np.flatnonzero(few[codes])
            found[codes[lost], lost] = -np.inf
            return found

        return density

    def _evaluator(self) -> LeaveOneOutDensity:
        return self.log_density

    @cached_property
    def too_few(self) -> AnyArray:
        """Whether a class has too few rows for a covariance once one of them is held out, (K,).

        Rounding may hide that. It does not hold where a weight stands for several rows.
        """
        moments = self.varying
        mixed = self.intensity is not None or bool(self.pooling)
        if self.estimation != Estimation.MLE or mixed or not self.structure.estimated or moments.rows.ndim == 2:
            return np.zeros(len(self.mean), dtype=bool)
        size = np.bincount(moments.group, moments.rows)[moments.group]
        classes = np.bincount(moments.group, moments.rows > 0)[moments.group] - (moments.rows == 1)
        rank = self.fitted.covariance.rank
        return np.asarray(size - 1 - classes < (rank if self.structure.full else min(rank, 1)))

    @abstractmethod
    def class_log_density(self, x: Array, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        """Leave-one-out log-densities of rows of class c, under the classes whose covariance they change.

        `x` are the columns that vary, and `r` their differences from the mean of c, 0 for missing values.
        """

    def log_density(self, rows: AnyArray, codes: Codes, weights: Array) -> Array:
        """Leave-one-out log p(x | class), (K, n); not finite where a value is not."""
        with np.errstate(over="ignore", invalid="ignore"):
            density = self.initial_log_density(rows)
            done = self.update_together(density, codes, weights)
            return density if done.all() else self._update(density, rows, codes, weights, done)

    def update_together(self, density: Array, codes: Codes, w: Array) -> AnyArray:
        """Update the densities of all rows at once, in place; return for which rows that is accurate."""
        return np.zeros(len(codes), dtype=bool)

    @property
    def _chunk_rows(self) -> int:
        """Rows that are evaluated together, so that temporary arrays stay in the cache."""
        return max(2**16 // max(self.fitted.dimension, 1), 256)

    def _update(self, density: Array, rows: AnyArray, codes: Codes, weights: Array, done: AnyArray) -> Array:
        """Update the densities of the other rows than those that are done, class by class."""
        local = self.local(rows)
        for c in np.flatnonzero(np.bincount(codes[~done])).tolist():
            mine = np.flatnonzero((codes == c) & ~done)
            members = np.flatnonzero(self.varying.group == self.varying.group[c])
            if self.pooling:
                members = np.arange(len(density))
            for start in range(0, len(mine), self._chunk_rows):
                index = mine[start : start + self._chunk_rows]
                try:
                    density[np.ix_(members, index)] = self._changed_log_density(
                        local[index], c, weights[index], members
                    )
                except CellError as error:
                    raise error.at(int(index[error.row]), error.column) from None
        return density

    def _changed_log_density(self, x: Array, c: int, w: Array, members: Index) -> Array:
        """Densities of rows of class c under the classes whose covariance they change."""
        missing = np.isnan(x)
        kappa = np.broadcast_to(self.rows[c], x.shape[1:] if self.rows.ndim == 2 else ())
        removal = Removal.of(kappa, self.mass(missing, w))
        emptied = removal.emptied
        lost = np.asarray(emptied if emptied.ndim == 1 else (emptied & ~missing).any(axis=1))
        r = x - self.mean[c]
        r[missing] = 0.0
        out = self.class_log_density(x, r, c, w, members, removal)
        out[members == c, lost] = -np.inf
        return out

    def local(self, rows: AnyArray) -> Array:
        """The columns that vary, in local units."""
        local = np.asarray(self.fitted.coordinates.to_local(rows), dtype=np.float64)
        return local if len(self.active) == local.shape[1] else local[:, self.active]

    def initial_log_density(self, rows: AnyArray) -> Array:
        """Densities of all rows, (K, n); uninitialized where every row changes the densities of every class."""
        density, step = np.empty((len(self.mean), len(rows))), self._chunk_rows
        for start in range(0, 0 if self.pooling or self.one_group else len(rows), step):
            density[:, start : start + step] = self.fitted.log_density(rows[start : start + step])
        return density

    def mass(self, missing: AnyArray, w: Array) -> Array:
        """Weights of rows, (n,), or (n, d) where values are missing."""
        return w[:, None] * ~missing if self.rows.ndim == 2 or missing.any() else w

    @property
    def log_unit(self) -> Array:
        return np.log(self.fitted.coordinates.unit[self.active])

    def divisor(self, degrees: Array, emptied: AnyArray, g: int) -> Array:
        """The divisor of Ψ, given degrees (n,) or (n, d), and whether the class has no row left."""
        members = np.full(len(degrees), float(np.sum(self.varying.group == g)))
        size = len(self.active)
        if self.estimation == Estimation.MAP:
            return self.structure.mode_divisor(degrees, size, members)
        if self.estimation == Estimation.BAYES:
            # A class is emptied under a flat prior alone, which spends one degree of freedom per mean.
            regained = self.structure.degrees_of(np.asarray(emptied, dtype=np.float64), size)
            return self.structure.predictive_degrees(degrees + regained, size)
        divisor = self.structure.divisor(degrees)
        if self.unbiased:
            classes = np.broadcast_to(self.varying.group_classes()[g], degrees.shape[1:]) - emptied
            divisor = divisor - self.structure.divisor(classes.astype(np.float64))
        return np.asarray(divisor)

    @cached_property
    def one_group(self) -> bool:
        """Whether all classes share one covariance."""
        return bool(np.all(self.varying.group == self.varying.group[0]))

    @cached_property
    def sole_member(self) -> AnyArray:
        """Whether a class has a per-class covariance, (K,)."""
        return np.asarray(np.bincount(self.varying.group)[self.varying.group] == 1)

    def removal(self, codes: Codes, w: Array) -> Removal:
        """Rows of weight w held out of their classes; computed per class where all weights are equal."""
        if len(w) > len(self.rows) and all_same(w):
            return Removal.of(self.rows, w[: len(self.rows)]).part(codes)
        return Removal.of(self.rows[codes], w)

    @cached_property
    def full_divisors(self) -> list[float]:
        """The divisors of the scales of all groups, with all rows."""
        return [float(self.divisor(self.degrees[g : g + 1], np.zeros(1), g)[0]) for g in range(len(self.degrees))]

    def remaining_degrees(self, g: int, w: Array) -> Array:
        """Degrees of freedom of a group without a row of weight w."""
        if self.estimation == Estimation.MLE:
            return np.asarray(self.degrees[g] - w)
        spent = self.structure.degrees_of(w, len(self.active))
        return np.asarray(self.degrees[g] - spent)

    def stretch(self, k: int, c: int, left: Array) -> Array:
        """By how much the uncertainty of the mean widens a predictive, 1 + 1/κ."""
        if self.estimation != Estimation.BAYES:
            return np.ones(1)
        rows = left if k == c else self.rows[k]
        return np.asarray(1.0 + 1.0 / np.where(rows > 0.0, rows, 1.0))
