"""Checks of objects from files: types of fields, shapes and ranges of arrays, as annotations state them."""

from __future__ import annotations

import re
import types
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from likely.errors import ModelFileError

FLAGS = {"distinct", "rising", "inf", "nan"}
AXIS = re.compile(r"=?(\w+?)([+-]\d+)?")
RANGE = re.compile(r"([<>]=?)(.+)")
OUTSIDE = {">=": np.less, ">": np.less_equal, "<=": np.greater, "<": np.greater_equal}
NUMBERS: dict[Any, Any] = {float: float | int | np.floating | np.integer, int: int | np.integer}


class Shape:
    """The axes of an array and the range of its numbers, as metadata of an annotation.

    ``Shape("classes d", ">=0")`` is an array with two axes and no negative numbers. Axes of one name have one length
    within an object. "d+1" is longer by one, "_" has any length, and "=names" are equal in content too. Further axes
    are alternatives. Numbers are finite; "inf" allows infinite ones, and "nan" these and NaN. "<d" is below the length
    of d. The axes of an object are those that it shares with the object it is part of.
    """

    def __init__(self, *terms: str) -> None:
        self.flags = FLAGS.intersection(terms)
        self.ranges = [found.groups() for found in map(RANGE.fullmatch, terms) if found]
        self.axes = [term.split() for term in terms if term not in FLAGS and not RANGE.fullmatch(term)]


def check(value: Any) -> dict[str, Any]:
    """The lengths of the axes of an object of this library, or their content; an error where a field does not fit.

    What annotations cannot state a class has in `_sizes` (lengths, by name) and `_valid`.
    """
    kind: Any = type(value)
    found = _Fields()
    for name, hint in _annotations(kind).items():
        if hasattr(value, name) and not found.fits(getattr(value, name), hint):
            raise ModelFileError(f"no model has such a {kind.__name__}: {name}")
    sizes = value._sizes() if hasattr(kind, "_sizes") else {}
    fits = all(map(found.binds, sizes, sizes.values())) and all(found.is_in_range(*each) for each in found.numbers)
    if not (fits and (not hasattr(kind, "_valid") or value._valid())):
        raise ModelFileError(f"no model has such a {kind.__name__}: its fields contradict each other")
    return found.sizes


@cache
def _annotations(kind: type) -> dict[str, Any]:
    """Those of the fields of a dataclass; elsewhere those with metadata."""
    hints = get_type_hints(kind, include_extras=True)
    if is_dataclass(kind):
        return {field.name: hints[field.name] for field in fields(kind)}
    return {name: hint for name, hint in hints.items() if get_origin(hint) is Annotated}


def _length(size: Any) -> float:
    """The length of an axis; a number in a range as it is."""
    return float(size) if isinstance(size, int | str) else len(size)


class _Fields:
    """The fields of an object: lengths of axes, and numbers whose ranges depend on them."""

    def __init__(self) -> None:
        self.sizes: dict[str, Any] = {}
        self.numbers: list[tuple[Shape, Any]] = []

    def fits(self, value: Any, hint: Any, shape: Shape | None = None) -> bool:
        """Whether a value has this type and shape."""
        origin, args = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self.fits(value, args[0], args[1])
        if origin in (Union, types.UnionType):
            return any(self.fits(value, each, shape) for each in args)
        if value is None or hint is type(None):
            return value is None and hint in (type(None), Any)
        return self._has_type(value, hint, origin, args) and self._has_shape(value, shape)

    def _has_type(self, value: Any, hint: Any, origin: Any, args: tuple[Any, ...]) -> bool:
        if origin is tuple and isinstance(value, tuple):
            each = args[:1] * len(value) if args[-1] is Ellipsis else args
            return len(each) == len(value) and all(map(self.fits, value, each))
        if origin is dict and isinstance(value, dict):
            return all(self.fits(key, args[0]) and self.fits(part, args[1]) for key, part in value.items())
        if origin is np.ndarray:
            (wanted,) = get_args(args[1])
            wanted = get_origin(wanted) or wanted
            if wanted is Any or not isinstance(value, np.ndarray):
                return isinstance(value, np.ndarray)
            return issubclass(np.dtype(value.dtype.str).type, wanted)  # two types of NumPy are the same uint64
        if hint in NUMBERS:
            return isinstance(value, NUMBERS[hint]) and not isinstance(value, bool)
        wanted = origin or hint
        return wanted is Any or not isinstance(wanted, type) or isinstance(value, wanted)

    def _has_shape(self, value: Any, shape: Shape | None) -> bool:
        if is_dataclass(value) and type(value).__module__.partition(".")[0] == "likely":
            sizes = check(value)
            shared = shape.axes[0] if shape and shape.axes else ()
            return all(self.binds(name, sizes[name]) for name in shared if name in sizes)
        if shape is None:
            return True
        if hasattr(value, "classes"):  # statistics of a family of the user
            return "classes" not in shape.axes[0] or self.binds("classes", tuple(value.classes.tolist()))
        lengths = (len(value),) if isinstance(value, tuple) else np.shape(value)
        for axes in shape.axes:
            before = dict(self.sizes)
            content = tuple(value.tolist()) if isinstance(value, np.ndarray) else value
            wanted = [content if axis[0] == "=" else size for axis, size in zip(axes, lengths, strict=False)]
            if len(axes) == len(lengths) and all(map(self.binds, axes, wanted)):
                break
            self.sizes = before
        else:
            if shape.axes:
                return False
        self.numbers.append((shape, value))
        return True

    def binds(self, axis: str, size: Any) -> bool:
        """Whether an axis can have this length or content, which it has from now on."""
        if axis == "_" or axis.isdigit():
            return axis == "_" or _length(size) == int(axis)
        name, more = AXIS.fullmatch(axis).groups()  # type: ignore[union-attr]
        size = size - int(more) if more else size
        known = self.sizes.setdefault(name, size)
        if isinstance(known, int):
            self.sizes[name] = size
        return _length(known) == _length(size) if isinstance(known, int) or isinstance(size, int) else known == size

    def is_in_range(self, shape: Shape, value: Any) -> bool:
        """Whether numbers are as the arguments of a shape state."""
        flags = shape.flags
        if "distinct" in flags and len(set(value.tolist() if hasattr(value, "tolist") else value)) < len(value):
            return False
        if isinstance(value, tuple) and not shape.ranges:
            return True
        numbers = value.data if hasattr(value, "tocsr") else np.asarray(value)
        fits = "rising" not in flags or bool(np.all(numbers[1:] > numbers[:-1]))
        if numbers.dtype.kind == "f" and "nan" not in flags:
            fits &= bool(np.all(~np.isnan(numbers) if "inf" in flags else np.isfinite(numbers)))
        limits = ((OUTSIDE[sign], self.sizes.get(limit, limit)) for sign, limit in shape.ranges)
        return fits and not any(np.any(outside(numbers, _length(limit))) for outside, limit in limits)
