"""Typicality is a conservative p-value, novelty a score that ranks rows, whatever the families and missing values."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.special
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal

from likely import (
    Bernoulli,
    Categorical,
    Gaussian,
    GenerativeClassifier,
    Geometric,
    LogNormal,
    Multinomial,
    NaiveBayes,
    NegativeBinomial,
    Poisson,
    QuadraticDiscriminant,
)
from likely.errors import InputError, NoDensityError
from likely.model.typicality import _log_last, drawn_densities

FAMILIES: dict[str, Any] = {
    "joint": {("a", "b", "c"): Gaussian(), "d": Poisson(), "e": Categorical()},
    "pooled": {("a", "b"): Gaussian(shared=True), "c": Gaussian("diagonal"), "d": Geometric(), "e": Categorical()},
    "table": {"a": Gaussian(), "b": Gaussian("spherical"), "c": Gaussian(), ("d", "e"): Categorical()},
    "components": {("a", "b", "c"): Gaussian(components=2, shared=True), "d": Poisson(), "e": Categorical()},
}


def mixed(rows: int = 500) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(rows) % 3
    frame = pd.DataFrame(rng.normal(size=(rows, 3)) @ rng.normal(size=(3, 3)) + 2.0 * y[:, None], columns=list("abc"))
    frame["d"] = rng.poisson(3 + y)
    frame["e"] = np.array(["u", "v", "w"])[rng.integers(0, 3, rows)]
    return frame, y


@cache
def fitted(families: str, estimation: str) -> GenerativeClassifier:
    return GenerativeClassifier(FAMILIES[families], estimation=estimation).fit(*mixed())


@pytest.mark.usefixtures("few_starts")
@pytest.mark.parametrize("estimation", ["mle", "bayes"])
@pytest.mark.parametrize("families", FAMILIES)
@pytest.mark.parametrize("missing", [False, True])
def test_at_most_a_proportion_of_the_rows_of_a_model_has_a_smaller_typicality(
    families: str, estimation: str, missing: bool
) -> None:
    model = fitted(families, estimation)
    rows, _ = model.sample(2000, random_state=1)
    if missing:
        rows = rows.where(np.random.default_rng(0).random(rows.shape) < 0.7)
    typicality, novelty = model.typicality(rows), model.novelty(rows)
    for level in (0.01, 0.05, 0.1, 0.3):
        error = np.sqrt(level * (1.0 - level) * (1.0 / 2000 + 1.0 / 10_000))  # of the rows and of the simulation
        assert (typicality < level).mean() <= level + 3.0 * error
    assert typicality.min() >= 1.0 / 10_001.0
    assert_allclose(np.maximum(10.0**-novelty, 1.0 / 10_001.0), typicality, rtol=1e-8)
    below = typicality > typicality.min()
    assert_array_equal(np.argsort(novelty[below], kind="stable"), np.argsort(-typicality[below], kind="stable"))


def test_simulated_p_values_are_those_of_the_closed_form() -> None:
    """A second block with one value for all rows keeps the Gaussian block from its closed form."""
    frame, y = mixed()
    X = frame[["a", "b", "c"]]
    for estimation in ("mle", "bayes"):
        closed = GenerativeClassifier(Gaussian(), estimation=estimation).fit(X, y)
        wide = X.assign(constant=1.0)
        families = {("a", "b", "c"): Gaussian(), "constant": Gaussian("diagonal")}
        simulated = GenerativeClassifier(families, estimation=estimation).fit(wide, y)
        incomplete = wide.where(np.random.default_rng(0).random(wide.shape) < 0.7)
        for rows in (wide, incomplete):
            expected = closed.typicality(rows[["a", "b", "c"]])
            assert_allclose(simulated.typicality(rows, n_samples=20_000), expected, atol=0.015)


@pytest.mark.parametrize(
    "family", [Gaussian(), Gaussian("diagonal"), Gaussian(shared=True), Gaussian("spherical"), LogNormal(), Poisson()]
)
@pytest.mark.parametrize("estimation", ["mle", "bayes"])
def test_densities_of_draws_are_those_of_sampled_rows_with_missing_values(family: Any, estimation: str) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = np.exp(0.3 * rng.normal(size=(300, 3)) @ rng.normal(size=(3, 3)) + 0.5 * y[:, None])
    X = np.round(10.0 * X) if isinstance(family, Poisson) else X
    fitted: Any = GenerativeClassifier(family, estimation=estimation).fit(X, y).model_.blocks[0].conditionals
    patterns = np.array([[True, True, True], [True, False, True], [False, False, True]])
    densities = drawn_densities(fitted, 1, 4000, np.random.default_rng(1))(patterns)
    rows = fitted.sample(1, 4000, np.random.default_rng(2))
    for present, found in zip(patterns, densities, strict=True):
        expected = fitted.log_density(np.where(present, rows, np.nan))[1]
        assert scipy.stats.ks_2samp(found.round(9), expected.round(9)).pvalue > 1e-3  # counts have ties


def test_equal_densities_are_ties() -> None:
    """A row of the most probable value has at most the density of every draw, whatever the rounding."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(["u", "v"], 400) for name in "abcdefgh"})
    model = NaiveBayes(Categorical(), estimation="map").fit(X, np.zeros(400))
    assert model.typicality(X).max() == 1.0
    rows, _ = model.sample(4000, random_state=0)
    typicality = model.typicality(rows)
    for level in (0.05, 0.1, 0.3, 0.7):
        assert (typicality < level).mean() <= level + 0.02


