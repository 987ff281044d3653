"""The pairs family: a joint density of categorical columns, an average of models in which one column is the parent.

p(x | k) is the average over parent columns i of p(x_i | k) · Π_{j≠i} p(x_j | x_i, k). The estimates and the arithmetic
are in `pair_tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from likely.errors import InputError, listed
from likely.families.base import Columns, Conditionals, Family, LeaveOneOutDensity
from likely.families.category_tables import CategoryDensities, explain_in_order
from likely.families.estimation import Estimation
from likely.families.pair_tables import (
    PairEstimates,
    contributions,
    count_pairs,
    log_densities,
    offsets_of,
    slots_of,
)
from likely.families.parameters import Parameter
from likely.numerics.caches import cached_property
from likely.statistics.accumulator import RowAccumulator
from likely.statistics.category_counts import PairCounts
from likely.typing import AnyArray, Array, Codes, Index, Vocabulary

LARGEST_TABLE = 2**23  # pairs of categories in all classes
LEAST_SMOOTHING, MOST_SMOOTHING = 1e-6, 1e6


class Pairs(Family):
    """Averaged one-dependence estimator of categorical columns, which counts all pairs of columns.

    Declare it for a tuple of columns, as in ``families={("a", "b", "c"): Pairs()}``. The density is the average, over
    all columns i as the parent, of p(x_i | class) · Π_{j≠i} p(x_j | x_i, class). It needs the counts of pairs only. A
    joint table (`Categorical` for a tuple of columns) has a probability for each combination of categories instead, and
    needs many more rows. Columns with a single category are ignored.

    Probabilities are posterior means under Dirichlet priors with `smoothing` pseudo-observations in total. The prior
    mean of p(x_j | x_i, class) is p(x_j | class). The prior mean of p(x_j | class) is the proportion of x_j in all
    classes together, which is itself smoothed towards the uniform distribution. The family requires
    ``estimation="bayes"``.

    Parameters
    ----------
    smoothing : float, default=2.0
        Total number of pseudo-observations of each distribution, from 1e-6 to 1e6.

    See Also
    --------
    Categorical : Independent columns, or the joint table of all combinations.

    Notes
    -----
    *Missing values.* Pairs with a missing value are not counted. The density of a row with missing values is the same
    average over its observed columns. Omitting a missing child j is exact: p(x_j | x_i, class) sums to 1 over x_j. The
    exact term of a missing parent i would be a sum over its categories, Σ p(x_i | class) · Π_j p(x_j | x_i, class).
    This term is omitted from the average instead, which costs less and needs only pairs of observed values. The result
    is a proper density of the observed columns, the same as that of a fit to these columns alone, but only approximates
    the marginal of the density of all columns. Marginal densities of some columns are defined in the same way.

    *Leave-one-out.* A row is removed from the counts of its class, up to a weight of 1. The proportions of all classes
    together, which are the prior mean, are held fixed.

    *Explanations.* With the terms t_i of the m parents and ρ = softmax(t), log p(x | class) = Σ ρ_i·(t_i − log ρ_i) −
    log m. The term of parent i is attributed to column i, except that ρ_i·log p(x_j | x_i, class) is divided equally
    between the columns i and j.

    References
    ----------
    Webb, G. I., Boughton, J. R. and Wang, Z. (2005). Not so naive Bayes: aggregating one-dependence estimators.
    Machine Learning, 58, 5-24.

    Examples
    --------
    The classes differ only in the dependence between the two columns, which `NaiveBayes` does not model:

    >>> from likely import GenerativeClassifier, Pairs
    >>> X = [["low", "short"], ["high", "long"], ["low", "long"], ["high", "short"]] * 5
    >>> y = ["same", "same", "opposite", "opposite"] * 5
    >>> model = GenerativeClassifier({(0, 1): Pairs()}).fit(X, y)
    >>> model.predict([["high", "long"], ["high", "short"]])
    array(['same', 'opposite'], dtype='<U8')
    """

    _reads_categories = True
    _joint = True

    def __init__(self, smoothing: float = 2.0) -> None:
        self.smoothing = smoothing

    def check(self, estimation: Estimation) -> None:
        s = self.smoothing
        if isinstance(s, bool) or not isinstance(s, Real) or not LEAST_SMOOTHING <= float(s) <= MOST_SMOOTHING:
            raise InputError(f"smoothing={s!r} must be a number from {LEAST_SMOOTHING:g} to {MOST_SMOOTHING:g}.")
        if estimation != Estimation.BAYES:
            raise InputError(
                f"Pairs has posterior means only, not estimation={estimation.value!r}. Use estimation='bayes', or "
                "Categorical() for the joint table of these columns."
            )

    def _accumulator(self, classes: AnyArray, columns: Columns) -> PairAccumulator:
        assert columns.vocabularies is not None
        return PairAccumulator(classes, columns.vocabularies, columns.names)

    def _estimates(self, statistics: PairCounts, names: Sequence[str]) -> PairEstimates:
        sizes = [len(words) for words in statistics.vocabularies]
        check_size(sizes, len(statistics.classes), names)
        offsets = offsets_of(sizes)
        counts = np.zeros((len(statistics.classes), offsets[-1], offsets[-1]))
        places = np.delete(np.arange(offsets[-1]), offsets[:-1])
        counts[:, places[:, None], places] = statistics.weight
        return PairEstimates.of(counts, offsets, float(self.smoothing))

    def estimate(self, statistics: PairCounts, estimation: Estimation, names: Sequence[str]) -> PairConditionals:
        return PairConditionals(statistics.vocabularies, self._estimates(statistics, names).logs())

    def _parameters(
        self, statistics: PairCounts, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        """p(x_j | class) of the columns that vary, with the standard deviations of their Dirichlet posteriors."""
        estimates, found = self._estimates(statistics, names), []
        probability, offsets = estimates.single_probabilities(), estimates.offsets
        for j, words in enumerate(statistics.vocabularies):
            rows = estimates.totals[:, j] + float(self.smoothing)
            for slot, category in enumerate(words if estimates.parents[j] else (), start=int(offsets[j]) + 1):
                p = probability[:, slot]
                error = np.sqrt(p * (1.0 - p) / (rows + 1.0))
                found.append(Parameter(names[j], f"probability of {category!r}", p, error))
        return found

    def _leave_one_out(
        self, statistics: PairCounts, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        estimates = self._estimates(statistics, names)

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            result = fitted.log_density(rows)
            slots = slots_of(rows, estimates.offsets)
            result[codes, np.arange(len(rows))] = estimates.left_out(slots, codes, weights)
            return result

        return density


def check_size(sizes: Sequence[int], n_classes: int, names: Sequence[str]) -> None:
    """Raise if the table of pairs would be too large."""
    pairs = n_classes * sum(sizes) ** 2
    if pairs > LARGEST_TABLE:
        raise InputError(
            f"Columns {listed(names)} have {sum(sizes):,} categories, which make {pairs:,} pairs in {n_classes} "
            f"classes, more than {LARGEST_TABLE:,}. Declare fewer columns together, merge rare categories, or use "
            "Categorical() for each column."
        )


@dataclass(slots=True, eq=False)
class PairAccumulator(RowAccumulator):
    """Counts pairs of categories over row blocks; −1 is a missing value."""

    classes: AnyArray
    vocabularies: tuple[Vocabulary, ...]
    names: tuple[str, ...]
    _total: PairCounts = field(init=False)

    def __post_init__(self) -> None:
        check_size([len(words) for words in self.vocabularies], len(self.classes), self.names)
        self._total = PairCounts.empty(self.classes, self.vocabularies)

    @property
    def block_rows(self) -> int:
        return max(2**18 // max(len(self.vocabularies), 1), 1024)

    def _add(self, block: AnyArray, codes: Codes, weights: Array | None) -> None:
        rows = self._counted(block, codes, None)
        weight = rows if weights is None else self._counted(block, codes, weights)
        counted = PairCounts(self.classes, self.vocabularies, rows.astype(np.int64), weight)
        self._total = self._total + counted

    def _counted(self, block: AnyArray, codes: Codes, weights: Array | None) -> Array:
        offsets = offsets_of([len(words) for words in self.vocabularies])
        counts = count_pairs(slots_of(block, offsets), codes, len(self.classes), offsets, weights)
        return np.delete(np.delete(counts, offsets[:-1], axis=1), offsets[:-1], axis=2)

    def finish(self) -> PairCounts:
        """The counts of all blocks so far; categories without any rows are dropped."""
        return self._total.compact()


@dataclass(frozen=True, eq=False)
class PairConditionals(CategoryDensities):
    """Averaged one-dependence densities. Rows are codes of categories; −1 is a missing or unknown category."""

    table: Array  # log-probabilities, (slots, slots, classes), see `pair_tables`

    not_exported: ClassVar[str] = "Pairs has no expression. Declare Categorical() for each column."

    @property
    def n_classes(self) -> int:
        return int(self.table.shape[2])

    @property
    def width(self) -> int:
        return self.dimension * (self.n_classes + 2)

    @cached_property
    def _offsets(self) -> Index:
        return offsets_of([len(words) for words in self.words])

    @cached_property
    def _parents(self) -> Index:
        """The columns that vary."""
        return np.flatnonzero([len(words) > 1 for words in self.words])

    @cached_property
    def _single(self) -> Array:
        """log p(x_j | class), (slots, classes); 0 for missing values and columns that do not vary."""
        single = np.einsum("ssk->sk", self.table)
        return np.where(np.isfinite(single), single, 0.0)

    def ignored_columns(self) -> Index:
        return np.setdiff1d(np.arange(self.dimension), self._parents)

    def log_density(self, rows: AnyArray) -> Array:
        return log_densities(slots_of(rows, self._offsets), self.table, self._offsets)

    def explain(self, rows: AnyArray) -> Array:
        """Contributions of the columns, with the terms of pairs divided between both columns; 0 for missing values."""
        return contributions(slots_of(rows, self._offsets), self.table, self._offsets)

    def explain_sequential(self, rows: AnyArray) -> Array:
        """log p(x_1, …, x_j | class) − log p(x_1, …, x_(j−1) | class) of each column in their order."""
        return explain_in_order(self, rows)

    def column_log_densities(self, rows: AnyArray) -> Array:
        return np.asarray(self._single[slots_of(rows, self._offsets)].transpose(0, 2, 1))

    def marginal(self, columns: Index) -> Self:
        """The average of the terms of these columns as parents, without the other columns."""
        index = columns.tolist()
        slots = [np.arange(self._offsets[j], self._offsets[j + 1]) for j in index]
        places = np.concatenate([np.zeros(0, dtype=np.intp), *slots])
        return type(self)(tuple(self.words[j] for j in index), self.table[places[:, None], places])

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Codes of categories. For each row, draw a parent column, its category, and the other columns given it."""
        drawn = np.tile([float(min(len(words), 1) - 1) for words in self.words], (n, 1))
        if not len(self._parents):
            return drawn
        parent = rng.choice(self._parents, size=n)
        for i in self._parents.tolist():
            rows = np.flatnonzero(parent == i)
            drawn[rows, i] = self._draw(np.exp(self._single[self._categories(i), label])[None], len(rows), rng)
            given = drawn[rows, i].astype(np.intp)
            for j in self._parents[self._parents != i].tolist():
                probability = np.exp(self.table[self._categories(i), self._categories(j), label])
                drawn[rows, j] = self._draw(probability[given], len(rows), rng)
        return drawn

    def _categories(self, j: int) -> slice:
        """The slots of the categories of a column."""
        return slice(int(self._offsets[j]) + 1, int(self._offsets[j + 1]))

    @staticmethod
    def _draw(probability: Array, n: int, rng: np.random.Generator) -> Any:
        """A category for each of n rows, with probabilities (n, categories) or (1, categories)."""
        reach = np.cumsum(probability, axis=1)
        return (rng.random((n, 1)) * reach[:, -1:] >= reach[:, :-1]).sum(axis=1)
