"""Predictions of rows of any number, written to a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from likely.model.result_names import check_clash, result_names
from likely.numerics.arrays import LARGEST_NUMBER
from likely.numerics.progress import row_progress
from likely.typing import AnyArray, Array


def write_predictions(
    model: Any, X: Any, path: Any, keep: str | Iterable[object], wanted: list[str], prefix: str
) -> int:
    """Write classes, class probabilities and the `wanted` further results of all rows to a file; their number."""
    import pyarrow as pa

    names = result_names(model.classes_.tolist(), prefix)
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
                check_clash([*names, *(prefix + name for name in wanted)], map(str, kept))
            elif isinstance(keep, str) and not set(columns) <= set(kept):
                added = listed([name for name in columns if name not in kept])
                raise InputError(
                    f"The chunk from row {start} on has the column {added}, and the first chunk has not. Name the "
                    "columns to write in keep=."
                )
            probability, more, absent = _results(model, chunk, start, wanted)
            results = {names[0]: label_column(model.classes_, probability.argmax(axis=1), absent)}
            numbers = [*names[1:], *(prefix + name for name in wanted)]
            for name, values in zip(numbers, [*probability.T, *more], strict=True):
                results[name] = pa.array(values, mask=absent)
            file.write(pa.table(_chosen(columns, kept, start) | results))
            rows, unanswered = rows + n_rows(chunk), unanswered + int(absent.sum())
            progress.read(n_rows(chunk))
    if unanswered:
        warn(
            f"{amount(unanswered, 'row has', 'rows have')} no prediction: a number is beyond 1e140, the limit of "
            "continuous columns. Replace codes for missing values by missing values.",
            LikelyWarning,
        )
    return rows


def _results(model: Any, chunk: Any, start: int, wanted: list[str]) -> tuple[Array, list[Array], AnyArray]:
    """Probabilities and further results of a chunk, whose first row has the number `start`, and the rows without.

    These have a finite number beyond 1e140. Another row stands for each of them, so that the others keep their numbers.
    """
    features, place = _features_of(model, chunk), np.arange(n_rows(chunk))
    absent = np.zeros(len(place), dtype=bool)
    while not absent.all():
        place[absent] = np.argmin(absent)
        rows = taken(features, place) if absent.any() else features
        rows = ChunkOf(rows, start) if start else rows
        try:
            return model.predict_proba(rows), [getattr(model, name)(rows) for name in wanted], absent
        except CellError as error:
            beyond = _beyond_limit(features, error.name) & ~absent
            if not beyond.any():
                raise
            absent |= beyond
    return np.zeros((len(place), len(model.classes_))), [np.zeros(len(place)) for _ in wanted], absent


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
