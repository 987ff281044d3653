"""What the laws run over: every covariance × sharing × estimation, with their options, and small tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from likely import Gaussian, GenerativeClassifier, NormalInverseWishart, Regularized
from likely.families.base import Columns
from likely.families.gaussian.elliptical import Elliptical
from tests.helpers import load_table

Floats = NDArray[np.float64]
Labels = NDArray[Any]

COVARIANCES = ("full", "diagonal", "spherical", "identity")
SHARINGS = ("shared", "grouped", "own")
ESTIMATIONS = ("mle", "map", "bayes")


class Rows(NamedTuple):
    X: Floats
    y: Labels

    @property
    def classes(self) -> Labels:
        return np.unique(self.y)

    @property
    def codes(self) -> NDArray[np.intp]:
        return np.searchsorted(self.classes, self.y)

    def of(self, label: Any) -> Floats:
        """The rows of one class."""
        return self.X[self.y == label]


@dataclass(frozen=True)
class Case:
    """One kind of Gaussian model; "grouped" lets the first two classes share, and the others have their own."""

    covariance: str
    sharing: str
    estimation: str
    word: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return "-".join(filter(None, (self.covariance, self.sharing, self.estimation, self.word)))

    def family(self, classes: Sequence[Any] | Labels) -> Gaussian:
        shared: Any = {"shared": True, "grouped": [list(classes[:2])], "own": False}[self.sharing]
        return Gaussian(self.covariance, shared, **dict(self.options))

    def classifier(self, classes: Sequence[Any] | Labels, class_prior: Any = None) -> GenerativeClassifier:
        return GenerativeClassifier(self.family(classes), class_prior, self.estimation)

    def fit(self, rows: Rows, sample_weight: Floats | None = None) -> GenerativeClassifier:
        return self.classifier(rows.classes).fit(rows.X, rows.y, sample_weight)

    def partners(self, classes: Labels, label: Any) -> list[Any]:
        """The classes that have one covariance with this one, itself among them."""
        labels = classes.tolist()
        if self.sharing == "shared":
            return labels
        if self.sharing == "grouped" and label in labels[:2]:
            return labels[:2]
        return [label]


PLAIN = [Case(*words) for words in product(COVARIANCES, SHARINGS, ESTIMATIONS)]

SHRUNK = [
    Case("full", sharing, "mle", word, (("shrinkage", shrinkage),))
    for sharing in SHARINGS
    for word, shrinkage in [
        ("ledoit-wolf", "ledoit-wolf"),
        ("oas", "oas"),
        ("toward-sphere", 0.3),
        ("regularized", Regularized(pooling=0.4, sphering=0.2)),
    ]
]

UNBIASED = [
    Case(covariance, sharing, "mle", "unbiased", (("unbiased", True),))
    for covariance, sharing in product(("full", "diagonal", "spherical"), SHARINGS)
]

REFERENCE = [
    Case(covariance, sharing, estimation, "reference", (("prior", NormalInverseWishart.reference()),))
    for covariance, sharing, estimation in product(("full", "diagonal", "spherical"), SHARINGS, ("map", "bayes"))
]

CASES = PLAIN + SHRUNK + UNBIASED + REFERENCE
PLUGGED_IN = [case for case in CASES if case.estimation != "bayes"]

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_plugged_in_case = pytest.mark.parametrize("case", PLUGGED_IN, ids=str)


def columns(d: int) -> Columns:
    """So many columns of numbers."""
    return Columns(tuple(f"x{j}" for j in range(d)))


def parts(model: Any) -> Elliptical:
    """The class-conditionals of a model with one block of columns."""
    (block,) = model.model_.blocks
    return cast(Elliptical, block.conditionals)


@cache
def iris() -> Rows:
    """Every third flower."""
    frame = load_table("iris")[::3]
    return Rows(frame.drop(columns="Species").to_numpy(dtype=np.float64), frame["Species"].to_numpy(dtype=str))


@cache
def penguins() -> Rows:
    """Every sixth bird without missing cells."""
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    frame = load_table("penguins").dropna(subset=columns)[::6]
    return Rows(frame[columns].to_numpy(dtype=np.float64), frame["species"].to_numpy(dtype=str))


def random_rows(seed: int, sizes: Sequence[int] = (14, 11, 9), d: int = 3, distance: float = 2.0) -> Rows:
    """Correlated rows of classes named by letters, in random order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(list("abcdefgh")[: len(sizes)], sizes))
    mixing = np.eye(d) + 0.5 * rng.standard_normal((len(sizes), d, d))
    means = distance * rng.standard_normal((len(sizes), d))
    codes = np.searchsorted(np.unique(y), y)
    X = means[codes] + np.einsum("nd,nde->ne", rng.standard_normal((len(y), d)), mixing[codes])
    return Rows(X, y)


def assert_log_equal(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    """Log-densities within tolerance · (1 + |log-density|)."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_array_less(np.abs(actual - expected), tolerance * (1.0 + np.abs(expected)))


def assert_same_answers(model: Any, other: Any, X: Floats, X_other: Floats | None = None, atol: float = 1e-9) -> None:
    """The same posteriors, and the same log-densities to the same relative tolerance."""
    Z = X if X_other is None else X_other
    np.testing.assert_allclose(other.predict_proba(Z), model.predict_proba(X), rtol=0, atol=atol)
    assert_log_equal(other.log_joint(Z), model.log_joint(X), atol)
