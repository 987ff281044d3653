"""A ledger of learnt rows: hashes of their values and labels, by which rows that were never learnt are recognised."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from likely.data.batches import Batch
from likely.data.row_hash import row_hashes, scrambled
from likely.errors import NotLearntError
from likely.numerics.shapes import Shape
from likely.typing import AnyArray, Array, Codes

ROUNDING = 1e-9  # of weights, relative


@dataclass(frozen=True, slots=True, eq=False)
class HashedRows:
    """Rows as hashes of their values and labels, in the order in which they were given."""

    hashes: AnyArray  # uint64
    marks: AnyArray  # uint64, of the labels alone
    labels: AnyArray  # of which each row has one, by `codes`
    codes: Codes
    weights: Array
    numbers: AnyArray  # of the rows in X

    @classmethod
    def of(cls, batch: Batch, columns: AnyArray) -> HashedRows:
        """The labeled rows of a batch, by some of the columns."""
        marks = label_marks(batch.counts.classes)[batch.codes]
        hashes = row_hashes(batch.table, marks, columns)
        numbers = np.asarray(batch.table.numbers_of_rows)
        return cls(hashes, marks, batch.counts.classes, batch.codes, batch.row_weights, numbers)

    @classmethod
    def of_documents(cls, texts: Sequence[str], classes: AnyArray, codes: Codes, weights: Array | None) -> HashedRows:
        """Documents with the codes of their classes."""
        marks = label_marks(classes)[codes]
        words = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
        contents = np.frombuffer(b"".join(words), dtype="<u8").astype(np.uint64)
        ones = np.ones(len(texts)) if weights is None else weights
        return cls(scrambled(contents + scrambled(marks)), marks, classes, codes, ones, np.arange(len(texts)))

    def used(self) -> tuple[AnyArray, AnyArray]:
        """Positions of the rows with a positive weight by their hash, and where the rows of each hash begin."""
        some = np.flatnonzero(self.weights > 0.0)
        order = some[np.argsort(self.hashes[some], kind="stable")]
        return order, np.flatnonzero(np.diff(self.hashes[order], prepend=~self.hashes[order][:1]))


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """Hashes of learnt rows with their weights. It has no values, and additions and removals leave no trace."""

    hashes: Annotated[npt.NDArray[np.uint64], Shape("rows", "rising")]
    marks: Annotated[npt.NDArray[np.uint64], Shape("rows")]  # hashes of the labels
    weights: Annotated[Array, Shape("rows", ">0")]

    @classmethod
    def empty(cls) -> Self:
        return cls(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64), np.zeros(0))

    def added(self, parts: Iterable[HashedRows]) -> Self:
        """The ledger with more rows."""
        return reduce(Ledger.__add__, map(self._of, parts), self)

    def without(self, parts: Iterable[HashedRows]) -> Self:
        """The ledger without some rows; an error for the first row that is not in it."""
        return reduce(Ledger._reduced, parts, self)

    def without_class(self, label: object) -> Self:
        """The ledger without the rows of a class."""
        kept = self.marks != label_marks(np.array([label], dtype=object))[0]
        return type(self)(self.hashes[kept], self.marks[kept], self.weights[kept])

    def __add__(self, other: Self) -> Self:
        hashes, first, place = np.unique(
            np.concatenate([self.hashes, other.hashes]), return_index=True, return_inverse=True
        )
        weights = np.bincount(place, np.concatenate([self.weights, other.weights]), minlength=len(hashes))
        return type(self)(hashes, np.concatenate([self.marks, other.marks])[first], weights.astype(np.float64))

    @classmethod
    def _of(cls, rows: HashedRows) -> Self:
        order, begins = rows.used()
        if not len(order):
            return cls.empty()
        first = order[begins]
        return cls(rows.hashes[first], rows.marks[first], np.add.reduceat(rows.weights[order], begins))

    def _reduced(self, rows: HashedRows) -> Self:
        order, begins = rows.used()
        if not len(order):
            return self
        hashes = rows.hashes[order]
        place = np.searchsorted(self.hashes, hashes)
        place[place == len(self.hashes)] = 0
        known = self.hashes[place] == hashes if len(self.hashes) else np.zeros(len(hashes), dtype=bool)
        total = np.cumsum(rows.weights[order])
        before = np.repeat(np.concatenate([np.zeros(1), total])[begins], np.diff(begins, append=len(order)))
        left = np.where(known, self.weights[place] if len(self.hashes) else 0.0, 0.0)
        absent = ~known | (total - before > left * (1.0 + ROUNDING))
        if absent.any():
            raise _not_learnt(rows, min(order[absent].tolist(), key=rows.numbers.__getitem__))
        weights = self.weights.copy()
        weights[place[begins]] -= np.add.reduceat(rows.weights[order], begins)
        kept = weights > ROUNDING * self.weights
        return type(self)(self.hashes[kept], self.marks[kept], weights[kept])


def _not_learnt(rows: HashedRows, row: int) -> NotLearntError:
    label, number = rows.labels.tolist()[rows.codes[row]], int(rows.numbers[row])
    return NotLearntError(
        f"X, row {number}: no row with these values, label {label!r} and weight {rows.weights[row]:g} is among the "
        "learnt rows, or it was forgotten already. The model is unchanged. Leave the row out.",
        number,
    )


def label_marks(labels: AnyArray) -> AnyArray:
    """A pseudo-random number for each label, by the label alone; equal numbers have one, whatever their type."""
    return np.array([zlib.crc32(_spelled(label).encode()) for label in labels.tolist()], dtype=np.uint64)


def _spelled(label: Any) -> str:
    if isinstance(label, bool | int) and abs(label) < 2**53:
        label = float(label)
    return repr(label)


def hashed(batches: Iterable[Batch], columns: AnyArray) -> Iterator[HashedRows]:
    """The labeled rows of batches, by some of the columns."""
    return (HashedRows.of(batch, columns) for batch in batches)


def united(first: Ledger | None, second: Ledger | None) -> Ledger | None:
    """The ledger of the rows of two models; None if one of them has none."""
    return None if first is None or second is None else first + second
