"""Cross-validation from sufficient statistics: one pass collects the statistics of each fold.

The model of a fold is estimated from the sum of the statistics of the other folds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from likely.data.batches import Batch, Batches, is_source
from likely.data.row_blocks import many
from likely.errors import InputError, NotEstimableError
from likely.estimators.algebra import plain_text
from likely.estimators.generative import GenerativeModel
from likely.estimators.predictions import refuse_unseen
from likely.estimators.protocols import FittableFromStatistics
from likely.evaluation.folds import Split, is_partition, over_rows, read_splits
from likely.evaluation.scoring import Scores, mean_log_likelihood, predict_rows, score_rows
from likely.model.family_choice import choose_families
from likely.model.fit import needs_em
from likely.model.joint import JointModel
from likely.model.plans import Plan
from likely.model.shared_collection import SharedCollection, options
from likely.model.specification import Specification
from likely.numerics.threads import single_threaded_blas_for
from likely.statistics.counts import positions
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array, FoldsLike, LabelsLike, TableLike, WeightsLike

MODELS_IN_MEMORY = 64  # fold models that are held at the same time
CELLS_PER_TASK = 2**17  # below so many cells per task, threads would mostly wait for one another
SCORES = Scores._fields


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """Scores and predictions of a model on held-out rows. `str()` renders the scores as a table.

    Attributes
    ----------
    log_loss : ndarray of shape (n_folds,)
        Mean of −log p(class | x) of the true classes, as `sklearn.metrics.log_loss`.
    error : ndarray of shape (n_folds,)
        Proportion of misclassified rows.
    brier : ndarray of shape (n_folds,)
        Mean of Σ_k (p_k − [y = k])², halved for two classes.
    log_likelihood : ndarray of shape (n_folds,)
        Mean of log p(x, y); NaN where the model has no density.
    posterior : ndarray of shape (n_samples, n_classes)
        p(class | x) of every row, by a model that was fitted without it; NaN for rows in no fold.
    fold : ndarray of shape (n_samples,)
        Fold number of each row, -1 for rows in no fold.
    classes : ndarray of shape (n_classes,)
        Class labels, in the order of the columns of `posterior`.

    See Also
    --------
    cross_validate : Returns this object.
    """

    log_loss: Array
    error: Array
    brier: Array
    log_likelihood: Array
    posterior: Array
    fold: AnyArray
    classes: AnyArray

    def __str__(self) -> str:
        lines = ["fold        " + "".join(f"{name:>16}" for name in SCORES)]
        lines += [
            f"{i:<12}" + "".join(f"{getattr(self, name)[i]:>16.6f}" for name in SCORES) for i in range(len(self.error))
        ]
        lines.append("mean        " + "".join(f"{getattr(self, name).mean():>16.6f}" for name in SCORES))
        return "\n".join(lines)


def cross_validate(
    model: GenerativeModel,
    X: TableLike,
    y: LabelsLike,
    folds: FoldsLike = 10,
    sample_weight: WeightsLike | None = None,
) -> CrossValidation:
    """Cross-validate a generative model from sufficient statistics.

    One pass over the rows collects the statistics of each fold. The model of a fold is estimated from the sum of the
    statistics of the other folds, so that ten folds cost little more than one fit and one prediction. Family choices,
    data-dependent priors and shrinkage are estimated anew in every fold.

    Parameters
    ----------
    model : GenerativeClassifier, NaiveBayes, LinearDiscriminant, QuadraticDiscriminant or NearestPrototype
        The model to evaluate. It need not be fitted, and is not changed.
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        Rows, in memory. Missing values are allowed where the model allows them.
    y : array-like of shape (n_samples,) or str
        Class labels, or the name of the column of X that has them.
    folds : int, splitter, iterable of (train, test) or array-like of shape (n_samples,), default=10
        A number of stratified folds (the assignment of scikit-learn's StratifiedKFold), a splitter of scikit-learn,
        pairs of row numbers, or the fold number of each row.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of times that each row counts, in fitting and in scoring. None is 1 for all rows.

    Returns
    -------
    CrossValidation
        `log_loss`, `error`, `brier` and `log_likelihood`, one value per fold; `posterior`, the held-out predictions.

    See Also
    --------
    select : Ranks several models.
    compare : Learning curves of several models.
    GenerativeClassifier.left_out_proba : Leave-one-out predictions of a fitted model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import LinearDiscriminant, cross_validate
    >>> X, y = load_iris(return_X_y=True)
    >>> result = cross_validate(LinearDiscriminant(), X, y, folds=5)
    >>> result.error.round(3)
    array([0.   , 0.   , 0.033, 0.067, 0.   ])
    >>> result.posterior.shape
    (150, 3)
    """
    if not isinstance(model, GenerativeModel):
        raise InputError(
            f"{type(model).__name__} is not a generative model of likely. Use sklearn.model_selection.cross_validate."
        )
    if is_source(X):
        raise InputError("cross_validate needs the rows in memory, but X comes in chunks.")
    model._check_options()
    batches = Batches(X, y, sample_weight, model._table, type(model).__name__)
    whole = batches.first
    folding = Folds(whole, read_splits(folds, whole))
    specification = model._specify(batches)
    collection = SharedCollection([specification])
    if needs_em(specification, whole):
        parts = []  # each fold is fitted to its rows
        folding.partition = False
    else:
        parts = folding.collect(collection)
    return folding.evaluate(model, specification, collection, parts)


class Folds:
    """Rows divided into folds: training and test rows of each."""

    def __init__(self, whole: Batch, splits: Sequence[Split]) -> None:
        self.whole, self.splits = whole, splits
        self.number = np.full(whole.table.rows, -1)
        for i, (_, test) in enumerate(splits):
            self.number[test] = i  # a row in several folds has the last one
        self.tests = over_rows(splits, lambda split: whole.take(split[1]), whole.table.rows)
        count = sum(len(test) for _, test in splits)
        self.partition = count == whole.table.rows and bool(np.all(self.number >= 0))

    def collect(self, collection: SharedCollection) -> list[JointStatistics]:
        """The statistics of each fold; none where the folds are not a partition of the rows."""
        if not self.partition:
            return []
        table = self.whole.table
        steps = len(self.tests) * collection.steps(self.whole)
        long = table.rows * table.cells(table.width, True) >= steps * CELLS_PER_TASK
        return many(self.tests, collection.collect, apart=long)

    def evaluate(
        self,
        model: FittableFromStatistics,
        specification: Specification,
        collection: SharedCollection,
        parts: Sequence[JointStatistics],
    ) -> CrossValidation:
        """Scores of a model on each fold, estimated from the statistics of the others."""
        whole = self.whole
        classes = specification.with_declared(JointStatistics(whole.counts, ())).counts.classes
        codes_of = positions(classes, whole.counts.classes)
        posterior = np.empty((whole.table.rows, len(classes)))
        if not self.partition:
            posterior[...] = np.nan

        def fit(task: tuple[int, JointStatistics | None]) -> tuple[int, JointModel, float | None]:
            """The model of a fold, and the mean log-likelihood of its rows where statistics determine it."""
            i, others = task
            with single_threaded_blas_for(whole.table.width):
                fitted, planned = self._fit(model, specification, collection, i, others)
                model._check_model(fitted)
                refuse_unseen(model, fitted, self.tests[i].table)
                likelihood = (
                    None
                    if planned is None
                    else mean_log_likelihood(planned, fitted, collection.statistics(planned, parts[i]))
                )
            return i, fitted, likelihood

        def predict(task: tuple[int, JointModel, float | None]) -> Scores:
            """Predictions for the rows of a fold, and their scores."""
            i, fitted, likelihood = task
            test, batch = self.splits[i][1], self.tests[i]
            found = predict_rows(fitted, batch, classes, codes_of[batch.codes], densities=likelihood is None)
            mine = slice(None) if self.partition else self.number[test] == i
            posterior[test[mine]] = found.posterior[mine]
            return score_rows(found, batch.weights, likelihood)

        scores = np.empty((len(SCORES), len(self.splits)))
        sums = _sums_of_others(parts) if self.partition else ((i, None) for i in range(len(self.splits)))
        while models := list(map(fit, itertools.islice(sums, MODELS_IN_MEMORY))):  # steps too short for threads
            for (i, _, _), found in zip(models, many(models, predict), strict=True):
                scores[:, i] = found
        log_loss, error, brier, likelihood = scores
        return CrossValidation(log_loss, error, brier, likelihood, posterior, self.number, classes)

    def _fit(
        self,
        model: FittableFromStatistics,
        specification: Specification,
        collection: SharedCollection,
        i: int,
        others: JointStatistics | None,
    ) -> tuple[JointModel, Specification | None]:
        """The model of a fold; and its specification, where it is the one whose statistics were collected."""
        train = self._train(i)
        rest = Batches.of([*self.tests[:i], *self.tests[i + 1 :]] if train is None else [self.whole.take(train)])
        wanted, same = specification if model._plans_are_declared else model._specify(rest), False
        try:
            if train is None and others is not None and _same(wanted, specification):
                present = others.counts.rows > 0
                if not present.all():
                    others, rest = others.select(present), _present_classes(rest)
                mine, statistics, choices = choose_families(wanted, rest, collection, others)
                same = not choices
            else:
                rest = _present_classes(rest)
                fit = model._fit_rows(model._specify(rest), rest)
                mine, statistics = fit.specification, fit.statistics
            return mine.estimate(statistics)[0], mine if same else None
        except NotEstimableError as error:
            raise NotEstimableError(f"Fold {i}: {error}") from None

    def _train(self, i: int) -> AnyArray | None:
        """The training rows of a fold; None where they are all rows of the other folds."""
        train, test = self.splits[i]
        rows = self.whole.table.rows
        if self.partition and (train is None or is_partition(train, test, rows)):
            return None
        return np.setdiff1d(np.arange(rows), test) if train is None else train


def sum_statistics(parts: Sequence[JointStatistics]) -> JointStatistics:
    """The statistics of all parts together."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _sums_of_others(parts: Sequence[JointStatistics]) -> Iterator[tuple[int, JointStatistics | None]]:
    """For each part the sum of all others, as sums before and after it: subtraction cancels for a dominant part."""
    after = [*reversed(list(itertools.accumulate(reversed(parts[1:])))), None]
    before: JointStatistics | None = None
    for i, (part, rest) in enumerate(zip(parts, after, strict=True)):
        yield i, rest if before is None else before if rest is None else before + rest
        before = part if before is None else before + part


def _present_classes(batches: Batches) -> Batches:
    """The same rows with the classes that have any."""
    narrowed = (batch.narrowed() for batch in batches)
    return Batches.of([batch for batch in narrowed if len(batch.counts.classes)])


def _same(left: Specification, right: Specification) -> bool:
    """Whether both have the same blocks with the same families."""
    return len(left.plans) == len(right.plans) and all(
        a.columns == b.columns and len(a.others) == len(b.others) and all(map(_same_plan, options(a), options(b)))
        for a, b in zip(left.plans, right.plans, strict=True)
    )


def _same_plan(left: Plan, right: Plan) -> bool:
    """Whether two plans have the same family with the same options; usually they are the same objects."""
    mine, yours = vars(left.family), vars(right.family)
    if type(left.family) is type(right.family) and all(mine[name] is yours.get(name) for name in mine):
        return True
    return plain_text(left.family) == plain_text(right.family)
