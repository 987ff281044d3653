"""Small tables, and their training rows as `EvidenceClassifier` makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from likely.data.batches import Batches
from likely.data.validation import read_table
from likely.evidence.encoding import Encoding
from likely.evidence.rows import DistinctRows, TrainingRows
from likely.evidence.training import distinct_rows, encoded
from likely.typing import AnyArray

COLUMNS = ["x", "z", "w"]


def numbers(n: int = 60, seed: int = 0) -> tuple[pd.DataFrame, AnyArray]:
    """Three numeric columns and three overlapping classes."""
    rng = np.random.default_rng(seed)
    y = np.array(["a", "b", "c"])[np.arange(n) % 3]
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=COLUMNS)
    X.loc[y == "b", "x"] += 2.0
    X.loc[y == "c", "z"] += 2.0
    return X, y


def mixed(n: int = 60, seed: int = 0) -> tuple[pd.DataFrame, AnyArray]:
    """Numbers, text and a boolean column, with missing values."""
    X, y = numbers(n, seed)
    rng = np.random.default_rng(seed + 1)
    X["colour"] = np.where(rng.random(n) < 0.5, y, rng.choice(["red", "blue", "green"], n))
    X["flag"] = rng.random(n) < 0.4
    X.loc[3, "x"] = np.nan
    X.loc[[5, 11], "colour"] = None
    X.loc[7, ["x", "z", "w"]] = np.nan
    return X, y


def distinct(X: Any, y: Any, weights: Any = None, classes: AnyArray | None = None) -> DistinctRows:
    batch = Batches(X, y, weights, read_table, "EvidenceClassifier").first
    return distinct_rows(batch, np.arange(batch.table.width), classes)


def training(X: Any, y: Any, weights: Any = None) -> tuple[TrainingRows, Encoding]:
    rows = distinct(X, y, weights)
    encoding = Encoding.of(rows.rows, rows.weights, range(rows.rows.width))
    return encoded(rows, encoding), encoding
