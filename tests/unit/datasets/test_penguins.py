"""The penguins: the same table in the frame library that is installed."""

from __future__ import annotations

import sys

import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from likely.datasets import penguins
from tests.helpers import load_table


@pytest.mark.parametrize(
    ("absent", "kind"), [((), pd.DataFrame), (("pandas",), pl.DataFrame), (("pandas", "polars"), pa.Table)]
)
def test_the_penguins_are_a_frame_of_the_first_library_that_is_installed(
    monkeypatch: pytest.MonkeyPatch, absent: tuple[str, ...], kind: type
) -> None:
    for library in absent:
        monkeypatch.setitem(sys.modules, library, None)
    found = penguins()
    monkeypatch.undo()
    frame = nw.from_native(found, eager_only=True)
    assert type(found) is kind
    expected = load_table("penguins")
    assert frame.columns == expected.columns.tolist()
    assert sum(frame[name].null_count() for name in frame.columns) == int(expected.isna().sum().sum()) == 19
    for name in frame.columns:
        assert frame[name].drop_nulls().to_list() == expected[name].dropna().tolist()
