"""Families for fractions, angles and positive numbers: beta, von Mises and log-normal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import digamma

from likely.errors import CellError, InputError, NotEstimableError
from likely.families.base import Columns, Conditionals, ExponentialConditionals, Family
from likely.families.beta import Beta, BetaConditionals, solve_beta
from likely.families.estimation import Estimation
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.prior import NormalInverseWishart
from likely.families.gaussian.student import IndependentStudents
from likely.families.log_normal import LogNormal, LogNormalConditionals, LogTransformed
from likely.families.priors import GammaPrior, PseudoRows
from likely.families.von_mises import VonMises, VonMisesConditionals
from tests.laws.registry import assert_log_equal

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

NAMES = ("first", "second")
LABELS = np.array(["a", "b", "c"])
SIZES = (14, 9, 22)


def fit(
    family: Family,
    X: Floats,
    codes: Codes,
    estimation: str = "mle",
    weights: Floats | None = None,
    labels: NDArray[Any] = LABELS,
) -> Any:
    """Conditionals of columns that are named by NAMES, or numbered where there are more."""
    names = NAMES if X.shape[1] == len(NAMES) else tuple(f"column {j}" for j in range(X.shape[1]))
    family.check(Estimation(estimation))
    builder = family._accumulator(labels, Columns(names))
    builder.add(X, codes, weights)
    return family.estimate(builder.finish(), Estimation(estimation), names)


def fractions(rng: np.random.Generator, n: int, k: int) -> Floats:
    return np.column_stack([rng.beta(0.6 + k, 2.0, n), rng.beta(30.0, 3.0 + 5.0 * k, n)])


def hours(rng: np.random.Generator, n: int, k: int) -> Floats:
    angles = np.column_stack([rng.vonmises(k - 1.0, 0.7, n), rng.vonmises(2.0, 5.0 + 20.0 * k, n)])
    return np.mod(angles * 24.0 / (2.0 * np.pi), 24.0)


def sizes(rng: np.random.Generator, n: int, k: int) -> Floats:
    return np.column_stack([rng.lognormal(k, 1.5, n), rng.lognormal(-6.0, 0.2 + 0.1 * k, n)])


class Case(NamedTuple):
    family: Family
    drawn: Callable[[np.random.Generator, int, int], Floats]
    ends: tuple[float, float]  # of the support

    def table(self, seed: int = 0, counts: Sequence[int] = SIZES) -> tuple[Floats, Codes]:
        rng = np.random.default_rng(seed)
        parts = [self.drawn(rng, n, k) for k, n in enumerate(counts)]
        order = rng.permutation(sum(counts))
        return np.vstack(parts)[order], np.repeat(np.arange(len(counts)), counts)[order]


CASES = {
    "beta": Case(Beta(), fractions, (0.0, 1.0)),
    "von Mises": Case(VonMises(period=24), hours, (0.0, 24.0)),
    "log-normal": Case(LogNormal(), sizes, (0.0, np.inf)),
    "log-normal, shared": Case(LogNormal(shared=True), sizes, (0.0, np.inf)),
    "log-normal, grouped": Case(LogNormal(shared=[["a", "c"]]), sizes, (0.0, np.inf)),
}
PSEUDO = ("beta", "von Mises")  # families whose prior is pseudo-rows
every_case = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
every_pseudo_case = pytest.mark.parametrize("case", [CASES[name] for name in PSEUDO], ids=PSEUDO)
every_estimation = pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])


def laws(fitted: Any, k: int) -> list[Any]:
    """SciPy's distributions of the columns of a class, angles in radians and positive numbers as logarithms."""
    if isinstance(fitted, BetaConditionals):
        return [stats.beta(*pair) for pair in zip(fitted.alpha[k], fitted.beta[k], strict=True)]
    if isinstance(fitted, VonMisesConditionals):
        means = fitted.direction[k] * (2.0 * np.pi / fitted.period)
        return [stats.vonmises(kappa, mean) for kappa, mean in zip(fitted.concentration[k], means, strict=True)]
    assert isinstance(fitted, LogTransformed)
    means, standard_deviations = fitted.inner.class_means()[k], np.sqrt(np.diag(fitted.inner.class_covariance(k)))
    if isinstance(fitted, LogNormalConditionals):
        return [stats.norm(*pair) for pair in zip(means, standard_deviations, strict=True)]
    assert isinstance(fitted.inner, IndependentStudents)
    degrees = np.broadcast_to(fitted.inner.degrees[k], means.shape)
    return [stats.t(*three) for three in zip(degrees, means, standard_deviations, strict=True)]


