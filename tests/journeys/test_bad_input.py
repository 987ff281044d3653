"""What cannot be used is refused: the error says what, where and what to do, and nothing is fitted.

Every refusal is checked twice: a fresh estimator stays unfitted, and one that was fitted before keeps what
it had learnt.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from likely import (
    Dirichlet,
    Gaussian,
    GenerativeClassifier,
    LinearDiscriminant,
    NaiveBayes,
    NearestPrototype,
    NormalInverseWishart,
    QuadraticDiscriminant,
    Regularized,
)

Floats = NDArray[np.float64]
Model = Any

MIXED: list[Any] = [GenerativeClassifier, NaiveBayes]
ESTIMATORS: list[Any] = [LinearDiscriminant, QuadraticDiscriminant, NearestPrototype, *MIXED]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


class Rows(NamedTuple):
    X: Floats
    y: NDArray[Any]


def penguins() -> Rows:
    """Two classes of three columns, ten rows each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) + np.repeat([0.0, 3.0], 10)[:, None]
    return Rows(X, np.repeat(np.array(["adelie", "gentoo"]), 10))


def named(X: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=["bill", "flipper", "mass"])


def learnt(model: Model) -> dict[str, Any]:
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


FITTED: dict[Any, Model] = {estimator: estimator().fit(*penguins()) for estimator in ESTIMATORS}


def message_of(action: Callable[[], Any], words: tuple[str, ...], error: Any = ValueError) -> str:
    """The text of the error, which contains all these words."""
    with pytest.raises(error) as caught:
        action()
    text = str(caught.value)
    for word in words:
        assert word.lower() in text.lower(), f"{word!r} is not in: {text}"
    return text


def refuses(model: Model, X: Any, y: Any, *words: str, error: Any = ValueError, sample_weight: Any = None) -> None:
    """fit fails with these words; a fresh estimator stays unfitted, a fitted one keeps what it learnt."""
    message_of(lambda: model.fit(X, y, sample_weight=sample_weight), words, error)
    assert learnt(model) == {}
    again = copy.copy(FITTED[type(model)])
    before = learnt(again)
    again.set_params(**model.get_params(deep=False))
    message_of(lambda: again.fit(X, y, sample_weight=sample_weight), words, error)
    after = learnt(again)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)


def refuses_options(model: Model, *words: str, error: Any = ValueError) -> None:
    """fit on good data fails with these words because of an option."""
    refuses(model, *penguins(), *words, error=error)


# ----------------------------------------------------------------------------------------------- tables

_X, _Y = penguins()


def _with_cell(value: Any, row: int = 7, column: int = 1) -> Floats:
    X = _X.copy()
    X[row, column] = value
    return X


def _objects_with(value: Any, rows: int = 1) -> NDArray[Any]:
    X = _X.astype(object)
    X[7 : 7 + rows, 1] = value
    return X


class Refusal(NamedTuple):
    X: Any
    words: tuple[str, ...]
    error: Any = ValueError


BAD_TABLES: dict[str, Refusal] = {
    "no rows": Refusal(np.empty((0, 3)), ("0 sample(s)",)),
    "no columns": Refusal(np.empty((20, 0)), ("0 feature(s)",)),
    "an empty list": Refusal([], ("",)),
    "an empty frame": Refusal(pd.DataFrame(), ("no columns",)),
    "a frame without rows": Refusal(named(np.empty((0, 3))), ("no rows",)),
    "a Polars frame without rows": Refusal(pl.DataFrame({"bill": []}, schema={"bill": pl.Float64}), ("no rows",)),
    "a Polars frame without columns": Refusal(pl.DataFrame(), ("no columns",)),
    "ragged rows": Refusal(
        [[1.0, 2.0]] * 19 + [[1.0]], ("X, row 19 has 1 entry", "row 0 has 2 entries", "None or NaN")
    ),
    "ragged tuples of text": Refusal([("a", 2.0)] * 19 + [("a", 2.0, 3.0)], ("row 19 has 3 entries", "row 0 has 2")),
    "a number among rows": Refusal([[1.0, 2.0]] * 19 + [3.0], ("row 19 is a single value", "row 0 has 2 entries")),
    "a list in a cell": Refusal([[1.0, 2.0]] * 19 + [[1.0, [2.0, 3.0]]], ("row 19, column 1", "2 entries")),
    "one dimension": Refusal(_X[:, 0], ("2D array", "1D array")),
    "three dimensions": Refusal(_X[:, :, None], ("dim 3",)),
    "a scalar": Refusal(np.float64(3.0), ("2D array",)),
    "None": Refusal(None, ("",)),
    "text": Refusal("penguins.csv", ("",)),
    "a series": Refusal(pd.Series(_X[:, 0]), ("2-dimensional", "series")),
    "a sparse matrix": Refusal(scipy.sparse.csr_array(_X), ("sparse",), TypeError),
    "complex numbers": Refusal(_X + 1j, ("complex",)),
    "a complex column of a frame": Refusal(named(_X).assign(bill=_X[:, 0] + 1j), ("'bill'", "neither numeric")),
    "complex objects": Refusal(_objects_with(1j), ("row 7", "1j")),
    "infinity": Refusal(_with_cell(np.inf), ("row 7", "x1", "inf")),
    "minus infinity": Refusal(_with_cell(-np.inf), ("row 7", "x1", "-inf")),
    "infinity in float32": Refusal(_with_cell(np.inf).astype(np.float32), ("row 7", "x1", "inf")),
    "infinity in a frame": Refusal(named(_with_cell(np.inf)), ("row 7", "'flipper'", "inf")),
    "infinity in a Polars frame": Refusal(
        pl.DataFrame(_with_cell(np.inf), schema=["bill", "flipper", "mass"]), ("row 7", "'flipper'", "inf")
    ),
    "text cells": Refusal(_objects_with("heavy", 2), ("row 7", "'heavy'", "not a number")),
    "a text array": Refusal(np.full((20, 2), "heavy"), ("row 0", "not a number")),
    "a text column": Refusal(named(_X).assign(island="Biscoe"), ("'island'", "not a number", "encode")),
    "a categorical column": Refusal(
        named(_X).assign(island=pd.Categorical(["Biscoe", "Dream"] * 10)), ("'island'", "encode")
    ),
    "a duration column": Refusal(named(_X).assign(age=pd.Timedelta(days=1)), ("'age'", "duration")),
    "a list column of Polars": Refusal(pl.DataFrame({"bill": _X[:, 0], "parts": [[1.0]] * 20}), ("'parts'",)),
    "an array of dates": Refusal(np.full((20, 2), np.datetime64("2026-11-01")), ("datetime64", "not numbers")),
    "an array of durations": Refusal(np.full((20, 2), np.timedelta64(1, "D")), ("timedelta64", "not numbers")),
    "an array of records": Refusal(
        np.zeros((20, 2), dtype=[("u", float), ("v", float)]), ("",), (ValueError, TypeError)
    ),
    "objects that are no numbers": Refusal(_objects_with({"a": 1}), ("row 7", "not a number"), TypeError),
    "duplicate column names": Refusal(pd.DataFrame(_X, columns=["bill", "mass", "bill"]), ("'bill'",)),
    "names of mixed types": Refusal(pd.DataFrame(_X, columns=["bill", 1, 2.5]), ("name",), TypeError),
    "names that become the same": Refusal(pd.DataFrame(_X, columns=[1, "1", 2]), ("",), (ValueError, TypeError)),
}


