"""Copies of rows, and groups of the user, in cross-validation, selection and learning curves."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import likely
from likely import EvidenceClassifier, GenerativeClassifier, LinearDiscriminant, NaiveBayes, TextClassifier
from likely.data import row_draw
from likely.errors import InputError
from likely.evaluation import copies as copies_module
from likely.evaluation.copies import DistinctRows, equal_rows
from likely.evaluation.group_folds import assign_groups

RNG = np.random.default_rng(0)


def noise_twice(rows: int = 240, times: int = 2) -> tuple[pd.DataFrame, Any]:
    """Noise, every row of which occurs several times, in random order."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(rows, 3)), rng.permutation(np.arange(rows) % 2)
    order = rng.permutation(rows * times) % rows
    return pd.DataFrame(X[order], columns=list("abc")), np.array(["no", "yes"])[y[order]]


def same_fold(found: Any, X: Any, y: Any = None) -> bool:
    table = pd.DataFrame(np.asarray(X)).assign(fold=found.fold)
    if y is not None:
        table["y"] = y
    return bool((table.groupby([name for name in table if name != "fold"])["fold"].nunique() == 1).all())


@pytest.mark.parametrize(
    "model",
    [EvidenceClassifier(), GenerativeClassifier(), KNeighborsClassifier(1)],
    ids=lambda model: type(model).__name__,
)
def test_noise_with_copies_has_the_error_of_a_coin(model: Any) -> None:
    X, y = noise_twice()
    found = likely.cross_validate(model, X, y, 5)
    assert same_fold(found, X)
    assert found.copies == 240
    assert "240 of 480 rows are copies of another row" in str(found)
    assert abs(found.error.mean() - 0.5) < 0.1
    assert_array_equal(found.rows, 96)
    for label in ("no", "yes"):
        assert_array_equal(np.bincount(found.fold[y == label]), 48)


