"""The blocks of a model: those that are declared, and one for each family of the other columns, which the rows choose.

Continuous columns have one joint Gaussian of x or log x, in which pooled and per-class covariances are candidates, or
are independent in naive Bayes. Identifiers in frames have no block; text has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sklearn.base import clone

from likely.choice.column_families import choose_columns
from likely.choice.column_types import ColumnProfile, sparse_family
from likely.choice.histogram_edges import with_edges
from likely.choice.joint_block import DefaultColumn, joint_columns, wide_choice
from likely.choice.text_options import with_texts
from likely.data.batches import Batches
from likely.data.table import Table
from likely.errors import InputError, InputTypeError, listed
from likely.families.base import Family
from likely.families.categorical import Categorical
from likely.families.gaussian.family import Gaussian
from likely.families.log_normal import LogNormal
from likely.families.text.family import Text
from likely.families.von_mises import VonMises
from likely.model.plans import (
    Plan,
    columns_set_aside,
    declared_plans,
    extra_columns,
    plan_of_all_columns,
    with_independent_columns,
)

Others = Literal["joint", "independent", "components"]
MOST_NAMED = 5  # columns that an error names with their reasons


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """What an estimator declares: blocks, columns set aside, and the kind of model of the other columns.

    Continuous columns without a declared family are "joint" or "independent" within a class, or have a joint Gaussian
    with its own covariance in each of the "components" of a mixture; None is for models of declared blocks alone.
    """

    plans: tuple[Plan, ...]
    aside: frozenset[int] = frozenset()
    others: Others | None = None
    unlabeled: bool = False  # whether there are only unlabeled rows to choose by

    @classmethod
    def of(cls, families: Any, names: Sequence[str], others: Others) -> Declared:
        """The blocks of the option `families`: one family for all columns, or a mapping from columns to families."""
        if isinstance(families, Family):
            plans, aside, rest = [plan_of_all_columns(families, names)], set[int](), None
        else:
            given = {} if families is None else families
            plans, aside, rest = declared_plans(given, names), columns_set_aside(given, names), others
        if others == "independent":
            plans = [with_independent_columns(plan) for plan in plans]
        if others == "components" and any(plan.family._reads_text for plan in plans):
            raise InputError("Text() needs class labels. Set the column aside with families={column: None}.")
        return cls(tuple(plans), frozenset(aside), rest, others == "components")

    def undeclared(self, rows: Batches) -> list[int]:
        """The columns whose families the rows choose."""
        if self.others is None:
            return []
        table = rows.first.table
        declared = {j for plan in self.plans for j in plan.columns or ()}
        identifiers = {table.names.index(name) for name in rows.set_aside}
        taken = declared | extra_columns(self.plans, table.names) | self.aside | identifiers
        return [j for j in range(table.width) if j not in taken]


def choose_families(declared: Declared, profiles: Sequence[ColumnProfile], rows: Batches) -> tuple[Plan, ...]:
    """The blocks of all columns; `profiles` are those of the undeclared columns."""
    plans = with_edges(list(declared.plans), rows, unlabeled=declared.unlabeled)
    plans = with_texts(plans, rows)
    if declared.others is None:
        return tuple(plans)
    columns, table = declared.undeclared(rows), rows.first.table
    if not columns and plans:
        return tuple(plans)
    if columns and table.is_sparse:
        return (*plans, _sparse_plan(rows, columns, declared.others))
    read = _plans_by_reading(table, columns, declared.others)
    plans += read
    others = {j for plan in read for j in plan.columns or ()}
    profiles = [each for j, each in zip(columns, profiles, strict=True) if j not in others]
    columns = [j for j in columns if j not in others]
    texts = [j for j, each in zip(columns, profiles, strict=True) if table.is_frame and each.is_text]
    aside = set(identifiers_among(table, columns, profiles))
    named = {j: each for j, each in zip(columns, profiles, strict=True) if j not in aside}
    found: list[Plan] = []
    if declared.others != "components":  # which have no labels that options of text could be chosen by
        named = {j: each for j, each in named.items() if j not in texts}
        found = with_texts([Plan((j,), Text()) for j in texts], rows, declared=False)
    if named:
        found = [*_plans_by_family(named, declared.others, rows), *found]
    if not found and not plans:
        reasons = {j: each.identifier_reason for j, each in zip(columns, profiles, strict=True)}
        reasons |= dict.fromkeys(declared.aside, "by families")
        if declared.others != "components":
            reasons |= dict.fromkeys(texts, "no document has a term")
        raise all_set_aside(table, reasons)
    return (*plans, *found)


def _plans_by_reading(table: Table, columns: Sequence[int], others: Others) -> list[Plan]:
    """The blocks of columns that `types` declares to be categories, and of periodic parts of dates."""
    if table.reading is None:
        return []
    found: dict[str, tuple[Family, list[int]]] = {}
    each = [(column, period) for column in table.reading.columns for period in column.periods]
    for j in columns:
        column, period = each[j]
        if column.kind == "category" and column.declared:
            found.setdefault("", (Categorical(), []))[1].append(j)
        elif period is not None and others != "components":
            found.setdefault(f"{period}", (VonMises(period=period), []))[1].append(j)
    return [Plan(tuple(places), family) for family, places in found.values()]


def identifiers_among(table: Table, columns: Sequence[int], profiles: Sequence[ColumnProfile]) -> list[int]:
    """The columns of a frame that identify rows; parts of dates, and columns that `types` declares, do not."""
    if not table.is_frame:
        return []
    kept = () if table.reading is None else table.reading.no_identifiers
    return [j for j, each in zip(columns, profiles, strict=True) if each.is_identifier and j not in kept]


def all_set_aside(table: Table, reasons: Mapping[int, str]) -> InputError:
    """The error about a table without any column to use; `reasons` are those that are known, by column."""
    each = [f"{name!r} ({reasons.get(j) or 'an identifier'})" for j, name in enumerate(table.names)]
    more = f" and {len(each) - MOST_NAMED} more" if len(each) > MOST_NAMED else ""
    text = table.kinds[0] == "category"
    return InputError(
        f"All columns of X are set aside: {', '.join(each[:MOST_NAMED])}{more}. Declare the family of a column to use "
        f"it, as in GenerativeClassifier(families={{{table.names[0]!r}: {'Categorical' if text else 'Gaussian'}()}})."
    )


def _plans_by_family(profiles: dict[int, ColumnProfile], others: Others, rows: Batches) -> list[Plan]:
    """One block for each family that is chosen, and one for all columns of a joint Gaussian."""
    names = rows.first.table.names
    places, joint = list(profiles), others != "independent"
    chosen, sample = choose_columns(rows.sample, places, list(profiles.values()), names)
    columns = [
        DefaultColumn(j, names[j], profile, choice)
        for (j, profile), choice in zip(profiles.items(), chosen, strict=True)
    ]
    if joint:
        columns = joint_columns(columns, sample)
    blocks: dict[str, list[DefaultColumn]] = {}
    for column in columns:
        blocks.setdefault("joint" if column.joint else column.family.describe(), []).append(column)
    plans = [_plan(each, joint) for each in blocks.values()]
    if joint:
        plans[0] = replace(plans[0], choices=(*wide_choice(columns), *plans[0].choices))
    if len(plans) == 1 and len(places) == len(names):
        plans = [replace(plans[0], columns=None)]
    return _per_component(plans) if others == "components" else plans


def _plan(columns: Sequence[DefaultColumn], joint: bool) -> Plan:
    """The block of columns with the same family."""
    family = columns[0].family
    others: tuple[Family, ...] = ()
    if columns[0].joint and len(columns) > 1:
        logs = tuple(column.name for column in columns if isinstance(column.family, LogNormal))
        per_class = LogNormal(covariance="full", log=logs) if logs else Gaussian()
        family, others = clone(per_class).set_params(shared=True), (per_class,)
    elif joint and isinstance(family, Gaussian | LogNormal):
        family, others = clone(family).set_params(shared=True), (family,)
    choices = tuple(column.choice.record for column in columns if column.choice.record is not None)
    observed = () if family._reads_categories else tuple(column.profile.numbers for column in columns)
    return Plan(tuple(column.place for column in columns), family, others=others, choices=choices, observed=observed)


def _sparse_plan(rows: Batches, columns: Sequence[int], others: Others) -> Plan:
    """One family for all columns of sparse rows."""
    family, names = sparse_family(rows), rows.first.table.names
    candidates: tuple[Family, ...] = ()
    if isinstance(family, Gaussian) and others == "components":
        some = listed([names[j] for j in columns], 3)
        raise InputTypeError(
            f"X is sparse, and {'column' if len(columns) == 1 else 'columns'} {some} would have a joint Gaussian for "
            "each component, which does not support sparse rows. Use families=Multinomial() for counts or "
            "families=Gaussian('diagonal') for independent columns, or X.toarray()."
        )
    if isinstance(family, Gaussian) and others == "joint":
        family, candidates = Gaussian("diagonal", shared=True), (Gaussian("diagonal"),)  # others need dense rows
    return Plan(None if len(columns) == len(names) else tuple(columns), family, others=candidates)


def _per_component(plans: list[Plan]) -> list[Plan]:
    """Blocks with a covariance for each component: continuous columns are in one, because EM completes them."""
    full = [plan for plan in plans if isinstance(plan.family, Gaussian)]
    if len(full) > 1:
        columns = tuple(sorted(j for plan in full for j in plan.columns or ()))
        plans = [Plan(columns, Gaussian()), *(plan for plan in plans if plan not in full)]
    found = []
    for plan in plans:
        wide = any(choice.family == "independent columns" for choice in plan.choices)
        gaussian = isinstance(plan.family, Gaussian)
        family = Gaussian("diagonal" if wide else "full") if gaussian else plan.family
        found.append(replace(plan, family=family, others=()))
    return found
