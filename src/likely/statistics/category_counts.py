"""Counts of categories per class, whose vocabularies unite when two are added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError, listed
from likely.statistics.counts import are_counts, positions, remaining, unite_classes
from likely.typing import AnyArray, Array, Vocabulary


def label_order(label: Any) -> tuple[str, Any]:
    """What labels are sorted by: numbers first, then text, each in its own order; combinations of labels likewise."""
    if isinstance(label, tuple):
        return "tuple", tuple(label_order(part) for part in label)
    return ("", label) if isinstance(label, bool | int | float) else (type(label).__name__, label)


@dataclass(frozen=True, slots=True, eq=False)
class CategoryCounts:
    """Rows and weight of each class and category, for columns with vocabularies of their own.

    `rows` and `weight` have one array (classes, categories) for each column. Rows in which a column is missing count in
    none of its categories.
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
        """Whether these can be the counts of any rows."""
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
        """The same counts among more classes and categories."""
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
        """What is left; categories whose last row goes are gone."""
        left, right = self._pair(other)
        words, rows, weight = [], [], []
        for j in range(left.dimension):
            n, w = self._left_over(j, left, right)
            kept = np.flatnonzero(np.any(n, axis=0))
            words.append(tuple(left.vocabularies[j][i] for i in kept))
            rows.append(n[:, kept])
            weight.append(np.where(n == 0, 0.0, w)[:, kept])
        result = replace(left, vocabularies=tuple(words), rows=tuple(rows), weight=tuple(weight))
        return result.select(np.any([part.any(axis=1) for part in rows], axis=0))

    @staticmethod
    def _left_over(j: int, left: CategoryCounts, right: CategoryCounts) -> tuple[npt.NDArray[np.int64], Array]:
        """What remains of column j; an error names categories of which too few were learnt."""
        try:
            return remaining(left.classes, left.rows[j], right.rows[j], left.weight[j], right.weight[j])
        except InputError as error:
            short = np.flatnonzero(np.any(right.rows[j] > left.rows[j], axis=0))
            which = f" Categories: {listed([left.vocabularies[j][i] for i in short])}." if len(short) else ""
            raise InputError(f"{error}{which}") from None

    def select(self, which: AnyArray) -> Self:
        """The same counts of some classes only."""
        rows, weight = tuple(part[which] for part in self.rows), tuple(part[which] for part in self.weight)
        return replace(self, classes=self.classes[which], rows=rows, weight=weight)