def scipy_terms(fitted: Any, X: Floats, k: int) -> Floats:
    """What each cell adds to the log-density of a class, by SciPy."""
    if isinstance(fitted, VonMisesConditionals):
        angles = X * (2.0 * np.pi / fitted.period)
        terms = [law.logpdf(a) for law, a in zip(laws(fitted, k), angles.T, strict=True)]
        return np.asarray(np.column_stack(terms) + np.log(2.0 * np.pi / fitted.period))
    if isinstance(fitted, LogTransformed):
        terms = [law.logpdf(np.log(x)) - np.log(x) for law, x in zip(laws(fitted, k), X.T, strict=True)]
        return np.column_stack(terms)
    return np.column_stack([law.logpdf(x) for law, x in zip(laws(fitted, k), X.T, strict=True)])


# Densities.


@every_estimation
@every_case
def test_densities_and_explanations_are_those_of_scipy(case: Case, estimation: str) -> None:
    X, codes = case.table()
    fitted = fit(case.family, X, codes, estimation)
    density, evidence = fitted.log_density(X), fitted.explain(X)
    assert (fitted.n_classes, fitted.dimension) == (3, 2)
    for k in range(3):
        expected = scipy_terms(fitted, X, k)
        assert_log_equal(evidence[:, k], expected)
        assert_log_equal(density[k], expected.sum(axis=1))


@every_estimation
@every_case
def test_densities_integrate_to_one(case: Case, estimation: str) -> None:
    X, codes = case.table()
    fitted = fit(case.family, X, codes, estimation)
    for j in range(2):
        column = fitted.marginal(np.array([j]))
        middle = np.quantile(X[:, j], [0.1, 0.5, 0.9])
        for k in range(3):
            assert integral(column, k, case.ends, middle) == pytest.approx(1.0, abs=1e-6)


def integral(column: Conditionals, k: int, ends: tuple[float, float], middle: Floats) -> float:
    """Of the density of a class; from 0 to infinity on the scale of the logarithms."""

    def density(x: float) -> float:
        return float(np.exp(column.log_density(np.array([[x]]))[k, 0]))

    if ends[1] < np.inf:
        return float(quad(density, *ends, points=middle, limit=400)[0])
    return float(quad(lambda z: density(np.exp(z)) * np.exp(z), -60, 60, points=np.log(middle), limit=400)[0])


@every_estimation
@every_case
def test_scores_differ_from_densities_by_a_term_that_all_classes_share(case: Case, estimation: str) -> None:
    X, codes = case.table()
    X[3, 0] = X[5, 1] = np.nan
    fitted = fit(case.family, X, codes, estimation)
    shared = fitted.log_density(X) - fitted.scores(X)
    assert_allclose(shared, np.broadcast_to(shared[0], shared.shape), rtol=0, atol=1e-9)


@pytest.mark.parametrize("estimation", ["mle", "map"])
@every_case
def test_the_natural_form_is_the_density(case: Case, estimation: str) -> None:
    X, codes = case.table()
    X = np.insert(X, 1, 0.25, axis=1)
    fitted = fit(case.family, X, codes, estimation)
    assert isinstance(fitted, ExponentialConditionals)
    assert_log_equal(fitted.natural_log_density(X), fitted.log_density(X))


def test_the_log_normal_predictive_of_a_flat_prior_is_the_textbook_log_student_t() -> None:
    X, codes = CASES["log-normal"].table()
    fitted = fit(LogNormal(prior=NormalInverseWishart.reference()), X, codes, "bayes")
    for k in range(3):
        logs = np.log(X[codes == k])
        n, scale = len(logs), logs.std(axis=0, ddof=1) * np.sqrt(1.0 + 1.0 / len(logs))
        terms = stats.t.logpdf(np.log(X), n - 1, logs.mean(axis=0), scale) - np.log(X)
        assert_log_equal(fitted.log_density(X)[k], terms.sum(axis=1))


