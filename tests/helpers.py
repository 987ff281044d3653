"""Loaders for the tables and reference numbers that the tests read, and what explanations add up to."""

import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from likely.errors import ModelFileError
from likely.numerics.shapes import check

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


def fits(value: Any) -> bool:
    """Whether an object is one that a model file may hold."""
    try:
        check(value)
    except (ModelFileError, LookupError, TypeError, ValueError):
        return False
    return True


def explained_scores(model: Any, X: Any) -> Any:
    """What the terms of an explanation add up to: log p(x, class), or t·log p(x | class) + log p(class) + c.

    The intercepts c are those of rows with an observed value.
    """
    joint, calibration = model.log_joint(X), getattr(model, "calibration_", None)
    if calibration is None:
        return joint
    log_prior = np.log(model.class_prior_)
    evidence = joint - log_prior
    unobserved = (np.abs(evidence) < 1e-9).all(axis=1, keepdims=True)
    return calibration.exponent * evidence + log_prior + np.where(unobserved, 0.0, calibration.intercepts)
