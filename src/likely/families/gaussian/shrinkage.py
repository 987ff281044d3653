"""Shrinkage of maximum likelihood covariances: toward a scaled identity, and toward the pooled one."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.errors import InputError, check_choice
from likely.families.gaussian.covariance import Structure
from likely.numerics.options import NamedOptions
from likely.numerics.special import TINY
from likely.statistics.moments import Moments
from likely.typing import Array


class Regularized(NamedOptions):
    """Regularized covariances of Friedman (1989), parametrized as in R's ``klaR::rda``.

    Per-class covariances are moved toward the pooled one, and then toward a scaled identity:
    Σ_k ← (1 - pooling)·Σ_k + pooling·Σ_pooled, then Σ_k ← (1 - sphering)·Σ_k + sphering·(trace(Σ_k)/d)·I.

    Parameters
    ----------
    pooling : float in [0, 1], default=0.0
        Weight of the pooled covariance. 0 is quadratic, 1 is linear discriminant analysis.
    sphering : float in [0, 1], default=0.0
        Weight of the scaled identity.

    See Also
    --------
    Gaussian : Takes this as its `shrinkage`, under estimation="mle".

    References
    ----------
    .. [1] J. H. Friedman, "Regularized discriminant analysis", Journal of the American Statistical Association 84
       (1989), 165-175.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import QuadraticDiscriminant, Regularized
    >>> X, y = load_iris(return_X_y=True)
    >>> model = QuadraticDiscriminant(shrinkage=Regularized(pooling=0.5, sphering=0.1)).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    def __init__(self, pooling: float = 0.0, sphering: float = 0.0) -> None:
        self.pooling = pooling
        self.sphering = sphering


Shrinkage = None | float | str | Regularized


def check_shrinkage(shrinkage: Any) -> None:
    """Raise for an invalid shrinkage."""
    if shrinkage is None:
        return
    if isinstance(shrinkage, Regularized):
        _check_fraction("pooling", shrinkage.pooling)
        _check_fraction("sphering", shrinkage.sphering)
    elif isinstance(shrinkage, str):
        check_choice("shrinkage", shrinkage, ("ledoit-wolf", "oas"))
    else:
        _check_fraction("shrinkage", shrinkage)


def _check_fraction(name: str, value: Any) -> None:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (number and 0.0 <= value <= 1.0):
        raise InputError(f"{name}={value!r} must be a number from 0 to 1.")


def shrink(shrinkage: Any, matrices: Array, moments: Moments, structure: Structure, pooled_divisor: Array) -> Array:
    """Covariances (groups, ...) moved toward the pooled one or toward a scaled identity."""
    intensity, pooling = intensity_of(shrinkage, moments), pooling_of(shrinkage)
    if intensity is None:
        return matrices
    if pooling:
        pooled = structure.shape(moments.scatter.sum(axis=0, keepdims=True) / pooled_divisor)
        matrices = (1.0 - pooling) * matrices + pooling * pooled
    return toward_sphere(matrices, intensity, structure, moments)


def intensity_of(shrinkage: Any, moments: Moments) -> Array | None:
    """The weight of a scaled identity in the covariance of each group; None without shrinkage."""
    if shrinkage is None:
        return None
    if isinstance(shrinkage, str):
        return ledoit_wolf_intensity(moments) if shrinkage == "ledoit-wolf" else oas_intensity(moments)
    weight = shrinkage.sphering if isinstance(shrinkage, Regularized) else shrinkage
    return np.full(len(moments.scatter), float(weight))


def pooling_of(shrinkage: object) -> float:
    """The weight of the pooled covariance."""
    return float(shrinkage.pooling) if isinstance(shrinkage, Regularized) else 0.0


def toward_sphere(matrices: Array, intensity: Array, structure: Structure, moments: Moments) -> Array:
    """(1 - s)·Σ + s·(trace/d)·I for every group; a group of constant columns takes the pooled trace."""
    shape = (-1, 1, 1) if structure.full else (-1, 1)
    diagonals = np.einsum("gdd->gd", matrices) if structure.full else matrices
    size = diagonals.mean(axis=1) if diagonals.shape[1] else np.zeros(len(matrices))
    cells = np.broadcast_to(moments.total_weight, (moments.dimension,)).sum()
    pooled = moments.squares.sum() / max(cells, TINY)
    centre = np.where(size > 0.0, size, pooled) * intensity
    mixed = matrices * (1.0 - intensity).reshape(shape)
    if structure.full:
        d = mixed.shape[1]
        mixed[:, np.arange(d), np.arange(d)] += centre[:, None]
        return np.asarray(mixed)
    return np.asarray(mixed + centre[:, None])


def ledoit_wolf_intensity(moments: Moments) -> Array:
    """Ledoit and Wolf's (2004) optimal weight of the scaled identity, per group of classes.

    With S the covariance (divided by n) of n rows r about their class means, m = trace(S)/d:
    (Σ‖r‖⁴/n − ‖S‖²)/n against ‖S − m·I‖², the ratio clipped to [0, 1].
    """
    assert moments.tails is not None, "the Ledoit-Wolf intensity needs fourth moments"
    n, d = moments.group_weight(), max(moments.dimension, 1)  # all columns may be constant
    quartic = np.bincount(moments.group, weights=moments.tails.quartic, minlength=len(n))
    covariance = moments.scatter / n[:, None, None]
    squared = np.einsum("gde,gde->g", covariance, covariance)
    trace = np.einsum("gdd->g", covariance)
    distance = squared - trace**2 / d
    noise = np.minimum((quartic / n - squared) / n, distance)
    intensity = np.where(noise > 0.0, noise / np.where(distance > 0.0, distance, 1.0), 0.0)
    return np.where(trace > 0.0, intensity, 1.0)


def oas_intensity(moments: Moments) -> Array:
    """The oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010), per group of classes.

    With S as above, a = ‖S‖²/d² and m = trace(S)/d: (a + m²) / ((n + 1)(a − m²/d)), at most 1.
    """
    n, d = moments.group_weight(), max(moments.dimension, 1)  # all columns may be constant
    covariance = moments.scatter / n[:, None, None]
    alpha = np.einsum("gde,gde->g", covariance, covariance) / d**2
    square = (np.einsum("gdd->g", covariance) / d) ** 2
    below = (n + 1.0) * (alpha - square / d)
    return np.where(below > 0.0, np.minimum((alpha + square) / np.where(below > 0.0, below, 1.0), 1.0), 1.0)
