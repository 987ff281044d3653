"""What is to be learnt: blocks of columns with their families, a class prior, and a way to estimate.

A specification goes from rows to statistics and from statistics to a joint model. Nothing of the rows is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.data.batches import Batch
from likely.data.row_blocks import BlockTask, evaluate, summarise
from likely.data.table import Table
from likely.errors import InputError, NoEvidenceError, NotEstimableError, listed
from likely.families.base import Columns
from likely.families.estimation import Estimation
from likely.families.priors import Dirichlet
from likely.model.class_prior import declared_classes, estimate_prior, label_evidence, leave_one_out_log_prior
from likely.model.joint import Block, JointModel, RowScores
from likely.model.plans import Plan, column_index
from likely.numerics.arrays import all_finite
from likely.numerics.special import softmax_into
from likely.numerics.threads import single_threaded_blas_for
from likely.statistics.counts import Counts, unite_classes
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array

Note = Callable[[int, int, Array, AnyArray], None]  # start and stop of rows, their scores and codes


@dataclass(frozen=True, slots=True, eq=False)
class Specification:
    """Column blocks with their families, the class prior, and the way to estimate."""

    names: tuple[str, ...]
    plans: tuple[Plan, ...]
    class_prior: Any
    estimation: Estimation
    expected: tuple[Any, ...] = ()  # classes that may come

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimation", Estimation.of(self.estimation))  # files hold the word

    def sound(self) -> bool:
        """Whether blocks are of different columns that have names."""
        used = [j for plan in self.plans for j in (range(len(self.names)) if plan.columns is None else plan.columns)]
        named = isinstance(self.names, tuple) and all(isinstance(name, str) for name in self.names)
        return (
            named
            and len(set(self.names)) == len(self.names)
            and len(set(used)) == len(used)
            and set(used) <= set(range(len(self.names)))
        )

    def expecting(self, labels: tuple[Any, ...]) -> Specification:
        """The same with more classes that may come."""
        more = [label for label in labels if label not in self.expected]
        return replace(self, expected=(*self.expected, *more)) if more else self

    # -- from rows to statistics

    def collect(self, batch: Batch) -> JointStatistics:
        """The statistics of a batch: one pass over its rows, for all blocks."""
        shares = [block_task(batch.table, batch.counts.classes, plan) for plan in self.plans]
        return JointStatistics(batch.counts, tuple(summarise(batch.table, batch.codes, batch.weights, shares)))

    def incomplete_rows(self, table: Table) -> AnyArray | None:
        """Whether each row has a missing value in a block that needs complete rows; None where no block does."""
        blocks = [plan.columns for plan in self.plans if plan.family._needs_complete_rows]
        if not blocks:
            return None
        columns = range(table.width) if None in blocks else [j for block in blocks for j in block or ()]
        return table.rows_with_missing(columns)

    def check_possible(self, left: JointStatistics, before: JointStatistics) -> None:
        """Raise where no rows can have the statistics that a removal has left."""
        for plan, part, whole in zip(self.plans, left.blocks, before.blocks, strict=True):
            bad = plan.family._impossible_columns(part, whole)
            if bad.any():
                names = [name for name, wrong in zip(self.columns(plan), bad, strict=True) if wrong]
                raise InputError(
                    f"The rows to remove are not among those that were learnt: no values of column {listed(names)} "
                    "can have what would be left."
                )

    # -- from statistics to the model

    def estimate(self, statistics: JointStatistics) -> tuple[JointModel, Array]:
        """The joint model and its class prior."""
        if not len(statistics.counts.classes):
            raise NotEstimableError("The model knows no rows: nothing was learnt, or all of it was forgotten.")
        shares = estimate_prior(self.class_prior, statistics.counts, self.estimation)
        parts = zip(self.plans, statistics.blocks, strict=True)
        with single_threaded_blas_for(len(self.names)):
            blocks = tuple(self._block(plan, part) for plan, part in parts)
        return JointModel(statistics.counts.classes, log_proportions(shares), blocks, self.names), shares

    def log_likelihood(self, model: JointModel, statistics: JointStatistics) -> float:
        """log p(rows and labels) of any rows of a model's classes at its parameters, from their statistics."""
        counts = statistics.counts
        with np.errstate(invalid="ignore"):
            total = float(np.where(counts.weight > 0.0, counts.weight * model.log_prior, 0.0).sum())
        for plan, part, block in zip(self.plans, statistics.blocks, model.blocks, strict=True):
            total += plan.family._log_likelihood(part, block.conditionals, self.columns(plan))
        return total

    def n_parameters(self, statistics: JointStatistics) -> int:
        """How many parameters are free, those of the class prior among them where it is learnt."""
        learnt = self.class_prior is None or isinstance(self.class_prior, Dirichlet)
        total = len(statistics.counts.classes) - 1 if learnt else 0
        parts = zip(self.plans, statistics.blocks, strict=True)
        return total + sum(plan.family._n_parameters(part, self.columns(plan)) for plan, part in parts)

    def log_evidence(self, statistics: JointStatistics) -> float:
        """log p(rows and labels), the parameters integrated out; what is derived from the data is held fixed."""
        if self.estimation != Estimation.BAYES:
            raise NoEvidenceError(f"estimation={self.estimation!r} integrates no parameters out")
        if not len(statistics.counts.classes):
            raise NoEvidenceError("it knows no rows")
        total = label_evidence(self.class_prior, statistics.counts)
        for plan, part in zip(self.plans, statistics.blocks, strict=True):
            total += plan.family._log_evidence(part, self.columns(plan))
        return total

    def leave_one_out_scores(self, model: JointModel, statistics: JointStatistics, batch: Batch) -> RowScores:
        """What is said of rows that were learnt, each left out. `model` is what all of them have taught."""
        found = RowScores.empty(batch.table.rows, len(model.classes), posterior=False)

        def note(start: int, stop: int, joint: Array, codes: AnyArray) -> None:
            found.log_joint[start:stop] = joint[codes, np.arange(len(codes))]

        self._leave_one_out_blocks(model, statistics, batch, note, found.note)
        return found

    def leave_one_out_posterior(self, model: JointModel, statistics: JointStatistics, batch: Batch) -> Array:
        """p(class | x) of rows that were learnt, each left out, (rows, classes)."""
        out = np.empty((batch.table.rows, len(model.classes)))

        def note(start: int, stop: int, joint: Array, _: AnyArray) -> None:
            softmax_into(joint, out[start:stop])

        self._leave_one_out_blocks(model, statistics, batch, None, note)
        return out

    def _leave_one_out_blocks(
        self, model: JointModel, statistics: JointStatistics, batch: Batch, exact: Note | None, compared: Note
    ) -> None:
        """Ask for log p(x, class) of rows that were learnt, each left out, (classes, rows).

        `compared` is told what follows: rows impossible under every class have the prior alone. It may overwrite that.
        """
        codes, weights, prior = self.leave_one_out_labels(statistics.counts, batch)
        with single_threaded_blas_for(len(self.names)):
            ways = [
                plan.family._leave_one_out(part, self.estimation, self.columns(plan))
                for plan, part in zip(self.plans, statistics.blocks, strict=True)
            ]
        readers = [block.reader(batch.table) for block in model.blocks]

        def work(start: int, stop: int) -> None:
            mine, share = codes[start:stop].astype(np.intp), weights[start:stop]
            total: Array | None = None
            for block, way, read in zip(model.blocks, ways, readers, strict=True):
                with block.in_table():
                    part = way(read(start, stop), mine, share)
                total = part if total is None else np.add(total, part, out=total)
            assert total is not None
            known = prior(mine, share)
            total += known
            if exact is not None:
                exact(start, stop, total, mine)
            if not all_finite(total):
                for block, read in zip(model.blocks, readers, strict=True):
                    with block.in_table():
                        block.check_cells(read(start, stop))
                top = total.max(axis=0)
                if np.isnan(top).any():
                    raise _not_learnt(batch.table.number(start + int(np.argmax(np.isnan(top)))))
                lost = np.isneginf(top)
                alone = np.isneginf(known).all(axis=0)
                total[:, lost] = np.where(alone, model.log_prior[:, None], known)[:, lost]
            compared(start, stop, total, mine)

        cells = (batch.table.cells(block.conditionals.dimension, block.sparse) for block in model.blocks)
        width = sum(cells, start=len(model.classes) * len(model.blocks)) // 2  # few, long calls
        evaluate(batch.table, work, width)

    def leave_one_out_labels(
        self, counts: Counts, batch: Batch
    ) -> tuple[AnyArray, Array, Callable[[AnyArray, Array], Array]]:
        """Codes and weights of rows that were learnt, and from these to log p(class), (classes, rows), without each."""
        place = np.searchsorted(counts.classes, batch.counts.classes)
        most = counts.weight[place] * (1.0 + 1e-9)
        codes = batch.codes
        if batch.weights is None:
            weights = np.broadcast_to(np.ones(1), len(codes))
            heavy = (most < 1.0) & (batch.counts.rows > 0)
            heavy = heavy[codes] if heavy.any() else heavy
        else:
            weights = batch.weights
            heavy = weights > most[codes]
        if heavy.any():
            raise _not_learnt(batch.table.number(int(np.argmax(heavy))))
        if not np.array_equal(place, np.arange(len(place))):
            codes = place[codes]
        return codes, weights, leave_one_out_log_prior(self.class_prior, counts, self.estimation)

    def leave_one_out(self, plan: Plan, part: Any) -> Callable[[Table, AnyArray, Array], Array]:
        """For one block, from rows that were learnt, their codes and weights to log p(x | class) without each of them.

        The answer is (classes, rows). What all rows have in common is prepared once.
        """
        block = self._block(plan, part)
        way = plan.family._leave_one_out(part, self.estimation, self.columns(plan))

        def densities(table: Table, codes: AnyArray, weights: Array) -> Array:
            read = block.reader(table)
            out = np.empty((block.conditionals.n_classes, table.rows))

            def work(start: int, stop: int) -> None:
                with block.in_table():
                    out[:, start:stop] = way(read(start, stop), codes[start:stop], weights[start:stop])

            evaluate(table, work, 2 * table.cells(block.conditionals.dimension, block.sparse) + 2 * len(out))
            return out

        return densities

    def _block(self, plan: Plan, part: Any) -> Block:
        conditionals = plan.family.estimate(part, self.estimation, self.columns(plan))
        return Block(_index(plan.columns), conditionals, _extra(plan, self.names), plan.family._reads_sparse)

    def columns(self, plan: Plan) -> tuple[str, ...]:
        """The names of a block's columns."""
        return self.names if plan.columns is None else tuple(self.names[j] for j in plan.columns)

    def with_declared(self, statistics: JointStatistics) -> JointStatistics:
        """The same statistics with all classes that the class prior declares, or that are expected.

        Maximum likelihood has no place for expected classes without rows: they come with their first.
        """
        for source, labels in (
            ("class_prior", declared_classes(self.class_prior)),
            ("classes", [] if self.estimation == Estimation.MLE else list(self.expected)),
        ):
            known = statistics.counts.classes
            if not labels:
                continue
            try:
                statistics = statistics.align(unite_classes(known, _label_array(labels, known)))
            except InputError as error:
                raise InputError(f"{source}: {error}") from None
        return statistics


