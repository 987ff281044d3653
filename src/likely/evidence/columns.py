"""The view of single columns: each column by a family of its own, independent within a class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from likely.data.table import Table
from likely.evidence.densities import DensityBlock, SummedRows, number_table, relative_to_best, summed
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import PartsView, View
from likely.families.base import Family
from likely.families.categorical import Categorical
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.prior import NormalInverseWishart
from likely.model.joint import JointModel
from likely.model.persistence import register
from likely.model.specification import Specification
from likely.numerics.shapes import Shape
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array, Index

PRIOR_ROWS = 0.01  # of the mean
PRIOR_DEGREES = 3.0  # of the variance


class ColumnsView(View):
    """Numeric columns by the Student t predictive of a Gaussian, other columns by their categories.

    Columns with a declared family have its density.
    """

    name = "columns"

    def __init__(self, families: Mapping[int, Family] | None = None) -> None:
        self.families = families or {}

    def fit(self, rows: TrainingRows, encoding: Encoding, seed: int) -> FittedColumns | None:
        blocks: list[ColumnBlock | DeclaredColumn] = []
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
        table, declared = rows.rows.table, {j: family for j, family in self.families.items() if encoding.used[j]}
        blocks += [DeclaredColumn(*summed(rows, table, (j,), family), j) for j, family in sorted(declared.items())]
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
class DeclaredColumn(SummedRows):
    """One column with a declared family: its log p(x | class)."""

    specification: Annotated[Specification, Shape("names")]
    statistics: Annotated[JointStatistics, Shape("classes")]
    place: int  # in the table

    @property
    def term_columns(self) -> tuple[int | None, ...]:
        return (self.place,)

    def table(self, rows: EncodedRows) -> Table:
        return rows.table

    @cached_property
    def model(self) -> JointModel:
        return self.specification.estimate(self.statistics)[0]

    def terms(self, rows: EncodedRows) -> Array:
        return relative_to_best(self.model.evidence(rows.table))[None]

    def left_out(self, rows: TrainingRows) -> Array:
        return relative_to_best(self.left_out_evidence(rows.rows.table, rows))[None]

    def _valid(self) -> bool:
        return len(self.statistics.blocks) == 1 and [p.columns for p in self.specification.plans] == [(self.place,)]


@register
@dataclass(frozen=True, eq=False)
class FittedColumns(PartsView):
    """Densities of single columns. Blocks have all numeric and categorical columns, declared ones too."""

    parts: tuple[Annotated[ColumnBlock | DeclaredColumn, Shape("classes")], ...]

    name = ColumnsView.name

    @property
    def _kept(self) -> Index:
        """The places of the terms among those of all parts: a declared column has that of its family alone."""
        declared = {part.place for part in self.parts if isinstance(part, DeclaredColumn)}
        return np.flatnonzero(
            [isinstance(part, DeclaredColumn) or j not in declared for part in self.parts for j in part.term_columns]
        )

    @property
    def term_columns(self) -> tuple[int | None, ...]:
        columns = super().term_columns
        return tuple(columns[i] for i in self._kept.tolist())

    def terms(self, rows: EncodedRows) -> Array:
        return super().terms(rows)[self._kept]

    def left_out(self, rows: TrainingRows) -> Array:
        return super().left_out(rows)[self._kept]

    def _sizes(self) -> dict[str, Any]:
        blocks = (part for part in self.parts if isinstance(part, ColumnBlock) and part.is_numeric)
        return {"numeric": tuple(j for part in blocks for j in part.places.tolist())}
