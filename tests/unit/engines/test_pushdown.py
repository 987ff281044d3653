"""Scans with pushdown=True: statistics that DuckDB and Polars compute, compared with those of the rows in memory."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from datetime import date
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import likely
from likely import (
    Bernoulli,
    Categorical,
    EvidenceClassifier,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    Geometric,
    LinearDiscriminant,
    NaiveBayes,
    NearestPrototype,
    NegativeBinomial,
    Poisson,
    QuadraticDiscriminant,
    scan,
)
from likely.engines import pushdown
from likely.engines.scan import Scan
from likely.errors import InputError, InputTypeError, SourceError

FAMILIES = {
    "far": Gaussian("diagonal"),
    "gappy": Gaussian("diagonal"),
    "constant": Gaussian("diagonal"),
    'odd "name"; --': Gaussian("diagonal", shared=True),
    "whole": Gaussian("diagonal"),
    "flag": Bernoulli(),
    "count": Poisson(),
    "waits": Geometric(),
    "failures": NegativeBinomial(2.0),
    "colour": Categorical(),
    "code": Categorical(categories=[7]),
}


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    n = 400
    label = rng.choice(["b", "a", "c;'\""], n)
    count = rng.poisson(3, n)
    return pl.DataFrame(
        {
            "far": 1e8 + rng.normal(size=n) * (1.0 + (label == "a")) + 1e6 * (label == "b"),
            "colour": [None if i % 7 == 0 else colour for i, colour in enumerate(rng.choice(["red", "'; --", "é"], n))],
            "gappy": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "label": label,
            "constant": np.full(n, 0.1),
            'odd "name"; --': rng.normal(size=n).astype(np.float32),
            "whole": rng.integers(-5, 5, n).astype(np.int16),
            "flag": rng.random(n) < 0.3,
            "count": [None if value == 2 else int(value) for value in count],
            "waits": rng.geometric(0.4, n),
            "failures": rng.negative_binomial(2, 0.4, n),
            "code": rng.integers(0, 4, n),
            "weight": rng.integers(0, 4, n) / 2.0,
        }
    )


def in_duckdb(frame: pl.DataFrame) -> Scan:
    connection = duckdb.connect()
    connection.register("rows", frame.to_arrow())
    return scan(sql="select * from rows", connection=connection, pushdown=True)


def in_polars(frame: pl.DataFrame) -> Scan:
    return scan(frame.lazy(), pushdown=True)


ENGINES: list[Callable[[pl.DataFrame], Scan]] = [in_duckdb, in_polars]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
def test_statistics_of_an_engine_are_those_of_the_rows(
    rows: pl.DataFrame,
    engine: Callable[[pl.DataFrame], Scan],
    weight: str | None,
    estimation: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pushdown, "MOST_COLUMNS", 2)  # several queries
    if weight is None:
        rows = rows.drop("weight")
    expected = NaiveBayes(FAMILIES, calibration=None, estimation=estimation).fit(rows, "label", sample_weight=weight)
    model = NaiveBayes(FAMILIES, calibration=None, estimation=estimation).fit(
        engine(rows), "label", sample_weight=weight
    )
    assert model.classes_.tolist() == ["a", "b", "c;'\""]
    assert np.array_equal(model.statistics_.counts.rows, expected.statistics_.counts.rows)
    for mine, yours in zip(model.statistics_.blocks, expected.statistics_.blocks, strict=True):
        assert np.shape(mine.rows) == np.shape(yours.rows)
        assert all(np.array_equal(a, b) for a, b in zip(mine.rows, yours.rows, strict=True))
    exact = expected.log_joint(rows)
    assert np.allclose(model.log_joint(rows), exact, rtol=1e-9, atol=1e-9)
    assert np.allclose(model.predict_proba(rows), expected.predict_proba(rows), atol=1e-9)
    assert type(model.sample(3)[0]).__module__.startswith("polars" if engine is in_polars else "pyarrow")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_weights_may_be_far_from_1(rows: pl.DataFrame, engine: Callable[[pl.DataFrame], Scan], unit: float) -> None:
    some = rows.select("gappy", "colour", "label", weight=pl.col("weight") * unit)
    families = {"gappy": Gaussian(), "colour": Categorical()}
    model, expected = (
        _model(families).fit(each, "label", sample_weight="weight").statistics_.blocks for each in (engine(some), some)
    )
    assert np.allclose(model[0].scatter, expected[0].scatter, rtol=1e-12, atol=0.0)
    assert np.allclose(model[1].weight, expected[1].weight, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_decimals_are_the_categories_that_a_frame_has(engine: Callable[[pl.DataFrame], Scan]) -> None:
    prices = pl.Series([4.6, -4.52, 0.29, 4.6], dtype=pl.Decimal(6, 2))
    model = _model(Categorical()).fit(engine(pl.DataFrame({"x": prices, "y": list("aabb")})), "y")
    assert model.statistics_.blocks[0].vocabularies == ((-4.52, 0.29, 4.6),)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_first_batch_need_not_determine_the_parameters(engine: Callable[[pl.DataFrame], Scan]) -> None:
    frame = pl.DataFrame({"x": [1.0, 5.0, 2.0, 7.0], "y": list("abab")})
    model = _model(estimation="mle").partial_fit(engine(frame[:2]), "y").partial_fit(engine(frame[2:]), "y")
    assert np.allclose(model.log_joint(frame), _model(estimation="mle").fit(frame, "y").log_joint(frame))


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_an_engine_are_added_and_removed(rows: pl.DataFrame, engine: Callable[[pl.DataFrame], Scan]) -> None:
    rows = rows.drop("weight").with_columns(pl.col("far") - 1e8)
    first, second = rows[:150], rows[150:]
    whole = NaiveBayes(FAMILIES, calibration=None).fit(rows, "label")
    model = NaiveBayes(FAMILIES, calibration=None).partial_fit(engine(first), "label")
    model.partial_fit(engine(second.select(reversed(rows.columns))), "label")  # columns are found by name
    assert np.allclose(model.predict_proba(rows), whole.predict_proba(rows), atol=1e-9)
    model.forget(engine(second), "label")
    expected = NaiveBayes(FAMILIES, calibration=None).fit(first, "label")
    assert np.allclose(model.predict_proba(rows), expected.predict_proba(rows), atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminant("diagonal"),
        QuadraticDiscriminant("diagonal"),
        QuadraticDiscriminant("spherical"),
        NearestPrototype(),
        GenerativeClassifier(Gaussian("diagonal", shared=[["a", "b"]]), calibration=None),
        GenerativeClassifier(
            {("far", "gappy"): Gaussian("spherical"), "whole": Gaussian("identity")}, calibration=None
        ),
        GenerativeClassifier({("far", "gappy"): Gaussian("diagonal"), "whole": None}, calibration=None),
    ],
)
def test_all_independent_gaussians_are_summed(rows: pl.DataFrame, model: Any) -> None:
    some = rows.select("far", "gappy", "whole", "label")
    found = model.fit(in_duckdb(some), "label").predict_proba(some)
    assert np.allclose(found, model.fit(some, "label").predict_proba(some), atol=1e-9)


def test_variances_keep_their_digits_far_from_zero() -> None:
    x = np.random.default_rng(1).normal(size=2000)
    frame = pl.DataFrame({"x": 1e8 + x, "y": ["a", "b"] * 1000})
    shifted = frame.with_columns(pl.col("x") - 1e8)
    for engine in ENGINES:
        scatter = (
            NaiveBayes(Gaussian("diagonal"), calibration=None).fit(engine(frame), "y").statistics_.blocks[0].scatter
        )
        exact = [[np.sum((part - part.mean()) ** 2)] for part in (shifted["x"].to_numpy()[k::2] for k in (0, 1))]
        assert np.allclose(scatter, exact, rtol=1e-9)


def test_means_keep_their_digits_where_many_threads_add() -> None:
    connection = duckdb.connect(config={"threads": 4})
    connection.execute("create table t as select 1e8 + hash(i) % 1000 / 100 as x, 'a' as y from range(500000) r(i)")
    (exact,) = connection.sql("select avg(x - 1e8) from t").fetchall()[0]
    rows = scan(table="t", connection=connection, pushdown=True)
    for _ in range(4):  # the order of the additions differs from query to query
        mean = _model().fit(rows, "y").statistics_.blocks[0].mean[0, 0]
        assert abs(mean - 1e8 - exact) < 2e-8  # 1e8 + 1 has a rounding error of 7e-9


def test_labels_keep_their_type() -> None:
    for query, classes in {
        "select range::bigint as y, random() as x from range(3)": [0, 1, 2],
        "select range > 1 as y, random() as x from range(3)": [False, True],
        "select range + 0.5::double as y, random() as x from range(2)": [0.5, 1.5],
    }.items():
        if "0.5" in query:
            with pytest.raises(InputError, match="label"):
                NaiveBayes(Gaussian(), calibration=None).fit(scan(sql=query, pushdown=True), "y")
            continue
        model = NaiveBayes(Gaussian(), calibration=None).fit(scan(sql=query, pushdown=True), "y")
        assert model.classes_.tolist() == classes
    kinds: dict[str, Any] = {"y": pl.Enum(["c", "a", "unused"]), "g": pl.Categorical}
    frame = pl.DataFrame({"y": ["a", "c", "a"], "g": ["u", "v", None]}, schema_overrides=kinds)
    model = NaiveBayes(Categorical(), calibration=None).fit(in_polars(frame), "y")
    assert model.classes_.tolist() == ["a", "c"]
    assert model.statistics_.blocks[0].vocabularies == (("u", "v"),)


def test_columns_without_any_value_change_nothing() -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 5.0, 6.0], "c": [None] * 4, "d": [None] * 4, "y": list("aabb")})
    families = {"x": Gaussian(), "c": Categorical(), "d": Gaussian()}
    model = NaiveBayes(families, calibration=None).fit(in_polars(frame), "y")
    alone = NaiveBayes(Gaussian(), calibration=None).fit(frame.select("x", "y"), "y")
    assert np.allclose(model.predict_proba(frame), alone.predict_proba(frame.select("x")), atol=1e-12)


def test_a_model_of_an_engine_scores_in_the_database(rows: pl.DataFrame) -> None:
    connection = duckdb.connect()
    some = rows.select("gappy", "flag", "colour", "label")
    connection.register("rows", some.to_arrow())
    connection.execute("create table kept as select * from rows")
    families = {"gappy": Gaussian(), "flag": Bernoulli(), "colour": Categorical()}
    model = NaiveBayes(families, calibration=None).fit(
        scan(table="kept", connection=connection, pushdown=True), "label"
    )
    found = connection.sql(model.to_sql("kept")).to_arrow_table()
    expected = model.predict_proba(some)
    for k, label in enumerate(model.classes_):
        assert np.allclose(found[f"probability_{label}"].to_numpy(), expected[:, k], atol=1e-9)


def _model(families: Any = None, **options: Any) -> NaiveBayes:
    return NaiveBayes(families or Gaussian("diagonal"), calibration=None, **options)


def _pair(**columns: Any) -> Scan:
    return in_polars(pl.DataFrame({"x": [1.0, 2.0], **columns, "y": ["a", "b"]}))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: NaiveBayes(Gaussian()).fit(_pair(), "y"), InputError, "calibration=None"),
        (lambda: _model({"x": Gaussian()}).fit(_pair(z=[1, 2]), "y"), InputError, "'z' has no declared family"),
        (lambda: LinearDiscriminant().fit(_pair(z=[1, 2]), "y"), InputError, "'x', 'z': Gaussian, full.*'diagonal'"),
        (lambda: _model(Gamma()).fit(_pair(), "y"), InputError, "'x': Gamma.* needs rows"),
        (
            lambda: GenerativeClassifier({("x", "z"): Categorical()}, calibration=None).fit(_pair(z=[1, 2]), "y"),
            InputError,
            "'x', 'z': Categorical of all combinations needs rows",
        ),
        (
            lambda: _model({"x": Poisson(exposure="z")}).fit(_pair(z=[1, 2]), "y"),
            InputError,
            "Poisson, exposure 'z' needs rows",
        ),
        (lambda: _model().fit(_pair(), ["a", "b"]), InputError, "y must be the name of a column"),
        (lambda: _model().fit(_pair(), "Y"), InputError, "no column 'Y'. Did you mean 'y'"),
        (lambda: _model().fit(_pair(x=[1.0, float("inf")]), "y"), InputError, "'x' has infinite values"),
        (
            lambda: _model().fit(in_polars(pl.DataFrame({"x": [1e200, -1e200], "y": ["a", "a"]})), "y"),
            InputError,
            "overflow",
        ),
        (
            lambda: _model().fit(in_polars(pl.DataFrame({"x": [1e-200, 0.0], "y": ["a", "a"]})), "y"),
            InputError,
            "underflow",
        ),
        (lambda: _model().fit(_pair(x=[2**60, 1]), "y"), InputError, "'x' has integers beyond 2\\^53"),
        (lambda: _model().fit(_pair(x=["1", "2"]), "y"), InputTypeError, "'x' has the type String, and Gaussian"),
        (
            lambda: _model().fit(_pair(x=[date(2026, 1, 1)] * 2), "y"),
            InputTypeError,
            "numbers. Convert it in the query",
        ),
        (lambda: _model(Poisson()).fit(_pair(x=["1", "2"]), "y"), InputTypeError, "and Poisson needs numbers"),
        (lambda: _model(Poisson()).fit(_pair(x=[1, -2]), "y"), InputError, r"Column 'x': -2.0 is not a count"),
        (lambda: _model(Bernoulli()).fit(_pair(x=[0.5, 1.0]), "y"), InputError, r"Column 'x': 0.5 is not 0 or 1"),
        (
            lambda: _model().fit(in_polars(pl.DataFrame({"x": [1.0, 2.0], "y": ["a", None]})), "y"),
            InputError,
            "1 row has no label in 'y'",
        ),
        (
            lambda: _model().fit(in_polars(pl.DataFrame({"x": [1.0, 2.0], "y": [1.0, np.nan]})), "y"),
            InputError,
            "1 row has no label",
        ),
        (lambda: _model(unlabeled="b").fit(_pair(), "y"), InputError, "1 row has no label in 'y'"),
        (
            lambda: _model().fit(_pair(w=[1.0, -1.0]), "y", sample_weight="w"),
            InputError,
            "'w' has values from -1.0 to 1.0",
        ),
        (lambda: _model().fit(_pair(w=[1.0, None]), "y", sample_weight="w"), InputError, "'w' has 1 missing value"),
        (lambda: _model().fit(_pair(w=["1", "2"]), "y", sample_weight="w"), InputTypeError, "'w' has the type String"),
        (
            lambda: _model().fit(_pair(w=[0, 0]), "y", sample_weight="w"),
            InputError,
            "weights in sample_weight are zero",
        ),
        (
            lambda: _model().fit(_pair(w=[1e300, 1.0]), "y", sample_weight="w"),
            InputError,
            "sum of sample_weight overflows",
        ),
        (
            lambda: _model().fit(scan(sql="select repeat('1', 64)::bit as x, 'a' as y", pushdown=True), "y"),
            InputTypeError,
            "'x' has a type that cannot be summed",  # as a double, its bits would be -NaN
        ),
        (
            lambda: _model(Poisson()).fit(scan(sql="select gen_random_uuid() as x, 'a' as y", pushdown=True), "y"),
            InputTypeError,
            "'x' has a type that cannot be summed, and Poisson needs numbers",
        ),
        (lambda: _model().fit(scan(sql="select 1.0 x, 'a' y where false", pushdown=True), "y"), InputError, "no rows"),
        (
            lambda: _model().fit(scan(sql="select error('boom')::double as x, 'a' as y", pushdown=True), "y"),
            SourceError,
            "could not run .*boom",
        ),
        (
            lambda: _model().fit(scan(sql='select 1.0 a, 2.0 "A", 1 y', pushdown=True), "y"),
            SourceError,
            "unique column",
        ),
        (lambda: _model().partial_fit(_pair(), "y", classes=["a", "c"]), InputError, "label 'b'.*not among classes"),
        (lambda: _model().fit(_pair(), "y").partial_fit(_pair(z=[1, 2]), "y"), InputError, "unseen at fit time"),
        (lambda: _model().fit(_pair(), "y").predict(_pair()), InputError, "to_sql"),
        (lambda: likely.cross_validate(_model(), _pair(), "y"), InputError, "pushdown=True"),
        (lambda: EvidenceClassifier().fit(_pair(), "y"), InputError, "pushdown=True"),
        (lambda: GenerativeRegressor().fit(_pair(z=[1.0, 2.0]), "z"), InputError, "pushdown=True"),
        (lambda: scan("src/likely/datasets/penguins.csv", pushdown=True), InputError, "pushdown=True is for queries"),
        (
            lambda: scan(sql="select 1 as x", connection=sqlite3.connect(":memory:"), pushdown=True),
            InputError,
            "attach other databases",
        ),
        (lambda: scan(sql="select 1 as x", pushdown=1), InputError, "pushdown=1 must be True or False"),  # type: ignore[arg-type]
    ],
)
def test_what_needs_rows_or_numbers_is_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_failed_fit_leaves_the_model_as_it_was() -> None:
    model = _model().fit(_pair(), "y")
    before = model.predict_proba(pl.DataFrame({"x": [1.2]}))
    for call in (model.fit, model.partial_fit, model.forget):
        with pytest.raises(InputError, match="infinite"):
            call(_pair(x=[1.0, float("inf")]), "y")
    assert np.array_equal(model.predict_proba(pl.DataFrame({"x": [1.2]})), before)


def test_columns_that_are_set_aside_may_be_absent_later() -> None:
    model = _model({"x": Gaussian(), "z": None}).fit(_pair(z=["u", "v"]), "y").partial_fit(_pair(), "y")
    assert model.statistics_.counts.rows.tolist() == [2, 2]


def test_rows_that_change_between_queries_are_an_error() -> None:
    frame = pl.DataFrame({"x": np.arange(1000.0), "y": ["a"] * 1000})
    reads = itertools.count()
    rows = frame.lazy().map_batches(lambda part: part.head(1000 - 10 * next(reads)))  # every query has fewer rows
    with pytest.raises(SourceError, match="have changed between two queries"):
        _model().fit(scan(rows, pushdown=True), "y")


def test_a_scan_shows_that_its_rows_stay() -> None:
    assert "stay where they are" in repr(_pair())


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_of_true_and_false_select_rows(rows: pl.DataFrame, engine: Callable[[pl.DataFrame], Scan]) -> None:
    some = rows.select("whole", "label", weight=pl.col("whole") > 1)
    model = _model().fit(engine(some), "label", sample_weight="weight")
    expected = _model().fit(some, "label", sample_weight="weight")
    assert np.array_equal(model.statistics_.counts.weight, expected.statistics_.counts.weight)
    assert np.allclose(model.log_joint(some), expected.log_joint(some), rtol=1e-9, atol=1e-9)
