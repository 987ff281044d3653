"""Documents of a text column: its distinct texts, with their terms counted once, and which text each row has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, overload

import numpy as np

from likely.typing import AnyArray, Index


class Documents(Sequence[str]):
    """Rows of a text column. Rows of the same column share the cache of the counts of its distinct texts."""

    __slots__ = ("cache", "codes", "texts")

    def __init__(self, texts: AnyArray, codes: Index, cache: dict[Any, Any]) -> None:
        self.texts, self.codes, self.cache = texts, codes, cache

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts[self.codes].tolist())

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> Self: ...
    def __getitem__(self, row: int | slice) -> str | Self:
        return self.take(np.arange(len(self))[row]) if isinstance(row, slice) else str(self.texts[self.codes[row]])

    def take(self, rows: AnyArray) -> Self:
        """Some of the rows, by their numbers or a mask."""
        return type(self)(self.texts, self.codes[rows], self.cache)

    def counted(self, key: Any, count: Callable[[list[str]], Any]) -> Any:
        """What `count` returns for all distinct texts of the column, found once for each key."""
        lock: threading.Lock = self.cache.setdefault("lock", threading.Lock())  # the first thread counts for all
        with lock:
            if key not in self.cache:
                self.cache[key] = count(self.texts.tolist())
            return self.cache[key]
