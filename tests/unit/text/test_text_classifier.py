"""TextClassifier against scikit-learn's pipelines, brute-force refits, and its own algebra."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from scipy.stats import bernoulli, multinomial, poisson
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.metrics import f1_score, log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline

import likely
from likely import Bernoulli, Dirichlet, Multinomial, Poisson, TextClassifier
from likely.choice.term_options import drawn_documents
from likely.errors import InputError, InputTypeError, NoDensityError, NotEstimableError
from likely.families.text.presence_models import BernoulliTerms
from likely.families.text.term_models import CompactSums
from likely.statistics.term_sums import TermSums

DATA = Path(__file__).parents[2] / "data" / "sms_spam.csv"
DOCUMENTS = [
    "Win a FREE prize now! Call now",
    "free entry: call to win £100",
    "are you home? see you at home",
    "see you tonight, call me when home",
    "prize draw! win win win",
    "ok, tonight at home then",
]
LABELS = ["spam", "spam", "ham", "ham", "spam", "ham"]


@pytest.fixture(scope="module")
def sms() -> pd.DataFrame:
    return pd.read_csv(DATA, keep_default_na=False, na_values=[""])


@pytest.fixture(scope="module")
def split(sms: pd.DataFrame) -> tuple[list[str], list[str], list[str], list[str]]:
    parts = train_test_split(sms.text.tolist(), sms.label.tolist(), test_size=0.3, random_state=3, stratify=sms.label)
    return parts[0], parts[2], parts[1], parts[3]


FAMILIES: list[tuple[Any, Any]] = [
    (Multinomial(smoothing=1.0), MultinomialNB()),
    (Multinomial(smoothing=0.3), MultinomialNB(alpha=0.3)),
    (Multinomial(smoothing=1.0, complement=True), ComplementNB()),
    (Multinomial(smoothing=0.5, complement=True, normalize=True), ComplementNB(alpha=0.5, norm=True)),
    (Bernoulli(smoothing=1.0), BernoulliNB()),
    (Bernoulli(smoothing=0.2), BernoulliNB(alpha=0.2)),
]


@pytest.mark.parametrize(("family", "peer"), FAMILIES, ids=str)
@pytest.mark.parametrize(
    "vectorizer",
    [
        None,
        CountVectorizer(ngram_range=(1, 2), min_df=2),
        CountVectorizer(analyzer="char_wb", ngram_range=(2, 3), binary=True),
        HashingVectorizer(n_features=2**12, alternate_sign=False, norm=None),
    ],
    ids=["words", "frequent bigrams", "characters", "hashing"],
)
def test_probabilities_equal_those_of_scikit_learn(split: Any, family: Any, peer: Any, vectorizer: Any) -> None:
    train, y, test, _ = split
    train, y, test = train[:800], y[:800], test[:300]
    model = TextClassifier(vectorizer, family, calibration=None).fit(train, y)
    pipeline = make_pipeline(clone(vectorizer) if vectorizer else CountVectorizer(), peer).fit(train, y)
    assert_allclose(model.predict_proba(test), pipeline.predict_proba(test), rtol=0, atol=1e-10)
    assert_allclose(model.predict_log_proba(test), pipeline.predict_log_proba(test), rtol=1e-10, atol=1e-10)


def test_tf_idf_equals_scikit_learn(split: Any) -> None:
    train, y, test, _ = split
    model = TextClassifier(TfidfVectorizer(), Multinomial(smoothing=0.1), calibration=None).fit(train, y)
    pipeline = make_pipeline(TfidfVectorizer(), MultinomialNB(alpha=0.1)).fit(train, y)
    assert_allclose(model.predict_proba(test), pipeline.predict_proba(test), rtol=0, atol=1e-10)


def test_default_has_a_better_log_loss_and_f1_than_multinomial_naive_bayes(split: Any) -> None:
    train, y, test, truth = split
    model = TextClassifier().fit(train, y)
    peer = make_pipeline(CountVectorizer(), MultinomialNB()).fit(train, y)
    assert f1_score(truth, model.predict(test), pos_label="spam") >= 0.94
    ours, theirs = log_loss(truth, model.predict_proba(test)), log_loss(truth, peer.predict_proba(test))
    assert ours < 0.75 * theirs


@pytest.mark.parametrize(("family", "s"), [(Multinomial(smoothing=0.5), 0.5), (Bernoulli(smoothing=0.5), 0.5)])
def test_leave_one_out_equals_a_refit_with_the_same_vocabulary(split: Any, family: Any, s: float) -> None:
    train, y, _, _ = split
    train, y = train[:60], np.array(y[:60])
    vectorizer = CountVectorizer(vocabulary=CountVectorizer().fit(train).vocabulary_)
    model = TextClassifier(vectorizer, family, calibration=None).fit(train, y)
    peer = MultinomialNB(alpha=s) if isinstance(family, Multinomial) else BernoulliNB(alpha=s)
    found = model.left_out_proba(train, y)
    for i in range(len(train)):
        rest = np.arange(len(train)) != i
        refit = make_pipeline(vectorizer, peer).fit([train[j] for j in np.flatnonzero(rest)], y[rest])
        assert_allclose(found[i], refit.predict_proba([train[i]])[0], rtol=0, atol=1e-9)


PRIOR = likely.GammaPrior(0.5, 40.0)


@pytest.mark.parametrize(
    "family",
    [
        Multinomial(smoothing=0.5, complement=True),
        Multinomial(smoothing=0.5, complement=True, normalize=True),
        Poisson(prior=PRIOR),
        Poisson("row totals", PRIOR),
    ],
    ids=str,
)
def test_leave_one_out_equals_refits_of_the_model(split: Any, family: Any) -> None:
    train, y, _, _ = split
    train, y = [*train[:40], ""], [*y[:40], "spam"]
    vectorizer = CountVectorizer(vocabulary=CountVectorizer().fit(train).vocabulary_)
    model = TextClassifier(vectorizer, family, calibration=None).fit(train, y)
    found = model.left_out_proba(train, y)
    for i in range(0, len(train), 4):
        rest = [j for j in range(len(train)) if j != i]
        refit = TextClassifier(vectorizer, family, calibration=None).fit([train[j] for j in rest], [y[j] for j in rest])
        assert_allclose(found[i], refit.predict_proba([train[i]])[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("prior", [None, PRIOR], ids=["default prior", "declared prior"])
@pytest.mark.parametrize("exposure", [None, "row totals"])
@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_leave_one_out_of_poisson_is_that_of_its_formula(split: Any, exposure: Any, prior: Any, weight: float) -> None:
    train, y, _, _ = split
    train, y = [*train[:40], "?"], np.array([*y[:40], "spam"])  # the last document has no terms, and is not empty
    weights = np.full(len(train), weight)
    model = TextClassifier(family=Poisson(exposure, prior), calibration=None).fit(train, y, weights)
    found = model.left_out_proba(train, y, weights)
    x = CountVectorizer().fit_transform(train).toarray().astype(float)
    lengths = x.sum(axis=1) if exposure else np.ones(len(x))
    before = 40.0 if prior else 0.5 * lengths.sum() / x.sum(axis=0)
    for i in range(len(train)):
        scores = []
        for label in model.classes_:
            rest = (y == label) & (np.arange(len(y)) != i)
            rates = (weight * x[rest].sum(axis=0) + 0.5) / (weight * lengths[rest].sum() + before)
            expected = rates * lengths[i]
            scores.append(poisson.logpmf(x[i], expected).sum() + np.log(rest.sum()))
        assert_allclose(found[i], softmax(scores), rtol=0, atol=1e-9)


def test_bernoulli_counts_documents_without_terms(split: Any) -> None:
    train, y, _, _ = split
    train, y = [*train[:40], "?", "", ""], np.array([*y[:40], "spam", "spam", "ham"])
    model = TextClassifier(family=Bernoulli(smoothing=0.5), calibration=None).fit(train, y)
    found = model.left_out_proba(train, y)
    x = CountVectorizer().fit_transform(train).toarray() > 0
    for i in range(len(train)):
        rests = [(y == label) & (np.arange(len(y)) != i) for label in model.classes_]
        scores = [np.log(rest.sum()) for rest in rests]
        if train[i]:
            present = [(x[rest].sum(axis=0) + 0.5) / (rest.sum() + 1.0) for rest in rests]
            scores = [s + bernoulli.logpmf(x[i], p).sum() for s, p in zip(scores, present, strict=True)]
        assert_allclose(found[i], softmax(scores), rtol=0, atol=1e-9)


def test_terms_of_fixed_columns_without_counts_have_the_rate_of_a_declared_prior(split: Any) -> None:
    train, y, test, _ = split
    train, y, test = train[:40], np.array(y[:40]), test[:40]
    vectorizer = CountVectorizer(vocabulary=CountVectorizer().fit(train + test).vocabulary_)
    model = TextClassifier(vectorizer, Poisson("row totals", PRIOR), calibration=None).fit(train, y)
    x, new = (vectorizer.transform(part).toarray().astype(float) for part in (train, test))
    scores = []
    for label in model.classes_:
        mine = x[y == label]
        rates = (mine.sum(axis=0) + 0.5) / (mine.sum() + 40.0)
        scores.append(poisson.logpmf(new, new.sum(axis=1, keepdims=True) * rates).sum(axis=1) + np.log(len(mine)))
    assert_allclose(model.predict_proba(test), softmax(np.array(scores).T, axis=1), rtol=0, atol=1e-9)


def test_leave_one_out_of_the_default_is_that_of_its_formula(split: Any) -> None:
    train, y, _, _ = split
    train, y = train[:50], np.array(y[:50])
    model = TextClassifier(calibration=None).fit(train, y)
    found = model.left_out_proba(train, y)
    counts = CountVectorizer(token_pattern=r"\w+|[!?$£€]").fit_transform(train).toarray()
    x = np.log1p(counts)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    pseudo = 0.1 * x.shape[1] * x.sum(axis=0) / x.sum()
    for i in range(len(train)):
        scores = []
        for label in model.classes_:
            rest = (y == label) & (np.arange(len(y)) != i)
            total = x[rest].sum(axis=0) + pseudo
            scores.append(5.0 * x[i] @ np.log(total / total.sum()) + np.log(rest.sum()))
        assert_allclose(found[i], softmax(scores), rtol=1e-9, atol=1e-12)


MODELS = [
    TextClassifier(),
    TextClassifier(calibration=None),
    TextClassifier(family=Multinomial()),
    TextClassifier(family=Bernoulli(), calibration=None),
    TextClassifier(CountVectorizer(analyzer="char", ngram_range=(1, 2)), calibration=None),
    TextClassifier(HashingVectorizer(n_features=512, alternate_sign=False, norm=None), calibration=None),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_models_of_two_halves_add_up_to_the_model_of_the_whole(split: Any, model: Any) -> None:
    train, y, test, _ = split
    whole = clone(model).fit(train[:1000], y[:1000])
    halves = clone(model).fit(train[:400], y[:400]) + clone(model).fit(train[400:1000], y[400:1000])
    order = [halves.terms_.index(term) for term in whole.terms_]
    assert_allclose(halves.term_counts_.toarray()[:, order], whole.term_counts_.toarray(), rtol=0, atol=0)
    assert_allclose(
        halves._fit.sums.values.toarray()[:, order], whole._fit.sums.values.toarray(), rtol=1e-12, atol=1e-12
    )
    if model.calibration is None:
        assert_allclose(halves.predict_proba(test), whole.predict_proba(test), rtol=0, atol=1e-12)
    assert_array_equal(halves.classes_, whole.classes_)


def test_the_sum_of_models_chooses_smoothing_by_the_losses_of_both(split: Any) -> None:
    train, y, test, truth = split
    first, second = (TextClassifier().fit(train[i::2], y[i::2]) for i in (0, 1))
    total: Any = sum([first, second])
    weights = [each.calibration_.weight for each in (total, first, second) if each.calibration_ is not None]
    assert weights[0] == pytest.approx(weights[1] + weights[2])
    assert total.choices_[0].loss == min(choice.loss for choice in total.choices_)
    assert log_loss(truth, total.predict_proba(test)) < log_loss(truth, first.predict_proba(test))


def test_the_sum_with_a_model_that_is_not_calibrated_keeps_the_choices_of_the_other(split: Any) -> None:
    train, y, test, _ = split
    fitted, begun = TextClassifier().fit(train[:900], y[:900]), TextClassifier().partial_fit(train[900:], y[900:])
    expected = TextClassifier().fit(train[:900], y[:900]).partial_fit(train[900:], y[900:])
    assert fitted.choices_[0].key != begun.choices_[0].key
    for total in (fitted + begun, begun + fitted):
        assert total.choices_ == fitted.choices_
        assert_allclose(total.predict_proba(test), expected.predict_proba(test), rtol=0, atol=1e-10)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_partial_fit_and_forget(split: Any, model: Any) -> None:
    train, y, test, _ = split
    part = clone(model).fit(train[:300], y[:300])
    more = clone(model).fit(train[:300], y[:300]).partial_fit(train[300:320], y[300:320])
    assert more.term_counts_.sum() > part.term_counts_.sum()
    more.forget(train[300:320], y[300:320])
    assert_allclose(more.predict_proba(test), part.predict_proba(test), rtol=0, atol=1e-9)
    with pytest.raises(InputError, match=r"not those of the fit|no training document"):
        more.forget(["zyxwv prize prize prize"], ["ham"])


def test_partial_fit_in_batches_equals_fit(split: Any) -> None:
    train, y, test, _ = split
    batches = TextClassifier()
    for start in range(0, 900, 300):
        batches.partial_fit(train[start : start + 300], y[start : start + 300], classes=["ham", "spam"])
    whole = TextClassifier(calibration=None).fit(train[:900], y[:900])
    assert_allclose(batches.predict_proba(test), whole.predict_proba(test), rtol=0, atol=1e-12)
    assert batches.calibration_ is None
    batches.calibrate(train[:900], y[:900])
    again = TextClassifier().fit(train[:900], y[:900])
    assert_allclose(batches.predict_proba(test), again.predict_proba(test), rtol=0, atol=1e-9)
    with pytest.raises(InputError, match="not among classes"):
        batches.partial_fit(["hello"], ["eggs"], classes=["ham", "spam"])


def test_a_new_class_and_a_dropped_class() -> None:
    model = TextClassifier(calibration=None).fit(DOCUMENTS, LABELS)
    model.partial_fit(["goal! the match was won"], ["sport"])
    assert model.classes_.tolist() == ["ham", "spam", "sport"]
    assert model.predict(["what a match"]).tolist() == ["sport"]
    model.drop_class("sport")
    other = TextClassifier(calibration=None).fit(DOCUMENTS, LABELS)
    assert_allclose(model.predict_proba(DOCUMENTS), other.predict_proba(DOCUMENTS), atol=1e-12)


@pytest.mark.parametrize("model", MODELS[:4], ids=str)
def test_an_integer_weight_is_a_repeated_document(model: Any) -> None:
    weights = [2, 1, 1, 3, 1, 2]
    repeated = np.repeat(np.arange(6), weights)
    weighted = clone(model).fit(DOCUMENTS, LABELS, sample_weight=weights)
    plain = clone(model).fit([DOCUMENTS[i] for i in repeated], [LABELS[i] for i in repeated])
    assert_allclose(weighted.predict_proba(DOCUMENTS), plain.predict_proba(DOCUMENTS), rtol=0, atol=1e-9)
    none = clone(model).fit([*DOCUMENTS, "free"], [*LABELS, "ham"], sample_weight=[*weights, 0])
    assert_allclose(none.predict_proba(DOCUMENTS), plain.predict_proba(DOCUMENTS), rtol=0, atol=1e-9)


def test_the_order_of_documents_does_not_matter(split: Any) -> None:
    train, y, test, _ = split
    order = np.random.default_rng(0).permutation(600)
    model = TextClassifier().fit(train[:600], y[:600])
    other = TextClassifier().fit([train[i] for i in order], [y[i] for i in order])
    assert_allclose(model.predict_proba(test), other.predict_proba(test), rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        *MODELS,
        TextClassifier(TfidfVectorizer(sublinear_tf=True)),
        TextClassifier(CountVectorizer(min_df=2, stop_words=["the"]), Multinomial(smoothing=0.2)),
        TextClassifier(family=Poisson(exposure="row totals"), class_prior=Dirichlet(2.0)),
    ],
    ids=str,
)
def test_a_saved_model_is_the_same(tmp_path: Path, model: Any) -> None:
    model = clone(model).fit(DOCUMENTS, LABELS)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    texts = [*DOCUMENTS, "", "unknown things"]
    assert_array_equal(loaded.predict_proba(texts), model.predict_proba(texts))
    assert repr(loaded) == repr(model)
    if model._fit.vocabulary.grows:
        more = ["a new message", "another prize"], ["ham", "spam"]
        assert_array_equal(
            loaded.partial_fit(*more).predict_proba(texts), model.partial_fit(*more).predict_proba(texts)
        )
    assert_allclose(loaded.left_out_proba(DOCUMENTS, LABELS), model.left_out_proba(DOCUMENTS, LABELS))


def test_functions_of_a_vectorizer_cannot_be_saved(tmp_path: Path) -> None:
    model = TextClassifier(CountVectorizer(tokenizer=str.split, token_pattern=None)).fit(DOCUMENTS, LABELS)
    with pytest.raises(InputError, match="tokenizer is a function"):
        model.save(tmp_path / "model.likely")


def test_terms_with_nul_surrogates_and_emoji_survive_a_file(tmp_path: Path) -> None:
    texts = ["a\x00b", "\ud800x", "🎉🎉", "\u202eשלום עולם", "مرحبا"]
    model = TextClassifier(CountVectorizer(analyzer="char")).fit(texts, [0, 1, 1, 0, 0])
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert loaded.terms_ == model.terms_
    assert "\x00" in loaded.terms_
    assert_array_equal(loaded.predict_proba(texts), model.predict_proba(texts))
    assert r"\ud800x" in model.explain(["\ud800x"])._repr_html_()


def test_frames_and_series() -> None:
    data = {"text": DOCUMENTS, "label": LABELS, "length": [len(text) for text in DOCUMENTS]}
    expected = TextClassifier().fit(DOCUMENTS, LABELS).predict_proba(DOCUMENTS)
    frames: list[Any] = [pd.DataFrame(data), pl.DataFrame(data), pa.table(data)]
    for frame in frames:
        model = TextClassifier().fit(frame, "label")
        assert_allclose(model.predict_proba(frame), expected)
        assert model.score(frame, "label") == 1.0
        with pytest.raises(InputError, match="text columns 'text', 'label'"):
            TextClassifier().fit(frame, LABELS)
        assert_allclose(TextClassifier(column="text").fit(frame, LABELS).predict_proba(frame), expected)
    for documents in (pd.Series(DOCUMENTS), pl.Series(DOCUMENTS), np.array(DOCUMENTS), np.array(DOCUMENTS)[:, None]):
        assert_allclose(TextClassifier().fit(documents, LABELS).predict_proba(documents), expected)
    with pytest.raises(InputError, match="'body' is not among"):
        TextClassifier(column="body").fit(frames[0], "label")


@pytest.mark.parametrize("family", [None, Multinomial(), Bernoulli(), Poisson()])
def test_empty_and_missing_documents_have_the_class_prior(family: Any) -> None:
    texts: list[Any] = [*DOCUMENTS, None, "", float("nan")]
    model = TextClassifier(family=family).fit(texts, [*LABELS, "ham", "spam", "spam"])
    prior = model.class_prior_
    assert_allclose(prior, [4 / 9, 5 / 9])
    assert_allclose(model.predict_proba([None, ""]), [prior, prior])
    if family is None:
        assert_allclose(model.predict_proba(["   ", "\n"]), [prior, prior])
        shown = str(model.summary())
        assert "3 training documents have no terms" in shown
    offset = model.explain([None]).offset
    assert_allclose(softmax(offset, axis=1), [prior])


def test_documents_without_known_terms_have_the_class_prior(split: Any) -> None:
    model = TextClassifier(calibration=None).fit(DOCUMENTS, LABELS)
    assert_allclose(model.predict_proba(["qqq www"]), [[0.5, 0.5]])
    train, y, _, _ = split
    merged = TextClassifier().fit(train, y)
    assert merged.choices_[0].model.merged
    unknown: list[Any] = ["qqqqq", "qqqqq zzzzz qqqqq", " ", "", None]
    assert_allclose(merged.predict_proba(unknown), np.tile(merged.class_prior_, (5, 1)))
    found = merged.explain(unknown)
    assert_allclose(softmax(found.offset + found.evidence.sum(axis=2), axis=1), merged.predict_proba(unknown))
    for family in (Bernoulli(), Poisson()):
        model = TextClassifier(family=family).fit(DOCUMENTS, LABELS)
        assert_allclose(model.predict_proba([" ", "\n\t", "", None]), np.tile(model.class_prior_, (4, 1)))


def test_bytes_are_decoded_as_declared() -> None:
    encoded = [text.encode("latin-1") for text in DOCUMENTS]
    vectorizer = CountVectorizer(encoding="latin-1")
    model = TextClassifier(vectorizer).fit(encoded, LABELS)
    assert_allclose(
        model.predict_proba(encoded), TextClassifier(vectorizer).fit(DOCUMENTS, LABELS).predict_proba(DOCUMENTS)
    )
    with pytest.raises(InputError, match="row 1: the bytes cannot be decoded as utf-8"):
        TextClassifier().fit(encoded, LABELS)


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
def test_choices_do_not_depend_on_copies_and_order_of_documents() -> None:
    texts, labels = ["free prize", "see you"] * 3000, ["spam", "ham"] * 3000
    model = TextClassifier().fit(texts, labels)
    assert model.predict(["free", "you"]).tolist() == ["spam", "ham"]
    weighted = TextClassifier().fit(texts[:2], labels[:2], sample_weight=[3000, 3000])
    assert_allclose(weighted.predict_proba(["free you"]), model.predict_proba(["free you"]), rtol=1e-9)
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(50)]
    y = np.append(rng.integers(0, 2, 5000), [2, 3])
    many = [" ".join(rng.choice(words, 3)) for _ in y]
    order = rng.permutation(len(y))
    first, second = TextClassifier().fit(many, y), TextClassifier().fit([many[i] for i in order], y[order])
    assert_allclose(second.predict_proba(many[:9]), first.predict_proba(many[:9]), rtol=1e-6)


def test_a_sample_of_documents_has_every_class() -> None:
    texts = [f"text {i % 700}" for i in range(6000)]
    codes = np.where(np.arange(6000) < 5990, 0, np.arange(6000) - 5989)
    drawn = drawn_documents(texts, codes, np.ones(6000))
    assert set(codes[drawn > 0.0]) == set(codes)
    assert drawn.sum() == pytest.approx(2000.0, rel=0.1)
    assert_allclose(drawn[codes > 0], np.where(drawn[codes > 0] == 1.0, 1.0, 1.0 / 3.0))
    order = np.random.default_rng(0).permutation(6000)
    again = drawn_documents([texts[i] for i in order], codes[order], np.ones(6000))
    found, expected = (
        sorted((text, code, n) for text, code, n in zip(some, labels, numbers, strict=True) if n)
        for some, labels, numbers in ((texts, codes, drawn), ([texts[i] for i in order], codes[order], again))
    )
    assert found == expected


def test_unlabeled_documents_of_few_distinct_texts() -> None:
    texts, labels = ["free prize", "see you"] * 1500, ["spam", "ham"] * 1500
    model = TextClassifier().fit([*texts, *["free you"] * 3000], [*labels, *[None] * 3000])
    assert len(model.unlabeled_scores_) == 6


@pytest.mark.parametrize("vocabulary", [None, ["free", "home", "prize", "you"]])
def test_tf_idf_without_idf_is_saved(vocabulary: Any, tmp_path: Path) -> None:
    model = TextClassifier(TfidfVectorizer(use_idf=False, vocabulary=vocabulary)).fit(DOCUMENTS, LABELS)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert_array_equal(loaded.predict_proba(DOCUMENTS), model.predict_proba(DOCUMENTS))
    assert loaded.vectorizer.vocabulary == vocabulary


def test_masked_documents_are_missing() -> None:
    documents = np.ma.masked_array(np.array(DOCUMENTS, dtype=object), mask=[False] * 5 + [True])
    model = TextClassifier(CountVectorizer(token_pattern=r"\S+")).fit(documents, LABELS)
    assert "?" not in model.terms_
    assert_allclose(model.predict_proba(documents)[5], model.class_prior_)
    plain = np.ma.masked_array(np.array(DOCUMENTS), mask=[True] + [False] * 5)
    assert_allclose(model.predict_proba(plain)[0], model.class_prior_)


@pytest.mark.parametrize("family", [Bernoulli(), Poisson(), Multinomial()], ids=str)
def test_calibration_does_not_harm_many_small_classes(family: Any) -> None:
    rng, words = np.random.default_rng(0), [f"w{j}" for j in range(2000)]

    def drawn(n: int) -> tuple[list[str], Any]:
        y = np.repeat(np.arange(60), n)
        return [" ".join([*rng.choice(words, 20), *(f"k{k}x{j}" for j in rng.choice(8, 4))]) for k in y], y

    (train, y), (test, truth) = drawn(6), drawn(2)
    plain, calibrated = (TextClassifier(family=family, calibration=c).fit(train, y) for c in (None, "auto"))
    assert log_loss(truth, calibrated.predict_proba(test)) < log_loss(truth, plain.predict_proba(test))


def test_balanced_evidence_of_bernoulli_has_one_average_document_less_in_other_classes() -> None:
    x = np.array([[1.0, 0, 1], [1, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]])
    codes, names = np.array([0, 0, 1, 1, 1]), np.array(["a", "b"])
    rows = scipy.sparse.csr_array(np.hstack([x, np.zeros((5, 1))]))
    model, sums = BernoulliTerms(), TermSums.of(names, codes, None, rows, rows)
    found = model.balanced(model.estimate(CompactSums.of(sums, False, True)), rows, codes, np.ones(5))
    for i in range(5):
        for k in range(2):
            mine = codes == k
            n = mine.sum() - 1
            counts = x[mine].sum(axis=0) * n / (n + 1) if codes[i] != k else x[mine].sum(axis=0) - x[i]
            assert found[i, k] == pytest.approx(bernoulli.logpmf(x[i], (counts + 1) / (n + 2)).sum(), rel=1e-12)


@pytest.mark.parametrize("vectorizer", [None, CountVectorizer(max_df=0.9), TfidfVectorizer()], ids=str)
def test_documents_of_weight_zero_change_nothing(vectorizer: Any) -> None:
    texts, labels = [*DOCUMENTS, "unseen words", "more of them"], [*LABELS, "eggs", None]
    weights = [1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    expected = TextClassifier(vectorizer).fit(DOCUMENTS, LABELS, weights[:6])
    found = TextClassifier(vectorizer).fit(texts, labels, weights)
    assert found.terms_ == expected.terms_
    assert found.classes_.tolist() == ["ham", "spam"]
    assert_array_equal(found.predict_proba(texts), expected.predict_proba(texts))
    more = expected.partial_fit([*texts[:1], "unseen words"], ["spam", "eggs"], sample_weight=[1.0, 0.0])
    assert more.terms_ == found.terms_
    assert more.classes_.tolist() == ["ham", "spam"]


CALLS: dict[str, tuple[Any, ...]] = {
    "predict": (DOCUMENTS,),
    "predict_proba": (DOCUMENTS,),
    "predict_log_proba": (DOCUMENTS,),
    "decision_function": (DOCUMENTS,),
    "decide": (DOCUMENTS,),
    "explain": (DOCUMENTS,),
    "score": (DOCUMENTS, LABELS),
    "log_joint": (DOCUMENTS,),
    "log_density": (DOCUMENTS,),
    "score_samples": (DOCUMENTS,),
    "typicality": (DOCUMENTS,),
    "novelty": (DOCUMENTS,),
    "sample": (2,),
    "adapt_prior": (DOCUMENTS,),
    "with_prior": ("uniform",),
    "summary": (),
}
OTHER_CALLS: dict[str, tuple[Any, ...]] = {
    "left_out_proba": (DOCUMENTS, LABELS),
    "calibrate": (DOCUMENTS, LABELS),
    "forget": (DOCUMENTS, LABELS),
    "drop_class": ("ham",),
    "top_terms": ("ham",),
    "language_model": ("ham",),
}


@pytest.mark.parametrize("family", [Multinomial(), Bernoulli(), Poisson()], ids=str)
@pytest.mark.parametrize("how", ["forget", "drop_class"])
def test_a_model_without_documents_has_an_error_of_the_library(how: str, family: Any, tmp_path: Path) -> None:
    model = TextClassifier(family=family).fit(DOCUMENTS, LABELS)
    model = model.forget(DOCUMENTS, LABELS) if how == "forget" else model.drop_class("ham").drop_class("spam")
    for name, arguments in CALLS.items():
        with pytest.raises(NotEstimableError, match="no documents"):
            getattr(model, name)(*arguments)
    for name, arguments in OTHER_CALLS.items():
        with pytest.raises(InputError):
            getattr(model, name)(*arguments)
    with pytest.raises(NotEstimableError):
        _ = model.class_prior_
    assert len((model + model).classes_) == 0
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert loaded.partial_fit(DOCUMENTS, LABELS).predict(["free prize"]).tolist() == ["spam"]


@pytest.mark.parametrize("name", [*CALLS, *OTHER_CALLS, "save"])
def test_methods_of_a_model_that_is_not_fitted_raise(name: str, tmp_path: Path) -> None:
    arguments = {**CALLS, **OTHER_CALLS, "save": (tmp_path / "model.likely",)}[name]
    with pytest.raises(NotFittedError):
        getattr(TextClassifier(family=Multinomial()), name)(*arguments)


def plain(name: str) -> Any:
    return lambda _: {"none": None, "text": "ab", "numbers": [1, 2]}[name]


WRONG_VECTORIZERS: list[tuple[Any, dict[str, Any]]] = [
    (CountVectorizer, {"min_df": 100}),
    (CountVectorizer, {"analyzer": "nope"}),
    (CountVectorizer, {"stop_words": "klingon"}),
    (CountVectorizer, {"token_pattern": "("}),
    (CountVectorizer, {"token_pattern": "(a)(b)"}),
    (CountVectorizer, {"ngram_range": (3, 1)}),
    (CountVectorizer, {"ngram_range": (1, 2, 3)}),
    (CountVectorizer, {"vocabulary": ["z", "z"]}),
    (CountVectorizer, {"min_df": "2"}),
    (CountVectorizer, {"min_df": -1}),
    (CountVectorizer, {"max_features": 0}),
    (CountVectorizer, {"encoding": "nope"}),
    (CountVectorizer, {"decode_error": "nope"}),
    (CountVectorizer, {"analyzer": plain("none")}),
    (CountVectorizer, {"analyzer": plain("text")}),
    (CountVectorizer, {"analyzer": plain("numbers")}),
    (CountVectorizer, {"analyzer": plain("none"), "max_df": 0.9}),
    (TfidfVectorizer, {"norm": "l7"}),
    (TfidfVectorizer, {"ngram_range": (2, 1)}),
    (HashingVectorizer, {"n_features": -1, "alternate_sign": False}),
    (HashingVectorizer, {"ngram_range": (2, 1), "alternate_sign": False}),
]


@pytest.mark.parametrize(
    ("kind", "options"), WRONG_VECTORIZERS, ids=lambda each: each.__name__ if isinstance(each, type) else "-".join(each)
)
def test_wrong_options_of_a_vectorizer_are_errors_of_the_library(kind: Any, options: Any) -> None:
    documents: list[Any] = [text.encode() for text in DOCUMENTS] if "encoding" in options else DOCUMENTS
    with pytest.raises(InputError, match="vectorizer: "):
        TextClassifier(kind(**options)).fit(documents, LABELS)
    frame = pd.DataFrame({"text": DOCUMENTS})
    with pytest.raises(InputError, match="vectorizer: "):
        likely.NaiveBayes({"text": likely.Text(vectorizer=kind(**options))}).fit(frame, LABELS)


def test_a_class_is_not_a_vectorizer() -> None:
    with pytest.raises(InputTypeError, match="not a vectorizer"):
        TextClassifier().set_params(vectorizer=CountVectorizer).fit(DOCUMENTS, LABELS)


def test_printed_results_can_be_encoded() -> None:
    document, label = "lone \ud800\ud801 surrogate", "a\ud800"
    model = TextClassifier(CountVectorizer(token_pattern=r"\S+")).fit([document, "plain words"], [label, "b"])
    explanation = model.explain([document])
    for result in (explanation, model.summary(), model.language_model(label), model.decide([document])):
        str(result).encode()
        result._repr_html_().encode()
    explanation.highlighted().encode()
    assert r"\ud800\ud801" in str(explanation)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_the_column_of_the_fit_is_used_for_predictions(make: Any, tmp_path: Path) -> None:
    model = TextClassifier().fit(make({"text": DOCUMENTS, "label": LABELS}), "label")
    other = make({"note": DOCUMENTS[::-1], "text": DOCUMENTS})
    expected = model.predict_proba(DOCUMENTS)
    model.save(tmp_path / "model.likely")
    begun = TextClassifier(calibration=None).partial_fit(make({"text": DOCUMENTS, "label": LABELS}), "label")
    for each in (model, likely.load(tmp_path / "model.likely"), model + model):
        assert_array_equal(each.predict(other), model.predict(DOCUMENTS))
    assert_allclose(model.predict_proba(other), expected)
    assert_array_equal(begun.predict(other), begun.predict(DOCUMENTS))
    for missing in (make({"note": DOCUMENTS}), make({"note": DOCUMENTS, "more": DOCUMENTS})):
        with pytest.raises(InputError, match=r"column='text' is not among the columns of X: 'note'"):
            model.predict(missing)


def test_columns_of_categories_are_text() -> None:
    expected = TextClassifier().fit(DOCUMENTS, LABELS).predict_proba(DOCUMENTS)
    frames = [
        pd.DataFrame({"text": pd.Categorical(DOCUMENTS), "x": range(6)}),
        pl.DataFrame({"text": DOCUMENTS, "x": range(6)}, schema_overrides={"text": pl.Categorical}),
        pl.DataFrame({"text": DOCUMENTS, "x": range(6)}, schema_overrides={"text": pl.Enum(DOCUMENTS)}),
        pa.table({"text": pa.array(DOCUMENTS).dictionary_encode(), "x": range(6)}),
    ]
    for frame in frames:
        assert_allclose(TextClassifier().fit(frame, LABELS).predict_proba(frame), expected)
    for array in (pa.array(DOCUMENTS), pa.chunked_array([DOCUMENTS]), pa.array(DOCUMENTS).dictionary_encode()):
        assert_allclose(TextClassifier().fit(array, LABELS).predict_proba(array), expected)
    both = pd.DataFrame({"text": DOCUMENTS, "kind": pd.Categorical(list("aabbab"))})
    assert_allclose(TextClassifier().fit(both, LABELS).predict_proba(both), expected)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_terms_are_of_the_library_of_the_fit(make: Any, tmp_path: Path) -> None:
    frame = make({"text": DOCUMENTS, "label": LABELS})
    model = TextClassifier().fit(frame, "label")
    model.save(tmp_path / "model.likely")
    begun = TextClassifier().partial_fit(frame, "label")
    for each in (model, likely.load(tmp_path / "model.likely"), begun):
        for table in (each.top_terms("spam"), each.language_model("spam").next_term()):
            assert type(table) is type(frame)


def test_the_summary_of_one_document_is_in_the_singular() -> None:
    shown = str(TextClassifier().fit(["hello"], ["a"]).summary())
    assert "1 document, 1 class\n" in shown
    assert "1 term: " in shown


def test_wrong_documents() -> None:
    wrong: list[Any] = ["a b", "c", 5]
    with pytest.raises(InputTypeError, match=r"X, row 2: 5 is of type int"):
        TextClassifier().fit(wrong, [0, 1, 1])
    with pytest.raises(InputError, match=r"single str.*\[X\]"):
        TextClassifier().fit("text", [0])
    with pytest.raises(InputError, match="empty vocabulary"):
        TextClassifier().fit(["", "..."], [0, 1])
    with pytest.raises(InputError, match="empty vocabulary"):
        TextClassifier(TfidfVectorizer(stop_words="english")).fit(["the", "and"], [0, 1])
    with pytest.raises(InputError, match="0 sample"):
        TextClassifier().fit([], [])
    with pytest.raises(InputError, match="inconsistent numbers of samples"):
        TextClassifier().fit(DOCUMENTS, LABELS[:-1])
    with pytest.raises(InputError, match="alternate_sign=False"):
        TextClassifier(HashingVectorizer()).fit(DOCUMENTS, LABELS)
    with pytest.raises(InputError, match=r"family=.*not supported"):
        TextClassifier(family=likely.Gaussian()).fit(DOCUMENTS, LABELS)
    with pytest.raises(InputError, match="order=3"):
        TextClassifier(order=3).fit(DOCUMENTS, LABELS)
    with pytest.raises(InputError, match="normalize=True"):
        TextClassifier(family=Multinomial(complement=True, normalize=True)).fit(DOCUMENTS, LABELS)


def test_one_class_and_one_document() -> None:
    model = TextClassifier().fit(["hello world"], ["a"])
    assert_allclose(model.predict_proba(["hello", "", "x"]), 1.0)
    assert model.top_terms("a")["term"].tolist()
    assert_allclose(model.left_out_proba(["hello world"], ["a"]), 1.0)
    assert str(model.summary())
    assert str(model.explain(["hello"]))


def test_a_document_of_a_million_words() -> None:
    model = TextClassifier().fit(DOCUMENTS, LABELS)
    long = "prize win " * 500_000
    assert_allclose(model.predict_proba([long]).sum(), 1.0)
    assert model.predict([long]).tolist() == ["spam"]
    again = TextClassifier(family=Multinomial()).fit([*DOCUMENTS, long], [*LABELS, "spam"])
    assert np.isfinite(again.predict_log_proba([long])).all()


def test_explanations_add_up_to_the_probabilities(split: Any) -> None:
    train, y, test, _ = split
    for each in (*MODELS, TextClassifier(TfidfVectorizer()), TextClassifier(family=Poisson())):
        model = clone(each).fit(train[:500], y[:500])
        texts = [*test[:5], "", "zzz free prize zzz"]
        explanation = model.explain(texts)
        scores = explanation.offset + explanation.evidence.sum(axis=2)
        assert_allclose(softmax(scores, axis=1), model.predict_proba(texts), atol=1e-10)
        frame = explanation.to_frame()
        sums = frame.groupby(["row", "class"]).contribution.sum().to_numpy().reshape(-1, 2)
        assert_allclose(sums, scores, rtol=1e-9)
        assert str(explanation).startswith("Row 0")


def test_terms_are_highlighted_in_the_text() -> None:
    model = TextClassifier().fit(DOCUMENTS, LABELS)
    page = model.explain(["A <b>FREE</b> prize & more"])._repr_html_()
    assert "&lt;" in page
    assert "<b>" not in page
    assert ">FREE</span>" in page
    assert "log-odds of spam against ham" in page


def test_top_terms_are_ordered_by_expected_evidence(split: Any) -> None:
    train, y, _, _ = split
    model = TextClassifier().fit(train, y)
    spam, ham = (model.top_terms(label, 20) for label in ("spam", "ham"))
    assert {"call", "free", "txt", "£"} <= set(spam["term"])
    assert {"i", "my"} <= set(ham["term"])
    assert not {"to", "a"} & set(spam["term"][:5])
    assert (np.diff(spam["evidence"]) <= 0).all()
    assert len(model.summary().terms[0]) == 8
    with pytest.raises(InputError, match="'eggs' is not among"):
        model.top_terms("eggs")


def test_densities_of_counts() -> None:
    model = TextClassifier(CountVectorizer(), Multinomial(smoothing=0.7)).fit(DOCUMENTS, LABELS)
    counts = CountVectorizer(vocabulary=model.terms_).transform(DOCUMENTS).toarray()
    totals = model.term_counts_.toarray() + 0.7
    p = totals / totals.sum(axis=1, keepdims=True)
    for k, label in enumerate(model.classes_):
        expected = multinomial.logpmf(counts, counts.sum(axis=1), p[k])
        assert_allclose(model.log_density(DOCUMENTS, label), expected, rtol=1e-9)
    joint = model.log_joint(DOCUMENTS)
    assert_allclose(np.logaddexp(joint[:, 0], joint[:, 1]), model.log_density(DOCUMENTS))


def test_samples_have_the_terms_of_their_class(split: Any) -> None:
    train, y, _, _ = split
    for family in (Multinomial(smoothing=0.01), Bernoulli(smoothing=0.01), Poisson(exposure="row totals")):
        model = TextClassifier(family=family).fit(train[:800], y[:800])
        texts, labels = model.sample(60, random_state=0)
        assert set(labels) == {"ham", "spam"}
        assert model.score(texts, labels) > 0.9
        lengths = [len(text.split()) for text in model.sample(20, label="spam", random_state=1)[0]]
        terms = model.term_counts_[[1]].sum() / y[:800].count("spam")
        assert np.mean(lengths) == pytest.approx(terms, rel=0.3)


@pytest.mark.parametrize(
    "model",
    [
        TextClassifier(),
        TextClassifier(TfidfVectorizer(), Multinomial()),
        TextClassifier(family=Multinomial(complement=True), calibration=None),
    ],
    ids=str,
)
def test_scores_are_not_densities(model: Any) -> None:
    model = clone(model).fit(DOCUMENTS, LABELS)
    for method in (model.log_density, model.log_joint, model.score_samples, model.novelty, model.typicality):
        with pytest.raises(NoDensityError):
            method(DOCUMENTS)
    with pytest.raises(NoDensityError):
        model.sample(3)
    with pytest.raises(AttributeError):
        _ = model.log_evidence_


def test_language_models_add_up(split: Any) -> None:
    train, y, test, _ = split

    def make() -> TextClassifier:
        return TextClassifier(order=2, calibration=None)

    whole = make().fit(train[:600], y[:600])
    halves = make().fit(train[:250], y[:250]) + make().fit(train[250:600], y[250:600])
    parts = make().fit(train[:250], y[:250]).partial_fit(train[250:620], y[250:620]).forget(train[600:620], y[600:620])
    first, second = (make().fit(train[a:b], y[a:b]) for a, b in ((0, 250), (250, 600)))
    for label in ("ham", "spam"):
        chosen = whole.language_model(label)
        assert chosen.order == 2
        mine, yours, both = (each.language_model(label).concentration or np.nan for each in (first, second, halves))
        assert min(mine, yours) <= both <= max(mine, yours)
        assert parts.language_model(label).concentration == first.language_model(label).concentration
        for model in (halves, parts):
            found = model.language_model(label)
            expected = replace(chosen, concentration=found.concentration)  # it is fixed by the first documents
            assert found.perplexity(test[:20]) == pytest.approx(expected.perplexity(test[:20]), rel=1e-10)
            assert found.generate(10, random_state=0) == expected.generate(10, random_state=0)
    spam = [text for text, label in zip(train[600:], y[600:], strict=True) if label == "spam"]
    assert whole.language_model("spam").perplexity(spam) < whole.language_model("ham").perplexity(spam)
    assert_allclose(
        whole.predict_proba(test), TextClassifier(calibration=None).fit(train[:600], y[:600]).predict_proba(test)
    )


def test_language_models_have_counts_of_terms(tmp_path: Path) -> None:
    counted = TextClassifier(CountVectorizer()).fit(DOCUMENTS, LABELS).language_model("spam")
    weighted = TextClassifier(TfidfVectorizer()).fit(DOCUMENTS, LABELS).language_model("spam")
    assert_allclose(counted.counts, weighted.counts)
    assert counted.counts[counted.terms.index("win")] == 5.0
    model = TextClassifier(CountVectorizer(), order=2).fit(DOCUMENTS, LABELS)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely").language_model("ham")
    assert loaded.next_term("see").equals(model.language_model("ham").next_term("see"))
    hashed = TextClassifier(HashingVectorizer(alternate_sign=False, norm=None))
    with pytest.raises(NoDensityError):
        hashed.fit(DOCUMENTS, LABELS).language_model("spam")
    with pytest.raises(InputError, match="order=2"):
        hashed.set_params(order=2).fit(DOCUMENTS, LABELS)
    with pytest.raises(InputError, match="order=2"):
        TextClassifier(CountVectorizer(analyzer="char"), order=2).fit(DOCUMENTS, LABELS)


def test_priors(split: Any) -> None:
    train, y, test, _ = split
    model = TextClassifier().fit(train, y)
    half = model.with_prior("uniform")
    odds = model.predict_proba(test)[:20] / model.class_prior_
    assert_allclose(half.predict_proba(test)[:20], odds / odds.sum(axis=1, keepdims=True), atol=1e-12)
    spam = [text for text, label in zip(train, y, strict=True) if label == "spam"][:200]
    adapted = model.adapt_prior(spam + test[:50])
    assert adapted.class_prior_[1] > 0.7
    assert adapted.prior_shift_.p_value < 1e-6
    with pytest.raises(InputError, match="must name every class"):
        model.with_prior({"ham": 1.0})


def test_scikit_learn_conventions(split: Any) -> None:
    train, y, test, _ = split
    model = TextClassifier()
    grid = GridSearchCV(model, {"family": [None, Multinomial(smoothing=1.0)]}, cv=3, scoring="neg_log_loss")
    grid.fit(train[:600], y[:600])
    assert grid.best_params_["family"] is None
    grid = GridSearchCV(
        TextClassifier(CountVectorizer(), Multinomial()),
        {"vectorizer__ngram_range": [(1, 1), (1, 2)], "family__smoothing": [0.1, 1.0]},
        cv=2,
    ).fit(train[:200], y[:200])
    assert grid.best_score_ > 0.8
    result = likely.cross_validate(model, train[:600], y[:600], folds=3)
    assert result.log_loss.mean() < 0.2
    decisions = grid.best_estimator_.decide(test[:20], reject=0.01)
    assert decisions.rejected.dtype == bool
    with pytest.raises(Exception, match="not fitted"):
        model.predict(test)
    assert grid.best_estimator_.decision_function(test[:3]).shape == (3,)


def test_vocabularies_that_are_fixed_cannot_be_united() -> None:
    for vectorizer in (CountVectorizer(min_df=2), TfidfVectorizer()):
        first, second = (TextClassifier(vectorizer).fit(DOCUMENTS[i:], LABELS[i:]) for i in (0, 1))
        with pytest.raises(InputError, match="different columns"):
            _ = first + second
        first.partial_fit(["prize"], ["spam"])
    with pytest.raises(InputError, match="calibration: 'auto' and None"):
        _ = TextClassifier().fit(DOCUMENTS, LABELS) + TextClassifier(calibration=None).fit(DOCUMENTS, LABELS)


def test_unlabeled_documents_help_where_cross_validation_says_so(split: Any, tmp_path: Path) -> None:
    train, y, test, truth = split
    labels: list[Any] = [*y[:100], *[None] * (len(train) - 100)]
    alone = TextClassifier().fit(train[:100], y[:100])
    model = TextClassifier().fit(train, labels)
    weight = model.unlabeled_weight_
    assert weight is not None
    assert weight > 0.0
    assert len(model.unlabeled_scores_) == 6
    assert log_loss(truth, model.predict_proba(test)) < 0.8 * log_loss(truth, alone.predict_proba(test))
    assert "unlabeled rows have weight" in str(model.summary())
    for method in ("partial_fit", "forget", "left_out_proba", "calibrate"):
        with pytest.raises(InputError, match=f"{method} is not available"):
            getattr(model, method)(train[:2], y[:2])
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert_array_equal(loaded.predict_proba(test), model.predict_proba(test))
    assert loaded.unlabeled_weight_ == weight


def test_unlabeled_documents_that_are_noise_are_ignored(split: Any) -> None:
    train, y, test, _ = split
    rng = np.random.default_rng(0)
    words = " ".join(train).split()
    noise = [" ".join(rng.choice(words, 15)) for _ in range(300)]
    alone = TextClassifier().fit(train[:300], y[:300])
    model = TextClassifier(unlabeled="?").fit([*train[:300], *noise], [*y[:300], *["?"] * 300])
    assert model.unlabeled_weight_ == 0.0
    assert_allclose(model.predict_proba(test), alone.predict_proba(test))
    assert_allclose(model.left_out_proba(train[:5], y[:5]), alone.left_out_proba(train[:5], y[:5]))
    zero = TextClassifier(unlabeled_weight=0.0).fit([*train[:300], *noise], [*y[:300], *[None] * 300])
    assert_allclose(zero.predict_proba(test), alone.predict_proba(test))


def test_a_given_weight_of_unlabeled_documents_is_one_step_of_em() -> None:
    model = TextClassifier(calibration=None, unlabeled_weight=0.5, max_iter=1)
    model.fit([*DOCUMENTS, "win a prize", "home tonight"], [*LABELS, None, None])
    start = TextClassifier(calibration=None).fit(DOCUMENTS, LABELS)
    p = start.predict_proba(["win a prize", "home tonight"])
    expected = start.fit(
        [*DOCUMENTS, *["win a prize"] * 2, *["home tonight"] * 2],
        [*LABELS, "ham", "spam", "ham", "spam"],
        sample_weight=[*[1.0] * 6, *(0.5 * p.ravel())],
    )
    assert_allclose(model.class_prior_, expected.class_prior_)
    assert_allclose(model.predict_proba(DOCUMENTS), expected.predict_proba(DOCUMENTS), atol=1e-12)


def test_labels_are_needed() -> None:
    with pytest.raises(InputError, match="No document with a label"):
        TextClassifier().fit(DOCUMENTS, [None] * 6)
    with pytest.raises(InputError, match="label is missing"):
        TextClassifier().partial_fit(DOCUMENTS, [*LABELS[:-1], None])
