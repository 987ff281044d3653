"""From training rows to an `EvidenceModel`: fit the views, and learn their weights on evidence of held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from likely.evidence.encoding import Encoding
from likely.evidence.model import EvidenceModel, WeightedView
from likely.evidence.rows import TrainingRows
from likely.evidence.training import nested_folds, proportional_sample, tested_weights
from likely.evidence.view import FittedView, View
from likely.evidence.weights import (
    EvidenceProblem,
    EvidenceRows,
    PooledWeights,
    Ranges,
    centre,
    choose,
    class_proportions,
)
from likely.typing import AnyArray, Array

MOST_NUMBERS = 40_000_000  # terms x classes x rows that weights are learnt from, at most


@dataclass(frozen=True, slots=True, eq=False)
class LearntWeights:
    """Weights of all terms of all views, and the ranges of the terms."""

    pooled: PooledWeights
    ranges: Ranges
    shares: Array  # of each term in the evidence of the training rows; their sum is 1


def fit_views(views: Sequence[View], rows: TrainingRows, encoding: Encoding, seed: int) -> list[FittedView]:
    """The views of these rows that have something to look at."""
    fitted = (view.fit(rows, encoding, seed) for view in views)
    return [view for view in fitted if view is not None]


def learn_weights(views: Sequence[FittedView], rows: TrainingRows, step: Callable[[], None]) -> LearntWeights:
    """The weights of views of these rows, learnt on their leave-one-out and held-out evidence."""
    of_view = np.repeat(np.arange(len(views)), [len(view.term_columns) for view in views])
    some = _some(rows, len(of_view))
    problem = _problem(views, rows.take(some), of_view, rows.class_weights)
    step()
    pooled = choose(problem, (_nested(views, rows, fold, of_view, step) for fold in nested_folds(rows)))
    return LearntWeights(pooled, Ranges.of(problem.terms), _shares(pooled.weights.w, problem))


def weighted_model(
    views: Sequence[FittedView], learnt: LearntWeights, encoding: Encoding, rows: TrainingRows
) -> EvidenceModel:
    """The model of views with learnt weights."""
    pooled, ranges = learnt.pooled.weights, learnt.ranges
    weighted, start = [], 0
    for view in views:
        part = slice(start, start + len(view.term_columns))
        weighted.append(WeightedView(view, pooled.w[part], Ranges(ranges.low[part], ranges.high[part])))
        start = part.stop
    offsets = pooled.b - np.log(class_proportions(rows.class_weights))
    categories = encoding.category_weights(rows.rows, rows.weights)
    return EvidenceModel(rows.classes, encoding, tuple(weighted), offsets, rows.class_weights, categories)


def _nested(
    views: Sequence[FittedView], rows: TrainingRows, held_out: AnyArray, of_view: AnyArray, step: Callable[[], None]
) -> tuple[EvidenceProblem, EvidenceRows]:
    """Evidence of all rows but those of a fold, and of rows of the fold, by views that have not seen it."""
    step()
    fold, weights = rows.take(held_out), rows.weights.copy()
    weights[held_out] -= fold.held_out  # other copies of a row are other observations
    kept = np.flatnonzero(weights > 0.0)
    left, removed = replace(rows.take(kept), weights=weights[kept]), replace(fold, weights=fold.held_out)
    reduced = [view.without(removed, left) for view in views]
    problem = _problem(reduced, left.take(_some(left, len(of_view))), of_view, left.class_weights)
    tested = replace(fold, weights=tested_weights(rows, held_out)).take(_some(fold, len(of_view)))
    terms = _stacked(tested, of_view, (view.terms(tested.rows) for view in reduced))
    return problem, EvidenceRows(Ranges.of(problem.terms).clip(terms), tested.codes, tested.weights)


def _stacked(rows: TrainingRows, of_view: AnyArray, parts: Iterable[Array]) -> Array:
    """The terms of all views, (terms, classes, n); those of one view at a time are in memory twice."""
    found, start = np.empty((len(of_view), len(rows.classes), len(rows))), 0
    for part in parts:
        found[start : start + len(part)] = part
        start += len(part)
    return found


def _problem(
    views: Sequence[FittedView], rows: TrainingRows, of_view: AnyArray, class_weights: Array
) -> EvidenceProblem:
    """Leave-one-out evidence of training rows."""
    terms = _stacked(rows, of_view, (view.left_out(rows) for view in views))
    return EvidenceProblem(centre(terms), rows.codes, rows.weights, of_view, class_weights)


def _shares(weights: Array, problem: EvidenceProblem) -> Array:
    """The share of each term in the mean absolute evidence of rows."""
    sizes = np.array([np.abs(term).mean(axis=0) @ problem.weights for term in problem.terms]) * weights
    total = sizes.sum()
    return np.asarray(sizes / total) if total > 0.0 else np.zeros(len(weights))


def _some(rows: TrainingRows, terms: int) -> AnyArray:
    """Positions of rows whose evidence fits into memory."""
    most = max(MOST_NUMBERS // (max(terms, 1) * len(rows.classes)), 1000)
    return proportional_sample(rows.codes, len(rows.classes), most)
