"""Columns that `EvidenceClassifier` reads, and what `families` declares: families, text, and columns set aside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from likely.choice.column_types import column_profiles, text_columns
from likely.choice.default_families import all_set_aside, identifiers_among
from likely.data.batches import Batch, Batches
from likely.data.table import Table
from likely.errors import InputError, listed
from likely.estimators.classifiers import GenerativeClassifier
from likely.evidence.encoding import without_copies
from likely.families.base import Family
from likely.families.estimation import Estimation
from likely.model.plans import Plan, column_index, no_family, normalised
from likely.typing import AnyArray

OPTIONS = ("exponent", "length_exponent", "idf")  # of Text, which the weight of the column replaces or the fit finds


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceColumns:
    """Indices of the columns that are read, and of those that are text or set aside; families of other columns."""

    columns: AnyArray
    texts: AnyArray
    aside: AnyArray
    families: Mapping[int, Family]  # as declared, or with the options that a fit has found

    @property
    def categories(self) -> AnyArray:
        """Columns whose numbers are declared to be categories."""
        return np.array([j for j, family in self.families.items() if family._reads_categories], dtype=np.intp)

    @classmethod
    def of(cls, families: Any, batch: Batch) -> EvidenceColumns:
        """Text columns are those that are declared or recognised; all columns that have a family are read."""
        table = batch.table
        declared = {column_index(name, table.names): family for name, family in checked_families(families).items()}
        aside = _places(j for j, family in declared.items() if family is None)
        given = _places(j for j, family in declared.items() if family is not None and family._reads_text)
        others = {j: family for j, family in declared.items() if family is not None and not family._reads_text}
        recognised = np.setdiff1d(text_columns(table, batch.weights), [*aside, *others])
        texts = np.union1d(recognised, given).astype(np.intp)
        identifiers = _identifiers(batch, np.union1d(texts, _places(others)))
        used = np.setdiff1d(np.arange(table.width), [*aside, *identifiers])
        if not len(used):
            raise all_set_aside(table, identifiers | dict.fromkeys(aside.tolist(), "by families"))
        columns = np.union1d(without_copies(table, used.tolist()), _places(others)).astype(np.intp)
        return cls(columns, np.intersect1d(texts, columns), aside, others)

    def found_by(self, joint: GenerativeClassifier) -> EvidenceColumns:
        """The same columns, with the options of families that the fit of the joint density has found."""
        names, specification = joint.specification_.names, joint.specification_
        fitted = {
            name: plan.family._of_column(name) for plan in specification.plans for name in specification.columns(plan)
        }
        return replace(self, families={j: fitted.get(names[j], family) for j, family in self.families.items()})

    def joint_density(self, table: Table) -> GenerativeClassifier:
        """The joint density of all columns but text, which is not fitted yet."""
        if not len(self.columns):
            raise InputError(
                f"X has no columns that EvidenceClassifier can use. It has {listed(table.names)}. Set aside are "
                "columns that are constant, have no values, or differ in nearly every row. Pass numbers, or columns "
                "whose values several rows share."
            )
        if len(self.texts) == len(self.columns):
            raise InputError(
                f"X has no columns but text, {listed([table.names[j] for j in self.texts])}, and EvidenceClassifier "
                "needs some. Use TextClassifier(column=...)."
            )
        families: dict[str, Family | None] = {table.names[j]: clone(family) for j, family in self.families.items()}
        families |= {table.names[j]: None for j in (*self.texts.tolist(), *self.aside.tolist())}
        return GenerativeClassifier(families=families or None, calibration=None)


def _places(columns: Iterable[int]) -> AnyArray:
    """Indices of columns as an array."""
    return np.array([*columns], dtype=np.intp)


def checked_families(families: Any) -> Mapping[Any, Any]:
    """The mapping from columns to families or None; an error for anything else."""
    if families is None:
        return {}
    if not isinstance(families, Mapping):
        raise InputError(f"families={families!r} is not a mapping from columns to families or None.")
    for name, family in families.items():
        if family is None:
            continue
        if not isinstance(family, Family):
            raise InputError(no_family(f"families[{name!r}]", family))
        if isinstance(name, tuple) or family._joint or normalised(Plan((0,), clone(family)), 1).family._needs_em:
            raise InputError(
                f"families[{name!r}]={family!r} is not supported in EvidenceClassifier, which models each column by a "
                "density of its own, and several columns by its other views. Declare single columns, without "
                "components; or use GenerativeClassifier."
            )
        family.check(Estimation.BAYES)
        if not family._reads_text:
            continue
        given = [option for option in OPTIONS if getattr(family, option) is not None]
        if given:
            raise InputError(
                f"families[{name!r}]: Text({given[0]}=...) is not an option in EvidenceClassifier, which learns the "
                "weight of the column. Drop it."
            )
    return families


def _identifiers(batch: Batch, texts: AnyArray) -> dict[int, str]:
    """Identifiers in frames, with the reason of each; text columns are none."""
    table = batch.table
    if table.is_sparse or not table.is_frame:
        return {}
    profiles = column_profiles(Batches.of([batch]), range(table.width))
    found = identifiers_among(table, range(table.width), profiles)
    return {j: profiles[j].identifier_reason for j in found if j not in texts}
