"""Averaged one-dependence of categorical columns (Webb, Boughton and Wang 2005), on integer codes.

    p(x | k) = 1/m · Σ_i p(x_i | k) · Π_{j≠i} p(x_j | x_i, k)

with the m parents i: the columns that vary. Every column is counted together with every other one in each class, which
is the second moment of their one-hot codes. With s pseudo-observations at each level, V_j categories of column j, and
counts N of rows in which the values are observed:

    q(x_j)          = (N(x_j) + s/V_j) / (N_j + s)                    of all classes together
    p(x_j | k)      = (N_k(x_j) + s·q(x_j)) / (N_kj + s)
    p(x_j | x_i, k) = (N_k(x_i, x_j) + s·p(x_j | k)) / (N_k(x_i, j observed) + s)

A value is a slot: column j has the slots offsets[j], for a missing value, offsets[j] + 1, … for its categories. All
log-probabilities are in one table: log p(x_j | x_i, k) at (slot of x_i, slot of x_j), and log p(x_i | k) on the
diagonal, so that the logarithm of the term of a parent is the sum of one entry for each column. Missing children have
entries of 0. Missing parents and columns that do not vary have −∞ on the diagonal: their terms are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse

from likely.numerics.block_sizes import REDUCED
from likely.numerics.special import log_sum_exp
from likely.numerics.threads import run
from likely.statistics.rounding import subtract_counts
from likely.typing import AnyArray, Array, Codes, Index

MOST_THREADS = 2


def offsets_of(sizes: Sequence[int]) -> Index:
    """The first slot of each column with these numbers of categories, and after them the number of all slots."""
    return np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(np.asarray(sizes, dtype=np.intp) + 1)])


def slots_of(codes: AnyArray, offsets: Index) -> AnyArray:
    """The slots, (n, d), of codes of categories, (n, d); −1 is a missing value."""
    return np.asarray(codes + (offsets[:-1] + 1), dtype=np.int32)


def _blocks(n: int, width: int) -> list[slice]:
    """Blocks of rows for which `width` values a row are kept at a time."""
    step = max(REDUCED // max(width, 1), 1)
    return [slice(start, start + step) for start in range(0, n, step)]


def count_pairs(slots: AnyArray, classes: Codes, n_classes: int, offsets: Index, weights: Array | None = None) -> Array:
    """The weight of rows of each class in each pair of slots, (classes, slots, slots); 0 where a value is missing."""
    d, size = slots.shape[1], int(offsets[-1])
    counts = np.zeros((n_classes, size, size))
    for rows in _blocks(len(slots), d):
        part, label = slots[rows].astype(np.intp), classes[rows].astype(np.intp)
        for i in range(d):
            weight = None if weights is None else np.repeat(weights[rows], d - i)
            start, n_slots = int(offsets[i]), int(offsets[i + 1] - offsets[i])
            place = (label * n_slots + (part[:, i] - start)) * size
            cells = n_classes * n_slots * size
            found = np.bincount((place[:, None] + part[:, i:]).ravel(), weight, minlength=cells)
            counts[:, start : start + n_slots] += found.reshape(n_classes, n_slots, size)
    counts[:, offsets[:-1]] = 0.0
    counts[:, :, offsets[:-1]] = 0.0
    counts += np.triu(counts, 1).transpose(0, 2, 1)  # pairs were counted in one of their two orders
    return counts


@dataclass(frozen=True, slots=True, eq=False)
class PairEstimates:
    """Counts of pairs with what is derived from them once, for the probabilities of all rows or without a row."""

    offsets: Index
    counts: Array  # (classes, slots, slots), 0 in the slots of missing values
    smoothing: float
    observed: Array  # N_k(x_i, j observed), (classes, slots, d)
    singles: Array  # N_k(x_j), (classes, slots)
    totals: Array  # N_kj, (classes, d)
    proportions: Array  # q(x_j), (slots,)
    parents: AnyArray  # whether each column varies, (d,)

    @classmethod
    def of(cls, counts: Array, offsets: Index, smoothing: float) -> Self:
        starts = offsets[:-1]
        singles = np.array(np.einsum("kss->ks", counts))
        observed = np.add.reduceat(counts, starts, axis=2)
        totals = np.add.reduceat(singles, starts, axis=1)
        column, sizes = column_of_slots(offsets), np.diff(offsets) - 1
        every = singles.sum(axis=0)
        uniform = smoothing / np.maximum(sizes, 1)[column]
        proportions = (every + uniform) / (totals.sum(axis=0) + smoothing)[column]
        proportions[starts] = 0.0
        parents = np.add.reduceat((every > 0.0).astype(np.intp), starts) > 1
        return cls(offsets, counts, smoothing, observed, singles, totals, proportions, parents)

    def single_probabilities(self) -> Array:
        """p(x_j | k), (classes, slots); 0 in the slots of missing values."""
        prior = self.smoothing * self.proportions
        column = column_of_slots(self.offsets)
        return np.asarray((self.singles + prior) / (self.totals + self.smoothing)[:, column])

    def logs(self) -> Array:
        """The table of log-probabilities, (slots, slots, classes)."""
        column, starts = column_of_slots(self.offsets), self.offsets[:-1]
        single = self.single_probabilities()
        table = np.empty((len(column), len(column), len(self.counts)))
        places = np.arange(len(column))
        parent = self.parents[column]
        parent[starts] = False
        with np.errstate(divide="ignore"):
            for k, counts in enumerate(self.counts):
                part = counts + self.smoothing * single[k]
                part /= (self.observed[k] + self.smoothing)[:, column]
                np.log(part, out=part)
                part[starts] = part[:, starts] = 0.0
                part[places, places] = np.where(parent, np.log(single[k]), -np.inf)
                table[:, :, k] = part
        return table

    def left_out(self, slots: AnyArray, classes: Codes, held_out: Array) -> Array:
        """log p(x | class) of rows under their classes without the weights `held_out` of them, (n,).

        The proportions of all classes together are held fixed.
        """
        density, d = np.zeros(len(slots)), slots.shape[1]

        def evaluate(rows: slice) -> None:
            terms = self._left_out_terms(slots[rows], classes[rows].astype(np.intp), held_out[rows])
            density[rows] = mean_of_parents(terms[:, :, None])[0]

        if d:
            run(_blocks(len(slots), 8 * d * d), evaluate, MOST_THREADS)
        return density

    def _left_out_terms(self, slots: AnyArray, classes: Index, held_out: Array) -> Array:
        """The logarithms of the terms of the parents of each row under its class, (n, d)."""
        diagonal, s, weight = np.arange(slots.shape[1]), self.smoothing, held_out[:, None]
        totals = self.totals[classes]
        single = subtract_counts(self.singles[classes[:, None], slots], weight, totals) + s * self.proportions[slots]
        single /= subtract_counts(totals, weight) + s
        parent = classes[:, None] * int(self.offsets[-1]) + slots  # row of the table of counts
        observed = self.observed.reshape(-1, len(diagonal))[parent]
        place = (parent * int(self.offsets[-1]))[:, :, None] + slots[:, None]
        pairs = subtract_counts(self.counts.ravel().take(place), weight[:, None], observed)
        pairs += s * single[:, None]
        pairs /= subtract_counts(observed, weight[:, None]) + s
        pairs[:, diagonal, diagonal] = single
        missing = slots == self.offsets[:-1]
        np.copyto(pairs, 1.0, where=missing[:, None])
        pairs[missing | ~self.parents] = 0.0
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(pairs, out=pairs).sum(axis=2))


def column_of_slots(offsets: Index) -> Index:
    """The column of each slot."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def mean_of_parents(terms: Array) -> Array:
    """log of the mean of exp(terms), (n, d, classes), over the parents, (classes, n); 0 where there are none.

    A column that is not a parent of a row has −∞.
    """
    parents = np.isfinite(terms[:, :, 0]).sum(axis=1)
    total = log_sum_exp(terms.transpose(1, 2, 0))
    return np.where(parents > 0, total - np.log(np.maximum(parents, 1)), 0.0)


