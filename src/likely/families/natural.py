"""Independent columns of the exponential family with plug-in parameters: scores are matrix products θ·u(x)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from likely.errors import InputError
from likely.families.base import ExponentialConditionals
from likely.families.independent import TABLE_VALUES, IndependentColumns, Mask, check_parts
from likely.families.quadratic import Quadratic
from likely.numerics.arrays import all_finite, has_missing
from likely.numerics.caches import cached_property
from likely.numerics.expressions import Cell, Expression, relative_to_first, times_log, total, with_coefficients
from likely.statistics.sums import check_stored
from likely.typing import AnyArray, Array

EXACT_PRODUCT = 1e4  # up to this |θ·u|, its rounding error is below 1e-11
LARGEST_PRODUCT = 4e5  # beyond this |θ·u|, its rounding error exceeds 1e-10 and values are evaluated one by one


@dataclass(frozen=True, eq=False)
class NaturalColumns(IndependentColumns, ExponentialConditionals):
    """Base class of independent columns of the exponential family with plug-in parameters.

    The density of a value is h(x)·exp(θ·u(x) − A(θ)). A subclass overrides `natural`, `statistics`, `draw`, and
    `carrier` unless h is 1; all else follows. A natural parameter may be −inf, the logarithm of a probability of 0:
    values whose statistic is not 0 are then impossible.

    Parameters
    ----------
    informative : bool array of shape (n_columns,)
        Whether a column takes more than one value. Other columns are ignored: they contribute 0.
    constant_value : array of shape (n_columns,)
        The mean of each column over all classes. Samples of ignored columns have this value.

    Attributes
    ----------
    support : Support
        Class attribute: the values that a column can take.
    name : str
        Class attribute: the name of the family, for error messages.

    See Also
    --------
    IndependentColumns : Densities of independent columns outside the exponential family, such as predictives.
    ColumnFamily : The family that estimates such densities.

    Examples
    --------
    Exponential waiting times, u(x) = x, θ = −rate, A = −log rate:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from likely.families.columns import NON_NEGATIVE, NaturalColumns
    >>> @dataclass(frozen=True, eq=False)
    ... class Waiting(NaturalColumns):
    ...     rate: np.ndarray
    ...     support, name = NON_NEGATIVE, "Waiting"
    ...
    ...     def natural(self):
    ...         return (-self.rate,), -np.log(self.rate)
    ...
    ...     def statistics(self, x):
    ...         return (x,)
    ...
    ...     def draw(self, label, n, rng):
    ...         return rng.exponential(1.0 / self.rate[label], (n, self.dimension))
    >>> density = Waiting(np.array([True]), np.zeros(1), rate=np.array([[1.0], [2.0]]))
    >>> density.log_density(np.array([[0.0], [3.0]])).round(3)
    array([[ 0.   , -3.   ],
           [ 0.693, -5.307]])
    """

    @abstractmethod
    def natural(self) -> tuple[tuple[Array, ...], Array]:
        """Return the natural parameters and the log-partition function.

        Returns
        -------
        theta : tuple of array of shape (n_classes, n_columns)
            θ_1, …, θ_m.
        log_partition : array of shape (n_classes, n_columns)
            A(θ).
        """

    @abstractmethod
    def statistics(self, x: Array) -> tuple[Array, ...]:
        """Return the sufficient statistics of single values.

        Parameters
        ----------
        x : array
            Values of the support.

        Returns
        -------
        tuple of array
            u_1(x), …, u_m(x), each of the shape of `x`.
        """

    def carrier(self, x: Array) -> Array | None:
        """Return the logarithm of the carrier of single values.

        Parameters
        ----------
        x : array
            Values of the support.

        Returns
        -------
        array or None
            log h(x), of the shape of `x`. None, the default, is h = 1.
        """
        return None

    def statistic_expressions(self, x: Expression) -> tuple[Expression, ...] | None:
        """Return `statistics` as expressions, for the export of models.

        Parameters
        ----------
        x : Expression
            A value of the support.

        Returns
        -------
        tuple of Expression or None
            u_1(x), …, u_m(x). None, the default, is not exported.
        """
        return None

    def centred_statistics(self, x: Expression, centre: float) -> tuple[Expression, ...]:
        """Return u(x) − u(centre) as expressions; override it where the difference loses digits near the centre.

        Parameters
        ----------
        x : Expression
            A value of the support.
        centre : float
            The mean of the column, or that of a class.

        Returns
        -------
        tuple of Expression
            u_1(x) − u_1(centre), …, u_m(x) − u_m(centre).
        """
        values = (float(u) for u in self.statistics(np.asarray(centre)))
        return tuple(u - value for u, value in zip(self.statistic_expressions(x) or (), values, strict=True))

    def accurate(self, column: int, x: Expression) -> Expression | None:
        return None if self.statistic_expressions(x) else super().accurate(column, x)

    def class_centres(self, column: int) -> Array | None:
        """Return a value near the mean of each class at which log h is moderate; None, the default, where it is not.

        Parameters
        ----------
        column : int
            Index of the column.

        Returns
        -------
        array of shape (n_classes,) or None
            Values about which the export computes the density of each class, if the classes of a column are narrow and
            far from one another.
        """
        return None

    def expressions(self, cells: Sequence[Cell]) -> list[Expression] | None:
        """θ·u(x) − A, up to a term that all classes share, such as log h(x)."""
        found: list[list[Expression]] = [[] for _ in range(self.n_classes)]
        for j in np.flatnonzero(self.informative).tolist():
            x = cells[j].filled(self.support.filler)
            if self.statistic_expressions(x) is None or self.support.condition is None:
                return super().expressions(cells)
            for terms, term in zip(found, self._column_expressions(x, j), strict=True):
                terms.append(cells[j].known(term))
        return [total(terms) for terms in found]

    def _column_expressions(self, x: Expression, column: int) -> list[Expression]:
        """θ·u(x) − A of the classes; where these are large, θ·(u(x) − u(m)) and the log-densities at m.

        If m is many standard deviations from 0 in all classes, θ·u(x) − A is a small difference of large numbers, and
        would lose its digits. m is the mean of the column, and that of each class where the classes are far apart.
        """
        natural, partition = self.natural()
        theta = tuple(part[:, column] for part in natural)
        common = tuple(relative_to_first(part) for part in theta)
        centre = float(self.constant_value[column])
        with np.errstate(all="ignore"):
            terms = self.log_terms(np.full(self.n_classes, centre), *(part[:, column] for part in self.parameters))
            products = [part * u for part, u in zip(theta, self.statistics(np.asarray(centre)), strict=True)]
            plain, start = relative_to_first(partition[:, column]), relative_to_first(terms)
            sizes = [np.abs(relative_to_first(part)).max() for part in (*products, plain)]
        if all_finite(np.array(sizes)):
            if np.abs(start).max() < 0.01 * max(sizes):
                return _products(self.centred_statistics(x, centre), common, start)
            if max(sizes) > EXACT_PRODUCT:
                found = self._about_class_centres(x, column, theta)
                if found is not None:
                    return found
        return _products(self.statistic_expressions(x) or (), common, -plain)

    def _about_class_centres(self, x: Expression, column: int, theta: tuple[Array, ...]) -> list[Expression] | None:
        """θ·(u(x) − u(m)) + log p(m) − log h(m) with a value m for each class; None if there are none."""
        centres = self.class_centres(column)
        if centres is None:
            return None
        with np.errstate(all="ignore"):
            start = self.log_terms(centres, *(part[:, column] for part in self.parameters))
            carrier = self.carrier(centres)
            start = start if carrier is None else start - carrier
        if not all_finite(start):
            return None
        found = []
        for k, centre in enumerate(centres.tolist()):
            mine = tuple(part[k : k + 1] for part in theta)
            found += _products(self.centred_statistics(x, centre), mine, start[k : k + 1])
        return found

    @cached_property
    def _natural(self) -> tuple[tuple[Array, ...], Array]:
        """`natural`, whose form is checked, as is that of `statistics`."""
        found: Any = self.natural()
        if not isinstance(found, tuple) or len(found) != 2:
            raise InputError(
                f"{type(self).__name__}.natural must return a tuple: natural parameters and the log-partition function."
            )
        theta, partition = found
        shape = np.shape(partition)
        if len(shape) != 2 or shape[1] != self.dimension:
            raise InputError(
                f"{type(self).__name__}.natural returned a log-partition function of the shape {shape}, which must be "
                f"(classes, {self.dimension})."
            )
        check_parts(f"{type(self).__name__}.natural", theta, shape)
        probe = np.full((2, 1), self.support.filler)
        parts: Any = self.statistics(probe)
        check_parts(f"{type(self).__name__}.statistics", parts, probe.shape)
        if len(parts) != len(theta):
            raise InputError(
                f"{type(self).__name__}.statistics returned {len(parts)} arrays, and natural {len(theta)} parameters."
            )
        return theta, partition

    @cached_property
    def parameters(self) -> tuple[Array, ...]:
        theta, partition = self._natural
        return (*theta, partition)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        carrier = self.carrier(x)
        terms = -parameters[-1] if carrier is None else carrier - parameters[-1]
        for theta, u in zip(parameters[:-1], self.statistics(x), strict=True):
            with np.errstate(invalid="ignore", over="ignore"):
                part = theta * u
            terms = terms + (part if all_finite(theta) else np.where(u == 0.0, 0.0, part))
        return np.asarray(terms)

    @cached_property
    def _products(self) -> tuple[Array, Array | None, Array, float]:
        """θ, (m, classes, d), with 0 for −inf and ignored columns; 1 where it is −inf, or None; A; the largest |θ|."""
        theta, partition = self._natural
        stacked = np.where(self.informative, np.array(theta), 0.0)
        infinite = np.isneginf(stacked)
        finite = np.where(infinite, 0.0, stacked)
        impossible = infinite.astype(np.float64) if infinite.any() else None
        return finite, impossible, np.where(self.informative, partition, 0.0), float(np.abs(finite).max(initial=0.0))

    def log_density(self, rows: Any) -> Array:
        if scipy.sparse.issparse(rows):
            return super().log_density(rows)
        x, ignored = self.read(rows)
        density = self.product_scores(x, ignored, EXACT_PRODUCT)
        if density is None:
            return super().log_density(rows)
        terms = self._carrier_terms(x)
        if terms is not None:
            density += np.dot(terms if ignored is None else np.where(ignored, 0.0, terms), np.ones(self.dimension))
        return density

    def _carrier_terms(self, x: Array) -> Array | None:
        """log h of values, tabulated where they are few whole numbers; None for h = 1."""
        top = x.max(initial=0.0)
        if not (self.support.whole and top <= min(TABLE_VALUES, x.size)):
            return self.carrier(x)
        table = self.carrier(np.arange(top + 1.0))
        return None if table is None else np.take(table, x.astype(np.intp))

    def scores(self, rows: Any) -> Array:
        if scipy.sparse.issparse(rows):
            return self._sparse_scores(scipy.sparse.csr_array(rows))
        x, ignored = self.read(rows)
        scores = self.product_scores(x, ignored, LARGEST_PRODUCT)
        return super().log_density(rows) if scores is None else scores

    def product_scores(self, x: Array, ignored: Mask | None, limit: float) -> Array | None:
        """Σ_j θ·u(x_j) − A as matrix products, (classes, n); None if |θ·u| may exceed the limit of exactness."""
        theta, impossible, partition, largest = self._products
        parts = self.statistics(x)
        if largest * max(float(np.abs(u).max(initial=0.0)) for u in parts) > limit:
            return None
        if ignored is None:
            scores = np.repeat(-partition.sum(axis=1)[:, None], len(x), axis=1)
        else:
            scores = -np.dot(partition, (~ignored).T)
            parts = tuple(np.where(ignored, 0.0, u) for u in parts)
        for j, u in enumerate(parts):
            scores += np.dot(theta[j], u.T)
        if impossible is not None:
            hits = sum(np.dot(impossible[j], (u != 0.0).T) for j, u in enumerate(parts))
            scores[np.asarray(hits) > 0.0] = -np.inf
        return scores

    def _sparse_scores(self, rows: Any) -> Array:
        """Σ_j θ·u(0) − A, which is constant, and θ·(u(x) − u(0)) of the stored values x."""
        _, impossible, _, largest = self._products
        check_stored(rows, lambda values: self.support.check(values, self.name))
        if has_missing(rows.data) or largest * float(np.abs(rows.data).max(initial=0.0)) > LARGEST_PRODUCT:
            return self.log_density(rows)
        constant, step, transposed = self._sparse_products
        if impossible is None and bool(np.all(rows.data == 1.0)):  # one product for all statistics together
            return np.asarray((rows.astype(np.float64, copy=False) @ step).T) + constant
        scores = np.repeat(constant, rows.shape[0], axis=1)
        hits: AnyArray | float = 0.0
        zeros = self.statistics(np.zeros(1))
        for j, u in enumerate(self.statistics(np.asarray(rows.data, dtype=np.float64))):
            zero = float(zeros[j][0])
            difference = scipy.sparse.csr_array((u - zero, rows.indices, rows.indptr), shape=rows.shape)
            scores += (difference @ transposed[j]).T
            if impossible is not None:
                changed = (u != 0.0).astype(np.float64) - (zero != 0.0)
                nonzero = scipy.sparse.csr_array((changed, rows.indices, rows.indptr), shape=rows.shape)
                hits = hits + (nonzero @ impossible[j].T).T + (zero != 0.0) * impossible[j].sum(axis=1)[:, None]
        if impossible is not None:
            scores[np.asarray(hits) > 0.0] = -np.inf
        return scores

    @cached_property
    def _sparse_products(self) -> tuple[Array, Array, list[Array]]:
        """Scores of a row of zeros, (classes, 1); θ·(u(1) − u(0)), (d, classes); each θ, (d, classes)."""
        theta, _, partition, _ = self._products
        zeros, ones = self.statistics(np.zeros(1)), self.statistics(np.ones(1))
        constant, step = -partition.sum(axis=1), np.zeros(theta.shape[1:])
        for j, part in enumerate(theta):
            constant = constant + zeros[j][0] * part.sum(axis=1)
            step += (ones[j][0] - zeros[j][0]) * part
        return constant[:, None], np.ascontiguousarray(step.T), [np.ascontiguousarray(part.T) for part in theta]

    def quadratic(self) -> Quadratic | None:
        """Linear in x where the statistics are x, or x and 1 − x."""
        probe = self.statistics(np.array([0.25, 3.0]))
        theta, partition = self.natural()
        if not np.array_equal(probe[0], [0.25, 3.0]) or not all(np.array_equal(u, [0.75, -2.0]) for u in probe[1:]):
            return None
        linear = np.where(self.informative, theta[0] - sum(theta[1:]), 0.0)
        constant = np.where(self.informative, sum(theta[1:]) - partition, 0.0).sum(axis=1)
        if not (np.all(np.isfinite(linear)) and np.all(np.isfinite(constant))):
            return None
        return Quadratic(None, linear, constant, np.zeros(self.dimension))

    @property
    def is_linear(self) -> bool:
        """False: values may be missing or outside the support, which a linear form does not notice."""
        return False

    def natural_parameters(self) -> Array:
        theta, _ = self.natural()
        return np.hstack([np.where(self.informative, part, 0.0) for part in theta])

    def sufficient_statistics(self, rows: AnyArray) -> Array:
        return np.hstack(self.statistics(np.asarray(rows, dtype=np.float64)))

    def log_partition(self) -> Array:
        return np.asarray(np.where(self.informative, self.natural()[1], 0.0).sum(axis=1))

    def log_carrier(self, rows: AnyArray) -> Array:
        carrier = self.carrier(np.asarray(rows, dtype=np.float64))
        return np.zeros(len(rows)) if carrier is None else np.where(self.informative, carrier, 0.0).sum(axis=1)


def _products(statistics: Sequence[Expression], theta: Sequence[Array], start: Array) -> list[Expression]:
    """Σ θ·u + start of each class."""
    pairs = [(with_coefficients(u, part), part.tolist()) for u, part in zip(statistics, theta, strict=True)]
    return [total([times_log(u, part[k]) for u, part in pairs]) + float(start[k]) for k in range(len(start))]
