"""Bigrams of the documents of each class: additive statistics with class labels, and the language models from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from likely.errors import InputError
from likely.model.persistence import register
from likely.statistics.bigram_counts import BigramCounts
from likely.statistics.counts import label_order, plain_label, unite_classes
from likely.text.language_model import Analyzer, term_ids
from likely.typing import AnyArray, Array, Codes


@dataclass(frozen=True, slots=True, eq=False)
class ClassBigrams:
    """Counts of pairs of consecutive terms, with the labels of their classes."""

    classes: AnyArray
    counts: BigramCounts

    @classmethod
    def of(
        cls,
        classes: AnyArray,
        codes: Codes,
        weights: Array | None,
        documents: Sequence[str],
        analyzer: Analyzer,
        columns: Mapping[str, int],
    ) -> Self:
        """The pairs of documents whose terms have numbers in `columns`."""
        return cls(classes, BigramCounts.of(term_ids(documents, analyzer, columns), codes, weights, len(classes)))

    def sound(self, classes: AnyArray, n_terms: int) -> bool:
        """Whether these can be pairs of documents of the classes and terms of a model."""
        largest = max(int(self.counts.terms.max(initial=-1)), int(self.counts.previous.max(initial=-1)))
        same = _labels(self.classes) == _labels(classes) and self.counts.n_classes == len(classes)
        return same and largest < n_terms and self.counts.sound()

    def align(self, classes: AnyArray) -> Self:
        """The same pairs for other classes: those without pairs have none, and pairs of other classes are dropped."""
        if classes is self.classes:
            return self
        place = {label: code for code, label in enumerate(_labels(classes))}
        mapping = np.array([place.get(label, -1) for label in _labels(self.classes)], dtype=np.int32)
        return replace(self, classes=classes, counts=self.counts.with_classes(mapping, len(classes)))

    def renumbered(self, columns: Codes, n_terms: int) -> Self:
        """The same pairs in another vocabulary: term i becomes term columns[i]."""
        return replace(self, counts=self.counts.renumbered(columns, n_terms))

    def __add__(self, other: ClassBigrams) -> Self:
        classes = unite_classes(self.classes, other.classes)
        left, right = self.align(classes), other.align(classes)
        return replace(left, counts=left.counts + right.counts)

    def __sub__(self, other: ClassBigrams) -> Self:
        """The pairs without those of `other`; classes stay, also without any pair."""
        classes = unite_classes(self.classes, other.classes)
        left, right = self.align(classes), other.align(classes)
        return replace(left, counts=left.counts - right.counts)


register(ClassBigrams)


def check_ordered_terms(vectorizer: Any) -> None:
    """Raise unless a vectorizer has the words of a text in their order, as pairs need them."""
    if isinstance(vectorizer, HashingVectorizer):
        raise InputError("order=2 needs the terms of a text, and HashingVectorizer hashes them. Use CountVectorizer.")
    analyzer, lengths = getattr(vectorizer, "analyzer", "word"), tuple(getattr(vectorizer, "ngram_range", (1, 1)))
    if isinstance(analyzer, str) and (analyzer != "word" or lengths != (1, 1)):
        raise InputError(
            f"order=2 counts pairs of consecutive words, and the vectorizer has analyzer={analyzer!r} with "
            f"ngram_range={lengths}. Use analyzer='word' and ngram_range=(1, 1), or order=1."
        )


def _labels(classes: AnyArray) -> list[Any]:
    """Labels that compare equal where those of two arrays do, of NumPy's types or Python's."""
    return [label_order(plain_label(label)) for label in classes.tolist()]
