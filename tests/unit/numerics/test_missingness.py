"""Rows grouped by missingness pattern."""

from __future__ import annotations

import numpy as np
import pytest

from likely.numerics.missingness import patterns, rows_by_pattern


@pytest.mark.parametrize("columns", [1, 7, 64, 65, 200])
def test_rows_are_grouped_by_the_columns_that_they_observe(columns: int) -> None:
    rng = np.random.default_rng(columns)
    rows = rng.normal(size=(60, columns))
    rows[rng.random(rows.shape) < 1.5 / columns] = np.nan
    found = {tuple(observed.tolist()): index.tolist() for index, observed in patterns(rows)}
    expected: dict[tuple[int, ...], list[int]] = {}
    for i, row in enumerate(rows):
        expected.setdefault(tuple(np.flatnonzero(~np.isnan(row)).tolist()), []).append(i)
    assert found == expected


def test_no_rows_have_no_patterns_and_no_columns_have_one() -> None:
    assert rows_by_pattern(np.zeros((0, 3), dtype=bool)) == []
    assert [index.tolist() for index in rows_by_pattern(np.zeros((2, 0), dtype=bool))] == [[0, 1]]
