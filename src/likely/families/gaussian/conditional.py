"""Some columns of a Gaussian or Student t given the others: regression, for all classes.

With z = (x, y) of mean m and covariance S, y given the observed values o of x is Gaussian with mean
m_y + S_yo·S_oo⁻¹·(x_o − m_o) and covariance C = S_yy − S_yo·S_oo⁻¹·S_oy. Where z is a Student t of ν degrees of freedom
and scale S, y given x_o is one too: of ν + d_o degrees, the same location, and scale (ν + δ)/(ν + d_o)·C, with
δ = (x_o − m_o)ᵀ·S_oo⁻¹·(x_o − m_o). Rows with missing values of x are evaluated together, whatever their pattern.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.special
from scipy.optimize import elementwise

from likely.errors import NoDensityError
from likely.families.gaussian.missing_cells import MissingValues
from likely.numerics.arrays import all_finite
from likely.numerics.caches import cached_property
from likely.numerics.coordinates import MOST_UNITS, Coordinates
from likely.numerics.linalg import lower_factor, range_and_null, rank_tolerance, whitener_of
from likely.numerics.missingness import patterns
from likely.numerics.special import EPS, LOG_2PI, log_gamma_ratio, log_sum_exp
from likely.typing import AnyArray, Array, Index

RIDGE_GRID = tuple(10.0**power for power in range(-4, 3))  # candidate multiples of the prior scale

EVIDENCE_ROUNDING = 1e-3  # differences of log p(y | x) that may be rounding errors of removals


@dataclass(frozen=True, eq=False)
class EmpiricalBayesRidge:
    """Empirical Bayes ridge regression in place of a default prior: its scale Ψ0, and the rows less one per mean.

    A default prior holds no information on how well x predicts y, but its pseudo-rows would. Instead the slopes have
    a ridge penalty c·Ψ0_xx, with c at the maximum of p(y | x), and the residual sum of squares is that of the rows
    alone. The residual degrees of freedom are the rows less the effective number of slopes; the fewer there are, the
    more weight Ψ0_yy has.
    """

    scale: Array  # (active, active), diagonal
    rows: Array  # (groups,)
    divisor: Array  # (groups,): of the scales of the posterior

    def applied(self, matrix: Array, inputs: int, group: int) -> tuple[Array, Array, float]:
        """Slopes (q, d), the residual squared scale of y, (q, q), and its degrees of freedom."""
        rows = float(self.rows[group])
        sums = matrix * float(self.divisor[group]) - self.scale
        size = np.sqrt(np.diagonal(self.scale))
        size = np.where(size > 0.0, size, 1.0)[:inputs]
        values, turn = np.linalg.eigh(sums[:inputs, :inputs] / size / size[:, None])
        values = np.maximum(values, 0.0)
        cross = turn.T @ (sums[:inputs, inputs:] / size[:, None])
        whole = sums[inputs:, inputs:]

        def rank_one_update(c: float) -> Array:
            return whole - cross.T @ (cross / (values + c)[:, None])

        def evidence(c: float) -> float:
            """log p(y | x) up to a constant, the slopes integrated out."""
            sign, log_left = np.linalg.slogdet(rank_one_update(c))
            log_ratio = len(whole) * float(np.sum(np.log(c) - np.log(values + c)))
            return 0.5 * (log_ratio - rows * float(log_left)) if sign > 0.0 else -np.inf

        c = _most_evident(evidence) if inputs else 1.0
        used = float(np.sum(values / (values + c)))
        part = cross / (values + c)[:, None]
        bottom, ways = np.linalg.eigh(rank_one_update(c) - c * part.T @ part)
        left = (ways * np.maximum(bottom, 0.0)) @ ways.T  # rounding may have made it negative
        free = max(rows - used, 0.0)
        prior_weight = (1.0 / (1.0 + free)) ** 4
        rest = (left + prior_weight * self.scale[inputs:, inputs:]) / (free + prior_weight)
        return (turn @ part / size[:, None]).T, rest, free + prior_weight


def _most_evident(evidence: Callable[[float], float]) -> float:
    """The multiple of the prior scale with the largest evidence; the one nearest to 1 of those that differ by rounding.

    The evidence of two rows is the same for all multiples.
    """
    found = {c: evidence(c) for c in RIDGE_GRID}
    best = max(found.values())
    return min((c for c in found if found[c] >= best - EVIDENCE_ROUNDING), key=lambda c: abs(round(math.log10(c))))


@dataclass(frozen=True, eq=False)
class Unfactored:
    """Estimated means and covariances of jointly modelled columns, not factored: of any rank."""

    mean: Array  # (K, d), local
    matrices: Array  # (groups, active, active): covariances, or scales of Student t's
    active: Index  # the columns that vary
    group: Index  # (K,)
    stretch: Array  # (K,): the covariance of class k is stretch_k times that of its group
    degrees: Array  # (K,), infinite for Gaussians
    coordinates: Coordinates
    ridge: EmpiricalBayesRidge | None = None  # with the default prior
    largest_ranks: Sequence[int] | None = None  # of the matrices, from the numbers of rows; None: all of full rank


@dataclass(frozen=True, eq=False)
class ConditionalDensity:
    """y given rows of x, in one class, in local coordinates: a Gaussian or Student t for each row."""

    location: Array  # (n, q)
    scale: Array  # (n, q, q)
    reach: Array  # (n,): factor of the standard deviations
    degrees: Array  # (n,), infinite for Gaussians

    @cached_property
    def marginal_scale(self) -> Array:
        """Scale of the standard Gaussian or Student t, (n, q)."""
        return np.asarray(self.reach[:, None] * np.sqrt(np.einsum("nqq->nq", self.scale)))


class Line:
    """Regression of y on x under one joint covariance: slopes, residual covariance, and the whitening factor of x.

    Slopes are S_yx·S_xx⁻¹. Where S_xx is singular, which only maximum likelihood allows, they are the solution of
    minimum norm, in the user's units: S_yx·S_xx⁺. `singular` is whether the rows are too few for any other S_xx.
    """

    def __init__(self, matrix: Array, inputs: int, unit: Array, singular: bool) -> None:
        inner, cross, outer = matrix[:inputs, :inputs], matrix[:inputs, inputs:], matrix[inputs:, inputs:]
        lower = None if singular else lower_factor(inner)
        self.full_rank = lower is not None
        if lower is None:
            self.whitener, null = range_and_null(inner)
            half = self.whitener.T @ cross
            slopes = _shortest(self.whitener @ half, null, unit)
        else:
            self.whitener = whitener_of(lower)
            half = scipy.linalg.solve_triangular(lower, cross, lower=True)
            slopes = scipy.linalg.solve_triangular(lower, half, lower=True, trans="T")
        self.slopes = slopes.T
        rest = outer - half.T @ half
        none = np.diagonal(rest) <= rank_tolerance(len(matrix)) * np.diagonal(outer)
        rest[none] = rest[:, none] = 0.0
        self.rest = rest

    @cached_property
    def precision(self) -> Array:
        return self.whitener @ self.whitener.T


def _shortest(slopes: Array, null: Array, unit: Array) -> Array:
    """Slopes (d, q) without what lies along directions (d, m) in which x does not vary, in the user's units."""
    if not null.size:
        return slopes
    size = np.exp(np.log(unit) - np.log(unit).mean())[:, None]
    along, order = null / size, np.argsort(-np.abs(null / size).max(axis=1))  # large rows first: small ones stay exact
    basis = np.empty_like(along)
    basis[order] = scipy.linalg.qr(along[order], mode="economic", pivoting=True)[0]
    slopes = slopes / size
    return np.asarray(size * (slopes - basis @ (basis.T @ slopes)))


