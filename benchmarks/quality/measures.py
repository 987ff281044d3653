"""Measures over tables: ranks, calibration error, bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.quality.validation import Failure, Result

BINS = 15
DRAWS = 1_000
LEVEL = 0.95

Results = dict[str, dict[str, Result | Failure]]  # by table, then by model


def values(results: Results, models: list[str], measure: Callable[[Result], float]) -> Any:
    """A measure of each model on each table, (tables, models); NaN for a model that could not be fitted."""
    found = [[by_model[model] for model in models] for by_model in results.values()]
    return np.array([[measure(each) if isinstance(each, Result) else np.nan for each in row] for row in found])


def ranks(losses: Any) -> Any:
    """Rank of each model on each table, (tables, models); ties get their mean rank, failures are last."""
    return rankdata(np.where(np.isnan(losses), np.inf, losses), axis=1)


def reliability(result: Result) -> tuple[Any, Any, Any]:
    """Mean confidence, accuracy and number of rows of 15 bins of equally many rows; repeats and folds are pooled.

    Rows of equal confidence count with their mean accuracy, so that their order does not matter.
    """
    confidence, correct = result.confidence.ravel(), result.correct.ravel()
    values, group = np.unique(confidence, return_inverse=True)
    accuracy = np.bincount(group, correct) / np.bincount(group, minlength=len(values))
    bins = [part for part in np.array_split(np.sort(group), BINS) if len(part)]
    return (
        np.array([values[part].mean() for part in bins]),
        np.array([accuracy[part].mean() for part in bins]),
        np.array([len(part) for part in bins]),
    )


def calibration_error(result: Result) -> float:
    """Expected calibration error: mean of |confidence − accuracy| over the bins, weighted by rows."""
    confidence, accuracy, rows = reliability(result)
    return float(np.average(np.abs(confidence - accuracy), weights=rows))


@dataclass(frozen=True)
class Difference:
    """Mean over tables of the log-loss of a model minus that of a peer, with a bootstrap interval."""

    mean: float
    relative: float  # to the mean log-loss of the peer
    low: float
    high: float
    n_tables: int


def difference(results: Results, model: str, peer: str, seed: int = 0) -> Difference | None:
    """Paired bootstrap: rows, each with its losses of all repeats, are resampled within tables.

    Tables are fixed: the interval holds for new rows of these tables. None where no table has both models.
    """
    rng = np.random.default_rng(seed)
    draws, means = [], []
    for by_model in results.values():
        a, b = by_model[model], by_model[peer]
        if isinstance(a, Result) and isinstance(b, Result):
            rows = (a.loss - b.loss).mean(axis=0)
            counts = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=DRAWS)
            draws.append(counts @ rows / len(rows))
            means.append((rows.mean(), b.mean_loss))
    if not draws:
        return None
    tail = 50 * (1 - LEVEL)
    low, high = np.percentile(np.mean(draws, axis=0), [tail, 100 - tail])
    mean, loss = np.mean(means, axis=0)
    return Difference(float(mean), float(mean / loss), float(low), float(high), len(means))
