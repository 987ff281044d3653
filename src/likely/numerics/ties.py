"""Scores that are equal up to rounding: the choice between them must not depend on the processor."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.typing import Index

ROUNDING = 1e-9  # relative difference of scores up to which they are tied


def exceeds(score: Any, other: Any) -> Any:
    """Whether scores exceed others by more than rounding, which depends on the processor."""
    with np.errstate(invalid="ignore"):
        return score - other > ROUNDING * (1.0 + np.abs(score))


def tie_ranks(scores: Any, unit: float = 1.0) -> Index:
    """Ranks of scores, 0 for the largest; neighbours that differ by at most 1e-9·(unit + |score|) have the same rank.

    Without them, the order of scores that differ by rounding would depend on the processor. NaN counts as −∞.
    """
    values = np.asarray(scores, dtype=np.float64)
    values = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-values, kind="stable")
    ranked, ranks = values[order], np.zeros(len(values), dtype=np.intp)
    with np.errstate(invalid="ignore"):
        ranks[order[1:]] = np.cumsum(ranked[:-1] - ranked[1:] > ROUNDING * (unit + np.abs(ranked[:-1])))
    return ranks


def first_best(scores: Any) -> int:
    """The first place whose score is the largest up to rounding."""
    return int(np.argmin(tie_ranks(scores)))
