"""Parquet files by row groups: parts, chunks, Hive partitions, schemas, and files that change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from likely import Categorical, NaiveBayes, scan
from likely.data.parts import source_of
from likely.engines import base
from likely.errors import SourceError
from tests.unit.engines.tables import mixed_table, plain, read


def numbers(rows: int, first: int = 0) -> pa.Table:
    return pa.table({"x": np.arange(first, first + rows, dtype=float), "n": np.arange(first, first + rows)})


@pytest.mark.parametrize("wrapped", [False, True])
def test_parts_are_row_groups_and_small_ones_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrapped: bool
) -> None:
    monkeypatch.setattr(base, "PART_ROWS", 250)
    monkeypatch.setattr(base, "CHUNK_ROWS", 120)
    pq.write_table(numbers(1000), tmp_path / "1.parquet", row_group_size=100)
    pq.write_table(numbers(700, first=1000), tmp_path / "2.parquet", row_group_size=400)
    source = source_of(ds.dataset(tmp_path)) if wrapped else scan(tmp_path)
    parts = source.parts()
    assert [part.start for part in parts] == [0, 200, 400, 600, 800, 1000, 1400]
    sizes = [[len(chunk) for chunk in part.chunks()] for part in parts]
    assert [sum(part) for part in sizes] == [200, 200, 200, 200, 200, 400, 300]
    assert max(max(part) for part in sizes) <= 120
    assert source.rows == 1700
    for part in parts:
        assert next(part.chunks())["n"][0].as_py() == part.start
    assert list(source.compute(lambda i, part: (i, part.start))) == [(i, part.start) for i, part in enumerate(parts)]
    np.testing.assert_array_equal(read(source)["n"], np.arange(1700))


def test_chunks_have_fewer_rows_where_there_are_many_columns() -> None:
    assert base.chunk_rows(20) == 2**17
    assert base.chunk_rows(1024) == 2**12
    assert base.chunk_rows(10**9) == 1


def test_directories_named_by_key_and_value_give_columns(tmp_path: Path) -> None:
    frame = mixed_table()
    frame["year"] = np.where(np.arange(len(frame)) % 3 == 0, 2020, -7)
    frame["a b"] = np.where(np.arange(len(frame)) % 2 == 0, "x=y", "007")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_to_dataset(table, tmp_path / "rows", partition_cols=["year", "a b"])
    (tmp_path / "rows" / "_SUCCESS").touch()
    rows = scan(tmp_path / "rows")
    assert rows.columns[-2:] == ("year", "a b")
    found = read(rows)
    for name in ("year", "a b"):
        assert found[name].value_counts().to_dict() == frame[name].value_counts().to_dict()
    theirs = pq.read_table(tmp_path / "rows", partitioning="hive").to_pandas()
    assert found.groupby("year")["size"].sum().to_dict() == pytest.approx(
        {int(k): v for k, v in theirs.astype({"year": int}).groupby("year")["size"].sum().items()}
    )
    one = scan(str(tmp_path / "rows" / "year=2020" / "**" / "*.parquet"))
    assert one.columns == (*frame.columns[:-2], "a b")
    assert one.rows == int((frame["year"] == 2020).sum())


def test_a_dataset_with_partitions_has_their_columns(tmp_path: Path) -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0], "k": ["a", "b", "a"]})
    pq.write_to_dataset(table, tmp_path, partition_cols=["k"])
    rows = source_of(ds.dataset(tmp_path, partitioning="hive"))
    assert read(rows).sort_values("x").to_dict("list") == {"x": [1.0, 2.0, 3.0], "k": ["a", "b", "a"]}


def test_a_dataset_whose_schema_is_not_that_of_a_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": [3], "k": ["a"]}), tmp_path / "2.parquet")
    schema = pa.schema([("k", pa.string()), ("x", pa.float64())])
    rows = source_of(ds.dataset(tmp_path, schema=schema))
    assert [chunk.schema for chunk in rows.chunks()] == [schema, schema]
    assert read(rows).to_dict("list") == {"k": [None, None, "a"], "x": [1.0, 2.0, 3.0]}
    kept = ds.dataset(tmp_path / "2.parquet", schema=schema.remove(0))
    assert read(source_of(kept)).to_dict("list") == {"x": [3.0]}


def test_a_partition_without_a_value_is_missing(tmp_path: Path) -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0], "k": pa.array(["a", None, "b"])})
    pq.write_to_dataset(table, tmp_path, partition_cols=["k"])
    found = read(scan(tmp_path)).sort_values("x")
    assert found["k"].tolist() == ["a", None, "b"]


def test_files_may_have_other_types_of_numbers_and_another_order(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2], "k": pa.array([None, None], pa.null())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"k": ["a", "b"], "x": [0.5, None]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"k": ["c"], "x": pa.array([7], pa.int8())}), tmp_path / "3.parquet")
    chunks = list(scan(tmp_path).chunks())
    assert {str(chunk.schema.field("x").type) for chunk in chunks} == {"double"}
    assert pa.concat_tables(chunks).to_pydict() == {
        "x": [1.0, 2.0, 0.5, None, 7.0],
        "k": [None, None, "a", "b", "c"],
    }


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ({"x": ["a"], "y": [1]}, r"Column 'x' is int64 in .*1.parquet' and (large_)?string in .*2.parquet'"),
        ({"x": [1]}, r"1.parquet' and .*2.parquet' have different columns: 'y' only in .*1.parquet'\."),
        ({"x": [1], "y": [1], "z": [2]}, r"different columns: 'z' only in .*2.parquet'"),
    ],
)
def test_mixed_schemas_are_errors_that_name_both_files(tmp_path: Path, other: dict[str, Any], problem: str) -> None:
    pq.write_table(pa.table({"x": [1], "y": [2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table(other), tmp_path / "2.parquet")
    with pytest.raises(SourceError, match=problem):
        scan(tmp_path)


@pytest.mark.parametrize("keep", [4, 100, 2000])
def test_a_truncated_file_is_an_error_that_names_it(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(numbers(1000), path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(SourceError, match=r"rows.parquet' is not a complete Parquet file.*Write it again"):
        scan(path)


def test_damaged_pages_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(numbers(1000), path)
    content = bytearray(path.read_bytes())
    content[4:500] = bytes(496)
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"rows.parquet' is not a complete Parquet file"):
        read(scan(path))


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.jsonl", "rows.feather", "rows.db"])
@pytest.mark.parametrize("change", ["size", "time", "deleted"])
def test_a_file_that_changes_between_passes_is_an_error(tmp_path: Path, name: str, change: str) -> None:
    from tests.unit.engines.tables import write

    path = write(mixed_table(20), tmp_path / name)
    rows = scan(path, table="rows" if name.endswith("db") else None)
    pd.testing.assert_frame_equal(read(rows)[["size", "label"]], plain(mixed_table(20))[["size", "label"]])
    if change == "deleted":
        path.unlink()
    elif change == "size":
        write(mixed_table(21), path) if not name.endswith("db") else path.write_bytes(path.read_bytes() * 2)
    else:
        os.utime(path, ns=(0, 0))
    problem = "does not exist" if change == "deleted" else f"{name}' has changed since the scan was made"
    with pytest.raises(SourceError, match=problem):
        read(rows)


def test_a_dataset_whose_files_change_between_passes_is_an_error(tmp_path: Path) -> None:
    pq.write_table(numbers(10), tmp_path / "rows.parquet")
    rows = source_of(ds.dataset(tmp_path))
    assert len(read(rows)) == 10
    os.utime(tmp_path / "rows.parquet", ns=(0, 0))
    with pytest.raises(SourceError, match=r"rows.parquet' has changed"):
        read(rows)


def test_a_source_without_rows_has_a_part(tmp_path: Path) -> None:
    pq.write_table(numbers(0), tmp_path / "rows.parquet")
    rows = scan(tmp_path / "rows.parquet")
    assert rows.rows == 0
    assert len(rows.parts()) == 1
    assert sum(len(chunk) for chunk in rows.chunks()) == 0


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        (".", "./rows"),
        (".", "./rows/*/*.parquet"),
        ("rows", "year=*/*.parquet"),
        ("rows", "."),
        ("rows/year=2020", "../year=*/*"),
        (".", ["rows/year=2020/1.parquet", "./rows/year=2021/1.parquet"]),
    ],
)
def test_partition_columns_do_not_depend_on_how_a_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, path: Any
) -> None:
    for year in (2020, 2021):
        (tmp_path / f"rows/year={year}").mkdir(parents=True)
        pq.write_table(numbers(2), tmp_path / f"rows/year={year}/1.parquet")
    monkeypatch.chdir(tmp_path / folder)
    assert read(scan(path))["year"].tolist() == [2020, 2020, 2021, 2021]


def test_a_file_that_is_named_twice_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(numbers(2), tmp_path / "1.parquet")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=r"'1\.parquet' and '\./1\.parquet' are the same file"):
        scan(["*.parquet", "./1.parquet"])


def test_integers_that_the_common_type_does_not_hold_are_an_error_with_column_and_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [2**60 + 1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [0.5]}), tmp_path / "2.parquet")
    with pytest.raises(SourceError, match=r"Column 'a' is int64 in .*1\.parquet' and double.*Write all files"):
        read(scan(tmp_path))


@pytest.mark.parametrize("dictionary", [False, True])
def test_text_that_arrow_stores_as_views_is_read(tmp_path: Path, dictionary: bool) -> None:
    text = pa.array(["a", None, "c"], pa.string_view())
    if dictionary:
        text = pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array(["a", "c"], pa.string_view()))
    table = pa.table({"k": text, "x": [1.0, 2.0, 3.0]})
    with pa.OSFile(str(tmp_path / "1.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    for source in (scan(tmp_path / "1.arrow"), scan(table.to_reader()), scan(ds.dataset(table))):
        (chunk,) = source.chunks()
        assert chunk.take([2, 0, 1])["k"].to_pylist() == ["c", "a", None]


def test_text_with_few_distinct_values_is_read_as_codes_within_parts(tmp_path: Path) -> None:
    n = 20_000
    table = pa.table(
        {
            "key": [f"an identifier {i}" for i in range(n)],
            "colour": pa.array([None if i % 5 == 0 else f"colour {i % 3}" for i in range(n)], pa.large_string()),
            "y": [f"label {i % 2}" for i in range(n)],
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    rows = scan(tmp_path / "rows.parquet")
    (part,) = rows.parts()
    coded = [pa.types.is_dictionary(kind) for kind in next(part.chunks()).schema.types]
    assert coded == [False, True, True]
    assert pa.concat_tables(rows.chunks()).equals(table)
    model = NaiveBayes({"key": None, "colour": Categorical()}, calibration=None).fit(rows, "y")
    expected = NaiveBayes({"key": None, "colour": Categorical()}, calibration=None).fit(table, "y")
    assert model.classes_.tolist() == ["label 0", "label 1"]
    assert np.array_equal(model.predict_proba(table), expected.predict_proba(table))
    assert model.sample(2)[0].schema == expected.sample(2)[0].schema


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_text_in_any_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    table = pa.table({"k": ["a", None, "b"] * 20, "label": ["u", "v"] * 30})
    pq.write_table(table, tmp_path / "rows.parquet", use_dictionary=False, column_encoding=encoding)
    assert pa.concat_tables(scan(tmp_path).chunks()).equals(table)
    assert NaiveBayes().fit(scan(tmp_path), "label").classes_.tolist() == ["u", "v"]


def test_directories_for_one_partition_column_twice_are_an_error(tmp_path: Path) -> None:
    for name in ("a=1/A=2", "other/a=1/a=2"):
        (tmp_path / name).mkdir(parents=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / name / "rows.parquet")
    assert scan(tmp_path / "a=1").columns == ("x", "A")
    with pytest.raises(SourceError, match="several directories for the column 'a'"):
        scan(tmp_path / "other")


def test_pages_that_contradict_their_checksums_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(numbers(50_000), path, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[100_000:100_200] = bytes(200)
    path.write_bytes(content)
    with pytest.raises(SourceError, match="is not a complete Parquet file"):
        read(scan(path))
