"""Rows drawn at random from a source in parts, in the pass that reads them anyway.

Every row has a pseudo-random number that depends on the seed, the part and its place in the part alone. The rows with
the least numbers are drawn: up to `MOST_DRAWN` rows that is all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse

from likely.data.frames import is_frame
from likely.data.parts import RowsWithTargets
from likely.errors import InputError, listed
from likely.typing import Array

MOST_DRAWN = 20_000  # rows by which a fit from parts chooses families and calibrates probabilities
SEED = 20_000_000
SLACK = 1.5  # how many times as many rows are kept as are wanted, where the number of all rows is known


@dataclass(frozen=True, slots=True, eq=False)
class RowDraw:
    """Rows that were drawn so far, in the order of the parts. Draws of different parts add up."""

    limit: float  # numbers below which rows are kept
    frames: tuple[Any, ...] = ()
    numbers: tuple[Array, ...] = ()  # of the rows of each frame

    @classmethod
    def empty(cls, rows: int | None) -> RowDraw:
        """No rows, of a source with `rows` rows; None if their number is not known."""
        limit = 1.0 if rows is None or rows <= MOST_DRAWN else SLACK * MOST_DRAWN / rows
        return cls(limit)

    def of_part(self, number: int) -> PartDraw:
        """A draw of the rows of one part, chunk by chunk."""
        return PartDraw(np.random.default_rng([SEED, number]), RowDraw(self.limit))

    def __add__(self, other: RowDraw) -> RowDraw:
        both = RowDraw(self.limit, self.frames + other.frames, self.numbers + other.numbers)
        return both.reduced() if sum(map(len, both.numbers)) > 4 * MOST_DRAWN else both

    def reduced(self) -> RowDraw:
        """The rows with the least numbers alone."""
        every = np.concatenate([np.zeros(0), *self.numbers])
        if len(every) <= MOST_DRAWN:
            return self
        last = np.partition(every, MOST_DRAWN - 1)[MOST_DRAWN - 1]
        kept = [np.flatnonzero(part <= last) for part in self.numbers]
        frames = tuple(taken(frame, rows) for frame, rows in zip(self.frames, kept, strict=True) if len(rows))
        return RowDraw(self.limit, frames, tuple(n[k] for n, k in zip(self.numbers, kept, strict=True) if len(k)))

    def packed(self) -> RowDraw:
        """The rows with the least numbers in one frame, which is pickled faster than many small ones."""
        less = self.reduced()
        if len(less.frames) < 2:
            return less
        return RowDraw(self.limit, (joined(less.frames),), (np.concatenate(less.numbers),))

    def frame(self) -> Any:
        """The rows as one frame."""
        return joined(self.reduced().frames)


@dataclass(slots=True, eq=False)
class PartDraw:
    """Draws rows of one part, chunk by chunk; it keeps at most about `MOST_DRAWN` of them."""

    rng: np.random.Generator
    rows: RowDraw

    def add(self, chunk: Any, rows: int) -> None:
        """Draw some rows of the next chunk."""
        numbers = self.rng.random(rows)
        kept = np.flatnonzero(numbers < self.rows.limit)
        if len(kept):
            self.rows += RowDraw(self.rows.limit, (taken(chunk, kept),), (numbers[kept],))
        if sum(map(len, self.rows.numbers)) > 2 * MOST_DRAWN:
            less = self.rows.reduced()
            self.rows = replace(less, limit=max(float(part.max()) for part in less.numbers))


def taken(chunk: Any, rows: Any) -> Any:
    """Some rows of a frame, an array, sparse rows or a list."""
    if isinstance(chunk, RowsWithTargets):
        return RowsWithTargets(*(None if field is None else taken(field, rows) for field in chunk.fields))
    if isinstance(chunk, list | tuple):
        return [chunk[row] for row in rows.tolist()]
    if scipy.sparse.issparse(chunk):
        return scipy.sparse.csr_array(chunk)[rows]
    if not is_frame(chunk):
        return np.asanyarray(chunk)[rows]  # masked arrays stay masked
    return nw.from_native(chunk, eager_only=True)[rows, :].to_native()


def joined(chunks: Sequence[Any]) -> Any:
    """Frames with the same columns, arrays, sparse rows or lists as one."""
    if len(chunks) == 1:
        return chunks[0]
    if isinstance(chunks[0], RowsWithTargets):
        fields = zip(*(chunk.fields for chunk in chunks), strict=True)
        return RowsWithTargets(*(None if field[0] is None else joined(field) for field in fields))
    if all(isinstance(chunk, list | tuple) for chunk in chunks):
        return list(itertools.chain.from_iterable(chunks))
    if scipy.sparse.issparse(chunks[0]):
        return scipy.sparse.vstack([scipy.sparse.csr_array(chunk) for chunk in chunks], format="csr")
    frames = [nw.from_native(chunk, eager_only=True) for chunk in chunks if is_frame(chunk)]
    kinds = {str(frame.implementation.value) for frame in frames} | ({"NumPy"} if len(frames) < len(chunks) else set())
    if len(kinds) > 1:
        raise InputError(f"Some chunks are of {' and others of '.join(sorted(kinds))}. Use one library for all chunks.")
    if frames:
        return _joined_frames(frames)
    masked = any(isinstance(chunk, np.ma.MaskedArray) for chunk in chunks)
    concatenate: Any = np.ma.concatenate if masked else np.concatenate  # the second drops masks
    return concatenate(chunks)


def _joined_frames(frames: Sequence[Any]) -> Any:
    """Frames as one. A column that is whole in some of them, or all missing, has a type that holds all values."""
    names, kind = frames[0].columns, frames[0].implementation
    for frame in frames:
        if set(frame.columns) != set(names):
            raise InputError(f"A chunk has the columns {listed(frame.columns)}, but the first one has {listed(names)}.")
    frames = [frame.select(names) for frame in frames]
    if kind.is_pandas_like():
        return nw.concat(frames).to_native()
    library: Any = kind.to_native_namespace()
    natives = [frame.to_native() for frame in frames]
    mismatch = library.exceptions.PolarsError if kind.is_polars() else library.ArrowException
    try:
        if kind.is_polars():
            return library.concat(natives, how="vertical_relaxed")
        mixed = [name for name in names if len({table.schema.field(name).type for table in natives}) > 1]
        natives = [_without_dictionaries(table, mixed) for table in natives]
        return library.concat_tables(natives, promote_options="permissive")
    except mismatch as error:
        raise InputError(f"Chunks have columns of different types ({error}). Convert them to one type.") from None


def _without_dictionaries(table: Any, names: Sequence[str]) -> Any:
    """A table of Arrow with the values of some columns in place of their dictionaries."""
    import pyarrow as pa

    for name in names:
        field = table.schema.field(name)
        if pa.types.is_dictionary(field.type):
            values = table.column(name).cast(field.type.value_type)
            table = table.set_column(table.schema.get_field_index(name), name, values)
    return table
