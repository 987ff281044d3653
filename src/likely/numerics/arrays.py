"""Checks and small operations on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.errors import CellError, MissingCellError
from likely.typing import AnyArray, Array

MISSING = "is missing (NaN), and jointly modelled columns need complete rows here"
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


def check_finite(rows: AnyArray, allow_missing: bool = False) -> None:
    """Raise for the first value that is infinite, or missing (NaN) unless that is allowed."""
    finite = ~np.isinf(rows) if allow_missing else np.isfinite(rows)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        value = rows[row, column]
        if np.isnan(value):
            raise MissingCellError(int(row), int(column), value, MISSING, MISSING_HINT)
        raise CellError(int(row), int(column), value)
