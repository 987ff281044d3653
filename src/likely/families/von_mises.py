"""The von Mises family: angles, hours of the day and other periodic numbers.

x | k ~ VonMises(μ_k, κ_k): with the angles a = 2π·x/period, the density exp(κ·cos(a − μ)) / (period·I₀(κ)) per unit
of x. Natural form: u(x) = (cos a, sin a), θ = κ·(cos μ, sin μ), A = log I₀(κ) + log period, h = 1. The conjugate
prior is pseudo-rows with the average statistics of all rows. It has no closed-form predictive: full Bayes plugs in the
posterior mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.special

from likely.errors import InputError
from likely.families.base import Conditionals
from likely.families.column_family import ColumnFamily
from likely.families.estimation import Estimation, require_maximum
from likely.families.independent import Mask
from likely.families.natural import NaturalColumns
from likely.families.parameters import ColumnParameters
from likely.families.priors import PseudoRows, check_prior, pseudo_row_sums, with_pseudo_rows
from likely.families.supports import ANGLES, FINITE, NON_NEGATIVE
from likely.numerics.expressions import LARGEST, Expression, bounded, sin, square
from likely.numerics.special import EPS
from likely.statistics.counts import across
from likely.statistics.rounding import relative_sum_error
from likely.statistics.sums import Sums
from likely.typing import Array

TURN = 2.0 * np.pi
MOST_STEPS = 100  # of Newton's method; six to ten are typical


class VonMises(ColumnFamily):
    """Von Mises distribution for columns of angles, hours of the day and other periodic numbers.

    Each column is independent within a class and has two parameters per class, a direction and a concentration, which
    is estimated by Newton's method. The posterior has no closed-form predictive, so ``estimation="bayes"`` plugs in the
    posterior mode, as "map" does.

    Parameters
    ----------
    period : float, default=2π
        The length of a turn in the units of x: 2π for angles in radians, 360 for degrees, 24 for hours of the day.
    prior : PseudoRows or None, default=None
        Prior under ``estimation="map"`` and "bayes": rows with the average statistics of all rows, added to every
        class. None is one such row.

    See Also
    --------
    Gaussian : Numbers on a line instead of a circle.

    References
    ----------
    Banerjee, A., Dhillon, I. S., Ghosh, J. and Sra, S. (2005). Clustering on the unit hypersphere using von
    Mises-Fisher distributions. Journal of Machine Learning Research 6, 1345-1382.

    Examples
    --------
    Hours around midnight, and around noon:

    >>> from likely import GenerativeClassifier, VonMises
    >>> X = [[23.0], [1.0], [2.0], [11.0], [12.0], [14.0]]
    >>> model = GenerativeClassifier(VonMises(period=24)).fit(X, ["night"] * 3 + ["day"] * 3)
    >>> model.predict([[0.0], [24.5], [13.0]])
    array(['night', 'night', 'day'], dtype='<U5')
    """

    support = ANGLES
    _given_parameters = (
        ("direction", FINITE),
        ("concentration", NON_NEGATIVE),
    )
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
        return _cosine_and_sine(x, self.period)

    def _statistics_key(self) -> tuple[Any, ...]:
        return (*super()._statistics_key(), self.period)

    def _plugged_in(self, informative: Mask, constant: Array, parameters: Mapping[str, Array]) -> VonMisesConditionals:
        period = float(self.period)
        direction, concentration = parameters["direction"] % period, parameters["concentration"]
        return VonMisesConditionals(informative, constant, direction, concentration, period)

    def _column_parameters(self, statistics: Sums, fitted: Any, estimation: Estimation) -> ColumnParameters:
        direction, kappa, weight = fitted.direction, fitted.concentration, statistics.column_weight
        if estimation != Estimation.MLE:
            return {"direction": (direction, None), "concentration": (kappa, None)}
        length = scipy.special.i1e(kappa) / scipy.special.i0e(kappa)
        safe = np.where(kappa > 0.0, kappa, 1.0)  # of constant columns, which are ignored
        turn = float(self.period) / TURN
        return {
            "direction": (direction, turn / np.sqrt(weight * safe * np.where(kappa > 0.0, length, 1.0))),
            "concentration": (kappa, 1.0 / np.sqrt(weight * (1.0 - length**2 - length / safe))),
        }

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        whole = statistics.whole
        whole_weight = whole.column_weight.sum(axis=0)
        overall, length = _resultant(whole.totals.sum(axis=1), whole_weight, self.period)
        informative = (length < _longest(across(whole.rows).sum(axis=0))) & (whole_weight > 0.0)
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
        direction, length = _resultant(*with_pseudo_rows(self.prior, statistics, estimation), self.period)
        longest = _longest(across(statistics.rows))
        constant = informative & (length >= longest)
        if estimation == Estimation.MLE:
            require_maximum(constant, statistics.classes, names, "has only one direction in")
        concentration = solve_concentration(np.where(informative, np.minimum(length, longest), 0.0))
        return VonMisesConditionals(informative, overall, direction, concentration, float(self.period))

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        cosines, sines = sums.totals
        return (cosines, sines), np.zeros_like(cosines)

    def _impossible_columns(self, left: Sums, before: Sums) -> Mask:
        """Columns with a sum of unit vectors that is longer than their number."""
        slack = 1e-8 * (1.0 + before.column_weight.max(axis=0, initial=0.0))
        length = np.hypot(left.totals[0], left.totals[1])
        return np.asarray((length > left.column_weight + slack).any(axis=0))

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        totals, weight = pseudo_row_sums(self.prior, statistics)
        return tuple(totals), weight


def _cosine_and_sine(x: Array, period: float) -> tuple[Array, Array]:
    """Cosines and sines of the angles; `fmod` removes whole periods without rounding."""
    angles = np.fmod(x, period) * (TURN / period)
    return np.cos(angles), np.sin(angles)


def _wrapped(x: Array, period: float) -> Array:
    """x modulo the period, in [0, period)."""
    inside = np.mod(x, period)
    return np.where(inside < period, inside, 0.0)  # just below 0, the modulus rounds to the period itself


def _resultant(totals: Array, weight: Array, period: float) -> tuple[Array, Array]:
    """Direction, in units of x, and length of the mean of (cos a, sin a)."""
    cosine, sine = totals / np.where(weight > 0.0, weight, 1.0)
    return _wrapped(np.arctan2(sine, cosine) * (period / TURN), period), np.hypot(cosine, sine)


def _longest(rows: Array) -> Array:
    """The least mean length that the rounding error allows for `rows` equal directions.

    Columns with a standard deviation of 2e-7 radians, 2e-6 with 10,000 rows, count as constant.
    """
    return np.asarray(1.0 - relative_sum_error(rows))


def solve_concentration(length: Array) -> Array:
    """κ with I₁(κ)/I₀(κ) = length < 1, by Newton's method from the approximation of Banerjee et al. (2005)."""
    kappa = length * (2.0 - length * length) / ((1.0 - length) * (1.0 + length))
    for _ in range(MOST_STEPS):
        ratio = scipy.special.i1e(kappa) / scipy.special.i0e(kappa)
        step = (length - ratio) / _bessel_ratio_slope(kappa, ratio)
        kappa = np.maximum(kappa + step, 0.5 * kappa)
        if np.all(np.abs(step) <= 16.0 * EPS * kappa * (1.0 + kappa)):
            break
    return np.asarray(kappa)


