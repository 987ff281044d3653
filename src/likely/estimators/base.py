"""The base of all generative estimators: a fit reads rows, summarises them, and estimates a model from the summary.

A learner keeps the statistics of its rows, and not the rows. The model is estimated from the statistics when it is
first needed.
"""

from __future__ import annotations

import copy
import math
import os
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any, Self

import numpy as np
from narwhals import Implementation
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from likely.data.batches import Batch, Batches
from likely.data.frames import FrameSchema, is_frame, remember_columns
from likely.data.table import Table
from likely.data.validation import read_table
from likely.errors import InputError, LikelyError, NoEvidenceError, check_number, listed
from likely.estimators.algebra import StatisticsAlgebra
from likely.families.base import Family
from likely.families.estimation import Estimation
from likely.model import persistence
from likely.model.em import EMHistory, EMOptions
from likely.model.family_choice import Choice
from likely.model.fit import Fit, fit_rows
from likely.model.joint import JointModel
from likely.model.plans import Plan
from likely.model.specification import Specification
from likely.statistics.joint import JointStatistics
from likely.statistics.moments import Moments
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array


class Learner(StatisticsAlgebra, BaseEstimator):
    """Base of all generative estimators: fitting, reading rows, and what follows from the statistics."""

    class_prior: Any
    estimation: str
    unlabeled: Any = None
    unlabeled_weight: float = 1.0
    max_iter: int = 200
    tol: float = 1e-6
    _target_shape: tuple[int, ...] = (0,)  # of the targets of a row, where y are numbers; () for a single one
    _frame: FrameSchema
    _fit: Fit
    _estimates: tuple[JointModel, Array] | None

    @abstractmethod
    def _plans(self, batches: Batches) -> list[Plan]:
        """Column blocks and their families."""

    @property
    def _plans_are_declared(self) -> bool:
        """Whether the options alone determine the plans, whatever the rows hold."""
        return False

    def _check_options(self) -> None:
        """Raise for invalid options."""
        Estimation.of(self.estimation)
        check_number("max_iter", self.max_iter, 1, whole=True)
        for name in ("tol", "unlabeled_weight"):
            check_number(name, getattr(self, name), 0.0)

    def _check_model(self, model: JointModel) -> None:
        """Raise for options that do not suit the fitted model."""

    def __sklearn_is_fitted__(self) -> bool:
        return "_fit" in vars(self)

    # -- fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y: read, summarise, estimate.

        X is an array, sparse rows or a frame; where it is a frame, y may be the name of its target column. Rows that
        memory cannot hold are an object with a method `chunks`, which yields such parts anew at every call.
        NaN and null are missing cells. `sample_weight` counts rows: a weight of 2 is the row twice, 0 is no row.
        """
        self._check_options()
        batches = self._batches(X, y, sample_weight, self._table, allow_unlabeled=True)
        specification, first = self._specify(batches), batches.first
        fit = self._fit_rows(specification, batches)
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
        """The specification of these rows, as far as the options and the types and values of columns determine it."""
        estimation, plans = Estimation.of(self.estimation), tuple(self._plans(batches))
        for plan in plans:
            plan.family.check(estimation)
        names = tuple(batches.first.table.names)
        return Specification(names, plans, copy.deepcopy(self.class_prior), estimation, expected)

    def _fit_rows(self, specification: Specification, batches: Batches) -> Fit:
        """The fit of these rows; unlabeled and incomplete rows are used by expectation maximisation."""
        return fit_rows(specification, batches, self._em_options())

    def _em_options(self) -> EMOptions:
        return EMOptions(int(self.max_iter), float(self.tol), float(self.unlabeled_weight))

    def _set_fit(self, first: Batch, fit: Fit, estimates: tuple[JointModel, Array] | None = None) -> Self:
        """Become fitted; the columns are those of `first`, a batch of the rows."""
        self._frame = remember_columns(self, first.X)
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
    def _specification(self) -> Specification:
        return self._fitted().specification

    @property
    def _history(self) -> EMHistory | None:
        return self._fitted().history

    @property
    def statistics_(self) -> JointStatistics:
        """The sufficient statistics of the rows."""
        return self._fitted().statistics

    @property
    def choices_(self) -> tuple[Choice, ...]:
        """Families chosen for columns that were not declared, with the leave-one-out log-loss of each candidate."""
        return self._fitted().choices

    @property
    def families_(self) -> dict[Any, Family]:
        """The family of each column, or of each tuple of columns that have a joint density."""
        return self._fitted().families

    @property
    def n_iter_(self) -> int:
        """The number of EM iterations; 1 where the statistics are plain sums."""
        history = self._history
        return 1 if history is None else history.iterations

    @property
    def converged_(self) -> bool:
        """Whether EM converged; True where the statistics are plain sums."""
        history = self._history
        return history is None or history.converged

    # -- estimates

    def _estimated(self) -> tuple[JointModel, Array]:
        """The joint model and its class prior, estimated once."""
        fit = self._fitted()
        if self._estimates is None:
            estimates = fit.estimate()
            self._check_model(estimates[0])
            self._estimates = estimates
        return self._estimates

    @property
    def model_(self) -> JointModel:
        """The joint model."""
        return self._estimated()[0]

    @property
    def class_prior_(self) -> Array:
        """The probability of each class before its row is seen."""
        return self._estimated()[1]

    @property
    def log_evidence_(self) -> float:
        """log p(rows, labels) with all parameters integrated out: the marginal likelihood, under ``"bayes"``.

        What is derived from the data (default priors, which columns vary) is held fixed. Columns without spread count
        for nothing. There is none where a prior is not conjugate or not proper, and AttributeError says which.
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
        """The labels of the classes, sorted."""
        return self._fitted().statistics.counts.classes

    def _code_of(self, label: Any) -> int:
        labels = self.classes_.tolist()
        if isinstance(label, np.ndarray | list) or label not in labels:
            raise InputError(f"Class {label!r} is not among the classes {listed(labels)}.")
        return int(labels.index(label))

    # -- reading rows

    def _feature_names(self) -> tuple[str, ...]:
        """The names of the columns of X: where these are not all columns, targets follow."""
        names = self._specification.names
        return names[: len(names) - math.prod(self._target_shape)]

    def _table(self, X: Any, start: int = 0) -> Table:
        """Training rows as a table, numbered from `start`."""
        return read_table(X, start)

    def _read(self, X: Any, start: int = 0) -> Table:
        """Rows with the columns of the fit.

        Columns of a frame are found by name where the model has several blocks, or names that are no text. Models of
        one block raise for another order of columns, because scikit-learn's estimator checks require it.
        """
        table = self._table(X, start)
        if not is_frame(X):
            validate_data(self, X, reset=False, skip_check_array=True)
            return table
        names, named_by_text = self._feature_names(), self._frame.labels is None
        by_name = len(self._specification.plans) > 1 or not named_by_text
        if by_name and set(table.names) == set(names):
            return table.reordered(names)
        if not named_by_text:
            raise InputError(f"X has the columns {listed(table.names)}, but the model was fitted with {listed(names)}.")
        validate_data(self, X, reset=False, skip_check_array=True)
        return table

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a file, which `likely.load` reads: options, families and statistics, and no rows.

        The file is a safetensors file with a JSON header; there is no pickle in it. It replaces an old one in one step.
        """
        persistence.write(path, self._content())

    def _content(self) -> dict[str, Any]:
        """What a file holds of the model. The keys are the file format."""
        fit, frame = self._fitted(), self._frame
        return {
            "version": version("likely"),
            "estimator": self,
            "specification": fit.specification,
            "statistics": fit.statistics,
            "choices": fit.choices,
            "course": fit.history,
            "columns": {
                "named": hasattr(self, "feature_names_in_"),
                "labels": frame.labels,
                "frame": None if frame.backend is None else frame.backend.name,
                "targets": self._target_shape,
            },
        }

    def _restore(self, content: dict[str, Any]) -> Self:
        """Become the model that was saved."""
        fit, columns = _fit_of(content), content["columns"]
        backend = None if columns["frame"] is None else Implementation[columns["frame"]]
        self._frame = FrameSchema(columns["labels"], backend)
        self._target_shape = tuple(columns.get("targets", self._target_shape))
        self._fit, self._estimates = fit, None
        names = self._feature_names()
        self.n_features_in_ = len(names)
        if columns["named"]:
            self.feature_names_in_ = np.array(names, dtype=object)
        with suppress(LikelyError):  # raised again by whatever needs the model
            self._estimated()
        return self


def _fit_of(content: dict[str, Any]) -> Fit:
    """The fit that a file holds, checked."""
    specification, statistics = content["specification"], content["statistics"]
    if not (isinstance(specification, Specification) and isinstance(statistics, JointStatistics)):
        raise TypeError("a specification and statistics are needed")
    if not (specification.sound() and len(specification.plans) == len(statistics.blocks) and statistics.sound()):
        raise TypeError("no rows have such statistics")
    for plan, part in zip(specification.plans, statistics.blocks, strict=True):
        if isinstance(part, Moments | Sums) and part.dimension != len(specification.columns(plan)):
            raise TypeError("statistics are of other columns")
    fit = Fit(specification, statistics, tuple(content.get("choices", ())), content.get("course"))
    return fit.with_statistics(statistics)


def load(path: str | os.PathLike[str]) -> Any:
    """The model in a file that `save` has written. It answers as the saved one does, and goes on learning."""

    def build(content: dict[str, Any]) -> Any:
        model = content["estimator"]
        if not hasattr(model, "_restore"):
            raise TypeError(f"{type(model).__name__} is no model")
        return model._restore(content)

    return persistence.read(path, build)
