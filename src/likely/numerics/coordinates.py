"""Exact changes of origin and unit, so that squares neither overflow nor underflow and no integer is rounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from likely.numerics.arrays import power_of_two
from likely.numerics.shapes import Shape
from likely.typing import AnyArray, Array

# Magnitudes whose fourth powers, summed, are far from overflow and underflow.
SAFE_LOW, SAFE_HIGH = 2.0**-200, 2.0**200
MOST_UNITS = 1e150  # whose squares are finite


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """An exact change of origin and unit per column: local = (value - origin) / unit.

    It is trivial (origin 0, unit 1) except where squares would overflow or underflow (the unit is then a
    power of two) and for integers beyond 2^53 (the origin is then subtracted in integer arithmetic).
    """

    origin: Annotated[Array, Shape("d")]
    unit: Annotated[Array, Shape("d", ">0")]
    trivial: bool = False

    @classmethod
    def plain(cls, dimension: int) -> Self:
        return cls(np.zeros(dimension), np.ones(dimension), trivial=True)

    @classmethod
    def make(cls, origin: Array, unit: Array) -> Self:
        return cls(origin, unit, trivial=bool(np.all(origin == 0.0) and np.all(unit == 1.0)))

    def _valid(self) -> bool:
        return not self.trivial or bool(np.all((self.origin == 0.0) & (self.unit == 1.0)))

    def same(self, other: Coordinates) -> bool:
        return (
            self is other
            or (self.trivial and other.trivial)
            or (np.array_equal(self.origin, other.origin) and np.array_equal(self.unit, other.unit))
        )

    def to_local(self, block: AnyArray) -> AnyArray:
        """Rows in local coordinates; unchanged where the coordinates are trivial."""
        if self.trivial:
            return block.astype(np.float64) if block.dtype == np.longdouble else block
        if block.dtype.kind in "iu" and np.any(self.origin != 0.0):
            return self._minus_origin(block) / self.unit
        # Dividing first keeps a difference of two huge values finite; distant rows may still overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            return (block / self.unit - self.origin / self.unit).astype(np.float64)

    def to_limited(self, block: AnyArray) -> AnyArray:
        """Rows in local coordinates, within 1e150: in tiny units, values of rows that are predicted may be beyond."""
        local = self.to_local(block)
        return local if self.trivial else np.clip(local, -MOST_UNITS, MOST_UNITS)

    def _minus_origin(self, block: AnyArray) -> Array:
        """Integers minus the origin, exactly where the difference fits 63 bits (modulo 2^64 it always does)."""
        origin = np.array([int(value) % 2**64 for value in self.origin], dtype=np.uint64)
        exact = (block.astype(np.uint64) - origin).view(np.int64)
        rounded = block.astype(np.float64) - self.origin
        return np.where(np.abs(rounded) < 2.0**62, exact, rounded)

    def to_user(self, local: Array) -> Array:
        """Values in the user's coordinates."""
        return local if self.trivial else local * self.unit + self.origin

    def take(self, columns: AnyArray) -> Self:
        return self.make(self.origin[columns], self.unit[columns])


def safe_unit(magnitude: Array) -> Array:
    """1 where fourth powers of the magnitude neither overflow nor underflow, else a power of two."""
    fine = (magnitude == 0.0) | ((magnitude >= SAFE_LOW) & (magnitude <= SAFE_HIGH))
    return np.where(fine, 1.0, power_of_two(magnitude))
