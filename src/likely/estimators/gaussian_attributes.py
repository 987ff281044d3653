"""Attributes of Gaussian classifiers: means and covariances, and coefficients of linear scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.choice.default_families import Declared
from likely.data.table import Table
from likely.errors import InputTypeError
from likely.estimators.generative import GenerativeModel
from likely.families.gaussian.densities import Elliptical, GaussianConditionals
from likely.families.gaussian.family import Gaussian
from likely.families.quadratic import Quadratic
from likely.model.plans import Plan
from likely.typing import Array

if TYPE_CHECKING:
    _Classifier = GenerativeModel  # what the mixins below extend; at run time they inherit from no estimator
else:
    _Classifier = object


class GaussianBlock(_Classifier):
    """Mixin of classifiers with one Gaussian block over all columns."""

    @abstractmethod
    def _family(self) -> Gaussian:
        """The family that the options specify."""

    def _checked(self, table: Table, remedy: str) -> Table:
        if table.is_sparse:
            raise InputTypeError(
                f"X is sparse, but {type(self).__name__} needs a dense array. Use X.toarray(), or NaiveBayes."
            )
        return super()._checked(table, remedy)

    def _declared(self, names: Sequence[str]) -> Declared:
        return Declared((Plan(None, self._family()),))

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
        """Class means, an array of shape (n_classes, n_features)."""
        return self._conditionals.class_means()

    @property
    def covariance_(self) -> Array:
        """Covariance, of shape (n_features, n_features) if it is pooled, else (n_classes, n_features, n_features).

        For estimation='bayes' it has the scale matrices of the Student t of each class.
        """
        parts = self._conditionals
        if isinstance(parts, GaussianConditionals) and parts.linear:
            return parts.class_covariance(0)
        return np.array([parts.class_covariance(k) for k in range(parts.n_classes)])


class LinearScores(_Classifier):
    """Mixin of classifiers whose scores are linear in x, such as Gaussians with a pooled covariance."""

    @property
    def coef_(self) -> Array:
        """Coefficients of the scores, of shape (n_classes, n_features).

        They are w_k = Σ⁻¹(μ_k − μ), with μ the mean of the class means: Σ⁻¹μ is common to all classes and cancels. For
        two classes, their difference, of shape (1, n_features).
        """
        form = self._linear_form()
        return form.linear[1:] - form.linear[:1] if len(self.classes_) == 2 else form.linear

    @property
    def intercept_(self) -> Array:
        """Intercepts of the scores, of shape (n_classes,).

        They are w_k0 = ½·μᵀΣ⁻¹μ − ½·μ_kᵀΣ⁻¹μ_k + log p(class k). For two classes, their difference, of shape (1,).
        """
        form = self._linear_form()
        with np.errstate(over="ignore", invalid="ignore"):
            constant = form.constant - form.linear @ form.centre
        return constant[1:] - constant[:1] if len(self.classes_) == 2 else constant

    def _linear_form(self) -> Quadratic:
        form = self._form()
        if form.square is not None:
            raise AttributeError(f"The scores of this {type(self).__name__} are not linear in x.")
        return form
