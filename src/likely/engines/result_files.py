"""Predictions written to CSV or Parquet files, chunk by chunk. The file appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from likely.data.frames import is_frame
from likely.data.new_files import new_file
from likely.errors import InputError, InputTypeError, listed, nearest
from likely.typing import AnyArray

FORMATS = (".csv", ".parquet")


@contextmanager
def result_file(path: Any) -> Iterator[ResultFile]:
    """A file of tables, in the format that its name ends with; it replaces an old one when all is written."""
    if not isinstance(path, str | bytes | os.PathLike):
        raise InputTypeError(f"path={path!r} is not the name of a file.")
    name = Path(os.fsdecode(path))
    if name.suffix.lower() not in FORMATS:
        raise InputError(f"path={str(name)!r}: files end with {' or '.join(FORMATS)}. Choose one of these formats.")
    with new_file(name) as file:
        writer = ResultFile(file, name.suffix.lower())
        try:
            yield writer
        except BaseException:
            writer.abandon()
            raise
        writer.close()


class ResultFile:
    """Writes Arrow tables, which all have the columns of the first one."""

    def __init__(self, file: Any, suffix: str) -> None:
        self._file, self._suffix = file, suffix
        self._writer: Any = None
        self._schema: Any = None

    def write(self, table: Any) -> None:
        """Write the rows of a table."""
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet

        table = _plain(table)
        if self._writer is None:
            self._schema = table.schema
            kind: Any = pa.csv.CSVWriter if self._suffix == ".csv" else pa.parquet.ParquetWriter
            self._writer = kind(self._file, self._schema)
        try:
            table = table.cast(self._schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise InputError(f"Later rows have other columns or types than the first ones ({error}).") from None
        self._writer.write_table(table)

    def abandon(self) -> None:
        """End the writer while the draft is still open: Arrow ends it later otherwise, and reports a closed file."""
        with suppress(OSError):  # the disk may be full: the first error is the one to report
            self.close()

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


def _plain(table: Any) -> Any:
    """A table without dictionaries, whose entries differ between chunks."""
    import pyarrow as pa

    for j, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(j, field.name, table.column(j).cast(field.type.value_type))
    return table


def arrow_table(chunk: Any) -> Any:
    """A chunk as an Arrow table; the columns of an array are x0, x1, …"""
    import pyarrow as pa

    if isinstance(chunk, pa.Table):
        return chunk
    if is_frame(chunk):
        frame = nw.from_native(chunk, eager_only=True)
        try:
            return frame.to_arrow().select(frame.columns)  # without an index of pandas
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(f"X has a column of values of several types: {error}. Convert it to text.") from None
    array = np.asarray(chunk.toarray() if hasattr(chunk, "toarray") else chunk)
    if array.ndim not in (1, 2):
        raise InputTypeError(
            f"X is a {type(chunk).__name__}. Pass a frame, an array or a source; scan(...) reads files and iterators."
        )
    array = array[:, None] if array.ndim == 1 else array  # documents
    return pa.table({f"x{j}": array[:, j] for j in range(array.shape[1])})


def kept_columns(table: Any, keep: str | Sequence[str]) -> list[str]:
    """The columns that are written beside the results: all, or those that `keep` names."""
    if isinstance(keep, str):
        if keep != "all":
            raise InputError(f"keep={keep!r} is neither 'all' nor a list of columns, such as keep=['id'].")
        return list(table.column_names)
    if not isinstance(keep, Iterable) or len(set(names := list(keep))) < len(names):
        raise InputError(f"keep={keep!r} is neither 'all' nor a list of different columns, such as keep=['id'].")
    missing = [name for name in names if name not in table.column_names]
    if missing:
        hint = nearest(str(missing[0]), table.column_names)
        raise InputError(f"keep names the column {listed(missing)}, which is not in X. {hint}")
    return names


def label_column(classes: AnyArray, codes: AnyArray) -> Any:
    """The labels of class codes as an Arrow array."""
    import pyarrow as pa

    try:
        labels = pa.array(classes.tolist())
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError) as error:
        raise InputError(f"The labels {listed(classes)} are no column of a file ({error}). Use text labels.") from None
    return labels.take(pa.array(codes))
