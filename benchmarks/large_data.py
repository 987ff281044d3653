"""Fits of rows in files, against the sums that DuckDB needs for the same files: CPU time and resident memory.

    python -m benchmarks data [rows [folder]]

The files are made once in the folder. Every job runs in a process of its own, twice; the second run counts.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS, CLASSES, FILES = 20, 5, 4
GROUP = 2**17  # rows of a row group
CSV_SHARE = 10  # the CSV file has the first of so many rows

JOBS = {  # the job, what it is compared with, and the bar
    "duckdb parquet": (None, 0.0),
    "NaiveBayes(Gaussian('diagonal'))": ("duckdb parquet", 2.0),
    "LinearDiscriminant()": ("duckdb parquet", 2.0),
    "GenerativeClassifier()": ("duckdb parquet", 5.0),
    "predict_to": ("duckdb parquet", 0.0),
    "duckdb csv": (None, 0.0),
    "LinearDiscriminant() csv": ("duckdb csv", 2.0),
}


def large_data(options: list[str]) -> Iterator[str]:
    """Lines of the report."""
    rows = int(float(options[0])) if options else 20_000_000
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options[1]) if len(options) > 1 else Path(temporary)
        make_files(folder, rows)
        found: dict[str, dict[str, float]] = {}
        yield f"{rows:,} rows x {COLUMNS} columns, {CLASSES} classes, {FILES} Parquet files; CSV: 1/{CSV_SHARE} of them"
        yield f"{'job':36} {'CPU s':>8} {'wall s':>8} {'ratio':>6} {'bar':>5} {'memory above the start, MB':>27}"
        for job, (baseline, bar) in JOBS.items():
            command = [sys.executable, "-m", "benchmarks.large_data", job, str(folder)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[job] = one = json.loads(done.stdout.splitlines()[-1])
            ratio = "" if baseline is None else f"{one['cpu'] / found[baseline]['cpu']:.2f}"
            shown = f"{bar:g}" if bar else ""
            yield f"{job:36} {one['cpu']:8.2f} {one['wall']:8.2f} {ratio:>6} {shown:>5} {one['memory']:27.0f}"


def make_files(folder: Path, rows: int) -> None:
    """Parquet files and a CSV file, unless they are there."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    mark = folder / f"made-{rows}"
    if mark.exists():
        return
    (folder / "parquet").mkdir(parents=True, exist_ok=True)
    rng, left = np.random.default_rng(0), rows
    labels = pa.array([f"class {k}" for k in range(CLASSES)])
    csv: Any = None
    for i in range(FILES):
        writer: Any = None
        mine = rows // FILES if i < FILES - 1 else left
        left -= mine
        for start in range(0, mine, GROUP):
            n = min(GROUP, mine - start)
            k = rng.integers(0, CLASSES, n)
            data = {f"x{j}": rng.normal(size=n) + 0.2 * k * (j % 3) for j in range(COLUMNS)}
            table = pa.table({**data, "label": labels.take(pa.array(k))})
            writer = writer or pa.parquet.ParquetWriter(folder / "parquet" / f"part-{i}.parquet", table.schema)
            writer.write_table(table)
            csv = csv or pa.csv.CSVWriter(folder / "rows.csv", table.schema)
            if i == 0 and start + n <= max(rows // CSV_SHARE, GROUP):
                csv.write_table(table)
        writer.close()
    csv.close()
    mark.touch()


def _duckdb(source: str) -> None:
    import duckdb

    sums = ", ".join(f"sum(x{j})" for j in range(COLUMNS))
    duckdb.connect().sql(f"SELECT label, {sums} FROM {source} GROUP BY label").fetchall()


def _job(name: str, folder: Path) -> Callable[[], Any]:
    from likely import Gaussian, GenerativeClassifier, LinearDiscriminant, NaiveBayes, scan

    files, csv = folder / "parquet", folder / "rows.csv"
    jobs: dict[str, Callable[[], Any]] = {
        "duckdb parquet": lambda: _duckdb(f"read_parquet('{files}/*.parquet')"),
        "NaiveBayes(Gaussian('diagonal'))": lambda: NaiveBayes(Gaussian("diagonal")).fit(scan(files), "label"),
        "LinearDiscriminant()": lambda: LinearDiscriminant().fit(scan(files), "label"),
        "GenerativeClassifier()": lambda: GenerativeClassifier().fit(scan(files), "label"),
        "duckdb csv": lambda: _duckdb(f"read_csv('{csv}')"),
        "LinearDiscriminant() csv": lambda: LinearDiscriminant().fit(scan(csv), "label"),
    }
    if name == "predict_to":
        first = files / "part-0.parquet"
        model = LinearDiscriminant().fit(scan(first), "label")
        return lambda: model.predict_to(scan(files), folder / "predicted.parquet", keep=[])
    return jobs[name]


def _measured(name: str, folder: Path) -> dict[str, float]:
    job = _job(name, folder)
    before = _resident()
    result = {}
    for _ in range(2):
        cpu, wall = time.process_time(), time.perf_counter()
        job()
        result = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**result, "memory": peak - before}


def _resident() -> float:
    """Resident memory in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], Path(sys.argv[2]))))
