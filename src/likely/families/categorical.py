"""The categorical family: columns of labels, each on its own, or several together in one table.

p(x | k) is a table of probabilities, one for each category. Natural form: u(x) is the one-hot code of x, θ = log p,
A = 0. Conjugate prior: a Dirichlet distribution. The posterior predictive is categorical with the posterior means.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from likely.errors import CellError, InputError, NoEvidenceError, listed
from likely.families.base import Columns, Conditionals, ExponentialConditionals, Family, LeaveOneOutDensity
from likely.families.estimation import Estimation
from likely.families.joint_table import (
    JointTable,
    JointTableAccumulator,
    check_size,
    groups_of,
    joint_codes,
    log_proportions,
)
from likely.families.priors import Dirichlet, smoothing_of
from likely.numerics.arrays import is_missing
from likely.numerics.special import EPS, log_gamma_ratio
from likely.statistics.category_counts import CategoryCounts, label_order
from likely.typing import AnyArray, Array, Codes, Index, Vocabulary

GROUP_CELLS = 4096  # neighbouring columns are counted and looked up together up to so many cells


class Categorical(Family):
    """Categorical class-conditionals for columns of labels: text, categories, or numbers that stand for something.

    Parameters
    ----------
    smoothing : that many observations of every category before any rows (Laplace's rule is 1, Lidstone's any other),
        so that p = (count + smoothing) / (total + smoothing · categories). None is 0 under "mle", 1 under "map" and ½
        under "bayes".
    prior : instead of smoothing: a `Dirichlet` with one alpha.
    categories : categories to expect beside those that occur: a sequence, or a mapping {column: sequence}.

    Over a tuple of columns it is their full joint table, with every combination of their categories a cell.
    """

    _reads_categories = True

    def __init__(self, smoothing: float | None = None, prior: Dirichlet | None = None, categories: Any = None) -> None:
        self.smoothing = smoothing
        self.prior = prior
        self.categories = categories

    def check(self, estimation: Estimation) -> None:
        smoothing_of(self.smoothing, self.prior, estimation)
        lists = list(self.categories.values()) if isinstance(self.categories, Mapping) else [self.categories]
        for labels in lists:
            if labels is None and not isinstance(self.categories, Mapping):
                continue
            if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
                raise InputError(f"categories={self.categories!r} must be labels, or {{column: labels}}.")
            for label in labels:
                if is_missing(label) or not isinstance(label, Hashable):
                    raise InputError(f"categories={self.categories!r}: {label!r} is no label.")

    def describe(self) -> str:
        return "Categorical"

    def _accumulator(self, classes: AnyArray, columns: Columns) -> CategoryAccumulator | JointTableAccumulator:
        assert columns.vocabularies is not None
        if columns.joint and columns.dimension > 1:
            return JointTableAccumulator(classes, columns.vocabularies, columns.names)
        return CategoryAccumulator(classes, columns.vocabularies)

    def _declared(self, name: str) -> Sequence[Any]:
        if isinstance(self.categories, Mapping):
            return _plain(self.categories.get(name, ()))
        return () if self.categories is None else _plain(self.categories)

    def _expected_codes(self, vocabulary: Vocabulary, name: str) -> Vocabulary:
        """What was observed and what was declared."""
        more = self._declared(name)
        return tuple(sorted({*vocabulary, *more}, key=label_order)) if more else vocabulary

    def _leave_one_out(
        self, statistics: CategoryCounts, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        fitted = self.estimate(statistics, estimation, names)
        s = smoothing_of(self.smoothing, self.prior, estimation)
        if isinstance(fitted, JointTable):
            tables = [self._joint_counts(statistics, names)[1].reshape(fitted.n_classes, -1)]
            silent = [fitted.silent]
        else:
            tables = [self._counts(statistics, j, name)[1] for j, name in enumerate(names)]
            assert isinstance(fitted, CategoricalConditionals)
            silent = [not table.any() for table in fitted.tables]

        ones = [_left_logs(counts, counts.sum(axis=1, keepdims=True), 1.0, s) for counts in tables]

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            result = fitted.log_density(rows)
            alike = bool(np.all(weights == 1.0))
            if isinstance(fitted, JointTable):
                if (rows < 0).any():
                    row, column = np.argwhere(rows < 0)[0]
                    hint = "hand over rows that were learnt"
                    raise CellError(int(row), int(column), None, "is missing or was never seen in training", hint)
                rows = np.ravel_multi_index(tuple(rows.T), fitted.table.shape[1:])[:, None]
            own = np.zeros(len(rows))
            for j, counts in enumerate(tables):
                seen = np.flatnonzero(rows[:, j] >= 0) if not silent[j] else np.zeros(0, dtype=np.intp)
                c, code, w = codes[seen], rows[seen, j], weights[seen]
                if alike:
                    own[seen] += ones[j][c, code]
                else:
                    mass = counts.sum(axis=1)[c]
                    own[seen] += _left_logs(counts[c, code], mass, w, s, counts.shape[1])
            result[codes, np.arange(len(rows))] = own
            return result

        return density

    def _log_likelihood(self, statistics: CategoryCounts, fitted: Conditionals, names: Sequence[str]) -> float:
        if isinstance(fitted, JointTable):
            words, counts = self._joint_counts(statistics, names)
            pairs = [(counts, fitted.table)]
        else:
            assert isinstance(fitted, CategoricalConditionals)
            found = [self._counts(statistics, j, name) for j, name in enumerate(names)]
            words = tuple(some for some, _ in found)
            pairs = [(counts, table) for (_, counts), table in zip(found, fitted.tables, strict=True)]
        if words != fitted.vocabularies:
            raise NoEvidenceError("the rows have other categories")
        with np.errstate(invalid="ignore"):
            return float(sum(np.where(counts > 0.0, counts * table, 0.0).sum() for counts, table in pairs))

    def _n_parameters(self, statistics: CategoryCounts, names: Sequence[str]) -> int:
        if len(names) > statistics.dimension:
            cells = [int(np.prod(self._joint_counts(statistics, names)[1].shape[1:]))]
        else:
            cells = [len(self._counts(statistics, j, name)[0]) for j, name in enumerate(names)]
        return len(statistics.classes) * sum(max(count - 1, 0) for count in cells)

    def _log_evidence(self, statistics: CategoryCounts, names: Sequence[str]) -> float:
        s = smoothing_of(self.smoothing, self.prior, Estimation.BAYES)
        if len(names) > statistics.dimension:
            tables = [self._joint_counts(statistics, names)[1].reshape(len(statistics.classes), -1)]
        else:
            tables = [self._counts(statistics, j, name)[1] for j, name in enumerate(names)]
        total = 0.0
        for counts, observed in zip(tables, statistics.vocabularies, strict=True):
            if len(observed) > 1:
                mass = np.full(len(counts), s * counts.shape[1])
                total += float(log_gamma_ratio(np.full_like(counts, s), counts).sum())
                total -= float(log_gamma_ratio(mass, counts.sum(axis=1)).sum())
        return total

    def _counts(self, statistics: CategoryCounts, j: int, name: str) -> tuple[Vocabulary, Array]:
        """The categories of a column, observed or declared, and the weight of each, (classes, categories)."""
        observed = statistics.vocabularies[j]
        vocabulary = self._expected_codes(observed, name)
        place = {label: code for code, label in enumerate(vocabulary)}
        counts = np.zeros((len(statistics.classes), len(vocabulary)))
        counts[:, [place[label] for label in observed]] = statistics.weight[j]
        return vocabulary, counts

    def _smooths(self, estimation: Estimation) -> bool:
        return smoothing_of(self.smoothing, self.prior, estimation) > 0.0

    def _log_prior(self, statistics: CategoryCounts, fitted: Conditionals) -> float:
        s = smoothing_of(self.smoothing, self.prior, Estimation.MAP)
        tables = fitted.tables if isinstance(fitted, CategoricalConditionals) else (fitted.table,)  # type: ignore[attr-defined]
        return s * float(sum(table.sum() for table in tables)) if s else 0.0

    def estimate(self, statistics: CategoryCounts, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        s = smoothing_of(self.smoothing, self.prior, estimation)
        if isinstance(self.categories, Mapping) and not any(name in self.categories for name in names):
            raise InputError(f"categories={self.categories!r} names none of the columns {listed(names)}.")
        if len(names) > statistics.dimension:
            return self._joint_table(statistics, s, estimation, names)
        tables, words = [], []
        for j, observed in enumerate(statistics.vocabularies):
            vocabulary, counts = self._counts(statistics, j, names[j])
            if not observed or (
                len(observed) == 1 and estimation == Estimation.BAYES
            ):  # one value in all rows says nothing
                tables.append(np.zeros_like(counts))
            else:
                tables.append(log_proportions(counts, s, statistics.classes, names[j]))
            words.append(vocabulary)
        return CategoricalConditionals(tuple(words), tuple(tables), len(statistics.classes))

    def _joint_table(
        self, statistics: CategoryCounts, s: float, estimation: Estimation, names: Sequence[str]
    ) -> Conditionals:
        """The full joint table of all columns."""
        (combinations,) = statistics.vocabularies
        words, counts = self._joint_counts(statistics, names)
        if len(combinations) <= 1 and estimation == Estimation.BAYES:
            return JointTable(words, np.zeros_like(counts))
        flat = log_proportions(counts.reshape(len(counts), -1), s, statistics.classes, ", ".join(names))
        return JointTable(words, flat.reshape(counts.shape))

    def _joint_counts(self, statistics: CategoryCounts, names: Sequence[str]) -> tuple[tuple[Vocabulary, ...], Array]:
        """The categories of every column, and the weight of their combinations, (classes, categories, ...)."""
        (combinations,), (weight,) = statistics.vocabularies, statistics.weight
        observed = [tuple(sorted({c[j] for c in combinations}, key=label_order)) for j in range(len(names))]
        words = tuple(self._expected_codes(part, name) for part, name in zip(observed, names, strict=True))
        sizes = [len(part) for part in words]
        check_size(sizes, names)
        counts = np.zeros((len(statistics.classes), *sizes))
        places = [{label: code for code, label in enumerate(part)} for part in words]
        for i, combination in enumerate(combinations):
            cell: Any = (slice(None), *(place[label] for place, label in zip(places, combination, strict=True)))
            counts[cell] = weight[:, i]
        return words, counts


def _plain(labels: Iterable[Any]) -> list[Any]:
    """Labels as Python's own objects."""
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def _left_logs(counts: Array, total: Array, weight: Array | float, s: float, size: int | None = None) -> Array:
    """log (count − w + s) / (total − w + s · categories): shares without a row of weight w."""
    size = counts.shape[1] if size is None else size
    left, rest = (np.where(part <= 8.0 * EPS * total, 0.0, part) for part in (counts - weight, total - weight))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(left + s > 0.0, np.log(left + s) - np.log(rest + s * size), -np.inf)


