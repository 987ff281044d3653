"""Log-loss of default classifiers that are trained on few rows of real tables, compared with scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from benchmarks.tables import TABLES, prepared
from likely import GenerativeClassifier, NaiveBayes
from tests.helpers import load_table

MORE_TABLES: dict[str, tuple[str, list[str]]] = {
    "glass": ("Type", []),
    "sonar": ("Class", []),
    "optdigits-train": ("digit", []),
}
SIZES = (30, 100, 300)
DRAWS = 4
FEWEST_TEST_ROWS, MOST_TEST_ROWS = 50, 1000

MODELS = {
    "GenerativeClassifier": GenerativeClassifier(),
    "NaiveBayes": NaiveBayes(),
    "LDA": prepared(LinearDiscriminantAnalysis()),
    "LDA, shrinkage": prepared(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
    "GaussianNB": prepared(GaussianNB()),
    "LogisticRegression": prepared(LogisticRegression(max_iter=1000)),
    "class proportions": DummyClassifier(strategy="prior"),
}


def table(name: str) -> tuple[pd.DataFrame, Any]:
    """Features and labels of a table; of the digits, the 30 columns with the largest variances."""
    target, dropped = (TABLES | MORE_TABLES)[name]
    X = load_table(name).drop(columns=dropped, errors="ignore")
    y = np.asarray(X.pop(target).astype(str))
    if name == "optdigits-train":
        X = X[X.var().sort_values(ascending=False).index[:30]]
    return X, y


def split(y: Any, rows: int, seed: int, most_test_rows: int = MOST_TEST_ROWS) -> tuple[Any, Any]:
    """Training rows, of which two of each class come first, and test rows, all at random."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    rank = pd.Series(y[order]).groupby(y[order]).cumcount().to_numpy()
    order = order[np.argsort(rank >= 2, kind="stable")]
    return order[:rows], order[rows:][:most_test_rows]


def held_out_loss(model: Any, X: pd.DataFrame, y: Any, train: Any, test: Any) -> float:
    """Mean log-loss of test rows; probabilities are at least the smallest relative spacing of floats."""
    fitted = clone(model).fit(X.iloc[train], y[train])
    posterior = fitted.predict_proba(X.iloc[test])
    chosen = posterior[np.arange(len(test)), np.searchsorted(fitted.classes_, y[test])]
    return float(-np.log(np.maximum(chosen, np.finfo(float).eps)).mean())


def losses(name: str, rows: int, models: dict[str, Any]) -> list[float] | None:
    """Mean log-loss of each model over several draws; None where too few test rows would be left."""
    X, y = table(name)
    if len(y) < rows + FEWEST_TEST_ROWS:
        return None
    splits = [split(y, rows, seed) for seed in range(DRAWS)]
    return [float(np.mean([held_out_loss(model, X, y, *each) for each in splits])) for model in models.values()]


def few_rows() -> Iterator[str]:
    """Mean log-loss on all tables, and the mean over the tables, after training on 30, 100 and 300 rows."""
    warnings.simplefilter("ignore")
    for rows in SIZES:
        yield f"trained on {rows} rows: log-loss, mean of {DRAWS} draws"
        yield f"{'':<24}" + "".join(f"{name:>22}" for name in MODELS)
        found = {name: losses(name, rows, MODELS) for name in TABLES | MORE_TABLES}
        known = {name: values for name, values in found.items() if values is not None}
        for name, values in known.items():
            yield f"{name:<24}" + "".join(f"{value:>22.3f}" for value in values)
        yield f"{'mean':<24}" + "".join(f"{value:>22.3f}" for value in np.mean(list(known.values()), axis=0))
