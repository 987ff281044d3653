"""`EvidenceClassifier` on messy but valid tables: probabilities, explanations and updates are there for all of them."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

from likely import EvidenceClassifier, NaiveBayes
from likely.errors import InputError, LeakWarning
from likely.typing import AnyArray, Array
from tests.helpers import load_table

Table = tuple[Any, Any]
FAST = ["columns", "histogram", "pairs", "trees"]


def small(**options: Any) -> EvidenceClassifier:
    return EvidenceClassifier(n_trees=4, **options)


def classes(n: int = 45) -> tuple[Array, AnyArray]:
    """Three columns of numbers and three classes."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[np.arange(n) % 3]
    X = rng.normal(size=(n, 3))
    X[y == "b", 0] += 2.0
    X[y == "c", 1] += 2.0
    return X, y


def everything(model: Any, X: Any) -> Array:
    """The probabilities, after a check that every method has a result and explanations add up."""
    proba: Array = model.predict_proba(X)
    assert np.isfinite(proba).all()
    assert_allclose(proba.sum(axis=1), 1.0)
    logs = model.predict_log_proba(X)
    odds = logs - logs.mean(axis=1, keepdims=True)
    for by in ("column", "view", "column and view"):
        found = model.explain(X, by=by)
        total = found.evidence.sum(axis=2) + found.offset
        size = 1.0 + np.abs(odds).max() + np.abs(found.evidence).sum(axis=2).max()
        assert_allclose(total - total.mean(axis=1, keepdims=True), odds, atol=1e-10 * size, rtol=0.0)
    assert str(model.summary())
    assert len(model.weights_) == sum(model.summary().n_terms)
    assert np.isfinite(model.log_density(X)).all()
    return proba


def situations() -> dict[str, Callable[[], Table]]:
    X, y = classes()
    rng = np.random.default_rng(1)
    holes = np.where(rng.random(X.shape) < 0.4, np.nan, X)
    holes[::9] = np.nan
    words = pd.DataFrame({"u": rng.choice(list("abc"), 45), "v": rng.choice(["yes", "no"], 45)})
    frame = pd.DataFrame(X, columns=list("xzw"))
    return {
        "a class with two rows": lambda: (X[:42], np.r_[y[:40], ["rare", "rare"]]),
        "a class with one row": lambda: (X[:41], np.r_[y[:40], ["rare"]]),
        "one row of each class": lambda: (X[:3], y[:3]),
        "two rows": lambda: (X[:2], y[:2]),
        "one row": lambda: (X[:1], y[:1]),
        "one class": lambda: (X, np.repeat("a", 45)),
        "one column": lambda: (X[:, :1], y),
        "constant columns": lambda: (np.ones((45, 2)), y),
        "a constant column": lambda: (np.column_stack([X, np.ones(45)]), y),
        "missing values": lambda: (holes, y),
        "all values missing": lambda: (np.full((45, 2), np.nan), y),
        "a column without values": lambda: (np.column_stack([X, np.full(45, np.nan)]), y),
        "no numeric column": lambda: (words, y),
        "the class as a column": lambda: (frame.assign(label=y), y),
        "the class as a number": lambda: (np.column_stack([X, np.arange(45) % 3]), y),
        "separable": lambda: (X + 100.0 * (np.arange(45) % 3)[:, None], y),
        "every row twice": lambda: (np.repeat(X, 2, axis=0), np.repeat(y, 2)),
        "near the limit": lambda: (X * 1e138, y),
        "near 1e-300": lambda: (X * 1e-300, y),
        "an outlier": lambda: (np.where(np.arange(45)[:, None] == 7, 1e140, X), y),
        "a column of large whole numbers": lambda: (np.column_stack([X[:, 0], np.arange(45) * 2.0**50]), y),
        "an identifier": lambda: (frame.assign(id=[f"row {i}" for i in range(45)]), y),
    }


