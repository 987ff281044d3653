"""Thread pools, created per call, with BLAS limited to one thread inside.

Inside a joblib worker and after a fork there is a single thread.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import threadpoolctl
from joblib import cpu_count
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from likely.errors import check_jobs

FEW_COLUMNS, MANY_COLUMNS = 32, 2048
Task = TypeVar("Task")
Result = TypeVar("Result")
Owner = TypeVar("Owner")
Options = ParamSpec("Options")
_forked = False
_state = threading.local()
_locks: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()  # not in the objects: those are pickled
_new_lock = threading.Lock()


def one_at_a_time(
    method: Callable[Concatenate[Owner, Options], Result],
) -> Callable[Concatenate[Owner, Options], Result]:
    """A method that threads call on the same object one after another, because it reads and replaces its state."""

    @functools.wraps(method)
    def locked(owner: Owner, /, *args: Options.args, **kwargs: Options.kwargs) -> Result:
        lock = _locks.get(owner)
        if lock is None:
            with _new_lock:
                lock = _locks.setdefault(owner, threading.RLock())
        with lock:
            return method(owner, *args, **kwargs)

    return locked


def _after_fork() -> None:
    global _forked, _blas  # noqa: PLW0603 - a process has one state of this kind
    _forked = True
    _locks.clear()  # another thread of the parent may hold them
    _blas = _SingleThreadedBlas()


def _release() -> None:
    """Allow any thread to restore the threads of OpenBLAS; threadpoolctl allows only the one that limited them."""
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


class _SingleThreadedBlas:
    """Limits BLAS to one thread while any context is active; the last context to exit restores it."""

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
    """Limit BLAS to one thread: for many small products, where its threads would wait for one another."""
    with _blas():
        yield


def single_threaded_blas_for(columns: int) -> AbstractContextManager[None]:
    """Limit BLAS to one thread for matrices of medium size.

    Small ones use one thread anyway, and large ones gain from several. Otherwise idle BLAS threads spin for a tenth of
    a second on cores that the next pass over rows needs.
    """
    return single_threaded_blas() if FEW_COLUMNS <= columns <= MANY_COLUMNS else nullcontext()


def inside() -> bool:
    """Whether this thread is running a task of `run`, or of another library's workers."""
    return bool(getattr(_state, "inside", False))


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on this thread alone, with BLAS limited to one thread: for tasks of another library's workers."""
    before = inside()
    _state.inside = True
    try:
        with _blas():
            yield
    finally:
        _state.inside = before


@contextmanager
def at_most(n_jobs: int | None) -> Iterator[None]:
    """Start at most this many threads, as joblib counts them: −1 is one for each core, None is not a limit."""
    check_jobs(n_jobs)
    before = getattr(_state, "most", None)
    if n_jobs is not None:
        most = n_jobs if n_jobs > 0 else max(int(cpu_count()) + 1 + n_jobs, 1)
        _state.most = most if before is None else min(most, before)
    try:
        yield
    finally:
        _state.most = before


def limited_by_n_jobs(
    method: Callable[Concatenate[Owner, Options], Result],
) -> Callable[Concatenate[Owner, Options], Result]:
    """A method that starts at most as many threads as the option `n_jobs` of its object says."""

    @functools.wraps(method)
    def limited(owner: Owner, /, *args: Options.args, **kwargs: Options.kwargs) -> Result:
        with at_most(owner.n_jobs):  # type: ignore[attr-defined]
            return method(owner, *args, **kwargs)

    return limited


def worker_count(tasks: int) -> int:
    """Number of threads for `tasks` tasks: at most the available cores, 1 inside other threads or workers."""
    if tasks <= 1 or _forked or inside() or get_active_backend()[0].nesting_level:
        return 1
    most = getattr(_state, "most", None)
    return min(int(cpu_count()), tasks, tasks if most is None else most)


def run(tasks: Sequence[Task], work: Callable[[Task], Result], most: int | None = None) -> list[Result]:
    """work(task) for every task, on at most `most` threads, including the calling one.

    A thread that has finished a task takes the next. Of several errors the one of the first task is raised.
    """
    if len(tasks) == 1:
        return [work(tasks[0])]
    workers = worker_count(len(tasks) if most is None else min(len(tasks), most))
    if workers == 1:
        before = inside()
        _state.inside = True
        try:
            return [work(task) for task in tasks]
        finally:
            _state.inside = before
    results: dict[int, Result] = {}
    failed: dict[int, BaseException] = {}
    waiting = iter(range(len(tasks)))

    def turn() -> None:
        _state.inside = True  # tasks do not start threads of their own
        i: int | None = None
        try:
            while (i := next(waiting, None)) is not None:
                results[i] = work(tasks[i])
        except BaseException as error:
            failed[-1 if i is None else i] = error
        finally:
            _state.inside = False
            for _ in waiting:  # after an error the remaining tasks are skipped
                pass

    with _blas(), ThreadPoolExecutor(workers - 1) as pool:
        others = [pool.submit(turn) for _ in range(1, workers)]
        turn()
        for other in others:
            other.result()
    if failed:
        raise failed[min(failed)]
    return [results[i] for i in range(len(tasks))]


def in_order(tasks: Iterable[Task], work: Callable[[Task], Result]) -> Generator[Result]:
    """work(task) for every task on threads, as an iterator over the results in the order of the tasks.

    At most two tasks for each thread are begun before the next result is taken, so that results do not pile up.
    """
    workers = worker_count(2**30)
    if workers == 1:
        yield from map(work, tasks)
        return

    def turn(task: Task) -> Result:
        _state.inside = True  # tasks do not start threads of their own
        return work(task)

    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        with _blas():
            for task in tasks:
                waiting.append(pool.submit(turn, task))
                if len(waiting) >= 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
