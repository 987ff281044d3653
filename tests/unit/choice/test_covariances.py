"""Pooled and per-class covariances chosen by leave-one-out log-loss, and choices of models that are added or saved."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.model_selection import cross_validate as scikit_learns

import likely
from likely import Categorical, Gaussian, GenerativeClassifier, LinearDiscriminant, NaiveBayes, Poisson
from likely.choice import covariances, row_sample
from likely.errors import InputError, NotEstimableError
from tests.helpers import load_table

pytestmark = pytest.mark.usefixtures("pure_models")


def mixed(rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Continuous columns, of which two have missing values, counts of three kinds, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    frame = pd.DataFrame(
        {
            "wide": rng.normal(size=rows) * (1 + y),
            "moved": rng.normal(size=rows) + y,
            "partial": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows) * (1 + 2 * y)),
            "gap": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows)),
            "events": rng.poisson(3 + 2 * y),
            "failures": rng.geometric(0.4 - 0.25 * y) - 1,
            "bursts": 3 * rng.poisson(2, rows) + rng.integers(0, 2, rows) + 4 * y,
            "label": rng.choice(list("abc"), rows),
        }
    )
    return frame, y


def losses(model: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """−log p(y | x) of rows left out of a fitted model, one copy of each."""
    codes = np.searchsorted(model.classes_, y)
    ones = None if weights is None else np.minimum(weights, 1.0)
    return -np.log(model.left_out_proba(X, y, ones)[np.arange(len(codes)), codes])


def covariance_choices(model: Any) -> list[Any]:
    """The choices between pooled and per-class covariances."""
    return [choice for choice in model.choices_ if choice.log_loss]


def scores_of(log_loss: dict[str, float | None]) -> Any:
    """The log-losses of all candidates; NaN for one that cannot be estimated."""
    return np.array(list(log_loss.values()), dtype=np.float64)


def rule(scores: list[Any], weights: Any) -> int:
    """The least mean, unless it leads the first by no more than a standard error."""
    means = [np.average(score, weights=weights) for score in scores]
    best = int(np.argmin(means))
    lead = scores[0] - scores[best]
    error = np.sqrt(np.average((lead - np.average(lead, weights=weights)) ** 2, weights=weights) / np.sum(weights))
    return best if means[0] - means[best] > error else 0


def tables() -> Iterator[Any]:
    for name, target in (("penguins", "species"), ("iris", "Species"), ("vowel-train", "y")):
        frame = load_table(name).dropna()
        yield pytest.param(frame.drop(columns=target).select_dtypes("number").astype(float), frame[target], id=name)
    X, y = load_wine(return_X_y=True)
    yield pytest.param(pd.DataFrame(X), pd.Series(y), id="wine")


@pytest.mark.parametrize(("X", "y"), list(tables()))
@pytest.mark.parametrize("estimation", ["bayes", "map"])
def test_the_covariance_of_a_real_table_is_shared_unless_own_ones_lead_clearly(X: Any, y: Any, estimation: str) -> None:
    X, y = X.to_numpy() + 1e-3 * np.sin(np.arange(X.size)).reshape(X.shape), y.to_numpy()  # no whole numbers
    X = X - X.mean(axis=0)  # and not all positive, so that no column is a logarithm
    declared = [GenerativeClassifier(Gaussian(shared=s), estimation=estimation).fit(X, y) for s in (True, False)]
    scores = [losses(model, X, y) for model in declared]
    model = GenerativeClassifier(estimation=estimation).fit(X, y)
    (choice,) = covariance_choices(model)
    assert_allclose(scores_of(choice.log_loss), [score.mean() for score in scores], rtol=1e-9)
    wanted = rule(scores, np.ones(len(y)))
    assert next(iter(model.families_.values())).shared is (wanted == 0)
    assert_allclose(model.predict_proba(X), declared[wanted].predict_proba(X), rtol=1e-9, atol=1e-14)


def test_both_covariances_are_chosen_by_some_real_table() -> None:
    chosen = {next(iter(GenerativeClassifier().fit(*p.values).families_.values())).shared for p in tables()}
    assert chosen == {True, False}


JOINT = ("wide", "moved", "partial", "gap")  # values of the last two are missing in some rows


def declared_model(apart: int) -> Any:
    """A candidate, declared: pooled or per-class covariances."""
    return GenerativeClassifier({JOINT: Gaussian(shared=not apart), "label": Categorical()})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_choice_of_covariances_is_that_of_declared_models(seed: int, weighted: bool) -> None:
    X, y = mixed(300, seed)
    X = X[[*JOINT, "label"]]
    weights = np.random.default_rng(seed).integers(0, 4, len(y)).astype(float) if weighted else None
    model = GenerativeClassifier().fit(X, y, weights)
    found = int(not model.families_[JOINT].shared)
    counted = np.ones(len(y)) if weights is None else weights
    used = counted > 0
    known = {choice.columns: choice for choice in model.choices_}
    scores = [losses(declared_model(apart).fit(X, y, weights), X, y, weights)[used] for apart in range(2)]
    means = [np.average(score, weights=counted[used]) for score in scores]
    assert_allclose(scores_of(known[JOINT].log_loss), means, rtol=1e-9)
    assert rule(scores, counted[used]) == found
    declared = declared_model(found).fit(X, y, weights)
    assert_allclose(model.predict_proba(X), declared.predict_proba(X), rtol=1e-9)


def chosen(model: Any) -> dict[Any, str]:
    return {str(sorted(key)) if isinstance(key, tuple) else key: repr(f) for key, f in model.families_.items()}


class Chunks:
    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def chunks(self) -> Iterator[Any]:
        return iter(self.parts)


@pytest.mark.parametrize("limit", [row_sample.MOST_ROWS, 150])
def test_order_batches_and_libraries_do_not_matter(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where only some of the rows are judged: these are picked by what they hold."""
    monkeypatch.setattr(row_sample, "MOST_ROWS", limit)
    X, y = mixed()
    plain = GenerativeClassifier().fit(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    halves = [X.iloc[:170], X.iloc[170:]]
    others = [
        GenerativeClassifier().fit(X.iloc[order], y[order]),
        GenerativeClassifier().fit(X[X.columns[::-1]], y),
        GenerativeClassifier().fit(
            pl.DataFrame(X.to_dict("series")).with_columns(pl.col("partial", "gap").fill_nan(None)), y
        ),
        GenerativeClassifier().fit(Chunks(halves), y),
        GenerativeClassifier().fit(X, y.astype(str)),
    ]
    for other in others:
        assert chosen(other) == chosen(plain)
        for mine in other.choices_:
            (yours,) = [choice for choice in plain.choices_ if sorted(choice.columns) == sorted(mine.columns)]
            assert_allclose(scores_of(mine.log_loss), scores_of(yours.log_loss), rtol=1e-9)
            assert_allclose(scores_of(mine.log_density), scores_of(yours.log_density), rtol=1e-9)


def test_of_many_rows_about_as_many_are_judged_as_the_limit_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where most of them are the same: those that are, are distinguished by how many there are."""
    monkeypatch.setattr(row_sample, "MOST_ROWS", 2000)
    sizes = []
    draw = row_sample.sampled_rows

    def spy(*arguments: Any) -> Any:
        found = list(draw(*arguments))
        sizes.append(sum(part.weights.sum() for part in found))
        return iter(found)

    monkeypatch.setattr(covariances, "sampled_rows", spy)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    same = pd.DataFrame({"n": rng.poisson(0.2 + 0.2 * y) * rng.integers(1, 20, len(y)), "m": rng.poisson(1.0, len(y))})
    GenerativeClassifier().fit(same, y)
    GenerativeClassifier().fit(rng.normal(size=(20_000, 2)), y)
    assert sizes
    assert all(abs(size - 2000) < 200 for size in sizes)


def test_a_sample_gives_nearly_the_result_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = mixed(8000)
    whole = GenerativeClassifier().fit(X, y)
    monkeypatch.setattr(row_sample, "MOST_ROWS", 2000)
    some = GenerativeClassifier().fit(X, y)
    for mine, yours in zip(covariance_choices(some), covariance_choices(whole), strict=True):
        assert_allclose(scores_of(mine.log_loss), scores_of(yours.log_loss), rtol=0.15)
        assert mine.log_loss != yours.log_loss


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_repeats(seed: int) -> None:
    X, y = mixed(200, seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(y))
    weighted = GenerativeClassifier().fit(X, y, weights)
    index = np.repeat(np.arange(len(y)), weights)
    repeated = GenerativeClassifier().fit(X.iloc[index], y[index])
    assert chosen(weighted) == chosen(repeated)
    for mine, yours in zip(weighted.choices_, repeated.choices_, strict=True):
        assert_allclose(scores_of(mine.log_loss), scores_of(yours.log_loss), rtol=1e-9)
        assert_allclose(scores_of(mine.log_density), scores_of(yours.log_density), rtol=1e-9)
        assert_allclose(list(mine.error.values()), list(yours.error.values()), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_few_rows_of_large_weight_are_as_many_rows(seed: int) -> None:
    """Whether there are enough rows for per-class covariances is decided by their weight."""
    rng = np.random.default_rng(seed)
    y = np.arange(10) % 2
    X, weights = rng.normal(size=(10, 3)) * (1 + 4 * y[:, None]), np.full(10, 6)
    weighted = GenerativeClassifier().fit(X, y, weights)
    repeated = GenerativeClassifier().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert chosen(weighted) == chosen(repeated)
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-8)


def test_a_declared_column_keeps_its_family() -> None:
    X, y = mixed()
    model = GenerativeClassifier({"bursts": Poisson(), ("wide", "partial"): Gaussian("diagonal")}).fit(X, y)
    assert isinstance(model.families_["bursts"], Poisson)
    named = {name for choice in model.choices_ for name in choice.columns}
    assert named == {"moved", "gap", "events", "failures"}
    assert GenerativeClassifier(Gaussian()).fit(X[["wide", "moved"]], y).choices_ == ()
    assert covariance_choices(NaiveBayes().fit(X, y)) == []


def test_one_class_has_no_covariances_to_choose() -> None:
    X, _ = mixed(50)
    model = GenerativeClassifier().fit(X, np.zeros(50, dtype=int))
    assert covariance_choices(model) == []
    (joint,) = [family for key, family in model.families_.items() if isinstance(key, tuple)]
    assert joint.shared is True


def test_what_the_rows_do_not_determine_is_not_chosen() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.r_[np.zeros(27, dtype=int), np.ones(3, dtype=int)]
    model = GenerativeClassifier(estimation="mle").fit(X, y)
    (choice,) = covariance_choices(model)
    assert [loss is None for loss in choice.log_loss.values()] == [False, True]
    constant = np.where(np.arange(30) < 27, 0.5, 1.5)[:, None]
    with pytest.raises(NotEstimableError, match="does not vary within every class"):
        GenerativeClassifier(estimation="mle").fit(np.hstack([X, constant]), y)


def test_the_first_batch_chooses_for_good() -> None:
    X, y = mixed(600)
    first = GenerativeClassifier().fit(X[:100], y[:100])
    model = GenerativeClassifier().partial_fit(X[:100], y[:100])
    before = chosen(model)
    assert before == chosen(first)
    model.partial_fit(X[100:], y[100:])
    assert chosen(model) == before
    declared = GenerativeClassifier(first.families_).fit(X, y)
    assert_allclose(model.predict_proba(X), declared.predict_proba(X), rtol=1e-9)
    model.forget(X[100:], y[100:])
    assert_allclose(model.predict_proba(X), first.predict_proba(X), rtol=1e-8)


def test_models_that_chose_differently_are_merged_by_the_losses_of_both() -> None:
    rng = np.random.default_rng(3)

    def draw(rows: int, wide: float) -> tuple[Any, Any]:
        y = rng.integers(0, 2, rows)
        return rng.normal(size=(rows, 2)) * np.where(y, wide, 1.0)[:, None] + y[:, None], y

    alike, unlike = draw(100, 1.0), draw(1000, 3.0)
    models = [GenerativeClassifier().fit(*rows) for rows in (alike, unlike)]
    shared = [next(iter(model.families_.values())).shared for model in models]
    assert shared == [True, False]
    X, y = np.concatenate([alike[0], unlike[0]]), np.concatenate([alike[1], unlike[1]])
    whole = GenerativeClassifier(Gaussian()).fit(X, y)
    for merged in (models[0] + models[1], models[1] + models[0]):
        assert next(iter(merged.families_.values())).shared is False
        assert_allclose(merged.predict_proba(X), whole.predict_proba(X), rtol=1e-9)
        (choice,) = covariance_choices(merged)
        parts = [np.array(list(model.choices_[0].log_loss.values())) for model in models]
        assert_allclose(scores_of(choice.log_loss), (100 * parts[0] + 1000 * parts[1]) / 1100, rtol=1e-12)
    assert [next(iter(model.families_.values())).shared for model in models] == [True, False]
    assert models[0].drop_class(1).classes_.tolist() == [0]


def test_models_with_other_families_of_counts_are_not_merged() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    steady, bursting = rng.poisson(4 + y)[:, None], (4 * rng.poisson(1 + y) + rng.integers(0, 2, 2000))[:, None]
    with pytest.raises(InputError, match=r"families of 'x0': Poisson and NegativeBinomial. Fit both .*first.families_"):
        GenerativeClassifier().fit(steady, y) + GenerativeClassifier().fit(bursting, y)
    first, second = (GenerativeClassifier().fit(np.repeat(X, 7, axis=1), y) for X in (steady, bursting))
    with pytest.raises(InputError) as raised:
        first + second
    pairs = ", ".join(f"'x{j}': Poisson and NegativeBinomial" for j in range(3))
    expected = f"Models of different specification cannot be added: families of {pairs} and 4 more. Fit both models "
    assert str(raised.value) == expected + "with families=first.families_."
    again = [
        GenerativeClassifier(first.families_).fit(np.repeat(X, 7, axis=1), y) for X in (steady, bursting)
    ]  # the remedy
    assert (again[0] + again[1]).statistics_.counts.weight.sum() == 4000


def test_the_difference_of_two_specifications_is_named() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    pooled: Any = {(0, 1): Gaussian(shared=True), (2, 3): Gaussian(shared=True)}
    fitted = [
        GenerativeClassifier(families).fit(X, y)
        for families in (pooled, {(0, 1, 2, 3): Gaussian(shared=True)}, Gaussian("diagonal"), Gaussian())
    ]
    for left, right in itertools.permutations(fitted, 2):
        with pytest.raises(InputError, match=r"families of 'x0': .*'x1': .*'x2': .* and 1 more") as raised:
            left + right
        first, second = str(raised.value).split("'x0': ")[1].split(", 'x1'")[0].split(" and ")
        assert first != second
        assert len(str(raised.value)) < 500
    with pytest.raises(InputError, match=r"estimation: 'map' and 'mle'\.$"):
        NaiveBayes(Gaussian(), estimation="map").fit(X, y) + NaiveBayes(Gaussian(), estimation="mle").fit(X, y)
    with pytest.raises(InputError, match=r"added: columns 'x3' of one model only. Fit"):
        NaiveBayes(Gaussian("diagonal")).fit(X, y) + NaiveBayes(Gaussian("diagonal")).fit(X[:, :3], y)


def test_folds_choose_anew() -> None:
    """As scikit-learn's cross-validation, which fits every fold by itself."""
    frame = load_table("penguins").dropna()[::2]
    X, y = frame[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].to_numpy(), frame["species"]
    folds = StratifiedKFold(5)
    ours = likely.cross_validate(GenerativeClassifier(), X, y, folds)
    theirs = scikit_learns(GenerativeClassifier(), X, y, cv=folds, scoring="neg_log_loss", return_estimator=True)
    assert_allclose(ours.log_loss, -theirs["test_score"], rtol=1e-8)
    assert {next(iter(model.families_.values())).shared for model in theirs["estimator"]} == {True, False}


def test_select_by_folds_agrees_with_cross_validation() -> None:
    X, y = mixed(300)
    models = {"chosen": GenerativeClassifier(), "naive": NaiveBayes(), "wrong": LinearDiscriminant()}
    result = likely.select(X, y, models, folds=5)
    assert [scored.name for scored in result.ranking][-1] == "wrong"
    for scored in result.ranking[:2]:
        scores: list[Any] = [scored.log_loss, scored.error, scored.log_likelihood]
        found = likely.cross_validate(models[scored.name], X, y, 5)
        means = [part.mean() for part in (found.log_loss, found.error, found.log_likelihood)]
        assert_allclose(scores, means, rtol=1e-12)
    best = result.ranking[0].name
    assert_allclose(result.best.predict_proba(X), models[best].fit(X, y).predict_proba(X), rtol=1e-9)


def test_files_keep_the_reasons(tmp_path: Any) -> None:
    X, y = mixed(200)
    model = GenerativeClassifier().fit(X, y)
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert again.choices_ == model.choices_
    assert str(again.summary()) == str(model.summary())
    more = again + model
    assert_allclose(more.statistics_.counts.weight, 2 * model.statistics_.counts.weight)


def test_the_summary_gives_the_reason() -> None:
    X, y = mixed(200)
    model = GenerativeClassifier().fit(X, y)
    text = str(model.summary())
    assert "chosen by leave-one-out" in text
    for choice in model.choices_:
        assert f"{choice.score:.4f}" in text
        assert choice.family in str(choice)
        scores = choice.log_loss or choice.log_density
        assert f"{scores[choice.family]:.4f}" in str(choice)


def test_many_columns_and_few_rows_share_their_covariance() -> None:
    """Leave-one-out favours the class of a row less than its own: with fewer rows than columns that tells it."""
    rng = np.random.default_rng(0)
    for rows, columns in ((12, 20), (40, 80), (3, 3)):
        X, y = rng.normal(size=(rows, columns)), np.arange(rows) % 2
        model = GenerativeClassifier().fit(X, y)
        assert next(iter(model.families_.values())).shared is True


def test_sparse_rows_are_sampled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sample, "MOST_ROWS", 500)
    rng = np.random.default_rng(0)
    S = scipy.sparse.random(4000, 5, density=0.5, format="csr", random_state=0)
    S.data = rng.normal(size=len(S.data))
    y = rng.integers(0, 2, 4000)
    order = rng.permutation(4000)
    one, two = GenerativeClassifier().fit(S, y), GenerativeClassifier().fit(S[order], y[order])
    for mine, yours in zip(one.choices_, two.choices_, strict=True):
        assert_allclose(scores_of(mine.log_loss), scores_of(yours.log_loss), rtol=1e-9)
    counts = S.copy()
    counts.data = rng.poisson(2.0, len(S.data)) + 1.0
    assert GenerativeClassifier().fit(counts, y).choices_ == ()  # sparse counts have one candidate


