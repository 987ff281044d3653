"""Rows that are kept as they are: those with rare missingness patterns, as additive statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from likely.errors import InputError, listed
from likely.numerics.coordinates import Coordinates, safe_unit
from likely.numerics.missingness import rows_by_pattern
from likely.statistics.counts import across, are_counts
from likely.statistics.moments import Moments, Sharing
from likely.statistics.rounding import remaining_counts
from likely.statistics.sums import class_sums
from likely.typing import AnyArray, Array, Index


@dataclass(frozen=True, slots=True, eq=False)
class KeptRows:
    """Rows with missing values (NaN), each with its class, how often it occurs, and its weight."""

    values: Array  # (n, d)
    codes: Index  # of the classes, (n,)
    rows: npt.NDArray[np.int64]  # (n,)
    weight: Array  # (n,)

    @classmethod
    def empty(cls, dimension: int) -> KeptRows:
        return cls(np.zeros((0, dimension)), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64), np.zeros(0))

    def distinct(self) -> KeptRows:
        """The same rows in a fixed order, with equal rows of a class counted together."""
        if not len(self):
            return self
        values = np.where(np.isnan(self.values), np.nan, self.values + 0.0)  # one NaN and one zero: equal bytes
        keyed = np.ascontiguousarray(np.column_stack([values, self.codes]))
        keys = keyed.view(np.dtype((np.void, keyed.itemsize * keyed.shape[1]))).ravel()
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        count = np.bincount(place, self.rows, minlength=len(first)).astype(np.int64)
        mass = np.bincount(place, self.weight, minlength=len(first)).astype(np.float64)
        return KeptRows(values[first], self.codes[first], count, mass)

    def __len__(self) -> int:
        return len(self.values)

    def sound(self, classes: int, dimension: int) -> bool:
        """Whether these can be rows of so many classes and columns."""
        n = len(self.values)
        return (
            self.values.shape == (n, dimension)
            and self.values.dtype == np.float64
            and not np.isinf(self.values).any()
            and are_counts(self.rows, self.weight, (n,))
            and bool(np.all((self.rows > 0) & (self.weight > 0.0)))
            and self.codes.shape == (n,)
            and self.codes.dtype.kind == "i"
            and bool(np.all((self.codes >= 0) & (self.codes < classes)))
            and all(_is_incomplete(missing) for missing in np.isnan(self.values))
        )

    def part(self, index: AnyArray) -> KeptRows:
        """Some of the rows."""
        return KeptRows(self.values[index], self.codes[index], self.rows[index], self.weight[index])

    def recoded(self, codes: AnyArray) -> KeptRows:
        """The same rows with other codes: codes[k] for class k."""
        return KeptRows(self.values, np.asarray(codes, dtype=np.intp)[self.codes], self.rows, self.weight)

    def take(self, columns: AnyArray) -> KeptRows:
        """The same rows with some of the columns, in this order."""
        return KeptRows(self.values[:, columns], self.codes, self.rows, self.weight)

    def __add__(self, other: KeptRows) -> KeptRows:
        if not len(other):
            return self
        return KeptRows(
            np.concatenate([self.values, other.values]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.weight, other.weight]),
        )

    def removed(self, other: KeptRows, classes: AnyArray) -> KeptRows:
        """These rows without others; an error where they are not among these."""
        if not len(other):
            return self
        mine, other = self.distinct(), other.distinct()
        places = {key: i for i, key in enumerate(mine._keys())}
        found = [places.get(key, -1) for key in other._keys()]
        unknown = np.array(found) < 0
        if unknown.any():
            raise InputError(
                f"The rows to remove are not among the training rows: {int(unknown.sum())} rows of class "
                f"{listed(np.unique(classes[other.codes[unknown]]))} with missing values are not. Pass rows as they "
                "were in the fit."
            )
        rows, weight = np.zeros_like(mine.rows), np.zeros_like(mine.weight)
        rows[found], weight[found] = other.rows, other.weight
        left, mass = remaining_counts(classes[mine.codes], mine.rows, rows, mine.weight, weight)
        return KeptRows(mine.values, mine.codes, left, mass).part(np.flatnonzero(left))

    def _keys(self) -> list[bytes]:
        return [row.tobytes() + bytes(str(code), "ascii") for row, code in zip(self.values, self.codes, strict=True)]

    def patterns(self) -> Iterator[tuple[npt.NDArray[np.bool_], Index]]:
        """Missingness patterns, the most frequent first, and the places of their rows."""
        missing = np.isnan(self.values)
        groups = rows_by_pattern(missing)
        for p in np.argsort([-self.rows[places].sum() for places in groups], kind="stable").tolist():
            yield missing[groups[p][0]], groups[p]

    def moments(self, classes: AnyArray, sharing: Sharing, *, full: bool) -> Moments:
        """Moments of the rows; full scatters need complete rows, others are of the observed values of each column."""
        size, d = len(classes), self.values.shape[1]
        blank = Moments.empty(classes, d, sharing, full=full)
        blank = blank if full else blank.by_column()
        if not len(self):
            return blank
        observed = ~np.isnan(self.values)
        unit, reference = self._units(size)
        centred = np.where(observed, self.values / unit - reference[self.codes], 0.0)
        cells = observed[:, 0] if full else observed
        rows, weight = (
            class_sums(self.codes, of.astype(np.float64), size, cells.reshape(len(cells), -1).astype(np.float64))
            for of in (self.rows, self.weight)
        )
        rows, weight = (rows[:, 0], weight[:, 0]) if full else (rows, weight)
        step = class_sums(self.codes, self.weight, size, centred) / across(np.where(rows > 0, weight, 1.0))
        centred = np.where(observed, centred - step[self.codes], 0.0)
        scatter = blank.scatter
        if full:
            for g in np.unique(blank.group[self.codes]).tolist():
                mine = blank.group[self.codes] == g
                scatter[g] = centred[mine].T @ (self.weight[mine][:, None] * centred[mine])
        else:
            np.add.at(scatter, blank.group[self.codes], self.weight[:, None] * centred * centred)
        mean = np.where(across(rows > 0), reference + step, 0.0)
        coordinates = Coordinates.make(np.zeros(d), unit)
        return Moments(classes, rows.astype(np.int64), weight, mean, scatter, sharing, coordinates)

    def _units(self, size: int) -> tuple[Array, Array]:
        """Units in which fourth powers neither overflow nor underflow; and a value of each class and column, in them.

        Differences from that value are exactly 0 where a column is constant.
        """
        reference = np.zeros((size, self.values.shape[1]))
        for k in np.unique(self.codes).tolist():
            mine = self.values[self.codes == k]
            first = mine[np.argmax(~np.isnan(mine), axis=0), np.arange(mine.shape[1])]
            reference[k] = np.where(np.isnan(first), 0.0, first)
        unit = safe_unit(np.fmax.reduce(np.abs(self.values - reference[self.codes]), axis=0, initial=0.0))
        return unit, reference / unit


def _is_incomplete(missing: AnyArray) -> bool:
    """Whether some values are missing and some are not."""
    return bool(missing.any() and not missing.all())
