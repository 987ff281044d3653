"""Gaussian rows left out of full covariances that are as the scatters give them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from likely.families.base import LeaveOneOutDensity
from likely.families.estimation import Estimation
from likely.families.gaussian.densities import GaussianConditionals
from likely.families.gaussian.leave_one_out.base import LITTLE, NOTHING, SURE, LeaveOneOut, Removal
from likely.families.gaussian.mahalanobis import Distances
from likely.families.gaussian.student import StudentConditionals
from likely.numerics.arrays import all_finite, all_same
from likely.numerics.special import LOG_2PI, log_gamma_ratio
from likely.typing import AnyArray, Array, Codes, Index


@dataclass(frozen=True, eq=False)
class LeaveOneOutFull(LeaveOneOut):
    """Full covariances without any shrinkage."""

    def _way(self) -> LeaveOneOutDensity:
        squares = self._squares()
        return self.log_density if squares is None else partial(self._at_once, squares)

    def _at_once(self, squares: Distances, rows: AnyArray, codes: Codes, weights: Array) -> Array:
        found = self._together(squares, rows, codes, weights)
        return self.log_density(rows, codes, weights) if found is None else found

    def quick(self, rows: AnyArray, codes: Codes, w: Array) -> tuple[Array, AnyArray]:
        density = self.start(rows)
        if self.one_group or not len(self.active):
            return density, np.zeros(len(codes), dtype=bool)
        return density, self._from_densities(density, codes, w)

    def slow(self, x: Array, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        return self._one_class(r, c, w, members, removal)

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
            if not self.alone[c]:
                continue
            index = np.flatnonzero(codes == c)
            removal, distance = Removal.of(self.rows[c], w[index]), h[index] / self.before(int(group[c]))
            sure = removal.factor * distance < SURE
            if not sure.all():
                index, distance = index[sure], distance[sure]
                removal = Removal.of(self.rows[c], w[index])
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
        if not (self.one_group and len(self.active)):
            return None
        share = np.full(len(self.mean), 1.0 / self.before(0))
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
        return self._downdated(0, np.arange(len(self.mean)), codes, w, self.removal(codes, w), h, distance, twice)

    def _one_class(self, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        """By the factor of the covariance that all rows gave, for rows about the mean of their class."""
        g, width = int(self.varying.group[c]), self.fitted.dimension
        covariance, before = self.fitted.covariance, self.before(g)
        z = covariance.whiten(_spread(r, self.active, width), g)
        h = np.einsum("nd,nd->n", z, z) / before
        steps = covariance.whiten(_spread(self.mean[c] - self.mean[members], self.active, width), g)
        along = np.dot(steps / before, z.T)
        distance = 2.0 * along + (np.einsum("kd,kd->k", steps, steps) / before)[:, None] + h
        place = np.full(len(r), int(np.flatnonzero(members == c)[0]))
        return self._downdated(g, members, place, w, removal, h, distance, 2.0 * (along + h))

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
        if rest.min(initial=1.0) <= (LITTLE if self.too_few.any() else NOTHING):
            least = np.where(self.too_few, LITTLE, NOTHING)[members[own]]
            singular = (rest <= least) & (self.estimation == Estimation.MLE)
            rest = np.where(singular, 1.0, np.maximum(rest, NOTHING))  # with a proper prior something is always left
        twice *= twice
        twice *= removal.factor / (4.0 * rest)
        distance += twice
        distance[mine] = removal.moved**2 * h / rest
        log_det = covariance.log_det[g] + covariance.rank * np.log(self.before(g)) + np.log(rest)
        alike = all_same(w) and not (self.unbiased and removal.gone.any())
        kinds = slice(0, 1) if alike else slice(None)  # of rows, as far as what is left to divide by goes
        divisor = self.divisor(self.fewer(g, w[kinds]), removal.gone[kinds], g)
        stretch: Array | None = None
        if self.estimation == Estimation.BAYES:
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


def _spread(rows: Array, columns: Index, dimension: int) -> Array:
    """Rows of some columns among all of them."""
    if len(columns) == dimension:
        return rows
    wide = np.zeros((len(rows), dimension))
    wide[:, columns] = rows
    return wide
