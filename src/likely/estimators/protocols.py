"""What evaluation and hybrid models call on an estimator besides its public methods.

The names have an underscore because users do not call them; this module is their documentation.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

from likely.data.batches import Batch, Batches
from likely.data.table import Table
from likely.model.fit import Fit
from likely.model.joint import JointModel
from likely.model.specification import Specification


class FittableFromStatistics(Protocol):
    """An estimator that splits fitting into steps: specify, summarise rows, estimate, and adopt the result.

    Cross-validation, selection and hybrid models take these steps one by one, and share the statistics between fits.
    """

    def _check_options(self) -> None:
        """Raise for invalid options."""

    def _table(self, X: Any, start: int = 0) -> Table:
        """Training rows as a table, numbered from `start`."""

    @property
    def _plans_are_declared(self) -> bool:
        """Whether the options alone determine the plans, whatever the rows are."""

    @property
    def _calibrates(self) -> bool:
        """Whether `fit` calibrates class probabilities."""

    def _specify(self, batches: Batches, expected: tuple[Any, ...] = ()) -> Specification:
        """The specification of these rows; `expected` are classes that later rows may have."""

    def _fit_rows(self, specification: Specification, batches: Batches) -> Fit:
        """The fit of these rows under a specification."""

    def _check_model(self, model: JointModel) -> None:
        """Raise for options that do not suit the fitted model."""

    def _set_fit(self, first: Batch, fit: Fit, estimates: Any = None) -> Self:
        """Become fitted; the columns are those of `first`, a batch of the rows."""
