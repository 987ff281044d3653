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

ESTIMATORS = [
    GenerativeClassifier(),
    Imputer(),
    MixtureModel(2, random_state=0),
    MixtureModel(2, Gaussian("diagonal"), estimation="bayes"),
    GenerativeClassifier(estimation="map"),
    GenerativeClassifier(families=Gaussian("diagonal")),
    NaiveBayes(),
    NaiveBayes(estimation="map"),
    NaiveBayes(families=Gaussian(shared=True)),
    # Plain maximum likelihood does not exist on all the data of the checks: some of it has a column that is
    # constant within every class and differs between them, or classes with fewer rows than columns.
    LinearDiscriminant(shrinkage=0.1),
    LinearDiscriminant(estimation="map"),
    LinearDiscriminant(estimation="bayes"),
    QuadraticDiscriminant(shrinkage=0.1),
    QuadraticDiscriminant(estimation="bayes"),
    NearestPrototype(),
    HybridClassifier(blend=0.5),
    SoftmaxRegression(),
    SoftmaxRegression(estimation="bayes"),
    NearestPrototype(covariance="full", estimation="map"),
    GenerativeRegressor(),
    GenerativeRegressor(estimation="mle"),
    GenerativeRegressor(estimation="map", shared=True),
    GenerativeRegressor(components=2, n_init=1, random_state=0),
]


@pytest.mark.filterwarnings("ignore::likely.errors.DependentColumnsWarning")
@pytest.mark.filterwarnings("ignore::likely.errors.NotConvergedWarning")
@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator]
def test_scikit_learns_checks_pass(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
