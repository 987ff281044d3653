"""Statistics of documents: sums of term counts in each class, sparse, which add up over documents and vocabularies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse

from likely.errors import InputError, listed
from likely.numerics.block_sizes import CACHED
from likely.numerics.shapes import Shape
from likely.statistics.counts import Counts, positions, unite_classes
from likely.statistics.rounding import removal_noise
from likely.typing import AnyArray, Array, Codes, Index


@dataclass(frozen=True, slots=True, eq=False)
class TermSums:
    """Sums over the documents of each class: what the model is estimated from, and the counts of the terms.

    Both are CSR arrays of shape (classes, columns). `values` are sums of transformed counts.
    """

    counts: Annotated[Counts, Shape("classes")]
    values: Annotated[Any, Shape("classes columns", ">=0")]
    raw: Annotated[Any, Shape("classes columns", ">=0")]
    empty: int = 0  # number of documents without any term

    @classmethod
    def empty_sums(cls) -> Self:
        """No documents, classes or columns."""
        none = scipy.sparse.csr_array((0, 0), dtype=np.float64)
        return cls(Counts.empty(np.zeros(0, dtype=np.int64)), none, none)

    @classmethod
    def of(cls, classes: AnyArray, codes: Codes, weights: Array | None, values: Any, raw: Any) -> Self:
        """The sums of documents, (documents, columns + 1); the last column, of unknown terms, is not summed."""
        size = len(classes)
        mass = np.ones(len(codes)) if weights is None else weights
        used = np.ones(len(codes), dtype=bool) if weights is None else weights > 0.0
        empty = int(np.count_nonzero((np.diff(raw.indptr) == 0) & used))
        places = codes.astype(np.intp)
        counted = _sums(places, mass, size, raw)
        summed = counted if values is raw else _sums(places, mass, size, values)
        return cls(Counts.of(classes, codes, weights), summed, counted, empty)

    def observed(self) -> Self:
        """The sums of the classes that have documents."""
        kept = np.flatnonzero(self.counts.rows > 0)
        return self if len(kept) == len(self.classes) else self.select(kept)

    @property
    def size(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    @property
    def classes(self) -> AnyArray:
        """Class labels, sorted."""
        return self.counts.classes

    def renumbered(self, columns: Index, size: int) -> Self:
        """The same sums with other columns: column j becomes columns[j]."""
        return self._changed(lambda part: _renumbered(part, columns, size))

    def _changed(self, change: Callable[[Any], Any]) -> Self:
        """The same with changed arrays; values that are the counts remain the same array."""
        values = change(self.values)
        return replace(self, values=values, raw=values if self.raw is self.values else change(self.raw))

    def align(self, classes: AnyArray, size: int) -> Self:
        """The same sums with further classes and further columns, which have no documents."""
        if classes is self.classes and size == self.size:
            return self
        at = positions(classes, self.classes)
        place = scipy.sparse.csr_array((np.ones(len(at)), (at, np.arange(len(at)))), (len(classes), len(at)))
        wide = self._changed(lambda part: _widened(place @ part, size))
        return replace(wide, counts=self.counts.align(classes))

    def _pair(self, other: TermSums) -> tuple[Self, TermSums]:
        classes, size = unite_classes(self.classes, other.classes), max(self.size, other.size)
        return self.align(classes, size), other.align(classes, size)

    def __add__(self, other: TermSums) -> Self:
        if not len(self.classes) and isinstance(other, type(self)):
            return other
        left, right = self._pair(other)
        same = left.raw is left.values and right.raw is right.values
        values = left.values + right.values
        raw = values if same else left.raw + right.raw
        return replace(left, counts=left.counts + right.counts, values=values, raw=raw, empty=self.empty + other.empty)

    def __sub__(self, other: TermSums) -> Self:
        left, right = self._pair(other)
        counts = left.counts - right.counts
        same = left.raw is left.values and right.raw is right.values
        raw = _difference(left.raw, right.raw, left.classes)
        values = raw if same else _difference(left.values, right.values, left.classes).multiply(raw > 0.0).tocsr()
        kept = positions(left.classes, counts.classes)
        gone = np.setdiff1d(np.arange(len(left.classes)), kept)
        if raw[gone].nnz:
            raise _foreign(left.classes[gone])
        rest = replace(left, values=values, raw=raw, empty=max(self.empty - other.empty, 0))
        return replace(rest._changed(lambda part: part[kept]), counts=counts)

    def without(self, code: int) -> Self:
        """The sums of all classes but one."""
        return self.select(np.delete(np.arange(len(self.classes)), code))

    def select(self, kept: AnyArray) -> Self:
        """The sums of some of the classes."""
        return replace(self._changed(lambda part: part[kept]), counts=self.counts.select(kept))


def row_blocks(ends: Index) -> Iterator[slice]:
    """Rows of a CSR array with these ends, in blocks of about CACHED stored values."""
    start, rows = 0, len(ends) - 1
    while start < rows:
        stop = max(int(np.searchsorted(ends, ends[start] + CACHED, side="right")) - 1, start + 1)
        yield slice(start, min(stop, rows))
        start = min(stop, rows)


def _sums(codes: Codes, mass: Array, size: int, rows: Any) -> Any:
    """Weighted sums of rows by class, without the last column; a block of rows at a time, which saves memory."""
    total = scipy.sparse.csr_array((size, rows.shape[1]), dtype=np.float64)
    for block in row_blocks(rows.indptr):
        members = np.arange(block.stop - block.start)
        chosen = scipy.sparse.csr_array((mass[block], (codes[block], members)), (size, len(members)))
        chosen.eliminate_zeros()
        total = total + chosen @ rows[block].astype(np.float64, copy=False)
    total = total[:, :-1]
    total.sort_indices()
    return total


def _renumbered(part: Any, columns: Index, size: int) -> Any:
    """The same sums with other columns, in arrays of their own: sorting changes them in place."""
    values = (part.data, columns[part.indices], part.indptr)
    found = scipy.sparse.csr_array(values, shape=(part.shape[0], size), copy=True)
    found.sort_indices()
    return found


def _widened(part: Any, size: int) -> Any:
    found = scipy.sparse.csr_array((part.data, part.indices, part.indptr), shape=(part.shape[0], size))
    found.sort_indices()
    return found


def _difference(before: Any, removed: Any, classes: AnyArray) -> Any:
    """before − removed without rounding errors; an error where more is removed than there was."""
    left = scipy.sparse.csr_array(before - removed)
    noise = 64.0 * removal_noise(np.array([float(abs(before).max()) if before.nnz else 0.0]))[0]
    wrong = np.flatnonzero(left.data < -1e-8 - noise)
    if len(wrong):
        rows = np.searchsorted(left.indptr, wrong, side="right") - 1
        raise _foreign(classes[np.unique(rows)])
    left.data[np.abs(left.data) <= np.maximum(noise, 1e-12)] = 0.0
    left.eliminate_zeros()
    left.sort_indices()
    return left


def _foreign(classes: AnyArray) -> InputError:
    return InputError(
        f"The documents to remove of class {listed(classes)} are not those of the fit: terms would have negative "
        "counts, or counts without documents. Pass documents, labels and weights as they were in the fit."
    )
