"""A warning for what a first batch of few rows determines for all later ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from likely.choice.column_types import ColumnProfile
from likely.choice.default_families import Declared
from likely.data.batches import Batches
from likely.errors import EarlyChoiceWarning, listed, warn
from likely.families.text.family import Text
from likely.model.plans import Plan

ENOUGH_VALUES = 100  # observed values of a column, from which its family is not doubted
SHOWN = 5  # columns that are named


def warn_of_early_choices(
    declared: Declared, profiles: Sequence[ColumnProfile], plans: Sequence[Plan], rows: Batches
) -> None:
    """Warn where a column has too few values for a choice that holds for later batches.

    A column of fractions is continuous, and one of text categorical, however few they are. Few whole numbers may be
    categories, counts or rounded measurements, and a column without values may be anything.
    """
    table = rows.first.table
    names, remedy = table.names, f"or start with a batch of at least {ENOUGH_VALUES} rows."
    given, found = (
        {names[j]: plan.family for plan in some for j in plan.columns or range(len(names))}
        for some in (declared.plans, plans)
    )
    fixed = {name for name, family in given.items() if family._reads_text and cast(Text, family)._is_fixed}
    texts = [name for name, family in found.items() if family._reads_text and name not in fixed]
    edges = [name for name, family in given.items() if family._lacks_edges([name])]
    few = _few_rows(rows) if texts or edges else None
    for columns, what, option in (
        (edges, "edges of histograms", "Histogram(edges=...)"),
        (texts, "options of text", "Text(smoothing=..., exponent=...)"),
    ):
        if columns and few is not None:
            warn(
                f"The first batch determines the {what}, and it has {few} rows: column {listed(columns)}. Declare "
                f"{option}, {remedy}",
                EarlyChoiceWarning,
            )
    undeclared = [] if table.is_sparse else declared.undeclared(rows)
    doubtful = [
        f"{names[j]!r}: {found[names[j]]._declared_family!r} ({profile.rows} values)"
        for j, profile in zip(undeclared, profiles, strict=True)
        if profile.kind == "number" and profile.whole and profile.rows < ENOUGH_VALUES and names[j] in found
    ]
    if doubtful:
        more = f" and {len(doubtful) - SHOWN} more" if len(doubtful) > SHOWN else ""
        warn(
            "The first batch determines the families of columns that have none declared, and it has few values of "
            f"some: {', '.join(doubtful[:SHOWN])}{more}. Declare families={{column: family}}, {remedy}",
            EarlyChoiceWarning,
        )


def _few_rows(rows: Batches) -> int | None:
    """The number of rows, where it is small."""
    count = 0
    for batch in rows:
        count += int(batch.counts.rows.sum())
        if count >= ENOUGH_VALUES:
            return None
    return count
