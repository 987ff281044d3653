"""Covariance structures against dense algebra, and shrinkage against scikit-learn and hand formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.covariance import ledoit_wolf, oas, shrunk_covariance

from likely import (
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    NormalInverseWishart,
    QuadraticDiscriminant,
    Regularized,
)
from likely.errors import InputError
from likely.families.estimation import Estimation
from likely.families.gaussian.covariance import Covariance, SingularError, factor_subspace
from tests.laws import oracle
from tests.laws.registry import SHARINGS, Case, Floats, Rows, columns, iris, parts, penguins, random_rows

STRUCTURES = ("full", "diagonal", "spherical")
both_tables = pytest.mark.parametrize("table", [iris, penguins], ids=["iris", "penguins"])


# The values: factors of one or more groups.


def factored(name: str, active: list[int], d: int, seed: int = 0) -> tuple[Covariance, list[Floats]]:
    """Two groups' covariances of the active columns among d, and the same as dense matrices."""
    rng, r = np.random.default_rng(seed), len(active)
    roots = rng.standard_normal((2, r, 3 * r))
    matrices = np.array([oracle.shaped(root @ root.T, name) for root in roots])
    numbers = matrices if name == "full" else np.einsum("gdd->gd", matrices)
    whole = []
    for matrix in matrices:
        wide = np.zeros((d, d))
        wide[np.ix_(active, active)] = matrix
        whole.append(wide)
    return Gaussian(name)._structure.factor(numbers, np.array(active), d), whole


@pytest.mark.parametrize("active", [[0, 1, 2, 3], [1, 3]], ids=["all columns vary", "some columns vary"])
@pytest.mark.parametrize("name", ["full", "diagonal", "spherical", "identity"])
def test_a_covariance_whitens_colors_and_has_the_determinant_of_its_matrix(name: str, active: list[int]) -> None:
    covariance, matrices = factored(name, active, 4)
    assert (covariance.dimension, covariance.rank) == (4, len(active))
    assert covariance.owner.tolist() == active
    rng = np.random.default_rng(1)
    for g, matrix in enumerate(matrices):
        inner = matrix[np.ix_(active, active)]
        assert_allclose(covariance.matrix(g), matrix, rtol=1e-10, atol=1e-12)
        assert_allclose(covariance.precision(g)[np.ix_(active, active)], np.linalg.inv(inner), rtol=1e-8, atol=1e-11)
        assert covariance.log_det[g] == pytest.approx(np.linalg.slogdet(inner)[1], rel=1e-10, abs=1e-12)
        assert covariance.log_steps(g).sum() == pytest.approx(-0.5 * covariance.log_det[g], rel=1e-12, abs=1e-12)
        rows = rng.standard_normal((5, 4))
        white = covariance.whiten(rows, g)
        assert white.shape == (5, len(active))
        expected = np.einsum("nd,de,ne->n", rows[:, active], np.linalg.inv(inner), rows[:, active])
        assert_allclose((white**2).sum(axis=1), expected, rtol=1e-9)
        back = covariance.color(white, g)
        assert_allclose(back[:, active], rows[:, active], rtol=1e-9, atol=1e-11)
        assert not np.delete(back, active, axis=1).any()


def test_a_whitened_component_depends_on_its_own_column_and_earlier_ones_only() -> None:
    covariance, _ = factored("full", [0, 2, 3], 4)
    rows = np.zeros((1, 4))
    for component, owner in enumerate([0, 2, 3]):
        for column in range(owner + 1, 4):
            moved = rows.copy()
            moved[0, column] = 1.0
            assert covariance.whiten(moved, 0)[0, component] == 0.0


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_covariance_without_full_rank_names_its_group_and_columns(name: str) -> None:
    good, bad = np.eye(3), np.diag([1.0, 1.0, 0.0])
    columns = [5]
    if name == "full":
        bad = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
        columns = [4]
    numbers = np.array([good, bad]) if name == "full" else np.array([np.diag(good), np.diag(bad)])
    with pytest.raises(SingularError) as caught:
        Gaussian(name)._structure.factor(numbers, np.array([2, 4, 5]), 6)
    assert caught.value.group == 1
    assert caught.value.columns.tolist() == columns


