"""The subset of cases that `make test` runs of tests with very many of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import pytest

from likely import Gaussian, QuadraticDiscriminant
from tests.pairwise import factors, pairwise


def pairs(cases: list[dict[str, str]]) -> set[frozenset[tuple[str, str]]]:
    return {frozenset(pair) for case in cases for pair in combinations(case.items(), 2)}


@pytest.mark.parametrize("seed", range(5))
def test_a_pairwise_subset_is_small_and_covers_every_pair_that_occurs(seed: int) -> None:
    sizes = {"covariance": 4, "sharing": 3, "estimation": 3, "far": 2, "weighted": 2}
    every = [dict(zip(sizes, map(str, values), strict=True)) for values in product(*map(range, sizes.values()))]
    possible = [case for case in every if case["covariance"] != "3" or case["estimation"] == "0"]
    for cases in (every, possible):
        subset = [cases[i] for i in pairwise(cases, seed)]
        assert pairs(subset) == pairs(cases)
        assert 12 <= len(subset) <= 18


def test_another_seed_gives_another_subset_and_the_same_seed_the_same_one() -> None:
    cases = [{"a": str(a), "b": str(b), "c": str(c)} for a, b, c in product(range(4), repeat=3)]
    assert pairwise(cases, 1) == pairwise(cases, 1) != pairwise(cases, 2)


def test_every_value_of_a_single_factor_is_kept() -> None:
    assert len(pairwise([{"a": str(i % 30)} for i in range(60)])) == 30
    assert pairwise([]) == []


def test_options_of_records_and_estimators_are_factors() -> None:
    @dataclass
    class Case:
        word: str
        family: Gaussian

    found = factors({"case": Case("x", Gaussian("diagonal", shared=True)), "n": 3})
    assert found["case"] == "Case"
    assert found["case.word"] == "'x'"
    assert found["case.family"] == "Gaussian"
    assert found["case.family.covariance"] == "'diagonal'"
    assert found["case.family.shared"] == "True"
    assert found["n"] == "3"
    assert factors({"model": QuadraticDiscriminant})["model"] == repr(QuadraticDiscriminant)
