"""Counts of categories per class and column; adding two of them unites their categories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError, listed
from likely.statistics.counts import are_counts, label_order, positions, unite_classes
from likely.statistics.rounding import remaining_counts
from likely.typing import AnyArray, Array, Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class CategoryCounts:
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
    def dimension(self) -> int:
        return len(self.vocabularies)

    def align(self, classes: AnyArray, vocabularies: tuple[Vocabulary, ...] | None = None) -> Self:
        """The same counts with further classes and categories, which have no rows."""
        words = self.vocabularies if vocabularies is None else vocabularies
        if classes is self.classes and words == self.vocabularies:
            return self
        wide, at = CategoryCounts.empty(classes, words), positions(classes, self.classes)
        for j, (old, new) in enumerate(zip(self.vocabularies, words, strict=True)):
            place = {label: code for code, label in enumerate(new)}
            index = np.ix_(at, np.array([place[label] for label in old], dtype=np.intp))
            wide.rows[j][index], wide.weight[j][index] = self.rows[j], self.weight[j]
        return wide  # type: ignore[return-value]

    def _pair(self, other: CategoryCounts) -> tuple[Self, CategoryCounts]:
        if self.dimension != other.dimension:
            raise InputError("Counts of different columns cannot be combined.")
        classes = unite_classes(self.classes, other.classes)
        words = tuple(
            mine if mine == yours else tuple(sorted({*mine, *yours}, key=label_order))
            for mine, yours in zip(self.vocabularies, other.vocabularies, strict=True)
        )
        return self.align(classes, words), other.align(classes, words)

    def __add__(self, other: CategoryCounts) -> Self:
        left, right = self._pair(other)
        rows = tuple(a + b for a, b in zip(left.rows, right.rows, strict=True))
        return replace(left, rows=rows, weight=tuple(a + b for a, b in zip(left.weight, right.weight, strict=True)))

    def __sub__(self, other: CategoryCounts) -> Self:
        """The counts without the rows of `other`; categories and classes without any rows are dropped."""
        left, right = self._pair(other)
        words, rows, weight = [], [], []
        for j in range(left.dimension):
            n, w = self._subtract_column(j, left, right)
            kept = np.flatnonzero(np.any(n, axis=0))
            words.append(tuple(left.vocabularies[j][i] for i in kept))
            rows.append(n[:, kept])
            weight.append(np.where(n == 0, 0.0, w)[:, kept])
        result = replace(left, vocabularies=tuple(words), rows=tuple(rows), weight=tuple(weight))
        return result.select(np.any([part.any(axis=1) for part in rows], axis=0))

    @staticmethod
    def _subtract_column(j: int, left: CategoryCounts, right: CategoryCounts) -> tuple[npt.NDArray[np.int64], Array]:
        """Rows and weight of column j after a removal; an error names the categories with too few rows."""
        try:
            return remaining_counts(left.classes, left.rows[j], right.rows[j], left.weight[j], right.weight[j])
        except InputError as error:
            short = np.flatnonzero(np.any(right.rows[j] > left.rows[j], axis=0))
            which = f" Categories: {listed([left.vocabularies[j][i] for i in short])}." if len(short) else ""
            raise InputError(f"{error}{which}") from None

    def select(self, which: AnyArray) -> Self:
        """The counts of some of the classes."""
        rows, weight = tuple(part[which] for part in self.rows), tuple(part[which] for part in self.weight)
        return replace(self, classes=self.classes[which], rows=rows, weight=weight)
