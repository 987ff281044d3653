"""Class-conditional densities of columns that are independent within a class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt
import scipy.sparse

from likely.errors import InputError, NoDensityError
from likely.families.base import Conditionals
from likely.families.supports import Support
from likely.numerics.arrays import all_finite, has_missing
from likely.numerics.caches import cached_property
from likely.numerics.expressions import LARGE_COUNT, Cell, Expression, bounded, finite, total
from likely.statistics.sums import check_stored
from likely.typing import AnyArray, Array, Codes, Index

Mask = npt.NDArray[np.bool_]
TABLE_VALUES = 1023  # densities of whole numbers up to this one are tabulated where they repeat
TOGETHER = 1024  # values of several classes that are computed in one call


def sum_table_values(table: Array, rows: AnyArray, codes: Codes) -> Array:
    """Σ_j table[code, x_j, j] of rows (n, d) of whole numbers, (n,); missing values add 0."""
    incomplete = has_missing(rows)
    _, values, d = table.shape
    if values == 2 and not incomplete and all_finite(table):  # linear in a value that is 0 or 1
        lines = np.dot(table[:, 1] - table[:, 0], np.asarray(rows, dtype=np.float64).T)
        return np.asarray(lines[codes, np.arange(len(codes))] + table[:, 0].sum(axis=1)[codes])
    place = np.where(np.isnan(rows), 0, rows).astype(np.intp) if incomplete else rows.astype(np.intp)
    place *= d
    place += np.arange(d)
    place += codes.astype(np.intp)[:, None] * (values * d)
    terms = np.take(table.ravel(), place)
    return np.asarray((np.where(np.isnan(rows), 0.0, terms) if incomplete else terms).sum(axis=1))


def check_parts(method: str, parts: Any, shape: tuple[int, ...]) -> None:
    """Raise unless a method of a family returned a tuple of arrays of a shape."""
    if not isinstance(parts, tuple) or not parts:
        raise InputError(f"{method} returned {type(parts).__name__}, and must return a tuple of arrays.")
    for i, part in enumerate(parts):
        if np.shape(part) != shape:
            raise InputError(
                f"{method} returned an array of the shape {np.shape(part)} at place {i} instead of {shape}."
            )


@dataclass(frozen=True, eq=False)
class IndependentColumns(Conditionals):
    """Base class of estimated densities whose columns are independent within a class.

    A subclass is a frozen dataclass with its parameters as further fields; array fields whose last axis is the number
    of columns are cut when columns are selected. It sets `support` and `name`, and overrides `parameters`, `log_terms`
    and `draw`, and `means` where missing values are to be imputed. Predictives extend this class; plug-in densities of
    the exponential family extend `NaturalColumns`.

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
    NaturalColumns : Plug-in densities of the exponential family.
    ColumnFamily : The family that estimates such densities.

    Examples
    --------
    Laplace distributions, which are not of the exponential family in their location:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from likely.families.columns import IndependentColumns, Support
    >>> @dataclass(frozen=True, eq=False)
    ... class Laplace(IndependentColumns):
    ...     location: np.ndarray
    ...     support, name = Support("a finite number", np.isfinite, 0.0), "Laplace"
    ...
    ...     @property
    ...     def parameters(self):
    ...         return (self.location,)
    ...
    ...     def log_terms(self, x, location):
    ...         return -np.abs(x - location) - np.log(2.0)
    ...
    ...     def draw(self, label, n, rng):
    ...         return rng.laplace(self.location[label], size=(n, self.dimension))
    >>> density = Laplace(np.array([True]), np.zeros(1), location=np.array([[0.0], [3.0]]))
    >>> density.log_density(np.array([[1.0], [np.nan]])).round(3)
    array([[-1.693,  0.   ],
           [-2.693,  0.   ]])
    """

    informative: Mask
    constant_value: Array

    support: ClassVar[Support]
    name: ClassVar[str]

    @property
    @abstractmethod
    def parameters(self) -> tuple[Array, ...]:
        """The parameters that `log_terms` takes.

        Returns
        -------
        tuple of array of shape (n_classes, n_columns)
        """

    @abstractmethod
    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """Return the log-density of single values.

        Parameters
        ----------
        x : array
            Values of the support.
        *parameters : array
            `parameters`, of some classes or of one class per row, with shapes that broadcast with `x`.

        Returns
        -------
        array
            log p(x | parameters), of the broadcast shape.
        """

    @abstractmethod
    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Draw rows of one class.

        Parameters
        ----------
        label : int
            The index of the class.
        n : int
            Number of rows.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of shape (n, n_columns)
        """

    def expression(self, x: Expression, *parameters: float) -> Expression | None:
        """Return `log_terms` as an expression, for the export of models.

        Parameters
        ----------
        x : Expression
            A value of the support.
        *parameters : float
            `parameters` of one class and one column.

        Returns
        -------
        Expression or None
            log p(x | parameters), up to a term that all classes share. None, the default, is not exported.
        """
        return None

    def _term(self, x: Expression, label: int, column: int) -> Expression | None:
        """The expression of a value of a column in a class, up to a term that all classes share."""
        return self.expression(x, *(float(part[label, column]) for part in self.parameters))

    def accurate(self, column: int, x: Expression) -> Expression | None:
        return x <= LARGE_COUNT if self.support.whole else None

    def expressions(self, cells: Sequence[Cell]) -> list[Expression] | None:
        found = []
        for k in range(self.n_classes):
            terms = []
            for j in np.flatnonzero(self.informative).tolist():
                x = cells[j].filled(self.support.filler)
                term = self._term(bounded(x, LARGE_COUNT) if self.support.whole else x, k, j)
                if term is None or self.support.condition is None:
                    return None
                terms.append(cells[j].known(term))
            found.append(total(terms))
        return found

    def inside(self, column: int, x: Expression) -> Expression:
        condition = self.support.condition
        return finite(x) if condition is None else condition(x)

    def means(self) -> Array:
        """Return the expectation of every column in every class, for the imputation of missing values.

        Returns
        -------
        array of shape (n_classes, n_columns)
        """
        raise NoDensityError(f"{self.name} does not provide its expectation (means)")

    @property
    def _constants(self) -> Array:
        """Values of ignored columns; a column without any value has some value of the support."""
        value = np.rint(self.constant_value) if self.support.whole else self.constant_value
        return np.where(self.support.inside(value), value, self.support.filler)

    @final
    def expectation(self, rows: AnyArray, label: int) -> Array:
        mean = np.where(self.informative, self.means()[label], self._constants)
        return np.broadcast_to(mean, (len(rows), self.dimension))

    @property
    def n_classes(self) -> int:
        return len(self.parameters[0])

    @property
    def dimension(self) -> int:
        return len(self.informative)

    @property
    def width(self) -> int:
        return 3 * self.dimension + 2 * self.n_classes

    @final
    def marginal(self, columns: Index) -> Self:
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{k: v[..., columns] for k, v in parts.items() if isinstance(v, np.ndarray)})

    def ignored_columns(self) -> Index:
        return np.flatnonzero(~self.informative)

    def outside_support(self, rows: AnyArray) -> Mask | None:
        with np.errstate(invalid="ignore"):
            outside = ~self.support.inside(rows)
        return outside & np.isfinite(rows) if outside.any() else None

    def read(self, rows: AnyArray) -> tuple[Array, Mask | None]:
        """Checked values with a filler for missing ones, and which to ignore: missing, or of constant columns."""
        self.support.check(rows, self.name)
        missing = np.isnan(rows) if has_missing(rows) else None
        x = np.asarray(rows, dtype=np.float64)
        if missing is not None:
            x = np.where(missing, self.support.filler, x)
        if self.informative.all():
            return x, missing
        return x, np.broadcast_to(~self.informative, x.shape) if missing is None else missing | ~self.informative

    def log_density(self, rows: Any) -> Array:
        if scipy.sparse.issparse(rows):
            return self._sparse_density(scipy.sparse.csr_array(rows))
        x, ignored = self.read(rows)
        return np.array([terms.sum(axis=1) for terms in self._class_terms(x, ignored)])

    @final
    def paired(self, rows: AnyArray) -> Array:
        """log p of row i under class i, (n,): one class per row, as leave-one-out has it."""
        x, ignored = self.read(rows)
        terms = self.log_terms(x, *self.parameters)
        return np.asarray((terms if ignored is None else np.where(ignored, 0.0, terms)).sum(axis=1))

    def log_interval(self, x: Array, *parameters: Array) -> Array:
        """log P(x − ½ < X ≤ x + ½) of whole numbers: the log-density of counts."""
        if not self.support.whole:
            raise NoDensityError(f"{self.name} does not provide the probabilities of intervals (log_interval)")
        return self.log_terms(x, *parameters)

    @final
    def paired_terms(self, rows: AnyArray, whole: bool) -> Array:
        """The terms of `paired`, (n, d), or those of `log_interval`; −inf in columns that are ignored as constant."""
        x, _ = self.read(rows)
        terms = (self.log_interval if whole else self.log_terms)(x, *self.parameters)
        return np.where(np.isnan(rows), 0.0, np.where(self.informative, terms, -np.inf))

    def explain(self, rows: Any) -> Array:
        rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
        x, ignored = self.read(rows)
        return np.stack(list(self._class_terms(x, ignored)), axis=1)

    def class_terms(self, rows: AnyArray, label: int) -> Array:
        return next(self._class_terms(*self.read(rows), [label]))

    def _class_terms(self, x: Array, ignored: Mask | None, labels: Sequence[int] | None = None) -> Iterator[Array]:
        """log p(x | class) of all values, (n, d), for each class in turn; 0 for ignored values."""
        parameters = self.parameters
        labels = range(len(parameters[0])) if labels is None else labels
        top = int(x.max(initial=0.0)) if self.support.whole and x.size and x.max() <= TABLE_VALUES else -1
        place = (slice(None), x.astype(np.intp), np.arange(x.shape[1])) if 0 <= top < len(x) else None
        step = max(TOGETHER // max(x.size, 1), 1)  # classes that are computed together
        for first in range(0, len(labels), step):
            mine = [values[labels[first : first + step], None] for values in parameters]
            if place is None:
                terms = self.log_terms(x, *mine)
            else:  # whole numbers repeat: tabulate their densities
                terms = self.log_terms(np.arange(top + 1.0)[:, None], *mine)[place]
            yield from terms if ignored is None else np.where(ignored, 0.0, terms)

    @cached_property
    def _at_zero(self) -> Array:
        """log p(0), (classes, d); 0 for ignored columns."""
        return np.where(self.informative, self.log_terms(np.zeros(1), *self.parameters), 0.0)

    def _sparse_density(self, rows: Any) -> Array:
        """log p(row of zeros) + Σ log p(x) − log p(0) over the stored values x."""
        check_stored(rows, lambda values: self.support.check(values, self.name))
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        x, column = np.asarray(rows.data, dtype=np.float64), rows.indices
        missing = np.isnan(x)
        x = np.where(missing, self.support.filler, x)
        density = np.empty((self.n_classes, rows.shape[0]))
        never_zero = np.isneginf(self._at_zero)
        for k, zero in enumerate(np.where(never_zero, 0.0, self._at_zero)):
            terms = self.log_terms(x, *(values[k][column] for values in self.parameters))
            terms = np.where(missing | ~self.informative[column], 0.0, terms)
            density[k] = zero.sum() + np.bincount(owner, terms - zero[column], minlength=rows.shape[0])
            impossible = never_zero[k].sum() - np.bincount(owner, never_zero[k][column], minlength=rows.shape[0])
            density[k][impossible > 0.0] = -np.inf
        return density

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        drawn = np.asarray(self.draw(label, n, rng), dtype=np.float64)
        return np.where(self.informative, drawn, self._constants)
