"""What every generative classifier does: read, summarise, estimate, and answer from the joint model."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from likely.choice import Plan, column_index
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
from likely.families.base import Columns, Family, Quadratic, check_estimation
from likely.joint import Block, Explanation, JointModel
from likely.numerics import AnyArray, Array
from likely.passes import Share, summarise
from likely.sources import Batch, Batches, Tables
from likely.statistics import JointStatistics, unite_classes
from likely.summary import ModelSummary, summarise_model
from likely.tables import Table, frame_backend, is_frame, read_table, to_frame


class GenerativeModel(ClassifierMixin, BaseEstimator):
    """What all generative classifiers share: everything that follows from the joint p(x, y)."""

    class_prior: Any
    estimation: str

    @abstractmethod
    def _plans(self, batches: Batches) -> list[Plan]:
        """Column blocks and their families."""

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y: read, summarise, estimate.

        X is an array, sparse rows or a frame; where it is a frame, y may be the name of its target column. Rows that
        memory cannot hold are an object with a method `chunks`, which yields such parts anew at every call.
        NaN and null are missing cells. `sample_weight` counts rows: a weight of 2 is the row twice, 0 is no row.
        """
        check_estimation(self.estimation)
        batches = Batches(X, y, sample_weight, self._table, type(self).__name__)
        plans = self._plans(batches)
        for plan in plans:
            plan.family.check(self.estimation)
        first, statistics = self._summarise(batches, plans)
        statistics = self._with_declared(statistics)
        model, shares = self._estimate(statistics, plans, first.table.names)
        self._check_fitted(model)
        validate_data(self, first.X, skip_check_array=True)
        self._frame_backend = frame_backend(first.X)
        self._set_fitted(model, shares, statistics, plans)
        return self

    def _summarise(self, batches: Batches, plans: Sequence[Plan]) -> tuple[Batch, JointStatistics]:
        """The statistics of all batches; and the first of these, for what all have in common."""
        first: Batch | None = None
        total: JointStatistics | None = None
        for batch in batches:
            part = _summarise(batch, plans)
            total = part if total is None else total + part
            first = first or batch
        assert first is not None
        assert total is not None
        return first, total

    def _with_declared(self, statistics: JointStatistics) -> JointStatistics:
        """The same statistics with the classes that the class prior declares."""
        names = declared_classes(self.class_prior)
        if not names:
            return statistics
        known = statistics.counts.classes
        try:
            return statistics.align(unite_classes(known, _label_array(names, known)))
        except InputError as error:
            raise InputError(f"class_prior: {error}") from None

    def _estimate(
        self, statistics: JointStatistics, plans: Sequence[Plan], names: Sequence[str]
    ) -> tuple[JointModel, Array]:
        """The joint model from additive statistics alone."""
        shares = estimate_prior(self.class_prior, statistics.counts, self.estimation)
        fitted = []
        for plan, part in zip(plans, statistics.blocks, strict=True):
            mine = names if plan.columns is None else [names[j] for j in plan.columns]
            conditionals = plan.family.estimate(part, self.estimation, mine)
            fitted.append(Block(_index(plan.columns), conditionals, _extra(plan, names), plan.family.reads_sparse))
        return JointModel(statistics.counts.classes, _log(shares), tuple(fitted), tuple(names)), shares

    def _check_fitted(self, model: JointModel) -> None:
        """Raise for options that do not suit what was fitted."""

    def _set_fitted(
        self,
        model: JointModel,
        shares: Array,
        statistics: JointStatistics,
        plans: Sequence[Plan],
    ) -> None:
        self.model_ = model
        self.classes_ = model.classes
        self.class_prior_ = shares
        self.statistics_ = statistics
        self._described = [plan.family.describe() for plan in plans]
        self.families_: dict[Any, Family] = {}
        for plan in plans:
            columns = tuple(model.names) if plan.columns is None else tuple(model.names[j] for j in plan.columns)
            if (plan.joint or not plan.family.apart) and len(columns) > 1:
                self.families_[columns] = plan.family
            else:
                self.families_.update(dict.fromkeys(columns, plan.family))

    def _table(self, X: Any) -> Table:
        """The table that was handed over."""
        return read_table(X)

    def _read(self, X: Any) -> Table:
        """Rows to evaluate, with the columns of the fit.

        Where the model has several blocks, the columns of a frame are found by their names, in any order.
        """
        table = self._table(X)
        names = self.model_.names
        if len(self.model_.blocks) > 1 and is_frame(X) and set(table.names) == set(names):
            table = table.reordered(names)
        else:
            validate_data(self, X, reset=False, skip_check_array=True)
        return table

    def _ask(self, X: Any, question: Callable[[JointModel, Table], Array]) -> Array:
        """The model's answers about all rows of X, one batch after another."""
        parts = [question(self.model_, table) for table in self._tables(X)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _tables(self, X: Any) -> Iterator[Table]:
        check_is_fitted(self)
        for table in Tables(X, self._read):
            if getattr(self, "unseen", "missing") == "error":
                self._refuse_unseen(table)
            yield table

    def _refuse_unseen(self, table: Table) -> None:
        for block in self.model_.blocks:
            for j, words in zip(block.index, block.conditionals.vocabularies or (), strict=False):
                found = table.unseen(int(j), words)
                if found is not None:
                    raise InputError(
                        f"Column {table.names[j]!r}, row {found[0]}: {found[1]!r} was not seen in training: "
                        f"{listed(words)}. Hint: unseen='missing', or Categorical(categories=...)."
                    )

    # -- answers

    def log_joint(self, X: Any) -> Array:
        """log p(x, class), (rows, classes)."""
        return self._ask(X, JointModel.log_joint)

    def log_density(self, X: Any) -> Array:
        """log p(x), (rows,)."""
        return self._ask(X, JointModel.log_density)

    def score_samples(self, X: Any) -> Array:
        """log p(x), (rows,): scikit-learn's name for `log_density`."""
        return self.log_density(X)

    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each row."""
        codes = self._ask(X, JointModel.most_probable)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (rows, classes)."""
        return self._ask(X, JointModel.posterior)

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (rows, classes)."""
        return self._ask(X, JointModel.log_posterior)

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second class where there are two, (rows,); else scores (rows, classes).

        Scores are ``X @ coef_.T + intercept_`` for linear models, and log p(class | x) for others.
        """
        check_is_fitted(self)
        return self._ask(X, JointModel.log_odds if len(self.classes_) == 2 else JointModel.scores)

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
        parts = [self.model_.explain(table) for table in self._tables(X)]
        if len(parts) == 1:
            return parts[0]
        evidence, offset = (np.concatenate([getattr(part, name) for part in parts]) for name in ("evidence", "offset"))
        return Explanation(evidence, offset, parts[0].columns)

    def sample(self, n_samples: int = 1, label: Any = None, random_state: Any = None) -> tuple[Any, AnyArray]:
        """Draw rows with their labels from the joint, or from the class `label` alone."""
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples={n_samples!r} is not a positive whole number.")
        code = None if label is None else self._code_of(label)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**32, dtype=np.uint64))
        columns, codes = self.model_.sample(int(n_samples), code, rng)
        X: Any = (
            np.column_stack(columns)
            if self._frame_backend is None
            else to_frame(columns, self.model_.names, self._frame_backend)
        )
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
        name = type(self).__name__
        return summarise_model(name, self.estimation, self.model_, self.statistics_, self._described, self.class_prior_)


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


