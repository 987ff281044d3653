"""The gamma family: positive numbers, such as the time until several events have occurred.

x | k ~ Gamma(shape_k, rate_k): p(x) = rate^shape·x^(shape − 1)·exp(−rate·x)/Γ(shape) for x > 0. Natural form:
u(x) = (x, log x), θ = (−rate, shape), A = log Γ(shape) − shape·log rate, h = 1/x. With one shape for all classes, the
terms in log x cancel and log-odds are linear in x.

With a given shape, the conjugate prior is a gamma distribution of the rate, as pseudo-events (`shape` per row) observed
during an exposure, and the posterior predictive is a compound gamma (beta prime) distribution,
Γ(shape + a)/(Γ(shape)·Γ(a))·bᵃ·x^(shape − 1)/(b + x)^(a + shape) after a events during the exposure b. With an
estimated shape there is no closed-form predictive: the prior is pseudo-rows, and full Bayes plugs in their mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.special

from likely.errors import InputError, listed
from likely.families.base import Conditionals, LeaveOneOutDensity
from likely.families.column_family import ColumnFamily, constant_value
from likely.families.estimation import Estimation, no_maximum_error
from likely.families.independent import IndependentColumns, Mask
from likely.families.natural import NaturalColumns
from likely.families.parameters import ColumnParameters, rate_errors
from likely.families.priors import (
    GammaPrior,
    PseudoRows,
    check_prior,
    gamma_evidence,
    mean_inverse_rate,
    require_proper,
    with_pseudo_data,
    with_pseudo_rows,
)
from likely.families.supports import POSITIVE
from likely.numerics.count_densities import deviance
from likely.numerics.expressions import Expression, in_units, log, log1p, log_relative
from likely.numerics.intervals import log_gamma_interval
from likely.numerics.special import EPS, LOG_2PI, TINY, stirling_error
from likely.statistics.counts import across
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array, Codes

SHAPES = ("own", "shared")
LARGEST = 1e300  # products and draws are clipped here instead of overflowing
LARGE_SHAPE = 30.0  # above it, log a − ψ(a) is computed by its series
MOST_STEPS = 100  # of Newton's method; six to ten are typical
CONSTANT = "constant columns (to the precision of sums of x and log x), ignored"


class Gamma(ColumnFamily):
    """Gamma distribution for columns of positive numbers, such as amounts and durations.

    Each column is independent within a class. The rate is estimated per class; the shape is estimated per class,
    estimated for all classes together, or given.

    Parameters
    ----------
    shape : {"own", "shared"} or float, default="own"
        "own" estimates one shape per class and column, "shared" one shape per column for all classes, so that log-odds
        are linear in x. A positive number is a given shape; 1 is the exponential distribution.
    prior : GammaPrior, PseudoRows or None, default=None
        Prior under ``estimation="map"`` and "bayes". With a given shape: a `GammaPrior` of the rate, pseudo-events
        (`shape` per row) during an exposure; None is half an event, with the exposure for which the prior rate equals
        the overall rate of the column. With an estimated shape: `PseudoRows`, rows with the average statistics of all
        rows; None is one such row, and "bayes" is the same as "map".

    See Also
    --------
    Exponential : The special case of shape 1.
    LogNormal : Positive numbers over several orders of magnitude.

    References
    ----------
    Minka, T. P. (2002). Estimating a Gamma distribution. Technical report, Microsoft Research.

    Examples
    --------
    >>> from likely import Gamma, GenerativeClassifier
    >>> X = [[1.0], [1.5], [0.8], [4.0], [6.0], [9.0]]
    >>> model = GenerativeClassifier(Gamma("shared")).fit(X, ["short"] * 3 + ["long"] * 3)
    >>> model.predict([[1.1], [7.0]])
    array(['short', 'long'], dtype='<U5')
    """

    support = POSITIVE
    _given_parameters = (
        ("shape", POSITIVE),
        ("rate", POSITIVE),
    )

    def __init__(self, shape: float | str = "own", prior: GammaPrior | PseudoRows | None = None) -> None:
        self.shape = shape
        self.prior = prior

    def check(self, estimation: Estimation) -> None:
        shape: object = self.shape
        given = isinstance(shape, Real) and 0.0 < float(shape) < np.inf
        if not (given or (isinstance(shape, str) and shape in SHAPES)):
            raise InputError(f"shape={shape!r} must be a positive finite number, or one of {listed(SHAPES)}.")
        check_prior(self.prior, GammaPrior if given else PseudoRows, estimation)

    def describe(self) -> str:
        words = {"own": "one shape per class", "shared": "one shape for all classes"}
        return f"Gamma, {words[self.shape] if isinstance(self.shape, str) else f'shape {self.shape:g}'}"

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return x, np.log(x)

    def _plugged_in(self, informative: Mask, constant: Array, parameters: Mapping[str, Array]) -> GammaConditionals:
        return GammaConditionals(informative, constant, **parameters)

    def _column_parameters(self, statistics: Sums, fitted: Any, estimation: Estimation) -> ColumnParameters:
        if not isinstance(self.shape, str):
            events, exposure = self._posterior(statistics, estimation, float(self.shape))
            rate = events / exposure, rate_errors(events, exposure, estimation)
            return {"shape": (fitted.shape, None), "rate": rate}
        if estimation != Estimation.MLE:
            return {"shape": (fitted.shape, None), "rate": (fitted.rate, None)}
        shape, rate, weight = fitted.shape, fitted.rate, statistics.column_weight
        rows = weight.sum(axis=0) if self.shape == "shared" else weight
        # The information of the shape, n·(ψ′(α) − 1/α), is what the rates leave of it.
        variance = 1.0 / (rows * (scipy.special.polygamma(1, shape) - 1.0 / shape))
        errors = rate * np.sqrt(1.0 / (weight * shape) + variance / shape**2)
        return {"shape": (shape, np.sqrt(variance)), "rate": (rate, errors)}

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
        if isinstance(self.shape, str):
            return self._estimate_shape_and_rate(statistics, estimation, names)
        return self._estimate_rate(statistics, estimation, names, float(self.shape))

    def _estimate_rate(
        self, statistics: Sums, estimation: Estimation, names: Sequence[str], given: float
    ) -> Conditionals:
        informative = _varies(statistics.whole)
        require_proper(self.prior, statistics.totals[0], informative, statistics, names)
        events, exposure = self._posterior(statistics, estimation, given)
        common = informative, constant_value(statistics), np.full_like(events, given)
        if estimation == Estimation.BAYES:
            return GammaPredictive(*common, events, exposure)
        return GammaConditionals(*common, rate=events / exposure)

    def _estimate_shape_and_rate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        informative, overall = _varies(statistics.whole), constant_value(statistics)
        totals, weight, rows = self._with_pseudo_rows(statistics, estimation)
        ratio, clear = _log_ratio(totals, weight, rows)
        if self.shape == "shared":
            total_weight = weight.sum(axis=0)
            pooled = (weight * ratio).sum(axis=0) / np.where(total_weight > 0.0, total_weight, 1.0)
            ratio, clear = np.broadcast_to(pooled, ratio.shape), np.broadcast_to(clear.any(axis=0), clear.shape)
        constant = informative & ~clear
        if estimation == Estimation.MLE and constant.any():
            j = np.argwhere(constant)[0][1]
            classes = statistics.classes[constant[:, j]]
            raise no_maximum_error(
                names[j],
                classes,
                "is constant within",
                "the likelihood of its shape has no maximum",
                "Give a shape, use estimation='bayes' or 'map'",
            )
        shape = solve_gamma_shape(np.where(informative, ratio, 1.0))
        rate = shape * weight / np.where(informative, totals[0], 1.0)
        return GammaConditionals(informative, overall, shape, rate)

    def _with_pseudo_rows(self, sums: Sums, estimation: Estimation) -> tuple[Array, Array, AnyArray]:
        """Totals, weights and numbers of rows, with the pseudo-rows of the prior unless under maximum likelihood."""
        prior = self.prior if isinstance(self.prior, PseudoRows) else None
        rows = across(sums.rows) if estimation == Estimation.MLE else across(sums.whole.rows).sum(axis=0)
        return *with_pseudo_rows(prior, sums, estimation), rows

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        total, logs = sums.totals
        return (total, logs), -logs

    def _n_parameters(self, statistics: Sums, names: Sequence[str]) -> int:
        rates = super()._n_parameters(statistics, names)
        shapes = {"own": rates, "shared": rates // max(len(statistics.classes), 1)}
        return rates + (shapes[self.shape] if isinstance(self.shape, str) else 0)

    def _violates_jensen(self, left: Sums, before: Sums) -> Mask:
        """Σ log x > n·log(Σx/n), or a Σx that is not positive."""
        (total, logs), weight = left.totals, left.column_weight
        seen = (weight > 0.0) & ~left.unobserved()
        slack = 1e-8 * (1.0 + np.abs(before.totals[1]).max(axis=0, initial=0.0))
        mean = np.where(seen & (total > 0.0), total, 1.0) / np.where(seen, weight, 1.0)
        return np.asarray((seen & ((total <= 0.0) | (logs > weight * np.log(mean) + slack))).any(axis=0))

    def _pseudo_events(self, statistics: Sums, given: float) -> tuple[float, Array]:
        """Pseudo-events of the prior of the rate and their exposure, for a given shape."""
        overall = constant_value(statistics)
        prior = self.prior if isinstance(self.prior, GammaPrior) else GammaPrior()
        return prior.counted(given / np.where(overall > 0.0, overall, 1.0))

    def _posterior(self, statistics: Sums, estimation: Estimation, given: float) -> tuple[Array, Array]:
        """Events and their exposure, with those of the prior, for a given shape."""
        data = given * statistics.column_weight, statistics.totals[0]
        return with_pseudo_data(data, self._pseudo_events(statistics, given), estimation)

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        if isinstance(self.shape, str):
            return super()._log_evidence(statistics, names)
        (total, logs), weight, given = statistics.totals, statistics.column_weight, float(self.shape)
        terms = gamma_evidence(*self._pseudo_events(statistics, given), given * weight, total)
        terms = terms + (given - 1.0) * logs - weight * scipy.special.gammaln(given)
        return float(terms[:, _varies(statistics)].sum())

    def _leave_one_out(
        self, statistics: Sums, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        """A shared shape changes with the held-out row, in all classes."""
        if self.shape != "shared":
            return super()._leave_one_out(statistics, fitted, estimation, names)
        assert isinstance(fitted, GammaConditionals)

        def parts(sums: Sums) -> tuple[Array, Array, Array]:
            """Sums of x, weights and log ratios, with the prior."""
            totals, weight, rows = self._with_pseudo_rows(sums, estimation)
            return totals[0], weight, _log_ratio(totals, weight, rows)[0]

        total, weight, ratio = parts(statistics)

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            x, ignored = fitted.read(rows)
            rest = statistics.leave_one_out(rows, codes, weights, self.collected, self.support.filler)
            rest_total, rest_weight, rest_ratio = parts(rest)
            pooled = (weight * ratio).sum(axis=0) + rest_weight * rest_ratio - (weight * ratio)[codes]
            total_weight = weight.sum(axis=0) + rest_weight - weight[codes]
            known = fitted.informative & (total_weight > 0.0)
            shape = solve_gamma_shape(np.where(known, pooled / np.where(total_weight > 0.0, total_weight, 1.0), 1.0))
            result = np.empty((len(weight), len(x)))
            for k in range(len(weight)):
                held_out = (codes == k)[:, None]
                sums, count = np.where(held_out, rest_total, total[k]), np.where(held_out, rest_weight, weight[k])
                rate = shape * count / np.where(fitted.informative & (sums > 0.0), sums, 1.0)
                terms = fitted.log_terms(x, -rate, shape, shape)
                result[k] = (terms if ignored is None else np.where(ignored, 0.0, terms)).sum(axis=1)
            lost = (rest.unobserved() & ~np.isnan(rows)).any(axis=1) & (estimation == Estimation.MLE)
            result[codes[lost], np.flatnonzero(lost)] = -np.inf
            return result

        return density


def _log_ratio(totals: Array, weight: Array, rows: AnyArray) -> tuple[Array, Mask]:
    """log(mean x) − mean(log x), which is 0 if all x are equal, and whether it exceeds its rounding error.

    The result is at least the rounding error of the sums of `rows` rows.
    """
    total, logs = totals
    seen = (weight > 0.0) & (total > 0.0)
    mean, mean_log = (part / np.where(seen, weight, 1.0) for part in (np.where(seen, total, 1.0), logs))
    ratio = np.where(seen, np.log(mean) - mean_log, 0.0)
    rounding = 256.0 * EPS * np.sqrt(np.maximum(rows, 1)) * (1.0 + np.abs(mean_log))
    return np.maximum(ratio, rounding), ratio > rounding


def _varies(statistics: Sums) -> Mask:
    """Whether each column takes more than one value, (d,).

    With n rows, columns with a standard deviation below about 1e-6·n^¼ of the mean count as constant.
    """
    rows = np.broadcast_to(across(statistics.rows), statistics.totals.shape[1:])
    _, clear = _log_ratio(statistics.totals.sum(axis=1), statistics.column_weight.sum(axis=0), rows.sum(axis=0))
    return clear


def solve_gamma_shape(log_ratio: Array) -> Array:
    """The shape a with log a − ψ(a) = log_ratio, by Newton steps in 1/a (Minka 2002).

    Every step is bounded by 1/(2a) < log a − ψ(a) < 1/a (Alzer 1997).
    """
    inverse = 12.0 * log_ratio / (3.0 - log_ratio + np.sqrt((log_ratio - 3.0) ** 2 + 24.0 * log_ratio))
    for _ in range(MOST_STEPS):
        value, slope = _log_minus_digamma(inverse)
        better = np.clip(inverse - (value - log_ratio) / slope, log_ratio, 2.0 * log_ratio)
        close = bool(np.all(np.abs(better - inverse) <= 1e-9 * inverse))  # the next step is below rounding
        inverse = better
        if close:
            break
    return np.asarray(1.0 / inverse)


def _log_minus_digamma(inverse: Array) -> tuple[Array, Array]:
    """log a − ψ(a) and its derivative with respect to 1/a, given 1/a; large a by the series, which does not cancel."""
    t = np.minimum(inverse, 1.0 / LARGE_SHAPE)
    s = t * t
    value = t * (0.5 + t * (1.0 / 12.0 - s * (1.0 / 120.0 - s * (1.0 / 252.0 - s / 240.0))))
    slope = 0.5 + t * (1.0 / 6.0 - s * (1.0 / 30.0 - s * (1.0 / 42.0 - s / 30.0)))
    a = 1.0 / np.maximum(inverse, 1.0 / LARGE_SHAPE)
    large = inverse <= 1.0 / LARGE_SHAPE
    return (
        np.where(large, value, np.log(a) - scipy.special.digamma(a)),
        np.where(large, slope, a * (a * _trigamma(a) - 1.0)),
    )


def _trigamma(a: Array) -> Array:
    """ψ′(a) to eight digits, which is enough for Newton's steps: by ψ′(a) = ψ′(a + 1) + 1/a² and a series."""
    total = np.zeros_like(a)
    for _ in range(6):
        total += 1.0 / (a * a)
        a = a + 1.0
    t = 1.0 / a
    s = t * t
    return np.asarray(total + t * (1.0 + 0.5 * t + s * (1.0 / 6.0 - s * (1.0 / 30.0 - s / 42.0))))


