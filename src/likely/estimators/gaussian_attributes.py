"""Attributes of Gaussian classifiers: means and covariances, and coefficients of linear scores.

The classifiers have those that apply to them as properties.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.estimators.generative import JointDensity
from likely.families.gaussian.elliptical import Elliptical
from likely.families.quadratic import Quadratic
from likely.typing import Array


def conditionals(model: JointDensity) -> Elliptical:
    """The densities of the only block of columns."""
    check_is_fitted(model)
    return cast(Elliptical, model.model_.blocks[0].conditionals)


def class_means(model: JointDensity) -> Array:
    """Class means, an array of shape (n_classes, n_features)."""
    return conditionals(model).class_means()


def class_covariances(model: JointDensity) -> Array:
    """Covariance, of shape (n_features, n_features) if it is pooled, else (n_classes, n_features, n_features).

    For estimation='bayes' it has the scale matrices of the Student t of each class.
    """
    parts = conditionals(model)
    if parts.is_linear:
        return parts.class_covariance(0)
    return np.array([parts.class_covariance(k) for k in range(parts.n_classes)])


def coefficients(model: JointDensity) -> Array:
    """Coefficients of the scores, of shape (n_classes, n_features).

    They are w_k = Σ⁻¹(μ_k − μ), with μ the mean of the class means: Σ⁻¹μ is common to all classes and cancels. For
    two classes, their difference, of shape (1, n_features).
    """
    form = _linear_form(model)
    return form.linear[1:] - form.linear[:1] if len(model.classes_) == 2 else form.linear


def intercepts(model: JointDensity) -> Array:
    """Intercepts of the scores, of shape (n_classes,).

    They are w_k0 = ½·μᵀΣ⁻¹μ − ½·μ_kᵀΣ⁻¹μ_k + log p(class k). For two classes, their difference, of shape (1,).
    """
    form = _linear_form(model)
    with np.errstate(over="ignore", invalid="ignore"):
        constant = form.constant - form.linear @ form.centre
    return constant[1:] - constant[:1] if len(model.classes_) == 2 else constant


def _linear_form(model: JointDensity) -> Quadratic:
    form = model._form()
    if form.square is not None:
        raise AttributeError(f"The scores of this {type(model).__name__} are not linear in x.")
    return form
