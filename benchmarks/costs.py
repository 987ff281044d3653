"""CPU time of fits per row, in its dependence on columns, classes and categories; sizes of the statistics."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from likely import Categorical, Gaussian, GenerativeClassifier, LinearDiscriminant, NaiveBayes, QuadraticDiscriminant

CELLS = 2 * 10**7  # of a table


def costs() -> Iterator[str]:
    """Lines of the report."""
    yield f"  {'model':44} {'columns':>7} {'classes':>7} {'fit, ns per row':>16} {'per cell':>9} {'statistics, KB':>15}"
    for columns, classes in ((5, 5), (20, 2), (20, 5), (20, 50), (100, 5), (300, 5)):
        X = _numbers(columns, classes)
        for model in (
            NaiveBayes(Gaussian("diagonal"), calibration=None),
            LinearDiscriminant(),
            QuadraticDiscriminant(),
        ):
            yield _line(model, X, columns, classes)
    for categories in (3, 30, 1000):
        X = _categories(10, 5, categories)
        yield _line(NaiveBayes(Categorical(), calibration=None), X, 10, 5, f", {categories} categories")
    yield _line(GenerativeClassifier(), _numbers(20, 5), 20, 5)


def _line(model: Any, X: Any, columns: int, classes: int, more: str = "") -> str:
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        model.fit(X, "label")
        best = min(best, time.process_time() - start)
    nanoseconds = 1e9 * best / len(X)
    size = len(pickle.dumps(model.statistics_)) / 1000
    name = f"{type(model).__name__}{more}"
    return f"  {name:44} {columns:7} {classes:7} {nanoseconds:16.0f} {nanoseconds / columns:9.1f} {size:15.1f}"


def _labels(k: Any, classes: int) -> Any:
    return pa.array([f"class {i}" for i in range(classes)]).take(pa.array(k))


def _numbers(columns: int, classes: int) -> Any:
    rng, n = np.random.default_rng(0), CELLS // columns
    k = rng.integers(0, classes, n)
    data = {f"x{j}": rng.normal(size=n) + 0.2 * k for j in range(columns)}
    return pa.table({**data, "label": _labels(k, classes)})


def _categories(columns: int, classes: int, categories: int) -> Any:
    rng, n = np.random.default_rng(0), CELLS // columns // 4
    words = pa.array([f"word {i}" for i in range(categories)])
    data = {f"c{j}": words.take(pa.array(rng.integers(0, categories, n))) for j in range(columns)}
    return pa.table({**data, "label": _labels(rng.integers(0, classes, n), classes)})
