"""The result of fitting a model to rows: its specification, the statistics of the rows, and how both were found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from likely.errors import InputError, InputTypeError
from likely.model.calibration import Calibration
from likely.model.choices import Choice, UnlabeledWeight
from likely.model.em import EMHistory
from likely.model.joint import JointModel
from likely.model.shared_collection import SharedCollection
from likely.model.specification import Specification
from likely.statistics.joint import JointStatistics
from likely.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The specification of a model, the statistics of its rows, and how both were found."""

    specification: Specification
    statistics: JointStatistics
    choices: tuple[Choice, ...] = ()  # of families, by leave-one-out log-loss
    history: EMHistory | None = None  # None where the statistics are plain sums
    calibration: Calibration | None = None  # of class probabilities, frozen since the rows were fitted
    unlabeled: UnlabeledWeight | None = None  # None where no row is unlabeled

    @classmethod
    def of_statistics(cls, specification: Specification, statistics: JointStatistics) -> Fit:
        """Statistics that the caller has summed, which must be those of the specification."""
        for name, value, kind in (
            ("specification", specification, Specification),
            ("statistics", statistics, JointStatistics),
        ):
            if not isinstance(value, kind):
                raise InputTypeError(f"{name} is a {type(value).__name__}. Pass `{name}_` of a fitted estimator.")
        if len(statistics.blocks) != len(specification.plans):
            raise InputError(
                f"statistics has {len(statistics.blocks)} blocks of columns, and specification has "
                f"{len(specification.plans)}. Pass both of the same estimator."
            )
        return cls(specification, specification.with_declared(statistics).compact())

    @classmethod
    def of_collection(cls, specification: Specification, collection: SharedCollection, sums: JointStatistics) -> Fit:
        """The fit of a specification from statistics that serve several."""
        return cls(specification, specification.with_declared(collection.statistics(specification, sums).aligned()))

    def estimate(self) -> tuple[JointModel, Array]:
        """The joint model and its class prior."""
        model, class_prior = self.specification.estimate(self.statistics)
        if self.calibration is not None:
            model = replace(model, calibration=self.calibration.align(model.classes))
        return model, class_prior

    def with_statistics(self, statistics: JointStatistics) -> Fit:
        """The same specification with other statistics."""
        declared, calibration = self.specification.with_declared(statistics).compact(), self.calibration
        if calibration is not None:
            calibration = calibration.align(declared.counts.classes)
        return replace(self, statistics=declared, calibration=calibration)

    def check_additive(self, operation: str) -> None:
        """Raise where the statistics are expectations, which cannot be added to or subtracted from."""
        if self.history is not None:
            remedy = "Fit it again on all rows."
            if operation == "left_out_proba":
                remedy = "Use likely.cross_validate, which fits a model for each fold."
            raise InputError(
                f"{operation}: this model was fitted by EM over the rows, because of unlabeled rows, several "
                "components, Ledoit-Wolf shrinkage with missing values, or too many combinations of missing "
                f"values. Its statistics are expectations, not sums. {remedy}"
            )

    @property
    def families(self) -> dict[Any, Any]:
        """The family of each column, or of each tuple of columns with a joint density; None where it is set aside."""
        found: dict[Any, Any] = dict.fromkeys(self.specification.set_aside)
        for plan in self.specification.plans:
            columns = self.specification.columns(plan)
            family = plan.family._declared_family
            if (plan.joint or not plan.family._independent) and len(columns) > 1:
                found[columns] = family
            else:
                found.update({name: family._of_column(name) for name in columns})
        return found
