"""Classifiers with linear log-odds: predictions, explanations and decisions from p(class | x)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from likely.data.parts import lazily, read_here
from likely.data.row_blocks import evaluate
from likely.data.sources import Tables, predicted_with_targets
from likely.data.table import Table
from likely.data.validation import accuracy
from likely.discriminative.log_odds import LogOdds
from likely.estimators.reliability import ReliabilityMixin
from likely.estimators.result_files import PredictToFile
from likely.families.parameters import Parameter
from likely.model import persistence
from likely.model.decision import Decisions, decide
from likely.model.explanation import Explanation, concatenated
from likely.model.parameters import parameter_table
from likely.model.rendering import frame_library, to_frame
from likely.numerics.shapes import Shape, check
from likely.numerics.special import log_softmax_into, softmax_into
from likely.typing import AnyArray, Array, LabelsLike, LossLike, TableLike, WeightsLike

SAVED = ("classes_", "odds_", "n_iter_", "converged_", "n_features_in_", "feature_names_in_", "_target_names")


class LinearClassifier(PredictToFile, ReliabilityMixin, ClassifierMixin, BaseEstimator):
    """Base of classifiers whose log-odds are linear in the features, fitted as `odds_`."""

    classes_: Annotated[AnyArray, Shape("=classes", "distinct")]
    odds_: Annotated[LogOdds, Shape("classes d")]
    n_features_in_: Annotated[int, Shape(">=0")]
    feature_names_in_: Annotated[npt.NDArray[np.object_], Shape("features", "distinct")]
    _target_names: Annotated[tuple[Any, ...], Shape("_")]

    def _sizes(self) -> dict[str, Any]:
        return {"features": self.n_features_in_}

    @abstractmethod
    def _check_options(self) -> None:
        """Raise for invalid options."""

    @abstractmethod
    def _read(self, X: Any, start: int = 0) -> Table:
        """The features of new rows."""

    def _log_odds(self, rows: Any) -> Array:
        """Log-odds of all classes against the first, (classes, n), up to a common constant."""
        return self.odds_.scores(rows)

    def _evaluate(self, X: Any, write: Callable[[Array, Array], None], width: int | None = None) -> Array:
        """Results that `write` computes from the scores (classes, n) of each row block, (rows, width)."""
        check_is_fitted(self)
        columns = len(self.classes_) if width is None else width
        parts = Tables(X, self._read).compute(lambda table: self._evaluate_table(table, columns, write))
        return np.concatenate(parts)

    def _evaluate_table(self, table: Table, width: int, write: Callable[[Array, Array], None]) -> Array:
        out = np.empty((table.rows, width))
        read = table.numbers(None, sparse=True)

        def work(start: int, stop: int) -> None:
            write(self._log_odds(read(start, stop)), out[start:stop])

        evaluate(table, work, table.width + 3 * len(self.classes_) if not table.is_sparse else 4 * table.stored_per_row)
        return out

    @lazily
    def predict_proba(self, X: TableLike) -> Array:
        """Predict class probabilities, p(class | x).

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows without missing values, with the columns of the training rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`. Each row sums to 1.

        See Also
        --------
        predict : The most probable class.
        predict_log_proba : Logarithms, without underflow.
        """
        return self._evaluate(X, softmax_into)

    @lazily
    def predict_log_proba(self, X: TableLike) -> Array:
        """Predict logarithms of class probabilities, log p(class | x).

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows without missing values, with the columns of the training rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-probabilities, in the order of `classes_`.

        See Also
        --------
        predict_proba : The probabilities.
        """
        return self._evaluate(X, log_softmax_into)

    @lazily
    def predict(self, X: TableLike) -> AnyArray:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows without missing values, with the columns of the training rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.

        See Also
        --------
        predict_proba : Probabilities of all classes.
        decide : Decisions with other losses than the error rate.
        """

        def write(scores: Array, out: Array) -> None:
            out[:, 0] = scores.argmax(axis=0)

        codes = self._evaluate(X, write, 1)[:, 0].astype(np.intp)
        return np.asarray(self.classes_[codes])

    def score(self, X: TableLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> float:
        """Compute the accuracy of the predictions.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows without missing values, with the columns of the training rows.
        y : array-like of shape (n_samples,) or str
            True class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. None is 1 for all rows.

        Returns
        -------
        float
            Proportion of rows whose class is predicted.
        """
        predicted, y, weights = predicted_with_targets(self.predict, X, y, sample_weight)
        return accuracy(predicted, self.classes_, y, weights, self)

    def decision_function(self, X: TableLike) -> Array:
        """Compute log-odds of the classes.

        They are ``X @ coef_.T + intercept_``, except where coefficients are integrated over their posterior
        (estimation='bayes').

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows without missing values, with the columns of the training rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the log-odds of the second class against the first. For more, scores of all classes, whose
            differences are log-odds.

        See Also
        --------
        predict_proba : Their softmax.
        """
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return self._evaluate(X, lambda scores, out: np.copyto(out[:, 0], scores[1] - scores[0]), 1)[:, 0]

        def write(scores: Array, out: Array) -> None:
            out[...] = (scores - self._centre(scores)).T

        return self._evaluate(X, write)

    def _centre(self, values: Array) -> Array:
        """The constant that is subtracted from all classes: only differences between classes are determined."""
        return np.asarray(values.mean(axis=0))

    @property
    def coef_(self) -> Array:
        """Coefficients of the features.

        Returns
        -------
        ndarray of shape (n_classes, n_features) or (1, n_features)
            Log-odds per unit of each feature. For two classes, those of the second class against the first.
        """
        return self._coefficients()[0]

    @property
    def intercept_(self) -> Array:
        """Intercepts of the log-odds.

        Returns
        -------
        ndarray of shape (n_classes,) or (1,)
            Log-odds where all features are 0. For two classes, those of the second class against the first.
        """
        return self._coefficients()[1]

    def _coefficients(self) -> tuple[Array, Array]:
        check_is_fitted(self)
        linear, constant = self.odds_.in_user_units()
        if len(linear) == 2:
            return linear[1:], constant[1:]
        return linear - self._centre(linear), constant - self._centre(constant)

    @abstractmethod
    def _coefficient_names(self) -> Sequence[str]:
        """The names of the features that coefficients belong to."""

    def parameters(self) -> Any:
        """Return the coefficients and their standard errors as a tidy table.

        Returns
        -------
        frame
            One row for each class but the reference class and each feature, with `class`, `block` ('log-odds against'
            the reference class, which is the first class unless `reference` names another), `column` (the feature, or
            '(intercept)'), `parameter`, `value` and `standard_error`. Standard errors are from the Hessian; with a
            penalty they are posterior standard deviations, and NaN where they were not computed. The frame is of
            pandas, or of pyarrow if pandas is not installed.

        See Also
        --------
        coef_ : Coefficients in the order of scikit-learn.
        """
        check_is_fitted(self)
        labels = self.classes_.tolist()
        reference = getattr(self, "reference", None)
        place = 0 if reference is None else labels.index(reference)
        linear, constant = self.odds_.in_user_units()
        values = np.column_stack([linear, constant])
        values -= values[place]
        errors = self.odds_.standard_errors(place)
        errors = np.full_like(values, np.nan) if errors is None else errors
        others = np.array([k for k in range(len(labels)) if k != place], dtype=np.intp)
        names = [*self._coefficient_names(), "(intercept)"]
        found = [Parameter(name, "coefficient", values[others, j], errors[others, j]) for j, name in enumerate(names)]
        block = f"log-odds against {labels[place]!s}"
        return to_frame(parameter_table([(block, each) for each in found], self.classes_[others]), None)

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
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows without missing values, with the columns of the training rows.
        loss : mapping, frame or array-like of shape (n_classes, n_actions), default=None
            Loss of each action under each true class, such as ``{'ham': {'keep': 0, 'drop': 10}, 'spam': {'keep': 1,
            'drop': 0}}``. None is 0 for the true class and 1 for any other.
        reject : float, default=None
            Cost of abstaining. A row is rejected where its least expected loss exceeds it. None never rejects.
        reject_label : object, default=None
            The `action` of rejected rows, such as 'ask an expert'.

        Returns
        -------
        Decisions
            Arrays `action`, `expected_loss`, `rejected` and `best_action` of shape (n_samples,). The `action` of a
            rejected row is `reject_label` and its `expected_loss` is `reject`; `best_action` is the action with the
            least expected loss. `to_frame()` returns them as a table.

        See Also
        --------
        predict : The most probable class.
        """
        return decide(self.predict_proba(read_here(X)), self.classes_, loss, reject, reject_label, frame_library(X))

    def explain(self, X: TableLike) -> Explanation:
        """Compute the contribution of each feature to the log-odds of each class.

        Contributions are relative to the mean of the training rows and to the mean of the classes.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows without missing values, with the columns of the training rows.

        Returns
        -------
        Explanation
            `evidence` of shape (n_samples, n_classes, n_features), `offset` of shape (n_samples, n_classes) and the
            names of the `columns`. The offset plus the evidence summed over the columns is log p(class | x), up to a
            constant common to all classes.
        """
        check_is_fitted(self)
        return concatenated(Tables(X, self._read).compute(self._explained), frame_library(X))

    def _explained(self, table: Table) -> Explanation:
        rows = table.numbers(None, sparse=True)(0, table.rows)
        self.odds_.scores(rows)  # raises for values that are not finite
        terms, offset = self.odds_.explain(rows)
        terms = terms - terms.mean(axis=1, keepdims=True)
        offsets = np.tile(offset - offset.mean(), (table.rows, 1))
        return Explanation(terms, offsets, tuple(table.names), self.classes_)

    def save(self, path: persistence.FilePath) -> None:
        """Save the fitted model to a file.

        The file is a safetensors file with a JSON header. It contains no pickle and no training rows.

        Parameters
        ----------
        path : str, bytes or path-like
            Name of the file. An existing file is replaced atomically.

        See Also
        --------
        likely.load : Reads the file.
        """
        check_is_fitted(self)
        persistence.write(path, self._content())

    def _content(self) -> dict[str, Any]:
        """Content of the model file."""
        content = {"version": version("likely"), "estimator": self}
        return content | {name: getattr(self, name) for name in SAVED if hasattr(self, name)}

    def _restore(self, content: dict[str, Any]) -> Self:
        """Set the fitted attributes from the content of a model file."""
        self._check_options()
        for name in SAVED:
            if name in content:
                setattr(self, name, content[name])
        check(self)
        return self
