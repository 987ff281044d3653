"""A generative model as a transformer that imputes missing values."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import TransformerMixin, clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from likely.data.frames import as_narwhals, column_names, is_frame, rows_and_target, split_target
from likely.data.sources import is_source
from likely.errors import InputError, InputTypeError
from likely.estimators.generative import JointDensity
from likely.estimators.mixture import MixtureModel
from likely.numerics.options import NamedOptions
from likely.typing import LabelsLike, TableLike, WeightsLike


class Imputer(TransformerMixin, NamedOptions):
    """Imputation of missing values by a generative model, as a transformer.

    Each missing value is replaced by its expectation given the observed values of the row; a categorical value by the
    most probable category.

    Parameters
    ----------
    model : estimator, default=None
        A generative model of this library. None is `MixtureModel()`, one joint density of all columns. A classifier is
        fitted to the labels that are passed to `fit`, and averages over the classes in `transform`.

    Attributes
    ----------
    model_ : estimator
        The fitted model.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X is a frame whose column names are text.

    See Also
    --------
    GenerativeClassifier.impute : Imputation by a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from likely import Imputer, MixtureModel
    >>> X = np.array([[1.0, 2.0], [2.0, 4.1], [3.0, 5.9], [4.0, np.nan]])
    >>> Imputer(MixtureModel(estimation="mle")).fit_transform(X).round(1)[3]
    array([4. , 7.9])
    """

    def __init__(self, model: JointDensity | None = None) -> None:
        self.model = model

    def fit(self, X: TableLike, y: LabelsLike | None = None, sample_weight: WeightsLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Training rows with missing values.
        y : array-like of shape (n_samples,) or str, default=None
            Class labels for a classifier, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. Rows with weight 0 are ignored. None is 1 for all rows.

        Returns
        -------
        Imputer
            The fitted transformer.
        """
        if scipy.sparse.issparse(X):
            raise InputTypeError("X is sparse, but Imputer needs a dense array. Use X.toarray().")
        if self.model is not None and not isinstance(self.model, JointDensity):
            raise InputError(
                f"model={self.model!r} has no density of all columns of X. Use MixtureModel, GenerativeClassifier, "
                "NaiveBayes or a discriminant."
            )
        model = MixtureModel() if self.model is None else clone(self.model)
        if not is_source(X):
            X, y = split_target(*rows_and_target(X, y))
        elif y is not None and not is_classifier(model):
            raise InputError(
                f"y={y!r}: {type(model).__name__} uses no labels. Leave the column out of X, such as by "
                "scan(sql='select ...'), and y too."
            )
        self.model_ = model.fit(X, y, sample_weight=sample_weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.model_, name):
                setattr(self, name, getattr(self.model_, name))
        return self

    def fit_transform(self, X: TableLike, y: LabelsLike | None = None, sample_weight: WeightsLike | None = None) -> Any:
        """Fit the model, and impute the missing values of the training rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Training rows with missing values.
        y : array-like of shape (n_samples,) or str, default=None
            Class labels for a classifier, or the name of the column of X that has them. That column is not returned.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. Rows with weight 0 are ignored. None is 1 for all rows.

        Returns
        -------
        array or frame of shape (n_samples, n_features)
            X without missing values, as the same kind of table.
        """
        if is_source(X):
            raise InputError(
                "fit_transform needs the rows in memory, and X comes in chunks. Use fit, and transform one chunk after "
                "another."
            )
        X, y = split_target(*rows_and_target(X, y))
        return self.fit(X, y, sample_weight).transform(X)

    def transform(self, X: TableLike) -> Any:
        """Impute missing values.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows with the columns of the training rows. Other columns, such as labels and weights, are not returned.

        Returns
        -------
        array or frame of shape (n_samples, n_features)
            X without missing values, as the same kind of table.
        """
        check_is_fitted(self)
        found = self.model_.impute(X)
        if not (hasattr(self, "feature_names_in_") and is_frame(found)):
            return found
        known = column_names(found)
        return as_narwhals(found).select([name for name in self.feature_names_in_ if name in known]).to_native()

    def get_feature_names_out(self, input_features: object = None) -> Any:
        """Return the names of the columns, which the transformer does not change.

        Parameters
        ----------
        input_features : None
            Ignored; it is there for scikit-learn's API.

        Returns
        -------
        ndarray of shape (n_features_in_,)
            Names of the columns.
        """
        check_is_fitted(self)
        if hasattr(self, "feature_names_in_"):
            return self.feature_names_in_
        return np.array([f"x{i}" for i in range(self.n_features_in_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags
