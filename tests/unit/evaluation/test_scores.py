"""Scores of cross-validation beside log-loss and error rate, their names, and the options named as in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import average_precision_score, recall_score, roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, cross_val_score
from sklearn.svm import LinearSVC

import likely
from likely import LinearDiscriminant, NaiveBayes
from likely.errors import InputError
from likely.evaluation.scoring import rank_scores

X, Y = load_iris(return_X_y=True)
MODELS = [NaiveBayes(), LogisticRegression(max_iter=3000)]


def ids(value: Any) -> str:
    return type(value).__name__


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=ids)
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_of_ranks_and_recalls_are_those_of_scikit_learn(model: Any, classes: int, weighted: bool) -> None:
    keep = Y > 0 if classes == 2 else Y >= 0
    rows, y = X[keep][:, :2], Y[keep]
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else None
    found = likely.cross_validate(model, rows, y, KFold(4, shuffle=True, random_state=1), weights)
    for i in range(4):
        test = found.fold == i
        proba, mine = found.posterior[test], None if weights is None else weights[test]
        if classes == 2:
            area = roc_auc_score(y[test], proba[:, 1], sample_weight=mine)
            precision = average_precision_score(y[test] == 2, proba[:, 1], sample_weight=mine)
        else:
            area = roc_auc_score(y[test], proba, multi_class="ovr", sample_weight=mine)
            precision = average_precision_score(y[test], proba, sample_weight=mine)
        recall = recall_score(y[test], found.classes[proba.argmax(axis=1)], average=None, sample_weight=mine)
        assert_allclose(found.auc[i], area, rtol=1e-9)
        assert_allclose(found.average_precision[i], precision, rtol=1e-9)
        assert_allclose(found.recall[i], recall, rtol=1e-12)
    assert_allclose(found.accuracy, 1.0 - found.error)


def test_tied_probabilities_count_half() -> None:
    proba = np.array([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    codes = np.array([0, 1, 1, 0])
    area, precision = rank_scores(proba, codes, None)
    assert area == pytest.approx(roc_auc_score(codes, proba[:, 1]))
    assert precision == pytest.approx(average_precision_score(codes, proba[:, 1]))
    assert np.isnan(rank_scores(proba, np.zeros(4, dtype=int), None)).all()
    assert np.isnan(rank_scores(proba[:0], codes[:0], None)).all()
    assert rank_scores(proba, codes, np.array([0.0, 1.0, 1.0, 1.0]))[0] == 1.0


def test_a_class_without_rows_in_a_fold_has_no_recall_there() -> None:
    found = likely.cross_validate(NaiveBayes(), X, Y, np.repeat([0, 1], [75, 75]))
    assert np.isnan(found.recall[0, 2])
    assert np.isnan(found.recall[1, 0])
    assert_array_equal(np.isnan(found.auc), False)


def test_scores_are_printed_and_in_the_frame() -> None:
    names = np.array(["setosa", "versicolor", "virginica"])
    found = likely.cross_validate(NaiveBayes(), X, names[Y], 3)
    frame = found.to_frame()
    assert list(frame) == [
        *("fold", "rows", "log_loss", "error", "brier", "log_likelihood", "auc", "average_precision"),
        *("recall_setosa", "recall_versicolor", "recall_virginica"),
        *("baseline_log_loss", "baseline_error", "baseline_brier"),
    ]
    assert_array_equal(frame["recall_virginica"], found.recall[:, 2])
    text = str(found)
    for name in ("AUC", "average precision", "recall", "Brier score"):
        assert name in text
    assert max(map(len, text.splitlines())) < 120
    assert "AUC" not in str(likely.cross_validate(LinearSVC(), X, Y, 3))


@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_scores_by_the_names_of_scikit_learn_are_its_numbers(model: Any) -> None:
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    keep = Y > 0
    names = [
        "neg_log_loss",
        "accuracy",
        "roc_auc",
        "average_precision",
        "recall",
        "balanced_accuracy",
        "neg_brier_score",
    ]
    found = likely.cross_validate(model, X[keep], Y[keep] == 2, cv=folds, scoring=names)
    for name in names:
        assert_allclose(
            found.scores[name], cross_val_score(clone(model), X[keep], Y[keep] == 2, cv=folds, scoring=name)
        )
    assert list(found.to_frame()) == ["fold", "rows", *names]
    assert "neg_brier_score" in str(found)
    assert "log-likelihood" not in str(found)
    three = likely.cross_validate(model, X, Y, cv=folds, scoring="roc_auc_ovr")
    assert_allclose(three.scores["roc_auc_ovr"], cross_val_score(clone(model), X, Y, cv=folds, scoring="roc_auc_ovr"))


def test_scores_of_regressions_by_name() -> None:
    folds = KFold(4, shuffle=True, random_state=0)
    found = likely.cross_validate(LinearRegression(), X[:, 1:], X[:, 0], cv=folds, scoring="neg_mean_squared_error")
    expected = cross_val_score(LinearRegression(), X[:, 1:], X[:, 0], cv=folds, scoring="neg_mean_squared_error")
    assert_allclose(found.scores["neg_mean_squared_error"], expected)
    assert list(found.to_frame()) == ["fold", "rows", "neg_mean_squared_error"]
    assert set(likely.cross_validate(LinearRegression(), X[:, 1:], X[:, 0], cv=4).scores) == {"squared_error", "r2"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scoring": "acuracy"}, "Did you mean 'accuracy'"),
        ({"scoring": "f1_macro"}, r"sklearn\.model_selection\.cross_validate"),
        ({"scoring": len}, "is not a name of a score"),
        ({"scoring": {"a": "accuracy", "b": 1}.values()}, "is not a name of a score"),
        ({"scoring": "recall"}, "is a score of two classes, and y has 3. Use 'recall_macro'"),
        ({"scoring": "roc_auc"}, "Use 'auc' or 'roc_auc_ovr'"),
        ({"cv": 3, "folds": 4}, "two names of one option"),
    ],
    ids=str,
)
def test_scores_that_are_not_known_are_errors_with_the_remedy(options: dict[str, Any], message: str) -> None:
    for model in MODELS:
        with pytest.raises(InputError, match=message):
            likely.cross_validate(model, X, Y, **options)


def test_scores_that_the_model_does_not_have_are_an_error() -> None:
    with pytest.raises(InputError, match=r"scoring='log_loss': the model has no such score. .*LinearSVC has no"):
        likely.cross_validate(LinearSVC(), X, Y, 3, scoring="log_loss")


@pytest.mark.parametrize("model", MODELS, ids=ids)
@pytest.mark.parametrize(
    "cv",
    [
        4,
        StratifiedKFold(4),
        ShuffleSplit(3, random_state=0),
        [(np.arange(0, 150, 2), np.arange(1, 150, 2))],
        np.arange(150) % 3,
    ],
    ids=["number", "splitter", "overlapping", "pairs", "fold numbers"],
)
def test_cv_is_another_name_of_folds(model: Any, cv: Any) -> None:
    found = likely.cross_validate(model, X, Y, cv=cv)
    expected = likely.cross_validate(model, X, Y, folds=cv)
    assert_array_equal(found.log_loss, expected.log_loss)
    assert_array_equal(found.fold, expected.fold)


def test_folds_are_fitted_at_the_same_time_with_the_same_result() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    for model in (LogisticRegression(max_iter=3000), LinearDiscriminant()):
        one = likely.cross_validate(model, frame, Y, 3)
        two = likely.cross_validate(model, frame, Y, 3, n_jobs=2)
        assert_allclose(two.posterior, one.posterior, rtol=1e-9)
        assert_allclose(two.auc, one.auc)
    found = likely.cross_validate(LinearRegression(), X[:, 1:], X[:, 0], 3, n_jobs=2)
    assert_allclose(found.prediction, likely.cross_validate(LinearRegression(), X[:, 1:], X[:, 0], 3).prediction)
