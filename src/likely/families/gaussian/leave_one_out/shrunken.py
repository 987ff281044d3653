"""Leave-one-out densities with full covariances shrunk toward the pooled one, or toward a scaled identity.

Without the contribution of the held-out row itself, rows of one weight have one base covariance under a class. Along
its eigenvectors shrinkage adds the same to every variance, and the contribution of the row is a rank-one downdate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.families.gaussian.leave_one_out.base import ROUNDING, LeaveOneOut, Removal
from likely.numerics.special import LOG_2PI
from likely.typing import Array, Index

MAX_BASES = 64  # eigenvectors of base covariances that are kept for the next rows; rows of many weights have many


@dataclass(frozen=True, eq=False)
class LeaveOneOutShrunken(LeaveOneOut):
    """Leave-one-out with shrunken full covariances."""

    def class_log_density(self, x: Array, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        out = np.empty((len(members), len(r)))
        alike = [np.arange(len(w))]
        if self.pooling:  # each weight has its own base
            alike = [np.flatnonzero(w == weight) for weight in np.unique(w)]
        for i, k in enumerate(members.tolist()):
            delta = removal.inflation[:, None] * r if k == c else r + (self.mean[c] - self.mean[k])
            for some in alike:
                out[i, some] = self._one_base(r[some], delta[some], c, k, w[some], removal.part(some))
        return out

    def _one_base(self, r: Array, delta: Array, c: int, k: int, w: Array, removal: Removal) -> Array:
        """Log-densities under class k of rows of class c, r about the mean of c and δ about that of k.

        With Λ the eigenvalues of the base, u and v the rows r and δ along its eigenvectors, b the factor of the
        downdate and t = Σ(Λ − b·u²)/d the mean variance, the covariance is (1 − s)·(Λ − b·u uᵀ) + s·t, over a divisor.
        """
        g, d, same = int(self.varying.group[k]), len(self.active), bool(self.varying.group[k] == self.varying.group[c])
        s = 0.0 if self.intensity is None else float(self.intensity[g])
        own = self.divisor(self.varying.group_weight()[g] - w * same, removal.emptied & same, g)
        total = float(self.varying.total_weight) - w
        if self.unbiased:
            total -= len(self.varying.classes) - removal.emptied
        lost = (own == 0.0) | (total == 0.0)  # no row remains
        if lost.all():
            return np.full(len(r), -np.inf)
        own, base, factor = np.where(lost, 1.0, own), self.scale[g], removal.factor
        key: tuple[Any, ...] = (g,)
        if self.pooling:
            mine, pooled = (1.0 - self.pooling) / own[0], self.pooling / total[0]
            base, factor = mine * base + pooled * self.scale.sum(axis=0), factor * (mine * same + pooled)
            own, key = np.ones(1), (g, same, float(w[0]), bool(removal.emptied[0]))
        values, axes, unit = self._axes(key, base, s)
        u, v = (r / unit) @ axes, (delta / unit) @ axes
        trace = values.sum() - factor * np.einsum("nd,nd->n", u, u)
        variance = (1.0 - s) * values + (s * trace / d)[:, None]
        part = (1.0 - s) * factor
        flat = (variance <= ROUNDING * np.abs(values).max(initial=0.0)).any(axis=1)
        safe = np.where(flat[:, None], 1.0, variance)
        rest = 1.0 - part * (u * u / safe).sum(axis=1)
        singular = lost | flat | (rest <= ROUNDING)
        rest = np.where(singular, 1.0, rest)
        distance = own * ((v * v / safe).sum(axis=1) + part * (u * v / safe).sum(axis=1) ** 2 / rest)
        log_det = np.log(safe / own[:, None]).sum(axis=1) + np.log(rest) + 2.0 * np.log(unit).sum()
        density = -0.5 * (d * LOG_2PI + log_det + distance) - self.log_unit.sum()
        return np.where(singular, -np.inf, density)

    def _axes(self, key: tuple[float, ...], matrix: Array, s: float) -> tuple[Array, Array, Array]:
        """Eigenvalues, eigenvectors and units of columns of a matrix."""
        found = self.cache.get(key)
        if found is None:
            unit = np.ones(len(matrix))
            if not s:  # without shrinkage toward the identity, every column may have its own unit
                unit = np.sqrt(np.where(np.diagonal(matrix) > 0.0, np.diagonal(matrix), 1.0))
            found = *np.linalg.eigh(matrix / unit / unit[:, None]), unit
            if len(self.cache) < MAX_BASES:
                self.cache[key] = found
        return found
