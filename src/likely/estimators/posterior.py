"""`Posterior`: the base of all classifiers, with everything that follows from class probabilities p(class | x)."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from likely.data.parts import lazily, read_here
from likely.data.sources import Tables, is_source, predicted_with_targets
from likely.data.unseen import TrainingCategories
from likely.data.validation import accuracy
from likely.errors import InputError
from likely.estimators.result_files import Results, write_predictions
from likely.export import methods as export
from likely.model import persistence
from likely.model.class_prior import estimate_shift
from likely.model.decision import Decisions, decide
from likely.model.reliability import Reliability, reliability
from likely.model.rendering import frame_library
from likely.model.result_names import result_names
from likely.numerics.options import name_options
from likely.numerics.special import log_softmax_into, softmax_into
from likely.typing import AnyArray, Array, LabelsLike, LossLike, RowsLike, Vocabulary, WeightsLike

Method = TypeVar("Method", bound=Callable[..., Any])
X_ENTRY = re.compile(r"^X : .*\n(?:    .*\n)+", re.MULTILINE)
EXAMPLES = re.compile(r"\n\nExamples\n-{8}\n.*", re.DOTALL)


def about(rows: str, method: Method) -> Method:
    """The same method, whose docstring has another entry of X, and no examples: these are of tables."""

    @wraps(method)
    def same(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    same.__doc__ = EXAMPLES.sub("\n", X_ENTRY.sub(rows, inspect.cleandoc(method.__doc__ or "")))
    return cast(Method, same)


class Posterior(ClassifierMixin, BaseEstimator, ABC):
    """Base of all classifiers: a subclass reads rows and scores their classes, and everything else follows.

    `rows`, a keyword of the class, is the entry of X in docstrings, where rows are not those of most estimators.
    """

    def __init_subclass__(cls, rows: str = "", **keywords: Any) -> None:
        if rows:
            for name, method in vars(Posterior).items():
                if inspect.isfunction(method) and X_ENTRY.search(inspect.cleandoc(method.__doc__ or "")):
                    setattr(cls, name, vars(cls).get(name, about(rows, method)))
        super().__init_subclass__(**keywords)
        name_options(cls)

    @abstractmethod
    def _read(self, X: Any, start: int = 0) -> Any:
        """New rows, numbered from `start`, as a table: an object with the number of its `rows`."""

    @abstractmethod
    def _over_scores(self, rows: Any, work: Callable[[int, int, Array], None]) -> None:
        """work(start, stop, scores) for all blocks of rows: log p(class | x), (classes, n), up to a common term."""

    def _vocabularies(self) -> Iterable[tuple[int, Vocabulary]]:
        """Categorical columns and categories that are known, where unseen ones are reported."""
        return ()

    def _training_categories(self, column: int) -> TrainingCategories | None:
        """All categories of such a column in training; None if the model does not use it."""
        return None

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """Content of the model file. The keys are the file format."""

    def _of_scores(
        self, X: Any, write: Callable[[Array, Any], object], per_class: bool = True, dtype: Any = np.float64
    ) -> Any:
        """Results that write(scores, out) computes for each block of the rows of X, (rows, classes) or (rows,)."""
        check_is_fitted(self)

        def results(rows: Any) -> Any:
            out = np.empty((rows.rows, len(self.classes_)) if per_class else rows.rows, dtype)

            def work(start: int, stop: int, scores: Array) -> None:
                write(scores, out[start:stop])

            self._over_scores(rows, work)
            return out

        parts = Tables(X, self._read, self).compute(results)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @lazily
    def predict(self, X: RowsLike) -> AnyArray:
        """Predict the most probable class of each row.

        The result of a Dask object is a Dask array, and that of a Spark DataFrame is the DataFrame with the column
        `predicted`. Both are computed later, where the rows are.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels; for a `MixtureModel`, numbers of components.

        See Also
        --------
        predict_proba : Probabilities of all classes.
        decide : Decisions with other losses than the error rate.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.predict(X[[0, 70, 149]])
        array([0, 2, 2])
        """
        codes = self._of_scores(X, lambda scores, out: np.argmax(scores, axis=0, out=out), False, np.intp)
        return np.asarray(self.classes_[codes])

    @lazily
    def predict_proba(self, X: RowsLike) -> Array:
        """Predict class probabilities, p(class | x).

        A row without any observed value has the class prior, and so has, with a warning, a row that has density 0 under
        every class. The result of a Dask object is a Dask array, and that of a Spark DataFrame is the DataFrame with
        the columns `predicted` and `probability_<label>`. Both are computed later, where the rows are.

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
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.predict_proba(X[[0, 70]]).round(3)
        array([[1.   , 0.   , 0.   ],
               [0.   , 0.249, 0.751]])
        """
        return self._of_scores(X, softmax_into)

    @lazily
    def predict_log_proba(self, X: RowsLike) -> Array:
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
        """
        return self._of_scores(X, log_softmax_into)

    def decision_function(self, X: RowsLike) -> Array:
        """Compute log-odds or scores of the classes.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the log-odds of the second class against the first. For more classes, ``X @ coef_.T +
            intercept_`` for models that are linear in x, and log p(class | x) for others.

        See Also
        --------
        predict_proba : Class probabilities.
        """
        check_is_fitted(self)
        if len(self.classes_) != 2:
            return self._decision_scores(read_here(X))

        def write(scores: Array, out: Array) -> None:
            with np.errstate(over="ignore"):
                np.subtract(scores[1], scores[0], out=out)

        return self._of_scores(read_here(X), write, per_class=False)

    def _decision_scores(self, X: Any) -> Array:
        """The decision function for any number of classes but two, (rows, classes)."""
        return self.predict_log_proba(X)

    def score(self, X: RowsLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> float:
        """Compute the accuracy of the predictions.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        y : array-like of shape (n_samples,) or str
            True class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. None is 1 for all rows.

        Returns
        -------
        float
            Proportion of rows whose class is predicted.
        """
        check_is_fitted(self)
        predicted, y, weights = predicted_with_targets(self.predict, X, y, sample_weight)
        return accuracy(predicted, self.classes_, y, weights, self)

    def decide(
        self,
        X: RowsLike,
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
            Loss of each action under each true class: a mapping {class: {action: loss}}, a frame with actions as
            columns and classes as index (or, without an index, with classes in the order of its rows), or an array
            with rows in the order of `classes_`; the actions of an array are the classes if it is square, and column
            numbers otherwise. None is 0 for the true class and 1 for any other.
        reject : float, default=None
            Cost of abstaining. A row is rejected where its least expected loss exceeds it. None never rejects.
            A cost that no expected loss can exceed, such as 1 − 1/n_classes under zero-one loss, is a warning.
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
        predict : The most probable class, which minimizes the error rate.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> decisions = model.decide(X[[0, 70]], reject=0.1, reject_label="ask")
        >>> decisions.action, decisions.best_action
        (array([0, 'ask'], dtype=object), array([0, 2]))

        With other actions than the classes:

        >>> loss = {0: {"keep": 0, "discard": 5}, 1: {"keep": 1, "discard": 0}, 2: {"keep": 1, "discard": 0}}
        >>> model.decide(X[[0, 70]], loss).action
        array(['keep', 'discard'], dtype='<U7')
        """
        return decide(self.predict_proba(read_here(X)), self.classes_, loss, reject, reject_label, frame_library(X))

    def reliability(
        self,
        X: RowsLike,
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
        posterior, target, weights = predicted_with_targets(self.predict_proba, X, y, sample_weight)
        found = reliability(target, posterior, self.classes_, label, bins, strategy, weights)
        return replace(found, library=library)

    def predict_to(
        self,
        X: RowsLike,
        path: persistence.FilePath,
        *,
        keep: str | Iterable[object] = "all",
        log_density: bool = False,
        typicality: bool = False,
        prefix: str = "",
    ) -> int:
        """Predict any number of rows, and write the results to a CSV or Parquet file.

        Rows are read, predicted and written chunk by chunk, in their order. Rows with a finite number beyond
        1e140 have no prediction in the file, and a warning says how many these are. The file appears under its name
        when it is complete; after an error, an interrupt or a crash there is no such file, or the old one.

        Parameters
        ----------
        X : frame, array, chunk source or scan of shape (n_samples, n_features)
            Rows with the columns of the training rows. Other columns, such as identifiers, are not used.
        path : str, bytes or path-like
            Name of the file, which ends with .csv or .parquet. An existing file is replaced.
        keep : 'all' or list of str, default='all'
            Columns of X that are written before the results.
        log_density : bool, default=False
            Whether to write the log-density log p(x), as `log_density`.
        typicality : bool, default=False
            Whether to write the typicality (a p-value), as `typicality`.
        prefix : str, default=''
            Text before the names of all results.

        Returns
        -------
        int
            Number of rows written. The file has the columns of `keep`, `predicted`, `probability_<label>` for each
            class, and `log_density` and `typicality` if requested.

        See Also
        --------
        predict_proba : Class probabilities as an array.
        likely.scan : Rows in files and databases.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pandas as pd
        >>> from likely import NaiveBayes
        >>> X = pd.DataFrame({"mass": [3.1, 3.3, 5.2, 5.0], "species": ["Adelie", "Adelie", "Gentoo", "Gentoo"]})
        >>> model = NaiveBayes().fit(X, "species")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows = model.predict_to(X, Path(folder) / "predicted.csv", keep=["mass"])
        ...     columns = pd.read_csv(Path(folder) / "predicted.csv").columns.tolist()
        >>> rows, columns
        (4, ['mass', 'predicted', 'probability_Adelie', 'probability_Gentoo'])
        """
        check_is_fitted(self)
        wanted = [name for name, asked in {"log_density": log_density, "typicality": typicality}.items() if asked]
        for name in wanted:
            if not hasattr(self, name):
                raise InputError(f"{type(self).__name__} has no {name}. Use {name}=False.")
        names = [*result_names(self.classes_.tolist(), prefix), *(prefix + name for name in wanted)]

        def compute(rows: Any) -> list[Array]:
            return [*self.predict_proba(rows).T, *(getattr(self, name)(rows) for name in wanted)]

        return write_predictions(self, X, path, keep, Results(names, compute, self.classes_))

    def save(self, path: persistence.FilePath) -> None:
        """Save the fitted model to a file.

        The file is a safetensors file with a JSON header. It has options and statistics, but no pickle, and of the
        training rows only those that a model keeps: rows with rare missingness patterns (beyond 64 in a joint block),
        and rows that the view 'neighbours' of an `EvidenceClassifier` compares with.

        Parameters
        ----------
        path : str, bytes or path-like
            Name of the file. An existing file is replaced atomically.

        See Also
        --------
        likely.load : Reads the file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import likely
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     likely.NaiveBayes().fit(X, y).save(Path(folder) / "iris.likely")
        ...     model = likely.load(Path(folder) / "iris.likely")
        >>> model.predict(X[:2])
        array([0, 0])
        """
        check_is_fitted(self)
        persistence.write(path, self._content())

    to_sql, to_onnx, to_javascript = export.to_sql, export.to_onnx, export.to_javascript


def adapt_prior(self: Any, X: RowsLike, max_iter: int = 1000, tol: float = 1e-10) -> Any:
    """Estimate the class prior of unlabeled rows, and return an estimator with that prior.

    The class-conditional densities stay the same (prior shift). The class proportions are estimated by EM, and a
    likelihood-ratio test shows whether they differ from those of the training rows.

    Parameters
    ----------
    X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
        Unlabeled rows with the columns of the training rows. Missing values are allowed.
    max_iter : int, default=1000
        Maximum number of EM iterations.
    tol : float, default=1e-10
        EM stops when the log-likelihood changes by less than `tol`, relative to its size.

    Returns
    -------
    estimator
        A new, fitted estimator of the same class. Its `prior_shift_` has the estimated `prior`, the test
        `statistic` and the `p_value`.

    See Also
    --------
    with_prior : Sets a known class prior.

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker (2002), Adjusting the outputs of a classifier to new a priori
    probabilities, Neural Computation 14.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import LinearDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> adapted = LinearDiscriminant().fit(X, y).adapt_prior(X[40:100])
    >>> adapted.class_prior_.round(2)
    array([0.17, 0.83, 0.  ])
    """
    check_is_fitted(self)
    shift = estimate_shift(self.predict_log_proba(read_here(X)), self.class_prior_, max_iter, tol)
    other = self.with_prior(dict(zip(self.classes_.tolist(), shift.prior.tolist(), strict=True)))
    other.prior_shift_ = shift
    return other
