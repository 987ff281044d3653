"""Expectation maximisation for missing values of a joint Gaussian, from moments per missingness pattern alone.

E step: with B = Σ_mo Σ_oo⁻¹ and C = Σ_mm − B Σ_om for a pattern with observed columns o and missing columns m, n rows
of a class with mean x̄ and scatter S of the observed columns have the expected mean μ + L(x̄ − μ_o) and the expected
scatter L S Lᵀ + n·C about it, where L is the identity in the rows o and B in the rows m. M step: means and covariances
from the sums over all patterns, as from any other moments.

The iterations start from the moments of the observed values of each column, so the result depends on the statistics
alone, and Anderson acceleration makes them converge to rounding within few steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from likely.errors import NotEstimableError, listed, trying
from likely.families.base import Completion
from likely.families.estimation import Estimation
from likely.families.gaussian.estimates import (
    PreparedMoments,
    check_observed,
    likelihood_covariances,
    no_maximum,
    posterior_scales,
)
from likely.families.gaussian.prior import NormalInverseWishart, ResolvedPrior
from likely.families.gaussian.shrinkage import intensity_of, pooling_of
from likely.numerics.acceleration import AndersonAcceleration
from likely.numerics.arrays import power_of_two
from likely.numerics.block_sizes import TOGETHER
from likely.numerics.caches import cached_property
from likely.numerics.coordinates import Coordinates
from likely.numerics.linalg import lower_factor
from likely.numerics.special import TINY
from likely.statistics.moments import Moments
from likely.statistics.pattern_moments import PatternMoments, widened
from likely.typing import AnyArray, Array, Index

ROUNDS = 2  # how often EM runs, each time with the default prior of the statistics found before
STEP = 1e-3  # of `tol`: the last step of means and covariances, in standard deviations
MAX_GROWTH = 1.5  # of a step by an acceleration, beyond which the plain step is taken instead
STALLED = 12  # steps without progress after which only rounding is left
SMALLEST_UNIT = 2.0**-1000  # whose inverse is finite
ROUNDING_STEP = 1e-5  # the largest step that may be rounding


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """Means and covariances of the columns that vary, in the units of `PatternRows`."""

    mean: Array  # (K, a)
    covariance: Array  # (groups, a, a)


class AcceleratedGroup:
    """Anderson acceleration of the parameters of one group, and plain EM steps where it does not help.

    Parameters are class means above a covariance, (members + a, a); `factor` is that of the covariance, None if it has
    not full rank.
    """

    def __init__(self, start: Parameters, g: int, members: Index) -> None:
        self.g, self.members, self.now = g, members, np.vstack([start.mean[members], start.covariance[g]])
        self.factor = lower_factor(start.covariance[g])
        self._acceleration = AndersonAcceleration()
        self._plain: Array | None = None  # what plain EM would have tried last, if that was accelerated
        self._step = np.inf
        self._pause, self._plain_steps = 1, 0  # plain steps after an acceleration that did not help, twice as many each

    def aim(self, update: Parameters) -> float:
        """The size of the EM step: the largest change to its target, in standard deviations along every direction."""
        self._target = np.vstack([update.mean[self.members], update.covariance[self.g]])
        change, size = self._target - self.now, len(self.members)
        if self.factor is not None:
            change = np.linalg.solve(self.factor, change.T).T
            change[size:] = np.linalg.solve(self.factor, change[size:])
        return float(np.abs(change).max(initial=0.0))

    def move(self, step: float) -> None:
        """Move to the next parameters, given the size of the EM step."""
        target, size, ahead = self._target, len(self.members), None
        if self._plain is not None and step > MAX_GROWTH * self._step:
            target = self._plain
            self._acceleration, self._plain, self._step = AndersonAcceleration(), None, np.inf
            self._plain_steps, self._pause = self._pause, 2 * self._pause
        else:
            self._step, self._plain = step, None
            if self._plain_steps:
                self._plain_steps -= 1
            else:
                ahead = self._acceleration.ahead(self.now.reshape(1, -1), target.reshape(1, -1))
        if ahead is not None and np.all(np.isfinite(ahead)):
            self.now = ahead.reshape(target.shape)
            self.now[size:] = (self.now[size:] + self.now[size:].T) / 2.0
            self.factor = lower_factor(self.now[size:])
            if self.factor is not None:
                self._plain = target
                return
        self.now, self.factor = target, lower_factor(target[size:])


@dataclass(frozen=True, eq=False)
class PatternRows:
    """Statistics of rows with missing values, in units in which every column that varies has a variance near 1.

    Moments of a pattern are 0 in its missing columns.
    """

    available: Moments  # of the observed values of all columns
    units: Coordinates  # of all columns
    like: Moments  # `available` of the columns that vary, in these units
    active: Index  # columns that vary: a
    observed: npt.NDArray[np.bool_]  # (patterns, a)
    rows: AnyArray  # (patterns, K)
    weight: Array  # (patterns, K)
    mean: Array  # (patterns, K, a)
    scatter: Array  # (patterns, groups, a, a)

    @classmethod
    def of(cls, statistics: PatternMoments) -> PatternRows:
        """Statistics that are pooled as the covariances of the model are."""
        available = statistics.available.settled()
        active = np.flatnonzero(available.has_variance())
        local, total = available.coordinates, np.maximum(available.total_weight, TINY)
        within = available.squares.sum(axis=0) / total
        variance = np.where(within > 0.0, within, available.total_squares / total)
        unit = np.where(variance > 0.0, power_of_two(np.sqrt(variance)), 1.0)
        unit = np.maximum(local.unit * unit, SMALLEST_UNIT)
        units = Coordinates.make(local.to_user(available.overall_mean), unit)
        found = []
        for columns, part in statistics.patterns():
            mine = np.flatnonzero(np.isin(columns, active))
            if (len(mine) or not len(active)) and part.rows.any():  # constant columns have no information
                narrow = part.take(mine).rebase(units.take(columns[mine]))
                found.append((np.searchsorted(active, columns[mine]), narrow))
        size, groups, d = len(statistics.classes), len(available.scatter), len(active)
        observed = np.zeros((len(found), d), dtype=bool)
        mean, scatter = np.zeros((len(found), size, d)), np.zeros((len(found), groups, d, d))
        for p, (seen, part) in enumerate(found):
            observed[p, seen] = True
            mean[p][:, seen] = part.mean
            scatter[p][:, seen[:, None], seen] = part.scatter
        rows, weight = (
            np.array([getattr(part, name) for _, part in found]).reshape(-1, size) for name in ("rows", "weight")
        )
        like = available.rebase(units).take(active)
        return cls(available, units, like, active, observed, rows, weight, mean, scatter)

    def expect(self, now: Parameters, regular: bool) -> Moments:
        """Expected moments of all rows at these parameters; `regular` where all covariances have full rank."""
        like, group = self.like, self.like.group
        scatter, sums = np.zeros_like(now.covariance), np.zeros_like(now.mean)
        chunk = max(TOGETHER // max(now.covariance.size, 1), 1)
        for start in range(0, len(self.weight) if len(self.active) else 0, chunk):
            self._expect_patterns(now, slice(start, start + chunk), regular, scatter, sums)
        rows, weight = self.rows.sum(axis=0), self.weight.sum(axis=0)
        step = sums / np.where(weight > 0.0, weight, 1.0)[:, None]
        for g in range(len(scatter)):
            members = group == g
            scatter[g] -= step[members].T @ (weight[members][:, None] * step[members])
        mean, scatter = now.mean + step, (scatter + scatter.transpose(0, 2, 1)) / 2.0
        units, seen = like.coordinates, self.proportion
        return Moments(like.classes, rows, weight, mean, scatter, like.sharing, units, observed=seen)

    @cached_property
    def proportion(self) -> float:
        """The proportion of the values of columns that vary that are observed."""
        missing = float(self.weight.sum(axis=1) @ (~self.observed).sum(axis=1))
        total = float(self.weight.sum()) * len(self.active)
        return 1.0 - missing / max(total, TINY)

    def _expect_patterns(self, now: Parameters, some: slice, regular: bool, scatter: Array, sums: Array) -> None:
        """Add the expected products and sums of rows with some of the patterns, about the means."""
        group, observed, weight = self.like.group, self.observed[some], self.weight[some]
        fill, rest = _conditional(now.covariance, observed, regular)
        away = np.where(observed[:, None] & (weight[:, :, None] > 0.0), self.mean[some] - now.mean, 0.0)
        step = np.matmul(fill[:, group], away[:, :, :, None])[:, :, :, 0]
        scatter += np.matmul(np.matmul(fill, self.scatter[some]), fill.transpose(0, 1, 3, 2)).sum(axis=0)
        sums += (weight[:, :, None] * step).sum(axis=0)
        for g in range(len(scatter)):
            members = np.flatnonzero(group == g)
            mass, moved = weight[:, members], step[:, members].reshape(-1, step.shape[2])
            scatter[g] += moved.T @ (mass.reshape(-1, 1) * moved) + np.tensordot(mass.sum(axis=1), rest[:, g], 1)


def _conditional(covariance: Array, observed: AnyArray, regular: bool) -> tuple[Array, Array]:
    """L and C of each pattern and group, (patterns, groups, a, a): what completes rows, and what remains uncertain.

    The inverse of the observed block is that of the whole with the other rows and columns of the identity; covariances
    without full rank (not `regular`) need a pseudo-inverse.
    """
    both = (observed[:, :, None] & observed[:, None, :])[:, None]
    inner = np.where(both, covariance, 0.0)
    if regular:
        diagonal = np.arange(covariance.shape[1])
        inner[:, :, diagonal, diagonal] += ~observed[:, None]
        inverse = np.where(both, np.linalg.inv(inner), 0.0)
    else:
        inverse = np.linalg.pinv(inner, rcond=1e-10, hermitian=True)
    slope = np.matmul(covariance, inverse)
    fill = np.where(observed[:, None, :, None], np.eye(covariance.shape[1]) * observed[:, None, None, :], slope)
    unseen = (~observed[:, :, None] & ~observed[:, None, :])[:, None]
    return fill, np.where(unseen, covariance - np.matmul(slope, covariance), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodStep:
    """The M step of maximum likelihood, with shrinkage; and of a family of independent columns, where EM starts."""

    family: Any
    estimation: Estimation = Estimation.MLE

    def __call__(self, moments: Moments) -> Parameters:
        """Means and covariances from expected moments, or from those of single columns."""
        if self.estimation != Estimation.MLE:  # priors are in the units of the moments: others may underflow
            moments = replace(moments, coordinates=Coordinates.plain(moments.dimension))
        data: PreparedMoments = self.family._prepared(moments)
        if self.estimation == Estimation.MLE:
            matrices = likelihood_covariances(data, self.family.shrinkage, self.family.unbiased)
            mean = data.moments.mean
        else:
            posterior = self.family._posterior(data)
            matrices = posterior_scales(data, posterior, self.estimation)[1]
            mean = data.posterior_means(posterior)
        wide = np.zeros((len(matrices), moments.dimension, moments.dimension))
        if matrices.ndim == 2:
            wide[:, data.active, data.active] = matrices
        else:
            wide[:, data.active[:, None], data.active] = matrices
        local, units = data.moments.coordinates, moments.coordinates
        ratio = local.unit / units.unit
        mean = mean * ratio + (local.origin - units.origin) / units.unit
        return Parameters(mean, wide * (ratio * ratio[:, None]))


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorStep:
    """The M step of MAP: the joint mode of means and covariances under a prior that stays the same.

    The weights of the classes stay the same, too, so that only means and scatters change.
    """

    prior: ResolvedPrior
    rows: Array  # that the posterior means count for, (K,)
    divisor: Array  # of the scales, (groups,)

    @classmethod
    def of(cls, family: Any, moments: Moments, rows: PatternRows) -> PosteriorStep:
        """With the prior that a family has given these moments."""
        structure, d = family._structure, len(rows.active)
        prior = family._resolved_prior(moments, rows.active, len(rows.units.unit))
        posterior = prior.posterior(moments, structure)
        classes = np.bincount(moments.group, minlength=len(moments.scatter)).astype(np.float64)
        return cls(prior, posterior.mean_rows, structure.mode_divisor(posterior.degrees, d, classes))

    def __call__(self, moments: Moments) -> Parameters:
        """Means and covariances from expected moments."""
        mean, scatter = self.prior.combined(moments, moments.weight, self.rows)
        return Parameters(mean, (self.prior.scale + scatter) / self.divisor[:, None, None])


Start = tuple[PatternRows, Moments]


def start_of_completion(independent: Any, statistics: PatternMoments) -> Start:
    """Where EM starts: the expected moments under the family of independent columns."""
    rows = PatternRows.of(statistics)
    first = LikelihoodStep(independent, Estimation.MAP)(rows.like)
    return rows, rows.expect(first, all(lower_factor(each) is not None for each in first.covariance))


def complete_moments(
    family: Any, started: Start, estimation: Estimation, names: Sequence[str], max_iter: int, tol: float
) -> Completion:
    """Expected moments at the fixed point of EM."""
    (rows, moments), plug_in = started, estimation.plug_in
    if estimation == Estimation.MLE:
        _check_likelihood(family, rows, names)
    else:
        _check_flat_prior(family.prior, rows, names)
    iterations, converged, step = 0, False, np.inf
    for _ in range(1 if plug_in == Estimation.MLE else ROUNDS):
        maximise: Callable[[Moments], Parameters] = (
            LikelihoodStep(family) if plug_in == Estimation.MLE else PosteriorStep.of(family, moments, rows)
        )
        moments, used, step = _fixed_point(rows, maximise, moments, max_iter - iterations, STEP * tol)
        iterations += used
        converged = step <= STEP * tol
        if not converged:
            break
    wide = replace(widened(moments, rows.active, rows.available.dimension), coordinates=rows.units)
    final = wide.rebase(rows.available.coordinates)
    if estimation == Estimation.MLE:
        with trying():
            family.estimate(final, estimation, names)  # raises where the likelihood has no maximum
    return Completion(final, iterations, converged, step)


def _fixed_point(
    rows: PatternRows, maximise: Callable[[Moments], Parameters], moments: Moments, max_iter: int, least: float
) -> tuple[Moments, int, float]:
    """E and M steps with Anderson acceleration: the last moments, the number of steps, and the size of the last one.

    A step that is no longer reduced, and small enough to be rounding, counts as 0.
    """
    now, group = maximise(moments), rows.like.group
    states = [AcceleratedGroup(now, g, np.flatnonzero(group == g)) for g in range(len(now.covariance))]
    best, since = np.inf, 0
    for i in range(max_iter):
        singular = [state for state in states if state.factor is None]
        moments = rows.expect(now, not singular and bool(np.all(np.isfinite(now.mean))))
        update = maximise(moments)
        steps = [state.aim(update) for state in states]
        largest = max(steps, default=0.0)
        if largest <= least:
            return moments, i + 1, largest
        since = 0 if largest < 0.9 * best else since + 1
        best = min(best, largest)
        if since >= STALLED and best <= ROUNDING_STEP:
            return moments, i + 1, 0.0
        for state, step in zip(states, steps, strict=True):
            state.move(step)
            now.mean[state.members], now.covariance[state.g] = np.vsplit(state.now, [len(state.members)])
    return moments, max(max_iter, 0), best


def _check_likelihood(family: Any, rows: PatternRows, names: Sequence[str]) -> None:
    """Raise where the likelihood has no unique maximum."""
    like, names = rows.like, [names[j] for j in rows.active.tolist()]  # others are ignored, also without values
    check_observed(like, names)
    constant = like.squares <= 0.0
    pooled = pooling_of(family.shrinkage) > 0.0
    constant = np.broadcast_to(constant.all(axis=0), constant.shape) if pooled else constant
    sphered = isinstance(family.shrinkage, str) or np.any(intensity_of(family.shrinkage, rows.available))
    if constant.any() and not sphered:
        g = int(np.argmax(constant.any(axis=1)))
        which = [names[j] for j in np.flatnonzero(constant[g])]
        data = family._initial_family()._prepared(rows.available)
        raise NotEstimableError(no_maximum(data, g, which, True, family.shrinkage))
    weight = np.zeros((len(like.scatter), len(names), len(names)))
    np.add.at(weight, like.group, np.einsum("pk,pi,pj->kij", rows.weight, rows.observed, rows.observed))
    if np.any(weight <= 0.0):
        g, i, j = np.argwhere(weight <= 0.0)[0].tolist()
        classes = listed(like.classes[like.group == g])
        raise NotEstimableError(
            f"Columns {names[i]!r} and {names[j]!r} are never observed in the same row of class {classes}, so their "
            "covariance has no maximum likelihood estimate. Use estimation='bayes' or 'map', covariance='diagonal', or "
            "drop one of the columns."
        )


def _check_flat_prior(prior: NormalInverseWishart | None, rows: PatternRows, names: Sequence[str]) -> None:
    """Raise where an improper prior leaves the mean or the variance of a column undetermined."""
    if prior is None:
        return
    like, remedy = rows.like, "Use a proper prior: NormalInverseWishart()."
    if prior.mean_rows is not None and np.all(np.asarray(prior.mean_rows) == 0.0):
        unseen = np.argwhere(like.rows == 0)
        if len(unseen):
            k, j = unseen[0].tolist()
            raise NotEstimableError(
                f"Column {names[rows.active[j]]!r} has no observed value in class {listed(like.classes[k : k + 1])}, "
                f"so a flat prior leaves its mean undetermined. {remedy}"
            )
    if prior.scale is not None and np.all(np.asarray(prior.scale) == 0.0):
        constant = np.argwhere(like.squares <= 0.0)
        if len(constant):
            g, j = constant[0].tolist()
            classes = listed(like.classes[like.group == g])
            raise NotEstimableError(
                f"Column {names[rows.active[j]]!r} does not vary within class {classes}, so a flat prior leaves its "
                f"variance undetermined. {remedy}"
            )
