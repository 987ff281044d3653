"""Two times three-fold cross-validation: loss, confidence and correctness of each row."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.quality.cache import Cache
from benchmarks.quality.models import Model
from benchmarks.quality.tables import Table

SEEDS = (0, 1)
FOLDS = 3
SMALLEST = 1e-15
TASK = f"{len(SEEDS)}x{FOLDS}-fold"


@dataclass(frozen=True)
class Result:
    """Held-out predictions of a model on a table, in arrays of shape (repeats, rows)."""

    loss: Any
    confidence: Any  # the largest class probability
    correct: Any
    fit_seconds: float

    @cached_property
    def mean_loss(self) -> float:
        return float(self.loss.mean())

    @cached_property
    def accuracy(self) -> float:
        return float(self.correct.mean())


@dataclass(frozen=True)
class Failure:
    """A model that cannot be fitted to a table."""

    message: str


def splits(y: Any) -> list[tuple[int, Any, Any]]:
    """Repeat, training rows and test rows; a class with fewer rows than folds is missing in some training rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return [
            (repeat, train, test)
            for repeat, seed in enumerate(SEEDS)
            for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y)
        ]


def probabilities(model: Model, table: Table, train: Any, test: Any) -> tuple[Any, float]:
    """Probabilities of all labels of the table for the test rows, 0 for labels without training rows; fit time.

    Models receive the labels of the training rows as numbers from 0, as XGBoost requires.
    """
    labels = np.unique(table.y)
    present, codes = np.unique(table.y[train], return_inverse=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        fitted = model.build().fit(table.X.iloc[train], codes)
        seconds = time.perf_counter() - start
        posterior = np.zeros((len(test), len(labels)))
        posterior[:, np.searchsorted(labels, present)] = fitted.predict_proba(table.X.iloc[test])
    return posterior, seconds


def losses(posterior: Any, labels: Any, y: Any) -> Any:
    """−log p of the true label of each row, with p clipped to [1e-15, 1 − 1e-15]."""
    true = posterior[np.arange(len(y)), np.searchsorted(labels, y)]
    return -np.log(np.clip(true, SMALLEST, 1 - SMALLEST))


def cross_validated(model: Model, table: Table) -> dict[str, Any]:
    """The result as it is stored; floats keep six digits."""
    labels, shape = np.unique(table.y), (len(SEEDS), len(table.y))
    loss, confidence, correct, seconds = np.empty(shape), np.empty(shape), np.empty(shape, dtype=int), []
    for repeat, train, test in splits(table.y):
        try:
            posterior, elapsed = probabilities(model, table, train, test)
        except Exception as error:  # a peer may raise anything; the report names it
            return {"failure": f"{type(error).__name__}: {error}".splitlines()[0]}
        loss[repeat, test] = losses(posterior, labels, table.y[test])
        confidence[repeat, test] = posterior.max(axis=1)
        correct[repeat, test] = labels[posterior.argmax(axis=1)] == table.y[test]
        seconds.append(elapsed)
    return {
        "loss": _rounded(loss),
        "confidence": _rounded(confidence),
        "correct": correct.tolist(),
        "fit_seconds": float(np.mean(seconds)),
    }


def result(model: Model, table: Table, cache: Cache) -> Result | Failure:
    """The result of a model on a table, computed or from the cache."""
    stored = cache.get(table.fingerprint, TASK, model, lambda: cross_validated(model, table))
    if "failure" in stored:
        return Failure(stored["failure"])
    arrays = {name: np.array(stored[name], dtype=float) for name in ("loss", "confidence", "correct")}
    return Result(**arrays, fit_seconds=stored["fit_seconds"])


def _rounded(values: Any) -> list[list[float]]:
    return [[float(f"{value:.6g}") for value in row] for row in values]
