"""Expectation maximisation: missing cells, missing labels, no labels, against densities and optima from elsewhere."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.model_selection import cross_validate as scikit_learns
from sklearn.pipeline import make_pipeline

import likely
from likely import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    Geometric,
    LinearDiscriminant,
    LogNormal,
    MixtureModel,
    Multinomial,
    NaiveBayes,
    NegativeBinomial,
    NormalInverseWishart,
    Poisson,
    QuadraticDiscriminant,
    VonMises,
)
from likely.data.batches import Batches
from likely.data.validation import read_table
from likely.errors import DeadComponentWarning, InputError, NotConvergedWarning, NotEstimableError
from tests.helpers import load_reference, load_table

SHARINGS: list[Any] = [True, False, [[0, 2]]]
TIGHT: Any = {"tol": 1e-13, "max_iter": 5000}


def incomplete(rows: int = 150, columns: int = 3, share: float = 0.25, seed: int = 0) -> tuple[Any, Any]:
    """Three classes of correlated columns, with cells missing at random."""
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 3
    X = (
        rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns))
        + y[:, None] * [1.5, -1.0, 0.5, 2.0][:columns]
    )
    X[rng.random(X.shape) < share] = np.nan
    return X, y


def observed_likelihood(X: Any, y: Any, means: Any, covariances: Any, shares: Any) -> float:
    """Σ log p(x_observed, y), row after row, with SciPy's density of the marginal."""
    total = float(np.log(np.asarray(shares)[y]).sum())
    for row, k in zip(X, y, strict=True):
        there = ~np.isnan(row)
        if there.any():
            part = covariances[k][np.ix_(there, there)]
            total += multivariate_normal(means[k][there], part, allow_singular=False).logpdf(row[there])
    return total


def parameters(model: Any) -> tuple[Any, Any]:
    parts = model.model_.blocks[0].conditionals
    return parts.class_means(), np.array([parts.class_covariance(k) for k in range(len(model.classes_))])


# ------------------------------------------------------------------------------------------------------ missing cells


@pytest.mark.parametrize("shared", SHARINGS, ids=str)
def test_the_likelihood_of_what_is_there_is_at_its_maximum(shared: Any) -> None:
    """Its value is SciPy's, and no small change of a mean or a covariance makes it larger."""
    X, y = incomplete(rows=75)
    model: Any = GenerativeClassifier(Gaussian(shared=shared), estimation="mle", **TIGHT).fit(X, y)
    means, covariances = parameters(model)
    best = observed_likelihood(X, y, means, covariances, model.class_prior_)
    assert_allclose(model.specification_.log_likelihood(model.model_, model.statistics_), best, rtol=1e-10)
    groups = [[0, 2], [1]]
    if isinstance(shared, bool):
        groups = [[0, 1, 2]] if shared else [[0], [1], [2]]
    rng, step = np.random.default_rng(1), 1e-4
    for _ in range(12):
        turned = means + step * rng.normal(size=means.shape)
        other = covariances.copy()
        for group in groups:
            change = step * rng.normal(size=(3, 3))
            for k in group:
                other[k] = other[k] + change + change.T
        assert observed_likelihood(X, y, turned, covariances, model.class_prior_) < best + 1e-9
        assert observed_likelihood(X, y, means, other, model.class_prior_) < best + 1e-9


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
@pytest.mark.parametrize("shared", SHARINGS, ids=str)
def test_the_objective_never_falls(shared: Any, estimation: str) -> None:
    X, y = incomplete(columns=4)
    labels: Any = np.where(np.arange(len(y)) % 2 == 0, None, y.astype(object))
    model: Any = GenerativeClassifier(
        Gaussian(shared=shared), estimation=estimation, tol=1e-10, max_iter=2000, unlabeled_weight=1.0
    ).fit(X, labels)
    course = np.array(model._history.objective)
    assert len(course) > 5
    assert np.diff(course).min() > -1e-9 * abs(course[-1])
    assert model.converged_
    assert model.n_iter_ >= len(course)


def test_a_mode_is_the_maximum_of_the_posterior() -> None:
    """With a given prior: the log-likelihood of what is there plus the density of the prior, from SciPy."""
    X, y = incomplete(columns=2)
    prior = likely.NormalInverseWishart(mean=[0.5, -0.5], mean_rows=2.0, degrees=7.0, scale=[[2.0, 0.3], [0.3, 1.0]])
    model: Any = GenerativeClassifier(Gaussian(prior=prior), class_prior="uniform", estimation="map", **TIGHT).fit(X, y)
    means, covariances = parameters(model)

    def objective(means: Any, covariances: Any) -> float:
        total = observed_likelihood(X, y, means, covariances, np.full(3, 1 / 3))
        for mean, covariance in zip(means, covariances, strict=True):
            total += scipy.stats.invwishart(7.0, [[2.0, 0.3], [0.3, 1.0]]).logpdf(covariance)
            total += multivariate_normal([0.5, -0.5], covariance / 2.0).logpdf(mean)
        return total

    best, rng = objective(means, covariances), np.random.default_rng(0)
    for _ in range(20):
        change = 1e-4 * rng.normal(size=covariances.shape)
        assert objective(means + 1e-4 * rng.normal(size=means.shape), covariances) < best + 1e-9
        assert objective(means, covariances + change + change.transpose(0, 2, 1)) < best + 1e-9


def test_norm_and_mvtnorm_on_the_penguins() -> None:
    """R's answers. (No cell of these rows is missing: two birds without any measurement were left out.)"""
    wanted = load_reference("penguins-mvn-missing-em")
    frame = load_table("penguins")
    columns = wanted["all"]["mean"]["names"]
    X, y = frame[columns].to_numpy(), frame["species"].to_numpy()
    # The two birds of which nothing is known change the class shares alone.
    model: Any = GenerativeClassifier(Gaussian(), estimation="mle", class_prior=wanted["prior"]["values"], **TIGHT).fit(
        X, y
    )
    means, covariances = parameters(model)
    for k, name in enumerate(model.classes_):
        part = wanted["by_class"][name]
        assert_allclose(means[k], part["mean"]["values"], rtol=1e-6)
        assert_allclose(covariances[k], part["cov"]["values"], rtol=1e-6)
    known = ~np.isnan(X).all(axis=1)
    rows = np.array(wanted["rows"]) - 1
    assert_allclose(model.predict_proba(X[known][rows]), wanted["posterior_by_class"]["values"], atol=1e-6)
    shared = LinearDiscriminant(class_prior=wanted["prior"]["values"]).fit(X, y)
    assert_allclose(shared.means_, wanted["common_cov"]["means"]["values"], rtol=1e-6)
    assert_allclose(shared.covariance_, wanted["common_cov"]["cov"]["values"], rtol=1e-6)
    assert_allclose(shared.predict_proba(X[known][rows]), wanted["common_cov"]["posterior"]["values"], atol=1e-6)
    everybody: Any = GenerativeClassifier(Gaussian(), estimation="mle").fit(X, np.zeros(len(X)))
    means, covariances = parameters(everybody)
    assert_allclose(means[0], wanted["all"]["mean"]["values"], rtol=1e-6)
    assert_allclose(covariances[0], wanted["all"]["cov"]["values"], rtol=1e-6)
    likelihood = everybody.specification_.log_likelihood(everybody.model_, everybody.statistics_)
    assert_allclose(likelihood, wanted["all"]["observed_loglik"], rtol=1e-9)


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_a_row_of_which_nothing_is_known_counts_for_its_class_alone(estimation: str) -> None:
    X, y = incomplete(share=0.0)
    more = np.vstack([X, np.full((2, 3), np.nan)])
    labels = np.append(y, [0, 0])
    given: Any = {"class_prior": "uniform", "estimation": estimation, **TIGHT}
    plain: Any = GenerativeClassifier(Gaussian(), **given).fit(X, y)
    assert_allclose(
        GenerativeClassifier(Gaussian(), **given).fit(more, labels).predict_proba(X), plain.predict_proba(X), rtol=1e-8
    )


