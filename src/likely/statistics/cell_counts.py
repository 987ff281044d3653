"""Counts of the cells of numeric columns per class; the edges of the cells are fixed, and counts add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError
from likely.numerics.shapes import Shape
from likely.statistics.accumulator import RowAccumulator
from likely.statistics.counts import AdditiveCounts, are_weighed
from likely.typing import AnyArray, Array, Codes, Index


def slots_of(rows: AnyArray, edges: Array) -> Index:
    """The slot of each value of rows (n, d): 0 below the first edge, i in cell i, from 1 on, and then beyond the last.

    `edges` are (edges, d), padded with infinity. A value at an edge is in the cell above it, and one at the last edge
    in the last cell. Missing values have the slot −1.
    """
    values = np.asarray(rows, dtype=np.float64)
    slots = np.empty(values.shape, dtype=np.intp)
    for j, column in enumerate(np.ascontiguousarray(edges.T)):
        x, known = values[:, j], column[np.isfinite(column)]
        slots[:, j] = np.searchsorted(known, x, side="right")
        if len(known) > 1:
            slots[x == known[-1], j] = len(known) - 1
    slots[np.isnan(values)] = -1
    return slots


def cell_edges(values: Array, weights: Array, cells: int) -> Array:
    """The inner edges of at most `cells` cells with about equal weight, of observed values with positive weights.

    They are midpoints between neighbouring distinct values, all of them if there are enough cells.
    """
    distinct, place = np.unique(values, return_inverse=True)
    weight = np.bincount(place, weights, minlength=len(distinct))
    last = cell_ends((np.cumsum(weight) - 0.5 * weight) / weight.sum(), cells)
    low, high = distinct[last], distinct[last + 1]
    edges = low / 2.0 + high / 2.0  # the sum may overflow
    return np.unique(np.where(edges <= low, high, edges))  # neighbouring floats have no midpoint


def cell_ends(middle: Array, cells: int) -> Index:
    """The places of the last values of all cells but the last one, at most `cells`, of sorted distinct values.

    The proportion of the values below each, and half of its own, is `middle`.
    """
    if len(middle) <= cells:
        return np.arange(len(middle) - 1)
    return np.unique(np.minimum(np.searchsorted(middle, np.arange(1, cells) / cells), len(middle) - 2))


@dataclass(frozen=True, slots=True, eq=False)
class CellCounts(AdditiveCounts):
    """Number of rows and sum of weights of each class in each slot of each column; missing values are not counted."""

    _fields = ("slot_rows", "slot_weight")
    classes: Annotated[AnyArray, Shape("=classes")]
    edges: Annotated[Array, Shape("edges d", "inf")]  # (edges, d), increasing and padded with infinity
    # (classes, d, slots), see `slots_of`
    slot_rows: Annotated[npt.NDArray[np.int64], Shape("classes d edges+1", ">=0")]
    slot_weight: Annotated[Array, Shape("classes d edges+1", ">=0")]

    @classmethod
    def empty(cls, classes: AnyArray, edges: Array) -> Self:
        shape = (len(classes), edges.shape[1], len(edges) + 1)
        return cls(classes, edges, np.zeros(shape, dtype=np.int64), np.zeros(shape))

    @property
    def dimension(self) -> int:
        return int(self.edges.shape[1])

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Number of rows in which each column was observed, (classes, d)."""
        return np.asarray(self.slot_rows.sum(axis=2))

    @property
    def weight(self) -> Array:
        """Weight of the rows in which each column was observed, (classes, d)."""
        return np.asarray(self.slot_weight.sum(axis=2))

    def _valid(self) -> bool:
        known = np.isfinite(self.edges)
        increasing = (self.edges[1:] > self.edges[:-1]) | ~known[1:]
        return are_weighed(self.slot_rows, self.slot_weight) and bool(np.all(increasing & (known[:-1] | ~known[1:])))

    def _united(self, other: Self) -> tuple[Any, ...]:
        if self.edges is not other.edges and not np.array_equal(self.edges, other.edges):
            raise InputError(
                "Histograms with other edges cannot be combined. Edges follow the rows of the first fit: fit both "
                "models with the edges of one of them, as in families=first.families_."
            )
        return ()

    def take(self, columns: AnyArray) -> Self:
        """The counts of some of the columns."""
        return replace(
            self,
            edges=self.edges[:, columns],
            slot_rows=self.slot_rows[:, columns],
            slot_weight=self.slot_weight[:, columns],
        )


@dataclass(slots=True, eq=False)
class CellAccumulator(RowAccumulator):
    """Counts the cells of numbers over row blocks; NaN is a missing value, and `check` raises for infinite ones."""

    classes: AnyArray
    edges: Array  # (edges, d), increasing and padded with infinity
    check: Callable[[AnyArray], None]
    _total: CellCounts = field(init=False)

    def __post_init__(self) -> None:
        self._total = CellCounts.empty(self.classes, self.edges)

    @property
    def block_rows(self) -> int:
        return max(2**18 // max(self.edges.shape[1], 1), 256)

    def _add(self, block: Any, codes: Codes, weights: Array | None) -> None:
        self.check(block)
        slots, total = slots_of(block, self.edges), self._total
        size = len(self.edges) + 2
        first = codes.astype(np.intp) * size + 1  # slot −1, of missing values, is counted first and dropped
        for j in range(slots.shape[1]):
            index, shape = first + slots[:, j], (len(self.classes), size)
            rows = np.bincount(index, minlength=len(self.classes) * size)
            weight = rows if weights is None else np.bincount(index, weights, minlength=len(self.classes) * size)
            total.slot_rows[:, j] += rows.reshape(shape)[:, 1:]
            total.slot_weight[:, j] += weight.reshape(shape)[:, 1:]

    def finish(self) -> CellCounts:
        """The counts of all blocks so far."""
        return self._total
