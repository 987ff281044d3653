"""The Palmer penguins that ship with the package, and scores of predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.csv
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.str_]
Index = npt.NDArray[np.intp]

COLUMNS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
CATEGORIES = ("island", "sex", "year")
FOLDS = StratifiedKFold(n_splits=10, shuffle=True, random_state=0)


@dataclass(frozen=True, slots=True)
class Birds:
    """Measurements, (birds, 4), with the species and the island of each bird."""

    X: Array
    y: Labels
    island: Labels
    incomplete: int

    @property
    def species(self) -> list[str]:
        return sorted(set(self.y.tolist()))

    def measures(self, i: int) -> str:
        bill, depth, flipper, mass = self.X[i]
        return f"Bill {bill:.1f} × {depth:.1f} mm, flipper {flipper:.0f} mm, {mass:.0f} g"


@dataclass(frozen=True, slots=True)
class Table:
    """All columns of all birds, with missing values, and the species."""

    X: Any  # an Arrow table
    y: Labels

    @property
    def measurements(self) -> Array:
        """(birds, 4), with NaN for missing values."""
        return np.column_stack([self.X[name].to_numpy().astype(np.float64) for name in COLUMNS])

    @property
    def measured(self) -> Index:
        """The birds with all four measurements."""
        return np.flatnonzero(~np.isnan(self.measurements).any(axis=1))

    @property
    def objects(self) -> npt.NDArray[np.object_]:
        """The same columns as an array of objects, measurements first."""
        categories = np.array([self.X[name].to_pylist() for name in CATEGORIES], dtype=object).T
        return np.hstack([self.measurements.astype(object), categories])

    def named(self, i: int) -> str:
        return f"{self.y[i]} of {self.X['island'][i]}"

    def without(self, i: int, *hidden: str) -> Any:
        """One bird with some of its values removed."""
        (values,) = self.X.slice(i, 1).to_pylist()
        return pyarrow.Table.from_pylist([values | dict.fromkeys(hidden)], schema=self.X.schema)


def load_table() -> Table:
    """The penguins that ship with the package."""
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    with (files("likely") / "datasets" / "penguins.csv").open("rb") as lines:
        rows = pyarrow.csv.read_csv(lines, convert_options=options)
    return Table(rows.drop_columns(["species"]), np.array(rows["species"].to_pylist()))


def load_birds() -> Birds:
    """The birds with all four measurements."""
    table = load_table()
    known = table.measured
    island = np.array(table.X["island"].to_pylist())
    return Birds(table.measurements[known], table.y[known], island[known], len(table.y) - len(known))


def heading(title: str) -> None:
    print(f"\n{title}\n{'─' * len(title)}\n")


def take(X: Any, index: Index) -> Any:
    """Rows of an array or of an Arrow table."""
    return X[index] if isinstance(X, np.ndarray) else X.take(index)


def out_of_fold(estimator: Any, X: Any, y: Labels, usable: Index | None = None) -> Array:
    """Out-of-fold posteriors of all birds; models are fitted on the usable birds of the training folds."""
    posterior = np.empty((len(y), len(set(y.tolist()))))
    for train, test in FOLDS.split(y, y):
        rows = train if usable is None else np.intersect1d(train, usable)
        posterior[test] = estimator.fit(take(X, rows), y[rows]).predict_proba(take(X, test))
    return posterior


def scores(posterior: Array, y: Labels, species: list[str]) -> tuple[float, float]:
    """Accuracy and log-loss."""
    correct = np.array(species)[posterior.argmax(axis=1)] == y
    return float(correct.mean()), float(log_loss(y, posterior, labels=species))


def print_scores(posteriors: Mapping[str, Array], y: Labels) -> None:
    print(f"{'':<45}accuracy   log-loss")
    for name, posterior in posteriors.items():
        accuracy, loss = scores(posterior, y, sorted(set(y.tolist())))
        print(f"{name:<45}{accuracy:>8.4f}{loss:>11.4f}")