def _not_learnt(row: int) -> InputError:
    return InputError(
        f"Row {row} was not learnt, or not with this label and this weight: what its class would be without it is no "
        "statistics of any rows. Hint: hand over the rows, labels and weights of the fit."
    )


def log_proportions(shares: Array) -> Array:
    """Logarithms of probabilities, −inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(shares)


def _label_array(labels: list[Any], like: AnyArray) -> AnyArray:
    """Declared labels as a sorted array of the kind of those in y."""
    try:
        ordered = sorted(labels)
        array = np.empty(len(labels), dtype=object)
        array[:] = ordered
        return array if like.dtype.kind == "O" else np.array(ordered)
    except TypeError:
        raise InputError(f"labels {listed(labels)} cannot be sorted together.") from None


def _index(columns: tuple[int, ...] | None) -> AnyArray | None:
    return None if columns is None else np.array(columns, dtype=np.intp)


def _extra(plan: Plan, names: Sequence[str]) -> AnyArray | None:
    """Columns that a block reads after its own."""
    wanted = plan.family._extra_columns()
    return np.array([column_index(name, names) for name in wanted], dtype=np.intp) if wanted else None


def block_task(table: Table, classes: AnyArray, plan: Plan) -> BlockTask:
    """What one block reads and sums."""
    family, own = plan.collector, _index(plan.columns)
    names = tuple(table.names if own is None else (table.names[j] for j in own))
    if family._reads_categories:
        places = range(table.width) if own is None else own.tolist()
        if plan.joint:  # every combination is a cell: only labels that occur
            words = tuple(table.observed(j) for j in places)
        else:
            words = tuple(labels.vocabulary for labels in table.categories(places))
        columns = Columns(names, words, plan.joint)
        return BlockTask(
            own, table.codes(places, words if plan.joint else None), lambda: family._accumulator(classes, columns)
        )
    extra = _extra(plan, table.names)
    index = own if extra is None else np.concatenate([np.arange(table.width) if own is None else own, extra])
    sparse = table.is_sparse and family._reads_sparse
    return BlockTask(
        index,
        table.numbers(index, sparse),
        lambda: family._accumulator(classes, Columns(names, None, plan.joint)),
        sparse,
    )
