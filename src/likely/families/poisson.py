"""The Poisson family: counts of events, at a rate per unit of exposure.

x | k ~ Poisson(e·rate_k), e the exposure of the row, 1 where none is declared. Natural form: u(x) = x,
θ = log rate, A = e·rate, h = eˣ/x!. Conjugate prior: a gamma distribution of the rate, counted as events seen
during some exposure. The posterior predictive is a negative binomial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.special

from likely.families.base import Conditionals
from likely.families.columns import COUNTS, ColumnFamily, IndependentColumns, NaturalColumns, level, varies
from likely.numerics import Array, negative_binomial_log_density, poisson_log_density
from likely.priors import GammaPrior, check_prior
from likely.statistics import Sums


class Poisson(ColumnFamily):
    """Poisson class-conditionals for columns of counts.

    Parameters
    ----------
    prior : under "map" and "bayes": a `GammaPrior`, which counts as events seen during some exposure; None is
        half an event of each column during the exposure that makes the prior rate the overall rate.
    """

    support = COUNTS
    reads_sparse = True

    def __init__(self, prior: GammaPrior | None = None) -> None:
        self.prior = prior

    def check(self, estimation: str) -> None:
        check_prior(self.prior, GammaPrior, estimation)

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return x, x * x

    def estimate(self, statistics: Sums, estimation: str, names: Sequence[str]) -> Conditionals:
        total, exposure = statistics.totals[0], statistics.column_weight
        speaks, overall = varies(statistics), level(exposure, total)
        if estimation == "mle":
            self.require_observed(statistics, names)
            return PoissonConditionals(speaks, overall, rate=total / exposure)
        events, during = (self.prior or GammaPrior()).counted(overall)
        if estimation == "map":
            return PoissonConditionals(speaks, overall, rate=(total + events) / (exposure + during))
        return PoissonPredictive(speaks, overall, events=total + events, exposure=exposure + during)


@dataclass(frozen=True, eq=False)
class PoissonConditionals(NaturalColumns):
    """Poisson counts with plugged-in rates."""

    rate: Array  # (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "Poisson"

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        with np.errstate(divide="ignore"):
            return (np.log(self.rate),), self.rate

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return (x,)

    @staticmethod
    def carrier(x: Array) -> Array:
        return -scipy.special.gammaln(x + 1.0)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """In a form that stays exact for large counts."""
        return poisson_log_density(x, parameters[-1])

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return rng.poisson(self.rate[label], size=(n, self.dimension)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class PoissonPredictive(IndependentColumns):
    """Negative binomial counts: Poisson rates integrated over Gamma(events, exposure)."""

    events: Array  # (classes, d)
    exposure: Array  # (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "Poisson"

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.events, self.exposure

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        events, exposure = parameters
        return negative_binomial_log_density(x, events, exposure)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        rate = rng.gamma(self.events[label], 1.0 / self.exposure[label], size=(n, self.dimension))
        return rng.poisson(rate).astype(np.float64)