def test_the_log_normal_of_maximum_likelihood_has_the_moments_of_the_logarithms() -> None:
    X, codes = CASES["log-normal"].table()
    density = fit(LogNormal(), X, codes).log_density(X)
    for k in range(3):
        logs = np.log(X[codes == k])
        terms = stats.lognorm.logpdf(X, logs.std(axis=0), scale=np.exp(logs.mean(axis=0)))
        assert_log_equal(density[k], terms.sum(axis=1))


@every_estimation
@pytest.mark.parametrize("name", ["log-normal", "log-normal, shared", "log-normal, grouped"])
def test_the_log_normal_is_the_gaussian_of_the_logarithms(name: str, estimation: str) -> None:
    case = CASES[name]
    X, codes = case.table()
    assert isinstance(case.family, LogNormal)
    gaussian = fit(Gaussian("diagonal", shared=case.family.shared), np.log(X), codes, estimation)
    fitted = fit(case.family, X, codes, estimation)
    assert_array_equal(fitted.scores(X), gaussian.scores(np.log(X)))
    assert_log_equal(fitted.log_density(X), gaussian.log_density(np.log(X)) - np.log(X).sum(axis=1))
    assert fitted.quadratic() is None
    assert fitted.width > gaussian.width


# Estimates.


def parameters(fitted: Any) -> Floats:
    """Two numbers for each class and column, (2, classes, d)."""
    if isinstance(fitted, BetaConditionals):
        return np.array([fitted.alpha, fitted.beta])
    if isinstance(fitted, VonMisesConditionals):
        return np.array([fitted.direction, fitted.concentration])
    assert isinstance(fitted, LogTransformed)
    standard_deviations = [np.sqrt(np.diag(fitted.inner.class_covariance(k))) for k in range(fitted.n_classes)]
    return np.array([fitted.inner.class_means(), standard_deviations])


def log_likelihood(kind: str, x: Floats, first: float, second: float) -> float:
    """Of one column of a class, by SciPy."""
    if kind == "beta":
        return float(stats.beta.logpdf(x, first, second).sum())
    if kind == "von Mises":
        return float(stats.vonmises.logpdf(x * (np.pi / 12.0), second, first * (np.pi / 12.0)).sum())
    return float(stats.lognorm.logpdf(x, second, scale=np.exp(first)).sum())


@pytest.mark.parametrize("kind", ["beta", "von Mises", "log-normal"])
def test_maximum_likelihood_has_no_gradient_and_beats_its_neighbours(kind: str) -> None:
    X, codes = CASES[kind].table()
    best = parameters(fit(CASES[kind].family, X, codes))
    for k in range(3):
        for j in range(2):
            x, (first, second) = X[codes == k, j], best[:, k, j]

            def at(p: float, q: float, x: Floats = x) -> float:
                return log_likelihood(kind, x, p, q)

            highest, step = at(first, second), 1e-4
            for p, q in [(1.0, 0.0), (0.0, 1.0), (0.8, 0.6), (0.6, -0.8)]:
                ahead, behind = (at(first + sign * step * p, second * (1.0 + sign * step * q)) for sign in (1, -1))
                bend = (2.0 * highest - ahead - behind) / step**2
                assert bend > 0.0
                assert abs(ahead - behind) / (2.0 * step) < 1e-4 * (1.0 + bend)
                for size in (0.02, 0.2):
                    for sign in (1, -1):
                        assert at(first + sign * size * p, second * (1.0 + sign * size * q)) < highest


@every_case
def test_maximum_likelihood_gives_samples_the_means_of_the_statistics(case: Case) -> None:
    """The equations of the exponential family, by derivatives of A: means of u(x) under the density."""
    X, codes = case.table()
    fitted = fit(case.family, X, codes)
    if isinstance(fitted, BetaConditionals):
        both = digamma(fitted.alpha + fitted.beta)
        expected = np.array([digamma(fitted.alpha) - both, digamma(fitted.beta) - both])
        observed = np.array([np.log(X), np.log1p(-X)])
    elif isinstance(fitted, VonMisesConditionals):
        expected = np.array([[[law.expect(f) for law in laws(fitted, k)] for k in range(3)] for f in (np.cos, np.sin)])
        observed = np.array([np.cos(X * np.pi / 12.0), np.sin(X * np.pi / 12.0)])
    else:
        expected, observed = parameters(fitted)[:1], np.log(X)[None]
    for k in range(3):
        assert_allclose(expected[:, k], observed[:, codes == k].mean(axis=1), rtol=0, atol=1e-7)


