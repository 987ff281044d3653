"""Regression as conditioning: y given x, in each class, and over the classes where the class of a row is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import scipy.special

from likely.data.row_blocks import evaluate
from likely.data.table import Table
from likely.errors import NotEstimableError
from likely.families.gaussian.conditional import ConditionalDensity, ConditionalMeans, PredictiveMixture, blend
from likely.families.gaussian.elliptical import Elliptical
from likely.families.gaussian.family import Gaussian
from likely.model.fit import Fit
from likely.model.specification import Specification
from likely.model.summary import LineSummary
from likely.numerics.caches import cached_property
from likely.numerics.threads import single_threaded_blas_for
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array, Index, Vocabulary


@dataclass(frozen=True, eq=False)
class ConditionedRows:
    """Rows of x, and the probabilities of their classes: y given these rows."""

    lines: ConditionalMeans
    rows: AnyArray
    codes: tuple[int, ...]  # of the classes
    probabilities: Array  # (codes, n)

    def mean(self) -> Array:
        """E[y | x], (n, q)."""
        return blend(self.probabilities, [self.lines.location(self.rows, code) for code in self.codes])

    def predictive(self) -> PredictiveMixture:
        """p(y | x)."""
        parts: list[ConditionalDensity] = [self.lines.given(self.rows, code) for code in self.codes]
        return PredictiveMixture(parts, self.probabilities)


@dataclass(frozen=True, eq=False)
class RegressionModel:
    """p(y | x) in each class, and averaged over the classes where the class of a row is unknown."""

    lines: ConditionalMeans
    columns: Index  # of x and y in a table of both
    class_column: int | None
    specification: Specification
    statistics: JointStatistics

    @classmethod
    def of(cls, fit: Fit, outputs: int) -> RegressionModel:
        """Condition the joint Gaussian of x and y on x; y are the last columns."""
        specification, statistics = fit.specification, fit.statistics
        if not len(statistics.counts.classes):
            raise NotEstimableError("The model has no rows: none were fitted, or all of them were forgotten.")
        (plan,), (moments,) = specification.plans, specification.completed(statistics).blocks
        family = cast(Gaussian, plan.family)
        with single_threaded_blas_for(len(specification.names)):
            joint = family._unfactored(moments, specification.estimation, specification.columns(plan))
            lines = ConditionalMeans(joint, outputs)
        everything = np.arange(len(specification.names))
        columns = everything if plan.columns is None else np.array(plan.columns)
        class_column = np.setdiff1d(everything, columns)
        return cls(lines, columns, int(class_column[0]) if len(class_column) else None, specification, statistics)

    def line_summaries(self, names: Sequence[str]) -> tuple[LineSummary, ...]:
        """Intercept, slopes and residual standard deviation of each target in each class."""
        lines = self.lines
        return tuple(
            LineSummary(
                target,
                label,
                float(lines.intercepts(k)[i]),
                tuple(zip(names[: lines.inputs], lines.slopes(k)[i].tolist(), strict=True)),
                float(lines.standard_deviations(k)[i]),
            )
            for k, label in enumerate(self.classes.tolist())
            for i, target in enumerate(names[lines.inputs :])
        )

    @property
    def classes(self) -> AnyArray:
        """Class labels."""
        return self.statistics.counts.classes

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Class labels as the categories of their column."""
        return tuple(self.classes.tolist())

    @cached_property
    def _marginal(self) -> tuple[Array, Elliptical]:
        """The log class prior, and the class-conditional densities of x."""
        joint, _ = self.specification.estimate(self.statistics)
        both = cast(Elliptical, joint.blocks[0].conditionals)
        return joint.log_prior, both.marginal(np.arange(self.lines.inputs))

    def _class_probabilities(self, rows: AnyArray) -> Array:
        """p(class | observed values of x), (classes, n)."""
        log_prior, marginal = self._marginal
        scores = np.repeat(log_prior[:, None], len(rows), axis=1)
        if self.lines.inputs:
            scores += marginal.log_density(rows)
        return np.asarray(scipy.special.softmax(scores, axis=0))

    def _by_class(self, rows: AnyArray, codes: AnyArray) -> Iterator[tuple[Index | slice, ConditionedRows]]:
        """Rows of the same class together, and those whose class is unknown."""
        if len(self.classes) == 1:
            yield slice(None), ConditionedRows(self.lines, rows, (0,), np.ones((1, len(rows))))
            return
        for code in np.unique(codes).tolist():
            index = np.flatnonzero(codes == code)
            possible = (code,) if code >= 0 else tuple(range(len(self.classes)))
            probabilities = np.ones((1, len(index))) if code >= 0 else self._class_probabilities(rows[index])
            yield index, ConditionedRows(self.lines, rows[index], possible, probabilities)

    def evaluate(
        self, table: Table, compute: Callable[[ConditionedRows, AnyArray], Array], width: int, targets: bool = False
    ) -> Array:
        """compute(rows, targets) of all rows, (rows, width); targets are read only if requested."""
        inputs = self.lines.inputs
        columns = self.columns if targets else self.columns[:inputs]
        out = np.empty((table.rows, width))
        read = table.numbers(columns, sparse=False) if len(columns) else lambda start, stop: np.zeros((stop - start, 0))
        codes = None
        if self.class_column is not None:
            codes = table.codes([self.class_column], (self.vocabulary,))

        def work(start: int, stop: int) -> None:
            rows = read(start, stop)
            mine = np.full(stop - start, -1) if codes is None else codes(start, stop)[:, 0]
            for index, part in self._by_class(rows[:, :inputs], mine):
                out[start:stop][index] = compute(part, rows[index, inputs:])

        evaluate(table, work, 4 * inputs + len(self.classes) * (2 + self.lines.targets) ** 2)
        return out