def _bessel_ratio_slope(kappa: Array, ratio: Array) -> Array:
    """The derivative 1 − A/κ − A² of A = I₁/I₀; for large κ by its asymptotic series, because the terms cancel."""
    small, large = np.clip(kappa, 1e-8, 1e3), np.maximum(kappa, 1e3)
    near = 1.0 - np.where(kappa > 1e-8, ratio / small, 0.5) - ratio * ratio
    return np.where(kappa < 1e3, near, (0.5 + (0.25 + 0.375 / large) / large) / (large * large))


@dataclass(frozen=True, eq=False)
class VonMisesConditionals(NaturalColumns):
    """Von Mises distributions with plug-in directions and concentrations."""

    direction: Array  # (classes, d), in [0, period)
    concentration: Array  # (classes, d)
    period: float

    support: ClassVar = ANGLES
    name: ClassVar = "VonMises"

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.direction, self.concentration

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        cosine, sine = _cosine_and_sine(self.direction, self.period)
        partition = self.concentration + np.log(scipy.special.i0e(self.concentration)) + np.log(self.period)
        return (self.concentration * cosine, self.concentration * sine), partition

    def statistics(self, x: Array) -> tuple[Array, ...]:
        return _cosine_and_sine(x, self.period)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """−2κ·sin²((a − μ)/2) − log(e^−κ·I₀(κ)) − log period, which is exact for large concentrations."""
        direction, concentration = parameters
        sine = np.sin((np.fmod(x, self.period) - direction) * (np.pi / self.period))
        peak = -np.log(scipy.special.i0e(concentration)) - np.log(self.period)
        return np.asarray(peak - 2.0 * concentration * sine * sine)

    def expression(self, x: Expression, *parameters: float) -> Expression:
        direction, concentration = parameters
        peak = -float(np.log(scipy.special.i0e(concentration)))
        near = bounded(x, LARGEST, 1e-290 * self.period)
        return peak - 2.0 * concentration * square(sin((near - direction) * (np.pi / self.period)))

    def accurate(self, column: int, x: Expression) -> Expression:
        """Up to 100,000 turns: other systems have no exact remainder, and round larger angles off."""
        most = 1e5 * self.period
        return (x <= most) & (x >= -most)

    def means(self) -> Array:
        return self.direction

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        angles = rng.vonmises(0.0, self.concentration[label], size=(n, self.dimension))
        return _wrapped(self.direction[label] + angles * (self.period / TURN), self.period)
