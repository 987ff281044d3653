"""Run all benchmarks, or those whose names are given: python -m benchmarks [name ...]

`python -m benchmarks quality [folder]` takes options, and is not among all benchmarks because it takes long.
"""

from __future__ import annotations

import sys

from benchmarks import algebra, columns, discriminants, evidence, few_rows, missing, regression, softmax, tables
from benchmarks.quality.command import quality

JOBS = {
    "small": discriminants.small,
    "speed": discriminants.fits_and_probabilities,
    "memory": discriminants.memory,
    "scaling": discriminants.scaling,
    "columns": columns.columns,
    "algebra": algebra.algebra,
    "missing": missing.missing,
    "deleted": missing.deleted,
    "softmax": softmax.softmax,
    "regression": regression.regression,
    "evidence": evidence.evidence,
    "tables": tables.tables,
    "few rows": few_rows.few_rows,
}


def main() -> None:
    if sys.argv[1:2] == ["quality"]:
        for line in quality(sys.argv[2:]):
            print(line, flush=True)
        return
    for name in sys.argv[1:] or JOBS:
        print(f"== {name}", flush=True)
        for line in JOBS[name]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
