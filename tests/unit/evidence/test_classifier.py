"""`EvidenceClassifier`: scikit-learn's conventions, explanations, updates, files and the class prior."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import likely
from likely import (
    EvidenceClassifier,
    GenerativeClassifier,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    QuadraticDiscriminant,
    SoftmaxRegression,
)
from likely.errors import InputError, LikelyError, ModelFileError, NotEstimableError
from likely.evidence.explanation import CLIPPED, SIMILAR_ROWS
from likely.evidence.trees import FittedTrees
from likely.model import persistence
from likely.typing import AnyArray, Array
from tests.helpers import fits
from tests.unit.evidence.tables import COLUMNS, mixed, numbers

FAST = ["columns", "histogram", "pairs", "trees"]
WAYS = ("column", "view", "column and view")


def small(views: Any = "auto", **options: Any) -> EvidenceClassifier:
    return EvidenceClassifier(views, n_trees=4, **options)


@cache
def model_of_mixed() -> EvidenceClassifier:
    X, y = mixed(90)
    return small().fit(X[:60], y[:60])


def fresh() -> EvidenceClassifier:
    """A model that a test may change."""
    return copy.deepcopy(model_of_mixed())


def later() -> tuple[pd.DataFrame, AnyArray]:
    """Rows that `model_of_mixed` has not seen."""
    X, y = mixed(90)
    return X[60:], y[60:]


def check_explanations(model: Any, X: Any) -> None:
    """Contributions add up to the log-odds, by every division."""
    logs = model.predict_log_proba(X)
    odds = logs - logs.mean(axis=1, keepdims=True)
    for by in WAYS:
        found = model.explain(X, by=by)
        total = found.evidence.sum(axis=2) + found.offset
        size = 1.0 + np.abs(found.evidence).sum(axis=2).max() + np.abs(odds).max()
        assert_allclose(total - total.mean(axis=1, keepdims=True), odds, atol=1e-10 * size, rtol=0.0)


# -- scikit-learn


def test_clones_options_and_pickles() -> None:
    model = model_of_mixed()
    assert clone(model).get_params() == model.get_params() == small().get_params()
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(later()[0]), model.predict_proba(later()[0]))
    with pytest.raises(NotFittedError):
        clone(model).predict(later()[0])


def test_pipelines_grids_and_cross_validation() -> None:
    X, y = numbers()
    search = GridSearchCV(small(["trees"]), {"n_trees": [2, 3]}, cv=2, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_["n_trees"] in (2, 3)
    pipeline = make_pipeline(StandardScaler(), small(["columns"]))
    assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.5


def test_an_integer_weight_is_that_many_rows() -> None:
    X, y = mixed()
    weights = np.random.default_rng(0).integers(0, 4, 60)
    index = np.repeat(np.arange(60), weights)
    weighted, repeated = small().fit(X, y, sample_weight=weights), small().fit(X.iloc[index], y[index])
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)
    assert_allclose(weighted.weights_["weight"], repeated.weights_["weight"], atol=1e-8)
    assert_allclose(weighted.log_density(X), repeated.log_density(X), rtol=1e-8)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1e14), (1e-7, 1e7), (1e-14, 1.0)])
def test_weights_may_differ_very_much(low: float, high: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)) + np.arange(100)[:, None] % 2, np.arange(100) % 2
    half, one = np.where(rng.random(100) < 0.5, low, high), np.where(np.arange(100) == 0, high, low)
    for weights in (half, one, low * (high / low) ** rng.random(100)):
        model = EvidenceClassifier(n_trees=5).fit(X, y, weights)
        assert np.isfinite(model.predict_log_proba(X)).all()


def test_the_order_of_rows_and_columns_does_not_matter() -> None:
    X, y = mixed(90)
    order = np.random.default_rng(1).permutation(60)
    other = small().fit(X[:60].iloc[order][X.columns[::-1]], y[order])
    assert_allclose(other.predict_proba(X), model_of_mixed().predict_proba(X), atol=1e-9)


def test_the_class_column_can_be_named() -> None:
    X, y = mixed(90)
    named = small().fit(X[:60].assign(kind=y[:60]), "kind")
    assert_array_equal(named.predict_proba(X), model_of_mixed().predict_proba(X))
    assert named.score(X.assign(kind=y), "kind") == model_of_mixed().score(X, y)
    assert_array_equal(named.feature_names_in_, X.columns)


def test_a_large_table_has_structures_of_some_rows_and_counts_of_all() -> None:
    X, y = numbers(600)
    model = small(FAST, max_rows=300).fit(X, y)
    assert model.summary().class_weights == (200.0, 200.0, 200.0)
    assert model.score(X, y) > 0.7
    assert_allclose(model.class_prior_, 1 / 3)
    order = np.random.default_rng(0).permutation(600)
    again = small(FAST, max_rows=300).fit(X.iloc[order], y[order])
    assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-9)


# -- results


def test_probabilities_decisions_and_densities_agree() -> None:
    model, (X, _) = model_of_mixed(), later()
    proba, logs = model.predict_proba(X), model.predict_log_proba(X)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert_allclose(np.exp(logs), proba)
    assert_allclose(model.decision_function(X), logs)
    assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    assert_array_equal(model.decide(X).action, model.predict(X))
    assert_allclose(model.log_density(X), logsumexp(model.log_joint(X), axis=1))
    core = GenerativeClassifier(calibration=None).fit(mixed(90)[0][:60], mixed(90)[1][:60])
    assert_allclose(model.log_joint(X), core.log_joint(X))
    drawn, labels = model.sample(5, random_state=0)
    assert list(drawn.columns) == list(X.columns)
    assert set(labels) <= set(model.classes_)
    assert not model.impute(mixed(90)[0][:60]).isna().any().any()
    assert np.all((model.typicality(X, n_samples=50) >= 0.0) & (model.novelty(X, n_samples=50) >= 0.0))
    assert_array_equal(model.score_samples(X), model.log_density(X))


def test_two_classes_have_log_odds() -> None:
    X, y = numbers()
    model = small(["columns"]).fit(X, y == "a")
    proba = model.predict_proba(X)
    assert_allclose(model.decision_function(X), np.log(proba[:, 1] / proba[:, 0]), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::likely.errors.UnseenCategoriesWarning")
@pytest.mark.parametrize("view", ["columns", "joint", "scores", "histogram", "pairs", "neighbours", "trees"])
def test_explanations_of_every_view_add_up(view: str) -> None:
    X, y = mixed()
    model = small([view]).fit(X, y)
    far = X.copy()
    far["x"] = 1e6
    far["colour"] = "unseen"
    check_explanations(model, pd.concat([X, far]))


def test_explanations_of_all_views_add_up_with_missing_and_clipped_values() -> None:
    model, (X, _) = model_of_mixed(), mixed(90)
    far = X.copy()
    far[["x", "z"]] *= 1e5
    empty = X[:1].astype(object)
    empty[:] = None
    for rows in (X, far, empty):
        check_explanations(model, rows)
    found = model.explain(far)
    assert found.columns == (*X.columns, SIMILAR_ROWS, CLIPPED)
    assert np.abs(found.evidence[:, :, -1]).max() > 0.1
    views = model.explain(X, by="view")
    assert set(views.columns) == {*model.summary().views, CLIPPED}
    some, logs = model.explain(X[:2]), model.predict_log_proba(X[:2])
    offset = some.offset[:, 0] - some.offset[:, 1]
    assert_allclose(some.contrast("a", "b").sum(axis=1) + offset, logs[:, 0] - logs[:, 1], atol=1e-9)
    assert {*X.columns, SIMILAR_ROWS, CLIPPED} <= set(some.to_frame().astype(str).to_numpy().ravel())
    assert model.explain(X[:1]).plot() is not None


def test_similar_rows_are_training_rows() -> None:
    X, y = mixed(90)
    model = model_of_mixed()
    found = model.similar_rows(X[:60], n=1)
    same = found["similar_row"].to_numpy() == found["row"].to_numpy()
    assert same.mean() > 0.95  # but for rows that are equal in all columns that the view reads
    assert_array_equal(found["class"], y[found["similar_row"]])
    assert_allclose(found["distance"][same], 0.0, atol=1e-3)
    assert len(model.similar_rows(X[:2], n=7)) == 14
    assert len(model.similar_rows(X[:1], n=1000)) == 60
    with pytest.raises(InputError, match="needs the view 'neighbours'"):
        small(["columns"]).fit(X, y).similar_rows(X)


def test_weights_and_summary_tell_which_views_matter() -> None:
    model = model_of_mixed()
    weights, summary = model.weights_, model.summary()
    assert list(weights.columns) == ["view", "column", "term", "weight", "share"]
    assert (weights["column"] == weights["term"])[weights["column"].notna()].all()
    assert weights.set_index("view").loc["joint Gaussian", "column"].isna().all()
    assert (weights["weight"] >= 0.0).all()
    assert_allclose(weights["share"].sum(), 1.0)
    shares = weights.groupby("view")["share"].sum()
    assert_allclose(summary.shares, [shares[view] for view in summary.views])
    assert list(summary.shares) == sorted(summary.shares, reverse=True)
    assert summary.log_loss < summary.baseline
    text = str(summary)
    assert text.startswith("EvidenceClassifier: 3 classes, 60 rows")
    assert f"comes from the views {summary.views[0]!r}" in text
    assert len(summary.to_frame()) == len(summary.views)
    assert "<table" in summary._repr_html_()


def test_views_by_object_are_models_of_the_library() -> None:
    X, y = numbers()
    model = small([LinearDiscriminant(), NaiveBayes(), "columns"]).fit(X, y)
    assert set(model.summary().views) == {"LinearDiscriminant", "NaiveBayes", "columns"}
    check_explanations(model, X)
    alone = small([LinearDiscriminant()]).fit(X, y)
    assert_array_equal(alone.predict(X), LinearDiscriminant().fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("views", "words"),
    [
        ("columns", "must be 'auto' or a list of views"),
        ([], "must be 'auto' or a list of views"),
        (None, "must be 'auto' or a list of views"),
        (["nope"], "'nope' is not a view"),
        (["columns", "columns"], "has the view 'columns' twice"),
        ([NaiveBayes(), NaiveBayes(estimation="mle")], "has the view 'NaiveBayes' twice"),
        ([SoftmaxRegression()], "is not a view"),
        ([MixtureModel(2)], "is not a view"),
    ],
)
def test_other_views_are_named(views: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        small(views).fit(*numbers())


def test_a_view_that_is_singular_without_the_rows_of_a_fold_is_named() -> None:
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")), np.repeat(["u", "v", "w"], [20, 36, 4])
    message = r"views, QuadraticDiscriminant: .* Remedies: shrinkage=0\.1, .* rows that are left out"
    with pytest.raises(NotEstimableError, match=message):
        small(["columns", QuadraticDiscriminant()]).fit(X, y)
    small(["columns", QuadraticDiscriminant(shrinkage=0.1)]).fit(X, y)


def test_a_view_that_cannot_be_estimated_gives_its_remedies() -> None:
    X, y = numbers()
    X.loc[y == "a", "w"] = X.loc[y == "a", "x"]
    with pytest.raises(NotEstimableError, match="estimation='bayes'"):
        small([QuadraticDiscriminant()]).fit(X, y)
    check_explanations(small([QuadraticDiscriminant(estimation="bayes")]).fit(X, y), X)


@pytest.mark.parametrize(
    "options", [{"max_rows": 99}, {"max_rows": None}, {"n_trees": 0}, {"n_trees": 2.5}, {"random_state": "x"}]
)
def test_other_options_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(LikelyError, match=next(iter(options))):
        EvidenceClassifier(**options).fit(*numbers())


# -- class prior


def test_another_prior_changes_the_log_odds_by_its_logarithm() -> None:
    model, (X, _) = model_of_mixed(), later()
    prior = np.array([0.7, 0.2, 0.1])
    for given in (prior, dict(zip("abc", prior.tolist(), strict=True))):
        other = model.with_prior(given)
        expected = model.predict_log_proba(X) + np.log(prior) - np.log(model.class_prior_)
        assert_allclose(other.predict_log_proba(X), expected - logsumexp(expected, axis=1, keepdims=True), atol=1e-12)
        assert_allclose(other.class_prior_, prior)
        assert_allclose(other.generative_.class_prior_, prior)
    assert_allclose(other.with_prior(None).predict_proba(X), model.predict_proba(X), atol=1e-14)
    check_explanations(other, X)
    with pytest.raises(InputError, match="class_prior"):
        model.with_prior([0.5, 0.5])


def test_an_impossible_class_is_never_predicted_and_can_be_explained() -> None:
    model, (X, _) = model_of_mixed().with_prior([0.5, 0.5, 0.0]), later()
    assert_array_equal(model.predict_proba(X)[:, 2], 0.0)
    found = model.explain(X)
    total, logs = found.evidence.sum(axis=2) + found.offset, model.predict_log_proba(X)
    assert_allclose(total[:, 0] - total[:, 1], logs[:, 0] - logs[:, 1], atol=1e-9)
    assert np.all(np.isneginf(total[:, 2]))


def test_the_prior_of_unlabeled_rows_is_found() -> None:
    X, y = numbers(600)
    model = small(["columns"]).fit(X[:300], y[:300])
    rare = np.flatnonzero((y[300:] != "c") | (np.arange(300) % 10 == 2)) + 300
    adapted = model.adapt_prior(X.iloc[rare])
    truth = np.array([np.mean(y[rare] == label) for label in "abc"])
    assert np.abs(adapted.class_prior_ - truth).max() < np.abs(model.class_prior_ - truth).max() / 2
    assert adapted.prior_shift_.p_value < 0.05
    assert not hasattr(adapted.fit(X[:60], y[:60]), "prior_shift_")


# -- updates


def test_adding_rows_adding_models_and_removing_rows_agree() -> None:
    X, y = later()
    first, every = fresh(), mixed(90)[0]
    second = small().fit(X, y, structure_of=first)
    together = first + second
    updated = fresh().partial_fit(X, y)
    assert_allclose(together.predict_proba(every), updated.predict_proba(every), atol=1e-12)
    assert_allclose(together.log_joint(every), updated.log_joint(every), rtol=1e-9)
    assert_array_equal(together.similar_rows(X, 1)["similar_row"], updated.similar_rows(X, 1)["similar_row"])
    assert np.abs(updated.predict_proba(every) - first.predict_proba(every)).max() > 1e-3
    back = updated.forget(X, y)
    assert_allclose(back.predict_proba(every), first.predict_proba(every), atol=1e-9)
    assert back.summary().class_weights == (20.0, 20.0, 20.0)
    check_explanations(together, every)


def test_rows_come_in_chunks_too() -> None:
    X, y = later()

    class Source:
        def chunks(self) -> Any:
            return (X[start : start + 7] for start in range(0, len(X), 7))

    at_once, in_chunks = fresh().partial_fit(X, y), fresh().partial_fit(Source(), y)
    assert_allclose(in_chunks.predict_proba(Source()), at_once.predict_proba(X), atol=1e-12)
    assert_allclose(small().fit(Source(), y).predict_proba(X), small().fit(X, y).predict_proba(X), atol=1e-12)


def test_a_part_without_some_class_can_be_counted() -> None:
    X, y = later()
    X, y = X[y != "a"], y[y != "a"]
    part = small().fit(X, y, structure_of=model_of_mixed())
    assert_array_equal(part.classes_, ["a", "b", "c"])
    assert_array_equal(part.generative_.classes_, ["a", "b", "c"])
    assert np.isfinite(part.predict_log_proba(X)).all()
    together, updated = model_of_mixed() + part, fresh().partial_fit(X, y)
    assert_allclose(together.predict_proba(X), updated.predict_proba(X), atol=1e-12)


def test_a_model_that_is_not_fitted_is_fitted_by_its_first_rows() -> None:
    X, y = numbers()
    model = small(["columns"]).partial_fit(X, y, classes=["a", "b", "c"])
    assert_array_equal(model.predict_proba(X), small(["columns"]).fit(X, y).predict_proba(X))
    for classes, words in ((["a", "b", "c", "d"], "'d'"), (["a", "b"], "'c', which is not among classes")):
        unfitted = small(["columns"])
        with pytest.raises(InputError, match=words):
            unfitted.partial_fit(X, y, classes=classes)
        assert not hasattr(unfitted, "model_")


def test_one_of_equal_rows_can_be_removed() -> None:
    X, y = mixed()
    index = np.r_[np.arange(60), np.arange(60)]
    model = small(["columns", "joint", "neighbours"]).fit(X.iloc[index], y[index]).forget(X, y)
    assert model.summary().class_weights == (20.0, 20.0, 20.0)
    fewer = small(["columns", "joint", "neighbours"]).fit(X, y, structure_of=model)
    assert_allclose(model.predict_proba(X), fewer.predict_proba(X), atol=1e-9)


def test_fractional_weights_can_be_removed() -> None:
    X, y = mixed()
    weights = np.random.default_rng(3).uniform(0.1, 2.0, 60)
    model = small().fit(X, y, sample_weight=weights).forget(X[:30], y[:30], sample_weight=weights[:30])
    assert_allclose(sum(model.summary().class_weights), weights[30:].sum())
    assert np.isfinite(model.predict_proba(X)).all()


def wrong_updates() -> dict[str, tuple[Callable[[Any], Any], str]]:
    X, y = mixed(90)
    of_a = y[:60] == "a"
    return {
        "other rows": (lambda model: model.forget(X[60:], y[60:]), "not among the training rows"),
        "another class": (lambda model: model.forget(X[:1], ["b"]), "not among the training rows"),
        "another weight": (
            lambda model: model.forget(X[:1], y[:1], sample_weight=[2.0]),
            "not among the training rows",
        ),
        "a row twice": (lambda model: model.forget(X.iloc[[0, 0]], y[[0, 0]]), "not among the training rows"),
        "a class": (lambda model: model.forget(X[:60][of_a], y[:60][of_a]), "No row of class 'a' would be left"),
        "every row": (lambda model: model.forget(X[:60], y[:60]), "No row of class 'a', 'b', 'c'"),
        "too many": (lambda model: model.forget(X, y), "More rows are to be removed than were added"),
        "new class": (lambda model: model.partial_fit(X[:1], ["new"]), "'new', which is not among the classes"),
        "new classes": (lambda model: model.partial_fit(X[:1], ["a"], classes=["a", "new"]), "'new'"),
        "columns": (lambda model: model.partial_fit(X[:1][["x"]], ["a"]), "Add the missing columns"),
        "infinite": (lambda model: model.partial_fit(X[:1].assign(z=np.inf), ["a"]), "Column 'z', row 0"),
        "no label": (lambda model: model.partial_fit(X[:2], ["a", None]), "the label is missing"),
        "one class": (lambda model: model.reweigh(X[:60][of_a], y[:60][of_a]), "no row of the class 'b', 'c'"),
        "unseen rows": (lambda model: model.reweigh(X, y), "not among the training rows"),
        "other structures": (lambda model: model + small().fit(X, y), "structure_of=first"),
    }


@pytest.mark.parametrize("name", wrong_updates())
def test_a_wrong_update_is_named_and_changes_nothing(name: str) -> None:
    model = fresh()
    update, words = wrong_updates()[name]
    with pytest.raises(InputError, match=words):
        update(model)
    assert_array_equal(model.predict_proba(later()[0]), model_of_mixed().predict_proba(later()[0]))


@pytest.mark.parametrize(
    ("structure_of", "words"), [(3, "must be a fitted EvidenceClassifier"), ("columns", "feature names should match")]
)
def test_other_structures_are_named(structure_of: Any, words: str) -> None:
    X, y = numbers()
    if structure_of == "columns":
        structure_of = model_of_mixed()
    with pytest.raises((InputError, TypeError), match=words):
        small().fit(X, y, structure_of=structure_of)


def test_weights_can_be_learnt_again() -> None:
    X, y = mixed(90)
    model = fresh().partial_fit(X[60:], y[60:])
    before = model.weights_["weight"].to_numpy()
    model.reweigh(X, y)
    assert np.abs(model.weights_["weight"].to_numpy() - before).max() > 1e-4
    assert model.summary().class_weights == (30.0, 30.0, 30.0)
    check_explanations(model, X)
    again = fresh().reweigh(X[:60], y[:60])
    assert_allclose(again.predict_proba(X), model_of_mixed().predict_proba(X), atol=1e-6)


# -- files


def stored(model: Any, path: Path) -> Any:
    model.save(path / "model.likely")
    return likely.load(path / "model.likely")


def test_a_model_comes_back_from_its_file_and_goes_on_learning(tmp_path: Path) -> None:
    model, (X, y) = fresh(), mixed(90)
    loaded = stored(model, tmp_path)
    assert repr(loaded) == repr(model)
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert_array_equal(loaded.log_joint(X), model.log_joint(X))
    assert str(loaded.summary()) == str(model.summary())
    pd.testing.assert_frame_equal(loaded.weights_, model.weights_)
    pd.testing.assert_frame_equal(loaded.similar_rows(X), model.similar_rows(X))
    assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    more = loaded + small().fit(*later(), structure_of=model)
    assert_array_equal(more.predict_proba(X), fresh().partial_fit(*later()).predict_proba(X))
    assert_array_equal(
        loaded.partial_fit(*later()).forget(X[:9], y[:9]).predict_proba(X),
        model.partial_fit(*later()).forget(X[:9], y[:9]).predict_proba(X),
    )


def test_models_as_views_arrays_and_a_prior_come_back(tmp_path: Path) -> None:
    X, y = numbers()
    values: Array = X.to_numpy()
    codes = np.searchsorted(["a", "b", "c"], y)
    model = small([LinearDiscriminant(), NaiveBayes(), "pairs"]).fit(values, codes).with_prior("uniform")
    loaded = stored(model, tmp_path)
    assert_array_equal(loaded.predict_proba(values), model.predict_proba(values))
    assert_array_equal(loaded.class_prior_, model.class_prior_)
    assert not hasattr(loaded, "feature_names_in_")
    check_explanations(loaded, values)


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "model": lambda content: content.update(model=content["pooled"]),
    "shares": lambda content: content.update(shares=content["shares"][1:]),
    "rows": lambda content: content.update(rows=-1),
    "pooled": lambda content: content.update(pooled=None),
    "generative": lambda content: content["generative"].update(estimator=LinearDiscriminant()),
    "views": lambda content: content.update(
        model=type(content["model"])(
            content["model"].classes,
            content["model"].encoding,
            content["model"].views,
            content["model"].offsets[1:],
            content["model"].class_weights,
            content["model"].category_weights,
        )
    ),
    "categories": lambda content: content.update(
        model=replace(content["model"], category_weights=content["model"].category_weights[1:])
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_contents_that_no_model_has_are_refused(name: str, tmp_path: Path) -> None:
    content = model_of_mixed()._content()
    content["generative"] = dict(content["generative"])
    FORGED[name](content)
    persistence.write(tmp_path / "forged", content)
    with pytest.raises(ModelFileError, match=r"no model has such|not a complete model"):
        likely.load(tmp_path / "forged")


def forged_arrays() -> list[tuple[int, str]]:
    """All arrays of all views, by the number of the view and the name of the field."""
    found = []
    for i, each in enumerate(model_of_mixed().model_.views):
        names: list[str] = [field.name for field in fields(each.view)]  # type: ignore[arg-type]
        found += [(i, name) for name in names if isinstance(getattr(each.view, name), np.ndarray)]
    return found


@pytest.mark.parametrize(("view", "field"), forged_arrays())
def test_shorter_arrays_of_views_are_refused(view: int, field: str) -> None:
    model = model_of_mixed().model_
    whole: Any = model.views[view].view
    assert fits(model)
    changed = replace(model.views[view], view=replace(whole, **{field: getattr(whole, field)[:-1]}))
    assert not fits(replace(model, views=(*model.views[:view], changed, *model.views[view + 1 :])))


def test_columns_are_text_and_numbers_in_every_division() -> None:
    X, y = numbers()
    model = small(["columns", "neighbours"]).fit(X, y)
    assert model.explain(X[:1]).columns == (*COLUMNS, SIMILAR_ROWS, CLIPPED)
    assert model.explain(X[:1], by="view").columns == ("columns", "neighbours", CLIPPED)
    names = (*(f"{name} (columns)" for name in COLUMNS), SIMILAR_ROWS, CLIPPED)
    assert model.explain(X[:1], by="column and view").columns == names
    with pytest.raises(InputError, match="by='row'"):
        model.explain(X, by="row")


def test_files_have_codes_and_short_counts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(20, size=1000)
    X = pd.DataFrame({f"c{j}": rng.integers(60, size=1000).astype(str) for j in range(6)}).assign(
        x=rng.normal(size=1000)
    )
    model = EvidenceClassifier(["neighbours", "trees"], n_trees=10).fit(X, y)
    model.save(tmp_path / "model")
    counts = next(each.view.counts for each in model.model_.views if isinstance(each.view, FittedTrees))
    assert (tmp_path / "model").stat().st_size < counts.nbytes / 2
    assert_array_equal(likely.load(tmp_path / "model").predict_proba(X), model.predict_proba(X))
