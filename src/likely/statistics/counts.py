"""Counts of rows per class, and how the classes of two statistics are united."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError, listed
from likely.numerics.block_sizes import COPIED
from likely.numerics.shapes import Shape
from likely.statistics.rounding import remaining_counts
from likely.typing import AnyArray, Array, Codes, Index

Cells = Sequence[tuple[npt.NDArray[np.int64], Array]]


def unite_classes(left: AnyArray, right: AnyArray) -> AnyArray:
    """The sorted union of two sets of class labels."""
    if left is right or (left.dtype == right.dtype and np.array_equal(left, right)):
        return left
    if not len(left) or not len(right):
        return left if len(left) else right
    if left.dtype.kind == right.dtype.kind and left.dtype.kind != "f" and set(right.tolist()) <= set(left.tolist()):
        return left  # the usual update: nothing has to be aligned
    labels = {plain_label(label) for label in (*left.tolist(), *right.tolist())}
    ordered = sorted_labels(labels)
    if ordered is None and None in (sorted_labels(left.tolist()), sorted_labels(right.tolist())):
        ordered = sorted(labels, key=label_order)  # categories of a column, which may be of several types
    if ordered is None:
        raise InputError(
            f"Classes {listed(left.tolist())} and {listed(right.tolist())} are of different types and cannot be "
            "sorted together."
        )
    if "O" in (left.dtype.kind, right.dtype.kind):
        return label_array(ordered, objects=True)
    kind = np.result_type(left, right)
    if kind.kind == "f" and left.dtype.kind != "f" and right.dtype.kind != "f":
        return np.array(ordered)  # signed and unsigned integers
    if kind.kind == "f" and any(abs(label) > 2**53 for label in ordered):
        raise InputError(
            "Integer classes beyond 2^53 cannot be combined with floating-point classes: they would lose digits."
        )
    return np.array(ordered, dtype=kind)


def label_array(labels: Sequence[Any], objects: bool = False) -> AnyArray:
    """Labels as an array; of objects if wanted, or where NumPy's text would drop a NUL at the end of a label."""
    if not objects and not any(isinstance(each, str | bytes) and each[-1:] in ("\0", b"\0") for each in labels):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def plain_label(label: Any) -> Any:
    """A label as a Python object: arrays of objects may hold NumPy scalars."""
    return label.item() if isinstance(label, np.generic) else label


def label_order(label: Any) -> tuple[str, Any]:
    """The sort key of categories and labels: numbers first, then other types by name.

    Tuples are ordered element by element, sets by their sorted elements (`<` of sets is the subset relation, which is
    not a total order), and members of an enumeration by their definition.
    """
    if isinstance(label, tuple):
        return "tuple", tuple(label_order(part) for part in label)
    if isinstance(label, frozenset | set):
        return type(label).__name__, (len(label), tuple(sorted(map(label_order, label))))
    if isinstance(label, bool | int | float):
        return "", label
    if isinstance(label, Enum) and not isinstance(label, str):
        return type(label).__name__, list(type(label)).index(label)
    return type(label).__name__, label


def sorted_labels(labels: Iterable[Any]) -> list[Any] | None:
    """Distinct labels in a total order; None if they are of several types or cannot be compared."""
    found = list(labels)
    try:
        if any(isinstance(label, tuple | frozenset | set | Enum) for label in found):
            kinds = {label_order(label)[0] for label in found}
            ordered = sorted(found, key=label_order)
            comparable = all(label_order(label) <= label_order(label) for label in found[:1])
            return ordered if comparable and len(kinds) == 1 else None
        ordered = sorted(found)
        return ordered if all(bool(label <= label) for label in found[:1]) else None
    except TypeError:
        return None


def across(values: AnyArray) -> AnyArray:
    """Values per class, (classes,), or per class and column, with a shape that broadcasts to (classes, columns)."""
    return values[:, None] if values.ndim == 1 else values


def of_columns(values: AnyArray, columns: AnyArray) -> AnyArray:
    """Values per class, as they are, or those of some columns of values per class and column."""
    return values if values.ndim == 1 else values[:, columns]


def repeated(values: AnyArray, dimension: int) -> AnyArray:
    """Values per class, repeated for each column, (classes, dimension)."""
    return np.repeat(values[:, None], dimension, axis=1)


def positions(classes: AnyArray, wanted: AnyArray) -> Index:
    """The index of each label `wanted` among the classes, in any order; -1 where it is not one of them."""
    if classes.dtype.kind in "mM" and classes.dtype.kind == wanted.dtype.kind:  # times in different units
        common = np.result_type(classes, wanted)
        classes, wanted = classes.astype(common), wanted.astype(common)
    place = {plain_label(label): i for i, label in enumerate(classes.tolist())}
    return np.array([place.get(plain_label(label), -1) for label in wanted.tolist()], dtype=np.intp)


