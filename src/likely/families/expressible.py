"""Class-conditional densities as expressions of the values of a row, for the export of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from likely.numerics.expressions import Cell, Expression, finite


class Expressible:
    """Base of class-conditional densities: their scores as expressions, a second statement next to the one in NumPy."""

    not_exported: ClassVar[str] = (  # why `expressions` returns None, and what to do
        "the family has no expression. Declare another family, or add statistic_expressions or expression to its "
        "densities and condition to its support."
    )
    needs_values: ClassVar[bool] = False  # whether rows with missing values have no density

    def expressions(self, cells: Sequence[Cell]) -> list[Expression] | None:
        """The scores of a row as expressions of its values, one for each class; None if there are none.

        They equal `scores` up to a term that all classes share. Values outside the support are missing here.
        """
        return None

    def inside(self, column: int, x: Expression) -> Expression:
        """Whether a value of a column is in the support."""
        return finite(x)

    def accurate(self, column: int, x: Expression) -> Expression | None:
        """Whether the expression of a value is as accurate as its density; else the row is invalid. None: always."""
        return None

    @property
    def is_joint(self) -> bool:
        """Whether the expressions of rows with missing values are longer than those of complete rows."""
        return False
