"""Run all benchmarks, or those whose names are given: python -m benchmarks [name ...]

At the end are the ratios that are worse than in `results.json`. A run of all benchmarks then replaces that file.

`python -m benchmarks quality [folder]` and `python -m benchmarks data [rows [folder]]` take options, and are not among
all benchmarks because they take long; `python -m benchmarks spark` needs PySpark and Java.
"""

from __future__ import annotations

import sys

from benchmarks import (
    algebra,
    calls,
    columns,
    costs,
    discriminants,
    evidence,
    few_rows,
    frames,
    missing,
    regression,
    results,
    softmax,
    spark,
    tables,
    text,
)
from benchmarks.large_data import large_data
from benchmarks.quality.command import quality

JOBS = {
    "small": discriminants.small,
    "speed": discriminants.fits_and_probabilities,
    "memory": discriminants.memory,
    "scaling": discriminants.scaling,
    "columns": columns.columns,
    "frames": frames.frames,
    "costs": costs.costs,
    "algebra": algebra.algebra,
    "missing": missing.missing,
    "deleted": missing.deleted,
    "softmax": softmax.softmax,
    "regression": regression.regression,
    "evidence": evidence.evidence,
    "tables": tables.tables,
    "few rows": few_rows.few_rows,
    "text": text.text,
    "calls": calls.calls,
}

BY_NAME = {"spark": spark.spark}
WITH_OPTIONS = {"quality": quality, "data": large_data}


def main() -> None:
    names = sys.argv[1:]
    if names and names[0] in WITH_OPTIONS:
        for text_line in WITH_OPTIONS[names[0]](names[1:]):
            print(text_line, flush=True)
        return
    found: results.Results = {}
    for name in names or JOBS:
        print(f"== {name}", flush=True)
        for line in results.record(name, (JOBS | BY_NAME)[name](), found):
            print(line, flush=True)
    for message in results.compare(found):
        print(message, flush=True)
    if not names:
        results.write(found)


if __name__ == "__main__":
    main()
