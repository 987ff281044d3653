"""Text columns: which columns are text, their evidence, updates, explanations and files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import likely
from likely import Bernoulli, Categorical, EvidenceClassifier, Gaussian, Multinomial, Text, TextClassifier
from likely.choice.column_types import text_columns
from likely.data.validation import read_table
from likely.errors import InputError, InputTypeError, ModelFileError
from likely.evidence.encoding import Encoding
from likely.evidence.rows import TrainingRows
from likely.evidence.text import FittedText, TextColumn, TextView
from likely.evidence.training import encoded
from likely.families.text.term_models import ScaledTerms
from likely.typing import AnyArray
from tests.unit.evidence.tables import distinct

COMMON = [
    "the",
    "a",
    "to",
    "of",
    "and",
    "it",
    "is",
    "was",
    "on",
    "at",
    "my",
    "for",
    "we",
    "i",
    "that",
    "with",
    "this",
    "are",
    "not",
    "have",
]
TOPICS = {
    "garden": ["rose", "soil", "water", "leaf", "seed", "plant", "sun", "rake", "tulip", "hedge"],
    "kitchen": ["oven", "salt", "butter", "bread", "pan", "stir", "bake", "water", "flour", "knife"],
    "road": ["car", "lane", "truck", "fuel", "brake", "turn", "signal", "wheel", "speed", "rain"],
}


def corpus(n: int = 150, seed: int = 0) -> tuple[pd.DataFrame, AnyArray]:
    """A text, a number and a category, all of which depend on the class, with missing values."""
    rng = np.random.default_rng(seed)
    y = np.array(list(TOPICS))[np.arange(n) % 3]
    texts = []
    for label in y:
        own = rng.choice(TOPICS[label], rng.integers(1, 3))
        texts.append(" ".join(rng.permutation([*rng.choice(COMMON, 6), *own])))
    X = pd.DataFrame({"note": texts, "size": rng.normal(size=n) + (y == "road")})
    X["colour"] = np.where(rng.random(n) < 0.4, y, rng.choice(["red", "blue"], n))
    X.loc[4, "note"] = None
    X.loc[5, "note"] = ""
    X.loc[6, ["size", "colour"]] = None
    return X, y


def small(views: Any = "auto") -> EvidenceClassifier:
    return EvidenceClassifier(views, n_trees=4)


def text_of(model: EvidenceClassifier) -> TextColumn:
    """The only text column of a model."""
    view = model.model_.views[-1].view
    assert isinstance(view, FittedText)
    return view.parts[0]


def training(X: Any, y: Any, weights: Any = None) -> tuple[TrainingRows, Encoding]:
    rows = distinct(X, y, weights)
    texts = text_columns(rows.rows, rows.weights)
    encoding = Encoding.of(rows.rows, rows.weights, range(rows.rows.width), texts)
    return encoded(rows, encoding), encoding


def fitted(rows: TrainingRows, encoding: Encoding) -> FittedText:
    view = TextView().fit(rows, encoding, 0)
    assert view is not None
    return view


SENTENCES = [f"this is sentence number {i}" for i in range(40)]
COLUMNS: list[tuple[str, list[Any], bool]] = [
    ("sentences", SENTENCES, True),
    ("with missing ones", [*SENTENCES[:20], *[None] * 20], True),
    ("one word each", [f"id-{i}" for i in range(40)], False),
    ("three words each", [f"first second {i}" for i in range(40)], False),
    ("four words each", [f"first second third {i}" for i in range(40)], True),
    ("half of them distinct", SENTENCES[:20] * 2, False),
    ("more than half distinct", [*SENTENCES[:21], *SENTENCES[:19]], True),
    ("always the same", [SENTENCES[0]] * 40, False),
    ("one value", [SENTENCES[0], *[None] * 39], False),
    ("text and numbers", [*SENTENCES[:39], 1], False),
    ("numbers", list(range(40)), False),
    ("nothing", [None] * 40, False),
]


@pytest.mark.parametrize(("values", "expected"), [each[1:] for each in COLUMNS], ids=[each[0] for each in COLUMNS])
def test_text_is_recognised_by_its_values(values: list[Any], expected: bool) -> None:
    table = read_table(pd.DataFrame({"x": np.arange(40.0), "column": pd.Series(values, dtype=object)}))
    assert text_columns(table, None).tolist() == ([1] if expected else [])


def test_a_weight_counts_as_so_many_equal_values() -> None:
    frame = pd.DataFrame({"column": SENTENCES})
    weights = np.where(np.arange(40) < 39, 1.0, 41.0)
    assert not len(text_columns(read_table(frame), weights))
    repeated = frame.loc[np.repeat(np.arange(40), weights.astype(int))]
    assert not len(text_columns(read_table(repeated), None))
    assert len(text_columns(read_table(frame), np.where(np.arange(40) < 10, 0.0, 1.0)))


def test_text_is_no_category_in_other_views() -> None:
    X, y = corpus()
    model = small().fit(X, y)
    assert model.model_.encoding.texts.tolist() == [0]
    terms = model.weights_.groupby("view")["term"].agg(list)
    assert terms["text"] == ["note"]
    assert terms["columns"] == terms["histogram"] == ["size", "colour"]
    assert "note" in model.summary().column_shares


def test_terms_are_the_evidence_of_a_text_classifier() -> None:
    X, y = corpus()
    rows, encoding = training(X, y)
    view = fitted(rows, encoding)
    assert view.term_columns == (0,)
    model = TextClassifier().fit(X["note"].tolist(), y)
    assert model.calibration_ is not None
    other, _ = corpus(40, seed=1)
    (terms,) = view.terms(encoding.encode(read_table(other)))
    log_odds = model.calibration_.exponent * (terms[1:] - terms[0]).T
    log_odds += (model.calibration_.intercepts - model.calibration_.intercepts[0])[1:]
    expected = model.predict_log_proba(other["note"].tolist())
    known = np.array([isinstance(note, str) and note != "" for note in other["note"]])
    assert_allclose(log_odds[known], (expected[:, 1:] - expected[:, :1])[known], rtol=0, atol=1e-9)
    assert_array_equal(terms[:, ~known], 0.0)


@pytest.mark.parametrize("weights", [None, 3.0])
def test_leave_one_out_removes_the_document_from_the_sums_of_its_class(weights: float | None) -> None:
    X, y = corpus(60)
    rows, encoding = training(X, y, None if weights is None else np.where(np.arange(60) % 4, 1.0, weights))
    view = fitted(rows, encoding)
    model = view.parts[0].fit.model
    assert isinstance(model, ScaledTerms)
    notes = [note if isinstance(note, str) else "" for note in X["note"].iloc[rows.positions]]
    counts = CountVectorizer(token_pattern=r"\w+|[!?$£€]").fit_transform(notes).toarray()
    x = np.log1p(counts)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
    if model.merged:
        rare = rows.weights @ counts <= 1.0
        x = np.column_stack([x[:, ~rare], x[:, rare].sum(axis=1)])
    total = rows.weights @ x
    pseudo = model.smoothing * np.count_nonzero(total) * total / total.sum()
    (found,) = view.left_out(rows)
    for i in range(len(rows)):
        left = rows.weights - np.where(np.arange(len(rows)) == i, 1.0, 0.0)
        sums = [(left * (rows.codes == k)) @ x + pseudo for k in range(3)]
        expected = [5.0 * np.sum(x[i] * np.log(each / each.sum() + (pseudo == 0.0))) for each in sums]
        assert_allclose(found[:, i] - found[:, i].mean(), expected - np.mean(expected), rtol=0, atol=1e-9)


def test_a_view_without_rows_is_that_of_the_others() -> None:
    X, y = corpus()
    rows, encoding = training(X, y)
    view = fitted(rows, encoding)
    some, rest = rows.take(np.arange(40)), rows.take(np.arange(40, len(rows)))
    assert_allclose(view.without(some, rest).terms(rows.rows), view.counted(rest).terms(rows.rows), rtol=0, atol=1e-9)
    both = view.counted(rest) + view.counted(some)
    assert_allclose(both.terms(rows.rows), view.terms(rows.rows), rtol=0, atol=1e-9)


def test_the_text_helps_beside_other_columns() -> None:
    X, y = corpus(300)
    other, truth = corpus(300, seed=1)
    model, without = small().fit(X, y), small().fit(X[["size", "colour"]], y)
    weight = model.weights_.set_index("view").loc["text", "weight"]
    assert weight > 0.1
    assert model.score(other, truth) > without.score(other[["size", "colour"]], truth) + 0.2


def test_all_frames_and_orders_give_the_same_model() -> None:
    X, y = corpus()
    expected = small().fit(X, y).predict_proba(X)
    data = {name: [None if pd.isna(value) else value for value in X[name]] for name in X}
    frames: list[Any] = [pl.DataFrame(data), pa.table(data), X.astype({"note": "string"})]
    for frame in frames:
        assert_allclose(small().fit(frame, y).predict_proba(frame), expected, rtol=0, atol=1e-9)
    order = np.random.default_rng(0).permutation(len(y))
    turned = X.iloc[order][["colour", "note", "size"]]
    assert_allclose(small().fit(turned, y[order]).predict_proba(X), expected, rtol=0, atol=1e-9)


def test_arrays_of_objects_have_text_too() -> None:
    X, y = corpus()
    array = X.to_numpy(dtype=object)
    model = small(["columns", "text"]).fit(array, y)
    frame = X.set_axis(model.model_.encoding.names, axis=1)
    expected = small(["columns", "text"]).fit(frame, y).predict_proba(frame)
    assert_allclose(model.predict_proba(array), expected, rtol=0, atol=1e-9)


def test_an_integer_weight_is_that_many_rows() -> None:
    X, y = corpus(90)
    weights = np.where(np.arange(90) % 10 == 0, 3, 1)
    index = np.repeat(np.arange(90), weights)
    weighted = small().fit(X, y, sample_weight=weights.astype(float))
    assert weighted.model_.encoding.texts.tolist() == [0]
    repeated = small().fit(X.iloc[index], y[index])
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("by", ["column", "view", "column and view"])
def test_explanations_add_up(by: str) -> None:
    X, y = corpus()
    model = small().fit(X, y)
    found = model.explain(X[:30], by=by)
    total = found.offset + found.evidence.sum(axis=2)
    assert_allclose(total - logsumexp(total, axis=1, keepdims=True), model.predict_log_proba(X[:30]), rtol=0, atol=1e-9)
    entry = {"column": "note", "view": "text", "column and view": "note (text)"}[by]
    text = found.evidence[:, :, found.columns.index(entry)]
    assert np.abs(text).max() > 1.0
    assert_array_equal(text[[4, 5]], 0.0)  # without a document


def test_updates_agree_and_learn_new_terms() -> None:
    X, y = corpus(240)
    more = X[120:].copy()
    more["note"] = [None if pd.isna(note) else f"{note} quark" for note in more["note"]]
    first = small().fit(X[:120], y[:120])
    added = copy.deepcopy(first).partial_fit(more, y[120:])
    assert "quark" in text_of(added).fit.vocabulary.terms
    both = first + small().fit(more, y[120:], structure_of=first)
    assert_allclose(both.predict_proba(X), added.predict_proba(X), rtol=0, atol=1e-9)
    again = added.forget(more, y[120:])
    assert_allclose(again.predict_proba(X), first.predict_proba(X), rtol=0, atol=1e-7)
    assert "quark" not in text_of(again).fit.vocabulary.terms


def test_rows_that_were_not_fitted_cannot_be_removed() -> None:
    X, y = corpus()
    model = small(["columns", "text"]).fit(X, y)
    before = model.predict_proba(X)
    foreign = X[:1].assign(note="an utterly unknown document here")
    with pytest.raises(InputError, match="column 'note': the document has terms"):
        model.forget(foreign, y[:1])
    assert_array_equal(model.predict_proba(X), before)


def test_one_of_equal_documents_can_be_removed() -> None:
    X, y = corpus(90)
    twice, labels = pd.concat([X, X[:9]]), np.concatenate([y, y[:9]])
    model = small(["columns", "text"]).fit(twice, labels)
    left = copy.deepcopy(model).forget(X[:9], y[:9])
    counted = small(["columns", "text"]).fit(X, y, structure_of=model)
    assert_allclose(left.predict_proba(X), counted.predict_proba(X), rtol=0, atol=1e-9)


def test_a_model_comes_back_from_its_file_and_goes_on_learning(tmp_path: Path) -> None:
    X, y = corpus(200)
    model = small().fit(X[:150], y[:150])
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    loaded.partial_fit(X[150:], y[150:])
    model.partial_fit(X[150:], y[150:])
    assert_allclose(loaded.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-12)


def test_a_file_with_another_text_column_is_refused(tmp_path: Path) -> None:
    X, y = corpus()
    model = small(["columns", "text"]).fit(X, y)
    object.__setattr__(text_of(model), "place", 1)
    model.save(tmp_path / "model.likely")
    with pytest.raises(ModelFileError):
        likely.load(tmp_path / "model.likely")


def test_documents_that_are_missing_or_unknown_have_no_evidence() -> None:
    X, y = corpus()
    model = small(["columns", "text"]).fit(X, y)
    expected = model.predict_proba(X[:5].assign(note=None))
    assert_allclose(model.predict_proba(X[:5].assign(note="")), expected)
    assert_allclose(model.predict_proba(X[:5].assign(note=np.nan)), expected)


def test_numbers_in_a_text_column_are_named() -> None:
    X, y = corpus()
    model = small(["columns", "text"]).fit(X, y)
    assert_allclose(model.predict_proba(X[:5].assign(note=7.0)), model.predict_proba(X[:5].assign(note="7")))
    mixed = X[:5].assign(note=pd.Series(["a text", 3, "b", "c", None], dtype=object))
    with pytest.raises(InputTypeError, match=r"Column 'note', row 1: 3 is of type int"):
        model.predict_proba(mixed)


def test_text_alone_names_the_remedy() -> None:
    X, y = corpus()
    with pytest.raises(InputError, match="TextClassifier"):
        small().fit(X[["note"]], y)


def test_two_text_columns_have_weights_of_their_own() -> None:
    X, y = corpus(200)
    rng = np.random.default_rng(2)
    X["noise"] = [" ".join(rng.choice(COMMON, 8)) for _ in y]
    X["marks"] = ["... !!! ... " * 3 + "." * i for i in range(len(y))]  # no terms but marks that all rows have
    X["dots"] = [". . . . " + "." * i for i in range(len(y))]  # no terms at all
    model = small().fit(X, y)
    weights = model.weights_[model.weights_["view"] == "text"].set_index("term")["weight"]
    assert set(weights.index) == {"note", "noise", "marks"}
    assert weights["note"] > weights["noise"]
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    "option",
    [
        Text(smoothing=0.5),
        Text(vectorizer=CountVectorizer(min_df=2)),
        Text(vectorizer=TfidfVectorizer()),
        Text(family=Multinomial(smoothing=1)),
        Text(family=Bernoulli()),
    ],
    ids=str,
)
def test_declared_text_has_its_options(option: Text, tmp_path: Path) -> None:
    X, y = corpus()
    model = EvidenceClassifier(n_trees=4, families={"note": option}).fit(X, y)
    column = text_of(model)
    assert type(column.fit.model) is type(option._model)
    if option.smoothing is not None:
        assert column.fit.model == option._model
    assert model.get_params()["families"] == {"note": option}
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert str(loaded.families) == str(model.families)
    expected = model.predict_proba(X)
    assert_allclose(model.partial_fit(X[:9], y[:9]).forget(X[:9], y[:9]).predict_proba(X), expected, atol=1e-9)


def test_short_strings_are_text_where_they_are_declared() -> None:
    X, y = corpus()
    X["word"] = [str(note).split(" ")[-1] for note in X["note"]]
    model = EvidenceClassifier(n_trees=4, families={"word": Text(), "note": None, "colour": None}).fit(X, y)
    assert model.model_.encoding.texts.tolist() == [list(X).index("word")]
    assert_allclose(model.predict_proba(X.assign(note="rose rose", colour="red")), model.predict_proba(X))
    assert model.generative_.families_["note"] is None


@pytest.mark.parametrize(
    ("families", "message"),
    [
        ({"size": Gaussian(components=2)}, r"families\['size'\]=Gaussian\(components=2\) is not supported"),
        ({("size", "colour"): Categorical()}, r"Declare single columns"),
        ({"colour": Multinomial()}, r"Declare single columns"),
        ({"note": Text(exponent=1.0)}, "learns the weight"),
        ({"nothing": Text()}, "not in X"),
        ({"note": Text}, r"families\['note'\]=Text is a class"),
        (Text(), "not a mapping"),
        ({"size": Text()}, "not text"),
    ],
)
def test_other_families_are_errors(families: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        EvidenceClassifier(n_trees=4, families=families).fit(*corpus())


def test_documents_of_unknown_terms_have_no_evidence_where_rare_terms_are_merged() -> None:
    X, y = corpus()
    model = EvidenceClassifier(n_trees=4, families={"note": Text(merge_rare=True)}).fit(X, y)
    assert text_of(model).fit.model.merged
    rows = X[:3]
    blank, unknown = (model.predict_proba(rows.assign(note=note)) for note in ("", "qqqq zzzz"))
    assert_allclose(unknown, blank)
