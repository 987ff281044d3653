"""The base of all generative estimators: a fit reads rows, summarises them, and estimates a model from the summary.

A learner keeps the statistics of its rows, and not the rows. The model is estimated from the statistics when it is
first needed.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from likely.choice.agreement import agreed
from likely.choice.column_reading import choose_reading, read_alike
from likely.choice.column_record import ColumnDecision, ColumnRecord
from likely.choice.default_families import Declared
from likely.choice.fitting import FitOptions, fit_by_sums, fit_model, fit_rows, specify
from likely.data.batches import Batch, Batches
from likely.data.columns import read_rows, remember_columns, remember_schema
from likely.data.frames import FrameSchema
from likely.data.labels import encode_labels, label_values
from likely.data.reading import Reading, TrainingReader
from likely.data.table import DECLARE, ENCODE, FITTED, Table
from likely.data.target_checks import warn_target
from likely.data.validation import read_table
from likely.errors import InputError, InputTypeError, LikelyError, NoEvidenceError, check_number
from likely.estimators.column_table import column_table, family_decisions
from likely.estimators.model_options import check_alike, check_ledger
from likely.estimators.posterior import Posterior
from likely.families.estimation import Estimation
from likely.model import persistence
from likely.model.calibration import Calibration
from likely.model.choices import Choice, WeightScore
from likely.model.em import EMHistory, EMOptions
from likely.model.fit import Fit, check_expected
from likely.model.joint import JointModel
from likely.model.plans import columns_set_aside, inputs_set_aside
from likely.model.rendering import to_frame
from likely.model.specification import Specification
from likely.numerics.options import name_options
from likely.numerics.shapes import check
from likely.numerics.threads import one_at_a_time
from likely.statistics.counts import Counts
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array, LabelsLike, TableLike, TargetsLike, WeightsLike


class Learner(BaseEstimator):
    """Base of all generative estimators: fitting, reading rows, and what follows from the statistics."""

    class_prior: Any
    estimation: str
    unlabeled: Any = None
    unlabeled_weight: float | str = "auto"
    ledger: bool = False
    max_iter: int = 200
    tol: float = 1e-6
    _target_shape: tuple[int, ...] = (0,)  # of the targets of a row, where y are numbers; () for a single one
    _frame: FrameSchema
    _target_names: tuple[Any, ...] = ()  # columns that y was given by, which predictions ignore
    _column_names: tuple[str, ...] | None
    _reading: Reading | None = None
    _record: ColumnRecord | None = None
    _periodic_dates: bool = False  # whether periodic parts of dates may have a family of their own
    _fit: Fit
    _estimates: tuple[JointModel, Array] | None = None
    _held_out: tuple[float, int] | None = None  # leave-one-out log-loss of a fit, and the number of its rows
    _derived: ClassVar[tuple[str, ...]] = ("_estimates",)  # attributes that follow from the others, when first needed

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        name_options(cls)

    @abstractmethod
    def _declared(self, names: Sequence[str]) -> Declared:
        """The blocks that the options declare for columns of these names, and the kind of model of the others."""

    @property
    def _plans_are_declared(self) -> bool:
        """Whether the options alone determine the plans, whatever the rows are."""
        return False

    @property
    def _calibrates(self) -> bool:
        """Whether `fit` calibrates class probabilities."""
        return False

    def _check_options(self) -> None:
        """Raise for invalid options."""
        Estimation.of(self.estimation)
        check_number("max_iter", self.max_iter, 1, whole=True)
        check_number("tol", self.tol, 0.0)
        check_number("unlabeled_weight", self.unlabeled_weight, 0.0, choice="auto")

    def _check_model(self, model: JointModel) -> None:
        """Raise for options that do not suit the fitted model."""

    def __sklearn_is_fitted__(self) -> bool:
        return "_fit" in vars(self)

    def __getstate__(self) -> dict[str, Any]:
        """The state that is pickled, which predictions do not change."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._derived}

    # -- fitting

    def fit(self, X: TableLike, y: TargetsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Fit the model.

        One pass over the rows sums sufficient statistics, from which the parameters are estimated. Further passes may
        be needed to choose families and to calibrate probabilities. EM is used for missing values in joint blocks and
        for unlabeled rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, scan or chunk source of shape (n_samples, n_features)
            Training rows. NaN and null are missing values. For rows that do not fit in memory, pass `likely.scan(...)`,
            or an object with a method `chunks()` that yields tables and starts again at every call.
        y : array-like of shape (n_samples,) or str
            Class labels, or the name of the column of X that has them. None, NaN and the value of `unlabeled` mark
            unlabeled rows.
        sample_weight : array-like of shape (n_samples,) or str, default=None
            Frequency weights, or the name of the column of X that has them. Rows with weight 0 are ignored. None is 1
            for all rows.

        Returns
        -------
        estimator
            The fitted estimator itself.

        See Also
        --------
        partial_fit : Adds rows to a fitted model.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import GenerativeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> round(GenerativeClassifier().fit(X, y).score(X, y), 3)
        0.987
        """
        self._check_options()
        return self._fit_batches(self._batches(X, y, sample_weight, self._table, allow_unlabeled=True))

    def _fit_batches(self, batches: Batches) -> Self:
        """Fit to training rows that are read."""
        first = batches.first
        if not batches.in_chunks:
            self._check_target(first.counts)
        fit = self._recorded(fit_model(batches, self._declared(first.table.names), self._fit_options()), batches)
        estimates = fit.estimate()
        self._check_model(estimates[0])
        if batches.in_chunks:
            self._check_target(fit.statistics.counts)
        held_out = self._leave_one_out_loss(batches, fit, estimates[0])
        record = self._column_record(batches, fit.specification)
        if isinstance(self, Posterior) and hasattr(self, "families"):
            record = record.examined(batches.known, fit.specification.used)
        self._set_fit(first, fit, estimates, record)._held_out = held_out
        return self

    def _leave_one_out_loss(self, batches: Batches, fit: Fit, model: JointModel) -> tuple[float, int] | None:
        """Leave-one-out log-loss of a fit that is not calibrated, and its rows, where the summary reports it."""
        return None

    def _check_target(self, counts: Counts) -> None:
        """Warn about labels that are probably not classes."""
        if isinstance(self, Posterior):
            warn_target(counts)

    def _batches(
        self, X: Any, y: Any, sample_weight: Any, read: Callable[[Any, int], Table], allow_unlabeled: bool = False
    ) -> Batches:
        """Rows as batches; those that `_table` reads are training rows, which determine how columns are read."""

        def batches(reader: Callable[[Any, int], Table]) -> Batches:
            name, unlabeled = type(self).__name__, self.unlabeled
            return Batches(X, y, sample_weight, reader, name, allow_unlabeled=allow_unlabeled, unlabeled=unlabeled)

        return self._training_rows(batches) if read == self._table else batches(read)

    def _training_rows(self, batches: Callable[[Callable[[Any, int], Table]], Batches]) -> Batches:
        """Training rows, made by a function of their reader, which determine how columns are read."""
        return read_alike(batches, self._raw, self._choose_reading, self._checked_training)

    def _choose_reading(self, table: Table) -> Reading:
        """How the columns of training rows are read."""
        families = getattr(self, "families", None)
        types, normalize = getattr(self, "types", None), getattr(self, "normalize", False)
        return choose_reading(table, types, families, normalize, self._periodic_dates)

    def _specify(self, batches: Batches, expected: tuple[Any, ...] = (), in_batches: bool = False) -> Specification:
        """The specification of these rows; `expected` are classes that later rows, `in_batches`, may have."""
        return specify(batches, self._declared(batches.first.table.names), self._fit_options(expected, in_batches))

    def _fit_rows(self, specification: Specification, batches: Batches) -> Fit:
        """The fit of these rows under a specification."""
        return fit_rows(specification, batches, self._fit_options())

    def _fit_options(self, expected: tuple[Any, ...] = (), in_batches: bool = False) -> FitOptions:
        estimation, prior = Estimation.of(self.estimation), copy.deepcopy(self.class_prior)
        return FitOptions(prior, estimation, self._em_options(), self._calibrates, expected, in_batches)

    def _em_options(self) -> EMOptions:
        weight = None if isinstance(self.unlabeled_weight, str) else float(self.unlabeled_weight)
        return EMOptions(int(self.max_iter), float(self.tol), weight)

    def _column_record(self, batches: Batches, specification: Specification) -> ColumnRecord:
        """What was found about the columns of training rows, or of those of a source that were drawn."""
        return ColumnRecord.of(batches.known, batches.inputs, specification.set_aside)

    def _recorded(self, fit: Fit, batches: Batches) -> Fit:
        """The fit of some rows, with a ledger of them if the option asks for it."""
        return fit.recorded(batches) if self.ledger else fit

    def _columns_of(self, batches: Batches) -> Any:
        """The table of columns of a fit of these rows."""
        specification = self._specify(batches)
        record = self._column_record(batches, specification).examined(batches.known, specification.used)
        first = batches.first
        families, constant = getattr(self, "families", None), record.constant(first.table.reading)
        decisions = family_decisions(specification, families, hasattr(self, "families"), constant)
        return column_table(record, first.table.reading, decisions, FrameSchema.of(first.X).backend)

    @property
    def columns_(self) -> Any:
        """What each column of X became: a frame with its type, missing and distinct values, and the decision.

        `decision` begins with the name of the family, 'expanded to', 'set aside' or 'target'; `reason` says why, and
        `change` is the option that decides otherwise. Counts are those of the rows of the fit.
        """
        return column_table(self._fitted_record, self._reading, self._column_decisions(), self._frame.backend)

    @property
    def _fitted_record(self) -> ColumnRecord:
        self._fitted()
        if self._record is None:
            raise AttributeError("A model that was fitted from statistics has no columns_: it has seen no rows.")
        if not self._record.names:
            raise AttributeError("A model of sparse rows with more than 1,000 columns has no columns_.")
        return self._record

    def _column_decisions(self) -> dict[str, ColumnDecision]:
        """What the columns that are modelled became."""
        families = getattr(self, "families", None)
        blocks = self.model_.blocks
        ignored = {self.model_.names[j] for block in blocks for j in block.index[block.conditionals.ignored_columns()]}
        return family_decisions(self.specification_, families, hasattr(self, "families"), ignored)

    def _set_fit(
        self,
        first: Batch,
        fit: Fit,
        estimates: tuple[JointModel, Array] | None = None,
        record: ColumnRecord | None = None,
    ) -> Self:
        """Become fitted; the columns are those of `first`, a batch of the rows."""
        self._record = ColumnRecord.of(first, None, fit.specification.set_aside) if record is None else record
        schema = remember_columns(self, first.X, first.targets, first.table.reading)
        self._frame = schema.without_categories(dict.fromkeys(fit.specification.set_aside))  # such as identifiers
        self._target_shape = first.table.target_shape
        self.__dict__.pop("prior_shift_", None)  # of an earlier fit
        return self._become(fit, estimates)

    def _become(self, fit: Fit, estimates: tuple[JointModel, Array] | None = None) -> Self:
        """Adopt another fit of the same columns; None is estimated when it is needed first."""
        self._fit, self._estimates, self._held_out = fit, estimates, None
        return self

    def _reduced(self, fit: Fit) -> Self:
        """Adopt the fit of fewer rows; the schema forgets categories that no row has any more."""
        self._frame = self._frame.without_categories(self._fit.categories_before(fit))
        return self._become(fit)

    # -- updates

    def from_statistics(
        self, specification: Specification, statistics: JointStatistics, schema: FrameSchema | None = None
    ) -> Self:
        """Fit the model from sufficient statistics that were computed elsewhere.

        The statistics of all rows are the sum of the statistics of their parts, such as `statistics_` of models that
        were fitted on the parts with the same families.

        Parameters
        ----------
        specification : Specification
            Blocks of columns with their families: `specification_` of another fitted estimator.
        statistics : JointStatistics
            Sum of the statistics of all rows, such as `statistics_` of estimators with this specification.
        schema : FrameSchema, default=None
            Names and types of the columns of the frames that the rows were in: `schema_` of another fitted estimator.
            None is an array.

        Returns
        -------
        estimator
            The fitted estimator itself, whose class probabilities are not calibrated.

        See Also
        --------
        partial_fit : Adds rows to a fitted model.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> here, there = LinearDiscriminant().fit(X[::2], y[::2]), LinearDiscriminant().fit(X[1::2], y[1::2])
        >>> total = here.statistics_ + there.statistics_
        >>> model = LinearDiscriminant().from_statistics(here.specification_, total, here.schema_)
        >>> round(model.score(X, y), 3)
        0.98
        """
        self._check_options()
        if not isinstance(schema, FrameSchema | None):
            raise InputTypeError(f"schema is a {type(schema).__name__}. Pass the schema of a frame, or None.")
        fit = Fit.of_statistics(specification, statistics)
        estimates = fit.estimate()
        self._check_model(estimates[0])
        self._frame = FrameSchema() if schema is None else schema
        remember_schema(self, self._frame, len(specification.names), ())
        self.__dict__.pop("prior_shift_", None)  # of an earlier fit
        return self._become(fit, estimates)

    @one_at_a_time
    def partial_fit(
        self,
        X: TableLike,
        y: TargetsLike,
        classes: LabelsLike | None = None,
        sample_weight: WeightsLike | None = None,
    ) -> Self:
        """Add rows to the model.

        The result is that of `fit` on all rows so far, in any order and any batches. The first batch determines the
        families of columns without a declared family. New classes and new categories may occur in any batch. If the
        rows so far do not determine the parameters, the first prediction raises an error. Missing values are allowed;
        in joint blocks the statistics are those of each missingness pattern. Unlabeled rows are an error here.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or str
            Class labels, or the name of the column of X that has them. None and NaN are an error; only `fit`
            uses unlabeled rows, and only there does the option `unlabeled` apply.
        classes : array-like of shape (n_classes,), default=None
            All classes that may occur. Other labels are then an error; with estimation='map' or 'bayes' all of them are
            in `classes_` from the first batch on. None allows any label.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. Rows with weight 0 are ignored. None is 1 for all rows.

        Returns
        -------
        estimator
            The fitted estimator itself.

        See Also
        --------
        forget : Removes rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import NaiveBayes
        >>> X, y = load_iris(return_X_y=True)
        >>> model = NaiveBayes().partial_fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
        >>> model.predict(X[[0, 70]])
        array([0, 2])
        """
        expected = () if classes is None else _expected(classes, type(self).__name__)
        if self.__sklearn_is_fitted__():
            return self._become(self._fit.added(self._batches(X, y, sample_weight, self._read), expected))
        self._check_options()
        batches = self._batches(X, y, sample_weight, self._table)
        specification, first = self._specify(batches, expected, in_batches=True), batches.first
        fit = self._recorded(fit_by_sums(specification, batches), batches)
        check_expected(fit.statistics, specification.expected)
        return self._set_fit(first, fit, record=self._column_record(batches, specification))

    @one_at_a_time
    def forget(self, X: TableLike, y: TargetsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Remove training rows from the model, as if it had been fitted without them.

        Classes and categories without remaining rows are removed. Rows that cannot have been in the fit raise an error
        where the statistics show it, or in any case with ``ledger=True``, and the model is then unchanged. Models that
        were fitted with unlabeled rows cannot be updated; fit them again.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows of the fit.
        y : array-like of shape (n_samples,) or str
            Their class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights in the fit. None is 1 for all rows.

        Returns
        -------
        estimator
            The fitted estimator itself.

        See Also
        --------
        drop_class : Removes all rows of a class.
        partial_fit : Adds rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import NaiveBayes
        >>> X, y = load_iris(return_X_y=True)
        >>> model = NaiveBayes().fit(X, y).forget(X[100:], y[100:])
        >>> model.classes_
        array([0, 1])
        """
        fit = self._fitted()
        check_ledger(self, fit.ledger)
        return self._reduced(fit.without(self._batches(X, y, sample_weight, self._read)))

    @one_at_a_time
    def drop_class(self, label: object) -> Self:
        """Remove all rows of a class from the model.

        It needs statistics per class: the rows of a class cannot be removed from a pooled covariance.

        Parameters
        ----------
        label : object
            The class.

        Returns
        -------
        estimator
            The fitted estimator itself.

        See Also
        --------
        forget : Removes given rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import QuadraticDiscriminant
        >>> QuadraticDiscriminant().fit(*load_iris(return_X_y=True)).drop_class(2).classes_
        array([0, 1])
        """
        return self._reduced(self._fitted().without_class(label))

    def _with(self, fit: Fit, estimates: tuple[JointModel, Array] | None = None) -> Self:
        """Another estimator with the same options and columns, and this fit."""
        return copy.copy(self)._become(fit, estimates)

    def __add__(self, other: Any) -> Self:
        """Combine two fitted models into a new one, as if it had been fitted to the rows of both.

        They must have the same options, columns and families. Where the families were chosen by leave-one-out log-loss,
        the losses of both are added. Calibrations are averaged, weighted by the rows of both.
        """
        if not isinstance(other, Learner):
            return NotImplemented
        mine, yours = self._fitted(), other._fitted()
        for each in (mine, yours):
            each.check_rows("+")
        if type(self) is type(other):
            mine, yours = agreed(mine, yours)
        check_alike(self, other, mine.specification, yours.specification)
        return self._with(mine + yours)

    def __radd__(self, other: Any) -> Any:
        """For ``sum(models)``, which starts from 0."""
        if not (isinstance(other, int) and other == 0):
            return NotImplemented
        check_is_fitted(self)
        return copy.copy(self)

    # -- the fit

    def _fitted(self) -> Fit:
        """The fit, or scikit-learn's NotFittedError."""
        if "_fit" not in vars(self):
            check_is_fitted(self)  # raises; it is too slow for every access
        return self._fit

    @property
    def specification_(self) -> Specification:
        """Blocks of columns with their families; with `statistics_`, an argument of `from_statistics`."""
        return self._fitted().specification

    @property
    def _history(self) -> EMHistory | None:
        return self._fitted().history

    @property
    def statistics_(self) -> JointStatistics:
        """Sufficient statistics of the training rows, with classes in the order of `classes_`."""
        return self._fitted().statistics

    @property
    def schema_(self) -> FrameSchema:
        """Names and types of the columns of the training frame, and its library; all None for an array."""
        self._fitted()
        return self._frame

    @property
    def calibration_(self) -> Calibration | None:
        """Calibration of the class probabilities; None if they are those of the joint density."""
        return self._fitted().calibration

    @property
    def choices_(self) -> tuple[Choice, ...]:
        """Families that were chosen for columns without a declared family, and the scores of all candidates."""
        fit, declared = self._fitted(), self._declared_aside()
        chosen = (choice for choice in fit.specification.choices if not declared.issuperset(choice.columns))
        return (*chosen, *fit.choices)

    def _declared_aside(self) -> set[str]:
        """The names of the columns that `families` declares to be ignored."""
        names = self.specification_.names
        return {names[j] for j in columns_set_aside(getattr(self, "families", None), names)}

    @property
    def families_(self) -> dict[Any, Any]:
        """Family of each column, or of each tuple of columns with a joint density; None for columns set aside."""
        return self._fitted().families

    @property
    def n_iter_(self) -> int:
        """Number of EM iterations; 1 where the model was fitted without EM."""
        history = self._history
        return max(self._completion_steps) if history is None else history.iterations

    @property
    def converged_(self) -> bool:
        """Whether EM converged; True where the model was fitted without EM."""
        history = self._history
        if history is None:
            return all(each.converged for each in self.specification_.completions(self.statistics_))
        return history.converged

    @property
    def _completion_steps(self) -> list[int]:
        """The numbers of EM iterations of the blocks with missing values, and 1."""
        return [1, *(each.iterations for each in self.specification_.completions(self.statistics_))]

    @property
    def unlabeled_weight_(self) -> float | None:
        """Weight of unlabeled rows, as given or as chosen by cross-validation; None if all rows are labeled."""
        unlabeled = self._fitted().unlabeled
        return None if unlabeled is None else unlabeled.weight

    @property
    def unlabeled_scores_(self) -> tuple[WeightScore, ...]:
        """Cross-validated log-losses by which `unlabeled_weight_` was chosen; empty where it was not."""
        unlabeled = self._fitted().unlabeled
        return () if unlabeled is None else unlabeled.scores

    # -- estimates

    def _estimated(self) -> tuple[JointModel, Array]:
        """The joint model and its class prior, estimated once."""
        self._fitted()
        return self._estimates or self._estimate()

    @one_at_a_time
    def _estimate(self) -> tuple[JointModel, Array]:
        if self._estimates is None:
            estimates = self._fit.estimate()
            self._check_model(estimates[0])
            self._estimates = estimates
        return self._estimates

    @property
    def model_(self) -> JointModel:
        """The joint model: class prior and class-conditional densities."""
        return self._estimated()[0]

    @property
    def class_prior_(self) -> Array:
        """Class prior, an array of shape (n_classes,)."""
        return self._estimated()[1]

    @property
    def log_evidence_(self) -> float:
        """Log marginal likelihood log p(X, y), with all parameters integrated out (estimation='bayes').

        Quantities that are derived from the data (default priors, constant columns) are held fixed. Constant columns
        are ignored. AttributeError is raised where a prior is not conjugate or not proper.
        """
        fit = self._fitted()
        try:
            fit.check_additive("log_evidence_")
        except InputError as error:
            raise AttributeError(str(error)) from None
        try:
            return fit.specification.log_evidence(fit.statistics)
        except NoEvidenceError as error:
            raise AttributeError(f"This {type(self).__name__} has no log_evidence_: {error}.") from None

    @property
    def classes_(self) -> AnyArray:
        """Class labels, a sorted array of shape (n_classes,)."""
        return self._fitted().statistics.counts.classes

    @abstractmethod
    def _parameter_table(self) -> dict[str, list[Any]]:
        """The columns of `parameters`."""

    def parameters(self) -> Any:
        """Return the estimated parameters and their standard errors as a tidy table.

        Returns
        -------
        frame
            One row for each class and parameter, with `class`, `block`, `column`, `parameter`, `value` and
            `standard_error`. The block is the family, the target of a regression, or 'class prior'. The frame is of the
            library of the training rows; for arrays of pandas, or of pyarrow if pandas is not installed.

        See Also
        --------
        summary : The model in a few lines.

        Notes
        -----
        Values under "bayes" are posterior means. The error is from the inverse Fisher information under "mle", and the
        posterior standard deviation under "map" and "bayes". It is NaN where there is no closed form: for models fitted
        by EM, shrunken covariances, given values, coefficients of regressions under "map" and "bayes", and there also
        for the Beta, VonMises and Gamma (with an estimated shape) families. Pooled parameters are repeated for each
        class, and constant columns, which are ignored, have none.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> frame = LinearDiscriminant().fit(X, y).parameters()
        >>> frame[frame["parameter"] == "mean"].head(2).round(3)[["class", "column", "value", "standard_error"]]
           class column  value  standard_error
        3      0     x0  5.006           0.072
        4      1     x0  5.936           0.072
        """
        return to_frame(self._parameter_table(), self._frame.backend)

    # -- reading rows

    def _feature_names(self) -> tuple[str, ...]:
        """The names of the columns of X as they are modelled: where these are not all columns, targets follow."""
        names = self.specification_.names
        return names[: len(names) - math.prod(self._target_shape)]

    def _raw(self, X: Any, start: int = 0) -> Table:
        """Training rows as a table of the input, numbered from `start`."""
        families = getattr(self, "families", None)
        return read_table(X, start, None if families is None else partial(inputs_set_aside, families))

    def _checked_training(self, table: Table) -> Table:
        """Training rows, as they are modelled."""
        return self._checked(table, DECLARE if hasattr(self, "families") else ENCODE)

    def _table(self, X: Any, start: int = 0) -> Table:
        """Training rows as they are modelled."""
        return TrainingReader(self._raw, self._choose_reading, self._checked_training)(X, start)

    def _checked(self, table: Table, remedy: str) -> Table:
        """A table with the remedy for columns of text where numbers are needed."""
        table.remedy = remedy
        return table

    def _read(self, X: Any, start: int = 0) -> Table:
        """Rows with the columns of the fit, which are found by name in a frame; columns set aside may be absent."""
        set_aside = self._inputs_set_aside
        unused = set_aside if hasattr(self, "families") else ()  # a regression reads its column of classes
        return self._checked(read_rows(self, X, start, set_aside, unused), FITTED)

    @property
    def _inputs_set_aside(self) -> Collection[str]:
        """The columns of the input that the model does not use."""
        specification, reading = self.specification_, self._reading
        aside = specification.set_aside
        return aside if reading is None else reading.unused(set(specification.names).difference(aside))

    # -- files

    save, to_sql, to_onnx, to_javascript = Posterior.save, Posterior.to_sql, Posterior.to_onnx, Posterior.to_javascript

    def _content(self) -> dict[str, Any]:
        """Content of the model file. The keys are the file format."""
        fit, frame = self._fitted(), self._frame
        return {
            "version": version("likely"),
            "estimator": self,
            **fit.content(),
            "held_out": self._held_out,
            "columns": {
                "named": hasattr(self, "feature_names_in_"),
                **frame.to_file(),
                "names": frame.names,
                "width": self.n_features_in_,
                "targets": self._target_shape,
                "target_names": self._target_names,
                "record": self._record,
            },
        }

    def _restore(self, content: dict[str, Any]) -> Self:
        """Become the model that was saved."""
        self._check_options()
        fit, columns = Fit.of_content(content), content["columns"]
        _check_columns(columns, fit.specification.names)
        self._target_shape = tuple(columns["targets"])
        self._become(fit)
        held_out = content.get("held_out")
        self._held_out = None if held_out is None else (float(held_out[0]), int(held_out[1]))
        self._frame = FrameSchema.from_file(columns, columns["names"])
        remember_schema(self, self._frame, columns["width"], tuple(columns.get("target_names", ())))
        self._record = columns["record"]
        with suppress(LikelyError):  # raised again by whatever needs the model
            self._estimated()
        return self


def _expected(classes: Any, estimator: str) -> tuple[Any, ...]:
    """The expected classes, sorted, each once."""
    labels = label_values(classes)
    if not len(labels):
        raise InputError("classes is empty. Pass all class labels, or None to allow any label.")
    return tuple(encode_labels(labels, len(labels), estimator).classes.tolist())


def _check_columns(columns: Any, modelled: tuple[str, ...]) -> None:
    """Raise where no frame has these columns, or they are not those that are modelled, which targets may follow."""
    labels, targets, names, width = (columns[key] for key in ("labels", "targets", "names", "width"))
    counts = isinstance(targets, tuple) and all(type(size) is int and size >= 0 for size in targets)
    if not (isinstance(columns["named"], bool) and counts and type(width) is int):
        raise TypeError("columns are of no frame")
    for known in (labels, names):
        if known is not None and not (isinstance(known, list | tuple) and len(known) == width):
            raise TypeError("columns have other names")
    reading, features = columns["reading"], len(modelled) - math.prod(targets)
    if reading is not None:
        check(reading)
    inputs = width if reading is None else len(reading.inputs)
    if inputs != features or (reading is not None and len(reading.columns) != width):
        raise TypeError("columns are not those of the model")


def load(path: persistence.FilePath) -> Any:
    """Load a model from a file.

    Parameters
    ----------
    path : str, bytes or path-like
        Name of a file that the method `save` of an estimator has written.

    Returns
    -------
    estimator
        The fitted estimator. It makes the same predictions as the saved one, and `partial_fit` and `forget` continue
        from its statistics.

    Raises
    ------
    ModelFileError
        For files that are not model files, are damaged, or need classes that are not registered.

    See Also
    --------
    GenerativeClassifier.save : Writes the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import likely
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     likely.LinearDiscriminant().fit(X, y).save(Path(folder) / "iris.likely")
    ...     model = likely.load(Path(folder) / "iris.likely")
    >>> model
    LinearDiscriminant()
    """

    def build(content: dict[str, Any]) -> Any:
        model = content["estimator"]
        if not hasattr(model, "_restore"):
            raise TypeError(f"{type(model).__name__} is not an estimator")
        return model._restore(content)

    return persistence.read(path, build)
