"""The views of all numeric columns together: Gaussians with a pooled and with per-class covariances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self

import numpy as np

from likely.data.row_blocks import evaluate
from likely.data.table import Table
from likely.errors import trying
from likely.evidence.densities import DensityBlock, number_table
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import FittedView, View
from likely.families.base import Conditionals
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.prior import NormalInverseWishart
from likely.model.persistence import register
from likely.numerics.missingness import patterns
from likely.numerics.shapes import Shape
from likely.typing import Array, Index

PRIOR_ROWS = 0.01  # of the mean
RIDGE = 0.1  # prior expectation of the pooled covariance, in variances of the columns
PER_CLASS_RIDGE = 0.001  # added to the pooled covariance, toward which per-class covariances are shrunk
MOST_COLUMNS = 500
MOST_PATTERNS = 64  # of missing values; with more, missing values are replaced by the mean


@dataclass(frozen=True)
class JointGaussianView(View):
    """All numeric columns as one Gaussian: standardised, or as normal scores, which are robust to skew and outliers."""

    normal_scores: bool = False

    @property
    def name(self) -> str:
        return "joint Gaussian of normal scores" if self.normal_scores else "joint Gaussian"

    def fit(self, rows: TrainingRows, encoding: Encoding, seed: int) -> FittedJointGaussian | None:
        if not 1 < len(encoding.numeric) <= MOST_COLUMNS:
            return None
        values = rows.rows.normal_scores if self.normal_scores else rows.rows.numbers
        reader = NumberReader(encoding.names, encoding.numeric, self.normal_scores, _n_patterns(values) > MOST_PATTERNS)
        return FittedJointGaussian(reader, DensityBlock.of(rows, reader.table(rows.rows), None, Gaussian()))


def _n_patterns(values: Array) -> int:
    """The number of missingness patterns of rows."""
    incomplete = values[np.isnan(values).any(axis=1)]
    return sum(1 for _ in patterns(incomplete)) if len(incomplete) else 0


@register
@dataclass(frozen=True, slots=True, eq=False)
class NumberReader:
    """Which numbers of encoded rows a view reads."""

    columns: Annotated[tuple[str, ...], Shape("=names")]  # of the table
    places: Annotated[Index, Shape("=numeric")]  # of the numeric columns among them
    normal_scores: bool
    fills: bool  # whether missing values are replaced by the mean, 0

    def read(self, rows: EncodedRows) -> Array:
        """Numbers, (n, numeric columns)."""
        values = rows.normal_scores if self.normal_scores else rows.numbers
        return np.nan_to_num(values) if self.fills else values

    def table(self, rows: EncodedRows) -> Table:
        return number_table([self.columns[j] for j in self.places], self.read(rows))


@register
@dataclass(frozen=True, eq=False)
class FittedJointGaussian(FittedView):
    """Two terms: a pooled covariance, and per-class covariances that are shrunk toward it."""

    reader: Annotated[NumberReader, Shape("names numeric")]
    density: Annotated[DensityBlock, Shape("classes")]

    term_names = ("pooled covariance", "per-class covariances")
    term_columns = (None, None)

    @property
    def name(self) -> str:
        return JointGaussianView(self.reader.normal_scores).name

    @cached_property
    def _models(self) -> tuple[DensityBlock, DensityBlock]:
        """The blocks of both terms, with priors that follow from the pooled covariance."""
        d = len(self.reader.places)
        prior = NormalInverseWishart(0.0, PRIOR_ROWS, d + 2.0, RIDGE * (d + 2.0))
        pooled = self.density.with_family(Gaussian(shared=True, prior=prior))
        with trying():
            moments = pooled.specification.completion(pooled.plan, pooled.statistics.blocks[0]).statistics
        unit = moments.coordinates.unit
        covariance = moments.scatter[0] * unit * unit[:, None] / moments.weight.sum()
        degrees = 2.0 * d + 2.0
        scale = (covariance + PER_CLASS_RIDGE * np.eye(d)) * (degrees - d - 1.0)
        shrunk = NormalInverseWishart(0.0, PRIOR_ROWS, degrees, (scale + scale.T) / 2.0)
        return pooled, self.density.with_family(Gaussian(prior=shrunk))

    @cached_property
    def _conditionals(self) -> tuple[Conditionals, ...]:
        return tuple(model.conditionals for model in self._models)

    def terms(self, rows: EncodedRows) -> Array:
        table = self.reader.table(rows)
        return np.stack([_evaluated(conditionals, table) for conditionals in self._conditionals])

    def left_out(self, rows: TrainingRows) -> Array:
        table = self.reader.table(rows.rows)
        return np.stack([model.left_out(table, rows) for model in self._models])

    def updated(self, rows: TrainingRows, sign: float) -> Self:
        return replace(self, density=self.density.updated(rows, self.reader.table(rows.rows), sign))

    def counted(self, rows: TrainingRows) -> Self:
        return replace(self, density=self.density.counted(rows, self.reader.table(rows.rows)))

    def __add__(self, other: Self) -> Self:
        return replace(self, density=self.density + other.density)

    def _valid(self) -> bool:
        return len(self.density.names) == len(self.reader.places)

    def contributions(self, rows: EncodedRows, weights: Array) -> Array:
        values = self.reader.read(rows)
        found = np.zeros((len(rows), self._conditionals[0].n_classes, len(self.reader.columns)))
        for weight, conditionals in zip(weights, self._conditionals, strict=True):
            found[:, :, self.reader.places] += weight * conditionals.explain(values)
        return found


def _evaluated(conditionals: Conditionals, table: Table) -> Array:
    """log p(x | class), (classes, n)."""
    read, found = table.numbers(None, sparse=False), np.empty((conditionals.n_classes, table.rows))

    def work(start: int, stop: int) -> None:
        found[:, start:stop] = conditionals.log_density(read(start, stop))

    evaluate(table, work, conditionals.width)
    return found
