"""The weight of unlabeled rows: folds, scores, the rule of one standard error, and what fits keep of it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

import likely
from likely import (
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    LinearDiscriminant,
    NaiveBayes,
    NormalInverseWishart,
)
from likely.choice import unlabeled_weight
from likely.choice.unlabeled_weight import WEIGHTS, LabeledSample, compare_weights
from likely.data.batches import Batches
from likely.data.validation import read_table
from likely.demo.penguins import load_birds
from likely.errors import InputError
from likely.model.calibration import learn_calibration
from tests.helpers import load_table

DIAGONAL = Gaussian("diagonal")


def partly_labeled(rows: int = 150, labeled: int = 24, seed: int = 0) -> tuple[Any, Any, Any]:
    """Two classes of three columns, the labels of most rows removed, and all labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    X = rng.normal(size=(rows, 3)) + y[:, None] * [1.5, -1.0, 0.5]
    labels = y.astype(object)
    labels[labeled:] = None
    return X, labels, y


def sample(X: Any, labels: Any, weights: Any = None) -> LabeledSample:
    batches = Batches(X, labels, weights, read_table, "test", allow_unlabeled=True)
    counts = batches.first.counts
    free = batches.first.unlabeled
    assert free is not None
    return LabeledSample.of(batches, counts, free.used_rows)


def log_losses(model: Any) -> list[Any]:
    return [score.log_loss for score in model.unlabeled_scores_]


# ------------------------------------------------------------------------------------------------------------- choice


def test_the_smallest_weight_within_one_standard_error_is_chosen() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=100)
    noise -= noise.mean()
    noise /= noise.std()
    losses = np.full((6, 100), 5.0)
    losses[3] = 1.0  # the best
    losses[1] = 1.0 + 0.09 + noise  # a difference of 0.09, whose standard error is 0.1
    losses[0] = 1.0 + 0.11 + noise
    scores: Any
    scores, chosen = compare_weights(losses, np.ones(100))
    assert WEIGHTS[chosen] == 0.01
    assert_allclose([score.log_loss for score in scores], [1.11, 1.09, 5.0, 1.0, 5.0, 5.0])
    assert_allclose([scores[0].error, scores[1].error, scores[3].error], [0.1, 0.1, 0.0], atol=1e-12)
    four = compare_weights(losses, np.full(100, 4.0))  # the rows four times: half the standard error
    assert WEIGHTS[four[1]] == 0.1


def test_weights_without_a_model_are_not_chosen() -> None:
    losses = np.ones((6, 10))
    losses[:2] = np.inf
    scores, chosen = compare_weights(losses, np.ones(10))
    assert WEIGHTS[chosen] == 0.03
    assert [score.log_loss for score in scores] == [None, None, 1.0, 1.0, 1.0, 1.0]
    assert compare_weights(np.full((6, 10), np.inf), np.ones(10))[1] == 0


