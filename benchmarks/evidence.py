"""Time and memory of `EvidenceClassifier`: fits, and probabilities of new rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from benchmarks.softmax import draw
from benchmarks.timing import Line, at_least, at_most
from likely import EvidenceClassifier

SIZES = [  # rows, columns, classes, seconds of a fit, at most
    (300, 10, 3, 1.0),
    (200, 60, 2, 3.0),
    (5_000, 50, 5, 10.0),
    (1_000, 2_000, 3, 60.0),
    (15_000, 16, 26, 60.0),
    (60_000, 9, 7, 60.0),
    (200_000, 50, 5, 90.0),
]
MOST_MEGABYTES = 2000
ROWS_PER_SECOND = 20_000  # of probabilities at 50 columns
PREDICTED = 20_000


class Measured(NamedTuple):
    fit: float  # seconds
    cpu: float  # seconds of all threads in the fit
    rows_per_second: float  # of probabilities
    megabytes: float  # resident, at most


def measure(rows: int, columns: int, classes: int) -> Measured:
    """A fit and its predictions, after a small fit that loads all modules."""
    X, y = draw(rows, columns, classes, scaled=False)
    EvidenceClassifier().fit(X[:100, :10], y[:100])
    start, cpu = time.perf_counter(), time.process_time()
    model = EvidenceClassifier().fit(X, y)
    fit, cpu = time.perf_counter() - start, time.process_time() - cpu
    new, _ = draw(PREDICTED, columns, classes, scaled=False)
    model.predict_proba(new[:100])
    start = time.perf_counter()
    model.predict_proba(new)
    speed = PREDICTED / (time.perf_counter() - start)
    return Measured(fit, cpu, speed, peak_megabytes())


def peak_megabytes() -> float:
    """Of this process alone: `ru_maxrss` is at least that of the process which started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def evidence() -> Iterator[Line]:
    for rows, columns, classes, seconds in SIZES:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # the memory of each fit by itself
            found = pool.submit(measure, rows, columns, classes).result()
        yield f"{rows:,} x {columns}, {classes} classes"
        yield at_most("seconds of a fit", found.fit, seconds, f"{found.cpu:.2f} s of all threads")
        yield at_most("resident memory in MB", found.megabytes, MOST_MEGABYTES)
        if columns == 50:
            yield at_least("probabilities, rows a second", found.rows_per_second, ROWS_PER_SECOND)
        else:
            yield f"  probabilities, rows a second: {found.rows_per_second:,.0f}"
