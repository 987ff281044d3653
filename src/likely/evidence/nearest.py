"""Nearest points: all that are as near as the n-th nearest one, so that ties do not depend on the order of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.typing import AnyArray, Array

NEAREST = 48
GROUP = 16  # points whose least distance is compared first
BEYOND = 1e300  # the distance of points that do not exist
TIES = 1e-12  # relative rounding of distances that are equal


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Rows and their nearest reference rows, in the order of the rows, the nearest first."""

    rows: AnyArray
    references: AnyArray
    distances: Array  # squared
    begins: AnyArray  # of the pairs of each row, (rows + 1,)

    @property
    def excess(self) -> Array:
        """Squared distances minus that of the nearest reference row of the same row."""
        return self.distances - self.distances[self.begins[self.rows]]

    def distance_of(self, n: int) -> Array:
        """The squared distance of the n-th nearest reference row, or of the last one, for rows that have one."""
        some = np.diff(self.begins) > 0
        return self.distances[np.minimum(self.begins[:-1] + n, self.begins[1:])[some] - 1]


def search_matrix(points: AnyArray) -> Array:
    """Reference points as columns, with their squared lengths: the product with (−2x, 1) is d(x, point)² − |x|²."""
    n, width = points.shape
    padded = np.zeros((width + 1, -(-n // GROUP) * GROUP))
    padded[:width, :n] = points.T
    padded[width] = BEYOND
    padded[width, :n] = np.einsum("ij,ij->j", padded[:width, :n], padded[:width, :n])
    return padded


def nearest(points: Array, matrix: Array, n: int = NEAREST, removed: AnyArray | None = None) -> Pairs:
    """The n nearest columns of a search matrix for each point, and those that are as near as the n-th.

    `removed` has for each point a column that does not count, or −1.
    """
    squares = np.einsum("ij,ij->i", points, points)
    relative = np.column_stack([-2.0 * points, np.ones(len(points))]) @ matrix
    if removed is not None:
        here = np.flatnonzero(removed >= 0)
        relative[here, removed[here]] = BEYOND
    bound = _bound(relative, n)
    bound += TIES * (2.0 * squares + np.abs(bound))
    flat = np.flatnonzero(relative <= np.minimum(bound, BEYOND / 2)[:, None])
    rows, references = np.divmod(flat, relative.shape[1])
    distances = relative.ravel()[flat] + squares[rows]
    distances[distances <= TIES * squares[rows]] = 0.0  # equal points
    begins = np.searchsorted(rows, np.arange(len(points) + 1))
    if not len(rows):
        return Pairs(rows, references, distances, begins)
    order = _order_within(rows, begins, distances)
    references, distances = references[order], distances[order]
    last = np.minimum(begins[:-1] + n, begins[1:]) - 1
    limit = distances[last] + TIES * (squares + distances[last])
    kept = distances <= limit[rows]
    rows = rows[kept]
    return Pairs(rows, references[kept], distances[kept], np.searchsorted(rows, np.arange(len(points) + 1)))


def _order_within(rows: AnyArray, begins: AnyArray, distances: Array) -> AnyArray:
    """The positions of the pairs of each row in the order of their distances, row after row."""
    place = np.arange(len(rows)) - begins[rows]
    table = np.full((len(begins) - 1, int(place.max()) + 1), np.inf)
    table[rows, place] = distances
    order = begins[:-1, None] + np.argsort(table, axis=1, kind="stable")
    return np.asarray(order[np.arange(table.shape[1]) < np.diff(begins)[:, None]])


def _bound(relative: Array, n: int) -> Array:
    """A number that at least n entries of each row do not exceed, close to the n-th smallest.

    It is the n-th smallest of the least entries of groups, which is found faster than that of all entries.
    """
    rows, columns = relative.shape
    groups = columns // GROUP
    if groups >= n:
        relative = relative.reshape(rows, GROUP, groups).min(axis=1)
    n = min(n, relative.shape[1])
    return np.partition(relative, n - 1, axis=1)[:, n - 1]
