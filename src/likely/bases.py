"""Bases in which squared distances under several covariances are sums of weighted squares.

Any two covariances have a basis in which both are diagonal, so that two of them cost what one does. Where only
differences count, of all from the first, two differences share a basis too, and an odd number of covariances
needs one basis less. A difference is not definite: some of its squares are complex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from likely.covariance import DenseCovariance
from likely.numerics import Array, scratch

PAIR_SPREAD = 1e2  # rounding grows with the ratio of the deviations of two covariances that share a basis
PAIR_COLUMNS = 128  # beyond so many columns it takes longer to find such a basis than it saves
PENCIL_GROWTH = 1e3  # rounding of a difference grows with the sum of the sizes of its squares
PENCIL_ERROR = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """Several quadratic forms, without constants: Σ weight·(direction·x)² + Σ weight·u·v + linear·x.

    The first directions come in `pairs`, all u before all v, of which the products count too. `directions` is None
    where they are the columns themselves.
    """

    directions: Array | None  # (m, d)
    weight: Array  # of the squares, and then of the products, (several, m + pairs)
    linear: Array  # (several, d)
    pairs: int = 0
    _rows: Array | None = None  # directions, and below them the linear terms: one product gives both
    _all: Array | None = None  # weights of squares, linear terms and products

    @classmethod
    def make(cls, directions: Array | None, weight: Array, linear: Array, pairs: int = 0) -> Forms:
        """Forms that are ready to be asked."""
        if directions is None:
            return cls(None, weight, linear)
        m = len(directions)
        ready = np.hstack([weight[:, :m], np.eye(len(linear)), weight[:, m:]])
        return cls(directions, weight, linear, pairs, np.vstack([directions, linear]), ready)

    def minus_first(self) -> Forms:
        """The forms of all but the first, minus that one."""
        return self.make(
            self.directions, self.weight[1:] - self.weight[0], self.linear[1:] - self.linear[0], self.pairs
        )

    def into(self, rows: Array, out: Array) -> None:
        """Write the values at rows (n, d) into `out`, (several, n)."""
        if self._rows is None or self._all is None:
            squares = np.multiply(rows, rows, out=scratch.like("turned", rows))
            np.matmul(self.weight, squares.T, out=out)
            out += np.dot(self.linear, rows.T)
            return
        several, pairs, seen = len(self.weight), self.pairs, len(self._rows)
        turned = scratch.array("turned", seen + pairs, len(rows))
        np.dot(self._rows, rows.T, out=turned[:seen])
        if pairs:
            np.multiply(turned[:pairs], turned[pairs : 2 * pairs], out=turned[seen:])
        squares = turned[: seen - several]
        np.multiply(squares, squares, out=squares)
        np.matmul(self._all, turned, out=out)


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Directions (m, d), the first ones in `pairs`, and how much squares along them count, and products of pairs,
    for each of several covariances, (several, m + pairs).
    """

    directions: Array
    weight: Array
    pairs: int = 0


def shared_bases(covariance: DenseCovariance, groups: Sequence[int]) -> Basis | None:
    """Squared distances under these covariances, two in a basis; None where they are too different, or too wide."""
    rank = covariance.rank
    if len(groups) > 1 and rank > PAIR_COLUMNS:
        return None
    bases = []
    weight = np.zeros((len(covariance.factor), -(-len(groups) // 2) * rank))
    for i in range(0, len(groups), 2):
        first = covariance.factor[groups[i]]
        place = slice(rank * (i // 2), rank * (i // 2 + 1))
        weight[groups[i], place] = 1.0
        if i + 1 < len(groups):
            turn, ratio, _ = np.linalg.svd(_change(covariance, groups[i], groups[i + 1]))
            if not ratio[0] <= PAIR_SPREAD * ratio[-1]:
                return None
            first = first @ turn
            weight[groups[i + 1], place] = ratio**2
        bases.append(first)
    return Basis(np.ascontiguousarray(np.hstack(bases).T), weight)


def difference_bases(covariance: DenseCovariance, groups: Sequence[int]) -> Basis | None:
    """Squared distances minus those under the first of these covariances; None where digits would be lost.

    `weight` has a row for every covariance, 0 for the first.
    """
    first, *others = groups
    identity = np.eye(covariance.rank)
    parts: list[list[tuple[Array, Array]]] = []  # of each two: u, v and real directions, and what products count
    for pair in zip(others[::2], others[1::2], strict=True):
        changes = [_change(covariance, first, g) for g in pair]
        found = _pencil(np.array([change @ change.T - identity for change in changes]))
        if found is None:
            return None
        wide = []
        for directions, weight in found:
            all_weights = np.zeros((len(covariance.factor), weight.shape[1]))
            all_weights[list(pair)] = weight
            wide.append((covariance.factor[first] @ directions, all_weights))
        parts.append(wide)
    u, v, real, products = ([some[i] for some in parts] for i in range(4))
    directions = np.hstack([direction for direction, _ in (*u, *v, *real)])
    weight = np.hstack([share for _, share in (*u, *v, *real, *products)])
    return Basis(np.ascontiguousarray(directions.T), weight, sum(direction.shape[1] for direction, _ in u))


def _change(covariance: DenseCovariance, first: int, second: int) -> Array:
    """Rows whitened for the first covariance, times this, are whitened for the second."""
    change, _ = scipy.linalg.lapack.dtrtrs(
        covariance.factor[first][covariance.owner], covariance.factor[second][covariance.owner]
    )
    return np.asarray(change)


def _pencil(forms: Array) -> list[tuple[Array, Array]] | None:
    """Two symmetric matrices as sums over one set of directions b: Σ weight·b·bᵀ, some of them complex, b = u + iv.

    With the eigenvectors V of the pencil, VᵀAV is diagonal for both, so A = V⁻ᵀ diag(VᵀAV) V⁻¹. Of two conjugates
    2·Re(w·(u + iv)²) = 2·Re w·(u² − v²) − 4·Im w·u·v is left. Directions with the weights of both forms are given in
    turn for u, v, real ones, and products u·v, which have none of their own.
    """
    try:
        (alpha, _), vectors = scipy.linalg.eig(*forms, homogeneous_eigvals=True)
        directions = np.linalg.inv(vectors).T
    except (np.linalg.LinAlgError, ValueError):
        return None
    weight = np.einsum("ij,kil,lj->kj", vectors, forms, vectors)
    size = np.abs(weight) @ np.sum(np.abs(directions) ** 2, axis=0)
    again = np.einsum("ij,kj,lj->kil", directions, weight, directions)
    if not (size.max() <= PENCIL_GROWTH and np.abs(again - forms).max() <= PENCIL_ERROR):
        return None
    real, turning = alpha.imag == 0.0, alpha.imag > 0.0  # of two conjugates the first
    b, w = directions[:, turning], weight[:, turning]
    return [
        (b.real, 2.0 * w.real),
        (b.imag, -2.0 * w.real),
        (directions[:, real].real, weight[:, real].real),
        (b.real[:, :0], -4.0 * w.imag),
    ]
