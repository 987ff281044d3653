"""What stands for the statistics of a model whose parameters are given: its classes, and no rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NoReturn, Self

import numpy as np

from likely.errors import InputError
from likely.numerics.shapes import Shape
from likely.typing import AnyArray


def no_rows(operation: str) -> InputError:
    """The error for what needs training rows."""
    return InputError(
        f"{operation}: this model was made from given parameters and has no training rows. Fit a model to rows instead."
    )


@dataclass(frozen=True, slots=True, eq=False)
class GivenStatistics:
    """The classes of a block of columns with given parameters."""

    classes: Annotated[AnyArray, Shape("=classes")]
    dimension: int

    def align(self, classes: AnyArray) -> Self:
        """The same for the same classes."""
        if not np.array_equal(classes, self.classes):
            raise no_rows("other classes")
        return replace(self, classes=classes)

    def select(self, which: AnyArray) -> NoReturn:
        raise no_rows("drop_class")

    def __add__(self, other: object) -> NoReturn:
        raise no_rows("+")

    def __sub__(self, other: object) -> NoReturn:
        raise no_rows("-")
