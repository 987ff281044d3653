"""Counts of rows per class, and how the classes of two statistics are united."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError, listed
from likely.statistics.rounding import remaining_counts
from likely.typing import AnyArray, Array, Codes, Index

CHUNK = 2**18  # codes that are counted at a time, because bincount makes a wide copy of them


def unite_classes(left: AnyArray, right: AnyArray) -> AnyArray:
    """The sorted union of two sets of class labels."""
    if left is right or (left.dtype == right.dtype and np.array_equal(left, right)):
        return left
    if not len(left) or not len(right):
        return left if len(left) else right
    ordered = _sorted_alike({plain_label(label) for label in (*left.tolist(), *right.tolist())})
    if ordered is None:
        raise InputError(
            f"Classes {listed(left.tolist())} and {listed(right.tolist())} are of different types and cannot be "
            "sorted together."
        )
    if "O" in (left.dtype.kind, right.dtype.kind):
        united = np.empty(len(ordered), dtype=object)
        united[:] = ordered
        return united
    kind = np.result_type(left, right)
    if kind.kind == "f" and left.dtype.kind != "f" and right.dtype.kind != "f":
        return np.array(ordered)  # signed and unsigned integers
    if kind.kind == "f" and any(abs(label) > 2**53 for label in ordered):
        raise InputError(
            "Integer classes beyond 2^53 cannot be combined with floating-point classes: they would lose digits."
        )
    return np.array(ordered, dtype=kind)


def plain_label(label: Any) -> Any:
    """A label as a Python object: arrays of objects may hold NumPy scalars."""
    return label.item() if isinstance(label, np.generic) else label


def _sorted_alike(labels: set[Any]) -> list[Any] | None:
    """Sorted labels; None where they are of several types or cannot be compared."""
    kinds = {"number" if isinstance(label, bool | int | float) else type(label).__name__ for label in labels}
    try:
        return sorted(labels) if len(kinds) == 1 else None
    except TypeError:
        return None


def across(values: AnyArray) -> AnyArray:
    """Values per class, (classes,), or per class and column, with a shape that broadcasts to (classes, columns)."""
    return values[:, None] if values.ndim == 1 else values


def repeated(values: AnyArray, dimension: int) -> AnyArray:
    """Values per class, repeated for each column, (classes, dimension)."""
    return np.repeat(values[:, None], dimension, axis=1)


def positions(classes: AnyArray, wanted: AnyArray) -> Index:
    """The indices of the labels `wanted` among the sorted `classes`."""
    return np.searchsorted(classes, wanted.astype(classes.dtype, copy=False))


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Number of rows and sum of weights of each class."""

    classes: AnyArray
    rows: npt.NDArray[np.int64]
    weight: Array

    @classmethod
    def empty(cls, classes: AnyArray) -> Self:
        return cls(classes, np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes)))

    @classmethod
    def of(cls, classes: AnyArray, codes: Codes, weights: Array | None = None) -> Self:
        """The counts of class codes; rows of weight 0 are not counted."""
        size = len(classes)
        rows, weight = np.zeros(size, dtype=np.int64), np.zeros(size)
        for start in range(0, len(codes), CHUNK):
            part = codes[start : start + CHUNK]
            if weights is None:
                rows += np.bincount(part, minlength=size)
            else:
                chunk_weights = weights[start : start + CHUNK]
                rows += np.bincount(part[chunk_weights > 0.0], minlength=size)
                weight += np.bincount(part, weights=chunk_weights, minlength=size)
        return cls(classes, rows, rows.astype(np.float64) if weights is None else weight)

    def sound(self) -> bool:
        """Whether the fields are consistent, so that some rows have these counts."""
        alike = self.classes.ndim == 1 and bool(np.all(self.classes[:-1] < self.classes[1:]))
        return alike and are_counts(self.rows, self.weight, self.classes.shape)

    def align(self, classes: AnyArray) -> Self:
        """The same counts with further classes, which have no rows."""
        if classes is self.classes:
            return self
        at = positions(classes, self.classes)
        rows, weight = np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes))
        rows[at], weight[at] = self.rows, self.weight
        return replace(self, classes=classes, rows=rows, weight=weight)

    def __add__(self, other: Counts) -> Self:
        classes = unite_classes(self.classes, other.classes)
        left, right = self.align(classes), other.align(classes)
        return replace(left, rows=left.rows + right.rows, weight=left.weight + right.weight)

    def __sub__(self, other: Counts) -> Self:
        classes = unite_classes(self.classes, other.classes)
        left, right = self.align(classes), other.align(classes)
        rows, weight = remaining_counts(classes, left.rows, right.rows, left.weight, right.weight)
        empty = rows == 0
        return replace(left, rows=rows, weight=np.where(empty, 0.0, weight)).select(~empty)

    def select(self, which: AnyArray) -> Self:
        """The counts of some of the classes."""
        return replace(self, classes=self.classes[which], rows=self.rows[which], weight=self.weight[which])


def are_counts(rows: AnyArray, weight: AnyArray, *shapes: tuple[int, ...]) -> bool:
    """Whether these can be numbers and weights of rows, with one of the given shapes."""
    alike = rows.shape == weight.shape and rows.shape in shapes and rows.dtype == np.int64
    return alike and are_numbers(weight, rows.shape) and bool(np.all((rows >= 0) & (weight >= 0.0)))


def are_numbers(values: AnyArray, *shapes: tuple[int, ...]) -> bool:
    """Whether these are finite numbers, with one of the given shapes."""
    return values.dtype == np.float64 and values.shape in shapes and bool(np.all(np.isfinite(values)))
