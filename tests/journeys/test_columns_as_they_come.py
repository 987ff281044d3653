"""Columns as files have them: dates, numbers in text, stray words, codes; the same in every library and in a scan."""

from __future__ import annotations

import datetime as dt
import pickle
import warnings
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import likely
from likely import (
    Categorical,
    EvidenceClassifier,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    Imputer,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    QuadraticDiscriminant,
    SoftmaxRegression,
    VonMises,
    scan,
)
from likely.errors import ColumnWarning, InputError, LeakWarning, UnseenCategoriesWarning

ROWS = 400
CLASSIFIERS = [
    GenerativeClassifier(),
    NaiveBayes(),
    EvidenceClassifier(n_trees=5),
]


def table() -> pd.DataFrame:
    """Dates in three forms, prices, percents, a decimal comma, codes and a stray word, with the label `y`."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], ROWS // 2)
    shift = (y == "b").astype(float)
    day = pd.Timestamp("2019-03-01") + pd.to_timedelta(rng.integers(0, 800, ROWS), "D")
    clock = pd.to_timedelta(np.round(rng.normal(9.0 + 3.0 * shift, 2.0) % 24 * 3600), "s")
    share = rng.normal(7.0 + shift, 1.0).round(2)
    return pd.DataFrame(
        {
            "day": day.strftime("%Y-%m-%d"),
            "moment": (day + clock).strftime("%Y-%m-%dT%H:%M:%S"),
            "local": day.strftime("%d.%m.%Y"),
            "price": [f"${v:,.0f}" for v in np.exp(rng.normal(9.0 + shift, 1.0))],
            "rate": [f"{v}%" for v in share],
            "weight": [f"{v:.1f}".replace(".", ",") for v in rng.normal(60.0 + 5.0 * shift, 8.0)],
            "income": ["unknown" if i == 7 else f"{v:.2f}" for i, v in enumerate(rng.normal(shift, 1.0))],
            "zip": [f"{v:05d}" for v in rng.integers(2100, 2110, ROWS)],
            "y": y,
        }
    )


def forms(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The table in every library, and in a file that is scanned."""
    frame.to_csv(folder / "table.csv", index=False)
    return {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "arrow": pa.Table.from_pandas(frame),
        "scan": scan(folder / "table.csv"),
    }


def decisions(model: Any) -> list[tuple[Any, ...]]:
    found = nw.from_native(model.columns_)
    return [tuple(row) for row in found.select("column", "type", "decision", "reason", "change").iter_rows()]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda each: type(each).__name__)
@pytest.mark.filterwarnings("ignore::likely.errors.ColumnWarning")
def test_every_library_and_a_scan_have_the_same_decisions_and_probabilities(classifier: Any, tmp_path: Path) -> None:
    frame = table()
    models = {}
    for name, rows in forms(frame, tmp_path).items():
        models[name] = type(classifier)(**classifier.get_params(deep=False)).fit(rows, "y")
    first = models["pandas"]
    expected = first.predict_proba(frame)
    for name, model in models.items():
        assert decisions(model) == decisions(first), name
        np.testing.assert_allclose(model.predict_proba(frame), expected, atol=1e-9, err_msg=name)
    for rows in forms(frame, tmp_path).values():
        np.testing.assert_allclose(first.predict_proba(rows), expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::likely.errors.ColumnWarning")
def test_decisions_are_stated_for_each_column_in_the_order_of_the_input() -> None:
    frame = table()[["zip", "y", "day", "price", "income"]].assign(empty=np.nan, constant=1)
    model = GenerativeClassifier().fit(frame, "y")
    found = model.columns_.set_index("column")
    assert found.index.tolist() == ["zip", "y", "day", "price", "income", "empty", "constant"]
    assert found.columns.tolist() == ["type", "missing", "distinct", "decision", "reason", "change"]
    assert found.decision["zip"] == "Categorical"
    assert found.decision["y"] == "target"
    assert found.decision["day"].startswith("expanded to day.days, day.year, day.month")
    assert found.decision["price"].startswith(("Gaussian", "LogNormal"))
    assert found.change["price"] == "types={'price': 'text'}"
    assert found.missing["income"] == 1
    assert "0.2% other text, read as missing" in found.reason["income"]
    assert found.loc["empty", ["decision", "reason"]].tolist() == ["set aside", "no values"]
    assert found.loc["constant", ["decision", "reason"]].tolist() == ["set aside", "constant"]


@pytest.mark.filterwarnings("ignore::likely.errors.ColumnWarning")
def test_columns_before_a_fit_are_those_of_the_fit(tmp_path: Path) -> None:
    for rows in forms(table(), tmp_path).values():
        before, after = likely.columns(rows, "y"), GenerativeClassifier().fit(rows, "y").columns_
        assert nw.from_native(before).to_dict(as_series=False) == nw.from_native(after).to_dict(as_series=False)
    assert nw.from_native(likely.columns(table()))["column"].to_list() == table().columns.tolist()


def test_periodic_parts_of_dates_are_von_mises_and_the_others_are_numbers() -> None:
    frame = table()[["moment", "y"]]
    families = NaiveBayes().fit(frame, "y").families_
    periods = {"month": 12.0, "weekday": 7.0, "day_of_year": 365.25, "hour": 24.0}
    for part, period in periods.items():
        family = families[f"moment.{part}"]
        assert isinstance(family, VonMises)
        assert family.period == period
    assert isinstance(families["moment.days"], Gaussian)


def test_dates_equal_their_parts_computed_by_pandas() -> None:
    frame = table()
    when = pd.to_datetime(frame["moment"])
    parts = pd.DataFrame(
        {
            "days": (when - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
            "year": when.dt.year,
            "month": when.dt.month,
            "weekday": when.dt.day_of_week,
            "hour": when.dt.hour + when.dt.minute / 60 + when.dt.second / 3600,
        }
    )
    by_hand = LinearDiscriminant().fit(parts, frame["y"])
    model = LinearDiscriminant().fit(frame[["moment"]], frame["y"])
    np.testing.assert_allclose(model.predict_proba(frame), by_hand.predict_proba(parts), atol=1e-6)
    assert model.coef_.shape == (1, 5)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "objects", "text", "zoned"])
