"""Counts of categories, and of pairs of categories, per class; adding two of them unites their categories."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError, listed
from likely.numerics.shapes import Shape
from likely.statistics.counts import AdditiveCounts, Cells, are_weighed, label_order, spread, unite_classes
from likely.typing import AnyArray, Array, Index, Vocabulary

FEW = 16  # the ratio of sizes from which a few categories are found by bisection


class CategoricalCounts(AdditiveCounts):
    """Counts whose other axes are the categories of columns: adding two of them unites their categories."""

    __slots__ = ()
    vocabularies: tuple[Vocabulary, ...]

    @abstractmethod
    def _keys(self, vocabularies: Sequence[Vocabulary]) -> list[list[tuple[int, Any]]]:
        """The column and category of each place of the axes, for each pair of arrays."""

    @abstractmethod
    def _axes(self, words: Sequence[Vocabulary], places: Sequence[Index | None]) -> list[tuple[Index | None, int]]:
        """The places of the axes of each pair of arrays among other vocabularies, and the lengths of the axes there.

        `places` are those of the columns; None is the same places.
        """

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

    def _pair(self, other: Self) -> tuple[Self, Self]:
        if self.dimension != other.dimension:
            raise InputError("Counts of different columns cannot be combined.")
        classes = unite_classes(self.classes, other.classes)
        columns = [merged(a, b) for a, b in zip(self.vocabularies, other.vocabularies, strict=True)]
        words = tuple(union for union, _, _ in columns)
        mine, yours = [at for _, at, _ in columns], [at for _, _, at in columns]
        return self._aligned(classes, words, mine), other._aligned(classes, words, yours)

    def align(self, classes: AnyArray, *layout: Any) -> Self:
        """The same counts with further classes and, if given, further categories, which have no rows."""
        words = layout[0] if layout else self.vocabularies
        return self._aligned(classes, words, list(map(_places_of, self.vocabularies, words)))

    def _aligned(self, classes: AnyArray, words: tuple[Vocabulary, ...], places: Sequence[Index | None]) -> Self:
        """The same counts with these classes and categories, among which each column has its own at these places."""
        wide = AdditiveCounts.align(self, classes)
        if all(at is None for at in places):
            return wide
        cells = []
        for (at, size), (rows, weight) in zip(self._axes(words, places), wide._cells, strict=True):
            axes = () if at is None else range(1, rows.ndim)
            cells.append((spread(rows, at, size, axes), spread(weight, at, size, axes)))
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


class SortedWords(tuple[Any, ...]):
    """The categories of a column, which are of one type, or numbers, in their order."""

    __slots__ = ()


def _common_type(kinds: set[type]) -> type | None:
    """The type of categories that Python orders as `label_order` does: text, bytes or numbers; None for others."""
    if kinds <= {bool, int, float}:
        return float
    return kinds.pop() if kinds in ({str}, {bytes}) else None


def merged(words: Vocabulary, others: Vocabulary) -> tuple[Vocabulary, Index | None, Index | None]:
    """The categories of two vocabularies in their order, and where it has those of each; None: in the same places.

    A few categories are found among sorted ones by bisection: the time hardly depends on the number of these.
    """
    if words == others:
        return words, None, None
    kind = _common_type(set(map(type, others)))
    if (
        isinstance(words, SortedWords)
        and len(words) > FEW * len(others)
        and kind is not None
        and kind is _common_type({type(words[0])})
    ):
        return _inserted(words, others)
    known = set(words)
    found = [*words, *(word for word in others if word not in known)]
    plain = _common_type(set(map(type, found))) is not None
    union = SortedWords(sorted(found)) if plain else tuple(sorted(found, key=label_order))
    return union, _places_of(words, union), _places_of(others, union)


def _inserted(words: SortedWords, others: Vocabulary) -> tuple[Vocabulary, Index | None, Index]:
    """The same of a few categories and many sorted ones."""
    places = {word: bisect_left(words, word) for word in others}
    new = sorted(word for word, place in places.items() if place == len(words) or words[place] != word)
    at = np.array([places[word] for word in new], dtype=np.intp)  # each is inserted before the category at this place
    ends = [0, *at.tolist(), len(words)]
    parts: list[Any] = list(words[: ends[1]])
    for i, word in enumerate(new):
        parts += [word, *words[ends[i + 1] : ends[i + 2]]]
    before = {word: i for i, word in enumerate(new)}
    there = [
        places[word] + (before[word] if word in before else int(np.searchsorted(at, places[word], side="right")))
        for word in others
    ]
    old = np.arange(len(words)) if new else None
    moved = None if old is None else old + np.searchsorted(at, old, side="right")
    return (SortedWords(parts) if new else words), moved, np.array(there, dtype=np.intp)


def _places_of(old: Vocabulary, new: Vocabulary) -> Index | None:
    """The place of each category of a vocabulary in one that has all of them; None if the two are equal."""
    if old == new:
        return None
    code = dict(zip(new, range(len(new)), strict=True))
    return np.array([code[word] for word in old], dtype=np.intp)


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

    def _axes(self, words: Sequence[Vocabulary], places: Sequence[Index | None]) -> list[tuple[Index | None, int]]:
        return [(at, len(new)) for at, new in zip(places, words, strict=True)]


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

    def _axes(self, words: Sequence[Vocabulary], places: Sequence[Index | None]) -> list[tuple[Index | None, int]]:
        size, found = 0, list[Index]()
        for at, new in zip(places, words, strict=True):
            found.append(size + (np.arange(len(new)) if at is None else at))
            size += len(new)
        return [(np.concatenate(found), size)]
