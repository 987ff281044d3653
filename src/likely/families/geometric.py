"""The geometric family: how many failures come before the first success.

x | k ~ Geometric(p_k): p(x) = p·(1 − p)ˣ for x = 0, 1, 2, … Natural form: u(x) = x, θ = log(1 − p), A = −log p,
h = 1. Conjugate prior: a beta distribution of p, counted as successes (one a row) and failures seen before any rows.
The posterior predictive is beta-geometric, B(a + 1, b + x)/B(a, b) after a successes and b failures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.special

from likely.families.base import Conditionals
from likely.families.column_family import ColumnFamily, bent_squares, constant_value, inverse_mean, varies
from likely.families.estimation import Estimation
from likely.families.independent import IndependentColumns, Mask, NaturalColumns
from likely.families.priors import BetaPrior, check_prior
from likely.families.supports import COUNTS
from likely.numerics.special import TINY, stirling_error
from likely.statistics.sums import Sums
from likely.typing import Array

LARGEST_COUNT = 1e18  # what is drawn is kept where counts are of use


class Geometric(ColumnFamily):
    """Geometric class-conditionals for columns of counts.

    Parameters
    ----------
    prior : under "map" and "bayes": a `BetaPrior`, which counts as successes and failures seen; None is half a
        success and half a failure.
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

    def _bent(self, left: Sums, before: Sums) -> Mask:
        return bent_squares(left, before)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        return (sums.totals[0],), np.zeros_like(sums.totals[0])

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        successes, failures = (self.prior or BetaPrior()).counted()
        total, weight = statistics.totals[0], statistics.column_weight
        terms = scipy.special.betaln(weight + successes, total + failures) - scipy.special.betaln(successes, failures)
        return float(terms[:, varies(statistics)].sum())

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        successes, failures = (self.prior or BetaPrior()).counted()
        return (failures,), successes

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        total, weight = statistics.totals[0], statistics.column_weight
        informative, overall = varies(statistics), constant_value(statistics)
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
            return GeometricConditionals(informative, overall, failures=total / weight)
        successes, failures = (self.prior or BetaPrior()).counted()
        if estimation == Estimation.MAP:
            return GeometricConditionals(informative, overall, failures=(total + failures) / (weight + successes))
        return GeometricPredictive(informative, overall, successes=weight + successes, failures=total + failures)


@dataclass(frozen=True, eq=False)
class GeometricConditionals(NaturalColumns):
    """Geometric counts with plugged-in probabilities.

    They are kept as (1 − p)/p, which is exact where p is near 0 and where it is near 1.
    """

    failures: Array  # for each success, (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "Geometric"
    carried: ClassVar[bool] = False

    def means(self) -> Array:
        return self.failures

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

    @staticmethod
    def carrier(x: Array) -> Array:
        return np.zeros_like(x)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _draw(np.broadcast_to(self.failures[label], (n, self.dimension)), rng)


@dataclass(frozen=True, eq=False)
class GeometricPredictive(IndependentColumns):
    """Beta-geometric counts: probabilities integrated over Beta(successes, failures)."""

    successes: Array  # (classes, d)
    failures: Array  # (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "Geometric"

    def means(self) -> Array:
        return inverse_mean(self.successes, self.failures)

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.successes, self.failures

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """log of a/t · Γ(a + b)·Γ(b + x)/(Γ(b)·Γ(t)), t = a + b + x.

        By Stirling's formula with its large logarithms combined into log1p, whose terms are no larger than the result.
        """
        a, b = parameters
        t = a + b + x
        main = (b - 0.5) * np.log1p(a / t * (x / b)) - a * np.log1p(x / (a + b)) - x * np.log1p(a / (b + x))
        rest = stirling_error(a + b) - stirling_error(b) + stirling_error(b + x) - stirling_error(t)
        return np.asarray(np.log(a / t) + main + rest)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        size = (n, self.dimension)
        successes = np.maximum(rng.gamma(self.successes[label], size=size), TINY)
        return _draw(rng.gamma(self.failures[label], size=size) / successes, rng)


def _draw(failures: Array, rng: np.random.Generator) -> Array:
    """Geometric counts, given failures for each success: whole parts of exponential waiting times."""
    with np.errstate(divide="ignore", over="ignore"):
        waited = rng.exponential(size=failures.shape) / np.log1p(1.0 / failures)
    return np.floor(np.minimum(waited, LARGEST_COUNT))
