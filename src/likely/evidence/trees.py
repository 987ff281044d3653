"""The view of count trees: class counts in the cells of random trees, smoothed from the root down.

Of the class counts N_v of a node v with total n_v, the probabilities are p_v = (N_v + s·p_parent)/(n_v + s). Those of
a root are the class proportions π_k = (N_k + ½)/(n + ½K).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse

from likely.data.row_hash import scrambled
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.tree_structure import MISSING, STOP, THREADS, TreeStructure, Walk
from likely.evidence.view import CountsView, View
from likely.model.persistence import register
from likely.numerics.block_sizes import TOGETHER
from likely.numerics.caches import cached_property
from likely.numerics.shapes import Shape
from likely.numerics.threads import run
from likely.numerics.ties import first_best
from likely.statistics.rounding import subtract_counts
from likely.typing import AnyArray, Array, Index

STRENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # s, the weight of the parent's probabilities
ROWS_OF_CHOICE = 2000  # that choose the strength, at most
ROWS_OF_BLOCK = 1024  # at most
PAIRS_OF_GROUP = 2**14  # of a row and a tree, counted together
SMALLEST = 1e-300  # probability: its logarithm is finite


@dataclass(frozen=True)
class TreesView(View):
    """Class counts in the leaves of random trees.

    The structure of each tree is grown from a random part of the rows. Counts are those of all rows.
    """

    n_trees: int = 60

    name = "trees"

    def fit(self, rows: TrainingRows, encoding: Encoding, seed: int) -> FittedTrees | None:
        by_name = sorted(np.flatnonzero(encoding.used).tolist(), key=lambda j: encoding.names[j])
        if not by_name or not len(rows):
            return None
        missing = np.where(encoding.used, encoding.n_cells, STOP).astype(np.uint8)
        return FittedTrees.of(rows, missing, np.array(by_name, dtype=np.intp), self.n_trees, seed)


@register
@dataclass(frozen=True, eq=False)
class FittedTrees(CountsView):
    """Trees, and the class counts of all rows in all nodes."""

    structure: Annotated[TreeStructure, Shape("nodes")]
    counts: Annotated[Array, Shape("nodes classes", ">=0")]
    strength: float  # s
    # uint8, the cell of a missing value of each column; STOP where a column is not used
    missing: Annotated[npt.NDArray[np.uint8], Shape("names")]
    columns: Annotated[Index, Shape("used")]  # that trees cut, in the order of their names
    seed: int

    name = TreesView.name
    term_names = ("geometric", "arithmetic")
    term_columns = (None, None)

    @classmethod
    def of(cls, rows: TrainingRows, missing: AnyArray, columns: Index, n_trees: int, seed: int) -> Self:
        """Trees grown from rows, with their counts and the strength with the least leave-one-out log-loss."""
        structure = TreeStructure.grow(rows, _marked(rows.rows.cells, missing, columns), columns, n_trees, seed)
        empty = np.zeros((structure.size, len(rows.classes)))
        view = cls(structure, empty, STRENGTHS[0], missing, columns, seed).counted(rows)
        losses = view._losses(rows)
        return replace(view, strength=STRENGTHS[first_best(np.negative(losses))])

    @cached_property
    def _totals(self) -> Array:
        return self.counts.sum(axis=1)

    @cached_property
    def _probabilities(self) -> Array:
        """The probabilities of the classes in all nodes, (nodes, classes)."""
        found = np.empty_like(self.counts)
        found[: self.structure.n_trees] = self._proportions
        parents = self.structure.parents()
        levels = self.structure.levels.tolist()
        for first, last in pairwise(levels[1:]):
            level = self.counts[first:last] + self.strength * found[parents[first:last]]
            found[first:last] = level / (self._totals[first:last] + self.strength)[:, None]
        return np.maximum(found, SMALLEST, out=found)

    @property
    def _proportions(self) -> Array:
        """π, (classes,)."""
        counts = self.counts[0] + 0.5
        return counts / counts.sum()

    def _in_blocks(self, rows: int, work: Callable[[slice], None]) -> None:
        """Call work for blocks of rows, on threads."""
        entries = self.structure.n_trees * self.counts.shape[1]
        size = max(1, min(ROWS_OF_BLOCK, TOGETHER // entries))
        blocks = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
        run(blocks, work, most=THREADS)

    def _walk(self, cells: AnyArray, trees: Index) -> Walk:
        """A block of rows in some trees; pairs are in the order of the trees."""
        rows = np.tile(np.arange(len(cells)), len(trees))
        return Walk(self.structure, cells, rows, np.repeat(trees, len(cells)))

    def _marked(self, cells: AnyArray) -> AnyArray:
        return _marked(cells, self.missing, self.columns)

    def terms(self, rows: EncodedRows) -> Array:
        n_classes = self.counts.shape[1]
        table, every = self._probabilities, np.arange(self.structure.n_trees)
        found = np.empty((2, n_classes, len(rows)))

        def work(block: slice) -> None:
            leaves = self._walk(self._marked(rows.cells[block]), every).leaves()
            total, total_log = np.zeros((2, block.stop - block.start, n_classes))
            for leaf in leaves.reshape(len(every), -1):
                probabilities = table.take(leaf, axis=0)
                total += probabilities
                total_log += np.log(probabilities, out=probabilities)
            found[0][:, block] = total_log.T
            found[1][:, block] = total.T

        self._in_blocks(len(rows), work)
        found /= self.structure.n_trees
        np.log(found[1], out=found[1])
        found -= np.log(self._proportions)[:, None]
        return found

    def _count(self, rows: TrainingRows) -> Array:
        n_classes, structure = self.counts.shape[1], self.structure
        counts, cells = np.zeros_like(self.counts), self._marked(rows.rows.cells)
        flat = counts.ravel()
        n_groups = min(structure.n_trees, 1 + structure.n_trees * len(rows) // PAIRS_OF_GROUP)
        groups = np.array_split(np.arange(structure.n_trees), n_groups)

        def work(group: Index) -> None:
            entries = self._walk(cells, group).leaves() * n_classes + np.tile(rows.codes, len(group))
            np.add.at(flat, entries, np.tile(rows.weights, len(group)))

        run(groups, work, most=THREADS)  # trees have different nodes: threads add to different entries
        return _with_inner_nodes(structure, counts)

    def _file_fields(self) -> dict[str, Any]:
        """The fields with the counts of leaves that are not 0, of which those of inner nodes are sums."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        leaves = np.where((self.structure.cut == STOP)[:, None], self.counts, 0.0)
        if np.array_equal(_with_inner_nodes(self.structure, leaves.copy()), self.counts):
            places = np.flatnonzero(leaves).astype(np.uint32)
            found["counts"] = (self.counts.shape[1], places, _narrow(leaves.ravel()[places]))
        return found

    @classmethod
    def _of_file(cls, given: dict[str, Any]) -> Self:
        if isinstance(given["counts"], tuple):
            classes, places, values = given["counts"]
            counts = np.zeros((given["structure"].size, classes))
            counts.ravel()[places] = values
            given["counts"] = _with_inner_nodes(given["structure"], counts)
        return cls(**given)

    def _sizes(self) -> dict[str, Any]:
        return {"used": tuple(sorted(self.columns.tolist()))}

    def _valid(self) -> bool:
        return self.strength in STRENGTHS and bool(np.all(self.structure.column < len(self.missing)))

    def without(self, held_out: TrainingRows, remaining: TrainingRows) -> FittedTrees:
        n_trees = (self.structure.n_trees + 1) // 2  # enough to weigh the view, and growing trees takes the most time
        return FittedTrees.of(remaining, self.missing, self.columns, n_trees, self.seed)

    def left_out(self, rows: TrainingRows) -> Array:
        n_classes = self.counts.shape[1]
        found = np.empty((2, n_classes, len(rows)))

        def work(block: slice) -> None:
            paths = self._paths(rows, np.arange(block.start, block.stop))
            probabilities = paths.probabilities(self.strength)
            found[1][:, block] = paths.mean(probabilities).T
            found[0][:, block] = paths.mean(np.log(probabilities, out=probabilities)).T

        self._in_blocks(len(rows), work)
        np.log(found[1], out=found[1])
        proportions = np.repeat(self.counts[0][:, None] + 0.5, len(rows), axis=1)
        proportions[rows.codes, np.arange(len(rows))] = _removed(self.counts[0][rows.codes], rows.held_out) + 0.5
        found -= np.log(proportions / proportions.sum(axis=0))
        return found

    def _paths(self, rows: TrainingRows, some: Index) -> LeftOutPaths:
        """The ways of some rows down the trees that have not seen them; all trees where every one has."""
        unseen = ~self.structure.seen(rows.drawn_by[some])
        unseen[~unseen.any(axis=1)] = True
        place, tree = np.nonzero(unseen)
        walk = Walk(self.structure, self._marked(rows.rows.cells[some]), place, tree)
        nodes = [walk.node]
        for _ in range(self.structure.depth):
            walk.step()
            nodes.append(walk.node)
        begins = np.flatnonzero(np.diff(place, prepend=-1))
        codes, held_out = rows.codes[some][place], rows.held_out[some][place]
        return LeftOutPaths(self.counts, self._totals, np.stack(nodes), codes, held_out, begins)

    def _losses(self, rows: TrainingRows) -> Array:
        """The leave-one-out log-loss of the arithmetic mean over trees with each strength."""
        order = np.argsort(scrambled(rows.drawn_by + np.uint64(self.seed % 2**64)), kind="stable")
        chosen = np.sort(order[:ROWS_OF_CHOICE])
        losses = np.empty((len(STRENGTHS), len(chosen)))

        def work(block: slice) -> None:
            paths = self._paths(rows, chosen[block])
            for i, strength in enumerate(STRENGTHS):
                losses[i, block] = -np.log(paths.mean(paths.class_probability(strength)))

        self._in_blocks(len(chosen), work)
        return losses @ rows.weights[chosen]

    def contributions(self, rows: EncodedRows, weights: Array) -> Array:
        found = np.zeros((len(rows), self.counts.shape[1], len(self.missing)))

        def work(block: slice) -> None:
            found[block] = self._contributions(rows.cells[block], weights)

        self._in_blocks(len(rows), work)
        return found

    def _contributions(self, cells: AnyArray, weights: Array) -> Array:
        """The contributions of a block of rows: what each cut changes belongs to the column that is cut."""
        n_trees, (n, n_columns) = self.structure.n_trees, cells.shape
        found = np.zeros((n * n_columns, self.counts.shape[1]))
        walk = self._walk(self._marked(cells), np.arange(n_trees))
        row = np.tile(np.arange(n), n_trees)
        before = self._probabilities[walk.node]
        for _ in range(self.structure.depth):
            column = self.structure.column[walk.node]
            walk.step()
            after = self._probabilities[walk.node]
            mean_before, mean_after = (each.reshape(n_trees, n, -1).mean(axis=0) for each in (before, after))
            change = weights[0] * (np.log(after) - np.log(before))
            change += weights[1] * (after - before) * _log_slope(mean_before, mean_after)[row]
            pairs = np.arange(len(row))
            to_column = scipy.sparse.csr_array(
                (np.full(len(row), 1.0 / n_trees), (row * n_columns + column, pairs)), shape=(len(found), len(row))
            )
            found += to_column @ change
            before = after
        return found.reshape(n, n_columns, -1).transpose(0, 2, 1)


