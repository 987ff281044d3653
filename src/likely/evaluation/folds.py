"""Cross-validation folds: shuffled, from a splitter of scikit-learn, from row numbers or from fold numbers."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from likely.data.batches import Batch
from likely.data.frames import as_narwhals, is_frame
from likely.errors import InputError, LikelyWarning, NotEstimableError, amount, check_choice, listed
from likely.evaluation.copies import EqualRows, equal_rows
from likely.evaluation.group_folds import assign_groups
from likely.numerics.random import seeded
from likely.numerics.threads import run
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray

THREADED_ROWS = 2**20  # from this many rows on, threads are faster than one thread
ACCEPTED = "a number of folds, a splitter, pairs of row numbers (train, test), or an array of fold numbers"
Split = tuple[AnyArray | None, AnyArray]  # training rows, None for all but the test rows; and test rows


COPIES = ("auto", "together", "apart")
MISSING = {"None", "nan", "NaN", "NaT", "<NA>", "null"}  # missing groups as text


TOGETHER = "equal rows are in the same fold, which is conservative if they are separate observations (copies='apart')"
SEPARATE = "equal rows are taken for separate observations; copies='together' keeps each combination in one fold"
APART = "some copies are held out while the row that they equal is not: the scores may be too good"


@dataclass(frozen=True, slots=True, eq=False)
class FoldOptions:
    """How rows are divided into folds."""

    folds: Any
    random_state: Any = 0
    groups: Any = None  # of each row, the rows of a group are in one fold
    copies: str = "auto"

    def check(self) -> None:
        """Raise for options that do not exist."""
        check_choice("copies", self.copies, COPIES)
        if isinstance(self.folds, type):
            raise InputError(f"folds={self.folds.__name__} is a class. Write {self.folds.__name__}(5) for five folds.")
        if self.is_number:
            seeded(self.random_state)  # raises for what is not a seed

    @property
    def is_number(self) -> bool:
        """Whether folds are drawn at random."""
        return isinstance(self.folds, Integral) and not isinstance(self.folds, bool)

    def takes_for_cells(self, equal: EqualRows, classified: bool) -> bool:
        """Whether equal rows are taken for separate observations."""
        if not self.is_number or self.copies != "auto" or equal.distinct == len(equal.groups):
            return False
        return equal.distinct < 2 * self.folds or (equal.cells and classified)

    def group_numbers(self, rows: int) -> AnyArray | None:
        """The number of the group of each row of the user."""
        if self.groups is None:
            return None
        groups = np.asarray(self.groups)
        groups = groups[:, 0] if groups.ndim == 2 and groups.shape[1] == 1 else groups
        if groups.shape != (rows,):
            raise InputError(
                f"groups has the shape {groups.shape}, but X has {rows} rows. Pass one group for each row."
            )
        values = groups.tolist()
        missing = next((i for i, value in enumerate(values) if str(value) in MISSING), None)
        if missing is not None:
            raise InputError(f"groups, row {missing}: the value is missing. Every row needs a group.")
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Training and test rows of each fold, and the copies among the rows."""

    pairs: list[Split]
    copies: int
    notes: tuple[str, ...]


def divided(
    options: FoldOptions, X: Any, codes: AnyArray | None, numbers: AnyArray | None = None, y: AnyArray | None = None
) -> Splits:
    """The folds of the rows of X with these class codes, or with these targets of a regression.

    `numbers` are the numbers of the labeled rows, to which the codes belong, in X; None if all rows are labeled. Equal
    rows are in the same fold if the number of folds is given. Those of a classification have equal features; those of
    a regression have equal targets as well, because designed experiments repeat the features.
    """
    options.check()
    every = equal_rows(X)
    if y is not None:
        every = equal_rows(np.column_stack([every, y.reshape(len(y), -1)]))
    groups, mine = options.group_numbers(len(every)), slice(None) if numbers is None else numbers
    labels = np.zeros(len(every), dtype=np.intp) if codes is None else codes
    equal = EqualRows.of(every[mine], labels)
    cells = groups is None and options.takes_for_cells(equal, y is None)
    if groups is not None:
        groups = groups[mine] if options.is_number else np.asarray(options.groups).ravel()[mine]
    elif options.is_number and options.copies != "apart" and not cells and equal.distinct < len(labels):
        groups = equal.groups
    pairs = read_splits(options, labels, codes is not None, groups, numbers, len(every))
    return Splits(pairs, equal.copies, _notes_on_cells(equal) if cells else _notes_on_copies(equal, pairs))


def kept_together(options: FoldOptions, X: Any, codes: AnyArray) -> tuple[AnyArray | None, tuple[str, ...]]:
    """Groups of rows that are either training or test rows, None if there are none; and remarks on the copies."""
    options.check()
    equal = EqualRows.of(equal_rows(X), codes)
    groups = options.group_numbers(len(codes))
    if groups is None and options.takes_for_cells(equal, True):
        return None, _notes_on_cells(equal)
    if groups is None and options.copies != "apart" and equal.distinct < len(codes):
        groups = equal.groups
    if not equal.copies:
        return groups, ()
    first = np.unique(equal.same, return_index=True)[1]
    apart = groups is None or not np.array_equal(groups, groups[first[equal.same]])
    return groups, notes_on_copies(equal.copies, len(codes), apart)


