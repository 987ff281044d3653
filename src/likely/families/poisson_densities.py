"""Densities of the Poisson family: Poisson with plug-in rates, and the negative binomial predictive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from likely.families.independent import IndependentColumns
from likely.families.natural import NaturalColumns
from likely.families.supports import COUNTS
from likely.numerics.count_densities import negative_binomial_log_density, poisson_log_density
from likely.numerics.expressions import (
    Expression,
    constant,
    in_units,
    log1p,
    log_gamma_ratios,
    relative_to_first,
    times_log,
    with_coefficients,
)
from likely.numerics.special import log_factorial
from likely.typing import Array

LARGEST_MEAN = 1e15  # counts with larger means are drawn from the normal distribution


@dataclass(frozen=True, eq=False)
class PoissonConditionals(NaturalColumns):
    """Poisson distributions with plug-in rates."""

    rate: Array  # (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "Poisson"

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        with np.errstate(divide="ignore"):
            return (np.log(self.rate),), self.rate

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return (x,)

    def statistic_expressions(self, x: Expression) -> tuple[Expression, ...]:
        return (x,)

    @staticmethod
    def carrier(x: Array) -> Array:
        return -log_factorial(x)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """In a form that is exact for large counts."""
        return poisson_log_density(x, parameters[-1])

    def exposed_terms(self, x: Array, exposure: Array, label: int | slice) -> Array:
        """log p of values with an exposure."""
        return poisson_log_density(x, self.rate[label] * exposure)

    def exposed_expression(self, x: Expression, e: Expression, label: int, column: int) -> Expression:
        """x·log rate − rate·e for an exposure of e, relative to the first class."""
        (theta,), rate = self.natural()
        theta, rate = relative_to_first(theta), relative_to_first(rate)
        return times_log(x, theta[label, column]) - float(rate[label, column]) * with_coefficients(e, rate)

    def with_exposure(self, exposure: Array) -> Self:
        """The distributions for another exposure than 1."""
        return replace(self, rate=self.rate * exposure)

    def means(self) -> Array:
        return self.rate

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return draw_counts(self.rate[label], (n, self.dimension), rng)


@dataclass(frozen=True, eq=False)
class PoissonPredictive(IndependentColumns):
    """Negative binomial distributions: Poisson ones with the rate integrated over Gamma(events, exposure)."""

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

    def _term(self, x: Expression, label: int, column: int) -> Expression:
        return self.exposed_expression(x, constant(1.0), label, column)

    def exposed_expression(self, x: Expression, e: Expression, label: int, column: int) -> Expression:
        """log Γ(a + x)/Γ(a) − a·log(1 + e/b) − x·log(b + e) for an exposure of e, relative to the first class.

        The large terms x·log x of two classes are combined: their difference would have no digits.
        """
        (a, first), (b, start) = (part[[label, 0], column].tolist() for part in self.parameters)
        if label == 0:
            return constant(0.0)
        ratios = log_gamma_ratios(a, first, x) - x * log1p((b - start) / (start + e))
        return ratios - (a * log1p(in_units(e, b)) - first * log1p(in_units(e, start)))

    def exposed_terms(self, x: Array, exposure: Array, label: int | slice) -> Array:
        """log p of values with an exposure."""
        return negative_binomial_log_density(x, self.events[label], self.exposure[label] / exposure)

    def with_exposure(self, exposure: Array) -> Self:
        """The distributions for another exposure than 1."""
        return replace(self, exposure=self.exposure / exposure)

    def means(self) -> Array:
        return np.asarray(self.events / self.exposure)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        rate = rng.gamma(self.events[label], 1.0 / self.exposure[label], size=(n, self.dimension))
        return draw_counts(rate, rate.shape, rng)


def draw_counts(rate: Array, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Poisson counts; those with means too large for NumPy's generator from the normal approximation."""
    rate = np.broadcast_to(rate, shape)
    drawn = rng.poisson(np.minimum(rate, LARGEST_MEAN)).astype(np.float64)
    large = rate > LARGEST_MEAN
    if large.any():
        drawn[large] = np.rint(rng.normal(rate[large], np.sqrt(rate[large])))
    return drawn
