"""Poisson distributions with an exposure: rates per unit of time, area or total count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from likely.errors import CellError
from likely.families.base import Conditionals
from likely.families.poisson_densities import PoissonConditionals, PoissonPredictive
from likely.numerics.arrays import has_missing
from likely.numerics.expressions import LARGE_COUNT, Cell, Expression, bounded, finite, total, where
from likely.statistics.accumulator import RowAccumulator
from likely.statistics.sums import Sums, SumsAccumulator, class_sums
from likely.typing import AnyArray, Array, Codes, Index

SMALL_EXPOSURE = 1e-300  # densities of smaller exposures are rounded: means would underflow


def split_exposure(rows: AnyArray, exposure_is_total: bool) -> tuple[AnyArray, Array]:
    """Counts (n, d) and exposures (n, 1) of rows; NaN where the exposure is missing."""
    if exposure_is_total:
        if has_missing(rows):
            row, column = np.argwhere(np.isnan(rows))[0]
            problem = "is missing, so the total of the row, which is its exposure, is not known"
            raise CellError(int(row), int(column), rows[row, column], problem, "write 0 where nothing was counted")
        return rows, rows.sum(axis=1, keepdims=True, dtype=np.float64)
    counts, exposure = rows[:, :-1], rows[:, -1:].astype(np.float64)
    wrong = ~((exposure > 0.0) & np.isfinite(exposure)) & ~np.isnan(exposure)
    if wrong.any():
        row = int(np.argmax(wrong))
        problem = "is not an exposure (a finite number > 0)"
        raise CellError(row, counts.shape[1], exposure[row, 0], problem, "correct the value")
    return counts, exposure


@dataclass(slots=True, eq=False)
class ExposureAccumulator(RowAccumulator):
    """Sums the functions of counts, and the exposure of the rows in which each column was observed."""

    plain: SumsAccumulator
    exposure_is_total: bool
    _exposure: Array = field(init=False)

    def __post_init__(self) -> None:
        self._exposure = np.zeros((len(self.plain.classes), self.plain.dimension))

    @property
    def block_rows(self) -> int:
        return self.plain.block_rows

    def _add(self, block: AnyArray, codes: Codes, weights: Array | None) -> None:
        """Add rows (n, d), or (n, d + 1) with their exposures last."""
        counts, exposure = split_exposure(block, self.exposure_is_total)
        counts = np.where(np.isnan(exposure), np.nan, counts)
        self.plain.add(counts, codes, weights)
        exposures = np.where(np.isnan(counts), 0.0, exposure)
        self._exposure += class_sums(codes, weights, len(self._exposure), exposures)

    def finish(self) -> Sums:
        """The sums of all blocks so far, the exposures last."""
        sums = self.plain.finish()
        return replace(sums, totals=np.concatenate([sums.totals, self._exposure[None]]))


@dataclass(frozen=True, eq=False)
class ExposedPoisson(Conditionals):
    """Poisson or predictive distributions given an exposure, the last value of a row unless it is the row total."""

    plain: PoissonConditionals | PoissonPredictive  # for an exposure of 1
    exposure_is_total: bool
    typical: Array  # (classes,): the exposure of sampled rows

    given: ClassVar[str | None] = "the exposure of a row"
    remedy: ClassVar[str] = "Use a model without these columns, or Poisson() without exposure."

    @property
    def n_classes(self) -> int:
        return self.plain.n_classes

    @property
    def dimension(self) -> int:
        return self.plain.dimension

    def marginal(self, columns: Index) -> Self:
        return replace(self, plain=self.plain.marginal(columns))

    def ignored_columns(self) -> Index:
        return self.plain.ignored_columns()

    def paired(self, rows: AnyArray) -> Array:
        """log p of row i under class i, (n,): one class per row, as leave-one-out has it."""
        return np.asarray(next(self._class_terms(rows, [slice(None)])).sum(axis=1))

    def _class_terms(self, rows: AnyArray, labels: Iterable[int | slice] | None = None) -> Iterator[Array]:
        """log p(x | class) of all values, (n, d), for each class in turn; 0 for ignored values."""
        counts, exposure = split_exposure(rows, self.exposure_is_total)
        x, ignored = self.plain.read(np.where(np.isnan(exposure), np.nan, counts))
        safe = np.where(np.isnan(exposure) | (exposure == 0.0), 1.0, exposure)
        for k in range(self.n_classes) if labels is None else labels:
            terms = self.plain.exposed_terms(x, safe, k)
            if self.exposure_is_total:  # a row without any counts contributes 0
                terms = np.where(exposure == 0.0, 0.0, terms)
            yield terms if ignored is None else np.where(ignored, 0.0, terms)

    @property
    def needs_values(self) -> bool:  # type: ignore[override]
        return self.exposure_is_total

    def inside(self, column: int, x: Expression) -> Expression:
        return self.plain.inside(column, x) if column < self.dimension else finite(x) & (x > 0.0)

    def accurate(self, column: int, x: Expression) -> Expression:
        return x <= LARGE_COUNT if column < self.dimension else x >= SMALL_EXPOSURE

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        filler = self.plain.support.filler
        counts = [bounded(cell.filled(filler), LARGE_COUNT) for cell in cells[: self.dimension]]
        exposure = Cell(total(counts), None) if self.exposure_is_total else cells[-1]
        e, informative = exposure.filled(1.0), np.flatnonzero(self.plain.informative).tolist()
        found = []
        for k in range(self.n_classes):
            terms = [cells[j].known(self.plain.exposed_expression(counts[j], e, k, j)) for j in informative]
            score = exposure.known(total(terms))
            found.append(where(e.equals(0.0), 0.0, score) if self.exposure_is_total else score)
        return found

    def log_density(self, rows: AnyArray) -> Array:
        return np.array([terms.sum(axis=1) for terms in self._class_terms(rows)])

    def explain(self, rows: AnyArray) -> Array:
        return np.stack(list(self._class_terms(rows)), axis=1)

    def expectation(self, rows: AnyArray, label: int) -> Array:
        counts, exposure = split_exposure(rows, self.exposure_is_total)
        exposure = np.where(np.isnan(exposure), 1.0, exposure)
        return np.asarray(self.plain.expectation(counts, label) * np.broadcast_to(exposure, counts.shape))

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Counts with an exposure of 1, or of the mean row total of the class."""
        return self.plain.with_exposure(self.typical[:, None]).sample(label, n, rng)
