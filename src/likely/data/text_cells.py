"""Cells of a text column as trimmed Arrow strings, next to those that are not text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likely.data.names import is_unicode
from likely.typing import AnyArray, Array

LONGEST = 64  # characters of a number or a date, blanks around it left out
NEITHER = "…"  # stands for text that is too long, or not Unicode


def sequence(values: Any) -> Any:
    """A column as a list, a tuple, text of Arrow, or an array of NumPy."""
    import pyarrow as pa

    if isinstance(values, list | tuple | np.ndarray):
        return values
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array) and (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return values
    return np.asarray(values)


def text_cells(values: Sequence[Any]) -> tuple[Any, dict[int, Any]]:
    """The texts without blanks around them, null where a value is not text, and {row: value that is not text}."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values, others = sequence(values), {}
    try:
        cells = pa.array(values, pa.large_string(), from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeEncodeError):
        # Cells of several types, or text that is not Unicode.
        others = {row: value for row, value in enumerate(values) if not isinstance(value, str)}
        texts = (value if row not in others else None for row, value in enumerate(values))
        cells = pa.array([text if text is None or is_unicode(text) else NEITHER for text in texts], pa.large_string())
    cells = pc.utf8_trim_whitespace(cells)
    return pc.if_else(pc.greater(pc.utf8_length(cells), LONGEST), NEITHER, cells), others


def text_weights(cells: Any, counts: AnyArray) -> Array:
    """The rows of each distinct text, 0 for blank ones: these are missing values."""
    import pyarrow.compute as pc

    return np.where(filled(pc.not_equal(cells, "")), np.asarray(counts, dtype=np.float64), 0.0)


def filled(cells: Any) -> AnyArray:
    """A Boolean array of Arrow as one of NumPy, False where it is null."""
    return np.asarray(cells.fill_null(False))
