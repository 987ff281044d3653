"""Leave-one-out in closed form equals fits without the row, and folds from statistics equal fits of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf, oas
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.model_selection import cross_validate as scikit_learns

import likely
from likely import (
    Bernoulli,
    Categorical,
    Dirichlet,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    LogNormal,
    Multinomial,
    NaiveBayes,
    NearestPrototype,
    NormalInverseWishart,
    Pairs,
    Poisson,
    QuadraticDiscriminant,
    Regularized,
)
from likely.errors import InputError, NoDensityError, NotEstimableError
from likely.families.estimation import Estimation
from likely.families.gaussian.leave_one_out.base import LeaveOneOut as GaussianLeaveOneOut
from likely.families.gaussian.leave_one_out.full import LeaveOneOutFull
from likely.families.point_mass import PointMassSums
from likely.statistics.cell_counts import CellCounts
from likely.statistics.moments import Moments
from likely.statistics.sums import Sums
from tests.helpers import load_table
from tests.laws.families import CASES, Case, every
from tests.laws.registry import PLAIN, SHRUNK, Rows

Floats = NDArray[np.float64]


def measures(n: int = 60) -> tuple[Floats, Any]:
    frame = load_table("penguins").dropna()
    rows = np.random.default_rng(0).permutation(len(frame))[:n]
    X = frame[["bill_length_mm", "bill_depth_mm", "body_mass_g"]].to_numpy()[rows]
    return X, frame["species"].to_numpy()[rows]


def refits(model: Any, X: Any, y: Any, weights: Floats | None = None) -> Floats:
    """Posteriors of every row by a model fitted without it."""
    known = clone(model).fit(X, y, weights).classes_
    out = np.zeros((len(y), len(known)))
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        rows = X[rest]
        fitted = clone(model).fit(rows, y[rest], None if weights is None else weights[rest])
        out[i, np.searchsorted(known, fitted.classes_)] = fitted.predict_proba(X[i : i + 1])[0]
    return out


def fixed(case: Any, X: Floats, y: Any) -> Any:
    """A Gaussian case with a prior that is not derived from the data."""
    family = case.family(np.unique(y))
    if case.estimation != "mle" and family.prior is None:
        family.prior = NormalInverseWishart(mean=X.mean(axis=0), mean_rows=0.3, degrees=8.0, scale=X.var(axis=0))
    return GenerativeClassifier(family, estimation=case.estimation)


# ------------------------------------------------------------------------------------------------------- Gaussians


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("case", [*PLAIN, *(c for c in SHRUNK if c.word not in ("ledoit-wolf", "oas"))], ids=str)
def test_leave_one_out_of_a_gaussian_is_a_fit_without_the_row(case: Any, weighted: bool) -> None:
    X, y = measures()
    weights = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(y)) if weighted else None
    model = fixed(case, X, y)
    assert_allclose(
        model.fit(X, y, weights).left_out_proba(X, y, weights), refits(model, X, y, weights), rtol=0, atol=1e-9
    )


def crowd(n: int = 9000) -> tuple[Floats, Any, Any]:
    """Many rows of classes that overlap, with a few far out; and the numbers of some of them."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, n)
    X = (rng.normal(size=(n, 4)) + 0.6 * y[:, None]) @ (np.eye(4) + 0.3 * rng.normal(size=(4, 4))) + [
        0.0,
        1.0,
        -5.0,
        9.0,
    ]
    X[:4] += rng.normal(size=(4, 4)) * 9.0
    return X, y, np.r_[:6, rng.integers(0, n, 6)]


@pytest.mark.parametrize("case", [*PLAIN, *(c for c in SHRUNK if c.word not in ("ledoit-wolf", "oas"))], ids=str)
def test_leave_one_out_of_many_rows_is_a_fit_without_the_row(case: Any) -> None:
    X, y, some = crowd()
    check_some(fixed(case, X, y), X, y, some)


