"""Predictions of an `EvidenceClassifier`: probabilities, decisions and explanations from the weighted posterior."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.data.parts import closed_after, lazily, read_here
from likely.data.sources import Tables, predicted_with_targets
from likely.data.table import Table
from likely.data.validation import accuracy
from likely.errors import check_choice, check_number
from likely.estimators.reliability import ReliabilityMixin
from likely.evidence.explanation import explained
from likely.evidence.generative_core import GenerativeCore
from likely.evidence.model import EvidenceModel
from likely.evidence.rows import EncodedRows
from likely.evidence.similar_rows import similar_rows
from likely.evidence.training import rows_at_a_time
from likely.model.decision import Decisions, decide
from likely.model.explanation import Explanation, concatenated
from likely.model.rendering import frame_library
from likely.numerics.special import log_softmax_into, softmax_into
from likely.numerics.threads import single_threaded_blas
from likely.typing import AnyArray, Array, LabelsLike, LossLike, TableLike, WeightsLike


class EvidencePredictions(GenerativeCore, ReliabilityMixin):
    """Mixin of everything that is computed for new rows."""

    if TYPE_CHECKING:
        model_: EvidenceModel

        @property
        def classes_(self) -> AnyArray: ...
        @property
        def _intercepts(self) -> Array: ...
        def _read(self, X: Any, start: int = 0) -> Table: ...

    def _encoded(self, X: Any, numbers: int = 1) -> Iterator[EncodedRows]:
        """Encoded blocks of the rows of X, small enough for so many numbers for each row, column and class."""
        check_is_fitted(self)
        most = rows_at_a_time(numbers * len(self.model_.encoding.names) * len(self.classes_))
        for table in Tables(X, self._read):
            for start in range(0, table.rows, most):
                part = table.take(np.arange(start, min(start + most, table.rows)))
                yield self.model_.encoding.encode(part)

    @single_threaded_blas()
    def _scores(self, X: Any) -> Array:
        """Intercepts and evidence, (classes, n)."""
        with closed_after(self._encoded(X)) as encoded:
            parts = [self.model_.evidence(rows) for rows in encoded]
        return np.concatenate(parts, axis=1) + self._intercepts[:, None]

    @lazily
    def predict_proba(self, X: TableLike) -> Array:
        """Predict class probabilities, p(class | x), by the weighted evidence of all views.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`. Each row sums to 1.

        See Also
        --------
        predict : The most probable class.
        predict_log_proba : Logarithms, without underflow.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.predict_proba(X[[1, 71]]).round(2)
        array([[1., 0., 0.],
               [0., 1., 0.]])
        """
        scores = self._scores(X)
        out = np.empty(scores.shape[::-1])
        softmax_into(scores, out)
        return out

    @lazily
    def predict_log_proba(self, X: TableLike) -> Array:
        """Predict logarithms of class probabilities, log p(class | x).

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-probabilities, in the order of `classes_`.

        See Also
        --------
        predict_proba : The probabilities.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.predict_log_proba(X[[71]]).argmax(axis=1)
        array([1])
        """
        scores = self._scores(X)
        out = np.empty(scores.shape[::-1])
        log_softmax_into(scores, out)
        return out

    @lazily
    def predict(self, X: TableLike) -> AnyArray:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.

        See Also
        --------
        predict_proba : Probabilities of all classes.
        decide : Decisions with other losses than the error rate.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.predict(X[[1, 71, 121]])
        array([0, 1, 2])
        """
        return np.asarray(self.classes_[self._scores(X).argmax(axis=0)])

    def decision_function(self, X: TableLike) -> Array:
        """Compute log-odds or log-probabilities of the classes.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the log-odds of the second class against the first, for more classes log p(class | x).

        See Also
        --------
        predict_proba : Class probabilities.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2] == 2)
        >>> model.decision_function(X[[1, 71, 121]]) > 0
        array([False, False,  True])
        """
        check_is_fitted(self)
        if len(self.classes_) != 2:
            return self.predict_log_proba(read_here(X))
        scores = self._scores(X)
        return np.asarray(scores[1] - scores[0])

    def score(self, X: TableLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> float:
        """Compute the accuracy of `predict`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        y : array-like of shape (n_samples,) or str
            Class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights. None is 1 for all rows.

        Returns
        -------
        float
            The proportion of rows whose class is predicted.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.score(X[1::2], y[1::2]) > 0.9
        True
        """
        predicted, y, weights = predicted_with_targets(self.predict, X, y, sample_weight)
        return accuracy(predicted, self.classes_, y, weights, self)

    def decide(
        self,
        X: TableLike,
        loss: LossLike | None = None,
        reject: float | None = None,
        reject_label: object = None,
    ) -> Decisions:
        """Choose the action with the least expected loss for each row.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        loss : mapping, frame or array-like of shape (n_classes, n_actions), default=None
            Loss of each action under each true class, such as ``{'ham': {'keep': 0, 'drop': 10}, 'spam': {'keep': 1,
            'drop': 0}}``. None is zero-one loss.
        reject : float, default=None
            Cost of abstaining. A row is rejected where its least expected loss exceeds it. None never rejects.
        reject_label : object, default=None
            The `action` of rejected rows, such as 'ask an expert'.

        Returns
        -------
        Decisions
            Arrays `action`, `expected_loss`, `rejected` and `best_action` of shape (n_samples,).

        See Also
        --------
        predict : The most probable class, which minimizes the error rate.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.decide(X[[1, 133]], reject=0.2).rejected
        array([False,  True])
        """
        return decide(self.predict_proba(read_here(X)), self.classes_, loss, reject, reject_label, frame_library(X))

    @single_threaded_blas()
    def explain(self, X: TableLike, by: str = "column") -> Explanation:
        """Decompose the log-odds of the classes into contributions of columns or views.

        The decomposition is exact. Contributions are relative to their mean over the classes.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        by : {'column', 'view', 'column and view'}, default='column'
            Entries of the explanation. 'column' sums over the views, 'view' sums over the columns, and 'column and
            view' has an entry for each combination.

        Returns
        -------
        Explanation
            `evidence` of shape (n_samples, n_classes, n_entries), `offset` of shape (n_samples, n_classes) and the
            names of the entries in `columns`. The offset plus the evidence summed over the entries is log p(class | x),
            up to a constant common to all classes. The evidence of the view 'neighbours' is not attributed to columns:
            it is the entry '(similar rows)'. The effect of clipping terms to their range in training is the entry
            '(clipped)'.

        See Also
        --------
        similar_rows : The training rows that the entry '(similar rows)' refers to.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> explanation = model.explain(X[[71]], by="view")
        >>> explanation.columns
        ('columns', 'joint Gaussian', '(clipped)')
        >>> explanation.contrast(1, 2).shape
        (1, 3)
        """
        check_choice("by", by, ("column", "view", "column and view"))
        with closed_after(self._encoded(X, 10)) as encoded:
            parts = [explained(self.model_, rows, self._intercepts, by) for rows in encoded]
        return concatenated(parts, frame_library(X))

    @single_threaded_blas()
    def similar_rows(self, X: TableLike, n: int = 5) -> Any:
        """Find the nearest training rows of each row, among those that the view 'neighbours' keeps.

        Distances are Euclidean, between standardised columns and one-hot encoded categories.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        n : int, default=5
            Number of training rows for each row, at most.

        Returns
        -------
        frame
            One row for each row of X and each of its neighbours, the nearest first, with `row`, `similar_row` (the
            position of the training row in the X of the fit), its `class`, and the `distance`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["neighbours"]).fit(X[::2], y[::2])
        >>> model.similar_rows(X[[71]], n=2).round(1)
           row  similar_row  class  distance
        0    0           41      1       0.5
        1    0           39      1       0.5
        """
        check_number("n", n, 1, whole=True)
        return similar_rows(self.model_, self._encoded(X), int(n), frame_library(X))
