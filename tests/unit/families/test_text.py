"""`Text`: a text column beside others, against brute-force refits, the algebra of models, and TextClassifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

import likely
from likely import (
    Bernoulli,
    Categorical,
    GammaPrior,
    Gaussian,
    GenerativeClassifier,
    HybridClassifier,
    MixtureModel,
    Multinomial,
    NaiveBayes,
    Poisson,
    Text,
    TextClassifier,
    cross_validate,
)
from likely.choice.column_types import ColumnProfile
from likely.data.validation import read_table
from likely.errors import InputError, InputTypeError, NoDensityError

DATA = Path(__file__).parents[2] / "data" / "sms_spam.csv"
DECLARED = {
    "body": Text(smoothing=0.1, exponent=0.7),
    "length": Gaussian("diagonal"),
    "shout": Categorical(categories={"shout": ["no", "yes"]}),
}
MODELS = (None, Multinomial(smoothing=1), Bernoulli(smoothing=1), Poisson(exposure="row totals"))


@pytest.fixture(scope="module")
def sms() -> tuple[pd.DataFrame, Any]:
    table = pd.read_csv(DATA, keep_default_na=False, na_values=[""]).iloc[:600]
    columns = {
        "body": table["text"],
        "length": table["text"].str.len().astype(float),
        "shout": np.where(table["text"].str.contains("!"), "yes", "no"),
    }
    return pd.DataFrame(columns), table["label"].to_numpy()


def declared() -> GenerativeClassifier:
    return GenerativeClassifier(DECLARED, calibration=None)


def body(*documents: Any) -> pd.DataFrame:
    return pd.DataFrame({"body": pd.Series(documents, dtype=object)})


def test_text_is_recognised_and_improves_the_held_out_log_loss(sms: tuple[pd.DataFrame, Any]) -> None:
    X, y = sms
    model = GenerativeClassifier().fit(X, y)
    found = model.families_["body"]
    assert isinstance(found, Text)
    assert found.smoothing in (0.01, 0.1, 0.5, 1.0)
    assert found.exponent is not None
    assert 0.01 <= found.exponent <= 3.0
    record = next(choice for choice in model.choices_ if choice.columns == ("body",))
    assert record.family == found.describe() == min(record.log_loss, key=lambda name: record.log_loss[name] or 0.0)
    assert found.describe() in str(model.summary()).replace("\n    ", " ")
    with_text = cross_validate(GenerativeClassifier(), X, y, folds=3).log_loss
    without = cross_validate(GenerativeClassifier({"body": None}), X, y, folds=3).log_loss
    assert np.mean(with_text) < 0.5 * np.mean(without)


def test_one_word_per_row_is_an_identifier_and_not_text() -> None:
    X = pd.DataFrame({"name": [f"person{i}" for i in range(200)], "x": np.arange(200) % 7 / 7.0})
    X["title"] = [f"the long title of number {i}" for i in range(200)]
    model = NaiveBayes().fit(X, np.arange(200) % 2)
    assert model.families_["name"] is None
    assert isinstance(model.families_["title"], Text)


def test_profiles_of_chunks_add_up(sms: tuple[pd.DataFrame, Any]) -> None:
    X = sms[0]
    parts = [ColumnProfile.at(read_table(X[i : i + 150]), 0, None, frame=True) for i in range(0, 600, 150)]
    total = sum(parts[1:], start=parts[0])
    assert total.is_text
    assert total.words == sum(len(value.split()) for part in range(4) for value in set(X["body"][part * 150 :][:150]))


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_frames_of_all_libraries_have_the_same_probabilities(make: Any, sms: tuple[pd.DataFrame, Any]) -> None:
    X, y = sms
    expected = GenerativeClassifier().fit(X, y).predict_proba(X)
    assert_allclose(GenerativeClassifier().fit(make(X), y).predict_proba(make(X)), expected, rtol=1e-12)


@pytest.mark.parametrize("family", MODELS)
def test_a_text_column_alone_has_the_evidence_of_text_classifier(family: Any, sms: tuple[pd.DataFrame, Any]) -> None:
    X, y = sms
    option = Text(smoothing=0.1, exponent=1.0) if family is None else Text(family=family, exponent=1.0)
    model = NaiveBayes({"body": option}, calibration=None).fit(X[["body"]], y)
    expected = TextClassifier(family=family, calibration=None).fit(X["body"].tolist(), y)
    prior = expected.class_prior_
    assert_allclose(
        model.with_prior(prior).predict_log_proba(X[["body"]]),
        expected.predict_log_proba(X["body"].tolist()),
        atol=1e-9,
    )


@pytest.mark.parametrize(
    "family", [Multinomial(smoothing=1), Bernoulli(smoothing=1), Poisson("row totals", GammaPrior(0.5, 40.0))]
)
def test_left_out_probabilities_are_those_of_refits(family: Any, sms: tuple[pd.DataFrame, Any]) -> None:
    X, y = sms[0][["body"]][:40], sms[1][:40]
    terms = CountVectorizer(vocabulary=sorted(CountVectorizer().fit(X["body"]).vocabulary_))
    option = Text(vectorizer=terms, family=family, exponent=0.8)
    model = NaiveBayes({"body": option}, {"ham": 0.8, "spam": 0.2}, calibration=None).fit(X, y)
    found = model.left_out_proba(X, y)
    for i in [*np.flatnonzero(y == "spam").tolist()[:3], 0, 1, 39]:
        kept = np.arange(len(y)) != i
        refit = clone(model).fit(X[kept], y[kept])
        assert_allclose(found[i], refit.predict_proba(X[i : i + 1])[0], atol=1e-9)


def test_a_given_exponent_of_the_length_is_the_only_candidate(sms: tuple[pd.DataFrame, Any]) -> None:
    X, y = sms
    option = Text(family=Multinomial(smoothing=1), length_exponent=0.6)
    model = NaiveBayes({"body": option}, calibration=None).fit(X[["body"]], y)
    learnt = TextClassifier(family=Multinomial(smoothing=1)).fit(X["body"].tolist(), y)
    same = next(choice for choice in learnt.choices_ if choice.length_exponent == 0.6)
    assert same.calibration is not None
    expected = same.calibration.exponent * same.mean_length**0.6
    assert model.families_["body"].exponent == pytest.approx(expected, rel=1e-6)
    (record,) = model.choices_
    assert list(record.log_loss) == [model.families_["body"].describe()]
    assert record.log_loss[record.family] == pytest.approx(same.loss, rel=1e-9)


@pytest.mark.parametrize("power", [None, 0.4])
def test_options_are_chosen_with_the_given_exponents(power: Any, sms: tuple[pd.DataFrame, Any]) -> None:
    X, y = sms[0][["body"]], sms[1]
    option = Text(merge_rare=False, exponent=0.3, length_exponent=power)
    prior = {"ham": float(np.mean(y == "ham")), "spam": float(np.mean(y == "spam"))}
    model = NaiveBayes({"body": option}, prior, calibration=None).fit(X, y)
    (record,) = model.choices_
    assert len(record.log_loss) == 4
    for s in (0.01, 0.1, 0.5, 1.0):
        fixed = clone(option).set_params(smoothing=s)
        held_out = NaiveBayes({"body": fixed}, prior, calibration=None).fit(X, y).left_out_proba(X, y)
        expected = -np.log(held_out[np.arange(len(y)), (y == "spam").astype(int)]).mean()
        name = fixed.describe()
        assert record.log_loss[name] == pytest.approx(expected, rel=1e-9)
    assert record.family == min(record.log_loss, key=lambda name: record.log_loss[name] or 0.0)


def test_left_out_evidence_of_the_default_model_is_that_of_the_formula() -> None:
    X, y = body("a a b", "b c", "a c c", "c d"), np.array([0, 0, 1, 1])
    s, t = 0.5, 0.7
    model = NaiveBayes({"body": Text(smoothing=s, exponent=t)}, "uniform", calibration=None).fit(X, y)
    counts = np.array([[2, 1, 0, 0], [0, 1, 1, 0], [1, 0, 2, 0], [0, 0, 1, 1]], dtype=float)
    x = np.log1p(counts) / np.linalg.norm(np.log1p(counts), axis=1, keepdims=True)
    pseudo = s * 4 * x.sum(axis=0) / x.sum()
    found = model.left_out_proba(X, y)
    for i in range(4):
        scores = np.empty(2)
        for k in range(2):
            mine = (y == k) & (np.arange(4) != i)
            total = x[mine].sum(axis=0) + pseudo
            scores[k] = t * 5.0 * x[i] @ np.log(total / total.sum())
        expected = np.exp(scores - scores.max())
        assert_allclose(found[i], expected / expected.sum(), rtol=1e-9)


def test_models_add_up_and_rows_are_forgotten(sms: tuple[pd.DataFrame, Any]) -> None:
    X, y = sms
    whole, first, second = declared().fit(X, y), declared().fit(X[:300], y[:300]), declared().fit(X[300:], y[300:])
    expected = whole.predict_log_proba(X)
    assert_allclose((first + second).predict_log_proba(X), expected, atol=1e-9)
    updated = declared().fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    assert_allclose(updated.predict_log_proba(X), expected, atol=1e-9)
    assert_allclose(updated.forget(X[300:], y[300:]).predict_log_proba(X), first.predict_log_proba(X), atol=1e-9)
    with pytest.raises(InputError, match="no training document"):
        declared().fit(X[:300], y[:300]).forget(X[:1].assign(body="quizmaster"), y[:1])
    learnt = GenerativeClassifier().fit(X[:300], y[:300])
    again = GenerativeClassifier(learnt.families_).fit(X[300:], y[300:])
    assert learnt.families_["body"].exponent == again.families_["body"].exponent


@pytest.mark.parametrize(
    "option",
    [
        Text(),
        Text(vectorizer=CountVectorizer(min_df=2)),
        Text(vectorizer=TfidfVectorizer()),
        Text(vectorizer=TfidfVectorizer(use_idf=False)),
        Text(vectorizer=HashingVectorizer(alternate_sign=False, norm=None, n_features=512)),
        Text(family=Multinomial()),
        Text(family=Bernoulli()),
    ],
)
def test_models_are_saved_and_updated_after_loading(
    option: Text, sms: tuple[pd.DataFrame, Any], tmp_path: Path
) -> None:
    X, y = sms
    model = NaiveBayes({"body": option}).fit(X, y)
    expected = model.predict_proba(X)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert_allclose(loaded.predict_proba(X), expected, rtol=0)
    assert_allclose(loaded.partial_fit(X[:5], y[:5]).forget(X[:5], y[:5]).predict_proba(X), expected, rtol=1e-9)
    twice = NaiveBayes(model.families_).fit(X[:300], y[:300]) + NaiveBayes(model.families_).fit(X[300:], y[300:])
    whole = NaiveBayes(model.families_).fit(X, y)
    assert_allclose(twice._fit.estimate()[0].log_prior, whole._fit.estimate()[0].log_prior)


def test_densities_are_available_with_a_family_and_name_a_remedy_without(sms: tuple[pd.DataFrame, Any]) -> None:
    X, y = sms
    model = declared().fit(X, y)
    for call in (model.log_density, model.log_joint, model.score_samples):
        with pytest.raises(NoDensityError, match=r"families=\{'body': Text\(family=Multinomial\(\)\)\}.*'body': None"):
            call(X[:2])
    with pytest.raises(NoDensityError, match="None"):
        model.sample(2)
    for call in (model.typicality, model.novelty):
        with pytest.raises(NoDensityError, match="length of a document"):
            call(X[:2])
    with pytest.raises(AttributeError, match="Text"):
        _ = model.log_evidence_
    counted = NaiveBayes({"body": Text(family=Multinomial(smoothing=1))}).fit(X[["body"]], y)
    expected = TextClassifier(family=Multinomial(smoothing=1)).fit(X["body"].tolist(), y)
    assert_allclose(counted.log_density(X[:9][["body"]], "ham"), expected.log_density(X["body"].tolist()[:9], "ham"))
    drawn, labels = counted.sample(3, random_state=0)
    assert all(isinstance(document, str) and document for document in drawn["body"])
    assert len(labels) == 3


def test_contributions_of_the_text_sum_to_the_scores(sms: tuple[pd.DataFrame, Any]) -> None:
    X, y = sms
    model = GenerativeClassifier().fit(X, y)
    found = model.explain(X[:5])
    scores = found.evidence.sum(axis=2) + found.offset
    expected = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert_allclose(expected / expected.sum(axis=1, keepdims=True), model.predict_proba(X[:5]), rtol=1e-9)
    text = found.evidence[:, :, list(X).index("body")]
    assert_allclose(text, model.explain(X[:5].assign(length=1.0)).evidence[:, :, list(X).index("body")])


def test_unlabeled_documents_are_used_by_em(sms: tuple[pd.DataFrame, Any]) -> None:
    X, y = sms
    labels = np.array(y, dtype=object)
    labels[40:] = None
    few = NaiveBayes({"body": DECLARED["body"]}).fit(X[["body"]][:40], y[:40])
    model = NaiveBayes({"body": DECLARED["body"]}, unlabeled_weight=0.3).fit(X[["body"]], labels)
    assert model.unlabeled_weight_ == 0.3
    assert model.statistics_.blocks[0].vocabulary.size > few.statistics_.blocks[0].vocabulary.size
    assert np.abs(model.predict_proba(X[["body"]]) - few.predict_proba(X[["body"]])).max() > 0.01


def test_missing_documents_have_no_evidence() -> None:
    X, y = body("free prize", "win a prize", "see you", None, "", np.nan), [1, 1, 0, 0, 0, 1]
    for option in (Text(), Text(family=Bernoulli()), Text(family=Multinomial())):
        model = NaiveBayes({"body": option}).fit(X, y)
        blank = model.predict_proba(body(None, "", np.nan))
        assert_allclose(blank, np.tile(model.class_prior_, (3, 1)), rtol=1e-12)
        assert "3 documents without any term" in str(model.summary())
    assert_allclose(NaiveBayes({"body": Text()}).fit(X, y).predict_proba(body("zzz").assign()).sum(), 1.0)


@pytest.mark.parametrize(("value", "kind"), [(b"free", "bytes"), (5, "int"), (2.5, "float")])
def test_other_values_are_an_error_with_row_and_column(value: Any, kind: str) -> None:
    X, y = body("free prize", "see you", "win", "home"), [1, 0, 1, 0]
    model = NaiveBayes({"body": Text()}).fit(X, y)
    for call in (lambda Z: NaiveBayes({"body": Text()}).fit(Z, [1, 0]), model.predict):
        with pytest.raises(InputTypeError, match=rf"Column 'body', row 1: .* is of type {kind}"):
            call(body("a b", value))
    with pytest.raises(InputTypeError, match=r"value\.decode\(\)" if kind == "bytes" else r"str\(value\)"):
        model.predict(body("a b", value))


def test_strange_documents_are_read() -> None:
    strange = ["a\0b c", "lone \ud800 surrogate", "שלום עולם", "😀 emoji 😀", "w " * 200_000, "plain words"]
    model = NaiveBayes({"body": Text()}).fit(body(*strange), [0, 1, 0, 1, 0, 1])
    assert_allclose(model.predict_proba(body(*strange)).sum(axis=1), 1.0)
    one = NaiveBayes({"body": Text()}).fit(body(*strange), ["only"] * 6)
    assert_allclose(one.predict_proba(body("unknown")), 1.0)


def test_a_vocabulary_of_nothing_is_an_error_where_it_is_declared() -> None:
    X = body(*["😀 ? 😀 😀 ."] * 3, *[". . . . ."] * 3)
    with pytest.raises(InputError, match=r"Column 'body': no document has a term.*'body': None"):
        NaiveBayes({"body": Text(vectorizer=CountVectorizer())}).fit(X, [0, 1] * 3)
    marks = body(*[f"😀 . . . {'.' * i}" for i in range(6)]).assign(x=[0.0, 1.0] * 3)
    assert NaiveBayes().fit(marks, [0, 1] * 3).families_["body"] is None
    with pytest.raises(InputError, match="set aside"):
        NaiveBayes().fit(marks[["body"]], [0, 1] * 3)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (Text(exponent=-1), "exponent=-1"),
        (Text(smoothing=0), "smoothing=0"),
        (Text().set_params(merge_rare="yes"), "merge_rare='yes'"),
        (Text().set_params(vectorizer=3), "vectorizer=3"),
        (Text(family=Multinomial(), smoothing=1), "smoothing=1"),
        (Text(idf=[1.0]), "TfidfVectorizer"),
        (Text(family=Gaussian()), "not supported for text"),
        (Text(family=Multinomial(complement=True, normalize=True)), "normalize=True"),
    ],
)
def test_invalid_options_are_errors(option: Text, message: str, sms: tuple[pd.DataFrame, Any]) -> None:
    with pytest.raises(InputError, match=message):
        GenerativeClassifier({"body": option}).fit(*sms)


def test_text_is_refused_where_it_cannot_be_used(sms: tuple[pd.DataFrame, Any]) -> None:
    X, y = sms
    for families in (Text(), {("body", "shout"): Text()}):
        with pytest.raises(InputError, match="one column"):
            GenerativeClassifier(families).fit(X, y)
    with pytest.raises(InputError, match="Set the column aside"):
        MixtureModel(families=DECLARED).fit(X)
    with pytest.raises(InputError, match="'body'"):
        HybridClassifier(families=DECLARED).fit(X, y)
    assert MixtureModel(n_components=2).fit(X[:200]).families_["body"] is None
