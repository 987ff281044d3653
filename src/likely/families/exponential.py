"""The exponential family of waiting times: the time until an event that occurs at a constant rate.

x | k ~ Exponential(rate_k): p(x) = rate·exp(−rate·x) for x >= 0. Natural form: u(x) = x, θ = −rate, A = −log rate,
h = 1. Conjugate prior: a gamma distribution of the rate, as pseudo-events (one per row) observed during an exposure.
The posterior predictive is a Lomax distribution, a/b·(1 + x/b)^(−a − 1) after a events during the exposure b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from likely.families.base import Conditionals
from likely.families.column_family import ColumnFamily, constant_value
from likely.families.estimation import Estimation, require_maximum
from likely.families.independent import IndependentColumns, Mask
from likely.families.natural import NaturalColumns
from likely.families.parameters import ColumnParameters, rate_errors
from likely.families.priors import (
    GammaPrior,
    check_prior,
    gamma_evidence,
    mean_inverse_rate,
    require_proper,
    with_pseudo_data,
)
from likely.families.supports import NON_NEGATIVE, POSITIVE
from likely.numerics.expressions import Expression, in_units, log1p
from likely.numerics.special import EPS
from likely.statistics.counts import across
from likely.statistics.sums import Sums
from likely.typing import Array

LARGEST = 1e300  # quotients and draws are clipped here instead of overflowing


class Exponential(ColumnFamily):
    """Exponential distribution for columns of waiting times and other numbers >= 0.

    Each column is independent within a class and has one parameter per class, the rate.

    Parameters
    ----------
    prior : GammaPrior or None, default=None
        Prior of the rate under ``estimation="map"`` and "bayes": pseudo-events, one per row, during an exposure. None
        is half an event, with the exposure for which the prior rate equals the overall rate of the column.

    See Also
    --------
    Gamma : The generalization with a shape parameter.
    Geometric : The counterpart for whole numbers.

    Examples
    --------
    >>> from likely import Exponential, GenerativeClassifier
    >>> model = GenerativeClassifier(Exponential()).fit([[0.1], [0.4], [3.0], [5.0]], ["fast", "fast", "slow", "slow"])
    >>> model.predict([[0.2], [4.0]])
    array(['fast', 'slow'], dtype='<U4')
    """

    support = NON_NEGATIVE
    _given_parameters = (("rate", POSITIVE),)

    def __init__(self, prior: GammaPrior | None = None) -> None:
        self.prior = prior

    def check(self, estimation: Estimation) -> None:
        check_prior(self.prior, GammaPrior, estimation)

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return x, np.sqrt(x)  # √x detects constant columns as x² would, and cannot overflow

    def _plugged_in(self, informative: Mask, constant: Array, parameters: Mapping[str, Array]) -> ExponentialDensity:
        return ExponentialDensity(informative, constant, parameters["rate"])

    def _column_parameters(self, statistics: Sums, fitted: Any, estimation: Estimation) -> ColumnParameters:
        events, exposure = self._posterior(statistics, estimation)
        exposure = np.where(exposure > 0.0, exposure, 1.0)  # of constant columns, which are ignored
        return {"rate": (_rate(events, exposure), rate_errors(events, exposure, estimation))}

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        informative, overall = _varies(statistics.whole), constant_value(statistics)
        require_proper(self.prior, statistics.totals[0], informative, statistics, names)
        events, exposure = self._posterior(statistics, estimation)
        if estimation == Estimation.BAYES:
            return ExponentialPredictive(informative, overall, events, exposure)
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
            require_maximum(informative & (exposure <= 0.0), statistics.classes, names, "is 0 in all rows of")
            exposure = np.where(exposure > 0.0, exposure, 1.0)
        return ExponentialDensity(informative, overall, _rate(events, exposure))

    def _posterior(self, statistics: Sums, estimation: Estimation) -> tuple[Array, Array]:
        """Events and their exposure, with those of the prior unless under maximum likelihood."""
        data = statistics.column_weight, statistics.totals[0]
        return with_pseudo_data(data, self._pseudo_events(statistics), estimation)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        return (sums.totals[0],), np.zeros_like(sums.totals[0])

    def _violates_jensen(self, left: Sums, before: Sums) -> Mask:
        """(Σ√x)² > n·Σx, or a negative Σ√x."""
        (total, roots), weight = left.totals, left.column_weight
        slack = 1e-8 * (before.column_weight * before.totals[0]).max(axis=0, initial=0.0)
        return np.asarray((roots * roots > weight * total + slack).any(axis=0) | (roots < -slack).any(axis=0))

    def _pseudo_events(self, statistics: Sums) -> tuple[float, Array]:
        """Pseudo-events of the prior and their exposure."""
        overall = constant_value(statistics)
        rate = _rate(np.ones_like(overall), np.where(overall > 0.0, overall, 1.0))
        return (self.prior or GammaPrior()).counted(rate)

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        events, exposure = self._pseudo_events(statistics)
        return (exposure,), events

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        prior = self._pseudo_events(statistics)
        terms = gamma_evidence(*prior, statistics.column_weight, statistics.totals[0])
        return float(terms[:, _varies(statistics)].sum())


def _rate(events: Array, exposure: Array) -> Array:
    """events / exposure, clipped instead of overflowing."""
    with np.errstate(over="ignore"):
        return np.minimum(events / exposure, LARGEST)


def _varies(statistics: Sums) -> Mask:
    """Whether √x varies beyond the rounding error of its sums, (d,).

    With n rows, columns with a standard deviation below about 1e-6·n^¼ of the mean count as constant.
    """
    weight = statistics.column_weight.sum(axis=0)
    rows = np.broadcast_to(across(statistics.rows), statistics.totals.shape[1:]).sum(axis=0)
    mean, root = statistics.totals.sum(axis=1) / np.where(weight > 0.0, weight, 1.0)
    return np.asarray(mean - root * root > 256.0 * EPS * np.sqrt(rows) * mean)


@dataclass(frozen=True, eq=False)
class ExponentialDensity(NaturalColumns):
    """Exponential distributions with plug-in rates."""

    rate: Array  # (classes, d)

    support: ClassVar = NON_NEGATIVE
    name: ClassVar = "Exponential"

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        return (-self.rate,), -np.log(self.rate)

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return (x,)

    def statistic_expressions(self, x: Expression) -> tuple[Expression, ...]:
        return (x,)

    def means(self) -> Array:
        return np.asarray(1.0 / self.rate)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return np.asarray(rng.exponential(size=(n, self.dimension)) / self.rate[label])


@dataclass(frozen=True, eq=False)
class ExponentialPredictive(IndependentColumns):
    """Lomax distributions: exponential ones with the rate integrated over Gamma(events, exposure)."""

    events: Array  # (classes, d)
    exposure: Array  # (classes, d)

    support: ClassVar = NON_NEGATIVE
    name: ClassVar = "Exponential"

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.events, self.exposure

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """log a − log b − (a + 1)·log(1 + x/b)."""
        events, exposure = parameters
        with np.errstate(over="ignore"):
            ratio = np.minimum(x / exposure, LARGEST)
        return np.asarray(np.log(events) - np.log(exposure) - (events + 1.0) * np.log1p(ratio))

    def expression(self, x: Expression, *parameters: float) -> Expression:
        events, exposure = parameters
        return float(np.log(events / exposure)) - (events + 1.0) * log1p(in_units(x, exposure))

    def means(self) -> Array:
        return mean_inverse_rate(self.events, self.exposure)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """By inversion: b·(exp(e/a) − 1) with an exponential variable e."""
        with np.errstate(over="ignore"):
            ratio = np.expm1(rng.exponential(size=(n, self.dimension)) / self.events[label])
            return np.asarray(np.minimum(self.exposure[label] * ratio, LARGEST))
