"""Design matrix of a softmax regression: features φ(x), targets and weights, and sums over the rows.

Targets are class codes, or class proportions (soft targets). Features are the columns of tables, centred and scaled
where this avoids rounding errors; sparse rows are used as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse

from likely.data.batches import Batch, Batches
from likely.data.frames import as_narwhals, is_frame
from likely.data.row_blocks import evaluate
from likely.data.sources import is_source
from likely.data.table import Reader, Table
from likely.data.target_checks import warn_target
from likely.data.validation import read_table
from likely.errors import InputError, MissingCellError, listed
from likely.families.estimation import Estimation
from likely.families.gaussian.family import Gaussian
from likely.model.plans import Plan
from likely.model.specification import Specification
from likely.numerics.arrays import all_finite, check_finite, float_rows
from likely.numerics.coordinates import Coordinates
from likely.numerics.linalg import independent_columns
from likely.numerics.special import EPS
from likely.numerics.tree_sum import group_sum
from likely.statistics.counts import Counts, positions
from likely.statistics.joint import JointStatistics
from likely.statistics.moments import Moments
from likely.typing import AnyArray, Array, Index

MAX_FACTORED = 3000  # parameters, or columns, up to which matrices are factored
FAR = 10.0  # columns whose mean is more standard deviations from 0 are centred
SMALL_TABLE = 2_000_000  # tables of up to this many values are always centred
MISSING_HINT = (
    "use GenerativeClassifier or NaiveBayes, which support missing values, or impute them with likely.Imputer"
)
Work = Callable[[Any, AnyArray, Array | None], Any]  # (rows, targets, weights) of a row block


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of one batch: their table, targets as codes (n,) or class proportions (n, K), and weights."""

    table: Table
    targets: AnyArray
    weights: Array | None


class DesignRows(ABC):
    """The rows of a design. Every iteration starts from the first row."""

    @abstractmethod
    def __iter__(self) -> Iterator[Part]:
        """All rows, in order."""

    def total(self, work: Callable[[Part], Any]) -> Any:
        """The sum of work(part) over all parts."""
        return group_sum([work(part) for part in self])

    def some(self) -> DesignRows:
        """The rows that samples are drawn from."""
        return self


