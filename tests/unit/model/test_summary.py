"""Summaries of models: the baseline, the evidence of columns, many classes, frames and HTML."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes, load_iris

from likely import (
    Bernoulli,
    Gaussian,
    GenerativeRegressor,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    SoftmaxRegression,
)
from likely.families.bernoulli import BernoulliConditionals
from likely.model.separation import TERMS, expected_evidence
from likely.model.summary import summarise_model
from likely.typing import AnyArray, Array
from tests.helpers import load_table

X, Y = load_iris(return_X_y=True)


def binary_rows(classes: int) -> tuple[AnyArray, AnyArray]:
    """Eight binary columns, five rows of each class."""
    y = np.arange(5 * classes) % classes
    rng = np.random.default_rng(classes)
    return (rng.random((len(y), 8)) < np.linspace(0.05, 0.95, classes)[y, None]).astype(float), y


def information(p: Array) -> float:
    """Mutual information of a binary column, with probabilities p, and equally frequent classes."""
    mixed = p.mean()
    return float(np.mean(p * np.log(p / mixed) + (1.0 - p) * np.log((1.0 - p) / (1.0 - mixed))))


@pytest.mark.parametrize("classes", [2, 20, 400, 2000])
def test_the_evidence_of_a_column_is_its_mutual_information(classes: int) -> None:
    """With many classes fewer rows are drawn of each, and in the end a sample of the classes."""
    rows, y = binary_rows(classes)
    model = NaiveBayes(Bernoulli(smoothing=1.0), estimation="map").fit(rows, y)
    p = (pd.DataFrame(rows).groupby(y).sum().to_numpy() + 1.0) / 7.0
    expected = [information(p[:, j]) for j in range(8)]
    assert_allclose(expected_evidence(model.model_), expected, rtol=0.15, atol=0.02)


def test_the_cost_of_a_summary_is_linear_in_the_number_of_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    explain, terms = BernoulliConditionals.explain, []

    def counted(self: Any, rows: Any) -> Array:
        found = explain(self, rows)
        terms.append(found.size)
        return found

    monkeypatch.setattr(BernoulliConditionals, "explain", counted)
    totals = {}
    for classes in (100, 400, 1600):
        rows, y = binary_rows(classes)
        terms.clear()
        NaiveBayes(Bernoulli()).fit(rows, y).summary()
        totals[classes] = sum(terms)
    assert totals[400] <= 4 * totals[100]
    assert totals[1600] <= 4 * totals[400]
    assert max(totals.values()) <= 2 * TERMS


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
def test_the_baseline_leaves_each_row_out() -> None:
    y = np.array(["a"] * 30 + ["b"] * 19 + ["c"])
    summary: Any = NaiveBayes().fit(X[:50], y).summary()
    losses = [-np.log(np.mean(np.delete(y, i) == y[i])) for i in range(49)]  # the last row is the only one of its class
    assert_allclose(summary.baseline, np.mean(losses), rtol=1e-12)
    assert f"of the class proportions: {np.mean(losses):.4f}" in str(summary)
    weighted: Any = NaiveBayes().fit(X[:49], y[:49], sample_weight=np.full(49, 2.0)).summary()
    repeated: Any = NaiveBayes().fit(np.repeat(X[:49], 2, axis=0), np.repeat(y[:49], 2)).summary()
    assert_allclose(weighted.baseline, repeated.baseline)
    assert MixtureModel(2, random_state=0).fit(X).summary().baseline is None
    assert NaiveBayes().fit(X[:2], ["a", "b"]).summary().baseline is None


def test_a_model_worse_than_the_class_proportions_is_called_so() -> None:
    model = NaiveBayes(Gaussian("diagonal")).fit(X, Y)
    given = (model.model_, model.statistics_, ["Gaussian"], model.class_prior_, ())
    worse = summarise_model("NaiveBayes", model.specification_.estimation, *given, log_loss=1.3)
    better = summarise_model("NaiveBayes", model.specification_.estimation, *given, log_loss=0.2)
    assert "The model is worse than predicting the class proportions." in str(worse)
    assert "leave-one-out log-loss: 1.3000; of the class proportions: 1.1121" in str(worse)
    assert "worse" not in str(better)


def test_many_classes_and_long_names_are_abbreviated() -> None:
    rows, y = binary_rows(40)
    frame = pd.DataFrame(rows, columns=[f"the answer to the question with number {j} of the survey" for j in range(8)])
    names = np.array([f"the class of the customers who live in the region {k}" for k in range(40)])[y]
    text = str(NaiveBayes().fit(frame, names).summary())
    assert "and 28 more" in text
    assert max(map(len, text.splitlines())) <= 120
    shown = [line.split("  ")[0] for line in text.splitlines() if line.startswith("the class") and "  " in line]
    assert len(shown) == len(set(shown)) == 12
    columns = [line.split("  ")[0] for line in text.splitlines() if line.startswith("the answer") and "  " in line]
    assert len(columns) == len(set(columns)) == 8


def test_frames_have_a_row_for_each_column() -> None:
    birds = load_table("penguins")
    summary = NaiveBayes().fit(birds, "species").summary()
    frame = summary.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert set(frame["column"]) == set(birds.columns) - {"species"}
    assert frame["evidence"].tolist() == sorted(frame["evidence"], reverse=True)
    assert set(frame.loc[frame["column"] == "island", "family"]) == {"Categorical"}
    polars = NaiveBayes().fit(pl.from_pandas(birds), "species").summary().to_frame()
    assert isinstance(polars, pl.DataFrame)
    assert set(polars["column"].to_list()) == set(frame["column"])


def test_frames_of_regressions_and_softmax_have_all_coefficients() -> None:
    rows, y = load_diabetes(return_X_y=True, as_frame=True)
    model = GenerativeRegressor(estimation="mle").fit(rows, y)
    frame = model.summary().to_frame()
    assert frame["column"].tolist() == ["(intercept)", *rows.columns]
    assert_allclose(frame["estimate"], [model.intercept_, *model.coef_])
    assert str(model.summary()).splitlines()[2] == "442 rows"
    softmax: Any = SoftmaxRegression().fit(X, Y).summary()
    table = softmax.to_frame()
    assert len(table) == len(softmax.coefficients) == 10
    assert_allclose(table["standard_error"], [each.error for each in softmax.coefficients])
    assert "<table>" in softmax._repr_html_()


def test_html_is_escaped() -> None:
    frame = pd.DataFrame(X, columns=["a<b", "c&d", "<script>", "e"])
    page = LinearDiscriminant().fit(frame, np.array(["<x>", "y", "z"])[Y]).summary()._repr_html_()
    assert "&lt;script&gt;" in page
    assert "&lt;x&gt;" in page
    assert "<script>" not in page


def test_a_log_loss_of_some_rows_says_of_how_many() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(9000, 1))
    text = str(NaiveBayes(Gaussian()).fit(rows, rng.integers(2, size=9000)).summary())
    found = re.search(r"leave-one-out log-loss of ([0-9,]+) rows: 0.69", text)
    assert found is not None
    assert 3500 < int(found[1].replace(",", "")) < 4500
    assert "leave-one-out log-loss: " in str(NaiveBayes(Gaussian()).fit(X, Y).summary())
