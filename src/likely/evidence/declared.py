"""Columns that `EvidenceClassifier` reads, and what `families` declares: text, and columns that are set aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.choice.column_types import column_profiles, text_columns
from likely.choice.default_families import all_set_aside, identifiers_among
from likely.data.batches import Batch, Batches
from likely.data.table import Table
from likely.errors import InputError, listed
from likely.estimators.classifiers import GenerativeClassifier
from likely.evidence.encoding import without_copies
from likely.families.estimation import Estimation
from likely.model.plans import column_index
from likely.typing import AnyArray

OPTIONS = ("exponent", "length_exponent", "idf")  # of Text, which the weight of the column replaces or the fit finds


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceColumns:
    """Indices of the columns that are read, and of those that are text or set aside."""

    columns: AnyArray
    texts: AnyArray
    aside: AnyArray

    @classmethod
    def of(cls, families: Any, batch: Batch) -> EvidenceColumns:
        """Text columns are those that are declared or recognised, without those that are set aside."""
        table = batch.table
        declared = {column_index(name, table.names): family for name, family in checked_families(families).items()}
        declared_aside = [j for j, family in declared.items() if family is None]
        aside = np.array(declared_aside, dtype=np.intp)
        given = np.array([j for j, family in declared.items() if family is not None], dtype=np.intp)
        texts = np.union1d(np.setdiff1d(text_columns(table, batch.weights), aside), given).astype(np.intp)
        identifiers = _identifiers(batch, texts)
        used = [j for j in range(table.width) if j not in identifiers and j not in declared_aside]
        if not used:
            raise all_set_aside(table, identifiers | dict.fromkeys(declared_aside, "by families"))
        columns = without_copies(table, used)
        return cls(np.asarray(columns, dtype=np.intp), np.intersect1d(texts, columns), aside)

    def joint_density(self, table: Table) -> GenerativeClassifier:
        """The joint density of all columns but text, which is not fitted yet."""
        if len(self.texts) == len(self.columns):
            raise InputError(
                f"X has no columns but text, {listed([table.names[j] for j in self.texts])}, and EvidenceClassifier "
                "needs some. Use TextClassifier(column=...)."
            )
        families = {table.names[j]: None for j in (*self.texts.tolist(), *self.aside.tolist())}
        return GenerativeClassifier(families=families or None, calibration=None)


def checked_families(families: Any) -> Mapping[Any, Any]:
    """The mapping from columns to `Text` or None; an error for anything else."""
    if families is None:
        return {}
    if not isinstance(families, Mapping):
        raise InputError(f"families={families!r} is not a mapping from columns to Text() or None.")
    for name, family in families.items():
        if family is None:
            continue
        if not getattr(family, "_reads_text", False) or isinstance(family, type):
            raise InputError(
                f"families[{name!r}]={family!r} is not supported in EvidenceClassifier, whose views model all other "
                "columns. Use Text(), or None to set the column aside."
            )
        family.check(Estimation.BAYES)
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
