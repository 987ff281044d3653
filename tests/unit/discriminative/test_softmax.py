"""Softmax regression: derivatives and their bound, separated classes, and how well weights are known."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.special import expit, logsumexp
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer

from likely import NaiveBayes, SoftmaxRegression, load, scan
from likely.data.batches import Batches
from likely.data.validation import read_table
from likely.discriminative import newton
from likely.discriminative.design import Design, DesignProfile
from likely.discriminative.newton import Problem, bound_solver, half_bound, minimise
from likely.errors import (
    DependentColumnsWarning,
    InputError,
    MissingCellError,
    NotConvergedWarning,
    NotEstimableError,
    SeparationError,
)
from likely.typing import AnyArray, Array
from tests.helpers import load_table

Draw = tuple[Array, AnyArray]


def drawn(rows: int, columns: int, classes: int, seed: int = 0) -> Draw:
    """Correlated columns with heavy tails, and labels that a softmax of them has drawn."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, size=(rows, columns)) @ (rng.normal(size=(columns, columns)) / columns**0.5)
    scores = X @ rng.normal(size=(columns, classes)) + rng.gumbel(size=(rows, classes))
    return X, scores.argmax(axis=1)


def problem_of(X: Any, y: Any, penalty: float = 0.7, weights: Any = None, intercept: bool = True) -> Problem:
    look = DesignProfile.of(X, y, lambda labels: Batches(X, labels, weights, read_table, "SoftmaxRegression"))
    design, sums = look.design(intercept, only_independent=False)
    line = np.full(design.size, penalty)
    if intercept:
        line[-1] = 0.0
    return Problem(design, sums, 2.0 * half_bound(len(sums)), line)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("intercept", [True, False])