@pytest.mark.parametrize("name", situations())
def test_every_situation_has_an_answer(name: str) -> None:
    X, y = situations()[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", LeakWarning)  # of the class as a column
        model = small().fit(X, y)
        proba = everything(model, X)
    assert_array_equal(model.classes_, np.unique(y))
    if name in ("the class as a column", "the class as a number", "separable"):
        assert model.score(X, y) == 1.0
        assert model.weights_["weight"].max() < 10.0
    if name in ("constant columns", "all values missing"):
        assert_allclose(proba, np.tile(model.class_prior_, (len(proba), 1)))


def test_columns_three_times_over_change_nothing() -> None:
    table = load_table("penguins")
    X, y = table.drop(columns="species"), table["species"].to_numpy()
    thrice = pd.concat([X, X.add_suffix(" again"), X.add_suffix(" and again")], axis=1)
    train, test = np.arange(len(X)) % 4 == 0, np.arange(len(X)) % 4 == 1
    losses = [log_loss(y[test], small().fit(each[train], y[train]).predict_proba(each[test])) for each in (X, thrice)]
    assert_allclose(losses[1], losses[0], rtol=0.02)
    numbers, labels = classes(90)
    alone, copied = (small().fit(each, labels) for each in (numbers, np.hstack([numbers] * 7)))
    assert_allclose(copied.predict_proba(np.hstack([numbers] * 7)), alone.predict_proba(numbers), atol=1e-12)


def test_tables_with_few_distinct_rows_are_learnt_as_well() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (2000, 4))
    y = X[:, 0] ^ (rng.random(2000) < 0.2)
    word = pd.DataFrame({"word": np.array(["p", "q"])[X[:, 0]]})
    for rows in (X, word):
        proba = small().fit(rows, y).predict_proba(rows)
        assert_allclose(proba[:, 1], np.where(X[:, 0] == 1, 0.8, 0.2), atol=0.06)


def test_noise_costs_little() -> None:
    ratios = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(400, 200)), rng.integers(0, 2, 400)
        proba = small().fit(X[:100], y[:100]).predict_proba(X[100:])
        proportions = np.tile(np.bincount(y[:100]) / 100.0, (300, 1))
        ratios.append(log_loss(y[100:], proba) / log_loss(y[100:], proportions))
    assert np.mean(ratios) < 1.05


def test_a_thousand_categories_beside_three_numbers() -> None:
    X, y = classes(1500)
    frame = pd.DataFrame(X, columns=list("xzw")).assign(word=[f"w{i % 1000}" for i in range(1500)])
    model = small().fit(frame[:1000], y[:1000])
    assert model.score(frame[1000:], y[1000:]) > 0.7
    everything(model, frame[1000:1020])


def test_two_thousand_columns() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2000)), np.arange(40) % 2
    X[:, 5] += 6.0 * y
    model = small(views=["columns", "neighbours", "trees", "joint"]).fit(X[:30], y[:30])
    assert np.isfinite(everything(model, X[30:])).all()


def frames(frame: pd.DataFrame) -> dict[str, Any]:
    rows = [{k: None if v is None or v != v else v for k, v in row.items()} for row in frame.to_dict("records")]
    return {"polars": pl.from_pandas(frame), "arrow": pa.Table.from_pandas(frame), "dictionaries": rows}


def test_all_kinds_of_frames_have_the_same_answer() -> None:
    X, y = classes()
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(X, columns=list("xzw")).assign(
        word=rng.choice(["p", "q", "r"], 45), flag=X[:, 0] > 0.5, count=np.arange(45) % 9
    )
    frame.loc[3, "word"], frame.loc[[5, 6], "x"] = None, np.nan
    expected = small(views=FAST).fit(frame, y).predict_proba(frame)
    for other in frames(frame).values():
        assert_allclose(small(views=FAST).fit(other, y).predict_proba(other), expected, atol=1e-12)


def test_sparse_rows_have_the_answer_of_dense_ones() -> None:
    X, y = classes()
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    dense = small(views=FAST).fit(X, y)
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        model = small(views=FAST).fit(kind(X), y)
        assert_allclose(model.predict_proba(kind(X)), dense.predict_proba(X), atol=1e-12)
        assert_allclose(model.explain(kind(X)).evidence, dense.explain(X).evidence, atol=1e-9)
    wide = scipy.sparse.csr_array((45, 20_000))
    with pytest.raises(InputError, match="at most 10,000"):
        small().fit(wide, y)


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