@every_pseudo_case
def test_the_posterior_mode_counts_pseudo_rows_like_rows(case: Case) -> None:
    X, codes = case.table()
    family = type(case.family)(**{**case.family.get_params(), "prior": PseudoRows(weight=2.5)})
    everywhere = np.vstack([X] * 4)
    everyone = np.concatenate([codes, *(np.full(len(X), k) for k in range(3))])
    weights = np.concatenate([np.ones(len(X)), np.full(3 * len(X), 2.5 / len(X))])
    expected = fit(case.family, everywhere, everyone, "mle", weights)
    assert_allclose(parameters(fit(family, X, codes, "map")), parameters(expected), rtol=1e-11)


@every_pseudo_case
def test_full_bayes_plugs_in_the_posterior_mode_where_no_predictive_is_closed(case: Case) -> None:
    X, codes = case.table()
    mode, bayes = fit(case.family, X, codes, "map"), fit(case.family, X, codes, "bayes")
    assert_array_equal(bayes.log_density(X), mode.log_density(X))


@every_estimation
@every_case
def test_weights_equal_repeats(case: Case, estimation: str) -> None:
    X, codes = case.table()
    X[4, 1] = np.nan
    counts = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = fit(case.family, X, codes, estimation, counts.astype(np.float64))
    repeated = fit(case.family, np.repeat(X, counts, axis=0), np.repeat(codes, counts), estimation)
    assert_log_equal(weighted.log_density(X), repeated.log_density(X))


@every_estimation
@every_case
def test_rows_in_blocks_equal_rows_at_once(case: Case, estimation: str) -> None:
    X, codes = case.table()
    X[4, 1] = np.nan
    builders = [case.family._accumulator(LABELS, Columns(NAMES)) for _ in range(2)]
    for i, part in enumerate(np.array_split(np.arange(len(X)), 5)):
        builders[i % 2].add(X[part], codes[part])
        assert builders[i % 2].block_rows > 0
    together = case.family.estimate(builders[0].finish() + builders[1].finish(), Estimation(estimation), NAMES)
    assert_log_equal(together.log_density(X), fit(case.family, X, codes, estimation).log_density(X))


# Samples.


@every_estimation
@every_case
def test_samples_follow_their_density(case: Case, estimation: str) -> None:
    X, codes = case.table()
    fitted = fit(case.family, X, codes, estimation)
    for k in range(3):
        drawn = fitted.sample(k, 3000, np.random.default_rng(k))
        assert drawn.shape == (3000, 2)
        assert np.all((drawn >= case.ends[0]) & (drawn < case.ends[1]))
        for law, x in zip(laws(fitted, k), drawn.T, strict=True):
            if isinstance(fitted, VonMisesConditionals):
                turned = np.mod(x * (np.pi / 12.0) - law.args[1] + np.pi, 2.0 * np.pi) - np.pi
                assert stats.kstest(turned, stats.vonmises(law.args[0]).cdf).pvalue > 1e-4
            else:
                values = np.log(x) if isinstance(fitted, LogTransformed) else x
                assert stats.kstest(values, law.cdf).pvalue > 1e-4


@every_case
def test_samples_recover_the_parameters(case: Case) -> None:
    X, codes = case.table()
    truth = fit(case.family, X, codes)
    again = np.vstack([truth.sample(k, 20000, np.random.default_rng(k)) for k in range(3)])
    fitted = fit(case.family, again, np.repeat(np.arange(3), 20000))
    assert_allclose(parameters(fitted), parameters(truth), rtol=0.06, atol=0.15)


def test_samples_of_extreme_parameters_stay_inside_the_support() -> None:
    rng = np.random.default_rng(0)
    one = np.ones((1, 1))
    fractions = BetaConditionals(np.ones(1, bool), one[0] / 2, 1e-4 * one, 1e-4 * one).sample(0, 200, rng)
    assert np.all((fractions > 0.0) & (fractions < 1.0))
    for kappa in (0.0, 1e-9, 1e7):
        angles = VonMisesConditionals(np.ones(1, bool), one[0], 0.0 * one, kappa * one, 24.0).sample(0, 200, rng)
        assert np.all((angles >= 0.0) & (angles < 24.0))
    heavy = fit(LogNormal(), np.exp([[-300.0], [300.0]]), np.zeros(2, int), "bayes", labels=LABELS[:1])
    numbers = heavy.sample(0, 2000, rng)
    assert np.all((numbers > 0.0) & np.isfinite(numbers))


