"""`scan` reads the same rows from every format, as often as asked."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from likely import GenerativeClassifier, GenerativeRegressor, Imputer, NaiveBayes, SoftmaxRegression, scan
from likely.data.parts import PartSource, source_of
from likely.engines.base import Scan
from tests.unit.engines.tables import mixed_table, plain, read, write

NAMES = ("rows.parquet", "rows.csv", "rows.csv.gz", "rows.csv.zst", "rows.jsonl", "rows.jsonl.gz", "rows.feather")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scan")
    for name in (*NAMES[:3], *NAMES[4:], "rows.arrows", "rows.db"):
        write(mixed_table(), folder / name)
    with pa.OSFile(str(folder / "rows.csv")) as plain_text:
        content = plain_text.read()
    with pa.output_stream(str(folder / "rows.csv.zst"), compression="zstd") as sink:
        sink.write(content)
    return folder


def registered(table: pa.Table) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("the_rows", table)
    return connection


CONNECTION = duckdb.connect()  # relations do not keep theirs open
OBJECTS: dict[str, Callable[[str], Any]] = {
    "sqlite": lambda path: scan(path.replace(".parquet", ".db"), table="rows"),
    "sqlite query": lambda path: scan(path.replace(".parquet", ".db"), sql="select * from rows;"),
    "sql": lambda path: scan(sql=f"select * from '{path}'"),
    "connection": lambda path: scan(sql="select * from the_rows", connection=registered(pq.read_table(path))),
    "table": lambda path: scan(table="the_rows", connection=registered(pq.read_table(path))),
    "relation": lambda path: source_of(CONNECTION.from_parquet(path)),
    "lazy frame": lambda path: source_of(pl.scan_parquet(path)),
    "dataset": lambda path: source_of(ds.dataset(path)),
    "filtered dataset": lambda path: source_of(ds.dataset(path).filter(pc.field("count") >= 0)),
    "ParquetFile": lambda path: source_of(pq.ParquetFile(path)),
    "reader": lambda path: source_of(pq.read_table(path).to_reader(max_chunksize=64)),
    "scanner": lambda path: source_of(ds.dataset(path).scanner()),
    "iterator": lambda path: scan(iter(pq.read_table(path).to_batches(max_chunksize=64))),
}


def source(folder: Path, name: str) -> Any:
    return OBJECTS[name](str(folder / "rows.parquet")) if name in OBJECTS else scan(folder / name)


@pytest.mark.parametrize("name", [*NAMES, "rows.arrows", *OBJECTS])
def test_every_source_has_the_rows_of_the_frame_in_every_pass(folder: Path, name: str) -> None:
    frame = mixed_table()
    rows = source(folder, name)
    assert isinstance(rows, PartSource)
    assert isinstance(rows, Scan)
    assert rows.columns == tuple(frame.columns)
    if name.startswith("sqlite"):
        frame["flag"] = frame["flag"].astype(float)  # SQLite has no booleans
    for _ in range(2):
        pd.testing.assert_frame_equal(read(rows), plain(frame))
    assert rows.rows == len(frame)
    assert sum(rows.compute(lambda i, part: sum(len(chunk) for chunk in part.chunks()))) == len(frame)
    for column in rows.columns:
        assert repr(column) in repr(rows)
    assert "500 rows" in repr(rows)


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "sql", "lazy frame", "rows.feather"])
def test_a_scan_gives_the_model_of_the_frame(folder: Path, name: str) -> None:
    frame = mixed_table()
    whole = NaiveBayes().fit(pl.from_pandas(frame), "label")
    parts = NaiveBayes().fit(source(folder, name), "label")
    rows = pl.from_pandas(frame.drop(columns="label"))
    assert {k: repr(v) for k, v in parts.families_.items()} == {k: repr(v) for k, v in whole.families_.items()}
    np.testing.assert_allclose(parts.predict_proba(rows), whole.predict_proba(rows), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["connection", "reader", "sqlite"])
def test_families_are_chosen_from_a_source_that_is_read_several_times(folder: Path, name: str) -> None:
    frame = pa.Table.from_pandas(mixed_table(), preserve_index=False)
    if name == "sqlite":
        frame = frame.set_column(3, "flag", frame["flag"].cast("int64"))
    model = GenerativeClassifier().fit(source(folder, name), "label")
    whole = GenerativeClassifier().fit(frame, "label")
    assert {k: repr(v) for k, v in model.families_.items()} == {k: repr(v) for k, v in whole.families_.items()}
    rows = frame.drop_columns("label")
    np.testing.assert_allclose(model.predict_proba(rows), whole.predict_proba(rows), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_scan_of_files_can_be_pickled(folder: Path, name: str) -> None:
    copy = pickle.loads(pickle.dumps(scan(folder / name)))
    pd.testing.assert_frame_equal(read(copy), plain(mixed_table()))
    part = pickle.loads(pickle.dumps(copy.parts()[0]))
    assert len(next(part.chunks())) > 0


def test_frames_and_arrays_stay_what_they_are() -> None:
    for X in (np.zeros((2, 2)), mixed_table(), pa.table({"a": [1]}), pl.DataFrame({"a": [1]}), "rows.csv", [[1.0]]):
        assert source_of(X) is X
    generator = (i for i in range(2))
    assert source_of(generator) is generator


@pytest.mark.parametrize("lazy", [lambda f: pl.from_pandas(f).lazy(), lambda f: pa.Table.from_pandas(f).to_reader()])
def test_estimators_take_lazy_frames_and_readers_as_they_are(lazy: Any) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "y": np.arange(60) % 2})
    frame["a"] += frame["y"]
    X = frame[["a", "b"]]
    for model in (NaiveBayes(), SoftmaxRegression(penalty=1.0)):
        expected = model.fit(frame, "y").predict_proba(X)
        np.testing.assert_allclose(model.fit(lazy(frame), "y").predict_proba(lazy(X)), expected, atol=1e-9)
    line = GenerativeRegressor().fit(X, "a").predict(X)
    np.testing.assert_allclose(GenerativeRegressor().fit(lazy(X), "a").predict(lazy(X)), line, atol=1e-9)
    partial = pd.DataFrame({"a": [0.5, None], "b": [None, 0.1]})
    np.testing.assert_allclose(
        Imputer().fit(lazy(X)).transform(partial), Imputer().fit(X).transform(partial), atol=1e-9
    )
