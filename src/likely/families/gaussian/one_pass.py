"""Sums of independent columns and of their squares, for all classes by one product."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from likely.numerics.arrays import float_rows, has_missing
from likely.numerics.block_sizes import CACHED
from likely.numerics.coordinates import Coordinates
from likely.statistics.counts import across
from likely.statistics.moments import Moments
from likely.statistics.sums import class_adder, class_sums
from likely.typing import AnyArray, Array, Codes, Index

# Sums of squares within these bounds have neither overflowed nor underflowed, and their squares would not.
LEAST_SQUARE, LARGEST_SQUARE = 2.0**-440, 2.0**440
MAX_ONE_PASS_RATIO = 1e3  # squares about the reference relative to squares about the mean: costs three digits at most


class Rows(NamedTuple):
    """Rows (n, d) with the codes of their classes, their weights, and which of their values are missing."""

    values: AnyArray
    codes: Codes
    weights: Array | None  # None: all 1
    missing: npt.NDArray[np.bool_] | None = None  # None: no value is missing, or not known yet

    def take(self, index: Index) -> Rows:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[index]
        missing = None if self.missing is None else self.missing[index]
        return Rows(self.values[index], self.codes[index], weights, missing)

    def counts(self, classes: int) -> tuple[AnyArray, AnyArray, npt.NDArray[np.bool_]]:
        """Rows and weights of each class, for each column where values are missing; and which classes have rows."""
        rows = np.bincount(self.codes, minlength=classes)
        if self.missing is None:
            weighted = self.weights is not None
            weight = np.bincount(self.codes, self.weights, minlength=classes) if weighted else rows.astype(np.float64)
            return rows, weight, rows > 0
        observed = (~self.missing).astype(np.float64)
        weight = class_sums(self.codes, self.weights, classes, observed)  # no difference, which would lose tiny weights
        return class_sums(self.codes, None, classes, observed).astype(np.int64), weight, rows > 0


class OnePassMoments:
    """Sums of independent columns and of their squares, for all classes by one product, about one reference.

    The reference is 0, or the first row where 0 is far, so that a constant column stays exactly constant. A block is
    added only where the variance of every class is large enough, relative to its distance from the reference, to lose
    no digits.
    """

    def __init__(self, classes: int, dimension: int) -> None:
        self.rows = np.zeros((classes, dimension), dtype=np.int64)
        self.weight = np.zeros((classes, dimension))
        self.sums, self.squares = np.zeros((classes, dimension)), np.zeros((classes, dimension))
        self.reference = np.zeros(dimension)
        self.with_missing = False

    def add(self, rows: Rows) -> bool:
        """Add the rows of a block; False, with nothing added, where that would lose digits."""
        first = np.where(np.isfinite(rows.values[0]), np.asarray(rows.values[0], dtype=np.float64), 0.0)
        if len(rows.codes) == 1 and not self.rows.any():  # about itself, the first row has no variance to lose
            self.reference = first
        if self._add(rows):
            return True
        if not self.with_missing and has_missing(rows.values):
            self.with_missing = True
            if self._add(rows):
                return True
        if self.rows.any() or self.reference.any():
            return False
        self.reference = first
        return self._add(rows)

    def _add(self, rows: Rows) -> bool:
        values, codes, weights, _ = rows
        size = len(self.weight)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            centred, missing = self._centred(values)
            sums, total = _sums_and_squares(codes, weights, size, centred)
        if not (np.all(np.isfinite(sums)) and np.all(np.isfinite(total))):
            return False
        count, weight, _ = rows._replace(missing=missing).counts(size)
        count, weight = (np.broadcast_to(across(each), sums.shape) for each in (count, weight))
        scatter_diagonal = total - sums * (sums / np.where(weight > 0.0, weight, 1.0))
        inaccurate = (total > MAX_ONE_PASS_RATIO * scatter_diagonal) | (total > LARGEST_SQUARE) | (total < LEAST_SQUARE)
        inaccurate &= count > 0
        if inaccurate.any() and not self._constant(values, codes, inaccurate):
            return False
        self.rows += count
        self.weight += weight
        self.sums += sums
        self.squares += total
        return True

    def _centred(self, block: AnyArray) -> tuple[Array, AnyArray | None]:
        """Rows minus the reference, 0 for missing values; and the mask of missing values."""
        plain = not self.reference.any()
        missing = np.isnan(block) if self.with_missing and has_missing(block) else None
        if plain and missing is None:
            return float_rows(block), None
        centred = float_rows(block, self.reference)
        if missing is not None:
            np.copyto(centred, 0.0, where=missing)
        return centred, missing

    def _constant(self, block: AnyArray, codes: Codes, doubtful: npt.NDArray[np.bool_]) -> bool:
        """Whether these classes and columns have the values of the reference only."""
        columns = np.flatnonzero(doubtful.any(axis=0))
        values = block[:, columns]
        differ = (values != self.reference[columns]) & ~np.isnan(values)
        return not np.any(differ & doubtful[:, columns][codes])

    def moments(self, like: Moments) -> Moments:
        """The sums as moments."""
        rows, weight = (self.rows, self.weight) if self.with_missing else (self.rows[:, 0], self.weight[:, 0])
        away = self.sums / np.where(self.weight > 0.0, self.weight, 1.0)
        scatter_diagonal = np.maximum(self.squares - self.sums * away, 0.0)
        scatter = np.zeros_like(like.scatter)
        np.add.at(scatter, like.group, scatter_diagonal)
        mean = np.where(self.rows > 0, self.reference + away, 0.0)
        coordinates = Coordinates.plain(len(self.reference))
        return replace(like, rows=rows, weight=weight, mean=mean, scatter=scatter, coordinates=coordinates)


def _sums_and_squares(codes: Codes, weights: Array | None, size: int, rows: Array) -> tuple[Array, Array]:
    """Sums of rows and of their squares for each class, in chunks: no temporary array is as large as a block."""
    sums, total = np.zeros((size, rows.shape[1])), np.zeros((size, rows.shape[1]))
    step = max(4 * CACHED // max(rows.shape[1], 1), 64)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        part_weights = None if weights is None else weights[start : start + step]
        add_up = class_adder(codes[start : start + step], part_weights, size, part.flags.c_contiguous)
        sums += add_up(part)
        total += add_up(part * part)
    return sums, total
