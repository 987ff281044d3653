"""The beta family: numbers strictly between 0 and 1, such as proportions.

x | k ~ Beta(α_k, β_k), with density x^(α−1)·(1 − x)^(β−1) / B(α, β). Natural form: u(x) = (log x, log(1 − x)),
θ = (α, β), A = log B(α, β), h = 1/(x·(1 − x)). The conjugate prior is pseudo-rows with the average statistics of all
rows. It has no closed-form predictive: full Bayes plugs in the posterior mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.special

from likely.families.base import Conditionals
from likely.families.column_family import ColumnFamily, constant_value
from likely.families.estimation import Estimation, require_maximum
from likely.families.independent import Mask
from likely.families.natural import NaturalColumns
from likely.families.parameters import ColumnParameters
from likely.families.priors import PseudoRows, check_prior, pseudo_row_sums, with_pseudo_rows
from likely.families.supports import FRACTIONS, POSITIVE
from likely.numerics.count_densities import deviance
from likely.numerics.expressions import Expression, log, log1p, log_relative
from likely.numerics.special import EPS, LOG_2PI, TINY, stirling_error
from likely.statistics.counts import across
from likely.statistics.rounding import relative_sum_error
from likely.statistics.sums import Sums
from likely.typing import Array

MOST_STEPS = 200  # of Newton's method; six to ten are typical


class Beta(ColumnFamily):
    """Beta distribution for columns of proportions: numbers strictly between 0 and 1.

    Each column is independent within a class and has two parameters per class, α and β, which are estimated by
    Newton's method. The posterior has no closed-form predictive, so ``estimation="bayes"`` plugs in the posterior
    mode, as "map" does.

    Parameters
    ----------
    prior : PseudoRows or None, default=None
        Prior under ``estimation="map"`` and "bayes": rows with the average statistics of all rows, added to every
        class. None is one such row.

    See Also
    --------
    LogNormal, Gamma : Positive numbers without an upper bound.

    Examples
    --------
    >>> from likely import Beta, GenerativeClassifier
    >>> X = [[0.1], [0.2], [0.15], [0.6], [0.9], [0.7]]
    >>> model = GenerativeClassifier(Beta()).fit(X, ["low", "low", "low", "high", "high", "high"])
    >>> model.predict([[0.3], [0.8]])
    array(['low', 'high'], dtype='<U4')
    """

    support = FRACTIONS
    _given_parameters = (
        ("alpha", POSITIVE),
        ("beta", POSITIVE),
    )
    _parameters_per_column = 2

    def __init__(self, prior: PseudoRows | None = None) -> None:
        self.prior = prior

    def check(self, estimation: Estimation) -> None:
        check_prior(self.prior, PseudoRows, estimation)

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return np.log(x), np.log1p(-x), x

    def _plugged_in(self, informative: Mask, constant: Array, parameters: Mapping[str, Array]) -> BetaConditionals:
        return BetaConditionals(informative, constant, **parameters)

    def _column_parameters(self, statistics: Sums, fitted: Any, estimation: Estimation) -> ColumnParameters:
        alpha, beta, weight = fitted.alpha, fitted.beta, statistics.column_weight
        if estimation != Estimation.MLE:
            return {"alpha": (alpha, None), "beta": (beta, None)}
        both, first, second = (scipy.special.polygamma(1, value) for value in (alpha + beta, alpha, beta))
        determinant = first * second - both * (first + second)  # of the information of a row
        errors = (np.sqrt((other - both) / (weight * determinant)) for other in (second, first))
        return dict(zip(("alpha", "beta"), zip((alpha, beta), errors, strict=True), strict=True))

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        whole = statistics.whole
        whole_weight = whole.column_weight.sum(axis=0)
        pooled = _means(whole.totals.sum(axis=1), whole_weight)
        informative = (jensen_gap(*pooled) > _gap_rounding(*pooled, across(whole.rows).sum(axis=0))) & (
            whole_weight > 0.0
        )
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
        log_x, log_rest = _means(*with_pseudo_rows(self.prior, statistics, estimation))
        least = _gap_rounding(log_x, log_rest, across(statistics.rows))
        short = np.where(informative, np.maximum(least - jensen_gap(log_x, log_rest), 0.0), 0.0)
        if estimation == Estimation.MLE:
            require_maximum(short > 0.0, statistics.classes, names, "has only one value in")
        log_x, log_rest = (np.where(informative, mean - short, -1.0) for mean in (log_x, log_rest))  # −1: α = β = 1
        alpha, beta = solve_beta(log_x, log_rest)
        return BetaConditionals(informative, constant_value(statistics, 2), alpha, beta)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        log_x, log_rest = sums.totals[:2]
        return (log_x, log_rest), -log_x - log_rest

    def _impossible_columns(self, left: Sums, before: Sums) -> Mask:
        """Columns with a negative Jensen gap, or with a mean of x outside [0, 1]."""
        slack = 1e-8 * (1.0 + before.column_weight.max(axis=0, initial=0.0))
        weight, total = left.column_weight, left.totals[2]
        gap = weight * jensen_gap(*_means(left.totals, weight))
        return np.asarray(((gap < -slack) | (total < -slack) | (total > weight + slack)).any(axis=0))

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        totals, weight = pseudo_row_sums(self.prior, statistics)
        return tuple(totals)[:2], weight


def _means(totals: Array, weight: Array) -> tuple[Array, Array]:
    """Means of log x and log(1 − x)."""
    log_x, log_rest = totals[:2] / np.where(weight > 0.0, weight, 1.0)
    return log_x, log_rest


def _gap_rounding(log_x: Array, log_rest: Array, rows: Array) -> Array:
    """The Jensen gap that the rounding error of the sums of `rows` rows can make, or that parameters overflow at.

    Columns with a standard deviation of 2e-7 of the mean, 2e-6 with 10,000 rows, count as constant.
    """
    slope = log_x * np.exp(log_x) + log_rest * np.exp(log_rest)
    return np.asarray(8.0 * TINY - relative_sum_error(rows) * slope)


def jensen_gap(log_x: Array, log_rest: Array) -> Array:
    """1 − exp(mean log x) − exp(mean log(1 − x)): 0 if all x are equal, positive otherwise (Jensen's inequality)."""
    low, high = np.minimum(log_x, log_rest), np.maximum(log_x, log_rest)
    return np.asarray(-np.expm1(high) - np.exp(low))


def solve_beta(log_x: Array, log_rest: Array) -> tuple[Array, Array]:
    """α and β with ψ(α) − ψ(α + β) = mean log x and ψ(β) − ψ(α + β) = mean log(1 − x).

    Newton steps in log α and log β. With r(x) = 1/ψ′(x), the inverse of the matrix of second derivatives is, up to
    factors, r(α)·r(β) divided by r(α + β) − r(α) − r(β); with k(x) = r(x) − x, no large terms cancel.
    """
    twice = 2.0 * jensen_gap(log_x, log_rest)
    alpha, beta = -np.expm1(log_rest) / twice, -np.expm1(log_x) / twice
    for _ in range(MOST_STEPS):
        first, second = log_x + _digamma_step(alpha, beta), log_rest + _digamma_step(beta, alpha)
        k_alpha, k_beta, k_both = _inverse_trigamma(alpha), _inverse_trigamma(beta), _inverse_trigamma(alpha + beta)
        r_alpha, r_beta, divisor = alpha + k_alpha, beta + k_beta, k_both - k_alpha - k_beta
        step_alpha = r_alpha / alpha * ((alpha + k_both - k_beta) * first + r_beta * second) / divisor
        step_beta = r_beta / beta * ((beta + k_both - k_alpha) * second + r_alpha * first) / divisor
        rounding = 4.0 * EPS * (1.0 - (alpha * log_x + beta * log_rest) / divisor)
        alpha, beta = alpha * np.exp(np.clip(step_alpha, -1.0, 1.0)), beta * np.exp(np.clip(step_beta, -1.0, 1.0))
        if np.all(np.maximum(np.abs(step_alpha), np.abs(step_beta)) <= rounding):
            break
    return alpha, beta


def _digamma_step(x: Array, step: Array) -> Array:
    """ψ(x + step) − ψ(x) for positive numbers, without cancellation.

    By ψ(x + 1) = ψ(x) + 1/x until x is large, then by the difference of two asymptotic series.
    """
    total = np.zeros_like(x)
    for _ in range(16):
        total += step / x / (x + step)
        x = x + 1.0
    u, v = 1.0 / x, 1.0 / (x + step)
    p, q = u * u, v * v
    series, power, quotient = np.zeros_like(x), np.ones_like(x), np.ones_like(x)  # Σ c·(pⁱ − qⁱ)/(p − q)
    for c in (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132):
        series += c * quotient
        power = power * q
        quotient = quotient * p + power
    return np.asarray(total + np.log1p(step / x) + step * u * v * (0.5 + (u + v) * series))


def _inverse_trigamma(x: Array) -> Array:
    """k(x) = 1/ψ′(x) − x."""
    small, large = np.minimum(x, 1e3), np.maximum(x, 1e3)
    return np.where(x < 1e3, 1.0 / scipy.special.zeta(2.0, small) - small, -0.5 + (1.0 + 0.5 / large) / (12.0 * large))


@dataclass(frozen=True, eq=False)
class BetaConditionals(NaturalColumns):
    """Beta distributions with plug-in parameters."""

    alpha: Array  # (classes, d)
    beta: Array  # (classes, d)

    support: ClassVar = FRACTIONS
    name: ClassVar = "Beta"

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        return (self.alpha, self.beta), scipy.special.betaln(self.alpha, self.beta)

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return np.log(x), np.log1p(-x)

    def statistic_expressions(self, x: Expression) -> tuple[Expression, ...]:
        return log(x), log1p(-x)

    def centred_statistics(self, x: Expression, centre: float) -> tuple[Expression, ...]:
        first, rest = super().centred_statistics(x, centre)
        return log_relative(x - centre, centre, first), log_relative(centre - x, 1.0 - centre, rest)

    def class_centres(self, column: int) -> Array:
        return self.means()[:, column]

    def carrier(self, x: Array) -> Array:
        return -np.log(x) - np.log1p(-x)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """The saddle-point form of the binomial probability (Loader 2000), which is exact for large parameters."""
        alpha, beta, _ = parameters
        both = alpha + beta
        errors = [stirling_error(np.minimum(value, 1e150)) for value in (both, alpha, beta)]  # 0 beyond that
        peak = errors[0] - errors[1] - errors[2] + 0.5 * (np.log(alpha) + np.log(beta) - np.log(both) - LOG_2PI)
        normal = np.maximum(x, TINY)  # the reciprocal of a smaller number would overflow
        away = deviance(alpha, both * normal) + deviance(beta, both * (1.0 - x)) - alpha * np.log(x / normal)
        return np.asarray(peak - away + self.carrier(x))

    def means(self) -> Array:
        return np.asarray(self.alpha / (self.alpha + self.beta))

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        drawn = rng.beta(self.alpha[label], self.beta[label], size=(n, self.dimension))
        return np.clip(drawn, TINY, 1.0 - EPS / 2.0)