def test_gradient_and_hessian_are_differences(classes: int, intercept: bool) -> None:
    X, y = drawn(80, 3, classes)
    weights = np.random.default_rng(1).uniform(0.0, 3.0, 80)
    problem = problem_of(X, y, weights=weights, intercept=intercept)
    B = np.random.default_rng(2).normal(size=problem.sums.shape)
    slope, hessian = problem.value_and_gradient(B)[1], problem.hessian(B)
    step = 1e-5
    for place in np.ndindex(B.shape):
        to = np.zeros_like(B)
        to[place] = step
        up, down = problem.value_and_gradient(B + to), problem.value_and_gradient(B - to)
        np.testing.assert_allclose((up[0] - down[0]) / (2.0 * step), slope[place], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose((up[1] - down[1]) / (2.0 * step), hessian[place], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("far", [1.0, 30.0, 1e4])
def test_the_objective_is_the_penalised_likelihood_however_far_the_scores(far: float) -> None:
    X, y = drawn(60, 2, 4)
    problem = problem_of(X, y)
    B = far * np.random.default_rng(3).normal(size=problem.sums.shape)
    rows = np.column_stack([X - (0.0 if problem.design.origin is None else problem.design.origin), np.ones(60)])
    scores = np.column_stack([np.zeros(60), rows @ B.T])
    loss = (logsumexp(scores, axis=1) - scores[np.arange(60), y]).sum()
    weights = np.vstack([np.zeros(2), B[:, :2]])
    weights -= weights.mean(axis=0)
    np.testing.assert_allclose(problem.value_and_gradient(B)[0], loss + 0.35 * (weights**2).sum(), rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_no_hessian_exceeds_the_bound_of_boehning(classes: int) -> None:
    X, y = drawn(200, 3, classes)
    problem = problem_of(X, y)
    gram = problem.design.gram()
    rows = np.column_stack([X if problem.design.origin is None else X - problem.design.origin, np.ones(200)])
    np.testing.assert_allclose(gram, rows.T @ rows, rtol=1e-12, atol=1e-9)
    size = problem.parameters
    prior = np.kron(problem.precision, np.diag(problem.penalty))
    bound = np.kron(half_bound(classes - 1), gram) + prior
    slope = np.random.default_rng(0).normal(size=problem.sums.shape)
    solved = bound_solver(problem, gram)(slope)
    np.testing.assert_allclose(bound @ solved.ravel(), slope.ravel(), rtol=1e-8, atol=1e-8)
    touched = 0.0
    for seed, scale in enumerate((0.0, 0.1, 1.0, 10.0)):
        B = scale * np.random.default_rng(seed).normal(size=problem.sums.shape)
        hessian = problem.hessian(B).reshape(size, size)
        assert np.linalg.eigvalsh(bound - hessian).min() > -1e-9
        touched = max(touched, float(np.linalg.eigvalsh(np.linalg.solve(bound, hessian)).max()))
    assert touched > 0.9 if classes == 2 else touched > 0.4  # the bound is not idle: with two classes it is met at 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_large_problems_have_the_minimum_that_newton_finds(
    classes: int, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = drawn(6000, 4, classes)
    weights = np.random.default_rng(0).uniform(0.1, 2.0, 6000) if weighted else None
    total = 6000.0 if weights is None else float(weights.sum())
    problem = problem_of(X, y, weights=weights)
    exact = minimise(problem, total, 1e-12, 100)
    assert exact.steps < 12
    monkeypatch.setattr(newton, "NEWTON_COST", 0.0)
    monkeypatch.setattr(newton, "SAMPLE", 300)
    sampled = minimise(problem, total, 1e-12, 100)
    monkeypatch.setattr(newton, "HESSIAN_COST", 0.0)
    bounded = minimise(problem, total, 1e-12, 1000)
    for other in (sampled, bounded):
        assert other.converged
        np.testing.assert_allclose(other.value, exact.value, rtol=1e-11)
        np.testing.assert_allclose(other.B, exact.B, atol=1e-4)
        assert np.all(np.diff(other.path) <= 1e-9)
    assert sampled.steps < bounded.steps


def test_weights_count_rows_and_soft_targets_are_weighted_labels() -> None:
    X, y = drawn(150, 3, 3)
    counts = np.random.default_rng(0).integers(0, 4, 150)
    weighted = SoftmaxRegression().fit(X, y, sample_weight=counts)
    repeated = SoftmaxRegression().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-9)
    np.testing.assert_allclose(weighted.summary().deviance, repeated.summary().deviance, rtol=1e-10)
    shares = np.random.default_rng(1).dirichlet(np.ones(3), 150)
    soft = SoftmaxRegression().fit(X, shares, sample_weight=counts)
    spread = SoftmaxRegression().fit(
        np.repeat(X, 3, axis=0), np.tile(np.arange(3), 150), sample_weight=(shares * counts[:, None]).ravel()
    )
    np.testing.assert_allclose(soft.coef_, spread.coef_, atol=1e-8)
    np.testing.assert_allclose(soft.intercept_, spread.intercept_, atol=1e-8)
    named = SoftmaxRegression().fit(X, pd.DataFrame(shares, columns=["a", "b", "c"]))
    assert named.classes_.tolist() == ["a", "b", "c"]
    turned = SoftmaxRegression().fit(X, pd.DataFrame(shares[:, ::-1], columns=["c", "b", "a"]))
    assert turned.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(turned.predict_proba(X), named.predict_proba(X), atol=1e-10)
    with pytest.raises(InputError, match=r"row 1: .*add up to 1"):
        SoftmaxRegression().fit(X[:2], [[0.5, 0.5], [0.5, 0.6]])


def test_units_places_and_orders_do_not_matter_without_a_penalty() -> None:
    X, y = drawn(300, 4, 3)
    plain = SoftmaxRegression(penalty=0).fit(X, y)
    order = [2, 0, 3, 1]
    scale, place = np.array([1e-3, 1e6, 1.0, 1e3]), np.array([1e3, -1e8, 1e6, 0.0])
    moved = SoftmaxRegression(penalty=0).fit((X * scale + place)[:, order], y)
    np.testing.assert_allclose(moved.coef_[:, np.argsort(order)] * scale, plain.coef_, rtol=1e-5)
    np.testing.assert_allclose(
        moved.predict_proba((X * scale + place)[:, order]), plain.predict_proba(X), rtol=1e-5, atol=1e-9
    )
    named = np.array(["z", "m", "a"])[y]
    renamed = SoftmaxRegression(penalty=0).fit(X, named)
    np.testing.assert_allclose(renamed.predict_proba(X), plain.predict_proba(X)[:, ::-1], atol=1e-8)
    huge = SoftmaxRegression(penalty=0).fit(X * 1e138, y)
    np.testing.assert_allclose(huge.predict_proba(X * 1e138), plain.predict_proba(X), atol=1e-8)


def test_the_class_of_reference_changes_the_penalty_alone() -> None:
    X, y = drawn(200, 3, 4)
    plain = SoftmaxRegression(penalty=0).fit(X, y)
    for label in range(4):
        against = SoftmaxRegression(penalty=0, reference=label).fit(X, y)
        np.testing.assert_allclose(against.predict_proba(X), plain.predict_proba(X), atol=1e-8)
        assert not against.coef_[label].any()
        assert all(c.label != label for c in against.summary().coefficients)
    best = SoftmaxRegression(penalty=2.0, reference=3).fit(X, y)

    def objective(coef: Array, intercept: Array) -> float:
        scores = X @ coef.T + intercept
        return float((logsumexp(scores, axis=1) - scores[np.arange(200), y]).sum() + (coef**2).sum())

    least = objective(best.coef_, best.intercept_)
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = 1e-3 * rng.normal(size=best.coef_.shape)
        step[3] = 0.0
        assert objective(best.coef_ + step, best.intercept_) > least
    with pytest.raises(InputError, match="reference='x' is not among the classes"):
        SoftmaxRegression(reference="x").fit(X, y)


def test_errors_are_those_of_the_inverse_hessian_against_any_class() -> None:
    X, y = drawn(400, 2, 3)
    for label in range(3):
        table = SoftmaxRegression(penalty=0, reference=label).fit(X, y).summary().coefficients
        # Relabel so that the reference comes first: the plain order then has the same contrasts.
        order = [label, *(k for k in range(3) if k != label)]
        other = SoftmaxRegression(penalty=0).fit(X, np.argsort(order)[y]).summary().coefficients
        names = {k: i for i, k in enumerate(order)}
        found: Any = {(names[c.label], c.column): (c.estimate, c.error) for c in table}
        expected: Any = {(c.label, c.column): (c.estimate, c.error) for c in other}
        for key, pair in expected.items():
            np.testing.assert_allclose(found[key], pair, rtol=1e-6)


def test_intervals_cover_and_p_values_are_two_sided() -> None:
    table = SoftmaxRegression(penalty=0).fit(*drawn(300, 2, 2)).summary(level=0.9).coefficients
    for c in table:
        assert c.error is not None
        assert c.low is not None
        assert c.high is not None
        assert c.z is not None
        np.testing.assert_allclose(c.high - c.low, 2.0 * 1.6448536269514722 * c.error, rtol=1e-9)
        np.testing.assert_allclose(c.z, c.estimate / c.error, rtol=1e-12)
    hits, rng = 0, np.random.default_rng(0)
    for _ in range(200):
        X = rng.normal(size=(120, 1))
        y = rng.random(120) < expit(0.5 + X[:, 0])
        _, slope = SoftmaxRegression(penalty=0).fit(X, y).summary().coefficients
        assert slope.low is not None
        assert slope.high is not None
        hits += slope.low <= 1.0 <= slope.high
    assert 180 <= hits <= 199


# -- separation


def test_separated_classes_are_an_error_that_names_the_column() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"noise": rng.normal(size=60), "age": np.arange(60.0), "more": rng.normal(size=60)})
    y = np.where(frame["age"] < 30, "young", "old")
    with pytest.raises(SeparationError, match=r"'age' separates the classes perfectly.*penalty") as caught:
        SoftmaxRegression(penalty=0).fit(frame, y)
    assert isinstance(caught.value, NotEstimableError)
    direction: Any = caught.value.direction
    assert list(direction) == ["young"]
    assert list(direction["young"]) == ["age"]
    assert direction["young"]["age"] < 0.0
    SoftmaxRegression(penalty=1e-3).fit(frame, y)


