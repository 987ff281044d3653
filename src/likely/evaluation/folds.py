"""Cross-validation folds: stratified, from a splitter of scikit-learn, from row numbers or from fold numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from likely.data.batches import Batch
from likely.errors import InputError, LikelyWarning
from likely.numerics.threads import run
from likely.typing import AnyArray

THREADED_ROWS = 2**20  # from so many rows on, threads are faster than one thread
ACCEPTED = "a number of folds, a splitter, pairs of row numbers (train, test), or an array of fold numbers"
Split = tuple[AnyArray | None, AnyArray]  # training rows, None for all but the test rows; and test rows


def read_splits(folds: Any, whole: Batch) -> list[Split]:
    """Row numbers (train, test) of each fold."""
    rows = np.arange(whole.table.rows)
    if isinstance(folds, Integral) and not isinstance(folds, bool):
        most = int(whole.counts.rows.max())
        if not 2 <= int(folds) <= most:
            raise InputError(f"folds={folds} is not between 2 and {most}, the number of rows of the largest class.")
        number = _stratified(whole, int(folds))
        tests = over_rows(range(int(folds)), lambda i: np.flatnonzero(number == i), len(rows))
        return [(None, test) for test in tests]
    try:
        if hasattr(folds, "split") and not isinstance(folds, str):
            found = list(folds.split(np.zeros((len(rows), 1)), whole.codes))
        elif isinstance(folds, str) or not isinstance(folds, Iterable):
            raise InputError(f"folds={_short(folds)} is not supported. Use {ACCEPTED}.")
        else:
            found = _pairs(folds, rows)
    except (TypeError, ValueError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"folds={_short(folds)} cannot be used: {error}. Use {ACCEPTED}; a splitter that needs groups as "
            "splitter.split(X, y, groups)."
        ) from None
    empty = any((len(rows) - len(test) if train is None else len(train)) == 0 or not len(test) for train, test in found)
    if len(found) < 1 or empty:
        raise InputError(f"folds={_short(folds)} has a fold without training rows or without test rows.")
    return found


def is_partition(train: AnyArray, test: AnyArray, rows: int) -> bool:
    """Whether every row is either a training or a test row, exactly once."""
    count = np.zeros(rows, dtype=np.int8)
    count[train] += 1
    count[test] += 1
    return len(train) + len(test) == rows and bool(np.all(count == 1))


def over_rows(tasks: Sequence[Any], work: Callable[[Any], Any], rows: int) -> list[Any]:
    """work(task) for every task, each a pass over so many rows: on threads if there are many rows."""
    return run(tasks, work, None if rows >= THREADED_ROWS else 1)


def _stratified(whole: Batch, folds: int) -> AnyArray:
    """Fold number of each row, with the assignment of scikit-learn's StratifiedKFold.

    Rows sorted by class, in the order in which classes first occur in the table, are dealt to the folds in turn. This
    determines how many rows of a class each fold has; they are taken in the order of the table.
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
        members = over_rows(range(len(whole.counts.classes)), lambda k: np.flatnonzero(codes == k), len(codes))
    else:
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    number, dealt = np.empty(len(codes), dtype=np.int16 if folds < 2**15 else np.intp), 0
    for part in sorted((part for part in members if len(part)), key=lambda part: int(part[0])):
        dealt_to = -(-(np.array([[dealt], [dealt + len(part)]]) - np.arange(folds)) // folds)  # rows of each fold
        number[part] = np.repeat(np.arange(folds), dealt_to[1] - dealt_to[0])
        dealt += len(part)
    return number


def _pairs(folds: Iterable[Any], rows: AnyArray) -> list[Split]:
    """Row numbers (train, test), from such pairs or from the fold number of each row."""
    given = list(folds)
    numbers = np.asarray(given) if all(np.isscalar(part) for part in given) else None
    if numbers is None:
        pairs = [(rows[np.asarray(train)], rows[np.asarray(test)]) for train, test in given]
        if any(part.ndim != 1 for pair in pairs for part in pair):
            raise ValueError("a pair has no row numbers")
        return pairs
    if numbers.shape != rows.shape:
        raise InputError(f"folds has {len(numbers)} fold numbers, but X has {len(rows)} rows.")
    return [(None, np.flatnonzero(numbers == i)) for i in np.unique(numbers)]


def _short(value: Any) -> str:
    """The value as text, shortened."""
    text = repr(value)
    return text if len(text) < 80 else f"{text[:60]}..."
