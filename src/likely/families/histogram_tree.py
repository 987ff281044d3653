"""Averages over all prunings of a binary tree of cells: how much more probable a cell is in a class than in all rows.

Every node v of the tree is a run of cells. It either ends there, so that its cells have the same proportions in every
class, or it is split into its children L and R with proportions per class. N_k are counts of class k, and N those of
all classes. With θ = (N_L + ½)/(N_v + 1), a Beta(sθ, s(1 − θ)) prior of the proportions of each class, s = 2, and a
prior probability ρ = ½ that a node is split,

    BF_v = Π_k B(N_kL + sθ, N_kR + s(1 − θ)) / B(sθ, s(1 − θ)) ÷ θ^N_L (1 − θ)^N_R
    W_v = (1 − ρ) + ρ·BF_v·W_L·W_R    (1 for a single cell)
    γ_v = ρ·BF_v·W_L·W_R / W_v

γ_v is the posterior probability that node v is split, given that it is not cut off. The ratio of the class-conditional
to the class-free probability of a cell x, averaged over all prunings, follows from the root,

    r_k(x; v) = 1 − γ_v + γ_v·[(N_kc + sθ_c)/(N_kv + s)]/θ_c · r_k(x; c)    for the child c that has x    (1 for a cell)

The class-free probability of a cell is the product of θ_c over its path, so that Σ_x r_k(x)·p(x) = 1 for every class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.special

from likely.typing import AnyArray, Array, Codes, Index

STRENGTH = 2.0  # s: pseudo-observations of the class-free proportions at every node
SPLIT = 0.5  # ρ: prior probability that a node is split
TABULATED = 4  # entries of leave-one-out tables for each row, at most


@dataclass(frozen=True, slots=True, eq=False)
class HistogramTree:
    """Binary trees over the cells of some columns, with the proportions and splits that all rows determine.

    The cells of a column are evenly placed among the 2^depth leaves of its tree. A node with cells on one side only is
    not split: θ = γ = 1 there. Counts have the shape (columns, classes, cells).
    """

    n_cells: Index  # of each column
    places: Index  # leaf of each cell, (columns, cells); 2^depth beyond the cells of a column
    splits: tuple[Array, ...]  # γ of the nodes of each level, from the root, (columns, 2^level)
    proportions: tuple[Array, ...]  # θ of their children, (columns, 2^(level + 1))

    @classmethod
    def of(cls, counts: Array, n_cells: AnyArray, averaged: bool = True) -> Self:
        """The trees of these counts; without `averaged`, γ is 0 or 1: that of the most probable pruning."""
        depth = max(int(n_cells.max(initial=1)) - 1, 0).bit_length()
        cells = np.arange(counts.shape[2])
        places = np.where(cells < n_cells[:, None], (cells << depth) // np.maximum(n_cells, 1)[:, None], 1 << depth)
        levels = _levels(counts, places, depth)
        used = _leaves(np.ones((len(counts), 1, counts.shape[2])), places, depth)[:, 0] > 0.0
        log_weight = np.zeros(used.shape)
        splits: list[Array] = []
        proportions: list[Array] = []
        for children in reversed(levels[1:]):
            theta, log_ratio = _split(children)
            left, right = used[:, 0::2], used[:, 1::2]
            both, below = left & right, log_weight[:, 0::2] + log_weight[:, 1::2]
            cut, split = np.log(1.0 - SPLIT), np.log(SPLIT) + log_ratio + below
            log_weight = np.where(both, np.logaddexp(cut, split) if averaged else np.maximum(cut, split), below)
            gamma = np.exp(split - log_weight) if averaged else (split > cut).astype(np.float64)
            splits.append(np.where(both, gamma, 1.0))
            proportions.append(np.where(np.repeat(both, 2, axis=1), theta, 1.0))
            used = left | right
        return cls(n_cells, places, tuple(reversed(splits)), tuple(reversed(proportions)))

    @property
    def depth(self) -> int:
        return len(self.splits)

    def log_proportions(self) -> Array:
        """Log-probabilities of the cells in all rows, (columns, cells)."""
        total = np.zeros((len(self.places), 1))
        for theta in self.proportions:
            total = np.repeat(total, 2, axis=1) + np.log(theta)
        return self._of_cells(total[:, None])[:, 0]

    def log_ratios(self, counts: Array, removed: float = 0.0) -> Array:
        """log r of all classes and cells, (columns, classes, cells); 0 beyond the cells of a column.

        With `removed`, a row of this weight, of the class and in the cell, is removed from the counts along its path.
        """
        levels = _levels(counts, self.places, self.depth)
        ratio = np.ones(levels[-1].shape)
        for level in reversed(range(self.depth)):
            theta, gamma = self.proportions[level][:, None], np.repeat(self.splits[level], 2, axis=1)[:, None]
            children, parents = levels[level + 1], np.repeat(levels[level], 2, axis=2)
            factor = gamma / theta * _proportion(children, parents, theta, removed)
            below = ratio.reshape(*factor.shape, -1)
            below *= factor[..., None]
            below += (1.0 - gamma)[..., None]
        return self._of_cells(np.log(ratio))

    def log_prior(self, masses: Array) -> float:
        """Σ sθ·log p + s(1 − θ)·log(1 − p) over the splits: the prior of the most probable pruning, at its modes.

        `masses` are probabilities of the cells in each class, (columns, classes, cells).
        """
        levels, total = _levels(masses, self.places, self.depth), 0.0
        for level, theta in enumerate(self.proportions):
            children, parents = levels[level + 1], np.repeat(levels[level], 2, axis=2)
            split = (np.repeat(self.splits[level], 2, axis=1) > 0.0) & (theta < 1.0)
            logs = np.log(np.where(split[:, None], children / np.where(parents > 0.0, parents, 1.0), 1.0))
            total += STRENGTH * float((theta[:, None] * logs).sum())
        return total

    def left_out(self, counts: Array, cells: AnyArray, codes: Codes, weights: Array) -> Array:
        """Leave-one-out log r of the class of each row, (columns, n): the row is removed, θ and γ are kept.

        `cells` are (columns, n); the number of cells of a column, and any larger number, is a missing value.
        """
        distinct, place = np.unique(weights, return_inverse=True)
        if len(distinct) * counts[0].size > TABULATED * len(codes):
            return self._left_out_by_path(counts, cells, codes, weights)
        last = ((0, 0), (0, 0), (0, 1))  # an entry for missing values, which is 0
        tables = np.array([np.pad(self.log_ratios(counts, float(weight)), last) for weight in distinct])
        found = np.zeros(cells.shape)
        for column, where in enumerate(cells):
            found[column] = tables[place, column, codes, np.minimum(where, counts.shape[2])]
        return found

    def _left_out_by_path(self, counts: Array, cells: AnyArray, codes: Codes, weights: Array) -> Array:
        """The same, one level of the tree at a time, for any weights."""
        levels = _levels(counts, self.places, self.depth)
        found = np.zeros(cells.shape)
        for column, where in enumerate(cells):
            seen = np.flatnonzero(where < self.n_cells[column])
            leaf, code, weight, ratio = self.places[column][where[seen]], codes[seen], weights[seen], np.ones(len(seen))
            for level in reversed(range(self.depth)):
                child = leaf >> (self.depth - level - 1)
                theta, gamma = self.proportions[level][column, child], self.splits[level][column, child >> 1]
                inside, outside = levels[level + 1][column, code, child], levels[level][column, code, child >> 1]
                ratio = 1.0 - gamma + gamma / theta * _proportion(inside, outside, theta, weight) * ratio
            found[column, seen] = np.log(ratio)
        return found

    def _of_cells(self, leaves: Array) -> Array:
        """Numbers of the cells, (columns, …, cells), from those of the leaves; 0 beyond the cells of a column."""
        places = self.places[:, None]
        found = np.take_along_axis(leaves, np.minimum(places, (1 << self.depth) - 1), axis=2)
        return np.where(places >> self.depth > 0, 0.0, found)


def _proportion(inside: Array, outside: Array, theta: Array, removed: Array | float) -> Array:
    """(N_kc + sθ_c)/(N_kv + s), with a weight removed from both counts."""
    left = np.maximum(inside - removed, 0.0) + STRENGTH * theta
    return np.asarray(left / (np.maximum(outside - removed, 0.0) + STRENGTH))


def _leaves(counts: Array, places: Index, depth: int) -> Array:
    """Counts of the leaves, (columns, classes, 2^depth), from those of the cells."""
    leaves = np.zeros((*counts.shape[:2], (1 << depth) + 1))
    np.put_along_axis(leaves, places[:, None], counts, axis=2)
    return leaves[..., :-1]


def _levels(counts: Array, places: Index, depth: int) -> list[Array]:
    """Counts of the nodes of all levels from the root to the leaves, (columns, classes, 2^level) each."""
    levels = [_leaves(counts, places, depth)]
    for _ in range(depth):
        levels.append(levels[-1][..., 0::2] + levels[-1][..., 1::2])
    return levels[::-1]


def _split(children: Array) -> tuple[Array, Array]:
    """θ of the children, (columns, 2 × nodes), and log BF, (columns, nodes); `children` have (columns, classes, …)."""
    total = children.sum(axis=1)
    pairs = np.repeat(total[:, 0::2] + total[:, 1::2], 2, axis=1)
    theta = (total + 0.5) / (pairs + 1.0)
    a, b = STRENGTH * theta[:, 0::2], STRENGTH * theta[:, 1::2]
    left, right = children[..., 0::2], children[..., 1::2]
    log_beta = scipy.special.betaln(left + a[:, None], right + b[:, None]).sum(axis=1)
    shared = total * np.log(theta)
    log_ratio = log_beta - children.shape[1] * scipy.special.betaln(a, b) - shared[:, 0::2] - shared[:, 1::2]
    return theta, np.asarray(log_ratio)
