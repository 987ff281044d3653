"""Priors are pseudo-data: the weak defaults as documented, updates against textbook formulas, and wrong numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import dirichlet, gamma, invgamma, invwishart, multivariate_normal, poisson

from likely import (
    Bernoulli,
    Categorical,
    Dirichlet,
    Exponential,
    GammaPrior,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    Multinomial,
    NaiveBayes,
    NormalInverseWishart,
    Poisson,
)
from likely.errors import InputError, NotEstimableError
from likely.families.gaussian.student import Students
from likely.statistics.counts import Counts
from tests.laws import oracle
from tests.laws.registry import (
    SHARINGS,
    Case,
    Floats,
    Rows,
    assert_log_equal,
    iris,
    parts,
    penguins,
    random_rows,
)

pytestmark = pytest.mark.usefixtures("pure_models")

CLASSES = np.array(["a", "b", "c"])
COUNTS = Counts(CLASSES, np.array([4, 0, 2]), np.array([4.0, 0.0, 2.0]))


# Dirichlet.


@pytest.mark.parametrize("alpha", [0.5, 1.0, {"a": 0.1, "b": 2.0, "c": 30.0}])
def test_class_probabilities_are_the_mean_of_the_dirichlet_posterior(alpha: Any) -> None:
    weights = np.array(list(alpha.values())) if isinstance(alpha, dict) else np.full(3, alpha)
    assert_allclose(Dirichlet(alpha).mean(COUNTS), dirichlet(weights + COUNTS.weight).mean(), rtol=1e-14)


def test_the_dirichlet_mode_adds_alpha_minus_one_rows_to_each_class() -> None:
    assert_allclose(Dirichlet(2.0).mode(COUNTS), [5 / 9, 1 / 9, 3 / 9], rtol=1e-14)
    assert_allclose(Dirichlet(1.0).mode(COUNTS), [4 / 6, 0.0, 2 / 6], rtol=1e-14)


def test_a_mode_on_the_edge_of_the_simplex_is_an_error_that_names_the_class() -> None:
    with pytest.raises(NotEstimableError, match=r"'b'.*alpha >= 1, or estimation='bayes'"):
        Dirichlet(0.5).mode(COUNTS)


@pytest.mark.parametrize("family", [Bernoulli, Categorical, Multinomial])
def test_the_mode_under_a_flat_dirichlet_is_the_maximum_of_the_likelihood(family: Any) -> None:
    X, y = np.array([[0, 1], [1, 1], [1, 0], [1, 1], [0, 1], [1, 0]]), [0, 0, 0, 1, 1, 1]
    flat = NaiveBayes(family(prior=Dirichlet(1.0)), Dirichlet(1.0), estimation="map").fit(X, y)
    assert_allclose(flat.log_joint(X), NaiveBayes(family(), estimation="mle").fit(X, y).log_joint(X), rtol=1e-13)
    with pytest.raises(InputError, match=r"Dirichlet\(alpha=0.999\) has no posterior mode .* alpha >= 1"):
        NaiveBayes(family(prior=Dirichlet(0.999)), estimation="map").fit(X, y)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf"), {"a": 1.0, "b": 0.0, "c": 1.0}])
def test_pseudo_rows_of_classes_must_be_positive_and_finite(alpha: Any) -> None:
    with pytest.raises(InputError, match="must be positive and finite"):
        Dirichlet(alpha).mean(COUNTS)


def test_a_mapping_of_pseudo_rows_must_name_every_class() -> None:
    with pytest.raises(InputError, match="has no alpha for class 'b'"):
        Dirichlet({"a": 1.0, "c": 1.0}).mean(COUNTS)


def test_a_dirichlet_does_not_belong_to_maximum_likelihood() -> None:
    with pytest.raises(InputError, match="belongs to estimation='map' or estimation='bayes'"):
        LinearDiscriminant(class_prior=Dirichlet(1.0)).fit(*iris())


# Gamma.


def test_the_mode_of_a_rate_without_any_events_has_the_pseudo_events_in_as_many_units_of_exposure() -> None:
    X, y = np.array([[0, 1], [0, 2], [0, 4], [0, 0], [0, 3]]), np.array([0, 0, 0, 1, 1])
    model = NaiveBayes(Poisson(prior=GammaPrior(2.0)), estimation="map").fit(X, y)
    for label, rows in ((0, 3), (1, 2)):
        evidence = model.explain(X).evidence[:, label, 0]
        assert_allclose(evidence, poisson.logpmf(0, 2.0 / (rows + 2.0)), rtol=1e-13)


@pytest.mark.parametrize(
    ("family", "X"), [(Poisson, [[0], [3], [4], [7]]), (Exponential, [[0.4], [3.1], [0.9], [7.2]])]
)
def test_the_log_prior_of_a_rate_is_that_of_its_gamma_distribution(family: Any, X: Any) -> None:
    prior = family(prior=GammaPrior(2.0, 3.0))
    model = NaiveBayes(prior, estimation="map").fit(X, [0, 0, 1, 1])
    statistics = model.statistics_.blocks[0]
    fitted: Any = model.model_.blocks[0].conditionals
    other = replace(fitted, rate=fitted.rate * [[1.7], [0.2]])
    changes = gamma(3.0, scale=1.0 / 3.0).logpdf(other.rate) - gamma(3.0, scale=1.0 / 3.0).logpdf(fitted.rate)
    found = prior._log_prior(statistics, other) - prior._log_prior(statistics, fitted)
    assert_allclose(found, changes.sum(), rtol=1e-12)


# The weak default of the normal-inverse-Wishart.


def documented_default(rows: Rows, covariance: str) -> NormalInverseWishart:
    """The docstring's numbers, from the raw rows."""
    d, n = rows.X.shape[1], len(rows.y)
    centred = rows.X - np.array([rows.of(label).mean(axis=0) for label in rows.y])
    within = (centred**2).sum(axis=0) / n
    total = rows.X.var(axis=0)
    scale = np.where(within > 0.0, within, total / len(rows.classes) ** 2)
    between = total - within
    return NormalInverseWishart(
        mean=rows.X.mean(axis=0),
        mean_rows=min(0.01, float((scale / between).min())),
        degrees=d + 2 if covariance == "full" else 3,
        scale=scale,
    )


