"""Gaussian rows left out of full covariances that are mixed with the pooled one, or with a scaled identity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.families.gaussian.leave_one_out.base import NEAR, NOTHING, SURE, LeaveOneOut, Removal
from likely.families.gaussian.mahalanobis import CrossDistances
from likely.numerics.arrays import all_same
from likely.numerics.linalg import whitener
from likely.numerics.special import LOG_2PI
from likely.typing import AnyArray, Array, Codes, Index

FEW_KINDS = 16  # weights of rows, up to which bases of their own are kept
SMALL = 0.02  # a row's part in the spread that shrinkage adds, up to which a power series is short


@dataclass(frozen=True, eq=False)
class LeaveOneOutShrunken(LeaveOneOut):
    """Full covariances with shrinkage."""

    def quick(self, rows: AnyArray, codes: Codes, w: Array) -> tuple[Array, AnyArray]:
        density = self.start(rows)
        if not len(self.active) or (self.pooling and len(_weights(w)) > FEW_KINDS):
            return density, np.zeros(len(codes), dtype=bool)
        by = self._by_bases if self.intensity is None else self._by_axes
        return density, by(density, self.local(rows), codes, w)

    def slow(self, x: Array, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        out = np.empty((len(members), len(r)))
        for i, k in enumerate(members.tolist()):
            delta = removal.moved[:, None] * r if k == c else r + (self.mean[c] - self.mean[k])
            out[i] = self._shrunk(r, delta, c, k, w, removal.factor, removal.gone)
        return out

    # -- no sphere

    def _by_bases(self, density: Array, x: Array, codes: Codes, w: Array) -> AnyArray:
        """Densities under covariances mixed with the pooled one, by squared distances; return where that was done.

        Under a class, rows of its own group and others leave two different bases behind, but for what a row itself has
        in them. In either the distances of a row from its own mean and from that of the class tell the rest.
        """
        done, group, removal = np.ones(len(codes), dtype=bool), self.varying.group, self.removal(codes, w)
        kinds, everyone = _weights(w), np.arange(len(self.mean))
        for weight in kinds:
            heavy = np.arange(len(codes)) if len(kinds) == 1 else np.flatnonzero(w == weight)
            self._in_bases(density, x, codes, removal, heavy, everyone, False, weight, done)
            for g in range(len(self.scale)):
                alike = heavy[group[codes[heavy]] == g]
                self._in_bases(density, x, codes, removal, alike, np.flatnonzero(group == g), True, weight, done)
        return done

    def _in_bases(
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
        """The same of some rows, all of one weight, under classes whose group is that of the rows, or is not."""
        every = len(index) == len(codes)
        found = self._bases(members, same, weight) if len(index) else None
        if found is None:
            done[index] = False
            return
        crossed, log_det, share = found
        mine, some = codes if every else codes[index], removal if every else removal.part(index)
        to, h = crossed(x if every else x[index], mine)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            part = share[:, None] * some.factor
            twice = np.take(crossed.apart, mine, axis=1)
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
                to[place] = some.moved**2 * h[place] / rest[place]
            fine = np.all(rest > 1.0 - SURE, axis=0) & ~some.gone
            to += np.log(rest, out=rest)
            to += log_det[:, None]
        to *= -0.5
        to -= self.log_unit.sum()
        fine &= np.all(np.isfinite(to), axis=0)
        _put(density, members, index, to)
        done[index[~fine]] = False

    def _bases(self, members: Index, same: bool, weight: float) -> tuple[CrossDistances, Array, Array] | None:
        """Squared distances under what rows of a weight leave of the covariances of some classes, log-determinants,
        and the shares of a row in them; None where one has not full rank, or lies too far from a mean.
        """
        key = ("bases", members.tobytes(), same, weight)
        if key not in self.known:
            self.known[key] = self._found_bases(members, same, weight)
        return self.known[key]

    def _found_bases(self, members: Index, same: bool, weight: float) -> tuple[CrossDistances, Array, Array] | None:
        factors, shares = [], []
        for k in members.tolist():
            base, share = self._mixture(same, k, weight, lost=False)
            turn = whitener(base) if np.isfinite(share) and np.isfinite(base).all() else None
            if turn is None:
                return None
            factors.append(turn)
            shares.append(share)
        every = np.array(factors)
        log_det = -2.0 * np.log(np.abs(np.einsum("kdd->kd", every))).sum(axis=1) + every.shape[1] * LOG_2PI
        crossed = CrossDistances(every, self.mean, members)
        return (crossed, log_det, np.array(shares)) if crossed.harmless else None

    # -- spheres

    def _by_axes(self, density: Array, x: Array, codes: Codes, w: Array) -> AnyArray:
        """Densities under shrunken covariances, by their axes; return where that was done.

        A row of class c leaves behind (1 − s)·a·(Λ + τ − e) − b·r rᵀ along the axes of a base Λ, with τ the spread that
        shrinkage adds and e the row's small part in that, so that 1/(Λ + τ − e) is a short power series in e with
        coefficients that all rows share. Where e is not small, or hardly anything is left, rows are counted one by one.
        """
        done = np.ones(len(codes), dtype=bool)
        removal, group = Removal.of(self.rows[codes], w), self.varying.group
        members = [np.array([k]) for k in range(len(self.mean))]
        if not self.pooling:
            members = [np.flatnonzero(group == g) for g in range(len(self.scale))]
        for some in members:
            alike = group[codes] == group[some[0]]
            for same in (True, False) if self.pooling else (True,):
                which = alike == same
                for weight, lost in self._kinds(w[which], removal.gone[which]):
                    index = np.flatnonzero(which & (w == weight) & (removal.gone == lost) if self.pooling else which)
                    every = len(index) == len(x)
                    fine = self._along(
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

    def _kinds(self, w: Array, lost: AnyArray) -> list[tuple[float, bool]]:
        """Weights of rows, and whether their classes are empty without them, where each has a base of its own."""
        if not len(w):
            return []
        if not self.pooling:
            return [(0.0, False)]
        return [(weight, bool(some)) for weight in _weights(w) for some in np.unique(lost[w == weight])]

    def _axes(self, k: int, alike: bool, weight: float, lost: bool) -> tuple[Array, Array, float]:
        """Values and axes of the base of class k, for rows of its own group or not, and the share of a row in it."""
        key = (k if self.pooling else -1 - int(self.varying.group[k]), alike, weight, lost)
        if key not in self.known:
            base, share = (
                self._mixture(alike, k, weight, lost) if self.pooling else (self.scale[self.varying.group[k]], 1.0)
            )
            good = bool(np.isfinite(share) and np.isfinite(base).all())
            axes = np.linalg.eigh(base) if good else (np.zeros(len(base)), np.eye(len(base)))
            self.known[key] = (*axes, share)
        return self.known[key]

    def _along(
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
        """Densities of some rows under classes that have a base in common; return where e is small.

        Under every power of the base the distances of a row from two means follow from products with the means:
        nothing is done for each pair of classes.
        """
        assert self.intensity is not None
        g, d, rows = int(self.varying.group[members[0]]), len(self.active), np.arange(len(codes))
        s = float(self.intensity[g])
        values, axes, share = base
        spread = values + (s * values.sum() / (d * (1.0 - s)) if s < 1.0 else np.inf)
        means = (self.mean - self.mean.mean(axis=0)) @ axes
        usable = s < 1.0 and spread[0] > 1e-9 * spread[-1]
        if not (usable and bool(np.all(np.abs(means) < NEAR * np.sqrt(np.maximum(spread, 0.0))))):
            return np.zeros(len(index), dtype=bool)
        part = removal.factor * share
        e, square, along = self._turned(x, axes, means, spread, part * (s / (d * (1.0 - s))), codes)
        fine = e < SMALL * spread[0]
        own, logs = along[codes, rows], np.zeros(len(codes))
        h = square - 2.0 * own
        distance = along[members] if len(members) < len(means) else along
        cross = (square - own) - distance
        distance *= -2.0
        distance += square
        largest = float(e.max(initial=0.0, where=fine)) / spread[0]
        order = max(int(np.ceil(np.log(1e-13) / np.log(max(largest, 1e-13)))), 1)
        grow = np.ones(len(codes))
        for p in range(1, order + 1):  # of 1/(spread − e), between the means
            power = spread**-p
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
        rest = 1.0 - part * h
        fine &= rest > 1.0 - SURE
        rest = np.where(fine, rest, 1.0)
        cross *= cross
        cross *= part / rest
        distance += cross
        place = np.full(len(self.mean), -1)
        place[members] = np.arange(len(members))
        mine = place[codes]
        within = np.flatnonzero(mine >= 0)
        distance[mine[within], within] = (removal.moved**2 * h / rest)[within]
        scale = np.full(len(codes), 1.0 - s)  # over what the base is divided by
        if not self.pooling:
            divisor = self.divisor(self.varying.group_weight()[g] - w, removal.gone, g)
            fine &= divisor > 0.0
            scale /= np.where(divisor > 0.0, divisor, 1.0)
        distance *= -0.5 / scale
        distance -= 0.5 * (logs + np.log(rest) + d * (np.log(scale) + LOG_2PI) + np.log(spread).sum())
        distance -= self.log_unit.sum()
        gone = within[removal.gone[within]]
        distance[mine[gone], gone] = -np.inf
        _put(density, members, index, distance)
        return np.asarray(fine)

    def _turned(
        self, x: Array, axes: Array, means: Array, spread: Array, part: Array, codes: Codes
    ) -> tuple[Array, Array, Array]:
        """For rows z about the centre of the means, along axes: e, zᵀ(spread − e)⁻¹z, and (classes, n) the same of z
        and the means. e is `part` of a row's squared distance from the mean of its class.

        What is as wide as the rows is cut to the cache.
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
            np.subtract(spread[:, None], np.minimum(e[some], SMALL * spread[0]), out=less)
            weighted = np.divide(z, less, out=less)
            np.einsum("dn,dn->n", z, weighted, out=square[some])
            np.matmul(means, weighted, out=along[:, some])
        return e, square, along

    # -- both

    def _mixture(self, same: bool, k: int, w: float, lost: bool) -> tuple[Array, float]:
        """The covariance of class k without a row of its group, or of another one, but for what the row has in it;
        and that one's share.
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

    def _shrunk(self, r: Array, delta: Array, c: int, k: int, w: Array, f: Array, lost: AnyArray) -> Array:
        """By the axes of the covariance, along which shrinkage adds the same to every variance."""
        out, d = np.zeros(len(r)), len(self.active)
        s = 0.0 if self.intensity is None else float(self.intensity[self.varying.group[k]])
        if not d:
            return out
        for weight, empty in {(float(a), bool(b)) for a, b in zip(w, lost, strict=True)}:
            index = np.flatnonzero((w == weight) & (lost == empty))
            same = bool(self.varying.group[k] == self.varying.group[c])
            base, share = self._mixture(same, k, weight, empty)
            if not (np.isfinite(share) and np.isfinite(base).all()):  # nobody is left to learn from
                out[index] = -np.inf
                continue
            unit = np.ones(d)
            if s == 0.0:  # no sphere is added, so that every column may have a unit of its own
                unit = np.sqrt(np.where(np.diagonal(base) > 0.0, np.diagonal(base), 1.0))
            values, axes = np.linalg.eigh(base / unit / unit[:, None])
            u, v = (r[index] / unit) @ axes, (delta[index] / unit) @ axes
            part = f[index] * share
            trace = values.sum() - part * np.einsum("nd,nd->n", u, u)
            variance = (1.0 - s) * values + (s * trace / d)[:, None]
            part = (1.0 - s) * part
            flat = (variance <= NOTHING * np.abs(values).max(initial=0.0)).any(axis=1)
            safe = np.where(flat[:, None], 1.0, variance)
            rest = 1.0 - part * (u * u / safe).sum(axis=1)
            singular = flat | (rest <= NOTHING)
            rest = np.where(singular, 1.0, rest)
            distance = (v * v / safe).sum(axis=1) + part * (u * v / safe).sum(axis=1) ** 2 / rest
            log_det = np.log(safe).sum(axis=1) + np.log(rest) + 2.0 * np.log(unit).sum()
            density = -0.5 * (d * LOG_2PI + log_det + distance) - self.log_unit.sum()
            out[index] = np.where(singular, -np.inf, density)
        return out


def _weights(w: Array) -> list[float]:
    """The different weights of rows."""
    return [float(w[0])] if all_same(w) else np.unique(w).tolist()


def _put(density: Array, members: Index, index: Index, found: Array) -> None:
    """Write densities of some rows, in order, under some classes."""
    if len(index) == density.shape[1]:
        density[members] = found
    else:
        density[members[:, None], index] = found