def test_copies_that_are_held_out_apart_make_scores_too_good_and_are_noted() -> None:
    X, y = noise_twice()
    found = likely.cross_validate(KNeighborsClassifier(1), X, y, 5, copies="apart")
    assert found.error.mean() < 0.2
    assert found.copies == 240
    assert "the scores may be too good" in str(found)
    for i, (_, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
        assert_array_equal(np.flatnonzero(found.fold == i), test)
    splitter = likely.cross_validate(KNeighborsClassifier(1), X, y, StratifiedKFold(5))
    assert "the scores may be too good" in str(splitter)
    halves = likely.cross_validate(KNeighborsClassifier(1), X, y, [(np.arange(240), np.arange(240, 480))])
    assert "the scores may be too good" in str(halves)


def test_rows_without_copies_have_no_note() -> None:
    X, y = noise_twice(times=1)
    found = likely.cross_validate(LinearDiscriminant(), X, y, 5)
    assert found.copies == 0
    assert "cop" not in str(found)


@pytest.mark.parametrize(
    "turn",
    [
        lambda frame: frame.to_numpy(),
        lambda frame: frame.to_numpy().tolist(),
        lambda frame: frame.to_numpy(dtype=object),
        pl.from_pandas,
        pa.Table.from_pandas,
        lambda frame: scipy.sparse.csr_array(frame.to_numpy()),
        lambda frame: frame.to_dict("records"),
    ],
    ids=["array", "list", "objects", "polars", "arrow", "sparse", "records"],
)
@pytest.mark.parametrize("model", [NaiveBayes(), KNeighborsClassifier(1)], ids=lambda model: type(model).__name__)
def test_the_kind_of_table_does_not_change_the_folds(turn: Callable[[Any], Any], model: Any) -> None:
    X, y = noise_twice(60)
    expected = likely.cross_validate(model, X, y, 5)
    if isinstance(model, KNeighborsClassifier) and isinstance(turn(X), list) and isinstance(turn(X)[0], dict):
        return
    found = likely.cross_validate(model, turn(X), y, 5)
    assert_array_equal(found.fold, expected.fold)
    assert found.copies == expected.copies == 60


def test_rows_of_all_types_of_columns_are_compared() -> None:
    frame = pd.DataFrame(
        {
            "number": [1.0, 1.0, np.nan, np.nan, 0.0, -0.0, 1.0],
            "text": ["a", "a", None, None, "b", "b", "a"],
            "whole": [2**60, 2**60, 3, 3, 4, 4, 2**60 + 1],
            "when": pd.to_datetime(["2020-01-01"] * 2 + [None] * 2 + ["2021-01-01"] * 3),
            "kind": pd.Categorical(["x", "x", "y", "y", None, None, "x"]),
            "maybe": pd.array([1, 1, None, None, 2, 2, 1], dtype="Int64"),
        }
    )
    expected = [0, 0, 2, 2, 4, 4, 6]
    assert equal_rows(frame).tolist() == expected
    assert equal_rows(pl.from_pandas(frame)).tolist() == expected
    assert equal_rows(pa.Table.from_pandas(frame)).tolist() == expected
    assert equal_rows(np.array([["a", 1], ["a", 1], ["a", 2]], dtype=object)).tolist() == [0, 0, 2]
    assert equal_rows(["good", "bad", "good"]).tolist() == [0, 1, 0]


def test_rows_that_differ_in_the_last_of_many_columns_are_no_copies() -> None:
    X = np.tile(RNG.normal(size=12), (5, 1))
    X[3, 11] += 1.0
    assert equal_rows(X).tolist() == [0, 0, 0, 3, 0]
    assert equal_rows(scipy.sparse.csr_array(X)).tolist() == [0, 0, 0, 3, 0]


def test_equal_features_with_other_labels_are_in_the_same_fold_and_are_no_copies() -> None:
    X = np.repeat(RNG.normal(size=(50, 2)), 2, axis=0)
    y = np.tile(["a", "b"], 50)
    found = likely.cross_validate(LinearDiscriminant(), X, y, 5)
    assert found.copies == 0
    assert same_fold(found, X)


def test_cells_of_a_table_are_separate_observations_by_default() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 600), "grade": rng.choice(["1", "2", "3"], 600)})
    y = (rng.random(600) < np.where(frame["sex"] == "f", 0.7, 0.2)).astype(int)
    found = likely.cross_validate(NaiveBayes(), frame, y, 5)
    assert "600 rows have only 6 combinations of values" in str(found)
    assert_array_equal(found.fold, likely.cross_validate(NaiveBayes(), frame, y, 5, copies="apart").fold)
    together = likely.cross_validate(NaiveBayes(), frame, y, 3, copies="together")
    assert same_fold(together, frame)
    with pytest.raises(InputError, match=r"folds=10 is not between 2 and 6.*copies='apart'"):
        likely.cross_validate(NaiveBayes(), frame, y, 10, copies="together")
    with pytest.raises(InputError, match="copies"):
        likely.cross_validate(NaiveBayes(), frame, y, copies="both")


def test_a_minority_class_that_was_repeated_is_no_table_of_cells() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 3)), np.repeat(rng.normal(size=(12, 3)), 30, axis=0)])
    y = np.repeat([0, 1], [40, 360])
    found = likely.cross_validate(KNeighborsClassifier(1), X, y, 4)
    assert same_fold(found, X)
    assert found.copies == 348
    assert_array_equal(np.bincount(found.fold[y == 1]), 90)


def test_equal_rows_of_a_regression_have_equal_targets() -> None:
    rng = np.random.default_rng(0)
    dose = np.repeat([1.0, 2.0, 3.0], 20)[:, None]
    y = dose[:, 0] + rng.normal(size=60)
    found = likely.cross_validate(LinearRegression(), dose, y, 5)
    assert found.copies == 0
    expected = likely.cross_validate(LinearRegression(), dose + np.arange(60)[:, None] * 1e-9, y, 5)
    assert_array_equal(found.fold, expected.fold)
    X, twice = np.tile(rng.normal(size=(40, 2)), (2, 1)), np.tile(rng.normal(size=40), 2)
    found = likely.cross_validate(KNeighborsRegressor(1), X, twice, 5)
    assert found.copies == 40
    assert "40 of 80 rows are copies" in str(found)
    assert same_fold(found, X)
    assert found.squared_error.mean() > 0.5


