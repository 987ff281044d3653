"""The family that the documentation writes works wherever the library takes a family, and is one of its own kind."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import likely
from likely import Categorical, EvidenceClassifier, Gaussian, GenerativeClassifier, NaiveBayes, Poisson
from likely.data.batches import Batches
from likely.errors import CellError, ExportError, InputError
from likely.evidence.training import distinct_rows, encoded
from likely.numerics.expressions import square
from likely.persistence import register

PAGE = Path(__file__).parents[2] / "docs" / "families.md"
FAST: dict[str, Any] = {"n_trees": 4}


def family_of_the_page() -> tuple[Any, Any]:
    """The classes of the first example: densities and family."""
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0], str(PAGE), "exec"), names)
    return names["RayleighConditionals"], names["Rayleigh"]


RayleighConditionals: Any
Rayleigh: Any
RayleighConditionals, Rayleigh = family_of_the_page()
register(Rayleigh, name="tests.Rayleigh")


class ExportedConditionals(RayleighConditionals):
    def statistic_expressions(self, x: Any) -> Any:
        return (square(x),)


class ExportedRayleigh(Rayleigh):
    def estimate(self, statistics: Any, estimation: Any, names: Any) -> Any:
        found = super().estimate(statistics, estimation, names)
        return ExportedConditionals(found.informative, found.constant_value, found.square)


def winds(rows: int = 400) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(3)
    y = np.where(rng.random(rows) < 0.5, "calm", "windy")
    frame = pd.DataFrame(
        {
            "wind": rng.rayleigh(np.where(y == "calm", 3.0, 6.0)),
            "visits": rng.poisson(np.where(y == "calm", 4.0, 6.0)),
            "zip": rng.choice([10115, 20095, 80331, 50667, 60311, 70173, 1067, 99084], rows),
            "plain": rng.normal(size=rows),
        }
    )
    frame.loc[::10, "wind"] = np.nan
    return frame, y


DECLARED = {"wind": Rayleigh(), "visits": Poisson(), "zip": Categorical()}


@pytest.fixture(scope="module")
def fitted() -> EvidenceClassifier:
    return EvidenceClassifier(families=DECLARED, **FAST).fit(*winds())


def test_declared_families_are_those_of_the_joint_density_and_of_the_columns_view(fitted: Any) -> None:
    X, y = winds()
    assert {name: str(fitted.generative_.families_[name]) for name in DECLARED} == {
        name: str(family) for name, family in DECLARED.items()
    }
    terms = fitted.weights_.query("view == 'columns'")["column"].tolist()
    assert sorted(terms) == sorted(X.columns)
    (columns,) = (each.view for each in fitted.model_.views if each.view.name == "columns")
    encoded = next(iter(fitted._encoded(X)))
    found = columns.terms(encoded)[list(columns.term_columns).index(0)]
    alone = NaiveBayes({"wind": Rayleigh()}, calibration=None).fit(X[["wind"]], y)
    odds = np.subtract(*alone.log_joint(X[["wind"]]).T) - np.subtract(*np.log(alone.class_prior_))
    assert_allclose(found[0] - found[1], odds, atol=1e-9)
    assert_allclose(found[:, X["wind"].isna()], 0.0)


def test_declared_numbers_are_categories_in_all_views(fitted: Any) -> None:
    X, _ = winds()
    zipped = list(X).index("zip")
    assert zipped in fitted.model_.encoding.categorical
    assert zipped in EvidenceClassifier(**FAST).fit(*winds()).model_.encoding.numeric


def test_leave_one_out_of_a_declared_column_equals_refitting() -> None:
    X, y = winds(60)
    model = EvidenceClassifier(["columns"], families=DECLARED, **FAST).fit(X, y)
    columns: Any = model.model_.views[0].view
    part = columns.parts[-3]
    assert part.term_columns == (0,)

    batch = Batches(X, y, None, model._read, "test").first
    rows = encoded(distinct_rows(batch, model.model_.encoding.columns), model.model_.encoding)
    held_out = part.left_out(rows)[0]
    for i, place in enumerate(rows.positions[:5].tolist()):
        rest = np.arange(len(X)) != place
        again = NaiveBayes({"wind": Rayleigh()}, calibration=None).fit(X.loc[rest, ["wind"]], y[rest])
        row = X.loc[[place], ["wind"]]
        odds = np.subtract(*again.log_joint(row).T) - np.subtract(*np.log(again.class_prior_))
        assert_allclose(held_out[0, i] - held_out[1, i], odds[0], atol=0.05)  # averages are those of all rows


def test_models_with_a_declared_family_are_saved_and_updated(fitted: Any, tmp_path: Path) -> None:
    X, y = winds()
    fitted.save(tmp_path / "wind.likely")
    loaded = likely.load(tmp_path / "wind.likely")
    assert_allclose(loaded.predict_proba(X), fitted.predict_proba(X), rtol=0)
    before = fitted.predict_proba(X)
    loaded.partial_fit(X[:50], y[:50]).forget(X[:50], y[:50])
    assert_allclose(loaded.predict_proba(X), before, atol=1e-9)
    more = EvidenceClassifier(families=DECLARED, **FAST).fit(X[:80], y[:80], structure_of=fitted)
    assert (fitted + more).summary().class_weights[0] > fitted.summary().class_weights[0]


def test_values_outside_the_support_are_named_by_their_rows(fitted: Any) -> None:
    X, y = winds()
    X.loc[321, "wind"] = -1.0
    for call in (lambda: fitted.predict(X), lambda: EvidenceClassifier(families=DECLARED, **FAST).fit(X, y)):
        with pytest.raises(CellError, match=r"Column 'wind', row 321: -1\.0 is not a finite number > 0 \(Rayleigh\)"):
            call()


@pytest.mark.parametrize("family", [Gaussian("diagonal"), Categorical(), Poisson()], ids=str)
def test_any_family_takes_back_a_column_that_was_set_aside(family: Any) -> None:
    X, y = winds()
    X["row"] = np.arange(len(X))
    aside = EvidenceClassifier(**FAST).fit(X, y)
    assert "row" not in aside.weights_["column"].tolist()
    assert aside.generative_.families_.get("row") is None
    taken = EvidenceClassifier(families={"row": family}, **FAST).fit(X, y)
    assert "row" in taken.weights_.query("view == 'columns'")["column"].tolist()
    assert str(taken.generative_.families_["row"]) == str(family)


@pytest.mark.parametrize("make", [GenerativeClassifier, NaiveBayes])
def test_statements_and_graphs_of_a_family_of_the_user_equal_its_probabilities(make: Any, tmp_path: Path) -> None:
    X, y = winds(120)
    X = X[["wind", "plain"]]
    model = make({"wind": ExportedRayleigh(), "plain": Gaussian(shared=True)}).fit(X, y)
    expected = model.predict_proba(X)
    with sqlite3.connect(":memory:") as connection:
        X.to_sql("winds", connection, index=False)
        found = connection.execute(model.to_sql("winds", dialect="sqlite")).fetchall()
    assert_allclose([row[1:3] for row in found], expected, atol=1e-12)
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    graph = session.run(["probabilities"], {"X": X.to_numpy()})
    assert_allclose(graph[0], expected, atol=1e-6)
    if shutil.which("node"):
        script = tmp_path / "model.mjs"
        script.write_text(model.to_javascript())
        assert subprocess.run(["node", "--check", str(script)], check=True, timeout=60).returncode == 0


def test_a_family_without_expressions_is_not_exported_and_the_error_says_what_it_lacks() -> None:
    X, y = winds(120)
    model = GenerativeClassifier({"wind": Rayleigh()}).fit(X[["wind"]], y)
    for call in (lambda: model.to_sql("winds"), model.to_onnx, model.to_javascript):
        with pytest.raises(ExportError, match=r"column 'wind': the family has no expression.*statistic_expressions"):
            call()


def test_a_family_that_is_not_registered_is_not_saved(tmp_path: Path) -> None:
    X, y = winds(120)
    for model in (
        GenerativeClassifier({"wind": ExportedRayleigh()}),
        EvidenceClassifier(families={"wind": ExportedRayleigh()}, **FAST),
    ):
        with pytest.raises(InputError, match="register"):
            model.fit(X[["wind", "plain"]], y).save(tmp_path / "wind.likely")
