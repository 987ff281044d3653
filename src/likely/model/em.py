"""Expectation maximisation: learning from rows with missing labels, missing cells, or both.

The statistics of rows that are not wholly known are replaced by their expectations under the current model, and
the model is estimated from them as from any others. The likelihood of what is known (under "map" times the density
of the priors) never falls. What is derived from the data is held fixed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.data.batches import Batch, Batches
from likely.data.row_blocks import evaluate, named_cells, rows_per_block
from likely.data.table import Table
from likely.errors import NoEvidenceError, NotConvergedWarning, trying, warn
from likely.families.estimation import Estimation
from likely.families.priors import Dirichlet
from likely.model.joint import Block, JointModel
from likely.model.persistence import register
from likely.model.specification import Specification, block_task
from likely.numerics.progress import progress
from likely.numerics.special import log_sum_exp
from likely.numerics.threads import run, single_threaded_blas_for, worker_count
from likely.statistics.counts import Counts
from likely.statistics.joint import JointStatistics
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array

SEEDED = 10_000  # rows that centres of components are sought among
ROUNDS = 2  # how often what is derived from the data is derived anew


@dataclass(frozen=True, slots=True, eq=False)
class EMHistory:
    """How expectation maximisation went: the objective after each iteration, and whether it came to rest.

    The objective is the log-likelihood of what is known, under "map" and "bayes" plus the log-density of the priors,
    up to a constant, since these were last derived from the data; `log_likelihood` is the last one, without the priors.
    """

    objective: tuple[float, ...]
    log_likelihood: float
    iterations: int
    converged: bool


register(EMHistory, name="Course")  # the name that files of version 0.1 have


@dataclass(frozen=True, slots=True)
class EMOptions:
    """When expectation maximisation stops, and the weight of an unlabeled row."""

    max_iter: int = 200
    tol: float = 1e-6
    unlabeled_weight: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some rows: with codes of their labels, or without (None)."""

    table: Table
    codes: AnyArray | None
    weights: Array

    @property
    def rows(self) -> int:
        return self.table.rows


class Rows:
    """The rows to learn from, in those that are wholly known and those that are not, batch after batch."""

    def __init__(self, specification: Specification, batches: Batches, classes: AnyArray, unlabeled_weight: float):
        self._specification, self._batches = specification, batches
        self._classes, self._share = classes, unlabeled_weight

    def settled(self) -> Iterator[Batch]:
        """Rows of which everything is known that statistics need."""
        for batch in self._batches:
            known = ~self._missing_rows(batch)
            if known.all():
                yield replace(batch, unlabeled=None)
            elif known.any():
                yield replace(batch, unlabeled=None).take(np.flatnonzero(known))

    def labelled(self) -> Iterator[Part]:
        """The same, as parts, and those that miss cells."""
        for batch in self._batches:
            if batch.table.rows:
                yield self._part(batch)

    def unsettled(self) -> Iterator[Part]:
        """Rows that miss cells, or their label."""
        for batch in self._batches:
            holed = np.flatnonzero(self._missing_rows(batch))
            if len(holed):
                yield self._part(batch.take(holed))
            if batch.unlabeled is not None and self._share > 0.0:
                weights = (
                    np.ones(batch.unlabeled.table.rows) if batch.unlabeled.weights is None else batch.unlabeled.weights
                )
                yield Part(batch.unlabeled.table, None, self._share * weights)

    def _part(self, batch: Batch) -> Part:
        codes = np.searchsorted(self._classes, batch.counts.classes)[batch.codes]
        return Part(batch.table, codes, np.ones(len(codes)) if batch.weights is None else batch.weights)

    def _missing_rows(self, batch: Batch) -> AnyArray:
        """Whether a row misses a cell of columns that vary together."""
        if any(plan.family._needs_em for plan in self._specification.plans):
            return np.ones(batch.table.rows, dtype=bool)
        incomplete = self._specification.incomplete_rows(batch.table) if batch.table.rows else None
        return np.zeros(batch.table.rows, dtype=bool) if incomplete is None else incomplete


def learn(
    specification: Specification, batches: Batches, classes: AnyArray, options: EMOptions
) -> tuple[JointStatistics, EMHistory]:
    """Expected statistics of all rows at the fixed point of expectation maximisation, and how it was reached."""
    rows = Rows(specification, batches, classes, options.unlabeled_weight)
    settled: JointStatistics | None = None
    for batch in rows.settled():
        part = specification.collect(batch).align(classes)
        settled = part if settled is None else settled + part
    model = first_model(specification, batches, classes)
    return iterate(specification, rows, settled, model, options)


def first_model(specification: Specification, batches: Batches, classes: AnyArray) -> JointModel:
    """A model to begin with: labelled rows, columns with holes independent, the modes of the parameters."""
    plans = tuple(replace(plan, family=plan.family._initial_family(), others=()) for plan in specification.plans)
    simple = replace(specification, plans=plans, estimation=Estimation.MAP)
    total: JointStatistics | None = None
    for batch in batches:
        if batch.table.rows and len(batch.counts.classes):
            part = simple.collect(replace(batch, unlabeled=None))
            total = part if total is None else total + part
    assert total is not None
    prior = specification.class_prior
    usable = prior is not None and not (isinstance(prior, Dirichlet) and specification.estimation != Estimation.MAP)
    simple = simple if usable else replace(simple, class_prior=None)
    with trying():
        model = simple.estimate(total.align(classes))[0]
    return with_seeds(specification, model, batches)


