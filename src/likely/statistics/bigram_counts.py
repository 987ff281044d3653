"""Counts of bigrams, pairs of consecutive terms, per class: the statistics of language models of order 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError
from likely.numerics.block_sizes import TOGETHER
from likely.numerics.shapes import Shape
from likely.statistics.rounding import remaining_counts
from likely.typing import AnyArray, Array, Codes

START = -1  # stands before the first term of a document

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class BigramCounts:
    """How often a term follows another in the documents of each class.

    One entry for each pair that occurs, sorted by class, previous term and term. The pair of the start of a document
    and its first term counts; the end of a document does not. `rows` are the occurrences and `weight` the sums of
    their documents' weights.
    """

    n_classes: int
    codes: Annotated[Numbers, Shape("pairs", ">=0", "<classes")]  # of the classes
    previous: Annotated[Numbers, Shape("pairs", f">={START}")]  # the first terms of the pairs, START before a document
    terms: Annotated[Numbers, Shape("pairs", ">=0")]  # the second terms of the pairs
    rows: Annotated[npt.NDArray[np.int64], Shape("pairs", ">0")]
    weight: Annotated[Array, Shape("pairs", ">0")]

    @classmethod
    def empty(cls, n_classes: int) -> Self:
        none = np.zeros(0, dtype=np.int32)
        return cls(n_classes, none, none, none, np.zeros(0, dtype=np.int64), np.zeros(0))

    @classmethod
    def of(cls, documents: Sequence[Codes], codes: Codes, weights: Array | None, n_classes: int) -> Self:
        """The pairs of documents, arrays of term numbers, with their class codes and weights.

        A negative number is a term outside of the vocabulary: pairs with it are not counted. Documents of weight 0
        are not counted either.
        """
        mass = np.ones(len(documents)) if weights is None else np.asarray(weights, dtype=np.float64)
        lengths = np.fromiter(map(len, documents), dtype=np.int64, count=len(documents))
        used = np.flatnonzero((lengths > 0) & (mass > 0.0))
        chunks = np.cumsum(lengths[used]) // TOGETHER
        parts = [
            _document_pairs([documents[i] for i in chunk], lengths[chunk], np.asarray(codes)[chunk], mass[chunk])
            for chunk in np.split(used, np.flatnonzero(np.diff(chunks)) + 1)
            if len(chunk)
        ]
        if not parts:
            return cls.empty(n_classes)
        return cls(n_classes, *_grouped(*(np.concatenate(fields) for fields in zip(*parts, strict=True))))

    def _sizes(self) -> dict[str, Any]:
        return {"classes": int(self.n_classes)}

    def _valid(self) -> bool:
        pairs = list(zip(self.codes.tolist(), self.previous.tolist(), self.terms.tolist(), strict=True))
        return all(before < after for before, after in pairwise(pairs))

    def __len__(self) -> int:
        return len(self.codes)

    def __add__(self, other: BigramCounts) -> Self:
        pairs = self._united(other)
        rows, weight = np.append(self.rows, other.rows), np.append(self.weight, other.weight)
        return self._with(_grouped(*pairs, rows, weight))

    def __sub__(self, other: BigramCounts) -> Self:
        """The counts without the documents of `other`; pairs that no longer occur are dropped."""
        pairs = self._united(other)
        none, mine = np.zeros(len(other), dtype=np.int64), np.zeros(len(self), dtype=np.int64)
        *numbers, rows, removed, weight, removed_weight = _grouped(
            *pairs,
            np.append(self.rows, none),
            np.append(mine, other.rows),
            np.append(self.weight, none),
            np.append(mine, other.weight),
        )
        try:
            rows, weight = remaining_counts(numbers[0], rows, removed, weight, removed_weight)
        except InputError:
            raise InputError(
                "The documents to remove are not among the training documents, or have another weight: pairs of "
                "consecutive terms would have negative counts. Pass documents as they were in the fit, with the same "
                "weights."
            ) from None
        kept = rows > 0
        return self._with([part[kept] for part in (*numbers, rows, weight)])

    def _united(self, other: BigramCounts) -> tuple[Numbers, Numbers, Numbers]:
        """Classes and terms of the pairs of both."""
        if self.n_classes != other.n_classes:
            raise InputError(f"Pairs of {self.n_classes} and of {other.n_classes} classes cannot be combined.")
        return (
            np.append(self.codes, other.codes),
            np.append(self.previous, other.previous),
            np.append(self.terms, other.terms),
        )

    def renumbered(self, mapping: Codes, n_terms: int) -> Self:
        """The same pairs in another vocabulary: term i becomes term mapping[i], or is dropped if that is negative."""
        new = np.asarray(mapping, dtype=np.int32)
        largest = max(int(self.terms.max(initial=-1)), int(self.previous.max(initial=-1)))
        if largest >= len(new) or int(new.max(initial=-1)) >= n_terms:
            raise InputError(
                f"A mapping of {len(new)} terms to {n_terms} terms does not have all terms of the pairs, or has others."
            )
        begins = self.previous == START
        previous = self.previous.copy()
        previous[~begins] = new[self.previous[~begins]]
        terms = new[self.terms]
        kept = (terms >= 0) & (begins | (previous >= 0))
        return self._regrouped(kept, self.codes, previous, terms)

    def with_classes(self, mapping: Codes, n_classes: int) -> Self:
        """The same pairs with other class codes: class i becomes class mapping[i]; a negative one is dropped."""
        codes = np.asarray(mapping, dtype=np.int32)[self.codes]
        return replace(self, n_classes=n_classes)._regrouped(codes >= 0, codes, self.previous, self.terms)

    def _regrouped(self, kept: AnyArray, *pairs: AnyArray) -> Self:
        """Some of the entries with other pairs, of which those that are equal become one."""
        entries: tuple[AnyArray, ...] = (*pairs, self.rows, self.weight)
        return self._with(_grouped(*(part[kept] for part in entries)))

    def select(self, code: int) -> Self:
        """The pairs of one class, as class 0."""
        start, stop = np.searchsorted(self.codes, [code, code + 1])
        parts = (np.zeros(stop - start, dtype=np.int32), self.previous, self.terms, self.rows, self.weight)
        return replace(self, n_classes=1)._with([parts[0], *(part[start:stop] for part in parts[1:])])

    def _with(self, parts: Sequence[AnyArray]) -> Self:
        codes, previous, terms, rows, weight = parts
        return replace(self, codes=codes, previous=previous, terms=terms, rows=rows, weight=weight)


def _document_pairs(
    documents: Sequence[Codes], lengths: npt.NDArray[np.int64], codes: Codes, weights: Array
) -> tuple[AnyArray, ...]:
    """Fields of the distinct pairs of some documents, none of which is empty."""
    terms = np.concatenate(documents).astype(np.int32)
    begins = np.cumsum(lengths) - lengths
    previous = np.roll(terms, 1)
    known = (terms >= 0) & (previous >= 0)
    known[begins] = terms[begins] >= 0
    previous[begins] = START
    owner = np.repeat(np.arange(len(documents)), lengths)[known]
    ones = np.ones(len(owner), dtype=np.int64)
    return _grouped(codes.astype(np.int32)[owner], previous[known], terms[known], ones, weights[owner])


def _grouped(codes: AnyArray, previous: AnyArray, terms: AnyArray, *values: AnyArray) -> tuple[AnyArray, ...]:
    """Sorted distinct pairs, and the sums of values over each of them."""
    if not len(codes):
        return (codes, previous, terms, *values)
    size = max(int(terms.max()), int(previous.max())) + 1
    key = (codes.astype(np.int64) * (size + 1) + (previous + 1)) * size + terms
    order = np.argsort(key, kind="stable")  # fast for the sorted runs of a sum
    key = key[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    pairs = (part[order[first]] for part in (codes, previous, terms))
    return (*pairs, *(np.add.reduceat(part[order], first) for part in values))
