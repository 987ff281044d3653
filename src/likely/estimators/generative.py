"""Everything that follows from a joint density p(x, y): predictions, explanations, decisions, samples, new priors."""

from __future__ import annotations

import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from likely.data.batches import Batches
from likely.data.frames import rows_and_target, split_target, to_frame, typed
from likely.data.labels import present_labels
from likely.data.parts import read_here
from likely.data.sources import is_source, predicted_with_targets
from likely.data.validation import accuracy
from likely.errors import InputError, listed
from likely.estimators.base import Learner
from likely.estimators.parameters import ParameterTable
from likely.estimators.predictions import JointPredictions, refuse_unseen
from likely.estimators.reliability import ReliabilityMixin
from likely.estimators.result_files import PredictToFile
from likely.export.methods import Exports
from likely.export.scorer import Scorer, joint_scorer
from likely.families.quadratic import Quadratic
from likely.model.boundary import LinearBoundary, QuadraticBoundary, boundary
from likely.model.class_prior import PriorShift, estimate_prior, estimate_shift
from likely.model.explanation import two_codes
from likely.model.imputation import fill_cells
from likely.model.parameters import model_parameters
from likely.model.specification import log_probabilities
from likely.model.summary import ModelSummary, summarise_model
from likely.numerics.random import seeded
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array, ClassPriorLike, LabelsLike, RandomStateLike, TableLike, WeightsLike


