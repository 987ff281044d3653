"""Trees over the cells of columns: grown by scikit-learn on random subsets of the rows, kept as flat arrays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import config_context

from likely.data.row_hash import scrambled
from likely.evidence.rows import TrainingRows
from likely.model.persistence import register
from likely.numerics.caches import cached_property
from likely.numerics.shapes import Shape
from likely.numerics.threads import run
from likely.typing import AnyArray, Index

FRACTION = 0.6  # of the rows, from which each tree is grown
MOST_ROWS = 20_000  # from which each tree is grown
DEPTH = 14  # of a tree, at most
ENTRIES = 2**24  # of the table of counts, nodes × classes: trees are kept smaller where there are very many classes
THREADS = 2
STOP = 255  # the cell of a row without any value: it stays at the root
MISSING = 254  # the cell of a missing value, above all others
LEAF = -1  # in scikit-learn's arrays of children


@register
@dataclass(frozen=True, eq=False)
class TreeStructure:
    """Binary trees over cells in flat arrays.

    Nodes are numbered by depth: first the roots of all trees, then their children, and so on. The right child follows
    the left one. A tree has seen the rows whose key, scrambled with the tree's salt, is below the tree's limit.

    A missing value goes right, but only where the tree has seen missing values. Where it has not, their place among
    the cells has no meaning, and the row stays at the node.
    """

    levels: Annotated[Index, Shape("levels", "rising")]  # the first node of each depth, and the number of all nodes
    left: Annotated[npt.NDArray[np.int32], Shape("nodes")]  # the left child; the node itself at a leaf
    column: Annotated[npt.NDArray[np.int32], Shape("nodes", ">=0")]  # the column that is cut; 0 at a leaf
    cut: Annotated[npt.NDArray[np.uint8], Shape("nodes")]  # the last cell that goes left; STOP at a leaf
    # whether the tree has seen missing values of the column at the node
    with_missing: Annotated[npt.NDArray[np.bool_], Shape("nodes")]
    salts: Annotated[npt.NDArray[np.uint64], Shape("trees")]  # of each tree
    limits: Annotated[npt.NDArray[np.uint64], Shape("trees")]  # of each tree

    @classmethod
    def grow(cls, rows: TrainingRows, cells: AnyArray, columns: Index, n_trees: int, seed: int) -> Self:
        """Trees that cut some columns of cells, in which MISSING and STOP are marked.

        The columns are offered to scikit-learn in the given order, on which its random choices depend.
        """
        from sklearn.tree import DecisionTreeClassifier  # deferred: `import likely` stays light

        salts = tree_salts(n_trees, seed)
        limits = np.empty_like(salts)
        values, classes = cells[:, columns].astype(np.float32), rows.class_ranks[rows.codes]
        weights = np.where(values[:, 0] < STOP, rows.weights / rows.weights.max(initial=0.0), 0.0)
        options = _options(min(len(rows), MOST_ROWS), n_trees * len(rows.classes))

        def work(tree: int) -> Any:
            ranks = scrambled(rows.drawn_by + salts[tree])
            limits[tree] = _limit(ranks)
            sample_weight = np.where(ranks < limits[tree], weights, 0.0)
            if not sample_weight.any():
                return None
            grower = DecisionTreeClassifier(**options, random_state=int(salts[tree] >> np.uint64(33)))
            with config_context(skip_parameter_validation=True):  # a fifth of the time if rows are few
                return grower.fit(values, classes, sample_weight=sample_weight, check_input=False).tree_

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The number of unique classes is greater than", UserWarning)
            grown = run(range(n_trees), work, most=THREADS)
        levels, left, column, cut = _flat(grown)
        column = np.where(cut < STOP, columns[column], 0).astype(np.int32)
        every = cls(levels, left, column, cut, np.ones(len(left), dtype=np.bool_), salts, limits)
        return replace(every, with_missing=every._seen_missing(rows.drawn_by, cells))

    def _seen_missing(self, keys: AnyArray, cells: AnyArray) -> AnyArray:
        """Whether a row that the tree has seen has a missing value of the column that is cut, for each node."""
        found = np.zeros(self.size, dtype=np.bool_)
        some = np.flatnonzero((cells == MISSING).any(axis=1))
        if not len(some):
            return found
        cells, seen = cells[some], self.seen(keys[some])

        def work(tree: int) -> None:
            rows = np.flatnonzero(seen[:, tree])
            walk = Walk(self, cells, rows, np.full(len(rows), tree))
            for _ in range(self.depth):
                node = walk.node
                found[node[cells[rows, self.column[node]] == MISSING]] = True
                walk.step()

        run(range(self.n_trees), work, most=THREADS)
        return found & (self.cut < STOP)

    @property
    def n_trees(self) -> int:
        return len(self.salts)

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.left)

    @property
    def depth(self) -> int:
        return len(self.levels) - 2

    def parents(self) -> Index:
        """The parent of each node; a root has itself."""
        parents = np.arange(self.size)
        inner = np.flatnonzero(self.cut < STOP)
        parents[self.left[inner]] = inner
        parents[self.left[inner] + 1] = inner
        return parents

    def seen(self, keys: AnyArray) -> AnyArray:
        """Whether a tree was grown from rows with these keys, (rows, trees)."""
        return scrambled(keys[:, None] + self.salts) < self.limits

    def _valid(self) -> bool:
        """Whether every node but the roots has one parent, on the level above."""
        size, levels = self.size, self.levels
        if not (len(levels) > 1 and levels[0] == 0 and levels[1] == self.n_trees > 0 and levels[-1] == size):
            return False
        inner = np.flatnonzero(self.cut < STOP)
        below = np.sort(np.concatenate([self.left[inner], self.left[inner] + 1]))
        deeper = np.searchsorted(levels, self.left[inner], side="right")
        return (
            np.array_equal(below, np.arange(self.n_trees, size))
            and np.array_equal(deeper, np.searchsorted(levels, inner, side="right") + 1)
            and np.array_equal(np.delete(self.left, inner), np.delete(np.arange(size), inner))
        )

    @cached_property
    def packed(self) -> AnyArray:
        """Child, way of missing values, column and cut of each node in one integer: a walk looks up one array."""
        child = (self.left.astype(np.int64) << 1) | self.with_missing
        return (child << 32) | (self.column.astype(np.int64) << 8) | self.cut


class Walk:
    """Pairs of a row and a tree, which go down the tree one level at each step.

    Cells are one block of rows, in which MISSING and STOP are marked.
    """

    def __init__(self, structure: TreeStructure, cells: AnyArray, rows: Index, trees: Index) -> None:
        self.node: Index = np.array(trees, dtype=np.intp)
        self._packed, self._depth = structure.packed, structure.depth
        self._cells = np.ascontiguousarray(cells).ravel()
        self._start = rows * cells.shape[1]
        self._missing = bool((self._cells >= MISSING).any())

    def leaves(self) -> Index:
        """The leaves that all pairs reach."""
        for _ in range(self._depth):
            self.step()
        return self.node

    def step(self) -> None:
        packed = self._packed.take(self.node)
        place = (packed >> 8) & 0xFFFFFF
        place += self._start
        cell = self._cells.take(place)
        child = packed >> 33
        child += cell > packed.astype(np.uint8)
        if self._missing:
            goes = (packed >> 32) & 1
            np.copyto(child, self.node, where=cell >= MISSING + goes)
        self.node = child


def tree_salts(n_trees: int, seed: int) -> AnyArray:
    """A pseudo-random number for each tree."""
    start = scrambled(np.array([seed % 2**64], dtype=np.uint64) + np.uint64(1))
    return scrambled(start + np.arange(n_trees, dtype=np.uint64))


def _limit(ranks: AnyArray) -> Any:
    """The limit below which the ranks of the rows of a tree are: a fraction of the rows, and not too many."""
    limit = np.uint64(int(FRACTION * 2.0**64))
    if np.count_nonzero(ranks < limit) > MOST_ROWS:
        limit = np.partition(ranks, MOST_ROWS)[MOST_ROWS]
    return limit


def _options(rows: int, tables: int) -> dict[str, Any]:
    """Options of scikit-learn's trees for `rows` rows, with `tables` entries of the counts for each node of a tree."""
    options: dict[str, Any] = {"criterion": "entropy", "max_features": "sqrt", "max_depth": DEPTH}
    most_nodes = min(2 * rows, 2 ** (DEPTH + 1))
    if most_nodes * tables > ENTRIES:
        options["max_leaf_nodes"] = max(2, ENTRIES // (2 * tables))
    return options


def _flat(trees: list[Any]) -> tuple[Index, AnyArray, AnyArray, AnyArray]:
    """Levels, left children, columns and cuts of scikit-learn's trees together; None is a tree without a cut."""
    sizes = [1 if tree is None else tree.node_count for tree in trees]
    roots = np.cumsum([0, *sizes[:-1]])
    left, right, column = (np.full(sum(sizes), LEAF, dtype=np.intp) for _ in range(3))
    cut = np.full(sum(sizes), float(STOP))
    for root, size, tree in zip(roots.tolist(), sizes, trees, strict=True):
        if tree is not None:
            part = slice(root, root + size)
            inner = tree.children_left != LEAF
            left[part] = np.where(inner, tree.children_left + root, LEAF)
            right[part] = tree.children_right + root
            column[part] = np.where(inner, tree.feature, 0)
            cut[part] = np.where(inner, np.floor(tree.threshold), STOP)  # cells are whole numbers
    order, frontier = [], roots
    while len(frontier):
        order.append(frontier)
        inner = frontier[left[frontier] != LEAF]
        frontier = np.stack([left[inner], right[inner]], axis=1).ravel()
    levels = np.cumsum([0, *(len(level) for level in order)])
    nodes = np.concatenate(order)
    number = np.empty_like(nodes)
    number[nodes] = np.arange(len(nodes))
    first = np.where(left[nodes] == LEAF, number[nodes], number[left[nodes]])
    return levels, first.astype(np.int32), np.maximum(column[nodes], 0), cut[nodes].astype(np.uint8)
