"""Statistics that a database or lazy frame computes itself: sums by class leave it, and no rows do.

Columns with a Gaussian: with a first mean m of each class, the engine sums w, w·(x − m) and w·(x − m)². Then

    mean = m + Σw(x − m) / Σw,        scatter = Σw(x − m)² − (Σw(x − m))² / Σw,

which keep their digits where |m| is far larger than the standard deviation. Discrete columns: the engine counts every
value in every class. Each of these counts is then a weighted row in which all other columns are missing, and families
sum such rows as they sum any others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from likely.data.batches import NO_WEIGHT, Batches
from likely.data.columns import check_names_of_fit
from likely.data.dictionaries import is_text
from likely.data.frames import FrameSchema, check_targets_differ, names_column, target_names
from likely.data.labels import encode_labels
from likely.data.sources import check_names, no_rows
from likely.data.validation import check_total_weight, read_table
from likely.engines.base import without_views
from likely.engines.scan import Scan
from likely.errors import CellError, InputError, InputTypeError, SourceError, amount, listed, nearest
from likely.model.plans import Plan
from likely.model.specification import Specification
from likely.statistics.counts import Counts, positions, repeated
from likely.statistics.joint import JointStatistics
from likely.statistics.moments import Moments, Sharing
from likely.typing import Array

LABEL, WEIGHT, ROWS, TOTAL = "label", "weight", "rows", "total"  # columns of the queries; features are x0, x1, ...
SUMS = ("n", "w", "m", "s", "q", "low", "high")  # of a column in each class: see `_shifted_sums`
MOST_COLUMNS = 50  # of a query: the time that DuckDB needs to plan one grows faster than the number of its columns
EXACT = 2.0**53  # larger integers lose digits as doubles
SMALLEST = 1e-290  # sums of squares below this have lost digits
REMEDY = "Leave pushdown out, or scale the column in the query."


@dataclass(frozen=True, slots=True, eq=False)
class EngineRows:
    """Rows in an engine: the names of their columns of features, labels and weights."""

    scan: Scan
    names: tuple[str, ...]
    y: Any
    weight: str | None
    estimator: str
    unlabeled: Any = None  # a label that marks unlabeled rows

    @classmethod
    def of(cls, scan: Scan, y: Any, sample_weight: Any, estimator: str, unlabeled: Any = None) -> EngineRows:
        """The rows of a scan; y and the weights must be names of its columns."""
        check_targets_differ(y, sample_weight)
        check_names(names_column(y), sample_weight)
        targets = target_names(y, sample_weight)
        for name in targets:
            if name not in scan.columns:
                raise InputError(f"X has no column {name!r}. {nearest(str(name), scan.columns)}")
        names = tuple(name for name in scan.columns if name not in targets)
        return cls(scan, names, y, sample_weight, estimator, unlabeled)

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the columns of labels and weights."""
        return target_names(self.y, self.weight)

    def schema(self) -> FrameSchema:
        """Names and types of the features."""
        with self.scan.lazy() as frame:
            return FrameSchema.of(nw.from_native(frame).select(*self.names).head(0).collect().to_native())

    def header(self) -> Batches:
        """One row without values, for all that depends on the names of the columns alone."""
        import pyarrow as pa

        row = pa.table({name: pa.array([None], pa.float64()) for name in self.names})
        return Batches(row, [0], None, read_table, self.estimator)

    def statistics(self, specification: Specification) -> JointStatistics:
        """The statistics of all rows."""
        kinds = [_kind(plan, specification.columns(plan)) for plan in specification.plans]
        check_names_of_fit(self.names, specification.names, specification.set_aside)
        with self.scan.lazy() as native:
            query = _Queries(replace(self, names=specification.names), nw.from_native(native), specification)
            counts = query.counts()
            plans = list(zip(specification.plans, kinds, strict=True))
            parts = {
                kind: replace(specification, plans=tuple(plan for plan, each in plans if each == kind))
                for kind in kinds
            }
            found = {
                kind: iter(query.moments(part, counts) if kind == "moments" else query.values(part, counts))
                for kind, part in parts.items()
            }
        return JointStatistics(counts, tuple(next(found[kind]) for kind in kinds))


def _kind(plan: Plan, names: Sequence[str]) -> str:
    """How the engine sums a block: "moments" or "values"."""
    table = plan.joint and plan.family._reads_categories and len(names) > 1  # of all combinations of categories
    kind = None if table else plan.collector._engine_sums
    if kind is None:
        what = f"{plan.family.describe()}{' of all combinations' if table else ''}"
        raise InputError(
            f"Column {listed(names)}: {what} needs rows, and this scan has pushdown=True. The database sums "
            "independent columns with the families Gaussian (covariance 'diagonal', 'spherical' or 'identity'), "
            "Bernoulli, Categorical, Poisson, NegativeBinomial and Geometric. Declare one of them, or leave pushdown "
            "out."
        )
    return kind


