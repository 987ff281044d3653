"""Benchmarks: ratios as values, their comparison with those of the last run, and counts of calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import likely
from benchmarks.calls import called
from benchmarks.results import Results, compare, is_worse, processor, record, write
from benchmarks.timing import Line, at_least, at_most


def results(*lines: Line, job: str = "job") -> Results:
    found: Results = {}
    assert list(record(job, iter(lines), found)) == list(lines)
    return found


def test_rows_are_named_by_their_headings() -> None:
    time, speed = at_most("time", 1.0, 2.0), at_least("speed", 3.0, 2.0)
    found = results(time, "10 rows", "  a remark", time, "20 rows", time, speed)
    assert found == {
        ("job", "time"): time,
        ("job", "10 rows: time"): time,
        ("job", "20 rows: time"): time,
        ("job", "20 rows: speed"): speed,
    }


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (at_most("time", 2.5, 2.0, "5 s"), ["time", "2.500", "<=", "2", "<--", "missed", "(5", "s)"]),
        (at_least("speed", 2500.0, 2.0), ["speed", "2,500", ">=", "2"]),
    ],
)
def test_a_ratio_is_shown_with_its_target(line: Line, shown: list[str]) -> None:
    assert str(line).split() == shown


@pytest.mark.parametrize(
    ("before", "now", "worse"),
    [
        (1.0, at_most("time", 1.16, 9.0), True),
        (1.0, at_most("time", 1.14, 0.0), False),
        (1.0, at_most("time", 0.5, 9.0), False),
        (-2.0, at_most("memory", -1.9, 9.0), False),
        (1.16, at_least("speed", 1.0, 0.0), True),
        (1.14, at_least("speed", 1.0, 9.0), False),
        (1.0, at_least("speed", 2.0, 9.0), False),
    ],
)
def test_more_than_15_percent_is_worse(before: float, now: Line, worse: bool) -> None:
    assert not isinstance(now, str)
    assert is_worse(before, now) == worse


def test_a_run_is_compared_with_the_file_of_the_last_one(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert list(compare({}, file)) == ["No ratios to compare with: there is no results.json."]
    write(results("10 rows", at_most("time", 1.0, 2.0), at_least("speed", 2.0, 2.0)), file)
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert stored["processor"] == processor() != ""
    assert stored["ratios"][0] == {"job": "job", "row": "10 rows: time", "ratio": 1.0}

    slower = results("10 rows", at_most("time", 1.2, 2.0), at_least("speed", 2.1, 2.0), at_most("new", 9.0, 1.0))
    heading, *worse = compare(slower, file)
    assert heading.endswith(f"on {processor()}:")
    assert worse == ["  job: 10 rows: time: 1 -> 1.2"]
    assert list(compare(results(at_most("time", 1.0, 2.0)), file))[1:] == ["  none"]

    file.write_text(json.dumps(stored | {"processor": "another"}), encoding="utf-8")
    assert list(compare(slower, file))[1] == "  (the file is of another processor: another)"


def test_calls_of_functions_of_the_library_are_counted() -> None:
    likely.Gaussian("diagonal")
    names = [code.co_qualname for code in called(lambda: sorted([likely.Gaussian("diagonal"), 1], key=str))]
    assert "Gaussian.__init__" in names
    assert not called(lambda: json.dumps([1]))
