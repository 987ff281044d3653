"""Rows with their labels and weights in batches, which can be iterated over as often as needed.

Rows in memory are one batch. A source, an object with a method `chunks`, yields frames or arrays from the first row on
at every call; one chunk is held at a time. Fitting and prediction read all rows through this module.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from likely.data.frames import (
    is_frame,
    names_column,
    names_columns,
    rows_and_target,
    split_target,
    split_targets,
    target_names,
    whole_frame,
)
from likely.data.labels import encode_labels, label_values
from likely.data.table import Table, join_targets
from likely.data.validation import read_targets, read_weights, weight_values
from likely.errors import InputError, InputTypeError, listed
from likely.numerics.arrays import all_finite
from likely.statistics.counts import Counts
from likely.typing import AnyArray, Array, Codes

AGAIN = "The method chunks() must start again from the first row at every call."
NO_WEIGHT = "All weights in sample_weight are zero: no row has any weight to fit on."


@runtime_checkable
class Source(Protocol):
    """Rows that need not fit in memory: `chunks` yields frames, arrays or sparse rows."""

    def chunks(self) -> Iterator[Any]:
        """An iterator over all rows, from the first on."""


def is_source(X: Any) -> bool:
    """Whether X is a source, which yields its rows in chunks."""
    return callable(getattr(X, "chunks", None))


@dataclass(frozen=True, slots=True, eq=False)
class UnlabeledRows:
    """Unlabeled rows and their weights."""

    table: Table
    weights: Array | None

    @property
    def used(self) -> AnyArray | None:
        """The rows with positive weight; None where all rows have one."""
        return _used(self.weights)

    @property
    def used_rows(self) -> int:
        """The number of rows with positive weight."""
        return self.table.rows if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def row_weights(self) -> Array:
        """The weight of every row."""
        return np.ones(self.table.rows) if self.weights is None else self.weights


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Labeled rows with class counts, label codes and weights; and the unlabeled rows of the same chunk."""

    X: Any  # as the user passed it, without the target column
    table: Table
    counts: Counts
    codes: Codes
    weights: Array | None
    unlabeled: UnlabeledRows | None = None
    targets: tuple[Any, ...] = ()  # names of the columns that y was given by

    def take(self, rows: AnyArray) -> Batch:
        """Some of the labeled rows; classes without rows are kept."""
        codes, weights = self.codes[rows], None if self.weights is None else self.weights[rows]
        counts = Counts.of(self.counts.classes, codes, weights)
        return Batch(self.X, self.table.take(rows), counts, codes, weights, targets=self.targets)

    def narrowed(self) -> Batch:
        """The same rows without the classes that have no row."""
        present = self.counts.rows > 0
        if present.all():
            return self
        place = np.maximum(np.cumsum(present) - 1, 0)
        return replace(self, codes=place[self.codes].astype(self.codes.dtype), counts=self.counts.select(present))

    @property
    def used(self) -> AnyArray | None:
        """The rows with positive weight; None where all rows have one."""
        return _used(self.weights)

    @property
    def row_weights(self) -> Array:
        """The weight of every labeled row."""
        return np.ones(len(self.codes)) if self.weights is None else self.weights


def _used(weights: Array | None) -> AnyArray | None:
    return None if weights is None or weights.all() else np.flatnonzero(weights)


class Tables:
    """X as tables: one, or one for each chunk. Every iteration starts from the first row."""

    def __init__(self, X: Any, read: Callable[[Any, int], Table]) -> None:
        self._source: Source | None = X if is_source(X) else None
        self._read = read
        self._only = None if self._source is not None else read(whole_frame(X), 0)

    def __iter__(self) -> Iterator[Table]:
        if self._only is not None:
            yield self._only
            return
        for chunk, start in numbered(self._source):
            yield self._read(chunk, start)


def numbered(source: Source | None) -> Iterator[tuple[Any, int]]:
    """Chunks with at least one row, each with the number of its first row."""
    assert source is not None
    start = 0
    for part in source.chunks():
        chunk = whole_frame(part)
        if not (hasattr(chunk, "shape") or isinstance(chunk, list | tuple)):
            raise InputTypeError(f"chunks() yielded a {type(chunk).__name__}, not an array, sparse rows or a frame.")
        rows = chunk.shape[0] if hasattr(chunk, "shape") else len(chunk)
        if rows:
            yield chunk, start
        start += rows
    if not start:
        raise InputError(f"X has no rows: chunks() yielded none. {AGAIN}")


