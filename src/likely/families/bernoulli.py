"""The Bernoulli family: columns of 0 and 1.

p(x | k) = p_kˣ·(1 − p_k)^(1−x). Natural form: u(x) = (x, 1 − x), θ = (log p, log(1 − p)), A = 0, h = 1. Conjugate
prior: a beta distribution, as pseudo-counts of 1 and of 0. The posterior predictive is a Bernoulli distribution with
the posterior mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.special

from likely.families.base import Conditionals
from likely.families.column_family import ColumnFamily, constant_value
from likely.families.estimation import UNOBSERVED, Estimation, require_maximum
from likely.families.independent import Mask
from likely.families.natural import NaturalColumns
from likely.families.parameters import ColumnParameters, success_errors
from likely.families.priors import BetaPrior, Dirichlet, check_prior, check_single_prior, smoothing_of, smoothing_remedy
from likely.families.supports import PROBABILITIES, ZERO_ONE
from likely.numerics.expressions import Expression
from likely.numerics.special import EPS
from likely.statistics.counts import across
from likely.statistics.sums import Sums
from likely.typing import Array, SmoothingLike


class Bernoulli(ColumnFamily):
    """Bernoulli distribution for columns of 0 and 1, or of booleans.

    Each column is independent within a class and has one parameter per class, the probability of 1.

    Parameters
    ----------
    smoothing : float or None, default=None
        Pseudo-counts of 1 and of 0 in every class, so that p = (count + smoothing) / (rows + 2·smoothing). 1 is
        Laplace smoothing, other values are Lidstone smoothing. None is 0 under ``estimation="mle"``, 1 under "map" and
        0.5 under "bayes".
    prior : BetaPrior, Dirichlet or None, default=None
        The prior of p, instead of `smoothing`, under "map" and "bayes". None is the prior that `smoothing` describes.

    See Also
    --------
    Categorical : Columns with more than two values.
    Multinomial : Counts that form one vector.

    Examples
    --------
    >>> from likely import Bernoulli, NaiveBayes
    >>> X = [[1, 0], [1, 1], [0, 1], [0, 1]]
    >>> model = NaiveBayes(Bernoulli(smoothing=1.0), calibration=None).fit(X, ["a", "a", "b", "b"])
    >>> model.predict_proba([[1, 1]]).round(3)
    array([[0.667, 0.333]])
    """

    support = ZERO_ONE
    _given_parameters = (("probability", PROBABILITIES),)
    _reads_sparse = True

    def __init__(self, smoothing: SmoothingLike = None, prior: BetaPrior | Dirichlet | None = None) -> None:
        self.smoothing = smoothing
        self.prior = prior

    def check(self, estimation: Estimation) -> None:
        self._pseudo_counts(estimation)

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return (x,)

    def _plugged_in(self, informative: Mask, constant: Array, parameters: Mapping[str, Array]) -> BernoulliConditionals:
        p = parameters["probability"]
        return BernoulliConditionals(informative, constant, ones=p, zeros=1.0 - p)

    def _column_parameters(self, statistics: Sums, fitted: Any, estimation: Estimation) -> ColumnParameters:
        return {"probability": (fitted.probability, success_errors(fitted.ones, fitted.zeros, estimation))}

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        ones, zeros = _counts(statistics)
        prior_ones, prior_zeros = self._pseudo_counts(estimation)
        if not self._smooths(estimation):
            remedy = smoothing_remedy(self.smoothing, self.prior)
            require_maximum(statistics.unobserved(), statistics.classes, names, UNOBSERVED, remedy=remedy)
        informative = varies(statistics.whole) | (estimation != Estimation.BAYES)
        return BernoulliConditionals(
            informative, constant_value(statistics), ones=ones + prior_ones, zeros=zeros + prior_zeros
        )

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        ones, zeros = _counts(sums)
        return (ones, zeros), np.zeros_like(ones)

    def _pseudo_counts(self, estimation: Estimation) -> tuple[float, float]:
        """Pseudo-counts of 1 and of 0."""
        if isinstance(self.prior, BetaPrior):
            check_single_prior(self.smoothing, self.prior)
            check_prior(self.prior, BetaPrior, estimation)
            return self.prior.counted()
        s = smoothing_of(self.smoothing, self.prior, estimation)
        return s, s

    def _smooths(self, estimation: Estimation) -> bool:
        return sum(self._pseudo_counts(estimation)) > 0.0

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        return self._pseudo_counts(Estimation.MAP), 0.0

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        """Σ log B(ones + a, zeros + b) − log B(a, b)."""
        ones, zeros = _counts(statistics)
        a, b = self._pseudo_counts(Estimation.BAYES)
        terms = scipy.special.betaln(ones + a, zeros + b) - scipy.special.betaln(a, b)
        return float(terms[:, varies(statistics)].sum())


def _counts(statistics: Sums) -> tuple[Array, Array]:
    """Weights of 1 and of 0, (classes, d); differences within the rounding error of the weights are 0."""
    (ones,), weight = statistics.totals, statistics.column_weight
    zeros = weight - ones
    rounding = EPS * (8.0 + across(statistics.rows)) * weight
    return ones, np.where(zeros <= rounding, 0.0, zeros)


def varies(statistics: Sums) -> Mask:
    """Whether both 1 and 0 occur in a column, (d,)."""
    ones, zeros = _counts(statistics)
    return np.asarray(np.any(ones > 0.0, axis=0) & np.any(zeros > 0.0, axis=0))


@dataclass(frozen=True, eq=False)
class BernoulliConditionals(NaturalColumns):
    """Bernoulli distributions with plug-in probabilities, as counts of 1 and of 0, so that 1 − p is not rounded."""

    ones: Array  # (classes, d), with pseudo-counts
    zeros: Array  # (classes, d), with pseudo-counts

    support: ClassVar[Any] = ZERO_ONE
    name: ClassVar[str] = "Bernoulli"

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

    def statistic_expressions(self, x: Expression) -> tuple[Expression, ...]:
        return x, 1.0 - x

    def product_scores(self, x: Array, ignored: Mask | None, limit: float) -> Array | None:
        """One product instead of two: log p(x) is linear in x."""
        _, impossible, _, _ = self._products
        if impossible is not None or ignored is not None:
            return super().product_scores(x, ignored, limit)
        constant, step, _ = self._sparse_products
        scores = np.dot(step.T, x.T)
        scores += constant
        return scores

    def means(self) -> Array:
        return self.probability

    def round_to_support(self, cells: Array) -> Array:
        return (cells >= 0.5).astype(np.float64)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return (rng.random((n, self.dimension)) < self.probability[label]).astype(np.float64)
