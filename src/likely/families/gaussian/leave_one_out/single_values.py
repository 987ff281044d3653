"""Leave-one-out predictives of single values: the Student t of the class of each row without that row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from likely.families.gaussian.leave_one_out.base import ROUNDING, Removal
from likely.families.gaussian.prior import NormalInverseWishartPosterior
from likely.numerics.intervals import log_student_density, log_student_interval
from likely.statistics.counts import across
from likely.statistics.moments import Moments
from likely.typing import AnyArray, Array, Codes, Index


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutStudents:
    """Location, scale and degrees of freedom of a Student t for each value, (n, varying columns)."""

    location: Array
    scale: Array
    degrees: Array
    active: Index

    @classmethod
    def of(
        cls,
        varying: Moments,
        active: Index,
        posterior: NormalInverseWishartPosterior,
        rows: AnyArray,
        codes: Codes,
        weights: Array,
    ) -> Self:
        """Rows of given weights removed from the posteriors of their classes, with one variance per column.

        With κ the weight of the mean, Ψ the scale and ν the degrees of freedom, r = x − m and a row of weight w:
        κ′ = κ − w, m′ = x − κ/κ′·r, Ψ′ = Ψ − w·κ/κ′·r², ν′ = ν − w.
        """
        local = varying.coordinates
        x = np.asarray(local.to_local(np.asarray(rows)[:, active]), dtype=np.float64)
        missing, group = np.isnan(x), varying.group[codes]
        removed = weights[:, None] * ~missing
        removal = Removal.of(np.broadcast_to(across(posterior.mean_rows[codes]), x.shape), removed)
        r = np.where(missing, 0.0, x - posterior.mean[codes])
        whole = posterior.scale[group]
        scale = np.maximum(whole - removal.factor * r * r, ROUNDING * whole)
        degrees = np.broadcast_to(across(posterior.degrees[group]), x.shape) - removed
        variance = scale / degrees * (1.0 + 1.0 / removal.left)
        location = np.where(missing, 0.0, x - removal.inflation * r)
        return cls(local.to_user(location), np.sqrt(variance) * local.unit, degrees, active)

    def log_terms(self, rows: AnyArray, bounds: tuple[Array, Array] | None = None) -> Array:
        """Log-densities of values, (n, d), or log-probabilities of intervals; −inf in constant columns."""
        terms = np.full(rows.shape, -np.inf)
        if bounds is None:
            z = (np.asarray(rows[:, self.active], dtype=np.float64) - self.location) / self.scale
            terms[:, self.active] = log_student_density(z, self.degrees) - np.log(self.scale)
        else:
            low, high = ((bound[:, self.active] - self.location) / self.scale for bound in bounds)
            terms[:, self.active] = log_student_interval(low, high, self.degrees)
        return np.where(np.isnan(rows), 0.0, terms)
