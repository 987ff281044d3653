"""Calibration of class probabilities: its objective, what uses it and what does not, and how it is kept."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

import likely
from likely import (
    Categorical,
    Dirichlet,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    Geometric,
    NaiveBayes,
    NegativeBinomial,
    NormalInverseWishart,
    Pairs,
    Poisson,
)
from likely.errors import InputError
from likely.model.calibration import learn_calibration
from tests.helpers import load_table

WINE = load_wine(return_X_y=True)
FIXED = NormalInverseWishart()  # a given prior, whose strength is not chosen


def objective(theta: Any, evidence: Any, log_prior: Any, codes: Any, weights: Any) -> float:
    """Σ w·loss + ½(log t)² + ½Σ(c_k/0.25)², of (log t, c)."""
    scores = np.exp(theta[0]) * evidence + log_prior + theta[1:, None]
    losses = logsumexp(scores, axis=0) - scores[codes, np.arange(len(codes))]
    return float(weights @ losses + 0.5 * theta[0] ** 2 + 0.5 * np.sum((theta[1:] / 0.25) ** 2))


def problem(seed: int, classes: int, rows: int, size: float, signal: float) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, rows)
    evidence = size * rng.normal(size=(classes, rows)) - rng.gamma(2.0, 50.0, rows)
    evidence[codes, np.arange(rows)] += signal
    weights = rng.integers(1, 4, rows).astype(float)
    log_prior = np.repeat(np.log(rng.dirichlet(np.full(classes, 5.0)))[:, None], rows, axis=1)
    return evidence, log_prior, codes, weights


@pytest.mark.parametrize(
    ("classes", "rows", "size", "signal"),
    [(2, 30, 3.0, 2.0), (3, 300, 8.0, 8.0), (10, 1000, 2.0, 2.0), (2, 40, 60.0, -60.0), (4, 60, 0.05, 0.3)],
)
def test_exponent_and_intercepts_minimise_the_objective(classes: int, rows: int, size: float, signal: float) -> None:
    given = problem(0, classes, rows, size, signal)
    found = learn_calibration(np.arange(classes), *given, np.zeros(rows, dtype=bool))
    bounds = [(np.log(0.01), np.log(3.0)), *[(None, None)] * classes]
    best = minimize(objective, np.zeros(classes + 1), given, "L-BFGS-B", bounds=bounds, options={"gtol": 1e-9})
    mine = np.r_[np.log(found.calibration.exponent), found.calibration.intercepts]
    assert objective(mine, *given) <= best.fun + 1e-9 * abs(best.fun)
    assert_allclose(mine, best.x, atol=2e-4)
    evidence, log_prior, codes, weights = given
    for loss, t, c in (
        (found.calibration.log_loss_before, 1.0, 0.0),
        (found.calibration.log_loss_after, *_both(found)),
    ):
        chosen = log_softmax(t * evidence + log_prior + c, axis=0)[codes, np.arange(rows)]
        assert_allclose(loss, -np.average(np.maximum(chosen, np.log(np.finfo(float).eps)), weights=weights))


def _both(found: Any) -> tuple[float, Any]:
    return found.calibration.exponent, found.calibration.intercepts[:, None]


def remaining_step(t: float, c: Any, evidence: Any, log_prior: Any, codes: Any, weights: Any) -> float:
    """The largest change of log t and c by one more Newton step of the objective, of log t and c."""
    p = softmax(t * evidence + log_prior + c[:, None], axis=0)
    size, given = len(c), np.arange(len(codes))
    change = np.concatenate([t * evidence[None], np.repeat(np.eye(size)[:, :, None], len(codes), axis=2)])
    means = np.einsum("jkn,kn->jn", change, p)
    gradient = (means - change[:, codes, given]) @ weights + np.r_[np.log(t), 16.0 * c]
    centred = (change - means[:, None]) * np.sqrt(p * weights)
    hessian = np.einsum("ikn,jkn->ij", centred, centred, optimize=True) + np.diag(np.r_[1.0, np.full(size, 16.0)])
    hessian[0, 0] += gradient[0] - np.log(t)  # the second derivative in log t
    return float(np.abs(np.linalg.solve(hessian, gradient)).max())


@pytest.mark.parametrize("levels", [3, 4, 5])
def test_the_minimum_is_reached_where_the_last_steps_change_less_than_rounding(levels: int) -> None:
    """With few distinct losses, their sum has few digits to spare: it is no measure of the last steps."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows, classes = [100, 1000, 2730][seed % 3], 2 + seed % 2
        evidence = (rng.normal(size=(classes, levels)) * [0.3, 2.0, 8.0][seed // 3 % 3])[
            :, rng.integers(levels, size=rows)
        ]
        codes = (softmax(evidence, axis=0).cumsum(axis=0) < rng.random(rows)).sum(axis=0).clip(max=classes - 1)
        proportions = (np.bincount(codes, minlength=classes) + 0.5) / (rows + 0.5 * classes)
        given = evidence, np.repeat(np.log(proportions)[:, None], rows, axis=1), codes, np.ones(rows)
        found = learn_calibration(np.arange(classes), *given, np.zeros(rows, dtype=bool)).calibration
        if 0.01 < found.exponent < 3.0:
            assert remaining_step(found.exponent, found.intercepts, *given) < 1e-10


@pytest.mark.parametrize("concentration", [0.05, 10.0])
def test_the_minimum_is_reached_with_many_classes(concentration: float) -> None:
    rng = np.random.default_rng(0)
    codes = rng.choice(80, 1000, p=rng.dirichlet(np.full(80, concentration)))
    evidence = 2.0 * rng.normal(size=(80, 1000))
    evidence[codes, np.arange(1000)] += 2.0
    proportions = (np.bincount(codes, minlength=80) + 0.5) / 1040.0
    given = evidence, np.repeat(np.log(proportions)[:, None], 1000, axis=1), codes, np.ones(1000)
    found = learn_calibration(np.arange(80), *given, np.zeros(1000, dtype=bool)).calibration
    assert remaining_step(found.exponent, found.intercepts, *given) < 1e-10


def test_the_exponent_stays_within_its_bounds() -> None:
    wrong = learn_calibration(np.arange(2), *problem(1, 2, 200, 100.0, -200.0), np.zeros(200, dtype=bool))
    assert wrong.calibration.exponent == 0.01
    right = learn_calibration(np.arange(2), *problem(1, 2, 500, 0.01, 0.5), np.zeros(500, dtype=bool))
    assert right.calibration.exponent == 3.0


def test_impossible_and_far_rows_do_not_spoil_it() -> None:
    evidence, log_prior, codes, weights = problem(2, 3, 100, 3.0, 2.0)
    plain = learn_calibration(np.arange(3), evidence, log_prior, codes, weights, np.zeros(100, dtype=bool))
    more = np.concatenate([evidence, [[-np.inf], [-np.inf], [-np.inf]], [[-np.inf], [0.0], [-3.0]]], axis=1)
    prior = np.concatenate([log_prior, log_prior[:, :2]], axis=1)
    found = learn_calibration(
        np.arange(3), more, prior, np.r_[codes, 0, 0], np.r_[weights, 1.0, 1.0], np.zeros(102, dtype=bool)
    )
    assert_allclose(found.calibration.exponent, plain.calibration.exponent)
    assert np.isfinite(found.losses).all()
    more[:, -2:] = [[1e300, -1e300], [-1e300, -1e300], [-1e300, 1e300]]
    found = learn_calibration(
        np.arange(3), more, prior, np.r_[codes, 0, 0], np.r_[weights, 1.0, 1.0], np.zeros(102, dtype=bool)
    )
    assert 0.01 <= found.calibration.exponent <= 3.0
    assert np.isfinite(found.calibration.intercepts).all()
    assert np.isfinite(found.losses).all()


# ---------------------------------------------------------------------------------------------------- estimators


def brute_force(model: Any, X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Leave-one-out evidence and class proportions by fits without each row, with the priors of all rows fixed."""
    classes = model.classes_
    evidence, proportions = [], []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        one = clone(model).set_params(calibration=None, class_prior="uniform").fit(X[rest], y[rest])
        evidence.append(one.log_joint(X[[i]])[0] + np.log(len(classes)))
        proportions.append([np.mean(y[rest] == k) for k in classes])
    return np.transpose(evidence), np.log(np.transpose(proportions)), np.searchsorted(classes, y)


@pytest.mark.parametrize("class_prior", [None, "uniform", {0: 0.7, 1: 0.2, 2: 0.1}])
def test_a_fit_learns_from_leave_one_out_evidence(class_prior: Any) -> None:
    """Whatever the class prior is: the class proportions of the other rows take its place meanwhile."""
    X, y = WINE[0][::4, :4], WINE[1][::4]
    prior = NormalInverseWishart(X.mean(axis=0), 0.1, 7.0, X.var(axis=0))
    model = GenerativeClassifier(Gaussian(shared=True, prior=prior), class_prior).fit(X, y)
    evidence, proportions, codes = brute_force(model, X, y)
    wanted = learn_calibration(model.classes_, evidence, proportions, codes, np.ones(len(y)), np.zeros(len(y), bool))
    found = model.calibration_
    assert found is not None
    assert_allclose(found.exponent, wanted.calibration.exponent, rtol=1e-8)
    assert_allclose(found.intercepts, wanted.calibration.intercepts, atol=1e-9)
    assert_allclose(found.log_loss_before, wanted.calibration.log_loss_before, rtol=1e-8)
    assert_allclose(found.log_loss_after, wanted.calibration.log_loss_after, rtol=1e-8)
    assert found.weight == len(y)
    own = np.log(model.class_prior_)
    scores = found.exponent * (model.log_joint(X) - own) + own + found.intercepts
    assert_allclose(model.predict_proba(X), softmax(scores, axis=1), atol=1e-12)


def test_rows_alone_in_their_class_take_no_part() -> None:
    X, y = WINE[0][:130:3], np.where(np.arange(130) == 129, 2, WINE[1][:130])[::3]
    assert np.bincount(y)[2] == 1
    alone = GenerativeClassifier(Gaussian(shared=True, prior=FIXED)).fit(X, y)
    assert alone.calibration_ is not None
    assert alone.calibration_.weight == len(y) - 1
    assert_allclose(alone.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("estimator", [GenerativeClassifier, NaiveBayes])
def test_one_class_or_only_lone_rows_are_not_calibrated(estimator: Any) -> None:
    X = WINE[0]
    for rows, y in ((X, np.zeros(len(X))), (X[[0, 70, 150]], np.arange(3))):
        model = estimator().fit(rows, y)
        assert model.calibration_.exponent == 1.0
        assert_array_equal(model.calibration_.intercepts, 0.0)
        assert model.calibration_.weight == 0.0
        assert_allclose(model.predict_proba(X), estimator(calibration=None).fit(rows, y).predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("estimation", ["map", "mle"])
def test_auto_is_off_for_the_estimates_of_the_textbook(estimation: str) -> None:
    X, y = WINE
    model = GenerativeClassifier(Gaussian(shared=True), estimation=estimation).fit(X, y)
    assert model.calibration_ is None
    assert model.choices_ == ()
    assert "calibrated" not in str(model.summary())
    off = GenerativeClassifier(Gaussian(shared=True)).set_params(calibration=None).fit(X, y)
    assert off.calibration_ is None
    assert off.choices_ == ()


@pytest.mark.parametrize("value", ["always", True, 0.5, False])
def test_other_options_are_errors(value: Any) -> None:
    with pytest.raises(InputError, match="calibration"):
        NaiveBayes(calibration=value).fit(*WINE)


def table() -> tuple[pd.DataFrame, Any]:
    """Numbers, counts and labels, with missing values."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    frame = pd.DataFrame({"a": rng.normal(size=200) + y, "n": rng.poisson(2.0 + y), "k": rng.choice(list("uvw"), 200)})
    frame["b"] = frame["a"] + 0.1 * rng.normal(size=200)
    frame.loc[rng.random(200) < 0.1, "a"] = np.nan
    frame.loc[rng.random(200) < 0.1, "k"] = None
    return frame, np.array(["x", "y", "z"])[y]


@pytest.fixture(scope="module")
def fitted() -> Any:
    return NaiveBayes({"n": Poisson()}).fit(*table())


def test_everything_about_the_class_is_calibrated(fitted: Any) -> None:
    X, y = table()
    t, c = fitted.calibration_.exponent, fitted.calibration_.intercepts
    assert 0.01 < t < 0.95  # two columns repeat each other
    own = np.log(fitted.class_prior_)
    scores = t * (fitted.log_joint(X) - own) + own + c
    proba = softmax(scores, axis=1)
    assert_allclose(fitted.predict_proba(X), proba, atol=1e-13)
    assert_allclose(fitted.predict_log_proba(X), log_softmax(scores, axis=1), atol=1e-12)
    assert_allclose(fitted.decision_function(X), log_softmax(scores, axis=1), atol=1e-12)
    assert_array_equal(fitted.predict(X), fitted.classes_[proba.argmax(axis=1)])
    assert fitted.score(X, y) == np.mean(fitted.classes_[proba.argmax(axis=1)] == y)
    assert_allclose(fitted.decide(X).expected_loss, 1.0 - proba.max(axis=1), atol=1e-12)
    parts = fitted.explain(X)
    assert_allclose(softmax(parts.offset + parts.evidence.sum(axis=2), axis=1), proba, atol=1e-13)
    assert_allclose(parts.offset, np.broadcast_to(own + c, parts.offset.shape), atol=1e-12)
    pure = clone(fitted).set_params(calibration=None, families=fitted.families_).fit(X, y)
    assert_allclose(parts.evidence, t * pure.explain(X).evidence, rtol=1e-12, atol=1e-12)


def test_densities_are_those_of_the_pure_model(fitted: Any) -> None:
    X, _ = table()
    pure = copy.copy(fitted)
    pure._fit, pure._estimates = replace(fitted._fit, calibration=None), None
    assert np.abs(pure.predict_proba(X) - fitted.predict_proba(X)).max() > 0.01
    for name in ("log_joint", "log_density", "novelty"):
        assert_array_equal(getattr(fitted, name)(X), getattr(pure, name)(X))
    pd.testing.assert_frame_equal(fitted.impute(X), pure.impute(X))
    pd.testing.assert_frame_equal(fitted.sample(20, random_state=0)[0], pure.sample(20, random_state=0)[0])
    assert fitted.log_evidence_ == pure.log_evidence_


def test_leave_one_out_probabilities_are_calibrated() -> None:
    X, y = WINE[0][::4, :4], WINE[1][::4]
    prior = NormalInverseWishart(X.mean(axis=0), 0.1, 7.0, X.var(axis=0))
    model = GenerativeClassifier(Gaussian(prior=prior), "uniform").fit(X, y)
    evidence, _, _ = brute_force(model, X, y)
    assert model.calibration_ is not None
    scores = model.calibration_.exponent * evidence.T + model.calibration_.intercepts
    assert_allclose(model.left_out_proba(X, y), softmax(scores, axis=1), atol=1e-10)


def test_linear_and_quadratic_boundaries_are_calibrated() -> None:
    X, y = WINE[0][:, :3], WINE[1]
    for shared in (True, False):
        model = GenerativeClassifier(Gaussian(shared=shared), estimation="map").fit(X, y).calibrate(X, y)
        assert model.calibration_ is not None
        assert abs(model.calibration_.exponent - 1.0) > 0.01
        log_odds = model.predict_log_proba(X)[:, 0] - model.predict_log_proba(X)[:, 1]
        assert_allclose(model.boundary(0, 1)(X), log_odds, rtol=1e-8, atol=1e-8)
        two = GenerativeClassifier(Gaussian(shared=shared), estimation="map").fit(X[y < 2], y[y < 2])
        two.calibrate(X[y < 2], y[y < 2])
        assert_allclose(two.decision_function(X), -two.boundary(0, 1)(X), rtol=1e-8, atol=1e-8)


@pytest.mark.filterwarnings("ignore::likely.errors.UnseenCategoriesWarning")
def test_a_row_without_any_value_has_the_class_prior(fitted: Any) -> None:
    empty = pd.DataFrame({"a": [np.nan] * 2, "n": [np.nan] * 2, "k": [None, "never seen"], "b": [np.nan] * 2})
    assert_allclose(fitted.predict_proba(empty), [fitted.class_prior_] * 2, atol=1e-12)
    assert_allclose(softmax(fitted.explain(empty).offset, axis=1), [fitted.class_prior_] * 2, atol=1e-12)
    X, y = WINE
    for family in (Gaussian(), Gaussian(shared=True), Gaussian("spherical")):
        model = GenerativeClassifier(family, {0: 0.2, 1: 0.5, 2: 0.3}).fit(X, y)
        assert model.calibration_ is not None
        assert np.abs(model.calibration_.intercepts).max() > 0.0
        rows = np.full((1, X.shape[1]), np.nan)
        assert_allclose(model.predict_proba(rows), [[0.2, 0.5, 0.3]], atol=1e-12)
        constant = GenerativeClassifier(family, {0: 0.2, 1: 0.5, 2: 0.3}).fit(np.c_[X, np.ones(len(X))], y)
        assert_allclose(constant.predict_proba(np.c_[rows, 1.0]), [[0.2, 0.5, 0.3]], atol=1e-12)


def test_rows_without_any_value_do_not_count_in_learning() -> None:
    X, y = WINE[0][:, :4], WINE[1]
    more = np.r_[X, np.full((90, 4), np.nan)]
    family = Gaussian("diagonal", prior=NormalInverseWishart(X.mean(axis=0), 0.1, 3.0, X.var(axis=0)))
    plain = NaiveBayes(family).fit(np.r_[X, X[:90]], np.r_[y, y[:90]])
    model = NaiveBayes(family).fit(more, np.r_[y, y[:90]])
    assert plain.calibration_ is not None
    assert model.calibration_ is not None
    assert model.calibration_.weight == plain.calibration_.weight
    zero = model.left_out_proba(more, np.r_[y, y[:90]])[len(y) :]
    codes = np.r_[y, y[:90]]
    left = np.array([(np.bincount(codes) + 0.5 - np.eye(3)[k]) / (len(codes) + 0.5) for k in y[:90]])
    assert_allclose(zero, left, atol=1e-12)


@pytest.mark.parametrize("estimator", [GenerativeClassifier, NaiveBayes])
def test_weights_are_repeats_and_order_does_not_matter(estimator: Any) -> None:
    X, y = table()
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    index = np.repeat(np.arange(len(y)), weights)
    weighted = estimator().fit(X, y, weights)
    order = np.random.default_rng(2).permutation(index)
    others = [
        estimator().fit(X.iloc[index], y[index]),
        estimator().fit(X.iloc[order], y[order]),
        estimator().fit(X[X.columns[::-1]], y, weights),
        estimator().fit(pl.DataFrame(X.to_dict("series")).with_columns(pl.col("a").fill_nan(None)), y, weights),
    ]
    for other in others:
        assert_allclose(other.calibration_.exponent, weighted.calibration_.exponent, rtol=1e-8)
        assert_allclose(other.calibration_.intercepts, weighted.calibration_.intercepts, atol=1e-9)
        assert_allclose(other.calibration_.log_loss_after, weighted.calibration_.log_loss_after, rtol=1e-8)


def test_weights_are_repeats_in_a_sample_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likely.choice.row_sample.MOST_ROWS", 150)
    X, y = table()
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    index = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), weights))
    weighted, repeated = NaiveBayes().fit(X, y, weights), NaiveBayes().fit(X.iloc[index], y[index])
    assert weighted.calibration_ is not None
    assert repeated.calibration_ is not None
    assert weighted.calibration_.weight == repeated.calibration_.weight
    assert abs(weighted.calibration_.weight - 150) < 30
    assert_allclose(weighted.calibration_.exponent, repeated.calibration_.exponent, rtol=1e-8)


