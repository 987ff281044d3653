"""Names for the types that signatures use.

The aliases ending in `Like` are what public functions accept; the others are what the library computes with.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
from narwhals.typing import IntoDataFrame, IntoLazyFrame, IntoSeries

Array = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]
Index = npt.NDArray[np.intp]
Codes = npt.NDArray[np.integer[Any]]
Vocabulary = tuple[Any, ...]  # the distinct categories of a column, sorted


@runtime_checkable
class ChunkSource(Protocol):
    """Rows that do not fit in memory: `chunks` yields tables, starting from the first row at every call."""

    def chunks(self) -> Iterator[Any]:
        """Start a new pass over all rows."""


class SparseLike(Protocol):
    """A sparse matrix or array of SciPy."""

    @property
    def nnz(self) -> int:
        """Number of stored values."""

    def tocsr(self) -> Any:
        """The same rows in compressed sparse row format."""


class FamilyLike(Protocol):
    """A family of distributions, such as `Gaussian()` or `Poisson()`."""

    def describe(self) -> str:
        """The family and its options as text."""


class DirichletLike(Protocol):
    """A Dirichlet prior of class proportions: `likely.Dirichlet`."""

    alpha: Any


class TransformerLike(Protocol):
    """A transformer of scikit-learn."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn the transformation."""

    def transform(self, X: Any) -> Any:
        """Apply the transformation."""


class SplitterLike(Protocol):
    """A cross-validation splitter of scikit-learn."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterable[tuple[Any, Any]]:
        """Yield row numbers (train, test) of each fold."""


RecordsLike: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]  # rows {column: value}
TableLike: TypeAlias = (
    npt.ArrayLike | IntoDataFrame | IntoLazyFrame | SparseLike | ChunkSource | Sequence[Sequence[object]] | RecordsLike
)
RowsLike: TypeAlias = TableLike | Sequence[object] | IntoSeries  # of a table, or documents
LabelsLike: TypeAlias = npt.ArrayLike | IntoSeries | Sequence[object]  # a name is that of a column of the table
TargetsLike: TypeAlias = LabelsLike | IntoDataFrame
WeightsLike: TypeAlias = npt.ArrayLike | IntoSeries
ClassPriorLike: TypeAlias = str | Mapping[Any, float] | npt.ArrayLike | IntoSeries | DirichletLike
FamiliesLike: TypeAlias = FamilyLike | Mapping[Any, FamilyLike | None]  # columns, by name or number, to families
TypesLike: TypeAlias = Mapping[Any, str]  # columns to "number", "text", "category" or "date"
LossLike: TypeAlias = Mapping[Any, Mapping[Any, float]] | npt.ArrayLike | IntoDataFrame
FoldsLike: TypeAlias = int | SplitterLike | Iterable[tuple[npt.ArrayLike, npt.ArrayLike]] | npt.ArrayLike
GroupsLike: TypeAlias = str | npt.ArrayLike | Sequence[Hashable]
RandomStateLike: TypeAlias = int | np.random.RandomState
NumbersLike: TypeAlias = float | Iterable[float]

# What users pass to families.
SmoothingLike = float | None  # pseudo-counts of every value; None is the default of the estimation
CategoriesLike = Sequence[Hashable] | Mapping[Any, Sequence[Hashable]] | npt.NDArray[Any] | None  # or per column
EdgesLike = Sequence[float] | Mapping[Any, Sequence[float]] | npt.NDArray[Any] | None  # or per column
ConcentrationLike = float | Mapping[Any, float]  # pseudo-rows of every class, or {class: pseudo-rows}
ColumnLike = str | int  # the name of a column or its position
ExposureLike = ColumnLike | None  # a column, "row totals", or None for an exposure of 1
SharingLike = bool | Sequence[Sequence[Hashable]]  # all classes, none, or groups of classes that share a covariance
