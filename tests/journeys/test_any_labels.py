"""Labels of any type: every row is counted, whatever the order of the labels, and all methods accept what fit does."""

import datetime
import enum
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

import likely
from likely import (
    Categorical,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    LinearDiscriminant,
    NaiveBayes,
    NearestPrototype,
    QuadraticDiscriminant,
    SoftmaxRegression,
    cross_validate,
    select,
)
from likely.errors import InputError
from likely.statistics.counts import label_order, sorted_labels


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"
    GREEN = "g"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


LABELS: dict[str, list[Any]] = {
    "sets without a total order": [frozenset("a"), frozenset("b"), frozenset("ab"), frozenset("c"), frozenset("bc")],
    "tuples with sets": [(frozenset("a"), 1), (frozenset("b"), 1), (frozenset(), 2)],
    "members of an enumeration": list(Colour),
    "one member of an enumeration": [Colour.RED],
    "integers of an enumeration": list(Level),
    "tuples": [(1, 2), (1, 3), (0, 9)],
    "tuples of text": [("a", "b"), ("a", "a"), ("b", "a")],
    "dates": [datetime.date(2026, 1, 1), datetime.date(2025, 1, 1)],
    "timestamps": [pd.Timestamp(2026, 1, 1), pd.Timestamp(2025, 1, 1)],
    "bytes": [b"b", b"a"],
    "text that ends with NUL": ["a", "a\0", "a\0\0"],
    "bytes that end with NUL": [b"a", b"a\0"],
    "integers": [3, 1, 2],
    "floats": [3.0, 1.0],
    "booleans": [True, False],
    "large integers": [10**30, 10**30 + 1],
    "intervals": [pd.Interval(0, 1), pd.Interval(1, 2)],
}
ROWS = 60


