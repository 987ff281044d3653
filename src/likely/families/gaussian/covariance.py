"""Covariance structures, and the covariances they estimate.

A structure (`Full`, `Diagonal`, `Spherical`, `Identity`) is the set of free entries of a
covariance, with its conjugate prior; a `Covariance` is the fitted value, one per group of classes, stored as the
factor that whitens: z = (x - mean)·T has unit covariance. No inverse of a data matrix is formed. Constant columns
have a zero row in T and contribute nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

import numpy as np
import scipy.linalg

from likely.errors import NotEstimableError
from likely.numerics.caches import cached_property
from likely.numerics.linalg import independent_columns, lower_factor, range_whitener, whitener, whitener_of
from likely.numerics.threads import run
from likely.typing import Array, Index

THREADED_COLUMNS = 200  # with as many columns, covariances are factored on several threads


class SingularError(Exception):
    """A covariance is singular: its group, and the columns that depend on others."""

    def __init__(self, group: int, columns: Index) -> None:
        super().__init__(group, columns)
        self.group, self.columns = group, columns


class Covariance(ABC):
    """Covariances of one or more groups of classes, ready to whiten rows."""

    dimension: int  # number of columns
    log_det: Array  # (groups,)
    owner: Index  # the column that each whitened component belongs to: it depends on that and earlier columns
    rank: int  # number of whitened components: non-constant columns that are not linear combinations of others

    @abstractmethod
    def whiten(self, centred: Array, group: int) -> Array:
        """Rows (n, d) about the mean to rows (n, rank) of unit covariance."""

    @abstractmethod
    def color(self, white: Array, group: int) -> Array:
        """Rows (n, rank) of unit covariance to rows (n, d) of this covariance."""

    @abstractmethod
    def matrix(self, group: int) -> Array:
        """The covariance matrix of a group."""

    @abstractmethod
    def precision(self, group: int) -> Array:
        """T·Tᵀ: the inverse of the covariance on the columns that vary."""

    @abstractmethod
    def log_steps(self, group: int) -> Array:
        """-log of the conditional standard deviation of each component: they sum to -log_det / 2."""

    @abstractmethod
    def marginal(self, columns: Index) -> Covariance:
        """The covariances of some columns."""

    @abstractmethod
    def steepest(self) -> Array:
        """The largest change of a whitened component by a unit of each column, (d,)."""

    @abstractmethod
    def reach(self, away: Array, group: Index) -> tuple[float, float]:
        """The largest distance from 0 of points (n, d), each under the covariance of its group: a bound of |T|ᵀ|point|,
        by which rounding is amplified, and the Mahalanobis distance.
        """


class DenseCovariance(Covariance):
    """Covariances with all their off-diagonal entries.

    `factor` is T, (groups, d, rank), or the Cholesky factors of the columns in `owner`, which are inverted
    when T is first needed: a fit does not need it.
    """

    def __init__(
        self,
        factor: Array | None,
        log_det: Array,
        owner: Index,
        colorer: Array | None = None,
        *,
        lower: Sequence[Array] = (),
        dimension: int = 0,
    ) -> None:
        self._factor, self._lower = factor, lower
        self.dimension = dimension if factor is None else factor.shape[1]
        self.log_det, self.owner, self.rank = log_det, owner, len(owner)
        self.colorer = colorer  # (groups, rank, d) if rank < d

    @property
    def factor(self) -> Array:
        """T of every group, (groups, d, rank)."""
        lowers, factor = self._lower, self._factor  # in this order: another thread may be setting them
        if factor is None:
            factor = np.zeros((len(lowers), self.dimension, self.rank))
            for g, lower in enumerate(lowers):
                factor[g][self.owner] = whitener_of(lower)
            self._factor = factor
            self._lower = ()
        return factor

    def whiten(self, centred: Array, group: int) -> Array:
        return np.asarray(centred @ self.factor[group])

    def color(self, white: Array, group: int) -> Array:
        lowers = self._lower
        if self.colorer is not None:
            return np.asarray(white @ self.colorer[group])
        if lowers:
            return np.asarray(white @ lowers[group].T)
        return np.asarray(scipy.linalg.solve_triangular(self.factor[group], white.T, trans="T").T)

    def matrix(self, group: int) -> Array:
        half = self.color(np.eye(self.rank), group)
        return half.T @ half

    @cached_property
    def _matrices(self) -> Array:
        """The covariance matrices of all groups: marginals of many missingness patterns need them."""
        return np.array([self.matrix(g) for g in range(len(self.log_det))])

    def precision(self, group: int) -> Array:
        return self.factor[group] @ self.factor[group].T

    def log_steps(self, group: int) -> Array:
        return np.log(np.abs(self.factor[group][self.owner, np.arange(self.rank)]))

    def marginal(self, columns: Index) -> Covariance:
        """The marginal of a singular covariance may be singular or not."""
        matrices = self._matrices[:, columns[:, None], columns]
        active = np.flatnonzero(np.einsum("gdd->gd", matrices).max(axis=0, initial=0.0) > 0.0)
        inner = matrices[:, active[:, None], active]
        try:
            return Full().factor(inner, active, len(columns))
        except SingularError:
            pass
        for slack in (1.0, 8.0, 64.0):  # of a column whose rank rounding decides
            kept, _ = independent_columns(inner[0], slack)
            with suppress(SingularError):
                return Full().factor(inner[:, kept[:, None], kept], active[kept], len(columns))
        raise NotEstimableError("Columns are linear combinations of others within rounding. Drop one of them.")

    def steepest(self) -> Array:
        return np.asarray(np.abs(self.factor).max(axis=(0, 2), initial=0.0))

    def reach(self, away: Array, group: Index) -> tuple[float, float]:
        most, factors = np.zeros(2), self.factor
        with np.errstate(over="ignore", invalid="ignore"):
            for g in np.unique(group).tolist():
                points, factor = away[group == g], factors[g]
                bound, squares = np.abs(points) @ np.abs(factor), ((points @ factor) ** 2).sum(axis=1)
                most = np.maximum(most, [bound.max(initial=0.0), np.sqrt(squares.max(initial=0.0))])
        return float(most[0]), float(most[1])


class DiagonalCovariance(Covariance):
    """Covariances of independent columns.

    `inverse_deviation` is (groups, d), and 0 for a constant column.
    """

    def __init__(self, inverse_deviation: Array, log_det: Array) -> None:
        self.inverse_deviation, self.log_det = inverse_deviation, log_det
        self.dimension, self.owner = inverse_deviation.shape[1], np.flatnonzero(inverse_deviation[0] > 0.0)
        self.rank = len(self.owner)

    def whiten(self, centred: Array, group: int) -> Array:
        return np.asarray(centred[:, self.owner] * self.inverse_deviation[group, self.owner])

    def color(self, white: Array, group: int) -> Array:
        rows = np.zeros((len(white), self.dimension))
        rows[:, self.owner] = white / self.inverse_deviation[group, self.owner]
        return rows

    def matrix(self, group: int) -> Array:
        scale = self.inverse_deviation[group]
        with np.errstate(divide="ignore"):
            return np.diag(np.where(scale > 0.0, 1.0 / (scale * scale), 0.0))

    def precision(self, group: int) -> Array:
        return np.diag(self.inverse_deviation[group] ** 2)

    def log_steps(self, group: int) -> Array:
        return np.log(self.inverse_deviation[group, self.owner])

    def marginal(self, columns: Index) -> Covariance:
        scale = self.inverse_deviation[:, columns]
        flat = ~(scale[0] > 0.0)
        return DiagonalCovariance(scale, -2.0 * np.log(np.where(flat, 1.0, scale)).sum(axis=1))

    def steepest(self) -> Array:
        return np.asarray(self.inverse_deviation.max(axis=0))

    def reach(self, away: Array, group: Index) -> tuple[float, float]:
        with np.errstate(over="ignore", invalid="ignore"):
            white = np.abs(away) * self.inverse_deviation[group]
            return float(white.max(initial=0.0)), float(np.sqrt((white**2).sum(axis=1).max(initial=0.0)))


class Structure(ABC):
    """The free entries of a covariance. `degrees` and `mode_divisor` are those of its conjugate prior."""

    full: ClassVar[bool] = False
    estimated: ClassVar[bool] = True

    def shape(self, sums: Array) -> Array:
        """Sums of squares (groups, ...) with the structure's symmetry imposed on them."""
        return sums

    def columns_together(self, d: int) -> int:
        """How many of the d columns one variance is estimated from."""
        return 1

    def degrees_of(self, weight: Array, d: int) -> Array:
        """Degrees of freedom that rows of this weight add, (groups,) or (groups, d), and unknown means cost."""
        return weight

    def divisor(self, weight: Array) -> Array:
        """The divisor of the scatter, given weights (groups,) or (groups, d)."""
        return weight

    @abstractmethod
    def prior_degrees(self, d: int) -> float:
        """The smallest integer of degrees for which the prior expectation exists; it equals the scale."""

    @abstractmethod
    def mode_divisor(self, degrees: Array, d: int, classes: Array) -> Array:
        """The divisor of the scale at the joint mode of the means and the covariance."""

    @abstractmethod
    def predictive_degrees(self, degrees: Array, d: int) -> Array:
        """Degrees of freedom of the Student t that integrates the covariance out."""

    @abstractmethod
    def factor(self, matrices: Array, active: Index, d: int) -> Covariance:
        """Factor the covariances of the active columns; SingularError where one is singular."""


