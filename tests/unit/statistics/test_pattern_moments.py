"""Moments per missingness pattern as values: sums, subsets of columns and classes, and files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likely import Gaussian
from likely.families.base import Columns
from likely.statistics.moments import Moments
from likely.statistics.pattern_moments import PatternMoments
from tests.helpers import fits


def collected(X: Any, codes: Any, shared: bool = False) -> Any:
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    accumulator = Gaussian(shared=shared)._accumulator(np.array(["a", "b"]), Columns(names))
    accumulator.add(X, codes)
    return accumulator.finish()


def drawn(rows: int = 80) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, np.arange(rows) % 2


def assert_same(mine: Any, yours: Any) -> None:
    assert type(mine) is type(yours)
    pairs = [(mine, yours)]
    if isinstance(mine, PatternMoments):
        assert fits(mine)
        found = [{mask.tobytes(): part for mask, part in zip(s.missing, s.parts, strict=True)} for s in (mine, yours)]
        assert found[0].keys() == found[1].keys()
        pairs = [(mine.complete, yours.complete), *((found[0][mask], found[1][mask]) for mask in found[0])]
    for a, b in pairs:
        assert_array_equal(a.rows, b.rows)
        for name in ("weight", "mean", "scatter"):
            assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
def test_plain_and_pattern_moments_add_up_in_any_order(shared: bool) -> None:
    X, codes = drawn()
    complete = ~np.isnan(X).any(axis=1)
    whole = collected(X, codes, shared)
    plain, incomplete = (
        collected(X[complete], codes[complete], shared),
        collected(X[~complete], codes[~complete], shared),
    )
    assert isinstance(plain, Moments)
    assert isinstance(incomplete, PatternMoments)
    assert_same(plain + incomplete, whole)
    assert_same(incomplete + plain, whole)
    assert_same(whole - plain, incomplete)
    assert_same(whole - incomplete, plain)


def test_columns_and_classes_can_be_taken() -> None:
    X, codes = drawn()
    whole = collected(X, codes)
    for columns in ([0, 1, 2, 3], [2, 0], [3], [1, 3, 0]):
        assert_same(whole.take(np.array(columns)), collected(X[:, columns], codes))
    other = whole.select(np.array([False, True]))
    assert_array_equal(other.classes, ["b"])
    assert_allclose(other.available.mean[0], np.nanmean(X[codes == 1], axis=0))


def test_available_values_are_those_of_each_column() -> None:
    X, codes = drawn()
    available = collected(X, codes).available
    for k in range(2):
        assert_array_equal(available.rows[k], (~np.isnan(X[codes == k])).sum(axis=0))
        assert_allclose(available.mean[k], np.nanmean(X[codes == k], axis=0))
        assert_allclose(available.squares[k], available.rows[k] * np.nanvar(X[codes == k], axis=0))


def test_what_no_rows_can_have_is_refused() -> None:
    X, codes = drawn()
    fine = collected(X, codes)
    assert fits(fine)
    twice = np.repeat(fine.missing[:1], len(fine.missing), axis=0)
    assert not fits(replace(fine, missing=twice))
    assert not fits(replace(fine, missing=np.zeros_like(fine.missing)))
    assert not fits(replace(fine, parts=fine.parts[1:]))
    assert not fits(replace(fine, parts=(fine.complete, *fine.parts[1:])))
