"""Gaussian densities with given means and covariances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likely.errors import InputError, listed
from likely.families.gaussian.covariance import DenseCovariance, Diagonal, Full, SingularError
from likely.families.gaussian.densities import GaussianConditionals
from likely.families.given import check_given_names, given_array
from likely.families.parameters import Parameter
from likely.numerics.coordinates import Coordinates, safe_unit
from likely.typing import Array

SYMMETRIC = 1e-9  # relative difference of entries above and below the diagonal that may be rounding


def given_gaussians(values: Mapping[str, Any], size: int, names: Sequence[str], full: bool) -> GaussianConditionals:
    """Gaussians with the parameters "mean", (classes, columns), and "covariance" or "variance".

    A covariance is (d, d) or (classes, d, d), and a variance a number, (classes,) or (classes, d).
    """
    name = "covariance" if isinstance(values, Mapping) and "covariance" in values else "variance"
    check_given_names("Gaussian", values, ["mean", name])
    d = len(names)
    mean, spread = given_array("mean", values["mean"]), given_array(name, values[name])
    if mean.shape != (size, d) and not (d == 1 and mean.shape == (size,)):
        raise InputError(
            f"Gaussian, column {listed(names)}: mean has the shape {mean.shape}, and {size} classes need ({size}, {d})."
        )
    mean = mean.reshape(size, d)
    matrices = _matrices(spread, size, d, names) if name == "covariance" else None
    variances = _variances(spread, size, d, names) if matrices is None else np.einsum("gdd->gd", matrices)
    if np.any(variances <= 0.0):
        raise InputError(f"Gaussian, column {listed(names)}: a variance is not positive.")
    unit = safe_unit(np.sqrt(variances.max(axis=0)))
    coordinates = Coordinates.make(np.zeros(d), unit)
    if matrices is not None and not full and np.any(matrices[:, ~np.eye(d, dtype=bool)] != 0.0):
        raise InputError(f"Gaussian, column {listed(names)}: the covariance is not diagonal. Use Gaussian('full').")
    try:
        if matrices is not None and full:
            covariance = Full().factor(matrices / unit / unit[:, None], np.arange(d), d)
        else:
            covariance = Diagonal().factor(variances / unit / unit, np.arange(d), d)
    except SingularError as error:
        raise InputError(
            f"Gaussian, column {listed(names)}: the covariance of class number {error.group} is not positive definite."
        ) from None
    group = np.zeros(size, dtype=np.intp) if len(variances) == 1 else np.arange(size)
    return GaussianConditionals(mean / unit, covariance, group, np.ones(size), coordinates)


def _matrices(given: Array, size: int, d: int, names: Sequence[str]) -> Array:
    """Symmetric covariances, (groups, d, d)."""
    if given.shape not in {(d, d), (size, d, d)}:
        raise InputError(
            f"Gaussian, column {listed(names)}: covariance has the shape {given.shape}, and must have ({d}, {d}) or "
            f"({size}, {d}, {d})."
        )
    matrices = given.reshape(-1, d, d)
    scale = np.sqrt(np.abs(np.einsum("gdd->gd", matrices)))
    wrong = np.abs(matrices - matrices.transpose(0, 2, 1)) > SYMMETRIC * scale[:, :, None] * scale[:, None, :]
    if wrong.any():
        g, i, j = np.argwhere(wrong)[0].tolist()
        raise InputError(
            f"Gaussian: the covariance of {names[i]!r} with {names[j]!r} is {matrices[g, i, j]:g}, and that of "
            f"{names[j]!r} with {names[i]!r} is {matrices[g, j, i]:g}. Covariances are symmetric."
        )
    return np.asarray((matrices + matrices.transpose(0, 2, 1)) / 2.0)


def _variances(given: Array, size: int, d: int, names: Sequence[str]) -> Array:
    """Variances, (groups, d)."""
    if given.shape not in {(), (size,), (size, d)}:
        raise InputError(
            f"Gaussian, column {listed(names)}: variance has the shape {given.shape}, and must be a number or have "
            f"({size},) or ({size}, {d})."
        )
    groups = given.reshape(1, 1) if given.ndim == 0 else given.reshape(size, -1)
    return np.broadcast_to(groups, (len(groups), d))


def given_table(fitted: GaussianConditionals, names: Sequence[str]) -> list[Parameter]:
    """Means, variances and covariances."""
    mean = fitted.class_means()
    covariance = np.array([fitted.class_covariance(k) for k in range(fitted.n_classes)])
    found = []
    for j, column in enumerate(names):
        found += [Parameter(column, "mean", mean[:, j]), Parameter(column, "variance", covariance[:, j, j])]
        found += [
            Parameter(column, f"covariance with {names[i]}", covariance[:, j, i])
            for i in range(j + 1, len(names))
            if isinstance(fitted.covariance, DenseCovariance)
        ]
    return found
