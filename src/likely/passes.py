"""The one pass over the rows: blocks that stay in a core's cache, on a pool of threads made per call.

Inside a block BLAS uses one thread. Inside a joblib worker, and after a fork, there is one thread in all.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import cpu_count
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from likely.errors import CellError
from likely.families.base import Builder
from likely.numerics import AnyArray, Array, scratch
from likely.statistics import Codes
from likely.tables import Table

_forked = False


def _after_fork() -> None:
    global _forked, _blas  # noqa: PLW0603 - a process has one state of this kind
    _forked = True
    _blas = _SingleThreadedBlas()


class _SingleThreadedBlas:
    """BLAS with one thread while anybody is inside; the last to leave restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._limit.__exit__(None, None, None)


_blas = _SingleThreadedBlas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def worker_count() -> int:
    """Threads to use here: the cores this process may run on, or 1 where others already share them."""
    return 1 if _forked or get_active_backend()[0].nesting_level else int(cpu_count())


def _workers(tasks: int) -> int:
    """Threads for so many tasks."""
    return min(worker_count(), tasks) if tasks > 1 else 1


def _run(tasks: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
    """work(task) for every task, each on a thread of its own."""
    if len(tasks) == 1:
        return [work(tasks[0])]
    with _blas(), ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(work, tasks))


def summarise(
    table: Table,
    codes: Codes,
    weights: Array | None,
    makers: Sequence[tuple[AnyArray | None, Callable[[], Builder], int]],
) -> list[Any]:
    """The statistics of all rows, one for each (columns, builder, rows a block) asked for."""
    step = min(table.most_rows, *(rows for _, _, rows in makers))
    workers = _workers(table.rows // (2 * step))
    bounds = np.linspace(0, table.rows, workers + 1).astype(int)

    def work(part: tuple[int, int]) -> list[Any]:
        builders = [(columns, make()) for columns, make, _ in makers]
        for start in range(*part, step):
            stop = min(start + step, part[1])
            block = table.block(start, stop)
            share = None if weights is None else weights[start:stop]
            for columns, builder in builders:
                try:
                    builder.add(block if columns is None else block[:, columns], codes[start:stop], share)
                except CellError as error:
                    if columns is not None:
                        error.column = int(columns[error.column])
                    raise table.explain_cell(error, start) from None
        return [builder.finish() for _, builder in builders]

    parts = _run(list(itertools.pairwise(bounds.tolist())), work)
    totals = parts[0]
    for part in parts[1:]:
        totals = [total + more for total, more in zip(totals, part, strict=True)]
    return totals


def evaluate(table: Table, work: Callable[[AnyArray, int, int], None], width: int) -> None:
    """work(block, start, stop) for every row block; it writes its results where they belong."""
    step = int(np.clip(2**19 // max(width, 1), 256, min(2**15, table.most_rows)))
    blocks = -(-table.rows // step)
    counter = itertools.count()

    def run(_: int) -> None:
        while (i := next(counter)) < blocks:
            start, stop = i * step, min((i + 1) * step, table.rows)
            block = table.block(start, stop)
            try:
                work(block, start, stop)
            except CellError as error:
                raise table.explain_cell(error, start) from None

    try:
        _run(range(_workers(blocks // 2)), run)
    finally:
        scratch.clear()
