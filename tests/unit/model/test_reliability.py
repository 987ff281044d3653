"""Reliability of probabilities: bins, observed frequencies, expected calibration error, and the plot."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_iris

import likely
from likely import LinearDiscriminant, NaiveBayes, SoftmaxRegression, reliability
from likely.errors import InputError

mpl.use("Agg")
RNG = np.random.default_rng(0)
P = RNG.beta(0.7, 0.7, 1000)
Y = (RNG.random(1000) < P).astype(int)


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_bins_are_those_of_scikit_learn(strategy: str) -> None:
    found = reliability(Y, P, bins=8, strategy=strategy)
    observed, predicted = calibration_curve(Y, P, n_bins=8, strategy=strategy)
    assert_allclose(found.observed, observed, rtol=1e-12)
    assert_allclose(found.predicted, predicted, rtol=1e-12)
    assert found.count.sum() == 1000


def test_the_calibration_error_is_that_of_the_definition() -> None:
    found = reliability(Y, np.column_stack([1.0 - P, P]), bins=5, strategy="uniform")
    total = 0.0
    for i in range(5):
        mine = (i / 5 <= P) & ((i + 1) / 5 > P)
        total += mine.mean() * abs(Y[mine].mean() - P[mine].mean())
        assert_allclose(found.standard_error[i], np.sqrt((P[mine] * (1 - P[mine])).sum()) / mine.sum())
    assert_allclose(found.expected_calibration_error, total)


def test_the_standard_error_covers_calibrated_probabilities() -> None:
    found = reliability(Y, P)
    assert np.abs((found.observed - found.predicted) / found.standard_error).max() < 3.5
    overconfident = reliability(Y, np.clip(1.6 * (P - 0.5) + 0.5, 0.001, 0.999))
    assert np.abs((overconfident.observed - overconfident.predicted) / overconfident.standard_error).max() > 5.0


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_weights_are_repeats_and_the_order_of_rows_is_irrelevant(strategy: str) -> None:
    weights = np.random.default_rng(1).integers(0, 4, 1000)
    rounded = P.round(1)  # many rows have the same probability
    order = np.random.default_rng(1).permutation(1000)
    repeated = np.repeat(np.arange(1000), weights)
    one = reliability(Y, rounded, strategy=strategy, sample_weight=weights)
    others = [
        reliability(Y[repeated], rounded[repeated], strategy=strategy),
        reliability(Y[order], rounded[order], strategy=strategy, sample_weight=weights[order]),
    ]
    for other in others:
        for name in ("low", "high", "predicted", "observed", "count", "standard_error"):
            assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)


def test_equal_probabilities_are_one_bin() -> None:
    found = reliability(Y, np.full(1000, 0.25))
    assert_array_equal(found.count, [1000.0])
    assert_allclose(found.expected_calibration_error, abs(Y.mean() - 0.25))


def test_the_most_probable_class_of_several_or_a_given_one() -> None:
    X, y = load_iris(return_X_y=True)
    model = NaiveBayes().fit(X[::2], y[::2])
    proba = model.predict_proba(X[1::2])
    top = model.reliability(X[1::2], y[1::2], bins=4)
    best = proba.argmax(axis=1)
    expected = reliability((best == y[1::2]).astype(int), proba.max(axis=1), classes=[0, 1], bins=4)
    assert_allclose(top.observed, expected.observed)
    assert_allclose(top.predicted, expected.predicted)
    assert top.label is None
    one = model.reliability(X[1::2], y[1::2], label=2, bins=4)
    assert_allclose(one.observed, reliability(y[1::2], proba[:, 2], label=2, bins=4).observed)
    assert "class 2" in str(one)


@pytest.mark.parametrize("model", [LinearDiscriminant(), SoftmaxRegression()], ids=str)
def test_every_classifier_has_the_method(model: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    frame = X[["mean radius", "mean texture"]].assign(target=np.where(y == 1, "benign", "malignant"))
    fitted = model.fit(frame, "target")
    found = fitted.reliability(frame, "target", bins=5)
    assert found.label == "malignant"
    proba = fitted.predict_proba(frame.drop(columns="target"))[:, 1]
    assert_allclose(found.predicted @ found.count / 569, proba.mean())
    assert_allclose(found.observed @ found.count, (y == 0).sum())
    assert isinstance(found.to_frame(), pd.DataFrame)
    again = fitted.reliability(pl.from_pandas(frame), "target", bins=5)
    assert isinstance(again.to_frame(), pl.DataFrame)
    assert_allclose(again.to_frame()["observed"].to_numpy(), found.observed)


def test_held_out_probabilities_of_a_cross_validation() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    found = likely.cross_validate(LinearDiscriminant(), X[:, :3], y, 5)
    expected = reliability(y, found.posterior)
    assert_allclose(found.reliability().observed, expected.observed)
    assert found.reliability().label == 1
    assert_allclose(found.reliability(0).predicted, reliability(y, found.posterior, label=0).predicted)
    with pytest.raises(InputError, match="Class 7 is not among the classes 0, 1"):
        found.reliability(7)


def test_the_plot_has_a_point_for_each_bin_and_no_formulas(tmp_path: Any) -> None:
    y = np.where(Y == 1, "costs $5$ and more", "less")
    found = reliability(y, P, label="costs $5$ and more")
    ax = found.plot()
    line = next(line for line in ax.lines if line.get_marker() == "o")
    assert_allclose(line.get_xdata(), found.predicted)
    assert_allclose(line.get_ydata(), found.observed)
    assert r"costs \$5\$ and more" in ax.get_xlabel()
    assert found.plot(ax) is ax
    ax.figure.savefig(tmp_path / "reliability.png")
    mpl.pyplot.close("all")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0.5, 1.5]), "proba, row 1: 1.5 is not a probability"),
        (([0, 1], [0.5, np.nan]), "proba, row 1: nan is not a probability"),
        (([0, 1, 1], [0.5, 0.1]), "proba has shape"),
        (([0, 1, 2], [0.5, 0.1, 0.4]), "probabilities of 2 classes, but there are 3"),
        (([0, 1], [[0.5, 0.1], [0.4, 0.6]]), "proba, row 0: the probabilities sum to 0.6"),
        (([0, 1], [[0.5, 0.5], [0.4, 0.6]], [0, 2]), "y has the label 1, which is not among the classes 0, 2"),
        (([0, 1], [[0.5, 0.5], [0.4, 0.6]], None, 3), "Class 3 is not among the classes"),
        (([0, 1], [0.5, 0.5], None, None, 0), "bins=0 is not a positive whole number"),
        (([0, 1], [0.5, 0.5], None, None, 2, "log"), "strategy='log' is not known"),
        (([0, 1], [0.5, 0.5], None, None, 2, "quantile", [0, 0]), "no row has positive weight"),
        (([0, 1], ["a", "b"]), "probabilities must be numbers"),
    ],
)
def test_mistakes_are_named(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        reliability(*arguments)


def test_one_class_and_one_row() -> None:
    found = reliability(["a"], [[1.0]])
    assert_array_equal(found.observed, [1.0])
    assert found.expected_calibration_error == 0.0
