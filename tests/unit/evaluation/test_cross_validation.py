"""Cross-validation of any estimator: baselines, folds, confusion matrices, weights, unlabeled rows and printing."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss, mean_squared_error
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.model_selection import cross_validate as scikit_learns
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import likely
from likely import (
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    QuadraticDiscriminant,
    SoftmaxRegression,
)
from likely.errors import InputError
from likely.evaluation.held_out_scores import compared_with_baseline
from tests.helpers import load_table

X, Y = load_iris(return_X_y=True)
RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(60, 8))
COIN = np.arange(60) % 2
SPLITTER = StratifiedKFold(5, shuffle=True, random_state=0)


# ------------------------------------------------------------------------------------------------------------ baseline


@pytest.mark.parametrize("model", [LinearDiscriminant(), SoftmaxRegression(), DummyClassifier()], ids=str)
def test_the_baseline_is_scikit_learns_dummy_classifier_on_the_same_folds(model: Any) -> None:
    table = load_table("german_credit")
    rows, y = table[["age", "duration_months", "credit_amount"]].to_numpy(float), table["class"].to_numpy()
    found = likely.cross_validate(model, rows, y, 5)
    scoring = ("neg_log_loss", "accuracy", "neg_brier_score")
    numbers = (y == "good").astype(int)
    dummy = scikit_learns(DummyClassifier(strategy="prior"), rows, numbers, cv=SPLITTER, scoring=scoring)
    assert_allclose(found.baseline_log_loss, -dummy["test_neg_log_loss"], rtol=1e-12)
    assert_allclose(found.baseline_error, 1.0 - dummy["test_accuracy"], rtol=1e-12)
    assert_allclose(found.baseline_brier, -dummy["test_neg_brier_score"], rtol=1e-12)


@pytest.mark.parametrize("model", [NaiveBayes(), LogisticRegression(tol=1e-10, max_iter=10_000)], ids=str)
def test_the_baseline_counts_weights_as_repeats(model: Any) -> None:
    weights = np.random.default_rng(1).integers(0, 4, len(Y))
    fold, repeated = np.arange(len(Y)) % 3, np.repeat(np.arange(len(Y)), weights)
    ours = likely.cross_validate(model, X, Y, fold, weights)
    theirs = likely.cross_validate(model, X[repeated], Y[repeated], fold[repeated])
    assert_array_equal(ours.confusion, theirs.confusion)
    for name in ("error", "baseline_log_loss", "baseline_error", "baseline_brier"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9)
    assert_allclose(ours.log_loss, theirs.log_loss, rtol=1e-4)  # LogisticRegression stops at a tolerance


def test_a_class_without_training_rows_has_proportion_zero_in_the_baseline() -> None:
    y = np.array([0] * 10 + [1] * 9 + [2])
    found = likely.cross_validate(NaiveBayes(), np.random.default_rng(1).normal(size=(20, 2)), y, np.arange(20) // 10)
    rare = (y[10:] == 2).mean()
    assert found.baseline_log_loss[1] > 36.0 * rare
    assert np.isfinite(found.baseline_log_loss).all()


def test_a_model_that_is_worse_than_the_class_proportions_is_called_so() -> None:
    worse = likely.cross_validate(QuadraticDiscriminant(), NOISE, COIN, 5)
    difference = worse.log_loss - worse.baseline_log_loss
    assert difference.mean() > 0.0
    error = difference.std(ddof=1) / np.sqrt(5)
    sentence = "The model is worse than predicting the class proportions: its log-loss is "
    assert f"{sentence}{difference.mean():.4f} ± {error:.4f} higher." in str(worse)
    better = likely.cross_validate(LinearDiscriminant(), X, Y, 5)
    assert "worse" not in str(better)
    assert "lower than that of predicting the class proportions" in str(better)
    same = likely.cross_validate(DummyClassifier(), X, Y, 5)
    assert_allclose(same.log_loss, same.baseline_log_loss, rtol=1e-12)
    assert "worse" not in str(same)


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        ([0.7, 0.9], "The model is worse than nothing: its loss is 0.3000 ± 0.1000 higher."),
        ([0.4, 0.7], "The model is worse than nothing: its loss is 0.0500 ± 0.1500 higher, within one standard error."),
        ([0.2, 0.1], "The loss is 0.3500 ± 0.0500 lower than that of nothing."),
        ([0.2, 0.7], "The loss is 0.0500 ± 0.2500 lower than that of nothing, within one standard error."),
        ([np.nan, 0.7], "The model is worse than nothing: its loss is 0.2000 higher."),
        ([np.nan, np.nan], "No fold has a loss."),
    ],
)
def test_the_difference_from_the_baseline_is_a_sentence(scores: list[float], sentence: str) -> None:
    assert compared_with_baseline(np.array(scores), np.array([0.5, 0.5]), "loss", "nothing") == sentence


# -------------------------------------------------------------------------------------------------------- any estimator


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(5, random_state=0),
        GridSearchCV(LogisticRegression(max_iter=1000), {"C": [0.1, 1.0]}),
        SoftmaxRegression(),
        NaiveBayes(),
        LinearDiscriminant(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_classifier_has_the_scores_of_scikit_learn(model: Any) -> None:
    found = likely.cross_validate(model, X, Y, 5, copies="apart")
    proba = cross_val_predict(model, X, Y, cv=SPLITTER, method="predict_proba")
    assert_allclose(found.posterior, proba, atol=1e-9)
    for i, (_, test) in enumerate(SPLITTER.split(X, Y)):
        assert_array_equal(np.flatnonzero(found.fold == i), test)
        assert_allclose(found.log_loss[i], log_loss(Y[test], proba[test]), rtol=1e-9)
        assert_allclose(found.error[i], np.mean(proba[test].argmax(axis=1) != Y[test]), atol=1e-12)
        assert_allclose(found.brier[i], brier_score_loss(Y[test], proba[test], labels=[0, 1, 2]), rtol=1e-9)
    assert_array_equal(found.confusion, confusion_matrix(Y, proba.argmax(axis=1)))
    assert_array_equal(found.rows, 30)


def test_the_model_is_cloned() -> None:
    model = LogisticRegression(max_iter=1000)
    likely.cross_validate(model, X, Y, 3)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("model", [LinearDiscriminant(), LogisticRegression(max_iter=1000)], ids=str)
def test_sorted_rows_are_shuffled(model: Any) -> None:
    """Iris is sorted by class: folds of consecutive rows would each lack a class."""
    found = likely.cross_validate(model, X, Y, 3)
    assert all(set(Y[found.fold == i]) == {0, 1, 2} for i in range(3))
    assert not np.array_equal(found.fold, likely.cross_validate(model, X, Y, 3, random_state=1).fold)
    assert_array_equal(found.fold, likely.cross_validate(model, X, Y, 3).fold)


def test_estimators_without_probabilities_have_an_error_rate_only() -> None:
    found = likely.cross_validate(LinearSVC(), X, Y, 5, copies="apart")
    predicted = cross_val_predict(LinearSVC(), X, Y, cv=SPLITTER)
    assert_array_equal(found.confusion, confusion_matrix(Y, predicted))
    assert_allclose(found.error.mean(), np.mean(predicted != Y))
    assert np.isnan(found.log_loss).all()
    assert np.isnan(found.posterior).all()
    text = str(found)
    assert "LinearSVC has no predict_proba: the error rate is the only score" in text
    assert "log-loss" not in text
    assert "log_loss" not in found.to_frame()
    assert "than that of predicting the most frequent class" in text
    with pytest.raises(InputError, match="no predict_proba, which reliability needs"):
        found.reliability()


def test_texts_are_rows_for_pipelines_with_a_vectorizer() -> None:
    texts = ["good day", "bad day", "a good night", "one bad night"] * 6
    y = ["pro", "contra"] * 12
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100.0))
    results = [
        likely.cross_validate(model, rows, y, 3, copies="apart")
        for rows in (texts, np.array(texts), pd.Series(texts), pl.Series(texts))
    ]
    for found in results:
        assert_array_equal(found.error, 0.0)
        assert_allclose(found.log_loss, results[0].log_loss)


@pytest.mark.parametrize(
    "turn",
    [
        lambda rows: rows.tolist(),
        scipy.sparse.csr_matrix,
        scipy.sparse.coo_array,
        lambda rows: pd.DataFrame(rows, columns=list("abcd")),
        lambda rows: pl.DataFrame(rows, schema=list("abcd")),
        lambda rows: pa.table(dict(zip("abcd", rows.T, strict=True))),
    ],
    ids=["list", "csr", "coo", "pandas", "polars", "arrow"],
)
def test_the_kind_of_table_changes_nothing(turn: Any) -> None:
    model = make_pipeline(StandardScaler(with_mean=False), DecisionTreeClassifier(max_depth=2, random_state=0))
    found = likely.cross_validate(model, turn(X), Y, 3)
    assert_allclose(found.log_loss, likely.cross_validate(model, X, Y, 3).log_loss, rtol=1e-6)


def test_weights_are_passed_to_estimators_that_support_them() -> None:
    weights = np.random.default_rng(1).integers(0, 3, len(Y)).astype(float)
    fold = np.arange(len(Y)) % 3
    model = make_pipeline(StandardScaler(), LogisticRegression())
    found = likely.cross_validate(model, X, Y, fold, weights)
    train, test = (fold != 0) & (weights > 0), fold == 0
    alone = clone(model).fit(X[train], Y[train], logisticregression__sample_weight=weights[train])
    expected = log_loss(Y[test], alone.predict_proba(X[test]), sample_weight=weights[test])
    assert_allclose(found.log_loss[0], expected, rtol=1e-9)
    grid = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [1.0]})
    assert_allclose(
        likely.cross_validate(grid, X, Y, fold, weights).log_loss,
        likely.cross_validate(LogisticRegression(max_iter=1000), X, Y, fold, weights).log_loss,
        rtol=1e-3,
    )
    with pytest.raises(InputError, match=r"KNeighborsClassifier\.fit has no parameter sample_weight"):
        likely.cross_validate(make_pipeline(StandardScaler(), KNeighborsClassifier()), X, Y, fold, weights)


@pytest.mark.parametrize("model", [NaiveBayes(), LogisticRegression()], ids=str)
def test_folds_without_weight_to_train_on_are_refused(model: Any) -> None:
    with pytest.raises(InputError, match="Fold 0: all training rows have weight 0 in sample_weight"):
        likely.cross_validate(model, X[48:52], Y[48:52], [0, 0, 1, 1], [1, 1, 0, 0])
    pairs = [([2, 3], [0, 1]), ([0, 1], [2, 3])]
    with pytest.raises(InputError, match="Fold 0"):
        likely.cross_validate(model, X[48:52], Y[48:52], pairs, [1, 1, 0, 0])


class Foreign:
    """Has the methods of an estimator, but is none of scikit-learn's."""

    def fit(self, X: Any, y: Any) -> Foreign:
        return self


