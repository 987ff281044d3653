"""Moments of rows with missing values: one `Moments` for each missingness pattern, a frozen value with ``+`` and ``-``.

A missingness pattern is the set of columns whose values are missing in a row. The count, mean and scatter of the
observed columns, for each class and pattern, are sufficient statistics of a Gaussian with values missing at random, and
exact sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from likely.errors import MissingPatternsError
from likely.numerics.coordinates import Coordinates
from likely.statistics.counts import positions, unite_classes
from likely.statistics.kept_rows import KeptRows
from likely.statistics.moments import Moments, Sharing
from likely.typing import AnyArray, Array, Index

MAX_PATTERNS = 64  # missingness patterns whose rows are summarised by moments
MAX_ROWS = 10_000  # distinct rows with other patterns that are kept

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PatternMoments:
    """Moments of complete rows, and of the observed columns of rows with each missingness pattern.

    Rows of further patterns are kept as rows. Rows without any observed value are in none of them.
    """

    complete: Moments
    missing: Mask  # (patterns, d): which columns are missing
    parts: tuple[Moments, ...]  # of the other columns, one for each pattern
    kept: KeptRows

    @classmethod
    def of_rows(cls, complete: Moments, rows: KeptRows) -> PatternMoments:
        """Moments of complete rows, and rows with missing values, which are kept as they are."""
        return cls(complete, np.zeros((0, complete.dimension), dtype=bool), (), rows)

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
            total = total + _widened(part.diagonal().by_column(), observed, self.dimension)
        kept = self.kept.moments(self.classes, self.sharing, full=False)
        return total + kept if len(self.kept) else total

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
        """The observed columns and moments of complete rows and of each pattern, without the rows that are kept."""
        yield np.arange(self.dimension), self.complete
        yield from self._pairs()

    def pair_weight(self) -> Array:
        """Weight of the rows of each class in which two columns are both observed, (classes, d, d)."""
        total = np.repeat(self.complete.weight, self.dimension**2).reshape(-1, self.dimension, self.dimension)
        for missing, part in zip(self.missing, self.parts, strict=True):
            total += part.weight[:, None, None] * np.outer(~missing, ~missing)
        observed = (~np.isnan(self.kept.values)).astype(np.float64)
        for k in np.unique(self.kept.codes).tolist():
            mine = self.kept.codes == k
            total[k] += observed[mine].T @ (self.kept.weight[mine][:, None] * observed[mine])
        return total

    def sound(self) -> bool:
        """Whether the fields are consistent, so that some rows have these moments."""
        d = self.dimension
        some = self.missing.any(axis=-1) & ~self.missing.all(axis=-1)
        return (
            self.complete.sound()
            and self.complete.full
            and self.missing.dtype == bool
            and self.missing.shape == (len(self.parts), d)
            and bool(some.all())
            and len({row.tobytes() for row in self.missing}) == len(self.parts)
            and all(
                part.sound()
                and part.full
                and part.sharing == self.sharing
                and part.dimension == len(observed)
                and np.array_equal(part.classes, self.classes)
                for observed, part in self._pairs()
            )
            and self.kept.sound(len(self.classes), d)
        )

    def _with_parts(self, change: Any) -> PatternMoments:
        """The same patterns, with other moments."""
        return replace(self, complete=change(self.complete), parts=tuple(change(part) for part in self.parts))

    def align(self, classes: AnyArray) -> PatternMoments:
        """The same moments with further classes, which have no rows."""
        if classes is self.classes or (len(classes) == len(self.classes) and classes.dtype == self.classes.dtype):
            return self  # of the same classes
        wide = self._with_parts(lambda part: part.align(classes))
        return replace(wide, kept=self.kept.recoded(positions(classes, self.classes)))

    def select(self, which: AnyArray) -> PatternMoments | Moments:
        """The moments of some of the classes."""
        which = np.asarray(which)
        which = which if which.dtype == bool else np.isin(np.arange(len(self.classes)), which)
        mine = np.flatnonzero(which[self.kept.codes])
        some = self._with_parts(lambda part: part.select(which))
        return replace(some, kept=self.kept.part(mine).recoded(np.cumsum(which) - 1))._simplified()

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
        kept = self.kept.take(columns)
        observed = ~np.isnan(kept.values)
        whole, some = observed.all(axis=1), observed.any(axis=1)
        complete = self.complete.take(columns) + kept.part(np.flatnonzero(whole)).moments(
            self.classes, self.sharing, full=True
        )
        found: dict[bytes, tuple[Mask, Moments]] = {}
        for missing, part in zip(self.missing, self.parts, strict=True):
            mask = missing[columns]
            place = np.cumsum(~missing) - 1  # of each observed column in its part
            narrow = part.take(place[columns[~mask]])
            if not mask.any():
                complete = complete + narrow
            elif not mask.all():
                known = found.get(mask.tobytes())
                found[mask.tobytes()] = mask, narrow if known is None else known[1] + narrow
        return _combined(complete, found.values(), kept.part(np.flatnonzero(some & ~whole)))

    def compact(self) -> PatternMoments:
        """The same statistics with as few rows as possible: moments of the most frequent patterns."""
        free = max(MAX_PATTERNS - len(self.parts), 0)
        less = self._with_moments([mask for mask, _ in itertools.islice(self.kept.patterns(), free)])
        return self._of_the_same_rows(replace(less, kept=less.kept.distinct()))

    def _with_moments(self, wanted: Iterable[Mask]) -> PatternMoments:
        """The same statistics, with moments instead of rows for these patterns."""
        new = {mask.tobytes() for mask in wanted} - {mask.tobytes() for mask in self.missing}
        if not new or not len(self.kept):
            return self
        found, gone = list(zip(self.missing, self.parts, strict=True)), np.zeros(len(self.kept), dtype=bool)
        for mask, index in self.kept.patterns():
            if mask.tobytes() in new:
                rows = self.kept.part(index).take(np.flatnonzero(~mask))
                found.append((mask, rows.moments(self.classes, self.sharing, full=True)))
                gone[index] = True
        total = _combined(self.complete, found, self.kept.part(~gone))
        assert isinstance(total, PatternMoments)
        return total

    def _pair(self, other: Moments | PatternMoments) -> tuple[PatternMoments, PatternMoments]:
        """Both with the same classes, and with moments of the patterns of either."""
        right = other if isinstance(other, PatternMoments) else _lifted(other)
        classes = unite_classes(self.classes, right.classes)
        left, right = self.align(classes), right.align(classes)
        wanted = np.concatenate([left.missing, right.missing])
        return left._with_moments(wanted), right._with_moments(wanted)

    def _simplified(self) -> PatternMoments | Moments:
        """The same statistics without empty patterns; plain moments where no row has missing values."""
        pairs = zip(self.missing, self.parts, strict=True)
        return _combined(self.complete, [(missing, part) for missing, part in pairs if part.rows.any()], self.kept)

    def __add__(self, other: Moments | PatternMoments) -> PatternMoments | Moments:
        left, right = self._pair(other)
        found = {row.tobytes(): (row, part) for row, part in zip(left.missing, left.parts, strict=True)}
        for missing, part in zip(right.missing, right.parts, strict=True):
            known = found.get(missing.tobytes())
            found[missing.tobytes()] = missing, part if known is None else known[1] + part
        total = _combined(left.complete + right.complete, found.values(), left.kept + right.kept)
        return total.limited() if isinstance(total, PatternMoments) else total

    __radd__ = __add__

    def limited(self) -> PatternMoments:
        """The same statistics with at most `MAX_ROWS` kept rows; an error where there are more."""
        if len(self.kept) <= MAX_ROWS:
            return self
        less = self.compact()
        if len(less.kept) <= MAX_ROWS:
            return less
        raise MissingPatternsError(
            f"Missing values occur in more than {MAX_PATTERNS} combinations of the {self.dimension} columns of a joint "
            f"block, and more than {MAX_ROWS:,} rows have other combinations than the most frequent ones, so that the "
            "statistics of the block cannot be updated or added. Use fit on all rows, which runs EM over the rows; "
            "model the columns as independent (NaiveBayes, Gaussian('diagonal')); impute missing values first "
            "(Imputer); or drop columns with many missing values."
        )

    def __sub__(self, other: Moments | PatternMoments) -> PatternMoments | Moments:
        left, right = self._pair(other)
        classes = left.classes
        removed = {row.tobytes(): part for row, part in zip(right.missing, right.parts, strict=True)}
        nothing = {row.tobytes() for row in left.missing}
        found = []
        for missing, part in zip(left.missing, left.parts, strict=True):
            less = removed.get(missing.tobytes())
            found.append((missing, part if less is None else (part - less).align(classes)))
        for missing, part in zip(right.missing, right.parts, strict=True):
            if missing.tobytes() not in nothing:  # raises: no such rows were added
                found.append((missing, Moments.empty(classes, part.dimension, self.sharing, full=True) - part))
        complete = (left.complete - right.complete).align(classes)
        total = _combined(complete, found, left.kept.removed(right.kept, classes))
        return total.select(np.any(total.rows > 0, axis=tuple(range(1, total.rows.ndim))))

    def __rsub__(self, other: Moments) -> PatternMoments | Moments:
        return _lifted(other) - self


def _lifted(moments: Moments) -> PatternMoments:
    return PatternMoments.of_rows(moments, KeptRows.empty(moments.dimension))


def _combined(complete: Moments, patterns: Iterable[tuple[Mask, Moments]], kept: KeptRows) -> PatternMoments | Moments:
    """Statistics of complete rows, patterns and kept rows; plain moments where there are complete rows only."""
    found = sorted(((mask, part) for mask, part in patterns if part.rows.any()), key=lambda pair: pair[0].tobytes())
    if not found and not len(kept):
        return complete
    masks = np.array([mask for mask, _ in found]).reshape(-1, complete.dimension).astype(bool)
    return PatternMoments(complete, masks, tuple(part for _, part in found), kept)


def _widened(part: Moments, observed: Index, dimension: int) -> Moments:
    """Moments of single columns as those of a block with further columns, which have no values."""

    def wide(values: AnyArray, fill: float = 0.0) -> Any:
        out = np.full((*values.shape[:-1], dimension), fill, dtype=values.dtype)
        out[..., observed] = values
        return out

    local = part.coordinates
    return replace(
        part,
        rows=wide(part.rows),
        weight=wide(part.weight),
        mean=wide(part.mean),
        scatter=wide(part.scatter),
        coordinates=Coordinates.make(wide(local.origin), wide(local.unit, 1.0)),
        noise=None if part.noise is None else wide(part.noise),
    )