@dataclass(slots=True, eq=False)
class CategoryAccumulator:
    """Counts codes of categories over one row block after another; -1 is a missing cell."""

    classes: AnyArray
    vocabularies: tuple[Vocabulary, ...]
    _sizes: list[int] = field(init=False)
    _groups: list[list[int]] = field(init=False)
    _rows: list[AnyArray] = field(init=False)
    _weight: list[Array] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._sizes = [len(words) + 1 for words in self.vocabularies]  # the first place is for missing cells
        self._groups = groups_of(self._sizes, max(GROUP_CELLS // max(len(self.classes), 1), 1))
        self._rows = [np.zeros(self._cells(group), dtype=np.int64) for group in self._groups]

    def _cells(self, group: Sequence[int]) -> int:
        return len(self.classes) * int(np.prod([self._sizes[j] for j in group]))

    @property
    def groups(self) -> None:
        return None

    @property
    def block_rows(self) -> int:
        return max(2**18 // max(len(self.vocabularies), 1), 1024)

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        """Add rows (n, d) of codes with their class codes and weights (0: absent)."""
        if weights is not None:
            used = np.flatnonzero(weights)
            block, codes, weights = block[used], codes[used], weights[used]
            if self._weight is None:
                self._weight = [counted.astype(np.float64) for counted in self._rows]
        for g, group in enumerate(self._groups):
            index = joint_codes(block, group, self._sizes, codes)
            counted = np.bincount(index, minlength=len(self._rows[g]))
            self._rows[g] += counted
            if self._weight is not None:
                self._weight[g] += counted if weights is None else np.bincount(index, weights, len(self._rows[g]))

    def finish(self) -> CategoryCounts:
        """The counts of all blocks so far."""
        rows = list(self._columns(self._rows))
        weight = [part.astype(np.float64) for part in rows]
        if self._weight is not None:
            weight = list(self._columns(self._weight))
        words = list(self.vocabularies)
        for j, part in enumerate(rows):
            seen = np.flatnonzero(part.any(axis=0))
            if len(seen) < len(words[j]):  # what occurs in no row is not a category
                words[j] = tuple(words[j][i] for i in seen)
                rows[j], weight[j] = part[:, seen], weight[j][:, seen]
        return CategoryCounts(self.classes, tuple(words), tuple(rows), tuple(weight))

    def _columns(self, counted: Sequence[AnyArray]) -> Iterator[AnyArray]:
        """The counts of every column, (classes, categories), from those of the groups."""
        for group, cells in zip(self._groups, counted, strict=True):
            table = cells.reshape(len(self.classes), *(self._sizes[j] for j in group))
            for i in range(len(group)):
                others = tuple(axis for axis in range(1, len(group) + 1) if axis != i + 1)
                yield table.sum(axis=others)[:, 1:]


@dataclass(frozen=True, eq=False)
class CategoricalConditionals(ExponentialConditionals):
    """Columns of labels with plugged-in tables. Rows are codes by the vocabularies; -1 is missing or unknown."""

    words: tuple[Vocabulary, ...]
    tables: tuple[Array, ...]  # log p, (classes, categories) for each column
    classes: int

    @property
    def vocabularies(self) -> tuple[Vocabulary, ...]:
        return self.words

    @property
    def n_classes(self) -> int:
        return self.classes

    @property
    def dimension(self) -> int:
        return len(self.words)

    @property
    def width(self) -> int:
        return 2 * self.dimension + 3 * self.n_classes

    def notes(self, names: Sequence[str]) -> list[str]:
        flat = [name for name, table in zip(names, self.tables, strict=True) if not table.any()]
        return [f"no spread, no evidence: {listed(flat)}"] if flat else []

    @cached_property
    def _lookup(self) -> tuple[list[int], list[list[int]], list[Array]]:
        """Neighbouring columns together: their sizes, the groups, and tables (cells, classes) with 0 for missing."""
        sizes = [table.shape[1] + 1 for table in self.tables]
        groups, tables = groups_of(sizes, GROUP_CELLS), []
        for group in groups:
            total = np.zeros((self.n_classes, 1))
            for j in group:
                wide = np.pad(self.tables[j], ((0, 0), (1, 0)))
                total = (total[:, :, None] + wide[:, None, :]).reshape(self.n_classes, -1)
            tables.append(np.ascontiguousarray(total.T))
        return sizes, groups, tables

    @cached_property
    def _relative(self) -> list[Array] | None:
        """The same tables minus that of the first class; None where that rules something out."""
        tables = self._lookup[2]
        if not all(np.all(np.isfinite(table[:, 0])) for table in tables):
            return None
        return [table - table[:, :1] for table in tables]

    def log_density(self, rows: AnyArray) -> Array:
        return self._added(rows, self._lookup[2])

    def scores(self, rows: AnyArray) -> Array:
        relative = self._relative
        return self.log_density(rows) if relative is None else self._added(rows, relative)

    def _added(self, rows: AnyArray, tables: Sequence[Array]) -> Array:
        """Sums over the columns of what tables (cells, classes) have for their labels, (classes, n)."""
        sizes, groups, _ = self._lookup
        total, more = np.zeros((len(rows), self.n_classes)), np.empty((len(rows), self.n_classes))
        for group, table in zip(groups, tables, strict=True):
            index = joint_codes(rows, group, sizes)
            np.take(table, index, axis=0, mode="clip", out=more)
            total += more
        return np.ascontiguousarray(total.T)

    def explain(self, rows: AnyArray) -> Array:
        terms = np.zeros((len(rows), self.n_classes, self.dimension))
        for j, table in enumerate(self.tables):
            terms[:, :, j] = np.pad(table, ((0, 0), (1, 0)))[:, rows[:, j] + 1].T
        return terms

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Codes of categories."""
        drawn = np.zeros((n, self.dimension))
        for j, table in enumerate(self.tables):
            shares = np.exp(table[label])
            drawn[:, j] = rng.choice(len(shares), size=n, p=shares / shares.sum()) if len(shares) else -1
        return drawn

    def marginal(self, columns: Index) -> Self:
        index = columns.tolist()
        return type(self)(tuple(self.words[j] for j in index), tuple(self.tables[j] for j in index), self.n_classes)

    def natural_parameters(self) -> Array:
        return np.hstack([np.zeros((self.n_classes, 0)), *self.tables])

    def sufficient_statistics(self, rows: AnyArray) -> Array:
        hot = [rows[:, j, None] == np.arange(table.shape[1]) for j, table in enumerate(self.tables)]
        return np.hstack([np.zeros((len(rows), 0)), *hot]).astype(np.float64)

    def log_partition(self) -> Array:
        return np.zeros(self.n_classes)

    def log_carrier(self, rows: AnyArray) -> Array:
        return np.zeros(len(rows))
