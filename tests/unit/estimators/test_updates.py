"""Updates of a fitted model: from several threads, of copies, and down to a few rows."""

import copy
import pickle
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from likely import Gaussian, GenerativeClassifier, GenerativeRegressor, NaiveBayes, TextClassifier
from likely.errors import InputError, NotEstimableError

A = np.random.default_rng(0).normal(size=(40, 3))
Y = np.arange(40) % 2


@pytest.fixture
def eager_switching() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def on_threads(work: Any, count: int = 4) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


@pytest.mark.usefixtures("eager_switching")
def test_four_threads_lose_no_batch() -> None:
    model = NaiveBayes(Gaussian())

    def work() -> None:
        for i in range(20):
            model.partial_fit(A[:4], Y[:4])
            if i % 5 == 0:
                model.predict_proba(A)

    on_threads(work)
    assert model.statistics_.counts.rows.sum() == 4 * 20 * 4
    whole = NaiveBayes(Gaussian(), calibration=None).fit(np.tile(A[:4], (80, 1)), np.tile(Y[:4], 80))
    assert_allclose(model.predict_proba(A), whole.predict_proba(A), rtol=1e-9)

    def remove() -> None:
        for _ in range(10):
            model.forget(A[:4], Y[:4])

    on_threads(remove)
    assert model.statistics_.counts.rows.sum() == 4 * 10 * 4


@pytest.mark.usefixtures("eager_switching")
def test_four_threads_lose_no_batch_of_documents() -> None:
    model, documents = TextClassifier(), ["a good film", "a bad film"]

    def work() -> None:
        for i in range(20):
            model.partial_fit([*documents, f"film {i}"], ["+", "-", "+"])
            if i % 5 == 0:
                model.predict_proba(documents)
                model.forget(documents, ["+", "-"])

    on_threads(work)
    assert model._fit.sums.counts.rows.sum() == 4 * (20 * 3 - 4 * 2)


@pytest.mark.usefixtures("eager_switching")
def test_four_threads_lose_no_batch_of_a_regression() -> None:
    model = GenerativeRegressor()
    on_threads(lambda: [model.partial_fit(A[:4], A[:4, 0]) for _ in range(20)])
    assert model.statistics_.counts.rows.sum() == 4 * 20 * 4


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_updated_on_their_own(copied: Any) -> None:
    model = NaiveBayes(Gaussian()).partial_fit(A, Y)
    other = copied(model).partial_fit(A, Y)
    assert model.statistics_.counts.rows.sum() == 40
    assert other.statistics_.counts.rows.sum() == 80
    assert not hasattr(clone(model), "_fit")


@pytest.mark.parametrize("estimation", ["bayes", "map", "mle"])
@pytest.mark.parametrize("columns", [1, 2, 3, 6])
@pytest.mark.parametrize("left", [1, 2, 3, 6])
def test_a_regression_after_removals_is_that_of_the_remaining_rows(estimation: str, columns: int, left: int) -> None:
    rng = np.random.default_rng(3)
    for _ in range(15):
        X, y = rng.normal(size=(8, columns)), rng.normal(size=8)
        model = GenerativeRegressor(estimation=estimation).fit(X, y).forget(X[left:], y[left:])
        again = GenerativeRegressor(estimation=estimation).fit(X[:left], y[:left])
        assert_allclose(model.predict(X), again.predict(X), rtol=1e-5, atol=1e-5)


def test_too_few_rows_determine_no_covariance_whatever_rounding_makes_of_it() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        X = rng.normal(size=(12, 3))
        with pytest.raises(NotEstimableError):
            GenerativeClassifier(Gaussian(), estimation="mle").fit(X[:6], [0, 1] * 3)
        model = GenerativeClassifier(Gaussian(), estimation="mle").fit(X, [0, 1] * 6)
        with pytest.raises(NotEstimableError):
            model.forget(X[6:], [0, 1] * 3).predict(X)


def test_rows_that_have_erased_the_others_cannot_be_forgotten() -> None:
    for family in (Gaussian("diagonal"), Gaussian(), Gaussian(shared=True)):
        model = GenerativeClassifier(family).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
        model.partial_fit([[1.0], [1e140]], [0, 0])
        with pytest.raises(InputError, match="rounding has erased the variance of the other rows"):
            model.forget([[1.0], [1e140]], [0, 0])
