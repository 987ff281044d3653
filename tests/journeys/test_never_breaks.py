"""Messy but valid data: every situation that breaks other tools gets an answer here, and the right one.

Answers are compared with something independent wherever there is one: the same rows in other units, the
same rows without the troublesome column, SciPy's densities, scikit-learn's SVD solver.
"""

import multiprocessing
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.stats
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_info, threadpool_limits

from likely import (
    Categorical,
    Dirichlet,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    NaiveBayes,
    NearestPrototype,
    NormalInverseWishart,
    QuadraticDiscriminant,
    Regularized,
)
from likely.errors import DependentColumnsWarning, NotEstimableError
from tests.helpers import explained_scores

Floats = NDArray[np.float64]
Model = Any
Maker = Callable[[str], Model]

# Models whose answers do not depend on the unit of any one column, and those that compare columns.
UNIT_FREE: dict[str, Maker] = {
    "LinearDiscriminant": lambda estimation: LinearDiscriminant(estimation=estimation),
    "LinearDiscriminant-diagonal": lambda estimation: LinearDiscriminant("diagonal", estimation=estimation),
    "QuadraticDiscriminant": lambda estimation: QuadraticDiscriminant(estimation=estimation),
    "QuadraticDiscriminant-diagonal": lambda estimation: QuadraticDiscriminant("diagonal", estimation=estimation),
    "NearestPrototype-full": lambda estimation: NearestPrototype("full", estimation=estimation),
    "GenerativeClassifier": lambda estimation: GenerativeClassifier(estimation=estimation),
    "GenerativeClassifier-shared": lambda estimation: GenerativeClassifier(
        Gaussian(shared=True), estimation=estimation
    ),
    "NaiveBayes-diagonal": lambda estimation: NaiveBayes(Gaussian(), estimation=estimation),
    "GenerativeClassifier-own": lambda estimation: GenerativeClassifier(Gaussian(), estimation=estimation),
    "GenerativeClassifier-blocks": lambda estimation: GenerativeClassifier(
        {0: Gaussian("diagonal")}, estimation=estimation
    ),
}
COMPARING: dict[str, Maker] = {
    "LinearDiscriminant-spherical": lambda estimation: LinearDiscriminant("spherical", estimation=estimation),
    "QuadraticDiscriminant-spherical": lambda estimation: QuadraticDiscriminant("spherical", estimation=estimation),
}
IDENTITY: dict[str, Maker] = {
    "NearestPrototype": lambda estimation: NearestPrototype(estimation=estimation),
}
MODELS = UNIT_FREE | COMPARING | IDENTITY
SHARED_FULL = ["LinearDiscriminant", "NearestPrototype-full", "GenerativeClassifier-shared"]
OPEN = ["GenerativeClassifier", "GenerativeClassifier-blocks"]  # these choose a covariance by rows left out
OWN_FULL = ["QuadraticDiscriminant", "GenerativeClassifier-own"]
ESTIMATIONS = ("bayes", "map", "mle")

HUGE, SMALL = 2.0**440, 2.0**-664  # near 1e132 and 1e-200, and exact: nothing is rounded on the way

every_model = pytest.mark.parametrize("name", MODELS)
unit_free_model = pytest.mark.parametrize("name", UNIT_FREE)
shared_full_model = pytest.mark.parametrize("name", SHARED_FULL)
own_full_model = pytest.mark.parametrize("name", OWN_FULL)
exact_model = pytest.mark.parametrize(
    "name", ["LinearDiscriminant", "QuadraticDiscriminant-diagonal", "GenerativeClassifier-blocks"]
)
every_estimation = pytest.mark.parametrize("estimation", ESTIMATIONS)
with_prior_knowledge = pytest.mark.parametrize("estimation", ["bayes", "map"])


class Rows(NamedTuple):
    X: Floats
    y: NDArray[Any]


def three_classes(rows: int = 40, seed: int = 0, apart: float = 5.0) -> Rows:
    """Three well separated classes of three columns each."""
    rng = np.random.default_rng(seed)
    centres = apart * np.array([[0.0, 0.0, 0.0], [1.0, 0.0, -0.5], [0.0, 1.0, 0.5]])
    turn = np.array([[1.0, 0.3, 0.0], [0.0, 1.0, -0.4], [0.0, 0.0, 1.0]])
    X = rng.normal(size=(3 * rows, 3)) @ turn + np.repeat(centres, rows, axis=0)
    return Rows(X, np.repeat(np.array(["a", "b", "c"]), rows))


def overlapping() -> Rows:
    """Classes that overlap, so that posteriors are not all 0 or 1."""
    return three_classes(rows=30, seed=1, apart=1.5)


@cache
def plain_model(name: str, estimation: str) -> Model:
    """A model of the overlapping classes, to compare others with."""
    return MODELS[name](estimation).fit(*overlapping())


@cache
def plain_posterior(name: str, estimation: str) -> Floats:
    return posterior(plain_model(name, estimation), overlapping().X)


def posterior(model: Model, X: Any) -> Floats:
    """Posteriors, after checking that every answer agrees with them and none is NaN."""
    proba: Floats = model.predict_proba(X)
    assert np.all(np.isfinite(proba))
    assert proba.min() >= 0.0
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    logs = model.predict_log_proba(X)
    assert not np.any(np.isnan(logs))
    assert_allclose(np.exp(logs), proba, rtol=1e-9, atol=1e-300)
    chosen = np.searchsorted(model.classes_, model.predict(X))
    assert_allclose(proba[np.arange(len(proba)), chosen], proba.max(axis=1), rtol=1e-9)
    return proba


def densities(model: Model, X: Any) -> Floats:
    """log p(x, class), after checking that it is a number and adds up to log p(x)."""
    joint: Floats = model.log_joint(X)
    assert np.all(np.isfinite(joint))
    assert_allclose(model.log_density(X), np.logaddexp.reduce(joint, axis=1), rtol=1e-12, atol=1e-12)
    return joint


def answers_everything(model: Model, X: Any) -> None:
    """Every method gives numbers on these rows, and explanations add up."""
    posterior(model, X)
    densities(model, X)
    assert not np.any(np.isnan(model.decision_function(X)))
    explanation = model.explain(X)
    total = explanation.evidence.sum(axis=2) + explanation.offset
    assert_allclose(total, explained_scores(model, X), rtol=1e-8, atol=1e-8)
    drawn, labels = model.sample(7, random_state=0)
    assert np.all(np.isfinite(np.asarray(drawn)))
    assert set(labels) <= set(model.classes_)
    assert str(model.summary())


def learnt(model: Model) -> list[str]:
    return [name for name in vars(model) if name.endswith("_")]


def refused(model: Model, X: Any, y: Any, *words: str) -> None:
    """The likelihood has no maximum: the error says so in these words, and nothing is fitted."""
    with pytest.raises(NotEstimableError) as caught:
        model.fit(X, y)
    for word in words:
        assert word in str(caught.value)
    assert learnt(model) == []


# ----------------------------------------------------------------------- all situations, with a prior


def _situations() -> dict[str, Rows]:
    X, y = three_classes()
    rng = np.random.default_rng(7)
    wide = rng.normal(size=(12, 30)) + np.repeat(4.0 * np.arange(3), 4)[:, None]
    flat_class = X.copy()
    flat_class[y == "b", 2] = flat_class[y == "b", 0] - 1.0
    return {
        "plain": Rows(X, y),
        "a rank-deficient class": Rows(flat_class, y),
        "a class with one row": Rows(X[:81], y[:81]),
        "two classes with one row each": Rows(X[39:81], y[39:81]),
        "fewer rows than columns": Rows(wide, np.repeat(np.array(["a", "b", "c"]), 4)),
        "as many rows as classes": Rows(X[[0, 40, 80]], y[[0, 40, 80]]),
        "a constant column": Rows(np.column_stack([X, np.full(len(X), 0.1)]), y),
        "a nearly constant column": Rows(np.column_stack([X, 1.0 + 1e-9 * rng.normal(size=len(X))]), y),
        "a column constant within the classes": Rows(np.column_stack([X, np.repeat([0.1, 0.2, 0.3], 40)]), y),
        "columns constant within the classes": Rows(np.repeat(X[[0, 40, 80]], 40, axis=0), y),
        "a duplicated column": Rows(X[:, [0, 1, 2, 0]], y),
        "a sum of columns": Rows(np.column_stack([X, X.sum(axis=1)]), y),
        "columns at 1e8 +- 1": Rows(X + 1e8, y),
        "classes 1e8 apart": Rows(X + np.repeat([0.0, 1e8, 2e8], 40)[:, None], y),
        "one column": Rows(X[:, :1] + np.repeat([0.0, 20.0, 40.0], 40)[:, None], y),
    }


SITUATIONS = _situations()


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
@every_model
@with_prior_knowledge
@pytest.mark.parametrize("situation", SITUATIONS)
def test_with_a_prior_every_situation_just_works(situation: str, name: str, estimation: str) -> None:
    X, y = SITUATIONS[situation]
    model = MODELS[name](estimation).fit(X, y)
    answers_everything(model, X)
    assert np.mean(model.predict(X) == y) >= 0.95


@every_model
@every_estimation
@pytest.mark.parametrize("rows", [1, 2, 30])
def test_rows_that_are_all_identical_give_back_the_class_prior(name: str, estimation: str, rows: int) -> None:
    X = np.full((3 * rows, 3), 0.3)
    y = np.repeat(np.array(["a", "b", "c"]), rows)
    model = MODELS[name](estimation).fit(X, y)
    proba = posterior(model, np.array([[0.3, 0.3, 0.3], [5.0, -1.0, 0.0]]))
    assert_allclose(proba, np.tile(model.class_prior_, (2, 1)), rtol=1e-12)
    assert_allclose(model.class_prior_, 1.0 / 3.0, rtol=1e-12)


