"""Scores of predicted probabilities: log-loss, error rate, Brier score and mean log-likelihood.

Rows may have weights. Scores of no rows, or of rows that all have weight 0, are NaN.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from likely.data.batches import Batch
from likely.errors import NoDensityError, NoEvidenceError
from likely.model.joint import JointModel, RowScores
from likely.model.specification import Specification
from likely.numerics.special import EPS
from likely.statistics.counts import positions
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array


class Scores(NamedTuple):
    """Scores of the rows of one fold."""

    log_loss: float
    error: float
    brier: float
    log_likelihood: float


def log_loss(probability: Array, weights: Array | None = None) -> float:
    """Mean of −log p(class | x) of the true classes, with p clipped to [ε, 1 − ε] as in scikit-learn."""
    return -weighted_mean(np.log(np.clip(probability, EPS, 1.0 - EPS)), weights)


def error_rate(correct: AnyArray, weights: Array | None = None) -> float:
    """Proportion of rows whose most probable class is not their class."""
    return 1.0 - weighted_mean(correct, weights)


def brier_score(posterior: Array, probability: Array, weights: Array | None = None) -> float:
    """Mean of Σ_k (p_k − [y = k])² = Σ_k p_k² − 2·p_y + 1, halved for two classes."""
    squares = np.einsum("nk,nk->n", posterior, posterior) - 2.0 * probability + 1.0
    return weighted_mean(squares, weights) / (2.0 if posterior.shape[1] == 2 else 1.0)


def weighted_mean(values: AnyArray, weights: Array | None = None) -> float:
    """Mean of values; NaN where there are none, or all have weight 0."""
    if len(values) == 0 or (weights is not None and not weights.any()):
        return float("nan")
    return float(values.mean() if weights is None else np.average(values, weights=weights))


def mean_over_folds(scores: Array) -> float:
    """Mean over the folds whose rows have any weight."""
    return weighted_mean(scores[~np.isnan(scores)])


def score_rows(found: RowScores, weights: Array | None, log_likelihood: float | None = None) -> Scores:
    """All scores of rows; `log_likelihood`, if given, is their mean log p(x, y)."""
    if log_likelihood is None:
        log_likelihood = weighted_mean(found.log_joint, weights)
    return Scores(
        log_loss(found.probability, weights),
        error_rate(found.right, weights),
        brier_score(found.posterior, found.probability, weights),
        log_likelihood,
    )


def predict_rows(fitted: JointModel, test: Batch, classes: AnyArray, codes: AnyArray, densities: bool) -> RowScores:
    """Predictions for test rows, with a column for each of `classes`: 0 for those that the model does not have."""
    same = fitted.classes.dtype == classes.dtype and np.array_equal(fitted.classes, classes)
    wanted = set(classes.tolist())
    known = np.flatnonzero([label in wanted for label in fitted.classes.tolist()])
    columns = positions(classes, fitted.classes[known])
    model_codes = codes
    if not same:
        place = np.full(len(classes), -1)
        place[columns] = known
        model_codes = place[codes]
    try:
        found = fitted.score_rows(test.table, model_codes, densities)
    except NoDensityError:
        posterior = fitted.posterior(test.table)
        probability = np.where(model_codes < 0, 0.0, posterior[np.arange(len(codes)), model_codes])
        correct = posterior.argmax(axis=1) == model_codes
        found = RowScores(np.full(len(codes), np.nan), probability, correct, posterior)
    if same:
        return found
    posterior = np.zeros((len(codes), len(classes)))
    posterior[:, columns] = found.posterior[:, known]
    return replace(found, posterior=posterior)


def mean_log_likelihood(specification: Specification, fitted: JointModel, part: JointStatistics) -> float | None:
    """Mean log p(x, y) of rows from their statistics; None where the statistics do not determine it."""
    if not np.array_equal(fitted.classes, part.counts.classes) or not part.counts.weight.any():
        return None
    try:
        total = specification.log_likelihood(fitted, part)
    except NoEvidenceError:
        return None
    return total / float(part.counts.weight.sum()) if np.isfinite(total) else None
