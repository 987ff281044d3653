"""`JointStatistics`: everything a fit keeps of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.errors import InputError, listed
from likely.statistics.category_counts import CategoryCounts
from likely.statistics.counts import Counts
from likely.statistics.moments import Moments
from likely.typing import AnyArray


def _most_cells(part: Any, k: int) -> int:
    """The rows of class k in which its best observed column has a value."""
    if isinstance(part, CategoryCounts):
        return max((int(rows[k].sum()) for rows in part.rows), default=0)
    return int(np.max(part.rows[k], initial=0))


@dataclass(frozen=True, slots=True, eq=False)
class JointStatistics:
    """Everything a fit keeps of its rows: class counts, and one statistics value for each block."""

    counts: Counts
    blocks: tuple[Any, ...]

    def __add__(self, other: JointStatistics) -> JointStatistics:
        pairs = zip(self.blocks, other.blocks, strict=True)
        return JointStatistics(self.counts + other.counts, tuple(a + b for a, b in pairs))

    def sound(self) -> bool:
        """Whether these can be the statistics of any rows, as far as blocks can tell."""
        classes = self.counts.classes
        return self.counts.sound() and all(
            np.array_equal(part.classes, classes) and (not hasattr(part, "sound") or part.sound())
            for part in self.blocks
        )

    def __sub__(self, other: JointStatistics) -> JointStatistics:
        pairs = zip(self.blocks, other.blocks, strict=True)
        left = JointStatistics(self.counts - other.counts, tuple(a - b for a, b in pairs))
        left.check_cells()
        # A class of which a block has seen nothing is gone from the block alone.
        return left.aligned()

    def check_cells(self) -> None:
        """Raise where a column has values in more rows than a class has."""
        place = {label: i for i, label in enumerate(self.counts.classes.tolist())}
        for part in self.blocks:
            for k, label in enumerate(part.classes.tolist()):
                rows = self.counts.rows[place[label]] if label in place else 0
                if _most_cells(part, k) > rows:
                    raise InputError(
                        f"Rows of class {label!r} were removed with missing cells where they had values when they were "
                        "learnt. Only rows that were learnt can be removed."
                    )

    def aligned(self) -> JointStatistics:
        """The same statistics, with all classes that have rows in every block."""
        return self.align(self.counts.classes)

    def align(self, classes: AnyArray) -> JointStatistics:
        """The same statistics among more classes."""
        return JointStatistics(self.counts.align(classes), tuple(part.align(classes) for part in self.blocks))

    def select(self, which: AnyArray) -> JointStatistics:
        """The same statistics of some classes only, which share nothing with the others."""
        return JointStatistics(self.counts.select(which), tuple(part.select(which) for part in self.blocks))

    def without(self, code: int) -> JointStatistics:
        """The statistics of all classes but one; an error where what it has in common cannot be told apart."""
        for part in self.blocks:
            if isinstance(part, Moments) and np.sum((part.group == part.group[code]) & (self.counts.rows > 0)) > 1:
                label = listed(self.counts.classes[code : code + 1])
                raise InputError(
                    f"Class {label} shares its covariance with other classes, and the sum cannot be taken apart. "
                    "Use forget(X, y) with its rows, or learn covariances of the classes' own."
                )
        only = np.arange(len(self.counts.classes)) == code
        return self - self.select(only)
