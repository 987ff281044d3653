"""The demonstration: its sections, its numbers, and sums that agree."""

from __future__ import annotations

import re
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from likely import GenerativeClassifier
from likely.demo.__main__ import main
from likely.demo.classification import COSTS, contributions, cost_of, few_birds
from likely.demo.penguins import CATEGORIES, COLUMNS, load_birds, load_table

HEADINGS = (
    "The fitted model",
    "Ten-fold cross-validation on the same folds",
    "Confusion matrix, out-of-fold predictions of GenerativeClassifier()",
    "Few training birds (means of 20 random training sets, tested on all other birds)",
    "The whole table: measurements, categories and missing values",
    "Posteriors and explanations",
    "Decisions with costs",
    "Boundaries",
    "Samples, and the bird with the lowest density",
    "Updating, merging and forgetting",
    "Unlabeled rows, missing values, prior shift and novelty",
    "Softmax regression and hybrids",
    "Learning curves: generative versus discriminative",
    "Regression",
)


@pytest.fixture(scope="module")
def streams() -> tuple[str, str]:
    """What main() prints to standard output and to standard error, once for all tests."""
    with redirect_stdout(StringIO()) as output, redirect_stderr(StringIO()) as errors:
        main()
    return output.getvalue(), errors.getvalue()


@pytest.fixture
def printed(streams: tuple[str, str]) -> str:
    return streams[0]


def section(printed: str, heading: str) -> str:
    """The text between a heading and the next one."""
    after = printed.split(f"\n{heading}\n{'─' * len(heading)}\n")[1]
    return re.split(r"\n[^\n]+\n─+\n", after)[0]


def test_the_demonstration_prints_to_standard_output(streams: tuple[str, str]) -> None:
    output, errors = streams
    assert output.startswith("likely: classification of three species of penguins")
    assert errors == ""


def test_every_section_is_there_in_its_order(printed: str) -> None:
    assert tuple(re.findall(r"\n([^\n]+)\n─+\n", printed)) == HEADINGS


def test_the_summary_names_species_rows_and_columns(printed: str) -> None:
    text = section(printed, HEADINGS[0])
    for species, rows in {"Adelie": 151, "Chinstrap": 68, "Gentoo": 123}.items():
        assert re.search(rf"^{species} +{rows} ", text, re.MULTILINE)
    assert all(name in text for name in COLUMNS)


def test_accuracy_is_above_98_percent_and_maximum_likelihood_equals_scikit_learns(printed: str) -> None:
    text = section(printed, HEADINGS[1])
    table = re.findall(r"^(likely|sklearn) +(\S+) +(\d\.\d{4}) +(\d\.\d{4})$", text, re.MULTILINE)
    result = {name: (float(accuracy), float(loss)) for _, name, accuracy, loss in table}
    assert len(result) == 8
    for name in (
        "GenerativeClassifier()",
        "GenerativeClassifier(Gaussian())",
        "LinearDiscriminant()",
        "QuadraticDiscriminant()",
    ):
        accuracy, loss = result[name]
        assert accuracy > 0.98
        assert loss < 0.03
    assert result["LinearDiscriminant()"] == result["LinearDiscriminantAnalysis()"]
    assert result["QuadraticDiscriminant()"] == result["QuadraticDiscriminantAnalysis()"]
    difference = re.search(r"differ by at most (\S+)\.", text)
    assert difference is not None
    assert float(difference[1]) < 1e-9


def test_the_confusion_table_counts_every_bird_once(printed: str) -> None:
    text = section(printed, HEADINGS[2])
    rows = re.findall(r"^(?:Adelie|Chinstrap|Gentoo) +(\d+) +(\d+) +(\d+)$", text, re.MULTILINE)
    table = np.array(rows, dtype=int)
    assert table.sum(axis=1).tolist() == [151, 68, 123]
    assert f"{np.trace(table)} of 342 birds are classified correctly." in text
    assert np.trace(table) / 342 > 0.98


def test_few_birds_are_enough_for_the_posterior_predictive() -> None:
    result = few_birds(GenerativeClassifier, load_birds(), each=3, draws=3)
    assert result is not None
    assert result[0] > 0.8
    assert result[1] < 0.6


def test_the_readme_quotes_the_demonstration(printed: str) -> None:
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    (quoted,) = re.findall(r"accuracy ([\d.]+) and log-loss ([\d.]+); .*? reaches (\d\.\d+) and (\d\.\d+)", readme)
    lines = (r"likely +GenerativeClassifier\(\)", r"sklearn +LinearDiscriminantAnalysis\(\)")
    found = [re.search(rf"{line} +([\d.]+) +([\d.]+)", section(printed, HEADINGS[3])) for line in lines]
    assert tuple(number for line in found if line is not None for number in line.groups()) == quoted


def test_the_whole_table_has_families_for_its_columns(printed: str) -> None:
    text = section(printed, HEADINGS[4])
    assert re.search(rf"Categorical:\n +{', '.join(CATEGORIES)}\n", text)
    assert re.search(rf"Gaussian, full covariance, [^\n]*:\n +{', '.join(COLUMNS)}\n", text)


