"""Missing values in joint Gaussian blocks: moments per missingness pattern are sums, and EM over them is EM of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import StratifiedKFold
from sklearn.model_selection import cross_validate as scikit_learns

import likely
from likely import (
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    LinearDiscriminant,
    LogNormal,
    NaiveBayes,
    NearestPrototype,
    NormalInverseWishart,
    QuadraticDiscriminant,
    Regularized,
)
from likely.data.validation import read_table
from likely.errors import (
    EarlyChoiceWarning,
    InputError,
    MissingCellError,
    MissingPatternsError,
    NotConvergedWarning,
    NotEstimableError,
)
from likely.model.em import EMOptions, fit_by_em
from likely.statistics import pattern_moments
from likely.statistics.moments import Moments
from likely.statistics.pattern_moments import PatternMoments
from tests.helpers import fits, load_table

MEASURES = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")


def drawn(rows: int = 150, columns: int = 4, proportion: float = 0.2, seed: int = 0) -> tuple[Any, Any]:
    """Three classes of correlated columns, with values missing at random."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(rows) % 3)
    X = rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns)) + y[:, None] * rng.normal(size=columns)
    X[rng.random(X.shape) < proportion] = np.nan
    return X, y


def penguins(proportion: float = 0.0) -> tuple[Any, Any]:
    frame = load_table("penguins")
    X, y = frame.drop(columns="species"), frame["species"].to_numpy()
    rng = np.random.default_rng(0)
    for name in MEASURES if proportion else ():
        X.loc[rng.random(len(X)) < proportion, name] = np.nan
    return X, y


MODELS: dict[str, Any] = {
    **{
        f"{estimation}, shared={shared}": (Gaussian(shared=shared), estimation)
        for estimation in ("mle", "map", "bayes")
        for shared in (True, False, [[0, 2]])
    },
    "unbiased": (Gaussian(unbiased=True), "mle"),
    "shrinkage": (Gaussian(shrinkage=0.2), "mle"),
    "oas": (Gaussian(shared=True, shrinkage="oas"), "mle"),
    "pooling": (Gaussian(shrinkage=Regularized(0.4, 0.0)), "mle"),
    "regularized": (Gaussian(shrinkage=Regularized(0.4, 0.3)), "mle"),
    "prior": (Gaussian(prior=NormalInverseWishart(0.5, 2.0, 9.0, 1.5)), "bayes"),
}


def make(name: str) -> Any:
    family, estimation = MODELS[name]
    return GenerativeClassifier(family, estimation=estimation)


def assert_same_statistics(mine: Any, yours: Any, rtol: float = 1e-9) -> None:
    """The same rows: moments of observed values, and of the patterns that both have."""
    assert_array_equal(mine.classes, yours.classes)
    for a, b in zip(*(part.blocks for part in (mine, yours)), strict=True):
        if not isinstance(a, PatternMoments):
            continue
        assert_array_equal(a.available.rows, b.available.rows)
        assert_allclose(a.available.weight, b.available.weight, rtol=rtol)
        assert_allclose(a.available.mean, b.available.mean, rtol=rtol, atol=1e-9)
        assert_allclose(a.available.squares, b.available.squares, rtol=rtol)
        found = [{m.tobytes(): part for m, part in zip(s.missing, s.parts, strict=True)} for s in (a, b)]
        for mask in found[0].keys() & found[1].keys():
            assert_allclose(found[0][mask].scatter, found[1][mask].scatter, rtol=rtol, atol=1e-9)
        assert fits(a)
        assert fits(b)


class Statistics:
    """`statistics_` with the classes of its counts."""

    def __init__(self, model: Any) -> None:
        self.classes, self.blocks = model.classes_, model.statistics_.blocks


# ------------------------------------------------------------------------------------------------------------ estimates


@pytest.mark.parametrize("name", MODELS)
def test_em_over_patterns_is_em_over_rows(name: str) -> None:
    """Two implementations: closed forms for each pattern, and conditional expectations row by row."""
    X, y = drawn()
    model = make(name).fit(X, y)
    batches = model._batches(X, y, None, model._table)
    specification = model._specify(batches)
    statistics, history = fit_by_em(specification, batches, np.unique(y), EMOptions(5000, 1e-14, 0.0))
    assert history.converged
    expected = specification.estimate(statistics)[0]
    assert_allclose(model.predict_proba(X), expected.posterior(read_table(X)), atol=3e-6)
    assert model.converged_
    assert 5 < model.n_iter_ < 100
    assert model._fit.history is None


