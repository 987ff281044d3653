"""Perfect separation: where classes are separated by a hyperplane, the likelihood has no maximum.

A direction V separates if no row has a larger score in another class than in its own class, and some row has a smaller
one: the likelihood increases along it without bound (Albert and Anderson 1984). The sum of the margins of all rows is
then positive. A linear program finds a separating direction with few columns. It constrains the margins of a subset of
the rows to be nonnegative, and adds the rows that violate its solution, until there are none. If the subset has no
separating direction, the whole table has none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

from likely.discriminative.design import Design
from likely.discriminative.newton import Minimum, Problem, half_bound
from likely.errors import SeparationError
from likely.numerics.special import TINY
from likely.typing import AnyArray, Array

FIRST_ROWS = 500  # rows of the first linear program
ADDED_ROWS = 500  # violating rows that are added in a round, at most
ROUNDS = 100
TOLERANCE = 1e-7  # for margins whose mean is 1
FLAT = 1e-7  # curvature relative to its bound below which classes may be separated
CURVED = 1e-2  # curvature relative to its bound above which they cannot be
SCORE_CHANGE = 3.0  # change of the largest score in a test step along the flattest direction


def check_separation(
    problem: Problem, found: Minimum, hessian: Array, names: Sequence[str], labels: list[Any], weight: float
) -> None:
    """Raise where classes are perfectly separated. The linear program is solved only if the Hessian is nearly flat."""
    design = problem.design
    gram = design.gram()
    if found.converged and not _is_flat(problem, found, hessian, gram, weight):
        return
    scale = np.sqrt(np.diagonal(gram))
    direction = separation(design, scale / np.sqrt(weight), weight)
    if direction is None:
        return
    kept = [*names] if design.columns is None else [names[j] for j in design.columns.tolist()]
    size = np.abs(direction[:, : design.width]) * scale[: design.width]
    used = size > 1e-6 * size.max(initial=0.0)
    by_class = {
        label: {kept[j]: float(direction[k, j]) for j in np.flatnonzero(used[k])}
        for k, label in enumerate(labels[1:])
        if used[k].any()
    }
    columns = [name for name, on in zip(kept, used.any(axis=0), strict=True) if on]
    raise SeparationError(_separation_message(columns), by_class)


def _separation_message(columns: list[str]) -> str:
    """What separates the classes, and what to do about it."""
    if not columns:
        what, drop = "The intercept separates", ""
    elif len(columns) == 1:
        what, drop = f"{columns[0]!r} separates", " or drop the column"
    else:
        shown = [repr(name) for name in columns[:8]]
        more = [f"{len(columns) - 8} more columns"] if len(columns) > 8 else []
        *first, last = [*shown, *more]
        what, drop = f"Columns {', '.join(first)} and {last} separate", " or drop columns"
    return (
        f"{what} the classes perfectly, so the maximum-likelihood coefficients are infinite. Set penalty > 0{drop}; "
        "the separating direction is in `error.direction`."
    )


def _is_flat(problem: Problem, found: Minimum, hessian: Array, gram: Array, weight: float) -> bool:
    """Whether the objective may decrease without bound along the direction of least curvature relative to its bound."""
    few, size = found.B.shape
    bound = np.kron(half_bound(few), gram)
    try:
        matrix = hessian.reshape(few * size, few * size)
        least, vectors = scipy.linalg.eigh(matrix, bound, subset_by_index=[0, 0])
    except np.linalg.LinAlgError:
        return True
    if least[0] > CURVED:
        return False
    if least[0] <= FLAT:
        return True
    step = vectors[:, 0].reshape(few, size)
    step *= SCORE_CHANGE / max(_largest_score(problem.design, step), TINY)
    most = found.value + problem.rounding(found.B, found.value, weight)
    return any(problem.value_and_gradient(found.B + sign * step)[0] <= most for sign in (1.0, -1.0))


def _largest_score(design: Design, B: Array) -> float:
    """The largest |score| of any row."""
    found = design.over_blocks(lambda rows, _, __: np.abs(design.scores(rows, B)).max(initial=0.0), design.size)
    return float(max(found))


def separation(design: Design, scale: Array, weight: float) -> Array | None:
    """A direction that separates the classes, (classes − 1, size), or None if there is none.

    `scale` is the root mean square of each feature, and `weight` the total weight of the rows.
    """
    sums = design.sums()
    total = (design.classes * sums[1:] - sums.sum(axis=0)) / weight  # sum of all margins of all rows
    unit = np.where(scale > 0.0, scale, 1.0)
    chosen = np.unique(np.linspace(0, design.rows - 1, FIRST_ROWS).astype(np.intp))
    for _ in range(ROUNDS):
        some = _rows_and_targets(design, chosen)
        margins = [_margin_rows(rows / unit, targets, design.classes) for rows, targets in some]
        direction = _least_direction(np.concatenate([*margins, (total / unit).reshape(1, -1)]), design)
        if direction is None:
            return None
        direction /= unit
        margin = _margins(design, direction)
        bad = np.flatnonzero(margin < -2.0 * TOLERANCE)
        if not len(bad):
            return direction
        chosen = np.union1d(chosen, bad[np.argsort(margin[bad])[:ADDED_ROWS]])
    return None


def _rows_and_targets(design: Design, chosen: AnyArray) -> Iterator[tuple[Array, AnyArray]]:
    """The features and targets of some rows."""
    begin = 0
    for part in design.source:
        inside = chosen[(chosen >= begin) & (chosen < begin + part.table.rows)] - begin
        begin += part.table.rows
        used = inside if part.weights is None else inside[part.weights[inside] > 0.0]
        if len(used):
            yield design.with_intercept(design.local(design.pieces(part.table, used))), part.targets[used]


def _margins(design: Design, direction: Array) -> Array:
    """Score of each row's class minus the largest other score; of several such classes, the least."""

    def work(rows: Any, targets: AnyArray, weights: Array | None) -> Array:
        scores = np.zeros((design.classes, rows.shape[0]))
        scores[1:] = design.scores(rows, direction)
        if targets.ndim == 1:
            place = targets, np.arange(len(targets))
            true_class = scores[place]
            scores[place] = -np.inf
        else:
            true_class = np.where(targets.T > 0.0, scores, np.inf).min(axis=0)
        margin = true_class - scores.max(axis=0)
        return np.asarray(margin if weights is None else np.where(weights > 0.0, margin, np.inf))

    return np.concatenate(design.over_blocks(work, design.size))


