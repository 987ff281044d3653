"""Gaussian and Student t densities as expressions of the values of a row.

Missing values of a joint block are integrated out by an LDLᵀ factorisation of the correlations that is unrolled into
expressions: a missing column has correlations 0, and so pivot 1 and multipliers 0. The factors of the observed columns
are then those of their marginal, whatever the pattern is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from likely.errors import ExportError
from likely.families.gaussian.covariance import Covariance, DenseCovariance
from likely.numerics.coordinates import Coordinates
from likely.numerics.expressions import (
    Cell,
    Expression,
    bounded_cells,
    constant,
    linear,
    log,
    log1p,
    pick,
    square,
    total,
    where,
)
from likely.numerics.special import log_gamma_ratio
from likely.typing import Array, Index


class _Distances:
    """What densities of squared distances have in common."""

    if TYPE_CHECKING:  # of Elliptical
        mean: Array
        covariance: Covariance
        group: Index
        stretch: Array
        coordinates: Coordinates

        @property
        def n_classes(self) -> int: ...
        @property
        def log_peak(self) -> Array: ...
        @property
        def has_full_rank(self) -> bool: ...
        def class_means(self) -> Array: ...

    @property
    def is_joint(self) -> bool:
        return isinstance(self.covariance, DenseCovariance) and self.covariance.rank > 1

    def _deviations(self) -> Array:
        """Standard deviations of the columns in `owner` within each class, (classes, rank), in the user's units."""
        owner = self.covariance.owner
        variances = np.array([np.diagonal(self.covariance.matrix(int(g)))[owner] for g in np.unique(self.group)])
        place = np.searchsorted(np.unique(self.group), self.group)
        return np.asarray(np.sqrt(variances[place] * self.stretch[:, None]) * self.coordinates.unit[owner])

    def _bounded(self, cells: Sequence[Cell]) -> list[Cell]:
        """Cells with values whose squared distances are finite."""
        unit = self.coordinates.unit.copy()
        unit[self.covariance.owner] = self._deviations().min(axis=0)
        return bounded_cells(cells, np.abs(self.class_means()).max(axis=0), unit)

    def _whitened(self, cells: Sequence[Cell], label: int) -> list[Expression]:
        """The whitened components of a complete row: Tᵀ·(x − mean)."""
        assert isinstance(self.covariance, DenseCovariance)
        factor = self.covariance.factor[int(self.group[label])] / np.sqrt(self.stretch[label])
        factor = factor / self.coordinates.unit[:, None]
        centred = [x.value - m for x, m in zip(cells, self.class_means()[label].tolist(), strict=True)]
        return [linear(column, centred) for column in factor.T.tolist()]

    def _factored(self, cells: Sequence[Cell], labels: Sequence[int]) -> dict[int, Factored]:
        """The factorisation of the covariance of each group of these classes."""
        if not self.has_full_rank:
            raise ExportError(
                "a column is a linear combination of others, and rows with missing values need a covariance of full "
                "rank; drop it (`summary()` lists such columns)"
            )
        owner = self.covariance.owner
        used = [cells[j] for j in owner.tolist()]
        return {
            g: Factored.of(used, self.covariance.matrix(g)[np.ix_(owner, owner)])
            for g in {int(self.group[k]) for k in labels}
        }

    def _standardised(self, cells: Sequence[Cell], label: int) -> list[Expression]:
        """(x − mean)/deviation of the columns in `owner`; 0 for missing values."""
        mean, deviations = self.class_means()[label], self._deviations()[label]
        return [
            cells[j].known((cells[j].filled(0.0) - float(mean[j])) / float(deviation))
            for j, deviation in zip(self.covariance.owner.tolist(), deviations, strict=True)
        ]


def _is_complete(cells: Sequence[Cell]) -> bool:
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


