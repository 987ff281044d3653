"""Class probabilities do not depend on labels, units of columns, or the order of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from likely import EvidenceClassifier
from tests.helpers import load_table
from tests.unit.evidence.tables import mixed

NAMES: list[list[Any]] = [["z", "a", "m"], [3, 1, 2], ["Gentoo", "b", "Adelie"]]


def table(n: int) -> tuple[pd.DataFrame, Any]:
    X, y = mixed(n, seed=n)
    return X.assign(count=np.random.default_rng(n).poisson(9, n)), y


def changed_units(X: pd.DataFrame) -> pd.DataFrame:
    return X.assign(x=X["x"] * 0.0254, z=X["z"] * 1.8 + 32.0, w=X["w"] * 1e6 - 7e6, count=X["count"] * 12 + 5)


@pytest.mark.parametrize("n", [30, 61, 200])
def test_names_of_classes_and_units_of_columns_do_not_change_probabilities(n: int) -> None:
    X, y = table(n)
    probabilities = EvidenceClassifier(n_trees=10).fit(X, y).predict_proba(X)
    for labels in NAMES:
        names = dict(zip(["a", "b", "c"], labels, strict=True))
        model = EvidenceClassifier(n_trees=10).fit(X, np.array([names[label] for label in y]))
        place = [model.classes_.tolist().index(names[label]) for label in ["a", "b", "c"]]
        assert_allclose(model.predict_proba(X)[:, place], probabilities, rtol=0.0, atol=1e-6)
    other = changed_units(X)
    assert_allclose(
        EvidenceClassifier(n_trees=10).fit(other, y).predict_proba(other), probabilities, rtol=0.0, atol=1e-6
    )
    order = np.random.default_rng(0).permutation(n)
    model = EvidenceClassifier(n_trees=10).fit(X.iloc[order, ::-1], y[order])
    assert_allclose(model.predict_proba(X), probabilities, rtol=0.0, atol=1e-6)


def test_units_and_labels_do_not_matter_for_the_penguins() -> None:
    birds = load_table("penguins").iloc[::9]
    X, y = birds.drop(columns="species"), birds["species"]
    model = EvidenceClassifier(n_trees=10).fit(X, y)
    pounds = X.assign(body_mass_g=X["body_mass_g"] * 0.0022046, bill_length_mm=X["bill_length_mm"] / 25.4)
    renamed = EvidenceClassifier(n_trees=10).fit(pounds, y.map({"Adelie": "z", "Chinstrap": "k", "Gentoo": "a"}))
    assert_allclose(renamed.predict_proba(pounds)[:, [2, 1, 0]], model.predict_proba(X), rtol=0.0, atol=1e-6)
