"""Softmax regression against scikit-learn's solvers, and those of scikit-learn-intelex where it is installed."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from benchmarks.timing import Line, alternate, at_least, peak_megabytes
from likely import SoftmaxRegression

SIZES = [(100_000, 20, 5), (100_000, 100, 10), (1_000_000, 20, 2)]
SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg")


def draw(rows: int, columns: int, classes: int, scaled: bool) -> tuple[Any, Any]:
    """Correlated columns with heavy tails, and labels that a softmax of them has drawn."""
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(columns, columns)) / np.sqrt(columns) + 0.5 * np.eye(columns)
    X = rng.standard_t(3, size=(rows, columns)) @ mix
    scores = X @ rng.normal(size=(columns, classes)) * (2.0 / np.sqrt(columns)) + rng.gumbel(size=(rows, classes))
    return X if scaled else X * 10.0 ** rng.uniform(-3.0, 3.0, size=columns), scores.argmax(axis=1)


def objective(model: Any, X: Any, y: Any) -> float:
    """The penalised negative log-likelihood."""
    scores = X @ model.coef_.T + model.intercept_
    if len(model.coef_) == 1:
        scores = np.column_stack([np.zeros(len(X)), scores])
    loss = logsumexp(scores, axis=1) - scores[np.arange(len(X)), y]
    return float(loss.sum() + 0.5 * (model.coef_**2).sum())


def softmax() -> Iterator[Line]:
    for rows, columns, classes in SIZES:
        for scaled in (True, False):
            X, y = draw(rows, columns, classes, scaled)
            yield f"{rows:,} x {columns}, {classes} classes, {'well' if scaled else 'badly'} scaled"
            ours = SoftmaxRegression()
            (mine,) = alternate([partial(ours.fit, X, y)], repeats=3)
            least = objective(ours, X, y)
            yield f"  {mine:.2f} s, {ours.n_iter_} passes after samples, objective {least:.6f}"
            yield from beside("scikit-learn", LogisticRegression, SOLVERS, 2.0, mine, least, X, y)
            if importlib.util.find_spec("sklearnex"):
                from sklearnex.linear_model import LogisticRegression as Intel

                yield from beside("scikit-learn-intelex", Intel, ("lbfgs", "newton-cg"), 1.0, mine, least, X, y)
    X, y = draw(1_000_000, 20, 2, scaled=True)
    yield f"  extra memory in MB at 1,000,000 x 20: {peak_megabytes(partial(SoftmaxRegression().fit, X, y)):.0f}"


def beside(
    name: str, kind: Any, solvers: tuple[str, ...], bar: float, mine: float, least: float, X: Any, y: Any
) -> Iterator[Line]:
    """The fastest of others' solvers against ours, which must have the lower objective."""
    times = []
    for solver in solvers:
        theirs = kind(solver=solver)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some do not converge, which the objective tells
            (took,) = alternate([partial(theirs.fit, X, y)], repeats=1)
        excess = objective(theirs, X, y) - least
        times.append(took)
        note = "" if excess > -1e-8 * least else "   <-- lower than ours"
        yield f"    {name} {solver}: {took:.2f} s, objective {excess:+.4g}{note}"
    yield at_least(f"fastest of {name} / likely", min(times) / mine, bar)
