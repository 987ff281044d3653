"""A ledger of learnt rows: rows that were never learnt, or were forgotten already, are not forgotten."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from likely import (
    EvidenceClassifier,
    GenerativeClassifier,
    GenerativeRegressor,
    LinearDiscriminant,
    NaiveBayes,
    NearestPrototype,
    QuadraticDiscriminant,
    TextClassifier,
    load,
)
from likely.data.ledger import HashedRows, Ledger
from likely.errors import InputError, NotLearntError
from tests.unit.estimators.reachable import found_in

RNG = np.random.default_rng(0)
N = 120
Y = np.array(["no", "yes"], dtype=object)[np.arange(N) % 2]
NUMBERS = pd.DataFrame(RNG.normal(size=(N, 3)), columns=list("xzw"))
TABLE = NUMBERS.assign(town=RNG.choice(["Rome", "Oslo"], N), code=[f"id-{i:05d}" for i in range(N)])
TEXTS = np.array([f"{'good' if label == 'yes' else 'bad'} film number{i}" for i, label in enumerate(Y)], dtype=object)
MODELS: list[tuple[Any, Any]] = [
    (GenerativeClassifier(ledger=True), TABLE),
    (NaiveBayes(ledger=True), TABLE),
    (LinearDiscriminant(ledger=True), NUMBERS),
    (QuadraticDiscriminant(ledger=True), NUMBERS),
    (NearestPrototype(ledger=True), NUMBERS),
    (EvidenceClassifier(["columns", "histogram"], ledger=True), TABLE),
    (TextClassifier(ledger=True), TEXTS),
    (GenerativeRegressor(ledger=True), NUMBERS),
]
every_model = pytest.mark.parametrize(("model", "X"), MODELS, ids=[type(model).__name__ for model, _ in MODELS])


def part(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def targets(model: Any) -> Any:
    return NUMBERS["x"].to_numpy() + 1.0 if isinstance(model, GenerativeRegressor) else Y


def state(model: Any) -> bytes:
    return pickle.dumps(model)


@every_model
def test_rows_are_forgotten_once(model: Any, X: Any) -> None:
    y, gone = targets(model), np.arange(10)
    fitted = model.fit(X, y).forget(part(X, gone), y[gone])
    before = state(fitted)
    with pytest.raises(NotLearntError, match=r"X, row 0: no row with these values, label .* is among the") as error:
        fitted.forget(part(X, gone), y[gone])
    assert error.value.row == 0
    with pytest.raises(NotLearntError, match="X, row 1"):
        fitted.forget(part(X, [20, 3, 21]), y[[20, 3, 21]])
    with pytest.raises(NotLearntError, match=r"X, row [02]"):
        fitted.forget(part(X, [20, 21, 20]), y[[20, 21, 20]])
    assert state(fitted) == before
    fitted.forget(part(X, [20, 21]), y[[20, 21]])


@every_model
def test_rows_with_another_label_or_weight_were_not_learnt(model: Any, X: Any) -> None:
    y = targets(model)
    fitted = model.fit(X, y)
    with pytest.raises(NotLearntError, match="X, row 0"):
        fitted.forget(part(X, [0, 1]), y[[1, 0]])
    with pytest.raises(NotLearntError, match="weight 2"):
        fitted.forget(part(X, [0]), y[[0]], sample_weight=[2.0])
    fitted.forget(part(X, [0, 1]), y[[0, 1]], sample_weight=[1.0, 0.0])
    fitted.forget(part(X, [1]), y[[1]])


@every_model
def test_updates_sums_and_files_keep_the_ledger(model: Any, X: Any, tmp_path: Path) -> None:
    y, first, second = targets(model), np.arange(0, N, 2), np.arange(1, N, 2)
    if isinstance(model, EvidenceClassifier | GenerativeRegressor) or model.__class__ is TextClassifier:
        first, second = np.arange(0, 80), np.arange(80, N)
    else:
        first, second = np.arange(0, 60), np.arange(60, N)
    begun = model.fit(part(X, first), y[first])
    with pytest.raises(NotLearntError):
        begun.forget(part(X, second[:2]), y[second[:2]])
    both = pickle.loads(state(begun)).partial_fit(part(X, second), y[second])
    both.save(tmp_path / "model")
    loaded = load(tmp_path / "model").forget(part(X, second[:2]), y[second[:2]])
    with pytest.raises(NotLearntError):
        loaded.forget(part(X, second[:2]), y[second[:2]])
    loaded.partial_fit(part(X, second[:2]), y[second[:2]]).forget(part(X, second[:2]), y[second[:2]])


def test_sums_of_models_have_the_rows_of_both() -> None:
    first = NaiveBayes(ledger=True).fit(NUMBERS[:60], Y[:60])
    second = NaiveBayes(first.families_, ledger=True).fit(NUMBERS[60:], Y[60:])
    both = NaiveBayes(first.families_, ledger=True).fit(NUMBERS[:60], Y[:60]) + second
    both.forget(NUMBERS, Y, sample_weight=np.r_[1.0, np.zeros(118), 1.0])
    with pytest.raises(NotLearntError, match="row 119"):
        both.forget(NUMBERS, Y, sample_weight=np.r_[np.zeros(119), 1.0])
    model = EvidenceClassifier(["columns"], ledger=True).fit(NUMBERS[:60], Y[:60])
    other = EvidenceClassifier(["columns"], ledger=True).fit(NUMBERS[60:], Y[60:], structure_of=model)
    (model + other).forget(NUMBERS[50:70], Y[50:70])
    with pytest.raises(NotLearntError, match="row 10"):
        model.forget(NUMBERS[50:70], Y[50:70])


def test_rows_of_dropped_classes_are_not_in_the_ledger() -> None:
    for model, X in ((QuadraticDiscriminant(ledger=True), NUMBERS), (TextClassifier(ledger=True), TEXTS)):
        fitted = model.fit(X, Y).drop_class("yes")
        with pytest.raises(NotLearntError, match="row 1"):
            fitted.forget(part(X, [0, 1]), Y[[0, 1]])
        fitted.forget(part(X, [0]), Y[[0]])


def test_equal_rows_are_forgotten_as_often_as_they_were_learnt() -> None:
    X, y = np.repeat([[1.0, 2.0], [3.0, 5.0], [2.0, 2.5]], 4, axis=0), np.tile([0, 1], 6)
    model = GenerativeClassifier(ledger=True).fit(X, y)
    for _ in range(2):
        model.forget(X[:1], y[:1].astype(float))  # 0.0 is the label 0
    with pytest.raises(NotLearntError):
        model.forget(X[:1], y[:1])
    model.forget(X[[1, 3]], y[[1, 3]])


def test_columns_that_are_set_aside_are_not_needed_to_forget() -> None:
    model = GenerativeClassifier(ledger=True).fit(TABLE, Y)
    model.forget(TABLE.drop(columns="code")[:5], Y[:5])
    with pytest.raises(NotLearntError):
        model.forget(TABLE[4:6], Y[4:6])


@every_model
def test_a_ledger_has_no_values(model: Any, X: Any) -> None:
    fitted = model.fit(X, targets(model))
    ledger: Any = fitted.model_.ledger if isinstance(fitted, EvidenceClassifier) else fitted._fit.ledger
    assert found_in(ledger, NUMBERS.to_numpy().ravel(), [*TABLE["code"], *TEXTS, "Rome", "yes"]) == {}
    assert len(ledger.hashes) == N


@every_model
def test_a_model_whose_rows_were_not_recorded_says_so(model: Any, X: Any) -> None:
    y = targets(model)
    fitted = model.set_params(ledger=False).fit(X, y)
    model.set_params(ledger=True)
    with pytest.raises(InputError, match="ledger=True, but its rows were not recorded"):
        fitted.forget(part(X, [0]), y[[0]])


def test_additions_and_removals_leave_no_trace() -> None:
    def rows(*texts: str) -> HashedRows:
        return HashedRows.of_documents(list(texts), np.array(["a"]), np.zeros(len(texts), dtype=np.intp), None)

    ledger = Ledger.empty().added([rows("x", "y", "x")])
    assert_array_equal(np.sort(ledger.weights), [1.0, 2.0])
    left = ledger.added([rows("z")]).without([rows("z", "x")]).added([rows("x")])
    assert_array_equal(left.hashes, ledger.hashes)
    assert_array_equal(left.weights, ledger.weights)
    assert len(ledger.without_class("a").hashes) == 0
    assert len(ledger.without_class("b").hashes) == 2