# What the discriminants refuse and a model with a family for each column takes: labels, sparse rows.
MIXED_TABLES = [*(name for name in BAD_TABLES if "text " in name), "a sparse matrix", "a categorical column"]


INCOMPLETE: dict[str, Any] = {
    "NaN": _with_cell(np.nan),
    "NaN in a frame": named(_with_cell(np.nan)),
    "None among objects": _objects_with(None),
    "NA among objects": _objects_with(pd.NA),
    "NA in nullable integers": named(np.rint(_X)).astype("Int64").mask(np.isnan(_with_cell(np.nan))),
    "NA in nullable booleans": named(_X > 0.0).astype("boolean").mask(np.isnan(_with_cell(np.nan))),
    "null in a Polars frame": pl.DataFrame(
        {"bill": _X[:, 0], "flipper": [*_X[:7, 1].tolist(), None, *_X[8:, 1].tolist()]}
    ),
    "a masked cell": np.ma.masked_array(_X, mask=np.isnan(_with_cell(np.nan))),
    "a column all missing": named(_X).assign(flipper=np.nan),
}


@every_estimator
@pytest.mark.parametrize("table", INCOMPLETE)
def test_missing_cells_are_learnt_from_and_judged(table: str, estimator: Any) -> None:
    model = estimator(estimation="bayes").fit(INCOMPLETE[table], _Y)
    posterior = model.predict_proba(INCOMPLETE[table])
    assert np.all(np.isfinite(posterior))
    assert np.mean(model.predict(INCOMPLETE[table]) == _Y) > 0.8


@every_estimator
@pytest.mark.parametrize("table", BAD_TABLES)
def test_a_table_that_cannot_be_used_is_refused_and_nothing_is_fitted(table: str, estimator: Any) -> None:
    X, words, error = BAD_TABLES[table]
    if estimator in MIXED and table in MIXED_TABLES:
        assert estimator().fit(X, _Y).predict(X).shape == (20,)
    else:
        refuses(estimator(), X, _Y, *words, error=error)


@pytest.mark.parametrize("row", [0, 1500, 5999])
@pytest.mark.parametrize("value", [-np.inf, np.inf])
@pytest.mark.parametrize(
    "kind", [LinearDiscriminant, QuadraticDiscriminant, partial(GenerativeClassifier, Gaussian(shared=True))]
)
def test_the_row_is_right_in_any_block_of_a_long_table(kind: Any, value: float, row: int) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(6000, 128)), np.repeat([0, 1], 3000)
    X[row, 77] = value
    message_of(lambda: kind().fit(X, y), (f"row {row}:", "'x77'"))
    message_of(lambda: kind().fit(X, y, sample_weight=np.repeat([1.0, 0.5], 3000)), (f"row {row}:", "'x77'"))


def test_the_row_is_right_among_rows_of_weight_zero() -> None:
    weights = np.ones(20)
    weights[:5] = 0.0
    message_of(lambda: LinearDiscriminant().fit(_with_cell(np.inf), _Y, sample_weight=weights), ("row 7", "x1"))


def test_the_column_is_right_in_every_block_of_columns() -> None:
    model = GenerativeClassifier({"mass": Gaussian(), ("flipper", "bill"): Gaussian()})
    refuses(model, named(_with_cell(np.inf)), _Y, "row 7", "'flipper'")
    shrunken = GenerativeClassifier({("flipper", "bill"): Gaussian(shrinkage="ledoit-wolf")}, estimation="mle")
    words = ("row 7", "'flipper'", "missing", "diagonal")
    message_of(lambda: shrunken.partial_fit(named(_with_cell(np.nan)), _Y), words)
    message_of(lambda: GenerativeClassifier({2: Gaussian()}).fit(_with_cell(np.inf), _Y), ("row 7", "'x1'"))


# ----------------------------------------------------------------------------------------------- labels


class BadLabels(NamedTuple):
    y: Any
    words: tuple[str, ...]
    error: Any = ValueError


def _labels_with(value: Any) -> NDArray[Any]:
    y = _Y.astype(object)
    y[4] = value
    return y


