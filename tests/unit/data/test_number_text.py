"""Numbers in text: what is a number in which form, what is a code, and what is in doubt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.data.number_text import PLAIN, SEPARATORS, NumberForm, number_form
from likely.typing import Array

NAN = math.nan


def read(*texts: str) -> list[float]:
    """The numbers of a column of distinct texts with a row each, in its form."""
    form, note = number_form(texts, np.ones(len(texts), dtype=int))
    assert form is not None, note
    assert note == ""
    return form.read(texts).tolist()


def refused(*texts: str, counts: Sequence[int] | None = None) -> str:
    """The note on a column that has no form."""
    form, note = number_form(texts, np.array(counts or [1] * len(texts)))
    assert form is None
    return note


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["12", " -1.5e3 ", "+7"], [12, -1500, 7]),
        (["$1,200", "$900", "-$5", "$-6", "($7)", "$ 8"], [1200, 900, -5, -6, -7, 8]),
        (["€ 12,50", "1.200,00 €", "-3,5€"], [12.5, 1200, -3.5]),
        (["EUR 1,200.50", "EUR3", "17 EUR"], [1200.5, 3, 17]),
        (["€ 5", "EUR 6"], [5, 6]),
        (["CHF 1'200.50", "CHF 1’000"], [1200.5, 1000]),
        (["US$ 5", "US$1,000"], [5, 1000]),
        (["Rs.500", "Rs. 1,200"], [500, 1200]),
        (["₹ 5.50", "-₹7"], [5.5, -7]),
        (["$5 USD", "$6.5 USD"], [5, 6.5]),
        (["7.35%", "8 %", "-1%", "0"], [7.35, 8, -1, 0]),
        (["7,35 %", "8 %"], [7.35, 8]),
        (["1 234,5", "1\u00a0234", "1\u202f234\u202f567", "-7"], [1234.5, 1234, 1234567, -7]),
        (["1'234", "1'234'567.5"], [1234, 1234567.5]),
        (["36 months", "1 month", "2 Months"], [36, 1, 2]),
        (["3 boxes", "1 box"], [3, 1]),
        (["3 cities", "1 city"], [3, 1]),
        (["5 kg", "3.5kg", "2 Kg."], [5, 3.5, 2]),
        (["20 km/h", "30 km/h"], [20, 30]),
        (["20°C", "-3 °C"], [20, -3]),
        (["5 m", "7 m"], [5, 7]),
        (["12B", "14B"], [12, 14]),
        (["(120)", "35"], [-120, 35]),
        (["\u2212120", "35", "- 4"], [-120, 35, -4]),
        (["1.2k", "3M", "700", "2bn", "1.005k"], [1200, 3e6, 700, 2e9, 1005]),
        (["$1.2B", "$3m", "$5 million", "€700k"][:3], [1.2e9, 3e6, 5e6]),
        (["1,2 Mio. €", "700k€", "3 Mrd. EUR"], [1.2e6, 7e5, 3e9]),
        (["1.2k views", "900 views"], [1200, 900]),
        (["1,5e3", "2,5"], [1500, 2.5]),
        ([".5", "$1", "$.25"], [0.5, 1, 0.25]),
    ],
)
def test_numbers_are_read_in_one_form(texts: list[str], numbers: list[float]) -> None:
    assert read(*texts) == numbers


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1,234", "12,50"], [1.234, 12.5]),
        (["1,234", "0,123"], [1.234, 0.123]),
        (["1,234", "1,234,567"], [1234, 1234567]),
        (["1,234", "1,234.5"], [1234, 1234.5]),
        (["1.234", "1.234.567"], [1234, 1234567]),
        (["1.234", "12,50"], [1234, 12.5]),
        (["1,234", "1 234"], [1.234, 1234]),
        (["1.234", "5.678"], [1.234, 5.678]),
        (["$1,234", "$2,345"], [1234, 2345]),
        (["1.234%", "5.678%"], [1.234, 5.678]),
    ],
)
def test_one_unambiguous_value_decides_the_separators_of_a_column(texts: list[str], numbers: list[float]) -> None:
    assert read(*texts) == numbers


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (["1,234", "900"], "'1,234' may be 1234 or 1.234"),
        (["1,234 km", "2,345 km"], "'1,234 km' may be 1234 or 1.234"),
        (["€ 1.234", "€ 5.678"], "'€ 1.234' may be 1234 or 1.234"),
    ],
)
def test_separators_that_no_value_decides_are_named(texts: list[str], note: str) -> None:
    assert refused(*texts) == note


def test_values_with_different_separators_are_no_column_of_numbers() -> None:
    texts = ["1,234", "5,678.5", "12,50"]
    assert refused(*texts, counts=[98, 1, 1]) == "'12,50' and '5,678.5' have different decimal separators"
    assert refused(*texts) == ""


def test_many_texts_with_commas_beside_small_whole_numbers_have_thousands() -> None:
    texts = ["7", "900", *(f"{i},{i}" for i in range(100, 120))]
    assert read(*texts)[:3] == [7, 900, 100100]
    assert "may be" in refused(*texts, "1200")
    points = ["7 €", "900 €", *(f"{i}.{i} €" for i in range(100, 120))]
    assert read(*points)[:3] == [7, 900, 100100]


def test_columns_that_are_declared_to_be_numbers_may_have_any_proportion_of_them() -> None:
    for texts in (["5", "a", "b"], ["00123", "a"], ["12345678", "87654321"], ["555 123 456", "555 123 457"]):
        form, _ = number_form(texts, np.ones(len(texts)), least=0.0)
        assert form is not None
        assert np.isfinite(form.read(texts[:1])).all()
    assert number_form(["a", "b1"], np.ones(2), least=0.0) == (None, "")
    assert number_form(["1,234", "900", "a"], np.ones(3), least=0.0) == (None, "'1,234' may be 1234 or 1.234")


def test_a_few_ambiguous_texts_do_not_change_a_column_of_numbers() -> None:
    form, _ = number_form(["900", "1,234"], np.array([99, 1]))
    assert form == PLAIN


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (["00123", "123"], "'00123' has a leading zero, as codes have"),
        (["1", "2", "007"], "'007' has a leading zero, as codes have"),
        (["12345678", "87654321"], "all have 8 digits, as codes have"),
        (["555 123 456", "612 345 678"], "all have 9 digits, as codes have"),
        (["1234567890123456789", "98765432101"], "some have more than 15 digits, as codes have"),
        (["+49301234567", "+4930765432"], "a plus sign before eight digits or more, as in telephone numbers"),
        (["+49 30 1234", "030-1234567", "(555) 123-4567"], ""),
        (["1.2.3", "1.10.2"], ""),
        (["192.168.1.1", "10.0.0.1"], ""),
        (["10:30", "11:45"], ""),
        (["2020-01-31", "2020-02-28"], ""),
        (["31.01.2020", "28.02.2020"], ""),
        (["12 May", "13 May"], ""),
        (["10-20", "20-30"], ""),
        (["<5", ">7"], ""),
        (["10+ years", "< 1 year"], ""),
        (["1st", "2nd"], ""),
        (["10th", "11th"], ""),
        (["5 am", "7 am"], ""),
        (["12A", "13B"], ""),
        (["A12", "A13"], ""),
        (["type 1", "type 2"], ""),
        (["5 kg", "3 lb"], ""),
        (["$5", "€6"], ""),
        (["5 mW", "3 MW"], ""),
        (["1,23,456", "2,34,567"], ""),
        (["1_000", "2_000"], ""),
        (["0x1A", "0x2B"], ""),
        (["nan", "inf"], ""),
        (["\u0661\u0662", "\u0663"], ""),
        (["((5))", "-(5)", "--5"], ""),
        (["2-", "3+"], ""),
        (["yes", "no"], ""),
        (["", "  "], ""),
        ([], ""),
    ],
)
def test_codes_and_other_text_are_not_numbers(texts: list[str], note: str) -> None:
    assert refused(*texts) == note


@pytest.mark.parametrize("texts", [["2011", "2012"], ["7", "12", "120"], ["0", "0.5"], ["10000000", "25000000"]])
def test_years_and_amounts_are_numbers(texts: list[str]) -> None:
    assert number_form(texts, np.ones(len(texts)))[0] == PLAIN


def test_at_most_a_twentieth_of_the_rows_may_have_other_text() -> None:
    texts = ["$5", "$6", "unknown"]
    form, _ = number_form(texts, np.array([50, 45, 5]))
    assert form is not None
    np.testing.assert_array_equal(form.read(texts), [5, 6, NAN])
    assert refused(*texts, counts=[50, 44, 6]) == ""
    assert number_form(texts, np.array([50, 44, 6]), least=0.9)[0] == form


def test_blank_texts_are_missing() -> None:
    assert number_form(["5", "", "  "], np.array([1, 90, 9]))[0] == PLAIN


def test_a_form_reads_numbers_with_and_without_its_unit() -> None:
    form, _ = number_form(["$1,200.5"], np.ones(1))
    assert form is not None
    values = ["$5", "1,000", None, 7, 2.5, Decimal("1.5"), "x", NAN, True, b"5", "\ud800", "3 EUR", "9" * 10_000]
    expected = [5, 1000, NAN, 7, 2.5, 1.5, NAN, NAN, NAN, NAN, NAN, NAN, NAN]
    np.testing.assert_array_equal(form.read(values), expected)
    assert form.describe() == "numbers such as '$1,200.5'"


def test_the_plain_form_reads_what_float_reads_but_underscores_infinity_and_other_digits() -> None:
    values = ["007", "1_0", "nan", "inf", "1e999", "\u0661", " 5. ", ".5", "+1E-3", 2**70, "(5)", "\u22125"]
    expected = [7, NAN, NAN, NAN, NAN, NAN, 5, 0.5, 1e-3, 2.0**70, NAN, NAN]
    np.testing.assert_array_equal(PLAIN.read(values), expected)
    assert PLAIN.describe() == "numbers"


def test_integers_beyond_the_range_of_floats_are_not_read() -> None:
    assert np.isnan(PLAIN.read(["5", 10**400])).tolist() == [False, True]


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["$1,200", None], index=[5, 6]),
        pd.Series(["$1,200", None], dtype="category"),
        pl.Series(["$1,200", None]),
        pa.array(["$1,200", None]),
        pa.chunked_array([["$1,200"], [None]]),
        pa.array(["$1,200", None]).dictionary_encode(),
        np.array(["$1,200", None], dtype=object),
        ("$1,200", None),
        pa.array([1200, None]),
        np.array([1200.0, NAN]),
    ],
    ids=lambda values: f"{type(values).__module__}-{getattr(values, 'dtype', None) or getattr(values, 'type', '')}",
)
def test_columns_of_any_library_are_read(values: Any) -> None:
    np.testing.assert_array_equal(NumberForm(thousands=",", unit="$").read(values), [1200, NAN])


def test_no_values_are_no_numbers() -> None:
    assert NumberForm(unit="$").read([]).shape == (0,)
    assert PLAIN.read([]).shape == (0,)


@given(st.permutations(["$1,200", "$900", "$5m", "$7", "€ 5", "700k", "n/a", "(5)", "1,234,567", ""]))
def test_the_form_does_not_depend_on_the_order_of_the_texts(texts: list[str]) -> None:
    form, note = number_form(texts, np.ones(len(texts)), least=0.7)
    assert (form, note) == (NumberForm(".", ",", "$", multipliers=True, accounting=True), "")
    assert form is not None
    assert form.example == "$1,200"


def written(number: Decimal, decimal: str, thousands: str, before: str, after: str, sign: str) -> str:
    """A number as text, with its sign before or after the prefix, or in parentheses."""
    digits = f"{abs(number):,f}".replace(",", "_").replace(".", decimal).replace("_", thousands)
    if number >= 0:
        return f"{before}{digits}{after}"
    return {
        "before": f"-{before}{digits}{after}",
        "after": f"{before}-{digits}{after}",
        "minus": f"\u2212{before}{digits}{after}",
        "brackets": f"({before}{digits}{after})",
    }[sign]


AMOUNTS = st.decimals(min_value=-(10**12), max_value=10**12, places=2)
UNITS = st.sampled_from(["$", "€", "EUR", "US$", "%", "kg", "km/h", "months", "zł", ""])


@settings(deadline=None)
@given(
    st.lists(AMOUNTS, min_size=1, max_size=20, unique=True),
    st.sampled_from(SEPARATORS),
    UNITS,
    st.booleans(),
    st.sampled_from(["", " ", "\u00a0"]),
    st.sampled_from(["before", "after", "minus", "brackets"]),
)
def test_numbers_that_are_written_in_a_form_are_read_back(
    amounts: list[Decimal], separators: tuple[str, str], unit: str, first: bool, blank: str, sign: str
) -> None:
    first = first and unit in ("$", "€", "EUR", "US$", "%")
    before, after = (unit + blank, "") if unit and first else ("", blank + unit if unit else "")
    texts = [written(amount, *separators, before, after, sign) for amount in amounts]
    form, note = number_form(texts, np.ones(len(texts)))
    assert form is not None, note
    np.testing.assert_array_equal(form.read(texts), np.array([float(amount) for amount in amounts]))


@given(st.floats(-1e300, 1e300))
def test_every_float_is_read_as_python_reads_it(number: float) -> None:
    assert PLAIN.read([repr(number), f"{number:.3e}"]).tolist() == [number, float(f"{number:.3e}")]


ALPHABET = st.text(st.sampled_from("0123456789.,' -+()$€%kMe\u2212\u00a0xµ\x1f"), max_size=12)


@settings(deadline=None)
@given(st.lists(st.one_of(ALPHABET, st.text(max_size=8)), max_size=8, unique=True), st.data())
def test_any_text_has_a_form_that_reads_nearly_all_rows_or_none(texts: list[str], data: st.DataObject) -> None:
    counts = np.array([data.draw(st.integers(1, 50)) for _ in texts], dtype=int)
    form, note = number_form(texts, counts)
    if form is None:
        return
    assert note == ""
    numbers: Array = form.read(texts)
    present = np.array([bool(text.strip()) for text in texts])
    assert counts[np.isfinite(numbers)].sum() >= 0.95 * counts[present].sum()
    assert not np.isinf(numbers).any()