@pytest.mark.parametrize("calibration", [None, "auto"])
def test_scores_are_those_of_models_fitted_without_the_held_out_rows(
    calibration: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of calibrated models after one calibration of the evidence of all held-out rows."""
    monkeypatch.setattr(unlabeled_weight, "TOLERANCE", 1e-9)
    X, labels, _ = partly_labeled(rows=80)
    family = Gaussian("diagonal", prior=NormalInverseWishart())
    options: Any = {"tol": 1e-9, "max_iter": 2000}
    model: Any = NaiveBayes(family, calibration=calibration, **options).fit(X, labels)
    folds = sample(X, labels).rows.held_out_weights(5)
    free, codes = X[24:], labels[:24].astype(int)
    proportions = np.log(np.bincount(codes) / 24)[:, None] + np.zeros(24)
    for score in model.unlabeled_scores_:
        log_posterior, evidence = np.zeros((2, 24)), np.zeros((2, 24))
        for held_out in folds:
            kept = held_out == 0.0
            rows, some = np.vstack([X[:24][kept], free]), np.append(labels[:24][kept], labels[24:])
            fitted = NaiveBayes(family, calibration=None, unlabeled_weight=score.weight, **options).fit(rows, some)
            log_posterior[:, ~kept] = fitted.predict_log_proba(X[:24][~kept]).T
            evidence[:, ~kept] = (fitted.log_joint(X[:24][~kept]) - np.log(fitted.class_prior_)).T
        losses = -log_posterior[codes, np.arange(24)]
        if calibration == "auto":
            given = (evidence, proportions, codes, np.ones(24), np.zeros(24, dtype=bool))
            learnt = learn_calibration(np.arange(2), *given)
            assert learnt.calibration.exponent != 1.0
            losses = learnt.losses
        assert_allclose(score.log_loss, losses.mean(), rtol=1e-10 if score.weight == 0.0 else 1e-4)


def test_calibrated_scores_do_not_depend_on_the_class_prior() -> None:
    """They are those of the observed class proportions, as those of the calibration are."""
    X, labels, _ = partly_labeled()
    given = [NaiveBayes(DIAGONAL, class_prior=prior).fit(X, labels) for prior in (None, [0.9, 0.1], [0.01, 0.99])]
    for model in given:  # with weight 0: with others the prior changes the expectations of unlabeled rows
        assert_allclose(log_losses(model)[0], log_losses(given[0])[0], rtol=1e-9)


def test_folds_hold_every_row_out_once_and_keep_all_classes() -> None:
    X, labels, _ = partly_labeled(labeled=17)
    found = sample(X, labels)
    folds = found.rows.held_out_weights(5)
    assert_allclose(np.sum(folds, axis=0), np.ones(17))
    for held_out in folds:
        assert set(np.asarray(labels[:17])[held_out == 0.0]) == {0, 1}
        for k in (0, 1):
            assert 1 <= np.count_nonzero(held_out[labels[:17] == k]) <= 2


def test_many_equal_rows_are_divided_among_the_folds() -> None:
    labels: Any = np.array([0] * 10 + [1] * 10 + [None] * 5, dtype=object)
    X = np.array([0.0] * 10 + [1.0] * 10 + [0.5] * 5)[:, None]
    for held_out in sample(X, labels).rows.held_out_weights(5):
        assert_allclose(held_out, 0.2)


# ------------------------------------------------------------------------------------------------------- invariance


@pytest.mark.parametrize("model", [NaiveBayes(), GenerativeClassifier(), GenerativeClassifier(estimation="map")])
def test_order_units_and_names_of_classes_do_not_matter(model: Any) -> None:
    X, labels, y = partly_labeled(rows=80, seed=3)
    model.fit(X, labels)
    losses = log_losses(model)
    probabilities = model.predict_proba(X)
    order = np.random.default_rng(1).permutation(len(y))
    variants: list[tuple[Any, Any, Any]] = [
        (X[order], labels[order], X),
        (X[:, [2, 0, 1]], labels, X[:, [2, 0, 1]]),
        (X * [2.54, -1000.0, 0.01], labels, X * [2.54, -1000.0, 0.01]),
        (X, np.array([None if label is None else 1 - label for label in labels]), X),
    ]
    for rows, some, wanted in variants:
        other = type(model)(estimation=model.estimation).fit(rows, some)
        assert other.unlabeled_weight_ == model.unlabeled_weight_
        assert_allclose(log_losses(other), losses, rtol=1e-5)
        found = other.predict_proba(wanted)
        assert_allclose(found if some is not variants[-1][1] else found[:, ::-1], probabilities, atol=1e-6)


def test_a_weight_is_a_number_of_equal_rows() -> None:
    X, labels, _ = partly_labeled(labeled=30)
    times = np.random.default_rng(2).integers(0, 4, len(X))
    one = NaiveBayes(DIAGONAL).fit(X, labels, sample_weight=times)
    two = NaiveBayes(DIAGONAL).fit(np.repeat(X, times, axis=0), np.repeat(labels, times))
    assert one.unlabeled_weight_ == two.unlabeled_weight_
    losses = [log_losses(model) for model in (one, two)]
    errors = [[score.error for score in model.unlabeled_scores_] for model in (one, two)]
    assert_allclose(losses[0], losses[1], rtol=1e-6)
    assert_allclose(errors[0], errors[1], rtol=1e-5, atol=1e-12)


def test_chunks_are_the_same_rows() -> None:
    X, labels, _ = partly_labeled()

    class Chunks:
        def chunks(self) -> Iterator[Any]:
            return iter(np.array_split(X, 7))

    whole, chunks = NaiveBayes(DIAGONAL).fit(X, labels), NaiveBayes(DIAGONAL).fit(Chunks(), labels)
    assert_allclose(
        log_losses(chunks),
        log_losses(whole),
        rtol=1e-6,
    )
    assert_allclose(chunks.predict_proba(X), whole.predict_proba(X), atol=1e-9)


def test_large_tables_are_compared_on_a_sample_of_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels, _ = partly_labeled(rows=4000, labeled=1000)
    whole = NaiveBayes(DIAGONAL).fit(X, labels)
    monkeypatch.setattr(unlabeled_weight, "ROWS", 500)
    batches = Batches(X, labels, None, read_table, "test", allow_unlabeled=True)
    found = LabeledSample.of(batches, batches.first.counts, 3000)
    assert 430 < len(found.rows.codes) < 570
    free = found.batches[0].unlabeled
    assert free is not None
    assert 430 < free.table.rows < 570
    assert_allclose(free.row_weights, 3.0)  # 3 unlabeled rows for each labeled one, as in the table
    some = NaiveBayes(DIAGONAL).fit(X, labels)
    assert_allclose(
        log_losses(some),
        log_losses(whole),
        atol=0.1,
    )


# ------------------------------------------------------------------------------------------------------- what is kept


def test_the_model_is_that_of_the_weight_chosen(tmp_path: Any) -> None:
    birds = load_birds()
    labels = np.full(len(birds.y), None, dtype=object)
    rng = np.random.default_rng(1)
    few = np.concatenate([rng.choice(np.flatnonzero(birds.y == name), 5, replace=False) for name in birds.species])
    labels[few] = birds.y[few]
    tight: Any = {"tol": 1e-11, "max_iter": 5000}  # EM starts from elsewhere
    model = GenerativeClassifier(Gaussian(shared=True), **tight).fit(birds.X, labels)
    weight = model.unlabeled_weight_
    assert weight is not None
    assert weight > 0.0
    given = GenerativeClassifier(Gaussian(shared=True), unlabeled_weight=weight, **tight).fit(birds.X, labels)
    assert_allclose(given.predict_proba(birds.X), model.predict_proba(birds.X), rtol=0, atol=1e-5)
    assert given.unlabeled_weight_ == weight
    assert given.unlabeled_scores_ == ()
    summary = model.summary()
    assert [each.rows for each in summary.classes] == [5, 5, 5]
    assert_allclose(sum(each.weight for each in summary.classes), 15 + weight * (len(birds.y) - 15))
    assert f"note: {len(birds.y) - 15} unlabeled rows have weight {weight:g}, chosen by" in str(summary)
    model.save(tmp_path / "model")
    for again in (likely.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.unlabeled_weight_ == weight
        assert again.unlabeled_scores_ == model.unlabeled_scores_
        assert str(again.summary()) == str(summary)
    with pytest.raises(InputError, match="expectations, not sums"):
        model.partial_fit(birds.X, birds.y)


@pytest.mark.parametrize("weight", ["auto", 0.0])
@pytest.mark.parametrize("kind", [GenerativeClassifier, NaiveBayes])
def test_weight_zero_is_the_fit_of_the_labeled_rows(kind: Any, weight: Any) -> None:
    """Also where unlabeled rows would have changed the types of columns, and their categories."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"] * 60)
    X = pd.DataFrame(
        {"size": rng.normal(size=120), "count": rng.poisson(3.0, 120) + 0.0, "word": rng.choice(["u", "v"], 120)}
    )
    X.loc[40:, "count"] = -1.5
    X.loc[40:, "word"] = rng.choice(["u", "v", "w"], 80)
    labels: Any = y.astype(object)
    labels[40:] = None
    model = kind(unlabeled_weight=weight).fit(X, labels)
    alone = kind().fit(X[:40], y[:40])
    assert model.unlabeled_weight_ == 0.0
    assert_array_equal(model.predict_proba(X[:40]), alone.predict_proba(X[:40]))
    assert str(alone.summary()).splitlines()[:5] == str(model.summary()).splitlines()[:5]
    assert "80 unlabeled rows have weight 0" in str(model.summary())
    model.partial_fit(X[:10], y[:10])
    alone.partial_fit(X[:10], y[:10])
    assert_array_equal(model.predict_proba(X[:40]), alone.predict_proba(X[:40]))


