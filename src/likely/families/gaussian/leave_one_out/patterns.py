"""Leave-one-out densities of rows with missing values, with full covariances.

A row that EM completed is removed with its expected statistics at the final parameters. In the observed columns these
are the statistics of the row itself, so its leave-one-out density is that of the marginal model of these columns: rows
with each missingness pattern are evaluated by the closed forms of complete rows. Shrinkage toward a scaled identity
depends on the variances of all columns, and needs one covariance for each row.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from likely.errors import MissingCellError
from likely.families.base import LeaveOneOutDensity
from likely.families.estimation import Estimation
from likely.families.gaussian.leave_one_out.base import LeaveOneOut, Removal
from likely.families.gaussian.missing_cells import MissingValues
from likely.families.gaussian.shrinkage import toward_sphere
from likely.numerics.arrays import has_missing
from likely.numerics.linalg import lower_factor
from likely.numerics.missingness import patterns
from likely.numerics.special import LOG_2PI
from likely.typing import AnyArray, Array, Codes, Index

NEVER_MISSING = "is missing (NaN), but no training row has missing values among these columns"
AS_FITTED = "pass rows as they were in the fit"


def with_missing_values(whole: LeaveOneOut) -> LeaveOneOutDensity:
    """The function that evaluates leave-one-out densities of complete rows and of rows with missing values."""
    complete = whole.evaluator()
    cache: dict[bytes, LeaveOneOutDensity] = {}

    def marginal(observed: Index) -> LeaveOneOutDensity:
        if observed.tobytes() not in cache:
            cache[observed.tobytes()] = _marginal(whole, observed).evaluator()
        return cache[observed.tobytes()]

    def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
        if not has_missing(rows):
            return complete(rows, codes, weights)
        out = np.zeros((len(whole.mean), len(rows)))
        for index, observed in patterns(rows):
            some = np.ascontiguousarray(rows[np.ix_(index, observed)])
            if len(observed) == rows.shape[1]:
                out[:, index] = complete(some, codes[index], weights[index])
                continue
            seen = np.isin(whole.active, observed)
            if not seen.any():
                continue  # nothing was learnt from such a row
            if not seen.all() and whole.varying.observed == 1.0:
                column = int(whole.active[np.argmin(seen)])
                raise MissingCellError(int(index[0]), column, np.nan, NEVER_MISSING, AS_FITTED)
            if whole.intensity is None:
                out[:, index] = marginal(observed)(some, codes[index], weights[index])
            else:
                out[:, index] = _shrunken(whole, rows[index], observed, codes[index], weights[index])
        return out

    return density


def _marginal(whole: LeaveOneOut, observed: Index) -> LeaveOneOut:
    """The same sums for some of the columns, divided as those of all columns are."""
    columns = np.flatnonzero(np.isin(whole.active, observed))
    fewer = len(whole.active) - len(columns)
    degrees = {Estimation.MLE: 0, Estimation.MAP: fewer, Estimation.BAYES: -fewer}[whole.estimation] + whole.degrees
    return replace(
        whole,
        varying=whole.varying.take(columns),
        active=np.searchsorted(observed, whole.active[columns]),
        mean=whole.mean[:, columns],
        scale=whole.scale[:, columns[:, None], columns],
        degrees=degrees,
        fitted=whole.fitted.marginal(observed),
        cache={},
    )


def _shrunken(whole: LeaveOneOut, rows: AnyArray, observed: Index, codes: Codes, weights: Array) -> Array:
    """Densities (K, n) of rows with one pattern, by shrunken covariances without the expected statistics of each."""
    columns = np.flatnonzero(np.isin(whole.active, observed))
    unit = float(whole.log_unit[columns].sum()) + 0.5 * len(columns) * LOG_2PI
    local, group = whole.local(rows), whole.varying.group
    out = np.empty((len(whole.mean), len(rows)))
    for i, (c, w) in enumerate(zip(codes.tolist(), weights.tolist(), strict=True)):
        removal = Removal.of(whole.rows[c : c + 1], np.array([w]))
        g, scale = int(group[c]), whole.scale.copy()
        centred, covariance = _expected(whole, local[i], c, g)
        scale[g] -= float(removal.factor[0]) * np.outer(centred, centred) + w * covariance
        means = whole.mean.copy()
        means[c] -= (float(removal.inflation[0]) - 1.0) * centred
        divisors = np.array([_divisor(whole, h, w if h == g else 0.0, removal.emptied) for h in range(len(scale))])
        matrices = scale / divisors[:, None, None]
        if whole.pooling:
            pooled = scale.sum(axis=0) / (whole.varying.total_weight - w - whole.unbiased * len(means))
            matrices = (1.0 - whole.pooling) * matrices + whole.pooling * pooled
        assert whole.intensity is not None
        matrices = toward_sphere(matrices, whole.intensity, whole.structure, whole.varying)
        for k in range(len(means)):
            factor = lower_factor(matrices[group[k]][np.ix_(columns, columns)])
            if factor is None or (k == c and removal.emptied[0]):
                out[k, i] = -np.inf
                continue
            white = np.linalg.solve(factor, local[i, columns] - means[k, columns])
            out[k, i] = -0.5 * float(white @ white) - float(np.log(np.diagonal(factor)).sum()) - unit
    return out


def _divisor(whole: LeaveOneOut, g: int, w: float, emptied: AnyArray) -> float:
    return float(whole.divisor(whole.remaining_degrees(g, np.array([w])), emptied & (w > 0.0), g)[0])


def _expected(whole: LeaveOneOut, row: Array, c: int, g: int) -> tuple[Array, Array]:
    """A completed row of class c about the class mean, and the covariance of its missing values given the others."""
    matrix = whole.fitted.covariance.matrix(g)[np.ix_(whole.active, whole.active)]
    missing = np.isnan(row)[None]
    values = MissingValues(missing, np.asarray(np.linalg.inv(matrix), dtype=np.float64))
    centred = np.where(missing, 0.0, row - whole.mean[c])
    values.fill(centred)
    return centred[0], values.covariance_sum(np.ones(1))