def _margin_rows(rows: Array, targets: AnyArray, classes: int) -> Array:
    """The margins of rows as linear functions of a direction, for every pair of their class and another class."""
    found = [np.zeros((0, (classes - 1) * rows.shape[1]))]
    for y, k in itertools.permutations(range(classes), 2):
        mine = rows[targets == y] if targets.ndim == 1 else rows[targets[:, y] > 0.0]
        block = np.zeros((len(mine), classes, rows.shape[1]))
        block[:, y] = mine
        block[:, k] = -mine
        found.append(block[:, 1:].reshape(len(mine), found[0].shape[1]))
    return np.concatenate(found)


def _least_direction(margins: Array, design: Design) -> Array | None:
    """The direction of least L1 norm, (classes − 1, size), whose margins are nonnegative, and the last one 1.

    None if there is none. Intercepts do not count in the norm.
    """
    cost = np.ones((design.classes - 1, design.size))
    cost[:, design.width :] = 0.0
    bounds = np.zeros(len(margins))
    bounds[-1] = 1.0
    costs = np.tile(cost.ravel(), 2)  # of the positive and the negative parts
    found = scipy.optimize.linprog(costs, A_ub=-np.concatenate([margins, -margins], axis=1), b_ub=-bounds)
    if not found.success:
        return None
    positive, negative = found.x.reshape(2, *cost.shape)
    return np.asarray(positive - negative)