def test_classes_that_touch_are_separated_too() -> None:
    X = np.array([[0.0], [1.0], [2.0], [2.0], [3.0], [4.0]])
    y = [0, 0, 0, 1, 1, 1]
    with pytest.raises(SeparationError, match="'x0' separates the classes perfectly"):
        SoftmaxRegression(penalty=0).fit(X, y)
    overlapping = SoftmaxRegression(penalty=0).fit(np.vstack([X, [[2.5], [1.5]]]), [*y, 0, 1])
    assert overlapping.converged_


def test_a_category_of_one_class_alone_is_found_among_other_columns() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 5))
    y = (X[:, 0] + rng.normal(size=500) > 0).astype(int)
    rare = (rng.random(500) < 0.05) & (y == 1)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(rare=rare)
    with pytest.raises(SeparationError, match="'rare' separates"):
        SoftmaxRegression(penalty=0).fit(frame, y)


def test_one_class_of_several_may_be_separated() -> None:
    iris = load_table("iris")
    with pytest.raises(SeparationError) as caught:
        SoftmaxRegression(penalty=0).fit(iris.drop(columns="Species"), iris["Species"])
    assert caught.value.direction
    pair = SoftmaxRegression(penalty=0).fit(iris.iloc[50:].drop(columns="Species"), iris["Species"].iloc[50:])
    assert pair.converged_


