"""scikit-learn's own estimator checks, with no expected failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from likely import (
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

# Plain maximum likelihood does not exist on all the data of the checks: some of it has a column that is constant
# within every class and differs between them, or classes with fewer rows than columns.
ONE_OF_EACH_CLASS = [
    GenerativeClassifier(),
    Imputer(),
    MixtureModel(2, random_state=0),
    NaiveBayes(estimation="map"),
    LinearDiscriminant(estimation="bayes"),
    QuadraticDiscriminant(shrinkage=0.1),
    NearestPrototype(covariance="full", estimation="map"),
    HybridClassifier(blend=0.5),
    SoftmaxRegression(),
    GenerativeRegressor(components=2, n_init=1, random_state=0),
]
OTHERS = [
    MixtureModel(2, Gaussian("diagonal"), estimation="bayes"),
    GenerativeClassifier(estimation="map"),
    GenerativeClassifier(families=Gaussian("diagonal")),
    NaiveBayes(),
    NaiveBayes(families=Gaussian(shared=True)),
    LinearDiscriminant(shrinkage=0.1),
    LinearDiscriminant(estimation="map"),
    QuadraticDiscriminant(estimation="bayes"),
    NearestPrototype(),
    SoftmaxRegression(estimation="bayes"),
    GenerativeRegressor(),
    GenerativeRegressor(estimation="mle"),
    GenerativeRegressor(estimation="map", shared=True),
]
EXPECTED_WARNINGS = "ignore::likely.errors.DependentColumnsWarning", "ignore::likely.errors.NotConvergedWarning"


@pytest.mark.filterwarnings(*EXPECTED_WARNINGS)
@parametrize_with_checks(ONE_OF_EACH_CLASS)  # type: ignore[untyped-decorator]
def test_scikit_learns_checks_pass(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.long
@pytest.mark.filterwarnings(*EXPECTED_WARNINGS)
@parametrize_with_checks(OTHERS)  # type: ignore[untyped-decorator]
def test_scikit_learns_checks_pass_with_other_options(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
