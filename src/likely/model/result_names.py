"""Names of the columns with predictions, the same in every file and database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from likely.errors import InputError, InputTypeError, listed

PREFIX = "Set prefix=, such as prefix='model_', or leave the {some} out of keep=."


def result_names(classes: Iterable[Any], prefix: str = "") -> list[str]:
    """The names of the results: `predicted`, and `probability_<label>` of each class."""
    if not isinstance(prefix, str):
        raise InputTypeError(f"prefix={prefix!r} must be text.")
    names = [f"{prefix}predicted", *(f"{prefix}probability_{label}" for label in classes)]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Several classes have the column {listed(twice)}. Rename classes that differ in type only.")
    return names


def check_clash(
    names: Sequence[str], kept: Iterable[str], same: Callable[[str], str] = str, remedy: str = PREFIX
) -> None:
    """Raise where a column of the rows that is kept has the name of a result; `same` is equal for equal names."""
    taken = {same(name) for name in names}
    clash = sorted({name for name in kept if same(name) in taken})
    if clash:
        some = "columns" if len(clash) > 1 else "column"
        what = "have the names of results" if len(clash) > 1 else "has the name of a result"
        raise InputError(f"The {some} {listed(clash)} of the rows {what}. {remedy.format(some=some)}")
