"""The registry of the family laws: every family with its options, and how to sample, sum, perturb and integrate it.

Each member is written from the textbook: its prior, posterior and plug-in density do not use the library's statistics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import gammaln, log_softmax

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
    Geometric,
    Histogram,
    LogNormal,
    Multinomial,
    NegativeBinomial,
    NormalInverseWishart,
    Pairs,
    PointMass,
    Poisson,
    PseudoRows,
    VonMises,
)
from likely.families.base import Columns, Conditionals
from likely.families.estimation import Estimation
from likely.families.gaussian.covariance import DiagonalCovariance
from tests.laws.registry import ESTIMATIONS, Floats, Rows

Index = NDArray[np.intp]

LETTERS = np.array(["a", "b", "c"])
SIZES = (14, 11, 9)
WITH_PRIOR = ("map", "bayes")


# Sums and integrals.


class Measure(ABC):
    """How a function of the rows of a block is summed or integrated over the support."""

    @abstractmethod
    def total(self, part: Conditionals, function: Callable[[NDArray[Any]], Floats]) -> Floats:
        """Σ or ∫ of function(rows, (n, d)), which is (classes, n)."""


@dataclass(frozen=True)
class Counts(Measure):
    """Whole numbers below a bound; the probability beyond it is negligible."""

    bound: int

    def total(self, part: Conditionals, function: Callable[[NDArray[Any]], Floats]) -> Floats:
        return function(np.arange(float(self.bound))[:, None]).sum(axis=1)


class Codes(Measure):
    """The codes of the categories of a column."""

    def total(self, part: Conditionals, function: Callable[[NDArray[Any]], Floats]) -> Floats:
        assert part.vocabularies is not None
        (words,) = part.vocabularies
        return function(np.arange(len(words))[:, None]).sum(axis=1)


@dataclass(frozen=True)
class Vectors(Measure):
    """Vectors of counts that have a given sum."""

    size: int

    def total(self, part: Conditionals, function: Callable[[NDArray[Any]], Floats]) -> Floats:
        every = np.array(list(product(range(self.size + 1), repeat=part.dimension)), dtype=np.float64)
        return function(every[every.sum(axis=1) == self.size]).sum(axis=1)


@dataclass(frozen=True)
class Interval(Measure):
    """Real numbers, by the trapezoid rule after a change of variable under which densities die out before both ends.

    For such functions, and for periodic ones, the rule converges faster than any power of the step.
    """

    change: Callable[[Floats], tuple[Floats, Floats]]  # z to x, and dx/dz
    low: float
    high: float
    points: int = 6000

    def total(self, part: Conditionals, function: Callable[[NDArray[Any]], Floats]) -> Floats:
        z = np.linspace(self.low, self.high, self.points)
        x, slope = self.change(z)
        return np.asarray(trapezoid(function(x[:, None]) * slope, z, axis=1))


@dataclass(frozen=True)
class Pieces(Measure):
    """Real numbers, by Gauss quadrature between edges at which a density jumps, and over exponential tails."""

    edges: tuple[float, ...]

    def total(self, part: Conditionals, function: Callable[[NDArray[Any]], Floats]) -> Floats:
        points, weights = np.polynomial.legendre.leggauss(30)
        low, high = np.array(self.edges[:-1])[:, None], np.array(self.edges[1:])[:, None]
        cells, jacobian = (low + high) / 2.0 + (high - low) / 2.0 * points, (high - low) / 2.0 * weights
        beyond, tails = np.polynomial.laguerre.laggauss(80)
        first, last = self.edges[1] - self.edges[0], self.edges[-1] - self.edges[-2]
        x = np.concatenate([self.edges[0] - first * beyond, cells.ravel(), self.edges[-1] + last * beyond])
        scale = tails * np.exp(beyond)
        return np.asarray(
            (function(x[:, None]) * np.concatenate([first * scale, jacobian.ravel(), last * scale])).sum(axis=1)
        )


POSITIVE = Interval(lambda z: (np.exp(z), np.exp(z)), -90.0, 40.0)
LINE = Interval(lambda z: (np.sinh(z), np.cosh(z)), -30.0, 30.0)
UNIT = Interval(lambda z: (1.0 / (1.0 + np.exp(-z)), 0.25 / np.cosh(z / 2.0) ** 2), -90.0, 34.0)
DAY = Interval(lambda z: (z, np.ones_like(z)), 0.0, 24.0)


# Members.


@dataclass(frozen=True)
class Member(ABC):
    """A family with options, and what the laws need to know of it."""

    family: Any
    estimations: tuple[str, ...] = ESTIMATIONS

    measure: ClassVar[Measure]
    outside: ClassVar[float | None] = None  # a number outside the support
    steady: ClassVar[float | None] = None  # a value for a column that always has it
    step: ClassVar[float] = 1.0  # between neighbours on a line through the support; 0: any
    linear: ClassVar[bool] = False  # whether log-odds are linear in x, for all options
    whole: ClassVar[bool] = False  # whether the columns are one vector

    def __str__(self) -> str:
        return str(self.family).replace(" ", "").replace("\n", "")

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        """n rows of class k."""

    @abstractmethod
    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        """Plugged-in conditionals whose free parameters are moved a little, in a random direction."""

    @property
    def has_log_prior(self) -> bool:
        """Whether the prior is written down here: defaults that are derived from the whole table are not."""
        return True

    @abstractmethod
    def log_prior(self, fitted: Any, rows: Rows) -> float:
        """Log-density of the prior of "map" at plugged-in parameters, up to a constant."""

    @property
    def has_predictive(self) -> bool:
        """Whether "bayes" integrates over a posterior that is written down here."""
        return True

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        """Densities (draws, n) of cells x under parameters drawn from the posterior."""
        raise NotImplementedError

    @property
    def log_odds_are_linear(self) -> bool:
        return self.linear

    # -- tables

    def table(self, seed: int = 0, sizes: Sequence[int] = SIZES) -> Rows:
        """Rows of the classes in random order."""
        rng = np.random.default_rng(seed)
        X = np.vstack([self.draw(rng, n, k) for k, n in enumerate(sizes)])
        order = rng.permutation(len(X))
        return Rows(X[order], np.repeat(LETTERS[: len(sizes)], sizes)[order])

    def incomplete(self, rows: Rows, seed: int = 0) -> Rows:
        """The same rows with every fifth cell missing, and one row missing altogether; a vector misses none."""
        if self.whole:
            return rows
        X, rng = rows.X.copy(), np.random.default_rng(seed)
        X[rng.random(X.shape) < 0.2] = self.missing
        X[3] = self.missing
        return Rows(X, rows.y)

    @property
    def missing(self) -> float:
        return np.nan

    def columns(self, rows: Rows) -> Columns:
        return Columns(names_of(rows.X.shape[1]))

    # -- learning

    def statistics(self, rows: Rows, weights: Floats | None = None, classes: NDArray[Any] | None = None) -> Any:
        """Of all rows at once, among the classes given or those that the rows have."""
        known = rows.classes if classes is None else classes
        builder = self.family._accumulator(known, self.columns(rows))
        builder.add(rows.X, np.searchsorted(known, rows.y), weights)
        return builder.finish()

    def estimate(self, statistics: Any, estimation: str) -> Any:
        return self.family.estimate(statistics, Estimation(estimation), names_of(statistics.dimension))

    def fit(self, rows: Rows, estimation: str, weights: Floats | None = None) -> Any:
        self.family.check(Estimation(estimation))
        return self.estimate(self.statistics(rows, weights), estimation)

    def parts(self, fitted: Conditionals) -> Iterator[tuple[Index, Conditionals]]:
        """The densities of single columns; of a vector, the whole."""
        if self.whole:
            yield np.arange(fitted.dimension), fitted
            return
        for j in range(fitted.dimension):
            yield np.array([j]), fitted.marginal(np.array([j]))


def names_of(d: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(d))


def log_likelihood(fitted: Conditionals, rows: Rows) -> float:
    """Log-likelihood of all rows under their classes."""
    return float(fitted.log_density(rows.X)[rows.codes, np.arange(len(rows.y))].sum())


# 0, 1 and labels.


class OfBernoulli(Member):
    measure = Counts(2)
    outside, steady, linear = 2.0, 1.0, True

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        chances = np.array([[0.3, 0.8], [0.5, 0.4], [0.7, 0.6]])[k]
        return (rng.random((n, 2)) < chances).astype(np.float64)

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        odds = fitted.ones / fitted.zeros * np.exp(size * rng.standard_normal(fitted.ones.shape))
        return replace(fitted, ones=odds, zeros=np.ones_like(odds))

    def pseudo(self, estimation: str) -> tuple[float, float]:
        if isinstance(self.family.prior, BetaPrior):
            return self.family.prior.successes, self.family.prior.failures
        s = pseudo_counts(self.family, estimation)
        return s, s

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        successes, failures = self.pseudo("map")
        p = fitted.probability
        return float(stats.beta.logpdf(p, 1.0 + successes, 1.0 + failures).sum())

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        successes, failures = self.pseudo("bayes")
        data = rows.of(LETTERS[k])[:, columns[0]]
        p = rng.beta(successes + data.sum(), failures + (1.0 - data).sum(), (draws, 1))
        return np.where(x[:, 0] == 1.0, p, 1.0 - p)


def pseudo_counts(family: Any, estimation: str) -> float:
    """Pseudo-observations of every value: α − 1 under "map", whose prior is Dirichlet(1 + s), and α under "bayes"."""
    if family.prior is not None:
        return float(family.prior.alpha) - (estimation == "map")
    return float({"map": 1.0, "bayes": 0.5}[estimation] if family.smoothing is None else family.smoothing)


WORDS: tuple[tuple[Any, ...], ...] = (("heavy", "light", "middling"), (False, True), (-3, 7, 10, 12))


class OfCategorical(Member):
    measure = Codes()

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        first_proportion = 0.3 + 0.2 * k
        probabilities = [
            np.roll([0.5, 0.3, 0.2], k),
            np.array([first_proportion, 1.0 - first_proportion]),
            np.roll([0.4, 0.3, 0.2, 0.1], k),
        ]
        drawn = np.column_stack([rng.choice(len(p), n, p=p) for p in probabilities]).astype(np.int32)
        drawn[:4] = np.minimum(np.arange(4)[:, None], [2, 1, 3])[:n]  # every class has every category
        return drawn

    def columns(self, rows: Rows) -> Columns:
        return Columns(names_of(rows.X.shape[1]), WORDS)

    @property
    def missing(self) -> float:
        return -1

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        tables = [log_softmax(t + size * rng.standard_normal(t.shape), axis=1) for t in fitted.tables]
        return replace(fitted, tables=tuple(tables))

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        alpha = 1.0 + pseudo_counts(self.family, "map")
        return float(sum((alpha - 1.0) * table.sum() for table in fitted.tables))

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        counts = np.bincount(rows.of(LETTERS[k])[:, columns[0]].astype(int), minlength=len(WORDS[columns[0]]))
        p = rng.dirichlet(pseudo_counts(self.family, "bayes") + counts, draws)
        return p[:, x[:, 0].astype(int)]


class OfPairs(OfCategorical):
    """Columns of one joint density; the laws of single columns run over its marginals."""

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        raise NotImplementedError

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        raise NotImplementedError

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        """Proportions in a class have those in all classes as their prior mean, and these have equal ones."""
        size, s = len(WORDS[columns[0]]), self.family.smoothing
        every = np.bincount(rows.X[:, columns[0]].astype(int), minlength=size)
        mine = np.bincount(rows.of(LETTERS[k])[:, columns[0]].astype(int), minlength=size)
        p = rng.dirichlet(s * (every + s / size) / (len(rows.y) + s) + mine, draws)
        return p[:, x[:, 0].astype(int)]


class OfMultinomial(Member):
    measure = Vectors(5)
    outside, whole = -2.0, True

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        return rng.multinomial(rng.poisson(6.0, n), np.roll([0.5, 0.3, 0.2], k)).astype(np.float64)

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        return replace(fitted, counts=fitted.counts * np.exp(size * rng.standard_normal(fitted.counts.shape)))

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        return float(pseudo_counts(self.family, "map") * np.log(fitted.probability).sum())

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        alpha = pseudo_counts(self.family, "bayes") + rows.of(LETTERS[k]).sum(axis=0)
        coefficient = gammaln(x.sum(axis=1) + 1.0) - gammaln(x + 1.0).sum(axis=1)
        return np.exp(np.log(rng.dirichlet(alpha, draws)) @ x.T + coefficient)


# Counts.


class RateMember(Member):
    """A rate per unit of exposure, with a gamma prior."""

    def events_and_exposure(self, data: Floats) -> tuple[Floats, Floats]:
        """Events and exposure of rows, summed over each column."""
        return data.sum(axis=0), np.full(data.shape[1], float(len(data)))

    def pseudo(self, rows: Rows) -> tuple[float, Floats]:
        prior = self.family.prior or GammaPrior()
        events, exposure = self.events_and_exposure(rows.X)
        return prior.events, np.broadcast_to(prior.exposure or prior.events * exposure / events, exposure.shape)

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        return replace(fitted, rate=fitted.rate * np.exp(size * rng.standard_normal(fitted.rate.shape)))

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        events, exposure = self.pseudo(rows)
        return float(stats.gamma.logpdf(fitted.rate, 1.0 + events, scale=1.0 / exposure).sum())

    def rates(self, rows: Rows, k: int, j: int, draws: int, rng: np.random.Generator) -> Floats:
        """Rates drawn from their posterior, (draws, 1)."""
        before, during = self.pseudo(rows)
        events, exposure = self.events_and_exposure(rows.of(LETTERS[k]))
        return np.asarray(rng.gamma(before + events[j], 1.0 / (during[j] + exposure[j]), (draws, 1)))


class OfPoisson(RateMember):
    measure = Counts(500)
    outside, steady, linear = -2.0, 4.0, True

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        return rng.poisson(np.array([[0.9, 30.0], [2.0, 22.0], [4.0, 25.0]])[k], (n, 2)).astype(np.float64)

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        return np.asarray(stats.poisson.pmf(x[:, 0], self.rates(rows, k, columns[0], draws, rng)))


class ChanceMember(Member):
    """Failures before so many successes, with a beta prior of the chance of success."""

    measure = Counts(100_000)
    outside, steady, linear = -2.0, 4.0, True

    @property
    def successes(self) -> float:
        """That are waited for."""
        return float(getattr(self.family, "dispersion", 1.0))

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        mean = np.array([[0.8, 9.0], [2.0, 4.0], [5.0, 6.0]])[k]
        return rng.poisson(mean * rng.gamma(1.5, 1.0 / 1.5, (n, 2))).astype(np.float64)

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        return replace(fitted, failures=fitted.failures * np.exp(size * rng.standard_normal(fitted.failures.shape)))

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        prior = self.family.prior or BetaPrior()
        return float(stats.beta.logpdf(fitted.probability, 1.0 + prior.successes, 1.0 + prior.failures).sum())

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        prior, data = self.family.prior or BetaPrior(), rows.of(LETTERS[k])[:, columns[0]]
        p = rng.beta(prior.successes + self.successes * len(data), prior.failures + data.sum(), (draws, 1))
        r = self.successes
        coefficient = gammaln(x[:, 0] + r) - gammaln(r) - gammaln(x[:, 0] + 1.0)
        return np.exp(coefficient + r * np.log(p) + x[:, 0] * np.log1p(-p))


# Positive quantities.


class OfExponential(RateMember):
    measure = POSITIVE
    outside, steady, linear, step = -1.0, 2.5, True, 0.0

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        return rng.exponential(np.array([[0.8, 20.0], [3.0, 6.0], [11.0, 9.0]])[k], (n, 2))

    def events_and_exposure(self, data: Floats) -> tuple[Floats, Floats]:
        return np.full(data.shape[1], float(len(data))), data.sum(axis=0)

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        rates = self.rates(rows, k, columns[0], draws, rng)
        return rates * np.exp(-rates * x[:, 0])


class OfGamma(RateMember):
    measure = POSITIVE
    outside, steady, step = 0.0, 2.5, 0.0

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        return np.array([[0.8, 20.0], [3.0, 6.0], [11.0, 9.0]])[k] * rng.gamma(1.8, 1.0 / 1.8, (n, 2))

    @property
    def given(self) -> float | None:
        return None if isinstance(self.family.shape, str) else float(self.family.shape)

    @property
    def log_odds_are_linear(self) -> bool:
        return bool(self.family.shape != "own")

    @property
    def has_predictive(self) -> bool:
        return self.given is not None

    def events_and_exposure(self, data: Floats) -> tuple[Floats, Floats]:
        assert self.given is not None
        return np.full(data.shape[1], self.given * len(data)), data.sum(axis=0)

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        nearby = super().moved(fitted, rng, size)
        if self.given is not None:
            return nearby
        steps = rng.standard_normal(fitted.shape.shape)
        return replace(
            nearby, shape=fitted.shape * np.exp(size * (steps[:1] if self.family.shape == "shared" else steps))
        )

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        return typical_rows(self.family, fitted, rows) if self.given is None else super().log_prior(fitted, rows)

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        assert self.given is not None
        rates = self.rates(rows, k, columns[0], draws, rng)
        power = (self.given - 1.0) * np.log(x[:, 0]) - gammaln(self.given)
        return np.exp(self.given * np.log(rates) + power - rates * x[:, 0])


def typical_rows(family: Any, fitted: Conditionals, rows: Rows) -> float:
    """Pseudo-rows of a weight that are the average of the whole table: their log-likelihood, under every class."""
    weight = (family.prior or PseudoRows()).weight
    return float(weight * fitted.log_density(rows.X).mean(axis=1).sum())


# Fractions and angles.


class OfBeta(Member):
    measure = UNIT
    outside, steady = 1.0, 0.25

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        return np.column_stack([rng.beta(0.7 + k, 2.5, n), rng.beta(20.0, 3.0 + 4.0 * k, n)])

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        steps = np.exp(size * rng.standard_normal((2, *fitted.alpha.shape)))
        return replace(fitted, alpha=fitted.alpha * steps[0], beta=fitted.beta * steps[1])

    @property
    def has_predictive(self) -> bool:
        return False

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        return typical_rows(self.family, fitted, rows)


class OfVonMises(Member):
    measure = DAY
    outside, steady = np.inf, 5.0

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        angles = np.column_stack([rng.vonmises(k - 1.0, 0.9, n), rng.vonmises(2.0, 4.0 + 3.0 * k, n)])
        return np.mod(angles * (24.0 / (2.0 * np.pi)), 24.0)

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        steps = size * rng.standard_normal((2, *fitted.direction.shape))
        direction = fitted.direction + steps[0] * (24.0 / (2.0 * np.pi))
        return replace(fitted, direction=direction, concentration=fitted.concentration * np.exp(steps[1]))

    @property
    def has_predictive(self) -> bool:
        return False

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        return typical_rows(self.family, fitted, rows)


# The Gaussian.


class OfGaussian(Member):
    measure = LINE
    outside, steady, step = np.inf, -1.5, 0.0

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        return rng.normal([[0.0, -5.0], [1.0, 4.0], [-2.0, 0.0]][k], [0.7 + 0.3 * k, 3.0], (n, 2))

    @property
    def shared(self) -> bool:
        return bool(self.family.shared)

    @property
    def log_odds_are_linear(self) -> bool:
        return self.shared

    @property
    def has_log_prior(self) -> bool:
        return self.family.prior is not None

    has_predictive = has_log_prior

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        scale = fitted.covariance.inverse_deviation
        steps = size * rng.standard_normal(scale.shape)
        covariance = DiagonalCovariance(scale * np.exp(steps), fitted.covariance.log_det - 2.0 * steps.sum(axis=1))
        away = size * rng.standard_normal(fitted.mean.shape) / scale[fitted.group]
        return replace(fitted, mean=fitted.mean + away, covariance=covariance)

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        prior = self.family.prior
        variances = 1.0 / fitted.covariance.inverse_deviation**2
        own = stats.invgamma.logpdf(variances, prior.degrees / 2.0, scale=prior.scale / 2.0).sum()
        standard_deviations = np.sqrt(variances[fitted.group] / prior.mean_rows)
        return float(own + stats.norm.logpdf(fitted.mean, prior.mean, standard_deviations).sum())

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        prior, j = self.family.prior, columns[0]
        scale, degrees = prior.scale, prior.degrees
        for label in LETTERS if self.shared else LETTERS[k : k + 1]:
            data = rows.of(label)[:, j]
            pull = prior.mean_rows * len(data) / (prior.mean_rows + len(data))
            scale += ((data - data.mean()) ** 2).sum() + pull * (data.mean() - prior.mean) ** 2
            degrees += len(data)
        data = rows.of(LETTERS[k])[:, j]
        count = prior.mean_rows + len(data)
        variance = 0.5 * scale / rng.gamma(degrees / 2.0, 1.0, (draws, 1))
        centre = (prior.mean_rows * prior.mean + data.sum()) / count
        mean = centre + np.sqrt(variance / count) * rng.standard_normal((draws, 1))
        return np.exp(-0.5 * (x[:, 0] - mean) ** 2 / variance) / np.sqrt(2.0 * np.pi * variance)


class OfLogNormal(OfGaussian):
    measure = POSITIVE
    outside, steady = -3.0, 0.25

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        return np.exp(0.5 * super().draw(rng, n, k))

    @property
    def log_odds_are_linear(self) -> bool:
        return False

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        return replace(fitted, inner=super().moved(fitted.inner, rng, size))

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        return super().log_prior(fitted.inner, rows)

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        return super().plugged_in(Rows(np.log(rows.X), rows.y), k, columns, np.log(x), draws, rng) / x[:, 0]


# Point masses.


@dataclass(frozen=True)
class Atom(Measure):
    """A unit mass at a value, plus the measure of the other values."""

    value: float
    rest: Measure

    def total(self, part: Conditionals, function: Callable[[NDArray[Any]], Floats]) -> Floats:
        return self.rest.total(part, function) + function(np.full((1, 1), self.value))[:, 0]


class OfPointMass(Member):
    """0 in about a third of the rows, and positive values elsewhere; every class has both."""

    measure = Atom(0.0, POSITIVE)
    outside, steady = -3.0, 0.25

    @property
    def inner(self) -> Member:
        return (OfGamma if isinstance(self.family.family, Gamma) else OfLogNormal)(self.family.family)

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        X = self.inner.draw(rng, n, k)
        X[8:] = np.where(rng.random((max(n - 8, 0), 2)) < 0.2 + 0.15 * k, 0.0, X[8:])
        X[:2] = 0.0 if n > 4 else X[:2]
        return X

    def others(self, rows: Rows) -> Rows:
        """The same rows with the zeros as missing values."""
        return Rows(np.where(rows.X == 0.0, np.nan, rows.X), rows.y)

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        indicator = OfBernoulli(Bernoulli()).moved(fitted.indicator, rng, size)
        return replace(fitted, indicator=indicator, inner=self.inner.moved(fitted.inner, rng, size))

    @property
    def has_log_prior(self) -> bool:
        return False  # that of its parts is tested with them

    @property
    def has_predictive(self) -> bool:
        return self.family.family.prior is not None

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        raise NotImplementedError

    def plugged_in(
        self, rows: Rows, k: int, columns: Index, x: NDArray[Any], draws: int, rng: np.random.Generator
    ) -> Floats:
        at_zero = Rows((rows.X == 0.0).astype(np.float64), rows.y)
        one = OfBernoulli(Bernoulli()).plugged_in(at_zero, k, columns, np.ones_like(x), draws, rng)
        mine = rows.of(LETTERS[k])[:, columns[0]]
        kept = Rows(np.where(mine > 0.0, mine, 1.0)[mine > 0.0][:, None], np.full((mine > 0.0).sum(), LETTERS[k]))
        if self.family.family.shared:
            every = rows.X[:, columns[0]] > 0.0
            kept = Rows(rows.X[every][:, columns], rows.y[every])
        density = self.inner.plugged_in(kept, k, np.zeros(1, dtype=np.intp), np.where(x > 0.0, x, 1.0), draws, rng)
        return np.where(x[:, 0] == 0.0, one, (1.0 - one) * density)


# The histogram.


COARSE = (-16.0, -1.0, 16.0)
NARROW = (-4.0, -2.0, -1.0, -0.4, 0.0, 0.5, 1.0, 3.0)
WIDE = (-16.0, -7.0, -3.0, -1.5, -1.0, -0.5, 0.0, 0.3, 0.8, 1.5, 2.5, 4.0, 7.0, 16.0)


class OfHistogram(Member):
    outside, step = np.inf, 0.0

    @property
    def measure(self) -> Measure:  # type: ignore[override]
        return Pieces(self.family.edges)

    def draw(self, rng: np.random.Generator, n: int, k: int) -> NDArray[Any]:
        return rng.normal([[0.0, -5.0], [1.0, 4.0], [-2.0, 0.0]][k], [0.7 + 0.3 * k, 3.0], (n, 2))

    def moved(self, fitted: Any, rng: np.random.Generator, size: float) -> Any:
        logs = fitted.log_ratios + size * rng.standard_normal(fitted.log_ratios.shape)
        return replace(fitted, log_ratios=log_softmax(logs, axis=1))

    @property
    def has_log_prior(self) -> bool:
        return False  # its proportions are derived from the whole table

    def log_prior(self, fitted: Any, rows: Rows) -> float:
        raise NotImplementedError

    @property
    def has_predictive(self) -> bool:
        return False


# The registry.


MEMBERS: list[Member] = [
    OfBernoulli(Bernoulli()),
    OfBernoulli(Bernoulli(smoothing=0.3)),
    OfBernoulli(Bernoulli(prior=BetaPrior(0.7, 2.0)), WITH_PRIOR),
    OfBernoulli(Bernoulli(prior=Dirichlet(1.5)), WITH_PRIOR),
    OfCategorical(Categorical()),
    OfCategorical(Categorical(smoothing=0.3)),
    OfCategorical(Categorical(prior=Dirichlet(1.5)), WITH_PRIOR),
    OfPairs(Pairs(), ("bayes",)),
    OfPairs(Pairs(smoothing=0.3), ("bayes",)),
    OfMultinomial(Multinomial()),
    OfMultinomial(Multinomial(smoothing=0.3)),
    OfMultinomial(Multinomial(prior=Dirichlet(1.5)), WITH_PRIOR),
    OfPoisson(Poisson()),
    OfPoisson(Poisson(prior=GammaPrior(events=2.0, exposure=0.7)), WITH_PRIOR),
    ChanceMember(Geometric()),
    ChanceMember(Geometric(BetaPrior(3.0, 0.7)), WITH_PRIOR),
    ChanceMember(NegativeBinomial(2.5)),
    ChanceMember(NegativeBinomial(0.6, BetaPrior(3.0, 0.7)), WITH_PRIOR),
    OfExponential(Exponential()),
    OfExponential(Exponential(GammaPrior(events=2.0, exposure=0.7)), WITH_PRIOR),
    OfGamma(Gamma()),
    OfGamma(Gamma("own", PseudoRows(2.5)), WITH_PRIOR),
    OfGamma(Gamma("shared")),
    OfGamma(Gamma("shared", PseudoRows(2.5)), WITH_PRIOR),
    OfGamma(Gamma(1.7)),
    OfGamma(Gamma(0.6, GammaPrior(events=2.0, exposure=0.7)), WITH_PRIOR),
    OfBeta(Beta()),
    OfBeta(Beta(PseudoRows(2.5)), WITH_PRIOR),
    OfVonMises(VonMises(24)),
    OfVonMises(VonMises(24, PseudoRows(2.5)), WITH_PRIOR),
    OfGaussian(Gaussian("diagonal")),
    OfGaussian(Gaussian("diagonal", shared=True)),
    OfGaussian(Gaussian("diagonal", prior=NormalInverseWishart(0.5, 0.8, 4.5, 1.5)), WITH_PRIOR),
    OfGaussian(Gaussian("diagonal", shared=True, prior=NormalInverseWishart(0.5, 0.8, 4.5, 1.5)), WITH_PRIOR),
    OfLogNormal(LogNormal()),
    OfLogNormal(LogNormal(shared=True)),
    OfLogNormal(LogNormal(prior=NormalInverseWishart(0.5, 0.8, 4.5, 1.5)), WITH_PRIOR),
    OfHistogram(Histogram(edges=COARSE)),
    OfHistogram(Histogram(edges=WIDE), WITH_PRIOR),
    OfHistogram(Histogram(edges=NARROW), ("bayes",)),
    OfPointMass(PointMass(0.0, Gamma())),
    OfPointMass(PointMass(0.0, Gamma("shared"))),
    OfPointMass(PointMass(0.0, LogNormal(prior=NormalInverseWishart(0.5, 0.8, 4.5, 1.5))), WITH_PRIOR),
    OfPointMass(PointMass(0.0, LogNormal(shared=True, prior=NormalInverseWishart(0.5, 0.8, 4.5, 1.5))), WITH_PRIOR),
]


class Case(NamedTuple):
    member: Member
    estimation: str

    def __str__(self) -> str:
        return f"{self.member}-{self.estimation}"

    def fit(self, rows: Rows, weights: Floats | None = None) -> Any:
        return self.member.fit(rows, self.estimation, weights)


CASES = [Case(member, estimation) for member in MEMBERS for estimation in member.estimations]


def every(cases: Sequence[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=str(case)) for case in cases])
