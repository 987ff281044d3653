"""Class-conditional densities of columns that are independent within a class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt
import scipy.sparse

from likely.errors import NoDensityError, listed
from likely.families.base import Conditionals, ExponentialConditionals, Quadratic
from likely.families.supports import Support
from likely.numerics.arrays import all_finite, has_missing
from likely.statistics.sums import check_stored
from likely.typing import AnyArray, Array, Codes, Index

Mask = npt.NDArray[np.bool_]
TABLE_VALUES = 1023  # whole numbers up to here are looked up where they repeat
EXACT_PRODUCT = 1e4  # up to here, rounding of θ·u is below 1e-11
LARGEST_PRODUCT = 4e5  # beyond this, rounding of θ·u exceeds 1e-10: cells are evaluated one by one


def looked_up(table: Array, rows: AnyArray, codes: Codes) -> Array:
    """The sums of looked-up cells, (n,); missing ones add nothing."""
    holes = has_missing(rows)
    _, values, d = table.shape
    if values == 2 and not holes and all_finite(table):  # a line through both values
        lines = np.dot(table[:, 1] - table[:, 0], np.asarray(rows, dtype=np.float64).T)
        return np.asarray(lines[codes, np.arange(len(codes))] + table[:, 0].sum(axis=1)[codes])
    place = np.where(np.isnan(rows), 0, rows).astype(np.intp) if holes else rows.astype(np.intp)
    place *= d
    place += np.arange(d)
    place += codes.astype(np.intp)[:, None] * (values * d)
    terms = np.take(table.ravel(), place)
    return np.asarray((np.where(np.isnan(rows), 0.0, terms) if holes else terms).sum(axis=1))


@dataclass(frozen=True, eq=False)
class IndependentColumns(Conditionals):
    """Learnt densities of independent columns. Fields whose last axis is d describe columns."""

    informative: Mask  # (d,): whether a column counts; one without spread does not
    constant_value: (
        Array  # (d,): the value of a column without spread, or the mean of one whose spread sums do not show
    )

    support: ClassVar[Support]
    name: ClassVar[str]  # of the family, for errors
    silence: ClassVar[str] = "no spread, no evidence"  # why a column does not count, for notes

    @property
    @abstractmethod
    def parameters(self) -> tuple[Array, ...]:
        """What `log_terms` needs, each (classes, d)."""

    @abstractmethod
    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """log p(x) of cells, given parameters that broadcast with them."""

    @abstractmethod
    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """n values of every column, (n, d)."""

    def means(self) -> Array:
        """The expectation of every column in every class, (classes, d)."""
        raise NoDensityError(f"{self.name} does not tell its expectation")

    @final
    def expectation(self, rows: AnyArray, label: int) -> Array:
        mean = np.where(self.informative, self.means()[label], self.constant_value)
        return np.broadcast_to(mean, (len(rows), self.dimension))

    @property
    def n_classes(self) -> int:
        return len(self.parameters[0])

    @property
    def dimension(self) -> int:
        return len(self.informative)

    @property
    def width(self) -> int:
        return 3 * self.dimension + 2 * self.n_classes

    @final
    def marginal(self, columns: Index) -> Self:
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{k: v[..., columns] for k, v in parts.items() if isinstance(v, np.ndarray)})

    def unread(self) -> Index:
        return np.flatnonzero(~self.informative)

    def notes(self, names: Sequence[str]) -> list[str]:
        flat = [name for name, informative in zip(names, self.informative, strict=True) if not informative]
        return [f"{self.silence}: {listed(flat)}"] if flat else []

    def read(self, rows: AnyArray) -> tuple[Array, Mask | None]:
        """Cells as numbers inside the support, and which of them to leave out: missing, or in silent columns."""
        self.support.check(rows, self.name)
        missing = np.isnan(rows) if has_missing(rows) else None
        x = np.asarray(rows, dtype=np.float64)
        if missing is not None:
            x = np.where(missing, self.support.filler, x)
        if self.informative.all():
            return x, missing
        return x, np.broadcast_to(~self.informative, x.shape) if missing is None else missing | ~self.informative

    def log_density(self, rows: Any) -> Array:
        if scipy.sparse.issparse(rows):
            return self._sparse_density(scipy.sparse.csr_array(rows))
        x, silent = self.read(rows)
        return np.array([terms.sum(axis=1) for terms in self._class_terms(x, silent)])

    @final
    def paired(self, rows: AnyArray) -> Array:
        """log p of each row under the class of the same number, (n,)."""
        x, silent = self.read(rows)
        terms = self.log_terms(x, *self.parameters)
        return np.asarray((terms if silent is None else np.where(silent, 0.0, terms)).sum(axis=1))

    def explain(self, rows: Any) -> Array:
        rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
        x, silent = self.read(rows)
        evidence = np.empty((len(x), self.n_classes, self.dimension))
        for k, terms in enumerate(self._class_terms(x, silent)):
            evidence[:, k] = terms
        return evidence

    def _class_terms(self, x: Array, silent: Mask | None) -> Iterator[Array]:
        """log p(x) of all cells, (n, d), for one class after another; 0 where they are silent."""
        top = int(x.max(initial=0.0)) if self.support.whole and x.size and x.max() <= TABLE_VALUES else -1
        place = (x.astype(np.intp), np.arange(self.dimension)) if 0 <= top < len(x) else None
        for k in range(self.n_classes):
            mine = [values[k] for values in self.parameters]
            if place is None:
                terms = self.log_terms(x, *mine)
            else:  # the same whole numbers come again and again
                terms = self.log_terms(np.arange(top + 1.0)[:, None], *mine)[place]
            if silent is not None:
                terms = np.where(silent, 0.0, terms)
            yield terms

    @cached_property
    def _at_zero(self) -> Array:
        """log p(0), (classes, d); 0 for silent columns."""
        return np.where(self.informative, self.log_terms(np.zeros(1), *self.parameters), 0.0)

    def _sparse_density(self, rows: Any) -> Array:
        """All cells 0, and what the stored cells change."""
        check_stored(rows, lambda values: self.support.check(values, self.name))
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        x, column = np.asarray(rows.data, dtype=np.float64), rows.indices
        missing = np.isnan(x)
        x = np.where(missing, self.support.filler, x)
        density = np.empty((self.n_classes, rows.shape[0]))
        barred = np.isneginf(self._at_zero)
        for k, zero in enumerate(np.where(barred, 0.0, self._at_zero)):
            terms = self.log_terms(x, *(values[k][column] for values in self.parameters))
            terms = np.where(missing | ~self.informative[column], 0.0, terms)
            density[k] = zero.sum() + np.bincount(owner, terms - zero[column], minlength=rows.shape[0])
            impossible = barred[k].sum() - np.bincount(owner, barred[k][column], minlength=rows.shape[0])
            density[k][impossible > 0.0] = -np.inf
        return density

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        drawn = np.asarray(self.draw(label, n, rng), dtype=np.float64)
        return np.where(
            self.informative, drawn, np.rint(self.constant_value) if self.support.whole else self.constant_value
        )


@dataclass(frozen=True, eq=False)
class NaturalColumns(IndependentColumns, ExponentialConditionals):
    """Independent columns of the exponential family with plugged-in parameters.

    A natural parameter may be −inf, the logarithm of a probability of 0: a statistic other than 0 is then impossible.
    """

    carried: ClassVar[bool] = True  # whether h is not 1 everywhere

    @abstractmethod
    def natural(self) -> tuple[tuple[Array, ...], Array]:
        """θ_1, …, θ_m and A, each (classes, d)."""

    @abstractmethod
    def statistics(self, x: Array) -> tuple[Array, ...]:
        """u_1, …, u_m of cells."""

    @abstractmethod
    def carrier(self, x: Array) -> Array:
        """log h of cells."""

    @cached_property
    def parameters(self) -> tuple[Array, ...]:
        theta, partition = self.natural()
        return (*theta, partition)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        terms = self.carrier(x) - parameters[-1] if self.carried else -parameters[-1]
        for theta, u in zip(parameters[:-1], self.statistics(x), strict=True):
            with np.errstate(invalid="ignore", over="ignore"):
                part = theta * u
            terms = terms + (part if all_finite(theta) else np.where(u == 0.0, 0.0, part))
        return np.asarray(terms)

    @cached_property
    def _products(self) -> tuple[Array, Array | None, Array, float]:
        """θ (m, classes, d) with 0 for −inf and in silent columns; where −inf stood; A; and the largest |θ|."""
        theta, partition = self.natural()
        together = np.where(self.informative, np.array(theta), 0.0)
        barred = np.isneginf(together)
        finite = np.where(barred, 0.0, together)
        bars = barred.astype(np.float64) if barred.any() else None
        return finite, bars, np.where(self.informative, partition, 0.0), float(np.abs(finite).max(initial=0.0))

    def log_density(self, rows: Any) -> Array:
        if scipy.sparse.issparse(rows):
            return super().log_density(rows)
        x, silent = self.read(rows)
        density = self.by_products(x, silent, EXACT_PRODUCT)
        if density is None:
            return super().log_density(rows)
        if self.carried:
            top = x.max(initial=0.0)
            few = self.support.whole and top <= min(TABLE_VALUES, x.size)  # they come again and again
            terms = np.take(self.carrier(np.arange(top + 1.0)), x.astype(np.intp)) if few else self.carrier(x)
            density += np.dot(terms if silent is None else np.where(silent, 0.0, terms), np.ones(self.dimension))
        return density

    def scores(self, rows: Any) -> Array:
        if scipy.sparse.issparse(rows):
            plain = isinstance(rows, scipy.sparse.csr_array)
            return self._sparse_scores(rows if plain else scipy.sparse.csr_array(rows))
        x, silent = self.read(rows)
        scores = self.by_products(x, silent, LARGEST_PRODUCT)
        return super().log_density(rows) if scores is None else scores

    def by_products(self, x: Array, silent: Mask | None, limit: float) -> Array | None:
        """log p(x | class) less log h(x), (classes, n); None where products are so large that digits are lost."""
        theta, bars, partition, largest = self._products
        parts = self.statistics(x)
        if largest * max(float(np.abs(u).max(initial=0.0)) for u in parts) > limit:
            return None
        if silent is None:
            scores = np.repeat(-partition.sum(axis=1)[:, None], len(x), axis=1)
        else:
            scores = -np.dot(partition, (~silent).T)
            parts = tuple(np.where(silent, 0.0, u) for u in parts)
        for j, u in enumerate(parts):
            scores += np.dot(theta[j], u.T)
        if bars is not None:
            hits = sum(np.dot(bars[j], (u != 0.0).T) for j, u in enumerate(parts))
            scores[np.asarray(hits) > 0.0] = -np.inf
        return scores

    def _sparse_scores(self, rows: Any) -> Array:
        """U(X)·Θ with the statistics of 0 taken out of U and put into the constant."""
        _, bars, _, largest = self._products
        check_stored(rows, lambda values: self.support.check(values, self.name))
        if has_missing(rows.data) or largest * float(np.abs(rows.data).max(initial=0.0)) > LARGEST_PRODUCT:
            return self.log_density(rows)
        constant, step, turned = self._sparse_products
        ones = bars is None and bool(np.all(rows.data == 1.0))
        if ones:  # one product for all statistics together
            return np.asarray((rows.astype(np.float64, copy=False) @ step).T) + constant
        scores = np.repeat(constant, rows.shape[0], axis=1)
        hits: AnyArray | float = 0.0
        zeros = self.statistics(np.zeros(1))
        for j, u in enumerate(self.statistics(np.asarray(rows.data, dtype=np.float64))):
            zero = float(zeros[j][0])
            more = scipy.sparse.csr_array((u - zero, rows.indices, rows.indptr), shape=rows.shape)
            scores += (more @ turned[j]).T
            if bars is not None:
                changed = (u != 0.0).astype(np.float64) - (zero != 0.0)
                seen = scipy.sparse.csr_array((changed, rows.indices, rows.indptr), shape=rows.shape)
                hits = hits + (seen @ bars[j].T).T + (zero != 0.0) * bars[j].sum(axis=1)[:, None]
        if bars is not None:
            scores[np.asarray(hits) > 0.0] = -np.inf
        return scores

    @cached_property
    def _sparse_products(self) -> tuple[Array, Array, list[Array]]:
        """Scores of a row of zeros, (classes, 1); what each 1 adds, (d, classes); θ, (d, classes) each."""
        theta, _, partition, _ = self._products
        zeros, ones = self.statistics(np.zeros(1)), self.statistics(np.ones(1))
        constant, step = -partition.sum(axis=1), np.zeros(theta.shape[1:])
        for j, part in enumerate(theta):
            constant = constant + zeros[j][0] * part.sum(axis=1)
            step += (ones[j][0] - zeros[j][0]) * part
        return constant[:, None], np.ascontiguousarray(step.T), [np.ascontiguousarray(part.T) for part in theta]

    def quadratic(self) -> Quadratic | None:
        """Linear in x where the only statistic is x itself, or 1 − x beside it."""
        probe = self.statistics(np.array([0.25, 3.0]))
        theta, partition = self.natural()
        if not np.array_equal(probe[0], [0.25, 3.0]) or not all(np.array_equal(u, [0.75, -2.0]) for u in probe[1:]):
            return None
        linear = np.where(self.informative, theta[0] - sum(theta[1:]), 0.0)
        constant = np.where(self.informative, sum(theta[1:]) - partition, 0.0).sum(axis=1)
        if not (np.all(np.isfinite(linear)) and np.all(np.isfinite(constant))):
            return None
        return Quadratic(None, linear, constant, np.zeros(self.dimension))

    @property
    def has_line(self) -> bool:
        """Scores are log-posteriors, because cells may be missing or outside the support."""
        return False

    def natural_parameters(self) -> Array:
        theta, _ = self.natural()
        return np.hstack([np.where(self.informative, part, 0.0) for part in theta])

    def sufficient_statistics(self, rows: AnyArray) -> Array:
        return np.hstack(self.statistics(np.asarray(rows, dtype=np.float64)))

    def log_partition(self) -> Array:
        return np.asarray(np.where(self.informative, self.natural()[1], 0.0).sum(axis=1))

    def log_carrier(self, rows: AnyArray) -> Array:
        return np.asarray(np.where(self.informative, self.carrier(np.asarray(rows, dtype=np.float64)), 0.0).sum(axis=1))
