"""Cross-validation from sufficient statistics: one pass collects the statistics of each fold.

The model of a fold is estimated from the sum of the statistics of the other folds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from likely.choice.fitting import with_covariances
from likely.choice.row_sample import MOST_ROWS
from likely.data import row_draw
from likely.data.batches import Batch, Batches
from likely.data.frames import names_column, names_columns, whole_frame
from likely.data.parts import PartSource, source_of
from likely.data.row_blocks import many
from likely.data.row_hash import content_hashes
from likely.data.source_rows import few_rows
from likely.data.sources import check_targets
from likely.data.target_checks import warn_target
from likely.errors import InputError, MissingPatternsError, check_jobs
from likely.estimators.base import Learner
from likely.estimators.generative import is_generative_classifier, refuse_unseen
from likely.estimators.model_options import plain_text
from likely.evaluation.folds import (
    FoldOptions,
    Split,
    Splits,
    check_weights,
    fold_numbers,
    groups_apart,
    is_partition,
    labeled_numbers,
    named_fold,
    over_rows,
    stratified_splits,
    sums_of_others,
    training_rows,
    unlabeled_note,
)
from likely.evaluation.held_out_scores import (
    RANK_SCORES,
    SCORES,
    CrossValidation,
    FoldScores,
    RegressionCrossValidation,
    RowResults,
    cross_validation,
)
from likely.evaluation.refitting import estimator_type, refit_classifier, refit_regressor
from likely.evaluation.score_names import score_values, scoring_names
from likely.evaluation.scoring import FoldModel, baseline_scores, rank_scores, recalls
from likely.evaluation.source_folds import cross_validate_source, fold_model
from likely.model.expectations import has_incomplete_rows, needs_em
from likely.model.fit import Fit
from likely.model.rendering import frame_library
from likely.model.shared_collection import SharedCollection, options
from likely.model.specification import Specification
from likely.numerics.options import known_options
from likely.numerics.threads import single_threaded_blas_for
from likely.numerics.tree_sum import group_sum
from likely.statistics.counts import positions
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array, FoldsLike, GroupsLike, RandomStateLike, TableLike, TargetsLike, WeightsLike

MODELS_IN_MEMORY = 64  # fold models that are held at the same time
DEFAULT_FOLDS = 10
CELLS_PER_TASK = 2**17  # below this many cells per task, threads would mostly wait for one another


@known_options
def cross_validate(
    model: BaseEstimator,
    X: TableLike,
    y: TargetsLike,
    folds: FoldsLike = DEFAULT_FOLDS,
    sample_weight: WeightsLike | None = None,
    random_state: RandomStateLike | None = 0,
    groups: GroupsLike | None = None,
    copies: str = "auto",
    *,
    cv: FoldsLike | None = None,
    scoring: str | Iterable[str] | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Cross-validate a classifier or a regressor, and compare it with a baseline without features.

    Generative classifiers of this library are cross-validated from sufficient statistics: one pass over the rows
    collects the statistics of each fold, and the model of a fold is estimated from the sum of the statistics of the
    other folds, so that ten folds cost little more than one fit and one prediction. Family choices, data-dependent
    priors and shrinkage are estimated anew in every fold. Any other estimator with the scikit-learn API, also a
    pipeline, is cloned and fitted again for every fold. The same folds are used for all models. Equal rows are in the
    same fold, and the result has their number (`copies`).

    A source of up to 20,000 rows is read into memory. Of a larger one, generative classifiers take three passes, of
    which the second sums the statistics of each fold and the third the scores: memory does not grow with the number of
    rows. The fold of a row is a hash of `random_state` and its values, so that folds are not stratified and have about
    the same size; for `copies='apart'`, of `random_state` and its place in the source. Families, covariances, the
    strength of their priors and the calibration are then chosen once for all folds, a few choices compared with more
    than 20,000 rows; all parameters are estimated anew in every fold.

    Parameters
    ----------
    model : estimator
        A classifier or regressor of this library or of any other that follows the scikit-learn API. It need not be
        fitted, and is not changed.
    X : array-like, sparse matrix, frame or source of shape (n_samples, n_features)
        Rows: in memory, or an object with a method `chunks()`. Missing values are allowed where the model allows them.
        A source of more than 20,000 rows must have labels for all rows, and the model must be fitted by sums.
    y : array-like of shape (n_samples,) or str
        Class labels, or the name of the column of X that has them; for a regressor the targets, of shape (n_samples,)
        or (n_samples, n_outputs). Unlabeled rows (None, NaN and the value of the option `unlabeled`) of generative
        classifiers are training rows of every fold, and are not scored.
    folds : int, splitter, iterable of (train, test) or array-like of shape (n_samples,), default=10
        A number of shuffled folds, stratified for classifiers: those of scikit-learn's ``StratifiedKFold(folds,
        shuffle=True, random_state=random_state)``, and of KFold for regressors, if no rows are equal and there are no
        groups. Or a splitter of scikit-learn, pairs
        of row numbers, or the fold number of each row. A number for sources of more than 20,000 rows.
    sample_weight : array-like of shape (n_samples,) or str, default=None
        Number of times that each row counts, in fitting and in scoring, or the name of the column of X that has it.
        None is 1 for all rows.
    random_state : int or RandomState, default=0
        Seed of the shuffle, where `folds` is a number. None draws other folds at every call.
    groups : array-like of shape (n_samples,) or str, default=None
        Group of each row, such as the patient that it is about, or the name of the column of X that has it, which is
        not a feature then. Rows of a group are in the same fold; splitters get the groups as well. Not for sources of
        more than 20,000 rows.
    copies : {'auto', 'together', 'apart'}, default='auto'
        Whether equal rows are in the same fold, where `folds` is a number and `groups` is None. A copy of a held-out
        row among the training rows makes scores too good. 'together' keeps rows with equal features (in a regression:
        and equal targets) in one fold; where such rows are separate observations, as with few categorical columns, the
        scores are conservative. 'apart' does not. 'auto' is 'apart' if rows are cells of a table: there are fewer than
        two combinations of values per fold, or each occurs five times in the mean and the classes of equal rows differ
        at least a tenth as often as those of any two rows; else 'together'. The notes of the result report it.
    cv : default=None
        Another name of `folds`, that of scikit-learn.
    scoring : str or iterable of str, default=None
        Scores that `scores`, `to_frame()` and the text of the result have: for a classifier 'log_loss', 'error',
        'brier', 'log_likelihood', 'accuracy', 'auc', 'average_precision', 'recall' or 'balanced_accuracy', or the names
        of scikit-learn 'neg_log_loss', 'neg_brier_score', 'roc_auc', 'roc_auc_ovr' or 'recall_macro'; for a regressor
        'squared_error', 'log_likelihood', 'r2', 'neg_mean_squared_error' or 'neg_root_mean_squared_error'. None is all
        scores that the model has. The attributes have every score in any case.
    n_jobs : int, default=None
        Number of folds that are fitted at the same time by joblib, where the model is fitted again for every fold; -1
        is one for each processor. Generative classifiers of this library use threads where they help, and ignore it.

    Returns
    -------
    CrossValidation or RegressionCrossValidation
        For a classifier `log_loss`, `error`, `brier` and `log_likelihood`, one value per fold, next to those of the
        class proportions; `auc`, `average_precision`, and the `recall` of each class; `posterior`, the held-out
        predictions; the `confusion` matrix and `reliability()`. Single predictions, `auc` and `average_precision` are
        not kept for sources of more than 20,000 rows. For a regressor `squared_error` and `log_likelihood`, next to
        those of the mean of y, and `prediction`.

    See Also
    --------
    select : Ranks several generative models.
    compare : Learning curves of several models.
    GenerativeClassifier.left_out_proba : Leave-one-out predictions of a fitted model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import LinearDiscriminant, cross_validate
    >>> X, y = load_iris(return_X_y=True)
    >>> result = cross_validate(LinearDiscriminant(), X, y, folds=5)
    >>> result.error.round(3)
    array([0.   , 0.033, 0.   , 0.   , 0.067])
    >>> result.confusion
    array([[50,  0,  0],
           [ 0, 48,  2],
           [ 0,  1, 49]])
    >>> result.posterior.shape
    (150, 3)

    Estimators of scikit-learn, on the same folds:

    >>> from sklearn.linear_model import LogisticRegression
    >>> cross_validate(LogisticRegression(max_iter=1000), X, y, folds=5).error.round(3)
    array([0.067, 0.033, 0.   , 0.033, 0.033])
    """
    kind = estimator_type(model, "model")
    options = FoldOptions(_only_folds(folds, cv), random_state, groups, copies)
    options.check()
    check_jobs(n_jobs)
    names = scoring_names(scoring, kind == "regressor")
    found = _cross_validated(model, kind, X, y, sample_weight, options, n_jobs)
    for name in names:
        score_values(name, found)  # raises if the model does not have it
    return replace(found, scoring=names) if names else found


