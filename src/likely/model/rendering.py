"""Results as text, HTML and frames: aligned tables whose names stay distinct, in the frame library of the user."""

from __future__ import annotations

import html
import itertools
import re
import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from importlib.util import find_spec
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np

from likely.data.frames import library_of, whole_frame
from likely.errors import MissingExtraError

NAME_WIDTH = 32  # characters of a name in a table, unless names would then be identical
LINE = 110  # characters of a line of text
TITLE_WIDTH = 100  # characters of a model in a title
SURROGATE = re.compile("[\ud800-\udfff]")
PLAIN = {str, bytes, bool, int, float, date, datetime}  # types that every frame library has


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text: the first `left` columns are aligned to the left, the others to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    left: int = 1
    more: int = 0  # rows that are not shown

    def lines(self) -> list[str]:
        """The lines of the table, with columns of equal width."""
        cells = [[encodable(str(cell)) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [self.title] if self.title else []
        for row in cells:
            padded = (
                cell.ljust(width) if j < self.left else cell.rjust(width)
                for j, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("  ".join(padded).rstrip())
        return [*lines, f"and {self.more} more"] if self.more else lines

    def html(self) -> str:
        """The table as HTML, with all text escaped."""
        head = "".join(_html_cell("th", name, j < self.left) for j, name in enumerate(self.header))
        body = "".join(
            f"<tr>{''.join(_html_cell('td', cell, j < self.left) for j, cell in enumerate(row))}</tr>"
            for row in self.rows
        )
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        more = f"<p>and {self.more} more</p>" if self.more else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _html_cell(tag: str, text: str, left: bool) -> str:
    side = "left" if left else "right"
    return f'<{tag} style="text-align: {side}">{html.escape(str(text))}</{tag}>'


class RenderedResult:
    """Mixin of results that are paragraphs and tables: text for `print`, HTML for notebooks."""

    __slots__ = ()

    @abstractmethod
    def _parts(self) -> list[str | TextTable]:
        """Paragraphs and tables, in the order in which they are shown."""

    def __str__(self) -> str:
        blocks = (part if isinstance(part, str) else "\n".join(part.lines()) for part in self._parts())
        return encodable("\n\n".join(block for block in blocks if block))

    def _repr_html_(self) -> str:
        parts = (
            part.html() if isinstance(part, TextTable) else f"<p>{html.escape(part).replace(chr(10), '<br>')}</p>"
            for part in self._parts()
            if part
        )
        return encodable(f"<div>{''.join(parts)}</div>")


def wrapped(text: str) -> str:
    """A long line in several, indented; names are not broken."""
    return textwrap.fill(text, LINE, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def short_names(items: Iterable[Any], width: int = NAME_WIDTH) -> list[str]:
    """Names for a table: cut in the middle if they are long, but never so that different names become identical.

    Text is in quotes where it is empty, has blanks at its ends, or looks like a number among numbers.
    """
    given = list(items)
    among_numbers = any(isinstance(item, Number | np.number) for item in given)
    texts = [repr(str(item)) if _needs_quotes(item, among_numbers) else _one_line(str(item)) for item in given]
    same: dict[str, set[str]] = {}
    for item, text in zip(given, texts, strict=True):
        same.setdefault(text, set()).add(repr(item))
    texts = [text if len(same[text]) == 1 else repr(item) for text, item in zip(texts, given, strict=True)]
    longest = max(map(len, texts), default=0)
    while width < longest:
        for end in (width // 3, 2 * width // 3):
            short = [_cut(text, width, end) for text in texts]
            if len(set(short)) == len(set(texts)):
                return short
        width += 8
    return texts


def _needs_quotes(item: Any, among_numbers: bool) -> bool:
    """Whether a name that is text could be mistaken for another one, or for a number."""
    if not isinstance(item, str):
        return False
    if item != item.strip() or not item:
        return True
    try:
        return among_numbers and float(item) is not None
    except ValueError:
        return False


def short_title(text: str) -> str:
    """The text of a model in one line, cut in the middle if it is long."""
    return _cut(_one_line(text), TITLE_WIDTH, TITLE_WIDTH // 3)


def _one_line(text: str) -> str:
    return " ".join(text.split()) if not text.isprintable() else text


def _cut(text: str, width: int, end: int) -> str:
    """Text of at most `width` characters: its beginning, and `end` characters of its end."""
    return text if len(text) <= width else f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def number(value: float | None, digits: int = 4) -> str:
    """A number with a given number of decimals; blank if there is none."""
    if value is None or np.isnan(value):
        return ""
    return f"{value:.{digits}f}" if abs(value) < 1e7 else f"{value:.{digits}g}"


def with_error(mean: float | None, standard_error: float | None, digits: int = 4) -> str:
    """A mean and its standard error, ``0.1234 ± 0.0100``; the mean alone where the error is not known."""
    error = number(standard_error, digits)
    return f"{number(mean, digits)} ± {error}" if error else number(mean, digits)


def compact(mean: float, standard_error: float = np.nan) -> str:
    """A mean of any size and its standard error, ``2987.6 ± 153.8`` or ``3.481e-05 ± 1.5e-06``."""
    largest = max(abs(mean), 0.0 if np.isnan(standard_error) else standard_error)
    if largest and np.isfinite(largest) and not 1e-2 <= largest < 1e6:
        return f"{mean:.4g}" if np.isnan(standard_error) else f"{mean:.4g} ± {standard_error:.2g}"
    return with_error(mean, standard_error, 4 if largest < 100.0 else 1)


def count(value: float) -> str:
    """A number of rows; weights may be fractions."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.6g}"


def limited(rows: Sequence[Any], most: int) -> tuple[Sequence[Any], int]:
    """The first rows, and how many more there are; a single further row is shown."""
    shown = rows if len(rows) <= most + 1 else rows[:most]
    return shown, len(rows) - len(shown)


def frame_library(X: Any) -> str | None:
    """The library of a frame, by its name; None for arrays and other tables."""
    return library_of(whole_frame(X))


def to_frame(columns: Mapping[str, Iterable[Any]], library: str | None) -> Any:
    """Columns as a frame of a library; None is pandas, and pyarrow where pandas is not installed."""
    chosen: Any = library or ("pandas" if find_spec("pandas") is not None else "pyarrow")
    return nw.from_dict({name: _column(values) for name, values in columns.items()}, backend=chosen).to_native()


def new_axes(*shape: int, **options: Any) -> Any:
    """The axes of a new figure of matplotlib."""
    try:
        from matplotlib import pyplot  # deferred: matplotlib is optional
    except ModuleNotFoundError as error:
        raise MissingExtraError("plot", "matplotlib") from error
    return pyplot.subplots(*shape, layout="tight", **options)[1]


def _column(values: Iterable[Any]) -> Any:
    """Values of one type: numbers with NaN for missing ones, or labels; labels of other types as text.

    Lone surrogates of text, which UTF-8 cannot encode, become escapes.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    known = [value for value in plain if value is not None]
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        whole = len(known) == len(plain) and all(isinstance(value, int) for value in known)
        if not whole:
            return np.array([np.nan if value is None else float(value) for value in plain])
        return plain
    kinds = {type(value) for value in known}
    if len(kinds) > 1 or not kinds <= PLAIN:
        plain = [None if value is None else str(value) for value in plain]
    return [encodable(value) if isinstance(value, str) else value for value in plain]


def encodable(text: str) -> str:
    """Text with lone surrogates, which UTF-8 cannot encode, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode() if SURROGATE.search(text) else text


def distinct_names(labels: Iterable[Any]) -> list[str]:
    """Labels as the names of columns: numbered where two labels have the same text."""
    found: list[str] = []
    for label in labels:
        text = str(label)
        tries = itertools.chain([text, repr(label)], (f"{text} ({i})" for i in itertools.count(2)))
        found.append(next(name for name in tries if name not in found))
    return found
