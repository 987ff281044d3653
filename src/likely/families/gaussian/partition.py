"""Partition of a squared Mahalanobis distance into contributions of the columns that do not depend on their order.

With z = x − μ, standard deviations σ and correlations R, w = R^(−½)·(z/σ) is the vector of uncorrelated components that
are closest to the standardised columns, and zᵀΣ⁻¹z = Σ w_j² (Garthwaite and Koch). A covariance is stored as a factor T
with white = Tᵀz, so that w = Q·white, where Q is the orthogonal factor of the polar decomposition of
C = diag(1/σ)·T^(−ᵀ): C·Cᵀ = R and C = R^½·Q. From the singular value decomposition C = A·S·Bᵀ, Q = A·Bᵀ and
log R = 2·A·log(S)·Aᵀ. Where Σ has no full rank, the same formulas give the pseudo-inverse of R^½, and Q has orthonormal
columns.

P. H. Garthwaite and I. Koch (2016), Evaluating the contributions of individual variables to a quadratic form,
Australian and New Zealand Journal of Statistics 58.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.families.gaussian.covariance import Covariance, DiagonalCovariance
from likely.typing import Array, Index


@dataclass(frozen=True, eq=False)
class Partition:
    """Contributions of the columns under one covariance.

    `log_scale` are terms that sum to −½·log|Σ| over the columns: −log σ_j − ½·[log R]_jj, with σ_j counted
    `dimensions`_j times, which is 1 for every column of a covariance with full rank.
    """

    columns: Index  # the columns that vary
    rotation: Array | None  # (rank, columns): w = white · rotation; None for independent columns
    log_scale: Array  # (columns,)
    dimensions: Array  # (columns,): they sum to the rank

    @classmethod
    def of(cls, covariance: Covariance, group: int) -> Partition:
        """The partition under the covariance of a group."""
        if isinstance(covariance, DiagonalCovariance):
            return cls(covariance.owner, None, covariance.log_steps(group), np.ones(covariance.rank))
        root = covariance.color(np.eye(covariance.rank), group)  # (rank, d), and rootᵀ·root = Σ
        size = np.sqrt(np.einsum("rd,rd->d", root, root))
        columns = np.flatnonzero(size > 0.0)
        left, singular, right = np.linalg.svd(root[:, columns] / size[columns], full_matrices=False)
        squares = right * right
        dimensions = squares.sum(axis=0)
        log_scale = -dimensions * np.log(size[columns]) - np.log(singular) @ squares
        return cls(columns, left @ right, log_scale, dimensions)

    def components(self, white: Array) -> Array:
        """w of whitened rows, (n, columns)."""
        return white if self.rotation is None else np.asarray(white @ self.rotation)

    def constants(self, log_units: Array, log_peak: float) -> Array:
        """Terms of the columns that sum to the log-density at the mean, (columns,).

        `log_units` are the logarithms of the units of all columns. What belongs to no column is divided equally.
        """
        terms = self.log_scale - self.dimensions * log_units[self.columns]
        return np.asarray(terms + (log_peak - terms.sum()) / len(terms))