def test_dates_of_any_type_are_the_same_at_prediction(library: str) -> None:
    frame = table()[["moment", "y"]]
    when = pd.to_datetime(frame["moment"])
    model = NaiveBayes().fit(pd.DataFrame({"moment": when}), frame["y"])
    expected = model.predict_proba(pd.DataFrame({"moment": when}))
    rows = {
        "pandas": pd.DataFrame({"moment": when.astype("datetime64[ms]")}),
        "polars": pl.DataFrame({"moment": pl.Series(when.to_numpy())}),
        "arrow": pa.table({"moment": pa.array(when)}),
        "objects": pd.DataFrame({"moment": pd.Series([each.to_pydatetime() for each in when], dtype=object)}),
        "text": frame[["moment"]],
        "zoned": pd.DataFrame({"moment": when.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")}),
    }[library]
    np.testing.assert_allclose(model.predict_proba(rows), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("values", [
    pytest.param([dt.date(1850, 1, 1), None, dt.date(1861, 7, 3)] * 20, id="before 1900"),
    pytest.param([dt.time(9, 30), dt.time(17, 0), None] * 20, id="times"),
    pytest.param([dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2021, 5, 1, tzinfo=dt.UTC)] * 30, id="zone"),
    pytest.param([None, None, dt.date(2020, 1, 1)] * 20, id="one date"),
])  # fmt: skip
def test_unusual_dates_are_read(values: list[Any]) -> None:
    y = ["a", "b", "a"] * 20
    for rows in (pl.DataFrame({"when": values, "x": range(60)}), pd.DataFrame({"when": values, "x": range(60)})):
        for model in (NaiveBayes(), GenerativeClassifier()):
            assert np.isfinite(model.fit(rows, y).predict_proba(rows)).all()
            missing = nw.from_native(rows).with_columns(nw.lit(None).alias("when")).to_native()
            assert np.isfinite(model.predict_proba(missing)).all()


def test_contributions_of_the_parts_of_a_date_add_up_to_the_column() -> None:
    frame = table()[["moment", "zip", "y"]]
    for model in (GenerativeClassifier(), EvidenceClassifier(n_trees=5)):
        explanation = model.fit(frame, "y").explain(frame[:5])
        assert explanation.columns[:2] == ("moment", "zip")
        scores = explanation.offset + explanation.evidence.sum(axis=2)
        odds = scores[:, 1] - scores[:, 0]
        probabilities = model.predict_proba(frame[:5])
        np.testing.assert_allclose(odds, np.log(probabilities[:, 1] / probabilities[:, 0]), atol=1e-9)
        contrast = explanation.contrast("b", "a")
        offset = explanation.offset[:, 1] - explanation.offset[:, 0]
        np.testing.assert_allclose(contrast.sum(axis=1) + offset, odds, atol=1e-9)


def test_samples_and_imputations_of_dates_say_that_there_are_none() -> None:
    frame = table()[["day", "zip", "y"]]
    model = GenerativeClassifier().fit(frame, "y")
    for call in (lambda: model.sample(3), lambda: model.impute(frame)):
        with pytest.raises(InputError, match="column 'day' has dates, whose parts the model has as columns"):
            call()
    with pytest.raises(InputError, match="column 'day' has dates"):
        Imputer().fit_transform(frame[["day"]])
    single = GenerativeClassifier({"day": Gaussian()}).fit(frame, "y")
    assert single.families_["day"].covariance == "diagonal"


def test_a_stray_word_in_a_numeric_column_is_missing_and_named() -> None:
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b"], 150)
    values = rng.normal(size=300) + (y == "b")
    text = [f"{v:.4f}" for v in values]
    text[7] = "unknown"
    rounded = np.array([float(v) if v != "unknown" else np.nan for v in text])
    clean = GenerativeClassifier().fit(pd.DataFrame({"v": rounded}), y)
    with pytest.warns(ColumnWarning, match="Column 'v' has numbers, and 1 value that is not: 'unknown'"):
        model = GenerativeClassifier().fit(pd.DataFrame({"v": text}), y)
    np.testing.assert_allclose(
        model.predict_proba(pd.DataFrame({"v": text})), clean.predict_proba(pd.DataFrame({"v": rounded})), atol=1e-12
    )
    kept = GenerativeClassifier(types={"v": "text"})
    with pytest.raises(InputError, match="set aside"):
        kept.fit(pd.DataFrame({"v": text}), y)


def test_text_where_the_training_rows_had_numbers_is_an_error_that_names_the_cell() -> None:
    model = GenerativeClassifier().fit(pd.DataFrame({"v": np.arange(40) % 7 / 2}), np.arange(40) % 2)
    assert model.predict_proba(pd.DataFrame({"v": ["1.5", "2"]})).shape == (2, 2)
    missing = model.predict_proba(pd.DataFrame({"v": [1.5, np.nan]}))
    for mark in ("", "NA", "nan"):
        np.testing.assert_array_equal(model.predict_proba(pd.DataFrame({"v": ["1.5", mark]})), missing)
    with pytest.raises(InputError, match="Column 'v', row 1: 'oops' is not a number"):
        model.predict(pd.DataFrame({"v": ["1.5", "oops"]}))


def test_codes_with_leading_zeros_and_their_numbers_are_the_same() -> None:
    frame = table()
    text = GenerativeClassifier().fit(frame[["zip"]], frame["y"])
    numbers = GenerativeClassifier().fit(frame[["zip"]].astype(int), frame["y"])
    assert isinstance(text.families_["zip"], Categorical)
    assert isinstance(numbers.families_["zip"], Categorical)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = text.predict_proba(frame)
        np.testing.assert_allclose(numbers.predict_proba(frame.astype({"zip": int})), expected, atol=1e-12)
        np.testing.assert_array_equal(text.predict_proba(frame.astype({"zip": int})), expected)
        np.testing.assert_allclose(numbers.predict_proba(frame), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["number", "text", "category", "date"])
def test_types_decide_how_a_column_is_read(kind: str) -> None:
    frame = pd.DataFrame({"v": ["2020-01", "2020-02", "2021-07", "2021-08"] * 25, "w": range(100)})
    y = ["a", "a", "b", "b"] * 25
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeakWarning)
        model = GenerativeClassifier(types={"v": kind}).fit(frame, y)
    found = model.columns_.set_index("column").decision["v"]
    expected = {"number": "Categorical", "text": "Categorical", "category": "Categorical", "date": "expanded to"}
    assert found.startswith(expected[kind])


def test_text_without_any_number_that_is_declared_to_be_numbers_is_an_error() -> None:
    frame = pd.DataFrame({"v": ["low", "high"] * 20, "w": range(40)})
    with pytest.raises(InputError, match="no value is a number, such as 'high'"):
        GenerativeClassifier(types={"v": "number"}).fit(frame, [0, 1] * 20)


def test_types_name_columns_and_kinds_that_exist() -> None:
    frame, y = pd.DataFrame({"price": [1.0, 2.0] * 10}), ["a", "b"] * 10
    with pytest.raises(InputError, match=r"types names column 'prize', which is not in X\. Did you mean 'price'"):
        GenerativeClassifier(types={"prize": "text"}).fit(frame, y)
    with pytest.raises(InputError, match=r"types\['price'\]='words' is not known"):
        GenerativeClassifier(types={"price": "words"}).fit(frame, y)
    with pytest.raises(InputError, match="types='price' must be a dictionary"):
        GenerativeClassifier(types="price").fit(frame, y)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"the column has numbers\. Convert it to dates"):
        GenerativeClassifier(types={"price": "date"}).fit(frame, y)


