"""`JointStatistics`: the sufficient statistics of a whole model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from likely.errors import InputError, listed
from likely.numerics.shapes import Shape
from likely.statistics.category_counts import CategoricalCounts
from likely.statistics.counts import Counts
from likely.statistics.moments import Moments
from likely.statistics.pattern_moments import PatternMoments
from likely.typing import AnyArray


def _most_observed(part: Any, k: int) -> int:
    """The largest number of rows of class k, over the columns, in which a column has a value."""
    rows = part.observed_rows(k) if isinstance(part, CategoricalCounts) else part.rows[k]
    return int(np.max(rows, initial=0))


@dataclass(frozen=True, slots=True, eq=False)
class JointStatistics:
    """Class counts, and the sufficient statistics of each block of columns: all that a model keeps of its rows."""

    counts: Annotated[Counts, Shape("classes")]
    blocks: tuple[Annotated[Any, Shape("classes")], ...]

    def __add__(self, other: JointStatistics) -> JointStatistics:
        pairs = zip(self.blocks, other.blocks, strict=True)
        return JointStatistics(self.counts + other.counts, tuple(a + b for a, b in pairs))

    def _valid(self) -> bool:
        return all(hasattr(part, "classes") for part in self.blocks)

    def __sub__(self, other: JointStatistics) -> JointStatistics:
        pairs = zip(self.blocks, other.blocks, strict=True)
        left = JointStatistics(self.counts - other.counts, tuple(a - b for a, b in pairs))
        left.check_cells()
        # A class without observed values in a block was dropped from that block alone.
        return left.aligned()

    def check_cells(self) -> None:
        """Raise where a column of a class has more observed values than the class has rows."""
        place = {label: i for i, label in enumerate(self.counts.classes.tolist())}
        for part in self.blocks:
            for k, label in enumerate(part.classes.tolist()):
                rows = self.counts.rows[place[label]] if label in place else 0
                if _most_observed(part, k) > rows:
                    raise InputError(
                        f"Rows of class {label!r} to remove have missing values where the training rows have values. "
                        "Pass rows as they were in the fit."
                    )

    def aligned(self) -> JointStatistics:
        """The same statistics, with every class that has rows in all blocks."""
        return self.align(self.counts.classes)

    def align(self, classes: AnyArray) -> JointStatistics:
        """The same statistics with further classes, which have no rows."""
        return JointStatistics(self.counts.align(classes), tuple(part.align(classes) for part in self.blocks))

    def with_rows_of(self, labeled: Counts) -> JointStatistics:
        """The same statistics, with the numbers of labeled rows as the rows of the classes."""
        return replace(self, counts=replace(self.counts, rows=labeled.align(self.counts.classes).rows))

    def select(self, which: AnyArray) -> JointStatistics:
        """The statistics of some of the classes, which share no covariance with the others."""
        return JointStatistics(self.counts.select(which), tuple(part.select(which) for part in self.blocks))

    def without(self, code: int) -> JointStatistics:
        """The statistics of all classes but one; an error where it shares a covariance with another class."""
        for part in self.blocks:
            pooled = part.group == part.group[code] if isinstance(part, Moments | PatternMoments) else np.zeros(1)
            if np.sum(pooled * (self.counts.rows > 0)) > 1:
                label = listed(self.counts.classes[code : code + 1])
                raise InputError(
                    f"Class {label} shares its covariance with other classes, so its part of the pooled scatter is not "
                    "known. Use forget(X, y) with its rows, or fit with per-class covariances."
                )
        only = np.arange(len(self.counts.classes)) == code
        return self - self.select(only)
