"""k-means++ seeding of components: of mixtures without labels, and within classes (``Gaussian(components=...)``).

Rows may have numbers, categories and missing values, or be sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from likely.data.batches import Batch, Batches
from likely.data.row_hash import row_hashes
from likely.data.table import Table
from likely.model.block import Block
from likely.statistics.counts import Counts, positions
from likely.typing import AnyArray, Array, Codes

SEEDING_ROWS = 10_000  # rows that seeds are drawn from, at most


def seed_components(batches: Batches, size: int, rng: Any) -> Batch:
    """Some rows, each labeled with its nearest seed; the result does not depend on the order of rows."""
    batch = batches.in_memory.first
    assert batch.unlabeled is not None
    table, weights = batch.unlabeled.table, batch.unlabeled.weights
    usable = np.arange(table.rows) if batch.unlabeled.used is None else batch.unlabeled.used
    some = usable
    if len(usable) > SEEDING_ROWS:
        hashes = row_hashes(table, np.zeros(table.rows))[usable]
        some = np.sort(usable[np.argsort(hashes, kind="stable")[:SEEDING_ROWS]])
    weight = np.ones(len(some)) if weights is None else weights[some]
    part = table.take(some)
    _, codes = draw_seeds(RowDistances.of(part, weight), weight, size, rng)
    given = None if weights is None else weight
    return Batch(batch.X, part, Counts.of(np.arange(size), codes, given), codes, given)


def draw_seeds(distances: RowDistances, weights: Array, size: int, rng: Any) -> tuple[list[int], AnyArray]:
    """Rows drawn as seeds by k-means++ (Arthur and Vassilvitskii 2007), and the nearest seed of each row.

    A row is the next seed with a probability proportional to its squared distance from the nearest seed so far. The
    result does not depend on the order of rows, and a weight of 2 is the row twice.
    """
    order, rows = distances.canonical_order(), len(weights)
    codes, nearest, seeds = np.zeros(rows, dtype=np.int64), np.full(rows, np.inf), []
    probability = weights  # up to a factor
    for k in range(size):
        cumulative = np.cumsum(probability[order])
        drawn = int(np.searchsorted(cumulative, rng.uniform() * cumulative[-1]))
        seeds.append(int(order[min(drawn, rows - 1)]))
        distance = distances.from_row(seeds[-1])
        codes, nearest = np.where(distance < nearest, k, codes), np.minimum(distance, nearest)
        probability = weights * nearest if np.any(nearest > 0.0) else weights
    return seeds, codes


@dataclass(frozen=True, slots=True, eq=False)
class SeedingSample:
    """Labeled rows of one block of columns, from which the components of each class are seeded."""

    values: Array
    codes: Codes
    weights: Array

    @classmethod
    def of(cls, block: Block, batches: Batches, classes: AnyArray) -> SeedingSample:
        """Rows of all batches, drawn by hashes of their content where there are many."""
        fraction = SEEDING_ROWS / max(sum(batch.table.rows for batch in batches), 1)
        values, codes, weights = [], [], []
        for batch in batches:
            taken = batch.row_weights > 0.0
            if fraction < 1.0 and batch.table.rows:
                taken &= row_hashes(batch.table, batch.codes) < np.uint64(fraction * 2.0**64)
            if taken.any():
                part = batch.take(np.flatnonzero(taken))
                values.append(np.array(block.reader(part.table)(0, part.table.rows), dtype=np.float64))
                codes.append(positions(classes, part.counts.classes)[part.codes])
                weights.append(part.row_weights)
        return cls(np.concatenate(values), np.concatenate(codes), np.concatenate(weights))

    def scale(self) -> Array:
        """The standard deviation of each column; 1 for constant columns."""
        size, _, scale = _location_and_scale(self.values, self.weights)
        return np.where(size * scale > 0.0, size * scale, 1.0)

    def centres(self, means: Array, size: int, rng: Any) -> Array:
        """Means of the rows nearest to each seed of a class, (classes, size, columns).

        Missing values have the mean of the class.
        """
        centres = np.repeat(means[:, None], size, axis=1)
        for k, mean in enumerate(means):
            mine = self.codes == k
            if not mine.any():
                continue
            rows, weights = np.where(np.isnan(self.values[mine]), mean, self.values[mine]), self.weights[mine]
            seeds, nearest = draw_seeds(RowDistances.of_numbers(rows, weights), weights, size, rng)
            for r, seed in enumerate(seeds):
                near = nearest == r
                centres[k, r] = np.average(rows[near], axis=0, weights=weights[near]) if near.any() else rows[seed]
        return centres


class RowDistances:
    """Squared distances between rows, averaged over the columns in which both have values.

    Numbers are standardised, and two different categories are at distance 2. Sparse rows have cosine distances.
    """

    def __init__(self, numbers: Array, categories: AnyArray, sparse: Any = None) -> None:
        self._numbers, self._categories, self._sparse = numbers, categories, sparse

    @classmethod
    def of(cls, table: Table, weights: Array) -> RowDistances:
        """Distances between the rows of a table."""
        values, codes = np.zeros((table.rows, 0)), np.zeros((table.rows, 0), dtype=np.intp)
        if table.is_sparse:
            rows = table.numbers(None, sparse=True)(0, table.rows)
            length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
            return cls(values, codes, scipy.sparse.csr_array(rows.multiply(1.0 / np.maximum(length, 1e-300)[:, None])))
        numbers = [j for j in range(table.width) if table.kinds[j] != "category"]
        categories = [j for j in range(table.width) if table.kinds[j] == "category"]
        if numbers:
            values = np.array(table.numbers(np.array(numbers), sparse=False)(0, table.rows), dtype=np.float64)
        if categories:
            codes = table.codes(categories)(0, table.rows)
        return cls(_standardised(values, weights), codes)

    @classmethod
    def of_numbers(cls, values: Array, weights: Array) -> RowDistances:
        """Distances between rows of numbers."""
        return cls(_standardised(values, weights), np.zeros((len(values), 0), dtype=np.intp))

    def canonical_order(self) -> AnyArray:
        """An order of the rows that depends on their values alone."""
        if self._sparse is not None:
            return np.argsort(np.asarray(self._sparse @ np.sqrt(1.0 + np.arange(self._sparse.shape[1]))), kind="stable")
        keys = [*self._categories.T, *self._numbers.T]
        return np.lexsort(keys) if keys else np.arange(len(self._numbers))

    def from_row(self, row: int) -> Array:
        """Squared distances of all rows from one of them."""
        if self._sparse is not None:
            return np.maximum(1.0 - np.asarray((self._sparse @ self._sparse[[row]].T).toarray()).ravel(), 0.0)
        square = (self._numbers - self._numbers[row]) ** 2
        both = ~np.isnan(square)
        known = (self._categories >= 0) & (self._categories[row] >= 0)
        different = (known & (self._categories != self._categories[row])).sum(axis=1)
        total = np.where(both, square, 0.0).sum(axis=1) + 2.0 * different
        return np.asarray(total / np.maximum(both.sum(axis=1) + known.sum(axis=1), 1))


def _location_and_scale(values: Array, weights: Array) -> tuple[Array, Array, Array]:
    """The largest absolute value of each column; and in units of it the mean and the standard deviation."""
    present = np.isfinite(values)
    weight = np.where(present, weights[:, None], 0.0)
    total = np.maximum(weight.sum(axis=0), 1e-300)
    size = np.abs(np.where(present, values, 0.0)).max(axis=0, initial=0.0)
    size = np.where(size > 0.0, size, 1.0)
    scaled = np.where(present, values, 0.0) / size
    mean = (weight * scaled).sum(axis=0) / total
    return size, mean, np.sqrt((weight * (scaled - mean) ** 2).sum(axis=0) / total)


def _standardised(values: Array, weights: Array) -> Array:
    """Columns with mean 0 and standard deviation 1, or 0 where they are constant; missing values stay NaN."""
    size, mean, scale = _location_and_scale(values, weights)
    centred = np.where(np.isfinite(values), values, 0.0) / size - mean
    centred = np.where(scale > 1e-12, centred / np.where(scale > 0.0, scale, 1.0), 0.0)
    return np.where(np.isnan(values), np.nan, centred)
