"""Linear and quadratic boundaries between two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from likely.families.quadratic import Quadratic
from likely.model.explanation import two_codes
from likely.typing import AnyArray, Array


@dataclass(frozen=True, slots=True, eq=False)
class LinearBoundary:
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

    See Also
    --------
    LinearDiscriminant.boundary : Returns this object.
    """

    first: Any
    second: Any
    w: Array
    level: float
    centre: Array

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


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticBoundary:
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


def boundary(form: Quadratic, classes: AnyArray, first: Any, second: Any) -> LinearBoundary | QuadraticBoundary:
    """The log-odds of two classes as a function of x; zero on the boundary between them."""
    i, j = two_codes(classes, first, second)
    linear, constant = form.linear[i] - form.linear[j], float(form.constant[i] - form.constant[j])
    if form.square is None or np.array_equal(form.square[i], form.square[j]):
        return LinearBoundary(first, second, linear, constant, form.centre)
    return QuadraticBoundary(first, second, form.square[i] - form.square[j], linear, constant, form.centre)
