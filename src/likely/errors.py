"""Every error and warning of the library: what is wrong, where, and what to do about it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real

import numpy as np


class LikelyError(Exception):
    """Base of every error that the library raises on purpose."""


class InputError(LikelyError, ValueError):
    """What was handed over (a table, labels, weights, a prior, an option) cannot be used."""


class InputTypeError(InputError, TypeError):
    """What was handed over is of a kind that cannot be used at all."""


class CellError(InputError):
    """One cell of a table cannot be used: where it is, what it holds, what is wrong with it, and what to do.

    Row and column count from the first of a block. Rooms that know more say it again with `at`; `hint` may
    name the column as {column}.
    """

    def __init__(
        self,
        row: int,
        column: int,
        value: object,
        problem: str = "is not a finite number",
        hint: str = "leave out or cap such values",
        name: str | None = None,
    ) -> None:
        self.row, self.column, self.value, self.problem, self.hint = row, column, value, problem, hint
        self.name = name
        told = value.item() if isinstance(value, np.generic) else value
        where = f"Column {column if name is None else repr(name)}, row {row}"
        super().__init__(f"{where}: {told!r} {problem}. Hint: {hint.format(column=column if name is None else name)}.")

    def at(self, row: int, column: int, name: str | None = None) -> CellError:
        """The same error about the same cell, by the row and column of the table."""
        return type(self)(row, column, self.value, self.problem, self.hint, name)


class MissingCellError(CellError):
    """A missing cell where there must be none, or where something must be done about it."""


class ModelFileError(InputError):
    """A file that is no model, is damaged, or was made by something else."""


class NoDensityError(InputError):
    """A question that only a density, or a complete one, can answer."""


class NoEvidenceError(InputError):
    """A model whose marginal likelihood has no closed form, or none at all."""


class NotEstimableError(LikelyError, ValueError):
    """The data do not determine the parameters asked for: the likelihood has no maximum."""


class SeparationError(NotEstimableError):
    """A direction separates classes, along which their likelihood rises for ever.

    `direction` has the weights of the columns that it needs, {class: {column: weight}}, against the first class.
    """

    def __init__(self, text: str, direction: dict[object, dict[str, float]]) -> None:
        super().__init__(text)
        self.direction = direction


class LikelyWarning(UserWarning):
    """Base of every warning that the library gives."""


class ImpossibleRowsWarning(LikelyWarning):
    """Some rows are impossible under every class, so that only the class prior is left to answer with."""


class DeadComponentWarning(LikelyWarning):
    """Some components of a mixture have no rows."""


class NotConvergedWarning(LikelyWarning):
    """An iteration has stopped before it came to rest."""


class DependentColumnsWarning(LikelyWarning):
    """Some columns are linear combinations of others within the classes."""


_silent: ContextVar[bool] = ContextVar("silent", default=False)


def warn(text: str, category: type[LikelyWarning]) -> None:
    """Give a warning, unless somebody only tries something out."""
    if not _silent.get():
        warnings.warn(text, category, stacklevel=3)


@contextmanager
def trying() -> Iterator[None]:
    """No warnings in here, on this thread: what is tried out may never be used."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def listed(items: Iterable[object], limit: int = 8) -> str:
    """Items as readable text, shortened: ``'a', 'b' and 3 more``."""
    texts = [repr(item.item() if isinstance(item, np.generic) else item) for item in items]
    if len(texts) > limit:
        return f"{', '.join(texts[:limit])} and {len(texts) - limit} more"
    return ", ".join(texts)


def check_number(name: str, value: object, low: float, whole: bool = False) -> None:
    """Raise unless the option `name` is a finite number, a whole one if wanted, and at least `low`."""
    number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if not number or not low <= float(value) < np.inf:  # type: ignore[arg-type]
        raise InputError(f"{name}={value!r} must be a {'whole ' if whole else ''}number, at least {low:g}.")


def check_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Raise unless `value` is one of the words that the option `name` knows."""
    words = tuple(known)
    if not (isinstance(value, str) and value in words):
        raise InputError(f"{name}={value!r} is not known. Known: {listed(words, limit=20)}.")
