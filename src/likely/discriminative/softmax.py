"""Softmax regression (logistic regression for two classes): the discriminative counterpart of linear discriminants.

It models p(class | x) only, by coefficients that maximise its penalised likelihood, and has no density of the features.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from numbers import Real
from typing import Annotated, Any, Self

import numpy as np
import scipy.special
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from likely.choice.column_reading import choose_reading, read_alike
from likely.choice.column_record import SET_ASIDE, ColumnDecision, ColumnRecord
from likely.data.batches import Batches
from likely.data.columns import in_order, read_rows, remember_columns
from likely.data.frames import input_names, target_names, whole_frame
from likely.data.sources import is_source, targets_apart
from likely.data.table import FITTED_COMPLETE, Table
from likely.data.validation import read_table
from likely.discriminative.design import MAX_FACTORED, Design, DesignProfile
from likely.discriminative.linear_classifier import LinearClassifier
from likely.discriminative.log_odds import log_odds_of
from likely.discriminative.newton import NEWTON_COST, Minimum, Problem, affordable, half_bound, inverse, minimise
from likely.discriminative.separation import check_separation
from likely.discriminative.softmax_summary import Coefficient, Fitted, SoftmaxSummary, coefficient
from likely.errors import (
    DependentColumnsWarning,
    ExportError,
    InputError,
    NotConvergedWarning,
    NotEstimableError,
    check_choice,
    check_number,
    listed,
    warn,
)
from likely.export.scorer import Input, Scorer, scorer_of
from likely.model.persistence import register
from likely.numerics.expressions import finite, missing, number
from likely.numerics.shapes import Shape
from likely.typing import AnyArray, Array, TableLike, TargetsLike, TransformerLike, TypesLike, WeightsLike

LARGEST_PENALTY = 1e300  # of a coefficient in local units
LEAST_PENALTY = 1e-13  # relative to the sum of squares of a column: smaller ones are lost in rounding errors
ENCODE_FRAME = (
    "Encode the column, for example with basis=make_column_transformer((OneHotEncoder(), [...]), "
    "remainder='passthrough'), use HybridClassifier, which takes categories, or drop the column."
)
ENCODE_SOURCE = (
    "Encode the column in the query of scan(sql=...), use HybridClassifier, which takes categories, or drop it."
)


@register
class SoftmaxRegression(LinearClassifier):
    """Softmax regression with an L2 penalty; logistic regression for two classes.

    The coefficients minimise the negative log-likelihood, summed over the rows, plus λ/2·‖w‖², by Newton's method on
    small problems and preconditioned L-BFGS on large ones. With estimation='bayes' predictions integrate over the
    posterior of the coefficients, by Laplace's approximation.

    Parameters
    ----------
    penalty : float, default=1.0
        λ, the precision of a Gaussian prior of the coefficients; scikit-learn's C is 1/λ. 0 is maximum likelihood. The
        intercept is not penalised. A positive penalty is at least 1e-13 times the sum of squares of the column, because
        rounding errors hide smaller ones.
    basis : transformer, default=None
        A transformer of scikit-learn that computes features from the columns, such as polynomials, splines or one-hot
        indicators. None uses the columns of X.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    reference : object, default=None
        A class whose coefficients are 0, so that only those of the other classes are penalised. None penalises all
        classes equally, and the coefficients sum to 0 over the classes (for two classes, the coefficients of the second
        class are penalised).
    estimation : {'map', 'bayes'}, default='map'
        'map' predicts with the estimated coefficients, 'bayes' integrates over their posterior.
    inference : bool, default=None
        Whether to compute standard errors, which takes another pass over the rows. None computes them where that is
        fast.
    tol : float, default=1e-12
        The optimization stops when a step is predicted to decrease the objective by less than `tol` per row.
    max_iter : int, default=1000
        Maximum number of iterations.
    types : mapping of column to {'number', 'text', 'category', 'date'}, default=None
        How columns are read, where their values should not decide: as numbers, text as it stands, categories, or dates.
    normalize : bool, default=False
        Whether categories that differ in blanks at their ends or in case only are the same.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients; for two classes those of the second class against the first.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts.
    basis_ : transformer or None
        The fitted `basis`.
    odds_ : LogOdds
        Log-odds as a function of the features, with the covariance matrix of the coefficients if it was computed.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the optimization converged.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X is a frame whose column names are text.

    See Also
    --------
    LinearDiscriminant : The generative model with the same form of log-odds.
    HybridClassifier : Interpolates between the two.

    References
    ----------
    D. Böhning (1992), Multinomial logistic regression algorithm, Annals of the Institute of Statistical Mathematics 44.
    A. Albert and J. A. Anderson (1984), On the existence of maximum likelihood estimates in logistic regression models,
    Biometrika 71.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import SoftmaxRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SoftmaxRegression(penalty=0.1).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> model.predict_proba(X[[70]]).round(2)
    array([[0.  , 0.44, 0.56]])
    """

    fit_: Annotated[Fitted, Shape()]

    _saved = (*LinearClassifier._saved, "fit_")

    def __init__(
        self,
        penalty: float = 1.0,
        basis: TransformerLike | None = None,
        fit_intercept: bool = True,
        reference: object = None,
        estimation: str = "map",
        inference: bool | None = None,
        tol: float = 1e-12,
        max_iter: int = 1000,
        types: TypesLike | None = None,
        normalize: bool = False,
    ) -> None:
        self.penalty = penalty
        self.basis = basis
        self.fit_intercept = fit_intercept
        self.reference = reference
        self.estimation = estimation
        self.inference = inference
        self.tol = tol
        self.max_iter = max_iter
        self.types = types
        self.normalize = normalize

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.basis is None
        return tags

    def _check_options(self) -> None:
        if self.estimation == "mle":
            raise InputError("estimation='mle' is not an option here. Set penalty=0 for maximum likelihood.")
        check_choice("estimation", self.estimation, ("map", "bayes"))
        check_number("max_iter", self.max_iter, 1, whole=True)
        for name in ("penalty", "tol"):
            check_number(name, getattr(self, name), 0.0)
        for name, known in (("fit_intercept", (True, False)), ("inference", (True, False, None))):
            if not any(getattr(self, name) is word for word in known):
                raise InputError(f"{name}={getattr(self, name)!r} must be one of {listed(known)}.")
        made = not isinstance(self.basis, type) and hasattr(self.basis, "fit") and hasattr(self.basis, "transform")
        if self.basis is not None and not made:
            raise InputError(f"basis={self.basis!r} is not a transformer: it needs the methods fit and transform.")

    def fit(self, X: TableLike, y: TargetsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Training rows, without missing values. An object with a method `chunks` yields the rows of a table that does
            not fit in memory.
        y : array-like of shape (n_samples,) or (n_samples, n_classes), or str
            Class labels, class proportions that sum to 1 in each row (soft targets), or the name of the column of X
            that has the labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. None is 1 for all rows.

        Returns
        -------
        SoftmaxRegression
            The fitted estimator.

        Raises
        ------
        SeparationError
            With penalty=0, where the classes are perfectly separated, so that no maximum-likelihood estimate exists.
        """
        self._check_options()
        targets, inputs = target_names(y, sample_weight), input_names(X)
        if not is_source(X):
            X, y, sample_weight = targets_apart(X, y, sample_weight)
        phi, basis = self._features(X, y)
        profile = DesignProfile.of(phi, y, lambda labels: self._training_rows(phi, labels, sample_weight, basis))
        precision = class_precision(profile.classes, self.reference)
        design, sums = profile.design(bool(self.fit_intercept), only_independent=not self.penalty)
        if not design.size:
            raise InputError("All columns are constant and fit_intercept=False: there are no coefficients to fit.")
        problem = Problem(design, sums, precision, self._local_penalty(design))
        found = minimise(problem, profile.total, self.tol, self.max_iter)
        covariance = self._covariance(problem, found, profile)
        first = profile.first
        self._record = None if basis is not None else ColumnRecord.of(first, inputs)
        self._frame = remember_columns(self, first.X if is_source(X) else X, targets, first.table.reading)
        self.classes_, self.basis_ = profile.classes, basis
        self.odds_ = log_odds_of(design, len(profile.names), found.B, covariance)
        self.fit_ = _goodness_of_fit(problem, found, profile, covariance)
        self.n_iter_, self.converged_ = found.steps, found.converged
        self._warn(found, design, profile.names)
        return self

    def _training_rows(self, phi: Any, labels: Any, sample_weight: Any, basis: Any) -> Batches:
        """Features, labels and weights; without a basis the rows determine how their columns are read."""
        check = partial(_complete, remedy=ENCODE_SOURCE if is_source(phi) else ENCODE_FRAME)

        def batches(read: Callable[[Any, int], Table]) -> Batches:
            return Batches(phi, labels, sample_weight, read, type(self).__name__)

        if basis is not None:
            return batches(lambda rows, start: check(_table(rows, basis, start)))
        return read_alike(batches, read_table, partial(choose_reading, types=self.types, periodic=False), check)

    def _features(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Features, and the fitted transformer that computed them, if any."""
        if self.basis is None:
            return X, None
        if is_source(X):
            raise InputError(
                "X comes in chunks, but basis needs all rows at once. Compute the features in the query, with "
                "scan(sql=...), use HybridClassifier, which encodes categories, or read the rows into a frame."
            )
        basis = clone(self.basis)
        return basis.fit_transform(X, y), basis

    def _local_penalty(self, design: Design) -> Array:
        """The penalty of each coefficient in local coordinates; 0 for the intercept.

        The maximum of a likelihood that is flat to all digits would be determined by rounding errors.
        """
        penalty = np.zeros(design.size)
        if self.penalty:
            with np.errstate(over="ignore"):
                local = self.penalty / design.coordinates.unit / design.coordinates.unit
                local = np.maximum(local, LEAST_PENALTY * design.squares()[: design.width])
            penalty[: design.width] = np.minimum(local, LARGEST_PENALTY)
        return penalty

    def _covariance(self, problem: Problem, found: Minimum, profile: DesignProfile) -> Array | None:
        """The inverse Hessian at the minimum, where standard errors are computed and it exists.

        Raises where classes are perfectly separated, which the Hessian shows.
        """
        required = self.estimation == "bayes" or bool(self.inference)
        fast = affordable(problem, NEWTON_COST)
        wanted = required or (fast and self.inference is None)
        if problem.parameters > MAX_FACTORED:
            if wanted:
                raise InputError(
                    f"The model has {problem.parameters} coefficients, and standard errors are computed for at most "
                    f"{MAX_FACTORED}. Set inference=False and estimation='map'."
                )
            return None
        if self.penalty and not wanted:
            return None
        hessian = problem.hessian(found.B)
        if not self.penalty:
            check_separation(problem, found, hessian, profile.names, profile.classes.tolist(), profile.total)
        try:
            return inverse(hessian) if wanted else None
        except NotEstimableError:
            if required:
                raise
            return None

    @staticmethod
    def _warn(found: Minimum, design: Design, names: list[str]) -> None:
        """Warn of an optimization that did not converge, and of dependent columns."""
        if not found.converged:
            warn(
                f"Softmax regression did not converge in {found.steps} iterations. Increase max_iter, tol or penalty.",
                NotConvergedWarning,
            )
        if design.columns is not None:
            kept = set(design.columns.tolist())
            dropped = [name for j, name in enumerate(names) if j not in kept]
            many = len(dropped) > 1
            warn(
                f"{'Columns' if many else 'Column'} {listed(dropped)} {'are' if many else 'is'} constant or a linear "
                "combination of earlier columns. Without a penalty such columns have coefficients of 0.",
                DependentColumnsWarning,
            )

    def _read(self, X: Any, start: int = 0) -> Table:
        if self.basis_ is None:
            return _complete(read_rows(self, X, start), FITTED_COMPLETE)
        features = _table(self.basis_.transform(in_order(self, whole_frame(X))), self.basis_, start)
        return _complete(features, FITTED_COMPLETE)

    def _log_odds(self, rows: Any) -> Array:
        return self.odds_.predictive(rows) if self.estimation == "bayes" else self.odds_.scores(rows)

    def _scorer(self, longest: int | None = None, widest: int | None = None) -> Scorer:
        if self.basis_ is not None:
            raise ExportError(
                "SoftmaxRegression with a basis cannot be exported: the transformer has no expression. Fit without it."
            )
        names = self._coefficient_names()
        cells = [number(j) for j in range(len(names))]
        averaged = self.estimation == "bayes"
        odds = self.odds_.predictive_expressions if averaged else self.odds_.expressions
        read = self.odds_.informative(averaged).tolist()
        invalid = [missing(j) | ~finite(cells[j]) for j in range(len(names)) if read[j]]
        offset = (self.odds_.coordinates.origin != 0.0).tolist()
        inputs = [Input(name, is_offset=each) for name, each in zip(names, offset, strict=True)]
        even = np.full(len(self.classes_), -np.log(len(self.classes_)))  # a regression has no class prior
        return scorer_of(inputs, self.classes_.tolist(), odds(cells), invalid, even)

    def _centre(self, values: Array) -> Array:
        if self.reference is None:
            return super()._centre(values)
        return np.asarray(values[self._reference])

    def summary(self, level: float = 0.95) -> SoftmaxSummary:
        """Summarize the fit: coefficients with standard errors, deviance and AIC.

        Coefficients are log-odds against the reference class, or against the first class if `reference` is None.
        Standard errors are from the Hessian. With a penalty they are posterior standard deviations, and the number of
        parameters is the effective one.

        Parameters
        ----------
        level : float, default=0.95
            Level of the confidence intervals.

        Returns
        -------
        SoftmaxSummary
            Plain data; ``print(model.summary())`` shows a table.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import SoftmaxRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> summary = SoftmaxRegression(penalty=0.0).fit(X[50:], y[50:]).summary()
        >>> round(summary.deviance, 3), round(summary.null_deviance, 3)
        (11.899, 138.629)
        """
        check_is_fitted(self)
        if not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
            raise InputError(f"level={level!r} must lie between 0 and 1.")
        labels = self.classes_.tolist()
        return SoftmaxSummary(
            type(self).__name__,
            tuple(labels),
            labels[self._reference],
            float(self.penalty),
            *astuple(self.fit_),
            level,
            self.n_iter_,
            self.converged_,
            tuple(self._coefficient_table(level)),
        )

    def _coefficient_table(self, level: float) -> list[Coefficient]:
        """Coefficients of all classes against the reference class, the intercept first."""
        names, labels = [*self._coefficient_names(), "(intercept)"], self.classes_.tolist()
        values, errors = self._against_reference()
        order = [*range(len(names) - 1)]
        if self.fit_intercept:
            order.insert(0, len(names) - 1)
        quantile = float(scipy.special.ndtri(0.5 + 0.5 * level))
        found = []
        for k, j in itertools.product(np.delete(np.arange(len(labels)), self._reference).tolist(), order):
            error = None if errors is None else float(errors[k, j])
            found.append(coefficient(labels[k], names[j], float(values[k, j]), error, quantile))
        return found

    def _column_decisions(self) -> dict[str, ColumnDecision]:
        coefficients, names = self.odds_.linear, self._coefficient_names()
        return {
            name: ColumnDecision("coefficient" if used else SET_ASIDE)
            for name, used in zip(names, np.any(coefficients, axis=0).tolist(), strict=True)
        }

    def _coefficient_names(self) -> list[str]:
        if self.basis_ is not None and hasattr(self.basis_, "get_feature_names_out"):
            return [str(name) for name in self.basis_.get_feature_names_out()]
        if self.basis_ is None and self._reading is not None:
            return [name for column in self._reading.columns for name in column.names]
        return [f"x{j}" for j in range(self.odds_.linear.shape[1])]

    def _content(self) -> dict[str, Any]:
        if self.basis_ is not None:
            raise InputError(
                f"basis={self.basis!r} is a transformer, which a model file cannot hold. Transform the rows first, and "
                "save a model of the features."
            )
        return super()._content()

    def _restore(self, content: dict[str, Any]) -> Self:
        self.basis_ = None
        return super()._restore(content)

    def _sizes(self) -> dict[str, Any]:
        width = self.n_features_in_ if self._reading is None else len(self._reading.inputs)
        return {"d": width, "features": self.n_features_in_}


def class_precision(classes: AnyArray, reference: Any) -> Array:
    """C, (classes − 1, classes − 1): the penalty Σ_k ‖w_k‖² in terms of differences from the first class."""
    known, few = classes.tolist(), len(classes) - 1
    if reference is None and few > 1:
        return 2.0 * half_bound(few)  # among equivalent coefficients, those that sum to 0 have the least squares
    if reference is not None and reference not in known:
        raise InputError(f"reference={reference!r} is not among the classes {listed(known)}.")
    free = np.delete(np.eye(few + 1), 0 if reference is None else known.index(reference), axis=1)
    differences = free[1:] - free[:1]
    return np.asarray(np.linalg.inv(differences @ differences.T))


def _table(rows: Any, basis: Any, start: int) -> Table:
    """Features as a table, named by the transformer."""
    table = read_table(rows, start)
    if hasattr(basis, "get_feature_names_out"):
        names = [str(name) for name in basis.get_feature_names_out()]
        table.names = names if len(names) == table.width else table.names
    return table


def _complete(table: Table, remedy: str) -> Table:
    """The table, which has no column of text."""
    for j, kind in enumerate(table.kinds):
        if kind == "category" and table.has_categories(j):
            raise table.not_numbers(j, table.column(j).first(), remedy)
    return table


def _goodness_of_fit(problem: Problem, found: Minimum, profile: DesignProfile, covariance: Array | None) -> Fitted:
    """Log-likelihood, null log-likelihood, and number of parameters: p − tr(H⁻¹·(C ⊗ Λ)) with a penalty."""
    null = float(scipy.special.xlogy(profile.weight, profile.weight / profile.total).sum())
    if not problem.design.intercept:
        null = -profile.total * float(np.log(len(profile.classes)))
    parameters: float | None = float(problem.parameters)
    if problem.penalty.any():
        parameters = None
        if covariance is not None:
            prior = problem.precision[:, None, :, None] * np.diag(problem.penalty)[None, :, None, :]
            parameters = problem.parameters - float((covariance * prior).sum())
    penalty = 0.5 * float((found.B * (problem.precision @ (found.B * problem.penalty))).sum())
    return Fitted(profile.rows, profile.total, parameters, penalty - found.value, null)