@dataclass(frozen=True, eq=False)
class GammaConditionals(NaturalColumns):
    """Gamma distributions with plug-in shapes and rates."""

    shape: Array  # (classes, d)
    rate: Array  # (classes, d)

    support: ClassVar = POSITIVE
    name: ClassVar = "Gamma"
    ignored_note: ClassVar = CONSTANT

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        """A by Stirling's formula: shape·(log mean − 1) + ½·log(2π/shape) + its error; shape·log shape cancels."""
        small = stirling_error(self.shape) + 0.5 * (LOG_2PI - np.log(self.shape))
        return (-self.rate, self.shape), self.shape * (np.log(self.shape / self.rate) - 1.0) + small

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return x, np.log(x)

    def statistic_expressions(self, x: Expression) -> tuple[Expression, ...]:
        return x, log(x)

    def centred_statistics(self, x: Expression, centre: float) -> tuple[Expression, ...]:
        away, far = super().centred_statistics(x, centre)
        return away, log_relative(away, centre, far)

    def class_centres(self, column: int) -> Array:
        return self.means()[:, column]

    @staticmethod
    def carrier(x: Array) -> Array:
        return -np.log(x)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """shape/x times the Poisson probability of `shape` with mean rate·x, which is exact for large shapes."""
        rate, shape = -parameters[0], parameters[1]
        with np.errstate(over="ignore"):
            expected = np.clip(rate * x, TINY, LARGEST)
        constant = 0.5 * (np.log(shape) - LOG_2PI) - stirling_error(shape)
        return np.asarray(constant - np.log(x) - deviance(shape, expected))

    def log_interval(self, x: Array, *parameters: Array) -> Array:
        rate, shape = -parameters[0], parameters[1]
        return log_gamma_interval(x - 0.5, x + 0.5, shape, rate, self.log_terms(x, *parameters))

    def means(self) -> Array:
        return np.asarray(self.shape / self.rate)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return _divided(rng.gamma(self.shape[label], size=(n, self.dimension)), self.rate[label])


