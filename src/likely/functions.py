"""Link functions between scores and probabilities: sigmoid, softmax, logit, log-odds and probit.

All functions accept numbers or arrays and are accurate at the extremes. σ is the sigmoid and Φ the distribution
function of the standard normal distribution.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.special

from likely.typing import Array

TAIL = -700.0  # below this score the sigmoid equals exp(a) to all digits
PROBIT_SCALE = float(np.sqrt(np.pi / 8.0))  # Φ(PROBIT_SCALE·a) has the slope of σ(a) at 0


def sigmoid(a: npt.ArrayLike) -> Array:
    """Logistic sigmoid, σ(a) = 1 / (1 + exp(−a)).

    The sigmoid of the log-odds of a class is its posterior probability. σ(−a) = 1 − σ(a) and σ' = σ·(1 − σ).

    Parameters
    ----------
    a : array-like
        Log-odds.

    Returns
    -------
    ndarray of the shape of a
        Probabilities. Values below 1e-300 are returned as subnormal numbers rather than 0.

    See Also
    --------
    logit : The inverse.
    log_sigmoid : Its logarithm, without underflow.

    Examples
    --------
    >>> from likely.functions import sigmoid
    >>> sigmoid([-2.0, 0.0, 2.0]).round(4)
    array([0.1192, 0.5   , 0.8808])
    """
    a = np.asarray(a, dtype=np.float64)
    with np.errstate(under="ignore"):
        tail = np.exp(np.minimum(a, 0.0))  # SciPy's sigmoid has no subnormal numbers
    return np.where(a < TAIL, tail, scipy.special.expit(a))[()]


def log_sigmoid(a: npt.ArrayLike) -> Array:
    """Logarithm of the logistic sigmoid, log σ(a) = −log(1 + exp(−a)).

    It is accurate where σ(a) rounds to 0 or 1.

    Parameters
    ----------
    a : array-like
        Log-odds.

    Returns
    -------
    ndarray of the shape of a
        Log-probabilities.

    See Also
    --------
    sigmoid : The probability itself.

    Examples
    --------
    >>> from likely.functions import log_sigmoid
    >>> log_sigmoid([-1000.0, 0.0]).round(4)
    array([-1.000e+03, -6.931e-01])
    """
    return scipy.special.log_expit(np.asarray(a, dtype=np.float64))


def logit(p: npt.ArrayLike) -> Array:
    """Logit (log-odds) of a probability, log(p / (1 − p)).

    Parameters
    ----------
    p : array-like
        Probabilities.

    Returns
    -------
    ndarray of the shape of p
        Log-odds: −∞ at 0, ∞ at 1, NaN outside [0, 1].

    See Also
    --------
    sigmoid : The inverse.
    log_odds : Log-odds of one class against another.

    Examples
    --------
    >>> from likely.functions import logit
    >>> logit([0.1, 0.5, 1.0]).round(4)
    array([-2.1972,  0.    ,     inf])
    """
    return scipy.special.logit(np.asarray(p, dtype=np.float64))


def softmax(a: npt.ArrayLike, axis: int = -1) -> Array:
    """Softmax, exp(a_k) / Σ_j exp(a_j).

    The softmax of the joint log-densities log p(x, k), up to a constant common to all classes, is the posterior
    p(k | x).

    Parameters
    ----------
    a : array-like
        Scores.
    axis : int, default=-1
        Axis of the classes.

    Returns
    -------
    ndarray of the shape of a
        Probabilities that sum to 1 along `axis`.

    See Also
    --------
    log_softmax : Its logarithm, without underflow.

    Examples
    --------
    >>> from likely.functions import softmax
    >>> softmax([0.0, 1.0, 2.0]).round(4)
    array([0.09  , 0.2447, 0.6652])
    """
    return np.asarray(np.exp(log_softmax(a, axis)))


def log_softmax(a: npt.ArrayLike, axis: int = -1) -> Array:
    """Logarithm of the softmax, a_k − log Σ_j exp(a_j).

    Parameters
    ----------
    a : array-like
        Scores. A score of −∞ has probability 0; scores of ∞ divide probability 1 equally.
    axis : int, default=-1
        Axis of the classes.

    Returns
    -------
    ndarray of the shape of a
        Log-probabilities; NaN where all scores are −∞.

    See Also
    --------
    softmax : The probabilities themselves.

    Examples
    --------
    >>> from likely.functions import log_softmax
    >>> log_softmax([0.0, -1000.0])
    array([    0., -1000.])
    """
    a = np.asarray(a, dtype=np.float64)
    top = a.max(axis=axis, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        below = np.where(np.isposinf(a), 0.0, a - top)
    return scipy.special.log_softmax(below, axis=axis)


def log_odds(p: npt.ArrayLike, q: npt.ArrayLike | None = None) -> Array:
    """Log-odds of one class against another, log(p / q).

    Parameters
    ----------
    p : array-like
        Probabilities of the class.
    q : array-like, default=None
        Probabilities of the other class. None is the complement, 1 − p.

    Returns
    -------
    ndarray of the broadcast shape of p and q
        Log-odds.

    See Also
    --------
    logit : Log-odds against the complement.

    Examples
    --------
    >>> from likely.functions import log_odds
    >>> log_odds([0.2, 0.6], [0.1, 0.3]).round(4)
    array([0.6931, 0.6931])
    """
    if q is None:
        return logit(p)
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(p) - np.log(q))


def probit(p: npt.ArrayLike) -> Array:
    """Probit link, Φ⁻¹(p).

    Parameters
    ----------
    p : array-like
        Probabilities.

    Returns
    -------
    ndarray of the shape of p
        Quantiles of the standard normal distribution: −∞ at 0, ∞ at 1, NaN outside [0, 1].

    See Also
    --------
    inverse_probit : The inverse.

    Examples
    --------
    >>> from likely.functions import probit
    >>> probit([0.025, 0.5, 0.975]).round(4)
    array([-1.96,  0.  ,  1.96])
    """
    return scipy.special.ndtri(np.asarray(p, dtype=np.float64))


def inverse_probit(a: npt.ArrayLike) -> Array:
    """Inverse of the probit link, Φ(a).

    Parameters
    ----------
    a : array-like
        Scores.

    Returns
    -------
    ndarray of the shape of a
        Probabilities.

    See Also
    --------
    probit : The inverse.
    scaled_probit : The same function scaled to resemble the sigmoid.

    Examples
    --------
    >>> from likely.functions import inverse_probit
    >>> inverse_probit([-1.96, 0.0, 1.96]).round(4)
    array([0.025, 0.5  , 0.975])
    """
    return scipy.special.ndtr(np.asarray(a, dtype=np.float64))


def scaled_probit(a: npt.ArrayLike) -> Array:
    """Inverse probit scaled to the slope of the sigmoid at 0, Φ(√(π/8)·a).

    It differs from the sigmoid by less than 0.018 everywhere.

    Parameters
    ----------
    a : array-like
        Log-odds.

    Returns
    -------
    ndarray of the shape of a
        Probabilities.

    See Also
    --------
    sigmoid : The function it approximates.
    moderated : Average of the sigmoid over a normal distribution, which follows from this approximation.

    Examples
    --------
    >>> from likely.functions import scaled_probit
    >>> scaled_probit([-2.0, 0.0, 2.0]).round(4)
    array([0.105, 0.5  , 0.895])
    """
    return scipy.special.ndtr(PROBIT_SCALE * np.asarray(a, dtype=np.float64))


def moderated(a: npt.ArrayLike, variance: npt.ArrayLike) -> Array:
    """Log-odds moderated by their variance, a / √(1 + π·variance/8).

    The sigmoid of the moderated log-odds approximates the mean of σ over a normal distribution with mean `a` and this
    variance. The approximation is exact for the scaled probit.

    Parameters
    ----------
    a : array-like
        Means of the log-odds.
    variance : array-like
        Variances of the log-odds.

    Returns
    -------
    ndarray of the broadcast shape of a and variance
        Moderated log-odds, closer to 0 than `a`.

    See Also
    --------
    sigmoid : Converts log-odds to probabilities.

    References
    ----------
    C. M. Bishop (2006), Pattern Recognition and Machine Learning, section 4.5.2.

    Examples
    --------
    >>> from likely.functions import moderated, sigmoid
    >>> sigmoid(moderated([2.0, 2.0], variance=[0.0, 4.0])).round(4)
    array([0.8808, 0.7768])
    """
    return np.asarray(a, dtype=np.float64) / np.sqrt(1.0 + np.pi / 8.0 * np.asarray(variance, dtype=np.float64))