_LISTS = np.empty(20, dtype=object)
_LISTS[:] = [["a"], ["b", "c"]] * 10

BAD_LABELS: dict[str, BadLabels] = {
    "none at all": BadLabels(None, ("requires y",)),
    "too few": BadLabels(_Y[:-1], ("20 rows", "19 labels", "inconsistent")),
    "too many": BadLabels(np.append(_Y, "gentoo"), ("20 rows", "21 labels")),
    "empty": BadLabels([], ("20 rows", "0 labels")),
    "all None": BadLabels([None] * 20, ("No row has a label", "MixtureModel")),
    "all NaN": BadLabels(np.full(20, np.nan), ("No row has a label", "MixtureModel")),
    "all NaN among objects": BadLabels(np.full(20, np.nan, dtype=object), ("No row has a label", "MixtureModel")),
    "all null in pandas": BadLabels(pd.Series([None] * 20, dtype="string"), ("No row has a label",)),
    "all null in Polars": BadLabels(pl.Series([None] * 20, dtype=pl.String), ("No row has a label",)),
    "infinite": BadLabels([0.0] * 4 + [np.inf] + [1.0] * 15, ("row 4", "inf")),
    "continuous": BadLabels(np.linspace(0.0, 1.0, 20), ("continuous", "row 1")),
    "continuous in float32": BadLabels(np.linspace(0.0, 1.0, 20, dtype=np.float32), ("continuous", "row 1")),
    "continuous objects": BadLabels(np.linspace(0.0, 1.0, 20).astype(object), ("continuous",)),
    "continuous and whole objects": BadLabels(np.array([0.5, 1] * 10, dtype=object), ("continuous",)),
    "complex": BadLabels(np.repeat([1j, 2.0], 10), ("complex",)),
    "two-dimensional": BadLabels(np.column_stack([_Y, _Y]), ("1d array",)),
    "one-hot": BadLabels(np.eye(2)[np.repeat([0, 1], 10)], ("1d array",)),
    "a frame of two columns": BadLabels(pd.DataFrame({"u": _Y, "v": _Y}), ("1d array",)),
    "of mixed types in a list": BadLabels(["a", 1] * 10, ("mixed", "'int'", "'str'", "text")),
    "of mixed types among objects": BadLabels(np.array(["a", 1] * 10, dtype=object), ("mixed", "'int'", "'str'")),
    "text and booleans": BadLabels(["a", True] * 10, ("mixed", "'bool'", "'str'")),
    "text and bytes": BadLabels(np.array(["a", b"a"] * 10, dtype=object), ("mixed", "'bytes'", "'str'")),
    "ragged": BadLabels([["a"], ["a", "b"]] * 10, ("label", "ragged")),
    "lists": BadLabels(_LISTS, ("label",)),
    "dictionaries": BadLabels(np.array([{"a": 1}, {"b": 2}] * 10, dtype=object), ("label", "text or numbers")),
    "dates": BadLabels(np.repeat(np.array(["2026-11-01", "2026-11-02"], dtype="datetime64[D]"), 10), ("label", "date")),
    "a scalar": BadLabels(3, ("1d array",)),
    "one text beside an array": BadLabels("species", ("",)),
    "a dictionary": BadLabels({"a": 1}, ("",)),
}


SOME_MISSING: dict[str, Any] = {
    "one None": _labels_with(None),
    "one NaN among text": _labels_with(float("nan")),
    "one NA among text": _labels_with(pd.NA),
    "one NaT among text": _labels_with(pd.NaT),
    "one NaN among numbers": [0.0] * 4 + [np.nan] + [0.0] * 5 + [1.0] * 10,
    "one NA among nullable integers": pd.Series([0] * 4 + [None] + [0] * 5 + [1] * 10, dtype="Int64"),
    "one missing category": pd.Series(pd.Categorical(_labels_with(None))),
    "one missing category outside a series": pd.Categorical(_labels_with(None)),
    "one null in Polars": pl.Series([*_Y[:4].tolist(), None, *_Y[5:].tolist()]),
    "a masked label": np.ma.masked_array(np.repeat([0, 1], 10), mask=np.arange(20) == 4),
}


@every_estimator
@pytest.mark.parametrize("labels", SOME_MISSING)
def test_a_row_without_a_label_is_learnt_from_and_refused_where_sums_are_needed(labels: str, estimator: Any) -> None:
    model = estimator()
    model.unlabeled_weight = 1.0  # no parameter of the discriminants, which always choose it
    model.fit(_X, SOME_MISSING[labels])
    assert model.statistics_.counts.weight.sum() == pytest.approx(20.0)
    assert len(model.classes_) == 2
    assert (model.predict(_X)[:10] == model.classes_[0]).all()
    message_of(lambda: estimator().partial_fit(_X, SOME_MISSING[labels]), ("row 4", "label is missing"))
    message_of(lambda: model.partial_fit(_X, np.repeat(model.classes_, 10)), ("expectations, not sums",))
    message_of(lambda: model.forget(_X, np.repeat(model.classes_, 10)), ("expectations, not sums",))
    message_of(lambda: model.left_out_proba(_X, np.repeat(model.classes_, 10)), ("expectations, not sums",))
    message_of(lambda: model + model, ("expectations, not sums",))


@every_estimator
def test_a_chosen_weight_of_unlabeled_rows_is_in_the_sums_and_0_allows_updates(estimator: Any) -> None:
    labels, labeled = _labels_with(None), np.arange(20) != 4
    model = estimator().fit(_X, labels)
    assert model.statistics_.counts.weight.sum() == pytest.approx(19.0 + model.unlabeled_weight_)
    if model.unlabeled_weight_ > 0.0:
        message_of(lambda: model.partial_fit(_X, _Y), ("expectations, not sums",))
        return
    alone = estimator().fit(_X[labeled], _Y[labeled])
    assert_allclose(model.log_joint(_X), alone.log_joint(_X))
    assert_allclose(
        model.partial_fit(_X[4:5], _Y[4:5]).log_joint(_X), alone.partial_fit(_X[4:5], _Y[4:5]).log_joint(_X)
    )
    assert model.statistics_.counts.weight.sum() == pytest.approx(20.0)


