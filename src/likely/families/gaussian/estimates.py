"""Gaussian means and covariances from moments: maximum likelihood, posterior mode, posterior predictive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likely.errors import DependentColumnsWarning, NotEstimableError, listed, warn
from likely.families.estimation import Estimation
from likely.families.gaussian.covariance import (
    Covariance,
    DiagonalCovariance,
    Identity,
    SingularError,
    Spherical,
    Structure,
    factor_subspace,
)
from likely.families.gaussian.densities import GaussianConditionals
from likely.families.gaussian.prior import NormalInverseWishartPosterior
from likely.families.gaussian.shrinkage import Shrinkage, shrink
from likely.families.gaussian.student import IndependentStudents, StudentConditionals
from likely.numerics.linalg import correlation_scale, independent_columns
from likely.statistics.counts import across
from likely.statistics.moments import Moments, Sharing
from likely.typing import Array, Index


@dataclass(frozen=True, eq=False)
class PreparedMoments:
    """Moments in the units of a fit, pooled over the classes that share a covariance."""

    structure: Structure
    moments: Moments  # of all columns
    varying: Moments  # of the columns that vary
    active: Index  # the columns that vary

    @classmethod
    def of(cls, statistics: Moments, structure: Structure, sharing: Sharing, one_unit: bool) -> PreparedMoments:
        """Pool the statistics; `one_unit` puts all columns in one unit, so that their variances can be compared."""
        moments = statistics.pool(sharing).settled()
        if one_unit or isinstance(structure, Spherical | Identity):
            moments = moments.one_unit()
        active = np.flatnonzero(moments.has_variance())
        varying = moments.take(active) if len(active) < moments.dimension else moments
        return cls(structure, moments, varying, active)

    def divided(self, sums: Array, divisor: Array) -> Array:
        """Sums of squares (groups, ...) over divisors (groups,) or (groups, d)."""
        return np.asarray(sums / (divisor[:, None, None] if self.structure.full else across(divisor)))

    def group_classes(self, group: int) -> str:
        """The classes of a group, for messages."""
        return listed(self.moments.classes[self.moments.group == group])

    def identity(self) -> DiagonalCovariance:
        """Variances of 1 in the user's units, for every group."""
        unit = self.moments.coordinates.unit[self.active]
        scale = np.zeros((len(self.moments.scatter), self.moments.dimension))
        scale[:, self.active] = unit
        return DiagonalCovariance(scale, np.full(len(scale), -2.0 * np.log(unit).sum()))

    def posterior_means(self, posterior: NormalInverseWishartPosterior) -> Array:
        """Posterior means of all columns, (K, d); a constant column keeps its one value."""
        mean = np.broadcast_to(self.moments.overall_mean, self.moments.mean.shape).copy()
        mean[:, self.active] = posterior.mean
        return mean

    def stretch(self, posterior: NormalInverseWishartPosterior, estimation: Estimation) -> Array:
        """By how much the uncertainty of its mean widens the density of each class, (K,) or (K, d)."""
        return np.ones(len(self.moments.mean)) if estimation == Estimation.MAP else 1.0 + 1.0 / posterior.mean_rows


# Maximum likelihood.


def maximum_likelihood(
    data: PreparedMoments, shrinkage: Shrinkage, unbiased: bool, names: Sequence[str]
) -> GaussianConditionals:
    """Gaussians at the maximum of the likelihood, or with shrunken covariances."""
    check_observed(data.moments, names)
    matrices = likelihood_covariances(data, shrinkage, unbiased)
    covariance, dependent = _factor_likelihood(data, matrices, shrinkage, names)
    moments = data.moments
    return GaussianConditionals(
        moments.mean, covariance, moments.group, np.ones(len(moments.mean)), moments.coordinates, dependent
    )


def likelihood_covariances(data: PreparedMoments, shrinkage: Shrinkage, unbiased: bool) -> Array:
    """Covariances of the columns that vary at the maximum of the likelihood, or shrunken; they may have any rank."""
    structure, varying = data.structure, data.varying
    if not structure.estimated:
        return np.ones_like(varying.scatter)
    divisor = structure.divisor(varying.group_weight())
    pooled = structure.divisor(varying.total_weight[None])[0]
    if unbiased:
        divisor = np.asarray(divisor - structure.divisor(varying.group_classes().astype(np.float64)))
        pooled = pooled - len(varying.classes)
        _check_divisor(data, divisor)
    scatter = structure.shape(_of_known_rank(varying) if structure.full else varying.scatter)
    return shrink(shrinkage, data.divided(scatter, divisor), varying, structure, pooled)