def test_numbers_declared_as_categories_are_categories_in_every_view() -> None:
    frame = pd.DataFrame({"code": np.tile(np.arange(50), 4), "x": np.arange(200.0)})
    y = np.where(np.tile(np.arange(50), 4) % 2, "odd", "even")
    model = GenerativeClassifier(types={"code": "category"}).fit(frame, y)
    assert isinstance(model.families_["code"], Categorical)
    assert model.score(frame, y) == 1.0
    assert EvidenceClassifier(n_trees=5, types={"code": "category"}).fit(frame, y).score(frame, y) == 1.0


@pytest.mark.parametrize(
    "model",
    [LinearDiscriminant(), SoftmaxRegression(), HybridClassifier(blend=0.5), MixtureModel(2), GenerativeRegressor()],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.filterwarnings("ignore::likely.errors.ColumnWarning")
def test_other_estimators_read_dates_and_numbers_in_text(model: Any, tmp_path: Path) -> None:
    frame = table()[["day", "price", "rate"]]
    y = np.arange(ROWS) % 2 if not isinstance(model, GenerativeRegressor) else np.arange(float(ROWS))
    model.fit(frame, y)
    expected = model.predict(frame)
    assert model.columns_["column"].tolist()[:3] == ["day", "price", "rate"]
    np.testing.assert_allclose(model.predict(pl.from_pandas(frame)), expected)
    if hasattr(model, "save"):
        model.save(tmp_path / "model.likely")
        loaded = likely.load(tmp_path / "model.likely")
        np.testing.assert_allclose(loaded.predict(frame), expected)
        assert loaded.columns_.equals(model.columns_)


@pytest.mark.filterwarnings("ignore::likely.errors.ColumnWarning")
@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda each: type(each).__name__)
def test_model_files_keep_how_columns_are_read(classifier: Any, tmp_path: Path) -> None:
    frame = table()
    model = classifier.fit(frame, "y")
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.columns_.equals(model.columns_)
    assert loaded.n_features_in_ == 8


