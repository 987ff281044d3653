"""Poisson rates per unit of exposure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from likely.errors import CellError
from likely.families.base import Conditionals
from likely.families.poisson_densities import PoissonConditionals, PoissonPredictive
from likely.numerics.arrays import has_missing
from likely.statistics.sums import Sums, SumsAccumulator
from likely.typing import AnyArray, Array, Codes, Index


def split_exposure(rows: AnyArray, totals: bool) -> tuple[AnyArray, Array]:
    """Counts (n, d) and exposures (n, 1); NaN where the exposure is missing."""
    if totals:
        if has_missing(rows):
            row, column = np.argwhere(np.isnan(rows))[0]
            problem = "is missing, and with it the total of the row, which is its exposure"
            raise CellError(int(row), int(column), rows[row, column], problem, "write 0 where nothing was counted")
        return rows, rows.sum(axis=1, keepdims=True, dtype=np.float64)
    counts, exposure = rows[:, :-1], rows[:, -1:].astype(np.float64)
    bad = ~((exposure > 0.0) & np.isfinite(exposure)) & ~np.isnan(exposure)
    if bad.any():
        row = int(np.argmax(bad))
        raise CellError(row, counts.shape[1], exposure[row, 0], "is not an exposure above 0", "correct the cell")
    return counts, exposure


@dataclass(slots=True, eq=False)
class ExposureAccumulator:
    """Sums counts and their squares, and the exposure of the rows in which each column was observed."""

    plain: SumsAccumulator
    totals: bool
    _exposure: Array | None = None

    @property
    def groups(self) -> None:
        return None

    @property
    def block_rows(self) -> int:
        return self.plain.block_rows

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        """Add rows (n, d), or (n, d + 1) with their exposures last."""
        counts, exposure = split_exposure(block, self.totals)
        counts = np.where(np.isnan(exposure), np.nan, counts)
        self.plain.add(counts, codes, weights)
        lasted = np.where(np.isnan(counts), 0.0, exposure)
        lasted = lasted if weights is None else lasted * weights[:, None]
        size = len(self.plain.classes)
        more = np.array([np.bincount(codes, column, minlength=size) for column in lasted.T]).T
        self._exposure = more if self._exposure is None else self._exposure + more

    def finish(self) -> Sums:
        """The sums of all blocks so far, the exposures last."""
        sums = self.plain.finish()
        seen = np.zeros_like(sums.totals[0]) if self._exposure is None else self._exposure
        return replace(sums, totals=np.concatenate([sums.totals, seen[None]]))


@dataclass(frozen=True, eq=False)
class ExposedPoisson(Conditionals):
    """Counts at rates per unit of exposure. Rows end with their exposure, unless it is their total."""

    plain: PoissonConditionals | PoissonPredictive
    totals: bool
    usual: Array  # (classes,): the exposure that rows are drawn with

    given: ClassVar[str | None] = "the exposure of a row"

    def expectation(self, rows: AnyArray, label: int) -> Array:
        counts, exposure = split_exposure(rows, self.totals)
        during = np.where(np.isnan(exposure), 1.0, exposure)
        return np.asarray(self.plain.expectation(counts, label) * np.broadcast_to(during, counts.shape))

    @property
    def n_classes(self) -> int:
        return self.plain.n_classes

    @property
    def dimension(self) -> int:
        return self.plain.dimension

    def marginal(self, columns: Index) -> Self:
        return replace(self, plain=self.plain.marginal(columns))

    def unread(self) -> Index:
        return self.plain.unread()

    def notes(self, names: Sequence[str]) -> list[str]:
        return self.plain.notes(names)

    def paired(self, rows: AnyArray) -> Array:
        """log p of each row under the class of the same number, (n,)."""
        return np.asarray(next(self._class_terms(rows, [slice(None)])).sum(axis=1))

    def _class_terms(self, rows: AnyArray, labels: Iterable[int | slice] | None = None) -> Iterator[Array]:
        counts, exposure = split_exposure(rows, self.totals)
        x, silent = self.plain.read(np.where(np.isnan(exposure), np.nan, counts))
        during = np.where(np.isnan(exposure) | (exposure == 0.0), 1.0, exposure)
        for k in range(self.n_classes) if labels is None else labels:
            terms = self.plain.exposed_terms(x, during, k)
            if self.totals:  # a row without any count says nothing
                terms = np.where(exposure == 0.0, 0.0, terms)
            yield terms if silent is None else np.where(silent, 0.0, terms)

    def log_density(self, rows: AnyArray) -> Array:
        return np.array([terms.sum(axis=1) for terms in self._class_terms(rows)])

    def explain(self, rows: AnyArray) -> Array:
        return np.stack(list(self._class_terms(rows)), axis=1)

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Counts during an exposure of 1; where the total is the exposure, during the mean total of the class."""
        return self.plain.during(self.usual[:, None]).sample(label, n, rng)
