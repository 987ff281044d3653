"""A progress line on the terminal for long runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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


@contextmanager
def row_progress(total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of rows of each part; it shows rows per second and the time left."""
    started, done = time.monotonic(), 0

    def describe() -> str:
        return row_line(done, total, time.monotonic() - started)

    with _terminal(describe) as show:

        def step(rows: int) -> None:
            nonlocal done
            done += rows
            show()

        yield step


def row_line(done: int, total: int | None, seconds: float) -> str:
    """The progress as text: ``1,200,000 of 2,000,000 rows, 400,000 rows/s, 2 s left``."""
    speed = done / max(seconds, 1e-9)
    if total is None:
        return f"{done:,} rows, {speed:,.0f} rows/s"
    left = max(total - done, 0) / max(speed, 1e-9)
    return f"{done:,} of {total:,} rows, {speed:,.0f} rows/s, {left:,.0f} s left"
