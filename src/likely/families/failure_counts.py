"""Numbers of failures before a given number of successes: what `Geometric` and `NegativeBinomial` have in common.

x | k has the density Γ(x + r)/(Γ(r)·x!)·pʳ·(1 − p)ˣ for x = 0, 1, 2, … with r successes. Natural form: u(x) = x,
θ = log(1 − p), A = −r·log p, h = Γ(x + r)/(Γ(r)·x!). Conjugate prior: a beta distribution of p, as pseudo-counts of
successes (r per row) and failures. The posterior predictive is h·B(a + r, b + x)/B(a, b) after a successes and b
failures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.special

from likely.families.base import Conditionals
from likely.families.column_family import ColumnFamily, constant_value, varies
from likely.families.estimation import Estimation
from likely.families.independent import IndependentColumns, Mask
from likely.families.natural import NaturalColumns
from likely.families.parameters import ColumnParameters, Parameter, parameters_of_columns, waiting_errors
from likely.families.priors import BetaPrior, check_prior, mean_inverse_rate, with_pseudo_data
from likely.families.supports import CHANCES, COUNTS
from likely.numerics.expressions import Expression, log_gamma_ratios
from likely.numerics.special import TINY
from likely.statistics.sums import Sums
from likely.typing import Array


class FailureCounts(ColumnFamily):
    """Families of numbers of failures before a given number of successes, which sum x and x² first."""

    support = COUNTS
    _given_parameters = (("probability", CHANCES),)
    _reads_sparse = True
    _plug_in: ClassVar[type[FailureConditionals]]
    _predictive: ClassVar[type[FailurePredictive]]
    prior: BetaPrior | None

    @property
    def _successes(self) -> float:
        """The number of successes of a row."""
        return 1.0

    def check(self, estimation: Estimation) -> None:
        check_prior(self.prior, BetaPrior, estimation)

    def _pseudo_counts(self) -> tuple[float, float]:
        """Pseudo-counts of successes and failures."""
        return (self.prior or BetaPrior()).counted()

    def _posterior(self, statistics: Sums, estimation: Estimation) -> tuple[Array, Array]:
        """Successes and failures, (classes, d), with the pseudo-counts unless under maximum likelihood."""
        counts = self._successes * statistics.column_weight, statistics.totals[0]
        return with_pseudo_data(counts, self._pseudo_counts(), estimation)

    def _plugged_in(self, informative: Mask, constant: Array, parameters: Mapping[str, Array]) -> FailureConditionals:
        p = parameters["probability"]
        return self._plug_in(informative, constant, self._successes, (1.0 - p) / p)

    def _given_table(self, fitted: Any, names: Sequence[str]) -> list[Parameter]:
        p = 1.0 / (1.0 + fitted.failures)
        return parameters_of_columns(names, fitted.informative, {"probability": (p, None)})

    def _column_parameters(self, statistics: Sums, fitted: Any, estimation: Estimation) -> ColumnParameters:
        successes, failures = self._posterior(statistics, estimation)
        return {"probability": (successes / (successes + failures), waiting_errors(successes, failures, estimation))}

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
        common = varies(statistics), constant_value(statistics), self._successes
        successes, failures = self._posterior(statistics, estimation)
        if estimation == Estimation.BAYES:
            return self._predictive(*common, successes, failures)
        return self._plug_in(*common, failures / successes)

    def _log_carrier(self, sums: Sums) -> Array:
        """Σ log h over the rows, (classes, d); 0 for one success."""
        return np.zeros_like(sums.totals[0])

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        return (sums.totals[0],), self._log_carrier(sums)

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        successes, failures = self._pseudo_counts()
        return (failures,), successes / self._successes

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        """Σ log B(r·n + a, Σx + b) − log B(a, b) + Σ log h."""
        posterior = scipy.special.betaln(*self._posterior(statistics, Estimation.BAYES))
        terms = posterior - scipy.special.betaln(*self._pseudo_counts()) + self._log_carrier(statistics)
        return float(terms[:, varies(statistics)].sum())


@dataclass(frozen=True, eq=False)
class FailureConditionals(NaturalColumns):
    """Distributions with plug-in odds (1 − p)/p, which are exact for p near 0 and for p near 1."""

    dispersion: float
    failures: Array  # per success, (classes, d)

    support: ClassVar = COUNTS

    @property
    def probability(self) -> Array:
        """p, (classes, d)."""
        return np.asarray(1.0 / (1.0 + self.failures))

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        with np.errstate(divide="ignore"):
            return (-np.log1p(1.0 / self.failures),), self.dispersion * np.log1p(self.failures)

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return (x,)

    def statistic_expressions(self, x: Expression) -> tuple[Expression, ...]:
        return (x,)

    def means(self) -> Array:
        return np.asarray(self.dispersion * self.failures)

    def draw_odds(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """The odds of rows of a class, (n, d), which are all the same."""
        return np.broadcast_to(self.failures[label], (n, self.dimension))


@dataclass(frozen=True, eq=False)
class FailurePredictive(IndependentColumns):
    """The same distributions with p integrated over Beta(successes, failures)."""

    dispersion: float
    successes: Array  # (classes, d)
    failures: Array  # (classes, d)

    support: ClassVar = COUNTS

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.successes, self.failures

    def expression(self, x: Expression, *parameters: float) -> Expression:
        """log B(a + r, b + x) − log B(a, b): the log-density of 0, and its change from there."""
        a, b = parameters
        start = float(self.log_terms(np.asarray(0.0), np.asarray(a), np.asarray(b)))
        return log_gamma_ratios(b, a + b + self.dispersion, x) + start

    def means(self) -> Array:
        return np.asarray(self.dispersion * mean_inverse_rate(self.successes, self.failures))

    def draw_odds(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """The odds of rows of a class, (n, d): ratios of gamma variables."""
        size = (n, self.dimension)
        denominator = np.maximum(rng.gamma(self.successes[label], size=size), TINY)
        return np.asarray(rng.gamma(self.failures[label], size=size) / denominator)
