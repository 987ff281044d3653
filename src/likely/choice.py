"""Which columns make up which block, and which family each has where the user does not say.

The choice depends on the type of a column and on its values, not on their order. A column of whole numbers, each of
them seen `REPEATS` times on average, is categorical where it has at most `FEW` different values, and a count where it
has no negative ones, a mean of at most `COUNT_MEAN` and at most `DIFFERENT` different values; any other is continuous.
Where several families may suit a column, all of them are named, and rows left out decide (`candidates`): up to `WIDE`
columns may have covariances of the classes' own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from likely.errors import InputError, listed
from likely.families.base import Family
from likely.families.bernoulli import Bernoulli
from likely.families.categorical import Categorical
from likely.families.components import MixtureFamily
from likely.families.gaussian import Gaussian
from likely.families.geometric import Geometric
from likely.families.poisson import Poisson
from likely.numerics import AnyArray, has_holes
from likely.sources import Batch, Batches
from likely.tables import Table

FEW = 10
REPEATS = 3
COUNT_MEAN = 20.0
DIFFERENT = 2**16
LOOK = 4096
WIDE = 1000
SPAN = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Columns (None: all, in order) and their family; `joint` where the user wants one density of all of them.

    Where there are `others`, they stand to choice beside the family: `candidates` decides. Others that collect the same
    stay in the choice: what is collected serves them too.
    """

    columns: tuple[int, ...] | None
    family: Family
    joint: bool = False
    others: tuple[Family, ...] = ()

    @property
    def collector(self) -> Family:
        """The family whose statistics are collected: they serve all that stand to choice."""
        family = self.family
        for other in self.others:
            family = family.serving(other)
        return family


