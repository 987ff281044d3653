"""The gamma family: positive quantities, such as how long it takes until several events have come.

x | k ~ Gamma(shape_k, rate_k): p(x) = rate^shape·x^(shape − 1)·exp(−rate·x)/Γ(shape) for x > 0. Natural form:
u(x) = (x, log x), θ = (−rate, shape), A = log Γ(shape) − shape·log rate, h = 1/x. Where the classes have one shape, the
terms of log x cancel in their odds, which are linear in x.

With a given shape the conjugate prior is a gamma distribution of the rate, counted as events (as many a row as the
shape) seen during some exposure, and the posterior predictive is a compound gamma, also known as a beta prime,
Γ(shape + a)/(Γ(shape)·Γ(a))·bᵃ·x^(shape − 1)/(b + x)^(a + shape) after a events during the exposure b. For a shape that
is learnt no prior has a closed predictive: the prior is pseudo-rows, and the estimate with them is plugged in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
import scipy.special

from likely.errors import InputError, NotEstimableError, listed
from likely.families.base import Conditionals, LeaveOneOutDensity
from likely.families.column_family import ColumnFamily, constant_value, inverse_mean
from likely.families.estimation import Estimation
from likely.families.independent import IndependentColumns, Mask, NaturalColumns
from likely.families.priors import GammaPrior, PseudoRows, check_prior, gamma_evidence
from likely.families.supports import POSITIVE
from likely.numerics.count_densities import deviance
from likely.numerics.special import EPS, LOG_2PI, TINY, stirling_error
from likely.statistics.counts import across
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array, Codes

SHAPES = ("own", "shared")
LARGE_SHAPE = 30.0
LARGEST = 1e300  # products and what is drawn are kept inside the floats


class Gamma(ColumnFamily):
    """Gamma class-conditionals for columns of positive numbers.

    Parameters
    ----------
    shape : "own" (learnt for each class and column), "shared" (learnt for each column, the same in all classes), or a
        positive number: 1 is the exponential distribution.
    prior : under "map" and "bayes". With a given shape: a `GammaPrior`, which counts as events, as many a row as the
        shape, seen during some exposure; None is half an event of each column during the exposure that makes the prior
        rate the overall rate. With a shape that is learnt: `PseudoRows`, None is one row; "bayes" is then the same as
        "map".
    """

    support = POSITIVE

    def __init__(self, shape: float | str = "own", prior: GammaPrior | PseudoRows | None = None) -> None:
        self.shape = shape
        self.prior = prior

    def check(self, estimation: Estimation) -> None:
        shape: object = self.shape
        given = isinstance(shape, Real) and 0.0 < float(shape) < np.inf
        if not (given or (isinstance(shape, str) and shape in SHAPES)):
            raise InputError(f"shape={shape!r} must be a positive finite number, or one of {listed(SHAPES)}.")
        check_prior(self.prior, GammaPrior if given else PseudoRows, estimation)

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return x, np.log(x)

    def _bent(self, left: Sums, before: Sums) -> Mask:
        """The mean of logarithms is at most the logarithm of the mean."""
        (total, logs), weight = left.totals, left.column_weight
        seen = (weight > 0.0) & ~left.unobserved()
        slack = 1e-8 * (1.0 + np.abs(before.totals[1]).max(axis=0, initial=0.0))
        mean = np.where(seen & (total > 0.0), total, 1.0) / np.where(seen, weight, 1.0)
        return np.asarray((seen & ((total <= 0.0) | (logs > weight * np.log(mean) + slack))).any(axis=0))

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        total, logs = sums.totals
        return (total, logs), -logs

    def _n_parameters(self, statistics: Sums, names: Sequence[str]) -> int:
        rates = super()._n_parameters(statistics, names)
        shapes = {"own": rates, "shared": rates // max(len(statistics.classes), 1)}
        return rates + (shapes[self.shape] if isinstance(self.shape, str) else 0)

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        if isinstance(self.shape, str):
            return super()._log_evidence(statistics, names)
        (total, logs), weight, given = statistics.totals, statistics.column_weight, float(self.shape)
        overall = constant_value(statistics)
        prior = self.prior if isinstance(self.prior, GammaPrior) else GammaPrior()
        before, during = prior.counted(given / np.where(overall > 0.0, overall, 1.0))
        terms = gamma_evidence(before, during, given * weight, total)
        terms = terms + (given - 1.0) * logs - weight * scipy.special.gammaln(given)
        return float(terms[:, _varies(statistics)].sum())

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
        if isinstance(self.shape, str):
            return self._learn_shape(statistics, estimation, names)
        return self._learn_rate(statistics, estimation, float(self.shape))

    def _learn_rate(self, statistics: Sums, estimation: Estimation, given: float) -> Conditionals:
        (total, _), weight = statistics.totals, statistics.column_weight
        informative, overall = _varies(statistics.whole), constant_value(statistics)
        shape = np.full_like(total, given)
        if estimation == Estimation.MLE:
            return GammaConditionals(informative, overall, shape, rate=given * weight / total)
        typical = given / np.where(overall > 0.0, overall, 1.0)
        prior = self.prior if isinstance(self.prior, GammaPrior) else GammaPrior()
        before, during = prior.counted(typical)
        events, exposure = given * weight + before, total + during
        if estimation == Estimation.MAP:
            return GammaConditionals(informative, overall, shape, rate=events / exposure)
        return GammaPredictive(informative, overall, shape, events, exposure)

    def _learn_shape(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        totals, weight, rows = statistics.totals, statistics.column_weight, across(statistics.rows)
        informative, overall = _varies(statistics.whole), constant_value(statistics)
        if estimation != Estimation.MLE:
            prior = self.prior if isinstance(self.prior, PseudoRows) else PseudoRows()
            totals, weight = prior.added(statistics)
            rows = across(statistics.whole.rows).sum(axis=0)
        spread, clear = _spread(totals, weight, rows)
        if self.shape == "shared":
            mass = weight.sum(axis=0)
            pooled = (weight * spread).sum(axis=0) / np.where(mass > 0.0, mass, 1.0)
            spread, clear = np.broadcast_to(pooled, spread.shape), np.broadcast_to(clear.any(axis=0), clear.shape)
        hidden = informative & ~clear
        if estimation == Estimation.MLE and hidden.any():
            j = np.argwhere(hidden)[0][1]
            raise NotEstimableError(
                f"Column {names[j]!r} has no spread within class {listed(statistics.classes[hidden[:, j]])}, so the "
                "likelihood of its shape has no maximum. Give a shape, use estimation='bayes' or 'map', or leave the "
                "column out."
            )
        shape = _solve(np.where(informative, spread, 1.0))
        rate = shape * weight / np.where(informative, totals[0], 1.0)
        return GammaConditionals(informative, overall, shape, rate)

    def _leave_one_out(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> LeaveOneOutDensity:
        if self.shape != "shared":
            return super()._leave_one_out(statistics, estimation, names)
        fitted = self.estimate(statistics, estimation, names)
        assert isinstance(fitted, GammaConditionals)

        def parts(sums: Sums) -> tuple[Array, Array, Array]:
            """Totals of x, weights and spreads, the prior among them."""
            totals, weight, rows = sums.totals, sums.column_weight, across(sums.rows)
            if estimation != Estimation.MLE:
                totals, weight = (self.prior if isinstance(self.prior, PseudoRows) else PseudoRows()).added(sums)
                rows = across(sums.whole.rows).sum(axis=0)
            return totals[0], weight, _spread(totals, weight, rows)[0]

        total, weight, spread = parts(statistics)

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            x, silent = fitted.read(rows)
            rest = statistics.leave_one_out(rows, codes, weights, self.collected, self.support.filler)
            own_total, own_weight, own_spread = parts(rest)
            pooled = (weight * spread).sum(axis=0) + own_weight * own_spread - (weight * spread)[codes]
            mass = weight.sum(axis=0) + own_weight - weight[codes]
            shape = _solve(np.where(fitted.informative & (mass > 0.0), pooled / np.where(mass > 0.0, mass, 1.0), 1.0))
            result = np.empty((len(weight), len(x)))
            for k in range(len(weight)):
                mine = (codes == k)[:, None]
                sums, count = np.where(mine, own_total, total[k]), np.where(mine, own_weight, weight[k])
                rate = shape * count / np.where(fitted.informative & (sums > 0.0), sums, 1.0)
                terms = fitted.log_terms(x, -rate, shape, shape)
                result[k] = (terms if silent is None else np.where(silent, 0.0, terms)).sum(axis=1)
            lost = (rest.unobserved() & ~np.isnan(rows)).any(axis=1) & (estimation == Estimation.MLE)
            result[codes[lost], np.flatnonzero(lost)] = -np.inf
            return result

        return density

    def describe(self) -> str:
        words = {"own": "one shape per class", "shared": "one shape for all classes"}
        return f"Gamma, {words[self.shape] if isinstance(self.shape, str) else f'shape {self.shape:g}'}"


def _spread(totals: Array, weight: Array, rows: AnyArray) -> tuple[Array, Mask]:
    """log of the mean − mean of the log, which is 0 where all values are equal; and whether it is above rounding.

    It is not below what the rounding of so many rows' sums can make of 0.
    """
    total, logs = totals
    seen = (weight > 0.0) & (total > 0.0)
    mean, typical = (part / np.where(seen, weight, 1.0) for part in (np.where(seen, total, 1.0), logs))
    excess = np.where(seen, np.log(mean) - typical, 0.0)
    rounding = 256.0 * EPS * np.sqrt(np.maximum(rows, 1)) * (1.0 + np.abs(typical))
    return np.maximum(excess, rounding), excess > rounding


def _varies(statistics: Sums) -> Mask:
    """Whether a column takes more than one value; deviations of n rows below 1e-6·n^¼ of the mean are not seen."""
    rows = np.broadcast_to(across(statistics.rows), statistics.totals.shape[1:])
    _, clear = _spread(statistics.totals.sum(axis=1), statistics.column_weight.sum(axis=0), rows.sum(axis=0))
    return clear


def _solve(spread: Array) -> Array:
    """The shape for which log shape − ψ(shape) is the spread, by Newton's steps for 1/shape (Minka 2002).

    1/(2·shape) < log shape − ψ(shape) < 1/shape (Alzer 1997), which bounds every step.
    """
    inverse = 12.0 * spread / (3.0 - spread + np.sqrt((spread - 3.0) ** 2 + 24.0 * spread))
    for _ in range(100):
        value, slope = _log_minus_digamma(inverse)
        better = np.clip(inverse - (value - spread) / slope, spread, 2.0 * spread)
        close = bool(np.all(np.abs(better - inverse) <= 1e-9 * inverse))  # the next step is below rounding
        inverse = better
        if close:
            break
    return np.asarray(1.0 / inverse)


def _log_minus_digamma(inverse: Array) -> tuple[Array, Array]:
    """log a − ψ(a) and its slope along 1/a, where 1/a is given; for large a by its series, which does not cancel."""
    t = np.minimum(inverse, 1.0 / LARGE_SHAPE)
    s = t * t
    value = t * (0.5 + t * (1.0 / 12.0 - s * (1.0 / 120.0 - s * (1.0 / 252.0 - s / 240.0))))
    slope = 0.5 + t * (1.0 / 6.0 - s * (1.0 / 30.0 - s * (1.0 / 42.0 - s / 30.0)))
    a = 1.0 / np.maximum(inverse, 1.0 / LARGE_SHAPE)
    large = inverse <= 1.0 / LARGE_SHAPE
    return (
        np.where(large, value, np.log(a) - scipy.special.digamma(a)),
        np.where(large, slope, a * (a * scipy.special.polygamma(1, a) - 1.0)),
    )


@dataclass(frozen=True, eq=False)
class GammaConditionals(NaturalColumns):
    """Gamma quantities with plugged-in shapes and rates."""

    shape: Array  # (classes, d)
    rate: Array  # (classes, d)

    support: ClassVar = POSITIVE
    name: ClassVar = "Gamma"
    silence: ClassVar = "no spread that sums of x and log x can show, no evidence"

    def means(self) -> Array:
        return np.asarray(self.shape / self.rate)

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        """A as shape·(log mean − 1) and what Stirling's formula adds: shape·log shape cancels beforehand."""
        small = stirling_error(self.shape) + 0.5 * (LOG_2PI - np.log(self.shape))
        return (-self.rate, self.shape), self.shape * (np.log(self.shape / self.rate) - 1.0) + small

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return x, np.log(x)

    @staticmethod
    def carrier(x: Array) -> Array:
        return -np.log(x)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """In a form that stays exact for large shapes: shape/x times the Poisson chance of shape, rate·x expected."""
        rate, shape = -parameters[0], parameters[1]
        with np.errstate(over="ignore"):
            expected = np.clip(rate * x, TINY, LARGEST)
        constant = 0.5 * (np.log(shape) - LOG_2PI) - stirling_error(shape)
        return np.asarray(constant - np.log(x) - deviance(shape, expected))

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _inside(rng.gamma(self.shape[label], size=(n, self.dimension)), self.rate[label])


