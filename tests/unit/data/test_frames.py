"""Columns of frames of every library as tables."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from likely import NaiveBayes
from likely.data.column_kinds import ColumnKind
from likely.data.validation import read_table
from likely.errors import InputError

COLUMNS: dict[str, list[Any]] = {
    "float": [0.5, -1.5, 2.0],
    "missing": [0.5, None, 2.0],
    "integer": [3, 2**60 + 1, -1],
    "boolean": [True, False, True],
    "text": ["b", None, "a"],
}
FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas Arrow": lambda: pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "Polars": lambda: pl.DataFrame(COLUMNS),
    "Arrow": lambda: pa.table(COLUMNS),
    "Arrow chunks": lambda: pa.concat_tables([pa.table(COLUMNS).slice(0, 2), pa.table(COLUMNS).slice(2)]),
}


@pytest.mark.parametrize("library", FRAMES)
def test_columns_have_the_values_and_kinds_of_the_frame(library: str) -> None:
    table = read_table(FRAMES[library]())
    assert table.names == list(COLUMNS)
    assert table.kinds == ["number", "number", "number", "boolean", "category"]
    np.testing.assert_array_equal(table.column(0), [0.5, -1.5, 2.0])
    np.testing.assert_array_equal(table.column(1), [0.5, np.nan, 2.0])
    assert table.column(2).dtype == np.int64
    assert table.column(2).tolist() == COLUMNS["integer"]
    assert table.column(3).dtype == bool
    assert table.column(3).tolist() == COLUMNS["boolean"]
    (text,) = table.categories([4])
    assert text.vocabulary == ("a", "b")
    assert text.codes.tolist() == [1, -1, 0]


@pytest.mark.parametrize("kind", ["float32", "float64", "int8", "uint16", "bool"])
def test_numbers_of_pandas_and_arrow_are_not_copied(kind: str) -> None:
    values = np.arange(6).astype(kind)
    pandas = read_table(pd.DataFrame({"x": values}, copy=False)).column(0)
    assert np.shares_memory(pandas, values)
    assert pandas.dtype == values.dtype
    if kind.startswith("float"):
        arrow = pa.array(values)
        memory = np.frombuffer(arrow.buffers()[1], dtype=values.dtype)
        for frame in (pa.table({"x": arrow}), pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(arrow)})):
            column = read_table(frame).column(0)
            assert np.shares_memory(column, memory)
            assert column.dtype == values.dtype


def test_chunks_of_dictionaries_without_unification_are_categories() -> None:
    chunks = [pa.array([None, None]).dictionary_encode(), pa.array([None]).dictionary_encode()]
    (found,) = read_table(pa.table({"x": pa.chunked_array(chunks)})).categories([0])
    assert found.vocabulary == ()
    assert found.codes.tolist() == [-1, -1, -1]


def test_categories_of_chunks_with_different_dictionaries_are_one_vocabulary() -> None:
    parts = [["b", "a"], [], ["c", None, "b"]]
    chunks = pa.chunked_array([pa.array(part, type=pa.string()).dictionary_encode() for part in parts])
    (found,) = read_table(pa.table({"x": chunks})).categories([0])
    assert found.vocabulary == ("a", "b", "c")
    assert found.codes.tolist() == [1, 0, 2, -1, 1]


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize(("column", "where"), [("k", "Column 'k'"), ("label", "y")])
def test_text_of_arrow_that_is_not_utf8_is_an_error_that_names_the_column(coded: bool, column: str, where: str) -> None:
    text = pa.Array.from_buffers(pa.string(), 4, pa.array([b"\xff", b"a"] * 2).buffers())
    table = pa.table({"k": ["u", "v"] * 2, "label": ["a", "b"] * 2})
    place = table.schema.get_field_index(column)
    table = table.set_column(place, column, text.dictionary_encode() if coded else text)
    with pytest.raises(InputError, match=rf"{where} has the text b'\\xff', which is not encoded in UTF-8"):
        NaiveBayes().fit(table, "label")


@pytest.mark.parametrize("library", ["pandas", "pandas Arrow", "Polars", "Arrow"])
def test_decimals_are_the_nearest_floats(library: str) -> None:
    cells = [Decimal("4.60"), None, Decimal("-4.52"), Decimal("12345678901234567.25")]
    arrow = pa.table({"x": pa.array(cells, pa.decimal128(30, 2))})
    frames: dict[str, Callable[[], Any]] = {
        "pandas": lambda: pd.DataFrame({"x": cells}),
        "pandas Arrow": lambda: arrow.to_pandas(types_mapper=pd.ArrowDtype),
        "Polars": lambda: pl.from_arrow(arrow),
        "Arrow": lambda: arrow,
    }
    expected = [np.nan if cell is None else float(cell) for cell in cells]
    np.testing.assert_array_equal(read_table(frames[library]()).column(0), expected)


def test_a_list_of_labels_may_contain_the_name_of_the_weights() -> None:
    frame = pd.DataFrame({"x": np.arange(6.0), "w": [1.0, 2.0] * 3})
    model = NaiveBayes().fit(frame, ["w", "m"] * 3, "w")
    assert model.classes_.tolist() == ["m", "w"]
    with pytest.raises(InputError, match="y and sample_weight both name the column 'w'"):
        NaiveBayes().fit(frame, "w", "w")


def test_bytes_that_are_no_type_of_arrow_are_an_error_that_model_files_report() -> None:
    with pytest.raises(TypeError, match="a column has no type"):
        ColumnKind.from_file(("int64", None, "", False, bytes.fromhex("000000ff")))
