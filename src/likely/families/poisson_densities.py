"""Poisson densities of counts, and their negative binomial predictive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from likely.families.independent import IndependentColumns, NaturalColumns
from likely.families.supports import COUNTS
from likely.numerics.count_densities import negative_binomial_log_density, poisson_log_density
from likely.numerics.special import log_factorial
from likely.typing import Array

LARGEST_MEAN = 1e15


@dataclass(frozen=True, eq=False)
class PoissonConditionals(NaturalColumns):
    """Poisson counts with plugged-in rates."""

    rate: Array  # (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "Poisson"

    def means(self) -> Array:
        return self.rate

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        with np.errstate(divide="ignore"):
            return (np.log(self.rate),), self.rate

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return (x,)

    @staticmethod
    def carrier(x: Array) -> Array:
        return -log_factorial(x)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """In a form that stays exact for large counts."""
        return poisson_log_density(x, parameters[-1])

    def exposed_terms(self, x: Array, exposure: Array, label: int | slice) -> Array:
        """log p of cells seen during an exposure."""
        return poisson_log_density(x, self.rate[label] * exposure)

    def during(self, exposure: Array) -> Self:
        """The same for another unit of exposure."""
        return replace(self, rate=self.rate * exposure)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return draw_counts(self.rate[label], (n, self.dimension), rng)


@dataclass(frozen=True, eq=False)
class PoissonPredictive(IndependentColumns):
    """Negative binomial counts: Poisson rates integrated over Gamma(events, exposure)."""

    events: Array  # (classes, d)
    exposure: Array  # (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "Poisson"

    def means(self) -> Array:
        return np.asarray(self.events / self.exposure)

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.events, self.exposure

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        events, exposure = parameters
        return negative_binomial_log_density(x, events, exposure)

    def exposed_terms(self, x: Array, exposure: Array, label: int | slice) -> Array:
        """log p of cells seen during an exposure."""
        return negative_binomial_log_density(x, self.events[label], self.exposure[label] / exposure)

    def during(self, exposure: Array) -> Self:
        """The same for another unit of exposure."""
        return replace(self, exposure=self.exposure / exposure)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        rate = rng.gamma(self.events[label], 1.0 / self.exposure[label], size=(n, self.dimension))
        return draw_counts(rate, rate.shape, rng)


def draw_counts(rate: Array, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Poisson counts; means that the generator does not take by the normal law, which they have reached."""
    rate = np.broadcast_to(rate, shape)
    drawn = rng.poisson(np.minimum(rate, LARGEST_MEAN)).astype(np.float64)
    beyond = rate > LARGEST_MEAN
    if beyond.any():
        drawn[beyond] = np.rint(rng.normal(rate[beyond], np.sqrt(rate[beyond])))
    return drawn
