"""The negative binomial family: the number of failures before a given number of successes.

x | k ~ NegativeBinomial(r, p_k): p(x) = Γ(x + r)/(Γ(r)·x!)·pʳ·(1 − p)ˣ for x = 0, 1, 2, … The dispersion r > 0 is
given, need not be whole, and is the same in all classes. Natural form: u(x) = x, θ = log(1 − p), A = −r·log p,
h = Γ(x + r)/(Γ(r)·x!). Conjugate prior: a beta distribution of p, as pseudo-counts of successes (r per row) and
failures. The posterior predictive is beta negative binomial, Γ(x + r)/(Γ(r)·x!)·B(a + r, b + x)/B(a, b) after a
successes and b failures.
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
from likely.families.column_family import ColumnFamily, constant_value, squares_violate_jensen, varies
from likely.families.estimation import Estimation
from likely.families.independent import IndependentColumns, Mask
from likely.families.natural import NaturalColumns
from likely.families.parameters import ColumnParameters, waiting_errors
from likely.families.priors import BetaPrior, check_prior, draw_failure_odds, mean_inverse_rate
from likely.families.supports import COUNTS
from likely.numerics.count_densities import deviance, negative_binomial_log_density
from likely.numerics.expressions import Expression, log_gamma_ratios
from likely.numerics.special import LOG_2PI, log_repeated, stirling_error
from likely.statistics.sums import Sums
from likely.typing import Array

LARGEST_MEAN = 1e18  # NumPy draws no Poisson counts with larger means


class NegativeBinomial(ColumnFamily):
    """Negative binomial distribution for columns of counts with a larger variance than Poisson counts.

    Each column is independent within a class and has one parameter per class, the probability of success. The
    dispersion is given.

    Parameters
    ----------
    dispersion : float, default=1.0
        The number r of successes, in all classes. With the mean m, the variance is m + m²/r: 1 is the geometric
        distribution, and large numbers approach the Poisson distribution.
    prior : BetaPrior or None, default=None
        Prior of the probability under ``estimation="map"`` and "bayes": pseudo-counts of successes (`dispersion` per
        row) and failures. None is half a success and half a failure.

    See Also
    --------
    Poisson : Counts whose variance equals their mean.
    Geometric : The special case of dispersion 1.

    Examples
    --------
    >>> from likely import GenerativeClassifier, NegativeBinomial
    >>> model = GenerativeClassifier(NegativeBinomial(dispersion=2.0))
    >>> model.fit([[0], [2], [5], [14]], ["a", "a", "b", "b"]).predict([[1], [9]])
    array(['a', 'b'], dtype='<U1')
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

    def describe(self) -> str:
        return f"NegativeBinomial, dispersion {self.dispersion:g}"

    def collected(self, x: Array) -> tuple[Array, ...]:
        return x, x * x, log_repeated(x, float(self.dispersion))

    def _statistics_key(self) -> tuple[Any, ...]:
        return (*super()._statistics_key(), self.dispersion)

    def _column_parameters(self, statistics: Sums, fitted: Any, estimation: Estimation) -> ColumnParameters:
        prior_successes, prior_failures = (0.0, 0.0) if estimation == Estimation.MLE else self._pseudo_counts()
        successes = float(self.dispersion) * statistics.column_weight + prior_successes
        failures = statistics.totals[0] + prior_failures
        errors = waiting_errors(successes, failures, estimation)
        dispersion = np.full_like(successes, float(self.dispersion))
        return {"probability": (successes / (successes + failures), errors), "dispersion": (dispersion, None)}

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        total, weight = statistics.totals[0], statistics.column_weight
        informative, overall, r = varies(statistics), constant_value(statistics), float(self.dispersion)
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
            return NegativeBinomialConditionals(informative, overall, r, failures=total / (r * weight))
        prior_successes, prior_failures = self._pseudo_counts()
        successes, failures = r * weight + prior_successes, total + prior_failures
        if estimation == Estimation.MAP:
            return NegativeBinomialConditionals(informative, overall, r, failures=failures / successes)
        return NegativeBinomialPredictive(informative, overall, r, successes, failures)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        return (sums.totals[0],), sums.totals[2]

    def _violates_jensen(self, left: Sums, before: Sums) -> Mask:
        return squares_violate_jensen(left, before)

    def _pseudo_counts(self) -> tuple[float, float]:
        """Pseudo-counts of successes and failures."""
        return (self.prior or BetaPrior()).counted()

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        successes, failures = self._pseudo_counts()
        return (failures,), successes / float(self.dispersion)

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        """Σ log B(r·n + a, Σx + b) − log B(a, b) + Σ log h."""
        a, b = self._pseudo_counts()
        (total, _, carrier), weight = statistics.totals, statistics.column_weight
        posterior = scipy.special.betaln(self.dispersion * weight + a, total + b)
        terms = posterior - scipy.special.betaln(a, b) + carrier
        return float(terms[:, varies(statistics)].sum())