def test_sparse_rows_are_calibrated() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    counts = rng.poisson(1.0 + 0.5 * y[:, None], (120, 6)).astype(float)
    counts = np.c_[counts, counts]  # every column twice
    dense, sparse = NaiveBayes(Poisson()).fit(counts, y), NaiveBayes(Poisson()).fit(scipy.sparse.csr_array(counts), y)
    assert dense.calibration_ is not None
    assert sparse.calibration_ is not None
    assert dense.calibration_.exponent < 0.8
    assert_allclose(sparse.calibration_.exponent, dense.calibration_.exponent, rtol=1e-8)
    assert_allclose(sparse.predict_proba(counts), dense.predict_proba(counts), atol=1e-10)


# ---------------------------------------------------------------------------------------------------- how it is kept


def test_another_prior_keeps_exponent_and_intercepts(fitted: Any) -> None:
    X, _ = table()
    other = fitted.with_prior({"x": 0.6, "y": 0.3, "z": 0.1})
    change = np.log([0.6, 0.3, 0.1]) - np.log(fitted.class_prior_)
    assert other.calibration_ is fitted.calibration_
    wanted = log_softmax(fitted.predict_log_proba(X) + change, axis=1)
    assert_allclose(other.predict_log_proba(X), wanted, atol=1e-10)
    adapted = fitted.adapt_prior(X)
    assert adapted.calibration_ is fitted.calibration_
    mean = adapted.predict_proba(X).mean(axis=0)
    assert_allclose(mean, adapted.class_prior_, atol=1e-4)  # the fixed point of its EM


