"""Sources of rows: objects that yield their rows in chunks, tables of rows for predictions, and target columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from likely.data.frames import (
    check_targets_differ,
    names_column,
    rows_and_target,
    split_targets,
    split_weights,
    whole_frame,
)
from likely.data.labels import label_values
from likely.data.parts import ChunkOf, PartSource, closed_after, n_rows, read_here, source_of
from likely.data.row_draw import joined
from likely.data.table import Table
from likely.data.unseen import ReadsCategories, UnseenCounter, one_warning
from likely.data.validation import weight_values
from likely.errors import InputError, InputTypeError, listed
from likely.typing import AnyArray

Result = TypeVar("Result")


def is_source(X: Any) -> bool:
    """Whether X is a source, which yields its rows in chunks."""
    return isinstance(source_of(X), PartSource)


def in_memory(X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """All rows of a source as one frame, for estimators that need all rows at a time; anything else as it is.

    y and the weights of a source in parts must be names of columns.
    """
    X = source_of(X)
    if not isinstance(X, PartSource):
        return X
    check_targets(X, y, sample_weight)
    return joined([chunk for chunk, _ in numbered(X)])


class Tables:
    """X as tables: one, or one for each chunk. A source that can be read only once has one iteration.

    Categories that the model has not seen in training are reported after the last table.
    """

    def __init__(self, X: Any, read: Callable[[Any, int], Table], model: ReadsCategories | None = None) -> None:
        X = source_of(X)
        self._source = X if isinstance(X, PartSource) else None
        self._read = read
        self._only = None if self._source is not None else read(X, 0)
        self._unseen = UnseenCounter(model, alone=self._source is None)

    def __iter__(self) -> Iterator[Table]:
        if self._only is not None:
            self._unseen.add(self._only)
            yield self._only
        else:
            for chunk, start in numbered_once(self._source):
                table = self._read(chunk, start)
                self._unseen.add(table)
                yield table
        self._unseen.finish()

    def compute(self, work: Callable[[Table], Result]) -> list[Result]:
        """work(table) for every table."""
        with closed_after(iter(self)) as tables:
            return [work(table) for table in tables]


def numbered(source: Any) -> Iterator[tuple[Any, int]]:
    """Chunks of a source with at least one row, each with the number of its first row."""
    source = source_of(source)
    yield from _not_empty(source, source.chunks())


def numbered_once(source: Any) -> Iterator[tuple[Any, int]]:
    """The chunks of `numbered`, for a caller that reads them once."""
    source = source_of(source)
    yield from _not_empty(source, source.chunks_once())


def _not_empty(source: PartSource, chunks: Iterator[Any]) -> Iterator[tuple[Any, int]]:
    found = False
    for chunk, start in numbered_chunks(chunks, source.start):
        found = True
        yield chunk, start
    if not found:
        raise source.empty()


def numbered_chunks(chunks: Iterator[Any], start: int = 0) -> Iterator[tuple[Any, int]]:
    """Chunks with at least one row, each with the number of its first row, which is `start` for the first one."""
    with closed_after(chunks):
        for part in chunks:
            chunk = whole_frame(part)
            if not (hasattr(chunk, "shape") or isinstance(chunk, list | tuple)):
                kind = type(chunk).__name__
                raise InputTypeError(f"chunks() yielded a {kind}, not an array, sparse rows or a frame.")
            if n_rows(chunk):
                yield chunk, start
            start += n_rows(chunk)


def targets_apart(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    named: Callable[[Any], bool] = names_column,
    values: Callable[[Any, int], AnyArray] = label_values,
    start: int = 0,
) -> tuple[Any, Any, Any]:
    """(X, y, sample_weight): columns of a frame that y or the weights are names of are taken out of it.

    Errors of `values(y, start)` count rows from `start`.
    """
    check_targets_differ(y, sample_weight, named)
    X, y = rows_and_target(X, y)
    if named(y):
        X, found = split_targets(X, y)
        y = values(found, start)
    if isinstance(sample_weight, str):
        X, found = split_weights(X, sample_weight)
        sample_weight = weight_values(found)
    return X, y, sample_weight


def predicted_with_targets(
    predict: Callable[[Any], Any],
    X: Any,
    y: Any,
    sample_weight: Any = None,
    named: Callable[[Any], bool] = names_column,
    values: Callable[[Any, int], AnyArray] = label_values,
) -> tuple[Any, Any, Any]:
    """(predict(X), y, sample_weight), where y and the weights may be names of columns of X.

    A source is read once: its rows may have another order in the next pass, as those of a query.
    """
    X, y_is_named, weights_are_named = source_of(X), named(y), isinstance(sample_weight, str)
    if not is_source(X):
        X, y, sample_weight = targets_apart(X, y, sample_weight, named, values)
        return predict(X), y, sample_weight
    if not X.has_fixed_order:
        check_names(y_is_named, sample_weight)
    if not (y_is_named or weights_are_named):
        return predict(read_here(X)), y, sample_weight
    predictions, targets, weights = [], [], []
    with one_warning(), closed_after(numbered_once(X)) as chunks:
        for chunk, start in chunks:
            rows, *found = targets_apart(chunk, y, sample_weight, named, values, start)
            predictions.append(predict(ChunkOf(rows, start)))
            targets.append(found[0])
            weights.append(found[1])
    return (
        np.concatenate(predictions),
        np.concatenate(targets) if y_is_named else y,
        np.concatenate(weights) if weights_are_named else sample_weight,
    )


def check_targets(source: PartSource, y: Any, sample_weight: Any, named: Callable[[Any], bool] = names_column) -> None:
    """Raise where y or the weights are arrays that the source cannot take with its rows."""
    _, y, sample_weight = source.with_targets(
        y, sample_weight, lambda y: None if named(y) else y
    )  # None for arrays that it takes
    check_names(y is None or named(y), sample_weight)


def check_names(target_is_named: bool, sample_weight: Any) -> None:
    """Raise where labels or weights of a source in parts are not columns of it."""
    for name, fine in (
        ("y", target_is_named),
        ("sample_weight", sample_weight is None or isinstance(sample_weight, str)),
    ):
        if not fine:
            raise InputError(
                f"{name} must be the name of a column of X, because X is read in parts: an array of its own has no "
                "fixed order of rows. Add the values to X as a column, and pass its name."
            )


def alike(table: Table, names: list[str], sparse: bool) -> Table:
    """A chunk with the columns in the order of the first chunk; raise where it has other columns or another format."""
    if table.is_sparse != sparse:
        raise InputError(f"The chunk from row {table.start} on: either all chunks must be sparse, or none.")
    if set(table.names) != set(names):
        raise InputError(
            f"The chunk from row {table.start} on has the columns {listed(table.names)}, "
            f"but the first chunk has {listed(names)}."
        )
    return table.reordered(names)
