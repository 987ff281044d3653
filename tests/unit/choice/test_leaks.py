"""Columns that give the class away: copies of the label, and values that are missing where the class is one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from likely.choice.leaks import Leak, find_leaks, warn_of_leaks
from likely.data.validation import read_table
from likely.datasets import penguins
from likely.errors import LeakWarning
from likely.typing import AnyArray


def leaks(X: Any, y: Any, weights: Any = None, columns: Any = None) -> dict[str, Leak]:
    classes, codes = np.unique(y, return_inverse=True)
    return {leak.column: leak for leak in find_leaks(read_table(X, 0), codes, classes, weights, columns)}


def tables() -> dict[str, tuple[pd.DataFrame, AnyArray]]:
    found = {}
    for load in (load_iris, load_wine, load_breast_cancer):
        data = load(as_frame=True)
        found[load.__name__] = data.data, data.target_names[data.target]
    birds = penguins()
    return found | {"penguins": (birds.drop(columns="species"), birds["species"].to_numpy())}


def leaking(y: AnyArray, rng: np.random.Generator) -> dict[str, AnyArray]:
    """Columns that leak the class."""
    classes, codes = np.unique(y, return_inverse=True)
    n, order, digits = len(y), rng.permutation(len(classes)), rng.integers(0, 10, len(y))
    noisy, wrong = codes.copy(), rng.choice(n, round(0.005 * n), replace=False)
    noisy[wrong] = (noisy[wrong] + 1) % len(classes)
    gone = codes == np.argmax(np.bincount(codes))
    return {
        "the label": y,
        "whole numbers": 3 * order[codes],
        "other strings": np.array([f"v{k}" for k in order])[codes],
        "refined": np.array([f"{k}{digit}" for k, digit in zip(order[codes], digits, strict=True)]),
        "refined numbers": 10 * order[codes] + digits,
        "with errors": noisy,
        "strings with errors": np.array([f"v{k}" for k in order])[noisy],
        "a measurement": 10.0 * order[codes] + rng.random(n),
        "missing numbers": np.where(gone, np.nan, rng.normal(size=n)),
        "missing strings": np.where(gone, None, rng.choice(["p", "q"], n)),  # type: ignore[call-overload]
    }


@pytest.mark.parametrize("name", tables())
def test_real_columns_do_not_leak_and_copies_of_the_label_do(name: str) -> None:
    X, y = tables()[name]
    assert not leaks(X, y)
    added = leaking(y, np.random.default_rng(0))
    found = leaks(X.assign(**added), y)
    assert list(found) == list(added)
    assert {column for column, leak in found.items() if leak.what == "missingness"} == {
        "missing numbers",
        "missing strings",
    }
    assert min(leak.accuracy for leak in found.values()) >= 0.99


@pytest.mark.parametrize("classes", [2, 3, 40])
def test_leaks_of_many_rows_and_classes_are_found_on_a_sample(classes: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, 20_000)
    X = pd.DataFrame(rng.normal(size=(20_000, 3)), columns=["a", "b", "c"]).assign(d=rng.integers(0, 900, 20_000))
    assert list(leaks(X.assign(**leaking(y, rng)), y)) == list(leaking(y, rng))


def test_rare_classes_leak_by_copies_of_the_label_and_not_by_columns_without_it() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(4000) % 50 == 0
    X = pd.DataFrame({"x": rng.normal(size=4000) + 3.0 * y, "constant": 1, "b": rng.integers(0, 2, 4000)})
    assert not leaks(X, y)
    added = leaking(y, rng)
    del added["with errors"], added["strings with errors"]
    assert set(added) - {"a measurement"} <= set(leaks(X.assign(**added), y))


def test_few_rows_of_noise_rarely_leak() -> None:
    found = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 60))
        X = pd.DataFrame(rng.integers(0, rng.integers(2, 30), (n, 20)).astype(float))
        X = X.mask(rng.random(X.shape) < 0.1).add_prefix("c")
        X["text"] = rng.choice(list("abcdefgh"), n)
        found += len(leaks(X, rng.integers(0, rng.integers(2, 5), n)))
    assert found == 0


def test_a_leak_needs_more_rows_than_chance() -> None:
    assert not leaks(pd.DataFrame({"x": np.repeat([1.0, 2.0], 5)}), np.repeat(["a", "b"], 5))
    assert leaks(pd.DataFrame({"x": np.repeat([1.0, 2.0], 15)}), np.repeat(["a", "b"], 15))
    assert not leaks(pd.DataFrame({"x": np.arange(30)}), np.repeat("a", 30))


def test_identifiers_do_not_leak_even_if_the_rows_are_sorted_by_class_or_repeated() -> None:
    rng, n = np.random.default_rng(0), 400
    y = np.sort(rng.integers(0, 2, n))
    X = pd.DataFrame({"id": np.arange(n), "name": [f"row {i}" for i in range(n)], "x": rng.normal(size=n)})
    assert not leaks(X, y)
    assert not leaks(pd.concat([X, X]).drop(columns="id"), np.r_[y, y])
    assert not leaks(X.drop(columns="id"), y, np.full(n, 3.0))


def test_ties_in_rows_that_are_sorted_by_class_do_not_leak() -> None:
    rng, n = np.random.default_rng(0), 4000
    y = np.sort(rng.integers(0, 2, n))
    X = pd.DataFrame({"few": rng.integers(0, 10, n), "rounded": rng.normal(size=n).round(2)})
    assert not leaks(X, y)


def test_weights_count_as_rows() -> None:
    y = np.array(["no", "no", "yes", "yes"])
    X = pd.DataFrame({"alive": ["n", "n", "y", "y"], "sex": ["f", "m", "f", "m"]})
    weights = np.array([40.0, 30.0, 20.0, 30.0])
    rows = np.repeat(np.arange(4), weights.astype(int))
    weighted, repeated = leaks(X, y, weights), leaks(X.iloc[rows], y[rows])
    assert weighted == repeated
    assert list(weighted) == ["alive"]
    assert list(leaks(X[["alive"]].iloc[rows], y[rows])) == ["alive"]
    rng = np.random.default_rng(0)
    frame, labels, counts = pd.DataFrame({"x": rng.normal(size=200)}), rng.integers(0, 2, 200), rng.integers(0, 4, 200)
    frame = frame.assign(copy=labels, noise=rng.integers(0, 9, 200))
    again = leaks(frame.iloc[np.repeat(np.arange(200), counts)], np.repeat(labels, counts))
    assert leaks(frame, labels, counts.astype(float)) == again


@pytest.mark.parametrize("read", [np.asarray, pd.DataFrame])
def test_arrays_and_chosen_columns_are_searched(read: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = np.column_stack([y + 1.0, rng.normal(size=300), 10.0 - y])
    names = {read_table(read(X), 0).names[j] for j in (0, 2)}
    assert set(leaks(read(X), y)) == names
    assert set(leaks(read(X), y, columns=[1, 2])) == names - {read_table(read(X), 0).names[0]}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, None])
def test_columns_of_any_type_are_searched(library: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    columns = {
        "one class": y == 1,
        "large": 2**60 + y,
        "texts": np.array(["x", "y", "z"])[y],
        "nothing": [None] * 300,
        "fractions": rng.random(300),
    }
    if library is not None:
        assert list(leaks(library(columns), y)) == ["large", "texts"]
    else:
        rows = scipy.sparse.csr_array(np.column_stack([rng.random((300, 20)) < 0.1, y]).astype(float))
        assert list(leaks(rows, y)) == ["x20"]


def test_nothing_leaks_where_there_is_nothing_to_predict() -> None:
    X, y = pd.DataFrame({"x": [1.0, 2.0]}), np.array(["a", "b"])
    assert not leaks(X, y, np.zeros(2))
    assert not leaks(X, y, columns=[])
    assert not leaks(X[:1], y[:1])


def test_messages_name_the_column_what_leaks_and_the_class() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["alive", "dead"], 100)
    X = pd.DataFrame({"status": y, "boat": np.where(y == "dead", np.nan, rng.normal(size=200))})
    wrong = X.assign(status=np.roll(y, 1))
    assert [leak.message for leak in leaks(X, y).values()] == [
        "'status' alone predicts 100% of the rows",
        "where 'boat' is missing, and only there, the class is 'dead'",
    ]
    assert leaks(wrong, y)["status"].message == "'status' alone predicts 99% of the rows"


def test_one_warning_names_the_first_leaks_and_the_remedy() -> None:
    found = [Leak(f"c{i}", "value", 1.0, f"'c{i}' alone predicts 100% of the rows") for i in range(7)]
    with pytest.warns(LeakWarning) as caught:
        warn_of_leaks(found)
    (warning,) = caught
    text = str(warning.message)
    assert "'c4' alone predicts 100% of the rows, and 2 more columns. " in text
    assert "families={'c0': None, 'c1': None, 'c2': None, 'c3': None, 'c4': None}" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_leaks([])
