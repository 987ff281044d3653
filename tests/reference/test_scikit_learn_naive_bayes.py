"""Naive Bayes of scikit-learn, to ten digits.

Its `alpha` is `smoothing` under "map", and its class prior is the observed shares, `Dirichlet(1.0)` under "map", unless
`fit_prior=False`, which is "uniform". GaussianNB is maximum likelihood where nothing is added to its variances.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

from likely import Bernoulli, Categorical, Dirichlet, Gaussian, Multinomial, NaiveBayes

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

SHAPES = {"30 x 1": (30, 1, 2), "90 x 4": (90, 4, 3), "400 x 15": (400, 15, 6), "50 x 120": (50, 120, 2)}
SHIPPED = {"iris": load_iris, "wine": load_wine, "digits": load_digits, "inner digits": load_digits}
TABLES = [*SHAPES, *SHIPPED]
ALPHAS = (1e-10, 0.2, 1.0, 3.5)
FORMATS: dict[str, Callable[[Any], Any]] = {
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_array,
    "coo": scipy.sparse.coo_array,
    "csr_matrix": scipy.sparse.csr_matrix,
}
PRIORS = ("observed", "uniform", "given")


class Rows(NamedTuple):
    X: Floats
    y: Codes

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1


@cache
def shipped(name: str) -> Rows:
    """Of the digits the inner pixels are those that are black in some fifty rows or more; some are never black."""
    X, y = SHIPPED[name](return_X_y=True)
    return Rows(X[:, np.count_nonzero(X, axis=0) >= 50] if name == "inner digits" else X, y)


def random_labels(name: str) -> tuple[np.random.Generator, Codes, int]:
    """Classes of unequal sizes, and the number of columns."""
    n, d, size = SHAPES[name]
    rng = np.random.default_rng([n, d, size])
    shares = rng.dirichlet(np.full(size, 8.0))
    y = np.concatenate([np.repeat(np.arange(size), 5), rng.choice(size, size=n - 5 * size, p=shares)])
    return rng, rng.permutation(y), d


@cache
def numbers(name: str) -> Rows:
    """Real columns of very different scales."""
    if name in SHIPPED:
        return shipped(name)
    rng, y, d = random_labels(name)
    means, scales = rng.normal(0.0, 2.0, (y.max() + 1, d)), rng.uniform(0.5, 2.0, (y.max() + 1, d))
    return Rows((means[y] + scales[y] * rng.standard_normal((len(y), d))) * 10.0 ** rng.integers(-3, 4, d), y)


@cache
def yes_or_no(name: str) -> Rows:
    """Columns of 0 and 1."""
    if name in SHIPPED:
        X, y = shipped(name)
        return Rows((X.mean(axis=0) < X).astype(np.float64), y)
    rng, y, d = random_labels(name)
    return Rows((rng.random((len(y), d)) < rng.uniform(0.1, 0.9, (y.max() + 1, d))[y]).astype(np.float64), y)


@cache
def counts(name: str) -> Rows:
    """Columns of counts, many of them 0."""
    if name in SHIPPED:
        X, y = shipped(name)
        return Rows(np.rint(X), y)
    rng, y, d = random_labels(name)
    return Rows(rng.poisson(rng.gamma(0.5, 3.0, (y.max() + 1, d))[y]).astype(np.float64), y)


@cache
def labels(name: str) -> Rows:
    """Columns of categories 0, 1, 2, …; some of which do not occur."""
    if name.endswith("digits"):
        return shipped(name)
    if name in SHIPPED:
        X, y = shipped(name)
        return Rows(np.floor(9.0 * (X - X.min(axis=0)) / np.ptp(X, axis=0)), y)
    rng, y, d = random_labels(name)
    most = rng.integers(2, 12, d)
    leaning = rng.dirichlet([2.0, 2.0], (y.max() + 1, d))[y, :, 0]
    return Rows(np.floor(rng.beta(0.3 + 2.0 * leaning, 1.0) * most), y)


def weights_of(rows: Rows, weighted: bool) -> Floats | None:
    """None, or weights of which some are 0 and most no whole numbers."""
    rng = np.random.default_rng(len(rows.y))
    return rng.choice([0.0, 1.0, 2.0, 0.3, 7.1], size=len(rows.y)) if weighted else None


def given_prior(rows: Rows) -> Floats:
    return np.random.default_rng(rows.n_classes).dirichlet(np.full(rows.n_classes, 2.0))


def occurring(X: Floats) -> dict[str, range]:
    """CategoricalNB expects all whole numbers up to the largest one in each column."""
    return {f"x{j}": range(int(top) + 1) for j, top in enumerate(X.max(axis=0))}


class Pair(NamedTuple):
    """A naive Bayes of scikit-learn, the family that it has here, and the tables that suit it."""

    theirs: Callable[..., Any]
    family: Callable[[Rows, float], Any]
    table: Callable[[str], Rows]


PAIRS = {
    "BernoulliNB": Pair(BernoulliNB, lambda rows, alpha: Bernoulli(smoothing=alpha), yes_or_no),
    "MultinomialNB": Pair(MultinomialNB, lambda rows, alpha: Multinomial(smoothing=alpha), counts),
    "CategoricalNB": Pair(
        CategoricalNB, lambda rows, alpha: Categorical(smoothing=alpha, categories=occurring(rows.X)), labels
    ),
}

# With less, BernoulliNB rounds log(1 − p): see the test of that.
PAIRS_AND_ALPHAS = [
    (pair, 1e-3 if pair == "BernoulliNB" and alpha < 1e-3 else alpha) for pair in PAIRS for alpha in ALPHAS
]


def fitted(
    pair: str, table: str, alpha: float, weights: Floats | None = None, prior: str = "observed"
) -> tuple[NaiveBayes, Any, Rows]:
    """The model here, scikit-learn's, and the rows of both."""
    theirs, family, read = PAIRS[pair]
    rows = read(table)
    share = given_prior(rows)
    class_prior: Any = {"observed": Dirichlet(1.0), "uniform": "uniform", "given": share}[prior]
    other = theirs(alpha=alpha, fit_prior=prior != "uniform", class_prior=share if prior == "given" else None)
    model = NaiveBayes(family(rows, alpha), class_prior=class_prior, estimation="map")
    return model.fit(*rows, weights), other.fit(*rows, weights), rows


