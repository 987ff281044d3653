"""Whitening factors, numerical rank, range and null space of symmetric matrices."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.special

from likely.numerics.special import EPS
from likely.typing import Array, Index

RANK_ROUNDING = 64.0 * EPS  # for each column: see `rank_tolerance`


def rank_tolerance(dimension: int) -> float:
    """Relative conditional variance up to which a column is a linear combination of others."""
    return RANK_ROUNDING * max(dimension, 1)


def correlation_scale(matrix: Array) -> Array:
    """Reciprocal square roots of the diagonal: D such that D·matrix·D has a unit diagonal."""
    diagonal = np.diagonal(matrix)
    scale = np.zeros_like(diagonal)
    positive = diagonal > 0.0
    scale[positive] = 1.0 / np.sqrt(diagonal[positive])
    return scale


def lower_factor(matrix: Array) -> Array | None:
    """The Cholesky factor L with L·Lᵀ = matrix, or None for a singular matrix.

    Its rounding does not depend on the units of the columns. The rank is judged by the squared diagonal, the variance
    of each column given the columns before it, relative to the variance of the column.
    """
    if not len(matrix):
        return np.zeros((0, 0))
    variances = np.diagonal(matrix)
    if not np.all(variances > 0.0):
        return None
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    if np.min(np.diagonal(factor) ** 2 / variances) <= RANK_ROUNDING * len(matrix):
        return None
    return np.asarray(factor, dtype=np.float64)


def whitener_of(lower: Array) -> Array:
    """Upper triangular T with Tᵀ·L·Lᵀ·T = I: the transposed inverse of L.

    Its i-th column gives the residual of column i given the columns before it, divided by the standard
    deviation of that residual.
    """
    if not len(lower):
        return np.zeros((0, 0))
    # LAPACK leaves the other triangle as it finds it, and NumPy's factor has zeros there.
    inverse, _ = scipy.linalg.lapack.dtrtri(lower, lower=1)
    return np.ascontiguousarray(inverse.T)


def whitener(matrix: Array) -> Array | None:
    """Upper triangular T with Tᵀ·matrix·T = I, or None for a singular matrix."""
    lower = lower_factor(matrix)
    return None if lower is None else whitener_of(lower)


def independent_columns(matrix: Array, slack: float = 1.0) -> tuple[Index, Index]:
    """Columns, in their order, that are not linear combinations of earlier ones; and the others.

    A Cholesky factorisation row by row on the correlation scale: column j depends on the columns kept
    so far where its conditional variance, relative to its variance, is at rounding level, times `slack`.
    """
    scale = correlation_scale(matrix)
    correlation = matrix * scale * scale[:, None]
    tolerance = slack * rank_tolerance(len(matrix))
    d = len(matrix)
    factor = np.zeros((d, d))
    kept: list[int] = []
    for j in range(d):
        if scale[j] == 0.0:
            continue
        if kept:
            known = factor[: len(kept), : len(kept)]
            row = scipy.linalg.solve_triangular(known, correlation[kept, j], lower=True)
        else:
            row = np.zeros(0)
        left = 1.0 - float(row @ row)
        if left > tolerance:
            r = len(kept)
            factor[r, :r] = row
            factor[r, r] = np.sqrt(left)
            kept.append(j)
    chosen = np.array(kept, dtype=np.intp)
    return chosen, np.setdiff1d(np.arange(d), chosen)


def range_whitener(matrix: Array) -> Array:
    """T of shape (d, rank) with Tᵀ·matrix·T = I on the range of a rank-deficient matrix.

    Found from the eigenvectors on the correlation scale, which do not depend on the order of the
    columns, and then rotated so that column i of T reads only the first d - rank + i + 1 columns.
    """
    basis, _ = range_and_null(matrix)
    if basis.shape[1] == 0:
        return np.zeros((len(matrix), 0))
    _, triangle = np.linalg.qr(basis[::-1].T)
    return np.ascontiguousarray(triangle.T[::-1, ::-1])


def range_and_null(matrix: Array) -> tuple[Array, Array]:
    """B (d, rank) with Bᵀ·matrix·B = I, and N (d, the rest) with matrix·N = 0, judged on the correlation scale.

    Columns of variance 0 are in neither.
    """
    scale = correlation_scale(matrix)
    varying = np.flatnonzero(scale)
    inner = scale[varying]
    values, vectors = np.linalg.eigh(matrix[np.ix_(varying, varying)] * inner * inner[:, None])
    keep = values > rank_tolerance(len(matrix)) * max(float(values[-1]) if len(values) else 1.0, 1.0)
    basis, null = np.zeros((len(scale), int(keep.sum()))), np.zeros((len(scale), int((~keep).sum())))
    basis[varying] = vectors[:, keep] / np.sqrt(values[keep]) * inner[:, None]
    null[varying] = vectors[:, ~keep] * inner[:, None]
    return basis, null
