"""First contact with files as they come: every decision is right, stated, and the same for all readers and splits."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import likely
from likely import EvidenceClassifier, GenerativeClassifier, NaiveBayes, VonMises, cross_validate, scan
from likely.errors import LeakWarning, LikelyWarning
from tests.journeys.first_files import FILES, FirstFile

PERIODS = {"month": 12.0, "weekday": 7.0, "day_of_year": 365.25, "hour": 24.0}
READERS: dict[str, Callable[[Path], Any]] = {
    "pandas": pd.read_csv,
    "polars": lambda path: pl.read_csv(path, infer_schema_length=None),
    "scan": scan,
}
RECOMMENDED = {"generative": GenerativeClassifier, "evidence": EvidenceClassifier}
each_file = pytest.mark.parametrize("name", FILES)
each_estimator = pytest.mark.parametrize("estimator", RECOMMENDED)
both = pytest.mark.parametrize(("name", "estimator"), [
    pytest.param(name, estimator, marks=pytest.mark.long if (name, estimator) == ("wvs_poverty", "evidence") else ())
    for name in FILES for estimator in RECOMMENDED
])  # fmt: skip


@dataclass(frozen=True)
class Fitted:
    """A model of the training rows of a file, and what it warned of."""

    model: Any
    messages: list[str]


@cache
def first_file(name: str) -> FirstFile:
    return FILES[name]()


@cache
def paths(name: str) -> tuple[Path, Path]:
    """CSV files of the training rows and of those held out, without the leak, and with labels without blanks."""
    file, folder = first_file(name), Path(mkdtemp())
    frame = file.frame.drop(columns=file.leaks).assign(**{file.target: file.labels})
    for part, rows in zip(("train", "held_out"), file.halves, strict=True):
        frame.iloc[rows].to_csv(folder / f"{part}.csv", index=False)
    return folder / "train.csv", folder / "held_out.csv"


@cache
def fitted(name: str, estimator: str, reader: str) -> Fitted:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LikelyWarning)
        model = RECOMMENDED[estimator]().fit(READERS[reader](paths(name)[0]), first_file(name).target)
    assert all(issubclass(warning.category, LikelyWarning) for warning in caught)
    return Fitted(model, [str(warning.message) for warning in caught])


@cache
def cleaned(name: str, estimator: str, periodic: bool = True) -> Any:
    """The model of the table cleaned by hand; the periodic parts of its dates have the family VonMises, or any."""
    file = first_file(name)
    parts = [(column, PERIODS.get(column.rpartition(".")[2])) for column in file.cleaned]
    families = {column: VonMises(period=period) for column, period in parts if period and periodic}
    rows = file.halves[0]
    return RECOMMENDED[estimator](families=families or None).fit(file.cleaned.iloc[rows], file.labels.iloc[rows])


def decisions(model: Any) -> dict[str, dict[str, Any]]:
    return {row["column"]: row for row in nw.from_native(model.columns_).iter_rows(named=True)}


def log_loss(probabilities: Any, classes: Any, labels: Any) -> float:
    codes = np.searchsorted(classes, labels)
    return float(-np.log(probabilities[np.arange(len(codes)), codes]).mean())


def is_code(file: FirstFile, column: str) -> bool:
    """Whether a column has digits with leading zeros, which pandas and Polars read as whole numbers."""
    cells = file.dirty[column]
    return file.decisions.get(column) == "Categorical" and isinstance(cells[0], str) and cells[0].startswith("0")


@each_estimator
@each_file
def test_every_column_of_a_first_file_has_its_decision(name: str, estimator: str) -> None:
    file, found = first_file(name), decisions(fitted(name, estimator, "pandas").model)
    assert list(found) == [column for column in file.dirty if column not in file.leaks]
    assert found.pop(file.target)["decision"] == "target"
    for column, row in found.items():
        stated = f"set aside: {row['reason']}" if row["decision"] == "set aside" else row["decision"]
        expected = file.decisions[column]
        assert stated.startswith(expected), column
        assert expected or row["decision"] != "set aside", column
        assert row["change"] or row["distinct"] < 2, column


@each_file
def test_numbers_in_text_become_what_the_numbers_themselves_become(name: str) -> None:
    file = first_file(name)
    found, clean = (
        decisions(model) for model in (fitted(name, "generative", "pandas").model, cleaned(name, "generative"))
    )
    for column in file.cleaned.columns.intersection(list(found)):
        for title in ("missing", "distinct", "decision", *(() if is_code(file, column) else ("type",))):
            assert found[column][title] == clean[column][title], (column, title)


@each_file
def test_words_among_numbers_are_counted_and_named(name: str) -> None:
    file, (train, _) = first_file(name), first_file(name).halves
    fit = fitted(name, "generative", "pandas")
    found = decisions(fit.model)
    for column in file.strays:
        cells = file.frame[column].iloc[train]
        words = cells[cells.notna() & file.cleaned[column].iloc[train].isna()]
        if len(words):
            start = f"Column '{column}' has numbers, and {len(words)} value"
            (message,) = (message for message in fit.messages if message.startswith(start))
            assert all(repr(word) in message for word in words.unique())
            assert "other text, read as missing" in found[column]["reason"]


@both
def test_all_readers_have_the_same_decisions_and_probabilities(name: str, estimator: str) -> None:
    file, held_out = first_file(name), paths(name)[1]
    first = fitted(name, estimator, "pandas").model
    expected, rows = first.predict_proba(pd.read_csv(held_out)), decisions(first)
    titles = ("column", "missing", "distinct", "decision", "change")
    codes = any(is_code(file, column) for column in file.dirty)
    for reader, read in READERS.items():
        model = fitted(name, estimator, reader).model
        for column, row in decisions(model).items():
            same = titles if is_code(file, column) else (*titles, "type", "reason")
            assert [row[title] for title in same] == [rows[column][title] for title in same], reader
        if not (codes and reader == "scan" and estimator == "evidence"):  # whose folds depend on the codes' text
            np.testing.assert_allclose(model.predict_proba(pd.read_csv(held_out)), expected, atol=1e-9, err_msg=reader)
        np.testing.assert_allclose(first.predict_proba(read(held_out)), expected, atol=1e-12, err_msg=reader)


@both
def test_a_first_file_predicts_as_well_as_the_table_cleaned_by_hand(name: str, estimator: str) -> None:
    file, (_, rows) = first_file(name), first_file(name).halves
    model, by_hand = fitted(name, estimator, "pandas").model, cleaned(name, estimator)
    labels = file.labels.iloc[rows].to_numpy()
    found = log_loss(model.predict_proba(pd.read_csv(paths(name)[1])), model.classes_, labels)
    best = log_loss(by_hand.predict_proba(file.cleaned.iloc[rows]), by_hand.classes_, labels)
    assert abs(found - best) < (1e-9 if estimator == "generative" else 0.005)


@each_file
def test_identifiers_and_dates_are_the_same_in_the_file_and_in_a_part_of_it(name: str) -> None:
    file = first_file(name)
    frame = file.frame.drop(columns=file.leaks).assign(**{file.target: file.labels})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        parts = [likely.columns(frame.iloc[rows], file.target) for rows in (slice(None), *file.halves)]
    for column, expected in file.decisions.items():
        if expected.startswith(("set aside", "expanded")):
            for part in parts:
                (row,) = part[part["column"] == column].itertuples()
                stated = f"set aside: {row.reason}" if row.decision == "set aside" else row.decision
                assert stated.startswith(expected), column


@pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning")
@each_file
def test_a_copy_of_the_label_under_other_names_is_named(name: str) -> None:
    file = first_file(name)
    frame = file.frame.assign(**{file.target: file.labels})[[*list(file.dirty)[:6], file.target, *file.leaks]]
    with pytest.warns(LeakWarning, match=repr(file.leaks[0])):
        model = NaiveBayes().fit(frame, file.target)
    assert "predict" in decisions(model)[file.leaks[0]]["reason"]


@pytest.mark.filterwarnings("ignore::likely.errors.ColumnWarning")
def test_labels_that_differ_by_blanks_are_shown_with_quotes() -> None:
    file = first_file("titanic")
    with pytest.warns(LikelyWarning, match="'died '"):
        model = NaiveBayes().fit(file.frame[["age", "fare", "sex", "label"]], "label")
    assert len(model.classes_) == 4


@pytest.mark.filterwarnings("ignore::likely.errors.ColumnWarning")
def test_copies_of_rows_are_in_one_fold() -> None:
    file = first_file("noaa_rain")
    frame = file.frame.drop(columns=file.leaks)
    result = cross_validate(NaiveBayes(), frame, "label")
    assert result.copies == round(0.06 * 900)
