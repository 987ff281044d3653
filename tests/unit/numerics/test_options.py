"""Unknown options of all classes and functions that users call."""

from __future__ import annotations

import inspect
import pickle
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils.class_weight import compute_sample_weight

import likely
from likely import (
    EvidenceClassifier,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    QuadraticDiscriminant,
    SoftmaxRegression,
    TextClassifier,
    compare,
    cross_validate,
    select,
)
from likely.data import row_blocks
from likely.errors import InputError, InputTypeError, LikelyError
from likely.numerics import threads

CLASSES = [
    found
    for found in (getattr(likely, name) for name in likely.__all__)
    if inspect.isclass(found) and issubclass(found, BaseEstimator)
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_unknown_option_is_an_error_of_the_library_that_names_the_class(kind: Any) -> None:
    with pytest.raises(
        InputTypeError, match=rf"^{kind.__name__}\.__init__\(\) got an unexpected .* 'colour'\. (There|Did)"
    ):
        kind(colour="red")


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_options_are_those_of_the_signature(kind: Any) -> None:
    names = set(inspect.signature(kind).parameters)
    model = kind()
    assert set(model.get_params(deep=False)) == names
    assert type(clone(model)) is kind
    assert type(pickle.loads(pickle.dumps(model))) is kind


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: NaiveBayes(class_weight="balanced"), "class_prior='uniform'.*sample_weight"),  # type: ignore[call-arg]
        (lambda: EvidenceClassifier(class_weight="balanced"), "class_prior='uniform'.*sample_weight"),  # type: ignore[call-arg]
        (lambda: SoftmaxRegression(class_weight="balanced"), "class_prior='uniform'.*sample_weight"),  # type: ignore[call-arg]
        (lambda: TextClassifier(class_weight="balanced"), "class_prior='uniform'"),  # type: ignore[call-arg]
        (lambda: LinearDiscriminant(priors=[0.5, 0.5]), "Use class_prior"),  # type: ignore[call-arg]
        (lambda: LinearDiscriminant(solver="lsqr"), "no solver"),  # type: ignore[call-arg]
        (lambda: LinearDiscriminant(store_covariance=True), "covariance_"),  # type: ignore[call-arg]
        (lambda: QuadraticDiscriminant(reg_param=0.1), "shrinkage=Regularized"),  # type: ignore[call-arg]
        (lambda: GenerativeClassifier(n_jobs=2), "LOKY_MAX_CPU_COUNT"),  # type: ignore[call-arg]
        (lambda: GenerativeClassifier(random_state=0), "Nothing here is random"),  # type: ignore[call-arg]
        (lambda: NaiveBayes(var_smoothing=1e-9), "default prior"),  # type: ignore[call-arg]
        (lambda: likely.Multinomial(alpha=1.0), "Use smoothing"),  # type: ignore[call-arg]
        (lambda: NaiveBayes(alpha=1.0), "Multinomial"),  # type: ignore[call-arg]
        (lambda: SoftmaxRegression(C=1.0), "1/C"),  # type: ignore[call-arg]
        (lambda: MixtureModel(2, covariance_type="full"), r"Gaussian\('full'\)"),  # type: ignore[call-arg]
        (lambda: Gaussian(covarience="full"), "Did you mean 'covariance'"),  # type: ignore[call-arg]
        (lambda: cross_validate(NaiveBayes(), [[1.0]], [0], fold=3), "Did you mean 'folds'"),  # type: ignore[call-arg]
        (lambda: cross_validate(NaiveBayes(), [[1.0]], [0], return_train_score=True), "held-out"),  # type: ignore[call-arg]
        (lambda: select([[1.0]], [0], cv=3), "Use folds"),  # type: ignore[call-arg]
        (lambda: select([[1.0]], [0], scoring="accuracy"), "Use by"),  # type: ignore[call-arg]
        (lambda: compare([[1.0]], [0], cv=3), "Use repeats"),  # type: ignore[call-arg]
    ],
    ids=lambda each: each if isinstance(each, str) else "call",
)
def test_usual_options_of_scikit_learn_are_errors_that_name_the_counterpart(call: Any, remedy: str) -> None:
    with pytest.raises(TypeError, match="unexpected keyword") as caught:
        call()
    assert isinstance(caught.value, LikelyError)
    assert re.search(remedy, str(caught.value))


def test_options_of_classes_that_users_derive_are_checked_too() -> None:
    class Mine(NaiveBayes):
        def __init__(self, extra: int = 1) -> None:
            super().__init__()
            self.extra = extra

    class Open(NaiveBayes):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)

    assert Mine(extra=2).extra == 2
    with pytest.raises(InputTypeError, match=r"Mine\.__init__\(\) got .* 'extras'\. Did you mean 'extra'"):
        Mine(extras=2)  # type: ignore[call-arg]
    with pytest.raises(InputTypeError, match=r"Open\.__init__\(\) got .* 'famlies'\. Did you mean 'families'"):
        Open(famlies=None)


def test_n_jobs_limits_threads_and_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cpu_count", lambda: 4)
    counted = threads.worker_count
    found: set[int] = set()

    def recorded(tasks: int) -> int:
        found.add(counted(tasks))
        return counted(tasks)

    monkeypatch.setattr(row_blocks, "worker_count", recorded)
    monkeypatch.setattr(threads, "worker_count", recorded)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 6)), rng.integers(0, 2, 3000)
    expected = EvidenceClassifier(n_trees=3, views=["columns", "trees"]).fit(X, y).predict_proba(X)
    assert max(found) > 1
    for n_jobs, most in ((1, 1), (-4, 1), (-9, 1), (3, 3)):
        found.clear()
        model = EvidenceClassifier(n_trees=3, views=["columns", "trees"], n_jobs=n_jobs).fit(X, y)
        assert np.allclose(model.predict_proba(X), expected, rtol=1e-12)
        assert max(found) <= most
    assert counted(100) == 4


@pytest.mark.parametrize("n_jobs", [0, "all", 1.5, True])
def test_a_number_of_jobs_is_whole_and_not_0(n_jobs: Any) -> None:
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    for call in (
        lambda: EvidenceClassifier(n_jobs=n_jobs).fit(X, y),
        lambda: cross_validate(NaiveBayes(), X, y, 2, n_jobs=n_jobs),
    ):
        with pytest.raises(InputError, match="is not a number of jobs"):
            call()


def test_the_remedies_for_class_weights_work() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], [180, 20])
    X = rng.normal(size=(200, 2)) + (y == "b")[:, None]
    uniform = LinearDiscriminant(class_prior="uniform").fit(X, y)
    assert uniform.class_prior_.tolist() == [0.5, 0.5]
    weighted = LinearDiscriminant().fit(X, y, compute_sample_weight("balanced", y))
    assert weighted.class_prior_ == pytest.approx([0.5, 0.5])
    assert EvidenceClassifier(n_trees=5).fit(X, y).with_prior("uniform").predict_proba(X)[:, 1].mean() > 0.2
    assert SoftmaxRegression().fit(X, y, compute_sample_weight("balanced", y)).predict_proba(X)[:, 1].mean() > 0.2
