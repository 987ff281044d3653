"""Supports: which values a family allows, and the check that names the first value outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from likely.errors import CellError
from likely.numerics.expressions import Expression, finite, floor
from likely.typing import AnyArray


@dataclass(frozen=True, slots=True)
class Support:
    """The set of values that a distribution can take.

    A `ColumnFamily` and its densities have one as their class attribute `support`. Values outside of it raise an error
    that names the column, the row and the value.

    Parameters
    ----------
    words : str
        A description with its article, for error messages: "-2 is not *a count*".
    inside : callable
        From an array of numbers (not NaN) to a boolean array of the same shape: whether they belong to the support.
    filler : float
        A value of the support. It replaces missing values in intermediate results, which are masked afterwards.
    whole : bool, default=False
        Whether all values are whole numbers. Densities of small ones are then tabulated.
    bounds : tuple of two float, default=(-inf, inf)
        Lower and upper bound of the values.
    remedy : str, default=''
        How to get such values, for error messages, in the imperative.
    condition : callable or None, default=None
        The same as `inside`, from an expression of a value to a condition, for the export of models. Models with a
        family without it are not exported.

    See Also
    --------
    likely.families.columns.ColumnFamily : Families of independent columns.

    Examples
    --------
    >>> import numpy as np
    >>> from likely.families.columns import Support
    >>> even = Support("an even number", lambda v: v % 2 == 0, 0.0, whole=True)
    >>> even.check(np.array([[2.0, np.nan]]), "Even")
    >>> even.check(np.array([[2.0, 3.0]]), "Even")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    likely.errors.CellError: Column 1, row 0: 3.0 is not an even number (Even). Declare ...
    """

    words: str
    inside: Callable[[AnyArray], AnyArray]
    filler: float
    whole: bool = False
    bounds: tuple[float, float] = (-np.inf, np.inf)
    remedy: str = ""
    condition: Callable[[Expression], Expression] | None = None

    def check(self, values: AnyArray, family: str) -> None:
        """Raise an error for the first value outside the support; NaN is a missing value and passes.

        Parameters
        ----------
        values : array of shape (n_samples, n_columns)
            The values to check.
        family : str
            The name of the family, for the error message.

        Raises
        ------
        likely.errors.CellError
            If a value is outside the support.
        """
        with np.errstate(invalid="ignore"):
            outside = ~self.inside(values)
        if outside.any() and values.dtype.kind == "f":
            outside &= ~np.isnan(values)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            remedy = f", {self.remedy}" if self.remedy else ""
            hint = (
                "declare another family, such as families={{{column!r}: Gaussian()}}"
                f"{remedy}, or correct the value"
            )
            raise CellError(int(row), int(column), values[row, column], f"is not {self.words} ({family})", hint)


def _is_count(v: AnyArray) -> AnyArray:
    """Whether numbers are 0, 1, 2, …"""
    if v.dtype.kind != "f":
        return np.asarray(v >= 0)
    whole = v == np.floor(v)
    if v.min(initial=0.0) >= 0.0 and v.max(initial=0.0) < np.inf:  # the common case, without two more masks
        return np.asarray(whole)
    return np.asarray((v >= 0) & np.isfinite(v) & whole)


ALL = "or families=Gaussian('diagonal') for all columns"
COUNTS = Support(
    "a count (a whole number >= 0)",
    _is_count,
    0.0,
    whole=True,
    bounds=(0.0, np.inf),
    remedy=f"{ALL}, families=Multinomial() for weights of words (TfidfVectorizer)",
    condition=lambda x: finite(x) & (x >= 0.0) & x.equals(floor(x)),
)
ZERO_ONE = Support(
    "0 or 1",
    lambda v: (v == 0) | (v == 1),
    0.0,
    whole=True,
    bounds=(0.0, 1.0),
    remedy=f"{ALL}, pass X > 0 for whether a word occurs (CountVectorizer(binary=True))",
    condition=lambda x: x.equals(0.0) | x.equals(1.0),
)
NON_NEGATIVE = Support(
    "a finite number >= 0",
    lambda v: (v >= 0) & np.isfinite(v),
    0.0,
    bounds=(0.0, np.inf),
    condition=lambda x: finite(x) & (x >= 0.0),
)
POSITIVE = Support(
    "a finite number > 0",
    lambda v: (v > 0) & np.isfinite(v),
    1.0,
    bounds=(0.0, np.inf),
    condition=lambda x: finite(x) & (x > 0.0),
)
FRACTIONS = Support(
    "a number between 0 and 1 (exclusive)",
    lambda v: (v > 0) & (v < 1),
    0.5,
    condition=lambda x: (x > 0.0) & (x < 1.0),
)
PROBABILITIES = Support("a probability", lambda v: (v >= 0) & (v <= 1), 0.5)
CHANCES = Support("a probability above 0", lambda v: (v > 0) & (v <= 1), 0.5)
FINITE = Support("a finite number", np.isfinite, 0.0, condition=finite)
ANGLES = Support("a finite angle", np.isfinite, 0.0, condition=finite)
