"""Leave-one-out densities with full covariances shrunk toward the pooled one, or toward a scaled identity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.families.gaussian.leave_one_out.base import MAX_MEAN_DISTANCE, MAX_REMOVED, ROUNDING, LeaveOneOut, Removal
from likely.families.gaussian.mahalanobis import CrossDistances
from likely.numerics.arrays import all_same
from likely.numerics.linalg import whitener
from likely.numerics.special import LOG_2PI
from likely.typing import AnyArray, Array, Codes, Index

MAX_DISTINCT_WEIGHTS = 16  # of rows, up to which factors are computed for each
MAX_TRACE_CHANGE = 0.02  # relative change of the added variance by one row, up to which a power series is short


@dataclass(frozen=True, eq=False)
class LeaveOneOutShrunken(LeaveOneOut):
    """Leave-one-out with shrunken full covariances."""

    def fast_log_density(self, rows: AnyArray, codes: Codes, w: Array) -> tuple[Array, AnyArray]:
        density = self.initial_log_density(rows)
        if not len(self.active) or (self.pooling and len(_distinct_weights(w)) > MAX_DISTINCT_WEIGHTS):
            return density, np.zeros(len(codes), dtype=bool)
        by = self._mixed_with_pooled if self.intensity is None else self._mixed_with_identity
        return density, by(density, self.local(rows), codes, w)

    def class_log_density(self, x: Array, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        out = np.empty((len(members), len(r)))
        for i, k in enumerate(members.tolist()):
            delta = removal.inflation[:, None] * r if k == c else r + (self.mean[c] - self.mean[k])
            out[i] = self._row_by_row(r, delta, c, k, w, removal.factor, removal.emptied)
        return out

    # -- shrinkage toward the pooled covariance

    def _mixed_with_pooled(self, density: Array, x: Array, codes: Codes, w: Array) -> AnyArray:
        """Densities under covariances mixed with the pooled one; return for which rows they are accurate.

        Without the contribution of the held-out row itself, class k has two base covariances: for rows of its group and
        for others. Under either, the downdate follows from the distances to the mean of the row's class and of class k.
        """
        done, group, removal = np.ones(len(codes), dtype=bool), self.varying.group, self.removal(codes, w)
        kinds, all_classes = _distinct_weights(w), np.arange(len(self.mean))
        for weight in kinds:
            of_weight = np.arange(len(codes)) if len(kinds) == 1 else np.flatnonzero(w == weight)
            self._mixed_block(density, x, codes, removal, of_weight, all_classes, False, weight, done)
            for g in range(len(self.scale)):
                same_group = of_weight[group[codes[of_weight]] == g]
                self._mixed_block(
                    density, x, codes, removal, same_group, np.flatnonzero(group == g), True, weight, done
                )
        return done

    def _mixed_block(
        self,
        density: Array,
        x: Array,
        codes: Codes,
        removal: Removal,
        index: Index,
        members: Index,
        same: bool,
        weight: float,
        done: AnyArray,
    ) -> None:
        """The same for rows of one weight, under classes of their group (`same`) or of other groups."""
        every = len(index) == len(codes)
        found = self._cross_distances(members, same, weight) if len(index) else None
        if found is None:
            done[index] = False
            return
        crossed, log_det, coefficient = found
        mine, some = codes if every else codes[index], removal if every else removal.part(index)
        to, h = crossed(x if every else x[index], mine)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            part = coefficient[:, None] * some.factor
            twice = np.take(crossed.between_means, mine, axis=1)
            np.subtract(h, twice, out=twice)
            twice += to
            twice *= twice
            rest = 1.0 - part * h
            part /= rest
            part *= 0.25
            twice *= part
            to += twice
            if same:
                place = np.searchsorted(members, mine), np.arange(len(mine))
                to[place] = some.inflation**2 * h[place] / rest[place]
            fine = np.all(rest > 1.0 - MAX_REMOVED, axis=0) & ~some.emptied
            to += np.log(rest, out=rest)
            to += log_det[:, None]
        to *= -0.5
        to -= self.log_unit.sum()
        fine &= np.all(np.isfinite(to), axis=0)
        _assign(density, members, index, to)
        done[index[~fine]] = False

    def _cross_distances(self, members: Index, same: bool, weight: float) -> tuple[CrossDistances, Array, Array] | None:
        """Squared distances under the base covariances of some classes, for rows of a weight, log-determinants, and the
        coefficients of the downdates; None where one is singular, or too far from a mean.
        """
        key = ("bases", members.tobytes(), same, weight)
        if key not in self.cache:
            self.cache[key] = self._make_cross_distances(members, same, weight)
        return self.cache[key]

    def _make_cross_distances(
        self, members: Index, same: bool, weight: float
    ) -> tuple[CrossDistances, Array, Array] | None:
        factors, coefficients = [], []
        for k in members.tolist():
            base, coefficient = self._mixed_covariance(same, k, weight, lost=False)
            turn = whitener(base) if np.isfinite(coefficient) and np.isfinite(base).all() else None
            if turn is None:
                return None
            factors.append(turn)
            coefficients.append(coefficient)
        every = np.array(factors)
        log_det = -2.0 * np.log(np.abs(np.einsum("kdd->kd", every))).sum(axis=1) + every.shape[1] * LOG_2PI
        crossed = CrossDistances(every, self.mean, members)
        return (crossed, log_det, np.array(coefficients)) if crossed.accurate else None

    # -- shrinkage toward a scaled identity

    def _mixed_with_identity(self, density: Array, x: Array, codes: Codes, w: Array) -> AnyArray:
        """Densities under shrunken covariances, by their eigenvectors; return for which rows they are accurate.

        Without a row of class c the covariance is (1 − s)·a·(Λ + τ − e) − b·r rᵀ along the eigenvectors of a base Λ,
        with τ the variance that shrinkage adds and e the small contribution of the row to it, so that 1/(Λ + τ − e) is
        a short power series in e with coefficients that all rows coefficient. It is not accurate where e is large.
        """
        done = np.ones(len(codes), dtype=bool)
        removal, group = Removal.of(self.rows[codes], w), self.varying.group
        members = [np.array([k]) for k in range(len(self.mean))]
        if not self.pooling:
            members = [np.flatnonzero(group == g) for g in range(len(self.scale))]
        for some in members:
            same_group = group[codes] == group[some[0]]
            for same in (True, False) if self.pooling else (True,):
                which = same_group == same
                for weight, lost in self._weight_patterns(w[which], removal.emptied[which]):
                    index = np.flatnonzero(which & (w == weight) & (removal.emptied == lost) if self.pooling else which)
                    every = len(index) == len(x)
                    fine = self._identity_block(
                        density,
                        x if every else x[index],
                        codes[index],
                        w[index],
                        removal if every else removal.part(index),
                        some,
                        index,
                        self._axes(int(some[0]), same, weight, lost),
                    )
                    done[index[~fine]] = False
        return done

    def _weight_patterns(self, w: Array, lost: AnyArray) -> list[tuple[float, bool]]:
        """Distinct weights of rows, and whether their classes are empty without them: each has its own base."""
        if not len(w):
            return []
        if not self.pooling:
            return [(0.0, False)]
        return [(weight, bool(some)) for weight in _distinct_weights(w) for some in np.unique(lost[w == weight])]

    def _axes(self, k: int, same_group: bool, weight: float, lost: bool) -> tuple[Array, Array, float]:
        """Eigenvalues and eigenvectors of the base covariance of class k, and the coefficient of the downdate."""
        key = (k if self.pooling else -1 - int(self.varying.group[k]), same_group, weight, lost)
        if key not in self.cache:
            base, coefficient = (
                self._mixed_covariance(same_group, k, weight, lost)
                if self.pooling
                else (self.scale[self.varying.group[k]], 1.0)
            )
            good = bool(np.isfinite(coefficient) and np.isfinite(base).all())
            axes = np.linalg.eigh(base) if good else (np.zeros(len(base)), np.eye(len(base)))
            self.cache[key] = (*axes, coefficient)
        return self.cache[key]

    def _identity_block(
        self,
        density: Array,
        x: Array,
        codes: Codes,
        w: Array,
        removal: Removal,
        members: Index,
        index: Index,
        base: tuple[Array, Array, float],
    ) -> AnyArray:
        """Densities of some rows under classes with one base covariance; return where e is small.

        Under every power of the base, the distances of a row from two means follow from products with the means.
        """
        assert self.intensity is not None
        g, d, rows = int(self.varying.group[members[0]]), len(self.active), np.arange(len(codes))
        s = float(self.intensity[g])
        values, axes, coefficient = base
        variances = values + (s * values.sum() / (d * (1.0 - s)) if s < 1.0 else np.inf)
        means = (self.mean - self.mean.mean(axis=0)) @ axes
        usable = s < 1.0 and variances[0] > 1e-9 * variances[-1]
        if not (usable and bool(np.all(np.abs(means) < MAX_MEAN_DISTANCE * np.sqrt(np.maximum(variances, 0.0))))):
            return np.zeros(len(index), dtype=bool)
        part = removal.factor * coefficient
        e, square, along = self._projections(x, axes, means, variances, part * (s / (d * (1.0 - s))), codes)
        fine = e < MAX_TRACE_CHANGE * variances[0]
        own = along[codes, rows]
        h = square - 2.0 * own
        distance = along[members] if len(members) < len(means) else along
        cross = (square - own) - distance
        distance *= -2.0
        distance += square
        largest = float(e.max(initial=0.0, where=fine)) / variances[0]
        logs = _add_power_series(means, variances, members, codes, e, largest, distance, cross, h)
        rest = 1.0 - part * h
        fine &= rest > 1.0 - MAX_REMOVED
        rest = np.where(fine, rest, 1.0)
        cross *= cross
        cross *= part / rest
        distance += cross
        place = np.full(len(self.mean), -1)
        place[members] = np.arange(len(members))
        mine = place[codes]
        within = np.flatnonzero(mine >= 0)
        distance[mine[within], within] = (removal.inflation**2 * h / rest)[within]
        scale, proper = self._base_scale(w, removal, g, s)
        fine &= proper
        distance *= -0.5 / scale
        distance -= 0.5 * (logs + np.log(rest) + d * (np.log(scale) + LOG_2PI) + np.log(variances).sum())
        distance -= self.log_unit.sum()
        emptied = within[removal.emptied[within]]
        distance[mine[emptied], emptied] = -np.inf
        _assign(density, members, index, distance)
        return np.asarray(fine)

    def _base_scale(self, w: Array, removal: Removal, g: int, s: float) -> tuple[Array, AnyArray]:
        """(1 − s) over what the base covariance of group g is divided by, for each row, and where that is positive."""
        scale = np.full(len(w), 1.0 - s)
        if self.pooling:
            return scale, np.ones(len(w), dtype=bool)
        divisor = self.divisor(self.varying.group_weight()[g] - w, removal.emptied, g)
        scale /= np.where(divisor > 0.0, divisor, 1.0)
        return scale, divisor > 0.0

    def _projections(
        self, x: Array, axes: Array, means: Array, variances: Array, part: Array, codes: Codes
    ) -> tuple[Array, Array, Array]:
        """For rows z about the centre of the means, along axes: e, zᵀ(variances − e)⁻¹z, and (classes, n) the same of z
        and the means. e is `part` of a row's squared distance from the mean of its class.

        Rows are processed in chunks that fit the cache.
        """
        centre, lengths = self.mean.mean(axis=0), np.einsum("kd,kd->k", means, means)
        (n, d), turn = x.shape, np.vstack([axes.T, means @ axes.T])  # rows along the axes, and along the means
        e, square, along = np.zeros(n), np.empty(n), np.empty((len(means), n))
        few = max(2**18 // d, 256)
        for start in range(0, n, few):
            some = slice(start, start + few)
            about = x[some] - centre
            both = np.dot(turn, about.T)
            z, less, mine = both[:d], about.reshape(d, -1), codes[some]
            np.subtract(lengths[mine], 2.0 * both[d + mine, np.arange(len(mine))], out=e[some])
            e[some] += np.einsum("dn,dn->n", z, z)
            e[some] *= part[some]
            np.subtract(variances[:, None], np.minimum(e[some], MAX_TRACE_CHANGE * variances[0]), out=less)
            weighted = np.divide(z, less, out=less)
            np.einsum("dn,dn->n", z, weighted, out=square[some])
            np.matmul(means, weighted, out=along[:, some])
        return e, square, along

    def _mixed_covariance(self, same: bool, k: int, w: float, lost: bool) -> tuple[Array, float]:
        """The base covariance of class k without a row of its group (`same`) or of another one, and the coefficient of
        the downdate by that row.
        """
        weight = self.varying.group_weight()
        g = int(self.varying.group[k])
        own = float(self.divisor(np.array([weight[g] - w * same]), np.array([lost and same]), g)[0])
        total = float(self.varying.total_weight) - w
        if self.unbiased:
            total -= len(self.varying.classes) - lost
        with np.errstate(divide="ignore", invalid="ignore"):
            mine, pooled = np.divide(1.0 - self.pooling, own), np.divide(self.pooling, total)
            base = np.nan_to_num(mine * self.scale[g], nan=0.0) + np.nan_to_num(
                pooled * self.scale.sum(axis=0), nan=0.0
            )
        return base, float(mine * same + pooled)

    def _row_by_row(self, r: Array, delta: Array, c: int, k: int, w: Array, f: Array, lost: AnyArray) -> Array:
        """By the eigenvectors of the covariance, along which shrinkage adds the same to every variance."""
        out, d = np.zeros(len(r)), len(self.active)
        s = 0.0 if self.intensity is None else float(self.intensity[self.varying.group[k]])
        if not d:
            return out
        for weight, empty in {(float(a), bool(b)) for a, b in zip(w, lost, strict=True)}:
            index = np.flatnonzero((w == weight) & (lost == empty))
            same = bool(self.varying.group[k] == self.varying.group[c])
            base, coefficient = self._mixed_covariance(same, k, weight, empty)
            if not (np.isfinite(coefficient) and np.isfinite(base).all()):  # no row remains
                out[index] = -np.inf
                continue
            unit = np.ones(d)
            if s == 0.0:  # without shrinkage toward the identity, every column may have its own unit
                unit = np.sqrt(np.where(np.diagonal(base) > 0.0, np.diagonal(base), 1.0))
            values, axes = np.linalg.eigh(base / unit / unit[:, None])
            u, v = (r[index] / unit) @ axes, (delta[index] / unit) @ axes
            part = f[index] * coefficient
            trace = values.sum() - part * np.einsum("nd,nd->n", u, u)
            variance = (1.0 - s) * values + (s * trace / d)[:, None]
            part = (1.0 - s) * part
            flat = (variance <= ROUNDING * np.abs(values).max(initial=0.0)).any(axis=1)
            safe = np.where(flat[:, None], 1.0, variance)
            rest = 1.0 - part * (u * u / safe).sum(axis=1)
            singular = flat | (rest <= ROUNDING)
            rest = np.where(singular, 1.0, rest)
            distance = (v * v / safe).sum(axis=1) + part * (u * v / safe).sum(axis=1) ** 2 / rest
            log_det = np.log(safe).sum(axis=1) + np.log(rest) + 2.0 * np.log(unit).sum()
            density = -0.5 * (d * LOG_2PI + log_det + distance) - self.log_unit.sum()
            out[index] = np.where(singular, -np.inf, density)
        return out


def _distinct_weights(w: Array) -> list[float]:
    """The distinct weights of rows."""
    return [float(w[0])] if all_same(w) else np.unique(w).tolist()


def _assign(density: Array, members: Index, index: Index, found: Array) -> None:
    """Write densities of some rows, in order, under some classes."""
    if len(index) == density.shape[1]:
        density[members] = found
    else:
        density[members[:, None], index] = found


def _add_power_series(
    means: Array,
    variances: Array,
    members: Index,
    codes: Codes,
    e: Array,
    largest: float,
    distance: Array,
    cross: Array,
    h: Array,
) -> Array:
    """Add products of the means under 1/(variances − e) = Σ_p eᵖ⁻¹/spreadᵖ to the distances, in place.

    Returns Σ_d log(1 − e/spread_d), (n,), by its power series.
    """
    logs = np.zeros(len(codes))
    order = max(int(np.ceil(np.log(1e-13) / np.log(max(largest, 1e-13)))), 1)
    grow = np.ones(len(codes))
    for p in range(1, order + 1):  # of 1/(variances − e), between the means
        power = variances**-p
        gram = (means * power) @ means.T
        lengths = np.diagonal(gram)
        more = np.take(gram[members], codes, axis=1)
        if p > 1:
            more *= grow
        cross += more
        distance += np.multiply.outer(lengths[members], grow) if p > 1 else lengths[members, None]
        h += grow * lengths[codes]
        grow = grow * e
        logs -= grow * (power.sum() / p)
    return logs