class TargetlessSource:
    """The chunks of a source without their target columns."""

    def __init__(self, source: Source, y: Any) -> None:
        self._source, self._y = source, y

    def chunks(self) -> Iterator[Any]:
        return (split_targets(chunk, self._y)[0] for chunk, _ in numbered(self._source))


def targets_apart(
    X: Any,
    y: Any,
    named: Callable[[Any], bool] = names_column,
    values: Callable[[Any], AnyArray] = label_values,
) -> tuple[Any, Any]:
    """X without its target column and the `values` of that column, where y is its name; else X and y."""
    if not named(y):
        return X, y
    if is_source(X):
        parts = [values(split_targets(chunk, y)[1]) for chunk, _ in numbered(X)]
        return TargetlessSource(X, y), np.concatenate(parts)
    X, y = rows_and_target(X, y)
    if not named(y):
        return X, y
    rows, target = split_targets(X, y)
    return rows, values(target)


class Batches:
    """Training rows: X, y and weights as one batch, or as one batch for each chunk of X.

    y is an array or series for all rows, or the name of a column of X.
    """

    no_labels = "No row has a label. Use MixtureModel, which needs none."
    set_aside: tuple[str, ...] = ()  # identifiers in the table that these rows are a part of

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        read: Callable[[Any, int], Table],
        estimator: str,
        *,
        keep_all_classes: bool = False,  # including classes whose rows all have weight 0
        allow_unlabeled: bool = False,
        unlabeled: Any = None,  # a label that marks unlabeled rows, besides None and NaN
        ignore_labels: bool = False,  # all rows are unlabeled
    ) -> None:
        self._read, self._estimator, self._keep_all_classes = read, estimator, keep_all_classes
        self._allow_unlabeled, self._unlabeled, self._ignore_labels = allow_unlabeled, unlabeled, ignore_labels
        self._source: Source | None = X if is_source(X) else None
        self._y, self._weights = y, sample_weight
        self._rows: int | None = None
        self._given: tuple[Batch, ...] = ()
        self.has_unlabeled = False  # whether an iteration has met unlabeled rows
        self._labeled_only = False
        self._begun: tuple[Batch, Iterator[Batch]] | None = None
        if self._source is None:
            X, y = self._target(*rows_and_target(X, y))
            batch = self._batch(X, read(X, 0), y, sample_weight)
            self._given = (replace(batch, targets=target_names(self._y, self._named)),)
            if not len(self._given[0].counts.classes) and not ignore_labels:
                raise InputError(NO_WEIGHT if self._given[0].unlabeled is None else self.no_labels)
        else:
            self._y = y if self._named(y) or y is None else self._plain(y)
            self._weights = None if sample_weight is None else weight_values(sample_weight)

    @classmethod
    def of(cls, given: Sequence[Batch]) -> Batches:
        """Batches that are in memory."""
        batches = cls.__new__(cls)
        batches._given, batches._begun = tuple(given), None
        batches.has_unlabeled = any(batch.unlabeled is not None for batch in given)
        return batches

    @property
    def first(self) -> Batch:
        """The first batch; the next iteration continues from it instead of reading it again."""
        if self._begun is None:
            run = iter(self)
            self._begun = next(run), run
        return self._begun[0]

    def __iter__(self) -> Iterator[Batch]:
        if self._given:
            return iter(self._given)
        if self._begun is not None:
            (first, rest), self._begun = self._begun, None
            return itertools.chain((first,), rest)
        return self._run()

    def without_unlabeled(self) -> Batches:
        """The labeled rows alone."""
        labeled = copy.copy(self)
        labeled._begun, labeled.has_unlabeled, labeled._labeled_only = None, False, True
        labeled._given = tuple(replace(batch, unlabeled=None) for batch in self._given)
        return labeled

    def check_unlabeled_weight(self) -> None:
        """Raise where no unlabeled row has positive weight."""
        weights = (batch.unlabeled.weights for batch in self if batch.unlabeled is not None)
        if not any(weight is None or weight.any() for weight in weights):
            raise InputError(NO_WEIGHT)

    def _run(self) -> Iterator[Batch]:
        """All chunks as batches, from the first row on."""
        stop, like, used = 0, None, False
        for chunk, start in numbered(self._source):
            X, y = self._target(chunk, self._y)
            table = self._read(X, start)
            stop = start + table.rows
            table = table if like is None else _alike(table, like)
            like = table
            if not self._named(self._y) and y is not None:
                y = self._part("y", y, start, stop)
            weights = self._weights
            if weights is not None and weights.ndim:
                weights = self._part("sample_weight", weights, start, stop)
            batch = self._batch(X, table, y, weights)
            if len(batch.counts.classes) or batch.unlabeled is not None:
                used = used or bool(batch.counts.rows.any())
                yield replace(batch, targets=target_names(self._y, self._named))
        self._check_rows(stop)
        if not used and not self._ignore_labels:
            raise InputError(NO_WEIGHT)

    def _target(self, X: Any, y: Any) -> tuple[Any, Any]:
        """X without its target column, and the target, where y is its name."""
        return split_target(X, y)

    @staticmethod
    def _named(y: Any) -> bool:
        """Whether y is the name of a column of X."""
        return names_column(y)

    @staticmethod
    def _part(name: str, values: AnyArray, start: int, stop: int) -> AnyArray:
        """The labels or weights of some rows."""
        if len(values) < stop:
            raise InputError(
                f"{name} has {len(values)} entries, and X has {stop} rows or more: "
                "Found input variables with inconsistent numbers of samples."
            )
        return values[start:stop]

    def _check_rows(self, rows: int) -> None:
        """Raise where the number of rows changes between iterations, or differs from that of y or the weights."""
        if self._rows not in (None, rows):
            raise InputError(f"chunks() yielded {self._rows} rows, and then {rows}. {AGAIN}")
        self._rows = rows
        for name, values in (("y", self._y), ("sample_weight", self._weights)):
            if isinstance(values, np.ndarray) and values.ndim and len(values) != rows:
                raise InputError(
                    f"X has {rows} rows and {name} has {len(values)}: "
                    f"Found input variables with inconsistent numbers of samples. {AGAIN}"
                )

    def _batch(self, X: Any, table: Table, y: Any, sample_weight: Any) -> Batch:
        """One batch. Classes without weight are dropped, and rows of weight 0 may have any code."""
        if self._ignore_labels:
            return self._all_unlabeled(X, table, read_weights(sample_weight, table.rows, table.start))
        labels = encode_labels(y, table.rows, self._estimator, table.start, self._allow_unlabeled, self._unlabeled)
        weights = read_weights(sample_weight, table.rows, table.start)
        if labels.missing is None:
            batch = Batch(X, table, Counts.of(labels.classes, labels.codes, weights), labels.codes, weights)
            return batch if self._keep_all_classes else batch.narrowed()
        return self._split(X, table, labels.classes, labels.codes, weights, labels.missing)

    def _split(
        self, X: Any, table: Table, classes: AnyArray, codes: Codes, weights: Array | None, missing: AnyArray
    ) -> Batch:
        """A batch with labeled rows, whose codes are given, and unlabeled rows."""
        rows, others = np.flatnonzero(~missing), np.flatnonzero(missing)
        unlabeled = None
        if not self._labeled_only:
            self.has_unlabeled = True
            unlabeled = UnlabeledRows(table.take(others), None if weights is None else weights[others])
        mine = None if weights is None or not len(rows) else weights[rows]
        batch = Batch(X, table.take(rows), Counts.of(classes, codes, mine), codes, mine, unlabeled)
        return batch if self._keep_all_classes else batch.narrowed()

    def _all_unlabeled(self, X: Any, table: Table, weights: Array | None) -> Batch:
        """A batch without any labeled row."""
        nothing: AnyArray = np.zeros(0, dtype=np.int64)
        return self._split(X, table, nothing, nothing, weights, np.ones(table.rows, dtype=bool))

    @staticmethod
    def _plain(y: Any) -> Any:
        """Labels of all rows as an array, which is cut into the labels of the chunks."""
        try:
            return label_values(y)
        except InputError:
            return np.array(list(y), dtype=object)  # some are missing


