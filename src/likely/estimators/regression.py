"""Regression by conditioning: the joint Gaussian of features and targets, conditioned on the features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Self, cast

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from likely.data.batches import Batch, Batches, Tables, TargetBatches, targets_apart
from likely.data.frames import names_columns
from likely.data.row_blocks import evaluate
from likely.data.table import Table
from likely.data.validation import read_targets
from likely.errors import (
    CellError,
    InputError,
    InputTypeError,
    MissingCellError,
    NoDensityError,
    NotEstimableError,
    listed,
)
from likely.estimators.base import Learner
from likely.families.gaussian.conditional import ConditionalDensity, ConditionalMeans, PredictiveMixture, blend
from likely.families.gaussian.densities import Elliptical
from likely.families.gaussian.family import Gaussian
from likely.model.class_prior import estimate_prior
from likely.model.components import learn_components
from likely.model.fit import Fit
from likely.model.persistence import register
from likely.model.plans import Plan
from likely.model.specification import Specification
from likely.model.summary import LineSummary, RegressionSummary, class_summaries
from likely.numerics.arrays import all_finite, check_finite
from likely.numerics.threads import single_threaded_blas_for
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array, Index


@dataclass(frozen=True, eq=False)
class ConditionalRows:
    """Rows of x with the posterior of their classes, and the distribution of y that follows."""

    lines: ConditionalMeans
    rows: AnyArray
    labels: tuple[int, ...]
    posterior: Array  # (labels, n)

    def mean(self) -> Array:
        """E[y | x], (n, q)."""
        return blend(self.posterior, [self.lines.location(self.rows, label) for label in self.labels])

    def predictive(self) -> PredictiveMixture:
        """The predictive distribution of y."""
        parts: list[ConditionalDensity] = [self.lines.given(self.rows, label) for label in self.labels]
        return PredictiveMixture(parts, self.posterior)


Computation = Callable[[ConditionalRows, AnyArray], Array]  # of rows, given their targets


@dataclass(frozen=True, eq=False)
class RegressionModel:
    """p(y | x), given the class of a row, or averaged over the classes where it is missing."""

    lines: ConditionalMeans
    columns: Index  # of x and y in a table of both
    class_column: int | None
    specification: Specification
    statistics: JointStatistics

    @property
    def classes(self) -> AnyArray:
        return self.statistics.counts.classes

    @cached_property
    def _marginal(self) -> tuple[Array, Elliptical]:
        """The log class prior, and the class-conditional densities of x."""
        joint, _ = self.specification.estimate(self.statistics)
        both = cast(Elliptical, joint.blocks[0].conditionals)
        return joint.log_prior, both.marginal(np.arange(self.lines.inputs))

    def _posterior(self, rows: AnyArray) -> Array:
        """p(class | observed values of x), (classes, n)."""
        log_prior, marginal = self._marginal
        scores = np.repeat(log_prior[:, None], len(rows), axis=1)
        if self.lines.inputs:
            scores += marginal.log_density(rows)
        scores -= scores.max(axis=0)
        np.exp(scores, out=scores)
        return np.asarray(scores / scores.sum(axis=0))

    def _by_class(self, rows: AnyArray, codes: AnyArray) -> Iterator[tuple[Index | slice, ConditionalRows]]:
        """Rows grouped by class, and those whose class is missing."""
        if len(self.classes) == 1:
            yield slice(None), ConditionalRows(self.lines, rows, (0,), np.ones((1, len(rows))))
            return
        for code in np.unique(codes).tolist():
            index = np.flatnonzero(codes == code)
            labels = (code,) if code >= 0 else tuple(range(len(self.classes)))
            posterior = np.ones((1, len(index))) if code >= 0 else self._posterior(rows[index])
            yield index, ConditionalRows(self.lines, rows[index], labels, posterior)

    def over_rows(self, table: Table, compute: Computation, width: int, targets: bool = False) -> Array:
        """The results of `compute` for all rows, with their targets where the table has them, (rows, width)."""
        inputs = self.lines.inputs
        columns = self.columns if targets else self.columns[:inputs]
        out = np.empty((table.rows, width))
        read = table.numbers(columns, sparse=False) if len(columns) else lambda start, stop: np.zeros((stop - start, 0))
        codes = None
        if self.class_column is not None:
            codes = table.codes([self.class_column], (tuple(self.classes.tolist()),))

        def work(start: int, stop: int) -> None:
            rows = read(start, stop)
            mine = np.full(stop - start, -1) if codes is None else codes(start, stop)[:, 0]
            try:
                if not all_finite(rows):
                    check_finite(rows, allow_missing=True)
            except CellError as error:
                raise error.at(error.row, int(columns[error.column])) from None
            for index, part in self._by_class(rows[:, :inputs], mine):
                out[start:stop][index] = compute(part, rows[index, inputs:])

        evaluate(table, work, 4 * inputs + len(self.classes) * (2 + self.lines.targets) ** 2)
        return out


def _has_partial_fit(model: GenerativeRegressor) -> bool:
    """Whether partial_fit is available: mixtures of regressions have none."""
    if model.components != 1:
        raise AttributeError(
            f"GenerativeRegressor(components={model.components!r}) has no partial_fit: its statistics are "
            "expectations. Use fit with all rows."
        )
    return True


@register
class GenerativeRegressor(RegressorMixin, Learner):
    """Regression by the joint Gaussian of rows and targets: y given x, with its uncertainty, whatever cells x has.

    Missing cells of x are integrated out in prediction, and completed by expectation maximisation in training; missing
    targets likewise. With ``estimation="mle"`` it is least squares.

    Parameters
    ----------
    estimation : "bayes" (all parameters integrated out: y given x is a Student t), "map" or "mle".
    classes : a column of X, by name or number, with labels: each has a regression of its own. Where the label is
        missing or was never seen, the regressions answer together, as far as the other columns speak for each.
    components : how many regressions there are where no column tells which (Gaussian mixture regression).
    shared : True for one covariance of x and y in all classes or components, False for their own, or groups of classes.
    shrinkage : under "mle": of the covariance of x and y together; see `Gaussian`.
    prior : under "map" and "bayes": a `NormalInverseWishart` of the columns of x, then y; None is its weak default.
    class_prior : of classes and components: see `GenerativeClassifier`.
    n_init, random_state : how many starts components have, of which the best counts, and their seed.
    max_iter, tol : where cells, classes or components are not known, expectation maximisation stops after so many
        iterations, or when one changes its objective by less than so much for each row.
    """

    _regression: tuple[JointStatistics, RegressionModel] | None = None

    def __init__(
        self,
        estimation: str = "bayes",
        classes: Any = None,
        components: int = 1,
        shared: Any = False,
        shrinkage: Any = None,
        prior: Any = None,
        class_prior: Any = None,
        n_init: int = 5,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.estimation = estimation
        self.classes = classes
        self.components = components
        self.shared = shared
        self.shrinkage = shrinkage
        self.prior = prior
        self.class_prior = class_prior
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags

    # -- options

    def _check_options(self) -> None:
        super()._check_options()
        for name in ("components", "n_init"):
            value: Any = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
                raise InputError(f"{name}={value!r} is not a positive whole number.")
        if self.classes is not None and self.components != 1:
            raise InputError(
                f"classes={self.classes!r} and components={self.components} are alternatives: known and unknown "
                "classes. Set one of them."
            )

    def _class_column(self, table: Table) -> int | None:
        """The place of the column named by the option `classes`."""
        if self.classes is None:
            return None
        if str(self.classes) in table.names:
            return table.names.index(str(self.classes))
        number = isinstance(self.classes, Integral) and not isinstance(self.classes, bool)
        if not (number and 0 <= int(self.classes) < table.width):
            raise InputError(f"classes={self.classes!r} is not a column of X: {listed(table.names)}.")
        return int(self.classes)

    def _plans(self, batches: Batches) -> list[Plan]:
        table = batches.first.table
        label = self._class_column(table)
        columns = tuple(j for j in range(table.width) if j != label)
        return [
            Plan(
                columns if label is not None else None, Gaussian("full", self.shared, self.shrinkage, prior=self.prior)
            )
        ]

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X with targets y: one number for each row, or a column for each output.

        Where X is a frame, y may be the name of its target column, or a list of names. Rows that memory cannot hold
        are an object with a method `chunks`. NaN and null are missing, in X and in y. `sample_weight` counts rows.
        """
        self._check_options()
        batches = self._batches(X, y, sample_weight, self._table, allow_unlabeled=True)
        if self.components == 1:
            specification, first = self._specify(batches), batches.first
            fit = self._fit_rows(specification, batches)
        else:
            first, fit = self._fit_components(batches)
        model = self._conditioned(fit, first.table.target_shape)
        self._set_fit(first, fit)
        self._regression = fit.statistics, model
        return self

    @available_if(_has_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more rows: the result is that of `fit` on all rows so far, in any order and any batches."""
        try:
            return super().partial_fit(X, y, None, sample_weight)
        except MissingCellError as error:
            hint = "drop such rows, or use fit with all rows, which integrates missing values out"
            raise MissingCellError(error.row, error.column, error.value, "is missing (NaN)", hint, error.name) from None

    def _fit_components(self, batches: Batches) -> tuple[Batch, Fit]:
        """The fit of a mixture of regressions."""
        batches.check_unlabeled_weight()
        specification, first, rng = self._specify(batches), batches.first, check_random_state(self.random_state)
        options = self._em_options()
        return first, learn_components(specification, batches, int(self.components), rng, int(self.n_init), options)

    def _batches(
        self, X: Any, y: Any, sample_weight: Any, read: Callable[[Any, int], Table], allow_unlabeled: bool = False
    ) -> Batches:
        outputs = self._outputs if read == self._read else None
        return TargetBatches(
            X,
            y,
            sample_weight,
            read,
            type(self).__name__,
            column=self._class_column,
            outputs=outputs,
            allow_unlabeled=allow_unlabeled,
            ignore_labels=self.components != 1,
        )

    def _table(self, X: Any, start: int = 0) -> Table:
        table = super()._table(X, start)
        if table.is_sparse:
            raise InputTypeError(
                f"X is sparse, and {type(self).__name__} needs a dense array. Use X.toarray(), or fewer columns."
            )
        label = self._class_column(table)
        for j, kind in enumerate(table.kinds):
            if kind == "category" and j != label and table.has_categories(j):
                raise InputError(
                    f"Column {table.names[j]!r} is categorical, and a Gaussian needs numbers. Use "
                    f"classes={table.names[j]!r} to fit a regression for each category (of one column), encode it as "
                    "numbers (OneHotEncoder), or drop it."
                )
        return table

    @property
    def _outputs(self) -> int:
        return int(np.prod(self._target_shape))

    # -- the model

    def _conditioned(self, fit: Fit, target_shape: tuple[int, ...]) -> RegressionModel:
        """y given x, from the statistics of both."""
        specification, statistics = fit.specification, fit.statistics
        if not len(statistics.counts.classes):
            raise NotEstimableError("The model has no rows: none were fitted, or all of them were forgotten.")
        (plan,), (moments,) = specification.plans, statistics.blocks
        family = cast(Gaussian, plan.family)
        with single_threaded_blas_for(len(specification.names)):
            joint = family._unfactored(moments, specification.estimation, specification.columns(plan))
            lines = ConditionalMeans(joint, int(np.prod(target_shape)))
        everything = np.arange(len(specification.names))
        columns = everything if plan.columns is None else np.array(plan.columns)
        label = np.setdiff1d(everything, columns)
        return RegressionModel(lines, columns, int(label[0]) if len(label) else None, specification, statistics)

    def _regressions(self) -> RegressionModel:
        """The model of y given x, estimated once."""
        fit = self._fitted()
        if self._regression is None or self._regression[0] is not fit.statistics:
            self._regression = fit.statistics, self._conditioned(fit, self._target_shape)
        return self._regression[1]

    @property
    def class_prior_(self) -> Array:
        """The probability of each class, or component, before its row is seen."""
        fit = self._fitted()
        return estimate_prior(fit.specification.class_prior, fit.statistics.counts, fit.specification.estimation)

    # -- predictions

    def _over_tables(self, X: Any, compute: Computation, width: int) -> Array:
        model = self._regressions()
        parts = [model.over_rows(table, compute, width) for table in Tables(X, self._read)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Where y is expected, given what is there of each row; with `return_std` also its deviation.

        Both are (rows,), or (rows, outputs) where y had columns. The deviation is that of a new y: under "mle" and
        "map" at the plugged-in parameters, under "bayes" of the Student t that allows for not knowing them.
        """
        q, shape, to_user = self._outputs, self._target_shape, self._regressions().lines.y_coordinates.to_user
        if not return_std:
            return self._over_tables(X, lambda part, _: to_user(part.mean()), q).reshape(-1, *shape)
        unit = self._regressions().lines.y_coordinates.unit

        def compute(part: ConditionalRows, _: AnyArray) -> Array:
            predictive = part.predictive()
            return np.hstack([to_user(predictive.mean), predictive.deviation * unit])

        found = self._over_tables(X, compute, 2 * q)
        return found[:, :q].reshape(-1, *shape), found[:, q:].reshape(-1, *shape)

    def predict_interval(self, X: Any, level: float = 0.95) -> Array:
        """Where y lies with probability `level`, as often below as above: (rows, 2), or (rows, outputs, 2).

        Where y has several outputs, each interval is for one of them alone.
        """
        if not isinstance(level, Real) or isinstance(level, bool) or not 0.0 < float(level) < 1.0:
            raise InputError(f"level={level!r} is not a number between 0 and 1.")
        to_user, tail = self._regressions().lines.y_coordinates.to_user, 0.5 - float(level) / 2.0

        def compute(part: ConditionalRows, _: AnyArray) -> Array:
            predictive = part.predictive()
            ends = [to_user(predictive.quantile(level)) for level in (tail, 1.0 - tail)]
            return np.stack(ends, axis=2).reshape(len(part.rows), -1)

        return self._over_tables(X, compute, 2 * self._outputs).reshape(-1, *self._target_shape, 2)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R²: the share of the variance of y that is foreseen. y is the targets, or what they are called in X."""

        def numbers(targets: Any) -> AnyArray:
            table = read_targets(targets, type(self).__name__)
            return np.array(table.block(0, table.rows)).reshape(-1, *table.target_shape)

        return float(super().score(*targets_apart(X, y, names_columns, numbers), sample_weight))

    def log_predictive(self, X: Any, y: Any) -> Array:
        """log p(y | x), (rows,): how well the model has foreseen y. Missing outputs are left out."""
        model = self._regressions()
        coordinates, varying = model.lines.y_coordinates, model.lines.varying
        log_unit = np.log(coordinates.unit)

        def compute(part: ConditionalRows, targets: AnyArray) -> Array:
            present = ~np.isnan(targets[:, varying])
            density = part.predictive().log_density(
                coordinates.to_local(np.asarray(targets, dtype=np.float64)), varying
            )
            return np.asarray(density - present @ log_unit[varying])[:, None]

        batches = TargetBatches(
            X, y, None, self._read, type(self).__name__, column=lambda _: None, outputs=self._outputs
        )
        try:
            return np.concatenate([model.over_rows(batch.table, compute, 1, targets=True)[:, 0] for batch in batches])
        except NoDensityError as error:
            raise NoDensityError(f"log_predictive: {error}. Use estimation='bayes'.") from None

    @property
    def coef_(self) -> Array:
        """What a unit of each column adds to y: (columns,), or (outputs, columns) where y had columns."""
        return self._line("coef_").slopes(0).reshape(*self._target_shape, -1)

    @property
    def intercept_(self) -> Any:
        """y where all columns are 0: a number, or (outputs,) where y had columns."""
        values = self._line("intercept_").intercepts(0)
        return values if self._target_shape else float(values[0])

    def _line(self, name: str) -> ConditionalMeans:
        check_is_fitted(self)
        if self.classes is not None or self.components != 1:
            raise AttributeError(
                f"This GenerativeRegressor has no {name}: it is a mixture of regressions, and not linear in x. "
                "summary() has the slopes of each."
            )
        return self._regressions().lines

    def summary(self) -> RegressionSummary:
        """What was learnt, as plain data; ``print(model.summary())`` shows it."""
        model = self._regressions()
        lines, (plan,) = model.lines, self._specification.plans
        names = self._specification.columns(plan)
        regressions = tuple(
            LineSummary(
                target,
                label,
                float(lines.intercepts(k)[i]),
                tuple(zip(names[: lines.inputs], lines.slopes(k)[i].tolist(), strict=True)),
                float(lines.standard_deviations(k)[i]),
            )
            for k, label in enumerate(model.classes.tolist())
            for i, target in enumerate(names[lines.inputs :])
        )
        classes = class_summaries(self.statistics_.counts, self.class_prior_)
        family = f"{plan.family.describe()}: {listed(names, limit=12)}"
        estimation = self._specification.estimation
        return RegressionSummary(
            type(self).__name__, estimation, family, classes, regressions, tuple(lines.notes(names))
        )