@every_estimator
@pytest.mark.parametrize("labels", BAD_LABELS)
def test_labels_that_cannot_be_used_are_refused_and_nothing_is_fitted(labels: str, estimator: Any) -> None:
    y, words, error = BAD_LABELS[labels]
    refuses(estimator(), _X, y, *words, error=error)


@every_estimator
def test_a_list_of_tuples_is_two_dimensional_labels(estimator: Any) -> None:
    refuses(estimator(), _X, [("a", 1), ("b", 2)] * 10, "1d array")


@every_estimator
def test_the_name_of_a_target_that_is_not_a_column_is_refused_with_the_names_that_are(estimator: Any) -> None:
    refuses(estimator(), named(_X), "species", "'species'", "'bill'", "'flipper'", "'mass'")


# ---------------------------------------------------------------------------------------------- weights


def _weights_with(value: float) -> Floats:
    weights = np.ones(20)
    weights[3] = value
    return weights


BAD_WEIGHTS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "negative": (_weights_with(-0.5), ("row 3", "-0.5", "negative")),
    "NaN": (_weights_with(np.nan), ("row 3", "nan")),
    "infinite": (_weights_with(np.inf), ("row 3", "inf")),
    "all zero": (np.zeros(20), ("zero", "sample_weight")),
    "a scalar zero": (0.0, ("zero",)),
    "too few": (np.ones(19), ("(19,)", "20 rows")),
    "too many": (np.ones(21), ("(21,)", "20 rows")),
    "two-dimensional": (np.ones((20, 2)), ("(20, 2)", "20 rows")),
    "a column": (np.ones((20, 1)), ("(20, 1)",)),
    "text": (["heavy"] * 20, ("sample_weight", "numbers")),
    "one word": ("balanced", ("sample_weight", "numbers")),
    "a mapping": ({"adelie": 2.0}, ("sample_weight",)),
    "complex": (np.full(20, 1.0 + 1.0j), ("sample_weight", "numbers")),
    "missing": (pd.Series([1.0] * 3 + [None] + [1.0] * 16, dtype="Float64"), ("sample_weight",)),
    "masked": (np.ma.masked_array(np.ones(20), mask=np.arange(20) == 3), ("sample_weight", "row 3")),
    "too large to add up": (np.full(20, 1e308), ("sample_weight",)),
}


@every_estimator
@pytest.mark.parametrize("weights", BAD_WEIGHTS)
def test_weights_that_cannot_be_used_are_refused_and_nothing_is_fitted(weights: str, estimator: Any) -> None:
    value, words = BAD_WEIGHTS[weights]
    refuses(estimator(), _X, _Y, *words, sample_weight=value)


# ----------------------------------------------------------------------------------------- class priors

BAD_PRIORS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "too large a sum": ([0.5, 0.6], ("class_prior", "1.1", "sum")),
    "too small a sum": ([0.1, 0.1], ("class_prior", "0.2", "sum")),
    "a mapping with a wrong sum": ({"adelie": 0.5, "gentoo": 0.1}, ("class_prior", "0.6", "sum")),
    "all zero": ([0.0, 0.0], ("class_prior", "sum")),
    "negative": ([-0.5, 1.5], ("class_prior", "-0.5")),
    "NaN": ([np.nan, 1.0], ("class_prior", "nan")),
    "infinite": ([np.inf, 0.0], ("class_prior", "inf")),
    "too few": ([1.0], ("class_prior", "2 classes", "'adelie'", "'gentoo'")),
    "too many": ([0.2, 0.3, 0.5], ("class_prior", "2 classes", "'adelie'", "'gentoo'")),
    "empty": ([], ("class_prior", "2 classes")),
    "a number": (0.5, ("class_prior", "2 classes")),
    "two-dimensional": ([[0.5, 0.5]], ("class_prior", "(1, 2)")),
    "an unknown word": ("balanced", ("class_prior", "'balanced'", "'uniform'")),
    "a mapping that lacks a class": ({"adelie": 1.0}, ("class_prior", "'gentoo'")),
    "an empty mapping": ({}, ("class_prior", "'adelie'", "'gentoo'")),
    "text probabilities": (["half", "half"], ("class_prior",)),
    "a mapping to text": ({"adelie": "half", "gentoo": "half"}, ("class_prior", "'half'")),
    "a mapping to None": ({"adelie": None, "gentoo": 1.0}, ("class_prior",)),
    "labels of another type": ({0: 0.5, 1: 0.5}, ("class_prior", "'adelie'")),
    "a set": ({0.25, 0.75}, ("class_prior",)),
}


@every_estimator
@pytest.mark.parametrize("prior", BAD_PRIORS)
def test_a_class_prior_that_cannot_be_used_is_refused_and_nothing_is_fitted(prior: str, estimator: Any) -> None:
    value, words = BAD_PRIORS[prior]
    refuses(estimator(class_prior=value), _X, _Y, *words)


@every_estimator
@pytest.mark.parametrize("prior", BAD_PRIORS)
def test_with_prior_refuses_what_fit_refuses_and_leaves_the_model_alone(prior: str, estimator: Any) -> None:
    value, words = BAD_PRIORS[prior]
    model = copy.copy(FITTED[estimator])
    before = learnt(model)
    message_of(lambda: model.with_prior(value), words)
    assert all(learnt(model)[name] is before[name] for name in before)


