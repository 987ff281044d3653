"""Missingness patterns: the sets of columns whose values are missing in a row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from likely.typing import AnyArray, Index


def patterns(rows: AnyArray) -> Iterator[tuple[Index, Index]]:
    """The missingness patterns of rows: indices of the rows with a pattern, and of the columns that they observe."""
    missing = np.isnan(rows)
    for index in rows_by_pattern(missing):
        yield index, np.flatnonzero(~missing[index[0]])


def rows_by_pattern(missing: AnyArray) -> list[Index]:
    """The indices of the rows with each pattern, from a mask (n, d) of missing values."""
    if not len(missing):
        return []
    packed = np.packbits(missing, axis=1)
    words = np.zeros((len(packed), max(-(-packed.shape[1] // 8), 1) * 8), dtype=np.uint8)
    words[:, : packed.shape[1]] = packed
    keys = words.view(np.uint64)
    # integers are sorted much faster than rows of an array
    _, place = np.unique(keys[:, 0] if keys.shape[1] == 1 else keys, axis=0, return_inverse=True)
    place = place.ravel()  # NumPy 2.0 returns a column
    order = np.argsort(place, kind="stable")
    return np.split(order, np.cumsum(np.bincount(place))[:-1])