def test_files_keep_the_calibration(fitted: Any, tmp_path: Path) -> None:
    X, y = table()
    fitted.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert again.calibration_.exponent == fitted.calibration_.exponent
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert str(again.summary()) == str(fitted.summary())
    (again.partial_fit(X, y) + fitted).predict_proba(X)


def test_updates_learn_the_calibration_again_on_request() -> None:
    X, y = WINE
    fit = NaiveBayes(Gaussian("diagonal", prior=FIXED)).fit(X, y)
    model = NaiveBayes(Gaussian("diagonal", prior=FIXED)).partial_fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    assert model.calibration_ is None
    assert "not calibrated" in str(model.summary())
    assert_allclose(
        model.predict_proba(X), NaiveBayes(model.families, calibration=None).fit(X, y).predict_proba(X), atol=1e-9
    )
    assert model.calibrate(X, y) is model
    assert fit.calibration_ is not None
    assert model.calibration_ is not None
    assert_allclose(model.calibration_.exponent, fit.calibration_.exponent, rtol=1e-7)
    assert_allclose(model.predict_proba(X), fit.predict_proba(X), atol=1e-8)
    assert str(model.calibration_) in str(model.summary())
    with pytest.raises(InputError, match="label 7"):
        model.calibrate(X, np.where(y == 0, 7, y))
    fresh = NaiveBayes(calibration=None).fit(X, y).calibrate(pd.DataFrame(X).to_numpy(), y)
    assert fresh.calibration_ is not None


