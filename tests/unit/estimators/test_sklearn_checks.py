"""scikit-learn's own estimator checks; those that fail at defaults are listed with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from likely import (
    EvidenceClassifier,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    Imputer,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    NearestPrototype,
    QuadraticDiscriminant,
    SoftmaxRegression,
)

DEFAULTS = [
    EvidenceClassifier(["columns", "trees"], n_trees=2),  # with all views among OTHERS
    GenerativeClassifier(),
    GenerativeRegressor(),
    Imputer(),
    LinearDiscriminant(),
    MixtureModel(),
    NaiveBayes(),
    NearestPrototype(),
    QuadraticDiscriminant(),
    SoftmaxRegression(),
    HybridClassifier(blend=0.5),  # its default chooses the blend by cross-validation, which takes long: see OTHERS
]
CONSTANT = "a column of the data is constant within every class: its likelihood has no maximum"
SPARSE_CHECKS = ("check_estimator_sparse_array", "check_estimator_sparse_matrix", "check_estimator_sparse_tag")
EXPECTED_FAILURES: dict[Any, dict[str, str]] = {
    LinearDiscriminant: {"check_sample_weights_shape": CONSTANT, "check_sample_weights_not_overwritten": CONSTANT},
    QuadraticDiscriminant: {
        "check_sample_weights_shape": CONSTANT,
        "check_sample_weights_not_overwritten": CONSTANT,
        "check_sample_weight_equivalence_on_dense_data": "the classes have fewer rows than columns",
    },
    HybridClassifier: {"check_estimators_nan_inf": "an infinite number is an unseen category"},
    MixtureModel: dict.fromkeys(SPARSE_CHECKS, "only joint Gaussians need dense rows, and categories have none"),
}
OTHERS = [
    HybridClassifier(),
    EvidenceClassifier(),
    MixtureModel(2, random_state=0),
    NaiveBayes(estimation="map"),
    LinearDiscriminant(estimation="bayes"),
    QuadraticDiscriminant(shrinkage=0.1),
    NearestPrototype(covariance="full", estimation="map"),
    GenerativeRegressor(components=2, n_init=1, random_state=0),
    MixtureModel(2, Gaussian("diagonal"), estimation="bayes"),
    GenerativeClassifier(estimation="map"),
    GenerativeClassifier(families=Gaussian("diagonal")),
    NaiveBayes(families=Gaussian(shared=True)),
    LinearDiscriminant(shrinkage=0.1),
    LinearDiscriminant(estimation="map"),
    QuadraticDiscriminant(estimation="bayes"),
    SoftmaxRegression(estimation="bayes"),
    GenerativeRegressor(estimation="mle"),
    GenerativeRegressor(estimation="map", shared=True),
]
# Estimators that take categories are checked with whole numbers, which are categories.
EXPECTED_WARNINGS = (
    "ignore::likely.errors.DependentColumnsWarning",
    "ignore::likely.errors.EarlyChoiceWarning",
    "ignore::likely.errors.NotConvergedWarning",
    "ignore::likely.errors.UnseenCategoriesWarning",
)


@pytest.mark.filterwarnings(*EXPECTED_WARNINGS)
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    DEFAULTS, expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator), {})
)
def test_scikit_learns_checks_pass_at_defaults(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.long
@pytest.mark.filterwarnings(*EXPECTED_WARNINGS)
@parametrize_with_checks(OTHERS)  # type: ignore[untyped-decorator]
def test_scikit_learns_checks_pass_with_other_options(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
