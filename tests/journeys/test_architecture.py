"""The stages of a fit and of a prediction are those that ARCHITECTURE.md lists, in its order."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import likely
from likely import GenerativeClassifier

ROOT = Path(__file__).parents[2]
SOURCES = Path(likely.__file__).parent
STAGE = re.compile(r"^    ( *)([\w.]+) +([\w/]+\.py) +(.*)$", re.MULTILINE)
Function = tuple[str, str]  # qualified name and module


class Stage(NamedTuple):
    function: Function
    outer: tuple[Function, ...]  # the stages that enter it, by indentation
    note: str


def stages(title: str) -> list[Stage]:
    """The stages below a title."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    part = text[text.index(title) :]
    found, outer = [], list[Function]()
    for indent, name, path, note in STAGE.findall(part[: part.index("\n\n", len(title) + 2)]):
        outer = outer[: len(indent) // 2]
        found.append(Stage((name, path), tuple(outer), note))
        outer.append((name, path))
    return found


def entered(job: Callable[[], Any], listed: Collection[Function]) -> list[tuple[Function, tuple[Function, ...]]]:
    """The listed functions that a job enters, in order, and for each the listed functions that it was entered from."""
    found, stack = [], list[Function]()

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(str(SOURCES)):
            return
        function = code.co_qualname, Path(code.co_filename).relative_to(SOURCES).as_posix()
        if function not in listed:
            return
        if event == "return":
            assert stack.pop() == function
        else:
            found.append((function, tuple(stack)))
            stack.append(function)

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
    job = partial(model.predict_proba, X) if title == "A prediction:" else partial(model.fit, X, y)
    listed = [stage for stage in stages(title) if not stage.note.startswith("only")]
    calls = entered(job, [stage.function for stage in listed])
    assert len(listed) > 8
    assert list(dict.fromkeys(calls)) == [(stage.function, stage.outer) for stage in listed]
    for stage in listed:
        if not stage.note.startswith("once per"):
            assert calls.count((stage.function, stage.outer)) == 1, stage


def test_unlabeled_rows_add_one_stage() -> None:
    X, y = table()
    some = np.where(np.arange(len(y)) % 4 == 0, None, y)
    (stage,) = [stage for stage in stages("A fit:") if stage.note.startswith("only")]
    calls = entered(lambda: GenerativeClassifier(unlabeled_weight=0.5).fit(X, some), [stage.function, *stage.outer])
    assert [call for call in calls if call[0] == stage.function] == [(stage.function, stage.outer)]
