"""The functions between scores and probabilities that this field is written in, exact at the extremes.

All take numbers or arrays. σ is the sigmoid and Φ the distribution function of the standard normal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from likely.typing import Array

TAIL = -700.0  # scores below have sigmoids that are exp(a) to all digits
SCALE = float(np.sqrt(np.pi / 8.0))  # Φ(SCALE·a) has the slope of σ(a) at 0


def sigmoid(a: Any) -> Array:
    """σ(a) = 1 / (1 + exp(−a)): the posterior of a class whose log-odds are a. σ(−a) = 1 − σ(a), σ' = σ·(1 − σ)."""
    a = np.asarray(a, dtype=np.float64)
    with np.errstate(under="ignore"):
        tail = np.exp(np.minimum(a, 0.0))  # SciPy's sigmoid has no subnormal numbers
    return np.where(a < TAIL, tail, scipy.special.expit(a))[()]


def log_sigmoid(a: Any) -> Array:
    """log σ(a), also where σ(a) is 0 or 1 to all digits."""
    return scipy.special.log_expit(np.asarray(a, dtype=np.float64))


def logit(p: Any) -> Array:
    """log(p / (1 − p)), the inverse of the sigmoid; −∞ at 0, ∞ at 1, NaN outside."""
    return scipy.special.logit(np.asarray(p, dtype=np.float64))


def softmax(a: Any, axis: int = -1) -> Array:
    """exp(a_k) / Σ_j exp(a_j): the posterior of classes whose log-joint densities are a, up to a common term."""
    return np.asarray(np.exp(log_softmax(a, axis)))


def log_softmax(a: Any, axis: int = -1) -> Array:
    """a_k − log Σ_j exp(a_j). Scores of −∞ have probability 0, those of ∞ share 1; NaN where all are −∞."""
    a = np.asarray(a, dtype=np.float64)
    top = a.max(axis=axis, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        below = np.where(np.isposinf(a), 0.0, a - top)
    return scipy.special.log_softmax(below, axis=axis)


def log_odds(p: Any, q: Any = None) -> Array:
    """log(p / q), the log-odds of one class against another; against all others, q = 1 − p, where q is None."""
    if q is None:
        return logit(p)
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(p) - np.log(q))


def probit(p: Any) -> Array:
    """Φ⁻¹(p), the probit link; −∞ at 0, ∞ at 1, NaN outside."""
    return scipy.special.ndtri(np.asarray(p, dtype=np.float64))


def inverse_probit(a: Any) -> Array:
    """Φ(a)."""
    return scipy.special.ndtr(np.asarray(a, dtype=np.float64))


def scaled_probit(a: Any) -> Array:
    """Φ(√(π/8)·a), the twin of the sigmoid: the same slope at 0, and nowhere further from it than 0.018."""
    return scipy.special.ndtr(SCALE * np.asarray(a, dtype=np.float64))


def moderated(a: Any, variance: Any) -> Array:
    """a / √(1 + π·variance/8): σ of it is nearly the mean of σ over a normal distribution of that variance around a.

    It follows from the scaled probit, for which it is exact.
    """
    return np.asarray(a, dtype=np.float64) / np.sqrt(1.0 + np.pi / 8.0 * np.asarray(variance, dtype=np.float64))
