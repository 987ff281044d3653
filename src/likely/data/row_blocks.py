"""Passes over the rows of a table in blocks, on threads: `summarise` sums statistics, `evaluate` computes row by row.

Blocks fit in a core's cache. `rows_per_block` is their size for `evaluate`; for `summarise` it is `_rows_per_sum`: the
`block_rows` of the accumulator, within the limits of the table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.data.table import Reader, Table
from likely.numerics.threads import run, single_threaded_blas, single_threaded_blas_for, worker_count
from likely.statistics.accumulator import Accumulator
from likely.typing import AnyArray, Array, Codes

EVALUATED = 2**20  # numbers that the rows of a block need while they are evaluated
GATHERED = 2**22  # most cells of a block that is copied
FEW_CELLS = 2**16  # cells of a table for which limiting the threads of BLAS takes longer than a pass over it
ENOUGH = 2**18  # numbers that are worth another thread


@dataclass(frozen=True, slots=True, eq=False)
class BlockTask:
    """What a pass does for one block of columns: `read` rows of `columns`, and add them to an accumulator of `make`."""

    columns: AnyArray | None
    read: Reader
    make: Callable[[], Accumulator]
    sparse: bool = False  # whether sparse rows stay sparse


def summarise(table: Table, codes: Codes, weights: Array | None, block_tasks: Sequence[BlockTask]) -> list[Any]:
    """The statistics of all rows, one for each task, in one pass: threads sum ranges of rows, which are then added."""
    first = [task.make() for task in block_tasks]
    spans = [_rows_per_sum(table, *pair) for pair in zip(block_tasks, first, strict=True)]
    workers = worker_count(round(table.rows / max(spans)))
    bounds = itertools.pairwise(table.rows * i // workers for i in range(workers + 1))
    parts = [(part, first if i == 0 else [task.make() for task in block_tasks]) for i, part in enumerate(bounds)]

    def work(part: tuple[tuple[int, int], list[Accumulator]]) -> list[Any]:
        rows, accumulators = part
        for task, accumulator in zip(block_tasks, accumulators, strict=True):
            for index, block in _blocks(table, codes, rows, task, accumulator):
                numbers = range(index.start, index.stop) if isinstance(index, slice) else index
                mass = None if weights is None else weights[index]
                with table.named_cells(task.columns, numbers):
                    table.check_limits(block, task.columns, numbers, mass)
                    accumulator.add(block, codes[index], mass)
        return [accumulator.finish() for accumulator in accumulators]

    with _single_threaded_blas(table):
        found = run(parts, work)
    totals = found[0]
    for more in found[1:]:
        totals = [total + part for total, part in zip(totals, more, strict=True)]
    return totals


def _blocks(
    table: Table, codes: Codes, rows: tuple[int, int], task: BlockTask, accumulator: Accumulator
) -> Iterator[tuple[slice | AnyArray, Any]]:
    """A range of rows in blocks, (rows, cells): in their order, or by groups of classes, which share a covariance."""
    groups = None if accumulator.groups is None else accumulator.groups.astype(codes.dtype)  # small: sorted fastest
    for start, stop in _spans(rows, _rows_per_sum(table, task, accumulator)):
        if groups is None:
            with table.named_cells(task.columns, range(start, stop)):
                block = task.read(start, stop)
            yield slice(start, stop), block
            continue
        group = groups[codes[start:stop]]
        order = start + np.argsort(group, kind="stable")
        bounds = [0, *np.cumsum(np.bincount(group)).tolist()]
        most = stop - start if task.sparse else 2 * accumulator.block_rows
        parts = (_spans(pair, most) for pair in itertools.pairwise(bounds) if pair[0] < pair[1])
        pieces = [order[begin:end] for begin, end in itertools.chain.from_iterable(parts)]
        yield from zip(pieces, table.pieces(pieces, task.columns, task.sparse), strict=True)


def rows_per_block(table: Table, numbers_per_row: int, cached: int = EVALUATED, most: int = 2**16) -> int:
    """How many rows to evaluate together, if each needs `numbers_per_row` numbers in memory.

    cached / numbers_per_row, at least 256 (otherwise the overhead of calls dominates) and at most `most`. Blocks that
    are copied have at most `_rows_per_copy` rows. Wide sparse rows that become dense may come in blocks of fewer than
    256, because `GATHERED` numbers limit the memory.
    """
    least = 256 if not table.is_sparse else min(256, max(GATHERED // max(numbers_per_row, 1), 1))
    limit = max(_rows_per_copy(table) if not table.has_views else table.rows, _sparse_rows(table))
    return min(max(cached // max(numbers_per_row, 1), least), limit, most)


def _rows_per_sum(table: Table, task: BlockTask, accumulator: Accumulator) -> int:
    """How many rows to add together: `block_rows` of the accumulator for every group, at most `_rows_per_copy`."""
    if task.sparse:
        parts = 1 if accumulator.groups is None else min(len(accumulator.groups), 4)
        return parts * _sparse_rows(table)
    if accumulator.groups is None:
        return min(accumulator.block_rows, table.rows if table.has_views else _rows_per_copy(table))
    limit = table.rows if table.is_rowwise else _rows_per_copy(table)
    return int(min(accumulator.block_rows * (accumulator.groups.max() + 1), 2**18, limit))


def _rows_per_copy(table: Table) -> int:
    """How many rows to copy at a time, where a block is not a view of the table: about 1.5 million cells."""
    return min(max(1_500_000 // table.width, 1024), max(GATHERED // table.width, 1))


def _sparse_rows(table: Table) -> int:
    """How many rows of a sparse table to read together, by the values that they store; 0 for a dense table."""
    return max(2**21 // table.stored_per_row, 256) if table.is_sparse else 0


def _spans(part: tuple[int, int], step: int) -> Iterator[tuple[int, int]]:
    """A range divided into ranges of equal size, of about `step` rows each."""
    begin, end = part
    count = max(round((end - begin) / step), 1)
    return itertools.pairwise(begin + (end - begin) * i // count for i in range(count + 1))


def evaluate(table: Table, work: Callable[[int, int], None], width: int) -> None:
    """Call work(start, stop) for every block of rows, on threads.

    `work` reads its rows and writes its results. `width` is about how many numbers it needs for a row. A CellError that
    it raises has the row within the block, and the column within the table.
    """
    step = rows_per_block(table, width)
    workers = worker_count(max(table.rows // step, table.rows * width // ENOUGH))
    blocks = workers * max(-(-table.rows // (workers * step)), 1)  # so that all threads end together
    counter = itertools.count()

    def turn(_: int) -> None:
        while (i := next(counter)) < blocks:
            start, stop = table.rows * i // blocks, table.rows * (i + 1) // blocks
            with table.named_cells(None, range(start, stop)):
                work(start, stop)

    with _single_threaded_blas(table):
        run(range(workers), turn)


def many(tasks: Sequence[Any], work: Callable[[Any], Any], apart: bool = True) -> list[Any]:
    """[work(task) for task in tasks] for tasks that make passes over rows; on threads if `apart`, else in this one."""
    with single_threaded_blas():
        return run(tasks, work, None if apart else 1)


def _single_threaded_blas(table: Table) -> AbstractContextManager[None]:
    """BLAS on one thread during a pass, because the pass has threads of its own.

    Changing the limit takes longer than a pass over a small table. There it is changed only if BLAS would use threads
    for the number of columns, since densities factorise a covariance on first use.
    """
    small = table.rows * table.width <= FEW_CELLS
    return single_threaded_blas_for(table.width) if small else single_threaded_blas()
