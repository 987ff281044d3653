"""The family of a column: candidates compared by leave-one-out log p(x | class), on one measure.

Whole numbers have the counting measure: a continuous candidate enters as P(x − ½ < X ≤ x + ½) under its leave-one-out
predictive. Other numbers have the Lebesgue measure, so that the unit of a column does not change a choice. Candidates
are judged on rows that are drawn by their content, under full Bayes whatever the estimation of the model is, because
every candidate then has a density for every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.special

from likely.choice.column_types import FEW, ColumnProfile, tables
from likely.choice.row_sample import sampled_rows
from likely.data.batches import Batches
from likely.data.row_hash import array_keys
from likely.families.base import Columns, Family
from likely.families.geometric import Geometric
from likely.families.negative_binomial import NegativeBinomial
from likely.model.choices import Choice, difference_error, simplest_of_best
from likely.numerics.arrays import has_missing
from likely.numerics.ties import first_best
from likely.numerics.tree_sum import group_sum
from likely.statistics.category_counts import CategoryCounts
from likely.statistics.counts import Counts
from likely.typing import AnyArray, Array, Codes

ROWS = 4000  # rows that candidates are judged on, at most
CELLS = 2**17  # values of all columns that are judged, at most, unless there are fewer than LEAST_ROWS rows
LEAST_ROWS = 500
FEWEST = 100  # rows below which no choice is made: fewer would choose by accident
TOGETHER = 32  # columns whose terms are computed at once
BEYOND = 10.0  # expected number of values beyond the largest, above which a distribution of counts is implausible
ATOM_ROWS = 256  # rows in which a point mass occurs more than once
ATOM_PROPORTION = 0.1  # of the rows that a point mass has, at least
ATOM_RATIO = 5.0  # times as many rows as the next most frequent value


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows that candidates are judged on: values (n, d) of some columns, NaN where missing, classes and weights.

    The rows are in the order of hashes of their content.
    """

    columns: tuple[int, ...]  # places in the table
    values: Array
    codes: Codes
    weights: Array
    classes: AnyArray

    @classmethod
    def draw(cls, batches: Batches, columns: Sequence[int]) -> Sample | None:
        """About `ROWS` rows, or fewer where there are many columns; None if there are too few labeled rows."""
        counts: Counts | None = group_sum([batch.counts for batch in batches if batch.table.rows])
        if counts is None or not columns or max(float(counts.weight.sum()), float(counts.rows.sum())) < FEWEST:
            return None
        most = min(ROWS, max(CELLS // len(columns), LEAST_ROWS))
        index, parts = np.array(columns, dtype=np.intp), []
        for some in sampled_rows(batches, counts, most):
            read = some.table.numbers(index, sparse=False, checked=False)  # the fit names values beyond limits
            cells = np.asarray(read(0, len(some.codes)), dtype=np.float64)
            parts.append((cells, some.codes.astype(np.intp), some.weights))
        if not parts:
            return None
        cells, labels, mass = map(np.concatenate, zip(*parts, strict=True))
        names = [batches.first.table.names[j] for j in columns]
        order = np.lexsort((mass, array_keys(cells, labels, names)))
        turned = np.asfortranarray(cells[order])  # columns are read one by one
        return cls(tuple(columns), turned, labels[order], mass[order], counts.classes)

    def column(self, place: int) -> ColumnSample:
        """The observed values of one column."""
        every = ColumnSample(self.values[:, place], self.codes, self.weights, self.classes)
        return every.take(~np.isnan(every.x)) if has_missing(every.x) else every


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSample:
    """Observed values of one column, (n,), or of several, (n, d), with classes and weights."""

    x: Array
    codes: Codes
    weights: Array
    classes: AnyArray

    @property
    def size(self) -> float:
        return max(float(self.weights.sum()), float(len(self.x)))

    def take(self, which: AnyArray) -> ColumnSample:
        """Some of the values, by a mask."""
        return replace(self, x=self.x[which], codes=self.codes[which], weights=self.weights[which])

    def merged(self) -> ColumnSample:
        """Equal values of a class as one row of their total weight: leave-one-out holds out one copy of each."""
        if np.any(self.weights < 1.0):
            return self
        distinct, place = np.unique(self.x, return_inverse=True)
        pairs, owner = np.unique(self.codes * len(distinct) + place, return_inverse=True)
        codes = (pairs // len(distinct)).astype(np.intp)
        weights: Array = np.bincount(owner, weights=self.weights).astype(np.float64)
        return replace(self, x=distinct[pairs % len(distinct)], codes=codes, weights=weights)

    def terms(self, family: Family, whole: bool) -> Array:
        """Leave-one-out log p(x | class) of every value, of the shape of x."""
        held_out = np.minimum(self.weights, 1.0)
        rows: AnyArray = self.x.reshape(len(self.x), -1)
        columns = Columns(("x",) * rows.shape[1])
        if family._reads_categories:
            distinct, codes = np.unique(self.x, return_inverse=True)
            rows, columns = codes.reshape(rows.shape), Columns(("x",), (tuple(distinct.tolist()),))
        accumulator = family._accumulator(self.classes, columns)
        accumulator.add(rows, self.codes, self.weights)
        statistics = weights_as_rows(accumulator.finish())
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = family._held_out_terms(statistics, rows, self.codes, held_out, whole)
        return np.where(np.isnan(found), -np.inf, found).reshape(self.x.shape)


def weights_as_rows(statistics: Any) -> Any:
    """The statistics of repeated rows: a weight of w counts as w rows, so that one copy can be held out of it."""
    if isinstance(statistics, CategoryCounts):
        return statistics
    return replace(statistics, rows=np.ceil(statistics.weight).astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnChoice:
    """The family chosen for a column, its point mass if it has one, and the record of the choice."""

    family: Family
    atom: float | None = None
    record: Choice | None = None


def point_mass(sample: ColumnSample) -> float | None:
    """The value that a continuous column has in at least a tenth of the rows, five times as often as any other."""
    x, weights = sample.x, sample.weights
    few = np.sort(x[:ATOM_ROWS])
    if sample.size < FEWEST or (len(x) > ATOM_ROWS and np.all(weights == 1.0) and np.all(few[1:] > few[:-1])):
        return None  # without any repeated value among this many rows, none is in a tenth of them
    distinct, place = np.unique(x, return_inverse=True)
    if len(distinct) <= FEW:
        return None
    weight = np.bincount(place, weights=weights)
    second, first = np.argsort(weight, kind="stable")[-2:]
    often = weight[first] >= ATOM_PROPORTION * weight.sum() and weight[first] >= ATOM_RATIO * weight[second]
    return float(distinct[first]) if often and np.isfinite(distinct[first]) else None  # the fit names infinite values


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """A column to choose a family for: the candidates, and the values that they are compared on."""

    name: str
    candidates: tuple[Family, ...]
    default: Family
    whole: bool
    values: ColumnSample
    atom: float | None = None

    @property
    def undecided(self) -> bool:
        several = len(self.candidates) > 1 and self.values.size >= FEWEST
        return several and bool(np.isfinite(self.values.x).all())

    def chosen(self) -> ColumnChoice:
        """The choice by the terms of this column alone."""
        if not self.undecided:
            return ColumnChoice(self.default, self.atom)
        judged = self.values.merged() if self.whole else self.values
        families = plausible(self.candidates, judged)
        return self.by_terms(families, [judged.terms(family, self.whole) for family in families], judged.weights)

    def by_terms(self, candidates: Sequence[Family], terms: Sequence[Array], weights: Array) -> ColumnChoice:
        """The simplest candidate that is not clearly worse than the best; the default where none has an estimate."""
        candidates, terms, means = _one_dispersion(list(zip(candidates, terms, strict=True)), weights)
        best = first_best(means)
        if not np.isfinite(means[best]):
            return ColumnChoice(self.default, self.atom)
        errors = [
            difference_error(terms[best], part, weights) if np.isfinite(mean) else 0.0
            for part, mean in zip(terms, means, strict=True)
        ]
        chosen = simplest_of_best(means, errors)
        names = [short_name(family) for family in candidates]
        record = Choice(
            (self.name,),
            names[chosen],
            {},
            dict(zip(names, errors, strict=True)),
            float(weights.sum()),
            {each: mean if np.isfinite(mean) else None for each, mean in zip(names, means, strict=True)},
            "counting" if self.whole else "Lebesgue",
            "the best" if chosen == best else f"simpler than {names[best]}, and not clearly worse",
        )
        return ColumnChoice(candidates[chosen], self.atom, record)


def plausible(candidates: Sequence[Family], values: ColumnSample) -> list[Family]:
    """The candidates without counts that would have drawn larger values: day, hour and month are bounded.

    The number of values beyond the largest is about 1 in rows that come from a distribution, and above `BEYOND` with a
    probability of exp(−BEYOND).
    """
    n = np.bincount(values.codes, weights=values.weights, minlength=len(values.classes))
    total = np.bincount(values.codes, weights=values.weights * values.x, minlength=len(values.classes))
    mean, top = total / np.where(n > 0.0, n, 1.0), float(values.x.max())

    def beyond(family: Family) -> float:
        if not isinstance(family, Geometric | NegativeBinomial):
            return 0.0
        r = float(getattr(family, "dispersion", 1.0))
        return float((n * scipy.special.betainc(top + 1.0, r, mean / (mean + r))).sum())

    return [family for family in candidates if beyond(family) <= BEYOND]


def _one_dispersion(
    scored: Sequence[tuple[Family, Array]], weights: Array
) -> tuple[list[Family], list[Array], list[float]]:
    """Candidates, their terms and mean terms; of negative binomial ones only the best."""
    means = [float(weights @ terms) / float(weights.sum()) for _, terms in scored]
    several = [i for i, (family, _) in enumerate(scored) if isinstance(family, NegativeBinomial)]
    best = several[first_best([means[i] for i in several])] if several else -1
    kept = [i for i in range(len(scored)) if i not in several or i == best]
    return [scored[i][0] for i in kept], [scored[i][1] for i in kept], [means[i] for i in kept]


def short_name(family: Family) -> str:
    """The name of a candidate."""
    return family.describe() if isinstance(family, NegativeBinomial) else type(family).__name__


def choose_columns(
    batches: Batches, columns: Sequence[int], profiles: Sequence[ColumnProfile], names: Sequence[str]
) -> tuple[list[ColumnChoice], Sample | None]:
    """The families of some columns, and the rows that they were judged on."""
    pairs = list(zip(columns, profiles, strict=True))
    judged = [j for j, profile in pairs if len(profile.candidates()) > 1 or profile.continuous]
    sample = Sample.draw(batches, judged)
    found = {j: ColumnChoice(profile.family()) for j, profile in pairs}
    if sample is None:
        return list(found.values()), None
    places = {j: place for place, j in enumerate(judged)}
    together: list[tuple[int, _Column]] = []
    for j, profile in pairs:
        if j not in places:
            continue
        column = _column(batches, j, profile, sample.column(places[j]), names[j])
        if column.undecided and not column.whole and len(column.values.x) == len(sample.values):
            together.append((j, column))
        else:
            found[j] = column.chosen()
    for start in range(0, len(together), TOGETHER):
        found |= _chosen_together(together[start : start + TOGETHER])
    return list(found.values()), sample


def _column(batches: Batches, j: int, profile: ColumnProfile, values: ColumnSample, name: str) -> _Column:
    """A column with its candidates; one with a point mass is judged on the other rows."""
    atom = point_mass(values) if profile.continuous else None
    if atom is None:
        return _Column(name, profile.candidates(), profile.family(), profile.whole, values)
    rest = _without_atom(batches, j, profile, atom)
    families = rest.continuous_candidates()
    default = families[min(1, len(families) - 1)]  # of positive numbers LogNormal
    return _Column(name, families, default, rest.whole, values.take(values.x != atom), atom)


def _chosen_together(columns: Sequence[tuple[int, _Column]]) -> dict[int, ColumnChoice]:
    """Choices for several columns with the same candidates and rows, whose terms are computed at once."""
    first = columns[0][1]
    values = replace(first.values, x=np.column_stack([column.values.x for _, column in columns]))
    terms = [values.terms(family, False) for family in first.candidates]
    return {
        j: column.by_terms(column.candidates, [part[:, i] for part in terms], values.weights)
        for i, (j, column) in enumerate(columns)
    }


def _without_atom(batches: Batches, j: int, profile: ColumnProfile, atom: float) -> ColumnProfile:
    """The profile of the other values in all rows."""
    found: ColumnProfile = group_sum([profile.without(table, j, atom, weights) for table, weights in tables(batches)])
    return found
