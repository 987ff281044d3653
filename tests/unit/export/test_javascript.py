"""Models as JavaScript modules, run by Node.js."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose

from likely import Categorical, Gaussian, GenerativeClassifier, NaiveBayes, Poisson
from tests.unit.export.cases import case_of, every_case
from tests.unit.export.databases import values_of
from tests.unit.export.node import run_module


def objects(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [dict(zip(rows.columns, values, strict=True)) for values in values_of(rows)]


def probabilities_of(found: dict[str, Any]) -> Any:
    return np.array([each["probabilities"] for each in found["results"]], dtype=np.float64)


@every_case
def test_modules_predict_what_the_model_predicts(name: str) -> None:
    case = case_of(name)
    found = run_module(case.model.to_javascript(), objects(case.rows))
    expected = case.probabilities
    assert found["classes"] == case.model.classes_.tolist()
    assert_allclose(probabilities_of(found), expected, rtol=0.0, atol=1e-12)
    top = np.sort(expected, axis=1)
    clear = np.flatnonzero(top[:, -1] - top[:, -2] > 1e-9).tolist()
    predicted = [each["predicted"] for each in found["results"]]
    assert [predicted[i] for i in clear] == [case.predicted[i] for i in clear]


def test_absent_columns_are_missing_and_names_of_object_members_are_harmless() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"constructor": rng.normal(np.repeat([0.0, 3.0], 30)), "__proto__": rng.normal(size=60)})
    model = NaiveBayes(Gaussian("diagonal")).fit(X, np.repeat(["a", "b"], 30))
    found = run_module(model.to_javascript(), [{}, {"constructor": 1.0}, {"constructor": None, "other": 7}])
    rows = pd.DataFrame({"constructor": [np.nan, 1.0, np.nan], "__proto__": np.nan})
    assert_allclose(probabilities_of(found), model.predict_proba(rows), rtol=0.0, atol=1e-12)


def test_rows_outside_a_declared_support_have_null() -> None:
    X = pd.DataFrame({"n": np.arange(20.0)})
    model = GenerativeClassifier({"n": Poisson()}).fit(X, np.repeat([0, 1], 10))
    found = run_module(model.to_javascript(), [{"n": 1}, {"n": -1}, {"n": 1.5}, {"n": True}])
    assert [each["predicted"] for each in found["results"]] == [0, None, None, 0]
    assert found["results"][1]["probabilities"] == [None, None]


def test_text_where_a_number_is_needed_is_a_type_error_that_names_the_column() -> None:
    model = GenerativeClassifier({"n": Poisson()}).fit(pd.DataFrame({"n": np.arange(20.0)}), np.repeat([0, 1], 10))
    script = """\
import { predict } from "./model.mjs";
let results = null;
try { predict({ n: "many" }); } catch (error) { results = [error.name, error.message]; }
console.log(JSON.stringify({ results }));
"""
    found = run_module(model.to_javascript(), [], script)
    assert found["results"] == ["TypeError", 'Column "n": "many" is not a number.']


def test_categories_of_another_type_are_type_errors_and_not_unseen_categories() -> None:
    rows = pd.DataFrame({"zip": ["02139", "10001"] * 20, "grade": [1, 2, 2, 3] * 10})
    model = NaiveBayes(Categorical()).fit(rows, ["p", "q", "q", "q"] * 10)
    script = """\
import { predict } from "./model.mjs";
const results = [];
for (const row of [{ zip: 2139 }, { zip: true }, { grade: "1" }, { grade: 1n }, { zip: "x", grade: 9 }]) {
  try { results.push(predict(row).predicted); } catch (error) { results.push(`${error.name}: ${error.message}`); }
}
console.log(JSON.stringify({ results }));
"""
    found = run_module(model.to_javascript(), [], script)
    assert found["results"] == [
        'TypeError: Column "zip": 2139 is not text.',
        'TypeError: Column "zip": true is not text.',
        'TypeError: Column "grade": "1" is not a number.',
        'TypeError: Column "grade": 1 is not a number.',
        "q",
    ]


def test_a_row_that_is_not_an_object_is_a_type_error() -> None:
    """An array has no column under its name, and would be a row without values."""
    model = GenerativeClassifier({"n": Poisson()}).fit(pd.DataFrame({"n": np.arange(20.0)}), np.repeat([0, 1], 10))
    script = """\
import { predict } from "./model.mjs";
const results = [];
for (const row of [[3], null, undefined, 3, "text"]) {
  try { predict(row); } catch (error) { results.push(`${error.name}: ${error.message}`); }
}
console.log(JSON.stringify({ results }));
"""
    found = run_module(model.to_javascript(), [], script)
    assert found["results"] == ["TypeError: A row must be an object of values by the names of the columns."] * 5


def test_booleans_and_nan_are_read() -> None:
    X = pd.DataFrame({"flag": [True, False, True, True] * 10})
    model = NaiveBayes().fit(X, ["p", "q", "p", "q"] * 10)
    script = """\
import { predict } from "./model.mjs";
const rows = [{ flag: true }, { flag: false }, { flag: 1 }, { flag: NaN }, { flag: undefined }];
console.log(JSON.stringify({ results: rows.map((row) => predict(row)) }));
"""
    found = probabilities_of(run_module(model.to_javascript(), [], script))
    expected = model.predict_proba(pd.DataFrame({"flag": [True, False, True]}))
    assert_allclose(found[:3], expected, rtol=0.0, atol=1e-12)
    assert_allclose(found[3:], [model.class_prior_] * 2, rtol=0.0, atol=1e-12)
