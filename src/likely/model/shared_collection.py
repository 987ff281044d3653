"""Statistics of several specifications from one pass: candidates that need the same sums share them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from likely.data.batches import Batch
from likely.families.estimation import Estimation
from likely.model.plans import Plan
from likely.model.specification import Specification, block_task
from likely.statistics.joint import JointStatistics


class SharedCollection:
    """Specifications whose statistics are collected in one pass; blocks with the same statistics share one sum."""

    def __init__(self, specifications: Sequence[Specification]) -> None:
        collectors: dict[Any, Plan] = {}
        plans = itertools.chain.from_iterable(each.plans for each in specifications)
        for plan in itertools.chain.from_iterable(map(options, plans)):
            known = collectors.get(_key(plan))
            collectors[_key(plan)] = (
                plan if known is None else replace(plan, family=plan.family._common_collector(known.family))
            )
        self._place = {key: i for i, key in enumerate(collectors)}
        self._all = Specification(specifications[0].names, tuple(collectors.values()), None, Estimation.MLE)

    def summarise(self, batch: Batch) -> JointStatistics:
        """The sums of a batch, which are additive."""
        return self._all.summarise(batch)

    def steps(self, batch: Batch) -> int:
        """The largest number of groups in which an accumulator adds rows: some add one class after another."""
        tasks = (block_task(batch.table, batch.counts.classes, plan) for plan in self._all.plans)
        groups = (task.make().groups for task in tasks)
        return max(1 if each is None else int(each.max(initial=0)) + 1 for each in groups)

    def part(self, plan: Plan, total: JointStatistics) -> Any:
        """The statistics of one plan."""
        return plan.collector._project_statistics(total.blocks[self._place[_key(plan)]])

    def statistics(self, specification: Specification, total: JointStatistics) -> JointStatistics:
        """The statistics of one specification."""
        blocks = tuple(self.part(plan, total) for plan in specification.plans)
        return specification.with_declared(JointStatistics(total.counts, blocks).aligned())


def options(plan: Plan) -> list[Plan]:
    """A plan for each candidate family."""
    return [replace(plan, family=family, others=()) for family in (plan.family, *plan.others)]


def _key(plan: Plan) -> tuple[Any, ...]:
    """The key of the statistics of a block: plans with the same key share one sum."""
    table = plan.joint and plan.family._reads_categories  # counts of combinations of all columns
    return (plan.columns, table, *plan.family._statistics_key())
