"""Softmax regression with penalties and values near the limits of floating-point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from likely import SoftmaxRegression
from likely.errors import LikelyError, SeparationError


def separable() -> tuple[Any, Any]:
    return np.random.default_rng(0).normal(size=(10, 20)), np.arange(10) % 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("penalty", [1e-300, 1e-30, 1e-20, 1e-18, 1e-15])
def test_tiny_penalties_of_separable_rows_have_a_finite_minimum(penalty: float) -> None:
    X, y = separable()
    model = SoftmaxRegression(penalty=penalty).fit(X, y)
    assert model.converged_
    assert 5.0 < np.abs(model.coef_).max() < 20.0
    assert model.predict_proba(X)[np.arange(10), y].min() > 1.0 - 1e-10
    with pytest.raises(SeparationError):
        SoftmaxRegression(penalty=0.0).fit(X, y)


@pytest.mark.filterwarnings("error")
def test_a_change_of_units_is_a_change_of_the_penalty() -> None:
    X, y = separable()
    for unit in (1e3, 1e9, 1e100, 1e139):
        scaled = SoftmaxRegression(penalty=1.0).fit(X * unit, y)
        plain = SoftmaxRegression(penalty=1.0 / unit / unit).fit(X, y)
        assert scaled.converged_
        assert_allclose(scaled.coef_ * unit, plain.coef_, rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning")
@pytest.mark.parametrize("options", [{}, {"penalty": 0.0}, {"estimation": "bayes"}, {"fit_intercept": False}])
def test_values_near_the_limits(options: dict[str, Any]) -> None:
    """Results are finite, and errors are those of the library."""
    rng = np.random.default_rng(0)
    finite = 0
    draws = 100 if options == {"penalty": 0.0} else 40  # few tables have finite coefficients without a penalty
    for _ in range(draws):
        X = rng.choice([0.0, 1.0, -1.0, 1e140, -1e140, 1e130, 1e-164, 3e139, 1e100], size=(6, 2))
        y, weights = np.append([0, 1], rng.integers(0, 3, 4)), np.append([1, 1], rng.integers(0, 3, 4))
        try:
            model = SoftmaxRegression(**options).fit(X, y, sample_weight=weights)
            found = model.predict_proba(X)
            assert str(model.summary())
        except LikelyError:
            continue
        assert np.all(np.isfinite(found))
        finite += 1
    assert finite > (8 if options != {"penalty": 0.0} else 0)


def test_rows_of_weight_zero_do_not_change_anything() -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    far, weights = X.copy(), np.ones(40)
    far[3], weights[3] = 1e200, 0.0
    model = SoftmaxRegression().fit(far, y, sample_weight=weights)
    alone = SoftmaxRegression().fit(np.delete(X, 3, axis=0), np.delete(y, 3))
    assert_allclose(model.coef_, alone.coef_, rtol=1e-9)
    assert model.summary().rows == alone.summary().rows == 39
