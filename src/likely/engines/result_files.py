"""Predictions written to CSV or Parquet files, chunk by chunk. The file appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from likely.data.frames import as_narwhals, is_frame
from likely.data.new_files import new_file
from likely.data.parts import PartSource
from likely.errors import InputError, InputTypeError, listed, nearest
from likely.typing import AnyArray

ENDINGS = (".csv", ".parquet")


@contextmanager
def result_file(path: Any, source: Any = None) -> Iterator[ResultFile]:
    """A file of tables, in the format that its name ends with; it replaces an old one when all is written.

    It must not be one of the files that the source reads.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise InputTypeError(f"path={path!r} is not the name of a file.")
    name = Path(os.fsdecode(path))
    if name.suffix.lower() not in ENDINGS:
        raise InputError(f"path={str(name)!r}: files end with {' or '.join(ENDINGS)}. Choose one of these formats.")
    _check_other_file(name, source)
    with new_file(name) as file:
        writer = ResultFile(file, name.suffix.lower())
        try:
            yield writer
        except BaseException:  # the draft is still open: Arrow ends the writer later otherwise, and reports it closed
            with suppress(OSError):  # the disk may be full: the first error is the one to report
                writer.close()
            raise
        writer.close()


class ResultFile:
    """Writes Arrow tables, whose columns have the types of the first table."""

    def __init__(self, file: Any, suffix: str) -> None:
        self._file, self._suffix = file, suffix
        self._writer: Any = None
        self._schema: Any = None

    def write(self, table: Any) -> None:
        """Write the rows of a table."""
        import pyarrow as pa

        table = pa.table({name: _plain(name, table.column(name)) for name in table.column_names})
        try:
            if self._writer is None:
                self._schema = table.schema
                self._writer = self._open(self._file, self._schema)
            columns = [_typed(table.column(field.name), field) for field in self._schema]
            self._writer.write_table(pa.table(columns, schema=self._schema))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise self._unwritable(table, error) from None

    def _open(self, file: Any, schema: Any) -> Any:
        """A writer of the format."""
        import pyarrow.csv
        import pyarrow.parquet

        return (pyarrow.csv.CSVWriter if self._suffix == ".csv" else pyarrow.parquet.ParquetWriter)(file, schema)

    def _unwritable(self, table: Any, error: Exception) -> InputError:
        """The error for the column that cannot be written: each is written on its own to find it."""
        import pyarrow as pa

        for name in table.column_names:
            column = table.select([name])
            try:
                with self._open(pa.BufferOutputStream(), column.schema) as writer:
                    writer.write_table(column)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as found:
                other = " write a .parquet file," if self._suffix == ".csv" else ""
                return InputError(
                    f"Column {name!r} of type {column.schema.field(0).type} cannot be written to a {self._suffix} "
                    f"file ({found}). Convert it to text,{other} or leave it out of keep=."
                )
        return InputError(f"The rows cannot be written to a {self._suffix} file ({error}).")

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


def _check_other_file(path: Path, source: Any) -> None:
    """Raise where a file is one of those that a source reads."""
    read = source.paths if isinstance(source, PartSource) else ()
    if path.exists() and any(Path(each).exists() and path.samefile(each) for each in read):
        raise InputError(f"{os.fspath(path)!r} is a file that X reads. Write the predictions to another file.")


def _plain(name: str, column: Any) -> Any:
    """A column without dictionaries, whose entries differ between chunks, run lengths and views: CSV has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_run_end_encoded(column.type):
            column = pc.run_end_decode(column)
        whole = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
        return column.cast(whole.get(column.type, column.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _no_column(name, error) from None


def _typed(column: Any, field: Any) -> Any:
    """A column with the type that it has in the first table."""
    import pyarrow as pa

    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InputError(
            f"Column {field.name!r} has the type {column.type} in later rows, and {field.type} in the first ones "
            f"({error}). Convert it to one type in all rows, or leave it out of keep=."
        ) from None


def columns_of(chunk: Any) -> dict[Any, Any]:
    """The columns of a chunk by their names; those of an array are x0, x1, …"""
    if is_frame(chunk):
        frame = as_narwhals(chunk)
        return {name: frame.get_column(name) for name in frame.columns}
    array = np.asarray(chunk.toarray() if hasattr(chunk, "toarray") else chunk)
    if array.ndim not in (1, 2):
        raise InputTypeError(
            f"X is a {type(chunk).__name__}. Pass a frame, an array or a source; scan(...) reads files and iterators."
        )
    array = array[:, None] if array.ndim == 1 else array  # documents
    return {f"x{j}": array[:, j] for j in range(array.shape[1])}


def arrow_column(name: Any, column: Any) -> Any:
    """A column of a frame or an array as an Arrow array."""
    import pyarrow as pa

    try:
        if isinstance(column, np.ndarray):
            return pa.array(column)
        if column.implementation.is_polars() and column.dtype == nw.Object:  # its Arrow array has addresses of memory
            raise InputError(f"Column {name!r} has Python objects. Convert it to text, or leave it out of keep=.")
        return column.to_arrow()
    except (pa.ArrowException, TypeError, OverflowError, UnicodeError) as error:
        raise _no_column(name, error) from None


def _no_column(name: Any, error: Exception) -> InputError:
    return InputError(
        f"Column {name!r} has values of several types, or of a type that no file has ({error}). Convert it to text, or "
        "leave it out of keep=."
    )


def kept_columns(known: Sequence[Any], keep: str | Iterable[object]) -> list[Any]:
    """The columns that are written with the results: all, or those that `keep` names."""
    if isinstance(keep, str):
        if keep != "all":
            raise InputError(f"keep={keep!r} is neither 'all' nor a list of columns, such as keep=['id'].")
        return list(known)
    names = list(keep) if isinstance(keep, Iterable) else None
    if names is None or any(names.count(name) > 1 for name in names):
        raise InputError(f"keep={keep!r} is neither 'all' nor a list of different columns, such as keep=['id'].")
    missing = [name for name in names if name not in known]
    if missing:
        hint = nearest(str(missing[0]), map(str, known))
        raise InputError(f"keep names the column {listed(missing)}, which is not in X. {hint}")
    return names


def label_column(classes: AnyArray, codes: AnyArray, absent: AnyArray | None = None) -> Any:
    """The labels of class codes as an Arrow array; null in `absent` rows."""
    import pyarrow as pa

    try:
        labels = pa.array(classes if classes.dtype.kind in "iu" else classes.tolist())
    except (pa.ArrowException, TypeError, OverflowError, UnicodeError) as error:
        raise InputError(
            f"The labels {listed(classes)} are not a column of a file ({error}). Use text labels."
        ) from None
    return labels.take(pa.array(codes, mask=absent))
