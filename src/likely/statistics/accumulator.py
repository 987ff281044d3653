"""Accumulators: objects that sum sufficient statistics over row blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from likely.errors import CellError
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


class RowAccumulator(ABC):
    """Base of accumulators that see the rows with positive weights only."""

    __slots__ = ()

    @property
    def groups(self) -> Index | None:
        return None

    def add(self, block: Any, codes: Codes, weights: Array | None = None) -> None:
        """Add rows (n, d) with their class codes and weights; rows of weight 0 are skipped."""
        if weights is not None and not np.all(weights > 0.0):
            used = np.flatnonzero(weights)
            try:
                self.add(block[used], codes[used], weights[used])
            except CellError as error:
                raise error.at(int(used[error.row]), error.column) from None
        elif len(codes):
            self._add(block, codes, weights)

    @abstractmethod
    def _add(self, block: Any, codes: Codes, weights: Array | None) -> None:
        """Add rows, at least one, whose weights are positive."""
