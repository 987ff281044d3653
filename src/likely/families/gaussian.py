"""The Gaussian: real columns that vary together, and its posterior predictive, the Student t.

Natural form: u(x) = (x, ½·x xᵀ), θ = (Σ⁻¹μ, −Σ⁻¹), A = ½·μᵀΣ⁻¹μ + ½·log|Σ|, h = (2π)^(−d/2). With one
covariance for all classes the part of θ·u(x) that is quadratic in x is the same for every class: it
moves into the carrier, and what is left is linear in x.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from likely.covariance import (
    Covariance,
    DiagonalCovariance,
    Identity,
    Index,
    Shrinkage,
    SingularError,
    Spherical,
    Structure,
    check_shrinkage,
    factor_subspace,
    shrink,
    structure_of,
)
from likely.distances import LINEAR_REACH, Distances
from likely.errors import DependentColumnsWarning, InputError, NotEstimableError, listed
from likely.families.base import (
    Conditionals,
    ExponentialConditionals,
    Family,
    Quadratic,
    check_belongs,
)
from likely.numerics import LOG_2PI, AnyArray, Array, all_finite, log_gamma_ratio
from likely.priors import NormalInverseWishart, NormalInverseWishartPosterior
from likely.statistics import Coordinates, Moments, MomentsBuilder, Sharing

FAR = 709.0  # exp(709) is near the largest float64: beyond it squared distances are compared on the log scale


@dataclass(frozen=True, eq=False)
class Elliptical(Conditionals):
    """What Gaussian and Student class-conditionals have in common: means, covariances, distances.

    The covariance of class k is stretch_k times that of its group.
    """

    mean: Array  # (K, d), local
    covariance: Covariance
    group: Index  # (K,)
    stretch: Array  # (K,)
    coordinates: Coordinates
    dependent: Index = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @property
    def n_classes(self) -> int:
        return len(self.mean)

    @property
    def dimension(self) -> int:
        return self.covariance.dimension

    @property
    def width(self) -> int:
        return self.distances.width

    @cached_property
    def distances(self) -> Distances:
        return Distances(self.covariance, self.mean, self.group)

    @cached_property
    def log_units(self) -> Array:
        """Logarithms of the local units of the columns that vary."""
        return np.log(self.coordinates.unit[self.covariance.owner])

    @property
    def log_unit(self) -> float:
        """log of the volume of the local unit cell."""
        return float(self.log_units.sum())

    @cached_property
    def class_log_det(self) -> Array:
        """log|Σ_k| of every class, in local coordinates."""
        return np.asarray(self.covariance.log_det[self.group] + self.covariance.rank * np.log(self.stretch))

    def class_means(self) -> Array:
        """Means in the user's coordinates."""
        return self.coordinates.to_user(self.mean)

    def class_covariance(self, label: int) -> Array:
        """The covariance (a Student t: its scale matrix) of a class, in the user's coordinates."""
        unit = self.coordinates.unit
        return self.stretch[label] * self.covariance.matrix(int(self.group[label])) * unit * unit[:, None]

    def white(self, rows: AnyArray, label: int) -> tuple[Array, Array]:
        """Whitened rows of a class as z·exp(size): z (n, rank) and size (n,), 0 but for rows far away."""
        g, root = int(self.group[label]), np.sqrt(self.stretch[label])
        with np.errstate(over="ignore", invalid="ignore"):
            centred = np.subtract(self.coordinates.to_local(rows), self.mean[label], dtype=np.float64)
            z = self.covariance.whiten(centred, g) / root
        size = np.zeros(len(z))
        far = ~np.all(np.abs(z) < 1e150, axis=1)
        if far.any():
            scaled, exponent = self.coordinates.to_scaled(rows[far])
            near = np.ldexp(self.mean[label], -np.minimum(exponent, 2000)[:, None])
            with np.errstate(invalid="ignore"):
                drawn = self.covariance.whiten(scaled - near, g) / root
            top = np.abs(drawn).max(axis=1)
            top = np.where(top > 0.0, top, 1.0)
            with np.errstate(invalid="ignore"):
                z[far] = drawn / top[:, None]
            size[far] = np.log(top) + exponent * np.log(2.0)
        return z, size

    def log_squared(self, rows: AnyArray) -> Array:
        """Logarithms of the squared distances, (classes, n), for rows whose squares overflow."""
        logs = np.empty((self.n_classes, len(rows)))
        for k in range(self.n_classes):
            z, size = self.white(rows, k)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs[k] = np.log(np.einsum("nr,nr->n", z, z)) + 2.0 * size
        return logs

    def colored(self, white: Array, label: int) -> Array:
        """Unit-covariance noise to rows of a class, in the user's coordinates."""
        rows = self.covariance.color(white * np.sqrt(self.stretch[label]), int(self.group[label]))
        return self.coordinates.to_user(self.mean[label] + rows)

    def unread(self) -> Index:
        return np.setdiff1d(np.arange(self.dimension), self.covariance.owner)

    def notes(self, names: Sequence[str]) -> list[str]:
        told = []
        flat = np.setdiff1d(self.unread(), self.dependent)
        if len(flat):
            told.append(f"no spread, no evidence: {listed([names[j] for j in flat])}")
        if len(self.dependent):
            told.append(f"combinations of other columns: {listed([names[j] for j in self.dependent])}")
        return told


