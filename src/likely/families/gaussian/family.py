"""The Gaussian family: its options, statistics, and estimates by maximum likelihood, MAP or full Bayes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import joblib
import numpy as np

from likely.errors import InputError, NoEvidenceError, check_choice, listed
from likely.families.base import Columns, Completion, Conditionals, Family, LeaveOneOutDensity
from likely.families.estimation import Estimation, check_belongs
from likely.families.gaussian.accumulator import MomentsAccumulator
from likely.families.gaussian.conditional import EmpiricalBayesRidge, Unfactored
from likely.families.gaussian.covariance import STRUCTURES, Spherical, Structure
from likely.families.gaussian.densities import GaussianConditionals
from likely.families.gaussian.elliptical import Elliptical
from likely.families.gaussian.estimates import (
    PreparedMoments,
    check_observed,
    factor_posterior,
    largest_ranks,
    likelihood_covariances,
    maximum_likelihood,
    posterior_densities,
    posterior_scales,
)
from likely.families.gaussian.evidence import (
    gaussian_evidence,
    gaussian_likelihood,
    normal_inverse_wishart,
    pattern_likelihood,
)
from likely.families.gaussian.expected_moments import ExpectedMoments
from likely.families.gaussian.given import given_gaussians, given_table
from likely.families.gaussian.leave_one_out.base import LeaveOneOut
from likely.families.gaussian.leave_one_out.diagonal import LeaveOneOutDiagonal
from likely.families.gaussian.leave_one_out.full import LeaveOneOutFull
from likely.families.gaussian.leave_one_out.patterns import with_missing_values
from likely.families.gaussian.leave_one_out.shrunken import LeaveOneOutShrunken
from likely.families.gaussian.leave_one_out.single_values import HeldOutStudents
from likely.families.gaussian.parameters import GaussianEstimates, gaussian_parameters
from likely.families.gaussian.pattern_accumulator import PatternAccumulator
from likely.families.gaussian.pattern_em import complete_moments, start_of_completion
from likely.families.gaussian.prior import NormalInverseWishart, NormalInverseWishartPosterior, ResolvedPrior
from likely.families.gaussian.shrinkage import Shrinkage, check_shrinkage, intensity_of, pooling_of
from likely.families.parameters import Parameter
from likely.statistics.accumulator import Accumulator
from likely.statistics.counts import plain_label
from likely.statistics.moments import Moments, Sharing
from likely.statistics.pattern_moments import PatternMoments
from likely.typing import AnyArray, Array, Codes, Index

MAX_JOINT_COLUMNS = 100_000  # a covariance of more columns has beyond 10^10 entries


class Gaussian(Family):
    """Gaussian class-conditional densities of one column, or of columns that are modelled jointly.

    With a full covariance per class this is quadratic discriminant analysis, with a pooled one linear discriminant
    analysis, with diagonal covariances Gaussian naive Bayes. Under estimation="bayes" means and covariances are
    integrated out, and the class-conditionals are Student t densities.

    Parameters
    ----------
    covariance : {"full", "diagonal", "spherical", "identity"}, default="full"
        Structure of the covariance: all entries, one variance per column, one variance for all columns, or variances
        fixed at 1.
    shared : bool or sequence of sequences of classes, default=False
        True pools one covariance over all classes (linear boundaries); False estimates one per class (quadratic
        boundaries). Groups of classes, such as ``[["a", "b"]]``, pool one covariance each; classes in no group
        have a per-class covariance.
    shrinkage : None, float in [0, 1], "ledoit-wolf", "oas" or Regularized, default=None
        Shrinkage of maximum likelihood covariances. A number is the weight of a scaled identity, which "ledoit-wolf"
        and "oas" estimate from the data. Only for estimation="mle".
    unbiased : bool, default=False
        Divide scatters by n - K (pooled) or n_k - 1 (per class) instead of n or n_k. Only for estimation="mle".
    prior : NormalInverseWishart or None, default=None
        Prior of means and covariances. None is a weak prior derived from the data. Only for estimation="map" and
        "bayes".
    components : int, default=1
        Number of Gaussians in each class (mixture discriminant analysis); `covariance` and `shared` then describe the
        components. More than one is fitted by expectation maximisation.

    See Also
    --------
    NormalInverseWishart : Conjugate prior of means and covariances.
    Regularized : Covariances between pooled and per class, and between full and spherical.
    LogNormal : Gaussian density of the logarithm.
    LinearDiscriminant : Classifier with a pooled full covariance.
    QuadraticDiscriminant : Classifier with a full covariance per class.

    References
    ----------
    .. [1] C. M. Bishop, "Pattern Recognition and Machine Learning", Springer, 2006, sections 2.3 and 4.2.
    .. [2] T. Hastie and R. Tibshirani, "Discriminant analysis by Gaussian mixtures", Journal of the Royal Statistical
       Society B 58 (1996), 155-176.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import Gaussian, GenerativeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GenerativeClassifier(Gaussian("full", shared=True), estimation="mle").fit(X, y)
    >>> model.predict_proba(X[:1]).round(3)
    array([[1., 0., 0.]])
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
    def _structure(self) -> Structure:
        return STRUCTURES[self.covariance]

    @property
    def _independent(self) -> bool:
        return self.covariance in ("diagonal", "identity")

    def _with_covariance(self, covariance: str, shared: bool) -> Gaussian:
        return Gaussian("diagonal" if self._independent else covariance, shared)

    # -- options

    def check(self, estimation: Estimation) -> None:
        check_choice("covariance", self.covariance, STRUCTURES)
        structure = self._structure
        check_shrinkage(self.shrinkage)
        count: Any = self.components
        if not isinstance(count, Integral) or isinstance(count, bool) or int(count) < 1:
            raise InputError(f"components={count!r} is not a positive whole number.")
        self._sharing()
        if isinstance(self.shrinkage, str) and not structure.full:
            raise InputError(f"shrinkage={self.shrinkage!r} needs covariance='full', not {self.covariance!r}.")
        if not structure.estimated and (self.shrinkage is not None or self.unbiased):
            raise InputError("covariance='identity' estimates no variances: shrinkage and unbiased have no effect.")
        if not isinstance(self.unbiased, bool | np.bool_):
            raise InputError(f"unbiased={self.unbiased!r} must be True or False.")
        if self.prior is not None and not isinstance(self.prior, NormalInverseWishart):
            raise InputError(f"prior={self.prior!r} is not a NormalInverseWishart.")
        check_belongs(estimation, (Estimation.MLE,), "shrinkage", self.shrinkage is not None, "the prior shrinks")
        check_belongs(estimation, (Estimation.MLE,), "unbiased", bool(self.unbiased), "the prior sets the divisor")
        posterior, given = (Estimation.MAP, Estimation.BAYES), self.prior is not None
        check_belongs(estimation, posterior, "prior", given, "maximum likelihood has no prior")

    def _sharing(self) -> Sharing:
        if isinstance(self.shared, bool | np.bool_):
            return Sharing(everyone=bool(self.shared))
        wrong = f"shared={self.shared!r} must be True, False, or a list of groups of classes, [['a', 'b']]."
        if isinstance(self.shared, str | Mapping) or not isinstance(self.shared, Iterable):
            raise InputError(wrong)
        parts = list(self.shared)
        if any(isinstance(group, str | bytes | Mapping) or not isinstance(group, Iterable) for group in parts):
            raise InputError(f"{wrong} Each group is a list of classes.")
        try:
            groups = tuple(tuple(plain_label(label) for label in group) for group in parts)
            named = [label for group in groups for label in group]
            twice = len(set(named)) < len(named)
        except TypeError:
            raise InputError(wrong) from None
        if twice:
            raise InputError(f"shared={self.shared!r} names a class twice.")
        return Sharing(groups=groups)

    def describe(self) -> str:
        return self._described(several=True)

    def _described(self, several: bool) -> str:
        """The family as text; the pooling over classes is left out where there are not `several`."""
        if not several:
            pooling = ""
        elif self.shared is True:
            pooling = ", pooled over classes"
        elif self.shared is False:
            pooling = ", per class"
        else:
            pooling = f", pooled within {listed(self._sharing().groups)}"
        extra = f", shrinkage={self.shrinkage!r}" if self.shrinkage is not None else ""
        if self.prior is not None and self.prior.strength:
            extra += f", prior strength {self.prior.strength:g}"
        return f"Gaussian, {self.covariance} covariance{pooling}{extra}"

    # -- statistics

    @property
    def _tails(self) -> bool:
        return isinstance(self.shrinkage, str) and self.shrinkage == "ledoit-wolf"

    def _accumulator(self, classes: AnyArray, columns: Columns) -> Accumulator:
        sharing = Sharing() if self._tails else self._sharing()
        full, d = self._structure.full, columns.dimension
        if full and d > MAX_JOINT_COLUMNS:
            raise InputError(
                f"X has {d:,} columns: a full covariance would have {d * d:.1e} entries, and at most "
                f"{MAX_JOINT_COLUMNS:,} columns are supported. Use covariance='diagonal', or fewer columns."
            )
        moments = MomentsAccumulator(classes, d, sharing, full, self._tails)
        return PatternAccumulator(moments) if self._sums_missing_values else moments

    @property
    def _sums_missing_values(self) -> bool:
        return self._structure.full and not self._tails

    def _complete(
        self, statistics: Any, estimation: Estimation, names: Sequence[str], max_iter: int, tol: float
    ) -> Completion:
        if not isinstance(statistics, PatternMoments):
            return Completion(statistics)
        known, sharing = statistics.completions, self._sharing()
        key = (sharing, joblib.hash(self), str(estimation), max_iter, tol)
        if key not in known:
            self._check_groups(sharing, statistics.classes)
            if sharing not in known:
                known[sharing] = start_of_completion(self._initial_family(), statistics.pool(sharing))
            known[key] = complete_moments(self, known[sharing], estimation, names, max_iter, tol)
        completion: Completion = known[key]
        return completion

    def _leave_one_out(
        self, statistics: Moments, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        assert isinstance(fitted, Elliptical)
        data = self._prepared(statistics)
        varying, structure = data.varying, data.structure
        if estimation == Estimation.MLE:
            mean, rows, degrees = varying.mean, varying.weight, varying.group_weight()
            scale = structure.shape(varying.scatter)
        else:
            posterior = self._posterior(data)
            mean, rows, degrees, scale = posterior.mean, posterior.mean_rows, posterior.degrees, posterior.scale
        intensity, pooling = intensity_of(self.shrinkage, varying), pooling_of(self.shrinkage)
        intensity = intensity if intensity is not None and intensity.any() else None
        kind: type[LeaveOneOut] = LeaveOneOutDiagonal
        if structure.full:
            kind = LeaveOneOutFull if intensity is None and not pooling else LeaveOneOutShrunken
        whole = kind(
            varying=varying,
            active=data.active,
            structure=structure,
            estimation=estimation,
            mean=mean,
            rows=rows,
            scale=scale,
            degrees=degrees,
            unbiased=bool(self.unbiased),
            intensity=intensity,
            pooling=pooling,
            fitted=fitted,
        )
        return with_missing_values(whole) if structure.full else whole.evaluator()

    def _held_out_terms(self, statistics: Moments, rows: AnyArray, codes: Codes, weights: Array, whole: bool) -> Array:
        """Of independent columns."""
        bounds = (rows - 0.5, rows + 0.5) if whole else None
        return self._held_out_students(statistics, rows, codes, weights).log_terms(rows, bounds)

    def _held_out_students(self, statistics: Moments, rows: AnyArray, codes: Codes, weights: Array) -> HeldOutStudents:
        """The leave-one-out predictives of single values, each of the class of its row."""
        data = self._prepared(statistics)
        return HeldOutStudents.of(data.varying, data.active, self._posterior(data), rows, codes, weights)

    def _log_likelihood(
        self, statistics: Moments | PatternMoments, fitted: Conditionals, names: Sequence[str]
    ) -> float:
        if not isinstance(fitted, GaussianConditionals):
            raise NoEvidenceError("a predictive has no plugged-in parameters")
        if isinstance(statistics, PatternMoments):
            return pattern_likelihood(statistics.pool(self._sharing()), fitted)
        return gaussian_likelihood(statistics.pool(self._sharing()).rebase(fitted.coordinates), fitted)

    def _n_parameters(self, statistics: Moments | PatternMoments, names: Sequence[str]) -> int:
        data = self._prepared(statistics.available if isinstance(statistics, PatternMoments) else statistics)
        structure, d, groups = data.structure, len(data.active), len(data.varying.scatter)
        each = d * (d + 1) // 2 if structure.full else 1 if isinstance(structure, Spherical) else d
        return len(data.varying.classes) * d + (groups * min(each, each * d) if structure.estimated else 0)

    def _log_evidence(self, statistics: Moments | PatternMoments, names: Sequence[str]) -> float:
        if isinstance(statistics, PatternMoments):
            raise NoEvidenceError("missing values in a joint block leave no closed form")
        data = self._prepared(statistics)
        return gaussian_evidence(data.varying, data.structure, self._posterior(data))

    def _expected_accumulator(self, builder: Accumulator, fitted: Conditionals) -> Any:
        if not self._structure.full:
            return builder
        assert isinstance(fitted, Elliptical)
        return ExpectedMoments(builder, fitted)

    def _initial_family(self) -> Gaussian:
        return Gaussian("diagonal", self.shared) if self._structure.full else self

    def _with_fixed_prior(self, statistics: Moments, estimation: Estimation) -> Gaussian:
        if estimation == Estimation.MLE:
            return self
        data = self._prepared(statistics)
        active, d = data.active, data.moments.dimension
        prior = self._resolved_prior(data.varying, active, d)
        local, full = data.varying.coordinates, data.structure.full
        mean, rows, scale = np.zeros(d), np.zeros(d), np.zeros((d, d) if full else d)
        mean[active], rows[active] = local.to_user(prior.mean), prior.rows
        with np.errstate(over="ignore", invalid="ignore"):
            place = np.ix_(active, active) if full else active
            scale[place] = prior.scale * local.unit * (local.unit[:, None] if full else local.unit)
        each = np.diagonal(scale) if full else scale
        if not (np.isfinite(scale).all() and np.all(each[active] > 0.0)):
            return self  # not representable in the user's units
        mean_rows = rows if np.ndim(prior.rows) else float(prior.rows)
        fixed = NormalInverseWishart(mean, mean_rows, prior.degrees, scale)
        return Gaussian(self.covariance, self.shared, prior=fixed)

    def _log_prior(self, statistics: Moments, fitted: Conditionals) -> float:
        if not isinstance(fitted, GaussianConditionals):
            raise NoEvidenceError("a predictive has no plugged-in parameters")
        data = self._prepared(statistics)
        prior = self._resolved_prior(data.varying, data.active, data.moments.dimension)
        return normal_inverse_wishart(data.varying, data.active, data.structure, prior, fitted)

    @property
    def _needs_complete_rows(self) -> bool:
        return self._structure.full

    def _common_collector(self, other: Gaussian) -> Gaussian:
        """Scatters per class, full where either family needs them, with fourth moments where either does."""
        both = (self, other)
        if (
            self._structure.full == other._structure.full
            and self._sharing() == other._sharing()
            and not any(family._tails for family in both)
        ):
            return self
        full = any(family._structure.full for family in both)
        return Gaussian(
            "full" if full else "diagonal", shrinkage="ledoit-wolf" if any(f._tails for f in both) else None
        )

    def _project_statistics(self, statistics: Moments | PatternMoments) -> Moments | PatternMoments:
        if statistics.full and not self._structure.full:
            statistics = statistics.diagonal()
        if isinstance(statistics, PatternMoments):
            return statistics.pool(self._sharing())
        return statistics if self._tails else replace(statistics, tails=None).pool(self._sharing())

    # -- estimates

    def _prepared(self, statistics: Moments) -> PreparedMoments:
        """The moments in the units of a fit, pooled as `shared` has it."""
        sharing = self._sharing()
        self._check_groups(sharing, statistics.classes)
        return PreparedMoments.of(statistics, self._structure, sharing, one_unit=self.shrinkage is not None)

    def _check_groups(self, sharing: Sharing, classes: AnyArray) -> None:
        """Raise where `shared` names classes that are not in y."""
        if not sharing.groups:
            return
        known = classes.tolist()
        unknown = [label for group in sharing.groups for label in group if label not in known]
        if unknown:
            raise InputError(
                f"shared={self.shared!r} names class {listed(unknown)}, which is not in y: {listed(known)}."
            )

    def _posterior(self, data: PreparedMoments) -> NormalInverseWishartPosterior:
        """The posterior of means and covariances, of the columns that vary."""
        prior = self._resolved_prior(data.varying, data.active, data.moments.dimension)
        return prior.posterior(data.varying, data.structure)

    def _resolved_prior(self, varying: Moments, active: Index, d: int) -> ResolvedPrior:
        """The prior of the columns that vary, whose defaults are derived from their moments."""
        return (self.prior or NormalInverseWishart())._resolved(varying, self._structure, active, d)

    def _parameters(
        self, statistics: Moments, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        data = self._prepared(statistics)
        if estimation == Estimation.MLE:
            found = GaussianEstimates.likelihood(data, self.shrinkage, bool(self.unbiased))
        else:
            found = GaussianEstimates.posterior(data, self._posterior(data), estimation)
        return gaussian_parameters(data, found, names)

    def estimate(self, statistics: Moments, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        data = self._prepared(statistics)
        if estimation == Estimation.MLE:
            return maximum_likelihood(data, self.shrinkage, self.unbiased, names)
        return posterior_densities(data, self._posterior(data), estimation, names)

    def _given(self, values: Mapping[str, Any], size: int, names: Sequence[str]) -> Conditionals:
        return given_gaussians(values, size, names, self._structure.full)

    def _given_table(self, fitted: Any, names: Sequence[str]) -> list[Parameter]:
        return given_table(fitted, names)

    def _unfactored(self, statistics: Moments, estimation: Estimation, names: Sequence[str]) -> Unfactored:
        """The same estimates of columns that vary together, whose covariances may have any rank under "mle"."""
        data = self._prepared(statistics)
        moments, coordinates, group = data.moments, data.moments.coordinates, data.moments.group
        if estimation == Estimation.MLE:
            check_observed(moments, names)
            matrices, ones = likelihood_covariances(data, self.shrinkage, self.unbiased), np.ones(len(group))
            ranks = largest_ranks(data.varying) if self.shrinkage is None else None
            joint = Unfactored(moments.mean, matrices, data.active, group, ones, np.inf * ones, coordinates)
            return replace(joint, largest_ranks=ranks)
        posterior, weak = self._posterior(data), None
        degrees, matrices = posterior_scales(data, posterior, estimation)
        factor_posterior(data, matrices, names)  # raises where the posterior is improper
        if estimation == Estimation.BAYES and self.prior is None:
            rows = moments.group_weight() - moments.group_classes()
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.einsum("gdd->gd", posterior.scale) / np.einsum("gdd->gd", matrices)
            weak = EmpiricalBayesRidge(posterior.prior.scale, rows, ratio.max(axis=1, initial=0.0))
        mean, stretch = data.posterior_means(posterior), data.stretch(posterior, estimation)
        return Unfactored(mean, matrices, data.active, group, stretch, degrees[group], coordinates, weak)