@pytest.mark.parametrize("unbiased", [False, True], ids=["", "unbiased"])
@pytest.mark.parametrize("pooling", [0.2, 1.0])
@pytest.mark.parametrize("shared", [False, [[0, 2]]], ids=["own", "grouped"])
def test_leave_one_out_of_many_rows_with_pooled_covariances(shared: Any, pooling: float, unbiased: bool) -> None:
    X, y, some = crowd()
    family = Gaussian(shared=shared, shrinkage=Regularized(pooling, 0.0), unbiased=unbiased)
    check_some(GenerativeClassifier(family, estimation="mle"), X, y, some)


def check_some(model: Any, X: Floats, y: Any, some: Any) -> None:
    found = model.fit(X, y).left_out_proba(X, y)[some]
    for i, posterior in zip(some, found, strict=True):
        rest = np.arange(len(y)) != i
        assert_allclose(posterior, clone(model).fit(X[rest], y[rest]).predict_proba(X[[i]])[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("word", ["ledoit-wolf", "oas"])
def test_a_shrinkage_intensity_is_held_fixed(word: str) -> None:
    """It is that of all rows, as scikit-learn computes it for rows about their class means."""
    X, y = measures()
    centred = np.vstack([X[y == label] - X[y == label].mean(axis=0) for label in np.unique(y)])
    share = {"ledoit-wolf": ledoit_wolf, "oas": oas}[word](centred, assume_centered=True)[1]
    model = LinearDiscriminant(shrinkage=word).fit(X, y)
    assert_allclose(
        model.left_out_proba(X, y), refits(LinearDiscriminant(shrinkage=float(share)), X, y), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("pooling", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
def test_leave_one_out_of_regularised_covariances(covariance: str, pooling: float) -> None:
    X, y = measures()
    for unbiased in (False, True):
        family = Gaussian(covariance, shrinkage=Regularized(pooling, 0.2), unbiased=unbiased)
        model = GenerativeClassifier(family, estimation="mle")
        assert_allclose(model.fit(X, y).left_out_proba(X, y), refits(model, X, y), atol=1e-9)


def test_default_priors_are_held_fixed() -> None:
    X, y = measures()
    model = QuadraticDiscriminant(estimation="bayes").fit(X, y)
    moments = model.statistics_.blocks[0]
    total = moments.weight.sum()
    within = moments.squares.sum(axis=0) / total
    overall = moments.weight @ moments.mean / total
    between = moments.weight @ (moments.mean - overall) ** 2 / total
    rows = float(np.minimum(within / between, 0.01).min())
    prior = NormalInverseWishart(mean=overall, mean_rows=rows, degrees=5.0, scale=within)
    same = QuadraticDiscriminant(estimation="bayes", prior=prior)
    assert_allclose(model.predict_proba(X), clone(same).fit(X, y).predict_proba(X), atol=1e-12)
    assert_allclose(model.left_out_proba(X, y), refits(same, X, y), atol=1e-9)


def test_a_class_with_one_row() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(21, 2)), np.array([0] * 10 + [1] * 10 + [2])
    own = LinearDiscriminant().fit(X, y).left_out_proba(X, y)
    assert own[-1, 2] == 0.0
    assert_allclose(own[-1, :2], LinearDiscriminant().fit(X[:-1], y[:-1]).predict_proba(X[-1:])[0], atol=1e-9)
    prior = NormalInverseWishart(mean=[0.0, 0.0], mean_rows=0.5, degrees=4.0, scale=[1.0, 1.0])
    share = {0: 0.4, 1: 0.4, 2: 0.2}
    model = QuadraticDiscriminant(estimation="bayes", prior=prior, class_prior=share)
    assert_allclose(model.fit(X, y).left_out_proba(X, y), refits(model, X, y), atol=1e-9)
    assert model.left_out_proba(X, y)[-1, 2] > 0.0


@pytest.mark.parametrize("weight", [1.0, 2.5])
@pytest.mark.parametrize("estimation", ["map", "bayes"])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical", "identity"])
def test_the_only_row_of_a_class_is_impossible_in_it_under_a_flat_prior(
    covariance: str, estimation: str, weight: float
) -> None:
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(21, 2)), np.array([0] * 10 + [1] * 10 + [2]), np.array([1.0] * 20 + [weight])
    family = Gaussian(covariance, shared=True, prior=NormalInverseWishart.reference())
    model = GenerativeClassifier(family, estimation=estimation)
    left_out = model.fit(X, y, weights).left_out_proba(X, y, weights)
    assert left_out[-1, 2] == 0.0
    others = clone(model).fit(X[:-1], y[:-1]).predict_proba(X[-1:])[0]
    assert_allclose(left_out[-1, :2], others, atol=1e-9)


@pytest.mark.parametrize("power", [-600, 0, 440])
@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_leave_one_out_with_unit_variances_of_small_and_large_values(estimation: str, power: int) -> None:
    rng = np.random.default_rng(1)
    X, y = 2.0**power * rng.normal(size=(12, 2)), np.arange(12) % 3
    prior = None if estimation == "mle" else NormalInverseWishart(mean=0.0, mean_rows=0.5)
    model = GenerativeClassifier(Gaussian("identity", prior=prior), dict.fromkeys(range(3), 1.0 / 3.0), estimation)
    assert_allclose(model.fit(X, y).left_out_proba(X, y), refits(model, X, y), atol=1e-12)


def test_a_class_with_too_few_rows_is_impossible_without_one_of_them() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(33, 2)), np.array([0] * 15 + [1] * 15 + [2] * 3)
    answers = QuadraticDiscriminant().fit(X, y).left_out_proba(X, y)
    assert_array_equal(answers[-3:, 2], 0.0)
    assert_allclose(answers.sum(axis=1), 1.0)


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_leave_one_out_of_rows_with_missing_values(estimation: str) -> None:
    X, y = measures()
    X = X.copy()
    X[np.random.default_rng(4).random(X.shape) < 0.2] = np.nan
    for covariance in ("diagonal", "spherical"):
        for shared in (True, False):
            prior = NormalInverseWishart(mean=[40.0, 17.0, 4000.0], mean_rows=0.3, degrees=6.0, scale=[9.0, 4.0, 1e5])
            family = Gaussian(covariance, shared, prior=None if estimation == "mle" else prior)
            model = GenerativeClassifier(family, estimation=estimation)
            assert_allclose(model.fit(X, y).left_out_proba(X, y), refits(model, X, y), atol=1e-9)


# -------------------------------------------------------------------------------------------------- other families


OTHERS = [case for case in CASES if not isinstance(case.member.family, Gaussian | LogNormal | Pairs)]


def density_without(case: Case, rows: Rows, weights: Floats, i: int) -> Floats:
    """log p(x_i | class) of statistics from which the row's were subtracted; defaults are those of all rows."""
    member = case.member
    whole = member.statistics(rows, weights)
    part = member.statistics(Rows(rows.X[i : i + 1], rows.y[i : i + 1]), weights[i : i + 1], classes=rows.classes)
    rest = (whole - part).align(rows.classes)
    if isinstance(rest, Sums):
        rest = replace(rest, reference=whole)
    if isinstance(rest, PointMassSums):
        rest = PointMassSums(
            replace(rest.indicator, reference=whole.indicator),
            replace(rest.inner, reference=whole.inner) if isinstance(rest.inner, Sums) else rest.inner,
        )
    if isinstance(rest, CellCounts):
        member = replace(member, family=member.family._with_fixed_prior(whole, Estimation(case.estimation)))
    fitted = member.estimate(rest, case.estimation)
    return np.asarray(fitted.log_density(rows.X[i : i + 1])[:, 0])


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("incomplete", [False, True], ids=["", "incomplete"])
@every(OTHERS)
def test_leave_one_out_of_any_family(case: Case, incomplete: bool, weighted: bool) -> None:
    rows = case.member.table(seed=2)
    pick = np.random.default_rng(1).permutation(len(rows.y))[:40]
    rows = Rows(rows.X[pick], rows.y[pick])
    rows = case.member.incomplete(rows) if incomplete else rows
    n = len(rows.y)
    check_left_out(case, rows, np.random.default_rng(2).choice([0.5, 1.0, 2.0], n) if weighted else np.ones(n))


@every([case for case in OTHERS if case.member.family._smooths(Estimation(case.estimation))])
def test_the_only_row_of_a_class_leaves_the_prior_where_there_is_one(case: Case) -> None:
    rows = case.member.table(seed=2, sizes=(15, 15, 1))
    check_left_out(case, rows, np.ones(len(rows.y)))


def check_left_out(case: Case, rows: Rows, weights: Floats) -> None:
    """Row after row, against the statistics without it."""
    statistics = case.member.statistics(rows, weights)
    names = [f"x{j}" for j in range(rows.X.shape[1])]
    fitted = case.member.estimate(statistics, case.estimation)
    told = case.member.family._leave_one_out(statistics, fitted, Estimation(case.estimation), names)(
        rows.X, rows.codes, weights
    )
    for i in range(len(rows.y)):
        try:
            wanted = density_without(case, rows, weights, i)
        except NotEstimableError:
            assert np.isneginf(told[rows.codes[i], i])
            continue
        assert_allclose(told[:, i], wanted, rtol=1e-8, atol=1e-8)


MIXED = {
    "island": Categorical(categories=["Biscoe", "Dream", "Torgersen"]),
    "sex": Categorical(categories=["FEMALE", "MALE", "female", "male"]),
    ("bill_length_mm", "bill_depth_mm"): Gaussian(
        "diagonal", prior=NormalInverseWishart(mean=[44.0, 17.0], mean_rows=0.2, degrees=5.0, scale=[30.0, 4.0])
    ),
}


def test_leave_one_out_of_a_mixed_table() -> None:
    frame = load_table("penguins").iloc[::7]
    X = frame[["island", "sex", "bill_length_mm", "bill_depth_mm"]].reset_index(drop=True)
    y = frame["species"].to_numpy()
    model = GenerativeClassifier(MIXED, class_prior=Dirichlet(1.5))
    told = model.fit(X, y).left_out_proba(X, y)
    wanted = np.zeros_like(told)
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        wanted[i] = clone(model).fit(X[rest], y[rest]).predict_proba(X.iloc[[i]])[0]
    assert_allclose(told, wanted, atol=1e-9)
    assert_allclose(model.left_out_proba(X.iloc[:5], y[:5]), told[:5], atol=1e-12)
    counted = likely.cross_validate(model, X, y, LeaveOneOut())
    assert_allclose(counted.posterior, told, atol=1e-9)


def test_leave_one_out_needs_training_rows() -> None:
    X, y = measures()
    model = NaiveBayes().fit(X, y)
    with pytest.raises(InputError, match="not among the classes of the model"):
        model.left_out_proba(X[:1], ["Emu"])
    with pytest.raises(NoDensityError):
        NaiveBayes(Multinomial(complement=True)).fit(np.eye(3), [0, 1, 1]).left_out_proba(np.eye(3), [0, 1, 1])


def test_leave_one_out_shows_what_a_fit_hides() -> None:
    """A model with as many columns as it likes knows its own rows; without them it does not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 15)), np.arange(40) % 2
    model = QuadraticDiscriminant(estimation="bayes").fit(X, y)
    own = np.arange(40), y
    assert np.log(model.predict_proba(X)[own]).mean() > np.log(model.left_out_proba(X, y)[own]).mean() + 0.1


# ------------------------------------------------------------------------------------------------ cross-validation


@pytest.mark.parametrize(
    "folds",
    [
        4,
        StratifiedKFold(3, shuffle=True, random_state=0),
        KFold(4, shuffle=True, random_state=1),
        ShuffleSplit(2, random_state=2),
        RepeatedKFold(n_splits=2, n_repeats=2, random_state=3),
        TimeSeriesSplit(2),
    ],
    ids=lambda folds: type(folds).__name__,
)
@pytest.mark.parametrize(
    "model",
    [
        NaiveBayes(),
        GenerativeClassifier(),
        NaiveBayes(estimation="map"),
        GenerativeClassifier({("age", "duration_months"): Gaussian()}, class_prior="uniform"),
    ],
    ids=["naive", "default", "map", "joint"],
)
def test_folds_from_statistics_are_scikit_learns(model: Any, folds: Any) -> None:
    frame = load_table("german_credit")[::6]
    X, y = frame.drop(columns="class"), (frame["class"] == "good").astype(int)
    ours = likely.cross_validate(model, X, y, folds)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=0) if isinstance(folds, int) else folds
    theirs = scikit_learns(model, X, y, cv=splitter, scoring=("neg_log_loss", "accuracy", "neg_brier_score"))
    assert_allclose(ours.log_loss, -theirs["test_neg_log_loss"], atol=1e-9)
    assert_allclose(ours.error, 1.0 - theirs["test_accuracy"], atol=1e-12)
    assert_allclose(ours.brier, -theirs["test_neg_brier_score"], atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminant(),
        LinearDiscriminant(shrinkage="ledoit-wolf"),
        QuadraticDiscriminant(estimation="bayes"),
        QuadraticDiscriminant(groups=[["Adelie", "Gentoo"]]),
        NearestPrototype("full"),
    ],
    ids=str,
)
def test_folds_of_discriminants(model: Any) -> None:
    X, y = measures(300)
    groups = np.arange(300) % 11
    splits = list(GroupKFold(4).split(X, y, groups))
    ours = likely.cross_validate(model, X, y, splits)
    for i, (train, test) in enumerate(splits):
        fitted = clone(model).fit(X[train], y[train])
        assert_allclose(ours.posterior[test], fitted.predict_proba(X[test]), atol=1e-9)
        own = fitted.log_joint(X[test])[np.arange(len(test)), np.searchsorted(fitted.classes_, y[test])]
        assert_allclose(ours.log_likelihood[i], own.mean(), rtol=1e-9)
        assert_array_equal(ours.fold[test], i)
    assert_allclose(likely.cross_validate(model, X, y, ours.fold).posterior, ours.posterior, atol=1e-12)
    assert "mean" in str(ours)


def test_a_class_without_rows_to_learn_from_has_no_probability() -> None:
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.array([0] * 14 + [1] * 15 + [2])
    fold = np.arange(30) % 3
    result = likely.cross_validate(LinearDiscriminant(), X, y, fold)
    assert result.posterior[-1, 2] == 0.0
    assert_allclose(result.posterior.sum(axis=1), 1.0)
    assert np.all(np.isfinite(result.log_loss))
    assert result.log_likelihood[2] == -np.inf


def test_weights_count_in_learning_and_in_judging() -> None:
    X, y = measures(100)
    weights = np.random.default_rng(0).integers(0, 3, 100)
    fold = np.arange(100) % 4
    repeated = np.repeat(np.arange(100), weights)
    ours = likely.cross_validate(NaiveBayes(), X, y, fold, weights)
    theirs = likely.cross_validate(NaiveBayes(), X[repeated], y[repeated], fold[repeated])
    for name in ("log_loss", "error", "brier", "log_likelihood"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9)


def test_brier_scores_of_three_classes_are_scikit_learns() -> None:
    X, y = measures(100)
    ours = likely.cross_validate(NaiveBayes(), X, y, 2)
    for i in range(2):
        test = ours.fold == i
        assert_allclose(ours.brier[i], brier_score_loss(y[test], ours.posterior[test], labels=ours.classes), rtol=1e-12)


def test_scores_without_densities() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.poisson(2.0, (40, 5)), np.arange(40) % 2
    result = likely.cross_validate(NaiveBayes(Multinomial(complement=True), estimation="map"), X, y, 4)
    assert np.all(np.isnan(result.log_likelihood))
    assert np.all(np.isfinite(result.log_loss))


def test_bad_folds_are_refused() -> None:
    X, y = measures()
    for folds in (1, 1000, "ten", 2.5, [(np.arange(60), np.arange(0))]):
        with pytest.raises(InputError, match="folds="):
            likely.cross_validate(NaiveBayes(), X, y, folds)
    with pytest.raises(NotEstimableError, match="Fold 0"):
        likely.cross_validate(QuadraticDiscriminant(), X[:12], y[:12], 2)
    with pytest.raises(InputError, match="not an estimator"):
        likely.cross_validate(log_softmax, X, y)
    model = NaiveBayes()
    likely.cross_validate(model, X, y, 3)
    assert not hasattr(model, "classes_")


def test_families_are_chosen_anew_for_every_fold() -> None:
    """A column that is whole but for one row is something else without that row."""
    rng = np.random.default_rng(0)
    column = rng.integers(0, 5, 60).astype(float)
    column[7] = 2.5
    X, y = column[:, None], np.arange(60) % 2
    ours = likely.cross_validate(NaiveBayes(), X, y, KFold(6))
    theirs = scikit_learns(NaiveBayes(), X, y, cv=KFold(6), scoring="neg_log_loss")
    assert_allclose(ours.log_loss, -theirs["test_score"], atol=1e-9)


def test_moments_and_sums_are_what_the_laws_run_over() -> None:
    """The two tests above that tell statistics apart see both kinds."""
    kinds = {type(case.member.statistics(case.member.table())) for case in CASES}
    assert {Moments, Sums} <= kinds
    assert any(isinstance(case.member.family, Bernoulli | Poisson) for case in CASES)


PLAIN_FAMILIES = [Gaussian("full", shared) for shared in (True, False, [[0, 2]])]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("far", [0.0, 1e6])
@pytest.mark.parametrize(
    ("family", "estimation"),
    [
        *((family, word) for family in PLAIN_FAMILIES for word in ("mle", "map", "bayes")),
        (Gaussian("full", True, unbiased=True), "mle"),
    ],
    ids=str,
)
def test_blocks_of_rows_agree_with_row_by_row_evaluation(
    family: Gaussian, estimation: str, weighted: bool, far: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products for all rows at once, against each row counted by itself."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 4
    X = rng.normal(size=(600, 4)) @ rng.normal(size=(4, 4)) + 0.7 * y[:, None] * [1.0, -0.5, 0.2, 0.0] + far
    X[5] += 40.0  # a row that makes up much of its class's scatter
    weights = rng.integers(1, 4, len(y)) / 2.0 if weighted else None
    model = GenerativeClassifier(family, estimation=estimation).fit(X, y, weights)
    quick = model.left_out_proba(X, y, weights)

    for name in ("_evaluator", "update_together"):
        monkeypatch.setattr(LeaveOneOutFull, name, getattr(GaussianLeaveOneOut, name))
    assert_allclose(quick, model.left_out_proba(X, y, weights), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [(20, 500), (40, 900)])
def test_many_columns_and_few_rows_lose_no_digits(shared: bool, rows: int, columns: int) -> None:
    """What is left of a class is a product of as many shares as there are columns."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % 2
    X = rng.normal(size=(rows, columns)) + 0.05 * y[:, None]
    X[0] += 8.0
    prior = NormalInverseWishart(mean=0.0, mean_rows=0.5, degrees=4.0, scale=1.5)
    model = NaiveBayes(Gaussian("diagonal", shared, prior=prior), class_prior="uniform")
    left = model.fit(X, y).left_out_proba(X, y)
    for i in (0, 3, 8):
        rest = np.arange(rows) != i
        assert_allclose(left[i], model.fit(X[rest], y[rest]).predict_proba(X[i : i + 1])[0], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(
    ("shrinkage", "unbiased"),
    [(0.3, False), ("oas", False), ("ledoit-wolf", False), (Regularized(0.3, 0.1), False), (0.3, True)],
    ids=str,
)
def test_the_only_row_of_a_class_is_impossible_in_it_under_shrinkage_too(shrinkage: Any, unbiased: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(26, 3)), np.r_[7, 7, np.arange(24) % 3] if unbiased else np.r_[7, np.arange(25) % 3]
    model = GenerativeClassifier(Gaussian(shrinkage=shrinkage, unbiased=unbiased), estimation="mle").fit(X, y)
    left = model.left_out_proba(X, y)
    assert left[0, -1] == 0.0
    assert_allclose(left.sum(axis=1), 1.0)
    assert likely.select(X, y).ranking[0].problem is None


def test_scores_by_the_complement_have_no_leave_one_out_densities() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    X = rng.poisson(2 + y[:, None], (500, 4))
    model = NaiveBayes(Multinomial(complement=True), estimation="map").fit(X, y)
    with pytest.raises(NoDensityError, match="not densities"):
        model.left_out_proba(X, y)


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_counts_that_are_looked_up_are_held_out_as_others_are(estimation: str) -> None:
    """Rows of weight 1 are looked up; beside one of another weight they are counted."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    X = rng.poisson(2 + y[:, None], (400, 3))
    weights = np.ones(400)
    weights[-1] = 2.0
    model = NaiveBayes(Multinomial(), estimation=estimation).fit(X, y, sample_weight=weights)
    together = model.left_out_proba(X[:-1], y[:-1])
    mixed = model.left_out_proba(X, y, sample_weight=weights)
    assert_allclose(together, mixed[:-1], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_leave_one_out_of_pooled_covariances_does_not_depend_on_units(shared: bool, weighted: bool) -> None:
    X, y = measures()
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], len(y)) if weighted else None
    model = GenerativeClassifier(Gaussian(shared=shared, shrinkage=Regularized(0.3, 0.0)), estimation="mle")
    plain = model.fit(X, y, weights).left_out_proba(X, y, weights)
    units = np.array([1e-5, 1.0, 1e5])
    assert_allclose(model.fit(X * units, y, weights).left_out_proba(X * units, y, weights), plain, rtol=0, atol=1e-9)
    assert_allclose(plain, refits(model, X, y, weights), rtol=0, atol=1e-9)


@pytest.mark.parametrize("shrinkage", [0.0, Regularized(0.0, 0.0), Regularized(0.3, 0.0), Regularized(1.0, 0.0)])
@pytest.mark.parametrize("weights", ["", "many"])
@pytest.mark.parametrize("far", [0.0, 300.0])
def test_leave_one_out_without_shrinkage_to_the_identity_does_not_depend_on_units(
    shrinkage: Any, weights: str, far: float
) -> None:
    rng = np.random.default_rng(1)
    y = np.arange(40) % 3
    mixing = 0.5 * rng.standard_normal((3, 3)) + np.eye(3)
    X = rng.standard_normal((40, 3)) @ mixing + 0.7 * rng.standard_normal((3, 3))[y] + far * np.eye(3)[y]
    X[0, 0] += 1e3  # hardly anything is left without it
    X *= [1e-5, 1.0, 1e5]
    w = rng.uniform(0.2, 2.5, len(y)) if weights else None
    for model in (QuadraticDiscriminant(shrinkage=shrinkage), LinearDiscriminant(shrinkage=shrinkage)):
        model.fit(X, y, w)
        assert_allclose(model.left_out_proba(X, y, w), refits(model, X, y, w), rtol=0, atol=1e-8)


@pytest.mark.parametrize("folds", [RepeatedKFold(n_splits=3, n_repeats=4, random_state=0), ShuffleSplit(6)], ids=str)
def test_a_row_in_several_folds_has_the_posterior_of_the_reported_fold(folds: Any) -> None:
    X, y = measures(120)
    splits = list(folds.split(X))
    for _ in range(3):
        found = likely.cross_validate(LinearDiscriminant(), X, y, splits)
        expected = np.full_like(found.posterior, np.nan)
        for i, (train, test) in enumerate(splits):
            mine = test[found.fold[test] == i]
            if len(mine):
                expected[mine] = LinearDiscriminant().fit(X[train], y[train]).predict_proba(X[mine])
        assert_allclose(found.posterior, expected, rtol=0, atol=1e-9)