def test_a_shared_covariance_without_full_rank_is_factored_where_rows_vary() -> None:
    root = np.random.default_rng(2).standard_normal((4, 3))
    matrix = root @ root.T
    followers = np.random.default_rng(3).standard_normal((2, 3)) @ root.T
    covariance, dependent, agree = factor_subspace(matrix, followers, np.array([0, 1, 3, 4]), 5)
    assert agree
    assert dependent.tolist() == [4]
    assert_allclose(covariance.matrix(0)[np.ix_([0, 1, 3], [0, 1, 3])], matrix[:3, :3], rtol=1e-9, atol=1e-9)
    strangers = followers + np.array([[0.0] * 4, [1.0, -1.0, 2.0, 5.0]])
    covariance, _, agree = factor_subspace(matrix, strangers, np.array([0, 1, 3, 4]), 5)
    assert not agree
    assert covariance.rank == 3
    assert_allclose(covariance.matrix(0)[np.ix_([0, 1, 3, 4], [0, 1, 3, 4])], matrix, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
@pytest.mark.parametrize("power", [-600, 0])
def test_unit_variances_are_in_the_units_of_the_rows(power: int, estimation: str) -> None:
    """Without units of columns, the squares of the smallest values would underflow."""
    X, y = 2.0**power * np.array([[1.0, 3.0], [2.0, -1.0], [5.0, 2.0], [-4.0, 1.0]]), [0, 0, 1, 1]
    prior = None if estimation == "mle" else NormalInverseWishart(mean=0.0, mean_rows=2.0)
    model = GenerativeClassifier(Gaussian("identity", prior=prior), estimation=estimation).fit(X, y)
    variance = 1.0 + 1.0 / 4.0 if estimation == "bayes" else 1.0
    for label in (0, 1):
        mean = X[2 * label : 2 * label + 2].mean(axis=0) * (1.0 if estimation == "mle" else 0.5)
        expected = multivariate_normal(mean, variance).logpdf(X) + np.log(model.class_prior_[label])
        assert_allclose(model.log_joint(X)[:, label], expected, rtol=1e-13)
    parameters = model.parameters().query("column.notna()")
    variances = parameters[parameters.parameter == "variance"]
    assert_allclose(variances.value, 1.0, rtol=0)
    assert variances.standard_error.isna().all()
    rows = 2.0 if estimation == "mle" else 4.0
    assert_allclose(parameters[parameters.parameter == "mean"].standard_error, rows**-0.5, rtol=1e-13)


@pytest.mark.parametrize("power", [-600, 0])
def test_the_likelihood_of_unit_variances_is_the_sum_of_the_densities(power: int) -> None:
    X, y = 2.0**power * np.array([[1.0, 3.0], [2.0, -1.0], [5.0, 2.0], [-4.0, 1.0]]), [0, 0, 1, 1]
    family = Gaussian("identity")
    model = GenerativeClassifier(family, {0: 0.5, 1: 0.5}, estimation="mle").fit(X, y)
    found = family._log_likelihood(model.statistics_.blocks[0], model.model_.blocks[0].conditionals, ["x0", "x1"])
    assert_allclose(found, (model.log_joint(X)[np.arange(4), y] - np.log(0.5)).sum(), rtol=1e-13)


def test_an_unknown_structure_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"covariance='round' is not known. Known: 'full', 'diagonal', 'spherical'"):
        Gaussian("round").check(Estimation.MLE)


# Shrinkage.


def centred_rows(rows: Rows, labels: list[Any]) -> Floats:
    return np.vstack([rows.of(label) - rows.of(label).mean(axis=0) for label in labels])


def in_many_blocks(case: Case, rows: Rows, seed: int) -> Any:
    """Class-conditionals from statistics summed over blocks in random order."""
    family = case.family(rows.classes)
    order = np.random.default_rng(seed).permutation(len(rows.y))
    total: Any = None
    for index in np.array_split(order, 9):
        builder = family._accumulator(rows.classes, columns(rows.X.shape[1]))
        for part in np.array_split(index, 2):
            builder.add(rows.X[part], rows.codes[part])
        total = builder.finish() if total is None else total + builder.finish()
    return family.estimate(total, Estimation.MLE, [f"x{j}" for j in range(rows.X.shape[1])])


@both_tables
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize(("word", "function"), [("ledoit-wolf", ledoit_wolf), ("oas", oas)])
def test_ledoit_wolf_and_oas_are_scikit_learns_on_class_centred_rows_in_one_block_or_many(
    word: str, function: Callable[..., Any], sharing: str, table: Callable[[], Rows]
) -> None:
    rows = table()
    case = Case("full", sharing, "mle", options=(("shrinkage", word),))
    whole, blocks = parts(case.fit(rows)), in_many_blocks(case, rows, 1)
    for k, label in enumerate(rows.classes):
        centred = centred_rows(rows, case.partners(rows.classes, label))
        expected, intensity = function(centred, assume_centered=True)
        assert 0.0 < intensity < 1.0
        for fitted in (whole, blocks):
            assert_allclose(fitted.class_covariance(k), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_ledoit_wolf_stays_scikit_learns_with_more_columns_than_rows() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((12, 30)), np.repeat([0, 1], 6)
    for shrinkage, function in (("ledoit-wolf", ledoit_wolf), ("oas", oas)):
        model = QuadraticDiscriminant(shrinkage=shrinkage).fit(X, y)
        for k in (0, 1):
            expected, _ = function(X[y == k])
            assert_allclose(model.covariance_[k], expected, rtol=1e-9, atol=1e-10)


def test_ledoit_wolf_of_weighted_rows_is_that_of_repeated_rows() -> None:
    rows = random_rows(3)
    times = np.random.default_rng(3).integers(1, 4, len(rows.y))
    model = LinearDiscriminant(shrinkage="ledoit-wolf").fit(rows.X, rows.y, times)
    repeated = Rows(np.repeat(rows.X, times, axis=0), np.repeat(rows.y, times))
    expected, _ = ledoit_wolf(centred_rows(repeated, list("abc")), assume_centered=True)
    assert_allclose(model.covariance_, expected, rtol=1e-9)


@both_tables
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0, 1])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_number_shrinks_toward_the_scaled_identity_as_scikit_learn_does(
    sharing: str, share: float, table: Callable[[], Rows]
) -> None:
    rows = table()
    fitted = parts(Case("full", sharing, "mle", options=(("shrinkage", share),)).fit(rows))
    for k, label in enumerate(rows.classes):
        _, plain = oracle.maximum_likelihood(Case("full", sharing, "mle"), rows, label)
        expected = shrunk_covariance(plain, share)
        assert_allclose(fitted.class_covariance(k), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_a_number_shrinks_variances_toward_their_mean(share: float) -> None:
    rows = iris()
    model = LinearDiscriminant("diagonal", shrinkage=share).fit(*rows)
    variances = np.diag(oracle.scatter(rows, list(rows.classes))) / len(rows.y)
    expected = (1 - share) * variances + share * variances.mean()
    assert_allclose(np.diag(model.covariance_), expected, rtol=1e-11)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize(("pooling", "sphering"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.4), (0.3, 0.4), (1.0, 0.0), (1, 1)])
