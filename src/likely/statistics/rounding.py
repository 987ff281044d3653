"""Rounding errors after removals: what is left of sums when rows are taken out of them.

`forget`, `-` of models, folds and leave-one-out subtract the statistics of some rows from those of all rows. Where the
exact result is 0 (the last row of a class, the last value other than 0 in a column), floating point leaves a small
number instead, which would be taken for data. Statistics therefore carry `noise`, a bound on the rounding error of
each sum, and a sum within its noise counts as 0. The subtraction of `Counts`, `CategoryCounts`, `Sums` and `Moments`
and leave-one-out use the functions of this module.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from likely.errors import InputError, listed
from likely.numerics.special import EPS
from likely.typing import AnyArray, Array

ROWS_PER_SUM = 2**18  # rows of a block: most of the rounding happens in the sum over a block


def remaining_counts(
    classes: AnyArray, rows: Any, removed_rows: Any, weight: Array, removed_weight: Array
) -> tuple[npt.NDArray[np.int64], Array]:
    """Numbers of rows and weights after a removal, (classes, ...); an error names the classes with too few."""
    rows_left, weight_left = rows - removed_rows, weight - removed_weight
    slack = 1e-9 * np.maximum(weight, removed_weight)
    wrong = (
        (rows_left < 0)
        | (weight_left < -slack)
        | ((rows_left > 0) & (weight_left <= 0.0))
        | ((rows_left == 0) & (weight_left > slack))
    )
    if np.any(wrong):
        wrong = wrong.reshape(len(wrong), -1).any(axis=1)
        raise InputError(
            f"More rows are to be removed than were added, or with another weight, in class {listed(classes[wrong])}. "
            "Pass rows as they were in the fit, with the same weights."
        )
    return rows_left, weight_left


def removal_noise(before: Array) -> Array:
    """A bound on the rounding error of a difference of two sums, 8ε·|sum before the removal|."""
    return np.asarray(8.0 * EPS * np.abs(before))


def combined_noise(*noises: Array | None) -> Array | None:
    """The noise of a sum of sums, √(Σ noise²): rounding errors have either sign. None means no noise."""
    known = [noise for noise in noises if noise is not None]
    return np.hypot.reduce(known) if known else None


def subtract_counts(counts: Array, removed: Array | float, total: Array | None = None) -> Array:
    """counts − removed, and 0 where that is within the rounding error of the counts, or of a total that has them."""
    left = counts - removed
    return np.where(left <= removal_noise(counts if total is None else total), 0.0, left)


def relative_sum_error(rows: Array) -> Array:
    """A bound on the relative rounding error of the sum of equal numbers, ε·(64 + rows/2), summed in blocks."""
    return np.asarray(EPS * (64.0 + 0.5 * np.minimum(rows, ROWS_PER_SUM)))


def different_values_error(classes: AnyArray) -> InputError:
    """The error for a removal that takes the last rows of classes, but does not bring their sums to 0."""
    return InputError(
        f"The rows to remove are not among the training rows: the last rows of class {listed(classes.tolist())} had "
        "other values. Pass rows as they were in the fit."
    )
