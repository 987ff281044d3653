"""The methods of classifiers are stated once: few classes, one body for each method, inherited docstrings."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier

import likely
from likely.data.validation import read_table
from likely.estimators.posterior import Posterior

ESTIMATORS: list[Any] = [
    each
    for each in (getattr(likely, name) for name in likely.__all__)
    if inspect.isclass(each) and hasattr(each, "fit")
]
ESTIMATORS = [each for each in ESTIMATORS if "families" not in each.__module__]
METHODS = {name for name, value in vars(Posterior).items() if inspect.isfunction(value) and not name.startswith("__")}
METHODS |= {"adapt_prior", "with_prior", "log_joint", "log_density", "score_samples", "typicality", "novelty", "sample"}


def own_classes(estimator: Any) -> list[Any]:
    return [kind for kind in estimator.__mro__ if kind.__module__.startswith("likely")]


def bodies() -> Iterator[tuple[str, str, str]]:
    """(class, method, body) of every method of a posterior that a class states itself."""
    for kind in {each for estimator in ESTIMATORS for each in own_classes(estimator)}:
        for name in METHODS & set(vars(kind)):
            function = inspect.unwrap(vars(kind)[name])
            if inspect.isfunction(function) and function.__qualname__ == f"{kind.__name__}.{name}":
                (found,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
                assert isinstance(found, ast.FunctionDef)
                statements = found.body[1:] if ast.get_docstring(found) else found.body
                yield kind.__name__, name, ast.dump(ast.Module(statements, []))


def test_twelve_estimators_are_examined() -> None:
    assert len(ESTIMATORS) == 12
    assert len(METHODS) > 15


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: each.__name__)
def test_an_estimator_has_at_most_four_classes_of_the_library(estimator: Any) -> None:
    assert len(own_classes(estimator)) <= 4


@pytest.mark.parametrize(
    "estimator", [each for each in ESTIMATORS if is_classifier(each())], ids=lambda each: each.__name__
)
def test_every_classifier_has_the_methods_of_the_posterior_from_one_place(estimator: Any) -> None:
    assert issubclass(estimator, Posterior)
    for name in METHODS & {"predict", "predict_proba", "predict_log_proba", "score", "decide", "reliability", "save"}:
        assert inspect.unwrap(getattr(estimator, name)) is inspect.unwrap(getattr(Posterior, name))


def test_no_two_classes_state_the_same_method_with_the_same_body() -> None:
    found: dict[tuple[str, str], str] = {}
    for kind, name, body in bodies():
        assert (name, body) not in found, f"{name} of {kind} and of {found.get((name, body))}"
        found[name, body] = kind


def test_docstrings_say_what_a_row_is() -> None:
    documents, complete = likely.TextClassifier.predict.__doc__ or "", likely.SoftmaxRegression.predict.__doc__ or ""
    assert "\n    Documents.\n" in documents
    assert "n_features" not in documents
    assert "\n    Rows without missing values" in complete
    assert "Missing values are allowed" in (likely.NaiveBayes.predict.__doc__ or "")


def test_a_posterior_needs_rows_and_scores_alone() -> None:
    class Nearest(Posterior):
        """Scores are negative squared distances to the means."""

        def fit(self, X: Any, y: Any) -> Nearest:
            self.classes_ = np.unique(y)
            self.means_ = np.array([np.mean(X[y == label], axis=0) for label in self.classes_])
            return self

        def _read(self, X: Any, start: int = 0) -> Any:
            return read_table(X, start)

        def _over_scores(self, rows: Any, work: Any) -> None:
            block = rows.block(0, rows.rows)
            work(0, rows.rows, -((block - self.means_[:, None]) ** 2).sum(axis=2))

        def _content(self) -> dict[str, Any]:
            return {}

    X, y = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array(["a", "a", "b", "b"])
    model = Nearest().fit(X, y)
    assert model.predict(X).tolist() == y.tolist()
    assert model.score(X, y) == 1.0
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    np.testing.assert_allclose(model.decision_function([[2.5]]), 0.0, atol=1e-12)
    assert model.decide([[2.4], [0.0]], reject=0.2, reject_label="?").action.tolist() == ["?", "a"]
    assert model.reliability(X, y, bins=2).count.sum() == 4
