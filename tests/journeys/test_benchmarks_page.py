"""The tables of docs/benchmarks.md can be reproduced, and its text says what the tables have."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks.few_rows import MODELS as FEW_ROW_MODELS
from benchmarks.tables import MODELS, scores, table
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def few_rows() -> dict[tuple[str, int], list[float]]:
    """The five log-losses of each cell of the table of few rows, by table and number of rows."""
    found = {}
    for line in re.findall(r"^\|.*$", PAGE.split("## Few rows")[1], re.MULTILINE)[2:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
        for rows, cell in zip((30, 100, 300), cells, strict=True):
            values = [float(number) for number in re.findall(r"\d+\.\d{3}", cell)]
            assert len(values) in (0, 5)
            if values:
                found[name, rows] = values
    return found


CELLS = few_rows()


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_the_accuracy_table_can_be_reproduced(name: str) -> None:
    line = re.search(rf"^\| {name} \|.*$", PAGE, re.MULTILINE)
    assert line is not None
    stated = [float(number) for number in re.findall(r"\d\.\d{3}", line[0])]
    X, y = table(name)
    found = [score for model in list(MODELS.values())[:3] for score in scores(model, X, y, reverse=False)]
    np.testing.assert_allclose(found, stated, atol=6e-4)


def test_the_table_of_few_rows_has_the_models_of_the_benchmark() -> None:
    listed = re.findall(r"^\d\. .*`(\w+)(?:\(\))?`$", PAGE, re.MULTILINE)
    assert [name.replace("LinearDiscriminantAnalysis", "LDA") for name in listed] == [
        name for name in FEW_ROW_MODELS if name not in ("LDA, shrinkage", "class proportions")
    ]


@pytest.mark.parametrize("rows", [30, 100, 300])
def test_the_means_of_few_rows_are_those_of_the_tables(rows: int) -> None:
    values = [cell for (name, n), cell in CELLS.items() if n == rows and name != "mean of these"]
    np.testing.assert_allclose(np.mean(values, axis=0), CELLS["mean of these", rows], atol=1.1e-3)


def test_the_page_names_the_tables_on_which_logistic_regression_is_better() -> None:
    stated = {
        *(("congressional votes", rows) for rows in (30, 100, 300)),
        *(("diabetes (Pima)", rows) for rows in (30, 100, 300)),
        *((name, rows) for name in ("breast cancer", "wine") for rows in (30, 100)),
        *((name, 30) for name in ("sonar", "German credit", "digits")),
    }
    assert {key for key, (generative, *_, logistic) in CELLS.items() if logistic < generative} == stated
