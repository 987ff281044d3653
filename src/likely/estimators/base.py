"""Learning is a sum: what is learnt adds up, and can be taken back.

A learner keeps the statistics of its rows and nothing else of them. More rows, and other models, add theirs; forgotten
rows subtract them. The model is estimated from the sum when somebody asks.
"""

from __future__ import annotations

import copy
import math
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Self

import numpy as np
from narwhals import Implementation
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from likely.data.batches import Batch, Batches
from likely.data.frames import frame_backend, frame_types, is_frame, remember_columns
from likely.data.labels import label_values, read_labels
from likely.data.table import Table
from likely.data.validation import read_table
from likely.errors import ExpectationNeeded, InputError, LikelyError, NoEvidenceError, check_number, listed
from likely.families.base import Family
from likely.families.estimation import Estimation
from likely.model import persistence
from likely.model.em import EMHistory, learn
from likely.model.family_choice import Choice, agreed, choose
from likely.model.joint import JointModel
from likely.model.plans import Plan
from likely.model.shared_collection import SharedCollection
from likely.model.specification import Specification
from likely.statistics.counts import Counts
from likely.statistics.joint import JointStatistics
from likely.statistics.moments import Moments
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array


class Learner(BaseEstimator):
    """What all generative models share in learning, merging and forgetting."""

    class_prior: Any
    estimation: str
    unlabeled: Any = None
    unlabeled_weight: float = 1.0
    max_iter: int = 200
    tol: float = 1e-6
    _target_shape: tuple[int, ...] = (0,)  # of a row's targets, where y are numbers: () for one
    _frame_types: Any = None  # a frame without rows, of the columns' types; files do not keep it
    _course: EMHistory | None
    _specification: Specification
    _estimates: tuple[JointModel, Array] | None

    @abstractmethod
    def _plans(self, batches: Batches) -> list[Plan]:
        """Column blocks and their families."""

    @property
    def _declared(self) -> bool:
        """Whether the options alone say what the plans are, whatever the rows hold."""
        return False

    def _check_options(self) -> None:
        """Raise for options that are not known."""
        Estimation.of(self.estimation)
        check_number("max_iter", self.max_iter, 1, whole=True)
        for name in ("tol", "unlabeled_weight"):
            check_number(name, getattr(self, name), 0.0)

    def _check_rows(self, table: Table) -> None:
        """Raise for rows that cannot be learnt from, where the families would not."""

    def _check_fitted(self, model: JointModel) -> None:
        """Raise for options that do not suit what was fitted."""

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y: read, summarise, estimate.

        X is an array, sparse rows or a frame; where it is a frame, y may be the name of its target column. Rows that
        memory cannot hold are an object with a method `chunks`, which yields such parts anew at every call.
        NaN and null are missing cells. `sample_weight` counts rows: a weight of 2 is the row twice, 0 is no row.
        """
        self._check_options()
        batches = self._batches(X, y, sample_weight, self._table, free=True)
        first, specification, statistics, choices, course = self._specify(batches, complete=False)
        estimates = specification.estimate(statistics)
        self._check_fitted(estimates[0])
        self._begin(first, specification, choices, course)
        self.statistics_, self._estimates = statistics, estimates
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows: the result is that of `fit` on all rows so far, in any order and any batches.

        The first batch chooses the families of columns that nobody declared; classes and categories may come at any
        time. `classes` are labels that may come: other labels are then an error, and under "map" and "bayes" they are
        among `classes_` from the start. Whatever the options derive from the data is derived again. Where the rows so
        far do not determine a model, the first question about it says so.
        """
        expected = () if classes is None else _expected(classes, type(self).__name__)
        if not self._has_learnt():
            self._check_options()
            batches = self._batches(X, y, sample_weight, self._table)
            first, specification, statistics, choices, _ = self._specify(batches, expected)
            _check_expected(statistics, specification.expected)
            self._begin(first, specification, choices)
            self.statistics_, self._estimates = statistics, None
            return self
        self._check_sums("partial_fit")
        specification = self._specification.expecting(expected)
        batches = self._batches(X, y, sample_weight, self._read)
        more = self._total(specification, batches)
        _check_expected(more, specification.expected)
        statistics = specification.with_declared(self.statistics_ + more)
        self._specification, self.statistics_, self._estimates = specification, statistics, None
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take back rows that were learnt, with the labels and the weights they had: as if they had never been there.

        Classes and categories without any row left are gone. Rows that cannot have been learnt are an error where
        the statistics can tell, and the model is then unchanged.
        """
        check_is_fitted(self)
        self._check_sums("forget")
        batches = self._batches(X, y, sample_weight, self._read)
        left = self.statistics_ - self._total(self._specification, batches)
        self._specification.check_possible(left, self.statistics_)
        self._learn(left)
        return self

    def drop_class(self, label: Any) -> Self:
        """Forget all rows of a class. Its statistics must be its own: a covariance that classes share is not."""
        check_is_fitted(self)
        self._check_sums("drop_class")
        self._learn(self.statistics_.without(self._code_of(label)))
        return self

    def __add__(self, other: Any) -> Self:
        """What both have learnt, as a new model. They must have the same options, columns and families.

        Where their rows chose between shared and own covariances, the rows of both decide.
        """
        if not isinstance(other, Learner):
            return NotImplemented
        check_is_fitted(self)
        check_is_fitted(other)
        self._check_sums("adding models")
        other._check_sums("adding models")
        total, twin = copy.copy(self), copy.copy(other)
        if type(self) is type(other):
            total._specification, twin._specification, total.choices_ = agreed(
                self._specification,
                other._specification,
                self.choices_,
                other.choices_,
                (float(self.statistics_.counts.weight.sum()), float(other.statistics_.counts.weight.sum())),
            )
        different = _differences(total, twin)
        if different:
            raise InputError(
                f"Models of different specification cannot be added: {'; '.join(different)}. Hint: where the rows of "
                "each chose families, declare one of them: families=model.families_."
            )
        mine, yours = ([plan.columns for plan in model._specification.plans] for model in (total, twin))
        blocks = tuple(other.statistics_.blocks[yours.index(columns)] for columns in mine)
        total._specification = total._specification.expecting(other._specification.expected)
        total.families_ = _families(total._specification)
        total._learn(self.statistics_ + replace(other.statistics_, blocks=blocks))
        return total

    def __radd__(self, other: Any) -> Self:
        """For ``sum(models)``, which starts from 0."""
        if not (isinstance(other, int) and other == 0):
            return NotImplemented
        check_is_fitted(self)
        return copy.copy(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a file, which `likely.load` reads: options, families and statistics, and no rows.

        The file is a safetensors file with a JSON header; there is no pickle in it. It replaces an old one in one step.
        """
        persistence.write(path, self._content())

    def _content(self) -> dict[str, Any]:
        """What a file holds of the model."""
        check_is_fitted(self)
        backend = None if self._frame_backend is None else self._frame_backend.name
        return {
            "version": version("likely"),
            "estimator": self,
            "specification": self._specification,
            "statistics": self.statistics_,
            "choices": self.choices_,
            "course": self._course,
            "columns": {
                "named": hasattr(self, "feature_names_in_"),
                "labels": self._column_labels,
                "frame": backend,
                "targets": self._target_shape,
            },
        }

    def _restore(self, content: dict[str, Any]) -> Self:
        """Become the model that was saved."""
        specification, columns = content["specification"], content["columns"]
        statistics = content["statistics"]
        if not (isinstance(specification, Specification) and isinstance(statistics, JointStatistics)):
            raise TypeError("a specification and statistics are needed")
        if not (specification.sound() and len(specification.plans) == len(statistics.blocks) and statistics.sound()):
            raise TypeError("no rows have such statistics")
        for plan, part in zip(specification.plans, statistics.blocks, strict=True):
            if isinstance(part, Moments | Sums) and part.dimension != len(specification.columns(plan)):
                raise TypeError("statistics are of other columns")
        self._specification, self.choices_ = specification, tuple(content.get("choices", ()))
        self._note(content.get("course"))
        self._column_labels = columns["labels"]
        self._frame_backend = None if columns["frame"] is None else Implementation[columns["frame"]]
        self._target_shape = tuple(columns.get("targets", self._target_shape))
        names = self._feature_names()
        self.n_features_in_ = len(names)
        if columns["named"]:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.families_ = _families(specification)
        self._learn(statistics)
        with suppress(LikelyError):  # told to who asks
            self._estimated()
        return self

    def _batches(
        self, X: Any, y: Any, sample_weight: Any, read: Callable[[Any, int], Table], free: bool = False
    ) -> Batches:
        """What was handed over, as batches; labels may be missing where they are `free`."""
        return Batches(X, y, sample_weight, read, type(self).__name__, free=free, unlabeled=self.unlabeled)

    def _has_learnt(self) -> bool:
        return "statistics_" in vars(self)

    def _specify(
        self, batches: Batches, expected: tuple[Any, ...] = (), complete: bool = True
    ) -> tuple[Batch, Specification, JointStatistics, tuple[Choice, ...], EMHistory | None]:
        """The first batch of these rows, what to learn from them, what was learnt, why so, and in which course.

        Where not `complete`, rows may miss labels, and cells of columns that vary together.
        """
        return self._collected(self._wanted(batches, expected), batches, complete)

    def _collected(
        self, specification: Specification, batches: Batches, complete: bool
    ) -> tuple[Batch, Specification, JointStatistics, tuple[Choice, ...], EMHistory | None]:
        """The same where it is known what to learn, but for what the rows choose."""
        first = batches.first
        choices: tuple[Choice, ...] = ()
        try:
            if any(plan.others for plan in specification.plans):
                together = SharedCollection([specification])
                specification, statistics, choices = choose(specification, batches, together, together.total(batches))
            else:
                statistics = specification.with_declared(self._total(specification, batches))
            if not batches.has_unlabeled:
                return first, specification, statistics, choices, None
        except ExpectationNeeded:
            if complete:
                raise
        counts = sum((batch.counts for batch in batches), start=Counts.empty(first.counts.classes[:0]))
        classes = specification.with_declared(JointStatistics(counts, ())).counts.classes
        statistics, course = learn(
            specification, batches, classes, self.unlabeled_weight, self.max_iter, self.tol, self._check_rows
        )
        return first, specification, specification.with_declared(statistics), choices, course

    def _wanted(self, batches: Batches, expected: tuple[Any, ...] = ()) -> Specification:
        """What to learn from these rows, as far as the options, types and values say."""
        estimation, plans = Estimation.of(self.estimation), tuple(self._plans(batches))
        for plan in plans:
            plan.family.check(estimation)
        names = tuple(batches.first.table.names)
        prior = copy.deepcopy(self.class_prior)
        return Specification(names, plans, prior, estimation, expected)

    def _total(self, specification: Specification, batches: Batches) -> JointStatistics:
        """The statistics of all batches."""
        total: JointStatistics | None = None
        for batch in batches:
            if not batch.table.rows:
                continue
            self._check_rows(batch.table)
            part = specification.collect(batch)
            total = part if total is None else total + part
        assert total is not None
        return total

    def _begin(
        self, first: Batch, specification: Specification, choices: tuple[Choice, ...], course: EMHistory | None = None
    ) -> None:
        """Note what is to be learnt."""
        self._column_labels, self._frame_backend = remember_columns(self, first.X), frame_backend(first.X)
        self._frame_types = frame_types(first.X)
        self._target_shape = first.table.target_shape
        self._specification, self.choices_ = specification, choices
        self._note(course)
        self.families_ = _families(specification)

    def _note(self, course: EMHistory | None) -> None:
        """Remember how the statistics came about: None where they are plain sums."""
        self._course = course
        self.__dict__.pop("prior_shift_", None)  # of an earlier fit
        self.n_iter_ = 1 if course is None else course.iterations
        self.converged_ = course is None or course.converged

    def _check_sums(self, what: str) -> None:
        """Raise where statistics are expectations, which nothing can be added to or taken from."""
        if self._course is not None:
            raise InputError(
                f"{what}: this model has learnt from rows with missing labels or cells, so its statistics are "
                "expectations, not sums. Hint: fit on all rows."
            )

    def _learn(self, statistics: JointStatistics) -> None:
        """Have these statistics; the model follows when somebody asks."""
        self.statistics_ = self._specification.with_declared(statistics)
        self._estimates = None

    # -- what follows from the statistics

    def _estimated(self) -> tuple[JointModel, Array]:
        check_is_fitted(self)
        if self._estimates is None:
            estimates = self._specification.estimate(self.statistics_)
            self._check_fitted(estimates[0])
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
        check_is_fitted(self)
        try:
            self._check_sums("log_evidence_")
        except InputError as error:
            raise AttributeError(str(error)) from None
        try:
            return self._specification.log_evidence(self.statistics_)
        except NoEvidenceError as error:
            raise AttributeError(f"This {type(self).__name__} has no log_evidence_: {error}.") from None

    @property
    def classes_(self) -> AnyArray:
        """The labels of the classes, sorted."""
        check_is_fitted(self)
        return self.statistics_.counts.classes

    def _code_of(self, label: Any) -> int:
        labels = self.classes_.tolist()
        if isinstance(label, np.ndarray | list) or label not in labels:
            raise InputError(f"Class {label!r} is not among the classes {listed(labels)}.")
        return int(labels.index(label))

    # -- reading

    def _feature_names(self) -> tuple[str, ...]:
        """The names of the columns of X: where these are not all columns, targets follow."""
        names = self._specification.names
        return names[: len(names) - math.prod(self._target_shape)]

    def _table(self, X: Any, start: int = 0) -> Table:
        """The table that was handed over, from row `start` on."""
        return read_table(X, start)

    def _read(self, X: Any, start: int = 0) -> Table:
        """Rows with the columns of the fit.

        Where the model has several blocks, or names that are no text, the columns of a frame are found by their names,
        in any order.
        """
        table = self._table(X, start)
        names, framed = self._feature_names(), is_frame(X)
        by_name = len(self._specification.plans) > 1 or self._column_labels is not None
        if framed and by_name and set(table.names) == set(names):
            return table.reordered(names)
        if framed and self._column_labels is not None:
            raise InputError(f"X has the columns {listed(table.names)}, but the model was fitted with {listed(names)}.")
        validate_data(self, X, reset=False, skip_check_array=True)
        return table


