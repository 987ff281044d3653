"""Parquet files by row groups: one part for each, or for several small ones of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from likely.data.parts import closed_after
from likely.engines.base import Scan, chunk_rows, distinct, joined, without_views
from likely.engines.files import DataFile, FileSet, library_errors, readable, unchanged
from likely.errors import SourceError, listed

UNCOUNTED = 2**16  # bytes of a column that its dictionary may take
CODED = {"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"}  # encodings that Arrow reads as codes
BUFFERS = 2**26  # bytes for the columns of a row group, which is never in memory as a whole


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """Some row groups of a file."""

    file: DataFile
    groups: tuple[int, ...]
    start: int
    rows: int
    schema: Any  # of the source; types that differ between files are cast to it
    partition: tuple[tuple[str, Any], ...]  # values of Hive partition columns
    coded: tuple[str, ...] = ()  # columns of text that are read as the codes of a dictionary

    def chunks(self) -> Iterator[Any]:
        """The rows as Arrow tables."""
        size = chunk_rows(len(self.schema))
        with opened(self.file, len(self.schema), self.coded) as file:
            for batch in file.iter_batches(batch_size=size, row_groups=list(self.groups), use_threads=False):
                yield self._completed(batch)

    def _completed(self, batch: Any) -> Any:
        """A batch with its partition columns, in the order and with the types of the source."""
        import pyarrow as pa

        table = pa.Table.from_batches([batch])
        for name, value in self.partition:
            kind = self.schema.field(name).type
            table = table.append_column(name, pa.repeat(pa.scalar(value, type=kind), len(table)))
        table = table.select(self.schema.names)
        for j, field in enumerate(self.schema):
            if table.schema.field(j).type != field.type and field.name not in self.coded:
                table = table.set_column(j, field.name, self._cast(table.column(j), field))
        return without_views(table)

    def _cast(self, values: Any, field: Any) -> Any:
        """A column with the type of the source."""
        types = f"Column {field.name!r} is {values.type} in {self.file.path!r} and {field.type} in the source"
        with library_errors(f"{types}, which cannot hold all values", "Write all files with one type."):
            return values.cast(field.type)


class ParquetFiles(Scan):
    """The rows of Parquet files of one schema. Directories named ``key=value`` below the root give columns (Hive)."""

    def __init__(self, found: FileSet) -> None:
        import pyarrow as pa

        metadata = [_metadata(file) for file in found.files]
        values = [_hive_values(file.path, found.root) for file in found.files]
        schema = one_schema(found.files, [one for one, _, _ in metadata], promoted=True)
        hive = _hive_columns(found.files, values, schema.names)
        for name, (kind, _) in hive.items():
            schema = schema.append(pa.field(name, kind))
        distinct(schema.names, found.description)
        alike = (  # in every file: chunks of all parts have the same types
            {name for name in texts if own.field(name).type == schema.field(name).type} for own, _, texts in metadata
        )
        coded = tuple(sorted(set.intersection(*alike)))
        parts = []
        start = 0
        for i, (file, (_, counts, _)) in enumerate(zip(found.files, metadata, strict=True)):
            fixed = tuple((name, column[i]) for name, (_, column) in hive.items())
            for groups, rows in joined(counts):
                parts.append(ParquetPart(file, groups, start, rows, schema, fixed, coded))
                start += rows
        self._schema = schema
        parts = parts or [ParquetPart(found.files[0], (), 0, 0, schema, ())]
        super().__init__(found.description, schema.names, parts, start)

    def chunks(self) -> Iterator[Any]:
        """The rows of all parts, without the dictionaries that only its parts have."""
        with closed_after(super().chunks()) as chunks:
            for chunk in chunks:
                yield chunk if chunk.schema.types == self._schema.types else without_views(chunk.cast(self._schema))


@contextmanager
def opened(file: DataFile, columns: int = 1, coded: Sequence[str] = ()) -> Iterator[Any]:
    """A Parquet file, with errors that name it."""
    import pyarrow.parquet as pq

    size = max(2**14, min(2**20, BUFFERS // columns))
    with (
        unchanged(file),
        library_errors(f"{file.path!r} is not a complete Parquet file, or cannot be read", "Write it again."),
        readable(file.path),
        pq.ParquetFile(
            file.path,
            memory_map=False,
            pre_buffer=False,
            buffer_size=size,
            read_dictionary=list(coded),
            page_checksum_verification=True,  # of files that have checksums
        ) as f,
    ):
        yield f


def _metadata(file: DataFile) -> tuple[Any, list[int], tuple[str, ...]]:
    """The schema of a file, the number of rows of each row group, and its columns of text with few distinct values."""
    with opened(file) as found:
        groups = [found.metadata.row_group(i) for i in range(found.metadata.num_row_groups)]
        schema = found.schema_arrow.remove_metadata()
        return schema, [group.num_rows for group in groups], _coded(schema, groups)


def _coded(schema: Any, groups: Sequence[Any]) -> tuple[str, ...]:
    """Columns of text that a file has as codes of a dictionary: plain text takes more than 4 bytes for each value."""
    import pyarrow as pa

    kinds = (pa.string(), pa.large_string())
    text = {name: j for j, (name, kind) in enumerate(zip(schema.names, schema.types, strict=True)) if kind in kinds}
    for group in groups if text else ():
        flat = group.num_columns == len(schema)  # lists and objects take several columns, or none
        for column in map(group.column, tuple(text.values()) if flat else range(group.num_columns)):
            large = column.total_uncompressed_size > 4 * column.num_values + UNCOUNTED
            if large or not CODED.issuperset(column.encodings):
                text.pop(column.path_in_schema, None)
    return tuple(name for name in schema.names if name in text)


def one_schema(files: Sequence[DataFile], schemas: Sequence[Any], promoted: bool = False) -> Any:
    """The schema of all files: the same names and types; if `promoted`, also types that one type can hold."""
    import pyarrow as pa

    first = schemas[0]
    whole = pa.schema([pa.field(field.name, field.type) for field in first])
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        same_columns(files[0].path, first.names, file.path, schema.names)
        for field in schema:
            kind = whole.field(field.name).type
            if field.type != kind:
                place = whole.get_field_index(field.name)
                both = _common_type(kind, field.type) if promoted else None
                if both is None:
                    raise SourceError(
                        f"Column {field.name!r} is {first.field(field.name).type} in {files[0].path!r} and "
                        f"{field.type} in {file.path!r}. Write both with one type."
                    )
                whole = whole.set(place, pa.field(field.name, both))
    return whole


def same_columns(path: str, names: Sequence[str], other: str, others: Sequence[str]) -> None:
    """Raise where two files have different columns, in whatever order."""
    if set(names) != set(others):
        left, right = sorted(set(names) - set(others)), sorted(set(others) - set(names))
        parts = [f"{listed(left)} only in {path!r}"] * bool(left) + [f"{listed(right)} only in {other!r}"] * bool(right)
        raise SourceError(f"{path!r} and {other!r} have different columns: {', '.join(parts)}.")


def _common_type(one: Any, other: Any) -> Any:
    """A type for the values of both types; None if there is none: numbers are not text. Instants are in UTC."""
    import pyarrow as pa

    kinds = (one, other)
    times = [kind for kind in kinds if pa.types.is_timestamp(kind)]
    if len(times) == 2 and all(kind.tz for kind in times):
        one, other = (pa.timestamp(kind.unit, "UTC") for kind in times)
    elif len(times) == 1 and not times[0].tz and any(map(pa.types.is_date, kinds)):  # a date is its midnight
        return times[0]
    try:
        schemas = [pa.schema([("x", kind)]) for kind in (one, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").field("x").type
    except pa.ArrowException:
        return None


def _hive_values(path: str, root: str) -> dict[str, str | None]:
    """The directories ``key=value`` between the root and a file."""
    found: dict[str, str | None] = {}
    for directory in Path(path).absolute().relative_to(Path(root).absolute()).parts[:-1]:
        key, equals, value = directory.partition("=")
        if equals and key:
            if unquote(key) in found:
                raise SourceError(
                    f"{path!r} has several directories for the column {unquote(key)!r}. Rename one of them."
                )
            found[unquote(key)] = None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
    return found


def _hive_columns(
    files: Sequence[DataFile], values: Sequence[dict[str, str | None]], names: Sequence[str]
) -> dict[str, tuple[Any, list[Any]]]:
    """Partition columns that the files do not have themselves, with their types: whole numbers or text."""
    import pyarrow as pa

    columns: dict[str, tuple[Any, list[Any]]] = {}
    for file, found in zip(files[1:], values[1:], strict=True):
        if set(found) != set(values[0]):
            raise SourceError(
                f"{files[0].path!r} and {file.path!r} have different partition columns: {listed(values[0])} and "
                f"{listed(found)}."
            )
    for name in values[0]:
        if name not in names:
            texts = [found[name] for found in values]
            whole = all(text is None or (text.removeprefix("-").isascii() and _is_whole(text)) for text in texts)
            cells = [None if text is None else int(text) if whole else text for text in texts]
            columns[name] = pa.int64() if whole else pa.string(), cells
    return columns


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number as it is written: 007 is none."""
    digits = text.removeprefix("-")
    return digits.isdigit() and str(int(text)) == text and abs(int(text)) < 2**63
