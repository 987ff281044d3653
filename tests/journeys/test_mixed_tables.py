"""Tables as people have them: numbers, counts, yes or no, labels and missing values side by side, from any library."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy import stats
from scipy.special import gammaln, log_softmax, logsumexp

from likely import (
    Bernoulli,
    Beta,
    Categorical,
    Exponential,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    Geometric,
    LogNormal,
    Multinomial,
    NaiveBayes,
    NegativeBinomial,
    NormalInverseWishart,
    Poisson,
    VonMises,
)
from likely.errors import ImpossibleRowsWarning, InputError, NotEstimableError

Floats = NDArray[np.float64]
Cells = dict[str, list[Any]]

MODELS: list[Any] = [NaiveBayes, GenerativeClassifier]
both_models = pytest.mark.parametrize("model", MODELS)
every_estimation = pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])

GRADES = ["low", "mid", "high"]
SIZES = ["xs", "s", "m", "l"]


# ------------------------------------------------------------------------------------------------ the same rows, held


def patients(n: int = 90, seed: int = 0) -> tuple[Cells, list[str]]:
    """Rows of every kind of column, with missing values, as plain Python values; and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 3)
    missing_values = rng.random((5, n)) < 0.15

    def incomplete(values: list[Any], which: int) -> list[Any]:
        return [None if absent else value for value, absent in zip(values, missing_values[which], strict=True)]

    cells: Cells = {
        "weight": incomplete(rng.normal(60.0 + 8.0 * y, 9.0).tolist(), 0),
        "visits": rng.poisson(4.0 + 6.0 * y).tolist(),
        "rooms": incomplete(rng.integers(1, 5 + y).tolist(), 1),
        "smoker": (rng.random(n) < 0.3 + 0.2 * y).tolist(),
        "town": incomplete(rng.choice(["Bern", "Basel", "Chur", "Genf"], n).tolist(), 2),
        "grade": incomplete([GRADES[int(i)] for i in np.minimum(rng.integers(0, 3, n), 2 - (y == 0))], 3),
        "size": [SIZES[int(i)] for i in (rng.integers(0, 3, n) + (y == 2))],
        "price": incomplete([Decimal(int(c)) / 4 for c in rng.integers(20 + 30 * y, 200)], 4),
    }
    return cells, [["healthy", "ill", "unsure"][k] for k in y]


def as_pandas(cells: Cells, order: int = 1) -> Any:
    return pd.DataFrame(
        {
            "weight": pd.Series(cells["weight"], dtype="float64"),
            "visits": pd.Series(cells["visits"], dtype="int64"),
            "rooms": pd.Series(cells["rooms"], dtype="Int64"),
            "smoker": pd.Series(cells["smoker"], dtype="bool"),
            "town": pd.Series(cells["town"], dtype="str"),
            "grade": pd.Categorical(cells["grade"], categories=[*GRADES, "never"][::order]),
            "size": pd.Categorical(cells["size"], categories=["xxl", *SIZES][::order], ordered=True),
            "price": pd.Series(cells["price"], dtype=object),
        }
    )


def as_pandas_of_arrow(cells: Cells) -> Any:
    return as_arrow(cells).to_pandas(types_mapper=pd.ArrowDtype)


def as_pandas_of_objects(cells: Cells) -> Any:
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in cells.items()})


def as_polars(cells: Cells, order: int = 1) -> Any:
    return pl.DataFrame(
        cells,
        schema={
            "weight": pl.Float64,
            "visits": pl.Int32,
            "rooms": pl.UInt8,
            "smoker": pl.Boolean,
            "town": pl.String,
            "grade": pl.Categorical,
            "size": pl.Enum(["xxl", *SIZES][::order]),
            "price": pl.Decimal(10, 2),
        },
    )


def as_arrow(cells: Cells) -> Any:
    words = pa.dictionary(pa.int32(), pa.string())
    return pa.table(
        cells,
        schema=pa.schema(
            {
                "weight": pa.float64(),
                "visits": pa.int16(),
                "rooms": pa.int64(),
                "smoker": pa.bool_(),
                "town": pa.large_string(),
                "grade": words,
                "size": words,
                "price": pa.decimal128(10, 2),
            }.items()
        ),
    )


LIBRARIES: dict[str, Callable[[Cells], Any]] = {
    "pandas": as_pandas,
    "pandas, categories backwards": lambda cells: as_pandas(cells, order=-1),
    "pandas of Arrow": as_pandas_of_arrow,
    "pandas of objects": as_pandas_of_objects,
    "Polars": as_polars,
    "Polars, categories backwards": lambda cells: as_polars(cells, order=-1),
    "Arrow": as_arrow,
}
FAMILIES_OF_PATIENTS = {
    "weight": "Gaussian",
    "visits": "Poisson",
    "rooms": "Categorical",
    "smoker": "Bernoulli",
    "town": "Categorical",
    "grade": "Categorical",
    "size": "Categorical",
    "price": "Gaussian",
}


def names_of_families(model: Any) -> dict[str, str]:
    """The family of every column, by name."""
    found: dict[str, str] = {}
    for columns, family in model.families_.items():
        for column in columns if isinstance(columns, tuple) else (columns,):
            found[column] = type(family).__name__
    return found


