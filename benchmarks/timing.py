"""Timing helpers."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence

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


def row(label: str, ratio: float, bar: str, good: bool) -> str:
    """One line of a report."""
    return f"  {label:<52} {ratio:>8.2f}   {bar:<10} {'' if good else '<-- missed'}"
