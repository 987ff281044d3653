"""The progress line of passes over sources: rows, rows per second and the time left."""

from __future__ import annotations

import io
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likely import Gaussian, NaiveBayes, scan, select
from likely.numerics import progress
from likely.numerics.progress import RowProgress

DECLARED = NaiveBayes({"x": Gaussian("diagonal")}, calibration=None)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def rows(self) -> list[str]:
        """The numbers of rows in the lines that were shown, such as ``50 of 200``."""
        return [str(re.split(r" rows, .* rows/s", line)[0]) for line in re.split(r"[\r\n]+", self.getvalue()) if line]


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in place of the standard error; pytest sets that again before each test."""
    monkeypatch.setattr(progress, "DELAY", -1.0)
    monkeypatch.setattr(sys, "stderr", found := Terminal())
    return found


@pytest.fixture
def table() -> pa.Table:
    return pa.table({"x": [0.5 * i % 7 for i in range(200)], "label": ["a", "b"] * 100})


def test_the_line_counts_every_chunk_of_a_single_part(monkeypatch: pytest.MonkeyPatch, table: pa.Table) -> None:
    shown = terminal(monkeypatch)
    DECLARED.fit(table.to_reader(max_chunksize=50), "label")
    assert list(dict.fromkeys(shown.rows())) == ["50", "100", "150", "200"]


def test_the_line_has_the_number_of_all_rows_where_it_is_known(
    monkeypatch: pytest.MonkeyPatch, table: pa.Table, tmp_path: Path
) -> None:
    shown = terminal(monkeypatch)
    for i in range(4):
        pq.write_table(table[50 * i : 50 * i + 50], tmp_path / f"{i}.parquet")
    DECLARED.fit(scan(tmp_path), "label")
    assert shown.rows()[-1] == "200 of 200"
    assert " s left" in shown.getvalue()


def test_predictions_in_files_and_drawn_rows_are_counted_too(
    monkeypatch: pytest.MonkeyPatch, table: pa.Table, tmp_path: Path
) -> None:
    shown = terminal(monkeypatch)
    model = NaiveBayes().fit(table.to_pandas(), "label")
    assert not shown.rows()
    model.predict_to(table.to_reader(max_chunksize=50), tmp_path / "out.csv")
    assert shown.rows() == ["50", "100", "150", "200"]
    select(table.to_reader(max_chunksize=100), "label", [NaiveBayes()])
    assert shown.rows()[4:6] == ["100", "200"]


def test_rows_that_another_process_reads_are_counted_when_their_sums_arrive() -> None:
    seen: list[int] = []
    here = RowProgress(seen.append)
    elsewhere: Any = pickle.loads(pickle.dumps(here))
    elsewhere.read(100)
    here.summed(100)
    here.read(150)  # of these, 100 are among the rows whose sums have arrived
    assert seen == [100, 150]


def test_nothing_is_shown_without_a_terminal(monkeypatch: pytest.MonkeyPatch, table: pa.Table) -> None:
    monkeypatch.setattr(progress, "DELAY", -1.0)
    monkeypatch.setattr(sys, "stderr", text := io.StringIO())
    DECLARED.fit(table.to_reader(max_chunksize=50), "label")
    assert not text.getvalue()
    assert isinstance(DECLARED.predict(pd.DataFrame({"x": [0.5]}))[0], str)