def test_what_has_no_scores_is_refused() -> None:
    with pytest.raises(InputError, match="Foreign does not follow the scikit-learn API"):
        likely.cross_validate(Foreign(), X, Y)
    for model in (NaiveBayes, None, "lda"):
        with pytest.raises(InputError, match="is not an estimator"):
            likely.cross_validate(model, X, Y)
    with pytest.raises(InputError, match=r"but a class\. Use an instance: NaiveBayes\(\)"):
        likely.cross_validate(NaiveBayes, X, Y)
    with pytest.raises(InputError, match=r"model=DataFrame object is not .* arguments is model, X, y"):
        likely.cross_validate(pd.DataFrame(X), Y, NaiveBayes())
    with pytest.raises(InputError, match="folds=StratifiedKFold is a class"):
        likely.cross_validate(NaiveBayes(), X, Y, StratifiedKFold)
    with pytest.raises(InputError, match="random_state='a' is not a seed"):
        likely.cross_validate(NaiveBayes(), X, Y, 3, random_state="a")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="random_state='a' is not a seed"):
        likely.select(X, Y, [NaiveBayes()], folds=3, random_state="a")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="random_state='a' is not a seed"):
        likely.compare(X, Y, {"a": NaiveBayes()}, random_state="a")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"NaiveBayes is a class\. Use an instance: NaiveBayes\(\)"):
        likely.select(X, Y, [NaiveBayes])  # type: ignore[list-item]
    for model in (MixtureModel(2), StandardScaler()):
        with pytest.raises(InputError, match="neither a classifier nor a regressor"):
            likely.cross_validate(model, X, Y)
    with pytest.raises(InputError, match=r"Fold 0: LogisticRegression\(\) cannot be fitted"):
        likely.cross_validate(LogisticRegression(), np.where(X > 7.0, np.nan, X), Y, 3)
    with pytest.raises(InputError, match="X has 150 rows and y has 20 labels"):
        likely.cross_validate(LogisticRegression(), X, Y[:20])
    with pytest.raises(InputError, match="X has 150 rows and y has 20 targets"):
        likely.cross_validate(Ridge(), X, X[:20, 0])
    with pytest.raises(InputError, match="folds=200 is not between 2 and 150, the number of rows"):
        likely.cross_validate(Ridge(), X, X[:, 0], 200)


