"""`check_family` accepts the families of the library, and names the law that a wrong family breaks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from likely import (
    Bernoulli,
    Beta,
    Categorical,
    Exponential,
    Gamma,
    GenerativeClassifier,
    Geometric,
    NegativeBinomial,
    Poisson,
    VonMises,
)
from likely.errors import FamilyLawError, InputError
from likely.families.estimation import Estimation
from likely.families.exponential import ExponentialDensity
from likely.testing import check_family


@pytest.mark.parametrize(
    "family",
    [
        Poisson(),
        Geometric(),
        NegativeBinomial(2.0),
        Exponential(),
        Gamma(),
        Gamma(2.0),
        Beta(),
        Bernoulli(),
        VonMises(24.0),
    ],
    ids=str,
)
def test_families_of_the_library_keep_all_laws(family: Any) -> None:
    assert check_family(family) == []


class Density(ExponentialDensity):
    """Exponential densities, in which tests make one mistake."""


class Waiting(Exponential):
    """Exponential distributions with the densities of a test."""

    density: type = Density

    def estimate(self, statistics: Any, estimation: Any, names: Any) -> Any:
        found: Any = super().estimate(statistics, Estimation.of(estimation).plug_in, names)
        return self.density(found.informative, found.constant_value, found.rate)


def waiting(**methods: Any) -> Waiting:
    """A family whose densities have other methods."""
    density = type("Density", (Density,), methods)
    return type("Waiting", (Waiting,), {"density": density})()


class Weightless(Waiting):
    def estimate(self, statistics: Any, estimation: Any, names: Any) -> Any:
        return super().estimate(replace(statistics, weight=statistics.rows.astype(float)), estimation, names)


class OwnAverages(Waiting):
    def estimate(self, statistics: Any, estimation: Any, names: Any) -> Any:
        found: Any = super().estimate(statistics, Estimation.MLE, names)
        return replace(found, rate=0.5 * (found.rate + found.rate.mean(axis=0)))


WRONG: dict[str, tuple[Any, str]] = {
    "collected is no tuple": (
        type("Waiting", (Waiting,), {"collected": lambda self, x: [x, x * x]})(),
        "collected.* returned list, and must return a tuple of arrays",
    ),
    "collected has another shape": (
        type("Waiting", (Waiting,), {"collected": lambda self, x: (x, x.sum(axis=0))})(),
        r"collected.* shape \(2,\) at place 1 instead of \(60, 2\)",
    ),
    "natural is no pair": (waiting(natural=lambda self: (-self.rate,)), "natural.* must return a tuple"),
    "natural has another shape": (
        waiting(natural=lambda self: ((-self.rate[0],), -np.log(self.rate))),
        r"natural.* shape \(2,\) at place 0 instead of \(3, 2\)",
    ),
    "statistics are too many": (
        waiting(statistics=lambda self, x: (x, x)),
        "returned? 2 arrays, and natural|returns 2 arrays",
    ),
    "density is not normalised": (
        waiting(natural=lambda self: ((-self.rate,), np.zeros_like(self.rate))),
        "densities of column 0 sum to one",
    ),
    "carrier is not in the density": (
        waiting(log_density=lambda self, rows: 1.0 + ExponentialDensity.log_density(self, rows)),
        "the natural form is the log-density: .* relative difference",
    ),
    "samples of another scale": (
        waiting(draw=lambda self, label, n, rng: rng.exponential(2.0 / self.rate[label], (n, self.dimension))),
        "samples have the expectations of the density.* standard errors",
    ),
    "weights are rows": (Weightless(), "a whole weight is that many rows"),
    "averages of the rows at hand": (OwnAverages(), "leave-one-out is an estimate without the row"),
    "exports another statistic": (
        waiting(statistic_expressions=lambda self, x: (x + x,)),
        "the exported statement has the same probabilities",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_law_that_a_family_breaks_is_named(name: str) -> None:
    family, words = WRONG[name]
    with pytest.raises(FamilyLawError, match=words):
        check_family(family, estimations=["map"])


def test_families_of_several_columns_are_refused() -> None:
    with pytest.raises(InputError, match="not a ColumnFamily"):
        check_family(Categorical())


@pytest.mark.parametrize(
    "name", ["collected is no tuple", "natural is no pair", "natural has another shape", "statistics are too many"]
)
def test_models_name_the_method_whose_form_is_wrong(name: str) -> None:
    X, y = np.random.default_rng(0).exponential(size=(30, 2)), np.arange(30) % 3
    with pytest.raises(InputError, match=r"Waiting\.collected|Density\.natural|Density\.statistics"):
        GenerativeClassifier(WRONG[name][0], estimation="map").fit(X, y).predict_proba(X)
