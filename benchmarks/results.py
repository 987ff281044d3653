"""Ratios of the last run of all benchmarks, in a file, and which of them have become worse since."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Line, Ratio

FILE = Path(__file__).with_name("results.json")
WORSE = 1.15  # a change by less may be noise

Results = dict[tuple[str, str], Ratio]  # by job and by row: heading and label


def record(job: str, lines: Iterator[Line], found: Results) -> Iterator[Line]:
    """The lines of a job, while its ratios are added to those that were found."""
    heading = ""
    for line in lines:
        if isinstance(line, Ratio):
            found[job, f"{heading}: {line.label}" if heading else line.label] = line
        elif not line.startswith(" "):
            heading = line
        yield line


def write(found: Results, file: Path = FILE) -> None:
    ratios = [{"job": job, "row": row, "ratio": float(f"{each.value:.4g}")} for (job, row), each in found.items()]
    text = json.dumps({"processor": processor(), "ratios": ratios}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def compare(found: Results, file: Path = FILE) -> Iterator[str]:
    """Ratios that are worse than in the file by more than 15%."""
    if not file.exists():
        yield f"No ratios to compare with: there is no {file.name}."
        return
    before = json.loads(file.read_text(encoding="utf-8"))
    here = processor()
    yield f"Worse by more than {WORSE - 1:.0%} than in {file.name}, on {here}:"
    if before["processor"] != here:
        yield f"  (the file is of another processor: {before['processor']})"
    old = {(each["job"], each["row"]): each["ratio"] for each in before["ratios"]}
    worse = [
        f"  {job}: {row}: {old[job, row]:.4g} -> {each.value:.4g}"
        for (job, row), each in found.items()
        if (job, row) in old and is_worse(old[job, row], each)
    ]
    yield from worse or ["  none"]


def is_worse(before: float, now: Ratio) -> bool:
    more = now.value - before if now.less_is_better else before / WORSE - now.value
    return more > ((WORSE - 1.0) * abs(before) if now.less_is_better else 0.0)


def processor() -> str:
    """Name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or platform.machine())
