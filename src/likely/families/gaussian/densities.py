"""Gaussian class-conditional densities, and what they share with their posterior predictive, the Student t.

Natural form: u(x) = (x, ½·x xᵀ), θ = (Σ⁻¹μ, −Σ⁻¹), A = ½·μᵀΣ⁻¹μ + ½·log|Σ|, h = (2π)^(−d/2). With a pooled
covariance the part of θ·u(x) that is quadratic in x is the same for every class: it moves into the carrier, and the
rest is linear in x.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from likely.errors import listed
from likely.families.base import Conditionals, ExponentialConditionals
from likely.families.gaussian.covariance import Covariance, DenseCovariance, DiagonalCovariance
from likely.families.gaussian.expressions import GaussianExpressions
from likely.families.gaussian.mahalanobis import MAX_LINEAR_REACH, Distances
from likely.families.gaussian.missing_cells import MissingValues
from likely.families.gaussian.partition import Partition, Penalties, partition_terms
from likely.families.quadratic import Quadratic
from likely.numerics.arrays import LARGEST_NUMBER, all_finite, float_rows, has_missing
from likely.numerics.coordinates import MOST_UNITS, Coordinates
from likely.numerics.missingness import patterns
from likely.numerics.special import LOG_2PI
from likely.typing import AnyArray, Array, Index

DISTANT = -1e6  # log-densities whose rounding error, about 1e-10, would show in the differences between classes


@dataclass(frozen=True, eq=False)
class Elliptical(Conditionals):
    """Means, covariances and distances of Gaussian and Student t class-conditionals.

    The covariance of class k is stretch_k times that of its group.
    """

    mean: Array  # (K, d), local
    covariance: Covariance
    group: Index  # (K,)
    stretch: Array  # (K,)
    coordinates: Coordinates
    dependent: Index = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @property
    def n_classes(self) -> int:
        return len(self.mean)

    @property
    def dimension(self) -> int:
        return self.covariance.dimension

    @property
    def width(self) -> int:
        return self.distances.width

    @cached_property
    def distances(self) -> Distances:
        return Distances(self.covariance, self.mean, self.group, *self._scale())

    @abstractmethod
    def _scale(self) -> tuple[Array, Array]:
        """Factor and offset of the squared distances of each class, of which the density is a function."""

    @cached_property
    def log_units(self) -> Array:
        """Logarithms of the local units of the columns that vary."""
        return np.log(self.coordinates.unit[self.covariance.owner])

    @cached_property
    def partitions(self) -> list[Partition]:
        """The partition of distances under the covariance of every group of classes."""
        return [Partition.of(self.covariance, g) for g in range(len(self.covariance.log_det))]

    @property
    def log_unit(self) -> float:
        """Sum of the logarithms of the local units."""
        return float(self.log_units.sum())

    @cached_property
    def class_log_det(self) -> Array:
        """log|Σ_k| of every class, in local coordinates."""
        return np.asarray(self.covariance.log_det[self.group] + self.covariance.rank * np.log(self.stretch))

    def class_means(self) -> Array:
        """Means in the user's coordinates."""
        return self.coordinates.to_user(self.mean)

    def class_covariance(self, label: int) -> Array:
        """The covariance (a Student t: its scale matrix) of a class, in the user's coordinates."""
        unit = self.coordinates.unit
        return self.stretch[label] * self.covariance.matrix(int(self.group[label])) * unit * unit[:, None]

    @cached_property
    def _bounds(self) -> tuple[Array, Array] | None:
        """Local values within which squared distances are finite; None if all numbers up to 1e140 are within.

        Columns whose conditional standard deviations are far below 1e-10 need them: there, rows that are more than
        about 1e150 of them away count as this far.
        """
        with np.errstate(over="ignore", divide="ignore"):
            steepest = self.covariance.steepest() / np.sqrt(self.stretch.min())
            most = MOST_UNITS / max(self.dimension, 1) / steepest
            if np.all(LARGEST_NUMBER / self.coordinates.unit <= most):
                return None
        return self.mean.min(axis=0) - most, self.mean.max(axis=0) + most

    def local(self, rows: AnyArray) -> AnyArray:
        """Rows in local coordinates."""
        local = self.coordinates.to_local(rows)
        return local if self._bounds is None else np.clip(local, *self._bounds)

    def white(self, rows: AnyArray, label: int) -> Array:
        """Whitened rows of a class, (n, rank)."""
        centred = np.subtract(self.local(rows), self.mean[label], dtype=np.float64)
        return self.covariance.whiten(centred, int(self.group[label])) / np.sqrt(self.stretch[label])

    def partitioned(self, rows: AnyArray, log_peak: Array, penalties: Penalties) -> Array:
        """Contributions of the columns that do not depend on their order, (n, classes, d).

        `log_peak` are the log-densities at the means, and `penalties` what distances from them take off.
        """
        units = np.log(self.coordinates.unit) + 0.5 * np.log(self.stretch)[:, None]
        white = [self.white(rows, k) for k in range(self.n_classes)]
        return partition_terms([self.partitions[g] for g in self.group], white, units, log_peak, penalties)

    @property
    def has_full_rank(self) -> bool:
        """Whether the columns that vary are not linearly dependent."""
        return not len(self.dependent) and len(self.covariance.owner) == self.covariance.rank

    def class_log_density(self, rows: AnyArray, codes: AnyArray) -> Array:
        if isinstance(self.covariance, DiagonalCovariance) or not has_missing(rows):
            return super().class_log_density(rows, codes)
        found = np.empty(len(codes))
        incomplete = np.isnan(rows).any(axis=1)
        found[~incomplete] = super().class_log_density(rows[~incomplete], codes[~incomplete])
        index = np.flatnonzero(incomplete)
        for k in np.flatnonzero(np.bincount(codes[index], minlength=1)).tolist():
            mine = index[codes[index] == k]
            found[mine] = self.only(k).log_density(rows[mine])[0]
        return found

    def only(self, label: int) -> Self:
        """The same densities of one class alone."""
        one = slice(label, label + 1)
        parts = {
            name: getattr(self, name)[one] for name in ("mean", "group", "stretch", "degrees") if hasattr(self, name)
        }
        return replace(self, **parts)

    def observed(self, rows: AnyArray) -> tuple[Array, Array, Array, Array] | None:
        """Squared distances and log-determinants (classes, n) of the observed values of rows; their number, and the sum
        of the logarithms of their units, (n,). None if columns are linearly dependent.
        """
        owner = self.covariance.owner
        if not self.has_full_rank:
            return None
        local = np.asarray(self.local(rows), dtype=np.float64)[:, owner]
        missing = np.isnan(local)
        local[missing] = 0.0
        squared, log_det = np.empty((2, self.n_classes, len(rows)))
        count = (~missing).sum(axis=1).astype(np.float64)
        wide = np.zeros((len(rows), self.dimension))
        for g in np.unique(self.group).tolist():
            missing_values = MissingValues(missing, self.covariance.precision(g)[np.ix_(owner, owner)])
            for k in np.flatnonzero(self.group == g).tolist():
                centred = np.where(missing, 0.0, local - self.mean[k, owner])
                missing_values.fill(centred)
                wide[:, owner] = centred
                white = self.covariance.whiten(wide, g)
                np.einsum("nr,nr->n", white, white, out=squared[k])
                squared[k] /= self.stretch[k]
                log_det[k] = self.covariance.log_det[g] + missing_values.logs + count * np.log(self.stretch[k])
        return squared, log_det, count, (~missing) @ self.log_units

    def expectation(self, rows: AnyArray, label: int) -> Array:
        owner, g = self.covariance.owner, int(self.group[label])
        centred = np.asarray(self.local(rows), dtype=np.float64) - self.mean[label]
        missing = np.isnan(centred)
        centred[missing] = 0.0
        if not isinstance(self.covariance, DiagonalCovariance):
            inner = centred[:, owner]
            MissingValues(missing[:, owner], self.covariance.precision(g)[np.ix_(owner, owner)]).fill(inner)
            centred[:, owner] = inner
        return self.coordinates.to_user(centred + self.mean[label])

    def colored(self, white: Array, label: int) -> Array:
        """Rows of a class from noise of unit covariance, in the user's coordinates, within the range of floats."""
        rows = self.covariance.color(white * np.sqrt(self.stretch[label]), int(self.group[label]))
        with np.errstate(over="ignore"):
            drawn = self.coordinates.to_user(self.mean[label] + rows)
        largest = np.finfo(np.float64).max
        return np.clip(drawn, -largest, largest, out=drawn)

    def marginal(self, columns: Index) -> Self:
        """The same densities of some columns: means and covariances of those."""
        place = np.full(self.dimension, -1)
        place[columns] = np.arange(len(columns))
        kept = self.dependent[np.isin(self.dependent, columns)]
        return replace(
            self,
            mean=self.mean[:, columns],
            covariance=self.covariance.marginal(columns),
            coordinates=self.coordinates.take(columns),
            dependent=place[kept],
        )

    @cached_property
    def variances(self) -> DiagonalCovariance:
        """The variances of the columns, without their covariances."""
        if isinstance(self.covariance, DiagonalCovariance):
            return self.covariance
        roots = (self.covariance.color(np.eye(self.covariance.rank), g) for g in range(len(self.covariance.log_det)))
        scale = np.sqrt(np.array([np.einsum("rd,rd->d", root, root) for root in roots]))
        varies = scale[0] > 0.0
        inverse = np.where(varies, 1.0 / np.where(varies, scale, 1.0), 0.0)
        return DiagonalCovariance(inverse, 2.0 * np.log(np.where(varies, scale, 1.0)).sum(axis=1))

    @cached_property
    def _unread(self) -> Index:
        if len(self.dependent) and isinstance(self.covariance, DenseCovariance):  # in a subspace of all columns
            return np.flatnonzero(~np.asarray(self.covariance.factor.any(axis=(0, 2))))
        return np.setdiff1d(np.arange(self.dimension), self.covariance.owner)

    def ignored_columns(self) -> Index:
        return self._unread

    def notes(self, names: Sequence[str]) -> list[str]:
        ignored, dependent = self.ignored_columns(), self.dependent
        found = {
            "constant columns, ignored": np.setdiff1d(ignored, dependent),
            "linear combinations of other columns, ignored": np.intersect1d(dependent, ignored),
            "linear combinations of other columns within the classes": np.setdiff1d(dependent, ignored),
        }
        return [f"{what}: {listed([names[j] for j in columns])}" for what, columns in found.items() if len(columns)]


