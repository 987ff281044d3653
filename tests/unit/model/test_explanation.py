"""Explanations as tables, plots and frames, and explanations of odd tables."""

from __future__ import annotations

import itertools
import pickle
import warnings
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from likely import (
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    LogNormal,
    Multinomial,
    NaiveBayes,
    QuadraticDiscriminant,
    SoftmaxRegression,
)
from likely.errors import DependentColumnsWarning, InputError
from tests.helpers import load_table

matplotlib.use("Agg")


def three_species() -> tuple[pd.DataFrame, Any]:
    frame = load_table("iris")
    return frame.drop(columns=frame.columns[-1]), frame[frame.columns[-1]].to_numpy()


def correlated(rows: int = 60, columns: int = 4, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 3
    return rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns)) + y[:, None], y


# Odd tables.


def test_linear_combinations_of_columns_divide_their_contribution_in_any_order() -> None:
    X, y = correlated()
    X = np.column_stack([X, X[:, 0], X[:, 1] - 3.0 * X[:, 2]])
    order = np.array([4, 5, 2, 0, 3, 1])
    with pytest.warns(DependentColumnsWarning):
        model, turned = LinearDiscriminant().fit(X, y), LinearDiscriminant().fit(X[:, order], y)
    explained, other = model.explain(X), turned.explain(X[:, order])
    assert_allclose(explained.evidence.sum(axis=2) + explained.offset, model.log_joint(X), rtol=1e-10)
    differences, others = (e.evidence - e.evidence[:, :1] for e in (explained, other))
    assert_allclose(others, differences[:, :, order], atol=1e-9)
    assert_allclose(differences[:, :, 4], differences[:, :, 0], atol=1e-9)  # a copy of the first column
    assert_allclose(other.contrast(0, 1), explained.contrast(0, 1)[:, order], atol=1e-9)
    incomplete = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    partly, joint = model.explain(incomplete), model.log_joint(incomplete)
    total = partly.contrast(0, 1).sum(axis=1) + partly.offset[:, 0] - partly.offset[:, 1]
    assert_allclose(total, joint[:, 0] - joint[:, 1], atol=1e-8)


def test_explanations_of_fewer_rows_than_columns_add_up_in_any_order() -> None:
    rng = np.random.default_rng(0)
    X, y, order = rng.normal(size=(12, 20)), np.arange(12) % 2, rng.permutation(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DependentColumnsWarning)
        for make in (
            LinearDiscriminant,
            lambda: QuadraticDiscriminant(shrinkage=0.2),
            lambda: GenerativeClassifier(calibration=None),
            GenerativeClassifier,
        ):
            model, turned = make().fit(X, y), make().fit(X[:, order], y)
            explained, other = model.explain(X), turned.explain(X[:, order])
            total = explained.evidence.sum(axis=2) + explained.offset
            if getattr(model, "calibration_", None) is None:
                assert_allclose(total, model.log_joint(X), rtol=1e-10, atol=1e-10)
            assert_allclose(softmax(total, axis=1), model.predict_proba(X), rtol=1e-9, atol=1e-14)
            differences, others = (e.contrast(0, 1) for e in (explained, other))
            assert_allclose(others, differences[:, order], atol=1e-8)


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_nearly_dependent_columns_add_up(estimation: str) -> None:
    rng = np.random.default_rng(0)
    X, y = correlated(200)
    X[:, 3] = X[:, 0] + 1e-5 * rng.normal(size=200)
    model = GenerativeClassifier(Gaussian(), estimation=estimation, calibration=None).fit(X, y)
    explained, joint = model.explain(X), model.log_joint(X)
    assert np.all(np.abs(explained.evidence.sum(axis=2) + explained.offset - joint) <= 1e-10 * (1.0 + np.abs(joint)))


def test_constant_columns_contribute_nothing() -> None:
    X, y = correlated()
    X[:, 1] = 7.0
    for model in (LinearDiscriminant(), QuadraticDiscriminant(estimation="bayes"), LinearDiscriminant(shrinkage=0.1)):
        explained = model.fit(X, y).explain(X)
        assert not explained.evidence[:, :, 1].any()
        assert not explained.contrast(0, 1)[:, 1].any()
        assert_allclose(explained.evidence.sum(axis=2) + explained.offset, model.log_joint(X), rtol=1e-10)


def test_rows_without_any_value_have_the_class_prior_alone() -> None:
    X, y = correlated()
    explained = QuadraticDiscriminant().fit(X, y).explain(np.full((2, 4), np.nan))
    assert not explained.evidence.any()
    assert_allclose(explained.offset, np.log(np.full((2, 3), 1.0 / 3.0)))
    assert not explained.contrast(0, 1).any()


