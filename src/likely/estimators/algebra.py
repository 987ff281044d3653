"""Statistics add up: more rows and other models are added to a fit, and rows and classes are subtracted from it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from likely.data.batches import Batch, Batches
from likely.data.labels import encode_labels, label_values
from likely.data.table import Table
from likely.errors import InputError, listed
from likely.model.family_choice import agree_on_families
from likely.model.fit import Fit, fit_by_sums, sum_rows
from likely.model.joint import JointModel
from likely.model.specification import Specification
from likely.statistics.joint import JointStatistics
from likely.typing import Array


class StatisticsAlgebra:
    """Learning more rows, merging models, and forgetting rows and classes: a mixin of `Learner`."""

    _fit: Fit
    _estimates: tuple[JointModel, Array] | None
    if TYPE_CHECKING:  # of Learner

        def _check_options(self) -> None: ...
        def _batches(
            self, X: Any, y: Any, sample_weight: Any, read: Callable[[Any, int], Table], allow_unlabeled: bool = False
        ) -> Batches: ...
        def _specify(self, batches: Batches, expected: tuple[Any, ...] = ()) -> Specification: ...
        def _set_fit(self, first: Batch, fit: Fit) -> Self: ...
        def _fitted(self) -> Fit: ...
        def _table(self, X: Any, start: int = 0) -> Table: ...
        def _read(self, X: Any, start: int = 0) -> Table: ...
        def _code_of(self, label: Any) -> int: ...
        def __sklearn_is_fitted__(self) -> bool: ...

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows: the result is that of `fit` on all rows so far, in any order and any batches.

        The first batch chooses the families of columns that nobody declared; classes and categories may come at any
        time. `classes` are labels that may come: other labels are then an error, and under "map" and "bayes" they are
        among `classes_` from the start. Whatever the options derive from the data is derived again. Where the rows so
        far do not determine a model, the first question about it says so.
        """
        expected = () if classes is None else _expected(classes, type(self).__name__)
        if not self.__sklearn_is_fitted__():
            self._check_options()
            batches = self._batches(X, y, sample_weight, self._table)
            specification, first = self._specify(batches, expected), batches.first
            fit = fit_by_sums(specification, batches)
            _check_expected(fit.statistics, specification.expected)
            return self._set_fit(first, fit)
        self._fit.check_additive("partial_fit")
        specification = self._fit.specification.expecting(expected)
        more = sum_rows(specification, self._batches(X, y, sample_weight, self._read))
        _check_expected(more, specification.expected)
        fit = replace(self._fit, specification=specification)
        self._fit, self._estimates = fit.with_statistics(self._fit.statistics + more), None
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take back rows that were learnt, with the labels and the weights they had: as if they had never been there.

        Classes and categories without any row left are gone. Rows that cannot have been learnt are an error where
        the statistics can tell, and the model is then unchanged.
        """
        fit = self._fitted()
        fit.check_additive("forget")
        left = fit.statistics - sum_rows(fit.specification, self._batches(X, y, sample_weight, self._read))
        fit.specification.check_possible(left, fit.statistics)
        self._fit, self._estimates = fit.with_statistics(left), None
        return self

    def drop_class(self, label: Any) -> Self:
        """Forget all rows of a class. Its statistics must be its own: a covariance that classes share is not."""
        fit = self._fitted()
        fit.check_additive("drop_class")
        self._fit, self._estimates = fit.with_statistics(fit.statistics.without(self._code_of(label))), None
        return self

    def __add__(self, other: Any) -> Self:
        """What both have learnt, as a new model. They must have the same options, columns and families.

        Where their rows chose between shared and own covariances, the rows of both decide.
        """
        if not isinstance(other, StatisticsAlgebra):
            return NotImplemented
        mine, yours = self._fitted(), other._fitted()
        mine.check_additive("adding models")
        yours.check_additive("adding models")
        if type(self) is type(other):
            mine, yours = _with_common_families(mine, yours)
        different = _differences(self, mine, other, yours)
        if different:
            raise InputError(
                f"Models of different specification cannot be added: {'; '.join(different)}. Where families "
                "were chosen by the rows of each, declare those of one model: families=model.families_."
            )
        places = [plan.columns for plan in yours.specification.plans]
        blocks = tuple(yours.statistics.blocks[places.index(plan.columns)] for plan in mine.specification.plans)
        fit = replace(mine, specification=mine.specification.expecting(yours.specification.expected))
        total = copy.copy(self)
        total._fit = fit.with_statistics(mine.statistics + replace(yours.statistics, blocks=blocks))
        total._estimates = None
        return total

    def __radd__(self, other: Any) -> Self:
        """For ``sum(models)``, which starts from 0."""
        if not (isinstance(other, int) and other == 0):
            return NotImplemented
        check_is_fitted(self)
        return copy.copy(self)


def _expected(classes: Any, estimator: str) -> tuple[Any, ...]:
    """The expected classes, sorted, each once."""
    labels = label_values(classes)
    if not len(labels):
        raise InputError("classes is empty. Pass all class labels, or None to allow any label.")
    return tuple(encode_labels(labels, len(labels), estimator).classes.tolist())


def _check_expected(statistics: JointStatistics, expected: tuple[Any, ...]) -> None:
    if not expected:
        return
    known = statistics.counts.classes[statistics.counts.rows > 0]
    unexpected = [label for label in known.tolist() if label not in expected]
    if unexpected:
        raise InputError(f"y has the label {listed(unexpected)}, which is not among classes={listed(expected)}.")


def _with_common_families(mine: Fit, yours: Fit) -> tuple[Fit, Fit]:
    """Both fits with the families chosen by the rows of both."""
    weights = tuple(float(fit.statistics.counts.weight.sum()) for fit in (mine, yours))
    first, second, choices = agree_on_families(
        mine.specification, yours.specification, mine.choices, yours.choices, (weights[0], weights[1])
    )
    return replace(mine, specification=first, choices=choices), replace(yours, specification=second)


def _differences(left: Any, mine: Fit, right: Any, yours: Fit) -> list[str]:
    """How the specifications of two models differ, as text."""
    if type(left) is not type(right):
        return [f"{type(left).__name__} and {type(right).__name__}"]
    first, second = _described(left, mine.specification), _described(right, yours.specification)
    names = [*first, *(name for name in second if name not in first)]
    return [
        f"{name}: {first.get(name, 'absent')} and {second.get(name, 'absent')}"
        for name in names
        if first.get(name) != second.get(name)
    ]


def _described(model: Any, specification: Specification) -> dict[str, str]:
    """A model's options and families as text."""
    texts = {name: plain_text(value) for name, value in model.get_params(deep=False).items()}
    texts["columns"] = plain_text(list(specification.names))
    for plan in specification.plans:
        columns = ", ".join(map(repr, specification.columns(plan)))
        texts[f"family of {columns}"] = plain_text(plan.family)
    return texts


def plain_text(value: Any) -> str:
    """An option as text that differs for any two different options."""
    if isinstance(value, BaseEstimator):
        options = (f"{name}={plain_text(part)}" for name, part in value.get_params(deep=False).items())
        return f"{type(value).__name__}({', '.join(options)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{plain_text(key)}: {plain_text(part)}' for key, part in value.items()))}}}"
    if isinstance(value, np.ndarray | list | tuple):
        return f"[{', '.join(plain_text(part) for part in value)}]"
    return repr(value.item() if isinstance(value, np.generic) else value)
