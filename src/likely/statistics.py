"""Additive statistics: frozen values with ``+``, ``-`` and an empty identity.

Classes are part of each value: adding two values that know different classes gives the statistics of their union.
Priors, smoothing and shrinkage are not in here: they belong to the estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from likely.counts import (
    Codes,
    Counts,
    Vocabulary,
    across,
    are_counts,
    are_numbers,
    joint_noise,
    other_values,
    positions,
    remaining,
    repeated,
    unite_classes,
)
from likely.errors import InputError, listed
from likely.moments import Moments
from likely.numerics import EPS, AnyArray, Array, has_holes


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of functions of single cells, for each class and column.

    `totals` is (functions, classes, d). `rows` and `weight` are (classes,), or (classes, d) where cells are
    missing: then each column counts the rows in which it was observed. Where these are not all rows, `reference` are
    the sums of all: what an estimate derives from the whole table, it derives from those. `noise` is how far removals
    may have moved the totals by rounding: what is less is nothing.
    """

    classes: AnyArray
    rows: npt.NDArray[np.int64]
    weight: Array
    totals: Array
    reference: Sums | None = None
    noise: Array | None = None

    @classmethod
    def empty(cls, classes: AnyArray, dimension: int, functions: int) -> Self:
        size = len(classes)
        return cls(classes, np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros((functions, size, dimension)))

    def sound(self) -> bool:
        """Whether these can be the sums of any rows."""
        functions, size, d = self.totals.shape
        return (
            len(self.classes) == size
            and are_counts(self.rows, self.weight, (size,), (size, d))
            and are_numbers(self.totals, (functions, size, d))
            and self.reference is None
            and (self.noise is None or are_numbers(self.noise, self.totals.shape))
        )

    @property
    def dimension(self) -> int:
        return int(self.totals.shape[2])

    @property
    def whole(self) -> Sums:
        """The sums of all rows."""
        return self if self.reference is None else self.reference

    @property
    def column_weight(self) -> Array:
        """Weight of the rows in which each column was observed, (classes, d)."""
        return np.broadcast_to(across(self.weight), self.totals.shape[1:])

    def unobserved(self) -> npt.NDArray[np.bool_]:
        """Whether a class has no value in a column, (classes, d)."""
        return np.broadcast_to(across(self.rows == 0), self.totals.shape[1:])

    def leaving_out(
        self, rows: Any, codes: Codes, weights: Array, functions: Callable[[Array], tuple[Array, ...]], filler: float
    ) -> Self:
        """For each row the sums of its class without it, as a class of its own; all rows are the reference."""
        x = np.asarray(rows, dtype=np.float64)
        missing = np.isnan(x) if has_holes(x) else None
        parts = functions(x if missing is None else np.where(missing, filler, x))
        whole = missing is None and self.rows.ndim == 1
        fewer: Array = weights if whole else weights[:, None] * (np.ones_like(x) if missing is None else ~missing)
        before, mass = (self.rows, self.weight) if whole else (across(self.rows), across(self.weight))
        mine = before[codes] - (fewer > 0.0)
        totals = np.empty((len(parts), *x.shape))
        for total, sums, part in zip(totals, self.totals, parts, strict=True):
            np.take(sums, codes, axis=0, out=total, mode="clip")
            np.subtract(total, across(fewer) * part, out=total)
            rounding = np.take(8.0 * EPS * np.abs(sums), codes, axis=0)
            np.copyto(total, 0.0, where=(np.abs(total) <= rounding) | across(mine <= 0))
        return replace(
            self,
            classes=np.arange(len(x)),
            rows=mine,
            weight=np.where(mine > 0, mass[codes] - fewer, 0.0),
            totals=totals,
            reference=self,
            noise=None,
        )

    def filled(self) -> Self:
        """The same sums with those of all rows where a class has none."""
        empty = self.unobserved()
        if not empty.any():
            return self
        whole = self.whole
        weight, totals = whole.column_weight.sum(axis=0), whole.totals.sum(axis=1)
        return replace(
            self.by_column(),
            rows=np.where(empty, 1, self.by_column().rows),
            weight=np.where(empty, weight, self.column_weight),
            totals=np.where(empty, totals[:, None], self.totals),
        )

    def by_column(self) -> Self:
        """The same sums with rows and weights for each column."""
        if self.rows.ndim == 2:
            return self
        return replace(self, rows=repeated(self.rows, self.dimension), weight=repeated(self.weight, self.dimension))

    def align(self, classes: AnyArray) -> Self:
        """The same sums among more classes."""
        if classes is self.classes:
            return self
        at = positions(classes, self.classes)
        rows, weight = (
            np.zeros((len(classes), *values.shape[1:]), values.dtype) for values in (self.rows, self.weight)
        )
        totals = np.zeros((len(self.totals), len(classes), self.dimension))
        rows[at], weight[at], totals[:, at] = self.rows, self.weight, self.totals
        noise = None
        if self.noise is not None:
            noise = np.zeros_like(totals)
            noise[:, at] = self.noise
        return replace(self, classes=classes, rows=rows, weight=weight, totals=totals, noise=noise)

    def take(self, columns: AnyArray) -> Self:
        """The sums of some columns only."""
        apart = self.rows.ndim == 2
        return replace(
            self,
            rows=self.rows[:, columns] if apart else self.rows,
            weight=self.weight[:, columns] if apart else self.weight,
            totals=self.totals[:, :, columns],
            noise=None if self.noise is None else self.noise[:, :, columns],
        )

    def select(self, which: AnyArray) -> Self:
        """The same sums of some classes only."""
        return replace(
            self,
            classes=self.classes[which],
            rows=self.rows[which],
            weight=self.weight[which],
            totals=self.totals[:, which],
            noise=None if self.noise is None else self.noise[:, which],
        )

    def _pair(self, other: Sums) -> tuple[Self, Sums]:
        if self.totals[:, 0:0].shape != other.totals[:, 0:0].shape:
            raise InputError("Sums of different columns or functions cannot be combined.")
        classes = unite_classes(self.classes, other.classes)
        left, right = self.align(classes), other.align(classes)
        if left.rows.ndim != right.rows.ndim:
            return left.by_column(), right.by_column()
        return left, right

    def __add__(self, other: Sums) -> Self:
        left, right = self._pair(other)
        return replace(
            left,
            rows=left.rows + right.rows,
            weight=left.weight + right.weight,
            totals=left.totals + right.totals,
            noise=joint_noise(left.noise, right.noise),
        )

    def __sub__(self, other: Sums) -> Self:
        left, right = self._pair(other)
        rows, weight = remaining(left.classes, left.rows, right.rows, left.weight, right.weight)
        gone = rows == 0
        totals = left.totals - right.totals
        fresh = np.where(across(right.rows > 0), 8.0 * EPS * np.abs(left.totals), 0.0)
        noise = joint_noise(left.noise, right.noise, fresh)
        assert noise is not None
        slack = 1e-6 * (np.abs(left.totals) + np.abs(right.totals) + left.column_weight) + noise
        wrong = across(gone & (left.rows > 0)) & np.any(np.abs(totals) > slack, axis=0)
        if wrong.any():
            raise other_values(left.classes[wrong.any(axis=1)])
        totals[np.abs(totals) <= noise] = 0.0
        totals = np.where(across(gone), 0.0, totals)
        result = replace(left, rows=rows, weight=np.where(gone, 0.0, weight), totals=totals, noise=noise)
        return result.select(np.any(across(~gone), axis=1))


