"""Means, variances and covariances of Gaussian blocks with their standard errors.

Under "mle", the inverse Fisher information: Var(mean_j) = σ_jj/n and Var(σ_ij) = (σ_ii·σ_jj + σ_ij²)/n. Under "map" and
"bayes", moments of the normal-inverse-Wishart posterior with κ rows, ν degrees of freedom and scale Ψ of d columns,
where c = ν − d − 1: E[Σ] = Ψ/c, Var(mean_j) = Ψ_jj/(κ·c) and
Var(σ_ij) = ((ν − d + 1)·Ψ_ij² + c·Ψ_ii·Ψ_jj) / ((ν − d)·c²·(c − 2)). Independent columns are the case d = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likely.families.estimation import Estimation
from likely.families.gaussian.covariance import Spherical
from likely.families.gaussian.estimates import PreparedMoments, likelihood_covariances, posterior_scales
from likely.families.gaussian.prior import NormalInverseWishartPosterior
from likely.families.gaussian.shrinkage import Shrinkage
from likely.families.parameters import Parameter
from likely.statistics.counts import across
from likely.statistics.moments import Moments
from likely.typing import Array


@dataclass(frozen=True, eq=False)
class GaussianEstimates:
    """Means and covariances of the columns that vary, and their standard errors, in local units.

    Variances that are known to be 1 are in the user's units: they may have no float in local units.
    """

    mean: Array  # (K, d)
    mean_error: Array  # (K, d)
    covariance: Array  # (groups, d, d) or, of independent columns, (groups, d)
    covariance_error: Array  # the same shape; NaN where it is not known

    @classmethod
    def likelihood(cls, data: PreparedMoments, shrinkage: Shrinkage, unbiased: bool) -> GaussianEstimates:
        """Maximum likelihood, or shrunken covariances, whose standard errors are not known."""
        structure, varying = data.structure, data.varying
        if not structure.estimated:
            return cls._with_unit_variances(varying, varying.mean, varying.weight)
        covariance = likelihood_covariances(data, shrinkage, unbiased)
        rows = structure.divisor(varying.group_weight())
        if unbiased:
            rows = rows - structure.divisor(varying.group_classes().astype(np.float64))
        rows = rows * varying.dimension if isinstance(structure, Spherical) else rows
        squares = _products(covariance) + covariance**2
        error = np.sqrt(data.divided(squares, rows))
        if shrinkage is not None:
            error = np.full_like(error, np.nan)
        return cls(
            varying.mean, np.sqrt(_variances(covariance)[varying.group] / across(varying.weight)), covariance, error
        )

    @classmethod
    def posterior(
        cls, data: PreparedMoments, posterior: NormalInverseWishartPosterior, estimation: Estimation
    ) -> GaussianEstimates:
        """Posterior means and standard deviations; under "map" the values are those of the joint mode."""
        structure, varying = data.structure, data.varying
        group, rows = varying.group, across(posterior.mean_rows)
        if not structure.estimated:
            return cls._with_unit_variances(varying, posterior.mean, posterior.mean_rows)
        d = varying.dimension if structure.full else 1
        nu = posterior.degrees[:, None, None] if structure.full else across(posterior.degrees)
        c = np.where(nu > d + 1.0, nu - d - 1.0, np.nan)  # without a mean, no value
        expected = posterior.scale / c
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = (nu - d + 1.0) * posterior.scale**2 + c * _products(posterior.scale)
            error = np.sqrt(np.where(c > 2.0, squares / ((nu - d) * c**2 * (c - 2.0)), np.nan))
        value = expected if estimation == Estimation.BAYES else posterior_scales(data, posterior, estimation)[1]
        return cls(posterior.mean, np.sqrt(_variances(expected)[group] / rows), value, error)

    @classmethod
    def _with_unit_variances(cls, varying: Moments, mean: Array, rows: Array) -> GaussianEstimates:
        error = 1.0 / (np.sqrt(across(rows)) * varying.coordinates.unit)
        one = np.ones_like(varying.scatter)
        return cls(mean, np.broadcast_to(error, mean.shape), one, np.full_like(one, np.nan))


def _products(matrices: Array) -> Array:
    """σ_ii·σ_jj of covariances (groups, d, d); σ_jj² of variances (groups, d)."""
    if matrices.ndim == 2:
        return matrices**2
    each = _variances(matrices)
    return np.asarray(each[:, :, None] * each[:, None, :])


def _variances(matrices: Array) -> Array:
    return matrices if matrices.ndim == 2 else np.asarray(np.einsum("gdd->gd", matrices))


def gaussian_parameters(data: PreparedMoments, found: GaussianEstimates, names: Sequence[str]) -> list[Parameter]:
    """Means, variances and covariances of the columns that vary, in the user's units."""
    moments, group, full = data.varying, data.varying.group, found.covariance.ndim == 3
    unit, columns = moments.coordinates.unit, [names[j] for j in data.active]
    outer = unit if data.structure.estimated else np.ones_like(unit)  # of the variances
    incomplete = full and moments.observed < 1.0  # expectations, whose errors are larger than those of complete rows
    mean = moments.coordinates.to_user(found.mean)
    parameters = []

    def add(column: str, name: str, pair: tuple[int, int], value: Array, error: Array) -> None:
        """A variance or covariance of a pair of columns."""
        scale = outer[pair[0]] * outer[pair[1]]
        parameters.append(Parameter(column, name, scale * value[group], None if incomplete else scale * error[group]))

    for j, column in enumerate(columns):
        parameters.append(
            Parameter(column, "mean", mean[:, j], None if incomplete else unit[j] * found.mean_error[:, j])
        )
        place = (slice(None), j, j) if full else (slice(None), j)
        add(column, "variance", (j, j), found.covariance[place], found.covariance_error[place])
        for i in range(j + 1, len(columns)) if full else ():
            name = f"covariance with {columns[i]}"
            add(column, name, (j, i), found.covariance[:, j, i], found.covariance_error[:, j, i])
    return parameters
