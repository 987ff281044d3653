"""Checks and small operations on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.errors import CellError, MissingCellError
from likely.typing import AnyArray, Array

BEYOND = "is beyond 1e140, the limit of numbers in continuous columns"
BEYOND_HINT = "replace a code for missing values by NaN, cap the value, drop the row, or rescale the column"
MISSING = "is missing (NaN), and jointly modelled columns need complete rows here"
LARGEST_NUMBER = 1e140  # of continuous columns: sums of squares of such numbers are finite
MISSING_HINT = "use NaiveBayes or Gaussian('diagonal'), which accept missing values, drop such rows, or impute them"


def all_same(values: AnyArray) -> bool:
    """Whether there are values and all are equal."""
    return len(values) > 0 and (values.strides == (0,) or bool(values.min() == values.max()))


def float_rows(rows: AnyArray, origin: Array | None = None) -> Array:
    """Rows as float64, minus an origin, in their memory order; no copy where that changes nothing."""
    return np.asarray(rows if origin is None else np.subtract(rows, origin), dtype=np.float64)


def power_of_two(magnitude: Array) -> Array:
    """The powers of two just above the magnitudes; 1 for a magnitude of 0."""
    exponent = np.frexp(magnitude)[1]
    return np.where(magnitude > 0.0, np.ldexp(1.0, np.clip(exponent, -1000, 1000)), 1.0)


def is_missing(value: Any) -> bool:
    """Whether an object is a missing value: None, NaN, or NA of pandas."""
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN differs from itself
    except ArithmeticError:
        return False  # a signalling NaN of decimal is an invalid value, not a missing one
    except (TypeError, ValueError):
        return not isinstance(value, np.ndarray | list | tuple | dict)  # NA has no truth value


def all_finite(values: AnyArray) -> bool:
    """Whether no value is NaN or infinite; usually decided by the sum, without a temporary array."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum())) or bool(np.all(np.isfinite(values)))


def has_missing(rows: AnyArray) -> bool:
    """Whether any value is missing (NaN)."""
    return rows.dtype.kind == "f" and not all_finite(rows) and bool(np.isnan(rows).any())


def within_limits(values: AnyArray) -> bool:
    """Whether all numbers are missing or at most 1e140 in size; usually decided by the sum of squares."""
    if values.dtype.kind != "f" or not values.size:
        return True
    flat = values.ravel(order="K")
    if float(np.vdot(flat, flat)) <= LARGEST_NUMBER**2:
        return True
    # Where all are missing, both are NaN.
    return not (float(np.fmax.reduce(flat)) > LARGEST_NUMBER or float(np.fmin.reduce(flat)) < -LARGEST_NUMBER)


def check_limits(rows: AnyArray, weights: Array | None = None) -> None:
    """Raise for the first number that is infinite or beyond 1e140, in a row of positive weight."""
    if within_limits(rows):
        return
    beyond = np.abs(rows, dtype=np.float64) > LARGEST_NUMBER
    if weights is not None:
        beyond &= (weights > 0.0)[:, None]
    if beyond.any():
        row, column = np.argwhere(beyond)[0].tolist()
        value = float(rows[row, column])
        raise CellError(row, column, value) if np.isinf(value) else CellError(row, column, value, BEYOND, BEYOND_HINT)


def check_finite(rows: AnyArray, allow_missing: bool = False) -> None:
    """Raise for the first value that is infinite, or missing (NaN) unless that is allowed."""
    finite = ~np.isinf(rows) if allow_missing else np.isfinite(rows)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        value = rows[row, column]
        if np.isnan(value):
            raise MissingCellError(int(row), int(column), value, MISSING, MISSING_HINT)
        raise CellError(int(row), int(column), value)
