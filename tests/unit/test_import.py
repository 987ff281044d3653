"""`import likely` is light: public names import their modules when they are used first."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from sklearn.datasets import load_iris

import likely
from likely import LinearDiscriminant

HEAVY = {"numpy", "scipy", "sklearn", "pyarrow", "duckdb", "pandas", "polars", "matplotlib", "narwhals"}


def in_new_process(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_import_loads_no_dependency() -> None:
    loaded = json.loads(in_new_process("import json, sys, likely; print(json.dumps(list(sys.modules)))"))
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    assert [name for name in loaded if name.startswith("likely")] == ["likely"]


def test_dir_lists_all_public_names() -> None:
    names = json.loads(in_new_process("import json, likely; print(json.dumps(dir(likely)))"))
    assert set(likely.__all__) | {"datasets", "errors", "functions"} <= set(names)


def test_every_public_name_is_found() -> None:
    in_new_process("import likely; [getattr(likely, name) for name in dir(likely)]; from likely import *")


def test_load_finds_the_classes_of_a_file_that_were_not_imported(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "model.likely"
    likely.EvidenceClassifier(["columns", LinearDiscriminant()]).fit(X, y).save(path)
    assert in_new_process(f"import likely; print(type(likely.load({str(path)!r})).__name__)") == "EvidenceClassifier"


def test_a_lazy_frame_is_a_source_before_anything_was_scanned() -> None:
    code = """
import polars as pl
from likely import LinearDiscriminant
rows = pl.LazyFrame({"x": [0.0, 1.0, 5.0, 6.0], "y": ["a", "a", "b", "b"]})
print(*LinearDiscriminant().fit(rows, "y").predict([[0.5], [5.5]]))
"""
    assert in_new_process(code) == "a b"
