"""Objects of other libraries that stand for rows elsewhere, as scans."""

from __future__ import annotations

from typing import Any

from likely.data.parts import add_converter
from likely.engines.objects import origin_of
from likely.engines.remote import remote_source
from likely.engines.scan import Scan


def scan_of(X: Any) -> Scan | None:
    """A scan of a LazyFrame, a relation of DuckDB, or a dataset, scanner, reader or ParquetFile of Arrow; else None."""
    origin = origin_of(X, iterators=False)
    return None if origin is None else Scan(origin)


def register() -> None:
    """Let every estimator take such objects, and those of Dask and Spark, in place of a frame."""
    add_converter(scan_of)
    add_converter(remote_source)