def test_dropped_and_new_classes() -> None:
    X, y = WINE
    model = NaiveBayes().fit(X, y)
    assert model.calibration_ is not None
    before = model.calibration_
    model.forget(X[y == 1], y[y == 1])
    after: Any = model.calibration_
    assert_array_equal(after.intercepts, before.intercepts[[0, 2]])
    assert model.predict_proba(X).shape == (178, 2)
    after = model.partial_fit(X[y == 1], np.full(71, 5)).calibration_
    assert_array_equal(after.intercepts, [*before.intercepts[[0, 2]], 0.0])
    assert after.exponent == before.exponent
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def by_refits(model: Any, X: Any, y: Any, labels: Any) -> float:
    """The mean leave-one-out log-loss of the first rows, those of the classes y, by fits without each of them."""
    losses = []
    for i in range(len(y)):
        rest = np.arange(len(X)) != i
        one = clone(model).set_params(calibration=None, class_prior="uniform").fit(X[rest], labels[rest])
        proportions = np.bincount(np.delete(y, i)) / (len(y) - 1)
        losses.append(-log_softmax(one.log_joint(X[[i]])[0] + np.log(proportions))[y[i]])
    return float(np.mean(losses))


def test_rows_beside_unlabeled_ones_are_held_out_by_one_step_of_em() -> None:
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:95]
    labels = np.r_[y[order[:45]].astype(object), [None] * 50]
    prior = NormalInverseWishart(X.mean(axis=0), 0.1, 6.0, X.var(axis=0))
    model = GenerativeClassifier(Gaussian(shared=True, prior=prior), unlabeled_weight=0.3)
    found = clone(model).fit(X[order], labels).calibration_
    assert found is not None
    assert abs(found.log_loss_before - by_refits(model, X[order], y[order[:45]], labels)) < 0.01


