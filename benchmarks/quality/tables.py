"""Tables of a folder: features, and classes as text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.helpers import DATA

# The class column of known tables, and columns that are no features.
KNOWN: dict[str, tuple[str, list[str]]] = {
    "iris": ("Species", []),
    "wine": ("class", []),
    "penguins": ("species", []),
    "glass": ("Type", []),
    "sonar": ("Class", []),
    "satellite": ("classes", []),
    "housevotes84": ("Class", []),
    "zoo": ("type", []),
    "breastcancer_wisconsin": ("Class", ["Id"]),
    "pima_missing": ("diabetes", []),
    "german_credit": ("class", []),
    "optdigits": ("digit", []),
    "letter": ("lettr", []),
    "shuttle": ("Class", []),
    "vowel": ("y", ["row.names"]),
    "nycflights13": ("carrier", []),
    "sms_spam": ("label", []),
    "newsgroups20": ("label", ["id"]),
}
DEFAULT = list(KNOWN)[:12]
MOST_ROWS = 5_000
FEWEST_ROWS = 3  # of a class, on average


class UnsuitableTableError(ValueError):
    """A table without a column of classes."""


@dataclass(frozen=True)
class Table:
    """Features and labels of a table."""

    name: str
    X: pd.DataFrame
    y: Any

    @cached_property
    def fingerprint(self) -> str:
        """A hash of features and labels, by which results are found again."""
        rows = pd.util.hash_pandas_object(self.X.assign(**{"": self.y}), index=False).to_numpy()
        columns = "\n".join(map(str, self.X.columns))
        return sha256(rows.tobytes() + columns.encode()).hexdigest()[:16]

    def drawn(self, rows: int = MOST_ROWS) -> Table:
        """The table itself, or rows of it drawn with seed 0 where it has more."""
        if len(self.y) <= rows:
            return self
        chosen = np.sort(np.random.default_rng(0).permutation(len(self.y))[:rows])
        return Table(self.name, self.X.iloc[chosen].reset_index(drop=True), self.y[chosen])


def paths(folder: Path | None) -> dict[str, Path]:
    """Paths of the tables of a folder by name; without a folder, of the tables of the project.

    A table is `name.csv`, `name.parquet`, or `data` or `train` in a subfolder of its name. `name-train` is the table
    `name`. Test sets are not read.
    """
    if folder is None:
        with as_file(files("likely") / "datasets" / "penguins.csv") as penguins:
            found = paths(DATA) | {"penguins": penguins}
        return {name: found[name] for name in DEFAULT}
    found = {}
    for path in sorted([*folder.glob("*.*"), *folder.glob("*/*.*")]):
        if path.suffix in (".csv", ".parquet") and path.stem != "test" and not path.stem.endswith("-test"):
            name = path.parent.name if path.stem in ("data", "train") else path.stem.removesuffix("-train")
            found[name] = path
    if not found:
        raise SystemExit(f"{folder} has no tables: expected CSV or Parquet files in it, or in its subfolders.")
    return found


def load(folder: Path | None, names: list[str] | None = None) -> tuple[list[Table], list[str]]:
    """The tables of a folder, or those named, and why others are skipped.

    `tables.json` in the folder may give the class column of a table, or a mapping with `class` and `drop` (columns
    that are no features): {"iris": "Species", "patients": {"class": "outcome", "drop": ["id"]}}. The class is the last
    column otherwise.
    """
    found = paths(folder)
    unknown = [name for name in names or () if name not in found]
    if unknown:
        raise SystemExit(f"No table is named {', '.join(unknown)}. Choose from {', '.join(found)}.")
    described = {} if folder is None else _described(folder)
    tables, skipped = [], []
    for name in names or found:
        try:
            tables.append(read(name, found[name], described.get(name)))
        except UnsuitableTableError as error:
            skipped.append(str(error))
    if not tables:
        raise SystemExit("\n".join(skipped))
    return tables, skipped


def read(name: str, path: Path, described: tuple[str, list[str]] | None) -> Table:
    """A table in which exactly the empty fields are missing values; rows without a class are dropped."""
    parquet = path.suffix == ".parquet"
    frame = pd.read_parquet(path) if parquet else pd.read_csv(path, keep_default_na=False, na_values=[""])
    target, dropped = described or KNOWN.get(name, ("", []))
    if described is None and target not in frame.columns:
        target, dropped = str(frame.columns[-1]), []
    if target not in frame.columns:
        raise SystemExit(f"tables.json names {target!r} as the class column of {name}, which {path} does not have.")
    frame = frame[frame[target].notna()].drop(columns=dropped, errors="ignore").reset_index(drop=True)
    y = np.asarray(frame.pop(target).astype(str), dtype=object)
    classes = len(np.unique(y))
    if classes < 2 or classes * FEWEST_ROWS > len(y) or frame.empty:
        raise UnsuitableTableError(
            f"{name} is skipped: its class column {target!r} has {classes} distinct values in {len(y)} rows. "
            "Name another class column in tables.json."
        )
    return Table(name, frame, y)


def _described(folder: Path) -> dict[str, tuple[str, list[str]]]:
    path = folder / "tables.json"
    if not path.exists():
        return {}
    entries = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: (entry, []) if isinstance(entry, str) else (entry["class"], entry.get("drop", []))
        for name, entry in entries.items()
    }
