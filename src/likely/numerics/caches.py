"""Cached properties whose values are not part of a pickle: predictions do not change what is pickled."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

Value = TypeVar("Value")


class cached_property(functools.cached_property[Value]):  # noqa: N801 - it takes the place of that of functools
    """A property that is computed once. Pickles and copies of its object do not have the value."""

    def __set_name__(self, owner: Any, name: str) -> None:
        super().__set_name__(owner, name)
        if "__getstate__" not in vars(owner):
            owner.__getstate__ = state_without_caches


def state_without_caches(owner: Any) -> dict[str, Any]:
    """The attributes of an object without the values of its cached properties."""
    kind = type(owner)
    return {
        name: value
        for name, value in vars(owner).items()
        if not isinstance(getattr(kind, name, None), functools.cached_property)
    }
