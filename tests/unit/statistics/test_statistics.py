"""Moments and counts against sums over the raw rows, exact where exactness is promised."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likely.errors import CellError, InputError
from likely.families.gaussian.accumulator import MomentsAccumulator
from likely.numerics.coordinates import Coordinates
from likely.statistics.counts import Counts, unite_classes
from likely.statistics.moments import Moments, Sharing
from tests.laws.registry import Floats, Rows, random_rows

SHARINGS = [Sharing(everyone=True), Sharing(groups=(("a", "c"),)), Sharing()]


def build(rows: Rows, sharing: Sharing, *, full: bool = True, tails: bool = False, weights: Any = None) -> Moments:
    builder = MomentsAccumulator(rows.classes, rows.X.shape[1], sharing, full, tails)
    builder.add(rows.X, rows.codes, weights)
    return builder.finish()


def weighted_scatter(X: Floats, weights: Floats) -> Floats:
    centred = X - np.average(X, axis=0, weights=weights)
    return (weights[:, None] * centred).T @ centred


# Moments.


@pytest.mark.parametrize("sharing", SHARINGS, ids=["shared", "grouped", "own"])
@pytest.mark.parametrize("full", [True, False], ids=["full", "squares"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_moments_are_the_sums_over_the_rows(sharing: Sharing, full: bool, weighted: bool) -> None:
    rows = random_rows(1, sizes=(9, 8, 7, 1))
    rng = np.random.default_rng(1)
    weights = rng.choice([0.0, 0.5, 3.0], size=len(rows.y)) if weighted else np.ones(len(rows.y))
    weights[rows.y == "d"] = 2.0
    moments = build(rows, sharing, full=full, weights=weights if weighted else None)
    expected = np.zeros_like(moments.scatter)
    for k, label in enumerate(rows.classes):
        mine = rows.y == label
        X, w = rows.X[mine], weights[mine] if weighted else np.ones(mine.sum())
        assert moments.rows[k] == np.count_nonzero(w)
        assert moments.weight[k] == pytest.approx(w.sum(), rel=1e-14)
        assert_allclose(moments.mean[k], np.average(X, axis=0, weights=w), rtol=1e-13)
        scatter = weighted_scatter(X, w)
        expected[moments.group[k]] += scatter if full else np.diag(scatter)
    assert_allclose(moments.scatter, expected, rtol=1e-12, atol=1e-12)


def test_tails_are_the_third_and_fourth_powers_of_the_distances_from_the_class_means() -> None:
    rows = random_rows(2)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(rows.y))
    moments = build(rows, Sharing(), tails=True, weights=weights)
    assert moments.tails is not None
    for k, label in enumerate(rows.classes):
        mine = rows.y == label
        w = weights[mine]
        r = rows.X[mine] - np.average(rows.X[mine], axis=0, weights=w)
        square = (r**2).sum(axis=1)
        assert_allclose(moments.tails.cubic[k], (w * square) @ r, rtol=1e-10, atol=1e-10)
        assert_allclose(moments.tails.quartic[k], (w * square**2).sum(), rtol=1e-12)


def test_pooling_scatters_later_equals_pooling_them_at_once() -> None:
    rows = random_rows(3)
    per_class = build(rows, Sharing())
    for sharing in SHARINGS:
        assert_allclose(per_class.pool(sharing).scatter, build(rows, sharing).scatter, rtol=1e-12, atol=1e-12)


def test_the_moments_of_some_columns_are_those_of_the_rows_without_the_others() -> None:
    rows = random_rows(4)
    columns = np.array([2, 0])
    taken, direct = build(rows, Sharing()).take(columns), build(Rows(rows.X[:, columns], rows.y), Sharing())
    assert_allclose(taken.mean, direct.mean, rtol=1e-14)
    assert_allclose(taken.scatter, direct.scatter, rtol=1e-12)


def test_squares_about_the_overall_mean_are_those_of_all_rows() -> None:
    rows = random_rows(5)
    for sharing in SHARINGS:
        moments = build(rows, sharing)
        assert_allclose(moments.overall_mean, rows.X.mean(axis=0), rtol=1e-12, atol=1e-13)
        assert_allclose(moments.total_squares, rows.X.var(axis=0) * len(rows.X), rtol=1e-12)


def test_asking_a_builder_twice_gives_the_same_moments() -> None:
    rows = random_rows(6)
    builder = MomentsAccumulator(rows.classes, 3, Sharing(), full=True)
    for part in np.array_split(np.arange(len(rows.y)), 5):
        builder.add(rows.X[part], rows.codes[part])
    direct = build(rows, Sharing())
    for _ in range(3):
        moments = builder.finish()
        assert_allclose(moments.mean, direct.mean, rtol=1e-12)
        assert_allclose(moments.scatter, direct.scatter, rtol=1e-11, atol=1e-11)


def test_moments_stay_what_they_are_when_their_builder_goes_on() -> None:
    rows = random_rows(6)
    builder = MomentsAccumulator(rows.classes, 3, Sharing(), full=True)
    builder.add(rows.X[:20], rows.codes[:20])
    first = builder.finish()
    mean, scatter, weight = first.mean.copy(), first.scatter.copy(), first.weight.copy()
    builder.add(rows.X[20:], rows.codes[20:])
    assert_allclose(builder.finish().scatter, build(rows, Sharing()).scatter, rtol=1e-11, atol=1e-11)
    assert_array_equal(first.weight, weight)
    assert_array_equal(first.mean, mean)
    assert_array_equal(first.scatter, scatter)


@pytest.mark.parametrize("value", [0.1, 1e8 / 3, -1e140 / 7])
def test_a_constant_column_has_exactly_no_variance_in_any_blocks_and_weights(value: float) -> None:
    rows = random_rows(7)
    X = rows.X.copy()
    X[:, 1] = value
    weights = np.random.default_rng(7).uniform(0.1, 3.0, len(rows.y))
    for sharing in SHARINGS:
        total = Moments.empty(rows.classes, 3, sharing, full=True)
        for block in np.array_split(np.arange(len(rows.y)), 7):
            builder = MomentsAccumulator(rows.classes, 3, sharing, full=True)
            builder.add(X[block], rows.codes[block], weights[block])
            total = total + builder.finish()
        assert total.has_variance().tolist() == [True, False, True]
        assert not total.squares[:, 1].any()
        assert_array_equal(total.coordinates.to_user(total.mean)[:, 1], value)


def test_integers_beyond_2_to_the_53_have_exact_moments_in_any_blocks() -> None:
    values = 2**60 + np.array([1, 3, 4, 9, 12, 17, 5], dtype=np.int64)
    exact = [Fraction(int(v)) for v in values]
    middle = sum(exact, Fraction(0)) / len(exact)
    scatter = float(sum((v - middle) ** 2 for v in exact))
    for cut in range(1, 7):
        total: Moments | None = None
        for part in (values[:cut], values[cut:]):
            builder = MomentsAccumulator(np.array([0]), 1, Sharing(), full=True)
            builder.add(part[:, None], np.zeros(len(part), dtype=int))
            total = builder.finish() if total is None else total + builder.finish()
        assert total is not None
        assert total.scatter[0, 0, 0] == pytest.approx(scatter, rel=1e-12)
        local = Fraction(float(total.mean[0, 0])) + Fraction(float(total.coordinates.origin[0]))
        assert float(abs(local - middle)) < 1e-9


def test_tiny_and_large_values_have_their_moments_in_other_units() -> None:
    rows = random_rows(8)
    plain = build(rows, Sharing())
    for power in (-700, 460):
        scaled = build(Rows(np.ldexp(rows.X, power), rows.y), Sharing(), full=False)
        unit = scaled.coordinates.unit
        assert_allclose(np.ldexp(scaled.mean * unit, -power), plain.mean, rtol=1e-12)
        ratio = np.ldexp(unit, -power)
        assert_allclose(scaled.squares * ratio * ratio, plain.squares, rtol=1e-12)


def test_values_that_are_not_finite_are_named_in_the_error() -> None:
    for wrong in (np.nan, np.inf, -np.inf):
        X = np.ones((4, 3))
        X[2, 1] = wrong
        builder = MomentsAccumulator(np.array([0]), 3, Sharing(), full=True)
        with pytest.raises(CellError) as caught:
            builder.add(X, np.zeros(4, dtype=int))
        assert (caught.value.row, caught.value.column) == (2, 1)


def test_rows_that_were_never_learnt_cannot_be_removed() -> None:
    rows = random_rows(9)
    moments = build(rows, Sharing())
    with pytest.raises(InputError, match="or with another weight, in class 'a', 'b', 'c'"):
        _ = moments - (moments + moments)
    few = Rows(rows.X[:3] + 1e3, rows.y[:3])
    with pytest.raises(InputError, match="not among the training rows"):
        _ = moments - build(few, Sharing())
    heavier = build(rows, Sharing(), weights=np.full(len(rows.y), 1.5))
    with pytest.raises(InputError, match="More rows are to be removed"):
        _ = moments - heavier


# Counts.


def test_counts_add_and_subtract_over_the_union_of_their_classes() -> None:
    classes = np.array(["a", "b", "c"])
    first = Counts.of(classes[:2], np.array([0, 1, 1, 0]), np.array([1.0, 0.0, 2.5, 0.5]))
    second = Counts.of(classes[1:], np.array([1, 0, 1]))
    total = first + second
    assert total.classes.tolist() == ["a", "b", "c"]
    assert total.rows.tolist() == [2, 2, 2]
    assert total.weight.tolist() == [1.5, 3.5, 2.0]
    left = total - second
    assert left.classes.tolist() == ["a", "b"]
    assert left.rows.tolist() == [2, 1]
    assert left.weight.tolist() == [1.5, 2.5]
    assert (total + Counts.empty(classes)).weight.tolist() == total.weight.tolist()
    with pytest.raises(InputError, match="More rows are to be removed"):
        _ = second - first


def test_classes_of_text_and_of_numbers_cannot_be_united() -> None:
    with pytest.raises(InputError, match="different types"):
        unite_classes(np.array(["a"]), np.array([1]))
    assert unite_classes(np.array([3, 1]), np.array([2, 3])).tolist() == [1, 2, 3]


# Sharing and coordinates.


def test_groups_come_first_and_the_other_classes_have_their_own_scatter() -> None:
    classes = np.array(["a", "b", "c", "d", "e"])
    assert Sharing(everyone=True).assign(classes).tolist() == [0] * 5
    assert Sharing().assign(classes).tolist() == [0, 1, 2, 3, 4]
    assert Sharing(groups=(("e", "b"), ("c", "d"))).assign(classes).tolist() == [2, 0, 1, 1, 0]
    assert Sharing(groups=(("x", "y"), ("c", "d"))).assign(classes).tolist() == [1, 2, 0, 0, 3]


def test_coordinates_can_be_undone() -> None:
    X = np.array([[3e135, 5.0, 2.0**60 + 2**10], [-1e135, 7.0, 2.0**60]])
    there = Coordinates.make(np.array([0.0, 1.0, 2.0**60]), np.array([2.0**450, 1.0, 1.0]))
    assert not there.trivial
    local = there.to_local(X)
    assert np.all(np.isfinite(local * local))
    assert_array_equal(there.to_user(local), X)
    assert Coordinates.plain(3).to_local(X) is X
    assert there.take(np.array([1])).origin.tolist() == [1.0]