@every_estimator
def test_with_prior_refuses_a_class_that_the_model_does_not_know(estimator: Any) -> None:
    model = estimator().fit(_X, _Y)
    prior = {"adelie": 0.4, "gentoo": 0.4, "chinstrap": 0.2}
    message_of(lambda: model.with_prior(prior), ("class_prior", "'chinstrap'", "'adelie'", "'gentoo'"))


@pytest.mark.parametrize(
    ("alpha", "words"),
    [
        pytest.param(0.0, ("alpha", "positive"), id="zero"),
        pytest.param(-1.0, ("alpha", "positive"), id="negative"),
        pytest.param(np.nan, ("alpha", "positive"), id="NaN"),
        pytest.param(np.inf, ("alpha", "finite"), id="infinite"),
        pytest.param("many", ("alpha", "'many'"), id="text"),
        pytest.param([1.0, 2.0], ("alpha",), id="a list"),
        pytest.param({"adelie": 1.0}, ("alpha", "'gentoo'"), id="a class is lacking"),
        pytest.param({"adelie": 1.0, "gentoo": "two"}, ("alpha", "'two'"), id="a mapping to text"),
    ],
)
def test_a_dirichlet_that_cannot_be_used_is_refused(alpha: Any, words: tuple[str, ...]) -> None:
    for estimation in ("bayes", "map"):
        refuses_options(LinearDiscriminant(class_prior=Dirichlet(alpha), estimation=estimation), *words)


def test_a_dirichlet_that_names_a_class_without_rows_declares_it_as_a_mapping_does() -> None:
    alpha = {"adelie": 1.0, "gentoo": 1.0, "chinstrap": 1.0}
    model = LinearDiscriminant(class_prior=Dirichlet(alpha), estimation="bayes").fit(_X, _Y)
    assert model.classes_.tolist() == ["adelie", "chinstrap", "gentoo"]


def test_a_dirichlet_needs_an_estimation_that_has_priors() -> None:
    refuses_options(LinearDiscriminant(class_prior=Dirichlet(1.0)), "Dirichlet", "'map'", "'bayes'")


def test_a_prior_in_a_series_is_read_by_its_labels() -> None:
    shares = pd.Series({"gentoo": 0.9, "adelie": 0.1})
    model = LinearDiscriminant(class_prior=shares).fit(_X, _Y)
    assert_array_equal(model.class_prior_, [0.1, 0.9])


# ---------------------------------------------------------------------------------------------- options


@every_estimator
@pytest.mark.parametrize("word", ["MLE", "ml", "", None, 1, ["mle"]])
def test_an_unknown_estimation_is_refused_with_the_known_words(estimator: Any, word: Any) -> None:
    refuses_options(estimator(estimation=word), "estimation", repr(word), "'mle'", "'map'", "'bayes'")


@pytest.mark.parametrize("estimator", [LinearDiscriminant, QuadraticDiscriminant, NearestPrototype])
@pytest.mark.parametrize("word", ["Full", "tied", "", None, 1, ["full"]])
def test_an_unknown_covariance_is_refused_with_the_known_words(estimator: Any, word: Any) -> None:
    known = ("'full'", "'diagonal'", "'spherical'", "'identity'")
    refuses_options(estimator(covariance=word), "covariance", repr(word), *known)
    refuses_options(GenerativeClassifier(Gaussian(word)), "covariance", repr(word), *known)


@pytest.mark.parametrize("estimator", [LinearDiscriminant, QuadraticDiscriminant])
@pytest.mark.parametrize(
    ("shrinkage", "words"),
    [
        ("auto", ("shrinkage", "'auto'", "'ledoit-wolf'", "'oas'")),
        (1.5, ("shrinkage", "1.5", "0 to 1")),
        (-0.1, ("shrinkage", "-0.1", "0 to 1")),
        (np.nan, ("shrinkage", "nan", "0 to 1")),
        (True, ("shrinkage", "True")),
        ([0.1], ("shrinkage", "[0.1]")),
        (Regularized(pooling=2.0), ("pooling", "2.0", "0 to 1")),
        (Regularized(sphering="much"), ("sphering", "'much'", "0 to 1")),  # type: ignore[arg-type]
        (Regularized, ("shrinkage",)),
    ],
)
def test_an_unknown_shrinkage_is_refused_with_what_is_known(
    estimator: Any, shrinkage: Any, words: tuple[str, ...]
) -> None:
    refuses_options(estimator(shrinkage=shrinkage), *words)


@pytest.mark.parametrize("estimation", ["bayes", "map"])
@pytest.mark.parametrize("estimator", [LinearDiscriminant, QuadraticDiscriminant, NearestPrototype])
def test_options_of_maximum_likelihood_are_refused_where_a_prior_does_their_work(
    estimator: Any, estimation: str
) -> None:
    refuses_options(estimator("full", estimation=estimation, shrinkage=0.1), "shrinkage", "'mle'", estimation)
    refuses_options(estimator("full", estimation=estimation, unbiased=True), "unbiased", "'mle'", estimation)
    refuses_options(estimator(prior=NormalInverseWishart()), "prior", "'bayes'", "'map'")


@pytest.mark.parametrize("estimator", [LinearDiscriminant, QuadraticDiscriminant, NearestPrototype])
def test_options_of_the_wrong_kind_are_refused(estimator: Any) -> None:
    refuses_options(estimator("full", unbiased="yes"), "unbiased", "'yes'")
    refuses_options(estimator(prior="weak", estimation="bayes"), "prior", "'weak'", "NormalInverseWishart")
    refuses_options(estimator(prior=NormalInverseWishart, estimation="bayes"), "prior", "NormalInverseWishart")
    refuses_options(estimator(covariance="diagonal", shrinkage="ledoit-wolf"), "'ledoit-wolf'", "'full'", "'diagonal'")


