"""Columns are found by name, and rows may be dictionaries; rows with other columns are an error that names them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import StandardScaler

import likely
from likely import (
    Categorical,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    Imputer,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    NearestPrototype,
    QuadraticDiscriminant,
    SoftmaxRegression,
)
from likely.errors import InputError

rng = np.random.default_rng(0)
A = pd.DataFrame(rng.normal(size=(40, 4)) * [1.0, 10.0, 100.0, 1000.0], columns=["a", "b", "c", "d"])
Y = np.arange(40) % 2
MODELS: list[Any] = [
    GenerativeClassifier(),
    NaiveBayes(),
    LinearDiscriminant(),
    QuadraticDiscriminant(),
    NearestPrototype(),
    SoftmaxRegression(),
    SoftmaxRegression(basis=StandardScaler()),
    HybridClassifier(blend=0.5),
    MixtureModel(2, random_state=0),
    GenerativeRegressor(),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)
KINDS: dict[str, Any] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "numbers as names": lambda frame: frame.rename(columns=dict(zip("abcd", [10, 3, 7, 0], strict=True))),
}


def permuted(frame: Any, order: list[int]) -> Any:
    names = list(frame.columns) if not isinstance(frame, pa.Table) else frame.column_names
    return frame.select([names[j] for j in order]) if not isinstance(frame, pd.DataFrame) else frame.iloc[:, order]


def methods(model: Any) -> list[str]:
    names = ("predict", "predict_proba", "decision_function", "log_density", "transform", "impute", "novelty")
    return [name for name in names if hasattr(model, name)]


@every_model
@pytest.mark.parametrize("kind", KINDS)
def test_columns_in_another_order_are_the_same_columns(model: Any, kind: str) -> None:
    if "basis" in repr(model) and kind == "numbers as names":
        pytest.skip("scikit-learn's transformers need names of text")
    X = KINDS[kind](A)
    model = type(model)(**model.get_params(deep=False)).fit(X, Y)
    for order in ([3, 2, 1, 0], [1, 0, 3, 2]):
        for name in methods(model):
            if name in ("impute", "novelty"):
                continue
            assert_allclose(getattr(model, name)(permuted(X, order)), getattr(model, name)(X), err_msg=name)
    if hasattr(model, "impute"):
        filled = model.impute(permuted(X, [3, 2, 1, 0]))
        assert filled.equals(permuted(X, [3, 2, 1, 0]))


@every_model
def test_updates_and_scores_find_columns_by_name(model: Any) -> None:
    model = type(model)(**model.get_params(deep=False)).fit(A, Y)
    again = A[["d", "b", "a", "c"]]
    if not isinstance(model, MixtureModel):
        assert model.score(again, Y) == model.score(A, Y)
    if hasattr(model, "partial_fit"):
        other = type(model)(**model.get_params(deep=False)).fit(A, Y).partial_fit(A, Y)
        model.partial_fit(again, Y)
        assert_allclose(model.predict(A), other.predict(A))
        model.forget(again, Y)
    if hasattr(model, "left_out_proba") and not isinstance(model, MixtureModel):
        assert_allclose(model.left_out_proba(again, Y), model.left_out_proba(A, Y))


def test_a_loaded_model_finds_columns_by_name(tmp_path: Path) -> None:
    for frame in (A, KINDS["numbers as names"](A)):
        model = NaiveBayes().fit(frame, Y)
        model.save(tmp_path / "model")
        loaded = likely.load(tmp_path / "model")
        assert_allclose(loaded.predict_proba(frame.iloc[:, ::-1]), model.predict_proba(frame))
        with pytest.raises(InputError, match="now missing"):
            loaded.predict(frame.iloc[:, 1:])


@every_model
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_other_columns_are_an_error_with_their_names(model: Any, kind: str) -> None:
    make = KINDS[kind]
    model = type(model)(**model.get_params(deep=False)).fit(make(A), Y)
    wrong = {
        r"now missing:\n- b\nAdd the missing columns": A.drop(columns="b"),
        r"unseen at fit time:\n- e\n.*now missing:\n- b\nRename": A.rename(columns={"b": "e"}),
    }
    for words, frame in wrong.items():
        for name in methods(model):
            with pytest.raises(InputError, match=words):
                getattr(model, name)(make(frame))
        if hasattr(model, "partial_fit"):
            with pytest.raises(InputError, match=words):
                model.partial_fit(make(frame), Y)


@every_model
def test_arrays_with_another_number_of_columns_are_an_error(model: Any) -> None:
    model = type(model)(**model.get_params(deep=False)).fit(A.to_numpy(), Y)
    for name in methods(model):
        with pytest.raises(InputError, match=r"X has 3 features, but .* is expecting 4 features as input"):
            getattr(model, name)(A.to_numpy()[:, :3])


def test_the_imputer_finds_columns_by_name() -> None:
    incomplete = A.copy()
    incomplete.iloc[::3, 1] = np.nan
    imputer = Imputer().fit(incomplete)
    assert_allclose(imputer.transform(incomplete[["d", "c", "b", "a"]])["b"], imputer.transform(incomplete)["b"])
    with pytest.raises(InputError, match="now missing"):
        imputer.transform(incomplete.drop(columns="c"))


def test_warnings_where_only_one_of_fit_and_predict_has_names() -> None:
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named = NaiveBayes().fit(A, Y).predict_proba(A.to_numpy())
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        unnamed = NaiveBayes().fit(A.to_numpy(), Y).predict_proba(A)
    assert_allclose(named, unnamed)


# Rows as dictionaries.


def test_rows_as_dictionaries_are_the_rows_of_a_frame() -> None:
    frame = A.assign(e=["x", "y"] * 20)
    rows = frame.to_dict("records")
    labels = [str(label) for label in Y]
    families = {"e": Categorical()}
    whole = NaiveBayes(families, calibration=None).fit(frame, labels)
    single = NaiveBayes(families, calibration=None).fit(frame[:30], labels[:30])
    for row, label in zip(rows[30:], labels[30:], strict=True):
        single.partial_fit(row, label)
    assert_allclose(single.predict_proba(frame), whole.predict_proba(frame))
    assert_allclose(
        NaiveBayes(families, calibration=None).fit(rows, labels).predict_proba(rows), whole.predict_proba(frame)
    )
    assert_allclose(whole.predict_proba(rows[3]), whole.predict_proba(frame[3:4]))
    assert_allclose(whole.predict_proba(dict(reversed(rows[3].items()))), whole.predict_proba(frame[3:4]))
    assert whole.score(rows[3], labels[3]) in (0.0, 1.0)
    assert whole.forget(rows[3], labels[3]).statistics_.counts.rows.sum() == 39
    with_target = [{**row, "species": label} for row, label in zip(rows, labels, strict=True)]
    named = NaiveBayes(families).fit(with_target, "species")
    assert_allclose(named.predict_proba(rows), NaiveBayes(families).fit(frame, labels).predict_proba(frame))
    assert whole.partial_fit(with_target[0], "species").statistics_.counts.rows.sum() == 40


def test_a_model_is_learnt_from_dictionaries_alone() -> None:
    model = NaiveBayes()
    for value, label in [(1.5, "x"), (2.5, "y"), (1.0, "x"), (3.0, "y")]:
        model.partial_fit({"a": value}, label)
    assert model.predict_proba({"a": 1.5}).shape == (1, 2)
    assert model.predict([{"a": 1.0}, {"a": 3.0}]).tolist() == ["x", "y"]
    assert model.predict_proba({"a": None}).shape == (1, 2)
    regression = GenerativeRegressor().partial_fit({"a": 1.0}, 2.0).partial_fit([{"a": 2.0}, {"a": 3.0}], [4.0, 6.1])
    assert regression.predict({"a": 2.0}).shape == (1,)
    assert SoftmaxRegression().fit([{"a": 1.0}, {"a": 2.0}], ["x", "y"]).predict({"a": 2.0}).tolist() == ["y"]


def test_wrong_dictionaries_are_an_error_with_a_remedy() -> None:
    model = NaiveBayes().fit(A, Y)
    row = A.to_dict("records")[0]
    cases: list[tuple[Any, str]] = [
        ({"a": 1.0}, "now missing"),
        ([row, 3], "row 1: 3 is not a dictionary"),
        ({"a": [1.0, 2.0]}, "dictionary of columns.*pandas.DataFrame"),
        ({"a": A["a"]}, "dictionary of columns.*pandas.DataFrame"),
        ([row, {**row, "a": "text"}], "Column 'a': values of the types 'float', 'str'"),
        ({**row, 5: 1.0}, "Use text for the names of columns"),
        ({}, "no columns"),
    ]
    for wrong, words in cases:
        with pytest.raises(InputError, match=words):
            model.predict(wrong)
