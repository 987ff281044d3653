"""Histograms: edges that follow from rows, tails, updates, and columns of any kind."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from sklearn.base import clone

import likely
from likely import (
    Gamma,
    GenerativeClassifier,
    Histogram,
    HybridClassifier,
    LogNormal,
    MixtureModel,
    NaiveBayes,
    PointMass,
    Poisson,
)
from likely.errors import EarlyChoiceWarning, InputError, NoDensityError, NotEstimableError
from likely.families.base import Columns
from likely.families.estimation import Estimation
from likely.statistics.cell_counts import cell_edges, slots_of


def table(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """A column with two modes in one class, a skewed one, and counts."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b", "c"], n)
    code = np.searchsorted(["a", "b", "c"], y)
    modes = np.where(code == 1, 2.5 * rng.choice([-1.0, 1.0], n), 0.0)
    frame = pd.DataFrame(
        {"modes": modes + rng.normal(size=n), "skewed": rng.gamma(1.0 + code), "count": rng.poisson(1.0 + code) * 1.0}
    )
    frame.loc[rng.random(n) < 0.1, "modes"] = np.nan
    return frame, y


def fitted(model: Any) -> Any:
    (block,) = model.model_.blocks
    return block.conditionals


# ------------------------------------------------------------------------------------------------------------ edges


def test_few_values_have_a_cell_each_and_many_have_quantiles() -> None:
    assert_array_equal(cell_edges(np.array([3.0, 1.0, 1.0, 2.0]), np.ones(4), 5), [1.5, 2.5])
    x = np.random.default_rng(0).gamma(0.5, size=6400)
    edges = cell_edges(x, np.ones(len(x)), 64)
    assert len(edges) == 63
    inside = np.bincount(slots_of(x[:, None], edges[:, None])[:, 0])
    assert inside.min() >= 98
    assert inside.max() <= 102
    zeros = np.r_[np.zeros(3000), x]  # one value in a third of the rows has one cell
    edges = cell_edges(zeros, np.ones(len(zeros)), 64)
    assert 40 < len(edges) < 64
    assert edges[0] > 0.0


def test_slots_of_values_at_the_edges() -> None:
    edges = np.array([[0.0, 5.0], [1.0, np.inf], [2.0, np.inf]])
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 2.1, np.nan])
    assert_array_equal(slots_of(np.column_stack([x, x]), edges)[:, 0], [0, 1, 1, 2, 2, 3, -1])


def test_edges_do_not_depend_on_the_order_of_rows_and_weights_are_repeats() -> None:
    X, y = table()
    times = np.random.default_rng(1).integers(0, 4, len(y))
    order = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), times))
    weighted = NaiveBayes(Histogram()).fit(X, y, sample_weight=times)
    repeated = NaiveBayes(Histogram()).fit(X.iloc[order], y[order])
    for name in X:
        assert_array_equal(weighted.families_[name].edges, repeated.families_[name].edges)
        kept = X[name][times > 0]
        assert weighted.families_[name].edges[0] == kept.min()
        assert weighted.families_[name].edges[-1] == kept.max()
    assert_allclose(weighted.log_joint(X), repeated.log_joint(X), rtol=1e-10)


class Chunks:
    def __init__(self, frame: pd.DataFrame, size: int) -> None:
        self.frame, self.size = frame, size

    def chunks(self) -> Iterator[pd.DataFrame]:
        for start in range(0, len(self.frame), self.size):
            yield self.frame.iloc[start : start + self.size]


@pytest.mark.parametrize("rows", [400, 9000])
def test_chunks_have_the_edges_of_all_rows(rows: int) -> None:
    X, y = table(rows)
    whole = NaiveBayes(Histogram()).fit(X, y)
    parts = NaiveBayes(Histogram()).fit(Chunks(X, 700), y)
    assert parts.families_["modes"].edges == whole.families_["modes"].edges
    assert parts.families_["modes"].edges[0] == X["modes"].min()
    assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-10)


def test_tables_of_any_kind_have_the_same_histograms() -> None:
    X, y = table()
    expected = NaiveBayes(Histogram()).fit(X, y).predict_proba(X)
    frame = pl.from_pandas(X)
    for same in (X.to_numpy(), frame, frame.to_arrow(), X.convert_dtypes()):
        assert_allclose(NaiveBayes(Histogram()).fit(same, y).predict_proba(same), expected, rtol=0, atol=1e-12)
    dense = X.fillna(0.0).to_numpy()
    sparse = scipy.sparse.csr_array(dense)
    model = NaiveBayes(Histogram()).fit(sparse, y)
    assert_allclose(
        model.predict_proba(sparse), NaiveBayes(Histogram()).fit(dense, y).predict_proba(dense), rtol=0, atol=1e-12
    )


