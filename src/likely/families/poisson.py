"""The Poisson family: counts of events, at a rate per unit of exposure.

x | k ~ Poisson(e·rate_k), e the exposure of the row, 1 where none is declared. Natural form: u(x) = x,
θ = log rate, A = e·rate, h = eˣ/x!. Conjugate prior: a gamma distribution of the rate, counted as events seen
during some exposure. The posterior predictive is a negative binomial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likely.errors import NoEvidenceError
from likely.families.base import Columns, Conditionals, LeaveOneOutDensity
from likely.families.column_family import ColumnFamily, bent_squares, constant_value, typical_sizes, varies
from likely.families.estimation import Estimation
from likely.families.exposure import ExposedPoisson, ExposureAccumulator, split_exposure
from likely.families.independent import Mask
from likely.families.poisson_densities import PoissonConditionals, PoissonPredictive
from likely.families.priors import GammaPrior, check_prior, gamma_evidence
from likely.families.supports import COUNTS
from likely.numerics.special import log_factorial
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array, Codes

TOTALS = "row totals"


class Poisson(ColumnFamily):
    """Poisson class-conditionals for columns of counts.

    Parameters
    ----------
    exposure : how long, how large or how often each row was looked at: a column (its name or number), or "row totals",
        the sum of the counts of the block. Rates are then per unit of exposure, and the exposure itself is not
        modelled. None is 1 for every row.
    prior : under "map" and "bayes": a `GammaPrior`, which counts as events seen during some exposure; None is
        half an event of each column during the exposure that makes the prior rate the overall rate.
    """

    support = COUNTS

    def __init__(self, exposure: Any = None, prior: GammaPrior | None = None) -> None:
        self.exposure = exposure
        self.prior = prior

    @property
    def _reads_sparse(self) -> bool:  # type: ignore[override]  # rows with an exposure are written out
        return self.exposure is None

    @property
    def _totals(self) -> bool:
        return isinstance(self.exposure, str) and self.exposure == TOTALS

    def _extra_columns(self) -> tuple[Any, ...]:
        return () if self.exposure is None or self._totals else (self.exposure,)

    def check(self, estimation: Estimation) -> None:
        check_prior(self.prior, GammaPrior, estimation)

    def describe(self) -> str:
        return "Poisson" if self.exposure is None else f"Poisson, exposure {self.exposure!r}"

    def _accumulator(self, classes: AnyArray, columns: Columns) -> Any:
        plain = super()._accumulator(classes, columns)
        return plain if self.exposure is None else ExposureAccumulator(plain, self._totals)

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return x, x * x, log_factorial(x)

    def _bent(self, left: Sums, before: Sums) -> Mask:
        return bent_squares(left, before)

    def _statistics_key(self) -> tuple[Any, ...]:
        return (*super()._statistics_key(), self.exposure)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        if self.exposure is not None:
            return super()._likelihood_sums(sums)
        return (sums.totals[0],), -sums.totals[2]

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        if self.exposure is not None:
            raise NoEvidenceError("Poisson with an exposure does not collect what a marginal likelihood needs")
        total, factorials = statistics.totals[0], statistics.totals[2]
        events, during = (self.prior or GammaPrior()).counted(constant_value(statistics))
        terms = gamma_evidence(events, during, total, statistics.column_weight) - factorials
        return float(terms[:, varies(statistics)].sum())

    def _leave_one_out(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> LeaveOneOutDensity:
        if self.exposure is None:
            return super()._leave_one_out(statistics, estimation, names)
        fitted = self.estimate(statistics, estimation, names)

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            result = fitted.log_density(rows)
            counts, exposure = split_exposure(rows, self._totals)
            x = np.where(np.isnan(exposure), np.nan, counts)
            during = np.broadcast_to(np.nan_to_num(exposure), x.shape)
            rest = statistics.leave_one_out(x, codes, weights, lambda v: (*self.collected(v), during), 0.0)
            lost = (rest.totals[3] <= 0.0) & ~np.isnan(x) & (estimation == Estimation.MLE)
            rest = replace(rest, totals=np.where(lost, 1.0, rest.totals)) if lost.any() else rest
            own = self.estimate(rest.filled() if estimation == Estimation.MLE else rest, estimation, names)
            assert isinstance(own, ExposedPoisson)
            result[codes, np.arange(len(x))] = np.where(lost.any(axis=1), -np.inf, own.paired(rows))
            return result

        return density

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        if self.exposure is not None:
            return super()._prior_sums(statistics)
        events, during = (self.prior or GammaPrior()).counted(constant_value(statistics))
        return (events,), during

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        total, exposure = statistics.totals[0], statistics.column_weight
        informative, overall = varies(statistics) | (estimation != Estimation.BAYES), constant_value(statistics)
        if self.exposure is not None:
            exposure = statistics.totals[3]
            informative, overall = statistics.whole.totals[0].sum(axis=0) > 0.0, constant_value(statistics, 0, 3)
        plain = self._plain(statistics, total, exposure, informative, overall, estimation, names)
        if self.exposure is None:
            return plain
        mass = statistics.column_weight.sum(axis=1)
        usual = typical_sizes(exposure.sum(axis=1), mass) if self._totals else np.ones(len(mass))
        return ExposedPoisson(plain, self._totals, np.where(usual > 0.0, usual, 1.0))

    def _plain(
        self,
        statistics: Sums,
        total: Array,
        exposure: Array,
        informative: Mask,
        overall: Array,
        estimation: Estimation,
        names: Sequence[str],
    ) -> PoissonConditionals | PoissonPredictive:
        """The estimate for an exposure of 1."""
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
            return PoissonConditionals(informative, overall, rate=total / exposure)
        events, during = (self.prior or GammaPrior()).counted(overall)
        if np.any(exposure + during == 0.0):
            self.require_observed(statistics, names)
        if estimation == Estimation.MAP:
            return PoissonConditionals(informative, overall, rate=(total + events) / (exposure + during))
        return PoissonPredictive(informative, overall, events=total + events, exposure=exposure + during)
