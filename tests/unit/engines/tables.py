"""A small table of every type, written in all formats, and what a scan reads of it."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq


def mixed_table(rows: int = 500) -> pd.DataFrame:
    """Floats with missing values, whole numbers, text with missing values and quotes, booleans, and labels."""
    rng = np.random.default_rng(0)
    label = rng.choice(["low", "high"], rows)
    size = rng.normal(size=rows) + (label == "high")
    size[::7] = np.nan
    text = rng.choice(["red", 'it\'s; "blue"', "NA", "grün,\nhell"], rows).astype(object)
    text[::11] = None
    return pd.DataFrame(
        {
            "size": size,
            "count": rng.integers(0, 50, rows),
            "col'our": text,
            "flag": rng.random(rows) < 0.5,
            "label": label,
        }
    )


def write(frame: pd.DataFrame, path: Path) -> Path:
    """A frame in the format that the name of a file stands for."""
    name = path.name
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    if ".csv" in name:
        frame.to_csv(path, index=False, compression="infer")
    elif ".jsonl" in name:
        frame.to_json(path, orient="records", lines=True, compression="infer")
    elif name.endswith(".parquet"):
        pq.write_table(arrow, path, row_group_size=64)
    elif name.endswith(".feather"):
        pyarrow.feather.write_feather(arrow, str(path), chunksize=64)
    elif name.endswith(".arrows"):
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, arrow.schema) as writer:
            writer.write_table(arrow, max_chunksize=64)
    else:
        connection = sqlite3.connect(path)
        frame.to_sql("rows", connection, index=False)
        connection.close()
    return path


def read(source: Any) -> pd.DataFrame:
    """All rows of a source in one frame of pandas: numbers as floats, missing text as None."""
    tables = [chunk.to_arrow() if isinstance(chunk, pl.DataFrame) else chunk for chunk in source.chunks()]
    return plain(pa.concat_tables(tables).to_pandas())


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The same cells with types that all formats have."""
    found = {}
    for name in frame.columns:
        column = frame[name]
        number = pd.api.types.is_numeric_dtype(column)
        found[name] = column.astype(float) if number else column.astype(object).where(column.notna(), None)
    return pd.DataFrame(found)


def gzipped(path: Path, text: str) -> Path:
    """A text in a compressed file."""
    path.write_bytes(gzip.compress(text.encode()))
    return path
