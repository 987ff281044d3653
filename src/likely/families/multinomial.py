"""The multinomial family: vectors of counts, such as the words of a text.

p(x | k, n) = n!/∏x_j! · ∏ p_kj^x_j, n = Σx_j, which is not modelled itself. Natural form: u(x) = x, θ = log p,
A = 0, h = n!/∏x_j!. Conjugate prior: a Dirichlet distribution. The posterior predictive is a Dirichlet-multinomial:

    n!/∏x_j! · Γ(Σα)/Γ(Σα + n) · ∏ Γ(α_j + x_j)/Γ(α_j).

Both are densities of independent counts given their sum: of Poisson counts with means n·p_j, and of negative binomial
ones with α_j successes and odds Σα/n. Terms of that form stay small where counts are large, and explain a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special

from likely.errors import InputError, NoEvidenceError, NotEstimableError, listed
from likely.families.base import Columns, Conditionals, Family, LeaveOneOutDensity
from likely.families.column_family import typical_sizes
from likely.families.count_vectors import (
    LARGE_TOTAL,
    ComplementScores,
    CountVectors,
    DirichletMultinomial,
    MultinomialConditionals,
    check_counts,
)
from likely.families.estimation import Estimation
from likely.families.independent import looked_up
from likely.families.priors import Dirichlet, smoothing_of
from likely.numerics.count_densities import negative_binomial_log_density, poisson_log_density
from likely.numerics.special import EPS, log_factorial, log_gamma_ratio
from likely.statistics.sums import Sums, SumsAccumulator
from likely.typing import AnyArray, Array, Codes, Index


class Multinomial(Family):
    """Multinomial class-conditionals for columns of counts that make up one vector.

    Parameters
    ----------
    smoothing : that many counts of every column before any rows (Laplace's rule is 1, Lidstone's any other), so that
        p = (count + smoothing) / (total + smoothing · columns). None is 0 under "mle", 1 under "map" and ½ under
        "bayes".
    prior : instead of smoothing: a `Dirichlet` with one alpha.
    complement : score a class by how badly the other classes fit (Rennie et al. 2003). Such scores are no densities:
        only probabilities and labels are answered. Give ``class_prior="uniform"`` for scikit-learn's ComplementNB.
    normalize : with `complement`, divide each class's weights by the sum of their absolute values.
    """

    _reads_sparse = True
    _joint = True
    _needs_complete_rows = True

    def __init__(
        self,
        smoothing: float | None = None,
        prior: Dirichlet | None = None,
        complement: bool = False,
        normalize: bool = False,
    ) -> None:
        self.smoothing = smoothing
        self.prior = prior
        self.complement = complement
        self.normalize = normalize

    def check(self, estimation: Estimation) -> None:
        smoothing_of(self.smoothing, self.prior, estimation)
        for name in ("complement", "normalize"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InputError(f"{name}={getattr(self, name)!r} is neither True nor False.")
        if self.normalize and not self.complement:
            raise InputError("normalize=True belongs to complement=True.")

    def describe(self) -> str:
        return "Multinomial, weights of the complement" if self.complement else "Multinomial"

    def _accumulator(self, classes: AnyArray, columns: Columns) -> VectorAccumulator:
        return VectorAccumulator(SumsAccumulator(classes, columns.dimension, lambda x: (x,), 1, check_counts, 0.0))

    def _impossible_columns(self, left: Sums, before: Sums) -> AnyArray:
        """Counts are not negative."""
        slack = 1e-8 * before.totals[0].max(axis=0, initial=0.0)
        return np.asarray((left.totals[0] < -slack).any(axis=0))

    def _log_likelihood(self, statistics: Sums, fitted: Conditionals, names: Sequence[str]) -> float:
        if not isinstance(fitted, MultinomialConditionals):
            raise NoEvidenceError("a predictive, or a score, has no plugged-in parameters")
        counts, ways = statistics.totals
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(counts > 0.0, counts * np.log(fitted.probability), 0.0)
        return float(terms.sum() - ways.sum())

    def _n_parameters(self, statistics: Sums, names: Sequence[str]) -> int:
        return len(statistics.classes) * (statistics.dimension - 1)

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        if self.complement:
            raise NoEvidenceError("the weights of the complement are no densities")
        (counts, ways), s = statistics.totals, smoothing_of(self.smoothing, self.prior, Estimation.BAYES)
        mass = np.full(len(counts), s * counts.shape[1])
        terms = log_gamma_ratio(np.full_like(counts, s), counts).sum(axis=1) - ways.sum(axis=1)
        return float((terms - log_gamma_ratio(mass, counts.sum(axis=1))).sum())

    def _smooths(self, estimation: Estimation) -> bool:
        return smoothing_of(self.smoothing, self.prior, estimation) > 0.0

    def _log_prior(self, statistics: Sums, fitted: Conditionals) -> float:
        s = smoothing_of(self.smoothing, self.prior, Estimation.MAP)
        if not isinstance(fitted, MultinomialConditionals):
            return super()._log_prior(statistics, fitted)
        return s * float(np.log(fitted.probability).sum()) if s else 0.0

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        counts, s = statistics.totals[0], smoothing_of(self.smoothing, self.prior, estimation)
        total = counts.sum(axis=1)
        length = typical_sizes(total, statistics.weight)
        if self.complement:
            return self._complement(counts, length, s)
        if s == 0.0 and np.any(total == 0.0):
            raise NotEstimableError(
                f"Class {listed(statistics.classes[total == 0.0])} has no counts at all, so its likelihood has no "
                "maximum. Use estimation='bayes' or 'map', or leave the class out."
            )
        return (DirichletMultinomial if estimation == Estimation.BAYES else MultinomialConditionals)(counts + s, length)

    def _leave_one_out(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> LeaveOneOutDensity:
        fitted = self.estimate(statistics, estimation, names)
        counts, s = statistics.totals[0], smoothing_of(self.smoothing, self.prior, estimation)
        known: dict[int, Array] = {}
        if isinstance(fitted, ComplementScores):
            raise fitted.refuse()
        assert isinstance(fitted, CountVectors)

        def density(rows: Any, codes: Codes, weights: Array) -> Array:
            x = rows.toarray() if scipy.sparse.issparse(rows) else rows
            x = np.asarray(x, dtype=np.float64)
            total = x.sum(axis=1, keepdims=True)
            single = bool(np.all(weights == 1.0))
            own = self._looked_up(x, total[:, 0], codes, counts, s, estimation, known) if single else None
            if own is not None:
                result = fitted._scores(fitted.read(rows), total[:, 0])
                result[codes, np.arange(len(x))] = own
                result += CountVectors.log_coefficient(x)
                return result
            result = fitted.log_density(rows)
            left = _rest(counts[codes], weights[:, None] * x) + s
            mass = left.sum(axis=1, keepdims=True)
            if estimation == Estimation.BAYES:
                odds = mass / np.maximum(total, 1.0)
                terms = negative_binomial_log_density(x, left, odds).sum(axis=1)
                own = terms - negative_binomial_log_density(total, mass, odds)[:, 0]
            else:
                share = left / np.where(mass > 0.0, mass, 1.0)
                own = poisson_log_density(x, total * share).sum(axis=1) - poisson_log_density(total, total)[:, 0]
            result[codes, np.arange(len(x))] = np.where(mass[:, 0] > 0.0, own, -np.inf)
            return result

        return density

    @staticmethod
    def _looked_up(
        x: Array, total: Array, codes: Codes, counts: Array, s: float, estimation: Estimation, known: dict[int, Array]
    ) -> Array | None:
        """Log-densities of rows left out of their class, less the coefficient, where small counts come again and again.

        What a row leaves of a column depends on its count alone. None where looking up saves nothing.
        """
        size = 2 ** max(int(x.max(initial=0.0)), 1).bit_length()
        if counts.size * size > x.size or not total.max(initial=0.0) <= LARGE_TOTAL:
            return None
        values = np.arange(float(size))[:, None]
        bayes = estimation == Estimation.BAYES
        if size not in known:
            left = _rest(counts[:, None], values) + s
            with np.errstate(divide="ignore"):
                known[size] = log_gamma_ratio(left, values) if bayes else scipy.special.xlogy(values, left)
        mass = _rest(counts.sum(axis=1)[codes], total) + s * counts.shape[1]
        safe = np.where(mass > 0.0, mass, 1.0)
        length = log_gamma_ratio(safe, total) if bayes else total * np.log(safe)
        return np.where(mass > 0.0, looked_up(known[size], x, codes) - length, -np.inf)

    def _complement(self, counts: Array, length: Array, s: float) -> Conditionals:
        others = counts.sum(axis=0) + s - counts
        if np.any(others <= 0.0):
            raise NotEstimableError(
                "complement=True needs every column counted in every class's complement. "
                "Use estimation='map' or 'bayes', or leave the column out."
            )
        logs = np.log(others / others.sum(axis=1, keepdims=True))
        weights = logs / logs.sum(axis=1, keepdims=True) if self.normalize else -logs
        return ComplementScores(counts + s, length, weights)


def _rest(counts: Array, fewer: Array) -> Array:
    """What is left of counts; what rounding leaves of nothing is nothing."""
    left = counts - fewer
    return np.where(left <= 8.0 * EPS * counts, 0.0, left)


@dataclass(slots=True, eq=False)
class VectorAccumulator:
    """Sums counts, and beside them what −log n!/∏x_j! of the rows comes to, in equal shares of the columns."""

    plain: SumsAccumulator
    _ways: Array = field(init=False)

    def __post_init__(self) -> None:
        self._ways = np.zeros(len(self.plain.classes))

    @property
    def groups(self) -> Index:
        return self.plain.groups

    @property
    def block_rows(self) -> int:
        return self.plain.block_rows

    def add(self, block: Any, codes: Codes, weights: Array | None = None) -> None:
        """Add rows (n, d) with their class codes and weights (0: absent)."""
        self.plain.add(block, codes, weights)
        ways = -log_factorial(np.asarray(block.sum(axis=1), dtype=np.float64))
        if scipy.sparse.issparse(block):
            several = np.flatnonzero(block.data > 1)
            owner = np.searchsorted(block.indptr, several, side="right") - 1
            cells = block.data[several]
        else:
            owner, column = np.nonzero(np.asarray(block) > 1)
            cells = np.asarray(block)[owner, column]
        ways += np.bincount(owner, log_factorial(cells), minlength=len(ways))
        share = ways if weights is None else np.where(weights > 0.0, ways * weights, 0.0)
        self._ways += np.bincount(codes, share, minlength=len(self._ways))

    def finish(self) -> Sums:
        """The sums of all blocks so far."""
        sums = self.plain.finish()
        shares = np.repeat((self._ways / self.plain.dimension)[:, None], self.plain.dimension, axis=1)
        return replace(sums, totals=np.array([sums.totals[0], shares]))
