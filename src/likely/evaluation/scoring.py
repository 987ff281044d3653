"""Scores of predicted probabilities: log-loss, error rate, Brier score, mean log-likelihood, and scores of ranks.

Rows may have weights. Scores of no rows, or of rows that all have weight 0, are NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from likely.data.batches import Batch
from likely.errors import NoDensityError, NoEvidenceError
from likely.model.joint import JointModel, RowScores
from likely.model.specification import Specification
from likely.numerics.special import EPS
from likely.statistics.counts import Counts, positions
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array


def weighted_mean(values: AnyArray, weights: Array | None = None) -> float:
    """Mean of values; NaN where there are none, or all have weight 0."""
    if len(values) == 0 or (weights is not None and not weights.any()):
        return np.nan
    return float(values.mean() if weights is None else np.average(values, weights=weights))


def mean_and_error(values: AnyArray) -> tuple[float, float]:
    """Mean of the values that are not NaN, and its standard error, NaN for fewer than two or infinite ones."""
    return mean_and_standard_error(values[~np.isnan(values)])


def mean_and_standard_error(values: AnyArray, weights: Array | None = None) -> tuple[float, float]:
    """Mean of values and its standard error, where weights are frequencies; NaN where they are not determined."""
    mean = weighted_mean(values, weights)
    total = float(len(values) if weights is None else weights.sum())
    if not np.isfinite(mean) or total <= 1.0:
        return mean, np.nan
    variance = weighted_mean((values - mean) ** 2, weights) * total / (total - 1.0)
    return mean, float(np.sqrt(variance / total))


def is_worse(score: float, baseline: float) -> bool:
    """Whether a loss is larger than that of the baseline, by more than rounding; False where it is NaN."""
    return score - baseline > 1e-12 * (1.0 + abs(baseline))


def row_losses(probability: Array) -> Array:
    """−log p(class | x) of the true class of each row, with p clipped to [ε, 1 − ε] as in scikit-learn."""
    return -np.log(np.clip(probability, EPS, 1.0 - EPS))


def leave_one_out_baseline(counts: Counts, codes: AnyArray, weights: Array | None) -> Array:
    """−log of the class proportions without the row, for each row; of a row with a weight, without one of its copies.

    A row of class k has (N_k − m) / (N − m), with m the smaller of its weight and 1. The only row of a class has 0.
    """
    held = np.ones(len(codes)) if weights is None else np.minimum(weights, 1.0)
    rest, total = counts.weight[codes] - held, counts.weight.sum() - held
    proportion = np.divide(rest, total, out=np.zeros(len(codes)), where=(total > 0.0) & (rest > 1e-12))
    return row_losses(proportion)


def baseline_scores(train: AnyArray, held_out: AnyArray) -> tuple[float, float, float]:
    """Log-loss, error rate and Brier score where the class proportions of the training rows are predicted.

    `train` and `held_out` are the weights of the classes in the training rows and in the rows that are predicted.
    """
    proportions = train / train.sum()
    squares = proportions @ proportions - 2.0 * proportions + 1.0
    return (
        weighted_mean(row_losses(proportions), held_out),
        weighted_mean(np.arange(len(train)) != proportions.argmax(), held_out),
        weighted_mean(squares, held_out) / (2.0 if len(train) == 2 else 1.0),
    )


def score_fold(
    found: RowScores, codes: AnyArray, weights: Array | None, log_likelihood: float | None = None
) -> tuple[Array, AnyArray]:
    """Log-loss, error rate, Brier score and mean log p(x, y) of rows, (4,), and their confusion matrix.

    The Brier score is the mean of Σ_k (p_k − [y = k])² = Σ_k p_k² − 2·p_y + 1, halved for two classes. The confusion
    matrix has the number or weight of rows for each true class (rows) and predicted class (columns).
    """
    posterior, classes = found.posterior, found.posterior.shape[1]
    squares = np.einsum("nk,nk->n", posterior, posterior) - 2.0 * found.probability + 1.0
    scores = [
        weighted_mean(row_losses(found.probability), weights),
        1.0 - weighted_mean(found.right, weights),
        weighted_mean(squares, weights) / (2.0 if classes == 2 else 1.0),
        weighted_mean(found.log_joint, weights) if log_likelihood is None else log_likelihood,
    ]
    predicted, wrong = codes.astype(np.intp), np.flatnonzero(~found.right)
    others = posterior[wrong]
    others[np.arange(len(wrong)), codes[wrong]] = -1.0
    predicted[wrong] = others.argmax(axis=1)
    cells = codes.astype(np.intp) * classes + predicted
    return np.array(scores), np.bincount(cells, weights, minlength=classes**2).reshape(classes, classes)


def recalls(confusion: AnyArray) -> Array:
    """The proportion of the rows of each class that are predicted as this class; NaN for classes without rows."""
    total = confusion.sum(axis=1).astype(np.float64)
    return np.divide(np.diag(confusion), total, out=np.full(len(total), np.nan), where=total > 0.0)


def rank_scores(posterior: Array, codes: AnyArray, weights: Array | None) -> tuple[float, float]:
    """Area under the ROC curve and average precision of rows; NaN where they have one class.

    Of two classes they are those of the second class; of more, means over one class against the others, of the classes
    that have rows.
    """
    classes = range(posterior.shape[1]) if posterior.shape[1] != 2 else (1,)
    mass = np.ones(len(codes)) if weights is None else weights
    found = [_rank_scores(posterior[:, k], codes == k, mass) for k in classes]
    known = np.array([each for each in found if each is not None])
    return (float(known[:, 0].mean()), float(known[:, 1].mean())) if len(known) else (np.nan, np.nan)


def _rank_scores(probability: Array, positive: AnyArray, weights: Array) -> tuple[float, float] | None:
    """Area under the ROC curve and average precision of one class; None if no row is of it, or all rows are.

    With the weights T and F of the rows of the class and of the others that have at least each probability, they are
    Σ ΔF·(T + T′) / 2 / (T_max·F_max) and Σ ΔT / T_max · T / (T + F), where T′ is the T before.
    """
    order = np.argsort(-probability, kind="stable")
    ends = np.flatnonzero(np.diff(probability[order], append=-1.0))  # of tied rows the last
    mass = weights[order]
    right = np.cumsum(mass * positive[order])[ends]
    every = np.cumsum(mass)[ends]
    if not len(ends) or right[-1] <= 0.0 or right[-1] >= every[-1]:
        return None
    wrong, gained = every - right, np.diff(right, prepend=0.0)
    area = np.diff(wrong, prepend=0.0) @ (right - gained / 2.0) / (right[-1] * wrong[-1])
    used = every > 0.0
    return float(area), float(gained[used] @ (right[used] / every[used]) / right[-1])


def scores_of(posterior: Array, codes: AnyArray) -> RowScores:
    """The scores of rows from p(class | x); a code of -1 is a class that the model does not have."""
    probability = np.where(codes < 0, 0.0, posterior[np.arange(len(codes)), codes])
    return RowScores(np.full(len(codes), np.nan), probability, posterior.argmax(axis=1) == codes, posterior)


@dataclass(frozen=True, slots=True, eq=False)
class FoldModel:
    """The model of a fold, and the mean log p(x, y) of its held-out rows where their statistics determine it."""

    model: JointModel
    log_likelihood: float | None

    def scores(self, test: Batch, classes: AnyArray, codes: AnyArray) -> tuple[Array, Array, AnyArray]:
        """p(class | x) of held-out rows, 0 for classes that the model does not have; their scores and confusion matrix.

        `codes` are those of the rows in `classes`.
        """
        model, place = self.model, positions(self.model.classes, classes)
        same = model.classes.dtype == classes.dtype and np.array_equal(model.classes, classes)
        mine = codes if same else place[codes]
        try:
            found = model.score_rows(test.table, mine, self.log_likelihood is None)
        except NoDensityError:
            found = scores_of(model.posterior(test.table), mine)
        if not same:
            posterior = np.zeros((len(codes), len(classes)))
            posterior[:, place >= 0] = found.posterior[:, place[place >= 0]]
            found = replace(found, posterior=posterior)
        return found.posterior, *score_fold(found, codes, test.weights, self.log_likelihood)


def mean_log_likelihood(specification: Specification, fitted: JointModel, part: JointStatistics) -> float | None:
    """Mean log p(x, y) of rows from their statistics; None if the statistics do not determine it."""
    if not part.counts.weight.any() or np.any(positions(fitted.classes, part.counts.classes) < 0):
        return None
    try:
        total = specification.log_likelihood(fitted, part.align(fitted.classes))
    except NoEvidenceError:
        return None
    return total / float(part.counts.weight.sum()) if np.isfinite(total) else None
