"""Timing helpers, and the lines of reports."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import NamedTuple

Job = Callable[[], object]
PAUSE = 0.15


def alternate(jobs: Sequence[Job], repeats: int = 5) -> list[float]:
    """The best time of each job in seconds; the jobs take turns, so that noise meets them alike.

    Between them there is a pause: threads of BLAS go on spinning for a while after a product, and would
    take a core from whoever comes next.
    """
    best = [float("inf")] * len(jobs)
    for _ in range(repeats):
        for i, job in enumerate(jobs):
            time.sleep(PAUSE)
            start = time.perf_counter()
            job()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def peak_megabytes(job: Job) -> float:
    """Memory that a job allocates at its peak, through Python and NumPy, in MB."""
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


class Ratio(NamedTuple):
    """A ratio, time or amount with its target: one line of a report, and a row of `results.json`."""

    label: str  # the same in each run: what varies is in the note
    value: float
    bar: float
    less_is_better: bool
    note: str = ""

    def __str__(self) -> str:
        value = f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:.3f}"
        bar = f"{'<=' if self.less_is_better else '>='} {self.bar:g}"
        good = self.value <= self.bar if self.less_is_better else self.value >= self.bar
        note = f"({self.note})" if self.note else ""
        return f"  {self.label:<52} {value:>8}   {bar:<10} {'' if good else '<-- missed '}{note}".rstrip()


# A line of a report. Text that is not indented is the heading of the ratios that follow.
Line = str | Ratio


def at_most(label: str, value: float, bar: float, note: str = "") -> Ratio:
    return Ratio(label, float(value), bar, True, note)


def at_least(label: str, value: float, bar: float, note: str = "") -> Ratio:
    return Ratio(label, float(value), bar, False, note)