def test_rows_in_several_folds_are_counted_in_each() -> None:
    folds = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    for model in (NaiveBayes(), LogisticRegression(max_iter=1000)):
        found = likely.cross_validate(model, X, Y, folds)
        assert found.confusion.sum() == 300
        assert_allclose(np.trace(found.confusion) / 300, 1.0 - found.error.mean())


# -------------------------------------------------------------------------------------------------------------- labels


class Mark(enum.Enum):
    PASS = 1
    FAIL = 2


def test_one_class_of_labels_without_an_order() -> None:
    y = np.array([Mark.PASS] * 40, dtype=object)
    found = likely.cross_validate(NaiveBayes(), NOISE[:40], y, 3)
    assert_array_equal(found.error, 0.0)
    assert found.classes.tolist() == [Mark.PASS]
    assert "one class" in str(found)
    assert len(likely.select(NOISE[:40], y, folds=3).ranking) > 1


def test_unlabeled_rows_are_training_rows_of_every_fold() -> None:
    y = Y.astype(object)
    unlabeled = np.random.default_rng(1).permutation(150)[:100]
    y[unlabeled] = None
    labeled = np.setdiff1d(np.arange(150), unlabeled)
    model = NaiveBayes(likely.Gaussian("diagonal"), unlabeled_weight=0.5)
    found = likely.cross_validate(model, X, y, 3)
    assert_array_equal(found.fold[unlabeled], -1)
    assert_array_equal(found.codes[labeled], Y[labeled])
    assert np.isnan(found.posterior[unlabeled]).all()
    assert found.rows.sum() == len(labeled)
    for i in range(3):
        train, test = np.flatnonzero(found.fold != i), np.flatnonzero(found.fold == i)
        assert set(unlabeled) <= set(train)
        alone = clone(model).fit(X[train], y[train])
        assert_allclose(found.posterior[test], alone.predict_proba(X[test]), atol=1e-9)
    assert "100 unlabeled rows are training rows of every fold" in str(found)
    assert found.reliability().count.sum() == len(labeled)


