"""Statistics add up: more rows and other models are added to a fit, and rows and classes are subtracted from it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from likely.choice.agreement import agree_on_families
from likely.choice.early_choices import warn_of_early_choices
from likely.choice.fitting import fit_by_sums, sum_rows
from likely.data.batches import Batch, Batches
from likely.data.labels import encode_labels, label_values
from likely.data.table import Table
from likely.errors import InputError, listed
from likely.estimators.statistics_fits import StatisticsFits
from likely.families.base import Family
from likely.model.calibration import Calibration
from likely.model.fit import Fit
from likely.model.joint import JointModel
from likely.model.specification import Specification
from likely.numerics.threads import one_at_a_time
from likely.statistics.joint import JointStatistics
from likely.typing import Array, LabelsLike, TableLike, TargetsLike, WeightsLike

SHOWN = 3  # columns that an error names
LONGEST = 60  # characters of an option in an error
Block: TypeAlias = tuple[tuple[str, ...], Family | None]  # names of the columns, and their family


class StatisticsAlgebra(StatisticsFits):
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
        if not self.__sklearn_is_fitted__():
            self._check_options()
            rows = self._engine_rows(X, y, sample_weight)
            if rows is not None:
                specification = self._specify_engine_rows(rows, expected)
                statistics = rows.statistics(specification)
                _check_expected(statistics, specification.expected)
                return self._set_statistics(specification, statistics, rows.schema(), rows.targets, estimate=False)
            batches = self._batches(X, y, sample_weight, self._table)
            specification, first = self._specify(batches, expected), batches.first
            fit = fit_by_sums(specification, batches)
            _check_expected(fit.statistics, specification.expected)
            if hasattr(self, "families"):
                warn_of_early_choices(self.families, fit.families, batches)
            return self._set_fit(first, fit)
        self._fit.check_additive("partial_fit")
        specification = self._fit.specification.expecting(expected)
        more = self._sums(specification, X, y, sample_weight)
        _check_expected(more, specification.expected)
        fit = replace(self._fit, specification=specification)
        self._fit, self._estimates = fit.with_statistics(self._fit.statistics + more), None
        return self

    @one_at_a_time
    def forget(self, X: TableLike, y: TargetsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Remove training rows from the model, as if it had been fitted without them.

        Classes and categories without remaining rows are removed. Rows that cannot have been in the fit raise an error
        where the statistics show it, and the model is then unchanged. Models that were fitted with unlabeled rows
        cannot be updated; fit them again.

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
        fit.check_additive("forget")
        left = fit.statistics - self._sums(fit.specification, X, y, sample_weight)
        fit.specification.check_possible(left, fit.statistics)
        self._fit, self._estimates = fit.with_statistics(left), None
        return self

    def _sums(self, specification: Specification, X: Any, y: Any, sample_weight: Any) -> JointStatistics:
        """The statistics of rows with the columns of the fit."""
        rows = self._engine_rows(X, y, sample_weight)
        if rows is not None:
            return rows.statistics(specification)
        return sum_rows(specification, self._batches(X, y, sample_weight, self._read))

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
        fit = self._fitted()
        fit.check_additive("drop_class")
        self._fit, self._estimates = fit.with_statistics(fit.statistics.without(self._code_of(label))), None
        return self

    def _of_other_rows(self, batches: Batches) -> Self:
        """A model with the same specification and calibration, and the statistics of these rows alone."""
        fit = self._fitted()
        fit.check_additive("structure_of")
        other = copy.copy(self)
        classes = tuple(fit.statistics.counts.classes.tolist())
        specification = fit.specification.expecting(classes)  # also of those that have no rows here
        fit = replace(fit, specification=specification)
        other._fit, other._estimates = fit.with_statistics(sum_rows(specification, batches)), None
        return other

    def __add__(self, other: Any) -> Self:
        """Combine two fitted models into a new one, as if it had been fitted to the rows of both.

        They must have the same options, columns and families. Where the families were chosen by leave-one-out log-loss,
        the losses of both are added. Calibrations are averaged, weighted by the rows of both.
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
            raise InputError(f"Models of different specification cannot be added: {'; '.join(different)}.")
        places = [plan.columns for plan in yours.specification.plans]
        blocks = tuple(yours.statistics.blocks[places.index(plan.columns)] for plan in mine.specification.plans)
        fit = replace(
            mine,
            specification=mine.specification.expecting(yours.specification.expected),
            calibration=_common_calibration(mine, yours),
        )
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


def _common_calibration(mine: Fit, yours: Fit) -> Calibration | None:
    """The mean calibration, weighted by rows; a model without calibration counts as one with t = 1 and c = 0."""
    if mine.calibration is None and yours.calibration is None:
        return None
    first, second = (each.calibration or Calibration.identity(each.statistics.counts.classes) for each in (mine, yours))
    weights = float(mine.statistics.counts.weight.sum()), float(yours.statistics.counts.weight.sum())
    return first.merged(second, weights)


def _differences(left: Any, mine: Fit, right: Any, yours: Fit) -> list[str]:
    """How the specifications of two models differ, as short texts; the last one ends with a remedy for families."""
    if type(left) is not type(right):
        return [f"{type(left).__name__} and {type(right).__name__}"]
    first, second = _options(left, mine.specification), _options(right, yours.specification)
    changed = [name for name in first if first[name] != second[name]]
    blocks = _column_blocks(mine.specification), _column_blocks(yours.specification)
    columns = [] if "columns" in changed else [name for name in blocks[0] if _unlike(blocks[0][name], blocks[1][name])]
    if columns and "families" in changed:
        changed.remove("families")  # the families of the columns show the difference
    texts = [f"{name}: {_shortened(first[name])} and {_shortened(second[name])}" for name in changed]
    if columns:
        named = [f"{column!r}: {_family_names(*(each[column] for each in blocks))}" for column in columns[:SHOWN]]
        more = f" and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
        texts.append(f"families of {', '.join(named)}{more}. Fit both models with families=first.families_")
    return texts


def _options(model: Any, specification: Specification) -> dict[str, str]:
    """A model's options and columns as text."""
    texts = {name: plain_text(value) for name, value in model.get_params(deep=False).items()}
    return texts | {"columns": plain_text(list(specification.names))}


def _column_blocks(specification: Specification) -> dict[str, Block]:
    """The columns and the family of the block of each column; no columns and None where it is set aside."""
    blocks: list[Block] = [(specification.columns(plan), plan.family) for plan in specification.plans]
    return dict.fromkeys(specification.names, ((), None)) | {name: block for block in blocks for name in block[0]}


def _unlike(mine: Block, yours: Block) -> bool:
    """Whether a column has different families, or is in a block with different columns."""
    return mine[0] != yours[0] or plain_text(mine[1]) != plain_text(yours[1])


def _family_names(mine: Block, yours: Block) -> str:
    """The families of a column in two models, with as few words as distinguish them."""
    writers: list[Callable[[tuple[str, ...], Family], str]] = [
        lambda columns, family: type(family).__name__,
        lambda columns, family: family.describe(),
        lambda columns, family: f"{type(family).__name__} of {len(columns)} column{'' if len(columns) == 1 else 's'}",
        lambda columns, family: f"{type(family).__name__} with {listed(columns, SHOWN)}",
        lambda columns, family: _shortened(plain_text(family)),
    ]
    names = [
        ["none" if block[1] is None else write(block[0], block[1]) for write in writers] for block in (mine, yours)
    ]
    pairs = list(zip(*names, strict=True))
    return " and ".join(next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1]))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


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
