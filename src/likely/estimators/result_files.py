"""Predictions of rows of any number, written to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from likely.data.frames import as_narwhals, column_names, is_frame, whole_frame
from likely.data.parts import ChunkOf, LazySource, PartSource, closed_after, n_rows, source_of
from likely.data.row_draw import taken
from likely.data.sources import numbered_once
from likely.data.unseen import one_warning
from likely.engines.result_files import arrow_column, columns_of, kept_columns, label_column, result_file
from likely.errors import CellError, InputError, LikelyWarning, amount, listed, warn
from likely.model.result_names import check_clash
from likely.numerics.arrays import LARGEST_NUMBER
from likely.numerics.progress import row_progress
from likely.typing import AnyArray, Array


@dataclass(frozen=True, slots=True)
class Results:
    """What is written of each row: columns of numbers, with the most probable of `classes` before them."""

    names: list[str]  # of the columns
    compute: Callable[[Any], list[Array]]  # the numbers of some rows; the probabilities of the classes are the first
    classes: AnyArray | None = None

    def columns(self, numbers: list[Array], absent: AnyArray) -> dict[str, Any]:
        """The columns as Arrow arrays, null in `absent` rows."""
        import pyarrow as pa

        found = [pa.array(values, mask=absent) for values in numbers]
        if self.classes is not None:
            codes = np.argmax(numbers[: len(self.classes)], axis=0)
            found.insert(0, label_column(self.classes, codes, absent))
        return dict(zip(self.names, found, strict=True))


def write_predictions(model: Any, X: Any, path: Any, keep: str | Iterable[object], results: Results) -> int:
    """Write results of all rows to a file; their number."""
    import pyarrow as pa

    source = source_of(X)
    chunks = numbered_once(source) if isinstance(source, PartSource) else iter([(whole_frame(X), 0)])
    total = None
    if isinstance(source, PartSource) and not isinstance(source, LazySource):  # Spark would count its rows
        total = source.rows
    kept: list[Any] | None = None
    rows, unanswered = 0, 0
    with one_warning(), result_file(path, source) as file, closed_after(chunks), row_progress(total) as progress:
        for chunk, start in chunks:
            columns = columns_of(chunk)
            if kept is None:
                kept = kept_columns(list(columns), keep)
                check_clash(results.names, map(str, kept))
            elif isinstance(keep, str) and not set(columns) <= set(kept):
                added = listed([name for name in columns if name not in kept])
                raise InputError(
                    f"The chunk from row {start} on has the column {added}, and the first chunk has not. Name the "
                    "columns to write in keep=."
                )
            numbers, absent = _numbers(model, chunk, start, results)
            file.write(pa.table(_chosen(columns, kept, start) | results.columns(numbers, absent)))
            rows, unanswered = rows + n_rows(chunk), unanswered + int(absent.sum())
            progress.read(n_rows(chunk))
    if unanswered:
        warn(
            f"{amount(unanswered, 'row has', 'rows have')} no prediction: a number is beyond 1e140, the limit of "
            "continuous columns. Replace codes for missing values by missing values.",
            LikelyWarning,
        )
    return rows


def _numbers(model: Any, chunk: Any, start: int, results: Results) -> tuple[list[Array], AnyArray]:
    """The numbers of the rows of a chunk, whose first row has the number `start`, and the rows without.

    These have a finite number beyond 1e140. Another row stands for each of them, so that the others keep their numbers.
    """
    features, place = _features_of(model, chunk), np.arange(n_rows(chunk))
    absent = np.zeros(len(place), dtype=bool)
    while not absent.all():
        place[absent] = np.argmin(absent)
        rows = taken(features, place) if absent.any() else features
        rows = ChunkOf(rows, start) if start else rows
        try:
            return results.compute(rows), absent
        except CellError as error:
            beyond = _beyond_limit(features, error.name) & ~absent
            if not beyond.any():
                raise
            absent |= beyond
    return [np.zeros(len(place))] * (len(results.names) - (results.classes is not None)), absent


def _beyond_limit(features: Any, name: str | None) -> AnyArray:
    """Whether each row of a chunk has a finite number beyond 1e140 in a column."""
    column = {str(each): values for each, values in columns_of(features).items()}.get(str(name))
    try:
        values = column.cast(nw.Float64).to_numpy() if isinstance(column, nw.Series) else column
        size = np.abs(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError, nw.exceptions.NarwhalsError):
        return np.zeros(n_rows(features), dtype=bool)
    return (size > LARGEST_NUMBER) & (size < np.inf)


def _features_of(model: Any, chunk: Any) -> Any:
    """A frame with the columns of the training rows alone; anything else as it is."""
    known = getattr(model, "feature_names_in_", None)
    if known is None or not is_frame(chunk):
        return chunk
    used = [name for name in column_names(chunk) if name in known]
    return as_narwhals(chunk).select(used).to_native() if used else chunk


def _chosen(columns: Mapping[Any, Any], kept: list[Any], start: int) -> dict[str, Any]:
    """Some columns of a chunk as Arrow arrays."""
    for name in kept:
        if name not in columns:
            raise InputError(f"The chunk from row {start} on has no column {name!r}, and the first chunk has one.")
    return {str(name): arrow_column(name, columns[name]) for name in kept}
