"""The view of single columns: each column by a family of its own, independent within a class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from likely.data.table import Table
from likely.evidence.densities import DensityBlock, number_table
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import FittedView, View
from likely.families.categorical import Categorical
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.prior import NormalInverseWishart
from likely.model.persistence import register
from likely.numerics.shapes import Shape
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
            table = _numbers(rows.rows, encoding.numeric)
            block = DensityBlock.of(rows, table, None, Gaussian("diagonal", prior=prior))
            blocks.append(ColumnBlock(encoding.numeric, True, block))
        sizes = np.array([len(words) for words in encoding.vocabularies], dtype=np.intp)
        for size in np.unique(sizes).tolist():  # one pseudo-observation in all, whatever the number of categories
            places = encoding.categorical[sizes == size]
            family = Categorical(smoothing=1.0 / size)
            blocks.append(
                ColumnBlock(places, False, DensityBlock.of(rows, rows.rows.table, tuple(places.tolist()), family))
            )
        return FittedColumns(encoding.names, tuple(blocks)) if blocks else None


@register
@dataclass(frozen=True, slots=True, eq=False)
class ColumnBlock:
    """Columns of one family."""

    places: Annotated[Index, Shape("places", ">=0", "distinct")]  # in the table
    is_numeric: bool
    density: Annotated[DensityBlock, Shape("classes")]

    def table(self, rows: EncodedRows) -> Table:
        return _numbers(rows, self.places) if self.is_numeric else rows.table

    def values(self, rows: EncodedRows) -> AnyArray:
        """Numbers, or codes of categories, (n, columns)."""
        if self.is_numeric:
            return rows.numbers
        read = rows.table.codes(self.places.tolist(), self.density.conditionals.vocabularies)
        return np.asarray(read(0, rows.table.rows))

    def terms(self, rows: EncodedRows) -> Array:
        return self.density.column_terms(self.values(rows))

    def left_out(self, rows: TrainingRows) -> Array:
        return self.density.left_out_columns(self.values(rows.rows), rows)

    def updated(self, rows: TrainingRows, sign: float) -> Self:
        return replace(self, density=self.density.updated(rows, self.table(rows.rows), sign))

    def counted(self, rows: TrainingRows) -> Self:
        return replace(self, density=self.density.counted(rows, self.table(rows.rows)))


def _numbers(rows: EncodedRows, places: AnyArray) -> Table:
    return number_table([rows.table.names[j] for j in places], rows.numbers)


@register
@dataclass(frozen=True, eq=False)
class FittedColumns(FittedView):
    """Densities of single columns: one term for each column."""

    columns: Annotated[tuple[str, ...], Shape("=names")]
    blocks: tuple[Annotated[ColumnBlock, Shape("classes")], ...]

    name = ColumnsView.name

    @property
    def term_columns(self) -> tuple[int | None, ...]:
        return tuple(j for block in self.blocks for j in block.places.tolist())

    @property
    def term_names(self) -> tuple[str, ...]:
        return tuple(self.columns[j] for block in self.blocks for j in block.places.tolist())

    def terms(self, rows: EncodedRows) -> Array:
        return _stacked([block.terms(rows) for block in self.blocks])

    def left_out(self, rows: TrainingRows) -> Array:
        return _stacked([block.left_out(rows) for block in self.blocks])

    def updated(self, rows: TrainingRows, sign: float) -> Self:
        return replace(self, blocks=tuple(block.updated(rows, sign) for block in self.blocks))

    def counted(self, rows: TrainingRows) -> Self:
        return replace(self, blocks=tuple(block.counted(rows) for block in self.blocks))

    def __add__(self, other: Self) -> Self:
        pairs = zip(self.blocks, other.blocks, strict=True)
        return replace(self, blocks=tuple(replace(a, density=a.density + b.density) for a, b in pairs))

    def _sizes(self) -> dict[str, Any]:
        return {"numeric": tuple(j for block in self.blocks if block.is_numeric for j in block.places.tolist())}

    def _valid(self) -> bool:
        return len(self.blocks) > 0 and all(np.all(block.places < len(self.columns)) for block in self.blocks)

    def contributions(self, rows: EncodedRows, weights: Array) -> Array:
        terms = self.terms(rows)
        found = np.zeros((len(rows), terms.shape[1], len(self.columns)))
        for weight, j, term in zip(weights, self.term_columns, terms, strict=True):
            found[:, :, j] += weight * term.T
        return found


def _stacked(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
