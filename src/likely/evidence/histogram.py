"""The histogram view: each column by its cells or categories, averaged over all prunings of a binary tree of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import CountsView, View
from likely.families.histogram_tree import HistogramTree
from likely.model.persistence import register
from likely.numerics.caches import cached_property
from likely.numerics.shapes import Shape
from likely.typing import AnyArray, Array, Index


class HistogramView(View):
    """One term for each column: log p(cell | class) − log p(cell), see `likely.families.histogram_tree`."""

    name = "histogram"

    def fit(self, rows: TrainingRows, encoding: Encoding, seed: int) -> FittedHistograms | None:
        columns = np.flatnonzero(encoding.n_cells > 1)
        if not len(columns):
            return None
        return FittedHistograms(columns, encoding.n_cells[columns], np.zeros((0, 0, 0))).counted(rows)


@register
@dataclass(frozen=True, eq=False)
class FittedHistograms(CountsView):
    """Counts of the cells of each column; splits and class-free proportions of the trees are derived from them."""

    places: Annotated[Index, Shape("=varying")]  # columns of the terms
    n_cells: Annotated[Index, Shape("=cells")]  # of each term
    counts: Annotated[Array, Shape("varying classes most", ">=0")]

    name = HistogramView.name

    @property
    def term_columns(self) -> tuple[int | None, ...]:
        return tuple(self.places.tolist())

    @cached_property
    def _tree(self) -> HistogramTree:
        return HistogramTree.of(self.counts, self.n_cells)

    @cached_property
    def _table(self) -> Array:
        """Terms of all cells, (terms, classes, cells + 1), with 0 for missing values."""
        return np.pad(self._tree.log_ratios(self.counts), ((0, 0), (0, 0), (0, 1)))

    def terms(self, rows: EncodedRows) -> Array:
        cells = self._cells(rows)
        found = np.empty((len(cells), self.counts.shape[1], len(rows)))
        for table, where, out in zip(self._table, cells, found, strict=True):
            for values, part in zip(table, out, strict=True):
                np.take(values, where, out=part, mode="clip")
        return found

    def left_out(self, rows: TrainingRows) -> Array:
        found = self.terms(rows.rows)
        corrected = self._tree.left_out(self.counts, self._cells(rows.rows), rows.codes, rows.held_out)
        found[:, rows.codes, np.arange(len(rows))] = corrected
        return found

    def _count(self, rows: TrainingRows) -> Array:
        """Weights of the classes in the cells of each column, (columns, classes, cells)."""
        classes, most = len(rows.classes), int(self.n_cells.max())
        found = np.empty((len(self.places), classes, most))
        code = rows.codes.astype(np.intp) * (most + 1)
        for i, (j, missing) in enumerate(zip(self.places.tolist(), self.n_cells.tolist(), strict=True)):
            cell = rows.rows.cells[:, j].astype(np.intp)
            cell[cell >= missing] = most
            total = np.bincount(code + cell, rows.weights, minlength=classes * (most + 1))
            found[i] = total.reshape(classes, most + 1)[:, :most]
        return found

    def _sizes(self) -> dict[str, Any]:
        return {"most": int(self.n_cells.max(initial=0))}

    def _cells(self, rows: EncodedRows) -> AnyArray:
        """The cells of the columns of the terms, (terms, n)."""
        return rows.cells[:, self.places].T.astype(np.intp, order="C")
