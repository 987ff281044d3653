"""A subset of the cases of a test in which every pair of values of two factors still occurs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import combinations
from random import Random
from typing import Any


def pairwise(cases: Sequence[Mapping[str, str]], seed: int = 0) -> list[int]:
    """Indices of a greedy subset that covers all values, and all pairs of values of two factors, of the cases.

    A case maps the names of its factors to values. Another seed gives another subset, so that tests that run over the
    same cases cover different triples.
    """
    pairs = [{*combinations(sorted(case.items()), 1), *combinations(sorted(case.items()), 2)} for case in cases]
    order = Random(seed).sample(range(len(cases)), len(cases))
    covered: set[tuple[tuple[str, str], ...]] = set()
    chosen = set()
    gains = [len(each) for each in pairs]  # upper bounds: what a case adds never grows
    for gain in range(max(gains, default=0), 0, -1):
        for i in order:
            if gains[i] >= gain:
                gains[i] = len(pairs[i] - covered)
            if gains[i] >= gain:
                covered |= pairs[i]
                gains[i] = 0
                chosen.add(i)
    return sorted(chosen)


def factors(parameters: Mapping[str, Any]) -> dict[str, str]:
    """The factors of a parametrised test: fields of records, options of families and estimators, and other values."""
    return {name: text for key, value in parameters.items() for name, text in _factors(key, value)}


def _factors(name: str, value: Any) -> Iterator[tuple[str, str]]:
    parts: Mapping[str, Any] = {}
    if isinstance(value, type):
        pass
    elif hasattr(value, "get_params"):
        parts = value.get_params(deep=False)
    elif hasattr(value, "_asdict"):
        parts = value._asdict()
    elif is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
    yield name, type(value).__name__ if parts else repr(value)
    for part, inner in parts.items():
        yield from _factors(f"{name}.{part}", inner)