def _index(columns: tuple[int, ...] | None) -> AnyArray | None:
    return None if columns is None else np.array(columns, dtype=np.intp)


def _extra(plan: Plan, names: Sequence[str]) -> AnyArray | None:
    """Columns that a block reads after its own."""
    wanted = plan.family.extra()
    return np.array([column_index(name, names) for name in wanted], dtype=np.intp) if wanted else None


def _summarise(batch: Batch, plans: Sequence[Plan]) -> JointStatistics:
    """One pass over the rows of a batch, for all blocks."""
    shares = [_share(batch.table, batch.counts.classes, plan) for plan in plans]
    return JointStatistics(batch.counts, tuple(summarise(batch.table, batch.codes, batch.weights, shares)))


def _share(table: Table, classes: AnyArray, plan: Plan) -> Share:
    """What one block reads and sums."""
    family, own = plan.family, _index(plan.columns)
    names = tuple(table.names if own is None else (table.names[j] for j in own))
    if family.reads_labels:
        places = range(table.width) if own is None else own.tolist()
        words = tuple(labels.vocabulary for labels in table.labels(places))
        columns = Columns(names, words, plan.joint)
        return Share(own, table.codes(places), lambda: family.builder(classes, columns))
    extra = _extra(plan, table.names)
    index = own if extra is None else np.concatenate([np.arange(table.width) if own is None else own, extra])
    sparse = table.is_sparse and family.reads_sparse
    return Share(
        index, table.numbers(index, sparse), lambda: family.builder(classes, Columns(names, None, plan.joint)), sparse
    )