def test_separation_of_many_rows_is_found_and_overlap_of_many_rows_believed() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, size=(30_000, 3))
    y = (X @ [1.0, -2.0, 0.5] > 0.0).astype(int)
    with pytest.raises(SeparationError):
        SoftmaxRegression(penalty=0).fit(X, y)
    y[:3] = 1 - y[:3]
    assert SoftmaxRegression(penalty=0).fit(X, y).converged_


def test_dependent_and_constant_columns_have_no_weight_without_a_penalty() -> None:
    X, y = drawn(200, 3, 3)
    wide = np.column_stack([X, np.ones(200), X[:, 0] - 2.0 * X[:, 1]])
    with pytest.warns(DependentColumnsWarning, match="Columns 'x3', 'x4' are constant or a linear"):
        model = SoftmaxRegression(penalty=0).fit(wide, y)
    np.testing.assert_allclose(
        model.predict_proba(wide), SoftmaxRegression(penalty=0).fit(X, y).predict_proba(X), atol=1e-9
    )
    assert not model.coef_[:, 3:].any()
    assert model.summary().parameters == 8.0
    smooth = SoftmaxRegression().fit(wide, y)
    assert smooth.converged_


# -- the posterior of the weights


@pytest.mark.parametrize("classes", [2, 4])
def test_predictive_probabilities_are_near_the_mean_over_the_posterior(classes: int) -> None:
    X, y = drawn(60, 2, classes, seed=5)
    model = SoftmaxRegression(estimation="bayes").fit(X, y)
    odds = model.odds_
    assert odds.covariance is not None
    few, size = odds.covariance.shape[:2]
    centre = np.column_stack([odds.linear, odds.constant]).ravel()
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(centre, odds.covariance.reshape(few * size, -1), 20_000).reshape(-1, few, size)
    far = np.vstack([X[:20], 4.0 * X[20:40]])
    rows = np.column_stack([far - odds.origin, np.ones(40)])
    scores = np.concatenate([np.zeros((20_000, 1, 40)), draws @ rows.T], axis=1)
    mean = np.exp(scores - logsumexp(scores, axis=1, keepdims=True)).mean(axis=0).T
    plugged = SoftmaxRegression().fit(X, y).predict_proba(far)
    ours = model.predict_proba(far)
    np.testing.assert_allclose(ours.sum(axis=1), 1.0, rtol=1e-12)
    assert np.abs(ours - mean).max() < 0.03
    assert np.abs(ours - mean).mean() < 0.3 * np.abs(plugged - mean).mean()
    np.testing.assert_array_equal(model.coef_, SoftmaxRegression().fit(X, y).coef_)


def test_two_classes_have_the_moderated_sigmoid() -> None:
    X, y = drawn(40, 2, 2)
    model = SoftmaxRegression(estimation="bayes", penalty=0.5).fit(X, y)
    rows = np.column_stack([X, np.ones(40)])
    weights = np.append(model.coef_[0], model.intercept_)
    p = expit(rows @ weights)
    hessian = rows.T @ (rows * (p * (1.0 - p))[:, None]) + np.diag([0.5, 0.5, 0.0])
    variance = np.einsum("nd,de,ne->n", rows, np.linalg.inv(hessian), rows)
    expected = expit(rows @ weights / np.sqrt(1.0 + np.pi * variance / 8.0))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, rtol=1e-7)
    told: Any = [c.error for c in model.summary().coefficients]
    np.testing.assert_allclose(told, np.sqrt(np.diag(np.linalg.inv(hessian)))[[2, 0, 1]], rtol=1e-6)