@pytest.mark.filterwarnings("ignore::likely.errors.ColumnWarning")
def test_batches_that_are_added_are_read_as_the_first() -> None:
    frame = table()
    half = frame.iloc[::2]
    whole = NaiveBayes(calibration=None).fit(frame, "y")
    families = {name: family for name, family in whole.families_.items() if "." not in name}
    model = NaiveBayes(families, calibration=None).partial_fit(half, "y").partial_fit(frame.iloc[1::2], "y")
    assert model.n_features_in_ == 8
    assert np.mean(model.predict(frame) == whole.predict(frame)) > 0.95
    both = NaiveBayes(families, calibration=None).partial_fit(half, "y")
    both.partial_fit(half, "y").forget(half, "y")
    np.testing.assert_allclose(
        both.predict_proba(frame), NaiveBayes(families, calibration=None).partial_fit(half, "y").predict_proba(frame),
        atol=1e-9,
    )  # fmt: skip


def test_additional_columns_are_noted_once_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0, 3.0, 4.0] * 5, "u": list("abab") * 5})
    y = ["a", "a", "b", "b"] * 5
    for model in (GenerativeClassifier(), EvidenceClassifier(n_trees=3), LinearDiscriminant()):
        columns = ["x"] if isinstance(model, LinearDiscriminant) else ["x", "u"]
        model.fit(frame[columns], y)
        caplog.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            more = frame[columns].assign(when=pd.Timestamp("2020-01-01"), id=[object()] * 20)
            np.testing.assert_array_equal(model.predict_proba(more), model.predict_proba(frame[columns]))
            model.predict(more)
        assert [record.getMessage() for record in caplog.records] == [
            "Columns 'id', 'when' were not in the fit, and are ignored."
        ]


def test_a_missing_column_is_an_error_that_names_the_nearest() -> None:
    frame = pd.DataFrame({"income": [0.0, 1.0, 3.0, 4.0] * 5, "age": range(20)})
    model = LinearDiscriminant().fit(frame, list("aabb") * 5)
    with pytest.raises(InputError, match="'incom'"):
        model.predict(frame.rename(columns={"income": "incom"}))


def test_columns_that_are_set_aside_are_not_needed_at_prediction() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 150)
    frame = pd.DataFrame(
        {"id": np.arange(300), "x": rng.normal(size=300) + (y == "b"), "name": [f"n{i}" for i in range(300)]}
    )
    for model in (GenerativeClassifier(), NaiveBayes(), EvidenceClassifier(n_trees=3)):
        model.fit(frame, y)
        np.testing.assert_array_equal(model.predict_proba(frame[["x"]]), model.predict_proba(frame))
        assert model.columns_.set_index("column").decision[["id", "name"]].tolist() == ["set aside"] * 2
    declared = EvidenceClassifier(n_trees=3, families={"x": None}).fit(frame.assign(z=rng.normal(size=300)), y)
    assert declared.columns_.set_index("column").reason["x"] == "declared in families"


