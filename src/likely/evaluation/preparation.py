"""Tables for models that take less than the library does: some rows, cells deleted, cells filled, numbers alone.

Everything here works on any table that `tables` reads, and gives back the same kind, so that models find the columns
by the names or places they know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import narwhals as nw
import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from likely.data.frames import is_frame
from likely.data.table import Table
from likely.data.validation import read_table
from likely.errors import InputError
from likely.typing import AnyArray, Array


def plain_table(X: Any, table: Table) -> Any:
    """What was handed over, as something that rows can be taken from: a frame, sparse rows or an array."""
    if is_frame(X):
        return X
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array(X)
    if "category" in table.kinds:
        return np.array(X, dtype=object)
    return np.array(table.block(0, table.rows))


def take_rows(X: Any, rows: AnyArray) -> Any:
    """Some rows of a table, as the same kind of table."""
    return nw.from_native(X, eager_only=True)[rows].to_native() if is_frame(X) else X[rows]


def delete_cells(X: Any, lost: AnyArray) -> Any:
    """A table without some of its cells; `lost` says which, (rows, columns)."""
    if scipy.sparse.issparse(X):
        raise InputError("Cells of sparse rows cannot be missing. Hint: missing=0, or X.toarray().")
    if not is_frame(X):
        out = np.array(X, dtype=object if X.dtype.kind == "O" else np.float64)
        out[lost] = np.nan
        return out
    frame, names = _text_names(X)
    backend = frame.implementation
    changed = [
        frame.select(nw.when(nw.new_series(name, ~lost[:, j], nw.Boolean, backend=backend)).then(nw.col(name)))[name]
        for j, name in enumerate(frame.columns)
    ]
    return _own_names(frame.with_columns(*changed), names)


def holes(table: Table) -> AnyArray:
    """Which cells are missing, (rows, columns)."""
    found = np.zeros((table.rows, table.width), dtype=bool)
    for j in range(0 if table.is_sparse else table.width):
        if table.kinds[j] == "category":
            (labels,) = table.categories([j])
            found[:, j] = labels.part(0, table.rows) < 0
        elif (column := table.column(j)).dtype.kind == "f":
            found[:, j] = np.isnan(column)
    return found


def label_columns(table: Table) -> tuple[int, ...]:
    """The places of columns of labels."""
    return tuple(j for j, kind in enumerate(table.kinds) if kind == "category")


class FilledCells(TransformerMixin, BaseEstimator):
    """Fills missing cells: numbers with the mean of their column, labels with the most frequent one.

    Where a column of the training rows has no cell at all, numbers are 0 and labels empty text.

    Parameters
    ----------
    labels : the places of the columns of labels; None for those that the training rows show.
    """

    def __init__(self, labels: Sequence[int] | None = None) -> None:
        self.labels = labels

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what to fill in."""
        table = read_table(X)
        labels = label_columns(table) if self.labels is None else tuple(self.labels)
        self.values_ = [_most_frequent(table, j) if j in labels else _mean(table, j) for j in range(table.width)]
        return self

    def transform(self, X: Any) -> Any:
        """X with its missing cells filled; a column of numbers that had any is one of floats."""
        check_is_fitted(self)
        table = read_table(X)
        lost = holes(table)
        some = np.flatnonzero(lost.any(axis=0)).tolist()
        if not some:
            return X
        if not is_frame(X):
            array = np.array(X, dtype=np.float64 if X.dtype.kind in "biuf" else object)
            for j in some:
                array[lost[:, j], j] = self.values_[j]
            return array
        frame, names = _text_names(X)
        changed = [_filled(frame[:, j], table, j, lost[:, j], self.values_[j]) for j in some]
        return _own_names(frame.with_columns(*changed), names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class PlainFeatures(TransformerMixin, BaseEstimator):
    """Columns of any kind as numbers: numbers in deviations from their mean, labels as one column for each.

    A label that the training rows do not have is 0 in all of them. Cells must not be missing.

    Parameters
    ----------
    labels : the places of the columns of labels; None for those that the training rows show.
    """

    def __init__(self, labels: Sequence[int] | None = None) -> None:
        self.labels = labels

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn means, deviations and labels."""
        table = _complete(X)
        self.labels_ = label_columns(table) if self.labels is None else tuple(self.labels)
        self.numbers_ = tuple(j for j in range(table.width) if j not in self.labels_)
        self.vocabularies_ = [labels.vocabulary for labels in table.categories(self.labels_)]
        numbers = self._numbers(table)
        self.mean_, deviation = numbers.mean(axis=0), _deviation(numbers)
        self.deviation_ = np.where(deviation > 0.0, deviation, 1.0)
        self.names_ = [table.names[j] for j in self.numbers_]
        for j, words in zip(self.labels_, self.vocabularies_, strict=True):
            self.names_ += [f"{table.names[j]}={word}" for word in words]
        return self

    def transform(self, X: Any) -> Array:
        """Features, (rows, features)."""
        check_is_fitted(self)
        table = _complete(X)
        parts = [(self._numbers(table) - self.mean_) / self.deviation_]
        if self.labels_:
            codes = table.codes(self.labels_, self.vocabularies_)(0, table.rows)
            parts += [
                (codes[:, [i]] == np.arange(len(words))).astype(np.float64)
                for i, words in enumerate(self.vocabularies_)
            ]
        return np.hstack(parts)

    def _numbers(self, table: Table) -> Array:
        if not self.numbers_:
            return np.zeros((table.rows, 0))
        return np.array(table.numbers(np.array(self.numbers_), sparse=False)(0, table.rows), dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """The names of the features."""
        check_is_fitted(self)
        return np.array(self.names_, dtype=object)


def _complete(X: Any) -> Table:
    """A table without missing cells."""
    table = read_table(X)
    lost = holes(table)
    if lost.any():
        row, j = np.argwhere(lost)[0].tolist()
        raise InputError(f"Column {table.names[j]!r}, row {row}: the cell is missing. Hint: FilledCells() before this.")
    return table


def _mean(table: Table, j: int) -> float:
    column = table.numbers(np.array([j]), sparse=False)(0, table.rows)[:, 0]
    known = np.asarray(column, dtype=np.float64)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else 0.0


def _most_frequent(table: Table, j: int) -> Any:
    """The most frequent label, the first of several."""
    (labels,) = table.categories([j])
    codes = labels.part(0, table.rows)
    counts = np.bincount(codes[codes >= 0], minlength=1)
    return labels.vocabulary[int(counts.argmax())] if counts.any() else ""


def _filled(series: Any, table: Table, j: int, lost: AnyArray, value: Any) -> Any:
    """A column of a frame with its missing cells filled."""
    if table.kinds[j] == "category":
        return series.fill_null(value)
    if not isinstance(value, float):  # a column of labels that has none here
        kind = nw.String if isinstance(value, str) else None
        return nw.new_series(series.name, [value] * len(series), kind, backend=series.implementation)
    values = np.where(lost, value, np.asarray(table.column(j), dtype=np.float64))
    return nw.new_series(series.name, values, nw.Float64, backend=series.implementation)


def _text_names(X: Any) -> tuple[Any, list[Any]]:
    """A frame whose columns have names of text, and the names it came with."""
    frame = nw.from_native(X, eager_only=True)
    names = list(frame.columns)
    if all(isinstance(name, str) for name in names):
        return frame, names
    renamed = frame.to_native().copy()
    renamed.columns = [str(name) for name in names]
    return nw.from_native(renamed, eager_only=True), names


def _own_names(frame: Any, names: list[Any]) -> Any:
    """A frame under the names that it came with."""
    native = frame.to_native()
    if not all(isinstance(name, str) for name in names):
        native.columns = names
    return native


def _deviation(numbers: Array) -> Array:
    """Deviations of columns, whatever their units."""
    size = np.abs(numbers).max(axis=0, initial=0.0)
    size = np.where(size > 0.0, size, 1.0)
    return np.asarray(size * (numbers / size).std(axis=0))