def with_seeds(specification: Specification, model: JointModel, batches: Batches) -> JointModel:
    """The same model with what families make of the first rows: centres, where classes have several components."""
    batch = next(batch for batch in batches if batch.table.rows)
    some = slice(0, min(batch.table.rows, SEEDED))
    codes = np.searchsorted(model.classes, batch.counts.classes)[batch.codes[some]]
    weights = np.ones(len(codes)) if batch.weights is None else batch.weights[some]
    blocks = []
    for plan, block in zip(specification.plans, model.blocks, strict=True):
        start = block.conditionals
        if plan.family._needs_em:
            rows = np.array(block.reader(batch.table)(0, len(codes)))
            used = weights > 0.0
            start = plan.family._seeded(start, rows[used], codes[used], weights[used])
        blocks.append(replace(block, conditionals=start))
    return replace(model, blocks=tuple(blocks))


def iterate(
    specification: Specification,
    rows: Rows,
    settled: JointStatistics | None,
    model: JointModel,
    options: EMOptions,
    begin: JointStatistics | None = None,
) -> tuple[JointStatistics, EMHistory]:
    """Expectations and estimates in turn, until the objective rests."""
    mode = replace(specification, estimation=specification.estimation.plug_in)
    objective: list[float] = []
    statistics, likelihood = begin, -np.inf
    converged, rounds, done = False, 0, 0
    with single_threaded_blas_for(len(specification.names)), progress("iterations of expectation maximisation") as step:
        while not converged and done < options.max_iter:
            if statistics is None:
                statistics, _ = expect(specification, model, rows, settled)
            working, reference = held(mode, statistics), statistics
            rested, objective = False, []
            while not rested and done < options.max_iter:
                with trying():
                    model = working.estimate(with_reference(statistics, reference))[0]
                statistics, likelihood = expect(specification, model, rows, settled)
                value = likelihood + log_prior(working, statistics, reference, model)
                rested = bool(objective) and abs(value - objective[-1]) <= options.tol * float(
                    statistics.counts.weight.sum()
                )
                objective.append(value)
                done += 1
                step()
            rounds += 1
            converged = rested and (mode.estimation == Estimation.MLE or rounds == ROUNDS)
    assert statistics is not None
    if not converged:
        warn(
            f"Expectation maximisation has not come to rest after {done} iterations: the last one changed "
            f"the objective by {abs(objective[-1] - objective[-2]) if len(objective) > 1 else np.inf:.3g}. "
            "Hint: more iterations or a larger tolerance (max_iter and tol, where the estimator has them).",
            NotConvergedWarning,
        )
    return statistics, EMHistory(tuple(objective), likelihood, done, converged)


def has_converged(objective: Sequence[float], weight: float, tol: float) -> bool:
    """The stopping rule: the last iteration changed the objective by at most `tol` per unit of the rows' weight."""
    return len(objective) > 1 and abs(objective[-1] - objective[-2]) <= tol * weight


def held(specification: Specification, statistics: JointStatistics) -> Specification:
    """The same with what families derive from the data as these statistics have it."""
    if specification.estimation == Estimation.MLE:
        return specification
    parts = zip(specification.plans, statistics.blocks, strict=True)
    plans = tuple(
        replace(plan, family=plan.family._with_fixed_prior(part, specification.estimation), others=())
        for plan, part in parts
    )
    return replace(specification, plans=plans)


def with_reference(statistics: JointStatistics, reference: JointStatistics) -> JointStatistics:
    """Sums that derive what they derive from the whole table from those of the reference."""
    blocks = tuple(
        replace(part, reference=whole) if isinstance(part, Sums) else part
        for part, whole in zip(statistics.blocks, reference.blocks, strict=True)
    )
    return JointStatistics(statistics.counts, blocks)


def log_prior(
    specification: Specification, statistics: JointStatistics, reference: JointStatistics, model: JointModel
) -> float:
    """The log-density of all priors and pseudo-counts at the parameters of a model, as far as families tell theirs."""
    total = 0.0
    prior = specification.class_prior
    if specification.estimation != Estimation.MLE and (prior is None or isinstance(prior, Dirichlet)):
        alpha = (prior or Dirichlet(2.0)).weights(statistics.counts.classes)
        with np.errstate(invalid="ignore"):
            total += float(np.where(alpha == 1.0, 0.0, (alpha - 1.0) * model.log_prior).sum())
    whole = with_reference(statistics, reference)
    for plan, part, block in zip(specification.plans, whole.blocks, model.blocks, strict=True):
        if not plan.family._smooths(specification.estimation):
            continue
        try:
            total += plan.family._log_prior(part, block.conditionals)
        except NoEvidenceError:
            continue
    return total