# -- tables of any kind


class Chunks:
    def __init__(self, X: Array, step: int) -> None:
        self.X, self.step = X, step

    def chunks(self) -> Iterator[Array]:
        for start in range(0, len(self.X), self.step):
            yield self.X[start : start + self.step]


def test_sparse_rows_chunks_and_frames_give_the_same_model() -> None:
    X, y = drawn(300, 4, 3)
    X[np.abs(X) < 0.3] = 0.0
    plain = SoftmaxRegression().fit(X, y)
    sparse = SoftmaxRegression().fit(scipy.sparse.csr_array(X), y)
    chunked = SoftmaxRegression().fit(Chunks(X, 70), np.sort(y))
    ordered = SoftmaxRegression().fit(X, np.sort(y))
    framed = SoftmaxRegression().fit(pd.DataFrame(X, columns=list("abcd")).assign(y=y), "y")
    np.testing.assert_allclose(sparse.coef_, plain.coef_, atol=1e-8)
    np.testing.assert_allclose(chunked.coef_, ordered.coef_, atol=1e-8)
    np.testing.assert_allclose(framed.coef_, plain.coef_, atol=1e-12)
    np.testing.assert_allclose(sparse.predict_proba(scipy.sparse.csr_array(X)), plain.predict_proba(X), atol=1e-8)
    assert [c.column for c in framed.summary().coefficients[:5]] == ["(intercept)", "a", "b", "c", "d"]
    wide = scipy.sparse.random_array((200, 5000), density=0.01, rng=np.random.default_rng(0), format="csr")
    labels = np.arange(200) % 3
    ours = SoftmaxRegression().fit(wide, labels)
    theirs = LogisticRegression(tol=1e-8, max_iter=1000).fit(wide, labels)
    np.testing.assert_allclose(ours.predict_proba(wide), theirs.predict_proba(wide), atol=1e-5)


def test_a_basis_makes_features() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1.5).astype(int)
    flat = SoftmaxRegression().fit(X, y).score(X, y)
    curved = SoftmaxRegression(basis=PolynomialFeatures(2, include_bias=False)).fit(X, y)
    assert curved.score(X, y) > 0.97 > flat
    assert [c.column for c in curved.summary().coefficients] == ["(intercept)", "x0", "x1", "x0^2", "x0 x1", "x1^2"]
    assert curved.explain(X[:3]).columns == ("x0", "x1", "x0^2", "x0 x1", "x1^2")
    assert SoftmaxRegression(basis=SplineTransformer()).fit(X, y).score(X, y) > 0.95
    penguins = load_table("penguins").dropna()
    one_hot = ColumnTransformer([("labels", OneHotEncoder(drop="first"), ["island", "sex"])], remainder="passthrough")
    mixed = SoftmaxRegression(basis=one_hot).fit(penguins, "species")
    assert mixed.score(penguins.drop(columns="species"), penguins["species"]) > 0.98
    with pytest.raises(InputError, match="cannot hold"):
        mixed.save("nowhere")


def test_explanations_add_up_to_the_scores() -> None:
    X, y = drawn(100, 3, 3)
    model = SoftmaxRegression().fit(X, y)
    told = model.explain(X)
    total = told.offset + told.evidence.sum(axis=2)
    np.testing.assert_allclose(
        total - logsumexp(total, axis=1, keepdims=True), model.predict_log_proba(X), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_, atol=1e-10)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-12)


