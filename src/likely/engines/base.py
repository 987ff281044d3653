"""Scans: lazy tables that are read in parts, or as a stream of one part; sizes of chunks, and names of columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from likely.data.parts import Part, PartSource, changed_rows
from likely.errors import LikelyError, SourceError, amount, listed

PART_ROWS = 2**18  # row groups of a file are joined up to this many rows
CHUNK_ROWS, CHUNK_CELLS = 2**17, 2**22
CONNECTED = "is read through a connection"
HEAD_ROWS = 1000  # rows that are fetched from workers to find the names and types of columns
Result = TypeVar("Result")


class Scan(PartSource):
    """Lazy table whose rows are read in parts, once for every pass of a fit. Returned by `likely.scan`.

    Every estimator accepts a scan in place of a frame; `y` and `sample_weight` are then names of its columns. Only
    a few chunks are in memory at a time. A scan of files can be pickled.

    Parameters
    ----------
    description : str
        What is read: a path, a query or the kind of an object.
    columns : sequence of str
        The names of the columns.
    parts : sequence of Part, default=()
        What can be read independently: row groups of Parquet files, files, or fragments of a dataset.
    rows : int or None, default=None
        The number of rows, if it is known.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns.
    rows : int or None
        The number of rows; None if it is not known before all rows have been read once.
    description : str
        What is read: a path, a query or the kind of an object.
    paths : tuple of str
        The files that the rows are read from, without those that a query names.
    notes : tuple of str
        How cells were read where this is not obvious, such as NA as a missing value in a column of numbers.
    has_fixed_order : bool
        Whether the rows have the same order in every pass; those of queries without ORDER BY may not.

    See Also
    --------
    scan : Makes scans.
    """

    description = ""
    notes: tuple[str, ...] = ()

    def __init__(
        self, description: str, columns: Sequence[str], parts: Sequence[Part] = (), rows: int | None = None
    ) -> None:
        self.description, self.columns = description, distinct(columns, description)
        self._parts, self._rows = tuple(parts), rows

    @property
    def rows(self) -> int | None:
        """The number of rows; None if it is not known before all rows have been read once."""
        counts = [self._rows] if self._rows is not None else [getattr(part, "_rows", None) for part in self.parts()]
        return None if None in counts else sum(count for count in counts if count is not None)

    def parts(self) -> Sequence[Part]:
        """The parts, which can be read independently of one another.

        Returns
        -------
        sequence of Part
            Row groups of Parquet files, files, or one part; each has a method `chunks` and the number `start` of its
            first row.
        """
        return self._parts

    def compute(self, work: Callable[[int, Part], Result]) -> Generator[Result]:
        """Compute a function of every part, on as many threads as there are cores.

        A single part is read on the calling thread.

        Parameters
        ----------
        work : callable
            Function of the number of a part and the part.

        Returns
        -------
        iterator
            The results in the order of the parts.
        """

        def located(number: int, part: Part) -> Result:
            with row_numbers(number, part):
                return work(number, part)

        yield from super().compute(located)

    def __repr__(self) -> str:
        rows = "" if self.rows is None else f"{self.rows:,} rows, "
        columns = amount(len(self.columns), "column", "columns")
        text = f"Scan of {self.description}: {rows}{columns}: {listed(self.columns)}"
        return "\n".join([text, *(f"  {note}" for note in self.notes)])


class Stream(Scan, ABC):
    """Rows that are read from the first to the last: one part, which starts again at every call of `chunks`."""

    _bound = ""  # why the rows cannot be read by another process, where they cannot

    def __getstate__(self) -> dict[str, Any]:
        if self._bound:
            raise SourceError(f"{self.description} {self._bound}, and cannot be pickled. Use a scan of files.")
        return self.__dict__

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
