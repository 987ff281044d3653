"""The view of single columns: each column by a family of its own, independent within a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from likely.data.table import Table
from likely.evidence.densities import DensityBlock, number_table, summed
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import PartsView, View
from likely.families.categorical import Categorical
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.prior import NormalInverseWishart
from likely.model.persistence import register
from likely.model.specification import Specification
from likely.numerics.shapes import Shape
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array, Index

PRIOR_ROWS = 0.01  # of the mean
PRIOR_DEGREES = 3.0  # of the variance


class ColumnsView(View):
    """Numeric columns by the Student t predictive of a Gaussian, other columns by their categories."""

    name = "columns"

    def fit(self, rows: TrainingRows, encoding: Encoding, seed: int) -> FittedColumns | None:
        blocks = []
        if len(encoding.numeric):
            scale = PRIOR_DEGREES / len(rows.classes) ** 2  # columns are standardised
            prior = NormalInverseWishart(0.0, PRIOR_ROWS, PRIOR_DEGREES, scale)
            table = number_table(rows.rows, encoding.numeric, rows.rows.numbers)
            family = Gaussian("diagonal", prior=prior)
            blocks.append(ColumnBlock(*summed(rows, table, None, family), encoding.numeric, True))
        sizes = np.array([len(words) for words in encoding.vocabularies], dtype=np.intp)
        for size in np.unique(sizes).tolist():  # one pseudo-observation in all, whatever the number of categories
            places = encoding.categorical[sizes == size]
            found = summed(rows, rows.rows.table, tuple(places.tolist()), Categorical(smoothing=1.0 / size))
            blocks.append(ColumnBlock(*found, places, False))
        return FittedColumns(tuple(blocks)) if blocks else None


@register
@dataclass(frozen=True, eq=False)
class ColumnBlock(DensityBlock):
    """Columns of one family, which are independent: one term for each."""

    specification: Specification
    statistics: Annotated[JointStatistics, Shape("classes")]
    places: Annotated[Index, Shape("places")]  # in the table
    is_numeric: bool

    @property
    def term_columns(self) -> tuple[int | None, ...]:
        return tuple(self.places.tolist())

    def table(self, rows: EncodedRows) -> Table:
        return number_table(rows, self.places, rows.numbers) if self.is_numeric else rows.table

    def _values(self, rows: EncodedRows) -> AnyArray:
        """Numbers, or codes of categories, (n, columns)."""
        if self.is_numeric:
            return rows.numbers
        read = rows.table.codes(self.places.tolist(), self.conditionals.vocabularies)
        return np.asarray(read(0, rows.table.rows))

    def terms(self, rows: EncodedRows) -> Array:
        return self._column_terms(self._values(rows))

    def _column_terms(self, values: AnyArray) -> Array:
        return np.ascontiguousarray(self.conditionals.column_log_densities(values).transpose(2, 1, 0))

    def left_out(self, rows: TrainingRows) -> Array:
        values = self._values(rows.rows)
        found = self._column_terms(values)
        part = self.statistics.blocks[0]
        mine = self.plan.family._held_out_terms(part, values, rows.codes, rows.held_out, False).T
        own = rows.codes, np.arange(len(rows))
        mine = np.where(np.isneginf(mine), found[:, *own], mine)  # a constant column is the same without the row
        missing = np.isnan(values) if self.is_numeric else values < 0
        found[:, *own] = np.where(missing.T, 0.0, mine)
        return found


@register
@dataclass(frozen=True, eq=False)
class FittedColumns(PartsView):
    """Densities of single columns."""

    parts: tuple[Annotated[ColumnBlock, Shape("classes")], ...]

    name = ColumnsView.name

    def _sizes(self) -> dict[str, Any]:
        return {"numeric": tuple(j for part in self.parts if part.is_numeric for j in part.places.tolist())}
