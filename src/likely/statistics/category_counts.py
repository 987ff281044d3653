"""Counts of categories per class and column; adding two of them unites their categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from likely.numerics.shapes import Shape
from likely.statistics.counts import CategoricalCounts, Cells, are_weighed
from likely.typing import AnyArray, Array, Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class CategoryCounts(CategoricalCounts):
    """Number of rows and sum of weights of each class and category, for each column.

    `rows` and `weight` have one array (classes, categories) for each column; `vocabularies` are the categories of each
    column. A missing value counts in no category.
    """

    classes: Annotated[AnyArray, Shape("=classes")]
    vocabularies: tuple[Vocabulary, ...]
    rows: tuple[Annotated[npt.NDArray[np.int64], Shape("classes _", ">=0")], ...]
    weight: tuple[Annotated[Array, Shape("classes _", ">=0")], ...]

    @classmethod
    def empty(cls, classes: AnyArray, vocabularies: tuple[Vocabulary, ...]) -> Self:
        shapes = [(len(classes), len(words)) for words in vocabularies]
        rows = tuple(np.zeros(shape, dtype=np.int64) for shape in shapes)
        return cls(classes, vocabularies, rows, tuple(np.zeros(shape) for shape in shapes))

    def _valid(self) -> bool:
        parts = zip(self.vocabularies, self.rows, self.weight, strict=True)
        return all(are_weighed(rows, w) and rows.shape[1] == len(words) == len(set(words)) for words, rows, w in parts)

    @property
    def _cells(self) -> Cells:
        return tuple(zip(self.rows, self.weight, strict=True))

    def _with(self, classes: AnyArray, cells: Cells, **layout: Any) -> Self:
        rows, weight = tuple(rows for rows, _ in cells), tuple(weight for _, weight in cells)
        return replace(self, classes=classes, rows=rows, weight=weight, **layout)

    def _keys(self, vocabularies: Sequence[Vocabulary]) -> list[list[tuple[int, Any]]]:
        return [[(j, category) for category in words] for j, words in enumerate(vocabularies)]
