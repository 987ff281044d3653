"""Column type detection: which family suits a column, by its type and values."""

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

FEW = 10
REPEATS = 3
COUNT_MEAN = 20.0
DIFFERENT = 2**16
LOOK = 4096
SPAN = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class ColumnProfile:
    """What the family of a column is chosen by: its kind and a few facts about its values. Looks add up.

    `different` are the distinct values of whole numbers, None where there are more than `DIFFERENT`.
    """

    kind: str
    values: int = 0
    holes: bool = False
    whole: bool = True
    low: float = np.inf
    high: float = -np.inf
    total: float = 0.0
    different: AnyArray | None = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def at(cls, table: Table, j: int, used: AnyArray | None, for_missing: bool) -> ColumnProfile:
        """A look at a column of a table, in the rows that are used (None: all); for holes in fractions if asked."""
        known = (j, for_missing) if used is None else None
        if known in table.cache:
            return table.cache[known]
        look = cls._at(table, j, used, for_missing)
        if known is not None:
            table.cache[known] = look
        return look

    @classmethod
    def _at(cls, table: Table, j: int, used: AnyArray | None, for_missing: bool) -> ColumnProfile:
        kind = table.kinds[j]
        if kind == "category":
            return cls(kind, int(table.has_categories(j)), whole=False, different=None)
        values = table.column(j) if used is None else table.column(j)[used]
        if values.dtype.kind == "f":
            for part in (values[:LOOK], values):  # as a rule the first rows tell
                with np.errstate(invalid="ignore"):
                    fraction = (part != np.floor(part)) & ~np.isnan(part)
                if fraction.any() or np.isinf(part).any():
                    return cls(kind, 1, for_missing and has_missing(values), whole=False, different=None)
            values = values[~np.isnan(values)]
        holes = len(values) < (table.rows if used is None else len(used))
        if not len(values):
            return cls(kind, holes=holes)
        values = values.astype(np.int8) if values.dtype.kind == "b" else values
        low, high = values.min(), values.max()
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(values.sum(dtype=np.float64))
        return cls(kind, len(values), holes, True, low, high, total, _different(values, int(low), int(high)))

    def __add__(self, other: ColumnProfile) -> ColumnProfile:
        kinds = {look.kind for look in (self, other) if look.values} or {self.kind}
        kind = kinds.pop() if len(kinds) == 1 else "category" if "category" in kinds else "number"
        both = None
        if self.different is not None and other.different is not None:
            both = np.union1d(self.different, other.different)
        return ColumnProfile(
            kind,
            self.values + other.values,
            self.holes or other.holes,
            self.whole and other.whole,
            min(self.low, other.low),
            max(self.high, other.high),
            self.total + other.total,
            None if both is None or len(both) > DIFFERENT else both,
        )

    def family(self) -> Family:
        """The family that suits such a column."""
        if self.kind == "category":
            return Categorical()
        if self.kind == "boolean":
            return Bernoulli()
        if self.whole and self.different is not None:
            enough = self.values >= REPEATS * len(self.different)
            if len(self.different) <= FEW and enough:
                return Categorical()
            if enough and self.low >= 0 and self.total <= COUNT_MEAN * self.values:
                return Poisson()
        return Gaussian("diagonal")


def _different(values: AnyArray, low: int, high: int) -> AnyArray | None:
    """The distinct values of whole numbers, None where there are too many."""
    if max(-low, high) < 2**62 and high - low < SPAN:
        seen = np.zeros(high - low + 1, dtype=bool)
        for start in range(0, len(values), SPAN):
            seen[values[start : start + SPAN].astype(np.int64) - low] = True
        found = np.flatnonzero(seen) + low
    else:
        found = np.unique(values[: 4 * DIFFERENT])
        if len(found) <= DIFFERENT and len(values) > 4 * DIFFERENT:
            found = np.unique(values)
    return found if len(found) <= DIFFERENT else None


def column_profiles(batches: Iterable[Batch], columns: Sequence[int], for_missing: bool) -> list[ColumnProfile]:
    """Looks at some columns of all rows that are used, whatever batches they come in."""
    total: list[ColumnProfile] = []
    for table, used in _tables(batches):
        looks = [ColumnProfile.at(table, j, used, for_missing) for j in columns]
        total = looks if not total else [a + b for a, b in zip(total, looks, strict=True)]
    return total


def _tables(batches: Iterable[Batch]) -> Iterator[tuple[Table, AnyArray | None]]:
    """All tables, of rows with and without labels, and which of their rows are used."""
    for batch in batches:
        if batch.table.rows:
            yield batch.table, batch.used
        if batch.unlabeled is not None:
            yield batch.unlabeled.table, batch.unlabeled.used


def sparse_family(batches: Iterable[Batch]) -> Family:
    """One family for all columns of sparse rows: they are alike, and may be many."""
    whole, low, high = True, 0.0, 1.0
    for table, _ in _tables(batches):
        stored = table.stored
        if stored.dtype.kind == "f":
            whole = whole and bool(np.all((stored == np.floor(stored)) | np.isnan(stored)))
        low, high = min(low, np.fmin.reduce(stored, initial=0)), max(high, np.fmax.reduce(stored, initial=1))
    if not whole or low < 0:
        return Gaussian("diagonal")
    return Bernoulli() if high <= 1 else Poisson()
