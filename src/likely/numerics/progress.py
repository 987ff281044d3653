"""A progress line on the terminal for long runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

DELAY = 2.0  # seconds before the line is shown
WIDTH = 30  # of a bar
_reported: ContextVar[bool] = ContextVar("reported", default=False)  # whether an outer run reports progress


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each step; it counts the steps on the terminal if the run takes longer.

    There is a bar where the total is known. Nested runs show nothing.
    """
    done = 0
    with _terminal(lambda: f"{line(done, total)} {label}") as show:

        def step() -> None:
            nonlocal done
            done += 1
            show()

        yield step


@contextmanager
def _terminal(describe: Callable[[], str]) -> Iterator[Callable[[], None]]:
    """Yield a function that shows a line on the terminal in place of the last one, after the first seconds."""
    started, width = time.monotonic(), 0
    quiet = _reported.get()
    token = _reported.set(True)

    def show() -> None:
        nonlocal width
        if not quiet and sys.stderr.isatty() and time.monotonic() - started > DELAY:
            text = describe()
            sys.stderr.write(f"\r{text:<{width}}")
            sys.stderr.flush()
            width = len(text)

    try:
        yield show
    finally:
        _reported.reset(token)
        if width:
            sys.stderr.write("\n")


def line(done: int, total: int | None) -> str:
    """The progress as text: ``12``, or ``[######----] 12 of 20``."""
    if total is None:
        return str(done)
    full = WIDTH * done // max(total, 1)
    return f"[{'#' * full}{'-' * (WIDTH - full)}] {done} of {total}"


class RowProgress:
    """Counts rows as they are read, on any thread, and as their sums arrive: the larger number is shown.

    A copy in another process shows nothing: rows that are read there are counted when their sums arrive.
    """

    def __init__(self, show: Callable[[int], None] | None = None) -> None:
        self._show, self._lock = show, Lock()
        self._read, self._summed = 0, 0

    def read(self, rows: int) -> None:
        """Count rows that were read."""
        self._count(rows, 0)

    def summed(self, rows: int) -> None:
        """Count rows whose sums are there."""
        self._count(0, rows)

    def _count(self, read: int, summed: int) -> None:
        with self._lock:
            self._read, self._summed = self._read + read, self._summed + summed
            if self._show is not None:
                self._show(max(self._read, self._summed))

    def __reduce__(self) -> tuple[Any, ...]:
        return RowProgress, ()


@contextmanager
def row_progress(total: int | None) -> Iterator[RowProgress]:
    """Yield a count of rows; the terminal shows it with the rows per second and the time left."""
    started, done = time.monotonic(), 0

    def describe() -> str:
        return row_line(done, total, time.monotonic() - started)

    with _terminal(describe) as show:

        def shown(rows: int) -> None:
            nonlocal done
            done = rows
            show()

        yield RowProgress(shown)


def row_line(done: int, total: int | None, seconds: float) -> str:
    """The progress as text: ``1,200,000 of 2,000,000 rows, 400,000 rows/s, 2 s left``."""
    speed = done / max(seconds, 1e-9)
    if total is None:
        return f"{done:,} rows, {speed:,.0f} rows/s"
    left = max(total - done, 0) / max(speed, 1e-9)
    return f"{done:,} of {total:,} rows, {speed:,.0f} rows/s, {left:,.0f} s left"
