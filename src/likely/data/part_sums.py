"""The sum over the rows of a part of a source, and what else a pass over them finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from likely.data.parts import closed_after, n_rows
from likely.data.row_draw import PartDraw, RowDraw
from likely.numerics.progress import RowProgress
from likely.numerics.tree_sum import group_sum


@dataclass(slots=True, eq=False)
class CountedChunks:
    """Chunks with the numbers of their first rows; rows are counted, and some of them drawn, as they are read."""

    chunks: Iterator[tuple[Any, int]]
    drawn: PartDraw | None = None
    progress: RowProgress = field(default_factory=RowProgress)
    rows: int = 0

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        with closed_after(self.chunks) as chunks:
            for chunk, start in chunks:
                size = n_rows(chunk)
                self.rows += size
                self.progress.read(size)
                if self.drawn is not None:
                    self.drawn.add(chunk, size)
                yield chunk, start


@dataclass(frozen=True, slots=True, eq=False)
class PartSum:
    """The sum over the batches of a part, and what else the pass found."""

    total: Any  # None without labeled rows
    usable: bool = True  # whether all batches are
    rows: int = 0
    labeled: bool = False  # whether a row has a label and positive weight
    unlabeled: bool = False  # whether rows are unlabeled
    drawn: RowDraw | None = None
    empty_targets: frozenset[str] | None = None  # targets of a regression without a value; None without rows

    def __add__(self, other: PartSum) -> PartSum:
        """The sum over two neighbouring parts, where another process adds them."""
        return PartSum(
            group_sum([self.total, other.total]),
            self.usable and other.usable,
            self.rows + other.rows,
            self.labeled or other.labeled,
            self.unlabeled or other.unlabeled,
            group_sum([self.drawn, other.drawn]),
            both_empty(self.empty_targets, other.empty_targets),
        )

    def packed(self) -> PartSum:
        """The same sum with the rows that were drawn in one frame, before another process receives it."""
        return self if self.drawn is None else replace(self, drawn=self.drawn.packed())


def both_empty(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """Targets without a value in two sets of rows; None means no rows."""
    return other if one is None else one if other is None else one & other
