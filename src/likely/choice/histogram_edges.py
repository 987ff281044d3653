"""Edges of the cells of histograms, which the rows of the first fit determine unless they are declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.choice.row_sample import MOST_ROWS
from likely.data.batches import Batches
from likely.data.row_hash import copies
from likely.data.table import Table
from likely.model.plans import Plan
from likely.numerics.arrays import LARGEST_NUMBER
from likely.typing import Array, Index

VALUES = 2**20  # that are read at a time


def with_edges(plans: list[Plan], batches: Batches, unlabeled: bool = False) -> list[Plan]:
    """The plans with edges for all histograms: quantiles of a sample of the rows, and the range of all rows.

    The sample follows the content of rows, and weights are repeats, so that edges do not depend on the order of rows.
    Labeled rows determine them, or unlabeled ones if wanted.
    """
    every = batches.first.table.names
    found = []
    for plan in plans:
        columns = range(len(every)) if plan.columns is None else plan.columns
        names = [every[j] for j in columns]
        if not plan.family._lacks_edges(names):
            found.append(plan)
            continue
        values = ColumnValues(np.array(columns, dtype=np.intp), plan.family._atom, unlabeled)
        family: Any = plan.family
        found.append(replace(plan, family=family._with_edges(*values.sample(batches.sample), names)))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class ColumnValues:
    """Finite values of some columns, without those at a point mass: NaN stands for all others."""

    columns: Index
    value: float | None
    unlabeled: bool

    def sample(self, batches: Batches) -> tuple[Array, Array, Array, Array]:
        """A sample of rows (n, d), their weights, and the least and the largest value of each column, (d,)."""
        low, high = np.full(len(self.columns), np.inf), np.full(len(self.columns), -np.inf)
        total = 0.0
        for table, weights in self._tables(batches):
            total += float(weights.sum())
            for part in self._blocks(table, weights):
                low = np.fmin(low, np.fmin.reduce(part, axis=0))
                high = np.fmax(high, np.fmax.reduce(part, axis=0))
        values, drawn = [np.zeros((0, len(self.columns)))], [np.zeros(0)]
        for table, weights in self._tables(batches):
            same = np.zeros(table.rows, dtype=np.intp)
            some = weights if total <= MOST_ROWS else copies(table, same, weights, MOST_ROWS / total)
            values += list(self._blocks(table, some))
            drawn.append(some[some > 0.0])
        return np.concatenate(values), np.concatenate(drawn), low, high

    def _tables(self, batches: Batches) -> Iterator[tuple[Table, Array]]:
        """The rows that determine edges, and their weights."""
        for batch in batches:
            rows = batch.unlabeled if self.unlabeled else batch
            if rows is not None and rows.table.rows:
                yield rows.table, rows.row_weights

    def _blocks(self, table: Table, weights: Array) -> Iterator[Array]:
        """The values of the rows with positive weight, (n, d), block by block."""
        read = table.numbers(self.columns, sparse=False, checked=False)
        step = max(VALUES // max(len(self.columns), 1), 1)
        for start in range(0, table.rows, step):
            used = weights[start : start + step] > 0.0
            if used.any():
                cells = np.array(read(start, start + len(used))[used], dtype=np.float64)
                cells[~(np.abs(cells) <= LARGEST_NUMBER)] = np.nan  # the pass over the rows refuses such values
                if self.value is not None:
                    cells[cells == self.value] = np.nan
                yield cells
