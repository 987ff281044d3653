"""Whoever takes rows and labels takes the name of the labels' column too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from likely import (
    EvidenceClassifier,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    Imputer,
    LinearDiscriminant,
    NaiveBayes,
    QuadraticDiscriminant,
    SoftmaxRegression,
    TextClassifier,
    compare,
    cross_validate,
    select,
)
from likely.errors import InputError

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
CLASSIFIERS = [
    NaiveBayes(),
    GenerativeClassifier(),
    LinearDiscriminant(),
    QuadraticDiscriminant(),
    HybridClassifier(blend=0.5),
    SoftmaxRegression(),
]


def columns(seed: int = 0, rows: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(2, size=rows)
    u, v = rng.normal(codes, 1.0), rng.normal(size=rows)
    return {"u": u, "v": v, "t": np.array(["no", "yes"])[codes], "w": u + rng.normal(size=rows), "z": v - u}


class Chunks:
    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def chunks(self) -> Iterator[Any]:
        return (self.frame[start : start + 25] for start in range(0, len(self.frame), 25))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_labels_in_a_list_may_be_names_of_columns(model: Any, library: str) -> None:
    table = {name: cells for name, cells in columns().items() if name in "uvw"}
    labels = np.where(columns()["t"] == "no", "u", "v")
    X = LIBRARIES[library](table)
    fitted, again = clone(model).fit(X, labels.tolist()), clone(model).fit(X, labels)
    assert fitted.n_features_in_ == 3
    assert_allclose(fitted.predict_proba(X), again.predict_proba(X))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_a_classifier_is_scored_by_the_name_of_its_labels(model: Any, library: str) -> None:
    table = {name: cells for name, cells in columns().items() if name in "uvt"}
    make = LIBRARIES[library]
    frame, rows = make(table), make({name: table[name] for name in "uv"})
    weights = np.arange(60.0)
    model.fit(frame, "t")
    assert model.score(frame, "t", weights) == model.score(rows, table["t"], weights)
    with pytest.raises(InputError, match="y='s' is not a column of X: 'u', 'v', 't'"):
        model.score(frame, "s")
    with pytest.raises(InputError, match="y='t' is the name of a column, but X is not a data frame"):
        model.score(np.column_stack([table["u"], table["v"]]), "t")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("targets", ["w", ["w", "z"]])
def test_a_regression_is_scored_by_the_names_of_its_targets(library: str, targets: Any) -> None:
    table = {name: cells for name, cells in columns().items() if name in ["u", "v", *targets]}
    make = LIBRARIES[library]
    frame, rows = make(table), make({name: table[name] for name in "uv"})
    y = table[targets] if isinstance(targets, str) else np.column_stack([table[name] for name in targets])
    model = GenerativeRegressor().fit(frame, targets)
    assert_allclose(model.score(frame, targets), model.score(rows, y), rtol=1e-12)
    assert_allclose(model.log_predictive(frame, targets), model.log_predictive(rows, y), rtol=1e-12)
    with pytest.raises(InputError, match="'s'"):
        model.score(frame, "s")


@pytest.mark.parametrize("name", ["t", 7])
def test_chunks_are_scored_by_the_name_of_their_target(name: Any) -> None:
    table = pd.DataFrame(columns()).rename(columns={"t": name, "u": 0, "v": 1} if name == 7 else {"t": name})
    table = table.drop(columns=["w", "z"])
    model = NaiveBayes().fit(Chunks(table), name)
    assert model.score(Chunks(table), name) == model.score(table, name)
    numbers = pd.DataFrame(columns()).drop(columns="t")
    line = GenerativeRegressor().fit(Chunks(numbers), "w")
    assert_allclose(line.score(Chunks(numbers), "w"), line.score(numbers, "w"), rtol=1e-12)


def test_folds_and_comparisons_take_the_name_of_the_labels() -> None:
    frame = pd.DataFrame(columns()).drop(columns=["w", "z"])
    rows, y = frame[["u", "v"]], frame["t"]
    named, given = cross_validate(NaiveBayes(), frame, "t", 3), cross_validate(NaiveBayes(), rows, y, 3)
    assert_allclose(named.log_loss, given.log_loss)
    assert str(select(frame, "t")) == str(select(rows, y))
    told = [str(compare(X, labels, sizes=[20], repeats=2, random_state=0)) for X, labels in ((frame, "t"), (rows, y))]
    assert told[0] == told[1]


def test_transformers_leave_the_column_out_that_holds_the_labels() -> None:
    frame = pd.DataFrame(columns()).drop(columns=["w", "z"])
    rows = frame[["u", "v"]]
    projected = LinearDiscriminant().fit_transform(frame, "t")
    assert_allclose(projected, LinearDiscriminant().fit(rows, frame["t"]).transform(rows))
    incomplete = frame.copy()
    incomplete.loc[3, "u"] = np.nan
    filled = Imputer(NaiveBayes()).fit_transform(incomplete, "t")
    assert list(filled.columns) == ["u", "v"]
    model = NaiveBayes().fit(incomplete, "t")
    assert_allclose(model.impute(incomplete, "t"), model.impute(incomplete[["u", "v"]], incomplete["t"]))


@pytest.mark.parametrize("library", list(LIBRARIES))
def test_the_imputer_returns_its_own_columns_alone(library: str) -> None:
    table = columns()
    table["u"] = np.where(np.arange(len(table["u"])) == 3, np.nan, table["u"])
    table["w"] = np.abs(table["w"])
    table.pop("z")
    frame = LIBRARIES[library](table)
    imputer = Imputer(NaiveBayes()).fit(frame, "t", sample_weight="w")
    for filled in (imputer.transform(frame), imputer.fit_transform(frame, "t", sample_weight="w")):
        names = filled.column_names if library == "arrow" else list(filled.columns)
        assert names == list(imputer.get_feature_names_out()) == ["u", "v"]


@pytest.mark.parametrize("model", [*CLASSIFIERS, GenerativeRegressor()], ids=lambda model: type(model).__name__)
def test_names_of_targets_may_be_numbers(model: Any) -> None:
    table = columns()
    y = table["w"] if isinstance(model, GenerativeRegressor) else table["t"]
    frame = pd.DataFrame({0: table["u"], 1: y, 2: table["v"]})
    model.fit(frame, 1)
    assert model.score(frame, 1) == model.score(frame[[0, 2]], y)
    for name in (5, "1"):
        with pytest.raises(InputError, match=f"y={name!r} is not a column of X: 0, 1, 2"):
            model.fit(frame, name)


WEIGHED = [*CLASSIFIERS, EvidenceClassifier(["columns"]), GenerativeRegressor()]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("model", WEIGHED, ids=lambda model: type(model).__name__)
def test_weights_may_be_the_name_of_a_column_in_every_method(model: Any, library: str) -> None:
    target = "z" if isinstance(model, GenerativeRegressor) else "t"
    table = {name: cells for name, cells in columns().items() if name in ("u", "v", target)}
    weights = np.random.default_rng(1).integers(1, 4, 60).astype(float)
    frame = LIBRARIES[library]({**table, "count": weights})
    y, X = table.pop(target), LIBRARIES[library](table)
    named = clone(model).fit(frame, target, sample_weight="count")
    given = clone(model).fit(X, y, sample_weight=weights)
    assert named.feature_names_in_.tolist() == list(table)
    assert_array_equal(named.predict(X), given.predict(X))
    assert_array_equal(named.predict(frame), given.predict(X))
    score = given.score(X, y, sample_weight=weights)
    assert_allclose(named.score(frame, target, sample_weight="count"), score, rtol=1e-12)


def test_documents_take_weights_by_the_name_of_a_column() -> None:
    frame = pd.DataFrame({"text": ["a b", "a c", "d e", "d c"], "y": [0, 0, 1, 1], "count": [1.0, 3.0, 2.0, 1.0]})
    named = TextClassifier().fit(frame, "y", sample_weight="count")
    given = TextClassifier().fit(frame["text"], frame["y"], sample_weight=frame["count"])
    assert_array_equal(named.predict_proba(frame), given.predict_proba(frame["text"]))
    assert named.score(frame, "y", sample_weight="count") == 1.0
    named.partial_fit(frame, "y", sample_weight="count").forget(frame, "y", sample_weight="count")


@pytest.mark.parametrize("model", [NaiveBayes(), TextClassifier(column="x"), SoftmaxRegression(), EvidenceClassifier()])
def test_one_column_cannot_have_both_labels_and_weights(model: Any) -> None:
    frame = pd.DataFrame({"x": ["u", "v"] * 5, "z": np.arange(10.0), "y": [1, 2] * 5})
    with pytest.raises(InputError, match="both name the column 'y'"):
        model.fit(frame, "y", sample_weight="y")