def test_declared_edges_are_used_and_others_follow_from_rows() -> None:
    X, y = table()
    model = NaiveBayes(Histogram(edges={"modes": [-2.0, 0.0, 2.0], 2: [0.0, 1.0]}, cells=8)).fit(X, y)
    assert model.families_["modes"].edges == [-2.0, 0.0, 2.0]
    assert model.families_["count"].edges == [0.0, 1.0]
    assert len(model.families_["skewed"].edges) == 9
    again = NaiveBayes(model.families_).fit(X, y)
    assert_allclose(again.log_joint(X), model.log_joint(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cells": 1}, "cells=1 must be a whole number, at least 2"),
        ({"edges": [0.0, 0.0]}, r"Histogram\(edges=...\) must be increasing"),
        ({"edges": [0.0, np.inf]}, "increasing, finite numbers"),
        ({"edges": {"modes": "abc"}}, r"edges=\{'modes': ...\}\) must be increasing"),
        ({"edges": {"other": [0.0, 1.0]}}, "edges names column 'other', which is not in X"),
    ],
)
def test_invalid_options_are_named(options: Any, message: str) -> None:
    X, y = table()
    with pytest.raises(InputError, match=message):
        NaiveBayes(Histogram(**options)).fit(X, y)


def test_edges_of_other_columns_are_named() -> None:
    X, y = table()
    with pytest.raises(InputError, match="names 'count', and the columns are 'modes'"):
        NaiveBayes({"modes": Histogram(edges={"count": [0.0, 1.0]})}).fit(X, y)
    model = NaiveBayes({2: PointMass(0.0, Histogram(edges={2: [0.5, 1.5, 9.0]}))}).fit(X, y)
    assert model.families_["count"].family.edges == [0.5, 1.5, 9.0]


# ------------------------------------------------------------------------------------------------------- densities


@pytest.mark.parametrize("estimation", ["bayes", "map", "mle"])
def test_densities_integrate_to_one_and_have_the_expectation_that_is_imputed(estimation: str) -> None:
    X, y = table(60)
    edges = {"modes": (-1.0, -0.2, 0.3, 1.5), "skewed": (1.0, 2.0), "count": (-0.5, 0.5, 1.5, 2.5, 8.0)}
    model = NaiveBayes(Histogram(edges=edges), estimation=estimation).fit(X, y)
    for j, name in enumerate(edges):
        part = fitted(model).marginal(np.array([j]))
        points = [-np.inf, *edges[name], np.inf]
        for k in range(3):

            def density(x: float, part: Any = part, k: int = k) -> float:
                return float(np.exp(part.log_density(np.array([[x]]))[k, 0]))

            pieces = [integrate.quad(density, *pair)[0] for pair in pairwise(points)]
            assert sum(pieces) == pytest.approx(1.0, abs=1e-7)
            assert_allclose(part.masses[k, : len(pieces), 0], pieces, atol=1e-7)
            means = [integrate.quad(lambda x: x * density(x), *p)[0] for p in pairwise(points)]
            assert part.means()[k, 0] == pytest.approx(sum(means), abs=1e-6)


def test_tails_have_a_probability_of_about_one_row() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 1)), np.repeat([0, 1], 500)
    masses = fitted(NaiveBayes(Histogram()).fit(X, y)).masses
    assert_allclose(masses[:, [0, -1], 0].sum(axis=1), 1.0 / 1001, rtol=0.1)


def test_samples_follow_the_histogram_and_its_tails() -> None:
    X, y = table(300)
    edges = (-1.0, 0.0, 0.5, 2.0)
    model = NaiveBayes({"modes": Histogram(edges=edges), "skewed": None, "count": None}).fit(X, y)
    drawn = model.sample(20_000, label="b", random_state=0)[0]["modes"].to_numpy()
    mass = fitted(model).masses[1, :, 0]
    observed = np.bincount(slots_of(drawn[:, None], np.array(edges)[:, None])[:, 0], minlength=5)
    assert stats.chisquare(observed, mass / mass.sum() * len(drawn)).pvalue > 1e-3
    beyond = drawn[drawn > 2.0] - 2.0
    assert stats.kstest(beyond, stats.expon(scale=1.5).cdf).pvalue > 1e-3


