"""Run all benchmarks, or those whose names are given: python -m benchmarks [name ...]

`python -m benchmarks quality [folder]` and `python -m benchmarks data [rows [folder]]` take options, and are not among
all benchmarks because they take long; `python -m benchmarks spark` needs PySpark and Java.
"""

from __future__ import annotations

import sys

from benchmarks import (
    algebra,
    columns,
    costs,
    discriminants,
    evidence,
    few_rows,
    frames,
    missing,
    regression,
    softmax,
    spark,
    tables,
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
}

BY_NAME = {"spark": spark.spark}


def main() -> None:
    if sys.argv[1:2] == ["quality"]:
        for line in quality(sys.argv[2:]):
            print(line, flush=True)
        return
    if sys.argv[1:2] == ["data"]:
        for line in large_data(sys.argv[2:]):
            print(line, flush=True)
        return
    for name in sys.argv[1:] or JOBS:
        print(f"== {name}", flush=True)
        for line in (JOBS | BY_NAME)[name]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