def test_a_saved_model_answers_alike(tmp_path: Any) -> None:
    X, y = drawn(100, 3, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = SoftmaxRegression(estimation="bayes").fit(frame, y)
    model.save(tmp_path / "model.likely")
    again = load(tmp_path / "model.likely")
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert str(again.summary()) == str(model.summary())
    assert again.feature_names_in_.tolist() == ["a", "b", "c"]


# -- what cannot be


def test_bad_input_is_reported() -> None:
    X, y = drawn(30, 2, 2)
    incomplete = X.copy()
    incomplete[3, 1] = np.nan
    with pytest.raises(MissingCellError, match=r"Column 'x1', row 3: nan is missing.*Imputer"):
        SoftmaxRegression().fit(incomplete, y)
    model = SoftmaxRegression().fit(X, y)
    with pytest.raises(MissingCellError, match=r"Column 'x1', row 3: nan is missing.*Imputer"):
        model.predict(incomplete)
    incomplete[3, 1] = np.inf
    with pytest.raises(InputError, match="Column 'x1', row 3: inf"):
        SoftmaxRegression().fit(incomplete, y)
    with pytest.raises(InputError, match="one class"):
        SoftmaxRegression().fit(X, np.zeros(30))
    with pytest.raises(InputError, match="row 2"):
        SoftmaxRegression().fit(X[:4], ["a", "b", None, "a"])
    with pytest.raises(InputError, match=r"'a', row 0: 'text' is not a number"):
        SoftmaxRegression().fit(pd.DataFrame({"a": ["text", "more"]}), [0, 1])
    for options in ({"penalty": -1.0}, {"tol": -1.0}, {"max_iter": 0}, {"basis": 3}, {"estimation": "mle"}):
        with pytest.raises(InputError):
            SoftmaxRegression(**options).fit(X, y)
    with pytest.warns(NotConvergedWarning):
        SoftmaxRegression(max_iter=1).fit(X, y)


def test_tiny_tables_are_learnt_from() -> None:
    model = SoftmaxRegression().fit([[0.0], [1.0]], ["a", "b"])
    np.testing.assert_allclose(model.predict_proba([[0.5]]), [[0.5, 0.5]], atol=1e-9)
    constant = SoftmaxRegression().fit(np.ones((5, 2)), [0, 0, 0, 1, 1])
    np.testing.assert_allclose(constant.predict_proba([[1.0, 1.0]]), [[0.6, 0.4]], atol=1e-9)


def test_a_first_look_reads_designs_of_its_own() -> None:
    """A design that drops nothing has the sums that its own pass over the rows finds."""
    X, y = drawn(90, 3, 3)
    for intercept in (True, False):
        problem = problem_of(X + 1e5, y, weights=np.arange(90.0), intercept=intercept)
        design: Design = problem.design
        np.testing.assert_allclose(design.sums()[1:], problem.sums, rtol=1e-9, atol=1e-6)


def test_sparse_rows_may_be_asked_about_after_dense_ones_were_learnt() -> None:
    X, y = drawn(80, 3, 3)
    for model in (SoftmaxRegression(), SoftmaxRegression(estimation="bayes")):
        model.fit(X + 5.0, y)
        sparse = scipy.sparse.csr_array(X + 5.0)
        np.testing.assert_allclose(model.predict_proba(sparse), model.predict_proba(X + 5.0), rtol=1e-9)
        np.testing.assert_allclose(model.explain(sparse).evidence, model.explain(X + 5.0).evidence, rtol=1e-9)


def test_few_rows_of_very_many_columns_have_no_standard_errors_by_default() -> None:
    X = np.random.default_rng(0).normal(size=(12, 3001))
    model = SoftmaxRegression().fit(X, np.arange(12) % 2)
    assert model.summary().coefficients[0].error is None
    with pytest.raises(InputError, match="standard errors are computed for at most 3000"):
        SoftmaxRegression(inference=True).fit(X, np.arange(12) % 2)


@pytest.mark.parametrize(("rows", "rare"), [(1000, 1), (5000, 3), (20_000, 2)])
def test_a_rare_category_of_one_class_is_found_among_many_rows(rows: int, rare: int) -> None:
    rng = np.random.default_rng(rows)
    X, y = rng.normal(size=(rows, 3)), rng.integers(0, 2, rows)
    X[:, 2] = 0.0
    X[rng.choice(np.flatnonzero(y == 1), rare, replace=False), 2] = 1.0
    with pytest.raises(SeparationError, match="'x2' separates") as caught:
        SoftmaxRegression(penalty=0).fit(X, y)
    ((label, weights),) = caught.value.direction.items()
    assert (label, list(weights)) == (1, ["x2"])
    assert weights["x2"] > 0.0


def test_far_rows_have_probabilities_under_bayes_too() -> None:
    X, y = drawn(60, 3, 3)
    model = SoftmaxRegression(estimation="bayes").fit(X, y)
    far = [model.predict_proba(X[:5] * size) for size in (1e60, 1e99, 1e101, 1e120, 1e139)]
    for answer in far:
        np.testing.assert_allclose(answer, far[0], rtol=1e-6)
        np.testing.assert_allclose(answer.sum(axis=1), 1.0)


@pytest.mark.parametrize("unit", [1e-200, 1e-150, 1e120, 1e138])
def test_errors_have_any_unit(unit: float) -> None:
    X, y = drawn(80, 2, 2)
    plain, scaled = (SoftmaxRegression(penalty=0).fit(rows, y).summary() for rows in (X, X * unit))
    for one, other in zip(plain.coefficients, scaled.coefficients, strict=True):
        np.testing.assert_allclose(np.array(one.z, dtype=float), np.array(other.z, dtype=float), rtol=1e-6)
        assert other.error


def test_constant_columns_leave_the_class_proportions() -> None:
    y = np.array([0, 0, 0, 1, 1])
    with pytest.warns(DependentColumnsWarning):
        model = SoftmaxRegression(penalty=0).fit(np.ones((5, 2)), y)
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 2))), [[0.6, 0.4]], atol=1e-9)
    with pytest.raises(InputError, match="All columns are constant"):
        SoftmaxRegression(penalty=0, fit_intercept=False).fit(np.zeros((5, 1)), y)
    X, labels = drawn(60, 2, 2)
    with pytest.warns(DependentColumnsWarning, match="'x2'"):
        sparse = SoftmaxRegression(penalty=0).fit(scipy.sparse.csr_array(np.column_stack([X, np.zeros(60)])), labels)
    np.testing.assert_allclose(sparse.coef_[:, :2], SoftmaxRegression(penalty=0).fit(X, labels).coef_, rtol=1e-6)
    assert SoftmaxRegression(tol=0.0).fit(X, labels).converged_