def test_maximum_likelihood_is_relative_frequencies() -> None:
    X, y = table()
    model = NaiveBayes({"count": Histogram(), "modes": None, "skewed": None}, estimation="mle").fit(X, y)
    density = np.exp(fitted(model).log_density(np.array([[2.0]])))[:, 0]
    expected = [np.mean(X["count"][y == label] == 2.0) for label in "abc"]  # the cell from 1.5 to 2.5 has width 1
    assert_allclose(density, expected, rtol=1e-12)
    X.loc[y == "c", "count"] = np.nan
    with pytest.raises(NotEstimableError, match=r"'count' has no observed value in class 'c'.*estimation='bayes'"):
        NaiveBayes({"count": Histogram()}, estimation="mle").fit(X[["count"]], y).predict(X[["count"]])


def test_two_modes_are_found() -> None:
    X, y = table(2000)
    model = NaiveBayes({"modes": Histogram(), "skewed": None, "count": None}).fit(X, y)
    found = model.predict_proba(pd.DataFrame({"modes": [-3.0, 0.0, 3.0], "skewed": 1.0, "count": 1.0}))[:, 1]
    assert np.all(found[[0, 2]] > 0.9)
    assert found[1] < 0.15


def test_far_values_keep_the_evidence_of_the_outer_cell() -> None:
    X, y = table(2000)
    model = NaiveBayes({"modes": Histogram(), "skewed": None, "count": None}, calibration=None).fit(X, y)
    rows = pd.DataFrame({"modes": [X["modes"].max(), 1e3, 1e140], "skewed": 0.0, "count": 0.0})
    found = model.predict_proba(rows)
    assert_allclose(found, np.repeat(found[:1], 3, axis=0), rtol=0, atol=1e-12)
    assert np.isfinite(model.log_joint(rows)).all()
    assert np.diff(model.log_joint(rows), axis=0).max() < 0.0


@pytest.mark.parametrize("unit", [1e-300, 1e-8, 1e8, 2e138])
def test_units_of_columns_do_not_matter(unit: float) -> None:
    X, y = table()
    X = X[["modes"]]
    expected = NaiveBayes(Histogram()).fit(X, y)
    model = NaiveBayes(Histogram()).fit(X * unit, y)
    assert_allclose(model.predict_proba(X * unit), expected.predict_proba(X), rtol=0, atol=1e-9)
    assert_allclose(model.log_joint(X * unit) + np.log(unit) * X.notna().to_numpy(), expected.log_joint(X), atol=1e-6)
    assert np.isfinite(np.asarray(model.sample(50, random_state=0)[0])).all()


# ------------------------------------------------------------------------------------------------- odd columns


def test_columns_with_one_value_or_none_are_ignored() -> None:
    X, y = table()
    more = X.assign(same=4.0, empty=np.nan)
    model = NaiveBayes(Histogram()).fit(more, y)
    assert model.families_["same"].edges == (4.0,)
    assert model.families_["empty"].edges == ()
    assert_allclose(model.predict_proba(more), NaiveBayes(Histogram()).fit(X, y).predict_proba(X), atol=1e-12)
    assert_array_equal(model.explain(more).evidence[:, :, 3:], 0.0)
    assert "set aside: 'same' (constant), 'empty' (no values)" in str(model.summary())
    drawn = model.sample(5, random_state=0)[0]
    assert_array_equal(drawn["same"], 4.0)
    later = more.assign(same=np.arange(len(y)) * 1.0, empty=1.0)
    model.partial_fit(later, y)
    assert np.isfinite(model.predict_proba(later)).all()


def test_neighbouring_floats_and_two_values() -> None:
    y = np.repeat(["a", "b"], 20)
    for high in (np.nextafter(1.0, 2.0), 1.5):
        X = np.where(y == "a", 1.0, high)[:, None]
        model = NaiveBayes(Histogram()).fit(X, y)
        assert np.isfinite(model.log_joint(X)).all()
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n: int) -> None:
    X, y = np.array([[0.0, 5.0], [1.0, np.nan], [2.0, 7.0]])[:n], np.array(["a", "b", "c"])[:n]
    model = NaiveBayes(Histogram()).fit(X, y)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.isfinite(model.predict_proba([[np.nan, np.nan], [1e9, -1e9]])).all()


