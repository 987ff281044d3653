"""Samples of training rows, and rows in parts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from likely import EvidenceClassifier
from likely.evidence import training as module
from likely.evidence.training import proportional_sample, rows_at_a_time


def test_a_sample_has_classes_in_proportion_and_a_hundred_rows_of_rare_ones() -> None:
    codes = np.repeat([0, 1, 2, 3], [9000, 900, 90, 10])
    drawn = proportional_sample(codes, 4, 1000)
    assert_array_equal(np.bincount(codes[drawn]), [900, 100, 90, 10])
    assert_array_equal(drawn[:900], np.arange(900))  # the first rows of each class
    assert_array_equal(proportional_sample(codes, 4, 10_000), np.arange(10_000))


def test_a_sample_of_very_many_classes_is_not_much_larger_than_asked() -> None:
    codes = np.random.default_rng(0).permutation(np.arange(20_000) % 1000)
    drawn = proportional_sample(codes, 1000, 4000)
    assert_array_equal(np.bincount(codes[drawn]), np.full(1000, 4))
    uneven = np.repeat(np.arange(500), 1 + np.arange(500))
    assert len(proportional_sample(uneven, 500, 5000)) <= 1.5 * 5000 + 500
    assert len(np.unique(uneven[proportional_sample(uneven, 500, 500)])) == 500


def test_wide_rows_come_in_small_parts() -> None:
    assert rows_at_a_time(50) == 20_000
    assert 100 < rows_at_a_time(10_000) < 1000
    assert rows_at_a_time(10**9) == 100


def test_results_do_not_depend_on_the_size_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_iris(return_X_y=True)
    whole = EvidenceClassifier(n_trees=5, max_rows=100).fit(X[:140], y[:140])
    probabilities, explained = whole.predict_proba(X), whole.explain(X).evidence
    monkeypatch.setattr(module, "rows_at_a_time", lambda numbers: 7)
    parts = EvidenceClassifier(n_trees=5, max_rows=100).fit(X[:140], y[:140])
    assert_allclose(parts.predict_proba(X), probabilities, atol=1e-12)
    monkeypatch.setattr("likely.evidence.classifier.rows_at_a_time", lambda numbers: 7)
    assert_allclose(parts.predict_proba(X), probabilities, atol=1e-12)
    assert_allclose(parts.explain(X).evidence, explained, atol=1e-12)
