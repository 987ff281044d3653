"""The log-normal family: positive numbers whose logarithms are Gaussian, in independent columns.

log x | k ~ Normal(μ_k, σ_k²), so log p(x | k) is the Gaussian log-density of log x, minus log x. Natural form: that of
the Gaussian family in u(log x), with the carrier h(log x)/x. The conjugate prior is that of the Gaussian family, normal
and inverse gamma for each column. The posterior predictive is a log-Student t distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from likely.errors import NoEvidenceError
from likely.families.base import (
    Columns,
    Conditionals,
    ExponentialConditionals,
    Family,
    LeaveOneOutDensity,
    no_maximum_error,
)
from likely.families.estimation import Estimation
from likely.families.gaussian.densities import Elliptical, GaussianConditionals
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.prior import NormalInverseWishart
from likely.families.supports import POSITIVE
from likely.statistics.accumulator import Accumulator
from likely.statistics.counts import across
from likely.statistics.moments import Moments
from likely.typing import AnyArray, Array, Codes, Index, SharingLike

SMALLEST, LARGEST = -708.0, 709.0  # logarithms of the positive normal floats


class LogNormal(Family):
    """Log-normal distribution for columns of positive numbers, such as incomes and concentrations.

    Each column is independent within a class and has two parameters, the mean and the variance of its logarithm.

    Parameters
    ----------
    shared : bool or sequence of sequences of classes, default=False
        Which classes have a pooled variance of the logarithms: False for none, True for all, or groups of classes, as
        in ``[["a", "b"]]``; classes in no group have a per-class variance.
    prior : NormalInverseWishart or None, default=None
        Prior of the means and variances of the logarithms under ``estimation="map"`` and "bayes". None is the weak
        default of `NormalInverseWishart`.

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
    """

    def __init__(self, shared: SharingLike = False, prior: NormalInverseWishart | None = None) -> None:
        self.shared = shared
        self.prior = prior

    @property
    def _gaussian(self) -> Gaussian:
        """The family of the logarithms."""
        return Gaussian("diagonal", shared=self.shared, prior=self.prior)

    def check(self, estimation: Estimation) -> None:
        self._gaussian.check(estimation)

    def describe(self) -> str:
        return f"LogNormal: log x is {self._gaussian.describe()}"

    def _accumulator(self, classes: AnyArray, columns: Columns) -> LogAccumulator:
        return LogAccumulator(self._gaussian._accumulator(classes, columns))

    def _statistics_key(self) -> tuple[Any, ...]:
        return (*super()._statistics_key(), str(self.shared))

    def estimate(self, statistics: Moments, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        if estimation == Estimation.MLE:
            _require_variance(statistics, names)
        inner = self._gaussian.estimate(statistics, estimation, names)
        if isinstance(inner, GaussianConditionals):
            return LogNormalConditionals(inner)
        assert isinstance(inner, Elliptical)
        return LogTransformed(inner)

    def _with_fixed_prior(self, statistics: Moments, estimation: Estimation) -> LogNormal:
        inner = self._gaussian._with_fixed_prior(statistics, estimation)
        return LogNormal(self.shared, inner.prior)

    def _log_prior(self, statistics: Moments, fitted: Conditionals) -> float:
        assert isinstance(fitted, LogTransformed)
        return self._gaussian._log_prior(statistics, fitted.inner)

    def _leave_one_out(
        self, statistics: Moments, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        assert isinstance(fitted, LogTransformed)
        inner = self._gaussian._leave_one_out(statistics, fitted.inner, estimation, names)

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            logs = _logarithms(rows)
            return np.asarray(inner(logs, codes, weights) + fitted.carrier_terms(logs).sum(axis=1))

        return density

    def _log_likelihood(self, statistics: Moments, fitted: Conditionals, names: Sequence[str]) -> float:
        if not isinstance(fitted, LogNormalConditionals):
            raise NoEvidenceError("a posterior predictive has no plug-in parameters")
        return self._gaussian._log_likelihood(statistics, fitted.inner, names) - _log_total(
            statistics, fitted.inner.covariance.owner
        )

    def _n_parameters(self, statistics: Moments, names: Sequence[str]) -> int:
        return self._gaussian._n_parameters(statistics, names)

    def _log_evidence(self, statistics: Moments, names: Sequence[str]) -> float:
        """The evidence of the logarithms, minus their sum."""
        return self._gaussian._log_evidence(statistics, names) - _log_total(
            statistics, np.flatnonzero(statistics.has_variance())
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
class LogAccumulator:
    """Sums the moments of logarithms over row blocks."""

    inner: Accumulator

    @property
    def groups(self) -> Index | None:
        return self.inner.groups

    @property
    def block_rows(self) -> int:
        return self.inner.block_rows

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        """Add rows (n, d) with their class codes and weights; rows of weight 0 are skipped."""
        if weights is not None and not np.all(weights > 0.0):
            block = np.where((weights > 0.0)[:, None], block, POSITIVE.filler)
        self.inner.add(_logarithms(block), codes, weights)

    def finish(self) -> Any:
        """The moments of all blocks so far."""
        return self.inner.finish()


def _logarithms(rows: AnyArray) -> Array:
    """Logarithms of checked values; NaN is a missing value, and remains NaN."""
    POSITIVE.check(rows, "LogNormal")
    return np.log(np.asarray(rows, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class LogTransformed(Conditionals):
    """Distributions of positive columns whose logarithms have the distributions `inner`."""

    inner: Elliptical

    def expectation(self, rows: AnyArray, label: int) -> Array:
        """exp(mean + ½·variance), also for the predictive, whose expectation is infinite."""
        variance = np.diagonal(self.inner.class_covariance(label))
        mean = self.inner.class_means()[label]
        return np.broadcast_to(np.exp(mean + 0.5 * variance), (len(rows), self.dimension))

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
        """−log x of every value; 0 for missing values and constant columns."""
        terms = np.zeros_like(logs)
        owner = self.inner.covariance.owner
        terms[:, owner] = -np.nan_to_num(logs[:, owner])
        return terms

    def log_density(self, rows: AnyArray) -> Array:
        logs = _logarithms(rows)
        return np.asarray(self.inner.log_density(logs) + self.carrier_terms(logs).sum(axis=1))

    def scores(self, rows: AnyArray) -> Array:
        return self.inner.scores(_logarithms(rows))

    def explain(self, rows: AnyArray) -> Array:
        logs = _logarithms(rows)
        return self.inner.explain(logs) + self.carrier_terms(logs)[:, None]

    def class_terms(self, rows: AnyArray, label: int) -> Array | None:
        logs = _logarithms(rows)
        terms = self.inner.class_terms(logs, label)
        return None if terms is None else terms + self.carrier_terms(logs)

    def class_log_density(self, rows: AnyArray, codes: Codes) -> Array:
        logs = _logarithms(rows)
        return np.asarray(self.inner.class_log_density(logs, codes) + self.carrier_terms(logs).sum(axis=1))

    @property
    def has_linear_contrasts(self) -> bool:
        return self.inner.has_linear_contrasts

    def contrast(self, rows: AnyArray, first: int, second: int) -> Array | None:
        return self.inner.contrast(_logarithms(rows), first, second)

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return np.exp(np.clip(self.inner.sample(label, n, rng), SMALLEST, LARGEST))

    def marginal(self, columns: Index) -> Self:
        return replace(self, inner=self.inner.marginal(columns))

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
        return self.inner.sufficient_statistics(_logarithms(rows))

    def log_partition(self) -> Array:
        return self.inner.log_partition()

    def log_carrier(self, rows: AnyArray) -> Array:
        logs = _logarithms(rows)
        return np.asarray(self.inner.log_carrier(logs) + self.carrier_terms(logs).sum(axis=1))
