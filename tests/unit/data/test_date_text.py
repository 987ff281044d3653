"""Dates and times in text: which form a column has, what is in doubt, and the parts of an instant."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.data.date_text import PERIODS, DateForm, date_form, date_parts

NAT = np.datetime64("NaT", "us")


def read(*texts: str) -> list[str]:
    """The instants of a column of distinct texts with a row each, in its form, as ISO text without empty times."""
    form, note = date_form(texts, np.ones(len(texts), dtype=int))
    assert form is not None, note
    assert note == ""
    return [str(instant).removesuffix(".000000").removesuffix("T00:00:00") for instant in form.read(texts)]


def refused(*texts: str) -> str:
    """The note on a column that has no form."""
    form, note = date_form(texts, np.ones(len(texts), dtype=int))
    assert form is None
    return note


@pytest.mark.parametrize(
    ("texts", "instants"),
    [
        (
            ["2020-01-31", "2020-1-5", " 1850-02-03 ", "2500-12-31"],
            ["2020-01-31", "2020-01-05", "1850-02-03", "2500-12-31"],
        ),
        (["2020-01-31T10:00", "2020-01-31 10:00:05"], ["2020-01-31T10:00:00", "2020-01-31T10:00:05"]),
        (["2020-01-31T10:00:00.123456", "2020-01-31"], ["2020-01-31T10:00:00.123456", "2020-01-31"]),
        (
            ["2020-01-31T10:00:00.1234567891", "2020-01-31T10:00:00,5"],
            ["2020-01-31T10:00:00.123456", "2020-01-31T10:00:00.500000"],
        ),
        (["2020-01-31T10:00Z", "2020-01-31T10:00+02:00"], ["2020-01-31T10:00:00", "2020-01-31T08:00:00"]),
        (["2020-01-31 10:00:00-0530", "2020-01-31 10:00 UTC"], ["2020-01-31T15:30:00", "2020-01-31T10:00:00"]),
        (["1844-01-01T00:00-15:56"], ["1844-01-01T15:56:00"]),
        (["2020/01/31", "2020/02/28 23:59"], ["2020-01-31", "2020-02-28T23:59:00"]),
        (["2020.01.31"], ["2020-01-31"]),
        (["31.01.2020", "1.2.2020"], ["2020-01-31", "2020-02-01"]),
        (["01.02.2020"], ["2020-02-01"]),
        (["31.1.20", "1.2.99"], ["2020-01-31", "1999-02-01"]),
        (["31/01/2020", "01/02/2020"], ["2020-01-31", "2020-02-01"]),
        (["01/31/2020", "01/02/2020"], ["2020-01-31", "2020-01-02"]),
        (["1/31/20", "1/2/20"], ["2020-01-31", "2020-01-02"]),
        (["31-01-2020", "01-02-2020"], ["2020-01-31", "2020-02-01"]),
        (["01-31-2020", "01-02-2020"], ["2020-01-31", "2020-01-02"]),
        (["01/31/2020 5:30 PM", "01/02/2020 12:00 am"], ["2020-01-31T17:30:00", "2020-01-02"]),
        (["31.01.2020, 17:30"], ["2020-01-31T17:30:00"]),
        (["01/01/2020", "02/02/2020"], ["2020-01-01", "2020-02-02"]),
        (["31 Jan 2020", "1 September 2019", "1st sept. 2018"], ["2020-01-31", "2019-09-01", "2018-09-01"]),
        (["31-Jan-2020", "1-FEB-99"], ["2020-01-31", "1999-02-01"]),
        (["31JAN2020", "01FEB2020:10:00:00"], ["2020-01-31", "2020-02-01T10:00:00"]),
        (["Jan 31, 2020", "January 1 2020", "May 3rd, 2020"], ["2020-01-31", "2020-01-01", "2020-05-03"]),
        (["Friday, January 31, 2020", "Sat, Feb 1, 2020"], ["2020-01-31", "2020-02-01"]),
        (["2020-Jan-31", "2020 Feb 1"], ["2020-01-31", "2020-02-01"]),
        (
            ["Mon, 31 Jan 2020 10:00:00", "Tue, 1 Feb 2020 10:00:00 +0200"],
            ["2020-01-31T10:00:00", "2020-02-01T08:00:00"],
        ),
        (
            ["Fri Jan 31 10:00:00 2020", "Wed Oct 10 20:19:24 +0000 2018"],
            ["2020-01-31T10:00:00", "2018-10-10T20:19:24"],
        ),
        (["Jan-2011", "December 2012"], ["2011-01-01", "2012-12-01"]),
        (["2011-Jan", "2012 Dec"], ["2011-01-01", "2012-12-01"]),
        (["Jan-99", "Feb-05"], ["1999-01-01", "2005-02-01"]),
        (["2020-01", "2021-05"], ["2020-01-01", "2021-05-01"]),
        (["10:30", "9:05:30"], ["1970-01-01T10:30:00", "1970-01-01T09:05:30"]),
        (["10:30 pm", "12:00 AM"], ["1970-01-01T22:30:00", "1970-01-01"]),
    ],
)
def test_dates_are_read_in_one_form(texts: list[str], instants: list[str]) -> None:
    assert read(*texts) == instants


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (["03/04/2020", "05/06/2020"], "'03/04/2020' may be 3 April or March 4"),
        (["03-04-2020", "05-06-2020"], "'03-04-2020' may be 3 April or March 4"),
        (["31/01/2020", "01/31/2020"], "'31/01/2020' has the day first, '01/31/2020' the month"),
        (["31.1.45", "31.1.20"], "'31.1.45' may be in 1945 or 2045"),
        (["Jan-11", "Feb-12"], "'Jan-11' may have a day or a year"),
        (["2009-10", "2010-11", "2012-13"], "'2009-10' may be a month or a season of two years"),
    ],
)
def test_dates_in_doubt_have_a_note(texts: list[str], note: str) -> None:
    assert refused(*texts) == note


@pytest.mark.parametrize(
    "texts",
    [
        ["2011", "2012"],
        ["20200131", "20200228"],
        ["12", "1.5"],
        ["1.2.3", "1.2.4"],
        ["10-20", "20-30"],
        ["2020-02-30", "2021-02-29"],
        ["2020-13-01", "0000-00-00"],
        ["20-01-31", "20-01-30"],
        ["25:00", "10:61"],
        ["13:00 PM", "0:30 am"],
        ["2020-01-31 24:30", "2020-01-31 10:00+25:00"],
        ["May", "Monday"],
        ["May 5", "June 6"],
        ["Q1 2020", "2020-W05"],
        ["5 apples", "Mark 2011"],
        ["\u0662\u0660\u0662\u0660-\u0660\u0661-\u0663\u0661"],
        ["x" * 10_000, "\U0001f600", "\ud800", ""],
        [],
    ],
)
def test_other_text_is_no_date(texts: list[str]) -> None:
    assert refused(*texts) == ""


@pytest.mark.parametrize(
    ("texts", "kind", "name"),
    [
        (["2020-01-31", "2020-02-28"], "date", "dates"),
        (["2020-01-31 00:00:00", "2020-02-28 00:00:00"], "date", "dates"),
        (["2020-01-31", "2020-02-28 10:00"], "datetime", "dates with times"),
        (["10:00", "11:00"], "time", "times of day"),
    ],
)
def test_the_kind_of_dates_says_what_varies(texts: list[str], kind: str, name: str) -> None:
    form, _ = date_form(texts, np.ones(2))
    assert form is not None
    assert form.kind == kind
    assert form.describe() == f"{name} such as {texts[0]!r}"


def test_at_most_a_twentieth_of_the_rows_may_have_other_text() -> None:
    texts = ["2020-01-31", "unknown", ""]
    form, _ = date_form(texts, np.array([95, 5, 50]))
    assert form is not None
    np.testing.assert_array_equal(form.read(texts), [np.datetime64("2020-01-31", "us"), NAT, NAT])
    assert date_form(texts, np.array([94, 6, 50]))[0] is None


def test_columns_that_are_declared_to_be_dates_may_have_any_proportion_of_them() -> None:
    form, _ = date_form(["2020-01-31", "a", "b"], np.ones(3), least=0.0)
    assert form == DateForm("Y-m-d", "date")
    for texts in (["a", "b"], ["2020-02-30", "a"]):
        assert date_form(texts, np.ones(2), least=0.0) == (None, "")


def test_a_rare_day_above_twelve_in_the_place_of_the_month_is_a_stray() -> None:
    form, _ = date_form(["13/01/2020", "01/31/2020"], np.array([1, 40]))
    assert form is not None
    assert form.pattern == "m/d/Y"


def test_dates_and_times_of_python_are_themselves() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    values = [
        dt.date(2020, 1, 31),
        dt.datetime(1850, 1, 31, 10, 30, 0, 5),
        dt.datetime(2020, 1, 31, 10, 30, tzinfo=zone),
        dt.time(10, 30),
        np.datetime64("2020-01-31T10"),
        pd.Timestamp("2020-01-31 10:00", tz="Europe/Berlin"),
        "2020-02-01",
        pd.NaT,
        np.datetime64("NaT"),
        None,
        float("nan"),
        5,
        "\ud800",
    ]
    expected = [
        "2020-01-31",
        "1850-01-31T10:30:00.000005",
        "2020-01-31T08:30",
        "1970-01-01T10:30",
        "2020-01-31T10:00",
        "2020-01-31T09:00",
        "2020-02-01",
        *["NaT"] * 6,
    ]
    np.testing.assert_array_equal(DateForm("Y-m-d", "datetime").read(values), np.array(expected, "datetime64[us]"))


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["2020-01-31", None], index=[5, 6]),
        pd.Series(pd.to_datetime(["2020-01-31", None])),
        pl.Series(["2020-01-31", None]),
        pl.Series([dt.date(2020, 1, 31), None]),
        pa.array(["2020-01-31", None]),
        pa.array([dt.date(2020, 1, 31), None]),
        np.array(["2020-01-31", "NaT"], "datetime64[D]"),
        ("2020-01-31", None),
    ],
    ids=lambda values: f"{type(values).__module__}-{getattr(values, 'dtype', None) or getattr(values, 'type', '')}",
)
def test_columns_of_any_library_are_read(values: Any) -> None:
    expected = np.array(["2020-01-31", "NaT"], "datetime64[us]")
    np.testing.assert_array_equal(DateForm("Y-m-d", "date").read(values), expected)


def test_no_values_are_no_dates() -> None:
    assert DateForm("d/m/Y", "date").read([]).shape == (0,)


INSTANTS = st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 31))
FORMATS = {
    "Y-m-d": "{0.year:04}-{0.month:02}-{0.day:02}T{0.hour:02}:{0.minute:02}:{0.second:02}",
    "Y/m/d": "{0.year:04}/{0.month}/{0.day} {0.hour}:{0.minute:02}:{0.second:02}",
    "d.m.Y": "{0.day}.{0.month}.{0.year:04} {0.hour}:{0.minute:02}:{0.second:02}",
    "d/m/Y": "{0.day:02}/{0.month:02}/{0.year:04} {0.hour:02}:{0.minute:02}:{0.second:02}",
    "m/d/Y": "{0.month}/{0.day}/{0.year:04}, {0:%I:%M:%S %p}",
    "d b Y": "{0.day} {0:%B} {0.year:04} {0:%H:%M:%S}",
    "b d Y": "{0:%b} {0.day}, {0.year:04} {0:%H:%M:%S}",
}


@settings(deadline=None)
@given(st.lists(INSTANTS, min_size=1, max_size=8, unique=True), st.sampled_from(sorted(FORMATS)))
def test_instants_that_are_written_in_a_form_are_read_back(instants: list[dt.datetime], pattern: str) -> None:
    instants = [instant.replace(microsecond=0) for instant in instants]
    texts = [FORMATS[pattern].format(instant) for instant in instants]
    read_back = DateForm(pattern, "datetime").read(texts)
    np.testing.assert_array_equal(read_back, np.array(instants, "datetime64[us]"))
    form, note = date_form(texts, np.ones(len(texts)))
    assert (form is not None and form.pattern in (pattern, "d/m/Y")) or "may be" in note


@settings(deadline=None)
@given(st.lists(st.datetimes(timezones=st.timezones()), min_size=1, max_size=5))
def test_iso_instants_with_offsets_are_in_utc(instants: list[dt.datetime]) -> None:
    texts = [instant.isoformat() for instant in instants if instant.utcoffset().seconds % 60 == 0]  # type: ignore[union-attr]
    expected = pd.to_datetime(pd.Series(texts, dtype=object), utc=True, format="ISO8601", errors="coerce")
    read_back = DateForm("Y-m-d", "datetime").read(texts)
    kept = expected.notna().to_numpy()  # within the range of nanoseconds
    np.testing.assert_array_equal(
        read_back[kept], expected.dt.tz_localize(None).to_numpy()[kept].astype("datetime64[us]")
    )


ALPHABET = st.text(st.sampled_from("0123456789-/.: TZJanFebpmAM+,\u0661"), max_size=25)


@settings(deadline=None)
@given(st.lists(st.one_of(ALPHABET, st.text(max_size=8), INSTANTS.map(str)), max_size=6, unique=True))
def test_any_text_has_a_form_that_reads_nearly_all_rows_or_none(texts: list[str]) -> None:
    form, note = date_form(texts, np.ones(len(texts)))
    if form is not None:
        assert note == ""
        present = sum(bool(text.strip()) for text in texts)
        assert np.count_nonzero(~np.isnat(form.read(texts))) >= 0.95 * present


@given(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)))
def test_the_parts_of_an_instant_are_those_of_the_calendar(instant: dt.datetime) -> None:
    parts = date_parts(np.array([instant, "NaT"], "datetime64[us]"), "datetime")
    since = instant - dt.datetime(1970, 1, 1)
    midnight = instant - dt.datetime.combine(instant.date(), dt.time())
    expected = {
        "days": since / dt.timedelta(days=1),
        "year": instant.year,
        "month": instant.month,
        "weekday": instant.weekday(),
        "day_of_year": instant.timetuple().tm_yday,
        "hour": midnight / dt.timedelta(hours=1),
    }
    assert list(parts) == list(expected)
    assert {name: part[0] for name, part in parts.items()} == pytest.approx(expected, rel=1e-14)
    assert all(np.isnan(part[1]) for part in parts.values())


def test_dates_have_no_hour_and_times_nothing_else() -> None:
    instants = np.array(["2020-01-31T18:30"], "datetime64[us]")
    assert list(date_parts(instants, "date")) == ["days", "year", "month", "weekday", "day_of_year"]
    assert date_parts(instants, "date")["days"] == [18292]
    assert date_parts(instants, "time") == {"hour": 18.5}
    assert set(PERIODS) < set(date_parts(instants, "datetime"))