@dataclass(frozen=True, slots=True, eq=False)
class GivenRows(DesignRows):
    """Rows in memory."""

    parts: tuple[Part, ...]

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class BatchRows(DesignRows):
    """Training rows in batches, with the codes of their classes, or with soft targets.

    They are pickled without rows: another process has the rows of a part at hand.
    """

    batches: Batches
    classes: AnyArray
    soft: Array | None

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchRows, (self.batches.without_rows(), self.classes, self.soft)

    def __iter__(self) -> Iterator[Part]:
        return map(self._part, self.batches)

    def total(self, work: Callable[[Part], Any]) -> Any:
        return self.batches.total(lambda batch: work(self._part(batch)), draw=False)

    def some(self) -> DesignRows:
        return BatchRows(self.batches.sample, self.classes, self.soft) if self.batches.sampled else self

    def _part(self, batch: Batch) -> Part:
        """The rows of a batch with positive weight."""
        targets: Any = batch.codes if self.soft is None else self.soft
        if self.soft is None and len(batch.counts.classes) < len(self.classes):
            targets = positions(self.classes, batch.counts.classes)[batch.codes]
        used = batch.used
        if used is None:
            return Part(batch.table, targets, batch.weights)
        return Part(batch.table.take(used), targets[used], batch.row_weights[used])


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The features φ(x) of all rows, in local coordinates about an origin. The intercept, if any, comes last.

    `columns` are the columns that are read, None for all.
    """

    source: DesignRows
    rows: int
    classes: int
    width: int
    intercept: bool
    columns: Index | None
    coordinates: Coordinates
    origin: Array | None

    @property
    def size(self) -> int:
        """Number of coefficients of a class."""
        return self.width + self.intercept

    def with_columns(self, kept: Index) -> Design:
        """The same rows with some of all columns."""
        return replace(self, width=len(kept), columns=None if len(kept) == self.width else kept)

    def local(self, rows: Any) -> Any:
        """Rows in local coordinates; sparse rows are unchanged."""
        if scipy.sparse.issparse(rows):
            return rows
        return float_rows(rows if self.coordinates.trivial else self.coordinates.to_local(rows), self.origin)

    def total(self, work: Work, width: int) -> Any:
        """The sum of work(rows, targets, weights) over all row blocks, by one pass over the rows."""
        return self.source.total(lambda part: sum(self._over_part(part, work, width)))

    def over_blocks(self, work: Work, width: int) -> list[Any]:
        """work(rows, targets, weights) of all row blocks, in order."""
        results: list[Any] = []
        for part in self.source:
            results += self._over_part(part, work, width)
        return results

    def _over_part(self, part: Part, work: Work, width: int) -> list[Any]:
        read, found = self._reader(part.table), {}

        def block(start: int, stop: int) -> None:
            weights = None if part.weights is None else part.weights[start:stop]
            found[start] = work(self.local(read(start, stop)), part.targets[start:stop], weights)

        evaluate(part.table, block, part.table.cells(width, sparse=True))
        return [found[start] for start in sorted(found)]

    def _reader(self, table: Table) -> Reader:
        """Reader of row blocks of the columns in use; there may be none."""
        if not self.width:
            return lambda start, stop: np.zeros((stop - start, 0))
        return table.numbers(self.columns, sparse=True)

    def pieces(self, table: Table, index: AnyArray) -> Any:
        """Some rows of the columns in use."""
        return next(table.pieces([index], self.columns, sparse=True)) if self.width else np.zeros((len(index), 0))

    def sample(self, count: int, rng: np.random.Generator) -> Design:
        """A random sample of the rows, in memory, weighted to represent all rows."""
        rows, targets, weights = [], [], []
        some = self.source.some()
        available = self.rows if some is self.source else sum(part.table.rows for part in some)
        for part in some:
            n = part.table.rows
            index = np.sort(rng.choice(n, min(max(round(n * count / available), 1), n), replace=False))
            rows.append(self.pieces(part.table, index).copy())
            targets.append(part.targets[index])
            own = np.ones(len(index)) if part.weights is None else part.weights[index]
            weights.append(own * (n / len(index)) * (self.rows / available))
        taken = scipy.sparse.vstack(rows, format="csr") if scipy.sparse.issparse(rows[0]) else np.concatenate(rows)
        only = Part(read_table(taken), np.concatenate(targets), np.concatenate(weights))
        return replace(self, source=GivenRows((only,)), rows=taken.shape[0], columns=None)

    def sums(self) -> Array:
        """Σ w·t·φ of all classes, (classes, size)."""

        def work(rows: Any, targets: AnyArray, weights: Array | None) -> Array:
            proportions: Any = targets.astype(np.float64, copy=False)
            if targets.ndim == 1:
                place = targets, np.arange(len(targets))
                proportions = scipy.sparse.csr_array((np.ones(len(targets)), place), (self.classes, len(targets))).T
            if weights is not None:
                proportions = proportions * weights[:, None]
            out = np.empty((self.classes, self.size))
            product = proportions.T @ rows
            out[:, : self.width] = product.toarray() if scipy.sparse.issparse(product) else product
            if self.intercept:
                out[:, -1] = np.asarray(proportions.sum(axis=0)).ravel()
            return out

        return self.total(work, 2 * self.width)

    def squares(self) -> Array:
        """Σ w·φ² of all features and the intercept, (size,)."""

        def work(rows: Any, targets: AnyArray, weights: Array | None) -> Array:
            w = np.ones(len(targets)) if weights is None else weights
            if scipy.sparse.issparse(rows):
                squares = np.asarray(rows.multiply(rows).T @ w).ravel()
            else:
                squares = np.einsum("nd,nd,n->d", rows, rows, w)
            return np.append(squares, w.sum()) if self.intercept else squares

        return self.total(work, 2 * self.width)

    def gram(self) -> Array:
        """Σ w·φφᵀ, (size, size); only its diagonal, (size,), for many columns."""
        if self.size > MAX_FACTORED:
            return self.squares()

        def work(rows: Any, targets: AnyArray, weights: Array | None) -> Array:
            full = self.with_intercept(rows)
            return full.T @ (full if weights is None else full * weights[:, None])

        return self.total(work, 2 * self.size)

    def with_intercept(self, rows: Any) -> Array:
        """Dense rows, with a 1 for the intercept."""
        rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
        return np.concatenate([rows, np.ones((len(rows), 1))], axis=1) if self.intercept else rows

    def scores(self, rows: Any, B: Array) -> Array:
        """B·φ, (classes − 1, n)."""
        linear = np.ascontiguousarray(B[:, : self.width])
        sparse = scipy.sparse.issparse(rows)
        scores = np.ascontiguousarray((rows @ linear.T).T) if sparse else np.matmul(linear, rows.T)
        if self.intercept:
            scores += B[:, -1:]
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class DesignProfile:
    """Results of a first pass: classes, class weights, and moments of the features with pooled scatter.

    `moments` is None if features are sparse or too many.
    """

    classes: AnyArray
    weight: Array
    rows: int
    names: list[str]
    first: Batch
    source: DesignRows
    moments: Moments | None

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return float(self.weight.sum())

    def design(self, intercept: bool, only_independent: bool) -> tuple[Design, Array]:
        """The design, with linearly independent columns only if requested, and Σ w·t·φ of all classes but the first."""
        width, moments = len(self.names), self.moments
        design = Design(
            self.source, self.rows, len(self.classes), width, intercept, None, Coordinates.plain(width), None
        )
        if moments is None:
            if only_independent and width <= MAX_FACTORED:
                design = self._independent(design)
            return design, design.sums()[1:]
        moments = moments.settled()
        mean, scatter, coordinates = moments.mean, moments.scatter[0], moments.coordinates
        centre = self.weight @ mean / self.total
        between = mean - centre if intercept else mean
        scatter = scatter + (between * self.weight[:, None]).T @ between
        kept = np.arange(width)
        if only_independent:
            kept, _ = independent_columns(scatter)
            mean, centre, scatter = mean[:, kept], centre[kept], scatter[np.ix_(kept, kept)]
        standard_deviation = np.sqrt(np.diagonal(scatter) / self.total)
        far = bool(np.any(np.abs(centre) > FAR * standard_deviation))
        origin = centre if intercept and (far or self.rows * width <= SMALL_TABLE) else None
        means = mean if origin is None else mean - origin
        if intercept:
            means = np.column_stack([means, np.ones(len(means))])
        sums = self.weight[:, None] * means
        return replace(design.with_columns(kept), coordinates=coordinates.take(kept), origin=origin), sums[1:]

    def _independent(self, design: Design) -> Design:
        """The same rows with linearly independent columns only."""
        gram = design.gram()
        inner = gram[: design.width, : design.width]
        if design.intercept:
            inner = inner - np.outer(gram[-1, :-1], gram[-1, :-1]) / gram[-1, -1]
            constant = np.diagonal(inner) <= 64.0 * EPS * np.diagonal(gram)[:-1]  # up to rounding
            inner[constant] = inner[:, constant] = 0.0
        kept, _ = independent_columns(inner)
        return replace(design.with_columns(kept), coordinates=Coordinates.plain(len(kept)))

    @classmethod
    def of(cls, phi: Any, y: Any, rows_with: Callable[[Any], Batches]) -> DesignProfile:
        """Make a first pass over the rows, which are made by a function of their labels."""
        soft = None if is_source(phi) else class_proportions(y)
        batches = rows_with(y if soft is None else np.zeros(len(soft[1]), dtype=np.int64))
        first = batches.first
        names = list(first.table.names)
        wide = first.table.is_sparse or first.table.width > MAX_FACTORED
        plans = () if wide else (Plan(None, Gaussian("full", shared=True)),)
        specification = Specification(tuple(names), plans, None, Estimation.MLE)

        def work(batch: Batch) -> JointStatistics:
            check_values(batch.table if batch.used is None else batch.table.take(batch.used))
            return _collected(specification, batch, soft)

        total = batches.total(work)
        assert total is not None
        classes = total.counts.classes
        if soft is None:
            warn_target(total.counts)
        if len(classes) < 2:
            raise InputError(f"y has one class, {classes.tolist()[0]!r}; a classifier needs at least two.")
        source = BatchRows(batches, classes, None if soft is None else soft[1])
        moments = None if wide else total.blocks[0]
        rows = int(total.counts.rows.sum()) if soft is None else int(np.count_nonzero(first.row_weights))
        return cls(classes, total.counts.weight, rows, names, first, source, moments)


def _collected(specification: Specification, batch: Batch, soft: tuple[AnyArray, Array] | None) -> JointStatistics:
    """The statistics of a batch; with soft targets, each row contributes to every class by its proportion."""

    def collect(part: Batch) -> JointStatistics:
        return specification.summarise(part) if specification.plans else JointStatistics(part.counts, ())

    if soft is None:
        return collect(batch)
    classes, targets = soft
    parts = []
    for k in range(len(classes)):
        weights, codes = targets[:, k] * batch.row_weights, np.full(len(targets), k)
        parts.append(replace(batch, counts=Counts.of(classes, codes, weights), codes=codes, weights=weights))
    return reduce(add, map(collect, parts))


def check_values(table: Table) -> None:
    """Raise for the first value that is missing, infinite or beyond 1e140."""
    read = table.numbers(None, sparse=True)

    def work(start: int, stop: int) -> None:
        rows = read(start, stop)
        if not scipy.sparse.issparse(rows):
            check_finite(rows)
        elif not all_finite(rows.data):
            check_finite(rows.toarray())

    try:
        evaluate(table, work, table.cells(table.width, sparse=True))
    except MissingCellError as error:
        raise missing_value_error(error.row, error.column, error.value, table.names[error.column]) from None


def missing_value_error(row: int, column: int, value: object, name: str | None = None) -> MissingCellError:
    """The error for a missing value in a discriminative model, which has no density of the features."""
    return MissingCellError(row, column, value, "is missing (NaN)", MISSING_HINT, name)


def class_proportions(y: Any) -> tuple[AnyArray, Array] | None:
    """Soft targets: the classes, and their proportions in every row, (rows, classes); None if y are labels."""
    if is_frame(y):
        frame = as_narwhals(y)
        labels, values = list(frame.columns), frame.to_numpy()
    else:
        values = np.asarray(y) if isinstance(y, np.ndarray | list | tuple) else np.zeros(0)
        labels = list(range(values.shape[1])) if values.ndim == 2 else []
    if values.ndim != 2 or values.shape[1] < 2:
        return None
    if values.dtype.kind not in "biuf":
        raise InputError(
            f"y has {values.shape[1]} columns of type {values.dtype}: it must have one label, or numeric class "
            "proportions, for each row."
        )
    proportions = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        bad = ~(np.all(proportions >= 0.0, axis=1) & (np.abs(proportions.sum(axis=1) - 1.0) <= 1e-6))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"y, row {row}: {proportions[row].tolist()} are not class proportions, which add up to 1.")
    if len({type(label) for label in labels}) > 1:
        raise InputError(f"y has columns named {listed(labels)}: the names of classes must have one type.")
    order = sorted(range(len(labels)), key=labels.__getitem__)
    return np.array([labels[j] for j in order]), proportions[:, order]
