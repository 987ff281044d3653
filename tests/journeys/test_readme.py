"""The example of the README works as it stands, and says what its comments say."""

from __future__ import annotations

import re
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def example() -> str:
    """The first block of Python in the README."""
    found = re.search(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def names(example: str) -> dict[str, Any]:
    """What the example defines, in a clone."""
    namespace: dict[str, Any] = {}
    with chdir(README.parent):
        exec(compile(example, str(README), "exec"), namespace)
    return namespace


def test_the_example_has_about_ten_lines(example: str) -> None:
    assert len([line for line in example.splitlines() if line.strip()]) <= 10


def test_its_accuracy_is_the_one_in_the_comment(example: str, names: dict[str, Any]) -> None:
    stated = re.search(r"accuracy = .*# ([\d.]+)", example)
    assert stated is not None
    assert round(names["accuracy"], 3) == float(stated[1]) > 0.95


def test_its_table_has_labels_and_missing_cells(example: str, names: dict[str, Any]) -> None:
    stated = re.search(r"(\d+) cells are missing", example)
    assert stated is not None
    assert int(names["X"].isna().sum().sum()) == int(stated[1])
    assert names["X"][1::2].isna().sum().sum() > 0
    assert "Categorical: 'island', 'sex', 'year'" in str(names["model"].summary())


def test_its_posteriors_are_probabilities(names: dict[str, Any]) -> None:
    assert names["posterior"].shape == (172, 3)
    np.testing.assert_allclose(names["posterior"].sum(axis=1), 1.0)


def test_it_rejects_where_an_error_is_likelier_than_the_cost(names: dict[str, Any]) -> None:
    uncertain = 1.0 - names["posterior"].max(axis=1) > 0.1
    assert 0 < uncertain.sum() < 20
    assert names["decisions"].rejected.tolist() == uncertain.tolist()


def test_its_reasons_add_up_to_the_joint(names: dict[str, Any]) -> None:
    reasons = names["reasons"]
    total = reasons.evidence.sum(axis=2) + reasons.offset
    np.testing.assert_allclose(total, names["model"].log_joint(names["X"][1::2]), rtol=1e-10)


def test_its_new_prior_makes_class_0_rarer(names: dict[str, Any]) -> None:
    after = names["rarer"].predict_proba(names["X"][1::2])
    assert np.all(after[:, 0] <= names["posterior"][:, 0] + 1e-12)
