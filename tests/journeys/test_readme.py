"""The example and the statements of the README are true."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from likely.families import MEMBERS
from tests.pages import ROOT, Example, run

README = ROOT / "README.md"


@pytest.fixture(scope="module")
def example() -> Example:
    (found,) = run(README)[0]
    return found


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the example defines."""
    return run(README)[1]


def test_the_example_has_at_most_ten_lines(example: Example) -> None:
    assert len([line for line in example.code.splitlines() if line.strip()]) <= 10


def test_its_accuracy_is_the_one_shown(example: Example) -> None:
    assert example.shown is not None
    assert example.matches(tolerance=0.0)
    assert float(example.printed.split()[-1]) > 0.95


def test_its_table_has_missing_values(names: dict[str, Any]) -> None:
    stated = re.search(r"(\d+) missing values", README.read_text(encoding="utf-8"))
    assert stated is not None
    assert int(names["X"].isna().sum().sum()) == int(stated[1])


def test_it_counts_the_families() -> None:
    word = ["Sixteen", "Seventeen", "Eighteen", "Nineteen", "Twenty"][len(MEMBERS) - 16]
    assert f"{word} families can be declared" in README.read_text(encoding="utf-8")


def test_its_posteriors_are_probabilities(names: dict[str, Any]) -> None:
    assert names["posterior"].shape == (344, 3)
    np.testing.assert_allclose(names["posterior"].sum(axis=1), 1.0)


def test_its_contributions_add_up_to_the_posterior(names: dict[str, Any]) -> None:
    explanation = names["explanation"]
    total = explanation.evidence.sum(axis=2) + explanation.offset
    relative = np.log(names["posterior"]) - np.log(names["posterior"]).max(axis=1, keepdims=True)
    np.testing.assert_allclose(total - total.max(axis=1, keepdims=True), relative, atol=1e-8)


def test_it_is_good_at_ten_things_in_at_most_40_words_each_with_a_link() -> None:
    section = README.read_text(encoding="utf-8").split("## What it is good at")[1].split("\n## ")[0]
    bullets = re.findall(r"^- (.*)$", section, re.MULTILINE)
    assert len(bullets) == 10
    for bullet in bullets:
        assert "](docs/" in bullet
        assert len(re.sub(r"\]\([^)]*\)", "]", bullet).split()) <= 40, bullet


def test_it_recommends_the_same_estimators_as_getting_started() -> None:
    def advice(page: str) -> list[str]:
        section = (ROOT / page).read_text(encoding="utf-8").split("## Which estimator?")[1].split("\n## ")[0]
        return re.findall(r"^- .*$", section, re.MULTILINE)

    assert len(advice("README.md")) == 5
    assert advice("README.md") == advice("docs/getting-started.md")


def test_its_scores_are_those_of_the_page_of_benchmarks() -> None:
    stated = re.search(r"log-loss (0\.\d+) on the others; .* have (0\.\d+)", README.read_text(encoding="utf-8"))
    assert stated is not None
    benchmarks = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").split("## Few rows")[1]
    line = re.search(r"^\| penguins \| ([^|]*)\|", benchmarks, re.MULTILINE)
    assert line is not None
    model, _, lda, _, logistic = re.findall(r"\d\.\d{3}", line[1])
    assert (stated[1], stated[2], stated[2]) == (model, lda, logistic)
