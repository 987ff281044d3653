"""Cross-validation of any estimator with the scikit-learn API: it is cloned and fitted again for every fold."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed

from likely.data.frames import is_frame, names_columns, split_weights, whole_frame
from likely.data.labels import encode_labels
from likely.data.sources import targets_apart
from likely.data.validation import read_targets, read_weights
from likely.errors import InputError
from likely.evaluation.folds import (
    FoldOptions,
    Split,
    Splits,
    check_weights,
    divided,
    fold_numbers,
    training_rows,
    unlabeled_note,
)
from likely.evaluation.held_out_scores import (
    CrossValidation,
    FoldScores,
    RegressionCrossValidation,
    RowResults,
    cross_validation,
)
from likely.evaluation.preparation import take_rows
from likely.evaluation.scoring import baseline_scores, rank_scores, recalls, score_fold, scores_of, weighted_mean
from likely.model.rendering import frame_library, short_title
from likely.numerics.progress import progress
from likely.statistics.counts import positions
from likely.typing import AnyArray, Array

LOG_2_PI = float(np.log(2.0 * np.pi))


def estimator_type(model: Any, argument: str) -> str | None:
    """'classifier', 'regressor' or another type of scikit-learn's estimators; an error for objects without one."""
    if isinstance(model, type):
        raise InputError(f"{argument}={model!r} is not an estimator, but a class. Use an instance: {model.__name__}().")
    if not hasattr(model, "fit"):
        shown = " ".join(repr(model).split())
        shown = shown if len(shown) < 80 else f"{type(model).__name__} object"
        order = " The order of the arguments is model, X, y." if argument == "model" else ""
        raise InputError(f"{argument}={shown} is not an estimator. Use an instance, such as NaiveBayes().{order}")
    try:
        return get_tags(model).estimator_type
    except AttributeError:
        raise InputError(
            f"{argument}: {type(model).__name__} does not follow the scikit-learn API: it has no __sklearn_tags__. "
            "Derive it from sklearn.base.BaseEstimator, and from ClassifierMixin or RegressorMixin."
        ) from None


def refit_classifier(
    model: Any, X: Any, y: Any, sample_weight: Any, options: FoldOptions, n_jobs: int | None = None
) -> CrossValidation:
    """Scores of a classifier on each fold, fitted to the others."""
    X, sample_weight = split_weights(whole_frame(X), sample_weight)
    X, y, _ = targets_apart(X, y)
    rows, count = _rows(X)
    classes, codes, values = _labels(model, y, count)
    weights = read_weights(sample_weight, count)
    splits = _splits(options, rows, codes)
    refits = Refits(model, rows, values, weights, splits.pairs, n_jobs)
    posterior, confusion = np.full((count, len(classes)), np.nan), np.zeros((len(classes), len(classes)))
    mass = np.ones(count) if weights is None else weights
    scores, baseline, ranked = (np.full((size, len(refits.splits)), np.nan) for size in (4, 3, 2))
    recall = np.empty((len(refits.splits), len(classes)))
    for i, fitted, train, test in refits:
        part, mine = take_rows(rows, test), mass[test]
        found = class_probabilities(fitted, part, len(test), classes)
        scores[:, i], wrong = score_fold(scores_of(found, codes[test]), codes[test], mine)
        confusion += wrong
        recall[i] = recalls(wrong)
        if hasattr(fitted, "predict_proba"):
            refits.keep(i, posterior, found)
            ranked[:, i] = rank_scores(found, codes[test], mine)
        else:
            scores[[0, 2], i] = np.nan
        pair = (np.bincount(codes[each], mass[each], len(classes)) for each in (train[codes[train] >= 0], test))
        baseline[:, i] = baseline_scores(*pair)
    notes = unlabeled_note(int(np.count_nonzero(codes < 0))) + splits.notes
    if np.isnan(posterior).all():
        notes += (f"{type(model).__name__} has no predict_proba: the error rate is the only score",)
    confusion = confusion.astype(np.intp) if weights is None else confusion
    results = RowResults(posterior, refits.number, codes, weights)
    folds = FoldScores(refits.rows, scores, baseline, ranked, recall)
    return cross_validation(model, frame_library(X), folds, classes, confusion, notes, splits.copies, results)


