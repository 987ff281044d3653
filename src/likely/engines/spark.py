"""DataFrames of Spark: executors compute statistics and predictions by `mapInArrow`.

A pass over the rows emits one row (number of the partition, pickled result) for each partition. Results are added in
the order of the partitions, so that tasks which are run again or twice do not count twice. Only the DataFrame API is
used, which Spark Connect has too.
"""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from itertools import groupby, islice
from typing import Any, TypeVar

from likely.data.names import without_case
from likely.data.parts import LazySource, Part
from likely.engines.base import CHUNK_CELLS, CHUNK_ROWS, HEAD_ROWS, distinct
from likely.engines.worker import Rows, add_parts, predict_rows, run_part
from likely.errors import InputError, LikelyError, SourceError, listed
from likely.model.result_names import check_clash, result_names
from likely.numerics.tree_sum import FAN_IN
from likely.typing import AnyArray

Result = TypeVar("Result")
MOST_COLLECTED = 200  # results that the driver receives; more are added by the executors
RESULT_SCHEMA = "part long, result binary"
MOST_SHOWN = 2000  # characters of an error of Spark


class SparkFrame(LazySource):
    """The rows of a DataFrame of Spark."""

    description = "a DataFrame of Spark"
    has_fixed_order = False  # Spark may compute the rows of a partition in another order

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._counts: tuple[int, int] | None = None

    @property
    def rows(self) -> int | None:
        """The number of rows, which Spark counts."""
        return self._counted()[0]

    def _counted(self) -> tuple[int, int]:
        """The numbers of rows and of partitions; empty partitions at the end may not be counted."""
        if self._counts is None:
            from pyspark.sql import functions

            with from_executors():
                number = self._frame.select(functions.spark_partition_id().alias("part"))
                (found,) = number.agg(functions.count("part"), functions.max("part")).collect()
            self._counts = int(found[0]), 1 if found[1] is None else int(found[1]) + 1
        return self._counts

    def parts(self) -> Sequence[Part]:
        """All rows as one part: single partitions of Spark cannot be read apart from others."""
        return (self,)

    def chunks(self) -> Iterator[Any]:
        """The rows of one partition after another as tables of Arrow, received by the driver."""
        import pyarrow as pa

        with from_executors():
            schema = self._frame.limit(0).toArrow().schema
            every = in_utc((row.asDict() for row in self._frame.toLocalIterator(prefetchPartitions=True)), schema)
            while rows := list(islice(every, CHUNK_ROWS)):
                yield pa.Table.from_pylist(rows, schema=schema)

    def head(self) -> Iterator[Any]:
        """The first rows."""
        with from_executors():
            yield self._frame.limit(HEAD_ROWS).toArrow()

    def compute(self, work: Callable[[int, Part], Result]) -> Generator[Result]:
        """work(number, part) for every partition, in the order of the partitions."""
        yield from (value for value in received(self._worked(work)) if value is not None)

    def sums(self, work: Callable[[int, Part], Result]) -> Generator[tuple[Result | None, int]]:
        """Sums over partitions. Executors add up those of many partitions, level by level of the tree of `TreeSum`."""
        results, level, count = self._worked(work), 0, self._counted()[1]
        while count > MOST_COLLECTED:
            level, count = level + 1, -(-count // FAN_IN)
            results = added(results, count)
        for value in received(results):
            yield value, level

    def _worked(self, work: Callable[[int, Part], Any]) -> Any:
        """A DataFrame with the result of each partition."""
        names = self._frame.columns

        def run(batches: Iterable[Any]) -> Iterator[Any]:
            from pyspark import TaskContext

            number = TaskContext.get().partitionId()
            yield emitted([(number, _attempt(work, number, Rows(tables(batches, names))))])

        return self._mapped(run, RESULT_SCHEMA)

    def _mapped(self, run: Callable[[Iterable[Any]], Iterator[Any]], schema: Any) -> Any:
        """mapInArrow over columns named by numbers: it does not find names with dots, or that differ only by case."""
        with from_executors():
            return self._frame.toDF(*map(str, range(len(self._frame.columns)))).mapInArrow(run, schema)

    def predictions(self, model: Any, method: str) -> Any:
        """The DataFrame with `predicted`, and `probability_<label>` for predict_proba, next to its own columns."""
        from pyspark.sql.types import DoubleType, StructType

        if method not in ("predict", "predict_proba"):
            raise InputError(f"{method} of a Spark DataFrame is not available. Use predict_proba.")
        columns = distinct(self._frame.columns, self.description)
        features = _features(model, columns)
        names = result_names(model.classes_.tolist())[: None if method == "predict_proba" else 1]
        check_clash(names, columns, without_case, remedy="Rename or drop the {some} in X.")
        schema = StructType(list(self._frame.schema.fields)).add(names[0], _label_type(model.classes_))
        for name in names[1:]:
            schema = schema.add(name, DoubleType())

        def run(batches: Iterable[Any]) -> Iterator[Any]:
            for table in tables(batches, columns):
                yield from predicted(table, model, features, names).to_batches()

        return self._mapped(run, schema)


def in_utc(rows: Iterable[dict[str, Any]], schema: Any) -> Iterator[dict[str, Any]]:
    """Rows whose timestamps with a time zone are in UTC: Spark collects them in that of the computer, without it."""
    zoned = [field.name for field in schema if getattr(field.type, "tz", None)]
    for row in rows:
        for name in zoned:
            if row[name] is not None:
                row[name] = row[name].astimezone(UTC)
        yield row


def tables(batches: Iterable[Any], names: Sequence[str]) -> Iterator[Any]:
    """Record batches as tables of Arrow with columns of these names, several of them in each."""
    import pyarrow as pa

    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= CHUNK_ROWS or rows * batch.num_columns >= CHUNK_CELLS:
            yield pa.Table.from_batches(waiting).rename_columns(names)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting).rename_columns(names)