@pytest.mark.parametrize("weight", [1.0, pytest.param("auto", marks=pytest.mark.long)])
def test_the_marker_of_unlabeled_rows_is_no_class(weight: Any) -> None:
    y = np.where(np.arange(150) % 3 == 0, -1, Y)
    model = NaiveBayes(unlabeled=-1, unlabeled_weight=weight)
    found = likely.cross_validate(model, X, y, 3)
    assert found.classes.tolist() == [0, 1, 2]
    by_number = likely.cross_validate(model, X, y, found.fold)
    assert_allclose(by_number.posterior, found.posterior, atol=1e-12)
    pairs = [(np.flatnonzero(found.fold != i), np.flatnonzero(found.fold == i)) for i in range(3)]
    assert_allclose(likely.cross_validate(model, X, y, pairs).posterior, found.posterior, atol=1e-12)
    weighted = likely.cross_validate(model, X, y, found.fold, np.ones(150))
    assert_allclose(weighted.log_loss, found.log_loss)
    with pytest.raises(InputError, match="y, row 0: -1 marks unlabeled rows"):
        likely.select(X, y, [GenerativeClassifier(), NaiveBayes(unlabeled=-1)])
    with pytest.raises(InputError, match="y, row 0: -1 marks unlabeled rows"):
        likely.compare(X, y, {"naive": NaiveBayes(unlabeled=-1)})
    with pytest.raises(InputError, match="149 fold numbers, but X has 150 rows"):
        likely.cross_validate(model, X, y, found.fold[:149])


