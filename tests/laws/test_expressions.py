"""The expressions of densities, which are exported, equal the densities that NumPy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from likely import GenerativeClassifier, LogNormal, Multinomial, Poisson, QuadraticDiscriminant
from likely.export.program import Program
from likely.families.base import Conditionals
from likely.numerics.expressions import IMPOSSIBLE, Cell, code, missing, number
from tests.laws.families import CASES as FAMILY_CASES
from tests.laws.families import Case as FamilyCase
from tests.laws.families import OfPairs, every
from tests.laws.registry import Case, Floats, every_case, iris, parts, penguins
from tests.unit.export.arrays import evaluate

EXPRESSED = [case for case in FAMILY_CASES if not isinstance(case.member, OfPairs)]


def expressed(part: Conditionals, rows: Any, complete: bool = False) -> Floats:
    """The scores of rows (n, d) by the expressions of the densities, (classes, n)."""
    d, n = rows.shape[1], len(rows)
    if part.vocabularies is not None:
        cells = [Cell(code(j), code(j).equals(0.0)) for j in range(d)]
        values, codes = {}, {j: rows[:, j].astype(np.intp) for j in range(d)}
    else:
        cells = [Cell(number(j), None if complete else missing(j) | ~part.inside(j, number(j))) for j in range(d)]
        values, codes = {j: rows[:, j].astype(np.float64) for j in range(d)}, {}
    expressions = part.expressions(cells)
    assert expressions is not None
    scores = np.array(evaluate(Program.of(expressions), values, codes, n))
    return np.where(scores < IMPOSSIBLE, -np.inf, scores)


def assert_same_odds(scores: Floats, density: Floats, tolerance: float = 1e-10) -> None:
    """The same (classes, n) up to a term that all classes share, within tolerance · (1 + |log-odds|)."""
    never = np.isneginf(density)
    assert (np.isneginf(scores) == never).all()
    with np.errstate(invalid="ignore"):
        first, second = (np.where(never, 0.0, each - each.max(axis=0)) for each in (scores, density))
    possible = ~never.all(axis=0)
    assert_allclose(first[:, possible], second[:, possible], rtol=tolerance, atol=tolerance)


@every(EXPRESSED)
def test_expressions_of_families_equal_their_densities(case: FamilyCase) -> None:
    rows = case.member.table(seed=1)
    fitted = case.fit(rows)
    assert_same_odds(expressed(fitted, rows.X), fitted.log_density(rows.X))
    if not case.member.whole:
        some = case.member.incomplete(rows)
        assert_same_odds(expressed(fitted, some.X), fitted.log_density(some.X))


@every_case
def test_expressions_of_gaussians_equal_their_densities(case: Case) -> None:
    rows = penguins()
    fitted = parts(case.fit(rows))
    assert_same_odds(expressed(fitted, rows.X), fitted.scores(rows.X))
    assert_same_odds(expressed(fitted, rows.X, complete=True), fitted.scores(rows.X))
    X = rows.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    X[2] = np.nan
    assert_same_odds(expressed(fitted, X), fitted.scores(X))


@pytest.mark.parametrize("estimation", ["mle", "bayes"])
def test_expressions_of_gaussians_keep_the_units_of_columns(estimation: str) -> None:
    rows = penguins()
    X = rows.X * np.array([1e-100, 1.0, 1e100, 1.0])
    (block,) = QuadraticDiscriminant(estimation=estimation).fit(X, rows.y).model_.blocks
    fitted: Any = block.conditionals
    assert np.ptp(np.log(fitted.coordinates.unit)) > 100.0  # different units
    assert_same_odds(expressed(fitted, X, complete=True), fitted.log_density(X))


@pytest.mark.parametrize("estimation", ["mle", "map", "bayes"])
@pytest.mark.parametrize("exposure", ["column", "total"])
def test_expressions_of_rates_equal_their_densities(exposure: str, estimation: str) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 30)
    days = rng.uniform(0.5, 5.0, 90)
    X = np.column_stack([rng.poisson(days * rate) for rate in (2.0, 0.7)] + [days])
    X[:30, 0] += 3
    if exposure == "column":
        X[::7, 0], X[::11, 2] = np.nan, np.nan
        model = GenerativeClassifier({0: Poisson(2), 1: Poisson(2)}, estimation=estimation)
        part = model.fit(X, y).model_.blocks[0].conditionals
        rows = X[:, [0, 2]]
    else:
        model = GenerativeClassifier(Poisson("row totals"), estimation=estimation)
        rows = X[:, :2]
        rows[5] = 0.0
        part = model.fit(rows, y).model_.blocks[0].conditionals
    assert_same_odds(expressed(part, rows), part.log_density(rows))


def test_expressions_of_complement_scores_equal_them() -> None:
    X = np.random.default_rng(0).poisson(2.0, (40, 3)).astype(float)
    model = GenerativeClassifier(Multinomial(complement=True, smoothing=1.0)).fit(X, np.arange(40) % 3)
    part = model.model_.blocks[0].conditionals
    assert_same_odds(expressed(part, X), part.scores(X))


@pytest.mark.parametrize("estimation", ["mle", "bayes"])
def test_expressions_of_joint_logarithms_equal_their_densities(estimation: str) -> None:
    rows = iris()
    model = GenerativeClassifier(LogNormal(covariance="full", log=["x0", "x2"]), estimation=estimation).fit(
        rows.X, rows.y
    )
    part = model.model_.blocks[0].conditionals
    X = rows.X.copy()
    X[::3, 0], X[::4, 1] = np.nan, np.nan
    assert_same_odds(expressed(part, X), part.scores(X))
    assert_same_odds(expressed(part, rows.X, complete=True), part.scores(rows.X))


@pytest.mark.parametrize("count", [0.0, 3.0, 1e3, 1e6, 1e12])
@every([case for case in EXPRESSED if case.member.linear and not case.member.whole and case.estimation == "bayes"])
def test_expressions_of_counts_keep_their_digits_at_large_counts(case: FamilyCase, count: float) -> None:
    if not case.member.family.support.inside(np.array([count])).all():
        return
    fitted = case.fit(case.member.table(seed=2))
    rows = np.full((1, fitted.dimension), count)
    assert_same_odds(expressed(fitted, rows), fitted.log_density(rows))