@pytest.mark.parametrize("name", MODELS)
def test_the_default_tolerance_is_tight(name: str) -> None:
    X, y = drawn(proportion=0.4, seed=3)
    model = make(name).fit(X, y)
    longer = make(name).set_params(tol=1e-10, max_iter=5000).fit(X, y)
    assert_allclose(model.predict_proba(X), longer.predict_proba(X), atol=1e-6)


def test_discriminants_have_a_tolerance() -> None:
    X, y = drawn(proportion=0.4)
    for kind in (LinearDiscriminant, QuadraticDiscriminant, lambda **given: NearestPrototype("full", **given)):
        model = kind().fit(X, y)
        longer = kind(tol=1e-10, max_iter=5000).fit(X, y)
        assert_allclose(model.predict_proba(X), longer.predict_proba(X), atol=1e-6)
        assert longer.n_iter_ >= model.n_iter_ > 1
        with pytest.warns(NotConvergedWarning, match=r"'x0', 'x1', 'x2', 'x3' did not converge in 3 iterations"):
            short = kind(max_iter=3).fit(X, y)
        assert short.n_iter_ == 3
        assert not short.converged_
        rough = kind(tol=1.0).fit(X, y)
        assert rough.n_iter_ < model.n_iter_
        for wrong in ({"max_iter": 0}, {"tol": -1.0}):
            with pytest.raises(InputError, match=next(iter(wrong))):
                kind(**wrong).fit(X, y)


@pytest.mark.parametrize("name", ["mle, shared=True", "bayes, shared=False"])
def test_units_and_the_order_of_columns_change_nothing(name: str) -> None:
    X, y = drawn()
    expected = make(name).fit(X, y).predict_proba(X)
    turned, scale = X[:, ::-1], np.array([1e-150, 1e138, 1e3, 1.0])
    assert_allclose(make(name).fit(turned, y).predict_proba(turned), expected, atol=1e-9)
    moved = (X + np.array([0.0, 0.0, 1e3, -50.0])) * scale
    assert_allclose(make(name).fit(moved, y).predict_proba(moved), expected, atol=1e-7)
    constant = np.column_stack([X, np.where(np.arange(len(X)) % 7, 3.0, np.nan)])
    assert_allclose(make(name).fit(constant, y).predict_proba(constant), expected, atol=1e-9)


def test_the_likelihood_of_patterns_is_that_of_rows() -> None:
    X, y = drawn(rows=800, columns=9, proportion=0.3)
    model: Any = GenerativeClassifier(Gaussian(shared=True), estimation="mle", class_prior="uniform").fit(X, y)
    found = model.specification_.log_likelihood(model.model_, model.statistics_)
    codes = np.searchsorted(model.classes_, y)
    assert len(model.statistics_.blocks[0].parts) > 64
    assert_allclose(found, model.log_joint(X)[np.arange(len(y)), codes].sum(), rtol=1e-12)


# --------------------------------------------------------------------------------------------------------------- sums


@pytest.mark.parametrize("name", MODELS)
def test_batches_sums_and_removals(name: str) -> None:
    X, y = drawn()
    whole, order = make(name).fit(X, y), np.random.default_rng(1).permutation(len(y))
    batched = make(name)
    for part in np.array_split(order, 5):
        batched.partial_fit(X[part], y[part])
    half = make(name).fit(X[:80], y[:80])
    added = half + make(name).fit(X[80:], y[80:])
    both = make(name).fit(np.vstack([X, X[40:60]]), np.append(y, y[40:60])).forget(X[40:60], y[40:60])
    for model in (batched, added, both):
        assert_same_statistics(Statistics(model), Statistics(whole))
        assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-6)
    back = added.forget(X[80:], y[80:])
    assert_allclose(back.predict_proba(X), half.predict_proba(X), atol=1e-6)