def _notes_on_cells(equal: EqualRows) -> tuple[str, ...]:
    """Remarks on equal rows of columns with few values."""
    return (
        f"{len(equal.groups):,} rows have only {amount(equal.distinct, 'combination', 'combinations')} of values",
        SEPARATE,
    )


def _notes_on_copies(equal: EqualRows, pairs: Sequence[Split]) -> tuple[str, ...]:
    """Remarks on the copies among the rows, where there are any."""
    if not equal.copies:
        return ()
    rows = len(equal.same)
    if any(train is not None for train, _ in pairs):
        every = ((training_rows(pair, rows), pair[1]) for pair in pairs)
        return notes_on_copies(
            equal.copies, rows, any(np.isin(equal.same[test], equal.same[train]).any() for train, test in every)
        )
    number, first = fold_numbers(pairs, rows), np.unique(equal.same, return_index=True)[1]
    return notes_on_copies(equal.copies, rows, bool(np.any(number != number[first[equal.same]])))


def notes_on_copies(copies: int, rows: int, apart: bool) -> tuple[str, ...]:
    """Remarks on copies, which are in the same fold or `apart`."""
    return counted_copies(copies, rows), APART if apart else TOGETHER


def counted_copies(copies: int, rows: int, about: str = "") -> str:
    """The number of copies as text."""
    are = "is a copy" if copies == 1 else "are copies"
    return f"{about}{copies:,} of {rows:,} rows {are} of another row (equal in all columns and the label)"


def read_splits(
    options: FoldOptions,
    codes: AnyArray,
    stratified: bool,
    groups: AnyArray | None,
    numbers: AnyArray | None = None,
    total: int | None = None,
) -> list[Split]:
    """Row numbers (train, test) of each fold.

    Integer folds are shuffled, and stratified by the class codes of classifiers: without groups they are the folds of
    scikit-learn's StratifiedKFold and KFold with shuffle=True and the same random_state. `numbers` are the numbers of
    the rows among the `total` rows of the user, where there are unlabeled rows too: pairs and fold numbers are given
    for all of these.
    """
    folds, rows = options.folds, len(codes)
    if options.is_number:
        rng = seeded(options.random_state)
        if groups is not None:
            number = _grouped(int(folds), codes, groups, rng)
        else:
            number = _shuffled(int(folds), rows, codes if stratified else None, rng)
        return [(None, test) for test in over_rows(range(int(folds)), lambda i: np.flatnonzero(number == i), rows)]
    try:
        if hasattr(folds, "split") and not isinstance(folds, str):
            found = list(folds.split(np.zeros((rows, 1)), codes if stratified else None, groups))
        elif isinstance(folds, str) or not isinstance(folds, Iterable):
            raise InputError(f"folds={_short(folds)} is not supported. Use {ACCEPTED}.")
        elif groups is not None:
            raise InputError(
                "groups= divides rows into a number of folds, or is passed to a splitter; folds= has rows."
            )
        else:
            found = _pairs(folds, rows, numbers, rows if total is None else total)
    except (TypeError, ValueError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        remedy = "; pass groups=, one for each row." if "groups" in str(error) else "."
        raise InputError(f"folds={_short(folds)} cannot be used: {error}. Use {ACCEPTED}{remedy}") from None
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


def groups_apart(X: Any, groups: Any) -> tuple[Any, Any]:
    """The other columns of a frame and the groups, where `groups` is the name of a column; else both."""
    if not isinstance(groups, str):
        return X, groups
    frame = as_narwhals(X) if is_frame(X) else None
    if frame is None or groups not in frame.columns:
        known = "X is not a data frame" if frame is None else f"X has the columns {listed(frame.columns)}"
        raise InputError(f"groups={groups!r} is not the name of a column: {known}. Pass one group for each row.")
    return frame.drop(groups).to_native(), frame.get_column(groups).to_numpy()


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


def stratified_splits(options: FoldOptions, whole: Batch) -> Splits:
    """The folds of the labeled rows of a batch."""
    return divided(options, whole.X, np.asarray(whole.codes), labeled_numbers(whole))


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


def _warn_of_few(fewest: int, folds: int) -> None:
    """Warn of a class that is not in every fold."""
    if fewest < folds:
        warnings.warn(
            f"The least populated class in y has only {amount(fewest, 'member', 'members')}, which is "
            f"less than folds={folds}.",
            LikelyWarning,
            stacklevel=8,
        )


def _grouped(folds: int, codes: AnyArray, groups: AnyArray, rng: np.random.RandomState) -> AnyArray:
    """Fold number of each row, where the rows of a group are in one fold."""
    distinct = int(np.count_nonzero(np.bincount(groups)))
    if not 2 <= folds <= distinct:
        raise InputError(
            f"folds={folds} is not between 2 and {distinct}, the number of groups, or of distinct rows: rows of a "
            "group, and equal rows, are in one fold. Use fewer folds, or copies='apart' for equal rows that are "
            "separate observations."
        )
    counts = np.bincount(codes)
    _warn_of_few(int(counts[counts > 0].min()), folds)
    return assign_groups(groups, codes, np.full(folds, 1.0 / folds), rng)


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
    _warn_of_few(fewest, folds)
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
