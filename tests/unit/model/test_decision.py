"""Decisions against loops over actions, class priors against Bayes' rule, and the one policy for wrong priors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from likely import (
    Dirichlet,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    NearestPrototype,
    QuadraticDiscriminant,
)
from likely.errors import InputError, LikelyWarning
from tests.laws.registry import Floats, assert_log_equal, iris, random_rows

LABELS = ["setosa", "versicolor", "virginica"]


def fitted() -> LinearDiscriminant:
    return LinearDiscriminant().fit(iris().X[:, :2], iris().y)


def sepals() -> Floats:
    """Sepals alone, so that posteriors are not all near 0 or 1."""
    return iris().X[:, :2]


def best_by_brute_force(posteriors: Floats, loss: Floats) -> tuple[list[int], list[float]]:
    """The cheapest action of each row and its expected cost, one action after the other."""
    actions, costs = [], []
    for row in posteriors:
        expected = [sum(p * loss[k][a] for k, p in enumerate(row)) for a in range(len(loss[0]))]
        actions.append(min(range(len(expected)), key=expected.__getitem__))
        costs.append(min(expected))
    return actions, costs


# Losses.

LOSS = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [10.0, 0.5, 0.0]])


def test_the_action_has_the_least_expected_loss() -> None:
    model, X = fitted(), sepals()
    decisions = model.decide(X, LOSS)
    actions, costs = best_by_brute_force(model.predict_proba(X), LOSS)
    assert decisions.action.tolist() == [LABELS[a] for a in actions]
    assert_allclose(decisions.expected_loss, costs, rtol=1e-12)
    assert not decisions.rejected.any()
    assert len(set(actions)) == 3
    assert decisions.action.tolist() != model.predict(X).tolist()


def test_without_a_loss_the_action_is_the_most_probable_class_and_its_cost_the_risk_of_error() -> None:
    model, X = fitted(), sepals()
    decisions = model.decide(X)
    assert_array_equal(decisions.action, model.predict(X))
    assert_allclose(decisions.expected_loss, 1.0 - model.predict_proba(X).max(axis=1), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("actions", [1, 2, 4])
def test_there_may_be_fewer_or_more_actions_than_classes(actions: int) -> None:
    model, X = fitted(), sepals()
    loss = np.random.default_rng(actions).uniform(0.0, 3.0, (3, actions))
    decisions = model.decide(X, loss)
    chosen, costs = best_by_brute_force(model.predict_proba(X), loss)
    assert decisions.action.tolist() == chosen
    assert_allclose(decisions.expected_loss, costs, rtol=1e-12)


MAPPING = {
    "virginica": {"water": 10.0, "cut": 0.5},
    "setosa": {"cut": 5.0, "water": 0.0},
    "versicolor": {"water": 2.0, "cut": 1.0},
}


def test_a_mapping_a_frame_and_an_array_of_losses_decide_alike_whatever_their_order() -> None:
    model, X = fitted(), sepals()
    by_mapping = model.decide(X, MAPPING)
    assert set(by_mapping.action) == {"water", "cut"}
    frame = pd.DataFrame(MAPPING).T
    shuffled = frame.loc[["versicolor", "virginica", "setosa"], ["cut", "water"]]
    array = model.decide(X, [[0.0, 5.0], [2.0, 1.0], [10.0, 0.5]])
    for decisions in (model.decide(X, frame), model.decide(X, shuffled)):
        assert decisions.action.tolist() == by_mapping.action.tolist()
        assert_allclose(decisions.expected_loss, by_mapping.expected_loss, rtol=1e-14)
    assert [["water", "cut"][a] for a in array.action] == by_mapping.action.tolist()
    assert_allclose(array.expected_loss, by_mapping.expected_loss, rtol=1e-14)


@pytest.mark.parametrize("library", [pl.DataFrame, pa.table])
def test_a_frame_without_an_index_has_the_classes_in_their_order_and_names_the_actions(library: Any) -> None:
    model, X = fitted(), sepals()
    decisions, by_mapping = (
        model.decide(X, library({"water": [0.0, 2, 10], "cut": [5.0, 1, 0.5]})),
        model.decide(X, MAPPING),
    )
    assert decisions.action.tolist() == by_mapping.action.tolist()
    assert_allclose(decisions.expected_loss, by_mapping.expected_loss, rtol=1e-14)
    square = library({"a": [0.0, 2, 10], "b": [5.0, 1, 0.5], "c": [9.0, 9, 9]})
    assert set(model.decide(X, square).action) <= {"a", "b", "c"}
    for wrong, message in (
        ([0.0, 1.0], r"shape \(2, 1\)"),
        ([0.0, None, 1.0], "not finite"),
        (["u", "v", "w"], "numbers"),
    ):
        with pytest.raises(InputError, match=f"loss.*{message}"):
            model.decide(X, library({"water": wrong}))


def test_actions_keep_their_type() -> None:
    model, X = fitted(), sepals()
    numbers = model.decide(X, {label: {1: 0.0, 2: 1.0} for label in LABELS})
    assert numbers.action.tolist() == [1] * len(X)
    mixed = model.decide(X, {label: {"wait": 1.0, 3: 0.0} for label in LABELS})
    assert mixed.action.tolist() == [3] * len(X)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (np.ones((2, 3)), r"loss has shape \(2, 3\); it needs one row for each of the 3 classes"),
        (np.ones((3, 0)), "one row for each of the 3 classes"),
        (np.ones(3), "one row for each of the 3 classes"),
        (np.ones((3, 2, 2)), "one row for each of the 3 classes"),
        ([[0, 1, np.nan]] * 3, "not finite"),
        ([[0, 1, np.inf]] * 3, "not finite"),
        ([["a", "b", "c"]] * 3, "must be finite real numbers"),
        ({"setosa": {"x": 1.0}}, "it lacks 'versicolor', 'virginica'[.]$"),
        ({**MAPPING, "tulip": {"water": 1.0, "cut": 1.0}}, "'virginica': 'tulip' is unknown[.]$"),
        (
            {"tulip": {}, "daisy": {}, "setosa": {}},
            "lacks 'versicolor', 'virginica', and 'tulip', 'daisy' are unknown[.]$",
        ),
        ({**MAPPING, "setosa": {"water": 1.0}}, "has the actions"),
        ({label: {} for label in LABELS}, "loss has no actions"),
        (pd.DataFrame(MAPPING), "one row for each of the classes"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_what_is_no_loss_is_said_so(loss: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fitted().decide(sepals(), loss)


# Rejection.


@pytest.mark.filterwarnings("ignore:reject=1.0 rejects nothing")
@pytest.mark.parametrize("reject", [0.0, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("loss", [None, LOSS], ids=["0-1", "given"])
def test_a_row_is_rejected_exactly_where_every_action_costs_more(loss: Any, reject: float) -> None:
    model, X = fitted(), sepals()
    plain, decisions = model.decide(X, loss), model.decide(X, loss, reject=reject)
    assert_array_equal(decisions.rejected, plain.expected_loss > reject)
    assert_array_equal(decisions.best_action, plain.action)
    expected = [None if rejected else action for rejected, action in zip(decisions.rejected, plain.action, strict=True)]
    assert decisions.action.tolist() == expected
    assert_allclose(decisions.expected_loss, np.minimum(plain.expected_loss, reject), rtol=1e-15)


def test_rejection_parts_the_rows() -> None:
    rejected = fitted().decide(sepals(), reject=0.3).rejected
    assert rejected.dtype == np.bool_
    assert 0 < rejected.sum() < len(rejected)


@pytest.mark.parametrize("reject", [float("nan"), float("inf"), [0.1, 0.2], "often"])
def test_the_cost_of_rejection_is_one_finite_number(reject: Any) -> None:
    with pytest.raises(InputError, match="reject"):
        fitted().decide(sepals(), reject=reject)


@pytest.mark.parametrize("reject", [2, 0.7])
def test_a_cost_that_no_expected_loss_can_exceed_is_a_warning(reject: float) -> None:
    with pytest.warns(LikelyWarning, match=r"rejects nothing: .* at most 0\.6667, .* Use reject below 0\.6667"):
        decisions = fitted().decide(sepals(), reject=reject)
    assert not decisions.rejected.any()
    fitted().decide(sepals(), reject=0.66)
    with pytest.warns(LikelyWarning, match="at most 2,"):
        decisions = fitted().decide(sepals(), [[0, 2], [5, 2], [9, 1]], reject=2.0)
    assert not decisions.rejected.any()
    fitted().decide(sepals(), [[0, 2], [5, 2], [9, 1]], reject=1.9)


def test_a_cost_of_rejection_below_every_loss_is_refused() -> None:
    with pytest.raises(InputError, match="reject=-1 is less than every loss, so that all rows would be rejected"):
        fitted().decide(sepals(), reject=-1)
    gains = LOSS - 10.0
    decisions = fitted().decide(sepals(), gains, reject=-9.8)
    assert 0 < decisions.rejected.sum() < len(sepals())


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            {**MAPPING, "virginica": {"water": float("nan"), "cut": 1.0}},
            "action 'water' under class 'virginica'.*is nan",
        ),
        ([[0.0, 1.0], [float("inf"), 0.0], [1.0, 1.0]], r"action 0 under class 'versicolor' \(row 1, column 0.*is inf"),
        (pl.DataFrame({"water": [0.0, 1.0, 2.0], "cut": [1.0, None, 1.0]}), "action 'cut' under class 'versicolor'"),
    ],
    ids=["mapping", "array", "frame"],
)
def test_a_loss_that_is_not_finite_is_named(loss: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fitted().decide(sepals(), loss)


def test_rejected_rows_have_the_reject_label_as_their_action() -> None:
    model, X = fitted(), sepals()
    named = model.decide(X, MAPPING, reject=0.4, reject_label="ask")
    assert named.action.dtype.kind == "U"
    assert set(named.action[named.rejected]) == {"ask"}
    assert_array_equal(named.action[~named.rejected], named.best_action[~named.rejected])
    unnamed = model.decide(X, MAPPING, reject=0.4)
    assert set(unnamed.action[unnamed.rejected]) == {None}
    numbered = model.decide(X, reject=0.1, reject_label=-1)
    assert set(numbered.action[numbered.rejected]) == {-1}
    with pytest.raises(InputError, match="reject_label='cut' is also an action"):
        model.decide(X, MAPPING, reject=0.4, reject_label="cut")
    with pytest.raises(InputError, match="reject_label='ask' needs the cost of rejection"):
        model.decide(X, MAPPING, reject_label="ask")


def test_actions_that_are_tuples_can_be_rejected() -> None:
    loss = {label: {("wait", 1): 1.0, ("act", 2): 0.5 * i} for i, label in enumerate(LABELS)}
    decisions = fitted().decide(sepals(), loss, reject=0.3)
    assert decisions.rejected.any()
    assert set(decisions.action) == {("act", 2), None}
    assert set(decisions.best_action) == {("act", 2), ("wait", 1)} & set(decisions.best_action)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_decisions_are_a_frame_of_the_library_of_the_rows(library: Any) -> None:
    columns = dict(zip(["length", "width"], sepals().T, strict=True))
    model = LinearDiscriminant().fit(library(columns), iris().y)
    decisions = model.decide(library(columns), reject=0.1, reject_label="ask")
    frame = decisions.to_frame()
    assert isinstance(frame, pa.Table if library is pa.table else library)
    table = {name: np.asarray(frame[name]) for name in ("action", "best_action", "expected_loss", "rejected")}
    assert_array_equal(table["action"], decisions.action)
    assert_array_equal(table["rejected"], decisions.rejected)
    assert_allclose(table["expected_loss"], decisions.expected_loss)


def test_decisions_print_as_a_short_table() -> None:
    decisions = fitted().decide(sepals(), reject=0.1, reject_label="<ask>")
    text = repr(decisions)
    assert text == str(decisions)
    assert "array" not in text
    assert len(text.splitlines()) < 16
    assert f"{decisions.rejected.sum()} rejected" in text
    assert "<ask>" not in decisions._repr_html_()
    assert "<table>" in decisions._repr_html_()


# Given priors.


ESTIMATORS = [
    GenerativeClassifier,
    LinearDiscriminant,
    QuadraticDiscriminant,
    NearestPrototype,
]
WRONG_PRIORS = [
    ([0.5, 0.5, 0.5], "sums to 1.5, not to 1"),
    ([0.5, 0.5], r"shape \(2,\), but there are 3 classes: 'setosa', 'versicolor', 'virginica'"),
    ([[0.2, 0.3, 0.5]], "but there are 3 classes"),
    ([1.5, -0.5, 0.0], "not probabilities"),
    ([0.5, 0.5, float("nan")], "not probabilities"),
    ("unifrom", "class_prior='unifrom' is not known. Known: 'uniform'"),
    ({"setosa": 0.5, "virginica": 0.5}, "'versicolor' is missing"),
    ({"setosa": 0.5, "versicolor": 0.25, "virginica": 0.5}, "sums to 1.25, not to 1"),
    (["a", "b", "c"], "is not a class prior"),
    (0.5, "but there are 3 classes"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("prior", "message"), WRONG_PRIORS, ids=[str(prior) for prior, _ in WRONG_PRIORS])
def test_every_estimator_has_the_same_error_for_a_wrong_prior_in_fit_and_afterwards(
    estimator: Any, prior: Any, message: str
) -> None:
    rows = iris()
    model = estimator(class_prior=prior)
    with pytest.raises(InputError, match=message):
        model.fit(*rows)
    assert not hasattr(model, "classes_")
    with pytest.raises(InputError, match=message):
        estimator().fit(*rows).with_prior(prior)


def test_a_prior_cannot_name_classes_afterwards_that_the_model_does_not_know() -> None:
    prior = {"setosa": 0.25, "versicolor": 0.25, "virginica": 0.25, "tulip": 0.25}
    with pytest.raises(InputError, match="classes 'setosa', 'versicolor', 'virginica': 'tulip' is unknown"):
        fitted().with_prior(prior)


def test_a_prior_may_declare_a_class_that_has_no_rows_yet() -> None:
    rows = iris()
    prior = {"setosa": 0.25, "tulip": 0.25, "versicolor": 0.25, "virginica": 0.25}
    model = GenerativeClassifier(class_prior=prior).fit(*rows)
    assert model.classes_.tolist() == sorted(prior)
    assert_array_equal(model.class_prior_, 0.25)
    posteriors = model.predict_proba(rows.X)
    assert np.all(posteriors[:, 1] > 0.0)
    assert np.mean(model.predict(rows.X) == rows.y) > 0.9


@pytest.mark.parametrize("prior", ["uniform", [0.2, 0.3, 0.5], {"virginica": 0.5, "setosa": 0.2, "versicolor": 0.3}])
@pytest.mark.parametrize(
    "model",
    [LinearDiscriminant(), QuadraticDiscriminant(estimation="map"), GenerativeClassifier(Gaussian("diagonal"))],
    ids=repr,
)
def test_another_prior_afterwards_equals_a_fit_with_it(model: Any, prior: Any) -> None:
    rows = iris()
    plain = model.fit(*rows)
    before, shares = plain.predict_proba(rows.X), plain.class_prior_.copy()
    other = plain.with_prior(prior)
    refitted = type(model)(**{**model.get_params(deep=False), "class_prior": prior}).fit(*rows)
    assert_log_equal(other.log_joint(rows.X), refitted.log_joint(rows.X), 1e-14)
    assert_allclose(other.predict_proba(rows.X), refitted.predict_proba(rows.X), rtol=0, atol=1e-14)
    reweighed = before * other.class_prior_ / shares
    assert_allclose(
        other.predict_proba(rows.X), reweighed / reweighed.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-12
    )
    assert other.class_prior is prior
    assert_array_equal(plain.predict_proba(rows.X), before)
    assert_array_equal(plain.class_prior_, shares)


def test_the_linear_form_follows_the_prior() -> None:
    model, X = fitted(), sepals()
    other = model.with_prior([0.6, 0.3, 0.1])
    assert_array_equal(other.coef_, model.coef_)
    step = np.log([0.6, 0.3, 0.1]) - np.log(model.class_prior_)
    assert_allclose(other.intercept_, model.intercept_ + step, rtol=1e-12)
    assert_allclose(other.decision_function(X), model.decision_function(X) + step, rtol=1e-12)


def test_a_class_of_prior_zero_is_impossible_and_everything_else_stays_finite() -> None:
    model, X = fitted().with_prior({"setosa": 0.0, "versicolor": 0.5, "virginica": 0.5}), sepals()
    posteriors = model.predict_proba(X)
    assert not posteriors[:, 0].any()
    assert_allclose(posteriors.sum(axis=1), 1.0, rtol=1e-14)
    assert np.all(np.isneginf(model.predict_log_proba(X)[:, 0]))
    assert "setosa" not in model.predict(X)
    assert np.all(np.isfinite(model.log_density(X)))
    assert "setosa" not in model.decide(X).action


def test_no_prior_afterwards_means_the_one_of_the_data() -> None:
    model = GenerativeClassifier(class_prior="uniform").fit(*random_rows(1))
    again = model.with_prior(None)
    assert_allclose(again.class_prior_, (np.array([14, 11, 9]) + 0.5) / (34 + 1.5), rtol=1e-14)
    pseudo = model.with_prior(Dirichlet(2.0))
    assert_allclose(pseudo.class_prior_, (np.array([14, 11, 9]) + 2) / 40, rtol=1e-14)


def test_boundaries_are_between_two_different_known_classes() -> None:
    with pytest.raises(InputError, match="same class, 'setosa'"):
        fitted().boundary("setosa", "setosa")
    with pytest.raises(InputError, match="Class 'tulip' is not among the classes"):  # before that a t has no boundary
        GenerativeClassifier().fit(*random_rows(1)).boundary("tulip", "setosa")
    with pytest.raises(InputError, match="is not among the classes"):
        fitted().boundary(np.array(["setosa", "virginica"]), "setosa")
    with pytest.raises(InputError, match="Class 'tulip' is not among the classes"):
        fitted().boundary("setosa", "tulip")


# Densities of one class.


def test_the_density_of_one_class_is_the_joint_without_the_prior() -> None:
    rows = iris()
    X = rows.X.copy()
    X[::3, 1] = np.nan
    model = QuadraticDiscriminant().fit(rows.X, rows.y)
    for k, label in enumerate(LABELS):
        expected = model.log_joint(X)[:, k] - np.log(model.class_prior_[k])
        assert_allclose(model.log_density(X, label=label), expected, rtol=1e-12)
        mean, covariance = model.means_[k], model.covariance_[k]
        by_scipy = multivariate_normal.logpdf(rows.X, mean, covariance)
        assert_allclose(model.log_density(rows.X, label=label), by_scipy, rtol=1e-9)
    none = model.with_prior({"setosa": 0.0, "versicolor": 0.5, "virginica": 0.5})
    assert_allclose(none.log_density(X, label="setosa"), model.log_density(X, label="setosa"), rtol=1e-12)
    with pytest.raises(InputError, match="Class 'tulip' is not among the classes"):
        model.log_density(X, label="tulip")


def test_a_cost_that_rejects_no_row_is_reported() -> None:
    X, y = np.arange(12.0).reshape(-1, 1), [0, 1, 2] * 4
    model = GenerativeClassifier().fit(X, y)
    with pytest.warns(LikelyWarning, match=r"reject=2 rejects nothing: the least expected loss .* at most 0\.6667"):
        assert not model.decide(X, reject=2).rejected.any()
    with pytest.warns(LikelyWarning, match="at most 1"):
        model.decide(X, loss=[[0.0, 9.0, 1.0], [5.0, 0.0, 1.0], [5.0, 9.0, 1.0]], reject=1.0)
    model.decide(X, reject=0.66)
