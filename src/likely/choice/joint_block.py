"""The joint Gaussian block of the default model: which continuous columns are in it, and which of them as log x.

All log-densities are leave-one-out, and "better" means better by more than one standard error of the difference.

1. A column that a LogNormal describes better than a Gaussian is log x, if that is better for the block (`_logarithms`).
2. A column whose family by itself is one of counts leaves the block.
3. A column of another family than Gaussian or LogNormal leaves the block where the family is better than the block,
   which predicts the column given the others: log p(x_j | others) = log p(block) − log p(block without j) (`_leaving`).

More than `WIDE` columns have no joint block. Columns that leave it are independent, with their own family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from likely.choice.column_families import FEWEST, ColumnChoice, ColumnSample, Sample, short_name, weights_as_rows
from likely.choice.column_types import ColumnProfile
from likely.families.base import Columns, Family
from likely.families.estimation import Estimation
from likely.families.gaussian.family import Gaussian
from likely.families.geometric import Geometric
from likely.families.log_normal import LogNormal
from likely.families.negative_binomial import NegativeBinomial
from likely.families.point_mass import PointMass
from likely.families.poisson import Poisson
from likely.model.choices import Choice, difference_error, simplest_of_best
from likely.numerics.ties import exceeds, first_best
from likely.statistics.moments import Moments
from likely.typing import Array, Index

WIDE = 1000  # continuous columns up to which they have a joint density by default
WORK = 4e8  # about how many multiplications are spent on columns that may leave the block
SWEEPS = 3  # passes of step 3: each compares the remaining columns with the block without those that left


@dataclass(frozen=True, slots=True, eq=False)
class DefaultColumn:
    """A column whose family is not declared: its position in the table, its profile and the family by itself."""

    place: int
    name: str
    profile: ColumnProfile
    choice: ColumnChoice
    joint: bool = False  # whether it is part of the joint block

    @property
    def family(self) -> Family:
        atom = self.choice.atom
        return self.choice.family if atom is None else PointMass(atom, self.choice.family)

    @property
    def may_be_joint(self) -> bool:
        """Whether the column is continuous and has values, without a point mass."""
        return self.profile.continuous and self.choice.atom is None and self.profile.rows > 0

    @property
    def transformed(self) -> Family:
        """Gaussian or LogNormal, whichever has the larger log p of the column by itself."""
        if isinstance(self.choice.family, Gaussian | LogNormal) or self.choice.record is None:
            return self.choice.family if isinstance(self.choice.family, LogNormal) else Gaussian("diagonal")
        scores = self.choice.record.log_density
        x, log_x = (scores.get(name) for name in ("Gaussian", "LogNormal"))
        better = log_x is not None and (x is None or exceeds(log_x, x))
        return LogNormal() if better else Gaussian("diagonal")


def joint_columns(columns: Sequence[DefaultColumn], sample: Sample | None) -> list[DefaultColumn]:
    """The same columns; those in the joint block have the family Gaussian (x) or LogNormal (log x).

    Without a sample of rows, or with one continuous column, the block has those that are Gaussian or LogNormal alone.
    """
    inside = [i for i, column in enumerate(columns) if column.may_be_joint]
    if len(inside) > WIDE:
        return list(columns)
    found = list(columns)
    if sample is None or len(inside) < 2:
        for i in inside:
            if isinstance(columns[i].choice.family, Gaussian | LogNormal):
                found[i] = _joined(columns[i], isinstance(columns[i].transformed, LogNormal))
        return found
    some = [columns[i] for i in inside]
    logged = _logarithms(some, sample)
    left = _leaving(some, logged, sample)
    for k, i in enumerate(inside):
        if k not in left:
            found[i] = _joined(columns[i], k in logged)
    return found


def _joined(column: DefaultColumn, logged: bool) -> DefaultColumn:
    """A column as part of the joint block, as x or log x."""
    family = LogNormal() if logged else Gaussian("diagonal")
    record = column.choice.record
    if record is not None and short_name(family) != record.family:
        record = replace(record, family=short_name(family), reason=f"in the joint block; {record.family} by itself")
    return replace(column, choice=ColumnChoice(family, None, record), joint=True)


def wide_choice(columns: Sequence[DefaultColumn]) -> tuple[Choice, ...]:
    """A record for the summary where continuous columns are independent because they are more than `WIDE`."""
    names = tuple(column.name for column in columns if column.may_be_joint)
    if len(names) <= WIDE or any(column.joint for column in columns):
        return ()
    reason = f"more than {WIDE:,} continuous columns, for which a joint density is not the default"
    return (Choice(names, "independent columns", {}, {}, 0.0, reason=reason),)


def _logarithms(columns: Sequence[DefaultColumn], sample: Sample) -> set[int]:
    """Positions of the columns that are log x in the joint block of all these columns.

    Three sets are compared by log p of the block: the columns that by themselves a LogNormal describes better than a
    Gaussian; those among them whose logarithm is better while all others are x; and none. The smallest set within one
    standard error of the best is chosen.
    """
    by_itself = {k for k, column in enumerate(columns) if isinstance(column.transformed, LogNormal)}
    part = _complete_rows(columns, sample, len(by_itself)) if by_itself else None
    if part is None:
        return by_itself
    every, weights = np.arange(len(columns)), part.weights

    def density(logged: set[int]) -> Array:
        """log p(x) = log p(block) − Σ log x_j over the logarithms: the density of x, whichever set it is."""
        logs = np.log(part.values[:, sorted(logged)]).sum(axis=1)
        return _JointBlock.of(columns, part, logged).log_density(every) - logs

    plain = density(set())
    given_others = set()
    for k in by_itself:
        one = density({k})
        if float(np.average(one - plain, weights=weights)) > difference_error(one, plain, weights):
            given_others.add(k)
    candidates = [set(), given_others, by_itself]
    scores = [plain, density(given_others), density(by_itself)]
    means = [float(np.average(score, weights=weights)) for score in scores]
    best = first_best(means)
    errors = [difference_error(scores[best], score, weights) for score in scores]
    return candidates[simplest_of_best(means, errors)]


def _leaving(columns: Sequence[DefaultColumn], logged: set[int], sample: Sample) -> set[int]:
    """Positions of the columns that leave the joint block of all these columns: steps 2 and 3."""
    counts = Poisson | Geometric | NegativeBinomial
    left = {k for k, column in enumerate(columns) if isinstance(column.choice.family, counts)}
    doubtful = [
        k
        for k, column in enumerate(columns)
        if k not in left and not isinstance(column.choice.family, Gaussian | LogNormal)
    ]
    part = _complete_rows(columns, sample, len(doubtful)) if doubtful else None
    if part is None:
        return left
    block = _JointBlock.of(columns, part, logged)
    alone = {k: _alone(columns[k], part.column(k), k in logged) for k in doubtful}
    for _ in range(SWEEPS):
        inside = np.array([k for k in range(len(columns)) if k not in left], dtype=np.intp)
        whole = block.log_density(inside)
        leaving = set()
        for k in (k for k in doubtful if k not in left):
            conditional = whole - block.log_density(inside[inside != k])
            gain = float(np.average(alone[k] - conditional, weights=part.weights))
            error = difference_error(alone[k], conditional, part.weights)
            if gain > error:
                leaving.add(k)
        if not leaving:
            break
        left |= leaving
    return left


def _complete_rows(columns: Sequence[DefaultColumn], sample: Sample, doubtful: int) -> Sample | None:
    """Rows without missing values in these columns, as many as `WORK` allows; None if fewer than `FEWEST`."""
    places = [sample.columns.index(column.place) for column in columns]
    values = sample.values[:, places]
    most = int(WORK / ((doubtful + 1) * len(columns) ** 2))
    rows = np.flatnonzero(~np.isnan(values).any(axis=1))
    before = np.cumsum(sample.weights[rows]) - sample.weights[rows]
    rows = rows[before < most]  # a sample is in the order of its hashes
    weights = np.minimum(sample.weights[rows], most - before[: len(rows)])
    if max(float(weights.sum()), float(len(rows))) < FEWEST:
        return None
    in_table = tuple(column.place for column in columns)
    return Sample(in_table, values[rows], sample.codes[rows], weights, sample.classes)


def _alone(column: DefaultColumn, values: ColumnSample, logged: bool) -> Array:
    """Leave-one-out log p of a column by itself, as a density of x, or of log x if the block has log x.

    For whole numbers, the family has a probability P(x). It becomes a density by log P(x) − log Q(x) + log q(x), where
    q is the Gaussian density of x or log x, and Q its probability of the interval x ± ½.
    """
    whole, transformed = column.profile.whole, LogNormal() if logged else Gaussian("diagonal")
    found = values.terms(column.choice.family, whole)
    if whole:
        found = found - values.terms(transformed, True) + values.terms(transformed, False)
    return found + np.log(values.x) if logged else found


@dataclass(frozen=True, slots=True, eq=False)
class _JointBlock:
    """Complete rows, with log x in place of x for some columns, and their moments."""

    rows: Array
    sample: Sample
    moments: Moments
    family: Gaussian

    @classmethod
    def of(cls, columns: Sequence[DefaultColumn], sample: Sample, logged: set[int]) -> _JointBlock:
        """The block with pooled or per-class covariances, whichever has the larger leave-one-out log-density."""
        rows = sample.values.copy()
        logs = sorted(logged)
        rows[:, logs] = np.log(rows[:, logs])
        accumulator = Gaussian()._accumulator(sample.classes, Columns(tuple(column.name for column in columns)))
        accumulator.add(rows, sample.codes, sample.weights)
        moments = weights_as_rows(accumulator.finish())
        blocks = [cls(rows, sample, moments, Gaussian(shared=shared)) for shared in (True, False)]
        every = np.arange(len(columns))
        densities = [np.average(block.log_density(every), weights=sample.weights) for block in blocks]
        return blocks[first_best(densities)]

    def log_density(self, columns: Index) -> Array:
        """Leave-one-out log p of these columns under the class of each row, (n,)."""
        if not len(columns):
            return np.zeros(len(self.rows))
        part = self.family._project_statistics(self.moments.take(columns))
        assert isinstance(part, Moments)  # of complete rows
        names, codes = ("",) * len(columns), self.sample.codes
        fitted = self.family.estimate(part, Estimation.BAYES, names)
        log_density = self.family._leave_one_out(part, fitted, Estimation.BAYES, names)
        found = log_density(self.rows[:, columns], codes, np.minimum(self.sample.weights, 1.0))
        return np.asarray(found[codes, np.arange(len(codes))])