def label_order(label: Any) -> tuple[str, Any]:
    """What labels are sorted by: numbers first, then text, each in its own order; combinations of labels likewise."""
    if isinstance(label, tuple):
        return "tuple", tuple(label_order(part) for part in label)
    return ("", label) if isinstance(label, bool | int | float) else (type(label).__name__, label)


@dataclass(frozen=True, slots=True, eq=False)
class CategoryCounts:
    """Rows and weight of each class and category, for columns with vocabularies of their own.

    `rows` and `weight` have one array (classes, categories) for each column. Rows in which a column is missing count in
    none of its categories.
    """

    classes: AnyArray
    vocabularies: tuple[Vocabulary, ...]
    rows: tuple[npt.NDArray[np.int64], ...]
    weight: tuple[Array, ...]

    @classmethod
    def empty(cls, classes: AnyArray, vocabularies: tuple[Vocabulary, ...]) -> Self:
        shapes = [(len(classes), len(words)) for words in vocabularies]
        rows = tuple(np.zeros(shape, dtype=np.int64) for shape in shapes)
        return cls(classes, vocabularies, rows, tuple(np.zeros(shape) for shape in shapes))

    def sound(self) -> bool:
        """Whether these can be the counts of any rows."""
        size = len(self.classes)
        parts = zip(self.vocabularies, self.rows, self.weight, strict=True)
        return all(
            len(set(words)) == len(words) and are_counts(rows, weight, (size, len(words)))
            for words, rows, weight in parts
        )

    @property
    def dimension(self) -> int:
        return len(self.vocabularies)

    def align(self, classes: AnyArray, vocabularies: tuple[Vocabulary, ...] | None = None) -> Self:
        """The same counts among more classes and categories."""
        words = self.vocabularies if vocabularies is None else vocabularies
        if classes is self.classes and words == self.vocabularies:
            return self
        wide, at = CategoryCounts.empty(classes, words), positions(classes, self.classes)
        for j, (old, new) in enumerate(zip(self.vocabularies, words, strict=True)):
            place = {label: code for code, label in enumerate(new)}
            index = np.ix_(at, np.array([place[label] for label in old], dtype=np.intp))
            wide.rows[j][index], wide.weight[j][index] = self.rows[j], self.weight[j]
        return wide  # type: ignore[return-value]

    def _pair(self, other: CategoryCounts) -> tuple[Self, CategoryCounts]:
        if self.dimension != other.dimension:
            raise InputError("Counts of different columns cannot be combined.")
        classes = unite_classes(self.classes, other.classes)
        words = tuple(
            mine if mine == yours else tuple(sorted({*mine, *yours}, key=label_order))
            for mine, yours in zip(self.vocabularies, other.vocabularies, strict=True)
        )
        return self.align(classes, words), other.align(classes, words)

    def __add__(self, other: CategoryCounts) -> Self:
        left, right = self._pair(other)
        rows = tuple(a + b for a, b in zip(left.rows, right.rows, strict=True))
        return replace(left, rows=rows, weight=tuple(a + b for a, b in zip(left.weight, right.weight, strict=True)))

    def __sub__(self, other: CategoryCounts) -> Self:
        """What is left; categories whose last row goes are gone."""
        left, right = self._pair(other)
        words, rows, weight = [], [], []
        for j in range(left.dimension):
            n, w = self._left_over(j, left, right)
            kept = np.flatnonzero(np.any(n, axis=0))
            words.append(tuple(left.vocabularies[j][i] for i in kept))
            rows.append(n[:, kept])
            weight.append(np.where(n == 0, 0.0, w)[:, kept])
        result = replace(left, vocabularies=tuple(words), rows=tuple(rows), weight=tuple(weight))
        return result.select(np.any([part.any(axis=1) for part in rows], axis=0))

    @staticmethod
    def _left_over(j: int, left: CategoryCounts, right: CategoryCounts) -> tuple[npt.NDArray[np.int64], Array]:
        """What remains of column j; an error names categories of which too few were learnt."""
        try:
            return remaining(left.classes, left.rows[j], right.rows[j], left.weight[j], right.weight[j])
        except InputError as error:
            short = np.flatnonzero(np.any(right.rows[j] > left.rows[j], axis=0))
            which = f" Categories: {listed([left.vocabularies[j][i] for i in short])}." if len(short) else ""
            raise InputError(f"{error}{which}") from None

    def select(self, which: AnyArray) -> Self:
        """The same counts of some classes only."""
        rows, weight = tuple(part[which] for part in self.rows), tuple(part[which] for part in self.weight)
        return replace(self, classes=self.classes[which], rows=rows, weight=weight)