class Chunks:
    def __init__(self, X: Any, size: int) -> None:
        self.parts = [X[start : start + size] for start in range(0, len(X), size)]

    def chunks(self) -> Iterator[Any]:
        return iter(self.parts)


@pytest.mark.parametrize("weight", [1.0, pytest.param("auto", marks=pytest.mark.long)])
def test_rows_in_chunks_teach_the_same(weight: Any) -> None:
    X, y = incomplete()
    labels: Any = np.where(np.arange(len(y)) % 3 == 0, None, y.astype(object))
    whole: Any = GenerativeClassifier(Gaussian(), max_iter=200, tol=1e-9, unlabeled_weight=weight).fit(X, labels)
    parts: Any = GenerativeClassifier(Gaussian(), max_iter=200, tol=1e-9, unlabeled_weight=weight).fit(
        Chunks(X, 40), labels
    )
    assert parts.n_iter_ == whole.n_iter_
    assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=1e-7)


def test_em_that_does_not_converge_warns() -> None:
    X, y = incomplete()
    with pytest.warns(NotConvergedWarning, match="3 iterations"):
        model: Any = GenerativeClassifier(Gaussian(), max_iter=3, tol=0.0).fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 3


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda X, y: X.__setitem__((y == 1, 0), np.nan), id="a column missing in one class"),
        pytest.param(lambda X, y: X.__setitem__((slice(None), 2), np.nan), id="a column missing in all"),
        pytest.param(lambda X, y: X.__setitem__((0, slice(None)), np.nan), id="a row missing entirely"),
        pytest.param(lambda X, y: X.__setitem__((slice(0, 9), slice(1, None)), np.nan), id="rows of one cell"),
        pytest.param(
            lambda X, y: X.__setitem__((np.flatnonzero(y == 2), np.arange((y == 2).sum()) % 3), np.nan),
            id="a class of incomplete rows",
        ),
        pytest.param(lambda X, y: X.__setitem__((np.arange(len(X)) % 2 == 0, 1), 7.0), id="a column half constant"),
        pytest.param(
            lambda X, y: (X.__setitem__((slice(None), 1), 7.0), X.__setitem__((slice(0, 30), 1), np.nan)),
            id="a constant column with missing values",
        ),
        pytest.param(lambda X, y: X.__imul__(1e135), id="huge"),
        pytest.param(lambda X, y: X.__iadd__(1e8), id="far"),
    ],
)
@pytest.mark.parametrize("estimation", ["map", "bayes"])
@pytest.mark.parametrize("shared", [True, False])
def test_missing_values_of_any_kind_are_learnt_from(spoil: Any, estimation: str, shared: bool) -> None:
    X, y = incomplete(share=0.1)
    spoil(X, y)
    model: Any = GenerativeClassifier(Gaussian(shared=shared), estimation=estimation, tol=1e-7, max_iter=2000).fit(X, y)
    posterior = model.predict_proba(X)
    assert np.all(np.isfinite(posterior))
    assert_allclose(posterior.sum(axis=1), 1.0)
    assert np.mean(model.predict(X) == y) > 0.45


# ----------------------------------------------------------------------------------------------------- missing labels


