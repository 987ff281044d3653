"""Run all benchmarks, or those whose names are given: python -m benchmarks [name ...]"""

from __future__ import annotations

import sys

from benchmarks import algebra, columns, discriminants, few_rows, missing, regression, softmax, tables

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
    "tables": tables.tables,
    "few rows": few_rows.few_rows,
}


def main() -> None:
    for name in sys.argv[1:] or JOBS:
        print(f"== {name}", flush=True)
        for line in JOBS[name]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
