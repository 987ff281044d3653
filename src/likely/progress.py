"""A line on the terminal that tells how far a long run has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds before anything is shown


@contextmanager
def progress(words: str) -> Iterator[Callable[[], None]]:
    """A function to call after each step; it counts them on the terminal where that takes longer than a moment."""
    begun, done, shown = time.monotonic(), 0, False

    def step() -> None:
        nonlocal done, shown
        done += 1
        if sys.stderr.isatty() and time.monotonic() - begun > PATIENCE:
            shown = True
            sys.stderr.write(f"\r{done} {words}")
            sys.stderr.flush()

    try:
        yield step
    finally:
        if shown:
            sys.stderr.write("\n")
