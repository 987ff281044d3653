"""Rows drawn from a model follow it: moments within their standard errors, and the distributions of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import f, kstest, spearmanr, t

from likely import Gaussian, GenerativeClassifier, NormalInverseWishart
from likely.errors import InputError
from likely.families.gaussian.student import Students
from tests.laws.registry import (
    CASES,
    PLUGGED_IN,
    Case,
    Floats,
    every_case,
    iris,
    parts,
    random_rows,
)

DRAWS = 4000
ERRORS = 5.0  # standard errors: one comparison in two million goes beyond by chance


def assert_within_errors(actual: Floats, expected: Floats, error: Floats) -> None:
    assert np.all(error > 0.0)
    np.testing.assert_array_less(np.abs(actual - expected) / error, ERRORS)


@pytest.mark.parametrize("case", PLUGGED_IN, ids=str)
def test_samples_recover_the_parameters_of_their_class(case: Case) -> None:
    rows = iris()
    model = case.fit(rows)
    fitted = parts(model)
    for k, label in enumerate(rows.classes):
        X, y = model.sample(DRAWS, label=label, random_state=k)
        mean, matrix = fitted.class_means()[k], fitted.class_covariance(k)
        variance = np.diag(matrix)
        assert_within_errors(X.mean(axis=0), mean, np.sqrt(variance / DRAWS))
        error = np.sqrt((np.outer(variance, variance) + matrix**2) / DRAWS)
        assert_within_errors(np.cov(X.T), matrix, error)
        assert np.all(y == label)


@pytest.mark.parametrize("case", [case for case in PLUGGED_IN if not case.word], ids=str)
def test_a_model_fitted_to_samples_has_the_parameters_it_was_drawn_from(case: Case) -> None:
    rows = random_rows(1, sizes=(30, 20, 15), d=2)
    truth = case.fit(rows)
    X, y = truth.sample(3 * DRAWS, random_state=2)
    assert_array_equal(np.unique(y), rows.classes)
    again = Case(case.covariance, case.sharing, "mle").classifier(rows.classes).fit(X, y)
    shares = truth.class_prior_
    assert_within_errors(again.class_prior_, shares, np.sqrt(shares * (1 - shares) / (3 * DRAWS)))
    for k, label in enumerate(rows.classes):
        n = np.count_nonzero(y == label)
        matrix = parts(truth).class_covariance(k)
        variance = np.diag(matrix)
        assert_within_errors(parts(again).class_means()[k], parts(truth).class_means()[k], np.sqrt(variance / n))
        error = np.sqrt((np.outer(variance, variance) + matrix**2) / n)
        assert_within_errors(parts(again).class_covariance(k), matrix, error)


STUDENTS = [case for case in CASES if case.estimation == "bayes" and case.covariance != "identity"]


@pytest.mark.parametrize("case", STUDENTS, ids=str)
def test_samples_of_a_predictive_follow_the_student_t(case: Case) -> None:
    """Each column is a t; the squared distance of a joint t is d times an F; independent columns are independent."""
    rows = random_rows(3, sizes=(7, 6, 8), d=3)
    model = case.fit(rows)
    fitted = parts(model)
    assert isinstance(fitted, Students)
    for k, label in enumerate(rows.classes):
        X, _ = model.sample(DRAWS, label=label, random_state=10 + k)
        mean, matrix, degrees = fitted.class_means()[k], fitted.class_covariance(k), fitted.degrees[k]
        for j in range(3):
            law = t(degrees, mean[j], np.sqrt(matrix[j, j]))
            assert kstest(X[:, j], law.cdf).pvalue > 1e-4
        white = np.linalg.solve(np.linalg.cholesky(matrix), (X - mean).T)
        if case.covariance == "diagonal":
            assert spearmanr(np.abs(white[0]), np.abs(white[2])).pvalue > 1e-4
        else:
            assert kstest((white**2).sum(axis=0) / 3, f(3, degrees).cdf).pvalue > 1e-4


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("prior", [None, NormalInverseWishart.reference()], ids=["weak", "reference"])
def test_samples_in_one_dimension_follow_the_student_t(covariance: str, prior: NormalInverseWishart | None) -> None:
    X = np.array([[1.0], [2.0], [4.0], [8.0], [8.5], [7.0]])
    y = np.array([0, 0, 0, 1, 1, 1])
    model = GenerativeClassifier(Gaussian(covariance, prior=prior)).fit(X, y)
    drawn, labels = model.sample(DRAWS, label=0, random_state=4)
    assert not labels.any()
    fitted = parts(model)
    assert isinstance(fitted, Students)
    law = t(fitted.degrees[0], fitted.class_means()[0, 0], np.sqrt(fitted.class_covariance(0)[0, 0]))
    assert kstest(drawn[:, 0], law.cdf).pvalue > 1e-4
    if prior is not None:  # three rows: two degrees of freedom, their mean, s²(1 + 1/3)
        law = t(2, X[:3].mean(), np.sqrt(X[:3].var(ddof=1) * 4 / 3))
        assert kstest(drawn[:, 0], law.cdf).pvalue > 1e-4


@every_case
def test_a_seed_draws_the_same_rows_again(case: Case) -> None:
    model = case.fit(iris())
    X, y = model.sample(7, random_state=5)
    again, labels = model.sample(7, random_state=5)
    assert X.shape == (7, 4)
    assert_array_equal(X, again)
    assert_array_equal(y, labels)
    other, _ = model.sample(7, random_state=6)
    assert not np.any(other == X)


def test_labels_are_drawn_by_the_class_prior() -> None:
    model = GenerativeClassifier(class_prior={"setosa": 0.0, "versicolor": 0.25, "virginica": 0.75}).fit(*iris())
    _, y = model.sample(DRAWS, random_state=7)
    assert "setosa" not in y
    assert_allclose(np.mean(y == "virginica"), 0.75, atol=ERRORS * np.sqrt(0.75 * 0.25 / DRAWS))


def test_a_class_can_be_sampled_even_if_its_prior_is_zero() -> None:
    model = GenerativeClassifier(class_prior=[0.0, 0.5, 0.5]).fit(*iris())
    X, y = model.sample(5, label="setosa", random_state=8)
    assert X.shape == (5, 4)
    assert y.tolist() == ["setosa"] * 5


def test_only_known_classes_and_positive_whole_numbers_can_be_asked_for() -> None:
    model = GenerativeClassifier().fit(*iris())
    with pytest.raises(InputError, match=r"'tulip' is not among the classes 'setosa', 'versicolor', 'virginica'"):
        model.sample(3, label="tulip")
    for wrong in (0, -1, 2.5, "many"):
        with pytest.raises(InputError, match="n_samples"):
            model.sample(wrong)  # type: ignore[arg-type]
