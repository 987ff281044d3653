"""Functions between scores and probabilities: their identities, and what they are at the extremes."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from likely.functions import (
    inverse_probit,
    log_odds,
    log_sigmoid,
    log_softmax,
    logit,
    moderated,
    probit,
    scaled_probit,
    sigmoid,
    softmax,
)

FAR = np.array([-1e308, -1e4, -745.0, -40.0, -1.0, 0.0, 1e-20, 1.0, 40.0, 1e4, 1e308])


def test_the_sigmoid_has_its_identities() -> None:
    a = np.linspace(-30.0, 30.0, 1001)
    np.testing.assert_allclose(sigmoid(-a), 1.0 - sigmoid(a), atol=1e-15)
    step = 1e-6
    np.testing.assert_allclose(
        (sigmoid(a + step) - sigmoid(a - step)) / (2.0 * step), sigmoid(a) * (1.0 - sigmoid(a)), atol=1e-9
    )
    np.testing.assert_allclose(logit(sigmoid(a[300:700])), a[300:700], rtol=1e-9)
    np.testing.assert_allclose(softmax(np.column_stack([np.zeros_like(a), a]))[:, 1], sigmoid(a), rtol=1e-12)


def test_the_extremes_are_exact() -> None:
    np.testing.assert_array_equal(sigmoid([-np.inf, np.inf]), [0.0, 1.0])
    np.testing.assert_array_equal(logit([0.0, 0.5, 1.0]), [-np.inf, 0.0, np.inf])
    np.testing.assert_array_equal(probit([0.0, 0.5, 1.0]), [-np.inf, 0.0, np.inf])
    np.testing.assert_array_equal(log_sigmoid([-1e300, 1e300]), [-1e300, 0.0])
    assert log_sigmoid(-1000.0) == -1000.0
    assert sigmoid(-740.0) == np.exp(-740.0)
    np.testing.assert_array_equal(softmax([1e308, -1e308]), [1.0, 0.0])
    np.testing.assert_array_equal(softmax([-np.inf, 3.0]), [0.0, 1.0])
    np.testing.assert_array_equal(softmax([np.inf, np.inf, 0.0]), [0.5, 0.5, 0.0])
    assert np.isnan(softmax([-np.inf, -np.inf])).all()
    np.testing.assert_array_equal(log_softmax([0.0, -2000.0]), [0.0, -2000.0])
    np.testing.assert_array_equal(log_odds([0.0, 0.25, 1.0]), [-np.inf, logit(0.25), np.inf])
    np.testing.assert_array_equal(log_odds([0.0, 0.5], [0.5, 0.0]), [-np.inf, np.inf])
    np.testing.assert_allclose(log_odds(1e-300, 3e-300), -np.log(3.0), rtol=1e-12)
    for function in (sigmoid, log_sigmoid, inverse_probit, scaled_probit):
        assert np.all(np.diff(function(FAR)) >= 0.0)
        assert np.all(np.isfinite(function(FAR)))


def test_softmax_goes_along_any_axis() -> None:
    a = np.random.default_rng(0).normal(size=(3, 4, 5))
    for axis in (0, 1, 2, -1):
        np.testing.assert_allclose(softmax(a, axis).sum(axis=axis), 1.0, rtol=1e-14)
        np.testing.assert_allclose(np.exp(log_softmax(a, axis)), softmax(a, axis), rtol=1e-14)


def test_the_scaled_probit_is_the_counterpart_of_the_sigmoid() -> None:
    a = np.linspace(-20.0, 20.0, 4001)
    assert 0.0170 < np.abs(scaled_probit(a) - sigmoid(a)).max() < 0.018
    step = 1e-5
    np.testing.assert_allclose((scaled_probit(step) - scaled_probit(-step)) / (2.0 * step), 0.25, rtol=1e-9)
    np.testing.assert_allclose(inverse_probit(probit([1e-300, 0.3, 0.9])), [1e-300, 0.3, 0.9], rtol=1e-10)


@pytest.mark.parametrize(("centre", "variance"), [(0.0, 3.0), (1.5, 0.5), (-3.0, 8.0), (6.0, 20.0)])
def test_moderated_scores_have_the_mean_over_a_normal(centre: float, variance: float) -> None:
    def mean(function: object) -> float:
        assert callable(function)
        width = 12.0 * variance**0.5
        weight = norm(centre, variance**0.5).pdf
        return float(quad(lambda a: function(a) * weight(a), centre - width, centre + width, limit=200)[0])

    np.testing.assert_allclose(scaled_probit(moderated(centre, variance)), mean(scaled_probit), rtol=1e-7)  # exactly
    np.testing.assert_allclose(sigmoid(moderated(centre, variance)), mean(sigmoid), atol=0.02)  # nearly