# Missing cells.


@every_estimation
@every_case
def test_a_missing_cell_leaves_its_term_out(case: Case, estimation: str) -> None:
    X, codes = case.table()
    fitted = fit(case.family, X, codes, estimation)
    evidence, incomplete = fitted.explain(X), X.copy()
    incomplete[::2, 0] = incomplete[1::4, 1] = np.nan
    kept = np.where(np.isnan(incomplete)[:, None], 0.0, evidence)
    assert_array_equal(fitted.explain(incomplete), kept)
    rounding = 1e-13 * (1.0 + np.abs(kept).sum(axis=2).T)  # of the terms, whose sum may be near 0
    assert np.all(np.abs(fitted.log_density(incomplete) - kept.sum(axis=2).T) <= rounding)
    part = fitted.marginal(np.array([1]))
    assert_log_equal(part.log_density(X[:, 1:]), evidence[:, :, 1].T, 1e-13)


@every_estimation
@every_case
def test_missing_cells_leave_a_column_its_other_rows(case: Case, estimation: str) -> None:
    X, codes = case.table()
    incomplete, mean_rows = X.copy(), NormalInverseWishart(mean_rows=0.01)
    incomplete[::3, 0] = np.nan
    seen = ~np.isnan(incomplete[:, 0])
    family = case.family
    if isinstance(family, LogNormal) and estimation != "mle":  # by default the rows depend on all columns
        family = LogNormal(family.shared, prior=mean_rows)
    together = fit(family, incomplete, codes, estimation).explain(X)
    first = fit(family, X[seen, :1], codes[seen], estimation).explain(X[:, :1])
    second = fit(family, X[:, 1:], codes, estimation).explain(X[:, 1:])
    assert_log_equal(together, np.concatenate([first, second], axis=2))


# Constant columns, and classes without rows.


@every_estimation
@every_case
def test_a_constant_column_is_ignored(case: Case, estimation: str) -> None:
    X, codes = case.table()
    wide = np.insert(X, 1, 0.1, axis=1)
    fitted, without = fit(case.family, wide, codes, estimation), fit(case.family, X, codes, estimation)
    other = wide.copy()
    other[:, 1] = 0.9
    other[0, 1] = np.nan
    for rows in (wide, other):
        assert_log_equal(fitted.log_density(rows), without.log_density(X), 1e-12)
        assert not fitted.explain(rows)[:, :, 1].any()
    assert_array_equal(fitted.ignored_columns(), [1])
    assert fitted.notes(["x", "y", "z"]) == ["constant columns, ignored: 'y'"]
    assert_allclose(fitted.sample(0, 5, np.random.default_rng(0))[:, 1], 0.1, rtol=1e-14)


@pytest.mark.parametrize("weight", [1.0, 0.37])
@pytest.mark.parametrize("value", [0.1, 1e-5, 0.9371])
@every_case
def test_rounding_in_sums_of_many_rows_is_no_variance(case: Case, value: float, weight: float) -> None:
    codes = np.arange(60_000) % 3
    fitted = fit(case.family, np.full((60_000, 1), value), codes, "mle", np.full(60_000, weight))
    assert_array_equal(fitted.ignored_columns(), [0])
    X = np.where(codes == 1, 0.3, value)[:, None]  # one value in each class
    with pytest.raises(NotEstimableError, match="column 0"):
        fit(case.family, X, codes, "mle", np.full(60_000, weight))
    assert np.all(np.isfinite(fit(case.family, X, codes, "map", np.full(60_000, weight)).log_density(X[:9])))


@every_case
def test_a_column_without_observed_values_is_ignored(case: Case) -> None:
    X, codes = case.table()
    X[:, 1] = np.nan
    for estimation in ("map", "bayes"):
        fitted = fit(case.family, X, codes, estimation)
        assert_array_equal(fitted.ignored_columns(), [1])
        assert np.all(np.isfinite(fitted.log_density(X)))
    with pytest.raises(NotEstimableError, match="Column 'second' has no observed value in class 'a'"):
        fit(case.family, X, codes)