def test_a_class_of_one_labeled_row_switches_the_choice_off() -> None:
    X, labels, _ = partly_labeled()
    labels[np.flatnonzero(labels == 1)[1:]] = None
    model = LinearDiscriminant().fit(X, labels)
    assert model.unlabeled_weight_ == 0.0
    assert model.unlabeled_scores_ == ()
    assert "weight 0: cross-validation needs two labeled rows of class 1" in str(model.summary())


def test_without_unlabeled_rows_there_is_no_weight() -> None:
    X, _, y = partly_labeled()
    model = GenerativeClassifier().fit(X, y)
    assert model.unlabeled_weight_ is None
    assert model.unlabeled_scores_ == ()
    assert "unlabeled" not in str(model.summary())


def test_labeled_rows_that_determine_no_model_need_unlabeled_ones() -> None:
    """Two rows of each class have no covariance of three columns; with unlabeled rows all of them have one."""
    X, labels, _ = partly_labeled(labeled=8)
    model = GenerativeClassifier(Gaussian(shared=True), estimation="mle").fit(X, labels)
    assert model.unlabeled_scores_[0].log_loss is None or model.unlabeled_weight_ == 0.0
    assert np.all(np.isfinite(model.predict_log_proba(X)))


@pytest.mark.parametrize("value", ["all", -1.0, np.nan, True, None])
def test_other_weights_are_errors(value: Any) -> None:
    X, labels, _ = partly_labeled()
    with pytest.raises(InputError, match=r"unlabeled_weight=.* must be 'auto' or a number, at least 0"):
        NaiveBayes(unlabeled_weight=value).fit(X, labels)