@pytest.mark.parametrize("estimation", ["map", "bayes"])
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
def test_the_default_prior_is_the_documented_one(covariance: str, sharing: str, estimation: str) -> None:
    for rows in (penguins(), random_rows(1)):
        default = Case(covariance, sharing, estimation).fit(rows)
        prior = documented_default(rows, covariance)
        given = Case(covariance, sharing, estimation, options=(("prior", prior),)).fit(rows)
        assert_log_equal(default.log_joint(rows.X), given.log_joint(rows.X), 1e-9)


def test_the_default_prior_counts_for_less_where_the_classes_lie_far_apart() -> None:
    near, far = random_rows(2, distance=0.1), random_rows(2, distance=100.0)
    assert documented_default(near, "full").mean_rows == 0.01
    mean_rows = documented_default(far, "full").mean_rows
    assert mean_rows is not None
    assert mean_rows < 1e-3
    fitted = parts(GenerativeClassifier().fit(*far))
    for k, label in enumerate(far.classes):
        mean = far.of(label).mean(axis=0)
        assert_allclose(fitted.class_means()[k], mean, atol=0.01)


def test_a_column_that_varies_only_between_classes_takes_a_share_of_its_total_variance() -> None:
    rows = random_rows(3)
    X = np.column_stack([rows.X, rows.codes])
    for covariance in ("full", "diagonal"):
        case = Case(covariance, "own", "bayes")
        prior = documented_default(Rows(X, rows.y), covariance)
        given = Case(covariance, "own", "bayes", options=(("prior", prior),)).fit(Rows(X, rows.y))
        assert_log_equal(case.fit(Rows(X, rows.y)).log_joint(X), given.log_joint(X), 1e-9)


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
def test_the_default_prior_of_a_class_with_one_row_is_the_expected_covariance() -> None:
    """With ν = d + 2 the prior expectation Ψ/(ν − d − 1) is Ψ itself; one row moves neither far."""
    rows = random_rows(4, sizes=(40, 30, 1), distance=1.0)
    fitted = parts(Case("full", "own", "bayes").fit(rows))
    assert isinstance(fitted, Students)
    assert fitted.degrees.tolist() == [40 + 5 - 2, 30 + 5 - 2, 1 + 5 - 2]
    scale = documented_default(rows, "full").scale
    ratio = np.diag(fitted.class_covariance(2)) / scale
    assert np.all((ratio > 0.1) & (ratio < 2.0))


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
def test_the_default_mean_counts_for_a_hundredth_of_a_row_where_classes_have_the_same_mean(covariance: str) -> None:
    X = np.tile([[-0.25, 0.25], [0.25, -0.25], [0.25, 0.25], [-0.25, -0.25]], (2, 1)) / 8.0
    y = np.repeat([0, 1], 4)
    degrees = 4.0 if covariance == "full" else 3.0
    prior = NormalInverseWishart(mean=0.0, mean_rows=0.01, degrees=degrees, scale=1.0 / 1024.0)
    default, given = (
        GenerativeClassifier(Gaussian(covariance, prior=option), estimation="bayes").fit(X, y)
        for option in (NormalInverseWishart(), prior)
    )
    assert_allclose(default.log_joint(X), given.log_joint(X), rtol=1e-13)


