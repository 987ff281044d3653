"""Calls of our functions in a default fit and in one row of probabilities, and the time of such a row.

    python -m benchmarks.calls

Calls are those that Python reports to a profiler: each entry of a function, comprehension or generator counts, so that
counts compare only within one version of Python.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from timeit import repeat
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pandas as pd

import likely
from benchmarks.timing import Line, at_most
from likely import GenerativeClassifier

SOURCES = str(Path(likely.__file__).parent)
ROWS, NUMBERS, REPEATS = 200, 4, 1000


def table() -> tuple[pd.DataFrame, Any]:
    """Four numbers, one of them with missing values, a category, a count, and labels of three classes."""
    rng = np.random.default_rng(0)
    k = rng.integers(3, size=ROWS)
    numbers = {f"x{j}": rng.normal(k * (0.5 + j / 2)) for j in range(NUMBERS)}
    colours = (rng.integers(4, size=ROWS) + k * (rng.random(ROWS) < 0.5)) % 4
    colour, visits = np.array(["blue", "green", "grey", "red"])[colours], rng.poisson(2.0 + k)
    frame = pd.DataFrame({**numbers, "colour": colour, "visits": visits})
    frame.loc[rng.random(ROWS) < 0.1, f"x{NUMBERS - 1}"] = np.nan
    return frame, np.array(["a", "b", "c"])[k]


def called(job: Callable[[], object]) -> list[CodeType]:
    """The code of each call of a function of the library, in all threads."""
    codes: list[CodeType] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            codes.append(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        job()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return codes


def calls() -> Iterator[Line]:
    X, y = table()
    array = X[[f"x{j}" for j in range(NUMBERS - 1)]].to_numpy()
    model, plain = GenerativeClassifier().fit(X, y), GenerativeClassifier().fit(array, y)
    row: Callable[[], object] = partial(model.predict_proba, X[:1])
    short: Callable[[], object] = partial(plain.predict_proba, array[:1])
    row()
    short()
    yield f"{ROWS} rows of a frame: {NUMBERS} numbers, a category and a count, 3 classes"
    for name, job, bar in (("fit", partial(GenerativeClassifier().fit, X, y), 11_300.0), ("one row", row, 140.0)):
        codes = called(job)
        functions, modules = len(set(codes)), len({code.co_filename for code in codes})
        yield at_most(f"calls, {name}", len(codes), bar, f"{functions} functions in {modules} modules")
    for name, job, bar in (("of the frame", row, 600.0), (f"of an array of {NUMBERS - 1} numbers", short, 80.0)):
        times = np.multiply(1e6, repeat(job, number=1, repeat=REPEATS))
        yield at_most(f"one row {name}, microseconds", times.min(), bar, f"median {median(times):.0f}")


if __name__ == "__main__":
    for line in calls():
        print(line)
