"""Columns of every type of pandas, Polars and Arrow: samples and imputed tables are tables that the model accepts."""

import decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from likely import (
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
    Poisson,
    QuadraticDiscriminant,
    VonMises,
)
from likely.errors import InputError

VALUES: dict[str, list[Any]] = {
    "integers": [0, 1, None, 2] * 8,
    "floats": [0.5, 1.25, None, 2.0, 3.3, 8.1, -1.0, 2.2] * 4,
    "booleans": [True, False, None, True] * 8,
    "text": ["a", "b", None, "c"] * 8,
    "large integers": [2**60, 2**60 + 1, None, 2**60 + 2] * 8,
}
Y = [0, 1] * 16


def tables() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, values in VALUES.items():
        kind = pa.array(values).type
        found[f"polars {name}"] = pl.DataFrame({"a": values})
        found[f"arrow {name}"] = pa.table({"a": values})
        found[f"arrow dictionary of {name}"] = pa.table({"a": pa.array(values).dictionary_encode()})
        found[f"pandas objects, {name}"] = pd.DataFrame({"a": pd.Series(values, dtype=object)})
        found[f"pandas categories, {name}"] = pd.DataFrame({"a": pd.Categorical(values)})
        found[f"pandas with Arrow's {name}"] = pd.DataFrame({"a": pd.Series(values, dtype=pd.ArrowDtype(kind))})
        dictionary = pd.ArrowDtype(pa.dictionary(pa.int8(), kind))
        found[f"pandas with Arrow's dictionary of {name}"] = pd.DataFrame({"a": pd.Series(values, dtype=dictionary)})
    whole = VALUES["integers"]
    for each in (pl.Int8, pl.UInt8, pl.UInt64, pl.Int128):
        found[f"polars {each}"] = pl.DataFrame({"a": pl.Series(whole, dtype=each)})
    found["polars integers beyond 64 bits"] = pl.DataFrame({"a": pl.Series([2**70, 2**70 + 5, None, 3] * 8)})
    for nullable in ("Int8", "UInt64", "boolean"):
        values = VALUES["booleans"] if nullable == "boolean" else whole
        found[f"pandas {nullable}"] = pd.DataFrame({"a": pd.Series(values, dtype=nullable)})
    found["polars Enum"] = pl.DataFrame({"a": pl.Series(VALUES["text"], dtype=pl.Enum(["c", "a", "b"]))})
    found["pandas lone surrogates"] = pd.DataFrame(
        {"a": pd.Series(["\ud800", "b", None, "c"] * 8, dtype=object), "b": np.arange(32) / 7.0}
    )
    found["pandas ordered"] = pd.DataFrame({"a": pd.Categorical([1, 2, None, 3] * 8, [3, 2, 1], ordered=True)})
    indices = pa.array([0, 1, None, 1] * 8, type=pa.int8())
    found["arrow ordered"] = pa.table({"a": pa.DictionaryArray.from_arrays(indices, ["x", "y"], ordered=True)})
    found["polars Decimal"] = pl.DataFrame(
        {"a": [None if x is None else decimal.Decimal(str(x)) for x in VALUES["floats"]]}
    )
    return found


TABLES = tables()
FLOATS = ("floats", "Decimal")


def kinds(frame: Any) -> str:
    return str(frame.schema if hasattr(frame, "schema") else dict(frame.dtypes))


def nulls(frame: Any) -> int:
    if isinstance(frame, pa.Table):
        return sum(column.null_count for column in frame.columns)
    return int(frame.isna().sum().sum() if isinstance(frame, pd.DataFrame) else sum(frame.null_count().row(0)))


@pytest.mark.parametrize("families", [None, {"a": Categorical()}], ids=["chosen", "categorical"])
@pytest.mark.parametrize("name", TABLES)
def test_samples_and_imputed_tables_have_the_types_of_the_table(name: str, families: Any) -> None:
    table = TABLES[name]
    model = NaiveBayes(families).fit(table, Y)
    drawn, labels = model.sample(20, random_state=0)
    filled = model.impute(table)
    assert nulls(filled) == 0
    for made in (drawn, filled):
        assert type(made) is type(table)
        if not any(word in name for word in FLOATS):  # other floats may become float64
            assert kinds(made) == kinds(table)
        assert model.predict_proba(made).shape == (20 if made is drawn else 32, 2)
    assert set(labels) <= {0, 1}


def test_integers_of_128_bits_are_integers() -> None:
    wide = pl.DataFrame({"a": pl.Series(range(32), dtype=pl.Int128)})
    narrow = wide.cast(pl.Int64)
    model = GenerativeClassifier().fit(wide, Y)
    assert np.array_equal(model.predict_proba(wide), GenerativeClassifier().fit(narrow, Y).predict_proba(narrow))