@dataclass(frozen=True, eq=False)
class GammaPredictive(IndependentColumns):
    """Compound gamma distributions: gamma ones with the rate integrated over Gamma(events, exposure)."""

    shape: Array  # (classes, d)
    events: Array  # (classes, d)
    exposure: Array  # (classes, d)

    support: ClassVar = POSITIVE
    name: ClassVar = "Gamma"
    ignored_note: ClassVar = CONSTANT

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.shape, self.events, self.exposure

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """shape·events/(shape + events)/x times a binomial probability, by its saddle-point form (Loader 2000)."""
        shape, events, exposure = parameters
        trials = shape + events
        with np.errstate(over="ignore"):
            odds = np.clip(x / exposure, TINY, LARGEST)
        constant = 0.5 * (np.log(shape / trials * events) - LOG_2PI)
        rest = stirling_error(trials) - stirling_error(shape) - stirling_error(events)
        away = deviance(shape, trials * (odds / (1.0 + odds))) + deviance(events, trials / (1.0 + odds))
        return np.asarray(constant + rest - np.log(x) - away)

    def expression(self, x: Expression, *parameters: float) -> Expression:
        """log of p(m)·m·(x/m)ˢ·((b + x)/(b + m))^−(s + a), m = b·s/a, s = shape, a = events, b = exposure."""
        shape, events, exposure = parameters
        centre = float(np.clip(shape / events * exposure, TINY, 0.25 * LARGEST))
        values = map(np.asarray, (centre, *parameters))
        peak = float(self.log_terms(*values) + np.log(centre))
        away, both = x - centre, exposure + centre
        ratio = log_relative(away, centre, log(x) - float(np.log(centre)))
        far = log1p(in_units(x, exposure)) - float(np.log1p(centre / exposure))
        return peak + shape * ratio - (shape + events) * log_relative(away, both, far)

    def means(self) -> Array:
        return np.asarray(self.shape * mean_inverse_rate(self.events, self.exposure))

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        size = (n, self.dimension)
        rate = rng.gamma(self.events[label], size=size) / self.exposure[label]
        return _divided(rng.gamma(self.shape[label], size=size), rate)


def _divided(x: Array, rate: Array) -> Array:
    """x / rate, clipped to the support where it would be rounded to 0 or infinity."""
    with np.errstate(over="ignore"):
        return np.clip(np.maximum(x, TINY) / np.maximum(rate, TINY), TINY, LARGEST)