@pytest.mark.parametrize("family", [Gaussian(), Poisson(), NegativeBinomial(20.0), LogNormal()], ids=repr)
@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_a_day_of_the_month_that_does_not_exist_is_novel(family: Any, estimation: str) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(900) % 2
    frame = pd.DataFrame({"day": rng.integers(1, 32, 900), "flag": rng.integers(0, 2, 900)})
    model = NaiveBayes({"day": family, "flag": Bernoulli()}, estimation=estimation).fit(frame, y)
    days = pd.DataFrame({"day": [15, 60], "flag": [1, 1]})
    usual, novel = model.novelty(days)
    assert novel > usual
    if not isinstance(family, LogNormal):  # whose tail reaches 60
        assert model.typicality(days)[1] < 0.01
        assert novel > 2.0


def test_novelty_is_finite_and_ranks_rows_that_are_far_from_all_classes() -> None:
    frame, y = mixed()
    X = frame[["a", "b", "c"]].to_numpy()
    distances = np.array([1e1, 1e2, 1e3, 1e6, 1e100, 1e130])
    far = distances[:, None] * np.ones(3)
    for model in (
        QuadraticDiscriminant(),
        QuadraticDiscriminant(estimation="bayes"),
        NaiveBayes(Gaussian()),
        NaiveBayes(Gaussian(), estimation="mle"),
    ):
        novelty = model.fit(X, y).novelty(far)
        assert np.isfinite(novelty).all()
        assert (np.diff(novelty) > 0.0).all()
        assert np.isfinite(model.novelty(np.full((1, 3), 1e140))).all()


def test_novelty_of_the_gaussian_continues_where_the_p_value_underflows() -> None:
    x = np.linspace(30.0, 45.0, 200)[:, None]
    model = GenerativeClassifier(Gaussian(), estimation="mle").fit(np.array([[-1.0], [1.0]] * 50), np.zeros(100))
    expected = -scipy.stats.norm.logsf(x[:, 0]) / np.log(10.0) - np.log10(2.0)
    assert_allclose(model.novelty(x), expected, rtol=1e-3)
    bayes = GenerativeClassifier(Gaussian()).fit(np.random.default_rng(0).normal(size=(40, 1)), np.zeros(40))
    wide = np.logspace(4, 25, 300)[:, None]
    steps = np.diff(bayes.novelty(wide))
    assert_allclose(steps, steps[0], rtol=1e-3)  # a power of the distance, through the limit


@pytest.mark.parametrize("columns", [2, 50, 2000])
@pytest.mark.parametrize("degrees", [1.0, 6.0, 30.0, 60.0])
def test_novelty_of_the_student_t_continues_where_the_p_value_underflows(columns: int, degrees: float) -> None:
    log_last = _log_last(np.array([[degrees]]), np.array([float(columns)]))[0, 0]
    a, b, log_x = 0.5 * degrees, 0.5 * columns, np.log(degrees) - np.logaddexp(np.log(degrees), log_last)
    n = np.arange(20_000)  # I_x(a, b) = x^a·(1 − x)^b / (a·B(a, b)) · Σ (a + b)_n / (a + 1)_n · x^n
    terms = scipy.special.gammaln([a + b + n, a + 1.0 + n]) - scipy.special.gammaln([[a + b], [a + 1.0]])
    series = scipy.special.logsumexp(terms[0] - terms[1] + n * log_x)
    log_p_value = a * log_x + b * np.log1p(-np.exp(log_x)) - np.log(a) - scipy.special.betaln(a, b) + series
    assert_allclose(log_p_value, np.log(1e-300), rtol=1e-6)


def test_novelty_of_few_rows_of_many_columns_is_a_number() -> None:
    X = np.random.default_rng(0).normal(size=(3, 50))
    model = GenerativeClassifier().fit(X, [0, 1, 1])
    scores = model.novelty([X[0], X[0] + 1e3, X[0] + 1e100, X[0] + 1e139])
    assert np.isfinite(scores).all()
    assert (np.diff(scores) > 0.0).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("kind", [GenerativeClassifier, NaiveBayes])
