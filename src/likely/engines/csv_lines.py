"""Lines of CSV files, which are looked for where an error has occurred."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

from likely.engines.files import DataFile, decompressed

Test = Callable[[int, Sequence[str]], bool]


def line_of(file: DataFile, delimiter: str, test: Test) -> int | None:
    """The line where the first record begins that passes test(number, cells); the header is the first record.

    Blank lines are records without cells. None where no record passes, or a cell is too long for the standard library.
    """
    with decompressed(file) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape", newline="")
        reader = csv.reader(text, delimiter=delimiter)
        number, line = 1, 1
        try:
            for cells in reader:
                if test(number, cells):
                    return line
                number, line = number + 1, reader.line_num + 1
        except csv.Error:
            return None
    return None
