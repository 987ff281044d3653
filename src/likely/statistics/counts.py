"""Classes and how many rows they have: what all statistics stand on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError, listed
from likely.numerics.arrays import count_codes
from likely.typing import AnyArray, Array, Codes, Index

CHUNK = 2**18


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
        return np.array(ordered)  # integers with and without a sign
    if kind.kind == "f" and any(abs(label) > 2**53 for label in ordered):
        raise InputError("Classes beyond 2^53 cannot be numbers with and without a fraction at once.")
    return np.array(ordered, dtype=kind)


def plain_label(label: Any) -> Any:
    """A label as Python has it: arrays of objects may hold scalars of NumPy."""
    return label.item() if isinstance(label, np.generic) else label


def _sorted_alike(labels: set[Any]) -> list[Any] | None:
    """Labels in their order; None where they are of several kinds, or have none."""
    kinds = {"number" if isinstance(label, bool | int | float) else type(label).__name__ for label in labels}
    try:
        return sorted(labels) if len(kinds) == 1 else None
    except TypeError:
        return None


def across(values: AnyArray) -> AnyArray:
    """One number for each class, or for each class and column, as something to combine with (classes, columns)."""
    return values[:, None] if values.ndim == 1 else values


def repeated(values: AnyArray, dimension: int) -> AnyArray:
    """One number for each class as one for each class and column."""
    return np.repeat(values[:, None], dimension, axis=1)


def positions(classes: AnyArray, wanted: AnyArray) -> Index:
    """Where each of the `wanted` labels stands among the sorted `classes`."""
    return np.searchsorted(classes, wanted.astype(classes.dtype, copy=False))


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Rows and weight of each class."""

    classes: AnyArray
    rows: npt.NDArray[np.int64]
    weight: Array

    @classmethod
    def empty(cls, classes: AnyArray) -> Self:
        return cls(classes, np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes)))

    @classmethod
    def of(cls, classes: AnyArray, codes: Codes, weights: Array | None = None) -> Self:
        """Counts of the labels with these codes; rows of weight 0 are absent."""
        size = len(classes)
        rows, weight = np.zeros(size, dtype=np.int64), np.zeros(size)
        for start in range(0, len(codes), CHUNK):  # bincount makes a wide copy of what it counts
            part = codes[start : start + CHUNK]
            if weights is None:
                rows += count_codes(part, size)
            else:
                share = weights[start : start + CHUNK]
                rows += np.bincount(part[share > 0.0], minlength=size)
                weight += np.bincount(part, weights=share, minlength=size)
        return cls(classes, rows, rows.astype(np.float64) if weights is None else weight)

    def sound(self) -> bool:
        """Whether these can be the counts of any rows."""
        alike = self.classes.ndim == 1 and bool(np.all(self.classes[:-1] < self.classes[1:]))
        return alike and are_counts(self.rows, self.weight, self.classes.shape)

    def align(self, classes: AnyArray) -> Self:
        """The same counts among more classes."""
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
        rows, weight = remaining(classes, left.rows, right.rows, left.weight, right.weight)
        gone = rows == 0
        kept = replace(left, rows=rows, weight=np.where(gone, 0.0, weight))
        return kept.select(~gone)

    def select(self, which: AnyArray) -> Self:
        """The same counts of some classes only."""
        return replace(self, classes=self.classes[which], rows=self.rows[which], weight=self.weight[which])


def are_counts(rows: AnyArray, weight: AnyArray, *shapes: tuple[int, ...]) -> bool:
    """Whether these can be numbers and weights of rows, in one of these shapes."""
    alike = rows.shape == weight.shape and rows.shape in shapes and rows.dtype == np.int64
    return alike and are_numbers(weight, rows.shape) and bool(np.all((rows >= 0) & (weight >= 0.0)))


def are_numbers(values: AnyArray, *shapes: tuple[int, ...]) -> bool:
    """Whether these are finite numbers, in one of these shapes."""
    return values.dtype == np.float64 and values.shape in shapes and bool(np.all(np.isfinite(values)))


def remaining(
    classes: AnyArray, rows: Any, fewer: Any, weight: Array, lighter: Array
) -> tuple[npt.NDArray[np.int64], Array]:
    """Rows and weight after a removal, or an error that names the classes with too few."""
    left, kept = rows - fewer, weight - lighter
    slack = 1e-9 * np.maximum(weight, lighter)
    short = (left < 0) | (kept < -slack) | ((left > 0) & (kept <= 0.0)) | ((left == 0) & (kept > slack))
    if np.any(short):
        short = across(short).any(axis=1)
        raise InputError(
            f"More was removed than had been added, or with another weight, in class {listed(classes[short])}. "
            "Only rows that were learnt, with the weight they had, can be removed."
        )
    return left, kept


def joint_noise(*noises: Array | None) -> Array | None:
    """Rounding of several sums: it goes either way, so that squares add up."""
    known = [noise for noise in noises if noise is not None]
    return np.hypot.reduce(known) if known else None


def other_values(classes: AnyArray) -> InputError:
    return InputError(
        f"The rows to remove are not among those that were learnt: the last rows of class {listed(classes.tolist())} "
        "had other values."
    )
