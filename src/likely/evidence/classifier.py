"""`EvidenceClassifier`: several models of a row, combined with weights that are learnt from leave-one-out evidence."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from likely.data.batches import Batch, Batches
from likely.data.columns import features, matched, remember_columns
from likely.data.frames import FrameSchema, whole_frame
from likely.data.parts import read_here
from likely.data.sources import in_memory
from likely.data.table import FITTED, Table
from likely.data.validation import Ignored, ignoring, read_table
from likely.errors import InputError, InputTypeError, check_number, listed
from likely.estimators.algebra import plain_text
from likely.estimators.classifiers import GenerativeClassifier
from likely.estimators.result_files import PredictToFile
from likely.evidence.declared import EvidenceColumns
from likely.evidence.encoding import Encoding
from likely.evidence.fitting import LearntWeights, fit_views, learn_weights, weighted_model
from likely.evidence.model import EvidenceModel
from likely.evidence.predictions import EvidencePredictions
from likely.evidence.report import EvidenceSummary, summarise_evidence, weight_table
from likely.evidence.training import DistinctRows
from likely.evidence.updates import EvidenceUpdates
from likely.evidence.views import views_of
from likely.evidence.weights import PooledWeights
from likely.export.methods import Exports
from likely.families.estimation import Estimation
from likely.model import persistence
from likely.model.class_prior import PriorShift, estimate_prior, estimate_shift
from likely.model.plans import columns_set_aside
from likely.model.specification import log_probabilities
from likely.numerics.progress import progress
from likely.numerics.random import seeded
from likely.numerics.shapes import Shape, check
from likely.numerics.threads import single_threaded_blas
from likely.statistics.counts import Counts
from likely.typing import AnyArray, Array, ClassPriorLike, RandomStateLike, TableLike, TargetsLike, WeightsLike

MOST_SPARSE_COLUMNS = 10_000


@persistence.register
class EvidenceClassifier(Exports, EvidenceUpdates, EvidencePredictions, PredictToFile, ClassifierMixin, BaseEstimator):
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
    families : mapping from columns to Text or None, default=None
        Text columns with their options, as in ``{"body": Text()}``, and columns that are set aside, with None. Weights
        take the place of exponents. Other columns are modelled by the views, and other families are an error.

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

    _not_exported = "trees and neighbours have no expression; export a GenerativeClassifier instead"

    def __init__(
        self,
        views: Any = "auto",
        max_rows: int = 20_000,
        n_trees: int = 60,
        random_state: RandomStateLike | None = 0,
        families: Mapping[Any, Any] | None = None,
    ) -> None:
        self.views = views
        self.max_rows = max_rows
        self.n_trees = n_trees
        self.random_state = random_state
        self.families = families

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _check_options(self) -> None:
        check_number("max_rows", self.max_rows, 100, whole=True)
        check_number("n_trees", self.n_trees, 1, whole=True)
        views_of(self.views, int(self.n_trees), self.families)

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
        batches = Batches(X, y, sample_weight, self._table, type(self).__name__)
        batch = batches.first
        if structure_of is not None:
            return self._fit_counts(batch, structure_of)
        found = EvidenceColumns.of(self.families, batch)
        core = found.joint_density(batch.table)
        with progress("views of EvidenceClassifier") as step:
            model, learnt = self._learnt(DistinctRows.of(batch, found.columns), found, step)
        self.generative_ = core.fit(X, y, sample_weight)
        self._frame = remember_columns(self, batch.X, batch.targets)
        self.model_, self.pooled_, self._shares = model, learnt.pooled, learnt.shares
        self._prior, self._rows = None, batch.table.rows
        self.__dict__.pop("prior_shift_", None)
        return self

    def _learnt(
        self, rows: DistinctRows, read: EvidenceColumns, step: Callable[[], None]
    ) -> tuple[EvidenceModel, LearntWeights]:
        """The model of these rows: structures and weights from a sample of them, counts of all."""
        drawn, others = rows.sampled(int(self.max_rows))
        sample = rows.take(drawn)
        encoding = Encoding.of(sample.table, sample.weights, read.columns, read.texts)
        training = sample.encoded(encoding)
        seed = int(seeded(self.random_state).randint(2**31))
        fitted = fit_views(views_of(self.views, int(self.n_trees), self.families), training, encoding, seed)
        step()
        learnt = learn_weights(fitted, training, step)
        model = weighted_model(fitted, learnt, encoding, training)
        for part in rows.take(others).parts():
            model = model.updated(part.encoded(encoding), 1.0)
            step()
        return replace(model, structure=_fingerprint(self, sample)), learnt

    def _fit_counts(self, batch: Batch, structure_of: EvidenceClassifier) -> Self:
        """The counts of these rows in the structures of another model."""
        if not isinstance(structure_of, EvidenceClassifier):
            raise InputTypeError(f"structure_of={structure_of!r} must be a fitted EvidenceClassifier.")
        check_is_fitted(structure_of)
        model = structure_of.model_
        if list(batch.table.names) != list(model.encoding.names):
            raise InputError(
                f"structure_of was fitted to other columns, {listed(model.encoding.names)}. X has "
                f"{listed(batch.table.names)}."
            )
        rows = DistinctRows.of(batch, model.encoding.columns, model.classes)
        counted: EvidenceModel | None = None
        for part in rows.parts():
            some = model.counted(part.encoded(model.encoding))
            counted = some if counted is None else counted + some
        assert counted is not None
        self.generative_ = structure_of.generative_._of_other_rows(Batches.of([batch]))
        self._frame = remember_columns(self, batch.X, batch.targets)
        self.model_, self.pooled_, self._shares = counted, structure_of.pooled_, structure_of._shares
        self._prior, self._rows = None, batch.table.rows
        self.__dict__.pop("prior_shift_", None)
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
            return self.model_.class_proportions
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

    def adapt_prior(self, X: TableLike, max_iter: int = 1000, tol: float = 1e-10) -> Self:
        """Estimate the class prior of unlabeled rows, and return an estimator with that prior.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or chunk source of shape (n_samples, n_features)
            Unlabeled rows with the columns of the training rows. Missing values are allowed.
        max_iter : int, default=1000
            Maximum number of EM iterations.
        tol : float, default=1e-10
            EM stops when the log-likelihood changes by less than `tol`, relative to its size.

        Returns
        -------
        EvidenceClassifier
            A new, fitted estimator. Its `prior_shift_` has the estimated `prior`, the test `statistic` and the
            `p_value`.

        See Also
        --------
        with_prior : Sets a known class prior.

        References
        ----------
        M. Saerens, P. Latinne and C. Decaestecker (2002), Adjusting the outputs of a classifier to new a priori
        probabilities, Neural Computation 14.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import EvidenceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = EvidenceClassifier(["columns", "joint"]).fit(X[::2], y[::2])
        >>> model.adapt_prior(X[:100]).class_prior_.round(1)
        array([0.5, 0.5, 0. ])
        """
        check_is_fitted(self)
        shift = estimate_shift(self.predict_log_proba(read_here(X)), self.class_prior_, max_iter, tol)
        other = self.with_prior(dict(zip(self.classes_.tolist(), shift.prior.tolist(), strict=True)))
        other.prior_shift_ = shift
        return other

    # -- results

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
        return summarise_evidence(self.model_, self._shares, self.pooled_, self.class_prior_)

    # -- reading rows

    def _table(self, X: Any, start: int = 0, ignored: Ignored | None = None) -> Table:
        """Rows as a table; `ignored` are by default the columns that `families` declares to be so."""
        table = read_table(X, start, ignored or partial(columns_set_aside, self.families))
        if table.is_sparse and table.width > MOST_SPARSE_COLUMNS:
            raise InputError(
                f"X is sparse with {table.width:,} columns, and EvidenceClassifier reads at most "
                f"{MOST_SPARSE_COLUMNS:,} of them. Use NaiveBayes."
            )
        return table

    def _read(self, X: Any, start: int = 0) -> Table:
        """Rows with the columns of the fit, which are found by name in a frame."""
        names = self.model_.encoding.names
        unused = ignoring({names[j] for j in columns_set_aside(self.families, names)})
        table = matched(self, self._table(features(self, whole_frame(X)), start, unused))
        table.remedy = FITTED
        return table

    # -- files

    def save(self, path: persistence.FilePath) -> None:
        """Save the fitted model to a file.

        The file is a safetensors file with a JSON header and contains no pickle. It contains the training rows that the
        view 'neighbours' compares new rows with, and those that alone have a class and a missingness pattern.

        Parameters
        ----------
        path : str, bytes or path-like
            Name of the file. An existing file is replaced atomically.

        See Also
        --------
        likely.load : Reads the file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import likely
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     likely.EvidenceClassifier(["columns"]).fit(X, y).save(Path(folder) / "iris.likely")
        ...     model = likely.load(Path(folder) / "iris.likely")
        >>> model.predict(X[:2])
        array([0, 0])
        """
        check_is_fitted(self)
        persistence.write(path, self._content())

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
                "target_names": self._target_names,
            },
        }

    def _restore(self, content: dict[str, Any]) -> Self:
        """Become the model that was saved."""
        self._check_options()
        self.model_, self.pooled_, self._shares = content["model"], content["pooled"], content["shares"]
        self._prior, self._rows = content["prior"], content["rows"]
        model, columns, core = self.model_, content["columns"], content["generative"]
        self.generative_ = core["estimator"]._restore(core)
        check(self)
        self._frame = FrameSchema.from_file(columns, columns["names"])
        self._column_names, self.n_features_in_ = self._frame.names, len(model.encoding.names)
        if columns["named"]:
            self.feature_names_in_ = np.array(model.encoding.names, dtype=object)
        self._target_names = tuple(columns["target_names"])
        return self


def _fingerprint(estimator: EvidenceClassifier, sample: DistinctRows) -> str:
    """A digest of what determines the structures of a model: two models can be added if it is the same."""
    digest = hashlib.sha256()
    options = estimator.views if isinstance(estimator.views, str) else list(map(str, estimator.views))
    digest.update(repr((options, estimator.n_trees, estimator.random_state, sample.table.names)).encode())
    if estimator.families:
        digest.update(plain_text(dict(estimator.families)).encode())
    digest.update(sample.keys.tobytes())
    digest.update(sample.weights.tobytes())
    return digest.hexdigest()
