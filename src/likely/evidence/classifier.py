"""`EvidenceClassifier`: several models of a row, combined with weights that are learnt from leave-one-out evidence."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial, wraps
from importlib.metadata import version
from typing import Annotated, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.choice.column_reading import choose_reading, read_alike
from likely.choice.column_record import IGNORED, SET_ASIDE, ColumnDecision, ColumnRecord, column_lines
from likely.data.batches import Batch, Batches
from likely.data.columns import read_rows, remember_columns, remember_schema
from likely.data.frames import FrameSchema
from likely.data.labels import label_values
from likely.data.ledger import Ledger
from likely.data.parts import closed_after, source_of
from likely.data.reading import Reading
from likely.data.sources import Tables, in_memory
from likely.data.table import FITTED, Table
from likely.data.unseen import TrainingCategories
from likely.data.validation import read_table
from likely.errors import InputError, InputTypeError, check_choice, check_number, listed
from likely.estimators import posterior
from likely.estimators.classifiers import GenerativeClassifier
from likely.estimators.column_table import column_table
from likely.estimators.model_options import check_ledger, plain_text
from likely.estimators.posterior import Posterior
from likely.evidence.declared import EvidenceColumns
from likely.evidence.encoding import Encoding
from likely.evidence.explanation import explained, similar_rows
from likely.evidence.fitting import LearntWeights, fit_views, learn_weights, weighted_model
from likely.evidence.model import EvidenceModel
from likely.evidence.report import EvidenceSummary, summarise_evidence, weight_table
from likely.evidence.rows import DistinctRows, EncodedRows
from likely.evidence.training import distinct_rows, encoded, proportional_sample, rows_at_a_time
from likely.evidence.views import views_of
from likely.evidence.weights import PooledWeights, class_proportions
from likely.families.estimation import Estimation
from likely.model import persistence
from likely.model.class_prior import PriorShift, estimate_prior
from likely.model.explanation import Explanation, concatenated
from likely.model.plans import columns_set_aside, inputs_set_aside
from likely.model.rendering import frame_library
from likely.model.specification import log_probabilities
from likely.numerics.progress import progress
from likely.numerics.random import seeded
from likely.numerics.shapes import Shape, check
from likely.numerics.threads import limited_by_n_jobs, one_at_a_time, single_threaded_blas
from likely.statistics.counts import Counts
from likely.typing import (
    AnyArray,
    Array,
    ClassPriorLike,
    LabelsLike,
    RandomStateLike,
    TableLike,
    TargetsLike,
    TypesLike,
    Vocabulary,
    WeightsLike,
)

MOST_SPARSE_COLUMNS = 10_000
MISSINGNESS = "has one value; read by where it is missing"


def _of_generative(name: str) -> Any:
    """A method of `generative_` as a method of the estimator that holds it."""
    method = getattr(GenerativeClassifier, name)

    @wraps(method)
    def delegated(self: EvidenceClassifier, *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.generative_, name)(*args, **kwargs)

    return delegated


@persistence.register
class EvidenceClassifier(Posterior):
    """Classifier for mixed tables that combines the evidence of several models with learnt weights.

    The models are called views. Each view has one or more terms: estimates of log p(x | class) from some of the
    columns, up to a term that all classes share. The views are single columns, joint Gaussians, histograms, pairs of
    columns, similar training rows, class counts in decision trees, and the terms of text. Because the views are
    dependent, their terms are combined with non-negative weights, which are learnt from leave-one-out evidence. Columns
    may be of any type, and values may be missing. A column of strings is text if more than half of them are distinct
    and they have four words or more on average; other distinct strings are set aside.

    `predict`, `predict_proba`, `decide` and `explain` use the weighted evidence. `log_joint`, `log_density`, `sample`,
    `impute`, `novelty` and `typicality` are those of `generative_`, one joint density p(x, class) of all columns but
    text.

    Parameters
    ----------
    views : 'auto' or list of str or estimator, default='auto'
        Views by name: 'columns', 'joint', 'scores', 'histogram', 'pairs', 'neighbours', 'trees' and 'text'; or
        generative classifiers such as ``LinearDiscriminant()``. 'auto' is all views with a name.
    max_rows : int, default=20000
        Approximate maximum of the number of training rows from which structures (cells, ranks, trees) and weights are
        learnt. Counts are those of all rows.
    n_trees : int, default=60
        Number of trees in the view 'trees'.
    random_state : int, RandomState or None, default=0
        Seed of the trees and of the sample of similar rows. The result does not depend on the order of the rows.
    families : mapping from columns to families or None, default=None
        Families of single columns, as in ``{"visits": Poisson(), "zip": Categorical(), "body": Text()}``, and columns
        that are set aside, with None. The view 'columns' and `generative_` model a column by its family, which may be
        one of your own; numbers with a `Categorical` are categories in all views. Columns with a family are used, also
        where they would be set aside as identifiers. Weights take the place of the exponents of `Text`.
    types : mapping of column to {'number', 'text', 'category', 'date'}, default=None
        How columns are read, where their values should not decide: as numbers, text as it stands, categories, or dates.
    normalize : bool, default=False
        Whether categories that differ in blanks at their ends or in case only are the same.
    ledger : bool, default=False
        Whether to keep hashes of the learnt rows, so that `forget` refuses rows that were never learnt, or were
        forgotten already.
    n_jobs : int, default=None
        Number of threads in fits, updates and predictions; -1 is one for each processor, and -2 is one fewer. None is
        as many as there are processors, and one inside the workers of joblib. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Class prior: the class proportions of the training rows, unless `with_prior` changed it.
    weights_ : frame
        Weight of each term of each view, and its share of the mean absolute weighted evidence of the training rows.
    generative_ : GenerativeClassifier
        The joint density of all columns but text.
    model_ : EvidenceModel
        Views, their weights and intercepts.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X is a frame whose column names are text.

    See Also
    --------
    GenerativeClassifier : A single joint density.

    Notes
    -----
    log p(k | x) = b_k + Σ_v Σ_j w_vj·e_vjk(x) − log Σ_k …, with terms e_vjk of view v. The weights w minimise the
    log-loss of leave-one-out evidence plus a penalty. Solutions for several strengths of the penalty, and the class
    proportions as a further candidate, are averaged with weights proportional to exp(−L), where L is their total
    log-loss on held-out rows. Terms of a new row are clipped to their range in training. `partial_fit` and `forget`
    update all counts and keep the structures and weights of the fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import EvidenceClassifier
    >>> iris = load_iris(as_frame=True).frame
    >>> model = EvidenceClassifier(n_trees=20).fit(iris[::2], "target")
    >>> model.score(iris[1::2], "target") > 0.9
    True
    """

    model_: Annotated[EvidenceModel, Shape("terms classes")]
    pooled_: Annotated[PooledWeights, Shape("terms classes")]
    generative_: Annotated[GenerativeClassifier, Shape()]
    prior_shift_: PriorShift
    _frame: FrameSchema
    _shares: Annotated[Array, Shape("terms")]
    _prior: ClassPriorLike | None
    _rows: Annotated[int, Shape(">=0")]
    _target_names: tuple[Any, ...]
    _reading: Reading | None = None
    _record: ColumnRecord

    _not_exported = "trees and neighbours have no expression; export a GenerativeClassifier instead"

    def __init__(
        self,
        views: Any = "auto",
        max_rows: int = 20_000,
        n_trees: int = 60,
        random_state: RandomStateLike | None = 0,
        families: Mapping[Any, Any] | None = None,
        types: TypesLike | None = None,
        normalize: bool = False,
        ledger: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.views = views
        self.max_rows = max_rows
        self.n_trees = n_trees
        self.random_state = random_state
        self.families = families
        self.types = types
        self.normalize = normalize
        self.ledger = ledger
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags

    def _check_options(self) -> None:
        check_number("max_rows", self.max_rows, 100, whole=True)
        check_number("n_trees", self.n_trees, 1, whole=True)
        views_of(self.views, int(self.n_trees), self.families)

    @limited_by_n_jobs
    @single_threaded_blas()  # products are small, and its idle threads would spin
    def fit(
        self,
        X: TableLike,
        y: TargetsLike,
        sample_weight: WeightsLike | None = None,
        structure_of: EvidenceClassifier | None = None,
    ) -> Self:
        """Fit the views and learn their weights.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Training rows. Missing values are allowed.
        y : array-like of shape (n_samples,) or str
            Class labels, or the name of the column of X that has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Frequency weights: the number of times that each row counts. None is 1 for all rows.
        structure_of : EvidenceClassifier, default=None
            Fitted model whose structures and weights are reused, so that the two models can be added. Only the counts
            are computed from X.

        Returns
        -------
        EvidenceClassifier
            The fitted estimator.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(n_trees=5).fit(X[::2], y[::2])
        >>> model.classes_
        array([0, 1, 2])
        """
        self._check_options()
        X = in_memory(X, y, sample_weight)
        if structure_of is not None:
            return self._fit_counts(X, y, sample_weight, structure_of)
        batches = read_alike(
            lambda read: Batches(X, y, sample_weight, read, type(self).__name__),
            self._raw,
            partial(choose_reading, types=self.types, families=self.families, normalize=self.normalize),
            _narrow_enough,
        )
        batch = batches.first
        found = EvidenceColumns.of(self.families, batch)
        core = found.joint_density(batch.table)
        core._fit_batches(batches)
        with progress("views of EvidenceClassifier") as step:
            model, learnt = self._learnt(distinct_rows(batch, found.columns), found.found_by(core), step)
        return self._become(
            batch, model, core, learnt.pooled, learnt.shares, core._record or ColumnRecord((), (), (), ())
        )

    def _become(
        self,
        batch: Batch,
        model: EvidenceModel,
        core: GenerativeClassifier,
        pooled: PooledWeights,
        shares: Array,
        record: ColumnRecord,
    ) -> Self:
        """Become fitted to the rows of a batch."""
        self._record = record
        schema = remember_columns(self, batch.X, batch.targets, batch.table.reading)
        self.model_, self.generative_, self.pooled_, self._shares = model, core, pooled, shares
        self._frame = core._frame = schema.without_categories(dict.fromkeys(core.specification_.set_aside))
        self._prior, self._rows = None, batch.table.rows
        self.__dict__.pop("prior_shift_", None)
        return self

    def _learnt(
        self, rows: DistinctRows, read: EvidenceColumns, step: Callable[[], None]
    ) -> tuple[EvidenceModel, LearntWeights]:
        """The model of these rows: structures and weights from a sample of them, counts of all."""
        drawn = proportional_sample(rows.codes, len(rows.classes), int(self.max_rows))
        sample = rows.take(drawn)
        encoding = Encoding.of(sample.rows, sample.weights, read.columns, read.texts, read.categories)
        training = encoded(sample, encoding)
        seed = int(seeded(self.random_state).randint(2**31))
        views = views_of(self.views, int(self.n_trees), self.families, read.families)
        fitted = fit_views(views, training, encoding, seed)
        step()
        learnt = learn_weights(fitted, training, step)
        model = weighted_model(fitted, learnt, encoding, training)
        model = model.added(rows.take(np.delete(np.arange(len(rows)), drawn)), step)
        return replace(model, structure=_fingerprint(self, sample), ledger=self._ledger_of(rows)), learnt

    def _fit_counts(self, X: Any, y: Any, sample_weight: Any, structure_of: EvidenceClassifier) -> Self:
        """The counts of these rows in the structures of another model."""
        if not isinstance(structure_of, EvidenceClassifier):
            raise InputTypeError(f"structure_of={structure_of!r} must be a fitted EvidenceClassifier.")
        check_is_fitted(structure_of)
        model = structure_of.model_
        batch = Batches(X, y, sample_weight, structure_of._read, type(self).__name__).first
        rows = distinct_rows(batch, model.encoding.columns, model.classes)
        counted = replace(model.counted(rows), ledger=self._ledger_of(rows))
        core = structure_of.generative_
        core = core._with(core._fitted().counted(Batches.of([batch])))
        return self._become(batch, counted, core, structure_of.pooled_, structure_of._shares, structure_of._record)

    def _ledger_of(self, rows: DistinctRows) -> Ledger | None:
        """A ledger of rows if the option asks for it."""
        return Ledger.empty().added([rows.hashed()]) if self.ledger else None

    # -- updates

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
        if hasattr(self, "model_"):
            if classes is not None:
                _check_classes(label_values(classes).tolist(), self.classes_)
            return self._update(X, y, sample_weight, "added")
        model = copy.copy(self).fit(X, y, sample_weight)
        if classes is not None:
            _check_classes(label_values(classes).tolist(), model.classes_)
        self.__dict__.update(vars(model))
        return self

    @one_at_a_time
    def forget(self, X: TableLike, y: TargetsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Remove training rows from all counts. Structures and weights of the fit are kept.

        No number and no category that only these rows had is left in the model or in its file.
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
        return self._update(X, y, sample_weight, "without")

    @limited_by_n_jobs
    @single_threaded_blas()
    def _update(self, X: Any, y: Any, sample_weight: Any, verb: str) -> Self:
        """The model with or without rows; everything is computed before the first attribute changes."""
        check_is_fitted(self)
        if verb == "without":
            check_ledger(self, self.model_.ledger)
        X, model, core, count = source_of(X), self.model_, copy.copy(self.generative_), 0
        first = self._rows if verb == "added" else 0
        for batch in Batches(X, y, sample_weight, self._read, type(self).__name__):
            rows = distinct_rows(batch, model.encoding.columns, self.classes_)
            model = getattr(model, verb)(replace(rows, positions=rows.positions + first + count))
            count += batch.table.rows
        update = core.partial_fit if verb == "added" else core.forget
        update(X, y, sample_weight=sample_weight)
        self.model_, self.generative_, self._frame = model, core, core.schema_
        self._rows += count if verb == "added" else 0
        return self

    def __add__(self, other: Any) -> Self:
        """Add the counts of two models with the same structures: the result is a model of the rows of both."""
        if not isinstance(other, EvidenceClassifier):
            return NotImplemented
        check_is_fitted(self)
        check_is_fitted(other)
        total = copy.copy(self)
        total.model_ = self.model_ + other.model_.renumbered(self._rows)
        total.generative_ = self.generative_ + other.generative_
        total._rows = self._rows + other._rows
        return total

    @one_at_a_time
    @limited_by_n_jobs
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
        rows = distinct_rows(batch, self.model_.encoding.columns, self.classes_)
        drawn = proportional_sample(rows.codes, len(rows.classes), int(self.max_rows))
        training = encoded(rows.take(drawn), self.model_.encoding)
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

    # -- class prior

    @property
    def classes_(self) -> AnyArray:
        """Class labels, a sorted array of shape (n_classes,)."""
        check_is_fitted(self)
        return self.model_.classes

    @property
    def class_prior_(self) -> Array:
        """Class prior, an array of shape (n_classes,)."""
        check_is_fitted(self)
        if self._prior is None:
            return class_proportions(self.model_.class_weights)
        counts = Counts(self.classes_, np.ones(len(self.classes_), dtype=np.int64), self.model_.class_weights)
        return estimate_prior(self._prior, counts, Estimation.BAYES)

    @property
    def _intercepts(self) -> Array:
        """Intercepts under the class prior, (classes,)."""
        return np.asarray(self.model_.offsets + log_probabilities(self.class_prior_))

    def with_prior(self, prior: ClassPriorLike | None) -> Self:
        """Return an estimator with another class prior and the same evidence.

        Parameters
        ----------
        prior : {'uniform'}, array-like of shape (n_classes,), dict, Dirichlet or None
            Class prior: equal probabilities, probabilities in the order of `classes_`, a mapping {class: probability},
            or a `Dirichlet` prior, which is updated by the class counts. None is the class proportions of the training
            rows.

        Returns
        -------
        EvidenceClassifier
            A new, fitted estimator. The score of class k changes by log π′_k − log π_k, where π are the class
            proportions of the training rows.

        See Also
        --------
        adapt_prior : Estimates the class prior from unlabeled rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.predict(X[[133]])
        array([1])
        >>> model.with_prior([0.1, 0.1, 0.8]).predict(X[[133]])
        array([2])
        """
        check_is_fitted(self)
        other = copy.copy(self)
        other._prior = prior
        other.generative_ = self.generative_.with_prior(prior)  # raises where the prior is invalid
        return other

    adapt_prior = posterior.adapt_prior

    # -- rows

    def _encoded(self, X: Any, numbers: int = 1) -> Iterator[EncodedRows]:
        """Encoded blocks of the rows of X, small enough for `numbers` numbers for each row, column and class."""
        check_is_fitted(self)
        for table in Tables(X, self._read, self):
            for _, _, rows in self._blocks(table, numbers):
                yield rows

    def _vocabularies(self) -> Iterator[tuple[int, Vocabulary]]:
        """Categorical columns, and their categories that the views use."""
        encoding = self.model_.encoding
        return zip(encoding.categorical.tolist(), encoding.vocabularies, strict=True)

    def _training_categories(self, column: int) -> TrainingCategories:
        """All categories of a column in training: the views use the most frequent ones."""
        known = self.generative_._training_categories(column)
        if known is None:  # a column of few distinct numbers: at most this many values occur once
            words = tuple(word for word in dict(self._vocabularies())[column] if word is not None)  # None: forgotten
            rows = float(self.model_.class_weights.sum())
            known = TrainingCategories(words, min((len(words) + 1) / (rows + 1.0), 1.0))
        return known

    def _blocks(self, table: Table, numbers: int = 1) -> Iterator[tuple[int, int, EncodedRows]]:
        """The first row of each block and the one after the last, and the block."""
        most = rows_at_a_time(numbers * len(self.model_.encoding.names) * len(self.classes_))
        for start in range(0, table.rows, most):
            stop = min(start + most, table.rows)
            yield start, stop, self.model_.encoding.encode(table.take(np.arange(start, stop)))

    @limited_by_n_jobs
    @single_threaded_blas()
    def _over_scores(self, rows: Table, work: Callable[[int, int, Array], None]) -> None:
        intercepts = self._intercepts[:, None]
        for start, stop, block in self._blocks(rows):
            work(start, stop, self.model_.evidence(block) + intercepts)

    @limited_by_n_jobs
    @single_threaded_blas()
    def explain(self, X: TableLike, by: str = "column") -> Explanation:
        """Decompose the log-odds of the classes into contributions of columns or views.

        The decomposition is exact. Contributions are relative to their mean over the classes.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        by : {'column', 'view', 'column and view'}, default='column'
            Entries of the explanation. 'column' sums over the views, 'view' sums over the columns, and 'column and
            view' has an entry for each combination.

        Returns
        -------
        Explanation
            `evidence` of shape (n_samples, n_classes, n_entries), `offset` of shape (n_samples, n_classes) and the
            names of the entries in `columns`. The offset plus the evidence summed over the entries is log p(class | x),
            up to a constant common to all classes. The evidence of the view 'neighbours' is not attributed to columns:
            it is the entry '(similar rows)'. The effect of clipping terms to their range in training is the entry
            '(clipped)'.

        See Also
        --------
        similar_rows : The training rows that the entry '(similar rows)' refers to.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> explanation = model.explain(X[[71]], by="view")
        >>> explanation.columns
        ('columns', 'joint Gaussian', '(clipped)')
        >>> explanation.contrast(1, 2).shape
        (1, 3)
        """
        check_choice("by", by, ("column", "view", "column and view"))
        with closed_after(self._encoded(X, 10)) as blocks:
            parts = [explained(self.model_, rows, self._intercepts, by) for rows in blocks]
        explanation = concatenated(parts, frame_library(X))
        return explanation if self._reading is None else explanation.merged(self._reading.input_names)

    @limited_by_n_jobs
    @single_threaded_blas()
    def similar_rows(self, X: TableLike, n: int = 5) -> Any:
        """Find the nearest training rows of each row, among those that the view 'neighbours' keeps.

        Distances are Euclidean, between standardised columns and one-hot encoded categories.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Rows with the columns of the training rows. Missing values are allowed.
        n : int, default=5
            Number of training rows for each row, at most.

        Returns
        -------
        frame
            One row for each row of X and each of its neighbours, the nearest first, with `row`, `similar_row` (the
            position of the training row in the X of the fit), its `class`, and the `distance`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["neighbours"]).fit(X[::2], y[::2])
        >>> model.similar_rows(X[[71]], n=2).round(1)
           row  similar_row  class  distance
        0    0           41      1       0.5
        1    0           39      1       0.5
        """
        check_number("n", n, 1, whole=True)
        return similar_rows(self.model_, self._encoded(X), int(n), frame_library(X))

    log_joint, log_density, score_samples = map(_of_generative, ("log_joint", "log_density", "score_samples"))
    typicality, novelty, sample, impute = map(_of_generative, ("typicality", "novelty", "sample", "impute"))

    @property
    def columns_(self) -> Any:
        """What each column of X became: a frame with its type, missing and distinct values, and the decision.

        `decision` begins with the name of the family in `generative_`, 'expanded to', 'set aside' or 'target'; `reason`
        says why, and `change` is the option that decides otherwise. Counts are those of the rows of the fit.
        """
        check_is_fitted(self)
        if not self._record.names:
            raise AttributeError("A model of sparse rows with more than 1,000 columns has no columns_.")
        return column_table(self._record, self._reading, self._column_decisions(), self._frame.backend)

    def _column_decisions(self) -> dict[str, ColumnDecision]:
        """What the columns that are modelled became: text and copies are not columns of the joint density."""
        encoding, found = self.model_.encoding, self.generative_._column_decisions()
        declared = {encoding.names[j] for j in columns_set_aside(self.families, encoding.names)}
        texts, read, used = set(encoding.texts.tolist()), set(encoding.columns.tolist()), encoding.used
        for j, name in enumerate(encoding.names):
            if j in texts:
                found[name] = ColumnDecision("Text", "", f"families={{{name!r}: None}}")
            elif found[name].is_set_aside and j in read and used[j]:
                found[name] = ColumnDecision("Categorical", MISSINGNESS, f"families={{{name!r}: None}}")
            elif found[name].is_set_aside:
                found[name] = ColumnDecision(SET_ASIDE, IGNORED if name in declared else "")
            elif j not in read:
                found[name] = ColumnDecision(SET_ASIDE, "copy of another column", "drop the other column")
        return found

    @property
    def weights_(self) -> Any:
        """Frame with the `view`, `column`, `term`, `weight` and `share` of each term: its share of the evidence."""
        check_is_fitted(self)
        return weight_table(self.model_, self._shares)

    def summary(self) -> EvidenceSummary:
        """Summarise the model: the share of each view in the evidence, and the log-loss of held-out rows.

        Returns
        -------
        EvidenceSummary
            Printing shows it as text; `to_frame()` returns the views as a table.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.summary().views
        ('joint Gaussian', 'columns')
        """
        check_is_fitted(self)
        found = summarise_evidence(self.model_, self._shares, self.pooled_, self.class_prior_)
        if not self._record.names:
            return found
        lines = column_lines(self._record.table(self._reading, self._column_decisions()))
        return replace(found, decisions=tuple(lines))

    # -- reading rows

    def _raw(self, X: Any, start: int = 0) -> Table:
        """Training rows as a table of the input, without the columns that `families` declares to have none."""
        return read_table(X, start, partial(inputs_set_aside, self.families))

    def _read(self, X: Any, start: int = 0) -> Table:
        """Rows with the columns of the fit, which are found by name in a frame."""
        encoding, reading = self.model_.encoding, self._reading
        unused = set() if reading is None else reading.unused([encoding.names[j] for j in encoding.columns.tolist()])
        table = _narrow_enough(read_rows(self, X, start, unused, unused))
        table.remedy = FITTED
        return table

    # -- files

    def _content(self) -> dict[str, Any]:
        """Content of the model file. The keys are the file format."""
        frame = self._frame
        return {
            "version": version("likely"),
            "estimator": self,
            "model": self.model_,
            "pooled": self.pooled_,
            "shares": self._shares,
            "prior": self._prior,
            "rows": self._rows,
            "generative": self.generative_._content(),
            "columns": {
                "named": hasattr(self, "feature_names_in_"),
                "names": frame.names,
                **frame.to_file(),
                "width": self.n_features_in_,
                "target_names": self._target_names,
                "record": self._record,
            },
        }

    def _restore(self, content: dict[str, Any]) -> Self:
        """Become the model that was saved."""
        self._check_options()
        self.model_, self.pooled_, self._shares = content["model"], content["pooled"], content["shares"]
        self._prior, self._rows = content["prior"], content["rows"]
        columns, core = content["columns"], content["generative"]
        self.generative_ = core["estimator"]._restore(core)
        check(self)
        self._frame = FrameSchema.from_file(columns, columns["names"])
        remember_schema(self, self._frame, columns["width"], tuple(columns["target_names"]))
        self._record = columns["record"]
        return self


def _narrow_enough(table: Table) -> Table:
    """The table, which has not too many columns if its rows are sparse."""
    if table.is_sparse and table.width > MOST_SPARSE_COLUMNS:
        raise InputError(
            f"X is sparse with {table.width:,} columns, and EvidenceClassifier reads at most "
            f"{MOST_SPARSE_COLUMNS:,} of them. Use NaiveBayes."
        )
    return table


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


def _fingerprint(estimator: EvidenceClassifier, sample: DistinctRows) -> str:
    """A digest of what determines the structures of a model: two models can be added if it is the same."""
    digest = hashlib.sha256()
    options = estimator.views if isinstance(estimator.views, str) else list(map(str, estimator.views))
    digest.update(repr((options, estimator.n_trees, estimator.random_state, sample.rows.names)).encode())
    if estimator.families:
        digest.update(plain_text(dict(estimator.families)).encode())
    digest.update(sample.keys.tobytes())
    digest.update(sample.weights.tobytes())
    return digest.hexdigest()
