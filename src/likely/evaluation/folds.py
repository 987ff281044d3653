"""Cross-validation folds: shuffled, from a splitter of scikit-learn, from row numbers or from fold numbers."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from likely.data.batches import Batch
from likely.errors import InputError, LikelyWarning, NotEstimableError, amount
from likely.numerics.threads import run
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray

THREADED_ROWS = 2**20  # from this many rows on, threads are faster than one thread
ACCEPTED = "a number of folds, a splitter, pairs of row numbers (train, test), or an array of fold numbers"
Split = tuple[AnyArray | None, AnyArray]  # training rows, None for all but the test rows; and test rows


def read_splits(
    folds: Any,
    rows: int,
    codes: AnyArray | None,
    random_state: Any = 0,
    numbers: AnyArray | None = None,
    total: int | None = None,
) -> list[Split]:
    """Row numbers (train, test) of each fold.

    Integer folds are shuffled, and stratified by the class codes where these are given: they are the folds of
    scikit-learn's StratifiedKFold and KFold with shuffle=True and the same random_state. `numbers` are the numbers of
    the rows among the `total` rows of the user, where there are unlabeled rows too: pairs and fold numbers are given
    for all of these.
    """
    if isinstance(folds, Integral) and not isinstance(folds, bool):
        number = _shuffled(int(folds), rows, codes, check_random_state(random_state))
        return [(None, test) for test in over_rows(range(int(folds)), lambda i: np.flatnonzero(number == i), rows)]
    try:
        if hasattr(folds, "split") and not isinstance(folds, str):
            found = list(folds.split(np.zeros((rows, 1)), codes))
        elif isinstance(folds, str) or not isinstance(folds, Iterable):
            raise InputError(f"folds={_short(folds)} is not supported. Use {ACCEPTED}.")
        else:
            found = _pairs(folds, rows, numbers, rows if total is None else total)
    except (TypeError, ValueError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"folds={_short(folds)} cannot be used: {error}. Use {ACCEPTED}; a splitter that needs groups as "
            "splitter.split(X, y, groups)."
        ) from None
    empty = any((rows - len(test) if train is None else len(train)) == 0 or not len(test) for train, test in found)
    if len(found) < 1 or empty:
        raise InputError(f"folds={_short(folds)} has a fold without training rows or without test rows.")
    return found


def check_weights(splits: Sequence[Split], weights: AnyArray | None) -> None:
    """Raise for a fold whose training rows all have weight 0."""
    if weights is None or weights.all():
        return
    positive = weights > 0.0
    for i, (train, test) in enumerate(splits):
        kept = np.count_nonzero(positive) - np.count_nonzero(positive[np.unique(test)]) if train is None else None
        if kept == 0 or (train is not None and not positive[train].any()):
            raise InputError(
                f"Fold {i}: all training rows have weight 0 in sample_weight. Drop rows without weight, or use folds "
                "that each leave rows with positive weight to fit on."
            )


def fold_numbers(splits: Sequence[Split], rows: int) -> AnyArray:
    """The fold number of each row: of a row in several folds the last one, -1 for rows in no fold."""
    number = np.full(rows, -1)
    for i, (_, test) in enumerate(splits):
        number[test] = i
    return number


@contextmanager
def named_fold(i: int) -> Iterator[None]:
    """Errors about parameters that have no estimate, with the number of the fold."""
    try:
        yield
    except NotEstimableError as error:
        raise NotEstimableError(f"Fold {i}: {error}") from None


def training_rows(split: Split, rows: int) -> AnyArray:
    """The training rows of a fold."""
    train, test = split
    return np.setdiff1d(np.arange(rows), test) if train is None else train


def is_partition(train: AnyArray, test: AnyArray, rows: int) -> bool:
    """Whether every row is either a training or a test row, exactly once."""
    count = np.zeros(rows, dtype=np.int8)
    count[train] += 1
    count[test] += 1
    return len(train) + len(test) == rows and bool(np.all(count == 1))


def over_rows(tasks: Sequence[Any], work: Callable[[Any], Any], rows: int) -> list[Any]:
    """work(task) for every task, each a pass over this many rows: on threads if there are many rows."""
    return run(tasks, work, None if rows >= THREADED_ROWS else 1)


def stratified_splits(folds: Any, whole: Batch, random_state: Any = 0) -> list[Split]:
    """Row numbers (train, test) of each fold of the labeled rows of a batch."""
    total = whole.table.rows + (0 if whole.unlabeled is None else whole.unlabeled.table.rows)
    return read_splits(folds, whole.table.rows, np.asarray(whole.codes), random_state, labeled_numbers(whole), total)


def labeled_numbers(whole: Batch) -> AnyArray | None:
    """The numbers of the labeled rows in the X of the user; None if all rows are labeled."""
    if whole.unlabeled is None:
        return None
    return np.array([whole.table.number(i) for i in range(whole.table.rows)], dtype=np.intp)


def unlabeled_note(count: int) -> tuple[str, ...]:
    """A remark on unlabeled rows, where there are any."""
    return (f"{count} unlabeled rows are training rows of every fold, and are not scored",) if count else ()


def refuse_unlabeled(whole: Batch, models: Mapping[str, Any], function: str) -> None:
    """Raise for labels that mark unlabeled rows for one of the models: the function needs labeled rows."""
    labels = whole.counts.classes.tolist()
    for model in models.values():
        marker = getattr(model, "unlabeled", None)
        if marker is not None and marker in labels:
            row = int(np.argmax(np.asarray(whole.codes) == labels.index(marker)))
            raise InputError(
                f"y, row {row}: {marker!r} marks unlabeled rows (unlabeled={marker!r}), and {function} needs labeled "
                "rows. Drop unlabeled rows, or use cross_validate, which trains on them."
            )


def sums_of_others(parts: Sequence[JointStatistics]) -> Iterator[tuple[int, JointStatistics | None]]:
    """For each part the sum of all others, as sums before and after it: subtraction cancels for a dominant part."""
    after = [*reversed(list(itertools.accumulate(reversed(parts[1:])))), None]
    before: JointStatistics | None = None
    for i, (part, rest) in enumerate(zip(parts, after, strict=True)):
        yield i, rest if before is None else before if rest is None else before + rest
        before = part if before is None else before + part


def _shuffled(folds: int, rows: int, codes: AnyArray | None, rng: np.random.RandomState) -> AnyArray:
    """Fold number of each row."""
    if codes is not None:
        return _stratified(folds, codes, rng)
    if rows < 2:
        raise InputError(f"There is only {rows} row. Cross-validation needs at least 2 rows.")
    if not 2 <= folds <= rows:
        raise InputError(f"folds={folds} is not between 2 and {rows}, the number of rows.")
    number = np.empty(rows, dtype=np.intp)
    number[rng.permutation(rows)] = np.sort(np.arange(rows) % folds)
    return number


def _stratified(folds: int, codes: AnyArray, rng: np.random.RandomState) -> AnyArray:
    """Fold number of each row, with the assignment of scikit-learn's StratifiedKFold.

    Rows sorted by class, in the order in which classes first occur in the table, are dealt to the folds in turn. This
    determines how many rows of a class each fold has; which ones is random.
    """
    counts = np.bincount(codes)
    most, fewest = int(counts.max()), int(counts[counts > 0].min())
    if most < 2:
        raise InputError("No class has more than 1 row. Cross-validation needs a class with at least 2 rows.")
    if not 2 <= folds <= most:
        raise InputError(f"folds={folds} is not between 2 and {most}, the number of rows of the largest class.")
    if fewest < folds:
        warnings.warn(
            f"The least populated class in y has only {amount(fewest, 'member', 'members')}, which is "
            f"less than folds={folds}.",
            LikelyWarning,
            stacklevel=5,
        )
    if len(counts) <= 32:
        members = over_rows(range(len(counts)), lambda k: np.flatnonzero(codes == k), len(codes))
    else:
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
    number, dealt = np.empty(len(codes), dtype=np.int16 if folds < 2**15 else np.intp), 0
    for part in sorted((part for part in members if len(part)), key=lambda part: int(part[0])):
        dealt_to = -(-(np.array([[dealt], [dealt + len(part)]]) - np.arange(folds)) // folds)  # rows of each fold
        mine = np.repeat(np.arange(folds), dealt_to[1] - dealt_to[0])
        rng.shuffle(mine)
        number[part] = mine
        dealt += len(part)
    return number


def _pairs(folds: Iterable[Any], count: int, numbers: AnyArray | None, total: int) -> list[Split]:
    """Row numbers (train, test), from such pairs or from the fold number of each row."""
    given = list(folds)
    if all(np.isscalar(part) for part in given):
        fold_numbers = np.asarray(given)
        if fold_numbers.shape != (total,):
            raise InputError(f"folds has {len(fold_numbers)} fold numbers, but X has {total} rows.")
        labeled = fold_numbers if numbers is None else fold_numbers[numbers]
        return [(None, np.flatnonzero(labeled == i)) for i in np.unique(labeled)]
    places = np.arange(count)
    if numbers is not None:  # -1 marks unlabeled rows, which are training rows of every fold
        places = np.full(total, -1)
        places[numbers] = np.arange(count)
    pairs = [(places[np.asarray(train)], places[np.asarray(test)]) for train, test in given]
    if any(part.ndim != 1 for pair in pairs for part in pair):
        raise ValueError("a pair has no row numbers")
    return [(train[train >= 0], test[test >= 0]) for train, test in pairs]


def _short(value: Any) -> str:
    """The value as text, shortened."""
    text = repr(value)
    return text if len(text) < 80 else f"{text[:60]}..."
