"""Tables for models that support less than this library: row subsets, deleted and imputed values, numeric features.

Every function accepts any table that `read_table` accepts and returns the same kind, so that models find the columns by
their names or positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import narwhals as nw
import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from likely.data.frames import as_narwhals, is_frame
from likely.data.table import Table
from likely.data.validation import read_table
from likely.errors import InputError
from likely.typing import AnyArray, Array


def plain_table(X: Any, table: Table) -> Any:
    """X as a frame, sparse rows or an array, from which rows can be taken."""
    if is_frame(X):
        return X
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array(X)
    if "category" in table.kinds:
        return np.array(X, dtype=object)
    return np.array(table.block(0, table.rows))


def take_rows(X: Any, rows: AnyArray) -> Any:
    """Some rows of a table, as the same kind of table."""
    return as_narwhals(X)[rows].to_native() if is_frame(X) else X[rows]


def delete_values(X: Any, deleted: AnyArray) -> Any:
    """A table with some values missing; `deleted` is a mask of shape (rows, columns)."""
    if scipy.sparse.issparse(X):
        raise InputError("Values of sparse rows cannot be missing. Use missing=0, or X.toarray().")
    if not is_frame(X):
        out = np.array(X, dtype=object if X.dtype.kind == "O" else np.float64)
        out[deleted] = np.nan
        return out

    def change(column: Any, j: int) -> Any:
        kept = nw.new_series(column.name, ~deleted[:, j], nw.Boolean, backend=column.implementation)
        return column.to_frame().select(nw.when(kept).then(nw.col(column.name)))[column.name]

    return _with_changed(X, range(deleted.shape[1]), change)


def missing_mask(table: Table) -> AnyArray:
    """Which values are missing, (rows, columns)."""
    found = np.zeros((table.rows, table.width), dtype=bool)
    for j in range(0 if table.is_sparse else table.width):
        if table.kinds[j] == "category":
            (column,) = table.categories([j])
            found[:, j] = column.part(0, table.rows) < 0
        elif (numbers := table.column(j)).dtype.kind == "f":
            found[:, j] = np.isnan(numbers)
    return found


def categorical_columns(table: Table) -> tuple[int, ...]:
    """The positions of categorical columns."""
    return tuple(j for j, kind in enumerate(table.kinds) if kind == "category")


class _TableTransformer(TransformerMixin, BaseEstimator):
    """A transformer of tables with numeric and categorical columns."""

    def __init__(self, categorical: Sequence[int]) -> None:
        self.categorical = categorical


class SimpleImputation(_TableTransformer):
    """Replace missing values: by the mean of a numeric column, by the most frequent category of a categorical one.

    A column without any value in the training rows is filled with 0 or the empty text.

    Parameters
    ----------
    categorical : sequence of int
        Positions of the categorical columns.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute means and most frequent categories."""
        table = read_table(X)
        self.values_ = [
            _most_frequent(table, j) if j in self.categorical else _mean(table, j) for j in range(table.width)
        ]
        return self

    def transform(self, X: Any) -> Any:
        """X with its missing values replaced; a numeric column that had any is a column of floats."""
        check_is_fitted(self)
        table = read_table(X)
        missing = missing_mask(table)
        incomplete = np.flatnonzero(missing.any(axis=0)).tolist()
        if not incomplete:
            return X
        if not is_frame(X):
            array = np.array(X, dtype=np.float64 if X.dtype.kind in "biuf" else object)
            for j in incomplete:
                array[missing[:, j], j] = self.values_[j]
            return array
        return _with_changed(X, incomplete, lambda column, j: _filled(column, table, j, missing[:, j], self.values_[j]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class NumericFeatures(_TableTransformer):
    """Standardize numeric columns and one-hot encode categorical ones.

    A category that the training rows do not have is encoded as zeros. Missing values raise an error.

    Parameters
    ----------
    categorical : sequence of int
        Positions of the categorical columns.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute means, standard deviations and categories."""
        table = _complete(X)
        self.numeric_ = tuple(j for j in range(table.width) if j not in self.categorical)
        self.categories_ = [column.vocabulary for column in table.categories(self.categorical)]
        numbers = self._numbers(table)
        self.mean_, scale = numbers.mean(axis=0), _standard_deviations(numbers)
        self.scale_ = np.where(scale > 0.0, scale, 1.0)
        self.names_ = [table.names[j] for j in self.numeric_]
        for j, categories in zip(self.categorical, self.categories_, strict=True):
            self.names_ += [f"{table.names[j]}={category}" for category in categories]
        return self

    def transform(self, X: Any) -> Array:
        """Features, (rows, features)."""
        check_is_fitted(self)
        table = _complete(X)
        parts = [(self._numbers(table) - self.mean_) / self.scale_]
        if self.categorical:
            codes = table.codes(self.categorical, self.categories_)(0, table.rows)
            parts += [
                (codes[:, [i]] == np.arange(len(categories))).astype(np.float64)
                for i, categories in enumerate(self.categories_)
            ]
        return np.hstack(parts)

    def _numbers(self, table: Table) -> Array:
        if not self.numeric_:
            return np.zeros((table.rows, 0))
        return np.array(table.numbers(np.array(self.numeric_), sparse=False)(0, table.rows), dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """The names of the features."""
        check_is_fitted(self)
        return np.array(self.names_, dtype=object)


def _complete(X: Any) -> Table:
    """A table without missing values."""
    table = read_table(X)
    missing = missing_mask(table)
    if missing.any():
        row, j = np.argwhere(missing)[0].tolist()
        raise InputError(f"Column {table.names[j]!r}, row {row}: the value is missing. Use SimpleImputation() first.")
    return table


def _mean(table: Table, j: int) -> float:
    column = np.asarray(table.numbers(np.array([j]), sparse=False)(0, table.rows)[:, 0], dtype=np.float64)
    known = column[~np.isnan(column)]
    return float(known.mean()) if len(known) else 0.0


def _most_frequent(table: Table, j: int) -> Any:
    """The most frequent category, the first of several."""
    (column,) = table.categories([j])
    codes = column.part(0, table.rows)
    counts = np.bincount(codes[codes >= 0], minlength=1)
    return column.vocabulary[int(counts.argmax())] if counts.any() else ""


def _filled(series: Any, table: Table, j: int, missing: AnyArray, value: Any) -> Any:
    """A column of a frame with its missing values replaced."""
    if table.kinds[j] == "category":
        return series.fill_null(value)
    if not isinstance(value, float):  # a categorical column without any value here
        kind = nw.String if isinstance(value, str) else None
        return nw.new_series(series.name, [value] * len(series), kind, backend=series.implementation)
    values = np.where(missing, value, np.asarray(table.column(j), dtype=np.float64))
    return nw.new_series(series.name, values, nw.Float64, backend=series.implementation)


def _with_changed(X: Any, columns: Iterable[int], change: Callable[[Any, int], Any]) -> Any:
    """A frame with change(column, place) for some of its columns. narwhals needs names that are text."""
    frame = as_narwhals(X)
    names = list(frame.columns)
    renamed = not all(isinstance(name, str) for name in names)
    if renamed:
        native = frame.to_native().copy()
        native.columns = [str(name) for name in names]
        frame = nw.from_native(native, eager_only=True)
    native = frame.with_columns(*(change(frame[:, j], j) for j in columns)).to_native()
    if renamed:
        native.columns = names
    return native


def _standard_deviations(numbers: Array) -> Array:
    """Standard deviations of columns, without overflow: scaled by the largest magnitude first."""
    size = np.abs(numbers).max(axis=0, initial=0.0)
    size = np.where(size > 0.0, size, 1.0)
    return np.asarray(size * (numbers / size).std(axis=0))
