"""Candidates ranked from one pass: every score is that of the candidate's own fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import likely
from likely import (
    Categorical,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    LogNormal,
    Multinomial,
    NaiveBayes,
    NearestPrototype,
    NegativeBinomial,
    Poisson,
    QuadraticDiscriminant,
    Regularized,
)
from likely.errors import InputError
from likely.evaluation.ranking import CRITERIA, LARGER_IS_BETTER
from tests.helpers import load_table
from tests.laws.families import CASES, Case, every
from tests.laws.registry import PLAIN, SHRUNK

COLUMNS = ["bill_length_mm", "bill_depth_mm", "body_mass_g"]


def measures() -> tuple[Any, Any]:
    frame = load_table("penguins").dropna()
    return frame[COLUMNS].to_numpy(), frame["species"].to_numpy(dtype=object)


CANDIDATES = [
    LinearDiscriminant(),
    LinearDiscriminant(shrinkage="ledoit-wolf"),
    LinearDiscriminant(shrinkage="oas"),
    LinearDiscriminant("diagonal", estimation="map"),
    LinearDiscriminant(estimation="bayes", class_prior="uniform"),
    QuadraticDiscriminant(),
    QuadraticDiscriminant(groups=[["Adelie", "Gentoo"]], unbiased=True),
    QuadraticDiscriminant(shrinkage=Regularized(0.3, 0.1)),
    QuadraticDiscriminant(estimation="bayes"),
    NearestPrototype(),
    NearestPrototype("spherical"),
    NaiveBayes(estimation="mle"),
    NaiveBayes(LogNormal()),
    NaiveBayes(Gamma("shared"), estimation="map"),
    GenerativeClassifier({0: Gaussian(), (1, 2): Gaussian(shared=True)}),
]


def told(scored: Any, *names: str) -> list[float]:
    return [float(getattr(scored, name)) for name in names]


def own_scores(model: Any, X: Any, y: Any) -> dict[str, float]:
    """The scores of a candidate that was fitted on its own."""
    fitted = clone(model).fit(X, y)
    codes = np.searchsorted(fitted.classes_, y)
    posterior = fitted.left_out_proba(X, y)
    scores = {
        "log_loss": log_loss(y, posterior, labels=fitted.classes_),
        "error": float((posterior.argmax(axis=1) != codes).mean()),
    }
    if fitted.estimation == "bayes":
        scores["log_evidence"] = fitted.log_evidence_
    else:
        total = fitted.log_joint(X)[np.arange(len(y)), codes].sum()
        size = fitted.specification_.n_parameters(fitted.statistics_)
        scores |= {"bic": size * np.log(len(y)) - 2.0 * total, "aic": 2.0 * size - 2.0 * total}
    return scores


def test_every_score_is_that_of_a_fit_of_its_own() -> None:
    X, y = measures()
    result = likely.select(X, y, {str(i): model for i, model in enumerate(CANDIDATES)})
    assert len(result.ranking) == len(CANDIDATES)
    for scored in result.ranking:
        assert scored.problem is None, scored
        for name, value in own_scores(CANDIDATES[int(scored.name)], X, y).items():
            assert_allclose(getattr(scored, name), value, rtol=1e-8, atol=1e-9)
    losses = [told(scored, "log_loss")[0] for scored in result.ranking]
    assert losses == sorted(losses)


def test_the_best_is_fitted_and_goes_on_learning() -> None:
    X, y = measures()
    for by in CRITERIA:
        result = likely.select(X, y, CANDIDATES, by=by)
        place = [repr(model).replace("\n", " ") for model in CANDIDATES].index(result.ranking[0].name)
        alone = clone(CANDIDATES[place]).fit(X, y)
        assert_allclose(result.best.predict_proba(X), alone.predict_proba(X), atol=1e-9)
        result.best.partial_fit(X[:20], y[:20])
        assert_allclose(result.best.predict_proba(X), alone.partial_fit(X[:20], y[:20]).predict_proba(X), atol=1e-9)
        known = [getattr(s, by) for s in result.ranking if getattr(s, by) is not None]
        assert known == sorted(known, reverse=by in LARGER_IS_BETTER)
        assert CRITERIA[by] in str(result)


@pytest.mark.parametrize(
    ("table", "target"), [("penguins", "species"), ("german_credit", "class"), ("iris", "Species")]
)
def test_default_candidates_of_real_tables(table: str, target: str) -> None:
    frame = load_table(table)
    result = likely.select(frame, target)
    X = frame.drop(columns=target)
    assert all(scored.problem is None for scored in result.ranking)
    best = result.ranking[0]
    left = result.best.left_out_proba(X, frame[target])
    codes = np.searchsorted(result.best.classes_, frame[target].to_numpy())
    assert_allclose(told(best, "log_loss")[0], -np.log(left[np.arange(len(codes)), codes]).mean(), rtol=1e-9)
    plain = GenerativeClassifier().fit(X, frame[target])
    own = plain.left_out_proba(X, frame[target])[np.arange(len(codes)), codes]
    assert told(best, "log_loss")[0] <= -np.log(own).mean() + 1e-9


def test_families_of_a_column_compete() -> None:
    """Counts that vary more than Poisson ones are better distinguished by a wider family."""
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    X = rng.negative_binomial(1.0, 1.0 / (1.0 + 4.0 + 4.0 * y))[:, None].astype(float)
    rivals = {"poisson": NaiveBayes(Poisson()), "wide": NaiveBayes(NegativeBinomial(1.0))}
    for by in ("log_loss", "log_evidence", "log_likelihood"):
        assert likely.select(X, y, rivals, by=by).ranking[0].name == "wide"


def test_weights_count_rows() -> None:
    X, y = measures()
    weights = np.random.default_rng(0).integers(1, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    ours = likely.select(X, y, [NaiveBayes(estimation="mle")], sample_weight=weights).ranking[0]
    theirs = likely.select(X[rows], y[rows], [NaiveBayes(estimation="mle")]).ranking[0]
    assert_allclose(told(ours, "bic", "aic"), told(theirs, "bic", "aic"), rtol=1e-9)


def test_candidates_that_cannot_be_fitted_are_reported_and_come_last() -> None:
    frame = load_table("penguins")
    X = frame[COLUMNS]
    result = likely.select(
        X,
        frame["species"],
        {
            "missing_values": GenerativeClassifier(Gaussian(shrinkage="ledoit-wolf"), estimation="mle"),
            "several": GenerativeClassifier(Gaussian(components=2)),
            "discriminant": LinearDiscriminant(),
            "declared": NaiveBayes({"body_mass_g": Gaussian("diagonal")}),
            "naive": NaiveBayes(),
        },
    )
    problems = {scored.name: scored.problem for scored in result.ranking}
    assert problems["naive"] is None
    assert problems["discriminant"] is None
    assert "needs complete rows" in str(problems["missing_values"])
    assert "is fitted by EM" in str(problems["several"])
    assert {scored.name for scored in result.ranking[3:]} == {"missing_values", "several"}
    assert "complete rows" in str(result)


def test_what_cannot_be_selected_from_is_refused() -> None:
    X, y = measures()
    with pytest.raises(InputError, match="by='luck' is not known"):
        likely.select(X, y, by="luck")
    with pytest.raises(InputError, match="not a generative classifier of likely"):
        likely.select(X, y, [LogisticRegression()])
    with pytest.raises(InputError, match="candidates is empty"):
        likely.select(X, y, [])
    with pytest.raises(InputError, match=r"sequence, .* or in a mapping"):
        likely.select(X, y, "all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"has no log-evidence.*by='log_loss' compares all"):
        likely.select(X, y, [LinearDiscriminant()], by="log_evidence")
    with pytest.raises(InputError, match="no maximum"):
        likely.select(X[:6], ["a", "b"] * 3, [QuadraticDiscriminant()])


def test_candidates_without_the_criterion_are_named() -> None:
    X, y = measures()
    result = likely.select(X, y, {"point": LinearDiscriminant(), "predictive": NaiveBayes()}, by="aic")
    assert [scored.name for scored in result.ranking] == ["point", "predictive"]
    assert "Not compared, without AIC: 'predictive'" in str(result)


def test_sparse_rows_and_vectors_of_counts() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = scipy.sparse.csr_array(rng.poisson(0.4 + 0.3 * y[:, None], (60, 12)))
    result = likely.select(X, y, {"vector": NaiveBayes(Multinomial()), "counts": NaiveBayes(Poisson())})
    assert {scored.problem for scored in result.ranking} == {None}
    assert likely.select(X, y).best.classes_.tolist() == [0, 1]


def test_one_column_of_labels_alone() -> None:
    frame = load_table("penguins")[["island", "species"]]
    result = likely.select(frame, "species")
    assert isinstance(result.best.families_["island"], Categorical)
    assert_array_equal(result.best.classes_, ["Adelie", "Chinstrap", "Gentoo"])


# ---------------------------------------------------------------------------------------- likelihoods from statistics


@pytest.mark.parametrize("incomplete", [False, True], ids=["", "incomplete"])
@every([case for case in CASES if case.estimation != "bayes"])
def test_the_likelihood_of_a_family_follows_from_its_statistics(case: Case, incomplete: bool) -> None:
    rows = case.member.table(seed=1)
    rows = case.member.incomplete(rows) if incomplete else rows
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(rows.y))
    model = GenerativeClassifier(case.member.family, estimation=case.estimation).fit(rows.X, rows.y, weights)
    own = model.log_joint(rows.X)[np.arange(len(rows.y)), rows.codes]
    assert_allclose(model.specification_.log_likelihood(model.model_, model.statistics_), weights @ own, rtol=1e-9)
    part = np.flatnonzero(np.arange(len(rows.y)) % 3 > 0)
    learnt = clone(model).fit(rows.X[part], rows.y[part])
    own = learnt.log_joint(rows.X)[np.arange(len(rows.y)), rows.codes]
    told = learnt.specification_.log_likelihood(learnt.model_, model.statistics_)  # of rows that it has not learnt, too
    assert_allclose(told, weights @ own, rtol=1e-9)


@pytest.mark.parametrize("case", [c for c in [*PLAIN, *SHRUNK] if c.estimation != "bayes"], ids=str)
def test_the_likelihood_of_a_gaussian_follows_from_its_moments(case: Any) -> None:
    X, y = measures()
    model = case.classifier(np.unique(y)).fit(X, y)
    own = model.log_joint(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    assert_allclose(model.specification_.log_likelihood(model.model_, model.statistics_), own.sum(), rtol=1e-9)
    learnt = case.classifier(np.unique(y)).fit(X[::2], y[::2])
    own = learnt.log_joint(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    told = learnt.specification_.log_likelihood(learnt.model_, model.statistics_)  # of rows that it has not learnt, too
    assert_allclose(told, own.sum(), rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        (QuadraticDiscriminant(), 2 + 9 + 3 * 6),
        (LinearDiscriminant(), 2 + 9 + 6),
        (LinearDiscriminant("diagonal"), 2 + 9 + 3),
        (QuadraticDiscriminant("spherical"), 2 + 9 + 3),
        (NearestPrototype(), 9),
        (NaiveBayes(LogNormal(), estimation="mle"), 2 + 9 + 9),
        (NaiveBayes(Gamma(), estimation="mle"), 2 + 9 + 9),
        (NaiveBayes(Gamma("shared"), estimation="mle"), 2 + 9 + 3),
        (GenerativeClassifier(Gaussian(components=2), estimation="mle"), 2 + 3 * (1 + 2 * (3 + 6))),
    ],
    ids=str,
)
def test_parameters_are_counted(model: Any, wanted: int) -> None:
    X, y = measures()
    fitted = model.fit(X, y)
    assert fitted.specification_.n_parameters(fitted.statistics_) == wanted


@pytest.mark.parametrize("seed", range(12))
def test_stratified_folds_are_those_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    folds = int(rng.integers(2, 8))
    shares = rng.dirichlet(np.ones(rng.integers(1, 6)))
    y = rng.permutation(np.repeat(rng.permutation(len(shares)), np.maximum((shares * 200).astype(int), folds)))
    X = rng.normal(size=(len(y), 2))
    found = likely.cross_validate(NaiveBayes(), X, y, folds=folds, random_state=seed).fold
    for i, (_, test) in enumerate(StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y)):
        assert np.array_equal(np.flatnonzero(found == i), test)
    unshuffled = likely.cross_validate(NaiveBayes(), X, y, folds=StratifiedKFold(folds)).fold
    for i, (_, test) in enumerate(StratifiedKFold(folds).split(X, y)):
        assert np.array_equal(np.flatnonzero(unshuffled == i), test)


def test_fewer_rows_than_folds_in_a_class_are_a_warning_as_in_scikit_learn() -> None:
    X, y = np.arange(12.0)[:, None], np.repeat([0, 1], [10, 2])
    with pytest.warns(UserWarning, match="least populated class"):
        found = likely.cross_validate(NaiveBayes(), X, y, folds=4).fold
    with pytest.warns(UserWarning, match="least populated class"):
        splits = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    assert all(np.array_equal(np.flatnonzero(found == i), test) for i, (_, test) in enumerate(splits))


def test_of_classes_that_tie_the_first_is_the_answer() -> None:
    X, y = np.zeros((12, 1)), np.tile([0, 1], 6)
    judged = likely.cross_validate(NaiveBayes({0: likely.Bernoulli()}, class_prior="uniform"), X, y, folds=3)
    assert np.array_equal(judged.error, [0.5, 0.5, 0.5])
    assert np.allclose(judged.posterior, 0.5)