@pytest.mark.parametrize("shrinkage", [0.2, "ledoit-wolf", "oas", Regularized(pooling=0.3, sphering=0.2)])
@pytest.mark.parametrize("estimator", [LinearDiscriminant, QuadraticDiscriminant])
@pytest.mark.parametrize(("rows", "columns"), [(1, 2), (3, 2), (30, 1)])
def test_rows_that_are_all_identical_give_back_the_class_prior_under_shrinkage(
    estimator: Any, shrinkage: Any, rows: int, columns: int
) -> None:
    X, y = np.full((rows, columns), 0.3), np.arange(rows) % 2
    model = estimator(shrinkage=shrinkage).fit(X, y)
    assert_allclose(posterior(model, X), np.tile(model.class_prior_, (rows, 1)), rtol=1e-12)
    assert model.summary()


@every_model
@every_estimation
def test_a_single_row_is_enough_for_a_model_of_one_class(name: str, estimation: str) -> None:
    model = MODELS[name](estimation).fit([[1.0, 2.0]], ["a"])
    assert_array_equal(model.predict([[1.0, 2.0], [9.0, 9.0]]), ["a", "a"])
    assert_array_equal(model.predict_proba([[1.0, 2.0]]), [[1.0]])


@every_model
@with_prior_knowledge
def test_two_rows_of_two_classes_part_the_space_between_them(name: str, estimation: str) -> None:
    model = MODELS[name](estimation).fit([[0.0, 1.0], [10.0, 12.0]], ["a", "b"])
    assert_array_equal(model.predict([[1.0, 1.5], [9.0, 11.0]]), ["a", "b"])
    assert_allclose(model.predict_proba([[5.0, 6.5]]), [[0.5, 0.5]], rtol=1e-9)


# ------------------------------------------------------------------------- ranks: rows, columns, spread


@own_full_model
def test_a_rank_deficient_class_has_no_maximum_and_the_error_names_class_columns_and_remedies(name: str) -> None:
    X, y = SITUATIONS["a rank-deficient class"]
    frame = pd.DataFrame(X, columns=["bill", "flipper", "mass"])
    refused(
        MODELS[name]("mle"),
        frame,
        y,
        "'mass'",
        "class 'b'",
        "linear combination",
        "shrinkage",
        "estimation='bayes'",
        "LinearDiscriminant",
        "diagonal",
    )


