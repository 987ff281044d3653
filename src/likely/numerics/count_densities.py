"""Poisson and negative binomial log-densities that keep their digits at large counts."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.special

from likely.numerics.special import LOG_2PI, TINY, stirling_error
from likely.typing import Array


def deviance(x: Array, mean: Array) -> Array:
    """x·log(x/mean) + mean − x for x >= 0, mean > 0, without cancellation where they are close.

    With u = (x − mean)/(x + mean), log(x/mean) = 2·artanh u (Loader 2000).
    """
    x, mean = np.asarray(x, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    u = (x - mean) / (x + mean)
    near = np.abs(u) < 0.1
    square = np.where(near, u, 0.0) ** 2
    series = np.zeros_like(square)
    for power in range(21, 1, -2):  # artanh u − u = u³/3 + u⁵/5 + …
        series = square * (1.0 / power + series)
    close = (x - mean) * u + 2.0 * x * u * series
    with np.errstate(over="ignore"):
        return np.where(near, close, scipy.special.xlogy(x, x / mean) + mean - x)


def poisson_log_density(x: Array, mean: Array) -> Array:
    """x·log mean − mean − log Γ(x + 1) for x >= 0 and mean >= 0, exact for large counts too (Loader 2000)."""
    x, mean = np.asarray(x, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    safe, middle = np.where(x > 0.0, np.maximum(x, TINY), 1.0), np.maximum(mean, TINY)
    density = -stirling_error(safe) - deviance(safe, middle) - 0.5 * (LOG_2PI + np.log(safe))
    return np.where(x == 0.0, -mean, np.where(mean == 0.0, -np.inf, density))


def negative_binomial_log_density(x: Array, successes: Array, odds: Array) -> Array:
    """log of Γ(x + r)/(Γ(r)·Γ(x + 1))·pʳ·(1 − p)ˣ, r successes, odds = p/(1 − p) > 0; exact for large x too.

    It is r/(r + x) times the binomial chance of r successes in r + x trials (Loader 2000).
    """
    x, successes = np.asarray(x, dtype=np.float64), np.asarray(successes, dtype=np.float64)
    safe = np.where(x > 0.0, np.maximum(x, TINY), 1.0)
    trials = successes + safe
    chance = (
        stirling_error(trials)
        - stirling_error(successes)
        - stirling_error(safe)
        - deviance(successes, trials * (odds / (1.0 + odds)))
        - deviance(safe, trials / (1.0 + odds))
        - 0.5 * (LOG_2PI + np.log(successes) + np.log(safe / trials))
    )
    density = chance + np.log(successes / trials)
    return np.where(x == 0.0, -successes * np.log1p(1.0 / odds), density)
