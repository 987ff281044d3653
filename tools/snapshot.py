"""Results of every estimator on real tables in one file, and the differences between two such files.

    python -m tools.snapshot OUT.npz [--only SECTION ...] [--processes 2]
    python -m tools.snapshot --compare OLD.npz NEW.npz [--tolerance 1e-9] [--allow PATTERN ...] [--only SECTION ...]

A change that must not change numbers is checked by a file from before and one from after. Only public interfaces are
used, so that one version of this tool runs on both. Arrays are named section/table-model/output, and patterns have the
wildcards of a shell. The exit code of a comparison is 1 if arrays differ that no pattern allows to differ.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `python tools/snapshot.py`

from tools.snapshot_outputs import SECTIONS


def array(value: Any) -> np.ndarray:
    """Numbers as numbers, anything else as text."""
    found = np.asarray(value)
    try:
        return found.astype(np.float64)
    except (TypeError, ValueError):
        return found.astype(str)


def arrays(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of a result, which may be nested; frames have one of all numbers and one of all text."""
    if isinstance(value, pd.DataFrame):
        columns = [array(value[column]) for column in value]
        kinds = {"numbers": [each for each in columns if each.dtype.kind == "f"]}
        kinds |= {"text": [each for each in columns if each.dtype.kind != "f"]}
        value = {"columns": list(value)} | {kind: found for kind, found in kinds.items() if found}
    elif isinstance(value, tuple):
        value = dict(enumerate(value))
    if isinstance(value, dict):
        for key, each in value.items():
            yield from arrays(f"{name}/{key}", each)
    elif value is not None:
        yield name, array(value)


def run(section: str) -> tuple[str, float, dict[str, np.ndarray]]:
    """The arrays of a section, and its seconds."""
    start = time.perf_counter()
    named: dict[str, np.ndarray] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for result, value in SECTIONS[section]():
            for name, found in arrays(f"{section}/{result}", value):
                if name in named:
                    raise ValueError(f"two arrays have the name {name!r}")
                named[name] = found
    return section, time.perf_counter() - start, named


def largest_difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest |a − b| / (1 + |a|); infinite where text, shapes or the places of NaN and infinities differ."""
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return np.inf
    if a.dtype.kind != "f":
        return 0.0 if np.array_equal(a, b) else np.inf
    finite = np.isfinite(a)
    if not (np.array_equal(finite, np.isfinite(b)) and np.array_equal(a[~finite], b[~finite], equal_nan=True)):
        return np.inf
    return float(np.max(np.abs(a[finite] - b[finite]) / (1.0 + np.abs(a[finite])), initial=0.0))


def compare(old: Path, new: Path, tolerance: float, allowed: list[str], sections: list[str]) -> int:
    """Print the arrays that differ, the worst first, and return how many of them no pattern allows."""
    with np.load(old) as first, np.load(new) as second:
        names = [name for name in first.keys() | second.keys() if name.split("/")[0] in sections]
        pairs = {name: (name in first, name in second) for name in sorted(names)}
        found = {name: largest_difference(first[name], second[name]) for name, both in pairs.items() if all(both)}
    lines = [(name, "missing" if here else "additional") for name, (here, there) in pairs.items() if here != there]
    worst = sorted(((size, name) for name, size in found.items() if not size <= tolerance), reverse=True)
    lines += [(name, f"{size:.1e}") for size, name in worst]
    wrong = [name for name, _ in lines if not any(fnmatchcase(name, pattern) for pattern in allowed)]
    for name, text in lines:
        print(f"{text:<10} {name}{'' if name in wrong else ' (allowed)'}")
    print(f"{len(names)} arrays, {len(lines)} differ, of which {len(lines) - len(wrong)} may")
    return len(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="the file to write, or the two to compare")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--tolerance", type=float, default=1e-9)
    parser.add_argument("--allow", nargs="*", default=[], metavar="PATTERN")
    parser.add_argument("--only", nargs="*", default=list(SECTIONS), metavar="SECTION", choices=list(SECTIONS))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.compare:
        old, new = options.files
        return int(compare(old, new, options.tolerance, options.allow, options.only) > 0)
    (out,) = options.files
    found: dict[str, Any] = {}
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        for section, seconds, named in pool.map(run, options.only):
            print(f"{section:<16} {len(named):>6} arrays {seconds:8.1f} s", flush=True)
            found |= named
    np.savez_compressed(out, **found)
    print(f"{len(found)} arrays in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
