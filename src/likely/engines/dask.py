"""Rows in partitions of Dask: statistics are computed where the partitions are, and added in a tree of tasks.

Every pass is one graph, which the current scheduler of Dask computes: threads, processes or a cluster. A task returns
the statistics of a partition. Partitions and sums are released as soon as they are added, and computed again if a
worker is lost.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from likely.data.parts import Chunks, LazySource, Part, PartSource, RowsWithTargets, source_of
from likely.data.row_draw import taken
from likely.engines.base import HEAD_ROWS
from likely.engines.worker import Rows, add_parts, no_predictions, predict_rows, run_part
from likely.errors import InputError, InputTypeError, MissingExtraError
from likely.numerics.tree_sum import FAN_IN

try:
    import dask
except ModuleNotFoundError as error:
    raise MissingExtraError("dask") from error

Result = TypeVar("Result")


def on_dask(source: Any) -> PartSource:
    """Compute the parts of a source on the current scheduler of Dask.

    A source is otherwise read by threads of this process. Workers of a cluster must be able to read the files under
    the same names.

    Parameters
    ----------
    source : scan or other source in parts
        A `likely.scan` of files, whose parts are row groups of Parquet files or other pieces of files.

    Returns
    -------
    source
        The same rows. Pass it to `fit`, `partial_fit` and `forget`, and to `predict` and `predict_proba`, which then
        return a Dask array.

    Raises
    ------
    InputTypeError
        For objects that are not a source in parts.

    Examples
    --------
    >>> from likely import NaiveBayes, scan  # doctest: +SKIP
    >>> from likely.engines.dask import on_dask
    >>> model = NaiveBayes().fit(on_dask(scan("rows/*.parquet")), "label")  # doctest: +SKIP
    """
    found = source_of(source)
    if not isinstance(found, PartSource) or isinstance(found, Chunks):
        raise InputTypeError(
            f"on_dask needs a source in parts, such as likely.scan('rows/*.parquet'), not a {type(source).__name__}."
        )
    return found if isinstance(found, DaskSource) else DaskParts(found)


@dataclass(frozen=True, slots=True, eq=False)
class DaskPart:
    """A partition: the tasks whose results make up a part."""

    make: Callable[..., Part]
    tasks: tuple[Any, ...]  # the arguments of `make`, some of which are Delayed
    start: int = 0

    def chunks(self) -> Iterator[Any]:
        """The rows, fetched from the workers that have them."""
        yield from self.make(*dask.compute(*self.tasks)).chunks()


class DaskSource(LazySource):
    """Rows in partitions that tasks of Dask return."""

    @abstractmethod
    def parts(self) -> Sequence[DaskPart]:
        """A part for each partition."""

    @property
    def sizes(self) -> Sequence[float]:
        """The number of rows of each partition, NaN where it is not known."""
        return [np.nan] * len(self.parts())

    def _each(self, work: Callable[[int, Part], Any]) -> list[Any]:
        """work(number, part) for every partition, as a Delayed each; `work` is sent to each worker once."""
        run = dask.delayed(_with_part, pure=False)
        shared = dask.delayed(work, pure=False, traverse=False)
        return [run(shared, i, part.make, *part.tasks) for i, part in enumerate(self.parts())]

    def compute(self, work: Callable[[int, Part], Result]) -> Generator[Result]:
        """work(number, part) for every partition, in one graph."""
        yield from dask.compute(*self._each(partial(run_part, work)))

    def sums(self, work: Callable[[int, Part], Result]) -> Generator[tuple[Result | None, int]]:
        """The sum over all partitions, added by tasks of Dask in the tree of `TreeSum`."""
        values, add = self._each(partial(run_part, work)), dask.delayed(add_parts, pure=False)
        while len(values) > 1:
            values = [add(values[i : i + FAN_IN]) for i in range(0, len(values), FAN_IN)]
        (total,) = dask.compute(values[0])
        yield total, 0

    def head(self) -> Iterator[Any]:
        """The first rows of each partition; those of later ones are fetched where the first ones are empty."""
        for task in self._each(_first_rows):
            yield from dask.compute(task)[0]

    def predictions(self, model: Any, method: str) -> Any:
        """A Dask array of the predictions, with a chunk for each partition."""
        import dask.array as da

        none = no_predictions(model, method)
        tasks = self._each(partial(_predictions, model, method))
        shapes = [(size, *none.shape[1:]) for size in self.sizes]
        chunks = [da.from_delayed(task, shape, none.dtype) for task, shape in zip(tasks, shapes, strict=True)]
        return da.concatenate(chunks, allow_unknown_chunksizes=True)


def _with_part(work: Callable[[int, Part], Any], number: int, make: Callable[..., Part], *values: Any) -> Any:
    return work(number, make(*values))


def _first_rows(number: int, part: Part) -> list[Any]:
    """The first rows of a part, as a list of one chunk; no chunk where the part is empty."""
    for chunk in part.chunks():
        if chunk.shape[0]:
            return [taken(chunk, np.arange(min(HEAD_ROWS, chunk.shape[0])))]
    return []


def _predictions(model: Any, method: str, number: int, part: Part) -> Any:
    """The predictions of the rows of a part."""
    found = [predict_rows(model, method, chunk) for chunk in part.chunks()]
    return np.concatenate([no_predictions(model, method), *found])


class DaskFrame(DaskSource):
    """The rows of a DataFrame of Dask."""

    description = "a DataFrame of Dask"

    def __init__(self, frame: Any) -> None:
        self._parts = tuple(DaskPart(Rows, ([task],)) for task in frame.to_delayed())

    def parts(self) -> Sequence[DaskPart]:
        """A part for each partition."""
        return self._parts


class DaskArray(DaskSource):
    """The rows of an array of Dask, with arrays of labels and of weights if a model is fitted."""

    description = "an array of Dask"

    def __init__(self, X: Any, y: Any = None, weights: Any = None) -> None:
        if X.ndim != 2:
            raise InputError(f"X is a Dask array of {X.ndim} dimensions. Expected 2D array: use X.reshape(...).")
        self._X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        self._y, self._weights = y, weights

    @property
    def sizes(self) -> Sequence[float]:
        """The number of rows of each chunk, NaN where it is not known."""
        return list(self._X.chunks[0])

    @property
    def rows(self) -> int | None:
        """The number of rows, None if sizes of chunks are not known."""
        rows = float(sum(self.sizes))
        return None if np.isnan(rows) else int(rows)

    def parts(self) -> Sequence[DaskPart]:
        """A part for each chunk of rows."""
        sizes = [0 if np.isnan(size) else int(size) for size in self.sizes]
        given = (self._y, self._weights)
        columns = [
            self._X.to_delayed()[:, 0],
            *([None] * len(sizes) if array is None else array.to_delayed() for array in given),
        ]
        starts = np.cumsum([0, *sizes[:-1]]).tolist() if self.rows is not None else [0] * len(sizes)
        tasks = zip(*columns, strict=True)
        return tuple(DaskPart(array_part, (start, *row), start) for start, row in zip(starts, tasks, strict=True))

    def with_targets(self, y: Any, sample_weight: Any, plain: Callable[[Any], Any]) -> tuple[PartSource, Any, Any]:
        """The rows with y and weights, which must be arrays of Dask."""
        return DaskArray(self._X, self._beside("y", y), self._beside("sample_weight", sample_weight)), None, None

    def _beside(self, name: str, values: Any) -> Any:
        """Labels or weights in the chunks of the rows."""
        if values is None:
            return None
        if not isinstance(values, type(self._X)) or values.ndim != 1:
            raise InputTypeError(
                f"{name} must be a Dask array of one dimension, as X is a Dask array. Use "
                f"dask.array.from_array({name}, chunks=(X.chunks[0],)), "
                "or a Dask DataFrame with a column for it, whose name you pass."
            )
        chunks = self._X.chunks[0]
        if values.chunks[0] == chunks:
            return values
        if self.rows is None or np.isnan(values.shape[0]):
            if len(values.chunks[0]) == len(chunks):
                return values  # chunks of unknown size: compared when they are read
            raise InputError(
                f"X has {len(chunks)} chunks of rows and {name} has {len(values.chunks[0])}, of unknown size. Call "
                "compute_chunk_sizes() of both."
            )
        if values.shape[0] != self.rows:
            raise InputError(
                f"X has {self.rows} rows and {name} has {values.shape[0]}: "
                "Found input variables with inconsistent numbers of samples."
            )
        return values.rechunk((chunks,))


def array_part(start: int, X: Any, y: Any = None, weights: Any = None) -> Rows:
    """A chunk of rows, with its labels and weights where there are any."""
    rows = X.shape[0]
    for name, values in (("y", y), ("sample_weight", weights)):
        if values is not None and len(values) != rows:
            raise InputError(f"A chunk of X has {rows} rows, and that of {name} has {len(values)}. Use equal chunks.")
    return Rows([X if y is None and weights is None else RowsWithTargets(X, y, weights)], start)


class DaskParts(DaskSource):
    """The parts of another source, such as pieces of files, which workers read."""

    description = ""

    def __init__(self, source: PartSource) -> None:
        self._source, self.description = source, source.description
        self.paths, self.has_fixed_order = source.paths, source.has_fixed_order

    @property
    def rows(self) -> int | None:
        """The number of rows of the source."""
        return self._source.rows

    def parts(self) -> Sequence[DaskPart]:
        """The parts of the source."""
        return tuple(
            DaskPart(itself, (dask.delayed(part, pure=False, traverse=False),), part.start)
            for part in self._source.parts()
        )

    def chunks(self) -> Iterator[Any]:
        """The rows, read by this process."""
        return self._source.chunks()

    def head(self) -> Iterator[Any]:
        """The first rows, read by this process."""
        return self._source.head()


def itself(part: Part) -> Part:
    """The part that a worker received."""
    return part
