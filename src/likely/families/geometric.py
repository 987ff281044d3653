"""The geometric family: the number of failures before the first success.

x | k ~ Geometric(p_k): p(x) = p·(1 − p)ˣ for x = 0, 1, 2, … Natural form: u(x) = x, θ = log(1 − p), A = −log p,
h = 1. Conjugate prior: a beta distribution of p, as pseudo-counts of successes (one per row) and failures. The
posterior predictive is beta-geometric, B(a + 1, b + x)/B(a, b) after a successes and b failures. The estimates are in
`failure_counts`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from likely.families.failure_counts import FailureConditionals, FailureCounts, FailurePredictive
from likely.families.priors import BetaPrior
from likely.numerics.special import stirling_error
from likely.typing import Array

LARGEST_COUNT = 1e18  # draws are clipped here


class GeometricConditionals(FailureConditionals):
    """Geometric distributions with plug-in odds."""

    name: ClassVar = "Geometric"

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _draw(self.draw_odds(label, n, rng), rng)


class GeometricPredictive(FailurePredictive):
    """Beta-geometric distributions: geometric ones with p integrated over Beta(successes, failures)."""

    name: ClassVar = "Geometric"

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """log of a/t · Γ(a + b)·Γ(b + x)/(Γ(b)·Γ(t)), t = a + b + x.

        By Stirling's formula; its large logarithms are combined in log1p terms no larger than the result.
        """
        a, b = parameters
        t = a + b + x
        main = (b - 0.5) * np.log1p(a / t * (x / b)) - a * np.log1p(x / (a + b)) - x * np.log1p(a / (b + x))
        rest = stirling_error(a + b) - stirling_error(b) + stirling_error(b + x) - stirling_error(t)
        return np.asarray(np.log(a / t) + main + rest)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _draw(self.draw_odds(label, n, rng), rng)


def _draw(odds: Array, rng: np.random.Generator) -> Array:
    """Geometric counts with the odds (1 − p)/p of failure: floors of exponential variables."""
    with np.errstate(divide="ignore", over="ignore"):
        waiting_time = rng.exponential(size=odds.shape) / np.log1p(1.0 / odds)
    return np.floor(np.minimum(waiting_time, LARGEST_COUNT))


class Geometric(FailureCounts):
    """Geometric distribution for columns of counts: the number of failures before the first success.

    Each column is independent within a class and has one parameter per class, the probability of success.

    Parameters
    ----------
    prior : BetaPrior or None, default=None
        Prior of the probability under ``estimation="map"`` and "bayes": pseudo-counts of successes (one per row) and
        failures. None is half a success and half a failure.

    See Also
    --------
    NegativeBinomial : The generalization to several successes.
    Exponential : The counterpart for continuous waiting times.

    Examples
    --------
    >>> from likely import GenerativeClassifier, Geometric
    >>> model = GenerativeClassifier(Geometric()).fit([[0], [1], [4], [6]], ["a", "a", "b", "b"])
    >>> model.predict([[0], [9]])
    array(['a', 'b'], dtype='<U1')
    """

    _plug_in = GeometricConditionals
    _predictive = GeometricPredictive

    def __init__(self, prior: BetaPrior | None = None) -> None:
        self.prior = prior

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return x, x * x
