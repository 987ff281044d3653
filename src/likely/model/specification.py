"""The specification of a model: blocks of columns with their families, a class prior, and a way to estimate.

It turns rows into statistics and statistics into a joint model. It holds nothing of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from likely.data.batches import Batch
from likely.data.row_blocks import BlockTask, evaluate, summarise
from likely.data.table import Table
from likely.errors import InputError, NoEvidenceError, NotConvergedWarning, NotEstimableError, listed, warn
from likely.families.base import Columns, Completion, LeaveOneOutDensity
from likely.families.estimation import Estimation
from likely.model.block import Block
from likely.model.choices import Choice
from likely.model.class_prior import (
    declared_classes,
    dirichlet_of,
    estimate_prior,
    label_evidence,
    leave_one_out_log_prior,
)
from likely.model.joint import JointModel, RowScores
from likely.model.plans import Plan, column_index, extra_columns
from likely.numerics.arrays import all_finite
from likely.numerics.caches import cached_property
from likely.numerics.shapes import Shape
from likely.numerics.threads import single_threaded_blas_for
from likely.statistics.counts import Counts, label_array, positions, sorted_labels, unite_classes
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array


@dataclass(frozen=True, eq=False)
class Specification:
    """Column blocks with their families, the class prior, and the way to estimate."""

    names: Annotated[tuple[str, ...], Shape("=names", "distinct")]
    plans: tuple[Plan, ...]
    class_prior: Any
    estimation: Estimation
    expected: tuple[Any, ...] = ()  # classes that later rows may have
    max_iter: int = 200  # of EM for missing values
    tol: float = 1e-6

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimation", Estimation.of(self.estimation))  # files hold the string

    def _valid(self) -> bool:
        used = [j for plan in self.plans for j in (range(len(self.names)) if plan.columns is None else plan.columns)]
        for plan in self.plans:
            for family in (plan.family, *plan.others):
                family.check(self.estimation)
        known = all(set(choice.columns) <= set(self.names) for choice in self.choices)
        known &= all(plan.columns is None or len(plan.columns) > 0 for plan in self.plans)
        return known and len(set(used)) == len(used) and set(used) <= set(range(len(self.names)))

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The families of columns that were chosen by leave-one-out log-density."""
        aside = (Choice((name,), "set aside", {}, {}, 0.0, reason="see columns_") for name in self.set_aside)
        return (*(choice for plan in self.plans for choice in plan.choices), *aside)

    @property
    def families(self) -> dict[Any, Any]:
        """The family of each column, or of each tuple of columns with a joint density; None if it is set aside."""
        found: dict[Any, Any] = dict.fromkeys(self.set_aside)
        for plan in self.plans:
            columns = self.columns(plan)
            family = plan.family._declared_family
            if (plan.joint or not plan.family._independent) and len(columns) > 1:
                found[columns] = family
            else:
                found.update({name: family._of_column(name) for name in columns})
        return found

    @property
    def used(self) -> list[int]:
        """The columns that some family models or reads."""
        aside = set(self.set_aside)
        return [j for j, name in enumerate(self.names) if name not in aside]

    @cached_property
    def set_aside(self) -> tuple[str, ...]:
        """Columns that the model does not use: identifiers and free text."""
        if any(plan.columns is None for plan in self.plans):
            return ()
        used = {j for plan in self.plans for j in plan.columns or ()} | extra_columns(self.plans, self.names)
        return tuple(name for j, name in enumerate(self.names) if j not in used)

    @property
    def plugged_in(self) -> Specification:
        """The same with plugged-in parameters: "map" in place of "bayes"."""
        return replace(self, estimation=self.estimation.plug_in)

    def expecting(self, labels: tuple[Any, ...]) -> Specification:
        """The same specification with more expected classes."""
        more = [label for label in labels if label not in self.expected]
        return replace(self, expected=(*self.expected, *more)) if more else self

    # -- from rows to statistics

    def summarise(self, batch: Batch) -> JointStatistics:
        """The statistics of a batch, in one pass over its rows."""
        tasks = [block_task(batch.table, batch.counts.classes, plan) for plan in self.plans]
        return JointStatistics(batch.counts, tuple(summarise(batch.table, batch.codes, batch.weights, tasks)))

    def incomplete_rows(self, table: Table) -> AnyArray:
        """Whether each row has a missing value in a block that needs complete rows."""
        blocks = [plan.columns for plan in self.plans if plan.family._needs_complete_rows]
        if not (blocks and table.rows):
            return np.zeros(table.rows, dtype=bool)
        columns = range(table.width) if None in blocks else [j for block in blocks for j in block or ()]
        return table.rows_with_missing(columns)

    def check_possible(self, left: JointStatistics, before: JointStatistics) -> None:
        """Raise where no rows can have the statistics that remain after a removal."""
        if names := self.impossible_columns(left, before):
            raise InputError(
                f"The rows to remove were not part of the fit: no values of column {listed(names)} have the "
                "statistics that would remain. Pass rows, labels and weights as they were fitted."
            )

    def impossible_columns(self, left: JointStatistics, before: JointStatistics) -> list[str]:
        """Columns of the first block that has any whose statistics, which were others before, no rows can have."""
        for plan, part, whole in zip(self.plans, left.blocks, before.blocks, strict=True):
            bad = plan.family._impossible_columns(part, whole)
            if bad.any():
                return [name for name, wrong in zip(self.columns(plan), bad, strict=True) if wrong]
        return []

    # -- from statistics to the model

    def estimate(self, statistics: JointStatistics) -> tuple[JointModel, Array]:
        """The joint model and its class prior."""
        if not len(statistics.counts.classes):
            raise NotEstimableError("The model has no rows: none were fitted, or all of them were forgotten.")
        class_prior = estimate_prior(self.class_prior, statistics.counts, self.estimation)
        parts = zip(self.plans, statistics.blocks, strict=True)
        with single_threaded_blas_for(len(self.names)):
            blocks = tuple(self._block(plan, self._completed(plan, part)) for plan, part in parts)
        return JointModel(statistics.counts.classes, log_probabilities(class_prior), blocks, self.names), class_prior

    def completion(self, plan: Plan, part: Any) -> Completion:
        """The statistics that a block is estimated from: EM replaces missing values by their expectations."""
        return plan.family._complete(part, self.estimation, self.columns(plan), self.max_iter, self.tol)

    def completions(self, statistics: JointStatistics) -> list[Completion]:
        """The same for all blocks."""
        return [self.completion(plan, part) for plan, part in zip(self.plans, statistics.blocks, strict=True)]

    def completed(self, statistics: JointStatistics) -> JointStatistics:
        """The statistics that the model is estimated from; they are not additive where values are missing."""
        blocks = (self._completed(plan, part) for plan, part in zip(self.plans, statistics.blocks, strict=True))
        return JointStatistics(statistics.counts, tuple(blocks))

    def _completed(self, plan: Plan, part: Any) -> Any:
        """The statistics that a block is estimated from, with a warning where EM did not converge."""
        completion = self.completion(plan, part)
        if not completion.converged:
            warn(
                f"EM for missing values of {listed(self.columns(plan))} did not converge in "
                f"{completion.iterations} iterations (last change {completion.step:.1e} standard deviations, "
                f"tol={self.tol:g}). Increase max_iter or tol.",
                NotConvergedWarning,
            )
        return completion.statistics

    def log_likelihood(self, model: JointModel, statistics: JointStatistics) -> float:
        """log p(rows, labels) at the parameters of a model, from the statistics of any rows of its classes."""
        counts = statistics.counts
        with np.errstate(invalid="ignore"):
            total = float(np.where(counts.weight > 0.0, counts.weight * model.log_prior, 0.0).sum())
        for plan, part, block in zip(self.plans, statistics.blocks, model.blocks, strict=True):
            total += plan.family._log_likelihood(part, block.conditionals, self.columns(plan))
        return total

    def n_parameters(self, statistics: JointStatistics) -> int:
        """The number of free parameters, with those of the class prior where it is estimated."""
        estimated = dirichlet_of(self.class_prior, self.estimation) is not None
        total = len(statistics.counts.classes) - 1 if estimated else 0
        parts = zip(self.plans, statistics.blocks, strict=True)
        return total + sum(plan.family._n_parameters(part, self.columns(plan)) for plan, part in parts)

    def log_evidence(self, statistics: JointStatistics) -> float:
        """log p(rows, labels) with the parameters integrated out; default priors are held fixed."""
        if self.estimation != Estimation.BAYES:
            raise NoEvidenceError(f"estimation={self.estimation!r} integrates no parameters out")
        if not len(statistics.counts.classes):
            raise NoEvidenceError("it has no rows")
        total = label_evidence(self.class_prior, statistics.counts)
        for plan, part in zip(self.plans, statistics.blocks, strict=True):
            total += plan.family._log_evidence(part, self.columns(plan))
        return total

    def leave_one_out_scores(
        self, model: JointModel, statistics: JointStatistics, batch: Batch, posterior: bool = False
    ) -> RowScores:
        """Leave-one-out scores of training rows, or their posteriors alone; `model` is the model of all of them.

        Impossible rows have the class prior.
        """
        found = RowScores.empty(batch.table.rows, len(model.classes), posterior, scored=not posterior)
        codes, weights, log_priors = self.leave_one_out_labels(statistics.counts, batch)
        parts = zip(self.plans, self.completions(statistics), model.blocks, strict=True)
        with single_threaded_blas_for(len(self.names)):
            held_out = [self._held_out(plan, part.statistics, block) for plan, part, block in parts]
        readers = [block.reader(batch.table) for block in model.blocks]

        def work(start: int, stop: int) -> None:
            mine, weight = codes[start:stop].astype(np.intp), weights[start:stop]
            total: Array | None = None
            for block, log_density, read in zip(model.blocks, held_out, readers, strict=True):
                with block.in_table():
                    part = log_density(read(start, stop), mine, weight)
                total = part if total is None else np.add(total, part, out=total)
            assert total is not None
            log_prior, own = log_priors(mine, weight), (mine, np.arange(len(mine)))
            found.log_joint[start:stop] = np.nan if model.tempered else total[own] + log_prior[own]
            total = model.calibrated(total, log_prior, batch.table, start)
            if not all_finite(total):
                top = total.max(axis=0)
                if np.isnan(top).any():
                    raise _not_fitted(batch.table.number(start + int(np.argmax(np.isnan(top)))))
                impossible = np.isneginf(top)
                no_class = np.isneginf(log_prior).all(axis=0)
                total[:, impossible] = np.where(no_class, model.log_prior[:, None], log_prior)[:, impossible]
            found.set_block(start, stop, total, mine)

        cells = (batch.table.cells(block.conditionals.dimension, block.sparse) for block in model.blocks)
        width = sum(cells, start=len(model.classes) * len(model.blocks)) // 2  # fewer and longer calls
        evaluate(batch.table, work, width)
        return found

    def _held_out(self, plan: Plan, completed: Any, block: Block) -> LeaveOneOutDensity:
        """The function that evaluates leave-one-out densities of one block; what rows share is computed here."""
        return plan.family._leave_one_out(completed, block.conditionals, self.estimation, self.columns(plan))

    def leave_one_out_labels(
        self, counts: Counts, batch: Batch
    ) -> tuple[AnyArray, Array, Callable[[AnyArray, Array], Array]]:
        """Codes and weights of training rows, and a function from both to leave-one-out log p(class)."""
        place = positions(counts.classes, batch.counts.classes)
        limit = counts.weight[place] * (1.0 + 1e-9)
        codes = batch.codes
        if batch.weights is None:
            weights = np.broadcast_to(np.ones(1), len(codes))
            heavy = (limit < 1.0) & (batch.counts.rows > 0)
            heavy = heavy[codes] if heavy.any() else heavy
        else:
            weights = batch.weights
            heavy = weights > limit[codes]
        if heavy.any():
            raise _not_fitted(batch.table.number(int(np.argmax(heavy))))
        if not np.array_equal(place, np.arange(len(place))):
            codes = place[codes]
        return codes, weights, leave_one_out_log_prior(self.class_prior, counts, self.estimation)

    def leave_one_out(self, plan: Plan, part: Any) -> Callable[[Table, AnyArray, Array], Array]:
        """A function from training rows, codes and weights to leave-one-out log p(x | class) of one block.

        It returns (classes, rows). What all rows have in common is computed once.
        """
        completed = self._completed(plan, part)
        block = self._block(plan, completed)
        log_density = self._held_out(plan, completed, block)

        def densities(table: Table, codes: AnyArray, weights: Array) -> Array:
            read = block.reader(table)
            out = np.empty((block.conditionals.n_classes, table.rows))

            def work(start: int, stop: int) -> None:
                with block.in_table():
                    out[:, start:stop] = log_density(read(start, stop), codes[start:stop], weights[start:stop])

            evaluate(table, work, 2 * table.cells(block.conditionals.dimension, block.sparse) + 2 * len(out))
            return out

        return densities

    def _block(self, plan: Plan, completed: Any) -> Block:
        conditionals = plan.family.estimate(completed, self.estimation, self.columns(plan))
        extra, sparse = _extra(plan, self.names), plan.family._reads_sparse
        return Block(_index(plan.columns), conditionals, extra, sparse, plan.observed)

    def columns(self, plan: Plan) -> tuple[str, ...]:
        """The names of a block's columns."""
        return self.names if plan.columns is None else tuple([self.names[j] for j in plan.columns])

    def categories(self, statistics: JointStatistics) -> dict[str, frozenset[Any]]:
        """The categories that rows have, of columns whose categories are counted."""
        found: dict[str, frozenset[Any]] = {}
        for plan, part in zip(self.plans, statistics.blocks, strict=True):
            words, names = getattr(part, "vocabularies", ()), self.columns(plan)
            if words and len(words) != len(names):  # combinations of categories
                words = tuple(zip(*words[0], strict=True)) or ((),) * len(names)
            found |= {name: frozenset(each) for name, each in zip(names, words, strict=False)}
        return found

    def with_declared(self, statistics: JointStatistics) -> JointStatistics:
        """The same statistics with all classes that the class prior names, or that are expected.

        Under maximum likelihood, expected classes are added with their first row: without rows they have no estimate.
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


def _not_fitted(row: int) -> InputError:
    return InputError(
        f"Row {row} was not part of the fit, or had another label or weight: no rows have the statistics of its class "
        "without it. Pass the rows, labels and weights of the fit."
    )


def log_probabilities(probabilities: Array) -> Array:
    """Logarithms of probabilities, −inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def _label_array(labels: list[Any], like: AnyArray) -> AnyArray:
    """Declared labels as a sorted array of the type of those in y."""
    ordered = sorted_labels(labels)
    if ordered is None:
        raise InputError(f"labels {listed(labels)} cannot be sorted together.")
    return label_array(ordered, objects=like.dtype.kind == "O")


