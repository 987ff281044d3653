"""Blocks of columns with a family, for views: statistics of training rows, and densities estimated from them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from likely.data.batches import Batch
from likely.data.table import Table
from likely.errors import trying
from likely.evidence.encoding import FARTHEST
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import AdditiveTerms
from likely.families.base import Conditionals, Family
from likely.families.estimation import Estimation
from likely.model.joint import JointModel
from likely.model.plans import Plan
from likely.model.specification import Specification
from likely.numerics.caches import cached_property
from likely.statistics.counts import Counts
from likely.statistics.joint import JointStatistics
from likely.statistics.moments import Moments
from likely.typing import AnyArray, Array

LEAST = -1e4  # evidence relative to the most probable class: impossible classes count as this improbable
MAX_ITER, TOL = 50, 1e-4  # of EM for missing values


class SummedRows(AdditiveTerms):
    """Terms of a specification and the statistics of the training rows, as rows of a table made of encoded rows."""

    specification: Specification
    statistics: JointStatistics

    @abstractmethod
    def table(self, rows: EncodedRows) -> Table:
        """The rows as the specification reads them."""

    @property
    @abstractmethod
    def model(self) -> JointModel:
        """The estimated densities."""

    def left_out_evidence(self, table: Table, rows: TrainingRows) -> Array:
        """Leave-one-out log p(x | class) of training rows, (classes, n)."""
        total = np.zeros((len(rows.classes), len(rows)))
        for plan, part in zip(self.specification.plans, self.statistics.blocks, strict=True):
            total += self.specification.leave_one_out(plan, part)(table, rows.codes, rows.held_out)
        return total

    def counted(self, rows: TrainingRows) -> Self:
        return self._with(self._sum(rows))

    def removed(self, rows: TrainingRows) -> Self:
        return self._with((self.statistics - self._sum(rows)).align(rows.classes))

    def __add__(self, other: Self) -> Self:
        return self._with(self.statistics + other.statistics)

    def _sum(self, rows: TrainingRows) -> JointStatistics:
        """The statistics of rows; classes without rows stay."""
        return self.specification.summarise(batch_of(rows, self.table(rows.rows))).align(rows.classes)

    def _with(self, statistics: JointStatistics) -> Self:
        return cast(Self, replace(cast(Any, self), statistics=statistics))


class DensityBlock(SummedRows):
    """Terms of one block of columns with a family."""

    @property
    def plan(self) -> Plan:
        return self.specification.plans[0]

    @cached_property
    def model(self) -> JointModel:
        with trying():  # weights are learnt afterwards: EM need not converge
            return self.specification.estimate(self.statistics)[0]

    @property
    def conditionals(self) -> Conditionals:
        """The densities of the classes."""
        return self.model.blocks[0].conditionals

    def _valid(self) -> bool:
        moments = [getattr(part, "available", part) for part in self.statistics.blocks]
        plans = self.specification.plans
        return len(plans) == len(moments) == 1 and plans[0].columns != () and all(map(_are_standardised, moments))


def summed(
    rows: TrainingRows, table: Table, columns: tuple[int, ...] | None, family: Family
) -> tuple[Specification, JointStatistics]:
    """The specification of a block of columns of a table, and the statistics of training rows as rows of it."""
    plan = Plan(columns, family)
    specification = Specification(tuple(table.names), (plan,), None, Estimation.BAYES, (), MAX_ITER, TOL)
    return specification, specification.summarise(batch_of(rows, table))


def _are_standardised(part: Any) -> bool:
    """Whether moments, if these are any, can be those of standardised columns."""
    if not isinstance(part, Moments):
        return True
    squares, unit, mean = part.squares, part.coordinates.unit, part.coordinates.to_user(part.mean)
    return bool(np.all(np.abs(mean) <= FARTHEST) and np.all((squares > 0.0) == (squares * unit * unit > 0.0)))


def relative_to_best(terms: Array) -> Array:
    """Evidence relative to the most probable class, (classes, n); 0 where all classes are impossible."""
    top = terms.max(axis=0)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(top), np.maximum(terms - top, LEAST), 0.0)


def number_table(rows: EncodedRows, columns: AnyArray, numbers: Array) -> Table:
    """A table of encoded numbers of some columns."""
    return Table([rows.table.names[j] for j in columns.tolist()], array=np.ascontiguousarray(numbers))


def batch_of(rows: TrainingRows, table: Table) -> Batch:
    """Training rows as a batch of a table. Statistics count rows as well as weights, so merged rows are repeated."""
    if np.all(rows.copies == 1):
        return Batch(None, table, rows.counts, rows.codes, rows.weights)
    index = np.repeat(np.arange(len(rows)), rows.copies)
    codes, weights = rows.codes[index], (rows.weights / rows.copies)[index]
    return Batch(None, table.take(index), Counts.of(rows.classes, codes, weights), codes, weights)
