"""Cross-validation of generative classifiers on sources of many rows, in three passes that sum.

The fold of a row is a hash of the seed and its values, so that equal rows are in the same fold. Where equal rows are
separate observations, it is a hash of its part and its number; unless the order of the rows may change between passes,
as in queries: a row must be in the same fold in both passes that use it. The first pass chooses
families where they are not declared, the second collects the statistics of each fold, and the third sums the scores of
held-out rows. The model of a fold is estimated from the sum of the statistics of the other folds. Families,
covariances, the strength of their priors and the calibration are those of all rows: a handful of choices against more
than 20,000 rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from likely.choice.fitting import with_covariances
from likely.data import row_draw
from likely.data.batches import Batch
from likely.data.parts import source_of
from likely.data.row_hash import checksums, content_hashes, number_hashes, scrambled
from likely.data.target_checks import warn_target
from likely.errors import InputError, MissingPatternsError
from likely.estimators.base import Learner
from likely.estimators.generative import refuse_unseen
from likely.evaluation.copies import DistinctRows, EqualRows
from likely.evaluation.folds import SEPARATE, TOGETHER, FoldOptions, counted_copies, named_fold, sums_of_others
from likely.evaluation.held_out_scores import RANK_SCORES, SCORES, CrossValidation, FoldScores, cross_validation
from likely.evaluation.scoring import FoldModel, baseline_scores, mean_log_likelihood
from likely.model.expectations import needs_em
from likely.model.fit import Fit
from likely.model.rendering import frame_library
from likely.model.shared_collection import SharedCollection
from likely.model.specification import Specification
from likely.numerics.random import seeded
from likely.numerics.threads import single_threaded_blas_for
from likely.numerics.tree_sum import group_sum
from likely.statistics.counts import positions
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array

FROZEN = (
    "families, covariances, strengths of priors and calibration are those of all rows",
    "predictions of single rows are not kept",
)
BY_VALUES = "equal rows are in the same fold, because the order of the rows may change between passes"
FEW = "the first rows have few combinations of values"
REMEDY = "Pass some of the rows as a frame, such as a sample of 20,000."


@dataclass(frozen=True, slots=True)
class HashedFolds:
    """The fold of a row, by a hash of the seed and of its part and number, or of its values: the same in every pass."""

    count: int
    seed: int
    by_values: bool

    @classmethod
    def of(cls, options: FoldOptions) -> HashedFolds:
        """A number of folds, by values; an error for anything else."""
        folds = options.folds
        check_number_of_folds(folds)
        if folds < 2:
            raise InputError(f"folds={folds} is below 2, the least number of folds.")
        if options.groups is not None:
            raise InputError(
                f"groups is not supported for sources of more than {row_draw.MOST_DRAWN:,} rows. Pass some of the rows "
                "as a frame."
            )
        return cls(int(folds), int(seeded(options.random_state).randint(2**32, dtype=np.uint64)), True)

    def rows(self, batch: Batch) -> list[AnyArray]:
        """The labeled rows of a batch in each fold."""
        if self.by_values:
            hashes = number_hashes(content_hashes(batch.table), self.seed)
        else:
            hashes = number_hashes(batch.table.numbers_of_rows, self.seed, batch.part)
        fold = hashes % np.uint64(self.count)
        return [np.flatnonzero(fold == np.uint64(i)) for i in range(self.count)]


def check_number_of_folds(folds: Any) -> None:
    """Raise if folds of a source are not a number: row numbers and splitters need all rows at a time."""
    if not isinstance(folds, Integral) or isinstance(folds, bool):
        raise InputError(
            f"folds must be a number of folds, not a {type(folds).__name__}, because X is a source of more than "
            f"{row_draw.MOST_DRAWN:,} rows: its folds are drawn row by row. For other folds, pass some of the rows as "
            "a frame."
        )


@dataclass(frozen=True, slots=True, eq=False)
class FoldStatistics:
    """Statistics and number of rows of each fold. Those of different batches add up."""

    parts: tuple[JointStatistics | None, ...]  # None without rows
    rows: AnyArray
    distinct: DistinctRows

    def __add__(self, other: FoldStatistics) -> FoldStatistics:
        parts = tuple(map(group_sum, zip(self.parts, other.parts, strict=True)))
        return FoldStatistics(parts, self.rows + other.rows, self.distinct + other.distinct)


@dataclass(frozen=True, slots=True, eq=False)
class CollectFolds:
    """The statistics of each fold of a batch."""

    folds: HashedFolds
    specification: Specification
    collection: SharedCollection

    def __call__(self, batch: Batch) -> FoldStatistics:
        if batch.unlabeled is not None:
            row = batch.unlabeled.table.number(0)
            raise InputError(
                f"y, row {row}: the label is missing. Unlabeled rows would be training rows of every fold, by EM over "
                f"the rows, which cross_validate does for rows in memory alone. Leave them out of the source. {REMEDY}"
            )
        if needs_em(self.specification, batch):
            raise InputError(
                "cross_validate: the model is fitted by EM over the rows, because of several components or of missing "
                f"values without additive statistics. Of a source it takes models that are sums over rows. {REMEDY}"
            )
        rows = self.folds.rows(batch)
        parts = (self.collection.summarise(batch.take(mine)) if len(mine) else None for mine in rows)
        labels = batch.counts.classes.tolist()
        marks = checksums([repr(label) for label in labels])[batch.codes]  # codes differ between batches
        distinct = DistinctRows.of(scrambled(content_hashes(batch.table) + scrambled(marks)))
        return FoldStatistics(tuple(parts), np.array([len(mine) for mine in rows]), distinct)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSums:
    """Weighted sums of the scores of held-out rows in each fold, and the confusion matrix. They add up."""

    sums: Array  # (scores, folds)
    weight: Array  # (folds,)
    confusion: AnyArray
    held_out: Array  # weight of the rows of each class, (folds, classes)
    right: Array  # of those that are predicted as this class, (folds, classes)

    def __add__(self, other: ScoreSums) -> ScoreSums:
        pairs = ((getattr(each, field.name) for each in (self, other)) for field in fields(self))
        return ScoreSums(*(mine + yours for mine, yours in pairs))

    def recall(self) -> Array:
        """The proportion of the rows of each class that are predicted as this class, in each fold."""
        return np.divide(self.right, self.held_out, out=np.full(self.right.shape, np.nan), where=self.held_out > 0.0)

    def means(self) -> Array:
        """Mean scores of each fold; NaN where its rows have no weight."""
        known = np.broadcast_to(self.weight > 0.0, self.sums.shape)
        return np.divide(self.sums, self.weight, out=np.full(self.sums.shape, np.nan), where=known)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreFolds:
    """The scores of the rows of a batch, each by the model of its fold."""

    folds: HashedFolds
    estimator: Any  # its options
    models: tuple[FoldModel, ...]
    classes: AnyArray

    def __call__(self, batch: Batch) -> ScoreSums:
        size, place = len(self.classes), positions(self.classes, batch.counts.classes)
        sums, weight = np.zeros((len(SCORES), self.folds.count)), np.zeros(self.folds.count)
        confusion = np.zeros((size, size), dtype=np.intp if batch.weights is None else np.float64)
        held_out, right = (np.zeros((self.folds.count, size)) for _ in range(2))
        for i, rows in enumerate(self.folds.rows(batch)):
            used = rows if batch.weights is None else rows[batch.weights[rows] > 0.0]
            if not len(used):
                continue
            test, mine = batch.take(used), self.models[i]
            refuse_unseen(self.estimator, mine.model, test.table)
            _, scores, wrong = mine.scores(test, self.classes, place[test.codes])
            weight[i] = test.row_weights.sum()
            sums[:, i] = weight[i] * scores
            confusion += wrong
            held_out[i], right[i] = wrong.sum(axis=1), np.diag(wrong)
        return ScoreSums(sums, weight, confusion, held_out, right)


def _are_separate(options: FoldOptions, first: Batch) -> bool:
    """Whether equal rows are separate observations, judged by the first rows."""
    if options.copies != "auto":
        return options.copies == "apart"
    groups = np.unique(content_hashes(first.table), return_inverse=True)[1]
    equal = EqualRows.of(groups, np.asarray(first.codes, dtype=np.int64))
    return equal.cells or equal.distinct < 2 * options.folds


def _notes(options: FoldOptions, hashed: HashedFolds, fixed_order: bool, distinct: DistinctRows) -> tuple[str, ...]:
    """Remarks on the folds and the copies."""
    if not hashed.by_values:
        return (*FROZEN, FEW, SEPARATE) if options.copies == "auto" else FROZEN
    together = TOGETHER if fixed_order else BY_VALUES
    if not distinct.copies:
        return FROZEN if fixed_order else (*FROZEN, together)
    return *FROZEN, counted_copies(distinct.copies, distinct.rows, "" if distinct.exact else "about "), together


def cross_validate_source(model: Learner, X: Any, y: Any, sample_weight: Any, options: FoldOptions) -> CrossValidation:
    """Cross-validation of a generative classifier on a source of many rows."""
    model._check_options()
    source = source_of(X)
    hashed = HashedFolds.of(options)
    batches = model._batches(source, y, sample_weight, model._table, allow_unlabeled=True)
    if source.has_fixed_order and _are_separate(options, batches.first):
        hashed = replace(hashed, by_values=False)
    library = frame_library(batches.first.X)
    specification = model._specify(batches)
    collection = SharedCollection([specification])
    try:
        found = batches.total(CollectFolds(hashed, specification, collection), every=True)
        assert found is not None
        parts = _parts(found)
        total = group_sum(parts)
    except MissingPatternsError as error:
        raise MissingPatternsError(f"{error} For cross_validate: {REMEDY}") from None
    fit = with_covariances(Fit.of_collection(specification, collection, total), batches, model._calibrates)
    warn_target(fit.statistics.counts)
    classes = fit.statistics.counts.classes
    models, baseline = [], []
    for (i, others), held_out in zip(sums_of_others(parts), parts, strict=True):
        assert others is not None
        with single_threaded_blas_for(len(specification.names)), named_fold(i):
            models.append(fold_model(model, _training_fit(fit, collection, i, others), collection, held_out))
        baseline.append(baseline_scores(*(each.counts.align(classes).weight for each in (others, held_out))))
    scored = batches.total(ScoreFolds(hashed, clone(model), tuple(models), classes), every=True)
    assert scored is not None
    ranked = np.full((len(RANK_SCORES), len(models)), np.nan)  # they are not sums over rows
    folding = FoldScores(found.rows, scored.means(), np.array(baseline).T, ranked, scored.recall())
    notes = _notes(options, hashed, source.has_fixed_order, found.distinct)
    return cross_validation(model, library, folding, classes, scored.confusion, notes, found.distinct.copies)


def _parts(found: FoldStatistics) -> list[JointStatistics]:
    """The statistics of every fold; an error for a fold without rows."""
    parts = []
    for i, part in enumerate(found.parts):
        if part is None:
            raise InputError(f"folds={len(found.parts)}: fold {i} has none of the {found.rows.sum()} rows. Use fewer.")
        parts.append(part)
    return parts


def _training_fit(fit: Fit, collection: SharedCollection, i: int, others: JointStatistics) -> Fit:
    """The fit of the other folds, with the choices and calibration of all rows."""
    present = others.counts.rows > 0
    if not present.any():
        raise InputError(f"Fold {i}: all training rows have weight 0 in sample_weight. Drop rows without weight.")
    train = others if present.all() else others.select(present)
    return replace(Fit.of_collection(fit.specification, collection, train), calibration=fit.calibration)


def fold_model(model: Learner, fit: Fit, collection: SharedCollection, held_out: JointStatistics | None) -> FoldModel:
    """The model of a fold with this fit, and statistics of its held-out rows unless the fit has others."""
    joint, _ = fit.estimate()
    model._check_model(joint)
    if held_out is None:
        return FoldModel(joint, None)
    held = collection.statistics(fit.specification, held_out)
    return FoldModel(joint, mean_log_likelihood(fit.specification, joint, held))
