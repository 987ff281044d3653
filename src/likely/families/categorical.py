"""The categorical family: columns of categories, independent or in one joint table.

p(x | k) is a table with a probability for each category. Natural form: u(x) is the one-hot code of x, θ = log p, A = 0,
h = 1. Conjugate prior: a Dirichlet distribution, as pseudo-counts. The posterior predictive is categorical with the
posterior means.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from likely.errors import CellError, InputError, NoEvidenceError, listed
from likely.families.base import Columns, Conditionals, ExponentialConditionals, Family, LeaveOneOutDensity, by_name
from likely.families.category_tables import (
    GROUP_CELLS,
    CategoryAccumulator,
    CategoryDensities,
    combined_codes,
    draw_codes,
    group_columns,
    log_proportions,
    log_proportions_without,
)
from likely.families.estimation import Estimation
from likely.families.given import check_given_names, check_sums, given_array
from likely.families.joint_table import JointTable, JointTableAccumulator, check_size
from likely.families.parameters import Parameter, proportion_errors
from likely.families.priors import Dirichlet, smoothing_of, smoothing_remedy
from likely.numerics.arrays import is_missing
from likely.numerics.caches import cached_property
from likely.numerics.expressions import Cell, Expression, pick, total
from likely.numerics.special import log_gamma_ratio
from likely.statistics.category_counts import CategoryCounts
from likely.statistics.counts import label_order, plain_label
from likely.typing import AnyArray, Array, CategoriesLike, Codes, Index, SmoothingLike, Vocabulary


class Categorical(Family):
    """Categorical distribution for columns of text, categories or numbers that denote categories.

    Each column is independent within a class and has one probability per category and class. Declared for a tuple of
    columns, as in ``families={("a", "b"): Categorical()}``, it is their joint table, with a probability for every
    combination of their categories.

    Parameters
    ----------
    smoothing : float or None, default=None
        Pseudo-counts of every category in every class, so that p = (count + smoothing) / (total + smoothing ·
        categories). 1 is Laplace smoothing, other values are Lidstone smoothing. None is 0 under
        ``estimation="mle"``, 1 under "map" and 0.5 under "bayes".
    prior : Dirichlet or None, default=None
        A `Dirichlet` with one alpha, instead of `smoothing`, under "map" and "bayes". None is the prior that
        `smoothing` describes.
    categories : sequence, mapping of column to sequence, or None, default=None
        Categories to expect in addition to those that occur in the training rows, for all columns or by column.

    See Also
    --------
    Bernoulli : Columns of 0 and 1.
    Multinomial : Counts of categories in each row.

    Examples
    --------
    >>> from likely import Categorical, NaiveBayes
    >>> X = [["red", "round"], ["red", "long"], ["green", "long"], ["green", "long"]]
    >>> model = NaiveBayes(Categorical(smoothing=1.0), calibration=None).fit(X, ["apple", "apple", "pear", "pear"])
    >>> model.predict_proba([["red", "long"]]).round(3)
    array([[0.667, 0.333]])
    """

    _reads_categories = True

    def __init__(
        self,
        smoothing: SmoothingLike = None,
        prior: Dirichlet | None = None,
        categories: CategoriesLike = None,
    ) -> None:
        self.smoothing = smoothing
        self.prior = prior
        self.categories = categories

    def check(self, estimation: Estimation) -> None:
        self._pseudo_count(estimation)
        declared = () if self.categories is None else self.categories
        for categories in declared.values() if isinstance(declared, Mapping) else [declared]:
            if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
                raise InputError(
                    f"categories={self.categories!r} must be a sequence of categories, or {{column: sequence}}."
                )
            for category in categories:
                if is_missing(category) or not isinstance(category, Hashable):
                    raise InputError(f"categories={self.categories!r}: {category!r} is not a category.")

    def _with_named_columns(self, names: Sequence[str]) -> Categorical:
        if not isinstance(self.categories, Mapping):
            return self
        return Categorical(self.smoothing, self.prior, by_name("categories", self.categories, names))

    def _pseudo_count(self, estimation: Estimation) -> float:
        """Pseudo-counts of every category."""
        return smoothing_of(self.smoothing, self.prior, estimation)

    def _smooths(self, estimation: Estimation) -> bool:
        return self._pseudo_count(estimation) > 0.0

    def _accumulator(self, classes: AnyArray, columns: Columns) -> CategoryAccumulator | JointTableAccumulator:
        assert columns.vocabularies is not None
        if columns.joint and columns.dimension > 1:
            return JointTableAccumulator(classes, columns.vocabularies, columns.names)
        return CategoryAccumulator(classes, columns.vocabularies)

    def _parameters(
        self, statistics: CategoryCounts, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        words, tables = self._tables(statistics, names)
        joint = isinstance(fitted, JointTable)
        columns, values = ([", ".join(names)], [list(itertools.product(*words))]) if joint else (list(names), words)
        found = []
        for column, categories, counts, logs in zip(columns, values, tables, _log_tables(fitted), strict=True):
            errors = proportion_errors(counts + self._pseudo_count(estimation), estimation)
            if logs.any():  # constant columns are ignored
                found += [
                    Parameter(column, f"probability of {category!r}", np.exp(logs[:, v]), errors[:, v])
                    for v, category in enumerate(categories)
                ]
        return found

    def _given(self, values: Mapping[str, Any], size: int, names: Sequence[str]) -> Conditionals:
        check_given_names("Categorical", values, ["categories", "probability"])
        if len(names) != 1:
            raise InputError(f"Categorical, columns {listed(names)}: give the parameters of one column after another.")
        words = tuple(values["categories"])
        table = given_array("probability", values["probability"])
        if table.shape != (size, len(words)) or len(set(words)) != len(words) or not words:
            raise InputError(
                f"Categorical, column {names[0]!r}: probability has the shape {table.shape}, and {size} classes and "
                f"{len(words)} distinct categories need ({size}, {len(words)})."
            )
        check_sums(f"Categorical, column {names[0]!r}", "probability", table)
        with np.errstate(divide="ignore"):
            return CategoricalConditionals((words,), (np.log(table),), size)

    def _given_table(self, fitted: Any, names: Sequence[str]) -> list[Parameter]:
        pairs = enumerate(fitted.words[0])
        return [Parameter(names[0], f"probability of {word!r}", np.exp(fitted.tables[0][:, v])) for v, word in pairs]

    def estimate(self, statistics: CategoryCounts, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        if isinstance(self.categories, Mapping) and not any(name in self.categories for name in names):
            raise InputError(f"categories={self.categories!r} names none of the columns {listed(names)}.")
        s, classes, found = self._pseudo_count(estimation), statistics.classes, []
        remedy = smoothing_remedy(self.smoothing, self.prior)
        words, tables = self._tables(statistics, names)
        joint = _is_joint(statistics, names)
        columns = [", ".join(names)] if joint else names
        for column, observed, counts in zip(columns, statistics.vocabularies, tables, strict=True):
            constant = not observed or (len(observed) == 1 and estimation == Estimation.BAYES)
            found.append(np.zeros_like(counts) if constant else log_proportions(counts, s, classes, column, remedy))
        if joint:
            return JointTable(words, found[0].reshape(-1, *map(len, words)))
        return CategoricalConditionals(words, tuple(found), len(classes))

    def _expected_categories(self, observed: Vocabulary, name: str) -> Vocabulary:
        """Observed and declared categories of a column, sorted."""
        declared = self.categories.get(name, ()) if isinstance(self.categories, Mapping) else self.categories
        more = [] if declared is None else [plain_label(category) for category in declared]
        return tuple(sorted({*observed, *more}, key=label_order)) if more else observed

    def _joint_counts(self, statistics: CategoryCounts, names: Sequence[str]) -> tuple[tuple[Vocabulary, ...], Array]:
        """The categories of every column, and the weights of their combinations, (classes, combinations)."""
        (combinations,), (weight,) = statistics.vocabularies, statistics.weight
        observed = [tuple(sorted({c[j] for c in combinations}, key=label_order)) for j in range(len(names))]
        words = tuple(map(self._expected_categories, observed, names))
        sizes = [len(part) for part in words]
        check_size(sizes, names)
        counts = np.zeros((len(statistics.classes), *sizes))
        places = [{category: code for code, category in enumerate(part)} for part in words]
        for i, combination in enumerate(combinations):
            cell: Any = (slice(None), *(place[value] for place, value in zip(places, combination, strict=True)))
            counts[cell] = weight[:, i]
        return words, counts.reshape(len(counts), -1)

    def _tables(
        self, statistics: CategoryCounts, names: Sequence[str]
    ) -> tuple[tuple[Vocabulary, ...], tuple[Array, ...]]:
        """Categories of all columns, and counts of each table, (classes, cells): a single table where it is joint."""
        if _is_joint(statistics, names):
            words, counts = self._joint_counts(statistics, names)
            return words, (counts,)
        words = tuple(map(self._expected_categories, statistics.vocabularies, names))
        return words, statistics.align(statistics.classes, words).weight

    def _log_prior(self, statistics: CategoryCounts, fitted: Conditionals) -> float:
        s = self._pseudo_count(Estimation.MAP)
        return s * float(sum(table.sum() for table in _log_tables(fitted))) if s else 0.0

    def _log_likelihood(self, statistics: CategoryCounts, fitted: Conditionals, names: Sequence[str]) -> float:
        words, tables = self._tables(statistics, names)
        if words != fitted.vocabularies:
            raise NoEvidenceError("the rows have other categories")
        pairs = zip(tables, _log_tables(fitted), strict=True)
        with np.errstate(invalid="ignore"):
            return float(sum(np.where(counts > 0.0, counts * table, 0.0).sum() for counts, table in pairs))

    def _n_parameters(self, statistics: CategoryCounts, names: Sequence[str]) -> int:
        _, tables = self._tables(statistics, names)
        return len(statistics.classes) * sum(max(counts.shape[1] - 1, 0) for counts in tables)

    def _log_evidence(self, statistics: CategoryCounts, names: Sequence[str]) -> float:
        """Σ log Γ(count + s)/Γ(s), less the same of the totals: Dirichlet-categorical."""
        s, total = self._pseudo_count(Estimation.BAYES), 0.0
        for counts, observed in zip(self._tables(statistics, names)[1], statistics.vocabularies, strict=True):
            if len(observed) > 1:
                concentration = np.full(len(counts), s * counts.shape[1])
                total += float(log_gamma_ratio(np.full_like(counts, s), counts).sum())
                total -= float(log_gamma_ratio(concentration, counts.sum(axis=1)).sum())
        return total

    def _leave_one_out(
        self, statistics: CategoryCounts, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        s = self._pseudo_count(estimation)
        _, tables = self._tables(statistics, names)
        ignored = [not table.any() for table in _log_tables(fitted)]

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            result = fitted.log_density(rows)
            cells = _cell_codes(fitted, rows) if isinstance(fitted, JointTable) else rows
            terms = _terms_without(tables, cells, codes, weights, s)
            result[codes, np.arange(len(rows))] = np.where(ignored, 0.0, terms).sum(axis=1)
            return result

        return density

    def _held_out_terms(
        self, statistics: CategoryCounts, rows: AnyArray, codes: Codes, weights: Array, whole: bool
    ) -> Array:
        return _terms_without(statistics.weight, rows, codes, weights, self._pseudo_count(Estimation.BAYES))


def _terms_without(tables: Sequence[Array], rows: AnyArray, codes: Codes, weights: Array, s: float) -> Array:
    """log p of each value under the counts of its class without its row, (n, d); 0 for missing values."""
    terms, unit = np.zeros(rows.shape), bool(np.all(weights == 1.0))
    for j, counts in enumerate(tables):
        seen = np.flatnonzero(rows[:, j] >= 0)
        c, code, total = codes[seen], rows[seen, j], counts.sum(axis=1)
        if unit and counts.size <= len(seen):  # a table of all categories takes less time
            terms[seen, j] = log_proportions_without(counts, total[:, None], 1.0, s)[c, code]
        else:
            terms[seen, j] = log_proportions_without(counts[c, code], total[c], weights[seen], s, counts.shape[1])
    return terms


def _is_joint(statistics: CategoryCounts, names: Sequence[str]) -> bool:
    """Whether the statistics are those of one joint table of several columns."""
    return len(names) > statistics.dimension


def _log_tables(fitted: Conditionals) -> tuple[Array, ...]:
    """The tables of log-probabilities, (classes, cells) each."""
    if isinstance(fitted, JointTable):
        return (fitted.table.reshape(fitted.n_classes, -1),)
    assert isinstance(fitted, CategoricalConditionals)
    return fitted.tables


def _cell_codes(fitted: JointTable, rows: AnyArray) -> AnyArray:
    """The cell of a joint table that each row belongs to, (n, 1)."""
    if (rows < 0).any():
        row, column = np.argwhere(rows < 0)[0]
        problem, hint = "is missing or did not occur in training", "pass training rows"
        raise CellError(int(row), int(column), None, problem, hint)
    return np.ravel_multi_index(tuple(rows.T), fitted.table.shape[1:])[:, None]


@dataclass(frozen=True, eq=False)
class CategoricalConditionals(CategoryDensities, ExponentialConditionals):
    """Categorical distributions with plug-in tables. Rows are codes of categories; −1 is missing or unknown."""

    tables: tuple[Array, ...]  # log p, (classes, categories) for each column
    classes: int

    @property
    def n_classes(self) -> int:
        return self.classes

    @property
    def width(self) -> int:
        return 2 * self.dimension + 3 * self.n_classes

    def ignored_columns(self) -> Index:
        return np.flatnonzero([not table.any() for table in self.tables])

    @cached_property
    def _lookup(self) -> tuple[list[int], list[list[int]], list[Array]]:
        """Sizes of columns, groups of neighboring columns, and their tables (cells, classes), 0 for missing values."""
        sizes = [table.shape[1] + 1 for table in self.tables]
        groups, tables = group_columns(sizes, GROUP_CELLS), []
        for group in groups:
            total = np.zeros((self.n_classes, 1))
            for j in group:
                wide = np.pad(self.tables[j], ((0, 0), (1, 0)))
                total = (total[:, :, None] + wide[:, None, :]).reshape(self.n_classes, -1)
            tables.append(np.ascontiguousarray(total.T))
        return sizes, groups, tables

    @cached_property
    def _relative(self) -> list[Array] | None:
        """The same tables minus that of the first class; None if that has a probability of 0."""
        tables = self._lookup[2]
        if not all(np.all(np.isfinite(table[:, 0])) for table in tables):
            return None
        return [table - table[:, :1] for table in tables]

    def log_density(self, rows: AnyArray) -> Array:
        return self._sum_tables(rows, self._lookup[2])

    def scores(self, rows: AnyArray) -> Array:
        relative = self._relative
        return self.log_density(rows) if relative is None else self._sum_tables(rows, relative)

    def _sum_tables(self, rows: AnyArray, tables: Sequence[Array]) -> Array:
        """Σ over the groups of the entries of tables (cells, classes) for the categories of rows, (classes, n)."""
        sizes, groups, _ = self._lookup
        total, more = np.zeros((len(rows), self.n_classes)), np.empty((len(rows), self.n_classes))
        for group, table in zip(groups, tables, strict=True):
            index = combined_codes(rows, group, sizes)
            np.take(table, index, axis=0, mode="clip", out=more)
            total += more
        return np.ascontiguousarray(total.T)

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        """Σ of the entries of the tables; that of missing and unknown categories is 0."""
        return [
            total(
                [
                    pick(cell.value, [0.0, *table[k].tolist()])
                    for cell, table in zip(cells, self.tables, strict=True)
                    if table.any()
                ]
            )
            for k in range(self.n_classes)
        ]

    def explain(self, rows: AnyArray) -> Array:
        return np.stack([self.class_terms(rows, k) for k in range(self.n_classes)], axis=1)

    def class_terms(self, rows: AnyArray, label: int) -> Array:
        terms = np.zeros(rows.shape)
        for j, table in enumerate(self.tables):
            terms[:, j] = np.append(table[label], 0.0)[rows[:, j]]  # the last entry is that of missing values
        return terms

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Codes of categories."""
        drawn = np.zeros((n, self.dimension))
        for j, table in enumerate(self.tables):
            drawn[:, j] = draw_codes(table[label], n, rng) if table.shape[1] else -1
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
