"""Cross-validation folds that depend on the content of rows alone: not on their order, nor on weights or repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likely.data.row_hash import rank_hashes
from likely.data.table import Table
from likely.typing import AnyArray, Array


@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """Labeled rows in groups: rows of one class with the same content. A weight of 2 is the row twice."""

    codes: AnyArray
    weights: Array
    groups: AnyArray
    keys: AnyArray  # the order in which rows are assigned to folds

    @classmethod
    def of(cls, tables: Sequence[Table], codes: AnyArray, weights: Array) -> RowGroups:
        """The groups of the rows of all tables."""
        contents, places = rank_hashes(tables)
        groups = np.unique(np.stack([codes.astype(np.uint64), contents]), axis=1, return_inverse=True)[1].ravel()
        return cls(codes, weights, groups, places)

    def class_sizes(self, classes: int) -> Array:
        """Rows of each class: the total weight, or the number of different rows if that is more."""
        used = self.weights > 0.0
        distinct = np.unique(np.stack([self.codes[used], self.groups[used]]), axis=1)[0]
        return np.maximum(np.bincount(self.codes, self.weights, classes), np.bincount(distinct, minlength=classes))

    def held_out_weights(self, folds: int) -> list[Array]:
        """The weights of the rows that each of at most `folds` folds holds out.

        Groups are assigned to folds in turn. One with at least as many rows as there are folds has a part in each.
        """
        total = np.bincount(self.groups, self.weights)
        first = np.full(len(total), len(self.groups))
        np.minimum.at(first, self.groups, self.keys)
        code = np.zeros(len(total), dtype=np.intp)
        code[self.groups] = self.codes
        fold = np.zeros(len(total), dtype=np.intp)
        for k in np.unique(code).tolist():
            mine = np.flatnonzero((code == k) & (total > 0.0) & (total < folds))
            fold[mine[np.argsort(first[mine])]] = np.arange(len(mine)) % folds
        divided = total >= folds
        held_out = [
            self.weights * np.where(divided, 1.0 / folds, (fold == number) & ~divided)[self.groups]
            for number in range(folds)
        ]
        return [weights for weights in held_out if weights.any()]