def test_copies_of_texts_and_of_unlabeled_rows() -> None:
    texts = [f"word{i} and word{i % 7} then {i * i}" for i in range(40)] * 2
    y = np.tile(np.arange(40) % 2, 2)
    found = likely.cross_validate(TextClassifier(), texts, y, 4)
    assert found.copies == 40
    assert_array_equal(found.fold[:40], found.fold[40:])
    X, labels = noise_twice(60)
    labels = np.where(np.arange(120) % 3 == 0, None, labels)
    found = likely.cross_validate(NaiveBayes(), X, labels, 4)
    assert same_fold_of_labeled(found, X)
    assert 0 < found.copies < 60


def same_fold_of_labeled(found: Any, X: pd.DataFrame) -> bool:
    table = X.assign(fold=found.fold)[found.fold >= 0]
    return bool((table.groupby(list("abc"))["fold"].nunique() == 1).all())


# -------------------------------------------------------------------------------------------------------------- groups


@pytest.mark.parametrize("model", [NaiveBayes(), KNeighborsClassifier(1)], ids=lambda model: type(model).__name__)
def test_rows_of_a_group_are_in_one_fold(model: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.repeat([0, 1], 150)
    groups = rng.integers(0, 40, 300)
    found = likely.cross_validate(model, X, y, 5, groups=groups)
    assert all(len(set(found.fold[groups == g])) == 1 for g in range(40))
    assert np.ptp(found.rows) <= 12
    names = pd.DataFrame(X, columns=["a", "b"]).assign(patient=[f"p{g}" for g in groups])
    named = likely.cross_validate(model, names, y, 5, groups="patient")
    assert_array_equal(named.fold, found.fold)
    assert_allclose(named.log_loss, found.log_loss)
    split = likely.cross_validate(model, X, y, GroupKFold(5), groups=groups)
    for i, (_, test) in enumerate(GroupKFold(5).split(X, y, groups)):
        assert_array_equal(np.flatnonzero(split.fold == i), test)


def test_groups_of_regressions_selections_and_curves() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
    groups = np.arange(120) // 4
    judged = likely.cross_validate(LinearRegression(), X, X[:, 0], 5, groups=groups)
    assert all(len(set(judged.fold[groups == g])) == 1 for g in range(30))
    ranked = likely.select(X, y, [NaiveBayes(), LinearDiscriminant()], folds=5, groups=groups)
    expected = likely.cross_validate(NaiveBayes(), X, y, 5, groups=groups).log_loss.mean()
    found = next(each.log_loss for each in ranked.ranking if "Naive" in each.name)
    assert found == pytest.approx(expected)
    curve = likely.compare(X, y, {"one": NaiveBayes()}, sizes=[90], repeats=2, random_state=0, groups=groups)
    assert curve.points[0].size == 90


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": [1, 2]}, r"groups has the shape \(2,\), but X has 30 rows"),
        ({"groups": [None, *range(29)]}, "groups, row 0: the value is missing"),
        ({"groups": "patient"}, "groups='patient' is not the name of a column: X has the columns 'a', 'b'"),
        ({"groups": np.zeros(30)}, "folds=3 is not between 2 and 1, the number of groups"),
        ({"groups": np.arange(30), "folds": np.arange(30) % 3}, "groups= divides rows into a number of folds"),
        ({"folds": GroupKFold(3)}, "pass groups="),
    ],
    ids=["short", "missing", "name", "one group", "fold numbers", "splitter"],
)
def test_groups_that_cannot_be_used_are_errors(options: dict[str, Any], message: str) -> None:
    X, y = pd.DataFrame(RNG.normal(size=(30, 2)), columns=["a", "b"]), np.arange(30) % 2
    for model in (NaiveBayes(), DummyClassifier()):
        with pytest.raises(InputError, match=message):
            likely.cross_validate(model, X, y, **({"folds": 3} | options))


def test_splitters_get_the_classes_alone_of_rows_without_groups() -> None:
    X, y = RNG.normal(size=(30, 2)), np.arange(30) % 2
    found = likely.cross_validate(NaiveBayes(), X, y, KFold(3))
    assert_array_equal(found.fold, np.repeat([0, 1, 2], 10))


def test_groups_of_any_size_fill_the_folds_alike() -> None:
    rng = np.random.RandomState(0)
    sizes = np.concatenate([np.full(300, 1), rng.randint(1, 30, 60), [100]])
    groups = np.repeat(np.arange(len(sizes)), sizes)
    codes = rng.randint(0, 3, len(groups))
    fold = assign_groups(groups, codes, np.full(5, 0.2), rng)
    assert all(len(set(fold[groups == g])) == 1 for g in range(len(sizes)))
    for k in range(3):
        counts = np.bincount(fold[codes == k], minlength=5)
        assert np.ptp(counts) <= 4


