"""Bigrams with class labels: models of parts of the documents add up to that of all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from likely.errors import InputError
from likely.model.persistence import read, write
from likely.statistics.bigram_counts import BigramCounts
from likely.text.class_bigrams import ClassBigrams, check_ordered_terms
from likely.text.language_model import term_ids
from tests.helpers import fits
from tests.unit.statistics.test_bigram_counts import same_counts
from tests.unit.text.test_language_model import TERMS, TEXTS, VOCABULARY

LABELS = np.array(["b", "a", "c", "a", "b", "c", "c"])


def bigrams_of(rows: Any, columns: dict[str, int] = VOCABULARY) -> ClassBigrams:
    classes, codes = np.unique(LABELS[rows], return_inverse=True)
    return counted(classes, codes, [TEXTS[i] for i in rows], columns)


def counted(classes: Any, codes: Any, texts: list[str], columns: dict[str, int] = VOCABULARY) -> ClassBigrams:
    pairs = BigramCounts.of(term_ids(texts, str.split, columns), codes, None, len(classes))
    return ClassBigrams(classes, pairs, np.full(len(classes), np.nan))


def same(left: ClassBigrams, right: ClassBigrams) -> None:
    assert_array_equal(left.classes, right.classes)
    same_counts(left.counts, right.counts)


def test_parts_with_other_classes_and_vocabularies_add_up() -> None:
    turned = {term: len(TERMS) - 1 - i for term, i in VOCABULARY.items()}
    whole, first = bigrams_of(range(7)), bigrams_of([0, 1, 3])
    second = bigrams_of([2, 4, 5, 6], turned).renumbered(np.arange(len(TERMS))[::-1], len(TERMS))
    same(first + second, whole)
    same(second + first, whole)
    same((whole - second).align(first.classes), first)
    assert fits(whole)
    assert not fits(replace(whole, classes=np.array(["a", "b"])))


def test_classes_can_be_dropped_and_added() -> None:
    whole = bigrams_of(range(7))
    same(whole.align(np.array(["a", "c"])), bigrams_of([1, 2, 3, 5, 6]))
    wide = whole.align(np.array(["a", "b", "bb", "c"]))
    assert len(wide.counts.select(2)) == 0
    same_counts(wide.counts.select(3), whole.counts.select(2))
    same(wide.align(whole.classes), whole)


def test_labels_of_any_type() -> None:
    for labels in (np.array([0, 1]), np.array([False, True]), np.array(["x", "y"], dtype=object)):
        counts = counted(labels, np.array([0, 1]), ["the cat", "the dog"])
        same(counts.align(labels[1:]) + counts.align(labels[:1]), counts)


def test_bigrams_are_kept_in_files(tmp_path: Path) -> None:
    whole = bigrams_of(range(7))
    write(tmp_path / "pairs", {"bigrams": whole})
    same(read(tmp_path / "pairs", lambda content: content["bigrams"]), whole)


@pytest.mark.parametrize(
    "vectorizer",
    [CountVectorizer(), TfidfVectorizer(stop_words="english"), CountVectorizer(analyzer=str.split)],
)
def test_words_have_an_order(vectorizer: Any) -> None:
    check_ordered_terms(vectorizer)


@pytest.mark.parametrize(
    ("vectorizer", "message"),
    [
        (HashingVectorizer(), "HashingVectorizer hashes"),
        (CountVectorizer(analyzer="char"), "analyzer='char'"),
        (CountVectorizer(ngram_range=(1, 2)), r"ngram_range=\(1, 2\)"),
    ],
)
def test_characters_n_grams_and_hashes_have_no_pairs(vectorizer: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_ordered_terms(vectorizer)
