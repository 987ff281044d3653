"""Warnings about targets that are probably not classes: spellings of one label, numbers, distinct and single labels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from likely.data.categories import normalized_label
from likely.data.number_text import number_form
from likely.errors import TargetWarning, amount, listed, warn
from likely.statistics.counts import Counts

FEW_ROWS = 50  # fewer rows are not checked for distinct and single labels
MANY_NUMBERS = 20  # classes up to which text may be numbers
MOST_DISTINCT = 0.5  # proportion of rows with a label of their own
PARSED = 0.95  # proportion of labels that are numbers
SIGNS = re.compile(r"[^\d\s]")  # a decimal sign, a currency or a percent sign: text of digits alone may be a code


def warn_target(counts: Counts) -> None:
    """Warn about the labels of a fit, by their numbers of rows; at most once for each kind.

    Labels that differ by case or by blanks at the ends are reported for any number of rows, the other kinds from 50
    rows on: numbers in text (more than 20), more classes than half the rows, and classes of one row.
    """
    present = counts.rows > 0
    labels, rows, weight = counts.classes[present].tolist(), counts.rows[present], counts.weight[present]
    _warn_spellings(labels)
    if rows.sum() < FEW_ROWS:
        return
    if _are_numbers_in_text(labels):
        warn(
            f"y has {len(labels)} distinct labels, which are numbers in text, such as {listed(labels[:3])}. A "
            "classifier treats each as a class. Convert them to numbers and use GenerativeRegressor, or group them "
            "into classes, for example with pandas.qcut.",
            TargetWarning,
        )
    elif len(labels) > MOST_DISTINCT * rows.sum():
        warn(
            f"y has {len(labels):,} distinct labels in {rows.sum():,} rows, such as {listed(labels[:3])}: this is "
            "probably a number or an identifier. Use GenerativeRegressor to predict numbers, or pass classes.",
            TargetWarning,
        )
    else:
        single = [label for label, n, w in zip(labels, rows, weight, strict=True) if n == 1 and w <= 1.0]
        if single:
            these = f"The class {listed(single)} has" if len(single) == 1 else f"The classes {listed(single, 4)} have"
            warn(
                f"{these} one row{'' if len(single) == 1 else ' each'}, which cannot be both learnt and scored. Drop "
                "such rows, or merge the class with another.",
                TargetWarning,
            )


def _warn_spellings(labels: list[Any]) -> None:
    """Warn about labels that differ by case or by blanks at the ends."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            groups.setdefault(normalized_label(label), []).append(label)
    alike = [each for each in groups.values() if len(each) > 1]
    if alike:
        more = ""
        if len(alike) > 1:
            groups_left = amount(len(alike) - 1, "more such group", "more such groups")
            more = f" There {'is' if len(alike) == 2 else 'are'} {groups_left}."
        warn(
            f"y has {len(alike[0])} labels that differ only by case or by blanks at the ends: {listed(alike[0])}. They "
            f"are separate classes.{more} Merge them with y.str.strip().str.lower() in pandas, or "
            "y.str.strip_chars().str.to_lowercase() in Polars.",
            TargetWarning,
        )


def _are_numbers_in_text(labels: list[Any]) -> bool:
    """Whether many labels are text, and nearly all of them numbers with a decimal, currency or percent sign."""
    if len(labels) <= MANY_NUMBERS or not all(isinstance(label, str) for label in labels):
        return False
    form, _ = number_form(labels, np.ones(len(labels)), PARSED)
    signed = np.array([SIGNS.search(label.strip().lstrip("+-")) is not None for label in labels])
    return form is not None and bool(signed.mean() >= MOST_DISTINCT)
