"""Likelihood equations without closed-form solution, by Newton's method: gamma shape, beta, von Mises concentration."""

from __future__ import annotations

import numpy as np
import scipy.special

from likely.numerics.special import EPS
from likely.typing import Array

LARGE_SHAPE = 30.0  # above it, log a − ψ(a) is computed by its series
GAMMA_STEPS, BETA_STEPS, VON_MISES_STEPS = 100, 200, 100  # upper limits; six to ten steps are typical


def solve_gamma_shape(log_ratio: Array) -> Array:
    """The shape a with log a − ψ(a) = log_ratio, by Newton steps in 1/a (Minka 2002).

    Every step is bounded by 1/(2a) < log a − ψ(a) < 1/a (Alzer 1997).
    """
    inverse = 12.0 * log_ratio / (3.0 - log_ratio + np.sqrt((log_ratio - 3.0) ** 2 + 24.0 * log_ratio))
    for _ in range(GAMMA_STEPS):
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
    for _ in range(BETA_STEPS):
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


def solve_concentration(length: Array) -> Array:
    """κ with I₁(κ)/I₀(κ) = length < 1, by Newton's method from the approximation of Banerjee et al. (2005)."""
    kappa = length * (2.0 - length * length) / ((1.0 - length) * (1.0 + length))
    for _ in range(VON_MISES_STEPS):
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
