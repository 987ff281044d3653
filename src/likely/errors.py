"""Errors and warnings: what is wrong, where, and how to fix it."""

from __future__ import annotations

import difflib
import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.exceptions import ConvergenceWarning

MOST_NOTES = 20  # of an estimator


class LikelyError(Exception):
    """Base class of all errors of the library."""

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[LikelyError], args: tuple[object, ...], state: dict[str, object]) -> LikelyError:
    """An error that another process has raised."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InputError(LikelyError, ValueError):
    """Invalid input: a table, labels, weights, a prior or an option."""


class InputTypeError(InputError, TypeError):
    """Input of an unsupported type."""


class CellError(InputError):
    """An invalid value in a table, with its row, its column, the problem and a remedy.

    Row and column count from the first of a block; `at` replaces them by those of the table. `hint` is the remedy, a
    sentence in the imperative without its full stop, and may contain {column}.
    """

    def __init__(
        self,
        row: int,
        column: int,
        value: object,
        problem: str = "is not a finite number",
        hint: str = "drop or cap such values",
        name: str | None = None,
    ) -> None:
        self.row, self.column, self.value, self.problem, self.hint = row, column, value, problem, hint
        self.name = name
        shown = value.item() if isinstance(value, np.generic) else value
        where = f"Column {column if name is None else repr(name)}, row {row}"
        remedy = hint.format(column=column if name is None else name)
        super().__init__(f"{where}: {shown!r} {problem}. {remedy[:1].upper()}{remedy[1:]}.")

    def at(self, row: int, column: int, name: str | None = None) -> CellError:
        """The same error with the row and column of the table."""
        return type(self)(row, column, self.value, self.problem, self.hint, name)


class MissingCellError(CellError):
    """A missing value where none is allowed."""


class MissingPatternsError(InputError):
    """Too many missingness patterns in a joint block to be summarised by additive statistics."""


class ExportError(InputError):
    """A model, or a name in it, that cannot be written for another system."""


class ModelFileError(InputError):
    """A file that is not a model file, or is damaged."""


class SourceError(InputError):
    """Rows that cannot be read: a missing or damaged file, a failing query, or a source that changes between passes."""


class NotLearntError(InputError):
    """A row to be forgotten that is not in the ledger of learnt rows; `row` is its number in X."""

    def __init__(self, message: str, row: int = 0) -> None:
        self.row = row
        super().__init__(message)


class NoDensityError(InputError):
    """A method that needs a density which the model does not have."""


class NoEvidenceError(InputError):
    """A model without a marginal likelihood in closed form."""


class NotKeptError(LikelyError, AttributeError):
    """Results of single rows, which are not kept for the rows of a source."""


class NotEstimableError(LikelyError, ValueError):
    """The data do not determine the parameters: the likelihood has no maximum."""


class MissingExtraError(LikelyError, ImportError):
    """An optional dependency that is not installed."""

    def __init__(self, extra: str, package: str | None = None) -> None:
        super().__init__(
            f'The package {package or extra!r} is not installed. Install it with: pip install "likely[{extra}]"'
        )


class SeparationError(NotEstimableError):
    """The classes are linearly separable, so that maximum-likelihood coefficients are infinite.

    `direction` is a separating direction as coefficients relative to the first class, {class: {column: coefficient}}.
    """

    def __init__(self, text: str, direction: dict[object, dict[str, float]]) -> None:
        super().__init__(text)
        self.direction = direction


class FamilyLawError(LikelyError, AssertionError):
    """A family breaks a law of `likely.testing.check_family`: the message names the law, and the size of the error."""


class LikelyWarning(UserWarning):
    """Base class of all warnings of the library."""


class ImpossibleRowsWarning(LikelyWarning):
    """Some rows have probability 0 under every class; their posterior is the class prior."""


class UnseenCategoriesWarning(LikelyWarning):
    """More categories of a column are unseen in training than usual, such as all of them."""


class TargetWarning(LikelyWarning):
    """The labels of a classifier are probably not classes: spellings of one label, numbers, or single rows."""


class ColumnWarning(LikelyWarning):
    """A column is read in another way than its values suggest: text among numbers, for example, is missing."""


class DeadComponentWarning(LikelyWarning):
    """Some components of a mixture have almost no rows."""


class NotConvergedWarning(LikelyWarning, ConvergenceWarning):
    """An iteration stopped before it converged."""


class EarlyChoiceWarning(LikelyWarning):
    """A first batch of few rows determines the family of a column for all later batches."""


class LeakWarning(LikelyWarning):
    """Some columns alone predict the class of nearly all rows, as a column does that is only known after the class."""


class DependentColumnsWarning(LikelyWarning):
    """Some columns are linear combinations of others within classes."""


_noted: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()


def note(estimator: object, text: str) -> None:
    """Log how input was read where this needs no action, once for each estimator: by the logger `likely`."""
    seen = _noted.setdefault(estimator, set())
    if text not in seen and len(seen) < MOST_NOTES:
        seen.add(text)
        logging.getLogger("likely").warning(text)


_silent: ContextVar[bool] = ContextVar("silent", default=False)


def warn(text: str, category: type[LikelyWarning]) -> None:
    """Warn, unless warnings are suppressed by `trying`."""
    if not _silent.get():
        warnings.warn(text, category, stacklevel=3)


@contextmanager
def trying() -> Iterator[None]:
    """Suppress the library's warnings on this thread: for models that may not be used."""
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


def amount(n: int, one: str, many: str) -> str:
    """A number with its noun: ``1 class``, ``2 classes``."""
    return f"{n} {one if n == 1 else many}"


def check_number(name: str, value: object, low: float, whole: bool = False, choice: str | None = None) -> None:
    """Raise unless the option `name` is a finite number, a whole one if wanted, and at least `low`, or is `choice`."""
    if choice is not None and isinstance(value, str) and value == choice:
        return
    number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if not number or not low <= float(value) < np.inf:  # type: ignore[arg-type]
        wanted = f"{'' if choice is None else f'{choice!r} or '}a {'whole ' if whole else ''}number"
        raise InputError(f"{name}={value!r} must be {wanted}, at least {low:g}.")


def check_jobs(n_jobs: object) -> None:
    """Raise unless the option `n_jobs` is None or a whole number other than 0."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise InputError(
            f"n_jobs={n_jobs!r} is not a number of jobs. Use 1 or more, -1 for one per processor, or None."
        )


def check_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Raise unless `value` is one of the known values of the option `name`."""
    words = tuple(known)
    if not (isinstance(value, str) and value in words):
        raise InputError(f"{name}={value!r} is not known. Known: {listed(words, limit=20)}.")


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence with the names that resemble one that is not there; all names where none does."""
    names = list(known)
    found = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    found = found or difflib.get_close_matches(name.lower(), [other.lower() for other in names], n=3)
    if found:
        lower = {other.lower(): other for other in names}
        return f"Did you mean {' or '.join(repr(lower.get(other.lower(), other)) for other in found)}?"
    return f"There are: {listed(names)}." if names else "There are none."