@both_models
@every_estimation
@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_of_the_same_rows_give_the_same_model(library: str, estimation: str, model: Any) -> None:
    cells, y = patients()
    frame = LIBRARIES[library](cells)
    reference, fitted = (
        model(estimation=estimation).fit(as_pandas(cells), y),
        model(estimation=estimation).fit(frame, y),
    )
    assert_allclose(fitted.predict_proba(frame), reference.predict_proba(as_pandas(cells)), rtol=0, atol=1e-12)
    assert_allclose(fitted.log_joint(frame), reference.log_joint(as_pandas(cells)), rtol=1e-12)
    assert names_of_families(fitted) == FAMILIES_OF_PATIENTS


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_model_answers_about_frames_of_other_libraries(library: str) -> None:
    cells, y = patients()
    model = NaiveBayes().fit(as_pandas(cells), y)
    frame = LIBRARIES[library](cells)
    assert_allclose(model.predict_proba(frame), model.predict_proba(as_pandas(cells)), rtol=0, atol=1e-12)
    assert_array_equal(model.predict(frame), model.predict(as_pandas(cells)))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_few_rows_have_the_answers_they_have_among_all(library: str) -> None:
    """They know fewer categories, and have other codes for them."""
    cells, y = patients()
    frame = LIBRARIES[library](cells)
    model = NaiveBayes().fit(frame, y)
    together = model.predict_proba(frame)
    for start in (0, 41, 87):
        few = LIBRARIES[library]({name: column[start : start + 3] for name, column in cells.items()})
        assert_allclose(model.predict_proba(few), together[start : start + 3], rtol=0, atol=1e-12)


def test_the_order_of_rows_changes_nothing() -> None:
    cells, y = patients()
    order = np.random.default_rng(1).permutation(len(y))
    frame, turned = as_pandas(cells), as_pandas(cells).iloc[order]
    model, other = NaiveBayes().fit(frame, y), NaiveBayes().fit(turned, np.array(y)[order])
    assert_allclose(other.predict_proba(frame), model.predict_proba(frame), rtol=0, atol=1e-12)


def test_names_of_categories_change_nothing() -> None:
    cells, y = patients()
    renamed = {**cells, "town": [None if town is None else f"{town[::-1]}!" for town in cells["town"]]}
    model, other = NaiveBayes().fit(as_polars(cells), y), NaiveBayes().fit(as_polars(renamed), y)
    assert_allclose(other.predict_proba(as_polars(renamed)), model.predict_proba(as_polars(cells)), rtol=0, atol=1e-12)


@pytest.mark.usefixtures("pure_models")
def test_categories_without_rows_are_no_categories() -> None:
    y = ["a", "a", "b", "b"]
    plain = pd.DataFrame({"word": ["x", "y", "y", "y"]})
    wide = pd.DataFrame({"word": pd.Categorical(["x", "y", "y", "y"], categories=["w", "x", "y", "z"])})
    expected = NaiveBayes().fit(plain, y).predict_proba(plain)
    assert_array_equal(NaiveBayes().fit(wide, y).predict_proba(wide), expected)
    declared = NaiveBayes(Categorical(categories=["w", "z"])).fit(plain, y)
    assert_allclose(np.exp(declared.explain(plain).evidence[0, :, 0]), [1.5 / 4.0, 0.5 / 4.0], rtol=1e-14)


# -------------------------------------------------------------------------------------------- names of columns


@both_models
@pytest.mark.parametrize("library", ["pandas", "Polars", "Arrow"])
def test_the_target_may_be_the_name_of_a_column(library: str, model: Any) -> None:
    cells, y = patients()
    frame = LIBRARIES[library](cells)
    together = {
        "pandas": lambda: frame.assign(diagnosis=y),
        "Polars": lambda: frame.with_columns(diagnosis=pl.Series(y)),
        "Arrow": lambda: frame.append_column("diagnosis", pa.array(y)),
    }[library]()
    fitted = model().fit(together, "diagnosis")
    assert_array_equal(fitted.predict_proba(frame), model().fit(frame, y).predict_proba(frame))
    assert "diagnosis" not in names_of_families(fitted)


@both_models
@pytest.mark.parametrize("library", ["pandas", "Polars", "Arrow"])
def test_columns_are_found_by_name_in_any_order(library: str, model: Any) -> None:
    cells, y = patients()
    frame = LIBRARIES[library](cells)
    fitted = model().fit(frame, y)
    names = [*cells][::-1]
    turned = frame.select(names) if library != "pandas" else frame[names]
    assert_array_equal(fitted.predict_proba(turned), fitted.predict_proba(frame))
    assert_array_equal(fitted.explain(turned).evidence, fitted.explain(frame).evidence)
    assert fitted.explain(turned).columns == tuple(cells)


@both_models
@pytest.mark.parametrize("library", ["pandas", "Polars", "Arrow"])
def test_columns_that_are_absent_or_unknown_are_named(library: str, model: Any) -> None:
    cells, y = patients()
    frame = LIBRARIES[library](cells)
    fitted = model().fit(frame, y)
    kept = [name for name in cells if name != "town"]
    fewer = frame[kept] if library == "pandas" else frame.select(kept)
    renamed = LIBRARIES[library](cells)
    renamed = {
        "pandas": lambda: renamed.rename(columns={"town": "city"}),
        "Polars": lambda: renamed.rename({"town": "city"}),
        "Arrow": lambda: renamed.rename_columns({"town": "city"}),
    }[library]()
    with pytest.raises(ValueError, match="town"):
        fitted.predict(fewer)
    with pytest.raises(ValueError, match="city"):
        fitted.predict(renamed)


@both_models
def test_families_of_columns_that_are_not_there_are_refused(model: Any) -> None:
    cells, y = patients()
    with pytest.raises(InputError, match=r"column 'size_', which is not in X: .*'size'"):
        model({"size_": Categorical()}).fit(as_pandas(cells), y)