def test_rows_of_counts_in_any_order_are_sampled_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with the same counts in other columns are other rows."""
    monkeypatch.setattr(row_sample, "MOST_ROWS", 1000)
    rng = np.random.default_rng(0)
    X, y = rng.poisson(3.0, size=(20_000, 2)), rng.integers(0, 2, 20_000)
    order = rng.permutation(len(y))
    one, two = GenerativeClassifier().fit(X, y), GenerativeClassifier().fit(X[order], y[order])
    for mine, yours in zip(one.choices_, two.choices_, strict=True):
        assert_allclose(scores_of(mine.log_loss), scores_of(yours.log_loss), rtol=1e-9)


def test_merging_counts_the_rows_that_models_know_now() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 2)) * (1 + y[:, None])
    grown = GenerativeClassifier().partial_fit(X[:30], y[:30]).partial_fit(X[30:500], y[30:500])
    other = GenerativeClassifier().fit(X[500:], y[500:])
    assert covariance_choices(grown + other)[0].weight == 600.0


def test_a_fold_without_weight_is_not_judged() -> None:
    X, y = mixed(60)
    weights = np.r_[np.zeros(12), np.ones(48)]
    result = likely.select(
        X, y, [GenerativeClassifier(), NaiveBayes()], folds=np.arange(60) // 12, sample_weight=weights
    )
    assert all(np.isfinite(scored.log_loss) for scored in result.ranking if scored.log_loss is not None)
    assert all(scored.problem is None for scored in result.ranking)
