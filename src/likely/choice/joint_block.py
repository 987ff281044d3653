"""Which columns have a joint Gaussian density: each of them as x or log x, or by itself with another family.

A continuous column leaves the block where the leave-one-out log p of the columns of the block improves by more than one
standard error; a column of counts stays in it where log p improves by more than one standard error, and a Gaussian of x
or log x describes it nearly as well by itself. With the column j in the block, it is log p(x_j | other columns) that is
compared with the family of the column by itself: the difference between the log-densities of the block with and without
it.
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
from likely.statistics.moments import Moments
from likely.typing import Array, Index

WIDE = 1000  # continuous columns up to which they have a joint density by default
WORK = 4e8  # about how many multiplications are spent on columns that may leave the block
SWEEPS = 3  # the block is judged again without the columns that left it


@dataclass(frozen=True, slots=True, eq=False)
class DefaultColumn:
    """A column whose family is not declared: its place in the table, its profile and the family chosen."""

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
        """Whether the column is continuous, without a point mass."""
        return self.profile.continuous and self.choice.atom is None

    @property
    def transformed(self) -> Family:
        """Gaussian or LogNormal, whichever describes the column better."""
        if isinstance(self.choice.family, Gaussian | LogNormal) or self.choice.record is None:
            return self.choice.family if isinstance(self.choice.family, LogNormal) else Gaussian("diagonal")
        scores = self.choice.record.log_density
        x, log_x = (scores.get(name) for name in ("Gaussian", "LogNormal"))
        better = log_x is not None and (x is None or log_x > x)
        return LogNormal() if better else Gaussian("diagonal")


def joint_columns(columns: Sequence[DefaultColumn], sample: Sample | None) -> list[DefaultColumn]:
    """The same columns, those in the joint block with x or log x as their family."""
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
    """The note that continuous columns are independent because they are too many for a joint density, if they are."""
    names = tuple(column.name for column in columns if column.may_be_joint)
    if len(names) <= WIDE or any(column.joint for column in columns):
        return ()
    reason = f"more than {WIDE:,} continuous columns, for which a joint density is not the default"
    return (Choice(names, "independent columns", {}, {}, 0.0, reason=reason),)


def _logarithms(columns: Sequence[DefaultColumn], sample: Sample) -> set[int]:
    """Places of the columns that are logarithms in the joint block of all these columns.

    Those whose logarithm is better by itself, those that are better given x of all others, or none: the sets are
    compared by leave-one-out log p of the block, and a smaller one is kept within one standard error.
    """
    by_itself = {k for k, column in enumerate(columns) if isinstance(column.transformed, LogNormal)}
    part = _complete_rows(columns, sample, len(by_itself)) if by_itself else None
    if part is None:
        return by_itself
    every, weights = np.arange(len(columns)), part.weights

    def density(logged: set[int]) -> Array:
        """With the Jacobian, so that x and log x have the same measure."""
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
    best = int(np.argmax(means))
    errors = [difference_error(scores[best], score, weights) for score in scores]
    return candidates[simplest_of_best(means, errors)]


def _leaving(columns: Sequence[DefaultColumn], logged: set[int], sample: Sample) -> set[int]:
    """Places of the columns that leave the joint block of all these columns."""
    left = {k for k, column in enumerate(columns) if is_count(column.choice.family)}
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


def is_count(family: Family) -> bool:
    """Whether a family is one of counts."""
    return isinstance(family, Poisson | Geometric | NegativeBinomial)


def _complete_rows(columns: Sequence[DefaultColumn], sample: Sample, doubtful: int) -> Sample | None:
    """Rows without missing values in these columns, as many as the work allows; None where there are too few."""
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
    """Leave-one-out log p of a column by itself, as a density of x or log x, whichever the block has.

    Of whole numbers, the probability of the interval of a Gaussian x or log x is replaced by its density.
    """
    whole, transformed = column.profile.whole, LogNormal() if logged else Gaussian("diagonal")
    found = values.terms(column.choice.family, whole)
    if whole:
        found = found - values.terms(transformed, True) + values.terms(transformed, False)
    return found + np.log(values.x) if logged else found


@dataclass(frozen=True, slots=True, eq=False)
class _JointBlock:
    """Rows of x and log x, and their moments."""

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
        return max(blocks, key=lambda block: np.average(block.log_density(every), weights=sample.weights))

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
