"""Candidates for what is to be learnt, judged by rows left out, from one sum of statistics for all of them.

Where several families may suit undeclared columns, the one with the least log-loss of rows left out is chosen, if it
leads the simplest by more than the standard error of the lead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from likely.data.batches import Batch, Batches
from likely.data.row_hash import row_hashes
from likely.data.table import Table
from likely.errors import LikelyError, NoEvidenceError, NotEstimableError, listed, trying
from likely.families.base import Family
from likely.model.plans import Plan
from likely.model.shared_collection import SharedCollection, options
from likely.model.specification import Specification
from likely.numerics.special import EPS
from likely.statistics.counts import Counts, across
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array

MOST = 64  # columns of a block that are chosen for one by one
ROWS = 2**17  # rows that are judged
CELLS = 2**23  # log-densities of all candidates that are held
CELLS_EACH = 2  # cells for every free parameter, fewer of which tell nothing
FEWEST = 200  # rows, fewer of which are not judged by: too many classes and columns to hold more
SWEEPS = 4


# ---------------------------------------------------------------------------------------------------- rows left out
def one_each(batch: Batch) -> Batch:
    """Rows as they are left out: weights are frequencies, and of a row that stands for several one goes."""
    return batch if batch.weights is None else replace(batch, weights=np.minimum(batch.weights, 1.0))


def row_losses(joint: Array, prior: Array, codes: AnyArray) -> Array:
    """−log p(class | x) of each row, at most −log ε, from log p(x, class), (classes, rows).

    Where no class can have a row, the class prior answers.
    """
    top = joint.max(axis=0)
    lost = np.isneginf(top)
    if lost.any():
        joint = np.where(lost, prior, joint)
        top = joint.max(axis=0)
    own = joint[codes, np.arange(len(codes))]
    with np.errstate(invalid="ignore", over="ignore"):
        answer = own - top - np.log(np.exp(joint - top).sum(axis=0))
    return np.clip(-answer, 0.0, -np.log(EPS))


# --------------------------------------------------------------------------------------------------------- choosing
@dataclass(frozen=True, slots=True)
class Choice:
    """Why some columns have the family they have: the mean log-loss of rows left out, for every candidate.

    A candidate that the rows do not determine has None. `error` is the standard error of its lead over the first one,
    which is the simplest: that one is chosen unless the best of the others leads by more.
    """

    columns: tuple[str, ...]
    family: str
    log_loss: dict[str, float | None]
    error: dict[str, float]
    weight: float  # of all rows

    def __add__(self, other: Choice) -> Choice:
        """What the rows of both say."""
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
        best = clear_best([_or_infinite(scores[name]) for name in names], [error[name] for name in names])
        return Choice(self.columns, names[best], scores, error, total)

    def __str__(self) -> str:
        told = {name: "not estimable" if loss is None else f"{loss:.4f}" for name, loss in self.log_loss.items()}
        others = (f"{name} {loss}" for name, loss in told.items() if name != self.family)
        return f"{listed(self.columns, limit=4)}: {self.family} {told[self.family]}; {'; '.join(others)}"


def clear_best(losses: Sequence[float], errors: Sequence[float]) -> int:
    """The place of the least loss; the first where another one leads by no more than the standard error of its lead."""
    known = [np.inf if np.isnan(loss) else loss for loss in losses]
    best = int(np.argmin(known))
    rounding = 1e-9 * (1.0 + abs(losses[best]))
    return best if losses[0] - losses[best] > max(errors[best], rounding) else 0


def _or_infinite(loss: float | None) -> float:
    return np.inf if loss is None else loss


@dataclass(slots=True, eq=False)
class _Block:
    """Columns of one plan, with a statistics value for each of its families."""

    plan: Plan
    columns: tuple[int, ...]
    families: tuple[Family, ...]
    parts: list[Any]

    def some(self, places: tuple[int, ...], option: int) -> tuple[Plan, Any]:
        """Some of the columns with one of the families, and their statistics."""
        plan = replace(self.plan, family=self.families[option], others=())
        return self._narrow(plan, self.parts[option], places)

    def settled(
        self, places: tuple[int, ...], option: int, together: SharedCollection, sums: JointStatistics
    ) -> tuple[Plan, Any]:
        """The same for good, with statistics that serve all families that collect the same."""
        chosen = self.families[option]
        rest = tuple(f for f in self.families if f is not chosen and f._statistics_key() == chosen._statistics_key())
        plan = replace(self.plan, family=chosen, others=rest)
        return self._narrow(plan, together.part(plan, sums), places)

    def _narrow(self, plan: Plan, part: Any, places: tuple[int, ...]) -> tuple[Plan, Any]:
        if len(places) == len(self.columns):
            return plan, part
        return replace(plan, columns=tuple(self.columns[i] for i in places)), part.take(np.array(places, dtype=np.intp))

    def items(self) -> list[_Item]:
        """Columns that are chosen for together: each by itself where families differ by name, and columns are few."""
        alone = len({type(family) for family in self.families}) > 1 and len(self.columns) <= MOST
        places = range(len(self.columns))
        return [_Item(self, (i,)) for i in places] if alone else [_Item(self, tuple(places))]


@dataclass(slots=True, eq=False)
class _Item:
    """Some columns of a block, the densities of rows left out under each of its families, and the one chosen."""

    block: _Block
    places: tuple[int, ...]
    densities: list[Array | None] = field(default_factory=list)  # (classes, rows); None where there is no estimate
    chosen: int = 0

    @property
    def density(self) -> Array:
        found = self.densities[self.chosen]
        assert found is not None
        return found


def choose(
    specification: Specification, batches: Batches, together: SharedCollection, sums: JointStatistics
) -> tuple[Specification, JointStatistics, tuple[Choice, ...]]:
    """The same specification with one family for each block, its statistics, and the reasons.

    The order of rows and columns does not matter. Where there is one class, nothing is to be told apart, and every
    block has its first family.
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
    reasons: tuple[Choice, ...] = ()
    if np.count_nonzero(total.counts.rows) > 1:
        weight = float(total.counts.weight.sum())
        found = _judge(specification, items, total.counts, batches)
        reasons = () if found is None else _settle(specification, items, weight, *found)
    final: list[tuple[Plan, Any]] = []
    for block in blocks:
        for option in range(len(block.families)):  # columns of a block that have the same family stay together
            mine = [i for item in items if item.block is block and item.chosen == option for i in item.places]
            if mine:
                final.append(block.settled(tuple(mine), option, together, sums))
    chosen = replace(specification, plans=tuple(plan for plan, _ in final))
    statistics = JointStatistics(sums.counts, tuple(part for _, part in final)).aligned()
    return chosen, chosen.with_declared(statistics), reasons


