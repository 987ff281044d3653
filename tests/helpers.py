"""Loaders for the tables and reference numbers that the tests read."""

import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pandas as pd

DATA = Path(__file__).parent / "data"


def load_table(name: str) -> pd.DataFrame:
    """A table by name, in which exactly the empty fields are missing; the penguins come from the package."""
    if name == "penguins":
        with as_file(files("likely") / "datasets" / "penguins.csv") as path:
            return _read(path)
    return _read(DATA / f"{name}.csv")


def load_reference(name: str) -> dict[str, Any]:
    """The numbers in `data/reference/<name>.json`."""
    reference: dict[str, Any] = json.loads((DATA / "reference" / f"{name}.json").read_text(encoding="utf-8"))
    return reference


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, keep_default_na=False, na_values=[""])
