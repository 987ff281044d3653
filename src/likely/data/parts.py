"""Sources: rows in parts that are read independently of one another, or in chunks of one part.

A `PartSource` lists its parts, such as files and their row groups, partitions and record batches, and computes a
function of every part: on threads, or on other machines. Statistics are sums, so that a fit computes them part by part,
and adds them in the order of the parts. An object of the user with a method `chunks` is a source of one part.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast

from sklearn.utils.validation import check_is_fitted

from likely.data.frames import whole_frame
from likely.data.validation import weight_values
from likely.errors import InputError, SourceError
from likely.numerics.threads import in_order

AGAIN = "The method chunks() must start again from the first row at every call."
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, eq=False)
class RowsWithTargets:
    """A chunk of rows with the labels and weights that its columns do not have; None for others."""

    X: Any
    y: Any
    weights: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rows."""
        return (n_rows(self.X),)

    @property
    def fields(self) -> tuple[Any, Any, Any]:
        """The rows, labels and weights."""
        return self.X, self.y, self.weights


def n_rows(chunk: Any) -> int:
    """The number of rows of a frame, an array or a list."""
    return int(chunk.shape[0]) if hasattr(chunk, "shape") else len(chunk)


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

    start = 0  # the number of the first row
    sampled = True  # whether choices are made by rows that are drawn at random; otherwise by all rows
    paths: tuple[str, ...] = ()  # the files that are read, where they are known
    has_fixed_order = True  # whether the rows of a part have the same order in every pass

    @property
    def description(self) -> str:
        """What is read."""
        return f"a {type(self).__name__}"

    @property
    def rows(self) -> int | None:
        """The number of rows; None if counting them needs a pass."""
        return None

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

        A single part is read on the calling thread. Where parts are read by other processes, `work` and its results
        are pickled.
        """
        parts = self.parts()
        if len(parts) == 1:
            yield work(0, parts[0])
        else:
            yield from in_order(enumerate(parts), lambda task: work(*task))

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

    def with_targets(self, y: Any, sample_weight: Any, plain: Callable[[Any], Any]) -> tuple[PartSource, Any, Any]:
        """The source, y and weights; None for those that the chunks of the source contain: `RowsWithTargets`.

        `plain` makes an array of y, and None if y is the name of a column.
        """
        return self, y, sample_weight

    def empty(self) -> InputError:
        """The error where there are no rows."""
        return InputError(f"X has no rows: {self.description} is empty.")

    def changed(self, before: int, rows: int) -> InputError:
        """The error where the number of rows differs from that of an earlier pass."""
        return changed_rows(f"X, {self.description},", before, rows, lazy=isinstance(self, LazySource))


class Chunks(PartSource):
    """An object of the user with a method `chunks`: one part, whose labels and weights may be separate arrays."""

    sampled = False

    def __init__(self, source: Any, y: Any = None, weights: Any = None) -> None:
        self._source, self._targets = source, {"y": y, "sample_weight": weights}
        self._begun: tuple[list[Any], Iterator[Any]] | None = None

    def parts(self) -> Sequence[Part]:
        """The rows, which are one part."""
        return (self,)

    def chunks(self) -> Iterator[Any]:
        """The chunks of the object; a pass that `head` has begun goes on."""
        (seen, rest), self._begun = self._begun or ([], self._read()), None
        yield from itertools.chain(seen, rest)

    def head(self) -> Iterator[Any]:
        """The first chunks, which the next pass does not read again."""
        seen, rest = self._begun = self._begun or ([], self._read())
        yield from list(seen)
        for chunk in rest:
            seen.append(chunk)
            yield chunk

    def _read(self) -> Iterator[Any]:
        """Chunks with their labels and weights."""
        beside = {name: values for name, values in self._targets.items() if values is not None}
        stop = 0
        for part in self._source.chunks():
            chunk = whole_frame(part)
            if not beside or not (hasattr(chunk, "shape") or isinstance(chunk, list | tuple)):
                yield chunk
                continue
            start, stop = stop, stop + n_rows(chunk)
            for name, values in beside.items():
                if len(values) < stop:
                    raise _other_length(name, len(values), f"{stop} rows or more")
            cut = {name: values[start:stop] for name, values in beside.items()}
            yield RowsWithTargets(chunk, cut.get("y"), cut.get("sample_weight"))
        for name, values in beside.items():
            if stop and len(values) != stop:
                raise _other_length(name, len(values), f"{stop} rows")

    def with_targets(self, y: Any, sample_weight: Any, plain: Callable[[Any], Any]) -> tuple[PartSource, Any, Any]:
        """The rows with separate arrays of labels and weights; names of columns, and a weight for all rows, stay."""
        weights = None if sample_weight is None or isinstance(sample_weight, str) else weight_values(sample_weight)
        labels = None if y is None else plain(y)
        if weights is not None and not weights.ndim:
            weights = None
        source = Chunks(self._source, labels, weights)
        return source, None if labels is not None else y, None if weights is not None else sample_weight

    def empty(self) -> InputError:
        """The error where there are no rows."""
        return InputError(f"X has no rows: chunks() yielded none. {AGAIN}")

    def changed(self, before: int, rows: int) -> InputError:
        """The error where the number of rows differs from that of an earlier pass."""
        return InputError(f"chunks() yielded {before} rows, and then {rows}. {AGAIN}")


def _other_length(name: str, length: int, rows: str) -> InputError:
    return InputError(
        f"X has {rows} and {name} has {length}: Found input variables with inconsistent numbers of samples. {AGAIN}"
    )


class ChunkOf(Chunks):
    """One chunk of a source, whose rows keep their numbers in the source: errors name these."""

    def __init__(self, chunk: Any, start: int) -> None:
        super().__init__(None)
        self._chunk, self.start = chunk, start

    def _read(self) -> Iterator[Any]:
        yield self._chunk


class LazySource(PartSource):
    """Rows of a library that computes predictions later, where the rows are."""

    @abstractmethod
    def predictions(self, model: Any, method: str) -> Any:
        """What model.method(X) returns, not yet computed: predict, predict_proba or predict_log_proba."""


class RowsReadHere(Chunks):
    """The rows of a lazy source, which this process reads."""

    def empty(self) -> InputError:
        """The error where there are no rows."""
        return self._source.empty()


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
    return not class_names(kind).isdisjoint(FOREIGN)


def class_names(kind: type) -> set[tuple[str, str]]:
    """The package and the name of a class and of its base classes."""
    return {(each.__module__.partition(".")[0].lstrip("_"), each.__name__) for each in kind.__mro__}


def source_of(X: Any) -> Any:
    """The source that an object with `chunks`, or of another library, stands for; anything else as it is.

    The package `engines`, which reads objects of other libraries, is imported when there is one.
    """
    kind: Any = type(X)
    if is_foreign(kind):
        return import_module("likely.engines.objects").source_of(X)
    return Chunks(X) if not isinstance(X, PartSource) and callable(getattr(X, "chunks", None)) else X
