"""Candidates for what is to be learnt, judged by rows left out, from one sum of statistics for all of them.

Where several families may suit undeclared columns, the one with the least log-loss of rows left out is chosen, if it
leads the simplest by more than the standard error of the lead.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from likely.choice import Plan
from likely.counts import Counts, across
from likely.errors import LikelyError, NoEvidenceError, NotEstimableError, listed, trying
from likely.families.base import Family
from likely.numerics import EPS, AnyArray, Array
from likely.passes import evaluate
from likely.sources import Batch, Batches
from likely.specification import Specification, share_of
from likely.statistics import JointStatistics
from likely.tables import Table

MOST = 64  # columns of a block that are chosen for one by one
ROWS = 2**17  # rows that are judged
CELLS = 2**23  # log-densities of all candidates that are held
CELLS_EACH = 2  # cells for every free parameter, fewer of which tell nothing
FEWEST = 200  # rows, fewer of which are not judged by: too many classes and columns to hold more
SWEEPS = 4
MIXER = np.uint64(0x9E3779B97F4A7C15)


# ------------------------------------------------------------------------------------------- one sum for all of them


class Together:
    """Specifications whose statistics are collected in one pass: blocks that collect alike have one sum."""

    def __init__(self, specifications: Sequence[Specification]) -> None:
        serving: dict[Any, Plan] = {}
        plans = itertools.chain.from_iterable(each.plans for each in specifications)
        for plan in itertools.chain.from_iterable(map(options, plans)):
            known = serving.get(_key(plan))
            serving[_key(plan)] = plan if known is None else replace(plan, family=plan.family.serving(known.family))
        self._place = {key: i for i, key in enumerate(serving)}
        self._all = Specification(specifications[0].names, tuple(serving.values()), None, "mle")

    def collect(self, batch: Batch) -> JointStatistics:
        """The sums of a batch. They add up."""
        return self._all.collect(batch)

    def steps(self, batch: Batch) -> int:
        """In how many parts rows are added, at most: some families take one class after another."""
        shares = (share_of(batch.table, batch.counts.classes, plan) for plan in self._all.plans)
        groups = (share.make().groups for share in shares)
        return max(1 if each is None else int(each.max(initial=0)) + 1 for each in groups)

    def total(self, batches: Batches) -> JointStatistics:
        """The sums of all batches."""
        parts = (self.collect(batch) for batch in batches if batch.table.rows)
        total = next(parts)
        for part in parts:
            total = total + part
        return total

    def part(self, plan: Plan, total: JointStatistics) -> Any:
        """What a plan would have collected."""
        return plan.collector.adapted(total.blocks[self._place[_key(plan)]])

    def statistics(self, specification: Specification, total: JointStatistics) -> JointStatistics:
        """What a specification would have collected of the same rows."""
        blocks = tuple(self.part(plan, total) for plan in specification.plans)
        return specification.with_declared(JointStatistics(total.counts, blocks).aligned())


def options(plan: Plan) -> list[Plan]:
    """A plan for each family that may suit it."""
    return [replace(plan, family=family, others=()) for family in (plan.family, *plan.others)]


def _key(plan: Plan) -> tuple[Any, ...]:
    """What is collected for a block: plans of the same key have one sum."""
    table = plan.joint and plan.family.reads_labels  # of all columns together
    return (plan.columns, table, *plan.family.collects())


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
        self, places: tuple[int, ...], option: int, together: Together, sums: JointStatistics
    ) -> tuple[Plan, Any]:
        """The same for good, with statistics that serve all families that collect the same."""
        chosen = self.families[option]
        rest = tuple(f for f in self.families if f is not chosen and f.collects() == chosen.collects())
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
    specification: Specification, batches: Batches, together: Together, sums: JointStatistics
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
        for each, options in zip(plans, families, strict=True):
            rest = tuple(family for name, family in options.items() if name != choice.family)
            each[columns] = replace(each[columns], family=options[choice.family], others=rest)
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
        codes, weights, without = specification.left_out_labels(counts, one_each(some))
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
                found.append(specification.leaving_out(plan, part))
        except NotEstimableError as error:
            problem = problem or error
            found.append(None)
    if problem is not None and all(way is None for way in found):
        raise problem
    return found


def _enough(specification: Specification, plan: Plan, part: Any) -> bool:
    """Whether there are enough cells for each free parameter to be judged by rows left out."""
    try:
        size = plan.family.n_parameters(part, specification.columns(plan))
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
        taken = _hashes(batch.table, codes) < np.uint64(share * 2.0**64)
        used = np.flatnonzero(taken if batch.weights is None else taken & (batch.weights > 0.0))
    if used is None:
        return batch
    return batch.take(used) if len(used) else None


def _hashes(table: Table, codes: AnyArray) -> AnyArray:
    """A number for each row that looks like chance, and follows from its cells and its class."""

    total = _scrambled(codes.astype(np.uint64))
    numbers = np.array([j for j in range(table.width) if table.kinds[j] != "label"], dtype=np.intp)
    read = table.numbers(numbers, sparse=True)
    names = _scrambled(np.array([zlib.crc32(name.encode()) for name in table.names], dtype=np.uint64)) | np.uint64(1)

    def add(start: int, stop: int) -> None:
        rows = read(start, stop)
        if table.is_sparse:
            rows = scipy.sparse.csr_array(rows)
            mixed = _bits(rows.data) * names[numbers[rows.indices]]
            ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])[rows.indptr]
            total[start:stop] += np.diff(ends)
            return
        total[start:stop] += (_bits(rows) * names[numbers]).sum(axis=1)

    if len(numbers):
        evaluate(table, add, 2 * table.cells(len(numbers), sparse=True))
    for j in np.setdiff1d(np.arange(table.width), numbers).tolist():
        (labels,) = table.labels([j])
        marks = [zlib.crc32(repr(word).encode()) for word in labels.vocabulary]
        total += _scrambled(np.array([*marks, 0], dtype=np.uint64))[labels.part(0, table.rows)]
    order = np.argsort(total, kind="stable")
    begins = np.flatnonzero(np.diff(total[order], prepend=~total[order[0]]))
    nth = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    total[order] += nth.astype(np.uint64) * MIXER  # rows that are the same are told apart by how many came before
    return _scrambled(total)


def _bits(values: AnyArray) -> AnyArray:
    """Numbers as mixed patterns of bits: 0 for 0, and one for all missing cells."""
    values = np.asarray(values, dtype=np.float64) + 0.0  # -0.0 is 0.0
    values[np.isnan(values)] = np.nan
    bits = values.view(np.uint64)
    bits ^= bits >> np.uint64(32)
    return bits


def _scrambled(bits: AnyArray) -> AnyArray:
    """Whole numbers mixed so that close ones come out far apart (the finaliser of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
