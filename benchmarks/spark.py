"""Gaussian naive Bayes on Spark, compared with Spark's own. Both read rows that Spark keeps in memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.timing import Line, alternate, at_most
from likely import Gaussian, NaiveBayes

ROWS, COLUMNS, PARTITIONS = 2_000_000, 20, 8


def spark() -> Iterator[Line]:
    """Time of a fit divided by that of Spark's NaiveBayes(modelType="gaussian"), warm on both sides.

    Spark's own needs a column of vectors, which it makes of the columns during the fit, or before it.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.ml.classification import NaiveBayes as SparkNaiveBayes
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    try:
        names = [f"x{j}" for j in range(COLUMNS)]
        schema = ", ".join(f"{name} double" for name in names) + ", label double"

        def read(batches: Any) -> Iterator[Any]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    rng = np.random.default_rng(number)
                    label = rng.integers(0, 3, ROWS // PARTITIONS).astype(float)
                    values = [rng.normal(label) for _ in names]
                    yield pa.RecordBatch.from_arrays([*map(pa.array, values), pa.array(label)], [*names, "label"])

        rows = session.range(0, PARTITIONS, 1, PARTITIONS).mapInArrow(read, schema).persist()
        assembled = VectorAssembler(inputCols=names, outputCol="features").transform(rows).select("features", "label")
        vectors = assembled.filter("label >= 0").persist()  # another query: else `assembled` is read from memory too
        rows.count(), vectors.count()
        ours = NaiveBayes(Gaussian("diagonal"), calibration=None)
        theirs = SparkNaiveBayes(modelType="gaussian")
        fits: list[Any] = [lambda: ours.fit(rows, "label"), lambda: theirs.fit(assembled), lambda: theirs.fit(vectors)]
        for fit in fits:
            fit()
        mine, *others = alternate(fits, 3)
        for other, name in zip(others, ("the same columns", "vectors made before"), strict=True):
            yield at_most(f"likely / Spark, of {name}", mine / other, 1.0, f"{mine:.2f} s; Spark: {other:.2f} s")
        means = theirs.fit(assembled).theta.toArray()
        blocks = ours.fit(rows, "label").statistics_.blocks
        worst = np.abs(blocks[0].mean - means).max()
        yield f"  largest difference of the means of both                {worst:.1e}"
    finally:
        session.stop()
