"""Probabilities of intervals, against integrals of SciPy's densities."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad

from likely.numerics.intervals import log_gamma_interval, log_student_density, log_student_interval


def integrated(density: stats.rv_frozen, low: float, high: float) -> float:
    """log ∫ density from low to high, scaled by its largest value so that it does not underflow."""
    top = max(density.logpdf(np.linspace(low, high, 9)))
    total, _ = quad(lambda u: np.exp(density.logpdf(low + u * (high - low)) - top), 0, 1, epsabs=0, epsrel=1e-10)
    return float(top + np.log(high - low) + np.log(total))


@pytest.mark.parametrize("degrees", [1.5, 3.0, 50.0, 4000.0])
@pytest.mark.parametrize(
    ("low", "high"), [(-0.5, 0.5), (-3.0, 8.0), (5.0, 6.0), (-30.1, -30.0), (1e-9, 2e-9), (3.0, 3.0 + 1e-9)]
)
def test_intervals_of_students_t(low: float, high: float, degrees: float) -> None:
    got = log_student_interval(np.array([low]), np.array([high]), np.array([degrees]))[0]
    assert_allclose(got, integrated(stats.t(degrees), low, high), rtol=0, atol=1e-6)
    assert_allclose(log_student_density(np.array(low), np.array(degrees)), stats.t(degrees).logpdf(low), rtol=1e-10)


@pytest.mark.parametrize(("low", "high"), [(60.0, 61.0), (-61.0, -60.0), (200.0, 201.0), (80.0, 80.0 + 1e-6)])
def test_the_far_tail_of_students_t_does_not_underflow(low: float, high: float) -> None:
    got = log_student_interval(np.array(low), np.array(high), np.array(4000.0))
    assert_allclose(got, integrated(stats.t(4000.0), low, high), rtol=0, atol=2e-3)


@pytest.mark.parametrize(
    ("x", "shape", "rate"),
    [(1.0, 1.2, 0.1), (1.0, 50.0, 1.0), (501.0, 3.0, 1.0), (1e6, 3.0, 3e-6), (1e10, 3.0, 3e-10), (1.0, 0.1, 100.0)],
)
def test_intervals_of_gamma_variables(x: float, shape: float, rate: float) -> None:
    density = stats.gamma(shape, scale=1.0 / rate)
    got = log_gamma_interval(*map(np.array, (x - 0.5, x + 0.5, shape, rate, density.logpdf(x))))
    assert_allclose(got, integrated(density, x - 0.5, x + 0.5), rtol=1e-9)
