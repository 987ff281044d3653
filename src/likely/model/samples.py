"""Samples of columns whose family is not declared: whole and non-negative where all training values are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from likely.typing import AnyArray, Array

TRIES = 100  # draws of a row with a negative value, before it is clipped


def draw_observed(draw: Callable[[int], Array], n: int, observed: Sequence[str]) -> AnyArray:
    """n rows of `draw`; whole numbers are rounded, and rows with values of the wrong sign are drawn again.

    A continuous distribution of whole numbers is that of x before it is rounded. Drawing again is a sample from the
    distribution given the signs of the columns.
    """
    rows = draw(n)
    whole = [j for j, numbers in enumerate(observed) if numbers.endswith("whole")]
    low = np.full(rows.shape[1], -np.inf)
    for j, numbers in enumerate(observed):
        if numbers.startswith("positive"):
            low[j] = 1.0 if j in whole else np.nextafter(0.0, 1.0)
        elif numbers.startswith("non-negative"):
            low[j] = 0.0
    rows = _rounded(rows, whole)
    for _ in range(TRIES):
        wrong = np.flatnonzero((rows < low).any(axis=1))
        if not len(wrong):
            return rows
        rows[wrong] = _rounded(draw(len(wrong)), whole)
    return np.maximum(rows, low)


def _rounded(rows: Array, columns: Sequence[int]) -> Array:
    rows = np.array(rows, dtype=np.float64)
    rows[:, columns] = np.rint(rows[:, columns]) + 0.0  # -0.0 is 0.0
    return rows
