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
    started, done, shown = time.monotonic(), 0, False
    quiet = _reported.get()
    token = _reported.set(True)

    def step() -> None:
        nonlocal done, shown
        done += 1
        if not quiet and sys.stderr.isatty() and time.monotonic() - started > DELAY:
            shown = True
            sys.stderr.write(f"\r{line(done, total)} {label}")
            sys.stderr.flush()

    try:
        yield step
    finally:
        _reported.reset(token)
        if shown:
            sys.stderr.write("\n")


def line(done: int, total: int | None) -> str:
    """The progress as text: ``12``, or ``[######----] 12 of 20``."""
    if total is None:
        return str(done)
    full = WIDTH * done // max(total, 1)
    return f"[{'#' * full}{'-' * (WIDTH - full)}] {done} of {total}"
