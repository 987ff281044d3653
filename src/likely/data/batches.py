"""Rows with their labels and weights in batches, which can be iterated over as often as needed.

Rows in memory are one batch. A source, an object with a method `chunks`, yields frames or arrays from the first row on
at every call; one chunk is held at a time. Fitting and prediction read all rows through this module.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from likely.data.frames import (
    check_targets_differ,
    input_names,
    names_column,
    rows_and_target,
    split_target,
    split_weights,
    target_names,
)
from likely.data.labels import encode_labels, label_values
from likely.data.part_sums import CountedChunks, PartSum
from likely.data.parts import Part, PartSource, RowsWithTargets, closed_after, source_of
from likely.data.row_draw import RowDraw
from likely.data.sources import alike, check_names, numbered, numbered_chunks
from likely.data.table import Table
from likely.data.validation import read_weights
from likely.errors import InputError
from likely.numerics.progress import RowProgress, row_progress
from likely.numerics.tree_sum import TreeSum
from likely.statistics.counts import Counts
from likely.typing import AnyArray, Array, Codes

Value = TypeVar("Value")
NOTHING: AnyArray = np.zeros(0, dtype=np.int64)  # labels, codes or rows
NO_WEIGHT = "All weights in sample_weight are zero: no row has any weight to fit on."


class WeightedRows:
    """Rows of a table with weights; None if all weights are 1."""

    __slots__ = ()
    table: Table
    weights: Array | None

    @property
    def used(self) -> AnyArray | None:
        """The rows with positive weight; None if all rows have one."""
        return None if self.weights is None or self.weights.all() else np.flatnonzero(self.weights)

    @property
    def used_rows(self) -> int:
        """The number of rows with positive weight."""
        return self.table.rows if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def row_weights(self) -> Array:
        """The weight of every row."""
        return np.ones(self.table.rows) if self.weights is None else self.weights


@dataclass(frozen=True, slots=True, eq=False)
class UnlabeledRows(WeightedRows):
    """Unlabeled rows and their weights."""

    table: Table
    weights: Array | None


@dataclass(frozen=True, slots=True, eq=False)
class Batch(WeightedRows):
    """Labeled rows with class counts, label codes and weights; and the unlabeled rows of the same chunk."""

    X: Any  # as the user passed it, without the target column
    table: Table
    counts: Counts
    codes: Codes
    weights: Array | None
    unlabeled: UnlabeledRows | None = None
    targets: tuple[Any, ...] = ()  # names of the columns that y was given by
    part: int = 0  # number of the part of a source, where the numbers of rows begin again in it
    empty_targets: frozenset[str] | None = None  # targets of a regression that have no value here

    def take(self, rows: AnyArray) -> Batch:
        """Some of the labeled rows; classes without rows are kept."""
        codes, weights = self.codes[rows], None if self.weights is None else self.weights[rows]
        counts = Counts.of(self.counts.classes, codes, weights)
        return Batch(self.X, self.table.take(rows), counts, codes, weights, targets=self.targets)

    def narrowed(self) -> Batch:
        """The same rows without the classes that have no row; no labeled rows where no class is left."""
        present = self.counts.rows > 0
        if present.all():
            return self
        kept = replace(self, counts=self.counts.select(present))
        if not present.any():
            return replace(kept, table=self.table.take(NOTHING), codes=NOTHING, weights=None)
        return replace(kept, codes=(np.cumsum(present) - 1).clip(0)[self.codes].astype(self.codes.dtype))

    @property
    def seen(self) -> PartSum:
        """What a pass over the rows of a part finds in these, without their sum."""
        labeled, unlabeled = bool(self.counts.rows.any()), self.unlabeled is not None
        return PartSum(None, labeled=labeled, unlabeled=unlabeled, empty_targets=self.empty_targets)


class Batches:
    """Training rows: X, y and weights as one batch, or as one batch for each chunk of X.

    y is an array or series for all rows, or the name of a column of X.
    """

    no_labels = "No row has a label. Use MixtureModel, which needs none."
    set_aside: tuple[str, ...] = ()  # identifiers in the table that these rows are a part of
    _source: PartSource | None = None
    _names: list[str] | None = None  # columns of the first chunk of a source
    _drawn: RowDraw | None = None  # some rows of a source

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
        check_targets_differ(y, sample_weight, self._named)
        X = source_of(X)
        self.inputs = input_names(X)  # the names of the columns of X, with targets; None if it has none
        if isinstance(X, PartSource):
            self._source, y, sample_weight = X.with_targets(y, sample_weight, self._plain)
            check_names(self._named(y) or y is None, sample_weight)
        self._y, self._weights = y, sample_weight
        self._rows: int | None = None
        self._given: tuple[Batch, ...] = ()
        self.has_unlabeled = False  # whether `total` has met unlabeled rows
        self._labeled_only = False
        self._first: Batch | None = None
        if self._source is None:
            X, y = rows_and_target(X, y)
            X, y = self._target(X, y)
            X, sample_weight = split_weights(X, sample_weight)
            batch = self._batch(X, read(X, 0), y, sample_weight)
            self._given = (replace(batch, targets=self._targets),)
            self.has_unlabeled = batch.unlabeled is not None
            if not len(self._given[0].counts.classes) and not ignore_labels:
                raise InputError(NO_WEIGHT if self._given[0].unlabeled is None else self.no_labels)

    @classmethod
    def of(cls, given: Sequence[Batch]) -> Batches:
        """Batches that are in memory."""
        batches = cls.__new__(cls)
        batches._given, batches._first, batches.inputs = tuple(given), None, None
        batches.has_unlabeled = any(batch.unlabeled is not None for batch in given)
        return batches

    @property
    def _targets(self) -> tuple[Any, ...]:
        """The names of the columns that y and the weights were given by."""
        return target_names(self._y, self._weights, self._named)

    @property
    def sampled(self) -> bool:
        """Whether choices are made by rows that are drawn at random."""
        return self._source is not None and self._source.sampled

    @property
    def in_chunks(self) -> bool:
        """Whether the rows are those of a source."""
        return self._source is not None

    @property
    def first(self) -> Batch:
        """The first batch."""
        if self._first is None:
            self._first = next(self._head() if self._source is not None else iter(self._given))
        return self._first

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._given) if self._source is None else self._run()

    def total(
        self,
        work: Callable[[Batch], Value],
        usable: Callable[[Batch], bool] | None = None,
        draw: bool = True,
        every: bool = False,
    ) -> Value | None:
        """The sum of work(batch) over all batches with labeled rows, or `every` batch; None if one is not usable.

        Parts of a source are read side by side, and added in a tree over the parts. Where another process reads them,
        `work` and its results are pickled. If `draw`, the same pass draws the rows of `sample`.
        """
        if self._source is None:
            found = part_sum(self._given, work, usable, every)
            self.has_unlabeled = self.has_unlabeled or found.unlabeled
            return found.total
        draws = RowDraw.empty(self._source.rows) if draw and self.sampled and self._drawn is None else None
        return self._total(self._source, work, usable, draws, every)

    def _total(
        self,
        source: PartSource,
        work: Callable[[Batch], Value],
        usable: Callable[[Batch], bool] | None = None,
        draws: RowDraw | None = None,
        every: bool = False,
    ) -> Value | None:
        """The sum of work(batch) over the batches of a source, some rows of which are drawn."""
        self._names = self._features(self.first.table)
        sums, seen = TreeSum[Any](), PartSum(None, drawn=draws)
        with (
            row_progress(source.rows) as progress,
            closing(source.sums(PartWork(self.without_rows(), work, usable, draws, every, progress))) as results,
        ):
            for part, level in results:
                if part is None:
                    sums.add(None, level)
                    continue
                if not part.usable:
                    return None
                sums.add(part.total, level)
                progress.summed(part.rows)
                seen += replace(part, total=None)
                self.has_unlabeled = self.has_unlabeled or part.unlabeled
        self._check_used(seen)
        self._drawn = self._drawn or seen.drawn
        return sums.total()

    @property
    def sample(self) -> Batches:
        """The rows that choices are made by: up to 20,000, drawn at random, or all."""
        return self.in_memory if self.sampled else self

    @property
    def in_memory(self) -> Batches:
        """One batch: all rows where they are in memory or few, otherwise up to 20,000 rows drawn at random."""
        if self._source is None:
            return self
        if self._drawn is None:
            self._total(self._source, _nothing, draws=RowDraw.empty(self._source.rows))
        assert self._drawn is not None
        some = self.without_rows()
        some._given = tuple(some._read_chunks(iter([(self._drawn.frame(), 0)])))
        some.has_unlabeled = any(batch.unlabeled is not None for batch in some._given)
        return some

    def without_rows(self) -> Batches:
        """The same options without the source."""
        other = copy.copy(self)
        other._source, other._first, other._drawn = None, None, None
        return other

    @property
    def known(self) -> Batch:
        """Rows that are in memory, or can be had without a pass: all, those that were drawn, or the first."""
        return self.first if self._drawn is None else self.in_memory.first

    def read_by(self, read: Callable[[Any, int], Table]) -> Batches:
        """The same rows of a source, read in another way."""
        other = copy.copy(self)
        other._read, other._first, other._names = read, None, None
        return other

    def without_unlabeled(self) -> Batches:
        """The labeled rows alone."""
        labeled = copy.copy(self)
        labeled._first, labeled.has_unlabeled, labeled._labeled_only = None, False, True
        labeled._given = tuple(replace(batch, unlabeled=None) for batch in self._given)
        return labeled

    def check_unlabeled_weight(self) -> None:
        """Raise where no unlabeled row has positive weight."""
        weights = (batch.unlabeled.weights for batch in self if batch.unlabeled is not None)
        if not any(weight is None or weight.any() for weight in weights):
            raise InputError(NO_WEIGHT)

    def _head(self) -> Iterator[Batch]:
        """Batches of the first rows of a source; all batches follow, for heads without any."""
        assert self._source is not None
        yield from self._read_chunks(numbered_chunks(self._source.head()))
        yield from self._run()

    def _run(self) -> Iterator[Batch]:
        """All chunks as batches, from the first row on."""
        seen, chunks = PartSum(None), CountedChunks(numbered(self._source))
        for batch in self._read_chunks(iter(chunks)):
            seen += batch.seen
            yield batch
        self._check_used(replace(seen, rows=chunks.rows))

    def _read_chunks(self, chunks: Iterator[tuple[Any, int]]) -> Iterator[Batch]:
        """Chunks, with the numbers of their first rows, as batches."""
        names, sparse = self._names, None
        with closed_after(chunks):
            for chunk, start in chunks:
                X, y, weights = chunk.fields if isinstance(chunk, RowsWithTargets) else (chunk, None, None)
                X, y = (X, y) if self._y is None else self._target(X, self._y)
                X, weights = (X, weights) if self._weights is None else split_weights(X, self._weights)
                table = self._read(X, start)
                if names is not None:
                    table = alike(table, names, table.is_sparse if sparse is None else sparse)
                names, sparse = table.names, table.is_sparse
                batch = self._batch(X, table, y, weights)
                if len(batch.counts.classes) or batch.unlabeled is not None:
                    yield replace(batch, targets=self._targets)

    def _check_used(self, seen: PartSum) -> None:
        """Raise where the number of rows has changed, and where no row has a label or any weight."""
        assert self._source is not None
        before = self._source.rows if self._rows is None else self._rows
        if before is not None and before != seen.rows:
            raise self._source.changed(before, seen.rows)
        self._rows = seen.rows
        self._check_targets(seen.empty_targets)
        if not seen.labeled and not self._ignore_labels:
            raise InputError(self.no_labels if seen.unlabeled else NO_WEIGHT)

    @staticmethod
    def _features(table: Table) -> list[str]:
        """The names of the columns of X in the table of a batch."""
        return table.names

    def _check_targets(self, empty: frozenset[str] | None) -> None:
        """Raise for targets of a regression without any value."""

    def _target(self, X: Any, y: Any) -> tuple[Any, Any]:
        """X without its target column, and the target, where y is its name."""
        return split_target(X, y)

    @staticmethod
    def _named(y: Any) -> bool:
        """Whether y is the name of a column of X."""
        return names_column(y)

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
            unlabeled = UnlabeledRows(table.take(others), None if weights is None else weights[others])
        mine = None if weights is None or not len(rows) else weights[rows]
        batch = Batch(X, table.take(rows), Counts.of(classes, codes, mine), codes, mine, unlabeled)
        return batch if self._keep_all_classes else batch.narrowed()

    def _all_unlabeled(self, X: Any, table: Table, weights: Array | None) -> Batch:
        """A batch without any labeled row."""
        return self._split(X, table, NOTHING, NOTHING, weights, np.ones(table.rows, dtype=bool))

    @staticmethod
    def _plain(y: Any) -> Any:
        """Labels of all rows as an array, which is cut into the labels of the chunks; None if y is a name."""
        if names_column(y):
            return None
        try:
            return label_values(y)
        except InputError:
            return np.array(list(y), dtype=object)  # some are missing


def part_sum(
    batches: Iterable[Batch],
    work: Callable[[Batch], Any],
    usable: Callable[[Batch], bool] | None,
    every: bool,
) -> PartSum:
    """The sum of work(batch) over batches with labeled rows, or every batch, until one of them is not usable."""
    sums, seen = TreeSum[Any](), PartSum(None)
    for batch in batches:
        seen += batch.seen
        if not batch.table.rows and not every:
            continue
        if usable is not None and not usable(batch):
            return PartSum(None, usable=False)
        sums.add(work(batch))
    return replace(seen, total=sums.total())


@dataclass(frozen=True, slots=True, eq=False)
class PartWork:
    """The work on one part of a source: its rows are read, some of them drawn, and all of them summed."""

    batches: Batches  # how rows are read
    work: Callable[[Batch], Any]
    usable: Callable[[Batch], bool] | None
    draw: RowDraw | None
    every: bool
    progress: RowProgress

    def __call__(self, number: int, part: Part) -> PartSum:
        drawn = None if self.draw is None else self.draw.of_part(number)
        chunks = CountedChunks(numbered_chunks(part.chunks(), part.start), drawn, self.progress)
        begins_again = number if part.start == 0 else 0
        with closed_after(self.batches._read_chunks(iter(chunks))) as read:
            batches = (replace(batch, part=begins_again) for batch in read)
            found = part_sum(batches, self.work, self.usable, self.every)
        return replace(found, rows=chunks.rows, drawn=None if drawn is None else drawn.rows.packed())


def _nothing(batch: Batch) -> None:
    """The work of a pass that only draws rows."""