def counts_table(rows: int = 240, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    frame = pd.DataFrame(
        {
            "real": rng.normal(size=rows) + 2.0 * y,
            "count": rng.poisson(2 + 3 * y).astype(float),
            "yes": (rng.random(rows) < 0.3 + 0.4 * y).astype(float),
            "label": np.where(rng.random(rows) < 0.7, np.where(y, "a", "b"), "c"),
            "wait": rng.exponential(1.0 + 2.0 * y),
            "tries": rng.geometric(0.6 - 0.3 * y) - 1.0,
        }
    )
    for name in ("real", "count", "wait"):
        frame.loc[rng.random(rows) < 0.1, name] = np.nan
    return frame, y


FAMILIES = {
    "real": Gaussian("diagonal"),
    "count": Poisson(),
    "yes": Bernoulli(),
    "label": Categorical(),
    "wait": Exponential(),
    "tries": Geometric(),
}


@pytest.mark.parametrize("names", [[name] for name in FAMILIES] + [list(FAMILIES)], ids=str)
@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_the_objective_of_every_family_never_falls(names: list[str], estimation: str) -> None:
    X, y = counts_table()
    labels: Any = np.where(np.arange(len(y)) % 4 == 0, y.astype(object), None)
    model: Any = GenerativeClassifier(
        {name: FAMILIES[name] for name in names},
        estimation=estimation,
        tol=1e-10,
        max_iter=2000,
        unlabeled_weight=1.0,
    ).fit(X[names], labels)
    course = np.array(model._history.objective)
    assert len(course) > 1
    assert np.diff(course).min() > -1e-9 * abs(course[-1])


@pytest.mark.parametrize("family", [Bernoulli, Categorical, Multinomial])
def test_pseudo_counts_belong_to_the_objective_of_maximum_likelihood(family: Any) -> None:
    rng = np.random.default_rng(3)
    y: Any = np.arange(80) % 2
    X: Any = (rng.random((80, 6)) < 0.35 + 0.3 * y[:, None]).astype(float)
    labels: Any = np.where(np.arange(80) < 8, y.astype(object), None)
    model: Any = NaiveBayes(
        family(smoothing=5.0), estimation="mle", tol=1e-12, max_iter=3000, unlabeled_weight=1.0
    ).fit(X, labels)
    course = np.array(model._history.objective)
    assert len(course) > 5
    assert np.diff(course).min() > -1e-9 * abs(course[-1])
    (block,) = model.model_.blocks
    if family is Categorical:
        logs = np.array(block.conditionals.tables)
    else:
        chance = block.conditionals.probability
        logs = np.log(chance) + (np.log1p(-chance) if family is Bernoulli else 0.0)
    known = np.arange(80) < 8
    seen = model.log_joint(X[known])[np.arange(8), y[known]].sum() + model.log_density(X[~known]).sum()
    assert_allclose(course[-1], seen + 5.0 * logs.sum(), rtol=1e-8)


def test_semi_supervised_likelihood_is_the_sum_over_labels() -> None:
    """log p(x, y) of labeled rows and log p(x) of the others, as the model itself tells them."""
    X, y = counts_table()
    labels: Any = np.where(np.arange(len(y)) % 4 == 0, y.astype(object), None)
    model: Any = GenerativeClassifier(FAMILIES, estimation="mle", tol=1e-12, max_iter=3000, unlabeled_weight=1.0).fit(
        X, labels
    )
    known = np.arange(len(y)) % 4 == 0
    total = model.log_joint(X[known])[np.arange(known.sum()), y[known]].sum() + model.log_density(X[~known]).sum()
    assert_allclose(model._history.log_likelihood, total, rtol=1e-8)


def test_unlabeled_rows_of_no_weight_teach_nothing() -> None:
    X, y = counts_table()
    labels: Any = np.where(np.arange(len(y)) % 4 == 0, y.astype(object), None)
    known = np.arange(len(y)) % 4 == 0
    plain: Any = NaiveBayes().fit(X[known], y[known])
    without = NaiveBayes(plain.families_, unlabeled_weight=0.0).fit(X, labels)
    assert_allclose(without.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
    half = NaiveBayes(plain.families_, unlabeled_weight=0.5).fit(X, labels)
    assert_allclose(half.statistics_.counts.weight.sum(), known.sum() + 0.5 * (~known).sum())


@pytest.mark.parametrize("word", [-1, "?"])
@pytest.mark.parametrize("weight", [1.0, pytest.param("auto", marks=pytest.mark.long)])
def test_a_value_may_stand_for_a_missing_label(word: Any, weight: Any) -> None:
    X, y = counts_table()
    labels = np.where(np.arange(len(y)) % 4 == 0, y.astype(object), None)
    marked: Any = np.where(np.arange(len(y)) % 4 == 0, y.astype(object), word)
    if word == -1:
        marked = marked.astype(int)
    one = NaiveBayes(FAMILIES, unlabeled_weight=weight).fit(X, labels)
    two = NaiveBayes(FAMILIES, unlabeled_weight=weight, unlabeled=word).fit(X, marked)
    assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-12)
    assert one.classes_.tolist() == two.classes_.tolist() == [0, 1]


def test_unlabeled_rows_help_where_labels_are_few() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = rng.normal(size=(2000, 6)) + 1.0 * y[:, None]
    gains = []
    for seed in range(10):
        some = np.concatenate(
            [np.random.default_rng(seed).choice(np.flatnonzero(y == k), 3, replace=False) for k in (0, 1)]
        )
        labels = np.full(2000, None, dtype=object)
        labels[some] = y[some]
        few = NaiveBayes(Gaussian("diagonal", shared=True)).fit(X[some], y[some]).score(X, y)
        model = NaiveBayes(Gaussian("diagonal", shared=True), unlabeled_weight=1.0)
        gains.append(model.fit(X, labels).score(X, y) - few)
    assert np.mean(gains) > 0.05


def test_rows_far_from_every_class_do_no_harm() -> None:
    X, y = incomplete(share=0.0)
    far = np.vstack([X, np.full((3, 3), 1e6)])
    labels = np.append(y.astype(object), [None, None, None])
    model: Any = GenerativeClassifier(Gaussian(shared=True), unlabeled_weight=1.0).fit(far, labels)
    assert np.all(np.isfinite(model.predict_proba(far)))


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_without_anything_missing_it_is_the_plain_fit(estimation: str) -> None:
    X, y = incomplete(share=0.0)
    plain: Any = GenerativeClassifier(Gaussian(), estimation=estimation).fit(X, y)
    assert plain.n_iter_ == 1
    assert plain._history is None
    labels: Any = y.astype(object)
    again: Any = GenerativeClassifier(Gaussian(), estimation=estimation).fit(X, labels)
    assert_array_equal(again.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize(
    "family",
    [Multinomial(), LogNormal(), Gamma(), Gamma("shared"), NegativeBinomial(50.0), Poisson("row totals")],
    ids=str,
)
def test_other_families_learn_from_unlabeled_rows(family: Any) -> None:
    rng = np.random.default_rng(0)
    y: Any = rng.integers(0, 2, 200)
    X = rng.poisson(np.where(y[:, None], [5.0, 1.0, 3.0], [1.0, 5.0, 3.0])) + 1.0
    labels = y.astype(object)
    labels[np.arange(200) % 10 != 0] = None
    model: Any = NaiveBayes(family, unlabeled_weight=1.0).fit(X, labels)
    assert model.score(X, y) > 0.8


OTHERS = [Beta(), VonMises(), Gamma(), NegativeBinomial(2.0), LogNormal()]


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
@pytest.mark.parametrize("family", OTHERS, ids=str)
def test_the_objective_of_families_without_closed_forms_never_falls(family: Any, estimation: str) -> None:
    rng = np.random.default_rng(0)
    y: Any = rng.integers(0, 2, 200)
    X = rng.beta(2.0 + 2.0 * y[:, None], 3.0, size=(200, 2)) * (
        0.999 if not isinstance(family, NegativeBinomial) else 20
    )
    X = np.round(X) if isinstance(family, NegativeBinomial) else X
    labels: Any = np.where(np.arange(200) % 5 == 0, y.astype(object), None)
    model: Any = NaiveBayes(family, estimation=estimation, tol=1e-10, max_iter=3000, unlabeled_weight=1.0).fit(
        X, labels
    )
    course = np.array(model._history.objective)
    assert np.diff(course).min() > -1e-7 * abs(course[-1])


def test_files_and_pickles_keep_how_it_was_learnt(tmp_path: Any) -> None:
    X, y = incomplete()
    labels: Any = np.where(np.arange(len(y)) % 3 == 0, None, y.astype(object))
    for given in (y, labels):
        model: Any = GenerativeClassifier(Gaussian()).fit(X, given)
        model.save(tmp_path / "model")
        for again in (likely.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
            assert again.n_iter_ == model.n_iter_ > 1
            assert again.converged_
            assert_array_equal(again.predict_proba(X), model.predict_proba(X))
            if given is y:
                again.partial_fit(X, y)
                continue
            with pytest.raises(InputError, match=r"unlabeled rows.*expectations, not sums"):
                again.partial_fit(X, y)


# ----------------------------------------------------------------------------------------------------------- mixtures


def start() -> tuple[Any, Any]:
    X = load_table("iris").drop(columns="Species").to_numpy()
    return X, (X[:, 2] > 2.0).astype(int) + (X[:, 2] > 4.8)


@pytest.mark.parametrize(
    ("family", "word"),
    [
        (Gaussian(), "full"),
        (Gaussian("diagonal"), "diag"),
        (Gaussian("spherical"), "spherical"),
        (Gaussian(shared=True), "tied"),
    ],
    ids=str,
)
def test_scikit_learns_mixture_from_the_same_start(family: Any, word: str) -> None:
    X, codes = start()
    means = np.array([X[codes == k].mean(axis=0) for k in range(3)])
    own = np.array([np.cov(X[codes == k].T, bias=True) for k in range(3)])
    shares = np.bincount(codes) / len(codes)
    precisions = {
        "full": np.linalg.inv(own),
        "diag": 1.0 / np.einsum("kdd->kd", own),
        "spherical": 1.0 / np.einsum("kdd->kd", own).mean(axis=1),
        "tied": np.linalg.inv(np.einsum("k,kde->de", shares, own)),
    }[word]
    theirs = GaussianMixture(
        3, covariance_type=word, weights_init=shares, means_init=means, precisions_init=precisions,
        tol=1e-14, max_iter=5000, reg_covar=0.0,
    ).fit(X)  # fmt: skip
    ours = MixtureModel(3, family, estimation="mle", start=codes, tol=1e-15, max_iter=5000).fit(X)
    assert_allclose(ours.score(X), theirs.score(X), rtol=1e-9)
    assert_allclose(ours.bic(X), theirs.bic(X), rtol=1e-9)
    assert_allclose(ours.aic(X), theirs.aic(X), rtol=1e-9)
    assert_allclose(ours.weights_, theirs.weights_, rtol=1e-4)
    assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-4)


def test_a_mixture_finds_the_species() -> None:
    frame = load_table("penguins")
    species = frame.pop("species")
    model: Any = MixtureModel(
        3, {("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"): Gaussian()}, random_state=0
    )
    codes = model.fit_predict(frame[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]])
    best = pd.crosstab(codes, species).to_numpy().max(axis=1).sum() / len(frame)
    assert best > 0.85
    assert model.n_components_ == 3
    assert "MixtureModel" in str(model.summary())
    drawn, labels = model.sample(50, random_state=0)
    assert isinstance(drawn, pd.DataFrame)
    assert set(labels) <= {0, 1, 2}


def test_mixed_and_missing_columns_are_mixed_without_labels() -> None:
    X, y = counts_table(600)
    model: Any = MixtureModel(2, FAMILIES, random_state=1).fit(X)
    agree = np.mean(model.predict(X) == y)
    assert max(agree, 1.0 - agree) > 0.85
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_bic_chooses_how_many() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 2)) + centre for centre in ([0, 0], [8, 0], [0, 8])])
    model: Any = MixtureModel("bic", random_state=0).fit(X)
    assert model.n_components_ == 3
    assert int(np.argmin(model.bic_path_)) == 2
    assert_allclose(model.bic_path_[2], model.bic(X), rtol=1e-4)


