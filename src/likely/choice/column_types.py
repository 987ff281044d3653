"""Column type detection: the kind of a column and a summary of its values, which determine its candidate families."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from likely.choice import identifiers
from likely.data.batches import Batch, Batches
from likely.data.table import Table
from likely.errors import InputError
from likely.families.base import Family
from likely.families.bernoulli import Bernoulli
from likely.families.categorical import Categorical
from likely.families.gamma import Gamma
from likely.families.gaussian.family import Gaussian
from likely.families.geometric import Geometric
from likely.families.log_normal import LogNormal
from likely.families.negative_binomial import NegativeBinomial
from likely.families.poisson import Poisson
from likely.numerics.arrays import has_missing
from likely.numerics.tree_sum import group_sum
from likely.typing import AnyArray, Array

FEW = 10  # distinct whole numbers up to which a column may be categorical
REPEATS = 3  # mean number of rows for each distinct value, below which a column is neither categorical nor a count
COUNT_MEAN = 20.0  # mean up to which positive whole numbers may be counts; those with zeros may be at any mean
DISPERSIONS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0, 16.0, 32.0)  # of negative binomial candidates; 1 is the geometric
DISTINCT = 2**16  # distinct values that are collected, at most
FIRST_ROWS = 4096  # rows that are searched for fractions first
SPAN = 2**20  # range of integers within which distinct values are found by marking
TEXT_DISTINCT = 0.5  # proportion of distinct values above which a column of strings may be text
DIGIT = re.compile(r"\d")
TEXT_WORDS = 4.0  # mean number of words of its distinct values, at least


@dataclass(frozen=True, slots=True, eq=False)
class ColumnProfile:
    """The kind of a column and a summary of its values, by which its family is chosen. Profiles of batches add up.

    `distinct` are the distinct values of whole numbers, None if there are more than `DISTINCT`; `different` is their
    number, also of text, as far as it is known; `drawn` is a sample of more than DISTINCT whole numbers that are all
    distinct, as far as the sample shows. A row of weight w counts as w rows, and at least as one.
    """

    kind: str
    rows: int = 0
    weight: float = 0.0
    missing: bool = False
    whole: bool = True
    low: float = np.inf
    high: float = -np.inf
    total: float = 0.0
    distinct: AnyArray | None = field(default_factory=lambda: np.zeros(0))
    different: int = 0
    words: int = 0  # in the distinct values of a column of strings, where more than half of the values are distinct
    coded: int = 0  # distinct values with a digit of such a column
    drawn: AnyArray | None = None

    @classmethod
    def at(cls, table: Table, j: int, weights: Array | None, frame: bool = False) -> ColumnProfile:
        """The profile of a column in the rows with positive weight (None: all rows have weight 1)."""
        known = ("profile", j, frame) if weights is None else None
        if known in table.cache:
            return table.cache[known]
        profile = cls._of_text(table, j, weights, frame) if table.kinds[j] == "category" else None
        if profile is None:
            profile = cls.of_numbers(table.kinds[j], table.column(j), weights, table.may_have_missing())
        if known is not None:
            table.cache[known] = profile
        return profile

    @classmethod
    def _of_text(cls, table: Table, j: int, weights: Array | None, frame: bool) -> ColumnProfile:
        if not (frame and table.has_categories(j)):
            return cls("category", int(table.has_categories(j)), whole=False, distinct=None)
        (column,) = table.categories([j])
        codes = column.part(0, table.rows)
        used = codes[codes >= 0] if weights is None else codes[(codes >= 0) & (weights > 0.0)]
        distinct = np.unique(used)
        weight = float(len(used)) if weights is None else float(weights[codes >= 0].sum())
        found = cls("category", len(used), weight, whole=False, distinct=None, different=len(distinct))
        if found.different <= TEXT_DISTINCT * found.size:
            return found
        values = [column.vocabulary[code] for code in distinct.tolist()]
        coded = sum(DIGIT.search(str(value)) is not None for value in values)
        strings = all(isinstance(value, str) for value in values)
        return replace(found, words=sum(len(value.split()) for value in values) if strings else 0, coded=coded)

    @classmethod
    def of_numbers(
        cls, kind: str, values: AnyArray, weights: Array | None, may_have_missing: bool = True
    ) -> ColumnProfile:
        """The profile of numbers; NaN is a missing value."""
        if weights is not None and not np.all(weights > 0.0):
            values, weights = values[weights > 0.0], weights[weights > 0.0]
        size = len(values)
        if values.dtype.kind == "f":
            if any(_has_fractions(part) for part in (values[:FIRST_ROWS], values)):  # the first rows usually decide
                return cls._of_fractions(kind, values, weights, may_have_missing and has_missing(values))
            if may_have_missing and has_missing(values):
                observed = ~np.isnan(values)
                values, weights = values[observed], None if weights is None else weights[observed]
        if not len(values):
            return cls(kind, missing=size > 0)
        values = values.astype(np.int8) if values.dtype.kind == "b" else values
        low, high = values.min(), values.max()
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(values.sum(dtype=np.float64) if weights is None else values.astype(np.float64) @ weights)
        weight = float(len(values)) if weights is None else float(weights.sum())
        distinct = _distinct(values, int(low), int(high))
        found = cls(kind, len(values), weight, len(values) < size, True, low, high, total)
        if distinct is not None and (len(distinct) <= DISTINCT or len(distinct) < len(values)):
            known = distinct if len(distinct) <= DISTINCT else None
            return replace(found, distinct=known, different=len(distinct))
        return found._with_many(values)

    def _with_many(self, values: AnyArray) -> ColumnProfile:
        """The profile of more whole numbers than are collected: they are all distinct where those of a sample are."""
        drawn = identifiers.sampled(values)
        return replace(self, distinct=None, drawn=drawn, different=0 if drawn is None else self.rows)

    @classmethod
    def _of_fractions(cls, kind: str, values: AnyArray, weights: Array | None, missing: bool) -> ColumnProfile:
        """The profile of numbers that are not all whole; extremes of all rows only where the first are positive."""
        low, high = float(np.fmin.reduce(values[:FIRST_ROWS])), np.inf
        if not low <= 0.0:
            low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
        weight = float(len(values)) if weights is None else float(weights.sum())
        return cls(kind, len(values), weight, missing, False, low, high, distinct=None)

    def __add__(self, other: ColumnProfile) -> ColumnProfile:
        kinds = {profile.kind for profile in (self, other) if profile.rows} or {self.kind}
        kind = kinds.pop() if len(kinds) == 1 else "category" if "category" in kinds else "number"
        both = None
        if not (self.rows and other.rows):
            both = self.distinct if self.rows else other.distinct  # whose type an empty array would change
        elif self.distinct is not None and other.distinct is not None:
            both = np.union1d(self.distinct, other.distinct)
        many = both is None or len(both) > DISTINCT
        total = ColumnProfile(
            kind,
            self.rows + other.rows,
            self.weight + other.weight,
            self.missing or other.missing,
            self.whole and other.whole,
            min(self.low, other.low),
            max(self.high, other.high),
            self.total + other.total,
            None if many else both,
            self.different + other.different if kind == "category" else 0 if both is None or many else len(both),
            self.words + other.words,
            self.coded + other.coded,
        )
        mine, others = self._all_distinct, other._all_distinct
        if kind != "number" or not many or mine is None or others is None:
            return total
        return total._with_many(np.concatenate([mine, others]))

    @property
    def _all_distinct(self) -> AnyArray | None:
        """Whole numbers that are all distinct, or a sample of them; None for others."""
        known = self.drawn if self.distinct is None else self.distinct
        return known if self.whole and self.different == self.rows else None

    def with_sample(self, drawn: ColumnProfile) -> ColumnProfile:
        """The profile with the distinct values of a random sample of the rows.

        Profiles of parts count a text once for each part. The proportion of distinct texts is at most that of the
        parts, and at most that of the sample.
        """
        if self.kind != "category" or not drawn.different or not self.size:
            return self
        different = min(float(self.different), self.size * drawn.different / drawn.size)
        part = different / drawn.different
        return replace(
            self, different=round(different), words=round(part * drawn.words), coded=round(part * drawn.coded)
        )

    @property
    def size(self) -> float:
        """The number of rows, where a weight of n counts as n rows; of weights below 1 the number of rows."""
        return max(float(self.rows), self.weight)

    @property
    def needs_sample(self) -> bool:
        """Whether the sum of the distinct values of parts does not tell if the column has text or identifies rows."""
        return self.kind == "category" and self.different > TEXT_DISTINCT * self.size

    @property
    def is_text(self) -> bool:
        """Whether the column has text: strings, more than half of them distinct, of four words or more on average."""
        distinct = self.different >= 2 and self.different > TEXT_DISTINCT * self.size
        return self.kind == "category" and distinct and self.words >= TEXT_WORDS * self.different

    @property
    def is_identifier(self) -> bool:
        """Whether the column identifies rows, as text of many words does too."""
        return bool(self.identifier_reason)

    @property
    def identifier_reason(self) -> str:
        """Why the column identifies rows, such as "codes, all distinct"; "" if it does not."""
        found = self._as_identifier()
        return found.reason if found.certain else ""

    @property
    def may_be_identifier(self) -> str:
        """Why a column that is used may identify rows; "" if nothing suggests it."""
        found = self._as_identifier()
        return "" if found.certain else found.reason

    def _as_identifier(self) -> identifiers.Finding:
        """By the distinct values alone, never by the order of rows: parts of a table agree with the whole."""
        if self.size < identifiers.IDENTIFIER_ROWS or self.kind == "boolean":
            return identifiers.Finding()
        if self.kind == "category":
            return identifiers.of_text(self.different, self.size, self.coded, self.is_text)
        if self.size > self.rows * (1.0 + 1e-9):  # some rows count as several
            return identifiers.Finding()
        return identifiers.of_numbers(self._all_distinct, self.low, self.high, self.rows)

    @property
    def numbers(self) -> str:
        """Which numbers the column has: whole or not, and positive, non-negative or any; "" for other columns."""
        if self.kind != "number":
            return ""
        sign = "positive" if self.low > 0.0 else "non-negative" if self.low >= 0.0 else "any"
        return f"{sign} whole" if self.whole else sign

    def _repeats(self) -> bool:
        """Whether distinct values repeat often enough for a distribution of whole numbers."""
        return self.rows > 0 and self.whole and self.distinct is not None and self.size >= REPEATS * len(self.distinct)

    def family(self) -> Family:
        """The simplest family that suits such a column."""
        if self.kind == "category":
            return Categorical()
        if self.kind == "boolean":
            return Bernoulli()
        if self._repeats() and self.distinct is not None:
            if len(self.distinct) <= FEW:
                return Categorical()
            if self.low >= 0 and self.total <= COUNT_MEAN * self.weight:
                return Poisson()
        return Gaussian("diagonal")

    @property
    def continuous(self) -> bool:
        """Whether continuous distributions are candidates: numbers of more than a few distinct values."""
        return self.kind == "number" and not isinstance(self.family(), Categorical)

    def continuous_candidates(self) -> tuple[Family, ...]:
        """Continuous families that are compared, the simplest first."""
        positive = self.low > 0.0 and self.high < np.inf
        return (Gaussian("diagonal"), LogNormal(), Gamma()) if positive else (Gaussian("diagonal"),)

    def candidates(self) -> tuple[Family, ...]:
        """Families that are compared, the simplest first."""
        first = self.family()
        binary = isinstance(first, Categorical) and self.distinct is not None and len(self.distinct) <= 2
        if self.kind != "number" or not self.high > self.low or binary:
            return (first,)
        found: list[Family] = [first] if isinstance(first, Categorical) else []
        if self._may_be_counts():
            found += [Poisson(), Geometric(), *map(NegativeBinomial, DISPERSIONS)]
        return (*found, *self.continuous_candidates())

    def _may_be_counts(self) -> bool:
        """Non-negative whole numbers that repeat, have no common divisor, and are small or include 0."""
        if not self._repeats() or self.low < 0 or self.distinct is None or self.high >= 2.0**53:
            return False
        small = self.total <= COUNT_MEAN * self.weight
        return (small or self.low == 0) and int(np.gcd.reduce(self.distinct.astype(np.int64))) == 1

    def without(self, table: Table, j: int, value: float, weights: Array | None) -> ColumnProfile:
        """The profile of the other values of the column."""
        values = table.column(j)
        others = np.asarray(values != value)
        return replace(
            ColumnProfile.of_numbers(self.kind, values[others], None if weights is None else weights[others]),
            missing=self.missing,
        )


def _has_fractions(values: AnyArray) -> bool:
    with np.errstate(invalid="ignore"):
        fraction = (values != np.floor(values)) & ~np.isnan(values)
    return bool(fraction.any() or np.isinf(values).any())


def _distinct(values: AnyArray, low: int, high: int) -> AnyArray | None:
    """The distinct values of whole numbers; None if there are more than DISTINCT in a wide range."""
    if max(-low, high) < 2**62 and high - low < max(SPAN, len(values)):
        seen = np.zeros(high - low + 1, dtype=bool)
        for start in range(0, len(values), SPAN):
            seen[values[start : start + SPAN].astype(np.int64) - low] = True
        return np.flatnonzero(seen) + low
    found = np.unique(values[: 4 * DISTINCT])
    if len(found) <= DISTINCT and len(values) > 4 * DISTINCT:
        found = np.unique(values)
    return found if len(found) <= DISTINCT else None


@dataclass(frozen=True, slots=True, eq=False)
class ColumnProfiles:
    """Profiles of some columns, which add up over rows.

    `numbers` are the profiles of the numbers in columns that have numbers in some parts of the rows and text in others.
    """

    each: tuple[ColumnProfile, ...]
    numbers: dict[int, ColumnProfile] = field(default_factory=dict)

    def __add__(self, other: ColumnProfiles) -> ColumnProfiles:
        total = tuple(a + b for a, b in zip(self.each, other.each, strict=True))
        numbers = {}
        for i, profile in enumerate(total):
            parts = [part for part in (self._numbers_of(i), other._numbers_of(i)) if part is not None]
            if profile.kind == "category" and parts:
                numbers[i] = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return ColumnProfiles(total, numbers)

    def _numbers_of(self, i: int) -> ColumnProfile | None:
        """The profile of the numbers of a column; None if all its values are text."""
        profile = self.each[i]
        return self.numbers.get(i) if profile.kind == "category" else profile if profile.rows else None


def _batch_profiles(columns: Sequence[int], batch: Batch) -> ColumnProfiles | None:
    """The profiles of some columns in the used rows of a batch, labeled or not."""
    found: ColumnProfiles | None = group_sum(
        [
            ColumnProfiles(tuple(ColumnProfile.at(table, j, weights, table.is_frame) for j in columns))
            for table, weights in tables([batch])
        ]
    )
    return found


def column_profiles(batches: Batches, columns: Sequence[int]) -> list[ColumnProfile]:
    """Profiles of some columns over the used rows of all batches, labeled or not."""
    if not columns:
        return []  # no pass
    total = batches.total(partial(_batch_profiles, tuple(columns)), every=True)
    assert total is not None
    for i, numbers in total.numbers.items():
        if not isinstance(
            numbers.family(), Categorical | Bernoulli
        ):  # a few whole numbers may be categories among text
            raise _mixed_types(batches, columns[i])
    if not batches.in_chunks or not any(profile.needs_sample for profile in total.each):
        return list(total.each)
    drawn = column_profiles(batches.in_memory, columns)
    return [profile.with_sample(some) for profile, some in zip(total.each, drawn, strict=True)]


def _mixed_types(batches: Iterable[Batch], j: int) -> InputError:
    """The error on a column that has numbers in some parts of a source and text in others, with its first text."""
    for table, _ in tables(batches):
        if table.kinds[j] == "category" and table.has_categories(j):
            (column,) = table.categories([j])
            codes = column.part(0, table.rows)
            row = int(np.flatnonzero(codes >= 0)[0])
            text, name = column.vocabulary[codes[row]], table.names[j]
            break
    return InputError(
        f"Column {name!r}, row {table.start + row}: {text!r} is text, and other parts of the source have numbers in "
        f"this column. Convert it to one type in all parts, or declare families={{{name!r}: Categorical()}}."
    )


def text_columns(table: Table, weights: Array | None) -> AnyArray:
    """Columns of text: strings, more than half of them distinct, of four words or more on average."""
    found = [] if table.is_sparse else [j for j, kind in enumerate(table.kinds) if kind == "category"]
    texts = [j for j in found if ColumnProfile._of_text(table, j, weights, frame=True).is_text]
    return np.array(texts, dtype=np.intp)


def tables(batches: Iterable[Batch]) -> Iterator[tuple[Table, Array | None]]:
    """The tables of labeled and unlabeled rows, and the weights of their rows."""
    for batch in batches:
        if batch.table.rows:
            yield batch.table, batch.weights
        if batch.unlabeled is not None:
            yield batch.unlabeled.table, batch.unlabeled.weights


def sparse_family(batches: Iterable[Batch]) -> Family:
    """One family for all columns of sparse rows, by their stored values."""
    whole, low, high = True, 0.0, 1.0
    for table, _ in tables(batches):
        stored = table.stored
        if stored.dtype.kind == "f":
            whole = whole and bool(np.all((stored == np.floor(stored)) | np.isnan(stored)))
        low, high = min(low, np.fmin.reduce(stored, initial=0)), max(high, np.fmax.reduce(stored, initial=1))
    if not whole or low < 0:
        return Gaussian("diagonal")
    return Bernoulli() if high <= 1 else Poisson()
