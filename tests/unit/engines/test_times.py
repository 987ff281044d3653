"""Dates and times of all sources: their types, and instants that do not depend on the time zone of the computer."""

from __future__ import annotations

import json
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from likely import NaiveBayes, scan
from likely.data.parts import source_of
from likely.engines.spark import in_utc
from likely.errors import SourceError

ROWS = 300
START = datetime(2020, 3, 28, 22, 30, tzinfo=UTC)  # the clock of Berlin changes in the night
INSTANTS = [START + timedelta(hours=i) for i in range(ROWS)]
KINDS = {"day": nw.Date, "when": nw.Datetime, "instant": nw.Datetime, "clock": nw.Time}


@pytest.fixture(autouse=True)
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The computer is in another time zone than the times."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def table() -> pa.Table:
    naive = [each.replace(tzinfo=None) for each in INSTANTS]
    columns = {
        "day": pa.array([each.date() for each in INSTANTS], pa.date32()),
        "when": pa.array(naive, pa.timestamp("us")),
        "instant": pa.array(INSTANTS, pa.timestamp("us", "Europe/Berlin")),
        "clock": pa.array([each.time() for each in naive], pa.time64("us")),
        "x": pa.array(np.arange(ROWS) / 2),
        "label": pa.array(["a", "b"] * (ROWS // 2)),
    }
    return pa.table(columns)


def in_duckdb(folder: Path) -> Any:
    pq.write_table(table(), folder / "rows.parquet")
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    return scan(sql=f"select * from '{folder / 'rows.parquet'}'", connection=connection)


def database(folder: Path) -> Any:
    pq.write_table(table(), folder / "rows.parquet")
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.execute(f"create table rows as select * from '{folder / 'rows.parquet'}'")
    return scan(folder / "rows.duckdb", table="rows")


def partition(i: int) -> pd.DataFrame:
    """A third of the rows."""
    third = ROWS // 3
    return table().slice(i * third, third).to_pandas(types_mapper=pd.ArrowDtype)


def parquet(folder: Path) -> Any:
    pq.write_table(table(), folder / "rows.parquet", row_group_size=100)
    return scan(folder / "rows.parquet")


def feather(folder: Path) -> Any:
    pyarrow.feather.write_feather(table(), folder / "rows.feather")
    return scan(folder / "rows.feather")


SOURCES: dict[str, Callable[[Path], Any]] = {
    "parquet": parquet,
    "arrow": feather,
    "dataset": lambda folder: scan(ds.dataset(parquet(folder).paths)),
    "reader": lambda _: scan(table().to_reader(max_chunksize=70)),
    "batches": lambda _: scan(iter(table().to_batches(max_chunksize=70))),
    "query": in_duckdb,
    "database": database,
    "lazy": lambda _: scan(pl.DataFrame(table()).lazy()),
    "dask": lambda _: source_of(dd.from_map(partition, range(3))),
}


def instants(source: Any, name: str) -> list[datetime]:
    """A column of times as instants; times without a zone are in UTC."""
    found: list[datetime] = []
    for chunk in source.chunks():
        column = nw.from_native(chunk, eager_only=True).get_column(name)
        found += [
            each.replace(tzinfo=UTC) if each.tzinfo is None else each.astimezone(UTC) for each in column.to_list()
        ]
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_dates_and_times_have_their_types_in_all_sources(name: str, tmp_path: Path) -> None:
    source = SOURCES[name](tmp_path)
    for _ in range(2):
        for chunk in source.chunks():
            frame = nw.from_native(chunk, eager_only=True)
            for column, kind in KINDS.items():
                if column in frame.columns:
                    assert frame.schema[column] == kind
            assert getattr(frame.schema["instant"], "time_zone", None) is not None
            assert getattr(frame.schema["when"], "time_zone", None) is None
        assert instants(source, "instant") == INSTANTS
        assert instants(source, "when") == INSTANTS


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", SOURCES)
def test_dates_and_times_are_kept_with_predictions(name: str, ending: str, tmp_path: Path) -> None:
    X = table().select(["x", "label"])
    model = NaiveBayes().fit(X, "label")
    model.predict_to(SOURCES[name](tmp_path), tmp_path / f"out.{ending}", keep=["day", "when", "instant"])
    written = scan(tmp_path / f"out.{ending}")
    assert instants(written, "instant") == INSTANTS
    assert instants(written, "when") == INSTANTS
    days = [str(day)[:10] for chunk in written.chunks() for day in chunk["day"].to_pylist()]
    assert days == [str(each.date()) for each in INSTANTS]


def test_text_files_have_iso_times_whatever_the_time_zone(tmp_path: Path) -> None:
    cells = [("2020-01-31", "2020-01-31T10:00:00.250", "2020-07-01 10:00:00+02:00", "10:00")] * 3
    (tmp_path / "rows.csv").write_text("a,b,c,d\n" + "".join(f"{','.join(row)}\n" for row in cells))
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps(dict(zip("abcd", row, strict=True))) + "\n" for row in cells)
    )
    for name in ("rows.csv", "rows.jsonl"):
        (chunk,) = scan(tmp_path / name).chunks()
        assert list(map(str, chunk.schema.types)) == [
            "timestamp[us]",
            "timestamp[us]",
            "timestamp[us, tz=UTC]",
            "string",
        ]
        assert chunk.slice(0, 1).to_pylist() == [
            {
                "a": datetime(2020, 1, 31),
                "b": datetime(2020, 1, 31, 10, 0, 0, 250_000),
                "c": datetime(2020, 7, 1, 8, tzinfo=UTC),
                "d": "10:00",
            }
        ]