def test_components_that_die_are_said_to() -> None:
    X = load_table("iris").drop(columns="Species").to_numpy()[:12]
    with pytest.warns(DeadComponentWarning, match="dies in every start"):
        model: Any = MixtureModel(6, estimation="mle", random_state=0).fit(X)
    assert model.n_components_ < 6
    assert np.all(np.isfinite(model.predict_proba(X)))
    alive = MixtureModel(6, random_state=0).fit(X)
    assert np.all(np.isfinite(alive.predict_proba(X)))
    same = MixtureModel(3, random_state=0).fit(np.ones((10, 2)))
    assert np.all(np.isfinite(same.predict_proba(np.ones((2, 2)))))


def test_a_component_that_dies_from_a_given_start_is_dropped() -> None:
    X, start = np.random.default_rng(4).normal(size=(14, 2)), [0, 1, 2, 3, 0, 0, 2, 2, 3, 3, 0, 2, 3, 0]
    with pytest.warns(DeadComponentWarning, match="dies from the given start"):
        model: Any = MixtureModel(4, Gaussian(), estimation="mle", start=start, random_state=0).fit(X)
    assert model.n_components_ < 4
    assert np.all(np.isfinite(model.predict_proba(X)))


@pytest.mark.filterwarnings("ignore::likely.errors.NotConvergedWarning")
@pytest.mark.parametrize("seed", [2, 4, 5])
def test_a_start_that_collapses_does_not_replace_the_others(seed: int) -> None:
    """After one iteration some starts have a component on too few rows, with a large likelihood."""
    X = np.random.default_rng(seed).normal(size=(12, 3))
    model = MixtureModel(3, Gaussian(), estimation="mle", n_init=10, max_iter=1, random_state=seed).fit(X)
    assert model.n_components_ == 3
    assert np.all(np.isfinite(model.log_density(X)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": "many"}, "n_components='many'"),
        ({"n_components": 30}, "more than X has rows"),
        ({"n_components": 2, "start": [0] * 19}, "start must be"),
        ({"n_components": 2, "start": [0, 5] * 10}, "start must be"),
        ({"n_components": 2, "n_init": 0}, "n_init=0"),
        ({"n_components": 2, "max_iter": 0}, "max_iter=0"),
        ({"n_components": 2, "tol": -1.0}, "tol=-1.0"),
    ],
)
def test_options_of_a_mixture_that_cannot_be(options: Any, words: str) -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(InputError, match=words):
        MixtureModel(**options).fit(X)
    assert not hasattr(MixtureModel(2), "partial_fit")


def test_no_labels_at_all_points_to_the_mixture() -> None:
    with pytest.raises(InputError, match="MixtureModel"):
        GenerativeClassifier().fit([[0.0], [1.0]], [None, None])


# -------------------------------------------------------------------------------- prior shift, imputation, novelty


def test_class_proportions_of_unlabeled_rows_are_estimated() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 1.5])
    model: Any = LinearDiscriminant().fit(X, np.repeat(["a", "b"], 300))
    other = np.vstack([rng.normal(size=(900, 2)), rng.normal(size=(100, 2)) + 1.5])
    adapted = model.adapt_prior(other)
    assert_allclose(adapted.class_prior_, [0.9, 0.1], atol=0.04)
    shift = adapted.prior_shift_
    assert shift.p_value < 1e-6
    # the shares are a maximum of the likelihood, and the statistic is twice its gain
    density = model.log_joint(other) - np.log(model.class_prior_)

    def likelihood(share: float) -> float:
        return float(scipy.special.logsumexp(density + np.log([share, 1.0 - share]), axis=1).sum())

    found = shift.prior[0]
    assert likelihood(found) >= max(likelihood(found - 1e-4), likelihood(found + 1e-4))
    assert_allclose(shift.statistic, 2.0 * (likelihood(found) - likelihood(0.5)), rtol=1e-8)
    assert model.adapt_prior(X).prior_shift_.p_value > 0.05
    assert_array_equal(model.class_prior_, [0.5, 0.5])


def test_the_test_of_a_shift_has_its_level() -> None:
    rng = np.random.default_rng(1)
    model: Any = LinearDiscriminant().fit(
        np.vstack([rng.normal(size=(4000, 1)), rng.normal(size=(4000, 1)) + 2.0]), np.repeat([0, 1], 4000)
    )
    values = []
    for _ in range(300):
        y = rng.integers(0, 2, 200)
        values.append(model.adapt_prior(rng.normal(size=(200, 1)) + 2.0 * y[:, None]).prior_shift_.p_value)
    assert scipy.stats.kstest(values, "uniform").pvalue > 0.001


