"""Several specifications from one pass: candidates that need the same sums share them."""

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


# ------------------------------------------------------------------------------------------- one sum for all of them
class SharedCollection:
    """Specifications whose statistics are collected in one pass: blocks that collect alike have one sum."""

    def __init__(self, specifications: Sequence[Specification]) -> None:
        serving: dict[Any, Plan] = {}
        plans = itertools.chain.from_iterable(each.plans for each in specifications)
        for plan in itertools.chain.from_iterable(map(options, plans)):
            known = serving.get(_key(plan))
            serving[_key(plan)] = (
                plan if known is None else replace(plan, family=plan.family._common_collector(known.family))
            )
        self._place = {key: i for i, key in enumerate(serving)}
        self._all = Specification(specifications[0].names, tuple(serving.values()), None, Estimation.MLE)

    def collect(self, batch: Batch) -> JointStatistics:
        """The sums of a batch. They add up."""
        return self._all.collect(batch)

    def steps(self, batch: Batch) -> int:
        """In how many parts rows are added, at most: some families take one class after another."""
        shares = (block_task(batch.table, batch.counts.classes, plan) for plan in self._all.plans)
        groups = (share.make().groups for share in shares)
        return max(1 if each is None else int(each.max(initial=0)) + 1 for each in groups)

    def part(self, plan: Plan, total: JointStatistics) -> Any:
        """What a plan would have collected."""
        return plan.collector._project_statistics(total.blocks[self._place[_key(plan)]])

    def statistics(self, specification: Specification, total: JointStatistics) -> JointStatistics:
        """What a specification would have collected of the same rows."""
        blocks = tuple(self.part(plan, total) for plan in specification.plans)
        return specification.with_declared(JointStatistics(total.counts, blocks).aligned())


def options(plan: Plan) -> list[Plan]:
    """A plan for each family that may suit it."""
    return [replace(plan, family=family, others=()) for family in (plan.family, *plan.others)]


def _key(plan: Plan) -> tuple[Any, ...]:
    """What is collected for a block: plans of the same key have one sum."""
    table = plan.joint and plan.family._reads_categories  # of all columns together
    return (plan.columns, table, *plan.family._statistics_key())
