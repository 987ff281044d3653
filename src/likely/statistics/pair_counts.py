"""Counts of pairs of categories per class; adding two of them unites their categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from likely.statistics.counts import CategoricalCounts, are_counts
from likely.typing import AnyArray, Array, Index, Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts(CategoricalCounts):
    """Number of rows and sum of weights of each class and pair of categories: second moments of one-hot columns.

    `rows` and `weight` are (classes, categories, categories), with the categories of all columns one after another.
    The diagonal has the counts of single categories. A missing value counts in no pair.
    """

    classes: AnyArray
    vocabularies: tuple[Vocabulary, ...]
    rows: npt.NDArray[np.int64]
    weight: Array

    @classmethod
    def empty(cls, classes: AnyArray, vocabularies: tuple[Vocabulary, ...]) -> Self:
        size = sum(map(len, vocabularies))
        shape = (len(classes), size, size)
        return cls(classes, vocabularies, np.zeros(shape, dtype=np.int64), np.zeros(shape))

    def sound(self) -> bool:
        """Whether the fields are consistent, as a check of files."""
        size = sum(map(len, self.vocabularies))
        distinct = all(len(set(words)) == len(words) for words in self.vocabularies)
        return distinct and are_counts(self.rows, self.weight, (len(self.classes), size, size))

    @property
    def _starts(self) -> Index:
        """The first category of each column, and after them the number of all categories."""
        return np.cumsum([0, *map(len, self.vocabularies)])

    def observed_rows(self, k: int) -> AnyArray:
        """The number of rows of class k in which each column has a value, (d,)."""
        single, starts = np.append(self.rows[k].diagonal(), 0), self._starts
        return np.where(np.diff(starts) > 0, np.add.reduceat(single, starts)[:-1], 0)

    def _keys(self, vocabularies: Sequence[Vocabulary]) -> list[list[tuple[int, Any]]]:
        return [[(j, category) for j, words in enumerate(vocabularies) for category in words]]