class _Queries:
    """The queries on the rows of a frame that have a positive weight."""

    def __init__(self, given: EngineRows, frame: Any, specification: Specification) -> None:
        self._given = given
        self._types = dict(frame.collect_schema())
        used = [name for plan in specification.plans for name in specification.columns(plan)]
        self._cells = {name: f"x{given.names.index(name)}" for name in used}
        kind = None if given.weight is None else self._types[given.weight]
        if kind is not None and not (kind.is_numeric() or kind == nw.Boolean):
            raise InputTypeError(f"sample_weight={given.weight!r} has the type {kind}, and weights are numbers.")
        weight = nw.lit(1.0) if given.weight is None else nw.col(given.weight).cast(nw.Float64)
        rows = frame.select(
            nw.col(given.y).alias(LABEL),
            weight.alias(WEIGHT),
            *(nw.col(name).alias(cell) for name, cell in self._cells.items()),
        )
        self._check(rows)
        for plan in specification.plans:
            if not plan.family._reads_categories:
                self._check_types(specification.columns(plan), plan, rows)
        self._rows = rows.filter(nw.col(WEIGHT) > 0.0)
        counted = self._rows.group_by(LABEL).agg(nw.len().alias(ROWS), nw.col(WEIGHT).sum().alias(TOTAL))
        self._classes = _collected(counted)

    def _check(self, rows: Any) -> None:
        """Raise for rows without labels, and for weights that are no weights."""
        given = self._given
        found = _collected(
            rows.select(
                nw.len().alias("all"),
                _missing(LABEL, self._types[given.y]).cast(nw.Int64).sum().alias("unlabeled"),
                _missing(WEIGHT, nw.Float64()).cast(nw.Int64).sum().alias("without"),
                nw.col(WEIGHT).min().alias("low"),
                nw.col(WEIGHT).max().alias("high"),
                nw.col(WEIGHT).sum().alias("total"),
            )
        )
        n, unlabeled, without, low, high, total = (column[0].as_py() for column in found.columns)
        if not n:
            raise no_rows(given.scan)
        if unlabeled:
            raise self._unlabeled(unlabeled)
        if without or not (low >= 0.0 and high < np.inf):
            what = amount(without, "missing value", "missing values") if without else f"values from {low} to {high}"
            raise InputError(f"sample_weight={given.weight!r} has {what}. Weights must be finite numbers >= 0.")
        if high == 0.0:
            raise InputError(NO_WEIGHT)
        check_total_weight(total)

    def _check_types(self, names: Sequence[str], plan: Plan, rows: Any) -> None:
        """Raise for columns of text, times or bits, which an engine might convert to numbers."""
        for name in names:
            kind = self._types[name]
            empty = kind == nw.Unknown and not _collected(rows.select(nw.col(self._cells[name]).count()))[0][0].as_py()
            if not (kind.is_numeric() or kind == nw.Boolean or empty):
                shown = "a type that cannot be summed" if kind == nw.Unknown else f"the type {kind}"
                family = type(plan.family).__name__
                remedy = "Declare Categorical() for it, or convert it" if is_text(kind) else "Convert it"
                raise InputTypeError(f"Column {name!r} has {shown}, and {family} needs numbers. {remedy} in the query.")

    def _unlabeled(self, rows: int) -> InputError:
        return InputError(
            f"{amount(rows, 'row has', 'rows have')} no label in {self._given.y!r}: EM over unlabeled rows reads rows, "
            "and this scan has pushdown=True. Select the labeled rows, or leave pushdown out."
        )

    def counts(self) -> Counts:
        """Rows and weights of the classes."""
        given, found = self._given, self._classes
        labels = encode_labels(found[LABEL], len(found), given.estimator)
        at = np.argsort(labels.codes)
        counts = Counts(labels.classes, _floats(found[ROWS])[at].astype(np.int64), _floats(found[TOTAL])[at])
        if given.unlabeled is not None and given.unlabeled in counts.classes.tolist():
            raise self._unlabeled(int(counts.rows[counts.classes.tolist().index(given.unlabeled)]))
        return counts

    def _check_rows(self, found: Any, counts: Counts) -> None:
        """Raise where a query has met other rows than the first one."""
        rows = np.zeros(len(counts.classes))
        labels = encode_labels(found[LABEL], len(found), self._given.estimator)
        place = positions(counts.classes, labels.classes)
        if np.all(place >= 0):
            np.add.at(rows, place[labels.codes], _floats(found[ROWS]))
        if not np.array_equal(rows, counts.rows):
            raise SourceError(
                f"The rows of {self._given.scan.description} have changed between two queries. Copy rows that change "
                "while a model is fitted into a table of their own."
            )

    # -- columns of numbers

    def moments(self, specification: Specification, counts: Counts) -> list[Moments]:
        """Statistics of columns with a Gaussian."""
        names = [name for plan in specification.plans for name in specification.columns(plan)]
        found = [self._sums(names[i : i + MOST_COLUMNS], counts) for i in range(0, len(names), MOST_COLUMNS)]
        parts = {word: np.concatenate([part[word] for part in found], axis=1) for word in SUMS}
        for j, name in enumerate(names):
            column = {word: part[:, j] for word, part in parts.items()}
            _check_numbers(name, column, whole=self._types[name].is_integer())
        joint, blocks = _moments_of(parts, counts), []
        for plan in specification.plans:
            places = np.array([names.index(name) for name in specification.columns(plan)])
            blocks.append(_by_class(joint.take(places), counts).pool(plan.family._sharing()))
        return blocks

    def _sums(self, names: Sequence[str], counts: Counts) -> dict[str, Array]:
        """The sums of some columns, (classes, columns), 0 where all values are missing."""
        found = _collected(_shifted_sums(self._rows, [self._cells[name] for name in names]))
        self._check_rows(found, counts)
        labels = encode_labels(found[LABEL], len(found), self._given.estimator)
        order = np.argsort(positions(counts.classes, labels.classes[labels.codes]))
        parts: dict[str, Array] = {}
        for word in SUMS:
            part = np.array([_floats(found[word + self._cells[name]]) for name in names]).T[order]
            parts[word] = np.where(parts.get("n", part) > 0.0, part, 0.0)
        return parts

    # -- columns of values that are counted

    def values(self, specification: Specification, counts: Counts) -> list[Any]:
        """Statistics of discrete columns."""
        import pyarrow as pa

        tables = [self._classes]  # a row without any value for each class
        for name in dict.fromkeys(name for plan in specification.plans for name in specification.columns(plan)):
            cell = self._cells[name]
            groups = self._rows.group_by(LABEL, cell)
            tables.append(_collected(groups.agg(nw.len().alias(ROWS), nw.col(WEIGHT).sum().alias(TOTAL))))
            self._check_rows(tables[-1], counts)
        joined = pa.concat_tables(tables, promote_options="default")
        columns = []
        for j in range(len(specification.names)):
            known = f"x{j}" in joined.column_names
            columns.append(joined[f"x{j}"] if known else pa.nulls(len(joined), pa.float64()))
        table = pa.table(columns, names=list(specification.names))
        found = [self._summed(specification, table, joined, word) for word in (TOTAL, ROWS)]
        pairs = zip(found[0].blocks, found[1].blocks, strict=True)
        return [_with_rows(weighted, counted, counts) for weighted, counted in pairs]

    def _summed(self, specification: Specification, table: Any, joined: Any, weights: str) -> JointStatistics:
        """The statistics of weighted values."""
        batches = Batches(table, joined[LABEL], _floats(joined[weights]), read_table, self._given.estimator)
        try:
            return specification.summarise(batches.first)
        except CellError as error:  # without the number of a row, which has no meaning here
            hint = error.hint.format(column=error.name)
            value = error.value.item() if isinstance(error.value, np.generic) else error.value
            text = f"Column {error.name!r}: {value!r} {error.problem}. {hint[:1].upper()}{hint[1:]}."
            raise InputError(text) from None


