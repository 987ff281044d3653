"""Numerical helpers against SciPy, NumPy's dense algebra, and identities."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln, log_softmax, logsumexp, softmax

from likely.errors import CellError
from likely.numerics.acceleration import AndersonAcceleration
from likely.numerics.arrays import all_finite, check_finite, power_of_two
from likely.numerics.linalg import independent_columns, range_whitener, whitener
from likely.numerics.progress import row_line
from likely.numerics.special import log_gamma_ratio, log_softmax_into, log_sum_exp, softmax_into
from likely.numerics.ties import exceeds, first_best, tie_ranks
from tests.laws.registry import Floats

# Sums of exponentials.

SCORES = np.array(
    [
        [0.0, 1e300, -1e300, -745.0, 3.0, -np.inf],
        [0.5, 1e300, -1e300, -800.0, -np.inf, 2.0],
        [-2.0, 0.0, 0.0, -2000.0, 700.0, -np.inf],
    ]
)


def test_log_sum_exp_is_that_of_scipy_at_any_size() -> None:
    assert_allclose(log_sum_exp(SCORES), logsumexp(SCORES, axis=0), rtol=1e-14)
    assert log_sum_exp(np.full((3, 1), -np.inf)).tolist() == [-np.inf]


def test_softmax_is_that_of_scipy_and_written_rows_first() -> None:
    out = np.empty((6, 3))
    softmax_into(SCORES.copy(), out)
    assert_allclose(out, softmax(SCORES, axis=0).T, rtol=1e-14, atol=1e-300)
    assert_allclose(out.sum(axis=1), 1.0, rtol=1e-15)


def test_log_softmax_keeps_the_digits_of_the_unlikely() -> None:
    out = np.empty((6, 3))
    log_softmax_into(SCORES.copy(), out)
    assert_allclose(out, log_softmax(SCORES, axis=0).T, rtol=1e-14)


# Scores that are equal up to rounding.


def test_of_scores_that_differ_by_rounding_the_first_is_the_best() -> None:
    tied = np.array([0.1 + 0.2, 0.3, np.nextafter(0.3, 1.0), 0.2, -np.inf, -np.inf])
    for order in (np.arange(6), np.arange(6)[::-1], np.array([3, 1, 4, 2, 0, 5])):
        assert first_best(tied[order]) == np.flatnonzero(tied[order] > 0.25)[0]
        assert tie_ranks(tied[order]).tolist() == np.array([0, 0, 0, 1, 2, 2])[order].tolist()
    assert first_best([-np.inf, -np.inf]) == 0
    assert first_best([np.nan, 1.0]) == 1
    assert tie_ranks([1e-12, 2e-12]).tolist() == [0, 0]
    assert tie_ranks([1e-12, 2e-12], unit=0.0).tolist() == [1, 0]
    assert exceeds(np.array([0.3, 0.30001, 0.0]), np.array([0.1 + 0.2, 0.3, -np.inf])).tolist() == [False, True, True]
    assert not exceeds(-np.inf, -np.inf)


# Factors.


def random_covariance(d: int, seed: int) -> Floats:
    root = np.random.default_rng(seed).standard_normal((d, 2 * d))
    return root @ root.T


@pytest.mark.parametrize("d", [1, 2, 7, 40])
def test_the_whitener_is_upper_triangular_and_whitens(d: int) -> None:
    matrix = random_covariance(d, d)
    factor = whitener(matrix)
    assert factor is not None
    assert_array_equal(factor, np.triu(factor))
    assert_allclose(factor.T @ matrix @ factor, np.eye(d), atol=1e-11)
    assert_allclose(factor @ factor.T, np.linalg.inv(matrix), rtol=1e-7, atol=1e-10)


def test_the_whitener_does_not_mind_units_of_many_sizes() -> None:
    matrix, unit = random_covariance(4, 1), np.array([1e-120, 1.0, 1e100, 1e-3])
    scaled, plain = whitener(matrix * unit * unit[:, None]), whitener(matrix)
    assert scaled is not None
    assert plain is not None
    assert_allclose(scaled * unit[:, None], plain, rtol=1e-12)


def test_a_matrix_without_full_rank_has_no_whitener() -> None:
    matrix = random_covariance(3, 2)
    combination = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, -2.0, 0.5]])
    assert whitener(combination @ matrix @ combination.T) is None
    assert whitener(np.diag([1.0, 0.0])) is None
    assert whitener(np.array([[1.0, 2.0], [2.0, 1.0]])) is None


def test_independent_columns_are_the_first_ones_that_span_the_rest() -> None:
    base = np.random.default_rng(3).standard_normal((50, 3))
    a, b, c = base.T
    X = np.column_stack([a, 2 * a, b, np.zeros(50), a - 3 * b, c, a + b + c])
    X = (X - X.mean(axis=0)) * np.array([1.0, 1e6, 1e-6, 1.0, 1.0, 1e3, 1.0])
    kept, others = independent_columns(X.T @ X)
    assert kept.tolist() == [0, 2, 5]
    assert others.tolist() == [1, 3, 4, 6]


def test_the_range_whitener_whitens_what_varies_and_reads_columns_in_turn() -> None:
    root = np.random.default_rng(4).standard_normal((6, 4))
    matrix = root @ root.T
    factor = range_whitener(matrix)
    assert factor.shape == (6, 4)
    assert_allclose(factor.T @ matrix @ factor, np.eye(4), atol=1e-9)
    # Distances inside the range are those of the pseudo-inverse on the correlation scale.
    unit = np.sqrt(np.diag(matrix))
    inverse = np.linalg.pinv(matrix / unit / unit[:, None], rcond=1e-10) / unit / unit[:, None]
    assert_allclose(factor @ factor.T, inverse, atol=1e-8 * np.abs(inverse).max())
    for i in range(4):
        assert_allclose(factor[6 - 4 + i + 1 :, i], 0.0, atol=1e-12)


# Gamma functions.


@pytest.mark.parametrize("b", [0.0, 0.5, 1.0, 2.5, 10.0])
def test_log_gamma_ratio_is_the_difference_of_scipys_logarithms_where_they_do_not_cancel(b: float) -> None:
    a = np.concatenate([np.geomspace(1e-3, 29.9, 40), np.geomspace(30.0, 300.0, 20)])
    assert_allclose(log_gamma_ratio(a, b), gammaln(a + b) - gammaln(a), rtol=1e-11, atol=1e-11)


def test_log_gamma_ratio_of_whole_steps_is_the_logarithm_of_a_product() -> None:
    """Γ(a + n)/Γ(a) = a(a + 1)···(a + n − 1), in exact arithmetic."""
    for a in (0.5, 3.25, 29.5, 30.0, 1e3, 123456.5, 1e9, 1e15):
        for n in (1, 2, 7):
            product = Fraction(1)
            for i in range(n):
                product *= Fraction(a) + i
            with localcontext() as context:
                context.prec = 40
                expected = float((Decimal(product.numerator) / Decimal(product.denominator)).ln())
            assert log_gamma_ratio(np.array([a]), float(n))[0] == pytest.approx(expected, rel=2e-14, abs=1e-14)


def test_two_half_steps_of_log_gamma_ratio_are_one_whole_step() -> None:
    a = np.geomspace(1.0, 1e14, 60)
    steps = log_gamma_ratio(a, 0.5) + log_gamma_ratio(a + 0.5, 0.5)
    assert_allclose(steps, np.log(a), rtol=1e-13, atol=1e-13)


def test_log_gamma_ratio_of_small_steps_has_the_digamma_slope_at_large_arguments() -> None:
    """Γ(a + ½)/Γ(a) = √a · (1 − 1/(8a) + 1/(128a²) + …)."""
    a = np.geomspace(1e4, 1e16, 13)
    expected = 0.5 * np.log(a) + np.log1p(-1 / (8 * a) + 1 / (128 * a**2))
    assert_allclose(log_gamma_ratio(a, 0.5), expected, rtol=1e-14)


# Finiteness and units.


def test_finite_values_are_finite_even_where_their_sum_is_not() -> None:
    assert all_finite(np.array([1e308, 1e308, -1e308]))
    assert all_finite(np.array([1, 2, 3]))
    assert not all_finite(np.array([1.0, np.nan]))
    assert not all_finite(np.array([np.inf, -np.inf]))


def test_the_first_cell_that_is_not_finite_is_named() -> None:
    rows = np.ones((5, 3))
    check_finite(rows)
    rows[3, 2], rows[4, 0] = np.inf, np.nan
    with pytest.raises(CellError) as caught:
        check_finite(rows)
    assert (caught.value.row, caught.value.column, caught.value.value) == (3, 2, np.inf)


def test_powers_of_two_are_just_above_the_magnitudes() -> None:
    magnitude = np.array([0.0, 1.0, 1.5, 3e200, 5e-300, 1024.0])
    unit = power_of_two(magnitude)
    assert unit[0] == 1.0
    assert np.all(np.frexp(unit)[0] == 0.5)
    assert np.all((magnitude[1:] / unit[1:] >= 0.5) & (magnitude[1:] / unit[1:] < 1.0))


def test_extrapolation_finds_where_a_linear_iteration_ends() -> None:
    rng = np.random.default_rng(0)
    slow = np.linalg.qr(rng.standard_normal((4, 4)))[0] * np.array([0.999, -0.9, 0.5, 0.99])
    slow = slow @ np.linalg.qr(rng.standard_normal((4, 4)))[0] / 1.1
    end = rng.standard_normal(4)
    heading, x = AndersonAcceleration(np.diag([1.0, 2.0, 1.0, 0.5])), np.zeros((1, 4))
    for _ in range(6):
        target = end + (x - end) @ slow.T
        ahead = heading.ahead(x, target)
        x = target if ahead is None else ahead
    assert_allclose(x[0], end, rtol=1e-8)
    assert np.abs(np.linalg.matrix_power(slow, 6) @ end).max() > 1e-3  # by itself it would still be far
    heading.forget()
    assert heading.ahead(x, x + 1.0) is not None  # the last point is remembered


def test_progress_in_rows_shows_their_rate_and_the_time_left() -> None:
    assert row_line(1_200_000, 2_000_000, 3.0) == "1,200,000 of 2,000,000 rows, 400,000 rows/s, 2 s left"
    assert row_line(50, None, 0.5) == "50 rows, 100 rows/s"
