"""Columns that `EvidenceClassifier` reads, and what `families` declares: text, and columns that are set aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.choice.column_types import column_profiles, text_columns
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
        aside = np.array([j for j, family in declared.items() if family is None], dtype=np.intp)
        given = np.array([j for j, family in declared.items() if family is not None], dtype=np.intp)
        texts = np.union1d(np.setdiff1d(text_columns(table, batch.weights), aside), given).astype(np.intp)
        columns = without_copies(table, np.setdiff1d(_used_columns(batch, texts), aside).tolist())
        return cls(np.asarray(columns, dtype=np.intp), np.intersect1d(texts, columns), aside)

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


def _used_columns(batch: Batch, texts: AnyArray) -> list[int]:
    """Columns of a table except identifiers in frames."""
    table = batch.table
    if table.is_sparse or not table.is_frame:
        return list(range(table.width))
    profiles = column_profiles(Batches.of([batch]), range(table.width))
    return [j for j, profile in enumerate(profiles) if j in texts or not profile.is_identifier]