def test_a_model_fitted_with_read_csv_scores_a_scan_of_the_file(tmp_path: Path) -> None:
    frame = table().drop(columns="income")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for read in (pd.read_csv, pl.read_csv):
        model = GenerativeClassifier().fit(read(tmp_path / "rows.csv"), "y")
        found = model.predict_proba(scan(tmp_path / "rows.csv"))
        np.testing.assert_allclose(found, model.predict_proba(frame.assign(zip=frame["zip"].astype(int))), atol=1e-9)


def test_marks_of_missing_values_among_numbers_are_missing_without_a_warning() -> None:
    values = [None if i % 9 == 0 else i / 7 for i in range(180)]
    frame = pd.DataFrame({"v": ["NA" if each is None else str(each) for each in values], "c": ["u", "w", "NA"] * 60})
    y = np.arange(180) > 90
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        model = GenerativeClassifier().fit(frame, y)
        probabilities = model.predict_proba(frame)
    clean = pd.DataFrame({"v": pd.Series(values, dtype=float), "c": frame["c"]})
    np.testing.assert_allclose(probabilities, GenerativeClassifier().fit(clean, y).predict_proba(clean), atol=1e-12)
    assert model.columns_["missing"].tolist() == [20, 0]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("values", [
    pytest.param(["see file"] * 40, id="text"), pytest.param([dt.date(2020, 1, 31)] * 40, id="dates"),
])  # fmt: skip
def test_values_of_a_column_that_was_empty_in_training_are_missing_with_a_warning(
    classifier: Any, values: list[Any]
) -> None:
    frame = pd.DataFrame({"x": np.arange(40) % 7 / 2, "u": list("abcd") * 10, "remarks": np.nan})
    model = type(classifier)(**classifier.get_params(deep=False)).fit(frame, np.arange(40) % 2)
    unread = isinstance(model, EvidenceClassifier)  # reads no column that does not vary
    warned = pytest.warns(ColumnWarning, match="Column 'remarks': .* in 40 rows are not numbers")
    with nullcontext() if unread else warned:
        found = model.predict_proba(frame.assign(remarks=pd.Series(values, dtype=object)))
    np.testing.assert_array_equal(found, model.predict_proba(frame))


@pytest.mark.parametrize("missing", [False, True])
def test_true_and_false_as_text_are_booleans(missing: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "flag": rng.random(200) < 0.4, "y": rng.choice(["a", "b"], 200)})
    frame["flag"] = frame["flag"].astype(object).mask(rng.random(200) < 0.2 * missing)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    read = {
        "pandas": pd.read_csv(tmp_path / "rows.csv"),
        "polars": pl.read_csv(tmp_path / "rows.csv"),  # which reads "True" as text
        "scan": scan(tmp_path / "rows.csv"),
    }
    models = {name: GenerativeClassifier().fit(rows, "y") for name, rows in read.items()}
    expected = models["pandas"].predict_proba(frame)
    for name, model in models.items():
        assert decisions(model) == decisions(models["pandas"]), name
        for rows in read.values():
            np.testing.assert_allclose(model.predict_proba(rows), expected, atol=1e-12)


def test_text_that_can_be_read_in_two_ways_is_told_from_codes_also_where_it_is_set_aside() -> None:
    rows = range(1, 101)
    frame = pd.DataFrame(
        {
            "amount": [f"{1000 + 7 * i:,}" for i in rows],
            "day": [f"0{1 + i % 9}/0{1 + i % 7}/2026" for i in rows],
            "zip": [f"{2139 + i % 8:05d}" for i in rows],
            "code": [f"{i:05d}" for i in rows],
        }
    )
    found = likely.columns(frame, [i * i % 11 % 2 for i in rows]).set_index("column")
    two_ways = "numbers or dates that can be read in two ways, used as text"
    assert found.decision.tolist() == ["set aside", "Categorical", "Categorical", "set aside"]
    assert found.reason.tolist() == [
        f"codes, all distinct; {two_ways}", two_ways, "codes of digits, used as text", "codes, all distinct",
    ]  # fmt: skip


SPELLED = ("{}", "{} ", " {}", "{}", "  {} ")  # forms of one category, of which every other is in upper case


