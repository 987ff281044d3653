"""A sample of the training rows, by which a model's choices are judged: leave-one-out needs no more than some thousand.

Rows are drawn by hashes of their content, so that the sample does not depend on their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from likely.data.batches import Batch, Batches
from likely.data.row_hash import copies
from likely.data.table import Table
from likely.statistics.counts import Counts, positions
from likely.typing import AnyArray, Array

MOST_ROWS = 4000  # rows that choices and calibration are judged by, at most


@dataclass(frozen=True, slots=True, eq=False)
class SampledRows:
    """Labeled training rows, with the codes of their classes in the model."""

    table: Table
    codes: AnyArray
    held_out: Array  # weight that leave-one-out removes: weights are frequencies, and one copy of a row is held out
    weights: Array  # of the row in a mean over the sample

    def take(self, rows: AnyArray) -> SampledRows:
        """Some of the rows."""
        return SampledRows(self.table.take(rows), self.codes[rows], self.held_out[rows], self.weights[rows])


def sampled_rows(batches: Batches, counts: Counts, most: int | None = None) -> Iterator[SampledRows]:
    """About MOST_ROWS, or fewer, of the labeled rows with positive weight; all of them if they weigh no more."""
    most = MOST_ROWS if most is None else min(most, MOST_ROWS)
    total = float(counts.weight.sum())
    for batch in batches:
        if batch.table.rows:
            some = _sampled(batch, counts.classes, most / total if total > most else 1.0)
            if len(some.codes):
                yield some


def _sampled(batch: Batch, classes: AnyArray, fraction: float) -> SampledRows:
    codes = positions(classes, batch.counts.classes)[batch.codes]
    weights = batch.row_weights
    drawn = weights if fraction >= 1.0 else copies(batch.table, codes, weights, fraction)
    rows = SampledRows(batch.table, codes, np.minimum(weights, 1.0), drawn)
    return rows if drawn.all() else rows.take(np.flatnonzero(drawn))


def held_out_copies(batch: Batch) -> Batch:
    """Rows as leave-one-out holds them out: weights are frequencies, and one copy of each row is held out."""
    return batch if batch.weights is None else replace(batch, weights=np.minimum(batch.weights, 1.0))
