"""Logarithms of the probabilities of intervals, also in the tails and where an interval is narrow."""

from __future__ import annotations

import numpy as np
import scipy.special

from likely.numerics.special import TINY, log_gamma_ratio
from likely.typing import Array

NARROW = 1e-7  # fraction of a distribution function below which a difference is computed from the density
FAR_TAIL = 1e-250  # probabilities below it are computed from the density


def log_student_density(z: Array, degrees: Array) -> Array:
    """log f(z) of Student's t with ν degrees of freedom."""
    peak = log_gamma_ratio(degrees / 2.0, 0.5) - 0.5 * np.log(degrees * np.pi)
    return np.asarray(peak - 0.5 * (degrees + 1.0) * np.log1p(z * z / degrees))


def log_student_interval(low: Array, high: Array, degrees: Array) -> Array:
    """log P(low < T ≤ high) of Student's t with ν degrees of freedom.

    Both bounds are reflected into the lower tail where the interval lies above 0, so that no difference of numbers near
    1 is formed. In the far tail, P(T < −t) = f(t)·(1 + t²/ν)·ν/((ν − 1)·t) up to a factor 1 + O(t⁻²); of narrow
    intervals the density at the midpoint is used.
    """
    above = low > 0.0
    low, high = np.where(above, -high, low), np.where(above, -low, high)
    upper, lower = scipy.special.stdtr(degrees, high), scipy.special.stdtr(degrees, low)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        found = np.log(upper - lower)
        narrow = upper - lower <= NARROW * upper
        middle = log_student_density(0.5 * (low + high), degrees) + np.log(high - low)
        first, second = _log_student_tail(-high, degrees), _log_student_tail(-low, degrees)
        tail = first + np.log(-np.expm1(np.minimum(second - first, 0.0)))
    far = (upper < FAR_TAIL) & (-high > 1.0)
    return np.where(far, np.where(first - second < NARROW, middle, tail), np.where(narrow, middle, found))


def _log_student_tail(t: Array, degrees: Array) -> Array:
    """log P(T > t) for large t."""
    t = np.maximum(t, 1.0)
    factor = degrees / np.maximum(degrees - 1.0, 0.5)
    return np.asarray(log_student_density(t, degrees) + np.log1p(t * t / degrees) + np.log(factor / t))


def log_gamma_interval(low: Array, high: Array, shape: Array, rate: Array, density: Array) -> Array:
    """log P(low < X ≤ high) of gamma variables; `density` is the log-density at the midpoint, for narrow intervals."""
    a, b = np.maximum(rate * low, 0.0), rate * high
    above = a > shape
    lower = scipy.special.gammainc(shape, b) - scipy.special.gammainc(shape, a)
    upper = scipy.special.gammaincc(shape, a) - scipy.special.gammaincc(shape, b)
    whole = np.where(above, scipy.special.gammaincc(shape, a), scipy.special.gammainc(shape, b))
    mass = np.where(above, upper, lower)
    middle = density + np.log(high - low)
    with np.errstate(divide="ignore"):
        return np.where((mass <= NARROW * whole) | (mass <= TINY), middle, np.log(np.maximum(mass, TINY)))
