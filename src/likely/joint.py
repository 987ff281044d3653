"""The joint model p(x, y): a class prior times class-conditional densities. Every answer follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from likely.families.base import Conditionals, Quadratic
from likely.numerics import (
    AnyArray,
    Array,
    all_finite,
    check_finite,
    log_softmax_into,
    log_sum_exp,
    softmax_into,
)
from likely.passes import evaluate
from likely.tables import Table


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Additive log-evidence: offset + evidence summed over columns is log p(x, class).

    evidence[row, class, column] and offset[row, class]; `columns` names the last axis.
    """

    evidence: Array
    offset: Array
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Block:
    """Columns that are modelled together; `columns` is None where they are all columns, in order."""

    columns: AnyArray | None
    conditionals: Conditionals

    def of(self, rows: AnyArray) -> AnyArray:
        return rows if self.columns is None else rows[:, self.columns]

    @property
    def index(self) -> AnyArray:
        return np.arange(self.conditionals.dimension) if self.columns is None else self.columns


@dataclass(frozen=True, eq=False)
class JointModel:
    """Class prior times class-conditionals. Frozen: a new prior makes a new model."""

    classes: AnyArray
    log_prior: Array
    blocks: tuple[Block, ...]
    names: tuple[str, ...]

    def with_log_prior(self, log_prior: Array) -> Self:
        return replace(self, log_prior=log_prior)

    @cached_property
    def width(self) -> int:
        """About how many numbers one row needs while it is evaluated."""
        return sum(block.conditionals.width for block in self.blocks)

    @cached_property
    def _unread(self) -> AnyArray:
        return np.concatenate([block.index[block.conditionals.unread()] for block in self.blocks])

    def _joint(self, rows: AnyArray, exact: bool) -> tuple[Array, Array]:
        """log p(x, class), (classes, n), and its maximum over the classes.

        Where not exact, up to a term that all classes share.

        Among the terms left out is the largest log-prior: equal priors do not drown tiny differences.
        """
        total: Array | None = None
        for block in self.blocks:
            part = (
                block.conditionals.log_density(block.of(rows)) if exact else block.conditionals.scores(block.of(rows))
            )
            total = part if total is None else np.add(total, part, out=total)
        assert total is not None
        total += (self.log_prior if exact else self.log_prior - self.log_prior.max())[:, None]
        top = total.max(axis=0)
        if not all_finite(top) or (len(self._unread) and not all_finite(rows[:, self._unread])):
            check_finite(rows)
        return total, top

    def log_joint(self, table: Table) -> Array:
        """log p(x, class), (rows, classes)."""
        out = np.empty((table.rows, len(self.classes)))

        def work(rows: AnyArray, start: int, stop: int) -> None:
            out[start:stop] = self._joint(rows, exact=True)[0].T

        evaluate(table, work, self.width)
        return out

    def log_odds(self, table: Table) -> Array:
        """log p(second class | x) − log p(first class | x), (rows,)."""
        out = np.empty(table.rows)

        def work(rows: AnyArray, start: int, stop: int) -> None:
            joint, _ = self._joint(rows, exact=False)
            with np.errstate(over="ignore"):
                np.subtract(joint[1], joint[0], out=out[start:stop])

        evaluate(table, work, self.width)
        return out

    def scores(self, table: Table) -> Array:
        """What is compared between classes, (rows, classes): linear forms where all blocks are linear in x,
        else log p(class | x)."""
        form = self.quadratic()
        if form is None or form.square is not None:
            return self.log_posterior(table)
        out = np.empty((table.rows, len(self.classes)))

        def work(rows: AnyArray, start: int, stop: int) -> None:
            check_finite(rows)
            scores = np.repeat(self.log_prior[:, None], len(rows), axis=1)
            with np.errstate(over="ignore", invalid="ignore"):
                for block in self.blocks:
                    scores += block.conditionals.line(block.of(rows))
            far = ~np.all(np.isfinite(scores), axis=0)
            if far.any():  # no float64 can hold them
                scores[:, far] = self._joint(rows[far], exact=False)[0]
            out[start:stop] = scores.T

        evaluate(table, work, self.width)
        return out

    def log_density(self, table: Table) -> Array:
        """log p(x), (rows,)."""
        out = np.empty(table.rows)

        def work(rows: AnyArray, start: int, stop: int) -> None:
            out[start:stop] = log_sum_exp(*self._joint(rows, exact=True))

        evaluate(table, work, self.width)
        return out

    def posterior(self, table: Table) -> Array:
        """p(class | x), (rows, classes): softmax of the joint."""
        out = np.empty((table.rows, len(self.classes)))

        def work(rows: AnyArray, start: int, stop: int) -> None:
            softmax_into(*self._joint(rows, exact=False), out[start:stop])

        evaluate(table, work, self.width)
        return out

    def log_posterior(self, table: Table) -> Array:
        """log p(class | x), (rows, classes)."""
        out = np.empty((table.rows, len(self.classes)))

        def work(rows: AnyArray, start: int, stop: int) -> None:
            log_softmax_into(*self._joint(rows, exact=False), out[start:stop])

        evaluate(table, work, self.width)
        return out

    def most_probable(self, table: Table) -> AnyArray:
        """The code of each row's most probable class."""
        out = np.empty(table.rows, dtype=np.intp)

        def work(rows: AnyArray, start: int, stop: int) -> None:
            np.argmax(self._joint(rows, exact=False)[0], axis=0, out=out[start:stop])

        evaluate(table, work, self.width)
        return out

    def explain(self, table: Table) -> Explanation:
        """The terms of log p(x, class), one for each column."""
        evidence = np.zeros((table.rows, len(self.classes), len(self.names)))

        def work(rows: AnyArray, start: int, stop: int) -> None:
            check_finite(rows)
            for block in self.blocks:
                evidence[start:stop, :, block.index] += block.conditionals.explain(block.of(rows))

        evaluate(table, work, 2 * len(self.classes) * len(self.names))
        offset = np.broadcast_to(self.log_prior, (table.rows, len(self.classes))).copy()
        return Explanation(evidence, offset, self.names)

    def sample(self, n: int, label: int | None, rng: np.random.Generator) -> tuple[Array, AnyArray]:
        """n rows with the codes of their classes, drawn from the joint, or from one class."""
        shares = np.exp(self.log_prior)
        codes = rng.choice(len(shares), size=n, p=shares / shares.sum()) if label is None else np.full(n, label)
        rows = np.zeros((n, len(self.names)))
        for k in np.unique(codes):
            mine = np.flatnonzero(codes == k)
            for block in self.blocks:
                rows[np.ix_(mine, block.index)] = block.conditionals.sample(int(k), len(mine), rng)
        return rows, codes

    def quadratic(self) -> Quadratic | None:
        """log p(x, class) as polynomials of all columns, or None where some block's are none."""
        size, d = len(self.classes), len(self.names)
        square, bent = np.zeros((size, d, d)), False
        linear, constant, centre = np.zeros((size, d)), self.log_prior.copy(), np.zeros(d)
        for block in self.blocks:
            part = block.conditionals.quadratic()
            if part is None:
                return None
            linear[:, block.index], centre[block.index] = part.linear, part.centre
            constant += part.constant
            if part.square is not None:
                bent = True
                square[:, block.index[:, None], block.index] += part.square
        return Quadratic(square if bent else None, linear, constant, centre)

    def notes(self) -> list[str]:
        """What a reader of a summary should know."""
        return [
            note for block in self.blocks for note in block.conditionals.notes([self.names[j] for j in block.index])
        ]
