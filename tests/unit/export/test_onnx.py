"""Models as ONNX graphs, run by ONNX Runtime."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from likely import (
    Categorical,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    NaiveBayes,
    Poisson,
    QuadraticDiscriminant,
)
from likely.errors import ExportError, InputError, MissingExtraError
from tests.helpers import load_table
from tests.unit.export.cases import case_of, every_case

Result = tuple[Any, Any, Any]


def run(model: Any, rows: pd.DataFrame, dtype: str = "float64") -> Result:
    """Labels and probabilities of rows, and whether these are of the row."""
    session = onnxruntime.InferenceSession(model.to_onnx(dtype=dtype).SerializeToString())
    inputs = session.get_inputs()
    if [each.name for each in inputs] == ["X"]:
        feed = {"X": rows.to_numpy(dtype=dtype)}
    else:
        feed = {each.name: column_of(rows[each.name], each.type, dtype) for each in inputs}
    label, probabilities, valid = session.run(["label", "probabilities", "valid"], feed)
    return label, probabilities, valid


def column_of(column: pd.Series[Any], kind: str, dtype: str) -> Any:
    """A column as an input of shape (rows, 1); missing text is no category."""
    values = column.fillna("no category") if kind == "tensor(string)" else column
    return values.to_numpy(dtype=object if kind == "tensor(string)" else dtype)[:, None]


@every_case
def test_graphs_predict_what_the_model_predicts(name: str) -> None:
    case = case_of(name)
    label, probabilities, valid = run(case.model, case.rows)
    expected = case.probabilities
    assert valid.all()
    assert_allclose(probabilities, expected, rtol=0.0, atol=1e-12)
    top = np.sort(expected, axis=1)
    clear = np.flatnonzero(top[:, -1] - top[:, -2] > 1e-9).tolist()
    assert [label.tolist()[i] for i in clear] == [case.predicted[i] for i in clear]


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
@pytest.mark.parametrize("kind", ["automatic", "lda", "qda"])
@pytest.mark.parametrize(
    ("table", "target"), [("penguins", "species"), ("pima_missing", "diabetes"), ("glass", "Type")]
)
def test_missing_values_of_joint_blocks_are_integrated_out(table: str, target: str, kind: str, estimation: str) -> None:
    frame = load_table(table)
    X = frame.drop(columns=target)
    if kind == "automatic":
        model: Any = GenerativeClassifier(estimation=estimation)
    else:
        X = X.select_dtypes("number")
        model = (LinearDiscriminant if kind == "lda" else QuadraticDiscriminant)(estimation=estimation)
        if estimation == "mle" and table == "glass" and kind == "qda":
            model = QuadraticDiscriminant("diagonal", estimation="mle")  # a class has fewer rows than columns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, frame[target])
        rows = X.mask(np.random.default_rng(0).random(X.shape) < 1.0 / 3.0)
        expected, predicted = model.predict_proba(rows), model.predict(rows).tolist()
    label, probabilities, valid = run(model, rows)
    assert valid.all()
    assert_allclose(probabilities, expected, rtol=0.0, atol=1e-12)
    assert label.tolist() == predicted


@pytest.mark.parametrize("reason", ["wide", "dependent"])
def test_rows_that_the_graph_cannot_score_are_not_valid_and_have_the_class_prior(reason: str) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 30 if reason == "wide" else 3))).add_prefix("x")
    if reason == "dependent":
        X["x2"] = X["x0"] + X["x1"]
    y = np.where(np.arange(120) % 4 == 0, "a", "b")
    model = QuadraticDiscriminant(estimation="bayes") if reason == "wide" else LinearDiscriminant(estimation="mle")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    rows = X[:6].copy()
    rows.loc[1, "x0"] = np.nan
    rows.loc[3] = np.nan
    rows.loc[4, "x0"] = np.inf
    label, probabilities, valid = run(model, rows)
    assert valid.tolist() == [True, False, True, False, False, True]
    assert_allclose(probabilities[~valid], np.tile(model.class_prior_, (3, 1)), rtol=0.0, atol=1e-15)
    assert (label[~valid] == "b").all()
    assert_allclose(probabilities[valid], model.predict_proba(rows[valid]), rtol=0.0, atol=1e-12)
    label, _, valid = run(model.with_prior({"a": 0.9, "b": 0.1}), rows)
    assert (label[~valid] == "a").all()


def test_rows_that_a_regression_cannot_score_are_not_valid_and_have_equal_probabilities() -> None:
    case = case_of("softmax")
    rows = case.rows[:4].copy()
    rows.iloc[1, 0], rows.iloc[2, 1] = np.nan, -np.inf
    label, probabilities, valid = run(case.model, rows)
    assert valid.tolist() == [True, False, False, True]
    assert_allclose(probabilities[~valid], 1.0 / 3.0, rtol=0.0, atol=1e-15)
    assert label[valid].tolist() == case.model.predict(rows[valid]).tolist()


def test_float32_inputs_are_computed_in_double_precision() -> None:
    case = case_of("naive-bayes")
    rows = case.rows.astype(np.float32)
    _, probabilities, _ = run(case.model, rows, dtype="float32")
    assert probabilities.dtype == np.float32
    expected = case.model.predict_proba(rows.astype(np.float64))
    assert_allclose(probabilities, expected.astype(np.float32), rtol=0.0, atol=1e-7)


def test_a_table_of_numbers_is_one_matrix_and_a_mixed_table_has_one_input_per_column() -> None:
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0] * 5, "c": ["u", "v"] * 10})
    y = [0, 0, 1, 1] * 5
    graph = GenerativeClassifier({"a": Gaussian("diagonal")}).fit(X[["a"]], y).to_onnx().graph
    assert [each.name for each in graph.input] == ["X"]
    graph = GenerativeClassifier({"a": Gaussian("diagonal"), "c": Categorical()}).fit(X, y).to_onnx().graph
    assert [each.name for each in graph.input] == ["a", "c"]


MIXED = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0] * 5, "c": ["u", "v"] * 10, "d": np.arange(20.0) % 3})


@pytest.mark.parametrize("names", [("t0", "c0"), ("_t0", "_c0"), ("X", "__t1"), ("_", "label ")])
def test_columns_with_names_of_values_within_the_graph_are_inputs(names: tuple[str, str]) -> None:
    rows = MIXED.rename(columns={"a": names[0], "c": names[1]})
    families = {names[0]: Gaussian("diagonal"), names[1]: Categorical(), "d": Gaussian("diagonal")}
    model = GenerativeClassifier(families).fit(rows, [0, 0, 1, 1] * 5)
    _, probabilities, _ = run(model, rows)
    assert_allclose(probabilities, model.predict_proba(rows), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", ["label", "probabilities", "valid", ""])
def test_columns_with_the_name_of_an_output_or_none_are_refused(name: str) -> None:
    rows = MIXED.rename(columns={"c": name})
    model = GenerativeClassifier({name: Categorical()}).fit(rows, [0, 0, 1, 1] * 5)
    with pytest.raises(ExportError, match="Rename the column"):
        model.to_onnx()
    rows = MIXED.drop(columns="c").rename(columns={"a": name})
    graph = LinearDiscriminant().fit(rows, [0, 0, 1, 1] * 5).to_onnx().graph
    assert [each.name for each in graph.input] == ["X"]


def test_text_that_utf8_cannot_express_is_refused() -> None:
    model = LinearDiscriminant().fit(MIXED[["a", "d"]], np.array(["\ud800", "v"] * 10, dtype=object))
    with pytest.raises(ExportError, match="lone surrogate"):
        model.to_onnx()


def test_rows_outside_a_declared_support_are_not_valid() -> None:
    X = pd.DataFrame({"n": np.arange(20.0), "m": np.arange(20.0) % 3})
    model = GenerativeClassifier(Poisson()).fit(X, np.repeat([0, 1], 10))
    rows = pd.DataFrame({"n": [1.0, -1.0, 0.5, np.inf], "m": [1.0, 1.0, np.nan, 1.0]})
    _, probabilities, valid = run(model, rows)
    assert valid.tolist() == [True, False, False, False]
    assert_allclose(probabilities[1:], np.tile(model.class_prior_, (3, 1)), rtol=0.0, atol=1e-15)


def test_one_row_and_no_row_are_predicted() -> None:
    case = case_of("lda")
    rows = case.rows.dropna()
    for n in (1, 0):
        label, probabilities, valid = run(case.model, rows[:n])
        assert (label.shape, probabilities.shape, valid.shape) == ((n,), (n, 3), (n,))


@pytest.mark.parametrize("labels", [[True, False], [3, 4], ["ä", "b"], [1.0, 2.0]])
def test_labels_keep_their_type(labels: list[Any]) -> None:
    X = pd.DataFrame({"a": np.arange(20.0)})
    label, _, _ = run(LinearDiscriminant().fit(X, np.repeat(labels, 10)), X)
    assert label.tolist() == np.repeat(labels, 10).tolist()
    assert type(label.tolist()[0]) is type(labels[0])


@pytest.mark.parametrize("deviation", [1.0 + 5e-8, 1.0 - 2e-8, 1e-50, 1e-200])
def test_constants_that_round_to_one_or_zero_in_float32_are_kept(deviation: float) -> None:
    """The optimisations of ONNX Runtime remove x / 1 and x − 0, and compare constants in float32."""
    x = np.r_[0.5:3.5:20j, 2.0:6.0:20j]
    rows = pd.DataFrame({"x": x / x[:20].std() * deviation})
    model = GenerativeClassifier(Gaussian("diagonal"), estimation="mle", calibration=None).fit(rows, np.arange(40) < 20)
    _, probabilities, _ = run(model, rows)
    assert_allclose(probabilities, model.predict_proba(rows), rtol=0.0, atol=1e-12)


def test_wrong_types_are_errors() -> None:
    with pytest.raises(InputError, match="dtype='int8' is not known"):
        case_of("lda").model.to_onnx(dtype="int8")


def test_unseen_categories_as_errors_are_not_exported() -> None:
    model = NaiveBayes(unseen="error").fit(pd.DataFrame({"c": ["u", "v"] * 20}), ["p", "q", "q", "q"] * 10)
    with pytest.raises(ExportError, match="unseen='missing'"):
        model.to_onnx()


def test_without_onnx_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r'pip install "likely\[onnx\]"'):
        case_of("lda").model.to_onnx()
