"""Results of peers in a JSON file, so that the next run computes only the estimators of this library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.quality.models import Model


class Cache:
    """Results by table, task and model; without a path nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        known = path is not None and path.exists()
        self.entries: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path and known else {}

    def get(self, table: str, task: str, model: Model, compute: Callable[[], Any]) -> Any:
        """The stored result of a peer, or the computed one, which is stored."""
        if model.ours:
            return compute()
        entry = self.entries.setdefault(f"{table} {task}", {})
        if model.key not in entry:
            entry[model.key] = compute()
            self._write()
        return entry[model.key]

    def _write(self) -> None:
        if self.path is not None:
            beside = self.path.with_name(self.path.name + ".part")
            beside.write_text(json.dumps(self.entries), encoding="utf-8")
            beside.replace(self.path)
