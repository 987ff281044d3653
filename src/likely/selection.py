"""Judging models by rows they have not learnt from, with statistics that are taken apart instead of fits again."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from likely.errors import InputError, NoDensityError, NotEstimableError
from likely.generative import GenerativeModel, refuse_unseen
from likely.joint import JointModel
from likely.learning import plain_text
from likely.numerics import EPS, AnyArray, Array
from likely.sources import Batch, Batches, is_source
from likely.specification import Specification
from likely.statistics import JointStatistics
from likely.threads import run

AT_ONCE = 64  # folds whose statistics are held together
Split = tuple[AnyArray, AnyArray]  # rows to learn from, and rows to judge by


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
    """Judge a model by folds: one pass collects the statistics of each fold, and each model is the total less one.

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
    model._check_rows(whole.table)
    splits = _splits(folds, whole)
    number = np.full(whole.table.rows, -1)
    for i, (_, test) in enumerate(splits):
        number[test] = i
    tests = [whole.take(test) for _, test in splits]
    partition = sum(len(test) for _, test in splits) == whole.table.rows and bool(np.all(number >= 0))
    _, specification = model._specify(batches)
    parts = run(tests, specification.collect) if partition else []
    known = specification.with_declared(specification.collect(whole) if not partition else _sum(parts))
    classes = known.counts.classes
    codes = np.searchsorted(classes, whole.counts.classes)[whole.codes]

    def judge(task: tuple[int, JointStatistics | None]) -> tuple[Array, Array]:
        """Learn from all rows of a fold but its own, and answer about these."""
        i, others = task
        train, test = splits[i]
        whole_rest = partition and _complement(train, test, whole.table.rows)
        rest = [*tests[:i], *tests[i + 1 :]] if whole_rest else [whole.take(train)]
        _, mine = model._specify(Batches.of(rest))
        if whole_rest and others is not None and _same(mine, specification):
            statistics = others
        else:
            statistics = mine.collect(whole.take(train))
        statistics = statistics.select(statistics.counts.rows > 0)
        try:
            fitted, _ = mine.estimate(mine.with_declared(statistics))
        except NotEstimableError as error:
            raise NotEstimableError(f"Fold {i}: {error}") from None
        model._check_fitted(fitted)
        refuse_unseen(model, fitted, tests[i].table)
        return _answers(fitted, tests[i], classes, codes[test])

    posterior = np.full((whole.table.rows, len(classes)), np.nan)
    scores = np.empty((4, len(splits)))
    sums = _others(parts) if partition else ((i, None) for i in range(len(splits)))
    while tasks := list(itertools.islice(sums, AT_ONCE)):
        for (i, _), (answer, likelihood) in zip(tasks, run(tasks, judge), strict=True):
            posterior[splits[i][1]] = answer
            scores[:, i] = _judged(answer, likelihood, codes[splits[i][1]], tests[i].weights)
    return CrossValidation(scores[0], scores[1], scores[2], scores[3], posterior, number, classes)


def _others(parts: Sequence[JointStatistics]) -> Iterator[tuple[int, JointStatistics | None]]:
    """For each part the sum of all others, by halves: subtracting would cancel where a part is much the largest."""

    def inside(low: int, high: int, outside: JointStatistics | None) -> Iterator[tuple[int, JointStatistics | None]]:
        if high - low == 1:
            yield low, outside
            return
        middle = (low + high) // 2
        for begin, end, more in ((low, middle, parts[middle:high]), (middle, high, parts[low:middle])):
            total = _sum(more)
            yield from inside(begin, end, total if outside is None else outside + total)

    return inside(0, len(parts), None)


def _complement(train: AnyArray, test: AnyArray, rows: int) -> bool:
    """Whether every row is either learnt from or judged by, and none twice."""
    count = np.zeros(rows, dtype=np.int8)
    count[train] += 1
    count[test] += 1
    return len(train) + len(test) == rows and bool(np.all(count == 1))


def _splits(folds: Any, whole: Batch) -> list[Split]:
    """Pairs of row numbers, to learn from and to judge by."""
    rows = np.arange(whole.table.rows)
    if isinstance(folds, Integral) and not isinstance(folds, bool):
        most = int(whole.counts.rows.max())
        if not 2 <= int(folds) <= most:
            raise InputError(f"folds={folds} is not between 2 and {most}, the rows of the largest class.")
        from sklearn.model_selection import StratifiedKFold

        folds = StratifiedKFold(int(folds))
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
    if len(found) < 1 or any(not len(train) or not len(test) for train, test in found):
        raise InputError(f"folds={_short(folds)} leaves nothing to learn from, or nothing to judge by.")
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:60]}..."


def _pairs(folds: Iterable[Any], rows: AnyArray) -> list[Split]:
    """Pairs of row numbers, from such pairs or from the number of each row's fold."""
    given = list(folds)
    numbers = np.asarray(given) if all(np.isscalar(part) for part in given) else None
    if numbers is None:
        return [(rows[np.asarray(train)], rows[np.asarray(test)]) for train, test in given]
    if numbers.shape != rows.shape:
        raise InputError(f"folds has {len(numbers)} fold numbers, and X has {len(rows)} rows.")
    return [(np.flatnonzero(numbers != i), np.flatnonzero(numbers == i)) for i in np.unique(numbers)]


def _sum(parts: Sequence[JointStatistics]) -> JointStatistics:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _same(left: Specification, right: Specification) -> bool:
    """Whether both learn the same blocks with the same families."""
    return len(left.plans) == len(right.plans) and all(
        a.columns == b.columns and plain_text(a.family) == plain_text(b.family)
        for a, b in zip(left.plans, right.plans, strict=True)
    )


def _answers(fitted: JointModel, test: Batch, classes: AnyArray, codes: AnyArray) -> tuple[Array, Array]:
    """p(class | x) of all classes, and log p(x, y), for rows that were not learnt."""
    known = np.flatnonzero(np.isin(fitted.classes, classes))
    place = np.searchsorted(classes, fitted.classes[known])
    rows = test.table.rows
    posterior, own = np.zeros((rows, len(classes))), np.full((rows, len(classes)), -np.inf)
    try:
        joint, answer = fitted.joint_and_posterior(test.table)
    except NoDensityError:
        posterior[:, place] = fitted.posterior(test.table)[:, known]
        return posterior, np.full(rows, np.nan)
    posterior[:, place], own[:, place] = answer[:, known], joint[:, known]
    return posterior, own[np.arange(rows), codes]


def _judged(posterior: Array, likelihood: Array, codes: AnyArray, weights: Array | None) -> list[float]:
    """Log-loss, error, Brier score and mean log-likelihood; NaN where all rows have weight 0."""
    weights = np.ones(len(posterior)) if weights is None else weights
    if not weights.any():
        return [np.nan] * 4
    right = posterior[np.arange(len(posterior)), codes]
    loss = -np.log(np.clip(right, EPS, 1.0 - EPS))  # scikit-learn's bounds
    brier = np.einsum("nk,nk->n", posterior, posterior) - 2.0 * right + 1.0
    wrong = posterior.argmax(axis=1) != codes
    halves = 2.0 if posterior.shape[1] == 2 else 1.0
    return [float(np.average(score, weights=weights)) for score in (loss, wrong, brier / halves, likelihood)]
