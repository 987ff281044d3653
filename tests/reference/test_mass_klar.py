"""MASS (lda, qda), klaR (rda) and a table of The Elements of Statistical Learning, number by number.

MASS's "moment" is `unbiased=True` here and its "mle" is `unbiased=False`; `tests/data/README.md` says what
made the files.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from likely import LinearDiscriminant, QuadraticDiscriminant, Regularized
from tests.helpers import load_reference, load_table

Floats = NDArray[np.float64]

DIVISORS = ("mle", "moment")
DATASETS = ("iris", "penguins", "pima", "vowel", "wine")
LINEAR = [f"{dataset}-lda-{divisor}" for dataset in DATASETS for divisor in DIVISORS]
QUADRATIC = [f"{dataset}-qda-{divisor}" for dataset in DATASETS for divisor in DIVISORS]

TABLE_AND_TARGET = {
    "iris": ("iris", "Species"),
    "penguins": ("penguins", "species"),
    "pima": ("pima_missing", "diabetes"),
    "vowel": ("vowel-train", "y"),
    "wine": ("wine", "class"),
}

# The penguins' columns differ most in scale: grams beside millimetres.
POSTERIOR_TOLERANCE = {"penguins": 2e-9}


class Rows(NamedTuple):
    X: Floats
    y: NDArray[Any]


@cache
def reference(name: str) -> dict[str, Any]:
    return load_reference(name)


@cache
def rows_of(name: str, table: str | None = None) -> Rows:
    """The complete rows, in order, of the table that was fitted, or of another one with its columns."""
    dataset = dataset_of(name)
    fitted_table, target = TABLE_AND_TARGET[dataset]
    columns = reference(f"{dataset}-lda-mle")["means"]["cols"]
    frame = load_table(table or fitted_table).dropna(subset=columns)
    return Rows(frame[columns].to_numpy(dtype=np.float64), frame[target].to_numpy())


@cache
def fitted(name: str) -> LinearDiscriminant | QuadraticDiscriminant:
    estimator: type[LinearDiscriminant | QuadraticDiscriminant]
    estimator = LinearDiscriminant if "-lda-" in name else QuadraticDiscriminant
    return estimator(unbiased=name.endswith("-moment")).fit(*rows_of(name))


@cache
def fitted_rda(pooling: float, sphering: float) -> QuadraticDiscriminant:
    shrinkage = Regularized(pooling=pooling, sphering=sphering)
    return QuadraticDiscriminant(shrinkage=shrinkage, unbiased=True).fit(*rows_of("iris-rda"))


def dataset_of(name: str) -> str:
    return name.partition("-")[0]


def matrix(block: dict[str, Any]) -> Floats:
    return np.array(block["values"], dtype=np.float64)


def listed(X: Floats, row_numbers: list[int]) -> Floats:
    """The rows that the reference lists; R counts from 1."""
    return np.take(X, np.array(row_numbers) - 1, axis=0)


def assert_posteriors_equal(actual: Floats, expected: dict[str, Any], name: str) -> None:
    assert_allclose(actual, matrix(expected), rtol=0, atol=POSTERIOR_TOLERANCE.get(dataset_of(name), 1e-9))


def assert_equal_up_to_sign(actual: Floats, expected: Floats) -> None:
    """Column by column; the tolerance is relative to the column's largest entry."""
    assert actual.shape == expected.shape
    signs = np.sign(np.sum(actual * expected, axis=0))
    largest = np.abs(expected).max(axis=0)
    assert_allclose(actual * signs / largest, expected / largest, rtol=0, atol=1e-9)


def assert_covariances_equal(actual: Floats, expected: Floats) -> None:
    """As correlations: each entry relative to the two deviations it belongs to."""
    assert actual.shape == expected.shape
    standard_deviations = np.sqrt(np.diag(expected))
    scale = np.outer(standard_deviations, standard_deviations)
    assert_allclose(actual / scale, expected / scale, rtol=0, atol=1e-12)


def assert_same_verdict(
    model: LinearDiscriminant | QuadraticDiscriminant, rows: Rows, expected: dict[str, Any]
) -> None:
    """The confusion table, cell by cell, and the total log posterior of the true classes."""
    codes = np.searchsorted(model.classes_, rows.y)
    confusion = np.zeros((len(model.classes_), len(model.classes_)), dtype=int)
    np.add.at(confusion, (codes, np.searchsorted(model.classes_, model.predict(rows.X))), 1)
    assert_array_equal(confusion, expected["confusion"]["rows_truth_cols_predicted"])
    of_true_class = model.predict_log_proba(rows.X)[np.arange(len(codes)), codes]
    assert of_true_class.sum() == pytest.approx(expected["sum_log_posterior_of_true_class"], rel=1e-9)


@pytest.mark.parametrize("name", LINEAR + QUADRATIC)
def test_classes_class_prior_and_means_are_those_of_mass(name: str) -> None:
    model, expected = fitted(name), reference(name)
    assert [str(label) for label in model.classes_] == expected["classes"]
    assert_allclose(model.class_prior_, matrix(expected["prior"]), rtol=1e-14)
    assert_allclose(model.means_, matrix(expected["means"]), rtol=1e-12)


@pytest.mark.parametrize("name", LINEAR + QUADRATIC)
def test_posteriors_are_those_of_mass(name: str) -> None:
    expected = reference(name)
    posteriors = fitted(name).predict_proba(listed(rows_of(name).X, expected["rows"]))
    assert_posteriors_equal(posteriors, expected["posterior_plug_in"], name)


