"""Objects of other libraries whose rows are elsewhere, found by their types without importing the libraries."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from likely.engines.arrow import DatasetRows, RecordBatches
from likely.engines.base import Origin
from likely.engines.duck import Relation
from likely.engines.lazy import LazyRows
from likely.engines.spool import spooled


def origin_of(X: Any, *, iterators: bool = True) -> Origin | None:
    """What reads the rows of an object; None if the object holds rows itself, or has none."""
    kinds = {(kind.__module__.split(".")[0].lstrip("_"), kind.__name__) for kind in type(X).__mro__}
    if ("polars", "LazyFrame") in kinds:
        return LazyRows(X)
    if ("duckdb", "DuckDBPyRelation") in kinds:
        return Relation(X)
    if ("pyarrow", "ParquetFile") in kinds:
        rows = X.metadata.num_rows
        return RecordBatches("a ParquetFile of Arrow", X.schema_arrow.names, X.iter_batches, rows, use_threads=False)
    if ("pyarrow", "Dataset") in kinds:
        if not getattr(X, "_scan_options", None):
            return DatasetRows(X)
        where, ahead = "a filtered dataset of Arrow", {"batch_readahead": 2, "fragment_readahead": 1}
        return RecordBatches(where, X.schema.names, X.to_batches, **ahead)  # it has no fragments
    if ("pyarrow", "Scanner") in kinds:
        return spooled("a Scanner of Arrow", iter(X.to_batches()), X.projected_schema)
    if ("pyarrow", "RecordBatchReader") in kinds:
        return spooled("a RecordBatchReader of Arrow", iter(X), X.schema)
    if iterators and isinstance(X, Iterator) and not isinstance(X, io.IOBase):
        return spooled(f"a {type(X).__name__}", X)
    return None
