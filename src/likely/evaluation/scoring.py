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
from likely.statistics.counts import Counts, positions
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
    return weighted_mean(row_losses(probability), weights)


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


def mean_and_standard_error(values: AnyArray, weights: Array | None = None) -> tuple[float, float]:
    """Mean of values and its standard error, where weights are frequencies; NaN where they are not determined."""
    mean = weighted_mean(values, weights)
    total = float(len(values) if weights is None else weights.sum())
    if not np.isfinite(mean) or total <= 1.0:
        return mean, float("nan")
    variance = weighted_mean((values - mean) ** 2, weights) * total / (total - 1.0)
    return mean, float(np.sqrt(variance / total))


def row_losses(probability: Array) -> Array:
    """−log p(class | x) of the true class of each row, with p clipped as in `log_loss`."""
    return -np.log(np.clip(probability, EPS, 1.0 - EPS))


def leave_one_out_baseline(counts: Counts, codes: AnyArray, weights: Array | None) -> Array:
    """−log of the class proportions without the row, for each row; of a row with a weight, without one of its copies.

    A row of class k has (N_k − m) / (N − m), with m the smaller of its weight and 1. The only row of a class has 0.
    """
    held = np.ones(len(codes)) if weights is None else np.minimum(weights, 1.0)
    rest, total = counts.weight[codes] - held, counts.weight.sum() - held
    proportion = np.divide(rest, total, out=np.zeros(len(codes)), where=(total > 0.0) & (rest > 1e-12))
    return row_losses(proportion)


def baseline_scores(train_weight: Array, codes: AnyArray, weights: Array | None) -> tuple[float, float, float]:
    """Log-loss, error rate and Brier score of rows whose prediction is the class proportions of the training rows."""
    proportions = train_weight / train_weight.sum()
    probability = proportions[codes]
    squares = proportions @ proportions - 2.0 * probability + 1.0
    return (
        log_loss(probability, weights),
        error_rate(codes == int(proportions.argmax()), weights),
        weighted_mean(squares, weights) / (2.0 if len(proportions) == 2 else 1.0),
    )


def predicted_codes(found: RowScores, codes: AnyArray) -> AnyArray:
    """The most probable class of each row: its class where `found.right`, else the most probable of the others."""
    predicted, wrong = codes.copy(), np.flatnonzero(~found.right)
    others = found.posterior[wrong]
    others[np.arange(len(wrong)), codes[wrong]] = -1.0
    predicted[wrong] = others.argmax(axis=1)
    return predicted


def confusion_matrix(codes: AnyArray, predicted: AnyArray, weights: Array | None, classes: int) -> AnyArray:
    """Number or weight of rows for each true class (rows) and predicted class (columns)."""
    cells = codes.astype(np.intp) * classes + predicted
    return np.bincount(cells, weights, minlength=classes * classes).reshape(classes, classes)


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
    places = np.arange(len(classes)) if same else positions(classes, fitted.classes)
    known = np.flatnonzero(places >= 0)
    columns = places[known]
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