@pytest.mark.parametrize("count", [0, -1, 1.5, "two", True])
def test_a_number_of_components_that_is_none_is_refused(count: Any) -> None:
    refuses_options(LinearDiscriminant(n_components=count), "n_components", repr(count))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        pytest.param([["adelie", "chinstrap"]], ("'chinstrap'", "'adelie'", "'gentoo'"), id="an unknown class"),
        pytest.param([["adelie"], ["adelie", "gentoo"]], ("twice",), id="a class in two groups"),
        pytest.param([["adelie", "adelie"]], ("twice",), id="a class twice"),
        pytest.param("adelie", ("'adelie'", "groups"), id="text"),
        pytest.param(True, ("groups", "True"), id="True"),
        pytest.param(3, ("3", "groups"), id="a number"),
        pytest.param([1, 2], ("groups",), id="numbers in the place of groups"),
        pytest.param([[0, 1]], ("0", "'adelie'"), id="labels of another type"),
        pytest.param([[["adelie"]]], ("groups",), id="nested too deeply"),
    ],
)
def test_groups_that_cannot_be_used_are_refused(groups: Any, words: tuple[str, ...]) -> None:
    for estimation in ("mle", "map", "bayes"):
        refuses_options(QuadraticDiscriminant(groups=groups, estimation=estimation), *words)
    for shrinkage in ("ledoit-wolf", "oas"):
        refuses_options(QuadraticDiscriminant(groups=groups, shrinkage=shrinkage), *words)


@pytest.mark.parametrize(
    ("families", "words"),
    [
        pytest.param("gaussian", ("families", "'gaussian'"), id="text"),
        pytest.param(Gaussian, ("families",), id="a class in the place of an object"),
        pytest.param([Gaussian()], ("families",), id="a list"),
        pytest.param({"bill": "gaussian"}, ("families", "'bill'", "not a family"), id="a word for a family"),
        pytest.param({"beak": Gaussian()}, ("'beak'", "'bill'", "'flipper'", "'mass'"), id="an unknown column"),
        pytest.param({3: Gaussian()}, ("3", "'bill'"), id="a number beyond the columns"),
        pytest.param({-1: Gaussian()}, ("-1", "'bill'"), id="a negative number"),
        pytest.param({("bill", "bill"): Gaussian()}, ("'bill'",), id="a column twice in a block"),
        pytest.param({"bill": Gaussian(), ("bill", "mass"): Gaussian()}, ("'bill'",), id="a column in two blocks"),
        pytest.param({"bill": Gaussian(), 0: Gaussian()}, ("0",), id="a column by name and by number"),
        pytest.param({(): Gaussian()}, ("no column",), id="an empty block"),
        pytest.param({None: Gaussian()}, ("None", "'bill'"), id="None for a column"),
    ],
)
def test_families_that_cannot_be_used_are_refused(families: Any, words: tuple[str, ...]) -> None:
    refuses(GenerativeClassifier(families), named(_X), _Y, *words)


def test_a_column_of_a_frame_with_numbers_for_names_is_found_by_its_name() -> None:
    frame = pd.DataFrame(_X, columns=[5, 6, 7])
    model = GenerativeClassifier({6: Gaussian()}).fit(frame, _Y)
    plain = GenerativeClassifier({1: Gaussian()}).fit(_X, _Y)
    assert_allclose(model.predict_proba(frame), plain.predict_proba(_X), rtol=1e-12)


def test_groups_may_be_an_array() -> None:
    y = np.append(_Y, ["chinstrap"] * 10)
    X = np.vstack([_X, _X[:10] + 5.0])
    model = QuadraticDiscriminant(groups=np.array([["adelie", "gentoo"]])).fit(X, y)  # type: ignore[arg-type]
    plain = QuadraticDiscriminant(groups=[["adelie", "gentoo"]]).fit(X, y)
    assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert "adelie" in str(model.summary())


def test_the_remedies_of_an_error_are_not_those_already_taken() -> None:
    X = np.repeat([[0.0, 1.0], [2.0, 5.0]], 10, axis=0)
    text = message_of(lambda: LinearDiscriminant(shrinkage=0.1).fit(X, _Y), ("every class", "estimation='bayes'"))
    assert "shrinkage=0.1" not in text


@pytest.mark.parametrize("estimation", ["bayes", "map"])
@pytest.mark.parametrize(
    ("prior", "words"),
    [
        pytest.param(NormalInverseWishart(mean=[0.0, 1.0]), ("mean", "3 finite numbers"), id="too short a mean"),
        pytest.param(NormalInverseWishart(mean=np.zeros((3, 1))), ("mean", "3 finite numbers"), id="a matrix as mean"),
        pytest.param(NormalInverseWishart(mean=[0.0, np.nan, 1.0]), ("mean", "finite"), id="NaN in the mean"),
        pytest.param(NormalInverseWishart(mean="zero"), ("mean", "'zero'"), id="text as mean"),
        pytest.param(NormalInverseWishart(mean_rows=-1.0), ("mean_rows", "-1.0"), id="negative rows"),
        pytest.param(NormalInverseWishart(mean_rows=np.nan), ("mean_rows", "nan"), id="NaN rows"),
        pytest.param(NormalInverseWishart(mean_rows="few"), ("mean_rows", "'few'"), id="text as rows"),
        pytest.param(NormalInverseWishart(degrees=-2.0), ("degrees", "-2.0"), id="negative degrees"),
        pytest.param(NormalInverseWishart(degrees=np.inf), ("degrees", "inf"), id="infinite degrees"),
        pytest.param(NormalInverseWishart(degrees=[3.0]), ("degrees", "[3.0]"), id="a list of degrees"),  # type: ignore[arg-type]
        pytest.param(NormalInverseWishart(scale=[1.0, 2.0]), ("scale", "3 x 3"), id="too short a scale"),
        pytest.param(NormalInverseWishart(scale=np.eye(2)), ("scale", "3 x 3"), id="too small a scale"),
        pytest.param(NormalInverseWishart(scale=np.ones((3, 1))), ("scale", "3 x 3"), id="a column as scale"),
        pytest.param(NormalInverseWishart(scale=[1.0, 2.0, -1.0]), ("scale", "positive"), id="a negative scale"),
        pytest.param(NormalInverseWishart(scale=-1.0), ("scale", "positive"), id="a negative number as scale"),
        pytest.param(
            NormalInverseWishart(scale=np.triu(np.ones((3, 3)))), ("scale", "symmetric"), id="an asymmetric scale"
        ),
        pytest.param(NormalInverseWishart(scale=np.full((3, 3), np.nan)), ("scale", "finite"), id="NaN in the scale"),
        pytest.param(NormalInverseWishart(scale="unit"), ("scale", "'unit'"), id="text as scale"),
    ],
)
def test_a_prior_that_cannot_be_used_is_refused(prior: Any, words: tuple[str, ...], estimation: str) -> None:
    for model in (
        LinearDiscriminant(prior=prior, estimation=estimation),
        QuadraticDiscriminant("diagonal", prior=prior, estimation=estimation),
        GenerativeClassifier(Gaussian(prior=prior), estimation=estimation),
    ):
        refuses_options(model, *words)


