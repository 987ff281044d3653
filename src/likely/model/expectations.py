"""The E step: expected statistics of unlabeled rows (semi-supervised learning) and of rows with missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from likely.data.batches import Batch, Batches
from likely.data.row_blocks import BlockTask, evaluate, rows_per_block
from likely.data.table import Reader, Table
from likely.model.block import Block
from likely.model.joint import JointModel
from likely.model.specification import Specification, block_task
from likely.numerics.special import log_sum_exp
from likely.numerics.threads import run, worker_count
from likely.numerics.tree_sum import group_sum
from likely.statistics.counts import Counts, positions
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array


@dataclass(frozen=True, slots=True, eq=False)
class RowSubset:
    """Some rows with the codes of their labels, or None if they are unlabeled, and their weights."""

    table: Table
    codes: AnyArray | None
    weights: Array


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """All training rows, and the statistics of those that need no expectation; None if there are none."""

    specification: Specification
    batches: Batches
    unlabeled_weight: float
    complete: JointStatistics | None = None

    @classmethod
    def of(cls, specification: Specification, batches: Batches, classes: AnyArray, unlabeled_weight: float) -> Self:
        """Rows of which some have labels of these classes."""
        total = batches.total(partial(_complete_statistics, specification), draw=False)
        return cls(specification, batches, unlabeled_weight, None if total is None else total.align(classes))


def _complete_statistics(specification: Specification, batch: Batch) -> JointStatistics | None:
    """The statistics of the labeled rows of a batch that need no expectation; None if there are none."""
    complete = ~needs_expectation(specification, batch)
    if not complete.any():
        return None
    return specification.summarise(batch if complete.all() else batch.take(np.flatnonzero(complete)))


def needs_expectation(specification: Specification, batch: Batch) -> AnyArray:
    """Whether each row has missing values in a joint block, or a family whose components are not observed."""
    if any(plan.family._needs_em for plan in specification.plans):
        return np.ones(batch.table.rows, dtype=bool)
    return specification.incomplete_rows(batch.table)


def needs_em(specification: Specification, batch: Batch) -> bool:
    """Whether only expectation maximisation can use the labeled rows of a batch.

    Some families always need it, and others for rows with missing values where these have no additive statistics.
    """
    if any(plan.family._needs_em for plan in specification.plans):
        return True
    others = tuple(plan for plan in specification.plans if not plan.collector._sums_missing_values)
    return has_incomplete_rows(replace(specification, plans=others), batch)


def has_incomplete_rows(specification: Specification, batch: Batch) -> bool:
    """Whether a row with positive weight has a missing value in a block that needs complete rows."""
    incomplete = specification.incomplete_rows(batch.table)
    return bool((incomplete if batch.used is None else incomplete[batch.used]).any())


def _labeled(batch: Batch, classes: AnyArray) -> RowSubset:
    """The labeled rows of a batch, complete or not."""
    return RowSubset(batch.table, positions(classes, batch.counts.classes)[batch.codes], batch.row_weights)


@dataclass(frozen=True, slots=True, eq=False)
class Expectation:
    """Expected statistics of rows, None without any, and the log-likelihood of their observed values. Both add up."""

    statistics: JointStatistics | None
    likelihood: float

    def __add__(self, other: Expectation) -> Expectation:
        return Expectation(group_sum([self.statistics, other.statistics]), self.likelihood + other.likelihood)


def expect(model: JointModel, rows: TrainingRows) -> tuple[JointStatistics, float]:
    """Expected statistics of all rows under a model, and the log-likelihood of their observed values.

    It takes one pass. The statistics of complete rows do not depend on the model.
    """
    work = partial(_expectation, rows.specification, model, rows.unlabeled_weight)
    found = rows.batches.total(work, draw=False, every=True)
    assert found is not None
    total = group_sum([rows.complete, found.statistics])
    assert total is not None
    return total.aligned(), found.likelihood


def _expectation(specification: Specification, model: JointModel, unlabeled_weight: float, batch: Batch) -> Expectation:
    """The expectation of the rows of a batch under a model, without the statistics of complete rows."""
    total, likelihood, classes = None, 0.0, model.classes
    if batch.table.rows:
        likelihood += float(_log_likelihoods(model, _labeled(batch, classes)).sum())
        incomplete = np.flatnonzero(needs_expectation(specification, batch))
        if len(incomplete):
            total, _ = _expected(specification, model, _labeled(batch.take(incomplete), classes))
    unlabeled = batch.unlabeled
    if unlabeled is not None and unlabeled_weight > 0.0:
        rows = RowSubset(unlabeled.table, None, unlabeled_weight * unlabeled.row_weights)
        more, found = _expected(specification, model, rows)
        total, likelihood = group_sum([total, more]), likelihood + found
    return Expectation(total, likelihood)


def _cells(block: Block, table: Table) -> int:
    """About how many numbers of a row a block reads."""
    return table.cells(block.conditionals.dimension, block.sparse)


def class_log_likelihoods(model: JointModel, rows: TrainingRows) -> Array:
    """Σ log p(x, y) of the labeled rows of each class."""
    total = rows.batches.total(partial(_class_likelihoods, model), draw=False)
    return np.zeros(len(model.classes)) if total is None else total


def _class_likelihoods(model: JointModel, batch: Batch) -> Array:
    """The same of the rows of one batch."""
    rows = _labeled(batch, model.classes)
    assert rows.codes is not None
    likelihoods = _log_likelihoods(model, rows)
    return np.bincount(rows.codes, likelihoods, minlength=len(model.classes)).astype(np.float64)


def _log_likelihoods(model: JointModel, rows: RowSubset) -> Array:
    """Weighted log p(x, y) of labeled rows, with missing values integrated out.

    A declared class prior of 0 counts as 1 for the labeled rows of its class: log π_k is constant in EM, and with −∞
    the objective would not show convergence.
    """
    codes = rows.codes
    assert codes is not None
    readers = [block.reader(rows.table) for block in model.blocks]
    log_joint = np.where(np.isneginf(model.log_prior), 0.0, model.log_prior)[codes]

    def work(start: int, stop: int) -> None:
        for block, read in zip(model.blocks, readers, strict=True):
            with block.in_table():
                mine, part = codes[start:stop], read(start, stop)
                if block.conditionals.tempered:
                    log_joint[start:stop] += block.evidence(part)[mine, np.arange(len(mine))]
                else:
                    log_joint[start:stop] += block.conditionals.class_log_density(part, mine)

    evaluate(rows.table, work, sum(3 * _cells(block, rows.table) for block in model.blocks))
    counted = rows.weights > 0.0  # 0 times a density of 0 is 0
    return np.multiply(rows.weights, log_joint, out=np.zeros(len(log_joint)), where=counted)


def _expected(specification: Specification, model: JointModel, rows: RowSubset) -> tuple[JointStatistics, float]:
    """Expected statistics of some rows, and the log-likelihood of those that are unlabeled."""
    step = ExpectationStep.of(specification, model, rows)
    width = sum(4 * _cells(block, rows.table) + 4 * len(model.classes) for block in model.blocks)
    block_rows = rows_per_block(rows.table, width, cached=2**19, most=2**15)
    workers = worker_count(max(rows.table.rows // (2 * block_rows), 1))
    bounds = np.linspace(0, rows.table.rows, workers + 1).astype(int).tolist()
    tasks = [(bounds[i], bounds[i + 1], block_rows) for i in range(workers)]
    total: JointStatistics | None = None
    likelihood = 0.0
    for part, found in run(tasks, lambda task: step.over(*task)):
        total = part if total is None else total + part
        likelihood += found
    assert total is not None
    return total, likelihood


@dataclass(frozen=True, slots=True, eq=False)
class ExpectationStep:
    """Expected statistics of rows under a model: each class counts a row by its posterior probability."""

    specification: Specification
    model: JointModel
    rows: RowSubset
    tasks: list[BlockTask]
    readers: list[Reader]

    @classmethod
    def of(cls, specification: Specification, model: JointModel, rows: RowSubset) -> ExpectationStep:
        tasks = [block_task(rows.table, model.classes, plan) for plan in specification.plans]
        return cls(specification, model, rows, tasks, [block.reader(rows.table) for block in model.blocks])

    def over(self, begin: int, end: int, block_rows: int) -> tuple[JointStatistics, float]:
        """The expected statistics of a range of rows, in blocks; and the log-likelihood of those that are unlabeled."""
        accumulators = [
            plan.family._expected_accumulator(task.make(), block.conditionals)
            for plan, task, block in zip(self.specification.plans, self.tasks, self.model.blocks, strict=True)
        ]
        size = len(self.model.classes)
        weight, count, likelihood = np.zeros(size), np.zeros(size, dtype=np.int64), 0.0
        for start in range(begin, end, block_rows):
            stop = min(start + block_rows, end)
            weights, posterior = self.rows.weights[start:stop], None
            if self.rows.codes is not None:
                codes = self.rows.codes[start:stop]
                weight += np.bincount(codes, weights, minlength=size)
            else:
                posterior, found = self._posterior(start, stop)
                codes = posterior.argmax(axis=0)
                weight += posterior @ weights
                likelihood += float(np.where(weights > 0.0, weights * found, 0.0).sum())
            count += np.bincount(codes[weights > 0.0], minlength=size)
            self._add(accumulators, start, stop, codes, weights, posterior)
        blocks = tuple(accumulator.finish() for accumulator in accumulators)
        return JointStatistics(Counts(self.model.classes, count, weight), blocks), likelihood

    def _add(
        self,
        accumulators: Sequence[Any],
        start: int,
        stop: int,
        codes: AnyArray,
        weights: Array,
        posterior: Array | None,
    ) -> None:
        """Add labeled rows to their classes, and unlabeled ones to every class by their posterior probabilities.

        Unlabeled documents are counted once for all classes.
        """
        for task, accumulator in zip(self.tasks, accumulators, strict=True):
            with self.rows.table.named_cells(task.columns, range(start, stop)):
                if posterior is None:
                    accumulator.add(task.read(start, stop), codes, weights)
                elif hasattr(accumulator, "add_expected"):
                    accumulator.add_expected(task.read(start, stop), posterior, weights)
                else:
                    for k, mine in enumerate(posterior):
                        accumulator.add(task.read(start, stop), np.full(stop - start, k), weights * mine)

    def _posterior(self, start: int, stop: int) -> tuple[Array, Array]:
        """p(class | x), (classes, n), and log p(x) of the observed values; 0 for rows impossible in all classes."""
        joint = np.repeat(self.model.log_prior[:, None], stop - start, axis=1)
        with self.rows.table.named_cells(None, range(start, stop)):
            for block, read in zip(self.model.blocks, self.readers, strict=True):
                joint += block.evidence(read(start, stop))
        found = log_sum_exp(joint)
        impossible = np.isneginf(found)
        with np.errstate(invalid="ignore"):
            posterior = np.exp(joint - found)
        posterior[:, impossible] = 0.0
        return posterior, np.where(impossible, 0.0, found)
