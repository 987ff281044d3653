"""Student t densities: the posterior predictives of Gaussians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from likely.families.gaussian.covariance import DenseCovariance, DiagonalCovariance
from likely.families.gaussian.elliptical import Elliptical
from likely.families.gaussian.expressions import is_complete
from likely.numerics.arrays import all_finite, has_missing
from likely.numerics.caches import cached_property
from likely.numerics.expressions import Cell, Expression, log1p, pick, square, total, where
from likely.numerics.special import log_gamma_ratio, product_minus_one
from likely.statistics.counts import across
from likely.typing import AnyArray, Array, Index


@dataclass(frozen=True, eq=False)
class Students(Elliptical):
    """Posterior predictives: Student t's."""

    degrees: Array = field(default_factory=lambda: np.zeros(0))  # (K,)


@dataclass(frozen=True, eq=False)
class StudentConditionals(Students):
    """Posterior predictives with a full or spherical covariance: one multivariate Student t per class."""

    def _scale(self) -> tuple[Array, Array]:
        return 1.0 / (self.degrees * self.stretch), np.zeros(self.n_classes)

    @cached_property
    def log_peak(self) -> Array:
        nu, r = self.degrees, self.covariance.rank
        peak = log_gamma_ratio(nu / 2.0, r / 2.0) - 0.5 * r * np.log(nu * np.pi)
        return np.asarray(peak - 0.5 * self.class_log_det - self.log_unit)

    def log_density(self, rows: AnyArray) -> Array:
        squared = self.distances.scaled(self.local(rows))
        if not all_finite(squared) and has_missing(rows):
            return self.split_by_missing(rows, self.log_density, self._missing_rows)
        np.log1p(squared, out=squared)
        squared *= -0.5 * (self.degrees + self.covariance.rank)[:, None]
        squared += self.log_peak[:, None]
        return squared

    def squared(self, density: Array, codes: AnyArray) -> Array:
        """The squared distances that correspond to log-densities (n,) of rows under one class each."""
        power = (self.degrees + self.covariance.rank)[codes] / 2.0
        logs = (self.log_peak[codes] - density) / power
        with np.errstate(over="ignore"):
            return np.asarray((self.degrees * self.stretch)[codes] * np.expm1(logs))

    def _missing_rows(self, rows: AnyArray) -> Array:
        """Log-densities of rows with missing values."""
        parts = None if isinstance(self.covariance, DiagonalCovariance) else self.observed(rows)
        if parts is None:
            return self.by_pattern(rows, lambda some, part: part.log_density(some))
        squared, log_det, count, unit = parts
        nu = self.degrees[:, None]
        peak = log_gamma_ratio(nu / 2.0, count / 2.0) - 0.5 * count * np.log(nu * np.pi) - 0.5 * log_det - unit
        return np.asarray(peak - 0.5 * (nu + count) * np.log1p(squared / nu))

    @property
    def has_independent_columns(self) -> bool:
        return False

    def column_log_densities(self, rows: AnyArray) -> Array:
        alone = IndependentStudents(
            self.mean, self.variances, self.group, self.stretch, self.coordinates, degrees=self.degrees
        )
        return alone.explain(rows)

    def _penalty(self, components: Array, label: int) -> Array:
        """(ν + d)/2 · log(1 + q/ν) · w_j²/q with q = Σ w_j²."""
        nu, squares = self.degrees[label], components * components
        q = squares.sum(axis=1)
        power = 0.5 * (nu + self.covariance.rank) * np.log1p(q / nu) / np.where(q > 0.0, q, 1.0)
        return np.asarray(squares * power[:, None])

    def _terms(self, rows: AnyArray, label: int) -> Array:
        nu, before = self.degrees[label], np.arange(self.covariance.rank, dtype=np.float64)
        peak = log_gamma_ratio((nu + before) / 2.0, 0.5) - 0.5 * np.log(nu * np.pi)
        steps = self.covariance.log_steps(int(self.group[label]))
        unit = 0.5 * np.log(self.stretch[label]) + self.log_units
        # Increments of (ν + d)/2 · log(1 + ‖z‖²/ν) with each component z_d.
        logs = np.log1p(np.cumsum(self.white(rows, label) ** 2, axis=1) / nu)
        increments = np.diff(logs * (nu + before + 1.0) / 2.0, axis=1, prepend=0.0)
        return np.asarray(peak - increments + steps - unit)

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        nu = self.degrees[label]
        chi = rng.chisquare(nu, size=(n, 1)) / nu
        return self.colored(rng.standard_normal((n, self.covariance.rank)) / np.sqrt(chi), label)

    # -- expressions

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        cells, degrees = self._bounded(cells), self.degrees.tolist()
        if isinstance(self.covariance, DenseCovariance) and is_complete(cells):
            peaks, rank = self.log_peak.tolist(), self.covariance.rank
            return [
                peaks[k] - (nu + rank) / 2.0 * log1p(self._squared_distance(cells, k) / nu)
                for k, nu in enumerate(degrees)
            ]
        used = [cells[j] for j in self.covariance.owner.tolist()]
        count, counts = total([where(cell.missing, 0.0, 1.0) for cell in used]), np.arange(len(used) + 1.0)
        found = []
        for nu, (distance, scale) in zip(degrees, self._distances_and_scales(cells), strict=True):
            peaks = log_gamma_ratio(np.full_like(counts, nu / 2.0), counts / 2.0) - 0.5 * counts * np.log(nu * np.pi)
            found.append(pick(count, peaks) - scale - 0.5 * (nu + count) * log1p(distance / nu))
        return found