@dataclass(frozen=True, eq=False)
class GaussianConditionals(GaussianExpressions, Elliptical, ExponentialConditionals):
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
        """log-density at the mean, (classes,)."""
        return np.asarray(-0.5 * (self.class_log_det + self.covariance.rank * LOG_2PI) - self.log_unit)

    def squared(self, density: Array, codes: AnyArray) -> Array:
        """The squared distances that correspond to log-densities (n,) of rows under one class each."""
        return np.asarray(2.0 * self.stretch[codes] * (self.log_peak[codes] - density))

    @cached_property
    def linear(self) -> bool:
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
    def is_linear(self) -> bool:
        return self.linear

    @property
    def width(self) -> int:
        return 2 * self.n_classes if self._by_line else self.distances.width

    @cached_property
    def _by_line(self) -> bool:
        return self.linear and self.distances.reach <= MAX_LINEAR_REACH

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
        """Contribution of each component to the log-density of a class, (n, rank); 0 for missing values.

        Independent columns, or complete rows only.
        """
        step = 0.5 * (LOG_2PI + np.log(self.stretch[label])) + self.log_units
        terms = self.covariance.log_steps(int(self.group[label])) - step - 0.5 * self.white(rows, label) ** 2
        np.copyto(terms, 0.0, where=np.isnan(rows[:, self.covariance.owner]))
        return np.asarray(terms)

    def class_terms(self, rows: AnyArray, label: int) -> Array | None:
        if not isinstance(self.covariance, DiagonalCovariance):
            return None
        terms = np.zeros((len(rows), self.dimension))
        terms[:, self.covariance.owner] = self._terms(rows, label)
        return terms

    def explain(self, rows: AnyArray) -> Array:
        if isinstance(self.covariance, DiagonalCovariance):
            return self.explain_sequential(rows)
        if has_missing(rows):
            return self.explain_with_missing(rows)
        if not self.covariance.rank:
            return np.zeros((len(rows), self.n_classes, self.dimension))
        return self.partitioned(rows, self.log_peak, lambda components: [0.5 * w * w for w in components])

    def explain_sequential(self, rows: AnyArray) -> Array:
        terms = np.zeros((len(rows), self.n_classes, self.dimension))
        owner = self.covariance.owner
        if not len(owner):
            return terms
        if not isinstance(self.covariance, DiagonalCovariance) and has_missing(rows):
            return self.explain_with_missing(rows, sequential=True)
        for k in range(self.n_classes):
            terms[:, k, owner] = self._terms(rows, k)
        return terms

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
        if self.linear:
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