def test_the_penguins_as_they_are() -> None:
    X, y = penguins()
    assert X.isna().to_numpy().any()
    whole = GenerativeClassifier().fit(X, y)
    assert isinstance(whole.families_[MEASURES], Gaussian)
    halves = [GenerativeClassifier().fit(X[i::2], y[i::2]) for i in range(2)]
    declared = GenerativeClassifier(dict(halves[0].families_)).fit(X, y)
    assert_allclose(halves[0].partial_fit(X[1::2], y[1::2]).predict_proba(X), declared.predict_proba(X), atol=1e-9)
    halves = [GenerativeClassifier(dict(whole.families_)).fit(X[i::2], y[i::2]) for i in range(2)]
    assert_allclose((halves[0] + halves[1]).predict_proba(X), whole.predict_proba(X), atol=1e-9)
    assert likely.cross_validate(GenerativeClassifier(), X, y).log_loss.mean() < 0.02
    assert not whole.impute(X).isna().to_numpy().any()


def test_incomplete_rows_that_are_all_forgotten_leave_plain_moments() -> None:
    X, y = drawn()
    complete = ~np.isnan(X).any(axis=1)
    plain = GenerativeClassifier(Gaussian()).fit(X[complete], y[complete])
    model = GenerativeClassifier(Gaussian()).fit(X, y)
    assert isinstance(plain.statistics_.blocks[0], Moments)
    assert isinstance(model.statistics_.blocks[0], PatternMoments)
    model.forget(X[~complete], y[~complete])
    assert isinstance(model.statistics_.blocks[0], Moments)
    assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-9)
    added = plain + GenerativeClassifier(Gaussian()).fit(X[~complete], y[~complete])
    assert_allclose(added.predict_proba(X), GenerativeClassifier(Gaussian()).fit(X, y).predict_proba(X), atol=1e-6)


def test_weights_count_rows_and_classes_can_be_dropped() -> None:
    X, y = drawn()
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = QuadraticDiscriminant().fit(X, y, weights)
    repeated = QuadraticDiscriminant().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
    dropped = QuadraticDiscriminant().fit(X, y).drop_class(1)
    other = QuadraticDiscriminant().fit(X[y != 1], y[y != 1])
    assert_allclose(dropped.predict_proba(X), other.predict_proba(X), atol=1e-6)
    with pytest.raises(InputError, match="shares its covariance"):
        LinearDiscriminant().fit(X, y).drop_class(1)


def test_rows_that_were_never_learnt_are_noticed() -> None:
    X, y = drawn()
    model = GenerativeClassifier(Gaussian()).fit(X, y)
    before = model.predict_proba(X)
    row = int(np.flatnonzero(np.isnan(X).any(axis=1))[0])
    with pytest.raises(InputError, match=r"not among the training rows|More rows"):
        model.forget(X[[row]] + 100.0, y[[row]])
    with pytest.raises(InputError, match="More rows"):
        model.forget(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert_array_equal(model.predict_proba(X), before)
    complete = ~np.isnan(X).any(axis=1)
    plain = GenerativeClassifier(Gaussian()).fit(X[complete], y[complete])
    with pytest.raises(InputError):
        plain.forget(X[[row]], y[[row]])
    with pytest.raises(MissingCellError, match="no training row has missing values"):
        plain.left_out_proba(X[[row]], y[[row]])


# -------------------------------------------------------------------------------------------------------- many patterns


def many(rows: int = 500, seed: int = 0) -> tuple[Any, Any]:
    return drawn(rows, 8, 0.35, seed)


@pytest.mark.parametrize("name", ["mle, shared=True", "bayes, shared=False", "regularized"])
def test_models_of_many_patterns_are_updated(name: str, tmp_path: Any) -> None:
    X, y = many(600)
    whole = make(name).fit(X, y)
    assert len(whole.statistics_.blocks[0].parts) > 100
    halves = [make(name).fit(X[i::2], y[i::2]) for i in range(2)]
    batched = make(name)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(y)), 6):
        batched.partial_fit(X[rows], y[rows])
    added = halves[0] + halves[1]
    for model in (batched, added):
        assert_same_statistics(Statistics(model), Statistics(whole))
        assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-6)
    whole.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert_array_equal(again.predict_proba(X), whole.predict_proba(X))
    for model in (again, added, batched):
        assert_allclose(model.forget(X[1::2], y[1::2]).predict_proba(X), halves[0].predict_proba(X), atol=1e-6)
    with pytest.raises(InputError, match=r"to (be )?remove"):
        again.forget(X[1:2], y[1:2])


