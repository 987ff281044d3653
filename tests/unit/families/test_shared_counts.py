"""Counts of text columns that all passes over a table share, against counting the documents again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss

from likely import GenerativeClassifier, Text
from likely.data.validation import read_table
from likely.families.text.vocabulary import Vocabulary

WORDS = np.array([f"word{j}" for j in range(60)])


def drawn(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Documents of two classes, which prefer some of the words."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(2, size=n)
    tilt = np.linspace(-1.0, 1.0, len(WORDS))
    weights = np.exp(np.array([tilt, -tilt]))
    weights /= weights.sum(axis=1, keepdims=True)
    texts = [" ".join(rng.choice(WORDS, size=12, p=weights[k])) for k in codes]
    return pd.DataFrame({"body": texts}), np.array(["a", "b"], dtype=object)[codes]


def counter(calls: list[str]) -> Any:
    """A tokenizer that records the documents that it is called with."""

    def tokens(document: str) -> list[str]:
        calls.append(document)
        return document.split()

    return tokens


def test_shared_counts_equal_those_of_the_documents() -> None:
    X = pd.DataFrame({"body": ["b a a", None, "c b", "b a a", "", "d e d"], "x": np.arange(6.0)})
    table = read_table(X)
    some = table.take(np.array([2, 0, 4, 3]))
    for part, rows in ((table, np.arange(6)), (some, np.array([2, 0, 4, 3])), (some.take(np.array([3, 1])), [3, 0])):
        documents = part.documents(0)(0, part.rows)
        texts = X["body"].fillna("").iloc[rows].tolist()
        assert list(documents) == texts
        start = Vocabulary.empty(CountVectorizer(token_pattern=r"\w+")).learn(["c z"])[0]
        (mine, shared), (expected, counts) = start.learn(documents), start.learn(texts)
        assert mine.columns == expected.columns
        assert_array_equal(shared.toarray(), counts.toarray())
        assert_array_equal(start.read(documents).toarray(), start.read(texts).toarray())


def test_documents_of_a_table_are_counted_once_for_each_vectorizer() -> None:
    calls: list[str] = []
    table = read_table(pd.DataFrame({"body": ["a b", "b c", "a b", "c"]}))
    empty = Vocabulary.empty(CountVectorizer(tokenizer=counter(calls), token_pattern=None))
    for rows in (np.arange(4), np.array([1, 3]), np.array([0])):
        empty.learn(table.take(rows).documents(0)(0, len(rows)))
    assert sorted(calls) == ["", "a b", "b c", "c"]  # the empty one stands for missing documents
    other = Vocabulary.empty(CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+"))
    assert other.learn(table.documents(0)(0, 4))[0].terms == ["a", "b", "a b", "c", "b c"]


def test_passes_of_em_do_not_count_documents_again() -> None:
    X, y = drawn(120, seed=0)
    y[30:] = None
    calls: list[str] = []
    option = Text(CountVectorizer(tokenizer=counter(calls), token_pattern=None), smoothing=0.5, exponent=0.5)
    model = GenerativeClassifier({"body": option}, unlabeled_weight=0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "check", lambda self, estimation: None)
        model.fit(X, y)
    assert len(calls) <= 2 * (X["body"].nunique() + 1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_chosen_weight_of_unlabeled_documents_is_safe(seed: int) -> None:
    X, y = drawn(700, seed)
    labels = y.copy()
    labels[40:400] = None
    model = GenerativeClassifier(unlabeled_weight="auto", families={"body": Text()}).fit(X[:400], labels[:400])
    without = GenerativeClassifier(families={"body": Text()}).fit(X[:40], y[:40])
    losses = [log_loss(y[400:], each.predict_proba(X[400:])) for each in (model, without)]
    assert losses[0] <= losses[1] + 0.03
