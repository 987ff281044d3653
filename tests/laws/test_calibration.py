"""The frozen calibration: rows that are added or removed leave it as it is, and sums of models average it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

from likely import Gaussian, GenerativeClassifier, NaiveBayes, NormalInverseWishart

X, Y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)  # neither positive nor whole: every column is Gaussian in all parts
FIXED = NormalInverseWishart()
MODELS = [
    pytest.param(lambda: NaiveBayes(Gaussian("diagonal", prior=FIXED), calibration="auto"), id="naive"),
    pytest.param(lambda: GenerativeClassifier(Gaussian(shared=True, prior=FIXED), calibration="auto"), id="pooled"),
    pytest.param(lambda: GenerativeClassifier(calibration="auto"), id="chosen"),
]


def learnt(model: Any) -> Any:
    """(log t, c_1, …, c_K)."""
    return np.r_[np.log(model.calibration_.exponent), model.calibration_.intercepts]


@pytest.mark.parametrize("make", MODELS)
def test_updates_keep_the_calibration(make: Any) -> None:
    model = make().fit(X[::2], Y[::2])
    before, families = learnt(model), repr(model.families_)
    model.partial_fit(X[1::2], Y[1::2])
    assert_array_equal(learnt(model), before)
    grown = model.predict_proba(X)
    model.forget(X[1::4], Y[1::4]).partial_fit(X[1::4], Y[1::4])
    assert_array_equal(learnt(model), before)
    assert_allclose(model.predict_proba(X), grown, atol=1e-8)
    model.forget(X[1::2], Y[1::2])
    assert repr(model.families_) == families
    assert_allclose(model.predict_proba(X), make().fit(X[::2], Y[::2]).predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("make", MODELS)
def test_sums_average_the_calibration_by_rows(make: Any) -> None:
    parts = [slice(0, None, 2), slice(1, None, 4), slice(3, None, 4)]
    a, b, c = (make().fit(X[part], Y[part]) for part in parts)
    sizes = np.array([len(Y[part]) for part in parts])
    wanted = np.average([learnt(model) for model in (a, b, c)], axis=0, weights=sizes)
    sums = [(a + b) + c, a + (b + c), (c + a) + b, sum([a, b, c])]
    for total in sums:
        assert_allclose(learnt(total), wanted, atol=1e-12)
        assert_allclose(total.predict_proba(X), sums[0].predict_proba(X), atol=1e-9)
    assert_allclose(
        sums[0].calibration_.log_loss_after,
        np.average([model.calibration_.log_loss_after for model in (a, b, c)], weights=sizes),
    )


def test_a_model_without_calibration_counts_with_exponent_one() -> None:
    fit = NaiveBayes(Gaussian("diagonal", prior=FIXED), calibration="auto").fit(X[::2], Y[::2])
    other = NaiveBayes(Gaussian("diagonal", prior=FIXED), calibration="auto").partial_fit(X[1::2], Y[1::2])
    assert other.calibration_ is None
    assert fit.calibration_ is not None
    for total in (fit + other, other + fit):
        assert total.calibration_ is not None
        assert_allclose(learnt(total), learnt(fit) / 2, atol=1e-12)
        assert_allclose(total.calibration_.log_loss_before, fit.calibration_.log_loss_before)
    assert (other + other).calibration_ is None


@pytest.mark.parametrize("estimator", [GenerativeClassifier, NaiveBayes])
def test_the_choice_of_the_calibrated_model_holds_for_the_sum(estimator: Any) -> None:
    chosen = estimator(calibration="auto").fit(X[::2], Y[::2])
    grown = estimator(calibration="auto").partial_fit(X[1::2], Y[1::2])
    for model in (chosen + grown, grown + chosen):
        assert_allclose(learnt(model), learnt(chosen) / 2, atol=1e-12)
        assert repr(model.families_) == repr(chosen.families_)


def test_classes_are_united() -> None:
    rows, labels = load_iris(return_X_y=True)
    model = NaiveBayes(Gaussian("diagonal", prior=FIXED), calibration="auto")
    a, b = clone(model).fit(rows[:100], labels[:100]), clone(model).fit(rows[50:], labels[50:])
    total = a + b
    assert total.classes_.tolist() == [0, 1, 2]
    first, second = learnt(a), learnt(b)
    wanted = [(first[0] + second[0]) / 2, first[1] / 2, (first[2] + second[1]) / 2, second[2] / 2]
    assert_allclose(learnt(total), wanted, atol=1e-12)


class Parts:
    """A table in two chunks."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def chunks(self) -> Iterator[Any]:
        return iter([self.rows[:70], self.rows[70:]])


@pytest.mark.parametrize("make", MODELS)
def test_chunks_are_the_whole(make: Any) -> None:
    assert_allclose(learnt(make().fit(Parts(X), Y)), learnt(make().fit(X, Y)), atol=1e-8)
