"""Rendering of results: names that stay distinct, escaped HTML, aligned tables, and frames of any labels."""

from __future__ import annotations

import datetime
import enum
import html
import re
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likely
from likely.errors import MissingExtraError
from likely.model.rendering import TextTable, compact, distinct_names, limited, short_names, to_frame, with_error

NAMES = st.lists(st.text(min_size=0, max_size=80), min_size=1, max_size=8)
PREFIXED = st.lists(st.text(max_size=4), min_size=1, max_size=6).map(lambda ends: [f"{'x' * 50}{e}" for e in ends])


@given(NAMES | PREFIXED)
def test_different_names_stay_different(names: list[str]) -> None:
    short = short_names(names)
    assert len(set(short)) == len(set(names))
    assert all("\n" not in text for text in short)
    assert short == [short[names.index(name)] for name in names]


def test_long_names_are_cut_where_that_is_possible() -> None:
    names = [f"the measurement of the length in millimetres of part {i} of the bird" for i in range(3)]
    short = short_names(names)
    assert all(len(text) <= 32 and "…" in text for text in short)
    assert short_names(["short", "names"]) == ["short", "names"]
    assert short_names([1, "1"]) == ["1", "'1'"]
    assert short_names(["a", "a"]) == ["a", "a"]


def test_columns_are_aligned() -> None:
    lines = TextTable(("name", "value"), [["a", "1.5"], ["longer", "10.25"]], "title", more=3).lines()
    assert lines == ["title", "name    value", "a         1.5", "longer  10.25", "and 3 more"]


@given(st.text(max_size=20))
def test_html_shows_the_text_and_nothing_else(text: str) -> None:
    page = TextTable((text, "value"), [[text, "1"]], title=text).html()
    assert html.unescape(re.sub(r"<[^>]*>", "", page)) == f"{text}{text}value{text}1"


def test_numbers_of_any_size() -> None:
    assert with_error(0.12345, 0.01) == "0.1235 ± 0.0100"
    assert with_error(0.5, float("nan")) == "0.5000"
    assert with_error(None, None) == ""
    assert compact(2987.62, 153.8) == "2987.6 ± 153.8"
    assert compact(3.4812e-5, 1.5e-6) == "3.481e-05 ± 1.5e-06"
    assert compact(1.5e12) == "1.5e+12"
    assert compact(0.0, 0.0) == "0.0000 ± 0.0000"


def test_a_single_further_row_is_shown() -> None:
    assert limited([1, 2, 3], 2) == ([1, 2, 3], 0)
    assert limited([1, 2, 3, 4], 2) == ([1, 2], 2)


class Kind(enum.Enum):
    A = 1
    B = 2


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", None])
def test_labels_of_any_type_fit_into_frames(library: str | None) -> None:
    columns: dict[str, Any] = {
        "text": ["a", None],
        "number": [1, 2],
        "missing": [1, None],
        "numpy": np.array([1.5, 2.5]),
        "flag": [True, False],
        "date": [datetime.date(2020, 1, 1)] * 2,
        "enum": [Kind.A, Kind.B],
        "mixed": [1, "a"],
        "tuples": [(1, 2), (3, 4)],
        "none": [None, None],
    }
    frame = to_frame(columns, library)
    assert type(frame).__module__.startswith(library or "pandas")
    assert list(frame.column_names if library == "pyarrow" else frame.columns) == list(columns)
    if library in ("pandas", None):
        assert isinstance(frame, pd.DataFrame)
        assert frame["number"].tolist() == [1, 2]
        assert np.isnan(frame["missing"][1])
        assert frame["mixed"].tolist() == ["1", "a"]
        assert frame["enum"].tolist() == ["Kind.A", "Kind.B"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", None])
def test_text_that_is_not_valid_unicode_fits_into_frames(library: str | None) -> None:
    frame = to_frame({"text": ["\ud800", "a\\b", None, "é\0"], "number": np.arange(4)}, library)
    found = (frame if library in ("pandas", None) else frame.to_pandas())["text"]
    assert found.dropna().tolist() == ["\\ud800", "a\\b", "é\0"]


def test_names_of_columns_are_distinct() -> None:
    assert distinct_names(["true", True, "True"]) == ["true", "True", "'True'"]
    assert distinct_names([1, "1", 1.0, "'1'"]) == ["1", "'1'", "1.0", "\"'1'\""]


def test_without_matplotlib_plots_name_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    model = likely.LinearDiscriminant().fit(X, y)
    results = model.explain(X), model.reliability(X, y), likely.compare(X, y, sizes=[8], repeats=2, random_state=0)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for result in results:
        with pytest.raises(MissingExtraError, match=r'matplotlib.* pip install "likely\[plot\]"'):
            result.plot()
