"""Rows as points: standardised numbers or normal scores, and centred indicators of categories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.model.persistence import register
from likely.numerics.shapes import Shape
from likely.typing import AnyArray, Array, Index

MOST_INDICATORS = 1024  # of categories; rarer categories have none


@partial(register, name="RowCoordinates")  # the name Coordinates is taken
@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """How rows become points. Squared distances add up over columns; a missing value is at the mean, 0."""

    normal_scores: bool
    n_numeric: int
    categorical: Annotated[Index, Shape("=categorical")]  # columns of the table
    # of each: coordinates of its categories, then of a missing value, float32
    lookups: tuple[Annotated[npt.NDArray[np.float32], Shape("_ _")], ...]

    @classmethod
    def of(cls, rows: TrainingRows, encoding: Encoding, normal_scores: bool) -> Self:
        """Coordinates whose means and units follow from training rows.

        A categorical column with proportions f_c has the coordinates [x = c] − f_c. The squared distance of two
        categories is 2, however rare they are: the mean squared distance of two values of a standardised column.
        """
        frequencies = []
        for j, words in zip(encoding.categorical.tolist(), encoding.vocabularies, strict=True):
            counts = np.bincount(rows.rows.cells[:, j], rows.weights, minlength=len(words) + 1)[: len(words)]
            frequencies.append(counts / max(float(counts.sum()), np.finfo(np.float64).tiny))
        joined = np.concatenate([np.zeros(0), *frequencies])
        kept = np.ones(len(joined), dtype=bool)
        kept[np.argsort(-joined, kind="stable")[MOST_INDICATORS:]] = False
        parts = np.split(kept, np.cumsum([len(each) for each in frequencies])[:-1]) if frequencies else []
        lookups = tuple(_lookup(each, part) for each, part in zip(frequencies, parts, strict=True))
        return cls(normal_scores, len(encoding.numeric), encoding.categorical, lookups)

    @property
    def width(self) -> int:
        return self.n_numeric + sum(lookup.shape[1] for lookup in self.lookups)

    def _sizes(self) -> dict[str, Any]:
        return {"numeric": self.n_numeric, "categories": tuple(len(each) - 1 for each in self.lookups)}

    def points(self, rows: EncodedRows, part: AnyArray | slice) -> AnyArray:
        """Coordinates of some of the rows, (n, width), float32: equal rows are exactly equal points."""
        return self.joined(self.numbers(rows, part), rows.cells[part][:, self.categorical])

    def numbers(self, rows: EncodedRows, part: AnyArray | slice) -> AnyArray:
        """The coordinates of the numeric columns, (n, numeric columns), float32."""
        return np.nan_to_num((rows.normal_scores if self.normal_scores else rows.numbers)[part]).astype(np.float32)

    def joined(self, numbers: AnyArray, cells: AnyArray) -> AnyArray:
        """Coordinates of rows, from those of numeric columns and the codes of categorical ones."""
        found = np.empty((len(numbers), self.width), dtype=np.float32)
        found[:, : self.n_numeric] = numbers
        start = self.n_numeric
        for codes, lookup in zip(cells.T, self.lookups, strict=True):
            stop = start + lookup.shape[1]
            found[:, start:stop] = lookup[codes]
            start = stop
        return found

    def empty(self, rows: EncodedRows) -> AnyArray:
        """Which rows have no value in any column, (n,)."""
        missing = np.asarray(np.isnan(rows.numbers).all(axis=1))
        for j, lookup in zip(self.categorical.tolist(), self.lookups, strict=True):
            missing &= rows.cells[:, j] == len(lookup) - 1
        return missing


def _lookup(frequencies: Array, kept: AnyArray) -> AnyArray:
    """Coordinates of the categories of a column, then of a missing value."""
    indicators = np.eye(len(frequencies)) - frequencies
    if len(frequencies) == 2:  # both indicators of two categories are equal up to sign
        indicators, kept = np.sqrt(2.0) * indicators, kept & [True, False]
    return np.vstack([indicators[:, kept], np.zeros(int(kept.sum()))]).astype(np.float32)
