"""Sums of terms: immutable, additive over documents and vocabularies."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from likely import GenerativeClassifier, Text, cross_validate
from likely.families.text.document_sums import DocumentAccumulator, DocumentSums
from likely.families.text.term_models import CompactSums, ScaledTerms
from likely.families.text.vocabulary import Vocabulary, default_vectorizer
from likely.statistics.counts import Counts
from likely.statistics.documents import Documents
from likely.statistics.term_sums import TermSums
from tests.helpers import fits


def summed(*documents: str) -> DocumentSums:
    texts = np.array(documents, dtype=object)
    accumulator = DocumentAccumulator(np.array([0, 1]), Vocabulary.empty(default_vectorizer()), ScaledTerms())
    accumulator.add(Documents(texts, np.arange(len(texts)), {}), np.arange(len(texts)) % 2)
    return accumulator.finish()


def arrays(sums: TermSums) -> list[Any]:
    parts = [(part.data, part.indices, part.indptr) for part in (sums.values, sums.raw)]
    return [array.copy() for part in parts for array in part]


def test_sums_are_not_changed_by_additions() -> None:
    first, second = summed("d c b a", "a b c", "e d"), summed("a b c d e", "z y a", "c c a", "b z")
    before = [arrays(each.sums) for each in (first, second)]
    for total in (first + second, second + first, sum((second, first), start=summed()), (first + second) - second):
        assert fits(total.sums)
        for each, expected in zip((first, second), before, strict=True):
            for found, array in zip(arrays(each.sums), expected, strict=True):
                assert_array_equal(found, array)


def test_sums_with_unsorted_columns_are_not_changed_by_estimates() -> None:
    values = scipy.sparse.csr_array((np.array([3.0, 1.0, 2.0]), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    counts = Counts(np.array(["a"]), np.array([2]), np.array([2.0]))
    sums = TermSums(counts, values, values)
    before = arrays(sums)
    for merged in (False, True):
        compact = CompactSums.of(sums, merged, fixed=False)
        assert_allclose(compact.values.toarray(), [[2.0, 3.0, 1.0]] if merged else [[1.0, 2.0, 3.0, 0.0]])
        for found, array in zip(arrays(sums), before, strict=True):
            assert_array_equal(found, array)


@pytest.mark.parametrize("folds", [3, 5])
def test_cross_validation_of_declared_text_equals_refits(folds: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 90)
    words = np.array([f"w{i}" for i in range(40)])
    X = pd.DataFrame({"text": [" ".join(rng.choice(words[10 * k : 30 + 10 * k], 6)) for k in y]})
    model = GenerativeClassifier({"text": Text(smoothing=0.5, exponent=0.5)}, calibration=None)
    split = [
        (np.flatnonzero(np.arange(90) % folds != i), np.flatnonzero(np.arange(90) % folds == i)) for i in range(folds)
    ]
    found = cross_validate(model, X, y, folds=split)
    for i, (train, test) in enumerate(split):
        proba = model.fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
        assert found.log_loss[i] == pytest.approx(-np.log(proba[np.arange(len(test)), y[test]]).mean(), rel=1e-10)


def test_columns_are_counted_at_the_same_time() -> None:
    texts, both = np.array(["a", "b"], dtype=object), threading.Barrier(2, timeout=20)
    columns = [Documents(texts, np.arange(2), {}) for _ in range(2)]

    def count(documents: list[str]) -> int:
        both.wait()  # both threads are here
        return len(documents)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda column: column.counted("terms", count), columns)) == [2, 2]
    shared = columns[0]
    calls: list[Any] = []
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: shared.counted("words", calls.append), range(8)))
    assert len(calls) == 1
