"""Accuracy and log-loss on real tables over ten folds, compared with scikit-learn on the same folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from likely import GenerativeClassifier, NaiveBayes
from tests.helpers import load_table

TABLES = {
    "penguins": ("species", []),
    "iris": ("Species", ["rownames"]),
    "wine": ("class", []),
    "vowel-train": ("y", ["row.names"]),
    "pima_missing": ("diabetes", []),
    "breastcancer_wisconsin": ("Class", ["Id"]),
    "housevotes84": ("Class", []),
    "zoo": ("type", []),
    "german_credit": ("class", []),
}


def prepared(estimator: Any) -> Any:
    """Imputation, scaling and one-hot encoding before an estimator of scikit-learn."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    categories = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    )
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (categories, make_column_selector(dtype_exclude=["number", "bool"])),
        ("passthrough", make_column_selector(dtype_include="bool")),
    )
    return make_pipeline(columns, estimator)


MODELS = {
    "GenerativeClassifier": GenerativeClassifier(),
    "NaiveBayes": NaiveBayes(),
    "LogisticRegression": prepared(LogisticRegression(max_iter=1000)),
    "LinearDiscriminantAnalysis": prepared(LinearDiscriminantAnalysis()),
}


def scores(estimator: Any, X: pd.DataFrame, y: Any, reverse: bool) -> tuple[float, float]:
    """Accuracy and log-loss over ten folds; reverse trains on one fold and tests on the nine others."""
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    right, loss, rows = 0.0, 0.0, 0
    for parts in folds.split(X, y):
        train, test = reversed(parts) if reverse else parts
        model = estimator.fit(X.iloc[train], y[train])
        known = np.isin(y[test], model.classes_)  # one fold may lack a rare class
        posterior = model.predict_proba(X.iloc[test[known]])
        right += float(np.sum(model.classes_[posterior.argmax(axis=1)] == y[test[known]]))
        loss += float(log_loss(y[test[known]], posterior, labels=model.classes_, normalize=False))
        rows += int(known.sum())
    return right / rows, loss / rows


def table(name: str) -> tuple[pd.DataFrame, Any]:
    """Features and labels of a table."""
    target, dropped = TABLES[name]
    X = load_table(name).drop(columns=dropped, errors="ignore")
    return X, np.asarray(X.pop(target).astype(str))


def tables() -> Iterator[str]:
    """Accuracy and log-loss of the default classifiers, trained on nine tenths and on one tenth of each table."""
    warnings.simplefilter("ignore")
    for reverse in (False, True):
        yield f"trained on {'one tenth' if reverse else 'nine tenths'} of the rows: accuracy, log-loss"
        yield f"{'':<24}" + "".join(f"{name:>28}" for name in MODELS)
        for name in TABLES:
            X, y = table(name)
            cells = [scores(model, X, y, reverse) for model in MODELS.values()]
            yield f"{name:<24}" + "".join(f"{accuracy:>20.3f}{loss:>8.3f}" for accuracy, loss in cells)
