"""Statistics are sums: any split of the rows, in any order, gives the same statistics and the same model."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from likely import GenerativeClassifier
from likely.errors import InputError
from likely.families.base import Conditionals
from likely.families.estimation import Estimation
from likely.families.gaussian.accumulator import MomentsAccumulator
from likely.families.gaussian.student import Students
from likely.statistics.moments import Moments, Sharing
from tests.laws.registry import (
    Case,
    Floats,
    Rows,
    assert_log_equal,
    assert_same_answers,
    columns,
    every_case,
    iris,
    parts,
    penguins,
    random_rows,
)

SHARINGS = {
    "shared": Sharing(everyone=True),
    "grouped": Sharing(groups=(("a", "c"),)),
    "own": Sharing(),
}
LAYOUTS = [
    pytest.param(SHARINGS[word], full, tails, id=f"{word}-{'full' if full else 'squares'}{'-tails' * tails}")
    for word in SHARINGS
    for full, tails in [(True, False), (False, False), (True, True)]
    if word == "own" or not tails
]
every_layout = pytest.mark.parametrize(("sharing", "full", "tails"), LAYOUTS)


def cuts_of_one_row(n: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """A dozen rows each in a block of its own, and the others together."""
    return np.split(rng.permutation(n), np.arange(1, 13))


def random_cuts(n: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """All row numbers in random order, cut into blocks of one row or more."""
    places = rng.choice(np.arange(1, n), size=int(rng.integers(1, 9)), replace=False)
    return np.split(rng.permutation(n), np.sort(places))


CUTS = [cuts_of_one_row, random_cuts]


def summed_in_random_order(values: list[Any], rng: np.random.Generator) -> Any:
    """The sum over a random tree of additions."""
    values = list(values)
    while len(values) > 1:
        left = values.pop(int(rng.integers(len(values))))
        right = values.pop(int(rng.integers(len(values))))
        values.append(left + right)
    return values[0]


def moments_of(rows: Rows, sharing: Sharing, full: bool, tails: bool, weights: Floats | None = None) -> Moments:
    """Moments among the classes that these rows have, and no others."""
    builder = MomentsAccumulator(rows.classes, rows.X.shape[1], sharing, full, tails)
    builder.add(rows.X, rows.codes, weights)
    return builder.finish()


def take(rows: Rows, which: NDArray[Any]) -> Rows:
    return Rows(rows.X[which], rows.y[which])


def assert_same_moments(actual: Moments, expected: Moments, relative: float = 1e-9) -> None:
    """Means relative to the deviations, scatters as correlations, tails relative to the same power of length."""
    assert_array_equal(actual.classes, expected.classes)
    assert_array_equal(actual.rows, expected.rows)
    assert_allclose(actual.weight, expected.weight, rtol=relative)
    assert actual.sharing == expected.sharing
    squares = expected.squares.sum(axis=0) / max(expected.weight.sum(), 1.0)
    deviation = np.where(squares > 0.0, np.sqrt(squares), 1.0)
    assert_allclose(actual.mean / deviation, expected.mean / deviation, rtol=0, atol=relative)
    unit = deviation * deviation[:, None] if expected.full else deviation**2
    size = max(expected.weight.sum(), 1.0)
    assert_allclose(actual.scatter / unit / size, expected.scatter / unit / size, rtol=0, atol=relative)
    assert (actual.tails is None) == (expected.tails is None)
    if actual.tails is not None and expected.tails is not None:
        length = np.sqrt(squares.sum())
        assert_allclose(actual.tails.cubic / length**3 / size, expected.tails.cubic / length**3 / size, atol=relative)
        assert_allclose(actual.tails.quartic, expected.tails.quartic, rtol=relative)


def assert_same_conditionals(actual: Conditionals, expected: Conditionals, X: Floats, tolerance: float) -> None:
    assert type(actual) is type(expected)
    assert_log_equal(actual.log_density(X), expected.log_density(X), tolerance)
    if isinstance(actual, Students) and isinstance(expected, Students):
        assert_allclose(actual.degrees, expected.degrees, rtol=tolerance)


@pytest.mark.parametrize("table", [iris, penguins], ids=["iris", "penguins"])
@every_case
def test_any_split_of_the_rows_gives_the_same_model(case: Case, table: Callable[[], Rows]) -> None:
    rows, rng = table(), np.random.default_rng(1)
    whole, family = case.fit(rows), case.family(rows.classes)
    for cuts in CUTS:
        blocks = []
        for index in cuts(len(rows.y), rng):
            builder = family._accumulator(rows.classes, columns(rows.X.shape[1]))
            builder.add(rows.X[index], rows.codes[index])
            blocks.append(builder.finish())
        total = summed_in_random_order(blocks, rng)
        assert_same_moments(total, whole.statistics_.blocks[0])
        again = family.estimate(total, Estimation(case.estimation), whole.model_.names)
        assert_same_conditionals(again, parts(whole), rows.X, 1e-9)


@every_case
def test_blocks_added_to_one_builder_give_the_same_model(case: Case) -> None:
    rows, rng = iris(), np.random.default_rng(2)
    whole, family = case.fit(rows), case.family(rows.classes)
    for cuts in CUTS:
        builder = family._accumulator(rows.classes, columns(rows.X.shape[1]))
        for index in cuts(len(rows.y), rng):
            builder.add(rows.X[index], rows.codes[index])
        total = builder.finish()
        assert_same_moments(total, whole.statistics_.blocks[0])
        assert_same_conditionals(
            family.estimate(total, Estimation(case.estimation), whole.model_.names), parts(whole), rows.X, 1e-9
        )


def rows_of_exact_cells(seed: int) -> Rows:
    """Rows whose cells are multiples of 1/1024, so that adding 1e8 to them rounds nothing off."""
    X, y = random_rows(seed, sizes=(40, 30, 20))
    return Rows(np.round(X * 1024.0) / 1024.0, y)


OFFSETS = np.array([1e8, -1e8, 3e7])


@every_case
def test_rows_at_1e8_deviations_give_the_model_of_the_rows_moved_back_however_they_are_split(case: Case) -> None:
    rows, rng = rows_of_exact_cells(3), np.random.default_rng(3)
    far = Rows(rows.X + OFFSETS, rows.y)
    assert_array_equal(far.X - OFFSETS, rows.X)
    near, away = case.fit(rows), case.fit(far)
    assert_same_answers(near, away, rows.X, far.X, atol=1e-6)
    family = case.family(rows.classes)
    for cuts in CUTS:
        blocks = []
        for index in cuts(len(far.y), rng):
            builder = family._accumulator(far.classes, columns(far.X.shape[1]))
            builder.add(far.X[index], far.codes[index])
            blocks.append(builder.finish())
        total = summed_in_random_order(blocks, rng)
        assert_same_moments(total, away.statistics_.blocks[0], 1e-6)
        split = family.estimate(total, Estimation(case.estimation), away.model_.names)
        assert_same_conditionals(split, parts(away), far.X, 1e-6)


@every_case
def test_classes_1e8_deviations_apart_keep_their_covariances_however_they_are_split(case: Case) -> None:
    rows, rng = rows_of_exact_cells(4), np.random.default_rng(4)
    apart = Rows(rows.X + 1e8 * (rows.codes - 1)[:, None], rows.y)
    family = case.family(rows.classes)
    near = moments_of_family(case, rows)
    for cuts in CUTS:
        blocks = []
        for index in cuts(len(apart.y), rng):
            builder = family._accumulator(apart.classes, columns(apart.X.shape[1]))
            builder.add(apart.X[index], apart.codes[index])
            blocks.append(builder.finish())
        total = summed_in_random_order(blocks, rng)
        assert_allclose(total.scatter, near.scatter, rtol=1e-6, atol=1e-6 * np.abs(near.scatter).max())


def moments_of_family(case: Case, rows: Rows) -> Moments:
    builder = case.family(rows.classes)._accumulator(rows.classes, columns(rows.X.shape[1]))
    builder.add(rows.X, rows.codes)
    return builder.finish()


@every_layout
def test_statistics_of_weighted_rows_add_up_in_any_split(sharing: Sharing, full: bool, tails: bool) -> None:
    rows, rng = random_rows(5), np.random.default_rng(5)
    weights = rng.choice([0.0, 1e-3, 0.5, 2.0, 300.0], size=len(rows.y))
    builder = MomentsAccumulator(rows.classes, rows.X.shape[1], sharing, full, tails)
    builder.add(rows.X, rows.codes, weights)
    whole = builder.finish()
    for cuts in CUTS:
        blocks = []
        for index in cuts(len(rows.y), rng):
            builder = MomentsAccumulator(rows.classes, rows.X.shape[1], sharing, full, tails)
            builder.add(rows.X[index], rows.codes[index], weights[index])
            blocks.append(builder.finish())
        assert_same_moments(summed_in_random_order(blocks, rng), whole)


@every_layout
def test_what_was_added_can_be_removed(sharing: Sharing, full: bool, tails: bool) -> None:
    a, b = random_rows(6), random_rows(7, sizes=(9, 1, 30))
    left, right = moments_of(a, sharing, full, tails), moments_of(b, sharing, full, tails)
    assert_same_moments(left + right - right, left)
    assert_same_moments(left + right - left, right)
    assert_same_moments(right + left - right - Moments.empty(a.classes, 3, sharing, full=full, tails=tails), left)


@every_layout
def test_a_column_that_is_constant_again_after_a_removal_has_no_variance(
    sharing: Sharing, full: bool, tails: bool
) -> None:
    a, b = random_rows(6), random_rows(7)
    a.X[:, 1] = 0.1
    left, right = moments_of(a, sharing, full, tails), moments_of(b, sharing, full, tails)
    back = left + right - right
    assert back.has_variance().tolist() == left.has_variance().tolist() == [True, False, True]
    assert np.all(back.squares >= 0.0)


@every_layout
def test_a_class_whose_rows_are_all_removed_is_gone(sharing: Sharing, full: bool, tails: bool) -> None:
    a, b = random_rows(8), random_rows(9, sizes=(5, 6, 7, 8))
    left, right = moments_of(a, sharing, full, tails), moments_of(b, sharing, full, tails)
    assert (left + right).classes.tolist() == ["a", "b", "c", "d"]
    assert_same_moments(left + right - right, left)
    assert len((left - left).classes) == 0
    assert len((left - left).scatter) == 0


@every_layout
def test_the_sum_knows_the_classes_of_both_sides_in_sorted_order(sharing: Sharing, full: bool, tails: bool) -> None:
    rows, rng = random_rows(10, sizes=(8, 7, 6, 5)), np.random.default_rng(10)
    whole = moments_of(rows, sharing, full, tails)
    by_class = [moments_of(take(rows, rows.y == label), sharing, full, tails) for label in "dbca"]
    assert_same_moments(summed_in_random_order(by_class, rng), whole)
    mixed = [moments_of(take(rows, index), sharing, full, tails) for index in random_cuts(len(rows.y), rng)]
    assert_same_moments(summed_in_random_order(mixed, rng), whole)


@every_layout
def test_adding_the_empty_statistics_changes_nothing(sharing: Sharing, full: bool, tails: bool) -> None:
    rows = random_rows(11)
    some = moments_of(rows, sharing, full, tails)
    for classes in (rows.classes, rows.classes[:1], rows.classes[:0]):
        empty = Moments.empty(classes, 3, sharing, full=full, tails=tails)
        for same in (some + empty, empty + some, some - empty):
            assert_array_equal(same.classes, some.classes)
            assert_array_equal(same.weight, some.weight)
            assert_array_equal(same.mean, some.mean)
            assert_array_equal(same.scatter, some.scatter)
            if tails:
                assert same.tails is not None
                assert some.tails is not None
                assert_array_equal(same.tails.cubic, some.tails.cubic)
                assert_array_equal(same.tails.quartic, some.tails.quartic)
        nothing = empty + empty
        assert not nothing.weight.any()
        assert np.all(np.isfinite(nothing.mean))


@every_layout
def test_addition_does_not_depend_on_order_or_grouping(sharing: Sharing, full: bool, tails: bool) -> None:
    a, b, c = (moments_of(random_rows(seed), sharing, full, tails) for seed in (12, 13, 14))
    assert_same_moments((a + b) + c, a + (b + c))
    assert_same_moments(a + b + c, c + b + a)


@every_layout
def test_adding_leaves_both_sides_as_they_were(sharing: Sharing, full: bool, tails: bool) -> None:
    a, b = (moments_of(random_rows(seed), sharing, full, tails) for seed in (15, 16))
    before = [a.mean.copy(), a.scatter.copy(), b.mean.copy(), b.scatter.copy()]
    _ = a + b
    _ = (a + b) - b
    for kept, now in zip(before, [a.mean, a.scatter, b.mean, b.scatter], strict=True):
        assert_array_equal(now, kept)


def test_statistics_of_a_whole_fit_add_up_like_those_of_its_parts() -> None:
    rows = iris()
    whole = GenerativeClassifier().fit(*rows)
    thirds = [GenerativeClassifier().fit(*take(rows, np.arange(i, len(rows.y), 3))).statistics_ for i in range(3)]
    total = reduce(add, thirds)
    assert_array_equal(total.counts.rows, whole.statistics_.counts.rows)
    assert_same_moments(total.blocks[0], whole.statistics_.blocks[0])
    left = total - thirds[1]
    assert_same_moments(left.blocks[0], (thirds[0] + thirds[2]).blocks[0])
    assert_array_equal(left.counts.rows, (thirds[0] + thirds[2]).counts.rows)


def test_statistics_of_different_columns_or_structures_cannot_be_added() -> None:
    rows = random_rows(17)
    some = moments_of(rows, Sharing(), True, False)
    narrow = moments_of(Rows(rows.X[:, :2], rows.y), Sharing(), True, False)
    for other in (narrow, moments_of(rows, Sharing(), False, False), moments_of(rows, Sharing(True), True, False)):
        with pytest.raises(InputError, match="cannot be combined"):
            _ = some + other
