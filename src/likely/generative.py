"""What every generative classifier does: read, summarise, estimate, and answer from the joint model."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from likely.decision import (
    Decisions,
    LinearBoundary,
    QuadraticBoundary,
    boundary,
    decide,
    declared_classes,
    estimate_prior,
)
from likely.errors import InputError, listed
from likely.families.base import Family, Quadratic, check_estimation
from likely.joint import Block, Explanation, JointModel
from likely.numerics import AnyArray, Array
from likely.passes import summarise
from likely.statistics import Codes, Counts, JointStatistics, unite_classes
from likely.summary import ModelSummary, summarise_model
from likely.tables import Table, frame_backend, read_labels, read_table, read_weights, split_target, to_frame


class GenerativeModel(ClassifierMixin, BaseEstimator):
    """What all generative classifiers share: everything that follows from the joint p(x, y)."""

    class_prior: Any
    estimation: str

    @abstractmethod
    def _families(self, names: Sequence[str]) -> list[tuple[tuple[int, ...] | None, Family]]:
        """Column blocks and their families; None stands for all columns."""

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y: read, summarise, estimate.

        X is an array or a frame of numbers; where it is a frame, y may be the name of its target
        column. `sample_weight` counts rows: a weight of 2 is the row twice, 0 is no row.
        """
        check_estimation(self.estimation)
        X, y = split_target(X, y)
        table = read_table(X)
        counts, codes, weights = self._read_target(table, y, sample_weight)
        blocks = self._families(table.names)
        for _, family in blocks:
            family.check(self.estimation)
        statistics = _summarise(table, codes, weights, counts, blocks)
        model, shares = self._estimate(statistics, blocks, table.names)
        self._check_fitted(model)
        validate_data(self, X, skip_check_array=True)
        self._frame_backend = frame_backend(X)
        self._set_fitted(model, shares, statistics, blocks)
        return self

    def _read_target(self, table: Table, y: Any, sample_weight: Any) -> tuple[Counts, Codes, Array | None]:
        """Class counts, codes and weights; classes are those with rows, and those that the prior declares."""
        classes, codes = read_labels(y, table.rows, type(self).__name__)
        weights = read_weights(sample_weight, table.rows)
        counts = Counts.of(classes, codes, weights)
        wanted = classes[counts.rows > 0]
        declared = declared_classes(self.class_prior)
        if declared:
            try:
                wanted = unite_classes(wanted, _label_array(declared, classes))
            except InputError as error:
                raise InputError(f"class_prior: {error}") from None
        if len(wanted) != len(classes) or not np.array_equal(wanted, classes):
            place = np.searchsorted(wanted, classes)
            codes = np.minimum(place, len(wanted) - 1)[codes].astype(codes.dtype)
            counts = Counts.of(wanted, codes, weights)
        return counts, codes, weights

    def _estimate(
        self, statistics: JointStatistics, blocks: Sequence[tuple[Any, Family]], names: Sequence[str]
    ) -> tuple[JointModel, Array]:
        """The joint model from additive statistics alone."""
        shares = estimate_prior(self.class_prior, statistics.counts, self.estimation)
        fitted = []
        for (columns, family), part in zip(blocks, statistics.blocks, strict=True):
            mine = names if columns is None else [names[j] for j in columns]
            index = None if columns is None else np.array(columns, dtype=np.intp)
            fitted.append(Block(index, family.estimate(part, self.estimation, mine)))
        return JointModel(statistics.counts.classes, _log(shares), tuple(fitted), tuple(names)), shares

    def _check_fitted(self, model: JointModel) -> None:
        """Raise for options that do not suit what was fitted."""

    def _set_fitted(
        self,
        model: JointModel,
        shares: Array,
        statistics: JointStatistics,
        blocks: Sequence[tuple[Any, Family]],
    ) -> None:
        self.model_ = model
        self.classes_ = model.classes
        self.class_prior_ = shares
        self.statistics_ = statistics
        self.families_ = {
            tuple(model.names) if columns is None else tuple(model.names[j] for j in columns): family
            for columns, family in blocks
        }

    def _read(self, X: Any) -> Table:
        """Rows to evaluate, with the columns of the fit."""
        check_is_fitted(self)
        table = read_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return table

    # -- answers

    def log_joint(self, X: Any) -> Array:
        """log p(x, class), (rows, classes)."""
        table = self._read(X)
        return self.model_.log_joint(table)

    def log_density(self, X: Any) -> Array:
        """log p(x), (rows,)."""
        table = self._read(X)
        return self.model_.log_density(table)

    def score_samples(self, X: Any) -> Array:
        """log p(x), (rows,): scikit-learn's name for `log_density`."""
        return self.log_density(X)

    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each row."""
        table = self._read(X)
        labels: AnyArray = self.classes_[self.model_.most_probable(table)]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (rows, classes)."""
        table = self._read(X)
        return self.model_.posterior(table)

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (rows, classes)."""
        table = self._read(X)
        return self.model_.log_posterior(table)

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second class where there are two, (rows,); else scores (rows, classes).

        Scores are ``X @ coef_.T + intercept_`` for linear models, and log p(class | x) for others.
        """
        table = self._read(X)
        return self.model_.log_odds(table) if len(self.classes_) == 2 else self.model_.scores(table)

    def decide(self, X: Any, loss: Any = None, reject: float | None = None) -> Decisions:
        """The action of least expected loss for each row, or rejection where that costs less.

        `loss[true class, action]` is an array, a mapping {class: {action: cost}}, or a pandas frame with
        classes as index and actions as columns; None is 0 for the right class and 1 for any other.
        """
        return decide(self.predict_proba(X), self.classes_, loss, reject)

    def explain(self, X: Any) -> Explanation:
        """Exact, additive log-evidence of each column for each class.

        A diagonal block gives every column its own term. In a block with a full covariance the terms are
        the chain of conditionals in the block's order of columns: the first column's own density, the
        second's given the first, and so on.
        """
        table = self._read(X)
        return self.model_.explain(table)

    def sample(self, n_samples: int = 1, label: Any = None, random_state: Any = None) -> tuple[Any, AnyArray]:
        """Draw rows with their labels from the joint, or from the class `label` alone."""
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples={n_samples!r} is not a positive whole number.")
        code = None if label is None else self._code_of(label)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**32, dtype=np.uint64))
        rows, codes = self.model_.sample(int(n_samples), code, rng)
        X = rows if self._frame_backend is None else to_frame(rows, self.model_.names, self._frame_backend)
        return X, self.classes_[codes]

    def _code_of(self, label: Any) -> int:
        labels = self.classes_.tolist()
        if label not in labels:
            raise InputError(f"Class {label!r} is not among the classes {listed(labels)}.")
        return int(labels.index(label))

    def with_prior(self, prior: Any) -> Self:
        """The same class-conditionals with another class prior: a new, fitted estimator."""
        check_is_fitted(self)
        shares = estimate_prior(prior, self.statistics_.counts, self.estimation)
        other = copy.copy(self)
        other.class_prior = prior
        other.class_prior_ = shares
        other.model_ = self.model_.with_log_prior(_log(shares))
        return other

    def boundary(self, first: Any, second: Any) -> LinearBoundary | QuadraticBoundary:
        """log p(first | x) − log p(second | x) in closed form: zero on the boundary of the two classes."""
        return boundary(self._form(), self.classes_, first, second)

    def _form(self) -> Quadratic:
        check_is_fitted(self)
        form = self.model_.quadratic()
        if form is None:
            raise AttributeError(
                f"{type(self).__name__} with estimation={self.estimation!r} has no linear or quadratic form. Gaussian "
                "columns have one under estimation='mle' and 'map'; their posterior predictive is a Student t."
            )
        return form

    def summary(self) -> ModelSummary:
        """What was fitted, as plain data; ``print(model.summary())`` shows it."""
        check_is_fitted(self)
        families = list(self.families_.values())
        name = type(self).__name__
        return summarise_model(name, self.estimation, self.model_, self.statistics_, families, self.class_prior_)


def _label_array(labels: list[Any], like: AnyArray) -> AnyArray:
    """Declared labels as a sorted array of the kind of those in y."""
    try:
        ordered = sorted(labels)
        array = np.empty(len(labels), dtype=object)
        array[:] = ordered
        return array if like.dtype.kind == "O" else np.array(ordered)
    except TypeError:
        raise InputError(f"class_prior names classes that cannot be sorted: {listed(labels)}.") from None


def _log(shares: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(shares)


def _summarise(
    table: Table, codes: Codes, weights: Array | None, counts: Counts, blocks: Sequence[tuple[Any, Family]]
) -> JointStatistics:
    """One pass over the rows, for all blocks."""
    makers = []
    for columns, family in blocks:
        index = None if columns is None else np.array(columns, dtype=np.intp)
        size = table.width if columns is None else len(columns)

        def make(family: Family = family, size: int = size) -> Any:
            return family.builder(counts.classes, size)

        makers.append((index, make))
    return JointStatistics(counts, tuple(summarise(table, codes, weights, makers)))
