"""Columns that a model does not use: identifiers and free text, and the target column in predictions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import likely
from likely import (
    Categorical,
    EvidenceClassifier,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    LinearDiscriminant,
    NaiveBayes,
    QuadraticDiscriminant,
    SoftmaxRegression,
    scan,
)
from likely.errors import InputError

MAKE = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}


def table(rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, rows)
    return pd.DataFrame(
        {
            "id": rng.permutation(rows) + 1000,
            "name": [f"person {i}" for i in rng.permutation(rows)],
            "u": rng.normal(codes, 1.0),
            "v": rng.normal(size=rows),
            "group": rng.choice(["x", "y", "z"], rows),
            "species": np.array(["no", "yes"])[codes],
        }
    )


@pytest.mark.parametrize("library", MAKE)
@pytest.mark.parametrize("Model", [NaiveBayes, GenerativeClassifier])
def test_identifiers_and_free_text_are_set_aside(Model: Any, library: str, tmp_path: Any) -> None:
    frame = table()
    make = MAKE[library]
    model = Model().fit(make(frame), "species")
    plain = Model().fit(frame[["u", "v", "group"]], frame["species"])
    assert model.families_["id"] is None
    assert model.families_["name"] is None
    reasons = {choice.columns: choice for choice in model.choices_}
    assert reasons["id",].family == reasons["name",].family == "set aside"
    aside = "set aside: 'id' (row numbers: distinct whole numbers, evenly spread), 'name' (codes, all distinct)"
    assert aside in " ".join(str(model.summary()).split())
    features = frame.drop(columns="species")
    for X in (features, features.drop(columns="id"), features[["u", "v", "group"]], features.assign(name=None)):
        assert_allclose(model.predict_proba(make(X)), plain.predict_proba(frame[["u", "v", "group"]]), rtol=1e-12)
    with pytest.raises(ValueError, match="u"):
        model.predict(make(features.drop(columns="u")))
    assert_array_equal(model.explain(make(features)).evidence[:, :, :2], 0.0)
    drawn, _ = model.sample(5, random_state=0)
    assert list(pd.DataFrame(drawn.to_pandas() if library != "pandas" else drawn).columns) == list(features.columns)
    assert np.isfinite(model.novelty(make(features))).all()
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert_allclose(again.predict_proba(make(frame)), model.predict_proba(make(frame)), rtol=1e-12)
    assert again.families_["id"] is None


@pytest.mark.parametrize("dates", ["datetimes", "objects"])
@pytest.mark.parametrize("library", MAKE)
@pytest.mark.parametrize("Model", [NaiveBayes, GenerativeClassifier, HybridClassifier, EvidenceClassifier])
def test_a_column_that_is_declared_to_be_ignored_may_have_any_type(Model: Any, library: str, dates: str) -> None:
    frame = table()[["u", "v", "species"]]
    when = pd.Series(pd.date_range("2026-01-01", periods=len(frame)))
    dated = MAKE[library](frame.assign(when=when if dates == "datetimes" else when.dt.date))
    model = Model(families={"when": None}).fit(dated, "species")
    plain = Model().fit(MAKE[library](frame), "species")
    assert_allclose(model.predict_proba(dated), plain.predict_proba(MAKE[library](frame)), rtol=1e-9)
    assert_allclose(plain.predict_proba(dated), plain.predict_proba(MAKE[library](frame)))


def test_a_column_of_dates_in_a_scan_may_be_ignored(tmp_path: Path) -> None:
    frame = table()[["u", "v", "species"]]
    frame.assign(when=pd.date_range("2026-01-01", periods=len(frame))).to_csv(tmp_path / "rows.csv", index=False)
    model = NaiveBayes({"when": None}).fit(scan(tmp_path / "rows.csv"), "species")
    plain = NaiveBayes().fit(frame, "species")
    assert_allclose(model.predict_proba(scan(tmp_path / "rows.csv")), plain.predict_proba(frame), rtol=1e-9)


def test_the_summary_tells_declared_columns_from_detected_ones(tmp_path: Path) -> None:
    model = NaiveBayes({"u": None}).fit(table(), "species")
    model.save(tmp_path / "model")
    for each in (model, likely.load(tmp_path / "model")):
        reasons = "'u' (declared in families)", "'id' (row numbers: ", "'name' (codes, all distinct)"
        assert all(reason in each.summary().decisions[-1] for reason in reasons)
        assert ("u",) not in {choice.columns for choice in each.choices_}


def test_what_is_declared_or_has_no_names_is_never_set_aside() -> None:
    frame = table()
    model = NaiveBayes({"id": Gaussian("diagonal"), "name": Categorical()}).fit(frame, "species")
    assert isinstance(model.families_["name"], Categorical)
    array = frame[["id", "u"]].to_numpy()
    assert None not in NaiveBayes().fit(array, frame["species"]).families_.values()
    assert None not in NaiveBayes().fit(frame[:49], "species").families_.values()


def test_weights_count_as_rows_of_an_identifier() -> None:
    frame = table(60)
    twice = NaiveBayes().fit(frame, "species", np.full(60, 2.0))
    repeated = NaiveBayes().fit(pd.concat([frame, frame]), "species")
    assert twice.families_.keys() == repeated.families_.keys()
    assert None not in twice.families_.values()
    assert None not in repeated.families_.values()


def test_measurements_in_whole_numbers_and_repeated_text_are_used() -> None:
    frame = table()
    frame["id"] = np.unique(np.round(np.random.default_rng(0).lognormal(10, 1, 130)))[:120]
    frame["name"] = [f"person {i % 80}" for i in range(120)]
    assert None not in NaiveBayes().fit(frame, "species").families_.values()


def test_folds_set_the_same_columns_aside() -> None:
    frame = table()
    whole = likely.cross_validate(NaiveBayes(), frame, "species", 5)
    plain = likely.cross_validate(NaiveBayes(), frame.drop(columns=["id", "name"]), "species", 5)
    assert_allclose(whole.log_loss, plain.log_loss, rtol=1e-9)


def test_a_mapping_sets_columns_aside() -> None:
    frame = table()
    model = NaiveBayes({"v": None, "name": None, "id": None}).fit(frame, "species")
    plain = NaiveBayes().fit(frame[["u", "group"]], frame["species"])
    assert_allclose(model.predict_proba(frame), plain.predict_proba(frame[["u", "group"]]), rtol=1e-12)
    again = NaiveBayes(model.families_).fit(frame, "species")
    assert_allclose(again.predict_proba(frame), model.predict_proba(frame), rtol=1e-12)


@pytest.mark.parametrize("Model", [NaiveBayes, GenerativeClassifier, EvidenceClassifier])
def test_an_error_says_why_all_columns_are_set_aside_and_how_to_use_one(Model: Any) -> None:
    frame = table()
    with pytest.raises(InputError, match="All columns of X are set aside") as caught:
        Model(families={"u": None}).fit(frame[["id", "name", "u"]], frame["species"])
    assert str(caught.value) == (
        "All columns of X are set aside: 'id' (row numbers: distinct whole numbers, evenly spread), 'name' (codes, all "
        "distinct), 'u' (by families). Declare the family of a column to use it, as in "
        "GenerativeClassifier(families={'id': Gaussian()})."
    )


@pytest.mark.parametrize("Model", [NaiveBayes, GenerativeClassifier, EvidenceClassifier])
def test_row_numbers_are_set_aside_after_a_split_as_in_the_whole(Model: Any) -> None:
    rng, n = np.random.default_rng(0), 600
    frame = pd.DataFrame({"Unnamed: 0": np.arange(n), "x": rng.normal(size=n)})
    y = np.repeat(["a", "b"], n // 2)
    half = rng.permutation(n) < n // 2
    plain = frame[["x"]]
    for rows in (half, ~half, np.ones(n, dtype=bool), rng.permutation(n) < 60):
        expected = Model().fit(plain[rows], y[rows])
        model = Model().fit(frame[rows], y[rows])
        assert_allclose(model.predict_proba(frame), expected.predict_proba(plain), atol=1e-9)
    assert likely.cross_validate(Model(), frame, y, 5).error.mean() > 0.4


def test_parts_and_frames_agree_on_identifiers() -> None:
    rng, n = np.random.default_rng(0), 100_000
    frame = pd.DataFrame(
        {
            "account": rng.integers(10**11, 10**12, n),
            "serial": 3 * rng.permutation(2 * n)[:n],
            "balance": np.round(rng.lognormal(15.0, 1.0, n)),
            "millisecond": rng.integers(0, 86_400_000, n),
            "y": rng.integers(0, 2, n),
        }
    )
    for X in (frame, Chunks(frame, 30_000), pl.from_pandas(frame).lazy(), frame.sample(frac=0.1, random_state=0)):
        families = NaiveBayes(calibration=None).fit(X, "y").families_
        aside = [name for name, family in families.items() if family is None]
        assert aside[:2] == ["account", "serial"]
        assert "balance" not in aside


@pytest.mark.parametrize("library", MAKE)
@pytest.mark.parametrize(
    "model",
    [
        NaiveBayes(),
        GenerativeClassifier(),
        LinearDiscriminant(),
        QuadraticDiscriminant(),
        SoftmaxRegression(),
        HybridClassifier(blend=0.5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_predictions_ignore_the_target_column(model: Any, library: str, tmp_path: Any) -> None:
    frame = table()[["u", "v", "species"]]
    make = MAKE[library]
    whole, rows = make(frame), make(frame[["u", "v"]])
    model.fit(whole, "species")
    model.save(tmp_path / "model")
    for fitted in (model, likely.load(tmp_path / "model")):
        assert_array_equal(fitted.predict(whole), fitted.predict(rows))
        assert_allclose(fitted.predict_proba(whole), fitted.predict_proba(rows))
        assert_allclose(fitted.decision_function(whole), fitted.decision_function(rows))
        for method in ("log_joint", "log_density", "novelty", "transform", "impute"):
            if hasattr(fitted, method) and not (method == "novelty" and isinstance(model, SoftmaxRegression)):
                mine, theirs = (getattr(fitted, method)(X) for X in (whole, rows))
                if method != "impute":
                    assert_allclose(mine, theirs)
        assert_allclose(fitted.explain(whole).evidence, fitted.explain(rows).evidence)
    assert_array_equal(model.predict(make(frame.assign(w=1.0))), model.predict(rows))


@pytest.mark.parametrize("library", MAKE)
@pytest.mark.parametrize("targets", ["v", ["v", "w"]])
def test_regressions_ignore_their_target_columns(library: str, targets: Any) -> None:
    frame = table()[["u", "v"]].assign(w=lambda X: X["u"] + X["v"] ** 2)
    make = MAKE[library]
    features = ["u", "w"] if targets == "v" else ["u"]
    model = GenerativeRegressor().fit(make(frame), targets)
    assert_allclose(model.predict(make(frame)), model.predict(make(frame[features])))


class Chunks:
    """The rows of a frame in chunks of the same size."""

    def __init__(self, frame: pd.DataFrame, rows: int) -> None:
        self.frame, self.rows = frame, rows

    def chunks(self) -> Iterator[pd.DataFrame]:
        """The rows from the first on."""
        for first in range(0, len(self.frame), self.rows):
            yield self.frame[first : first + self.rows]


@pytest.mark.parametrize("rows", [1, 7, 60])
def test_chunks_of_few_rows_do_not_turn_categories_into_identifiers(rows: int) -> None:
    frame = table()
    expected = NaiveBayes().fit(frame, "species")
    model = NaiveBayes().fit(Chunks(frame, rows), "species")
    assert expected.families_["group"] is not None
    assert repr(model.families_) == repr(expected.families_)
    assert_allclose(model.predict_proba(frame), expected.predict_proba(frame), atol=1e-12)


def test_many_shuffled_numbers_of_rows_are_identifiers_in_chunks_too() -> None:
    rng, n = np.random.default_rng(0), 160_000
    frame = pd.DataFrame({"id": rng.permutation(n), "u": rng.normal(size=n), "y": rng.integers(0, 2, n)})
    for X in (frame, Chunks(frame, 20_000), pl.from_pandas(frame).lazy()):
        assert NaiveBayes(calibration=None).fit(X, "y").families_["id"] is None
    frame["id"] = rng.integers(0, n, n)
    assert NaiveBayes(calibration=None).fit(Chunks(frame, 20_000), "y").families_["id"] is not None


@pytest.mark.parametrize("Model", [NaiveBayes, GenerativeClassifier, EvidenceClassifier])
@pytest.mark.parametrize("values", [np.nan, None, 1.0, "USD"], ids=["numbers", "objects", "one number", "one text"])
def test_columns_without_any_variation_change_nothing(Model: Any, values: Any) -> None:
    frame = table(300).assign(w=np.exp(np.random.default_rng(1).normal(size=300))).drop(columns=["id", "name"])
    plain = Model().fit(frame, "species")
    column = pd.Series([values] * 300, dtype=object if values is None else None)
    more = Model().fit(frame.assign(e=column), "species")
    assert_allclose(more.predict_proba(frame.assign(e=column)), plain.predict_proba(frame), atol=1e-12)
    found = more.columns_.set_index("column")
    assert found.decision["e"] == "set aside"
    assert found.drop(index="e").decision.tolist() == plain.columns_.decision.tolist()


@pytest.mark.parametrize("value", [1.0, "yes"])
def test_a_column_of_one_value_is_not_set_aside_where_its_missing_values_are_read(value: Any) -> None:
    frame = table(300).drop(columns=["id", "name"])
    missing = (frame["species"] == "yes") & (frame["v"] > -1.0)
    frame["flag"] = pd.Series([value] * 300).mask(missing)
    model = EvidenceClassifier(n_trees=10).fit(frame, "species")
    assert model.score(frame, frame["species"]) > 0.95
    row = model.columns_.set_index("column").loc["flag"]
    assert row["decision"] == "Categorical"
    assert row["reason"] == "has one value; read by where it is missing"