def test_missing_numbers_are_filled_with_their_expectation() -> None:
    X, y = incomplete(share=0.2)
    model: Any = GenerativeClassifier(Gaussian(), estimation="map").fit(X, y)
    means, covariances = parameters(model)
    filled, known = model.impute(X), model.impute(X, y)
    there = ~np.isnan(X)
    assert_array_equal(filled[there], X[there])
    assert np.all(np.isfinite(filled))
    posterior = model.predict_proba(X)
    for row in range(20):
        o, m = there[row], ~there[row]
        if not m.any():
            continue
        given = []
        for k in range(3):
            pull = covariances[k][np.ix_(m, o)] @ np.linalg.pinv(covariances[k][np.ix_(o, o)])
            given.append(means[k][m] + pull @ (X[row, o] - means[k][o]))
        assert_allclose(filled[row, m], posterior[row] @ np.array(given), rtol=1e-8)
        assert_allclose(known[row, m], given[y[row]], rtol=1e-8)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_come_back_filled(library: str) -> None:
    frame = load_table("penguins")
    species = frame.pop("species").to_numpy()
    X: Any = frame
    if library == "polars":
        X = pytest.importorskip("polars").from_pandas(frame)
    elif library == "pyarrow":
        X = pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)
    model: Any = GenerativeClassifier().fit(X, species)
    filled = model.impute(X, species)
    assert type(filled) is type(X)
    plain = filled if library == "pandas" else filled.to_pandas()
    assert not plain.isna().to_numpy().any()
    where = frame["sex"].isna().to_numpy()
    assert set(plain.loc[where, "sex"]) <= {"male", "female"}
    same = frame.notna().to_numpy()
    assert (plain.to_numpy()[same] == frame.to_numpy()[same]).all()
    # the most probable sex of a bird, by the model's own posterior over both
    row = int(np.flatnonzero(where & frame["body_mass_g"].notna().to_numpy())[0])
    pair = pd.concat([frame.iloc[[row]]] * 2).assign(sex=["female", "male"])
    code = model.classes_.tolist().index(species[row])
    if library == "pandas":
        best = ["female", "male"][int(np.argmax(model.log_joint(pair)[:, code]))]
        assert plain.loc[row, "sex"] == best


