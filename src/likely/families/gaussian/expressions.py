"""The factorisation of correlations behind the expressions of joint Gaussian and Student t densities.

Missing values of a joint block are integrated out by an LDLᵀ factorisation of the correlations that is unrolled into
expressions: a missing column has correlations 0, and so pivot 1 and multipliers 0. The factors of the observed columns
are then those of their marginal, whatever the pattern is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likely.numerics.expressions import Cell, Expression, constant, log, square, total, where
from likely.typing import Array


def is_complete(cells: Sequence[Cell]) -> bool:
    return all(cell.missing is None for cell in cells)


class Factored:
    """L·D·Lᵀ of the correlations of observed columns, as expressions; missing columns have pivot 1.

    Products are divided by pivots one by one: shared quotients would be further steps, of which databases store each
    for all rows.
    """

    def __init__(self, columns: list[list[Expression]]) -> None:
        self.columns = columns  # columns[p][i − p]: entry (i, p) of L·D, whose diagonal is D

    @classmethod
    def of(cls, cells: Sequence[Cell], covariance: Array) -> Factored:
        scale = np.sqrt(np.diagonal(covariance))
        correlation = covariance / scale / scale[:, None]
        observed = [where(cell.missing, 0.0, 1.0) for cell in cells]
        columns: list[list[Expression]] = []
        for p in range(len(cells)):
            column = []
            for i in range(p, len(cells)):
                start = constant(1.0) if i == p else float(correlation[i, p]) * observed[i] * observed[p]
                parts = [before[i - q] * before[p - q] / before[0] for q, before in enumerate(columns)]
                column.append(start - total(parts) if parts else start)
            columns.append(column)
        return cls(columns)

    @property
    def pivots(self) -> list[Expression]:
        """D."""
        return [column[0] for column in self.columns]

    @property
    def log_determinant(self) -> Expression:
        """log|D|: of the correlations of the observed columns."""
        return total([log(pivot) for pivot in self.pivots])

    def solved(self, z: Sequence[Expression]) -> list[Expression]:
        """y = L⁻¹·z."""
        y: list[Expression] = []
        for i, value in enumerate(z):
            parts = [self.columns[p][i - p] * y[p] / self.columns[p][0] for p in range(i)]
            y.append(value - total(parts) if parts else value)
        return y

    def squared(self, z: Sequence[Expression]) -> Expression:
        """zᵀ·R⁻¹·z."""
        return total([square(y) / pivot for y, pivot in zip(self.solved(z), self.pivots, strict=True)])
