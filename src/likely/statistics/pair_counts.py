"""Counts of pairs of categories per class; adding two of them unites their categories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError, listed
from likely.statistics.counts import are_counts, label_order, positions, unite_classes
from likely.statistics.rounding import remaining_counts
from likely.typing import AnyArray, Array, Index, Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
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
    def dimension(self) -> int:
        return len(self.vocabularies)

    @property
    def _starts(self) -> Index:
        """The first category of each column, and after them the number of all categories."""
        return np.cumsum([0, *map(len, self.vocabularies)])

    def observed_rows(self, k: int) -> AnyArray:
        """The number of rows of class k in which each column has a value, (d,)."""
        single, starts = np.append(self.rows[k].diagonal(), 0), self._starts
        return np.where(np.diff(starts) > 0, np.add.reduceat(single, starts)[:-1], 0)

    def align(self, classes: AnyArray, vocabularies: tuple[Vocabulary, ...] | None = None) -> Self:
        """The same counts with further classes and categories, which have no rows."""
        words = self.vocabularies if vocabularies is None else vocabularies
        if classes is self.classes and words == self.vocabularies:
            return self
        wide, place = type(self).empty(classes, words), []
        for start, old, new in zip(wide._starts.tolist(), self.vocabularies, words, strict=False):
            code = {category: i for i, category in enumerate(new, start=start)}
            place += [code[category] for category in old]
        index = np.ix_(positions(classes, self.classes), np.array(place, np.intp), np.array(place, np.intp))
        wide.rows[index], wide.weight[index] = self.rows, self.weight
        return wide

    def _pair(self, other: PairCounts) -> tuple[Self, PairCounts]:
        if self.dimension != other.dimension:
            raise InputError("Counts of different columns cannot be combined.")
        words = tuple(
            mine if mine == yours else tuple(sorted({*mine, *yours}, key=label_order))
            for mine, yours in zip(self.vocabularies, other.vocabularies, strict=True)
        )
        classes = unite_classes(self.classes, other.classes)
        return self.align(classes, words), other.align(classes, words)

    def __add__(self, other: PairCounts) -> Self:
        left, right = self._pair(other)
        return replace(left, rows=left.rows + right.rows, weight=left.weight + right.weight)

    def __sub__(self, other: PairCounts) -> Self:
        """The counts without the rows of `other`; categories and classes without any rows are dropped."""
        left, right = self._pair(other)
        try:
            rows, weight = remaining_counts(left.classes, left.rows, right.rows, left.weight, right.weight)
        except InputError as error:
            categories = [category for words in left.vocabularies for category in words]
            short = np.flatnonzero(np.diagonal(right.rows > left.rows, axis1=1, axis2=2).any(axis=0))
            which = f" Categories: {listed([categories[i] for i in short])}." if len(short) else ""
            raise InputError(f"{error}{which}") from None
        result = replace(left, rows=rows, weight=np.where(rows == 0, 0.0, weight)).compact()
        return result.select(np.asarray(result.rows.any(axis=(1, 2))))

    def compact(self) -> Self:
        """The same counts without categories that have no rows."""
        seen = np.asarray(np.diagonal(self.rows, axis1=1, axis2=2).any(axis=0))
        if seen.all():
            return self
        words, kept = [], np.flatnonzero(seen)
        for start, old in zip(self._starts.tolist(), self.vocabularies, strict=False):
            words.append(tuple(category for i, category in enumerate(old, start=start) if seen[i]))
        index = np.ix_(np.arange(len(self.classes)), kept, kept)
        return replace(self, vocabularies=tuple(words), rows=self.rows[index], weight=self.weight[index])

    def select(self, which: AnyArray) -> Self:
        """The counts of some of the classes."""
        return replace(self, classes=self.classes[which], rows=self.rows[which], weight=self.weight[which])