# ------------------------------------------------------------------------------------------------------ expectations
def expect(
    specification: Specification, model: JointModel, rows: Rows, settled: JointStatistics | None
) -> tuple[JointStatistics, float]:
    """Expected statistics of all rows under a model, and the log-likelihood of what is known of them."""
    total, likelihood = settled, 0.0
    for part in rows.labelled():
        likelihood += _likelihood(model, part)
    for part in rows.unsettled():
        more, found = expected(specification, model, part)
        total = more if total is None else total + more
        likelihood += found if part.codes is None else 0.0
    assert total is not None
    return total.aligned(), likelihood


def _cells(block: Block, table: Table) -> int:
    """About how many numbers a block has of a row."""
    return table.cells(block.conditionals.dimension, block.sparse)


def _likelihood(model: JointModel, part: Part) -> float:
    """Σ log p(x, y) of labelled rows, what is missing integrated out."""
    codes = part.codes
    assert codes is not None
    readers = [block.reader(part.table) for block in model.blocks]
    own = model.log_prior[codes]

    def work(start: int, stop: int) -> None:
        for block, read in zip(model.blocks, readers, strict=True):
            with block.in_table():
                own[start:stop] += block.conditionals.class_log_density(read(start, stop), codes[start:stop])

    evaluate(part.table, work, sum(3 * _cells(block, part.table) for block in model.blocks))
    return float(np.where(part.weights > 0.0, part.weights * own, 0.0).sum())


def expected(
    specification: Specification, model: JointModel, part: Part, given: Array | None = None
) -> tuple[JointStatistics, float]:
    """Expected statistics of some rows, and the log-likelihood of those without a label.

    `given` are the classes' shares in each row, (classes, rows); None where the model tells them.
    """
    classes, table = model.classes, part.table
    shares = [block_task(table, classes, plan) for plan in specification.plans]
    readers = [block.reader(table) for block in model.blocks]
    width = sum(4 * _cells(block, table) + 4 * len(classes) for block in model.blocks)
    step = rows_per_block(table, width, cached=2**19, most=2**15)
    workers = worker_count(max(part.rows // (2 * step), 1))
    bounds = np.linspace(0, part.rows, workers + 1).astype(int).tolist()

    def work(task: tuple[int, int]) -> tuple[list[Any], Array, AnyArray, float]:
        begin, end = task
        builders = [
            plan.family._expected_accumulator(share.make(), block.conditionals)
            for plan, share, block in zip(specification.plans, shares, model.blocks, strict=True)
        ]
        mass, count, likelihood = np.zeros(len(classes)), np.zeros(len(classes), dtype=np.int64), 0.0
        for start in range(begin, end, step):
            stop = min(start + step, end)
            weights = part.weights[start:stop]
            if part.codes is not None:
                mine = part.codes[start:stop]
                _add(table, shares, builders, start, stop, mine, weights)
                mass += np.bincount(mine, weights, minlength=len(classes))
                count += np.bincount(mine[weights > 0.0], minlength=len(classes))
                continue
            if given is None:
                posterior, found = _posterior(model, readers, start, stop)
                likelihood += float(np.where(weights > 0.0, weights * found, 0.0).sum())
            else:
                posterior = given[:, start:stop]
            for k in range(len(classes)):
                _add(table, shares, builders, start, stop, np.full(stop - start, k), weights * posterior[k])
            mass += posterior @ weights
            count += np.bincount(posterior.argmax(axis=0)[weights > 0.0], minlength=len(classes))
        return [builder.finish() for builder in builders], mass, count, likelihood

    tasks = [(bounds[i], bounds[i + 1]) for i in range(workers)]
    total: JointStatistics | None = None
    likelihood = 0.0
    for blocks, mass, count, found in run(tasks, work):
        one = JointStatistics(Counts(classes, count, mass), tuple(blocks))
        total = one if total is None else total + one
        likelihood += found
    assert total is not None
    return total, likelihood


def _add(
    table: Table,
    shares: Sequence[Any],
    builders: Sequence[Any],
    start: int,
    stop: int,
    codes: AnyArray,
    weights: Array,
) -> None:
    for share, builder in zip(shares, builders, strict=True):
        with named_cells(table, share.columns, range(start, stop)):
            builder.add(share.read(start, stop), codes, weights)


def _posterior(model: JointModel, readers: Sequence[Any], start: int, stop: int) -> tuple[Array, Array]:
    """p(class | x), (classes, n), and log p(x) of what is known of each row; 0 both where no class can have it."""
    joint = np.repeat(model.log_prior[:, None], stop - start, axis=1)
    for block, read in zip(model.blocks, readers, strict=True):
        joint += block.evaluate(read(start, stop), exact=True)
    found = log_sum_exp(joint)
    lost = np.isneginf(found)
    with np.errstate(invalid="ignore"):
        posterior = np.exp(joint - found)
    posterior[:, lost] = 0.0
    return posterior, np.where(lost, 0.0, found)