def _missing(name: str, kind: Any) -> Any:
    """Whether a value is NULL or NaN."""
    column = nw.col(name)
    return column.is_null() | column.is_nan().fill_null(False) if kind.is_float() else column.is_null()


def _shifted_sums(rows: Any, cells: Sequence[str]) -> Any:
    """For each class and column: rows n, weight w, mean m, s = Σw(x − m), q = Σw(x − m)², least and largest value."""
    label, weight, x = nw.col(LABEL), nw.col(WEIGHT), {cell: nw.col(cell) for cell in cells}
    doubles = {cell: column.cast(nw.Float64) for cell, column in x.items()}
    rows = rows.select(
        label, weight, *(nw.when(~each.is_nan()).then(each).alias(cell) for cell, each in doubles.items())
    )
    first = (
        rows.with_columns(
            *(nw.when(~x[cell].is_null()).then(weight).alias(f"w{cell}") for cell in cells),
            *((weight * x[cell]).alias(f"s{cell}") for cell in cells),
        )
        .group_by(LABEL)
        .agg(
            nw.len().alias(ROWS),
            *(x[cell].count().alias(f"n{cell}") for cell in cells),
            *(nw.col(f"{word}{cell}").sum() for word in "ws" for cell in cells),
            *(x[cell].min().alias(f"low{cell}") for cell in cells),
            *(x[cell].max().alias(f"high{cell}") for cell in cells),
        )
        .with_columns(*((nw.col(f"s{cell}") / nw.col(f"w{cell}")).alias(f"m{cell}") for cell in cells))
    )
    about = rows.join(first.select(LABEL, *(f"m{cell}" for cell in cells)), on=LABEL, how="inner")
    about = about.with_columns(*((x[cell] - nw.col(f"m{cell}")).alias(cell) for cell in cells))
    second = (
        about.with_columns(
            *((weight * x[cell]).alias(f"s{cell}") for cell in cells),
            *((weight * x[cell] * x[cell]).alias(f"q{cell}") for cell in cells),
        )
        .group_by(LABEL)
        .agg(
            *(nw.col(f"m{cell}").max() for cell in cells),  # as subtracted: computed again, it may be rounded otherwise
            *(nw.col(f"{word}{cell}").sum() for word in "sq" for cell in cells),
        )
    )
    kept = first.select(LABEL, ROWS, *(f"{word}{cell}" for word in ("n", "w", "low", "high") for cell in cells))
    return kept.join(second, on=LABEL, how="inner")


