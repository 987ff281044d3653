"""Cells of a text column as trimmed Arrow strings, beside those that are not text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likely.data.names import is_unicode
from likely.typing import AnyArray, Array

LONGEST = 64  # characters of a number or a date, blanks around it left out


def text_cells(values: Sequence[Any]) -> tuple[Any, dict[int, Any]]:
    """The texts without blanks around them, null where a value is no text or too long, and {row: other value}."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    try:
        cells, others = pa.array(values, pa.large_string(), from_pandas=True), {}
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeEncodeError):
        # Cells of several types, or text that is not Unicode.
        others = {row: value for row, value in enumerate(values) if not isinstance(value, str)}
        texts = [value if isinstance(value, str) and is_unicode(value) else None for value in values]
        cells = pa.array(texts, pa.large_string())
    return _trimmed(cells), others


def _trimmed(cells: Any) -> Any:
    """Texts without blanks of any kind around them, null where more than `LONGEST` characters remain."""
    import pyarrow.compute as pc

    cells = pc.utf8_trim_whitespace(cells)
    return pc.if_else(pc.less_equal(pc.utf8_length(cells), LONGEST), cells, None)


def filled(cells: Any) -> AnyArray:
    """A Boolean array of Arrow as one of NumPy, False where it is null."""
    return np.asarray(cells.fill_null(False))


def given_counts(values: Any, cells: Any, counts: AnyArray) -> Array:
    """The rows of each distinct text, 0 for blank and missing ones: these are missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    blank = filled(pc.equal(cells, ""))
    if cells.null_count:  # missing, or too long
        rows = np.flatnonzero(np.asarray(cells.is_null()))
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            missing = np.asarray(values.is_null())[rows]
        else:
            missing = np.array([not isinstance(values[row], str) for row in rows.tolist()])
        blank[rows[missing]] = True
    return np.where(blank, 0.0, np.asarray(counts, dtype=np.float64))
