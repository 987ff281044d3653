"""Bigrams of the documents of each class: additive statistics with class labels, and the language models from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from likely.errors import InputError
from likely.model.persistence import register
from likely.numerics.shapes import Shape
from likely.statistics.bigram_counts import BigramCounts
from likely.statistics.counts import label_order, plain_label, unite_classes
from likely.text.language_model import SMOOTHING, choose_concentrations
from likely.typing import AnyArray, Array, Codes


@dataclass(frozen=True, slots=True, eq=False)
class ClassBigrams:
    """Counts of pairs of consecutive terms, with the labels of their classes, and the concentrations μ of these.

    μ of a class is chosen where its first documents are added, and stays the same afterwards.
    """

    classes: Annotated[AnyArray, Shape("=classes")]
    counts: Annotated[BigramCounts, Shape("classes")]
    concentrations: Annotated[Array, Shape("classes", ">0", "nan")]  # (classes,), NaN where it is not chosen yet

    def with_concentrations(self, counts: Any) -> Self:
        """With the concentration of each class that has none yet, by leave-one-out; `counts` are those of the terms."""
        known = self.concentrations
        if not np.isnan(known).any():
            return self
        chosen = choose_concentrations(self.counts, counts, SMOOTHING)
        return replace(self, concentrations=np.where(np.isnan(known), chosen, known))

    def align(self, classes: AnyArray) -> Self:
        """The same pairs for other classes: those without pairs have none, and pairs of other classes are dropped."""
        if classes is self.classes:
            return self
        place = {label: code for code, label in enumerate(_labels(classes))}
        mapping = np.array([place.get(label, -1) for label in _labels(self.classes)], dtype=np.int32)
        known = np.full(len(classes) + 1, np.nan)
        known[mapping] = self.concentrations  # the last one is that of dropped classes
        counts = self.counts.with_classes(mapping, len(classes))
        return replace(self, classes=classes, counts=counts, concentrations=known[:-1])

    def renumbered(self, columns: Codes, n_terms: int) -> Self:
        """The same pairs in another vocabulary: term i becomes term columns[i]."""
        return replace(self, counts=self.counts.renumbered(columns, n_terms))

    def __add__(self, other: ClassBigrams) -> Self:
        classes = unite_classes(self.classes, other.classes)
        left, right = self.align(classes), other.align(classes)
        return replace(left, counts=left.counts + right.counts, concentrations=_common(left, right))

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


def _common(left: ClassBigrams, right: ClassBigrams) -> Array:
    """Concentrations of both: the one that is known, or the geometric mean, weighted by the pairs of each class."""
    mine, yours = left.concentrations, right.concentrations
    size = len(mine)
    weights = [np.bincount(each.counts.codes, each.counts.weight, minlength=size)[:size] for each in (left, right)]
    total = weights[0] + weights[1]
    part = np.divide(weights[0], total, out=np.full(size, 0.5), where=total > 0.0)
    mean = np.exp(part * np.log(mine) + (1.0 - part) * np.log(yours))
    both = np.where(mine == yours, mine, mean)
    return np.where(np.isnan(mine), yours, np.where(np.isnan(yours), mine, both))


def _labels(classes: AnyArray) -> list[Any]:
    """Labels that compare equal where those of two arrays do, of NumPy's types or Python's."""
    return [label_order(plain_label(label)) for label in classes.tolist()]