@both_models
def test_names_that_stand_twice_are_refused(model: Any) -> None:
    cells, y = patients()
    frame = as_pandas(cells)
    frame.columns = ["weight", "visits", "rooms", "smoker", "town", "grade", "size", "town"]
    with pytest.raises(ValueError, match="'town'"):
        model().fit(frame, y)
    with pytest.raises(ValueError, match="'town'"):
        model().fit(pa.table([pa.array([1.0, 2.0]), pa.array(["u", "v"])], names=["town", "town"]), ["a", "b"])


# ------------------------------------------------------------------------------------------------------ categories


@pytest.mark.parametrize("library", ["pandas", "Polars", "Arrow"])
def test_an_unseen_category_is_a_missing_one_or_an_error_that_names_it(library: str) -> None:
    cells, y = patients()
    strange = {**cells, "town": [*cells["town"][:17], "Zug", *cells["town"][18:]]}
    incomplete = {**cells, "town": [*cells["town"][:17], None, *cells["town"][18:]]}
    frame, odd, with_missing = (LIBRARIES[library](each) for each in (cells, strange, incomplete))
    model = NaiveBayes().fit(frame, y)
    assert_array_equal(model.predict_proba(odd), model.predict_proba(with_missing))
    strict = NaiveBayes(unseen="error").fit(frame, y)
    assert_array_equal(strict.predict_proba(with_missing), model.predict_proba(with_missing))
    for question in (strict.predict, strict.predict_proba, strict.log_joint, strict.explain):
        with pytest.raises(InputError, match=r"Column 'town', row 17: 'Zug' was not seen in training.*'Bern'.*unseen="):
            question(odd)


def test_an_unseen_number_in_a_categorical_column_is_treated_like_an_unseen_word() -> None:
    X = pd.DataFrame({"rooms": [1, 2, 3, 1, 2, 2], "noise": [0.1, 0.4, 0.2, 0.9, 0.8, 0.7]})
    y = [0, 0, 0, 1, 1, 1]
    new = pd.DataFrame({"rooms": [7, 2], "noise": [0.3, 0.3]})
    with_missing = pd.DataFrame({"rooms": [np.nan, 2.0], "noise": [0.3, 0.3]})
    model = NaiveBayes({"rooms": Categorical()}).fit(X, y)
    assert_array_equal(model.predict_proba(new), model.predict_proba(with_missing))
    with pytest.raises(
        InputError, match=r"Column 'rooms', row 0: 7 was not seen in training. Known categories: 1, 2, 3"
    ):
        NaiveBayes({"rooms": Categorical()}, unseen="error").fit(X, y).predict(new)


@pytest.mark.usefixtures("pure_models")
def test_a_declared_category_is_expected_and_no_error() -> None:
    X, y = pd.DataFrame({"word": ["u", "v", "v", "u"]}), ["a", "a", "b", "b"]
    new = pd.DataFrame({"word": ["w"]})
    model = NaiveBayes({"word": Categorical(categories={"word": ["w"]})}, unseen="error").fit(X, y)
    assert_allclose(np.exp(model.explain(new).evidence[0, :, 0]), [0.5 / 3.5, 0.5 / 3.5], rtol=1e-14)
    assert_allclose(model.predict_proba(new), [[0.5, 0.5]], rtol=1e-14)


@pytest.mark.usefixtures("pure_models")
def test_numbers_and_text_of_one_column_are_compared_as_what_they_are() -> None:
    X = pd.DataFrame({"code": pd.Series([1, "1", 1, "1", 2, "x"], dtype=object)})
    y = ["a", "b", "a", "b", "a", "b"]
    model = NaiveBayes(unseen="error").fit(X, y)
    assert names_of_families(model) == {"code": "Categorical"}
    counts = {1: [2, 0], "1": [0, 2], 2: [1, 0], "x": [0, 1]}
    for cell, seen in counts.items():
        (evidence,) = model.explain(pd.DataFrame({"code": pd.Series([cell], dtype=object)})).evidence[..., 0]
        assert_allclose(np.exp(evidence), (np.array(seen) + 0.5) / 5.0, rtol=1e-14)
    with pytest.raises(InputError, match=r"Column 'code', row 0: '2' was not seen"):
        model.predict(pd.DataFrame({"code": pd.Series(["2"], dtype=object)}))


@pytest.mark.usefixtures("pure_models")
def test_a_category_of_one_class_favours_it_and_excludes_the_others_only_without_smoothing() -> None:
    X, y = pd.DataFrame({"word": ["u", "v", "v", "v"], "other": ["p", "q", "p", "q"]}), ["a", "a", "b", "b"]
    assert_array_equal(NaiveBayes(estimation="mle").fit(X, y).predict_proba(X[:1]), [[1.0, 0.0]])
    for estimation, s in {"map": 1.0, "bayes": 0.5}.items():
        model = NaiveBayes(estimation=estimation, class_prior="uniform").fit(X, y)
        expected = np.array([1.0 + s, s])
        assert_allclose(model.predict_proba(X[:1])[0], expected / expected.sum(), rtol=1e-12)


