"""The stages of a fit and of a prediction are those that ARCHITECTURE.md lists, in its order."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import likely
from likely import GenerativeClassifier

ROOT = Path(__file__).parents[2]
SOURCES = Path(likely.__file__).parent
STAGE = re.compile(r"^    ([\w.]+) +([\w/]+\.py) +(.*)$", re.MULTILINE)


def stages(title: str) -> list[tuple[str, str, str]]:
    """Function, module and description of each stage."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    part = text[text.index(title) :]
    return [(name, path, what) for name, path, what in STAGE.findall(part[: part.index("\n\n", len(title) + 2)])]


def entered(job: Callable[[], Any]) -> list[tuple[str, str]]:
    """The functions of the library that a job enters, in order, with their modules."""
    found = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCES)):
            found.append((code.co_qualname, Path(code.co_filename).relative_to(SOURCES).as_posix()))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        job()
    finally:
        sys.setprofile(before)
    return found


def table() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 80)
    X = pd.DataFrame(
        {"x": rng.normal(size=160) + (y == "b"), "z": rng.normal(size=160), "c": rng.choice(["u", "v"], 160)}
    )
    return X, y


@pytest.mark.parametrize("title", ["A fit:", "A prediction:"])
def test_the_stages_are_entered_in_this_order(title: str) -> None:
    X, y = table()
    model = GenerativeClassifier()
    if title == "A prediction:":
        model.fit(X, y)
        calls = entered(lambda: model.predict_proba(X))
    else:
        calls = entered(lambda: model.fit(X, y))
    listed = [(name, path) for name, path, what in stages(title) if not what.startswith("only")]
    assert len(listed) > 8
    assert [call for call in dict.fromkeys(calls) if call in listed] == listed
    for name, path, what in stages(title):
        if not what.startswith(("only", "once per")):
            assert calls.count((name, path)) == 1, name


def test_unlabeled_rows_add_one_stage() -> None:
    X, y = table()
    some = np.where(np.arange(len(y)) % 4 == 0, None, y)
    calls = entered(lambda: GenerativeClassifier(unlabeled_weight=0.5).fit(X, some))
    (stage,) = [(name, path) for name, path, what in stages("A fit:") if what.startswith("only")]
    assert calls.count(stage) == 1
