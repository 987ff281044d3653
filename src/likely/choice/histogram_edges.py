"""Edges of the cells of histograms, which the rows of the first fit determine unless they are declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from likely.choice.row_sample import MOST_ROWS
from likely.data.batches import Batches
from likely.data.row_hash import copies
from likely.data.table import Table
from likely.model.plans import Plan
from likely.numerics.arrays import LARGEST_NUMBER
from likely.numerics.block_sizes import TOGETHER
from likely.typing import Array, Index


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
        family: Any = plan.family
        atom = np.nan if family._atom is None else family._atom
        values = _sampled_values(batches.sample, np.array(columns, dtype=np.intp), atom, unlabeled)
        found.append(replace(plan, family=family._with_edges(*values, names)))
    return found


def _sampled_values(
    batches: Batches, columns: Index, atom: float, unlabeled: bool
) -> tuple[Array, Array, Array, Array]:
    """A sample of rows (n, d), their weights, and the least and the largest value of each column, (d,).

    Values at a point mass, and those that are not finite, are NaN in the sample.
    """
    low, high = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
    values, drawn = [np.zeros((0, len(columns)))], [np.zeros(0)]
    total = sum(float(weights.sum()) for _, weights in _tables(batches, unlabeled))
    for table, weights in _tables(batches, unlabeled):
        same = np.zeros(table.rows, dtype=np.intp)
        some = weights if total <= MOST_ROWS else copies(table, same, weights, MOST_ROWS / total)
        drawn.append(some[some > 0.0])
        read, step = table.numbers(columns, sparse=False, checked=False), max(TOGETHER // max(len(columns), 1), 1)
        for start in range(0, table.rows, step):
            rows = slice(start, min(start + step, table.rows))
            cells = np.array(read(rows.start, rows.stop), dtype=np.float64)
            cells[~(np.abs(cells) <= LARGEST_NUMBER) | (cells == atom)] = np.nan  # the pass over the rows refuses such
            used = cells[weights[rows] > 0.0]
            low = np.fmin(low, np.fmin.reduce(used, axis=0, initial=np.inf))
            high = np.fmax(high, np.fmax.reduce(used, axis=0, initial=-np.inf))
            values.append(cells[some[rows] > 0.0])
    return np.concatenate(values), np.concatenate(drawn), low, high


def _tables(batches: Batches, unlabeled: bool) -> Iterator[tuple[Table, Array]]:
    """The labeled or unlabeled rows, and their weights."""
    for batch in batches:
        rows = batch.unlabeled if unlabeled else batch
        if rows is not None and rows.table.rows:
            yield rows.table, rows.row_weights
