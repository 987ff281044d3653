"""The demonstration: it runs, prints at most 40 lines, and its numbers are true."""

from __future__ import annotations

import re
import runpy
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from benchmarks.tables import prepared
from tests.helpers import load_table
from tests.pages import ROOT

SPECIES = ["Adelie", "Chinstrap", "Gentoo"]


@cache
def run() -> tuple[str, str, dict[str, Any]]:
    """What the script prints to standard output and to standard error, and the names that it defines."""
    with redirect_stdout(StringIO()) as output, redirect_stderr(StringIO()) as errors:
        names = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    return output.getvalue(), errors.getvalue(), names


def numbers(label: str) -> list[float]:
    """The numbers of the line that starts with a label."""
    (line,) = re.findall(rf"^{re.escape(label)} +(.*)$", run()[0], re.MULTILINE)
    return [float(word) for word in line.split()]


def held_out() -> tuple[Any, Any]:
    """Posteriors of the held-out birds, and the place of the true species of each."""
    names = run()[2]
    return names["model"].predict_proba(names["X_test"]), np.searchsorted(SPECIES, names["y_test"])


def test_make_demo_prints_at_most_40_lines_to_standard_output() -> None:
    output, errors, _ = run()
    assert re.search(r"^demo:.*\n\t\$\(BIN\)/python examples/demo\.py$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert 20 < len(output.splitlines()) <= 40
    assert max(map(len, output.splitlines())) <= 100
    assert errors == ""


def test_it_counts_birds_and_missing_values() -> None:
    table = load_table("penguins")
    shown = [int(number) for number in re.findall(r"\d+", run()[0].splitlines()[0])]
    assert shown == [len(table), 100, len(table) - 100, table.isna().sum().sum()]


def test_scores_are_those_of_the_held_out_birds_beside_logistic_regression_and_class_proportions() -> None:
    names = run()[2]
    posterior, true = held_out()
    birds, trained = np.arange(len(true)), np.searchsorted(SPECIES, names["y_train"])
    logistic = prepared(LogisticRegression()).fit(names["X_train"], names["y_train"]).predict_proba(names["X_test"])
    proportions = np.tile(np.bincount(trained) / len(trained), (len(true), 1))
    labels = ("EvidenceClassifier()", "scikit-learn's LogisticRegression()", "class proportions")
    for label, p in zip(labels, (posterior, logistic, proportions), strict=True):
        expected = [np.mean(p.argmax(axis=1) == true), -np.mean(np.log(p[birds, true]))]
        assert_allclose(numbers(label), expected, atol=6e-4)
    assert numbers(labels[0])[1] < numbers(labels[1])[1] < numbers(labels[2])[1]


def test_contributions_sum_to_the_log_odds_of_the_bird() -> None:
    output, _, names = run()
    classes = re.findall(r"^column +(.*)$", output, re.MULTILINE)[0].split()
    total = dict(zip(classes, numbers("sum"), strict=True))
    terms = re.findall(r"^(?:\w+|\(.*\)) +(-?\d+\.\d\d) +(-?\d+\.\d\d) +(-?\d+\.\d\d)$", output, re.MULTILINE)
    assert_allclose(np.array(terms[:-1], dtype=float).sum(axis=0), list(total.values()), atol=0.06)
    log_posterior = names["model"].predict_log_proba(names["bird"])[0]
    shown = np.array([total[name] for name in SPECIES])
    assert_allclose(shown - shown[0], log_posterior - log_posterior[0], atol=0.015)


def test_birds_whose_error_is_likelier_than_5_percent_go_to_an_expert() -> None:
    posterior, true = held_out()
    certain = 1.0 - posterior.max(axis=1) <= 0.05
    errors = np.sum(posterior[certain].argmax(axis=1) != true[certain])
    shown = re.findall(r"0\.05: (\d+) birds are decided, (\d+) of them wrongly,\nand (\d+) go", run()[0])[0]
    assert [int(number) for number in shown] == [certain.sum(), errors, np.sum(~certain)]


def test_probabilities_of_the_bird_are_less_certain_without_its_values() -> None:
    names = run()[2]
    posterior, true = held_out()
    place = names["X_test"].index.get_loc(names["bird"].index[0])
    complete = names["X_test"].notna().all(axis=1).to_numpy()
    assert posterior[place].max() == posterior[complete].max(axis=1).min()
    assert f"One {SPECIES[true[place]]}, predicted as {SPECIES[posterior[place].argmax()]}\n" in run()[0]
    assert_allclose(numbers("all values"), posterior[place], atol=6e-4)
    for label in ("without its bill", "without all columns but the year"):
        assert sum(numbers(label)) == pytest.approx(1.0, abs=2e-3)
    assert max(numbers("without all columns but the year")) < max(numbers("all values"))


def test_forgetting_birds_equals_counting_the_others() -> None:
    shown = re.findall(r"^Forgetting 10 birds: .* by at most (\S+) from", run()[0], re.MULTILINE)
    assert float(shown[0]) < 1e-9
