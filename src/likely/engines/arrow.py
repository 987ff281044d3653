"""Arrow: IPC (Feather) files and streams, datasets, and other objects that yield record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likely.data.parts import Part
from likely.engines.base import Scan, Stream, chunk_rows, distinct, joined, pieces, without_views
from likely.engines.files import DataFile, FileSet, library_errors, readable, unchanged
from likely.engines.parquet import ParquetPart, one_schema
from likely.errors import SourceError


class ArrowFiles(Scan):
    """The rows of Arrow IPC files or streams with the same columns, one part for each file."""

    def __init__(self, found: FileSet) -> None:
        schemas = [_schema(file) for file in found.files]
        columns = distinct(schemas[0].names, found.description)
        one_schema(found.files, schemas)
        super().__init__(found.description, columns, [ArrowFile(file, columns) for file in found.files])


class ArrowFile(Stream):
    """The rows of an Arrow IPC file or stream."""

    def __init__(self, file: DataFile, columns: Sequence[str]) -> None:
        super().__init__(repr(file.path), columns)
        self._file = file

    def _read(self, rows: int) -> Iterator[Any]:
        import pyarrow as pa

        with _opened(self._file) as (_, batches):
            for batch in batches:
                yield from pieces(pa.Table.from_batches([batch]).select(self.columns), rows)


@contextmanager
def _opened(file: DataFile) -> Iterator[tuple[Any, Iterator[Any]]]:
    """The schema and the record batches of a file."""
    import pyarrow as pa

    errors = library_errors(f"{file.path!r} is not a complete Arrow file", "Write it again.")
    with unchanged(file), errors, readable(file.path), pa.OSFile(file.path) as opened:
        if opened.read(6) == b"ARROW1":
            reader = pa.ipc.open_file(opened)
            yield reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            opened.seek(0)
            stream = pa.ipc.open_stream(opened)
            yield stream.schema, iter(stream)


def _schema(file: DataFile) -> Any:
    with _opened(file) as (schema, _):
        return schema


class DatasetRows(Scan):
    """The rows of an Arrow dataset, one part for each fragment, or for some of its row groups."""

    def __init__(self, dataset: Any) -> None:
        description, parts = f"a {type(dataset).__name__} of Arrow", list[Part]()
        total: int | None = 0
        with library_errors(f"{description} cannot be read"):
            for fragment in dataset.get_fragments():
                for groups, rows in _row_groups(fragment):
                    parts.append(_part(fragment, groups, rows, total or 0, dataset.schema))
                    total = None if total is None or rows is None else total + rows
        if not parts:
            raise SourceError(f"{description} has no fragments, and so no rows.")
        super().__init__(description, dataset.schema.names, parts, total)


def _row_groups(fragment: Any) -> Iterator[tuple[tuple[int, ...], int | None]]:
    """The row groups of a fragment, joined to parts, with their numbers of rows; none where it has no row groups."""
    if not hasattr(fragment, "row_groups"):
        yield (), None
        return
    ids = [group.id for group in fragment.row_groups]
    for places, rows in joined(group.num_rows for group in fragment.row_groups):
        yield tuple(ids[place] for place in places), rows


def _part(fragment: Any, groups: tuple[int, ...], rows: int | None, start: int, schema: Any) -> Part:
    """Parquet files of this machine are read by row groups in small pieces, anything else as Arrow does."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    file = _local_file(fragment)
    if file is not None and rows is not None:
        own = set(fragment.physical_schema.names)
        keys = {k: v for k, v in ds.get_partition_keys(fragment.partition_expression).items() if k not in own}
        plain = not any(pa.types.is_dictionary(schema.field(key).type) for key in keys if key in schema.names)
        if plain and own | set(keys) == set(schema.names):
            return ParquetPart(file, groups, start, rows, schema.remove_metadata(), tuple(keys.items()))
    return FragmentPart(fragment.subset(row_group_ids=list(groups)) if groups else fragment, schema, start, file)


@dataclass(frozen=True, slots=True)
class FragmentPart:
    """A fragment of a dataset."""

    fragment: Any
    schema: Any
    start: int
    file: DataFile | None  # None if it is not a file of this machine

    def chunks(self) -> Iterator[Any]:
        """The rows as Arrow tables."""
        import pyarrow as pa

        size = chunk_rows(len(self.schema.names))
        with unchanged(self.file), library_errors("A fragment of a dataset of Arrow cannot be read"):
            for batch in self.fragment.to_batches(
                schema=self.schema, batch_size=size, batch_readahead=1, use_threads=False
            ):
                yield without_views(pa.Table.from_batches([batch]))


def _local_file(fragment: Any) -> DataFile | None:
    """The file of a fragment as it is now; None if it has none on this machine."""
    if not hasattr(fragment, "path") or type(fragment.filesystem).__name__ != "LocalFileSystem":
        return None
    with readable(fragment.path):
        stat = Path(fragment.path).stat()
    return DataFile(fragment.path, "", "none", stat.st_size, stat.st_mtime_ns)


class RecordBatches(Stream):
    """The rows of an object of Arrow, which a method of it yields in record batches."""

    def __init__(
        self,
        description: str,
        columns: Sequence[str],
        batches: Callable[..., Iterator[Any]],
        rows: int | None = None,
    ) -> None:
        super().__init__(description, columns, rows=rows)
        self._batches = batches

    def _read(self, rows: int) -> Iterator[Any]:
        import pyarrow as pa

        with library_errors(f"{self.description} cannot be read"):
            for batch in self._batches(batch_size=rows):
                yield pa.Table.from_batches([batch])
