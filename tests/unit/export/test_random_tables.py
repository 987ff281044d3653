"""Random tables of mixed columns, and rows with values that training did not have, in targets that need no server."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from likely import GenerativeClassifier, NaiveBayes
from tests.unit.export.test_far_rows import TARGETS

WORDS = [
    "a",
    "A",
    " a",
    "a ",
    "",
    "ä",
    "a\u0308",
    "ß",
    "'",
    '"',
    "\\",
    "%",
    "NULL",
    "nan",
    "1",
    "01",
    "true",
    "\n",
    "\u200b",
    "💥",
]
VALUES = [0.0, -0.0, -1.0, 0.5, 2.0, 5e-324, 1e-300, 1e9, 1e12, np.nan]
LABELS = [["x", "y", "z"], [3, 1, 2], [1.0, -2.0, 0.0], ["it's", '"', "</script>"]]


def table(rng: np.random.Generator, n: int, estimation: str) -> tuple[pd.DataFrame, Any]:
    """Columns of random types; one class has one row, unless the likelihood would have no maximum."""
    k = rng.integers(0, 2, n)
    k[-1] = k[-1] if estimation == "mle" else 2
    words = rng.choice(WORDS, 6, replace=False)
    columns = {
        "text": words[(rng.integers(0, 4, n) + k) % 6].astype(object),
        "flag": rng.random(n) < 0.3 + 0.2 * k,
        "grade": rng.choice([0, 1, 2, -5, 2**31, 2**52 + 1], n),
        "count": rng.poisson(2.0 + 2.0 * k),
        "u": rng.normal(k, 1.0 + k) * 10.0 ** rng.integers(-3, 4) + rng.choice([0.0, 1e3, 1e7]),
        "v": rng.normal(k, 1.0),
        "amount": np.exp(rng.normal(k, 1.0)),
        "zeros": np.where(rng.random(n) < 0.3, -0.0, np.exp(rng.normal(k, 1.0))),
        "round": np.round(rng.normal(k, 1.0), 1),
    }
    names = rng.choice(list(columns), rng.integers(1, 6), replace=False)
    return pd.DataFrame({name: columns[name] for name in names}), k


def with_new_values(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Rows with unseen categories, missing values and unusual numbers."""
    found = rows.copy()
    for name in found:
        new = rng.random(len(found)) < 0.2
        if found[name].dtype == object:
            found[name] = [rng.choice(WORDS) if i else w for i, w in zip(new, found[name], strict=True)]
            found[name] = found[name].where(rng.random(len(found)) > 0.1, None)
        elif found[name].dtype == np.float64:
            found[name] = np.where(new, rng.choice(VALUES, len(found)), found[name])
    return found


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("seed", range(8))
def test_rows_of_random_tables_have_the_probabilities_of_the_model(seed: int, target: str) -> None:
    rng = np.random.default_rng(seed)
    estimation = str(rng.choice(["mle", "map", "bayes"]))
    X, k = table(rng, int(rng.choice([40, 150])), estimation)
    model: Any = (GenerativeClassifier if seed % 2 else NaiveBayes)(estimation=estimation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, np.array(LABELS[seed % 4])[k])
        if seed % 3 == 0:
            model = model.with_prior([0.4, 0.0, 0.6] if 2 in k else [0.4, 0.6])
        rows = with_new_values(X.sample(25, replace=True, random_state=seed).reset_index(drop=True), rng)
        expected, predicted = model.predict_proba(rows), model.predict(rows).tolist()
    probabilities, labels = TARGETS[target](model, rows)
    assert_allclose(probabilities, expected, rtol=0.0, atol=1e-9)
    assert labels is not None
    top = np.sort(expected, axis=1)
    clear = np.flatnonzero(top[:, -1] - top[:, -2] > 1e-9).tolist()
    assert [labels[i] for i in clear] == [predicted[i] for i in clear]
