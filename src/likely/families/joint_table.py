"""A joint probability table of several categorical columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from likely.errors import CellError, InputError, NoDensityError, listed
from likely.families.category_tables import CategoryDensities, draw_codes, explain_in_order, increase
from likely.numerics.block_sizes import KEPT
from likely.numerics.missingness import patterns
from likely.statistics.accumulator import RowAccumulator
from likely.statistics.category_counts import CategoryCounts
from likely.statistics.counts import label_order
from likely.typing import AnyArray, Array, Codes, Index, Vocabulary

LARGEST_TABLE = 1_000_000  # cells of a joint table, per class
MOST_EXPLAINED = 10  # columns whose orders are all averaged


def check_size(sizes: Sequence[int], names: Sequence[str]) -> None:
    """Raise if a joint table would be too large."""
    cells = math.prod(sizes)
    if cells > LARGEST_TABLE:
        raise InputError(
            f"The joint table of columns {listed(names)} has {' × '.join(map(str, sizes))} = {cells:,} cells for each "
            f"class, more than {LARGEST_TABLE:,}. Declare fewer columns together, or each column separately."
        )


@dataclass(slots=True, eq=False)
class JointTableAccumulator(RowAccumulator):
    """Counts combinations of categories over row blocks."""

    classes: AnyArray
    vocabularies: tuple[Vocabulary, ...]
    names: tuple[str, ...]
    _rows: AnyArray = field(init=False)
    _weight: Array = field(init=False)

    def __post_init__(self) -> None:
        check_size(self._sizes, self.names)
        cells = len(self.classes) * math.prod(self._sizes)
        self._rows, self._weight = np.zeros(cells, dtype=np.int64), np.zeros(cells)

    @property
    def _sizes(self) -> list[int]:
        return [len(words) for words in self.vocabularies]

    @property
    def block_rows(self) -> int:
        return 2**16

    def _add(self, block: AnyArray, codes: Codes, weights: Array | None) -> None:
        if (block < 0).any():
            row, column = np.argwhere(block < 0)[0]
            hint = "declare each column separately, or drop such rows"
            raise CellError(int(row), int(column), None, "is missing, and a joint table needs complete rows", hint)
        index = np.ravel_multi_index((codes, *block.T), (len(self.classes), *self._sizes))
        self._rows += np.bincount(index, minlength=len(self._rows))
        self._weight += np.bincount(index, weights, minlength=len(self._rows))

    def finish(self) -> CategoryCounts:
        """The counts of the combinations that occur, each combination a category of one column."""
        rows, weight = self._rows.reshape(len(self.classes), -1), self._weight.reshape(len(self.classes), -1)
        seen = np.flatnonzero(rows.any(axis=0))
        codes = [part.tolist() for part in np.unravel_index(seen, self._sizes)]
        combinations = [
            tuple(words[i] for words, i in zip(self.vocabularies, combination, strict=True))
            for combination in zip(*codes, strict=True)
        ]
        order = sorted(range(len(combinations)), key=lambda i: label_order(combinations[i]))
        seen = seen[order]
        vocabulary = tuple(combinations[i] for i in order)
        return CategoryCounts(self.classes, (vocabulary,), (rows[:, seen],), (weight[:, seen],))


@dataclass(frozen=True, eq=False)
class JointTable(CategoryDensities):
    """A joint table of several categorical columns. Rows are codes of categories; −1 is missing or unknown."""

    table: Array  # log p, (classes, categories of the first column, of the second, …)

    not_exported: ClassVar[str] = (
        "a joint table of categories has no expression. Declare Categorical() for each column."
    )

    @property
    def n_classes(self) -> int:
        return len(self.table)

    def marginal(self, columns: Index) -> Self:
        """The table summed over the other columns."""
        others = tuple(j + 1 for j in range(self.dimension) if j not in columns)
        left = sorted(columns.tolist())
        with np.errstate(divide="ignore"):
            summed = np.log(np.exp(self.table).sum(axis=others)) if others else self.table
        order = [left.index(j) + 1 for j in columns.tolist()]
        return type(self)(tuple(self.words[j] for j in columns), summed.transpose(0, *order))

    @property
    def constant(self) -> bool:
        """Whether all probabilities are 1: only one combination occurs, and the columns are ignored."""
        return not self.table.any()

    def ignored_columns(self) -> Index:
        return np.flatnonzero([len(words) < 2 for words in self.words])

    def notes(self, names: Sequence[str]) -> list[str]:
        return []

    def log_density(self, rows: AnyArray) -> Array:
        if self.constant:
            return np.zeros((self.n_classes, len(rows)))
        if (rows < 0).any():
            return self.by_pattern(rows, lambda some, part: part.log_density(some))
        return np.asarray(self.table[:, *rows.T])

    def class_log_density(self, rows: AnyArray, codes: Codes) -> Array:
        if (rows < 0).any():
            return super().class_log_density(rows, codes)
        return np.asarray(self.table[codes, *rows.T])

    def _patterns(self, rows: AnyArray) -> Iterator[tuple[Index, Index]]:
        return patterns(np.where(rows < 0, np.nan, rows))

    def column_log_densities(self, rows: AnyArray) -> Array:
        columns = (np.array([j]) for j in range(self.dimension))
        return np.stack([self.marginal(j).log_density(rows[:, j]).T for j in columns], axis=2)

    def explain(self, rows: AnyArray) -> Array:
        """The mean of `explain_sequential` over all orders of the columns (Shapley values); missing values have 0.

        With a set S of s columns before it, column j contributes log p(x_S, x_j) − log p(x_S), and S stands before it
        in s!·(d − s − 1)!/d! of the orders.
        """
        terms = np.zeros((len(rows), self.n_classes, self.dimension))
        if self.constant:
            return terms
        if (rows < 0).any():
            return self.explain_with_missing(rows)
        d = self.dimension
        if d > MOST_EXPLAINED:
            raise NoDensityError(
                f"A joint table of {d} columns has too many orders of its columns (at most {MOST_EXPLAINED} columns). "
                "Use explain(X, method='sequential')."
            )
        sets = [np.flatnonzero([bits >> j & 1 for j in range(d)]) for bits in range(2**d)]
        marginals = [self.marginal(columns) for columns in sets[1:]]
        step = max(KEPT // (len(sets) * self.n_classes), 1)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            logs = np.zeros((len(sets), self.n_classes, len(part)))  # log p(x_S | class), by the bits of S
            for bits, marginal in enumerate(marginals, start=1):
                logs[bits] = marginal.log_density(part[:, sets[bits]])
            for j in range(d):
                for bits in range(len(sets)):
                    if not bits >> j & 1:
                        proportion = 1.0 / (d * math.comb(d - 1, len(sets[bits])))
                        terms[start : start + step, :, j] += proportion * increase(logs[bits], logs[bits | 1 << j]).T
        return terms

    def explain_sequential(self, rows: AnyArray) -> Array:
        """log p(x_j | x_1, …, x_{j−1}, class) of each column in their order; missing values contribute 0."""
        return explain_in_order(self, rows)

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Codes of categories."""
        drawn = draw_codes(self.table[label].ravel(), n, rng)
        return np.column_stack(np.unravel_index(drawn, self.table.shape[1:])).astype(np.float64)