@pytest.mark.parametrize("estimation", ["mle", "bayes"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("missing_values", [False, True])
def test_typicality_is_uniform_for_rows_of_a_class(estimation: str, shared: bool, missing_values: bool) -> None:
    X, y = incomplete(share=0.0)
    model: Any = GenerativeClassifier(Gaussian(shared=shared), estimation=estimation).fit(X[y == 0], y[y == 0])
    drawn, _ = model.sample(3000, random_state=0)
    if missing_values:
        drawn[::2, 0] = np.nan
        drawn[::3, 2] = np.nan
    usual = model.typicality(drawn)
    assert scipy.stats.kstest(usual, "uniform").pvalue > 0.001
    assert_allclose(model.novelty(drawn), -np.log10(usual), rtol=1e-9)
    assert model.typicality(np.full((1, 3), 1e6))[0] < 1e-6
    assert model.novelty(np.full((1, 3), 1e6))[0] > 6.0
    assert model.typicality(np.full((1, 3), np.nan))[0] == 1.0
    assert model.novelty(np.full((1, 3), np.nan))[0] == 0.0


def test_typicality_of_mixed_tables_is_nearly_uniform() -> None:
    X, y = counts_table(600)
    model: Any = GenerativeClassifier({"real": Gaussian("diagonal"), "wait": Exponential()}).fit(
        X[["real", "wait"]], np.zeros(600)
    )
    drawn, _ = model.sample(2000, random_state=0)
    usual = model.typicality(drawn, random_state=1)
    assert scipy.stats.kstest(usual, "uniform").pvalue > 0.001
    assert_array_equal(usual, model.typicality(drawn, random_state=1))
    several = GenerativeClassifier(FAMILIES, class_prior=Dirichlet(1.0)).fit(X, y)
    values = several.typicality(X)
    assert values.shape == (600,)
    assert values.min() > 0.0
    assert values.max() <= 1.0


def test_novelty_works_on_merged_and_loaded_models(tmp_path: Any) -> None:
    X, y = incomplete(share=0.0)
    model = QuadraticDiscriminant().fit(X[::2], y[::2]) + QuadraticDiscriminant().fit(X[1::2], y[1::2])
    model.save(tmp_path / "model")
    assert_allclose(likely.load(tmp_path / "model").novelty(X), model.novelty(X))
    assert_allclose(model.novelty(X), QuadraticDiscriminant().fit(X, y).novelty(X), rtol=1e-8)


# -------------------------------------------------------------------------------------------- pipelines, real tables


def test_the_imputer_is_a_transformer() -> None:
    X, y = incomplete(share=0.2)
    pipe = make_pipeline(likely.Imputer(), LogisticRegression())
    assert pipe.fit(X, y).score(X, y) > 0.6
    assert_allclose(likely.Imputer().fit_transform(X), MixtureModel().fit(X).impute(X))
    supervised = likely.Imputer(GenerativeClassifier(Gaussian())).fit(X, y)
    assert_allclose(supervised.transform(X), GenerativeClassifier(Gaussian()).fit(X, y).impute(X))
    frame = load_table("penguins").drop(columns="species")
    filled = likely.Imputer().fit(frame).transform(frame)
    assert not filled.isna().to_numpy().any()
    with pytest.raises(InputError, match=r"has no density of all columns.*Use MixtureModel"):
        likely.Imputer(LogisticRegression()).fit(X)


def test_folds_of_rows_with_missing_values_are_learnt_by_themselves() -> None:
    X, y = incomplete()
    folds = StratifiedKFold(3)
    model: Any = GenerativeClassifier(Gaussian(shared=True), tol=1e-10, max_iter=1000)
    ours = likely.cross_validate(model, X, y, folds)
    theirs = scikit_learns(model, X, y, cv=folds, scoring="neg_log_loss")
    assert_allclose(ours.log_loss, -theirs["test_score"], rtol=1e-7)


@pytest.mark.parametrize(
    ("table", "target", "share"),
    [
        ("penguins", "species", 0.5),
        ("iris", "Species", 0.3),
        ("vowel-train", "y", 0.1),
        *(pytest.param("penguins", "species", share, marks=pytest.mark.long) for share in (0.1, 0.3)),
        *(pytest.param("iris", "Species", share, marks=pytest.mark.long) for share in (0.1, 0.5)),
        *(pytest.param("vowel-train", "y", share, marks=pytest.mark.long) for share in (0.3, 0.5)),
    ],
)
def test_cells_deleted_at_random_do_no_more_harm_than_to_filled_in_means(table: str, target: str, share: float) -> None:
    """The same model on rows with missing values, and on rows filled in with means: log-loss over the same folds."""
    frame = load_table(table).dropna()
    X, y = frame.drop(columns=target).select_dtypes("number").to_numpy(dtype=float), frame[target].to_numpy()
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < share] = np.nan
    model: Any = LinearDiscriminant(estimation="bayes")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    integrated = scikit_learns(model, X, y, cv=folds, scoring="neg_log_loss")["test_score"]
    means = make_pipeline(SimpleImputer(), model)
    filled = scikit_learns(means, X, y, cv=folds, scoring="neg_log_loss")["test_score"]
    assert -integrated.mean() <= -filled.mean()


def test_messages_without_labels_lower_the_error_of_few_labels() -> None:
    """Spam, from five labeled messages of each kind and the words of three thousand others."""
    frame = load_table("sms_spam")
    y: Any = frame["label"].to_numpy(dtype=object)
    X = CountVectorizer(min_df=3).fit_transform(frame["text"]).astype(float)
    rng = np.random.default_rng(0)
    some = np.concatenate([rng.choice(np.flatnonzero(y == kind), 5, replace=False) for kind in ("ham", "spam")])
    labels: Any = np.where(np.isin(np.arange(len(y)), some), y, None)
    train, test = np.arange(len(y)) % 3 > 0, np.arange(len(y)) % 3 == 0
    train[some], test[some] = True, False
    few = NaiveBayes(Multinomial(), class_prior="uniform").fit(X[some], y[some])
    many = NaiveBayes(Multinomial(), class_prior="uniform", unlabeled_weight=1.0).fit(X[train], labels[train])
    assert 1.0 - many.score(X[test], y[test]) < 0.5 * (1.0 - few.score(X[test], y[test]))


# --------------------------------------------------------------------------------------------- components of classes


def crossed(rows: int = 300, seed: int = 0) -> tuple[Any, Any]:
    """Two classes of two clusters each, at opposite corners of a square."""
    rng = np.random.default_rng(seed)
    corner, y = rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    centre = np.where((corner ^ y)[:, None], [2.5, 0.0], [0.0, 0.0]) + np.where(corner[:, None], [0.0, 2.5], [0.0, 0.0])
    return rng.normal(size=(rows, 2)) * 0.7 + centre, y


def test_components_of_a_class_are_a_mixture_of_its_rows() -> None:
    """Each class by itself, by scikit-learn's mixture."""
    X, y = crossed()
    ours: Any = GenerativeClassifier(Gaussian(components=2), estimation="mle", **TIGHT).fit(X, y)
    total = 0.0
    for k in (0, 1):
        mine = X[y == k]
        theirs = GaussianMixture(2, n_init=10, tol=1e-10, max_iter=2000, reg_covar=0.0, random_state=0).fit(mine)
        total += theirs.score(mine) * len(mine) + np.log(np.mean(y == k)) * len(mine)
        assert_allclose(ours.log_joint(mine)[:, k] - np.log(np.mean(y == k)), theirs.score_samples(mine), rtol=1e-3)
    assert_allclose(ours._history.log_likelihood, total, rtol=1e-8)
    assert ours.score(X, y) > QuadraticDiscriminant().fit(X, y).score(X, y)


@pytest.mark.parametrize(("name", "target"), [("vowel-train", "y"), ("wine", "class")])
def test_components_of_classes_have_the_best_of_several_starts(name: str, target: str) -> None:
    """At least the likelihood of mixtures of scikit-learn with ten starts, fitted to the classes one by one."""
    table = load_table(name)
    y, X = table.pop(target).to_numpy(), table.to_numpy(dtype=float)[:, :4]
    family = Gaussian("diagonal", components=2)
    ours: Any = GenerativeClassifier(family, estimation="mle", tol=1e-8, max_iter=3000).fit(X, y)
    codes = np.searchsorted(ours.classes_, y)
    likelihood = (ours.log_joint(X) - np.log(ours.class_prior_))[np.arange(len(y)), codes].sum()
    theirs = 0.0
    for k in ours.classes_:
        mine = X[y == k]
        mixture = GaussianMixture(
            2, covariance_type="diag", n_init=10, tol=1e-8, max_iter=3000, reg_covar=1e-9, random_state=0
        )
        theirs += mixture.fit(mine).score(mine) * len(mine)
    assert likelihood > theirs - 0.5


@pytest.mark.usefixtures("few_starts")
@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
@pytest.mark.parametrize("shared", [True, False, [[0, 1]]], ids=str)
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("lacking", ["nothing", "cells", "labels"])
def test_components_are_learnt_whatever_is_missing(estimation: str, shared: Any, covariance: str, lacking: str) -> None:
    X, y = crossed()
    rng = np.random.default_rng(1)
    labels: Any = y
    Z = X.copy()
    if lacking == "cells":
        Z[rng.random(X.shape) < 0.15] = np.nan
    if lacking == "labels":
        labels = np.where(rng.random(len(y)) < 0.5, None, y.astype(object))
    family = Gaussian(covariance, shared, components=2)
    model: Any = GenerativeClassifier(family, estimation=estimation, tol=1e-9, max_iter=3000).fit(Z, labels)
    course = np.array(model._history.objective)
    assert np.diff(course).min(initial=0.0) > -1e-9 * abs(course[-1])
    assert model.score(X, y) > 0.9
    assert model.families_["x0", "x1"].components == 2


def test_components_keep_what_other_models_keep(tmp_path: Any) -> None:
    X, y = crossed()
    model: Any = GenerativeClassifier(Gaussian(components=2)).fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    again: Any = GenerativeClassifier(Gaussian(components=2)).fit(X[order], y[order])
    assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-7, atol=1e-12)
    model.save(tmp_path / "model")
    loaded = likely.load(tmp_path / "model")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    drawn, labels = model.sample(4000, random_state=0)
    assert np.mean(model.predict(drawn) == labels) > 0.9
    assert (
        scipy.stats.kstest(model.typicality(model.sample(2000, label=0, random_state=1)[0]), "uniform").statistic < 0.1
    )
    incomplete_rows = X.copy()
    incomplete_rows[::2, 0] = np.nan
    assert np.all(np.isfinite(model.impute(incomplete_rows)))
    assert "2 components" in str(model.summary())
    # a marginal is the density integrated over the other column
    grid = np.linspace(-6.0, 9.0, 3001)
    for row in X[:3]:
        line = np.column_stack([grid, np.full(len(grid), row[1])])
        summed = np.log(np.trapezoid(np.exp(model.log_joint(line)), grid, axis=0))
        assert_allclose(model.log_joint([[np.nan, row[1]]])[0], summed, rtol=1e-4)


