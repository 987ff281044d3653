"""Sums in a tree: the same additions for the same number of parts, however they arrive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from likely.numerics.tree_sum import FAN_IN, TreeSum, group_sum


@dataclass(frozen=True)
class Term:
    """A value that records how it was added up."""

    text: str

    def __add__(self, other: Term) -> Term:
        return Term(f"({self.text}+{other.text})")


def tree_sum(values: Sequence[Any]) -> Any:
    total = TreeSum[Any]()
    for value in values:
        total.add(value)
    return total.total()


def by_levels(values: list[Term | None]) -> Term | None:
    """Groups of eight neighbours, and groups of their sums, until one is left."""
    while len(values) > 1:
        values = [group_sum(values[i : i + FAN_IN]) for i in range(0, len(values), FAN_IN)]
    return values[0] if values else None


@pytest.mark.parametrize("n", [*range(20), 63, 64, 65, 71, 72, 73, 511, 512, 513, 600])
def test_values_that_arrive_one_by_one_are_added_level_by_level(n: int) -> None:
    terms: list[Term | None] = [Term(str(i)) for i in range(n)]
    assert tree_sum(terms) == by_levels(terms)


def test_parts_without_a_value_keep_the_places_of_the_others() -> None:
    terms: list[Term | None] = [None if i % 3 == 1 else Term(str(i)) for i in range(100)]
    assert tree_sum(terms) == by_levels(terms)
    assert tree_sum([None, None]) is None


def test_the_total_so_far_can_be_asked_for_at_any_time() -> None:
    total = TreeSum[int]()
    for i in range(1, 200):
        total.add(i)
        assert total.total() == i * (i + 1) // 2


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 63, 64, 65, 72, 500, 513])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_sums_of_neighbours_that_others_have_added_give_the_same_bits(count: int, level: int) -> None:
    rng = np.random.default_rng(count)
    values = [
        float(x) if i % 5 else None for i, x in enumerate(rng.normal(size=count) * 10.0 ** rng.integers(-8, 9, count))
    ]
    sums = values
    for _ in range(level):
        sums = [group_sum(sums[i : i + FAN_IN]) for i in range(0, len(sums), FAN_IN)]
    total = TreeSum[float]()
    for value in sums:
        total.add(value, level)
    assert total.total() == tree_sum(values)


def test_the_sum_is_that_of_all_values() -> None:
    values = np.random.default_rng(0).normal(size=1000).tolist()
    assert tree_sum(values) == pytest.approx(math.fsum(values), rel=1e-13)
    assert tree_sum([None, None]) is None
    assert tree_sum([1.0] * 999) == 999.0
