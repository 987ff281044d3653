"""Polars LazyFrames."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from likely.engines.base import Stream
from likely.engines.files import library_errors


class LazyRows(Stream):
    """The rows of a LazyFrame as Polars frames, computed anew in every pass.

    Versions of Polars without `collect_batches` compute all rows at once.
    """

    has_fixed_order = False

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        with _polars_errors():
            super().__init__("a LazyFrame of Polars", frame.collect_schema().names())

    def _read(self, rows: int) -> Iterator[Any]:
        with _polars_errors():
            if hasattr(self._frame, "collect_batches"):
                yield from self._frame.collect_batches(chunk_size=rows, maintain_order=True, engine="streaming")
            else:
                yield from self._frame.collect(engine="streaming").iter_slices(rows)


def _polars_errors() -> AbstractContextManager[None]:
    import polars as pl

    return library_errors("Polars could not compute the LazyFrame", kinds=(pl.exceptions.PolarsError,))
