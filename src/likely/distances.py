"""Squared Mahalanobis distances of row blocks from all class means at once.

Products over all classes are fastest, but they subtract numbers that can be much larger than their
difference. How much larger is known when the model is built: `reach` is how far the class means lie from
their centre in deviations. Each form is used only where its rounding stays far below 1e-10; beyond
that every class is centred on its own mean first: the same answer, more slowly.
"""

from __future__ import annotations

import itertools

import numpy as np

from likely.covariance import Covariance, DenseCovariance, DiagonalCovariance, Index
from likely.numerics import AnyArray, Array, scratch

LINEAR_REACH = 1e4  # rounding grows with the reach where differences are taken before squaring
SQUARED_REACH = 1e2  # and with its square where squares are expanded


class Distances:
    """Squared distances (classes, rows) under one covariance for each group of classes."""

    def __init__(self, covariance: Covariance, mean: Array, group: Index) -> None:
        self.covariance, self.mean, self.group = covariance, mean, group
        self.centre = mean[0] + (mean - mean[0]).mean(axis=0)  # exact where all means agree
        away = mean - self.centre
        self.reach = max((covariance.offset(v, g) for v, g in zip(away, group, strict=True)), default=0.0)
        white = [covariance.whiten(v[None], g)[0] for v, g in zip(away, group, strict=True)]
        with np.errstate(over="ignore"):
            self.length = max((float(np.sqrt(z @ z)) for z in white), default=0.0)
        self.shared = len(np.unique(group)) == 1
        self._prepare(np.array(white))

    def _prepare(self, white: Array) -> None:
        covariance, classes = self.covariance, len(self.mean)
        self._panels: list[tuple[int, int, Array]] = []
        self.form = "one by one"
        self.width = 2 * covariance.dimension + classes
        if not np.isfinite(self.length) or self.reach > LINEAR_REACH or covariance.rank == 0:
            return
        small = self.length <= SQUARED_REACH
        if isinstance(covariance, DiagonalCovariance):
            if small:
                self.form = "diagonal"
                scale = covariance.inverse_deviation[self.group]
                away = self.mean - self.centre
                self._square, self._linear = scale**2, 2.0 * away * scale**2
                self._constant = (away * scale) ** 2 @ np.ones(covariance.dimension)
        elif isinstance(covariance, DenseCovariance):
            if self.shared and small:
                self.form = "shared"
                self._white, self._constant = 2.0 * white, np.einsum("kr,kr->k", white, white)
            elif not self.shared:
                self.form = "panels"
                self._build_panels(covariance)

    def _build_panels(self, covariance: DenseCovariance) -> None:
        """The factors of all classes side by side, cut so that the zeros of the triangles are skipped.

        A leading 1 in every row carries the class means into the product.
        """
        rank, classes = covariance.rank, len(self.mean)
        count = int(np.clip(rank // 20, 1, 10))
        cuts = np.linspace(0, rank, count + 1).astype(int)
        away = self.mean - self.centre
        for begin, end in itertools.pairwise(cuts.tolist()):
            depth = int(covariance.owner[end - 1]) + 1
            panel = np.empty((depth + 1, classes, end - begin))
            for k, g in enumerate(self.group):
                part = covariance.factor[g, :depth, begin:end]
                panel[1:, k], panel[0, k] = part, -(away[k, :depth] @ part)
            self._panels.append((depth, end - begin, panel.reshape(depth + 1, -1)))
        self.width = 2 * (covariance.dimension + max(p[2].shape[1] for p in self._panels)) + classes

    def squared(self, rows: AnyArray) -> Array:
        """Squared distances, (classes, n); inf where a square overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.form == "diagonal":
                centred = scratch.array("centred", len(rows), self.covariance.dimension)
                np.subtract(rows, self.centre, out=centred)
                squared = self._linear @ centred.T
                np.multiply(centred, centred, out=centred)
                np.subtract(self._square @ centred.T, squared, out=squared)
                squared += self._constant[:, None]
                return np.maximum(squared, 0.0, out=squared)
            if self.form == "shared":
                white = self.covariance.whiten(np.subtract(rows, self.centre, dtype=np.float64), int(self.group[0]))
                squared = np.einsum("nr,nr->n", white, white) - self._white @ white.T
                squared += self._constant[:, None]
                return np.maximum(squared, 0.0, out=squared)
            if self.form == "panels":
                return self._by_panels(rows)
            return self._one_by_one(rows)

    def _by_panels(self, rows: AnyArray) -> Array:
        n, classes = len(rows), len(self.mean)
        led = scratch.array("led", n, self.covariance.dimension + 1)
        led[:, 0] = 1.0
        np.subtract(rows, self.centre, out=led[:, 1:])
        squared = np.empty((classes, n))
        for i, (depth, wide, panel) in enumerate(self._panels):
            white = np.dot(led[:, : depth + 1], panel, out=scratch.array("white", n, classes * wide))
            white = white.reshape(n, classes, wide)
            if i == 0:
                np.einsum("nkr,nkr->nk", white, white, out=squared.T)
            else:
                squared += np.einsum("nkr,nkr->nk", white, white).T
        return squared

    def _one_by_one(self, rows: AnyArray) -> Array:
        squared = np.empty((len(self.mean), len(rows)))
        for k, (mean, g) in enumerate(zip(self.mean, self.group, strict=True)):
            white = self.covariance.whiten(np.subtract(rows, mean, dtype=np.float64), int(g))
            np.einsum("nr,nr->n", white, white, out=squared[k])
        return squared
