"""The one pass over the rows: blocks that stay in a core's cache, on threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.data.table import Reader, Table
from likely.errors import CellError
from likely.numerics.arrays import scratch
from likely.numerics.threads import inside, run, single_threaded_blas, worker_count
from likely.statistics.accumulator import Accumulator
from likely.typing import AnyArray, Array, Codes, Index

SMALL = 2**16  # cells
ENOUGH = 2**18  # numbers that are worth a thread of their own


@dataclass(frozen=True, slots=True, eq=False)
class BlockTask:
    """One block's share of a pass: which columns it reads, how, and an empty sum of its statistics."""

    columns: AnyArray | None
    read: Reader
    make: Callable[[], Accumulator]
    sparse: bool = False  # sparse rows come as they are


def summarise(table: Table, codes: Codes, weights: Array | None, shares: Sequence[BlockTask]) -> list[Any]:
    """The statistics of all rows, one for each share."""
    builders = [share.make() for share in shares]
    spans = [_span(table, share, builder) for share, builder in zip(shares, builders, strict=True)]
    workers = worker_count(round(table.rows / max(spans)))
    bounds = itertools.pairwise(table.rows * i // workers for i in range(workers + 1))
    tasks = [(part, builders if i == 0 else [share.make() for share in shares]) for i, part in enumerate(bounds)]

    nested = inside()

    def work(task: tuple[tuple[int, int], list[Accumulator]]) -> list[Any]:
        part, mine = task
        with _tidy(nested):
            for share, builder in zip(shares, mine, strict=True):
                if builder.groups is None:
                    _add_blocks(table, codes, weights, part, share, builder)
                else:
                    _add_groups(table, codes, weights, part, share, builder, builder.groups)
        return [builder.finish() for builder in mine]

    with _single_threaded_blas(table):
        parts = run(tasks, work)
    totals = parts[0]
    for part in parts[1:]:
        totals = [total + more for total, more in zip(totals, part, strict=True)]
    return totals


def _add_blocks(
    table: Table,
    codes: Codes,
    weights: Array | None,
    part: tuple[int, int],
    share: BlockTask,
    builder: Accumulator,
) -> None:
    """Add the rows of a part as they come."""
    for start, stop in _spans(part, _span(table, share, builder)):
        with named_cells(table, share.columns, range(start, stop)):
            block = share.read(start, stop)
            builder.add(block, codes[start:stop], None if weights is None else weights[start:stop])


def _add_groups(
    table: Table,
    codes: Codes,
    weights: Array | None,
    part: tuple[int, int],
    share: BlockTask,
    builder: Accumulator,
    groups: Index,
) -> None:
    """Add the rows of a part, those of one group after those of another."""
    short = groups.astype(codes.dtype)  # small integers are sorted fastest
    columns = share.columns
    for start, stop in _spans(part, _span(table, share, builder)):
        mine = short[codes[start:stop]]
        order = start + np.argsort(mine, kind="stable")
        bounds = [0, *np.cumsum(np.bincount(mine)).tolist()]
        most = stop - start if share.sparse else 2 * builder.block_rows
        parts = (_spans(pair, most) for pair in itertools.pairwise(bounds) if pair[0] < pair[1])
        pieces = [order[begin:end] for begin, end in itertools.chain.from_iterable(parts)]
        for index, rows in zip(pieces, table.pieces(pieces, columns, share.sparse), strict=True):
            with named_cells(table, columns, index):
                builder.add(rows, codes[index], None if weights is None else weights[index])


@contextmanager
def named_cells(table: Table, columns: AnyArray | None, rows: Sequence[int] | Index) -> Iterator[None]:
    """Errors about a cell of these columns and rows, told in the table's own words."""
    try:
        yield
    except CellError as error:
        column = error.column if columns is None else int(columns[error.column])
        raise error.at(table.number(int(rows[error.row])), column, table.names[column]) from None


def _span(table: Table, share: BlockTask, builder: Accumulator) -> int:
    """How many rows to look at together, so that there are enough of every group."""
    if share.sparse:
        parts = 1 if builder.groups is None else min(len(builder.groups), 4)
        return parts * table.sparse_rows
    if builder.groups is None:
        return min(builder.block_rows, table.most_rows)
    return int(min(builder.block_rows * (builder.groups.max() + 1), 2**18, table.most_together))


def _spans(part: tuple[int, int], step: int) -> Iterator[tuple[int, int]]:
    """Ranges of about so many rows, of equal size."""
    begin, end = part
    count = max(round((end - begin) / step), 1)
    return itertools.pairwise(begin + (end - begin) * i // count for i in range(count + 1))


def evaluate(table: Table, work: Callable[[int, int], None], width: int) -> None:
    """work(start, stop) for every row block; it reads its rows, and writes its results where they belong.

    Cells in errors count from the first row of the block and the first column of the table.
    """
    least, most = table.fewest_rows(width), min(2**16, max(table.most_rows, table.sparse_rows))
    step = min(max(2**20 // max(width, 1), least), most)
    workers = worker_count(max(table.rows // step, table.rows * width // ENOUGH))
    blocks = workers * max(-(-table.rows // (workers * step)), 1)  # all end together
    counter = itertools.count()

    nested = inside()

    def turn(_: int) -> None:
        with _tidy(nested):
            while (i := next(counter)) < blocks:
                start, stop = table.rows * i // blocks, table.rows * (i + 1) // blocks
                with named_cells(table, None, range(start, stop)):
                    work(start, stop)

    with _single_threaded_blas(table):
        run(range(workers), turn)


def many(tasks: Sequence[Any], work: Callable[[Any], Any], apart: bool = True) -> list[Any]:
    """work(task) for every task, each a pass of its own or several; on threads where they may be `apart`."""
    with _tidy(inside()), single_threaded_blas():
        return run(tasks, work, None if apart else 1)


@contextmanager
def _tidy(nested: bool) -> Iterator[None]:
    """Give the memory back that blocks have used one after another, but where more passes of a task follow at once."""
    try:
        yield
    finally:
        if not nested:
            scratch.clear()


def _single_threaded_blas(table: Table) -> AbstractContextManager[None]:
    """BLAS on one thread, but for tables so small that saying so would take longer than they do."""
    return single_threaded_blas() if table.rows * table.width > SMALL else nullcontext()
