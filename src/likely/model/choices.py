"""Records of what was chosen, with the scores of all candidates: families, and the weight of unlabeled rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from likely.errors import listed
from likely.numerics.shapes import Shape
from likely.numerics.special import TINY
from likely.numerics.ties import exceeds, first_best
from likely.typing import Array

NEGLIGIBLE = 0.02  # difference of mean log-densities below which the simpler family is kept


@dataclass(frozen=True, slots=True)
class Choice:
    """The family chosen for some columns, and the leave-one-out scores of every candidate.

    Families of a column are compared by the mean of log p(x | class), on one measure. The candidates are ordered from
    the simplest; the first that is within one standard error of the best, or within 0.02, is chosen. Pooled and
    per-class covariances are compared by log-loss.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    family : str
        The family chosen.
    log_loss : dict of str to float or None
        Mean leave-one-out log-loss of each candidate; None if it has no estimate. Empty where candidates are
        compared by `log_density`.
    error : dict of str to float
        Standard error of the difference between each candidate and the one it is compared with: the best by
        `log_density`, the first by `log_loss`.
    weight : float
        Total weight of the rows.
    log_density : dict of str to float or None
        Mean leave-one-out log p(x | class) of each candidate; None if it has no estimate. Empty where candidates are
        compared by `log_loss`.
    measure : str
        "counting" where the density is the probability of a whole number, "Lebesgue" where it is per unit of x.
    reason : str
        Why this family was chosen.
    standard_errors : float
        By how many standard errors of the log-loss a candidate must be better than the first. It is 0 for covariances
        after calibration, which must be better by more than one nat in total.
    """

    columns: tuple[str, ...]
    family: str
    log_loss: dict[str, Annotated[float, Shape("inf")] | None]
    error: dict[str, Annotated[float, Shape("inf")]]
    weight: Annotated[float, Shape("inf")]
    log_density: dict[str, Annotated[float, Shape("inf")] | None] = field(default_factory=dict)
    measure: str = ""
    reason: str = ""
    standard_errors: float = 1.0

    def _valid(self) -> bool:
        scores = self.log_loss or self.log_density
        return not scores or self.family in scores

    def __add__(self, other: Choice) -> Choice:
        """The choice by the rows of both."""
        total = self.weight + other.weight
        if not total > 0.0:  # all rows were forgotten
            return self

        def mean(mine: Mapping[str, float | None], yours: Mapping[str, float | None]) -> dict[str, float | None]:
            found: dict[str, float | None] = {}
            for name, one in mine.items():
                two = yours.get(name)
                known = one is not None and two is not None
                found[name] = (self.weight * one + other.weight * two) / total if known else None  # type: ignore[operator]
            return found

        losses, densities = mean(self.log_loss, other.log_loss), mean(self.log_density, other.log_density)
        error = {
            name: float(np.hypot(self.weight * mine, other.weight * other.error.get(name, 0.0)) / total)
            for name, mine in self.error.items()
        }
        names = list(losses or densities)
        if losses:
            least = needed_gains([error[name] for name in names], self.standard_errors, total)
            best = clear_best([_or(losses[name], np.inf) for name in names], least)
        else:
            best = simplest_of_best([_or(densities[name], -np.inf) for name in names], [error[name] for name in names])
        return replace(self, family=names[best], log_loss=losses, error=error, weight=total, log_density=densities)

    @property
    def score(self) -> float | None:
        """The log-loss or log-density of the family chosen; None if nothing was compared."""
        return (self.log_loss or self.log_density).get(self.family)

    @property
    def next_best(self) -> tuple[str, float] | None:
        """The best of the other candidates that have an estimate, and its score."""
        better = -1.0 if self.log_loss else 1.0
        scores = self.log_loss or self.log_density
        others = {name: score for name, score in scores.items() if score is not None and name != self.family}
        if not others:
            return None
        name = list(others)[first_best([better * score for score in others.values()])]
        return name, others[name]

    def __str__(self) -> str:
        """The columns, the family chosen and its score, the best of the other candidates, and the reason."""
        text, others = f"{listed(self.columns, limit=4)}: {self.family}", self.next_best
        if self.score is not None:
            text += f" ({'log-loss' if self.log_loss else 'log-density'} {self.score:.4f})"
        if others is not None:
            count = len(self.log_loss or self.log_density)
            text += f"; of {count} candidates the next best is {others[0]} ({others[1]:.4f})"
        return f"{text}; {self.reason}" if self.reason else text


@dataclass(frozen=True, slots=True)
class WeightScore:
    """Cross-validated log-loss of labeled rows with one weight of unlabeled rows.

    Attributes
    ----------
    weight : float
        Weight of an unlabeled row.
    log_loss : float or None
        Mean log-loss of held-out labeled rows; None if a fold does not determine the parameters.
    error : float
        Standard error of the difference from the least log-loss.
    """

    weight: float
    log_loss: float | None
    error: float


@dataclass(frozen=True, slots=True)
class UnlabeledWeight:
    """The weight of unlabeled rows in a fit, their number, and the scores of all weights where it was chosen."""

    weight: float
    rows: int
    scores: tuple[WeightScore, ...] = ()
    note: str = ""  # why no weight was compared

    @property
    def path(self) -> tuple[float, ...]:
        """The weights that EM runs with in turn, each from the result of the one before, as in cross-validation."""
        return tuple(score.weight for score in self.scores if 0.0 < score.weight <= self.weight) or (self.weight,)

    def __str__(self) -> str:
        rows = "1 unlabeled row has" if self.rows == 1 else f"{self.rows} unlabeled rows have"
        text = f"{rows} weight {self.weight:g}"
        if not self.scores:
            return text + (f": {self.note}" if self.note else "")
        losses = ", ".join(
            f"{score.weight:g}: {'not estimable' if score.log_loss is None else format(score.log_loss, '.4f')}"
            for score in self.scores
        )
        return f"{text}, chosen by cross-validated log-loss ({losses})"


def needed_gains(errors: Sequence[float], standard_errors: float, weight: float) -> list[float]:
    """By how much a mean log-loss of rows of this total weight must be less than the first.

    One nat in total keeps a few rows, which any candidate predicts well, from choosing by accident.
    """
    return [standard_errors * error if standard_errors else 1.0 / max(weight, TINY) for error in errors]


def clear_best(losses: Sequence[float], errors: Sequence[float]) -> int:
    """The place of the least loss; 0 where it is not better than the first by more than its error."""
    best = first_best(np.negative(losses))
    return best if losses[0] - losses[best] > errors[best] and exceeds(-losses[best], -losses[0]) else 0


def simplest_of_best(densities: Sequence[float], errors: Sequence[float]) -> int:
    """The place of the first log-density that is within one standard error, or `NEGLIGIBLE`, of the largest.

    `errors` are those of the differences from the largest.
    """
    top = max(densities)
    return next(i for i, each in enumerate(densities) if top - each <= max(errors[i], NEGLIGIBLE))


def difference_error(first: Array, second: Array, weights: Array) -> float:
    """The standard error of the weighted mean of first − second."""
    total, centred = float(weights.sum()), first - second
    centred -= weights @ centred / total
    unit = float(np.abs(centred).max(initial=0.0)) or 1.0  # squares of very small densities' logarithms overflow
    return float(unit * np.sqrt(weights @ (centred / unit) ** 2) / total)


def _or(value: float | None, other: float) -> float:
    return other if value is None else value