def spelled(values: Any) -> list[str]:
    """Categories as people type them: with blanks at their ends, and in any case."""
    forms = [SPELLED[i % 5].format(value) for i, value in enumerate(values)]
    return [form.upper() if i % 2 else form for i, form in enumerate(forms)]


def homes() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table with codes and categories in one form, and in several, with the label `y`."""
    rng = np.random.default_rng(5)
    y = np.repeat(["a", "b"], ROWS // 2)
    home = np.where(rng.random(ROWS) < np.where(y == "a", 0.7, 0.3), "rent", "own")
    codes = [f"{code:05d}" for code in rng.integers(2100, 2106, ROWS)]
    clean = pd.DataFrame({"home": home, "zip": codes, "x": rng.normal(size=ROWS) + (y == "a"), "y": y})
    return clean, clean.assign(home=spelled(home), zip=spelled(codes))


NORMALIZING = [
    GenerativeClassifier(normalize=True),
    GenerativeClassifier({("home", "zip"): Categorical()}, normalize=True, ledger=True),
    NaiveBayes(normalize=True),
    EvidenceClassifier(n_trees=5, normalize=True),
    HybridClassifier(blend=0.5, normalize=True),
    MixtureModel(2, normalize=True, n_init=1, tol=1e-3, random_state=0),
]


def case(model: Any, frame: pd.DataFrame) -> tuple[pd.DataFrame, Any]:
    """The columns of a table for a model, and its target."""
    if isinstance(model, MixtureModel):
        return frame.drop(columns="y"), None
    return frame, "y"


@pytest.mark.parametrize("model", NORMALIZING, ids=lambda each: type(each).__name__)
def test_categories_that_differ_by_case_or_blanks_are_one_in_fits_and_in_predictions(
    model: Any, tmp_path: Path
) -> None:
    clean, typed = homes()
    rows, target = case(model, clean)
    first = model.fit(rows, target)
    expected = first.predict_proba(clean)
    typed, _ = case(model, typed)
    libraries = {**forms(typed, tmp_path), "dictionary": typed.astype({"home": "category", "zip": "category"})}
    for name, new in libraries.items():
        np.testing.assert_array_equal(first.predict_proba(new), expected, err_msg=name)
        if name == "arrow":
            continue
        other = type(model)(**model.get_params(deep=False)).fit(new, target)
        np.testing.assert_allclose(other.predict_proba(typed), expected, rtol=0, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(other.predict_proba(clean), expected, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("model", NORMALIZING[:4] + NORMALIZING[5:], ids=lambda each: type(each).__name__)
def test_model_files_keep_that_categories_are_normalized(model: Any, tmp_path: Path) -> None:
    clean, typed = homes()
    expected = model.fit(*case(model, typed)).predict_proba(clean)
    model.save(tmp_path / "model.likely")
    for loaded in (likely.load(tmp_path / "model.likely"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(loaded.predict_proba(typed), expected)
        np.testing.assert_array_equal(loaded.predict_proba(clean), expected)


@pytest.mark.parametrize("model", NORMALIZING[:4], ids=lambda each: type(each).__name__)
def test_updates_normalize_categories(model: Any) -> None:
    clean, typed = homes()

    def half(frame: pd.DataFrame, part: int) -> pd.DataFrame:
        return frame[part::2]

    if isinstance(model, EvidenceClassifier):
        one, two = (type(model)(**model.get_params(deep=False)).fit(half(clean, 0), "y") for _ in range(2))
    else:
        one, two = (type(model)(**model.get_params(deep=False)).partial_fit(half(clean, 0), "y") for _ in range(2))
    one.partial_fit(half(clean, 1), "y")
    two.partial_fit(half(typed, 1), "y")
    np.testing.assert_allclose(two.predict_proba(typed), one.predict_proba(clean), rtol=0, atol=1e-12)
    gone = np.arange(ROWS) % 3 == 0
    one.forget(clean[gone], "y")
    two.forget(typed[gone], "y")
    np.testing.assert_allclose(two.predict_proba(typed), one.predict_proba(clean), rtol=0, atol=1e-12)


@pytest.mark.parametrize("model", NORMALIZING, ids=lambda each: type(each).__name__)
def test_unseen_categories_are_those_that_normalizing_does_not_make_known(model: Any) -> None:
    clean, typed = homes()
    model.fit(*case(model, clean))
    model.predict(typed.assign(home="RENT "))  # without a warning, which would be an error
    with pytest.warns(UnseenCategoriesWarning, match="such as 'mortgage' in row 0") as found:
        model.predict(clean.assign(home="Mortgage "))
    assert len(found) == 1


def test_codes_with_blanks_keep_their_leading_zeros_if_categories_are_normalized() -> None:
    clean, typed = homes()
    for rows in (clean, typed):
        model = NaiveBayes(normalize=True).fit(rows, "y")
        numbers = clean.astype({"zip": int})
        np.testing.assert_array_equal(model.predict_proba(numbers), model.predict_proba(clean))


def years() -> tuple[pd.DataFrame, Any]:
    """Dates of three years, whose number of days is a linear function of the year and the day of the year."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200)
    when = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, 200) + 100 * y, "D")
    return pd.DataFrame({"when": when, "x": rng.normal(y)}), y


