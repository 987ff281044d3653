"""Geometric, negative binomial, exponential and gamma columns, against SciPy's distributions and integrals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import quad
from scipy.special import betaln, digamma, gammaln

from likely import NaiveBayes
from likely.errors import CellError, InputError, NotEstimableError
from likely.families.base import Columns
from likely.families.column_family import ColumnFamily
from likely.families.estimation import Estimation
from likely.families.exponential import Exponential
from likely.families.gamma import Gamma
from likely.families.geometric import Geometric
from likely.families.negative_binomial import NegativeBinomial, NegativeBinomialConditionals
from likely.families.priors import BetaPrior, GammaPrior, PseudoRows

Floats = NDArray[np.float64]

CLASSES = np.array(["a", "b", "c"])
NAMES = ("first", "second")
MEANS = np.array([[0.8, 20.0], [3.0, 6.0], [11.0, 9.0]])  # (classes, columns)
CODES = np.repeat(np.arange(3), (14, 9, 11))
DRAWS = 20000


@dataclass(frozen=True)
class Case:
    """A family, its distribution by SciPy for the learnt parameters, and how rows of it are drawn."""

    family: Any
    law: Callable[[Any, int, int], Any]  # of learnt conditionals, a class and a column
    draw: Callable[[np.random.Generator, Any, Any], Floats]  # of a mean and a size

    def __str__(self) -> str:
        options = [f"{value}" for name, value in self.family.get_params().items() if name != "prior"]
        return " ".join([type(self.family).__name__, *options])

    def rows(self, seed: int = 0) -> Floats:
        return self.draw(np.random.default_rng(seed), MEANS[CODES], (len(CODES), 2))

    @property
    def counts(self) -> bool:
        return isinstance(self.family, Geometric | NegativeBinomial)


def geometric_law(learnt: Any, k: int, j: int) -> Any:
    return stats.geom(learnt.probability[k, j], loc=-1)


def negative_binomial_law(learnt: Any, k: int, j: int) -> Any:
    return stats.nbinom(learnt.dispersion, learnt.probability[k, j])


def exponential_law(learnt: Any, k: int, j: int) -> Any:
    return stats.expon(scale=1.0 / learnt.rate[k, j])


def gamma_law(learnt: Any, k: int, j: int) -> Any:
    return stats.gamma(learnt.shape[k, j], scale=1.0 / learnt.rate[k, j])


def draw_counts(rng: np.random.Generator, mean: Any, size: Any) -> Floats:
    return np.asarray(rng.poisson(mean * rng.gamma(1.4, 1.0 / 1.4, size)), dtype=np.float64)


def draw_numbers(rng: np.random.Generator, mean: Any, size: Any) -> Floats:
    return np.asarray(mean * rng.gamma(1.8, 1.0 / 1.8, size))


GIVEN = [
    Case(Geometric(), geometric_law, draw_counts),
    Case(NegativeBinomial(0.3), negative_binomial_law, draw_counts),
    Case(NegativeBinomial(7.5), negative_binomial_law, draw_counts),
    Case(Exponential(), exponential_law, draw_numbers),
    Case(Gamma(0.4), gamma_law, draw_numbers),
    Case(Gamma(3.0), gamma_law, draw_numbers),
]
LEARNT = [Case(Gamma("own"), gamma_law, draw_numbers), Case(Gamma("shared"), gamma_law, draw_numbers)]
every_case = pytest.mark.parametrize("case", GIVEN + LEARNT, ids=str)
every_closed_case = pytest.mark.parametrize("case", GIVEN, ids=str)
every_learnt_shape = pytest.mark.parametrize("case", LEARNT, ids=str)
every_estimation = pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
every_plugged_in_estimation = pytest.mark.parametrize("estimation", ["mle", "map"])


def learn(
    family: ColumnFamily, X: Any, estimation: str, codes: NDArray[np.intp] = CODES, weights: Floats | None = None
) -> Any:
    builder = family._accumulator(CLASSES, Columns(NAMES))
    builder.add(X, codes, weights)
    return family.estimate(builder.finish(), Estimation(estimation), NAMES)


def of_class(X: Floats, k: int) -> Floats:
    return X[np.equal(CODES, k)]


def log_law(law: Any, x: Any) -> Floats:
    return np.asarray(law.logpmf(x) if hasattr(law.dist, "logpmf") else law.logpdf(x))


def assert_log_close(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


# Densities.


@every_plugged_in_estimation
@every_case
def test_the_plugged_in_density_is_that_of_scipy(case: Case, estimation: str) -> None:
    X = case.rows()
    learnt = learn(case.family, X, estimation)
    terms = learnt.explain(X)
    for k in range(3):
        expected = np.array([log_law(case.law(learnt, k, j), X[:, j]) for j in range(2)]).T
        assert_log_close(terms[:, k], expected)
        assert_log_close(learnt.log_density(X)[k], expected.sum(axis=1))


@every_plugged_in_estimation
@every_case
def test_the_natural_form_is_the_density(case: Case, estimation: str) -> None:
    X = case.rows()
    learnt = learn(case.family, X, estimation)
    assert_log_close(learnt.natural_log_density(X), learnt.log_density(X))


@every_estimation
@every_case
def test_scores_are_densities_up_to_a_term_that_all_classes_share(case: Case, estimation: str) -> None:
    X = case.rows()
    X[3, 1] = X[5, 0] = np.nan
    learnt = learn(case.family, X, estimation)
    scores, density = learnt.scores(X), learnt.log_density(X)
    assert_log_close(scores - scores[0], density - density[0])


@every_estimation
@pytest.mark.parametrize("case", [case for case in GIVEN if case.counts], ids=str)
def test_sparse_rows_are_learnt_and_scored_as_dense_ones(case: Case, estimation: str) -> None:
    X = case.rows()
    sparse = scipy.sparse.csr_array(X)
    learnt, again = learn(case.family, X, estimation), learn(case.family, sparse, estimation)
    assert_log_close(again.log_density(sparse), learnt.log_density(X), 1e-13)
    assert_log_close(again.scores(sparse), learnt.scores(X), 1e-13)


@pytest.mark.parametrize("shape", ["shared", 2.5])
@every_plugged_in_estimation
def test_with_one_shape_for_all_classes_the_log_odds_are_linear(shape: Any, estimation: str) -> None:
    learnt = learn(Gamma(shape), LEARNT[0].rows(), estimation)
    assert_array_equal(learnt.shape, np.broadcast_to(learnt.shape[:1], (3, 2)))
    x = np.column_stack([np.linspace(0.1, 30.0, 50)] * 2)
    odds = learnt.log_density(x)[1] - learnt.log_density(x)[0]
    assert_log_close(np.diff(odds), np.full(49, np.diff(odds).mean()))


# Estimates.


def parameters_of(learnt: Any) -> dict[str, Floats]:
    names = ("shape", "rate", "failures")
    return {name: getattr(learnt, name) for name in names if hasattr(learnt, name)}


def likelihood(case: Case, learnt: Any, X: Floats) -> float:
    laws = [[case.law(learnt, k, j) for j in range(2)] for k in range(3)]
    return float(sum(log_law(laws[k][j], of_class(X, k)[:, j]).sum() for k in range(3) for j in range(2)))


def learnt_numbers(case: Case) -> list[tuple[str, Any]]:
    """The parameters that a family learns: name and place, where a shared shape is in all classes."""
    cells = [(k, j) for k in range(3) for j in range(2)]
    if case.counts:
        return [("failures", cell) for cell in cells]
    shape = getattr(case.family, "shape", None)
    places: dict[Any, list[Any]] = {"own": cells, "shared": [np.s_[:, 0], np.s_[:, 1]]}
    return [("rate", cell) for cell in cells] + [("shape", place) for place in places.get(shape, [])]


@every_case
def test_maximum_likelihood_has_no_gradient_and_is_above_its_surroundings(case: Case) -> None:
    X = case.rows()
    learnt = learn(case.family, X, "mle")
    best = likelihood(case, learnt, X)
    for name, place in learnt_numbers(case):
        near = {}
        for factor in (0.98, 0.9999, 1.0001, 1.02):
            values = getattr(learnt, name).copy()
            values[place] *= factor
            near[factor] = likelihood(case, replace(learnt, **{name: values}), X)
        assert abs(near[1.0001] - near[0.9999]) / 2e-4 < 1e-5 * abs(best)
        assert max(near.values()) < best


def test_maximum_likelihood_is_the_textbook_one() -> None:
    counts, numbers = GIVEN[0].rows(), GIVEN[3].rows()
    n = np.bincount(CODES)[:, None]
    failures, waited = (np.array([of_class(X, k).sum(axis=0) for k in range(3)]) for X in (counts, numbers))
    assert_allclose(learn(Geometric(), counts, "mle").probability, n / (n + failures), rtol=1e-14)
    learnt = learn(NegativeBinomial(2.5), counts, "mle")
    assert_allclose(learnt.probability, 2.5 * n / (2.5 * n + failures), rtol=1e-14)
    assert_allclose(learn(Exponential(), numbers, "mle").rate, n / waited, rtol=1e-14)
    assert_allclose(learn(Gamma(2.5), numbers, "mle").rate, 2.5 * n / waited, rtol=1e-14)


@pytest.mark.parametrize("log_scale", [1e-5, 1e-2, 0.3, 2.0, 30.0])
def test_the_shape_solves_its_equation_for_narrow_and_wide_columns(log_scale: float) -> None:
    X = np.exp(log_scale * np.random.default_rng(1).normal(size=(len(CODES), 2)))
    learnt = learn(Gamma(), X, "mle")
    for k, j in np.ndindex(3, 2):
        x = of_class(X, k)[:, j]
        shape = learnt.shape[k, j]
        wanted = np.log(np.mean(x)) - np.mean(np.log(x))
        found = 1.0 / (2.0 * shape) + 1.0 / (12.0 * shape**2) if shape > 1e4 else np.log(shape) - digamma(shape)
        assert_allclose(found, wanted, rtol=1e-11, atol=1e-14)
        assert_allclose(learnt.rate[k, j], shape / np.mean(x), rtol=1e-12)


def test_the_shared_shape_is_that_of_one_class_where_there_is_no_other() -> None:
    X = LEARNT[0].rows()
    one = np.array(["all"])
    shapes = []
    for family in (Gamma("own"), Gamma("shared")):
        builder = family._accumulator(one, Columns(NAMES))
        builder.add(X, np.zeros(len(X), dtype=np.intp))
        learnt: Any = family.estimate(builder.finish(), Estimation.MLE, NAMES)
        shapes.append(learnt.shape)
    assert_array_equal(*shapes)


@pytest.mark.parametrize("dispersion", [1.0, 2.5])
def test_the_posterior_mode_of_a_probability_has_no_gradient(dispersion: float) -> None:
    """The prior is Beta(1 + successes, 1 + failures)."""
    X, prior = GIVEN[0].rows(), BetaPrior(1.5, 4.0)
    learnt = learn(NegativeBinomial(dispersion, prior), X, "map")
    for k, j in np.ndindex(3, 2):
        x, p = of_class(X, k)[:, j], learnt.probability[k, j]

        def posterior(p: float, x: Floats = x) -> float:
            return float(stats.nbinom.logpmf(x, dispersion, p).sum() + stats.beta.logpdf(p, 2.5, 5.0))

        assert abs(posterior(p * (1 + 1e-5)) - posterior(p * (1 - 1e-5))) / 2e-5 < 1e-4
        assert max(posterior(p * 0.98), posterior(p * 1.02)) < posterior(p)


@pytest.mark.parametrize("shape", [1.0, 2.5])
def test_the_posterior_mode_of_a_rate_has_no_gradient(shape: float) -> None:
    """The prior is Gamma(1 + events, exposure)."""
    X, prior = GIVEN[3].rows(), GammaPrior(1.5, 4.0)
    learnt = learn(Gamma(shape, prior), X, "map")
    for k, j in np.ndindex(3, 2):
        x, rate = of_class(X, k)[:, j], learnt.rate[k, j]

        def posterior(rate: float, x: Floats = x) -> float:
            return float(stats.gamma.logpdf(x, shape, scale=1 / rate).sum() + stats.gamma.logpdf(rate, 2.5, scale=0.25))

        assert abs(posterior(rate * (1 + 1e-5)) - posterior(rate * (1 - 1e-5))) / 2e-5 < 1e-4
        assert max(posterior(rate * 0.98), posterior(rate * 1.02)) < posterior(rate)


@every_learnt_shape
def test_pseudo_rows_count_as_rows_of_the_whole_table(case: Case) -> None:
    """As if every class had seen all rows once more, each with its share of the weight."""
    X, weight = case.rows(), 2.0
    family = Gamma(case.family.shape, PseudoRows(weight))
    codes = np.concatenate([CODES, *(np.full(len(X), k) for k in range(3))])
    weights = np.concatenate([np.ones(len(X)), np.full(3 * len(X), weight / len(X))])
    expected = learn(case.family, np.vstack([X] * 4), "mle", codes, weights)
    for estimation in ("map", "bayes"):
        learnt = learn(family, X, estimation)
        assert_allclose(learnt.shape, expected.shape, rtol=1e-12)
        assert_allclose(learnt.rate, expected.rate, rtol=1e-12)


def test_the_default_prior_has_the_overall_rate() -> None:
    X = GIVEN[3].rows()
    for family, shape in ((Exponential(), 1.0), (Gamma(2.5), 2.5)):
        learnt = learn(family, X[:23], "map", CODES[:23])  # class c has no rows
        assert_allclose(learnt.rate[2], shape / X[:23].mean(axis=0), rtol=1e-13)


@every_estimation
@every_case
def test_an_integer_weight_equals_repeating_the_row(case: Case, estimation: str) -> None:
    X, times = case.rows(), np.arange(len(CODES)) % 3 + 1
    learnt = learn(case.family, X, estimation, weights=times.astype(np.float64))
    again = learn(case.family, np.repeat(X, times, axis=0), estimation, np.repeat(CODES, times))
    assert_log_close(learnt.log_density(X), again.log_density(X))


# Predictives.


def likelihood_of_cell(case: Case, x: float) -> tuple[Callable[[float], float], bool]:
    """p(x) for a probability or a rate, and which of them it is."""
    family = case.family
    if isinstance(family, Geometric):
        return lambda p: float(stats.geom.pmf(x + 1.0, p)), True
    if isinstance(family, NegativeBinomial):
        return lambda p: float(stats.nbinom.pmf(x, family.dispersion, p)), True
    shape = getattr(family, "shape", 1.0)
    return lambda rate: float(stats.gamma.pdf(x, shape, scale=1.0 / rate)), False


@every_closed_case
def test_the_predictive_integrates_the_density_over_the_posterior(case: Case) -> None:
    X = case.rows()
    given = BetaPrior(1.5, 4.0) if case.counts else GammaPrior(1.5, 4.0)
    family = type(case.family)(**{**case.family.get_params(), "prior": given})
    learnt = learn(family, X, "bayes")
    each = getattr(family, "dispersion", getattr(family, "shape", 1.0))  # successes or events a row
    grid = np.array([0.0, 1.0, 4.0, 30.0]) if case.counts else np.array([0.01, 0.9, 4.0, 30.0])
    terms = learnt.explain(np.column_stack([grid, grid]))
    for k, j in ((0, 0), (1, 1), (2, 0)):
        n, total = np.bincount(CODES)[k], of_class(X, k)[:, j].sum()
        for i, x in enumerate(grid):
            of_cell, probability = likelihood_of_cell(case, float(x))
            if probability:
                posterior = stats.beta(1.5 + each * n, 4.0 + total)
            else:
                posterior = stats.gamma(1.5 + each * n, scale=1.0 / (4.0 + total))
            cuts = posterior.ppf([0.0, 1e-6, 0.1, 0.5, 0.9, 1 - 1e-6, 1 - 1e-15])
            chance = sum(
                quad(lambda p, f=of_cell, g=posterior: f(p) * g.pdf(p), low, high, epsabs=0.0, epsrel=1e-10)[0]
                for low, high in pairwise(cuts)
                if high > low
            )
            assert_allclose(terms[i, k, j], np.log(chance), rtol=1e-8, atol=1e-8)


def test_the_predictives_are_those_of_scipy() -> None:
    counts, numbers = GIVEN[0].rows(), GIVEN[3].rows()
    x = np.arange(40.0)
    both = np.column_stack([x, x])
    geometric, several = learn(Geometric(), counts, "bayes"), learn(NegativeBinomial(4.0), counts, "bayes")
    lomax, compound = learn(Exponential(), numbers, "bayes"), learn(Gamma(2.5), numbers, "bayes")
    for k, j in np.ndindex(3, 2):
        a, b = geometric.successes[k, j], geometric.failures[k, j]
        assert_log_close(geometric.explain(both)[:, k, j], betaln(a + 1.0, b + x) - betaln(a, b))
        a, b = several.successes[k, j], several.failures[k, j]
        choose = gammaln(x + 4.0) - gammaln(4.0) - gammaln(x + 1.0)
        assert_log_close(several.explain(both)[:, k, j], choose + betaln(a + 4.0, b + x) - betaln(a, b))
        law = stats.lomax(lomax.events[k, j], scale=lomax.exposure[k, j])
        assert_log_close(lomax.explain(both)[:, k, j], law.logpdf(x))
        law = stats.betaprime(2.5, compound.events[k, j], scale=compound.exposure[k, j])
        assert_log_close(compound.explain(both[1:])[:, k, j], law.logpdf(x[1:]))


@pytest.mark.parametrize(
    ("one", "other", "rows"),
    [(Geometric(), NegativeBinomial(1.0), GIVEN[0].rows()), (Exponential(), Gamma(1.0), GIVEN[3].rows())],
    ids=["geometric", "exponential"],
)
@every_estimation
def test_waiting_for_one_event_is_the_simplest_case(one: Any, other: Any, rows: Floats, estimation: str) -> None:
    assert_log_close(learn(one, rows, estimation).explain(rows), learn(other, rows, estimation).explain(rows), 1e-12)


@every_estimation
@every_case
def test_the_densities_add_up_to_one(case: Case, estimation: str) -> None:
    X = case.rows()
    learnt = learn(case.family, X, estimation)

    def density(x: Floats) -> Floats:
        return np.asarray(np.exp(learnt.explain(np.column_stack([x, x]))))

    if case.counts:
        total = density(np.arange(20000.0)).sum(axis=0)
    else:
        log_x = np.linspace(-60.0, 30.0, 4001)
        total = np.trapezoid(density(np.exp(log_x)) * np.exp(log_x)[:, None, None], log_x, axis=0)
    assert_allclose(total, np.ones((3, 2)), rtol=0, atol=1e-5 if case.counts else 1e-9)


# Samples.


@every_plugged_in_estimation
@every_case
def test_samples_recover_the_parameters(case: Case, estimation: str) -> None:
    learnt = learn(case.family, case.rows(), estimation)
    rng = np.random.default_rng(3)
    X = np.vstack([learnt.sample(k, DRAWS, rng) for k in range(3)])
    codes = np.repeat(np.arange(3), DRAWS)
    again = learn(case.family, X, "mle", codes)
    for name, values in parameters_of(learnt).items():
        assert_allclose(getattr(again, name), values, rtol=0.08)
    for k, j in np.ndindex(3, 2):
        law, drawn = case.law(learnt, k, j), X[codes == k, j]
        assert abs(drawn.mean() - law.mean()) < 5.0 * law.std() / np.sqrt(DRAWS)


@every_closed_case
def test_samples_of_a_predictive_follow_it(case: Case) -> None:
    X = case.rows()
    learnt = learn(case.family, X, "bayes")
    rng = np.random.default_rng(4)
    if case.counts:
        edges = np.arange(40.0)
        chance = np.exp(learnt.explain(np.column_stack([edges, edges]))).cumsum(axis=0)
    else:
        edges = np.array([0.5, 2.0, 8.0, 32.0])
        chance = np.empty((4, 3, 2))
        for k, j in np.ndindex(3, 2):
            shape = getattr(case.family, "shape", 1.0)
            law = stats.betaprime(shape, learnt.events[k, j], scale=learnt.exposure[k, j])
            chance[:, k, j] = law.cdf(edges)
    for k in range(3):
        drawn = learnt.sample(k, DRAWS, rng)
        share = (drawn <= edges[:, None, None]).mean(axis=1)
        error = np.sqrt(chance[:, k] * (1.0 - chance[:, k]) / DRAWS)
        assert np.all(np.abs(share - chance[:, k]) <= 5.0 * error + 1e-9)


@every_estimation
@pytest.mark.parametrize("case", [*GIVEN, Case(Gamma(1e-3), gamma_law, draw_numbers), *LEARNT], ids=str)
def test_samples_lie_inside_the_support_however_vague_the_prior(case: Case, estimation: str) -> None:
    vague = BetaPrior(1e-3, 1e-3) if case.counts else GammaPrior(1e-3)
    prior = None if estimation == "mle" or case in LEARNT else vague
    family = type(case.family)(**{**case.family.get_params(), "prior": prior})
    codes = CODES if estimation == "mle" else np.minimum(CODES, 1)  # class c has no rows
    for unit in (1.0,) if case.counts else (1e-290, 1.0, 1e138):
        learnt = learn(family, unit * case.rows(), estimation, codes)
        drawn = learnt.sample(2, 500, np.random.default_rng(5))
        assert np.all(np.isfinite(drawn))
        assert np.all(np.isfinite(learnt.log_density(drawn)))


# Missing cells.


@every_estimation
@every_case
def test_a_missing_value_drops_its_term_only(case: Case, estimation: str) -> None:
    X = case.rows()
    learnt = learn(case.family, X, estimation)
    incomplete = X.copy()
    incomplete[::2, 0] = incomplete[1::3, 1] = np.nan
    terms = np.where(np.isnan(incomplete)[:, None, :], 0.0, learnt.explain(X))
    assert_array_equal(learnt.explain(incomplete), terms)
    assert_log_close(learnt.log_density(incomplete), terms.sum(axis=2).T, 1e-13)
    assert_log_close(learnt.marginal(np.array([1])).log_density(X[:, 1:]), learnt.explain(X)[:, :, 1].T, 1e-13)


@every_estimation
@every_case
def test_a_column_is_learnt_from_the_rows_that_have_it(case: Case, estimation: str) -> None:
    X = case.rows()
    incomplete = X.copy()
    incomplete[::2, 0] = np.nan
    learnt = learn(case.family, incomplete, estimation)
    odd, full = learn(case.family, X[1::2], estimation, CODES[1::2]), learn(case.family, X, estimation)
    assert_log_close(learnt.explain(X)[:, :, 0], odd.explain(X)[:, :, 0], 1e-12)
    assert_log_close(learnt.explain(X)[:, :, 1], full.explain(X)[:, :, 1], 1e-12)


@every_case
def test_a_class_without_a_value_is_learnt_from_the_prior_alone(case: Case) -> None:
    X = case.rows()
    X[CODES == 2, 1] = np.nan
    for estimation in ("map", "bayes"):
        learnt = learn(case.family, X, estimation)
        assert np.all(np.isfinite(learnt.log_density(case.rows())))
    with pytest.raises(NotEstimableError, match="'second' has no observed value in class 'c'"):
        learn(case.family, X, "mle")


@every_case
def test_a_column_without_observed_values_contributes_zero(case: Case) -> None:
    X = case.rows()
    whole = X.copy()
    X[:, 1] = np.nan
    for estimation in ("map", "bayes"):
        learnt = learn(case.family, X, estimation)
        assert not learnt.explain(whole)[:, :, 1].any()


# Constant columns, and estimates that do not exist.


@every_estimation
@every_case
def test_a_constant_column_contributes_zero(case: Case, estimation: str) -> None:
    X = case.rows()
    for value in (0.0, 4.0) if case.counts else (0.1, 1.0, 1e-8, 7e6):
        flat = X.copy()
        flat[:, 1] = value
        learnt = learn(case.family, flat, estimation)
        assert_array_equal(learnt.informative, [True, False])
        assert not learnt.explain(X)[:, :, 1].any()
        assert_allclose(learnt.sample(0, 5, np.random.default_rng(0))[:, 1], value, rtol=1e-14)


@every_estimation
@pytest.mark.parametrize("case", GIVEN[3:] + LEARNT, ids=str)
def test_a_constant_column_contributes_zero_for_any_number_of_rows(case: Case, estimation: str) -> None:
    codes = np.arange(30000) % 3
    X = np.column_stack([np.random.default_rng(0).gamma(2.0, size=len(codes)), np.full(len(codes), 0.3)])
    assert_array_equal(learn(case.family, X, estimation, codes).informative, [True, False])


def test_counts_that_are_all_0_in_a_class_leave_it_no_others() -> None:
    X = GIVEN[0].rows()
    X[CODES == 1, 0] = 0.0
    for family in (Geometric(), NegativeBinomial(2.5)):
        learnt = learn(family, X, "mle")
        assert learnt.probability[1, 0] == 1.0
        rows = np.array([[0.0, 3.0], [1.0, 3.0]])
        assert_array_equal(learnt.explain(rows)[:, 1, 0], [0.0, -np.inf])
        assert_array_equal(np.isneginf(learnt.scores(rows)), [[False, False], [False, True], [False, False]])
        assert_array_equal(learnt.sample(1, 50, np.random.default_rng(0))[:, 0], 0.0)


def test_waiting_times_that_are_all_0_in_a_class_have_no_rate() -> None:
    X = GIVEN[3].rows()
    X[CODES == 1, 0] = 0.0
    with pytest.raises(NotEstimableError, match=r"'first' is 0 in all rows of class 'b'.*estimation='bayes'"):
        learn(Exponential(), X, "mle")
    for estimation in ("map", "bayes"):
        assert np.all(np.isfinite(learn(Exponential(), X, estimation).log_density(X)))
    X[:, 0] = 0.0
    assert_array_equal(learn(Exponential(), X, "mle").informative, [False, True])


@pytest.mark.parametrize("value", [1e-200, 0.1, 1.0, 1e5 / 3, 1e139])
def test_a_class_whose_values_are_all_equal_has_no_shape(value: float) -> None:
    X = LEARNT[0].rows() * value
    X[CODES == 1, 1] = value
    with pytest.raises(NotEstimableError, match=r"'second' is constant within class 'b'.*Give a shape"):
        learn(Gamma("own"), X, "mle")
    for estimation in ("map", "bayes"):
        assert np.all(np.isfinite(learn(Gamma("own"), X, estimation).log_density(X)))
    assert np.all(np.isfinite(learn(Gamma("shared"), X, "mle").log_density(X)))
    X[:, 1] = (value * np.array([1.0, 2.0, 3.0]))[CODES]
    with pytest.raises(NotEstimableError, match="'second' is constant within class 'a', 'b', 'c'"):
        learn(Gamma("shared"), X, "mle")
    assert np.all(np.isfinite(learn(Gamma(2.0), X, "mle").log_density(X)))


# Large numbers and other units.


def log_gamma(x: Decimal) -> Decimal:
    """Stirling's series at x + 100, less the factors between, to forty digits."""
    below = Decimal(1)
    for step in range(100):
        below *= x + step
    x += 100
    two_pi = Decimal("6.28318530717958647692528676655900576839433879875021")
    terms = [Fraction(1, 12), Fraction(-1, 360), Fraction(1, 1260), Fraction(-1, 1680), Fraction(1, 1188)]
    terms += [Fraction(-691, 360360), Fraction(1, 156), Fraction(-3617, 122400)]
    series = sum(Decimal(t.numerator) / t.denominator / x ** (2 * i + 1) for i, t in enumerate(terms))
    return (x - Decimal("0.5")) * x.ln() - x + two_pi.ln() / 2 + series - below.ln()


