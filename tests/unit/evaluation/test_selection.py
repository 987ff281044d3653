"""Model selection as a result: standard errors, paired differences, the baseline, and why a candidate was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris

import likely
from likely import GenerativeRegressor, LinearDiscriminant, NaiveBayes, QuadraticDiscriminant
from likely.errors import InputError
from likely.evaluation.ranking import CRITERIA

X, Y = load_iris(return_X_y=True)
CANDIDATES = {"linear": LinearDiscriminant(), "quadratic": QuadraticDiscriminant(), "naive": NaiveBayes()}


def ranking(result: Any) -> Any:
    """The scores of the candidates, of which those that are used are known."""
    return result.ranking


def losses(name: str) -> Any:
    """Leave-one-out log-losses of all rows by refitting."""
    found = []
    for i in range(len(Y)):
        rest = np.arange(len(Y)) != i
        model = clone(CANDIDATES[name]).fit(X[rest], Y[rest])
        found.append(-model.predict_log_proba(X[[i]])[0, Y[i]])
    return np.array(found)


def test_standard_errors_are_those_of_the_rows() -> None:
    result = likely.select(X, Y, {name: CANDIDATES[name] for name in ("linear", "quadratic")})
    linear, quadratic = losses("linear"), losses("quadratic")
    first, second = ranking(result)
    assert (first.name, second.name) == ("linear", "quadratic")
    assert_allclose(first.log_loss, linear.mean(), rtol=1e-6)
    assert_allclose(first.standard_error, linear.std(ddof=1) / np.sqrt(150), rtol=1e-6)
    difference = quadratic - linear
    assert_allclose(second.difference, difference.mean(), rtol=1e-5)
    assert_allclose(second.difference_error, difference.std(ddof=1) / np.sqrt(150), rtol=1e-6)
    assert (first.difference, first.difference_error) == (0.0, 0.0)


def test_standard_errors_are_those_of_the_folds() -> None:
    result = likely.select(X, Y, CANDIDATES, folds=5)
    found = {name: likely.cross_validate(model, X, Y, 5) for name, model in CANDIDATES.items()}
    best = found[result.ranking[0].name].log_loss
    for scored in ranking(result):
        values = found[scored.name].log_loss
        assert_allclose(scored.log_loss, values.mean(), rtol=1e-9)
        assert_allclose(scored.standard_error, values.std(ddof=1) / np.sqrt(5), rtol=1e-9)
        assert_allclose(scored.difference_error, (values - best).std(ddof=1) / np.sqrt(5), rtol=1e-6, atol=1e-12)
    baseline = found["linear"].baseline_log_loss
    assert_allclose([result.baseline, result.baseline_error], [baseline.mean(), baseline.std(ddof=1) / np.sqrt(5)])
    other = likely.select(X, Y, CANDIDATES, folds=5, random_state=1)
    assert other.ranking[0].log_loss != result.ranking[0].log_loss


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
def test_the_baseline_leaves_each_row_out() -> None:
    y = np.array(["a"] * 30 + ["b"] * 19 + ["c"])
    result = likely.select(X[:50], y, {"naive": NaiveBayes()})
    expected = []
    for i in range(50):
        proportion = np.mean(np.delete(y, i) == y[i])
        expected.append(-np.log(max(proportion, np.finfo(float).eps)))
    assert_allclose(result.baseline, np.mean(expected), rtol=1e-12)
    assert_allclose(result.baseline_error, np.std(expected, ddof=1) / np.sqrt(50), rtol=1e-12)


@pytest.mark.parametrize("by", ["log_loss", "error", "log_likelihood"])
def test_weights_are_repeats(by: str) -> None:
    weights = np.random.default_rng(1).integers(0, 4, 150)
    repeated = np.repeat(np.arange(150), weights)
    models = {"linear": LinearDiscriminant(), "quadratic": QuadraticDiscriminant()}
    ours = likely.select(X, Y, models, by=by, sample_weight=weights)
    theirs = likely.select(X[repeated], Y[repeated], models, by=by)
    assert_allclose([ours.baseline, ours.baseline_error], [theirs.baseline, theirs.baseline_error], rtol=1e-9)
    for one, other in zip(ours.ranking, theirs.ranking, strict=True):
        assert one.name == other.name
        for name in ("standard_error", "difference", "difference_error"):
            assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-12)


def test_which_candidate_was_chosen_and_why() -> None:
    result = likely.select(X, Y, CANDIDATES)
    text, (first, second, third) = str(result), ranking(result)
    assert text.startswith("Chosen by leave-one-out log-loss among 3 candidates")
    score = f"{first.log_loss:.4f} ± {first.standard_error:.4f}"
    assert f"{first.name!r} has the least leave-one-out log-loss, {score}." in text
    close = [each for each in (second, third) if each.difference <= each.difference_error]
    assert close == [second]
    assert f"Within one standard error of the difference: {second.name!r}." in text
    assert f"{third.difference:.4f} ± {third.difference_error:.4f}" in text
    assert f"{result.baseline:.4f} ± {result.baseline_error:.4f}" in text
    by_folds = str(likely.select(X, Y, CANDIDATES, by="error", folds=3))
    assert "Chosen by error rate over 3 folds" in by_folds
    alone = likely.select(X, Y, {"naive": NaiveBayes()}, by="log_evidence")
    assert "'naive' has the largest log-evidence" in str(alone)
    assert alone.ranking[0].standard_error is None


def test_candidates_worse_than_the_class_proportions_are_named() -> None:
    noise, coin = np.random.default_rng(1).normal(size=(34, 8)), np.arange(34) % 2
    noise[:, 0] += 2.0 * coin
    one = likely.select(noise, coin, {"wild": QuadraticDiscriminant(), "calm": LinearDiscriminant(shrinkage=0.5)})
    assert "'wild' is worse than predicting the class proportions" in str(one)
    noise[:, 0] -= 2.0 * coin
    every = likely.select(noise, coin, {"wild": QuadraticDiscriminant()})
    assert "All candidates are worse than predicting the class proportions" in str(every)
    assert every.to_frame()["worse_than_baseline"].tolist() == [True]
    assert "worse than" not in str(likely.select(X, Y, CANDIDATES))


@pytest.mark.parametrize("by", CRITERIA)
def test_every_criterion_prints_an_aligned_table(by: str) -> None:
    models = {"mle": LinearDiscriminant(), "bayes": NaiveBayes(), "impossible": QuadraticDiscriminant()}
    rows = np.column_stack([X, X[:, 0]])  # dependent columns: no maximum of the likelihood
    result = likely.select(rows, Y, models | {"mle": NaiveBayes(estimation="mle")}, by=by)
    text = str(result)
    assert "'impossible' could not be fitted: " in text
    lines = [line for line in text.splitlines() if line.startswith(("candidate ", "mle ", "bayes ", "class prop"))]
    assert len(lines) == 4
    place = lines[0].index("log-loss") + len("log-loss")
    assert lines[-1][:place].rstrip().endswith(tuple("0123456789"))


def test_frames_and_html() -> None:
    result = likely.select(pl.DataFrame(X, schema=list("abcd")), Y, {"<b>": LinearDiscriminant(), "n": NaiveBayes()})
    frame = result.to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame["chosen"].to_list() == [True, False]
    assert frame["log_loss"].to_list() == [scored.log_loss for scored in result.ranking]
    page = result._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert isinstance(likely.select(X, Y, CANDIDATES).to_frame(), pd.DataFrame)


def test_regressions_are_sent_to_cross_validation() -> None:
    with pytest.raises(InputError, match=r"GenerativeRegressor\(\) is not a generative classifier.*Use cross_validate"):
        likely.select(X, Y, [GenerativeRegressor()])
