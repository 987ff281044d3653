"""Densities of count vectors: multinomial, Dirichlet-multinomial, and complement scores.

Values may be weights, real numbers >= 0. Factorials are gamma functions then, x! = Γ(x + 1), and the densities are
stated up to a factor that all classes share.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
import scipy.special

from likely.errors import CellError, NoDensityError
from likely.families.base import Conditionals, ExponentialConditionals
from likely.families.supports import NON_NEGATIVE
from likely.numerics.arrays import has_missing
from likely.numerics.block_sizes import COPIED
from likely.numerics.caches import cached_property
from likely.numerics.count_densities import negative_binomial_log_density, poisson_log_density
from likely.numerics.expressions import (
    LARGE_COUNT,
    Cell,
    Expression,
    bounded,
    constant,
    linear,
    relative_to_first,
    times_log,
    where,
    with_coefficients,
)
from likely.numerics.expressions import log_gamma_ratios as ratios
from likely.numerics.expressions import total as add
from likely.numerics.special import log_factorial, log_gamma_ratio
from likely.statistics.sums import check_stored
from likely.typing import AnyArray, Array, Index

LARGE_TOTAL = 1e5  # beyond this total, the rounding error of log Γ and of products exceeds 1e-10
WEIGHTS = replace(NON_NEGATIVE, words="a count or a weight (a finite number >= 0)")
LARGEST_DRAW = 2.0**62  # NumPy draws no larger totals
SMALL_WEIGHT = 1e-100  # smaller weights change no probability, and their squares underflow


def check_counts(values: AnyArray) -> None:
    """Raise for values that are neither counts nor weights, or missing."""
    WEIGHTS.check(values, "Multinomial")
    if has_missing(values):
        row, column = np.argwhere(np.isnan(values))[0]
        problem = "is missing, so the total of the row, which Multinomial needs, is not known"
        hint = "write 0 where nothing was counted, drop the row, or declare Poisson()"
        raise CellError(int(row), int(column), values[row, column], problem, hint)


def are_whole(values: AnyArray) -> bool:
    """Whether all values are whole numbers, whose densities are tabulated."""
    return values.dtype.kind != "f" or bool(np.all(values == np.floor(values)))


@dataclass(frozen=True, eq=False)
class CountVectors(Conditionals):
    """Distributions of vectors of counts, given their total."""

    counts: Array  # (classes, d): counts of the training rows, with pseudo-counts
    length: Array  # (classes,): the mean total of a row

    given: ClassVar[str | None] = "the total of a row"
    needs_values: ClassVar[bool] = True

    @property
    def n_classes(self) -> int:
        return len(self.counts)

    @property
    def dimension(self) -> int:
        return int(self.counts.shape[1])

    @property
    def probability(self) -> Array:
        """p(column | class), (classes, d)."""
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    def marginal(self, columns: Index) -> Self:
        """The distribution of some columns given their total, which is of the same family."""
        return replace(
            self, counts=self.counts[:, columns], length=self.length * self.probability[:, columns].sum(axis=1)
        )

    def read(self, rows: Any) -> Any:
        """Checked rows as floats, dense or in CSR format."""
        if scipy.sparse.issparse(rows):
            rows = rows if isinstance(rows, scipy.sparse.csr_array) else scipy.sparse.csr_array(rows)
            check_stored(rows, check_counts)
            return rows.astype(np.float64, copy=False)
        check_counts(rows)
        return np.asarray(rows, dtype=np.float64)

    @staticmethod
    def _row_sums(rows: Any) -> Array:
        return np.asarray(rows.sum(axis=1), dtype=np.float64)

    @abstractmethod
    def _cell_terms(self, x: Array, total: Array, label: int | slice) -> Array:
        """Log-densities of values (n, d) as independent counts, given the totals of their rows, (n, 1)."""

    @abstractmethod
    def _total_terms(self, total: Array, label: int | slice) -> Array:
        """The log-density of the total of these independent counts, (n,)."""

    def log_density(self, rows: Any) -> Array:
        x = self.read(rows)
        total = self._row_sums(x)
        return self._with_large(x, total, self._scores(x, total) + self.log_coefficient(x))

    def scores(self, rows: Any) -> Array:
        x = self.read(rows)
        total = self._row_sums(x)
        return self._with_large(x, total, self._scores(x, total))

    def inside(self, column: int, x: Expression) -> Expression:
        assert WEIGHTS.condition is not None
        return WEIGHTS.condition(x)

    @abstractmethod
    def _scores(self, x: Any, total: Array) -> Array:
        """log p(x | class) without the multinomial coefficient, which all classes share, (classes, n)."""

    def _with_large(self, x: Any, total: Array, density: Array) -> Array:
        """The density, with rows of large totals evaluated as independent counts, where no large terms cancel."""
        large = np.flatnonzero(total > LARGE_TOTAL)
        step = max(COPIED // max(self.dimension, 1), 1)
        for start in range(0, len(large), step):
            index = large[start : start + step]
            cells = x[index].toarray() if scipy.sparse.issparse(x) else x[index]
            for k in range(self.n_classes):
                density[k, index] = self.paired(cells, total[index], k)
        return density

    def paired(self, x: Array, total: Array, label: int | slice = slice(None)) -> Array:
        """log p as independent counts given their total, (n,): of row i under class i, or of all rows under a class."""
        terms = self._cell_terms(x, total[:, None], label).sum(axis=1)
        return np.asarray(terms - self._total_terms(total, label))

    def explain(self, rows: Any) -> Array:
        """The log-density of each count as one of independent counts, given the total of the row."""
        x = self.read(rows)
        x = x.toarray() if scipy.sparse.issparse(x) else x
        total = self._row_sums(x)[:, None]
        return np.stack([self._cell_terms(x, total, k) for k in range(self.n_classes)], axis=1)

    def unattributed(self, rows: Any) -> Array | None:
        """−log-density of the total of the independent counts, which is conditioned on."""
        total = self._row_sums(self.read(rows))
        return np.stack([-self._total_terms(total, k) for k in range(self.n_classes)])

    @classmethod
    def log_coefficient(cls, rows: Any) -> Array:
        """log n!/∏x_j!, (n,), from the values other than 0 and 1."""
        if scipy.sparse.issparse(rows):
            several = np.flatnonzero((rows.data > 0) & (rows.data != 1))
            owner, large = np.searchsorted(rows.indptr, several, side="right") - 1, rows.data[several]
        else:
            owner, column = np.nonzero((rows > 0) & (rows != 1))
            large = rows[owner, column]
        return log_factorial(cls._row_sums(rows)) - np.bincount(owner, log_factorial(large), minlength=rows.shape[0])

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Rows with the mean total of the class, rounded; at least 1 where the class has any counts."""
        length = self.length[label]
        total = int(np.clip(np.rint(length), 1.0, LARGEST_DRAW)) if length > 0.0 else 0
        return np.asarray(rng.multinomial(total, self._draw_probability(label, n, rng), size=n), dtype=np.float64)

    def _draw_probability(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Probabilities of the columns for sampling, (d,) or, per row, (n, d)."""
        return self.probability[label]


@dataclass(frozen=True, eq=False)
class MultinomialConditionals(CountVectors, ExponentialConditionals):
    """Multinomial distributions with plug-in probabilities."""

    @cached_property
    def _log_probability(self) -> tuple[Array, Array | None]:
        """log p, (classes, d), with 0 for log 0; and 1 where p = 0, or None if nowhere."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.probability)
        impossible = np.isneginf(logs)
        return np.where(impossible, 0.0, logs), impossible.astype(np.float64) if impossible.any() else None

    @cached_property
    def _transposed(self) -> Array:
        """log p transposed, (d, classes), as sparse products need it."""
        return np.ascontiguousarray(self._log_probability[0].T)

    @cached_property
    def _relative(self) -> Array:
        """log p − log p of the first class, (d, classes)."""
        return self._transposed - self._transposed[:, :1]

    def scores(self, rows: Any) -> Array:
        x = self.read(rows)
        cells = x.data if scipy.sparse.issparse(x) else x
        most = int(np.diff(x.indptr).max(initial=0)) if scipy.sparse.issparse(x) else self.dimension
        if cells.max(initial=0.0) * most <= LARGE_TOTAL:  # no row has a large total
            if self._log_probability[1] is None:
                return np.asarray((x @ self._relative).T)
            return self._scores(x, np.zeros(0))
        total = self._row_sums(x)
        return self._with_large(x, total, self._scores(x, total))

    def _cell_terms(self, x: Array, total: Array, label: int | slice) -> Array:
        return poisson_log_density(x, total * self.probability[label])

    def _total_terms(self, total: Array, label: int | slice) -> Array:
        return poisson_log_density(total, total)

    def _scores(self, x: Any, total: Array) -> Array:
        logs, impossible = self._log_probability
        scores = np.asarray((x @ self._transposed).T) if scipy.sparse.issparse(x) else np.dot(logs, x.T)
        if impossible is not None:
            hits = ((x > 0) @ impossible.T).T if scipy.sparse.issparse(x) else np.dot(impossible, (x > 0.0).T)
            scores[np.asarray(hits) > 0.0] = -np.inf
        return scores

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        with np.errstate(divide="ignore"):
            logs = relative_to_first(np.log(self.probability))
        counts = [with_coefficients(cell.filled(0.0), logs) for cell in cells]
        return [add([times_log(x, part) for x, part in zip(counts, mine, strict=True)]) for mine in logs.tolist()]

    def natural_parameters(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.probability)

    def sufficient_statistics(self, rows: AnyArray) -> Array:
        return np.asarray(rows, dtype=np.float64)

    def log_partition(self) -> Array:
        return np.zeros(self.n_classes)

    def log_carrier(self, rows: AnyArray) -> Array:
        return self.log_coefficient(np.asarray(rows, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class DirichletMultinomial(CountVectors):
    """Dirichlet-multinomial distributions: multinomial ones with p integrated over Dirichlet(counts)."""

    def _draw_probability(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return rng.dirichlet(self.counts[label], n)

    def _cell_terms(self, x: Array, total: Array, label: int | slice) -> Array:
        alpha = self.counts[label]
        return negative_binomial_log_density(x, alpha, alpha.sum(axis=-1, keepdims=True) / np.maximum(total, 1.0))

    def _total_terms(self, total: Array, label: int | slice) -> Array:
        mass = self.counts[label].sum(axis=-1)
        return negative_binomial_log_density(total, mass, mass / np.maximum(total, 1.0))

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        filled = [cell.filled(0.0) for cell in cells]
        counts = [bounded(where(x < SMALL_WEIGHT, 0.0, x), LARGE_COUNT) for x in filled]
        n, first = add(counts), self.counts[0]
        found: list[Expression] = [constant(0.0)]
        for mine in self.counts[1:]:
            terms = [ratios(a, b, x) for a, b, x in zip(mine.tolist(), first.tolist(), counts, strict=True)]
            found.append(add(terms) - ratios(float(mine.sum()), float(first.sum()), n))
        return found

    def accurate(self, column: int, x: Expression) -> Expression:
        return x <= LARGE_COUNT

    @cached_property
    def _log_counts(self) -> Array:
        return np.log(self.counts)

    def _scores(self, x: Any, total: Array) -> Array:
        """Σ_j log Γ(α_j + x_j)/Γ(α_j), less the same of the totals. A count of 1 gives log α_j, a matrix product.

        The terms of small counts, which repeat, are tabulated.
        """
        d, whole = self.dimension, are_whole(x.data if scipy.sparse.issparse(x) else x)
        table = None if scipy.sparse.issparse(x) or not whole else self._table(int(x.max(initial=0.0)), x.size)
        if table is not None:
            place = x.astype(np.intp)
            place *= d
            place += np.arange(d)
            return np.array([np.take(part, place).sum(axis=1) for part in table]) - self._total_ratio(total)
        x = scipy.sparse.csr_array(x)
        ones = scipy.sparse.csr_array(((x.data >= 1.0).astype(np.float64), x.indices, x.indptr), shape=x.shape)
        scores = np.asarray((ones @ self._log_counts.T).T)
        more = np.flatnonzero((x.data > 0.0) & (x.data != 1.0))
        if len(more):
            owner = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))[more]
            column, value = x.indices[more], x.data[more]
            table = self._table(int(value.max()), len(more)) if whole else None
            one = np.minimum(np.floor(value), 1.0)  # is in the matrix product
            place = value.astype(np.intp) * d + column if table is not None else column
            for k, alpha in enumerate(self.counts):
                if table is not None:
                    part = np.take(table[k], place) - self._log_counts[k][column]
                else:
                    part = log_gamma_ratio(alpha[column] + one, value - one)
                scores[k] += np.bincount(owner, part, minlength=x.shape[0])
        return scores - self._total_ratio(total)

    @cached_property
    def _tables(self) -> dict[int, Array]:
        """Tables by their largest count."""
        return {}

    def _table(self, top: int, cells: int) -> Array | None:
        """log Γ(α + x)/Γ(α) for x = 0, …, at least top, (classes, …, d); None if the table is larger than x."""
        size = 2 ** max(top, 1).bit_length() - 1
        if (size + 1) * self.dimension > cells:
            return None
        if size not in self._tables:
            values = np.arange(size + 1.0)[:, None]
            self._tables[size] = np.array([log_gamma_ratio(alpha, values) for alpha in self.counts])
        return self._tables[size]

    def _total_ratio(self, total: Array) -> Array:
        """log Γ(Σα + n)/Γ(Σα), (classes, n); tabulated where totals repeat."""
        top = total.max(initial=0.0)
        mass = self.counts.sum(axis=1)
        if top < len(total) and are_whole(total):
            values = np.arange(top + 1.0)
            place = total.astype(np.intp)
            return np.array([np.take(log_gamma_ratio(np.full_like(values, a), values), place) for a in mass])
        return np.array([log_gamma_ratio(np.full_like(total, a), total) for a in mass])


@dataclass(frozen=True, eq=False)
class ComplementScores(CountVectors):
    """Complement scores of each class (Rennie et al. 2003), which are not densities."""

    weights: Array  # (classes, d)

    def scores(self, rows: Any) -> Array:
        return self._scores(self.read(rows), np.zeros(0))

    def _scores(self, x: Any, total: Array) -> Array:
        return np.asarray((x @ self.weights.T).T)

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        counts = [with_coefficients(cell.filled(0.0), self.weights) for cell in cells]
        return [linear(mine, counts) for mine in self.weights.tolist()]

    def _cell_terms(self, x: Array, total: Array, label: int | slice) -> Array:
        raise self.refuse()

    def _total_terms(self, total: Array, label: int | slice) -> Array:
        raise self.refuse()

    def refuse(self) -> NoDensityError:
        """The error for methods that need densities."""
        return NoDensityError(
            "Multinomial(complement=True) gives scores, not densities: only predict, predict_proba, "
            "predict_log_proba, decision_function and decide are available. Use complement=False."
        )

    def log_density(self, rows: Any) -> Array:
        raise self.refuse()

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        raise self.refuse()
