"""The Gaussian family: how means and covariances are learnt, by maximum likelihood, MAP or full Bayes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from likely.errors import DependentColumnsWarning, InputError, NoEvidenceError, NotEstimableError, listed, warn
from likely.families.base import Columns, Conditionals, Family, LeaveOneOutDensity
from likely.families.estimation import Estimation, check_belongs
from likely.families.gaussian.accumulator import MomentsAccumulator
from likely.families.gaussian.conditional import EmpiricalBayesRidge, Unfactored
from likely.families.gaussian.covariance import (
    Covariance,
    DiagonalCovariance,
    Identity,
    SingularError,
    Spherical,
    Structure,
    factor_subspace,
    structure_of,
)
from likely.families.gaussian.densities import Elliptical, GaussianConditionals
from likely.families.gaussian.evidence import gaussian_evidence, gaussian_likelihood, normal_inverse_wishart
from likely.families.gaussian.expected_moments import ExpectedMoments
from likely.families.gaussian.leave_one_out.base import LeaveOneOut
from likely.families.gaussian.leave_one_out.diagonal import LeaveOneOutDiagonal
from likely.families.gaussian.leave_one_out.full import LeaveOneOutFull
from likely.families.gaussian.leave_one_out.shrunken import LeaveOneOutShrunken
from likely.families.gaussian.prior import NormalInverseWishart, NormalInverseWishartPosterior
from likely.families.gaussian.shrinkage import Shrinkage, check_shrinkage, intensity_of, pooling_of, shrink
from likely.families.gaussian.student import IndependentStudents, StudentConditionals
from likely.statistics.counts import across
from likely.statistics.moments import Moments, Sharing
from likely.typing import AnyArray, Array, Index

MOST_TOGETHER = 100_000  # columns: a covariance of more has beyond 10^10 numbers


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
    components : how many Gaussians each class is a mixture of (mixture discriminant analysis); sharing and covariances
        are those of the components. More than one is learnt by expectation maximisation.
    """

    def __init__(
        self,
        covariance: str = "full",
        shared: bool | Sequence[Sequence[Any]] = False,
        shrinkage: Shrinkage = None,
        unbiased: bool = False,
        prior: NormalInverseWishart | None = None,
        components: int = 1,
    ) -> None:
        self.covariance = covariance
        self.shared = shared
        self.shrinkage = shrinkage
        self.unbiased = unbiased
        self.prior = prior
        self.components = components

    @property
    def _independent(self) -> bool:
        return self.covariance in ("diagonal", "identity")

    # -- options

    def check(self, estimation: Estimation) -> None:
        structure = structure_of(self.covariance)
        check_shrinkage(self.shrinkage)
        count: Any = self.components
        if not isinstance(count, Integral) or isinstance(count, bool) or int(count) < 1:
            raise InputError(f"components={count!r} is not a positive whole number.")
        self._sharing()
        if isinstance(self.shrinkage, str) and not structure.full:
            raise InputError(f"shrinkage={self.shrinkage!r} needs covariance='full', not {self.covariance!r}.")
        if not structure.estimated and (self.shrinkage is not None or self.unbiased):
            raise InputError("covariance='identity' estimates no variances: shrinkage and unbiased have no meaning.")
        if not isinstance(self.unbiased, bool | np.bool_):
            raise InputError(f"unbiased={self.unbiased!r} is neither True nor False.")
        if self.prior is not None and not isinstance(self.prior, NormalInverseWishart):
            raise InputError(f"prior={self.prior!r} is not a NormalInverseWishart.")
        check_belongs(estimation, (Estimation.MLE,), "shrinkage", self.shrinkage is not None, "the prior shrinks")
        check_belongs(estimation, (Estimation.MLE,), "unbiased", bool(self.unbiased), "the prior sets the divisor")
        check_belongs(
            estimation,
            (Estimation.MAP, Estimation.BAYES),
            "prior",
            self.prior is not None,
            "maximum likelihood has no prior",
        )

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

    def _accumulator(self, classes: AnyArray, columns: Columns) -> MomentsAccumulator:
        sharing = Sharing() if self._tails else self._sharing()
        full, d = structure_of(self.covariance).full, columns.dimension
        if full and d > MOST_TOGETHER:
            raise InputError(
                f"X has {d:,} columns, and a full covariance of them has {d * d:.1e} numbers: it is learnt for at most "
                f"{MOST_TOGETHER:,} columns. Hint: covariance='diagonal', or fewer columns."
            )
        return MomentsAccumulator(classes, d, sharing, full, self._tails)

    def _leave_one_out(self, statistics: Moments, estimation: Estimation, names: Sequence[str]) -> LeaveOneOutDensity:
        fitted = self.estimate(statistics, estimation, names)
        assert isinstance(fitted, Elliptical)
        structure, moments, varying, active = self._prepared(statistics)
        if estimation == Estimation.MLE:
            mean, rows, degrees = varying.mean, varying.weight, varying.group_weight()
            scale = structure.shape(varying.scatter)
        else:
            posterior = (self.prior or NormalInverseWishart()).update(varying, structure, active, moments.dimension)
            mean, rows, degrees, scale = posterior.mean, posterior.mean_rows, posterior.degrees, posterior.scale
        intensity, pooling = intensity_of(self.shrinkage, varying), pooling_of(self.shrinkage)
        intensity = intensity if intensity is not None and intensity.any() else None
        way: type[LeaveOneOut] = LeaveOneOutFull if intensity is None and not pooling else LeaveOneOutShrunken
        return (way if structure.full else LeaveOneOutDiagonal)(
            varying,
            active,
            structure,
            estimation,
            mean,
            rows,
            scale,
            degrees,
            bool(self.unbiased),
            intensity,
            pooling,
            fitted,
        ).ready()

    def _log_likelihood(self, statistics: Moments, fitted: Conditionals, names: Sequence[str]) -> float:
        if not isinstance(fitted, GaussianConditionals):
            raise NoEvidenceError("a predictive has no plugged-in parameters")
        return gaussian_likelihood(statistics.pool(self._sharing()).rebase(fitted.coordinates), fitted)

    def _n_parameters(self, statistics: Moments, names: Sequence[str]) -> int:
        structure, _, varying, active = self._prepared(statistics)
        d, groups = len(active), len(varying.scatter)
        each = d * (d + 1) // 2 if structure.full else 1 if isinstance(structure, Spherical) else d
        return len(varying.classes) * d + (groups * min(each, each * d) if structure.estimated else 0)

    def _log_evidence(self, statistics: Moments, names: Sequence[str]) -> float:
        structure, moments, varying, active = self._prepared(statistics)
        posterior = (self.prior or NormalInverseWishart()).update(varying, structure, active, moments.dimension)
        return gaussian_evidence(varying, structure, posterior)

    def _expected_accumulator(self, builder: MomentsAccumulator, fitted: Conditionals) -> Any:
        if not structure_of(self.covariance).full:
            return builder
        assert isinstance(fitted, Elliptical)
        return ExpectedMoments(builder, fitted)

    def _initial_family(self) -> Gaussian:
        return Gaussian("diagonal", self.shared) if structure_of(self.covariance).full else self

    def _with_fixed_prior(self, statistics: Moments, estimation: Estimation) -> Gaussian:
        if estimation == Estimation.MLE:
            return self
        structure, moments, varying, active = self._prepared(statistics)
        posterior = (self.prior or NormalInverseWishart()).update(varying, structure, active, moments.dimension)
        local, d = varying.coordinates, moments.dimension
        mean, rows = np.zeros(d), np.zeros(d)
        mean[active] = local.origin + local.unit * posterior.prior_mean
        scale = np.zeros((d, d) if structure.full else d)
        with np.errstate(over="ignore", invalid="ignore"):
            if structure.full:
                scale[np.ix_(active, active)] = posterior.prior_scale * local.unit * local.unit[:, None]
            else:
                scale[active] = posterior.prior_scale * local.unit * local.unit
        each = np.diagonal(scale) if structure.full else scale
        if not (np.isfinite(scale).all() and np.all(each[active] > 0.0)):
            return self  # no number holds it in the user's units
        rows[active] = posterior.prior_rows
        prior = NormalInverseWishart(
            mean, rows if np.ndim(posterior.prior_rows) else float(posterior.prior_rows), posterior.prior_degrees, scale
        )
        return Gaussian(self.covariance, self.shared, prior=prior)

    def _log_prior(self, statistics: Moments, fitted: Conditionals) -> float:
        structure, moments, varying, active = self._prepared(statistics)
        posterior = (self.prior or NormalInverseWishart()).update(varying, structure, active, moments.dimension)
        if not isinstance(fitted, GaussianConditionals):
            raise NoEvidenceError("a predictive has no plugged-in parameters")
        return normal_inverse_wishart(varying, active, structure, posterior, fitted)

    @property
    def _needs_complete_rows(self) -> bool:
        return structure_of(self.covariance).full

    def _common_collector(self, other: Gaussian) -> Gaussian:
        """Scatters of the classes' own, full ones where either needs them, with tails where either does."""
        both = (self, other)
        full = any(structure_of(family.covariance).full for family in both)
        return Gaussian(
            "full" if full else "diagonal", shrinkage="ledoit-wolf" if any(f._tails for f in both) else None
        )

    def _project_statistics(self, statistics: Moments) -> Moments:
        if statistics.full and not structure_of(self.covariance).full:
            statistics = statistics.diagonal()
        return statistics if self._tails else replace(statistics, tails=None).pool(self._sharing())

    # -- estimates

    def _prepared(self, statistics: Moments) -> tuple[Structure, Moments, Moments, Index]:
        """The structure, the moments in fitting units, those of the columns that vary, and which these are."""
        structure, sharing = structure_of(self.covariance), self._sharing()
        self._check_groups(sharing, statistics.classes)
        moments = statistics.pool(sharing).settled()
        if isinstance(structure, Spherical | Identity) or self.shrinkage is not None:
            moments = moments.one_unit()
        active = np.flatnonzero(moments.has_variance())
        return structure, moments, moments.take(active) if len(active) < moments.dimension else moments, active

    def estimate(self, statistics: Moments, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        structure, moments, varying, active = self._prepared(statistics)
        if estimation == Estimation.MLE:
            return self._maximum_likelihood(moments, varying, active, structure, names)
        prior = self.prior or NormalInverseWishart()
        posterior = prior.update(varying, structure, active, moments.dimension)
        if estimation == Estimation.MAP:
            return self._mode(moments, varying, active, structure, posterior, names)
        return self._predictive(moments, varying, active, structure, posterior, names)

    def _unfactored(self, statistics: Moments, estimation: Estimation, names: Sequence[str]) -> Unfactored:
        """The same estimates of columns that vary together, whose covariances may have any rank under "mle"."""
        structure, moments, varying, active = self._prepared(statistics)
        none = np.full(len(moments.mean), np.inf)
        if estimation == Estimation.MLE:
            self._check_observed(moments, names)
            matrices = self._likeliest(moments, varying, structure)
            ones = np.ones(len(moments.mean))
            return Unfactored(moments.mean, matrices, active, moments.group, ones, none, moments.coordinates)
        posterior = (self.prior or NormalInverseWishart()).update(varying, structure, active, moments.dimension)
        mean, stretch = self._spread_means(moments, active, posterior), np.ones(len(moments.mean))
        if estimation == Estimation.MAP:
            degrees, matrices = none, self._likeliest_after(varying, active, structure, posterior)
        else:
            degrees, matrices = self._expected_scale(moments, active, structure, posterior)
            degrees, stretch = degrees[moments.group], 1.0 + 1.0 / posterior.mean_rows
        self._factor_posterior(matrices, active, structure, moments, names)  # for its errors
        weak = None
        if estimation == Estimation.BAYES and self.prior is None:
            rows = moments.group_weight() - moments.group_classes()
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.einsum("gdd->gd", posterior.scale) / np.einsum("gdd->gd", matrices)
            weak = EmpiricalBayesRidge(posterior.prior_scale, rows, ratio.max(axis=1, initial=0.0))
        return Unfactored(mean, matrices, active, moments.group, stretch, degrees, moments.coordinates, weak)

    def _check_groups(self, sharing: Sharing, classes: AnyArray) -> None:
        """Raise where a group names a class that nobody has."""
        known = classes.tolist()
        unknown = [label for group in sharing.groups for label in group if label not in known]
        if unknown:
            raise InputError(
                f"shared={self.shared!r} names class {listed(unknown)}, which is not in y: {listed(known)}."
            )

    def _maximum_likelihood(
        self, moments: Moments, varying: Moments, active: Index, structure: Structure, names: Sequence[str]
    ) -> Conditionals:
        self._check_observed(moments, names)
        matrices = self._likeliest(moments, varying, structure)
        covariance, dependent = self._factor(matrices, varying, active, structure, moments, names)
        return GaussianConditionals(
            moments.mean, covariance, moments.group, np.ones(len(moments.mean)), moments.coordinates, dependent
        )

    def _likeliest(self, moments: Moments, varying: Moments, structure: Structure) -> Array:
        """Covariances of the columns that vary at the maximum of the likelihood, or shrunk; they may have any rank."""
        if not structure.estimated:
            return np.ones_like(varying.scatter)
        divisor = structure.divisor(varying.group_weight())
        pooled = structure.divisor(varying.total_weight[None])[0]
        if self.unbiased:
            divisor = np.asarray(divisor - structure.divisor(varying.group_classes().astype(np.float64)))
            pooled = pooled - len(moments.classes)
            self._check_divisor(divisor, varying)
        sums = structure.shape(varying.scatter) / (divisor[:, None, None] if structure.full else across(divisor))
        return shrink(self.shrinkage, sums, varying, structure, pooled)

    @staticmethod
    def _check_observed(moments: Moments, names: Sequence[str]) -> None:
        """Raise where a class has nothing to learn its mean from."""
        empty = moments.classes[moments.rows == 0] if moments.rows.ndim == 1 else ()
        if len(empty):
            raise NotEstimableError(
                f"Class {listed(empty)} has no rows, so its likelihood has no maximum. "
                "Use estimation='bayes' or 'map', or leave the class out of class_prior."
            )
        if not moments.rows.all():
            k, j = np.argwhere(moments.rows == 0)[0]
            raise NotEstimableError(
                f"Column {names[j]!r} has no observed value in class {listed(moments.classes[k : k + 1])}, so its "
                "likelihood has no maximum. Use estimation='bayes' or 'map', or leave the column out."
            )

    def _check_divisor(self, divisor: Array, moments: Moments) -> None:
        if len(moments.mean[0]) and np.any(divisor <= 0.0):
            g = int(np.argmin(across(divisor).min(axis=1)))
            raise NotEstimableError(
                f"Class {listed(moments.classes[moments.group == g])}: too few rows for unbiased=True "
                f"(weight {np.min(moments.group_weight()[g]):g}). "
                "Use unbiased=False with shrinkage, or estimation='bayes'."
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
        warn(text, DependentColumnsWarning)

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
        if not every and len(moments.classes) > 1:
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
            matrices = self._likeliest_after(varying, active, structure, posterior)
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

    @staticmethod
    def _likeliest_after(
        varying: Moments, active: Index, structure: Structure, posterior: NormalInverseWishartPosterior
    ) -> Array:
        """Covariances at the joint mode."""
        members = np.bincount(varying.group, minlength=len(varying.scatter)).astype(np.float64)
        divisor = structure.mode_divisor(posterior.degrees, len(active), members)
        return np.asarray(posterior.scale / (divisor[:, None, None] if structure.full else across(divisor)))

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
            return _stretched(mean, _identity(moments, active), active, stretch, moments)
        degrees, matrices = self._expected_scale(moments, active, structure, posterior)
        covariance = self._factor_posterior(matrices, active, structure, moments, names)
        fitted = _stretched(mean, covariance, active, stretch, moments)
        kind = StudentConditionals if structure.full or isinstance(structure, Spherical) else IndependentStudents
        return kind(
            mean, fitted.covariance, fitted.group, fitted.stretch, moments.coordinates, degrees=degrees[moments.group]
        )

    @staticmethod
    def _expected_scale(
        moments: Moments, active: Index, structure: Structure, posterior: NormalInverseWishartPosterior
    ) -> tuple[Array, Array]:
        """Degrees of freedom and scales of the predictives, for every group; a class stretches its own."""
        degrees = structure.predictive_degrees(posterior.degrees, len(active))
        if len(active) and np.any(degrees <= 0.0):
            g = int(np.argmin(degrees))
            raise NotEstimableError(
                f"The posterior predictive of class {listed(moments.classes[moments.group == g])} is improper: "
                f"{int(moments.rows[moments.group == g].sum())} rows for {len(active)} columns. "
                "Use more rows, or a proper prior: NormalInverseWishart()."
            )
        degrees = np.maximum(degrees, 1.0) if not len(active) else degrees
        matrices = posterior.scale / (degrees[:, None, None] if structure.full else across(degrees))
        return degrees, matrices

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


def _stretched(
    mean: Array, covariance: Covariance, active: Index, stretch: Array, moments: Moments
) -> GaussianConditionals:
    """Gaussians whose covariances are stretched, (classes,); or by column, which makes them the classes' own."""
    group = moments.group
    if stretch.ndim == 2:
        assert isinstance(covariance, DiagonalCovariance)
        scale = covariance.inverse_deviation[group]
        scale[:, active] /= np.sqrt(stretch)
        log_det = covariance.log_det[group] + np.log(stretch).sum(axis=1)
        covariance, group, stretch = DiagonalCovariance(scale, log_det), np.arange(len(mean)), np.ones(len(mean))
    return GaussianConditionals(mean, covariance, group, stretch, moments.coordinates)


def _identity(moments: Moments, active: Index) -> DiagonalCovariance:
    """Variances of 1 in the user's units, for every scatter of the moments."""
    unit = moments.coordinates.unit[active]
    scale = np.zeros((len(moments.scatter), moments.dimension))
    scale[:, active] = unit
    return DiagonalCovariance(scale, np.full(len(scale), -2.0 * np.log(unit).sum()))