@every_pseudo_case
def test_a_class_with_one_value_has_no_maximum_but_a_posterior(case: Case) -> None:
    X, codes = case.table()
    X[codes == 1, 1] = 0.5
    with pytest.raises(NotEstimableError, match=r"Column 'second' has only one .* in class 'b'.*estimation='bayes'"):
        fit(case.family, X, codes)
    for estimation in ("map", "bayes"):
        fitted = fit(case.family, X, codes, estimation)
        assert np.all(np.isfinite(fitted.log_density(X)))
        assert fitted.log_density(np.array([[np.nan, 0.5]])).argmax() == 1


def test_a_class_with_one_positive_number_has_no_maximum_but_a_posterior() -> None:
    X, codes = CASES["log-normal"].table()
    X[codes == 1, 1] = 0.5
    with pytest.raises(NotEstimableError, match=r"Column 'second' does not vary within class 'b'.*estimation='bayes'"):
        fit(LogNormal(), X, codes)
    for family, estimation in [(LogNormal(shared=True), "mle"), (LogNormal(), "map"), (LogNormal(), "bayes")]:
        assert np.all(np.isfinite(fit(family, X, codes, estimation).log_density(X)))


@every_case
def test_a_class_without_rows_is_learnt_from_the_prior(case: Case) -> None:
    X, codes = case.table()
    kept = codes != 1
    for estimation in ("map", "bayes"):
        fitted = fit(case.family, X[kept], codes[kept], estimation)
        assert np.all(np.isfinite(fitted.log_density(X)))
        assert np.all(np.isfinite(fitted.sample(1, 20, np.random.default_rng(0))))
    with pytest.raises(NotEstimableError, match="'b'"):
        fit(case.family, X[kept], codes[kept])


# What cannot be used.


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("beta", [0.0, 1.0, -0.2, 1.5, np.inf], "is not a number between 0 and 1"),
        ("von Mises", [np.inf, -np.inf], "is not a finite angle"),
        ("log-normal", [0.0, -3.0, np.inf], "is not a finite number > 0"),
    ],
)
def test_cells_outside_the_support_are_named(name: str, values: list[float], words: str) -> None:
    case = CASES[name]
    X, codes = case.table()
    fitted = fit(case.family, X, codes)
    for value in values:
        wrong = X.copy()
        wrong[2, 0], wrong[7, 1] = np.nan, value
        with pytest.raises(CellError, match=words) as learning:
            fit(case.family, wrong, codes)
        with pytest.raises(CellError, match=words) as asking:
            fitted.log_density(wrong)
        for caught in (learning, asking):
            assert (caught.value.row, caught.value.column) == (7, 1)
        weights = np.ones(len(X))
        weights[7] = 0.0
        fit(case.family, wrong, codes, "mle", weights)  # a row of weight 0 is absent


@pytest.mark.parametrize("period", [0.0, -1.0, np.nan, np.inf, "24", True, None])
def test_a_period_must_be_a_positive_number(period: Any) -> None:
    with pytest.raises(InputError, match="period="):
        VonMises(period=period).check(Estimation.MLE)


@pytest.mark.parametrize("family", [Beta, VonMises, LogNormal])
def test_priors_must_fit_the_family_and_the_estimation(family: Any) -> None:
    with pytest.raises(InputError, match="prior="):
        family(prior=GammaPrior()).check("map")
    fitting = NormalInverseWishart() if family is LogNormal else PseudoRows()
    family(prior=fitting).check("map")
    with pytest.raises(InputError, match="prior belongs to"):
        family(prior=fitting).check(Estimation.MLE)


def test_families_describe_themselves() -> None:
    assert Beta().describe() == "Beta"
    assert VonMises(period=24).describe() == "VonMises, period 24"
    assert LogNormal().describe() == "LogNormal: log x is Gaussian, diagonal covariance, per class"


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.7), (1.0, 1.0), (3.0, 5.0), (40.0, 2.5), (17.0, 300.0)])
def test_the_beta_of_maximum_likelihood_has_the_expected_logarithms_of_the_rows(alpha: float, beta: float) -> None:
    """E log x = ψ(α) − ψ(α + β), and E log(1 − x) = ψ(β) − ψ(α + β)."""
    means = [np.array([digamma(one) - digamma(alpha + beta)]) for one in (alpha, beta)]
    found = solve_beta(*means)
    assert_allclose(np.concatenate(found), [alpha, beta], rtol=1e-11)


