"""Everything that follows from a joint density p(x, y): predictions, explanations, decisions, samples, new priors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.choice.column_record import SET_ASIDE, column_lines
from likely.choice.default_families import Declared, Others
from likely.choice.row_sample import MOST_ROWS, held_out_copies
from likely.data.batches import Batches
from likely.data.frames import rows_and_target, split_target, to_frame, typed
from likely.data.labels import present_labels
from likely.data.sources import Tables, is_source
from likely.data.table import Table
from likely.data.unseen import TrainingCategories, UnseenCounter
from likely.errors import (
    InputError,
    InputTypeError,
    NotEstimableError,
    check_choice,
    check_number,
    listed,
    trying,
)
from likely.estimators import posterior
from likely.estimators.base import Learner
from likely.estimators.posterior import Posterior
from likely.export.scorer import Scorer, joint_scorer
from likely.families.base import Family
from likely.families.estimation import Estimation
from likely.families.priors import Dirichlet
from likely.families.quadratic import Quadratic
from likely.model.boundary import LinearBoundary, QuadraticBoundary, boundary
from likely.model.class_prior import PriorShift, estimate_prior
from likely.model.explanation import Explanation, code_of, concatenated, two_codes
from likely.model.fit import Fit
from likely.model.imputation import fill_cells
from likely.model.joint import JointModel
from likely.model.parameters import model_parameters
from likely.model.plans import Plan
from likely.model.rendering import frame_library
from likely.model.specification import log_probabilities
from likely.model.summary import ModelSummary, summarise_model
from likely.model.typicality import typicality
from likely.numerics.random import seeded
from likely.statistics.counts import positions
from likely.statistics.joint import JointStatistics
from likely.typing import (
    AnyArray,
    Array,
    ClassPriorLike,
    FamiliesLike,
    LabelsLike,
    RandomStateLike,
    TableLike,
    TypesLike,
    Vocabulary,
    WeightsLike,
)

Result = TypeVar("Result")
MOST_CELLS = 400_000  # values of the rows that the summary of a discriminant scores, at most


class JointDensity(Learner):
    """An estimator with a joint density p(x, y), whether y was observed or not, and all that follows from it."""

    families: Any
    prior_shift_: PriorShift
    _others: Others | None = None  # the kind of model of columns without a declared family; None for one family
    _dense = False  # whether rows must be dense

    # -- options

    def __init__(
        self,
        families: FamiliesLike | None = None,
        class_prior: ClassPriorLike | None = None,
        estimation: str = "bayes",
        calibration: str | None = "auto",
        unlabeled: object = None,
        unseen: str = "missing",
        max_iter: int = 200,
        tol: float = 1e-6,
        unlabeled_weight: float | str = "auto",
        types: TypesLike | None = None,
        normalize: bool = False,
        ledger: bool = False,
    ) -> None:
        self.families = families
        self.class_prior = class_prior
        self.estimation = estimation
        self.calibration = calibration
        self.unlabeled = unlabeled
        self.unseen = unseen
        self.max_iter = max_iter
        self.tol = tol
        self.unlabeled_weight = unlabeled_weight
        self.types = types
        self.normalize = normalize
        self.ledger = ledger

    def _family(self) -> Family:
        """The family of all columns, of estimators that have one."""
        raise NotImplementedError

    def _declared(self, names: Sequence[str]) -> Declared:
        if self._others is None:
            return Declared((Plan(None, self._family()),))
        return Declared.of(self.families, names, self._others)

    @property
    def _plans_are_declared(self) -> bool:
        return self._others is None or (isinstance(self.families, Family) and not self.families._learns_options)

    def _check_options(self) -> None:
        super()._check_options()
        if hasattr(self, "unseen"):
            check_choice("unseen", self.unseen, ("missing", "error"))
        if getattr(self, "calibration", None) is not None:
            check_choice("calibration", self.calibration, ("auto",))

    def _leave_one_out_loss(self, batches: Batches, fit: Fit, model: JointModel) -> tuple[float, int] | None:
        """Mean −log p(y_i | x_i, other rows) of a discriminant on at most 4,000 training rows, evenly spaced."""
        if self._others is not None or not isinstance(self, Posterior) or batches.in_chunks or fit.history is not None:
            return None
        batch, weight = batches.first, fit.statistics.counts.weight
        codes = positions(fit.statistics.counts.classes, batch.counts.classes)[batch.codes]
        rows = np.flatnonzero((batch.row_weights > 0.0) & (weight[codes] > 1.0))  # with other rows of their class
        most = min(MOST_ROWS, max(MOST_CELLS // batch.table.width, 100))
        if len(rows) > most:
            rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]
        if not len(rows):
            return None
        sample = held_out_copies(batch.take(rows))
        try:
            with trying():
                found = fit.specification.leave_one_out_scores(model, fit.statistics, sample, posterior=True)
        except NotEstimableError:  # a class needs all of its rows
            return None
        with np.errstate(divide="ignore"):
            losses = -np.log(found.posterior[np.arange(len(rows)), codes[rows]])
        return float(np.average(losses, weights=batch.row_weights[rows])), len(rows)

    @property
    def _calibrates(self) -> bool:
        return getattr(self, "calibration", None) is not None and Estimation.of(self.estimation) == Estimation.BAYES

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._dense
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = self._others is not None
        return tags

    def _checked(self, table: Table, remedy: str) -> Table:
        if self._dense and table.is_sparse:
            raise InputTypeError(
                f"X is sparse, but {type(self).__name__} needs a dense array. Use X.toarray(), or NaiveBayes."
            )
        return super()._checked(table, remedy)

    # -- rows

    def _of_tables(self, X: Any, compute: Callable[[JointModel, Table], Result]) -> list[Result]:
        """compute(model, table) of every batch of rows."""
        check_is_fitted(self)

        def work(table: Table) -> Result:
            refuse_unseen(self, self.model_, table)
            return compute(self.model_, table)

        return Tables(X, self._read, self).compute(work)

    def _of_rows(self, X: Any, compute: Callable[[JointModel, Table], Array]) -> Array:
        """compute(model, table) of all rows, one batch after another."""
        parts = self._of_tables(X, compute)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _vocabularies(self) -> Iterator[tuple[int, Vocabulary]]:
        """Categorical columns and their categories."""
        for block in self.model_.blocks:
            words = block.conditionals.vocabularies
            if words is not None:
                yield from zip(block.index.tolist(), words, strict=True)

    def _training_categories(self, column: int) -> TrainingCategories | None:
        """The categories of a column, and the proportion of values that no other training row has."""
        for block, part in zip(self.model_.blocks, self.statistics_.blocks, strict=True):
            words = block.conditionals.vocabularies
            if words is None or column not in block.index:
                continue
            place = block.index.tolist().index(column)
            if place in block.conditionals.ignored_columns():
                return None
            joint = len(block.index) > part.dimension
            unseen = part.unseen_rate(0, place) if joint else part.unseen_rate(place)
            return TrainingCategories(words[place], unseen)
        return None

    def _over_scores(self, rows: Table, work: Callable[[int, int, Array], None]) -> None:
        model = self.model_
        refuse_unseen(self, model, rows)
        model.over_scores(rows, work)

    def _decision_scores(self, X: Any) -> Array:
        return self._of_rows(X, JointModel.scores)

    def _scorer(self, longest: int | None = None, widest: int | None = None) -> Scorer:
        strict = getattr(self, "unseen", "missing") == "error"
        return joint_scorer(self.model_, strict=strict, longest=longest, widest=widest)

    adapt_prior = posterior.adapt_prior

    def log_joint(self, X: TableLike) -> Array:
        """Compute the joint log-density log p(x, class) of each row and class.

        Missing values are integrated out: a row has the density of its observed values.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Joint log-densities, in the order of `classes_`.

        See Also
        --------
        log_density : The marginal log p(x).
        predict_log_proba : The conditional log p(class | x).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.log_joint(X[:1]).round(2)
        array([[  0.1 , -50.21, -97.61]])
        """
        return self._of_rows(X, JointModel.log_joint)

    def log_density(self, X: TableLike, label: object = None) -> Array:
        """Compute the log-density log p(x) of each row, or log p(x | class) under one class.

        log p(x) is the logarithm of the sum of p(x, class) over the classes. Missing values are integrated out.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        label : object, default=None
            A class label, for log p(x | label). None is log p(x).

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities.

        See Also
        --------
        typicality : A p-value, which is comparable between models and numbers of columns.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.log_density(X[:2]).round(2)
        array([ 0.1 , -0.79])
        >>> model.log_density(X[:2], label=0).round(2)
        array([1.2 , 0.31])
        """
        if label is None:
            return self._of_rows(X, JointModel.log_density)
        check_is_fitted(self)
        code = code_of(self.classes_, label)
        return self._of_rows(X, lambda model, table: model.class_log_density(table, code))

    def score_samples(self, X: TableLike) -> Array:
        """Compute the log-density log p(x) of each row, under scikit-learn's name.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities.

        See Also
        --------
        log_density : The same method.
        """
        return self.log_density(X)

    def typicality(self, X: TableLike, n_samples: int | None = None, random_state: RandomStateLike | None = 0) -> Array:
        """Compute the typicality of each row, a p-value that is small for novel rows.

        It is the probability that a row drawn from a class has at most the density of this row, in its observed
        columns, for the class under which it is largest. For a single Gaussian block it is a χ² or F probability in
        closed form, for other models a proportion of simulated rows. The p-value is conservative: of rows drawn from
        the model, at most a proportion α has a typicality below α.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        n_samples : int, default=None
            Number of rows to simulate from each class, where there is no closed form. None is 10,000 for up to 20
            classes, and 200,000 in total for more, at least 1,000 per class. The least p-value is then 1 / (n_samples +
            1).
        random_state : int or RandomState, default=0
            Seed of the simulation.

        Returns
        -------
        ndarray of shape (n_samples,)
            Typicality, from 0 (novel) to 1. A row without any observed value has 1.

        See Also
        --------
        novelty : Its negative logarithm, which also ranks rows that are far from all classes.
        log_density : The log-density itself.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.typicality([[5.0, 3.4, 1.5, 0.2], [5.0, 3.4, 1.5, 1.2]]).round(3)
        array([0.998, 0.   ])
        """
        return self._typicality(X, n_samples, random_state, "p_value")

    def novelty(self, X: TableLike, n_samples: int | None = None, random_state: RandomStateLike | None = 0) -> Array:
        """Compute a novelty score of each row, which is large for novel rows.

        It is −log10 of the typicality: 2 for a row that is less probable than 99 in 100 rows of its class. Rows whose
        density is below that of all simulated rows are ranked by their log-density.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        n_samples : int, default=None
            Number of rows to simulate from each class, as in `typicality`.
        random_state : int or RandomState, default=0
            Seed of the simulation.

        Returns
        -------
        ndarray of shape (n_samples,)
            Novelty, from 0 (typical). It is infinite only for rows that have probability 0 under every class.

        See Also
        --------
        typicality : The p-value.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.novelty([[5.0, 3.4, 1.5, 0.2], [5.0, 3.4, 1.5, 1.2]]).round(1)
        array([0. , 6.1])
        """
        return self._typicality(X, n_samples, random_state, "novelty")

    def _typicality(
        self, X: TableLike, n_samples: int | None, random_state: RandomStateLike | None, name: str
    ) -> Array:
        if n_samples is not None:
            check_number("n_samples", n_samples, 1, whole=True)
        seed = int(seeded(random_state).randint(2**32, dtype=np.uint64))
        return self._of_rows(X, lambda model, table: getattr(typicality(model, table, n_samples, seed), name))

    def explain(self, X: TableLike, method: str = "symmetric") -> Explanation:
        """Decompose log p(x, class) into contributions of the columns.

        The decomposition is exact. An independent column contributes its log-density. In a block with a full
        covariance, the squared Mahalanobis distance is divided among the columns by Garthwaite and Koch's partition, in
        a joint table of categories the log-probability by Shapley values. Contributions do not depend on the order of
        the columns.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        method : {'symmetric', 'sequential'}, default='symmetric'
            'sequential' uses the chain rule in the order of the columns instead: the density of the first column of a
            block, of the second given the first, and so on.

        Returns
        -------
        Explanation
            `evidence` of shape (n_samples, n_classes, n_features), `offset` of shape (n_samples, n_classes) and the
            names of the `columns`. The offset plus the evidence summed over the columns is log p(x, class), or, where
            class probabilities are calibrated, t·log p(x | class) + log p(class) + c: its softmax is `predict_proba`.
            A missing value contributes 0. `contrast(a, b)` has the contributions to the log-odds of two classes,
            `to_frame()` all contributions as a table, and `plot(row)` draws them.

        See Also
        --------
        boundary : The log-odds of two classes as a function of x.

        References
        ----------
        P. H. Garthwaite and I. Koch (2016), Evaluating the contributions of individual variables to a quadratic form,
        Australian and New Zealand Journal of Statistics 58.

        Examples
        --------
        >>> from scipy.special import softmax
        >>> from sklearn.datasets import load_iris
        >>> from likely import NaiveBayes
        >>> X, y = load_iris(return_X_y=True)
        >>> model = NaiveBayes().fit(X, y)
        >>> parts = model.explain(X[:1])
        >>> parts.evidence.shape
        (1, 3, 4)
        >>> scores = parts.offset + parts.evidence.sum(axis=2)
        >>> bool(abs(softmax(scores, axis=1) - model.predict_proba(X[:1])).max() < 1e-9)
        True

        Contributions of the columns to the log-odds of class 2 against class 1:

        >>> model.explain(X[[70]]).contrast(2, 1).round(2)
        array([[-0.53,  0.44, -0.28,  1.21]])
        """
        check_choice("method", method, ("symmetric", "sequential"))
        parts = self._of_tables(X, lambda model, table: model.explain(table, method == "sequential"))
        explanation = concatenated(parts, frame_library(X))
        return explanation if self._reading is None else explanation.merged(self._reading.input_names)

    def impute(self, X: TableLike, y: LabelsLike | None = None) -> Any:
        """Impute missing values with their expectation given the observed values of the row.

        Numeric columns have the conditional mean, categorical columns the most probable category. Both are averaged
        over the classes, weighted by p(class | observed values), or given the class of the row if `y` is passed.
        Columns that the model does not use stay as they are.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows with missing values, in memory, with the columns of the training rows.
        y : array-like of shape (n_samples,) or str, default=None
            Class labels, some of which may be missing, or the name of the column of X that has them. That column is not
            returned.

        Returns
        -------
        array or frame of shape (n_samples, n_features)
            X without missing values, as the same kind of table.

        See Also
        --------
        Imputer : A transformer for pipelines.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.impute([[5.1, 3.5, 1.4, np.nan]]).round(2)
        array([[5.1 , 3.5 , 1.4 , 0.24]])
        """
        check_is_fitted(self)
        if is_source(X):
            raise InputError("impute needs the rows in memory, and X comes in chunks. Impute one chunk after another.")
        self._check_no_dates("impute")
        X, y = split_target(*rows_and_target(X, y))
        table = self._read(X)
        codes = None
        if y is not None:
            labels, missing = present_labels(y, self.unlabeled)
            codes = np.full(table.rows, -1)
            where = np.arange(table.rows) if missing is None else np.flatnonzero(~missing)
            if len(labels) != len(where):
                raise InputError(f"X has {table.rows} rows and y has {len(labels)} labels.")
            codes[where] = [code_of(self.classes_, label) for label in labels.tolist()]
        refuse_unseen(self, self.model_, table)
        unseen = UnseenCounter(self, alone=True)
        unseen.add(table)
        unseen.finish()
        return fill_cells(self.model_, table, codes, X)

    def _check_no_dates(self, method: str) -> None:
        """Raise for columns that are several in the model: no single value of theirs follows from it."""
        several = [] if self._reading is None else [each.name for each in self._reading.columns if each.parts]
        if several:
            first = several[0]
            raise InputError(
                f"{method}: column {first!r} has dates, whose parts the model has as columns of their own, and a date "
                f"does not follow from them. Fit without the column, or with families={{{first!r}: Gaussian()}}, one "
                "number of days."
            )

    def left_out_proba(self, X: TableLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> Array:
        """Compute leave-one-out class probabilities of the training rows.

        Each row is predicted by the model without it. Nothing is fitted again: the statistics of the row are subtracted
        from those of its class, in closed form where the family has one. Quantities that the options derive from the
        data (default priors, shrinkage intensities, categories) are those of all rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Training rows, or some of them.
        y : array-like of shape (n_samples,) or str
            Their class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights in the fit. None is 1 for all rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.

        See Also
        --------
        cross_validate : k-fold cross-validation.
        select : Ranks models by leave-one-out scores.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> held_out = model.left_out_proba(X, y)
        >>> round(float((held_out.argmax(axis=1) == y).mean()), 3)
        0.98
        """
        self._fitted().check_additive("left_out_proba")
        parts, total = [], None
        for batch in Batches(
            X, y, sample_weight, self._read, type(self).__name__, keep_all_classes=True, unlabeled=self.unlabeled
        ):
            refuse_unseen(self, self.model_, batch.table)
            unknown = [label for label in batch.counts.classes.tolist() if label not in self.classes_.tolist()]
            if unknown:
                raise InputError(f"y has the label {listed(unknown)}, which is not among the classes of the model.")
            parts.append(self.specification_.leave_one_out_scores(self.model_, self.statistics_, batch, True).posterior)
            these = self.specification_.summarise(batch)
            total = these if total is None else total + these
        self._check_part_of_fit(total)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _check_part_of_fit(self, rows: JointStatistics | None) -> None:
        """Raise where rows with these statistics cannot have been part of the fit.

        Where rows have less weight than in the fit, their statistics cannot be compared.
        """
        fitted = self.statistics_
        given = None if rows is None else rows.counts.align(fitted.counts.classes)
        if (
            rows is None
            or given is None
            or np.any((given.rows == fitted.counts.rows) & (given.weight < 0.999 * fitted.counts.weight))
        ):
            return
        try:
            self.specification_.check_possible(fitted - rows, fitted)
        except InputError as error:
            raise InputError(
                f"Some rows were not part of the fit, or had another label or weight. Pass rows, labels and weights of "
                f"the fit; use predict_proba for others. ({error})"
            ) from None

    def sample(
        self, n_samples: int = 1, label: object = None, random_state: RandomStateLike | None = None
    ) -> tuple[Any, AnyArray]:
        """Draw rows and their classes from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        label : object, default=None
            Class to draw from. None draws the class of each row from the class prior.
        random_state : int or RandomState, default=None
            Seed.

        Returns
        -------
        X : array or frame of shape (n_samples, n_features)
            Rows. A model that was fitted to a frame returns a frame of the same library, with the column types of the
            training rows where these hold the values without rounding: floats have 64 bits. Columns whose family is not
            declared are whole, and not negative, where all training values are: values are rounded, and rows with other
            signs drawn again.
        y : ndarray of shape (n_samples,)
            Class labels.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> model = LinearDiscriminant().fit(*load_iris(return_X_y=True))
        >>> X, y = model.sample(5, label=2, random_state=0)
        >>> X.shape, y
        ((5, 4), array([2, 2, 2, 2, 2]))
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples={n_samples!r} is not a positive whole number.")
        code = None if label is None else code_of(self.classes_, label)
        rng = np.random.default_rng(seeded(random_state).randint(2**32, dtype=np.uint64))
        schema = self._frame
        self._check_no_dates("sample")
        columns, codes = self.model_.sample(int(n_samples), code, rng)
        if self._reading is not None:
            columns = [each.restored(values) for each, values in zip(self._reading.columns, columns, strict=True)]
        if schema.backend is None:
            cells = [values.astype(object) if values.dtype.kind == "M" else values for values in columns]
            return np.column_stack(cells), self.classes_[codes]
        frame = to_frame(columns, schema.labels or self.model_.names, schema.backend)
        return typed(frame, schema), self.classes_[codes]

    def with_prior(self, prior: ClassPriorLike | None) -> Self:
        """Return an estimator with another class prior and the same class-conditional densities.

        Parameters
        ----------
        prior : {'uniform'}, array-like of shape (n_classes,), dict, Dirichlet or None
            Class prior: equal probabilities, probabilities in the order of `classes_`, a mapping {class: probability},
            or a `Dirichlet` prior, which is updated by the class counts. None estimates it from the class counts.

        Returns
        -------
        estimator
            A new, fitted estimator of the same class.

        See Also
        --------
        adapt_prior : Estimates the class prior from unlabeled rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y).with_prior([0.2, 0.7, 0.1])
        >>> model.predict_proba(X[[70]]).round(3)
        array([[0.   , 0.699, 0.301]])
        """
        fit = self._fitted()
        if prior is None or isinstance(prior, Dirichlet):
            fit.check_rows("a class prior from class counts")
        class_prior = estimate_prior(prior, fit.statistics.counts, fit.specification.estimation)
        estimates = self.model_.with_log_prior(log_probabilities(class_prior)), class_prior
        other = self._with(replace(fit, specification=replace(fit.specification, class_prior=prior)), estimates)
        other.class_prior = prior
        return other

    def boundary(self, first: object, second: object) -> LinearBoundary | QuadraticBoundary:
        """Compute the decision boundary between two classes in closed form.

        Parameters
        ----------
        first : object
            A class label.
        second : object
            Another class label.

        Returns
        -------
        LinearBoundary or QuadraticBoundary
            log p(first | x) − log p(second | x) as a function of x, which is zero on the boundary. It can be called
            with rows of shape (n_samples, n_features). A linear one has the coefficients `w` and `w0` of w·x + w0, a
            quadratic one `A`, `b` and `c` of xᵀ·A·x + b·x + c.

        Raises
        ------
        AttributeError
            For families and estimations whose log-odds are not linear or quadratic in x, such as a Student t.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> boundary = LinearDiscriminant().fit(X, y).boundary(1, 2)
        >>> boundary.w.round(2)
        array([  3.32,   3.46,  -7.71, -14.94])
        >>> boundary(X[[70]]).round(2)
        array([-1.1])
        """
        check_is_fitted(self)
        two_codes(self.classes_, first, second)  # a misspelt class is reported first
        return boundary(self._form(), self.classes_, first, second, tuple(self.model_.names))

    def _form(self) -> Quadratic:
        check_is_fitted(self)
        form = self.model_.quadratic()
        if form is None:
            kinds = sorted({type(plan.family).__name__ for plan in self.specification_.plans})
            raise AttributeError(
                f"{type(self).__name__} with estimation={self.estimation!r} and columns of {', '.join(kinds)} has no "
                "linear or quadratic form in x. Columns of Gaussian, Bernoulli, Poisson, Geometric, NegativeBinomial "
                "and Exponential have one under estimation='mle' and 'map'; a posterior predictive, such as a Student "
                "t, has none."
            )
        return form

    def _parameter_table(self) -> dict[str, list[Any]]:
        return model_parameters(self._fitted(), self.model_, self.class_prior_)

    def summary(self) -> ModelSummary:
        """Summarize the fitted model: classes, families, chosen families and informative columns.

        Returns
        -------
        ModelSummary
            Plain data; ``print(model.summary())`` shows it as text.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> summary = LinearDiscriminant().fit(*load_iris(return_X_y=True)).summary()
        >>> [(each.label, each.rows) for each in summary.classes]
        [(0, 50), (1, 50), (2, 50)]
        """
        check_is_fitted(self)
        name = type(self).__name__
        described = [plan.family.describe() for plan in self.specification_.plans]
        estimation = self.specification_.estimation
        calibration = self.calibration_
        known = calibration is not None and not np.isnan(calibration.log_loss_after)
        summary = summarise_model(
            name,
            estimation,
            self.model_,
            self.statistics_,
            described,
            self.class_prior_,
            self.choices_,
            labeled=isinstance(self, Posterior),
            log_loss=calibration.log_loss_after if calibration is not None and known else None,
            library=self._frame.backend,
            ignored=self._declared_aside(),
        )
        if calibration is not None and calibration.weight < 0.99 * self.statistics_.counts.weight.sum():
            summary = replace(summary, scored_rows=round(calibration.weight))
        if self._held_out is not None:
            loss, rows = self._held_out
            several = rows < int(self.statistics_.counts.rows.sum())
            summary = replace(summary, log_loss=loss, scored_rows=rows if several else None)
        unlabeled, notes = self._fitted().unlabeled, list(summary.notes)
        if self._record is not None and self._record.names:
            decided = self._column_decisions()
            aside = {column for column, each in decided.items() if each.is_set_aside}
            used = (replace(each, columns=tuple(c for c in each.columns if c not in aside)) for each in summary.blocks)
            lines = column_lines(self._record.table(self._reading, decided))
            choices = tuple(choice for choice in summary.choices if choice.family != SET_ASIDE)
            blocks = tuple(each for each in used if each.columns)
            summary = replace(summary, blocks=blocks, choices=choices, decisions=tuple(lines))
            notes = self.model_.block_notes()
        if unlabeled is not None:
            notes.append(str(unlabeled))
        if calibration is not None or self._calibrates:
            notes.append(str(calibration) if known else "not calibrated")
        return replace(summary, notes=tuple(notes))


def is_generative_classifier(model: object) -> bool:
    """Whether a model is a classifier with a joint density."""
    return isinstance(model, JointDensity) and isinstance(model, Posterior)


def refuse_unseen(estimator: Any, model: JointModel, table: Table) -> None:
    """Raise for categories and numbers that the training rows exclude, if the option `unseen` is 'error'."""
    if getattr(estimator, "unseen", "missing") != "error":
        return
    for block in model.blocks:
        outside = block.first_outside(table)
        if outside is not None:
            row, j, value = outside
            raise InputError(
                f"Column {table.names[j]!r}, row {table.number(row)}: {value} is outside the support of the family "
                "that was chosen by the training rows. Set unseen='missing', or declare the family of the column."
            )
        for j, words in zip(block.index.tolist(), block.conditionals.vocabularies or (), strict=False):
            found = table.unseen(j, words)
            if found is not None:
                raise InputError(
                    f"Column {table.names[j]!r}, row {found[0]}: {found[1]!r} was not seen in training. Known "
                    f"categories: {listed(words)}. Set unseen='missing', or Categorical(categories=...)."
                )
