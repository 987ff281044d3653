"""The multinomial family: vectors of counts, such as the word counts of a text.

p(x | k, n) = n!/∏x_j! · ∏ p_kj^x_j, with the total n = Σx_j, which is conditioned on. Natural form: u(x) = x,
θ = log p, A = 0, h = n!/∏x_j!. Conjugate prior: a Dirichlet distribution, as pseudo-counts. The posterior predictive is
Dirichlet-multinomial:

    n!/∏x_j! · Γ(Σα)/Γ(Σα + n) · ∏ Γ(α_j + x_j)/Γ(α_j).

Both are distributions of independent counts given their sum: Poisson counts with means n·p_j, and negative binomial
counts with α_j successes and odds Σα/n. In that form, terms stay small for large counts and explain a row by columns.
The densities are in `count_vectors`.

Weights, real numbers x_j >= 0 such as tf-idf, have the same likelihood ∏ p_kj^x_j. Only the carrier h differs: with
x! = Γ(x + 1) it is not normalised, and cancels in the posterior.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    are_whole,
    check_counts,
)
from likely.families.estimation import Estimation
from likely.families.given import check_sums, given_values
from likely.families.independent import sum_table_values
from likely.families.parameters import Parameter, parameters_of_columns, proportion_errors
from likely.families.priors import Dirichlet, smoothing_of, smoothing_remedy
from likely.families.supports import PROBABILITIES
from likely.numerics.special import log_gamma_ratio
from likely.statistics.accumulator import RowAccumulator
from likely.statistics.rounding import subtract_counts
from likely.statistics.sums import Sums, SumsAccumulator
from likely.typing import AnyArray, Array, Codes, Index, SmoothingLike


class Multinomial(Family):
    """Multinomial distribution for columns of counts that form one vector, such as word counts.

    The total of a row is conditioned on, not modeled. All columns of the family need to be observed: missing values
    are refused. Weights, which are real numbers >= 0 such as tf-idf or expected counts, are counts whose factorials are
    gamma functions, n! = Γ(n + 1): class probabilities are those of the likelihood ∏ p_j^x_j, and `log_density` of rows
    with fractions is stated up to a constant of the row that all classes share.

    Parameters
    ----------
    smoothing : float or None, default=None
        Pseudo-counts of every column in every class, so that p = (count + smoothing) / (total + smoothing · columns).
        1 is Laplace smoothing, other values are Lidstone smoothing. None is 0 under ``estimation="mle"``, 1 under
        "map" and 0.5 under "bayes".
    prior : Dirichlet or None, default=None
        A `Dirichlet` with one alpha, instead of `smoothing`, under "map" and "bayes". None is the prior that
        `smoothing` describes.
    complement : bool, default=False
        Score a class by the counts of all other classes (Rennie et al. 2003). These scores are not densities: only
        predictions, probabilities and decisions are available. With ``class_prior="uniform"``, probabilities equal
        those of scikit-learn's `ComplementNB`.
    normalize : bool, default=False
        With `complement`: divide the weights of each class by the sum of their absolute values.

    See Also
    --------
    Poisson : Counts in independent columns, with the total modeled or as an exposure.
    Categorical : One category per row.

    References
    ----------
    Rennie, J. D. M., Shih, L., Teevan, J. and Karger, D. R. (2003). Tackling the poor assumptions of naive Bayes text
    classifiers. Proceedings of ICML, 616-623.

    Examples
    --------
    >>> from likely import GenerativeClassifier, Multinomial
    >>> X = [[3, 0, 1], [2, 1, 0], [0, 4, 1], [1, 3, 2]]
    >>> model = GenerativeClassifier(Multinomial(smoothing=1.0)).fit(X, ["ham", "ham", "spam", "spam"])
    >>> model.predict([[2, 0, 0], [0, 2, 1]])
    array(['ham', 'spam'], dtype='<U4')
    """

    _reads_sparse = True
    _joint = True
    _needs_complete_rows = True

    def __init__(
        self,
        smoothing: SmoothingLike = None,
        prior: Dirichlet | None = None,
        complement: bool = False,
        normalize: bool = False,
    ) -> None:
        self.smoothing = smoothing
        self.prior = prior
        self.complement = complement
        self.normalize = normalize

    def check(self, estimation: Estimation) -> None:
        self._pseudo_count(estimation)
        for name in ("complement", "normalize"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InputError(f"{name}={getattr(self, name)!r} is neither True nor False.")
        if self.normalize and not self.complement:
            raise InputError("normalize=True needs complement=True.")

    def describe(self) -> str:
        return "Multinomial, complement scores" if self.complement else "Multinomial"

    def _pseudo_count(self, estimation: Estimation) -> float:
        """Pseudo-counts of every column."""
        return smoothing_of(self.smoothing, self.prior, estimation)

    def _smooths(self, estimation: Estimation) -> bool:
        return self._pseudo_count(estimation) > 0.0

    def _accumulator(self, classes: AnyArray, columns: Columns) -> VectorAccumulator:
        return VectorAccumulator(SumsAccumulator(classes, columns.dimension, lambda x: (x,), check_counts, 0.0))

    def _parameters(
        self, statistics: Sums, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        every = np.ones(len(names), dtype=bool)
        if isinstance(fitted, ComplementScores):
            return parameters_of_columns(names, every, {"weight": (fitted.weights, None)})
        assert isinstance(fitted, CountVectors)
        errors = proportion_errors(fitted.counts, estimation)
        return parameters_of_columns(names, every, {"probability": (fitted.probability, errors)})

    def _given(self, values: Mapping[str, Any], size: int, names: Sequence[str]) -> Conditionals:
        p = given_values("Multinomial", values, {"probability": PROBABILITIES}, size, names)["probability"]
        check_sums("Multinomial", "probability", p)
        if self.complement:
            return super()._given(values, size, names)
        return MultinomialConditionals(p, np.ones(size))

    def _given_table(self, fitted: Any, names: Sequence[str]) -> list[Parameter]:
        return parameters_of_columns(names, np.ones(len(names)), {"probability": (fitted.probability, None)})

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        counts, s = statistics.totals[0], self._pseudo_count(estimation)
        total = counts.sum(axis=1)
        length = typical_sizes(total, statistics.weight)
        if self.complement:
            return self._complement_scores(counts, length, s)
        if s == 0.0 and np.any(total == 0.0):
            raise NotEstimableError(
                f"Class {listed(statistics.classes[total == 0.0])} has no counts, so its likelihood has no maximum. "
                f"{smoothing_remedy(self.smoothing, self.prior)}, or drop the class."
            )
        return (DirichletMultinomial if estimation == Estimation.BAYES else MultinomialConditionals)(counts + s, length)

    def _complement_scores(self, counts: Array, length: Array, s: float) -> Conditionals:
        others = counts.sum(axis=0) + s - counts
        if np.any(others <= 0.0):
            raise NotEstimableError(
                "complement=True needs counts of every column in the other classes of each class. "
                f"{smoothing_remedy(self.smoothing, self.prior)}, or drop the column."
            )
        logs = np.log(others / others.sum(axis=1, keepdims=True))
        weights = logs / logs.sum(axis=1, keepdims=True) if self.normalize else -logs
        return ComplementScores(counts + s, length, weights)

    def _impossible_columns(self, left: Sums, before: Sums) -> AnyArray:
        """Columns with negative counts."""
        slack = 1e-8 * before.totals[0].max(axis=0, initial=0.0)
        return np.asarray((left.totals[0] < -slack).any(axis=0))

    def _log_likelihood(self, statistics: Sums, fitted: Conditionals, names: Sequence[str]) -> float:
        if not isinstance(fitted, MultinomialConditionals):
            raise NoEvidenceError("a posterior predictive, or a complement score, has no plug-in parameters")
        counts, coefficients = statistics.totals
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(counts > 0.0, counts * np.log(fitted.probability), 0.0)
        return float(terms.sum() - coefficients.sum())

    def _n_parameters(self, statistics: Sums, names: Sequence[str]) -> int:
        return len(statistics.classes) * (statistics.dimension - 1)

    def _log_prior(self, statistics: Sums, fitted: Conditionals) -> float:
        s = self._pseudo_count(Estimation.MAP)
        if not isinstance(fitted, MultinomialConditionals):
            return super()._log_prior(statistics, fitted)
        return s * float(np.log(fitted.probability).sum()) if s else 0.0

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        """Σ log n!/∏x_j! + Σ_j log Γ(count + s)/Γ(s), less the same of the totals: Dirichlet-multinomial."""
        if self.complement:
            raise NoEvidenceError("complement scores are not densities")
        (counts, coefficients), s = statistics.totals, self._pseudo_count(Estimation.BAYES)
        concentration = np.full(len(counts), s * counts.shape[1])
        terms = log_gamma_ratio(np.full_like(counts, s), counts).sum(axis=1) - coefficients.sum(axis=1)
        return float((terms - log_gamma_ratio(concentration, counts.sum(axis=1))).sum())

    def _leave_one_out(
        self, statistics: Sums, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        counts, s = statistics.totals[0], self._pseudo_count(estimation)
        tables: dict[int, Array] = {}  # by size
        if isinstance(fitted, ComplementScores):
            raise fitted.refuse()
        assert isinstance(fitted, CountVectors)

        def density(rows: Any, codes: Codes, weights: Array) -> Array:
            x = rows.toarray() if scipy.sparse.issparse(rows) else rows
            x = np.asarray(x, dtype=np.float64)
            total = x.sum(axis=1)
            tabulated = None
            if np.all(weights == 1.0):
                tabulated = _tabulated_leave_one_out(x, total, codes, counts, s, estimation, tables)
            if tabulated is not None:
                result = fitted._scores(fitted.read(rows), total)
                result[codes, np.arange(len(x))] = tabulated
                result += CountVectors.log_coefficient(x)
                return result
            result = fitted.log_density(rows)
            left = subtract_counts(counts[codes], weights[:, None] * x) + s
            possible = left.sum(axis=1) > 0.0
            held_out = replace(fitted, counts=np.where(possible[:, None], left, 1.0))
            result[codes, np.arange(len(x))] = np.where(possible, held_out.paired(x, total), -np.inf)
            return result

        return density


def _tabulated_leave_one_out(
    x: Array, total: Array, codes: Codes, counts: Array, s: float, estimation: Estimation, tables: dict[int, Array]
) -> Array | None:
    """Leave-one-out log-densities without the coefficient, (n,), from a table of the terms of small counts.

    Without a row of weight 1, the term of a column depends on its count alone. None if a table saves no time.
    """
    size = 2 ** max(int(x.max(initial=0.0)), 1).bit_length()
    if counts.size * size > x.size or not total.max(initial=0.0) <= LARGE_TOTAL or not are_whole(x):
        return None
    values = np.arange(float(size))[:, None]
    bayes = estimation == Estimation.BAYES
    if size not in tables:
        left = subtract_counts(counts[:, None], values) + s
        with np.errstate(divide="ignore"):
            tables[size] = log_gamma_ratio(left, values) if bayes else scipy.special.xlogy(values, left)
    mass = subtract_counts(counts.sum(axis=1)[codes], total) + s * counts.shape[1]
    safe = np.where(mass > 0.0, mass, 1.0)
    total_terms = log_gamma_ratio(safe, total) if bayes else total * np.log(safe)
    return np.where(mass > 0.0, sum_table_values(tables[size], x, codes) - total_terms, -np.inf)


@dataclass(slots=True, eq=False)
class VectorAccumulator(RowAccumulator):
    """Sums counts, and −log n!/∏x_j! of the rows, divided equally among the columns."""

    plain: SumsAccumulator
    _coefficients: Array = field(init=False)

    def __post_init__(self) -> None:
        self._coefficients = np.zeros(len(self.plain.classes))

    @property
    def groups(self) -> Index:
        return self.plain.groups

    @property
    def block_rows(self) -> int:
        return self.plain.block_rows

    def _add(self, block: Any, codes: Codes, weights: Array | None) -> None:
        self.plain.add(block, codes, weights)
        coefficients = -CountVectors.log_coefficient(block)
        weighted = coefficients if weights is None else coefficients * weights
        self._coefficients += np.bincount(codes, weighted, minlength=len(self._coefficients))

    def finish(self) -> Sums:
        """The sums of all blocks so far."""
        sums = self.plain.finish()
        parts = np.repeat((self._coefficients / self.plain.dimension)[:, None], self.plain.dimension, axis=1)
        return replace(sums, totals=np.array([sums.totals[0], parts]))