def test_regularized_pools_first_and_spheres_then(pooling: float, sphering: float, unbiased: bool) -> None:
    rows, d = iris(), 4
    shrinkage = Regularized(pooling=pooling, sphering=sphering)
    model = QuadraticDiscriminant(shrinkage=shrinkage, unbiased=unbiased).fit(*rows)
    _, pooled = oracle.maximum_likelihood(Case("full", "shared", "mle"), rows, "setosa", unbiased)
    for k, label in enumerate(rows.classes):
        _, own = oracle.maximum_likelihood(Case("full", "own", "mle"), rows, label, unbiased)
        mixed = (1 - pooling) * own + pooling * pooled
        expected = (1 - sphering) * mixed + sphering * np.trace(mixed) / d * np.eye(d)
        assert_allclose(model.covariance_[k], expected, rtol=1e-10, atol=1e-12)


def test_regularized_pools_groups_with_all_classes() -> None:
    rows = iris()
    groups = [["setosa", "versicolor"]]
    model = QuadraticDiscriminant(groups=groups, shrinkage=Regularized(pooling=0.5)).fit(*rows)
    grouped = Case("full", "grouped", "mle")
    _, pooled = oracle.maximum_likelihood(Case("full", "shared", "mle"), rows, "setosa")
    for k, label in enumerate(rows.classes):
        _, own = oracle.maximum_likelihood(grouped, rows, label)
        assert_allclose(model.covariance_[k], (own + pooled) / 2, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("unbiased", [False, True])
def test_regularized_variances_follow_the_same_mixture(unbiased: bool) -> None:
    rows = iris()
    shrinkage = Regularized(pooling=0.2, sphering=0.3)
    model = QuadraticDiscriminant("diagonal", shrinkage=shrinkage, unbiased=unbiased).fit(*rows)
    _, pooled = oracle.maximum_likelihood(Case("full", "shared", "mle"), rows, "setosa", unbiased)
    for k, label in enumerate(rows.classes):
        _, own = oracle.maximum_likelihood(Case("full", "own", "mle"), rows, label, unbiased)
        mixed = 0.8 * np.diag(own) + 0.2 * np.diag(pooled)
        assert_allclose(np.diag(model.covariance_[k]), 0.7 * mixed + 0.3 * mixed.mean(), rtol=1e-10)


@pytest.mark.parametrize(
    ("shrinkage", "message"),
    [
        (-0.1, "shrinkage=-0.1 must be a number from 0 to 1"),
        (1.5, "shrinkage=1.5 must be a number from 0 to 1"),
        (float("nan"), "shrinkage=nan must be a number from 0 to 1"),
        (True, "shrinkage=True must be a number from 0 to 1"),
        ("ledoit", "shrinkage='ledoit' is not known. Known: 'ledoit-wolf', 'oas'"),
        (Regularized(pooling=2.0), "pooling=2.0 must be a number from 0 to 1"),
        (Regularized(sphering="much"), "sphering='much' must be a number from 0 to 1"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_shrinkage_is_said_so_and_nothing_is_fitted(shrinkage: Any, message: str) -> None:
    model = LinearDiscriminant(shrinkage=shrinkage)
    with pytest.raises(InputError, match=message):
        model.fit(*iris())
    assert not hasattr(model, "classes_")


def test_shrinkage_from_the_data_needs_a_full_covariance() -> None:
    for word in ("ledoit-wolf", "oas"):
        with pytest.raises(InputError, match="needs covariance='full', not 'diagonal'"):
            LinearDiscriminant("diagonal", shrinkage=word).fit(*iris())


@pytest.mark.parametrize("estimation", ["map", "bayes"])
def test_shrinkage_and_unbiased_belong_to_maximum_likelihood(estimation: str) -> None:
    for family in (Gaussian(shrinkage=0.1), Gaussian(unbiased=True)):
        with pytest.raises(InputError, match=f"belongs to estimation='mle', not to estimation='{estimation}'"):
            GenerativeClassifier(family, estimation=estimation).fit(*iris())
