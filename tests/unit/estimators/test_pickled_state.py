"""Pickles of fitted estimators: predictions do not change them."""

from __future__ import annotations

import pickle
import pickletools
from contextlib import suppress
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from likely import (
    Bernoulli,
    Categorical,
    EvidenceClassifier,
    Exponential,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    Histogram,
    HybridClassifier,
    Imputer,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    NearestPrototype,
    Pairs,
    QuadraticDiscriminant,
    SoftmaxRegression,
    TextClassifier,
    VonMises,
)
from likely.errors import LikelyError

RNG = np.random.default_rng(0)
Y = np.tile(["a", "b", "c"], 30)
X = RNG.normal(size=(90, 4)) + np.arange(3).repeat(4).reshape(3, 4)[np.arange(90) % 3]
SPARSE = np.where(RNG.random((90, 4)) < 0.1, np.nan, X)
TABLE = pd.DataFrame(SPARSE, columns=list("wxyz")).assign(kind=RNG.choice(["u", "v", "w"], 90))
LEVELS = RNG.integers(3, size=(90, 4)).astype(str)
DOCUMENTS = [f"{'good' if label == 'a' else 'bad'} film number{i % 7}" for i, label in enumerate(Y)]
ESTIMATORS: list[tuple[Any, Any]] = [
    (GenerativeClassifier(), TABLE),
    (GenerativeClassifier(Gaussian(), estimation="mle"), X),
    (GenerativeClassifier(Gaussian("diagonal"), estimation="map"), SPARSE),
    (GenerativeClassifier(Histogram()), X),
    (GenerativeClassifier(Pairs()), LEVELS),
    (GenerativeClassifier(Exponential()), np.abs(X)),
    (GenerativeClassifier(Gamma()), np.abs(X)),
    (GenerativeClassifier(VonMises()), X),
    (NaiveBayes(), TABLE),
    (NaiveBayes(Categorical()), LEVELS),
    (NaiveBayes(Bernoulli()), X > 1.0),
    (LinearDiscriminant(), X),
    (QuadraticDiscriminant(), X),
    (NearestPrototype(), X),
    (MixtureModel(2), X),
    (Imputer(), SPARSE),
    (EvidenceClassifier(n_trees=3), TABLE),
    (EvidenceClassifier(["columns", LinearDiscriminant()]), X),
    (TextClassifier(), DOCUMENTS),
    (SoftmaxRegression(), X),
    (HybridClassifier(), X),
    (GenerativeRegressor(), X),
    (GenerativeRegressor(components=2), X),
]
METHODS = (
    *("predict", "predict_proba", "predict_log_proba", "decision_function", "log_joint", "log_density", "typicality"),
    *("novelty", "transform", "impute", "explain", "similar_rows", "top_terms", "decide", "predict_interval"),
    *(
        "summary",
        "parameters",
        "left_out_proba",
        "score",
        "language_model",
        "adapt_prior",
        "with_prior",
        "to_sql",
        "to_javascript",
    ),
)


def named_types(pickled: bytes) -> set[str]:
    """Everything that could be the name of a module or type in a pickle."""
    return {str(argument) for _, argument, _ in pickletools.genops(pickled) if isinstance(argument, str)}


def use(model: Any, rows: Any, target: Any) -> None:
    """Call every method that does not change the model."""
    for name in METHODS:
        for arguments in ((rows,), (rows, target), ()):
            with suppress(TypeError, ValueError, AttributeError, LikelyError):  # this model does not have it
                getattr(model, name)(*arguments)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "rows"), ESTIMATORS, ids=lambda part: type(part).__name__)
def test_predictions_do_not_change_what_is_pickled(estimator: Any, rows: Any) -> None:
    target = X[:, 0] + RNG.normal(size=90) if isinstance(estimator, GenerativeRegressor) else Y
    model = estimator.fit(rows) if isinstance(estimator, Imputer | MixtureModel) else estimator.fit(rows, target)
    before, digest = pickle.dumps(model), joblib.hash(model)
    use(model, rows, target)
    after = pickle.dumps(model)
    assert joblib.hash(model) == digest
    assert len(after) == len(before)
    assert named_types(after) == named_types(before)
    predict = "transform" if isinstance(model, Imputer) else "predict"
    assert_array_equal(getattr(pickle.loads(after), predict)(rows), getattr(model, predict)(rows))