class Full(Structure):
    """One covariance for each pair of columns."""

    full = True

    def prior_degrees(self, d: int) -> float:
        return d + 2.0

    def mode_divisor(self, degrees: Array, d: int, classes: Array) -> Array:
        return np.asarray(degrees + d + 1.0 + classes)

    def predictive_degrees(self, degrees: Array, d: int) -> Array:
        return np.asarray(degrees - d + 1.0)

    def factor(self, matrices: Array, active: Index, d: int) -> Covariance:
        lower = []
        several = len(active) >= THREADED_COLUMNS
        for g, part in enumerate(run(list(matrices), lower_factor) if several else map(lower_factor, matrices)):
            if part is None:
                raise SingularError(g, active[independent_columns(matrices[g])[1]])
            lower.append(part)
        log_det = np.array([2.0 * np.log(np.diagonal(part)).sum() for part in lower])
        colorer = None
        if len(active) < d:
            colorer = np.zeros((len(lower), len(active), d))
            for g, part in enumerate(lower):
                colorer[g][:, active] = part.T
        return DenseCovariance(None, log_det, active, colorer, lower=lower, dimension=d)


def factor_subspace(matrix: Array, means: Array, active: Index, d: int) -> tuple[DenseCovariance, Index, bool]:
    """Factor one shared covariance without full rank in the subspace that the data span.

    Returns the covariance, the dependent columns, and whether the class means agree with the
    dependence. Where they do, the dependent columns are redundant and ignored. Where they do not
    (usually with fewer rows than columns), distances are measured along the directions in which rows
    vary within the classes, as MASS and scikit-learn's svd solver do.
    """
    kept, dependent = independent_columns(matrix)
    part = whitener(matrix[np.ix_(kept, kept)])
    while part is None:  # at the limit of rounding: one column less
        kept, dependent = kept[:-1], np.sort(np.append(dependent, kept[-1]))
        part = whitener(matrix[np.ix_(kept, kept)])
    agree = _means_agree(matrix, means, kept, dependent, part)
    if agree:
        owner = active[kept]
        factor = np.zeros((d, len(kept)))
        factor[owner] = part
    else:
        part = range_whitener(matrix)
        owner = active[len(active) - part.shape[1] :]
        factor = np.zeros((d, part.shape[1]))
        factor[active] = part
    colorer = np.zeros((factor.shape[1], d))
    colorer[:, active] = factor[active].T @ matrix
    steps = np.log(np.abs(factor[owner, np.arange(len(owner))]))
    log_det = np.array([-2.0 * steps.sum()])
    return DenseCovariance(factor[None], log_det, owner, colorer[None]), active[dependent], agree