@pytest.mark.parametrize("dispersion", [0.3, 1.0, 2.0, 50.0])
@pytest.mark.parametrize("failures", [3.0, 1e6, 1e12])
def test_counts_of_any_size_have_the_digits_of_long_arithmetic(dispersion: float, failures: float) -> None:
    counts = [0.0, 1.0, 7.0, 1e3, 123_456.0, 1e9, 1e12, 1e15, 1e18]
    learnt = NegativeBinomialConditionals(np.array([True]), np.zeros(1), dispersion, np.array([[failures]]))
    with localcontext(prec=60):
        r, odds = Decimal(dispersion), Decimal(failures)
        expected = []
        for x in map(Decimal, counts):
            ways = log_gamma(x + r) - log_gamma(r) - log_gamma(x + 1)
            expected.append(float(ways - r * (1 + odds).ln() - x * (1 + 1 / odds).ln()))
    rows = np.array(counts)[:, None]
    for x, wanted in zip(rows, expected, strict=True):
        assert_log_close(learnt.log_density(x[None])[0, 0], wanted, 1e-13)
    assert_log_close(learnt.natural_log_density(rows)[0], expected, 1e-13)
    assert_log_close(learnt.explain(rows)[:, 0, 0], expected, 1e-13)


@every_estimation
@pytest.mark.parametrize("dispersion", [0.5, 1.0, 40.0])
def test_counts_in_the_trillions_stay_exact(dispersion: float, estimation: str) -> None:
    """Far out, failures before successes are gamma, in any unit: Gamma(r, p), and for a predictive a beta prime."""
    X = np.floor(1e12 * GIVEN[3].rows()) + 1.0
    for family in [NegativeBinomial(dispersion)] + [Geometric()] * (dispersion == 1.0):
        learnt = learn(family, X, estimation)
        terms = learnt.explain(X)
        for k, j in np.ndindex(3, 2):
            if estimation == "bayes":
                law = stats.betaprime(dispersion, learnt.successes[k, j], scale=learnt.failures[k, j])
            else:
                law = stats.gamma(dispersion, scale=learnt.failures[k, j])
            assert_allclose(terms[:, k, j], law.logpdf(X[:, j]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rows", [1e2, 1e6, 1e12])
@pytest.mark.parametrize("mean", [1e-6, 3.0, 1e6, 1e12])
def test_predictive_chances_of_counts_that_follow_each_other_have_a_rational_ratio(rows: float, mean: float) -> None:
    a, b = rows + 0.5, rows * mean + 0.5
    X = np.floor(mean * np.array([[0.5, 1.0], [1.0, 2.0], [4.0, 1.5]])) + 1.0
    for family, r in ((Geometric(), 1.0), (NegativeBinomial(4.0), 4.0)):
        learnt = learn(family, GIVEN[0].rows(), "bayes")
        at = replace(learnt, successes=np.full((3, 2), a * r), failures=np.full((3, 2), b * r))
        ratio = np.log((X + r) / (X + 1.0) * ((b * r + X) / (a * r + b * r + r + X)))
        step = at.explain(X + 1.0) - at.explain(X)
        assert_allclose(step, np.broadcast_to(ratio[:, None, :], step.shape), rtol=1e-10, atol=1e-10)


@every_estimation
@pytest.mark.parametrize("unit", [1e-150, 1e-9, 1e9, 1e138])
@pytest.mark.parametrize("case", GIVEN[3:] + LEARNT, ids=str)
def test_another_unit_moves_all_log_densities_alike(case: Case, unit: float, estimation: str) -> None:
    X = case.rows()
    here, there = learn(case.family, X, estimation), learn(case.family, X * unit, estimation)
    moved = there.log_density(X * unit) + 2.0 * np.log(unit)
    assert_allclose(moved, here.log_density(X), rtol=1e-10, atol=1e-10)


def test_a_narrow_gamma_column_keeps_its_digits() -> None:
    """A shape of 1e10 is a normal distribution, but for terms of the size of its skewness."""
    learnt = learn(Gamma(1e10), 5.0 + 1e-5 * GIVEN[3].rows(), "mle")
    mean = 1e10 / learnt.rate[0, 0]
    z = np.array([-2.0, 0.0, 0.5, 3.0])
    x = mean * (1.0 + 1e-5 * z)
    expected = stats.norm.logpdf(z) - np.log(mean * 1e-5)
    assert_allclose(learnt.explain(np.column_stack([x, x]))[:, 0, 0], expected, rtol=0, atol=2e-4)
    assert_allclose(learnt.explain(np.full((1, 2), mean))[0, 0, 0], expected[1], rtol=0, atol=1e-10)


# What is refused.


@pytest.mark.parametrize(
    ("family", "value", "words"),
    [
        (Geometric(), -1.0, "is not a count"),
        (Geometric(), 2.5, "is not a count"),
        (NegativeBinomial(), np.inf, "is not a count"),
        (Exponential(), -0.5, "is not a finite number >= 0"),
        (Exponential(), np.inf, "is not a finite number >= 0"),
        (Gamma(), 0.0, "is not a finite number > 0"),
        (Gamma(2.0), -1.0, "is not a finite number > 0"),
    ],
    ids=repr,
)
def test_a_cell_outside_the_support_is_named(family: Any, value: float, words: str) -> None:
    X = GIVEN[0].rows() + 1.0
    learnt = learn(family, X, "map")
    X[7, 1] = value
    for use in (lambda rows: learn(family, rows, "map"), learnt.log_density, learnt.scores):
        with pytest.raises(CellError, match=rf"Column 1, row 7: {value} {words}.*{type(family).__name__}") as caught:
            use(X)
        assert (caught.value.row, caught.value.column) == (7, 1)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan, "much", None, 1j])
