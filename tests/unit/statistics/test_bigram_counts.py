"""Counts of pairs of consecutive terms: additive, in any chunks, vocabularies and classes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likely.errors import InputError
from likely.model.persistence import read, write
from likely.statistics.bigram_counts import START, BigramCounts
from tests.helpers import fits
from tests.unit.text.test_language_model import TERMS, TEXTS, VOCABULARY, literal_pairs, pairs_of


def as_dictionary(counts: BigramCounts) -> dict[tuple[int, int, int], tuple[int, float]]:
    keys = zip(counts.codes.tolist(), counts.previous.tolist(), counts.terms.tolist(), strict=True)
    return dict(zip(keys, zip(counts.rows.tolist(), counts.weight.tolist(), strict=True), strict=True))


def same_counts(left: BigramCounts, right: BigramCounts) -> None:
    assert fits(left)
    assert fits(right)
    assert left.n_classes == right.n_classes
    for name in ("codes", "previous", "terms", "rows"):
        assert_array_equal(getattr(left, name), getattr(right, name))
        assert getattr(left, name).dtype == getattr(right, name).dtype
    assert_allclose(left.weight, right.weight, rtol=1e-12)


def test_pairs_are_counted_with_the_start_of_each_text() -> None:
    names = {-1: "^"} | dict(enumerate(TERMS))
    found = {(names[v], names[w]): n for (_, v, w), (n, _) in as_dictionary(pairs_of(TEXTS)).items()}
    assert found == dict(literal_pairs(TEXTS))


def test_pairs_of_random_documents_and_classes_are_those_of_a_counter() -> None:
    rng = np.random.default_rng(0)
    for terms, n_classes in ((1, 3), (2, 4), (5, 7)):
        documents = [rng.integers(-1, terms, rng.integers(0, 12)) for _ in range(40)]
        codes = rng.integers(0, n_classes, 40)
        expected: Counter[tuple[int, int, int]] = Counter()
        for code, document in zip(codes.tolist(), documents, strict=True):
            for i, term in enumerate(document.tolist()):
                if term >= 0 and (i == 0 or document[i - 1] >= 0):
                    expected[code, int(document[i - 1]) if i else START, term] += 1
        counts = BigramCounts.of(documents, codes, None, n_classes)
        assert fits(counts)
        assert {key: rows for key, (rows, _) in as_dictionary(counts).items()} == dict(expected)
        for k in range(n_classes):
            chosen = {(v, w): n for (_, v, w), (n, _) in as_dictionary(counts.select(k)).items()}
            assert chosen == {(v, w): n for (code, v, w), n in expected.items() if code == k}


def test_pairs_with_unknown_terms_are_not_counted() -> None:
    counts = pairs_of(["the new cat sat", "new the cat"])
    the, cat, sat = (VOCABULARY[word] for word in ("the", "cat", "sat"))
    assert set(as_dictionary(counts)) == {(0, START, the), (0, cat, sat), (0, the, cat)}


def test_counts_do_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = [0, 1, 0, 1, 0, 1, 1]
    weights = np.array([0.5, 1.5, 2.0, 1.0, 3.0, 1.0, 0.25])
    whole = pairs_of(TEXTS, codes, weights, 2)
    monkeypatch.setattr("likely.statistics.bigram_counts.TOGETHER", 3)
    same_counts(pairs_of(TEXTS, codes, weights, 2), whole)


def test_counts_of_parts_add_up_and_can_be_removed() -> None:
    codes = np.array([0, 1, 0, 1, 0, 1, 2])
    weights = np.array([0.1, 1.7, 2.0, 1.0, 0.3, 1.0, 1.1])
    whole = pairs_of(TEXTS, codes, weights, 3)
    for cut in range(len(TEXTS) + 1):
        first = pairs_of(TEXTS[:cut], codes[:cut], weights[:cut], 3)
        second = pairs_of(TEXTS[cut:], codes[cut:], weights[cut:], 3)
        same_counts(first + second, whole)
        same_counts(second + first, whole)
        same_counts(whole - second, first)
        same_counts(whole - first, second)
    same_counts(whole + BigramCounts.empty(3), whole)
    same_counts(whole - whole, BigramCounts.empty(3))


def test_an_integer_weight_equals_repeated_texts() -> None:
    codes = np.array([0, 1, 0, 1, 0, 1, 0])
    weights = np.array([1, 2, 3, 0, 1, 4, 2])
    weighted = pairs_of(TEXTS, codes, weights, 2)
    repeated = pairs_of(np.repeat(TEXTS, weights).tolist(), np.repeat(codes, weights), None, 2)
    assert_array_equal(weighted.weight, repeated.weight)
    for name in ("codes", "previous", "terms"):
        assert_array_equal(getattr(weighted, name), getattr(repeated, name))


def test_texts_that_were_not_added_cannot_be_removed() -> None:
    counts = pairs_of(TEXTS)
    with pytest.raises(InputError, match="not among the training documents"):
        counts - pairs_of(["mat the"])
    with pytest.raises(InputError, match="not among the training documents"):
        counts - pairs_of(["fish", "fish"])
    with pytest.raises(InputError, match="weight"):
        counts - pairs_of(["fish"], weights=[0.5])
    with pytest.raises(InputError, match="1 and of 2 classes"):
        counts + pairs_of(TEXTS, n_classes=2)


def test_vocabularies_and_classes_unite() -> None:
    """Two parts with other numbers of the same terms and classes give the counts of the whole."""
    words = [["b", "a", "b"], ["c", "a"], ["a", "c", "c"], ["d", "b"]]
    codes = np.array([0, 1, 2, 0])

    def counts(rows: slice, terms: str, classes: list[int]) -> BigramCounts:
        documents = [np.array([terms.index(word) for word in each]) for each in words[rows]]
        places = np.array([classes.index(code) for code in codes[rows]])
        return BigramCounts.of(documents, places, None, len(classes))

    whole = counts(slice(None), "abcd", [0, 1, 2])
    first = counts(slice(2), "cba", [1, 0]).renumbered(np.array([2, 1, 0]), 4).with_classes(np.array([1, 0]), 3)
    second = counts(slice(2, 4), "dcab", [0, 2]).renumbered(np.array([3, 2, 0, 1]), 4).with_classes(np.array([0, 2]), 3)
    same_counts(first + second, whole)
    same_counts(whole - second, first)
    same_counts(whole.renumbered(np.arange(4), 4), whole)
    assert set(as_dictionary(whole.select(2))) == {(0, START, 0), (0, 0, 2), (0, 2, 2)}
    dropped = whole.renumbered(np.array([0, 1, -1, 2]), 3)
    assert {(v, w) for _, v, w in as_dictionary(dropped)} == {
        (START, 1),
        (1, 0),
        (0, 1),
        (START, 0),
        (START, 2),
        (2, 1),
    }
    with pytest.raises(InputError, match="mapping of 2 terms"):
        whole.renumbered(np.arange(2), 4)
    with pytest.raises(InputError, match="to 3 terms"):
        whole.renumbered(np.arange(4), 3)


def test_no_documents_have_no_pairs() -> None:
    for documents in ([], ["", ""], ["new"]):
        counts = pairs_of(documents)
        assert len(counts) == 0
        same_counts(counts, BigramCounts.empty(1))
        same_counts(counts + pairs_of(TEXTS), pairs_of(TEXTS))
    same_counts(pairs_of(["the cat"], weights=[0.0]), BigramCounts.empty(1))


def test_counts_of_pairs_are_kept_in_files(tmp_path: Path) -> None:
    counts = pairs_of(TEXTS, [0, 1, 0, 1, 0, 1, 1], [0.5, 1, 2, 1, 3, 1, 1], 2)
    write(tmp_path / "pairs", {"bigrams": counts})
    same_counts(read(tmp_path / "pairs", lambda content: content["bigrams"]), counts)


@pytest.mark.parametrize(
    "change",
    [
        {"terms": np.array([0, -2], dtype=np.int32)},
        {"previous": np.array([0, 0], dtype=np.int32)},
        {"previous": np.array([1, 0], dtype=np.int32)},
        {"codes": np.array([0, 1], dtype=np.int32)},
        {"weight": np.array([1.0, -1.0])},
        {"codes": np.array([-1, 0], dtype=np.int32)},
        {"weight": np.array([1.0, 0.0])},
        {"weight": np.array([1.0])},
        {"rows": np.array([1, 0])},
        {"terms": np.array([0.0, 1.0])},
    ],
)
def test_inconsistent_counts_are_recognised(change: dict[str, Any]) -> None:
    ids, rows = np.zeros(2, dtype=np.int32), np.ones(2, dtype=np.int64)
    fields: dict[str, Any] = {
        "codes": ids,
        "previous": np.array([START, 0], dtype=np.int32),
        "terms": ids,
        "rows": rows,
    }
    assert fits(BigramCounts(1, **fields, weight=np.ones(2)))
    assert not fits(BigramCounts(1, **{**fields, "weight": np.ones(2), **change}))