def _check_numbers(name: str, parts: dict[str, Array], whole: bool) -> None:
    """Raise for infinite values of a column, and for those whose squares overflow or underflow."""
    seen = parts["n"] > 0.0
    largest = np.where(seen, np.maximum(np.abs(parts["low"]), np.abs(parts["high"])), 0.0).max()
    if np.isinf(largest):
        raise InputError(f"Column {name!r} has infinite values. Replace them by NULL in the query, or drop these rows.")
    if whole and largest >= EXACT:
        raise InputError(f"Column {name!r} has integers beyond 2^53, which lose digits as doubles. {REMEDY}")
    if not all(np.isfinite(parts[word]).all() for word in "msq"):
        raise InputError(f"Column {name!r}: squares of values up to {largest:g} overflow. {REMEDY}")
    differ = seen & (parts["low"] < parts["high"])
    if np.any(parts["q"][differ] < SMALLEST):
        raise InputError(f"Column {name!r}: squares of differences between its values underflow. {REMEDY}")


def _moments_of(parts: dict[str, Array], counts: Counts) -> Moments:
    """Moments of each class from sums about a first mean; equal values have a scatter of exactly 0."""
    weight, same = parts["w"], parts["low"] == parts["high"]
    safe = np.where(weight > 0.0, weight, 1.0)
    mean = np.clip(parts["m"] + parts["s"] / safe, parts["low"], parts["high"])
    squares = np.maximum(parts["q"] - parts["s"] * (parts["s"] / safe), 0.0)
    return replace(
        Moments.empty(counts.classes, mean.shape[1], Sharing(), full=False),
        rows=np.rint(parts["n"]).astype(np.int64),
        weight=weight,
        mean=mean,
        scatter=np.where(same, 0.0, squares),
    )


def _with_rows(weighted: Any, counted: Any, counts: Counts) -> Any:
    """Statistics of weighted values, with the numbers of rows that have these values."""
    if isinstance(weighted.rows, tuple):
        return replace(weighted, rows=tuple(np.rint(part).astype(np.int64) for part in counted.weight))
    rows = np.rint(counted.by_column().weight).astype(np.int64)
    return _by_class(replace(weighted.by_column(), rows=rows), counts)


def _by_class(found: Any, counts: Counts) -> Any:
    """Statistics with one count for all columns of a class where no value is missing."""
    complete = np.array_equal(found.rows, repeated(counts.rows, found.rows.shape[1]))
    return replace(found, rows=counts.rows, weight=counts.weight) if complete else found


def _collected(query: Any) -> Any:
    """The result of a query as an Arrow table; Polars holds some rows at a time in memory, as DuckDB does."""
    options = {"engine": "streaming"} if query.implementation.is_polars() else {}
    return without_views(query.collect(backend="pyarrow", **options).to_native())


def _floats(column: Any) -> Array:
    return np.asarray(column.to_numpy(), dtype=np.float64)