@dataclass(frozen=True, eq=False)
class GammaPredictive(IndependentColumns):
    """Compound gamma quantities: rates integrated over Gamma(events, exposure)."""

    shape: Array  # (classes, d)
    events: Array  # (classes, d)
    exposure: Array  # (classes, d)

    support: ClassVar = POSITIVE
    name: ClassVar = "Gamma"
    silence: ClassVar = "no spread that sums of x and log x can show, no evidence"

    def means(self) -> Array:
        return np.asarray(self.shape * inverse_mean(self.events, self.exposure))

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.shape, self.events, self.exposure

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """shape·events/(shape + events)/x times a binomial chance, by Stirling's formula (Loader 2000)."""
        shape, events, exposure = parameters
        trials = shape + events
        with np.errstate(over="ignore"):
            odds = np.clip(x / exposure, TINY, LARGEST)
        constant = 0.5 * (np.log(shape / trials * events) - LOG_2PI)
        rest = stirling_error(trials) - stirling_error(shape) - stirling_error(events)
        away = deviance(shape, trials * (odds / (1.0 + odds))) + deviance(events, trials / (1.0 + odds))
        return np.asarray(constant + rest - np.log(x) - away)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        size = (n, self.dimension)
        rate = rng.gamma(self.events[label], size=size) / self.exposure[label]
        return _inside(rng.gamma(self.shape[label], size=size), rate)


def _inside(x: Array, rate: Array) -> Array:
    """Values of rate 1 at another rate, inside the support where they are rounded to 0 or infinity."""
    with np.errstate(over="ignore"):
        return np.clip(np.maximum(x, TINY) / np.maximum(rate, TINY), TINY, LARGEST)
