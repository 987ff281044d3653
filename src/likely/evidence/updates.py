"""Updates of a fitted `EvidenceClassifier`: add or remove rows, add another model, and learn the weights again."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.data.batches import Batches
from likely.data.labels import label_values
from likely.data.parts import source_of
from likely.data.sources import in_memory
from likely.data.table import Table
from likely.errors import InputError, listed
from likely.estimators.classifiers import GenerativeClassifier
from likely.evidence.fitting import learn_weights, weighted_model
from likely.evidence.model import EvidenceModel
from likely.evidence.training import DistinctRows
from likely.evidence.weights import PooledWeights
from likely.numerics.progress import progress
from likely.numerics.threads import one_at_a_time, single_threaded_blas
from likely.typing import AnyArray, Array, LabelsLike, TableLike, TargetsLike, WeightsLike

ROUNDING = 1e-9  # of the weight of a class, relative


class EvidenceUpdates:
    """Mixin with the updates of a fitted model. Structures (cells, ranks and trees) never change."""

    if TYPE_CHECKING:
        max_rows: int
        model_: EvidenceModel
        pooled_: PooledWeights
        generative_: GenerativeClassifier
        _shares: Array
        _rows: int

        @property
        def classes_(self) -> AnyArray: ...
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self: ...
        def _read(self, X: Any, start: int = 0) -> Table: ...

    @one_at_a_time
    def partial_fit(
        self,
        X: TableLike,
        y: TargetsLike,
        classes: LabelsLike | None = None,
        sample_weight: WeightsLike | None = None,
    ) -> Self:
        """Add rows to all counts of a fitted model. Structures and weights of the fit are kept.

        An unfitted model is fitted to these rows. They determine structures and weights, so the first batch should be
        large. It must be in memory.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        y : array-like of shape (n_samples,) or str
            Labels among `classes_`, or the name of the column of X that has them.
        classes : array-like of shape (n_classes,), default=None
            All classes, each of which must occur in the first batch. None is the classes of the first batch.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. None is 1 for all rows.

        Returns
        -------
        EvidenceClassifier
            The fitted estimator itself.

        See Also
        --------
        reweigh : Learns the weights again.
        forget : Removes rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(n_trees=5).fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
        >>> model.summary().class_weights
        (50.0, 50.0, 50.0)
        """
        model = self if hasattr(self, "model_") else copy.copy(self).fit(X, y, sample_weight)
        if classes is not None:
            _check_classes(label_values(classes).tolist(), model.classes_)
        if model is self:
            return self._update(X, y, sample_weight, 1.0)
        vars(self).update(vars(model))
        return self

    @one_at_a_time
    def forget(self, X: TableLike, y: TargetsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Remove training rows from all counts. Structures and weights of the fit are kept.

        Rows that were not in the fit raise an error if the counts reveal it, for example because a count would become
        negative. After an error the model is unchanged. At least one row of each class must remain.

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
        EvidenceClassifier
            The fitted estimator itself.

        See Also
        --------
        partial_fit : Adds rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(n_trees=5).fit(X, y).forget(X[:10], y[:10])
        >>> model.summary().class_weights
        (40.0, 50.0, 50.0)
        """
        return self._update(X, y, sample_weight, -1.0)

    @single_threaded_blas()
    def _update(self, X: Any, y: Any, sample_weight: Any, sign: float) -> Self:
        """Add or remove rows; everything is computed before the first attribute changes."""
        check_is_fitted(self)
        X = source_of(X)
        model, count = self.model_, 0
        for batch in Batches(X, y, sample_weight, self._read, type(self).__name__):
            rows = DistinctRows.of(batch, model.encoding.columns, self.classes_)
            rows = replace(rows, positions=rows.positions + count + (self._rows if sign > 0.0 else 0))
            if sign < 0.0:
                _check_remaining(model, rows)
            for part in rows.parts():
                model = model.updated(part.encoded(model.encoding), sign)
            count += batch.table.rows
        core = copy.deepcopy(self.generative_)
        if sign > 0.0:
            core.partial_fit(X, y, sample_weight=sample_weight)
        else:
            core.forget(X, y, sample_weight=sample_weight)
        self.model_, self.generative_ = model, core
        self._rows += count if sign > 0.0 else 0
        return self

    def __add__(self, other: Any) -> Self:
        """Add the counts of two models with the same structures: the result is a model of the rows of both."""
        if not isinstance(other, EvidenceUpdates):
            return NotImplemented
        check_is_fitted(self)
        check_is_fitted(other)
        if self.model_.structure != other.model_.structure:
            raise InputError(
                "Models with different structures (cells, ranks, trees) cannot be added. Fit one of them with those of "
                "the other: EvidenceClassifier().fit(X, y, structure_of=first)."
            )
        total = copy.copy(self)
        total.model_ = self.model_ + other.model_.renumbered(self._rows)
        total.generative_ = self.generative_ + other.generative_
        total._rows = self._rows + other._rows
        return total

    @one_at_a_time
    @single_threaded_blas()
    def reweigh(self, X: TableLike, y: TargetsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Learn the weights again, from leave-one-out evidence of training rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            All or some of the training rows, with at least one row of each class.
        y : array-like of shape (n_samples,) or str
            Their class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights in the fit. None is 1 for all rows.

        Returns
        -------
        EvidenceClassifier
            The fitted estimator itself.

        See Also
        --------
        partial_fit : Adds rows and keeps the weights.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(n_trees=5).fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
        >>> round(model.reweigh(X, y).score(X, y), 2)
        0.98
        """
        check_is_fitted(self)
        batch = Batches(in_memory(X, y, sample_weight), y, sample_weight, self._read, type(self).__name__).first
        rows = DistinctRows.of(batch, self.model_.encoding.columns, self.classes_)
        drawn, _ = rows.sampled(int(self.max_rows))
        training = rows.take(drawn).encoded(self.model_.encoding)
        absent = self.classes_[training.class_weights == 0.0]
        if len(absent):
            raise InputError(f"y has no row of the class {listed(absent.tolist())}. Weights need rows of all classes.")
        views = [each.view for each in self.model_.views]
        with progress("weights of EvidenceClassifier") as step:
            learnt = learn_weights(views, training, step)
        model = weighted_model(views, learnt, self.model_.encoding, training)
        self.model_ = replace(self.model_, views=model.views, offsets=model.offsets)
        self.pooled_, self._shares = learnt.pooled, learnt.shares
        return self


def _check_classes(expected: list[Any], classes: AnyArray) -> None:
    """Raise if the expected classes differ from those of the fit."""
    unknown = [label for label in expected if label not in classes.tolist()]
    if unknown:
        raise InputError(
            f"classes has the label {listed(unknown)}, and the first rows have only {listed(classes.tolist())}. They "
            "determine structures and weights: fit to rows of all classes first."
        )
    unexpected = [label for label in classes.tolist() if label not in expected]
    if unexpected:
        raise InputError(f"y has the label {listed(unexpected)}, which is not among classes={listed(expected)}.")


def _check_remaining(model: EvidenceModel, rows: DistinctRows) -> None:
    """Raise if the remaining weight of a class would be negative or zero."""
    before = model.class_weights
    removed = np.bincount(rows.codes, rows.weights, minlength=len(before))
    left = before - removed
    if np.any(left < -ROUNDING * before):
        raise InputError(
            f"More rows are to be removed than were added, in class {listed(model.classes[left < 0.0].tolist())}. Pass "
            "rows as they were in the fit, with the same weights."
        )
    empty = (removed > 0.0) & (left <= ROUNDING * before)
    if empty.any():
        raise InputError(
            f"No row of class {listed(model.classes[empty].tolist())} would be left. Structures and weights are those "
            "of all classes: fit again without these rows."
        )
