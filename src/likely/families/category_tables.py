"""Counting and looking up categories: several columns at a time, by one code for each combination of their codes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from likely.families.base import Conditionals
from likely.families.estimation import UNOBSERVED, no_maximum_error
from likely.statistics.accumulator import RowAccumulator
from likely.statistics.category_counts import CategoryCounts
from likely.statistics.rounding import subtract_counts
from likely.typing import AnyArray, Array, Codes, Index, Vocabulary

GROUP_CELLS = 4096  # neighboring columns are counted and looked up together up to this many combinations


def group_columns(sizes: Sequence[int], limit: int) -> list[list[int]]:
    """Groups of neighboring columns with at most `limit` combinations of codes; at least one column each."""
    groups: list[list[int]] = []
    product = limit + 1
    for j, size in enumerate(sizes):
        if product * size > limit:
            groups.append([])
            product = 1
        groups[-1].append(j)
        product *= size
    return groups


def combined_codes(
    block: AnyArray, group: Sequence[int], sizes: Sequence[int], classes: AnyArray | None = None
) -> Index:
    """One code for the codes −1, 0, … of a group of columns, and for class codes before them: mixed radix."""
    index, constant = (block[:, group[0]].copy(), 1) if classes is None else (classes.astype(np.intp), 0)
    for j in group if classes is not None else group[1:]:
        index *= sizes[j]
        index += block[:, j]
        constant = constant * sizes[j] + 1
    index += constant
    return index


def log_proportions(counts: Array, s: float, classes: AnyArray, name: str, remedy: str) -> Array:
    """log (count + s) / (total + s · categories), (classes, categories)."""
    total = counts.sum(axis=1, keepdims=True) + s * counts.shape[1]
    if np.any(total == 0.0):
        raise no_maximum_error(name, classes[total[:, 0] == 0.0], UNOBSERVED, remedy=remedy)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log((counts + s) / total))


def log_proportions_without(
    counts: Array, total: Array, weight: Array | float, s: float, size: int | None = None
) -> Array:
    """log (count − w + s) / (total − w + s · categories): proportions without a row of weight w."""
    size = counts.shape[1] if size is None else size
    left, rest = subtract_counts(counts, weight, total), subtract_counts(total, weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(left + s > 0.0, np.log(left + s) - np.log(rest + s * size), -np.inf)


def draw_codes(log_probability: Array, n: int, rng: np.random.Generator) -> Index:
    """n codes with these log-probabilities, (n,)."""
    probability = np.exp(log_probability)
    return np.asarray(rng.choice(len(probability), size=n, p=probability / probability.sum()))


@dataclass(frozen=True, eq=False)
class CategoryDensities(Conditionals):
    """Base of densities of categorical columns. Rows are codes of categories; −1 is missing or unknown."""

    words: tuple[Vocabulary, ...]  # of each column

    @property
    def vocabularies(self) -> tuple[Vocabulary, ...]:
        return self.words

    @property
    def dimension(self) -> int:
        return len(self.words)


def increase(before: Array, after: Array) -> Array:
    """after − before of log-probabilities; 0 where a combination was impossible before."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(before), 0.0, after - before)


def explain_in_order(densities: CategoryDensities, rows: AnyArray) -> Array:
    """log p(x_1, …, x_j | class) − log p(x_1, …, x_(j−1) | class) of each column in their order, (n, classes, d)."""
    terms = np.zeros((len(rows), densities.n_classes, densities.dimension))
    before, known = np.zeros((densities.n_classes, len(rows))), np.full_like(rows, -1)
    for j in range(densities.dimension):
        known[:, j] = rows[:, j]
        so_far = densities.log_density(known)
        terms[:, :, j] = increase(before, so_far).T
        before = so_far
    return terms


@dataclass(slots=True, eq=False)
class CategoryAccumulator(RowAccumulator):
    """Counts codes of categories over row blocks; −1 is a missing value."""

    classes: AnyArray
    vocabularies: tuple[Vocabulary, ...]
    _sizes: list[int] = field(init=False)
    _groups: list[list[int]] = field(init=False)
    _rows: list[AnyArray] = field(init=False)
    _weight: list[Array] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._sizes = [len(words) + 1 for words in self.vocabularies]  # the first code is for missing values
        self._groups = group_columns(self._sizes, max(GROUP_CELLS // max(len(self.classes), 1), 1))
        combinations = [len(self.classes) * math.prod(self._sizes[j] for j in group) for group in self._groups]
        self._rows = [np.zeros(size, dtype=np.int64) for size in combinations]

    @property
    def block_rows(self) -> int:
        return max(2**18 // max(len(self.vocabularies), 1), 1024)

    def _add(self, block: AnyArray, codes: Codes, weights: Array | None) -> None:
        if weights is not None and self._weight is None:
            self._weight = [rows.astype(np.float64) for rows in self._rows]
        for g, group in enumerate(self._groups):
            index = combined_codes(block, group, self._sizes, codes)
            rows = np.bincount(index, minlength=len(self._rows[g]))
            self._rows[g] += rows
            if self._weight is not None:
                self._weight[g] += rows if weights is None else np.bincount(index, weights, len(self._rows[g]))

    def finish(self) -> CategoryCounts:
        """The counts of all blocks so far; categories without any rows are dropped."""
        rows = tuple(self._columns(self._rows))
        weight = rows if self._weight is None else tuple(self._columns(self._weight))
        floats = tuple(part.astype(np.float64) for part in weight)
        return CategoryCounts(self.classes, self.vocabularies, rows, floats).compact()

    def _columns(self, counts: Sequence[AnyArray]) -> Iterator[AnyArray]:
        """The counts of each column, (classes, categories), from those of the groups."""
        for group, flat in zip(self._groups, counts, strict=True):
            table = flat.reshape(len(self.classes), *(self._sizes[j] for j in group))
            for i in range(len(group)):
                others = tuple(axis for axis in range(1, len(group) + 1) if axis != i + 1)
                yield table.sum(axis=others)[:, 1:]
