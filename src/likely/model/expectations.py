"""The E step: expected statistics of unlabeled rows (semi-supervised learning) and of rows with missing values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.data.batches import Batch, Batches
from likely.data.row_blocks import BlockTask, evaluate, named_cells, rows_per_block
from likely.data.table import Reader, Table
from likely.model.joint import Block, JointModel
from likely.model.specification import Specification, block_task
from likely.numerics.special import log_sum_exp
from likely.numerics.threads import run, worker_count
from likely.statistics.counts import Counts, positions
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array


@dataclass(frozen=True, slots=True, eq=False)
class RowSubset:
    """Some rows with the codes of their labels, or None where they are unlabeled, and their weights."""

    table: Table
    codes: AnyArray | None
    weights: Array


class TrainingRows:
    """All training rows, divided into complete, incomplete and unlabeled ones, batch by batch."""

    def __init__(self, specification: Specification, batches: Batches, classes: AnyArray, unlabeled_weight: float):
        self._specification, self._batches = specification, batches
        self._classes, self._unlabeled_weight = classes, unlabeled_weight

    def complete(self) -> Iterator[Batch]:
        """Labeled rows that need no expectation."""
        for batch in self._batches:
            complete = ~self._needs_expectation(batch)
            if complete.all():
                yield replace(batch, unlabeled=None)
            elif complete.any():
                yield replace(batch, unlabeled=None).take(np.flatnonzero(complete))

    def labeled(self) -> Iterator[RowSubset]:
        """All labeled rows, complete or not."""
        for batch in self._batches:
            if batch.table.rows:
                yield self._subset(batch)

    def incomplete(self) -> Iterator[RowSubset]:
        """Labeled rows that need an expectation, and unlabeled rows."""
        for batch in self._batches:
            incomplete = np.flatnonzero(self._needs_expectation(batch))
            if len(incomplete):
                yield self._subset(batch.take(incomplete))
            unlabeled = batch.unlabeled
            if unlabeled is not None and self._unlabeled_weight > 0.0:
                yield RowSubset(unlabeled.table, None, self._unlabeled_weight * unlabeled.row_weights)

    def _subset(self, batch: Batch) -> RowSubset:
        codes = positions(self._classes, batch.counts.classes)[batch.codes]
        return RowSubset(batch.table, codes, batch.row_weights)

    def _needs_expectation(self, batch: Batch) -> AnyArray:
        """Whether each row has missing values in a joint block, or a family whose components are not observed."""
        if any(plan.family._needs_em for plan in self._specification.plans):
            return np.ones(batch.table.rows, dtype=bool)
        incomplete = self._specification.incomplete_rows(batch.table) if batch.table.rows else None
        return np.zeros(batch.table.rows, dtype=bool) if incomplete is None else incomplete


def expect(
    specification: Specification, model: JointModel, rows: TrainingRows, complete: JointStatistics | None
) -> tuple[JointStatistics, float]:
    """Expected statistics of all rows under a model, and the log-likelihood of their observed values.

    `complete` are the statistics of the complete rows, which do not depend on the model.
    """
    total, likelihood = complete, 0.0
    for subset in rows.labeled():
        likelihood += float(_log_likelihoods(model, subset).sum())
    for subset in rows.incomplete():
        more, found = _expected(specification, model, subset)
        total = more if total is None else total + more
        likelihood += found if subset.codes is None else 0.0
    assert total is not None
    return total.aligned(), likelihood


def _cells(block: Block, table: Table) -> int:
    """About how many numbers of a row a block reads."""
    return table.cells(block.conditionals.dimension, block.sparse)


def class_log_likelihoods(model: JointModel, rows: TrainingRows) -> Array:
    """Σ log p(x, y) of the labeled rows of each class."""
    total = np.zeros(len(model.classes))
    for subset in rows.labeled():
        assert subset.codes is not None
        total += np.bincount(subset.codes, _log_likelihoods(model, subset), minlength=len(total))
    return total


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
                log_joint[start:stop] += block.conditionals.class_log_density(read(start, stop), codes[start:stop])

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
            weights = self.rows.weights[start:stop]
            if self.rows.codes is not None:
                codes = self.rows.codes[start:stop]
                self._add(accumulators, start, stop, codes, weights)
                weight += np.bincount(codes, weights, minlength=size)
                count += np.bincount(codes[weights > 0.0], minlength=size)
                continue
            posterior, found = self._posterior(start, stop)
            likelihood += float(np.where(weights > 0.0, weights * found, 0.0).sum())
            for k in range(size):
                self._add(accumulators, start, stop, np.full(stop - start, k), weights * posterior[k])
            weight += posterior @ weights
            count += np.bincount(posterior.argmax(axis=0)[weights > 0.0], minlength=size)
        blocks = tuple(accumulator.finish() for accumulator in accumulators)
        return JointStatistics(Counts(self.model.classes, count, weight), blocks), likelihood

    def _add(self, accumulators: Sequence[Any], start: int, stop: int, codes: AnyArray, weights: Array) -> None:
        for task, accumulator in zip(self.tasks, accumulators, strict=True):
            with named_cells(self.rows.table, task.columns, range(start, stop)):
                accumulator.add(task.read(start, stop), codes, weights)

    def _posterior(self, start: int, stop: int) -> tuple[Array, Array]:
        """p(class | x), (classes, n), and log p(x) of the observed values; 0 for rows impossible in all classes."""
        joint = np.repeat(self.model.log_prior[:, None], stop - start, axis=1)
        for block, read in zip(self.model.blocks, self.readers, strict=True):
            joint += block.evaluate(read(start, stop), exact=True)
        found = log_sum_exp(joint)
        impossible = np.isneginf(found)
        with np.errstate(invalid="ignore"):
            posterior = np.exp(joint - found)
        posterior[:, impossible] = 0.0
        return posterior, np.where(impossible, 0.0, found)