@pytest.mark.usefixtures("pure_models")
def test_a_hundred_thousand_categories_are_counted_exactly() -> None:
    rng = np.random.default_rng(2)
    codes = np.concatenate([np.arange(100_000), rng.integers(0, 100_000, 50_000)])
    words = np.char.add("w", codes.astype(str)).astype(object)
    y = rng.integers(0, 2, len(codes))
    X = pl.DataFrame({"word": words.tolist()})
    model = NaiveBayes(class_prior="uniform").fit(X, y)
    counts = np.zeros((2, 100_000))
    np.add.at(counts, (y, codes), 1.0)
    shares = (counts + 0.5) / (counts.sum(axis=1, keepdims=True) + 0.5 * 100_000)
    some = np.arange(0, len(codes), 997)
    posterior = (shares / shares.sum(axis=0))[:, codes[some]].T
    assert_allclose(model.predict_proba(X[some]), posterior, rtol=1e-12)


# ----------------------------------------------------------------------------------------------- types of columns

DAY = datetime.date(2026, 11, 1)
STRANGE: dict[str, tuple[Any, str]] = {
    "durations": (pl.Series([datetime.timedelta(days=1)] * 4), "Convert it to numbers"),
    "lists": (pl.Series([[1.0, 2.0]] * 4), "Drop it"),
    "structs": (pl.Series([{"u": 1}] * 4), "Drop it"),
}


@both_models
@pytest.mark.parametrize("kind", STRANGE)
def test_columns_of_other_types_are_refused_with_advice(kind: str, model: Any) -> None:
    column, advice = STRANGE[kind]
    frame = pl.DataFrame({"bill": [1.0, 2.0, 3.0, 4.5], "when": column})
    y = ["a", "b", "a", "b"]
    for X in (frame, frame.to_arrow(), frame.to_pandas(use_pyarrow_extension_array=True)):
        with pytest.raises(InputError, match=rf"Column 'when' .*{advice}"):
            model().fit(X, y)


@both_models
def test_durations_of_pandas_are_refused_with_advice(model: Any) -> None:
    with pytest.raises(InputError, match=r"Column 'when' .*Convert it to numbers"):
        model().fit(pd.DataFrame({"bill": [1.0, 2.0], "when": [pd.Timedelta(days=1)] * 2}), ["a", "b"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0], "Column 'parts', row 1: .*Encode such values"),
        ({"u": 1}, "Column 'parts', row 1: .*Encode such values"),
        (DAY, "Column 'parts', row 1: .*Encode such values"),
    ],
    ids=["lists", "mappings", "dates"],
)
def test_objects_that_are_neither_numbers_nor_text_are_refused_with_their_row(value: Any, message: str) -> None:
    frame = pd.DataFrame({"bill": [1.0, 2.0, 3.0], "parts": pd.Series([1.0, value, 2.0], dtype=object)})
    with pytest.raises(InputError, match=message):
        NaiveBayes().fit(frame, ["a", "b", "a"])


