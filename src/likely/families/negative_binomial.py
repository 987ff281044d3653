"""The negative binomial family: the number of failures before a given number of successes.

x | k ~ NegativeBinomial(r, p_k): p(x) = Γ(x + r)/(Γ(r)·x!)·pʳ·(1 − p)ˣ for x = 0, 1, 2, … The dispersion r > 0 is
given, need not be whole, and is the same in all classes. The posterior predictive is beta negative binomial. The prior
and the estimates are in `failure_counts`.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from likely.errors import InputError
from likely.families.estimation import Estimation
from likely.families.failure_counts import FailureConditionals, FailureCounts, FailurePredictive
from likely.families.parameters import ColumnParameters
from likely.families.priors import BetaPrior
from likely.numerics.count_densities import deviance, negative_binomial_log_density
from likely.numerics.special import LOG_2PI, log_repeated, stirling_error
from likely.statistics.sums import Sums
from likely.typing import Array

LARGEST_MEAN = 1e18  # NumPy draws no Poisson counts with larger means


class NegativeBinomialConditionals(FailureConditionals):
    """Negative binomial distributions with plug-in odds."""

    name: ClassVar = "NegativeBinomial"

    @property
    def parameters(self) -> tuple[Array, ...]:
        return (self.failures,)

    def carrier(self, x: Array) -> Array:
        return log_repeated(x, self.dispersion)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """In a form that is exact for large counts."""
        (failures,) = parameters
        certain = failures == 0.0
        density = negative_binomial_log_density(x, np.asarray(self.dispersion), 1.0 / np.where(certain, 1.0, failures))
        return np.where(certain, np.where(x == 0.0, 0.0, -np.inf), density)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _draw(self.dispersion, self.draw_odds(label, n, rng), rng)


class NegativeBinomialPredictive(FailurePredictive):
    """Beta negative binomial distributions: negative binomial ones with p integrated over Beta(successes, failures)."""

    name: ClassVar = "NegativeBinomial"

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

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _draw(self.dispersion, self.draw_odds(label, n, rng), rng)


def _stirling_rest(x: Array) -> Array:
    """log Γ(x + 1) − x·log x + x for x >= 0."""
    safe = np.where(x > 0.0, x, 1.0)
    return np.where(x > 0.0, stirling_error(safe) + 0.5 * (LOG_2PI + np.log(safe)), 0.0)


def _draw(dispersion: float, odds: Array, rng: np.random.Generator) -> Array:
    """Negative binomial counts with the odds (1 − p)/p of failure: Poisson counts whose rate is a gamma variable."""
    with np.errstate(over="ignore"):
        rate = rng.gamma(dispersion, size=odds.shape) * odds
    return rng.poisson(np.minimum(rate, LARGEST_MEAN)).astype(np.float64)


class NegativeBinomial(FailureCounts):
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

    _plug_in = NegativeBinomialConditionals
    _predictive = NegativeBinomialPredictive

    def __init__(self, dispersion: float = 1.0, prior: BetaPrior | None = None) -> None:
        self.dispersion = dispersion
        self.prior = prior

    @property
    def _successes(self) -> float:
        return float(self.dispersion)

    def check(self, estimation: Estimation) -> None:
        if not (isinstance(self.dispersion, Real) and 0.0 < self.dispersion < np.inf):
            raise InputError(f"dispersion={self.dispersion!r} must be a positive finite number.")
        super().check(estimation)

    def describe(self) -> str:
        return f"NegativeBinomial, dispersion {self.dispersion:g}"

    def collected(self, x: Array) -> tuple[Array, ...]:
        return x, x * x, log_repeated(x, float(self.dispersion))

    def _statistics_key(self) -> tuple[Any, ...]:
        return (*super()._statistics_key(), self.dispersion)

    def _column_parameters(self, statistics: Sums, fitted: Any, estimation: Estimation) -> ColumnParameters:
        dispersion = np.full_like(statistics.totals[0], float(self.dispersion))
        return {**super()._column_parameters(statistics, fitted, estimation), "dispersion": (dispersion, None)}

    def _log_carrier(self, sums: Sums) -> Array:
        return sums.totals[2]
