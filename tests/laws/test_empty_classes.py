"""A class without any value of a column has an estimate under a proper prior, and an error under an improper one."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
import pytest

from likely import (
    Bernoulli,
    Beta,
    BetaPrior,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    GammaPrior,
    Gaussian,
    GenerativeClassifier,
    Geometric,
    LogNormal,
    Multinomial,
    NegativeBinomial,
    NormalInverseWishart,
    PointMass,
    Poisson,
    PseudoRows,
    Text,
    VonMises,
)
from likely.errors import NotEstimableError
from likely.families import MEMBERS
from tests.laws.families import WITH_PRIOR, Case, Member, OfExponential, OfGamma, OfPoisson
from tests.laws.registry import Floats
from tests.laws.test_left_out import check_left_out

Y = np.array(list("aaaabb"))
NUMBERS: list[list[Any]] = [[1.0], [2.0], [1.0], [4.0], [np.nan], [np.nan]]
BITS: list[list[Any]] = [[1.0], [0.0], [1.0], [1.0], [np.nan], [np.nan]]
LETTERS: list[list[Any]] = [["u"], ["v"], ["u"], ["v"], [None], [None]]
VECTORS: list[list[Any]] = [[1, 2], [2, 0], [1, 3], [2, 2], [0, 0], [0, 0]]
VISITS: list[list[Any]] = [[*row, 2.0] for row in NUMBERS]
DOCUMENTS: list[list[Any]] = [["hot tea"], ["cold tea"], ["tea"], ["hot"], [""], [""]]
WITH_ZEROS: list[list[Any]] = [[1.0], [2.0], [0.0], [4.0], [0.0], [0.0]]

PSEUDO_EVENT, EVENT = GammaPrior(1.0, exposure=0.0), GammaPrior(1.0, exposure=0.5)
FLAT, NEAR = NormalInverseWishart(0.0, 0.0, 4.5, 1.5), NormalInverseWishart(0.0, 0.5, 4.5, 1.5)


class Prior(NamedTuple):
    """Families with an improper prior and with the prior that the error recommends."""

    improper: Any
    X: list[list[Any]]
    remedy: str
    mended: Any
    estimations: tuple[str, ...] = WITH_PRIOR


EXPOSURE = r"GammaPrior\(exposure=0\) is improper\. Set exposure > 0"
ROWS = r"Set NormalInverseWishart\(mean_rows=...\) to a positive number"
IMPROPER = [
    Prior(Exponential(PSEUDO_EVENT), NUMBERS, EXPOSURE, Exponential(EVENT)),
    Prior(Exponential(PSEUDO_EVENT), WITH_ZEROS, EXPOSURE, Exponential(EVENT)),
    Prior(Gamma(2.0, PSEUDO_EVENT), NUMBERS, EXPOSURE, Gamma(2.0, EVENT)),
    Prior(PointMass(0.0, Gamma(2.0, PSEUDO_EVENT)), WITH_ZEROS, EXPOSURE, PointMass(0.0, Gamma(2.0, EVENT))),
    Prior(Poisson(prior=PSEUDO_EVENT), NUMBERS, EXPOSURE, Poisson(prior=EVENT)),
    Prior({0: Poisson(1, PSEUDO_EVENT)}, VISITS, EXPOSURE, {0: Poisson(1, EVENT)}),
    Prior(Poisson("row totals", PSEUDO_EVENT), VECTORS, EXPOSURE, Poisson("row totals", EVENT)),
    Prior(
        Text(family=Poisson("row totals", PSEUDO_EVENT)),
        DOCUMENTS,
        EXPOSURE,
        Text(family=Poisson("row totals", EVENT)),
    ),
    Prior(Gaussian(prior=FLAT), NUMBERS, ROWS, Gaussian(prior=NEAR)),
    Prior(LogNormal(prior=FLAT), NUMBERS, ROWS, LogNormal(prior=NEAR)),
    Prior(Bernoulli(prior=Dirichlet(1.0)), BITS, "Set alpha > 1, use", Bernoulli(prior=Dirichlet(1.1)), ("map",)),
    Prior(Bernoulli(0.0), BITS, "Set smoothing > 0", Bernoulli(0.1), ("mle", "map")),
    Prior(Categorical(prior=Dirichlet(1.0)), LETTERS, "Set alpha > 1", Categorical(prior=Dirichlet(1.1)), ("map",)),
    Prior(Categorical(0.0), LETTERS, "Set smoothing > 0", Categorical(0.1), ("mle", "map")),
    Prior(Multinomial(prior=Dirichlet(1.0)), VECTORS, "Set alpha > 1", Multinomial(prior=Dirichlet(1.1)), ("map",)),
    Prior(Multinomial(0.0), VECTORS, "Set smoothing > 0", Multinomial(0.1), ("mle", "map")),
]
PROPER = [  # all parameters of these priors are positive
    (Beta(PseudoRows(1e-3)), [[0.3], [0.2], [0.6], [0.5], [np.nan], [np.nan]]),
    (VonMises(24, PseudoRows(1e-3)), NUMBERS),
    (Geometric(BetaPrior(1e-3, 1e-3)), NUMBERS),
    (NegativeBinomial(2.0, BetaPrior(1e-3, 1e-3)), NUMBERS),
]


def probabilities(family: Any, X: list[list[Any]], estimation: str) -> Floats:
    rows: Any = np.array(X, dtype=object if isinstance(X[0][0], str) else np.float64)
    model = GenerativeClassifier(family, estimation=estimation, calibration=None).fit(rows, Y)
    return np.asarray(model.predict_proba(rows))


@pytest.mark.parametrize(
    ("prior", "estimation"),
    [pytest.param(prior, name, id=f"{prior.improper}-{name}") for prior in IMPROPER for name in prior.estimations],
)
def test_an_improper_prior_is_an_error_with_a_remedy(prior: Prior, estimation: str) -> None:
    with pytest.raises(NotEstimableError, match=prior.remedy):
        probabilities(prior.improper, prior.X, estimation)
    assert np.isfinite(probabilities(prior.mended, prior.X, estimation)).all()


@pytest.mark.parametrize("estimation", WITH_PRIOR)
@pytest.mark.parametrize(("family", "X"), PROPER, ids=str)
def test_a_proper_prior_gives_probabilities(family: Any, X: list[list[Any]], estimation: str) -> None:
    assert np.isfinite(probabilities(family, X, estimation)).all()


def test_every_family_with_a_prior_is_listed() -> None:
    listed = {type(case.improper) for case in IMPROPER} | {type(family) for family, _ in PROPER}
    assert {kind for kind in MEMBERS if "prior" in inspect.signature(kind).parameters} <= listed


@pytest.mark.parametrize("estimation", WITH_PRIOR)
@pytest.mark.parametrize(
    "member",
    [
        OfPoisson(Poisson(prior=PSEUDO_EVENT)),
        OfExponential(Exponential(PSEUDO_EVENT)),
        OfGamma(Gamma(1.7, PSEUDO_EVENT)),
    ],
    ids=str,
)
def test_the_only_row_of_a_class_leaves_an_improper_prior_without_a_density(member: Member, estimation: str) -> None:
    rows = member.table(seed=2, sizes=(15, 15, 1))
    check_left_out(Case(member, estimation), rows, np.ones(len(rows.y)))


@pytest.mark.parametrize(
    ("family", "estimation"),
    [
        (Poisson(prior=PSEUDO_EVENT), "bayes"),  # "map" does not ignore constant columns of counts
        (Exponential(PSEUDO_EVENT), "map"),
        (Exponential(PSEUDO_EVENT), "bayes"),
        (Gamma(2.0, PSEUDO_EVENT), "map"),
        (Gamma(2.0, PSEUDO_EVENT), "bayes"),
    ],
    ids=str,
)
def test_a_column_without_any_value_is_ignored_under_an_improper_prior(family: Any, estimation: str) -> None:
    X = np.column_stack([np.arange(1.0, 7.0), np.full(6, np.nan)])
    both, alone = (
        GenerativeClassifier(family, estimation=estimation, calibration=None).fit(rows, Y) for rows in (X, X[:, :1])
    )
    np.testing.assert_allclose(both.predict_proba(X), alone.predict_proba(X[:, :1]))
    assert len(both.parameters()) == len(alone.parameters())