@pytest.mark.parametrize("model", [LinearDiscriminant(), QuadraticDiscriminant(), SoftmaxRegression()])
def test_linear_and_quadratic_models_have_no_part_of_a_date_that_depends_on_the_others(model: Any) -> None:
    X, y = years()
    model.fit(X, y)
    assert model.columns_["decision"][0] == "expanded to when.days, when.year, when.month, when.weekday"
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("name", ["when.month", "when.days"])
@pytest.mark.parametrize("model", [GenerativeClassifier(), EvidenceClassifier(), LinearDiscriminant()])
def test_a_column_with_the_name_of_a_part_of_a_date_is_an_error(model: Any, name: str) -> None:
    X, y = years()
    with pytest.raises(InputError, match=rf"'when' has dates, .*'{name}', and X has a column of this name"):
        model.fit(X.rename(columns={"x": name}), y)


@pytest.mark.parametrize("model", [GenerativeClassifier(), EvidenceClassifier(n_trees=2)])
def test_a_part_of_a_date_can_be_left_out(model: Any) -> None:
    X, y = years()
    model.set_params(families={"when.year": None}).fit(X, y)
    assert "when.year" not in model.columns_["decision"][0]
    with pytest.raises(InputError, match=r"'when.hour', which is not in X"):
        model.set_params(families={"when.hour": None}).fit(X, y)


def test_models_of_dates_that_vary_in_other_ways_are_added_with_the_same_families() -> None:
    X, y = years()
    early = (X["when"] < "2021-12-01").to_numpy()
    first, second = (GenerativeClassifier().fit(X[rows], y[rows]) for rows in (~early, early))
    with pytest.raises(InputError, match=r"'when.year'.* of one model only.*families=first.families_"):
        first + second
    for families in (first.families_, second.families_):
        one, other = (GenerativeClassifier(families).fit(X[rows], y[rows]) for rows in (~early, early))
        both = GenerativeClassifier(families, calibration=None).fit(X, y)
        sums = one + other
        sums.set_params(calibration=None)
        np.testing.assert_allclose(sums.log_density(X), both.log_density(X), atol=1e-8)
    with pytest.raises(InputError, match=r"'when.year'.*partial_fit"):
        LinearDiscriminant().fit(X[~early], y[~early]) + LinearDiscriminant().fit(X[early], y[early])


def test_numbers_among_text_in_a_column_of_objects_are_numbers() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    for kind in (np.float64, float, lambda value: Decimal(f"{value:.3f}")):
        cells = [kind(value) if i else "unknown" for i, value in enumerate(rng.normal(y))]
        with pytest.warns(ColumnWarning, match="'unknown', read as missing"):
            model = GenerativeClassifier().fit(pd.DataFrame({"x": cells}), y)
        assert model.columns_["decision"][0] == "Gaussian"


@pytest.mark.parametrize("text", [False, True])
def test_dates_declared_to_be_numbers_are_one_column_of_days(text: bool) -> None:
    X, y = years()
    X = X.assign(when=X["when"].astype(str)) if text else X
    days = (pd.to_datetime(X["when"]) - pd.Timestamp(0)) / pd.Timedelta(days=1)
    model = GenerativeClassifier(types={"when": "number"}).fit(X, y)
    by_hand = GenerativeClassifier().fit(X.assign(when=days.astype(int)), y)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(X.assign(when=days)), atol=1e-12)


def test_numbers_of_columns_after_a_date_are_an_error() -> None:
    X, y = years()
    rows = X.to_numpy(dtype=object)
    with pytest.raises(InputError, match=r"'x0' become several columns\. Name the column"):
        GenerativeClassifier({1: Gaussian()}).fit(rows, y)
    assert GenerativeClassifier({"x1": Gaussian()}).fit(rows, y).columns_["decision"][1] == "Gaussian"


LIBRARIES: dict[str, Any] = {
    "pandas": lambda frame: frame.set_axis(frame.index[::-1]),
    "objects": lambda frame: frame.astype(object),
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "array": lambda frame: frame.to_numpy(dtype=object),
}


