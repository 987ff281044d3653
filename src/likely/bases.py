"""Bases in which squared distances under several covariances are sums of weighted squares.

Any two covariances have a basis in which both are diagonal, so that two of them cost what one does. Where only
differences count, of all from the first, two differences share a basis too, and an odd number of covariances
needs one basis less. A difference is not definite: some of its squares are complex, 2·Re(w·(u + iv)²).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from likely.covariance import DenseCovariance
from likely.numerics import AnyArray, Array, scratch

PAIR_SPREAD = 1e2  # rounding grows with the ratio of the deviations of two covariances that share a basis
PAIR_COLUMNS = 128  # beyond so many columns it takes longer to find such a basis than it saves
PENCIL_GROWTH = 1e3  # rounding of a difference grows with the sum of the sizes of its squares
PENCIL_ERROR = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Directions (d, m), None for the columns themselves, and how much squares along them count, (several, m).

    Complex directions come in twos, real and imaginary part, and so do the weights of their squares.
    """

    directions: Array | None
    weight: Array
    complex: bool = False

    def squares(self, rows: Array) -> Array:
        """Squares along the directions, (n, m); gone with the next ones."""
        if self.directions is None:
            return np.multiply(rows, rows, out=scratch.like("turned", rows))
        turned = np.dot(rows, self.directions, out=scratch.array("turned", len(rows), self.directions.shape[1]))
        seen: AnyArray = turned.view(np.complex128) if self.complex else turned
        np.multiply(seen, seen, out=seen)
        return turned


def shared_bases(covariance: DenseCovariance, groups: Sequence[int]) -> Panel | None:
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
    return Panel(np.hstack(bases), weight)


def difference_bases(covariance: DenseCovariance, groups: Sequence[int]) -> list[Panel] | None:
    """Squared distances minus those under the first of these covariances; None where digits would be lost.

    `weight` has a row for every covariance, 0 for the first.
    """
    first, *others = groups
    identity = np.eye(covariance.rank)
    bases: dict[bool, list[Array]] = {False: [], True: []}
    shares: dict[bool, list[Array]] = {False: [], True: []}
    for pair in zip(others[::2], others[1::2], strict=True):
        changes = [_change(covariance, first, g) for g in pair]
        apart = np.array([change @ change.T - identity for change in changes])
        found = _pencil(apart)
        if found is None:
            return None
        for complex_, (directions, weight) in found.items():
            wide = np.zeros((len(covariance.factor), weight.shape[1]))
            wide[list(pair)] = weight
            bases[complex_].append(covariance.factor[first] @ directions)
            shares[complex_].append(wide)
    return [
        Panel(np.hstack(bases[complex_]), np.hstack(shares[complex_]), complex_)
        for complex_ in (False, True)
        if sum(part.shape[1] for part in bases[complex_])
    ]


def _change(covariance: DenseCovariance, first: int, second: int) -> Array:
    """Rows whitened for the first covariance, times this, are whitened for the second."""
    change, _ = scipy.linalg.lapack.dtrtrs(
        covariance.factor[first][covariance.owner], covariance.factor[second][covariance.owner]
    )
    return np.asarray(change)


def _pencil(forms: Array) -> dict[bool, tuple[Array, Array]] | None:
    """Two symmetric matrices as sums over one set of directions b: Σ weight·b·bᵀ; of real ones, and of complex ones.

    With the eigenvectors V of the pencil, VᵀAV is diagonal for both, so A = V⁻ᵀ diag(VᵀAV) V⁻¹.
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
    both = np.stack([directions[:, turning].real, directions[:, turning].imag], axis=2)
    twice = 2.0 * np.stack([weight[:, turning].real, -weight[:, turning].imag], axis=2)
    return {
        False: (directions[:, real].real, weight[:, real].real),
        True: (both.reshape(len(both), -1), twice.reshape(len(twice), -1)),
    }
