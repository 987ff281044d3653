"""The view of pairs: averaged one-dependence of a few categories or bins of each column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from likely.evidence.encoding import CELLS, Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import CountsView, View
from likely.families.pair_tables import PairEstimates, contributions, count_pairs, log_densities, offsets_of, slots_of
from likely.model.persistence import register
from likely.numerics.caches import cached_property
from likely.numerics.shapes import Shape
from likely.numerics.ties import tie_ranks
from likely.typing import AnyArray, Array, Index

BINS = 8  # of a column, at most
COLUMNS = 64  # the most informative ones, at most
SMOOTHING = 2.0  # pseudo-observations at each level
LARGEST_TABLE = 2**23  # pairs of slots in all classes
MOST_LOOKUPS = 2**29  # of all rows, for all classes and pairs of columns


class PairsView(View):
    """Options of the view of pairs: there are none."""

    name = "pairs"

    def fit(self, rows: TrainingRows, encoding: Encoding, seed: int) -> FittedPairs | None:
        bins = merged_cells(rows, encoding)
        n, n_classes = len(rows), len(rows.classes)
        most = min(math.isqrt(MOST_LOOKUPS // (n * n_classes)), math.isqrt(LARGEST_TABLE // n_classes) // (BINS + 1))
        columns = informative_columns(rows, bins, encoding.names, min(COLUMNS, max(most, 2)))
        if len(columns) < 2:  # a single column has no pairs
            return None
        return FittedPairs.of(rows, encoding.names, bins, columns)


def merged_cells(rows: TrainingRows, encoding: Encoding) -> AnyArray:
    """The bin of each cell of each column, (columns, cells); −1 for missing values.

    Neighbouring cells of a number are merged into bins of about equal weight, and the least frequent categories into
    one.
    """
    sizes, cells = encoding.n_cells, np.arange(CELLS + 1)
    bins = np.where(cells < sizes[:, None], np.minimum(cells, BINS - 1), -1).astype(np.int8)
    for j in encoding.numeric[sizes[encoding.numeric] > BINS].tolist():
        weight = np.bincount(rows.rows.cells[:, j], rows.weights, minlength=CELLS + 1)
        bins[j, : sizes[j]] = _even_bins(weight[: sizes[j]].tolist())
    return bins


def _even_bins(weight: Sequence[float]) -> AnyArray:
    """A bin for each cell: neighbouring cells in at most `BINS` bins of about equal weight.

    A bin ends where its weight is closest to the remaining weight divided by the number of remaining bins, so that a
    heavy cell leaves as many bins as possible to the others.
    """
    found, current, filled = np.zeros(len(weight), dtype=np.int8), 0, 0.0
    remaining = sum(weight)
    for cell, w in enumerate(weight):
        target = remaining / (BINS - current)
        if current < BINS - 1 and filled > 0.0 and filled + 0.5 * w > target:
            current, remaining, filled = current + 1, remaining - filled, 0.0
        found[cell], filled = current, filled + w
    return found


def informative_columns(rows: TrainingRows, bins: AnyArray, names: tuple[str, ...], most: int) -> Index:
    """The columns with the largest mutual information of bin and class, sorted; among equal ones by name."""
    information = np.zeros(len(bins))
    for j in np.flatnonzero(bins.max(axis=1) > 0).tolist():
        place = rows.codes.astype(np.intp) * (BINS + 1) + (bins[j, rows.rows.cells[:, j]] + 1)
        counts = np.bincount(place, rows.weights, minlength=len(rows.classes) * (BINS + 1))
        table = np.asarray(counts, dtype=np.float64).reshape(-1, BINS + 1)[:, 1:]
        if np.count_nonzero(table.any(axis=0)) > 1:
            information[j] = 1.0 + _mutual_information(table, float(rows.weights.sum()))
    ranks = tie_ranks(information)
    order = sorted(np.flatnonzero(information).tolist(), key=lambda j: (ranks[j], names[j]))
    return np.array(sorted(order[:most]), dtype=np.intp)


def _mutual_information(table: Array, total: float) -> float:
    """Σ N_kb/N · log(N_kb·n/(N_k·N_b)) of the counts of observed values, n in all, among N rows."""
    seen = table > 0.0
    expected = table.sum(axis=1, keepdims=True) * (table.sum(axis=0) / table.sum())
    return float((table[seen] * np.log(table[seen] / expected[seen])).sum() / total)


@register
@dataclass(frozen=True, eq=False)
class FittedPairs(CountsView):
    """The view of pairs of training rows. Statistics are the counts of pairs of bins."""

    column_names: Annotated[tuple[str, ...], Shape("=names")]
    # (columns of the table, cells)
    bins: Annotated[npt.NDArray[np.int8], Shape(f"names {CELLS + 1}", ">=-1", f"<{BINS}")]
    columns: Annotated[Index, Shape("columns", ">=0", "<names", "distinct")]  # those that are used
    counts: Annotated[Array, Shape("classes slots slots", ">=0")]

    name = PairsView.name
    term_names = ("pairs",)
    term_columns = (None,)

    @classmethod
    def of(cls, rows: TrainingRows, names: tuple[str, ...], bins: AnyArray, columns: Index) -> Self:
        return cls(names, bins, columns, np.zeros((0, 0, 0))).counted(rows)

    @cached_property
    def _offsets(self) -> Index:
        return offsets_of((self.bins[self.columns].max(axis=1) + 1).tolist())

    def _slots(self, rows: EncodedRows) -> AnyArray:
        return slots_of(self.bins[self.columns, rows.cells[:, self.columns]], self._offsets)

    def _count(self, rows: TrainingRows) -> Array:
        return count_pairs(self._slots(rows.rows), rows.codes, len(rows.classes), self._offsets, rows.weights)

    @cached_property
    def _estimates(self) -> PairEstimates:
        return PairEstimates.of(self.counts, self._offsets, SMOOTHING)

    @cached_property
    def _logs(self) -> Array:
        return self._estimates.logs()

    def terms(self, rows: EncodedRows) -> Array:
        return log_densities(self._slots(rows), self._logs, self._offsets)[None]

    def left_out(self, rows: TrainingRows) -> Array:
        slots = self._slots(rows.rows)
        terms = log_densities(slots, self._logs, self._offsets)
        terms[rows.codes, np.arange(len(rows))] = self._estimates.left_out(slots, rows.codes, rows.held_out)
        return terms[None]

    def without(self, held_out: TrainingRows, remaining: TrainingRows) -> FittedPairs:
        """The view of the remaining rows, with the same bins.

        Columns that were selected by their information on the classes are selected again: those of all rows have seen
        the classes of `held_out`.
        """
        columns = informative_columns(remaining, self.bins, self.column_names, len(self.columns))
        if np.isin(columns, self.columns).all():
            return self.removed(held_out)
        return FittedPairs.of(remaining, self.column_names, self.bins, columns)

    def _sizes(self) -> dict[str, Any]:
        return {"slots": int(self._offsets[-1])}

    def contributions(self, rows: EncodedRows, weights: Array) -> Array:
        found = np.zeros((len(rows), len(self.counts), len(self.column_names)))
        found[:, :, self.columns] = weights[0] * contributions(self._slots(rows), self._logs, self._offsets)
        return found
