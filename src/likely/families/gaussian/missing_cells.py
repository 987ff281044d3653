"""Missing values of Gaussian rows given the observed ones: conditional expectations and variances."""

from __future__ import annotations

import numpy as np

from likely.errors import NotEstimableError
from likely.numerics.block_sizes import TOGETHER
from likely.typing import AnyArray, Array


def _inverse(precision: Array) -> Array:
    """The inverses of some matrices, which EM under maximum likelihood may have made singular."""
    try:
        return np.asarray(np.linalg.inv(precision), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise NotEstimableError(
            "The covariance of missing values given the observed ones is singular up to rounding: EM approaches a "
            "covariance without a maximum of the likelihood. Use estimation='bayes' or 'map', "
            "covariance='diagonal', or drop columns with many missing values."
        ) from None


class MissingValues:
    """Missing values of some rows, and their covariance given the observed ones, under one precision matrix (d, d)."""

    def __init__(self, missing: AnyArray, precision: Array) -> None:
        self.precision = precision
        self.logs = np.zeros(len(missing))  # log|P_mm|
        self._parts: list[tuple[AnyArray, AnyArray, Array]] = []
        count = missing.sum(axis=1)
        for size in np.flatnonzero(np.bincount(count, minlength=1)).tolist():
            if not size:
                continue
            rows = np.flatnonzero(count == size)
            step = max(TOGETHER // size**2, 1)
            for index in (rows[start : start + step] for start in range(0, len(rows), step)):
                columns = np.nonzero(missing[index])[1].reshape(-1, size)
                inner = precision[columns[:, :, None], columns[:, None, :]]
                if size == 1:
                    self.logs[index], inverse = np.log(inner[:, 0, 0]), 1.0 / inner
                else:
                    self.logs[index] = np.linalg.slogdet(inner)[1]
                    inverse = _inverse(inner)
                self._parts.append((index, columns, inverse))

    def fill(self, centred: Array) -> None:
        """Fill in conditional expectations, in place, in centred rows whose missing values are 0."""
        if not self._parts:
            return
        pull = centred @ self.precision
        for index, columns, inverse in self._parts:
            place = index[:, None], columns
            centred[place] = -np.matmul(inverse, pull[place][:, :, None])[:, :, 0]

    def covariance_sum(self, weights: Array) -> Array:
        """Σ over rows of weight · C, (d, d), with C the conditional covariance of the missing values."""
        d = len(self.precision)
        total = np.zeros(d * d)
        for index, columns, inverse in self._parts:
            flat = columns[:, :, None] * d + columns[:, None, :]
            total += np.bincount(flat.ravel(), (weights[index][:, None, None] * inverse).ravel(), minlength=d * d)
        return total.reshape(d, d)

    def propagated(self, slopes: Array) -> Array:
        """W·C·Wᵀ of each row, (n, q, q): the conditional covariance of linear forms with slopes W, (q, d)."""
        covariance_sum = np.zeros((len(self.logs), len(slopes), len(slopes)))
        for index, columns, inverse in self._parts:
            carried = slopes[:, columns].transpose(1, 0, 2)
            covariance_sum[index] = carried @ inverse @ carried.transpose(0, 2, 1)
        return covariance_sum