@dataclass(frozen=True, eq=False)
class IndependentStudents(Students):
    """Posterior predictives with diagonal covariances: a Student t per column and class.

    `degrees` are (K,), or (K, varying columns) where values were missing.
    """

    def _scale(self) -> tuple[Array, Array]:
        return np.ones(self.n_classes), np.zeros(self.n_classes)

    @property
    def width(self) -> int:
        return 4 * self.dimension + self.n_classes

    def marginal(self, columns: Index) -> Self:
        degrees = self.degrees
        if degrees.ndim == 2:
            degrees = degrees[:, np.isin(self.covariance.owner, columns)]
        return replace(super().marginal(columns), degrees=degrees)

    def _peaks(self, label: int) -> Array:
        """log-density of each column at its mean, (rank,)."""
        nu = np.broadcast_to(self.degrees[label], (self.covariance.rank,))
        unit = 0.5 * np.log(self.stretch[label]) + self.log_units
        steps = self.covariance.log_steps(int(self.group[label]))
        return np.asarray(log_gamma_ratio(nu / 2.0, 0.5) - 0.5 * np.log(nu * np.pi) + steps - unit)

    @cached_property
    def log_peak(self) -> Array:
        return np.array([self._peaks(k).sum() for k in range(self.n_classes)])

    def _penalty(self, components: Array, label: int) -> Array:
        nu = self.degrees[label]
        return np.asarray((nu + 1.0) / 2.0 * np.log1p(components**2 / nu))

    def _terms(self, rows: AnyArray, label: int) -> Array:
        terms = self._peaks(label) - self._penalty(self.white(rows, label), label)
        np.copyto(terms, 0.0, where=np.isnan(rows[:, self.covariance.owner]))
        return np.asarray(terms)

    def log_density(self, rows: AnyArray) -> Array:
        density = self._by_products(rows) if self.degrees.ndim == 1 else None
        if density is not None:
            return density
        return np.array([self._terms(rows, k).sum(axis=1) for k in range(self.n_classes)])

    @cached_property
    def _scales(self) -> list[Array]:
        """Factors from x − mean to z/√ν, (rank, 1) for each class."""
        ones = np.ones((1, self.dimension))
        white = [self.covariance.whiten(ones, int(g))[0] for g in self.group]
        return [(z / np.sqrt(nu * s))[:, None] for z, nu, s in zip(white, self.degrees, self.stretch, strict=True)]

    def _by_products(self, rows: AnyArray) -> Array | None:
        """Log-densities with one logarithm per row, of a product over columns; None if a product overflows."""
        density = np.empty((self.n_classes, len(rows)))
        local, owner = self.local(rows), self.covariance.owner
        turned = np.ascontiguousarray(local.T[owner], dtype=np.float64)  # contiguous columns
        for k, nu in enumerate(self.degrees):
            with np.errstate(over="ignore", invalid="ignore"):
                z = turned - self.mean[k, owner][:, None]
                z *= self._scales[k]
                np.multiply(z, z, out=z)
                z = product_minus_one(z)
            if not all_finite(z):
                return None
            density[k] = self.log_peak[k] - (nu + 1.0) / 2.0 * np.log1p(z)
        return density

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        nu = np.broadcast_to(self.degrees[label], (self.covariance.rank,))
        chi = rng.chisquare(nu, size=(n, len(nu))) / nu
        return self.colored(rng.standard_normal((n, len(nu))) / np.sqrt(chi), label)

    # -- expressions

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        deviations, peaks = self._deviations(), [self._peaks(k) for k in range(self.n_classes)]
        nu = np.broadcast_to(across(self.degrees), deviations.shape)

        def term(z: Expression, k: int, i: int) -> Expression:
            return float(peaks[k][i]) - float((nu[k, i] + 1.0) / 2.0) * log1p(square(z))

        return self._sums_of_columns(self._bounded(cells), deviations * np.sqrt(nu), term)
