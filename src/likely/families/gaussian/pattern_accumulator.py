"""Accumulator of `PatternMoments`: the moments of complete rows, and of rows with each missingness pattern."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from likely.errors import CellError
from likely.families.gaussian.accumulator import MomentsAccumulator
from likely.numerics.arrays import has_missing
from likely.numerics.missingness import patterns
from likely.statistics.moments import Moments
from likely.statistics.pattern_moments import PatternMoments, check_patterns
from likely.typing import AnyArray, Array, Codes, Index

PENDING_ROWS = 10_000  # that are grouped by their patterns together


@dataclass(slots=True, eq=False)
class PatternAccumulator:
    """Sums the moments of rows with full scatters, complete or not. Rows without any observed value are ignored."""

    complete: MomentsAccumulator
    _pending: list[tuple[Array, Codes, Array]] = field(init=False, default_factory=list)
    _pending_rows: int = field(init=False, default=0)
    _incomplete: PatternMoments | Moments | None = field(init=False, default=None)

    @property
    def groups(self) -> Index | None:
        return self.complete.groups

    @property
    def block_rows(self) -> int:
        return self.complete.block_rows

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        """Add rows (n, d) of any numeric type with their class codes and weights (0: absent)."""
        if not has_missing(block):
            self.complete.add(block, codes, weights)
            return
        missing = np.isnan(block)
        whole, some = ~missing.any(axis=1), ~missing.all(axis=1)
        index = np.flatnonzero(whole)
        if len(index):
            try:
                self.complete.add(block[index], codes[index], None if weights is None else weights[index])
            except CellError as error:
                raise error.at(int(index[error.row]), error.column) from None
        used = some & ~whole if weights is None else some & ~whole & (weights > 0.0)
        index = np.flatnonzero(used)
        if not len(index):
            return
        rows = np.asarray(block[index], dtype=np.float64)
        self._pending.append((rows, codes[index], np.ones(len(index)) if weights is None else weights[index]))
        self._pending_rows += len(index)
        if self._pending_rows > PENDING_ROWS:
            self._flush()

    def _flush(self) -> None:
        """Add the pending rows to the statistics of incomplete rows."""
        rows, codes, weights = (np.concatenate(parts) for parts in zip(*self._pending, strict=True))
        self._pending, self._pending_rows = [], 0
        like, missing, parts = self.complete, [], []
        none = Moments.empty(like.classes, like.dimension, like.sharing, full=True)
        found = list(patterns(rows))
        check_patterns(len(found), none)
        for index, observed in found:
            part = MomentsAccumulator(like.classes, len(observed), like.sharing, full=True)
            part.add(rows[index][:, observed], codes[index], weights[index])
            missing.append(np.isnan(rows[index[0]]))
            parts.append(part.finish())
        more = PatternMoments(none, np.array(missing), tuple(parts))
        self._incomplete = more if self._incomplete is None else self._incomplete + more

    def finish(self) -> Moments | PatternMoments:
        """The moments of all blocks so far: plain ones where all rows are complete."""
        complete = self.complete.finish()
        if self._pending:
            self._flush()
        return complete if self._incomplete is None else complete + self._incomplete