@dataclass(frozen=True, eq=False)
class NegativeBinomialConditionals(NaturalColumns):
    """Negative binomial distributions with plug-in odds (1 − p)/p, which are exact for p near 0 and for p near 1."""

    dispersion: float
    failures: Array  # per success, (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "NegativeBinomial"

    @property
    def probability(self) -> Array:
        """p, (classes, d)."""
        return np.asarray(1.0 / (1.0 + self.failures))

    @property
    def parameters(self) -> tuple[Array, ...]:
        return (self.failures,)

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        with np.errstate(divide="ignore"):
            return (-np.log1p(1.0 / self.failures),), self.dispersion * np.log1p(self.failures)

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return (x,)

    def statistic_expressions(self, x: Expression) -> tuple[Expression, ...]:
        return (x,)

    def carrier(self, x: Array) -> Array:
        return log_repeated(x, self.dispersion)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """In a form that is exact for large counts."""
        (failures,) = parameters
        certain = failures == 0.0
        density = negative_binomial_log_density(x, np.asarray(self.dispersion), 1.0 / np.where(certain, 1.0, failures))
        return np.where(certain, np.where(x == 0.0, 0.0, -np.inf), density)

    def means(self) -> Array:
        return np.asarray(self.dispersion * self.failures)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _draw(self.dispersion, np.broadcast_to(self.failures[label], (n, self.dimension)), rng)


@dataclass(frozen=True, eq=False)
class NegativeBinomialPredictive(IndependentColumns):
    """Beta negative binomial distributions: negative binomial ones with p integrated over Beta(successes, failures)."""

    dispersion: float
    successes: Array  # (classes, d)
    failures: Array  # (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "NegativeBinomial"

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.successes, self.failures

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """C(r + x, r)·C(a + b, a) / C(a + b + r + x, a + r) times a rational function, as binomial probabilities.

        With the success probability of the last one, (a + r)/(a + b + r + x), no terms cancel (Loader 2000).
        """
        (a, b), r = parameters, np.asarray(self.dispersion)
        t = a + b + r + x
        p, q = (a + r) / t, (b + x) / t
        return np.asarray(
            np.log(r / (r + x))
            + np.log(a / (a + b) * (b / (b + x)) / p)
            + (_stirling_rest(r + x) - _stirling_rest(r) - _stirling_rest(x))
            + (_stirling_rest(a + b) - _stirling_rest(a) - _stirling_rest(b))
            - (_stirling_rest(t) - _stirling_rest(a + r) - _stirling_rest(b + x))
            - (deviance(r, (r + x) * p) + deviance(x, (r + x) * q))
            - (deviance(a, (a + b) * p) + deviance(b, (a + b) * q))
        )

    def expression(self, x: Expression, *parameters: float) -> Expression:
        """log B(a + r, b + x) − log B(a, b): the log-density of 0, and its change from there."""
        a, b = parameters
        start = float(self.log_terms(np.asarray(0.0), np.asarray(a), np.asarray(b)))
        return log_gamma_ratios(b, a + b + self.dispersion, x) + start

    def means(self) -> Array:
        return np.asarray(self.dispersion * mean_inverse_rate(self.successes, self.failures))

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _draw(self.dispersion, draw_failure_odds(self.successes[label], self.failures[label], n, rng), rng)


def _stirling_rest(x: Array) -> Array:
    """log Γ(x + 1) − x·log x + x for x >= 0."""
    safe = np.where(x > 0.0, x, 1.0)
    return np.where(x > 0.0, stirling_error(safe) + 0.5 * (LOG_2PI + np.log(safe)), 0.0)


def _draw(dispersion: float, failures: Array, rng: np.random.Generator) -> Array:
    """Negative binomial counts with the odds (1 − p)/p of failure: Poisson counts whose rate is a gamma variable."""
    with np.errstate(over="ignore"):
        rate = rng.gamma(dispersion, size=failures.shape) * failures
    return rng.poisson(np.minimum(rate, LARGEST_MEAN)).astype(np.float64)
