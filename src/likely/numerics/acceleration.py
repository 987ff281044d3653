"""Anderson acceleration of fixed-point iterations."""

from __future__ import annotations

import numpy as np

from likely.typing import Array


class AndersonAcceleration:
    """Where an iteration x → g(x), x of shape (k, d), is heading to, from its last steps (Anderson 1965).

    Of all combinations of the last points it takes the one whose step g(x) − x would be the shortest, were g linear.
    Steps are as long as their products with `metric` (d, m) are.
    """

    def __init__(self, metric: Array, memory: int = 8) -> None:
        self._metric, self._memory = metric, memory
        self._points: list[Array] = []
        self._steps: list[Array] = []

    def ahead(self, x: Array, target: Array) -> Array | None:
        """The next point, where x leads to the target; None while too little is known."""
        step = target - x
        self._points = [*self._points[-self._memory :], x]
        self._steps = [*self._steps[-self._memory :], step]
        if len(self._points) < 2:
            return None
        turns = np.array(self._steps[:-1]) - step
        further = np.array(self._points[:-1]) - x + turns
        length = (turns @ self._metric).reshape(len(turns), -1)
        share, *_ = np.linalg.lstsq(length.T, -(step @ self._metric).ravel(), rcond=1e-10)
        return np.asarray(target + np.einsum("i,ikd->kd", share, further))

    def forget(self) -> None:
        """Begin anew: the last steps told nothing of the next."""
        self._points, self._steps = self._points[-1:], self._steps[-1:]
