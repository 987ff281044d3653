"""Training rows of a regression in batches: targets are the last columns of the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likely.data.batches import Batch, Batches
from likely.data.frames import is_frame, names_columns, split_targets
from likely.data.table import Table, features_of, join_targets
from likely.data.validation import read_targets, read_weights
from likely.errors import InputError, listed
from likely.numerics.arrays import all_finite
from likely.statistics.counts import Counts
from likely.typing import AnyArray, Array, Codes


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
        column: Callable[[Sequence[str]], int | None],
        outputs: int | None = None,  # the required number of targets
        allow_unlabeled: bool = False,
        ignore_labels: bool = False,
    ) -> None:
        self._column, self._outputs = column, outputs
        super().__init__(
            X, y, sample_weight, read, estimator, allow_unlabeled=allow_unlabeled, ignore_labels=ignore_labels
        )
        if self._source is None:
            self._check_targets(self._given[0].empty_targets)

    @staticmethod
    def _features(table: Table) -> list[str]:
        return table.names[: features_of(table)]

    def _check_targets(self, empty: frozenset[str] | None) -> None:
        if empty and self._allow_unlabeled:
            raise InputError(
                f"Column {listed(sorted(empty))} of y: all values are missing (NaN). Drop outputs without any value."
            )

    def _target(self, X: Any, y: Any) -> tuple[Any, Any]:
        return split_targets(X, y)

    @staticmethod
    def _named(y: Any) -> bool:
        return names_columns(y)

    @staticmethod
    def _plain(y: Any) -> Any:
        return None if names_columns(y) else y if is_frame(y) else np.asarray(y)

    def _batch(self, X: Any, table: Table, y: Any, sample_weight: Any) -> Batch:
        targets = read_targets(y, self._estimator, table.start, self._y if isinstance(self._y, str) else None)
        if targets.rows != table.rows:
            raise InputError(
                f"X has {table.rows} rows and y has {targets.rows}: "
                "Found input variables with inconsistent numbers of samples."
            )
        if self._outputs not in (None, targets.width):
            raise InputError(f"y has {targets.width} columns, but the model was fitted with {self._outputs}.")
        empty = frozenset(name for j, name in enumerate(targets.names) if _is_empty(targets.column(j)))
        both, column = join_targets(table, targets), self._column(table.names)
        weights = read_weights(sample_weight, table.rows, table.start)
        if self._ignore_labels:
            batch = self._all_unlabeled(X, both, weights)
        elif column is None:
            codes: Codes = np.zeros(table.rows, dtype=np.int16)
            batch = Batch(X, both, Counts.of(np.zeros(1, dtype=np.int64), codes, weights), codes, weights).narrowed()
        else:
            batch = self._labeled(X, both, column, weights)
        return replace(batch, empty_targets=empty)

    def _labeled(self, X: Any, table: Table, column: int, weights: Array | None) -> Batch:
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


def _is_empty(values: AnyArray) -> bool:
    """Whether all values are missing."""
    return values.dtype.kind == "f" and not all_finite(values) and bool(np.isnan(values).all())


def _class_array(labels: Sequence[Any], name: str) -> AnyArray:
    """The values of a column as class labels."""
    numbers = all(isinstance(label, bool | int | float) for label in labels)
    if numbers and any(label != np.floor(label) for label in labels):
        raise InputError(
            f"classes={name!r}: the column holds fractions, {listed(labels, limit=3)}, which are not labels. Leave "
            "classes=None to use the column as a feature."
        )
    if numbers and len(labels):
        return np.array(labels)
    classes = np.empty(len(labels), dtype=object)
    classes[:] = labels
    return classes
