"""Checks and small operations on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.errors import CellError, MissingCellError
from likely.typing import AnyArray, Array, Index

ROUNDING = 1e-9  # relative difference of scores up to which they are tied
MISSING = "is missing (NaN), and jointly modelled columns need complete rows here"
MISSING_HINT = "use NaiveBayes or Gaussian('diagonal'), which accept missing values, drop such rows, or impute them"


def all_same(values: AnyArray) -> bool:
    """Whether there are values and all are equal."""
    return len(values) > 0 and (values.strides == (0,) or bool(values.min() == values.max()))


def exceeds(score: Any, other: Any) -> Any:
    """Whether scores exceed others by more than rounding, which depends on the processor."""
    with np.errstate(invalid="ignore"):
        return score - other > ROUNDING * (1.0 + np.abs(score))


def tie_ranks(scores: Any, unit: float = 1.0) -> Index:
    """Ranks of scores, 0 for the largest; neighbours that differ by at most 1e-9·(unit + |score|) have the same rank.

    Without them, the order of scores that differ by rounding would depend on the processor. NaN counts as −∞.
    """
    values = np.asarray(scores, dtype=np.float64)
    values = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-values, kind="stable")
    ranked, ranks = values[order], np.zeros(len(values), dtype=np.intp)
    with np.errstate(invalid="ignore"):
        ranks[order[1:]] = np.cumsum(ranked[:-1] - ranked[1:] > ROUNDING * (unit + np.abs(ranked[:-1])))
    return ranks


def first_best(scores: Any) -> int:
    """The first place whose score is the largest up to rounding."""
    return int(np.argmin(tie_ranks(scores)))


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
