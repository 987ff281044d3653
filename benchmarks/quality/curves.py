"""Learning curves: log-loss of models that are trained on few to many rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.few_rows import split
from benchmarks.quality.cache import Cache
from benchmarks.quality.models import Model
from benchmarks.quality.report import listed, markdown
from benchmarks.quality.tables import MOST_ROWS, Table
from benchmarks.quality.validation import losses, probabilities

SIZES = (30, 100, 300, 1_000, 3_000)
LARGE_SIZES = (2_000, 15_000)
LARGE = 20_000  # rows of a table that is also measured at the large sizes
DRAWS = 4
FEWEST_TEST_ROWS = 50
MODELS = ["EvidenceClassifier", "LogisticRegression", "CatBoost"]


def sizes(table: Table) -> list[int]:
    """Training sizes that leave enough test rows, and at which each class has two rows."""
    rows, classes = len(table.y), len(np.unique(table.y))
    wanted = {*SIZES, *(LARGE_SIZES if rows >= LARGE else ())}
    return sorted(size for size in wanted if 2 * classes <= size <= rows - FEWEST_TEST_ROWS)


def drawn_losses(model: Model, table: Table, size: int) -> dict[str, Any]:
    """Mean log-loss of the test rows of each draw, and mean fit time."""
    labels, found, seconds = np.unique(table.y), [], []
    for seed in range(DRAWS):
        train, test = split(table.y, size, seed, MOST_ROWS)
        try:
            posterior, elapsed = probabilities(model, table, train, test)
        except Exception as error:  # a peer may raise anything; the report names it
            return {"failure": f"{type(error).__name__}: {error}".splitlines()[0]}
        found.append(float(losses(posterior, labels, table.y[test]).mean()))
        seconds.append(elapsed)
    return {"loss": found, "fit_seconds": float(np.mean(seconds))}


def curves(tables: list[Table], models: list[Model], cache: Cache) -> Iterator[str]:
    """Log-loss by table and number of training rows, and means over the tables that have a size."""
    yield f"### Learning curves: log-loss, mean of {DRAWS} draws (standard error)"
    yield ""
    names = [model.name for model in models]
    found: dict[int, list[list[float]]] = {}
    rows, failures = [], []
    for table in tables:
        for size in sizes(table):
            task = f"{size} rows, {DRAWS} draws"
            results = [
                cache.get(table.fingerprint, task, model, partial(drawn_losses, model, table, size)) for model in models
            ]
            rows.append([f"{table.name}, {size:,}", *map(_cell, results)])
            found.setdefault(size, []).append([np.mean(result.get("loss", np.nan)) for result in results])
            failures += [
                f"{name} cannot be fitted to {size:,} rows of {table.name}: {result['failure']}"
                for name, result in zip(names, results, strict=True)
                if "failure" in result
            ]
    yield from markdown(["table, training rows", *names], rows)
    yield ""
    means = [
        [f"{size:,}", f"{len(values)}", *(f"{value:.4f}" for value in np.mean(values, axis=0))]
        for size, values in sorted(found.items())
    ]
    yield from markdown(["training rows", "tables", *names], means)
    yield from listed(failures)


def _cell(result: dict[str, Any]) -> str:
    if "failure" in result:
        return "–"
    loss = np.array(result["loss"])
    return f"{loss.mean():.4f} ({loss.std(ddof=1) / np.sqrt(len(loss)):.4f})"
