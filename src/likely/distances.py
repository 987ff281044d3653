"""Squared Mahalanobis distances of row blocks from all class means at once.

Products over all classes are fastest, but they subtract numbers that can be much larger than their
difference. How much larger is known when the model is built: `reach` is how far the class means lie, in
deviations, from their centre, or from 0 where that is near. Each form is used only where its rounding stays
far below 1e-10; beyond that every class is centred on its own mean first: the same answer, more slowly.
"""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np
import scipy.linalg

from likely.covariance import Covariance, DenseCovariance, DiagonalCovariance
from likely.numerics import AnyArray, Array, Index, float_rows, scratch

LINEAR_REACH = 1e4  # rounding grows with the reach where differences are taken before squaring
SQUARED_REACH = 1e2  # and with its square where squares are expanded
PLAIN_REACH = 30.0  # class means this near the origin need no centre
PAIR_SPREAD = 1e2  # rounding grows with the ratio of the deviations of two covariances that share a basis
PAIR_COLUMNS = 128  # beyond so many columns it takes longer to find such a basis than it saves


class Distances:
    """Squared distances (classes, rows) under one covariance for each group of classes: factor · d² + offset.

    Three forms. "expanded": weight·v² + linear·x + constant with v = basisᵀx, where covariances share a
    basis in which they are diagonal, at most two of them each (any two have one). "panels": whitened
    rows of all classes from a few products that skip the zeros of the triangular factors. "one by one".
    """

    def __init__(
        self,
        covariance: Covariance,
        mean: Array,
        group: Index,
        factor: Array | None = None,
        offset: Array | None = None,
    ) -> None:
        self.covariance, self.mean, self.group = covariance, mean, group
        self._factor = np.ones((len(mean), 1)) if factor is None else factor[:, None]
        self._offset = np.zeros((len(mean), 1)) if offset is None else offset[:, None]
        self.centre = mean[0] + (mean - mean[0]).mean(axis=0)  # exact where all means agree
        self.reach, self.length = self._measure(mean)
        self._near = max(self.reach, self.length) <= PLAIN_REACH
        if not self._near:
            self.reach, self.length = self._measure(mean - self.centre)
        self._groups = np.unique(group).tolist()
        self.shared = len(self._groups) == 1
        self.form = "one by one"
        self.width = 2 * covariance.dimension + len(mean)
        if not np.isfinite(self.length) or self.reach > LINEAR_REACH or covariance.rank == 0:
            return
        if self.length <= SQUARED_REACH and self._expand():
            self.form = "expanded"
        elif isinstance(covariance, DenseCovariance) and not self.shared:
            self.form = "panels"
            self._build_panels(covariance)

    def _measure(self, away: Array) -> tuple[float, float]:
        """How far these points lie from 0, each under its class's covariance: amplified rounding, and deviations."""
        pairs = list(zip(away, self.group, strict=True))
        reach = max((self.covariance.offset(v, g) for v, g in pairs), default=0.0)
        white = [self.covariance.whiten(v[None], g)[0] for v, g in pairs]
        with np.errstate(over="ignore"):
            return reach, max((float(np.sqrt(z @ z)) for z in white), default=0.0)

    # -- expanded squares

    def _expand(self) -> bool:
        """Prepare the expanded form; False where covariances are too different to share a basis."""
        bases = self._bases()
        if bases is None:
            return False
        self._basis, weight = bases
        self._weight = self._factor * weight[self.group]
        self._origin = None if self._near else self.centre
        away = self.mean if self._near else self.mean - self.centre
        turned = away if self._basis is None else away @ self._basis
        pull = self._weight * turned
        self._linear = -2.0 * (pull if self._basis is None else pull @ self._basis.T)
        self._constant = self._offset + np.einsum("kv,kv->k", pull, turned)[:, None]
        self._short = max(2**18 // weight.shape[1], 256)
        self.width = 5 * len(self.mean) + (0 if self._near else self.covariance.dimension)
        return True

    def _bases(self) -> tuple[Array | None, Array] | None:
        """Directions (d, m), None for the columns themselves, and how much each counts in each group, (groups, m)."""
        covariance = self.covariance
        if isinstance(covariance, DiagonalCovariance):
            return None, covariance.inverse_deviation**2
        assert isinstance(covariance, DenseCovariance)
        groups, rank = self._groups, covariance.rank
        if len(groups) > 1 and rank > PAIR_COLUMNS:
            return None
        bases = []
        weight = np.zeros((len(covariance.factor), -(-len(groups) // 2) * rank))
        for i in range(0, len(groups), 2):
            first = covariance.factor[groups[i]]
            place = slice(rank * (i // 2), rank * (i // 2 + 1))
            weight[groups[i], place] = 1.0
            if i + 1 < len(groups):
                second = covariance.factor[groups[i + 1]]
                # Rows whitened for the first, times this, are whitened for the second.
                change, _ = scipy.linalg.lapack.dtrtrs(first[covariance.owner], second[covariance.owner])
                turn, ratio, _ = np.linalg.svd(change)
                if not ratio[0] <= PAIR_SPREAD * ratio[-1]:
                    return None
                first = first @ turn
                weight[groups[i + 1], place] = ratio**2
            bases.append(first)
        return np.hstack(bases), weight

    @cached_property
    def _differences(self) -> tuple[Array, Array, Array]:
        """Weights, linear terms and constants of all classes but the first, minus the first one's."""
        weight, linear, constant = self._weight, self._linear, self._constant
        return weight[1:] - weight[0], linear[1:] - linear[0], constant[1:] - constant[0]

    def _expanded(self, rows: AnyArray, relative: bool) -> Array:
        local, classes = float_rows(rows, self._origin), len(self.mean)
        weight, linear, constant = self._differences if relative else (self._weight, self._linear, self._constant)
        answer = np.empty((classes, len(local)))
        answer[: classes - len(weight)] = 0.0
        part = answer[classes - len(weight) :]
        # Only what is wide is cut to the cache: the fewer calls, the less threads wait for one another.
        for start in range(0, len(local), self._short):
            some = local[start : start + self._short]
            if self._basis is None:
                turned = np.multiply(some, some, out=scratch.like("turned", some))
            else:
                turned = np.dot(some, self._basis, out=scratch.array("turned", len(some), self._basis.shape[1]))
                np.multiply(turned, turned, out=turned)
            np.matmul(weight, turned.T, out=part[:, start : start + self._short])
        part += np.dot(linear, local.T)
        part += constant
        return answer

    # -- panels

    def _build_panels(self, covariance: DenseCovariance) -> None:
        """The factors of all classes side by side, cut so that the zeros of the triangles are skipped.

        A leading 1 in every row carries the class means into the product.
        """
        self._panels: list[tuple[int, int, Array]] = []
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

    def scaled(self, rows: AnyArray, relative: bool = False) -> Array:
        """factor · d² + offset, (classes, n); not finite where a square overflows.

        `relative` allows to leave out a term that all classes share; the first one's may then be 0.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if self.form == "expanded":
                return self._expanded(rows, relative)
            squared = self._by_panels(rows) if self.form == "panels" else self._one_by_one(rows)
            squared *= self._factor
            squared += self._offset
            return squared
