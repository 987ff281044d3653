"""Likelihood, marginal likelihood and prior density of Gaussians, from moments alone."""

from __future__ import annotations

import numpy as np
from scipy.special import multigammaln

from likely.errors import NoEvidenceError
from likely.families.gaussian.covariance import DenseCovariance, DiagonalCovariance, Identity, Spherical, Structure
from likely.families.gaussian.densities import GaussianConditionals
from likely.families.gaussian.elliptical import Elliptical
from likely.families.gaussian.prior import NormalInverseWishartPosterior, ResolvedPrior
from likely.numerics.special import LOG_2PI, log_gamma_ratio
from likely.statistics.counts import across
from likely.statistics.moments import Moments
from likely.statistics.pattern_moments import PatternMoments
from likely.typing import Index


def gaussian_likelihood(moments: Moments, fitted: GaussianConditionals) -> float:
    """Σ log p(x | class) of any rows: n_k·log-density at μ_k − ½·n_k·δᵀΣ⁻¹δ of their means, and −½·tr(Σ⁻¹·scatter).

    The moments are in the coordinates of the densities; δ is how far the mean of the rows is from μ_k.
    """
    covariance, weight, stretch = fitted.covariance, across(moments.weight), across(fitted.stretch)
    away = np.where(weight > 0.0, moments.mean - fitted.mean, 0.0)
    first = np.array([int(np.argmax(moments.group == g)) for g in range(len(moments.scatter))], dtype=np.intp)
    if isinstance(covariance, DiagonalCovariance):
        owner = covariance.owner
        inverse = covariance.inverse_deviation[fitted.group][:, owner]
        scale = inverse**2 / stretch
        n = np.broadcast_to(weight, moments.mean.shape)[:, owner]
        logs = 2.0 * np.log(inverse) - np.log(stretch) - LOG_2PI - 2.0 * fitted.log_units
        return 0.5 * float(
            (n * (logs - scale * away[:, owner] ** 2)).sum() - np.vdot(moments.squares[:, owner], scale[first])
        )
    assert isinstance(covariance, DenseCovariance)
    total, scaled = float(moments.weight @ fitted.log_peak), np.sqrt(weight / stretch) * away
    for g, k in enumerate(first.tolist()):
        turn = covariance.factor[g]
        steps = scaled[moments.group == g] @ turn
        total -= 0.5 * float(((moments.scatter[g] @ turn) * turn).sum() / fitted.stretch[k] + (steps * steps).sum())
    return total


def pattern_likelihood(statistics: PatternMoments, fitted: GaussianConditionals) -> float:
    """Σ log p(x | class) of the observed values of any rows, with missing values integrated out."""
    total = 0.0
    for observed, part in statistics.patterns():
        marginal = fitted.marginal(observed)
        total += gaussian_likelihood(part.rebase(marginal.coordinates), marginal)
    return total


def gaussian_evidence(moments: Moments, structure: Structure, posterior: NormalInverseWishartPosterior) -> float:
    """log ∫ p(rows | means, covariances) of a normal-inverse-Wishart prior, given the labels.

    For a group of classes with one covariance and n rows in all, ν and Ψ before (0) and after the data,

        −½·n·d·log π + ½·d·Σ_k log κ0/κ_k + ½·ν0·log|Ψ0| − ½·ν·log|Ψ| + log Γ_d(ν/2) − log Γ_d(ν0/2).

    Independent columns have one such term each, with d = 1; with a spherical covariance log|Ψ| is that of one column.
    """
    d = moments.dimension
    if not d:
        return 0.0
    before, kappa = np.asarray(posterior.prior.rows), posterior.mean_rows
    weight = np.broadcast_to(across(moments.weight), (len(moments.mean), d))
    if not np.all(before > 0.0):
        raise NoEvidenceError("a flat prior of the means is improper")
    shift = np.broadcast_to(np.log(before) - np.log(across(kappa)), weight.shape)
    cells = float((weight * np.log(moments.coordinates.unit)).sum())
    if isinstance(structure, Identity):
        unit = moments.coordinates.unit
        away = moments.mean - posterior.mean  # (x̄ − m) = κ0/κ·(x̄ − m0)
        step = across(kappa) / before * away
        pulled = before * weight / across(kappa) * step * step
        squares = (moments.squares.sum(axis=0) + pulled.sum(axis=0)) @ unit**2
        return float(0.5 * shift.sum() - 0.5 * weight.sum() * LOG_2PI - 0.5 * squares)
    nu = float(posterior.prior.degrees)
    if not nu > (d - 1 if structure.full else 0):
        raise NoEvidenceError("the prior of the covariance is improper: its degrees are too few")
    total = -0.5 * weight.sum() * np.log(np.pi) + 0.5 * shift.sum() - cells
    if structure.full:
        sign, log_before = np.linalg.slogdet(posterior.prior.scale)
        if sign <= 0:
            raise NoEvidenceError("the prior of the covariance is improper: its scale is singular")
        log_after = np.linalg.slogdet(posterior.scale)[1]
        after = posterior.degrees
        gammas = np.array([multigammaln(v / 2.0, d) for v in after])
        parts = 0.5 * nu * log_before - 0.5 * after * log_after + gammas - multigammaln(nu / 2.0, d)
        return float(total + parts.sum())
    first = slice(0, 1) if isinstance(structure, Spherical) else slice(None)
    prior, scale = posterior.prior.scale[first], posterior.scale[:, first]
    if not np.all(prior > 0.0):
        raise NoEvidenceError("the prior of the variances is improper: its scale is 0")
    after = across(posterior.degrees)
    parts = (
        0.5 * nu * np.log(prior)
        - 0.5 * after * np.log(scale)
        + log_gamma_ratio(np.full(np.broadcast_shapes(after.shape, scale.shape), nu / 2.0), (after - nu) / 2.0)
    )
    return float(total + parts.sum())


def normal_inverse_wishart(
    moments: Moments, active: Index, structure: Structure, prior: ResolvedPrior, fitted: Elliptical
) -> float:
    """log of the prior's density at the fitted means and covariances, up to a constant.

    For each group −½·(ν0 + d + 1)·log|Σ| − ½·tr(Ψ0·Σ⁻¹), and for each of its classes −½·log|Σ| − ½·κ0·δᵀΣ⁻¹δ with δ =
    μ − m0; with diagonal covariances the same for every column, where d + 1 is 2.
    """
    d, group = len(active), moments.group
    if not d or not structure.estimated:
        return 0.0
    unit = 2.0 * float(np.log(moments.coordinates.unit).sum())
    away = fitted.mean[:, active] - prior.mean
    total = 0.0
    for g in range(len(moments.scatter)):
        members = np.flatnonzero(group == g)
        log_det = float(fitted.covariance.log_det[g]) + unit
        if structure.full:
            precision = fitted.covariance.precision(g)[np.ix_(active, active)]
            total -= 0.5 * (prior.degrees + d + 1.0) * log_det
            total -= 0.5 * float((prior.scale * precision).sum())
            pulls = prior.rows * np.einsum("kd,de,ke->k", away[members], precision, away[members])
        else:
            assert isinstance(fitted.covariance, DiagonalCovariance)
            scale = fitted.covariance.inverse_deviation[g, active] ** 2
            factor = 1.0 / structure.columns_together(d)  # of one variance for all columns
            total -= factor * 0.5 * (prior.degrees + 2.0) * log_det
            total -= factor * 0.5 * float((prior.scale * scale).sum())
            pulls = (prior.rows * away[members] ** 2 * scale).sum(axis=1)
        total -= 0.5 * float(np.sum(pulls)) + 0.5 * len(members) * log_det
    return total
