"""Column type detection: the default family of a column, by its type and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from likely.data.batches import Batch
from likely.data.table import Table
from likely.families.base import Family
from likely.families.bernoulli import Bernoulli
from likely.families.categorical import Categorical
from likely.families.gaussian.family import Gaussian
from likely.families.poisson import Poisson
from likely.numerics.arrays import has_missing
from likely.typing import AnyArray

FEW = 10  # distinct whole numbers up to which a column is categorical
REPEATS = 3  # mean number of rows for each distinct value, below which a column is continuous
COUNT_MEAN = 20.0  # mean up to which non-negative whole numbers are counts
DISTINCT = 2**16  # distinct values that are collected, at most
FIRST_ROWS = 4096  # rows that are searched for fractions first
SPAN = 2**20  # range of integers within which distinct values are found by marking


@dataclass(frozen=True, slots=True, eq=False)
class ColumnProfile:
    """The kind of a column and a summary of its values, by which its family is chosen. Profiles of batches add up.

    `distinct` are the distinct values of whole numbers, None where there are more than `DISTINCT`.
    """

    kind: str
    values: int = 0
    missing: bool = False
    whole: bool = True
    low: float = np.inf
    high: float = -np.inf
    total: float = 0.0
    distinct: AnyArray | None = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def at(cls, table: Table, j: int, used: AnyArray | None, for_missing: bool) -> ColumnProfile:
        """The profile of a column in the rows used (None: all); missing values of fractions only if asked for."""
        known = (j, for_missing) if used is None else None
        if known in table.cache:
            return table.cache[known]
        profile = cls._at(table, j, used, for_missing)
        if known is not None:
            table.cache[known] = profile
        return profile

    @classmethod
    def _at(cls, table: Table, j: int, used: AnyArray | None, for_missing: bool) -> ColumnProfile:
        kind = table.kinds[j]
        if kind == "category":
            return cls(kind, int(table.has_categories(j)), whole=False, distinct=None)
        values = table.column(j) if used is None else table.column(j)[used]
        if values.dtype.kind == "f":
            for part in (values[:FIRST_ROWS], values):  # the first rows usually decide
                with np.errstate(invalid="ignore"):
                    fraction = (part != np.floor(part)) & ~np.isnan(part)
                if fraction.any() or np.isinf(part).any():
                    return cls(kind, 1, for_missing and has_missing(values), whole=False, distinct=None)
            values = values[~np.isnan(values)]
        missing = len(values) < (table.rows if used is None else len(used))
        if not len(values):
            return cls(kind, missing=missing)
        values = values.astype(np.int8) if values.dtype.kind == "b" else values
        low, high = values.min(), values.max()
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(values.sum(dtype=np.float64))
        return cls(kind, len(values), missing, True, low, high, total, _distinct(values, int(low), int(high)))

    def __add__(self, other: ColumnProfile) -> ColumnProfile:
        kinds = {profile.kind for profile in (self, other) if profile.values} or {self.kind}
        kind = kinds.pop() if len(kinds) == 1 else "category" if "category" in kinds else "number"
        both = None
        if self.distinct is not None and other.distinct is not None:
            both = np.union1d(self.distinct, other.distinct)
        return ColumnProfile(
            kind,
            self.values + other.values,
            self.missing or other.missing,
            self.whole and other.whole,
            min(self.low, other.low),
            max(self.high, other.high),
            self.total + other.total,
            None if both is None or len(both) > DISTINCT else both,
        )

    def family(self) -> Family:
        """The default family of such a column."""
        if self.kind == "category":
            return Categorical()
        if self.kind == "boolean":
            return Bernoulli()
        if self.values and self.whole and self.distinct is not None:
            enough = self.values >= REPEATS * len(self.distinct)
            if len(self.distinct) <= FEW and enough:
                return Categorical()
            if enough and self.low >= 0 and self.total <= COUNT_MEAN * self.values:
                return Poisson()
        return Gaussian("diagonal")


def _distinct(values: AnyArray, low: int, high: int) -> AnyArray | None:
    """The distinct values of whole numbers; None where there are more than DISTINCT."""
    if max(-low, high) < 2**62 and high - low < SPAN:
        seen = np.zeros(high - low + 1, dtype=bool)
        for start in range(0, len(values), SPAN):
            seen[values[start : start + SPAN].astype(np.int64) - low] = True
        found = np.flatnonzero(seen) + low
    else:
        found = np.unique(values[: 4 * DISTINCT])
        if len(found) <= DISTINCT and len(values) > 4 * DISTINCT:
            found = np.unique(values)
    return found if len(found) <= DISTINCT else None


def column_profiles(batches: Iterable[Batch], columns: Sequence[int], for_missing: bool) -> list[ColumnProfile]:
    """Profiles of some columns over the used rows of all batches, labeled or not."""
    total: list[ColumnProfile] = []
    for table, used in _tables(batches):
        profiles = [ColumnProfile.at(table, j, used, for_missing) for j in columns]
        total = profiles if not total else [a + b for a, b in zip(total, profiles, strict=True)]
    return total


def _tables(batches: Iterable[Batch]) -> Iterator[tuple[Table, AnyArray | None]]:
    """The tables of labeled and unlabeled rows, and which of their rows are used."""
    for batch in batches:
        if batch.table.rows:
            yield batch.table, batch.used
        if batch.unlabeled is not None:
            yield batch.unlabeled.table, batch.unlabeled.used


def sparse_family(batches: Iterable[Batch]) -> Family:
    """One family for all columns of sparse rows, by their stored values."""
    whole, low, high = True, 0.0, 1.0
    for table, _ in _tables(batches):
        stored = table.stored
        if stored.dtype.kind == "f":
            whole = whole and bool(np.all((stored == np.floor(stored)) | np.isnan(stored)))
        low, high = min(low, np.fmin.reduce(stored, initial=0)), max(high, np.fmax.reduce(stored, initial=1))
    if not whole or low < 0:
        return Gaussian("diagonal")
    return Bernoulli() if high <= 1 else Poisson()