class ConditionalMeans:
    """y given x for all classes: the last `targets` columns of a block given the others."""

    def __init__(self, joint: Unfactored, targets: int) -> None:
        self._joint, self.targets = joint, targets
        self.inputs = joint.mean.shape[1] - targets
        self._x = joint.active[joint.active < self.inputs]
        self.varying = joint.active[joint.active >= self.inputs] - self.inputs  # targets that vary
        self._unread = np.setdiff1d(np.arange(self.inputs), self._x)
        self.x_coordinates = joint.coordinates.take(np.arange(self.inputs))
        self.y_coordinates = joint.coordinates.take(np.arange(self.inputs, self.inputs + targets))
        self._lines = [self._line(g, np.arange(len(self._x))) for g in range(len(joint.matrices))]
        # Degrees of freedom of y given all of x, where they are not those of the joint.
        self._degrees = np.full(len(joint.matrices), np.inf)
        if joint.ridge is not None and len(self.varying):
            self._apply_ridge(joint.ridge)

    def _line(self, group: int, there: Index) -> Line:
        """y given some of the columns of x that vary."""
        matrix, ranks = self._joint.matrices[group], self._joint.largest_ranks
        wanted = np.concatenate([there, np.arange(len(self._x), len(matrix))])
        unit = self.x_coordinates.unit[self._x[there]]
        singular = ranks is not None and ranks[group] < len(there)
        return Line(matrix[np.ix_(wanted, wanted)], len(there), unit, singular)

    def _apply_ridge(self, ridge: EmpiricalBayesRidge) -> None:
        """Replace the slopes and residuals that follow from the default prior."""
        d = len(self._x)
        for g, line in enumerate(self._lines):
            nu = float(self._joint.degrees[int(np.argmax(self._joint.group == g))])
            line.slopes, rest, self._degrees[g] = ridge.applied(self._joint.matrices[g], d, g)
            line.rest = rest * ((nu + d) / nu)  # `_stretched` divides by it again

    def _of(self, label: int) -> Line:
        return self._lines[int(self._joint.group[label])]

    def slopes(self, label: int) -> Array:
        """Regression slopes of a class, (q, d), in the user's units."""
        slopes = np.zeros((self.targets, self.inputs))
        slopes[np.ix_(self.varying, self._x)] = self._of(label).slopes
        with np.errstate(over="ignore", under="ignore"):
            return slopes / self.x_coordinates.unit * self.y_coordinates.unit[:, None]

    def intercepts(self, label: int) -> Array:
        """Each target where x is 0, (q,), in the user's units."""
        mean = self._joint.coordinates.to_user(self._joint.mean[label])
        return np.asarray(mean[self.inputs :] - self.slopes(label) @ mean[: self.inputs])

    def standard_deviations(self, label: int) -> Array:
        """Residual standard deviations (Student t: scales) of the targets at the mean of x, (q,), in user units."""
        rest = np.zeros(self.targets)
        rest[self.varying] = np.diagonal(self._of(label).rest)
        nu, d = self._joint.degrees[label], len(self._x)
        factor = self._joint.stretch[label] * (nu / (nu + d) if np.isfinite(nu) else 1.0)
        return np.asarray(np.sqrt(rest * factor) * self.y_coordinates.unit)

    def least_squares_errors(self, label: int, group_rows: Array, class_rows: Array) -> tuple[Array, Array, Array]:
        """Standard errors of slopes (q, d), intercepts (q,) and residual standard deviations (q,), in user units.

        They are those of maximum likelihood, given the rows of each group and class: Var(slopes) = σ²·S_xx⁻¹, with S_xx
        the scatter of x. NaN where columns are linearly dependent.
        """
        group = int(self._joint.group[label])
        line, n = self._lines[group], float(group_rows[group])
        deviation = self.standard_deviations(label)
        errors = np.zeros((self.targets, self.inputs))
        mean = self._joint.coordinates.to_user(self._joint.mean[label])[self._x]
        unit = self.x_coordinates.unit[self._x]
        inverse = line.precision / n / unit / unit[:, None]
        errors[:, self._x] = deviation[:, None] * np.sqrt(np.diagonal(inverse))
        intercepts = deviation * np.sqrt(1.0 / float(class_rows[label]) + mean @ inverse @ mean)
        if not line.full_rank:
            return np.full_like(errors, np.nan), np.full_like(intercepts, np.nan), deviation / np.sqrt(2.0 * n)
        return errors, intercepts, deviation / np.sqrt(2.0 * n)

    def notes(self, names: Sequence[str]) -> list[str]:
        """Remarks for a summary."""
        flat = [names[j] for j in [*self._unread, *(self.inputs + np.setdiff1d(np.arange(self.targets), self.varying))]]
        lines = [f"constant columns, ignored: {', '.join(map(repr, flat))}"] if flat else []
        if not all(line.full_rank for line in self._lines):
            lines.append("linearly dependent columns: slopes of minimum norm")
        return lines

    # -- evaluation

    def location(self, rows: AnyArray, label: int) -> Array:
        """Location of y in a class, given rows of x, (n, q)."""
        centred = self._centred(rows, label)
        location = self._located(centred, self._of(label), label)
        return self._missing_rows(centred, label).location if _has_missing(location, centred) else location

    def given(self, rows: AnyArray, label: int) -> ConditionalDensity:
        """y given rows of x in a class."""
        centred, line, n = self._centred(rows, label), self._of(label), len(rows)
        location = self._located(centred, line, label)
        if _has_missing(location, centred):
            return self._missing_rows(centred, label)
        scale = np.broadcast_to(self._joint.stretch[label] * self._wide(line.rest), (n, self.targets, self.targets))
        count = np.full(n, float(len(self._x)))
        return ConditionalDensity(location, scale, *self._stretched(centred, line, count, label))

    def _centred(self, rows: AnyArray, label: int) -> Array:
        """The columns of x that vary, local and about their means."""
        local = self.x_coordinates.to_limited(rows)
        if len(self._x) < self.inputs:
            local = local[:, self._x]
        return np.subtract(local, self._joint.mean[label, self._x], dtype=np.float64)

    def _located(self, centred: Array, line: Line, label: int) -> Array:
        """Locations of centred rows; NaN where values are missing."""
        location = np.repeat(self._joint.mean[label, None, self.inputs :], len(centred), axis=0)
        location[:, self.varying] += centred @ line.slopes.T
        return location

    def _wide(self, covariance: Array) -> Array:
        """Covariances of the targets that vary as those of all, (..., q, q)."""
        if len(self.varying) == self.targets:
            return covariance
        wide = np.zeros((*covariance.shape[:-2], self.targets, self.targets))
        wide[..., self.varying[:, None], self.varying] = covariance
        return wide

    def _stretched(self, centred: Array, line: Line, count: Array, label: int) -> tuple[Array, Array]:
        """√((ν + δ)/(ν + d)) and ν + d of each row; 1 for Gaussians, where ν is infinite."""
        nu = self._joint.degrees[label]
        if not np.isfinite(nu):
            return np.ones(len(centred)), np.full(len(centred), np.inf)
        white = np.clip(centred @ line.whitener, -MOST_UNITS, MOST_UNITS)
        away = np.sqrt(np.einsum("nr,nr->n", white, white) / self._joint.stretch[label])
        degrees = np.minimum(nu + count, self._degrees[int(self._joint.group[label])])
        return np.hypot(np.sqrt(nu), away) / np.sqrt(nu + count), degrees

    def _missing_rows(self, centred: Array, label: int) -> ConditionalDensity:
        """y given rows with missing values: these have conditional expectations, and covariances about them."""
        line = self._of(label)
        if not line.full_rank:
            return self._by_pattern(centred, label)
        missing = np.isnan(centred)
        filled = np.where(missing, 0.0, centred)
        missing_values = MissingValues(missing, line.precision)
        missing_values.fill(filled)
        scale = self._joint.stretch[label] * self._wide(line.rest + missing_values.propagated(line.slopes))
        count = (~missing).sum(axis=1).astype(np.float64)
        return ConditionalDensity(
            self._located(filled, line, label), scale, *self._stretched(filled, line, count, label)
        )

    def _by_pattern(self, centred: Array, label: int) -> ConditionalDensity:
        """The same with linearly dependent columns: rows with the same missing values together."""
        n, q = len(centred), self.targets
        found = ConditionalDensity(
            np.empty((n, q)), np.empty((n, q, q)), np.ones(n), np.full(n, self._joint.degrees[label])
        )
        for index, there in patterns(centred):
            line = self._line(int(self._joint.group[label]), there)
            found.location[index] = self._located(centred[np.ix_(index, there)], line, label)
            found.scale[index] = self._joint.stretch[label] * self._wide(line.rest)
        return found


