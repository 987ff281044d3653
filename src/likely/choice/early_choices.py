"""A warning for families that a first batch of few rows determines for all later ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from likely.choice.column_types import column_profiles
from likely.data.batches import Batches
from likely.errors import EarlyChoiceWarning, listed, warn
from likely.families.base import Family
from likely.families.text.family import Text
from likely.model.plans import declared_plans, extra_columns, plan_of_all_columns

ENOUGH_VALUES = 100  # observed values of a column, from which its family is not doubted
SHOWN = 5  # columns that are named


def _warn_of_early_edges(declared: Any, batches: Batches) -> None:
    """Warn where few rows determine the edges of histograms for all later batches."""
    names = batches.first.table.names
    if isinstance(declared, Family):
        plans = [plan_of_all_columns(declared, names)]
    else:
        plans = [] if declared is None else declared_plans(declared, names)
    found = []
    for plan in plans:
        columns = range(len(names)) if plan.columns is None else plan.columns
        found += [names[j] for j in columns if plan.family._lacks_edges([names[j]])]
    rows = sum(int(batch.counts.rows.sum()) for batch in batches) if found else ENOUGH_VALUES
    if rows < ENOUGH_VALUES:
        warn(
            f"The first batch determines the edges of histograms, and it has {rows} rows: column {listed(found)}. "
            f"Declare Histogram(edges=...), or start with a batch of at least {ENOUGH_VALUES} rows.",
            EarlyChoiceWarning,
        )


def _warn_of_early_texts(declared: Any, families: Mapping[Any, Family], batches: Batches) -> None:
    """Warn where few documents determine the options of text columns for all later batches."""
    names = batches.first.table.names
    plans = [plan_of_all_columns(declared, names)] if isinstance(declared, Family) else []
    plans = declared_plans(declared, names) if isinstance(declared, Mapping) else plans
    fixed = {
        names[j]
        for plan in plans
        if plan.family._reads_text and cast(Text, plan.family)._is_fixed
        for j in (range(len(names)) if plan.columns is None else plan.columns)
    }
    texts = [
        key if isinstance(key, tuple) else (key,)
        for key, each in families.items()
        if each is not None and each._reads_text
    ]
    found = [name for key in texts for name in key if name not in fixed]
    rows = sum(int(batch.counts.rows.sum()) for batch in batches) if found else ENOUGH_VALUES
    if rows < ENOUGH_VALUES:
        warn(
            f"The first batch determines the options of text, and it has {rows} rows: column {listed(found)}. Declare "
            f"Text(smoothing=..., exponent=...), or start with a batch of at least {ENOUGH_VALUES} rows.",
            EarlyChoiceWarning,
        )


def warn_of_early_choices(declared: Any, families: Mapping[Any, Family], batches: Batches) -> None:
    """Warn where a column without a declared family has too few values for a choice that holds for later batches.

    A column of fractions is continuous, and one of text categorical, however few they are. Few whole numbers may be
    categories, counts or rounded measurements, and a column without values may be anything.
    """
    table = batches.first.table
    _warn_of_early_edges(declared, batches)
    _warn_of_early_texts(declared, families, batches)
    if isinstance(declared, Family) or table.is_sparse:
        return
    plans = [] if declared is None else declared_plans(declared, table.names)
    taken = {j for plan in plans for j in plan.columns or range(table.width)} | extra_columns(plans, table.names)
    rest = [j for j in range(table.width) if j not in taken]
    profiles = column_profiles(batches, rest)
    doubtful = {
        table.names[j]: profile.rows
        for j, profile in zip(rest, profiles, strict=True)
        if profile.kind == "number" and profile.whole and profile.rows < ENOUGH_VALUES
    }
    if not doubtful:
        return
    found = {name: family for key, family in families.items() for name in (key if isinstance(key, tuple) else (key,))}
    texts = [f"{name!r}: {found[name]!r} ({count} values)" for name, count in doubtful.items() if name in found]
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    warn(
        "The first batch determines the families of columns that have none declared, and it has few values of some: "
        f"{', '.join(texts[:SHOWN])}{more}. Declare families={{column: family}}, or start with a batch of at least "
        f"{ENOUGH_VALUES} rows.",
        EarlyChoiceWarning,
    )
