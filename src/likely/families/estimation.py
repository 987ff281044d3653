"""`Estimation`: maximum likelihood, MAP or posterior predictive, as one object."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from likely.errors import InputError, NotEstimableError, check_choice, listed
from likely.typing import AnyArray

NO_MAXIMUM = "its likelihood has no maximum"
UNOBSERVED = "has no observed value in"
ANY_PRIOR = "Use estimation='bayes' or 'map'"  # the remedy where a family has no prior yet


class Estimation(StrEnum):
    """How parameters are estimated from sufficient statistics. Members compare equal to the strings that users pass."""

    MLE = "mle"
    MAP = "map"
    BAYES = "bayes"

    def __repr__(self) -> str:
        return repr(self.value)

    @classmethod
    def of(cls, estimation: object) -> Estimation:
        """The member for a user's string; an error lists the valid strings."""
        check_choice("estimation", estimation, cls)
        return cls(str(estimation))

    @property
    def plug_in(self) -> Estimation:
        """The estimation that plugs in parameters: MAP in place of the posterior predictive."""
        return Estimation.MLE if self is Estimation.MLE else Estimation.MAP

    @property
    def default_smoothing(self) -> float:
        """Pseudo-counts of every value where the user gives none: 0, 1 or ½."""
        return {Estimation.MLE: 0.0, Estimation.MAP: 1.0, Estimation.BAYES: 0.5}[self]


def check_belongs(estimation: Estimation, wanted: Sequence[Estimation], name: str, given: bool, why: str) -> None:
    """Raise if an option was given that the estimation does not use."""
    if given and estimation not in wanted:
        words = " or ".join(f"estimation={word!r}" for word in wanted)
        raise InputError(f"{name} belongs to {words}, not to estimation={estimation!r}: {why}.")


def require_maximum(
    lacking: AnyArray,
    classes: AnyArray,
    names: Sequence[str],
    problem: str,
    why: str = NO_MAXIMUM,
    remedy: str = ANY_PRIOR,
) -> None:
    """Raise for the first class and column, (classes, d), that lacks what an estimate needs."""
    if lacking.any():
        k, j = np.argwhere(lacking)[0]
        raise no_maximum_error(names[j], classes[k : k + 1], problem, why, remedy)


def no_maximum_error(
    column: str, classes: AnyArray, problem: str, why: str = NO_MAXIMUM, remedy: str = ANY_PRIOR
) -> NotEstimableError:
    """The error for a column without an estimate in some classes, such as one without observed values."""
    return NotEstimableError(
        f"Column {column!r} {problem} class {listed(classes)}, so {why}. {remedy}, or drop the column."
    )
