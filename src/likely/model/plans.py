"""Plans: which columns make up a block, and its family or candidate families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from sklearn.base import clone

from likely.errors import InputError, listed
from likely.families.base import Family
from likely.families.estimation import Estimation
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.mixture import MixtureFamily
from likely.families.log_normal import LogNormal
from likely.families.pairs import Pairs
from likely.model.choices import Choice


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Columns (None: all, in order) and their family; `joint` where the user declares one density of all of them.

    `others` are further candidate families: `family_choice` chooses among them. After the choice, those with the same
    statistics stay candidates, so that models can still agree on one of them when they are added.
    """

    columns: tuple[int, ...] | None
    family: Family
    joint: bool = False
    others: tuple[Family, ...] = ()
    choices: tuple[Choice, ...] = ()  # of families of the columns, where they are not declared
    observed: tuple[str, ...] = ()  # which numbers each column has, where the family is not declared: see `samples`

    @property
    def collector(self) -> Family:
        """The family whose statistics serve all candidates."""
        family = self.family
        for other in self.others:
            family = family._common_collector(other)
        return family


def column_index(name: Any, names: Sequence[str]) -> int:
    """The place of a column that the user gives by name or number."""
    if str(name) in names:
        return names.index(str(name))
    if isinstance(name, Integral) and not isinstance(name, bool) and 0 <= int(name) < len(names):
        return int(name)
    raise InputError(f"families names column {name!r}, which is not in X: {listed(names)}.")


def declared_plans(families: Any, names: Sequence[str]) -> list[Plan]:
    """Plans that a mapping from columns to families declares."""
    if not isinstance(families, Mapping):
        raise InputError(no_family("families", families, " nor a mapping from columns to families"))
    plans: list[Plan] = []
    used: dict[int, Any] = {}
    for key, family in families.items():
        if family is None:
            continue
        if not isinstance(family, Family):
            raise InputError(no_family(f"families[{key!r}]", family))
        columns = tuple(column_index(name, names) for name in (key if isinstance(key, tuple) else (key,)))
        if not columns:
            raise InputError(f"families[{key!r}] names no column. Drop the entry.")
        for j in columns:
            if j in used:
                other = f"by families[{used[j]!r}]" if used[j] != key else "twice"
                raise InputError(
                    f"families[{key!r}] names column {names[j]!r}, which is named {other} already. Every column is in "
                    "one block: drop it from one of them."
                )
            used[j] = key
        named = clone(family)._with_named_columns(names)
        plans.append(normalised(Plan(columns, named, joint=isinstance(key, tuple)), len(names)))
    return plans


def no_family(name: str, given: Any, more: str = "") -> str:
    """The message about an option that is not a family; a class of families is not one of its objects."""
    if isinstance(given, type) and issubclass(given, Family):
        return f"{name}={given.__name__} is a class. Write {name}={given.__name__}() for a family with its defaults."
    kind = f"{name}={given!r} is {'neither' if more else 'not'} a family{more}."
    return f"{kind} Families are objects, such as Gaussian(), Categorical() and Poisson()."


def columns_set_aside(families: Any, names: Sequence[str]) -> set[int]:
    """Columns that a mapping declares to have no family, so that they are not used."""
    keys = [key for key, family in families.items() if family is None] if isinstance(families, Mapping) else []
    return {column_index(name, names) for key in keys for name in (key if isinstance(key, tuple) else (key,))}


def inputs_set_aside(families: Any, names: Sequence[str]) -> set[int]:
    """The same of the columns of the input: a name such as 'issued.year' may be a part of a date."""
    if not isinstance(families, Mapping):
        return set()
    parts = {key for key in families if isinstance(key, str) and key not in names and key.rpartition(".")[0] in names}
    return columns_set_aside({key: family for key, family in families.items() if key not in parts}, names)


def plan_of_all_columns(family: Family, names: Sequence[str]) -> Plan:
    """One family for all columns except those, such as exposures, that it reads but does not model."""
    family = clone(family)._with_named_columns(names)
    others = {column_index(name, names) for name in family._extra_columns()}
    if not others:
        return normalised(Plan(None, family), len(names))
    columns = tuple(j for j in range(len(names)) if j not in others)
    if not columns:
        raise InputError(f"X has no columns besides {listed(names)}, which {type(family).__name__} does not model.")
    return normalised(Plan(columns, family), len(names))


def normalised(plan: Plan, width: int) -> Plan:
    """A full covariance of one column as a diagonal one, which allows missing values; and components as a family."""
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
    """Columns that families read but do not model; they have a density only where one is declared."""
    return {column_index(name, names) for plan in plans for name in plan.family._extra_columns()}


def with_independent_columns(plan: Plan) -> Plan:
    """The same plan with independent columns, for naive Bayes; an error where the family has none."""
    family = plan.family
    if isinstance(family, MixtureFamily | Pairs):
        name = "Pairs()" if isinstance(family, Pairs) else "Gaussian(components=...)"
        raise InputError(
            f"NaiveBayes models columns as independent, and {name} is a joint density. Use GenerativeClassifier "
            "instead."
        )
    joint = family._reads_categories or not family._independent
    if plan.joint and len(plan.columns or ()) > 1 and joint and not family._joint:
        raise InputError(
            f"NaiveBayes models columns as independent, and families declares a joint block of "
            f"{len(plan.columns or ())} columns. Use GenerativeClassifier instead."
        )
    if isinstance(family, Gaussian | LogNormal) and family.covariance == "full":
        family = clone(family).set_params(covariance="diagonal")
    return Plan(plan.columns, family)