class JointDensityEstimator(ParameterTable, JointPredictions, Learner):
    """An estimator with a joint density p(x, y), whether y was observed or not, and all that follows from it."""

    prior_shift_: PriorShift

    def impute(self, X: TableLike, y: LabelsLike | None = None) -> Any:
        """Impute missing values with their expectation given the observed values of the row.

        Numeric columns have the conditional mean, categorical columns the most probable category. Both are averaged
        over the classes, weighted by p(class | observed values), or given the class of the row if `y` is passed.
        Columns that the model does not use stay as they are.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows with missing values, in memory, with the columns of the training rows.
        y : array-like of shape (n_samples,) or str, default=None
            Class labels, some of which may be missing, or the name of the column of X that has them. That column is not
            returned.

        Returns
        -------
        array or frame of shape (n_samples, n_features)
            X without missing values, as the same kind of table.

        See Also
        --------
        Imputer : A transformer for pipelines.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.impute([[5.1, 3.5, 1.4, np.nan]]).round(2)
        array([[5.1 , 3.5 , 1.4 , 0.24]])
        """
        check_is_fitted(self)
        if is_source(X):
            raise InputError("impute needs the rows in memory, and X comes in chunks. Impute one chunk after another.")
        X, y = split_target(*rows_and_target(X, y))
        table = self._read(X)
        codes = None
        if y is not None:
            labels, missing = present_labels(y, self.unlabeled)
            codes = np.full(table.rows, -1)
            where = np.arange(table.rows) if missing is None else np.flatnonzero(~missing)
            if len(labels) != len(where):
                raise InputError(f"X has {table.rows} rows and y has {len(labels)} labels.")
            codes[where] = [self._code_of(label) for label in labels.tolist()]
        refuse_unseen(self, self.model_, table)
        return fill_cells(self.model_, table, codes, X)

    def adapt_prior(self, X: TableLike, max_iter: int = 1000, tol: float = 1e-10) -> Self:
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

    def left_out_proba(self, X: TableLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> Array:
        """Compute leave-one-out class probabilities of the training rows.

        Each row is predicted by the model without it. Nothing is fitted again: the statistics of the row are subtracted
        from those of its class, in closed form where the family has one. Quantities that the options derive from the
        data (default priors, shrinkage intensities, categories) are those of all rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Training rows, or some of them.
        y : array-like of shape (n_samples,) or str
            Their class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights in the fit. None is 1 for all rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.

        See Also
        --------
        cross_validate : k-fold cross-validation.
        select : Ranks models by leave-one-out scores.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> held_out = model.left_out_proba(X, y)
        >>> round(float((held_out.argmax(axis=1) == y).mean()), 3)
        0.98
        """
        self._fitted().check_additive("left_out_proba")
        parts, total = [], None
        for batch in Batches(
            X, y, sample_weight, self._read, type(self).__name__, keep_all_classes=True, unlabeled=self.unlabeled
        ):
            refuse_unseen(self, self.model_, batch.table)
            unknown = [label for label in batch.counts.classes.tolist() if label not in self.classes_.tolist()]
            if unknown:
                raise InputError(f"y has the label {listed(unknown)}, which is not among the classes of the model.")
            parts.append(self.specification_.leave_one_out_posterior(self.model_, self.statistics_, batch))
            these = self.specification_.summarise(batch)
            total = these if total is None else total + these
        self._check_part_of_fit(total)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _check_part_of_fit(self, rows: JointStatistics | None) -> None:
        """Raise where rows with these statistics cannot have been part of the fit.

        Where rows have less weight than in the fit, their statistics cannot be compared.
        """
        fitted = self.statistics_
        given = None if rows is None else rows.counts.align(fitted.counts.classes)
        if (
            rows is None
            or given is None
            or np.any((given.rows == fitted.counts.rows) & (given.weight < 0.999 * fitted.counts.weight))
        ):
            return
        try:
            self.specification_.check_possible(fitted - rows, fitted)
        except InputError as error:
            raise InputError(
                f"Some rows were not part of the fit, or had another label or weight. Pass rows, labels and weights of "
                f"the fit; use predict_proba for others. ({error})"
            ) from None

    def sample(
        self, n_samples: int = 1, label: object = None, random_state: RandomStateLike | None = None
    ) -> tuple[Any, AnyArray]:
        """Draw rows and their classes from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        label : object, default=None
            Class to draw from. None draws the class of each row from the class prior.
        random_state : int or RandomState, default=None
            Seed.

        Returns
        -------
        X : array or frame of shape (n_samples, n_features)
            Rows. A model that was fitted to a frame returns a frame of the same library, with the column types of the
            training rows where these hold the values without rounding: floats have 64 bits. Columns whose family is not
            declared are whole, and not negative, where all training values are: values are rounded, and rows with other
            signs drawn again.
        y : ndarray of shape (n_samples,)
            Class labels.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> model = LinearDiscriminant().fit(*load_iris(return_X_y=True))
        >>> X, y = model.sample(5, label=2, random_state=0)
        >>> X.shape, y
        ((5, 4), array([2, 2, 2, 2, 2]))
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples={n_samples!r} is not a positive whole number.")
        code = None if label is None else self._code_of(label)
        rng = np.random.default_rng(seeded(random_state).randint(2**32, dtype=np.uint64))
        columns, codes = self.model_.sample(int(n_samples), code, rng)
        schema = self._frame
        if schema.backend is None:
            return np.column_stack(columns), self.classes_[codes]
        frame = to_frame(columns, schema.labels or self.model_.names, schema.backend)
        return typed(frame, schema), self.classes_[codes]

    def with_prior(self, prior: ClassPriorLike | None) -> Self:
        """Return an estimator with another class prior and the same class-conditional densities.

        Parameters
        ----------
        prior : {'uniform'}, array-like of shape (n_classes,), dict, Dirichlet or None
            Class prior: equal probabilities, probabilities in the order of `classes_`, a mapping {class: probability},
            or a `Dirichlet` prior, which is updated by the class counts. None estimates it from the class counts.

        Returns
        -------
        estimator
            A new, fitted estimator of the same class.

        See Also
        --------
        adapt_prior : Estimates the class prior from unlabeled rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y).with_prior([0.2, 0.7, 0.1])
        >>> model.predict_proba(X[[70]]).round(3)
        array([[0.   , 0.699, 0.301]])
        """
        fit = self._fitted()
        class_prior = estimate_prior(prior, fit.statistics.counts, fit.specification.estimation)
        other = copy.copy(self)
        other.class_prior = prior
        other._fit = replace(fit, specification=replace(fit.specification, class_prior=prior))
        other._estimates = self.model_.with_log_prior(log_probabilities(class_prior)), class_prior
        return other

    def boundary(self, first: object, second: object) -> LinearBoundary | QuadraticBoundary:
        """Compute the decision boundary between two classes in closed form.

        Parameters
        ----------
        first : object
            A class label.
        second : object
            Another class label.

        Returns
        -------
        LinearBoundary or QuadraticBoundary
            log p(first | x) − log p(second | x) as a function of x, which is zero on the boundary. It can be called
            with rows of shape (n_samples, n_features). A linear one has the coefficients `w` and `w0` of w·x + w0, a
            quadratic one `A`, `b` and `c` of xᵀ·A·x + b·x + c.

        Raises
        ------
        AttributeError
            For families and estimations whose log-odds are not linear or quadratic in x, such as a Student t.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> boundary = LinearDiscriminant().fit(X, y).boundary(1, 2)
        >>> boundary.w.round(2)
        array([  3.32,   3.46,  -7.71, -14.94])
        >>> boundary(X[[70]]).round(2)
        array([-1.1])
        """
        check_is_fitted(self)
        two_codes(self.classes_, first, second)  # a misspelt class is reported first
        return boundary(self._form(), self.classes_, first, second)

    def _form(self) -> Quadratic:
        check_is_fitted(self)
        form = self.model_.quadratic()
        if form is None:
            kinds = sorted({type(plan.family).__name__ for plan in self.specification_.plans})
            raise AttributeError(
                f"{type(self).__name__} with estimation={self.estimation!r} and columns of {', '.join(kinds)} has no "
                "linear or quadratic form in x. Columns of Gaussian, Bernoulli, Poisson, Geometric, NegativeBinomial "
                "and Exponential have one under estimation='mle' and 'map'; a posterior predictive, such as a Student "
                "t, has none."
            )
        return form

    def _parameter_table(self) -> dict[str, list[Any]]:
        return model_parameters(self._fitted(), self.model_, self.class_prior_)

    def summary(self) -> ModelSummary:
        """Summarize the fitted model: classes, families, chosen families and informative columns.

        Returns
        -------
        ModelSummary
            Plain data; ``print(model.summary())`` shows it as text.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> summary = LinearDiscriminant().fit(*load_iris(return_X_y=True)).summary()
        >>> [(each.label, each.rows) for each in summary.classes]
        [(0, 50), (1, 50), (2, 50)]
        """
        check_is_fitted(self)
        name = type(self).__name__
        described = [plan.family.describe() for plan in self.specification_.plans]
        estimation = self.specification_.estimation
        calibration = self.calibration_
        known = calibration is not None and not np.isnan(calibration.log_loss_after)
        summary = summarise_model(
            name,
            estimation,
            self.model_,
            self.statistics_,
            described,
            self.class_prior_,
            self.choices_,
            labeled=isinstance(self, ClassifierMixin),
            log_loss=calibration.log_loss_after if calibration is not None and known else None,
            library=self._frame.backend,
            ignored=self._declared_aside(),
        )
        if calibration is not None and calibration.weight < 0.99 * self.statistics_.counts.weight.sum():
            summary = replace(summary, scored_rows=round(calibration.weight))
        unlabeled, notes = self._fitted().unlabeled, list(summary.notes)
        if unlabeled is not None:
            notes.append(str(unlabeled))
        if calibration is not None or self._calibrates:
            notes.append(str(calibration) if known else "not calibrated")
        return replace(summary, notes=tuple(notes))


class GenerativeModel(Exports, PredictToFile, ReliabilityMixin, ClassifierMixin, JointDensityEstimator):
    """Base of all generative classifiers."""

    def _scorer(self, complete: bool, widest: int | None = None) -> Scorer:
        strict = getattr(self, "unseen", "missing") == "error"
        return joint_scorer(self.model_, strict=strict, complete=complete, widest=widest)

    def score(self, X: TableLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> float:
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
        predicted, y, weights = predicted_with_targets(self.predict, X, y, sample_weight)
        return accuracy(predicted, self.classes_, y, weights, self)
