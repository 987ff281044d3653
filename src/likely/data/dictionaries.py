"""Columns of text and categories as codes of their distinct values; only these become Python objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from likely.errors import InputError
from likely.typing import AnyArray


@dataclass(frozen=True, slots=True, eq=False)
class Dictionary:
    """The code of each row, -1 where the value is missing, and the values; some may be equal, or missing too."""

    codes: AnyArray
    values: list[Any]

    def objects(self) -> AnyArray:
        """The value of each row as a Python object; None if it is missing."""
        return np.fromiter((*self.values, None), dtype=object, count=len(self.values) + 1)[self.codes]

    def used(self) -> Dictionary:
        """The same rows without the values that have none."""
        seen = np.zeros(len(self.values) + 1, dtype=bool)
        seen[self.codes] = True
        if seen[:-1].all():
            return self
        place = np.cumsum(seen) - 1
        place[-1] = -1
        return Dictionary(place[self.codes], [self.values[i] for i in np.flatnonzero(seen[:-1]).tolist()])


def is_text(kind: Any) -> bool:
    """Whether a type of narwhals is text or categorical."""
    return kind in (nw.String, nw.Categorical) or isinstance(kind, nw.Enum)


def series_dictionary(series: nw.Series[Any]) -> Dictionary:
    """The codes of labels of text, categories or dates. A TypeError where pandas has objects that cannot be hashed."""
    native = series.to_native()
    if not series.implementation.is_pandas():
        return arrow_dictionary(native if series.implementation.is_pyarrow() else series.to_arrow(), "y")
    if hasattr(native.dtype, "categories"):  # these may be anything: intervals, tuples, numbers
        return Dictionary(np.asarray(native.cat.codes), native.cat.categories.tolist()).used()
    codes, distinct = native.factorize()  # by the codes of Arrow, or by hashing the objects of Python as they are
    return Dictionary(codes, distinct.tolist())


def arrow_dictionary(column: Any, where: str) -> Dictionary:
    """The codes of an Arrow column, an array or chunks with different dictionaries; `where` names it in errors."""
    import pyarrow as pa

    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    parts: list[AnyArray] = []
    values: list[Any] = []
    last, shift = None, 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if last is None or not chunk.dictionary.equals(last):
            last, shift = chunk.dictionary, len(values)
            values.extend(last)
        indices = chunk.indices.cast(pa.int64()).fill_null(-1) if chunk.null_count else chunk.indices
        codes = indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        parts.append(np.where(codes < 0, codes, codes + shift) if shift else codes)
    found = Dictionary(np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64), values).used()
    with utf8_errors(where):
        return Dictionary(found.codes, [value.as_py() for value in found.values])


@contextmanager
def utf8_errors(where: str) -> Iterator[None]:
    """Errors of text in Arrow's memory that is not UTF-8 as errors that name the column."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where} has the text {bytes(error.object)!r}, which is not encoded in UTF-8. Decode the column before it "
            "is written as text."
        ) from None


def text_dictionary(values: AnyArray) -> Dictionary:
    """The codes of an array of NumPy's text or bytes, as the codes of its memory."""
    import pyarrow as pa

    cells = np.ascontiguousarray(values)
    memory = [None, pa.py_buffer(cells)]
    found = pa.FixedSizeBinaryArray.from_buffers(pa.binary(cells.itemsize), len(cells), memory).dictionary_encode()
    distinct = np.frombuffer(b"".join(found.dictionary.to_pylist()), dtype=cells.dtype)
    return Dictionary(found.indices.to_numpy(), distinct.tolist())
