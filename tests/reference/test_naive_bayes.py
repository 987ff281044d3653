"""Naive Bayes of the R packages e1071 and naivebayes, number by number.

R divides variances by n − 1: `unbiased=True` here. `laplace` of the packages is `smoothing`, and their class prior is
the observed shares: `Dirichlet(1.0)` under "map". `tests/data/README.md` says what made the files.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.datasets import load_digits

from likely import Bernoulli, Categorical, Dirichlet, GammaPrior, Gaussian, Multinomial, NaiveBayes, Poisson
from tests.helpers import load_reference, load_table

Floats = NDArray[np.float64]

GAUSSIAN = [f"{dataset}-gaussian-nb" for dataset in ("iris", "penguins", "pima", "vowel", "wine")]
CATEGORICAL = [f"housevotes84-categorical-nb-laplace{s}" for s in (0, 1, 3)] + ["zoo-categorical-nb-laplace1"]
BERNOULLI = [f"housevotes84-bernoulli-nb-laplace{s}" for s in ("0.5", "1")]
MIXED = [
    "breastcancer_wisconsin-mixed-nb-laplace0",
    "pima_missing-mixed-nb-laplace0",
    "penguins-mixed-nb-laplace0",
    "penguins-mixed-nb-laplace1",
    "german_credit-mixed-nb-laplace1",
]
COUNTS = ["optdigits-multinomial-nb", "optdigits-poisson-nb"]

# Every island of the penguins lacks some species, and e1071 takes 0.001 for a probability of 0.
RULES_OUT = "penguins-mixed-nb-laplace0"
FITTED_ROWS = [name for name in GAUSSIAN + CATEGORICAL + BERNOULLI + MIXED if name != RULES_OUT]
OTHER_ROWS = ["vowel-gaussian-nb", *COUNTS]

TABLE_AND_TARGET = {
    "breastcancer_wisconsin": ("breastcancer_wisconsin", "Class"),
    "german_credit": ("german_credit", "class"),
    "housevotes84": ("housevotes84", "Class"),
    "iris": ("iris", "Species"),
    "optdigits": ("optdigits-train", "digit"),
    "penguins": ("penguins", "species"),
    "pima": ("pima_missing", "diabetes"),
    "pima_missing": ("pima_missing", "diabetes"),
    "vowel": ("vowel-train", "y"),
    "wine": ("wine", "class"),
    "zoo": ("zoo", "type"),
}

MEASURED = Gaussian(unbiased=True)


class Rows(NamedTuple):
    X: pd.DataFrame
    y: NDArray[Any]


@cache
def reference(name: str) -> dict[str, Any]:
    return load_reference(name)


def columns_of(name: str) -> list[str]:
    """The columns of a model, as its file names them."""
    expected = reference(name)
    for table, axis in (("mean", "cols"), ("prob1", "rows"), ("params", "rows")):
        if table in expected:
            return list(expected[table][axis])
    return list(expected["tables" if "tables" in expected else "levels_by_feature"])


@cache
def rows_of(name: str) -> Rows:
    """The rows that were fitted: all, or the complete ones where the package has no use for others."""
    table, target = TABLE_AND_TARGET[name.partition("-")[0]]
    columns, frame = columns_of(name), load_table(table)
    if name in GAUSSIAN:
        frame = frame.dropna(subset=columns)
    X = frame[columns]
    if name in BERNOULLI:
        X = X.apply(lambda votes: votes.map({"n": 0.0, "y": 1.0}))
    return Rows(X, frame[target].to_numpy())


@cache
def other_rows_of(name: str) -> Rows:
    """Rows that were not fitted; scikit-learn ships the other part of the digits."""
    if name in COUNTS:
        digits = load_digits()
        return Rows(pd.DataFrame(digits.data, columns=columns_of(name)), digits.target)
    frame = load_table("vowel-test")
    return Rows(frame[columns_of(name)], frame["y"].to_numpy())


def laplace_of(name: str) -> float:
    return float(name.rpartition("laplace")[2])


@cache
def fitted(name: str) -> NaiveBayes:
    X, y = rows_of(name)
    if name in GAUSSIAN:
        return NaiveBayes(MEASURED, estimation="mle").fit(X, y)
    if name in MIXED:
        return fitted_mixed(name)
    if name == "optdigits-multinomial-nb":
        return fitted_with_prior(name, Multinomial(smoothing=1.0))
    if name == "optdigits-poisson-nb":  # an event more in each class, in no time
        return fitted_with_prior(name, Poisson(prior=GammaPrior(events=1.0, exposure=1e-300)))
    if laplace_of(name) == 0.0:
        return NaiveBayes(Categorical(), estimation="mle").fit(X, y)
    kind = Bernoulli if name in BERNOULLI else Categorical
    return fitted_with_prior(name, kind(smoothing=laplace_of(name)))


def fitted_with_prior(name: str, family: Bernoulli | Categorical | Multinomial | Poisson) -> NaiveBayes:
    return NaiveBayes(family, class_prior=Dirichlet(1.0), estimation="map").fit(*rows_of(name))


def fitted_mixed(name: str) -> NaiveBayes:
    """By maximum likelihood, which smooths the labels and leaves the numbers alone."""
    X, y = rows_of(name)
    measured = reference(name)["numeric"]
    labeled = [column for column in X if column not in measured]
    smoothed = Categorical(smoothing=laplace_of(name))
    families = dict.fromkeys(measured, MEASURED) | dict.fromkeys(labeled, smoothed)
    return NaiveBayes(families, estimation="mle").fit(X, y)


def matrix(block: dict[str, Any]) -> Floats:
    return np.array(block["values"], dtype=np.float64)


def listed(X: pd.DataFrame, row_numbers: Sequence[int]) -> pd.DataFrame:
    """The rows that the reference lists; R counts from 1."""
    return X.iloc[np.array(row_numbers) - 1]


def conditionals_of(model: NaiveBayes, column: str) -> tuple[Any, int]:
    """The densities of the block that a column stands in, and its place there."""
    number = model.model_.names.index(column)
    (block,) = (block for block in model.model_.blocks if number in block.index)
    return block.conditionals, block.index.tolist().index(number)


def means_and_deviations(model: NaiveBayes, column: str) -> Floats:
    """Of a Gaussian column, (classes, 2)."""
    parts, place = conditionals_of(model, column)
    variances = [parts.class_covariance(k)[place, place] for k in range(len(model.classes_))]
    return np.column_stack([parts.class_means()[:, place], np.sqrt(variances)])


def e1071_log_posteriors(model: NaiveBayes, X: pd.DataFrame) -> Floats:
    """What e1071 makes of the evidence of each column: a density of 0 counts as 0.001."""
    told = model.explain(X)
    evidence = np.where(np.exp(told.evidence) == 0.0, np.log(0.001), told.evidence)
    return np.asarray(log_softmax(evidence.sum(axis=2) + told.offset, axis=1))


def assert_same_verdict(model: NaiveBayes, y: NDArray[Any], logs: Floats, expected: dict[str, Any]) -> None:
    """The confusion table, cell by cell, and the total log posterior of the true classes."""
    codes = np.searchsorted(model.classes_, y)
    assert len(codes) == expected["n"]
    assert logs[np.arange(len(codes)), codes].sum() == pytest.approx(
        expected["sum_log_posterior_of_true_class"], rel=1e-9
    )
    if "confusion" in expected:
        confusion = np.zeros((len(model.classes_), len(model.classes_)), dtype=int)
        np.add.at(confusion, (codes, logs.argmax(axis=1)), 1)
        assert_array_equal(confusion, expected["confusion"]["rows_truth_cols_predicted"])


@pytest.mark.parametrize("name", GAUSSIAN + CATEGORICAL + BERNOULLI + MIXED + COUNTS)
def test_classes_and_class_prior_are_those_of_the_packages(name: str) -> None:
    model, expected = fitted(name), reference(name)
    assert [str(label) for label in model.classes_] == expected["classes"]
    if "counts" in expected:
        counts = matrix(expected["counts"])
        assert_array_equal(np.unique(rows_of(name).y, return_counts=True)[1], counts)
        assert_allclose(model.class_prior_, counts / counts.sum(), rtol=1e-14)
    if "prior" in expected:
        assert_allclose(model.class_prior_, matrix(expected["prior"]), rtol=1e-14)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_means_and_deviations_are_those_of_e1071(name: str) -> None:
    expected = reference(name)
    means, standard_deviations = matrix(expected["mean"]), matrix(expected["sd"])
    for j, column in enumerate(columns_of(name)):
        parameters = means_and_deviations(fitted(name), column)
        assert_allclose(parameters, np.column_stack([means[:, j], standard_deviations[:, j]]), rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in CATEGORICAL + MIXED if "tables" in reference(name)])
def test_tables_of_labels_and_moments_of_numbers_are_those_of_e1071(name: str) -> None:
    model = fitted(name)
    for column, expected in reference(name)["tables"].items():
        if expected["cols"] is None:
            assert_allclose(means_and_deviations(model, column), matrix(expected), rtol=1e-12)
        else:
            parts, place = conditionals_of(model, column)
            assert list(parts.vocabularies[place]) == expected["cols"]
            assert_allclose(np.exp(parts.tables[place]), matrix(expected), rtol=1e-12)


def test_categories_are_the_levels_of_e1071() -> None:
    name = "zoo-categorical-nb-laplace1"
    for column, levels in reference(name)["levels_by_feature"].items():
        parts, place = conditionals_of(fitted(name), column)
        assert [str(label).upper() for label in parts.vocabularies[place]] == levels


@pytest.mark.parametrize("name", BERNOULLI)
def test_probabilities_of_yes_are_those_of_naivebayes(name: str) -> None:
    parts, _ = conditionals_of(fitted(name), columns_of(name)[0])
    assert_allclose(parts.probability.T, matrix(reference(name)["prob1"]), rtol=1e-12)


def test_probabilities_of_counts_are_those_of_naivebayes() -> None:
    parts, _ = conditionals_of(fitted("optdigits-multinomial-nb"), "px00")
    assert_allclose(parts.probability.T, matrix(reference("optdigits-multinomial-nb")["params"]), rtol=1e-12)


def test_rates_of_counts_are_those_of_naivebayes() -> None:
    parts, _ = conditionals_of(fitted("optdigits-poisson-nb"), "px00")
    assert_allclose(parts.rate.T, matrix(reference("optdigits-poisson-nb")["params"]), rtol=1e-12)


@pytest.mark.parametrize("name", FITTED_ROWS)
def test_posteriors_are_those_of_the_packages(name: str) -> None:
    expected = reference(name)
    X = listed(rows_of(name).X, expected["rows"])
    if "missing_in_row" in expected:
        assert_array_equal(X.isna().sum(axis=1), expected["missing_in_row"])
    assert_allclose(fitted(name).predict_proba(X), matrix(expected["posterior"]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", FITTED_ROWS)
def test_posteriors_next_to_nothing_keep_their_digits(name: str) -> None:
    expected = reference(name)
    posteriors = matrix(expected["posterior"])
    normal = posteriors > np.finfo(np.float64).tiny
    logs = fitted(name).predict_log_proba(listed(rows_of(name).X, expected["rows"]))
    assert_allclose(logs[normal], np.log(posteriors[normal]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", FITTED_ROWS)
def test_confusion_and_log_posteriors_of_the_fitted_rows_are_those_of_the_packages(name: str) -> None:
    X, y = rows_of(name)
    assert_same_verdict(fitted(name), y, fitted(name).predict_log_proba(X), reference(name)["train"])


@pytest.mark.parametrize("name", OTHER_ROWS)
def test_posteriors_of_rows_not_fitted_are_those_of_the_packages(name: str) -> None:
    expected = reference(name)
    X = listed(other_rows_of(name).X, expected["test_rows"])
    posteriors = matrix(expected["test_posterior"])
    assert_allclose(fitted(name).predict_proba(X), posteriors, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", OTHER_ROWS)
def test_posteriors_next_to_nothing_of_rows_not_fitted_keep_their_digits(name: str) -> None:
    expected = reference(name)
    posteriors = matrix(expected["test_posterior"])
    normal = posteriors > np.finfo(np.float64).tiny
    logs = fitted(name).predict_log_proba(listed(other_rows_of(name).X, expected["test_rows"]))
    assert_allclose(logs[normal], np.log(posteriors[normal]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", OTHER_ROWS)
def test_confusion_and_log_posteriors_of_rows_not_fitted_are_those_of_the_packages(name: str) -> None:
    X, y = other_rows_of(name)
    assert_same_verdict(fitted(name), y, fitted(name).predict_log_proba(X), reference(name)["test"])


@pytest.mark.parametrize("name", GAUSSIAN + CATEGORICAL + MIXED)
def test_evidence_gives_the_posteriors_of_e1071_where_its_0001_stands_for_0(name: str) -> None:
    expected, model, rows = reference(name), fitted(name), rows_of(name)
    logs = e1071_log_posteriors(model, rows.X)
    posteriors = np.exp(logs[np.array(expected["rows"]) - 1])
    assert_array_equal(listed(rows.X, expected["rows"]).isna().sum(axis=1), expected.get("missing_in_row", 0))
    assert_allclose(posteriors, matrix(expected["posterior"]), rtol=1e-9, atol=1e-9)
    assert_same_verdict(model, rows.y, logs, expected["train"])


def test_a_class_without_rows_of_a_category_is_ruled_out_where_e1071_has_a_0001() -> None:
    X, model = rows_of(RULES_OUT).X, fitted(RULES_OUT)
    posteriors = pd.DataFrame(model.predict_proba(X), columns=model.classes_)
    homes = {"Adelie": ("Biscoe", "Dream", "Torgersen"), "Chinstrap": ("Dream",), "Gentoo": ("Biscoe",)}
    for species, islands in homes.items():
        at_home = X["island"].isin(islands).to_numpy()
        assert_array_equal(posteriors[species].to_numpy() > 0.0, at_home)
