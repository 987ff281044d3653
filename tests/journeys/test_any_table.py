"""Every table has finite predictions under a prior: random columns, missing values, weights and few rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from likely import GenerativeClassifier, NaiveBayes
from likely.errors import NotEstimableError
from tests.helpers import explained_scores


def column(kind: str, codes: Any, rng: np.random.Generator) -> Any:
    n = len(codes)
    makers: dict[str, Callable[[], Any]] = {
        "float": lambda: rng.normal(codes, 1.0),
        "constant": lambda: np.full(n, rng.choice([0.0, 1.5, 1e8])),
        "integer": lambda: rng.integers(-50, 50, n),
        "count": lambda: rng.poisson(2.0 + codes),
        "boolean": lambda: rng.random(n) < 0.3 + 0.1 * codes,
        "text": lambda: rng.choice(["u", "v", "w x", ""], size=n).astype(object),
        "beyond 2^53": lambda: rng.integers(2**60, 2**61, n),
        "huge": lambda: rng.normal(size=n) * 1e130,
        "tiny": lambda: rng.normal(size=n) * 1e-200,
        "whole": lambda: rng.integers(0, 4, n).astype(np.float64),
        "missing": lambda: np.full(n, np.nan),
        "mixed": lambda: np.array([2.5 if i % 2 else "a" for i in rng.integers(2, size=n)], dtype=object),
        "far": lambda: 1e8 * codes + rng.normal(size=n),
    }
    made = makers[kind]()
    if made.dtype.kind in "fO" and rng.random() < 0.4:
        made[rng.random(n) < 0.3] = None if made.dtype == object else np.nan
    return made


KINDS = [
    "float",
    "constant",
    "integer",
    "count",
    "boolean",
    "text",
    "beyond 2^53",
    "huge",
    "tiny",
    "whole",
    "missing",
    "mixed",
    "far",
]


def table(seed: int) -> tuple[pd.DataFrame, Any, Any]:
    """A frame of one to six columns, the labels of its rows, and weights or None."""
    rng = np.random.default_rng(seed)
    n, classes = int(rng.choice([1, 2, 3, 5, 10, 40, 300])), int(rng.integers(1, 5))
    codes = rng.integers(classes, size=n)
    kinds = rng.choice(KINDS, size=rng.integers(1, 7))
    frame = pd.DataFrame({f"{kind} {j}": column(kind, codes, rng) for j, kind in enumerate(kinds)})
    weights = rng.choice([0.0, 1.0, 2.0, 0.3], size=n) if rng.random() < 0.4 else None
    if weights is not None and not weights.any():
        weights = None
    return frame, np.array(list("abcd"))[codes], weights


@pytest.mark.parametrize("estimation", ["bayes", "map", "mle"])
@pytest.mark.parametrize("kind", [NaiveBayes, GenerativeClassifier])
@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(20, 60))])
@pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning")
def test_any_table_has_finite_answers_that_add_up(seed: int, kind: Any, estimation: str) -> None:
    frame, y, weights = table(seed)
    model = kind(estimation=estimation)
    try:
        model.fit(frame, y, weights)
    except NotEstimableError:
        assert estimation == "mle"
        return
    posteriors = model.predict_proba(frame)
    assert np.all(np.isfinite(posteriors))
    assert_allclose(posteriors.sum(axis=1), 1.0, rtol=1e-12)
    joint, explained = explained_scores(model, frame), model.explain(frame)
    total, possible = explained.evidence.sum(axis=2) + explained.offset, np.isfinite(joint)
    assert np.all(np.abs(total[possible] - joint[possible]) <= 1e-10 * (1.0 + np.abs(joint[possible])))
    assert not np.any(np.isnan(model.decision_function(frame)))
    assert str(model.summary())
    drawn, labels = model.sample(3, random_state=0)
    assert list(drawn.columns) == list(frame.columns)
    assert set(labels) <= set(y)