def refit_regressor(
    model: Any, X: Any, y: Any, sample_weight: Any, options: FoldOptions, n_jobs: int | None = None
) -> RegressionCrossValidation:
    """Scores of a regressor on each fold, fitted to the others."""
    estimator = type(model).__name__

    def numbers(targets: Any, start: int = 0) -> AnyArray:
        table = read_targets(targets, estimator, start)
        return np.array(table.block(0, table.rows), dtype=np.float64).reshape(-1, *table.target_shape)

    X, sample_weight = split_weights(whole_frame(X), sample_weight)
    X, y, _ = targets_apart(X, y, None, names_columns, numbers)
    y = numbers(y) if not isinstance(y, np.ndarray) or y.dtype != np.float64 else y
    rows, count = _rows(X)
    if len(y) != count:
        raise InputError(f"X has {count} rows and y has {len(y)} targets.")
    weights = read_weights(sample_weight, count)
    splits = divided(options, rows, None, y=y)
    refits = Refits(model, rows, y, weights, splits.pairs, n_jobs)
    mass = np.ones(count) if weights is None else weights
    prediction = np.full(y.shape, np.nan)
    scores, baseline = (np.full((2, len(refits.splits)), np.nan) for _ in range(2))
    for i, fitted, train, test in refits:
        part, mine = take_rows(rows, test), mass[test]
        found = np.asarray(fitted.predict(part), dtype=np.float64).reshape(y[test].shape)
        refits.keep(i, prediction, found)
        scores[0, i] = _mean_square(y[test] - found, mine)
        if hasattr(fitted, "log_predictive"):
            scores[1, i] = weighted_mean(np.asarray(fitted.log_predictive(part, y[test])), mine)
        baseline[:, i] = _baseline(y[train], y[test], mass[train], mine)
    notes = () if not np.isnan(scores[1]).all() else (f"{estimator} has no predictive density log p(y | x)",)
    return RegressionCrossValidation(
        squared_error=scores[0],
        log_likelihood=scores[1],
        prediction=prediction,
        fold=refits.number,
        baseline_squared_error=baseline[0],
        baseline_log_likelihood=baseline[1],
        notes=notes + splits.notes,
        copies=splits.copies,
        rows=refits.rows,
        model=" ".join(repr(model).split()),
        library=frame_library(X),
    )


