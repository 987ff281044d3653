"""Text columns in chunks and in batches, against the fit of the whole table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from likely import Categorical, Gaussian, GenerativeClassifier, Multinomial, NaiveBayes, Text
from likely.errors import EarlyChoiceWarning

DATA = Path(__file__).parents[2] / "data" / "sms_spam.csv"
TEXT = Text(smoothing=0.1, merge_rare=False, exponent=0.5, length_exponent=0.0)
OTHERS = {"length": Gaussian("diagonal"), "shout": Categorical(categories={"shout": ["no", "yes"]})}


class Source:
    """A frame that is read in chunks."""

    def __init__(self, frame: pd.DataFrame, size: int) -> None:
        self.frame, self.size = frame, size

    def chunks(self) -> Iterator[pd.DataFrame]:
        for start in range(0, len(self.frame), self.size):
            yield self.frame[start : start + self.size]


@pytest.fixture(scope="module")
def sms() -> pd.DataFrame:
    table = pd.read_csv(DATA, keep_default_na=False, na_values=[""]).iloc[:300]
    columns = {
        "body": table["text"],
        "length": table["text"].str.len().astype(float),
        "shout": np.where(table["text"].str.contains("!"), "yes", "no"),
        "label": table["label"],
    }
    found = pd.DataFrame(columns)
    found.loc[[3, 150, 299], "body"] = None
    return found


def in_batches(model: Any, frame: pd.DataFrame, size: int) -> Any:
    for part in Source(frame, size).chunks():
        model.partial_fit(part, "label")
    return model


@pytest.mark.parametrize("size", [7, 128])
@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        Text(smoothing=0.1, merge_rare=True, exponent=0.5),
        Text(family=Multinomial(), exponent=0.3, length_exponent=0.5),
        Text(CountVectorizer(vocabulary=["free", "call", "you", "now"]), smoothing=0.5, exponent=1.0),
    ],
    ids=str,
)
def test_chunks_and_batches_equal_the_whole_table(text: Text, size: int, sms: pd.DataFrame) -> None:
    model: Any = GenerativeClassifier({"body": text} | OTHERS, calibration=None)
    X = sms.drop(columns="label")
    expected = model.fit(sms, "label").predict_proba(X)
    assert_allclose(clone(model).fit(Source(sms, size), "label").predict_proba(X), expected, rtol=0, atol=1e-9)
    assert_allclose(in_batches(clone(model), sms, size).predict_proba(X), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("calibration", [None, "auto"])
def test_chunks_choose_the_options_of_text_as_the_whole_table(calibration: Any, sms: pd.DataFrame) -> None:
    X = sms.drop(columns="label")
    whole = GenerativeClassifier(calibration=calibration).fit(sms, "label")
    chunked = GenerativeClassifier(calibration=calibration).fit(Source(sms, 110), "label")
    assert isinstance(chunked.families_["body"], Text)
    assert_allclose(chunked.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-9)


def test_batches_keep_the_options_of_the_first_one(sms: pd.DataFrame) -> None:
    X = sms.drop(columns="label")
    first = GenerativeClassifier(calibration=None).partial_fit(sms[:150], "label")
    whole = GenerativeClassifier(first.families_, calibration=None).fit(sms, "label")
    model = first.partial_fit(sms[150:], "label")
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("families", [None, {"body": Text()}, Text(), {"body": Text(smoothing=0.5)}], ids=str)
def test_a_small_first_batch_that_determines_options_of_text_is_named(families: Any, sms: pd.DataFrame) -> None:
    with pytest.warns(EarlyChoiceWarning, match=r"options of text, and it has 60 rows: column 'body'.*Text\("):
        NaiveBayes(families).partial_fit(sms[["body"]][:60], sms["label"][:60])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NaiveBayes(families).partial_fit(sms[["body"]][:100], sms["label"][:100])
        NaiveBayes({"body": TEXT}).partial_fit(sms[["body"]][:60], sms["label"][:60])
