"""Rows of a source in memory: all of them where they are few, or some that are drawn at random."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from likely.data import row_draw
from likely.data.batches import Batches
from likely.data.frames import names_column
from likely.data.part_sums import CountedChunks, PartSum
from likely.data.parts import Part, PartSource, RowsWithTargets, closed_after, n_rows, source_of
from likely.data.row_draw import RowDraw, joined
from likely.data.sources import check_names, is_source, numbered, numbered_chunks
from likely.numerics.progress import RowProgress, row_progress


def few_rows(X: Any) -> Any:
    """All rows of a source as one frame or array; None if they are more than are ever drawn."""
    source, chunks = source_of(X), []
    if source.rows is not None and source.rows > row_draw.MOST_DRAWN:
        return None
    for chunk, start in numbered(source):
        if start + n_rows(chunk) > row_draw.MOST_DRAWN:
            return None
        chunks.append(chunk)
    return joined(chunks)


@dataclass(frozen=True, slots=True, eq=False)
class RowSample:
    """Rows in memory with their labels and weights, and the number of rows that they were drawn from."""

    X: Any
    y: Any
    sample_weight: Any
    rows: int | None = None  # None if these are all rows

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any) -> RowSample:
        """Up to 20,000 rows of a source, drawn at random in one pass; of anything else, all rows."""
        if not is_source(X):
            return cls(X, y, sample_weight)
        source, y, sample_weight = source_of(X).with_targets(y, sample_weight, Batches._plain)
        check_names(names_column(y) or y is None, sample_weight)
        found = _draw(source)
        if found.drawn is None or not found.rows:
            raise source.empty()
        drawn, rows = found.drawn.frame(), None if found.rows <= row_draw.MOST_DRAWN else found.rows
        if not isinstance(drawn, RowsWithTargets):
            return cls(drawn, y, sample_weight, rows)
        labels, weights = drawn.y, drawn.weights
        return cls(drawn.X, y if labels is None else labels, sample_weight if weights is None else weights, rows)

    @property
    def is_part(self) -> bool:
        """Whether there are more rows than these."""
        return self.rows is not None

    def notes(self, and_then: str = "") -> tuple[str, ...]:
        """A remark on the number of rows, where there are more."""
        if self.rows is None:
            return ()
        return (f"judged on a sample of {n_rows(self.X):,} of {self.rows:,} rows{and_then}",)


@dataclass(frozen=True, slots=True, eq=False)
class _PartDraw:
    """Draws rows of one part."""

    draw: RowDraw
    progress: RowProgress

    def __call__(self, number: int, part: Part) -> PartSum:
        """The rows drawn, and the number of rows of the part."""
        drawn = self.draw.of_part(number)
        chunks = CountedChunks(numbered_chunks(part.chunks()), drawn, self.progress)
        with closed_after(iter(chunks)) as read:
            for _ in read:
                pass
        return PartSum(None, rows=chunks.rows, drawn=drawn.rows.packed())


def _draw(source: PartSource) -> PartSum:
    """Rows drawn from all parts, and the number of all rows."""
    draw = RowDraw.empty(source.rows)
    found = PartSum(None, drawn=draw)
    with row_progress(source.rows) as progress, closing(source.sums(_PartDraw(draw, progress))) as results:
        for part, _ in results:
            if part is not None:
                progress.summed(part.rows)
                found += part
    return found