def _attempt(work: Callable[[int, Part], Any], number: int, part: Part) -> Any:
    """The result of a part; an error of the library is a result too, because it would be the same again."""
    try:
        return run_part(work, number, part)
    except LikelyError as error:
        return error


def emitted(results: Sequence[tuple[int, Any]]) -> Any:
    """Results as rows for Spark. Classes of the user's own script are pickled with their code."""
    import pyarrow as pa
    from pyspark import cloudpickle

    numbers = pa.array([number for number, _ in results], type=pa.int64())
    values = pa.array([cloudpickle.dumps(value) for _, value in results], type=pa.binary())
    return pa.RecordBatch.from_arrays([numbers, values], names=["part", "result"])


def added(results: Any, groups: int) -> Any:
    """A DataFrame with the sums of FAN_IN neighbouring results, computed by executors."""
    from pyspark.sql import functions

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        rows = (row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True))
        for number, group in groupby(rows, lambda row: row[0] // FAN_IN):
            values = [pickle.loads(value) for _, value in group]
            errors = [value for value in values if isinstance(value, LikelyError)]
            yield emitted([(number, errors[0] if errors else add_parts(values))])

    apart = results.repartition(min(groups, MOST_COLLECTED), functions.floor(functions.col("part") / FAN_IN))
    return apart.sortWithinPartitions("part").mapInArrow(run, RESULT_SCHEMA)


def received(results: Any) -> Iterator[Any]:
    """Results in the order of their numbers; None for a number without one. The first error is raised."""
    with from_executors():
        rows = sorted((row["part"], bytes(row["result"])) for row in results.collect())
    found = dict(rows)
    if len(found) < len(rows):
        raise InputError(
            "Spark computed a partition twice in one pass with different results. Call persist() on X first."
        )
    for number in range(max(found, default=-1) + 1):
        value = pickle.loads(found[number]) if number in found else None
        if isinstance(value, LikelyError):
            raise value
        yield value


def predicted(table: Any, model: Any, features: Sequence[str], names: Sequence[str]) -> Any:
    """A table with the predictions appended."""
    import pyarrow as pa

    if len(names) == 1:
        labels, columns = predict_rows(model, "predict", table.select(features)), ()
    else:
        probabilities = predict_rows(model, "predict_proba", table.select(features))
        labels, columns = model.classes_[probabilities.argmax(axis=1)], probabilities.T
    for name, column in zip(names, (pa.array(labels.tolist()), *columns), strict=True):
        table = table.append_column(name, column if isinstance(column, pa.Array) else pa.array(column))
    return table


def _features(model: Any, columns: Sequence[str]) -> list[str]:
    """The columns of a DataFrame that a model reads. Those that it has set aside may be absent."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise InputError(
            "The model was fitted to an array and has no feature names, by which columns of a Spark DataFrame are "
            "found. Fit it to a frame."
        )
    families = getattr(model, "families_", {})
    unused = {name for name, family in families.items() if family is None}
    missing = [name for name in names if name not in columns and name not in unused]
    if missing:
        raise InputError(f"X has no column {listed(missing)}, which the model was fitted with: {listed(columns)}.")
    return [name for name in names if name in columns]


def _label_type(classes: AnyArray) -> Any:
    """The type of a column of Spark that has class labels."""
    from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType

    labels = classes.tolist()
    for kinds, spark in ((bool, BooleanType), (int, LongType), (float, DoubleType), (str, StringType)):
        if all(type(label) is kinds for label in labels):
            return spark()
    types = sorted({type(label).__name__ for label in labels})
    raise InputError(f"Labels of the type {listed(types)} have no column type of Spark. Use text or numbers as labels.")


@contextmanager
def from_executors() -> Iterator[None]:
    """Errors of Spark as those of the library; the error of an executor that lacks a package names the remedy."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        text = str(error)
        missing = re.search(r"No module named '([\w.]+)'", text)
        if missing is None and "PYTHON_VERSION_MISMATCH" not in text:
            shown = "\n".join(line for line in text.splitlines() if not line.startswith("\tat "))
            raise SourceError(f"Spark could not compute the DataFrame: {shown[:MOST_SHOWN]}") from error
        problem = "is another version" if missing is None else f"has no package {missing[1]!r}"
        raise InputError(
            f"The Python of the Spark executors {problem}. Install likely for it on every executor, or set the "
            f"environment variable PYSPARK_PYTHON to an interpreter that has likely, such as {sys.executable!r}, "
            "before the Spark session starts."
        ) from error