def test_novelty_and_samples_at_the_limit_are_numbers(kind: Any) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 4)) + y[:, None]
    X *= 1e140 / np.abs(X).max()
    model = kind().fit(X, y)
    assert np.isfinite(model.novelty(X)).all()
    assert np.isfinite(model.sample(500, random_state=0)[0]).all()
    assert "nan" not in str(model.summary())


def test_rows_with_probability_zero_under_every_class_are_infinitely_novel() -> None:
    frame = pd.DataFrame({"a": ["u", "u", "v", "v"], "x": [1.0, 2.0, 3.0, 4.0]})
    families = {"a": Categorical(), "x": Gaussian("diagonal", shared=True)}
    model = NaiveBayes(families, estimation="mle", class_prior=[1.0, 0.0]).fit(frame, [0, 0, 1, 1])
    row = pd.DataFrame({"a": ["v"], "x": [1.5]})
    assert model.novelty(row)[0] == np.inf
    assert model.typicality(row)[0] == 1.0 / 10_001.0


def test_classes_of_probability_zero_make_no_row_typical() -> None:
    frame, y = mixed()
    X = frame[["a", "b", "c"]]
    model = QuadraticDiscriminant().fit(X, y)
    row = pd.DataFrame([model.means_[2] + 20.0], columns=X.columns)
    other = X[y == 0] - X[y == 0].mean() + row.iloc[0]
    shifted = QuadraticDiscriminant().fit(pd.concat([X, other]), [*y, *([3] * len(other))])
    assert shifted.typicality(row)[0] > 0.5
    assert shifted.with_prior([0.5, 0.3, 0.2, 0.0]).typicality(row)[0] < 1e-6


def test_draws_do_not_depend_on_the_batch_of_a_row() -> None:
    frame, y = mixed()
    model = GenerativeClassifier(FAMILIES["joint"]).fit(frame, y)
    incomplete = frame.where(np.random.default_rng(0).random(frame.shape) < 0.7)
    whole = model.novelty(incomplete)
    assert_allclose(np.concatenate([model.novelty(incomplete[:77]), model.novelty(incomplete[77:])]), whole, rtol=1e-9)
    order = np.random.default_rng(1).permutation(len(frame))
    assert_allclose(model.novelty(incomplete.iloc[order]), whole[order], rtol=1e-9)


def cpu_time(work: Callable[[], object]) -> float:
    """The least CPU time of three calls."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def test_the_time_of_novelty_and_summaries_is_linear_in_the_number_of_classes() -> None:
    X = np.random.default_rng(0).normal(size=(800, 4))
    few, many = (NaiveBayes(Gaussian()).fit(X, np.arange(800) % classes) for classes in (20, 160))
    assert cpu_time(lambda: many.novelty(X, n_samples=500)) < 24.0 * cpu_time(lambda: few.novelty(X, n_samples=500))
    assert cpu_time(many.summary) < 24.0 * cpu_time(few.summary)


def test_many_patterns_need_little_memory() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 15))
    model = NaiveBayes(Gaussian()).fit(X, np.arange(4000) % 3)
    incomplete = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    tracemalloc.start()
    model.novelty(incomplete)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80e6


def test_the_error_for_counts_given_their_total_names_a_remedy_that_works() -> None:
    X, y = np.random.default_rng(0).poisson(3.0, size=(40, 3)), np.arange(40) % 2
    with pytest.raises(
        NoDensityError, match=r"the total of a row has no density.*model without these columns"
    ) as caught:
        NaiveBayes(Multinomial()).fit(X, y).novelty(X)
    assert "Poisson" not in str(caught.value)
    with pytest.raises(NoDensityError, match=r"Poisson\(\) without exposure"):
        NaiveBayes(Poisson("row totals")).fit(X, y).typicality(X)
    assert np.isfinite(NaiveBayes(Poisson()).fit(X, y).novelty(X)).all()


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, "many", True])
def test_the_number_of_simulated_rows_is_checked(n_samples: Any) -> None:
    frame, y = mixed()
    with pytest.raises(InputError, match="n_samples"):
        NaiveBayes().fit(frame, y).typicality(frame, n_samples=n_samples)


def test_novelty_of_many_columns_keeps_few_draws_in_memory() -> None:
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(20, 1_000)), rng.poisson(3.0, size=(20, 2))])
    model = GenerativeClassifier({tuple(range(1_000)): Gaussian("diagonal"), 1_000: Poisson(), 1_001: Poisson()})
    model.fit(X, np.arange(20) % 2)
    tracemalloc.start()
    novelty = model.novelty(X, n_samples=10_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(novelty).all()
    assert peak < 150e6  # an array of all draws has 80 MB
    X[1, 3] = np.nan
    together = model.novelty(X[:2], n_samples=3_000)
    assert_allclose(together, [model.novelty(row[None], n_samples=3_000)[0] for row in X[:2]])
