"""Rows that can be read once are kept in a temporary file, which is deleted with the scan."""

from __future__ import annotations

import gc
import io
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from likely import EvidenceClassifier, HybridClassifier, NaiveBayes, SoftmaxRegression, TextClassifier, scan
from likely.engines.base import Scan
from likely.engines.spool import Spool
from likely.errors import LikelyError, SourceError
from tests.unit.engines.tables import mixed_table, plain, read, write

TABLE = pa.table({"x": np.arange(1000), "k": pa.array(["a", "b"] * 500).dictionary_encode()})


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def numbers(chunks: Iterable[pa.Table]) -> list[int]:
    return [x for chunk in chunks for x in chunk["x"].to_pylist()]


def test_later_passes_read_the_temporary_file_which_is_deleted_with_the_scan(temporary: Path) -> None:
    rows = scan(TABLE.to_reader(max_chunksize=10))
    assert rows.rows is None
    for _ in range(3):
        assert pa.concat_tables(rows.chunks()).equals(TABLE)
    assert rows.rows == 1000
    assert len(list(temporary.iterdir())) == 1
    del rows
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_passes_that_end_early_or_overlap_lose_no_row(temporary: Path) -> None:
    rows = scan(iter(TABLE.to_batches(max_chunksize=100)))
    early: Any = rows.chunks()
    assert numbers(next(early) for _ in range(3)) == list(range(300))
    other = rows.chunks()
    assert numbers(next(other) for _ in range(5)) == list(range(500))
    assert numbers(next(early) for _ in range(4)) == list(range(300, 700))
    early.close()
    assert numbers(other) == list(range(500, 1000))
    assert numbers(rows.chunks()) == list(range(1000))
    assert temporary.is_dir()


def test_batches_of_another_type_are_an_error() -> None:
    rows = scan(iter([pa.table({"a": [1]}), pa.table({"a": ["x"]})]))
    with pytest.raises(
        SourceError, match=r"batch 1 has the columns \{'a': 'string'\}, and the first has \{'a': 'int64'\}"
    ):
        read(rows)


def test_a_reader_that_fails_is_an_error() -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise OSError("the line is dead")

    rows = scan(pa.RecordBatchReader.from_batches(TABLE.schema, failing()))
    with pytest.raises(SourceError, match=r"RecordBatchReader of Arrow cannot be read: .*the line is dead"):
        read(rows)


@pytest.mark.parametrize("second", [RuntimeError("stopped"), OSError("the line is dead"), "text", {"b": [1]}])
def test_a_pass_after_one_that_failed_is_an_error_and_not_the_end_of_the_rows(second: Any) -> None:
    def failing() -> Iterator[Any]:
        yield pa.table({"a": [1]})
        if isinstance(second, Exception):
            raise second
        yield pa.table(second) if isinstance(second, dict) else second
        yield pa.table({"a": [2]})

    rows = scan(failing())
    with pytest.raises((LikelyError, RuntimeError)):
        read(rows)
    with pytest.raises(SourceError, match="can be read once, and reading it has failed"):
        read(rows)


def test_an_iterator_without_rows_is_an_error() -> None:
    with pytest.raises(SourceError, match="yields nothing"):
        scan(iter([]))


def from_standard_input(content: bytes, monkeypatch: pytest.MonkeyPatch, format: str | None) -> Scan:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    return scan("-", format=format)


@pytest.mark.parametrize(("name", "format"), [("rows.csv", "csv"), ("rows.csv.gz", "csv"), ("rows.parquet", None)])
def test_the_standard_input_is_read_as_often_as_needed(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, name: str, format: str | None
) -> None:
    path = write(mixed_table(), temporary / name)
    rows = from_standard_input(path.read_bytes(), monkeypatch, format)
    path.unlink()
    for _ in range(2):
        pd.testing.assert_frame_equal(read(rows), plain(mixed_table()))
    assert "the standard input" in repr(rows)
    del rows
    gc.collect()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(("content", "problem"), [(b"", "standard-input.*is empty"), (b"a,b\n1,2\n", "Pass format=")])
def test_a_standard_input_without_rows_or_format_is_an_error(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, problem: str
) -> None:
    with pytest.raises(SourceError, match=problem):
        from_standard_input(content, monkeypatch, None)
    assert list(temporary.iterdir()) == []


