"""Leaks: columns that alone give the class of nearly all rows away, by their values or by where they are missing.

A column is judged by its leave-one-out predictions of the class on at most MOST_ROWS rows, and against chance: under a
random order of the labels, predictions as good must be improbable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from likely.choice.column_types import ColumnProfile
from likely.data.row_hash import copies, row_hashes
from likely.data.table import Table
from likely.errors import LeakWarning, amount, warn
from likely.model.persistence import register
from likely.typing import AnyArray, Array

MOST_ROWS = 5000  # rows that columns are judged by, at most
FIRST_ROWS = 500  # of these, by which all columns are searched
BLOCK = 256  # columns that are searched together
ERRORS = 0.01  # proportion of errors of a leak, at most
ERRORS_OF_PRIOR = 0.2  # and as a proportion of the errors of the most frequent class
NEIGHBOURS = 0.94  # proportion of pairs of neighbours with the same class, below which no column is a leak
FEWEST_EQUAL = 10  # pairs of neighbours with equal values by which a column is suspected
EVIDENCE = 10.0  # -log of the probability of such predictions by chance, in all columns together
MOST_NAMED = 5  # columns that a warning names


@register
@dataclass(frozen=True, slots=True)
class Leak:
    """A column that alone predicts the class.

    Attributes
    ----------
    column : str
        Name of the column.
    what : str
        "value" or "missingness": what predicts the class.
    accuracy : float
        Proportion of rows that are predicted correctly, leave-one-out; of missingness of whether the row has the class.
    message : str
        One sentence without its full stop.
    """

    column: str
    what: str
    accuracy: float
    message: str


def find_leaks(
    table: Table,
    codes: AnyArray,
    classes: Sequence[object] | AnyArray,
    weights: Array | None = None,
    columns: Sequence[int] | None = None,
) -> list[Leak]:
    """The columns that leak the class, among `columns` or all, in their order.

    `codes` are indices of the classes. A row of weight w counts as w equal rows.
    """
    wanted = list(range(table.width)) if columns is None else list(columns)
    rows, frequencies = _sampled(table, codes, weights)
    if not len(rows) or not wanted or len(np.unique(codes[rows])) < 2:
        return []
    sample, labels = table.take(rows), codes[rows]
    suspects = {*_suspects(table, codes, rows, frequencies, wanted), *_missing_in_a_class(sample, labels, wanted)}
    if not suspects:
        return []
    judged = _Rows.of(sample, labels, frequencies, len(classes), len(wanted))
    found = (judged.leak(table, j, classes) for j in wanted if j in suspects)
    return [leak for leak in found if leak is not None]


def warn_of_leaks(leaks: Sequence[Leak]) -> None:
    """Warn of all leaks at once."""
    if not leaks:
        return
    named = leaks[:MOST_NAMED]
    more = f", and {amount(len(leaks) - MOST_NAMED, 'more column', 'more columns')}" if len(leaks) > MOST_NAMED else ""
    families = ", ".join(f"{leak.column!r}: None" for leak in named)
    warn(
        f"{'; '.join(leak.message for leak in named)}{more}. If a column is not known before the class, set it aside: "
        f"families={{{families}}}.",
        LeakWarning,
    )


def _sampled(table: Table, codes: AnyArray, weights: Array | None) -> tuple[AnyArray, Array]:
    """Rows by which columns are judged, drawn by their content, and how often each counts."""
    given = np.ones(table.rows) if weights is None else weights
    total = float(given.sum())
    drawn = given if total <= MOST_ROWS else copies(table, codes, given, MOST_ROWS / total)
    rows = np.flatnonzero(drawn > 0.0)
    return rows, drawn[rows]


def _suspects(table: Table, codes: AnyArray, rows: AnyArray, frequencies: Array, columns: list[int]) -> list[int]:
    """Columns in whose order some rows have the same class as their neighbours."""
    rows = np.repeat(rows, np.rint(frequencies).astype(np.intp).clip(1))
    some = rows[np.argsort(codes[rows], kind="stable")]  # all classes in proportion
    some = some[np.linspace(0, len(some) - 1, min(len(some), FIRST_ROWS)).astype(np.intp)]
    some = np.random.default_rng(0).permutation(some)  # equal values are in random order
    part, labels = table.take(some), codes[some]
    cuts = len(np.unique(labels)) - 1  # between neighbours of different classes in the order of a leak
    found: list[int] = []
    for block, values in _blocks(part, columns):
        order = np.argsort(values, axis=0, kind="stable")
        ordered = np.take_along_axis(values, order, axis=0)
        same = labels[order[1:]] == labels[order[:-1]]
        equal = ordered[1:] == ordered[:-1]
        neighbours = (same.sum(axis=0) + cuts) / max(len(same), 1)
        equal_pairs = (same & equal).sum(axis=0) / np.maximum(equal.sum(axis=0), FEWEST_EQUAL)
        suspect = np.maximum(neighbours, equal_pairs) >= NEIGHBOURS
        found += [j for j, leaks in zip(block, suspect, strict=True) if leaks]
    return found


def _missing_in_a_class(table: Table, labels: AnyArray, columns: list[int]) -> list[int]:
    """Columns whose missing values are, but for few rows, those of one class."""
    found: list[int] = []
    if not table.whole.may_have_missing():
        return found
    totals = np.bincount(labels)
    for block, values in _blocks(table, columns):
        missing = np.isnan(values)
        for i in np.flatnonzero(missing.any(axis=0)).tolist():
            gone = np.bincount(labels[missing[:, i]], minlength=len(totals))
            if np.any(gone.sum() + totals - 2 * gone <= 2.0 * ERRORS * totals):
                found.append(block[i])
    return found


def _blocks(table: Table, columns: list[int]) -> Iterator[tuple[list[int], Array]]:
    """Some columns at a time with their values as numbers: categories are codes, NaN is a missing value."""
    for first in range(0, len(columns), BLOCK):
        block = columns[first : first + BLOCK]
        values = np.empty((table.rows, len(block)))
        numbers = [i for i, j in enumerate(block) if table.kinds[j] != "category"]
        if numbers:
            read = table.numbers(np.array([block[i] for i in numbers]), sparse=False, checked=False)
            part = read(0, table.rows)
            if part.dtype.kind in "iu" or part.dtype.itemsize > 8:  # whole numbers may be beyond doubles
                with np.errstate(invalid="ignore"):
                    part = part - np.fmin.reduce(part, axis=0)
            values[:, numbers] = part
        for i, j in enumerate(block):
            if table.kinds[j] == "category":
                (labels,) = table.categories([j])
                own = labels.part(0, table.rows).astype(np.float64)
                values[:, i] = np.where(own < 0.0, np.nan, own)
        yield block, values


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows by which suspected columns are judged: each distinct one once, with the number of its copies."""

    table: Table
    codes: AnyArray
    weights: Array
    classes: int
    needed: float  # evidence

    @classmethod
    def of(cls, table: Table, codes: AnyArray, weights: Array, classes: int, columns: int) -> _Rows:
        """The distinct rows, in random order."""
        _, first, place = np.unique(row_hashes(table, codes), return_index=True, return_inverse=True)
        order = np.random.default_rng(0).permutation(len(first))
        total, first = _sums(place, weights, len(first))[order], first[order]
        return cls(table.take(first), codes[first], total, classes, EVIDENCE + math.log(columns))

    def leak(self, table: Table, j: int, classes: Sequence[object] | AnyArray) -> Leak | None:
        """How a column leaks the class; None if it does not."""
        ((_, block),) = _blocks(self.table, [j])
        values, name = block[:, 0], table.names[j]
        by_missing = self._by_missing(np.isnan(values))
        accuracy = None if by_missing and self._present == 2 else self._by_value(values)
        if by_missing is None and accuracy is None and table.kinds[j] != "category" and not _is_identifier(table, j):
            accuracy = self._by_order(values)
        if accuracy is not None:
            return Leak(name, "value", accuracy, f"{name!r} alone predicts {_percent(accuracy)} of the rows")
        if by_missing is None:
            return None
        k, accuracy = by_missing
        label = classes[k]
        shown = label.item() if isinstance(label, np.generic) else label
        where = f"where {name!r} is missing, and only there, the class is {shown!r}"
        exact = "" if accuracy == 1.0 else f" in {_percent(accuracy)} of the rows"
        return Leak(name, "missingness", accuracy, where + exact)

    @property
    def _present(self) -> int:
        """The number of classes that the rows have."""
        return len(np.unique(self.codes))

    def _by_value(self, values: Array) -> float | None:
        """The accuracy of the most frequent class of the other rows with the same value, if it is that of a leak.

        Rows whose value no other row has are left out, and must be fewer than half of all. Copies of a row count
        once if more than half of the rows have a value of their own.
        """
        _, place = np.unique(values, return_inverse=True)  # missing values are equal
        count = int(place.max()) + 1
        copied = count <= max(2 * self._present, len(values) // 2)
        weights = self.weights if copied else np.ones(len(values))
        total, held_out = _sums(place, weights, count), np.minimum(weights, 1.0)
        right = self._majority_is_right(place, weights)
        used = weights * (total[place] - held_out > 0.0)
        rows, errors = float(used.sum()), float(used @ ~right)
        if 2.0 * rows < weights.sum() or not self._predicts(errors, used):
            return None
        labels = _sums(self.codes, used, self.classes)
        pieces = len(np.unique(place[used > 0.0]))
        return 1.0 - errors / rows if self._evidence(labels, pieces, errors) >= self.needed else None

    def _majority_is_right(self, place: AnyArray, weights: Array) -> AnyArray:
        """Whether the class of each row is the most frequent one of the other rows with the same value."""
        pairs, pair = np.unique(place * self.classes + self.codes, return_inverse=True)
        count, value = _sums(pair, weights, len(pairs)), pairs // self.classes
        order = np.lexsort((-count, value))
        first = np.flatnonzero(np.diff(value[order], prepend=-1))
        following, next_value = np.append(count[order], 0.0)[first + 1], np.append(value[order], -1)[first + 1]
        runner_up = np.where(next_value == np.arange(len(first)), following, 0.0)
        others = count[pair] - np.minimum(weights, 1.0)
        right: AnyArray = (pair == order[first][place]) & (others > runner_up[place])
        return right

    def _by_order(self, values: Array) -> float | None:
        """The accuracy of the majority of two neighbours on each side in the order of values, if it is a leak's.

        The nearer neighbour decides a tie. Copies of a row count once.
        """
        order = np.argsort(values, kind="stable")
        labels, ordered = self.codes[order], np.pad(values[order], 1, constant_values=np.nan)
        gaps = np.nan_to_num(np.diff(ordered), nan=np.inf)
        around = np.pad(labels, 2, constant_values=-1)
        before, after = around[1:-3], around[3:-1]
        same = sum((each == labels).astype(int) for each in (around[:-4], before, after, around[4:]))
        known = sum((each >= 0).astype(int) for each in (around[:-4], before, after, around[4:]))
        nearest = np.where(gaps[:-1] <= gaps[1:], before, after)
        right = (2 * same > known) | ((2 * same == known) & (nearest == labels))
        rows = np.ones(len(labels))
        errors = float(np.count_nonzero(~right))
        if not self._predicts(errors, rows):
            return None
        runs = int(np.count_nonzero(np.diff(labels))) + 1
        evidence = self._evidence(_sums(self.codes, rows, self.classes), runs, 0.0)
        enough = evidence - _log_choose(len(rows) - 1.0, runs - 1.0) >= self.needed
        return 1.0 - errors / len(rows) if enough else None

    def _by_missing(self, missing: AnyArray) -> tuple[int, float] | None:
        """A class whose rows are those with a missing value, and for how many rows this holds."""
        total, everything = _sums(self.codes, self.weights, self.classes), float(self.weights.sum())
        gone = _sums(self.codes, self.weights * missing, self.classes)
        k = int(np.argmax(gone))
        apart = float(gone.sum() + total[k] - 2.0 * gone[k])
        if not gone[k] or apart > ERRORS * min(total[k], everything - total[k]):
            return None
        chance = _log_choose(everything, total[k]) - _log_choose(everything, apart) - math.log(self._present)
        return (k, 1.0 - apart / everything) if chance >= self.needed else None

    def _predicts(self, errors: float, weights: Array) -> bool:
        """Whether the predictions of rows with these weights have as few errors as those of a leak."""
        labels = _sums(self.codes, weights, self.classes)
        others = float(labels.sum() - labels.max())
        return errors <= min(ERRORS * float(labels.sum()), ERRORS_OF_PRIOR * others)

    def _evidence(self, labels: Array, pieces: int, errors: float) -> float:
        """-log of a bound of the probability that labels in random order have one class in each piece but for errors.

        There are n!/prod n_k! orders, and at most K^pieces C(n, errors) K^errors of them are as good.
        """
        n, choices = float(labels.sum()), math.log(self._present)
        orders = float(gammaln(n + 1.0) - gammaln(labels + 1.0).sum())
        return orders - (pieces + errors) * choices - _log_choose(n, errors)


def _is_identifier(table: Table, j: int) -> bool:
    """Whether the order of values may be that of the rows, by whose class a file may be sorted."""
    return table.is_frame and ColumnProfile.at(table, j, None, frame=True).is_identifier


def _sums(places: AnyArray, weights: Array, size: int) -> Array:
    """The total weight of each place."""
    return np.bincount(places, weights, minlength=size).astype(np.float64)


def _log_choose(n: float, k: float) -> float:
    """The logarithm of a binomial coefficient."""
    return float(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def _percent(accuracy: float) -> str:
    """A proportion in percent, rounded down to one digit: 100% is all rows."""
    return f"{math.floor(1000.0 * accuracy + 1e-9) / 10.0:g}%"