# Extremes.


@pytest.mark.parametrize(
    ("x", "alpha", "beta", "expected"),
    [
        (0.3, 3e8, 7e8, 10.223018259087375),
        (0.30001, 3e8, 7e8, 9.984906997362442),
        (2.5e-12, 2.5, 1e12, 26.22077434326811),
        (1e-300, 0.5, 2.0, 345.10008187665505),
        (1e-300, 200.0, 100.0, -137272.19585946956),
        (5e-324, 200.0, 100.0, -147951.4401200799),
        (1.0 - 2.0**-53, 0.01, 0.02, 30.991751207585573),
        (0.5, 1e-3, 1e-3, -6.215992750249577),
        (0.75, 1e12, 1e12, -287682072437.55695),
    ],
)
def test_beta_densities_of_extremes_have_all_their_digits(x: float, alpha: float, beta: float, expected: float) -> None:
    """Expected: mpmath with 60 digits."""
    one = np.ones((1, 1))
    fitted = BetaConditionals(np.ones(1, bool), one[0] / 2.0, alpha * one, beta * one)
    assert_log_equal(fitted.log_density(x * one), expected * one, 1e-12)


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**-40, 2.0**-52])
def test_fractions_near_zero_and_one_are_fitted_to_their_digits(unit: float) -> None:
    """Near 0 a beta is a gamma, whose shape solves log k − ψ(k) = log mean − mean log; near 1 it is the mirror."""
    counts = np.array([3.0, 5.0, 4.0, 9.0, 1.0, 7.0, 2.0, 6.0])[:, None]
    codes, labels = np.zeros(8, int), LABELS[:1]
    near_zero = fit(Beta(), counts * unit, codes, labels=labels)
    near_one = fit(Beta(), 1.0 - counts * unit, codes, labels=labels)
    assert_allclose(near_one.alpha, near_zero.beta, rtol=1e-12)
    assert_allclose(near_one.beta, near_zero.alpha, rtol=1e-12)
    target = np.log(counts.mean()) - np.log(counts).mean()
    shape = brentq(lambda k: np.log(k) - digamma(k) - target, 0.1, 100.0, xtol=1e-13)
    assert_allclose(near_zero.alpha, shape, rtol=10.0 * unit + 1e-12)
    assert_allclose(near_zero.beta, shape / (counts.mean() * unit), rtol=20.0 * unit + 1e-12)


@pytest.mark.parametrize(
    "values",
    [
        [1e-300, 1.0 - 2.0**-53],
        [5e-324, 0.5],
        [1e-300, 1e-299],
        [1e-310, 3e-310],
        [0.5, 0.5 + 1e-6],
        [0.5, 0.5 + 1e-15],
        [1.0 - 2.0**-53, 1.0 - 2.0**-52],
    ],
)
def test_fractions_of_any_size_give_finite_densities(values: list[float]) -> None:
    X = np.array([*values, *values[::-1]])[:, None]
    for estimation in ("map", "mle"):
        fitted = fit(Beta(), X, np.array([0, 0, 1, 1]), estimation, labels=LABELS[:2])
        assert np.all(np.isfinite(fitted.log_density(X)))
        assert np.all(np.isfinite(fitted.scores(X)))
        assert np.all(np.isfinite(fitted.sample(0, 10, np.random.default_rng(0))))


@pytest.mark.parametrize(
    ("x", "direction", "kappa", "expected"),
    [
        (1.0, 1.0, 1e6, 5.988816620777402),
        (1.002, 1.0, 1e6, 3.9888172874439762),
        (4.0, 1.0, 1e6, -1989986.5077838246),
        (2.0, 1.0, 1e-12, -1.837877066408805),
        (6.28, 0.001, 1e4, 3.598635299070027),
        (1.00001, 1.0, 1e12, -37.10342797547898),
    ],
)
def test_angles_have_exact_densities_at_any_concentration(
    x: float, direction: float, kappa: float, expected: float
) -> None:
    """Expected: mpmath with 60 digits."""
    one = np.ones((1, 1))
    fitted = VonMisesConditionals(np.ones(1, bool), one[0], direction * one, kappa * one, 2.0 * np.pi)
    assert_log_equal(fitted.log_density(x * one), expected * one)