@pytest.mark.parametrize("labels", [[3, 7], [True, False], ["no", "yes"], [Colour.RED, Colour.BLUE]], ids=str)
def test_labels_of_any_kind(labels: list[Any]) -> None:
    X, _ = classes()
    y = [labels[i % 2] for i in range(45)]
    model = small(views=["columns"]).fit(X, y)
    assert set(model.predict(X).tolist()) <= set(labels)
    assert model.decide(X[:1]).action[0] in labels


def test_weights_of_any_size() -> None:
    X, y = classes()
    plain = small(views=FAST).fit(X, y)
    some = np.where(np.arange(45) < 30, 1.0, 0.0)
    assert_allclose(
        small(views=FAST).fit(X, y, sample_weight=some).predict_proba(X),
        small(views=FAST).fit(X[:30], y[:30]).predict_proba(X),
        atol=1e-12,
    )
    assert_array_equal(small(views=FAST).fit(X, y, sample_weight=np.ones(45)).predict_proba(X), plain.predict_proba(X))
    for weight in (1e-3, 0.3, 1e9):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            everything(small(views=FAST).fit(X, y, sample_weight=np.full(45, weight)), X)


@pytest.mark.filterwarnings("ignore::likely.errors.UnseenCategoriesWarning")
def test_rows_unlike_those_of_the_fit() -> None:
    X, y = classes()
    frame = pd.DataFrame(X, columns=list("xzw")).assign(word=["p", "q", "r"] * 15)
    model = small().fit(frame, y)
    unseen = frame.assign(word="new")
    unseen.loc[0] = None
    everything(model, unseen)
    everything(model, frame.assign(x=1e140))
    assert_array_equal(model.predict_proba(frame[["word", "w", "x", "z"]]), model.predict_proba(frame))
    empty = frame[:1].astype(object)
    empty[:] = None
    assert_allclose(model.predict_proba(empty)[0], model.class_prior_, atol=0.2)


@cache
def refused() -> dict[str, tuple[Callable[[], Any], str]]:
    X, y = classes()
    frame = pd.DataFrame(X, columns=list("xzw"))
    infinite = frame.copy()
    infinite.loc[13, "z"] = np.inf
    model = small(views=["columns"]).fit(frame, y)
    return {
        "infinite": (lambda: small().fit(infinite, y), r"Column 'z', row 13: inf"),
        "infinite later": (lambda: model.predict(infinite), r"Column 'z', row 13: inf"),
        "no label": (lambda: small().fit(X, [None, *y[1:]]), r"y, row 0: the label is missing"),
        "text": (lambda: model.predict(frame.assign(z="high")), r"Column 'z', row 0: 'high' is not a number"),
        "fewer columns": (lambda: model.predict(frame[["x"]]), r"Add the missing columns"),
        "no rows": (lambda: small().fit(X[:0], y[:0]), r"X has no rows"),
        "no columns": (lambda: small().fit(X[:, :0], y), r"X has no columns"),
        "no weight": (lambda: small().fit(X, y, sample_weight=np.zeros(45)), r"All weights in sample_weight are zero"),
        "other lengths": (lambda: small().fit(X, y[:9]), r"inconsistent numbers of samples"),
    }


@pytest.mark.parametrize("name", refused())
def test_what_cannot_be_used_is_named(name: str) -> None:
    call, words = refused()[name]
    with pytest.raises(InputError, match=words):
        call()


def test_views_together_are_better_than_the_class_proportions_and_a_single_model() -> None:
    table = load_table("penguins")
    X, y = table.drop(columns=["species", "island"]), table["species"].to_numpy()
    train, test = np.arange(len(X)) % 3 == 0, np.arange(len(X)) % 3 != 0
    losses = [
        log_loss(y[test], model.fit(X[train], y[train]).predict_proba(X[test])) for model in (small(), NaiveBayes())
    ]
    assert losses[0] < min(losses[1], 0.1)