@pytest.mark.parametrize("name", LINEAR + QUADRATIC)
def test_posteriors_next_to_nothing_keep_their_digits(name: str) -> None:
    expected = reference(name)
    posteriors = matrix(expected["posterior_plug_in"])
    normal = posteriors > np.finfo(np.float64).tiny
    logs = fitted(name).predict_log_proba(listed(rows_of(name).X, expected["rows"]))
    assert_allclose(logs[normal], np.log(posteriors[normal]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in LINEAR + QUADRATIC if name.startswith("vowel")])
def test_posteriors_of_rows_not_fitted_are_those_of_mass(name: str) -> None:
    expected, unseen = reference(name), rows_of(name, "vowel-test")
    posteriors = fitted(name).predict_proba(listed(unseen.X, expected["test_rows"]))
    assert_posteriors_equal(posteriors, expected["test_posterior_plug_in"], name)
    assert_same_verdict(fitted(name), unseen, expected["test"])


@pytest.mark.parametrize("name", [name for name in LINEAR if name.endswith("-moment")])
def test_posteriors_under_a_uniform_prior_are_those_of_mass(name: str) -> None:
    expected = reference(name)
    posteriors = fitted(name).with_prior("uniform").predict_proba(listed(rows_of(name).X, expected["rows"]))
    assert_posteriors_equal(posteriors, expected["posterior_plug_in_uniform_prior"], name)


@pytest.mark.parametrize("name", LINEAR + QUADRATIC)
def test_confusion_and_log_posteriors_of_the_fitted_rows_are_those_of_mass(name: str) -> None:
    assert_same_verdict(fitted(name), rows_of(name), reference(name)["train"])


@pytest.mark.parametrize("name", LINEAR)
def test_the_shared_covariance_is_the_within_covariance_of_mass(name: str) -> None:
    assert_covariances_equal(fitted(name).covariance_, matrix(reference(name)["within_cov_base_r"]))


@pytest.mark.parametrize("name", LINEAR)
def test_canonical_discriminants_are_those_of_mass_up_to_sign(name: str) -> None:
    model, expected = fitted(name), reference(name)
    assert isinstance(model, LinearDiscriminant)
    assert_equal_up_to_sign(model.scalings_, matrix(expected["scaling"]))
    discriminants = model.transform(listed(rows_of(name).X, expected["rows"]))
    assert_equal_up_to_sign(discriminants, matrix(expected["discriminants"]))


@pytest.mark.parametrize("name", QUADRATIC)
def test_log_determinants_of_own_covariances_are_those_of_mass(name: str) -> None:
    log_determinants = np.linalg.slogdet(fitted(name).covariance_).logabsdet
    assert_allclose(log_determinants, list(reference(name)["log_det_cov"].values()), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", QUADRATIC)
def test_the_whitening_matrices_of_mass_whiten_own_covariances(name: str) -> None:
    model, scalings = fitted(name), reference(name)["scaling_by_class"]
    assert len(model.covariance_) == len(scalings)
    for covariance, block in zip(model.covariance_, scalings.values(), strict=True):
        scaling = matrix(block)
        assert_allclose(scaling.T @ covariance @ scaling, np.eye(len(scaling)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in QUADRATIC if name.endswith("-moment")])
def test_own_covariances_are_the_unbiased_ones_of_r(name: str) -> None:
    model, expected = fitted(name), reference(name)["class_cov_base_r"]
    for covariance, block in zip(model.covariance_, expected.values(), strict=True):
        assert_covariances_equal(covariance, matrix(block))


@pytest.mark.parametrize(
    "fit",
    reference("iris-rda")["fits"],
    ids=lambda fit: f"lambda={fit['lambda']},gamma={fit['gamma']}",
)
def test_regularized_covariances_give_the_posteriors_of_klar_rda(fit: dict[str, Any]) -> None:
    model, rows = fitted_rda(pooling=fit["lambda"], sphering=fit["gamma"]), rows_of("iris-rda")
    posteriors = model.predict_proba(listed(rows.X, reference("iris-rda")["rows"]))
    assert_posteriors_equal(posteriors, fit["posterior"], "iris-rda")
    assert_same_verdict(model, rows, fit["train"])


def test_fully_pooled_covariances_are_the_pooled_one_of_klar_rda() -> None:
    model = fitted_rda(pooling=1, sphering=0)
    assert_allclose(model.class_prior_, matrix(reference("iris-rda")["prior"]), rtol=1e-14)
    assert model.covariance_.shape == (3, 4, 4)
    for covariance in model.covariance_:
        assert_covariances_equal(covariance, matrix(reference("iris-rda")["pooled"]))


@pytest.mark.parametrize("divisor", DIVISORS)
@pytest.mark.parametrize("method", ["lda", "qda"])
def test_vowel_errors_are_those_of_the_elements_of_statistical_learning(method: str, divisor: str) -> None:
    name = f"vowel-{method}-{divisor}"
    train_and_test_error = reference("vowel-esl-table-4.1")["train_test_error"][method]
    for table, error in zip(("vowel-train", "vowel-test"), train_and_test_error, strict=True):
        rows = rows_of(name, table)
        wrong = np.count_nonzero(fitted(name).predict(rows.X) != rows.y)
        assert wrong == round(error * len(rows.y))