@pytest.mark.parametrize("late", ['"unknown"', "7", '"31.01.2020"', "true"])
def test_one_other_value_makes_times_of_json_lines_text(tmp_path: Path, late: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": "2020-01-31"}\n' * 30_000 + f'{{"a": {late}}}\n')
    chunks = list(scan(path).chunks())
    assert {str(chunk.schema.field("a").type) for chunk in chunks} == {"string"}
    assert chunks[-1]["a"][-1].as_py() == late.strip('"')


def test_stray_text_makes_numbers_of_json_lines_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1.5}\n' * 130_000 + '{"a": "unknown"}\n{"a": null}\n')
    cells = pa.concat_tables(scan(path).chunks())["a"].to_pylist()
    assert cells[:1] + cells[-2:] == ["1.5", "unknown", None]


def test_parquet_files_with_different_types_of_times_are_read_as_one(tmp_path: Path) -> None:
    pq.write_table(table().select(["day", "when", "instant"]), tmp_path / "1.parquet")
    other = table().select(["day", "when", "instant"])
    kinds = (pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("ms", "America/New_York"))
    pq.write_table(other.cast(pa.schema(list(zip(other.column_names, kinds, strict=True)))), tmp_path / "2.parquet")
    rows = scan(tmp_path)
    assert instants(rows, "instant") == instants(rows, "when") == INSTANTS * 2
    assert {str(kind) for chunk in rows.chunks() for kind in chunk.schema.types} == {
        "timestamp[us]",
        "timestamp[us, tz=UTC]",
    }
    pq.write_table(other.set_column(2, "instant", other["when"]), tmp_path / "2.parquet")
    with pytest.raises(SourceError, match=r"'instant' is timestamp.*Write both with one type"):
        scan(tmp_path)


def test_sqlite_reads_dates_as_iso_text_and_numbers_among_text_as_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    made = sqlite3.connect(path)
    made.execute("CREATE TABLE rows (day date, amount, empty)")
    cells = [("2020-01-31", 1.5, None), ("2020-02-01", 2, None), ("2020-02-02", "unknown", None), (None, None, None)]
    made.executemany("INSERT INTO rows VALUES (?, ?, ?)", cells)
    made.commit()
    expected = {"day": ["2020-01-31", "2020-02-01", "2020-02-02", None], "amount": ["1.5", "2", "unknown", None]}
    with sqlite3.connect(path, detect_types=sqlite3.PARSE_DECLTYPES) as converting, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the converters of Python are deprecated
        for rows in (scan(path, table="rows"), scan(table="rows", connection=converting)):
            assert next(rows.chunks()).select(["day", "amount"]).to_pydict() == expected
    converting.close()
    made.close()


def test_rows_that_spark_collects_in_the_time_zone_of_the_computer_keep_their_instant() -> None:
    schema = pa.schema([("t", pa.timestamp("us", "Asia/Tokyo")), ("n", pa.timestamp("us")), ("d", pa.date32())])
    local = datetime(2020, 7, 1, 10)
    rows = list(in_utc([{"t": local, "n": local, "d": date(2020, 7, 1)}, {"t": None, "n": None, "d": None}], schema))
    found = pa.Table.from_pylist(rows, schema=schema)
    assert found["t"].cast(pa.int64())[0].as_py() == int(datetime(2020, 7, 1, 14, tzinfo=UTC).timestamp() * 1e6)
    assert found["n"][0].as_py() == local