def test_infinite_values_and_text_are_named() -> None:
    X, y = table()
    X.loc[7, "skewed"] = np.inf
    with pytest.raises(InputError, match=r"Column 'skewed', row 7: inf is not a finite number"):
        NaiveBayes(Histogram()).fit(X, y)
    weights = np.where(np.arange(len(y)) == 7, 0.0, 1.0)
    model = NaiveBayes(Histogram()).fit(X, y, sample_weight=weights)
    assert np.isfinite(model.families_["skewed"].edges).all()
    with pytest.raises(InputError, match="'word', row 0: 'p' is not a number"):
        NaiveBayes({"word": Histogram()}).fit(X.assign(word="p"), y)


# ------------------------------------------------------------------------------------------------- updates and files


def test_models_with_other_edges_are_not_added_and_the_remedy_works() -> None:
    X, y = table()
    first, second = X[:200], X[200:]
    model = NaiveBayes(Histogram())
    one, two = clone(model).fit(first, y[:200]), clone(model).fit(second, y[200:])
    with pytest.raises(InputError, match=r"families of .*Histogram.*families=first.families_") as caught:
        one + two
    assert len(str(caught.value)) < 900
    with pytest.raises(InputError, match=r"other edges cannot be combined.*families=first.families_"):
        one.statistics_ + two.statistics_
    model = NaiveBayes(one.families_, calibration=None)
    total = clone(model).fit(first, y[:200]) + clone(model).fit(second, y[200:])
    assert_allclose(total.log_joint(X), clone(model).fit(X, y).log_joint(X), rtol=1e-10)


def test_later_rows_have_the_edges_of_the_first_batch() -> None:
    X, y = table()
    X.loc[350:, "skewed"] *= 100.0
    model = NaiveBayes(Histogram()).partial_fit(X[:200], y[:200])
    edges = model.families_["skewed"].edges
    before = model.log_joint(X)
    model.partial_fit(X[200:], y[200:])
    assert model.families_["skewed"].edges == edges
    whole = NaiveBayes(model.families_, calibration=None).fit(X, y)
    assert_allclose(model.log_joint(X), whole.log_joint(X), rtol=1e-10)
    assert_allclose(model.forget(X[200:], y[200:]).log_joint(X), before, rtol=1e-10)
    with pytest.raises(InputError, match="More rows are to be removed than were added"):
        model.forget(X[200:], y[200:])


def test_edges_of_a_small_first_batch_are_reported() -> None:
    X, y = table()
    for families in (Histogram(), {"modes": Histogram(), "count": Poisson(), "skewed": Gamma()}):
        with pytest.warns(EarlyChoiceWarning, match="edges of histograms, and it has 20 rows: column 'modes'"):
            NaiveBayes(families).partial_fit(X[:20], y[:20])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NaiveBayes(Histogram()).partial_fit(X[:100], y[:100])
        NaiveBayes(Histogram(edges=[0.0, 1.0, 5.0])).partial_fit(X[:20], y[:20])
        NaiveBayes(Histogram()).fit(X[:20], y[:20])


@pytest.mark.parametrize("estimation", ["bayes", "map", "mle"])
def test_files(tmp_path: Path, estimation: str) -> None:
    X, y = table()
    families: Any = {"modes": Histogram(cells=9), "count": PointMass(0.0, Histogram()), "skewed": LogNormal()}
    model = GenerativeClassifier(families, estimation=estimation).fit(X.assign(skewed=X["skewed"] + 0.1), y)
    model.save(tmp_path / "model")
    again: Any = likely.load(tmp_path / "model")
    assert_array_equal(again.predict_proba(X.assign(skewed=1.0)), model.predict_proba(X.assign(skewed=1.0)))
    assert again.families_["modes"].edges == model.families_["modes"].edges
    rows = X.iloc[:50].assign(skewed=1.0)
    assert_allclose(again.partial_fit(rows, y[:50]).log_joint(rows), model.partial_fit(rows, y[:50]).log_joint(rows))


def test_folds_have_the_edges_of_their_training_rows() -> None:
    X, y = table(300)
    index = np.arange(300)
    splits = [(index[index % 3 != i], index[index % 3 == i]) for i in range(3)]
    for families in (Histogram(), {"modes": Histogram()}):
        model: Any = NaiveBayes(families, calibration=None)
        found = likely.cross_validate(model, X, y, folds=splits)
        losses = []
        for train, test in splits:
            fit = clone(model).fit(X.iloc[train], y[train])
            p = fit.predict_proba(X.iloc[test])[np.arange(len(test)), np.searchsorted(fit.classes_, y[test])]
            losses.append(-np.log(p).mean())
        assert np.mean(found.log_loss) == pytest.approx(np.mean(losses), abs=1e-9)


