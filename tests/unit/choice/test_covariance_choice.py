"""Pooled or per-class covariances and the strength of their prior, by leave-one-out log-loss after calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

import likely
from likely import Gaussian, GenerativeClassifier, LogNormal, NaiveBayes, NormalInverseWishart, QuadraticDiscriminant
from likely.errors import InputError

STRENGTHS = (0.0, 1.0, 3.0, 10.0)


def tables() -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    wine, iris = load_wine(return_X_y=True), load_iris(return_X_y=True)
    pick = rng.permutation(178)[:40]
    jitter = 1e-3 * rng.random(iris[0].shape)  # no whole numbers
    for table in (wine[0], iris[0]):
        np.subtract(table, table.mean(axis=0), out=table)  # no positive columns: the only family is the Gaussian
    return {
        "wine": (wine[0][pick] + 1e-4 * rng.random((40, 13)), wine[1][pick]),
        "iris": (iris[0] + jitter, iris[1]),
        "scales": (rng.normal(size=(80, 3)) * (1 + 3 * (np.arange(80)[:, None] % 2)), np.arange(80) % 2),
        "wide": (rng.normal(size=(150, 40)) + 0.2 * (np.arange(150)[:, None] % 2), np.arange(150) % 2),
    }


def scores(choice: Any) -> list[float]:
    return list(choice.log_loss.values())


def strength(family: Any) -> float:
    return 0.0 if family.prior is None else family.prior.strength


@pytest.mark.parametrize("name", tables())
def test_the_clearly_least_calibrated_loss_of_declared_models_is_chosen(name: str) -> None:
    X, y = tables()[name]
    losses: dict[Any, float] = {}
    for shared in (True, False):
        for f in STRENGTHS:
            family = Gaussian(shared=shared, prior=NormalInverseWishart(strength=f))
            losses[shared, f] = GenerativeClassifier(family).fit(X, y).calibration_.log_loss_after  # type: ignore[union-attr]
    model = GenerativeClassifier().fit(X, y)
    (choice,) = model.choices_
    assert_allclose(scores(choice), list(losses.values()), rtol=1e-9)
    (family,) = model.families_.values()
    least = min(losses.values())
    if (losses[True, 0.0] - least) * len(y) <= 1.0:  # not better by more than one nat in total
        least = losses[True, 0.0]
    assert losses[family.shared, strength(family)] == pytest.approx(least, abs=1e-9)
    assert choice.family == family.describe()
    assert choice.standard_errors == 0.0
    assert model.calibration_ is not None
    assert_allclose(model.calibration_.log_loss_after, least, atol=1e-9)


def test_different_tables_choose_differently() -> None:
    found = {name: GenerativeClassifier().fit(*table).families_ for name, table in tables().items()}
    chosen = {
        name: (family.shared, strength(family)) for name, families in found.items() for family in families.values()
    }
    assert chosen["scales"][0] is False
    assert {shared for shared, _ in chosen.values()} == {True, False}
    assert len({f for _, f in chosen.values()}) > 1


def test_a_given_prior_is_kept() -> None:
    X, y = tables()["wine"]
    model = GenerativeClassifier(Gaussian(prior=NormalInverseWishart())).fit(X, y)
    assert model.choices_ == ()
    assert model.calibration_ is not None
    chosen = GenerativeClassifier().fit(X, y)
    again = GenerativeClassifier(chosen.families_).fit(X, y)
    assert again.choices_ == ()
    assert_allclose(again.predict_proba(X), chosen.predict_proba(X), atol=1e-10)


def test_a_declared_gaussian_without_a_prior_has_its_strength_chosen() -> None:
    X, y = tables()["wine"]
    positive = np.exp(X / X.std(axis=0))
    for model in (
        GenerativeClassifier(Gaussian(shared=True)),
        NaiveBayes(),
        NaiveBayes(LogNormal()),
        GenerativeClassifier(Gaussian("spherical")),
        GenerativeClassifier(Gaussian(shared=[[0, 1]])),
    ):
        rows = positive if isinstance(model.families, LogNormal) else X
        (choice,) = clone(model).fit(rows, y).choices_
        assert len(choice.log_loss) == 4
        off = clone(model).set_params(calibration=None).fit(rows, y)
        assert off.choices_ == ()
        assert all(family.prior is None for family in off.families_.values())
    assert QuadraticDiscriminant(estimation="bayes").fit(X, y).choices_ == ()
    assert GenerativeClassifier(Gaussian("identity")).fit(X, y).choices_ == ()
    halves = [GenerativeClassifier(Gaussian(shared=True)).fit(X[i::2], y[i::2]) for i in range(2)]
    total = halves[0] + halves[1]  # sums of a pooled scatter stay pooled
    assert_allclose(total.statistics_.blocks[0].scatter.shape, (1, 13, 13))
    total.partial_fit(X, y).predict_proba(X)


def test_several_blocks_have_a_strength_each() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    frame = pd.DataFrame(rng.normal(size=(90, 6)) * (1.0 + np.arange(6)) + y[:, None], columns=list("abcdef"))
    families = {("a", "b", "c"): Gaussian(), ("d", "e", "f"): Gaussian("diagonal", shared=True)}
    model = GenerativeClassifier(families).fit(frame, y)
    assert [choice.columns for choice in model.choices_] == [("a", "b", "c"), ("d", "e", "f")]
    reordered = GenerativeClassifier(dict(reversed(families.items()))).fit(frame[list("fedcba")], y)
    for mine in reordered.choices_:
        (other,) = [choice for choice in model.choices_ if set(choice.columns) == set(mine.columns)]
        assert mine.family == other.family
        assert_allclose(scores(mine), scores(other), rtol=1e-8)


def test_files_and_clones_keep_the_strength(tmp_path: Any) -> None:
    X, y = tables()["wide"]
    model = GenerativeClassifier().fit(X, y)
    (family,) = model.families_.values()
    assert strength(family) > 0.0
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert repr(again.families_) == repr(model.families_)
    assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    assert clone(family).prior.strength == strength(family)
    assert f"prior strength {strength(family):g}" in str(model.summary())


def test_folds_choose_and_calibrate_by_themselves() -> None:
    X, y = tables()["wine"]
    folds = np.arange(40) % 4
    found = likely.cross_validate(GenerativeClassifier(), X, y, folds)
    for i in range(4):
        model = GenerativeClassifier().fit(X[folds != i], y[folds != i])
        columns = np.searchsorted(found.classes, model.classes_)
        assert_allclose(found.posterior[folds == i][:, columns], model.predict_proba(X[folds == i]), atol=1e-9)


# ------------------------------------------------------------------------------------------------- the prior itself


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("f", [0.0, 1.0, 3.5, 10.0])
def test_strength_adds_degrees_and_keeps_the_expectation(covariance: str, f: float) -> None:
    """ν₀ = d + 2 + f·d with E Σ unchanged, or 3 + f: as a prior whose degrees and scale are given."""
    X, y = tables()["iris"]
    within = np.mean([X[y == k].var(axis=0) for k in range(3)], axis=0)
    if covariance == "spherical":
        within = np.full(4, within.mean())
    full = covariance == "full"
    degrees = 6.0 + 4.0 * f if full else 3.0 + f
    scale = within * (degrees - (5.0 if full else 2.0))
    between = X.var(axis=0) - np.mean([X[y == k].var(axis=0) for k in range(3)], axis=0)
    assert np.all(within / between > 0.01)  # the default weight of the prior mean
    given = NormalInverseWishart(X.mean(axis=0), 0.01, degrees, np.diag(scale) if full else scale)
    mine = Gaussian(covariance, prior=NormalInverseWishart(strength=f))
    for estimation in ("bayes", "map"):
        models = [
            GenerativeClassifier(family, estimation=estimation, calibration=None).fit(X, y)
            for family in (mine, Gaussian(covariance, prior=given))
        ]
        assert_allclose(models[0].log_joint(X), models[1].log_joint(X), rtol=1e-9)
    if full:
        assert_allclose(stats.invwishart(degrees, np.diag(scale)).mean(), np.diag(within))


def test_strength_is_checked() -> None:
    X, y = tables()["iris"]
    for prior, text in (
        (NormalInverseWishart(strength=-1.0), "strength"),
        (NormalInverseWishart(strength=np.inf), "strength"),
        (NormalInverseWishart(strength="much"), "strength"),  # type: ignore[arg-type]
        (NormalInverseWishart(degrees=9.0, strength=1.0), "Set one of the two"),
    ):
        with pytest.raises(InputError, match=text):
            GenerativeClassifier(Gaussian(prior=prior)).fit(X, y)
