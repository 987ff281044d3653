"""The page about generative and discriminative models prints what it says that it prints."""

from __future__ import annotations

import io
import re
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d+\.\d+")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def printed() -> tuple[list[str], dict[str, Any]]:
    """What each example prints, and what all of them define."""
    names: dict[str, Any] = {}
    texts = []
    with chdir(ROOT):
        for block in blocks("python"):
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(block, "docs/compare.md", "exec"), names)
            texts.append(out.getvalue())
    return texts, names


def test_every_example_prints_what_the_page_shows(printed: tuple[list[str], dict[str, Any]]) -> None:
    stated = blocks("text")
    assert len(stated) == len(printed[0]) == 3
    for shown, found in zip(stated, printed[0], strict=True):
        assert NUMBER.sub("#", found) == NUMBER.sub("#", shown)
        ours, theirs = (np.array(NUMBER.findall(text), dtype=np.float64) for text in (found, shown))
        # four digits are shown, and iterations may end a little elsewhere on another machine
        np.testing.assert_allclose(ours, theirs, atol=5e-4)


def test_the_skewed_example_has_the_shape_of_ng_and_jordan(printed: tuple[list[str], dict[str, Any]]) -> None:
    first = printed[1]["curves"].verdicts[0]
    assert (first.score, first.second) == ("log_loss", "penalty 0.001")
    assert first.leads[0].winner == "generative"
    assert first.leads[-1].winner == "penalty 0.001"
    assert len(first.crossings) == 1