def largest_ranks(moments: Moments) -> list[int]:
    """The largest rank that each scatter can have: the number of its rows less that of its classes."""
    if moments.rows.ndim == 2:  # values are missing, and columns have different rows
        return [moments.dimension] * len(moments.scatter)
    return (moments._over_groups(moments.rows) - moments.group_classes()).astype(int).tolist()


def _of_known_rank(moments: Moments) -> Array:
    """Scatters without the directions that are rounding errors of removals.

    The scatter of n rows of k classes has at most the rank n − k. The smaller eigenvalues, on the correlation scale,
    would be taken for variances.
    """
    if moments.noise is None:
        return moments.scatter
    scatters = moments.scatter.copy()
    for g, rank in enumerate(largest_ranks(moments)):
        if 0 < rank < moments.dimension:
            scale = correlation_scale(scatters[g])
            values, vectors = np.linalg.eigh(scatters[g] * scale * scale[:, None])
            half = vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:], 0.0))
            size = np.sqrt(np.maximum(np.diagonal(scatters[g]), 0.0))
            scatters[g] = (half @ half.T) * size * size[:, None]
    return scatters


def check_observed(moments: Moments, names: Sequence[str]) -> None:
    """Raise where a class has no rows, or no observed value of a column, to estimate its mean from."""
    if not moments.rows.any():
        raise NotEstimableError(
            f"{listed(names)}: all values are missing, so the likelihood has no maximum. Pass rows with values."
        )
    empty = moments.classes[moments.rows == 0] if moments.rows.ndim == 1 else ()
    if len(empty):
        raise NotEstimableError(
            f"Class {listed(empty)} has no rows, so its likelihood has no maximum. "
            "Use estimation='bayes' or 'map', or remove the class from class_prior."
        )
    if not moments.rows.all():
        k, j = np.argwhere(moments.rows == 0)[0]
        raise NotEstimableError(
            f"Column {names[j]!r} has no observed value in class {listed(moments.classes[k : k + 1])}, so its "
            "likelihood has no maximum. Use estimation='bayes' or 'map', or drop the column."
        )


def _check_divisor(data: PreparedMoments, divisor: Array) -> None:
    """Raise where a group has too few rows for an unbiased covariance."""
    if len(data.active) and np.any(divisor <= 0.0):
        g = int(np.argmin(across(divisor).min(axis=1)))
        raise NotEstimableError(
            f"Class {data.group_classes(g)}: too few rows for unbiased=True "
            f"(weight {np.min(data.varying.group_weight()[g]):g}). "
            "Use unbiased=False with shrinkage, or estimation='bayes'."
        )


def _factor_likelihood(
    data: PreparedMoments, matrices: Array, shrinkage: Shrinkage, names: Sequence[str]
) -> tuple[Covariance, Index]:
    """Factor maximum likelihood covariances, and return the dependent columns.

    A singular covariance is factored in a subspace where all classes share it, and is an error elsewhere.
    """
    structure, moments, varying, active = data.structure, data.moments, data.varying, data.active
    none = np.zeros(0, dtype=np.intp)
    if isinstance(structure, Identity):
        return data.identity(), none
    try:
        if structure.full and shrinkage is None:
            _check_ranks(varying, matrices, active)
        return structure.factor(matrices, active, moments.dimension), none
    except SingularError as error:
        group, columns = error.group, error.columns
    constant = active[varying.squares[group] <= 0.0]
    if structure.full and moments.sharing.everyone and not len(constant):
        covariance, dependent, agree = factor_subspace(matrices[0], varying.mean, active, moments.dimension)
        if covariance.rank:
            _warn_dependent([names[j] for j in dependent], agree)
            return covariance, dependent
    which = [names[j] for j in (constant if len(constant) else columns)]
    raise NotEstimableError(no_maximum(data, group, which, bool(len(constant)), shrinkage))


def _check_ranks(varying: Moments, matrices: Array, active: Index) -> None:
    """Raise for a covariance of too few rows, whatever rounding has made of it."""
    for g, rank in enumerate(largest_ranks(varying)):
        if rank < varying.dimension:
            dependent = independent_columns(matrices[g])[1]
            raise SingularError(g, active[dependent if len(dependent) else np.arange(rank, varying.dimension)])


def _warn_dependent(columns: Sequence[str], agree: bool) -> None:
    one = len(columns) == 1
    kind = "is a linear combination" if one else "are linear combinations"
    text = f"Column{'' if one else 's'} {listed(columns)} {kind} of other columns within the classes. "
    if agree:
        text += f"{'It was' if one else 'They were'} ignored, which changes no posterior probability."
    else:
        text += (
            "Distances are measured only along the directions in which rows vary within the classes. The classes also "
            "differ along other directions: set shrinkage or estimation='bayes' to use these."
        )
    warn(text, DependentColumnsWarning)