@pytest.mark.parametrize("weight", [1.0, pytest.param("auto", marks=pytest.mark.long)])
def test_hybrids_train_on_unlabeled_rows_too(weight: Any) -> None:
    y = np.where(np.arange(150) % 3 == 0, -1, Y)
    model = HybridClassifier(likely.Gaussian(shared=True), blend=0.0, unlabeled=-1, unlabeled_weight=weight)
    found = likely.cross_validate(model, X, y, 3)
    assert found.classes.tolist() == [0, 1, 2]
    assert_array_equal(found.fold[::3], -1)
    test = np.flatnonzero(found.fold == 0)
    train = np.setdiff1d(np.arange(150), test)
    assert_allclose(found.posterior[test], clone(model).fit(X[train], y[train]).predict_proba(X[test]), atol=1e-6)
    assert_array_equal(found.fold, likely.cross_validate(NaiveBayes(unlabeled=-1, unlabeled_weight=0.0), X, y, 3).fold)
    pairs = [(np.flatnonzero(found.fold != i), np.flatnonzero(found.fold == i)) for i in range(3)]
    assert_allclose(likely.cross_validate(model, X, y, pairs).log_loss, found.log_loss, rtol=1e-6)
    assert "50 unlabeled rows are training rows of every fold" in str(found)
    with pytest.raises(InputError, match="the label is missing"):
        likely.cross_validate(LogisticRegression(), X, np.where(y < 0, np.nan, y))


# ---------------------------------------------------------------------------------------------------------- regressions


@pytest.mark.parametrize("model", [GenerativeRegressor(estimation="mle"), Ridge(), LinearRegression()], ids=str)
def test_regressions_beside_the_mean_of_y(model: Any) -> None:
    rows, y = load_diabetes(return_X_y=True)
    found = likely.cross_validate(model, rows, y, 4)
    splits = list(KFold(4, shuffle=True, random_state=0).split(rows))
    for i, (train, test) in enumerate(splits):
        assert_array_equal(np.flatnonzero(found.fold == i), test)
        fitted = clone(model).fit(rows[train], y[train])
        assert_allclose(found.squared_error[i], mean_squared_error(y[test], fitted.predict(rows[test])), rtol=1e-9)
        dummy = DummyRegressor().fit(rows[train], y[train])
        assert_allclose(
            found.baseline_squared_error[i], mean_squared_error(y[test], dummy.predict(rows[test])), rtol=1e-9
        )
        baseline = norm(y[train].mean(), y[train].std()).logpdf(y[test]).mean()
        assert_allclose(found.baseline_log_likelihood[i], baseline, rtol=1e-9)
        if hasattr(fitted, "log_predictive"):
            assert_allclose(found.log_likelihood[i], fitted.log_predictive(rows[test], y[test]).mean(), rtol=1e-9)
        else:
            assert np.isnan(found.log_likelihood[i])
            assert "has no predictive density" in str(found)
    assert "lower than that of predicting the mean of y" in str(found)
    assert found.to_frame()["r2"].tolist() == found.r2.tolist()
    assert np.all(found.r2 > 0.3)


def test_a_regression_on_noise_is_worse_than_the_mean() -> None:
    found = likely.cross_validate(LinearRegression(), NOISE[:, :7], NOISE[:, 7], 5)
    assert "The model is worse than predicting the mean of y" in str(found)