def test_a_dispersion_or_shape_that_is_no_positive_number_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"dispersion=.* must be a positive finite number"):
        NegativeBinomial(value).check(Estimation.MLE)
    with pytest.raises(InputError, match=r"shape=.* must be a positive finite number, or one of 'own', 'shared'"):
        Gamma(value).check(Estimation.MLE)


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        (Geometric(GammaPrior()), "BetaPrior"),
        (NegativeBinomial(2.0, PseudoRows()), "BetaPrior"),
        (Exponential(BetaPrior()), "GammaPrior"),
        (Gamma(2.0, PseudoRows()), "GammaPrior"),
        (Gamma("own", GammaPrior()), "PseudoRows"),
        (Gamma("shared", GammaPrior()), "PseudoRows"),
    ],
    ids=repr,
)
def test_a_prior_of_another_kind_is_refused(family: Any, kind: str) -> None:
    with pytest.raises(InputError, match=f"is not a {kind}"):
        family.check("bayes")


@pytest.mark.parametrize(
    "family",
    [
        Geometric(BetaPrior()),
        NegativeBinomial(2.0, BetaPrior()),
        Exponential(GammaPrior()),
        Gamma(2, GammaPrior()),
        Gamma("shared", PseudoRows()),
    ],
    ids=repr,
)
def test_a_prior_belongs_to_estimations_that_have_one(family: Any) -> None:
    for estimation in ("map", "bayes"):
        family.check(estimation)
    with pytest.raises(InputError, match="maximum likelihood has no prior"):
        family.check(Estimation.MLE)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("family", [Exponential(), Gamma(2.0), Gamma("own")], ids=str)
