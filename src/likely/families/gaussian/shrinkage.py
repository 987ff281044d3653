"""Shrinkage of maximum likelihood covariances: toward a scaled identity, and toward the pooled one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from likely.errors import InputError, check_choice
from likely.families.gaussian.covariance import Structure
from likely.statistics.moments import Moments
from likely.typing import Array


class Regularized(BaseEstimator):
    """Friedman's regularised covariances, as klaR's `rda` mixes them.

    Σ_k(pooling) = (1 - pooling)·Σ_k + pooling·Σ_pooled, and then
    (1 - sphering)·Σ_k + sphering·(trace/d)·I.
    """

    def __init__(self, pooling: float = 0.0, sphering: float = 0.0) -> None:
        self.pooling = pooling
        self.sphering = sphering


Shrinkage = None | float | str | Regularized


def check_shrinkage(shrinkage: Any) -> None:
    """Raise for anything that is not a shrinkage."""
    if shrinkage is None:
        return
    if isinstance(shrinkage, Regularized):
        _check_share("pooling", shrinkage.pooling)
        _check_share("sphering", shrinkage.sphering)
    elif isinstance(shrinkage, str):
        check_choice("shrinkage", shrinkage, ("ledoit-wolf", "oas"))
    else:
        _check_share("shrinkage", shrinkage)


def _check_share(name: str, value: Any) -> None:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (number and 0.0 <= value <= 1.0):
        raise InputError(f"{name}={value!r} is not a number from 0 to 1.")


def shrink(shrinkage: Any, matrices: Array, moments: Moments, structure: Structure, pooled_divisor: Array) -> Array:
    """Covariances (groups, ...) moved toward the pooled one or toward a scaled identity."""
    if shrinkage is None:
        return matrices
    if isinstance(shrinkage, Regularized):
        pooled = structure.shape(moments.scatter.sum(axis=0, keepdims=True) / pooled_divisor)
        mixed = (1.0 - shrinkage.pooling) * matrices + shrinkage.pooling * pooled
        intensity = intensity_of(shrinkage, moments)
        assert intensity is not None
        return _toward_sphere(mixed, intensity, structure, moments)
    intensity = intensity_of(shrinkage, moments)
    assert intensity is not None
    return _toward_sphere(matrices, intensity, structure, moments)


def intensity_of(shrinkage: Any, moments: Moments) -> Array | None:
    """The share of a scaled identity in the covariance of each group; None where there is none."""
    if shrinkage is None:
        return None
    if isinstance(shrinkage, str):
        return ledoit_wolf_intensity(moments) if shrinkage == "ledoit-wolf" else oas_intensity(moments)
    share = shrinkage.sphering if isinstance(shrinkage, Regularized) else shrinkage
    return np.full(len(moments.scatter), float(share))


def pooling_of(shrinkage: object) -> float:
    """How much of the pooled covariance is mixed in."""
    return float(shrinkage.pooling) if isinstance(shrinkage, Regularized) else 0.0


def _toward_sphere(matrices: Array, intensity: Array, structure: Structure, moments: Moments) -> Array:
    """(1 - s)·Σ + s·(trace/d)·I for every group; a group without any spread takes the pooled trace."""
    shape = (-1, 1, 1) if structure.full else (-1, 1)
    diagonals = np.einsum("gdd->gd", matrices) if structure.full else matrices
    size = diagonals.mean(axis=1) if diagonals.shape[1] else np.zeros(len(matrices))
    cells = np.broadcast_to(moments.total_weight, (max(moments.dimension, 1),)).sum()
    pooled = moments.squares.sum() / cells
    centre = np.where(size > 0.0, size, pooled) * intensity
    mixed = matrices * (1.0 - intensity).reshape(shape)
    if structure.full:
        d = mixed.shape[1]
        mixed[:, np.arange(d), np.arange(d)] += centre[:, None]
        return np.asarray(mixed)
    return np.asarray(mixed + centre[:, None])


def ledoit_wolf_intensity(moments: Moments) -> Array:
    """Ledoit and Wolf's (2004) optimal share of the scaled identity, per group of classes.

    With S the covariance (divided by n) of n rows r about their class means, m = trace(S)/d:
    (Σ‖r‖⁴/n − ‖S‖²)/n against ‖S − m·I‖², the ratio clipped to [0, 1].
    """
    assert moments.tails is not None, "the Ledoit-Wolf intensity needs fourth moments"
    n, d = moments.group_weight(), max(moments.dimension, 1)  # no column may be left that varies
    quartic = np.bincount(moments.group, weights=moments.tails.quartic, minlength=len(n))
    covariance = moments.scatter / n[:, None, None]
    squared = np.einsum("gde,gde->g", covariance, covariance)
    trace = np.einsum("gdd->g", covariance)
    distance = squared - trace**2 / d
    noise = np.minimum((quartic / n - squared) / n, distance)
    share = np.where(noise > 0.0, noise / np.where(distance > 0.0, distance, 1.0), 0.0)
    return np.where(trace > 0.0, share, 1.0)


def oas_intensity(moments: Moments) -> Array:
    """The oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010), per group of classes.

    With S as above, a = ‖S‖²/d² and m = trace(S)/d: (a + m²) / ((n + 1)(a − m²/d)), at most 1.
    """
    n, d = moments.group_weight(), max(moments.dimension, 1)  # no column may be left that varies
    covariance = moments.scatter / n[:, None, None]
    alpha = np.einsum("gde,gde->g", covariance, covariance) / d**2
    square = (np.einsum("gdd->g", covariance) / d) ** 2
    below = (n + 1.0) * (alpha - square / d)
    return np.where(below > 0.0, np.minimum((alpha + square) / np.where(below > 0.0, below, 1.0), 1.0), 1.0)