class AdditiveCounts:
    """Numbers and weights of rows in cells of any layout, in arrays whose first axis are the classes."""

    __slots__ = ()
    _fields: ClassVar = ("rows", "weight")
    classes: AnyArray

    @property
    def _cells(self) -> Cells:
        """The arrays of rows and weights, (classes, ...)."""
        rows, weight = (getattr(self, name) for name in self._fields)
        return ((rows, weight),)

    def _with(self, classes: AnyArray, cells: Cells, **layout: Any) -> Self:
        """The same with other classes and counts."""
        counts: Any = dict(zip(self._fields, cells[0], strict=True))
        return replace(self, classes=classes, **counts, **layout)  # type: ignore[type-var]

    def _united(self, other: Self) -> tuple[Any, ...]:
        """What `align` needs besides the classes; an error where the layouts cannot be united."""
        return ()

    def _short(self, part: int, short: AnyArray) -> str:
        """The names of cells (classes, ...) of a part from which too many rows are removed, as part of an error."""
        return ""

    def compact(self) -> Self:
        """The same counts without categories that have no rows."""
        return self

    def align(self, classes: AnyArray, *layout: Any) -> Self:
        """The same counts with further classes, which have no rows."""
        if classes is self.classes:
            return self
        at, size = positions(classes, self.classes), len(classes)
        return self._with(classes, [(spread(rows, at, size), spread(weight, at, size)) for rows, weight in self._cells])

    def _pair(self, other: Self) -> tuple[Self, Self]:
        layout, classes = self._united(other), unite_classes(self.classes, other.classes)
        return self.align(classes, *layout), other.align(classes, *layout)

    def __add__(self, other: Self) -> Self:
        left, right = self._pair(other)
        pairs = zip(left._cells, right._cells, strict=True)
        return left._with(left.classes, [(a + c, b + d) for (a, b), (c, d) in pairs])

    def __sub__(self, other: Self) -> Self:
        """The counts without the rows of `other`; classes and categories without any rows are dropped."""
        left, right = self._pair(other)
        cells: list[tuple[npt.NDArray[np.int64], Array]] = []
        for (rows, weight), (removed, removed_weight) in zip(left._cells, right._cells, strict=True):
            try:
                more, mass = remaining_counts(left.classes, rows, removed, weight, removed_weight)
            except InputError as error:
                raise InputError(f"{error}{left._short(len(cells), removed > rows)}") from None
            cells.append((more, np.where(more == 0, 0.0, mass)))
        seen = [rows.reshape(len(rows), -1).any(axis=1) for rows, _ in cells]
        return left._with(left.classes, cells).compact().select(np.any(seen, axis=0))

    def select(self, which: AnyArray) -> Self:
        """The counts of some of the classes."""
        return self._with(self.classes[which], [(rows[which], weight[which]) for rows, weight in self._cells])


def spread(values: AnyArray, at: Index | None, size: int, axes: Iterable[int] = (0,)) -> AnyArray:
    """Values along some axes at other places of longer ones, and 0 elsewhere."""
    for axis in axes:
        wide = np.zeros((*values.shape[:axis], size, *values.shape[axis + 1 :]), dtype=values.dtype)
        wide[(slice(None),) * axis + (at,)] = values
        values = wide
    return values


@dataclass(frozen=True, slots=True, eq=False)
class Counts(AdditiveCounts):
    """Number of rows and sum of weights of each class."""

    classes: Annotated[AnyArray, Shape("=classes", "distinct")]
    rows: Annotated[npt.NDArray[np.int64], Shape("classes", ">=0")]
    weight: Annotated[Array, Shape("classes", ">=0")]

    @classmethod
    def empty(cls, classes: AnyArray) -> Self:
        return cls(classes, np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes)))

    @classmethod
    def of(cls, classes: AnyArray, codes: Codes, weights: Array | None = None) -> Self:
        """The counts of class codes; rows of weight 0 are not counted."""
        size = len(classes)
        rows, weight = np.zeros(size, dtype=np.int64), np.zeros(size)
        for start in range(0, len(codes), COPIED):
            part = codes[start : start + COPIED]
            if weights is None:
                rows += np.bincount(part, minlength=size)
            else:
                chunk_weights = weights[start : start + COPIED]
                rows += np.bincount(part[chunk_weights > 0.0], minlength=size)
                weight += np.bincount(part, weights=chunk_weights, minlength=size)
        return cls(classes, rows, rows.astype(np.float64) if weights is None else weight)

    def _valid(self) -> bool:
        labels = self.classes.tolist()
        ordered = labels in (sorted_labels(labels), sorted(labels, key=label_order))
        return ordered and are_weighed(self.rows, self.weight)


def are_weighed(rows: AnyArray, weight: AnyArray) -> bool:
    """Whether the rows of each cell, if any, have a weight, and the sum of all is finite."""
    return rows.shape == weight.shape and bool(np.all(weight[rows > 0] > 0.0) and np.isfinite(weight.sum()))
