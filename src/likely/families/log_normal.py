"""The log-normal family: positive numbers whose logarithms are Gaussian, in independent columns or one joint block.

log x | k ~ Normal(μ_k, Σ_k), so log p(x | k) is the Gaussian log-density of log x, minus Σ log x. Natural form: that of
the Gaussian family in u(log x), with the carrier h(log x)/Πx. The conjugate prior is that of the Gaussian family. The
posterior predictive is a log-Student t distribution. Where only some columns are logarithms, one Gaussian describes
them together with the other columns, and the Jacobian has the logarithms of those columns alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from likely.errors import CellError, ExportError, InputError, NoEvidenceError, listed
from likely.families.base import Columns, Completion, Conditionals, ExponentialConditionals, Family, LeaveOneOutDensity
from likely.families.estimation import Estimation, no_maximum_error
from likely.families.gaussian.densities import GaussianConditionals
from likely.families.gaussian.elliptical import Elliptical
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.prior import NormalInverseWishart
from likely.families.independent import Mask
from likely.families.parameters import Parameter
from likely.families.supports import POSITIVE
from likely.numerics.expressions import Cell, Expression, finite, log
from likely.numerics.missingness import patterns
from likely.statistics.accumulator import Accumulator, RowAccumulator
from likely.statistics.counts import across
from likely.statistics.moments import Moments
from likely.statistics.pattern_moments import PatternMoments
from likely.typing import AnyArray, Array, Codes, Index, SharingLike

SMALLEST, LARGEST = -708.0, 709.0  # logarithms of the positive normal floats
NARROW = 1e-8  # standard deviations of logarithms below this part of their mean have too few digits to be exported


class LogNormal(Family):
    """Log-normal distribution for columns of positive numbers, such as incomes and concentrations.

    By default each column is independent within a class and has two parameters, the mean and the variance of its
    logarithm. With a full covariance the logarithms have a joint Gaussian density, together with columns that are not
    logarithms if `log` names only some of them.

    Parameters
    ----------
    shared : bool or sequence of sequences of classes, default=False
        Which classes have a pooled variance of the logarithms: False for none, True for all, or groups of classes, as
        in ``[["a", "b"]]``; classes in no group have a per-class variance.
    prior : NormalInverseWishart or None, default=None
        Prior of the means and variances of the logarithms under ``estimation="map"`` and "bayes". None is the weak
        default of `NormalInverseWishart`.
    covariance : {"diagonal", "full"}, default="diagonal"
        Structure of the covariance of the logarithms: independent columns, or a joint density.
    log : sequence of str or None, default=None
        Names of the columns whose logarithm is Gaussian; the other columns of the block are Gaussian themselves. None
        is all columns. Columns of arrays have the names "x0", "x1" and so on.

    See Also
    --------
    Gaussian : The family of the logarithms.
    Gamma : Positive numbers with a lighter right tail.

    Examples
    --------
    >>> from likely import GenerativeClassifier, LogNormal
    >>> X = [[1.0], [3.0], [9.0], [100.0], [400.0], [900.0]]
    >>> model = GenerativeClassifier(LogNormal(shared=True)).fit(X, ["small"] * 3 + ["large"] * 3)
    >>> model.predict([[5.0], [200.0]])
    array(['small', 'large'], dtype='<U5')

    A joint density of the logarithm of one column and of another column:

    >>> X = [[1.0, 2.1], [3.0, 2.9], [9.0, 4.2], [100.0, 2.0], [400.0, 3.5], [900.0, 3.9]]
    >>> model = GenerativeClassifier(LogNormal(shared=True, covariance="full", log=["x0"]))
    >>> model.fit(X, ["small"] * 3 + ["large"] * 3).predict([[5.0, 3.0], [200.0, 3.0]])
    array(['small', 'large'], dtype='<U5')
    """

    def __init__(
        self,
        shared: SharingLike = False,
        prior: NormalInverseWishart | None = None,
        covariance: str = "diagonal",
        log: Sequence[str] | None = None,
    ) -> None:
        self.shared = shared
        self.prior = prior
        self.covariance = covariance
        self.log = log

    @property
    def _gaussian(self) -> Gaussian:
        """The family of the logarithms."""
        return Gaussian(self.covariance, shared=self.shared, prior=self.prior)

    @property
    def _independent(self) -> bool:
        return self.covariance == "diagonal"

    def _with_covariance(self, covariance: str, shared: bool) -> Family | None:
        if self._independent:
            return None
        if covariance == "spherical":  # of x and log x
            return Gaussian(covariance, shared)
        return LogNormal(shared, covariance=covariance, log=self.log)

    @property
    def _needs_complete_rows(self) -> bool:
        return self._gaussian._needs_complete_rows

    @property
    def _sums_missing_values(self) -> bool:
        return self._gaussian._sums_missing_values

    def _complete(
        self, statistics: Any, estimation: Estimation, names: Sequence[str], max_iter: int, tol: float
    ) -> Completion:
        return self._gaussian._complete(statistics, estimation, names, max_iter, tol)

    def check(self, estimation: Estimation) -> None:
        if self.covariance not in ("diagonal", "full"):
            raise InputError(f"LogNormal(covariance={self.covariance!r}): must be 'diagonal' or 'full'.")
        if self.log is not None and (
            isinstance(self.log, str) or not all(isinstance(name, str) for name in self.log) or not len(self.log)
        ):
            raise InputError(f"LogNormal(log={self.log!r}): must be names of columns in a sequence, or None for all.")
        self._gaussian.check(estimation)

    def describe(self) -> str:
        if self.log is None:
            return f"LogNormal: log x is {self._gaussian.describe()}"
        return f"LogNormal: log of {listed(self.log, limit=4)} in {self._gaussian.describe()}"

    def _logged(self, names: Sequence[str]) -> Mask:
        """Whether each column is a logarithm, (d,)."""
        return np.array([self.log is None or name in self.log for name in names], dtype=bool)

    def _accumulator(self, classes: AnyArray, columns: Columns) -> LogAccumulator:
        unknown = [name for name in self.log or () if name not in columns.names]
        if unknown:
            raise InputError(
                f"LogNormal(log=...) names {listed(unknown)}, which is not a column of the block: "
                f"{listed(columns.names)}."
            )
        return LogAccumulator(self._gaussian._accumulator(classes, columns), self._logged(columns.names))

    def _statistics_key(self) -> tuple[Any, ...]:
        return (*super()._statistics_key(), None if self.log is None else tuple(self.log))

    def _common_collector(self, other: LogNormal) -> LogNormal:
        both = self._gaussian._common_collector(other._gaussian)
        return LogNormal(both.shared, covariance=both.covariance, log=self.log)

    def _project_statistics(self, statistics: Moments | PatternMoments) -> Moments | PatternMoments:
        return self._gaussian._project_statistics(statistics)

    def _expected_accumulator(self, builder: LogAccumulator, fitted: Conditionals) -> Any:
        assert isinstance(fitted, LogTransformed)
        return replace(builder, inner=self._gaussian._expected_accumulator(builder.inner, fitted.inner))

    def _initial_family(self) -> LogNormal:
        return LogNormal(self.shared, log=self.log) if self.covariance == "full" else self

    def _parameters(
        self, statistics: Moments, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        assert isinstance(fitted, LogTransformed)
        logs = {f"log({name})": name for name, logged in zip(names, fitted.logged, strict=True) if logged}
        shown = [f"log({name})" if logged else name for name, logged in zip(names, fitted.logged, strict=True)]
        return [
            replace(each, column=logs[each.column], name=f"{each.name} of the logarithm")
            if each.column in logs
            else each
            for each in self._gaussian._parameters(statistics, fitted.inner, estimation, shown)
        ]

    def estimate(self, statistics: Moments, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        if estimation == Estimation.MLE and self._independent:
            _require_variance(statistics, names)
        inner = self._gaussian.estimate(statistics, estimation, names)
        if isinstance(inner, GaussianConditionals):
            return LogNormalConditionals(inner, self._logged(names))
        assert isinstance(inner, Elliptical)
        return LogTransformed(inner, self._logged(names))

    def _given(self, values: Mapping[str, Any], size: int, names: Sequence[str]) -> Conditionals:
        inner = self._gaussian._given(values, size, names)
        assert isinstance(inner, GaussianConditionals)
        return LogNormalConditionals(inner, self._logged(names))

    def _given_table(self, fitted: Any, names: Sequence[str]) -> list[Parameter]:
        return [
            replace(each, name=f"{each.name} of the logarithm")
            for each in self._gaussian._given_table(fitted.inner, names)
        ]

    def _with_fixed_prior(self, statistics: Moments, estimation: Estimation) -> LogNormal:
        inner = self._gaussian._with_fixed_prior(statistics, estimation)
        return LogNormal(self.shared, inner.prior, self.covariance, self.log)

    def _log_prior(self, statistics: Moments, fitted: Conditionals) -> float:
        assert isinstance(fitted, LogTransformed)
        return self._gaussian._log_prior(statistics, fitted.inner)

    def _leave_one_out(
        self, statistics: Moments, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        assert isinstance(fitted, LogTransformed)
        inner = self._gaussian._leave_one_out(statistics, fitted.inner, estimation, names)

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            logs = _logarithms(rows, fitted.logged)
            return np.asarray(inner(logs, codes, weights) + fitted.carrier_terms(logs).sum(axis=1))

        return density

    def _held_out_terms(self, statistics: Moments, rows: AnyArray, codes: Codes, weights: Array, whole: bool) -> Array:
        logs = _logarithms(rows, np.ones(rows.shape[1], dtype=bool))
        students = self._gaussian._held_out_students(statistics, logs, codes, weights)
        if whole:
            return students.log_terms(logs, (np.log(rows - 0.5), np.log(rows + 0.5)))
        return students.log_terms(logs) - np.nan_to_num(logs)

    def _log_likelihood(
        self, statistics: Moments | PatternMoments, fitted: Conditionals, names: Sequence[str]
    ) -> float:
        if not isinstance(fitted, LogNormalConditionals):
            raise NoEvidenceError("a posterior predictive has no plug-in parameters")
        owner = fitted.inner.covariance.owner
        return self._gaussian._log_likelihood(statistics, fitted.inner, names) - _log_total(
            statistics.available if isinstance(statistics, PatternMoments) else statistics, owner[fitted.logged[owner]]
        )

    def _n_parameters(self, statistics: Moments, names: Sequence[str]) -> int:
        return self._gaussian._n_parameters(statistics, names)

    def _log_evidence(self, statistics: Moments, names: Sequence[str]) -> float:
        """The evidence of the logarithms, minus their sum."""
        return self._gaussian._log_evidence(statistics, names) - _log_total(
            statistics, np.flatnonzero(statistics.has_variance() & self._logged(names))
        )


def _log_total(moments: Moments, columns: Index) -> float:
    """Σ log x over the rows and some of the columns."""
    logs = moments.coordinates.to_user(moments.mean)[:, columns]
    weight = np.broadcast_to(across(moments.weight), moments.mean.shape)[:, columns]
    return float((weight * logs).sum())


def _require_variance(moments: Moments, names: Sequence[str]) -> None:
    """Under maximum likelihood: raise if a column that varies is constant within the classes of a variance."""
    seen = (moments.group_weight() > 0.0).reshape(len(moments.scatter), -1)
    constant = moments.has_variance() & seen & (moments.squares <= 0.0)
    if constant.any():
        g, j = np.argwhere(constant)[0]
        raise no_maximum_error(names[j], moments.classes[moments.group == g], "does not vary within")


@dataclass(frozen=True, slots=True, eq=False)
class LogAccumulator(RowAccumulator):
    """Sums the moments of logarithms over row blocks."""

    inner: Accumulator
    logged: Mask

    @property
    def groups(self) -> Index | None:
        return self.inner.groups

    @property
    def block_rows(self) -> int:
        return self.inner.block_rows

    def _add(self, block: AnyArray, codes: Codes, weights: Array | None) -> None:
        self.inner.add(_logarithms(block, self.logged), codes, weights)

    def finish(self) -> Any:
        """The moments of all blocks so far."""
        return self.inner.finish()


def _logarithms(rows: AnyArray, logged: Mask) -> Array:
    """Rows with the logarithms of checked values in some columns; NaN is a missing value, and remains NaN."""
    if logged.all():
        POSITIVE.check(rows, "LogNormal")
        return np.log(np.asarray(rows, dtype=np.float64))
    found = np.array(rows, dtype=np.float64)
    columns = np.flatnonzero(logged)
    try:
        POSITIVE.check(rows[:, columns], "LogNormal")
    except CellError as error:
        raise error.at(error.row, int(columns[error.column])) from None
    found[:, columns] = np.log(found[:, columns])
    return found


@dataclass(frozen=True, eq=False)
class LogTransformed(Conditionals):
    """Distributions of columns of which some, or their logarithms, have the distributions `inner`."""

    inner: Elliptical
    logged: Mask  # which columns are logarithms, (d,)

    def expectation(self, rows: AnyArray, label: int) -> Array:
        """exp(mean + ½·variance) given the observed values, also for the predictive, whose expectation is infinite."""
        logs = _logarithms(rows, self.logged)
        found, matrix = self.inner.expectation(logs, label), self.inner.class_covariance(label)
        for index, observed in patterns(logs):
            rest = np.setdiff1d(np.flatnonzero(self.logged), observed)
            variance = np.diagonal(matrix)[rest]
            if len(observed):
                across_observed = matrix[np.ix_(rest, observed)]
                solved = np.linalg.pinv(matrix[np.ix_(observed, observed)], hermitian=True) @ across_observed.T
                variance = variance - np.einsum("ro,or->r", across_observed, solved)
            found[np.ix_(index, rest)] += 0.5 * np.maximum(variance, 0.0)
        with np.errstate(over="ignore"):
            return np.where(self.logged, np.exp(np.minimum(np.where(self.logged, found, 0.0), LARGEST)), found)

    @property
    def n_classes(self) -> int:
        return self.inner.n_classes

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    @property
    def width(self) -> int:
        return self.inner.width + 2 * self.dimension

    def carrier_terms(self, logs: Array) -> Array:
        """−log x of every value; 0 for missing values, constant columns and columns that are not logarithms."""
        terms = np.zeros_like(logs)
        owner = self.inner.covariance.owner
        owner = owner[self.logged[owner]]
        terms[:, owner] = -np.nan_to_num(logs[:, owner])
        return terms

    def outside_support(self, rows: AnyArray) -> Mask:
        with np.errstate(invalid="ignore"):
            return np.asarray(self.logged & (rows <= 0.0) & np.isfinite(rows))

    def log_density(self, rows: AnyArray) -> Array:
        logs = _logarithms(rows, self.logged)
        return np.asarray(self.inner.log_density(logs) + self.carrier_terms(logs).sum(axis=1))

    def scores(self, rows: AnyArray) -> Array:
        return self.inner.scores(_logarithms(rows, self.logged))

    def expressions(self, cells: Sequence[Cell]) -> list[Expression] | None:
        if (self.inner.relative_deviations()[self.logged] < NARROW).any():
            raise ExportError(
                f"the standard deviation of the logarithms of a column is less than {NARROW:g} of their mean, and "
                "rounding errors of logarithms would change the probabilities; subtract a constant from the column "
                "before the fit, or declare Gaussian('diagonal')"
            )
        return self.inner.expressions(
            [
                Cell(log(cell.filled(1.0)), cell.missing) if logged else cell
                for cell, logged in zip(cells, self.logged.tolist(), strict=True)
            ]
        )

    def inside(self, column: int, x: Expression) -> Expression:
        return finite(x) & (x > 0.0) if self.logged[column] else finite(x)

    @property
    def is_joint(self) -> bool:
        return self.inner.is_joint

    @property
    def incomplete_steps(self) -> int | None:
        return self.inner.incomplete_steps

    def explain(self, rows: AnyArray) -> Array:
        logs = _logarithms(rows, self.logged)
        return self.inner.explain(logs) + self.carrier_terms(logs)[:, None]

    def explain_sequential(self, rows: AnyArray) -> Array:
        logs = _logarithms(rows, self.logged)
        return self.inner.explain_sequential(logs) + self.carrier_terms(logs)[:, None]

    def column_log_densities(self, rows: AnyArray) -> Array:
        logs = _logarithms(rows, self.logged)
        return self.inner.column_log_densities(logs) + self.carrier_terms(logs)[:, None]

    def class_terms(self, rows: AnyArray, label: int) -> Array | None:
        logs = _logarithms(rows, self.logged)
        terms = self.inner.class_terms(logs, label)
        return None if terms is None else terms + self.carrier_terms(logs)

    def class_log_density(self, rows: AnyArray, codes: Codes) -> Array:
        logs = _logarithms(rows, self.logged)
        return np.asarray(self.inner.class_log_density(logs, codes) + self.carrier_terms(logs).sum(axis=1))

    @property
    def has_linear_contrasts(self) -> bool:
        return self.inner.has_linear_contrasts

    def contrast(self, rows: AnyArray, first: int, second: int) -> Array | None:
        return self.inner.contrast(_logarithms(rows, self.logged), first, second)

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        drawn = self.inner.sample(label, n, rng)
        drawn[:, self.logged] = np.exp(np.clip(drawn[:, self.logged], SMALLEST, LARGEST))
        return drawn

    def marginal(self, columns: Index) -> Self:
        return replace(self, inner=self.inner.marginal(columns), logged=self.logged[columns])

    def ignored_columns(self) -> Index:
        return self.inner.ignored_columns()

    def notes(self, names: Sequence[str]) -> list[str]:
        return self.inner.notes(names)


@dataclass(frozen=True, eq=False)
class LogNormalConditionals(LogTransformed, ExponentialConditionals):
    """Log-normal distributions with plug-in means and variances of the logarithms."""

    inner: GaussianConditionals

    def natural_parameters(self) -> Array:
        return self.inner.natural_parameters()

    def sufficient_statistics(self, rows: AnyArray) -> Array:
        return self.inner.sufficient_statistics(_logarithms(rows, self.logged))

    def log_partition(self) -> Array:
        return self.inner.log_partition()

    def log_carrier(self, rows: AnyArray) -> Array:
        logs = _logarithms(rows, self.logged)
        return np.asarray(self.inner.log_carrier(logs) + self.carrier_terms(logs).sum(axis=1))