def parent_terms(slots: AnyArray, logs: Array, offsets: Index) -> Array:
    """log p(x_i | k) + Σ_j log p(x_j | x_i, k) for each parent i, (n, d, classes).

    The sums are products of the table and a sparse matrix with a one for each column of a row: one parent at a time,
    whose part of the table stays in the cache.
    """
    (n, d), (size, _, n_classes) = slots.shape, logs.shape
    terms, ones = np.empty((n, d, n_classes)), np.ones(n * d)
    ends = np.arange(0, n * d + 1, d, dtype=np.int32)
    for i in range(d):
        table = logs[offsets[i] : offsets[i + 1]].reshape(-1, n_classes)
        place = ((slots[:, i] - np.int32(offsets[i])) * np.int32(size))[:, None] + slots
        terms[:, i] = scipy.sparse.csr_array((ones, place.ravel(), ends), shape=(n, len(table))) @ table
    return terms


def log_densities(slots: AnyArray, logs: Array, offsets: Index) -> Array:
    """log p(x | k), (classes, n); 0 for rows without an observed parent."""
    d, n_classes = slots.shape[1], logs.shape[2]
    density = np.zeros((n_classes, len(slots)))

    def evaluate(rows: slice) -> None:
        density[:, rows] = mean_of_parents(parent_terms(slots[rows], logs, offsets))

    if d:
        run(_blocks(len(slots), d * n_classes), evaluate, MOST_THREADS)
    return density


def contributions(slots: AnyArray, logs: Array, offsets: Index) -> Array:
    """Contributions of the columns to log p(x | k), (n, classes, d), whose sum it is.

    With the terms t_i of the m parents and ρ = softmax(t), log (1/m) Σ_i exp(t_i) = Σ_i ρ_i·(t_i − log ρ_i) − log m.
    log p(x_i | k) and −log ρ_i belong to column i, log p(x_j | x_i, k) to i and j in equal parts, and −log m to all
    parents in equal parts.
    """
    d, n_classes = slots.shape[1], logs.shape[2]
    found = np.zeros((len(slots), n_classes, d))

    def evaluate(rows: slice) -> None:
        found[rows] = _contributions(slots[rows], logs, offsets).transpose(0, 2, 1)

    if d:
        run(_blocks(len(slots), 4 * d * n_classes), evaluate, MOST_THREADS)
    return found


def _contributions(slots: AnyArray, logs: Array, offsets: Index) -> Array:
    """The contributions of a block of rows, (n, d, classes)."""
    terms, single = parent_terms(slots, logs, offsets), logs[slots, slots]
    parent = np.isfinite(single)
    total = log_sum_exp(terms.transpose(1, 2, 0)).T[:, None]
    log_weight = np.where(parent, terms - np.where(np.isfinite(total), total, 0.0), 0.0)
    weight = np.where(parent, np.exp(log_weight), 0.0)
    single, terms = np.where(parent, single, 0.0), np.where(parent, terms, 0.0)
    m = np.maximum(parent.sum(axis=1, keepdims=True), 1)
    found = weight * (0.5 * (single + terms) - log_weight) - np.where(parent, np.log(m) / m, 0.0)
    for i in range(slots.shape[1]):
        pairs = logs[slots[:, i, None], slots]
        pairs[:, i] = 0.0
        pairs *= 0.5 * weight[:, i, None]
        found += pairs
    return found