def cells(rows: Any) -> list[list[Any]]:
    """The columns of a frame of any library, or of an array, as lists."""
    if isinstance(rows, np.ndarray):
        return rows.T.tolist()
    return [column.to_list() for column in nw.from_native(rows, eager_only=True).iter_columns()]


@pytest.mark.parametrize("library", LIBRARIES)
def test_imputed_and_sampled_prices_are_numbers(library: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(100.0, 20.0, 200).round(2)
    frame = pd.DataFrame({"x": x + rng.normal(size=200), "price": [f"${v:.2f}" for v in x]})
    turn = LIBRARIES[library]
    model = Imputer().fit(turn(frame))
    gaps = frame.assign(price=frame["price"].where(np.arange(200) % 3 > 0, None))
    for rows, index in ((frame, np.arange(200)), (gaps, np.flatnonzero(np.arange(200) % 3))):
        price = np.array(cells(model.transform(turn(rows)))[1], dtype=float)
        np.testing.assert_array_equal(price[index], x[index])
        assert np.corrcoef(price, x)[0, 1] > 0.9
    sample = model.model_.sample(5, random_state=0)[0]
    assert all(isinstance(value, float) and 0.0 < value < 200.0 for value in cells(sample)[1])


@pytest.mark.parametrize("library", LIBRARIES)
def test_imputed_and_sampled_dates_are_dates(library: str) -> None:
    X, _ = years()
    gaps = X.assign(when=X["when"].where(np.arange(200) % 3 > 0))
    turn, column = LIBRARIES[library], "x0" if library == "array" else "when"
    model = Imputer(MixtureModel(families={column: Gaussian()})).fit(turn(X))
    found = pd.to_datetime(pd.Series(cells(model.transform(turn(gaps)))[0]))
    assert found.between("2021-01-01", "2024-01-01").all()
    assert (found[np.arange(200) % 3 > 0] == X["when"][np.arange(200) % 3 > 0]).all()
    sample = pd.to_datetime(pd.Series(cells(model.model_.sample(5, random_state=0)[0])[0]))
    assert sample.between("2020-01-01", "2025-01-01").all()
    assert (sample == sample.dt.floor("D")).all()


def test_codes_that_come_as_numbers_are_imputed_as_numbers() -> None:
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"x": rng.normal(size=100), "zip": rng.choice(["02139", "10001"], 100)})
    gaps = train.assign(zip=np.where(np.arange(100) % 3, train["zip"].astype(float), np.nan))
    assert set(Imputer().fit(train).transform(gaps)["zip"]) == {2139.0, 10001.0}


def test_a_summary_counts_the_columns_of_a_joint_density_once() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([False, True], 150)
    z = rng.normal(size=300)
    amount = np.exp(2.0 * z + rng.normal(size=300) * 0.3 + y)
    spent = np.where(rng.random(300) < 0.6 - 0.2 * y, 0.0, np.exp(rng.normal(5.0 + y, 1.0, 300)))
    X = pd.DataFrame({"x": z + 0.3 * rng.normal(size=300), "amount": amount, "spent": spent})
    model = GenerativeClassifier().fit(X.assign(y=y), "y")
    assert "2 numbers as one joint Gaussian, 1 by the logarithm\n" in str(model.summary())
    columns = model.columns_.set_index("column")
    assert columns.decision["spent"] == "PointMass at 0, else LogNormal"
    assert columns.type["y"] == "boolean"
    assert likely.columns(X.assign(y=y.astype(int)), "y").set_index("column").type["y"] == "whole number"


def test_the_reason_says_why_text_of_digits_is_no_number() -> None:
    X, y = years()
    X = X.assign(
        zip=np.where(X["x"] > 0.0, "02139", "10001"),
        both=np.where(X["x"] > 0.5, "1,234", "2,345"),
        clock=[f"{hour}:30" for hour in np.arange(200) % 24],
        moment=X["when"] + pd.to_timedelta(np.arange(200), "h"),
    )
    reasons = likely.columns(X, y).set_index("column")["reason"]
    assert reasons["zip"].startswith("codes of digits, used as text")
    assert reasons["both"].startswith("numbers or dates that can be read in two ways")
    assert (reasons["when"], reasons["clock"], reasons["moment"]) == ("dates", "times", "dates and times")


@pytest.mark.parametrize("mark", ["n/a", "NULL", "na", "#N/A", "none"])
def test_marks_of_missing_values_are_known_in_any_case(mark: str) -> None:
    X, y = years()
    cells = [mark if i % 7 == 0 else f"{value:.2f}" for i, value in enumerate(X["x"])]
    assert likely.columns(pd.DataFrame({"x": cells}), y)["type"][0] == "number"