def _most_cells(part: Any, k: int) -> int:
    """The rows of class k in which its best observed column has a value."""
    if isinstance(part, CategoryCounts):
        return max((int(rows[k].sum()) for rows in part.rows), default=0)
    return int(np.max(part.rows[k], initial=0))


@dataclass(frozen=True, slots=True, eq=False)
class JointStatistics:
    """Everything a fit keeps of its rows: class counts, and one statistics value for each block."""

    counts: Counts
    blocks: tuple[Any, ...]

    def __add__(self, other: JointStatistics) -> JointStatistics:
        pairs = zip(self.blocks, other.blocks, strict=True)
        return JointStatistics(self.counts + other.counts, tuple(a + b for a, b in pairs))

    def sound(self) -> bool:
        """Whether these can be the statistics of any rows, as far as blocks can tell."""
        classes = self.counts.classes
        return self.counts.sound() and all(
            np.array_equal(part.classes, classes) and (not hasattr(part, "sound") or part.sound())
            for part in self.blocks
        )

    def __sub__(self, other: JointStatistics) -> JointStatistics:
        pairs = zip(self.blocks, other.blocks, strict=True)
        left = JointStatistics(self.counts - other.counts, tuple(a - b for a, b in pairs))
        left.check_cells()
        # A class of which a block has seen nothing is gone from the block alone.
        return left.aligned()

    def check_cells(self) -> None:
        """Raise where a column has values in more rows than a class has."""
        place = {label: i for i, label in enumerate(self.counts.classes.tolist())}
        for part in self.blocks:
            for k, label in enumerate(part.classes.tolist()):
                rows = self.counts.rows[place[label]] if label in place else 0
                if _most_cells(part, k) > rows:
                    raise InputError(
                        f"Rows of class {label!r} were removed with missing cells where they had values when they were "
                        "learnt. Only rows that were learnt can be removed."
                    )

    def aligned(self) -> JointStatistics:
        """The same statistics, with all classes that have rows in every block."""
        return self.align(self.counts.classes)

    def align(self, classes: AnyArray) -> JointStatistics:
        """The same statistics among more classes."""
        return JointStatistics(self.counts.align(classes), tuple(part.align(classes) for part in self.blocks))

    def select(self, which: AnyArray) -> JointStatistics:
        """The same statistics of some classes only, which share nothing with the others."""
        return JointStatistics(self.counts.select(which), tuple(part.select(which) for part in self.blocks))

    def without(self, code: int) -> JointStatistics:
        """The statistics of all classes but one; an error where what it has in common cannot be told apart."""
        for part in self.blocks:
            if isinstance(part, Moments) and np.sum((part.group == part.group[code]) & (self.counts.rows > 0)) > 1:
                label = listed(self.counts.classes[code : code + 1])
                raise InputError(
                    f"Class {label} shares its covariance with other classes, and the sum cannot be taken apart. "
                    "Use forget(X, y) with its rows, or learn covariances of the classes' own."
                )
        only = np.arange(len(self.counts.classes)) == code
        return self - self.select(only)