def test_the_whole_table_is_classified_better_than_its_measurements_alone(printed: str) -> None:
    pattern = r"^((?:likely|sklearn) .*\S) +(\d\.\d{4}) +(\d\.\d{4})$"
    result = {
        name: (float(accuracy), float(loss))
        for name, accuracy, loss in re.findall(pattern, section(printed, HEADINGS[4]), re.MULTILINE)
    }
    assert len(result) == 5
    joint, naive = result["likely   GenerativeClassifier()"], result["likely   NaiveBayes()"]
    assert joint[0] > 0.99
    assert joint[1] < 0.02
    assert joint[1] < result["sklearn  LinearDisc…Analysis(), one-hot"][1]
    assert naive[0] > max(accuracy for name, (accuracy, _) in result.items() if "GaussianNB" in name)
    measurements = re.search(r"GenerativeClassifier\(\) +\S+ +([\d.]+)", section(printed, HEADINGS[1]))
    assert measurements is not None
    assert joint[1] < float(measurements[1])


def test_a_bird_with_missing_values_is_less_certain(printed: str) -> None:
    text = section(printed, HEADINGS[4])
    rows = re.findall(r"^( *\w.*?) +(\d\.\d{3}) +(\d\.\d{3}) +(\d\.\d{3})$", text, re.MULTILINE)
    posterior = {name.strip(): [float(part) for part in parts] for name, *parts in rows}
    assert len(posterior) == 5
    for parts in posterior.values():
        assert sum(parts) == pytest.approx(1.0, abs=0.002)
    chinstrap = [parts[1] for parts in list(posterior.values())[:3]]
    assert chinstrap == sorted(chinstrap, reverse=True)
    assert posterior["Adelie of Torgersen, never measured"][0] > 0.9
    assert posterior["Gentoo of Biscoe, never measured"][2] > 0.5


def test_the_table_has_its_missing_values() -> None:
    table = load_table()
    assert sum(column.null_count for column in table.X.columns) == 19
    assert len(table.y) - len(table.measured) == load_birds().incomplete == 2


def test_printed_explanations_add_up_to_the_printed_odds(printed: str) -> None:
    text = section(printed, HEADINGS[5])
    blocks = re.findall(
        r"Contributions to the log-odds of (\w+) against (\w+):\n((?: +\S.* +[+-][\d.]+\n)+) +sum +(\S+)", text
    )
    assert len(blocks) == 4
    for first, second, lines, total in blocks:
        terms = [float(line.split()[-1]) for line in lines.splitlines()]
        assert len(terms) == 1 + len(COLUMNS)
        assert sum(terms) == pytest.approx(float(total), abs=0.03)  # five terms and a sum, to two decimals
        assert first != second
        assert float(total) > 0.0


def test_contributions_add_up_to_the_log_odds_exactly() -> None:
    birds = load_birds()
    model = GenerativeClassifier().fit(birds.X, birds.y)
    for x in birds.X[::20]:
        first, second, terms = contributions(model, x)
        log_posterior = dict(zip(model.classes_.tolist(), model.predict_log_proba(x[None])[0], strict=True))
        assert sum(terms.values()) == pytest.approx(log_posterior[first] - log_posterior[second], rel=1e-10, abs=1e-10)


def test_the_decision_costs_less_than_acting_on_the_most_probable_species(printed: str) -> None:
    text = section(printed, HEADINGS[6])
    costs = re.search(r"Total cost: ([\d.]+) \(([\d.]+) expected\). .* costs ([\d.]+)\.", text)
    assert costs is not None
    assert float(costs[1]) < float(costs[3])
    decided = re.findall(r"^\w+ +(\d+) +(\d+) +(\d+)$", text.split("decision")[1], re.MULTILINE)
    assert np.array(decided, dtype=int).sum() == 342


def test_costs_are_those_of_the_table() -> None:
    actions, species = np.array(["release", "ring", "expert"]), np.array(["Chinstrap", "Gentoo", "Adelie"])
    assert cost_of(actions, species, COSTS) == 14.5


def test_boundaries_and_samples_are_printed(printed: str) -> None:
    text = section(printed, HEADINGS[7])
    assert re.search(r"Adelie against Chinstrap +LinearBoundary", text)
    assert re.search(r"Adelie against Gentoo +QuadraticBoundary", text)
    meeting = re.search(r"bill length of ([\d.]+) mm", text)
    assert meeting is not None
    assert 42.0 < float(meeting[1]) < 46.0
    rows = re.findall(
        r"^(\w+) +([\d.]+) +([\d.]+) +([\d.]+) +(\d+) +(-[\d.]+)$", section(printed, HEADINGS[8]), re.MULTILINE
    )
    assert [row[0] for row in rows] == ["Adelie", "Chinstrap", "Gentoo", "observed"]
    assert float(rows[3][5]) < min(float(row[5]) for row in rows[:3])


def test_sums_are_exact(printed: str) -> None:
    text = section(printed, HEADINGS[9])
    differences = [float(number) for number in re.findall(r"by at most (\S+?)\.$", text, re.MULTILINE)]
    assert len(differences) == 2
    assert max(differences) < 1e-9
    left, folds = (float(number) for number in re.findall(r"log-loss, [^:]*: +(\S+)", text))
    assert abs(left - folds) < 0.01
    assert "the predictions are identical" in text


def test_unlabeled_rows_and_missing_values_are_used(printed: str) -> None:
    text = section(printed, HEADINGS[10])
    supervised, semi_supervised = (float(number) for number in re.findall(r"    \S.* (\d\.\d{3})$", text, re.MULTILINE))
    assert semi_supervised > supervised
    assert float(re.findall(r"accuracy (\d\.\d{3})$", text, re.MULTILINE)[0]) > 0.9
    assert float(re.findall(r"agree with the species for (\d\.\d{3})", text)[0]) > 0.8
    rows, birds, proportion = re.findall(r"Among (\d+) birds of which (\d+) .* as (\d\.\d{3})", text)[0]
    assert abs(float(proportion) - int(birds) / int(rows)) < 0.02
