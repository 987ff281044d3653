"""Families with given parameters: densities that the user describes, which are not estimated from rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from likely.errors import InputError, listed
from likely.families.base import Columns, Conditionals, Family, LeaveOneOutDensity
from likely.families.estimation import Estimation
from likely.families.parameters import Parameter
from likely.families.supports import Support
from likely.statistics.accumulator import Accumulator
from likely.statistics.given import no_rows
from likely.typing import AnyArray, Array

ROUNDING = 1e-9  # by which the sum of probabilities may differ from 1


class GivenFamily(Family):
    """A family whose densities have given parameters, whatever the statistics are.

    Parameters
    ----------
    family : Family
        The family of the columns.
    parameters : mapping from str to values
        Parameters of all classes, by their names.
    """

    def __init__(self, family: Family, parameters: Mapping[str, Any]) -> None:
        self.family = family
        self.parameters = parameters

    def check(self, estimation: Estimation) -> None:
        self.family.check(estimation)

    def describe(self) -> str:
        return self.family.describe()

    @property
    def _independent(self) -> bool:
        return self.family._independent

    @property
    def _declared_family(self) -> Family:
        return self.family

    @property
    def _needs_complete_rows(self) -> bool:
        return self.family._needs_complete_rows

    def _extra_columns(self) -> tuple[Any, ...]:
        return self.family._extra_columns()

    def estimate(self, statistics: Any, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        return self.family._given(self.parameters, len(statistics.classes), names)

    def _accumulator(self, classes: AnyArray, columns: Columns) -> Accumulator:
        raise no_rows("statistics")

    def _parameters(
        self, statistics: Any, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        return self.family._given_table(fitted, names)

    def _leave_one_out(
        self, statistics: Any, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        raise no_rows("leave-one-out")

    def _log_likelihood(self, statistics: Any, fitted: Conditionals, names: Sequence[str]) -> NoReturn:
        raise no_rows("the likelihood of training rows")


def given_values(
    family: str, values: Mapping[str, Any], wanted: Mapping[str, Support], size: int, names: Sequence[str]
) -> dict[str, Array]:
    """Parameters of `size` classes and these columns by their names, (classes, columns), within their ranges."""
    check_given_names(family, values, list(wanted))
    found = {}
    for name, support in wanted.items():
        array = given_array(name, values[name])
        if array.shape not in ({(size,), (size, 1)} if len(names) == 1 else {(size, len(names))}):
            one = f"({size},)" if len(names) == 1 else f"({size}, {len(names)})"
            raise InputError(
                f"{family}, column {listed(names)}: {name} has the shape {array.shape}, and {size} classes need {one}."
            )
        array = array.reshape(size, len(names))
        wrong = ~support.inside(array)
        if wrong.any():
            raise InputError(f"{family}, column {listed(names)}: {name}={array[wrong][0]} is not {support.words}.")
        found[name] = array
    return found


def given_array(name: str, value: Any) -> Array:
    """Numbers of a parameter as an array of finite floats."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value!r} is not an array of numbers.") from None
    if not np.all(np.isfinite(array)):
        raise InputError(f"{name} has a value that is not finite.")
    return array


def check_given_names(family: str, values: Mapping[str, Any], wanted: Sequence[str]) -> None:
    """Raise where the names of given parameters are not those of the family."""
    if not isinstance(values, Mapping) or set(values) != set(wanted):
        given = listed([*values]) if isinstance(values, Mapping) and values else repr(values)
        raise InputError(f"{family} has the parameters {listed([*wanted])}, and not {given}.")


def check_sums(family: str, name: str, table: Array) -> None:
    """Raise where the probabilities of a class are negative or do not sum to one, (classes, values)."""
    total = table.sum(axis=1)
    if np.any(table < 0.0) or np.any(np.abs(total - 1.0) > ROUNDING):
        k = int(np.argmax((table < 0.0).any(axis=1) | (np.abs(total - 1.0) > ROUNDING)))
        raise InputError(
            f"{family}: {name} of class number {k}, {table[k].tolist()}, must be probabilities that sum to one; their "
            f"sum is {total[k]:.6g}."
        )