def table(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Well separated classes, as many as there are labels, and their labels as an array of objects."""
    labels = LABELS[name]
    codes = np.arange(ROWS) % len(labels)
    y = np.empty(ROWS, dtype=object)
    y[:] = [labels[code] for code in codes]
    return np.random.default_rng(0).normal(size=(ROWS, 2)) + 8.0 * codes[:, None], y


def counts(model: Any) -> dict[Any, int]:
    counted = model.statistics_.counts
    return dict(zip(counted.classes.tolist(), counted.rows.tolist(), strict=True))


class Chunks:
    def __init__(self, X: Any) -> None:
        self.X = X

    def chunks(self) -> Iterator[Any]:
        return (self.X[start : start + 7] for start in range(0, len(self.X), 7))


every_kind = pytest.mark.parametrize("name", LABELS)


@every_kind
@pytest.mark.parametrize("estimator", [GenerativeClassifier, NaiveBayes, NearestPrototype, QuadraticDiscriminant])
def test_every_row_is_counted_however_it_is_learnt(name: str, estimator: Any) -> None:
    X, y = table(name)

    def make() -> Any:
        return estimator(estimation="bayes")

    whole = make().fit(X, y)
    expected = {label: int(sum(each == label for each in y)) for label in LABELS[name]}
    assert counts(whole) == expected
    assert list(whole.classes_) == sorted(LABELS[name], key=label_order)
    batches = [slice(0, 7), *(slice(i, i + 20) for i in range(7, ROWS, 20))]
    partial = make()
    for rows in batches:
        partial.partial_fit(X[rows], y[rows])
    assert counts(partial) == expected
    assert counts(make().fit(Chunks(X), y)) == expected
    assert counts(make().partial_fit(X[:4], y[:4]).partial_fit(X[4:], y[4:]).forget(X[:4], y[:4])) == counts(
        make().fit(X[4:], y[4:])
    )
    declared = estimator(Gaussian("diagonal")) if estimator in (GenerativeClassifier, NaiveBayes) else make()
    first, second = (likely_copy(declared).fit(X[part], y[part]) for part in (slice(0, 23), slice(23, None)))
    assert counts(first + second) == expected
    assert_allclose((second + first).predict_proba(X), likely_copy(declared).fit(X, y).predict_proba(X), atol=1e-9)


def likely_copy(model: Any) -> Any:
    return type(model)(**model.get_params(deep=False))


@every_kind
@pytest.mark.parametrize(
    "model",
    [GenerativeClassifier(), NaiveBayes(), LinearDiscriminant(estimation="bayes"), SoftmaxRegression(penalty=1.0)],
    ids=repr,
)
def test_all_methods_accept_the_labels_that_fit_does(name: str, model: Any) -> None:
    X, y = table(name)
    several = len(LABELS[name]) > 1
    if isinstance(model, SoftmaxRegression) and not several:
        return
    model = likely_copy(model).fit(X, y)
    assert model.predict(X).tolist() == y.tolist()
    assert model.score(X, y) == 1.0
    if "tuples" not in name:  # a list of tuples has two dimensions
        assert model.score(X, y.tolist()) == 1.0
    if isinstance(model, SoftmaxRegression):
        return
    held_out = model.left_out_proba(X, y)
    assert model.classes_[held_out.argmax(axis=1)].tolist() == y.tolist()
    assert model.sample(3, label=y[0], random_state=0)[1].tolist() == [y[0]] * 3
    assert model.impute(np.full((1, 2), np.nan), y[:1]).shape == (1, 2)
    prior = {label: 1.0 / len(LABELS[name]) for label in LABELS[name]}
    assert_allclose(model.with_prior(prior).class_prior_, 1.0 / len(prior))
    assert_array_equal(model.decide(X).action, y)


@every_kind
def test_cross_validation_and_selection_accept_the_labels_that_fit_does(name: str) -> None:
    X, y = table(name)
    assert cross_validate(NaiveBayes(Gaussian()), X, y, folds=3).error.max() == 0.0
    assert select(X, y).ranking[0].error == 0.0


@every_kind
def test_a_saved_model_has_the_same_labels(name: str, tmp_path: Path) -> None:
    X, y = table(name)
    model = NaiveBayes().fit(X, y)
    try:
        model.save(tmp_path / "model")
    except InputError as error:
        assert "cannot be part of a model file" in str(error)  # noqa: PT017
        assert name in (
            "members of an enumeration",
            "one member of an enumeration",
            "dates",
            "timestamps",
            "intervals",
        )
        return
    again = likely.load(tmp_path / "model")
    assert again.classes_.tolist() == model.classes_.tolist()
    assert counts(again.partial_fit(X, y)) == {label: 2 * number for label, number in counts(model).items()}


def test_the_order_of_sets_and_members_does_not_depend_on_the_order_of_rows() -> None:
    for name in ("sets without a total order", "tuples with sets", "members of an enumeration"):
        orders = {tuple(sorted_labels(labels) or ()) for labels in itertools.permutations(LABELS[name])}
        assert len(orders) == 1
        assert len(next(iter(orders))) == len(LABELS[name])


def test_labels_without_any_order_are_an_error_with_one_class_too() -> None:
    y = np.empty(4, dtype=object)
    y[:] = [object()] * 4
    with pytest.raises(InputError, match="cannot be sorted: 'object'"):
        NaiveBayes().fit(np.arange(8.0).reshape(4, 2), y)


def test_classes_of_a_regression_may_be_of_several_types_and_missing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "c": np.array([1, "a", None] * 20, dtype=object)})
    target = 2.0 * frame["x"] + np.array([0.0, 5.0, 5.0] * 20) + 0.1 * rng.normal(size=60)
    model = GenerativeRegressor(classes="c").fit(frame, target)
    assert model.classes_.tolist() == [1, "a"]
    assert np.abs(model.predict(frame)[:2] - target[:2]).max() < 0.5
    complete = frame["c"].notna()
    model = GenerativeRegressor(classes="c").fit(frame[complete][:10], target[complete][:10])
    model.partial_fit(frame[complete][10:], target[complete][10:])
    assert counts(model) == {1: 20, "a": 20}
    model.save(tmp_path / "model")
    assert_allclose(likely.load(tmp_path / "model").predict(frame), model.predict(frame))


# The marker of unlabeled rows.

MARKED = np.where(np.arange(40) % 5 == 0, -1, np.arange(40) % 2)
A = np.random.default_rng(0).normal(size=(40, 3))


@pytest.mark.parametrize("estimator", [GenerativeClassifier, NaiveBayes])
def test_only_fit_uses_rows_that_are_marked_as_unlabeled(estimator: Any) -> None:
    labeled = MARKED != -1
    model = estimator(unlabeled=-1).fit(A, MARKED)
    assert model.classes_.tolist() == [0, 1]
    message = "y, row 0: the label .*-1.* marks an unlabeled row .*only fit uses unlabeled rows"
    with pytest.raises(InputError, match=message):
        estimator(unlabeled=-1).partial_fit(A, MARKED)
    model = estimator(unlabeled=-1).fit(A[labeled], MARKED[labeled])
    for method in (model.partial_fit, model.forget, model.left_out_proba, model.score):
        with pytest.raises(InputError, match=message):
            method(A, MARKED)
    assert model.classes_.tolist() == [0, 1]
    text = np.where(labeled, MARKED.astype(str), "none")
    with pytest.raises(InputError, match="y, row 0: the label 'none' marks an unlabeled row"):
        estimator(unlabeled="none").partial_fit(A, text)


def test_the_hybrid_scores_labels_of_any_type() -> None:
    X, y = table("dates")
    assert HybridClassifier(blend=0.0).fit(X, y).score(X, y) == 1.0


def test_a_score_needs_labels_of_the_type_of_the_classes() -> None:
    X, y = table("integers")
    model = NaiveBayes().fit(X, y)
    with pytest.raises(InputError, match="another type"):
        model.score(X, y.astype(str))
    assert model.score(X, np.full(ROWS, 7)) == 0.0
    assert model.score(X, [3] * ROWS, sample_weight=(y == 3).astype(float)) == 1.0
    with pytest.raises(InputError, match="zero"):
        model.score(X, y, sample_weight=np.zeros(ROWS))


@pytest.mark.parametrize("value", [True, False])
def test_rows_that_are_all_true_or_all_false(value: bool) -> None:
    both = np.array([True, False] * 10)
    X = pd.DataFrame({"flag": both, "other": np.where(both, "u", "v")})
    model = GenerativeClassifier({"flag": Categorical()}, calibration=None).fit(X, both)
    one = X[X["flag"] == value]
    assert_allclose(model.predict_proba(one[:1]), model.predict_proba(X)[both == value][:1])
    assert model.predict(one[:1]).tolist() == [value]
    model.partial_fit(one, np.full(len(one), value))
    assert model.statistics_.counts.rows.tolist() == ([10, 20] if value else [20, 10])
    model.forget(one, np.full(len(one), value))
    assert model.statistics_.counts.rows.tolist() == [10, 10]
