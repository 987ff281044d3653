"""Every error and warning of the library: what is wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


class LikelyError(Exception):
    """Base of every error that the library raises on purpose."""


class InputError(LikelyError, ValueError):
    """What was handed over (a table, labels, weights, a prior, an option) cannot be used."""


class InputTypeError(InputError, TypeError):
    """What was handed over is of a kind that cannot be used at all."""


class CellError(InputError):
    """One cell of a table cannot be used. Rooms that know names and row numbers fill them in with `at`."""

    def __init__(self, row: int, column: int, value: object, message: str | None = None) -> None:
        self.row, self.column, self.value = row, column, value
        super().__init__(message or f"Row {row}, column {column}: {value!r} cannot be used.")


class NotEstimableError(LikelyError, ValueError):
    """The data do not determine the parameters asked for: the likelihood has no maximum."""


class LikelyWarning(UserWarning):
    """Base of every warning that the library gives."""


class DependentColumnsWarning(LikelyWarning):
    """Some columns are linear combinations of others within the classes."""


def listed(items: Iterable[object], limit: int = 8) -> str:
    """Items as readable text, shortened: ``'a', 'b' and 3 more``."""
    texts = [repr(item.item() if isinstance(item, np.generic) else item) for item in items]
    if len(texts) > limit:
        return f"{', '.join(texts[:limit])} and {len(texts) - limit} more"
    return ", ".join(texts)


def check_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Raise unless `value` is one of the words that the option `name` knows."""
    words = tuple(known)
    if not (isinstance(value, str) and value in words):
        raise InputError(f"{name}={value!r} is not known. Known: {listed(words, limit=20)}.")
