"""The tables of docs/estimators.md are those of the classes."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris

import likely
from likely.errors import LikelyError
from tests.pages import ROOT

ESTIMATORS = (
    *("EvidenceClassifier", "GenerativeClassifier", "NaiveBayes", "LinearDiscriminant", "QuadraticDiscriminant"),
    *("NearestPrototype", "MixtureModel", "TextClassifier", "SoftmaxRegression", "HybridClassifier"),
    *("GenerativeRegressor", "Imputer"),
)
ERRORS = {
    "forget": lambda model, X, y: model.forget(X, y),
    "a + b": lambda model, X, y: model + model,
    "drop_class": lambda model, X, y: model.drop_class(model.classes_[0]),
    "left_out_proba": lambda model, X, y: model.left_out_proba(X, y),
    "to_sql": lambda model, X, y: model.to_sql("rows"),
    "to_onnx": lambda model, X, y: model.to_onnx(),
    "to_javascript": lambda model, X, y: model.to_javascript(),
}


def tables() -> list[list[list[str]]]:
    """The tables of the page: rows of cells, without the line of dashes."""
    text = (ROOT / "docs" / "estimators.md").read_text(encoding="utf-8")
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    rows = [[[cell.strip() for cell in line.strip("|").split(" | ")] for line in each.splitlines()] for each in found]
    return [[table[0], *table[2:]] for table in rows]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def cells() -> dict[tuple[str, str], str]:
    """What the table of methods has for each estimator and method."""
    head, *lines = tables()[1]
    found = {}
    for line in lines:
        for group, cell in zip(head[1:], line[1:], strict=True):
            for estimator in names(group):
                for method in names(line[0]):
                    assert (estimator, method) not in found
                    found[estimator, method] = ("yes" if estimator in names(cell) else "–") if names(cell) else cell[:5]
    return {key: value.rstrip(" ¹²³⁴") for key, value in found.items()}


CELLS = cells()


def methods(estimator: str) -> set[str]:
    """The public methods of an estimator, but for those of all estimators of scikit-learn."""
    model = getattr(likely, estimator)()
    public = {name for name in dir(model) if not name.startswith(("_", "set_")) and not name.endswith("_")}
    found = {name for name in public - set(dir(BaseEstimator)) if callable(getattr(model, name, None))}
    return found | ({"a + b"} if hasattr(model, "__add__") else set())


@cache
def fitted(estimator: str) -> tuple[Any, Any, Any]:
    model: Any = getattr(likely, estimator)()
    X, y = load_iris(return_X_y=True)
    if estimator == "TextClassifier":
        X, y = np.array(["win a prize", "see you at home"] * 10), np.array(["spam", "ham"] * 10)
    if estimator == "HybridClassifier":
        model.set_params(families=likely.Gaussian(shared=True))
    if estimator == "MixtureModel":
        return model.set_params(n_components=2, n_init=1).fit(X), X, y
    return model.fit(X, y), X, y


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_page_has_exactly_the_methods_of_an_estimator(estimator: str) -> None:
    stated = {method: cell for (name, method), cell in CELLS.items() if name == estimator}
    assert set(stated.values()) <= {"yes", "error", "–"}
    found = methods(estimator)
    assert found <= set(stated), "methods without a line"
    assert {method for method in stated if stated[method] == "yes"} <= found
    assert not {method for method in stated if stated[method] == "–"} & found


@pytest.mark.parametrize(("estimator", "method"), [key for key, cell in CELLS.items() if cell == "error"])
def test_methods_that_are_an_error_raise_one_of_the_library(estimator: str, method: str) -> None:
    assert method in methods(estimator)
    with pytest.raises(LikelyError):
        ERRORS[method](*fitted(estimator))


def test_the_page_has_all_estimators() -> None:
    found = {
        name
        for name in likely.__all__
        if isinstance(getattr(likely, name), type)
        and issubclass(getattr(likely, name), BaseEstimator)
        and hasattr(getattr(likely, name), "fit")
    }
    assert found == set(ESTIMATORS) == {name for name, _ in CELLS}
    assert [names(line[0])[0] for line in tables()[0][1:]] == list(ESTIMATORS)


@pytest.mark.parametrize("line", tables()[0][1:], ids=lambda line: names(line[0])[0])
def test_the_page_has_the_default_of_estimation(line: list[str]) -> None:
    default = getattr(likely, names(line[0])[0])().get_params().get("estimation")
    assert line[2] == ("–" if default is None else f'`"{default}"`')


@pytest.mark.parametrize(
    ("estimator", "attribute"),
    [(name, attribute) for line in tables()[2][1:] for name in names(line[0]) for attribute in names(line[1])],
)
def test_attributes_of_an_estimator_exist_after_a_fit(estimator: str, attribute: str) -> None:
    model, X, _ = fitted(estimator)
    if attribute in ("coef_", "intercept_") and estimator == "GenerativeRegressor":
        model = likely.GenerativeRegressor().fit(X[:, :3], X[:, 3])
    assert hasattr(model, attribute)
    unfitted = getattr(likely, estimator)()
    assert not hasattr(unfitted, attribute)
