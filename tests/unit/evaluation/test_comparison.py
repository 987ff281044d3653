"""Learning curves: every number is that of a fit of its own, and verdicts follow from the numbers."""

from __future__ import annotations

import io
import itertools
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import likely
from likely import (
    GenerativeRegressor,
    HybridClassifier,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    QuadraticDiscriminant,
    SoftmaxRegression,
)
from likely.data.validation import read_table
from likely.errors import InputError, NotConvergedWarning
from likely.evaluation.comparison import default_models
from likely.evaluation.learning_curves import Comparison, Lead, Point, Score, crossings, verdicts
from likely.evaluation.preparation import NumericFeatures, SimpleImputation, categorical_columns, delete_values
from likely.evaluation.trials import draws, labeled_rows
from likely.model.boundary import LinearBoundary
from likely.numerics import progress
from tests.helpers import load_table

BIRDS = load_table("penguins")
X, Y = BIRDS.drop(columns="species"), BIRDS["species"].to_numpy(dtype=object)
MEASURES = X[["bill_length_mm", "bill_depth_mm", "body_mass_g"]]
WHOLE = MEASURES.notna().all(axis=1).to_numpy()
ROWS, LABELS = MEASURES[WHOLE].to_numpy(), Y[WHOLE]
CODES = np.unique(Y, return_inverse=True)[1]
COUNTERPARTS = {"generative": LinearDiscriminant(estimation="bayes"), "discriminative": SoftmaxRegression(penalty=1e-3)}

mpl.use("Agg")


