"""The views of all numeric columns together: Gaussians with a pooled and with per-class covariances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from likely.data.table import Table
from likely.errors import trying
from likely.evidence.densities import DensityBlock, number_table, summed
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import FittedView, View
from likely.families.base import Family
from likely.families.gaussian.family import Gaussian
from likely.families.gaussian.prior import NormalInverseWishart
from likely.model.persistence import register
from likely.model.specification import Specification
from likely.numerics.caches import cached_property
from likely.numerics.missingness import patterns
from likely.numerics.shapes import Shape
from likely.statistics.joint import JointStatistics
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
        values = _numbers(rows.rows, self.normal_scores)
        fills = _n_patterns(values) > MOST_PATTERNS
        table = number_table(rows.rows, encoding.numeric, np.nan_to_num(values) if fills else values)
        found = summed(rows, table, None, Gaussian())
        return FittedJointGaussian(*found, encoding.numeric, self.normal_scores, fills)


def _numbers(rows: EncodedRows, normal_scores: bool) -> Array:
    return rows.normal_scores if normal_scores else rows.numbers


def _n_patterns(values: Array) -> int:
    """The number of missingness patterns of rows."""
    incomplete = values[np.isnan(values).any(axis=1)]
    return sum(1 for _ in patterns(incomplete)) if len(incomplete) else 0


@register
@dataclass(frozen=True, eq=False)
class FittedJointGaussian(DensityBlock, FittedView):
    """Two terms: a pooled covariance, and per-class covariances that are shrunk toward it."""

    specification: Specification
    statistics: Annotated[JointStatistics, Shape("classes")]
    places: Annotated[Index, Shape("=numeric")]  # of the numeric columns in the table
    normal_scores: bool
    fills: bool  # whether missing values are replaced by the mean, 0

    term_names = ("pooled covariance", "per-class covariances")
    term_columns = (None, None)

    @property
    def name(self) -> str:
        return JointGaussianView(self.normal_scores).name

    def _values(self, rows: EncodedRows) -> Array:
        """Numbers, (n, numeric columns)."""
        values = _numbers(rows, self.normal_scores)
        return np.nan_to_num(values) if self.fills else values

    def table(self, rows: EncodedRows) -> Table:
        return number_table(rows, self.places, self._values(rows))

    @cached_property
    def _models(self) -> tuple[DensityBlock, DensityBlock]:
        """The densities of both terms, with priors that follow from the pooled covariance."""
        d = len(self.places)
        prior = NormalInverseWishart(0.0, PRIOR_ROWS, d + 2.0, RIDGE * (d + 2.0))
        pooled = self._with_family(Gaussian(shared=True, prior=prior))
        with trying():
            moments = pooled.specification.completion(pooled.plan, pooled.statistics.blocks[0]).statistics
        unit = moments.coordinates.unit
        covariance = moments.scatter[0] * unit * unit[:, None] / moments.weight.sum()
        degrees = 2.0 * d + 2.0
        scale = (covariance + PER_CLASS_RIDGE * np.eye(d)) * (degrees - d - 1.0)
        shrunk = NormalInverseWishart(0.0, PRIOR_ROWS, degrees, (scale + scale.T) / 2.0)
        return pooled, self._with_family(Gaussian(prior=shrunk))

    def _with_family(self, family: Family) -> Self:
        """The same rows with another family, whose statistics are a part of these."""
        specification = replace(self.specification, plans=(replace(self.plan, family=family),))
        part = family._project_statistics(self.statistics.blocks[0])
        return replace(self, specification=specification, statistics=JointStatistics(self.statistics.counts, (part,)))

    def terms(self, rows: EncodedRows) -> Array:
        table = self.table(rows)
        return np.stack([each.model.evidence(table) for each in self._models])

    def left_out(self, rows: TrainingRows) -> Array:
        table = self.table(rows.rows)
        with trying():
            return np.stack([each.left_out_evidence(table, rows) for each in self._models])

    def _valid(self) -> bool:
        return super()._valid() and len(self.specification.columns(self.plan)) == len(self.places)

    def contributions(self, rows: EncodedRows, weights: Array) -> Array:
        values, (n, n_columns) = self._values(rows), rows.cells.shape
        found = np.zeros((n, len(self.statistics.counts.classes), n_columns))
        for weight, each in zip(weights, self._models, strict=True):
            found[:, :, self.places] += weight * each.conditionals.explain(values)
        return found
