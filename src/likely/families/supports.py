"""Supports: which values a family allows, and the check that names the first value outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from likely.errors import CellError
from likely.typing import AnyArray


@dataclass(frozen=True, slots=True)
class Support:
    """The values that a distribution can take."""

    words: str  # as in: -2 is not a count
    inside: Callable[[AnyArray], AnyArray]  # for numbers that are not NaN
    filler: float  # a value inside, that stands in for missing cells while they are masked
    whole: bool = False  # whether all values are whole numbers
    bounds: tuple[float, float] = (-np.inf, np.inf)

    def check(self, values: AnyArray, family: str) -> None:
        """Raise for the first cell outside; NaN is a missing cell."""
        with np.errstate(invalid="ignore"):
            bad = ~self.inside(values)
        if bad.any() and values.dtype.kind == "f":
            bad &= ~np.isnan(values)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            hint = "declare another family, such as families={{{column!r}: Gaussian()}}, or correct the cell"
            raise CellError(int(row), int(column), values[row, column], f"is not {self.words} ({family})", hint)


def _whole(v: AnyArray) -> AnyArray:
    if v.dtype.kind != "f":
        return np.asarray(v >= 0)
    whole = v == np.floor(v)
    if v.min(initial=0.0) >= 0.0 and v.max(initial=0.0) < np.inf:  # as a rule; two numbers take less than two masks
        return np.asarray(whole)
    return np.asarray((v >= 0) & np.isfinite(v) & whole)


COUNTS = Support("a count, a whole number from 0 on", _whole, 0.0, whole=True, bounds=(0.0, np.inf))
ZERO_ONE = Support("0 or 1", lambda v: (v == 0) | (v == 1), 0.0, whole=True, bounds=(0.0, 1.0))
NON_NEGATIVE = Support("a finite number from 0 on", lambda v: (v >= 0) & np.isfinite(v), 0.0, bounds=(0.0, np.inf))
POSITIVE = Support("a finite number above 0", lambda v: (v > 0) & np.isfinite(v), 1.0, bounds=(0.0, np.inf))
FRACTIONS = Support("a number between 0 and 1, both excluded", lambda v: (v > 0) & (v < 1), 0.5)
ANGLES = Support("a finite angle", np.isfinite, 0.0)
