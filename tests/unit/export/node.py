"""JavaScript modules, run by Node.js."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

RUN = """\
import { readFileSync } from "node:fs";
import { classes, predict } from "./model.mjs";
const rows = JSON.parse(readFileSync(new URL("rows.json", import.meta.url), "utf-8"));
console.log(JSON.stringify({ classes, results: rows.map((row) => predict(row)) }));
"""


def run_module(module: str, rows: list[dict[str, Any]], script: str = RUN) -> dict[str, Any]:
    """What `predict` returns for rows, and the classes of the module."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "model.mjs").write_text(module, encoding="utf-8")
        (path / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
        (path / "run.mjs").write_text(script, encoding="utf-8")
        done = subprocess.run(["node", path / "run.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
