"""Assignment of groups of rows to folds: a group is in one fold, and the folds have similar class proportions."""

from __future__ import annotations

import numpy as np

from likely.data.row_hash import scrambled
from likely.typing import AnyArray, Array


def assign_groups(
    groups: AnyArray, codes: AnyArray, shares: Array, rng: np.random.RandomState | np.random.Generator
) -> AnyArray:
    """The fold of each row, where the folds have these shares of the rows of every class.

    Groups with the same number of rows of each class are assigned together, those with the most rows first: as many to
    every fold as bring all to the same level, and the others to the fold that has the least of its share. Which groups
    a fold has is random.
    """
    number = np.unique(groups, return_inverse=True)[1]
    kinds, sizes, kind_of = _kinds(number, codes)
    totals = np.bincount(codes, minlength=int(codes.max()) + 1).astype(np.float64)
    filled = np.zeros((len(shares), len(totals)))  # rows of each class in each fold
    fold = np.empty(len(kind_of), dtype=np.intp)
    for i in np.argsort(-sizes, kind="stable").tolist():
        members, (classes, counts) = np.flatnonzero(kind_of == i), kinds[i]
        level = filled[:, classes] @ (counts / totals[classes]) / counts.sum()
        level = (level + filled.sum(axis=1) / (2.0 * len(codes) ** 2)) / shares
        step = float(counts @ (counts / totals[classes])) / float(counts.sum()) / shares
        taken = _numbers(level, step, shares, len(members))
        mine = np.repeat(np.arange(len(shares)), taken)
        rng.shuffle(mine)
        fold[members] = mine
        filled[:, classes] += taken[:, None] * counts
    return np.asarray(fold[number])


def _kinds(number: AnyArray, codes: AnyArray) -> tuple[list[tuple[AnyArray, AnyArray]], AnyArray, AnyArray]:
    """Kinds of groups, as classes and numbers of rows of each; their sizes; and the kind of each group."""
    pairs, counts = np.unique(number.astype(np.int64) * (int(codes.max()) + 1) + codes, return_counts=True)
    of, classes = np.divmod(pairs, int(codes.max()) + 1)
    begins = np.flatnonzero(np.diff(of, prepend=-1))
    marks = scrambled((classes.astype(np.uint64) << np.uint64(32)) + counts.astype(np.uint64))
    _, first, kind_of = np.unique(np.add.reduceat(marks, begins), return_index=True, return_inverse=True)
    ends = np.append(begins[1:], len(counts))
    kinds = [(classes[begins[i] : ends[i]], counts[begins[i] : ends[i]]) for i in first.tolist()]
    return kinds, np.array([rows.sum() for _, rows in kinds]), kind_of


def _numbers(level: Array, step: Array, shares: Array, count: int) -> AnyArray:
    """How many of `count` groups each fold takes: the next one goes to the fold with the lowest level after it."""
    spread = int((level.max() - level.min()) / step.min()) + 1
    taken = np.floor(max(count - spread * len(shares), 0) * shares / shares.sum()).astype(np.intp)
    level = level + taken * step
    for _ in range(count - int(taken.sum())):
        i = int(np.argmin(level + step))
        level[i] += step[i]
        taken[i] += 1
    return taken
