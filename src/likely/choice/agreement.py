"""Agreement of two models on the families of their blocks, before their statistics are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from likely.families.base import Family
from likely.model.choices import Choice
from likely.model.specification import Specification


def agree_on_families(
    mine: Specification,
    yours: Specification,
    my_choices: Sequence[Choice],
    your_choices: Sequence[Choice],
    weights: tuple[float, float],
) -> tuple[Specification, Specification, tuple[Choice, ...]]:
    """Both specifications with the same family for each block that has candidates, by the log-losses of both models.

    The log-losses are weighted by the weight of the rows of each model.
    """
    mine, yours = _with_common_choices(mine, yours, weights)
    known_choices = [
        {choice.columns: replace(choice, weight=weight) for choice in choices}
        for choices, weight in zip((my_choices, your_choices), weights, strict=True)
    ]
    for named in known_choices[0].keys() & known_choices[1].keys():
        first, second = known_choices[0][named], known_choices[1][named]
        if first.family == second.family and first.log_loss.keys() == second.log_loss.keys():
            known_choices[0][named] = replace(first + second, family=first.family)
            known_choices[1].pop(named)
    plans = [{plan.columns: plan for plan in each.plans} for each in (mine, yours)]
    for columns in plans[0]:
        both = [each.get(columns) for each in plans]
        if not any(plan is not None and plan.others for plan in both):
            continue
        families = [{f.describe(): f for f in (plan.family, *plan.others)} if plan else {} for plan in both]
        names = mine.columns(plans[0][columns])
        known = [each[names] for each in known_choices if names in each]
        if not known or not _comparable(*families):
            continue
        choice = max(known, key=lambda each: (len(each.log_loss), each.weight))
        if len(known) == 2 and known[0].log_loss.keys() == known[1].log_loss.keys():
            choice = known[0] + known[1]
        families = [min(families, key=len) | max(families, key=len)] * 2
        known_choices[0][names] = choice
        for each, known_families in zip(plans, families, strict=True):
            rest = tuple(family for name, family in known_families.items() if name != choice.family)
            each[columns] = replace(each[columns], family=known_families[choice.family], others=rest)
    mine, yours = (replace(each, plans=tuple(some.values())) for each, some in zip((mine, yours), plans, strict=True))
    return mine, yours, tuple(known_choices[0].values())


def _comparable(left: dict[str, Family], right: dict[str, Family]) -> bool:
    """Whether two blocks have the same candidates, or ones that differ in the prior of their covariances alone."""
    if left.keys() == right.keys():
        return True
    keys = {family._statistics_key() for family in (*left.values(), *right.values())}
    return bool(left and right) and len(keys) == 1 and bool(left.keys() & right.keys())


def _with_common_choices(
    mine: Specification, yours: Specification, weights: tuple[float, float]
) -> tuple[Specification, Specification]:
    """Both specifications with the scores of both for columns that have the same family in both."""
    known = {choice.columns: choice for choice in yours.choices}
    plans = []
    for plan in mine.plans:
        both = [(choice, known.get(choice.columns)) for choice in plan.choices]
        added = tuple(
            one
            if two is None or one.family != two.family
            else replace(replace(one, weight=weights[0]) + replace(two, weight=weights[1]), family=one.family)
            for one, two in both
        )
        plans.append(replace(plan, choices=added))
    return replace(mine, plans=tuple(plans)), yours
