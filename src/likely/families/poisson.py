"""The Poisson family: counts of events, at a rate per unit of exposure.

x | k ~ Poisson(e·rate_k), e the exposure of the row, 1 where none is declared. Natural form: u(x) = x,
θ = log rate, A = e·rate, h = eˣ/x!. Conjugate prior: a gamma distribution of the rate, counted as events seen
during some exposure. The posterior predictive is a negative binomial.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from likely.accumulate import SumsBuilder
from likely.counts import Codes
from likely.errors import CellError, NoEvidenceError
from likely.families.base import Columns, Conditionals, LeftOut
from likely.families.columns import (
    COUNTS,
    ColumnFamily,
    IndependentColumns,
    Mask,
    NaturalColumns,
    bent_squares,
    level,
    typical_sizes,
    varies,
)
from likely.numerics import (
    AnyArray,
    Array,
    Index,
    has_holes,
    log_factorial,
    negative_binomial_log_density,
    poisson_log_density,
)
from likely.priors import GammaPrior, check_prior, gamma_evidence
from likely.statistics import Sums

TOTALS = "row totals"


LARGEST_MEAN = 1e15


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
    def reads_sparse(self) -> bool:  # type: ignore[override]  # rows with an exposure are written out
        return self.exposure is None

    @property
    def _totals(self) -> bool:
        return isinstance(self.exposure, str) and self.exposure == TOTALS

    def extra(self) -> tuple[Any, ...]:
        return () if self.exposure is None or self._totals else (self.exposure,)

    def check(self, estimation: str) -> None:
        check_prior(self.prior, GammaPrior, estimation)

    def describe(self) -> str:
        return "Poisson" if self.exposure is None else f"Poisson, exposure {self.exposure!r}"

    def builder(self, classes: AnyArray, columns: Columns) -> Any:
        plain = super().builder(classes, columns)
        return plain if self.exposure is None else ExposureBuilder(plain, self._totals)

    @staticmethod
    def collected(x: Array) -> tuple[Array, ...]:
        return x, x * x, log_factorial(x)

    def _bent(self, left: Sums, before: Sums) -> Mask:
        return bent_squares(left, before)

    def collects(self) -> tuple[Any, ...]:
        return (*super().collects(), self.exposure)

    def likelihood_sums(self, sums: Sums) -> tuple[tuple[Array, ...], Array]:
        if self.exposure is not None:
            return super().likelihood_sums(sums)
        return (sums.totals[0],), -sums.totals[2]

    def log_evidence(self, statistics: Sums, names: Sequence[str]) -> float:
        if self.exposure is not None:
            raise NoEvidenceError("Poisson with an exposure does not collect what a marginal likelihood needs")
        total, factorials = statistics.totals[0], statistics.totals[2]
        events, during = (self.prior or GammaPrior()).counted(level(statistics))
        terms = gamma_evidence(events, during, total, statistics.column_weight) - factorials
        return float(terms[:, varies(statistics)].sum())

    def leaving_out(self, statistics: Sums, estimation: str, names: Sequence[str]) -> LeftOut:
        if self.exposure is None:
            return super().leaving_out(statistics, estimation, names)
        fitted = self.estimate(statistics, estimation, names)

        def density(rows: AnyArray, codes: Codes, weights: Array) -> Array:
            result = fitted.log_density(rows)
            counts, exposure = split_exposure(rows, self._totals)
            x = np.where(np.isnan(exposure), np.nan, counts)
            during = np.broadcast_to(np.nan_to_num(exposure), x.shape)
            rest = statistics.leaving_out(x, codes, weights, lambda v: (*self.collected(v), during), 0.0)
            lost = (rest.totals[3] <= 0.0) & ~np.isnan(x) & (estimation == "mle")
            rest = replace(rest, totals=np.where(lost, 1.0, rest.totals)) if lost.any() else rest
            own = self.estimate(rest.filled() if estimation == "mle" else rest, estimation, names)
            assert isinstance(own, ExposedPoisson)
            result[codes, np.arange(len(x))] = np.where(lost.any(axis=1), -np.inf, own.paired(rows))
            return result

        return density

    def pseudo_sums(self, statistics: Sums) -> tuple[tuple[Array | float, ...], Array | float]:
        if self.exposure is not None:
            return super().pseudo_sums(statistics)
        events, during = (self.prior or GammaPrior()).counted(level(statistics))
        return (events,), during

    def estimate(self, statistics: Sums, estimation: str, names: Sequence[str]) -> Conditionals:
        total, exposure = statistics.totals[0], statistics.column_weight
        speaks, overall = varies(statistics) | (estimation != "bayes"), level(statistics)
        if self.exposure is not None:
            exposure = statistics.totals[3]
            speaks, overall = statistics.whole.totals[0].sum(axis=0) > 0.0, level(statistics, 0, 3)
        plain = self._plain(statistics, total, exposure, speaks, overall, estimation, names)
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
        speaks: Mask,
        overall: Array,
        estimation: str,
        names: Sequence[str],
    ) -> PoissonConditionals | PoissonPredictive:
        """The estimate for an exposure of 1."""
        if estimation == "mle":
            self.require_observed(statistics, names)
            return PoissonConditionals(speaks, overall, rate=total / exposure)
        events, during = (self.prior or GammaPrior()).counted(overall)
        if np.any(exposure + during == 0.0):
            self.require_observed(statistics, names)
        if estimation == "map":
            return PoissonConditionals(speaks, overall, rate=(total + events) / (exposure + during))
        return PoissonPredictive(speaks, overall, events=total + events, exposure=exposure + during)


@dataclass(frozen=True, eq=False)
class PoissonConditionals(NaturalColumns):
    """Poisson counts with plugged-in rates."""

    rate: Array  # (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "Poisson"

    def means(self) -> Array:
        return self.rate

    def natural(self) -> tuple[tuple[Array, ...], Array]:
        with np.errstate(divide="ignore"):
            return (np.log(self.rate),), self.rate

    @staticmethod
    def statistics(x: Array) -> tuple[Array, ...]:
        return (x,)

    @staticmethod
    def carrier(x: Array) -> Array:
        return -log_factorial(x)

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        """In a form that stays exact for large counts."""
        return poisson_log_density(x, parameters[-1])

    def exposed_terms(self, x: Array, exposure: Array, label: int | slice) -> Array:
        """log p of cells seen during an exposure."""
        return poisson_log_density(x, self.rate[label] * exposure)

    def during(self, exposure: Array) -> Self:
        """The same for another unit of exposure."""
        return replace(self, rate=self.rate * exposure)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        return draw_counts(self.rate[label], (n, self.dimension), rng)


@dataclass(frozen=True, eq=False)
class PoissonPredictive(IndependentColumns):
    """Negative binomial counts: Poisson rates integrated over Gamma(events, exposure)."""

    events: Array  # (classes, d)
    exposure: Array  # (classes, d)

    support: ClassVar = COUNTS
    name: ClassVar = "Poisson"

    def means(self) -> Array:
        return np.asarray(self.events / self.exposure)

    @property
    def parameters(self) -> tuple[Array, ...]:
        return self.events, self.exposure

    def log_terms(self, x: Array, *parameters: Array) -> Array:
        events, exposure = parameters
        return negative_binomial_log_density(x, events, exposure)

    def exposed_terms(self, x: Array, exposure: Array, label: int | slice) -> Array:
        """log p of cells seen during an exposure."""
        return negative_binomial_log_density(x, self.events[label], self.exposure[label] / exposure)

    def during(self, exposure: Array) -> Self:
        """The same for another unit of exposure."""
        return replace(self, exposure=self.exposure / exposure)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Array:
        rate = rng.gamma(self.events[label], 1.0 / self.exposure[label], size=(n, self.dimension))
        return draw_counts(rate, rate.shape, rng)


def draw_counts(rate: Array, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Poisson counts; means that the generator does not take by the normal law, which they have reached."""
    rate = np.broadcast_to(rate, shape)
    drawn = rng.poisson(np.minimum(rate, LARGEST_MEAN)).astype(np.float64)
    beyond = rate > LARGEST_MEAN
    if beyond.any():
        drawn[beyond] = np.rint(rng.normal(rate[beyond], np.sqrt(rate[beyond])))
    return drawn


