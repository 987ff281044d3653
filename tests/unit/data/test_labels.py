"""Labels of every library and type as codes, against sorting in plain Python."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from likely.data.labels import encode_labels, label_values
from likely.data.validation import weight_values
from likely.errors import InputError, InputTypeError

TEXT = ["gentoo", "adelie", "", "gentoo", "king\0", "king", "adelie", "größe"]


def halves(values: list[Any], kind: Any) -> Any:
    """Chunks whose dictionaries differ, with empty chunks between them."""
    parts = [values[:2], [], values[2:5], values[5:], []]
    return pa.chunked_array([pa.array(part, type=kind).dictionary_encode() for part in parts])


def coded(values: list[Any], index: Any) -> Any:
    """A dictionary with entries that have no rows, in another order than that of the rows."""
    words = ["unused", *sorted({value for value in values if value is not None}, reverse=True), "also unused"]
    codes = [None if value is None else words.index(value) for value in values]
    return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(codes, type=index), pa.array(words))])


LIBRARIES: dict[str, Callable[[list[Any]], Any]] = {
    "pandas objects": lambda y: pd.Series(y, dtype=object),
    "pandas str": lambda y: pd.Series(y, dtype="str"),
    "pandas string of Python": lambda y: pd.Series(y, dtype="string[python]"),
    "pandas Arrow": lambda y: pd.Series(y, dtype=pd.ArrowDtype(pa.large_string())),
    "pandas Arrow dictionary": lambda y: pd.Series(pd.arrays.ArrowExtensionArray(halves(y, pa.string()))),
    "pandas categorical": lambda y: pd.Series(y).astype("category").cat.add_categories(["unused"]),
    "Polars": pl.Series,
    "Polars categorical": lambda y: pl.concat([pl.Series(["unused"]), pl.Series(y)]).cast(pl.Categorical)[1:],
    "Polars enum": lambda y: pl.Series(
        y, dtype=pl.Enum(["unused", *sorted({v for v in y if v is not None}, reverse=True)])
    ),
    "Arrow": lambda y: pa.chunked_array([y[:3], [], y[3:]], type=pa.string()),
    "Arrow large_string": lambda y: pa.chunked_array([y], type=pa.large_string()),
    "Arrow string_view": lambda y: pa.chunked_array([y[:3], y[3:]], type=pa.string_view()),
    "Arrow dictionary": lambda y: halves(y, pa.string()),
    "Arrow dictionary of string_view": lambda y: halves(y, pa.string_view()),
    "Arrow dictionary with unused entries": lambda y: coded(y, pa.int8()),
    "Arrow dictionary with unsigned codes": lambda y: coded(y, pa.uint64()),
    "Arrow slice": lambda y: pa.chunked_array([pa.array(["before", *y, "after"]).dictionary_encode()]).slice(1, len(y)),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_text_has_the_classes_and_codes_of_sorted_python_strings(library: str) -> None:
    y = LIBRARIES[library](TEXT)
    found = encode_labels(y, len(TEXT), "model")
    classes = sorted(set(TEXT))
    assert found.classes.dtype == object
    assert found.classes.tolist() == classes
    assert all(type(label) is str for label in found.classes)
    assert found.codes.tolist() == [classes.index(label) for label in TEXT]
    assert found.missing is None
    assert label_values(y).tolist() == TEXT


@pytest.mark.parametrize("library", LIBRARIES)
def test_nulls_and_the_marker_are_unlabeled_rows(library: str) -> None:
    values = ["b", None, "a", "?", None, "b"]
    y = LIBRARIES[library](values)
    found = encode_labels(y, len(values), "model", allow_missing=True, unlabeled="?")
    assert found.classes.tolist() == ["a", "b"]
    assert found.codes.tolist() == [1, 0, 1]
    assert found.missing is not None
    assert found.missing.tolist() == [False, True, False, True, True, False]
    with pytest.raises(InputError, match="y, row 11: the label is missing"):
        encode_labels(y, len(values), "model", start=10)
    with pytest.raises(InputError, match=r"y, row 13: the label '\?' marks an unlabeled row"):
        encode_labels(LIBRARIES[library](["b", "b", "a", "?"]), 4, "model", start=10, unlabeled="?")


@pytest.mark.parametrize("library", LIBRARIES)
def test_series_without_any_label_have_no_classes(library: str) -> None:
    y = LIBRARIES[library](["a", None, None])[1:]
    found = encode_labels(y, 2, "model", allow_missing=True)
    assert not len(found.classes)
    assert not len(found.codes)
    assert found.missing is not None
    assert found.missing.all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_number_of_labels_must_be_that_of_rows(library: str) -> None:
    with pytest.raises(InputError, match="X has 9 rows and y has 8 labels"):
        encode_labels(LIBRARIES[library](TEXT), 9, "model")


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 2**60 + 1, 2**60, 1],
        [True, False, True, True, False],
        [2.0, 1.0, 2.0, 5.0, 1.0],
        [Decimal("1.5"), Decimal(2), Decimal("1.50"), Decimal(1), Decimal(2)],
        [b"b", b"a", b"a\0", b"b", b""],
        [datetime.date(2020, 1, day) for day in (2, 1, 3, 3, 2)],
    ],
    ids=["int", "bool", "float", "decimal", "bytes", "date"],
)
def test_dictionaries_of_any_type_have_the_classes_of_the_values(values: list[Any]) -> None:
    classes = sorted(set(values))
    codes = [classes.index(label) for label in values]
    plain = pa.array(values)
    series = {
        "Arrow": halves(values, plain.type),
        "pandas": pd.Series(values, dtype=object).astype("category"),
        "objects": pd.Series(values, dtype=object).to_numpy(),
    }
    for library, y in series.items():
        found = encode_labels(y, len(values), "model")
        assert found.classes.tolist() == classes, library
        assert [type(label) for label in found.classes.tolist()] == [type(label) for label in classes], library
        assert found.codes.tolist() == codes, library
    with pytest.raises(InputError, match="y, row 0: the label is missing"):
        encode_labels(halves([None, *values], plain.type), len(values) + 1, "model")


def test_equal_and_missing_entries_of_a_dictionary_are_one_class_and_no_class() -> None:
    codes = pa.array([0, 1, 2, 3, None, 0])
    y = pa.chunked_array([pa.DictionaryArray.from_arrays(codes, pa.array(["b", "a", "b", None]))])
    found = encode_labels(y, 6, "model", allow_missing=True)
    assert found.classes.tolist() == ["a", "b"]
    assert found.codes.tolist() == [1, 0, 1, 1]
    assert found.missing is not None
    assert found.missing.tolist() == [False, False, False, True, True, False]


def test_fractions_among_categories_are_an_error_that_names_the_row() -> None:
    y = pd.Series([1.0, 3.0, 2.5, 1.0]).astype("category")
    with pytest.raises(InputError, match=r"y, row 12: 2\.5 is not a whole number"):
        encode_labels(y, 4, "model", start=10)


@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("kind", ["U", "S"])
def test_arrays_of_text_have_the_codes_of_numpy_unique(kind: str, order: Any) -> None:
    words = np.array(["b", "a", "", "bb", "a b", "b"], dtype=kind)
    y = np.repeat(words, 3)[::-2].astype(words.dtype.newbyteorder(order))
    found = encode_labels(y, len(y), "model")
    classes, codes = np.unique(np.repeat(words, 3)[::-2], return_inverse=True)
    assert found.classes.dtype == classes.dtype
    np.testing.assert_array_equal(found.classes, classes)
    np.testing.assert_array_equal(found.codes, codes)


def test_members_of_an_enumeration_of_text_stay_members() -> None:
    class Size(enum.StrEnum):
        SMALL = "small"
        LARGE = "large"

    y = pd.Series(np.array([Size.SMALL, Size.LARGE, Size.SMALL], dtype=object), dtype=object)
    found = encode_labels(y, 3, "model")
    assert found.classes.tolist() == ["large", "small"]
    assert all(type(label) is Size for label in found.classes)
    assert found.codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("late", "message"),
    [
        (1, "mixed types that cannot be sorted together: 'int', 'str'"),
        ([1], "labels in y must be text or numbers"),
        (None, "y, row 200: the label is missing"),
        (float("nan"), "y, row 200: the label is missing"),
    ],
)
def test_objects_that_are_no_text_are_found_in_late_rows(late: Any, message: str) -> None:
    values = np.empty(201, dtype=object)
    values[:200], values[200] = "a", late
    with pytest.raises(InputError, match=message):
        encode_labels(pd.Series(values, dtype=object), 201, "model")


def test_text_that_is_no_unicode_stays_as_it_is() -> None:
    found = encode_labels(pd.Series(["b", "\ud800", "b"], dtype=object), 3, "model")
    assert found.classes.tolist() == ["b", "\ud800"]
    assert found.codes.tolist() == [0, 1, 0]


DATES = [datetime.date(2021, 5, 1), datetime.date(1969, 7, 20), datetime.date(2021, 5, 1), None]


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(DATES, dtype=object),
        pd.Series(DATES, dtype=pd.ArrowDtype(pa.date32())),
        pl.Series(DATES),
        pa.chunked_array([DATES[:1], DATES[1:]]),
        pa.chunked_array([pa.array(DATES).dictionary_encode()]),
    ],
    ids=["pandas objects", "pandas Arrow", "Polars", "Arrow", "Arrow dictionary"],
)
def test_dates_are_labels_in_every_library(y: Any) -> None:
    found = encode_labels(y, 4, "NaiveBayes", allow_missing=True)
    assert found.classes.tolist() == [datetime.date(1969, 7, 20), datetime.date(2021, 5, 1)]
    assert found.codes.tolist() == [1, 0, 1]
    assert found.missing is not None
    assert found.missing.tolist() == [False, False, False, True]
    assert label_values(y[:3]).tolist() == DATES[:3]


def test_times_are_no_labels_and_the_error_names_the_remedy() -> None:
    with pytest.raises(InputTypeError, match=r"datetime64\[us\].*Convert them to text; .* types="):
        encode_labels(pl.Series([datetime.datetime(2021, 5, 1)]), 1, "NaiveBayes")


def test_labels_of_half_precision_do_not_overflow() -> None:
    found = encode_labels(np.array([1, 0, 1], dtype=np.float16), 3, "NaiveBayes")  # warnings are errors
    assert found.classes.tolist() == [0.0, 1.0]
    assert found.codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("values", "kind", "classes"),
    [
        ([1, 0, 1], pl.Int128, [0, 1]),
        ([2**100, -5, None], pl.Int128, [-5, 2**100]),
        ([0.0, 2.0, 1.0], pl.Float16, [0.0, 1.0, 2.0]),
    ],
)
def test_numbers_of_any_width_are_labels(values: list[Any], kind: Any, classes: list[Any]) -> None:
    found = encode_labels(pl.Series(values, dtype=kind), 3, "NaiveBayes", allow_missing=True)
    assert found.classes.tolist() == classes
    labeled = [value for value in values if value is not None]
    assert [classes[code] for code in found.codes] == labeled


@pytest.mark.parametrize("labels", [pl.Series([{"a": 1}, {"a": 2}]), pl.Series([[1], [2]], dtype=pl.Array(pl.Int8, 1))])
def test_structures_and_arrays_are_no_labels(labels: pl.Series) -> None:
    for missing in (False, True):
        with pytest.raises(InputError, match="must be text or numbers"):
            encode_labels(labels, 2, "NaiveBayes", allow_missing=missing)


def test_integers_of_128_bits_are_weights() -> None:
    assert weight_values(pl.Series([1, 3], dtype=pl.Int128)).tolist() == [1.0, 3.0]
