"""Hashes of rows by content."""

from __future__ import annotations

import numpy as np
import pandas as pd

from likely.data.row_hash import content_hashes, row_hashes
from likely.data.validation import read_table


def test_rows_have_equal_hashes_only_where_they_are_equal() -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "vote": draw.choice(["yes", "no", "missing"], 500),
            "other vote": draw.choice(["yes", "no", "missing"], 500),
            "count": draw.integers(3, size=500),
            "other count": draw.integers(3, size=500),
            "known": draw.random(500) < 0.5,
        }
    )
    frame = frame.replace("missing", None)
    hashes = content_hashes(read_table(frame))
    number = frame.groupby(list(frame), dropna=False).ngroup().to_numpy()
    _, by_hash = np.unique(hashes, return_inverse=True)
    distinct = number.max() + 1
    assert distinct > 100
    assert by_hash.max() + 1 == len(set(zip(by_hash.tolist(), number.tolist(), strict=True))) == distinct


def test_equal_categories_of_different_columns_are_different_rows() -> None:
    frame = pd.DataFrame({"first": ["yes", "no", "yes"], "second": ["no", "yes", "no"]})
    first, second, third = row_hashes(read_table(frame), np.zeros(3, dtype=int)).tolist()
    assert first == third != second
