"""Forgotten rows leave no number and no category in the memory of a model, nor in its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely import (
    Categorical,
    EvidenceClassifier,
    Exponential,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    Histogram,
    LinearDiscriminant,
    NaiveBayes,
    NearestPrototype,
    Pairs,
    QuadraticDiscriminant,
    TextClassifier,
    VonMises,
    load,
)
from tests.unit.estimators.reachable import found_in, found_in_file

N, NUMBERS = 240, ["x", "z", "w"]
GONE = np.r_[0:40, 150:160]


def rows() -> tuple[pd.DataFrame, Any]:
    """Numbers, whole numbers, categories, identifiers and text; forgotten rows have some of them alone."""
    rng = np.random.default_rng(0)
    y = np.array(["no", "yes", "maybe"], dtype=object)[np.arange(N) % 3]
    town = rng.choice(["Rome", "Paris", "Oslo", "Bern"], N).astype(object)
    town[[5, 11]], town[17] = "Atlantis", "Utopia"
    level = rng.integers(0, 4, N)
    level[[3, 9]] = 770077
    body = rng.choice(["the quick brown fox jumps over it", "a lazy dog sleeps all the day"], N)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=N) + (y == "yes"),
            "z": rng.lognormal(sigma=2.0, size=N),
            "w": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
            "town": town,
            "level": level,
            "code": [f"id-{value:06d}" for value in rng.permutation(900_000)[:N]],
            "body": [f"{text} sentinel{i}x" for i, text in enumerate(body)],
        }
    )
    return X, y


def traces(X: pd.DataFrame) -> tuple[list[float], list[str]]:
    """Numbers and texts that forgotten rows alone have."""
    gone = X.iloc[GONE]
    numbers = [*(value for name in NUMBERS for value in gone[name].dropna()), 770077.0]
    return numbers, ["Atlantis", "Utopia", *gone["code"], *(f"sentinel{i}x" for i in GONE)]


def check_forgotten(model: Any, X: pd.DataFrame, path: Path) -> None:
    """Nothing of the forgotten rows is left, nor comes back with predictions or a file."""
    numbers, words = traces(rows()[0])
    assert found_in(model, numbers, words) == {}
    kept = X.drop(index=X.index[GONE])
    before = model.predict(kept)
    assert found_in(model, numbers, words) == {}
    model.save(path)
    assert found_in_file(path, numbers, words) == {}
    assert list(load(path).predict(kept)) == list(before)


FORMS: dict[str, Any] = {
    "plain": lambda X: X,
    "categories": lambda X: X.assign(town=X["town"].astype("category"), code=X["code"].astype("category")),
}
VIEWS: list[Any] = [
    *("auto", ["columns"], ["joint"], ["scores"], ["histogram"], ["pairs"], ["neighbours"], ["trees"]),
    *(["text", "columns"], ["columns", LinearDiscriminant()]),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("views", VIEWS, ids=str)
def test_no_view_keeps_what_forgotten_rows_had(views: Any, form: str, tmp_path: Path) -> None:
    X, y = rows()
    X = FORMS[form](X) if isinstance(views[-1], str) else X[["x", "z", "level"]]
    model = EvidenceClassifier(views, n_trees=5).fit(X, y)
    model.predict(X)
    numbers, words = traces(rows()[0])
    if isinstance(views[-1], str):
        assert "Atlantis" in found_in(model, numbers, words)
    check_forgotten(model.forget(X.iloc[GONE], y[GONE]), X, tmp_path / "model")


def test_rows_that_were_added_later_or_in_another_model_are_forgotten_too(tmp_path: Path) -> None:
    X, y = rows()
    first, second = np.setdiff1d(np.arange(N), GONE), GONE
    model = EvidenceClassifier(n_trees=5).fit(X.iloc[first], y[first])
    other = EvidenceClassifier().fit(X.iloc[second], y[second], structure_of=model)
    check_forgotten((model + other).forget(X.iloc[GONE], y[GONE]), X, tmp_path / "sum")
    added = model.partial_fit(X.iloc[second], y[second])
    check_forgotten(added.forget(X.iloc[GONE], y[GONE]), X, tmp_path / "added")


def test_similar_rows_are_forgotten_as_points_too() -> None:
    X, y = rows()
    X = X[NUMBERS]
    model = EvidenceClassifier(["neighbours"]).fit(X, y)
    encoding = model.model_.encoding
    points = [
        (X[name].iloc[GONE].dropna() - each.centre) / each.unit for name, each in zip(X, encoding.numbers, strict=True)
    ]
    numbers = np.concatenate([part.to_numpy() for part in points])
    assert len(found_in(model.model_, numbers, [])) == len(numbers)
    assert found_in(model.forget(X.iloc[GONE], y[GONE]), numbers, []) == {}


def test_two_models_know_the_categories_of_both() -> None:
    X, y = rows()
    X = X[["x", "z", "town"]]
    model = EvidenceClassifier(["columns", "histogram"]).fit(X, y)
    other = EvidenceClassifier().fit(X, y, structure_of=model)
    both = model.forget(X.iloc[GONE], y[GONE]) + other
    assert "Atlantis" in both.model_.encoding.vocabularies[0]
    assert "Atlantis" not in model.model_.encoding.vocabularies[0]


MODELS: list[tuple[Any, list[str]]] = [
    (GenerativeClassifier(), ["x", "z", "w", "town", "level", "code"]),
    (NaiveBayes(), ["x", "z", "w", "town", "level", "code"]),
    (GenerativeClassifier({("town", "level"): Categorical()}), ["x", "town", "level"]),
    (GenerativeClassifier(Pairs()), ["town", "level"]),
    (GenerativeClassifier({"w": Gaussian()}), ["w", "z", "body", "town"]),
    (NaiveBayes(Histogram()), ["x", "z"]),
    (NaiveBayes(Gamma()), ["z"]),
    (NaiveBayes(Exponential()), ["z"]),
    (NaiveBayes(VonMises()), ["x"]),
    (LinearDiscriminant(), ["x", "z"]),
    (QuadraticDiscriminant(), ["x", "z"]),
    (NearestPrototype(), ["x", "z"]),
    (TextClassifier(column="body"), ["body"]),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("model", "columns"), MODELS, ids=lambda part: type(part).__name__)
def test_no_estimator_keeps_what_forgotten_rows_had(model: Any, columns: list[str], form: str, tmp_path: Path) -> None:
    X, y = rows()
    X = (FORMS[form](X) if {"town", "code"} <= set(columns) else X)[columns]
    fitted = model.fit(X, y)
    fitted.predict(X)
    check_forgotten(fitted.forget(X.iloc[GONE], y[GONE]), X, tmp_path / "model")


def test_enumerations_of_polars_and_dropped_classes_are_forgotten_too(tmp_path: Path) -> None:
    X, _ = rows()
    towns = pl.Enum(sorted(X["town"].unique()))
    frame = pl.from_pandas(X[["x", "town"]]).with_columns(pl.col("town").cast(towns))
    y = np.where(np.isin(np.arange(N), GONE), "gone", np.array(["no", "yes"])[np.arange(N) % 2])
    for model in (NaiveBayes(), GenerativeClassifier()):
        dropped = model.fit(frame, y).drop_class("gone")
        assert found_in(dropped, [], ["Atlantis", "Utopia", "gone"]) == {}
        assert "Rome" in found_in(dropped, [], ["Rome"])
        assert dropped.sample(5, random_state=0)[0]["town"].dtype == pl.Enum(["Bern", "Oslo", "Paris", "Rome"])


def test_a_regression_keeps_no_number_of_forgotten_rows(tmp_path: Path) -> None:
    X, _ = rows()
    numbers = X[NUMBERS[:2]]
    model = GenerativeRegressor().fit(numbers, numbers["x"] + 1.0)
    model.forget(numbers.iloc[GONE], numbers["x"].iloc[GONE] + 1.0)
    check_forgotten(model, numbers, tmp_path / "model")
