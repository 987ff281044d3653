"""Agreement of two models on the families of their blocks, before their statistics are added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from likely.families.base import Family
from likely.model.choices import Choice
from likely.model.fit import Fit


def agreed(mine: Fit, yours: Fit) -> tuple[Fit, Fit]:
    """Both fits with the same family for each block that has candidates, by the log-losses of both models.

    The log-losses are weighted by the weight of the rows of each model. The choices of both are those of the first fit.
    """
    fits = mine, yours
    for fit in fits:
        fit.check_additive("adding models")
    known = [_weighted(fit.choices, fit.weight) for fit in fits]
    for named in known[0].keys() & known[1].keys():
        first, second = known[0][named], known[1][named]
        if first.family == second.family and first.log_loss.keys() == second.log_loss.keys():
            known[0][named] = replace(first + second, family=first.family)
            known[1].pop(named)
    columns_of = _weighted(yours.specification.choices, yours.weight)
    plans = [{plan.columns: plan for plan in fit.specification.plans} for fit in fits]
    for columns, plan in plans[0].items():
        choices = tuple(_common(choice, columns_of.get(choice.columns), mine.weight) for choice in plan.choices)
        plans[0][columns] = replace(plan, choices=choices)
        both = [each.get(columns) for each in plans]
        families = [{f.describe(): f for f in (plan.family, *plan.others)} if plan else {} for plan in both]
        names = mine.specification.columns(plan)
        judged = [each[names] for each in known if names in each]
        undecided = any(plan is not None and plan.others for plan in both)
        if not undecided or not judged or not _comparable(*families):
            continue
        choice = max(judged, key=lambda each: (len(each.log_loss), each.weight))
        if len(judged) == 2 and judged[0].log_loss.keys() == judged[1].log_loss.keys():
            choice = judged[0] + judged[1]
        known[0][names] = choice
        candidates = min(families, key=len) | max(families, key=len)
        rest = tuple(family for name, family in candidates.items() if name != choice.family)
        for each in plans:
            each[columns] = replace(each[columns], family=candidates[choice.family], others=rest)
    left, right = (
        replace(fit, specification=replace(fit.specification, plans=tuple(each.values())))
        for fit, each in zip(fits, plans, strict=True)
    )
    return replace(left, choices=tuple(known[0].values())), right


def _weighted(choices: Iterable[Choice], weight: float) -> dict[tuple[str, ...], Choice]:
    """Choices by their columns, with the weight of the rows of a model."""
    return {choice.columns: replace(choice, weight=weight) for choice in choices}


def _common(mine: Choice, yours: Choice | None, weight: float) -> Choice:
    """The choice of the family of a column with the scores of both models, if they have chosen the same."""
    if yours is None or mine.family != yours.family:
        return mine
    return replace(replace(mine, weight=weight) + yours, family=mine.family)


def _comparable(left: dict[str, Family], right: dict[str, Family]) -> bool:
    """Whether two blocks have the same candidates, or ones that differ in the prior of their covariances alone."""
    if left.keys() == right.keys():
        return True
    keys = {family._statistics_key() for family in (*left.values(), *right.values())}
    return bool(left and right) and len(keys) == 1 and bool(left.keys() & right.keys())