TWO_PASSES = [
    NaiveBayes(),
    SoftmaxRegression(),
    EvidenceClassifier(["columns"]),
    HybridClassifier(blend=0.5),
    TextClassifier(column="k"),
]


@pytest.mark.parametrize("model", TWO_PASSES, ids=lambda model: type(model).__name__)
def test_methods_of_several_passes_take_readers(model: Any) -> None:
    rng = np.random.default_rng(0)
    code = rng.integers(0, 2, 60)
    table = pa.table({"x": rng.normal(size=60) + code, "y": code})
    if isinstance(model, TextClassifier):
        table = table.append_column("k", pa.array(np.array(["good film", "bad film"])[code]))
    model.fit(table.to_reader(max_chunksize=7), "y")
    assert model.score(table.to_reader(max_chunksize=7), "y") == model.score(table, "y")
    if hasattr(model, "partial_fit"):
        model.partial_fit(table.to_reader(max_chunksize=7), "y")
        model.forget(table.to_reader(max_chunksize=7), "y")


ONCE = ["predict", "predict_proba", "predict_log_proba", "log_joint", "log_density", "typicality", "novelty", "decide"]


@pytest.fixture
def rows_of_two_classes() -> pa.Table:
    rng = np.random.default_rng(0)
    code = rng.integers(0, 2, 60)
    return pa.table({"x": rng.normal(size=60) + code, "z": rng.normal(size=60), "y": code})


@pytest.mark.parametrize("method", [*ONCE, "explain", "decision_function", "score_samples"])
@pytest.mark.parametrize("scanned", [False, True])
def test_predictions_write_no_temporary_file(
    temporary: Path, rows_of_two_classes: pa.Table, method: str, scanned: bool
) -> None:
    model = NaiveBayes().fit(rows_of_two_classes, "y")
    X = rows_of_two_classes.drop_columns("y")
    reader = X.to_reader(max_chunksize=7)
    expected = getattr(model, method)(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "mkstemp", refused)
        found = getattr(model, method)(scan(reader) if scanned else reader)
    assert list(temporary.iterdir()) == []
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected)


def refused(*args: Any, **kwargs: Any) -> Any:
    raise OSError("the disk is full")


@pytest.mark.parametrize("iterator", [False, True])
def test_predict_to_writes_no_temporary_file(temporary: Path, rows_of_two_classes: pa.Table, iterator: bool) -> None:
    table = rows_of_two_classes
    model = NaiveBayes().fit(table, "y")
    rows = scan(iter(table.to_batches(max_chunksize=7))) if iterator else table.to_reader(max_chunksize=7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "mkstemp", refused)
        assert model.predict_to(rows, temporary / "predicted.parquet") == 60
    assert [path.name for path in temporary.iterdir()] == ["predicted.parquet"]


def test_a_pass_after_predictions_without_a_copy_is_an_error(temporary: Path, rows_of_two_classes: pa.Table) -> None:
    model = NaiveBayes().fit(rows_of_two_classes, "y")
    rows = scan(rows_of_two_classes.to_reader(max_chunksize=7))
    model.predict(rows)
    for again in (lambda: model.predict(rows), lambda: read(rows), lambda: NaiveBayes().fit(rows, "y")):
        with pytest.raises(SourceError, match=r"a prediction has read the rows.*Pass a new one, or write the rows"):
            again()
    part: Any = scan(TABLE.to_reader(max_chunksize=10)).chunks_once()
    assert numbers([next(part)]) == list(range(10))


def test_predictions_after_a_fit_read_the_copy(temporary: Path, rows_of_two_classes: pa.Table) -> None:
    rows = scan(rows_of_two_classes.to_reader(max_chunksize=7))
    model = NaiveBayes().fit(rows, "y")
    for _ in range(2):
        np.testing.assert_array_equal(model.predict(rows), model.predict(rows_of_two_classes))
    assert len(list(temporary.iterdir())) == 1


def test_rows_that_could_not_be_kept_are_an_error_in_every_pass(temporary: Path) -> None:
    rows = scan(TABLE.to_reader(max_chunksize=10))
    chunks: Any = rows.chunks()
    next(chunks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Spool, "_sink", property(refused), raising=False)
        with pytest.raises(SourceError, match=r"for later passes, which failed: the disk is full. Set TMPDIR"):
            next(chunks)
    with pytest.raises(SourceError, match="its rows could not be kept"):
        read(rows)
    assert temporary.is_dir()
