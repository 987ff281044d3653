"""The encoding of columns that all views share. It is learnt once from training rows.

It has no number of any row: cells and normal scores are those of intervals, whose ends are rounded to few digits inside
of the gaps between neighbouring values. Only categories that no row has any more are removed later, and leave a gap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np
from scipy.special import ndtri

from likely.data.row_blocks import rows_per_block
from likely.data.table import Table
from likely.evidence.rows import EncodedRows
from likely.model.persistence import register
from likely.numerics.shapes import Shape
from likely.numerics.special import EPS
from likely.statistics.cell_counts import cell_ends
from likely.typing import AnyArray, Array, Index, Vocabulary

CELLS = 64  # of a numeric column, at most
CATEGORIES = 63  # of a categorical column, at most; others count as missing
FEW = 6  # distinct numbers up to which a column is categorical
FARTHEST = 1e6  # standard deviations: farther values count as this far
CLOSE = 16.0 * EPS  # relative distance up to which neighbouring values are one
TINY = 2.0**-1018  # distance that has some digits
SMALLEST = 2.0**-200  # gap, in units
KNOTS = 1000  # of the normal scores of a column, at most
SHARED = "names numeric categorical categories varying cells used"  # what views share with an encoding


@register
@dataclass(frozen=True, slots=True, eq=False)
class NumberEncoding:
    """How a numeric column is encoded."""

    edges: Annotated[Array, Shape("edges", "rising")]  # of its cells, sorted: x is in cell i if i edges are at most x
    centre: Annotated[float, Shape()]  # mean
    unit: Annotated[float, Shape(">0")]  # standard deviation
    lows: Annotated[Array, Shape("knots", "rising")]  # of intervals whose values have the same normal score
    highs: Annotated[Array, Shape("knots", "rising")]
    scores: Annotated[Array, Shape("knots")]  # their normal scores; those of values between them are interpolated

    @classmethod
    def of(cls, numbers: Array, weights: Array) -> Self:
        """The encoding of numbers, some of which may be missing, with positive weights."""
        present = ~np.isnan(numbers)
        values, place = np.unique(numbers[present], return_inverse=True)
        weight = np.bincount(place, weights[present], minlength=len(values)).astype(np.float64)
        total = float(weight.sum())
        largest = float(np.abs(values).max(initial=0.0)) or 1.0  # squares of tiny numbers must not underflow
        centre = float(weight @ (values / largest)) / total
        unit = float(np.sqrt(weight @ (values / largest - centre) ** 2 / total)) or 1.0
        return cls._between(values, weight, centre * largest, unit * largest)

    @classmethod
    def _between(cls, values: Array, weight: Array, centre: float, unit: float) -> Self:
        """The encoding of sorted distinct values, by points in the gaps between them."""
        apart = np.diff(values, prepend=-np.inf) > np.maximum(CLOSE * np.abs(values), TINY)
        values, weight = values[apart], np.add.reduceat(weight, np.flatnonzero(apart))
        middle = np.maximum.accumulate((np.cumsum(weight) - 0.5 * weight) / weight.sum())
        middle = np.clip(middle, EPS, 1.0 - EPS)  # weights that differ very much are rounded to nothing
        low, half, high = (_inside(values, part, centre, unit) for part in (0.25, 0.5, 0.75))
        knots = _evenly(middle, KNOTS)
        lows = np.concatenate([low[:1], high, np.zeros(1)])[knots]  # values beyond the first and last have its score
        highs = np.concatenate([low, high[-1:], np.zeros(1)])[knots]
        return cls(half[cell_ends(middle, CELLS)], centre, unit, lows, highs, ndtri(middle[knots]))

    def normal_scores(self, values: Array) -> Array:
        """The normal scores of values; NaN where they are missing."""
        ends = np.stack([self.lows, self.highs], axis=1).ravel()
        return np.where(np.isnan(values), np.nan, np.interp(values, ends, np.repeat(self.scores, 2)))

    def _valid(self) -> bool:
        rising = np.all(self.lows <= self.highs) and np.all(self.highs[:-1] <= self.lows[1:])
        return len(self.edges) < CELLS and len(self.scores) > 0 and bool(rising)


def _inside(values: Array, part: float, centre: float, unit: float) -> Array:
    """A point in each gap between neighbouring values: about `part` of the way up, rounded to few binary digits.

    The distance from `centre`, in units, is rounded by at most a tenth of the gap: the values do not follow from it.
    """
    gap = np.diff(values)
    point, error = values[:-1] + part * gap, 0.1 * gap
    step = unit * 2.0 ** np.floor(np.log2(np.maximum(error / unit, SMALLEST)))
    rounded = centre + np.round((point - centre) / step) * step
    return np.where(np.abs(rounded - point) <= error, rounded, point)  # of values far from 0 too few digits are left


def _evenly(middle: Array, most: int) -> AnyArray:
    """The positions of at most `most` values, the first and the last among them, at about equal steps of rank."""
    if len(middle) <= most:
        return np.arange(len(middle))
    steps = np.linspace(middle[0], middle[-1], most)
    return np.unique(np.r_[0, np.searchsorted(middle, steps).clip(0, len(middle) - 1), len(middle) - 1])


@register
@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """How columns are encoded."""

    names: Annotated[tuple[str, ...], Shape("=names")]
    # indices of the columns that are read, without identifiers and copies of other columns
    columns: Annotated[Index, Shape("columns", ">=0", "<names", "distinct")]
    # indices of numeric columns: those with more than six distinct numbers
    numeric: Annotated[Index, Shape("=numeric")]
    numbers: Annotated[tuple[NumberEncoding, ...], Shape("numeric")]  # of the numeric columns
    categorical: Annotated[Index, Shape("=categorical")]  # indices of the other columns that have values, without text
    # their categories, the most frequent first; at most 63. None was a category that no row has any more
    vocabularies: Annotated[tuple[Vocabulary, ...], Shape("categorical")]
    texts: Annotated[Index, Shape("texts")]  # indices of text columns

    @classmethod
    def of(
        cls,
        table: Table,
        weights: Array,
        columns: Sequence[int] | AnyArray,
        texts: Sequence[int] | AnyArray = (),
        categories: Sequence[int] | AnyArray = (),
    ) -> Self:
        """The encoding of some columns of training rows with positive weights.

        `texts` are those of text, and numbers of `categories` are codes.
        """
        _check_numbers(table)
        numbers: dict[int, NumberEncoding] = {}
        vocabularies: dict[int, Vocabulary] = {}
        read, chosen = _reader(table), np.asarray(columns, dtype=np.intp)
        text = np.asarray(texts, dtype=np.intp)
        for j in np.setdiff1d(chosen, text).tolist():
            if table.kinds[j] == "number" and j not in categories:
                values = read(j)
                if _is_numeric(values):
                    numbers[j] = NumberEncoding.of(values, weights)
                    continue
            words, varies = _frequent(table, j, weights)
            if varies:
                vocabularies[j] = words
        numeric, categorical = np.array([*numbers], dtype=np.intp), np.array([*vocabularies], dtype=np.intp)
        encodings, words = tuple(numbers.values()), tuple(vocabularies.values())
        return cls(tuple(table.names), chosen, numeric, encodings, categorical, words, text)

    @property
    def n_cells(self) -> AnyArray:
        """The number of cells or categories of each column, (columns,): it is the code of a missing value."""
        found = np.zeros(len(self.names), dtype=np.intp)
        found[self.numeric] = [len(each.edges) + 1 for each in self.numbers]
        found[self.categorical] = [len(words) for words in self.vocabularies]
        return found

    @property
    def used(self) -> AnyArray:
        """Whether each column is encoded in cells: text, and columns without any variation, are not."""
        return self.n_cells > 0

    def encode(self, table: Table) -> EncodedRows:
        """Rows with the columns of the training rows, encoded."""
        _check_numbers(table)
        read = _reader(table)
        cells = np.zeros((table.rows, len(self.names)), dtype=np.uint8)
        numbers = np.empty((len(self.numeric), table.rows))
        scores = np.empty_like(numbers)
        for i, (j, encoding) in enumerate(zip(self.numeric.tolist(), self.numbers, strict=True)):
            values = read(j)
            missing = np.isnan(values)
            cell = np.searchsorted(encoding.edges, values, side="right")
            cells[:, j] = np.where(missing, len(encoding.edges) + 1, cell)
            with np.errstate(over="ignore"):
                numbers[i] = (values - encoding.centre) / encoding.unit
            scores[i] = encoding.normal_scores(values)
        np.clip(numbers, -FARTHEST, FARTHEST, out=numbers)
        if len(self.categorical):
            codes = table.codes(self.categorical.tolist(), self.vocabularies)(0, table.rows)
            sizes = np.array([len(words) for words in self.vocabularies])
            cells[:, self.categorical] = np.where(codes < 0, sizes, codes)
        return EncodedRows(table, cells, numbers.T, scores.T)

    def category_weights(self, rows: EncodedRows, weights: Array) -> Array:
        """The total weight of rows of each category, (categories of all columns,)."""
        columns = zip(self.categorical.tolist(), map(len, self.vocabularies), strict=True)
        found = [np.bincount(rows.cells[:, j], weights, minlength=size + 1)[:size] for j, size in columns]
        return np.concatenate([np.zeros(0), *found])

    def without_categories(self, gone: AnyArray) -> Self:
        """The encoding without categories that are marked among those of all columns; codes stay as they are."""
        ends = np.cumsum([0, *map(len, self.vocabularies)])
        parts = (gone[start:stop].tolist() for start, stop in pairwise(ends.tolist()))
        kept = (
            tuple(None if lost else word for word, lost in zip(words, part, strict=True))
            for words, part in zip(self.vocabularies, parts, strict=True)
        )
        return replace(self, vocabularies=tuple(kept))

    def __add__(self, other: Self) -> Self:
        """The same encoding, with the categories of both."""
        pairs = zip(self.vocabularies, other.vocabularies, strict=True)
        united = (tuple(b if a is None else a for a, b in zip(*pair, strict=True)) for pair in pairs)
        return replace(self, vocabularies=tuple(united))

    def _sizes(self) -> dict[str, Any]:
        """What views share with it."""
        varying = np.flatnonzero(self.n_cells > 1)
        return {
            "categories": tuple(map(len, self.vocabularies)),
            "varying": tuple(varying.tolist()),
            "cells": tuple(self.n_cells[varying].tolist()),
            "used": tuple(np.flatnonzero(self.used).tolist()),
        }

    def _valid(self) -> bool:
        places = np.concatenate([self.numeric, self.categorical, self.texts])
        return (
            len(np.unique(places)) == len(places)
            and bool(np.isin(places, self.columns).all())
            and all(0 < len(words) <= CATEGORIES and _are_distinct(words) for words in self.vocabularies)
        )


def _are_distinct(words: Vocabulary) -> bool:
    known = [word for word in words if word is not None]
    return len(set(known)) == len(known)


def _check_numbers(table: Table) -> None:
    """Raise for the first number of a table that is infinite or beyond 1e140."""
    columns = np.array([j for j in range(table.width) if table.kinds[j] == "number"], dtype=np.intp)
    if len(columns):
        read, step = table.numbers(columns, sparse=True), rows_per_block(table, len(columns))
        for start in range(0, table.rows, step):
            read(start, min(start + step, table.rows))


def _reader(table: Table) -> Callable[[int], Array]:
    """A function that reads a column of numbers, (n,); NaN where a value is missing."""
    if table.is_sparse:
        by_column = table.numbers(None, sparse=True)(0, table.rows).tocsc()
        return lambda j: np.asarray(by_column[:, [j]].toarray(), dtype=np.float64)[:, 0]

    def read(j: int) -> Array:
        return np.asarray(table.numbers(np.array([j]), sparse=False)(0, table.rows), dtype=np.float64)[:, 0]

    return read


def without_copies(table: Table, columns: Sequence[int]) -> AnyArray:
    """Columns without those that repeat another one in every row; of equal columns the one with the shortest name.

    A view expects less of each column where it has many, so that copies would change what others contribute. Columns
    with the same value in every row, or without values, change nothing either and are left out, unless there are no
    others.
    """
    found: dict[bytes, int] = {}
    same: list[int] = []
    read = _reader(table)
    for j in sorted(columns, key=lambda j: (len(table.names[j]), table.names[j])):
        digest = hashlib.sha256()
        if table.kinds[j] == "number":
            values = read(j) + 0.0  # -0.0 is 0.0
            values = np.where(np.isnan(values), np.nan, values)
        else:
            (column,) = table.categories([j])
            digest.update(repr(column.vocabulary).encode())
            values = np.asarray(column.part(0, table.rows), dtype=np.int64)
        if np.array_equal(values[1:], values[:-1], equal_nan=True):
            same.append(j)
            continue
        digest.update(values.tobytes())
        found.setdefault(digest.digest(), j)
    return np.array(sorted(found.values() or same), dtype=np.intp)


def _is_numeric(values: Array) -> bool:
    """Whether a column has more than a few distinct numbers."""
    first = np.unique(values[:1000])
    first = first[~np.isnan(first)]
    return len(first) > FEW or int(np.count_nonzero(~np.isnan(np.unique(values)))) > FEW


def _frequent(table: Table, j: int, weights: Array) -> tuple[Vocabulary, bool]:
    """The categories of a column, the most frequent first and equally frequent ones sorted, and whether it varies.

    A column varies if it has two categories, or one and missing values.
    """
    (column,) = table.categories([j])
    codes = column.part(0, table.rows)
    present = codes >= 0
    weight = np.bincount(codes[present], weights[present], minlength=len(column.vocabulary))
    order = [code for code in np.argsort(-weight, kind="stable").tolist() if weight[code] > 0.0]
    words = tuple(column.vocabulary[code] for code in order[:CATEGORIES])
    return words, len(words) > 1 or (len(words) == 1 and not present.all())
