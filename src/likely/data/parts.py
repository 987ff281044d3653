"""Rows in parts that are read independently of one another: files and their row groups, partitions, record batches.

A `PartSource` lists its parts and computes a function of every part: on threads, or on other machines. Statistics are
sums, so that a fit computes them part by part, and adds them in the order of the parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast

from sklearn.utils.validation import check_is_fitted

from likely.errors import SourceError
from likely.numerics.threads import in_order

Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, eq=False)
class RowsWithTargets:
    """A chunk of rows without names of columns, such as an array, with its labels and weights."""

    X: Any
    y: Any
    weights: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rows."""
        return tuple(self.X.shape)

    @property
    def fields(self) -> tuple[Any, Any, Any]:
        """The rows, labels and weights."""
        return self.X, self.y, self.weights


@contextmanager
def closed_after(chunks: Iterator[Any]) -> Iterator[Iterator[Any]]:
    """Chunks of a pass over rows, which ends with the block.

    The traceback of an error keeps iterators, and an iterator that is not closed keeps its query or file open.
    """
    try:
        yield chunks
    finally:
        if isinstance(chunks, Generator):
            chunks.close()


class Part(Protocol):
    """Some of the rows of a source. Parts are pickled where another process reads them."""

    @property
    def start(self) -> int:
        """The number of its first row in the source; 0 where it is not known."""

    def chunks(self) -> Iterator[Any]:
        """The rows as Arrow tables or frames of another library, from the first on at every call."""


class PartSource(ABC):
    """Rows in parts. Parts, their order and the rows of each part are the same at every call."""

    @property
    def description(self) -> str:
        """What is read."""
        return f"a {type(self).__name__}"

    @property
    def rows(self) -> int | None:
        """The number of rows; None if counting them needs a pass."""
        return None

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are read, where they are known."""
        return ()

    @property
    def has_fixed_order(self) -> bool:
        """Whether the rows of a part have the same order in every pass."""
        return True

    @abstractmethod
    def parts(self) -> Sequence[Part]:
        """The parts, of which there is at least one."""

    def chunks(self) -> Iterator[Any]:
        """The rows of all parts, from the first on at every call."""
        for part in self.parts():
            yield from part.chunks()

    def chunks_once(self) -> Iterator[Any]:
        """The rows of all parts for a caller that reads them once: rows that can be read only once are not kept."""
        return self.chunks()

    def compute(self, work: Callable[[int, Part], Result]) -> Generator[Result]:
        """work(number, part) for every part, in the order of the parts, as many of them at a time as there are cores.

        Where parts are read by other processes, `work` and its results are pickled.
        """
        return in_order(enumerate(self.parts()), lambda task: work(*task))

    def sums(self, work: Callable[[int, Part], Result]) -> Generator[tuple[Result | None, int]]:
        """(result, level): sums of work(number, part) over FAN_IN**level neighbouring parts, in the order of the parts.

        Here the level is 0, and every result is that of one part. Other processes may add results before they send
        them, in the tree of `TreeSum`.
        """
        with closing(self.compute(work)) as results:
            for result in results:
                yield result, 0

    def head(self) -> Iterator[Any]:
        """Some chunks with the columns of all chunks, maybe without rows."""
        return self.chunks()

    def with_targets(self, y: Any, sample_weight: Any) -> tuple[PartSource, Any, Any]:
        """The source, y and weights; both None if the chunks of the source contain them: `RowsWithTargets`."""
        return self, y, sample_weight


class LazySource(PartSource):
    """Rows of a library that computes predictions later, where the rows are."""

    @abstractmethod
    def predictions(self, model: Any, method: str) -> Any:
        """What model.method(X) returns, not yet computed: predict, predict_proba or predict_log_proba."""


@dataclass(frozen=True, slots=True, eq=False)
class RowsReadHere(PartSource):
    """The rows of a lazy source, which this process reads."""

    source: LazySource

    @property
    def description(self) -> str:
        """What the source reads."""
        return self.source.description

    @property
    def has_fixed_order(self) -> bool:
        """Whether the source has one."""
        return self.source.has_fixed_order

    def parts(self) -> Sequence[Part]:
        """The parts of the source."""
        return self.source.parts()

    def chunks(self) -> Iterator[Any]:
        """The rows of the source."""
        return self.source.chunks()


def changed_rows(source: str, before: int | None, rows: int, lazy: bool = False) -> SourceError:
    """The error for a source whose number of rows differs from that of an earlier pass."""
    remedy = "Call persist() of Dask or Spark first, or copy" if lazy else "Copy"
    return SourceError(
        f"{source} had {before} rows in one pass and {rows} in the next. {remedy} rows that change while a model is "
        "fitted, for example into a Parquet file."
    )


def read_here(X: Any) -> Any:
    """Rows for methods that need predictions at once: those of lazy sources are read by this process."""
    source = source_of(X)
    return RowsReadHere(source) if isinstance(source, LazySource) else X


def lazily(method: Method) -> Method:
    """A method of estimators that predicts rows, whose results are not computed yet where the rows are lazy."""

    @wraps(method)
    def predict(estimator: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        source = source_of(X)
        if isinstance(source, LazySource) and getattr(estimator, "_predicts_lazily", True):
            check_is_fitted(estimator)
            return source.predictions(estimator, method.__name__)
        return method(estimator, X, *args, **kwargs)

    return cast(Method, predict)


FOREIGN = {  # objects of other libraries that stand for rows elsewhere, by the package and the name of their class
    ("polars", "LazyFrame"),
    ("duckdb", "DuckDBPyRelation"),
    *(("pyarrow", name) for name in ("Dataset", "ParquetFile", "RecordBatchReader", "Scanner")),
    *(("dask", name) for name in ("Array", "DataFrame", "Delayed")),
    ("pyspark", "DataFrame"),
}


@cache
def is_foreign(kind: type) -> bool:
    """Whether objects of a class are in `FOREIGN`, which is found without importing the libraries."""
    names = {(each.__module__.partition(".")[0].lstrip("_"), each.__name__) for each in kind.__mro__}
    return not names.isdisjoint(FOREIGN)


def source_of(X: Any) -> Any:
    """The source that an object of another library stands for; anything else as it is.

    The package `engines`, which reads such objects, is imported when there is one.
    """
    kind: Any = type(X)
    return import_module("likely.engines.sources").source_of(X) if is_foreign(kind) else X