def load(path: str | os.PathLike[str]) -> Any:
    """The model in a file that `save` has written. It answers as the saved one does, and goes on learning."""

    def build(content: dict[str, Any]) -> Any:
        model = content["estimator"]
        if not hasattr(model, "_restore"):
            raise TypeError(f"{type(model).__name__} is no model")
        return model._restore(content)

    return persistence.read(path, build)


def _expected(classes: Any, estimator: str) -> tuple[Any, ...]:
    """Labels that may come, each once, in their order."""
    labels = label_values(classes)
    if not len(labels):
        raise InputError("classes is empty: it names the labels that may come, or is None where any may.")
    return tuple(read_labels(labels, len(labels), estimator)[0].tolist())


def _check_expected(statistics: JointStatistics, expected: tuple[Any, ...]) -> None:
    if not expected:
        return
    known = statistics.counts.classes[statistics.counts.rows > 0]
    strange = [label for label in known.tolist() if label not in expected]
    if strange:
        raise InputError(f"y has the label {listed(strange)}, which is not among classes={listed(expected)}.")


def _families(specification: Specification) -> dict[Any, Family]:
    """The family of each column, or of each tuple of columns that have one density."""
    found: dict[Any, Family] = {}
    for plan in specification.plans:
        columns = specification.columns(plan)
        family = plan.family._declared_family
        if (plan.joint or not plan.family._independent) and len(columns) > 1:
            found[columns] = family
        else:
            found.update(dict.fromkeys(columns, family))
    return found


