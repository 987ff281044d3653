"""Cross-validation by statistics: every fold's model is the total minus the fold."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from likely.data.batches import Batch, Batches, is_source
from likely.data.row_blocks import many
from likely.errors import (
    InputError,
    LikelyWarning,
    NoDensityError,
    NoEvidenceError,
    NotEstimableError,
)
from likely.estimators.algebra import plain_text
from likely.estimators.generative import GenerativeModel, refuse_unseen
from likely.estimators.protocols import FittableFromStatistics
from likely.model.family_choice import choose_families
from likely.model.fit import needs_em
from likely.model.joint import JointModel, RowScores
from likely.model.plans import Plan
from likely.model.shared_collection import SharedCollection, options
from likely.model.specification import Specification
from likely.numerics.special import EPS
from likely.numerics.threads import run, single_threaded_blas_for
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array

AT_ONCE = 64  # folds whose models are held together
LONG = 2**20  # rows, which threads look at one by one sooner than one thread does
STEP = 2**17  # cells that are added at once, fewer of which threads would spend waiting for one another
Split = tuple[AnyArray | None, AnyArray]  # rows to learn from, None for all others; and rows to judge by


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """How a model does on rows it has not learnt from, for each fold.

    `log_loss` and `error` are scikit-learn's; `brier` is Σ_k (p_k − [y = k])², halved where there are two classes;
    `log_likelihood` is the mean of log p(x, y), NaN where a model has no density. `posterior` holds p(class | x) of
    every row by a model that has not seen it, NaN for rows in no fold, and `fold` the number of its fold, -1 for none.
    """

    log_loss: Array
    error: Array
    brier: Array
    log_likelihood: Array
    posterior: Array
    fold: AnyArray
    classes: AnyArray

    def __str__(self) -> str:
        names = ("log_loss", "error", "brier", "log_likelihood")
        lines = ["fold        " + "".join(f"{name:>16}" for name in names)]
        lines += [
            f"{i:<12}" + "".join(f"{getattr(self, name)[i]:>16.6f}" for name in names) for i in range(len(self.error))
        ]
        lines.append("mean        " + "".join(f"{getattr(self, name).mean():>16.6f}" for name in names))
        return "\n".join(lines)


def cross_validate(model: Any, X: Any, y: Any, folds: Any = 10, sample_weight: Any = None) -> CrossValidation:
    """Judge a model by folds: one pass collects the statistics of each fold, and each model is the sum of the others.

    `folds` is a number (stratified folds, as scikit-learn makes them), a splitter of scikit-learn, pairs of row numbers
    (train, test), or an array with the number of each row's fold. Whatever the model derives from its rows is derived
    again for every fold. `sample_weight` counts rows, in learning and in judging. The model itself is not fitted.
    """
    if not isinstance(model, GenerativeModel):
        raise InputError(f"{type(model).__name__} is no generative model of likely: use scikit-learn's cross_validate.")
    if is_source(X):
        raise InputError("cross_validate needs the rows in memory, and X comes in chunks.")
    model._check_options()
    batches = Batches(X, y, sample_weight, model._table, type(model).__name__)
    whole = batches.first
    folding = Folds(whole, read_splits(folds, whole))
    specification = model._specify(batches)
    together = SharedCollection([specification])
    if needs_em(specification, whole):
        parts = []  # every fold is learnt by itself, by expectation maximisation
        folding.partition = False
    else:
        parts = folding.collect(together)
    return folding.judge(model, specification, together, parts)


class Folds:
    """Rows in folds: those to learn from and those to judge by, for each."""

    def __init__(self, whole: Batch, splits: Sequence[Split]) -> None:
        self.whole, self.splits = whole, splits
        self.number = np.full(whole.table.rows, -1)
        for i, (_, test) in enumerate(splits):
            self.number[test] = i  # of a row in several folds the last
        self.tests = _each(splits, lambda split: whole.take(split[1]), whole.table.rows)
        count = sum(len(test) for _, test in splits)
        self.partition = count == whole.table.rows and bool(np.all(self.number >= 0))

    def collect(self, together: SharedCollection) -> list[JointStatistics]:
        """The sums of each fold; none where the folds are no partition of the rows."""
        if not self.partition:
            return []
        table = self.whole.table
        steps = len(self.tests) * together.steps(self.whole)
        return many(self.tests, together.collect, apart=table.rows * table.cells(table.width, True) >= steps * STEP)

    def _train(self, i: int) -> AnyArray | None:
        """The rows that a fold is learnt from; None where these are all rows of the other folds."""
        train, test = self.splits[i]
        rows = self.whole.table.rows
        if self.partition and (train is None or _complement(train, test, rows)):
            return None
        return np.setdiff1d(np.arange(rows), test) if train is None else train

    def judge(
        self,
        model: FittableFromStatistics,
        specification: Specification,
        together: SharedCollection,
        parts: Sequence[JointStatistics],
    ) -> CrossValidation:
        """How a model does on each fold, learnt from the sums of the others."""
        whole, splits, tests = self.whole, self.splits, self.tests
        classes = specification.with_declared(JointStatistics(whole.counts, ())).counts.classes
        place = np.searchsorted(classes, whole.counts.classes)
        posterior = np.empty((whole.table.rows, len(classes)))
        if not self.partition:
            posterior[...] = np.nan

        def study(task: tuple[int, JointStatistics | None]) -> tuple[int, JointModel, float | None]:
            """Learn from all rows of a fold but its own."""
            i, others = task
            with single_threaded_blas_for(whole.table.width):
                fitted, planned = self._learnt(model, specification, together, i, others)
                model._check_model(fitted)
                refuse_unseen(model, fitted, tests[i].table)
                told = None if planned is None else _described(planned, fitted, together.statistics(planned, parts[i]))
            return i, fitted, told

        def turn(task: tuple[int, JointModel, float | None]) -> list[float]:
            """Answer about the rows of a fold."""
            i, fitted, told = task
            test, batch = splits[i][1], tests[i]
            answer = _answers(fitted, batch, classes, place[batch.codes], densities=told is None)
            mine = slice(None) if self.partition else self.number[test] == i
            posterior[test[mine]] = answer.posterior[mine]
            return _judged(answer, batch.weights, told)

        scores = np.empty((4, len(splits)))
        sums = _others(parts) if self.partition else ((i, None) for i in range(len(splits)))
        while studied := list(map(study, itertools.islice(sums, AT_ONCE))):  # in steps too short for threads
            for (i, _, _), found in zip(studied, many(studied, turn), strict=True):
                scores[:, i] = found
        return CrossValidation(scores[0], scores[1], scores[2], scores[3], posterior, self.number, classes)

    def _learnt(
        self,
        model: FittableFromStatistics,
        specification: Specification,
        together: SharedCollection,
        i: int,
        others: JointStatistics | None,
    ) -> tuple[JointModel, Specification | None]:
        """What a fold's other rows teach; and what was to be learnt, where that is what all rows are collected for."""
        train, tests = self._train(i), self.tests
        rest = Batches.of([*tests[:i], *tests[i + 1 :]] if train is None else [self.whole.take(train)])
        wanted, same = specification if model._plans_are_declared else model._specify(rest), False
        try:
            if train is None and others is not None and _same(wanted, specification):
                there = others.counts.rows > 0
                if not there.all():
                    others, rest = others.select(there), _used_classes(rest)
                mine, statistics, choices = choose_families(wanted, rest, together, others)
                same = not choices
            else:
                rest = _used_classes(rest)
                fit = model._fit_rows(model._specify(rest), rest)
                mine, statistics = fit.specification, fit.statistics
            return mine.estimate(statistics)[0], mine if same else None
        except NotEstimableError as error:
            raise NotEstimableError(f"Fold {i}: {error}") from None