def _labels(model: Any, y: Any, count: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Classes, the code of each row (-1 for unlabeled rows), and its label as the model reads it."""
    semi_supervised = "unlabeled" in model.get_params(deep=False)
    marker = model.unlabeled if semi_supervised else None
    labels = encode_labels(y, count, type(model).__name__, allow_missing=semi_supervised, unlabeled=marker)
    if labels.missing is None:
        codes = np.asarray(labels.codes, dtype=np.intp)
        return labels.classes, codes, labels.classes[codes]
    codes, values = np.full(count, -1), np.full(count, None, dtype=object)
    codes[~labels.missing] = labels.codes
    values[~labels.missing] = labels.classes[labels.codes]
    return labels.classes, codes, values


def _splits(options: FoldOptions, rows: Any, codes: AnyArray) -> Splits:
    """Training and test rows of each fold; unlabeled rows are training rows of every fold."""
    if (codes >= 0).all():
        return divided(options, rows, codes)
    labeled, unlabeled = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    splits = divided(options, rows, codes[labeled], labeled)
    pairs: list[Split] = [
        (None if train is None else np.concatenate([labeled[train], unlabeled]), labeled[test])
        for train, test in splits.pairs
    ]
    return replace(splits, pairs=pairs)


class Refits:
    """Fits of clones of an estimator to the training rows of folds."""

    def __init__(
        self,
        model: Any,
        rows: Any,
        y: AnyArray,
        weights: Array | None,
        splits: Sequence[Split],
        n_jobs: int | None = None,
    ) -> None:
        check_weights(splits, weights)
        self._n_jobs = n_jobs
        self._model, self._rows, self._y, self._weights, self.splits = model, rows, y, weights, splits
        self._weight_name = "" if weights is None else _weight_parameter(model)
        self.number, self.rows = fold_numbers(splits, len(y)), np.array([len(test) for _, test in splits])

    def __iter__(self) -> Iterator[tuple[int, Any, AnyArray, AnyArray]]:
        """The number and the model of each fold, its training rows, without those of weight 0, and its test rows."""
        tasks = ((i, *self._training(split)) for i, split in enumerate(self.splits))
        with progress("folds", len(self.splits)) as step:
            for i, train, fitted in self._fits(tasks):
                yield i, fitted, train, self.splits[i][1]
                step()

    def _training(self, split: Split) -> tuple[AnyArray, dict[str, Any]]:
        """The training rows of a fold, without those of weight 0, and their weights as an option of `fit`."""
        train = training_rows(split, len(self._y))
        if self._weights is None:
            return train, {}
        train = train[self._weights[train] > 0.0]
        return train, {self._weight_name: self._weights[train]}

    def _fits(self, tasks: Iterable[tuple[int, AnyArray, dict[str, Any]]]) -> Iterator[tuple[int, AnyArray, Any]]:
        """The number, training rows and fitted model of each fold: one after another, or several at a time."""
        if self._n_jobs is None or self._n_jobs == 1:
            return (_fitted(self._model, self._rows, self._y, *task) for task in tasks)
        parallel = Parallel(n_jobs=self._n_jobs, return_as="generator")
        return iter(parallel(delayed(_fitted)(self._model, self._rows, self._y, *task) for task in tasks))

    def keep(self, i: int, results: Array, found: Array) -> None:
        """Set the results of the rows of a fold: a row in several folds has those of the last one."""
        test = self.splits[i][1]
        mine = self.number[test] == i
        results[test[mine]] = found[mine]


def _fitted(
    model: Any, rows: Any, y: AnyArray, i: int, train: AnyArray, options: dict[str, Any]
) -> tuple[int, AnyArray, Any]:
    """A clone of a model that is fitted to the training rows of fold i."""
    try:
        return i, train, clone(model).fit(take_rows(rows, train), y[train], **options)
    except (ValueError, TypeError, ArithmeticError) as error:
        name = short_title(" ".join(repr(model).split()))
        raise InputError(f"Fold {i}: {name} cannot be fitted: {error}") from error


def _weight_parameter(model: Any) -> str:
    """The name of the parameter of `fit` that has the weights: of a pipeline, that of its last step."""
    name, last = "sample_weight", model
    while steps := getattr(last, "steps", None):
        name, last = f"{steps[-1][0]}__{name}", steps[-1][1]
    parameters = inspect.signature(last.fit).parameters
    if "sample_weight" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return name
    raise InputError(
        f"{type(last).__name__}.fit has no parameter sample_weight, so that the model cannot use weights. Leave "
        "sample_weight out, or repeat the rows."
    )


def _rows(X: Any) -> tuple[Any, int]:
    """X as a table from which rows can be taken, and the number of its rows; texts for a vectorizer are rows too."""
    if is_frame(X):
        return X, len(X)
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array(X) if not isinstance(X, scipy.sparse.csr_matrix) else X, X.shape[0]
    try:
        found = np.asarray(X) if not isinstance(X, list | tuple) or not _is_text(X) else np.array(X, dtype=object)
    except ValueError as error:
        raise InputError(f"X is ragged: {error}") from None
    if found.ndim == 0 or not len(found):
        raise InputError("X has no rows.")
    return found, len(found)


def _is_text(X: Sequence[Any]) -> bool:
    return any(isinstance(part, str) or (isinstance(part, list | tuple) and _is_text(part)) for part in X[:1])


def class_probabilities(fitted: Any, rows: Any, count: int, classes: AnyArray) -> Array:
    """p(class | x) of this many rows, 0 for classes that the model does not have.

    Without `predict_proba`, it is 1 for the class that is predicted.
    """
    if not hasattr(fitted, "predict_proba"):
        return np.eye(len(classes))[positions(classes, np.asarray(fitted.predict(rows)))]
    found = np.asarray(fitted.predict_proba(rows), dtype=np.float64)
    places = positions(classes, np.asarray(fitted.classes_))
    if found.shape != (count, len(places)) or not np.isfinite(found).all():
        raise InputError(f"{type(fitted).__name__}.predict_proba returned no probabilities for some rows.")
    posterior = np.zeros((count, len(classes)))
    posterior[:, places[places >= 0]] = found[:, places >= 0]
    return posterior


def _mean_square(difference: Array, weights: Array) -> float:
    """Mean of squares, over the outputs and the rows; missing targets take no part."""
    columns = difference.reshape(len(difference), -1).T
    known = ~np.isnan(columns)
    return float(np.mean([weighted_mean(c[mine] ** 2, weights[mine]) for c, mine in zip(columns, known, strict=True)]))


def _baseline(train: Array, test: Array, train_weights: Array, weights: Array) -> tuple[float, float]:
    """Squared error of the mean of y, and log-density of normal distributions with its mean and variance."""
    centre, variance = [], []
    for column in train.reshape(len(train), -1).T:
        known = ~np.isnan(column)
        centre.append(weighted_mean(column[known], train_weights[known]))
        variance.append(weighted_mean((column[known] - centre[-1]) ** 2, train_weights[known]))
    difference = test.reshape(len(test), -1) - np.array(centre)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_density = -0.5 * (LOG_2_PI + np.log(variance) + difference**2 / np.array(variance))
    return _mean_square(difference, weights), weighted_mean(np.nansum(log_density, axis=1), weights)
