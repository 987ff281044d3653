"""Point masses: one value that many rows have, and another family for all other values.

x | k equals the value v with probability p_k, and otherwise has a continuous distribution: log p(x | k) = log p_k where
x = v, and log(1 − p_k) + log f_k(x) elsewhere. It is a density with respect to a unit mass at v plus the measure of f.
The statistics are those of a Bernoulli distribution of [x = v], and those of f with the rows at v as missing values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Annotated, Any, Self

import numpy as np

from likely.errors import InputError
from likely.families.base import Columns, Conditionals, Family, LeaveOneOutDensity
from likely.families.bernoulli import Bernoulli, BernoulliConditionals, varies
from likely.families.column_family import ColumnFamily
from likely.families.estimation import Estimation
from likely.families.independent import Mask
from likely.families.parameters import Parameter
from likely.numerics.expressions import Cell, Expression, where
from likely.numerics.shapes import Shape
from likely.statistics.accumulator import Accumulator, RowAccumulator
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array, Codes, FamilyLike, Index

INDICATOR = Bernoulli()  # of the rows that have the value


class PointMass(Family):
    """A value that many rows have, such as 0, and a continuous family for all other values.

    Each column is independent within a class: it has the value with a probability per class, and otherwise the
    distribution of the inner family. Examples are amounts and gains that are 0 in most rows.

    Parameters
    ----------
    value : float, default=0.0
        The value that many rows have.
    family : Family
        The continuous family of the other values: `Gaussian` with covariance="diagonal", `LogNormal`, `Gamma`,
        `Exponential`, `Beta`, `VonMises` or `Histogram`.

    See Also
    --------
    LogNormal : Positive numbers, without zeros.
    Gamma : Positive numbers, without zeros.

    Examples
    --------
    >>> from likely import GenerativeClassifier, LogNormal, PointMass
    >>> X = [[0.0], [0.0], [120.0], [0.0], [900.0], [2500.0]]
    >>> model = GenerativeClassifier(PointMass(0.0, LogNormal())).fit(X, ["a", "a", "a", "b", "b", "b"])
    >>> model.predict([[0.0], [1500.0]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(self, value: float = 0.0, family: FamilyLike | None = None) -> None:
        self.value = value
        self.family = family

    @property
    def _inner(self) -> Family:
        assert isinstance(self.family, Family)
        return self.family

    @property
    def _atom(self) -> float:  # type: ignore[override]
        return float(self.value)

    @property
    def _learns_options(self) -> bool:  # type: ignore[override]
        return isinstance(self.family, Family) and self.family._learns_options

    def _lacks_edges(self, names: Sequence[str]) -> bool:
        return isinstance(self.family, Family) and self.family._lacks_edges(names)

    def _with_edges(self, *sample: Any) -> PointMass:
        family: Any = self.family
        return PointMass(self.value, family._with_edges(*sample))

    def _of_column(self, name: str) -> PointMass:
        return PointMass(self.value, self._inner._of_column(name))

    def check(self, estimation: Estimation) -> None:
        if not (isinstance(self.value, Real) and np.isfinite(float(self.value))):
            raise InputError(f"PointMass(value={self.value!r}): must be a finite number.")
        family: Any = self.family
        if not isinstance(family, Family) or isinstance(family, PointMass):
            raise InputError(f"PointMass(family={family!r}): must be a continuous family, such as LogNormal().")
        counts = isinstance(family, ColumnFamily) and family.support.whole
        if family._reads_categories or counts or not family._independent or family._extra_columns():
            raise InputError(
                f"PointMass(family={family!r}): must be a continuous family of independent columns, such as "
                "LogNormal(), Gamma() or Gaussian('diagonal')."
            )
        family.check(estimation)

    def describe(self) -> str:
        return f"PointMass at {self.value:g}, else {self._inner.describe()}"

    def _with_named_columns(self, names: Sequence[str]) -> PointMass:
        inner = self.family
        return PointMass(self.value, inner._with_named_columns(names) if isinstance(inner, Family) else inner)

    # -- statistics

    def _accumulator(self, classes: AnyArray, columns: Columns) -> PointMassAccumulator:
        return PointMassAccumulator(
            float(self.value), INDICATOR._accumulator(classes, columns), self._inner._accumulator(classes, columns)
        )

    def _statistics_key(self) -> tuple[Any, ...]:
        return (*super()._statistics_key(), float(self.value), *self._inner._statistics_key())

    def _common_collector(self, other: Any) -> PointMass:
        return PointMass(self.value, self._inner._common_collector(other._inner))

    def _project_statistics(self, statistics: PointMassSums) -> PointMassSums:
        return PointMassSums(statistics.indicator, self._inner._project_statistics(statistics.inner))

    # -- estimates

    def estimate(self, statistics: PointMassSums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        indicator = INDICATOR.estimate(statistics.indicator, estimation, names)
        assert isinstance(indicator, BernoulliConditionals)
        both = varies(statistics.indicator.whole)  # a column without the value, or without others, has no indicator
        return PointMassConditionals(
            float(self.value),
            replace(indicator, informative=both),
            self._inner.estimate(statistics.inner, estimation, names),
        )

    def _given(self, values: Mapping[str, Any], size: int, names: Sequence[str]) -> Conditionals:
        if not isinstance(values, Mapping) or "probability" not in values:
            raise InputError(
                f"PointMass has the parameter 'probability', of the value {self.value:g}, and those of the rest."
            )
        rest = {name: value for name, value in values.items() if name != "probability"}
        indicator = INDICATOR._given({"probability": values["probability"]}, size, names)
        return PointMassConditionals(float(self.value), indicator, self._inner._given(rest, size, names))

    def _given_table(self, fitted: Any, names: Sequence[str]) -> list[Parameter]:
        at_value = INDICATOR._given_table(fitted.indicator, names)
        named = [replace(each, name=f"probability of {self.value:g}") for each in at_value]
        return named + self._inner._given_table(fitted.inner, names)

    def _parameters(
        self, statistics: PointMassSums, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        assert isinstance(fitted, PointMassConditionals)
        at_value = INDICATOR._parameters(statistics.indicator, fitted.indicator, estimation, names)
        named = [replace(each, name=f"probability of {self.value:g}") for each in at_value]
        return named + self._inner._parameters(statistics.inner, fitted.inner, estimation, names)

    def _with_fixed_prior(self, statistics: PointMassSums, estimation: Estimation) -> PointMass:
        return PointMass(self.value, self._inner._with_fixed_prior(statistics.inner, estimation))

    def _log_prior(self, statistics: PointMassSums, fitted: Conditionals) -> float:
        assert isinstance(fitted, PointMassConditionals)
        at_value = INDICATOR._log_prior(statistics.indicator, fitted.indicator)
        return at_value + self._inner._log_prior(statistics.inner, fitted.inner)

    def _leave_one_out(
        self, statistics: PointMassSums, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        assert isinstance(fitted, PointMassConditionals)
        at_value = INDICATOR._leave_one_out(statistics.indicator, fitted.indicator, estimation, names)
        elsewhere = self._inner._leave_one_out(statistics.inner, fitted.inner, estimation, names)

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            indicator, others = split_at(rows, fitted.value)
            return np.asarray(at_value(indicator, codes, weights) + elsewhere(others, codes, weights))

        return density

    def _log_likelihood(self, statistics: PointMassSums, fitted: Conditionals, names: Sequence[str]) -> float:
        assert isinstance(fitted, PointMassConditionals)
        at_value = INDICATOR._log_likelihood(statistics.indicator, fitted.indicator, names)
        return at_value + self._inner._log_likelihood(statistics.inner, fitted.inner, names)

    def _n_parameters(self, statistics: PointMassSums, names: Sequence[str]) -> int:
        return INDICATOR._n_parameters(statistics.indicator, names) + self._inner._n_parameters(statistics.inner, names)

    def _log_evidence(self, statistics: PointMassSums, names: Sequence[str]) -> float:
        return INDICATOR._log_evidence(statistics.indicator, names) + self._inner._log_evidence(statistics.inner, names)

    def _impossible_columns(self, left: PointMassSums, before: PointMassSums) -> Mask:
        return np.asarray(
            INDICATOR._impossible_columns(left.indicator, before.indicator)
            | self._inner._impossible_columns(left.inner, before.inner)
        )


def split_at(rows: AnyArray, value: float) -> tuple[Array, Array]:
    """Whether each value is at the point mass, NaN where it is missing; and the others, NaN where it is not."""
    others = np.array(rows, dtype=np.float64)
    indicator = np.where(np.isnan(others), np.nan, others == value)
    others[others == value] = np.nan
    return indicator, others


@dataclass(frozen=True, slots=True, eq=False)
class PointMassSums:
    """Statistics of the indicator of the point mass, and of the other values."""

    indicator: Annotated[Sums, Shape("classes d")]
    inner: Annotated[Any, Shape("classes d")]

    @property
    def classes(self) -> AnyArray:
        return self.indicator.classes

    @property
    def rows(self) -> AnyArray:
        return self.indicator.rows

    @property
    def weight(self) -> Array:
        return self.indicator.weight

    @property
    def dimension(self) -> int:
        return self.indicator.dimension

    def align(self, classes: AnyArray) -> PointMassSums:
        """The same statistics with further classes, which have no rows."""
        return PointMassSums(self.indicator.align(classes), self.inner.align(classes))

    def take(self, columns: AnyArray) -> PointMassSums:
        """The statistics of some of the columns."""
        return PointMassSums(self.indicator.take(columns), self.inner.take(columns))

    def select(self, which: AnyArray) -> PointMassSums:
        """The statistics of some of the classes."""
        return PointMassSums(self.indicator.select(which), self.inner.select(which))

    def __add__(self, other: PointMassSums) -> PointMassSums:
        return PointMassSums(self.indicator + other.indicator, self.inner + other.inner)

    def __sub__(self, other: PointMassSums) -> PointMassSums:
        indicator = self.indicator - other.indicator
        inner = self.inner - other.inner  # without classes whose other values were all removed
        return PointMassSums(indicator, inner.align(indicator.classes))


@dataclass(frozen=True, slots=True, eq=False)
class PointMassAccumulator(RowAccumulator):
    """Sums the statistics of the indicator and of the other values over row blocks."""

    value: float
    indicator: Accumulator
    inner: Accumulator

    @property
    def groups(self) -> Index | None:
        return self.inner.groups

    @property
    def block_rows(self) -> int:
        return min(self.indicator.block_rows, self.inner.block_rows)

    def _add(self, block: AnyArray, codes: Codes, weights: Array | None) -> None:
        indicator, others = split_at(block, self.value)
        self.indicator.add(indicator, codes, weights)
        self.inner.add(others, codes, weights)

    def finish(self) -> PointMassSums:
        """The statistics of all blocks so far."""
        return PointMassSums(self.indicator.finish(), self.inner.finish())


@dataclass(frozen=True, eq=False)
class PointMassConditionals(Conditionals):
    """Bernoulli distributions of the point mass, and the densities of the other values."""

    value: float
    indicator: Conditionals
    inner: Conditionals

    @property
    def n_classes(self) -> int:
        return self.inner.n_classes

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    @property
    def width(self) -> int:
        return self.indicator.width + self.inner.width + 2 * self.dimension

    def outside_support(self, rows: AnyArray) -> AnyArray | None:
        outside = self.inner.outside_support(rows)
        return None if outside is None else outside & (rows != self.value)

    def log_density(self, rows: AnyArray) -> Array:
        indicator, others = split_at(rows, self.value)
        return np.asarray(self.indicator.log_density(indicator) + self.inner.log_density(others))

    def scores(self, rows: AnyArray) -> Array:
        indicator, others = split_at(rows, self.value)
        return np.asarray(self.indicator.scores(indicator) + self.inner.scores(others))

    def expressions(self, cells: Sequence[Cell]) -> list[Expression] | None:
        at_value = [cell.filled(self.value + 1.0).equals(self.value) for cell in cells]
        indicators = [Cell(where(at, 1.0, 0.0), cell.missing) for cell, at in zip(cells, at_value, strict=True)]
        others = [
            Cell(cell.value, at if cell.missing is None else cell.missing | at)
            for cell, at in zip(cells, at_value, strict=True)
        ]
        first, second = self.indicator.expressions(indicators), self.inner.expressions(others)
        if first is None or second is None:
            return None
        return [a + b for a, b in zip(first, second, strict=True)]

    def inside(self, column: int, x: Expression) -> Expression:
        return x.equals(self.value) | self.inner.inside(column, x)

    def accurate(self, column: int, x: Expression) -> Expression | None:
        return self.inner.accurate(column, x)

    def explain(self, rows: AnyArray) -> Array:
        indicator, others = split_at(rows, self.value)
        return np.asarray(self.indicator.explain(indicator) + self.inner.explain(others))

    def expectation(self, rows: AnyArray, label: int) -> Array:
        """p·v + (1 − p)·E[x | x ≠ v] of each column, which are independent."""
        missing = np.full(rows.shape, np.nan)
        p = self.indicator.expectation(missing, label)
        return np.asarray(p * self.value + (1.0 - p) * self.inner.expectation(missing, label))

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        at_value = self.indicator.sample(label, n, rng) > 0.5
        return np.where(at_value, self.value, self.inner.sample(label, n, rng))

    def marginal(self, columns: Index) -> Self:
        return type(self)(self.value, self.indicator.marginal(columns), self.inner.marginal(columns))

    def ignored_columns(self) -> Index:
        return np.intersect1d(self.indicator.ignored_columns(), self.inner.ignored_columns())