def split_exposure(rows: AnyArray, totals: bool) -> tuple[AnyArray, Array]:
    """Counts (n, d) and exposures (n, 1); NaN where the exposure is missing."""
    if totals:
        if has_holes(rows):
            row, column = np.argwhere(np.isnan(rows))[0]
            problem = "is missing, and with it the total of the row, which is its exposure"
            raise CellError(int(row), int(column), rows[row, column], problem, "write 0 where nothing was counted")
        return rows, rows.sum(axis=1, keepdims=True, dtype=np.float64)
    counts, exposure = rows[:, :-1], rows[:, -1:].astype(np.float64)
    bad = ~((exposure > 0.0) & np.isfinite(exposure)) & ~np.isnan(exposure)
    if bad.any():
        row = int(np.argmax(bad))
        raise CellError(row, counts.shape[1], exposure[row, 0], "is not an exposure above 0", "correct the cell")
    return counts, exposure


@dataclass(slots=True, eq=False)
class ExposureBuilder:
    """Sums counts and their squares, and the exposure of the rows in which each column was observed."""

    plain: SumsBuilder
    totals: bool
    _exposure: Array | None = None

    @property
    def groups(self) -> None:
        return None

    @property
    def block_rows(self) -> int:
        return self.plain.block_rows

    def add(self, block: AnyArray, codes: Codes, weights: Array | None = None) -> None:
        """Add rows (n, d), or (n, d + 1) with their exposures last."""
        counts, exposure = split_exposure(block, self.totals)
        counts = np.where(np.isnan(exposure), np.nan, counts)
        self.plain.add(counts, codes, weights)
        lasted = np.where(np.isnan(counts), 0.0, exposure)
        lasted = lasted if weights is None else lasted * weights[:, None]
        size = len(self.plain.classes)
        more = np.array([np.bincount(codes, column, minlength=size) for column in lasted.T]).T
        self._exposure = more if self._exposure is None else self._exposure + more

    def finish(self) -> Sums:
        """The sums of all blocks so far, the exposures last."""
        sums = self.plain.finish()
        seen = np.zeros_like(sums.totals[0]) if self._exposure is None else self._exposure
        return replace(sums, totals=np.concatenate([sums.totals, seen[None]]))


