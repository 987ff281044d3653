"""Fits to statistics that were summed elsewhere: by the user, or by a database (scans with pushdown=True)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from likely.data.batches import Batches
from likely.data.columns import remember_schema
from likely.data.frames import FrameSchema
from likely.data.parts import source_of
from likely.engines.pushdown import EngineRows
from likely.engines.scan import Scan
from likely.errors import InputError, InputTypeError, listed
from likely.families.base import Family
from likely.model.fit import Fit
from likely.model.joint import JointModel
from likely.model.plans import columns_set_aside, declared_plans, extra_columns
from likely.model.specification import Specification
from likely.statistics.joint import JointStatistics
from likely.typing import Array


class StatisticsFits:
    """Mixin of `Learner`: models of statistics that were summed elsewhere, such as those of rows in a database."""

    unlabeled: Any
    _fits_in_engine = True  # whether databases sum scans with pushdown=True: y must be class labels
    if TYPE_CHECKING:  # of Learner
        _frame: FrameSchema
        _fit: Fit
        _estimates: tuple[JointModel, Array] | None

        @property
        def _calibrates(self) -> bool: ...
        def _specify(self, batches: Batches, expected: tuple[Any, ...] = ()) -> Specification: ...
        def _check_options(self) -> None: ...
        def _check_model(self, model: JointModel) -> None: ...

    def from_statistics(
        self, specification: Specification, statistics: JointStatistics, schema: FrameSchema | None = None
    ) -> Self:
        """Fit the model from sufficient statistics that were computed elsewhere.

        The statistics of all rows are the sum of the statistics of their parts, such as `statistics_` of models that
        were fitted on the parts with the same families.

        Parameters
        ----------
        specification : Specification
            Blocks of columns with their families: `specification_` of another fitted estimator.
        statistics : JointStatistics
            Sum of the statistics of all rows, such as `statistics_` of estimators with this specification.
        schema : FrameSchema, default=None
            Names and types of the columns of the frames that the rows were in: `schema_` of another fitted estimator.
            None is an array.

        Returns
        -------
        estimator
            The fitted estimator itself, whose class probabilities are not calibrated.

        See Also
        --------
        partial_fit : Adds rows to a fitted model.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> here, there = LinearDiscriminant().fit(X[::2], y[::2]), LinearDiscriminant().fit(X[1::2], y[1::2])
        >>> total = here.statistics_ + there.statistics_
        >>> model = LinearDiscriminant().from_statistics(here.specification_, total, here.schema_)
        >>> round(model.score(X, y), 3)
        0.98
        """
        self._check_options()
        if not isinstance(schema, FrameSchema | None):
            raise InputTypeError(f"schema is a {type(schema).__name__}. Pass the schema of a frame, or None.")
        return self._set_statistics(specification, statistics, FrameSchema() if schema is None else schema)

    def _set_statistics(
        self,
        specification: Specification,
        statistics: JointStatistics,
        schema: FrameSchema,
        targets: tuple[Any, ...] = (),
        estimate: bool = True,  # otherwise the parameters are estimated when they are needed first
    ) -> Self:
        """Become fitted to the statistics of rows with these columns, besides those of y and the weights."""
        fit, estimates = Fit.of_statistics(specification, statistics), None
        if estimate:
            estimates = fit.estimate()
            self._check_model(estimates[0])
        self._frame = schema
        remember_schema(self, schema, len(specification.names), targets)
        self.__dict__.pop("prior_shift_", None)  # of an earlier fit
        self._fit, self._estimates = fit, estimates
        return self

    def _engine_rows(self, X: Any, y: Any, sample_weight: Any) -> EngineRows | None:
        """The rows of a scan with pushdown=True; None for other rows."""
        source = source_of(X)
        if not (self._fits_in_engine and isinstance(source, Scan) and source.pushdown):
            return None
        return EngineRows.of(source, y, sample_weight, type(self).__name__, self.unlabeled)

    def _specify_engine_rows(self, rows: EngineRows, expected: tuple[Any, ...] = ()) -> Specification:
        """The specification that the options declare for the columns of these rows."""
        if hasattr(self, "families") and not isinstance(self.families, Family):
            given = {} if self.families is None else self.families
            plans = declared_plans(given, rows.names)
            known = {j for plan in plans for j in plan.columns or ()} | extra_columns(plans, rows.names)
            known |= columns_set_aside(given, rows.names)
            rest = [name for j, name in enumerate(rows.names) if j not in known]
            if rest:
                raise InputError(
                    f"Column {listed(rest)} has no declared family, and the choice of one needs rows: this scan has "
                    "pushdown=True. Declare all families, as in families={column: Gaussian()}; None sets a column "
                    "aside."
                )
        return self._specify(rows.header(), expected)

    def _check_uncalibrated(self) -> None:
        """Raise where a fit would calibrate probabilities."""
        if self._calibrates:
            raise InputError(
                "calibration='auto' learns from leave-one-out predictions of rows, and this scan has pushdown=True. "
                "Pass calibration=None."
            )
