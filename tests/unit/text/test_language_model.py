"""Language models: probabilities, perplexity, generated text, and the counts of pairs that order 2 needs."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from likely.errors import InputError, InputTypeError
from likely.statistics.bigram_counts import BigramCounts
from likely.text.language_model import (
    CONCENTRATIONS,
    SMOOTHING,
    LanguageModel,
    choose_concentrations,
    leave_one_out_scores,
    term_ids,
)
from likely.typing import Array, Codes
from tests.helpers import load_table

TEXTS = [
    "the cat sat on the mat",
    "the cat ate the fish",
    "a dog sat on the cat",
    "the dog ate a fish on the mat",
    "fish",
    "",
    "the the the cat",
]
TERMS = sorted({word for text in TEXTS for word in text.split()})
VOCABULARY = {term: i for i, term in enumerate(TERMS)}


@pytest.mark.parametrize("terms", range(2, 12))
def test_of_concentrations_that_differ_by_rounding_the_largest_is_chosen(terms: int) -> None:
    """Where no term follows two others, the probabilities are the same for all concentrations."""
    bigrams = BigramCounts.of([np.arange(terms, dtype=np.int32)], np.zeros(1, dtype=np.intp), None, 1)
    assert choose_concentrations(bigrams, np.ones((1, terms)), SMOOTHING).tolist() == [CONCENTRATIONS[-1]]


def numbers(texts: Sequence[str]) -> list[Codes]:
    return term_ids(texts, str.split, VOCABULARY)


def term_counts(texts: Sequence[str]) -> Array:
    return np.bincount(np.concatenate(numbers(texts)).astype(int), minlength=len(TERMS)).astype(float)


def pairs_of(texts: Sequence[str], codes: Any = None, weights: Any = None, n_classes: int = 1) -> BigramCounts:
    labels = np.zeros(len(texts), dtype=int) if codes is None else np.asarray(codes)
    return BigramCounts.of(numbers(texts), labels, None if weights is None else np.asarray(weights), n_classes)


def model_of(texts: Sequence[str] = TEXTS, order: int = 1, smoothing: float = 0.5, **options: Any) -> LanguageModel:
    bigrams = pairs_of(texts) if order == 2 else None
    return LanguageModel(TERMS, term_counts(texts), smoothing, bigrams=bigrams, **options)


def literal_pairs(texts: Sequence[str]) -> Counter[tuple[str, str]]:
    """Pairs of words, counted one at a time; the start is "^"."""
    return Counter(pair for text in texts for pair in itertools.pairwise(["^", *text.split()]))


def literal_probability(word: str, before: str, texts: Sequence[str], smoothing: float, mu: float | None) -> float:
    """The formula of the documentation, from words."""
    words = Counter(word for text in texts for word in text.split())
    known = words[word] if word in VOCABULARY else 0
    unigram = (known + smoothing) / (words.total() + smoothing * (len(TERMS) + 1))
    if mu is None:
        return unigram
    pairs = literal_pairs(texts)
    total = sum(count for (first, _), count in pairs.items() if first == before)
    return (pairs[before, word] + mu * unigram) / (total + mu)


# ---------------------------------------------------------------------------------------------- probabilities


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("history", [None, "", "the", "a dog", "sat nowhere", "mat", "unheard"])
def test_the_probabilities_of_the_next_term_sum_to_one(order: int, smoothing: float, history: str | None) -> None:
    frame = model_of(order=order, smoothing=smoothing).next_term(history)
    assert len(frame) == len(TERMS) + 1
    assert frame["probability"].sum() == pytest.approx(1.0, abs=1e-14)
    assert frame["probability"].is_monotonic_decreasing
    assert set(frame["term"].dropna()) == set(TERMS)


@pytest.mark.parametrize("mu", [None, 1.0, 30.0])
@pytest.mark.parametrize("smoothing", [0.1, 1.0])
def test_probabilities_equal_the_formula(mu: float | None, smoothing: float) -> None:
    options: dict[str, Any] = {} if mu is None else {"order": 2, "concentration": mu}
    model = model_of(smoothing=smoothing, **options)
    for before in ("^", "the", "sat", "mat", "unheard"):
        history = None if before == "^" else f"whatever {before}"
        frame = model.next_term(history).set_index("term")["probability"]
        for word in (*TERMS, "new"):
            expected = literal_probability(word, before, TEXTS, smoothing, mu)
            assert model.probability(word, history) == pytest.approx(expected, rel=1e-13)
            if word in VOCABULARY:
                assert frame[word] == pytest.approx(expected, rel=1e-13)
    assert model.unknown_probability == pytest.approx(1.0 - model.probabilities.sum(), abs=1e-14)


def test_known_terms_have_the_probabilities_of_multinomial_naive_bayes() -> None:
    """scikit-learn has no unknown term: its probabilities are those given that the term is known."""
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(TEXTS)
    reference = MultinomialNB(alpha=0.3).fit(X, np.zeros(len(TEXTS)))
    terms = vectorizer.get_feature_names_out()
    model = LanguageModel(terms, np.ravel(X.sum(axis=0)), 0.3, vectorizer.build_analyzer())
    known = model.probabilities / (1.0 - model.unknown_probability)
    assert_allclose(known, np.exp(reference.feature_log_prob_[0]), rtol=1e-12)


@pytest.mark.parametrize("mu", [None, 3.0])
@pytest.mark.parametrize("text", ["the cat sat", "fish", "a new dog ate the new the", "new", "the " * 50])
def test_perplexity_equals_a_literal_computation(mu: float | None, text: str) -> None:
    options: dict[str, Any] = {} if mu is None else {"order": 2, "concentration": mu}
    model = model_of(**options)
    pairs = list(itertools.pairwise(["^", *text.split()]))
    # An unknown term is no pair of the training texts, so that its literal count is 0 as well.
    probabilities = [literal_probability(word, before, TEXTS, 0.5, mu) for before, word in pairs]
    assert model.log_probability(text) == pytest.approx(math.log(math.prod(probabilities)), rel=1e-12)
    assert model.perplexity(text) == pytest.approx(math.prod(probabilities) ** (-1.0 / len(pairs)), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_several_texts_are_taken_together(order: int) -> None:
    model = model_of(order=order)
    assert model.log_probability(TEXTS) == pytest.approx(sum(map(model.log_probability, TEXTS)), rel=1e-12)
    total = len(" ".join(TEXTS).split())
    assert model.perplexity(TEXTS) == pytest.approx(math.exp(-model.log_probability(TEXTS) / total), rel=1e-12)
    assert model.perplexity(np.array(TEXTS)) == model.perplexity(tuple(TEXTS)) == model.perplexity(pl.Series(TEXTS))


def test_the_perplexity_of_equally_probable_terms_is_their_number() -> None:
    model = LanguageModel(["a", "b", "c"], np.zeros(3), smoothing=2.0)
    assert model.perplexity("a b c d a") == pytest.approx(4.0, rel=1e-14)  # the unknown term is the fourth


@pytest.mark.parametrize("order", [1, 2])
def test_a_text_without_terms_has_probability_one_and_no_perplexity(order: int) -> None:
    model = model_of(order=order)
    for text in ("", "   ", [], ["", ""]):
        assert model.log_probability(text) == 0.0
        assert math.isnan(model.perplexity(text))


@pytest.mark.parametrize("order", [1, 2])
def test_without_smoothing_unknown_terms_are_impossible(order: int) -> None:
    model = model_of(order=order, smoothing=0.0)
    assert model.log_probability("the cat new") == -math.inf
    assert model.perplexity("the cat new") == math.inf
    assert model.perplexity("the cat") < math.inf
    assert model.probability("new") == 0.0


def test_bigrams_depend_on_the_history_and_unigrams_do_not() -> None:
    one, two = model_of(), model_of(order=2, concentration=1.0)
    assert one.next_term("sat").equals(one.next_term("the"))
    assert two.next_term("sat")["term"][0] == "on"
    assert two.next_term("on")["term"][0] == "the"
    assert two.next_term()["term"][0] == two.next_term("")["term"][0] == "the"
    assert two.perplexity("the cat sat on the mat") < one.perplexity("the cat sat on the mat")
    assert two.perplexity("mat the on sat cat the") > two.perplexity("the cat sat on the mat")
    assert one.perplexity("mat the on sat cat the") == pytest.approx(one.perplexity("the cat sat on the mat"))


@pytest.mark.parametrize("order", [1, 2])
def test_probabilities_of_texts_follow_the_product_rule(order: int) -> None:
    model, words = model_of(order=order), ["a", "dog", "new", "sat", "on", "on", "the", "mat"]
    for i, word in enumerate(words):
        ratio = model.log_probability(" ".join(words[: i + 1])) - model.log_probability(" ".join(words[:i]))
        assert math.exp(ratio) == pytest.approx(model.probability(word, " ".join(words[:i])), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_the_order_of_the_vocabulary_does_not_matter(order: int) -> None:
    """Vocabularies that unite have their terms in another order, and many terms are equally probable."""
    model, shuffled = model_of(order=order), np.random.default_rng(0).permutation(len(TERMS))
    terms = [TERMS[i] for i in shuffled]
    bigrams = None if model.bigrams is None else model.bigrams.renumbered(np.argsort(shuffled), len(TERMS))
    other = LanguageModel(terms, term_counts(TEXTS)[shuffled], bigrams=bigrams)
    assert other.terms == model.terms == TERMS
    assert other.concentration == model.concentration
    assert other.to_frame().equals(model.to_frame())
    assert other.next_term("the").equals(model.next_term("the"))
    assert other.generate(200, random_state=0) == model.generate(200, random_state=0)
    assert other.perplexity("the cat is new") == model.perplexity("the cat is new")


def test_a_large_concentration_is_independence() -> None:
    one, two = model_of(), model_of(order=2, concentration=1e13)
    for history in (None, "the", "sat"):
        assert_allclose(two.next_term(history)["probability"], one.next_term()["probability"], rtol=1e-10)
    assert two.perplexity(TEXTS) == pytest.approx(one.perplexity(TEXTS), rel=1e-10)


# ------------------------------------------------------------------------------------------------- generation


def test_generated_terms_have_the_frequencies_of_the_unigrams() -> None:
    model = model_of()
    drawn = Counter(model.generate(20_000, random_state=0).split(" "))
    known = model.probabilities / model.probabilities.sum()
    assert scipy.stats.chisquare([drawn[term] for term in TERMS], 20_000 * known).pvalue > 0.01


def test_generated_pairs_have_the_frequencies_of_the_bigrams() -> None:
    model = model_of(order=2, concentration=3.0)
    words = model.generate(40_000, random_state=1).split(" ")
    pairs, firsts = Counter(itertools.pairwise(words)), Counter(words[:-1])
    for before in TERMS:
        expected = np.array([model.probability(word, before) for word in TERMS])
        observed = [pairs[before, word] for word in TERMS]
        assert scipy.stats.chisquare(observed, firsts[before] * expected / expected.sum()).pvalue > 0.001
    starts = Counter(model.generate(1, random_state=seed) for seed in range(2000))
    expected = np.array([model.probability(word) for word in TERMS])
    assert scipy.stats.chisquare([starts[word] for word in TERMS], 2000 * expected / expected.sum()).pvalue > 0.01


@pytest.mark.parametrize("order", [1, 2])
def test_generated_text_has_as_many_known_terms_as_wanted_and_repeats_with_its_seed(order: int) -> None:
    model = model_of(order=order, smoothing=5.0)
    for size in (0, 1, 500):
        text = model.generate(size, random_state=7)
        assert len(text.split()) == size
        assert set(text.split()) <= set(TERMS)
        assert text == model.generate(size, random_state=7)
        assert text == model.generate(size, random_state=np.random.RandomState(7))
    assert model.generate(50, random_state=1) != model.generate(50, random_state=2)


def test_terms_of_probability_zero_are_not_generated() -> None:
    model = LanguageModel(["a", "b", "c", "d"], np.array([0.0, 5.0, 0.0, 0.0]), smoothing=0.0)
    assert set(model.generate(500, random_state=0).split()) == {"b"}


# ---------------------------------------------------------------------------------------------- concentration


def brute_force_score(texts: Sequence[str], smoothing: float, mu: float) -> float:
    """The log-probability of each pair, counted again without this one occurrence of it and of its second term."""
    pairs = [pair for text in texts for pair in itertools.pairwise(["^", *text.split()])]
    total = 0.0
    for i, (before, word) in enumerate(pairs):
        others = pairs[:i] + pairs[i + 1 :]
        words = Counter(w for _, w in others)
        unigram = (words[word] + smoothing) / (len(others) + smoothing * (len(TERMS) + 1))
        after = Counter(w for v, w in others if v == before)
        total += math.log((after[word] + mu * unigram) / (after.total() + mu))
    return total


@pytest.mark.parametrize("smoothing", [0.1, 1.0])
def test_leave_one_out_equals_counting_again(smoothing: float) -> None:
    codes = np.array([0, 0, 1, 1, 0, 1, 0])
    classes = [[text for text, code in zip(TEXTS, codes, strict=True) if code == k] for k in (0, 1)]
    counts = np.stack([term_counts(texts) for texts in classes])
    pairs = pairs_of(TEXTS, codes, None, 2)
    expected = [[brute_force_score(texts, smoothing, mu) for mu in CONCENTRATIONS] for texts in classes]
    for k in (0, 1):
        scores = leave_one_out_scores(pairs.select(k), counts[k], smoothing, CONCENTRATIONS)
        assert_allclose(scores, expected[k], rtol=1e-12)
    chosen = choose_concentrations(pairs, counts, smoothing)
    assert_array_equal(chosen, choose_concentrations(pairs, scipy.sparse.csr_array(counts), smoothing))
    assert_array_equal(chosen, np.array(CONCENTRATIONS)[np.argmax(expected, axis=1)])
    for k in (0, 1):
        assert model_of(classes[k], order=2, smoothing=smoothing).concentration == chosen[k]


def test_dependent_terms_have_a_small_and_independent_terms_a_large_concentration() -> None:
    rng = np.random.default_rng(0)
    independent = [" ".join(rng.choice(TERMS, 30)) for _ in range(20)]
    cycle = [" ".join(TERMS[(i + j) % len(TERMS)] for j in range(30)) for i in range(20)]
    assert model_of(independent, order=2).concentration == 1000.0
    assert model_of(cycle, order=2).concentration == 1.0


def test_without_pairs_the_concentration_is_the_largest() -> None:
    model = LanguageModel(["a"], np.zeros(1), bigrams=BigramCounts.empty(1))
    assert model.concentration == 1000.0
    assert model.perplexity("a b") == pytest.approx(2.0)
    assert model.generate(3, random_state=0) == "a a a"


def test_pairs_that_are_impossible_for_every_concentration_are_not_compared() -> None:
    """Without smoothing, a term that occurs once has probability 0 in the texts without it."""
    texts = ["the cat", "the cat", "mat"]
    scores = leave_one_out_scores(pairs_of(texts), term_counts(texts), 0.0, (1.0, 3.0))
    # Without it, each pair is (1 + μ/4) / (c − 1 + μ), where c is 3 at the start and 2 after "the".
    expected = [2 * math.log((1 + mu / 4) / (2 + mu)) + 2 * math.log((1 + mu / 4) / (1 + mu)) for mu in (1.0, 3.0)]
    assert_allclose(scores, expected, rtol=1e-13)


def test_an_integer_weight_equals_repeated_texts_in_leave_one_out() -> None:
    weights = np.array([1, 2, 3, 0, 1, 4, 2])
    repeated = np.repeat(TEXTS, weights).tolist()
    for smoothing in (0.0, 0.1, 1.0):
        scores = [
            leave_one_out_scores(pairs, term_counts(repeated), smoothing, CONCENTRATIONS)
            for pairs in (pairs_of(TEXTS, None, weights), pairs_of(repeated))
        ]
        assert_allclose(scores[0], scores[1], rtol=1e-13)


def test_fractional_weights_have_a_finite_score() -> None:
    weights = np.full(len(TEXTS), 0.3)
    scores = leave_one_out_scores(pairs_of(TEXTS, None, weights), 0.3 * term_counts(TEXTS), 0.1, CONCENTRATIONS)
    assert np.all(np.isfinite(scores))


def test_sms_messages_in_well_below_a_second() -> None:
    """The messages of held-out rows have a lower perplexity with bigrams, and their choice of μ is nearly the best."""
    frame = load_table("sms_spam")
    texts, codes = frame["text"].tolist(), (frame["label"] == "spam").to_numpy().astype(int)
    train = np.arange(len(texts)) % 4 > 0
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform([text for text, used in zip(texts, train, strict=True) if used])
    analyzer, terms = vectorizer.build_analyzer(), vectorizer.get_feature_names_out()
    ids = term_ids(itertools.compress(texts, train), analyzer, vectorizer.vocabulary_)
    counts = np.stack([np.ravel(X[codes[train] == k].sum(axis=0)) for k in (0, 1)]).astype(float)
    start = time.process_time()
    bigrams = BigramCounts.of(ids, codes[train], None, 2)
    chosen = choose_concentrations(bigrams, counts, 0.5)
    assert time.process_time() - start < 0.5
    assert len(bigrams) < X.sum()
    for k in (0, 1):
        held_out = list(itertools.compress(texts, ~train & (codes == k)))
        perplexities = [
            LanguageModel(terms, counts[k], 0.5, analyzer, bigrams.select(k), mu).perplexity(held_out)
            for mu in CONCENTRATIONS
        ]
        assert perplexities[CONCENTRATIONS.index(chosen[k])] <= 1.02 * min(perplexities)
        assert min(perplexities) < 0.6 * LanguageModel(terms, counts[k], 0.5, analyzer).perplexity(held_out)


# ------------------------------------------------------------------------------------------------ unusual text


@pytest.mark.parametrize("library", [None, "polars", "pyarrow"])
def test_frames_of_every_library(library: str | None) -> None:
    model = model_of(order=2, library=library)
    for frame in (model.to_frame(), model.next_term("the")):
        columns = frame.to_pandas() if library else frame
        assert len(columns) == len(TERMS) + 1
        assert columns["term"].isna().sum() == 1
        assert columns["probability"].sum() == pytest.approx(1.0)
    frame = model_of().to_frame()
    assert frame["count"][frame["term"].isna()].tolist() == [0.0]
    counted = frame.set_index("term")["count"]
    assert counted["the"] == 10.0


@pytest.mark.parametrize("order", [1, 2])
def test_emoji_nul_surrogates_and_right_to_left_text(order: int) -> None:
    texts = ["😀 end\0 שלום", "\ud800 😀 end\0", "مرحبا 😀 end", "end\0 \0"]
    vocabulary = {term: i for i, term in enumerate(sorted({word for text in texts for word in text.split()}))}
    ids = term_ids(texts, str.split, vocabulary)
    counts = np.bincount(np.concatenate(ids).astype(int), minlength=len(vocabulary)).astype(float)
    bigrams = BigramCounts.of(ids, np.zeros(4, dtype=int), None, 1) if order == 2 else None
    model = LanguageModel(list(vocabulary), counts, bigrams=bigrams, concentration=1.0 if order == 2 else None)
    assert model.probability("end\0", "😀") > model.probability("end", "😀") > model.probability("endless", "😀")
    assert 1.0 < model.perplexity(texts) < 10.0
    frame = model.next_term("😀")
    assert frame["probability"].sum() == pytest.approx(1.0)
    shown = {term.replace("\ud800", "\\ud800") for term in vocabulary}  # frames cannot hold a lone surrogate
    assert set(frame["term"].dropna()) == shown
    assert set(model.generate(200, random_state=0).split()) == set(vocabulary)
    assert "😀" in str(model)
    assert "<table>" in model._repr_html_()


def test_a_text_of_a_million_terms() -> None:
    model = model_of(order=2, concentration=3.0)
    text = "the cat sat on " * 250_000
    assert model.perplexity(text) == pytest.approx(model.perplexity("the cat sat on " * 25_000), rel=1e-3)


def test_text_shows_the_most_probable_terms() -> None:
    assert str(model_of(["the the cat"], smoothing=0.0)).splitlines()[:4] == [
        "LanguageModel(order=1, n_terms=9, smoothing=0)",
        "",
        "term  count  probability",
        "the       2       0.6667",
    ]
    assert "concentration=" in repr(model_of(order=2))


def test_an_empty_vocabulary() -> None:
    model = LanguageModel([], np.zeros(0))
    assert model.unknown_probability == 1.0
    assert model.perplexity("a b") == 1.0
    assert model.generate(0) == ""
    with pytest.raises(InputError, match="vocabulary is empty"):
        model.generate(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a", "a"], [1, 2]), "Duplicate terms: 'a'"),
        ((["a", 3], [1, 2]), "terms, position 1: 3 is not a str"),
        ((["a", "b"], [1]), r"shape \(1,\), and there are 2 terms"),
        ((["a", "b"], [1, -2]), "-2 of the term 'b'"),
        ((["a", "b"], [1, np.nan]), "nan of the term 'b'"),
        ((["a"], [1], -1.0), "smoothing=-1.0"),
        ((["a"], [0], 0.0), "no terms"),
        ((["a"], [1], 0.5, str.split, None, 3.0), "needs bigrams"),
        ((["a"], [1], 0.5, str.split, BigramCounts.empty(2)), "Bigrams of 2 classes"),
        ((["a"], [1], 0.5, str.split, BigramCounts.empty(1), 0.0), "concentration=0.0"),
        ((["a"], [1], 0.5, str.split, pairs_of(TEXTS)), "terms beyond the 1"),
        ((TERMS[:-1], np.ones(len(TERMS) - 1), 0.5, str.split, pairs_of(TEXTS)), "terms beyond the 8"),
    ],
)
def test_wrong_arguments_are_errors(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LanguageModel(*arguments)


@pytest.mark.parametrize("text", [None, 3, b"the", ["the", None], [b"the"]])
def test_only_text_has_a_probability(text: Any) -> None:
    with pytest.raises(InputTypeError, match="str"):
        model_of().log_probability(text)
    with pytest.raises(InputTypeError, match="str"):
        model_of().perplexity(text)


@pytest.mark.parametrize("order", [1, 2])
def test_wrong_calls_are_errors(order: int) -> None:
    model = model_of(order=order)
    with pytest.raises(InputError, match="n_terms=-1"):
        model.generate(-1)
    with pytest.raises(InputError, match=r"n_terms=2\.5"):
        model.generate(2.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="random_state='x'"):
        model.generate(3, random_state="x")  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="history: 3 is not a str"):
        model.next_term(3)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="term: None is not a str"):
        model.probability(None)  # type: ignore[arg-type]
