"""The negative binomial family: how many failures come before a given number of successes.

x | k ~ NegativeBinomial(r, p_k): p(x) = Γ(x + r)/(Γ(r)·x!)·pʳ·(1 − p)ˣ for x = 0, 1, 2, …, where the dispersion
r > 0 is given, need not be whole, and is the same in all classes. Natural form: u(x) = x, θ = log(1 − p),
A = −r·log p, h = Γ(x + r)/(Γ(r)·x!). Conjugate prior: a beta distribution of p, counted as successes (r a row) and
failures seen before any rows. The posterior predictive is beta negative binomial,
Γ(x + r)/(Γ(r)·x!)·B(a + r, b + x)/B(a, b) after a successes and b failures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.special

from likely.errors import InputError
from likely.families.base import Conditionals
from likely.families.column_family import ColumnFamily, bent_squares, constant_value, inverse_mean, varies
from likely.families.estimation import Estimation
from likely.families.independent import IndependentColumns, Mask, NaturalColumns
from likely.families.priors import BetaPrior, check_prior
from likely.families.supports import COUNTS
from likely.numerics.count_densities import LARGEST_COUNT, deviance, negative_binomial_log_density
from likely.numerics.special import LOG_2PI, TINY, log_repeated, stirling_error
from likely.statistics.sums import Sums
from likely.typing import Array

LARGEST_MEAN = 1e18  # beyond this NumPy draws no Poisson counts


class NegativeBinomial(ColumnFamily):
    """Negative binomial class-conditionals for columns of counts that scatter more than Poisson counts.

    Parameters
    ----------
    dispersion : the number r of successes that are waited for, in all classes. Around a mean m the variance is
        m + m²/r: 1 is the geometric distribution, and a large number comes close to the Poisson distribution.
    prior : under "map" and "bayes": a `BetaPrior`, which counts as successes and failures seen; None is half a
        success and half a failure.
    """

    support = COUNTS
    _reads_sparse = True

    def __init__(self, dispersion: float = 1.0, prior: BetaPrior | None = None) -> None:
        self.dispersion = dispersion
        self.prior = prior

    def check(self, estimation: Estimation) -> None:
        if not (isinstance(self.dispersion, Real) and 0.0 < self.dispersion < np.inf):
            raise InputError(f"dispersion={self.dispersion!r} must be a positive finite number.")
        check_prior(self.prior, BetaPrior, estimation)

    def collected(self, x: Array) -> tuple[Array, ...]:
        return x, x * x, log_repeated(x, float(self.dispersion))

    def _bent(self, left: Sums, before: Sums) -> Mask:
        return bent_squares(left, before)

    def _statistics_key(self) -> tuple[Any, ...]:
        return (*super()._statistics_key(), self.dispersion)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        return (sums.totals[0],), sums.totals[2]

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        successes, failures = (self.prior or BetaPrior()).counted()
        (total, _, ways), weight = statistics.totals, statistics.column_weight
        after = scipy.special.betaln(self.dispersion * weight + successes, total + failures)
        terms = after - scipy.special.betaln(successes, failures) + ways
        return float(terms[:, varies(statistics)].sum())

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        successes, failures = (self.prior or BetaPrior()).counted()
        return (failures,), successes / float(self.dispersion)

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        total, weight = statistics.totals[0], statistics.column_weight
        informative, overall, r = varies(statistics), constant_value(statistics), float(self.dispersion)
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
            return NegativeBinomialConditionals(informative, overall, r, failures=total / (r * weight))
        before, failures = (self.prior or BetaPrior()).counted()
        successes, failures = r * weight + before, total + failures
        if estimation == Estimation.MAP:
            return NegativeBinomialConditionals(informative, overall, r, failures=failures / successes)
        return NegativeBinomialPredictive(informative, overall, r, successes, failures)

    def describe(self) -> str:
        return f"NegativeBinomial, dispersion {self.dispersion:g}"


@dataclass(frozen=True, eq=False)
class NegativeBinomialConditionals(NaturalColumns):
    """Negative binomial counts with plugged-in probabilities.

    They are kept as (1 − p)/p, which is exact where p is near 0 and where it is near 1.
    """

    dispersion: float
    failures: Array  # for each success, (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "NegativeBinomial"

    def means(self) -> Array:
        return np.asarray(self.dispersion * self.failures)

    @property
    def probability(self) -> Array:
        """p, (classes, d)."""
        return np.asarray(1.0 / (1.0 + self.failures))

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        with np.errstate(divide="ignore"):
            return (-np.log1p(1.0 / self.failures),), self.dispersion * np.log1p(self.failures)

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return (x,)

    def carrier(self, x: Array) -> Array:
        return log_repeated(x, self.dispersion)

    @property
    def parameters(self) -> tuple[Array, ...]:
        return (self.failures,)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """In a form that stays exact for large counts."""
        (failures,) = parameters
        never = failures == 0.0
        density = negative_binomial_log_density(x, np.asarray(self.dispersion), 1.0 / np.where(never, 1.0, failures))
        return np.where(never, np.where(x == 0.0, 0.0, -np.inf), density)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _draw(self.dispersion, np.broadcast_to(self.failures[label], (n, self.dimension)), rng)


@dataclass(frozen=True, eq=False)
class NegativeBinomialPredictive(IndependentColumns):
    """Beta negative binomial counts: probabilities integrated over Beta(successes, failures)."""

    dispersion: float
    successes: Array  # (classes, d)
    failures: Array  # (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "NegativeBinomial"

    def means(self) -> Array:
        return np.asarray(self.dispersion * inverse_mean(self.successes, self.failures))

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.successes, self.failures

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """By binomial chances, of any p: C(r + x, r) and C(a + b, a) over C(a + b + r + x, a + r), times a rational.

        With the p of the last, (a + r)/(a + b + r + x), nothing cancels (Loader 2000).
        """
        (a, b), r = parameters, np.asarray(self.dispersion)
        x = np.minimum(x, LARGEST_COUNT)
        t = a + b + r + x
        p, q = (a + r) / t, (b + x) / t
        return np.asarray(
            np.log(r / (r + x))
            + np.log(a / (a + b) * (b / (b + x)) / p)
            + (_rest(r + x) - _rest(r) - _rest(x))
            + (_rest(a + b) - _rest(a) - _rest(b))
            - (_rest(t) - _rest(a + r) - _rest(b + x))
            - (deviance(r, (r + x) * p) + deviance(x, (r + x) * q))
            - (deviance(a, (a + b) * p) + deviance(b, (a + b) * q))
        )

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        size = (n, self.dimension)
        successes = np.maximum(rng.gamma(self.successes[label], size=size), TINY)
        return _draw(self.dispersion, rng.gamma(self.failures[label], size=size) / successes, rng)


def _rest(x: Array) -> Array:
    """log Γ(x + 1) − x·log x + x for x >= 0."""
    safe = np.where(x > 0.0, x, 1.0)
    return np.where(x > 0.0, stirling_error(safe) + 0.5 * (LOG_2PI + np.log(safe)), 0.0)


def _draw(dispersion: float, failures: Array, rng: np.random.Generator) -> Array:
    """Negative binomial counts, given failures for each success: Poisson counts of a rate that is gamma."""
    with np.errstate(over="ignore"):
        rate = rng.gamma(dispersion, size=failures.shape) * failures
    return rng.poisson(np.minimum(rate, LARGEST_MEAN)).astype(np.float64)