@pytest.mark.usefixtures("few_starts")
@pytest.mark.parametrize("shared", [pytest.param(False, marks=pytest.mark.long), True])
def test_rows_of_components_are_held_out_by_one_step_of_em(shared: bool) -> None:
    rng = np.random.default_rng(0)
    y, side = np.arange(24) % 2, rng.integers(0, 2, 24)
    X = rng.normal(size=(24, 2)) + np.c_[8.0 * side, 1.5 * y]
    prior = NormalInverseWishart(X.mean(axis=0), 0.1, 5.0, X.var(axis=0) / 10)
    model = GenerativeClassifier(Gaussian(shared=shared, components=2, prior=prior))
    found = clone(model).fit(X, y).calibration_
    assert found is not None
    assert abs(found.log_loss_before - by_refits(model, X, y, y)) < 0.01


# ----------------------------------------------------------------------------- never worse than the class proportions


def tables() -> Any:
    for name, target in (
        ("breastcancer_wisconsin", "Class"),
        ("german_credit", "class"),
        ("housevotes84", "Class"),
        ("iris", "Species"),
        ("penguins", "species"),
        ("pima_missing", "diabetes"),
        ("vowel-train", "y"),
        ("wine", "class"),
        ("zoo", "type"),
    ):
        yield pytest.param(name, target, id=name)