def test_too_many_patterns_cannot_be_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = many()
    with monkeypatch.context() as limits:
        limits.setattr(pattern_moments, "PATTERN_BYTES", 0)
        limits.setattr(pattern_moments, "MOST_BYTES", 100 * 8 * 3 * (8 + 64))
        remedy = r"more than 100 combinations of the 8 columns.*Use fit on all rows.*NaiveBayes.*Imputer.*drop"
        with pytest.raises(MissingPatternsError, match=remedy):
            GenerativeClassifier(Gaussian()).partial_fit(X, y)
        start = GenerativeClassifier(Gaussian()).partial_fit(X[:120], y[:120])
        before = start.predict_proba(X)
        with pytest.raises(MissingPatternsError):
            start.partial_fit(X[120:], y[120:])
        limits.setattr(pattern_moments, "MOST_BYTES", 60 * 8 * 3 * (8 + 64))
        parts = [GenerativeClassifier(Gaussian()).partial_fit(X[i : i + 50], y[i : i + 50]) for i in (0, 50, 100)]
        with pytest.raises(MissingPatternsError):
            parts[0] + parts[1] + parts[2]
        assert_array_equal(start.predict_proba(X), before)
        model: Any = GenerativeClassifier(Gaussian(), tol=1e-10, max_iter=1000).fit(X, y)  # EM over the rows
        with pytest.raises(InputError, match="too many combinations of missing values"):
            model.partial_fit(X, y)
        found = likely.cross_validate(GenerativeClassifier(Gaussian(shared=True)), X, y, 3).log_loss
    assert_allclose(GenerativeClassifier(Gaussian()).fit(X, y).predict_proba(X), model.predict_proba(X), atol=1e-4)
    summed = likely.cross_validate(GenerativeClassifier(Gaussian(shared=True)), X, y, 3).log_loss
    assert_allclose(found, summed, atol=1e-3)


# ------------------------------------------------------------------------------------------------- leave-one-out, folds


@pytest.mark.parametrize("name", MODELS)
def test_leave_one_out_subtracts_expected_statistics(name: str) -> None:
    """Against one M step from the statistics without the completed row, its covariance included."""
    X, y = drawn(60)
    model = make(name).fit(X, y)
    specification, (plan,) = model.specification_, model.specification_.plans
    (whole,) = specification.completed(model.statistics_).blocks
    plug_in = plan.family
    if specification.estimation != "mle":
        plug_in = plan.family._with_fixed_prior(whole, specification.estimation)
    intensity = None
    if plug_in.shrinkage == "oas":
        from likely.families.gaussian.shrinkage import oas_intensity

        intensity = float(oas_intensity(plan.family._prepared(whole).varying)[0])
        plug_in = Gaussian(shared=True, shrinkage=intensity)
    names = specification.columns(plan)
    at_mode = plug_in.estimate(whole, specification.estimation.plug_in, names)
    found = model.left_out_proba(X, y)
    for i in range(0, 60, 3):
        x, k = X[i], int(y[i])
        missing = np.isnan(x)
        covariance, mean = at_mode.class_covariance(k), at_mode.class_means()[k]
        slope = covariance[np.ix_(missing, ~missing)] @ np.linalg.inv(covariance[np.ix_(~missing, ~missing)])
        row, rest = x.copy(), np.zeros((4, 4))
        row[missing] = mean[missing] + slope @ (x - mean)[~missing]
        rest[np.ix_(missing, missing)] = (
            covariance[np.ix_(missing, missing)] - slope @ covariance[np.ix_(~missing, missing)]
        )
        n, g = whole.weight[k], int(whole.group[k])
        means, scatter = whole.mean.copy(), whole.scatter.copy()
        means[k] = (n * whole.mean[k] - row) / (n - 1.0)
        away = row - whole.mean[k]
        scatter[g] -= n / (n - 1.0) * np.outer(away, away) + rest
        weight, rows = whole.weight.copy(), whole.rows.copy()
        weight[k], rows[k] = weight[k] - 1.0, rows[k] - 1
        less = Moments(whole.classes, rows, weight, means, scatter, whole.sharing, whole.coordinates)
        density = plug_in.estimate(less, specification.estimation, names).log_density(X[[i]])[:, 0]
        counts = np.bincount(y) - (np.arange(3) == k)
        smoothing = specification.estimation.default_smoothing
        joint = density + np.log((counts + smoothing) / (counts + smoothing).sum())
        posterior = np.exp(joint - joint.max())
        assert_allclose(found[i], posterior / posterior.sum(), atol=1e-7)


