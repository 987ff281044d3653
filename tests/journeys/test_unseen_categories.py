"""Categories that did not occur in training are reported in predictions, once for each call and column."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from likely import (
    Bernoulli,
    Categorical,
    EvidenceClassifier,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    Imputer,
    MixtureModel,
    NaiveBayes,
    TextClassifier,
)
from likely.errors import UnseenCategoriesWarning

RNG = np.random.default_rng(3)
ROWS = 240
Y = np.repeat(["a", "b"], ROWS // 2)
HOME = np.where(RNG.random(ROWS) < np.where(Y == "a", 0.7, 0.3), "RENT", "OWN")
X = pd.DataFrame({"home": HOME, "x": RNG.normal(size=ROWS) + (Y == "a")})
MODELS: dict[str, Any] = {
    "generative": GenerativeClassifier(),
    "naive": NaiveBayes(),
    "evidence": EvidenceClassifier(),
    "hybrid": HybridClassifier(blend=0.5),
    "mixture": MixtureModel(1),
    "joint table": GenerativeClassifier({("home", "other"): Categorical()}),
}


@dataclass
class Chunked:
    """The rows of a frame in chunks."""

    frame: pd.DataFrame
    size: int

    def chunks(self) -> Iterator[pd.DataFrame]:
        for start in range(0, len(self.frame), self.size):
            yield self.frame.iloc[start : start + self.size]


def rows(name: str) -> pd.DataFrame:
    return X.assign(other=np.where(X["x"] > 0.0, "p", "q")) if name == "joint table" else X


def fitted(name: str) -> Any:
    return MODELS[name].fit(rows(name), None if name == "mixture" else Y)


def unseen_in(call: Any) -> list[str]:
    """The messages about unseen categories of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in found if each.category is UnseenCategoriesWarning]


@pytest.mark.parametrize("name", list(MODELS))
def test_a_trailing_blank_is_reported_once_with_the_known_category(name: str) -> None:
    model, new = fitted(name), rows(name)
    new = new.assign(home=new["home"].replace("RENT", "RENT "))
    count = int((new["home"] == "RENT ").sum())
    (message,) = unseen_in(lambda: model.predict(new))
    first = int(np.argmax(new["home"] == "RENT "))
    assert message == (
        f"Column 'home': {count} of 240 values ({count / 240:.0%}) are unseen in training and count as missing, such "
        f"as 'RENT ' in row {first}. 'RENT ' differs from 'RENT' by a blank. Correct the values, or use normalize=True "
        "in the fit, which ignores case and blanks at the ends."
    )


@pytest.mark.parametrize("name", list(MODELS))
def test_one_row_with_an_unseen_category_is_reported_and_known_rows_are_not(name: str) -> None:
    model, new = fitted(name), rows(name)
    assert unseen_in(lambda: model.predict(new)) == []
    assert unseen_in(lambda: model.predict(new.head(1))) == []
    (message,) = unseen_in(lambda: model.predict(new.head(1).assign(home="MORTGAGE")))
    assert message.startswith("Column 'home': 1 of 1 value (100%) is unseen in training and count")
    if name != "hybrid":
        assert unseen_in(lambda: model.predict(new.head(3).assign(home=None))) == []


@pytest.mark.parametrize("name", ["generative", "evidence", "hybrid", "mixture"])
def test_chunks_are_reported_together(name: str) -> None:
    model, new = fitted(name), X.copy()
    new.loc[100:, "home"] = "rent"
    (message,) = unseen_in(lambda: model.predict(Chunked(new, 50)))
    assert "140 of 240 values (58%)" in message
    assert "'rent' in row 100" in message
    assert "by case." in message
    few = X.copy()
    few.loc[:9, "home"] = "rent"  # all of the first chunk, and 4% of all
    assert unseen_in(lambda: model.predict(Chunked(few, 10))) == []


def test_a_file_of_predictions_and_a_score_are_reported_once(tmp_path: Any) -> None:
    model, new = fitted("generative"), X.assign(home=X["home"].str.lower())
    (message,) = unseen_in(lambda: model.predict_to(Chunked(new, 50), tmp_path / "out.parquet", typicality=True))
    assert "240 of 240 values (100%)" in message
    source = Chunked(new.assign(y=Y), 50)
    (message,) = unseen_in(lambda: model.score(source, "y"))
    assert "240 of 240 values (100%)" in message