@pytest.mark.parametrize(
    ("length", "kappa"),
    [
        (0.0, 0.0),
        (1e-12, 2e-12),
        (0.001, 0.0020000010000008335),
        (0.5, 1.1593199207501383),
        (0.99, 50.253847401099684),
        (1.0 - 2.0**-20, 524288.2500003576),
        (1.0 - 2.0**-30, 536870912.25),
    ],
)
def test_concentrations_solve_their_equation_for_short_and_long_resultants(length: float, kappa: float) -> None:
    """Expected: mpmath with 60 digits. Angles ±a, or opposite ones of weights 1 ± length, have that resultant."""
    if length < 0.5:
        X, weights = np.array([[0.0], [np.pi]]), np.array([1.0 + length, 1.0 - length])
    else:
        half = 2.0 * np.arcsin(np.sqrt((1.0 - length) / 2.0))
        X, weights = np.array([[-half], [half]]), np.ones(2)
    fitted = fit(VonMises(), X, np.zeros(2, int), "mle", weights, LABELS[:1])
    error = 8.0 * np.finfo(float).eps * (1.0 / (1.0 - length) + 1.0 / max(length, 1e-8))
    assert_allclose(fitted.concentration, kappa, rtol=error, atol=1e-15)
    assert np.all(np.isfinite(fitted.log_density(X)))


def test_a_concentration_of_a_million_is_learnt_from_its_angles() -> None:
    angles = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)[:, None] * 1e-3
    codes = np.arange(2000) % 2
    X = angles + np.where(codes == 1, 3.0, 0.0)[:, None]
    fitted = fit(VonMises(), X, codes, labels=LABELS[:2])
    assert_allclose(fitted.concentration, 1e6, rtol=5e-3)
    for k in range(2):
        assert_log_equal(fitted.log_density(X)[k], scipy_terms(fitted, X, k)[:, 0])
    assert_array_equal(fitted.scores(X).argmax(axis=0), codes)


# The circle.


def test_whole_periods_change_nothing() -> None:
    X, codes = CASES["von Mises"].table()
    turns = 24.0 * np.random.default_rng(0).integers(-(10**9), 10**9, X.shape)
    exact = np.round(X * 1024.0) / 1024.0
    fitted, moved = (fit(VonMises(period=24), rows, codes) for rows in (exact, exact + turns))
    assert_allclose(parameters(moved), parameters(fitted), rtol=1e-12)
    assert_log_equal(fitted.log_density(exact + turns), fitted.log_density(exact), 1e-12)


def test_the_period_is_a_unit() -> None:
    X, codes = CASES["von Mises"].table()
    day, circle = fit(VonMises(period=24), X, codes), fit(VonMises(), X * (np.pi / 12.0), codes)
    assert_allclose(circle.concentration, day.concentration, rtol=1e-12)
    assert_allclose(circle.direction * (12.0 / np.pi), day.direction, rtol=1e-12)
    assert_log_equal(circle.log_density(X * (np.pi / 12.0)) + 2.0 * np.log(np.pi / 12.0), day.log_density(X))


def test_midnight_lies_between_late_and_early_hours() -> None:
    X = np.array([[23.0], [1.0], [23.5], [0.5], [11.0], [13.0]])
    fitted = fit(VonMises(period=24), X, np.array([0, 0, 0, 0, 1, 1]), labels=LABELS[:2])
    directions = fitted.direction[:, 0]
    assert np.all((directions >= 0.0) & (directions < 24.0))
    assert min(directions[0], 24.0 - directions[0]) < 1e-12
    assert directions[1] == pytest.approx(12.0)
    assert fitted.log_density(np.array([[23.9]])).argmax() == 0


@pytest.mark.parametrize("value", [-1e-17, 0.0, 24.0, -0.5, 23.999999999999996, 1e6])
def test_the_level_of_a_constant_column_lies_within_the_period(value: float) -> None:
    fitted = fit(VonMises(period=24), np.full((6, 1), value), np.arange(6) % 3)
    assert not fitted.informative.any()
    drawn = fitted.sample(0, 3, np.random.default_rng(0))
    assert np.all((drawn >= 0.0) & (drawn < 24.0))
    away = np.mod(drawn - value + 12.0, 24.0) - 12.0
    assert_allclose(away, 0.0, atol=1e-8)
