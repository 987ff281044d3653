"""The base of all generative estimators: a fit reads rows, summarises them, and estimates a model from the summary.

A learner keeps the statistics of its rows, and not the rows. The model is estimated from the statistics when it is
first needed.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from likely.choice.default_families import Declared
from likely.choice.fitting import FitOptions, fit_model, fit_rows, specify
from likely.data.batches import Batch, Batches
from likely.data.columns import features, matched, remember_columns
from likely.data.frames import FrameSchema, whole_frame
from likely.data.table import DECLARE, ENCODE, FITTED, Table
from likely.data.validation import ignoring, read_table
from likely.errors import InputError, LikelyError, NoEvidenceError, check_number, listed
from likely.estimators.algebra import StatisticsAlgebra
from likely.families.estimation import Estimation
from likely.model import persistence
from likely.model.calibration import Calibration
from likely.model.choices import Choice, WeightScore
from likely.model.em import EMHistory, EMOptions
from likely.model.fit import Fit
from likely.model.joint import JointModel
from likely.model.plans import columns_set_aside
from likely.model.specification import Specification
from likely.numerics.threads import one_at_a_time
from likely.statistics.joint import JointStatistics
from likely.statistics.moments import Moments
from likely.statistics.pattern_moments import PatternMoments
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array, TableLike, TargetsLike, WeightsLike


class Learner(StatisticsAlgebra, BaseEstimator):
    """Base of all generative estimators: fitting, reading rows, and what follows from the statistics."""

    class_prior: Any
    estimation: str
    unlabeled: Any = None
    unlabeled_weight: float | str = "auto"
    max_iter: int = 200
    tol: float = 1e-6
    _target_shape: tuple[int, ...] = (0,)  # of the targets of a row, where y are numbers; () for a single one
    _frame: FrameSchema
    _target_names: tuple[Any, ...] = ()  # columns that y was given by, which predictions ignore
    _column_names: tuple[str, ...] | None
    _fit: Fit
    _estimates: tuple[JointModel, Array] | None

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
        rows = self._engine_rows(X, y, sample_weight)
        if rows is not None:
            self._check_uncalibrated()
            specification = self._specify_engine_rows(rows)
            statistics = rows.statistics(specification)
            return self._set_statistics(specification, statistics, rows.schema(), rows.targets)
        batches = self._batches(X, y, sample_weight, self._table, allow_unlabeled=True)
        first = batches.first
        fit = fit_model(batches, self._declared(first.table.names), self._fit_options())
        estimates = fit.estimate()
        self._check_model(estimates[0])
        return self._set_fit(first, fit, estimates)

    def _batches(
        self, X: Any, y: Any, sample_weight: Any, read: Callable[[Any, int], Table], allow_unlabeled: bool = False
    ) -> Batches:
        """Training rows as batches."""
        return Batches(
            X, y, sample_weight, read, type(self).__name__, allow_unlabeled=allow_unlabeled, unlabeled=self.unlabeled
        )

    def _specify(self, batches: Batches, expected: tuple[Any, ...] = ()) -> Specification:
        """The specification of these rows; `expected` are classes that later rows may have."""
        declared = self._declared(batches.first.table.names)
        return specify(batches, declared, self._fit_options(expected))

    def _fit_rows(self, specification: Specification, batches: Batches) -> Fit:
        """The fit of these rows under a specification."""
        return fit_rows(specification, batches, self._fit_options())

    def _fit_options(self, expected: tuple[Any, ...] = ()) -> FitOptions:
        estimation, prior = Estimation.of(self.estimation), copy.deepcopy(self.class_prior)
        return FitOptions(prior, estimation, self._em_options(), self._calibrates, expected)

    def _em_options(self) -> EMOptions:
        weight = None if isinstance(self.unlabeled_weight, str) else float(self.unlabeled_weight)
        return EMOptions(int(self.max_iter), float(self.tol), weight)

    def _set_fit(self, first: Batch, fit: Fit, estimates: tuple[JointModel, Array] | None = None) -> Self:
        """Become fitted; the columns are those of `first`, a batch of the rows."""
        self._frame = remember_columns(self, first.X, first.targets)
        self._target_shape = first.table.target_shape
        self.__dict__.pop("prior_shift_", None)  # of an earlier fit
        self._fit, self._estimates = fit, estimates
        return self

    # -- the fit

    def _fitted(self) -> Fit:
        """The fit, or scikit-learn's NotFittedError."""
        if not self.__sklearn_is_fitted__():
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
        """Calibration of the class probabilities; None where they are those of the joint density."""
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
        """Weight of unlabeled rows, as given or as chosen by cross-validation; None where all rows are labeled."""
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

    def _code_of(self, label: Any) -> int:
        labels = self.classes_.tolist()
        if isinstance(label, np.ndarray | list) or label not in labels:
            raise InputError(f"Class {label!r} is not among the classes {listed(labels)}.")
        return int(labels.index(label))

    # -- reading rows

    def _feature_names(self) -> tuple[str, ...]:
        """The names of the columns of X: where these are not all columns, targets follow."""
        names = self.specification_.names
        return names[: len(names) - math.prod(self._target_shape)]

    def _table(self, X: Any, start: int = 0) -> Table:
        """Training rows as a table, numbered from `start`."""
        if not hasattr(self, "families"):
            return self._checked(read_table(X, start), ENCODE)
        return self._checked(read_table(X, start, partial(columns_set_aside, self.families)), DECLARE)

    def _checked(self, table: Table, remedy: str) -> Table:
        """A table with the remedy for columns of text where numbers are needed."""
        table.remedy = remedy
        return table

    def _read(self, X: Any, start: int = 0) -> Table:
        """Rows with the columns of the fit, which are found by name in a frame; columns set aside may be absent."""
        set_aside = self.specification_.set_aside
        X = features(self, whole_frame(X), set_aside)
        unused = ignoring(set_aside) if hasattr(self, "families") else None  # a regression reads its column of classes
        table = read_table(X, start, unused)
        if set_aside and table.is_frame:
            table = table.with_absent([name for name in set_aside if name not in table.names])
        return self._checked(matched(self, table), FITTED)

    # -- files

    def save(self, path: persistence.FilePath) -> None:
        """Save the fitted model to a file.

        The file is a safetensors file with a JSON header. It contains options, families and sufficient statistics, but
        no pickle, and no training rows except those with rare missingness patterns (beyond 64 in a joint block).

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
        persistence.write(path, self._content())

    def _content(self) -> dict[str, Any]:
        """Content of the model file. The keys are the file format."""
        fit, frame = self._fitted(), self._frame
        return {
            "version": version("likely"),
            "estimator": self,
            "specification": fit.specification,
            "statistics": fit.statistics,
            "choices": fit.choices,
            "course": fit.history,
            "calibration": fit.calibration,
            "unlabeled": fit.unlabeled,
            "columns": {
                "named": hasattr(self, "feature_names_in_"),
                **frame.to_file(),
                "targets": self._target_shape,
                "target_names": self._target_names,
            },
        }

    def _restore(self, content: dict[str, Any]) -> Self:
        """Become the model that was saved."""
        self._check_options()
        fit, columns = _fit_of(content), content["columns"]
        self._target_shape = tuple(columns.get("targets", self._target_shape))
        self._target_names = tuple(columns.get("target_names", ()))
        self._fit, self._estimates = fit, None
        names = self._feature_names()
        named = columns["named"] or columns["labels"] is not None
        self._frame = FrameSchema.from_file(columns, names if named else None)
        self.n_features_in_, self._column_names = len(names), self._frame.names
        if columns["named"]:
            self.feature_names_in_ = np.array(names, dtype=object)
        with suppress(LikelyError):  # raised again by whatever needs the model
            self._estimated()
        return self


def _fit_of(content: dict[str, Any]) -> Fit:
    """The fit in a model file, validated."""
    specification, statistics = content["specification"], content["statistics"]
    if not (isinstance(specification, Specification) and isinstance(statistics, JointStatistics)):
        raise TypeError("a specification and statistics are needed")
    if not (specification.sound() and len(specification.plans) == len(statistics.blocks) and statistics.sound()):
        raise TypeError("no rows have such statistics")
    for plan, part in zip(specification.plans, statistics.blocks, strict=True):
        if isinstance(part, Moments | PatternMoments | Sums) and part.dimension != len(specification.columns(plan)):
            raise TypeError("statistics are of other columns")
    calibration = content.get("calibration")
    if not (calibration is None or (isinstance(calibration, Calibration) and calibration.sound())):
        raise TypeError("its calibration is invalid")
    for plan in specification.plans:
        for family in (plan.family, *plan.others):
            family.check(specification.estimation)
    choices = tuple(content.get("choices", ()))
    if not all(
        isinstance(choice, Choice) and choice.sound(specification.names)
        for choice in (*choices, *specification.choices)
    ):
        raise TypeError("choices of families are of other columns")
    _check_columns(content["columns"], specification.names)
    history, unlabeled = content.get("course"), content.get("unlabeled")
    fit = Fit(specification, statistics, choices, history, calibration, unlabeled)
    return fit.with_statistics(statistics)


def _check_columns(columns: Any, names: tuple[str, ...]) -> None:
    """Raise where no frame has these columns."""
    labels, targets = columns["labels"], columns.get("targets", (0,))
    counts = isinstance(targets, tuple) and all(type(size) is int and size >= 0 for size in targets)
    if not (isinstance(columns["named"], bool) and counts and math.prod(targets) <= len(names)):
        raise TypeError("columns are of no frame")
    features = len(names) - math.prod(targets)
    if labels is not None and not (isinstance(labels, list) and len(labels) == features):
        raise TypeError("columns have other names")


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