def agreed(
    mine: Specification,
    yours: Specification,
    my_choices: Sequence[Choice],
    your_choices: Sequence[Choice],
    weights: tuple[float, float],
) -> tuple[Specification, Specification, tuple[Choice, ...]]:
    """Both specifications with one family for each block that has several to choose from, by the losses of both.

    They count by the weight of the rows that either model knows now.
    """
    told = [
        {choice.columns: replace(choice, weight=weight) for choice in choices}
        for choices, weight in zip((my_choices, your_choices), weights, strict=True)
    ]
    for named in told[0].keys() & told[1].keys():
        first, second = told[0][named], told[1][named]
        if first.family == second.family and first.log_loss.keys() == second.log_loss.keys():
            told[0][named] = replace(first + second, family=first.family)
            told[1].pop(named)
    plans = [{plan.columns: plan for plan in each.plans} for each in (mine, yours)]
    for columns in [columns for columns, plan in plans[0].items() if plan.others]:
        twins = [each.get(columns) for each in plans]
        families = [{f.describe(): f for f in (twin.family, *twin.others)} if twin else {} for twin in twins]
        if families[0].keys() != families[1].keys():
            continue
        names = mine.columns(plans[0][columns])
        known = [each[names] for each in told if names in each]
        if not known:
            continue
        choice = known[0] if len(known) == 1 else known[0] + known[1]
        told[0][names] = choice
        for each, known_families in zip(plans, families, strict=True):
            rest = tuple(family for name, family in known_families.items() if name != choice.family)
            each[columns] = replace(each[columns], family=known_families[choice.family], others=rest)
    mine, yours = (replace(each, plans=tuple(some.values())) for each, some in zip((mine, yours), plans, strict=True))
    return mine, yours, tuple(told[0].values())


