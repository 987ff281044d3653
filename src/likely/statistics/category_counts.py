"""Counts of categories, and of pairs of categories, per class; adding two of them unites their categories."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError, listed
from likely.numerics.shapes import Shape
from likely.statistics.counts import AdditiveCounts, Cells, are_weighed, label_order, spread
from likely.typing import AnyArray, Array, Vocabulary


class CategoricalCounts(AdditiveCounts):
    """Counts whose other axes are the categories of columns: adding two of them unites their categories."""

    __slots__ = ()
    vocabularies: tuple[Vocabulary, ...]

    @abstractmethod
    def _keys(self, vocabularies: Sequence[Vocabulary]) -> list[list[tuple[int, Any]]]:
        """The column and category of each place of the axes, for each pair of arrays."""

    @property
    def dimension(self) -> int:
        return len(self.vocabularies)

    def observed_rows(self, k: int) -> AnyArray:
        """The number of rows of class k in which each column has a value, (d,)."""
        found = np.zeros(self.dimension, dtype=np.int64)
        for keys, (rows, _) in zip(self._keys(self.vocabularies), self._cells, strict=True):
            np.add.at(found, np.array([j for j, _ in keys], dtype=np.intp), _single(rows)[k])
        return found

    def unseen_rate(self, column: int, part: int | None = None) -> float:
        """(n₁ + 1) / (n + 1) for n values of a column, n₁ of which no other row has: unseen by leave-one-out.

        `part` is the place of the column in combinations of columns.
        """
        found: dict[Any, float] = {}
        for keys, (rows, _) in zip(self._keys(self.vocabularies), self._cells, strict=True):
            for (j, category), count in zip(keys, _single(rows).sum(axis=0).tolist(), strict=True):
                if j == column:
                    label = category if part is None else category[part]
                    found[label] = found.get(label, 0.0) + count
        return (sum(count for count in found.values() if count == 1.0) + 1.0) / (sum(found.values()) + 1.0)

    def _united(self, other: Self) -> tuple[Any, ...]:
        if self.dimension != other.dimension:
            raise InputError("Counts of different columns cannot be combined.")
        pairs = zip(self.vocabularies, other.vocabularies, strict=True)
        return (tuple(a if a == b else tuple(sorted({*a, *b}, key=label_order)) for a, b in pairs),)

    def align(self, classes: AnyArray, *layout: Any) -> Self:
        """The same counts with further classes and, if given, further categories, which have no rows."""
        wide = AdditiveCounts.align(self, classes)
        words = layout[0] if layout else self.vocabularies
        if words == self.vocabularies:
            return wide
        cells = []
        parts = zip(self._keys(self.vocabularies), self._keys(words), wide._cells, strict=True)
        for old, new, (rows, weight) in parts:
            code = {key: i for i, key in enumerate(new)}
            at, axes = np.array([code[key] for key in old], dtype=np.intp), range(1, rows.ndim)
            cells.append((spread(rows, at, len(new), axes), spread(weight, at, len(new), axes)))
        return wide._with(classes, cells, vocabularies=words)

    def _short(self, part: int, short: AnyArray) -> str:
        which = np.flatnonzero(_single(short).any(axis=0))
        keys = self._keys(self.vocabularies)[part]
        return f" Categories: {listed([keys[i][1] for i in which])}." if len(which) else ""

    def compact(self) -> Self:
        """The same counts without categories that have no rows."""
        words: list[list[Any]] = [[] for _ in self.vocabularies]
        cells = []
        for keys, (rows, weight) in zip(self._keys(self.vocabularies), self._cells, strict=True):
            kept = np.flatnonzero(_single(rows).any(axis=0))
            for j, category in (keys[i] for i in kept):
                words[j].append(category)
            index = np.ix_(np.arange(len(rows)), *(kept,) * (rows.ndim - 1))
            cells.append((rows[index], weight[index]))
        return self._with(self.classes, cells, vocabularies=tuple(map(tuple, words)))


def _single(cells: AnyArray) -> AnyArray:
    """The cells of single categories, (classes, categories), also of those of pairs."""
    return cells if cells.ndim == 2 else np.diagonal(cells, axis1=1, axis2=2)


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
