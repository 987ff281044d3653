"""`ColumnFamily`: families of independent columns whose statistics are sums of functions of single values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from likely.errors import NoEvidenceError, NotEstimableError, listed
from likely.families.base import Columns, Conditionals, Family, LeaveOneOutDensity
from likely.families.estimation import Estimation
from likely.families.independent import TABLE_VALUES, IndependentColumns, Mask, NaturalColumns, looked_up
from likely.families.supports import Support
from likely.numerics.special import EPS, TINY
from likely.statistics.sums import Sums, SumsAccumulator
from likely.typing import AnyArray, Array, Codes

EXACT_SUM = 2.0**52  # sums of whole numbers, and of halves of them, are exact up to here


class ColumnFamily(Family):
    """A family of independent columns whose statistics are sums of functions of single cells."""

    support: ClassVar[Support]
    _parameters_per_column: ClassVar[int] = 1  # parameters of a class and column

    @abstractmethod
    def collected(self, x: Array) -> tuple[Array, ...]:
        """The functions of a cell that are summed: what the estimate needs."""

    def _accumulator(self, classes: AnyArray, columns: Columns) -> SumsAccumulator:
        count = len(self.collected(np.full(1, self.support.filler)))
        name = type(self).__name__
        return SumsAccumulator(
            classes,
            columns.dimension,
            self.collected,
            count,
            lambda values: self.support.check(values, name),
            self.support.filler,
        )

    def describe(self) -> str:
        return type(self).__name__

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        """Σ u_1, …, Σ u_m and Σ log h, (classes, d) each."""
        raise NoEvidenceError(f"{type(self).__name__} does not collect what its likelihood needs")

    def _log_likelihood(self, statistics: Sums, fitted: Conditionals, names: Sequence[str]) -> float:
        if not isinstance(fitted, NaturalColumns):
            raise NoEvidenceError("a predictive has no plugged-in parameters")
        parts, carrier = self._likelihood_sums(statistics)
        theta, partition = fitted.natural()
        terms = carrier - statistics.column_weight * partition
        for t, u in zip(theta, parts, strict=True):
            with np.errstate(invalid="ignore"):
                terms = terms + np.where(u == 0.0, 0.0, t * u)
        return float(terms[:, fitted.informative].sum())

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        """What the prior of "map" counts for: sums of u_1, …, u_m, and how often A."""
        raise NoEvidenceError(f"{type(self).__name__} does not tell the density of its prior")

    def _log_prior(self, statistics: Sums, fitted: Conditionals) -> float:
        """θ·u − n·A of the pseudo-data that the prior stands for."""
        if not isinstance(fitted, NaturalColumns):
            raise NoEvidenceError("plugged-in parameters have a density, and others none")
        sums, count = self._prior_sums(statistics)
        theta, partition = fitted.natural()
        terms = -np.asarray(count) * partition
        for t, u in zip(theta, sums, strict=True):
            terms = terms + t * u
        return float(np.broadcast_to(terms, partition.shape)[:, fitted.informative].sum())

    def _n_parameters(self, statistics: Sums, names: Sequence[str]) -> int:
        informative = self.estimate(statistics, Estimation.BAYES, names)
        assert isinstance(informative, IndependentColumns)
        return len(statistics.classes) * int(informative.informative.sum()) * self._parameters_per_column

    def _impossible_columns(self, left: Sums, before: Sums) -> Mask:
        """By the mean of the first function, which is between its least and its largest value."""
        low, high = self.support.bounds
        slack = 1e-8 * np.abs(before.totals[0]).max(axis=0, initial=0.0)
        total, weight = left.totals[0], left.column_weight
        bad = np.zeros(total.shape, dtype=bool)
        if np.isfinite(low):
            bad |= total < low * weight - slack
        if np.isfinite(high):
            bad |= total > high * weight + slack
        return np.asarray(bad.any(axis=0) | self._bent(left, before))

    def _bent(self, left: Sums, before: Sums) -> Mask:
        """Columns whose sums of x and x² are further apart than any values'."""
        return np.zeros(before.dimension, dtype=bool)

    def _leave_one_out(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> LeaveOneOutDensity:
        """Each row is a class of its own: its class without it, which is estimated and asked about the row."""
        fitted = self.estimate(statistics, estimation, names)
        known: dict[int, Array] = {}

        def density(rows: Any, codes: Codes, weights: Array) -> Array:
            rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
            result = fitted.log_density(rows)
            if self.support.whole and np.all(weights == 1.0) and len(rows):
                top = int(np.fmax.reduce(rows, axis=None, initial=0.0))
                small = top <= TABLE_VALUES and (top + 1) * len(statistics.classes) <= 4 * len(rows)
                if top in known or small:
                    if top not in known:
                        known[top] = self._table(statistics, estimation, names, top)
                    result[codes, np.arange(len(codes))] = looked_up(known[top], rows, codes)
                    return result
            rest = statistics.leave_one_out(rows, codes, weights, self.collected, self.support.filler)
            result[codes, np.arange(len(codes))] = self._own(rest, rows, estimation, names)
            return result

        return density

    def _table(self, statistics: Sums, estimation: Estimation, names: Sequence[str], top: int) -> Array:
        """Log-densities of cells left out of their class, (classes, top + 1, d), for values up to the top.

        What is left of a class depends on the value alone. Values that it has not had are not looked up.
        """
        size, d = len(statistics.classes), statistics.dimension
        x = np.broadcast_to(np.tile(np.arange(top + 1.0), size)[:, None], (size * (top + 1), d))
        codes = np.repeat(np.arange(size), top + 1)
        rest = statistics.leave_one_out(x, codes, np.ones(len(x)), self.collected, self.support.filler)
        lost, never = np.zeros(x.shape, dtype=bool), rest.totals[0] < 0.0
        if not self._smooths(estimation):
            lost, rest = rest.unobserved(), rest.filled()
        rest = replace(rest, totals=np.maximum(rest.totals, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            fitted = self.estimate(rest, estimation, names)
            assert isinstance(fitted, IndependentColumns)
            terms = np.where(lost, -np.inf, fitted.log_terms(x, *fitted.parameters))
            terms = np.where(never, np.nan, terms)  # whoever looks it up will see
        return np.where(fitted.informative, terms, 0.0).reshape(size, top + 1, d)

    def _own(self, rest: Sums, rows: AnyArray, estimation: Estimation, names: Sequence[str]) -> Array:
        """Log-densities of rows under sums of their own, (n,); what these do not determine makes a row impossible."""
        if not self._smooths(estimation):
            lost = (rest.unobserved() & ~np.isnan(rows)).any(axis=1)
            if lost.any():
                result = np.full(len(rows), -np.inf)
                kept = np.flatnonzero(~lost)
                result[kept] = self._own(rest.select(kept), rows[kept], estimation, names) if len(kept) else 0.0
                return result
            rest = rest.filled()
        try:
            fitted = self.estimate(rest, estimation, names)
        except NotEstimableError:
            if len(rows) == 1:
                return np.full(1, -np.inf)
            half = len(rows) // 2
            parts = (np.arange(half), np.arange(half, len(rows)))
            return np.concatenate([self._own(rest.select(part), rows[part], estimation, names) for part in parts])
        assert isinstance(fitted, IndependentColumns)
        return fitted.paired(rows)

    @staticmethod
    def require_observed(sums: Sums, names: Sequence[str]) -> None:
        """Under maximum likelihood: raise where a class has no value in a column."""
        absent = sums.unobserved()
        if absent.any():
            k, j = np.argwhere(absent)[0]
            raise NotEstimableError(
                f"Column {names[j]!r} has no observed value in class {listed(sums.classes[k : k + 1])}, so its "
                "likelihood has no maximum. Use estimation='bayes' or 'map', or leave the column out."
            )


def inverse_mean(events: Array, exposure: Array) -> Array:
    """exposure/(events − 1): the mean of 1/rate under Gamma(events, exposure), or exposure/events where it has none."""
    return np.asarray(exposure / np.where(events > 1.0, events - 1.0, events))


def bent_squares(left: Sums, before: Sums) -> Mask:
    """Columns whose sums of x and of x² no values can have: n·Σx² is at least (Σx)²."""
    n, s, q = left.column_weight, left.totals[0], left.totals[1]
    slack = 1e-8 * (before.column_weight * before.totals[1]).max(axis=0, initial=0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray((n * q < s * s - slack).any(axis=0))


def varies(sums: Sums) -> Mask:
    """Whether a column takes more than one value, from sums of x and x²: n·Σx² is above (Σx)².

    Sums of whole numbers are exact up to 2⁵², and there nothing is missed. Beyond, and with weights that are not whole,
    what rounding can make of equal values counts as no spread: it grows with the rows.
    """
    sums = sums.whole
    parts = np.array([sums.column_weight, sums.totals[0], sums.totals[1]])
    n, s, q = parts.sum(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        beyond = ~np.isfinite(n * q)  # squares that no float can hold: not all of them are one value
        found = np.asarray(beyond | (n * q - s * s > EPS * (64.0 + sums.rows.sum(axis=0)) * n * q))
    doubtful = np.flatnonzero(~found & (q > 0.0) & (q <= EXACT_SUM))
    some = parts[:, :, doubtful]
    whole = np.all(some == np.floor(some), axis=(0, 1))
    n, s, q = n[doubtful], s[doubtful], q[doubtful]
    found[doubtful] = whole & (n * q > s * s)
    for i in np.flatnonzero(whole & (n * q > EXACT_SUM)):  # products that only Python's integers hold
        found[doubtful[i]] = int(n[i]) * int(q[i]) > int(s[i]) ** 2
    return found


def constant_value(sums: Sums, function: int = 0, per: int | None = None) -> Array:
    """The mean of a function of each column over all classes, (d,), or its sum per unit of another function."""
    whole = sums.whole
    n = (whole.column_weight if per is None else whole.totals[per]).sum(axis=0)
    return np.asarray(whole.totals[function].sum(axis=0) / np.where(n > 0.0, n, 1.0))


def typical_sizes(sizes: Array, weight: Array) -> Array:
    """The mean size of the rows of each class, (classes,), from sums; that of all rows where a class has none."""
    overall = sizes.sum() / max(float(weight.sum()), TINY)
    return np.where(weight > 0.0, sizes / np.where(weight > 0.0, weight, 1.0), overall)