def _used_classes(batches: Batches) -> Batches:
    """The same rows with the classes that have any."""
    narrowed = (batch.narrowed() for batch in batches)
    return Batches.of([batch for batch in narrowed if len(batch.counts.classes)])


def _others(parts: Sequence[JointStatistics]) -> Iterator[tuple[int, JointStatistics | None]]:
    """For each part the sum of all others, before and after: subtracting would cancel where one is much the largest."""
    after = [*reversed(list(itertools.accumulate(reversed(parts[1:])))), None]
    before: JointStatistics | None = None
    for i, (part, rest) in enumerate(zip(parts, after, strict=True)):
        yield i, rest if before is None else before if rest is None else before + rest
        before = part if before is None else before + part


def _complement(train: AnyArray, test: AnyArray, rows: int) -> bool:
    """Whether every row is either learnt from or judged by, and none twice."""
    count = np.zeros(rows, dtype=np.int8)
    count[train] += 1
    count[test] += 1
    return len(train) + len(test) == rows and bool(np.all(count == 1))


def read_splits(folds: Any, whole: Batch) -> list[Split]:
    """Pairs of row numbers, to learn from and to judge by."""
    rows = np.arange(whole.table.rows)
    if isinstance(folds, Integral) and not isinstance(folds, bool):
        most = int(whole.counts.rows.max())
        if not 2 <= int(folds) <= most:
            raise InputError(f"folds={folds} is not between 2 and {most}, the rows of the largest class.")
        number = _stratified(whole, int(folds))
        tests = _each(range(int(folds)), lambda i: np.flatnonzero(number == i), len(rows))
        return [(None, test) for test in tests]
    try:
        if hasattr(folds, "split") and not isinstance(folds, str):
            found = list(folds.split(np.zeros((len(rows), 1)), whole.codes))
        elif isinstance(folds, str) or not isinstance(folds, Iterable):
            raise InputError(
                f"folds={_short(folds)} is neither a number, a splitter, pairs of row numbers, nor fold numbers."
            )
        else:
            found = _pairs(folds, rows)
    except (TypeError, ValueError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"folds={_short(folds)} cannot be used: {error}. Hint: a number, a splitter (one that needs groups as "
            "splitter.split(X, y, groups)), pairs of row numbers, or an array with the number of each row's fold."
        ) from None
    empty = any((len(rows) - len(test) if train is None else len(train)) == 0 or not len(test) for train, test in found)
    if len(found) < 1 or empty:
        raise InputError(f"folds={_short(folds)} leaves nothing to learn from, or nothing to judge by.")
    return found