def _index(columns: tuple[int, ...] | None) -> AnyArray | None:
    return None if columns is None else np.array(columns, dtype=np.intp)


def _extra(plan: Plan, names: Sequence[str]) -> AnyArray | None:
    """Columns that a block reads besides those it models, such as exposures."""
    wanted = plan.family._extra_columns()
    return np.array([column_index(name, names) for name in wanted], dtype=np.intp) if wanted else None


def block_task(table: Table, classes: AnyArray, plan: Plan) -> BlockTask:
    """The columns that one block reads, and its accumulator."""
    family, columns = plan.collector, _index(plan.columns)
    names = tuple(table.names if columns is None else (table.names[j] for j in columns))
    if family._reads_text:
        family._accumulator(classes, Columns(names))  # raises for a block of several columns
        place = 0 if columns is None else int(columns[0])
        return BlockTask(columns, table.documents(place), lambda: family._accumulator(classes, Columns(names)))
    if family._reads_categories:
        places = range(table.width) if columns is None else columns.tolist()
        if plan.joint:  # every combination has a probability: only categories that occur
            words = tuple(table.observed(j) for j in places)
        else:
            words = tuple(column.vocabulary for column in table.categories(places))
        categorical = Columns(names, words, plan.joint)
        return BlockTask(
            columns,
            table.codes(places, words if plan.joint else None),
            lambda: family._accumulator(classes, categorical),
        )
    extra = _extra(plan, table.names)
    index = columns
    if extra is not None:
        index = np.concatenate([np.arange(table.width) if columns is None else columns, extra])
    sparse = table.is_sparse and family._reads_sparse
    return BlockTask(
        index,
        table.numbers(index, sparse, checked=False),
        lambda: family._accumulator(classes, Columns(names, None, plan.joint)),
        sparse,
    )
