"""Expected moments of Gaussian rows with missing values: the E-step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from likely.families.gaussian.elliptical import Elliptical
from likely.families.gaussian.missing_cells import MissingValues
from likely.numerics.arrays import has_missing
from likely.statistics.accumulator import Accumulator
from likely.statistics.moments import Moments
from likely.typing import AnyArray, Array, Codes, Index


class ExpectedMoments:
    """Accumulates moments of rows with missing values: conditional expectations and covariances.

    Rows without any observed value are ignored.
    """

    def __init__(self, accumulator: Accumulator, fitted: Elliptical) -> None:
        self._accumulator, self._fitted = accumulator, fitted
        self._owner = fitted.covariance.owner
        self._precision = [
            fitted.covariance.precision(g)[np.ix_(self._owner, self._owner)] for g in range(int(fitted.group.max()) + 1)
        ]
        d = fitted.dimension
        self._all_weight, self._observed_weight = 0.0, 0.0  # weight of all values, and of the observed ones
        self._covariance_sum = np.zeros((fitted.n_classes, d, d))  # in local units

    @property
    def block_rows(self) -> int:
        return min(self._accumulator.block_rows, 2**15)

    @property
    def groups(self) -> Index | None:
        return self._accumulator.groups

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        if not has_missing(block):
            weight = float(len(block) if weights is None else weights.sum()) * block.shape[1]
            self._all_weight, self._observed_weight = self._all_weight + weight, self._observed_weight + weight
            self._accumulator.add(block, codes, weights)
            return
        missing, weights = np.isnan(block), np.ones(len(block)) if weights is None else weights
        known = ~missing.all(axis=1)
        if not known.all():
            block, missing, codes, weights = block[known], missing[known], codes[known], weights[known]
        self._all_weight += float(weights.sum()) * block.shape[1]
        self._observed_weight += float(weights @ (~missing).sum(axis=1))
        fitted, owner = self._fitted, self._owner
        centred = np.asarray(fitted.local(block), dtype=np.float64) - fitted.mean[codes]
        centred[missing] = 0.0
        for g in np.flatnonzero(np.bincount(fitted.group[codes], minlength=1)).tolist():
            rows = np.flatnonzero(fitted.group[codes] == g)
            missing_values = MissingValues(missing[np.ix_(rows, owner)], self._precision[g])
            inner = centred[np.ix_(rows, owner)]
            missing_values.fill(inner)
            centred[np.ix_(rows, owner)] = inner
            for k in np.flatnonzero(np.bincount(codes[rows], minlength=1)).tolist():
                class_weights = np.where(codes[rows] == k, weights[rows], 0.0)
                added = fitted.stretch[k] * missing_values.covariance_sum(class_weights)
                self._covariance_sum[k][np.ix_(owner, owner)] += added
        filled = fitted.coordinates.to_user(centred + fitted.mean[codes])
        self._accumulator.add(np.where(missing, filled, block), codes, weights)

    def finish(self) -> Moments:
        moments: Moments = self._accumulator.finish()
        unit = self._fitted.coordinates.unit / moments.coordinates.unit
        for k, g in enumerate(moments.group):
            moments.scatter[g] += self._covariance_sum[k] * unit * unit[:, None]
        if self._observed_weight < self._all_weight:
            return replace(moments, observed=self._observed_weight / self._all_weight)
        return moments
