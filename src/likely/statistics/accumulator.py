"""The protocol of accumulators: objects that sum sufficient statistics over row blocks."""

from __future__ import annotations

from typing import Any, Protocol

from likely.typing import AnyArray, Array, Codes, Index


class Accumulator(Protocol):
    """Sums sufficient statistics over row blocks."""

    @property
    def block_rows(self) -> int:
        """How many rows to add at a time."""

    @property
    def groups(self) -> Index | None:
        """Where not None, a number for each class: rows of classes with the same number are added at a time."""

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        """Add the rows of a block, with the codes of their classes and their weights."""

    def finish(self) -> Any:
        """The additive statistics of all blocks so far."""