@dataclass(frozen=True, eq=False)
class ExposedPoisson(Conditionals):
    """Counts at rates per unit of exposure. Rows end with their exposure, unless it is their total."""

    plain: PoissonConditionals | PoissonPredictive
    totals: bool
    usual: Array  # (classes,): the exposure that rows are drawn with

    given: ClassVar[str | None] = "the exposure of a row"

    def expectation(self, rows: AnyArray, label: int) -> Array:
        counts, exposure = split_exposure(rows, self.totals)
        during = np.where(np.isnan(exposure), 1.0, exposure)
        return np.asarray(self.plain.expectation(counts, label) * np.broadcast_to(during, counts.shape))

    @property
    def n_classes(self) -> int:
        return self.plain.n_classes

    @property
    def dimension(self) -> int:
        return self.plain.dimension

    def marginal(self, columns: Index) -> Self:
        return replace(self, plain=self.plain.marginal(columns))

    def unread(self) -> Index:
        return self.plain.unread()

    def notes(self, names: Sequence[str]) -> list[str]:
        return self.plain.notes(names)

    def paired(self, rows: AnyArray) -> Array:
        """log p of each row under the class of the same number, (n,)."""
        return np.asarray(next(self._class_terms(rows, [slice(None)])).sum(axis=1))

    def _class_terms(self, rows: AnyArray, labels: Iterable[int | slice] | None = None) -> Iterator[Array]:
        counts, exposure = split_exposure(rows, self.totals)
        x, silent = self.plain.read(np.where(np.isnan(exposure), np.nan, counts))
        during = np.where(np.isnan(exposure) | (exposure == 0.0), 1.0, exposure)
        for k in range(self.n_classes) if labels is None else labels:
            terms = self.plain.exposed_terms(x, during, k)
            if self.totals:  # a row without any count says nothing
                terms = np.where(exposure == 0.0, 0.0, terms)
            yield terms if silent is None else np.where(silent, 0.0, terms)

    def log_density(self, rows: AnyArray) -> Array:
        return np.array([terms.sum(axis=1) for terms in self._class_terms(rows)])

    def explain(self, rows: AnyArray) -> Array:
        return np.stack(list(self._class_terms(rows)), axis=1)

    def sample(self, label: int, n: int, rng: np.random.Generator) -> Array:
        """Counts during an exposure of 1; where the total is the exposure, during the mean total of the class."""
        return self.plain.during(self.usual[:, None]).sample(label, n, rng)