# Updates.


def test_pseudo_rows_pull_the_means_toward_the_prior_mean() -> None:
    rows = random_rows(5)
    centre = np.array([10.0, -20.0, 30.0])
    fitted = parts(GenerativeClassifier(Gaussian(prior=NormalInverseWishart(centre, mean_rows=4.0))).fit(*rows))
    for k, label in enumerate(rows.classes):
        X = rows.of(label)
        expected = np.vstack([X, np.tile(centre, (4, 1))]).mean(axis=0)
        assert_allclose(fitted.class_means()[k], expected, rtol=1e-12)


@pytest.mark.parametrize("estimation", ["map", "bayes"])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical", "identity"])
def test_a_number_for_mean_or_scale_stands_for_every_column(covariance: str, estimation: str) -> None:
    rows = random_rows(6)
    short = NormalInverseWishart(mean=2.0, mean_rows=1.0, degrees=6.0, scale=0.5)
    priors = [
        NormalInverseWishart(mean=[2.0] * 3, mean_rows=1.0, degrees=6.0, scale=[0.5] * 3),
        NormalInverseWishart(mean=np.full(3, 2.0), mean_rows=1.0, degrees=6.0, scale=0.5 * np.eye(3)),
    ]
    plain = GenerativeClassifier(Gaussian(covariance, prior=short), estimation=estimation).fit(*rows)
    for prior in priors:
        model = GenerativeClassifier(Gaussian(covariance, prior=prior), estimation=estimation).fit(*rows)
        assert_log_equal(model.log_joint(rows.X), plain.log_joint(rows.X), 1e-13)


def test_a_given_prior_is_in_the_users_units_even_near_the_limit() -> None:
    rows, power = random_rows(7), 440
    unit = 2.0**power

    def fit(X: Floats, by: float) -> GenerativeClassifier:
        prior = NormalInverseWishart(mean=[by, -by, 0.0], mean_rows=2.0, degrees=6.0, scale=[by * 1e-9] * 3)
        return GenerativeClassifier(Gaussian("diagonal", prior=prior), estimation="map").fit(X, rows.y)

    # The scale is far below the scatter in both, so that only the mean is felt.
    scaled, plain = parts(fit(rows.X * unit, unit)), parts(fit(rows.X, 1.0))
    assert_allclose(scaled.class_means() / unit, plain.class_means(), rtol=1e-12)


def test_no_pseudo_rows_leave_the_means_of_the_data() -> None:
    rows = random_rows(8)
    model = GenerativeClassifier(Gaussian(prior=NormalInverseWishart(mean_rows=0.0))).fit(*rows)
    assert_allclose(parts(model).class_means(), [rows.of(label).mean(axis=0) for label in rows.classes], rtol=1e-12)


def test_the_reference_prior_has_no_pseudo_data() -> None:
    prior = NormalInverseWishart.reference()
    assert (prior.mean_rows, prior.degrees, prior.scale) == (0.0, 0.0, 0.0)
    rows = random_rows(9)
    fitted = parts(Case("full", "own", "map", options=(("prior", prior),)).fit(rows))
    for k, label in enumerate(rows.classes):
        n, d = len(rows.of(label)), 3
        assert_allclose(fitted.class_covariance(k), oracle.scatter(rows, [label]) / (n + d + 1), rtol=1e-10)


def test_the_reference_predictive_is_the_limit_of_ever_weaker_priors() -> None:
    rows = random_rows(10)
    weak = NormalInverseWishart(mean=0.0, mean_rows=0.0, degrees=1e-9, scale=1e-9)
    for sharing in SHARINGS:
        limit, near = (
            Case("full", sharing, "bayes", options=(("prior", prior),)).fit(rows)
            for prior in (NormalInverseWishart.reference(), weak)
        )
        assert_allclose(near.log_joint(rows.X), limit.log_joint(rows.X), atol=1e-6)


@pytest.mark.parametrize(
    ("sizes", "sharing", "proper"),
    [
        ((4, 4), "own", True),  # n_k − D degrees
        ((4, 3), "own", False),
        ((4, 1), "shared", True),  # N − K − D + 1 degrees
        ((3, 1), "shared", False),
    ],
)
def test_the_reference_predictive_is_proper_exactly_where_there_are_enough_rows(
    sizes: tuple[int, int], sharing: str, proper: bool
) -> None:
    rows = random_rows(11, sizes=sizes)
    case = Case("full", sharing, "bayes", options=(("prior", NormalInverseWishart.reference()),))
    if proper:
        fitted = parts(case.fit(rows))
        assert isinstance(fitted, Students)
        assert fitted.degrees.min() == 1.0
    else:
        with pytest.raises(NotEstimableError, match=r"improper.*NormalInverseWishart\(\)"):
            case.fit(rows)


