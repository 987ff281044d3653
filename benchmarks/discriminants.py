"""Gaussian discriminants against NumPy's bare product and scikit-learn's discriminants."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

from benchmarks.timing import Line, alternate, at_least, at_most, peak_megabytes
from likely import LinearDiscriminant, QuadraticDiscriminant

# Rows, columns, classes; largest ratio of a fit with pooled and per-class covariances to X.T @ X; smallest speed-up of
# probabilities over scikit-learn's, pooled and per class.
SIZES = [
    (1_000_000, 20, 5, 2.0, 3.0, 3.0, 5.0),
    (200_000, 100, 10, 2.0, 3.0, 1.7, 3.5),
    (50_000, 500, 10, 2.0, 3.0, 1.7, 1.7),
]


def draw(rows: int, columns: int, classes: int, seed: int = 0) -> tuple[Any, Any]:
    """Correlated Gaussian columns, classes a little apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=rows)
    X = rng.standard_normal((rows, columns))
    X[:, 1:] += 0.3 * X[:, :-1]
    X[:, : min(5, columns)] += rng.standard_normal((classes, min(5, columns)))[y]
    return X, y


def fits_and_probabilities() -> Iterator[Line]:
    for rows, columns, classes, shared_bar, own_bar, linear_bar, quadratic_bar in SIZES:
        X, y = draw(rows, columns, classes)
        yield f"{rows:,} x {columns}, {classes} classes"
        linear, quadratic = LinearDiscriminant(), QuadraticDiscriminant()
        bare, shared, own = alternate(
            [partial(np.matmul, X.T, X), partial(linear.fit, X, y), partial(quadratic.fit, X, y)]
        )
        yield at_most("fit pooled covariance / X.T @ X", shared / bare, shared_bar)
        yield at_most("fit per-class covariances / X.T @ X", own / bare, own_bar)
        some = slice(0, 20 * columns * classes)
        lda = LinearDiscriminantAnalysis().fit(X[some], y[some])
        qda = QuadraticDiscriminantAnalysis().fit(X[some], y[some])
        theirs, ours = alternate([partial(lda.predict_proba, X), partial(linear.predict_proba, X)])
        yield at_least("probabilities, pooled: scikit-learn / likely", theirs / ours, linear_bar)
        theirs, ours = alternate([partial(qda.predict_proba, X), partial(quadratic.predict_proba, X)])
        yield at_least("probabilities, per class: scikit-learn / likely", theirs / ours, quadratic_bar)
        yield from layouts(X, y)


def layouts(X: Any, y: Any) -> Iterator[Line]:
    """Fortran order, columns of a frame, and float32, beside float64 in C order."""
    frame = pl.DataFrame({f"c{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])})
    others = {
        "Fortran order": (np.asfortranarray(X), 1.5),
        "Polars columns": (frame, 1.5),
        "float32": (X.astype("f4"), 1.1),
    }
    for name, (Z, bar) in others.items():
        for model in (LinearDiscriminant(), QuadraticDiscriminant()):
            short = "shared" if isinstance(model, LinearDiscriminant) else "own"
            base = type(model)()
            fit, plain = alternate([partial(model.fit, Z, y), partial(base.fit, X, y)], repeats=7)
            yield at_most(f"fit {short}, {name} / float64 C", fit / plain, bar)
            ours, plain = alternate([partial(model.predict_proba, Z), partial(base.predict_proba, X)], repeats=7)
            yield at_most(f"probabilities {short}, {name} / float64 C", ours / plain, bar)


def memory() -> Iterator[Line]:
    """Memory beyond X, the statistics and the result."""
    for rows, columns, classes, *_ in SIZES:
        X, y = draw(rows, columns, classes)
        yield f"extra memory in MB, {rows:,} x {columns}, {classes} classes"
        for model in (LinearDiscriminant(), QuadraticDiscriminant()):
            name = type(model).__name__
            scatters = 1 if isinstance(model, LinearDiscriminant) else classes
            kept = 2 * scatters * columns**2 * 8 / 1e6  # the scatters, and the factors that are the model
            yield at_most(f"fit, {name}", peak_megabytes(partial(model.fit, X, y)) - kept, 64.0)
            result = rows * classes * 8 / 1e6
            yield at_most(f"probabilities, {name}", peak_megabytes(partial(model.predict_proba, X)) - result, 64.0)


def scaling() -> Iterator[Line]:
    """Time per row at ten million rows against one million."""
    small, large = draw(1_000_000, 20, 5), draw(10_000_000, 20, 5)
    yield "time per row, 10,000,000 / 1,000,000 rows x 20"
    for model in (LinearDiscriminant(), QuadraticDiscriminant()):
        name = type(model).__name__
        long, short = alternate([partial(model.fit, *large), partial(model.fit, *small)], repeats=3)
        yield at_most(f"fit, {name}", long / short / 10, 1.2)
        long, short = alternate(
            [partial(model.predict_proba, large[0]), partial(model.predict_proba, small[0])], repeats=3
        )
        yield at_most(f"probabilities, {name}", long / short / 10, 1.2)


def fit_and_predict(model: Any, X: Any, y: Any) -> Any:
    return model.fit(X, y).predict(X)


def small() -> Iterator[Line]:
    """fit and predict on iris beside scikit-learn."""
    X, y = load_iris(return_X_y=True)
    pairs = [
        (LinearDiscriminant(), LinearDiscriminantAnalysis()),
        (QuadraticDiscriminant(), QuadraticDiscriminantAnalysis()),
    ]
    yield "iris: fit + predict, likely / scikit-learn"
    for ours, theirs in pairs:
        mine, peers = alternate(
            [partial(fit_and_predict, ours, X, y), partial(fit_and_predict, theirs, X, y)], repeats=30
        )
        yield at_most(type(ours).__name__, mine / peers, 2.0)
