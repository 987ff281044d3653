"""The exponential family of waiting times: how long it takes until an event that comes at a constant rate.

x | k ~ Exponential(rate_k): p(x) = rate·exp(−rate·x) for x >= 0. Natural form: u(x) = x, θ = −rate, A = −log rate,
h = 1. Conjugate prior: a gamma distribution of the rate, counted as events (one a row) seen during some exposure.
The posterior predictive is a Lomax distribution, a/b·(1 + x/b)^(−a − 1) after a events during the exposure b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from likely.errors import NotEstimableError, listed
from likely.families.base import Conditionals
from likely.families.column_family import ColumnFamily, constant_value, inverse_mean
from likely.families.estimation import Estimation
from likely.families.independent import IndependentColumns, Mask, NaturalColumns
from likely.families.priors import GammaPrior, check_prior, gamma_evidence
from likely.families.supports import NON_NEGATIVE
from likely.numerics.special import EPS
from likely.statistics.counts import across
from likely.statistics.sums import Sums
from likely.typing import Array

LARGEST = 1e300  # quotients and what is drawn are kept inside the floats


class Exponential(ColumnFamily):
    """Exponential class-conditionals for columns of waiting times.

    Parameters
    ----------
    prior : under "map" and "bayes": a `GammaPrior`, which counts as events, one a row, seen during some exposure;
        None is half an event of each column during the exposure that makes the prior rate the overall rate.
    """

    support = NON_NEGATIVE

    def __init__(self, prior: GammaPrior | None = None) -> None:
        self.prior = prior

    def check(self, estimation: Estimation) -> None:
        check_prior(self.prior, GammaPrior, estimation)

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        """The root shows spread as the square would, and cannot overflow."""
        return x, np.sqrt(x)

    def _bent(self, left: Sums, before: Sums) -> Mask:
        """The mean of roots is at most the root of the mean."""
        (total, roots), weight = left.totals, left.column_weight
        slack = 1e-8 * (before.column_weight * before.totals[0]).max(axis=0, initial=0.0)
        return np.asarray((roots * roots > weight * total + slack).any(axis=0) | (roots < -slack).any(axis=0))

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        return (sums.totals[0],), np.zeros_like(sums.totals[0])

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        total, weight = statistics.totals[0], statistics.column_weight
        overall = constant_value(statistics)
        typical = np.where(overall > 0.0, _rate(np.ones_like(overall), np.where(overall > 0.0, overall, 1.0)), 0.0)
        events, exposure = (self.prior or GammaPrior()).counted(typical)
        terms = gamma_evidence(events, exposure, weight, total)
        return float(terms[:, _varies(statistics)].sum())

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        events, exposure = self._counted(statistics)
        return (exposure,), events

    def _counted(self, statistics: Sums) -> tuple[float, Array]:
        """What the prior counts for: events, and the time they took."""
        overall = constant_value(statistics)
        positive = overall > 0.0
        typical = np.where(positive, _rate(np.ones_like(overall), np.where(positive, overall, 1.0)), 0.0)
        return (self.prior or GammaPrior()).counted(typical)

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        (total, _), weight = statistics.totals, statistics.column_weight
        informative, overall = _varies(statistics.whole), constant_value(statistics)
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
            self._require_positive(informative & (total <= 0.0), statistics, names)
            return ExponentialDensity(informative, overall, rate=_rate(weight, np.where(total > 0.0, total, 1.0)))
        events, exposure = self._counted(statistics)
        if estimation == Estimation.MAP:
            return ExponentialDensity(informative, overall, rate=_rate(weight + events, total + exposure))
        return ExponentialPredictive(informative, overall, events=weight + events, exposure=total + exposure)

    @staticmethod
    def _require_positive(zero: Mask, statistics: Sums, names: Sequence[str]) -> None:
        """Under maximum likelihood: raise where all values of a class are 0."""
        if zero.any():
            k, j = np.argwhere(zero)[0]
            raise NotEstimableError(
                f"Column {names[j]!r} is 0 in all rows of class {listed(statistics.classes[k : k + 1])}, so its "
                "likelihood has no maximum. Use estimation='bayes' or 'map', or leave the column out."
            )


def _rate(events: Array, exposure: Array) -> Array:
    """Events per exposure, kept inside the floats."""
    with np.errstate(over="ignore"):
        return np.minimum(events / exposure, LARGEST)


def _varies(statistics: Sums) -> Mask:
    """Whether a column takes more than one value: whether its roots vary beyond the rounding of so many rows' sums.

    Of n rows, deviations below some 1e-6·n^¼ of the mean are not seen.
    """
    weight = statistics.column_weight.sum(axis=0)
    rows = np.broadcast_to(across(statistics.rows), statistics.totals.shape[1:]).sum(axis=0)
    mean, root = statistics.totals.sum(axis=1) / np.where(weight > 0.0, weight, 1.0)
    return np.asarray(mean - root * root > 256.0 * EPS * np.sqrt(rows) * mean)


@dataclass(frozen=True, eq=False)
class ExponentialDensity(NaturalColumns):
    """Exponential waiting times with plugged-in rates."""

    rate: Array  # (classes, d)

    support: ClassVar = NON_NEGATIVE
    name: ClassVar = "Exponential"
    carried: ClassVar[bool] = False

    def means(self) -> Array:
        return np.asarray(1.0 / self.rate)

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        return (-self.rate,), -np.log(self.rate)

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return (x,)

    @staticmethod
    def carrier(x: Array) -> Array:
        return np.zeros_like(x)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return np.asarray(rng.exponential(size=(n, self.dimension)) / self.rate[label])


@dataclass(frozen=True, eq=False)
class ExponentialPredictive(IndependentColumns):
    """Lomax waiting times: exponential rates integrated over Gamma(events, exposure)."""

    events: Array  # (classes, d)
    exposure: Array  # (classes, d)

    support: ClassVar = NON_NEGATIVE
    name: ClassVar = "Exponential"

    def means(self) -> Array:
        return inverse_mean(self.events, self.exposure)

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.events, self.exposure

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        events, exposure = parameters
        with np.errstate(over="ignore"):
            waited = np.minimum(x / exposure, LARGEST)
        return np.asarray(np.log(events) - np.log(exposure) - (events + 1.0) * np.log1p(waited))

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        with np.errstate(over="ignore"):
            waited = np.expm1(rng.exponential(size=(n, self.dimension)) / self.events[label])
            return np.asarray(np.minimum(self.exposure[label] * waited, LARGEST))
