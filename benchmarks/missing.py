"""Learning from rows with missing cells and labels, beside scikit-learn's imputation; a learning curve of spam."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - importing it is what makes the next line work
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from benchmarks.discriminants import draw
from benchmarks.timing import Line, at_least, at_most, peak_megabytes
from likely import Gaussian, GenerativeClassifier, LinearDiscriminant, Multinomial, NaiveBayes
from tests.helpers import load_table

MESSAGES = Path(__file__).parents[1] / "tests" / "data" / "sms_spam.csv"


def missing() -> Iterator[Line]:
    """100,000 x 20 with a tenth of the cells missing, 5 classes, one covariance."""
    X, y = draw(100_000, 20, 5)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = LinearDiscriminant()
    begun = time.perf_counter()
    model.fit(X, y)
    took = time.perf_counter() - begun
    yield at_most("seconds for an iteration", took / model.n_iter_, 2.0, f"{model.n_iter_} iterations")
    theirs = make_pipeline(IterativeImputer(random_state=0), LinearDiscriminantAnalysis())
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, y)
    yield at_least("IterativeImputer and LDA / likely", (time.perf_counter() - begun) / took, 1.0)
    yield at_most("extra memory in MB", peak_megabytes(partial(model.fit, X, y)), 500.0)
    yield from spam()


def deleted() -> Iterator[str]:
    """Log-loss over ten folds of tables whose cells were deleted at random, beside imputation."""
    ours = GenerativeClassifier(Gaussian(shared=True))
    models = [
        ours,
        make_pipeline(SimpleImputer(), ours),
        make_pipeline(IterativeImputer(random_state=0), LinearDiscriminantAnalysis()),
    ]
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    yield "table      deleted   likely    means   IterativeImputer and LDA"
    for name, target in (("iris", "Species"), ("penguins", "species"), ("wine", "class"), ("vowel-train", "y")):
        table = load_table(name)
        y = table.pop(target).to_numpy()
        X = table.drop(columns=["rownames", "year", "row.names"], errors="ignore").select_dtypes("number").to_numpy()
        whole = ~np.isnan(X).any(axis=1)
        for share in (0.1, 0.3, 0.5):
            holed = np.array(X[whole], dtype=float)
            holed[np.random.default_rng(0).random(holed.shape) < share] = np.nan
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                losses = [
                    log_loss(y[whole], cross_val_predict(model, holed, y[whole], cv=folds, method="predict_proba"))
                    for model in models
                ]
            yield f"{name:<11} {share:>5.0%} {losses[0]:>9.3f} {losses[1]:>8.3f} {losses[2]:>12.3f}"


def spam(draws: int = 5) -> Iterator[str]:
    """Errors on a third of the messages, learnt from few labels, with and without the other messages."""
    frame = pd.read_csv(MESSAGES, keep_default_na=False, na_values=[""])
    y: Any = frame["label"].to_numpy(dtype=object)
    X = CountVectorizer(min_df=3).fit_transform(frame["text"]).astype(float)
    test = np.arange(len(y)) % 3 == 0
    rng, rows = np.random.default_rng(0), np.flatnonzero(~test)
    yield "labels of each class   alone   with unlabelled rows   with weight 1"
    for each in (2, 5, 10, 25, 50, 200):
        errors = []
        for _ in range(draws):
            some = np.concatenate([rng.choice(rows[y[rows] == c], each, replace=False) for c in ("ham", "spam")])
            labels: Any = np.where(np.isin(rows, some), y[rows], None)
            models = [NaiveBayes(Multinomial(), class_prior="uniform").fit(X[some], y[some])]
            weights: tuple[float | str, ...] = ("auto", 1.0)
            for weight in weights:
                free = NaiveBayes(Multinomial(), class_prior="uniform", unlabeled_weight=weight)
                models.append(free.fit(X[rows], labels))
            errors.append([1.0 - model.score(X[test], y[test]) for model in models])
        told = np.mean(errors, axis=0)
        yield f"{each:>20} {told[0]:>7.3f} {told[1]:>22.3f} {told[2]:>15.3f}"