def no_maximum(data: PreparedMoments, group: int, columns: Sequence[str], constant: bool, shrinkage: Shrinkage) -> str:
    """The message for a singular covariance: the columns, the classes, and the remedies."""
    moments = data.moments
    everyone = moments.sharing.everyone
    where = "every class" if everyone else f"class {data.group_classes(group)}"
    what = f"column {listed(columns)} is a linear combination of other columns within {where}"
    if constant:
        what = f"column {listed(columns)} does not vary within {where}"
        what += ", but differs between classes" if everyone else ""
    rows = int(across(moments.rows[moments.group == group]).max(axis=1).sum())
    remedies = ["estimation='bayes'"]
    if shrinkage is None:
        remedies.insert(0, "shrinkage=0.1")
    if not everyone and len(moments.classes) > 1:
        remedies.append("shared=True (LinearDiscriminant)")
    if data.structure.full and not constant:
        remedies.append("covariance='diagonal'")
    return (
        f"The likelihood has no maximum: {what} ({rows} rows, {moments.dimension} columns). "
        f"Remedies: {', '.join(remedies)}, or drop the column."
    )


# Posteriors.


def posterior_densities(
    data: PreparedMoments, posterior: NormalInverseWishartPosterior, estimation: Estimation, names: Sequence[str]
) -> GaussianConditionals | StudentConditionals | IndependentStudents:
    """Gaussians at the joint posterior mode of means and covariances ("map"), or with both integrated out ("bayes").

    The latter are Student t's, or Gaussians where variances are known.
    """
    structure, moments, degrees = data.structure, data.moments, np.zeros(0)
    covariance: Covariance = data.identity()
    if structure.estimated:
        degrees, matrices = posterior_scales(data, posterior, estimation)
        covariance = factor_posterior(data, matrices, names)
    stretch = data.stretch(posterior, estimation)
    parts = (data.posterior_means(posterior), *_stretched(covariance, data, stretch), moments.coordinates)
    if estimation == Estimation.MAP or not structure.estimated:
        return GaussianConditionals(*parts)
    together = structure.full or isinstance(structure, Spherical)
    kind = StudentConditionals if together else IndependentStudents
    return kind(*parts, degrees=degrees[moments.group])


def posterior_scales(
    data: PreparedMoments, posterior: NormalInverseWishartPosterior, estimation: Estimation
) -> tuple[Array, Array]:
    """Degrees of freedom and scale matrices of the predictives, for every group; each class stretches them.

    Under "map", the covariances at the joint posterior mode, with infinite degrees.
    """
    structure, d = data.structure, len(data.active)
    if estimation == Estimation.MAP:
        classes = np.bincount(data.varying.group, minlength=len(data.varying.scatter)).astype(np.float64)
        divisor = structure.mode_divisor(posterior.degrees, d, classes)
        return np.full(divisor.shape, np.inf), data.divided(posterior.scale, divisor)
    degrees = structure.predictive_degrees(posterior.degrees, d)
    if d and np.any(degrees <= 0.0):
        g = int(np.argmin(degrees))
        raise NotEstimableError(
            f"The posterior predictive of class {data.group_classes(g)} is improper: "
            f"{int(data.moments.rows[data.moments.group == g].sum())} rows for {d} columns. "
            "Use more rows, or a proper prior: NormalInverseWishart()."
        )
    degrees = degrees if d else np.maximum(degrees, 1.0)
    return degrees, data.divided(posterior.scale, degrees)


def factor_posterior(data: PreparedMoments, matrices: Array, names: Sequence[str]) -> Covariance:
    """Factor posterior covariances; an error where an improper prior leaves one singular."""
    try:
        return data.structure.factor(matrices, data.active, data.moments.dimension)
    except SingularError as error:
        raise NotEstimableError(
            f"The posterior of the covariance of class {data.group_classes(error.group)} is improper: column "
            f"{listed([names[j] for j in error.columns])} has no variance given the other columns. "
            "Use a proper prior: NormalInverseWishart()."
        ) from None


def _stretched(covariance: Covariance, data: PreparedMoments, stretch: Array) -> tuple[Covariance, Index, Array]:
    """Covariance, group and stretch of every class; a stretch per column, (K, d), becomes per-class covariances."""
    group = data.moments.group
    if stretch.ndim == 1:
        return covariance, group, stretch
    assert isinstance(covariance, DiagonalCovariance)
    scale = covariance.inverse_deviation[group]
    scale[:, data.active] /= np.sqrt(stretch)
    log_det = covariance.log_det[group] + np.log(stretch).sum(axis=1)
    return DiagonalCovariance(scale, log_det), np.arange(len(group)), np.ones(len(group))
