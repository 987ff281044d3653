"""The Poisson family: counts of events, at a rate per unit of exposure.

x | k ~ Poisson(e·rate_k), with the exposure e of the row, which is 1 where none is declared. Natural form: u(x) = x,
θ = log rate, A = e·rate, h = eˣ/x!. Conjugate prior: a gamma distribution of the rate, as pseudo-events observed during
an exposure. The posterior predictive is negative binomial. The densities are in `poisson_densities`, those with an
exposure in `exposure`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likely.errors import NoEvidenceError
from likely.families.base import Columns, Conditionals, LeaveOneOutDensity
from likely.families.column_family import (
    ColumnFamily,
    constant_value,
    squares_violate_jensen,
    typical_sizes,
    varies,
)
from likely.families.estimation import Estimation, no_maximum_error
from likely.families.exposure import ExposedPoisson, ExposureAccumulator, split_exposure
from likely.families.independent import Mask
from likely.families.parameters import ColumnParameters, Parameter, rate_errors
from likely.families.poisson_densities import PoissonConditionals, PoissonPredictive
from likely.families.priors import GammaPrior, check_prior, gamma_evidence
from likely.families.supports import COUNTS
from likely.numerics.special import log_factorial
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array, Codes, ColumnLike, ExposureLike

ROW_TOTALS = "row totals"


class Poisson(ColumnFamily):
    """Poisson distribution for columns of counts, optionally per unit of exposure.

    Each column is independent within a class and has one parameter per class, the rate.

    Parameters
    ----------
    exposure : str, int or None, default=None
        How long, how large or how often each row was observed: the name or the position of a column, or "row totals",
        the sum of the counts in the columns of this family. Rates are then per unit of exposure, and the exposure is
        conditioned on, not modeled. None is an exposure of 1 for every row.
    prior : GammaPrior or None, default=None
        Prior of the rate under ``estimation="map"`` and "bayes": pseudo-events during an exposure. None is half an
        event, with the exposure for which the prior rate equals the overall rate of the column.

    See Also
    --------
    NegativeBinomial : Counts with a larger variance.
    Multinomial : Counts that form one vector.

    Examples
    --------
    >>> from likely import GenerativeClassifier, Poisson
    >>> model = GenerativeClassifier(Poisson()).fit([[0], [1], [6], [9]], ["quiet", "quiet", "busy", "busy"])
    >>> model.predict([[2], [7]])
    array(['quiet', 'busy'], dtype='<U5')

    With the days of observation in column 1:

    >>> X = [[2, 4], [1, 1], [6, 1], [40, 10]]
    >>> model = GenerativeClassifier({0: Poisson(exposure=1)}).fit(X, ["quiet", "quiet", "busy", "busy"])
    >>> model.predict([[10, 12], [10, 2]])
    array(['quiet', 'busy'], dtype='<U5')
    """

    support = COUNTS
    _is_nearly_gaussian = True

    def __init__(self, exposure: ExposureLike = None, prior: GammaPrior | None = None) -> None:
        self.exposure = exposure
        self.prior = prior

    def check(self, estimation: Estimation) -> None:
        check_prior(self.prior, GammaPrior, estimation)

    def describe(self) -> str:
        return "Poisson" if self.exposure is None else f"Poisson, exposure {self.exposure!r}"

    @property
    def _reads_sparse(self) -> bool:  # type: ignore[override]  # rows with an exposure are converted to dense rows
        return self.exposure is None

    @property
    def _exposure_is_total(self) -> bool:
        return isinstance(self.exposure, str) and self.exposure == ROW_TOTALS

    def _extra_columns(self) -> tuple[ColumnLike, ...]:
        return () if self.exposure is None or self._exposure_is_total else (self.exposure,)

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return x, x * x, log_factorial(x)

    def _accumulator(self, classes: AnyArray, columns: Columns) -> Any:
        plain = super()._accumulator(classes, columns)
        return plain if self.exposure is None else ExposureAccumulator(plain, self._exposure_is_total)

    def _statistics_key(self) -> tuple[Any, ...]:
        return (*super()._statistics_key(), self.exposure)

    def _parameters(
        self, statistics: Sums, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> list[Parameter]:
        plain = fitted.plain if isinstance(fitted, ExposedPoisson) else fitted
        return super()._parameters(statistics, plain, estimation, names)

    def _column_parameters(self, statistics: Sums, fitted: Any, estimation: Estimation) -> ColumnParameters:
        exposed = self.exposure is not None
        events, exposure = statistics.totals[0], statistics.totals[3] if exposed else statistics.column_weight
        if estimation != Estimation.MLE:
            overall = constant_value(statistics, 0, 3) if exposed else constant_value(statistics)
            prior_events, prior_exposure = (self.prior or GammaPrior()).counted(overall)
            events, exposure = events + prior_events, exposure + prior_exposure
        return {"rate": (events / exposure, rate_errors(events, exposure, estimation))}

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        if self.exposure is None:
            informative = varies(statistics) | (estimation != Estimation.BAYES)
            overall, exposure = constant_value(statistics), statistics.column_weight
            return self._estimate_rates(statistics, exposure, informative, overall, estimation, names)
        informative = statistics.whole.totals[0].sum(axis=0) > 0.0
        overall, exposure = constant_value(statistics, 0, 3), statistics.totals[3]
        if estimation == Estimation.MLE:
            self._require_exposure(statistics, exposure, names)
        rates = self._estimate_rates(statistics, exposure, informative, overall, estimation, names)
        weight = statistics.column_weight.sum(axis=1)
        typical = typical_sizes(exposure.sum(axis=1), weight) if self._exposure_is_total else np.ones(len(weight))
        return ExposedPoisson(rates, self._exposure_is_total, np.where(typical > 0.0, typical, 1.0))

    def _require_exposure(self, statistics: Sums, exposure: Array, names: Sequence[str]) -> None:
        """Raise where a class has a total exposure of 0: no rate has a larger likelihood than another."""
        none = (exposure <= 0.0) & ~statistics.unobserved()
        if none.any():
            k, j = np.argwhere(none)[0]
            raise no_maximum_error(names[j], statistics.classes[k : k + 1], "has no exposure in")

    def _estimate_rates(
        self,
        statistics: Sums,
        exposure: Array,
        informative: Mask,
        overall: Array,
        estimation: Estimation,
        names: Sequence[str],
    ) -> PoissonConditionals | PoissonPredictive:
        """The distributions for an exposure of 1: (events + prior events) / (exposure + prior exposure)."""
        events = statistics.totals[0]
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
            return PoissonConditionals(informative, overall, rate=events / exposure)
        prior_events, prior_exposure = (self.prior or GammaPrior()).counted(overall)
        if np.any(exposure + prior_exposure == 0.0):
            self.require_observed(statistics, names)
        events, exposure = events + prior_events, exposure + prior_exposure
        if estimation == Estimation.MAP:
            return PoissonConditionals(informative, overall, rate=events / exposure)
        return PoissonPredictive(informative, overall, events, exposure)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        if self.exposure is not None:
            return super()._likelihood_sums(sums)
        return (sums.totals[0],), -sums.totals[2]

    def _violates_jensen(self, left: Sums, before: Sums) -> Mask:
        return squares_violate_jensen(left, before)

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        if self.exposure is not None:
            return super()._prior_sums(statistics)
        events, exposure = (self.prior or GammaPrior()).counted(constant_value(statistics))
        return (events,), exposure

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        if self.exposure is not None:
            raise NoEvidenceError("Poisson with an exposure does not collect what a marginal likelihood needs")
        total, factorials = statistics.totals[0], statistics.totals[2]
        events, exposure = (self.prior or GammaPrior()).counted(constant_value(statistics))
        terms = gamma_evidence(events, exposure, total, statistics.column_weight) - factorials
        return float(terms[:, varies(statistics)].sum())

    def _leave_one_out(
        self, statistics: Sums, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        if self.exposure is None:
            return super()._leave_one_out(statistics, fitted, estimation, names)

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            result = fitted.log_density(rows)
            counts, exposure = split_exposure(rows, self._exposure_is_total)
            x = np.where(np.isnan(exposure), np.nan, counts)
            exposures = np.broadcast_to(np.nan_to_num(exposure), x.shape)
            rest = statistics.leave_one_out(x, codes, weights, lambda v: (*self.collected(v), exposures), 0.0)
            unexposed = (rest.totals[3] <= 0.0) & (estimation == Estimation.MLE)
            lost = unexposed & ~np.isnan(x)
            rest = replace(rest, totals=np.where(unexposed, 1.0, rest.totals)) if unexposed.any() else rest
            held_out = self.estimate(rest.filled() if estimation == Estimation.MLE else rest, estimation, names)
            assert isinstance(held_out, ExposedPoisson)
            result[codes, np.arange(len(x))] = np.where(lost.any(axis=1), -np.inf, held_out.paired(rows))
            return result

        return density
