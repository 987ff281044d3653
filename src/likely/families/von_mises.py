"""The von Mises family: angles, and whatever else comes round again after a period.

x | k ~ VonMises(μ_k, κ_k): with the angles a = 2π·x/period, the density exp(κ·cos(a − μ)) / (period·I₀(κ)) per unit
of x. Natural form: u(x) = (cos a, sin a), θ = κ·(cos μ, sin μ), A = log I₀(κ) + log period, h = 1. The conjugate
prior is one of typical rows seen before any others; it has no closed predictive, so that full Bayes is answered by
its mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.special

from likely.errors import InputError, NotEstimableError, listed
from likely.families.base import Conditionals
from likely.families.column_family import ColumnFamily
from likely.families.estimation import Estimation
from likely.families.independent import Mask, NaturalColumns
from likely.families.priors import PseudoRows, check_prior
from likely.families.supports import ANGLES
from likely.numerics.special import EPS
from likely.statistics.counts import across
from likely.statistics.sums import Sums
from likely.typing import Array

TURN = 2.0 * np.pi
MOST_STEPS = 100  # of Newton's method, which takes about six
MOST_ROUNDED = 2**18  # rows: those of a block, whose sum is where most of the rounding happens


class VonMises(ColumnFamily):
    """Von Mises class-conditionals for columns of angles, hours, weekdays and the like.

    Parameters
    ----------
    period : after which values come round again: 2π for angles in radians, 24 for hours of the day.
    prior : under "map" and "bayes": `PseudoRows`, typical rows that every class is thought to have had; None is
        one of them. The posterior has no closed predictive: "bayes" plugs in its mode, as "map" does.
    """

    support = ANGLES
    _parameters_per_column = 2

    def __init__(self, period: float = TURN, prior: PseudoRows | None = None) -> None:
        self.period = period
        self.prior = prior

    def check(self, estimation: Estimation) -> None:
        number = isinstance(self.period, Real) and not isinstance(self.period, bool)
        if not (number and np.isfinite(self.period) and self.period > 0.0):
            raise InputError(f"period={self.period!r} must be a positive, finite number, such as 24 for hours.")
        check_prior(self.prior, PseudoRows, estimation)

    def describe(self) -> str:
        return f"VonMises, period {self.period:g}"

    def collected(self, x: Array) -> tuple[Array, ...]:
        return _circle(x, self.period)

    def _statistics_key(self) -> tuple[Any, ...]:
        return (*super()._statistics_key(), self.period)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        cosines, sines = sums.totals
        return (cosines, sines), np.zeros_like(cosines)

    def _impossible_columns(self, left: Sums, before: Sums) -> Mask:
        """A sum of directions is no longer than there are rows."""
        slack = 1e-8 * (1.0 + before.column_weight.max(axis=0, initial=0.0))
        length = np.hypot(left.totals[0], left.totals[1])
        return np.asarray((length > left.column_weight + slack).any(axis=0))

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        totals, weight = (self.prior or PseudoRows()).added(statistics)
        return tuple(totals - statistics.totals), weight - statistics.column_weight

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        totals, weight, rows = statistics.totals, statistics.column_weight, across(statistics.rows)
        whole = statistics.whole
        mass = whole.column_weight.sum(axis=0)
        overall, length = _resultant(whole.totals.sum(axis=1), mass, self.period)
        informative = (length < 1.0 - _rounding(across(whole.rows).sum(axis=0))) & (mass > 0.0)
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
        else:
            totals, weight = (self.prior or PseudoRows()).added(statistics)
        direction, length = _resultant(totals, weight, self.period)
        longest = 1.0 - _rounding(rows)
        beyond = informative & (length >= longest)
        if estimation == Estimation.MLE and beyond.any():
            k, j = np.argwhere(beyond)[0]
            raise NotEstimableError(
                f"Column {names[j]!r} has only one direction in class {listed(statistics.classes[k : k + 1])}, so "
                "its likelihood has no maximum. Use estimation='bayes' or 'map', or leave the column out."
            )
        concentration = _concentration(np.where(informative, np.minimum(length, longest), 0.0))
        return VonMisesConditionals(informative, overall, direction, concentration, float(self.period))


@dataclass(frozen=True, eq=False)
class VonMisesConditionals(NaturalColumns):
    """Von Mises densities with plugged-in directions and concentrations."""

    direction: Array  # (classes, d): from 0 up to the period
    concentration: Array  # (classes, d)
    period: float

    support: ClassVar = ANGLES
    name: ClassVar = "VonMises"
    carried: ClassVar[bool] = False

    def means(self) -> Array:
        return self.direction

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.direction, self.concentration

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        cosine, sine = _circle(self.direction, self.period)
        partition = self.concentration + np.log(scipy.special.i0e(self.concentration)) + np.log(self.period)
        return (self.concentration * cosine, self.concentration * sine), partition

    def statistics(self, x: Array) -> tuple[Array, ...]:
        return _circle(x, self.period)

    @staticmethod
    def carrier(x: Array) -> Array:
        return np.zeros_like(x)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """In a form that stays exact for large concentrations: cos a − 1 = −2·sin²(a/2)."""
        direction, concentration = parameters
        sine = np.sin((np.fmod(x, self.period) - direction) * (np.pi / self.period))
        peak = -np.log(scipy.special.i0e(concentration)) - np.log(self.period)
        return np.asarray(peak - 2.0 * concentration * sine * sine)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        angles = rng.vonmises(0.0, self.concentration[label], size=(n, self.dimension))
        return _wrapped(self.direction[label] + angles * (self.period / TURN), self.period)


def _circle(x: Array, period: float) -> tuple[Array, Array]:
    """Cosines and sines of the angles; `fmod` takes whole periods out without rounding."""
    angles = np.fmod(x, period) * (TURN / period)
    return np.cos(angles), np.sin(angles)


def _wrapped(x: Array, period: float) -> Array:
    """The same places on the circle, from 0 up to the period and below it."""
    inside = np.mod(x, period)
    return np.where(inside < period, inside, 0.0)  # just below 0, the period itself is the nearest number


def _resultant(totals: Array, weight: Array, period: float) -> tuple[Array, Array]:
    """Direction, in units of x, and length of the mean of (cos a, sin a)."""
    cosine, sine = totals / np.where(weight > 0.0, weight, 1.0)
    return _wrapped(np.arctan2(sine, cosine) * (period / TURN), period), np.hypot(cosine, sine)


def _rounding(rows: Array) -> Array:
    """How much shorter than 1 the mean of so many equal directions may be by rounding.

    Deviations of 2e-7 radians or less, 2e-6 with 10,000 rows, are not seen.
    """
    return np.asarray(EPS * (64.0 + 0.5 * np.minimum(rows, MOST_ROUNDED)))


def _concentration(length: Array) -> Array:
    """κ with I₁(κ)/I₀(κ) = length < 1, by Newton's method from the approximation of Banerjee et al. (2005)."""
    kappa = length * (2.0 - length * length) / ((1.0 - length) * (1.0 + length))
    for _ in range(MOST_STEPS):
        ratio = scipy.special.i1e(kappa) / scipy.special.i0e(kappa)
        step = (length - ratio) / _slope(kappa, ratio)
        kappa = np.maximum(kappa + step, 0.5 * kappa)
        if np.all(np.abs(step) <= 16.0 * EPS * kappa * (1.0 + kappa)):
            break
    return np.asarray(kappa)


def _slope(kappa: Array, ratio: Array) -> Array:
    """The derivative 1 − A/κ − A² of A = I₁/I₀; for large κ by its asymptotic series, as the terms cancel."""
    small, large = np.clip(kappa, 1e-8, 1e3), np.maximum(kappa, 1e3)
    near = 1.0 - np.where(kappa > 1e-8, ratio / small, 0.5) - ratio * ratio
    return np.where(kappa < 1e3, near, (0.5 + (0.25 + 0.375 / large) / large) / (large * large))