def test_regressions_with_several_outputs_missing_targets_and_names() -> None:
    frame = pd.DataFrame(NOISE[:, :4], columns=list("abcd"))
    both = likely.cross_validate(GenerativeRegressor(), frame, ["c", "d"], 3)
    each = [likely.cross_validate(Ridge(), frame[["a", "b"]], frame[name], 3) for name in "cd"]
    assert both.prediction.shape == (60, 2)
    assert_allclose(both.baseline_squared_error, np.mean([one.baseline_squared_error for one in each], axis=0))
    assert_allclose(both.baseline_log_likelihood, np.sum([one.baseline_log_likelihood for one in each], axis=0))
    y = NOISE[:, 3].copy()
    y[5] = np.nan
    known = np.arange(60) != 5
    missing = likely.cross_validate(GenerativeRegressor(), NOISE[:, :3], y, np.arange(60) % 3)
    without = likely.cross_validate(GenerativeRegressor(), NOISE[known, :3], y[known], np.arange(60)[known] % 3)
    assert_allclose(missing.baseline_squared_error, without.baseline_squared_error, rtol=1e-12)
    weights = np.random.default_rng(1).integers(0, 3, 60)
    repeated = np.repeat(np.arange(60), weights)
    fold = np.arange(60) % 3
    weighted = likely.cross_validate(Ridge(), NOISE[:, :3], NOISE[:, 3], fold, weights)
    again = likely.cross_validate(Ridge(), NOISE[repeated, :3], NOISE[repeated, 3], fold[repeated])
    for name in ("squared_error", "baseline_squared_error", "baseline_log_likelihood"):
        assert_allclose(getattr(weighted, name), getattr(again, name), rtol=1e-9)


# ------------------------------------------------------------------------------------------------------------- printing


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("model", [NaiveBayes(), make_pipeline(StandardScaler(), LogisticRegression())], ids=str)
def test_frames_are_those_of_the_library_of_the_table(model: Any, library: str) -> None:
    data = {"a": NOISE[:, 0], "b": NOISE[:, 1], "y": COIN}
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library](data)
    found = likely.cross_validate(model, frame, "y", 3)
    for result in (found.to_frame(), found.confusion_frame(), found.reliability().to_frame()):
        assert type(result) is type(frame)
    scores = found.to_frame()
    assert_allclose(np.asarray(scores["log_loss"]), found.log_loss)
    assert_allclose(np.asarray(scores["baseline_error"]), found.baseline_error)


def test_a_frame_of_an_array_is_of_pandas() -> None:
    found = likely.cross_validate(NaiveBayes(), X, Y, 3)
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["fold"].tolist() == [0, 1, 2]
    table = found.confusion_frame()
    assert table.columns.tolist() == ["true", "0", "1", "2"]
    assert_array_equal(table[["0", "1", "2"]].to_numpy(), found.confusion)


def test_long_results_are_abbreviated_and_long_names_stay_distinct() -> None:
    many = likely.cross_validate(LinearDiscriminant(), X, Y, LeaveOneOut())
    assert "to_frame() has the scores of all 150 folds." in str(many)
    assert len(str(many).splitlines()) < 24
    names = np.array(
        [f"a long name of the class that ends {end} and then goes on" for end in ("so", "otherwise", "as")]
    )
    text = str(likely.cross_validate(NaiveBayes(), X, names[Y], 3))
    assert max(map(len, text.splitlines())) < 120
    shown = [line.split("  ")[0] for line in text.splitlines() if line.startswith("(")]
    assert len(set(shown)) == 3
    letters = np.array([f"class {i}" for i in range(26)])[np.arange(260) % 26]
    found = likely.cross_validate(NaiveBayes(), np.random.default_rng(1).normal(size=(260, 2)), letters, 3)
    lines = str(found).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("most frequent errors"))
    assert len(lines[start:]) == 12
    wrong = found.confusion - np.diag(np.diag(found.confusion))
    assert lines[start + 2].split()[-2:] == [str(wrong.max()), "10"]


def test_html_is_escaped() -> None:
    y = np.array(["<b>bold</b>", "a & b", "c"])[Y]
    page = likely.cross_validate(NaiveBayes(), X, y, 3)._repr_html_()
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "a &amp; b" in page
    assert "<b>" not in page
    assert page.count("<table>") == page.count("</table>") == 3


def test_folds_of_single_rows_are_refused_with_the_reason() -> None:
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(InputError, match="No class has more than 1 row"):
        likely.cross_validate(LinearDiscriminant(), X, [0, 1, 2], folds=3)
    with pytest.raises(InputError, match="There is only 1 row"):
        likely.cross_validate(LinearRegression(), X[:1], [0.5], folds=3)