@dataclass(frozen=True, eq=False)
class LeftOutPaths:
    """The nodes of pairs of a row and a tree at all depths, and what leave-one-out removes from their counts.

    A pair that stays at a node has it several times. All probabilities are linear in the counts of the nodes:
    p = Σ_v c_v (N_v − h·1[k = y]), where c_v is 1/(n_v − h + s), times s/(n_u − h + s) for each node u below v.
    """

    counts: Array  # (nodes, classes)
    totals: Array  # (nodes,)
    nodes: Index  # (depth + 1, pairs)
    codes: AnyArray  # (pairs,), the class
    held_out: Array  # (pairs,), h
    begins: Index  # the first pair of each row

    def mean(self, values: Array) -> Array:
        """The means over the trees of each row, of values of pairs."""
        sizes = np.diff(self.begins, append=len(values))
        sums = np.add.reduceat(values, self.begins, axis=0)
        return sums / (sizes if values.ndim == 1 else sizes[:, None])

    def class_probability(self, strength: float) -> Array:
        """The probability of the class of each pair at the last node, (pairs,)."""
        n_classes = self.counts.shape[1]
        found = (self._class_counts[0] + 0.5) / (self._remaining[0] + 0.5 * n_classes)
        for depth in range(1, len(self.nodes)):
            level = self._class_counts[depth] + strength * found
            level /= self._remaining[depth] + strength
            found = np.where(self._moved[depth - 1], level, found)
        return np.maximum(found, SMALLEST)

    def probabilities(self, strength: float) -> Array:
        """The probabilities of all classes at the last node, (pairs, classes)."""
        n_pairs, n_classes = self.nodes.shape[1], self.counts.shape[1]
        coefficients = np.zeros((n_pairs, len(self.nodes)))
        below = np.ones(n_pairs)
        for depth in range(len(self.nodes) - 1, 0, -1):
            moved = self._moved[depth - 1]
            step = np.where(moved, below / (self._remaining[depth] + strength), 0.0)
            coefficients[:, depth] = step
            below = np.where(moved, strength * step, below)
        coefficients[:, 0] = below / (self._remaining[0] + 0.5 * n_classes)
        ends = np.arange(0, coefficients.size + 1, len(self.nodes))
        matrix = scipy.sparse.csr_array(
            (coefficients.ravel(), self.nodes.T.ravel(), ends), shape=(n_pairs, len(self.counts))
        )
        found = matrix @ self.counts
        found += 0.5 * coefficients[:, :1]
        found[np.arange(n_pairs), self.codes] = self.class_probability(strength)  # without a difference of large sums
        return np.maximum(found, SMALLEST, out=found)

    @cached_property
    def _class_counts(self) -> Array:
        """The counts of the class of each pair without the held-out weight, (depth + 1, pairs)."""
        return _removed(self.counts[self.nodes, self.codes], self.held_out)

    @cached_property
    def _remaining(self) -> Array:
        """The counts of all classes without the held-out weight, (depth + 1, pairs)."""
        return _removed(self.totals[self.nodes], self.held_out)

    @cached_property
    def _moved(self) -> AnyArray:
        """Whether a pair goes down from each depth to the next, (depth, pairs)."""
        return self.nodes[1:] != self.nodes[:-1]