def _means_agree(matrix: Array, means: Array, kept: Index, dependent: Index, part: Array) -> bool:
    """Whether the class means follow the same linear dependence as the rows within the classes."""
    away = means - means[:1]
    predicted = (away[:, kept] @ part) @ (part.T @ matrix[np.ix_(kept, dependent)])
    size = np.abs(away[:, dependent]).max(axis=0, initial=0.0) + np.sqrt(np.diagonal(matrix)[dependent])
    return bool(np.all(np.abs(away[:, dependent] - predicted) <= 1e-6 * size))


class Diagonal(Structure):
    """Columns are independent within a class, with one variance each."""

    def prior_degrees(self, d: int) -> float:
        return 3.0

    def mode_divisor(self, degrees: Array, d: int, classes: Array) -> Array:
        return np.asarray(degrees + 2.0 + (classes if degrees.ndim == 1 else classes[:, None]))

    def predictive_degrees(self, degrees: Array, d: int) -> Array:
        return degrees

    def factor(self, matrices: Array, active: Index, d: int) -> Covariance:
        for g, variances in enumerate(matrices):
            flat = ~(variances > 0.0)
            if flat.any():
                raise SingularError(g, active[flat])
        scale = np.zeros((len(matrices), d))
        scale[:, active] = 1.0 / np.sqrt(matrices)
        return DiagonalCovariance(scale, np.log(matrices).sum(axis=1))


class Spherical(Diagonal):
    """Columns are independent within a class, with one common variance."""

    def shape(self, sums: Array) -> Array:
        return np.broadcast_to(sums.mean(axis=1, keepdims=True), sums.shape) if sums.shape[1] else sums

    def columns_together(self, d: int) -> int:
        return d

    def degrees_of(self, weight: Array, d: int) -> Array:
        return weight * d if weight.ndim == 1 else weight.sum(axis=1)

    def divisor(self, weight: Array) -> Array:
        return weight if weight.ndim == 1 else weight.sum(axis=1) / max(weight.shape[1], 1)

    def mode_divisor(self, degrees: Array, d: int, classes: Array) -> Array:
        return np.asarray(degrees + 2.0 + classes * d)


class Identity(Diagonal):
    """Every variance is 1: rows are compared by Euclidean distance."""

    estimated = False

    def shape(self, sums: Array) -> Array:
        return np.ones_like(sums)


STRUCTURES: dict[str, Structure] = {
    "full": Full(),
    "diagonal": Diagonal(),
    "spherical": Spherical(),
    "identity": Identity(),
}
