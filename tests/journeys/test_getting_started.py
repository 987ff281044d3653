"""What the examples of docs/getting-started.md return has the properties that the page states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from likely import EvidenceClassifier, GenerativeClassifier
from tests.pages import ROOT, Example, run

PAGE = ROOT / "docs" / "getting-started.md"


@pytest.fixture(scope="module")
def examples() -> tuple[Example, ...]:
    return run(PAGE)[0]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the examples define."""
    return run(PAGE)[1]


@pytest.fixture(scope="module")
def whole(names: dict[str, Any]) -> GenerativeClassifier:
    """The model of all rows, before the example forgets ten of them."""
    return GenerativeClassifier().fit(names["X"], names["y"])


def test_the_first_example_has_the_recommended_estimator(examples: tuple[Example, ...]) -> None:
    assert f"{EvidenceClassifier.__name__}()" in examples[0].code
    for example in examples[:2]:
        assert len([line for line in example.code.splitlines() if line.strip()]) <= 10


def test_its_table_has_categories(names: dict[str, Any]) -> None:
    assert "Categorical: 'island', 'sex', 'year'" in str(names["model"].summary())


def test_its_posteriors_are_probabilities(names: dict[str, Any]) -> None:
    assert names["posterior"].shape == (344, 3)
    np.testing.assert_allclose(names["posterior"].sum(axis=1), 1.0)


def test_it_rejects_where_an_error_is_likelier_than_the_cost(names: dict[str, Any]) -> None:
    uncertain = 1.0 - names["posterior"].max(axis=1) > 0.1
    assert 0 < uncertain.sum() < 40
    assert names["decisions"].rejected.tolist() == uncertain.tolist()


def test_its_contributions_add_up_to_the_joint(names: dict[str, Any]) -> None:
    explanation = names["explanation"]
    total = explanation.evidence.sum(axis=2) + explanation.offset
    relative = np.log(names["posterior"]) - np.log(names["posterior"]).max(axis=1, keepdims=True)
    np.testing.assert_allclose(total - total.max(axis=1, keepdims=True), relative, atol=1e-8)


def test_its_new_prior_makes_class_0_rarer(names: dict[str, Any]) -> None:
    after = names["shifted"].predict_proba(names["X"])
    assert np.all(after[:, 0] <= names["posterior"][:, 0] + 1e-12)


def test_its_novelty_is_that_of_typicality(names: dict[str, Any], whole: GenerativeClassifier) -> None:
    usual = whole.typicality(names["X"]) > 0.01
    assert usual.sum() > 300
    np.testing.assert_allclose(names["novelty"][usual], -np.log10(whole.typicality(names["X"])[usual]), atol=1e-8)


def test_it_forgets_ten_rows(names: dict[str, Any], whole: GenerativeClassifier) -> None:
    removed = whole.statistics_.counts.rows - names["model"].statistics_.counts.rows
    assert removed.sum() == 10
