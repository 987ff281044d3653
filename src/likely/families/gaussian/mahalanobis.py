"""Squared Mahalanobis distances of rows from all class means, in the fastest form that is accurate."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from likely.families.gaussian.covariance import Covariance, DenseCovariance, DiagonalCovariance
from likely.numerics.arrays import float_rows
from likely.numerics.caches import cached_property
from likely.typing import AnyArray, Array, Index

MAX_PAIR_RATIO = 1e2  # of standard deviations under two covariances in one basis: rounding grows with it
MAX_PAIR_COLUMNS = 128  # with more columns, the eigendecomposition takes longer than it saves


class _QuadraticForms:
    """Several quadratic forms without constants: Σ weight·(direction·x)² + linear·x.

    Directions are the columns themselves where none are given.
    """

    def __init__(self, directions: Array | None, weight: Array, linear: Array) -> None:
        self._weight, self._linear, self._rows = weight, linear, None
        if directions is not None:
            self._rows = np.vstack([directions, linear])  # one product computes both
            self._weight = np.hstack([weight, np.eye(len(linear))])

    def into(self, rows: Array, out: Array) -> None:
        """Write the values at rows (n, d) into `out`, (several, n)."""
        if self._rows is None:
            np.matmul(self._weight, np.multiply(rows, rows).T, out=out)
            out += np.dot(self._linear, rows.T)
            return
        turned = np.dot(self._rows, rows.T)
        squares = turned[: -len(self._linear)]
        np.multiply(squares, squares, out=squares)
        np.matmul(self._weight, turned, out=out)


def shared_bases(covariance: DenseCovariance, groups: Sequence[int]) -> tuple[Array, Array] | None:
    """Directions (m, d) in which covariances are diagonal, a basis for each pair, and weights of squares, (groups, m).

    None if the covariances are too different or too large.
    """
    rank, factor = covariance.rank, covariance.factor
    if len(groups) > 1 and rank > MAX_PAIR_COLUMNS:
        return None
    bases = []
    weight = np.zeros((len(factor), -(-len(groups) // 2) * rank))
    for i in range(0, len(groups), 2):
        first = factor[groups[i]]
        place = slice(rank * (i // 2), rank * (i // 2 + 1))
        weight[groups[i], place] = 1.0
        if i + 1 < len(groups):
            # R with T_second = T_first·R takes rows whitened for the first covariance to rows whitened for the second.
            second = factor[groups[i + 1]][covariance.owner]
            relative = np.asarray(scipy.linalg.lapack.dtrtrs(first[covariance.owner], second)[0])
            size = np.abs(relative).max()
            if not 0.0 < size < np.inf:
                return None
            relative /= size
            ratio, turn = np.linalg.eigh(relative @ relative.T)  # squared
            if not ratio[-1] <= MAX_PAIR_RATIO**2 * ratio[0]:
                return None
            first = first @ turn
            weight[groups[i + 1], place] = size * size * ratio
        bases.append(first)
    return np.ascontiguousarray(np.hstack(bases).T), weight


MAX_LINEAR_REACH = 1e4  # rounding grows with the reach where rows are centred before squaring
MAX_SQUARED_REACH = 1e2  # and with its square where squares are expanded
MAX_UNCENTRED_REACH = 30.0  # class means this close to the origin need no centring


class Distances:
    """Squared distances (classes, rows) under one covariance per group of classes: factor · d² + offset.

    There are four forms. "expanded": weight·v² + linear·x + constant with v = basisᵀx, with a basis for each pair of
    covariances in which both are diagonal. "pooled": the same with one covariance for all classes, whose squares are
    summed once. "panels": whitened rows of all classes from a few products that skip the zeros of the triangular
    factors. "one by one": rows are centred and whitened for each class.
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
        self.reach, self.length = covariance.reach(mean, group)
        self._origin: Array | None = None  # that rows and means are centred on
        self._away, centring = mean, 0
        if not max(self.reach, self.length) <= MAX_UNCENTRED_REACH:
            self._origin, self._away, centring = self.centre, mean - self.centre, covariance.dimension
            self.reach, self.length = covariance.reach(self._away, group)
        self._groups = np.unique(group).tolist()
        self.shared = len(self._groups) == 1
        self.form = "one by one"
        self.width = 2 * covariance.dimension + len(mean)
        if not (np.isfinite(self.length) and self.reach <= MAX_LINEAR_REACH and covariance.rank):
            return
        if self.length <= MAX_SQUARED_REACH and self.shared and isinstance(covariance, DenseCovariance):
            self.form = "pooled"
            self._chunk_rows = max(2**18 // (covariance.rank + len(mean)), 256)
            self.width = covariance.rank + 3 * len(mean) + centring
        elif self.length <= MAX_SQUARED_REACH and self._expand():
            self.form = "expanded"
            self.width = 5 * len(mean) + centring
        elif isinstance(covariance, DenseCovariance) and not self.shared:
            self.form = "panels"
            self._build_panels(covariance)

    # -- expanded squares

    def _expand(self) -> bool:
        """Prepare the expanded form; False where covariances are too different to share a basis."""
        covariance, directions = self.covariance, None
        if isinstance(covariance, DiagonalCovariance):
            weight = self._factor * covariance.inverse_deviation[self.group] ** 2
        else:
            assert isinstance(covariance, DenseCovariance)
            bases = shared_bases(covariance, self._groups)
            if bases is None:
                return False
            directions, weight = bases[0], self._factor * bases[1][self.group]
        turned = self._away if directions is None else self._away @ directions.T
        pull = weight * turned
        linear = -2.0 * (pull if directions is None else pull @ directions)
        self._terms = _QuadraticForms(directions, weight, linear)
        self._constant = self._offset + np.einsum("kv,kv->k", pull, turned)[:, None]
        self._chunk_rows = max(2**18 // weight.shape[1], 256)
        return True

    def _expanded(self, rows: AnyArray) -> Array:
        local = float_rows(rows, self._origin)
        squared = np.empty((len(self.mean), len(local)))
        # In chunks whose projections fit the cache.
        for start in range(0, len(local), self._chunk_rows):
            self._terms.into(local[start : start + self._chunk_rows], squared[:, start : start + self._chunk_rows])
        squared += self._constant
        return squared

    # -- pooled covariance

    @cached_property
    def _pooled_terms(self) -> tuple[list[tuple[int, int, Array]], Array]:
        """The triangular factor in parts that skip its zeros, linear terms below the last part; and the constants."""
        covariance, g = self.covariance, int(self.group[0])
        assert isinstance(covariance, DenseCovariance)
        factor, rank = covariance.factor[g], covariance.rank
        white = covariance.whiten(self._away, g)
        linear = -2.0 * self._factor * (white @ factor.T)
        triangle: list[tuple[int, int, Array]] = []
        cuts = np.linspace(0, rank, int(np.clip(rank // 50, 1, 10)) + 1).astype(int)
        for begin, end in itertools.pairwise(cuts.tolist()):
            depth = int(covariance.owner[end - 1]) + 1 if end < rank else covariance.dimension
            part = factor[:depth, begin:end].T
            triangle.append((begin, depth, np.vstack([part, linear] if end == rank else [part])))
        return triangle, self._offset + self._factor * np.einsum("kr,kr->k", white, white)[:, None]

    @cached_property
    def between_means(self) -> Array:
        """Squared distances between the class means, (classes, classes), without the offset."""
        white = self.covariance.whiten(self.mean - self.centre, int(self.group[0]))
        steps = white[:, None] - white
        return np.asarray(self._factor * np.einsum("kcr,kcr->kc", steps, steps))

    def _pooled(self, rows: AnyArray) -> Array:
        local, rank, (triangle, constant) = float_rows(rows, self._origin), self.covariance.rank, self._pooled_terms
        squared = np.empty((len(self.mean), len(local)))
        alike = np.ptp(self._factor) == 0.0
        for start in range(0, len(local), self._chunk_rows):
            some, place = local[start : start + self._chunk_rows], squared[:, start : start + self._chunk_rows]
            turned = np.empty((rank + len(self.mean), len(some)))
            for begin, depth, part in triangle:
                np.matmul(part, some[:, :depth].T, out=turned[begin : begin + len(part)])
            length = np.einsum("rn,rn->n", turned[:rank], turned[:rank])
            if alike:
                length *= self._factor[0]
                np.add(turned[rank:], length, out=place)
            else:
                np.multiply(self._factor, length, out=place)
                place += turned[rank:]
            place += constant
        return squared

    # -- panels

    def _build_panels(self, covariance: DenseCovariance) -> None:
        """The factors of all classes side by side, in parts that skip the zeros of the triangles.

        A leading 1 in every row brings the class means into the product.
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

    def _from_panels(self, rows: AnyArray) -> Array:
        n, classes = len(rows), len(self.mean)
        with_one = np.empty((n, self.covariance.dimension + 1))
        with_one[:, 0] = 1.0
        np.subtract(rows, self.centre, out=with_one[:, 1:])
        squared = np.empty((classes, n))
        for i, (depth, wide, panel) in enumerate(self._panels):
            white = np.dot(with_one[:, : depth + 1], panel).reshape(n, classes, wide)
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

    def scaled(self, rows: AnyArray) -> Array:
        """factor · d² + offset, (classes, n); not finite where a square overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.form == "expanded":
                return self._expanded(rows)
            if self.form == "pooled":
                return self._pooled(rows)
            squared = self._from_panels(rows) if self.form == "panels" else self._one_by_one(rows)
            squared *= self._factor
            squared += self._offset
            return squared
