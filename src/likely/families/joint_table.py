"""One joint table over several categorical columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from likely.errors import CellError, InputError, NotEstimableError, listed
from likely.families.base import Conditionals, patterns
from likely.statistics.category_counts import CategoryCounts, label_order
from likely.typing import AnyArray, Array, Codes, Index, Vocabulary

LARGEST_TABLE = 1_000_000  # cells of a joint table, for each class


def groups_of(sizes: Sequence[int], cells: int) -> list[list[int]]:
    """Neighbouring columns whose joint table has at most so many cells; at least one column each."""
    groups: list[list[int]] = []
    product = cells + 1
    for j, size in enumerate(sizes):
        if product * size > cells:
            groups.append([])
            product = 1
        groups[-1].append(j)
        product *= size
    return groups


def joint_codes(block: AnyArray, group: Sequence[int], sizes: Sequence[int], start: AnyArray | None = None) -> Index:
    """One number for the codes, -1 and up, of a group of columns: mixed radix."""
    index, constant = (block[:, group[0]].copy(), 1) if start is None else (start.astype(np.intp), 0)
    for j in group if start is not None else group[1:]:
        index *= sizes[j]
        index += block[:, j]
        constant = constant * sizes[j] + 1
    index += constant
    return index


def check_size(sizes: Sequence[int], names: Sequence[str]) -> None:
    """Raise where a joint table would be too large."""
    cells = math.prod(sizes)
    if cells > LARGEST_TABLE:
        raise InputError(
            f"The joint table of columns {listed(names)} has {' × '.join(map(str, sizes))} = {cells:,} cells for each "
            f"class, more than {LARGEST_TABLE:,}. Hint: declare fewer columns together, or each on its own."
        )


def log_proportions(counts: Array, s: float, classes: AnyArray, name: str) -> Array:
    """log (count + s) / (total + s · categories)."""
    total = counts.sum(axis=1, keepdims=True) + s * counts.shape[1]
    if np.any(total == 0.0):
        raise NotEstimableError(
            f"Column {name!r} has no observed value in class {listed(classes[total[:, 0] == 0.0])}, so its likelihood "
            "has no maximum. Use estimation='bayes' or 'map', or leave the column out."
        )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log((counts + s) / total))


@dataclass(slots=True, eq=False)
class JointTableAccumulator:
    """Counts combinations of categories over one row block after another."""

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
    def groups(self) -> None:
        return None

    @property
    def block_rows(self) -> int:
        return 2**16

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        """Add rows (n, d) of codes with their class codes and weights (0: absent)."""
        missing = block < 0 if weights is None else (block < 0) & (weights > 0.0)[:, None]
        if missing.any():
            row, column = np.argwhere(missing)[0]
            hint = "declare the columns each on its own, or leave out such rows"
            raise CellError(int(row), int(column), None, "is missing, and a joint table needs complete rows", hint)
        if weights is not None:
            used = np.flatnonzero(weights)
            block, codes, weights = block[used], codes[used], weights[used]
        index = codes.astype(np.intp)
        for j, size in enumerate(self._sizes):
            index = index * size + block[:, j]
        self._rows += np.bincount(index, minlength=len(self._rows))
        self._weight += np.bincount(index, weights, minlength=len(self._rows))

    def finish(self) -> CategoryCounts:
        """The counts of the combinations that occur, as the categories of one column."""
        rows, weight = self._rows.reshape(len(self.classes), -1), self._weight.reshape(len(self.classes), -1)
        seen = np.flatnonzero(rows.any(axis=0))
        places = np.unravel_index(seen, self._sizes)
        found = [
            tuple(words[i] for words, i in zip(self.vocabularies, place, strict=True))
            for place in zip(*(part.tolist() for part in places), strict=True)
        ]
        order = sorted(range(len(found)), key=lambda i: label_order(found[i]))
        seen = seen[order]
        vocabulary = tuple(found[i] for i in order)
        return CategoryCounts(self.classes, (vocabulary,), (rows[:, seen],), (weight[:, seen],))


@dataclass(frozen=True, eq=False)
class JointTable(Conditionals):
    """A joint table of several columns of labels. Rows are codes by the vocabularies; -1 is missing or unknown."""

    words: tuple[Vocabulary, ...]
    table: Array  # log p, (classes, categories of the first column, of the second, …)

    @property
    def vocabularies(self) -> tuple[Vocabulary, ...]:
        return self.words

    @property
    def n_classes(self) -> int:
        return len(self.table)

    @property
    def dimension(self) -> int:
        return len(self.words)

    def marginal(self, columns: Index) -> Self:
        """Summed over the other columns."""
        others = tuple(j + 1 for j in range(self.dimension) if j not in columns)
        left = sorted(columns.tolist())
        with np.errstate(divide="ignore"):
            summed = np.log(np.exp(self.table).sum(axis=others)) if others else self.table
        order = [left.index(j) + 1 for j in columns.tolist()]
        return type(self)(tuple(self.words[j] for j in columns), summed.transpose(0, *order))

    @property
    def silent(self) -> bool:
        """Whether the table says nothing."""
        return not self.table.any()

    def log_density(self, rows: AnyArray) -> Array:
        if (rows < 0).any():
            density = np.zeros((self.n_classes, len(rows)))
            for index, observed in self._patterns(rows):
                if len(observed) and not self.silent:
                    density[:, index] = self.marginal(observed).log_density(rows[np.ix_(index, observed)])
            return density
        return np.asarray(self.table[:, *rows.T])

    @staticmethod
    def _patterns(rows: AnyArray) -> Iterator[tuple[Index, Index]]:
        return patterns(np.where(rows < 0, np.nan, rows))

    def explain(self, rows: AnyArray) -> Array:
        """The chain of conditionals in the order of the columns; missing cells contribute 0."""
        terms = np.zeros((len(rows), self.n_classes, self.dimension))
        for index, observed in self._patterns(rows):
            before = np.zeros((self.n_classes, len(index)))
            for i in range(len(observed) if not self.silent else 0):
                known = observed[: i + 1]
                so_far = self.marginal(known).log_density(rows[np.ix_(index, known)])
                with np.errstate(invalid="ignore"):
                    step = np.where(np.isneginf(before), 0.0, so_far - before)
                terms[index, :, observed[i]] = step.T
                before = so_far
        return terms

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Codes of categories."""
        shares = np.exp(self.table[label]).ravel()
        drawn = rng.choice(len(shares), size=n, p=shares / shares.sum())
        return np.column_stack(np.unravel_index(drawn, self.table.shape[1:])).astype(np.float64)
