"""Moments of rows with missing values: one `Moments` for each missingness pattern, a frozen value with ``+`` and ``-``.

A missingness pattern is the set of columns whose values are missing in a row. The count, mean and scatter of the
observed columns, for each class and pattern, are sufficient statistics of a Gaussian with values missing at random, and
exact sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from likely.errors import MissingPatternsError
from likely.numerics.caches import cached_property
from likely.numerics.coordinates import Coordinates
from likely.numerics.shapes import Shape
from likely.statistics.counts import spread, unite_classes
from likely.statistics.moments import Moments, Sharing
from likely.typing import AnyArray, Array, Index

MOST_BYTES = 2**24  # that the moments of all missingness patterns of a block may take
PATTERN_BYTES = 2**12  # that each pattern takes besides its numbers, in memory and in files

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PatternMoments:
    """Moments of complete rows, and of the observed columns of rows with each missingness pattern.

    Rows without any observed value are in none of them.
    """

    complete: Annotated[Moments, Shape("classes d")]
    missing: Annotated[Mask, Shape("parts d")]  # (patterns, d): which columns are missing
    # of the other columns, one for each pattern
    parts: Annotated[tuple[Annotated[Moments, Shape("classes")], ...], Shape("parts")]

    @property
    def classes(self) -> AnyArray:
        return self.complete.classes

    @property
    def dimension(self) -> int:
        return self.complete.dimension

    @property
    def full(self) -> bool:
        return True

    @property
    def sharing(self) -> Sharing:
        return self.complete.sharing

    @property
    def group(self) -> Index:
        """The index of each class's scatter."""
        return self.complete.group

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Number of rows in which each column is observed, (classes, d)."""
        return self.available.rows

    @property
    def weight(self) -> Array:
        """Weight of the rows in which each column is observed, (classes, d)."""
        return self.available.weight

    @cached_property
    def available(self) -> Moments:
        """Moments of all observed values of each column (available-case analysis), without products of columns."""
        total = self.complete.diagonal().by_column()
        for observed, part in self._pairs():
            total = total + widened(part.diagonal().by_column(), observed, self.dimension)
        return total

    @cached_property
    def completions(self) -> dict[Any, Any]:
        """Completed statistics by the options of the family that completed them, so that EM runs once."""
        return {}

    def _of_the_same_rows(self, other: PatternMoments) -> PatternMoments:
        """Other statistics of the same rows, which are completed together with these."""
        other.__dict__["completions"] = self.completions
        return other

    def _pairs(self) -> Iterator[tuple[Index, Moments]]:
        """The observed columns of each pattern, and their moments."""
        for missing, part in zip(self.missing, self.parts, strict=True):
            yield np.flatnonzero(~missing), part

    def patterns(self) -> Iterator[tuple[Index, Moments]]:
        """The observed columns and moments of complete rows and of each pattern."""
        yield np.arange(self.dimension), self.complete
        yield from self._pairs()

    def _valid(self) -> bool:
        some = self.missing.any(axis=-1) & ~self.missing.all(axis=-1)
        return (
            self.complete.full
            and bool(some.all())
            and len({row.tobytes() for row in self.missing}) == len(self.parts)
            and all(
                part.full and part.sharing == self.sharing and part.dimension == len(observed)
                for observed, part in self._pairs()
            )
        )

    def _with_parts(self, change: Any) -> PatternMoments:
        """The same patterns, with other moments."""
        return replace(self, complete=change(self.complete), parts=tuple(change(part) for part in self.parts))

    def align(self, classes: AnyArray) -> PatternMoments:
        """The same moments with further classes, which have no rows."""
        if classes is self.classes or (len(classes) == len(self.classes) and classes.dtype == self.classes.dtype):
            return self  # of the same classes
        return self._with_parts(lambda part: part.align(classes))

    def select(self, which: AnyArray) -> PatternMoments | Moments:
        """The moments of some of the classes."""
        some = self._with_parts(lambda part: part.select(which))
        return _combined(some.complete, zip(some.missing, some.parts, strict=True))

    def pool(self, sharing: Sharing) -> PatternMoments:
        """The same moments with the scatters pooled as in `sharing`."""
        if sharing == self.sharing:
            return self
        return self._of_the_same_rows(self._with_parts(lambda part: part.pool(sharing)))

    def diagonal(self) -> Moments:
        """The moments of each column by itself."""
        return self.available

    def take(self, columns: AnyArray) -> PatternMoments | Moments:
        """The moments of some of the columns, whose patterns may be fewer."""
        columns = np.asarray(columns)
        complete, found = self.complete.take(columns), []
        for missing, part in zip(self.missing, self.parts, strict=True):
            mask = missing[columns]
            place = np.cumsum(~missing) - 1  # of each observed column in its part
            narrow = part.take(place[columns[~mask]])
            if not mask.any():
                complete = complete + narrow
            elif not mask.all():
                found.append((mask, narrow))
        return _combined(complete, found)

    def _pair(self, other: Moments | PatternMoments) -> tuple[PatternMoments, PatternMoments]:
        """Both with the same classes."""
        right = other if isinstance(other, PatternMoments) else _lifted(other)
        classes = unite_classes(self.classes, right.classes)
        return self.align(classes), right.align(classes)

    def __add__(self, other: Moments | PatternMoments) -> PatternMoments | Moments:
        left, right = self._pair(other)
        masks, parts = (*left.missing, *right.missing), (*left.parts, *right.parts)
        total = _combined(left.complete + right.complete, zip(masks, parts, strict=True))
        return total.limited() if isinstance(total, PatternMoments) else total

    __radd__ = __add__

    def limited(self) -> PatternMoments:
        """The same statistics; an error where those of all patterns take more than `MOST_BYTES`."""
        check_patterns(len(self.parts), self.complete)
        return self

    def __sub__(self, other: Moments | PatternMoments) -> PatternMoments | Moments:
        left, right = self._pair(other)
        classes = left.classes
        found = {mask.tobytes(): (mask, part) for mask, part in zip(left.missing, left.parts, strict=True)}
        for mask, less in zip(right.missing, right.parts, strict=True):
            none = Moments.empty(classes, less.dimension, self.sharing, full=True)  # raises: no such rows were added
            _, part = found.get(mask.tobytes(), (mask, none))
            found[mask.tobytes()] = mask, (part - less).align(classes)
        complete = (left.complete - right.complete).align(classes)
        total = _combined(complete, found.values())
        return total.select(np.any(total.rows > 0, axis=tuple(range(1, total.rows.ndim))))

    def __rsub__(self, other: Moments) -> PatternMoments | Moments:
        return _lifted(other) - self


def check_patterns(number: int, like: Moments) -> None:
    """Raise if the moments of this number of patterns, of the size of `like`, take more than `MOST_BYTES`."""
    each = 8 * (like.mean.size + like.scatter.size) + PATTERN_BYTES
    if number * each > MOST_BYTES:
        raise MissingPatternsError(
            f"Missing values occur in more than {MOST_BYTES // each:,} combinations of the {like.dimension} columns of "
            f"a joint block, whose sums of squares and products take more than {MOST_BYTES // 2**20} MiB, so that the "
            "statistics of the block cannot be updated or added. Use fit on all rows, which runs EM over the rows; "
            "model the columns as independent (NaiveBayes, Gaussian('diagonal')); impute missing values first "
            "(Imputer); or drop columns with many missing values."
        )


def _lifted(moments: Moments) -> PatternMoments:
    return PatternMoments(moments, np.zeros((0, moments.dimension), dtype=bool), ())


def _combined(complete: Moments, patterns: Iterable[tuple[Mask, Moments]]) -> PatternMoments | Moments:
    """Statistics of complete rows and of patterns that have rows; plain moments where there are complete rows only.

    Moments of the same pattern are added.
    """
    found: dict[bytes, tuple[Mask, Moments]] = {}
    for mask, part in patterns:
        known = found.get(mask.tobytes())
        found[mask.tobytes()] = mask, part if known is None else known[1] + part
    kept = [pair for _, pair in sorted(found.items()) if pair[1].rows.any()]
    if not kept:
        return complete
    return PatternMoments(complete, np.array([mask for mask, _ in kept]), tuple(part for _, part in kept))


def widened(part: Moments, observed: Index, dimension: int) -> Moments:
    """Moments of some columns as those of a block with further columns, which have no values."""

    def wide(values: AnyArray) -> AnyArray:
        return spread(values, observed, dimension, range(1, values.ndim))

    local, unit = part.coordinates, np.ones(dimension)
    unit[observed] = local.unit
    return replace(
        part,
        rows=wide(part.rows),
        weight=wide(part.weight),
        mean=wide(part.mean),
        scatter=wide(part.scatter),
        coordinates=Coordinates.make(spread(local.origin, observed, dimension), unit),
        noise=None if part.noise is None else wide(part.noise),
    )