def test_rows_whose_removal_leaves_impossible_sums_are_not_forgotten(family: Any, unit: float) -> None:
    """After 1.5 is removed from {1, 1.1}, one value of 0.6 would remain: neither its root nor its logarithm fits."""
    X = unit * np.array([[1.0, 1.0, 1.0], [1.1, 2.0, 3.0], [4.0, 5.0, 7.0], [3.0, 2.0, 9.0]])
    model = NaiveBayes(family, estimation="bayes").fit(X, [0, 0, 1, 1])
    with pytest.raises(InputError, match="no values of column 'x0' have the statistics that would remain"):
        model.forget(unit * np.array([[1.5, 1.0, 1.0]]), [0])
    model.forget(X[:1], [0])
    assert_allclose(model.log_joint(X), NaiveBayes(family, estimation="bayes").fit(X[1:], [0, 1, 1]).log_joint(X))


@every_case
def test_a_column_without_values_after_a_removal_is_that_of_a_fit_without_them(case: Case) -> None:
    X, y = case.rows()[:26] + (0.0 if case.counts else 0.5), CLASSES[CODES[:26]]
    X[:13, 1] = np.nan  # row 13 has the only value of class "a"
    model = NaiveBayes(case.family, estimation="map").fit(X, y).forget(X[13:14], y[13:14])
    rest = np.arange(26) != 13
    other = NaiveBayes(case.family, estimation="map").fit(X[rest], y[rest])
    assert_log_close(model.log_joint(X), other.log_joint(X))


def test_families_tell_their_options() -> None:
    assert Geometric().describe() == "Geometric"
    assert NegativeBinomial(2.5).describe() == "NegativeBinomial, dispersion 2.5"
    assert Exponential().describe() == "Exponential"
    assert Gamma().describe() == "Gamma, one shape per class"
    assert Gamma("shared").describe() == "Gamma, one shape for all classes"
    assert Gamma(2).describe() == "Gamma, shape 2"