@pytest.mark.parametrize("estimator", [GenerativeClassifier, NaiveBayes])
@pytest.mark.parametrize(("name", "target"), list(tables()))
def test_no_real_table_is_predicted_worse_than_by_its_class_proportions(name: str, target: str, estimator: Any) -> None:
    frame = load_table(name)
    y = frame[target].to_numpy()
    found = likely.cross_validate(
        estimator(), frame.drop(columns=target), y, min(5, np.unique(y, return_counts=True)[1].min())
    )
    proportions = np.mean(y[:, None] == found.classes, axis=0)
    codes = np.searchsorted(found.classes, y)
    gain = -np.log(proportions[codes]) + np.log(np.maximum(found.posterior[np.arange(len(y)), codes], 1e-300))
    assert gain.mean() > 0.05
    assert gain.mean() > -gain.std() / np.sqrt(len(y))


@pytest.mark.parametrize("estimator", [GenerativeClassifier, NaiveBayes])
def test_columns_of_noise_are_not_believed(estimator: Any) -> None:
    rng = np.random.default_rng(0)
    more = []
    for _ in range(10):
        X, y = rng.normal(size=(60, 15)), rng.integers(0, 2, 60)
        rows, truth = rng.normal(size=(200, 15)), rng.integers(0, 2, 200)
        proba = estimator().fit(X, y).predict_proba(rows)[np.arange(200), truth]
        more.append(np.mean(np.log((np.bincount(y) / 60)[truth]) - np.log(proba)))
    assert np.mean(more) < 0.05