@pytest.mark.usefixtures("few_starts")
@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_explanations_of_components_add_up_in_any_order_of_columns(estimation: str) -> None:
    X, y = crossed(60)
    incomplete = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    model = GenerativeClassifier(Gaussian(components=2), estimation=estimation, **TIGHT).fit(X, y)
    turned = GenerativeClassifier(Gaussian(components=2), estimation=estimation, **TIGHT).fit(X[:, ::-1], y)
    for method in ("symmetric", "sequential"):
        explained = model.explain(incomplete, method=method)
        total = explained.evidence.sum(axis=2) + explained.offset
        assert_allclose(total, model.log_joint(incomplete), rtol=1e-9, atol=1e-9)
        assert not explained.evidence.transpose(0, 2, 1)[np.isnan(incomplete)].any()
    explained, other = model.explain(incomplete), turned.explain(incomplete[:, ::-1])
    assert_allclose(other.evidence[:, :, ::-1], explained.evidence, rtol=1e-4, atol=1e-4)
    assert (explained.offset <= np.log(model.class_prior_) + 1e-12).all()


@pytest.mark.usefixtures("few_starts")
def test_unsupported_uses_of_components_are_errors() -> None:
    X, y = crossed(40)
    with pytest.raises(InputError, match="components=0"):
        GenerativeClassifier(Gaussian(components=0)).fit(X, y)
    with pytest.raises(InputError, match="NaiveBayes models columns as independent"):
        NaiveBayes(Gaussian(components=2)).fit(X, y)
    with pytest.raises(InputError, match="names class 'a'"):
        GenerativeClassifier(Gaussian(shared=[["a", 1]], components=2)).fit(X, y)
    with pytest.raises(InputError, match="expectation maximisation"):
        GenerativeClassifier(Gaussian(components=2)).partial_fit(X, y)
    model: Any = GenerativeClassifier(Gaussian(components=2)).fit(X, y)
    with pytest.raises(InputError, match="expectations, not sums"):
        model.left_out_proba(X, y)
    result = likely.select(X, y, [GenerativeClassifier(Gaussian(components=2)), NaiveBayes()])
    assert "fitted by EM" in str(result.ranking[-1].problem)
    folds = StratifiedKFold(3)
    ours = likely.cross_validate(GenerativeClassifier(Gaussian(components=2)), X, y, folds)
    theirs = scikit_learns(GenerativeClassifier(Gaussian(components=2)), X, y, cv=folds, scoring="neg_log_loss")
    assert_allclose(ours.log_loss, -theirs["test_score"], rtol=1e-6)


# --------------------------------------------------------------------------------------------------- frames and units


@pytest.mark.parametrize("library", ["pandas", "nullable", "polars", "pyarrow"])
@pytest.mark.parametrize("first", [True, False])
def test_filled_columns_keep_their_types_where_these_have_a_place(library: str, first: bool) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    columns: dict[str, list[Any]] = {
        "real": (rng.normal(size=40) + y).tolist(),
        "count": rng.poisson(4 + 8 * y).tolist(),
        "yes": (rng.random(40) < 0.2 + 0.6 * y).tolist(),
        "label": np.where(rng.random(40) < 0.8, np.where(y, "u", "v"), "w").tolist(),
    }
    for values in columns.values():
        values[0 if first else -1] = None
    frame: Any = pd.DataFrame(columns)
    if library == "nullable":
        frame = frame.astype({"real": "Float64", "count": "Int64", "yes": "boolean", "label": "string"})
    elif library == "polars":
        frame = pytest.importorskip("polars").DataFrame(columns)
    elif library == "pyarrow":
        frame = pytest.importorskip("pyarrow").table(columns)
    families = {"real": Gaussian("diagonal"), "count": Poisson(), "yes": Bernoulli(), "label": Categorical()}
    filled = GenerativeClassifier(families).fit(frame, y).impute(frame)
    assert type(filled) is type(frame)
    plain = filled if isinstance(filled, pd.DataFrame) else filled.to_pandas()
    assert not plain.isna().to_numpy().any()
    row = 0 if first else 39
    assert plain["yes"].iloc[row] in (True, False)
    assert plain["label"].iloc[row] in {"u", "v", "w"}
    if library == "nullable":
        assert [str(kind) for kind in filled.dtypes] == ["Float64", "Float64", "boolean", "string"]


@pytest.mark.filterwarnings("ignore::likely.errors.UnseenCategoriesWarning")
def test_numbered_columns_and_labels_never_seen_stay_what_they_are() -> None:
    X, y = incomplete(share=0.2)
    filled = likely.Imputer().fit_transform(pd.DataFrame(X))
    assert not filled.isna().to_numpy().any()
    assert likely.Imputer().fit(X).get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    frame = pd.DataFrame({"x": y + 0.5 * np.sin(np.arange(len(y))), "c": np.array(list("uvw"))[y]})
    model = NaiveBayes().fit(frame, y)
    new = frame[:3].assign(c=["new", None, "u"])
    assert model.impute(new)["c"].tolist() == ["new", "v", "u"]
    with pytest.raises(InputError, match="one chunk after another"):
        model.impute(Chunks(frame, 10))


@pytest.mark.parametrize("weight", [1.0, pytest.param("auto", marks=pytest.mark.long)])
def test_units_of_columns_do_not_tell_when_to_stop(weight: Any) -> None:
    X, y = incomplete()
    labels: Any = np.where(np.arange(len(y)) % 3 == 0, None, y.astype(object))
    plain: Any = GenerativeClassifier(Gaussian(), unlabeled_weight=weight).fit(X, labels)
    for scale in (2.0**-10, 2.0**10, 2.0**30):
        other: Any = GenerativeClassifier(Gaussian(), unlabeled_weight=weight).fit(X * scale, labels)
        assert other.n_iter_ == plain.n_iter_
        assert_allclose(other.predict_proba(X * scale), plain.predict_proba(X), atol=1e-6)


@pytest.mark.usefixtures("few_starts")
def test_weights_count_rows_where_components_are_sought() -> None:
    X, y = crossed(120)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    index = np.repeat(np.arange(len(y)), weights)
    far = X.copy()
    far[weights == 0] = 1e6
    weighted: Any = GenerativeClassifier(Gaussian(components=2), tol=1e-9).fit(far, y, weights)
    repeated: Any = GenerativeClassifier(Gaussian(components=2), tol=1e-9).fit(X[index], y[index])
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


def test_mixtures_keep_what_they_tell_in_files(tmp_path: Any) -> None:
    X, _ = crossed(40)
    model: Any = MixtureModel("bic", random_state=0).fit(X)
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert (again.n_components_, again.lower_bound_) == (model.n_components_, model.lower_bound_)
    assert not hasattr(model.set_params(n_components=2).fit(X), "bic_path_")


