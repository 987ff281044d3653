"""Names, text and numbers as literals that databases and JavaScript read back unchanged."""

from __future__ import annotations

import json
import math
import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.errors import ExportError
from likely.export.quoting import javascript_value, number_text, quoted_name, quoted_text, sql_label
from tests.unit.export.databases import select

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
NAMES = TEXT.filter(bool)


@settings(deadline=None)
@given(TEXT)
def test_quoted_text_is_read_back(text: str) -> None:
    query = f"SELECT {quoted_text(text)}"
    assert select(query).fetchall() == [(text,)]
    with sqlite3.connect(":memory:") as connection:
        assert connection.execute(query).fetchall() == [(text,)]
    connection.close()


@settings(deadline=None)
@given(NAMES)
def test_quoted_names_are_read_back(name: str) -> None:
    query = f"SELECT 1 AS {quoted_name(name)}"
    assert select(query).columns == [name]
    with sqlite3.connect(":memory:") as connection:
        assert connection.execute(query).description[0][0] == name
    connection.close()


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_doubles_with_all_their_digits(value: float) -> None:
    text = number_text(value)
    assert "e" in text
    assert select(f"SELECT ({text}), typeof({text.lstrip('-')})").fetchall() == [(value, "DOUBLE")]
    assert math.copysign(1.0, float(text)) == math.copysign(1.0, value)


@settings(deadline=None)
@given(st.one_of(TEXT, st.integers(-(2**53), 2**53), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)))
def test_javascript_values_are_ascii_and_read_back(value: Any) -> None:
    text = javascript_value(value)
    assert text.isascii()
    assert json.loads(text) == value


@pytest.mark.parametrize("label", ["it's", 'a"b;--', 3, -4, True, False, 2.5, -1e-7])
def test_labels_are_read_back(label: Any) -> None:
    ((found,),) = select(f"SELECT {sql_label(label)}").fetchall()
    assert (found, type(found)) == (label, type(label))


def test_float_labels_are_doubles_in_postgres() -> None:
    assert sql_label(2.5, "postgres") == "2.5e0::float8"
    assert sql_label(-2.5, "postgres") == "(-2.5e0)::float8"


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_databases_do_not_hold_is_an_error(text: str) -> None:
    with pytest.raises(ExportError, match="Rename"):
        quoted_text(text)
    with pytest.raises(ExportError, match="Rename"):
        quoted_name(text)


@pytest.mark.parametrize("label", [2**63, math.inf, (1, 2), None, 1j])
def test_labels_of_other_types_are_errors(label: Any) -> None:
    with pytest.raises(ExportError, match="Convert it to text"):
        sql_label(label)


@pytest.mark.parametrize("value", [2**54, math.nan, (1, 2), None])
def test_values_that_javascript_does_not_hold_are_errors(value: Any) -> None:
    with pytest.raises(ExportError, match="Convert it to text"):
        javascript_value(value)
