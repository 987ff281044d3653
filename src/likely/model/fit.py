"""The result of fitting a model to rows: its specification, the statistics of the rows, and how both were found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import numpy as np

from likely.data.batches import Batches
from likely.data.ledger import HashedRows, Ledger, hashed, united
from likely.errors import InputError, InputTypeError, listed
from likely.families.given import GivenFamily
from likely.model.calibration import Calibration
from likely.model.choices import Choice, UnlabeledWeight
from likely.model.em import EMHistory
from likely.model.explanation import code_of
from likely.model.joint import JointModel
from likely.model.shared_collection import SharedCollection
from likely.model.specification import Specification
from likely.numerics.shapes import Shape, check
from likely.statistics.given import no_rows
from likely.statistics.joint import JointStatistics
from likely.statistics.moments import Moments
from likely.statistics.pattern_moments import PatternMoments
from likely.statistics.sums import Sums
from likely.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The specification of a model, the statistics of its rows, and how both were found."""

    specification: Annotated[Specification, Shape("names")]
    statistics: Annotated[JointStatistics, Shape("classes")]
    choices: tuple[Choice, ...] = ()  # of families, by leave-one-out log-loss
    history: EMHistory | None = None  # None if the statistics are plain sums
    calibration: Calibration | None = None  # of class probabilities, frozen since the rows were fitted
    unlabeled: UnlabeledWeight | None = None  # None if no row is unlabeled
    ledger: Ledger | None = None  # of the rows, if it is kept

    def _valid(self) -> bool:
        specification = self.specification
        parts = zip(specification.plans, self.statistics.blocks, strict=True)
        if self.history is None and specification.impossible_columns(self.statistics, self.statistics):
            return False
        return all(set(choice.columns) <= set(specification.names) for choice in self.choices) and all(
            part.dimension == len(specification.columns(plan))
            for plan, part in parts
            if isinstance(part, Moments | PatternMoments | Sums)
        )

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
        return cls(specification, specification.with_declared(statistics))

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
        declared, calibration = self.specification.with_declared(statistics), self.calibration
        if calibration is not None:
            calibration = calibration.align(declared.counts.classes)
        return replace(self, statistics=declared, calibration=calibration)

    # -- updates

    def added(self, rows: Batches, expected: tuple[Any, ...] = ()) -> Fit:
        """The fit of these rows too; other classes than the expected ones are an error, if there are any."""
        self.check_additive("partial_fit")
        specification = self.specification.expecting(expected)
        more = _sum(specification, rows)
        check_expected(more, specification.expected)
        ledger = None if self.ledger is None else self.ledger.added(self._hashed(rows))
        return replace(self, specification=specification, ledger=ledger).with_statistics(self.statistics + more)

    def recorded(self, rows: Batches) -> Fit:
        """The fit with a ledger of its rows."""
        return replace(self, ledger=Ledger.empty().added(self._hashed(rows)))

    def _hashed(self, rows: Batches) -> Iterator[HashedRows]:
        names, aside = self.specification.names, self.specification.set_aside
        return hashed(rows, np.array([j for j, name in enumerate(names) if name not in aside], dtype=np.intp))

    def without(self, rows: Batches) -> Fit:
        """The fit without these rows."""
        self.check_additive("forget")
        ledger = None if self.ledger is None else self.ledger.without(self._hashed(rows))
        left = self.statistics - _sum(self.specification, rows)
        self.specification.check_possible(left, self.statistics)
        return replace(self, ledger=ledger).with_statistics(left)

    def categories_before(self, left: Fit) -> dict[str, frozenset[Any]]:
        """The categories of columns that no row of `left` has any more."""
        remaining = left.specification.categories(left.statistics)
        before = self.specification.categories(self.statistics)
        return {name: words - remaining[name] for name, words in before.items() if words - remaining[name]}

    def without_class(self, label: object) -> Fit:
        """The fit without the rows of a class."""
        self.check_additive("drop_class")
        left = self.statistics.without(code_of(self.statistics.counts.classes, label))
        ledger = None if self.ledger is None else self.ledger.without_class(label)
        return replace(self, ledger=ledger).with_statistics(left)

    def counted(self, rows: Batches) -> Fit:
        """The same specification and calibration, and the statistics of these rows alone."""
        self.check_additive("structure_of")
        classes = tuple(self.statistics.counts.classes.tolist())
        specification = self.specification.expecting(classes)  # also of those without rows here
        fit = replace(self, specification=specification, ledger=None)
        return fit.with_statistics(_sum(fit.specification, rows))

    def __add__(self, other: Fit) -> Fit:
        """The fit of the rows of both, whose specifications are alike: the order of the blocks may differ."""
        places = [plan.columns for plan in other.specification.plans]
        blocks = tuple(other.statistics.blocks[places.index(plan.columns)] for plan in self.specification.plans)
        specification = self.specification.expecting(other.specification.expected)
        fit = replace(self, specification=specification, calibration=self._common_calibration(other))
        fit = replace(fit, ledger=united(self.ledger, other.ledger))
        return fit.with_statistics(self.statistics + replace(other.statistics, blocks=blocks))

    def _common_calibration(self, other: Fit) -> Calibration | None:
        """The mean calibration, weighted by rows; a fit without calibration counts as one with t = 1 and c = 0."""
        if self.calibration is None and other.calibration is None:
            return None
        first, second = (
            each.calibration or Calibration.identity(each.statistics.counts.classes) for each in (self, other)
        )
        return first.merged(second, (self.weight, other.weight))

    @property
    def weight(self) -> float:
        """The weight of the rows."""
        return float(self.statistics.counts.weight.sum())

    def check_rows(self, operation: str) -> None:
        """Raise for a model whose parameters are given, which has no training rows."""
        if any(isinstance(plan.family, GivenFamily) for plan in self.specification.plans):
            raise no_rows(operation)

    def check_additive(self, operation: str) -> None:
        """Raise where the statistics are expectations, which cannot be added to or subtracted from."""
        self.check_rows(operation)
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
        """The family of each column, or of each tuple of columns with a joint density; None if it is set aside."""
        return self.specification.families

    # -- files

    def content(self) -> dict[str, Any]:
        """What a model file has of it. The names of the fields are the file format."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of_content(cls, content: dict[str, Any]) -> Fit:
        """The fit in a model file, validated."""
        fit = cls(*(content[field.name] for field in fields(cls)))
        check(fit)
        return fit.with_statistics(fit.statistics)


def check_expected(statistics: JointStatistics, expected: tuple[Any, ...]) -> None:
    """Raise for rows of other classes than the expected ones, if there are any."""
    known = statistics.counts.classes[statistics.counts.rows > 0]
    unexpected = [label for label in known.tolist() if label not in expected]
    if expected and unexpected:
        raise InputError(f"y has the label {listed(unexpected)}, which is not among classes={listed(expected)}.")


def _sum(specification: Specification, rows: Batches) -> JointStatistics:
    """The statistics of all rows. A missing value in a block that needs complete rows is an error."""
    total = rows.total(specification.summarise, draw=False)
    assert total is not None
    return total
