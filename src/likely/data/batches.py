"""Rows with their labels and weights, one batch after another, as often as a pass asks for them.

Whatever fits in memory is one batch. Anything larger is an object with a method `chunks`, which starts a new run over
the same frames or arrays at every call; only one of them is held at a time. Every pass goes through here, so that
learning and answering work alike on either.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from likely.data.frames import is_frame, names_column, names_columns, split_target, split_targets, whole_frame
from likely.data.labels import encode_labels, label_values
from likely.data.table import Table, beside
from likely.data.validation import read_targets, read_weights, weight_values
from likely.errors import InputError, InputTypeError, listed
from likely.numerics.arrays import all_finite
from likely.statistics.counts import Counts
from likely.typing import AnyArray, Array, Codes

AGAIN = "chunks() must start again from the first row at every call."
NO_WEIGHT = "All weights in sample_weight are zero: there is nothing to learn from."


@runtime_checkable
class Source(Protocol):
    """Rows of any number: `chunks` yields frames, arrays or sparse rows, from the first on at every call."""

    def chunks(self) -> Iterator[Any]:
        """A new run over all rows."""


def is_source(X: Any) -> bool:
    """Whether these are rows that come in chunks."""
    return callable(getattr(X, "chunks", None))


@dataclass(frozen=True, slots=True, eq=False)
class UnlabeledRows:
    """Rows without a label."""

    table: Table
    weights: Array | None

    @property
    def used(self) -> AnyArray | None:
        """The rows of weight above 0; None where these are all."""
        return _used(self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows that are held together, with the counts of their classes, the codes of their labels, and their weights."""

    X: Any  # as it was handed over, without the target
    table: Table
    counts: Counts
    codes: Codes
    weights: Array | None
    free: UnlabeledRows | None = None  # rows without a label, beside these

    def take(self, rows: AnyArray) -> Batch:
        """Some of the rows; all classes stay."""
        codes, weights = self.codes[rows], None if self.weights is None else self.weights[rows]
        counts = Counts.of(self.counts.classes, codes, weights)
        return Batch(self.X, self.table.take(rows), counts, codes, weights)

    def narrowed(self) -> Batch:
        """The same rows with the classes that have any."""
        wanted = self.counts.rows > 0
        if wanted.all():
            return self
        place = np.maximum(np.cumsum(wanted) - 1, 0)
        return replace(self, codes=place[self.codes].astype(self.codes.dtype), counts=self.counts.select(wanted))

    @property
    def used(self) -> AnyArray | None:
        """The rows of weight above 0; None where these are all."""
        return _used(self.weights)


def _used(weights: Array | None) -> AnyArray | None:
    return None if weights is None or weights.all() else np.flatnonzero(weights)


class Tables:
    """The tables behind X: one, or one for each chunk. They can be gone through again and again."""

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
    """Chunks that have rows, each with the number of its first row."""
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
        raise InputError(f"X has no rows: chunks() yielded none. Hint: {AGAIN}")


class TargetlessSource:
    """The chunks of a source without the columns that are its targets."""

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
    """Rows without their target, and its `values`, where y names it; else what was handed over."""
    if not named(y):
        return X, y
    if is_source(X):
        parts = [values(split_targets(chunk, y)[1]) for chunk, _ in numbered(X)]
        return TargetlessSource(X, y), np.concatenate(parts)
    rows, target = split_targets(whole_frame(X), y)
    return rows, values(target)