def _marked(cells: AnyArray, missing: AnyArray, columns: Index) -> AnyArray:
    """Cells with MISSING for missing values, and with STOP in rows that have no value in the columns."""
    absent = cells == missing
    if not absent.any():
        return cells
    marked = np.where(absent, np.uint8(MISSING), cells)
    marked[absent[:, columns].all(axis=1)] = STOP
    return marked


def _removed(counts: Array, held_out: Array) -> Array:
    return np.maximum(subtract_counts(counts, held_out), 0.0)


def _log_slope(before: Array, after: Array) -> Array:
    """(log after − log before)/(after − before) of positive numbers; 1/before where they are equal."""
    change = (after - before) / before
    near = np.abs(change) < 0.5
    safe = np.where(near & (change != 0.0), change, 1.0)
    slope = np.where(change == 0.0, 1.0, np.log1p(safe) / safe)
    far = (np.log(after) - np.log(before)) / np.where(near, 1.0, change)
    return np.where(near, slope, far) / before


def _with_inner_nodes(structure: TreeStructure, counts: Array) -> Array:
    """Counts of leaves, (nodes, classes), with those of inner nodes, which are 0 before: the sums of their children."""
    parents, levels = structure.parents(), structure.levels.tolist()
    for last, first in pairwise(levels[:0:-1]):
        siblings = counts[first:last].reshape(-1, 2, counts.shape[1])
        counts[parents[first:last:2]] += siblings.sum(axis=1)
    return counts


def _narrow(values: Array) -> AnyArray:
    """The same numbers in the smallest type of whole numbers that holds them; others as they are."""
    largest = float(values.max(initial=0.0))
    fitting = [kind for kind in (np.uint8, np.uint16, np.uint32) if largest <= np.iinfo(kind).max]
    return values.astype(fitting[0]) if fitting and bool(np.all(values == np.floor(values))) else values