def _stratified(whole: Batch, folds: int) -> AnyArray:
    """The number of each row's fold, with classes shared out as scikit-learn's StratifiedKFold does.

    Rows sorted by class, the class that comes first in the table first, are dealt to the folds in turn; that says how
    many of a class each fold has. It has them in the order of the table.
    """
    fewest = int(whole.counts.rows[whole.counts.rows > 0].min())
    if fewest < folds:
        warnings.warn(
            f"The least populated class in y has only {fewest} members, which is less than folds={folds}.",
            LikelyWarning,
            stacklevel=4,
        )
    codes = whole.codes
    if len(whole.counts.classes) <= 32:
        members = _each(range(len(whole.counts.classes)), lambda k: np.flatnonzero(codes == k), len(codes))
    else:
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    number, dealt = np.empty(len(codes), dtype=np.int16 if folds < 2**15 else np.intp), 0
    for part in sorted((part for part in members if len(part)), key=lambda part: int(part[0])):
        turns = -(-(np.array([[dealt], [dealt + len(part)]]) - np.arange(folds)) // folds)  # of each fold, so far
        number[part] = np.repeat(np.arange(folds), turns[1] - turns[0])
        dealt += len(part)
    return number


def _each(tasks: Sequence[Any], work: Callable[[Any], Any], rows: int) -> list[Any]:
    """work(task) for every task, each a step over so many rows: on threads where it is long enough for them."""
    return run(tasks, work, None if rows >= LONG else 1)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:60]}..."


def _pairs(folds: Iterable[Any], rows: AnyArray) -> list[Split]:
    """Pairs of row numbers, from such pairs or from the number of each row's fold."""
    given = list(folds)
    numbers = np.asarray(given) if all(np.isscalar(part) for part in given) else None
    if numbers is None:
        pairs = [(rows[np.asarray(train)], rows[np.asarray(test)]) for train, test in given]
        if any(part.ndim != 1 for pair in pairs for part in pair):
            raise ValueError("a pair holds no row numbers")
        return pairs
    if numbers.shape != rows.shape:
        raise InputError(f"folds has {len(numbers)} fold numbers, and X has {len(rows)} rows.")
    return [(None, np.flatnonzero(numbers == i)) for i in np.unique(numbers)]


