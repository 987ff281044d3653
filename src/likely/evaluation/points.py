"""Points of a learning curve: scores of one model at one setting, over all repeats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from likely.typing import AnyArray


@dataclass(frozen=True, slots=True)
class Score:
    """A score over the repeats.

    Attributes
    ----------
    mean : float
        Mean over the repeats whose fit succeeded.
    standard_error : float
        Standard error of the mean; NaN for fewer than two repeats.
    values : tuple of float
        The value of each repeat, NaN where the fit failed.
    """

    mean: float
    standard_error: float
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Score:
        """Summarize the values of all repeats.

        Parameters
        ----------
        values : iterable of float
            The value of each repeat, NaN where the fit failed.

        Returns
        -------
        Score
            Mean, standard error and values.
        """
        given = tuple(float(value) for value in values)
        return cls(*mean_and_error(np.array(given)), given)


@dataclass(frozen=True, slots=True)
class Point:
    """Scores of one model at one training set size, proportion of missing values, and number of labels.

    Attributes
    ----------
    model : str
        Name of the model.
    size : int
        Number of training rows.
    missing : float
        Proportion of deleted values.
    labeled : float
        Proportion or number of labeled training rows, as requested.
    labels : int
        Number of training rows that had a label.
    log_loss, error : Score
        Log-loss and error rate on the test rows.
    failures : int
        Number of repeats whose fit failed.
    reason : str or None
        Error message of the first failure.
    """

    model: str
    size: int
    missing: float
    labeled: float
    labels: int
    log_loss: Score
    error: Score
    failures: int = 0
    reason: str | None = None

    def at(self, along: str) -> float:
        """Coordinate of the point on an axis.

        Parameters
        ----------
        along : {'size', 'labeled', 'missing'}
            The axis. Points on the axis 'labeled' have the number of labels as coordinate.

        Returns
        -------
        float
            The coordinate.
        """
        return float(self.labels if along == "labeled" else getattr(self, along))


def mean_and_error(values: AnyArray) -> tuple[float, float]:
    """Mean of the values that are not NaN, and its standard error, NaN for fewer than two or infinite ones."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.nan, np.nan
    finite = bool(np.isfinite(known).all())
    standard_error = float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 and finite else np.nan
    return float(known.mean()), standard_error