WHOLE: dict[str, tuple[list[int], str]] = {
    "few values": ([1, 2, 3], "Categorical"),
    "negative values of many kinds": ([*range(-12, 12)], "Gaussian"),
    "hours of a day": ([*range(24)], "Gaussian"),
    "counts": ([4, 5, 5, 6, 6, 7, 7, 7, 8, 8, 8, 8, 9, 9, 9, 10, 10, 11, 11, 12, 13, 14, 15, 3], "Poisson"),
    "large numbers": ([100 + 7 * i for i in range(24)], "Gaussian"),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_whole_numbers_with_missing_values_have_the_family_they_would_have_without(kind: str) -> None:
    distinct, family = WHOLE[kind]
    values = distinct * 5
    y = [i % 2 for i in range(len(values))]
    incomplete: list[Any] = [*values[:5], None, *values[6:]]
    frames: list[Any] = [
        pd.DataFrame({"n": values}),
        pd.DataFrame({"n": pd.Series(incomplete, dtype="float64")}),
        pd.DataFrame({"n": pd.Series(incomplete, dtype="Int64")}),
        pd.DataFrame({"n": pd.Series(incomplete, dtype=object)}),
        pl.DataFrame({"n": incomplete}),
        pa.table({"n": incomplete}),
    ]
    for frame in frames:
        assert names_of_families(NaiveBayes().fit(frame, y)) == {"n": family}
    answers = [NaiveBayes().fit(frame, y).predict_proba(frame) for frame in frames[1:]]
    for answer in answers[1:]:
        assert_allclose(answer, answers[0], rtol=0, atol=1e-12)


def test_yes_and_no_with_missing_values_have_the_family_they_would_have_without() -> None:
    y = [0, 1] * 3
    incomplete = [True, False, None, True, True, False]
    frames: list[Any] = [
        pd.DataFrame({"n": [True, False, True, True, True, False]}),
        pd.DataFrame({"n": pd.Series([True, False, True, True, True, False], dtype=object)}),
        pd.DataFrame({"n": pd.Series(incomplete, dtype="boolean")}),
        pd.DataFrame({"n": pd.Series(incomplete, dtype=object)}),
        pl.DataFrame({"n": incomplete}),
        pa.table({"n": incomplete}),
    ]
    for frame in frames:
        assert names_of_families(NaiveBayes().fit(frame, y)) == {"n": "Bernoulli"}


def test_rows_of_weight_0_choose_no_family() -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"n": rng.poisson(9.0, 60).astype(np.float64)})
    y, weights = np.arange(60) % 2, np.ones(60)
    X.loc[7, "n"], weights[7] = 0.5, 0.0
    model = NaiveBayes().fit(X, y, sample_weight=weights)
    kept = weights > 0.0
    without = NaiveBayes().fit(X[kept], y[kept])
    assert names_of_families(model) == names_of_families(without) == {"n": "Poisson"}
    assert_allclose(model.predict_proba(X[kept]), without.predict_proba(X[kept]), rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------------------------ missing values


@both_models
@every_estimation
def test_a_row_without_any_cell_gets_the_class_prior(model: Any, estimation: str) -> None:
    cells, y = patients()
    fitted = model(estimation=estimation).fit(as_pandas(cells), y)
    empty = as_pandas_of_objects({name: [None, column[0]] for name, column in cells.items()})
    assert_allclose(fitted.predict_proba(empty)[0], fitted.class_prior_, rtol=1e-14)
    assert_allclose(fitted.log_joint(empty)[0], np.log(fitted.class_prior_), rtol=1e-14)
    assert_array_equal(fitted.explain(empty).evidence[0], 0.0)


def assert_adds_up(answer: Any, joint: Floats) -> None:
    """Offset and evidence are log p(x, class); what is impossible is so in both."""
    total, never = answer.offset + answer.evidence.sum(axis=2), np.isneginf(joint)
    assert_array_equal(np.isneginf(total), never)
    total, joint = np.where(never, 0.0, total), np.where(never, 0.0, joint)
    assert np.all(np.abs(total - joint) <= 1e-10 * (1.0 + np.abs(joint)))


@both_models
@every_estimation
@pytest.mark.usefixtures("pure_models")
def test_explanations_of_mixed_rows_with_missing_values_add_up(model: Any, estimation: str) -> None:
    cells, y = patients()
    rng = np.random.default_rng(4)
    words = rng.poisson(2.0, (len(y), 3))
    frame = as_pandas(cells).assign(red=words[:, 0], green=words[:, 1], blue=words[:, 2])
    fitted = model({("red", "green", "blue"): Multinomial()}, estimation=estimation).fit(frame, y)
    answer, joint = fitted.explain(frame), fitted.log_joint(frame)
    assert_adds_up(answer, joint)
    assert answer.columns == (*cells, "red", "green", "blue")
    for j, name in enumerate(cells):
        absent = [cell is None for cell in cells[name]]
        assert_array_equal(answer.evidence[absent, :, j], 0.0)


@pytest.mark.usefixtures("pure_models")
def test_explanations_of_a_joint_block_with_missing_values_add_up() -> None:
    X, y, _ = correlated()
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(word=np.array(["p", "q", "r"])[np.arange(len(X)) % 3])
    for estimation in ("mle", "map", "bayes"):
        model = GenerativeClassifier({("u", "v", "w"): Gaussian()}, estimation=estimation).fit(frame, y)
        incomplete = frame.copy()
        incomplete.loc[::2, "v"] = incomplete.loc[1::3, "u"] = np.nan
        answer = model.explain(incomplete)
        assert_adds_up(answer, model.log_joint(incomplete))
        assert_array_equal(answer.evidence[::2, :, 1], 0.0)


def test_a_missing_count_of_a_vector_is_refused_with_its_place() -> None:
    X = pd.DataFrame({"red": [1, 2, 0, 4], "blue": [3, 1, 1, 0], "town": ["u", "v", "u", "v"]})
    y = ["a", "a", "b", "b"]
    incomplete = X.astype({"blue": "Int64"})
    incomplete.loc[2, "blue"] = pd.NA
    model = NaiveBayes({("red", "blue"): Multinomial()})
    words = r"Column 'blue', row 2: .* is missing, so the total of the row.*\. Write 0"
    with pytest.raises(InputError, match=words):
        model.fit(incomplete, y)
    with pytest.raises(InputError, match=words):
        model.fit(X, y).predict(incomplete)


def correlated() -> tuple[Floats, NDArray[Any], list[Floats]]:
    """Rows of three correlated columns, their classes, and the rows of each class."""
    rng = np.random.default_rng(5)
    y = np.repeat(["a", "b", "c"], [20, 16, 14])
    X = rng.normal(size=(50, 3)) @ np.array([[1.0, 0.7, 0.2], [0.0, 1.0, -0.5], [0.0, 0.0, 0.6]])
    X += np.repeat([[0.0, 0.0, 0.0], [1.5, -1.0, 0.4], [-1.0, 1.0, 1.0]], [20, 16, 14], axis=0)
    return X, y, [X[y == label] for label in "abc"]


def test_missing_values_that_cannot_be_summed_are_an_error_with_a_remedy() -> None:
    X, y, _ = correlated()
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    frame.loc[31, "v"] = np.nan
    shrunken = GenerativeClassifier({("u", "v"): Gaussian(shrinkage="ledoit-wolf")}, estimation="mle")
    with pytest.raises(InputError, match=r"Column 'v', row 31: nan is missing.*\. Use .*Gaussian\('diagonal'\)"):
        shrunken.partial_fit(frame, y)
    GenerativeClassifier({("u", "v"): Gaussian("diagonal")}).partial_fit(frame, y)
    GenerativeClassifier({("u", "v"): Gaussian()}).partial_fit(frame, y)


MISSING_COLUMNS = [[], [0], [1], [2], [0, 2], [1, 2], [0, 1]]


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_a_joint_block_has_the_normal_density_of_the_observed_values(shared: bool) -> None:
    X, y, groups = correlated()
    model = GenerativeClassifier(Gaussian(shared=shared), estimation="mle").fit(X, y)
    within = np.vstack([group - group.mean(axis=0) for group in groups])
    for missing in MISSING_COLUMNS:
        rows, seen = X[::7].copy(), np.setdiff1d(np.arange(3), missing)
        rows[:, missing] = np.nan
        expected = np.empty((len(rows), 3))
        for k, group in enumerate(groups):
            matrix = (within.T @ within / len(X)) if shared else np.cov(group.T, bias=True)
            law = stats.multivariate_normal(group.mean(axis=0)[seen], matrix[np.ix_(seen, seen)])
            expected[:, k] = law.logpdf(rows[:, seen]) + np.log(len(group) / len(X))
        assert_allclose(model.log_joint(rows), expected, rtol=1e-10)
        assert_allclose(model.predict_log_proba(rows), log_softmax(expected, axis=1), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.usefixtures("pure_models")
def test_a_joint_block_has_the_student_density_of_the_observed_values(shared: bool) -> None:
    X, y, groups = correlated()
    family = Gaussian(shared=shared, prior=NormalInverseWishart.reference())
    model = GenerativeClassifier(family, class_prior="uniform").fit(X, y)
    within = np.vstack([group - group.mean(axis=0) for group in groups])
    for missing in MISSING_COLUMNS:
        rows, seen = X[::7].copy(), np.setdiff1d(np.arange(3), missing)
        rows[:, missing] = np.nan
        expected = np.empty((len(rows), 3))
        for k, group in enumerate(groups):
            n = len(group)
            degrees = len(X) - 3 - 3 + 1 if shared else n - 3
            scatter = within.T @ within if shared else (n - 1) * np.cov(group.T)
            matrix = scatter * (1.0 + 1.0 / n) / degrees
            law = stats.multivariate_t(group.mean(axis=0)[seen], matrix[np.ix_(seen, seen)], df=degrees)
            expected[:, k] = law.logpdf(rows[:, seen]) + np.log(1.0 / 3.0)
        assert_allclose(model.log_joint(rows), expected, rtol=1e-10)
        assert_allclose(model.predict_log_proba(rows), log_softmax(expected, axis=1), rtol=1e-9, atol=1e-10)


UNOBSERVED: dict[str, tuple[Any, list[Any]]] = {
    "Bernoulli": (Bernoulli(), [1, 0, 1, 0]),
    "Beta": (Beta(), [0.1, 0.4, 0.3, 0.7]),
    "Categorical": (Categorical(), ["u", "v", "v", "u"]),
    "Exponential": (Exponential(), [0.5, 2.0, 3.0, 0.1]),
    "Gamma": (Gamma(), [0.5, 2.0, 3.0, 0.1]),
    "Gamma of a given shape": (Gamma(2.0), [0.5, 2.0, 3.0, 0.1]),
    "Gaussian": (Gaussian("diagonal"), [0.5, -2.0, 3.0, 0.1]),
    "Gaussian, shared": (Gaussian("diagonal", shared=True), [0.5, -2.0, 3.0, 0.1]),
    "Geometric": (Geometric(), [1, 0, 5, 2]),
    "LogNormal": (LogNormal(), [0.5, 2.0, 3.0, 0.1]),
    "NegativeBinomial": (NegativeBinomial(2.0), [1, 0, 5, 2]),
    "Poisson": (Poisson(), [1, 0, 5, 2]),
    "VonMises": (VonMises(24), [1.0, 23.0, 5.0, 2.0]),
}


@both_models
@pytest.mark.parametrize("kind", UNOBSERVED)
def test_a_class_without_a_value_in_a_column_needs_a_prior(kind: str, model: Any) -> None:
    family, values = UNOBSERVED[kind]
    frame = pl.DataFrame({"test": [*values, None, None], "age": [1.5, 2.5, 3.5, 4.5, 5.5, 9.5]}, strict=False)
    y = ["a", "a", "b", "b", "late", "late"]
    families = {"test": family, "age": Gaussian("diagonal", shared=True)}
    for estimation in ("bayes", "map"):
        fitted = model(families, estimation=estimation).fit(frame, y)
        assert np.all(np.isfinite(fitted.log_joint(frame)))
        assert_allclose(fitted.predict_proba(frame).sum(axis=1), 1.0, rtol=1e-12)
    with pytest.raises(NotEstimableError, match=r"Column 'test' .*class 'late'.*estimation='bayes'"):
        model(families, estimation="mle").fit(frame, y)


# ------------------------------------------------------------------------------------------------------- extremes


@both_models
def test_rows_that_no_class_can_have_get_the_class_prior_with_a_warning(model: Any) -> None:
    X = pd.DataFrame({"u": ["p", "p", "q", "q", "q"], "v": ["r", "r", "s", "s", "s"]})
    y = ["a", "a", "b", "b", "b"]
    fitted = model(estimation="mle").fit(X, y)
    new = pd.DataFrame({"u": ["p", "p", "q"], "v": ["r", "s", "r"]})
    assert_array_equal(fitted.log_joint(new)[1:], -np.inf)
    assert_array_equal(fitted.log_density(new)[1:], -np.inf)
    for question in (fitted.predict, fitted.predict_proba, fitted.predict_log_proba, fitted.decision_function):
        with pytest.warns(ImpossibleRowsWarning, match=r"2 rows have probability 0 .*first: row 1.*estimation='map'"):
            question(new)
    with pytest.warns(ImpossibleRowsWarning):
        assert_allclose(fitted.predict_proba(new), [[1.0, 0.0], [0.4, 0.6], [0.4, 0.6]], rtol=1e-14)
    assert np.all(np.isfinite(model(estimation="map").fit(X, y).log_joint(new)))


def test_counts_that_no_class_can_have_get_the_class_prior_with_a_warning() -> None:
    X, y = np.array([[3, 0], [2, 0], [0, 4], [0, 1]]), [0, 0, 1, 1]
    new = np.array([[3, 5], [0, 4]])
    for family in (Poisson(), Multinomial(), Geometric(), NegativeBinomial(2.0)):
        for pack in (np.asarray, scipy.sparse.csr_array):
            model = NaiveBayes(family, estimation="mle").fit(pack(X), y)
            with pytest.warns(ImpossibleRowsWarning, match="1 row has probability 0 .*first: row 0"):
                posterior = model.predict_proba(pack(new))
            assert_allclose(posterior, [[0.5, 0.5], [0.0, 1.0]], rtol=1e-14)


def test_twenty_thousand_columns_have_exact_posteriors_in_log_space() -> None:
    rng, d = np.random.default_rng(6), 20_000
    y = np.arange(12) % 3
    rates = rng.gamma(2.0, 2.0, (3, d))
    X = rng.poisson(rates[y])
    model = NaiveBayes(Poisson(), class_prior=[0.2, 0.3, 0.5]).fit(X, y)
    new = rng.poisson(rates[[0, 1, 2, 0, 1]])
    overall = X.mean(axis=0)
    during = 0.5 / np.where(overall > 0.0, overall, 1.0)
    informative = X.std(axis=0) > 0.0
    joint = np.log([[0.2, 0.3, 0.5]]) * np.ones((5, 1))
    for k in range(3):
        events, exposure = X[y == k].sum(axis=0) + 0.5, 4.0 + during
        terms = gammaln(new + events) - gammaln(events) - gammaln(new + 1.0)
        terms += events * np.log(exposure / (1.0 + exposure)) - new * np.log1p(exposure)
        joint[:, k] += terms[:, informative].sum(axis=1)
    assert joint.max() < -20_000.0
    assert_allclose(model.log_joint(new), joint, rtol=1e-11)
    expected = joint - logsumexp(joint, axis=1, keepdims=True)
    assert expected.min() < -1000.0
    assert_allclose(model.predict_log_proba(new), expected, rtol=0, atol=1e-11 * np.abs(joint).max())
    assert_array_equal(model.predict(new), [0, 1, 2, 0, 1])


@pytest.mark.usefixtures("pure_models")
def test_thousands_of_columns_of_mixed_kinds_have_the_posteriors_of_their_joint() -> None:
    rng, d = np.random.default_rng(7), 500
    y = np.arange(30) % 3
    X = pl.DataFrame(
        {f"normal {j}": column for j, column in enumerate(rng.normal(0.05 * y, 1.0, (d, 30)))}
        | {f"count {j}": column for j, column in enumerate(rng.poisson(3.0 + 0.1 * y, (d, 30)))}
        | {f"flag {j}": column for j, column in enumerate(rng.random((d, 30)) < 0.5)}
        | {f"share {j}": column for j, column in enumerate(rng.random((d, 30)))}
    )
    model = NaiveBayes().fit(X, y)
    joint = model.log_joint(X[:3])
    assert_allclose(model.predict_log_proba(X[:3]), log_softmax(joint, axis=1), rtol=0, atol=1e-8)
    assert_allclose(model.predict_proba(X[:3]).sum(axis=1), 1.0, rtol=1e-12)


def test_counts_in_the_trillions_have_exact_log_odds() -> None:
    base, step = 10**12, 2 * 10**6
    X = np.array([[base - 10], [base + 10], [base + step - 10], [base + step + 10]])
    model = NaiveBayes(Poisson(), class_prior="uniform", estimation="mle").fit(X, [0, 0, 1, 1])
    new = np.array([[base], [base + step // 2], [base + step // 2 + 7], [base + step]])
    with localcontext() as context:
        context.prec = 60
        low, high = Decimal(base), Decimal(base + step)
        odds = [float(Decimal(int(x)) * (high / low).ln() - (high - low)) for (x,) in new]
    assert_allclose(model.decision_function(new), odds, rtol=0, atol=2e-3)
    for estimation in ("map", "bayes"):
        for family in (Poisson(), Geometric(), NegativeBinomial(3.0), Multinomial()):
            other = NaiveBayes(family, class_prior="uniform", estimation=estimation).fit(X, [0, 0, 1, 1])
            assert np.all(np.isfinite(other.log_joint(new)))
            assert_allclose(other.predict_proba(new).sum(axis=1), 1.0, rtol=1e-12)


def test_a_large_count_of_a_vector_keeps_its_log_odds() -> None:
    X, y = np.array([[10**12, 10**12 + 4], [3 * 10**12, 10**12]]), ["a", "b"]
    model = NaiveBayes(Multinomial(), class_prior="uniform", estimation="mle").fit(X, y)
    new = np.array([[1, 0], [0, 1], [500, 499], [10**12, 0]])
    first, second = np.log(X / X.sum(axis=1, keepdims=True))
    assert_allclose(model.decision_function(new), new @ (second - first), rtol=1e-12)


@pytest.mark.parametrize(
    ("family", "d"),
    [(Multinomial(), 1_000_000), (None, 100_000), pytest.param(None, 1_000_000, marks=pytest.mark.long)],
    ids=str,
)
def test_up_to_a_million_sparse_columns_are_learnt_and_answered(family: Any, d: int) -> None:
    rng, n, each = np.random.default_rng(8), 60, 40
    y = np.arange(n) % 2
    columns = rng.integers(0, d // 2, (n, each)) + (d // 2) * y[:, None]
    columns[:, :5] = np.arange(5) + 100 * y[:, None]
    X = scipy.sparse.csr_array((np.ones(n * each), columns.ravel(), np.arange(0, n * each + 1, each)), shape=(n, d))
    X.sum_duplicates()
    X.data[:] = 1.0
    model = NaiveBayes(family).fit(X, y)
    posterior = model.predict_proba(X)
    assert_array_equal(posterior.argmax(axis=1), y)
    assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-12)
    if family is None:
        assert {type(one).__name__ for one in model.families_.values()} == {"Bernoulli"}


def test_sparse_and_dense_tables_give_the_same_model() -> None:
    rng = np.random.default_rng(9)
    y = np.arange(50) % 2
    X = rng.poisson(0.3 + 0.4 * y[:, None], (50, 30))
    for family in (Bernoulli(), Poisson(), Multinomial(), Geometric(), NegativeBinomial(2.0), Gaussian("diagonal")):
        table = np.minimum(X, 1) if isinstance(family, Bernoulli) else X
        dense = NaiveBayes(family).fit(table, y)
        for kind in (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array, scipy.sparse.csr_matrix):
            sparse = NaiveBayes(family).fit(kind(table), y)
            assert_allclose(sparse.predict_proba(kind(table)), dense.predict_proba(table), rtol=0, atol=1e-12)
            assert_allclose(sparse.log_joint(kind(table)), dense.log_joint(table), rtol=1e-12)


@pytest.mark.parametrize("family", [Poisson(), Multinomial(), Geometric(), NegativeBinomial(2.0)], ids=str)
def test_a_negative_count_of_a_sparse_table_is_named_by_row_and_column(family: Any) -> None:
    dense = np.zeros((40, 300), dtype=np.int64)
    dense[np.arange(40), np.arange(40)] = 2
    good = scipy.sparse.csr_array(dense)
    dense[17, 211] = -3
    bad = scipy.sparse.csr_array(dense)
    y = np.arange(40) % 2
    words = r"Column 'x211', row 17: -3 is not a count"
    with pytest.raises(InputError, match=words):
        NaiveBayes(family).fit(bad, y)
    model = NaiveBayes(family).fit(good, y)
    for question in (model.predict, model.predict_proba, model.log_joint, model.explain):
        with pytest.raises(InputError, match=words):
            question(bad)


# ------------------------------------------------------------------------------------------------------- summaries


def test_the_summary_shows_what_was_chosen() -> None:
    cells, y = patients()
    model = NaiveBayes().fit(as_polars(cells), y)
    summary = model.summary()
    shown = {column: block.family for block in summary.blocks for column in block.columns}
    assert {name: family.split(",")[0] for name, family in shown.items()} == FAMILIES_OF_PATIENTS
    assert [(c.label, c.rows) for c in summary.classes] == [("healthy", 30), ("ill", 30), ("unsure", 30)]
    text = str(summary)
    for words in ("NaiveBayes, estimation='bayes'", "Poisson: 'visits'", "Bernoulli: 'smoker'", "'town', 'grade'"):
        assert words in text
    assert names_of_families(model) == FAMILIES_OF_PATIENTS


@pytest.mark.usefixtures("pure_models")
def test_continuous_columns_vary_together_in_a_generative_classifier() -> None:
    X, y, _ = correlated()
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(flag=np.arange(50) % 2 == 0, incomplete=X[:, 0])
    frame.loc[3, "incomplete"] = np.nan
    model = GenerativeClassifier().fit(frame, y)
    blocks = {block.columns: block.family for block in model.summary().blocks}
    assert blocks[("u", "v", "w", "incomplete")] == "Gaussian, full covariance, pooled over classes"
    assert blocks[("flag",)] == "Bernoulli"
    assert names_of_families(model)["u"] == "Gaussian"


def test_declared_families_are_shown_beside_the_chosen_ones() -> None:
    cells, y = patients()
    families = {"visits": NegativeBinomial(2.0), "rooms": Poisson()}
    model = NaiveBayes(families).fit(as_pandas(cells), y)
    assert names_of_families(model) == {**FAMILIES_OF_PATIENTS, "visits": "NegativeBinomial", "rooms": "Poisson"}
    assert "NegativeBinomial, dispersion 2: 'visits'" in str(model.summary())


def test_a_constant_column_is_noted_and_contributes_nothing() -> None:
    cells, y = patients()
    frame = as_pandas(cells)
    wide = frame.assign(year=2026, unit="kg", ratio=0.5, empty=np.nan)
    model, other = NaiveBayes().fit(frame, y), NaiveBayes().fit(wide, y)
    assert_allclose(other.predict_proba(wide), model.predict_proba(frame), rtol=0, atol=1e-12)
    aside = other.summary().decisions[-1]
    reasons = {"year": "constant", "unit": "constant", "ratio": "constant", "empty": "no values"}
    assert all(f"{name!r} ({reason})" in aside for name, reason in reasons.items())


def test_rows_drawn_from_a_mixed_model_have_the_columns_of_the_table() -> None:
    cells, y = patients()
    for library in ("pandas", "Polars", "Arrow"):
        model = NaiveBayes().fit(LIBRARIES[library](cells), y)
        drawn, labels = model.sample(300, random_state=1)
        again = NaiveBayes({"rooms": Categorical()}).fit(drawn, labels)
        assert set(names_of_families(again)) == set(cells)
        assert set(labels) == {"healthy", "ill", "unsure"}
        assert model.predict_proba(drawn).shape == (300, 3)
