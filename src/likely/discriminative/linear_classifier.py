"""Classifiers with linear log-odds: predictions, explanations and decisions from p(class | x)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from likely.choice.column_record import ColumnDecision, ColumnRecord
from likely.data.reading import Reading
from likely.data.row_blocks import evaluate
from likely.data.sources import Tables
from likely.data.table import Table
from likely.discriminative.log_odds import LogOdds
from likely.errors import ModelFileError
from likely.estimators.column_table import column_table
from likely.estimators.posterior import Posterior
from likely.families.parameters import Parameter
from likely.model.explanation import Explanation, concatenated
from likely.model.parameters import parameter_table
from likely.model.rendering import frame_library, short_names, to_frame
from likely.numerics.shapes import Shape, check
from likely.typing import AnyArray, Array, TableLike

ROWS = """X : array-like, sparse matrix or frame of shape (n_samples, n_features)
    Rows without missing values, with the columns of the training rows.
"""


class LinearClassifier(Posterior, rows=ROWS):
    """Base of classifiers whose log-odds are linear in the features, fitted as `odds_`."""

    classes_: Annotated[AnyArray, Shape("=classes", "distinct")]
    odds_: Annotated[LogOdds, Shape("classes d")]
    n_features_in_: Annotated[int, Shape(">=0")]
    feature_names_in_: Annotated[npt.NDArray[np.object_], Shape("features", "distinct")]
    _target_names: Annotated[tuple[Any, ...], Shape("_")]
    _reading: Annotated[Reading | None, Shape()] = None
    _record: Annotated[ColumnRecord | None, Shape()] = None

    _saved: tuple[str, ...] = (
        *("classes_", "odds_", "n_iter_", "converged_"),
        *("n_features_in_", "_target_names", "_reading", "_record"),
    )

    def _sizes(self) -> dict[str, Any]:
        return {"features": self.n_features_in_}

    def _valid(self) -> bool:
        return self._reading is None or len(self._reading.columns) == self.n_features_in_

    @abstractmethod
    def _check_options(self) -> None:
        """Raise for invalid options."""

    def _log_odds(self, rows: Any) -> Array:
        """Log-odds of all classes against the first, (classes, n), up to a common constant."""
        return self.odds_.scores(rows)

    def _over_scores(self, rows: Table, work: Callable[[int, int, Array], None]) -> None:
        read = rows.numbers(None, sparse=True)
        width = 4 * rows.stored_per_row if rows.is_sparse else rows.width + 3 * len(self.classes_)
        evaluate(rows, lambda start, stop: work(start, stop, self._log_odds(read(start, stop))), width)

    def _decision_scores(self, X: Any) -> Array:
        def write(scores: Array, out: Array) -> None:
            out[...] = (scores - self._centre(scores)).T

        return self._of_scores(X, write)

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

    @property
    def _reference(self) -> int:
        """The class that coefficients are relative to in tables: the first one, unless `reference` names another."""
        reference = getattr(self, "reference", None)
        return 0 if reference is None else self.classes_.tolist().index(reference)

    def _against_reference(self) -> tuple[Array, Array | None]:
        """Coefficients and intercepts relative to those of the reference class, (classes, d + 1), and their errors."""
        values = np.column_stack(self.odds_.in_user_units())
        return values - values[self._reference], self.odds_.standard_errors(self._reference)

    @property
    def columns_(self) -> Any:
        """What each column of X became: a frame with its type, missing and distinct values, and the decision."""
        check_is_fitted(self)
        if self._record is None:
            raise AttributeError("columns_ describes the columns of X, and this model has those of its basis.")
        return column_table(self._record, self._reading, self._column_decisions(), None)

    @abstractmethod
    def _column_decisions(self) -> dict[str, ColumnDecision]:
        """What the columns that are modelled became."""

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
        values, errors = self._against_reference()
        errors = np.full_like(values, np.nan) if errors is None else errors
        others = np.delete(np.arange(len(self.classes_)), self._reference)
        names = [*self._coefficient_names(), "(intercept)"]
        found = [Parameter(name, "coefficient", values[others, j], errors[others, j]) for j, name in enumerate(names)]
        block = f"log-odds against {short_names([self.classes_.tolist()[self._reference]])[0]}"
        return to_frame(parameter_table([(block, each) for each in found], self.classes_[others]), None)

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
        explanation = concatenated(Tables(X, self._read, self).compute(self._explained), frame_library(X))
        return explanation if self._reading is None else explanation.merged(self._reading.input_names)

    def _explained(self, table: Table) -> Explanation:
        rows = table.numbers(None, sparse=True)(0, table.rows)
        self.odds_.scores(rows)  # raises for values that are not finite
        terms, offset = self.odds_.explain(rows)
        terms = terms - terms.mean(axis=1, keepdims=True)
        offsets = np.tile(offset - offset.mean(), (table.rows, 1))
        return Explanation(terms, offsets, tuple(table.names), self.classes_)

    def _content(self) -> dict[str, Any]:
        """Content of the model file."""
        content = {"version": version("likely"), "estimator": self}
        names = ("feature_names_in_",) if hasattr(self, "feature_names_in_") else ()
        return content | {name: getattr(self, name) for name in (*self._saved, *names)}

    def _restore(self, content: dict[str, Any]) -> Self:
        """Set the fitted attributes from the content of a model file."""
        self._check_options()
        names = ("feature_names_in_",) if "feature_names_in_" in content else ()
        for name in (*self._saved, *names):
            setattr(self, name, content[name])
        check(self)
        if getattr(self, "estimation", None) == "bayes" and self.odds_.covariance is None:
            raise ModelFileError("the covariance of the coefficients is missing, which estimation='bayes' needs")
        reference = getattr(self, "reference", None)
        if reference is not None and reference not in self.classes_.tolist():
            raise ModelFileError(f"reference={reference!r} is not a class of the model")
        return self