def _has_missing(location: Array, centred: Array) -> bool:
    """Whether values are missing."""
    return not all_finite(location) and bool(np.isnan(centred).any())


def blend(weights: Array, parts: Sequence[Array]) -> Array:
    """Σ_k weight_k·part_k, (n, q), with weights (k, n)."""
    if len(parts) == 1:
        return parts[0]
    return np.asarray(sum(weight[:, None] * part for weight, part in zip(weights, parts, strict=True)))


@dataclass(frozen=True, eq=False)
class PredictiveMixture:
    """y given rows of x over all classes that these may be of: a mixture of Gaussians or Student t's for each row."""

    parts: Sequence[ConditionalDensity]
    weights: Array  # p(class | x), (classes, n)

    @cached_property
    def mean(self) -> Array:
        """Σ_k p(k | x)·E[y | x, k], (n, q)."""
        return blend(self.weights, [part.location for part in self.parts])

    @property
    def standard_deviation(self) -> Array:
        """√(E[Var(y | x, k)] + Var(E[y | x, k])), (n, q); infinite for a Student t of two degrees or fewer."""
        if len(self.parts) == 1:
            return _standard_deviation(self.parts[0])
        total = np.zeros_like(self.mean)
        for s, part in zip(self.weights, self.parts, strict=True):
            there = s > 0.0
            square = _standard_deviation(part)[there] ** 2 + (part.location - self.mean)[there] ** 2
            total[there] += s[there, None] * square
        return np.sqrt(total)

    def quantile(self, chance: float) -> Array:
        """What each target is below with this probability, given x, (n, q)."""
        ends = [
            part.location + part.marginal_scale * scipy.special.stdtrit(part.degrees, chance)[:, None]
            for part in self.parts
        ]
        if len(ends) == 1:
            return ends[0]
        used = self.weights[:, :, None] > 0.0
        low, high = (np.where(used, ends, fill) for fill in (np.inf, -np.inf))
        low, high = low.min(axis=0), high.max(axis=0)
        margin = 4.0 * EPS * np.maximum(np.abs(low), np.abs(high)) + 1e-12 * (high - low)
        apart = np.flatnonzero((high - low > 2.0 * margin).ravel())  # elsewhere all classes agree
        middle = 0.5 * (low + high)
        if len(apart):
            found = elementwise.find_root(
                lambda y, place: self._below(y, place.astype(np.intp)) - chance,
                ((low - margin).ravel()[apart], (high + margin).ravel()[apart]),
                args=(apart.astype(np.float64),),
            )
            middle.ravel()[apart] = found.x
        return middle

    def _below(self, y: Array, place: Index) -> Array:
        """P(target < y | x) of some entries of (n, q), by their flat indices."""
        row = place // self.mean.shape[1]
        total = np.zeros_like(y)
        for s, part in zip(self.weights, self.parts, strict=True):
            away, size = y - part.location.ravel()[place], part.marginal_scale.ravel()[place]
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = np.where(size > 0.0, away / size, np.where(away < 0.0, -np.inf, np.inf))
            total += s[row] * scipy.special.stdtr(part.degrees[row], steps)
        return total

    def log_density(self, y: Array, varying: Index) -> Array:
        """log p(y | x) of the targets that vary, (n,), in local units; missing ones are ignored."""
        density = np.zeros(len(y))
        for index, there in patterns(y[:, varying]):
            if len(there):
                wanted = varying[there]
                logs = np.array([_log_density(part, y, index, wanted) for part in self.parts])
                with np.errstate(divide="ignore"):
                    logs += np.log(self.weights[:, index])
                density[index] = log_sum_exp(logs)
        return density