def test_selection_and_leave_one_out() -> None:
    X, y = table()
    best = likely.select(X, y, [NaiveBayes(Histogram()), NaiveBayes(Histogram(cells=4)), NaiveBayes()])
    assert best.best.classes_.tolist() == ["a", "b", "c"]
    model = NaiveBayes(Histogram(), calibration=None).fit(X, y)
    held_out, plain = model.left_out_proba(X, y), model.predict_proba(X)
    own = np.searchsorted(model.classes_, y)
    assert np.log(held_out[np.arange(len(y)), own]).mean() < np.log(plain[np.arange(len(y)), own]).mean()


@pytest.mark.parametrize("estimation", ["bayes", "mle"])
def test_unlabeled_rows_raise_the_objective_at_every_step(estimation: str) -> None:
    X, y = table(300)
    labels = np.where(np.arange(len(y)) % 3 == 0, None, y)
    model: Any = NaiveBayes(Histogram(cells=6), estimation=estimation, unlabeled_weight=1.0).fit(X, labels)
    assert model.converged_
    assert np.diff(model._history.objective).min() > -1e-8
    assert model.statistics_.counts.weight.sum() == pytest.approx(300.0)


# ---------------------------------------------------------------------------------------- with other parts of the model


def test_a_point_mass_beside_a_histogram() -> None:
    X, y = table()
    X["skewed"] = np.where(np.arange(len(y)) % 3 == 0, 0.0, X["skewed"])
    model = GenerativeClassifier({"skewed": PointMass(0.0, Histogram())}).fit(X, y)
    assert model.families_["skewed"].family.edges[0] == X["skewed"][X["skewed"] > 0.0].min()
    assert_allclose(model.left_out_proba(X, y).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.6


def test_components_of_a_mixture() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-3.0, 1.0, (200, 2)), rng.normal(3.0, 1.0, (200, 2))])
    for families in (Histogram(cells=16), {0: Histogram(cells=16)}):
        model: Any = MixtureModel(2, families).fit(X)
        assert model.families_["x0"].edges[0] == X[:, 0].min()
        assert np.ptp(model.predict(X)[:200]) == np.ptp(model.predict(X)[200:]) == 0


def test_terms_of_single_columns_are_leave_one_out_densities() -> None:
    X, y = table(80)
    x, codes = X[["modes", "count"]].to_numpy(), np.searchsorted(["a", "b", "c"], y)
    family = Histogram(edges=(-2.0, 0.0, 1.0, 2.0, 6.0))
    accumulator = family._accumulator(np.array(["a", "b", "c"]), Columns(("modes", "count")))
    accumulator.add(x, codes)
    statistics, names, ones = accumulator.finish(), ("modes", "count"), np.ones(len(y))
    terms = family._held_out_terms(statistics, x, codes, ones, False)
    whole = family._leave_one_out(
        statistics, family.estimate(statistics, Estimation.BAYES, names), Estimation.BAYES, names
    )(x, codes, ones)
    assert_allclose(terms.sum(axis=1), whole[codes, np.arange(len(y))], rtol=1e-12)
    assert_array_equal(terms[np.isnan(x)], 0.0)
    with pytest.raises(NoDensityError, match="intervals"):
        family._held_out_terms(statistics, x, codes, ones, True)


def test_explanations_imputation_parameters_and_hybrids() -> None:
    X, y = table()
    model = NaiveBayes(Histogram(cells=4), calibration=None).fit(X, y)
    evidence = model.explain(X).evidence
    log_joint = model.log_joint(X)
    assert_allclose(evidence.sum(axis=2) + np.log(model.class_prior_), log_joint, rtol=1e-10)
    filled = model.impute(X)
    assert not filled.isna().any().any()
    parameters = model.parameters()
    rows = parameters[(parameters["column"] == "modes") & (parameters["class"] == "a")]
    assert rows["value"].sum() == pytest.approx(1.0)
    assert len(rows) == 6
    with pytest.raises(InputError, match="has no linear log-odds"):
        HybridClassifier(Histogram(cells=4)).fit(X, y)