def test_categories_and_a_dirichlet_prior() -> None:
    frame = load_table("housevotes84")
    X, y = frame.drop(columns="Class"), frame["Class"]
    model = NaiveBayes(dict.fromkeys(X.columns, Categorical()), Dirichlet(2.0)).fit(X, y)
    assert model.calibration_ is not None
    assert model.calibration_.exponent < 0.6  # votes repeat each other
    assert model.calibration_.log_loss_after < 0.6 * model.calibration_.log_loss_before


@pytest.mark.parametrize("family", [Categorical(), Pairs(), None], ids=["Categorical", "Pairs", "joint table"])
def test_constant_categories_are_no_observed_values(family: Any) -> None:
    """A row in which all other values are missing has the class prior."""
    rng = np.random.default_rng(3)
    y = rng.choice(["a", "b", "c"], 90, p=[0.6, 0.3, 0.1])
    X = pd.DataFrame(
        {"same": "u", "other": np.where(y == "a", "v", rng.choice(["v", "w"], 90)), "x": rng.normal(size=90)}
    )
    block: dict[Any, Any] = {"same": Categorical(), "other": Categorical()}
    if family is None or isinstance(family, Pairs):
        block = {("same", "other"): family or Categorical()}
    model = GenerativeClassifier({**block, "x": Gaussian()}).fit(X, y)
    assert model.calibration_ is not None
    assert np.abs(model.calibration_.intercepts).max() > 1e-4
    row = pd.DataFrame({"same": ["u"], "other": [None], "x": [np.nan]})
    assert_allclose(model.predict_proba(row)[0], model.class_prior_, rtol=1e-12)
    if isinstance(family, Categorical):
        connection = duckdb.connect()
        missing = {"other": pa.nulls(1, pa.string()), "x": pa.nulls(1, pa.float64())}
        connection.register("r", pa.table({"same": ["u"], **missing}))
        (found,) = connection.sql(model.to_sql("r")).to_arrow_table().to_pylist()
        assert_allclose([found[f"probability_{label}"] for label in model.classes_], model.class_prior_, rtol=1e-9)


@pytest.mark.parametrize("family", [Poisson(), Gamma(), Geometric(), NegativeBinomial(2.0), Gaussian(), Categorical()])
def test_one_copy_of_the_only_row_of_a_class_is_held_out(family: Any) -> None:
    """Integer weights are repeated rows, also where all rows of a class are copies of one."""
    X, y, copies = np.array([[9], [2], [3], [1], [4], [2]]), np.array(list("abbbbb")), [3, 1, 1, 1, 1, 1]
    weighted = NaiveBayes(family).fit(X, y, copies)
    repeated = NaiveBayes(family).fit(X.repeat(copies, axis=0), y.repeat(copies))
    assert weighted.calibration_ is not None
    assert repeated.calibration_ is not None
    assert weighted.calibration_.exponent == pytest.approx(repeated.calibration_.exponent, rel=1e-9)
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)