def test_contrasts_of_distant_rows_are_numbers() -> None:
    X, y = correlated()
    explained = LinearDiscriminant().fit(X, y).explain(np.array([[1e140, -1e140, 1e140, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    assert np.isfinite(explained.contrast(0, 1)).all()


def test_contrasts_of_log_normal_columns_are_linear_in_the_logarithms() -> None:
    X, y = correlated()
    X = np.exp(X)
    model = NaiveBayes(LogNormal(shared=True), estimation="mle").fit(X, y)
    terms = model.explain(X).contrast(0, 2)
    slopes = np.diff(terms, axis=0) / np.diff(np.log(X), axis=0)
    assert_allclose(slopes, np.broadcast_to(slopes[0], slopes.shape), rtol=1e-6)


def test_contrasts_of_several_blocks_stand_at_their_columns() -> None:
    X, y = correlated()
    families = {(3, 0): Gaussian(shared=True), (1, 2): Gaussian()}
    model = GenerativeClassifier(families, estimation="mle").fit(X, y)
    terms = model.explain(X).contrast(0, 1)
    pair = LinearDiscriminant().fit(X[:, [3, 0]], y).explain(X[:, [3, 0]]).contrast(0, 1)
    assert_allclose(terms[:, [3, 0]], pair, rtol=1e-8, atol=1e-9)


# Scores and chunks.


def test_scaled_explanations_have_calibrated_probabilities() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.poisson(3.0, size=(60, 4)), np.arange(60) % 3
    model = NaiveBayes(Multinomial(), calibration=None).fit(X, y).with_prior([0.2, 0.3, 0.5])
    intercepts = np.array([0.3, -0.1, -0.2])
    plain, scaled = model.explain(X), model.explain(X).scaled(0.4, intercepts)
    expected = 0.4 * (model.log_joint(X) - np.log(model.class_prior_)) + np.log(model.class_prior_) + intercepts
    assert_allclose(scaled.evidence.sum(axis=2) + scaled.offset, expected, rtol=1e-10)
    assert_allclose(scaled.evidence, 0.4 * plain.evidence)
    twice = scaled.scaled(0.5, -intercepts)
    assert_allclose(twice.evidence.sum(axis=2) + twice.offset, _scaled(model, X, 0.2), rtol=1e-10)


def _scaled(model: Any, X: Any, exponent: float) -> Any:
    log_prior = np.log(model.class_prior_)
    return exponent * (model.log_joint(X) - log_prior) + log_prior


def test_scaled_contrasts_are_multiplied_by_the_exponent() -> None:
    X, y = correlated()
    explained = LinearDiscriminant().fit(X, y).explain(X)
    assert_allclose(explained.scaled(0.3, np.zeros(3)).contrast(0, 1), 0.3 * explained.contrast(0, 1))


class Chunks:
    def __init__(self, X: Any) -> None:
        self.X = X

    def chunks(self) -> Any:
        return iter(np.array_split(self.X, 3))


def test_explanations_of_chunks_are_those_of_all_rows() -> None:
    X, y = correlated()
    model = LinearDiscriminant().fit(X, y)
    whole, parts = model.explain(X), model.explain(Chunks(X))
    assert_allclose(parts.evidence, whole.evidence)
    assert_allclose(parts.offset, whole.offset)
    assert_allclose(parts.contrast(0, 1), whole.contrast(0, 1))


def test_an_explanation_does_not_change_with_the_rows_afterwards() -> None:
    X, y = correlated()
    explained = LinearDiscriminant().fit(X, y).explain(X)
    before = explained.contrast(0, 1)
    X[:] = 0.0
    assert_array_equal(explained.contrast(0, 1), before)
    again = pickle.loads(pickle.dumps(explained))
    assert_array_equal(again.contrast(0, 1), before)


# Tables, frames and plots.


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_the_tidy_table_sums_to_the_scores(library: Any) -> None:
    X, y = three_species()
    rows = library(X.to_dict("list"))
    model = GenerativeClassifier().fit(rows, y)
    frame = model.explain(rows).to_frame()
    assert isinstance(frame, pa.Table if library is pa.table else library)
    frame = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame({n: list(frame[n]) for n in ["row", "class"]})
    assert len(frame) == 150 * 3 * 5
    if library is pd.DataFrame:
        sums = frame.groupby(["row", "class"])["contribution"].sum().unstack()
        explained = model.explain(rows)
        assert_allclose(sums[model.classes_].to_numpy(), explained.evidence.sum(axis=2) + explained.offset, rtol=1e-9)
        assert list(frame["column"][:5]) == [*X.columns, "(offset)"]


def test_labels_that_frames_have_no_type_for_are_text() -> None:
    X, y = correlated()
    labels = [("a", 1), ("b", 2), ("c", 3)]
    y_tuples = np.empty(60, dtype=object)
    y_tuples[:] = [labels[k] for k in y]
    frame = NaiveBayes().fit(X, y_tuples).explain(X[:2]).to_frame()
    assert set(frame["class"]) == set(map(str, labels))


def test_top_lists_the_largest_contributions_to_the_log_odds_of_the_two_most_probable_classes() -> None:
    X, y = three_species()
    model = LinearDiscriminant().fit(X, y)
    explained = model.explain(X)
    for row in (0, 70, -1):
        second, first = model.classes_[np.argsort(model.predict_proba(X)[row])[-2:]]
        terms = explained.contrast(first, second)[row]
        top = explained.top(row, n=3)
        order = np.argsort(-np.abs(terms))[:3]
        assert top["column"].tolist() == X.columns[order].tolist()
        assert_allclose(top["contribution"], terms[order])
    chosen = explained.top(70, first="setosa", second="virginica")
    assert len(chosen) == 4
    assert_allclose(chosen["contribution"].sum(), explained.contrast("setosa", "virginica")[70].sum())


def test_one_class_has_contributions_to_its_density() -> None:
    X, _ = correlated()
    explained = NaiveBayes().fit(X, np.zeros(60)).explain(X)
    assert_allclose(np.sort(explained.top(3, n=4)["contribution"]), np.sort(explained.evidence[3, 0]))
    assert "Row 0" in str(explained)


def test_explanations_print_as_a_short_table() -> None:
    X, y = correlated(columns=30)
    text = str(NaiveBayes().fit(X, y).explain(X))
    assert len(text.splitlines()) < 25
    assert max(map(len, text.splitlines())) < 100
    assert "18 other columns" in text
    assert "59 more rows" in text
    assert "array" not in repr(NaiveBayes().fit(X, y).explain(X))


def test_names_are_escaped_and_stay_distinct() -> None:
    X, y = correlated()
    names = [f"{'a' * 60}{i}{'b' * 60}" for i in range(2)] + ["<script>", "$\\frac{$"]
    labels = np.array(["<b>", "$x", "c"])[y]
    explained = NaiveBayes().fit(pd.DataFrame(X, columns=names), labels).explain(pd.DataFrame(X, columns=names))
    page = explained._repr_html_()
    assert "<script>" not in page
    assert "&lt;b&gt;" in page
    names_shown = [line.split()[0] for line in str(explained).splitlines()[3:9]]
    assert len(set(names_shown)) == 6
    figure = explained.plot(0).figure
    figure.canvas.draw()


def test_the_plot_has_one_bar_for_each_column_and_the_offset() -> None:
    X, y = three_species()
    model = LinearDiscriminant().fit(X, y)
    explained = model.explain(X)
    axes = explained.plot(70)
    widths = [bar.get_width() for bar in axes.patches]
    assert len(widths) == 5
    second, first = np.argsort(model.predict_proba(X)[70])[-2:]
    joint = model.log_joint(X)[70]
    assert_allclose(sum(widths), joint[first] - joint[second], rtol=1e-8)
    few = explained.plot(70, n=2, ax=matplotlib.figure.Figure().subplots())
    assert [label.get_text() for label in few.get_yticklabels()][2] == "2 other columns"
    assert_allclose(sum(bar.get_width() for bar in few.patches), sum(widths))


def test_misuse_of_explanations_is_an_error_with_a_remedy() -> None:
    X, y = three_species()
    explained = LinearDiscriminant().fit(X, y).explain(X)
    with pytest.raises(InputError, match="'rose' is not among the classes 'setosa'"):
        explained.contrast("rose", "setosa")
    with pytest.raises(InputError, match="150 rows"):
        explained.top(150)
    with pytest.raises(InputError, match="n=0"):
        explained.top(0, n=0)
    with pytest.raises(InputError, match="same class, 'setosa'"):
        explained.plot(0, "setosa", "setosa")
    with pytest.raises(InputError, match="method='chain' is not known"):
        LinearDiscriminant().fit(X, y).explain(X, method="chain")


def test_contrasts_of_softmax_regression_are_coefficients_times_distances() -> None:
    X, y = correlated()
    model = SoftmaxRegression(penalty=1.0).fit(X, y)
    explained = model.explain(X)
    for a, b in itertools.permutations(range(3), 2):
        terms = explained.contrast(a, b)
        assert_allclose(np.diff(terms, axis=0), (model.coef_[a] - model.coef_[b]) * np.diff(X, axis=0), atol=1e-8)


def test_contributions_add_up_where_rows_vary_in_a_subspace_and_values_are_missing() -> None:
    """The class means differ beyond the directions in which rows vary within the classes: no column is ignored."""
    X = pd.DataFrame({"a": [1.2, np.nan, 0.7, 0.4, -1.7], "b": [0.0, 1.0, 2.0, 0.0, 2.0]})
    with pytest.warns(DependentColumnsWarning, match="only along the directions"):
        model = GenerativeClassifier(Gaussian(shared=True), estimation="mle").fit(X, list("bacca"))
    explained = model.explain(X)
    assert_allclose(explained.evidence.sum(axis=2) + explained.offset, model.log_joint(X), rtol=1e-10)
    assert np.all(explained.evidence[0] != 0.0)
    assert model.summary().notes == ("linear combinations of other columns within the classes: 'b'",)
    infinite = X.assign(a=[np.inf, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(InputError, match="'a', row 0"):
        model.predict_proba(infinite)
