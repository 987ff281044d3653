"""Run the Python examples of a documentation page: all blocks of a page in order, in one namespace, from the root.

A block of text that directly follows a block of Python shows what the Python prints.
``python -m tests.pages`` writes what the examples print now into the pages.
"""

from __future__ import annotations

import io
import re
from contextlib import chdir, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np

from tests.stand_ins import stand_ins

ROOT = Path(__file__).parents[1]
PAGES = tuple(sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]))
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"\d+\.\d+")


class Example(NamedTuple):
    """A block of Python, what the page shows below it (None without a block of text), and what it prints."""

    code: str
    shown: str | None
    printed: str

    def matches(self, tolerance: float = 5e-4) -> bool:
        """Whether the page shows what is printed; decimals may differ by rounding on another machine."""
        if self.shown is None:
            return True
        if NUMBER.sub("#", self.shown) != NUMBER.sub("#", self.printed):
            return False
        shown, printed = (np.array(NUMBER.findall(text), dtype=float) for text in (self.shown, self.printed))
        return bool(np.allclose(shown, printed, rtol=0.0, atol=tolerance))


@cache
def run(page: Path) -> tuple[tuple[Example, ...], dict[str, Any]]:
    """The examples of a page, and the names that they define."""
    mpl.use("Agg")
    names: dict[str, Any] = {}
    examples = []
    with chdir(ROOT), stand_ins():
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(block[1], page.name, "exec"), names)
            examples.append(Example(block[1], block[2], out.getvalue()))
    return tuple(examples), names


def rewrite(page: Path) -> None:
    """Replace what a page shows by what its examples print."""
    examples = iter(run(page)[0])

    def updated(block: re.Match[str]) -> str:
        printed = next(examples).printed
        return block[0] if block[2] is None else f"```python\n{block[1]}```\n\n```text\n{printed}```"

    page.write_text(BLOCK.sub(updated, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    for found in PAGES:
        rewrite(found)