def test_hybrids_have_the_weight_of_their_generative_model() -> None:
    X, labels, _ = partly_labeled()
    generative = GenerativeClassifier(Gaussian(shared=True), estimation="map").fit(X, labels)
    hybrid = HybridClassifier(Gaussian(shared=True), blend=0.5).fit(X, labels)
    assert hybrid.generative_.unlabeled_weight_ == generative.unlabeled_weight_
    found, wanted = hybrid.generative_.unlabeled_scores_, generative.unlabeled_scores_
    assert [score.weight for score in found] == [score.weight for score in wanted]
    assert_allclose(log_losses(hybrid.generative_), log_losses(generative), rtol=1e-9)  # sums in another order
    assert_allclose([score.error for score in found], [score.error for score in wanted], rtol=1e-9, atol=1e-12)


def test_a_missing_class_of_a_regression_counts_fully() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=60), "kind": pd.Series(["a", "b"] * 30, dtype=object)})
    y = X["x"] + (X["kind"] == "a") * 3.0 + 0.1 * rng.normal(size=60)
    X.loc[40:, "kind"] = None
    model: Any = GenerativeRegressor(classes="kind").fit(X, y)
    assert_allclose(model.statistics_.counts.weight.sum(), 60.0)


# ------------------------------------------------------------------------------------------------------- real tables


def held_out_loss(model: Any, X: Any, y: Any) -> float:
    return float(log_loss(y, np.clip(model.predict_proba(X), 1e-15, 1.0), labels=model.classes_))


@pytest.mark.parametrize("seed", [1, pytest.param(0, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", [GenerativeClassifier, NaiveBayes])
def test_unlabeled_rows_do_no_harm_on_real_tables(kind: Any, seed: int) -> None:
    """60 labeled rows: with weight 1 the log-loss rises on most of these tables, by up to 3."""
    for name, target in (("wine", "class"), ("vowel-train", "y"), ("iris", "Species"), ("pima_missing", "diabetes")):
        table = load_table(name).dropna()
        y, X = table.pop(target).to_numpy(), table.to_numpy(dtype=float)
        rng = np.random.default_rng(seed)
        first = np.concatenate([rng.permutation(np.flatnonzero(y == k))[:3] for k in np.unique(y)])
        few = np.append(first, rng.permutation(np.setdiff1d(np.arange(len(y)), first))[: 60 - len(first)])
        rest = np.setdiff1d(np.arange(len(y)), few)
        labels = np.full(len(y), None, dtype=object)
        labels[few] = y[few]
        alone = held_out_loss(kind().fit(X[few], y[few]), X[rest], y[rest])
        assert held_out_loss(kind().fit(X, labels), X[rest], y[rest]) < alone + 0.03


def test_unlabeled_birds_help() -> None:
    birds, scores = load_birds(), []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        few = np.concatenate([rng.choice(np.flatnonzero(birds.y == name), 3, replace=False) for name in birds.species])
        rest = np.setdiff1d(np.arange(len(birds.y)), few)
        labels = np.full(len(birds.y), None, dtype=object)
        labels[few] = birds.y[few]
        models = [
            GenerativeClassifier(Gaussian(shared=True)).fit(birds.X[few], birds.y[few]),
            GenerativeClassifier(Gaussian(shared=True)).fit(birds.X, labels),
        ]
        scores.append([held_out_loss(model, birds.X[rest], birds.y[rest]) for model in models])
    alone, together = np.mean(scores, axis=0)
    assert together < 0.6 * alone


@pytest.mark.parametrize("weight", [0.3, 1.0, "auto"])
def test_a_class_prior_of_0_leaves_unlabeled_rows_to_the_other_classes(weight: Any) -> None:
    """The class has the parameters of its labeled rows, and EM converges as with a prior that is almost 0."""
    X, labels, _ = partly_labeled()
    options: Any = {"unlabeled_weight": weight, "calibration": None, "tol": 1e-10}
    none = NaiveBayes(DIAGONAL, class_prior=[1.0, 0.0], **options).fit(X, labels)
    little = NaiveBayes(DIAGONAL, class_prior=[1.0 - 1e-200, 1e-200], **options).fit(X, labels)
    assert none.converged_
    assert_allclose(none.predict_proba(X), np.tile([1.0, 0.0], (len(X), 1)))
    assert_allclose(none.log_joint(X)[:, 0], little.log_joint(X)[:, 0], rtol=1e-6)
