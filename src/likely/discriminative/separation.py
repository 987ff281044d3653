"""Classes that a hyperplane separates, so that the likelihood of a softmax regression has no maximum.

A direction V separates where no row has a larger score in another class than in its own, and some row a smaller one:
along it the likelihood rises for ever (Albert and Anderson 1984). The margins of all rows then add up to more than 0.
Among such directions a linear programme finds one of few columns. It holds the margins of some rows to be not negative,
and of those that violate what it found, until there are none; where some rows allow no direction, all allow none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.optimize

from likely.discriminative.design import Design
from likely.typing import AnyArray, Array

FIRST = 500  # rows that the programme begins with
MORE = 500  # rows that it may add in a round
ROUNDS = 100
TOLERANCE = 1e-7  # of margins whose mean is 1


def separation(design: Design, sums: Array, scale: Array) -> Array | None:
    """A direction that separates the classes, (classes − 1, size), or None where there is none.

    `sums` are Σ w·t·φ of the classes but the first, and `scale` is a typical size of each feature.
    """
    everyone, weight = design.totals()
    everyone = np.append(everyone, weight) if design.intercept else everyone
    total = (design.classes * sums - everyone) / weight  # all margins of all rows, added up
    chosen = np.unique(np.linspace(0, design.rows - 1, FIRST).astype(np.intp))
    for _ in range(ROUNDS):
        programme = _Programme(design, scale, total)
        for rows, targets in _taken(design, chosen):
            programme.add(rows, targets)
        direction = programme.solve()
        if direction is None:
            return None
        margin = _margins(design, direction)
        bad = np.flatnonzero(margin < -2.0 * TOLERANCE)
        if not len(bad):
            return direction
        chosen = np.union1d(chosen, bad[np.argsort(margin[bad])[:MORE]])
    return None


def _taken(design: Design, chosen: AnyArray) -> Iterator[tuple[Array, AnyArray]]:
    """The features and targets of some rows."""
    begin = 0
    for part in design.parts():
        inside = chosen[(chosen >= begin) & (chosen < begin + part.table.rows)] - begin
        begin += part.table.rows
        used = inside if part.weights is None else inside[part.weights[inside] > 0.0]
        if len(used):
            yield design.with_one(design.local(design.pieces(part.table, used))), part.targets[used]


def _margins(design: Design, direction: Array) -> Array:
    """By how much the score of each row's class is larger than any other; of several such classes, of the least."""

    def work(rows: Any, targets: AnyArray, weights: Array | None) -> Array:
        scores = np.zeros((design.classes, rows.shape[0]))
        scores[1:] = design.scores(rows, direction)
        if targets.ndim == 1:
            place = targets, np.arange(len(targets))
            own = scores[place]
            scores[place] = -np.inf
        else:
            own = np.where(targets.T > 0.0, scores, np.inf).min(axis=0)
        margin = own - scores.max(axis=0)
        return np.asarray(margin if weights is None else np.where(weights > 0.0, margin, np.inf))

    return np.concatenate(design.over_blocks(work, design.size))


class _Programme:
    """The direction of least total weight whose margins are not negative, and 1 on average over all rows."""

    def __init__(self, design: Design, scale: Array, total: Array) -> None:
        self._few, self._size = design.classes - 1, design.size
        self._scale = np.where(scale > 0.0, scale, 1.0)
        self._cost = np.ones(self._size)
        if design.intercept:
            self._cost[-1] = 0.0
        self._total = (total / self._scale).ravel()
        self._margins: list[Array] = []

    def add(self, rows: Array, targets: AnyArray) -> None:
        """Margins of rows, for every pair of a class of theirs and another."""
        rows = rows / self._scale
        for y in range(self._few + 1):
            mine = rows[targets == y] if targets.ndim == 1 else rows[targets[:, y] > 0.0]
            for k in range(self._few + 1):
                if k == y or not len(mine):
                    continue
                block = np.zeros((len(mine), self._few, self._size))
                if y:
                    block[:, y - 1] += mine
                if k:
                    block[:, k - 1] -= mine
                self._margins.append(block.reshape(len(mine), -1))

    def solve(self) -> Array | None:
        matrix = np.concatenate([*self._margins, self._total[None]])
        bounds = np.zeros(len(matrix))
        bounds[-1] = 1.0
        cost = np.tile(self._cost, 2 * self._few)
        found = scipy.optimize.linprog(cost, A_ub=-np.concatenate([matrix, -matrix], axis=1), b_ub=-bounds)
        if not found.success:
            return None
        half = len(cost) // 2
        return np.asarray((found.x[:half] - found.x[half:]).reshape(self._few, self._size) / self._scale)