class Batches:
    """Training rows: X, y and weights as one batch, or as many as X has chunks.

    y is an array or series for all rows, or the name of a column of X.
    """

    no_labels = "No row has a label. Hint: MixtureModel needs none."

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        read: Callable[[Any, int], Table],
        estimator: str,
        *,
        every: bool = False,  # whether rows of weight 0 are wanted too, and their classes
        free: bool = False,  # whether labels may be missing
        unlabeled: Any = None,  # a label that stands for a missing one
        blind: bool = False,  # whether no row has a label
    ) -> None:
        self._read, self._estimator, self._every = read, estimator, every
        self._free, self._unlabeled, self._blind = free, unlabeled, blind
        self._source: Source | None = X if is_source(X) else None
        self._y, self._weights = y, sample_weight
        self._rows: int | None = None
        self._given: tuple[Batch, ...] = ()
        self.has_unlabeled = False  # whether a run has met rows without a label
        self._begun: tuple[Batch, Iterator[Batch]] | None = None
        if self._source is None:
            X, y = self._target(whole_frame(X), y)
            self._given = (self._batch(X, read(X, 0), y, sample_weight),)
            if not len(self._given[0].counts.classes) and not blind:
                raise InputError(NO_WEIGHT if self._given[0].free is None else self.no_labels)
        else:
            self._y = y if self._named(y) or y is None else self._plain(y)
            self._weights = None if sample_weight is None else weight_values(sample_weight)

    @classmethod
    def of(cls, given: Sequence[Batch]) -> Batches:
        """Batches that are there already."""
        batches = cls.__new__(cls)
        batches._given, batches._begun = tuple(given), None
        batches.has_unlabeled = any(batch.free is not None for batch in given)
        return batches

    @property
    def first(self) -> Batch:
        """The first batch: a look at it begins the next run."""
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

    def _run(self) -> Iterator[Batch]:
        """All chunks, from the first on."""
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
            if len(batch.counts.classes) or batch.free is not None:
                used = used or bool(batch.counts.rows.any())
                yield batch
        self._check_rows(stop)
        if not used and not self._blind:
            raise InputError(NO_WEIGHT)

    def _target(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Rows without their target, and the target, where y names it."""
        return split_target(X, y)

    @staticmethod
    def _named(y: Any) -> bool:
        """Whether y names the target in X."""
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
        """Raise where chunks do not start again, or labels or weights are left over."""
        if self._rows not in (None, rows):
            raise InputError(f"chunks() yielded {self._rows} rows, and then {rows}. Hint: {AGAIN}")
        self._rows = rows
        for name, values in (("y", self._y), ("sample_weight", self._weights)):
            if isinstance(values, np.ndarray) and values.ndim and len(values) != rows:
                raise InputError(
                    f"X has {rows} rows and {name} has {len(values)}: "
                    f"Found input variables with inconsistent numbers of samples. Hint: {AGAIN}"
                )

    def _batch(self, X: Any, table: Table, y: Any, sample_weight: Any) -> Batch:
        """Classes are those with rows; a row of weight 0 may have any code."""
        if self._blind:
            return self._all_unlabeled(X, table, read_weights(sample_weight, table.rows, table.start))
        labels = encode_labels(y, table.rows, self._estimator, table.start, self._free, self._unlabeled)
        weights = read_weights(sample_weight, table.rows, table.start)
        if labels.missing is None:
            batch = Batch(X, table, Counts.of(labels.classes, labels.codes, weights), labels.codes, weights)
            return batch if self._every else batch.narrowed()
        return self._split(X, table, labels.classes, labels.codes, weights, labels.missing)

    def _split(
        self, X: Any, table: Table, classes: AnyArray, codes: Codes, weights: Array | None, missing: AnyArray
    ) -> Batch:
        """A batch of the labeled rows, which the codes are of, with the unlabeled rows beside it."""
        rows, others = np.flatnonzero(~missing), np.flatnonzero(missing)
        self.has_unlabeled = True
        free = UnlabeledRows(table.take(others), None if weights is None else weights[others])
        mine = None if weights is None or not len(rows) else weights[rows]
        batch = Batch(X, table.take(rows), Counts.of(classes, codes, mine), codes, mine, free)
        return batch if self._every else batch.narrowed()

    def _all_unlabeled(self, X: Any, table: Table, weights: Array | None) -> Batch:
        """A batch without any labeled row."""
        nothing: AnyArray = np.zeros(0, dtype=np.int64)
        return self._split(X, table, nothing, nothing, weights, np.ones(table.rows, dtype=bool))

    @staticmethod
    def _plain(y: Any) -> Any:
        """Labels of all chunks, which are cut as they come."""
        try:
            return label_values(y)
        except InputError:
            return np.array(list(y), dtype=object)  # some are missing


class TargetBatches(Batches):
    """Training rows whose y are numbers: tables have them as their last columns.

    The label of a row is that in one of the columns of X (`column` finds it in a table), or the same for all.
    """

    no_labels = "No row has a class: the column that classes names is empty. Hint: components=2, say, needs none."

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        read: Callable[[Any, int], Table],
        estimator: str,
        *,
        column: Callable[[Table], int | None],
        outputs: int | None = None,  # how many targets a row must have
        free: bool = False,
        blind: bool = False,
    ) -> None:
        self._column, self._outputs = column, outputs
        self._seen: dict[str, bool] = {}  # whether a run has met a value of each target
        super().__init__(X, y, sample_weight, read, estimator, free=free, blind=blind)
        if self._source is None and free:
            self._check_seen()

    def _check_rows(self, rows: int) -> None:
        super()._check_rows(rows)
        if self._free:
            self._check_seen()

    def _check_seen(self) -> None:
        """Raise for targets that no row has."""
        missing = [name for name, seen in self._seen.items() if not seen]
        if missing:
            raise InputError(
                f"Column {listed(missing)} of y: every cell is missing (NaN). Hint: leave out outputs that no row has."
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
            there = values.dtype.kind != "f" or all_finite(values) or not np.isnan(values).all()
            self._seen[name] = self._seen.get(name, False) or there
        both, column = beside(table, targets), self._column(table)
        weights = read_weights(sample_weight, table.rows, table.start)
        if self._blind:
            return self._all_unlabeled(X, both, weights)
        if column is None:
            codes: Codes = np.zeros(table.rows, dtype=np.int16)
            return Batch(X, both, Counts.of(np.zeros(1, dtype=np.int64), codes, weights), codes, weights).narrowed()
        return self._labelled(X, both, column, weights)

    def _labelled(self, X: Any, table: Table, column: int, weights: Array | None) -> Batch:
        """Rows by the labels in one of their columns; those without one stand beside the others."""
        (labels,) = table.labels([column])
        classes, codes = _class_array(labels.vocabulary, table.names[column]), labels.part(0, table.rows)
        missing = codes < 0
        if not missing.any():
            return Batch(X, table, Counts.of(classes, codes, weights), codes, weights).narrowed()
        if not self._free:
            raise InputError(
                f"Column {table.names[column]!r}, row {table.number(int(np.argmax(missing)))}: the class is missing, "
                "and only fit learns from such rows. Hint: leave them out."
            )
        return self._split(X, table, classes, codes[~missing], weights, missing)


def _class_array(labels: Sequence[Any], name: str) -> AnyArray:
    """The labels of a column as those of classes."""
    numbers = all(isinstance(label, bool | int | float) for label in labels)
    if numbers and any(label != np.floor(label) for label in labels):
        raise InputError(
            f"classes={name!r}: the column has fractions, {listed(labels, limit=3)}, which name no classes. Hint: "
            "without classes, y depends on the column as on the others."
        )
    if numbers and len(labels):
        return np.array(labels)
    classes = np.empty(len(labels), dtype=object)
    classes[:] = labels
    return classes


def _alike(table: Table, first: Table) -> Table:
    """A chunk with the columns of the first one, in their order; an error where it is of another kind."""
    if table.is_sparse != first.is_sparse:
        raise InputError(f"The chunk that begins with row {table.start} is sparse and others are not, or the reverse.")
    if set(table.names) != set(first.names):
        raise InputError(
            f"The chunk that begins with row {table.start} has the columns {listed(table.names)}, "
            f"but the first one has {listed(first.names)}."
        )
    return table.reordered(first.names)