def sum_statistics(parts: Sequence[JointStatistics]) -> JointStatistics:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _same(left: Specification, right: Specification) -> bool:
    """Whether both learn the same blocks with the same families."""
    return len(left.plans) == len(right.plans) and all(
        a.columns == b.columns and len(a.others) == len(b.others) and all(map(_same_plan, options(a), options(b)))
        for a, b in zip(left.plans, right.plans, strict=True)
    )


def _same_plan(left: Plan, right: Plan) -> bool:
    """Whether two plans have the same family with the same options; as a rule these are the very same objects."""
    mine, yours = vars(left.family), vars(right.family)
    if type(left.family) is type(right.family) and all(mine[name] is yours.get(name) for name in mine):
        return True
    return plain_text(left.family) == plain_text(right.family)


def _described(specification: Specification, fitted: JointModel, part: JointStatistics) -> float | None:
    """The mean of log p(x, y) of rows that were not learnt, where their statistics tell; None elsewhere."""
    if not np.array_equal(fitted.classes, part.counts.classes) or not part.counts.weight.any():
        return None
    try:
        total = specification.log_likelihood(fitted, part)
    except NoEvidenceError:
        return None
    return total / float(part.counts.weight.sum()) if np.isfinite(total) else None


def _answers(fitted: JointModel, test: Batch, classes: AnyArray, codes: AnyArray, densities: bool) -> RowScores:
    """What is said of rows that were not learnt, among all classes."""
    same = fitted.classes.dtype == classes.dtype and np.array_equal(fitted.classes, classes)
    mine = codes
    if not same:
        place = np.full(len(classes), -1)  # of a class in the model
        known = np.flatnonzero(np.isin(fitted.classes, classes))
        where = np.searchsorted(classes, fitted.classes[known])
        place[where] = known
        mine = place[codes]
    try:
        found = fitted.score_rows(test.table, mine, densities)
    except NoDensityError:
        posterior = fitted.posterior(test.table)
        chance = np.where(mine < 0, 0.0, posterior[np.arange(len(mine)), mine])
        found = RowScores(np.full(len(mine), np.nan), chance, posterior.argmax(axis=1) == mine, posterior)
    if same:
        return found
    posterior = np.zeros((len(mine), len(classes)))
    posterior[:, where] = found.posterior[:, known]
    return replace(found, posterior=posterior)


def _judged(found: RowScores, weights: Array | None, told: float | None = None) -> list[float]:
    """Log-loss, error, Brier score and mean log-likelihood, unless this is told; NaN where all rows have weight 0."""
    if weights is not None and not weights.any():
        return [np.nan] * 4
    posterior, right = found.posterior, found.probability
    halves = 2.0 if posterior.shape[1] == 2 else 1.0
    if weights is None:
        brier = np.vdot(posterior, posterior) / len(right) - 2.0 * right.mean() + 1.0
    else:
        brier = np.average(np.einsum("nk,nk->n", posterior, posterior) - 2.0 * right + 1.0, weights=weights)
    loss, error, likelihood = weighted_losses(found, weights, told)
    return [loss, error, float(brier) / halves, likelihood]


def weighted_losses(found: RowScores, weights: Array | None, told: float | None = None) -> tuple[float, float, float]:
    """Log-loss, error and mean log-likelihood, unless this is told; NaN where all rows have weight 0."""
    if weights is not None and not weights.any():
        return np.nan, np.nan, np.nan
    chance = np.clip(found.probability, EPS, 1.0 - EPS)  # scikit-learn's bounds
    likelihood = np.average(found.log_joint, weights=weights) if told is None else told
    if weights is None:
        wrong = 1.0 - int(np.count_nonzero(found.right)) / len(chance)
        return -float(np.log(chance).mean()), wrong, float(likelihood)
    return (
        -float(np.average(np.log(chance), weights=weights)),
        1.0 - float(np.average(found.right, weights=weights)),
        float(likelihood),
    )
