"""What a `Scan` reads through: an origin of rows, streams that are one part, sizes of chunks, nearest names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from likely.data.parts import Part, changed_rows
from likely.errors import LikelyError, SourceError, listed

PART_ROWS = 2**18  # row groups of a file are joined up to this many rows
CHUNK_ROWS, CHUNK_CELLS = 2**17, 2**22
HEAD_ROWS = 1000  # rows that are fetched from workers to find the names and types of columns


class Origin:
    """Where the rows of a scan are: files, a query or an object."""

    notes: tuple[str, ...] = ()  # how cells were read, where this is not obvious
    has_fixed_order = True  # whether the rows have the same order in every pass; queries without ORDER BY may not

    def __init__(
        self, description: str, columns: Sequence[str], parts: Sequence[Part] = (), rows: int | None = None
    ) -> None:
        self.description, self.columns = description, distinct(columns, description)
        self._parts, self._rows = tuple(parts), rows

    @property
    def rows(self) -> int | None:
        """The number of rows; None if it is not known before all parts have been read."""
        counts = [self._rows] if self._rows is not None else [getattr(part, "_rows", None) for part in self.parts()]
        return None if None in counts else sum(count for count in counts if count is not None)

    def parts(self) -> Sequence[Part]:
        """The parts, which can be read independently of one another."""
        return self._parts

    def plain(self, chunk: Any) -> Any:
        """A chunk without the dictionaries that only parts have."""
        return chunk


class Stream(Origin, ABC):
    """Rows that are read from the first to the last: one part, which starts again at every call of `chunks`."""

    start = 0

    def __init__(self, description: str, columns: Sequence[str], rows: int | None = None) -> None:
        super().__init__(description, columns, rows=rows)

    def parts(self) -> Sequence[Part]:
        """The stream itself."""
        return (self,)

    def chunks(self) -> Iterator[Any]:
        """The rows from the first on; every pass must have as many."""
        return self._counted(self._read(chunk_rows(len(self.columns))))

    def _counted(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """The chunks of a pass, which must have as many rows as the one before."""
        rows = 0
        for chunk in chunks:
            rows += len(chunk)
            yield without_views(chunk)
        if self._rows not in (None, rows):
            raise changed_rows(self.description, self._rows, rows)
        self._rows = rows

    @abstractmethod
    def _read(self, rows: int) -> Iterator[Any]:
        """Tables or frames of at most this many rows."""


@contextmanager
def row_numbers(number: int, part: Part) -> Iterator[None]:
    """Let errors say which part their row numbers are counted in, where it is not the first and its start not known."""
    try:
        yield
    except SourceError:  # it names the file
        raise
    except LikelyError as error:
        if not part.start and number:
            where = getattr(part, "description", f"partition {number}")
            error.add_note(f"Rows are counted from the first row of {where}.")
        raise


def without_views(chunk: Any) -> Any:
    """An Arrow table whose text is not stored as views, which Arrow cannot take rows of; anything else as it is."""
    import pyarrow as pa

    if not isinstance(chunk, pa.Table):
        return chunk
    kinds = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    for j, field in enumerate(chunk.schema):
        column = chunk.column(j)
        if field.type in kinds:
            chunk = chunk.set_column(j, field.name, column.cast(kinds[field.type]))
        elif pa.types.is_dictionary(field.type) and field.type.value_type in kinds:
            kind = kinds[field.type.value_type]
            parts = [pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(kind)) for part in column.chunks]
            new = pa.dictionary(field.type.index_type, kind, field.type.ordered)
            chunk = chunk.set_column(j, field.name, pa.chunked_array(parts, new))
    return chunk


def chunk_rows(columns: int) -> int:
    """Rows in a chunk: fewer where there are many columns, so that a chunk has at most 32 MB of floats."""
    return max(1, min(CHUNK_ROWS, CHUNK_CELLS // max(columns, 1)))


def pieces(table: Any, rows: int) -> Iterator[Any]:
    """A table in pieces of at most this many rows, without copies."""
    for first in range(0, len(table), rows):
        yield table.slice(first, rows)


def joined(counts: Iterable[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Neighbouring row groups joined up to `PART_ROWS` rows: (numbers of the groups, rows)."""
    groups: list[int] = []
    rows = 0
    for i, count in enumerate(counts):
        if groups and rows + count > PART_ROWS:
            yield tuple(groups), rows
            groups, rows = [], 0
        groups.append(i)
        rows += count
    if groups:
        yield tuple(groups), rows


def distinct(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Names of columns, each of them once."""
    twice = sorted({name for name in names if list(names).count(name) > 1}) if len(set(names)) < len(names) else ()
    if twice:
        raise SourceError(f"{where} has duplicate column names: {listed(twice)}. Rename them.")
    if not names:
        raise SourceError(f"{where} has no columns.")
    return tuple(names)
