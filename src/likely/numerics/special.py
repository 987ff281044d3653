"""Log-sum-exp, softmax and ratios of gamma functions, accurate at the extremes.

Arrays of scores are laid out (classes, rows): reductions over a few classes then run over
contiguous memory, which is several times faster than along short rows.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.special

from likely.typing import Array

EPS = float(np.finfo(np.float64).eps)
LARGEST_ODDS = 600.0  # exp of it, summed over any number of classes, is far from overflow
LOG_2PI = float(np.log(2.0 * np.pi))
TINY = float(np.finfo(np.float64).tiny)


def log_sum_exp(scores: Array) -> Array:
    """log Σ_k exp(scores[k]) over the first axis; -inf where all are -inf."""
    top = scores.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        total = np.log(np.exp(scores - safe).sum(axis=0))
    return np.asarray(total + safe)


def softmax_into(scores: Array, out: Array) -> None:
    """Write softmax over the first axis of `scores` (overwritten) into `out`, transposed."""
    with np.errstate(invalid="ignore", over="ignore"):
        scores -= scores.max(axis=0)
        np.exp(scores, out=scores)
    np.divide(scores, scores.sum(axis=0), out=out.T)


def product_minus_one(z: Array) -> Array:
    """Π_j (1 + z_j) − 1 over the first axis of z (overwritten), (n,), so that one log1p gives Σ_j log(1 + z_j)."""
    if not len(z):
        return np.zeros(z.shape[1:])
    while len(z) > 1:  # (1 + a)(1 + b) − 1 = a + b + a·b, without cancellation
        half = len(z) // 2
        first, second = z[:half], z[len(z) - half :]
        more = first * second
        first += second
        first += more
        z = z[: len(z) - half]
    return z[0]


def sum_log(z: Array) -> Array:
    """Σ_j log z_j over the first axis, (n,), from logarithms of products of 64 values, which must not overflow."""
    total = np.zeros(z.shape[1:])
    for start in range(0, len(z), 64):
        total += np.log(np.multiply.reduce(z[start : start + 64], axis=0))
    return total


def log_softmax_into(scores: Array, out: Array) -> None:
    """Write log-softmax over the first axis of `scores` (overwritten) into `out`, transposed."""
    with np.errstate(over="ignore"):
        scores -= scores.max(axis=0)
    np.subtract(scores, np.log(np.exp(scores).sum(axis=0)), out=out.T)


def log_gamma_ratio(a: Array, b: float | Array) -> Array:
    """log Γ(a + b) − log Γ(a) for a > 0, b > −min(a, 1), without the cancellation of two large logarithms.

    For large a by the difference of two Stirling series, whose leading terms are combined first.
    """
    a = np.asarray(a, dtype=np.float64)
    large = np.maximum(a, 30.0)
    total = large + b
    series = (large - 0.5) * np.log1p(b / large) + b * (np.log(total) - 1.0)
    series = series + _stirling_series(total) - _stirling_series(large)
    if np.all(a >= 30.0):
        return np.asarray(series)
    return np.where(a >= 30.0, series, scipy.special.gammaln(a + b) - scipy.special.gammaln(a))


def _stirling_series(x: Array) -> Array:
    """log Γ(x) − (x − ½)·log x + x − ½·log 2π for x >= 30."""
    inverse = (1.0 / x) ** 2
    return (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x


_LOG_FACTORIALS = scipy.special.gammaln(np.arange(1.0, 1026.0))


def log_factorial(x: Array) -> Array:
    """log x! = log Γ(x + 1) of x >= 0, from a table for small whole numbers."""
    x = np.asarray(x, dtype=np.float64)
    if x.size and x.max() < len(_LOG_FACTORIALS):
        place = x.astype(np.intp)
        if np.array_equal(place, x):
            return np.asarray(_LOG_FACTORIALS[place])
    return np.asarray(scipy.special.gammaln(x + 1.0))


def log_repeated(x: Array, r: float) -> Array:
    """log Γ(x + r)/(Γ(r)·x!) for integers x >= 0 and r > 0, by ratios in which the larger of x and r cancels first."""
    x = np.asarray(x, dtype=np.float64)
    top = x.max(initial=0.0)
    if top < min(x.size - 1, len(_LOG_FACTORIALS)):  # few distinct values
        return np.asarray(log_repeated(np.arange(top + 1.0), r)[x.astype(np.intp)])
    many = log_gamma_ratio(x + 1.0, r - 1.0) - scipy.special.gammaln(r)
    few = np.minimum(x, r)
    return np.where(x >= r, many, log_gamma_ratio(np.full_like(few, r), few) - log_factorial(few))


def stirling_error(x: Array) -> Array:
    """log Γ(x + 1) − (x + ½)·log x + x − ½·log 2π for x > 0: the error of Stirling's formula."""
    x = np.asarray(x, dtype=np.float64)
    small = np.minimum(np.maximum(x, TINY), 30.0)
    direct = scipy.special.gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small - 0.5 * LOG_2PI
    return np.where(x > 30.0, _stirling_series(np.maximum(x, 30.0)), direct)