@pytest.mark.parametrize("shared", [True, False])
def test_leave_one_out_is_near_refits(shared: bool) -> None:
    X, y = penguins(0.2)
    X = X[list(MEASURES)].to_numpy()
    model = GenerativeClassifier(Gaussian(shared=shared)).fit(X, y)
    codes = np.searchsorted(model.classes_, y)
    ours = -np.log(model.left_out_proba(X, y)[np.arange(len(y)), codes])
    some, refits = np.arange(0, len(y), 12), []
    for i in some:
        rest = np.arange(len(y)) != i
        other = GenerativeClassifier(Gaussian(shared=shared)).fit(X[rest], y[rest])
        refits.append(-np.log(other.predict_proba(X[[i]])[0, codes[i]]))
    assert abs(ours[some].mean() - np.mean(refits)) < 0.01


@pytest.mark.parametrize("family", [Gaussian("diagonal"), Gaussian("spherical"), Gaussian(), LogNormal()], ids=repr)
@pytest.mark.parametrize("columns", [1, 2])
def test_leave_one_out_of_a_block_without_values_is_that_of_the_class_prior(family: Any, columns: int) -> None:
    X, y = np.full((6, columns), np.nan), np.array([0, 1] * 3)
    found = GenerativeClassifier(family).fit(X, y).left_out_proba(X, y)
    refit = GenerativeClassifier(family).fit(X[1:], y[1:]).predict_proba(X[:1])
    assert_allclose(found[:1], refit, rtol=1e-12)


@pytest.mark.parametrize("proportion", [0.0, 0.2])
def test_folds_are_total_minus_fold(proportion: float) -> None:
    X, y = penguins(proportion)
    folds = StratifiedKFold(4)
    model = GenerativeClassifier({MEASURES: Gaussian(shared=True)})
    ours = likely.cross_validate(model, X, y, folds)
    theirs = scikit_learns(model, X, y, cv=folds, scoring="neg_log_loss")
    assert_allclose(ours.log_loss, -theirs["test_score"], atol=1e-7)


def test_selection_ranks_joint_blocks_with_missing_values() -> None:
    X, y = penguins(0.2)
    X = X[list(MEASURES)]
    result = likely.select(X, y, {"joint": GenerativeClassifier(Gaussian(shared=True)), "naive": NaiveBayes()})
    assert [scored.name for scored in result.ranking] == ["joint", "naive"]
    assert result.ranking[0].problem is None
    mle = likely.select(X, y, {"linear": LinearDiscriminant()}).ranking[0]
    model = LinearDiscriminant().fit(X, y)
    codes = np.searchsorted(model.classes_, y)
    total = model.log_joint(X)[np.arange(len(y)), codes].sum()
    assert mle.aic is not None
    assert_allclose(mle.aic, 2.0 * (2 + 12 + 10) - 2.0 * total, rtol=1e-9)
    assert mle.log_evidence is None or np.isnan(mle.log_evidence)
    with pytest.raises(AttributeError, match="missing values in a joint block"):
        _ = GenerativeClassifier(Gaussian()).fit(X, y).log_evidence_


# ----------------------------------------------------------------------------------------------------------- odd tables


def test_a_column_without_values_is_ignored() -> None:
    X, y = drawn()
    empty = np.column_stack([X, np.full(len(X), np.nan)])
    for name in ("mle, shared=True", "bayes, shared=False", "shrinkage"):
        found = make(name).fit(empty, y)
        assert_allclose(found.predict_proba(empty), make(name).fit(X, y).predict_proba(X), atol=1e-7)
        assert np.isfinite(found.left_out_proba(empty, y)).all()
    nothing = np.full((6, 3), np.nan)
    model = GenerativeClassifier(Gaussian()).fit(nothing, [0, 1] * 3)
    assert_allclose(model.predict_proba(nothing), 0.5)


