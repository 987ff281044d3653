"""Everything that follows from a joint density p(x, y): predictions, explanations, decisions, samples, new priors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from likely.data.batches import Batches, Tables, is_source, targets_apart
from likely.data.frames import split_target, to_frame, typed, whole_frame
from likely.data.labels import present_labels
from likely.data.table import Table
from likely.errors import InputError, listed
from likely.estimators.base import Learner
from likely.families.base import Quadratic
from likely.model.boundary import LinearBoundary, QuadraticBoundary, boundary
from likely.model.class_prior import PriorShift, estimate_prior, estimate_shift
from likely.model.decision import Decisions, decide
from likely.model.imputation import fill_cells
from likely.model.joint import Explanation, JointModel
from likely.model.specification import log_probabilities
from likely.model.summary import ModelSummary, summarise_model
from likely.model.typicality import Typicality
from likely.typing import AnyArray, Array


class JointDensityEstimator(Learner):
    """An estimator with a joint density p(x, y), whether y was observed or not, and all that follows from it."""

    prior_shift_: PriorShift

    # -- predictions

    def _over_tables(self, X: Any, method: Callable[[JointModel, Table], Array]) -> Array:
        """The results of a method of the model for all rows of X, batch by batch."""
        parts = [method(self.model_, table) for table in self._tables(X)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _tables(self, X: Any) -> Iterator[Table]:
        check_is_fitted(self)
        for table in Tables(X, self._read):
            refuse_unseen(self, self.model_, table)
            yield table

    def log_joint(self, X: Any) -> Array:
        """log p(x, class), (rows, classes)."""
        return self._over_tables(X, JointModel.log_joint)

    def log_density(self, X: Any) -> Array:
        """log p(x), (rows,)."""
        return self._over_tables(X, JointModel.log_density)

    def score_samples(self, X: Any) -> Array:
        """log p(x), (rows,): scikit-learn's name for `log_density`."""
        return self.log_density(X)

    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each row."""
        codes = self._over_tables(X, JointModel.most_probable)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (rows, classes)."""
        return self._over_tables(X, JointModel.posterior)

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (rows, classes)."""
        return self._over_tables(X, JointModel.log_posterior)

    def novelty(self, X: Any, n_samples: int = 2000, random_state: Any = 0) -> Array:
        """How usual each row is, (rows,): near 0 where no class would produce it, uniform for rows of the model itself.

        It is the largest, over the classes, probability that a class produces a row at most as likely as this one, in
        the cells that are there. For one Gaussian block that is a χ² or F probability; otherwise `n_samples` draws of
        each class tell, the same for all rows.
        """
        rng = np.random.default_rng(check_random_state(random_state).randint(2**32, dtype=np.uint64))
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples={n_samples!r} is not a positive whole number.")
        drawn = Typicality(self.model_, int(n_samples), rng)
        return self._over_tables(X, lambda _, table: drawn.of(table))

    def impute(self, X: Any, y: Any = None) -> Any:
        """X with its missing cells filled: numbers with their expectation, labels with the most probable one.

        Both are given the cells that are there and, where `y` tells it, the label of the row; labels may be missing.
        Where y is the name of a column, X comes back without it.
        A frame comes back as one. Columns that no block models stay as they are.
        """
        check_is_fitted(self)
        if is_source(X):
            raise InputError("impute needs the rows in memory, and X comes in chunks. Impute one chunk after another.")
        X, y = split_target(whole_frame(X), y)
        table = self._read(X)
        codes = None
        if y is not None:
            labels, missing = present_labels(y, self.unlabeled)
            codes = np.full(table.rows, -1)
            where = np.arange(table.rows) if missing is None else np.flatnonzero(~missing)
            if len(labels) != len(where):
                raise InputError(f"X has {table.rows} rows and y has {len(labels)} labels.")
            codes[where] = [self._code_of(label) for label in labels.tolist()]
        return fill_cells(self.model_, table, codes, X)

    def adapt_prior(self, X: Any, max_iter: int = 1000, tol: float = 1e-10) -> Self:
        """The same class-conditionals with class shares estimated from rows without labels: a new, fitted estimator.

        Its `prior_shift_` tells the shares, and a likelihood-ratio test of whether they are other than before
        (Saerens, Latinne and Decaestecker 2002).
        """
        check_is_fitted(self)
        shift = estimate_shift(self.predict_log_proba(X), self.class_prior_, max_iter, tol)
        other = self.with_prior(dict(zip(self.classes_.tolist(), shift.prior.tolist(), strict=True)))
        other.prior_shift_ = shift
        return other

    def left_out_proba(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """p(class | x), (rows, classes), of rows that were learnt, each by the model without it: leave-one-out.

        X, y and the weights are those that were learnt, or some of them. Nothing is fitted again: a row's statistics
        are taken out of its class, in closed form where the family has one. What the options derive from the data
        (default priors, shrinkage intensities, vocabularies, which columns vary) stays that of all rows.
        """
        self._fitted().check_additive("left_out_proba")
        parts = []
        for batch in Batches(X, y, sample_weight, self._read, type(self).__name__, keep_all_classes=True):
            refuse_unseen(self, self.model_, batch.table)
            unknown = [label for label in batch.counts.classes.tolist() if label not in self.classes_.tolist()]
            if unknown:
                raise InputError(f"y has the label {listed(unknown)}, which is not among the classes of the model.")
            parts.append(self._specification.leave_one_out_posterior(self.model_, self.statistics_, batch))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second class where there are two, (rows,); else scores (rows, classes).

        Scores are ``X @ coef_.T + intercept_`` for linear models, and log p(class | x) for others.
        """
        check_is_fitted(self)
        return self._over_tables(X, JointModel.log_odds if len(self.classes_) == 2 else JointModel.scores)

    def decide(self, X: Any, loss: Any = None, reject: float | None = None) -> Decisions:
        """The action of least expected loss for each row, or rejection where that costs less.

        `loss[true class, action]` is an array, a mapping {class: {action: cost}}, or a frame with actions as
        columns, whose index names the classes, or whose rows are the classes in their order where it has no index;
        None is 0 for the right class and 1 for any other.
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
        """Draw rows with their labels from the joint, or from the class `label` alone.

        A frame comes from the library that the model was fitted on, and its columns have their types where what was
        drawn fits them; those of a model from a file are plain.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples={n_samples!r} is not a positive whole number.")
        code = None if label is None else self._code_of(label)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**32, dtype=np.uint64))
        columns, codes = self.model_.sample(int(n_samples), code, rng)
        schema = self._frame
        if schema.backend is None:
            return np.column_stack(columns), self.classes_[codes]
        frame = to_frame(columns, schema.labels or self.model_.names, schema.backend)
        return frame if schema.types is None else typed(frame, schema.types), self.classes_[codes]

    def with_prior(self, prior: Any) -> Self:
        """The same class-conditionals with another class prior: a new, fitted estimator."""
        fit = self._fitted()
        class_prior = estimate_prior(prior, fit.statistics.counts, fit.specification.estimation)
        other = copy.copy(self)
        other.class_prior = prior
        other._fit = replace(fit, specification=replace(fit.specification, class_prior=prior))
        other._estimates = self.model_.with_log_prior(log_probabilities(class_prior)), class_prior
        return other

    def boundary(self, first: Any, second: Any) -> LinearBoundary | QuadraticBoundary:
        """log p(first | x) − log p(second | x) in closed form: zero on the boundary of the two classes."""
        return boundary(self._form(), self.classes_, first, second)

    def _form(self) -> Quadratic:
        check_is_fitted(self)
        form = self.model_.quadratic()
        if form is None:
            names = sorted({type(plan.family).__name__ for plan in self._specification.plans})
            raise AttributeError(
                f"{type(self).__name__} with estimation={self.estimation!r} and columns of {', '.join(names)} has no "
                "linear or quadratic form in x. Columns of Gaussian, Bernoulli, Poisson, Geometric, NegativeBinomial "
                "and Exponential have one under estimation='mle' and 'map'; a posterior predictive, such as a Student "
                "t, has none."
            )
        return form

    def summary(self) -> ModelSummary:
        """What was fitted, as plain data; ``print(model.summary())`` shows it."""
        check_is_fitted(self)
        name = type(self).__name__
        described = [plan.family.describe() for plan in self._specification.plans]
        class_prior = self.class_prior_
        estimation = self._specification.estimation
        return summarise_model(name, estimation, self.model_, self.statistics_, described, class_prior, self.choices_)


class GenerativeModel(ClassifierMixin, JointDensityEstimator):
    """Base of all generative classifiers."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose label is predicted; y is the labels, or the name of the column of X that has them."""
        return float(super().score(*targets_apart(X, y), sample_weight))


def refuse_unseen(estimator: Any, model: JointModel, table: Table) -> None:
    """Raise for categories that were not seen in training, under unseen='error'."""
    if getattr(estimator, "unseen", "missing") != "error":
        return
    for block in model.blocks:
        for j, words in zip(block.index, block.conditionals.vocabularies or (), strict=False):
            found = table.unseen(int(j), words)
            if found is not None:
                raise InputError(
                    f"Column {table.names[j]!r}, row {found[0]}: {found[1]!r} was not seen in training: "
                    f"{listed(words)}. Use unseen='missing', or Categorical(categories=...)."
                )
