"""Counts of categories per class and column; adding two of them unites their categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from likely.statistics.counts import CategoricalCounts, Cells, are_counts
from likely.typing import AnyArray, Array, Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class CategoryCounts(CategoricalCounts):
    """Number of rows and sum of weights of each class and category, for each column.

    `rows` and `weight` have one array (classes, categories) for each column; `vocabularies` are the categories of each
    column. A missing value counts in no category.
    """

    classes: AnyArray
    vocabularies: tuple[Vocabulary, ...]
    rows: tuple[npt.NDArray[np.int64], ...]
    weight: tuple[Array, ...]

    @classmethod
    def empty(cls, classes: AnyArray, vocabularies: tuple[Vocabulary, ...]) -> Self:
        shapes = [(len(classes), len(words)) for words in vocabularies]
        rows = tuple(np.zeros(shape, dtype=np.int64) for shape in shapes)
        return cls(classes, vocabularies, rows, tuple(np.zeros(shape) for shape in shapes))

    def sound(self) -> bool:
        """Whether the fields are consistent, so that some rows have these counts."""
        size = len(self.classes)
        parts = zip(self.vocabularies, self.rows, self.weight, strict=True)
        return all(
            len(set(words)) == len(words) and are_counts(rows, weight, (size, len(words)))
            for words, rows, weight in parts
        )

    @property
    def _cells(self) -> Cells:
        return tuple(zip(self.rows, self.weight, strict=True))

    def _with(self, classes: AnyArray, cells: Cells, **layout: Any) -> Self:
        rows, weight = tuple(rows for rows, _ in cells), tuple(weight for _, weight in cells)
        return replace(self, classes=classes, rows=rows, weight=weight, **layout)

    def _keys(self, vocabularies: Sequence[Vocabulary]) -> list[list[tuple[int, Any]]]:
        return [[(j, category) for category in words] for j, words in enumerate(vocabularies)]
