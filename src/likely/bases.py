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
SPARSE = 2.0  # a weight summed over by itself takes as long as so many in one product; twice that behind others


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Directions (m, d), and how much squares along them count for each of several forms, (several, m + products).

    `pairs` says where some of them stand in pairs: from where on, and how many u, as many v behind them. Products
    u·v count too, in the order of the pairs, behind the squares.
    """

    directions: Array
    weight: Array
    pairs: tuple[tuple[int, int], ...] = ()


class Forms:
    """Several quadratic forms, without constants: Σ weight·(direction·x)² + Σ weight·u·v + linear·x.

    A form that has but a few of the directions is summed over these alone.
    """

    def __init__(self, basis: Basis | None, weight: Array, linear: Array) -> None:
        """Forms of these weights in a basis, or along the columns themselves."""
        self._weight, self._linear, self._rows = weight, linear, None
        self.several, self.sparse = len(linear), False
        if basis is None:
            return
        m = len(basis.directions)
        self._pairs, self._squares, self._seen = basis.pairs, m, m + len(linear)
        self._rows = np.vstack([basis.directions, linear])  # one product gives both
        self._weight = np.hstack([weight[:, :m], np.eye(len(linear)), weight[:, m:]])
        self._spans = [_span(row) for row in weight[:, :m]]
        self._more = [_span(row, self._seen) for row in weight[:, m:]]
        summed = sum(span.stop - span.start for span in (*self._spans, *self._more, *self._more))
        self.sparse = SPARSE * summed <= weight.size

    def into(self, rows: Array, out: Array) -> None:
        """Write the values at rows (n, d) into `out`, (several, n)."""
        if self._rows is None:
            squares = np.multiply(rows, rows, out=scratch.like("turned", rows))
            np.matmul(self._weight, squares.T, out=out)
            out += np.dot(self._linear, rows.T)
            return
        seen, end = self._seen, self._seen
        turned = scratch.array("turned", self._weight.shape[1], len(rows))
        np.dot(self._rows, rows.T, out=turned[:seen])
        for begin, count in self._pairs:
            middle = begin + count
            np.multiply(turned[begin:middle], turned[middle : middle + count], out=turned[end : end + count])
            end += count
        squares = turned[: self._squares]
        np.multiply(squares, squares, out=squares)
        if not self.sparse:
            np.matmul(self._weight, turned, out=out)
            return
        for place, weight, span, more in zip(out, self._weight, self._spans, self._more, strict=True):
            np.dot(weight[span], turned[span], out=place)
            if more.stop > more.start:
                np.add(place, np.dot(weight[more], turned[more]), out=place)
        out += turned[self._squares : seen]


def _span(row: Array, begin: int = 0) -> slice:
    """From the first to the last that counts, where the row begins there."""
    counts = np.flatnonzero(row)
    return slice(begin + int(counts[0]), begin + int(counts[-1]) + 1) if len(counts) else slice(begin, begin)


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
            change = _change(covariance, groups[i], groups[i + 1])
            size = np.abs(change).max()
            if not 0.0 < size < np.inf:
                return None
            change /= size
            ratio, turn = np.linalg.eigh(change @ change.T)  # squared
            if not ratio[-1] <= PAIR_SPREAD**2 * ratio[0]:
                return None
            first = first @ turn
            weight[groups[i + 1], place] = size * size * ratio
        bases.append(first)
    return Basis(np.ascontiguousarray(np.hstack(bases).T), weight)


def difference_bases(covariance: DenseCovariance, groups: Sequence[int]) -> Basis | None:
    """Squared distances minus those under the first of these covariances; None where digits would be lost.

    `weight` has a row for every covariance, 0 for the first.
    """
    first, *others = groups
    identity = np.eye(covariance.rank)
    directions, squares, products, pairs = [], [], [], []
    for i, pair in enumerate(zip(others[::2], others[1::2], strict=True)):
        changes = [_change(covariance, first, g) for g in pair]
        found = _pencil(np.array([change @ change.T - identity for change in changes]))
        if found is None:
            return None
        weight = np.zeros((len(covariance.factor), found.weight.shape[1]))
        weight[list(pair)] = found.weight
        directions.append(found.directions @ covariance.factor[first].T)
        squares.append(weight[:, : covariance.rank])
        products.append(weight[:, covariance.rank :])
        pairs.append((i * covariance.rank, products[-1].shape[1]))
    return Basis(np.vstack(directions), np.hstack([*squares, *products]), tuple(pairs))


def _change(covariance: DenseCovariance, first: int, second: int) -> Array:
    """Rows whitened for the first covariance, times this, are whitened for the second."""
    change, _ = scipy.linalg.lapack.dtrtrs(
        covariance.factor[first][covariance.owner], covariance.factor[second][covariance.owner]
    )
    return np.asarray(change)


def _pencil(forms: Array) -> Basis | None:
    """Two symmetric matrices as sums over one set of directions b: Σ weight·b·bᵀ, some of them complex, b = u + iv.

    With the eigenvectors V of the pencil, VᵀAV is diagonal for both, so A = V⁻ᵀ diag(VᵀAV) V⁻¹. Of two conjugates
    2·Re(w·(u + iv)²) = 2·Re w·(u² − v²) − 4·Im w·u·v is left. First come all u, then all v, then the real ones.
    """
    try:
        (alpha, _), vectors = scipy.linalg.eig(*forms, homogeneous_eigvals=True)
        directions = np.linalg.inv(vectors)
    except (np.linalg.LinAlgError, ValueError):
        return None
    weight = np.einsum("ij,kil,lj->kj", vectors, forms, vectors)
    size = np.abs(weight) @ np.sum(np.abs(directions) ** 2, axis=1)
    again = np.einsum("ji,kj,jl->kil", directions, weight, directions)
    if not (size.max() <= PENCIL_GROWTH and np.abs(again - forms).max() <= PENCIL_ERROR):
        return None
    real, turning = alpha.imag == 0.0, alpha.imag > 0.0  # of two conjugates the first
    b, w = directions[turning], weight[:, turning]
    return Basis(
        np.vstack([b.real, b.imag, directions[real].real]),
        np.hstack([2.0 * w.real, -2.0 * w.real, weight[:, real].real, -4.0 * w.imag]),
        ((0, len(b)),),
    )
