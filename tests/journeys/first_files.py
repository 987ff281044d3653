"""Six files as they come: samples of real tables written as people write them, and the same tables cleaned by hand.

The numbers, dates and identifiers of a file are text of many forms, words stand among numbers, columns are empty,
constant, or copies of the label. A file and its clean table have the same rows; everything is drawn from a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

DATA = Path(__file__).parents[1] / "data"
SURNAMES = "Abbott Baker Carter Dean Ellis Ford Grant Hughes Irwin Jones Kent Lamb Moore Nash Owen Price Quinn Reid"
FIRST = "Ada Ben Cora Dan Eve Fay Gus Hal Ida Jay Kim Leo Mia Ned Oda Pam Ray Sue Tom Una Vic Wes Zoe Amy Bob Cat"
SECOND = "Ann Beth Claire Dora Ella Faith Gwen Hope Iris Jane Kate Lucy"
ROW_NUMBERS = "row numbers: distinct whole numbers, evenly spread"
LONG_NUMBERS = "codes: distinct whole numbers of one length"
CODES = "codes, "
NAMES = "names, "


@dataclass
class FirstFile:
    """A file as it comes (`dirty`), its clean table, and what each column becomes."""

    name: str
    target: str
    rows: int
    rng: np.random.Generator
    dirty: dict[str, Any] = field(default_factory=dict)
    clean: dict[str, Any] = field(default_factory=dict)
    decisions: dict[str, str] = field(default_factory=dict)  # by column, how `decision` or, set aside, `reason` begins
    strays: dict[str, int] = field(default_factory=dict)  # words among the numbers of a column
    leaks: list[str] = field(default_factory=list)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The file, with its target as the last column; all cells are text."""
        return pd.DataFrame(self.dirty)

    @cached_property
    def cleaned(self) -> pd.DataFrame:
        """The table that is cleaned by hand, without leaks and without the target."""
        return pd.DataFrame(self.clean)

    @cached_property
    def labels(self) -> pd.Series[str]:
        """The labels without the blanks at their ends."""
        return pd.Series([label.strip() for label in self.dirty[self.target]], name=self.target)

    @cached_property
    def halves(self) -> tuple[Any, Any]:
        """The rows of training and those held out, 70 to 30 in each class."""
        rng, train = np.random.default_rng(1), np.zeros(self.rows, dtype=bool)
        for label in sorted(set(self.labels)):
            rows = rng.permutation(np.flatnonzero(self.labels == label))
            train[rows[: round(0.7 * len(rows))]] = True
        return np.flatnonzero(train), np.flatnonzero(~train)

    def keep(self, name: str, values: Any, decision: str = "") -> None:
        """A column that is clean already."""
        self.dirty[name] = self.clean[name] = values
        self.decisions[name] = decision

    def numbers(self, name: str, values: Any, text: Callable[[float], str], words: int = 0) -> None:
        """A column of numbers that the file has as text, with some other words among them."""
        numbers = np.asarray(values, dtype=np.float64).copy()
        cells = [None if np.isnan(each) else text(each) for each in numbers]
        rows = self.rng.permutation(np.flatnonzero(~np.isnan(numbers)))[:words]
        for row, word in zip(rows, ["unknown", "<LOD", "see notes"] * words, strict=False):
            cells[row], numbers[row] = word, np.nan
        self.dirty[name], self.clean[name], self.decisions[name] = cells, numbers, ""
        if words:
            self.strays[name] = words

    def dates(self, name: str, when: Any, form: str) -> None:
        """A column of dates in the form of strftime, which the clean table has as numbers."""
        when = pd.Series(pd.to_datetime(when))
        self.dirty[name] = [None if pd.isna(each) else each.strftime(form) for each in when]
        parts = {
            "days": (when - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
            "year": when.dt.year,
            "month": when.dt.month,
            "weekday": when.dt.day_of_week,
            "day_of_year": when.dt.day_of_year,
            "hour": when.dt.hour + when.dt.minute / 60,
        }
        days = parts["days"]
        if days.max() - days.min() < 366:
            del parts["day_of_year"]
        varying = [part for part, values in parts.items() if values.nunique() > 1]
        self.clean |= {f"{name}.{part}": np.asarray(parts[part], dtype=np.float64) for part in varying}
        self.decisions[name] = f"expanded to {', '.join(f'{name}.{part}' for part in varying)}"

    def random_dates(self, name: str, first: str, days: int, form: str, clock: bool = False) -> None:
        """Dates that have nothing to do with the label."""
        when = pd.Timestamp(first) + pd.to_timedelta(self.rng.integers(0, days, self.rows), "D")
        if clock:
            when = when + pd.to_timedelta(self.rng.integers(7 * 60, 19 * 60, self.rows), "min")
        self.dates(name, when, form)

    def aside(self, name: str, values: Any, reason: str) -> None:
        """A column that is not used."""
        self.dirty[name] = values
        self.decisions[name] = f"set aside: {reason}"

    def row_numbers(self, name: str, first: int) -> None:
        self.aside(name, np.arange(first, first + self.rows), ROW_NUMBERS)

    def random_codes(self, name: str, form: Callable[[int], str], reason: str) -> None:
        """Distinct codes made of random numbers of 64 bits."""
        codes = self.rng.permutation(np.unique(self.rng.integers(2**60, 2**63, 2 * self.rows)))[: self.rows]
        self.aside(name, [form(int(code)) for code in codes], reason)

    def uuids(self, name: str) -> None:
        self.random_codes(name, lambda code: f"{code:016x}-{code * 7 % 16**4:04x}", CODES)

    def long_numbers(self, name: str) -> None:
        self.random_codes(name, lambda code: f"{code % 9 + 1}{code // 9 % 10**11:011d}", LONG_NUMBERS)

    def phones(self, name: str) -> None:
        self.random_codes(name, lambda code: f"+1 617-{code % 900 + 100}-{code // 900 % 10**4:04d}", CODES)

    def names(self, name: str) -> None:
        """Names of people, of which a few are equal."""
        parts = (self.rng.choice(names.split(), self.rows) for names in (SURNAMES, FIRST, FIRST, SECOND))
        self.aside(name, [f"{a}, {b}-{c} {d[0]}." for a, b, c, d in zip(*parts, strict=True)], NAMES)

    def useless(self) -> None:
        """An empty column and a constant one."""
        self.aside("remarks", [None] * self.rows, "no values")
        self.aside("currency", ["USD"] * self.rows, "constant")

    def leak(self, name: str, other_names: dict[str, str]) -> None:
        """A copy of the label under other names."""
        self.dirty[name] = [other_names[label] for label in self.dirty[self.target]]
        self.leaks.append(name)

    def copies(self, share: float) -> None:
        """Some rows again, at the end."""
        more = self.rng.permutation(self.rows)[: round(share * self.rows)]
        rows = np.concatenate([np.arange(self.rows), more])
        for columns in (self.dirty, self.clean):
            columns.update({name: pd.Series(values).iloc[rows].to_list() for name, values in columns.items()})
        self.rows = len(rows)


def sample(name: str) -> pd.DataFrame:
    """A sample of a table in tests/data, in the types of its values."""
    frame = pd.read_csv(DATA / f"{name}_sample.csv.gz", keep_default_na=False, na_values=[""])
    return frame.rename(columns={"target": "label"})


def dollars(value: float) -> str:
    return f"${value:,.10g}"


def percent(value: float) -> str:
    return f"{value:.10g}%"


def comma(value: float) -> str:
    return f"{value:.10g}".replace(".", ",")


def plain(value: float) -> str:
    return f"{value:.10g}"


def zip_codes(areas: Any) -> list[str]:
    """Five digits for each area, the first of which is zero; areas share them, so that there are eight."""
    places = {area: i % 8 for i, area in enumerate(sorted(set(areas)))}
    return [f"{places[area] * 211 + 501:05d}" for area in areas]


def started(name: str, seed: int) -> tuple[FirstFile, pd.DataFrame]:
    frame = sample(name)
    return FirstFile(name, "label", len(frame), np.random.default_rng(seed)), frame


def lending_club() -> FirstFile:
    file, frame = started("lending_club", 0)
    file.row_numbers("id", 100_001)
    file.uuids("member")
    file.random_dates("issued", "2014-03-01", 900, "%Y-%m-%d")
    file.numbers("funded_amnt", frame.pop("funded_amnt"), dollars)
    file.numbers("term", frame.pop("term").str.removeprefix("term_").astype(float), lambda v: f"{v:.0f} months")
    file.numbers("int_rate", frame.pop("int_rate"), percent)
    file.numbers("revol_util", frame.pop("revol_util"), lambda v: f"{v:.10g} %", words=2)
    file.numbers("annual_inc", frame.pop("annual_inc"), plain, words=3)
    file.keep("zip", zip_codes(frame["addr_state"]), "Categorical")
    label = frame.pop("label")
    for name in frame:
        file.keep(name, frame[name].to_list())
    file.useless()
    file.dirty["label"] = label.to_list()
    file.leak("status", {"good": "Fully Paid", "bad": "Charged Off"})
    return file


def titanic() -> FirstFile:
    file, frame = started("titanic", 1)
    file.names("name")
    file.long_numbers("ticket")
    file.random_dates("booked", "1910-06-01", 600, "%d %b %Y")
    file.numbers("fare", frame.pop("fare"), lambda v: f"£{v:.4f}")
    file.numbers("age", frame.pop("age"), plain, words=2)
    label = frame.pop("label")
    for name in frame:
        file.keep(name, frame[name].to_list())
    file.useless()
    blanks = file.rng.random(file.rows) < 0.1
    names = np.where(label == 1, "survived", "died")
    file.dirty["label"] = [f"{name} " if blank else str(name) for name, blank in zip(names, blanks, strict=True)]
    file.leak("alive", {"survived": "yes", "survived ": "yes", "died": "no", "died ": "no"})
    return file


def nycflights13() -> FirstFile:
    file, frame = started("nycflights13", 2)
    label = np.where(frame.pop("arr_delay") > 15, "late", "on time")
    file.row_numbers("Unnamed: 0", 0)
    file.long_numbers("booking")
    clock = frame["hour"] * 60 + frame["minute"]
    day = pd.to_datetime(frame[["year", "month", "day"]])
    file.dates("scheduled", day + pd.to_timedelta(clock, "min"), "%m/%d/%Y %I:%M %p")
    frame = frame.drop(columns=["year", "month", "day", "hour", "minute"])
    file.numbers("distance", frame.pop("distance"), lambda v: f"{v:,.0f} mi")
    file.numbers("dep_delay", frame.pop("dep_delay"), plain, words=4)
    file.keep("gate", [f"{code:03d}" for code in file.rng.integers(1, 9, file.rows)], "Categorical")
    for name in frame:
        file.keep(name, frame[name].to_list())
    file.useless()
    file.dirty["label"] = label.tolist()
    file.leak("delayed", {"late": "Y", "on time": "N"})
    return file


def noaa_rain() -> FirstFile:
    file, frame = started("noaa_rain", 3)
    file.phones("station_phone")
    file.random_dates("measured", "2009-01-01", 1200, "%d.%m.%Y")
    file.numbers("feat_1", frame.pop("feat_1"), lambda v: f"{v:.10g} F")
    file.numbers("feat_2", frame.pop("feat_2"), comma, words=5)
    file.numbers("feat_3", frame.pop("feat_3"), lambda v: f"{v:,.1f}".translate({44: ".", 46: ","}))
    label = frame.pop("label")
    for name in frame:
        file.keep(name, frame[name].to_list())
    file.useless()
    file.dirty["label"] = np.where(label == 1, "rain", "dry").tolist()
    file.leak("umbrella", {"rain": "open", "dry": "closed"})
    file.copies(0.06)
    return file


def credit_data() -> FirstFile:
    file, frame = started("credit_data", 4)
    file.row_numbers("row", 1)
    file.names("customer")
    file.random_dates("applied", "2018-01-05", 340, "%Y-%m-%dT%H:%M:%S", clock=True)
    file.numbers("Price", frame.pop("Price"), lambda v: f"EUR {v:,.2f}")
    file.numbers("Income", frame.pop("Income"), plain, words=9)
    file.numbers("Assets", frame.pop("Assets"), lambda v: f"{v / 1000:.10g}k" if v >= 1000 else plain(v))
    file.keep("branch", [f"{code:04d}" for code in file.rng.integers(1, 10, file.rows)], "Categorical")
    label = frame.pop("label")
    for name in frame:
        file.keep(name, frame[name].to_list())
    file.useless()
    file.dirty["label"] = label.to_list()
    file.leak("default", {"good": "False", "bad": "True"})
    return file


def wvs_poverty() -> FirstFile:
    """A table of 301 columns, most of which have nothing to do with the label."""
    file, frame = started("wvs_poverty", 5)
    file.uuids("respondent")
    file.phones("phone")
    file.random_dates("interview", "1995-02-01", 500, "%d/%m/%Y")
    label = frame.pop("label")
    for name in frame:
        file.keep(name, frame[name].to_list())
    file.useless()
    codes = {"Too Little": 1, "About Right": 2, "Too Much": 3}
    for i in range(301 - len(file.dirty) - 2):
        values, text = 50.0 + 10.0 * file.rng.normal(size=file.rows), (percent, comma, dollars)[i // 6 % 3]
        if i % 6:
            file.keep(f"q{i}", file.rng.integers(1, 6, file.rows), "Categorical")
        else:
            file.numbers(f"q{i}", values.round(0 if text is dollars else 2), text, words=int(i == 6))
    file.dirty["label"] = label.to_list()
    file.leak("answer", {name: str(code) for name, code in codes.items()})
    return file


FILES: dict[str, Callable[[], FirstFile]] = {
    make.__name__: make for make in (lending_club, titanic, nycflights13, noaa_rain, credit_data, wvs_poverty)
}
