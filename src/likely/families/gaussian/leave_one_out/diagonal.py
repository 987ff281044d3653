"""Leave-one-out densities with diagonal, spherical and identity covariances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.families.estimation import Estimation
from likely.families.gaussian.covariance import Identity, Spherical
from likely.families.gaussian.leave_one_out.base import ROUNDING, LeaveOneOut, Removal
from likely.numerics.arrays import all_finite
from likely.numerics.special import LOG_2PI, log_gamma_ratio, product_minus_one
from likely.statistics.counts import across
from likely.typing import AnyArray, Array, Index


@dataclass(frozen=True, eq=False)
class LeaveOneOutDiagonal(LeaveOneOut):
    """Leave-one-out with one variance per column, or one for all columns."""

    def class_log_density(self, x: Array, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        f, inflation, emptied = across(removal.factor), across(removal.inflation), removal.emptied
        missing = np.isnan(x)
        mass, observed = self.mass(missing, w), np.ones((1, x.shape[1]), dtype=bool)
        if missing.any():
            x, observed = np.where(missing, 0.0, x), ~missing
        out = np.empty((len(members), len(x)))
        columns: _Columns | None = None
        if isinstance(self.structure, Identity):
            columns = _Columns.of_unit_variance(observed, self.fitted.coordinates.unit[self.active])
        for i, k in enumerate(members.tolist()):
            if columns is None or self.pooling:
                columns = _Columns.of(*self._variances(r, c, k, mass, f, emptied), observed, self.log_unit)
            delta = inflation * r if k == c else x - self.mean[k]
            delta *= delta
            out[i] = self._one_class(columns, delta, self.stretch(k, c, removal.left), k == c)
        return out

    def _one_class(self, columns: _Columns, squares: Array, stretch: Array, own: bool) -> Array:
        """Log-densities (n,) of rows whose squared distances from the mean of a class are given, (n, d)."""
        if self.estimation != Estimation.BAYES:
            return columns.gaussian(squares)
        stretch = across(stretch) if own else np.atleast_2d(stretch)
        squares /= stretch
        wider = 0.5 * _over_columns(columns.observed, np.log(stretch))
        if isinstance(self.structure, Identity):
            return np.asarray(columns.gaussian(squares) - wider)
        together = isinstance(self.structure, Spherical)
        return np.asarray((columns.student(squares) if together else columns.students(squares)) - wider)

    def _variances(self, r: Array, c: int, k: int, mass: Array, f: Array, emptied: AnyArray) -> tuple[Array, Array]:
        """Variances of class k without rows of class c, (n, d) or (n, 1), and the divisor of its scale."""
        group, likelihood = self.varying.group, self.estimation == Estimation.MLE
        g, same = int(group[k]), bool(group[k] == group[c])
        columns = slice(0, 1) if isinstance(self.structure, Spherical) else slice(None)  # all columns have the same
        together = 1 if likelihood else self.structure.columns_together(len(self.active))
        whole, change = self.scale[g, columns], self.structure.shape(r * r * (together * f))[:, columns]
        scale = whole - change * same
        least = np.zeros(()) if likelihood else ROUNDING * whole
        np.copyto(scale, least, where=scale <= ROUNDING * whole)
        divisor = across(self.divisor(self.remaining_degrees(g, mass * same), emptied & same, g))
        variance = scale / np.where(divisor > 0.0, divisor, np.nan)
        if self.pooling:
            total = self.varying.total_weight - mass
            if self.unbiased:
                total = total - (len(self.varying.classes) - emptied)
            pooled = (self.scale.sum(axis=0)[columns] - change) / across(self.structure.divisor(total))
            variance = (1.0 - self.pooling) * variance + self.pooling * pooled
        if self.intensity is not None:
            s = self.intensity[g]
            variance = (1.0 - s) * variance + s * variance.mean(axis=1, keepdims=True)
        return variance, divisor


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Independent columns whose variances differ from row to row. Missing values contribute nothing."""

    observed: AnyArray  # (n, d), or (1, d) where no value is missing
    inverse: Array  # 1/variance, (n, d); 0 for missing values
    degrees: Array  # of freedom, (n, 1) or (n, d)
    log_scale: Array  # Σ ½·log variance + log unit, (n,); infinite where a variance is 0

    @classmethod
    def of(cls, variance: Array, degrees: Array, observed: AnyArray, log_unit: Array) -> _Columns:
        usable = observed & (variance > 0.0)
        complete = bool(usable.all())
        safe = variance if complete else np.where(usable, variance, 1.0)
        log_scale = 0.5 * _over_columns(observed, np.log(safe)) + observed @ log_unit
        inverse = 1.0 / safe
        if not complete:
            log_scale[(observed & ~usable).any(axis=1)] = np.inf
            inverse *= observed
        return cls(observed, inverse, degrees, log_scale)

    @classmethod
    def of_unit_variance(cls, observed: AnyArray, unit: Array) -> _Columns:
        """Of variances of 1 outside of the local units; their logarithms and those of the units cancel."""
        return cls(observed, observed * unit**2, np.ones((1, 1)), np.zeros(1))

    def gaussian(self, squares: Array) -> Array:
        """Of Gaussian columns: −½·Σ (squares/variance + log 2π) − Σ log scale."""
        distance = np.einsum("nd,nd->n", squares, self.inverse)
        return np.asarray(-0.5 * (distance + LOG_2PI * self.observed.sum(axis=1)) - self.log_scale)

    def student(self, squares: Array) -> Array:
        """Of one Student t of all columns."""
        nu, count = self.degrees[:, 0], self.observed.sum(axis=1)
        distance = np.einsum("nd,nd->n", squares, self.inverse)
        peak = log_gamma_ratio(nu / 2.0, count / 2.0) - 0.5 * count * np.log(nu * np.pi)
        return np.asarray(peak - self.log_scale - 0.5 * (nu + count) * np.log1p(distance / nu))

    def students(self, squares: Array) -> Array:
        """Of one Student t for each column; with one logarithm per row, of a product over columns, if it is finite."""
        nu, z = self.degrees, squares * self.inverse / self.degrees
        peak = _over_columns(self.observed, log_gamma_ratio(nu / 2.0, 0.5) - 0.5 * np.log(nu * np.pi))
        if nu.shape[1] == 1:
            with np.errstate(over="ignore", invalid="ignore"):
                product = product_minus_one(z.T.copy())
            if all_finite(product):
                return np.asarray(peak - 0.5 * (nu[:, 0] + 1.0) * np.log1p(product) - self.log_scale)
        return np.asarray(peak - _over_columns(self.observed, 0.5 * (nu + 1.0) * np.log1p(z)) - self.log_scale)


def _over_columns(observed: AnyArray, terms: Array) -> Array:
    """The sum of the terms of observed values, (n, d), or of one term for all of them, (n, 1), over the columns."""
    if terms.shape[1] == 1:
        return observed.sum(axis=1) * terms[:, 0]
    return np.einsum("nd->n", terms) if observed.all() else np.where(observed, terms, 0.0).sum(axis=1)
