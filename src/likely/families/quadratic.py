"""Class-conditional log-densities as quadratic forms."""

from __future__ import annotations

from dataclasses import dataclass

from likely.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """log p(x | class) = zᵀ·square·z + linear·z + constant, z = x − centre, up to a term that all classes share.

    With a centre near the class means, no large terms cancel.
    """

    square: Array | None  # (K, d, d); None if the squares of all classes are equal and cancel
    linear: Array  # (K, d)
    constant: Array  # (K,)
    centre: Array  # (d,)
