"""What summaries, explanations and boundaries print."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.utils import get_tags

from likely import (
    Categorical,
    EvidenceClassifier,
    GenerativeClassifier,
    HybridClassifier,
    Imputer,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    NearestPrototype,
    QuadraticDiscriminant,
    SoftmaxRegression,
    load,
)
from likely.errors import InputError
from likely.model.boundary import LinearBoundary, QuadraticBoundary
from likely.model.rendering import short_names

IRIS = load_iris(return_X_y=True)


def test_a_linear_boundary_prints_as_an_equation_with_the_names_of_the_columns() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    found = LinearDiscriminant().fit(X.set_axis(list("abcd"), axis=1), y).boundary(2, 1)
    assert str(found) == (
        "log p(2 | x) − log p(1 | x) = w·x + w0, which is 0 on the boundary:\n\n"
        "−3.319·a − 3.456·b + 7.709·c + 14.94·d − 32.16 = 0"
    )
    assert isinstance(found, LinearBoundary)
    assert_allclose(found.w0, -32.16, atol=0.01)
    assert repr(found) == str(found)


def test_a_linear_boundary_of_many_columns_prints_the_largest_coefficients() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b "], 100)
    X = rng.normal(size=(200, 30)) + np.where(y == "a", 1.0, 0.0)[:, None] * np.arange(30) / 30
    text = str(LinearDiscriminant().fit(X, y).boundary("a", "b "))
    assert "log p(a | x) − log p('b ' | x)" in text
    assert text.count("·x") == 13  # with that of the title
    assert "(and 18 more columns with smaller coefficients)" in " ".join(text.split())


def test_a_quadratic_boundary_prints_its_coefficients() -> None:
    found = QuadraticDiscriminant().fit(*IRIS).boundary(0, 1)
    assert isinstance(found, QuadraticBoundary)
    lines = str(found).splitlines()
    assert lines[0] == "log p(0 | x) − log p(1 | x) = xᵀ·A·x + b·x + c, which is 0 on the boundary:"
    assert lines[2].split() == ["column", "b", "A:", "x0", "A:", "x1", "A:", "x2", "A:", "x3"]
    assert lines[-1] == f"c = {found.c:.4g}"


def test_printed_contributions_are_relative_to_their_mean_over_the_classes() -> None:
    X, y = IRIS
    model = GenerativeClassifier().fit(X, y)
    explanation = model.explain(X[[70]])
    lines = [line.split() for line in str(explanation).splitlines()[2:]]
    order = [model.classes_.tolist().index(int(label)) for label in lines[0][1:]]
    values = {line[0]: np.array(line[1:], dtype=float) for line in lines[1:]}
    assert all(abs(part.sum()) < 0.02 for part in values.values())
    scores = np.exp(values["sum"] - values["sum"].max())
    assert_allclose(scores / scores.sum(), model.predict_proba(X[[70]])[0, order], atol=0.01)
    centred = explanation.evidence[0] - explanation.evidence[0].mean(axis=0)
    assert_allclose(values["x2"], centred[order, 2], atol=0.006)


def test_an_impossible_value_stays_impossible_in_printed_contributions() -> None:
    X = np.array([["p"], ["q"], ["q"], ["r"], ["p"], ["r"]])
    model = NaiveBayes(Categorical(smoothing=0.0), estimation="mle").fit(X, ["a", "b", "b", "c", "a", "a"])
    lines = str(model.explain([["p"]])).splitlines()
    assert lines[2].split() == ["column", "a", "b", "c"]
    assert lines[3].split() == ["x0", "0.00", "-inf", "-inf"]
    assert "nan" not in "\n".join(lines)


def test_families_and_covariances_that_were_chosen_are_two_tables() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = pd.DataFrame({f"c{j}": rng.gamma(2.0, 1.0 + y * (j % 3)) for j in range(16)})
    model = GenerativeClassifier().fit(X, y)
    text = str(model.summary())
    assert "and 4 more" in text
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("families, chosen by leave-one-out"))
    assert lines[first + 1].split() == ["column", "chosen", "next", "best", "log-density", "difference"]
    record = model.choices_[0]
    assert record.next_best is not None
    assert record.score is not None
    assert lines[first + 2].split()[-2:] == [
        f"{record.score:.4f}",
        f"{record.next_best[1] - record.score:+.4f}",
    ]
    second = next(i for i, line in enumerate(lines) if line.startswith("covariances, chosen by leave-one-out"))
    assert lines[second + 1].split() == ["column", "chosen", "next", "best", "log-loss", "difference"]
    assert max(map(len, lines)) <= 130


def test_labels_are_in_quotes_where_they_need_them() -> None:
    assert short_names(["yes", "yes ", " no", ""]) == ["yes", "'yes '", "' no'", "''"]
    assert short_names([1, "2", "b"]) == ["1", "'2'", "b"]
    assert short_names(["1", "2"]) == ["1", "2"]
    assert short_names([np.str_("a "), np.int64(3), "3"]) == ["'a '", "3", "'3'"]
    X = np.random.default_rng(0).normal(size=(6, 1))
    assert "'b '      3  0.5000" in str(NaiveBayes().fit(X, ["a", "b "] * 3).summary())


@pytest.mark.parametrize("estimator", [LinearDiscriminant, QuadraticDiscriminant, NearestPrototype])
def test_the_summary_of_a_discriminant_has_its_leave_one_out_log_loss(estimator: Any, tmp_path: Any) -> None:
    X, y = IRIS
    model = estimator().fit(X, y)
    held_out = model.left_out_proba(X, y)[np.arange(150), y]
    loss = -np.log(held_out).mean()
    summary = model.summary()
    assert_allclose(summary.log_loss, loss, rtol=1e-12)
    assert f"leave-one-out log-loss: {loss:.4f}; of the class proportions: 1.1121" in str(summary)
    model.save(tmp_path / "model")
    assert str(load(tmp_path / "model").summary()) == str(summary)
    assert model.partial_fit(X[:3], y[:3]).summary().log_loss is None  # of other rows


def test_the_log_loss_of_many_rows_is_that_of_some() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 9000)
    X = rng.normal(size=(9000, 2)) + y[:, None]
    summary = LinearDiscriminant().fit(X, y).summary()
    assert summary.scored_rows == 4000
    assert "leave-one-out log-loss of 4,000 rows: " in str(summary)


def test_the_log_loss_of_rows_that_are_impossible_without_themselves_is_infinite() -> None:
    X = np.array([[0.0], [1.0], [4.0], [6.0]])
    text = str(QuadraticDiscriminant().fit(X, [0, 0, 1, 1]).summary())
    assert "leave-one-out log-loss: inf; of the class proportions: " in text
    assert "The model is worse than predicting the class proportions." in text


def test_the_summary_of_linear_discriminants_has_their_coefficients_and_proportion_of_trace() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = LinearDiscriminant(unbiased=True).fit(X.set_axis(["SL", "SW", "PL", "PW"], axis=1), y)
    lines = str(model.summary()).splitlines()
    start = lines.index("coefficients of linear discriminants")
    table = [line.rsplit(maxsplit=2) for line in lines[start + 1 : start + 7]]
    assert [line[0].strip() for line in table] == ["column", "SL", "SW", "PL", "PW", "proportion of trace"]
    values = np.array([line[1:] for line in table[1:]], dtype=float)
    # lda(Species ~ ., iris) of R's MASS 7.3, which has the opposite sign of LD1
    mass = [[0.8293776, 0.02410215], [1.5344731, 2.16452123], [-2.2012117, -0.93192121], [-2.8104603, 2.83918785]]
    assert_allclose(np.abs(values[:4]), np.abs(mass), rtol=5e-6)
    assert values[4].tolist() == [0.9912, 0.0088]


def test_the_error_about_identifiers_alone_names_the_columns() -> None:
    frame = pd.DataFrame({"v": [f"c{i}" for i in range(600)]})
    with pytest.raises(InputError, match=r"All columns of X are set aside: 'v' \(codes, all distinct\)"):
        EvidenceClassifier().fit(frame, np.repeat(["a", "b"], 300))


@pytest.mark.parametrize(
    ("estimator", "takes"),
    [
        (GenerativeClassifier(), True),
        (NaiveBayes(), True),
        (EvidenceClassifier(), True),
        (HybridClassifier(), True),
        (MixtureModel(), True),
        (Imputer(), True),
        (LinearDiscriminant(), False),
        (SoftmaxRegression(), False),
    ],
)
def test_the_tags_of_scikit_learn_say_which_estimators_take_categories(estimator: Any, takes: bool) -> None:
    assert get_tags(estimator).input_tags.categorical == takes
