"""Linear and quadratic boundaries between two classes."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from likely.families.quadratic import Quadratic
from likely.model.explanation import two_codes
from likely.model.rendering import RenderedResult, TextTable, short_names
from likely.typing import AnyArray, Array

MANY = 12  # columns of a linear boundary that are printed, at most
SHOWN = 6  # of a quadratic one
LINE = 110  # characters of a line of text


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinearBoundary(RenderedResult):
    """Linear decision boundary, log p(first | x) − log p(second | x) = w·x + w0.

    It is stored relative to a centre near the class means, w·(x − centre) + level, which avoids cancellation.

    Attributes
    ----------
    first, second : object
        The classes.
    w : ndarray of shape (n_features,)
        Coefficients.
    level : float
        Log-odds at the centre.
    centre : ndarray of shape (n_features,)
        The centre.
    w0 : float
        Log-odds at x = 0.
    names : tuple of str
        Names of the columns.

    See Also
    --------
    LinearDiscriminant.boundary : Returns this object.
    """

    first: Any
    second: Any
    w: Array
    level: float
    centre: Array
    names: tuple[str, ...] = ()

    @property
    def w0(self) -> float:
        """Log-odds at x = 0."""
        return float(self.level - self.w @ self.centre)

    def __call__(self, X: npt.ArrayLike) -> Array:
        """Compute the log-odds of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            log p(first | x) − log p(second | x).
        """
        return np.asarray((np.asarray(X, dtype=np.float64) - self.centre) @ self.w + self.level)

    def __repr__(self) -> str:
        return str(self)

    def _parts(self) -> list[str | TextTable]:
        return [_title(self.first, self.second, "w·x + w0"), _equation(self.w, _names(self.names, self.w), self.w0)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuadraticBoundary(RenderedResult):
    """Quadratic decision boundary, log p(first | x) − log p(second | x) = xᵀ·A·x + b·x + c.

    It is stored relative to a centre near the class means, zᵀ·A·z + slope·z + level with z = x − centre, which avoids
    cancellation.

    Attributes
    ----------
    first, second : object
        The classes.
    A : ndarray of shape (n_features, n_features)
        Quadratic coefficients.
    slope : ndarray of shape (n_features,)
        Linear coefficients at the centre.
    level : float
        Log-odds at the centre.
    centre : ndarray of shape (n_features,)
        The centre.
    b : ndarray of shape (n_features,)
        Linear coefficients at x = 0.
    c : float
        Log-odds at x = 0.
    names : tuple of str
        Names of the columns.

    See Also
    --------
    QuadraticDiscriminant.boundary : Returns this object.
    """

    first: Any
    second: Any
    A: Array
    slope: Array
    level: float
    centre: Array
    names: tuple[str, ...] = ()

    @property
    def b(self) -> Array:
        """Linear coefficients at x = 0: the gradient of the log-odds."""
        return np.asarray(self.slope - 2.0 * self.A @ self.centre)

    @property
    def c(self) -> float:
        """Log-odds at x = 0."""
        return float(self.level - self.slope @ self.centre + self.centre @ self.A @ self.centre)

    def __call__(self, X: npt.ArrayLike) -> Array:
        """Compute the log-odds of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            log p(first | x) − log p(second | x).
        """
        z = np.asarray(X, dtype=np.float64) - self.centre
        return np.asarray(np.einsum("nd,nd->n", z @ self.A, z) + z @ self.slope + self.level)

    def __repr__(self) -> str:
        return str(self)

    def _parts(self) -> list[str | TextTable]:
        names, most = _names(self.names, self.slope), SHOWN
        shown = names[:most]
        rows = [
            [name, f"{b:.4g}", *(f"{value:.4g}" for value in row[:most])]
            for name, b, row in zip(shown, self.b.tolist(), self.A.tolist(), strict=False)
        ]
        table = TextTable(("column", "b", *(f"A: {name}" for name in shown)), rows, more=len(names) - len(shown))
        return [_title(self.first, self.second, "xᵀ·A·x + b·x + c"), table, f"c = {self.c:.4g}"]


def _title(first: Any, second: Any, form: str) -> str:
    names = short_names([first, second])
    return f"log p({names[0]} | x) − log p({names[1]} | x) = {form}, which is 0 on the boundary:"


def _names(names: tuple[str, ...], values: Array) -> list[str]:
    return short_names(names or [f"x{j}" for j in range(len(values))])


def _equation(w: Array, names: list[str], w0: float) -> str:
    """w·x + w0 = 0 with the names of the columns: those with the largest coefficients where there are many."""
    order = np.arange(len(w))
    if len(w) > MANY:
        order = np.sort(np.argsort(-np.abs(w), kind="stable")[:MANY])
    terms = [(float(w[j]), f"·{names[j]}") for j in order.tolist()]
    text = "".join(f" {'−' if value < 0.0 else '+'} {abs(value):.4g}{name}" for value, name in [*terms, (w0, "")])
    text = text.removeprefix(" + ").replace(" − ", "−", 1) if text.startswith(" −") else text.removeprefix(" + ")
    more = f" (and {len(w) - MANY} more columns with smaller coefficients)" if len(w) > MANY else ""
    return textwrap.fill(f"{text} = 0{more}", LINE, break_long_words=False, break_on_hyphens=False)


def boundary(
    form: Quadratic, classes: AnyArray, first: Any, second: Any, names: tuple[str, ...] = ()
) -> LinearBoundary | QuadraticBoundary:
    """The log-odds of two classes as a function of x; zero on the boundary between them."""
    i, j = two_codes(classes, first, second)
    linear, constant = form.linear[i] - form.linear[j], float(form.constant[i] - form.constant[j])
    if form.square is None or np.array_equal(form.square[i], form.square[j]):
        return LinearBoundary(first, second, linear, constant, form.centre, names)
    square = form.square[i] - form.square[j]
    return QuadraticBoundary(first, second, square, linear, constant, form.centre, names)