def test_continuous_columns_of_sparse_rows_need_a_declared_family_in_a_mixture() -> None:
    """A full covariance of a wide table would fill the memory."""
    S = scipy.sparse.random(60, 4000, density=0.01, format="csr", random_state=0)
    S.data = S.data - 0.5
    expected = r"columns 'x0', 'x1', 'x2' and 3997 more .*sparse rows.*Multinomial\(\).*Gaussian\('diagonal'\).*toarray"
    with pytest.raises(TypeError, match=expected):
        MixtureModel(2, random_state=0).fit(S)
    with pytest.raises(InputError, match="X is sparse, and column 'x1' would"):
        MixtureModel(2, {0: Gaussian()}).fit(S[:, :2])
    model: Any = MixtureModel(2, Gaussian("diagonal"), random_state=0).fit(S)
    assert np.all(np.isfinite(model.predict_proba(S)))


@pytest.mark.parametrize("families", [None, Multinomial(), Bernoulli(), Poisson()])
def test_counts_in_sparse_rows_have_the_same_mixture_as_in_dense_rows(families: Any) -> None:
    rng = np.random.default_rng(0)
    rate = np.where(np.arange(60)[:, None] % 2 == 0, [0.2, 0.3, 2.5], [2.0, 0.4, 0.2])
    X = rng.poisson(rate).astype(float)
    X = np.minimum(X, 1.0) if isinstance(families, Bernoulli) else X
    if families is None:
        assert set(map(type, MixtureModel().fit(scipy.sparse.csr_array(X)).families_.values())) == {Poisson}
        families = Poisson()
    options: Any = {"families": families, "random_state": 0, "tol": 1e-10, "max_iter": 5000}
    dense = MixtureModel(2, **options).fit(X)
    sparse = MixtureModel(2, **options).fit(scipy.sparse.csr_array(X))
    assert_allclose(sparse.score(scipy.sparse.csr_array(X)), dense.score(X), rtol=1e-6)


def test_tiny_responsibilities_of_columns_with_missing_values_are_not_lost() -> None:
    """Weights of a column are sums, not what is left of the rows' weight: that would be 0 beside rows that count."""
    nan = np.nan
    X = [[46.4, nan, 3450], [38.1, 17.6, nan], [nan, 14.3, 5700], [36.4, 17.1, 2850], [40.2, 17.1, 3400]]
    X += [[nan, 14.2, 4700], [49.6, 18.2, 3775], [nan, 18.5, nan], [nan, 14.5, 4400], [nan, nan, 4300]]
    y = ["Chinstrap", "Adelie", "Gentoo", "Adelie", "Adelie", None, None, None, None, None]
    model = NaiveBayes(unlabeled_weight=1.0).fit(X, y)
    assert model.predict(X)[[0, 2, 5, 8]].tolist() == ["Adelie", "Gentoo", "Gentoo", "Gentoo"]
    assert np.all(np.isfinite(model.predict_log_proba(X)))


@pytest.mark.parametrize(("name", "target"), [("wine", "class"), ("iris", "Species")])
def test_missing_values_cost_less_than_means_that_were_filled_in(name: str, target: str) -> None:
    """Half the cells deleted: little to learn covariances from, so that the prior must hold them."""
    table = load_table(name)
    y = table.pop(target).to_numpy()
    X = table.to_numpy(dtype=float)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = np.nan
    model = GenerativeClassifier(Gaussian(shared=True))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    losses = [
        log_loss(y, cross_val_predict(one, X, y, cv=folds, method="predict_proba"))
        for one in (model, make_pipeline(SimpleImputer(), model))
    ]
    assert losses[0] < losses[1] - 0.02


def test_the_default_prior_counts_for_more_where_cells_are_missing() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    incomplete = X.copy()
    incomplete[rng.random(X.shape) < 0.4] = np.nan
    model = GenerativeClassifier(Gaussian(shared=True), estimation="map").fit(incomplete, y)
    completed = model.specification_.completed(model.statistics_)
    (moments,) = completed.blocks
    known = ~np.isnan(incomplete).all(axis=1)
    share = float((~np.isnan(incomplete))[known].mean())
    np.testing.assert_allclose(moments.observed, share, rtol=1e-12)
    given = NormalInverseWishart(
        moments.overall_mean,
        0.01,
        5.0 / share**2,
        np.diag(moments.squares[0] / moments.weight.sum()) * (5.0 / share**2 - 4.0),
    )
    same = GenerativeClassifier(Gaussian(shared=True, prior=given), estimation="map")
    expected = same._specify(Batches(X, y, None, read_table, "test")).estimate(completed)[0]
    np.testing.assert_allclose(model.model_.posterior(read_table(X)), expected.posterior(read_table(X)), rtol=1e-8)
    whole = GenerativeClassifier(Gaussian(shared=True), estimation="map").fit(X, y)
    assert whole.statistics_.blocks[0].observed == 1.0


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_mixture_does_not_depend_on_the_order_and_the_chunks_of_rows(in_parts: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": np.concatenate([rng.normal(m, 1.0, 300) for m in (-6.0, 0.0, 6.0)])})  # sorted
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=100)

    class Chunks:
        def chunks(self) -> Iterator[Any]:
            return (rows[i : i + 100] for i in range(0, 900, 100))

    source = likely.scan(tmp_path / "rows.parquet") if in_parts else Chunks()
    whole = MixtureModel(3, Gaussian(), n_init=3, random_state=0).fit(rows)
    found = MixtureModel(3, Gaussian(), n_init=3, random_state=0).fit(source)
    assert_allclose(found.log_density(rows), whole.log_density(rows), rtol=1e-9)
    assert_allclose(np.sort(found.statistics_.counts.weight), 300.0, rtol=0.05)


@pytest.mark.filterwarnings("ignore::likely.errors.NotConvergedWarning")
def test_a_covariance_that_becomes_singular_in_em_has_no_maximum() -> None:
    _ = np.nan
    X = np.array([
        [_, _, _, 0, 0], [0, 0, _, _, _], [_, 0, _, _, _], [_, _, -1, _, _], [_, _, _, _, _], [1, _, _, _, 0],
        [_, _, _, -1, -2], [_, _, _, _, _], [_, 3, _, _, 0], [_, _, -1, _, 2], [_, -1, 1, -1, _], [1, _, _, 1, 0],
        [1, 1, _, _, _], [_, _, _, _, _], [_, _, 0, _, 0],
    ])  # fmt: skip
    y = np.array([1, 1, 0, 1, 1, None, 0, 1, None, None, 1, 1, 0, 0, 1], dtype=object)
    with pytest.raises(NotEstimableError, match=r"maximum of the likelihood|likelihood has no maximum"):
        LinearDiscriminant(max_iter=60).fit(X, y)


def test_em_that_ends_after_one_iteration_of_a_round_reports_no_infinite_change() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"t": [f"w{i}" for i in rng.integers(6, size=30)], "x": rng.normal(size=30).round(1)})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for max_iter in range(1, 60):
            MixtureModel(2, n_init=1, random_state=0, max_iter=max_iter).fit(frame)
    messages = [str(each.message) for each in found if each.category is NotConvergedWarning]
    assert not [message for message in messages if "inf" in message]
    single = [message for message in messages if "no change is known after one iteration with these priors" in message]
    assert single[0].startswith("EM did not converge in 1 iteration (no change is known")
    assert len(single) > 1
