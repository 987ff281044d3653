"""Categories as values that other systems compare: text, numbers or booleans."""

from __future__ import annotations

from likely.errors import ExportError, listed
from likely.export.quoting import unsupported
from likely.typing import Vocabulary

EXACT = 2**53  # whole numbers from here on share their double with others


def category_type(name: str, vocabulary: Vocabulary) -> str:
    """Whether categories are "text", "number" or "boolean"."""
    kinds = set()
    for word in vocabulary:
        if isinstance(word, bool):
            kinds.add("boolean")
        elif isinstance(word, str):
            kinds.add("text")
        elif isinstance(word, int | float):
            kinds.add("number")
        else:
            raise unsupported(f"category of column {name!r}", word)
    if len(kinds) > 1:
        raise ExportError(
            f"Column {name!r} has categories of several types ({listed(sorted(kinds))}). Convert to text."
        )
    large = [word for word in vocabulary if isinstance(word, int) and abs(word) >= EXACT]
    if large:
        raise ExportError(
            f"Column {name!r} has the category {listed(large, 3)}: exported models compare numbers as doubles, which "
            "do not distinguish whole numbers beyond 2**53. Convert the column to text before the fit."
        )
    return kinds.pop() if kinds else "text"