def assert_same_answers(model: NaiveBayes, other: Any, X: Any, as_theirs: Any = None) -> None:
    theirs = X if as_theirs is None else as_theirs
    assert_array_equal(model.classes_, other.classes_)
    assert_allclose(model.predict_proba(X), other.predict_proba(theirs), rtol=0, atol=1e-10)
    assert_allclose(model.predict_log_proba(X), other.predict_log_proba(theirs), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("pair", "alpha"), PAIRS_AND_ALPHAS)
def test_smoothing_gives_the_posteriors_of_scikit_learn(pair: str, table: str, alpha: float, weighted: bool) -> None:
    weights = weights_of(PAIRS[pair].table(table), weighted)
    model, other, rows = fitted(pair, table, alpha, weights)
    assert_same_answers(model, other, rows.X)


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("table", ["30 x 1", "400 x 15", "wine"])
@pytest.mark.parametrize("pair", PAIRS)
def test_class_priors_give_the_posteriors_of_scikit_learn(pair: str, table: str, prior: str, weighted: bool) -> None:
    weights = weights_of(PAIRS[pair].table(table), weighted)
    model, other, rows = fitted(pair, table, 0.7, weights, prior)
    assert_allclose(model.class_prior_, np.exp(other.class_log_prior_), rtol=1e-13)
    assert_same_answers(model, other, rows.X)


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("table", ["90 x 4", "50 x 120", "digits", "inner digits"])
@pytest.mark.parametrize("pair", PAIRS)
def test_sparse_rows_give_the_posteriors_of_scikit_learn(pair: str, table: str, form: str, weighted: bool) -> None:
    weights = weights_of(PAIRS[pair].table(table), weighted)
    model, other, rows = fitted(pair, table, 0.5, weights)
    X = FORMATS[form](rows.X)
    model.fit(X, rows.y, weights)
    assert_same_answers(model, other, X, as_theirs=rows.X)  # CategoricalNB reads no sparse rows


@pytest.mark.parametrize("pair", PAIRS)
def test_no_smoothing_is_no_alpha_in_scikit_learn(pair: str) -> None:
    theirs, family, _ = PAIRS[pair]
    y = np.repeat([0, 1, 2], [20, 30, 50])
    X = np.random.default_rng(9).integers(0, 2, (100, 6)).astype(np.float64)  # both values in every class
    other = theirs(alpha=0.0).fit(X, y)
    assert_same_answers(NaiveBayes(family(Rows(X, y), 0.0), estimation="mle").fit(X, y), other, X)


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("table", ["30 x 1", "400 x 15", "iris", "wine", "inner digits"])
def test_the_least_smoothing_of_yes_or_no_keeps_the_digits_that_bernoulli_nb_loses(table: str, weighted: bool) -> None:
    """BernoulliNB takes log(1 − p) of a p next to 1. CategoricalNB has a count for either value."""
    rows = yes_or_no(table)
    weights = weights_of(rows, weighted)
    model = NaiveBayes(Bernoulli(smoothing=1e-10), class_prior=Dirichlet(1.0), estimation="map")
    other = CategoricalNB(alpha=1e-10, min_categories=2)
    assert_same_answers(model.fit(*rows, weights), other.fit(*rows, weights), rows.X)


