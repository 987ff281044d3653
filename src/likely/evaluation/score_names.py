"""Names of scores: those of the results of cross-validation, and those of scikit-learn that are the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from likely.errors import InputError, listed, nearest
from likely.typing import Array

REMEDY = "For other scores use sklearn.model_selection.cross_validate, which accepts all estimators of this library."
Scorer = Callable[[Any], Array]


def _mean_recall(result: Any) -> Array:
    """The mean over the classes that have rows in the fold."""
    known = ~np.isnan(result.recall)
    total, count = np.where(known, result.recall, 0.0).sum(axis=1), known.sum(axis=1)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)


def _of_second_class(name: str, instead: str, score: Scorer) -> Scorer:
    """A score of the second of two classes; an error that names another one if there are more."""

    def checked(result: Any) -> Array:
        if len(result.classes) != 2:
            raise InputError(f"scoring={name!r} is a score of two classes, and y has {len(result.classes)}. {instead}")
        return score(result)

    return checked


CLASSIFIER: dict[str, Scorer] = {
    "log_loss": lambda result: result.log_loss,
    "error": lambda result: result.error,
    "brier": lambda result: result.brier,
    "log_likelihood": lambda result: result.log_likelihood,
    "auc": lambda result: result.auc,
    "average_precision": lambda result: result.average_precision,
    "accuracy": lambda result: 1.0 - result.error,
    "balanced_accuracy": _mean_recall,
    "recall": _of_second_class(
        "recall", "Use 'recall_macro', or the attribute recall.", lambda each: each.recall[:, 1]
    ),
    "recall_macro": _mean_recall,
    "neg_log_loss": lambda result: -result.log_loss,
    "neg_brier_score": lambda result: -result.brier,
    "roc_auc": _of_second_class("roc_auc", "Use 'auc' or 'roc_auc_ovr'.", lambda each: each.auc),
    "roc_auc_ovr": lambda result: result.auc,
}
REGRESSOR: dict[str, Scorer] = {
    "squared_error": lambda result: result.squared_error,
    "log_likelihood": lambda result: result.log_likelihood,
    "r2": lambda result: result.r2,
    "neg_mean_squared_error": lambda result: -result.squared_error,
    "neg_root_mean_squared_error": lambda result: -np.sqrt(result.squared_error),
}


def scoring_names(scoring: Any, regression: bool) -> tuple[str, ...]:
    """The names of the scores that were asked for; none if there are none."""
    if scoring is None:
        return ()
    known = REGRESSOR if regression else CLASSIFIER
    names = [scoring] if isinstance(scoring, str) else scoring
    if callable(scoring) or not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"scoring={scoring!r} is not a name of a score, nor several. Use {listed(known, len(known))}. {REMEDY}"
        )
    for name in names:
        if name not in known:
            raise InputError(f"scoring={name!r} is not supported. {nearest(name, list(known))} {REMEDY}")
    return tuple(dict.fromkeys(names))


def score_values(name: str, result: Any) -> Array:
    """The values of a score in each fold; an error if the model does not have it."""
    known = CLASSIFIER if name in CLASSIFIER and hasattr(result, "classes") else REGRESSOR
    values = np.asarray(known[name](result))
    if np.isnan(values).all():
        raise InputError(f"scoring={name!r}: the model has no such score. {' '.join(result.notes)}")
    return values
