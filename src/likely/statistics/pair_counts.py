"""Counts of pairs of categories per class; adding two of them unites their categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from likely.numerics.shapes import Shape
from likely.statistics.counts import CategoricalCounts, are_weighed
from likely.typing import AnyArray, Array, Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts(CategoricalCounts):
    """Number of rows and sum of weights of each class and pair of categories: second moments of one-hot columns.

    `rows` and `weight` are (classes, categories, categories), with the categories of all columns one after another.
    The diagonal has the counts of single categories. A missing value counts in no pair.
    """

    classes: Annotated[AnyArray, Shape("=classes")]
    vocabularies: tuple[Vocabulary, ...]
    rows: Annotated[npt.NDArray[np.int64], Shape("classes words words", ">=0")]
    weight: Annotated[Array, Shape("classes words words", ">=0")]

    @classmethod
    def empty(cls, classes: AnyArray, vocabularies: tuple[Vocabulary, ...]) -> Self:
        size = sum(map(len, vocabularies))
        shape = (len(classes), size, size)
        return cls(classes, vocabularies, np.zeros(shape, dtype=np.int64), np.zeros(shape))

    def _sizes(self) -> dict[str, Any]:
        return {"words": sum(map(len, self.vocabularies))}

    def _valid(self) -> bool:
        return are_weighed(self.rows, self.weight) and all(len(set(words)) == len(words) for words in self.vocabularies)

    def _keys(self, vocabularies: Sequence[Vocabulary]) -> list[list[tuple[int, Any]]]:
        return [[(j, category) for j, words in enumerate(vocabularies) for category in words]]
