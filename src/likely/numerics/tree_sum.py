"""Sums of many parts in a tree, whose shape depends on the number of parts alone.

Eight neighbouring values are added at a time, and so are their sums. The same parts have the same sum to the last bit,
wherever they are added up, and rounding errors grow with the logarithm of their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

FAN_IN = 8
Value = TypeVar("Value")


def group_sum(values: Sequence[Any]) -> Any:
    """The sum of some values from left to right; None is not a value, and the sum of none is None."""
    total = None
    for value in values:
        if value is not None:
            total = value if total is None else total + value
    return total


class TreeSum(Generic[Value]):
    """Adds values one after another, of which it keeps fewer than `FAN_IN` for each level of the tree."""

    def __init__(self) -> None:
        self._levels: list[list[Value | None]] = []

    def add(self, value: Value | None, level: int = 0) -> None:
        """Add the next value, or the sum of the next FAN_IN**level values; None is a part without one."""
        while level >= len(self._levels):
            self._levels.append([])
        waiting = self._levels[level]
        waiting.append(value)
        if len(waiting) == FAN_IN:
            self._levels[level] = []
            self.add(group_sum(waiting), level + 1)

    def total(self) -> Value | None:
        """The sum of all values so far; None if there is none."""
        above: Value | None = None
        for waiting in self._levels:
            above = group_sum([*waiting, above])
        return above