def test_a_flat_prior_does_not_determine_the_mean_of_a_class_without_rows() -> None:
    rows = random_rows(12)
    prior = {"a": 0.25, "b": 0.25, "c": 0.25, "z": 0.25}
    model = GenerativeClassifier(Gaussian(prior=NormalInverseWishart.reference()), prior)
    with pytest.raises(NotEstimableError, match="'z' has no rows, so a flat prior leaves its mean undetermined"):
        model.fit(*rows)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_the_log_prior_is_that_of_an_inverse_wishart_and_a_gaussian(covariance: str) -> None:
    """Differences between two estimates; the density of a diagonal covariance is one of inverse gammas."""
    nu, kappa, mean, scale = 6.0, 1.5, np.array([0.2, -0.4, 1.0]), np.array([1.0, 2.0, 0.5])
    family = Gaussian(covariance, shared=False, prior=NormalInverseWishart(mean, kappa, nu, scale))
    found, expected = [], []
    for seed in (17, 18):
        model = GenerativeClassifier(family, estimation="map").fit(*random_rows(seed))
        fitted = parts(model)
        found.append(family._log_prior(model.statistics_.blocks[0], fitted))
        total = 0.0
        for k in range(fitted.n_classes):
            matrix = fitted.class_covariance(k)
            total += float(multivariate_normal(mean, matrix / kappa).logpdf(fitted.class_means()[k]))
            if covariance == "full":
                total += float(invwishart(nu, np.diag(scale)).logpdf(matrix))
            else:
                total += float(invgamma(nu / 2.0, scale=scale / 2.0).logpdf(np.diag(matrix)).sum())
        expected.append(total)
    assert_allclose(found[1] - found[0], expected[1] - expected[0], rtol=1e-10)


# Wrong numbers.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean_rows": -1.0}, "mean_rows=-1.0.*finite and not negative"),
        ({"mean_rows": float("nan")}, "mean_rows=nan"),
        ({"degrees": float("inf")}, "degrees=inf"),
        ({"degrees": -2}, "degrees=-2"),
        ({"mean": [1.0, 2.0]}, "mean=.* must be a number or 3 finite numbers"),
        ({"mean": [1.0, 2.0, np.nan]}, "mean=.* must be a number or 3 finite numbers"),
        ({"mean": [[1.0, 2.0, 3.0]]}, "mean=.* must be a number or 3 finite numbers"),
        ({"scale": [1.0, 2.0]}, "scale=.* must be a number, 3 numbers, or a 3 x 3 matrix"),
        ({"scale": np.eye(2)}, "scale=.* must be a number, 3 numbers, or a 3 x 3 matrix"),
        ({"scale": [1.0, np.inf, 1.0]}, "scale=.* all finite"),
        ({"scale": -1.0}, "symmetric and positive semi-definite"),
        ({"scale": [[1, 2, 0], [0, 1, 0], [0, 0, 1]]}, "symmetric and positive semi-definite"),
        ({"scale": [[1, 2, 0], [2, 1, 0], [0, 0, 1]]}, "symmetric and positive semi-definite"),
    ],
)
@pytest.mark.parametrize("estimation", ["map", "bayes"])
def test_invalid_priors_raise_an_error_before_fitting(estimation: str, options: dict[str, Any], message: str) -> None:
    model = GenerativeClassifier(Gaussian(prior=NormalInverseWishart(**options)), estimation=estimation)
    with pytest.raises(InputError, match=message):
        model.fit(*random_rows(13))
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("wrong", ["weak", 0.1, Dirichlet(1.0), NormalInverseWishart])
def test_only_a_normal_inverse_wishart_is_a_prior_of_a_gaussian(wrong: Any) -> None:
    with pytest.raises(InputError, match="is not a NormalInverseWishart"):
        GenerativeClassifier(Gaussian(prior=wrong)).fit(*random_rows(14))


@pytest.mark.parametrize(
    "options",
    [{"mean_rows": "much"}, {"mean_rows": [1.0, 2.0]}, {"degrees": "many"}, {"mean": "far"}, {"scale": "wide"}],
    ids=str,
)
def test_what_is_not_a_number_is_said_so(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=name):
        GenerativeClassifier(Gaussian(prior=NormalInverseWishart(**options))).fit(*random_rows(15))


def test_a_prior_does_not_belong_to_maximum_likelihood() -> None:
    with pytest.raises(InputError, match="prior belongs to estimation='map' or estimation='bayes'"):
        GenerativeClassifier(Gaussian(prior=NormalInverseWishart()), estimation="mle").fit(*random_rows(16))