def _judge(
    specification: Specification, items: Sequence[_Item], counts: Counts, batches: Batches
) -> tuple[Array, AnyArray, Array] | None:
    """Find the densities of rows left out; return log p(class) without each of them, their codes and their weights.

    None where there are no rows to judge by.
    """
    held = sum(len(item.block.families) for item in items) * len(counts.classes)
    most = min(ROWS, CELLS // held)
    if most < FEWEST:
        return None
    share = most / int(counts.rows.sum())
    ways = [_ways(specification, item) for item in items]
    densities: list[list[list[Array]]] = [[[] for _ in mine] for mine in ways]
    labels: list[tuple[Array, AnyArray, Array]] = []
    for batch in batches:
        some = _sampled(batch, counts.classes, share) if batch.table.rows else None
        if some is None:
            continue
        codes, weights, without = specification.leave_one_out_labels(counts, one_each(some))
        labels.append((without(codes, weights), codes, np.ones(len(codes)) if some.weights is None else some.weights))
        for mine, found in zip(ways, densities, strict=True):
            for way, parts in zip(mine, found, strict=True):
                if way is not None:
                    parts.append(way(some.table, codes, weights))
    if not labels:
        return None
    for item, found in zip(items, densities, strict=True):
        item.densities = [np.concatenate(parts, axis=1) if parts else None for parts in found]
        item.chosen = next(i for i, density in enumerate(item.densities) if density is not None)
    prior, codes, weights = (np.concatenate(parts, axis=-1) for parts in zip(*labels, strict=True))
    return prior, codes, weights


def _ways(specification: Specification, item: _Item) -> list[Callable[[Table, AnyArray, Array], Array] | None]:
    """How each family of an item leaves rows out; None where the rows do not determine it, an error where none does."""
    found: list[Callable[[Table, AnyArray, Array], Array] | None] = []
    problem: LikelyError | None = None
    for option in range(len(item.block.families)):
        plan, part = item.block.some(item.places, option)
        if option and not _enough(specification, plan, part):
            found.append(None)
            continue
        try:
            with trying():
                found.append(specification.leave_one_out(plan, part))
        except NotEstimableError as error:
            problem = problem or error
            found.append(None)
    if problem is not None and all(way is None for way in found):
        raise problem
    return found


def _enough(specification: Specification, plan: Plan, part: Any) -> bool:
    """Whether there are enough cells for each free parameter to be judged by rows left out."""
    try:
        size = plan.family._n_parameters(part, specification.columns(plan))
    except NoEvidenceError:
        return True
    cells = np.broadcast_to(across(np.asarray(part.rows)), (len(part.classes), part.dimension)).sum()
    return bool(cells >= CELLS_EACH * size)


def _settle(
    specification: Specification,
    items: Sequence[_Item],
    weight: float,
    prior: Array,
    codes: AnyArray,
    weights: Array,
) -> tuple[Choice, ...]:
    """Choose, and say why. Columns that gain most go first, and all are asked again until nothing changes."""
    total = prior + sum(item.density for item in items)
    possible = bool(np.isfinite(total).all())

    def losses(item: _Item) -> list[Array | None]:
        """Losses of the rows under each family of an item, the others being as they are."""
        rest = total - item.density if possible else prior + sum(o.density for o in items if o is not item)
        return [None if part is None else row_losses(rest + part, prior, codes) for part in item.densities]

    undecided = [item for item in items if len(item.block.families) > 1]
    means = [_compared(losses(item), weights)[0] for item in undecided]
    gains = [mine[item.chosen] - min(mine) for item, mine in zip(undecided, means, strict=True)]
    order = [undecided[i] for i in np.argsort(np.negative(gains), kind="stable")]
    for _ in range(SWEEPS):
        before = [item.chosen for item in order]
        for item in order:
            old = item.density
            item.chosen = clear_best(*_compared(losses(item), weights))
            if item.density is not old:
                total = prior + sum(other.density for other in items)
                possible = bool(np.isfinite(total).all())
        if before == [item.chosen for item in order]:
            break
    reasons = []
    for item in undecided:
        told = [family.describe() for family in item.block.families]
        least, errors = (dict(zip(told, values, strict=True)) for values in _compared(losses(item), weights))
        scores = {name: None if np.isinf(value) else value for name, value in least.items()}
        columns = tuple(specification.names[item.block.columns[i]] for i in item.places)
        reasons.append(Choice(columns, told[item.chosen], scores, errors, weight))
    return tuple(reasons)


def _compared(losses: Sequence[Array | None], weights: Array) -> tuple[list[float], list[float]]:
    """Mean losses, infinite where a family has none; and the standard errors of their leads over the first."""
    means, errors = [], []
    for loss in losses:
        mean = np.inf if loss is None else float(np.average(loss, weights=weights))
        means.append(np.inf if np.isnan(mean) else mean)
        error = 0.0
        if loss is not None and losses[0] is not None:
            lead = losses[0] - loss
            spread = np.average((lead - np.average(lead, weights=weights)) ** 2, weights=weights)
            error = float(np.sqrt(spread / weights.sum()))
        errors.append(error)
    return means, errors


# ---------------------------------------------------------------------------------------------------------- samples
def _sampled(batch: Batch, classes: AnyArray, share: float) -> Batch | None:
    """About a share of the rows that have weight; None where there are none.

    What a row holds decides whether it is taken, and for rows that are the same how many there are, but not where they
    stand: their order does not matter.
    """
    used = batch.used
    if share < 1.0:
        codes = np.searchsorted(classes, batch.counts.classes)[batch.codes]
        taken = row_hashes(batch.table, codes) < np.uint64(share * 2.0**64)
        used = np.flatnonzero(taken if batch.weights is None else taken & (batch.weights > 0.0))
    if used is None:
        return batch
    return batch.take(used) if len(used) else None