SUPPORTED: dict[Any, Any] = {
    Gamma(): np.random.default_rng(0).gamma(2.0, size=32),
    LogNormal(): np.random.default_rng(0).gamma(2.0, size=32),
    Exponential(): np.random.default_rng(0).gamma(2.0, size=32),
    Beta(): np.random.default_rng(0).beta(2.0, 2.0, size=32),
    VonMises(): np.random.default_rng(0).normal(size=32),
    Poisson(): np.random.default_rng(0).poisson(2.0, size=32),
    NegativeBinomial(): np.random.default_rng(0).poisson(2.0, size=32),
    Geometric(): np.random.default_rng(0).poisson(2.0, size=32),
    Gaussian(): np.random.default_rng(0).normal(size=32),
}


@pytest.mark.parametrize("estimation", ["map", "bayes"])
@pytest.mark.parametrize("family", SUPPORTED, ids=repr)
def test_a_column_without_any_value_is_sampled_within_the_support(family: Any, estimation: str) -> None:
    X = np.column_stack([SUPPORTED[family], np.full(32, np.nan)])
    model = NaiveBayes(family, estimation=estimation).fit(X, Y)
    drawn, _ = model.sample(10, random_state=0)
    assert np.isfinite(model.predict_proba(drawn)).all()
    assert np.isfinite(model.impute(X)).all()


def test_an_error_of_impute_names_the_column() -> None:
    model = NaiveBayes(Multinomial()).fit([[1, 2], [2, 1], [3, 0], [0, 3]], [0, 1, 0, 1])
    with pytest.raises(InputError, match="Column 'x1', row 2: nan is missing"):
        model.impute(np.array([[1, 2], [1, 2], [1, np.nan]]))


# Options of families and methods.

A = np.random.default_rng(0).normal(size=(40, 3))
LABELS = np.array(["a", "b"] * 20)


@pytest.mark.parametrize("groups", [["a", "b"], ["a"], {"a", "b"}, {"a": ["a", "b"]}, "ab", 3, np.array(["a", "b"])])
def test_groups_that_are_no_lists_of_classes_are_an_error(groups: Any) -> None:
    with pytest.raises(InputError, match=r"groups=.* must be a list of groups of classes, \[\['a', 'b'\]\]"):
        QuadraticDiscriminant(groups=groups).fit(A, LABELS)
    with pytest.raises(InputError, match=r"shared=.* groups of classes"):
        GenerativeClassifier(Gaussian(shared=groups)).fit(A, LABELS)


def test_groups_are_any_sequences_of_classes() -> None:
    one = QuadraticDiscriminant(groups=[["a", "b"]]).fit(A, LABELS).predict_proba(A)
    several: list[Any] = [[("a", "b")], [np.array(["a", "b"])], np.array([["a", "b"]]), (["b", "a"],)]
    for groups in several:
        assert np.array_equal(QuadraticDiscriminant(groups=groups).fit(A, LABELS).predict_proba(A), one)
    pairs = np.empty(40, dtype=object)
    pairs[:] = [(1, 2), (3, 4)] * 20
    grouped = QuadraticDiscriminant(groups=[[(1, 2), (3, 4)]]).fit(A, pairs)
    assert np.array_equal(grouped.predict_proba(A), one)


def test_categories_are_declared_by_the_number_of_a_column() -> None:
    X, y = np.array([[0, 1], [1, 0], [2, 1], [0, 0]]), [0, 1, 0, 1]
    by_name = NaiveBayes({0: Categorical(categories={"x0": [0, 1, 2, 7]})}).fit(X, y).predict_proba(X)
    for families in (
        {0: Categorical(categories={0: [0, 1, 2, 7]})},
        {"x0": Categorical(categories={0: [0, 1, 2, 7]})},
        {0: Categorical(categories=[7])},
    ):
        assert np.array_equal(NaiveBayes(families).fit(X, y).predict_proba(X), by_name)
    frame = pd.DataFrame(X)  # columns named 0 and 1
    assert np.array_equal(NaiveBayes({0: Categorical(categories={0: [7]})}).fit(frame, y).predict_proba(frame), by_name)
    with pytest.raises(InputError, match="categories names column 5, which is not in X: 'x0', 'x1'"):
        NaiveBayes({0: Categorical(categories={5: [7]})}).fit(X, y)


@pytest.mark.parametrize("options", [{"max_iter": 0}, {"max_iter": 1.5}, {"tol": np.nan}, {"tol": -1.0}, {"tol": "a"}])
def test_prior_shifts_need_valid_options(options: Any) -> None:
    (name,) = options
    with pytest.raises(InputError, match=f"{name}=.* must be a .*number"):
        NaiveBayes().fit(A, LABELS).adapt_prior(A, **options)


# Numbers as text, and the reverse.


@pytest.mark.parametrize("known", ["numbers", "text"])
def test_numbers_and_their_text_are_the_same_categories(known: str) -> None:
    numbers = pd.DataFrame({"code": [0, 1, 2] * 20, "x": np.random.default_rng(0).normal(size=60)})
    text = numbers.assign(code=numbers["code"].astype(str))
    train, asked = (numbers, text) if known == "numbers" else (text, numbers)
    model = NaiveBayes({"code": Categorical()}).fit(train, [0, 0, 1] * 20)
    for method in ("predict", "predict_proba", "log_density"):
        np.testing.assert_array_equal(getattr(model, method)(asked), getattr(model, method)(train))
