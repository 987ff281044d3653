"""What runs in the workers of Dask and Spark: one thread, the work on a part, and predictions of some rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.data.part_sums import PartSum
from likely.data.parts import Part
from likely.engines.base import row_numbers
from likely.numerics.threads import one_thread
from likely.numerics.tree_sum import group_sum

_lock = threading.Lock()
_arrow: dict[str, int] = {"tasks": 0, "threads": 0}  # tasks that limit Arrow, and its threads before the first of them


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A part whose rows a worker has at hand."""

    frames: Iterable[Any]
    start: int = 0

    def chunks(self) -> Iterator[Any]:
        """The rows."""
        return iter(self.frames)


@contextmanager
def single_thread() -> Iterator[None]:
    """Limit the library, BLAS and Arrow to one thread: a cluster has as many workers as it has cores."""
    import pyarrow as pa

    with _lock:
        if not _arrow["tasks"]:
            _arrow["threads"] = pa.cpu_count()
            pa.set_cpu_count(1)
        _arrow["tasks"] += 1
    try:
        with one_thread():
            yield
    finally:
        with _lock:
            _arrow["tasks"] -= 1
            if not _arrow["tasks"]:
                pa.set_cpu_count(_arrow["threads"])


def run_part(work: Callable[[int, Part], Any], number: int, part: Part) -> Any:
    """work(number, part) on one thread; an error says which partition its row numbers are counted in."""
    with row_numbers(number, part), single_thread():
        return work(number, part)


def add_parts(values: Sequence[Any]) -> Any:
    """The sum of neighbouring parts, or of sums of them, in the order of the parts."""
    total = group_sum(values)
    return total.packed() if isinstance(total, PartSum) else total


def predict_rows(model: Any, method: str, rows: Any) -> Any:
    """The predictions of some rows, of which there may be none."""
    if not rows.shape[0]:
        return no_predictions(model, method)
    with single_thread():
        return getattr(model, method)(rows)


def no_predictions(model: Any, method: str) -> Any:
    """The predictions of no rows, which have the type and the columns of those of others."""
    if method == "predict":
        return model.classes_[:0]
    return np.empty((0, len(model.classes_)))
