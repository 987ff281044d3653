"""Lines of CSV files, which are looked for where an error has occurred."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence

from likely.engines.files import DataFile, decompressed

END = re.compile(r"[\r\n]*\Z")
Test = Callable[[int, Sequence[str]], bool]


def line_of(file: DataFile, delimiter: str, test: Test) -> int | None:
    """The line where the first record begins that passes test(number, cells); the header is the first record.

    Blank lines are records without cells. None where no record passes, or a cell is too long for the standard library.
    """
    with _text(file) as text:
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


def other_line_end(file: DataFile) -> tuple[int, str, str] | None:
    """The first line whose line break, outside of quotes, is not that of line 1; both line breaks, that of 1 first."""
    first, quotes = "", 0
    with _text(file) as text:
        for number, line in enumerate(text, 1):
            end = END.search(line)[0]  # type: ignore[index]  # it matches any text
            quotes += line.count('"')
            if quotes % 2 or not end:
                continue
            first = first or end
            if end != first:
                return number, first, end
    return None


def _text(file: DataFile) -> io.TextIOWrapper:
    """The text of a file with its line breaks; bytes that are not UTF-8 become surrogates."""
    return io.TextIOWrapper(decompressed(file), encoding="utf-8-sig", errors="surrogateescape", newline="")