class GaussianExpressions(_Distances):
    """Expressions of Gaussian densities."""

    if TYPE_CHECKING:

        @property
        def _by_line(self) -> bool: ...

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        cells = self._bounded(cells)
        if not isinstance(self.covariance, DenseCovariance):
            return self._contrasts_of_columns(cells) if self._by_line else self._sums_of_columns(cells)
        labels = range(self.n_classes)
        if _is_complete(cells):
            if self._by_line:
                return self._complete_contrasts(cells)
            squared = [total([square(z) for z in self._whitened(cells, k)]) for k in labels]
            return [float(self.log_peak[k]) - 0.5 * squared[k] for k in labels]
        factored = self._factored(cells, labels)
        if self._by_line:
            return self._contrasts(cells, factored[int(self.group[0])])
        found = []
        for k in labels:
            mine = factored[int(self.group[k])]
            steps = self._log_deviations(cells, k)
            found.append(-0.5 * (mine.squared(self._standardised(cells, k)) + mine.log_determinant) - steps)
        return found

    def _log_deviations(self, cells: Sequence[Cell], label: int) -> Expression:
        """Σ log deviation over the observed columns, less ½·log 2π, which all classes share, for each."""
        logs = np.log(self._deviations()[label]).tolist()
        return total([cells[j].known(constant(s)) for j, s in zip(self.covariance.owner.tolist(), logs, strict=True)])

    def _sums_of_columns(self, cells: Sequence[Cell]) -> list[Expression]:
        """Σ −½·((x − mean)/deviation)² − log deviation."""
        owner, mean, deviations = self.covariance.owner.tolist(), self.class_means(), self._deviations()
        found = []
        for k in range(self.n_classes):
            terms = []
            for j, s in zip(owner, deviations[k].tolist(), strict=True):
                z = (cells[j].filled(0.0) - float(mean[k, j])) / s
                terms.append(cells[j].known(-0.5 * square(z) - float(np.log(s))))
            found.append(total(terms))
        return found

    def _contrasts_of_columns(self, cells: Sequence[Cell]) -> list[Expression]:
        """Scores relative to the first class under pooled variances: Σ b·(a − b/2), a = (x − m_0)/s, b = (m_k − m_0)/s.

        The middle of two means is not computed: far from 0 it is rounded off.
        """
        owner, deviations = self.covariance.owner.tolist(), self._deviations()[0]
        a, steps = self._standardised(cells, 0), self._steps(owner, deviations)
        found = []
        for row in steps:
            terms = [cells[j].known(b * (z - 0.5 * b)) for j, z, b in zip(owner, a, row, strict=True) if b != 0.0]
            found.append(total(terms))
        return found

    def _steps(self, owner: list[int], deviations: Array) -> list[list[float]]:
        """(m_k − m_0)/deviation of the columns in `owner`, for each class."""
        mean = self.class_means()[:, owner]
        return ((mean - mean[0]) / deviations).tolist()

    def _complete_contrasts(self, cells: Sequence[Cell]) -> list[Expression]:
        """Scores relative to the first class under a pooled covariance: (m_k − m_0)ᵀ·Σ⁻¹·(x − m_0 − (m_k − m_0)/2)."""
        mean, unit, root = self.class_means(), self.coordinates.unit, np.sqrt(self.stretch[0])
        g = int(self.group[0])
        white = self.covariance.whiten(self.mean - self.mean[0], g) / root
        weights = white @ self.covariance.whiten(np.eye(len(unit)), g).T / root / unit
        centred = [cell.value - m for cell, m in zip(cells, mean[0].tolist(), strict=True)]
        offsets = -0.5 * np.einsum("kr,kr->k", white, white)
        return [linear(w, centred, offset) for w, offset in zip(weights.tolist(), offsets.tolist(), strict=True)]

    def _contrasts(self, cells: Sequence[Cell], factored: Factored) -> list[Expression]:
        """The same of the observed values."""
        owner, deviations = self.covariance.owner.tolist(), self._deviations()[0]
        y = factored.solved(self._standardised(cells, 0))
        found: list[Expression] = [constant(0.0)]
        for steps in self._steps(owner, deviations)[1:]:
            away = factored.solved([cells[j].known(constant(step)) for j, step in zip(owner, steps, strict=True)])
            terms = zip(y, away, factored.pivots, strict=True)
            found.append(total([b * (a - 0.5 * b) / pivot for a, b, pivot in terms]))
        return found


class StudentExpressions(_Distances):
    """Expressions of joint Student t densities."""

    if TYPE_CHECKING:
        degrees: Array

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        cells, dense = self._bounded(cells), isinstance(self.covariance, DenseCovariance)
        if dense and _is_complete(cells):
            power = (self.degrees + self.covariance.rank) / 2.0
            squared = [total([square(z) for z in self._whitened(cells, k)]) for k in range(self.n_classes)]
            return [
                float(self.log_peak[k]) - float(power[k]) * log1p(squared[k] / float(self.degrees[k]))
                for k in range(self.n_classes)
            ]
        used = [cells[j] for j in self.covariance.owner.tolist()]
        count = total([where(cell.missing, 0.0, 1.0) for cell in used])
        factored = self._factored(cells, range(self.n_classes)) if dense else {}
        deviations, counts = np.log(self._deviations()), np.arange(len(used) + 1.0)
        found = []
        for k, nu in enumerate(self.degrees.tolist()):
            z = self._standardised(cells, k)
            peaks = log_gamma_ratio(np.full_like(counts, nu / 2.0), counts / 2.0) - 0.5 * counts * np.log(nu * np.pi)
            scale = total([cell.known(constant(s)) for cell, s in zip(used, deviations[k].tolist(), strict=True)])
            if dense:
                mine = factored[int(self.group[k])]
                distance, scale = mine.squared(z), scale + 0.5 * mine.log_determinant
            else:
                distance = total([square(value) for value in z])
            found.append(pick(count, peaks) - scale - 0.5 * (nu + count) * log1p(distance / nu))
        return found


class IndependentStudentExpressions(_Distances):
    """Expressions of Student t densities of independent columns."""

    if TYPE_CHECKING:
        degrees: Array

        def _peaks(self, label: int) -> Array: ...

    def expressions(self, cells: Sequence[Cell]) -> list[Expression]:
        cells = self._bounded(cells)
        owner, mean, deviations = self.covariance.owner.tolist(), self.class_means(), self._deviations()
        found = []
        for k in range(self.n_classes):
            nu = np.broadcast_to(self.degrees[k], (len(owner),))
            scales, peaks = deviations[k] * np.sqrt(nu), self._peaks(k)
            terms = []
            for i, j in enumerate(owner):
                z = (cells[j].filled(0.0) - float(mean[k, j])) / float(scales[i])
                terms.append(cells[j].known(float(peaks[i]) - float((nu[i] + 1.0) / 2.0) * log1p(square(z))))
            found.append(total(terms))
        return found