def gaussian(seed: int, rows: int = 2000, columns: int = 4) -> tuple[Any, Any]:
    """Two Gaussian classes with one covariance: what a linear discriminant assumes is so."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=rows)
    turn = rng.normal(size=(columns, columns)) / np.sqrt(columns) + np.eye(columns)
    return (rng.normal(size=(rows, columns)) + 0.8 * y[:, None]) @ turn, y


def means(result: Comparison, model: str, score: str = "log_loss", **setting: float) -> list[float]:
    return [getattr(point, score).mean for point in result.curve(model, **setting)]


def verdict(result: Comparison, score: str = "log_loss") -> Any:
    (found,) = (each for each in result.verdicts if each.score == score)
    return found


# -------------------------------------------------------------------------------------------------------------- numbers


def test_the_same_seed_gives_the_same_numbers_and_another_one_others() -> None:
    models = {"forest": RandomForestClassifier(5), "bayes": NaiveBayes()}
    first, again, other = (
        likely.compare(ROWS, LABELS, models, sizes=[20, 60], missing=[0.1], repeats=2, random_state=seed)
        for seed in (3, 3, 4)
    )
    assert first == again
    assert first.records() != other.records()


def test_every_number_is_that_of_a_fit_of_its_own() -> None:
    models = {"lda": LinearDiscriminant(), "logistic": make_pipeline(StandardScaler(), LogisticRegression())}
    result = likely.compare(ROWS, LABELS, models, sizes=[30, 100], missing=[0.0, 0.2], repeats=2, random_state=5)
    codes = np.unique(LABELS, return_inverse=True)[1]
    for repeat, draw in enumerate(draws(codes, 0.2, 2, random_state=5)):
        for point in result.points:
            rows = ROWS.copy()
            rows[draw.uniforms(*rows.shape) < point.missing] = np.nan
            train = draw.order[: point.size]
            model = clone(models[point.model])
            if point.model == "logistic" and point.missing:
                model = make_pipeline(SimpleImputer(), model)
            posterior = model.fit(rows[train], LABELS[train]).predict_proba(rows[draw.test])
            expected = log_loss(LABELS[draw.test], posterior, labels=model.classes_)
            assert_allclose(point.log_loss.values[repeat], expected, rtol=1e-9)
            wrong = model.classes_[posterior.argmax(axis=1)] != LABELS[draw.test]
            assert point.error.values[repeat] == pytest.approx(wrong.mean())
    for point in result.points:
        spread = np.std(point.log_loss.values, ddof=1) / np.sqrt(2)
        assert_allclose([point.log_loss.mean, point.log_loss.standard_error], [np.mean(point.log_loss.values), spread])


@pytest.mark.parametrize("counts", [(152, 68, 124), (40, 40), (300, 5), (2, 2, 90)])
def test_every_beginning_of_a_draw_has_the_class_proportions(counts: tuple[int, ...]) -> None:
    codes = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    for draw in draws(codes, 0.2, 3, random_state=1):
        assert_array_equal(np.sort(np.concatenate([draw.order, draw.test])), np.arange(len(codes)))
        held = np.bincount(codes[draw.test])
        assert held.tolist() == [min(max(int(0.2 * count + 0.5), 1), count - 1) for count in counts]
        pool = np.bincount(codes[draw.order])
        assert set(codes[draw.order[: len(counts)]].tolist()) == set(range(len(counts)))
        for size in range(len(counts), len(draw.order) + 1):
            found = np.bincount(codes[draw.order[:size]], minlength=len(counts))
            assert np.all(np.abs(found - size * pool / pool.sum()) <= len(counts))


def test_default_sizes_grow_in_equal_ratios() -> None:
    result = likely.compare(ROWS, LABELS, COUNTERPARTS, repeats=1, random_state=0)
    assert result.sizes[0] == 6
    assert result.sizes[-1] + result.judged == len(LABELS)
    ratios = np.diff(np.log(result.sizes))
    assert np.ptp(ratios[2:]) < 0.1
    assert len(result.sizes) == 8


def test_models_without_unlabeled_rows_see_the_labeled_ones_alone() -> None:
    result = likely.compare(X, Y, sizes=[20, 100], labeled=[1.0, 0.2, 20], repeats=1, random_state=2)
    few = {point.labeled: point for point in result.curve("discriminative", size=100)}
    (small,) = result.curve("discriminative", size=20, labeled=1.0)
    assert few[0.2].log_loss == few[20.0].log_loss == small.log_loss
    assert few[0.2].labels == few[20.0].labels == 20
    assert "generative: fitted to labeled and unlabeled rows" in result.notes
    assert "discriminative: fitted to labeled rows only" in result.notes


def test_unlabeled_rows_reach_models_that_learn_from_them() -> None:
    result = likely.compare(ROWS, LABELS, COUNTERPARTS, sizes=[200], labeled=[0.1], repeats=1, random_state=2)
    (draw,) = draws(np.unique(LABELS, return_inverse=True)[1], 0.2, 1, random_state=2)
    y = LABELS[draw.order[:200]].copy()
    y[20:] = None
    model = LinearDiscriminant(estimation="bayes").fit(ROWS[draw.order[:200]], y)
    expected = log_loss(LABELS[draw.test], model.predict_proba(ROWS[draw.test]), labels=model.classes_)
    assert_allclose(means(result, "generative"), [expected], rtol=1e-9)
    hybrid = {"hybrid": HybridClassifier(blend=0.5)}
    told = likely.compare(ROWS, LABELS, hybrid, sizes=[60], labeled=[0.5], repeats=1, random_state=2)
    assert told.notes[0] == "hybrid: fitted to labeled and unlabeled rows"
    assert told.points[0].failures == 0


def test_how_many_labels_are_kept() -> None:
    assert [labeled_rows(share, 50, 3) for share in (1.0, 0.5, 0.01, 2.0, 20.0, 80.0)] == [50, 25, 3, 3, 20, 50]


def test_whole_numbers_are_labels_too() -> None:
    codes = np.unique(LABELS, return_inverse=True)[1]
    by_name, by_number = (
        likely.compare(ROWS, y, COUNTERPARTS, sizes=[30], labeled=[1.0, 0.5], repeats=2, random_state=0)
        for y in (LABELS, codes * 10 - 5)
    )
    assert by_name == by_number


# --------------------------------------------------------------------------------------------------------------- tables

FORMS = {
    "shuffled index": X.set_index(np.arange(len(X))[::-1] + 7),
    "polars": pl.from_pandas(X),
    "arrow": pa.Table.from_pandas(X, preserve_index=False),
    "objects": X.astype(object).to_numpy(),
    "rows": X.astype(object).to_numpy().tolist(),
    "categories": X.astype({"island": "category", "sex": "category"}),
    "numbered columns": X.set_axis(range(X.shape[1]), axis=1),
}


@cache
def compared(form: str = "") -> Comparison:
    table = FORMS[form] if form else X
    return likely.compare(table, Y, sizes=[40], missing=[0.0, 0.2], repeats=1, random_state=1)


@pytest.mark.parametrize("form", FORMS)
def test_the_kind_of_table_changes_nothing(form: str) -> None:
    expected, found = compared(), compared(form)
    for one, other in zip(expected.points, found.points, strict=True):
        assert_allclose(other.log_loss.values, one.log_loss.values, rtol=1e-7)
    assert found.notes == expected.notes


def test_the_label_may_be_a_column_of_the_frame() -> None:
    named, given = (
        likely.compare(table, y, sizes=[40], repeats=1, random_state=1) for table, y in ((BIRDS, "species"), (X, Y))
    )
    assert named == given


def test_sparse_rows_are_compared_as_they_are() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    counts = rng.poisson(0.3 + 0.5 * (np.arange(20) % 2 == y[:, None]))
    result = likely.compare(scipy.sparse.csr_matrix(counts), y, sizes=[20, 150], repeats=2, random_state=0)
    assert means(result, "generative")[-1] < 0.6
    with pytest.raises(InputError, match="sparse rows cannot be missing"):
        likely.compare(scipy.sparse.csr_matrix(counts), y, missing=0.1)


def test_default_models_have_the_same_linear_form() -> None:
    models = default_models(read_table(ROWS))
    generative = models["generative"].set_params(estimation="mle").fit(ROWS, LABELS)
    form = generative.boundary("Adelie", "Gentoo")
    assert isinstance(form, LinearBoundary)
    features = NumericFeatures(categorical_columns(read_table(X[WHOLE]))).fit(X[WHOLE].dropna())
    assert [*features.get_feature_names_out()[:2]] == ["bill_length_mm", "bill_depth_mm"]
    assert "island=Biscoe" in features.get_feature_names_out()


def test_filled_cells_are_those_of_scikit_learn() -> None:
    numbers, labels = [2, 3, 4, 5, 6], [0, 1]
    frame = X[["island", "sex", "bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "year"]]
    incomplete = delete_values(frame, np.random.default_rng(0).random(frame.shape) < 0.2)
    theirs = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")), labels),
    )
    ours = make_pipeline(SimpleImputation(labels), NumericFeatures(labels))
    expected = theirs.fit(incomplete[:200]).transform(incomplete[200:])
    assert_allclose(ours.fit(incomplete[:200]).transform(incomplete[200:]), expected, rtol=1e-10, atol=1e-12)


def test_a_column_without_any_cell_is_filled_and_labels_never_seen_are_nothing() -> None:
    train = pd.DataFrame({"a": [np.nan, np.nan], "b": pd.Series([None, None], dtype=object), "c": ["x", "y"]})
    test = pd.DataFrame({"a": [1.0, np.nan], "b": ["u", None], "c": ["z", "x"]})
    ours = make_pipeline(SimpleImputation((1, 2)), NumericFeatures((1, 2))).fit(train)
    assert ours.transform(train).tolist() == [[0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    assert ours.transform(test).tolist() == [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0]]


def test_features_of_incomplete_rows_are_refused() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})
    with pytest.raises(InputError, match="Column 'b', row 1: the value is missing"):
        NumericFeatures((1,)).fit(frame)
    result = likely.compare(X[["sex", "year"]], Y, sizes=[60], repeats=1, random_state=0)
    assert "discriminative: missing values were imputed by column means and most frequent categories" in result.notes


def test_values_are_imputed_only_for_models_without_missing_values() -> None:
    models = {
        "own imputer": make_pipeline(SimpleImputer(strategy="median"), LogisticRegression(max_iter=1000)),
        "trees": HistGradientBoostingClassifier(max_iter=1),
        "bayes": NaiveBayes(),
        "logistic": LogisticRegression(max_iter=1000),
    }
    result = likely.compare(ROWS / [10, 10, 1000], LABELS, models, sizes=[60], missing=0.2, repeats=1, random_state=0)
    assert [note for note in result.notes if "imputed" in note] == [
        "logistic: missing values were imputed by column means and most frequent categories"
    ]
    assert all(point.failures == 0 for point in result.points)


# ------------------------------------------------------------------------------------------- generative, discriminative


def test_the_generative_model_leads_with_few_rows_where_its_assumptions_hold() -> None:
    """Ng and Jordan (2001), against (nearly) maximum likelihood."""
    rows, y = gaussian(0)
    result = likely.compare(rows, y, COUNTERPARTS, sizes=[8, 16, 64, 256, 990], test=0.5, repeats=8, random_state=0)
    leads = verdict(result).leads
    assert leads[0].winner == leads[1].winner == "generative"
    assert leads[0].lead > 10 * leads[2].lead > 20 * abs(leads[4].lead)
    assert abs(leads[-1].lead) < 0.002
    assert not verdict(result).crossings
    assert "generative has the lower log-loss up to" in str(result)


def test_the_curves_cross_where_the_assumptions_do_not_hold() -> None:
    rows, y = gaussian(0)
    result = likely.compare(
        np.exp(0.8 * rows), y, COUNTERPARTS, sizes=[8, 32, 512, 990], test=0.5, repeats=8, random_state=0
    )
    found = verdict(result)
    assert [lead.winner for lead in found.leads] == [*["generative"] * 2, *["discriminative"] * 2]
    (crossing,) = found.crossings
    assert 32 < crossing < 512
    text = str(result)
    assert (
        "generative has the lower log-loss up to 32 rows; discriminative has the lower log-loss from 512 rows" in text
    )
    assert f"the curves cross at about {crossing:.0f} rows; with 990 rows discriminative leads by " in text


def test_missing_cells_and_few_labels_are_axes_of_their_own() -> None:
    kept = X[["bill_length_mm", "bill_depth_mm", "island"]]
    result = likely.compare(kept, Y, sizes=[100], missing=(0.0, 0.3, 0.6), repeats=2, random_state=0)
    assert result.along == "missing"
    assert [lead.at for lead in verdict(result).leads] == [0.0, 0.3, 0.6]
    assert means(result, "generative") == sorted(means(result, "generative"))
    assert "% of the cells deleted" in str(verdict(result))
    result = likely.compare(kept, Y, sizes=[100], labeled=(1.0, 12), missing=[0.1], repeats=2, random_state=0)
    assert result.along == "labeled"
    assert [lead.at for lead in verdict(result).leads] == [12.0, 100.0]
    assert means(result, "discriminative")[0] > means(result, "discriminative")[1]
    assert "10% of the cells deleted" in str(result).splitlines()[0]
    assert "labels" in str(verdict(result))


# ------------------------------------------------------------------------------------------------------------- verdicts


def points(first: list[list[float]], second: list[list[float]]) -> list[Point]:
    """Points of two models at sizes 10, 100, 1000, ..., from the losses of each repeat."""
    return [
        Point(name, 10 ** (i + 1), 0.0, 1.0, 10 ** (i + 1), Score.of(values), Score.of(values))
        for name, losses in (("one", first), ("two", second))
        for i, values in enumerate(losses)
    ]


def test_a_verdict_compares_each_repeat_with_itself() -> None:
    found = verdicts(["one", "two"], points([[0.1, 0.5, 0.9]], [[0.2, 0.61, 0.99]]))[0]
    (lead,) = found.leads
    assert lead.winner == "one"
    difference = np.array([0.1, 0.11, 0.09])
    assert_allclose([lead.lead, lead.standard_error], [0.1, difference.std(ddof=1) / np.sqrt(3)])
    noisy = verdicts(["one", "two"], points([[0.1, 0.5, 0.9]], [[0.2, 0.45, 0.99]]))[0]
    assert noisy.leads[0].winner is None
    assert str(noisy).startswith("neither has a significantly lower log-loss; with 10 rows they differ by 0.0467")


def test_a_failed_repeat_is_excluded_from_the_pair() -> None:
    found = verdicts(["one", "two"], points([[0.1, np.nan, 0.3]], [[0.2, 0.1, 0.4]]))[0]
    assert_allclose(found.leads[0].lead, 0.1)
    nothing = verdicts(["one", "two"], points([[np.nan, np.nan]], [[0.2, 0.1]]))[0]
    assert nothing.leads[0].winner is None
    assert "nothing to compare" in str(nothing)


def test_one_repeat_has_no_clear_lead() -> None:
    found = verdicts(["one", "two"], points([[0.1], [0.5]], [[0.5], [0.1]]))[0]
    assert [lead.winner for lead in found.leads] == [None, None]
    assert str(found).endswith("with 100 rows they differ by 0.4000")


def test_curves_cross_on_the_logarithm_of_the_rows() -> None:
    leads = [Lead(10.0, 0.3, 0.0, "one"), Lead(100.0, -0.3, 0.0, "two"), Lead(1000.0, -0.3, 0.0, "two")]
    assert_allclose(crossings(leads, "size"), [np.sqrt(1000.0)])
    assert_allclose(crossings([Lead(0.1, 0.2, 0.0, "a"), Lead(0.4, -0.1, 0.0, "b")], "missing"), [0.3])


def test_of_several_zeros_between_clear_leads_the_middle_one_counts() -> None:
    values = [("one", 0.5), (None, -0.1), (None, 0.1), (None, -0.1), ("two", -0.5)]
    leads = [Lead(10.0**i, lead, 0.1, winner) for i, (winner, lead) in enumerate(values)]
    assert_allclose(crossings(leads, "size"), [10**1.5])
    assert not crossings(leads[:4], "size")
    unknown = [leads[0], Lead(5.0, np.nan, np.nan, None), leads[-1]]
    assert len(crossings(unknown, "size")) == 1


def test_runs_of_leads_are_reported_one_after_another() -> None:
    spread = [-0.001, 0.0, 0.001]
    base = [[0.5, 0.5, 0.5]] * 6
    shifts = (0.1, 0.1, 0.0, -0.1, -0.1, 0.1)
    other = [[0.5 + shift + noise for noise in spread] for shift in shifts]
    text = str(verdicts(["one", "two"], points(base, other))[0])
    assert text == (
        "one has the lower log-loss up to 100 rows; two has the lower log-loss from 10000 to 100000 rows; one has the "
        "lower log-loss with 1000000 rows; the curves cross at about 1000 and 316228 rows; with 1000000 rows one leads "
        "by 0.1000 ± 0.0006"
    )
    everywhere = str(verdicts(["one", "two"], points(base[:2], other[:2]))[0])
    assert everywhere.startswith("one has the lower log-loss everywhere, from 10 to 100 rows; with 100 rows one leads")


# ------------------------------------------------------------------------------------------------ failures and warnings


def test_what_cannot_be_fitted_is_counted_and_reported() -> None:
    models = {"linear": LinearDiscriminant(estimation="bayes"), "quadratic": QuadraticDiscriminant()}
    result = likely.compare(ROWS, LABELS, models, sizes=[6, 100], repeats=3, random_state=0)
    small, large = result.curve("quadratic")
    assert (small.failures, large.failures) == (3, 0)
    assert np.isnan(small.log_loss.mean)
    assert small.reason is not None
    assert small.reason.startswith("NotEstimableError: ")
    assert any(note.startswith("quadratic: 3 fits failed, with 6 rows; the first: NotEst") for note in result.notes)
    assert "none" in str(result)
    record = result.records()[1]
    assert (record["model"], record["repeats"], record["failures"]) == ("quadratic", 0, 3)
    result.plot()
    mpl.pyplot.close("all")


def test_nothing_fitted_at_all_is_an_error_with_the_reason() -> None:
    with pytest.raises(InputError, match=r"No model could be fitted at any size\. q: NotEstimableError: "):
        likely.compare(ROWS, LABELS, {"q": QuadraticDiscriminant()}, sizes=[6], repeats=2)


class Odd(ClassifierMixin, BaseEstimator):
    """A classifier that gives something that is no probability, or breaks."""

    def __init__(self, answer: float = np.nan, broken: bool = False) -> None:
        self.answer, self.broken = answer, broken

    def fit(self, X: Any, y: Any) -> Odd:
        self.classes_ = np.unique(y)
        if self.broken:
            raise AttributeError("a slip in the code")
        warnings.warn("odd  words,\nagain", NotConvergedWarning, stacklevel=2)
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.full((len(X), len(self.classes_)), self.answer)


def test_answers_that_are_no_probabilities_are_failures_and_warnings_are_collected() -> None:
    models = {"odd": Odd(), "prior": DummyClassifier(strategy="prior")}
    result = likely.compare(ROWS, LABELS, models, sizes=[10, 20], repeats=2, random_state=0)
    assert all(point.failures == 2 for point in result.curve("odd"))
    assert "odd: NotConvergedWarning × 4; the first: odd words, again" in result.notes
    assert any("4 fits failed, with 10 to 20 rows; the first: InputError: Odd.predict_proba" in n for n in result.notes)


def test_a_slip_in_the_code_of_a_model_is_not_swallowed() -> None:
    with pytest.raises(AttributeError, match="a slip"):
        likely.compare(ROWS, LABELS, {"odd": Odd(broken=True)}, sizes=[10], repeats=1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sizes": [0]}, "sizes: 0 is not a whole number from 3"),
        ({"sizes": [10.5]}, "sizes: 10.5 is not a whole number"),
        ({"sizes": [342]}, "to 273, the number of training rows"),
        ({"sizes": []}, "sizes is empty"),
        ({"sizes": "all"}, "sizes='all' is neither a number nor an iterable of numbers"),
        ({"sizes": ["10"]}, "are not all numbers"),
        ({"models": {}}, "models is empty"),
        ({"models": [LinearDiscriminant()]}, "models must be a mapping"),
        ({"models": {"a": LinearDiscriminant}}, "is not an estimator, but a class. Use an instance"),
        ({"models": {"a": MixtureModel(2)}}, "is not a classifier. Use a classifier"),
        ({"models": {"a": GenerativeRegressor()}}, "is not a classifier. Use cross_validate for regressors"),
        ({"models": {"a": RidgeClassifier()}}, "has no predict_proba"),
        ({"models": {1: NaiveBayes(), "1": NaiveBayes()}}, "not all different as text"),
        ({"missing": 1.0}, "missing: 1.0 is not a proportion"),
        ({"missing": [-0.1]}, "missing: -0.1 is not a proportion"),
        ({"missing": [np.nan]}, "missing: nan is not a proportion"),
        ({"labeled": 0}, "labeled: 0 is neither"),
        ({"labeled": 2.5}, "labeled: 2.5 is neither"),
        ({"repeats": 0}, "repeats=0 must be a whole number, at least 1"),
        ({"repeats": 1.5}, "repeats=1.5"),
        ({"test": 0.0}, "test=0.0 is not a proportion"),
        ({"test": 20}, "test=20 is not a proportion"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        likely.compare(ROWS, LABELS, **options)


def test_labels_that_cannot_be_compared_are_named() -> None:
    with pytest.raises(InputError, match=r"y has one class, 'a'"):
        likely.compare(ROWS, np.full(len(ROWS), "a"))
    rare = LABELS.copy()
    rare[0] = "Emperor"
    with pytest.raises(InputError, match="Class 'Emperor' has one row"):
        likely.compare(ROWS, rare)
    rare[0] = None
    with pytest.raises(InputError, match="row 0: the label is missing"):
        likely.compare(ROWS, rare)


def test_curves_that_were_not_tried_are_named() -> None:
    result = likely.compare(ROWS, LABELS, COUNTERPARTS, sizes=[20, 40], repeats=1, random_state=0)
    with pytest.raises(InputError, match="'generativ' is not known"):
        result.curve("generativ")
    with pytest.raises(InputError, match=r"size=30 was not tried\. Tried: 20, 40"):
        result.curve("generative", size=30)
    with pytest.raises(InputError, match="axis='columns'"):
        result.curve("generative", columns=30)


# ----------------------------------------------------------------------------------------------------------- renderings


@pytest.fixture(scope="module")
def four() -> Comparison:
    """Two models in four settings."""
    models = {"_costs $5$": GaussianNB(), "other": make_pipeline(StandardScaler(), LogisticRegression())}
    return likely.compare(
        ROWS, LABELS, models, sizes=[10, 40, 160], missing=(0.0, 0.3), labeled=(1.0, 0.5), repeats=2, random_state=0
    )


def test_a_picture_has_a_line_for_each_model_in_each_panel(four: Comparison, tmp_path: Path) -> None:
    panels = four.plot()
    assert panels.shape == (2, 4)
    for panel, score in itertools.chain(((p, "log_loss") for p in panels[0]), ((p, "error") for p in panels[1])):
        lines = [line for line in panel.lines if line.get_marker() == "o"]
        assert len(lines) == len(panel.collections) == 2
        assert panel.get_xscale() == "log"
        assert panel.get_yscale() == ("log" if score == "log_loss" else "linear")
        low, high = panel.get_ylim()
        for line in lines:
            assert np.all((np.asarray(line.get_ydata()) >= low) & (np.asarray(line.get_ydata()) <= high))
    first = panels[0, 0].lines[0]
    assert_allclose(first.get_ydata(), means(four, "_costs $5$", missing=0.0, labeled=1.0))
    assert first.get_xdata().tolist() == [10, 40, 160]
    assert panels[0, 0].get_title() == "all labels, no cells deleted"
    assert (panels[0, 0].get_ylabel(), panels[1, 0].get_ylabel()) == ("log-loss", "error")
    assert panels[1, 3].get_xlabel() == "training rows"
    assert [text.get_text() for text in panels[0, -1].get_legend().get_texts()] == [r" _costs \$5\$", "other"]
    panels[0, 0].figure.savefig(tmp_path / "curves.png")
    mpl.pyplot.close("all")


def test_a_picture_can_be_drawn_into_axes_that_are_there() -> None:
    from matplotlib.figure import Figure

    rows, y = gaussian(0)
    result = likely.compare(np.exp(0.8 * rows), y, COUNTERPARTS, sizes=[8, 990], test=0.5, repeats=4, random_state=0)
    ax = Figure().add_subplot()
    assert result.plot(ax, score="log_loss")[0, 0] is ax
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    assert_allclose([line.get_xdata()[0] for line in dotted], verdict(result).crossings)
    with pytest.raises(InputError, match="ax has 1 Axes, and there are 2 panels"):
        result.plot(ax)
    with pytest.raises(InputError, match="score='loss' is not known"):
        result.plot(score="loss")


def test_a_table_is_printed_for_each_setting(four: Comparison) -> None:
    text = str(four)
    for setting in ("all labels, no cells deleted", "50% of the labels, 30% of the cells deleted"):
        assert setting in text
    assert text.count("log-loss, _costs $5$ against other: ") == text.count("error, _costs $5$ against other: ") == 4
    point = four.points[0]
    assert f"{point.log_loss.mean:.4f} ± {point.log_loss.standard_error:.4f}" in text
    assert "Mean of 2 repeats ± standard error, on 69 held-out rows." in text


def test_the_result_is_plain_data(four: Comparison) -> None:
    frame = pd.DataFrame(four.records())
    assert len(frame) == len(four.points) == 2 * 3 * 2 * 2
    assert frame["log_loss"].tolist() == [point.log_loss.mean for point in four.points]
    plain = four.to_dict()
    assert plain["points"][0]["log_loss"]["values"] == four.points[0].log_loss.values
    assert plain["verdicts"][0]["leads"][0]["at"] == 10.0


def test_one_model_alone_has_curves_and_no_verdict() -> None:
    result = likely.compare(ROWS, LABELS, {"alone": NaiveBayes()}, sizes=30, repeats=2, random_state=0)
    assert result.verdicts == ()
    assert result.sizes == (30,)
    assert "alone" in str(result)


# ------------------------------------------------------------------------------------------------------------- progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_shows_how_far_a_comparison_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY", -1.0)
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    likely.compare(ROWS, LABELS, COUNTERPARTS, sizes=[20, 40], missing=[0.0, 0.2], repeats=2, random_state=0)
    lines = shown.getvalue().strip("\r\n").split("\r")
    assert len(lines) == 16  # the models' own iterations are not told
    assert lines[7] == f"[{'#' * 15}{'-' * 15}] 8 of 16 fits"
    assert lines[-1] == f"[{'#' * 30}] 16 of 16 fits"


def test_steps_are_counted_where_no_total_is_known() -> None:
    assert progress.line(12, None) == "12"
    assert progress.line(0, 4) == f"[{'-' * 30}] 0 of 4"


# ------------------------------------------------------------------------------------------------------------- baseline


def test_the_baseline_is_that_of_the_class_proportions_of_the_training_rows(four: Comparison) -> None:
    """A model that predicts the class proportions has the scores of the baseline at every point."""
    dummy = likely.compare(
        ROWS,
        LABELS,
        {"dummy": DummyClassifier(strategy="prior")},
        sizes=[10, 40, 160],
        labeled=(1.0, 0.5),
        repeats=2,
        random_state=0,
    )
    for point in dummy.points:
        baseline = next(p for p in dummy.baseline if (p.size, p.labeled) == (point.size, point.labeled))
        assert_allclose(baseline.log_loss.values, point.log_loss.values, rtol=1e-12)
        assert_allclose(baseline.error.values, point.error.values, rtol=1e-12)
        assert baseline.labels == point.labels
    assert "worse than predicting" not in str(dummy)
    by_size = {(p.size, p.labeled): p.log_loss.values for p in four.baseline}
    assert by_size == {(p.size, p.labeled): p.log_loss.values for p in dummy.baseline}


def test_models_worse_than_the_class_proportions_are_named() -> None:
    rng = np.random.default_rng(0)
    noise, coin = rng.normal(size=(120, 8)), np.arange(120) % 2
    models = {"wild": QuadraticDiscriminant(estimation="bayes"), "dummy": DummyClassifier()}
    result = likely.compare(noise, coin, models, sizes=[40, 80], repeats=3, random_state=0)
    text = str(result)
    assert "wild is worse than predicting the class proportions with 40 rows, 80 rows (log-loss)." in text
    assert "dummy is worse" not in text
    assert "class proportions" in text.splitlines()[0]


def test_the_points_are_a_frame_of_the_library_of_the_table(four: Comparison) -> None:
    frame = four.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["log_loss"].tolist() == [point.log_loss.mean for point in four.points]
    assert set(frame["baseline_log_loss"]) == {point.log_loss.mean for point in four.baseline}
    rows = pl.DataFrame(np.asarray(ROWS)[:, :2], schema=["a", "b"])
    found = likely.compare(rows, LABELS, {"naive": NaiveBayes()}, sizes=[40], repeats=1, random_state=0)
    assert isinstance(found.to_frame(), pl.DataFrame)


def test_html_of_a_comparison_is_escaped() -> None:
    models = {"<b>naive</b>": NaiveBayes(), "other": DummyClassifier()}
    page = likely.compare(ROWS, LABELS, models, sizes=[40], repeats=1, random_state=0)._repr_html_()
    assert "&lt;b&gt;naive&lt;/b&gt;" in page
    assert "<b>" not in page
    assert page.count("<table>") == 2