def _drawn_in(logs: Array) -> Array:
    """Log squared distances (classes, n) with rows beyond 1e150 deviations drawn in along their own ray.

    Their log-densities would be below the smallest float64. What counts is which class is nearest, and by
    how large a factor: that is kept.
    """
    top = logs.max(axis=0)
    with np.errstate(invalid="ignore"):
        return np.where(top > FAR, logs - top + FAR, logs)


def _log1p(z: Array, size: Array, nu: float, cumulate: bool = False) -> Array:
    """log(1 + z²·exp(2·size)/ν), (n, m), of every component or of the sums of squares up to it."""
    squares = z * z
    plain = np.log1p((np.cumsum(squares, axis=1) if cumulate else squares) / nu)
    far = size > 0.0
    if far.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = 2.0 * np.log(np.abs(z[far]))
            logs = np.logaddexp.accumulate(logs, axis=1) if cumulate else logs
            plain[far] = np.logaddexp(0.0, logs + 2.0 * size[far, None] - np.log(nu))
    return plain


@dataclass(frozen=True, eq=False)
class GaussianConditionals(Elliptical, ExponentialConditionals):
    """Gaussian class-conditionals with plugged-in means and covariances."""

    def log_density(self, rows: AnyArray) -> Array:
        squared = self.distances.squared(self.coordinates.to_local(rows))
        squared /= self.stretch[:, None]
        if not all_finite(squared):
            far = ~np.all(np.isfinite(squared), axis=0)
            squared[:, far] = np.exp(_drawn_in(self.log_squared(rows[far])))
        squared += (self.class_log_det + self.covariance.rank * LOG_2PI + 2.0 * self.log_unit)[:, None]
        squared *= -0.5
        return squared

    @cached_property
    def linear(self) -> bool:
        """Whether all classes have one covariance, so that scores are linear in x."""
        return self.distances.shared and bool(np.all(self.stretch == self.stretch[0]))

    @cached_property
    def _linear_weights(self) -> tuple[Array, Array, bool]:
        """Weights and intercepts of local rows, and whether rows must be centred first."""
        centre, g = self.distances.centre, int(self.group[0])
        white = self.covariance.whiten(self.mean - centre, g) / np.sqrt(self.stretch[0])
        basis = self.covariance.whiten(np.eye(self.dimension), g) / np.sqrt(self.stretch[0])
        weights = white @ basis.T
        intercept = -0.5 * np.einsum("kr,kr->k", white, white)
        far = bool((np.abs(weights) @ np.abs(centre)).max(initial=0.0) > LINEAR_REACH)
        return weights, intercept if far else intercept - weights @ centre, far

    @property
    def width(self) -> int:
        return 5 * self.n_classes if self._by_line else self.distances.width

    @cached_property
    def _by_line(self) -> bool:
        return self.linear and self.distances.reach <= LINEAR_REACH

    def scores(self, rows: AnyArray) -> Array:
        if not self._by_line:
            return self.log_density(rows)
        weights, intercept, far = self._linear_weights
        local = self.coordinates.to_local(rows)
        if far:
            local = np.subtract(local, self.distances.centre, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.dot(weights, local.T)
        scores += intercept[:, None]
        if not all_finite(scores):
            far = ~np.all(np.isfinite(scores), axis=0)
            scores[:, far] = self._far_scores(rows[far])
        return scores

    def _far_scores(self, rows: AnyArray) -> Array:
        """Linear scores of rows so far away that they overflow: drawn in along their ray until they do not."""
        weights, intercept, _ = self._linear_weights
        scaled, exponent = self.coordinates.to_scaled(rows)
        with np.errstate(invalid="ignore"):
            slopes = weights @ scaled.T
        room = 990 - np.frexp(np.abs(slopes).max(axis=0))[1]
        return np.ldexp(slopes, np.minimum(exponent, room)) + intercept[:, None]

    def explain(self, rows: AnyArray) -> Array:
        terms = np.zeros((len(rows), self.n_classes, self.dimension))
        owner = self.covariance.owner
        if not len(owner):
            return terms
        step = 0.5 * (LOG_2PI + np.log(self.stretch))[:, None] + self.log_units
        logs = self.log_squared(rows)
        beyond = logs.max(axis=0) > FAR
        shrink = np.where(beyond, (logs - _drawn_in(logs)).max(axis=0), 0.0)
        for k in range(self.n_classes):
            z, size = self.white(rows, k)
            squares = z * z * np.exp(2.0 * size - shrink)[:, None]
            terms[:, k, owner] = -0.5 * squares + self.covariance.log_steps(int(self.group[k])) - step[k]
        return terms

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return self.colored(rng.standard_normal((n, self.covariance.rank)), label)

    def _precision(self, label: int) -> Array:
        unit = self.coordinates.unit
        return self.covariance.precision(int(self.group[label])) / self.stretch[label] / unit / unit[:, None]

    def quadratic(self) -> Quadratic:
        unit, g = self.coordinates.unit, int(self.group[0])
        if self.linear:  # about the centre of the means: what all classes share is left out
            centre = self.distances.centre
            away = self.covariance.whiten(self.mean - centre, g) / np.sqrt(self.stretch[0])
            basis = self.covariance.whiten(np.eye(self.dimension), g) / np.sqrt(self.stretch[0])
            with np.errstate(over="ignore", invalid="ignore"):
                weights = away @ basis.T
                constant = -0.5 * np.einsum("kr,kr->k", away, away)
                constant -= weights @ (self.coordinates.to_user(centre) / unit)
            return Quadratic(None, weights / unit, constant)
        means = self.class_means() / unit
        precisions = [self.covariance.precision(int(g)) / s for g, s in zip(self.group, self.stretch, strict=True)]
        linear = np.array([p @ m for p, m in zip(precisions, means, strict=True)])
        constant = -0.5 * (np.einsum("kd,kd->k", linear, means) + self.class_log_det)
        with np.errstate(over="ignore"):
            square = np.array([-0.5 * p / unit / unit[:, None] for p in precisions])
        return Quadratic(square, linear / unit, constant)

    def natural_parameters(self) -> Array:
        """(Σ⁻¹μ, −Σ⁻¹) in user coordinates; only variances count where the covariance is diagonal."""
        precisions = [self._precision(k) for k in range(self.n_classes)]
        linear = np.array([p @ m for p, m in zip(precisions, self.class_means(), strict=True)])
        flat = isinstance(self.covariance, DiagonalCovariance)
        square = np.array([-np.diagonal(p) if flat else -p.ravel() for p in precisions])
        return np.hstack([linear, square])

    def sufficient_statistics(self, rows: AnyArray) -> Array:
        """(x, ½·x xᵀ), or (x, ½·x²) where the covariance is diagonal."""
        x = np.asarray(rows, dtype=np.float64)
        if isinstance(self.covariance, DiagonalCovariance):
            return np.hstack([x, 0.5 * x * x])
        return np.hstack([x, 0.5 * (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)])

    def log_partition(self) -> Array:
        """½·μᵀΣ⁻¹μ + ½·log|Σ|."""
        means = self.class_means()
        bend = [m @ self._precision(k) @ m for k, m in enumerate(means)]
        return np.asarray(0.5 * (np.array(bend) + self.class_log_det) + self.log_unit)

    def log_carrier(self, rows: AnyArray) -> Array:
        """−(d/2)·log 2π, with d the number of columns that vary."""
        return np.full(len(rows), -0.5 * self.covariance.rank * LOG_2PI)


@dataclass(frozen=True, eq=False)
class StudentConditionals(Elliptical):
    """Posterior predictives: a joint Student t, or one for each column where columns are independent."""

    degrees: Array = field(default_factory=lambda: np.zeros(0))  # (K,)
    independent: bool = False

    @cached_property
    def _constant(self) -> Array:
        """log of the normalising constant of each class's density."""
        nu, r = self.degrees, self.covariance.rank
        if self.independent:
            peak = r * (log_gamma_ratio(nu / 2.0, 0.5) - 0.5 * np.log(nu * np.pi))
        else:
            peak = log_gamma_ratio(nu / 2.0, r / 2.0) - 0.5 * r * np.log(nu * np.pi)
        return np.asarray(peak - 0.5 * self.class_log_det - self.log_unit)

    def log_density(self, rows: AnyArray) -> Array:
        if self.independent:
            return self._independent(rows)
        squared = np.array(self.distances.squared(self.coordinates.to_local(rows)), order="C")
        power = (self.degrees + self.covariance.rank) / 2.0
        squared /= (self.degrees * self.stretch)[:, None]
        far = ~np.all(np.isfinite(squared), axis=0)
        np.log1p(squared, out=squared)
        if far.any():
            logs = self.log_squared(rows[far]) - np.log(self.degrees)[:, None]
            with np.errstate(invalid="ignore"):
                squared[:, far] = np.logaddexp(0.0, logs)
        squared *= -power[:, None]
        squared += self._constant[:, None]
        return squared

    def _independent(self, rows: AnyArray) -> Array:
        density = np.empty((self.n_classes, len(rows)))
        for k, nu in enumerate(self.degrees):
            z, size = self.white(rows, k)
            density[k] = -(nu + 1.0) / 2.0 * _log1p(z, size, nu).sum(axis=1)
        density += self._constant[:, None]
        return density

    def explain(self, rows: AnyArray) -> Array:
        terms = np.zeros((len(rows), self.n_classes, self.dimension))
        owner = self.covariance.owner
        if not len(owner):
            return terms
        unit = 0.5 * np.log(self.stretch)[:, None] + self.log_units
        for k, nu in enumerate(self.degrees):
            z, size = self.white(rows, k)
            before = np.zeros(len(owner)) if self.independent else np.arange(len(owner), dtype=np.float64)
            peak = log_gamma_ratio((nu + before) / 2.0, 0.5) - 0.5 * np.log(nu * np.pi)
            tail = (nu + 1.0) / 2.0 * _log1p(z, size, nu) if self.independent else self._chain(z, size, nu)
            terms[:, k, owner] = peak - tail + self.covariance.log_steps(int(self.group[k])) - unit[k]
        return terms

    @staticmethod
    def _chain(z: Array, size: Array, nu: float) -> Array:
        """What each component adds to (ν + d)/2 · log(1 + ‖z‖²/ν), d growing with the components."""
        logs = np.hstack([np.zeros((len(z), 1)), _log1p(z, size, nu, cumulate=True)])
        power = (nu + np.arange(z.shape[1] + 1)) / 2.0
        return np.diff(power * logs, axis=1)

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        nu, r = self.degrees[label], self.covariance.rank
        chi = rng.chisquare(nu, size=(n, r if self.independent else 1)) / nu
        return self.colored(rng.standard_normal((n, r)) / np.sqrt(chi), label)


class Gaussian(Family):
    """Gaussian class-conditionals for a column, or for columns that vary together.

    Parameters
    ----------
    covariance : "full", "diagonal", "spherical" (one variance) or "identity" (variances of 1).
    shared : True for one covariance in all classes (linear boundaries), False for one per class
        (quadratic boundaries), or groups of classes that share one, ``[["a", "b"]]``; classes that
        no group names have their own.
    shrinkage : under "mle": None, a share from 0 to 1 toward a scaled identity, "ledoit-wolf", "oas",
        or `Regularized`.
    unbiased : under "mle": divide by n - K (pooled) or n_k - 1 instead of n or n_k.
    prior : under "map" and "bayes": a `NormalInverseWishart`; None is its weak default.
    """

    def __init__(
        self,
        covariance: str = "full",
        shared: bool | Sequence[Sequence[Any]] = False,
        shrinkage: Shrinkage = None,
        unbiased: bool = False,
        prior: NormalInverseWishart | None = None,
    ) -> None:
        self.covariance = covariance
        self.shared = shared
        self.shrinkage = shrinkage
        self.unbiased = unbiased
        self.prior = prior

    # -- options

    def check(self, estimation: str) -> None:
        structure = structure_of(self.covariance)
        check_shrinkage(self.shrinkage)
        self._sharing()
        if isinstance(self.shrinkage, str) and not structure.full:
            raise InputError(f"shrinkage={self.shrinkage!r} needs covariance='full', not {self.covariance!r}.")
        if not structure.estimated and (self.shrinkage is not None or self.unbiased):
            raise InputError("covariance='identity' estimates no variances: shrinkage and unbiased have no meaning.")
        if not isinstance(self.unbiased, bool | np.bool_):
            raise InputError(f"unbiased={self.unbiased!r} is neither True nor False.")
        if self.prior is not None and not isinstance(self.prior, NormalInverseWishart):
            raise InputError(f"prior={self.prior!r} is not a NormalInverseWishart.")
        check_belongs(estimation, ("mle",), "shrinkage", self.shrinkage is not None, "the prior shrinks")
        check_belongs(estimation, ("mle",), "unbiased", bool(self.unbiased), "the prior sets the divisor")
        check_belongs(estimation, ("map", "bayes"), "prior", self.prior is not None, "maximum likelihood has no prior")

    def _sharing(self) -> Sharing:
        if isinstance(self.shared, bool | np.bool_):
            return Sharing(everyone=bool(self.shared))
        if isinstance(self.shared, str) or not isinstance(self.shared, Iterable):
            raise InputError(f"shared={self.shared!r} must be True, False, or groups of classes [['a', 'b']].")
        try:
            groups = tuple(tuple(np.asarray(group, dtype=object).tolist()) for group in self.shared)
            named = [label for group in groups for label in group]
            twice = len(set(named)) < len(named)
        except TypeError:
            raise InputError(f"shared={self.shared!r} must be groups of classes, [['a', 'b']].") from None
        if twice:
            raise InputError(f"shared={self.shared!r} names a class twice.")
        return Sharing(groups=groups)

    def describe(self) -> str:
        if self.shared is True:
            whose = "one for all classes"
        elif self.shared is False:
            whose = "one per class"
        else:
            whose = f"shared within {listed(self._sharing().groups)}"
        extra = f", shrinkage={self.shrinkage!r}" if self.shrinkage is not None else ""
        return f"Gaussian, {self.covariance} covariance, {whose}{extra}"

    # -- statistics

    @property
    def _tails(self) -> bool:
        return isinstance(self.shrinkage, str) and self.shrinkage == "ledoit-wolf"

    def builder(self, classes: AnyArray, dimension: int) -> MomentsBuilder:
        sharing = Sharing() if self._tails else self._sharing()
        known = set(classes.tolist())
        unknown = [label for group in sharing.groups for label in group if label not in known]
        if unknown:
            raise InputError(
                f"shared={self.shared!r} names class {listed(unknown)}, which is not in y: {listed(known)}."
            )
        return MomentsBuilder(classes, dimension, sharing, structure_of(self.covariance).full, self._tails)

    def block_rows(self, classes: int, dimension: int) -> int:
        """Half a million numbers a block; more where many classes must each fill a product."""
        own = 400 * classes if self.shared is not True else 0
        return int(np.clip(max(2**19 // dimension, own), 1024, max(2**21 // dimension, 1024)))

    # -- estimates

    def estimate(self, statistics: Moments, estimation: str, names: Sequence[str]) -> Conditionals:
        structure = structure_of(self.covariance)
        moments = statistics.pool(self._sharing())
        if isinstance(structure, Spherical | Identity) or self.shrinkage is not None:
            moments = moments.one_unit()
        active = np.flatnonzero(moments.has_spread())
        varying = moments.take(active) if len(active) < moments.dimension else moments
        if estimation == "mle":
            return self._maximum_likelihood(moments, varying, active, structure, names)
        prior = self.prior or NormalInverseWishart()
        posterior = prior.update(varying, structure, active, moments.dimension)
        if estimation == "map":
            return self._mode(moments, varying, active, structure, posterior, names)
        return self._predictive(moments, varying, active, structure, posterior, names)

    def _maximum_likelihood(
        self, moments: Moments, varying: Moments, active: Index, structure: Structure, names: Sequence[str]
    ) -> Conditionals:
        empty = moments.classes[moments.rows == 0]
        if len(empty):
            raise NotEstimableError(
                f"Class {listed(empty)} has no rows, so its likelihood has no maximum. "
                "Use estimation='bayes' or 'map', or leave the class out of class_prior."
            )
        if structure.estimated:
            divisor = varying.group_weight()
            pooled = float(divisor.sum())
            if self.unbiased:
                divisor = divisor - varying.group_classes()
                pooled -= len(moments.classes)
                self._check_divisor(divisor, varying)
            sums = varying.scatter / divisor.reshape((-1, 1, 1) if structure.full else (-1, 1))
            matrices = shrink(self.shrinkage, structure.shape(sums), varying, structure, pooled)
        else:
            matrices = np.ones_like(varying.scatter)
        covariance, dependent = self._factor(matrices, varying, active, structure, moments, names)
        return GaussianConditionals(
            moments.mean, covariance, moments.group, np.ones(len(moments.mean)), moments.coordinates, dependent
        )

    def _check_divisor(self, divisor: Array, moments: Moments) -> None:
        if len(moments.mean[0]) and np.any(divisor <= 0.0):
            g = int(np.argmin(divisor))
            raise NotEstimableError(
                f"Class {listed(moments.classes[moments.group == g])}: too few rows for unbiased=True "
                f"(weight {moments.group_weight()[g]:g}). Use unbiased=False with shrinkage, or estimation='bayes'."
            )

    def _factor(
        self,
        matrices: Array,
        varying: Moments,
        active: Index,
        structure: Structure,
        moments: Moments,
        names: Sequence[str],
    ) -> tuple[Covariance, Index]:
        """Factor maximum likelihood covariances; in a subspace where a shared one allows it."""
        d = moments.dimension
        none = np.zeros(0, dtype=np.intp)
        if isinstance(structure, Identity):
            return _identity(moments, active), none
        try:
            return structure.factor(matrices, active, d), none
        except SingularError as error:
            group, columns = error.group, error.columns
        flat = active[varying.squares[group] <= 0.0]
        if structure.full and moments.sharing.everyone and not len(flat):
            covariance, dependent, agree = factor_subspace(matrices[0], varying.mean, active, d)
            if covariance.rank:
                self._warn_dependent([names[j] for j in dependent], agree)
                return covariance, dependent
        raise NotEstimableError(
            self._no_maximum(moments, group, flat if len(flat) else columns, bool(len(flat)), names)
        )

    @staticmethod
    def _warn_dependent(columns: Sequence[str], agree: bool) -> None:
        text = (
            f"Within the classes, column {listed(columns)} {'is a' if len(columns) == 1 else 'are'} linear "
            f"combination{'' if len(columns) == 1 else 's'} of other columns: "
        )
        if agree:
            text += "left out, which changes no posterior."
        else:
            text += (
                "distances are measured only along the directions in which rows vary within the classes. "
                "Across the other directions the classes differ without any spread; shrinkage or "
                "estimation='bayes' would use them."
            )
        warnings.warn(text, DependentColumnsWarning, stacklevel=2)

    def _no_maximum(self, moments: Moments, group: int, columns: Index, flat: bool, names: Sequence[str]) -> str:
        members = moments.group == group
        every = moments.sharing.everyone
        who = "every class" if every else f"class {listed(moments.classes[members])}"
        which = listed([names[j] for j in columns])
        what = (
            f"column {which} does not vary within {who}, but differs between classes"
            if flat and every
            else (
                f"column {which} does not vary within {who}"
                if flat
                else f"column {which} is a linear combination of other columns within {who}"
            )
        )
        rows = int(moments.rows[members].sum())
        remedies = ["estimation='bayes'"]
        if self.shrinkage is None:
            remedies.insert(0, "shrinkage=0.1")
        if not every:
            remedies.append("shared=True (LinearDiscriminant)")
        if self.covariance == "full" and not flat:
            remedies.append("covariance='diagonal'")
        return (
            f"The likelihood has no maximum: {what} ({rows} rows, {moments.dimension} columns). "
            f"Remedies: {', '.join(remedies)}, or leave the column out."
        )

    def _mode(
        self,
        moments: Moments,
        varying: Moments,
        active: Index,
        structure: Structure,
        posterior: NormalInverseWishartPosterior,
        names: Sequence[str],
    ) -> Conditionals:
        """The joint mode of means and covariances."""
        if structure.estimated:
            members = np.bincount(varying.group, minlength=len(varying.scatter)).astype(np.float64)
            divisor = structure.mode_divisor(posterior.degrees, len(active), members)
            matrices = posterior.scale / divisor.reshape((-1, 1, 1) if structure.full else (-1, 1))
            covariance = self._factor_posterior(matrices, active, structure, moments, names)
        else:
            covariance = _identity(moments, active)
        return GaussianConditionals(
            self._spread_means(moments, active, posterior),
            covariance,
            moments.group,
            np.ones(len(moments.mean)),
            moments.coordinates,
        )

    def _predictive(
        self,
        moments: Moments,
        varying: Moments,
        active: Index,
        structure: Structure,
        posterior: NormalInverseWishartPosterior,
        names: Sequence[str],
    ) -> Conditionals:
        """Means and covariances integrated out."""
        mean = self._spread_means(moments, active, posterior)
        stretch = 1.0 + 1.0 / posterior.mean_rows
        if not structure.estimated:
            return GaussianConditionals(mean, _identity(moments, active), moments.group, stretch, moments.coordinates)
        degrees = structure.predictive_degrees(posterior.degrees, len(active))
        if len(active) and np.any(degrees <= 0.0):
            g = int(np.argmin(degrees))
            raise NotEstimableError(
                f"The posterior predictive of class {listed(moments.classes[moments.group == g])} is improper: "
                f"{int(moments.rows[moments.group == g].sum())} rows for {len(active)} columns. "
                "Use more rows, or a proper prior: NormalInverseWishart()."
            )
        degrees = np.maximum(degrees, 1.0) if not len(active) else degrees
        matrices = posterior.scale / degrees.reshape((-1, 1, 1) if structure.full else (-1, 1))
        covariance = self._factor_posterior(matrices, active, structure, moments, names)
        independent = not structure.full and not isinstance(structure, Spherical)
        return StudentConditionals(
            mean,
            covariance,
            moments.group,
            stretch,
            moments.coordinates,
            degrees=degrees[moments.group],
            independent=independent,
        )

    def _factor_posterior(
        self,
        matrices: Array,
        active: Index,
        structure: Structure,
        moments: Moments,
        names: Sequence[str],
    ) -> Covariance:
        try:
            return structure.factor(matrices, active, moments.dimension)
        except SingularError as error:
            members = moments.classes[moments.group == error.group]
            raise NotEstimableError(
                f"The posterior of the covariance of class {listed(members)} is improper: column "
                f"{listed([names[j] for j in error.columns])} has no spread of its own there. "
                "Use a proper prior: NormalInverseWishart()."
            ) from None

    @staticmethod
    def _spread_means(moments: Moments, active: Index, posterior: NormalInverseWishartPosterior) -> Array:
        """Posterior means of all columns; those without spread keep their one value."""
        mean = np.broadcast_to(moments.overall_mean(), moments.mean.shape).copy()
        mean[:, active] = posterior.mean
        return mean


def _identity(moments: Moments, active: Index) -> DiagonalCovariance:
    """Variances of 1 in the user's units, for every scatter of the moments."""
    unit = moments.coordinates.unit[active]
    scale = np.zeros((len(moments.scatter), moments.dimension))
    scale[:, active] = unit
    return DiagonalCovariance(scale, np.full(len(scale), -2.0 * np.log(unit).sum()))
