"""Reference rows: a sample of training rows that does not depend on their order and can be merged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from likely.errors import InputError, listed
from likely.evidence.coordinates import Coordinates
from likely.evidence.rows import TrainingRows
from likely.evidence.training import smallest_of_classes
from likely.evidence.view import ROUNDING
from likely.model.persistence import register
from likely.numerics.shapes import Shape
from likely.typing import AnyArray, Array, Codes

FEWEST = 20  # rows of a class
EVERY = np.iinfo(np.uint64).max


@register
@dataclass(frozen=True, slots=True, eq=False)
class ReferenceRows:
    """The rows with the smallest ranks of each class, sorted by rank. Ranks are pseudo-random, by the content of rows.

    The union of two such samples, reduced to the smallest ranks again, is the sample of all rows. A class that has had
    more rows than its quota is from then on a sample of the ranks up to its limit.
    """

    # coordinates of the numeric columns in each system, float32
    numbers: tuple[Annotated[npt.NDArray[np.float32], Shape("rows _")], ...]
    cells: Annotated[npt.NDArray[np.uint8], Shape("rows _")]  # codes of the categorical columns
    codes: Annotated[Codes, Shape("rows", ">=0", "<classes")]
    weights: Annotated[Array, Shape("rows", ">0")]
    ranks: Annotated[npt.NDArray[np.uint64], Shape("rows", "rising")]
    positions: Annotated[Codes, Shape("rows")]  # of the rows in the training table
    class_weights: Annotated[Array, Shape("classes", ">=0")]  # of all rows
    quotas: Annotated[Codes, Shape("classes", ">0")]  # the largest number of rows of each class
    limits: Annotated[npt.NDArray[np.uint64], Shape("classes")]  # the largest rank that each class admits

    @classmethod
    def of(cls, rows: TrainingRows, ranks: AnyArray, systems: tuple[Coordinates, ...], most: int) -> Self:
        """A sample of `most` rows, in proportion to the distinct rows of the classes, or a few more of rare classes."""
        n_classes = len(rows.classes)
        counts = np.bincount(rows.codes, minlength=n_classes)
        quotas = np.maximum(most * counts // len(rows), max(1, min(FEWEST, most // n_classes)))
        return cls.sample(rows, ranks, systems, quotas, np.full(n_classes, EVERY))

    @classmethod
    def sample(
        cls, rows: TrainingRows, ranks: AnyArray, systems: tuple[Coordinates, ...], quotas: AnyArray, limits: AnyArray
    ) -> Self:
        """A sample of rows, with ranks up to the limits of their classes and at most the quota of each class."""
        admitted = np.flatnonzero(ranks <= limits[rows.codes])
        order, limits = _smallest(rows.codes[admitted], ranks[admitted], quotas, limits)
        kept = admitted[order]
        return cls(
            tuple(system.numbers(rows.rows, kept) for system in systems),
            rows.rows.cells[kept][:, systems[0].categorical],
            rows.codes[kept],
            rows.weights[kept],
            ranks[kept],
            rows.positions[kept],
            rows.class_weights,
            quotas,
            limits,
        )

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def sampled_weights(self) -> Array:
        """The weight of the reference rows of each class."""
        return np.bincount(self.codes, self.weights, minlength=len(self.quotas)).astype(np.float64)

    def _sizes(self) -> dict[str, Any]:
        return {"widths": tuple(each.shape[1] for each in self.numbers)}

    def places(self, ranks: AnyArray) -> AnyArray:
        """The places of rows among the reference rows; −1 for other rows."""
        if not len(self):
            return np.full(len(ranks), -1)
        place = np.searchsorted(self.ranks, ranks).clip(0, len(self) - 1)
        return np.where(self.ranks[place] == ranks, place, -1)

    def merged(self, other: Self) -> Self:
        """The sample of the rows of both; weights of equal rows add up, and positions are those of the first."""
        ranks, first, place = np.unique(
            np.concatenate([self.ranks, other.ranks]), return_index=True, return_inverse=True
        )
        weights = np.bincount(place, np.concatenate([self.weights, other.weights]), minlength=len(ranks))
        codes = np.concatenate([self.codes, other.codes])[first]
        limits = np.minimum(self.limits, other.limits)
        admitted = np.flatnonzero(ranks <= limits[codes])
        order, limits = _smallest(codes[admitted], ranks[admitted], self.quotas, limits)
        both = replace(
            self,
            numbers=tuple(np.concatenate(pair)[first] for pair in zip(self.numbers, other.numbers, strict=True)),
            cells=np.concatenate([self.cells, other.cells])[first],
            codes=codes,
            weights=weights.astype(np.float64),
            ranks=ranks,
            positions=np.concatenate([self.positions, other.positions])[first],
            class_weights=self.class_weights + other.class_weights,
            limits=limits,
        )
        return both._take(admitted[order])

    def removed(self, rows: TrainingRows, ranks: AnyArray) -> Self:
        """Without some rows, or some of their weight."""
        place = self.places(ranks)
        weights = self.weights.copy()
        weights[place[place >= 0]] -= rows.weights[place >= 0]
        absent = (place < 0) & (ranks <= self.limits[rows.codes])  # of all rows up to the limit none is omitted
        absent[place >= 0] |= weights[place[place >= 0]] < -ROUNDING * self.weights[place[place >= 0]]
        if absent.any():
            row = int(np.flatnonzero(absent)[rows.positions[absent].argmin()])
            raise InputError(
                f"X, row {rows.positions[row]}: the row is not among the training rows of class "
                f"{listed([rows.classes[rows.codes[row]]])}, or has another weight. Pass rows as they were in the fit."
            )
        totals = self.class_weights - rows.class_weights
        totals[totals < ROUNDING * self.class_weights] = 0.0
        left = replace(self, weights=weights, class_weights=totals)
        return left._take(np.flatnonzero(weights > ROUNDING * self.weights))

    def _take(self, rows: AnyArray) -> Self:
        """Some of the reference rows."""
        return replace(
            self,
            numbers=tuple(numbers[rows] for numbers in self.numbers),
            cells=self.cells[rows],
            codes=self.codes[rows],
            weights=self.weights[rows],
            ranks=self.ranks[rows],
            positions=self.positions[rows],
        )


def _smallest(codes: Codes, ranks: AnyArray, quotas: AnyArray, limits: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The rows with the smallest ranks of each class, up to its quota, by rank; and the limits of the classes."""
    kept = smallest_of_classes(codes, ranks, quotas)
    largest = np.zeros_like(limits)
    np.maximum.at(largest, codes[kept], ranks[kept])
    return kept, np.where(np.bincount(codes, minlength=len(quotas)) > quotas, largest, limits)
