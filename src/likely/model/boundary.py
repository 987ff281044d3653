"""Linear and quadratic boundaries between two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.errors import InputError, listed
from likely.families.base import Quadratic
from likely.typing import AnyArray, Array


@dataclass(frozen=True, slots=True, eq=False)
class LinearBoundary:
    """log p(first | x) − log p(second | x) = w·x + w0.

    Stored about a centre near the class means, w·(x − centre) + level, which avoids cancellation far from 0.
    """

    first: Any
    second: Any
    w: Array
    level: float
    centre: Array

    @property
    def w0(self) -> float:
        """The log-odds at x = 0."""
        return float(self.level - self.w @ self.centre)

    def __call__(self, X: Any) -> Array:
        """Log-odds of the rows of X."""
        return np.asarray((np.asarray(X, dtype=np.float64) - self.centre) @ self.w + self.level)


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticBoundary:
    """log p(first | x) − log p(second | x) = xᵀ·A·x + b·x + c.

    Stored about a centre near the class means, zᵀ·A·z + slope·z + level with z = x − centre.
    """

    first: Any
    second: Any
    A: Array
    slope: Array
    level: float
    centre: Array

    @property
    def b(self) -> Array:
        """The gradient of the log-odds at x = 0."""
        return np.asarray(self.slope - 2.0 * self.A @ self.centre)

    @property
    def c(self) -> float:
        """The log-odds at x = 0."""
        return float(self.level - self.slope @ self.centre + self.centre @ self.A @ self.centre)

    def __call__(self, X: Any) -> Array:
        """Log-odds of the rows of X."""
        z = np.asarray(X, dtype=np.float64) - self.centre
        return np.asarray(np.einsum("nd,nd->n", z @ self.A, z) + z @ self.slope + self.level)


def boundary(form: Quadratic, classes: AnyArray, first: Any, second: Any) -> LinearBoundary | QuadraticBoundary:
    """The log-odds of two classes as a function of x; zero on the boundary between them."""
    labels = classes.tolist()
    unknown = [label for label in (first, second) if label not in labels]
    if unknown:
        raise InputError(f"Class {listed(unknown)} is not among the classes {listed(labels)}.")
    i, j = labels.index(first), labels.index(second)
    linear, constant = form.linear[i] - form.linear[j], float(form.constant[i] - form.constant[j])
    if form.square is None or np.array_equal(form.square[i], form.square[j]):
        return LinearBoundary(first, second, linear, constant, form.centre)
    return QuadraticBoundary(first, second, form.square[i] - form.square[j], linear, constant, form.centre)
