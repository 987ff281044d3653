"""Gaussian class-conditional densities.

Natural form: u(x) = (x, ½·x xᵀ), θ = (Σ⁻¹μ, −Σ⁻¹), A = ½·μᵀΣ⁻¹μ + ½·log|Σ|, h = (2π)^(−d/2). With a pooled
covariance the part of θ·u(x) that is quadratic in x is the same for every class: it moves into the carrier, and the
rest is linear in x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from likely.families.base import ExponentialConditionals
from likely.families.gaussian.covariance import DenseCovariance, DiagonalCovariance
from likely.families.gaussian.elliptical import Elliptical
from likely.families.gaussian.expressions import Factored, is_complete
from likely.families.gaussian.mahalanobis import MAX_LINEAR_REACH
from likely.families.quadratic import Quadratic
from likely.numerics.arrays import all_finite, float_rows, has_missing
from likely.numerics.caches import cached_property
from likely.numerics.expressions import Cell, Expression, constant, linear, square, total
from likely.numerics.missingness import patterns
from likely.numerics.special import LOG_2PI
from likely.typing import AnyArray, Array

DISTANT = -1e6  # log-densities whose rounding error, about 1e-10, would show in the differences between classes


@dataclass(frozen=True, eq=False)
class GaussianConditionals(Elliptical, ExponentialConditionals):
    """Gaussian class-conditionals with plugged-in means and covariances."""

    def log_density(self, rows: AnyArray) -> Array:
        density = self.distances.scaled(self.local(rows))
        if not all_finite(density) and has_missing(rows):
            return self.split_by_missing(rows, self.log_density, self._missing_rows)
        return density

    def _scale(self) -> tuple[Array, Array]:
        return -0.5 / self.stretch, self.log_peak

    @cached_property
    def log_peak(self) -> Array:
        return np.asarray(-0.5 * (self.class_log_det + self.covariance.rank * LOG_2PI) - self.log_unit)

    def squared(self, density: Array, codes: AnyArray) -> Array:
        """The squared distances that correspond to log-densities (n,) of rows under one class each."""
        return np.asarray(2.0 * self.stretch[codes] * (self.log_peak[codes] - density))

    @cached_property
    def is_linear(self) -> bool:
        """Whether the covariance is pooled, so that scores are linear in x."""
        return self.distances.shared and bool(np.all(self.stretch == self.stretch[0]))

    @cached_property
    def _centred_weights(self) -> tuple[Array, Array]:
        """Weights and intercepts of local rows about the centre of the means."""
        g, root = int(self.group[0]), np.sqrt(self.stretch[0])
        white = self.covariance.whiten(self.mean - self.distances.centre, g) / root
        basis = self.covariance.whiten(np.eye(self.dimension), g) / root
        with np.errstate(over="ignore", invalid="ignore"):
            return white @ basis.T, -0.5 * np.einsum("kr,kr->k", white, white)

    @cached_property
    def _linear_weights(self) -> tuple[Array, Array, bool]:
        """Weights and intercepts of local rows, and whether rows must be centred first."""
        centre, (weights, intercept) = self.distances.centre, self._centred_weights
        with np.errstate(over="ignore", invalid="ignore"):
            far = not (np.abs(weights) @ np.abs(centre)).max(initial=0.0) <= MAX_LINEAR_REACH
            return weights, intercept if far else intercept - weights @ centre, far

    @property
    def width(self) -> int:
        return 2 * self.n_classes if self._by_line else self.distances.width

    @cached_property
    def _by_line(self) -> bool:
        return self.is_linear and self.distances.reach <= MAX_LINEAR_REACH

    def scores(self, rows: AnyArray) -> Array:
        if not self._by_line:
            return self.log_density(rows)
        scores = self.linear_scores(rows)
        if not all_finite(scores) and has_missing(rows):
            return self.split_by_missing(rows, self.linear_scores, self._missing_scores)
        return scores

    def _missing_scores(self, rows: AnyArray) -> Array:
        """Scores of rows with missing values under a pooled covariance: log-densities, linear scores of distant rows.

        Log-densities of distant rows are so large that they round off the differences between classes.
        """
        scores = self._missing_rows(rows)
        far = scores.min(axis=0) < DISTANT
        if far.any():
            scores[:, far] = self.by_pattern(rows[far], lambda some, part: part.scores(some))
        return scores

    def linear_scores(self, rows: AnyArray) -> Array:
        weights, intercept, far = self._linear_weights
        local = float_rows(self.local(rows), self.distances.centre if far else None)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.dot(weights, local.T) + intercept[:, None]

    def _missing_rows(self, rows: AnyArray) -> Array:
        """Log-densities of rows with missing values."""
        if isinstance(self.covariance, DiagonalCovariance):
            return np.array([self._terms(rows, k).sum(axis=1) for k in range(self.n_classes)])
        parts = self.observed(rows)
        if parts is None:
            return self.by_pattern(rows, lambda some, part: part.log_density(some))
        squared, log_det, count, unit = parts
        return np.asarray(-0.5 * (squared + log_det + count * LOG_2PI) - unit)

    def _terms(self, rows: AnyArray, label: int) -> Array:
        step = 0.5 * (LOG_2PI + np.log(self.stretch[label])) + self.log_units
        terms = self.covariance.log_steps(int(self.group[label])) - step - 0.5 * self.white(rows, label) ** 2
        np.copyto(terms, 0.0, where=np.isnan(rows[:, self.covariance.owner]))
        return np.asarray(terms)

    def _penalty(self, components: Array, label: int) -> Array:
        return np.asarray(0.5 * components * components)

    def column_log_densities(self, rows: AnyArray) -> Array:
        return replace(self, covariance=self.variances).explain(rows)

    @property
    def has_linear_contrasts(self) -> bool:
        return len(set(zip(self.group.tolist(), self.stretch.tolist(), strict=True))) < self.n_classes

    def contrast(self, rows: AnyArray, first: int, second: int) -> Array | None:
        if self.group[first] != self.group[second] or self.stretch[first] != self.stretch[second]:
            return None
        if not isinstance(self.covariance, DiagonalCovariance) and has_missing(rows):
            terms = np.zeros((len(rows), self.dimension))
            for index, observed in patterns(rows):
                part = self.marginal(observed).contrast(rows[np.ix_(index, observed)], first, second)
                if part is None:
                    return None
                terms[np.ix_(index, observed)] = part
            return terms
        g, stretch = int(self.group[first]), float(self.stretch[first])
        steps = self.mean[first] - self.mean[second]
        basis = self.covariance.whiten(np.vstack([np.eye(self.dimension), steps]), g)
        if len(self.dependent) and not basis[self.dependent].any():
            return None  # which of the dependent columns have coefficients depends on their order
        away = np.subtract(self.local(rows), self.mean[second] + 0.5 * steps, dtype=np.float64)
        terms = away * (basis[:-1] @ basis[-1] / stretch)
        np.copyto(terms, 0.0, where=np.isnan(rows))
        return np.asarray(terms)

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return self.colored(rng.standard_normal((n, self.covariance.rank)), label)

    def _precision(self, label: int) -> Array:
        unit = self.coordinates.unit
        return self.covariance.precision(int(self.group[label])) / self.stretch[label] / unit / unit[:, None]

    def quadratic(self) -> Quadratic:
        unit, centre = self.coordinates.unit, self.coordinates.to_user(self.distances.centre)
        if self.is_linear:
            weights, constant = self._centred_weights
            with np.errstate(over="ignore", invalid="ignore"):
                return Quadratic(None, weights / unit, constant, centre)
        away = self.mean - self.distances.centre
        precisions = [self.covariance.precision(int(g)) / s for g, s in zip(self.group, self.stretch, strict=True)]
        linear = np.array([p @ v for p, v in zip(precisions, away, strict=True)])
        constant = -0.5 * (np.einsum("kd,kd->k", linear, away) + self.class_log_det)
        with np.errstate(over="ignore"):
            square = np.array([-0.5 * p / unit / unit[:, None] for p in precisions])
        return Quadratic(square, linear / unit, constant, centre)

    def natural_parameters(self) -> Array:
        """(Σ⁻¹μ, −Σ⁻¹) in user coordinates; only variances count where the covariance is diagonal."""
        precisions = [self._precision(k) for k in range(self.n_classes)]
        linear = np.array([p @ m for p, m in zip(precisions, self.class_means(), strict=True)])
        flat = isinstance(self.covariance, DiagonalCovariance)
        square = np.array([-np.diagonal(p) if flat else -p.ravel() for p in precisions])
        return np.hstack([linear, square])

    def sufficient_statistics(self, rows: AnyArray) -> Array:
        """(x, ½·x xᵀ), or (x, ½·x²) where the covariance is diagonal."""
        x = np.asarray(rows, dtype=np.float64)
        if isinstance(self.covariance, DiagonalCovariance):
            return np.hstack([x, 0.5 * x * x])
        return np.hstack([x, 0.5 * (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)])

    def log_partition(self) -> Array:
        """½·μᵀΣ⁻¹μ + ½·log|Σ|."""
        means = self.class_means()
        bend = [m @ self._precision(k) @ m for k, m in enumerate(means)]
        return np.asarray(0.5 * (np.array(bend) + self.class_log_det) + self.log_unit)

    def log_carrier(self, rows: AnyArray) -> Array:
        """−(d/2)·log 2π, with d the number of non-constant columns."""
        return np.full(len(rows), -0.5 * self.covariance.rank * LOG_2PI)

    # -- expressions

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        cells = self._bounded(cells)
        if not isinstance(self.covariance, DenseCovariance):
            if self._by_line:
                return self._contrasts_of_columns(cells)
            deviations, logs = self._deviations(), np.log(self._deviations())
            return self._sums_of_columns(cells, deviations, lambda z, k, i: -0.5 * square(z) - float(logs[k, i]))
        if is_complete(cells):
            if self._by_line:
                return self._complete_contrasts(cells)
            distances = [self._squared_distance(cells, k) for k in range(self.n_classes)]
            return [float(peak) - 0.5 * distance for peak, distance in zip(self.log_peak, distances, strict=True)]
        if self._by_line:
            return self._contrasts(cells, self._factored(cells)[int(self.group[0])])
        # Less ½·log 2π for each observed column, which all classes share.
        return [-0.5 * distance - scale for distance, scale in self._distances_and_scales(cells)]

    def _contrasts_of_columns(self, cells: Sequence[Cell]) -> list[Expression]:
        """Scores relative to the first class under pooled variances: Σ b·(a − b/2), a = (x − m_0)/s, b = (m_k − m_0)/s.

        The middle of two means is not computed: far from 0 it is rounded off.
        """
        a, owner, found = self._standardised(cells, 0), self.covariance.owner.tolist(), []
        for row in self._steps():
            terms = [cells[j].known(b * (z - 0.5 * b)) for j, z, b in zip(owner, a, row, strict=True) if b != 0.0]
            found.append(total(terms))
        return found

    def _steps(self) -> list[list[float]]:
        """(m_k − m_0)/deviation of the columns in `owner`, for each class."""
        mean = self.class_means()[:, self.covariance.owner]
        return ((mean - mean[0]) / self._deviations()[0]).tolist()

    def _complete_contrasts(self, cells: Sequence[Cell]) -> list[Expression]:
        """Scores relative to the first class under a pooled covariance: (m_k − m_0)ᵀ·Σ⁻¹·(x − m_0 − (m_k − m_0)/2)."""
        mean, unit, root = self.class_means(), self.coordinates.unit, np.sqrt(self.stretch[0])
        g = int(self.group[0])
        white = self.covariance.whiten(self.mean - self.mean[0], g) / root
        weights = white @ self.covariance.whiten(np.eye(len(unit)), g).T / root / unit
        centred = [cell.value - m for cell, m in zip(cells, mean[0].tolist(), strict=True)]
        offsets = -0.5 * np.einsum("kr,kr->k", white, white)
        return [linear(w, centred, offset) for w, offset in zip(weights.tolist(), offsets.tolist(), strict=True)]

    def _contrasts(self, cells: Sequence[Cell], factored: Factored) -> list[Expression]:
        """The same of the observed values."""
        used, y = [cells[j] for j in self.covariance.owner.tolist()], factored.solved(self._standardised(cells, 0))
        found: list[Expression] = [constant(0.0)]
        for steps in self._steps()[1:]:
            away = factored.solved([cell.known(constant(step)) for cell, step in zip(used, steps, strict=True)])
            terms = zip(y, away, factored.pivots, strict=True)
            found.append(total([b * (a - 0.5 * b) / pivot for a, b, pivot in terms]))
        return found