def _only_folds(folds: Any, cv: Any) -> Any:
    """The folds, by either name."""
    if cv is None:
        return folds
    if not isinstance(folds, int) or folds != DEFAULT_FOLDS:
        raise InputError("folds and cv are two names of one option. Pass one of them.")
    return cv


def _cross_validated(
    model: Any, kind: str | None, X: Any, y: Any, sample_weight: Any, options: FoldOptions, n_jobs: int | None
) -> CrossValidation | RegressionCrossValidation:
    """Cross-validation by the statistics of folds where the model has them, and by fitting it again otherwise."""
    if isinstance(source := source_of(X), PartSource):
        X = source
        check_targets(X, y, sample_weight, names_columns if kind == "regressor" else names_column)
        rows = few_rows(X)
        if rows is None and is_generative_classifier(model):
            return cross_validate_source(model, X, y, sample_weight, options)
        if rows is None:
            raise InputError(
                f"{type(model).__name__} is fitted again for every fold, which needs the rows in memory, and X is a "
                f"source of more than {row_draw.MOST_DRAWN:,} rows. Pass some of the rows as a frame."
            )
        X = rows
    X, groups = groups_apart(whole_frame(X), options.groups)
    options = replace(options, groups=groups)
    if is_generative_classifier(model):
        return _from_statistics(model, X, y, sample_weight, options)
    if kind == "classifier":
        return refit_classifier(model, X, y, sample_weight, options, n_jobs)
    if kind == "regressor":
        return refit_regressor(model, X, y, sample_weight, options, n_jobs)
    raise InputError(
        f"{type(model).__name__} is neither a classifier nor a regressor, so that its predictions have no scores."
    )


