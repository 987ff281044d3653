"""Counts of categories: vocabularies are united in their order, and few categories are added to many without a sort."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likely import Categorical, NaiveBayes
from likely.statistics import category_counts
from likely.statistics.category_counts import SortedWords, merged
from likely.statistics.counts import label_order

POOLS: dict[str, list[Any]] = {
    "text": [f"w{i}" for i in range(400)],
    "numbers": [*range(200), *(i + 0.5 for i in range(200))],
    "bytes": [str(i).encode() for i in range(400)],
    "mixed": [*range(100), *map(str, range(200)), *((i, "a") for i in range(100))],
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize(("many", "few"), [(0, 0), (0, 3), (5, 0), (300, 1), (300, 9), (200, 200), (9, 300)])
def test_united_vocabularies_are_sorted_and_know_the_places_of_both(name: str, many: int, few: int) -> None:
    rng = np.random.default_rng(many + few)
    pool = POOLS[name]
    for _ in range(5):
        words, others = (
            tuple(sorted((pool[i] for i in rng.permutation(len(pool))[:size]), key=label_order)) for size in (many, few)
        )
        for start in (words, merged((), words)[0]):
            union, mine, yours = merged(start, others)
            assert union == tuple(sorted({*words, *others}, key=label_order))
            for each, at in ((words, mine), (others, yours)):
                assert each == (union if at is None else tuple(union[i] for i in at))


@pytest.mark.parametrize("new", [[], ["w00000"], ["a", "w00001a", "z"]])
def test_few_rows_are_added_to_many_categories_without_a_sort_of_all(new: list[str], monkeypatch: Any) -> None:
    texts = [f"w{i:05}" for i in range(3000)]
    model = NaiveBayes(Categorical()).partial_fit(pd.DataFrame({"c": texts}), np.arange(3000) % 2)
    model.partial_fit(pd.DataFrame({"c": [*texts[:100], "w1"]}), np.arange(101) % 2)

    def few(items: Any, **options: Any) -> list[Any]:
        found = builtins.sorted(items, **options)
        assert len(found) < 100
        return found

    monkeypatch.setattr(category_counts, "sorted", few, raising=False)
    monkeypatch.setattr(category_counts, "label_order", None)
    batch = pd.DataFrame({"c": ["w00007", *new]})
    model.partial_fit(batch, np.zeros(len(batch), dtype=int))
    monkeypatch.undo()
    rows = pd.DataFrame({"c": [*texts, *texts[:100], "w1", "w00007", *new]})
    y = [*(np.arange(3000) % 2), *(np.arange(101) % 2), *[0] * len(batch)]
    whole = NaiveBayes(Categorical(), calibration=None).fit(rows, y)
    (block,), (other,) = model.statistics_.blocks, whole.statistics_.blocks
    assert isinstance(block.vocabularies[0], SortedWords)
    assert block.vocabularies == other.vocabularies
    assert_array_equal(block.rows[0], other.rows[0])
    assert_allclose(model.predict_proba(rows[:50]), whole.predict_proba(rows[:50]), rtol=1e-12)
