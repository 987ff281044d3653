"""`ColumnFamily`: families of independent columns whose statistics are sums of functions of single values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from likely.errors import InputError, NoDensityError, NoEvidenceError, NotEstimableError
from likely.families.base import Columns, Conditionals, Family, LeaveOneOutDensity
from likely.families.estimation import UNOBSERVED, Estimation, require_maximum
from likely.families.given import given_values
from likely.families.independent import TABLE_VALUES, IndependentColumns, Mask, check_parts, sum_table_values
from likely.families.natural import NaturalColumns
from likely.families.parameters import ColumnParameters, Parameter, parameters_of_columns
from likely.families.priors import is_improper
from likely.families.supports import Support
from likely.numerics.special import EPS, TINY
from likely.statistics.sums import Sums, SumsAccumulator
from likely.typing import AnyArray, Array, Codes

EXACT_SUM = 2.0**52  # sums of whole numbers, and of halves of them, are exact up to here


class ColumnFamily(Family):
    """Base class of families of independent columns whose statistics are sums of functions of single values.

    A subclass sets the class attribute `support` and overrides `check`, `collected` and `estimate`. Sample weights,
    missing values, sparse rows, updating, forgetting and leave-one-out follow from these.

    Attributes
    ----------
    support : Support
        Class attribute: the values that a column can take.

    See Also
    --------
    NaturalColumns : Estimated densities of the exponential family, which `estimate` returns.
    IndependentColumns : Other estimated densities, such as predictives.

    Notes
    -----
    AIC, BIC and `log_likelihood` need `_likelihood_sums`, and the marginal likelihood needs `_log_evidence`: without
    them, these raise an error. The objective of EM under "map" contains the prior only with `_prior_sums`.

    Examples
    --------
    A family of waiting times (`likely.Exponential` is the complete one). `NaturalColumns` describes its densities.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from likely import GenerativeClassifier
    >>> from likely.families.columns import NON_NEGATIVE, ColumnFamily, NaturalColumns, constant_value, varies
    >>> @dataclass(frozen=True, eq=False)
    ... class WaitingConditionals(NaturalColumns):
    ...     rate: np.ndarray
    ...     support, name = NON_NEGATIVE, "Waiting"
    ...
    ...     def natural(self):
    ...         return (-self.rate,), -np.log(self.rate)
    ...
    ...     def statistics(self, x):
    ...         return (x,)
    ...
    ...     def draw(self, label, n, rng):
    ...         return rng.exponential(1.0 / self.rate[label], (n, self.dimension))
    >>> class Waiting(ColumnFamily):
    ...     support = NON_NEGATIVE
    ...
    ...     def check(self, estimation):
    ...         pass
    ...
    ...     def collected(self, x):
    ...         return x, x * x
    ...
    ...     def estimate(self, statistics, estimation, names):
    ...         self.require_observed(statistics, names)
    ...         rate = statistics.column_weight / statistics.totals[0]
    ...         return WaitingConditionals(varies(statistics), constant_value(statistics), rate)
    >>> model = GenerativeClassifier(Waiting()).fit([[1.0], [2.0], [8.0], [9.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.5], [7.0]])
    array(['a', 'b'], dtype='<U1')
    """

    support: ClassVar[Support]
    _parameters_per_column: ClassVar[int] = 1  # number of parameters of a class and column
    _given_parameters: ClassVar[tuple[tuple[str, Support], ...]] = ()  # those that users may give, and their ranges

    @abstractmethod
    def collected(self, x: Array) -> tuple[Array, ...]:
        """Return the functions of single values that are summed over the rows of each class.

        Parameters
        ----------
        x : array
            Values of the support.

        Returns
        -------
        tuple of array
            Arrays of the shape of `x`: x and x² first, by which constant columns are found, and removals of rows that
            were never added; then others. `estimate` finds their sums in `statistics.totals`.
        """

    @staticmethod
    def require_observed(sums: Sums, names: Sequence[str]) -> None:
        """Raise an error if a class has no observed value in a column: maximum likelihood needs one.

        Parameters
        ----------
        sums : Sums
            The statistics that `estimate` was called with.
        names : sequence of str
            The names of the columns.

        Raises
        ------
        likely.errors.NotEstimableError
            If a class has no observed value in a column.
        """
        require_maximum(sums.unobserved(), sums.classes, names, UNOBSERVED)

    def _parameters(
        self, statistics: Sums, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        assert isinstance(fitted, IndependentColumns)
        return parameters_of_columns(names, fitted.informative, self._column_parameters(statistics, fitted, estimation))

    def _column_parameters(self, statistics: Sums, fitted: Any, estimation: Estimation) -> ColumnParameters:
        """Values and standard errors of the parameters; by default the fields of the densities, without errors."""
        shape = (fitted.n_classes, fitted.dimension)
        values = {each.name: getattr(fitted, each.name) for each in fields(fitted)}
        return {name: (v, None) for name, v in values.items() if isinstance(v, np.ndarray) and v.shape == shape}

    def _given(self, values: Mapping[str, Any], size: int, names: Sequence[str]) -> Conditionals:
        if not self._given_parameters:
            return super()._given(values, size, names)
        found = given_values(type(self).__name__, values, dict(self._given_parameters), size, names)
        density = self._plugged_in(np.ones(len(names), dtype=bool), np.zeros(len(names)), found)
        with suppress(NoDensityError):
            density = replace(density, constant_value=density.means().mean(axis=0))
        return density

    def _plugged_in(self, informative: Mask, constant: Array, parameters: Mapping[str, Array]) -> IndependentColumns:
        """Densities with given parameters, which `_given_parameters` names, each (classes, columns)."""
        raise InputError(f"{type(self).__name__} does not implement _plugged_in, which given parameters need")

    def _given_table(self, fitted: Any, names: Sequence[str]) -> list[Parameter]:
        assert isinstance(fitted, IndependentColumns)
        values = {name: (np.asarray(getattr(fitted, name)), None) for name, _ in self._given_parameters}
        return parameters_of_columns(names, fitted.informative, values)

    def _smooths(self, estimation: Estimation) -> bool:
        return super()._smooths(estimation) and not is_improper(getattr(self, "prior", None))

    def _accumulator(self, classes: AnyArray, columns: Columns) -> SumsAccumulator:
        check = partial(self.support.check, family=type(self).__name__)
        check_parts(f"{type(self).__name__}.collected", self.collected(np.full((2, 1), self.support.filler)), (2, 1))
        return SumsAccumulator(classes, columns.dimension, self.collected, check, self.support.filler)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        """Σ u_1, …, Σ u_m and Σ log h over the rows, each (classes, d)."""
        raise NoEvidenceError(f"{type(self).__name__} does not collect what its likelihood needs")

    def _log_likelihood(self, statistics: Sums, fitted: Conditionals, names: Sequence[str]) -> float:
        if not isinstance(fitted, NaturalColumns):
            raise NoEvidenceError("a posterior predictive has no plug-in parameters")
        parts, carrier = self._likelihood_sums(statistics)
        return _natural_total(fitted, parts, statistics.column_weight, carrier)

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        """The pseudo-data of the prior under "map": sums of u_1, …, u_m, and the number of pseudo-rows."""
        raise NoEvidenceError(f"{type(self).__name__} does not provide the density of its prior")

    def _log_prior(self, statistics: Sums, fitted: Conditionals) -> float:
        """log p(θ) = θ·Σu − n·A + constant, with Σu and n of the pseudo-data."""
        if not isinstance(fitted, NaturalColumns):
            raise NoEvidenceError("only plug-in parameters have a prior density")
        sums, count = self._prior_sums(statistics)
        return _natural_total(fitted, sums, count)

    def _n_parameters(self, statistics: Sums, names: Sequence[str]) -> int:
        fitted = self.estimate(statistics, Estimation.BAYES, names)
        assert isinstance(fitted, IndependentColumns)
        return len(statistics.classes) * int(fitted.informative.sum()) * self._parameters_per_column

    def _impossible_columns(self, left: Sums, before: Sums) -> Mask:
        """Columns whose mean is outside the bounds of the support, or whose sums violate Jensen's inequality."""
        low, high = self.support.bounds
        slack = 1e-8 * np.abs(before.totals[0]).max(axis=0, initial=0.0)
        total, weight = left.totals[0], left.column_weight
        bad = np.zeros(total.shape, dtype=bool)
        if np.isfinite(low):
            bad |= total < low * weight - slack
        if np.isfinite(high):
            bad |= total > high * weight + slack
        return np.asarray(bad.any(axis=0) | self._violates_jensen(left, before))

    def _violates_jensen(self, left: Sums, before: Sums) -> Mask:
        """Columns, (d,), whose sums no values can have: by default n·Σx² < (Σx)² in a class."""
        if len(left.totals) < 2:
            return np.zeros(before.dimension, dtype=bool)
        n, s, q = left.column_weight, left.totals[0], left.totals[1]
        slack = 1e-8 * (before.column_weight * before.totals[1]).max(axis=0, initial=0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((n * q < s * s - slack).any(axis=0))

    def _leave_one_out(
        self, statistics: Sums, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        """Each row becomes one class: its class without the row, estimated again and evaluated at the row."""
        tables: dict[int, Array] = {}  # by largest value

        def density(rows: Any, codes: Codes, weights: Array) -> Array:
            rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
            result = fitted.log_density(rows)
            if self.support.whole and np.all(weights == 1.0) and len(rows):
                top = int(np.fmax.reduce(rows, axis=None, initial=0.0))
                small = top <= TABLE_VALUES and (top + 1) * len(statistics.classes) <= 4 * len(rows)
                if top in tables or small:
                    if top not in tables:
                        tables[top] = self._leave_one_out_table(statistics, estimation, names, top)
                    result[codes, np.arange(len(codes))] = sum_table_values(tables[top], rows, codes)
                    return result
            rest = statistics.leave_one_out(rows, codes, weights, self.collected, self.support.filler)
            result[codes, np.arange(len(codes))] = self._one_class_per_row(rest, rows, estimation, names)
            return result

        return density

    def _held_out_terms(self, statistics: Sums, rows: AnyArray, codes: Codes, weights: Array, whole: bool) -> Array:
        rest = statistics.leave_one_out(rows, codes, weights, self.collected, self.support.filler)
        fitted = self.estimate(rest, Estimation.BAYES, ("",) * rows.shape[1])
        assert isinstance(fitted, IndependentColumns)
        return fitted.paired_terms(rows, whole)

    def _leave_one_out_table(self, statistics: Sums, estimation: Estimation, names: Sequence[str], top: int) -> Array:
        """Leave-one-out log-densities of the whole numbers 0, …, top, (classes, top + 1, d).

        The sums without a row of weight 1 depend on its value alone. NaN marks values that the class cannot have had.
        """
        size, d = len(statistics.classes), statistics.dimension
        x = np.broadcast_to(np.tile(np.arange(top + 1.0), size)[:, None], (size * (top + 1), d))
        codes = np.repeat(np.arange(size), top + 1)
        rest = statistics.leave_one_out(x, codes, np.ones(len(x)), self.collected, self.support.filler)
        undetermined, never = np.zeros(x.shape, dtype=bool), rest.totals[0] < 0.0
        if not self._smooths(estimation):
            undetermined, rest = rest.unobserved(), rest.filled()
        rest = replace(rest, totals=np.maximum(rest.totals, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            fitted = self.estimate(rest, estimation, names)
            assert isinstance(fitted, IndependentColumns)
            terms = np.where(undetermined, -np.inf, fitted.log_terms(x, *fitted.parameters))
            terms = np.where(never, np.nan, terms)
        return np.where(fitted.informative, terms, 0.0).reshape(size, top + 1, d)

    def _one_class_per_row(self, rest: Sums, rows: AnyArray, estimation: Estimation, names: Sequence[str]) -> Array:
        """Log-density of row i under the sums of class i, (n,); −inf where these sums determine no estimate."""
        smooths = self._smooths(estimation)
        try:
            fitted = self.estimate(rest if smooths else rest.filled(), estimation, names)
        except NotEstimableError:
            if len(rows) == 1:
                return np.full(1, -np.inf)
            half = len(rows) // 2
            parts = (np.arange(half), np.arange(half, len(rows)))
            return np.concatenate(
                [self._one_class_per_row(rest.select(part), rows[part], estimation, names) for part in parts]
            )
        assert isinstance(fitted, IndependentColumns)
        lost = (rest.unobserved() & ~np.isnan(rows)).any(axis=1)
        return np.where(lost & (not smooths), -np.inf, fitted.paired(rows))


def _natural_total(
    fitted: NaturalColumns, sums: Sequence[Array | float], count: Array | float, carrier: Array | float = 0.0
) -> float:
    """θ·Σu − n·A + Σ log h over all classes and columns; a sum of 0 contributes 0 where θ is −inf."""
    theta, partition = fitted.natural()
    terms = carrier - count * partition
    for t, u in zip(theta, sums, strict=True):
        with np.errstate(invalid="ignore"):
            terms = terms + np.where(np.equal(u, 0.0), 0.0, t * u)
    return float(terms[:, fitted.informative].sum())


def varies(sums: Sums) -> Mask:
    """Whether each column takes more than one value.

    n·Σx² > (Σx)² decides. Sums of whole numbers up to 2⁵² are exact. Other columns count as constant where the
    difference is within the rounding error of sums of equal values, which grows with the number of rows.

    Parameters
    ----------
    sums : Sums
        Statistics of a `ColumnFamily` whose `collected` returns x and x² first.

    Returns
    -------
    bool array of shape (n_columns,)
    """
    sums = sums.whole
    parts = np.array([sums.column_weight, sums.totals[0], sums.totals[1]])
    n, s, q = parts.sum(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        beyond = ~np.isfinite(n * q)  # squares that overflow are not all equal
        if np.any((n * q < 0.999 * s * s) & (s * s > TINY)):
            raise InputError("`collected` of the family must return x and x² first: n·Σx² < (Σx)² in a column.")
        found = np.asarray(beyond | (n * q - s * s > EPS * (64.0 + sums.rows.sum(axis=0)) * n * q))
    doubtful = np.flatnonzero(~found & (q > 0.0) & (q <= EXACT_SUM))
    some = parts[:, :, doubtful]
    whole = np.all(some == np.floor(some), axis=(0, 1))
    n, s, q = n[doubtful], s[doubtful], q[doubtful]
    found[doubtful] = whole & (n * q > s * s)
    for i in np.flatnonzero(whole & (n * q > EXACT_SUM)):  # exact in Python's integers only
        found[doubtful[i]] = int(n[i]) * int(q[i]) > int(s[i]) ** 2
    return found


def constant_value(sums: Sums, function: int = 0, per: int | None = None) -> Array:
    """Return the mean of each column over all classes: the value of a constant column.

    Parameters
    ----------
    sums : Sums
        Statistics of a `ColumnFamily`.
    function : int, default=0
        Which of the functions that `collected` returns is averaged.
    per : int or None, default=None
        Divide by the sum of this function, such as an exposure. None divides by the number of rows.

    Returns
    -------
    array of shape (n_columns,)
    """
    whole = sums.whole
    n = (whole.column_weight if per is None else whole.totals[per]).sum(axis=0)
    return np.asarray(whole.totals[function].sum(axis=0) / np.where(n > 0.0, n, 1.0))


def typical_sizes(sizes: Array, weight: Array) -> Array:
    """The mean size of the rows of each class, (classes,), from sums; the overall mean where a class has no rows."""
    overall = sizes.sum() / max(float(weight.sum()), TINY)
    return np.where(weight > 0.0, sizes / np.where(weight > 0.0, weight, 1.0), overall)