def _differences(left: Learner, right: Learner) -> list[str]:
    """In what the specifications of two models differ, in words."""
    if type(left) is not type(right):
        return [f"{type(left).__name__} and {type(right).__name__}"]
    mine, yours = _described(left), _described(right)
    names = [*mine, *(name for name in yours if name not in mine)]
    return [
        f"{name}: {mine.get(name, 'absent')} and {yours.get(name, 'absent')}"
        for name in names
        if mine.get(name) != yours.get(name)
    ]


def _described(model: Learner) -> dict[str, str]:
    """A model's options and families as text."""
    told = {name: plain_text(value) for name, value in model.get_params(deep=False).items()}
    told["columns"] = plain_text(list(model._specification.names))
    for plan in model._specification.plans:
        columns = model._specification.columns(plan)
        told[f"family of {', '.join(map(repr, columns))}"] = plain_text(plan.family)
    return told


def plain_text(value: Any) -> str:
    """An option as text that tells any two apart."""
    if isinstance(value, BaseEstimator):
        options = (f"{name}={plain_text(part)}" for name, part in value.get_params(deep=False).items())
        return f"{type(value).__name__}({', '.join(options)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{plain_text(key)}: {plain_text(part)}' for key, part in value.items()))}}}"
    if isinstance(value, np.ndarray | list | tuple):
        return f"[{', '.join(plain_text(part) for part in value)}]"
    return repr(value.item() if isinstance(value, np.generic) else value)
