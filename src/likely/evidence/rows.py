"""Rows in the encodings that views read: values as they are, cells, standardised numbers and normal scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from likely.data.ledger import HashedRows, label_marks
from likely.data.row_hash import scrambled
from likely.data.table import Table
from likely.statistics.counts import Counts
from likely.typing import AnyArray, Array, Codes


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """Rows of a table, encoded."""

    table: Table  # the rows as they are
    cells: AnyArray  # (n, columns), uint8: the cell of a number, or the category; the largest code is a missing value
    numbers: Array  # (n, numeric columns), standardised; NaN where missing
    normal_scores: Array  # (n, numeric columns), ranks through the inverse normal distribution; NaN where missing

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, rows: AnyArray) -> EncodedRows:
        """Some of the rows."""
        return EncodedRows(self.table.take(rows), self.cells[rows], self.numbers[rows], self.normal_scores[rows])


Rows = TypeVar("Rows", Table, EncodedRows)


@dataclass(frozen=True, eq=False)
class LabeledRows(Generic[Rows]):
    """Distinct rows with their classes and weights, in the order of their keys.

    Equal rows of one class are merged, and their weights added.
    """

    rows: Rows
    classes: AnyArray
    codes: Codes
    weights: Array  # positive
    keys: AnyArray  # uint64, pseudo-random numbers by the content of a row and its class
    positions: AnyArray  # of the first of the merged rows in X
    copies: AnyArray  # the number of merged rows
    # uint64, pseudo-random numbers by the ranks of values, whatever the units of columns and the labels; None: the keys
    draws: AnyArray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def drawn_by(self) -> AnyArray:
        """The numbers by which rows are drawn into folds and into the rows of a tree."""
        return self.keys if self.draws is None else self.draws

    @property
    def class_ranks(self) -> AnyArray:
        """The place of each class in an order by weight, then by its rows, whatever the labels are."""
        sums = np.zeros(len(self.classes), dtype=np.uint64)
        np.add.at(sums, self.codes, scrambled(self.drawn_by))
        return np.argsort(np.lexsort((sums, self.class_weights.astype(np.float32))))

    @property
    def held_out(self) -> Array:
        """The weight that leave-one-out removes: weights are frequencies, and one copy of a row is held out."""
        return np.minimum(self.weights, 1.0)

    @property
    def class_weights(self) -> Array:
        """The total weight of each class."""
        return np.bincount(self.codes, self.weights, minlength=len(self.classes)).astype(np.float64)

    @property
    def counts(self) -> Counts:
        return Counts.of(self.classes, self.codes, self.weights)

    def hashed(self) -> HashedRows:
        """Their hashes for a ledger."""
        marks = label_marks(self.classes)[self.codes]
        return HashedRows(self.keys, marks, self.classes, self.codes, self.weights, self.positions)

    def take(self, rows: AnyArray) -> LabeledRows[Rows]:
        """Some of the rows; all classes are kept."""
        return LabeledRows(
            self.rows.take(rows),
            self.classes,
            self.codes[rows],
            self.weights[rows],
            self.keys[rows],
            self.positions[rows],
            self.copies[rows],
            None if self.draws is None else self.draws[rows],
        )


DistinctRows = LabeledRows[Table]
TrainingRows = LabeledRows[EncodedRows]
