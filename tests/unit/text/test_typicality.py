"""Typicality of documents: uniform p-values of documents of the model, and exact probabilities of short documents."""

from __future__ import annotations

import tracemalloc
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest
from sklearn.feature_extraction.text import CountVectorizer

from likely import Bernoulli, Multinomial, Poisson, TextClassifier
from likely.text import typicality

WORDS = [f"w{j}" for j in range(30)]


def drawn(n: int, length: int, seed: int) -> tuple[list[str], Any]:
    """Documents of two classes, of which the first is twice as probable."""
    rng = np.random.default_rng(seed)
    codes, p = (rng.uniform(size=n) < 1 / 3).astype(int), rng.dirichlet(np.ones(len(WORDS)), size=2)
    return [" ".join(rng.choice(WORDS, size=length, p=p[k])) for k in codes], codes


def of_model(model: Any, n: int, length: int) -> list[str]:
    """Documents of a fitted multinomial model with smoothing 1, by its counts."""
    rng = np.random.default_rng(5)
    counts = model.term_counts_.toarray() + 1.0
    p = counts / counts.sum(axis=1, keepdims=True)
    codes = rng.choice(2, size=n, p=model.class_prior_)
    return [" ".join(rng.choice(model.terms_, size=length, p=p[k])) for k in codes]


@pytest.mark.parametrize("longest", [2000, 10])
def test_p_values_of_documents_of_the_model_are_uniform(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typicality, "LONGEST", longest)
    model = TextClassifier(family=Multinomial(smoothing=1)).fit(*drawn(90, 25, seed=0))
    for length in (8, 40):
        found = model.typicality(of_model(model, 400, length), n_samples=2000)
        assert kstest(found, "uniform").pvalue > 0.01


def test_p_values_of_a_bernoulli_model_are_uniform() -> None:
    documents, y = drawn(90, 25, seed=1)
    model = TextClassifier(family=Bernoulli(smoothing=1)).fit(documents, y)
    rng, (rows, weight) = np.random.default_rng(2), (model.term_counts_.shape[0], np.bincount(y))
    present = CountVectorizer(vocabulary=model.terms_, binary=True).transform(documents).toarray()
    p = np.array([(present[y == k].sum(axis=0) + 1.0) / (weight[k] + 2.0) for k in range(rows)])
    codes = rng.choice(2, size=400, p=model.class_prior_)
    new = [" ".join(np.array(model.terms_)[rng.uniform(size=len(p[k])) < p[k]]) for k in codes]
    assert kstest(model.typicality(new, n_samples=2000), "uniform").pvalue > 0.01


@pytest.mark.parametrize("family", [Multinomial(smoothing=1), Poisson(), Poisson("row totals")], ids=str)
def test_p_values_of_short_documents_are_sums_over_all_documents(family: Any) -> None:
    documents, y = ["a a b", "a b", "a a a c", "c c b", "c d", "c"], [0, 0, 0, 1, 1, 1]
    model = TextClassifier(CountVectorizer(token_pattern="[a-d]"), family).fit(documents, y)
    every = [" ".join(sequence) for sequence in product("abcd", repeat=3)]
    counts = [tuple(sorted(text)) for text in every]
    logs = model.log_density(every)  # of counts: sequences of the same counts share it
    share = np.exp(logs) / np.array([counts.count(each) for each in counts])
    expected = [share[logs <= log + 1e-9].sum() / share.sum() for log in logs]
    assert_allclose(model.typicality(every, n_samples=20_000), expected, rtol=0, atol=0.015)


def test_rare_terms_are_novel_and_lengths_are_comparable() -> None:
    documents, y = drawn(200, 25, seed=3)
    model = TextClassifier(family=Multinomial(smoothing=1)).fit(documents, y)
    order = np.argsort(model.term_counts_.toarray().sum(axis=0))
    terms = np.array(model.terms_)[order]
    usual, rare = documents[0], " ".join([terms[0]] * 25)
    p, score = model.typicality([usual, rare, "", "unknown"]), model.novelty([usual, rare, "", "unknown"])
    assert p[1] < 0.01 < p[0]
    assert_allclose(p[2:], 1.0)
    assert_allclose(score[[0, 2, 3]], -np.log10(p[[0, 2, 3]]), atol=1e-12)
    assert score[1] > 3.7
    assert model.novelty([" ".join([terms[0]] * 50)])[0] > score[1]
    assert_allclose(p, model.typicality([usual, rare, "", "unknown"]), rtol=0)


@pytest.mark.filterwarnings("ignore::likely.errors.TargetWarning")
def test_the_least_p_value_has_the_effective_number_of_draws() -> None:
    documents, y = ["a a a a"] * 99 + ["b"], [0] * 99 + [1]
    vectorizer = CountVectorizer(token_pattern="[a-c]", vocabulary=["a", "b", "c"])
    model = TextClassifier(vectorizer, Multinomial(smoothing=0.001), class_prior=[0.99, 0.01])
    model.fit(documents, y)
    weights = np.array([0.99, 0.01])
    found = model.typicality(["c c c c c c"], n_samples=50)[0]
    assert found == pytest.approx(1.0 / (50 / (weights**2).sum() + 1.0), rel=1e-9)


def test_draws_are_not_kept_for_all_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typicality, "KEPT", 2**14)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 2)
    documents = [" ".join(rng.choice(WORDS, 5)) for _ in y]
    model = TextClassifier(family=Multinomial(smoothing=1), calibration=None).fit(documents, y)
    new = [" ".join(rng.choice(WORDS, n)) for n in range(1, 100)]
    tracemalloc.start()
    found = model.novelty(new, n_samples=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(found).all()
    assert peak < 0.5 * 8 * 60 * 100 * 99  # of the draws of all classes
