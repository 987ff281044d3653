"""The Poisson family: counts of events, at a rate per unit of exposure.

x | k ~ Poisson(e·rate_k), with the exposure e of the row, which is 1 where none is declared. Natural form: u(x) = x,
θ = log rate, A = e·rate, h = eˣ/x!. Conjugate prior: a gamma distribution of the rate, as pseudo-events observed during
an exposure. The posterior predictive is negative binomial. The densities are in `poisson_densities`, those with an
exposure in `exposure`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likely.errors import NoEvidenceError
from likely.families.base import Columns, Conditionals, LeaveOneOutDensity
from likely.families.column_family import (
    ColumnFamily,
    constant_value,
    typical_sizes,
    varies,
)
from likely.families.estimation import Estimation, require_maximum
from likely.families.exposure import ExposedPoisson, ExposureAccumulator, split_exposure
from likely.families.independent import Mask
from likely.families.parameters import ColumnParameters, Parameter, rate_errors
from likely.families.poisson_densities import PoissonConditionals, PoissonPredictive
from likely.families.priors import GammaPrior, check_prior, gamma_evidence, require_proper, with_pseudo_data
from likely.families.supports import COUNTS, NON_NEGATIVE
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
    _given_parameters = (("rate", NON_NEGATIVE),)
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
        events, exposure = self._posterior(statistics, estimation)
        return {"rate": (events / exposure, rate_errors(events, exposure, estimation))}

    def _plugged_in(self, informative: Mask, constant: Array, parameters: Mapping[str, Array]) -> PoissonConditionals:
        return PoissonConditionals(informative, constant, parameters["rate"])

    def _given(self, values: Mapping[str, Any], size: int, names: Sequence[str]) -> Conditionals:
        rates = super()._given(values, size, names)
        assert isinstance(rates, PoissonConditionals)
        return rates if self.exposure is None else ExposedPoisson(rates, self._exposure_is_total, np.ones(size))

    def _given_table(self, fitted: Any, names: Sequence[str]) -> list[Parameter]:
        return super()._given_table(fitted.plain if isinstance(fitted, ExposedPoisson) else fitted, names)

    def _exposure(self, statistics: Sums) -> Array:
        """The exposure of each class and column, which is the weight of its rows where none is declared."""
        return statistics.column_weight if self.exposure is None else statistics.totals[3]

    def _overall_rate(self, statistics: Sums) -> Array:
        return constant_value(statistics, 0, None if self.exposure is None else 3)

    def _pseudo_events(self, statistics: Sums) -> tuple[float, Array]:
        """Pseudo-events of the prior and their exposure."""
        return (self.prior or GammaPrior()).counted(self._overall_rate(statistics))

    def _posterior(self, statistics: Sums, estimation: Estimation) -> tuple[Array, Array]:
        """Events and their exposure, with those of the prior unless under maximum likelihood."""
        data = statistics.totals[0], self._exposure(statistics)
        return with_pseudo_data(data, self._pseudo_events(statistics), estimation)

    def estimate(self, statistics: Sums, estimation: Estimation, names: Sequence[str]) -> Conditionals:
        if self.exposure is None:
            informative = varies(statistics) | (estimation != Estimation.BAYES)
            return self._estimate_rates(statistics, informative, estimation, names)
        informative = statistics.whole.totals[0].sum(axis=0) > 0.0
        exposure, weight = self._exposure(statistics), statistics.column_weight.sum(axis=1)
        if estimation == Estimation.MLE:  # without any exposure, no rate has a larger likelihood than another
            none = (exposure <= 0.0) & ~statistics.unobserved()
            require_maximum(none, statistics.classes, names, "has no exposure in")
        rates = self._estimate_rates(statistics, informative, estimation, names)
        typical = typical_sizes(exposure.sum(axis=1), weight) if self._exposure_is_total else np.ones(len(weight))
        return ExposedPoisson(rates, self._exposure_is_total, np.where(typical > 0.0, typical, 1.0))

    def _estimate_rates(
        self, statistics: Sums, informative: Mask, estimation: Estimation, names: Sequence[str]
    ) -> PoissonConditionals | PoissonPredictive:
        """The distributions for an exposure of 1: (events + prior events) / (exposure + prior exposure)."""
        overall = self._overall_rate(statistics)
        if estimation == Estimation.MLE:
            self.require_observed(statistics, names)
        require_proper(self.prior, self._exposure(statistics), informative, statistics, names)
        events, exposure = self._posterior(statistics, estimation)
        if estimation == Estimation.BAYES:
            return PoissonPredictive(informative, overall, events, exposure)
        return PoissonConditionals(informative, overall, rate=events / exposure)

    def _likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        if self.exposure is not None:
            return super()._likelihood_sums(sums)
        return (sums.totals[0],), -sums.totals[2]

    def _prior_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        if self.exposure is not None:
            return super()._prior_sums(statistics)
        events, exposure = self._pseudo_events(statistics)
        return (events,), exposure

    def _log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        if self.exposure is not None:
            raise NoEvidenceError("Poisson with an exposure does not collect what a marginal likelihood needs")
        events, _, factorials = statistics.totals
        terms = gamma_evidence(*self._pseudo_events(statistics), events, statistics.column_weight) - factorials
        return float(terms[:, varies(statistics)].sum())

    def _leave_one_out(
        self, statistics: Sums, fitted: Conditionals, estimation: Estimation, names: Sequence[str]
    ) -> LeaveOneOutDensity:
        if self.exposure is None:
            return super()._leave_one_out(statistics, fitted, estimation, names)

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            smooths, result = self._smooths(estimation), fitted.log_density(rows)
            counts, exposure = split_exposure(rows, self._exposure_is_total)
            x = np.where(np.isnan(exposure), np.nan, counts)
            exposures = np.broadcast_to(np.nan_to_num(exposure), x.shape)
            rest = statistics.leave_one_out(x, codes, weights, lambda v: (*self.collected(v), exposures), 0.0)
            unexposed = (rest.totals[3] <= 0.0) & (not smooths)
            lost = unexposed & ~np.isnan(x)
            rest = replace(rest, totals=np.where(unexposed, 1.0, rest.totals)) if unexposed.any() else rest
            held_out = self.estimate(rest if smooths else rest.filled(), estimation, names)
            assert isinstance(held_out, ExposedPoisson)
            result[codes, np.arange(len(x))] = np.where(lost.any(axis=1), -np.inf, held_out.paired(rows))
            return result

        return density
