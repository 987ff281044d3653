"""Naive Bayes for every type of column, against scikit-learn's naive Bayes classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

from benchmarks.discriminants import draw
from benchmarks.timing import Line, alternate, at_least, at_most, peak_megabytes
from likely import Bernoulli, Categorical, Gaussian, Multinomial, NaiveBayes


def pair(name: str, ours: Any, theirs: Any, X: Any, y: Any, fit: float, answer: float) -> Iterator[Line]:
    """Fit and probabilities, how many times faster than scikit-learn."""
    mine, peers = alternate([partial(ours.fit, X, y), partial(theirs.fit, X, y)], repeats=6)
    yield at_least(f"{name}, fit: scikit-learn / likely", peers / mine, fit)
    mine, peers = alternate([partial(ours.predict_proba, X), partial(theirs.predict_proba, X)], repeats=6)
    yield at_least(f"{name}, probabilities: scikit-learn / likely", peers / mine, answer)


def gaussian_columns() -> Iterator[Line]:
    for rows, columns, classes in ((1_000_000, 20, 5), (200_000, 100, 10)):
        X, y = draw(rows, columns, classes)
        yield f"{rows:,} x {columns}, {classes} classes"
        ours = NaiveBayes(Gaussian("diagonal"), estimation="mle")
        yield from pair("Gaussian", ours, GaussianNB(var_smoothing=0.0), X, y, 8.0, 10.0)
        mine, bare = alternate([partial(ours.fit, X, y), X.sum])
        yield at_most("Gaussian, fit / X.sum()", mine / bare, 4.0)
        predictive = NaiveBayes(Gaussian("diagonal"))
        yield from pair("Student (bayes)", predictive, GaussianNB(var_smoothing=0.0), X, y, 1.0, 1.0)


def sparse_counts(rows: int = 200_000, columns: int = 50_000, each: int = 100, classes: int = 20) -> tuple[Any, Any]:
    """Sparse rows of small counts, frequent columns and rare ones."""
    rng = np.random.default_rng(0)
    place = (columns * rng.random(rows * each) ** 2).astype(np.int32)
    X = scipy.sparse.csr_array(
        (np.ones(rows * each), place, np.arange(0, rows * each + 1, each)), shape=(rows, columns)
    )
    X.sum_duplicates()
    return X, rng.integers(classes, size=rows)


def sparse_columns() -> Iterator[Line]:
    X, y = sparse_counts()
    yield f"sparse counts, {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz / X.shape[0]:.0f} stored a row, 20 classes"
    yield from pair("Multinomial", NaiveBayes(Multinomial(), estimation="map"), MultinomialNB(), X, y, 1.5, 1.5)
    X.data[:] = 1.0
    yield from pair("Bernoulli", NaiveBayes(Bernoulli(), estimation="map"), BernoulliNB(), X, y, 1.5, 1.5)


def categorical_columns() -> Iterator[Line]:
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=1_000_000)
    X = np.column_stack([(rng.integers(size, size=len(y)) + y) % size for size in rng.integers(3, 12, size=20)])
    yield "1,000,000 x 20 integer codes, 5 classes"
    yield from pair("Categorical", NaiveBayes(Categorical(), estimation="map"), CategoricalNB(), X, y, 5.0, 5.0)


def mixed_rows(rows: int = 1_000_000) -> tuple[dict[str, Any], Any]:
    """10 floats, 5 counts and 5 columns of text, with holes, in 3 classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=rows)
    data: dict[str, Any] = {f"float{j}": rng.normal(y * 0.3 * j, 1.0) for j in range(10)}
    data |= {f"count{j}": rng.poisson(2.0 + j + y).astype(np.float64) for j in range(5)}
    words = np.array([f"word {i}" for i in range(200)], dtype=object)
    data |= {f"text{j}": words[(rng.integers(10 * (j + 1), size=rows) + y)] for j in range(5)}
    for name, column in data.items():
        column[rng.random(rows) < 0.05] = None if name.startswith("text") else np.nan
    return data, y


def mixed_frames() -> Iterator[Line]:
    data, y = mixed_rows()
    yield "a mixed frame with holes, 1,000,000 rows: 10 floats, 5 counts, 5 text columns, in seconds"
    for name, frame in (("pandas", pd.DataFrame(data)), ("Polars", pl.DataFrame(data))):
        model = NaiveBayes()
        (fit,) = alternate([partial(model.fit, frame, y)], repeats=2)
        yield at_most(f"{name}, fit", fit, 3.0)
        (answer,) = alternate([partial(model.predict_proba, frame)], repeats=2)
        yield at_most(f"{name}, probabilities", answer, 3.0)
        yield at_most(f"{name}, extra memory in MB, fit", peak_megabytes(partial(model.fit, frame, y)), 128.0)
        more = peak_megabytes(partial(model.predict_proba, frame)) - len(y) * 3 * 8 / 1e6
        yield at_most(f"{name}, extra memory in MB, probabilities", more, 128.0)


def columns() -> Iterator[Line]:
    yield from gaussian_columns()
    yield from categorical_columns()
    yield from mixed_frames()
    yield from sparse_columns()
