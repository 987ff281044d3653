"""The standard input, copied to a temporary file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from likely.engines.base import Scan
from likely.engines.files import FileSet, find_files
from likely.engines.spool import delete_with, temporary_file


def standard_input(format: str | None, read: Callable[[FileSet], Scan]) -> Scan:
    """The rows of the standard input, in the given format or that of its first bytes."""
    path = temporary_file("standard-input")
    try:
        with Path(path).open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        origin = read(replace(find_files(path, format), description="the standard input"))
    except BaseException:
        Path(path).unlink()
        raise
    delete_with(origin, path)
    return origin
