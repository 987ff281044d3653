"""The classifiers: their options and families, and the attributes of Gaussian and linear ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from likely.data.batches import Batches, targets_apart
from likely.data.row_blocks import evaluate
from likely.data.table import Table
from likely.errors import InputError, InputTypeError, check_choice
from likely.estimators.generative import GenerativeModel
from likely.families.base import Family, Quadratic
from likely.families.gaussian.densities import Elliptical, GaussianConditionals
from likely.families.gaussian.family import Gaussian
from likely.model.imputation import filled_rows
from likely.model.joint import JointModel
from likely.model.persistence import register
from likely.model.plans import Plan, declared_plans, default_plans, plan_of_all_columns, with_independent_columns
from likely.numerics.arrays import check_finite, has_missing
from likely.typing import Array

if TYPE_CHECKING:
    _Classifier = GenerativeModel  # what the mixins below extend; at run time they inherit from no estimator
else:
    _Classifier = object


class GaussianBlock(_Classifier):
    """Mixin of classifiers with one Gaussian block over all columns."""

    @abstractmethod
    def _family(self) -> Gaussian:
        """The Gaussian family of the options."""

    def _table(self, X: Any, start: int = 0) -> Table:
        table = super()._table(X, start)
        if table.is_sparse:
            raise InputTypeError(
                f"X is sparse, and {type(self).__name__} needs a dense array. Use X.toarray(), or NaiveBayes."
            )
        return table

    def _plans(self, batches: Batches) -> list[Plan]:
        return [Plan(None, self._family())]

    @property
    def _plans_are_declared(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _conditionals(self) -> Elliptical:
        check_is_fitted(self)
        return cast(Elliptical, self.model_.blocks[0].conditionals)

    @property
    def means_(self) -> Array:
        """Class means, (classes, columns)."""
        return self._conditionals.class_means()

    @property
    def covariance_(self) -> Array:
        """Covariances (classes, d, d), or one (d, d) where all classes share it.

        Under ``estimation="bayes"`` these are the scale matrices of the Student t, one for each class.
        """
        parts = self._conditionals
        if isinstance(parts, GaussianConditionals) and parts.linear:
            return parts.class_covariance(0)
        return np.array([parts.class_covariance(k) for k in range(parts.n_classes)])


class LinearScores(_Classifier):
    """Mixin of classifiers whose scores are linear in x, such as Gaussians with a pooled covariance."""

    @property
    def coef_(self) -> Array:
        """w_k = Σ⁻¹(μ_k − μ), (classes, columns), with μ the mean of the class means.

        Σ⁻¹μ is common to all classes and cancels. With two classes, their difference, (1, columns).
        """
        form = self._linear_form()
        return form.linear[1:] - form.linear[:1] if len(self.classes_) == 2 else form.linear

    @property
    def intercept_(self) -> Array:
        """w_k0 = ½·μᵀΣ⁻¹μ − ½·μ_kᵀΣ⁻¹μ_k + log p(class k), (classes,); with two classes their difference, (1,)."""
        form = self._linear_form()
        with np.errstate(over="ignore", invalid="ignore"):
            constant = form.constant - form.linear @ form.centre
        return constant[1:] - constant[:1] if len(self.classes_) == 2 else constant

    def _linear_form(self) -> Quadratic:
        form = self._form()
        if form.square is not None:
            raise AttributeError(f"The scores of this {type(self).__name__} are not linear in x.")
        return form


class FamilyOptions(_Classifier):
    """Mixin of classifiers with any families, for tables of numbers, counts, booleans and categories."""

    def __init__(
        self,
        families: Any = None,
        class_prior: Any = None,
        estimation: str = "bayes",
        unlabeled: Any = None,
        unseen: str = "missing",
        max_iter: int = 200,
        tol: float = 1e-6,
        unlabeled_weight: float = 1.0,
    ) -> None:
        self.families = families
        self.class_prior = class_prior
        self.estimation = estimation
        self.unlabeled = unlabeled
        self.unseen = unseen
        self.max_iter = max_iter
        self.tol = tol
        self.unlabeled_weight = unlabeled_weight

    @property
    def _plans_are_declared(self) -> bool:
        return isinstance(self.families, Family)

    def _check_options(self) -> None:
        super()._check_options()
        check_choice("unseen", self.unseen, ("missing", "error"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


@register
class GenerativeClassifier(FamilyOptions, GenerativeModel):
    """Class prior times class-conditional densities, one family for each block of columns.

    Parameters
    ----------
    families : None, one family for all columns, or a mapping from a column (name or number), or a tuple of columns that
        vary together, to its family. Columns that a mapping does not name, and all where it is None, have families by
        their types and values; continuous ones vary together in one Gaussian block, but for those with missing cells,
        which are independent. Whether classes share covariances, and which of a few families counts have, is decided by
        the log-loss of rows left out; `choices_` says why.
    class_prior : None (from the data), "uniform", probabilities in the order of the classes, a mapping
        {class: probability}, or a `Dirichlet`. A mapping may declare classes that have no rows yet.
    estimation : "bayes" (posterior predictive), "map" or "mle".
    unseen : what a category is that was not seen in training: "missing", or an "error".
    """

    def _plans(self, batches: Batches) -> list[Plan]:
        if isinstance(self.families, Family):
            return [plan_of_all_columns(self.families, batches.first.table.names)]
        plans = [] if self.families is None else declared_plans(self.families, batches.first.table.names)
        return plans + default_plans(batches, plans, together=True)


@register
class NaiveBayes(FamilyOptions, GenerativeModel):
    """Naive Bayes: every column on its own within a class, with the family that suits it.

    Parameters
    ----------
    families : None, one family for every column, or a mapping from a column (name or number) to its family.
        Columns that a mapping does not name, and all where it is None, have families by their types and values.
        `Multinomial` is one density of all its columns.
    class_prior, estimation, unseen : see `GenerativeClassifier`.
    """

    def _plans(self, batches: Batches) -> list[Plan]:
        if isinstance(self.families, Family):
            return [with_independent_columns(plan_of_all_columns(self.families, batches.first.table.names))]
        plans = [] if self.families is None else declared_plans(self.families, batches.first.table.names)
        plans = [with_independent_columns(plan) for plan in plans]
        return plans + default_plans(batches, plans, together=False)


@register
class LinearDiscriminant(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, LinearScores, GaussianBlock, GenerativeModel
):
    """Linear discriminant analysis: Gaussian classes with one covariance; linear boundaries.

    `transform` projects onto the canonical discriminants, scaled so that the covariance within the
    classes (under ``estimation="bayes"``, the scale of the predictive) is the identity, as in MASS.
    Options: see `Gaussian` and `GenerativeClassifier`.
    """

    def __init__(
        self,
        covariance: str = "full",
        shrinkage: Any = None,
        unbiased: bool = False,
        prior: Any = None,
        class_prior: Any = None,
        estimation: str = "mle",
        n_components: int | None = None,
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.unbiased = unbiased
        self.prior = prior
        self.class_prior = class_prior
        self.estimation = estimation
        self.n_components = n_components

    def _family(self) -> Gaussian:
        return Gaussian(self.covariance, True, self.shrinkage, self.unbiased, self.prior)

    def _check_options(self) -> None:
        super()._check_options()
        count: Any = self.n_components
        if count is not None and (not isinstance(count, Integral) or isinstance(count, bool) or int(count) < 1):
            raise InputError(f"n_components={count!r} is not a positive whole number.")

    def _check_model(self, model: JointModel) -> None:
        classes, columns = len(model.classes), len(model.names)
        if self.n_components is not None and self.n_components > min(classes - 1, columns):
            raise InputError(
                f"n_components={self.n_components} exceeds the number of canonical discriminants, which is "
                f"{min(classes - 1, columns)} for {classes} class{'' if classes == 1 else 'es'} and {columns} columns."
            )

    @property
    def _n_features_out(self) -> int:
        return int(self.scalings_.shape[1])

    @property
    def scalings_(self) -> Array:
        """Canonical discriminant directions, (columns, components), by falling separation of the classes."""
        return np.asarray(self._canonical()[0] / self._conditionals.coordinates.unit[:, None])

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of the variance between the classes along each component."""
        return self._canonical()[1]

    def _canonical(self) -> tuple[Array, Array, Array]:
        """Discriminant directions, their between-class variance ratios, and the overall mean; all in local units."""
        parts = self._conditionals
        prior = self.class_prior_
        centre = prior @ parts.mean
        white = np.sqrt(prior)[:, None] * parts.covariance.whiten(parts.mean - centre, 0)
        _, size, turn = np.linalg.svd(white, full_matrices=False)
        limit = min(len(self.classes_) - 1, parts.covariance.rank)
        rank = min(limit, int(np.sum(size > 1e-10 * size.max(initial=0.0))) or limit)
        count = min(self.n_components or limit, limit, max(rank, 1) if limit else 0)
        basis = parts.covariance.whiten(np.eye(parts.dimension), 0) @ turn[:count].T
        flip = np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(count)]) if count else np.ones(0)
        ratio = size[:count] ** 2 / max(float((size**2).sum()), np.finfo(float).tiny)
        return basis * flip, ratio, centre

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from rows X with labels y, or the name of their column, and project the rows."""
        self.fit(X, y, sample_weight)
        return self.transform(targets_apart(X, y)[0])

    def transform(self, X: Any) -> Array:
        """Rows on the canonical discriminants, (rows, components); missing cells are where they are expected to be."""
        return self._over_tables(X, lambda _, table: self._project(table))

    def _project(self, table: Table) -> Array:
        basis, _, centre = self._canonical()
        coordinates = self._conditionals.coordinates
        out = np.empty((table.rows, basis.shape[1]))
        read = table.numbers(None, sparse=False)

        def work(start: int, stop: int) -> None:
            rows = read(start, stop)
            check_finite(rows, allow_missing=True)
            if has_missing(rows):
                rows = filled_rows(self.model_, rows)
            with np.errstate(over="ignore", invalid="ignore"):
                out[start:stop] = np.subtract(coordinates.to_local(rows), centre, dtype=np.float64) @ basis
                far = np.flatnonzero(~np.all(np.isfinite(out[start:stop]), axis=1))
                scaled, exponent = coordinates.to_scaled(rows[far])
                projected = (scaled - np.ldexp(centre, -np.minimum(exponent, 2000)[:, None])) @ basis
                out[start + far] = np.ldexp(projected, exponent[:, None])

        evaluate(table, work, 2 * table.width)
        return out


@register
class QuadraticDiscriminant(GaussianBlock, GenerativeModel):
    """Quadratic discriminant analysis: Gaussian classes with covariances of their own.

    `groups` lists classes that share a covariance, ``[["a", "b"]]``: linear boundaries inside a group,
    quadratic ones elsewhere. Other options: see `Gaussian` and `GenerativeClassifier`.
    """

    def __init__(
        self,
        covariance: str = "full",
        groups: Sequence[Sequence[Any]] | None = None,
        shrinkage: Any = None,
        unbiased: bool = False,
        prior: Any = None,
        class_prior: Any = None,
        estimation: str = "mle",
    ) -> None:
        self.covariance = covariance
        self.groups = groups
        self.shrinkage = shrinkage
        self.unbiased = unbiased
        self.prior = prior
        self.class_prior = class_prior
        self.estimation = estimation

    def _family(self) -> Gaussian:
        shared = False if self.groups is None else self.groups
        if isinstance(shared, bool) and shared:
            raise InputError("groups=True is not known: list the groups, [['a', 'b']], or use LinearDiscriminant.")
        return Gaussian(self.covariance, shared, self.shrinkage, self.unbiased, self.prior)


@register
class NearestPrototype(LinearScores, GaussianBlock, GenerativeModel):
    """Learning with prototypes: the class whose mean is nearest.

    Distances are Euclidean with ``covariance="identity"``, and Mahalanobis distances under the covariance
    that all classes share with ``"full"`` (or ``"diagonal"``, ``"spherical"``). The class prior is uniform
    unless one is given, so that the distance alone decides.
    """

    def __init__(
        self,
        covariance: str = "identity",
        shrinkage: Any = None,
        unbiased: bool = False,
        prior: Any = None,
        class_prior: Any = "uniform",
        estimation: str = "mle",
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.unbiased = unbiased
        self.prior = prior
        self.class_prior = class_prior
        self.estimation = estimation

    def _family(self) -> Gaussian:
        return Gaussian(self.covariance, True, self.shrinkage, self.unbiased, self.prior)
