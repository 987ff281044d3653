"""Names for the types that signatures use."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]
Index = npt.NDArray[np.intp]
Codes = npt.NDArray[np.integer[Any]]
Vocabulary = tuple[Any, ...]  # the distinct categories of a column, sorted

# What users pass to families.
SmoothingLike = float | None  # pseudo-counts of every value; None is the default of the estimation
CategoriesLike = Sequence[Hashable] | Mapping[Any, Sequence[Hashable]] | npt.NDArray[Any] | None  # or per column
ConcentrationLike = float | Mapping[Any, float]  # pseudo-rows of every class, or {class: pseudo-rows}
ColumnLike = str | int  # the name of a column or its position
ExposureLike = ColumnLike | None  # a column, "row totals", or None for an exposure of 1
SharingLike = bool | Sequence[Sequence[Hashable]]  # all classes, none, or groups of classes that share a covariance