# ------------------------------------------------------------------------------------- selection, curves and sources


def test_selection_and_curves_keep_copies_together() -> None:
    X, y = noise_twice()
    models = {"a": LinearDiscriminant(), "b": NaiveBayes()}
    ranked = likely.select(X, y, models, folds=5)
    assert "240 of 480 rows are copies of another row (equal in all columns and the label)" in str(ranked)
    assert "so its scores may be too good: folds=10 keeps them together" in str(likely.select(X, y, models))
    nearest = {"nearest": KNeighborsClassifier(1)}
    together = likely.compare(X, y, nearest, sizes=[300], repeats=3, random_state=0)
    apart = likely.compare(X, y, nearest, sizes=[300], repeats=3, random_state=0, copies="apart")
    assert abs(together.points[0].error.mean - 0.5) < 0.1
    assert apart.points[0].error.mean < 0.3
    assert "equal rows are in the same fold" in str(together)
    assert "the scores may be too good" in str(apart)


def test_a_class_whose_rows_are_all_equal_has_no_learning_curve() -> None:
    X = np.vstack([RNG.normal(size=(20, 2)), np.ones((20, 2))])
    with pytest.raises(InputError, match="copies='apart'"):
        likely.compare(X, np.repeat([0, 1], 20), {"a": NaiveBayes()}, repeats=1)


class Chunks:
    def __init__(self, frame: pd.DataFrame, size: int) -> None:
        self.parts = [frame[start : start + size] for start in range(0, len(frame), size)]

    def chunks(self) -> Iterator[Any]:
        yield from self.parts


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_draw, "MOST_DRAWN", 200)


@pytest.mark.usefixtures("_few")
def test_folds_of_sources_keep_copies_together_in_any_order_of_rows() -> None:
    X, y = noise_twice(600)
    frame = X.assign(y=y)
    histogram = {name: likely.Histogram(edges=np.linspace(-3, 3, 60)) for name in "abc"}
    model = NaiveBayes(histogram, calibration=None)
    found = likely.cross_validate(model, Chunks(frame, 170), "y", 5)
    assert found.copies == 600
    assert "600 of 1,200 rows are copies" in str(found)
    apart = likely.cross_validate(model, Chunks(frame, 170), "y", 5, copies="apart")
    assert apart.log_loss.mean() < found.log_loss.mean()
    order = np.random.default_rng(0).permutation(len(frame))
    shuffled = likely.cross_validate(model, Chunks(frame.iloc[order], 100), "y", 5)
    assert_array_equal(shuffled.confusion, found.confusion)
    assert shuffled.copies == 600
    assert pickle.loads(pickle.dumps(found)).copies == 600


@pytest.mark.usefixtures("_few")
def test_cells_of_sources_are_separate_observations() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 600), "y": rng.choice(["a", "b"], 600)})
    found = likely.cross_validate(NaiveBayes(), Chunks(frame, 200), "y", 5)
    assert "equal rows are taken for separate observations" in str(found)
    assert (found.rows > 80).all()
    with pytest.raises(InputError, match="groups is not supported for sources"):
        likely.cross_validate(NaiveBayes(), Chunks(frame, 200), "y", 5, groups="sex")


def test_distinct_rows_are_counted_exactly_up_to_a_number_and_estimated_beyond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copies_module, "MOST_KEPT", 4096)
    rng = np.random.default_rng(0)
    hashes = rng.integers(0, 2**63, 3000, dtype=np.uint64)
    few = DistinctRows.of(hashes[:2000]) + DistinctRows.of(hashes[1000:])
    assert (few.copies, few.exact, few.rows) == (1000, True, 4000)
    hashes = rng.integers(0, 2**63, 100_000, dtype=np.uint64)
    many = [DistinctRows.of(part) for part in np.array_split(np.tile(hashes, 2), 7)]
    total = many[0]
    for each in many[1:]:
        total = total + each
    assert not total.exact
    assert len(total.hashes) <= 4096
    assert abs(total.copies - 100_000) < 8_000
