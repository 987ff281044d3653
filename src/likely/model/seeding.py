"""k-means++ seeding of mixture components, for tables with numbers, categories, missing values and sparse rows.

Components of a class (``Gaussian(components=...)``) start from scikit-learn's KMeans: see families.gaussian.mixture.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from likely.data.batches import Batch, Batches
from likely.data.table import Table
from likely.statistics.counts import Counts
from likely.typing import AnyArray, Array

SEEDING_ROWS = 10_000  # rows that seeds are drawn from, at most


def seed_components(batches: Batches, size: int, rng: Any) -> Batch:
    """Some rows, each labeled with its nearest seed; seeds are drawn by k-means++ (Arthur and Vassilvitskii 2007).

    A row is the next seed with a probability proportional to its squared distance from the nearest seed so far. The
    result does not depend on the order of rows, and a weight of 2 is the row twice.
    """
    batch = next(iter(batches))
    assert batch.unlabeled is not None
    table, weights = batch.unlabeled.table, batch.unlabeled.weights
    usable = np.arange(table.rows) if batch.unlabeled.used is None else batch.unlabeled.used
    some = usable if len(usable) <= SEEDING_ROWS else np.sort(rng.choice(usable, SEEDING_ROWS, replace=False))
    weight = np.ones(len(some)) if weights is None else weights[some]
    part = table.take(some)
    distances = RowDistances(part, weight)
    order = distances.canonical_order()
    codes, nearest = np.zeros(len(some), dtype=np.int64), np.full(len(some), np.inf)
    probability = weight  # up to a factor
    for k in range(size):
        cumulative = np.cumsum(probability[order])
        drawn = int(np.searchsorted(cumulative, rng.uniform() * cumulative[-1]))
        distance = distances.from_row(int(order[min(drawn, len(order) - 1)]))
        codes, nearest = np.where(distance < nearest, k, codes), np.minimum(distance, nearest)
        probability = weight * nearest if np.any(nearest > 0.0) else weight
    given = None if weights is None else weight
    return Batch(batch.X, part, Counts.of(np.arange(size), codes, given), codes, given)


class RowDistances:
    """Squared distances between rows, averaged over the columns in which both have values.

    Numbers are standardised, and two different categories are at distance 2. Sparse rows have cosine distances.
    """

    def __init__(self, table: Table, weights: Array) -> None:
        self._sparse: Any = None
        if table.is_sparse:
            rows = table.numbers(None, sparse=True)(0, table.rows)
            length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
            self._sparse = scipy.sparse.csr_array(rows.multiply(1.0 / np.maximum(length, 1e-300)[:, None]))
            return
        numbers = [j for j in range(table.width) if table.kinds[j] != "category"]
        categories = [j for j in range(table.width) if table.kinds[j] == "category"]
        self._numbers = np.zeros((table.rows, 0))
        if numbers:
            values = np.array(table.numbers(np.array(numbers), sparse=False)(0, table.rows), dtype=np.float64)
            self._numbers = _standardised(values, weights)
        none = np.zeros((table.rows, 0), dtype=np.intp)
        self._categories = table.codes(categories)(0, table.rows) if categories else none

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


def _standardised(values: Array, weights: Array) -> Array:
    """Columns with mean 0 and standard deviation 1, or 0 where they are constant; missing values stay NaN."""
    present = np.isfinite(values)
    weight = np.where(present, weights[:, None], 0.0)
    total = np.maximum(weight.sum(axis=0), 1e-300)
    size = np.abs(np.where(present, values, 0.0)).max(axis=0, initial=0.0)
    scaled = np.where(present, values, 0.0) / np.where(size > 0.0, size, 1.0)
    centred = scaled - (weight * scaled).sum(axis=0) / total
    scale = np.sqrt((weight * centred * centred).sum(axis=0) / total)
    centred = np.where(scale > 1e-12, centred / np.where(scale > 0.0, scale, 1.0), 0.0)
    return np.where(np.isnan(values), np.nan, centred)