@dataclass(frozen=True, slots=True, eq=False)
class Look:
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
    def at(cls, table: Table, j: int, used: AnyArray | None, for_holes: bool) -> Look:
        """A look at a column of a table, in the rows that are used (None: all); for holes in fractions if asked."""
        known = (j, for_holes) if used is None else None
        if known in table.notes:
            return table.notes[known]
        look = cls._at(table, j, used, for_holes)
        if known is not None:
            table.notes[known] = look
        return look

    @classmethod
    def _at(cls, table: Table, j: int, used: AnyArray | None, for_holes: bool) -> Look:
        kind = table.kinds[j]
        if kind == "label":
            return cls(kind, int(table.has_labels(j)), whole=False, different=None)
        values = table.column(j) if used is None else table.column(j)[used]
        if values.dtype.kind == "f":
            for part in (values[:LOOK], values):  # as a rule the first rows tell
                with np.errstate(invalid="ignore"):
                    fraction = (part != np.floor(part)) & ~np.isnan(part)
                if fraction.any() or np.isinf(part).any():
                    return cls(kind, 1, for_holes and has_holes(values), whole=False, different=None)
            values = values[~np.isnan(values)]
        holes = len(values) < (table.rows if used is None else len(used))
        if not len(values):
            return cls(kind, holes=holes)
        values = values.astype(np.int8) if values.dtype.kind == "b" else values
        low, high = values.min(), values.max()
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(values.sum(dtype=np.float64))
        return cls(kind, len(values), holes, True, low, high, total, _different(values, int(low), int(high)))

    def __add__(self, other: Look) -> Look:
        kinds = {look.kind for look in (self, other) if look.values} or {self.kind}
        kind = kinds.pop() if len(kinds) == 1 else "label" if "label" in kinds else "number"
        both = None
        if self.different is not None and other.different is not None:
            both = np.union1d(self.different, other.different)
        return Look(
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
        if self.kind == "label":
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


def _looks(batches: Iterable[Batch], columns: Sequence[int], for_holes: bool) -> list[Look]:
    """Looks at some columns of all rows that are used, whatever batches they come in."""
    total: list[Look] = []
    for table, used in _tables(batches):
        looks = [Look.at(table, j, used, for_holes) for j in columns]
        total = looks if not total else [a + b for a, b in zip(total, looks, strict=True)]
    return total


def _tables(batches: Iterable[Batch]) -> Iterator[tuple[Table, AnyArray | None]]:
    """All tables, of rows with and without labels, and which of their rows are used."""
    for batch in batches:
        if batch.table.rows:
            yield batch.table, batch.used
        if batch.free is not None:
            yield batch.free.table, batch.free.used


def _sparse_look(batches: Iterable[Batch]) -> Family:
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


def column_index(name: Any, names: Sequence[str]) -> int:
    """The place of a column that a user names, or numbers."""
    if str(name) in names:
        return names.index(str(name))
    if isinstance(name, Integral) and not isinstance(name, bool) and 0 <= int(name) < len(names):
        return int(name)
    raise InputError(f"families names column {name!r}, which is not in X: {listed(names)}.")


def declared(families: Any, names: Sequence[str]) -> list[Plan]:
    """Blocks as a mapping from columns to families declares them."""
    if not isinstance(families, Mapping):
        raise InputError(f"families={families!r} is neither a family nor a mapping from columns to families.")
    plans: list[Plan] = []
    used: set[int] = set()
    for key, family in families.items():
        if not isinstance(family, Family):
            raise InputError(f"families[{key!r}] = {family!r} is not a family.")
        columns = tuple(column_index(name, names) for name in (key if isinstance(key, tuple) else (key,)))
        if not columns or used & set(columns) or len(set(columns)) < len(columns):
            raise InputError(f"families[{key!r}] names no column, or one that stands in a block already.")
        used |= set(columns)
        plans.append(single(Plan(columns, clone(family), joint=isinstance(key, tuple)), len(names)))
    return plans


def everything(family: Family, names: Sequence[str]) -> Plan:
    """One family for all columns, but for those that it only needs beside them."""
    family = clone(family)
    others = {column_index(name, names) for name in family.extra()}
    if not others:
        return single(Plan(None, family), len(names))
    columns = tuple(j for j in range(len(names)) if j not in others)
    if not columns:
        raise InputError(f"X has no columns beside {listed(names)}, which {type(family).__name__} does not model.")
    return single(Plan(columns, family), len(names))


def single(plan: Plan, width: int) -> Plan:
    """A Gaussian block of one column as a diagonal one: it varies with nothing, and may miss cells.

    One with several components for each class has its own family.
    """
    family = plan.family
    if isinstance(family, Gaussian) and family.components != 1:
        family.check("mle" if family.prior is None else "map")
        return Plan(plan.columns, MixtureFamily(family, int(family.components)), plan.joint)
    if (width if plan.columns is None else len(plan.columns)) > 1:
        return plan
    if isinstance(family, Gaussian) and family.covariance == "full" and not isinstance(family.shrinkage, str):
        return Plan(plan.columns, family.set_params(covariance="diagonal"), plan.joint)
    return plan


def extra_columns(plans: Sequence[Plan], names: Sequence[str]) -> set[int]:
    """Columns that some family needs beside its own: nobody models them unless they are declared."""
    return {column_index(name, names) for plan in plans for name in plan.family.extra()}


def undeclared(batches: Batches, plans: Sequence[Plan], together: bool) -> list[Plan]:
    """Blocks for the columns that nothing was said of, one for each family.

    `together` puts continuous columns without holes into one Gaussian block with a shared covariance, and lets the rows
    decide between that and covariances of the classes' own, and between the families that may suit counts.
    """
    table = batches.first.table
    taken = {j for plan in plans for j in plan.columns or ()} | extra_columns(plans, table.names)
    rest = [j for j in range(table.width) if j not in taken]
    if not rest:
        return []
    if table.is_sparse:
        family = _sparse_look(batches)
        if together and isinstance(family, Gaussian):
            family = Gaussian("diagonal", shared=True)
        columns = None if len(rest) == table.width else tuple(rest)
        dense = isinstance(family, Gaussian)  # other candidates would have rows written out
        return [Plan(columns, family, others=_others(family, len(rest)) if together and dense else ())]
    blocks: dict[str, list[int]] = {}
    kinds: dict[str, Family] = {}
    for j, look in zip(rest, _looks(batches, rest, for_holes=together), strict=True):
        family = look.family()
        name = type(family).__name__
        if isinstance(family, Gaussian) and together:
            family = Gaussian("diagonal", shared=True) if look.holes else Gaussian(shared=True)
            name = f"{name}, {family.covariance}"
        blocks.setdefault(name, []).append(j)
        kinds.setdefault(name, family)
    whole = len(blocks) == 1 and len(rest) == table.width
    return [
        Plan(
            None if whole else tuple(columns),
            kinds[name],
            others=_others(kinds[name], len(columns)) if together else (),
        )
        for name, columns in blocks.items()
    ]


def _others(family: Family, columns: int) -> tuple[Family, ...]:
    """What may suit undeclared columns better than the family that their values suggest."""
    if isinstance(family, Gaussian):
        own = Gaussian(family.covariance)
        return (own,) if family.apart or columns <= WIDE else ()
    return (Geometric(), Gaussian("diagonal")) if isinstance(family, Poisson) else ()


def apart(plan: Plan) -> Plan:
    """The same block with its columns independent, for a naive Bayes; an error where they cannot be."""
    family = plan.family
    if isinstance(family, MixtureFamily):
        raise InputError(
            "NaiveBayes keeps columns apart, but those of a class with several components vary together. "
            "Use GenerativeClassifier for Gaussian(components=...)."
        )
    mixed = family.reads_labels or not family.apart
    if plan.joint and len(plan.columns or ()) > 1 and mixed and not family.together:
        raise InputError(
            f"NaiveBayes keeps columns apart, but families puts {len(plan.columns or ())} columns together. "
            "Use GenerativeClassifier for joint blocks."
        )
    if isinstance(family, Gaussian) and family.covariance == "full":
        family = clone(family).set_params(covariance="diagonal")
    return Plan(plan.columns, family)
