"""Class-conditionals that are functions of a Mahalanobis distance: what Gaussians and Student t's have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from likely.errors import ExportError, listed
from likely.families.base import Conditionals
from likely.families.gaussian.covariance import Covariance, DenseCovariance, DiagonalCovariance
from likely.families.gaussian.expressions import Factored
from likely.families.gaussian.mahalanobis import Distances
from likely.families.gaussian.missing_cells import MissingValues
from likely.families.gaussian.partition import Partition
from likely.numerics.arrays import LARGEST_NUMBER, has_missing
from likely.numerics.caches import cached_property
from likely.numerics.coordinates import MOST_UNITS, Coordinates
from likely.numerics.expressions import Cell, Expression, bounded_cells, constant, linear, square, total
from likely.typing import AnyArray, Array, Index


@dataclass(frozen=True, eq=False)
class Elliptical(Conditionals):
    """Means, covariances and distances of Gaussian and Student t class-conditionals.

    The covariance of class k is stretch_k times that of its group.
    """

    mean: Array  # (K, d), local
    covariance: Covariance
    group: Index  # (K,)
    stretch: Array  # (K,)
    coordinates: Coordinates
    dependent: Index = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @property
    def n_classes(self) -> int:
        return len(self.mean)

    @property
    def dimension(self) -> int:
        return self.covariance.dimension

    @property
    def width(self) -> int:
        return self.distances.width

    @cached_property
    def distances(self) -> Distances:
        return Distances(self.covariance, self.mean, self.group, *self._scale())

    @abstractmethod
    def _scale(self) -> tuple[Array, Array]:
        """Factor and offset of the squared distances of each class, of which the density is a function."""

    @cached_property
    def log_units(self) -> Array:
        """Logarithms of the local units of the columns that vary."""
        return np.log(self.coordinates.unit[self.covariance.owner])

    @cached_property
    def partitions(self) -> list[Partition]:
        """The partition of distances under the covariance of every group of classes."""
        return [Partition.of(self.covariance, g) for g in range(len(self.covariance.log_det))]

    @property
    def log_unit(self) -> float:
        """Sum of the logarithms of the local units."""
        return float(self.log_units.sum())

    @cached_property
    def class_log_det(self) -> Array:
        """log|Σ_k| of every class, in local coordinates."""
        return np.asarray(self.covariance.log_det[self.group] + self.covariance.rank * np.log(self.stretch))

    def class_means(self) -> Array:
        """Means in the user's coordinates."""
        return self.coordinates.to_user(self.mean)

    def class_covariance(self, label: int) -> Array:
        """The covariance (a Student t: its scale matrix) of a class, in the user's coordinates."""
        unit = self.coordinates.unit
        return self.stretch[label] * self.covariance.matrix(int(self.group[label])) * unit * unit[:, None]

    @cached_property
    def _bounds(self) -> tuple[Array, Array] | None:
        """Local values within which squared distances are finite; None if all numbers up to 1e140 are within.

        Columns whose conditional standard deviations are far below 1e-10 need them: there, rows that are more than
        about 1e150 of them away count as this far.
        """
        with np.errstate(over="ignore", divide="ignore"):
            steepest = self.covariance.steepest() / np.sqrt(self.stretch.min())
            most = MOST_UNITS / max(self.dimension, 1) / steepest
            if np.all(LARGEST_NUMBER / self.coordinates.unit <= most):
                return None
        return self.mean.min(axis=0) - most, self.mean.max(axis=0) + most

    def local(self, rows: AnyArray) -> AnyArray:
        """Rows in local coordinates."""
        local = self.coordinates.to_local(rows)
        return local if self._bounds is None else np.clip(local, *self._bounds)

    def white(self, rows: AnyArray, label: int) -> Array:
        """Whitened rows of a class, (n, rank)."""
        centred = np.subtract(self.local(rows), self.mean[label], dtype=np.float64)
        return self.covariance.whiten(centred, int(self.group[label])) / np.sqrt(self.stretch[label])

    @property
    def has_full_rank(self) -> bool:
        """Whether the columns that vary are not linearly dependent."""
        return not len(self.dependent) and len(self.covariance.owner) == self.covariance.rank

    def class_log_density(self, rows: AnyArray, codes: AnyArray) -> Array:
        if isinstance(self.covariance, DiagonalCovariance) or not has_missing(rows):
            return super().class_log_density(rows, codes)
        found = np.empty(len(codes))
        incomplete = np.isnan(rows).any(axis=1)
        found[~incomplete] = super().class_log_density(rows[~incomplete], codes[~incomplete])
        index = np.flatnonzero(incomplete)
        for k in np.flatnonzero(np.bincount(codes[index], minlength=1)).tolist():
            mine = index[codes[index] == k]
            found[mine] = self.of_classes([k]).log_density(rows[mine])[0]
        return found

    def of_classes(self, labels: Index | list[int]) -> Self:
        """The densities of these classes, any number of times each."""
        names = [name for name in ("mean", "group", "stretch", "degrees") if hasattr(self, name)]
        return replace(self, **{name: getattr(self, name)[labels] for name in names})

    def observed(self, rows: AnyArray) -> tuple[Array, Array, Array, Array] | None:
        """Squared distances and log-determinants (classes, n) of the observed values of rows; their number, and the sum
        of the logarithms of their units, (n,). None if columns are linearly dependent.
        """
        owner = self.covariance.owner
        if not self.has_full_rank:
            return None
        local = np.asarray(self.local(rows), dtype=np.float64)[:, owner]
        missing = np.isnan(local)
        local[missing] = 0.0
        squared, log_det = np.empty((2, self.n_classes, len(rows)))
        count = (~missing).sum(axis=1).astype(np.float64)
        wide = np.zeros((len(rows), self.dimension))
        for g in np.unique(self.group).tolist():
            missing_values = MissingValues(missing, self.covariance.precision(g)[np.ix_(owner, owner)])
            for k in np.flatnonzero(self.group == g).tolist():
                centred = np.where(missing, 0.0, local - self.mean[k, owner])
                missing_values.fill(centred)
                wide[:, owner] = centred
                white = self.covariance.whiten(wide, g)
                np.einsum("nr,nr->n", white, white, out=squared[k])
                squared[k] /= self.stretch[k]
                log_det[k] = self.covariance.log_det[g] + missing_values.logs + count * np.log(self.stretch[k])
        return squared, log_det, count, (~missing) @ self.log_units

    def expectation(self, rows: AnyArray, label: int) -> Array:
        owner, g = self.covariance.owner, int(self.group[label])
        centred = np.asarray(self.local(rows), dtype=np.float64) - self.mean[label]
        missing = np.isnan(centred)
        centred[missing] = 0.0
        if not isinstance(self.covariance, DiagonalCovariance):
            inner = centred[:, owner]
            MissingValues(missing[:, owner], self.covariance.precision(g)[np.ix_(owner, owner)]).fill(inner)
            centred[:, owner] = inner
        return self.coordinates.to_user(centred + self.mean[label])

    def colored(self, white: Array, label: int) -> Array:
        """Rows of a class from noise of unit covariance, in the user's coordinates, within the range of floats."""
        rows = self.covariance.color(white * np.sqrt(self.stretch[label]), int(self.group[label]))
        with np.errstate(over="ignore"):
            drawn = self.coordinates.to_user(self.mean[label] + rows)
        largest = np.finfo(np.float64).max
        return np.clip(drawn, -largest, largest, out=drawn)

    def marginal(self, columns: Index) -> Self:
        """The same densities of some columns: means and covariances of those."""
        place = np.full(self.dimension, -1)
        place[columns] = np.arange(len(columns))
        kept = self.dependent[np.isin(self.dependent, columns)]
        return replace(
            self,
            mean=self.mean[:, columns],
            covariance=self.covariance.marginal(columns),
            coordinates=self.coordinates.take(columns),
            dependent=place[kept],
        )

    @cached_property
    def variances(self) -> DiagonalCovariance:
        """The variances of the columns, without their covariances."""
        if isinstance(self.covariance, DiagonalCovariance):
            return self.covariance
        roots = (self.covariance.color(np.eye(self.covariance.rank), g) for g in range(len(self.covariance.log_det)))
        scale = np.sqrt(np.array([np.einsum("rd,rd->d", root, root) for root in roots]))
        varies = scale[0] > 0.0
        inverse = np.where(varies, 1.0 / np.where(varies, scale, 1.0), 0.0)
        return DiagonalCovariance(inverse, 2.0 * np.log(np.where(varies, scale, 1.0)).sum(axis=1))

    # -- contributions of the columns

    @property
    def has_independent_columns(self) -> bool:
        """Whether the density of a class is a product over the columns."""
        return isinstance(self.covariance, DiagonalCovariance)

    @abstractmethod
    def _terms(self, rows: AnyArray, label: int) -> Array:
        """Contribution of each component to the log-density of a class, (n, rank), by the chain rule.

        Those of missing values are 0. Joint densities are of complete rows.
        """

    def _column_terms(self, rows: AnyArray, label: int) -> Array:
        """The same of all columns, (n, d)."""
        terms = np.zeros((len(rows), self.dimension))
        terms[:, self.covariance.owner] = self._terms(rows, label)
        return terms

    def class_terms(self, rows: AnyArray, label: int) -> Array | None:
        return self._column_terms(rows, label) if self.has_independent_columns else None

    def explain_sequential(self, rows: AnyArray) -> Array:
        if not self.has_independent_columns and has_missing(rows):
            return self.explain_with_missing(rows, sequential=True)
        return np.stack([self._column_terms(rows, k) for k in range(self.n_classes)], axis=1)

    def explain(self, rows: AnyArray) -> Array:
        if self.has_independent_columns:
            return self.explain_sequential(rows)
        if has_missing(rows):
            return self.explain_with_missing(rows)
        terms = np.zeros((len(rows), self.n_classes, self.dimension))
        if not self.covariance.rank:
            return terms
        log_units = np.log(self.coordinates.unit) + 0.5 * np.log(self.stretch)[:, None]
        for k, part in enumerate(self.partitions[g] for g in self.group):
            penalty = self._penalty(part.components(self.white(rows, k)), k)
            terms[:, k, part.columns] = part.constants(log_units[k], float(self.log_peak[k])) - penalty
        return terms

    @property
    @abstractmethod
    def log_peak(self) -> Array:
        """log-density at the mean, (classes,)."""

    @abstractmethod
    def _penalty(self, components: Array, label: int) -> Array:
        """What uncorrelated components of rows, (n, columns), take off the log-density at the mean of a class."""

    def ignored_columns(self) -> Index:
        if len(self.dependent) and isinstance(self.covariance, DenseCovariance):  # in a subspace of all columns
            return np.flatnonzero(~np.asarray(self.covariance.factor.any(axis=(0, 2))))
        return np.setdiff1d(np.arange(self.dimension), self.covariance.owner)

    def notes(self, names: Sequence[str]) -> list[str]:
        ignored, dependent = self.ignored_columns(), self.dependent
        found = {
            "constant columns, ignored": np.setdiff1d(ignored, dependent),
            "linear combinations of other columns, ignored": np.intersect1d(dependent, ignored),
            "linear combinations of other columns within the classes": np.setdiff1d(dependent, ignored),
        }
        return [f"{what}: {listed([names[j] for j in columns])}" for what, columns in found.items() if len(columns)]

    # -- expressions

    @property
    def is_joint(self) -> bool:
        return isinstance(self.covariance, DenseCovariance) and self.covariance.rank > 1

    @property
    def incomplete_steps(self) -> int | None:
        """½·d³ for each covariance, of which some are shared, and 2·d² for each class."""
        if not self.is_joint:
            return 0
        d = self.covariance.rank
        return d**3 // 2 * len(np.unique(self.group)) + 2 * d * d * self.n_classes if self.has_full_rank else None

    def offset_columns(self) -> Index:
        return np.flatnonzero(self.coordinates.origin)

    def relative_deviations(self) -> Array:
        """The smallest standard deviation of each column over its largest mean, (d,); infinite without variation."""
        found, owner = np.full(self.dimension, np.inf), self.covariance.owner
        with np.errstate(divide="ignore"):
            found[owner] = self._deviations().min(axis=0) / np.abs(self.class_means()[:, owner]).max(axis=0)
        return found

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

    def _squared_distance(self, cells: Sequence[Cell], label: int) -> Expression:
        """‖Tᵀ·(x − mean)‖² of a complete row."""
        assert isinstance(self.covariance, DenseCovariance)
        factor = self.covariance.factor[int(self.group[label])] / np.sqrt(self.stretch[label])
        factor = factor / self.coordinates.unit[:, None]
        centred = [x.value - m for x, m in zip(cells, self.class_means()[label].tolist(), strict=True)]
        return total([square(linear(column, centred)) for column in factor.T.tolist()])

    def _distances_and_scales(self, cells: Sequence[Cell]) -> list[tuple[Expression, Expression]]:
        """Squared distance of the observed values, and Σ log deviation + ½·log|R| of their correlations, by class."""
        used = [cells[j] for j in self.covariance.owner.tolist()]
        logs, factored, found = np.log(self._deviations()), self._factored(cells), []
        for k in range(self.n_classes):
            z, mine = self._standardised(cells, k), factored.get(int(self.group[k]))
            scale = total([cell.known(constant(s)) for cell, s in zip(used, logs[k].tolist(), strict=True)])
            if mine is None:
                found.append((total([square(value) for value in z]), scale))
            else:
                found.append((mine.squared(z), scale + 0.5 * mine.log_determinant))
        return found

    def _factored(self, cells: Sequence[Cell]) -> dict[int, Factored]:
        """The factorisation of the covariance of each group of classes; none of independent columns."""
        if isinstance(self.covariance, DiagonalCovariance):
            return {}
        if not self.has_full_rank:
            raise ExportError(
                "a column is a linear combination of others, and rows with missing values need a covariance of full "
                "rank; drop it (`summary()` lists such columns)"
            )
        owner = self.covariance.owner
        used = [cells[j] for j in owner.tolist()]
        return {
            g: Factored.of(used, self.covariance.matrix(g)[np.ix_(owner, owner)])
            for g in np.unique(self.group).tolist()
        }

    def _sums_of_columns(
        self, cells: Sequence[Cell], scales: Array, term: Callable[[Expression, int, int], Expression]
    ) -> list[Expression]:
        """Σ_i term(z_i, k, i) of the observed values of the columns in `owner`, z = (x − mean)/scale, by class."""
        owner, mean, found = self.covariance.owner.tolist(), self.class_means(), []
        for k in range(self.n_classes):
            z = [(cells[j].filled(0.0) - float(mean[k, j])) / float(s) for j, s in zip(owner, scales[k], strict=True)]
            found.append(total([cells[j].known(term(z[i], k, i)) for i, j in enumerate(owner)]))
        return found

    def _standardised(self, cells: Sequence[Cell], label: int) -> list[Expression]:
        """(x − mean)/deviation of the columns in `owner`; 0 for missing values."""
        mean, deviations = self.class_means()[label], self._deviations()[label]
        return [
            cells[j].known((cells[j].filled(0.0) - float(mean[j])) / float(deviation))
            for j, deviation in zip(self.covariance.owner.tolist(), deviations, strict=True)
        ]