# --------------------------------------------------------------------------------------- before the fit

QUESTIONS: dict[str, Callable[[Model], Any]] = {
    "predict": lambda model: model.predict(_X),
    "predict_proba": lambda model: model.predict_proba(_X),
    "predict_log_proba": lambda model: model.predict_log_proba(_X),
    "log_joint": lambda model: model.log_joint(_X),
    "log_density": lambda model: model.log_density(_X),
    "score_samples": lambda model: model.score_samples(_X),
    "score": lambda model: model.score(_X, _Y),
    "decision_function": lambda model: model.decision_function(_X),
    "decide": lambda model: model.decide(_X),
    "explain": lambda model: model.explain(_X),
    "sample": lambda model: model.sample(3),
    "with_prior": lambda model: model.with_prior("uniform"),
    "boundary": lambda model: model.boundary("adelie", "gentoo"),
    "summary": lambda model: model.summary(),
}


@every_estimator
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_before_the_fit_is_refused(question: str, estimator: Any) -> None:
    model = estimator()
    message_of(lambda: QUESTIONS[question](model), ("not fitted", "'fit'"), NotFittedError)


@pytest.mark.parametrize("attribute", ["coef_", "intercept_", "means_", "covariance_", "scalings_", "classes_"])
def test_what_a_fit_learns_is_not_there_before_it(attribute: str) -> None:
    assert not hasattr(LinearDiscriminant(), attribute)
    message_of(lambda: LinearDiscriminant().transform(_X), ("not fitted",), NotFittedError)


# ---------------------------------------------------------------------------------------- rows to judge

FRAME_QUESTIONS = [name for name in QUESTIONS if name not in ("score", "sample", "with_prior", "boundary", "summary")]


@every_estimator
@pytest.mark.parametrize("question", FRAME_QUESTIONS)
@pytest.mark.parametrize("estimation", ["mle", "bayes"])
def test_rows_that_cannot_be_judged_are_refused(estimator: Any, question: str, estimation: str) -> None:
    model = estimator(estimation=estimation).fit(_X, _Y)
    before = learnt(model)
    ask = getattr(model, question)
    message_of(lambda: ask(_X[:, :2]), ("2 features", "3 features"))
    message_of(lambda: ask(np.column_stack([_X, _X])), ("6 features", "3 features"))
    message_of(lambda: ask(_X[0]), ("2D array",))
    message_of(lambda: ask(_X[:0]), ("0 sample(s)",))
    message_of(lambda: ask(_X + 1j), ("complex",))
    if estimator not in MIXED:
        message_of(lambda: ask(scipy.sparse.csr_array(_X)), ("sparse",), TypeError)
    message_of(lambda: ask(_with_cell(np.inf)), ("row 7", "x1", "inf"))
    message_of(lambda: ask(_with_cell(-np.inf)), ("row 7", "x1", "inf"))
    message_of(lambda: ask(_objects_with("heavy")), ("row 7", "'heavy'"))
    assert all(learnt(model)[name] is before[name] for name in before)


@every_estimator
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_with_other_columns_are_refused_with_their_names(estimator: Any, library: Any) -> None:
    data = {"bill": _X[:, 0], "flipper": _X[:, 1], "mass": _X[:, 2]}
    model = estimator().fit(library(data), _Y)
    message_of(lambda: model.predict(library({"bill": _X[:, 0], "flipper": _X[:, 1]})), ("mass",))
    assert_allclose(model.predict_proba(library({**data, "year": _X[:, 0]})), model.predict_proba(library(data)))
    message_of(lambda: model.predict(library({"bill": _X[:, 0], "wing": _X[:, 1], "mass": _X[:, 2]})), ("wing",))
    permuted = library(dict(reversed(data.items())))
    assert_allclose(model.predict_proba(permuted), model.predict_proba(library(data)))
    message_of(lambda: model.predict(library({**data, "mass": ["heavy"] * 20})), ("'mass'", "row 0", "not a number"))


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical", "identity"])
def test_an_infinite_cell_is_refused_even_in_a_column_without_variance(covariance: str, estimation: str) -> None:
    X = np.column_stack([_X, np.full(20, 4.0)])
    incomplete = X.copy()
    incomplete[7, 3] = np.inf
    for model in (
        LinearDiscriminant(covariance, estimation=estimation),
        QuadraticDiscriminant(covariance, estimation=estimation),
    ):
        model.fit(X, _Y)
        message_of(lambda ask=model.predict_proba: ask(incomplete), ("row 7", "x3"))  # type: ignore[misc]
        message_of(lambda ask=model.predict: ask(incomplete), ("row 7", "x3"))  # type: ignore[misc]