def test_shrinkage_makes_a_rank_deficient_class_estimable() -> None:
    X, y = SITUATIONS["a rank-deficient class"]
    model = QuadraticDiscriminant(shrinkage=0.1).fit(X, y)
    rows = X[y == "b"]
    S = np.cov(rows.T, bias=True)
    shrunk = 0.9 * S + 0.1 * np.trace(S) / 3.0 * np.eye(3)
    wanted = scipy.stats.multivariate_normal(rows.mean(axis=0), shrunk).logpdf(X) + np.log(1.0 / 3.0)
    assert_allclose(model.log_joint(X)[:, 1], wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
@pytest.mark.parametrize("name", [*OWN_FULL, "QuadraticDiscriminant-diagonal", "QuadraticDiscriminant-spherical"])
def test_a_class_with_one_row_has_no_own_covariance_of_maximum_likelihood(name: str) -> None:
    X, y = SITUATIONS["a class with one row"]
    refused(MODELS[name]("mle"), X, y, "class 'c'", "'x0'", "'x1'", "'x2'", "shrinkage", "bayes", "1 row")


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
@pytest.mark.parametrize("name", SHARED_FULL)
def test_a_class_with_one_row_takes_part_in_a_shared_covariance(name: str) -> None:
    X, y = SITUATIONS["a class with one row"]
    model = MODELS[name]("mle").fit(X, y)
    centred = np.vstack([X[:40] - X[:40].mean(axis=0), X[40:80] - X[40:80].mean(axis=0)])
    normal = scipy.stats.multivariate_normal(X[80], centred.T @ centred / 81.0)
    wanted = normal.logpdf(X) + np.log(model.class_prior_[2])
    assert_allclose(model.log_joint(X)[:, 2], wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
def test_a_class_with_one_row_has_the_student_predictive_of_its_posterior() -> None:
    X, y = SITUATIONS["a class with one row"]
    prior = NormalInverseWishart(mean=[1.0, 2.0, 3.0], mean_rows=0.5, degrees=6.0, scale=np.diag([1.0, 2.0, 3.0]))
    model = QuadraticDiscriminant(prior=prior, estimation="bayes", class_prior="uniform").fit(X, y)
    away = X[80] - [1.0, 2.0, 3.0]
    scale = np.diag([1.0, 2.0, 3.0]) + 0.5 * 1.0 / 1.5 * np.outer(away, away)
    degrees = 6.0 + 1.0 - 3.0 + 1.0
    centre = np.array([1.0, 2.0, 3.0]) + away / 1.5
    t = scipy.stats.multivariate_t(centre, scale * (1.0 + 1.0 / 1.5) / degrees, df=degrees)
    assert_allclose(model.log_joint(X)[:, 2], t.logpdf(X) + np.log(1.0 / 3.0), rtol=1e-10, atol=1e-10)


def test_fewer_rows_than_columns_are_measured_in_the_subspace_they_span_as_scikit_learn_does() -> None:
    X, y = SITUATIONS["fewer rows than columns"]
    fresh = np.random.default_rng(8).normal(size=(20, 30)) + 4.0
    with pytest.warns(DependentColumnsWarning) as caught:
        model = LinearDiscriminant().fit(X, y)
    assert len(caught) == 1
    means = np.array([X[y == label].mean(axis=0) for label in "abc"])
    within = scatter_about_class_means(X, y) / len(y)
    unit = np.sqrt(np.diagonal(within))
    inverse = np.linalg.pinv(within / unit / unit[:, None], hermitian=True, rtol=1e-10)
    white = (fresh[:, None] - means) / unit
    scores = -0.5 * np.einsum("nkd,de,nke->nk", white, inverse, white)
    wanted = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    assert_allclose(model.predict_log_proba(fresh), wanted, rtol=1e-8, atol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = LinearDiscriminantAnalysis(solver="svd").fit(X, y)
    assert_array_equal(model.predict(fresh), other.predict(fresh))


@own_full_model
def test_fewer_rows_than_columns_leave_own_covariances_without_a_maximum(name: str) -> None:
    X, y = SITUATIONS["fewer rows than columns"]
    refused(MODELS[name]("mle"), X, y, "class 'a'", "'x3'", "shrinkage", "bayes")


@every_model
@every_estimation
@pytest.mark.parametrize("value", [0.1, -1e140, 1e-200])
def test_a_constant_column_changes_no_posterior(name: str, estimation: str, value: float) -> None:
    X, y = overlapping()
    wide = np.column_stack([X[:, :1], np.full(len(X), value), X[:, 1:]])
    plain = plain_model(name, estimation)
    model = MODELS[name](estimation).fit(wide, y)
    assert_allclose(posterior(model, wide), plain_posterior(name, estimation), rtol=1e-9, atol=1e-14)
    assert_allclose(model.log_joint(wide), plain.log_joint(X), rtol=1e-9)
    strange = wide[:5].copy()
    strange[:, 1] = [1e9, -3.0, 0.0, 0.1, 1e140]
    assert_allclose(posterior(model, strange), plain.predict_proba(X[:5]), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("shrinkage", [0.2, "ledoit-wolf", "oas", Regularized(pooling=0.3, sphering=0.2)])
@pytest.mark.parametrize("estimator", [LinearDiscriminant, QuadraticDiscriminant])
def test_a_constant_column_changes_no_posterior_under_shrinkage(estimator: Any, shrinkage: Any) -> None:
    X, y = overlapping()
    wide = np.column_stack([X, np.full(len(X), 0.1)])
    model, plain = estimator(shrinkage=shrinkage).fit(wide, y), estimator(shrinkage=shrinkage).fit(X, y)
    assert_allclose(posterior(model, wide), posterior(plain, X), rtol=1e-9, atol=1e-14)


@unit_free_model
@every_estimation
@pytest.mark.parametrize("level", [1.0, -3.7])
def test_a_column_of_standard_deviation_1e_9_contributes_as_much_as_the_same_column_magnified(
    name: str, estimation: str, level: float
) -> None:
    X, y = overlapping()
    narrow = level + 1e-9 * X[:, 1]
    magnified = (narrow - level) * 2.0**30  # exact: the two numbers are close
    small, large = np.column_stack([X[:, 0], narrow]), np.column_stack([X[:, 0], magnified])
    a, b = MODELS[name](estimation).fit(small, y), MODELS[name](estimation).fit(large, y)
    assert_allclose(posterior(a, small), posterior(b, large), rtol=1e-5, atol=1e-8)


DEPENDENT: dict[str, Callable[[Floats], Floats]] = {
    "a duplicate": lambda X: X[:, 0],
    "the same in other units": lambda X: 1e6 * X[:, 0],
    "a sum": lambda X: X[:, 0] + X[:, 1],
    "a mean less a constant": lambda X: X.mean(axis=1) - 273.15,
    "a sum at 1e8": lambda X: X[:, 0] + X[:, 1] + 1e8,
}


@shared_full_model
@pytest.mark.parametrize("dependence", DEPENDENT)
def test_a_dependent_column_is_named_once_and_changes_no_posterior_of_maximum_likelihood(
    name: str, dependence: str
) -> None:
    X, y = overlapping()
    frame = pd.DataFrame(np.column_stack([X, DEPENDENT[dependence](X)]), columns=["u", "v", "w", "echo"])
    with pytest.warns(DependentColumnsWarning, match="'echo'") as caught:
        model = MODELS[name]("mle").fit(frame, y)
    assert len(caught) == 1
    plain = MODELS[name]("mle").fit(frame[["u", "v", "w"]], y)
    assert_allclose(posterior(model, frame), posterior(plain, frame[["u", "v", "w"]]), rtol=1e-8, atol=1e-12)
    assert "'echo'" in str(model.summary())


@shared_full_model
def test_dependent_columns_beside_a_constant_one_leave_the_posteriors_of_the_others(name: str) -> None:
    X, y = overlapping()
    wide = np.column_stack([np.full(len(X), 4.0), X[:, 0], X, X[:, 1] - X[:, 2]])
    with pytest.warns(DependentColumnsWarning) as caught:
        model = MODELS[name]("mle").fit(wide, y)
    assert len(caught) == 1
    assert_allclose(posterior(model, wide), plain_posterior(name, "mle"), rtol=1e-8, atol=1e-12)


@own_full_model
@pytest.mark.parametrize("dependence", DEPENDENT)
def test_a_dependent_column_leaves_own_covariances_without_a_maximum(name: str, dependence: str) -> None:
    X, y = overlapping()
    frame = pd.DataFrame(np.column_stack([X, DEPENDENT[dependence](X)]), columns=["u", "v", "w", "echo"])
    refused(MODELS[name]("mle"), frame, y, "'echo'", "class 'a'", "shrinkage", "estimation='bayes'")


def test_a_dependent_column_within_a_group_of_classes_names_the_whole_group() -> None:
    X, y = overlapping()
    model = QuadraticDiscriminant(groups=[["a", "b"]])
    refused(model, X[:, [0, 1, 2, 0]], y, "class 'a', 'b'", "'x3'", "shrinkage", "bayes")


@pytest.mark.parametrize("name", [name for name in MODELS if not name.endswith("-blocks")])  # those count columns
@with_prior_knowledge
def test_the_order_of_duplicated_columns_changes_nothing_with_a_prior(name: str, estimation: str) -> None:
    X, y = overlapping()
    left, right = X[:, [0, 1, 2, 0]], X[:, [0, 0, 2, 1]]
    a, b = MODELS[name](estimation).fit(left, y), MODELS[name](estimation).fit(right, y)
    assert_allclose(posterior(a, left), posterior(b, right), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("name", [*SHARED_FULL, "LinearDiscriminant-diagonal"])
def test_a_column_that_varies_only_between_classes_has_no_maximum_and_is_named(name: str) -> None:
    X, y = SITUATIONS["a column constant within the classes"]
    frame = pd.DataFrame(X, columns=["u", "v", "w", "label in disguise"])
    refused(MODELS[name]("mle"), frame, y, "'label in disguise'", "every class", "shrinkage", "estimation='bayes'")


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
def test_the_reference_prior_reports_too_few_rows() -> None:
    X, y = SITUATIONS["a class with one row"]
    model = QuadraticDiscriminant(prior=NormalInverseWishart.reference(), estimation="bayes")
    refused(model, X, y, "class 'c'", "1 rows for 3 columns", "NormalInverseWishart()")


def test_the_reference_prior_names_dependent_columns() -> None:
    X, y = overlapping()
    model = LinearDiscriminant(prior=NormalInverseWishart.reference(), estimation="bayes")
    refused(model, X[:, [0, 1, 2, 0]], y, "'x3'", "NormalInverseWishart()")


# ------------------------------------------------------------------------------- places far from zero


def scatter_about_class_means(X: Floats, y: NDArray[Any]) -> Floats:
    """The pooled scatter, from differences to a row of the same class, which floats hold exactly."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for label in np.unique(y):
        rows = X[y == label] - X[y == label][0]
        rows = rows - rows.mean(axis=0)
        total += rows.T @ rows
    return total


@every_estimation
@unit_free_model
def test_a_column_at_1e8_tells_as_much_as_the_same_column_at_zero(name: str, estimation: str) -> None:
    X, y = overlapping()
    level = np.array([1e8, -1e8, 3e8])
    away = X + level
    near = away - level  # exact
    a, b = MODELS[name](estimation).fit(away, y), MODELS[name](estimation).fit(near, y)
    assert_allclose(posterior(a, away), posterior(b, near), rtol=1e-6, atol=1e-8)
    assert_allclose(a.log_joint(away), b.log_joint(near), rtol=1e-6)


@pytest.mark.parametrize("order", ["by class", "shuffled"])
@pytest.mark.parametrize("between", [0.0, 1e8], ids=["classes together", "classes 1e8 apart"])
@pytest.mark.parametrize("columns", [3, 300], ids=["one block of rows", "many blocks of rows"])
def test_variances_at_1e8_are_kept_to_a_millionth(columns: int, between: float, order: str) -> None:
    rng = np.random.default_rng(2)
    rows = 4 * columns
    y = np.repeat([0, 1, 2], rows)
    X = 1e8 + rng.uniform(-1.0, 1.0, size=(3 * rows, columns)) + between * y[:, None]
    if order == "shuffled":
        mixed = rng.permutation(len(y))
        X, y = X[mixed], y[mixed]
    model = LinearDiscriminant().fit(X, y)
    wanted = scatter_about_class_means(X, y) / len(y)
    assert_allclose(np.diagonal(model.covariance_), np.diagonal(wanted), rtol=1e-6)
    assert_allclose(model.covariance_, wanted, atol=1e-6 * wanted.max())
    own = QuadraticDiscriminant("diagonal").fit(X, y)
    for k in range(3):
        mine = scatter_about_class_means(X[y == k], y[y == k]) / rows
        assert_allclose(np.diagonal(own.covariance_[k]), np.diagonal(mine), rtol=1e-6)


@every_estimation
@every_model
def test_classes_1e8_apart_are_distinguished_and_keep_their_shape(name: str, estimation: str) -> None:
    X, y = three_classes()
    shift = np.repeat([0.0, 1e8, -2e8], 40)[:, None]
    model = MODELS[name](estimation).fit(X + shift, y)
    assert_array_equal(model.predict(X + shift), y)
    posterior(model, X + shift)
    if estimation == "mle" and name in SHARED_FULL:
        joint = densities(model, X + shift)
        plain = MODELS[name]("mle").fit(X, y)
        own = np.searchsorted(model.classes_, y)
        rows = np.arange(len(y))
        assert_allclose(joint[rows, own], plain.log_joint(X)[rows, own], rtol=1e-5)


# ---------------------------------------------------------------------------------------------- scales


@every_estimation
@unit_free_model
@pytest.mark.parametrize(
    "scales",
    [
        pytest.param([1e-12, 1.0, 1e12], id="1e-12 to 1e12"),
        pytest.param([HUGE, HUGE, HUGE], id="all huge"),
        pytest.param([SMALL, SMALL, SMALL], id="all small"),
        pytest.param([HUGE, 1.0, SMALL], id="huge and small side by side"),
        pytest.param([1e135, 1e-300, 1.0], id="1e135 and 1e-300 side by side"),
        pytest.param([2.0**460, 1.0, 1.0], id="near the largest number"),
    ],
)
def test_units_of_columns_change_no_posterior(name: str, estimation: str, scales: list[float]) -> None:
    X, y = overlapping()
    plain = plain_model(name, estimation)
    model = MODELS[name](estimation).fit(X * scales, y)
    assert_allclose(posterior(model, X * scales), plain_posterior(name, estimation), rtol=1e-8, atol=1e-12)
    joint = model.log_joint(X * scales)
    assert_allclose(joint, plain.log_joint(X) - np.log(scales).sum(), rtol=1e-9, atol=1e-9)
    explanation = model.explain(X * scales)
    total = explanation.evidence.sum(axis=2) + explanation.offset
    assert_allclose(total, explained_scores(model, X * scales), rtol=1e-9, atol=1e-9)
    drawn, _ = model.sample(200, label="b", random_state=0)
    wanted, _ = plain.sample(200, label="b", random_state=0)
    assert_allclose(drawn / scales, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("estimator", [LinearDiscriminant, QuadraticDiscriminant])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_there_is_no_unit_at_which_squares_are_lost(estimator: Any, covariance: str) -> None:
    X, y = three_classes(rows=400, apart=1.0)
    wanted = estimator(covariance).fit(X, y).predict_log_proba(X[::40])
    for exponent in [*range(-1000, 460, 40), *range(-204, -194), *range(194, 204)]:
        scaled = X * 2.0**exponent
        model = estimator(covariance).fit(scaled, y)
        assert_allclose(model.predict_log_proba(scaled[::40]), wanted, rtol=1e-8, atol=1e-9, err_msg=f"2^{exponent}")


@pytest.mark.parametrize("estimation", ["bayes", "mle"])
@pytest.mark.parametrize("estimator", [LinearDiscriminant, QuadraticDiscriminant])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_classes_1e8_apart_keep_their_shape_in_any_unit(estimator: Any, covariance: str, estimation: str) -> None:
    X, y = three_classes()
    X = X + np.repeat([0.0, 2.0**27, 2.0**28], 40)[:, None]
    wanted = estimator(covariance, estimation=estimation).fit(X, y).log_joint(X[::13]).max(axis=1)
    for exponent in range(-980, 430, 20):
        scaled = X * 2.0**exponent
        model = estimator(covariance, estimation=estimation).fit(scaled, y)
        shift = 3.0 * exponent * np.log(2.0)
        assert_allclose(model.log_joint(scaled[::13]).max(axis=1) + shift, wanted, atol=1e-6, err_msg=f"2^{exponent}")


@every_estimation
@pytest.mark.parametrize("name", COMPARING)
@pytest.mark.parametrize("scale", [1e-12, 1e12, HUGE, SMALL, 1e-300])
def test_one_unit_for_all_columns_changes_no_posterior_of_a_spherical_model(
    name: str, estimation: str, scale: float
) -> None:
    X, y = overlapping()
    model = MODELS[name](estimation).fit(X * scale, y)
    assert_allclose(posterior(model, X * scale), plain_posterior(name, estimation), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("shrinkage", [0.2, "ledoit-wolf", "oas", Regularized(pooling=0.3, sphering=0.2)])
@pytest.mark.parametrize("scale", [1e-12, 1e12, HUGE, SMALL])
@pytest.mark.parametrize("estimator", [LinearDiscriminant, QuadraticDiscriminant])
def test_one_unit_for_all_columns_changes_no_posterior_under_shrinkage(
    estimator: Any, scale: float, shrinkage: Any
) -> None:
    X, y = overlapping()
    plain = estimator(shrinkage=shrinkage).fit(X, y)
    model = estimator(shrinkage=shrinkage).fit(X * scale, y)
    assert_allclose(posterior(model, X * scale), posterior(plain, X), rtol=1e-8, atol=1e-12)


@every_estimation
@every_model
@pytest.mark.parametrize("scales", [[1e-12, 1.0, 1e12], [HUGE, 1.0, SMALL], [HUGE] * 3, [SMALL] * 3])
def test_scales_side_by_side_give_finite_answers_from_every_model(
    name: str, estimation: str, scales: list[float]
) -> None:
    X, y = three_classes()
    model = MODELS[name](estimation).fit(X * scales, y)
    posterior(model, X * scales)
    densities(model, X * scales)
    assert not np.any(np.isnan(model.decision_function(X * scales)))


@every_estimation
@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1e9, 1e100, HUGE])
def test_the_nearest_prototype_is_the_nearest_in_any_unit(estimation: str, scale: float) -> None:
    X, y = overlapping()
    wanted = NearestPrototype().fit(X, y).predict(X)
    model = NearestPrototype(estimation=estimation, class_prior="uniform").fit(X * scale, y)
    if estimation == "mle":
        distance = ((X[:, None] - np.array([X[y == k].mean(axis=0) for k in "abc"])) ** 2).sum(axis=2)
        assert_array_equal(wanted, np.array(["a", "b", "c"])[distance.argmin(axis=1)])
    assert_array_equal(model.predict(X * scale), wanted)
    posterior(model, X * scale)


@every_estimation
def test_linear_scores_are_the_same_numbers_in_huge_and_small_units(estimation: str) -> None:
    X, y = overlapping()
    for scale in (HUGE, SMALL):
        plain = LinearDiscriminant(estimation=estimation).fit(X[y != "c"], y[y != "c"])
        model = LinearDiscriminant(estimation=estimation).fit(X[y != "c"] * scale, y[y != "c"])
        assert_allclose(model.decision_function(X * scale), plain.decision_function(X), rtol=1e-8, atol=1e-9)
        assert_allclose(np.abs(model.transform(X * scale)), np.abs(plain.transform(X)), rtol=1e-8, atol=1e-9)


def test_linear_coefficients_of_small_columns_are_the_representable_ones() -> None:
    X, y = overlapping()
    two = y != "c"
    plain = LinearDiscriminant().fit(X[two], y[two])
    model = LinearDiscriminant().fit(X[two] * SMALL, y[two])
    assert_allclose(model.coef_, plain.coef_ / SMALL, rtol=1e-8)
    assert_allclose(model.intercept_, plain.intercept_, rtol=1e-8)


def test_linear_coefficients_of_huge_columns_are_the_representable_ones() -> None:
    X, y = overlapping()
    two = y != "c"
    plain = LinearDiscriminant().fit(X[two], y[two])
    model = LinearDiscriminant().fit(X[two] * HUGE, y[two])
    assert_allclose(model.coef_, plain.coef_ / HUGE, rtol=1e-8)
    assert_allclose(model.intercept_, plain.intercept_, rtol=1e-8)


@with_prior_knowledge
@every_model
@pytest.mark.parametrize("scales", [[1.0, 1e130, 1.0], [1.0, 1e-200, 1.0], [1e-200, 1.0, 1e130]])
def test_classes_whose_sizes_differ_by_hundreds_of_decades_are_distinguished(
    name: str, estimation: str, scales: list[float]
) -> None:
    X, y = three_classes()
    mixed = X * np.repeat(scales, 40)[:, None]
    model = MODELS[name](estimation).fit(mixed, y)
    posterior(model, mixed)
    densities(model, mixed)
    largest = "abc"[int(np.argmax(scales))]
    if max(scales) > 1.0 and "identity" not in str(model.summary()):
        outlying = mixed[y == largest][np.abs(mixed[y == largest]).min(axis=1) > 1e120]
        assert set(model.predict(outlying)) == {largest}


@with_prior_knowledge
@every_model
def test_opposite_values_near_the_limit_are_distinguished(name: str, estimation: str) -> None:
    rng = np.random.default_rng(3)
    X = np.repeat([-9e139, 9e139], 20)[:, None] * rng.uniform(0.9, 1.1, size=(40, 2))
    y = np.repeat(np.array(["low", "high"]), 20)
    model = MODELS[name](estimation).fit(X, y)
    posterior(model, X)
    assert_array_equal(model.predict(X), y)


# --------------------------------------------------------------------------------------------- far rows

FAR = [1e6, 1e20, 1e100, 1e130, 1e140]
DIRECTIONS = np.array(
    [[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, -1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]
)
FAR_ROWS = np.concatenate([distance * DIRECTIONS for distance in FAR])


@every_estimation
@every_model
def test_far_rows_have_finite_posteriors_that_sum_to_one(name: str, estimation: str) -> None:
    X, y = three_classes()
    posterior(MODELS[name](estimation).fit(X, y), FAR_ROWS)


@every_estimation
@unit_free_model
@pytest.mark.parametrize("scales", [[1e-12, 1.0, 1e12], [SMALL] * 3, [HUGE] * 3, [SMALL, 1.0, HUGE]])
def test_far_rows_have_finite_posteriors_in_any_units(name: str, estimation: str, scales: list[float]) -> None:
    X, y = three_classes()
    posterior(MODELS[name](estimation).fit(X * scales, y), FAR_ROWS)


@every_estimation
@every_model
def test_far_rows_have_densities_that_are_numbers(name: str, estimation: str) -> None:
    X, y = three_classes()
    model = MODELS[name](estimation).fit(X, y)
    densities(model, FAR_ROWS)
    two = MODELS[name](estimation).fit(X[:80], y[:80])
    for fitted in (model, two):
        scores = fitted.decision_function(FAR_ROWS)
        assert not np.any(np.isnan(scores))
    assert_array_equal(two.decision_function(FAR_ROWS) > 0.0, two.predict(FAR_ROWS) == "b")


@every_estimation
@every_model
def test_explanations_of_far_rows_are_numbers(name: str, estimation: str) -> None:
    X, y = three_classes()
    explanation = MODELS[name](estimation).fit(X, y).explain(FAR_ROWS)
    assert not np.any(np.isnan(explanation.evidence))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "NearestPrototype"])
def test_explanations_of_far_rows_add_up_under_bayes(name: str) -> None:
    X, y = three_classes()
    model = MODELS[name]("bayes").fit(X, y)
    explanation = model.explain(FAR_ROWS)
    total = explanation.evidence.sum(axis=2) + explanation.offset
    assert_allclose(total, explained_scores(model, FAR_ROWS), rtol=1e-9)


def test_rows_a_million_deviations_away_have_scipys_normal_densities() -> None:
    X, y = three_classes()
    model = QuadraticDiscriminant().fit(X, y)
    rows = 1e6 * DIRECTIONS
    for k, label in enumerate("abc"):
        mine = X[y == label]
        normal = scipy.stats.multivariate_normal(mine.mean(axis=0), np.cov(mine.T, bias=True))
        assert_allclose(model.log_joint(rows)[:, k], normal.logpdf(rows) + np.log(1.0 / 3.0), rtol=1e-10)


def test_rows_a_million_deviations_away_have_scipys_student_densities() -> None:
    X, y = three_classes()
    model = QuadraticDiscriminant(prior=NormalInverseWishart.reference(), estimation="bayes").fit(X, y)
    rows = np.concatenate([1e6 * DIRECTIONS, 1e100 * DIRECTIONS])
    for k, label in enumerate("abc"):
        mine = X[y == label]
        scatter, degrees = np.cov(mine.T, bias=True) * 40.0, 40.0 - 3.0
        t = scipy.stats.multivariate_t(mine.mean(axis=0), scatter * (1.0 + 1.0 / 40.0) / degrees, df=degrees)
        assert_allclose(model.log_joint(rows)[:, k], t.logpdf(rows) + np.log(1.0 / 3.0), rtol=1e-10)


@pytest.mark.parametrize("name", ["LinearDiscriminant", "LinearDiscriminant-diagonal", "QuadraticDiscriminant"])
@pytest.mark.parametrize("distance", [1e120, 1e140])
def test_students_posteriors_of_far_rows_are_the_limit_along_their_ray(name: str, distance: float) -> None:
    X, y = three_classes()
    model = MODELS[name]("bayes").fit(X, y)
    assert_allclose(
        model.predict_proba(distance * DIRECTIONS), model.predict_proba(1e100 * DIRECTIONS), rtol=1e-8, atol=1e-300
    )


@pytest.mark.parametrize("name", [*SHARED_FULL, "NearestPrototype", "LinearDiscriminant-spherical"])
@pytest.mark.parametrize("distance", [1e6, 1e100, 1e140])
def test_a_far_row_belongs_to_the_class_on_its_side_of_a_linear_boundary(name: str, distance: float) -> None:
    X, y = three_classes()
    model = MODELS[name]("mle").fit(X[:80], y[:80])
    line = model.boundary("b", "a")
    side = DIRECTIONS @ line.w
    assert np.abs(side).min() > 1e-3
    wanted = np.where(side > 0.0, "b", "a")
    assert_array_equal(model.predict(distance * DIRECTIONS), wanted)


@pytest.mark.parametrize("distance", [1e6, 1e100, 1e140])
@pytest.mark.parametrize("name", ["QuadraticDiscriminant", "QuadraticDiscriminant-spherical"])
@every_estimation
def test_a_far_row_belongs_to_the_widest_class(name: str, estimation: str, distance: float) -> None:
    X, y = three_classes()
    X = X * np.repeat([1.0, 5.0, 1.0], 40)[:, None]
    model = MODELS[name](estimation).fit(X, y)
    assert set(model.predict(distance * DIRECTIONS)) == {"b"}


def test_canonical_discriminants_of_far_rows_are_linear() -> None:
    X, y = three_classes()
    model = LinearDiscriminant().fit(X, y)
    near, far = model.transform(1e100 * DIRECTIONS), model.transform(1e140 * DIRECTIONS)
    assert_allclose(far / 1e40, near, rtol=1e-9)


# ---------------------------------------------------------------------------------------------- weights


@every_estimation
@every_model
def test_rows_of_weight_zero_are_absent_whatever_they_hold(name: str, estimation: str) -> None:
    X, y = overlapping()
    weight = np.random.default_rng(4).integers(0, 3, size=len(X)).astype(float)
    strange = X.copy()
    strange[weight == 0.0] = [[1e300, -1e-300, 1e8]]
    model = MODELS[name](estimation).fit(strange, y, sample_weight=weight)
    kept = weight > 0.0
    plain = MODELS[name](estimation).fit(X[kept], y[kept], sample_weight=weight[kept])
    repeated = MODELS[name](estimation).fit(
        np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int), axis=0)
    )
    assert_allclose(posterior(model, X), posterior(plain, X), rtol=1e-10, atol=1e-14)
    assert_allclose(posterior(model, X), posterior(repeated, X), rtol=1e-9, atol=1e-13)


@every_estimation
@every_model
def test_a_class_whose_rows_all_weigh_zero_is_not_a_class(name: str, estimation: str) -> None:
    X, y = three_classes()
    model = MODELS[name](estimation).fit(X, y, sample_weight=np.where(y == "b", 0.0, 1.0))
    assert_array_equal(model.classes_, ["a", "c"])
    plain = MODELS[name](estimation).fit(X[y != "b"], y[y != "b"])
    assert_allclose(posterior(model, X), posterior(plain, X), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in OPEN])
@pytest.mark.parametrize("weight", [1e-30, 1e-150, 1e-300, 1e100, 1e150, 1e290])
def test_the_unit_of_the_weights_changes_no_estimate_of_maximum_likelihood(name: str, weight: float) -> None:
    X, y = overlapping()
    model = MODELS[name]("mle").fit(X, y, sample_weight=np.full(len(X), weight))
    assert_allclose(posterior(model, X), plain_posterior(name, "mle"), rtol=1e-9, atol=1e-13)


@with_prior_knowledge
@pytest.mark.parametrize("weight", [1e12, 1e50, 1e100])
@pytest.mark.parametrize("name", ["LinearDiscriminant", "QuadraticDiscriminant", "LinearDiscriminant-diagonal"])
def test_overwhelming_weights_lead_to_maximum_likelihood(name: str, estimation: str, weight: float) -> None:
    X, y = overlapping()
    model = MODELS[name](estimation).fit(X, y, sample_weight=np.full(len(X), weight))
    assert_allclose(posterior(model, X), plain_posterior(name, "mle"), rtol=1e-6, atol=1e-9)


@with_prior_knowledge
@every_model
@pytest.mark.parametrize("weight", [1e-30, 1e-150, 1e-300])
def test_weights_that_are_all_tiny_leave_a_usable_model(name: str, estimation: str, weight: float) -> None:
    X, y = three_classes()
    model = MODELS[name](estimation).fit(X, y, sample_weight=np.full(len(X), weight))
    posterior(model, X)
    densities(model, X)


@every_estimation
@every_model
@pytest.mark.parametrize(("weight", "value"), [(1e-20, 3.0), (1e-150, 1e6), (5e-324, 1e6)])
def test_a_row_of_tiny_weight_changes_nothing(name: str, estimation: str, weight: float, value: float) -> None:
    X, y = overlapping()
    weights = np.ones(len(X) + 1)
    weights[0] = weight
    model = MODELS[name](estimation).fit(
        np.vstack([np.full((1, 3), value), X]), np.append(["a"], y), sample_weight=weights
    )
    assert_allclose(posterior(model, X), plain_posterior(name, estimation), rtol=1e-6, atol=1e-9)


@every_estimation
@every_model
def test_a_row_of_tiny_weight_far_away_changes_nothing_even_if_it_comes_first(name: str, estimation: str) -> None:
    X, y = overlapping()
    weights = np.ones(len(X) + 1)
    weights[0] = 1e-60  # its square of 1e30 then counts for 1e-30
    model = MODELS[name](estimation).fit(
        np.vstack([np.full((1, 3), 1e15), X]), np.append(["a"], y), sample_weight=weights
    )
    assert_allclose(posterior(model, X), plain_posterior(name, estimation), rtol=1e-6, atol=1e-9)


@with_prior_knowledge
@every_model
@pytest.mark.parametrize("weight", [1e-12, 1e-100, 1e-300])
def test_a_class_of_tiny_weight_keeps_its_place(name: str, estimation: str, weight: float) -> None:
    X, y = three_classes()
    model = MODELS[name](estimation).fit(X, y, sample_weight=np.where(y == "b", weight, 1.0))
    assert_array_equal(model.classes_, ["a", "b", "c"])
    posterior(model, X)
    assert np.mean(model.predict(X[y != "b"]) == y[y != "b"]) > 0.9


@pytest.mark.parametrize("shrinkage", ["ledoit-wolf", "oas", 0.1])
@pytest.mark.parametrize("weight", [1e-150, 1e-30])
def test_a_row_of_tiny_weight_changes_no_shrinkage(shrinkage: Any, weight: float) -> None:
    X, y = overlapping()
    weights = np.append(np.ones(len(X)), weight)
    more, labels = np.vstack([X, [[9.0, 9.0, 9.0]]]), np.append(y, "a")
    model = LinearDiscriminant(shrinkage=shrinkage).fit(more, labels, sample_weight=weights)
    plain = LinearDiscriminant(shrinkage=shrinkage).fit(X, y)
    assert_allclose(posterior(model, X), posterior(plain, X), rtol=1e-8, atol=1e-12)


# ----------------------------------------------------------------------------------------- class priors

DECLARED = {"a": 0.4, "b": 0.3, "c": 0.2, "zebra": 0.1}


@with_prior_knowledge
@every_model
def test_a_declared_class_without_rows_takes_part(name: str, estimation: str) -> None:
    X, y = three_classes()
    model = MODELS[name](estimation).set_params(class_prior=DECLARED).fit(X, y)
    assert_array_equal(model.classes_, ["a", "b", "c", "zebra"])
    assert_allclose(model.class_prior_, [0.4, 0.3, 0.2, 0.1], rtol=1e-12)
    answers_everything(model, X)
    assert np.mean(model.predict(X) == y) > 0.9


@every_model
def test_a_declared_class_without_rows_has_no_maximum_of_likelihood(name: str) -> None:
    X, y = three_classes()
    model = MODELS[name]("mle").set_params(class_prior=DECLARED)
    refused(model, X, y, "'zebra'", "no rows", "estimation='bayes'")


def test_a_declared_class_without_rows_has_the_predictive_of_the_prior() -> None:
    X, y = three_classes()
    prior = NormalInverseWishart(mean=[1.0, 2.0, 3.0], mean_rows=0.5, degrees=6.0, scale=np.diag([1.0, 2.0, 3.0]))
    model = QuadraticDiscriminant(prior=prior, estimation="bayes", class_prior=DECLARED).fit(X, y)
    t = scipy.stats.multivariate_t([1.0, 2.0, 3.0], np.diag([1.0, 2.0, 3.0]) * (1.0 + 1.0 / 0.5) / 4.0, df=4.0)
    assert_allclose(model.log_joint(X)[:, 3], t.logpdf(X) + np.log(0.1), rtol=1e-10, atol=1e-10)
    seen = QuadraticDiscriminant(prior=prior, estimation="bayes", class_prior=[0.4, 0.3, 0.3]).fit(X, y)
    assert_allclose(model.log_joint(X)[:, :2], seen.log_joint(X)[:, :2], rtol=1e-10)


@pytest.mark.parametrize(
    ("labels", "unseen"),
    [
        pytest.param(["a", "b"], "a much longer name", id="text"),
        pytest.param([3, 5], 4, id="integers"),
        pytest.param([3, 5], -1, id="integers, first in order"),
        pytest.param([1.0, 2.0], 3, id="whole floats"),
        pytest.param([("a", 1), ("a", 2)], ("b", 1), id="tuples"),
    ],
)
def test_a_declared_class_stands_in_its_sorted_place_whatever_labels_are(labels: list[Any], unseen: Any) -> None:
    X, _ = three_classes()
    values = np.empty(80, dtype=object)
    values[:] = [labels[0]] * 40 + [labels[1]] * 40
    target = values if isinstance(unseen, tuple) else np.array(values.tolist())
    model = GenerativeClassifier(class_prior={labels[0]: 0.5, labels[1]: 0.4, unseen: 0.1}).fit(X[:80], target)
    assert model.classes_.tolist() == sorted([*labels, unseen])
    assert model.predict(X[[0, 40]]).tolist() == labels
    assert_allclose(model.class_prior_[model.classes_.tolist().index(unseen)], 0.1)


def test_a_declared_boolean_class_without_rows_takes_part() -> None:
    X, _ = three_classes()
    model = GenerativeClassifier(class_prior={True: 0.3, False: 0.7}).fit(X, np.ones(len(X), dtype=bool))
    assert model.classes_.tolist() == [False, True]
    posterior(model, X)


@every_estimation
@every_model
def test_a_class_of_prior_probability_zero_is_never_chosen(name: str, estimation: str) -> None:
    X, y = three_classes()
    model = MODELS[name](estimation).set_params(class_prior=[0.5, 0.0, 0.5]).fit(X, y)
    proba = posterior(model, X)
    assert_array_equal(proba[:, 1], 0.0)
    assert_array_equal(model.predict_log_proba(X)[:, 1], -np.inf)
    assert not np.any(np.isnan(model.decision_function(X)))
    assert not np.any(np.isnan(model.log_density(X)))
    sure = model.with_prior({"a": 0.0, "b": 1.0, "c": 0.0})
    assert_array_equal(posterior(sure, np.vstack([X, FAR_ROWS]))[:, 1], 1.0)


def test_a_dirichlet_may_declare_its_weight_for_each_class() -> None:
    X, y = three_classes()
    model = GenerativeClassifier(class_prior=Dirichlet({"a": 1.0, "b": 2.0, "c": 3.0})).fit(X, y)
    assert_allclose(model.class_prior_, np.array([41.0, 42.0, 43.0]) / 126.0, rtol=1e-12)


# ------------------------------------------------------------------------------------- integers, exactly


def integer_rows() -> tuple[NDArray[np.int64], NDArray[Any]]:
    X, y = overlapping()
    return np.rint(X * 10.0).astype(np.int64), y


@pytest.mark.parametrize("origin", [2**53, 2**62 + 12345, 2**63 - 1000, -(2**63) + 1000])
def test_projections_and_linear_scores_of_integers_beyond_2_to_the_53_are_exact(origin: int) -> None:
    small, y = integer_rows()
    large = small + np.int64(origin)
    a, b = LinearDiscriminant().fit(large, y), LinearDiscriminant().fit(small, y)
    assert_allclose(a.transform(large), b.transform(small), rtol=1e-9, atol=1e-9)
    assert_allclose(a.decision_function(large), b.decision_function(small), rtol=1e-9, atol=1e-9)


def test_labels_that_are_huge_floats_stay_apart() -> None:
    X, y = overlapping()
    labels = np.where(y == "a", 1e19, np.where(y == "b", 1e19 + 4096.0, 1e19 + 8192.0))
    model = LinearDiscriminant().fit(X, labels)
    assert model.classes_.tolist() == [1e19, 1e19 + 4096.0, 1e19 + 8192.0]
    assert_allclose(model.predict_proba(X), LinearDiscriminant().fit(X, y).predict_proba(X), rtol=1e-9)


def test_factors_are_whole_whoever_asks_for_them_first() -> None:
    """One thread stands in the middle of inverting while another begins and ends."""
    X, y = overlapping()
    model = QuadraticDiscriminant().partial_fit(X, y)
    covariance = model.model_.blocks[0].conditionals.covariance  # type: ignore[attr-defined]
    inside, done, first = threading.Event(), threading.Event(), threading.Lock()

    class Slow(tuple[Any, ...]):
        def __iter__(self) -> Any:
            if first.acquire(blocking=False):
                inside.set()
                assert done.wait(30.0)
            return super().__iter__()

    covariance._lower = Slow(covariance._lower)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(getattr, covariance, "factor")
        assert inside.wait(30.0)
        early = covariance.factor
        done.set()
        assert_array_equal(late.result(), early)
    assert_array_equal(covariance.factor, early)
    assert np.all(np.linalg.matrix_rank(early) == X.shape[1])


@every_estimation
@exact_model
@pytest.mark.parametrize("origin", [2**53, 2**62 + 12345, 2**63 - 1000, -(2**63) + 1000])
def test_integers_beyond_2_to_the_53_are_exact(name: str, estimation: str, origin: int) -> None:
    small, y = integer_rows()
    assert np.abs(small).max() < 1000
    large = small + np.int64(origin)
    a, b = MODELS[name](estimation).fit(large, y), MODELS[name](estimation).fit(small, y)
    assert_allclose(posterior(a, large), posterior(b, small), rtol=1e-9, atol=1e-12)
    assert_allclose(a.log_joint(large), b.log_joint(small), rtol=1e-9)


@every_estimation
@exact_model
@pytest.mark.parametrize("origin", [2**53 + 1000, 2**63, 2**64 - 1000])
def test_unsigned_integers_beyond_2_to_the_53_are_exact(name: str, estimation: str, origin: int) -> None:
    small, y = integer_rows()
    large = np.array([[origin + int(cell) for cell in row] for row in small], dtype=np.uint64)
    a, b = MODELS[name](estimation).fit(large, y), MODELS[name](estimation).fit(small, y)
    assert_allclose(posterior(a, large), posterior(b, small), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_large_integers_beside_other_columns_of_a_frame_are_exact(library: Any, kind: Any) -> None:
    small, y = integer_rows()
    data: dict[str, Any] = {"stamp": small[:, 0], "length": small[:, 1] / 7.0, "count": small[:, 2]}
    large = data | {"stamp": (small[:, 0] + 2**60).astype(kind)}
    a = LinearDiscriminant().fit(library(large), y)
    b = LinearDiscriminant().fit(library(data), y)
    assert_allclose(posterior(a, library(large)), posterior(b, library(data)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("columns", [3, 300], ids=["one block of rows", "many blocks of rows"])
def test_integers_on_both_sides_of_2_to_the_53_are_exact_in_any_number_of_blocks(columns: int) -> None:
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 4 * columns)
    small = rng.integers(-50, 50, size=(len(y), columns))
    offsets = np.where(np.arange(columns) % 2 == 0, 2**61, 0)
    model = LinearDiscriminant().fit(small + offsets, y)
    plain = LinearDiscriminant().fit(small, y)
    assert_allclose(model.covariance_, plain.covariance_, rtol=1e-9, atol=1e-9)
    assert_allclose(posterior(model, small + offsets), posterior(plain, small), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rows", [[[-(2**63)]], [[2**63 - 1]], [[0]]], ids=["lowest", "highest", "zero"])
@every_estimation
def test_integers_far_from_those_learnt_do_not_wrap_around(rows: Any, estimation: str) -> None:
    y = np.repeat(np.array(["low", "high"]), 20)
    X = (2**61 + np.concatenate([np.arange(20), np.arange(1000, 1020)])).astype(np.int64)[:, None]
    model = LinearDiscriminant(estimation=estimation).fit(X, y)
    as_float = np.array(rows, dtype=np.float64)
    as_integer = np.array(rows, dtype=np.int64)
    assert_allclose(model.predict_proba(as_integer), model.predict_proba(as_float), rtol=1e-6, atol=1e-12)
    assert_allclose(model.log_density(as_integer), model.log_density(as_float), rtol=1e-6)


def test_unsigned_integers_below_those_learnt_do_not_wrap_around() -> None:
    y = np.repeat(np.array(["low", "high"]), 20)
    offsets = np.concatenate([np.arange(20), np.arange(1000, 1020)])
    X = np.array([[2**64 - 3000 + int(v)] for v in offsets], dtype=np.uint64)
    model = LinearDiscriminant().fit(X, y)
    rows = np.array([[0], [2**63], [2**64 - 2990]], dtype=np.uint64)
    assert_array_equal(model.predict(rows), ["low", "low", "low"])


def test_narrow_integers_can_be_judged_by_a_model_of_wide_ones() -> None:
    y = np.repeat(np.array(["low", "high"]), 20)
    X = (2**61 + np.concatenate([np.arange(20), np.arange(1000, 1020)])).astype(np.int64)[:, None]
    model = LinearDiscriminant().fit(X, y)
    for kind in (np.int8, np.int32, np.uint8, np.uint32):
        assert_array_equal(model.predict(np.array([[5]], dtype=kind)), ["low"])


# ------------------------------------------------------------------------------- how arrays come about


@every_estimation
@exact_model
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64, np.float16])
def test_the_type_of_whole_numbers_changes_nothing(name: str, estimation: str, kind: Any) -> None:
    X, y = overlapping()
    whole = np.clip(np.rint(X * 20.0), -128, 127) if kind == np.int8 else np.rint(np.abs(X) * 10.0)
    model, plain = MODELS[name](estimation).fit(whole.astype(kind), y), MODELS[name](estimation).fit(whole, y)
    assert_allclose(posterior(model, whole.astype(kind)), posterior(plain, whole), rtol=1e-12, atol=1e-15)


@every_estimation
@every_model
def test_float32_gives_what_the_same_numbers_in_float64_give(name: str, estimation: str) -> None:
    X, y = overlapping()
    narrow = (X + 1000.0).astype(np.float32)
    model = MODELS[name](estimation).fit(narrow, y)
    plain = MODELS[name](estimation).fit(narrow.astype(np.float64), y)
    assert_allclose(posterior(model, narrow), posterior(plain, narrow.astype(np.float64)), rtol=1e-10, atol=1e-13)


@with_prior_knowledge
@every_model
def test_booleans_are_zeros_and_ones(name: str, estimation: str) -> None:
    X, y = overlapping()
    flags = X > 0.5
    model, plain = MODELS[name](estimation).fit(flags, y), MODELS[name](estimation).fit(flags.astype(float), y)
    assert_allclose(posterior(model, flags), posterior(plain, flags.astype(float)), rtol=1e-12)


@pytest.fixture
def mapped(tmp_path: Path) -> Floats:
    X, _ = overlapping()
    path = tmp_path / "rows.npy"
    np.save(path, X)
    loaded: Floats = np.load(path, mmap_mode="r")
    assert isinstance(loaded, np.memmap)
    return loaded


def _read_only(X: Floats) -> Floats:
    copy = X.copy()
    copy.setflags(write=False)
    return copy


LAYOUTS: dict[str, Callable[[Floats], Any]] = {
    "Fortran order": np.asfortranarray,
    "a view of every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "a view of every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "a reversed view": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "a transposed view": lambda X: np.ascontiguousarray(X.T).T,
    "read-only": _read_only,
    "big-endian": lambda X: X.astype(">f8"),
    "an extended type": lambda X: X.astype(np.longdouble),
    "objects": lambda X: X.astype(object),
    "lists": lambda X: X.tolist(),
    "a tuple of tuples": lambda X: tuple(map(tuple, X.tolist())),
    "an array without masked cells": np.ma.masked_array,
    "pandas": pd.DataFrame,
    "pandas with names": lambda X: pd.DataFrame(X, columns=["u", "v", "w"]),
    "pandas, nullable": lambda X: pd.DataFrame(X, columns=["u", "v", "w"]).astype("Float64"),
    "pandas, Arrow": lambda X: pd.DataFrame(X, columns=["u", "v", "w"]).astype("double[pyarrow]"),
    "polars": lambda X: pl.DataFrame(X, schema=["u", "v", "w"]),
    "arrow": lambda X: pa.table({"u": X[:, 0], "v": X[:, 1], "w": X[:, 2]}),
}


@every_estimation
@pytest.mark.parametrize("name", ["LinearDiscriminant", "QuadraticDiscriminant", "GenerativeClassifier-blocks"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_a_table_changes_nothing(layout: str, name: str, estimation: str) -> None:
    X, y = overlapping()
    table = LAYOUTS[layout](X)
    model = MODELS[name](estimation).fit(table, y)
    assert_allclose(posterior(model, table), plain_posterior(name, estimation), rtol=1e-10, atol=1e-14)


@every_estimation
@every_model
def test_a_memory_mapped_table_changes_nothing(mapped: Floats, name: str, estimation: str) -> None:
    _, y = overlapping()
    model = MODELS[name](estimation).fit(mapped, y)
    assert_allclose(posterior(model, mapped), plain_posterior(name, estimation), rtol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_many_blocks_of_rows_in_any_layout_give_one_model(order: Any) -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(5000, 300)), rng.integers(0, 3, size=5000)
    for kind in (np.float64, np.float32):
        table = np.asarray(X, dtype=kind, order=order)
        model = LinearDiscriminant().fit(table, y)
        wanted = scatter_about_class_means(table.astype(np.float64), y) / 5000.0
        assert_allclose(model.covariance_, wanted, atol=1e-11)


def test_fit_and_predict_leave_the_callers_arrays_alone() -> None:
    X, y = overlapping()
    weights = np.linspace(0.0, 2.0, len(X))
    before = X.copy(), y.copy(), weights.copy()
    for make in MODELS.values():
        for estimation in ESTIMATIONS:
            model = make(estimation).fit(X, y, sample_weight=weights)
            posterior(model, X)
            model.explain(X)
    assert_array_equal(X, before[0])
    assert_array_equal(y, before[1])
    assert_array_equal(weights, before[2])


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]", "boolean", "UInt8", "Float32"])
def test_pandas_nullable_columns_without_missing_cells_are_numbers(kind: str) -> None:
    X, y = overlapping()
    whole = (np.abs(X) > 1.0) if kind == "boolean" else np.rint(np.abs(X) * 10.0)
    frame = pd.DataFrame(whole, columns=["u", "v", "w"]).astype(kind)
    model = GenerativeClassifier().fit(frame, y)
    plain = GenerativeClassifier().fit(np.asarray(whole, dtype=float), y)
    assert_allclose(posterior(model, frame), posterior(plain, np.asarray(whole, dtype=float)), rtol=1e-6)


def test_decimal_columns_are_numbers() -> None:
    X, y = overlapping()
    rounded = np.round(X, 3)
    frame = pl.DataFrame(rounded, schema=["u", "v", "w"]).with_columns(pl.col("u").cast(pl.Decimal(10, 3)))
    plain = GenerativeClassifier().fit(rounded, y)
    assert_allclose(
        posterior(GenerativeClassifier().fit(frame, y), frame), posterior(plain, rounded), rtol=1e-9, atol=1e-12
    )


# ----------------------------------------------------------------------------------------------- labels

LABELS: dict[str, Callable[[NDArray[np.int64]], Any]] = {
    "integers": lambda k: k,
    "small integers": lambda k: k.astype(np.int8),
    "unsigned integers": lambda k: k.astype(np.uint64),
    "negative integers": lambda k: k - 2,
    "far apart integers": lambda k: np.array([-(2**62), 0, 2**62])[k],
    "unsigned integers around 2^63": lambda k: k.astype(np.uint64) + np.uint64(2**63 - 1),
    "whole floats": lambda k: k.astype(float),
    "large whole floats": lambda k: np.array([-1e300, 0.0, 1e300])[k],
    "text": lambda k: np.array(["ant", "bee", "cat"])[k],
    "text objects": lambda k: np.array(["ant", "bee", "cat"], dtype=object)[k],
    "bytes": lambda k: np.array([b"ant", b"bee", b"cat"])[k],
    "text with non-ASCII letters": lambda k: np.array(["ß", "ä", "猫"])[k],
    "empty text among others": lambda k: np.array(["", " ", "cat"])[k],
    "a list of text": lambda k: [["ant", "bee", "cat"][i] for i in k],
    "a tuple of integers": lambda k: tuple(int(i) for i in k),
    "integer objects": lambda k: k.astype(object),
    "pandas text": lambda k: pd.Series(np.array(["ant", "bee", "cat"])[k]),
    "pandas integers": pd.Series,
    "pandas nullable integers": lambda k: pd.Series(k, dtype="Int64"),
    "pandas, unordered index": lambda k: pd.Series(k, index=np.arange(len(k))[::-1]),
    "a pandas categorical": lambda k: pd.Categorical(np.array(["ant", "bee", "cat"])[k]),
    "a pandas categorical series": lambda k: pd.Series(np.array(["ant", "bee", "cat"])[k]).astype("category"),
    "a categorical of integers": lambda k: pd.Series(k).astype("category"),
    "a categorical with unused categories": lambda k: pd.Series(
        pd.Categorical(np.array(["ant", "bee", "cat"])[k], categories=["yak", "cat", "bee", "ant"])
    ),
    "a pandas index": lambda k: pd.Index(np.array(["ant", "bee", "cat"])[k]),
    "polars text": lambda k: pl.Series(np.array(["ant", "bee", "cat"])[k].tolist()),
    "polars categorical": lambda k: pl.Series(np.array(["cat", "bee", "ant"])[2 - k].tolist(), dtype=pl.Categorical),
    "polars enum": lambda k: pl.Series(
        np.array(["ant", "bee", "cat"])[k].tolist(), dtype=pl.Enum(["ant", "bee", "cat", "yak"])
    ),
    "polars integers": pl.Series,
    "arrow text": lambda k: pa.chunked_array([np.array(["ant", "bee", "cat"])[k].tolist()]),
}


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("estimator", [LinearDiscriminant, QuadraticDiscriminant, NearestPrototype])
def test_the_type_of_labels_changes_no_posterior(labels: str, estimator: Any) -> None:
    X, y = three_classes()
    codes = np.searchsorted(["a", "b", "c"], y)
    target = LABELS[labels](codes)
    model = estimator().fit(X, target)
    plain = estimator().fit(X, codes)
    assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    given = target.to_pylist() if isinstance(target, pa.ChunkedArray) else list(target)
    assert len(model.classes_) == 3
    assert list(model.predict(X)[[0, 40, 80]]) == [given[0], given[40], given[80]]


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(lambda k: k == 1, id="array"),
        pytest.param(lambda k: (k == 1).tolist(), id="list"),
        pytest.param(lambda k: (k == 1).astype(object), id="objects"),
        pytest.param(lambda k: pd.Series(k == 1, dtype="boolean"), id="pandas nullable"),
        pytest.param(lambda k: pl.Series(k == 1), id="polars"),
    ],
)
def test_labels_may_be_booleans(flags: Callable[[NDArray[np.int64]], Any]) -> None:
    X, y = three_classes()
    codes = np.searchsorted(["a", "b", "c"], y)[:80]
    for make in MODELS.values():
        model = make("bayes").fit(X[:80], flags(codes))
        assert model.classes_.tolist() == [False, True]
        assert_array_equal(model.predict(X[:80]).astype(bool), codes == 1)
        assert_array_equal(model.predict_proba(X[:80]), make("bayes").fit(X[:80], codes).predict_proba(X[:80]))


def test_labels_may_be_tuples_in_an_array_of_objects() -> None:
    X, _ = three_classes()
    target = np.empty(120, dtype=object)
    target[:] = [("a", 1)] * 40 + [("a", 2)] * 40 + [("b", 1)] * 40
    model = GenerativeClassifier().fit(X, target)
    assert model.classes_.tolist() == [("a", 1), ("a", 2), ("b", 1)]
    assert np.mean([p == t for p, t in zip(model.predict(X), target, strict=True)]) > 0.95


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("LinearDiscriminant", 1000),
        ("QuadraticDiscriminant", 1000),
        ("NearestPrototype", 1000),
        ("GenerativeClassifier", 250),
        pytest.param("GenerativeClassifier", 1000, marks=pytest.mark.long),
    ],
)
def test_up_to_a_thousand_classes_of_two_rows_each_are_distinguished(name: str, classes: int) -> None:
    rng = np.random.default_rng(9)
    centres = rng.uniform(-1000.0, 1000.0, size=(classes, 3))
    X, y = np.repeat(centres, 2, axis=0) + 0.1 * rng.normal(size=(2 * classes, 3)), np.repeat(np.arange(classes), 2)
    model = MODELS[name]("bayes").fit(X, y)
    assert np.mean(model.predict(centres) == np.arange(classes)) > 0.99
    assert_allclose(model.predict_proba(centres).sum(axis=1), 1.0, rtol=1e-10)


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
def test_a_thousand_classes_of_one_row_each_are_distinguished() -> None:
    X = np.random.default_rng(10).uniform(-1000.0, 1000.0, size=(1000, 3))
    for name in ("LinearDiscriminant", "QuadraticDiscriminant", "NearestPrototype", "GenerativeClassifier"):
        model = MODELS[name]("bayes").fit(X, np.arange(1000))
        assert np.mean(model.predict(X) == np.arange(1000)) > 0.99


@every_estimation
@every_model
def test_one_class_alone_is_certain_and_has_a_density(name: str, estimation: str) -> None:
    X, y = three_classes()
    model = MODELS[name](estimation).fit(X[:40], y[:40])
    assert_array_equal(posterior(model, X), np.ones((120, 1)))
    assert set(model.predict(X)) == {"a"}
    assert_allclose(model.log_joint(X)[:, 0], model.log_density(X), rtol=1e-12)
    assert np.all(np.isfinite(model.decision_function(X)))
    assert model.decide(X).expected_loss.max() == 0.0
    if estimation == "mle" and name in UNIT_FREE and "diagonal" not in name and "blocks" not in name:
        normal = scipy.stats.multivariate_normal(X[:40].mean(axis=0), np.cov(X[:40].T, bias=True))
        assert_allclose(model.log_density(X), normal.logpdf(X), rtol=1e-10, atol=1e-10)


@every_estimation
@pytest.mark.parametrize("name", [name for name in MODELS if "Quadratic" not in name and "own" not in name])
def test_two_classes_with_the_same_mean_and_covariance_get_their_prior(name: str, estimation: str) -> None:
    X, _ = three_classes()
    rows = X[:40] - X[:40].mean(axis=0)
    both, y = np.vstack([rows, -rows]), np.repeat(np.array(["a", "b"]), 40)
    if name == "GenerativeClassifier-blocks":
        both[40:, 0] = -both[40:, 0]
    model = MODELS[name](estimation).fit(both, y)
    assert_allclose(posterior(model, both), 0.5, rtol=1e-9)


def test_the_canonical_discriminants_of_two_classes_with_the_same_mean_are_numbers() -> None:
    X, _ = three_classes()
    rows = np.rint(X[:40] * 8.0)
    both, y = np.vstack([rows, -rows]), np.repeat(np.array(["a", "b"]), 40)
    both = np.vstack([both, -both])
    y = np.append(y, y)
    model = LinearDiscriminant().fit(both, y)
    assert model.transform(both).shape == (160, 1)
    assert np.all(np.isfinite(model.transform(both)))
    assert_array_equal(model.get_feature_names_out(), ["lineardiscriminant0"])


@every_estimation
@pytest.mark.parametrize("name", ["QuadraticDiscriminant", "QuadraticDiscriminant-spherical"])
def test_two_classes_with_the_same_mean_differ_by_their_variance(name: str, estimation: str) -> None:
    X, _ = three_classes()
    rows = X[:40] - X[:40].mean(axis=0)
    both, y = np.vstack([rows, 10.0 * rows]), np.repeat(np.array(["narrow", "wide"]), 40)
    model = MODELS[name](estimation).fit(both, y)
    assert_array_equal(model.predict([[0.0, 0.0, 0.0], [20.0, -20.0, 20.0]]), ["narrow", "wide"])


# ---------------------------------------------------------------------- threads, processes, other people


def _blocks_of_rows() -> Rows:
    rng = np.random.default_rng(11)
    y = rng.integers(0, 3, size=6000)
    return Rows(rng.normal(size=(6000, 128)) + y[:, None], y)


@pytest.fixture
def two_blas_threads() -> Iterator[None]:
    """BLAS with more than one thread, so that a test sees whether it is given them back."""
    with threadpool_limits(2, user_api="blas"):
        yield


def _blas_threads() -> list[tuple[str, int]]:
    return [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"]


def _fit_and_predict(rows: Rows) -> Floats:
    proba: Floats = LinearDiscriminant().fit(rows.X, rows.y).predict_proba(rows.X[:100])
    return proba


@pytest.mark.usefixtures("two_blas_threads")
def test_fits_in_eight_threads_at_once_give_one_answer_and_give_blas_its_threads_back() -> None:
    rows = _blocks_of_rows()
    before = _blas_threads()
    wanted = _fit_and_predict(rows)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(_fit_and_predict, [rows] * 16))
    for answer in answers:  # BLAS rounds small products by how many threads it has, which others decide
        assert_allclose(answer, wanted, rtol=1e-9)
    assert _blas_threads() == before


@pytest.mark.usefixtures("two_blas_threads")
def test_an_error_in_one_thread_gives_blas_its_threads_back() -> None:
    X, y = _blocks_of_rows()
    X[5000, 3] = np.inf
    before = _blas_threads()
    with pytest.raises(ValueError, match="row 5000"):
        LinearDiscriminant().fit(X, y)
    assert _blas_threads() == before


def test_one_model_can_be_asked_by_eight_threads_at_once() -> None:
    rows = _blocks_of_rows()
    model = QuadraticDiscriminant(estimation="bayes").fit(rows.X[:, :20], rows.y)
    wanted = model.predict_proba(rows.X[:, :20])
    fresh = QuadraticDiscriminant(estimation="bayes").fit(rows.X[:, :20], rows.y)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(fresh.predict_proba, [rows.X[:, :20]] * 8))
    for answer in answers:
        assert_array_equal(answer, wanted)


def test_a_forked_process_can_fit_and_predict_after_its_parent_did() -> None:
    rows = _blocks_of_rows()
    wanted = _fit_and_predict(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        with multiprocessing.get_context("fork").Pool(2) as pool:
            answers = pool.map_async(_fit_and_predict, [rows, rows]).get(timeout=60)
    for answer in answers:
        assert_allclose(answer, wanted, rtol=1e-9, atol=1e-14)


@pytest.mark.usefixtures("two_blas_threads")
def test_joblibs_threads_give_the_same_answers() -> None:
    rows = _blocks_of_rows()
    wanted = _fit_and_predict(rows)
    before = _blas_threads()
    answers = Parallel(n_jobs=4, backend="threading")(delayed(_fit_and_predict)(rows) for _ in range(8))
    for answer in answers:
        assert_allclose(answer, wanted, rtol=1e-9, atol=1e-14)
    assert _blas_threads() == before


# ------------------------------------------------------------------------- integers with missing values beside them

INCOMPLETE_INTEGERS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": lambda cells: pd.DataFrame({"x0": pd.array(cells, dtype="Int64")}),
    "pandas of Arrow": lambda cells: pd.DataFrame({"x0": pd.array(cells, dtype="int64[pyarrow]")}),
    "objects of pandas": lambda cells: pd.DataFrame({"x0": pd.Series(cells, dtype=object)}),
    "Polars": lambda cells: pl.DataFrame({"x0": cells}),
    "Arrow": lambda cells: pa.table({"x0": cells}),
    "a list": lambda cells: [[cell] for cell in cells],
    "objects": lambda cells: np.array(cells, dtype=object)[:, None],
    "a masked array": lambda cells: np.ma.masked_array(
        [[cell or 0] for cell in cells], mask=[[cell is None] for cell in cells]
    ),
}


@pytest.mark.parametrize("library", INCOMPLETE_INTEGERS)
@pytest.mark.parametrize("families", [{"x0": Categorical()}, None], ids=["declared", "undeclared"])
@pytest.mark.parametrize("kind", [NaiveBayes, GenerativeClassifier])
def test_labels_that_are_integers_beyond_2_to_the_53_stay_apart_beside_a_missing_value(
    library: str, families: Any, kind: Any
) -> None:
    small = [0, 1] * 20 + [None]
    X = INCOMPLETE_INTEGERS[library]([None if cell is None else cell + 2**60 for cell in small])
    y = [0, 1] * 20 + [0]
    model = kind(families).fit(X, y)
    plain = INCOMPLETE_INTEGERS[library](small)
    assert_allclose(model.predict_proba(X), kind({"x0": Categorical()}).fit(plain, y).predict_proba(plain), rtol=1e-12)
    whole = np.array([[2**60], [2**60 + 1]])
    if not hasattr(X, "columns"):
        assert_allclose(model.predict_proba(whole), model.predict_proba(X)[:2], rtol=1e-12)


@pytest.mark.parametrize("library", INCOMPLETE_INTEGERS)
@pytest.mark.parametrize("estimation", ["mle", "bayes"])
def test_numbers_beyond_2_to_the_53_keep_their_variance_beside_a_missing_value(library: str, estimation: str) -> None:
    rng = np.random.default_rng(0)
    small = [*rng.integers(0, 70, 40).tolist(), None, *rng.integers(30, 99, 40).tolist()]
    X = INCOMPLETE_INTEGERS[library]([None if cell is None else cell + 2**60 for cell in small])
    y, plain = np.repeat([0, 1], [41, 40]), INCOMPLETE_INTEGERS[library](small)
    far, near = (NaiveBayes({"x0": Gaussian()}, estimation=estimation).fit(table, y) for table in (X, plain))
    assert_allclose(far.log_joint(X), near.log_joint(plain), rtol=1e-9)
