"""Objects of other libraries whose rows are elsewhere, found by their types without importing the libraries.

Their classes are in `data.parts.FOREIGN`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from likely.data.parts import class_names
from likely.engines.arrow import DatasetRows, RecordBatches
from likely.engines.base import Scan, Stream
from likely.engines.duck import Relation
from likely.engines.files import library_errors
from likely.engines.spool import spooled
from likely.errors import InputTypeError


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


def scan_of(X: Any, *, iterators: bool = True) -> Scan | None:
    """What reads the rows of an object; None if the object holds rows itself, or has none."""
    kinds = class_names(type(X))
    if ("polars", "LazyFrame") in kinds:
        return LazyRows(X)
    if ("duckdb", "DuckDBPyRelation") in kinds:
        return Relation(X)
    if ("pyarrow", "ParquetFile") in kinds:
        batches, rows = partial(X.iter_batches, use_threads=False), X.metadata.num_rows
        return RecordBatches("a ParquetFile of Arrow", X.schema_arrow.names, batches, rows)
    if ("pyarrow", "Dataset") in kinds:
        if not getattr(X, "_scan_options", None):
            return DatasetRows(X)
        batches = partial(X.to_batches, batch_readahead=2, fragment_readahead=1)  # it has no fragments
        return RecordBatches("a filtered dataset of Arrow", X.schema.names, batches)
    if ("pyarrow", "Scanner") in kinds:
        return spooled("a Scanner of Arrow", iter(X.to_batches()), X.projected_schema)
    if ("pyarrow", "RecordBatchReader") in kinds:
        return spooled("a RecordBatchReader of Arrow", iter(X), X.schema)
    if iterators and isinstance(X, Iterator) and not isinstance(X, io.IOBase):
        return spooled(f"a {type(X).__name__}", X)
    return None


def source_of(X: Any) -> Any:
    """The source of an object of Polars, DuckDB, Arrow, Dask or Spark that has rows elsewhere; others as they are."""
    if (rows := scan_of(X, iterators=False)) is not None:
        return rows
    kinds = class_names(type(X))
    if ("dask", "DataFrame") in kinds:
        from likely.engines.dask import DaskFrame

        return DaskFrame(X)
    if ("dask", "Array") in kinds:
        from likely.engines.dask import DaskArray

        return DaskArray(X)
    if ("dask", "Delayed") in kinds:
        raise InputTypeError(
            "X is a Delayed of Dask, which may be anything. Pass dask.dataframe.from_delayed([X]), or X.compute()."
        )
    if any(kind.__module__.startswith("pyspark.pandas") for kind in type(X).__mro__):
        raise InputTypeError(f"X is a {type(X).__name__} of pandas on Spark. Pass X.to_spark().")
    if ("pyspark", "DataFrame") in kinds:
        from likely.engines.spark import SparkFrame

        return SparkFrame(X)
    return X
