"""The examples and numbers of the README are true."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from benchmarks.tables import MODELS, scores, table
from likely.families import MEMBERS
from tests.pages import ROOT, Example, run

README = ROOT / "README.md"


@pytest.fixture(scope="module")
def examples() -> tuple[Example, ...]:
    return run(README)[0]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the examples define."""
    return run(README)[1]


def test_the_examples_have_about_ten_lines(examples: tuple[Example, ...]) -> None:
    for example in examples:
        assert len([line for line in example.code.splitlines() if line.strip()]) <= 10


def test_its_accuracy_is_the_one_shown(examples: tuple[Example, ...]) -> None:
    assert examples[0].shown is not None
    assert examples[0].matches(tolerance=0.0)
    assert float(examples[0].printed.split()[-1]) > 0.95


def test_its_table_has_categories_and_missing_values(names: dict[str, Any]) -> None:
    stated = re.search(r"(\d+) missing values", README.read_text(encoding="utf-8"))
    assert stated is not None
    assert int(names["X"].isna().sum().sum()) == int(stated[1])
    assert "Categorical: 'island', 'sex', 'year'" in str(names["model"].summary())


def test_it_counts_the_families() -> None:
    assert len(MEMBERS) == 16
    assert "has sixteen families" in README.read_text(encoding="utf-8")


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
    np.testing.assert_allclose(total - total.max(axis=1, keepdims=True), relative(names["posterior"]), atol=1e-8)


def relative(posterior: Any) -> Any:
    """Log-posteriors relative to the most probable class: the log-joint up to a term per row."""
    return np.log(posterior) - np.log(posterior).max(axis=1, keepdims=True)


def test_its_new_prior_makes_class_0_rarer(names: dict[str, Any]) -> None:
    after = names["shifted"].predict_proba(names["X"])
    assert np.all(after[:, 0] <= names["posterior"][:, 0] + 1e-12)


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_the_accuracy_table_can_be_reproduced(name: str) -> None:
    line = re.search(rf"^\| {name} \|.*$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert line is not None
    stated = [float(number) for number in re.findall(r"\d\.\d{3}", line[0])]
    X, y = table(name)
    found = [score for model in list(MODELS.values())[:3] for score in scores(model, X, y, reverse=False)]
    np.testing.assert_allclose(found, stated, atol=6e-4)
