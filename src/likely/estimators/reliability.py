"""The method `reliability` of classifiers."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from likely.data.sources import is_source, predictions_and_targets
from likely.model.reliability import Reliability, reliability
from likely.model.rendering import frame_library
from likely.typing import AnyArray, Array, LabelsLike, TableLike, WeightsLike


class _ProbabilisticClassifier(Protocol):
    """What the method needs of a classifier."""

    @property
    def classes_(self) -> AnyArray: ...
    def predict_proba(self, X: TableLike) -> Array: ...


class ReliabilityMixin:
    """Mixin of classifiers with `predict_proba`."""

    def reliability(
        self: _ProbabilisticClassifier,
        X: TableLike,
        y: LabelsLike,
        label: object = None,
        bins: int = 10,
        strategy: str = "quantile",
        sample_weight: WeightsLike | None = None,
    ) -> Reliability:
        """Compare predicted probabilities with observed frequencies.

        Rows are grouped into bins of similar predictions. Where probabilities are calibrated, the observed frequency
        of a class in a bin is the mean predicted probability, up to sampling error. Training rows look better than new
        rows: use held-out rows, or ``cross_validate(model, X, y).reliability()``.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        y : array-like of shape (n_samples,) or str
            True class labels, or the name of the column of X that has them.
        label : object, default=None
            Class whose probability is compared. None is the second class of two; with more classes, the most probable
            class of each row.
        bins : int, default=10
            Number of bins.
        strategy : {'quantile', 'uniform'}, default='quantile'
            Bins with about the same number of rows, or of the same width.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. None is 1 for all rows.

        Returns
        -------
        Reliability
            Mean predicted probability, observed frequency, number of rows and standard error of each bin, and
            `expected_calibration_error`; `to_frame()` gives a table and `plot()` draws it.

        See Also
        --------
        likely.reliability : The same for probabilities of any model.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from likely import LinearDiscriminant
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X[::2], y[::2])
        >>> result = model.reliability(X[1::2], y[1::2], bins=4)
        >>> result.count
        array([71., 71., 71., 71.])
        """
        library = None if is_source(X) else frame_library(X)
        predicted, target, weights = predictions_and_targets(self.predict_proba, X, y, sample_weight)
        found = reliability(target, predicted, self.classes_, label, bins, strategy, weights)
        return replace(found, library=library)
