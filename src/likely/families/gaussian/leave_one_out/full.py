"""Leave-one-out densities with full covariances, without shrinkage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from likely.families.base import LeaveOneOutDensity
from likely.families.estimation import Estimation
from likely.families.gaussian.densities import GaussianConditionals
from likely.families.gaussian.leave_one_out.base import ROUNDING, SINGULAR_ROUNDING, LeaveOneOut, Removal
from likely.families.gaussian.mahalanobis import Distances
from likely.families.gaussian.student import StudentConditionals
from likely.numerics.arrays import all_finite, all_same
from likely.numerics.special import LOG_2PI, log_gamma_ratio
from likely.typing import AnyArray, Array, Codes, Index

MAX_REMOVED = 0.99  # fraction of a scatter up to which a row may be removed by a downdate of its distance


@dataclass(frozen=True, eq=False)
class LeaveOneOutFull(LeaveOneOut):
    """Leave-one-out with full covariances, without shrinkage."""

    def _evaluator(self) -> LeaveOneOutDensity:
        squares = self._pooled_distances()
        return self.log_density if squares is None else partial(self._pooled_or_general, squares)

    def _pooled_or_general(self, squares: Distances, rows: AnyArray, codes: Codes, weights: Array) -> Array:
        found = self._pooled_log_density(squares, rows, codes, weights)
        return self.log_density(rows, codes, weights) if found is None else found

    def class_log_density(self, x: Array, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        """By the factor of the covariance of all rows."""
        g, width = int(self.varying.group[c]), self.fitted.dimension
        covariance, full_divisor = self.fitted.covariance, self.full_divisors[g]
        z = covariance.whiten(_embed(r, self.active, width), g)
        h = np.einsum("nd,nd->n", z, z) / full_divisor
        steps = covariance.whiten(_embed(self.mean[c] - self.mean[members], self.active, width), g)
        along = np.dot(steps / full_divisor, z.T)
        distance = 2.0 * along + (np.einsum("kd,kd->k", steps, steps) / full_divisor)[:, None] + h
        place = np.full(len(r), int(np.flatnonzero(members == c)[0]))
        return self._downdated(g, members, place, w, removal, h, distance, 2.0 * (along + h))

    def update_together(self, density: Array, codes: Codes, w: Array) -> AnyArray:
        """Under per-class covariances.

        The distance of a row follows from its density under its class, and the other classes do not change. It is not
        accurate where the row makes up most of a scatter.
        """
        done = np.zeros(len(codes), dtype=bool)
        if self.one_group:
            return done
        assert isinstance(self.fitted, GaussianConditionals | StudentConditionals)
        group, rows = self.varying.group, np.arange(len(codes))
        h = self.fitted.squared(density[codes, rows], codes)
        for c in np.flatnonzero(np.bincount(codes, minlength=1)).tolist():
            if not self.sole_member[c]:
                continue
            index = np.flatnonzero(codes == c)
            removal, distance = Removal.of(self.rows[c], w[index]), h[index] / self.full_divisors[int(group[c])]
            sure = removal.factor * distance < MAX_REMOVED
            if not sure.all():
                index, distance = index[sure], distance[sure]
                removal = Removal.of(self.rows[c], w[index])
            own, blank, members = np.zeros(len(index), dtype=np.intp), np.zeros((2, 1, len(index))), np.array([c])
            density[c, index] = self._downdated(int(group[c]), members, own, w[index], removal, distance, *blank)[0]
            density[c, index[removal.emptied]] = -np.inf
            done[index] = True
        return done

    def _pooled_distances(self) -> Distances | None:
        """Squared distances under a pooled Ψ whose class means are close enough; None elsewhere."""
        if not self.one_group:
            return None
        factor = np.full(len(self.mean), 1.0 / self.full_divisors[0])
        found = Distances(self.fitted.covariance, self.fitted.mean, self.fitted.group, factor)
        return found if found.form == "pooled" else None

    def _pooled_log_density(self, squares: Distances, rows: AnyArray, codes: Codes, w: Array) -> Array | None:
        """Densities under a pooled covariance for all classes at once; None if values are missing.

        With s the difference of the two means, 2·δᵀΨ⁻¹r = δᵀΨ⁻¹δ + rᵀΨ⁻¹r − sᵀΨ⁻¹s.
        """
        distance = squares.scaled(self.fitted.coordinates.to_local(rows))
        if not all_finite(distance):
            return None
        h = np.maximum(distance[codes, np.arange(len(codes))], 0.0)
        twice = np.take(squares.between_means, codes, axis=1)
        np.subtract(distance, twice, out=twice)
        twice += h
        return self._downdated(0, np.arange(len(self.mean)), codes, w, self.removal(codes, w), h, distance, twice)

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
        if rest.min(initial=1.0) <= (SINGULAR_ROUNDING if self.too_few.any() else ROUNDING):
            least = np.where(self.too_few, SINGULAR_ROUNDING, ROUNDING)[members[own]]
            singular = (rest <= least) & (self.estimation == Estimation.MLE)
            rest = np.where(singular, 1.0, np.maximum(rest, ROUNDING))  # a proper prior keeps the scale positive
        twice *= twice
        twice *= removal.factor / (4.0 * rest)
        distance += twice
        distance[mine] = removal.inflation**2 * h / rest
        log_det = covariance.log_det[g] + covariance.rank * np.log(self.full_divisors[g]) + np.log(rest)
        alike = all_same(w) and not removal.emptied.any()
        kinds = slice(0, 1) if alike else slice(None)  # such rows have one divisor
        divisor = self.divisor(self.remaining_degrees(g, w[kinds]), removal.emptied[kinds], g)
        stretch: Array | None = None
        if self.estimation == Estimation.BAYES:
            stretch = 1.0 + 1.0 / np.maximum(self.rows[members], ROUNDING)
            distance[mine] *= stretch[own] / (1.0 + 1.0 / np.where(removal.left > 0.0, removal.left, 1.0))
        out = self._log_density_from_distance(distance, log_det, divisor, stretch, covariance.rank)
        if stretch is not None:
            sole_member = np.log1p(1.0 / np.where(removal.left > 0.0, removal.left, 1.0))
            out[mine] += 0.5 * covariance.rank * (np.log(stretch)[own] - sole_member)
        lost = singular | removal.emptied
        if lost.any():
            out[mine] = np.where(lost, -np.inf, out[mine])
        return out

    def _log_density_from_distance(
        self, distance: Array, log_det: Array, divisor: Array, stretch: Array | None, rank: int
    ) -> Array:
        """Log-densities from squared distances under Ψ (overwritten), its log-determinant, divisor and stretch."""
        unit = np.log(self.fitted.coordinates.unit[self.fitted.covariance.owner]).sum()
        improper = divisor <= 0.0
        divisor = np.where(improper, 1.0, divisor)
        log_normalizer = 0.5 * (log_det - rank * np.log(divisor)) + unit
        density = distance
        if stretch is not None:
            log_normalizer = (
                log_normalizer - log_gamma_ratio(divisor / 2.0, rank / 2.0) + 0.5 * rank * np.log(divisor * np.pi)
            )
            density *= (1.0 / stretch)[:, None]
            np.log1p(density, out=density)
            density *= -0.5 * (divisor + rank)
            density -= 0.5 * rank * np.log(stretch)[:, None]
        else:
            density *= -0.5 * divisor
            log_normalizer = log_normalizer + 0.5 * rank * LOG_2PI
        density -= log_normalizer
        if improper.any():
            density[:, np.broadcast_to(improper, density.shape[1:])] = -np.inf
        return density


def _embed(rows: Array, columns: Index, dimension: int) -> Array:
    """Rows of some columns as rows of all columns, 0 elsewhere."""
    if len(columns) == dimension:
        return rows
    wide = np.zeros((len(rows), dimension))
    wide[:, columns] = rows
    return wide