class TargetBatches(Batches):
    """Training rows of a regression: targets are the last columns of the tables.

    The label of a row is its value in one of the columns of X, which `column` finds in a table, or the same for all.
    """

    no_labels = "No row has a class: all values of the column named by classes are missing. Use components=... instead."

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        read: Callable[[Any, int], Table],
        estimator: str,
        *,
        column: Callable[[Table], int | None],
        outputs: int | None = None,  # the required number of targets
        allow_unlabeled: bool = False,
        ignore_labels: bool = False,
    ) -> None:
        self._column, self._outputs = column, outputs
        self._seen: dict[str, bool] = {}  # whether an iteration has met a value of each target
        super().__init__(
            X, y, sample_weight, read, estimator, allow_unlabeled=allow_unlabeled, ignore_labels=ignore_labels
        )
        if self._source is None and allow_unlabeled:
            self._check_seen()

    def _check_rows(self, rows: int) -> None:
        super()._check_rows(rows)
        if self._allow_unlabeled:
            self._check_seen()

    def _check_seen(self) -> None:
        """Raise for targets without any value."""
        missing = [name for name, seen in self._seen.items() if not seen]
        if missing:
            raise InputError(
                f"Column {listed(missing)} of y: all values are missing (NaN). Drop outputs without any value."
            )

    def _target(self, X: Any, y: Any) -> tuple[Any, Any]:
        return split_targets(X, y)

    @staticmethod
    def _named(y: Any) -> bool:
        return names_columns(y)

    @staticmethod
    def _plain(y: Any) -> Any:
        return y if is_frame(y) else np.asarray(y)

    def _batch(self, X: Any, table: Table, y: Any, sample_weight: Any) -> Batch:
        targets = read_targets(y, self._estimator, table.start)
        if targets.rows != table.rows:
            raise InputError(
                f"X has {table.rows} rows and y has {targets.rows}: "
                "Found input variables with inconsistent numbers of samples."
            )
        if self._outputs not in (None, targets.width):
            raise InputError(f"y has {targets.width} columns, but the model was fitted with {self._outputs}.")
        for j, name in enumerate(targets.names):
            values = targets.column(j)
            has_values = values.dtype.kind != "f" or all_finite(values) or not np.isnan(values).all()
            self._seen[name] = self._seen.get(name, False) or has_values
        both, column = join_targets(table, targets), self._column(table)
        weights = read_weights(sample_weight, table.rows, table.start)
        if self._ignore_labels:
            return self._all_unlabeled(X, both, weights)
        if column is None:
            codes: Codes = np.zeros(table.rows, dtype=np.int16)
            return Batch(X, both, Counts.of(np.zeros(1, dtype=np.int64), codes, weights), codes, weights).narrowed()
        return self._labelled(X, both, column, weights)

    def _labelled(self, X: Any, table: Table, column: int, weights: Array | None) -> Batch:
        """A batch whose labels are the values of a column; rows where it is missing are unlabeled."""
        (labels,) = table.categories([column])
        classes, codes = _class_array(labels.vocabulary, table.names[column]), labels.part(0, table.rows)
        missing = codes < 0
        if not missing.any():
            return Batch(X, table, Counts.of(classes, codes, weights), codes, weights).narrowed()
        if not self._allow_unlabeled:
            raise InputError(
                f"Column {table.names[column]!r}, row {table.number(int(np.argmax(missing)))}: the class is missing, "
                "and only fit uses unlabeled rows. Drop them, or call fit with all rows."
            )
        return self._split(X, table, classes, codes[~missing], weights, missing)


def _class_array(labels: Sequence[Any], name: str) -> AnyArray:
    """The values of a column as class labels."""
    numbers = all(isinstance(label, bool | int | float) for label in labels)
    if numbers and any(label != np.floor(label) for label in labels):
        raise InputError(
            f"classes={name!r}: the column holds fractions, {listed(labels, limit=3)}, which are no labels. Leave "
            "classes=None to use the column as a feature."
        )
    if numbers and len(labels):
        return np.array(labels)
    classes = np.empty(len(labels), dtype=object)
    classes[:] = labels
    return classes


def _alike(table: Table, first: Table) -> Table:
    """A chunk with the columns in the order of the first chunk; raise where it has other columns or another format."""
    if table.is_sparse != first.is_sparse:
        raise InputError(f"The chunk from row {table.start} on: either all chunks must be sparse, or none.")
    if set(table.names) != set(first.names):
        raise InputError(
            f"The chunk from row {table.start} on has the columns {listed(table.names)}, "
            f"but the first chunk has {listed(first.names)}."
        )
    return table.reordered(first.names)
