"""A generative model as a transformer that fills missing cells."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from likely.data.frames import split_target, whole_frame
from likely.errors import InputError, InputTypeError
from likely.estimators.generative import JointDensityEstimator
from likely.estimators.mixture import MixtureModel


class Imputer(TransformerMixin, BaseEstimator):
    """Fills missing cells with what a generative model expects them to be, given the other cells of the row.

    Parameters
    ----------
    model : any model of this library; None is `MixtureModel()`, one joint density of all rows. A classifier learns from
        the labels that `fit` is given, and fills rows without them over all classes.
    """

    def __init__(self, model: Any = None) -> None:
        self.model = model

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn how cells go together."""
        if scipy.sparse.issparse(X):
            raise InputTypeError("X is sparse, and Imputer needs a dense array. Use X.toarray().")
        if self.model is not None and not isinstance(self.model, JointDensityEstimator):
            raise InputError(f"model={self.model!r} is not a generative model of likely.")
        X, y = split_target(whole_frame(X), y)
        model = MixtureModel() if self.model is None else clone(self.model)
        self.model_ = model.fit(X, y, sample_weight=sample_weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.model_, name):
                setattr(self, name, getattr(self.model_, name))
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn how cells go together, and fill those that are missing; without the column that y names, if any."""
        X, y = split_target(whole_frame(X), y)
        return self.fit(X, y, sample_weight).transform(X)

    def transform(self, X: Any) -> Any:
        """X with its missing cells filled; a frame comes back as one."""
        check_is_fitted(self)
        return self.model_.impute(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names of the columns, which stay."""
        check_is_fitted(self)
        if hasattr(self, "feature_names_in_"):
            return self.feature_names_in_
        return np.array([f"x{i}" for i in range(self.n_features_in_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
