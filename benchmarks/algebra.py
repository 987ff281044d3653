"""Leaving out, folds and selection against plain fits and predictions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.discriminants import draw
from benchmarks.timing import Line, alternate, at_most
from likely import (
    Bernoulli,
    Categorical,
    Gaussian,
    LinearDiscriminant,
    Multinomial,
    NaiveBayes,
    Poisson,
    QuadraticDiscriminant,
    cross_validate,
    select,
)
from likely.data.batches import Batches
from likely.data.validation import read_table
from likely.evaluation.selection import default_candidates


def models() -> Iterator[tuple[str, Any, Any, Any]]:
    """Names, models, rows and labels."""
    for rows, columns, classes in ((200_000, 20, 5), (50_000, 100, 10)):
        X, y = draw(rows, columns, classes)
        size = f"{rows:,} x {columns}"
        yield f"linear, mle, {size}", LinearDiscriminant(), X, y
        yield f"linear, bayes, {size}", LinearDiscriminant(estimation="bayes"), X, y
        yield f"quadratic, mle, {size}", QuadraticDiscriminant(), X, y
        yield f"quadratic, bayes, {size}", QuadraticDiscriminant(estimation="bayes"), X, y
        yield f"diagonal, mle, {size}", NaiveBayes(Gaussian("diagonal"), estimation="mle"), X, y
        yield f"diagonal, bayes, {size}", NaiveBayes(Gaussian("diagonal")), X, y
        yield f"spherical, mle, {size}", QuadraticDiscriminant("spherical"), X, y
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200_000)
    labels, counts = rng.integers(0, 8, (len(y), 10)), rng.poisson(3.0 + y[:, None], (len(y), 10))
    yield "Categorical, 200,000 x 10", NaiveBayes(Categorical()), labels, y
    yield "Poisson, 200,000 x 10", NaiveBayes(Poisson()), counts, y
    yield "Bernoulli, 200,000 x 10", NaiveBayes(Bernoulli()), (labels > 3).astype(int), y
    yield "Multinomial, 200,000 x 10", NaiveBayes(Multinomial()), counts, y


def algebra() -> Iterator[Line]:
    for name, model, X, y in models():
        model.fit(X, y)
        answer, left = alternate([partial(model.predict_proba, X), partial(model.left_out_proba, X, y)], repeats=9)
        yield at_most(f"{name}: leave-one-out / probabilities", left / answer, 5.0)
        answer, folds = alternate([partial(model.predict_proba, X), partial(cross_validate, model, X, y)], repeats=7)
        yield at_most(f"{name}: ten folds / probabilities", folds / answer, 4.0)
    yield from selection()


def selection() -> Iterator[Line]:
    """Candidates compared by leave-one-out, relative to the probabilities of each of them and two fits."""
    X, y = draw(100_000, 20, 5)
    candidates = list(default_candidates(Batches(X, y, None, read_table, "select")).values())
    fits: list[Any] = [partial(clone(model).fit, X, y) for model in candidates]
    answers: list[Any] = [partial(fit().predict_proba, X) for fit in fits]
    chosen, fit, *each = alternate([partial(select, X, y), *fits[:1], *answers], repeats=7)
    ratio = chosen / (sum(each) + 2 * fit)
    yield at_most("select / (probabilities of each + 2 fits)", ratio, 1.5, f"{len(candidates)} candidates")