def _standard_deviation(part: ConditionalDensity) -> Array:
    """Standard deviations, (n, q): those of a Student t are √(ν/(ν − 2)) times its scale."""
    nu = part.degrees
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(np.isinf(nu), 1.0, np.where(nu > 2.0, np.sqrt(nu / (nu - 2.0)), np.inf))
        return np.where(part.marginal_scale > 0.0, part.marginal_scale * factor[:, None], 0.0)


def _log_density(part: ConditionalDensity, y: Array, index: Index, wanted: Index) -> Array:
    """log-densities of some targets of some rows, in one class."""
    away = (y - part.location)[np.ix_(index, wanted)]
    scale = part.scale[index[:, None, None], wanted[:, None], wanted]
    steps = _steps(scale)
    if steps is None:
        raise NoDensityError("y, or a part of it, is a linear combination of x: it has no density given x")
    lower, size = steps
    white = np.linalg.solve(lower, away[:, :, None])[:, :, 0] / part.reach[index, None]
    squared = np.einsum("nq,nq->n", white, white)
    peak = -np.log(size).sum(axis=1) - len(wanted) * np.log(part.reach[index])
    nu, q = part.degrees[index], float(len(wanted))
    if np.isinf(nu).all():
        return np.asarray(peak - 0.5 * (squared + q * LOG_2PI))
    constant = log_gamma_ratio(nu / 2.0, q / 2.0) - 0.5 * q * np.log(nu * np.pi)
    return np.asarray(peak + constant - 0.5 * (nu + q) * np.log1p(squared / nu))


def _steps(scale: Array) -> tuple[Array, Array] | None:
    """Cholesky factors of (n, q, q) and their diagonals; None if one is singular."""
    try:
        lower = np.asarray(np.linalg.cholesky(scale), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    size = np.einsum("nqq->nq", lower)
    own = np.einsum("nqq->nq", scale)
    return None if np.any(size**2 <= rank_tolerance(scale.shape[1]) * own) else (lower, size)