def test_the_minimum_is_reached_where_far_rows_spoil_the_digits_of_the_objective() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = np.r_[rng.normal(size=(60, 2)), [[10.0 ** (1 + seed % 5), 0.0]] * 3]
        y = np.r_[X[:60, 0] + rng.logistic(size=60) > 0.0, [True] * 3]
        model = SoftmaxRegression(penalty=0.01).fit(X, y)
        rows, b = np.c_[X, np.ones(63)], np.r_[model.coef_[0], model.intercept_]
        p, penalty = expit(rows @ b), np.diag([0.01, 0.01, 0.0])
        hessian = (rows.T * p * (1.0 - p)) @ rows + penalty
        unit = 1.0 / np.sqrt(np.diagonal(hessian))
        step = unit * np.linalg.solve(hessian * unit * unit[:, None], unit * (rows.T @ (p - y) + penalty @ b))
        assert np.abs(step).max() < 1e-10 * np.abs(b).max()


def test_text_columns_are_reported_with_a_remedy_that_exists() -> None:
    X = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "word": ["a", "b", "a", "b"]})
    with pytest.raises(
        InputError, match=r"'word', row 0: 'a' is not a number.*OneHotEncoder.*HybridClassifier"
    ) as caught:
        SoftmaxRegression().fit(X, [0, 1, 0, 1])
    assert "families" not in str(caught.value)
    basis = make_column_transformer((OneHotEncoder(), ["word"]), remainder="passthrough")
    assert SoftmaxRegression(basis=basis).fit(X, [0, 1, 0, 1]).converged_


def test_warnings_of_convergence_are_those_of_scikit_learn() -> None:
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        SoftmaxRegression(max_iter=1).fit(X, y)
    with pytest.raises(TypeError, match=r"^NaiveBayes\.__init__\(\)"):
        NaiveBayes(families=None, wrong=1)  # type: ignore[call-arg]


def test_the_remedies_for_a_scan_are_possible_with_a_scan(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "kind": list("uvuv"), "y": list("ppqq")})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    rows = scan(tmp_path / "rows.csv")
    with pytest.raises(InputError, match=r"basis needs all rows.*scan\(sql=\.\.\.\).*HybridClassifier.*into a frame"):
        SoftmaxRegression(basis=PolynomialFeatures(2)).fit(rows, "y")
    with pytest.raises(InputError, match=r"'kind', row 0: 'u' is not a number.*scan\(sql=\.\.\.\)") as caught:
        SoftmaxRegression().fit(rows, "y")
    assert "basis" not in str(caught.value)
