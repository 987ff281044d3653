"""Objects of other libraries that stand for rows elsewhere, as sources: their classes are in `data.parts.FOREIGN`."""

from __future__ import annotations

from typing import Any

from likely.engines.objects import origin_of
from likely.engines.scan import Scan
from likely.errors import InputTypeError


def source_of(X: Any) -> Any:
    """The source of an object of Polars, DuckDB, Arrow, Dask or Spark that has rows elsewhere; others as they are."""
    origin = origin_of(X, iterators=False)
    if origin is not None:
        return Scan(origin)
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(X).__mro__}
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
