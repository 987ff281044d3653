"""The geometric family: the number of failures before the first success.

x | k ~ Geometric(p_k): p(x) = p·(1 − p)ˣ for x = 0, 1, 2, … Natural form: u(x) = x, θ = log(1 − p), A = −log p,
h = 1. Conjugate prior: a beta distribution of p, as pseudo-counts of successes (one per row) and failures. The
posterior predictive is beta-geometric, B(a + 1, b + x)/B(a, b) after a successes and b failures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.special

from likely.families.base import Conditionals
from likely.families.column_family import ColumnFamily, constant_value, squares_violate_jensen, varies
from likely.families.estimation import Estimation
from likely.families.independent import IndependentColumns, Mask
from likely.families.natural import NaturalColumns
from likely.families.parameters import ColumnParameters, waiting_errors
from likely.families.priors import BetaPrior, check_prior, draw_failure_odds, mean_inverse_rate
from likely.families.supports import COUNTS
from likely.numerics.expressions import Expression, log_gamma_ratios
from likely.numerics.special import stirling_error
from likely.statistics.sums import Sums
from likely.typing import Array

LARGEST_COUNT = 1e18  # draws are clipped here


class Geometric(ColumnFamily):
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

    support = COUNTS
    _reads_sparse = True

    def __init__(self, prior: BetaPrior | None = None) -> None:
        self.prior = prior

    def check(self, estimation: Estimation) -> None:
        check_prior(self.prior, BetaPrior, estimation)

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return x, x * x

    def _column_parameters(self, statistics: Sums, fitted: Any, estimation: Estimation) -> ColumnParameters:
        prior_successes, prior_failures = (0.0, 0.0) if estimation == Estimation.MLE else self._pseudo_counts()
        successes, failures = statistics.column_weight + prior_successes, statistics.totals[0] + prior_failures
        return {"probability": (successes / (successes + failures), waiting_errors(successes, failures, estimation))}

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        total, weight = statistics.totals[0], statistics.column_weight
        informative, overall = varies(statistics), constant_value(statistics)
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
            return GeometricConditionals(informative, overall, failures=total / weight)
        successes, failures = self._pseudo_counts()
        if estimation == Estimation.MAP:
            return GeometricConditionals(informative, overall, failures=(total + failures) / (weight + successes))
        return GeometricPredictive(informative, overall, successes=weight + successes, failures=total + failures)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        return (sums.totals[0],), np.zeros_like(sums.totals[0])

    def _violates_jensen(self, left: Sums, before: Sums) -> Mask:
        return squares_violate_jensen(left, before)

    def _pseudo_counts(self) -> tuple[float, float]:
        """Pseudo-counts of successes and failures."""
        return (self.prior or BetaPrior()).counted()

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        successes, failures = self._pseudo_counts()
        return (failures,), successes

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        """Σ log B(n + a, Σx + b) − log B(a, b)."""
        a, b = self._pseudo_counts()
        total, weight = statistics.totals[0], statistics.column_weight
        terms = scipy.special.betaln(weight + a, total + b) - scipy.special.betaln(a, b)
        return float(terms[:, varies(statistics)].sum())


@dataclass(frozen=True, eq=False)
class GeometricConditionals(NaturalColumns):
    """Geometric distributions with plug-in odds (1 − p)/p, which are exact for p near 0 and for p near 1."""

    failures: Array  # per success, (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "Geometric"

    @property
    def probability(self) -> Array:
        """p, (classes, d)."""
        return np.asarray(1.0 / (1.0 + self.failures))

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        with np.errstate(divide="ignore"):
            return (-np.log1p(1.0 / self.failures),), np.log1p(self.failures)

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return (x,)

    def statistic_expressions(self, x: Expression) -> tuple[Expression, ...]:
        return (x,)

    def means(self) -> Array:
        return self.failures

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _draw(np.broadcast_to(self.failures[label], (n, self.dimension)), rng)


@dataclass(frozen=True, eq=False)
class GeometricPredictive(IndependentColumns):
    """Beta-geometric distributions: geometric ones with p integrated over Beta(successes, failures)."""

    successes: Array  # (classes, d)
    failures: Array  # (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "Geometric"

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.successes, self.failures

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """log of a/t · Γ(a + b)·Γ(b + x)/(Γ(b)·Γ(t)), t = a + b + x.

        By Stirling's formula; its large logarithms are combined in log1p terms no larger than the result.
        """
        a, b = parameters
        t = a + b + x
        main = (b - 0.5) * np.log1p(a / t * (x / b)) - a * np.log1p(x / (a + b)) - x * np.log1p(a / (b + x))
        rest = stirling_error(a + b) - stirling_error(b) + stirling_error(b + x) - stirling_error(t)
        return np.asarray(np.log(a / t) + main + rest)

    def expression(self, x: Expression, *parameters: float) -> Expression:
        """log a/(a + b) + log Γ(b + x)/Γ(b) − log Γ(a + b + 1 + x)/Γ(a + b + 1)."""
        a, b = parameters
        return log_gamma_ratios(b, a + b + 1.0, x) + float(np.log(a / (a + b)))

    def means(self) -> Array:
        return mean_inverse_rate(self.successes, self.failures)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _draw(draw_failure_odds(self.successes[label], self.failures[label], n, rng), rng)


def _draw(failures: Array, rng: np.random.Generator) -> Array:
    """Geometric counts with the odds (1 − p)/p of failure: floors of exponential variables."""
    with np.errstate(divide="ignore", over="ignore"):
        waiting_time = rng.exponential(size=failures.shape) / np.log1p(1.0 / failures)
    return np.floor(np.minimum(waiting_time, LARGEST_COUNT))
