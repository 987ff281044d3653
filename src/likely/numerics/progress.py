"""A line on the terminal that tells how far a long run has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PATIENCE = 2.0  # seconds before anything is shown
WIDTH = 30  # of a bar
_described: ContextVar[bool] = ContextVar("told", default=False)  # whether a run further out tells how far it has come


@contextmanager
def progress(words: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """A function to call after each step; it counts them on the terminal where that takes longer than a moment.

    Where the total is known there is a bar. A run inside another one leaves the line to that.
    """
    begun, done, shown = time.monotonic(), 0, False
    quiet = _described.get()
    token = _described.set(True)

    def step() -> None:
        nonlocal done, shown
        done += 1
        if not quiet and sys.stderr.isatty() and time.monotonic() - begun > PATIENCE:
            shown = True
            sys.stderr.write(f"\r{line(done, total)} {words}")
            sys.stderr.flush()

    try:
        yield step
    finally:
        _described.reset(token)
        if shown:
            sys.stderr.write("\n")


def line(done: int, total: int | None) -> str:
    """How many steps are done: ``12``, or ``[######----] 12 of 20``."""
    if total is None:
        return str(done)
    full = WIDTH * done // max(total, 1)
    return f"[{'#' * full}{'-' * (WIDTH - full)}] {done} of {total}"
