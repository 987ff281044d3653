"""Threads: made per call, with BLAS on one thread inside it.

Inside a joblib worker, and after a fork, there is one thread in all.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import threadpoolctl
from joblib import cpu_count
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

FEW_COLUMNS, MANY_COLUMNS = 32, 2048
Task = TypeVar("Task")
Answer = TypeVar("Answer")
_forked = False
_state = threading.local()


def _after_fork() -> None:
    global _forked, _blas  # noqa: PLW0603 - a process has one state of this kind
    _forked = True
    _blas = _SingleThreadedBlas()


def _release() -> None:
    """Let any thread set the threads of OpenBLAS: for threadpoolctl only the one that has limited them may."""
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


class _SingleThreadedBlas:
    """BLAS with one thread while anybody is inside; the last to leave restores it, who need not be the first."""

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
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    _release()
                    self._limit.restore_original_limits()
                    _release()


_blas = _SingleThreadedBlas()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS with one thread in here: for many small products, which its threads would spend waiting for one another."""
    with _blas():
        yield


def single_threaded_blas_for(columns: int) -> AbstractContextManager[None]:
    """BLAS with one thread for matrices of so many columns, but for those so small that it takes no more, or so large
    that they gain: having had a share of one, its threads go on asking for work, for a tenth of a second, on cores that
    the next pass over rows needs.
    """
    return single_threaded_blas() if FEW_COLUMNS <= columns <= MANY_COLUMNS else nullcontext()


def inside() -> bool:
    """Whether this is a part of a larger task, on a thread that goes on with others."""
    return bool(getattr(_state, "inside", False))


def worker_count(tasks: int) -> int:
    """Threads for so many tasks: at most the cores this process may run on, 1 where others already share them."""
    if tasks <= 1 or _forked or inside() or get_active_backend()[0].nesting_level:
        return 1
    return min(int(cpu_count()), tasks)


def run(tasks: Sequence[Task], work: Callable[[Task], Answer], most: int | None = None) -> list[Answer]:
    """work(task) for every task; where there are several, on threads, at most so many, of which the caller's is one.

    Whoever has done a task takes the next. Of several that fail the first is told, as without threads.
    """
    workers = worker_count(len(tasks) if most is None else min(len(tasks), most))
    if workers == 1:
        before = inside()
        _state.inside = before or len(tasks) > 1
        try:
            return [work(task) for task in tasks]
        finally:
            _state.inside = before
    answers: dict[int, Answer] = {}
    failed: dict[int, BaseException] = {}
    waiting = iter(range(len(tasks)))

    def turn() -> None:
        _state.inside = True  # what a task does is not split up again
        i: int | None = None
        try:
            while (i := next(waiting, None)) is not None:
                answers[i] = work(tasks[i])
        except BaseException as error:
            failed[-1 if i is None else i] = error
        finally:
            _state.inside = False
            for _ in waiting:  # after a failure nobody takes up the others
                pass

    with _blas(), ThreadPoolExecutor(workers - 1) as pool:
        others = [pool.submit(turn) for _ in range(1, workers)]
        turn()
        for other in others:
            other.result()
    if failed:
        raise failed[min(failed)]
    return [answers[i] for i in range(len(tasks))]