def test_what_the_likelihood_does_not_determine_is_an_error() -> None:
    X, y = drawn()
    apart = X.copy()
    apart[::2, 0], apart[1::2, 1] = np.nan, np.nan
    with pytest.raises(
        NotEstimableError, match=r"'x0' and 'x1' are never observed in the same row.*estimation='bayes'"
    ):
        LinearDiscriminant().fit(apart, y)
    lacking = X.copy()
    lacking[y == 1, 2] = np.nan
    with pytest.raises(NotEstimableError, match=r"'x2' has no observed value in class 1"):
        QuadraticDiscriminant().fit(lacking, y)
    with pytest.raises(NotEstimableError, match=r"'x2' has no observed value in class 1.*flat prior"):
        GenerativeClassifier(Gaussian(prior=NormalInverseWishart.reference())).fit(lacking, y)
    constant = X.copy()
    constant[:, 3] = np.where(np.isnan(X[:, 3]), np.nan, y)
    with pytest.raises(NotEstimableError, match=r"'x3' does not vary within every class, but differs"):
        LinearDiscriminant().fit(constant, y)
    for rows in (apart, lacking, constant):
        model = GenerativeClassifier(Gaussian(shared=True)).fit(rows, y)
        assert model.converged_
        assert np.isfinite(model.predict_proba(rows)).all()
        halves = [GenerativeClassifier(Gaussian(shared=True)).fit(rows[i::2], y[i::2]) for i in range(2)]
        assert_allclose((halves[0] + halves[1]).predict_proba(rows), model.predict_proba(rows), atol=1e-6)


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("shrinkage", [0.1, Regularized(0.3, 0.2), Regularized(0.3)], ids=str)
def test_a_constant_column_with_missing_values_is_ignored_under_shrinkage(covariance: str, shrinkage: Any) -> None:
    constant = np.where(np.arange(40) < 6, np.nan, 5.0)[:, None]
    y = np.arange(40) % 2
    model = GenerativeClassifier(Gaussian(covariance, shrinkage=shrinkage), estimation="mle").fit(constant, y)
    assert_allclose(model.predict_proba(constant), 0.5)
    X = np.random.default_rng(0).normal(size=(40, 2))
    wide = GenerativeClassifier(Gaussian(covariance, shrinkage=shrinkage), estimation="mle")
    narrow = GenerativeClassifier(Gaussian(covariance, shrinkage=shrinkage), estimation="mle").fit(X, y)
    both = np.column_stack([X, constant])
    assert_allclose(wide.fit(both, y).predict_proba(both), narrow.predict_proba(X), atol=1e-9)


def test_regressions_are_updated_with_missing_values() -> None:
    frame = load_table("penguins").dropna()
    Z = frame[list(MEASURES)].to_numpy()
    Z[np.random.default_rng(0).random(Z.shape) < 0.2] = np.nan
    X, y = Z[:, :3], Z[:, 3]
    whole = GenerativeRegressor().fit(X, y)
    parts = GenerativeRegressor().fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-7)
    assert whole.n_iter_ > 1
    again = parts.forget(X[1::2], y[1::2])
    assert_allclose(again.predict(X), GenerativeRegressor().fit(X[::2], y[::2]).predict(X), rtol=1e-7)


def test_unlabeled_rows_are_still_no_sums() -> None:
    X, y = drawn()
    labels = np.where(np.arange(len(y)) % 4 == 0, None, y.astype(object))
    model: Any = GenerativeClassifier(Gaussian(), unlabeled_weight=1.0).fit(X, labels)
    for call in (model.partial_fit, model.forget):
        with pytest.raises(InputError, match=r"unlabeled rows.*Fit it again on all rows"):
            call(X, y)


# ---------------------------------------------------------------------------------------------------------- first batch


def test_families_of_a_small_first_batch_are_reported() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 25, 40), "mass": rng.normal(size=40), "kind": list("ab") * 20})
    frame["empty"] = np.nan
    y = np.arange(40) % 2
    with pytest.warns(EarlyChoiceWarning) as caught:
        model = GenerativeClassifier().partial_fit(frame, y)
    text = str(caught[0].message)
    assert "'age': Categorical() (40 values)" in text
    assert "(0 values)" in text
    assert "'mass'" not in text
    assert "'kind'" not in text
    assert "Declare families=" in text
    assert isinstance(model.families_["empty"], Gaussian)
    later = frame.assign(empty=rng.normal(size=40))
    assert np.isfinite(model.partial_fit(later, y).predict_proba(later)).all()
    given = {"age": Gaussian("diagonal"), ("mass", "empty"): Gaussian()}
    GenerativeClassifier(given).partial_fit(frame, y)  # no warning: declared
    enough = pd.concat([frame[["age", "mass", "kind"]]] * 3, ignore_index=True)
    GenerativeClassifier().partial_fit(enough, np.tile(y, 3))  # no warning: enough rows
    GenerativeClassifier().fit(frame, y)  # no warning: all rows are known
