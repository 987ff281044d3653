"""Densities of targets given other columns: residuals of few rows, and quantiles of mixtures with certain parts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from likely.families.gaussian.conditional import ConditionalDensity, EmpiricalBayesRidge, PredictiveMixture


@pytest.mark.parametrize(("rows", "weight"), [(0.0, 1.0), (1.0, 1.0 / 16.0), (3.0, 1.0 / 256.0)])
def test_the_prior_scale_counts_for_less_the_more_rows_the_residuals_have(rows: float, weight: float) -> None:
    """Without inputs, the residual degrees of freedom are the rows: the prior weighs (1 + rows)⁻⁴."""
    scale, sums = np.diag([2.0, 3.0]), np.array([[5.0, 1.0], [1.0, 4.0]])
    ridge = EmpiricalBayesRidge(scale, np.array([rows]), np.ones(1))
    slopes, residual, degrees = ridge.applied(scale + sums, 0, 0)
    assert slopes.shape == (2, 0)
    assert_allclose(residual, (sums + weight * scale) / (rows + weight), rtol=1e-13)
    assert_allclose(degrees, rows + weight, rtol=1e-15)


@pytest.mark.parametrize(
    ("chance", "certain", "expected"),
    [
        (0.1, 0.0, 0.0),  # in the step of a certain part below
        (0.65, 0.0, 5.0),
        (0.35, 9.0, 5.0),
        (0.9, 9.0, 9.0),  # in the step of a certain part above
        (0.5, 5.0, 5.0),
        (0.07, 5.0, 5.0 + norm.ppf(0.1)),
    ],
)
def test_quantiles_of_a_mixture_with_a_certain_part(chance: float, certain: float, expected: float) -> None:
    """P(y <= q) of 0.3 at a point and 0.7 of a Gaussian with mean 5."""
    one = np.ones((1, 1))
    point, gaussian = (
        ConditionalDensity(location * one, scale * one[None], np.ones(1), np.full(1, np.inf))
        for location, scale in ((certain, 0.0), (5.0, 1.0))
    )
    mixture = PredictiveMixture([point, gaussian], np.array([[0.3], [0.7]]))
    assert_allclose(mixture.quantile(chance), [[expected]], rtol=1e-10, atol=1e-10)