def _from_statistics(model: Learner, X: Any, y: Any, sample_weight: Any, options: FoldOptions) -> CrossValidation:
    """Cross-validation of a generative classifier from the statistics of the folds."""
    model._check_options()
    batches = model._batches(X, y, sample_weight, model._table, allow_unlabeled=True)
    whole = batches.first
    warn_target(whole.counts)
    folding = Folds(whole, stratified_splits(options, whole))
    specification = model._specify(batches)
    collection = SharedCollection([specification])
    try:
        parts = [] if whole.unlabeled is not None or needs_em(specification, whole) else folding.collect(collection)
        if parts and has_incomplete_rows(specification, whole):
            group_sum(parts)  # raises where folds have too many missingness patterns together
    except MissingPatternsError:
        parts = []
    return folding.evaluate(model, specification, collection, parts)


class Folds:
    """Rows divided into folds: training and test rows of each."""

    def __init__(self, whole: Batch, divided: Splits) -> None:
        splits: Sequence[Split] = divided.pairs
        check_weights(splits, whole.weights)
        self.divided = divided
        rows = whole.table.rows
        self.whole, self.splits, self.number = whole, splits, fold_numbers(splits, rows)
        self.tests = over_rows(splits, lambda split: whole.take(split[1]), rows)
        self.partition = sum(len(test) for _, test in splits) == rows and bool(np.all(self.number >= 0))

    def collect(self, collection: SharedCollection) -> list[JointStatistics]:
        """The statistics of each fold; none where the folds are not a partition of the rows."""
        if not self.partition:
            return []
        table = self.whole.table
        steps = len(self.tests) * collection.steps(self.whole)
        long = table.rows * table.cells(table.width, True) >= steps * CELLS_PER_TASK
        return many(self.tests, collection.summarise, apart=long)

    def evaluate(
        self,
        model: Learner,
        specification: Specification,
        collection: SharedCollection,
        parts: Sequence[JointStatistics],
        ranks: bool = True,
    ) -> CrossValidation:
        """Scores of a model on each fold, estimated from the statistics of the others, or from its rows without any."""
        whole = self.whole
        classes = specification.with_declared(JointStatistics(whole.counts, ())).counts.classes
        codes_of = positions(classes, whole.counts.classes)
        posterior = np.full((whole.table.rows, len(classes)), np.nan)
        if model._calibrates and whole.table.rows > MOST_ROWS:
            content_hashes(whole.table)  # once for all folds, which draw samples by them

        def fitted(task: tuple[int, JointStatistics | None]) -> tuple[int, FoldModel]:
            i, others = task
            with single_threaded_blas_for(whole.table.width), named_fold(i):
                fit, by_sums = self._fit(model, specification, collection, i, others)
                found = fold_model(model, fit, collection, parts[i] if by_sums else None)
                refuse_unseen(model, found.model, self.tests[i].table)
                return i, found

        def predict(task: tuple[int, FoldModel]) -> tuple[Array, AnyArray, tuple[float, float]]:
            """Predictions for the rows of a fold: their scores, confusion matrix, and with `ranks` scores of ranks."""
            i, fold = task
            test, batch = self.splits[i][1], self.tests[i]
            found, scores, wrong = fold.scores(batch, classes, codes_of[batch.codes])
            mine = slice(None) if self.partition else self.number[test] == i
            posterior[test[mine]] = found[mine]
            ranked = rank_scores(found, codes_of[batch.codes], batch.weights) if ranks else (np.nan, np.nan)
            return scores, wrong, ranked

        scores, ranked = (np.empty((len(names), len(self.splits))) for names in (SCORES, RANK_SCORES))
        recall = np.empty((len(self.splits), len(classes)))
        confusion = np.zeros((len(classes), len(classes)), dtype=np.intp if whole.weights is None else np.float64)
        sums = sums_of_others(parts) if parts else ((i, None) for i in range(len(self.splits)))
        while models := list(map(fitted, itertools.islice(sums, MODELS_IN_MEMORY))):  # steps too short for threads
            for (i, _), (found, wrong, of_ranks) in zip(models, many(models, predict), strict=True):
                scores[:, i], ranked[:, i], recall[i] = found, of_ranks, recalls(wrong)
                confusion += wrong
        rows, baseline = np.array([len(test) for _, test in self.splits]), self.baseline(classes)
        notes = unlabeled_note(0 if whole.unlabeled is None else whole.unlabeled.table.rows) + self.divided.notes
        results = self._all_rows(posterior, codes_of[whole.codes])
        folds = FoldScores(rows, scores, baseline, ranked, recall)
        return cross_validation(
            model, frame_library(whole.X), folds, classes, confusion, notes, self.divided.copies, results
        )

    def _fit(
        self,
        model: Learner,
        specification: Specification,
        collection: SharedCollection,
        i: int,
        others: JointStatistics | None,
    ) -> tuple[Fit, bool]:
        """The fit of the training rows of a fold, and whether it is one of the statistics that were collected."""
        train = self._train(i)
        if train is None and others is not None:
            rest = Batches.of([*self.tests[:i], *self.tests[i + 1 :]])
        else:
            others = None
            train = training_rows(self.splits[i], self.whole.table.rows)
            rest = Batches.of([replace(self.whole.take(train), unlabeled=self.whole.unlabeled)])
        rest.set_aside = specification.set_aside  # a part may have too few rows to find them
        wanted = specification if model._plans_are_declared else model._specify(rest)
        if others is None or not _same(wanted, specification):
            rest = _present_classes(rest)
            return model._fit_rows(model._specify(rest), rest), False
        present = others.counts.rows > 0
        if not present.all():
            others, rest = others.select(present), _present_classes(rest)
        return with_covariances(Fit.of_collection(wanted, collection, others), rest, model._calibrates), True

    def baseline(self, classes: AnyArray) -> Array:
        """Log-loss, error rate and Brier score of each fold by the class proportions of its training rows."""
        found = []
        for i, test in enumerate(self.tests):
            train = self._train(i)
            counts = self.whole.counts - test.counts if train is None else self.whole.take(train).counts
            found.append(baseline_scores(*(each.align(classes).weight for each in (counts, test.counts))))
        return np.array(found).T

    def _train(self, i: int) -> AnyArray | None:
        """The training rows of a fold; None if they are all rows of the other folds."""
        train, test = self.splits[i]
        rows = self.whole.table.rows
        if self.partition and (train is None or is_partition(train, test, rows)):
            return None
        return training_rows((train, test), rows)

    def _all_rows(self, posterior: Array, codes: AnyArray) -> RowResults:
        """Predictions, folds, codes and weights of all rows of the user: unlabeled rows have none."""
        whole, unlabeled, numbers = self.whole, self.whole.unlabeled, labeled_numbers(self.whole)
        if numbers is None or unlabeled is None:
            return RowResults(posterior, self.number, codes, whole.weights)
        total = len(numbers) + unlabeled.table.rows
        every = np.full((total, posterior.shape[1]), np.nan)
        fold, all_codes, weights = np.full(total, -1), np.full(total, -1), None
        every[numbers], fold[numbers], all_codes[numbers] = posterior, self.number, codes
        if whole.weights is not None:
            weights = np.empty(total)
            weights[numbers] = whole.weights
            weights[np.setdiff1d(np.arange(total), numbers)] = unlabeled.row_weights
        return RowResults(every, fold, all_codes, weights)


def _present_classes(batches: Batches) -> Batches:
    """The same rows with the classes that have any."""
    narrowed = (batch.narrowed() for batch in batches)
    present = Batches.of([batch for batch in narrowed if len(batch.counts.classes)])
    present.set_aside = batches.set_aside
    return present


def _same(left: Specification, right: Specification) -> bool:
    """Whether both have the same blocks with the same families and options."""
    if left is right:
        return True
    mine, yours = (
        [(plan.columns, [plain_text(each.family) for each in options(plan)]) for plan in specification.plans]
        for specification in (left, right)
    )
    return mine == yours
