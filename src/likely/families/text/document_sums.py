"""Statistics of a text column: a vocabulary, and sums of its terms over the documents of each class."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse

from likely.errors import InputError
from likely.families.text.files import restored_sums, sums_content
from likely.families.text.term_models import TermModel
from likely.families.text.vocabulary import Vocabulary
from likely.numerics.shapes import Shape
from likely.statistics.counts import Counts
from likely.statistics.documents import Documents
from likely.statistics.term_sums import TermSums
from likely.typing import AnyArray, Array, Codes

BLOCK_ROWS = 2**13  # documents that are counted at a time


@dataclass(frozen=True, slots=True, eq=False)
class DocumentSums:
    """Sums of the terms of the documents of each class. Vocabularies unite where two of them are added."""

    vocabulary: Annotated[Vocabulary, Shape("columns")]
    sums: Annotated[TermSums, Shape("classes columns")]

    @property
    def classes(self) -> AnyArray:
        return self.sums.classes

    @property
    def dimension(self) -> int:
        return 1

    @property
    def rows(self) -> AnyArray:
        """Numbers of documents, (classes, 1)."""
        return self.sums.counts.rows[:, None]

    @property
    def weight(self) -> Array:
        """Weights of documents, (classes, 1)."""
        return self.sums.counts.weight[:, None]

    def align(self, classes: AnyArray) -> Self:
        """The same sums with further classes, which have no documents."""
        return replace(self, sums=self.sums.align(classes, self.sums.size))

    def select(self, which: AnyArray) -> Self:
        """The sums of some of the classes."""
        return replace(self, sums=self.sums.select(which))

    def __add__(self, other: DocumentSums) -> Self:
        vocabulary, mapping = self.vocabulary.united(other.vocabulary)
        sums = self.sums.align(self.classes, vocabulary.size) + other.sums.renumbered(mapping, vocabulary.size)
        return replace(self, vocabulary=vocabulary, sums=sums)

    def __sub__(self, other: DocumentSums) -> Self:
        """The sums without the documents of `other`; terms that no document has any more are removed."""
        vocabulary, mapping = self.vocabulary.united(other.vocabulary)
        removed = other.sums.renumbered(mapping, vocabulary.size)
        if vocabulary.size > self.vocabulary.size and removed.raw[:, self.vocabulary.size :].nnz:
            unknown = vocabulary.terms[self.vocabulary.size + int(removed.raw[:, self.vocabulary.size :].indices.min())]
            raise InputError(
                f"The documents to remove have the term {unknown!r}, which no training document has. Pass rows as they "
                "were in the fit."
            )
        left = self.sums.align(self.classes, vocabulary.size) - removed
        vocabulary, columns = vocabulary.of_used(left)
        left = left if columns is None else left.renumbered(columns, vocabulary.size)
        return replace(self, vocabulary=vocabulary, sums=left)

    def _file_fields(self) -> dict[str, Any]:
        return sums_content(self.vocabulary, self.sums)

    @classmethod
    def _of_file(cls, content: dict[str, Any]) -> Self:
        return cls(*restored_sums(content))


@dataclass(slots=True, eq=False)
class DocumentAccumulator:
    """Counts the terms of blocks of documents, and sums them by class."""

    classes: AnyArray
    vocabulary: Vocabulary
    model: TermModel
    groups: None = None
    block_rows: int = BLOCK_ROWS
    _total: TermSums = field(init=False)

    def __post_init__(self) -> None:
        nothing = scipy.sparse.csr_array((len(self.classes), self.vocabulary.size))
        self._total = TermSums(Counts.empty(self.classes), nothing, nothing)

    def add(self, block: Any, codes: Codes, weights: Array | None = None) -> None:
        """Add documents with their class codes and weights; those of weight 0 are skipped."""
        used, values, raw = self._counted(block, weights)
        mass = None if weights is None else weights[used]
        self._add(TermSums.of(self.classes, codes[used], mass, values, raw))

    def add_expected(self, block: Documents, posterior: Array, weights: Array) -> None:
        """Add documents that are divided among the classes by probabilities, (classes, n)."""
        used, values, raw = self._counted(block, weights)
        mass = (posterior * weights)[:, used]
        sums = [scipy.sparse.csr_array(np.asarray(part.T @ mass.T).T[:, :-1]) for part in (values, raw)]
        rows = np.count_nonzero(mass, axis=1).astype(np.int64)
        self._add(TermSums(Counts(self.classes, rows, mass.sum(axis=1)), *sums))

    def _counted(self, block: Documents, weights: Array | None) -> tuple[AnyArray, Any, Any]:
        used = np.arange(len(block)) if weights is None else np.flatnonzero(weights > 0.0)
        documents = block if weights is None else block.take(used)
        self.vocabulary, rows = self.vocabulary.learn(documents)
        return used, self.model.transform(rows), self.vocabulary.counts(documents, rows)

    def _add(self, sums: TermSums) -> None:
        self._total = self._total.align(self.classes, sums.size) + sums

    def finish(self) -> DocumentSums:
        """The sums of all blocks so far."""
        return DocumentSums(self.vocabulary, self._total)
