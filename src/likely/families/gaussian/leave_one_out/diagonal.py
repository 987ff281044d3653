"""Gaussian rows left out of covariances without correlations: one variance for all columns, or one for each."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likely.families.estimation import Estimation
from likely.families.gaussian.covariance import Identity, Spherical
from likely.families.gaussian.densities import GaussianConditionals
from likely.families.gaussian.leave_one_out.base import NEAR, NOTHING, SURE, LeaveOneOut, Removal
from likely.families.gaussian.mahalanobis import Distances
from likely.families.gaussian.student import StudentConditionals
from likely.numerics.arrays import all_finite, all_same, by_row, has_missing, scratch
from likely.numerics.special import LOG_2PI, log_gamma_ratio, sum_log, sum_log1p
from likely.statistics.counts import across
from likely.typing import AnyArray, Array, Codes, Index

SERIES = 3e-5  # sums of squares up to which a series of three terms is right to 1e-10


@dataclass(frozen=True, eq=False)
class LeaveOneOutDiagonal(LeaveOneOut):
    """Variances alone."""

    @property
    def light(self) -> bool:
        return self._one_length or (bool(self.alone.all()) and self._columns_apart)

    def quick(self, rows: AnyArray, codes: Codes, w: Array) -> tuple[Array, AnyArray]:
        if self._one_length and not has_missing(rows):
            found = self._by_lengths(rows, codes, w)
            if found is not None:
                return found, np.ones(len(codes), dtype=bool)
        density, done = self.start(rows), np.zeros(len(codes), dtype=bool)
        local = self.local(rows) if self._columns_apart else None
        if local is None or has_missing(local):
            return density, done
        if not self.one_group:
            done = self._by_class(density, local, codes, w)
        rest = np.flatnonzero(~done)
        if len(rest):
            part = density[:, rest]
            done[rest] = self._by_columns(part, local[rest], codes[rest], w[rest])
            density[:, rest] = part
        return density, done

    # -- one variance for all columns

    @property
    def _one_length(self) -> bool:
        """Whether a row's distance from a mean is all that counts, and no column has missing cells."""
        usual = isinstance(self.structure, Spherical | Identity) and not self.pooling and bool(len(self.active))
        return usual and self.rows.ndim == 1 and self.degrees.ndim == 1

    @cached_property
    def _lengths(self) -> Distances:
        """Squared distances under the variance that all columns have."""
        return Distances(self.fitted.covariance, self.fitted.mean, self.fitted.group)

    def _by_lengths(self, rows: AnyArray, codes: Codes, w: Array) -> Array | None:
        """Densities of rows under one variance for all columns: distances are stretched; None where digits are lost."""
        fitted, group, d = self.fitted, self.varying.group, len(self.active)
        assert isinstance(fitted, GaussianConditionals | StudentConditionals)
        place, own = group[codes], (codes, np.arange(len(codes)))
        shared = self.one_group  # every row then changes every class, and else maybe its own alone
        square = self._lengths.scaled(fitted.coordinates.to_local(rows)) if shared else np.zeros((0, 0))
        density = square if shared else fitted.log_density(rows)
        mine = square[own] if shared else fitted.squared(density[own], codes)
        if not (all_finite(density) and fitted.distances.reach < NEAR and (shared or self.alone.all())):
            return None
        removal = self.removal(codes, w)
        rest, divisor, wider = np.ones((3, len(codes)))
        if self.structure.estimated:
            together = 1 if self.estimation == Estimation.MLE else d
            divisor = self._divisors(codes, w, removal)
            before = np.array([self.before(g) for g in range(len(self.scale))])
            rest -= removal.factor * mine * (together / (d * before[place]))
            if not (np.all(rest > 1.0 - SURE) and np.all(divisor > 0.0)):
                return None
            wider = rest * before[place] / divisor  # what is left of the variance
        bayes = self.estimation == Estimation.BAYES
        peak = fitted.covariance.log_det[place] + d * np.log(wider) + 2.0 * self.log_unit.sum()
        student = bayes and self.structure.estimated
        if student:
            peak = 0.5 * peak + 0.5 * d * np.log(divisor * np.pi) - log_gamma_ratio(divisor / 2.0, d / 2.0)
        else:
            peak = 0.5 * (peak + d * LOG_2PI)

        def told(square: Array, stretch: Array | float) -> Array:
            """From squared distances (overwritten) to log-densities."""
            square /= stretch
            if student:
                square /= wider * divisor
                np.log1p(square, out=square)
                square *= -0.5 * (divisor + d)
            else:
                square *= -0.5 / wider
            square -= peak
            square -= 0.5 * d * np.log(stretch)
            return square

        mine *= removal.moved**2
        left = 1.0 + 1.0 / np.where(removal.left > 0.0, removal.left, 1.0) if bayes else 1.0
        found = np.where(removal.gone, -np.inf, told(mine, left))
        if shared:
            told(square, (1.0 + 1.0 / np.maximum(self.rows, NOTHING))[:, None] if bayes else 1.0)
        density[own] = found
        return density

    # -- independent columns

    @property
    def _columns_apart(self) -> bool:
        """Whether every column has a variance of its own, and none has missing cells."""
        usual = not isinstance(self.structure, Spherical | Identity) and self.intensity is None and not self.pooling
        return usual and bool(len(self.active)) and self.rows.ndim == 1 and self.degrees.ndim == 1

    def _by_class(self, density: Array, x: Array, codes: Codes, w: Array) -> AnyArray:
        """Densities of rows under their own classes, where each has variances of its own; return where that was done.

        Cells are gone through class by class. With q = f·r²/Ψ and t = q/(1 − q), −Σ log(1 − q) = Σ log(1 + t) is
        (Σq + 2·Σt)/3 − Σt²/6 but for Σt⁴/12: it is done where that is nothing.
        """
        (size, n), d, bayes = density.shape, len(self.active), self.estimation == Estimation.BAYES
        counts = np.bincount(codes, minlength=size)
        order = np.argsort(codes.astype(np.min_scalar_type(size)), kind="stable")  # short ones sort fastest
        alike, one = all_same(w), np.ones(d)
        each = np.arange(size) if alike else np.repeat(np.arange(size), counts)  # what rows of a class share, or a row
        mass = np.repeat(w[:1], size) if alike else w[order]
        removal, divisor = Removal.of(self.rows[each], mass), np.ones(len(each))
        f, stretch = removal.factor, np.ones(1)
        if bayes:
            stretch = 1.0 + 1.0 / np.where(removal.left > 0.0, removal.left, 1.0)
        share, sums, squares, tails = np.empty((4, n))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            wide = removal.moved**2 / f  # times t is the square of what is left of a distance, in units of Ψ′
            for c, (begin, end) in enumerate(itertools.pairwise([0, *np.cumsum(counts).tolist()])):
                if begin == end:
                    continue
                mine, g = slice(begin, end), int(self.varying.group[c])
                some = slice(c, c + 1) if alike else mine
                divisor[some] = self.divisor(self.fewer(g, mass[some]), removal.gone[some], g)
                t = np.take(x, order[mine], axis=0, out=scratch.array("own", end - begin, d), mode="clip")
                by_row(np.subtract, t, self.mean[c], t)
                t *= t
                if not alike:
                    t *= (f[some] / f[begin])[:, None]
                scale = self.scale[g] / f[some.start]
                if bayes:
                    np.dot(t, 1.0 / scale, out=share[mine])
                less = by_row(np.subtract, t, scale, scratch.array("less", end - begin, d))
                t /= less  # −t: less is q − 1, times the scale
                np.dot(t, -one, out=sums[mine])
                np.einsum("nd,nd->n", t, t, out=squares[mine])
                if bayes:
                    turned = scratch.array("turned", d, end - begin)
                    tails[mine] = sum_log1p(np.multiply(t.T, -wide[some] / stretch[some], out=turned))
            place = order + np.repeat(np.arange(0, size * n, n), counts)  # of their own class's densities
            peak = 0.5 * (d * np.log(divisor) - np.log(self.scale).sum(axis=1)[self.varying.group[each]])
            peak -= self.log_unit.sum()

            def rows(values: AnyArray) -> AnyArray:
                return np.repeat(values, counts) if alike else values

            if bayes:
                peak += d * (log_gamma_ratio(divisor / 2.0, 0.5) - 0.5 * np.log(divisor * np.pi * stretch))
                found = rows(-0.5 * (divisor + 1.0)) * tails
            else:
                peak -= 0.5 * d * LOG_2PI
                found = rows(-0.5 * divisor * wide) * sums
            if isinstance(self.fitted, GaussianConditionals):  # densities tell
                factor = f / np.array([self.before(g) for g in range(len(self.scale))])[self.varying.group[each]]
                share = rows(factor) * self.fitted.squared(np.take(density, place), np.repeat(np.arange(size), counts))
            found += (share + 2.0 * sums) / 6.0 - squares / 12.0
            found += rows(peak)
        done = (share < SURE) & (squares < SERIES) & np.isfinite(found)
        if not (np.all(divisor > 0.0) and self.alone.all()):
            done &= rows(divisor > 0.0) & np.repeat(self.alone, counts)
        if not done.all():
            place, found = place[done], found[done]
        np.put(density, place, found)
        again = np.empty(n, dtype=bool)
        again[order] = done
        return again

    def _divisors(self, codes: Codes, w: Array, removal: Removal) -> Array:
        """What the scale of each row's group is divided by without it, (n,), where no cell is missing."""
        place = self.varying.group[codes]
        if all_same(w) and not self.unbiased:
            left = [self.divisor(self.fewer(g, w[:1]), np.zeros(1, dtype=bool), g) for g in range(len(self.scale))]
            return np.concatenate(left)[place]
        found = np.empty(len(codes))
        for g in np.flatnonzero(np.bincount(place)).tolist():
            here = np.flatnonzero(place == g)
            found[here] = self.divisor(self.fewer(g, w[here]), removal.gone[here], g)
        return found

    def _by_columns(self, density: Array, x: Array, codes: Codes, w: Array) -> AnyArray:
        """Densities of rows under the classes whose variances they change, all columns at once; return where done.

        Σ log(1 − f·r²/Ψ) and Σ log(1 + t²/ν) are logarithms of products.
        """
        group = self.varying.group
        place = group[codes]
        removal = self.removal(codes, w)
        divisor = self._divisors(codes, w, removal)
        turned = np.ascontiguousarray(x.T)
        scale = self.scale.T if self.one_group else np.take(self.scale.T, place, axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            r = np.take(self.mean.T, codes, axis=1)
            np.subtract(turned, r, out=r)
            r /= np.sqrt(scale)
            r *= r
            lost = r * -removal.factor
            share = lost.min(axis=0)
            rest = lost + 1.0
            logs = sum_log(rest) + np.log(self.scale).sum(axis=1)[place]
            logs -= len(turned) * np.log(divisor)
            r /= rest
        done = np.asarray((share > -SURE) & (divisor > 0.0) & np.isfinite(logs))
        peak = -0.5 * logs - self.log_unit.sum()
        bayes = self.estimation == Estimation.BAYES
        if bayes:
            peak += len(turned) * (log_gamma_ratio(divisor / 2.0, 0.5) - 0.5 * np.log(divisor * np.pi))
        else:
            peak -= 0.5 * len(turned) * LOG_2PI

        def told(square: Array, stretch: Array | float, some: Index | slice) -> Array:
            """From δ²/Ψ′ of some rows, (d, n), to their log-densities."""
            if not bayes:
                return np.asarray(peak[some] - 0.5 * divisor[some] * square.sum(axis=0))
            square /= stretch
            with np.errstate(over="ignore", invalid="ignore"):
                tail = sum_log1p(square)
            return np.asarray(peak[some] - 0.5 * (divisor[some] + 1.0) * tail - 0.5 * len(square) * np.log(stretch))

        if np.bincount(group).max() > 1:
            inverse = np.sqrt(1.0 / (rest * scale))
            for k in range(len(self.mean)):
                others: Any = slice(None) if self.one_group else np.flatnonzero(place == group[k])
                with np.errstate(over="ignore", invalid="ignore"):
                    square = turned[:, others] - self.mean[k][:, None]
                    square *= inverse[:, others]
                    square *= square
                density[k, others] = told(square, 1.0 + 1.0 / max(self.rows[k], NOTHING), others)
            done &= np.all(np.isfinite(density) | (place != group[:, None]), axis=0)
        stretch = 1.0 + 1.0 / np.where(removal.left > 0.0, removal.left, 1.0)
        own = told(r * removal.moved**2, stretch, slice(None))
        done &= np.isfinite(own)
        mine = np.flatnonzero(done)
        density[codes[mine], mine] = np.where(removal.gone, -np.inf, own)[mine]
        return done

    # -- one by one

    def slow(self, x: Array, r: Array, c: int, w: Array, members: Index, removal: Removal) -> Array:
        f, moved, left, gone = across(removal.factor), across(removal.moved), removal.left, removal.gone
        missing = np.isnan(x)
        holes, mass = bool(missing.any()), self.mass(missing, w)
        variance, degrees = self._variances(r, c, mass, f, gone)
        out = np.empty((len(members), len(x)))
        for i, k in enumerate(members.tolist()):
            if self.pooling:
                variance, degrees = self._pooled(r, c, k, mass, f, gone)
            delta = moved * r if k == c else x - self.mean[k]
            wide = variance * self._column_stretch(k, c, left) if self.estimation == Estimation.BAYES else variance
            good = bool(np.all(wide > 0.0))
            bad = np.zeros(wide.shape, dtype=bool) if good else ~(wide > 0.0)
            wide = wide if good else np.where(bad, 1.0, wide)
            squares = delta * delta / wide
            if not holes and (self.estimation != Estimation.BAYES or isinstance(self.structure, Identity)):
                peak = 0.5 * LOG_2PI * x.shape[1] + self.log_unit.sum()
                out[i] = -0.5 * (squares.sum(axis=1) + np.log(wide).sum(axis=1)) - peak
                if not good:
                    out[i][bad.any(axis=1)] = -np.inf
                continue
            squares = np.where(missing, 0.0, squares) if holes else squares
            logs = np.where(missing, 0.0, 0.5 * np.log(wide) + self.log_unit)
            if self.estimation != Estimation.BAYES or isinstance(self.structure, Identity):
                terms = np.where(missing, 0.0, -0.5 * (LOG_2PI + squares)) - logs
                out[i] = terms.sum(axis=1)
            elif isinstance(self.structure, Spherical):
                count = (~missing).sum(axis=1)
                nu = degrees[:, 0]
                peak = log_gamma_ratio(nu / 2.0, count / 2.0) - 0.5 * count * np.log(nu * np.pi)
                out[i] = peak - logs.sum(axis=1) - 0.5 * (nu + count) * np.log1p(squares.sum(axis=1) / nu)
            else:
                peak = log_gamma_ratio(degrees / 2.0, 0.5) - 0.5 * np.log(degrees * np.pi)
                terms = peak - 0.5 * (degrees + 1.0) * np.log1p(squares / degrees)
                out[i] = (np.where(missing, 0.0, terms) - logs).sum(axis=1)
            out[i][(bad & ~missing).any(axis=1)] = -np.inf
        return out

    def _column_stretch(self, k: int, c: int, left: Array) -> Array:
        stretch = self.stretch(k, c, left)
        if k == c:
            return across(stretch)
        return stretch if stretch.ndim else stretch[None]

    def _variances(self, r: Array, c: int, mass: Array, f: Array, gone: AnyArray) -> tuple[Array, Array]:
        """Variances (n, d) of the group of class c, and what its scale is divided by, (n, 1) or (n, d)."""
        g = int(self.varying.group[c])
        if isinstance(self.structure, Identity):
            unit = self.fitted.coordinates.unit[self.active]
            return np.broadcast_to(1.0 / unit**2, r.shape), np.ones((len(r), 1))
        together = 1 if self.estimation == Estimation.MLE else self.structure.columns_together(len(self.active))
        scale = self.scale[g] - together * self.structure.shape(f * r * r)
        before = self.scale[g]
        least = np.zeros(()) if self.estimation == Estimation.MLE else NOTHING * before
        scale = np.where(scale <= NOTHING * before, least, scale)
        spent = mass if self.estimation == Estimation.MLE else self.structure.degrees_of(mass, len(self.active))
        degrees = self.degrees[g] - spent
        divisor = across(self.divisor(degrees, gone, g))
        variance = scale / np.where(divisor > 0.0, divisor, np.nan)
        if self.intensity is not None:
            s = self.intensity[g]
            variance = (1.0 - s) * variance + s * variance.mean(axis=1, keepdims=True)
        return variance, divisor

    def _pooled(self, r: Array, c: int, k: int, mass: Array, f: Array, gone: AnyArray) -> tuple[Array, Array]:
        """The same of class k, where covariances are mixed with the pooled one."""
        group = self.varying.group
        g, same = int(group[k]), bool(group[k] == group[c])
        change = self.structure.shape(f * r * r)
        own = across(self.divisor(self.degrees[g] - mass * same, gone & same, g))
        total = self.varying.total_weight - mass
        if self.unbiased:
            total = total - (len(self.varying.classes) - gone)
        total = across(self.structure.divisor(total) if total.ndim == 2 else total)
        mixed = (1.0 - self.pooling) * (self.scale[g] - change * same) / own
        mixed = mixed + self.pooling * (self.structure.shape(self.scale.sum(axis=0)[None])[0] - change) / total
        s = 0.0 if self.intensity is None else float(self.intensity[g])
        return (1.0 - s) * mixed + s * mixed.mean(axis=1, keepdims=True), own