@pytest.mark.parametrize("name", ["generative", "evidence"])
def test_unseen_categories_are_ordinary_up_to_ten_times_their_proportion_in_training(name: str) -> None:
    tails = np.array([f"n{i}" if i % 50 == 0 else f"c{i % 7}" for i in range(1000)])  # 2% occur once
    y = np.repeat(["a", "b"], 500)
    frame = pd.DataFrame({"tail": tails, "x": RNG.normal(size=1000) + (y == "a")})
    model = GenerativeClassifier() if name == "generative" else EvidenceClassifier(["columns", "joint"])
    model.fit(frame, y)
    new = frame.head(100).copy()
    new.loc[:17, "tail"] = [f"new{i}" for i in range(18)]
    assert unseen_in(lambda: model.predict(new)) == []
    new.loc[:24, "tail"] = [f"new{i}" for i in range(25)]
    assert len(unseen_in(lambda: model.predict(new))) == 1
    assert len(unseen_in(lambda: model.predict(new.head(1)))) == 1  # 2% are unlikely in a single row


def test_values_that_are_mostly_unique_are_unseen_without_a_warning() -> None:
    y = np.repeat(["a", "b"], 150)
    frame = pd.DataFrame({"name": [f"n{i % 200}" for i in range(300)], "x": RNG.normal(size=300)})
    model = GenerativeClassifier({"name": Categorical()}).fit(frame, y)
    assert unseen_in(lambda: model.predict(frame.head(2).assign(name="other"))) == []
    assert len(unseen_in(lambda: model.predict(frame.head(9).assign(name="other")))) == 1


def test_numbers_that_are_categories_are_reported_where_text_was_read() -> None:
    frame = X.assign(zip=np.where(Y == "a", "02139", "10001"))
    for model in (GenerativeClassifier().fit(frame, Y), EvidenceClassifier(["columns", "joint"]).fit(frame, Y)):
        numbers = frame.assign(zip=frame["zip"].astype(int))
        assert unseen_in(partial(model.predict, numbers)) == []  # read as codes of five digits
        (message,) = unseen_in(partial(model.predict, numbers.astype({"zip": "category"})))
        assert "categories of type int, and the model knows categories of type str, such as '02139'" in message


def test_classes_of_a_regression_and_imputed_columns_are_reported() -> None:
    regression = GenerativeRegressor(classes="home").fit(X, X["x"] * 2.0)
    (message,) = unseen_in(lambda: regression.predict(X.assign(home=X["home"].str.lower())))
    assert "by case" in message
    imputer = Imputer().fit(X)
    (message,) = unseen_in(lambda: imputer.transform(X.assign(home=X["home"] + " ", x=np.nan)))
    assert "by a blank" in message


def test_the_nearest_category_is_found_by_spelling() -> None:
    model = fitted("generative")
    (message,) = unseen_in(lambda: model.predict(X.assign(home="RNET")))
    assert "The nearest known category is 'RENT'." in message


@pytest.mark.parametrize(
    ("value", "words"),
    [(" RENT ", "by blanks."), ("rent", "by case."), ("rent ", "by a blank and case."), ("\tRENT", "by a blank.")],
)
def test_the_difference_is_named(value: str, words: str) -> None:
    (message,) = unseen_in(lambda: fitted("naive").predict(X.assign(home=value)))
    assert f"{value!r} differs from 'RENT' {words}" in message


def test_unknown_terms_and_training_rows_have_no_warning() -> None:
    texts = ["good film", "bad film", "good plot", "bad plot"] * 5
    model = TextClassifier().fit(texts, ["p", "n"] * 10)
    assert unseen_in(lambda: model.predict(["unknown terms"])) == []
    new = X.assign(home="NEW")
    assert unseen_in(lambda: fitted("naive").partial_fit(new, Y)) == []


def test_a_constant_column_which_the_model_ignores_has_no_warning() -> None:
    frame = X.assign(same="s")
    assert unseen_in(lambda: GenerativeClassifier().fit(frame, Y).predict(frame.assign(same="t"))) == []


def test_columns_of_numbers_have_no_warning() -> None:
    ones = np.column_stack([RNG.integers(0, 2, ROWS), RNG.integers(0, 2, ROWS)])
    assert unseen_in(lambda: NaiveBayes(Bernoulli()).fit(ones, Y).predict(ones)) == []


def test_the_warning_does_not_name_forgotten_categories() -> None:
    model = EvidenceClassifier(n_trees=3).fit(X, Y)
    for gone in ("OWN", "RENT"):
        rest = model.fit(X, Y).forget(X[gone == HOME], Y[gone == HOME])
        kept = "OWN" if gone == "RENT" else "RENT"
        (message,) = unseen_in(partial(rest.predict, X.assign(home="MORTGAGE")))
        assert f"Known categories: '{kept}'. " in message
