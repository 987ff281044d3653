"""Blocks of columns with a family, for views: statistics of training rows, and densities estimated from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np

from likely.data.batches import Batch
from likely.data.table import Table
from likely.errors import trying
from likely.evidence.encoding import FARTHEST
from likely.evidence.rows import TrainingRows
from likely.families.base import Conditionals, Family
from likely.families.estimation import Estimation
from likely.model.persistence import register
from likely.model.plans import Plan
from likely.model.specification import Specification
from likely.numerics.shapes import Shape
from likely.statistics.counts import Counts
from likely.statistics.joint import JointStatistics
from likely.statistics.moments import Moments
from likely.typing import AnyArray, Array

MAX_ITER, TOL = 50, 1e-4  # of EM for missing values


@register
@dataclass(frozen=True, eq=False)
class DensityBlock:
    """A family on a table made of encoded rows, and the statistics of the training rows."""

    specification: Specification  # of one block
    statistics: Annotated[JointStatistics, Shape("classes")]

    @classmethod
    def of(cls, rows: TrainingRows, table: Table, columns: tuple[int, ...] | None, family: Family) -> Self:
        """The block of all training rows, as rows of `table`."""
        plan = Plan(columns, family)
        names = tuple(table.names)
        specification = Specification(names, (plan,), None, Estimation.BAYES, (), MAX_ITER, TOL)
        return cls(specification, specification.summarise(batch_of(rows, table)))

    def updated(self, rows: TrainingRows, table: Table, sign: float) -> Self:
        """The block with rows added (sign 1) or removed (sign −1); classes without rows stay."""
        part = self.specification.summarise(batch_of(rows, table))
        left = self.statistics + part if sign > 0.0 else self.statistics - part
        return replace(self, statistics=left.align(rows.classes))

    def counted(self, rows: TrainingRows, table: Table) -> Self:
        """The block of these rows alone."""
        return replace(self, statistics=self.specification.summarise(batch_of(rows, table)).align(rows.classes))

    def __add__(self, other: Self) -> Self:
        return replace(self, statistics=self.statistics + other.statistics)

    def _valid(self) -> bool:
        moments = [getattr(part, "available", part) for part in self.statistics.blocks]
        plans = self.specification.plans
        return len(plans) == len(moments) == 1 and plans[0].columns != () and all(map(_are_standardised, moments))

    @property
    def plan(self) -> Plan:
        return self.specification.plans[0]

    @property
    def names(self) -> tuple[str, ...]:
        return self.specification.columns(self.plan)

    def with_family(self, family: Family) -> Self:
        """The same rows with another family, whose statistics are a part of these."""
        specification = replace(self.specification, plans=(replace(self.plan, family=family),))
        part = family._project_statistics(self.statistics.blocks[0])
        return replace(self, specification=specification, statistics=JointStatistics(self.statistics.counts, (part,)))

    @cached_property
    def conditionals(self) -> Conditionals:
        """The densities of the classes."""
        with trying():  # weights are learnt afterwards: EM need not converge
            model, _ = self.specification.estimate(self.statistics)
        return model.blocks[0].conditionals

    def column_terms(self, values: AnyArray) -> Array:
        """log p(x_j | class) of independent columns, (columns, classes, n)."""
        return np.ascontiguousarray(self.conditionals.column_log_densities(values).transpose(2, 1, 0))

    def left_out_columns(self, values: AnyArray, rows: TrainingRows) -> Array:
        """Leave-one-out log p(x_j | class) of independent columns, (columns, classes, n)."""
        found = self.column_terms(values)
        part = self.statistics.blocks[0]
        mine = self.plan.family._held_out_terms(part, values, rows.codes, rows.held_out, False).T
        own = rows.codes, np.arange(len(rows))
        mine = np.where(np.isneginf(mine), found[:, *own], mine)  # a constant column is the same without the row
        found[:, *own] = np.where(missing(values).T, 0.0, mine)
        return found

    def left_out(self, table: Table, rows: TrainingRows) -> Array:
        """Leave-one-out log p(x | class) of the whole block, (classes, n)."""
        with trying():
            evaluate = self.specification.leave_one_out(self.plan, self.statistics.blocks[0])
            return evaluate(table, rows.codes, rows.held_out)


def _are_standardised(part: Any) -> bool:
    """Whether moments, if these are any, can be those of standardised columns."""
    if not isinstance(part, Moments):
        return True
    squares, unit, mean = part.squares, part.coordinates.unit, part.coordinates.to_user(part.mean)
    return bool(np.all(np.abs(mean) <= FARTHEST) and np.all((squares > 0.0) == (squares * unit * unit > 0.0)))


def missing(values: AnyArray) -> AnyArray:
    """Which numbers are NaN, or which codes are negative."""
    return np.isnan(values) if values.dtype.kind == "f" else values < 0


def number_table(names: Sequence[str], numbers: Array) -> Table:
    """A table of encoded numbers."""
    return Table(list(names), array=np.ascontiguousarray(numbers))


def batch_of(rows: TrainingRows, table: Table) -> Batch:
    """Training rows as a batch of a table. Statistics count rows as well as weights, so merged rows are repeated."""
    if rows.copies is None or np.all(rows.copies == 1):
        return Batch(None, table, rows.counts, rows.codes, rows.weights)
    index = np.repeat(np.arange(len(rows)), rows.copies)
    codes, weights = rows.codes[index], (rows.weights / rows.copies)[index]
    return Batch(None, table.take(index), Counts.of(rows.classes, codes, weights), codes, weights)