@pytest.mark.parametrize("table", ["90 x 4", "400 x 15", "50 x 120", "wine", "digits", "inner digits"])
def test_declared_categories_are_the_min_categories_of_scikit_learn(table: str) -> None:
    rows = labels(table)
    family = Categorical(smoothing=0.5, categories=range(20))
    model = NaiveBayes(family, class_prior=Dirichlet(1.0), estimation="map").fit(*rows)
    other = CategoricalNB(alpha=0.5, min_categories=20).fit(*rows)
    assert_same_answers(model, other, rows.X)


@pytest.mark.parametrize(
    "family",
    [Bernoulli(smoothing=0.5), Categorical(smoothing=0.5, categories=range(2))],
    ids=lambda family: type(family).__name__,
)
def test_a_column_with_one_value_counts_as_in_scikit_learn(family: Bernoulli | Categorical) -> None:
    X = np.column_stack([yes_or_no("90 x 4").X, np.zeros(90)])
    y = yes_or_no("90 x 4").y
    model = NaiveBayes(family, class_prior=Dirichlet(1.0), estimation="map").fit(X, y)
    assert_same_answers(model, BernoulliNB(alpha=0.5).fit(X, y), X)


# -- the complement


def fitted_complement(
    rows: Rows, X: Any, alpha: float, normalize: bool, weights: Floats | None
) -> tuple[NaiveBayes, ComplementNB]:
    family = Multinomial(smoothing=alpha, complement=True, normalize=normalize)
    model = NaiveBayes(family, class_prior="uniform", estimation="map")
    return model.fit(X, rows.y, weights), ComplementNB(alpha=alpha, norm=normalize).fit(X, rows.y, weights)


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("normalize", [False, True], ids=["weights as they are", "normalized"])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("table", [name for name in TABLES if name not in ("30 x 1", "inner digits")])
def test_complements_give_the_posteriors_of_scikit_learn(
    table: str, alpha: float, normalize: bool, weighted: bool
) -> None:
    rows = counts(table)
    model, other = fitted_complement(rows, rows.X, alpha, normalize, weights_of(rows, weighted))
    assert_same_answers(model, other, rows.X)


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("normalize", [False, True], ids=["weights as they are", "normalized"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("table", ["90 x 4", "50 x 120", "digits"])
def test_complements_of_sparse_rows_give_the_posteriors_of_scikit_learn(
    table: str, form: str, normalize: bool, weighted: bool
) -> None:
    rows = counts(table)
    X = FORMATS[form](rows.X)
    model, other = fitted_complement(rows, X, 0.5, normalize, weights_of(rows, weighted))
    assert_same_answers(model, other, X)


# -- Gaussians


def fitted_gaussian(rows: Rows, X: Any, weights: Floats | None, prior: str) -> tuple[NaiveBayes, GaussianNB]:
    share = given_prior(rows)
    uniform = np.full(rows.n_classes, 1.0 / rows.n_classes)
    class_prior = {"observed": None, "uniform": "uniform", "given": share}[prior]
    priors = {"observed": None, "uniform": uniform, "given": share}[prior]
    model = NaiveBayes(Gaussian(), class_prior=class_prior, estimation="mle").fit(X, rows.y, weights)
    return model, GaussianNB(priors=priors, var_smoothing=0.0).fit(*rows, weights)


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("table", [*SHAPES, "iris", "wine"])
def test_gaussians_give_the_posteriors_of_scikit_learn(table: str, prior: str, weighted: bool) -> None:
    rows = numbers(table)
    model, other = fitted_gaussian(rows, rows.X, weights_of(rows, weighted), prior)
    assert_allclose(model.class_prior_, other.class_prior_, rtol=1e-13)
    assert_same_answers(model, other, rows.X)


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("table", ["90 x 4", "50 x 120", "wine"])
def test_gaussians_of_sparse_rows_give_the_posteriors_of_scikit_learn(table: str, form: str, weighted: bool) -> None:
    dense = numbers(table)
    low = np.quantile(dense.X, 0.3, axis=0)
    rows = Rows(np.where(low < dense.X, dense.X, 0.0), dense.y)
    X = FORMATS[form](rows.X)
    model, other = fitted_gaussian(rows, X, weights_of(rows, weighted), "observed")
    assert_same_answers(model, other, X, as_theirs=rows.X)
