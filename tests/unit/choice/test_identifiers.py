"""Which columns identify rows: row numbers and codes, in the whole and in its parts, and never measurements."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from likely.choice.column_types import DISTINCT, ColumnProfile
from likely.data.validation import read_table
from likely.typing import AnyArray

Draw = Callable[[np.random.Generator, int], AnyArray]
SIZES = {50: 200, 100: 200, 1000: 200, 20_000: 10}  # number of seeds for each number of rows

NUMBERS: dict[str, Draw] = {
    "row numbers": lambda rng, n: rng.permutation(n) + rng.integers(-(10**6), 10**12),
    "a random half": lambda rng, n: rng.permutation(2 * n)[:n],
    "a contiguous part": lambda rng, n: np.arange(3 * n, 4 * n),
    "steps of 7": lambda rng, n: 7 * rng.permutation(n) + 3,
    "floats": lambda rng, n: rng.permutation(n).astype(np.float64),
    "a narrow type": lambda rng, n: rng.permutation(n).astype(np.int16),
    "12 digits": lambda rng, n: rng.integers(10**11, 10**12, n),
    "32 bits": lambda rng, n: distinct(rng.integers(0, 2**32, n + 20), rng, n),
    "64 bits": lambda rng, n: rng.integers(-(2**63), 2**63 - 1, n),
    "unsigned 64 bits": lambda rng, n: rng.integers(0, 2**64 - 1, n, dtype=np.uint64),
    "phone numbers": lambda rng, n: distinct(
        rng.choice([212, 415, 617, 808, 907], 2 * n) * 10**7 + rng.integers(2 * 10**6, 10**7, 2 * n), rng, n
    ),
}
MEASUREMENTS: dict[str, Draw] = {
    "log-normal": lambda rng, n: rng.lognormal(10.0, 1.0, n),
    "narrow log-normal": lambda rng, n: rng.lognormal(12.0, 0.5, n),
    "large log-normal": lambda rng, n: rng.lognormal(17.0, 1.0, n),
    "normal": lambda rng, n: rng.normal(50_000.0, 10_000.0, n),
    "large normal": lambda rng, n: rng.normal(5e9, 3e8, n) if n > 1000 else rng.normal(5e6, 3e5, n),
    "exponential": lambda rng, n: rng.exponential(1e6, n),
    "gamma": lambda rng, n: rng.gamma(3.0, 20_000.0, n),
}
TEXTS: dict[str, Draw] = {
    "UUID": lambda rng, n: np.array([str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(n)]),
    "hexadecimal": lambda rng, n: np.array([rng.bytes(6).hex() for _ in range(n)]),
    "phone numbers": lambda rng, n: np.array([f"+1 415 {i:07d}" for i in rng.permutation(10**6)[:n]]),
    "digits with zeros": lambda rng, n: np.array([f"{i:08d}" for i in rng.permutation(10**6)[:n]]),
}


def distinct(values: AnyArray, rng: np.random.Generator, n: int) -> AnyArray:
    """Some of the distinct values, in random order."""
    return rng.permutation(np.unique(values))[:n]


def profile(values: AnyArray) -> ColumnProfile:
    return ColumnProfile.of_numbers("number", values, None)


def text_profile(values: AnyArray) -> ColumnProfile:
    return ColumnProfile.at(read_table(pd.DataFrame({"v": values}), 0), 0, None, frame=True)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", NUMBERS)
def test_distinct_numbers_that_are_evenly_spread_identify_rows(kind: str, n: int) -> None:
    missed, parts_missed = 0, 0
    for seed in range(SIZES[n]):
        rng = np.random.default_rng(seed)
        values = NUMBERS[kind](rng, n)
        missed += not profile(values).is_identifier
        parts_missed += not profile(rng.permutation(values)[: rng.integers(max(n // 2, 50), n + 1)]).is_identifier
    assert missed <= 0.01 * SIZES[n]
    assert parts_missed <= 0.015 * SIZES[n]


def test_small_parts_of_row_numbers_are_identifiers_or_may_be() -> None:
    parts = [profile(np.random.default_rng(seed).permutation(20_000)[:50]) for seed in range(200)]
    assert sum(part.is_identifier for part in parts) > 170
    assert sum(part.is_identifier or bool(part.may_be_identifier) for part in parts) >= 195


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", MEASUREMENTS)
def test_skewed_and_bell_shaped_whole_numbers_do_not_identify_rows(kind: str, n: int) -> None:
    found = 0
    for seed in range(SIZES[n]):
        values = np.unique(np.round(MEASUREMENTS[kind](np.random.default_rng(seed), n)))
        found += profile(values).is_identifier
        found += profile(values.astype(np.int64)).is_identifier
    assert found <= (0.04 * SIZES[n] if n == 50 else 0)  # of twice as many profiles


@pytest.mark.parametrize("n", [50, 100, 1000, 20_000])
@pytest.mark.parametrize("kind", TEXTS)
def test_codes_that_are_all_distinct_identify_rows(kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    values = TEXTS[kind](rng, n)
    for part in (values, rng.permutation(values)[: max(50, n // 2)], rng.permutation(values)[:50]):
        assert text_profile(part).identifier_reason == "codes, all distinct"


def test_reasons_name_the_kind_of_identifier() -> None:
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    names = np.array(["".join(word) for word in rng.choice(letters, (200, 12))])
    assert text_profile(names).identifier_reason == "names, all distinct"
    assert text_profile(np.r_[names[:196], names[:4]]).identifier_reason == "names, 98% distinct"
    assert text_profile(np.r_[names[:160], names[:40]]).may_be_identifier == "names, 80% distinct"
    assert not text_profile(np.r_[names[:160], names[:40]]).is_identifier
    documents = np.array([f"{a} {b} {a} {b} {a}" for a, b in zip(names, names[::-1], strict=True)])
    assert text_profile(documents).identifier_reason == "free text, all distinct"
    assert profile(np.arange(50)).identifier_reason == "row numbers: distinct whole numbers, evenly spread"
    codes = profile(rng.integers(0, 10**9, 500))
    assert codes.identifier_reason == "codes: distinct whole numbers, evenly spread"
    assert not profile(np.arange(49)).is_identifier


def test_row_numbers_with_gaps_are_row_numbers() -> None:
    kept = np.delete(np.arange(20_000), slice(3000, 5000))
    assert profile(kept).is_identifier


def test_times_are_used_and_may_be_identifiers() -> None:
    seconds = 1_500_000_000 + distinct(np.random.default_rng(0).integers(0, 10**8, 900), np.random.default_rng(1), 800)
    for scale in (1, 1000, 10**9):
        assert not profile(seconds * scale).is_identifier
        assert "times" in profile(seconds * scale).may_be_identifier


def test_numbers_that_repeat_or_that_doubles_round_do_not_identify_rows() -> None:
    rng = np.random.default_rng(0)
    assert not profile(np.r_[np.arange(1000), 5]).is_identifier
    assert not profile(rng.uniform(1e20, 1e21, 1000)).is_identifier
    assert not profile(rng.uniform(1e200, 1e201, DISTINCT + 1000)).is_identifier
    assert not ColumnProfile.of_numbers("number", np.arange(100), np.full(100, 2.0)).is_identifier
    assert ColumnProfile.of_numbers("number", np.arange(100), np.full(100, 0.5)).is_identifier


@pytest.mark.parametrize("kind", ["12 digits", "a random half", "unsigned 64 bits"])
def test_profiles_of_parts_add_up_to_that_of_the_whole(kind: str) -> None:
    rng, n = np.random.default_rng(0), 3 * DISTINCT
    values = NUMBERS[kind](rng, n)
    whole = profile(values)
    total = ColumnProfile("number")
    for start in range(0, n, 50_000):
        total += profile(values[start : start + 50_000])
    assert whole.identifier_reason
    assert total.identifier_reason == whole.identifier_reason
    repeated = total + profile(values[:30_000])
    assert not repeated.is_identifier
    assert not profile(np.r_[values, values[:30_000]]).is_identifier
