"""Which columns make up which block, and which family each has where the user does not say.

The choice depends on the type of a column and on its values, not on their order. A column of whole numbers, each of
them seen `REPEATS` times on average, is categorical where it has at most `FEW` different values, and a count where it
has no negative ones and a mean of at most `COUNT_MEAN`; any other is continuous.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from likely.errors import InputError, listed
from likely.families.base import Family
from likely.families.bernoulli import Bernoulli
from likely.families.categorical import Categorical
from likely.families.gaussian import Gaussian
from likely.families.poisson import Poisson
from likely.numerics import AnyArray, has_holes
from likely.tables import Table

FEW = 10
REPEATS = 3
COUNT_MEAN = 20.0
LOOK = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Columns (None: all, in order) and their family; `joint` where the user wants one density of all of them."""

    columns: tuple[int, ...] | None
    family: Family
    joint: bool = False


def chosen_family(table: Table, j: int, used: AnyArray | None = None) -> Family:
    """The family of a column by its type, and its values in the rows that are used."""
    kind = table.kinds[j]
    if kind == "label":
        return Categorical()
    if kind == "boolean":
        return Bernoulli()
    return _by_values(table.column(j) if used is None else table.column(j)[used])


def _by_values(values: AnyArray) -> Family:
    if values.dtype.kind == "f":
        for part in (values[:LOOK], values):  # as a rule the first rows tell
            with np.errstate(invalid="ignore"):
                fraction = (part != np.floor(part)) & ~np.isnan(part)
            if fraction.any() or np.isinf(part).any():
                return Gaussian("diagonal")
        values = values[~np.isnan(values)]
    if len(np.unique(values[:LOOK])) <= FEW:
        different = len(np.unique(values))
        if different <= FEW and len(values) >= REPEATS * different:
            return Categorical()
    if len(values) and values.min() >= 0 and values.mean(dtype=np.float64) <= COUNT_MEAN:
        room = REPEATS * (int(values.max()) + 1)
        if len(values) >= room or len(values) >= REPEATS * len(np.unique(values)):
            return Poisson()
    return Gaussian("diagonal")


def _chosen_together(table: Table) -> Family:
    """One family for all columns of sparse rows: they are alike, and may be many."""
    stored = table.stored
    whole = stored.dtype.kind != "f" or bool(np.all((stored == np.floor(stored)) | np.isnan(stored)))
    if whole and np.all((stored == 0) | (stored == 1) | (stored != stored)):
        return Bernoulli()
    return Poisson() if whole and stored.min() >= 0 else Gaussian("diagonal")


def column_index(name: Any, names: Sequence[str]) -> int:
    """The place of a column that a user names, or numbers."""
    if str(name) in names:
        return names.index(str(name))
    if isinstance(name, Integral) and not isinstance(name, bool) and 0 <= int(name) < len(names):
        return int(name)
    raise InputError(f"families names column {name!r}, which is not in X: {listed(names)}.")


def declared(families: Any, table: Table) -> list[Plan]:
    """Blocks as a mapping from columns to families declares them."""
    if not isinstance(families, Mapping):
        raise InputError(f"families={families!r} is neither a family nor a mapping from columns to families.")
    plans: list[Plan] = []
    used: set[int] = set()
    for key, family in families.items():
        if not isinstance(family, Family):
            raise InputError(f"families[{key!r}] = {family!r} is not a family.")
        columns = tuple(column_index(name, table.names) for name in (key if isinstance(key, tuple) else (key,)))
        if not columns or used & set(columns) or len(set(columns)) < len(columns):
            raise InputError(f"families[{key!r}] names no column, or one that stands in a block already.")
        used |= set(columns)
        plans.append(Plan(columns, clone(family), joint=isinstance(key, tuple)))
    return plans


def extra_columns(plans: Sequence[Plan], names: Sequence[str]) -> set[int]:
    """Columns that some family needs beside its own: nobody models them unless they are declared."""
    return {column_index(name, names) for plan in plans for name in plan.family.extra()}


def undeclared(table: Table, plans: Sequence[Plan], together: bool, used: AnyArray | None = None) -> list[Plan]:
    """Blocks for the columns that nothing was said of, one for each family.

    `together` puts continuous columns without holes into one Gaussian block with a shared covariance. `used` are
    the rows whose values choose, None for all.
    """
    taken = {j for plan in plans for j in plan.columns or ()} | extra_columns(plans, table.names)
    rest = [j for j in range(table.width) if j not in taken]
    if not rest:
        return []
    if table.is_sparse:
        family = _chosen_together(table)
        if together and isinstance(family, Gaussian):
            family = Gaussian("diagonal", shared=True)
        return [Plan(None if len(rest) == table.width else tuple(rest), family)]
    blocks: dict[str, list[int]] = {}
    kinds: dict[str, Family] = {}
    for j in rest:
        family = chosen_family(table, j, used)
        name = type(family).__name__
        if isinstance(family, Gaussian) and together:
            holed = has_holes(table.column(j))
            family = Gaussian("diagonal", shared=True) if holed else Gaussian(shared=True)
            name = f"{name}, {family.covariance}"
        blocks.setdefault(name, []).append(j)
        kinds.setdefault(name, family)
    whole = len(blocks) == 1 and len(rest) == table.width
    return [Plan(None if whole else tuple(columns), kinds[name]) for name, columns in blocks.items()]


def apart(plan: Plan) -> Plan:
    """The same block with its columns independent, for a naive Bayes; an error where they cannot be."""
    family = plan.family
    if plan.joint and len(plan.columns or ()) > 1 and not family.together:
        raise InputError(
            f"NaiveBayes keeps columns apart, but families puts {len(plan.columns or ())} columns together. "
            "Use GenerativeClassifier for joint blocks."
        )
    if isinstance(family, Gaussian) and family.covariance == "full":
        family = clone(family).set_params(covariance="diagonal")
    return Plan(plan.columns, family)