@pytest.mark.parametrize("estimation", ["mle", "bayes"])
def test_an_infinite_cell_is_refused_where_no_column_has_variance(estimation: str) -> None:
    model = LinearDiscriminant(estimation=estimation).fit(np.ones((20, 3)), _Y)
    message_of(lambda: model.predict_proba(_with_cell(np.inf)), ("row 7", "x1"))


@pytest.mark.parametrize("row", [0, 30_000, 69_999])
def test_the_row_to_judge_is_right_in_any_block(row: int) -> None:
    X = np.tile(_X, (3500, 1))
    X[row, 2] = np.inf
    for model in (LinearDiscriminant(), QuadraticDiscriminant(), GenerativeClassifier()):
        fitted = model.fit(_X, _Y)
        message_of(lambda ask=fitted.predict_proba: ask(X), (f"row {row}:", "'x2'"))  # type: ignore[misc]


# ---------------------------------------------------------------------------------- decisions, samples


BAD_LOSSES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "too few rows": ([[0.0, 1.0]], ("loss", "(1, 2)", "2 classes", "'adelie'", "'gentoo'")),
    "too many rows": (np.zeros((3, 2)), ("loss", "(3, 2)", "2 classes")),
    "no actions": (np.zeros((2, 0)), ("loss", "(2, 0)")),
    "one dimension": ([0.0, 1.0], ("loss", "(2,)")),
    "three dimensions": (np.zeros((2, 2, 2)), ("loss", "(2, 2, 2)")),
    "a number": (1.0, ("loss", "()")),
    "ragged": ([[0.0, 1.0], [1.0]], ("loss",)),
    "NaN": ([[0.0, np.nan], [1.0, 0.0]], ("loss", "finite")),
    "infinite": ([[0.0, np.inf], [1.0, 0.0]], ("loss", "finite")),
    "text": ([["low", "high"], ["high", "low"]], ("loss", "numbers")),
    "one word": ("zero-one", ("loss",)),
    "complex": (np.zeros((2, 2)) + 1j, ("loss", "numbers")),
    "a mapping that lacks a class": ({"adelie": {"keep": 0.0}}, ("loss", "'gentoo'")),
    "a mapping with an unknown class": (
        {"adelie": {"keep": 0.0}, "gentoo": {"keep": 1.0}, "emu": {"keep": 2.0}},
        ("loss", "'emu'"),
    ),
    "a mapping with other actions for a class": (
        {"adelie": {"keep": 0.0, "ring": 1.0}, "gentoo": {"keep": 1.0}},
        ("loss", "'gentoo'", "'ring'"),
    ),
    "a mapping without actions": ({"adelie": {}, "gentoo": {}}, ("loss", "actions")),
    "a mapping to numbers": ({"adelie": 0.0, "gentoo": 1.0}, ("loss",)),
    "a mapping to text": ({"adelie": {"keep": "low"}, "gentoo": {"keep": "high"}}, ("loss", "numbers")),
    "a frame with NaN": (pd.DataFrame({"keep": [0.0, np.nan]}, index=["adelie", "gentoo"]), ("loss", "finite")),
    "a frame without a class": (pd.DataFrame({"keep": [0.0]}, index=["adelie"]), ("loss", "'gentoo'")),
    "a frame with a class twice": (
        pd.DataFrame({"keep": [0.0, 1.0, 2.0]}, index=["adelie", "gentoo", "gentoo"]),
        ("loss", "'gentoo'"),
    ),
    "a frame with an action twice": (
        pd.DataFrame([[0.0, 1.0], [1.0, 0.0]], index=["adelie", "gentoo"], columns=["keep", "keep"]),
        ("loss", "'keep'"),
    ),
}


@every_estimator
@pytest.mark.parametrize("loss", BAD_LOSSES)
def test_losses_that_cannot_be_used_are_refused(loss: str, estimator: Any) -> None:
    value, words = BAD_LOSSES[loss]
    message_of(lambda: FITTED[estimator].decide(_X, loss=value), words)


@pytest.mark.parametrize("reject", [np.nan, np.inf, "never", [0.1], -np.inf])
def test_a_cost_of_rejection_that_is_no_number_is_refused(reject: Any) -> None:
    model = LinearDiscriminant().fit(_X, _Y)
    message_of(lambda: model.decide(_X, reject=reject), ("reject", repr(reject), "finite"))


@every_estimator
def test_samples_that_cannot_be_drawn_are_refused(estimator: Any) -> None:
    model = estimator().fit(_X, _Y)
    for count in (0, -1, 2.5, "many", None, np.nan):
        message_of(lambda count=count: model.sample(count), ("n_samples", repr(count)))  # type: ignore[misc]
    message_of(lambda: model.sample(3, label="emu"), ("'emu'", "'adelie'", "'gentoo'"))
    message_of(lambda: model.sample(3, label=0), ("0", "'adelie'", "'gentoo'"))
    message_of(lambda: model.sample(3, random_state="seed"), ("seed",))


def test_a_boundary_needs_two_known_classes_and_plugged_in_parameters() -> None:
    model = LinearDiscriminant().fit(_X, _Y)
    message_of(lambda: model.boundary("adelie", "emu"), ("'emu'", "'adelie'", "'gentoo'"))
    bayes = LinearDiscriminant(estimation="bayes").fit(_X, _Y)
    message_of(lambda: bayes.boundary("adelie", "gentoo"), ("'bayes'", "'mle'", "'map'"), AttributeError)
    assert not hasattr(bayes, "coef_")
