"""Which columns make up which block, and the families that may suit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from sklearn.base import clone

from likely.data.batches import Batches
from likely.errors import InputError, listed
from likely.families.base import Family
from likely.families.estimation import Estimation
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.mixture import MixtureFamily
from likely.families.geometric import Geometric
from likely.families.poisson import Poisson
from likely.model.column_types import column_profiles, sparse_family

WIDE = 1000


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
            family = family._common_collector(other)
        return family


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
    others = {column_index(name, names) for name in family._extra_columns()}
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
        family.check(Estimation.MLE if family.prior is None else Estimation.MAP)
        return Plan(plan.columns, MixtureFamily(family, int(family.components)), plan.joint)
    if (width if plan.columns is None else len(plan.columns)) > 1:
        return plan
    if isinstance(family, Gaussian) and family.covariance == "full" and not isinstance(family.shrinkage, str):
        return Plan(plan.columns, family.set_params(covariance="diagonal"), plan.joint)
    return plan


def extra_columns(plans: Sequence[Plan], names: Sequence[str]) -> set[int]:
    """Columns that some family needs beside its own: nobody models them unless they are declared."""
    return {column_index(name, names) for plan in plans for name in plan.family._extra_columns()}


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
        family = sparse_family(batches)
        if together and isinstance(family, Gaussian):
            family = Gaussian("diagonal", shared=True)
        columns = None if len(rest) == table.width else tuple(rest)
        dense = isinstance(family, Gaussian)  # other candidates would have rows written out
        return [Plan(columns, family, others=_others(family, len(rest)) if together and dense else ())]
    blocks: dict[str, list[int]] = {}
    kinds: dict[str, Family] = {}
    for j, look in zip(rest, column_profiles(batches, rest, for_missing=together), strict=True):
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
        return (own,) if family._independent or columns <= WIDE else ()
    return (Geometric(), Gaussian("diagonal")) if isinstance(family, Poisson) else ()


def apart(plan: Plan) -> Plan:
    """The same block with its columns independent, for a naive Bayes; an error where they cannot be."""
    family = plan.family
    if isinstance(family, MixtureFamily):
        raise InputError(
            "NaiveBayes keeps columns apart, but those of a class with several components vary together. "
            "Use GenerativeClassifier for Gaussian(components=...)."
        )
    mixed = family._reads_categories or not family._independent
    if plan.joint and len(plan.columns or ()) > 1 and mixed and not family._joint:
        raise InputError(
            f"NaiveBayes keeps columns apart, but families puts {len(plan.columns or ())} columns together. "
            "Use GenerativeClassifier for joint blocks."
        )
    if isinstance(family, Gaussian) and family.covariance == "full":
        family = clone(family).set_params(covariance="diagonal")
    return Plan(plan.columns, family)
