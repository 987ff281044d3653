"""Judging models by rows they have not learnt from, with statistics that are taken apart instead of fits again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from likely.errors import InputError, NoDensityError, NotEstimableError
from likely.generative import GenerativeModel
from likely.joint import JointModel
from likely.learning import plain_text
from likely.numerics import EPS, AnyArray, Array
from likely.sources import Batch, Batches, is_source
from likely.specification import Specification
from likely.statistics import JointStatistics
from likely.threads import run

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
    parts = run(tests, specification.collect)
    total = _sum(parts) if partition else specification.collect(whole)
    classes = whole.counts.classes

    def judge(i: int) -> tuple[Array, Array]:
        """Learn from all rows of a fold but its own, and answer about these."""
        train, test = splits[i]
        rest = [*tests[:i], *tests[i + 1 :]] if partition else [whole.take(train)]
        _, mine = model._specify(Batches.of(rest))
        if _complement(train, test, whole.table.rows) and _same(mine, specification):
            statistics = total - parts[i]
        else:
            statistics = mine.collect(whole.take(train))
            statistics = statistics.select(statistics.counts.rows > 0)
        try:
            fitted, _ = mine.estimate(mine.with_declared(statistics))
        except NotEstimableError as error:
            raise NotEstimableError(f"Fold {i}: {error}") from None
        return _answers(fitted, tests[i], classes)

    posterior = np.full((whole.table.rows, len(classes)), np.nan)
    scores = np.empty((4, len(splits)))
    for i, (answer, likelihood) in enumerate(run(range(len(splits)), judge)):
        posterior[splits[i][1]] = answer
        scores[:, i] = _judged(answer, likelihood, tests[i])
    return CrossValidation(scores[0], scores[1], scores[2], scores[3], posterior, number, classes)


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
    if hasattr(folds, "split") and not isinstance(folds, str):
        found = list(folds.split(np.zeros((len(rows), 1)), whole.codes))
    elif isinstance(folds, np.ndarray) and folds.shape == rows.shape:
        found = [(np.flatnonzero(folds != i), np.flatnonzero(folds == i)) for i in np.unique(folds).tolist()]
    elif isinstance(folds, Iterable) and not isinstance(folds, str):
        found = [(rows[np.asarray(train)], rows[np.asarray(test)]) for train, test in folds]
    else:
        raise InputError(f"folds={folds!r} is neither a number, a splitter, pairs of row numbers, nor an array.")
    if len(found) < 1 or any(not len(train) or not len(test) for train, test in found):
        raise InputError(f"folds={folds!r} leaves nothing to learn from, or nothing to judge by.")
    return found


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


def _answers(fitted: JointModel, test: Batch, classes: AnyArray) -> tuple[Array, Array]:
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
    return posterior, own[np.arange(rows), test.codes]


def _judged(posterior: Array, likelihood: Array, test: Batch) -> list[float]:
    """Log-loss, error, Brier score and mean log-likelihood; NaN where all rows have weight 0."""
    weights = np.ones(len(posterior)) if test.weights is None else test.weights
    if not weights.any():
        return [np.nan] * 4
    right = posterior[np.arange(len(posterior)), test.codes]
    loss = -np.log(np.clip(right, EPS, 1.0 - EPS))  # scikit-learn's bounds
    brier = np.einsum("nk,nk->n", posterior, posterior) - 2.0 * right + 1.0
    wrong = posterior.argmax(axis=1) != test.codes
    halves = 2.0 if posterior.shape[1] == 2 else 1.0
    return [float(np.average(score, weights=weights)) for score in (loss, wrong, brier / halves, likelihood)]
