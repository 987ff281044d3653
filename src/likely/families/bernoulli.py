"""The Bernoulli family: columns of 0 and 1.

p(x | k) = p_kˣ·(1 − p_k)^(1−x). Natural form: u(x) = (x, 1 − x), θ = (log p, log(1 − p)), A = 0. Conjugate prior: a
beta distribution, counted as observations of 1 and of 0. The posterior predictive is a Bernoulli with the posterior
mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.special

from likely.errors import InputError
from likely.families.base import Conditionals
from likely.families.column_family import ColumnFamily, constant_value
from likely.families.estimation import Estimation
from likely.families.independent import NaturalColumns
from likely.families.priors import BetaPrior, Dirichlet, check_prior, smoothing_of
from likely.families.supports import ZERO_ONE
from likely.numerics.special import EPS
from likely.statistics.counts import across
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array


class Bernoulli(ColumnFamily):
    """Bernoulli class-conditionals for columns of 0 and 1, or of booleans.

    Parameters
    ----------
    smoothing : that many observations of 1 and as many of 0 before any rows (Laplace's rule is 1, Lidstone's any
        other), so that p = (count + smoothing) / (rows + 2·smoothing). None is 0 under "mle", 1 under "map" and ½
        under "bayes".
    prior : instead of smoothing: a `BetaPrior` or a `Dirichlet`.
    """

    support = ZERO_ONE
    _reads_sparse = True

    def __init__(self, smoothing: float | None = None, prior: BetaPrior | Dirichlet | None = None) -> None:
        self.smoothing = smoothing
        self.prior = prior

    def check(self, estimation: Estimation) -> None:
        self._counted(estimation)

    def _counted(self, estimation: Estimation) -> tuple[float, float]:
        """Observations of 1 and of 0 before any rows."""
        if isinstance(self.prior, BetaPrior):
            if self.smoothing is not None:
                raise InputError(f"smoothing={self.smoothing!r} and prior={self.prior!r} say the same: give one.")
            check_prior(self.prior, BetaPrior, estimation)
            return self.prior.counted()
        s = smoothing_of(self.smoothing, self.prior, estimation)
        return s, s

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return (x,)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        ones, zeros = _counts(sums)
        return (ones, zeros), np.zeros_like(ones)

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        ones, zeros = _counts(statistics)
        more, fewer = self._counted(Estimation.BAYES)
        terms = scipy.special.betaln(ones + more, zeros + fewer) - scipy.special.betaln(more, fewer)
        return float(terms[:, _varies(statistics)].sum())

    def _smooths(self, estimation: Estimation) -> bool:
        return sum(self._counted(estimation)) > 0.0

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        return self._counted(Estimation.MAP), 0.0

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        ones, zeros = _counts(statistics)
        more, fewer = self._counted(estimation)
        if not self._smooths(estimation):
            self.require_observed(statistics, names)
        informative = _varies(statistics.whole) | (estimation != Estimation.BAYES)
        return BernoulliConditionals(informative, constant_value(statistics), ones=ones + more, zeros=zeros + fewer)


def _counts(statistics: Sums) -> tuple[Array, Array]:
    """How often 1 and 0 were seen, (classes, d); what sums of weights leave of nothing is nothing."""
    (ones,), rows = statistics.totals, statistics.column_weight
    zeros = rows - ones
    rounding = EPS * (8.0 + across(statistics.rows)) * rows
    return ones, np.where(zeros <= rounding, 0.0, zeros)


def _varies(statistics: Sums) -> AnyArray:
    """Whether a column has been both."""
    ones, zeros = _counts(statistics)
    return np.any(ones > 0.0, axis=0) & np.any(zeros > 0.0, axis=0)


@dataclass(frozen=True, eq=False)
class BernoulliConditionals(NaturalColumns):
    """Columns of 0 and 1 with plugged-in probabilities, kept as (pseudo-)counts of both: no 1 − p is rounded."""

    ones: Array  # (classes, d)
    zeros: Array  # (classes, d)

    support: ClassVar[Any] = ZERO_ONE
    name: ClassVar[str] = "Bernoulli"
    carried: ClassVar[bool] = False

    def means(self) -> Array:
        return self.probability

    def possible(self, cells: Array) -> Array:
        return (cells >= 0.5).astype(np.float64)

    @property
    def probability(self) -> Array:
        """p(1 | class), (classes, d)."""
        return np.asarray(self.ones / (self.ones + self.zeros))

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        total = self.ones + self.zeros
        with np.errstate(divide="ignore"):
            return (np.log(self.ones / total), np.log(self.zeros / total)), np.zeros_like(total)

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return x, 1.0 - x

    @staticmethod
    def carrier(x: Array) -> Array:
        return np.zeros_like(x)

    def by_products(self, x: Array, silent: AnyArray | None, limit: float) -> Array | None:
        _, bars, _, _ = self._products
        if bars is not None or silent is not None:
            return super().by_products(x, silent, limit)
        constant, step, _ = self._sparse_products  # a line through both values
        scores = np.dot(step.T, x.T)
        scores += constant
        return scores

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return (rng.random((n, self.dimension)) < self.probability[label]).astype(np.float64)
