"""The histogram family: probabilities of cells, for numbers with a distribution of any shape.

p(x | k) = r_k(cell)·p(cell)·f(x | cell). p(cell) is the probability of the cell in all classes together. The ratio r_k
is averaged over all prunings of a binary tree of the cells, see `histogram_tree`: neighbouring cells in which the
classes do not differ are pooled. f is uniform within a cell. Beyond the first and the last edge, the outer cells have
an exponential tail. Its scale is the width of the outer cell, and its probability given the outer cell is
τ = (N_beyond + ½)/(N_cell + 1), from the counts of all classes; if no row is beyond, both tails together have a
probability of about 1/(n + 1). r_k is the same in an outer cell and its tail, so that every density integrates to one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from likely.errors import InputError, NoDensityError, NoEvidenceError, check_number, listed
from likely.families.base import Columns, Conditionals, Family, LeaveOneOutDensity, by_name
from likely.families.estimation import UNOBSERVED, Estimation, require_maximum
from likely.families.histogram_tree import HistogramTree
from likely.families.independent import IndependentColumns, Mask
from likely.families.parameters import Parameter
from likely.families.supports import FINITE
from likely.numerics.caches import cached_property
from likely.numerics.expressions import Cell, Expression, cell_of, pick, total
from likely.statistics.cell_counts import CellAccumulator, CellCounts, cell_edges, slots_of
from likely.statistics.rounding import subtract_counts
from likely.typing import AnyArray, Array, Codes, EdgesLike, Index

FARTHEST = 1e300  # widths of the outer cell, beyond which the density does not fall any more


class Histogram(Family):
    """Histogram for columns of numbers with a distribution of any shape.

    Columns are independent within a class. The range of a column is divided into cells with about equal numbers of
    rows, and each class has a probability for each cell. These probabilities are averages over all prunings of a binary
    tree of the cells, weighted by the posterior probabilities of the prunings, so that neighbouring cells in which the
    classes do not differ are pooled. Beyond the range of the training rows, the density decreases exponentially.

    Parameters
    ----------
    cells : int, default=64
        Maximum number of cells of a column. A column with at most this many distinct values has one cell for each.
    edges : sequence of float, mapping of column to sequence, or None, default=None
        Increasing edges of the cells, as in `numpy.histogram`: the first and the last one bound the range. A sequence
        applies to all columns, a mapping to columns by name or number. Other columns have edges at midpoints between
        neighbouring values near quantiles of the training rows (of a sample of at most 4,000 rows). They are determined
        by the first `fit` or `partial_fit`.

    See Also
    --------
    Gaussian : Numbers with a symmetric distribution and one mode.
    Categorical : Numbers that denote categories.

    Notes
    -----
    ``estimation="bayes"`` is the posterior predictive described above. "map" uses the most probable pruning instead of
    the average. "mle" uses the relative frequencies of the cells in each class, which are 0 in cells without rows of
    the class.

    Models can be added if their edges are the same: fit all of them with the edges of the first one, as in
    ``families=first.families_``. Leave-one-out removes a row from the counts of its class. The edges, the proportions
    in all classes together and the probabilities of the prunings are those of all rows.

    References
    ----------
    F. M. J. Willems, Y. M. Shtarkov and T. J. Tjalkens (1995), The context-tree weighting method: basic properties,
    IEEE Transactions on Information Theory 41.

    Examples
    --------
    >>> from likely import GenerativeClassifier, Histogram
    >>> X = [[0.1], [0.4], [8.9], [9.3], [4.2], [4.9], [5.1], [5.6]]
    >>> y = ["outside"] * 4 + ["inside"] * 4
    >>> model = GenerativeClassifier({0: Histogram()}, calibration=None).fit(X, y)
    >>> model.predict([[0.3], [5.0], [9.5]])
    array(['outside', 'inside', 'outside'], dtype='<U7')
    """

    _reference: CellCounts | None = None  # what classes have in common follows from these statistics, if there are any

    _learns_options = True

    def __init__(self, cells: int = 64, edges: EdgesLike = None) -> None:
        self.cells = cells
        self.edges = edges

    def check(self, estimation: Estimation) -> None:
        check_number("cells", self.cells, 2, whole=True)
        if isinstance(self.edges, Mapping):
            for column, edges in self.edges.items():
                _checked(edges, f"Histogram(edges={{{column!r}: ...}})")
        elif self.edges is not None:
            _checked(self.edges, "Histogram(edges=...)")

    def describe(self) -> str:
        return f"Histogram of at most {self.cells} cells"

    # -- edges

    def _with_named_columns(self, names: Sequence[str]) -> Histogram:
        """The same family, with the columns in `edges` by name, where they are numbers."""
        if not isinstance(self.edges, Mapping):
            return self
        return Histogram(self.cells, by_name("edges", self.edges, names))

    def _edges_of(self, name: str) -> Any:
        """The edges of a column; None if the training rows determine them."""
        return self.edges.get(name) if isinstance(self.edges, Mapping) else self.edges

    def _lacks_edges(self, names: Sequence[str]) -> bool:
        """Whether the training rows determine the edges of some of these columns."""
        return any(self._edges_of(name) is None for name in names)

    def _with_edges(self, values: Array, weights: Array, low: Array, high: Array, names: Sequence[str]) -> Histogram:
        """The same family with edges of all columns, from a sample (n, d) of the rows and the range of each column.

        Edges are the range, and midpoints between quantiles. A constant column has one edge, and one without values
        has none.
        """
        check_number("cells", self.cells, 2, whole=True)
        if isinstance(self.edges, Mapping) and self.edges and not any(name in self.edges for name in names):
            raise InputError(f"Histogram(edges=...) names {listed(self.edges)}, and the columns are {listed(names)}.")
        found: dict[str, Any] = {}
        for j, name in enumerate(names):
            given = self._edges_of(name)
            if given is not None:
                found[name] = given
            elif not low[j] <= high[j]:
                found[name] = ()
            else:
                seen = np.isfinite(values[:, j]) & (weights > 0.0)
                inner = cell_edges(values[seen, j], weights[seen], int(self.cells))
                found[name] = tuple(np.unique(np.r_[low[j], inner, high[j]]).tolist())
        return Histogram(self.cells, found)

    def _of_column(self, name: str) -> Histogram:
        """The same family with the edges of one column alone."""
        return Histogram(self.cells, self._edges_of(name))

    def _accumulator(self, classes: AnyArray, columns: Columns) -> CellAccumulator:
        known = [self._edges_of(name) for name in columns.names]
        if any(edges is None for edges in known):
            missing = [name for name, edges in zip(columns.names, known, strict=True) if edges is None]
            raise InputError(f"Histogram(edges={self.edges!r}) has no edges of column {listed(missing)}. Pass them.")
        edges = np.full((max((len(each) for each in known), default=0), len(known)), np.inf)
        for j, each in enumerate(known):
            edges[: len(each), j] = each
        return CellAccumulator(classes, edges, lambda rows: FINITE.check(rows, "Histogram"))

    def _statistics_key(self) -> tuple[Any, ...]:
        given = self.edges.items() if isinstance(self.edges, Mapping) else [(None, self.edges)]
        edges = tuple((name, None if each is None else tuple(map(float, each))) for name, each in given)
        return (*super()._statistics_key(), int(self.cells), edges)

    # -- estimates

    def estimate(self, statistics: CellCounts, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        cells = TreeCells(statistics)
        if estimation == Estimation.MLE:
            absent = (statistics.rows == 0) & (cells.n_edges > 1)
            require_maximum(absent, statistics.classes, names, UNOBSERVED)
            total = statistics.slot_weight.sum(axis=2, keepdims=True)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.log(statistics.slot_weight / total)
            shared = np.zeros(statistics.slot_weight.shape[1:])
        else:
            tree, log_fractions = self._common(cells, estimation)
            ratios = cells.of_slots(tree.log_ratios(cells.counts)).transpose(1, 0, 2)
            shared = cells.of_slots(tree.log_proportions()[:, None])[:, 0] + log_fractions
        return HistogramConditionals(
            cells.n_edges > 1,
            np.where(cells.n_edges == 1, statistics.edges[:1].sum(axis=0), 0.0),
            statistics.edges,
            np.ascontiguousarray(ratios.transpose(0, 2, 1)),
            np.ascontiguousarray(shared.T),
        )

    def _common(self, cells: TreeCells, estimation: Estimation) -> tuple[HistogramTree, Array]:
        """What all classes have in common: θ and γ of the tree, and the log-probabilities of the tails."""
        cells = cells if self._reference is None else TreeCells(self._reference)
        tree = HistogramTree.of(cells.counts, cells.n_cells, averaged=estimation == Estimation.BAYES)
        return tree, cells.log_fractions()

    def _with_fixed_prior(self, statistics: CellCounts, estimation: Estimation) -> Histogram:
        family = Histogram(self.cells, self.edges)
        family._reference = statistics
        return family

    def _log_prior(self, statistics: CellCounts, fitted: Conditionals) -> float:
        assert isinstance(fitted, HistogramConditionals)
        cells = TreeCells(statistics)
        masses = cells.folded(fitted.masses.transpose(0, 2, 1))
        return self._common(cells, Estimation.MAP)[0].log_prior(masses)

    def _parameters(
        self, statistics: CellCounts, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        assert isinstance(fitted, HistogramConditionals)
        found = []
        for j in np.flatnonzero(fitted.informative).tolist():
            edges = fitted.edges[np.isfinite(fitted.edges[:, j]), j]
            bounds = [-np.inf, *edges.tolist(), np.inf]
            found += [
                Parameter(names[j], f"probability of {low:g} to {high:g}", fitted.masses[:, slot, j])
                for slot, (low, high) in enumerate(pairwise(bounds))
            ]
        return found

    def _leave_one_out(
        self, statistics: CellCounts, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        assert isinstance(fitted, HistogramConditionals)
        ratios = self._left_out_ratios(statistics, estimation)

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            slots, shared = fitted.look_up(rows)
            result = fitted.sum_ratios(slots) + shared.sum(axis=1)
            held_out = np.where(fitted.ignored(slots), 0.0, ratios(slots, codes, weights) + shared)
            result[codes, np.arange(len(codes))] = held_out.sum(axis=1)
            return result

        return density

    def _held_out_terms(
        self, statistics: CellCounts, rows: AnyArray, codes: Codes, weights: Array, whole: bool
    ) -> Array:
        if whole:
            raise NoDensityError("Histogram does not provide the probabilities of intervals (_held_out_terms)")
        fitted = self.estimate(statistics, Estimation.BAYES, ("",) * rows.shape[1])
        assert isinstance(fitted, HistogramConditionals)
        slots, shared = fitted.look_up(rows)
        terms = self._left_out_ratios(statistics, Estimation.BAYES)(slots, codes, weights) + shared
        return np.where(slots < 0, 0.0, np.where(fitted.informative, terms, -np.inf))

    def _left_out_ratios(self, statistics: CellCounts, estimation: Estimation) -> Any:
        """A function from slots (n, d), codes and weights to the logarithm of the ratio of each class, (n, d)."""
        cells = TreeCells(statistics)
        if estimation != Estimation.MLE:
            tree, _ = self._common(cells, estimation)
            return lambda slots, codes, weights: (
                tree.left_out(cells.counts, cells.of_values(slots).T, codes, np.asarray(weights)).T
            )
        counts, total = statistics.slot_weight, statistics.weight

        def frequencies(slots: Index, codes: Codes, weights: Array) -> Array:
            inside = counts[codes[:, None], np.arange(slots.shape[1]), np.maximum(slots, 0)]
            left = subtract_counts(inside, weights[:, None], total[codes])
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(left > 0.0, np.log(left / (total[codes] - weights[:, None])), -np.inf)

        return frequencies

    def _log_likelihood(self, statistics: CellCounts, fitted: Conditionals, names: Sequence[str]) -> float:
        assert isinstance(fitted, HistogramConditionals)
        counts = statistics.slot_weight.transpose(0, 2, 1)  # (classes, slots, d)
        n_edges, slots = np.isfinite(statistics.edges).sum(axis=0), np.arange(counts.shape[1])[:, None]
        if np.any((counts > 0.0) & ((slots == 0) | (slots == n_edges)) & (n_edges > 1)):
            raise NoEvidenceError("rows of a histogram are beyond its first or last edge, where no distances are kept")
        with np.errstate(invalid="ignore"):
            terms = np.where(counts > 0.0, counts * (fitted.log_ratios + fitted.log_heights), 0.0)
        return float(terms[:, :, fitted.informative].sum())

    def _n_parameters(self, statistics: CellCounts, names: Sequence[str]) -> int:
        n_edges = np.isfinite(statistics.edges).sum(axis=0)
        return len(statistics.classes) * int(np.maximum(n_edges - 2, 0).sum())


def _checked(edges: Any, name: str) -> None:
    """Raise unless these are increasing finite numbers."""
    try:
        values = np.asarray(edges, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full((1, 1), np.nan)
    if values.ndim != 1 or not np.isfinite(values).all() or np.any(np.diff(values) <= 0.0):
        raise InputError(f"{name} must be increasing, finite numbers in a sequence, and not {edges!r}.")


@dataclass(frozen=True, eq=False)
class TreeCells:
    """The cells of columns, each of the outer ones with its tail: slots 0 and 1 are one cell, and the last two."""

    statistics: CellCounts

    @cached_property
    def n_edges(self) -> Index:
        return np.isfinite(self.statistics.edges).sum(axis=0)

    @property
    def n_cells(self) -> Index:
        return np.maximum(self.n_edges - 1, 1)

    def of_values(self, slots: Index) -> Index:
        """The cells of values with these slots (n, d); missing values are beyond the last cell."""
        return np.where(slots < 0, len(self.statistics.edges) + 1, np.clip(slots - 1, 0, self.n_cells - 1))

    @cached_property
    def _of_each_slot(self) -> Index:
        """The cell of each slot, (d, slots)."""
        return np.clip(np.arange(len(self.statistics.edges) + 1) - 1, 0, (self.n_cells - 1)[:, None])

    def of_slots(self, values: Array) -> Array:
        """Numbers of the cells, (d, classes, cells), for each slot, (d, classes, slots)."""
        return np.take_along_axis(values, self._of_each_slot[:, None], axis=2)

    def folded(self, values: Array) -> Array:
        """The sums over the slots of each cell, (d, classes, cells), of numbers (classes, d, slots)."""
        place = self._of_each_slot
        cells = np.zeros((values.shape[1], values.shape[0], max(values.shape[2] - 2, 1)))
        for slot in range(values.shape[2]):
            cells[np.arange(len(cells)), :, place[:, slot]] += values[:, :, slot].T
        return cells

    @cached_property
    def counts(self) -> Array:
        """Weights of the cells, (d, classes, cells)."""
        return self.folded(self.statistics.slot_weight)

    def log_fractions(self) -> Array:
        """Log-probabilities of the slots given their cells, (d, slots): with ½ more of the weight of each slot."""
        smoothed = self.statistics.slot_weight.sum(axis=0) + 0.5
        smoothed[np.arange(smoothed.shape[1]) > self.n_edges[:, None]] = 0.0
        total = np.take_along_axis(self.folded(smoothed[None])[:, 0], self._of_each_slot, axis=1)
        return np.log(np.where(smoothed > 0.0, smoothed / np.maximum(total, 0.5), 1.0))


@dataclass(frozen=True, eq=False)
class HistogramConditionals(IndependentColumns):
    """Histograms with exponential tails."""

    edges: Array  # (edges, d), padded with infinity
    log_ratios: Array  # log r_k of each slot, (classes, slots, d); log-probabilities under maximum likelihood
    log_proportions: Array  # class-free log-probabilities of the slots, (slots, d); 0 under maximum likelihood

    support: ClassVar[Any] = FINITE
    name: ClassVar[str] = "Histogram"

    @property
    def parameters(self) -> tuple[Array, ...]:
        return (self.log_ratios,)

    @property
    def width(self) -> int:
        return 8 * self.dimension + 2 * self.n_classes

    @property
    def masses(self) -> Array:
        """Probabilities of the slots, (classes, slots, d)."""
        return np.exp(self.log_ratios + self.log_proportions)

    @cached_property
    def _half_widths(self) -> Array:
        """Half the width of each slot, (slots, d); that of a tail is its scale."""
        with np.errstate(invalid="ignore"):
            inner = 0.5 * (self.edges[1:] - self.edges[:-1])
        widths = np.ones((len(self.edges) + 1, self.dimension))
        if len(inner):
            slots, n_edges = np.arange(len(widths))[:, None], np.isfinite(self.edges).sum(axis=0)
            place = np.clip(slots - 1, 0, np.maximum(n_edges - 2, 0))
            widths = np.take_along_axis(inner, place, axis=0)
        return np.where(self.informative & np.isfinite(widths), widths, 1.0)

    @cached_property
    def log_heights(self) -> Array:
        """The part of the log-density of each slot that all classes share, (slots, d)."""
        return self.log_proportions - np.log(self._half_widths) - np.log(2.0)

    @cached_property
    def _range(self) -> Array:
        """The first and the last edge, (2, d)."""
        last = np.maximum(np.isfinite(self.edges).sum(axis=0) - 1, 0)
        if not len(self.edges):
            return np.zeros((2, self.dimension))
        return np.stack([self.edges[0], np.take_along_axis(self.edges, last[None], axis=0)[0]])

    def look_up(self, rows: AnyArray) -> tuple[Index, Array]:
        """The slots of values (n, d), −1 where missing, and the part of their log-density that all classes share."""
        self.support.check(rows, self.name)
        slots = slots_of(rows, self.edges)
        return slots, np.where(self.ignored(slots), 0.0, self._shared_terms(rows, slots))

    def ignored(self, slots: Index) -> Mask:
        return np.asarray((slots < 0) | ~self.informative)

    def _shared_terms(self, x: AnyArray, slots: Index) -> Array:
        columns, widths = np.arange(self.dimension), self._half_widths
        found = self.log_heights[slots, columns]
        low, high = self._range
        with np.errstate(over="ignore", invalid="ignore"):
            below, above = (low / 2.0 - x / 2.0) / widths[0], (x / 2.0 - high / 2.0) / widths[-1]
            excess = np.minimum(np.maximum(below, above), FARTHEST)
        return np.asarray(found - np.maximum(excess, 0.0))

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        (ratios,) = parameters
        slots = slots_of(x, self.edges)
        return np.asarray(ratios[slots, np.arange(self.dimension)] + self._shared_terms(x, slots))

    def _class_terms(self, x: Array, ignored: Mask | None, labels: Sequence[int] | None = None) -> Iterator[Array]:
        slots = slots_of(x, self.edges)
        shared, columns = self._shared_terms(x, slots), np.arange(self.dimension)
        silent = ignored if ignored is not None else np.zeros(x.shape, dtype=bool)
        for k in range(self.n_classes) if labels is None else labels:
            yield np.where(silent, 0.0, self.log_ratios[k][slots, columns] + shared)

    def sum_ratios(self, slots: Index) -> Array:
        """Σ log r over the columns, (classes, n)."""
        found = np.zeros((self.n_classes, len(slots)))
        for j in np.flatnonzero(self.informative).tolist():
            table = np.concatenate([self.log_ratios[:, :, j], np.zeros((self.n_classes, 1))], axis=1)
            found += np.take(table, slots[:, j], axis=1)  # a missing value is the last entry
        return found

    def log_density(self, rows: Any) -> Array:
        slots, shared = self.look_up(rows)
        return np.asarray(self.sum_ratios(slots) + shared.sum(axis=1))

    def scores(self, rows: AnyArray) -> Array:
        self.support.check(rows, self.name)
        return self.sum_ratios(slots_of(rows, self.edges))

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        found: list[list[Expression]] = [[] for _ in range(self.n_classes)]
        for j in np.flatnonzero(self.informative).tolist():
            edges = self.edges[np.isfinite(self.edges[:, j]), j]
            slot = cell_of(cells[j].filled(self.support.filler), edges)
            for k, terms in enumerate(found):
                terms.append(cells[j].known(pick(slot, self.log_ratios[k, : len(edges) + 1, j])))
        return [total(terms) for terms in found]

    def means(self) -> Array:
        """Σ p(slot)·centre, where the centre of a tail is one scale beyond the edge."""
        low, width = self._lower_bounds, 2.0 * self._half_widths
        n_edges = np.isfinite(self.edges).sum(axis=0)
        slots = np.arange(len(width))[:, None]
        centre = low + width * np.where(slots == n_edges, 1.0, np.where(slots == 0, 0.0, 0.5))
        used = self.informative & (slots <= n_edges)
        return np.asarray((np.where(used, self.masses, 0.0) * np.where(used, centre, 0.0)).sum(axis=1))

    @cached_property
    def _lower_bounds(self) -> Array:
        """Where each slot begins, (slots, d); that of the lower tail is one scale below the first edge."""
        first = self._range[:1] - 2.0 * self._half_widths[:1]
        return np.concatenate([first, np.where(np.isfinite(self.edges), self.edges, 0.0)])

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        found = np.zeros((n, self.dimension))
        for j in np.flatnonzero(self.informative).tolist():
            last = int(np.isfinite(self.edges[:, j]).sum())
            masses = self.masses[label, : last + 1, j]
            slots = rng.choice(last + 1, size=n, p=masses / masses.sum())
            within, beyond = rng.random(n), rng.exponential(size=n)
            width, low = 2.0 * self._half_widths[slots, j], self._lower_bounds[slots, j]
            x = low + within * width
            x = np.where(slots == 0, self._range[0, j] - beyond * width, x)
            found[:, j] = np.where(slots == last, self._range[1, j] + beyond * width, x)
        return found
