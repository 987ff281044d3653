"""Fits and evaluations of classifiers warn about labels that are probably not classes, once for each kind."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely import (
    EvidenceClassifier,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    LinearDiscriminant,
    NaiveBayes,
    SoftmaxRegression,
    TextClassifier,
    cross_validate,
    select,
)
from likely.data import row_draw
from likely.errors import TargetWarning

RNG = np.random.default_rng(5)
N = 120
X = pd.DataFrame({"u": RNG.normal(size=N), "v": RNG.normal(size=N)})
MODELS: dict[str, Any] = {
    "generative": GenerativeClassifier,
    "naive": NaiveBayes,
    "discriminant": LinearDiscriminant,
    "evidence": lambda: EvidenceClassifier(["columns", "joint"]),
    "hybrid": lambda: HybridClassifier(blend=0.5),
    "softmax": SoftmaxRegression,
}
SPELLED = np.array(["yes", "no", "Yes", "yes "] * 30)


@dataclass
class Chunked:
    """The rows of a frame in chunks."""

    frame: pd.DataFrame
    size: int

    def chunks(self) -> Iterator[pd.DataFrame]:
        for start in range(0, len(self.frame), self.size):
            yield self.frame.iloc[start : start + self.size]


def target_warnings(call: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in found if each.category is TargetWarning]


@pytest.mark.parametrize("name", list(MODELS))
def test_labels_that_differ_by_case_or_blanks_are_shown_in_quotes_with_the_remedy(name: str) -> None:
    (message,) = target_warnings(lambda: MODELS[name]().fit(X, SPELLED))
    assert message == (
        "y has 3 labels that differ only by case or by blanks at the ends: 'Yes', 'yes', 'yes '. They are separate "
        "classes. Merge them with y.str.strip().str.lower() in pandas, or y.str.strip_chars().str.to_lowercase() in "
        "Polars."
    )
    assert target_warnings(lambda: MODELS[name]().fit(X, np.repeat(["yes", "no"], N // 2))) == []


@pytest.mark.parametrize("target", [pd.Series(SPELLED), pl.Series(SPELLED), SPELLED.tolist(), pd.Categorical(SPELLED)])
def test_any_kind_of_labels_is_checked(target: Any) -> None:
    assert len(target_warnings(lambda: NaiveBayes().fit(X, target))) == 1


@pytest.mark.parametrize("name", ["generative", "naive", "evidence", "hybrid", "softmax"])
def test_a_source_is_checked_as_a_whole(name: str) -> None:
    y = np.where(np.arange(N) < 60, "yes", "YES")
    source = Chunked(X.assign(y=y), 60)
    assert len(target_warnings(lambda: MODELS[name]().fit(source, "y"))) == 1
    once = np.where(np.arange(N) % 60 == 0, "rare", "usual").astype(object)  # one row in each chunk
    once[1::2] = "other"
    assert target_warnings(lambda: MODELS[name]().fit(Chunked(X.assign(y=once), 60), "y")) == []


@pytest.mark.parametrize("rows", ["frame", "small source", "large source"])
def test_evaluations_from_sums_check_the_target_once(rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if rows == "large source":
        monkeypatch.setattr(row_draw, "MOST_DRAWN", 50)
    frame = X.assign(y=SPELLED)
    source = frame if rows == "frame" else Chunked(frame, 60)
    (message,) = target_warnings(lambda: cross_validate(NaiveBayes(), source, "y", folds=3))
    assert "'Yes', 'yes', 'yes '" in message
    assert target_warnings(lambda: select(source, "y", {"naive": NaiveBayes()})) == [message]
    if rows == "frame":
        assert target_warnings(lambda: select(source, "y", {"naive": NaiveBayes()}, folds=3)) == [message]


def test_documents_are_checked() -> None:
    texts = ["good film", "bad film", "good plot", "bad plot"] * 6
    (message,) = target_warnings(lambda: TextClassifier().fit(texts, ["p", "n", "P", "n "] * 6))
    assert "'P', 'p'" in message
    assert "There is 1 more such group." in message


@pytest.mark.parametrize("form", ["${:.2f}", "{:.1f}", "{:,.2f} €", "{:.1f}%"])
def test_numbers_in_text_are_reported_with_the_regressor(form: str) -> None:
    y = [form.format(value) for value in np.repeat(np.linspace(1.0, 2000.0, 40), 3)]
    (message,) = target_warnings(lambda: NaiveBayes().fit(X, y))
    assert message.startswith("y has 40 distinct labels, which are numbers in text, such as ")
    assert "GenerativeRegressor" in message


def test_distinct_labels_are_reported_with_their_number() -> None:
    (message,) = target_warnings(lambda: NaiveBayes().fit(X, np.arange(N)))
    assert message == (
        "y has 120 distinct labels in 120 rows, such as 0, 1, 2: this is probably a number or an identifier. Use "
        "GenerativeRegressor to predict numbers, or pass classes."
    )


def test_a_class_of_one_row_is_reported() -> None:
    y = np.repeat(["a", "b"], N // 2).astype(object)
    y[7] = "lonely "
    (message,) = target_warnings(lambda: NaiveBayes().fit(X, y))
    assert message.startswith("The class 'lonely ' has one row, which cannot be both learnt and scored.")
    y[8] = "other"
    (message,) = target_warnings(lambda: NaiveBayes().fit(X, y))
    assert message.startswith("The classes 'lonely ', 'other' have one row each,")


def test_codes_and_few_rows_are_no_reason_for_a_warning() -> None:
    codes = [f"{value:03d}" for value in np.repeat(np.arange(40), 3)]
    assert target_warnings(lambda: NaiveBayes().fit(X, codes)) == []
    assert target_warnings(lambda: NaiveBayes().fit(X, np.repeat(np.arange(60), 2))) == []
    assert target_warnings(lambda: NaiveBayes().fit(X.head(6), ["a", "b", "a", "b", "a", "c"])) == []
    y = np.repeat(["a", "b"], N // 2)
    y[0] = "c"
    weights = np.where(y == "c", 30.0, 1.0)  # thirty equal rows
    assert target_warnings(lambda: NaiveBayes().fit(X, y, sample_weight=weights)) == []
    assert target_warnings(lambda: GenerativeRegressor().fit(X, np.arange(N))) == []
