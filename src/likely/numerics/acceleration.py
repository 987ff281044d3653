"""Anderson acceleration of fixed-point iterations."""

from __future__ import annotations

import numpy as np

from likely.typing import Array


class AndersonAcceleration:
    """Anderson acceleration of a fixed-point iteration x → g(x), x of shape (k, d) (Anderson 1965).

    The next point is the affine combination of the last points whose step g(x) − x would be shortest if g were linear.
    Lengths of steps are those of their products with `metric`, (d, m), or their Euclidean lengths where it is None.
    """

    def __init__(self, metric: Array | None = None, memory: int = 8) -> None:
        self._metric, self._memory = metric, memory
        self._points: list[Array] = []
        self._steps: list[Array] = []

    def ahead(self, x: Array, target: Array) -> Array | None:
        """The next point, given x and its target g(x); None before the second call."""
        step = target - x
        self._points = [*self._points[-self._memory :], x]
        self._steps = [*self._steps[-self._memory :], step]
        if len(self._points) < 2:
            return None
        step_changes = np.array(self._steps[:-1]) - step
        moves = np.array(self._points[:-1]) - x + step_changes
        length, wanted = step_changes, -step
        if self._metric is not None:
            length, wanted = length @ self._metric, wanted @ self._metric
        coefficients, *_ = np.linalg.lstsq(length.reshape(len(length), -1).T, wanted.ravel(), rcond=1e-10)
        return np.asarray(target + np.einsum("i,ikd->kd", coefficients, moves))

    def forget(self) -> None:
        """Drop all steps but the last, after a step that did not improve."""
        self._points, self._steps = self._points[-1:], self._steps[-1:]
