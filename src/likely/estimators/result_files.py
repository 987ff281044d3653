"""Predictions of rows of any number, written to a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from likely.data.frames import as_narwhals, column_names, is_frame, whole_frame
from likely.data.parts import LazySource, PartSource, closed_after, source_of
from likely.data.sources import ChunkOf, is_source, n_rows, numbered_once
from likely.engines.result_files import arrow_column, columns_of, kept_columns, label_column, result_file
from likely.errors import InputError, listed
from likely.model.result_names import check_clash, result_names
from likely.numerics.progress import row_progress


def write_predictions(
    model: Any, X: Any, path: Any, keep: str | Iterable[object], wanted: list[str], prefix: str
) -> int:
    """Write classes, class probabilities and the `wanted` further results of all rows to a file; their number."""
    import pyarrow as pa

    names = result_names(model.classes_.tolist(), prefix)
    source = source_of(X)
    chunks = numbered_once(source) if is_source(source) else iter([(whole_frame(X), 0)])
    total = None
    if isinstance(source, PartSource) and not isinstance(source, LazySource):  # Spark would count its rows
        total = source.rows
    kept: list[Any] | None = None
    rows = 0
    with result_file(path, source) as file, closed_after(chunks), row_progress(total) as progress:
        for chunk, start in chunks:
            columns = columns_of(chunk)
            if kept is None:
                kept = kept_columns(list(columns), keep)
                check_clash([*names, *(prefix + name for name in wanted)], map(str, kept))
            elif isinstance(keep, str) and not set(columns) <= set(kept):
                more = listed([name for name in columns if name not in kept])
                raise InputError(
                    f"The chunk from row {start} on has the column {more}, and the first chunk has not. Name the "
                    "columns to write in keep=."
                )
            file.write(pa.table(_chosen(columns, kept, start) | _results(model, chunk, start, names, wanted, prefix)))
            rows += n_rows(chunk)
            progress.read(n_rows(chunk))
    return rows


def _results(model: Any, chunk: Any, start: int, names: list[str], wanted: list[str], prefix: str) -> dict[str, Any]:
    """The columns with the predictions of a chunk, whose first row has the number `start`."""
    features = _features_of(model, chunk) if not start else ChunkOf(_features_of(model, chunk), start)
    probability = model.predict_proba(features)
    results = {names[0]: label_column(model.classes_, probability.argmax(axis=1))}
    results |= dict(zip(names[1:], probability.T, strict=True))
    return results | {prefix + name: getattr(model, name)(features) for name in wanted}


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
