"""Family choice: candidate families of columns that are not declared, compared by leave-one-out log-loss.

One pass collects the statistics of all candidates. The one with the least leave-one-out log-loss is chosen if it is
better than the simplest by more than the standard error of the difference.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from likely.data.batches import Batch, Batches
from likely.data.table import Table
from likely.errors import LikelyError, NoEvidenceError, NotEstimableError, listed, trying
from likely.families.base import Family
from likely.model.class_prior import leave_one_out_log_prior
from likely.model.plans import Plan
from likely.model.row_sample import sampled_rows
from likely.model.shared_collection import SharedCollection, options
from likely.model.specification import Specification
from likely.numerics.special import EPS
from likely.statistics.counts import Counts, across
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array

MOST = 64  # columns of a block up to which each has its own choice
CELLS = 2**23  # log-densities of all candidates that are held in memory, at most
CELLS_EACH = 2  # values for each free parameter that a candidate needs
FEWEST = 200  # rows below which no choice is made: CELLS has no place for more of so many classes and columns
HeldOutDensity = Callable[[Table, AnyArray, Array], Array]
SWEEPS = 4  # passes over the columns, each of which may change its choice given the others


def held_out_copies(batch: Batch) -> Batch:
    """Rows as leave-one-out holds them out: weights are frequencies, and one copy of each row is held out."""
    return batch if batch.weights is None else replace(batch, weights=np.minimum(batch.weights, 1.0))


def row_losses(joint: Array, prior: Array, codes: AnyArray) -> Array:
    """−log p(class | x) of each row, at most −log ε, from log p(x, class), (classes, rows).

    Rows impossible under every class have the class prior.
    """
    top = joint.max(axis=0)
    impossible = np.isneginf(top)
    if impossible.any():
        joint = np.where(impossible, prior, joint)
        top = joint.max(axis=0)
    observed = joint[codes, np.arange(len(codes))]
    with np.errstate(invalid="ignore", over="ignore"):
        log_posterior = observed - top - np.log(np.exp(joint - top).sum(axis=0))
    return np.clip(-log_posterior, 0.0, -np.log(EPS))


@dataclass(frozen=True, slots=True)
class Choice:
    """The family chosen for some columns, and the mean leave-one-out log-loss of every candidate.

    The first candidate is the simplest. It is chosen unless the best of the others is better by more than
    `standard_errors` standard errors of the difference.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    family : str
        The chosen family.
    log_loss : dict of str to float or None
        Mean leave-one-out log-loss of each candidate; None where it has no estimate.
    error : dict of str to float
        Standard error of the difference between the log-loss of each candidate and that of the first.
    weight : float
        Total weight of the rows.
    standard_errors : float
        By how many standard errors a candidate must be better than the first: 0 for covariances and the strength of
        their prior.
    """

    columns: tuple[str, ...]
    family: str
    log_loss: dict[str, float | None]
    error: dict[str, float]
    weight: float
    standard_errors: float = 1.0

    def __add__(self, other: Choice) -> Choice:
        """The choice by the rows of both."""
        total = self.weight + other.weight
        scores: dict[str, float | None] = {}
        for name, mine in self.log_loss.items():
            yours = other.log_loss[name]
            known = mine is not None and yours is not None
            scores[name] = (self.weight * mine + other.weight * yours) / total if known else None  # type: ignore[operator]
        error = {
            name: float(np.hypot(self.weight * mine, other.weight * other.error[name]) / total)
            for name, mine in self.error.items()
        }
        names = list(scores)
        least = [self.standard_errors * error[name] for name in names]
        best = clear_best([_or_infinite(scores[name]) for name in names], least)
        return replace(self, family=names[best], log_loss=scores, error=error, weight=total)

    def __str__(self) -> str:
        texts = {name: "not estimable" if loss is None else f"{loss:.4f}" for name, loss in self.log_loss.items()}
        others = (f"{name} {text}" for name, text in texts.items() if name != self.family)
        return f"{listed(self.columns, limit=4)}: {self.family} {texts[self.family]}; {'; '.join(others)}"


def clear_best(losses: Sequence[float], errors: Sequence[float]) -> int:
    """The place of the least loss; 0 where it is not better than the first by more than its error."""
    known = [np.inf if np.isnan(loss) else loss for loss in losses]
    best = int(np.argmin(known))
    rounding = 1e-9 * (1.0 + abs(losses[best]))
    return best if losses[0] - losses[best] > max(errors[best], rounding) else 0


def _or_infinite(loss: float | None) -> float:
    return np.inf if loss is None else loss


@dataclass(slots=True, eq=False)
class _Block:
    """Columns of one plan, and the statistics of each candidate family."""

    plan: Plan
    columns: tuple[int, ...]
    families: tuple[Family, ...]
    parts: list[Any]

    def candidate(self, places: tuple[int, ...], option: int) -> tuple[Plan, Any]:
        """Some of the columns with one of the families, and their statistics."""
        plan = replace(self.plan, family=self.families[option], others=())
        return self._narrow(plan, self.parts[option], places)

    def chosen(
        self, places: tuple[int, ...], option: int, together: SharedCollection, sums: JointStatistics
    ) -> tuple[Plan, Any]:
        """Some of the columns with the family chosen; families with the same statistics stay candidates."""
        chosen = self.families[option]
        rest = tuple(f for f in self.families if f is not chosen and f._statistics_key() == chosen._statistics_key())
        plan = replace(self.plan, family=chosen, others=rest)
        return self._narrow(plan, together.part(plan, sums), places)

    def _narrow(self, plan: Plan, part: Any, places: tuple[int, ...]) -> tuple[Plan, Any]:
        if len(places) == len(self.columns):
            return plan, part
        return replace(plan, columns=tuple(self.columns[i] for i in places)), part.take(np.array(places, dtype=np.intp))

    def items(self) -> list[_Item]:
        """Columns with one choice: each column by itself where families are of different types, and columns are few."""
        alone = len({type(family) for family in self.families}) > 1 and len(self.columns) <= MOST
        places = range(len(self.columns))
        return [_Item(self, (i,)) for i in places] if alone else [_Item(self, tuple(places))]


@dataclass(slots=True, eq=False)
class _Item:
    """Columns with one choice: their leave-one-out log-densities under each family, and the family chosen."""

    block: _Block
    places: tuple[int, ...]
    densities: list[Array | None] = field(default_factory=list)  # (classes, rows); None where there is no estimate
    chosen: int = 0

    @property
    def undecided(self) -> bool:
        """Whether there are several candidates that differ in more than their covariances."""
        families = self.block.families
        return len({family._statistics_key() for family in families}) > 1

    @property
    def density(self) -> Array:
        found = self.densities[self.chosen]
        assert found is not None
        return found


def choose_families(
    specification: Specification, batches: Batches, together: SharedCollection, sums: JointStatistics
) -> tuple[Specification, JointStatistics, tuple[Choice, ...]]:
    """The same specification with one family for each block, its statistics, and the choices made.

    The result does not depend on the order of rows and columns. With a single class every block has its first family.
    """
    if not any(plan.others for plan in specification.plans):
        return specification, together.statistics(specification, sums), ()
    every = [options(plan) for plan in specification.plans]
    total = together.statistics(replace(specification, plans=tuple(itertools.chain.from_iterable(every))), sums)
    parts = iter(total.blocks)
    everywhere = tuple(range(len(specification.names)))
    blocks = [
        _Block(plan, plan.columns or everywhere, tuple(each.family for each in some), [next(parts) for _ in some])
        for plan, some in zip(specification.plans, every, strict=True)
    ]
    items = [item for block in blocks for item in block.items()]
    choices: tuple[Choice, ...] = ()
    if np.count_nonzero(total.counts.rows) > 1 and any(item.undecided for item in items):
        weight = float(total.counts.weight.sum())
        found = _leave_one_out(specification, items, total.counts, batches)
        choices = () if found is None else _choose_each(specification, items, weight, *found)
    final: list[tuple[Plan, Any]] = []
    for block in blocks:
        for option in range(len(block.families)):  # columns of a block with the same family stay one block
            mine = [i for item in items if item.block is block and item.chosen == option for i in item.places]
            if mine:
                final.append(block.chosen(tuple(mine), option, together, sums))
    chosen = replace(specification, plans=tuple(plan for plan, _ in final))
    statistics = JointStatistics(sums.counts, tuple(part for _, part in final)).aligned()
    return chosen, chosen.with_declared(statistics), choices


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
    for columns in [columns for columns, plan in plans[0].items() if plan.others]:
        both = [each.get(columns) for each in plans]
        families = [{f.describe(): f for f in (plan.family, *plan.others)} if plan else {} for plan in both]
        names = mine.columns(plans[0][columns])
        known = [each[names] for each in known_choices if names in each]
        if not known or not _comparable(*families):
            continue
        choice = max(known, key=lambda each: each.weight)
        if len(known) == 2 and known[0].log_loss.keys() == known[1].log_loss.keys():
            choice = known[0] + known[1]
        families = [families[0] | families[1]] * 2
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


def _leave_one_out(
    specification: Specification, items: Sequence[_Item], counts: Counts, batches: Batches
) -> tuple[Array, AnyArray, Array] | None:
    """Set the leave-one-out log-densities of all items; return the leave-one-out log-prior, codes and weights.

    None where there are too few rows to compare by.
    """
    held = sum(len(item.block.families) for item in items) * len(counts.classes)
    most = CELLS // held
    if most < FEWEST:
        return None
    held_out = [_held_out_densities(specification, item) for item in items]
    densities: list[list[list[Array]]] = [[[] for _ in candidates] for candidates in held_out]
    labels: list[tuple[Array, AnyArray, Array]] = []
    without = leave_one_out_log_prior(specification.class_prior, counts, specification.estimation)
    for some in sampled_rows(batches, counts, most):
        labels.append((without(some.codes, some.held_out), some.codes, some.weights))
        for candidates, found in zip(held_out, densities, strict=True):
            for log_density, parts in zip(candidates, found, strict=True):
                if log_density is not None:
                    parts.append(log_density(some.table, some.codes, some.held_out))
    if not labels:
        return None
    for item, found in zip(items, densities, strict=True):
        item.densities = [np.concatenate(parts, axis=1) if parts else None for parts in found]
        item.chosen = next(i for i, density in enumerate(item.densities) if density is not None)
    prior, codes, weights = (np.concatenate(parts, axis=-1) for parts in zip(*labels, strict=True))
    return prior, codes, weights


def _held_out_densities(specification: Specification, item: _Item) -> list[HeldOutDensity | None]:
    """The leave-one-out log-density of each family of an item; None where it has no estimate."""
    found: list[HeldOutDensity | None] = []
    problem: LikelyError | None = None
    for option in range(len(item.block.families)):
        plan, part = item.block.candidate(item.places, option)
        if option and not enough(specification, plan, part):
            found.append(None)
            continue
        try:
            with trying():
                found.append(specification.leave_one_out(plan, part))
        except NotEstimableError as error:
            problem = problem or error
            found.append(None)
    if problem is not None and all(log_density is None for log_density in found):
        raise problem
    return found


def enough(specification: Specification, plan: Plan, part: Any) -> bool:
    """Whether there are enough values for each free parameter of a candidate."""
    try:
        size = plan.family._n_parameters(part, specification.columns(plan))
    except NoEvidenceError:
        return True
    cells = np.broadcast_to(across(np.asarray(part.rows)), (len(part.classes), part.dimension)).sum()
    return bool(cells >= CELLS_EACH * size)


def _choose_each(
    specification: Specification,
    items: Sequence[_Item],
    weight: float,
    prior: Array,
    codes: AnyArray,
    weights: Array,
) -> tuple[Choice, ...]:
    """Choose a family for each item, given those of the others, until none changes; the largest gain goes first."""
    total = prior + sum(item.density for item in items)
    finite = bool(np.isfinite(total).all())

    def losses(item: _Item) -> list[Array | None]:
        """Log-losses of the rows under each family of an item, given the families of the others."""
        rest = total - item.density if finite else prior + sum(o.density for o in items if o is not item)
        return [None if part is None else row_losses(rest + part, prior, codes) for part in item.densities]

    undecided = [item for item in items if item.undecided]
    means = [compared(losses(item), weights)[0] for item in undecided]
    gains = [mine[item.chosen] - min(mine) for item, mine in zip(undecided, means, strict=True)]
    order = [undecided[i] for i in np.argsort(np.negative(gains), kind="stable")]
    for _ in range(SWEEPS):
        before = [item.chosen for item in order]
        for item in order:
            old = item.density
            item.chosen = clear_best(*compared(losses(item), weights))
            if item.density is not old:
                total = prior + sum(other.density for other in items)
                finite = bool(np.isfinite(total).all())
        if before == [item.chosen for item in order]:
            break
    choices = []
    for item in undecided:
        names = [family.describe() for family in item.block.families]
        least, errors = (dict(zip(names, values, strict=True)) for values in compared(losses(item), weights))
        scores = {name: None if np.isinf(value) else value for name, value in least.items()}
        columns = tuple(specification.names[item.block.columns[i]] for i in item.places)
        choices.append(Choice(columns, names[item.chosen], scores, errors, weight))
    return tuple(choices)


def compared(losses: Sequence[Array | None], weights: Array) -> tuple[list[float], list[float]]:
    """Mean log-losses, infinite where a family has none; and standard errors of their differences from the first."""
    means, errors = [], []
    for loss in losses:
        mean = np.inf if loss is None else float(np.average(loss, weights=weights))
        means.append(np.inf if np.isnan(mean) else mean)
        error = 0.0
        if loss is not None and losses[0] is not None:
            difference = losses[0] - loss
            centred = difference - np.average(difference, weights=weights)
            error = float(np.sqrt(np.average(centred**2, weights=weights) / weights.sum()))
        errors.append(error)
    return means, errors
