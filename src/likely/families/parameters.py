"""Estimated parameters with their standard errors: inverse Fisher information, or posterior standard deviations.

Counts and sums include the pseudo-data of the prior. Under "bayes" the posterior is Beta(successes, failures),
Dirichlet(counts) or Gamma(events, exposure), and the value its mean; under "map" the value is the mode of a posterior
with one more pseudo-count of each kind (one more event).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from likely.families.estimation import Estimation
from likely.typing import AnyArray, Array

ColumnParameters: TypeAlias = Mapping[str, tuple[Array, Array | None]]
"""Values and standard errors, (classes, d) each, by the names of the parameters; None if errors are not known."""


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """A parameter of one column in all classes."""

    column: str | None  # None for parameters of no single column
    name: str
    value: Array  # (classes,)
    error: Array | None = None  # (classes,); None if it is not known


def parameters_of_columns(names: Sequence[str], informative: AnyArray, found: ColumnParameters) -> list[Parameter]:
    """The parameters of the informative columns."""
    return [
        Parameter(names[j], name, values[:, j], None if errors is None else errors[:, j])
        for j in np.flatnonzero(informative).tolist()
        for name, (values, errors) in found.items()
    ]


def proportion_errors(counts: Array, estimation: Estimation) -> Array:
    """Standard errors of proportions, from counts (..., values): √(p(1 − p)/n), or those of a Dirichlet."""
    counts = counts + 1.0 if estimation == Estimation.MAP else counts
    total = counts.sum(axis=-1, keepdims=True)
    p = counts / np.where(total > 0.0, total, 1.0)
    rows = total if estimation == Estimation.MLE else total + 1.0
    return np.sqrt(p * (1.0 - p) / np.where(rows > 0.0, rows, 1.0))


def success_errors(ones: Array, zeros: Array, estimation: Estimation) -> Array:
    """Standard errors of the probability of a success."""
    return np.asarray(proportion_errors(np.stack([ones, zeros], axis=-1), estimation)[..., 0])


def waiting_errors(successes: Array, failures: Array, estimation: Estimation) -> Array:
    """Standard errors of p where failures are counted until a given number of successes: p·√((1 − p)/successes)."""
    if estimation != Estimation.MLE:
        return success_errors(successes, failures, estimation)
    p = successes / (successes + failures)
    return np.asarray(p * np.sqrt((1.0 - p) / successes))


def rate_errors(events: Array, exposure: Array, estimation: Estimation) -> Array:
    """Standard errors of events/exposure: √events/exposure, which also is the standard deviation of a Gamma."""
    events = events + 1.0 if estimation == Estimation.MAP else events
    return np.asarray(np.sqrt(events) / exposure)
