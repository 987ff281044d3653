"""Expected moments of Gaussian rows with missing values: the E-step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from likely.families.gaussian.accumulator import MomentsAccumulator
from likely.families.gaussian.densities import Elliptical
from likely.families.gaussian.missing_cells import MissingValues
from likely.statistics.moments import Moments
from likely.typing import AnyArray, Array, Codes, Index


class ExpectedMoments:
    """Sums moments of rows whose missing cells have their conditional expectations, and how much these vary.

    Rows of which nothing is known say nothing, and are left out.
    """

    def __init__(self, builder: MomentsAccumulator, fitted: Elliptical) -> None:
        self._builder, self._fitted = builder, fitted
        self._owner = fitted.covariance.owner
        self._precision = [
            fitted.covariance.precision(g)[np.ix_(self._owner, self._owner)] for g in range(int(fitted.group.max()) + 1)
        ]
        d = fitted.dimension
        self._cells, self._there = 0.0, 0.0  # weight of all cells, and of those that are there
        self._spread = np.zeros((fitted.n_classes, d, d))  # in local units

    @property
    def block_rows(self) -> int:
        return min(self._builder.block_rows, 2**15)

    @property
    def groups(self) -> Index | None:
        return self._builder.groups

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        missing = np.isnan(block) if block.dtype.kind == "f" else None
        if missing is None or not missing.any():
            all_cells = float(len(block) if weights is None else weights.sum()) * block.shape[1]
            self._cells, self._there = self._cells + all_cells, self._there + all_cells
            self._builder.add(block, codes, weights)
            return
        weights = np.ones(len(block)) if weights is None else weights
        known = ~missing.all(axis=1)
        if not known.all():
            block, missing, codes, weights = block[known], missing[known], codes[known], weights[known]
        self._cells += float(weights.sum()) * block.shape[1]
        self._there += float(weights @ (~missing).sum(axis=1))
        fitted, owner = self._fitted, self._owner
        with np.errstate(invalid="ignore", over="ignore"):
            centred = np.asarray(fitted.coordinates.to_local(block), dtype=np.float64) - fitted.mean[codes]
        centred[missing] = 0.0
        for g in np.flatnonzero(np.bincount(fitted.group[codes], minlength=1)).tolist():
            rows = np.flatnonzero(fitted.group[codes] == g)
            holes = MissingValues(missing[np.ix_(rows, owner)], self._precision[g])
            inner = centred[np.ix_(rows, owner)]
            holes.fill(inner)
            centred[np.ix_(rows, owner)] = inner
            for k in np.flatnonzero(np.bincount(codes[rows], minlength=1)).tolist():
                share = np.where(codes[rows] == k, weights[rows], 0.0)
                self._spread[k][np.ix_(owner, owner)] += fitted.stretch[k] * holes.spread(share)
        filled = fitted.coordinates.to_user(centred + fitted.mean[codes])
        self._builder.add(np.where(missing, filled, block), codes, weights)

    def finish(self) -> Moments:
        moments = self._builder.finish()
        unit = self._fitted.coordinates.unit / moments.coordinates.unit
        for k, g in enumerate(moments.group):
            moments.scatter[g] += self._spread[k] * unit * unit[:, None]
        return replace(moments, observed=self._there / self._cells) if self._there < self._cells else moments
